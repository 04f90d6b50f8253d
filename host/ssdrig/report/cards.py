"""The cards at the head of the report: one for each key figure, a bar for each run, all bars of a card on one scale."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ssdrig.report import words
from ssdrig.report.terms import BY_KEY, number
from ssdrig.report.views import View, facts

DIRECTIONS = {"more": "more is better", "less": "less is better", "": "neither is better"}


# Of each tuple the first figure that all runs have which have any of them: few seconds have no P0.1.
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


def keys(figures: list[dict]) -> list[str]:
    """The figures that get a card, the same in all windows; those that no run has are left out."""
    found = []
    for choices in WANTED:
        any_of = [f for f in figures if any(f[key] is not None for key in choices)]
        if any_of:
            found.append(next((key for key in choices if all(f[key] is not None for f in any_of)), choices[-1]))
    return found


def spread(figure: dict) -> float | None:
    """Standard deviation of the per-second IOPS in percent of their mean."""
    sd, mean = figure["iops_sd"], figure["iops_mean"]
    return None if sd is None or not mean else 100 * sd / mean


def cards(views: list[View], names: list, looks: list[dict], apart: list[str | None], review: int) -> str:
    """The cards of each window. `apart` says why a run is not comparable with the reviewed one."""
    labels = "".join(f'<span data-view="{i}">: {escape(view.label)}</span>' for i, view in enumerate(views))
    out = [f'<section id="cards" aria-labelledby="bars-h"><h2 id="bars-h">Key figures{labels}</h2><p class="soft">']
    out.append('<span class="screen">Click a bar to compare all runs with it. </span>★ is the best of the comparable')
    out.append(" runs; hatched bars are not comparable with the reviewed run.</p>")
    for index, view in enumerate(views):
        out.append(facts(view, index, names))
        out.append(f'<div class="cards" data-view="{index}">')
        for key in keys(view.figures):
            unit = words.unit(BY_KEY[key], [f[key] for one in views for f in one.figures])
            out.append(_card(key, unit, view.figures, names, looks, apart, review))
        out.append("</div>")
    return "".join(out) + "</section>"


class Bar(NamedTuple):
    """A bar of a card. `run`: its number on the page; `text`: the value in words, `aside`: beside it; `apart`: why it
    is not comparable with the reviewed run; `top`: it is the reviewed one."""

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


def _card(
    key: str, shown: words.Unit, figures: list[dict], names: list, looks: list[dict], apart: list, review: int
) -> str:
    bars = []
    for i, (f, (_, _, label, short)) in enumerate(zip(figures, names, strict=True)):
        text = shown.text(f[key], f["wa_error"] if key == "wa" else None)
        aside = f"spread {number(spread(f), 1)} %" if key == "iops_mean" and spread(f) is not None else ""
        colour = "--review" if i == review else looks[i]["colour"]
        bars.append(Bar(i, label, short, f[key], text, colour, looks[i]["glyph"], aside, apart[i], i == review))
    return card(key, BY_KEY[key].label, shown.name, BY_KEY[key].better, bars)


def card(key: str, title: str, unit: str, better: str, bars: Sequence[Bar]) -> str:
    """One figure of several runs, on one scale; `better`: "more", "less" or ""."""
    top = max((bar.value for bar in bars if bar.value is not None), default=0) or 1
    units = f" <span class='unit'>{unit}</span>" if unit else ""
    out = [f'<div class="card" data-key="{key}"><h3>{title}{units}</h3>']
    out.append(f'<p class="soft">{DIRECTIONS[better]}</p>')
    for bar in bars:
        width = 0 if bar.value is None else max(0.0, 100 * bar.value / top)
        data = "" if bar.value is None else f' data-value="{bar.value!r}" data-better="{better}"'
        kind = "row" + (" top" if bar.top else "") + (" apart" if bar.apart else "")
        why = f": not comparable, {bar.apart}" if bar.apart else ""
        out.append(
            f'<button type="button" class="{kind}" data-run="{bar.run}"{data} data-aside="{bar.aside}"'
            f' style="--bar:var({bar.colour})" aria-pressed="false"{" disabled" if bar.value is None else ""}'
            f' title="{escape(bar.label + why)}"><span class="head"><span class="name"><i class="key"'
            f' data-run="{bar.run}" aria-hidden="true">{bar.glyph}</i>{escape(bar.short)}</span><span'
            f' class="value">{bar.text}</span></span><span class="track"><span class="fill"'
            f' style="width:{width:.3f}%"></span></span><span class="percent">{bar.aside}</span></button>'
        )
    return "".join(out) + "</div>"
