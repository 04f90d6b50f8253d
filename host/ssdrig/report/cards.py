"""The cards at the head of the report: one for each key figure, one bar for each run, all bars of a card on one scale."""

from html import escape

from ssdrig.report import words
from ssdrig.report.terms import BY_KEY, number

LONG_WINDOW_S = 1000  # from so many seconds on the slowest 0.1 % are at least one second
DIRECTIONS = {"more": "more is better", "less": "less is better", "": "neither is better"}


def keys(figures: list[dict]) -> list[str]:
    """The figures that get a card; those that no run has are left out."""
    spans = [f["window_s"] for f in figures if f["window_s"]]
    slowest = "iops_p0_1" if spans and all(b - a >= LONG_WINDOW_S for a, b in spans) else "iops_min"
    wanted = [
        "iops_mean",
        slowest,
        "clat_p99_us",
        "clat_p999_us",
        "energy_uJ_per_io",
        "power_mean_W",
        "wa",
        "idle_mean_W",
    ]
    return [key for key in wanted if any(f[key] is not None for f in figures)]


def spread(figure: dict) -> float | None:
    """Standard deviation of the per-second IOPS in percent of their mean."""
    sd, mean = figure["iops_sd"], figure["iops_mean"]
    return None if sd is None or not mean else 100 * sd / mean


def cards(figures: list[dict], names: list, looks: list[dict], apart: list[str | None], review: int) -> str:
    """`apart` says why a run is not comparable with the reviewed one."""
    out = ['<section aria-labelledby="bars-h"><h2 id="bars-h">Key figures</h2><p class="soft" id="bars-hint">']
    out.append(
        '<span class="screen">Click a bar to compare all runs with it. </span>★ is the best of the comparable runs;'
    )
    out.append(" hatched bars are not comparable with the reviewed run.</p><div class='cards'>")
    for key in keys(figures):
        out.append(_card(key, figures, names, looks, apart, review))
    return "".join(out) + "</div></section>"


def _card(key: str, figures: list[dict], names: list, looks: list[dict], apart: list, review: int) -> str:
    term, values = BY_KEY[key], [f[key] for f in figures]
    shown = words.unit(term, values)
    top = max((v for v in values if v is not None), default=0) or 1
    unit = f" <span class='unit'>{shown.name}</span>" if shown.name else ""
    out = [f'<div class="card" data-key="{key}"><h3>{term.label}{unit}</h3>']
    out.append(f'<p class="soft">{DIRECTIONS[term.better]}</p>')
    for i, (value, f, (_, _, label, short)) in enumerate(zip(values, figures, names, strict=True)):
        text = shown.text(value, f["wa_error"] if key == "wa" else None)
        aside = f"spread {number(spread(f), 1)} %" if key == "iops_mean" and spread(f) is not None else ""
        width = 0 if value is None else max(0.0, 100 * value / top)
        data = "" if value is None else f' data-value="{value!r}" data-better="{term.better}"'
        colour = "--review" if i == review else looks[i]["colour"]
        kind = "row" + (" top" if i == review else "") + (" apart" if apart[i] else "")
        why = f": not comparable, {apart[i]}" if apart[i] else ""
        out.append(
            f'<button type="button" class="{kind}" data-run="{i}"{data} data-aside="{aside}" style="--bar:var({colour})"'
            f' aria-pressed="false"{" disabled" if value is None else ""} title="{escape(label + why)}">'
            f'<span class="head"><span class="name"><i class="key" data-run="{i}" aria-hidden="true">{looks[i]["glyph"]}</i>{escape(short)}</span>'
            f'<span class="value">{text}</span></span><span class="track"><span class="fill" style="width:{width:.3f}%"></span></span>'
            f'<span class="percent">{aside}</span></button>'
        )
    return "".join(out) + "</div>"
