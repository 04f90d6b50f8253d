"""The cards at the head of the report: one for each key figure, a bar for each run, all bars of a card on one scale.
On the page of the main job they form one table, a row for each run (`ranking`)."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base.uncertain import Uncertain, among, differ
from ssdrig.base.words import digits
from ssdrig.reading import trust
from ssdrig.report import words
from ssdrig.report.views import View
from ssdrig.views.terms import BY_KEY, number

DIRECTIONS = {"more": "more is better", "less": "less is better", "": "neither is better"}


MOST_ROWS, MOST_IN_CARD = 5, 3  # runs shown in the table, and in a card without a table, before the rest are folded
LEAST_WHISKER = 0.003  # of the scale; a shorter one cannot be seen

# The first figure of a tuple that each run with any of them has: few seconds have no P0.1.
WANTED = (
    ("iops_mean",),
    ("iops_p0_1", "iops_min"),
    ("lat_p50_us", "clat_p50_us"),
    ("lat_p999_us", "clat_p999_us"),
    ("energy_uJ_per_io",),
    ("power_mean_W",),
    ("wa",),
    ("idle_mean_W",),
)


class Bar(NamedTuple):
    """A bar of a card. `run`: its number on the page; `text`: the value in words, `aside`: a note next to it; `apart`:
    why it is not comparable with the reviewed run; `top`: it is the reviewed one."""

    run: int
    label: str
    short: str
    value: float | None
    text: str
    colour: str
    glyph: str
    aside: str = ""
    apart: str | None = None
    top: bool = False
    red: str | None = None  # what the value rests on and is bad: it is as one that is not comparable
    doubt: float | None = None  # the uncertainty of the value, in its unit; None: not known, and it never leads
    error: str = ""  # the same in words, as printed after `text`


def keys(figures: list[dict]) -> list[str]:
    """The figures that get a card, the same in all windows; those that no run has are left out."""
    chosen = []
    for choices in WANTED:
        any_of = [f for f in figures if any(f[key] is not None for key in choices)]
        if any_of:
            chosen.append(next((key for key in choices if all(f[key] is not None for f in any_of)), choices[-1]))
    return chosen


def spread(figure: dict) -> float | None:
    """Standard deviation of the per-second IOPS in percent of their mean."""
    sd, mean = figure["iops_sd"], figure["iops_mean"]
    return None if sd is None or not mean else 100 * sd / mean


def ranks(bars: Sequence[Bar], better: str) -> dict[int, int]:
    """{run: place}: the best first, then those that cannot be ranked, then those without a value."""
    sign = 1 if better == "less" else -1
    ordered = sorted(bars, key=lambda bar: (bar.value is None, bool(bar.apart), sign * (bar.value or 0)))
    return {bar.run: place for place, bar in enumerate(ordered)}


def best(bars: Sequence[Bar], better: str, count: int = 0) -> set[int]:
    """The comparable runs with the best value or within the uncertainty of it. None where that is all of them, or where
    the best value, or any without an error, may be anything. `count`: how many are compared; 0: `bars` alone."""
    there = [bar for bar in bars if bar.value is not None and not bar.apart]
    if not better or not there:
        return set()
    sign = 1 if better == "less" else -1
    top = min(there, key=lambda bar: sign * (bar.value or 0))
    known = [bar for bar in there if bar.doubt is not None]
    leaders = {bar.run for bar in known if not differ(_uncertain(bar), _uncertain(top), count or len(there))}
    return leaders if top in known and len(leaders) < len(known) else set()


def _uncertain(bar: Bar) -> Uncertain:
    return Uncertain(bar.value, bar.doubt)


def doubt(key: str, figure: Mapping) -> float | None:
    """What a figure is uncertain by, in its unit; None where that is not known."""
    if key == "idle_mean_W":
        return figure["idle_uncertainty_W"]
    return (figure.get("errors") or {}).get(key)


def ranking(views: list[View], names: list, looks: list[dict], apart: list[str | None], review: int) -> str:
    """The cards of each window. `apart`: why a run is not comparable with the reviewed one."""
    labels = "".join(f'<span data-view="{i}">: {escape(view.label)}</span>' for i, view in enumerate(views))
    few = " few" * (len(names) <= MOST_ROWS + 1)  # the table has room for all
    folded = f' class="folded{few}"' * (len(names) > MOST_IN_CARD)
    out = [f'<section id="cards" aria-labelledby="bars-h"{folded}><h2 id="bars-h">Key figures{labels}</h2>']
    out.append('<p class="soft hint"><span class="screen">Click a bar to compare with it, a heading to sort. </span>')
    out.append("★: the best, and all within its uncertainty. Hatched: not comparable.</p>")
    if folded:
        out.append(f'<button type="button" class="all-runs">Show all {len(names)} runs</button>')
    for index, view in enumerate(views):
        columns = {}
        for key in keys(view.figures):
            unit = words.unit(BY_KEY[key], [f[key] for one in views for f in one.figures])
            columns[key] = unit.name, _bars(key, unit, view.figures, names, looks, apart, review)
        first = next((ranks(bars, BY_KEY[key].better) for key, (_, bars) in columns.items()), {})
        out.append(
            f'<div class="cards ranking" data-view="{index}" style="--runs:{len(names)};--figures:{len(columns)}">'
        )
        out.append(_runs(names, looks, apart, review, first))
        for key, (unit_name, bars) in columns.items():
            title = BY_KEY[key].label.replace("completion time (clat)", "clat").replace(" (lat)", "")
            out.append(card(key, title, unit_name, BY_KEY[key].better, bars, first))
        out.append("</div>")
    return "".join(out) + "</section>"


def _runs(names: list, looks: list[dict], apart: list, review: int, order: Mapping[int, int]) -> str:
    """The first column of the table: what each row is, and why one is not comparable."""
    out = ['<div class="card names"><div class="cap"><h3>Run</h3></div>']
    for i, (_, _, label, short) in enumerate(names):
        place = order.get(i, i)
        kind = "row" + " top" * (i == review) + " apart" * bool(apart[i]) + " below" * (place >= MOST_ROWS)
        colour = "--review" if i == review else looks[i]["colour"]
        why = f"Not comparable: {apart[i]}" if apart[i] else ""
        out.append(
            f'<div class="{kind}" data-run="{i}" style="--bar:var({colour});--all:{place}"'
            f' title="{escape(label)}"><span class="name"><i class="key" data-run="{i}" aria-hidden="true">'
            f'{looks[i]["glyph"]}</i>{escape(short)}</span><small class="why">{escape(why)}</small></div>'
        )
    return "".join(out) + "</div>"


def _bars(
    key: str, shown: words.Unit, figures: list[dict], names: list, looks: list[dict], apart: list, review: int
) -> list[Bar]:
    bars = []
    for i, (f, (_, _, label, short)) in enumerate(zip(figures, names, strict=True)):
        own = doubt(key, f)
        text, sign, error = shown.text(f[key], f["wa_error"] if key == "wa" else own).partition(" ± ")
        aside = f"spread {number(spread(f), 1)} %" if key == "iops_mean" and spread(f) is not None else ""
        colour = "--review" if i == review else looks[i]["colour"]
        red = trust.why_not(f.get("trust"), trust.rests_on(key))
        bar = Bar(i, label, short, f[key], text, colour, looks[i]["glyph"], aside, apart[i] or red, i == review)
        bars.append(bar._replace(red=red, doubt=own, error=sign + error))
    return bars


def _whisker(bar: Bar, top: float) -> str:
    """The uncertainty of a value, drawn on its bar; `top`: of the card's scale."""
    if bar.value is None or not bar.doubt or bar.doubt < LEAST_WHISKER * top:
        return ""
    low, high = (max(0.0, min(100.0, 100 * (bar.value + sign * bar.doubt) / top)) for sign in (-1, 1))
    return f'<span class="whisker" style="left:{low:.2f}%;width:{high - low:.2f}%"></span>'


