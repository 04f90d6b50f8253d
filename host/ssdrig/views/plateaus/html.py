"""The views of loads that are recorded finely: `plateaus`, the speed over the amount written, and `cache-recovery`,
what an SLC cache takes after a rest (reading/filling.py, reading/cache_recovery.py)."""

from collections.abc import Mapping
from html import escape

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import size
from ssdrig.reading import cache_recovery as law
from ssdrig.reading import filling
from ssdrig.reading.row import Row
from ssdrig.views import svg
from ssdrig.views.context import Context, figure, panel, plus_minus, point, rows_at

WIDTH, HEIGHT = 640, 320
COLUMNS = (  # of a plateau's table: heading, unit, key, the key of the reason of a None
    ("Written", "GB", "gigabytes", ""),
    ("Speed", "MB/s", "speed", ""),
    ("Lowest, highest", "MB/s", "span", ""),
    ("Power", "W", "power_mean_W", "power_why"),
    ("Energy", "J/GB", "energy_J_per_GB", "power_why"),
    ("WA", "", "wa", "wa_why"),
)


def plateaus(context: Context) -> str:
    """A panel for each step: of one run its curve, and a row for each plateau; of several all curves in one plot."""
    if len(context.tables) > 1:
        return _of_runs(context)
    loads = [
        (row, path, name) for path in context.paths for run, name in context.runs() for row in rows_at(run, path, {})
    ]
    curves = [row.result.get("curve_GB_MBps", []) for row, *_ in loads]
    x = svg.extent([at for curve in curves for at, _ in curve], False)
    y = svg.extent([speed for curve in curves for _, speed in curve], False, context.show.get("top"))
    out = []
    for (row, path, name), curve in zip(loads, curves, strict=True):
        where = ", ".join(f"{key} {point(key, value)}" for key, value in row.act.point.items())
        title = context.title("Speed over the amount written", "MB/s", path) + (f", {where}" if where else "") + name
        if not len(curve):
            out.append(
                panel(title, "", next((note for note in row.notes if note.startswith("plateaus: ")), "not known"))
            )
            continue
        plot = svg.Plot(title, WIDTH, HEIGHT, x, y)
        cache = row.result.get("cache_bytes")
        if cache:
            plot.band(0, cache / 1e9)
        plot.line([(at, speed) for at, speed in curve], "stroke:var(--blue)")
        plot.axes("Written, GB", "MB/s")
        out.append(
            panel(title, f"<p><strong>{escape(in_words(row))}</strong></p>" + plot.text() + _rows(row), "", "wide")
        )
    return "".join(out)


def _of_runs(context: Context) -> str:
    """A panel for each step and point, with the curve of each run."""
    loads: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for run in context.order:
        for path in context.paths:
            for row in rows_at(context.tables[run], path, {}):
                where = ", ".join(f"{key} {point(key, value)}" for key, value in row.act.point.items())
                loads.setdefault((path, where), []).append((run, row))
    curves = [row.result.get("curve_GB_MBps", []) for of in loads.values() for _, row in of]
    x = svg.extent([at for curve in curves for at, _ in curve], False)
    y = svg.extent([speed for curve in curves for _, speed in curve], False, context.show.get("top"))
    out = []
    for (path, where), of in sorted(loads.items(), key=lambda entry: context.paths.index(entry[0][0])):
        title = context.title("Speed over the amount written", "MB/s", path) + (f", {where}" if where else "")
        plot = svg.Plot(title, WIDTH, HEIGHT, x, y)
        lines: dict[int, str] = {}
        for run, row in of:
            curve = row.result.get("curve_GB_MBps", [])
            if len(curve):
                plot.line([(at, speed) for at, speed in curve], svg.stroke(context.looks[run]), name=context.names[run])
            if run < (context.subjects or len(context.tables)):
                why = next((note for note in row.notes if note.startswith("plateaus: ")), "not known")
                lines[run] = f"<p>{escape(context.names[run])}: {escape(in_words(row) if len(curve) else why)}</p>"
        plot.axes("Written, GB", "MB/s")
        out.append(
            panel(
                title, "".join(text for _, text in sorted(lines.items())) + plot.text() + context.legend(), "", "wide"
            )
        )
    return "".join(out)


def in_words(row: Row) -> str:
    """ "cache 42.0 GB at 2100 MB/s, then 600 MB/s; all of it 740 MB/s"."""
    event = row.result
    if event["cache_bytes"] is None:
        words = f"no end of a cache: {event['cache_why']}"
    else:
        speeds = [figure(plateau["bw_mean_MBps"]) for plateau in event["plateaus"]]
        after = f", then {' and '.join(speeds[1:])} MB/s" if len(speeds) > 1 else ""
        words = f"cache {sized(event)}" + (f" at {speeds[0]} MB/s{after}" if speeds else "")
    speed = row.value("MB/s")
    return words if speed is None else f"{words}; all of it {figure(speed)} MB/s"


