"""The plots of a campaign of power cuts: one cut in time, all cuts by their distance to a FLUSH, falls, ages. Pure but
for the evidence that they are given."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ssdrig.powerloss import picture
from ssdrig.reading.cuts import BIN_MS, POWER_NS, Evidence
from ssdrig.views import svg
from ssdrig.views.terms import number

WIDTH = 960
FAR_MS, NEAR_MS, PAST_MS = -picture.BEFORE_MS, -20.0, 15.0  # of one cut: left of NEAR_MS the axis is compressed
NEAR_PX = 330  # where the axis changes its scale
COARSE = 10
LANES = {"rail": (12, 92), "load": (106, 166), "marks": (180, 232)}
ALL_MS = (-20.0, 2.0)  # of all cuts
FALL_MS = (-1.0, 12.0)
FALL_POINTS, MOST_FALLS = 110, 48


class Time:
    """ms from the cut -> px; two straight pieces."""

    def __init__(self, from_px: float, to_px: float):
        self.pieces = [(FAR_MS, NEAR_MS, from_px, NEAR_PX), (NEAR_MS, PAST_MS, NEAR_PX, to_px)]

    def __call__(self, ms: float) -> float:
        low, high, a, b = self.pieces[0] if ms < NEAR_MS else self.pieces[1]
        return round(a + (min(high, max(low, ms)) - low) / (high - low) * (b - a), 1)


def one_cut(record: Mapping, seen: Evidence, watts: Sequence[float | None], title: str) -> str:
    """A cut in time: rail and power, writes submitted and acknowledged, FLUSHes, FUA, what was lost."""
    x = Time(46.0, WIDTH - 46.0)
    out = [f'<path class="grid" d="M{x(0)} 8V236M{NEAR_PX} 8V236"/>']
    for ms in (-300, -200, -100, -15, -10, -5, 0, 5, 10):
        out.append(f'<text x="{x(ms)}" y="250" class="mid small">{number(ms, 0)}</text>')
    middle = (46 + WIDTH - 46) / 2
    out.append(f'<text x="{middle}" y="264" class="mid small soft">ms from the cut; the scale changes at −20 ms</text>')
    for top, bottom in LANES.values():
        out.append(f'<path class="axis" d="M46 {top}V{bottom}H{WIDTH - 46}"/>')
    out += _power(x, watts) + _rail(x, seen)
    if seen.picture is not None:
        out += _load(x, seen.picture) + _marks(x, seen.picture)
    else:
        out.append('<text x="60" y="140" class="small soft">no picture of its commands was kept</text>')
    label = f"{title}: rail, power, writes, FLUSH and FUA around the cut"
    return (
        f'<svg class="plot cut" viewBox="0 0 {WIDTH} 268" role="img" aria-label="{escape(label)}">'
        + "".join(out)
        + "</svg>"
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if i else 'M'}{a} {b}" for i, (a, b) in enumerate(points))


def _lane(name: str, high: float) -> svg.Axis:
    top, bottom = LANES[name]
    return svg.Axis(0.0, high, bottom, top)


def _rail(x: Time, seen: Evidence) -> list[str]:
    if seen.volts is None or seen.since_edge_us is None or not len(seen.volts):
        return ['<text x="340" y="24" class="small soft">the fall was not recorded</text>']
    y = _lane("rail", 1.1 * max(0.1, float(seen.volts.max())))
    every = max(1, len(seen.volts) // 300)
    points = [
        (x(us / 1e3), y(float(v))) for us, v in zip(seen.since_edge_us[::every], seen.volts[::every], strict=True)
    ]
    top, _ = LANES["rail"]
    high = float(seen.volts.max())
    return [
        f'<path class="line" style="stroke:var(--blue)" d="{_path(points)}"/>',
        f'<text x="{WIDTH - 42}" y="{y(high) + 4}" class="small">{number(high, 1)} V</text>',
        f'<text x="{WIDTH - 42}" y="{top + 70}" class="small soft">rail</text>',
    ]


def _power(x: Time, watts: Sequence[float | None]) -> list[str]:
    known = [w for w in watts if w is not None]
    if not known:
        return []
    y = _lane("rail", 1.15 * max(0.1, *known))
    step_ms, out, points = POWER_NS / 1e6, [], []
    for i, w in enumerate([*watts, None]):
        if w is not None:
            at = FAR_MS + i * step_ms
            points += [(x(at), y(w)), (x(at + step_ms), y(w))]
        elif points:
            out.append(f'<path class="line" style="stroke:var(--orange)" d="{_path(points)}"/>')
            points = []
    return [*out, f'<text x="42" y="22" class="end small">{number(max(known), 1)} W</text>']


def _load(x: Time, of: Mapping) -> list[str]:
    submitted, acknowledged = of["ticks"]["submitted"], of["ticks"]["acknowledged"]
    most = max(1, *submitted, *acknowledged)
    y, out = _lane("load", 1.1 * most), []
    for counts, colour in ((submitted, "--grey"), (acknowledged, "--green")):
        points: list[tuple[float, float]] = []
        for begin, end in _steps(len(counts)):
            mean = sum(counts[begin:end]) / (end - begin)
            points += [(x(FAR_MS + begin), y(mean)), (x(FAR_MS + end), y(mean))]
        out.append(f'<path class="line thin" style="stroke:var({colour})" d="{_path(points)}"/>')
    return [*out, f'<text x="42" y="{LANES["load"][0] + 8}" class="end small">{most}</text>']


def _steps(of: int) -> list[tuple[int, int]]:
    """Bins of a ms where the axis is stretched, COARSE of them together before."""
    near, past = int(NEAR_MS - FAR_MS), min(of, int(PAST_MS - FAR_MS))
    return [(i, min(i + COARSE, near)) for i in range(0, near, COARSE)] + [(i, i + 1) for i in range(near, past)]


def _marks(x: Time, of: Mapping) -> list[str]:
    top, _ = LANES["marks"]
    flushes, fuas = [], []
    for submit, done in of["flushes"]:
        end = x(0.0 if done is None else done / 1e3)
        flushes.append(
            f"M{x(submit / 1e3)} {top + 2}v12M{x(submit / 1e3)} {top + 8}H{end}" + "v-6v12v-6" * (done is not None)
        )
    for submit, done in of["fuas"]:
        end = x(0.0 if done is None else done / 1e3)
        fuas.append(f"M{x(submit / 1e3)} {top + 24}H{max(end, x(submit / 1e3) + 1)}")
    out = [
        f'<path class="line" style="stroke:var(--purple)" d="{"".join(flushes)}"/>',
        f'<path class="line" style="stroke:var(--sky);stroke-width:4" d="{"".join(fuas)}"/>',
        f'<text x="42" y="{top + 12}" class="end small">FLUSH</text>',
        f'<text x="42" y="{top + 28}" class="end small">FUA</text>',
        f'<text x="42" y="{top + 44}" class="end small">fate</text>',
    ]
    since = of["in_flight"]["since_us"]
    if since is not None:
        out.append(
            f'<path class="line" style="stroke:var(--grey);stroke-width:4" d="M{x(since / 1e3)} {top + 40}H{x(0)}">'
            f"<title>{of['in_flight']['count']} writes under way</title></path>"
        )
    for key, colour, words in (
        ("volatile_us", "--orange", "oldest write lost that had not to survive"),
        ("lost_us", "--review", "first write lost that had to survive"),
    ):
        if of[key] is not None:
            ms = of[key] / 1e3
            out.append(
                f'<path d="{svg.MARKS["down" if key == "lost_us" else "diamond"]}" style="fill:var({colour})"'
                f' transform="translate({x(ms)} {top + 40}) scale(5)">'
                f"<title>{words}, acknowledged {number(-ms, 3)} ms before the cut</title></path>"
            )
    return out


def all_cuts(records: Sequence[Mapping], pictures: Mapping[int, Mapping], title: str) -> str:
    """A row for each cut, sorted by its distance to the nearest FLUSH: its FLUSHes, what was under way, what was
    lost."""
    rows = sorted((r for r in records if r["cut"] in pictures), key=_by_delta)
    tall = min(12.0, max(1.5, 700 / max(1, len(rows))))
    x = svg.Axis(*ALL_MS, 46, WIDTH - 12)
    paths: dict[str, list[str]] = {"--grey": [], "--purple": []}
    marks = []
    for i, record in enumerate(rows):
        of, y = pictures[record["cut"]], round(10 + (i + 0.5) * tall, 1)
        since = of["in_flight"]["since_us"]
        if since is not None:
            paths["--grey"].append(f"M{x(since / 1e3)} {y}H{x(0)}")
        for submit, done in of["flushes"]:
            end = max(0.0, submit / 1e3) if done is None else done / 1e3
            if end > ALL_MS[0] and submit / 1e3 < ALL_MS[1]:
                paths["--purple"].append(f"M{x(submit / 1e3)} {y}H{max(x(end), x(submit / 1e3) + 1)}")
        if of["lost_us"] is not None:
            words = f"cut {record['cut']}: a write that had to survive is lost"
            place = f"translate({x(of['lost_us'] / 1e3)} {y}) scale(4)"
            shape = f'<path d="{svg.MARKS["down"]}" style="fill:var(--review)" transform="{place}">'
            marks.append(f"{shape}<title>{words}</title></path>")
    height = round(10 + len(rows) * tall)
    out = [f'<path class="grid" d="M{x(0)} 6V{height}"/><path class="axis" d="M46 6V{height}H{WIDTH - 12}"/>']
    wide = max(1.0, round(0.7 * tall, 1))
    for colour, parts in paths.items():
        kind = "wide" if colour == "--grey" else ""
        style = f"stroke:var({colour});stroke-width:{wide}" + (";opacity:.5" if kind else "")
        out.append(f'<path class="line" style="{style}" d="{"".join(parts)}"/>')
    for ms in (-20, -15, -10, -5, 0):
        out.append(f'<text x="{x(ms)}" y="{height + 16}" class="mid">{number(ms, 0)}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{height + 32}" class="mid soft">ms from the cut, a row for each cut</text>')
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height + 38}" role="img" aria-label="{escape(title)}">'
        + "".join(out + marks)
        + "</svg>"
    )


def _by_delta(record: Mapping) -> tuple[bool, float]:
    delta = record.get("delta_flush_us")
    return delta is None, delta or 0.0


def ages(window: Mapping, title: str) -> str:
    """The chance that an acknowledged write was lost, over its age at the cut; grey: how many writes that is of."""
    kept, lost = np.array(window["kept"]), np.array(window["lost"])
    total = kept + lost
    last = min(len(total), int(np.flatnonzero(total).max()) + 2)
    plot = svg.Plot(title, WIDTH, 260, (0.0, float(last)), (0.0, 100.0))
    edges = picture.AGES_MS
    for i in np.flatnonzero(total):
        plot.cell(i + 0.1, i + 0.9, 0.0, 100 * float(total[i] / total.max()), "fill:var(--grid)")
    for i in np.flatnonzero(total):
        share = 100 * float(lost[i] / total[i])
        words = f"{edges[i]} ms and older: {lost[i]} of {total[i]} lost"
        plot.mark(i + 0.5, share, {"shape": "circle", "colour": "--blue"}, words, 3)
    every = max(1, last // 12)
    plot.axes("age at the cut, ms", "lost, %", [(i, str(edges[i])) for i in range(0, last, every) if i < len(edges)])
    return plot.text()


def detection(bins: Sequence[Mapping], title: str) -> str:
    """Cuts, and failing cuts, by their distance to the nearest FLUSH."""
    low, high = bins[0]["from_ms"], bins[-1]["from_ms"] + BIN_MS
    most = max(each["cuts"] for each in bins)
    plot = svg.Plot(title, WIDTH, 240, (low, high), (0.0, 1.1 * max(1, most)))
    for each in bins:
        at = each["from_ms"]
        plot.cell(at, at + 0.9 * BIN_MS, 0.0, each["cuts"], "fill:var(--grey)")
        if each["failing"]:
            plot.cell(at, at + 0.9 * BIN_MS, 0.0, each["failing"], "fill:var(--review)")
    plot.axes("ms from the submission of the nearest FLUSH to the cut", "cuts")
    return plot.text()


def falls(found: Sequence[tuple[str, Evidence]], title: str) -> str:
    """All falls on one axis: the band of all of them, and a line for some; `found`: (shape, evidence with volts)."""
    grid = np.linspace(*FALL_MS, FALL_POINTS)
    shapes = sorted({shape for shape, _ in found})
    looks = {shape: svg.look(i) for i, shape in enumerate(shapes)}
    curves = [
        (shape, np.interp(grid, seen.since_edge_us / 1e3, seen.volts, np.nan, np.nan))
        for shape, seen in found
        if seen.since_edge_us is not None and seen.volts is not None
    ]
    all_of = np.array([curve for _, curve in curves])
    most = float(np.nanmax(all_of))
    plot = svg.Plot(title, WIDTH, 280, FALL_MS, (0.0, 1.08 * max(0.1, most)))
    for shape in shapes:
        own = np.array([curve for name, curve in curves if name == shape])
        some = np.isfinite(own).all(axis=0)
        low, high = own[:, some].min(axis=0), own[:, some].max(axis=0)
        outline = [*zip(grid[some], high, strict=True), *reversed(list(zip(grid[some], low, strict=True)))]
        around = _path([(plot.x(float(a)), plot.y(float(b))) for a, b in outline])
        plot.out.append(f'<path style="fill:var({looks[shape]["colour"]});opacity:.18" d="{around}z"/>')
    every = max(1, -(-len(curves) // MOST_FALLS))
    for shape, curve in curves[::every]:
        points = [(float(a), float(b)) for a, b in zip(grid, curve, strict=True)]
        plot.line(points, f"stroke:var({looks[shape]['colour']});stroke-width:1;opacity:.6")
    plot.axes("ms from the cut", "V")
    return plot.text() + svg.legend(shapes, [looks[shape] for shape in shapes])


def over_cuts(at: np.ndarray, value: np.ndarray, y_title: str, title: str, line: Mapping | None = None) -> str:
    """A value of each cut over the cuts, with the straight line through them."""
    low, high = svg.extent(value.tolist(), False)
    if float(value.min()) > 0.5 * high:  # a trend of some percent is to be seen
        low = float(value.min()) - 0.1 * (high - float(value.min()))
    plot = svg.Plot(title, 470, 240, (0.0, float(at.max()) + 1), (low, high))
    plot.dots([(float(a), float(b)) for a, b in zip(at, value, strict=True)], "stroke:var(--blue);stroke-width:4")
    if line:
        ends = (float(at.min()), float(at.max()))
        middle = float(at.mean())
        plot.line(
            [(a, line["mean"] + line["per_100"] / 100 * (a - middle)) for a in ends], "stroke:var(--review)", "dashed"
        )
    plot.axes("cut", y_title)
    return plot.text()


def histogram(value: np.ndarray, x_title: str, title: str) -> str:
    """How often a value was seen, in twenty bins."""
    counts, edges = np.histogram(value, bins=min(20, max(4, len(value) // 3)))
    plot = svg.Plot(title, 470, 240, (float(edges[0]), float(edges[-1])), (0.0, 1.1 * max(1, int(counts.max()))))
    for n, a, b in zip(counts, edges[:-1], edges[1:], strict=True):
        if n:
            plot.cell(float(a), float(a + 0.92 * (b - a)), 0.0, float(n), "fill:var(--blue)")
    plot.axes(x_title, "cuts")
    return plot.text()