def card(
    key: str, title: str, unit: str, better: str, bars: Sequence[Bar], order: Mapping[int, int] | None = None
) -> str:
    """One figure of several runs, on one scale; `better`: "more", "less" or "". `order`: the places of the runs in the
    table that the card is a column of, which its heading sorts."""
    top = max((bar.value + (bar.doubt or 0) for bar in bars if bar.value is not None), default=0) or 1
    units = f" <span class='unit'>{unit}</span>" if unit else ""
    head = (
        title + units
        if order is None
        else f'<button type="button" class="sort" data-key="{key}">{title}{units}</button>'
    )
    wider = among(sum(bar.value is not None and not bar.apart for bar in bars))
    out = [f'<div class="card" data-key="{key}" data-among="{digits(wider, 4)}"><div class="cap"><h3>{head}</h3>']
    out.append(f'<p class="soft">{DIRECTIONS[better]}</p></div>')
    own, leads = ranks(bars, better), best(bars, better)
    for bar in bars:
        width = 0 if bar.value is None else max(0.0, 100 * bar.value / top)
        data = (
            ""
            if bar.value is None
            else f' data-value="{bar.value!r}" data-better="{better}"'
            + ("" if bar.doubt is None else f' data-doubt="{digits(bar.doubt, 4)}"')
        )
        data += f' data-red="{escape(bar.red)}"' if bar.red else ""
        kind = "row" + " top" * bar.top + " apart" * bool(bar.apart) + " best" * (bar.run in leads)
        if order is not None:
            kind += " below" * (order[bar.run] >= MOST_ROWS) + " below-own" * (own[bar.run] >= MOST_IN_CARD)
        why = f": not comparable, {bar.apart}" if bar.apart else ""
        sr = f'<span class="sr"> {unit} </span>' if unit and bar.value is not None else ""
        error = f'<small class="error">{bar.error}</small>' if bar.error else ""
        places = "" if order is None else f";--all:{order[bar.run]};--own:{own[bar.run]}"
        out.append(
            f'<button type="button" class="{kind}" data-run="{bar.run}"{data} data-aside="{bar.aside}"'
            f' style="--bar:var({bar.colour}){places}" aria-pressed="false"{" disabled" if bar.value is None else ""}'
            f' title="{escape(bar.label + why)}"><span class="head"><span class="name">'
            f'<i class="key" data-run="{bar.run}" aria-hidden="true">{bar.glyph}</i>{escape(bar.short)}</span><span'
            f' class="value">{bar.text}{error}{sr}</span></span><span class="track"><span class="fill"'
            f' style="width:{width:.3f}%"></span>{_whisker(bar, top)}</span>'
            f'<span class="percent">{bar.aside}</span></button>'
        )
    return "".join(out) + "</div>"