def sized(event: dict) -> str:
    """The size of a cache, "42.0 GB ± 0.1 GB"; `event`: of a row with a cache."""
    return " ± ".join(size(event[key]) for key in ("cache_bytes", "cache_error_bytes") if event[key] is not None)


def _rows(row: Row) -> str:
    if not row.result["plateaus"]:
        return ""
    heads = "".join(f'<th scope="col">{h}{f" <span class=unit>{u}</span>" if u else ""}</th>' for h, u, *_ in COLUMNS)
    out = [f'<div class="scroll"><table><thead><tr><th scope="col">Plateau</th>{heads}</tr></thead><tbody>']
    for number, plateau in enumerate(row.result["plateaus"], 1):
        of = plateau | {"gigabytes": (plateau["to_bytes"] - plateau["from_bytes"]) / 1e9}
        of |= {"speed": plus_minus(speed_of(plateau)), "span": span(plateau)}
        cells = "".join(_cell(of.get(key), of.get(why) or "") for *_, key, why in COLUMNS)
        out.append(f'<tr><th scope="row">{number}</th>{cells}</tr>')
    return "".join(out) + "</tbody></table></div>"


def speed_of(plateau: Mapping) -> Uncertain:
    """MB/s of a plateau, or of the last part of a load."""
    return Uncertain(plateau["bw_mean_MBps"], plateau.get("bw_error_MBps"))


def span(plateau: Mapping) -> str | None:
    """ "571 to 633": the lowest and the highest speed within it; None where it has too few samples."""
    ends = [plateau.get(key) for key in ("bw_low_MBps", "bw_high_MBps")]
    return None if None in ends else " to ".join(map(figure, ends))


def _cell(value: float | str | None, why: str) -> str:
    text = figure(value) if isinstance(value, float) else value
    return f"<td>{text}</td>" if text is not None else f'<td class="soft" title="{escape(why)}">–</td>'


def recovery(context: Context) -> str:
    """A panel for each step and run: what the cache took, over the rest before it."""
    out = []
    for path in context.paths:
        for run, name in context.runs():
            rows = rows_at(run, path, {})
            rests, (refill, limited) = filling.rested(rows), filling.recovery(rows)
            title = context.title("What the cache takes after a rest", "GB", path) + name
            lines = "".join(f"<p>{escape(line)}</p>" for line in recovery_in_words(refill, limited))
            if not rests:
                out.append(panel(title, lines, "", "wide"))
                continue
            plot = svg.Plot(
                title,
                WIDTH,
                HEIGHT,
                svg.extent([rest.rest_s for rest in rests], True),
                svg.extent([rest.cache_bytes / 1e9 for rest in rests], False),
                x_log=True,
            )
            look = svg.look(0)
            ordered = sorted(rests, key=lambda stay: stay.rest_s)
            plot.line([(rest.rest_s, rest.cache_bytes / 1e9) for rest in ordered], svg.stroke(look))
            for rest in rests:
                words = f"{figure(rest.rest_s)} s: {size(rest.cache_bytes)}"
                plot.mark(rest.rest_s, rest.cache_bytes / 1e9, look, words)
            plot.axes("Rest before it, s", "Recovered, GB")
            out.append(panel(title, plot.text() + lines, "Rests as they were, with the start of fio.", "wide"))
    return "".join(out)


def begun(delay_s: float | None, error_s: float | None = None) -> str:
    """ ", from 1.2 ± 0.1 s of rest on"; "" where it is not known from when on."""
    return "" if delay_s is None else f", from {plus_minus(Uncertain(delay_s, error_s), 's')} of rest on"


def recovery_in_words(refill: law.Recovery, left_out: int = 0) -> list[str]:
    """The rate, what came back at most, and the energy; each with the reason where it is not known. `left_out`: rests
    after which the host limited the load."""
    lines = [f"{left_out} rests left out: the host limited the load after them"] if left_out else []
    if refill.disturbed:
        lines.append(f"{refill.disturbed} rests left out: the end of the cache is not clear in the load after them")
    if refill.whole_bytes is None:
        return [*lines, str(refill.why)]
    lines.append(f"{size(refill.whole_bytes)} after a rest of {figure(refill.whole_s)} s")
    if refill.rate_Bps is None:
        lines.append(f"folding rate not known: {refill.why}")
    else:
        speed = plus_minus(Uncertain(refill.rate_Bps, refill.rate_error_Bps).scaled(1e-6), "MB/s")
        lines.append(f"{speed} of cache came back{begun(refill.delay_s, refill.delay_error_s)}; by {refill.used} rests")
    if refill.energy_J_per_GB is None:
        lines.append(f"energy of folding not known: {refill.energy_why}")
    else:
        power = f"{figure(refill.folding_W)} W while it folded, {figure(refill.floor_W)} W at rest"
        cost = plus_minus(Uncertain(refill.energy_J_per_GB, refill.energy_error_J_per_GB), "J")
        lines.append(f"{cost} for each GB that came back: {power}")
    return lines


HTML = {"plateaus": plateaus, "cache-recovery": recovery}  # view -> how it is drawn
