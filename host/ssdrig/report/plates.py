"""The plots of the report that Python draws: latency as 1 - CDF and as a heat map over time, power as a histogram,
watts over IOPS, two figures of the runs against each other, and where the energy went. And the plots over time, for
readers without JavaScript and for `--embed`. All are SVG, so that they are on paper and in an article, too."""

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from ssdrig.base.words import as_cell, digits
from ssdrig.load.fiotext import BINS, plat_upper_ns
from ssdrig.reading import below_second, latency
from ssdrig.views import trust_strip
from ssdrig.views.episodes import html as episodes_html
from ssdrig.views.svg import Plot, extent, thinned_series
from ssdrig.views.terms import number

WIDTH, HEIGHT, WIDE = 660, 330, 1320
LEAST_SHARE = 1e-6  # the bottom of the axis of 1 - CDF
CURVE_POINTS = 120
DOTS = 900  # of all runs together in the scatter plot
PER_OCTAVE = 8
HEAT_RGB = (24, 133, 204)
HEAT_LEAST = 1e-5  # share of a column's I/O that is just seen
HIST_BINS = 120
LETTER = 6.0  # px of a plot, of small print
LATENCIES = {"clat": "completion time (clat)", "lat": "latency (lat)"}


class Plate(NamedTuple):
    """A plot: `name` of the panel, `view` its window (None: all), its title, the note below it, the
    <svg>, and its data as CSV ("": `report --csv` has them)."""

    name: str
    view: int | None
    title: str
    about: str
    svg: str
    csv: str = ""
    run: int | None = None


def figure(plate: Plate, wide: bool = False) -> str:
    view = "" if plate.view is None else f' data-view="{plate.view}"'
    run = "" if plate.run is None else f' data-run="{plate.run}"'
    about = f'<span class="soft">{escape(plate.about)}</span>' if plate.about else ""
    kind = ' class="wide"' if wide else ""
    data = f' data-csv="{base64.b64encode(zlib.compress(plate.csv.encode(), 9)).decode()}"' if plate.csv else ""
    return (
        f'<figure{kind} data-plate="{plate.name}"{view}{run}{data}><figcaption><b>{escape(plate.title)}</b>{about}'
        f"</figcaption>{plate.svg}</figure>"
    )


def _quoted(name: str) -> str:
    """A cell of CSV."""
    return '"' + as_cell(name).replace('"', '""') + '"'


def style(look: dict, top: bool) -> str:
    """A run's line; panels.js gives the reviewed one its colour."""
    colour = "--review" if top else look["colour"]
    return f"stroke:var({colour});stroke-width:{2.2 if top else 1.4}"


def line(plot: Plot, points: Sequence[tuple[float, float]], run: int, look: dict, top: bool) -> None:
    plot.line(points, style(look, top), f"of-run r{run}")


# ---- latency


def upper_us(k: int) -> np.ndarray:
    """Upper edge of each bin, drive time."""
    return plat_upper_ns(np.arange(BINS)) / 1000 / k


def slower(runs: Sequence, view, index: int, names: Sequence, looks: Sequence[dict], review: int) -> Plate | None:
    """How many I/O took longer than a time, of one window."""
    curves, rows = [], ["run,latency_us,share_slower"]
    for i, data in enumerate(runs):
        counts = data.lat_in_window.get(view.name, np.zeros(BINS, np.int64))
        total = counts.sum()
        if not total:
            continue
        there = np.flatnonzero(counts)
        edge, share = upper_us(data.k)[there], 1 - np.cumsum(counts[there]) / total
        points = [(float(edge[0]) / 1.02, 1.0), *zip(edge.tolist(), share.tolist(), strict=True)]
        rows += [f"{_quoted(names[i][2])},{digits(t, 5)},{digits(s, 4)}" for t, s in points]
        curves.append((i, _fewer(points)))
    if not curves:
        return None
    times = [t for _, points in curves for t, _ in points]
    plot = Plot(
        "How many I/O are slower", WIDTH, HEIGHT, extent(times, True), (LEAST_SHARE, 1.0), x_log=True, y_log=True
    )
    kinds = sorted({runs[i].hist_of for i, _ in curves})
    plot.axes(f"{' or '.join(LATENCIES[kind] for kind in kinds)}, µs", "share of I/O slower")
    for i, points in sorted(curves, key=lambda one: one[0] == review):
        steps = [(points[0][0], 1.0)]
        for (_, before), (t, share) in zip(points, points[1:]):
            steps += [(t, before), (t, max(share, LEAST_SHARE))]
        line(plot, steps, i, looks[i], i == review)
    title, about = f"How many I/O are slower than …: {view.label}", "1 − CDF of fio's histogram, both axes logarithmic."
    return Plate("latency-cdf", index, title, about, plot.text(False), "\n".join(rows) + "\n")


def _fewer(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most CURVE_POINTS, all of the tail kept: one for each pixel or so."""
    if len(points) <= CURVE_POINTS:
        return points
    keep = np.unique(np.linspace(0, len(points) - 1, CURVE_POINTS).round().astype(int))
    return [points[i] for i in keep]


def heat(data, run: int, name: str, span_us: tuple[float, float], last_s: float, marks: Sequence = ()) -> Plate | None:
    """Latency over time of one run: each column's share of I/O in each bin of latency."""
    if not len(data.lat_over_time):
        return None
    column, bin_, latencies = data.lat_over_time.T
    columns = latency.stretches(data)
    octaves = np.log2(span_us[1] / span_us[0])
    bins = max(1, round(octaves * PER_OCTAVE))
    at = np.log2(upper_us(data.k)[bin_] / span_us[0]) * PER_OCTAVE
    cells = np.zeros((bins, columns))
    np.add.at(cells, (np.clip(at.astype(int), 0, bins - 1), column), latencies)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.log(cells / cells.sum(axis=0) / HEAT_LEAST) / np.log(1 / HEAT_LEAST)
    level = np.where(cells > 0, 40 + 215 * np.clip(np.nan_to_num(share), 0, 1), 0).astype(np.uint8)
    plot = Plot(f"Latency over time, {name}", WIDTH, 260, (0.0, float(last_s)), span_us, y_log=True)
    plot.axes("s since the first I/O", "µs")
    plot.image(0.0, float(len(data.iops)), span_us[0], span_us[0] * 2 ** (bins / PER_OCTAVE), png(level[::-1]))
    for t, words in marks:
        plot.rule(t, words)
    return Plate("latency-heat", None, f"Latency over time: {name}", "", plot.text(False), run=run)


def span_us(runs: Sequence) -> tuple[float, float]:
    """What latencies all the runs have, to a whole octave."""
    edges = [upper_us(data.k)[data.lat_over_time[:, 1]] for data in runs if len(data.lat_over_time)]
    if not edges:
        return 1.0, 2.0
    low, high = min(of.min() for of in edges), max(of.max() for of in edges)
    return 2.0 ** np.floor(np.log2(low)), 2.0 ** np.ceil(np.log2(high) + 1e-9)


def png(level: np.ndarray) -> bytes:
    """An image of one colour whose opacity is `level` (uint8, rows from the top)."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows, columns = level.shape
    lines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(level))
    head = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    palette, opacity = bytes(HEAT_RGB) * 256, bytes(range(256))
    body = chunk(b"IHDR", head) + chunk(b"PLTE", palette) + chunk(b"tRNS", opacity)
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")


# ---- power


def histogram(runs: Sequence, name: str, view, index: int, names: Sequence, looks, review: int) -> Plate | None:
    """How often each power was seen, of all samples of a window."""
    known = [(i, data.watts_hist[name]) for i, data in enumerate(runs) if len(data.watts_hist.get(name, ()))]
    if not known:
        return None
    low = min(int(np.flatnonzero(of)[0]) for _, of in known)
    width = max(1, -(-(max(len(of) for _, of in known) - low) // HIST_BINS))
    curves, rows = [], ["run,power_W,share_of_samples"]
    for i, of in known:
        padded = np.pad(of[low:], (0, -(len(of) - low) % width)).reshape(-1, width).sum(axis=1)
        share = 100 * padded / of.sum()
        watts = (low + width * np.arange(len(share))) / 1000
        curves.append((i, watts, share))
        rows += [f"{_quoted(names[i][2])},{w:.3f},{digits(s / 100, 4)}" for w, s in zip(watts, share, strict=True) if s]
    high = max(float(share.max()) for *_, share in curves)
    last = max(float(watts[-1]) for _, watts, _ in curves) + width / 1000
    plot = Plot("Power histogram", WIDTH, HEIGHT, (low / 1000, last), (0.0, 1.08 * high))
    plot.axes("W", f"% of samples in {width} mW")
    for i, watts, share in sorted(curves, key=lambda one: one[0] == review):
        steps = [(float(watts[0]), 0.0)]
        for w, s in zip(watts, share, strict=True):
            if s or steps[-1][1]:
                steps += [(float(w), float(s)), (float(w) + width / 1000, float(s))]
        line(plot, [*steps, (steps[-1][0], 0.0)], i, looks[i], i == review)
    title, about = f"Power histogram: {view.label}", "All samples of the window."
    return Plate("power-histogram", index, title, about, plot.text(False), "\n".join(rows) + "\n")


def scatter(runs: Sequence, view, index: int, names: Sequence, looks, review: int) -> Plate | None:
    """Power over IOPS, a point for each second of a window."""
    most, clouds = max(20, DOTS // max(1, len(runs))), []
    for i, (data, f) in enumerate(zip(runs, view.figures, strict=True)):
        if f["t0_s"] is None:
            continue
        t = np.arange(f["t0_s"], f["t1_s"])
        t = t[np.isfinite(data.power_mean_W[t])] if len(data.power_mean_W) else t[:0]
        t = t[:: max(1, -(-len(t) // most))]
        if len(t):
            clouds.append((i, list(zip(data.iops[t].tolist(), data.power_mean_W[t].tolist(), strict=True))))
    if not clouds:
        return None
    x = extent([p[0] for _, points in clouds for p in points], False)
    plot = Plot("Power over IOPS", WIDTH, HEIGHT, x, extent([p[1] for _, points in clouds for p in points], False))
    plot.axes("IOPS", "W")
    for i, points in sorted(clouds, key=lambda one: one[0] == review):
        plot.dots(points, style(looks[i], i == review) + ";stroke-width:4;stroke-opacity:.55", f"of-run r{i}")
    title, about = f"Power over IOPS: {view.label}", "Each point is one second; up and left costs more energy per I/O."
    return Plate("power-iops", index, title, about, plot.text(False))


class Frontier(NamedTuple):
    """A plot with a mark for each run: keys of its two figures, their words and units, and its lines,
    which have y = level * x ** power."""

    name: str
    title: str
    about: str
    x: tuple[str, str]
    y: tuple[str, str]
    power: int
    level: float  # y of x = 1, where a line's number is 1
    unit: str  # of a line's number


FRONTIERS = (
    Frontier(
        "iops-sigma",
        "Mean against σ",
        "A mark for each run; further right is faster, further down is steadier. Dotted: the same σ in % of the mean.",
        ("iops_mean", "mean IOPS"),
        ("iops_sd", "σ of the seconds, IOPS"),
        1,
        0.01,
        "%",
    ),
    Frontier(
        "energy-speed",
        "Energy per GB against speed",
        "A mark for each run, with its uncertainty; further right is faster, further down costs less. Dotted: the same"
        " power.",
        ("bw_mean_MBps", "MB/s"),
        ("energy_J_per_GB", "J/GB"),
        -1,
        1000.0,
        "W",
    ),
)
LINES = [factor * 10.0**decade for decade in range(-4, 5) for factor in (1, 2, 5)]


def frontier(of: Frontier, view, index: int, names: Sequence, looks, review: int) -> Plate | None:
    """Two figures of a window against each other, a mark for each run; None where fewer than two runs have both."""
    (x_key, x_words), (y_key, y_words) = of.x, of.y
    known = [(i, f) for i, f in enumerate(view.figures) if (f[x_key] or 0) > 0 and (f[y_key] or 0) > 0]
    if len(known) < 2:
        return None
    errors = {i: (f.get("errors") or {}).get(y_key) or 0.0 for i, f in known}
    ends = [f[y_key] + side * errors[i] for i, f in known for side in (-1, 1)]
    x, y = extent([f[x_key] for _, f in known], True), extent([end for end in ends if end > 0], True)
    plot = Plot(of.title, WIDTH, HEIGHT, x, y, x_log=True, y_log=True)
    plot.axes(x_words, y_words)
    taken: list[tuple[float, float, float]] = []  # y in px, from and to in px
    for number_of in LINES:
        _iso(plot, of, number_of, x, y, taken)
    rows = [f"run,{x_key},{y_key},{y_key}_error"]
    shown = with_review(looks, review)
    for _, f in known:  # no name covers a mark
        taken.append((plot.y(f[y_key]) + 4, plot.x(f[x_key]) - 7, plot.x(f[x_key]) + 7))
    for i, f in sorted(known, key=lambda one: one[0] == review):
        kind, value = f"of-run r{i}", f[y_key]
        if errors[i]:
            bar = [(f[x_key], max(y[0], value - errors[i])), (f[x_key], value + errors[i])]
            plot.line(bar, style(looks[i], i == review), kind)
        name = trust_strip.marked(names[i][3], y_key, f)
        words = f"{name}: {number(f[x_key], 0)} {x_words}, {number(value, 2)} {y_words}"
        plot.mark(f[x_key], value, shown[i], words, 5, kind)
        _beside(plot, plot.x(f[x_key]), plot.y(value), name, kind, taken)
        rows.append(f"{_quoted(names[i][2])},{f[x_key]:.6g},{value:.6g},{digits(errors[i], 3)}")
    title = f"{of.title}: {view.label}"
    return Plate(of.name, index, title, of.about, plot.text(False), "\n".join(rows) + "\n")


def _iso(
    plot: Plot, of: Frontier, number_of: float, x: tuple[float, float], y: tuple[float, float], taken: list
) -> None:
    """The part of one line of a Frontier within the plot, with its number at its end."""
    scale = of.level * number_of  # y = scale * x ** power
    edges = sorted((edge / scale) ** of.power for edge in y)
    left, right = max(x[0], edges[0]), min(x[1], edges[1])
    if not left < right:
        return
    points = [(at, scale * at**of.power) for at in (left, right)]
    plot.line(points, "stroke:var(--ink-soft);stroke-width:1;stroke-dasharray:1 4")
    px, py = plot.x(points[1][0]) - 3, plot.y(points[1][1])
    py = py + 12 if py < plot.TOP + 12 else py - 3
    words = f"{number_of:g} {of.unit}"
    if _free(taken, py, px - LETTER * len(words), px):
        plot.words(round(px, 1), round(py, 1), words, "end soft small")


def _beside(plot: Plot, x_px: float, y_px: float, name: str, kind: str, taken: list) -> None:
    """The name of a mark next to it where there is room: on the side of the plot's middle, the other, above, below."""
    wide, right = LETTER * len(name), x_px < (plot.x.from_px + plot.x.to_px) / 2
    for to_right, dx, dy in ((right, 9, 4), (not right, 9, 4), (right, 0, -9), (right, 0, 17)):
        from_px = x_px + dx if to_right else x_px - dx - wide
        within = plot.x.from_px <= from_px and from_px + wide <= plot.x.to_px
        if (
            within
            and plot.y.to_px + 10 <= y_px + dy <= plot.y.from_px
            and _free(taken, y_px + dy, from_px, from_px + wide)
        ):
            at_px = from_px if to_right else from_px + wide
            plot.words(round(at_px, 1), round(y_px + dy, 1), name, f"{kind} small halo{'' if to_right else ' end'}")
            return


def _free(taken: list, y_px: float, from_px: float, to_px: float) -> bool:
    """Whether words have room; if so their place is taken."""
    if any(abs(y_px - y) < 12 and from_px < to and to_px > from_ for y, from_, to in taken):
        return False
    taken.append((y_px, from_px, to_px))
    return True


def episodes(kind: str, runs: Sequence, names: Sequence, looks, review: int) -> Plate | None:
    """The episodes of one kind laid on each other, a line for each run that knows the energy of one; of a single run,
    and of the reviewed one, without it too."""
    shown = [(i, of) for i, data in enumerate(runs) for of in data.episodes if of["of"] == kind and of["laid"]]
    shown = [(i, of) for i, of in shown if of["energy_J"] is not None or len(runs) == 1]
    ordered = sorted(shown, key=lambda one: one[0] == review)
    shown_looks = with_review(looks, review)
    title = episodes_html.TITLES[kind]
    plot = episodes_html.drawn(title, [(of, shown_looks[i], f"of-run r{i}") for i, of in ordered])
    if plot is None:
        return None
    lines = [episodes_html.line(of, names[i][2] if len(runs) > 1 else "") for i, of in shown]
    about = " ".join([episodes_html.SOFT, *lines])
    return Plate(f"episodes-{kind}", None, f"{title}: average of all", about, plot.text(False), plot.csv())


PARTS = (  # key of energy_parts.Parts, words, how it is filled
    ("floor_J", "idle floor: idle power × time", "fill-opacity:.3"),
    ("work_J", "load above it", "fill-opacity:.65"),
    ("peaks_J", "peaks, more than 20 % above the median sample", ""),
    ("after_J", "background work after the load, above the floor", "fill-opacity:0"),
)


def breakdown(runs: Sequence, view, index: int, names: Sequence, looks, review: int) -> Plate | None:
    """Where the energy of a window went, and what the drive did after the load."""
    pairs = enumerate(zip(runs, view.figures, strict=True))
    parts_of = [
        (i, parts) for i, (data, f) in pairs if (parts := below_second.parts_of(data, view.name, f)) is not None
    ]
    if not parts_of:
        return None
    top = max(parts.floor_J + parts.work_J + parts.peaks_J + max(0.0, parts.after_J or 0) for _, parts in parts_of)
    row = 34
    plot = Plot("Where the energy went", WIDE, 46 + row * len(parts_of), (0.0, 1.02 * top), (0.0, 1.0))
    plot.x.from_px = 330
    plot.y.from_px, plot.y.to_px = 8 + row * len(parts_of), 4
    plot.axes("J", "", ticks_y=False)
    rows = ["run,part,energy_J"]
    for k, (i, parts) in enumerate(parts_of):
        y, at = 8 + row * k, 0.0
        plot.words(322, y + 17, names[i][3], "end")
        for key, words, look in PARTS:
            value = getattr(parts, key)
            if value is None or value <= 0:
                continue
            left, right = plot.x(at), plot.x(at + value)
            colour = "--review" if i == review else looks[i]["colour"]
            plot.box(
                left,
                y,
                right - left,
                22,
                f"fill:var({colour});stroke:var({colour});{look}",
                f"{words}: {number(value, 2)} J",
                i,
            )
            if right - left > 60:
                plot.words((left + right) / 2, y + 16, f"{number(value, 1)} J", "mid halo")
            at += value
            rows.append(f"{_quoted(names[i][2])},{key},{value:.6g}")
    about = "From the left: " + "; ".join(words for _, words, _ in PARTS) + ". The floor needs an idle step (--idle)."
    return Plate(
        "energy-parts", index, f"Where the energy went: {view.label}", about, plot.text(False), "\n".join(rows) + "\n"
    )


SAMPLES = """<figure><figcaption><b>Power, sample by sample</b><span class="soft caption-samples"></span></figcaption>
<div class="moments" role="group" aria-label="Moments of the reviewed run"></div>
<div class="panel" data-panel="samples"></div></figure>"""


def every(runs: Sequence, shown: Sequence, names: Sequence, looks: Sequence[dict], review: int) -> list[Plate]:
    """All plates of the page, in its order."""
    out: list[Plate | None] = []
    of = runs, names, looks, review
    out += [slower(runs, view, i, *of[1:]) for i, view in enumerate(shown)]
    span, last = span_us(runs), max((len(data.iops) for data in runs), default=0)
    for i, data in enumerate(runs):
        marks = [(float(data.zoom_s), "window")] if 0 < data.zoom_s < len(data.iops) else []
        out.append(heat(data, i, names[i][3] if len(runs) > 1 else names[i][2], span, last, marks))
    for i, view in enumerate(shown):
        if view.name in ("steady", "all"):
            out.append(breakdown(runs, view, i, *of[1:]))
            out.append(histogram(runs, view.name, view, i, *of[1:]))
        out.append(scatter(runs, view, i, *of[1:]))
        out += [frontier(one, view, i, *of[1:]) for one in FRONTIERS]
    out += [episodes(kind, *of) for kind in episodes_html.TITLES]
    return [plate for plate in out if plate]


def sections(every: Sequence[Plate], measured: bool) -> str:
    """The plates as sections; `measured`: whether any run has power."""
    compared = [plate for plate in every if plate.name in {of.name for of in FRONTIERS}]
    latency = [plate for plate in every if plate.name.startswith("latency")]
    power = [plate for plate in every if plate not in (*compared, *latency)]
    out = [_section_of("compared", "Runs against each other", "", compared)] if compared else []
    if latency:
        about = (
            '<p class="soft">From the histograms that fio kept. The heat maps share one scale: the darker, the larger '
        )
        about += "the share of the I/O of that time.</p>"
        out.append(_section_of("latency", "Latency in full", about, latency))
    if measured:
        about = '<p class="soft">What the rig measured between the seconds.</p>'
        out.append(_section_of("depth", "Power below the second", about + SAMPLES + MARKERS, power))
    return "".join(out)


MARKERS = """<div class="markers"><span class="soft">Between two marks of the plots (keys a and b at the cursor):</span>
<button type="button" data-mark="a">A here</button> <button type="button" data-mark="b">B here</button>
<button type="button" data-mark="">Clear</button> <button type="button" id="copy-marks" hidden>Copy as text</button>
<div class="scroll" id="marks" aria-live="polite"></div></div>"""


def _section_of(name: str, title: str, about: str, every: Sequence[Plate]) -> str:
    figures = "".join(figure(plate, plate.name == "energy-parts") for plate in every)
    return (
        f'<section aria-labelledby="{name}-h"><h2 id="{name}-h">{title}</h2>{about}'
        f'<div class="plots deep">{figures}</div></section>'
    )


STILL_HEIGHT = 300
POINTS = 1000  # of all runs of a plot together
PANELS = {  # panel: title, series of RunData, axis, logarithmic
    "whole": ("IOPS over the load", "iops", "IOPS", True),
    "power": ("Power, mean of each second", "power_mean_W", "W", False),
    "energy": ("Energy per I/O", "energy", "µJ per I/O", True),
    "latency": ("P99 of each second", "lat_p99_us", "µs", True),
    "tail": ("P99.9 latency over time", "tail", "µs", True),
    "wa": ("Write amplification since the start of the load", "wa", "NAND / host bytes", False),
    "rails": ("Power by rail", "rails", "W", False),
}
OPTIONAL = ("tail", "rails")  # panels that a page has only where a run has their data
RAIL_OPACITIES = (0.55, 0.3, 0.15)  # from the lowest rail of a stack upwards, then again


def seconds(data, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Times (s) and values of a run (analysis.RunData)."""
    if key == "wa":
        return data.wa_t_s, data.wa_value
    if key == "tail":
        tail = latency.tail_over_time(data)
        return np.repeat(tail.edges_s, 2)[1:-1], np.repeat(tail.us, 2)
    if key == "energy":
        if len(data.power_mean_W) != len(data.iops):
            return np.zeros(0), np.zeros(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(data.iops > 0, data.power_mean_W / data.iops * 1e6, np.nan)
    else:
        values = getattr(data, key)
    return np.arange(len(values)), values


def still(name: str, runs: Sequence, looks: Sequence[dict], review: int) -> Plate | None:
    """One panel of all runs; None where none of them has a value."""
    title, key, unit, log = PANELS[name]
    if key == "rails":
        return stacked(runs, looks, review)
    series = [seconds(data, key) for data in runs]
    values = np.concatenate([of for _, of in series])
    if not (np.isfinite(values) & ((values > 0) | (not log))).any():
        return None
    last = max(float(t.max()) for t, _ in series if len(t))
    plot = Plot(title, WIDE, STILL_HEIGHT, (0.0, max(1.0, last)), extent(values, log), y_log=log)
    plot.axes("s since the first I/O", unit)
    most = max(120, POINTS // len(runs))
    for i in sorted(range(len(runs)), key=lambda i: i == review):
        line(plot, thinned_series(*series[i], most), i, looks[i], i == review)
    return Plate(name, None, title, "", plot.text(False))


def stacked(runs: Sequence, looks: Sequence[dict], review: int) -> Plate | None:
    """The power of each rail of the reviewed run on top of each other, and the sums of the others as lines; None where
    no run has several rails."""
    if all(len(data.rails) < 2 for data in runs):
        return None
    title, _, unit, _ = PANELS["rails"]
    last, most = max(len(data.iops) for data in runs), max(120, POINTS // len(runs))
    highest = [data.power_mean_W[np.isfinite(data.power_mean_W)].max(initial=0) for data in runs]
    plot = Plot(title, WIDE, STILL_HEIGHT, (0.0, max(1.0, float(last))), (0.0, 1.08 * float(max(highest)) or 1.0))
    plot.axes("s since the first I/O", unit)
    for i, data in enumerate(runs):
        if i != review:
            line(plot, thinned_series(*seconds(data, "power_mean_W"), most), i, looks[i], False)
    step = max(1, -(-last // most))
    rails, base = runs[review].rails if len(runs[review].rails) > 1 else [], np.zeros(len(runs[review].iops))
    for place, rail in enumerate(rails):
        top = base + rail.power_mean_W
        opacity = RAIL_OPACITIES[place % len(RAIL_OPACITIES)]
        for first, end in _known_pieces(top):
            at = np.unique(np.append(np.arange(first, end, step), end - 1))
            upper, lower = (list(zip(at.tolist(), edge[at].tolist(), strict=True)) for edge in (top, base))
            plot.area(upper, lower, f"fill:var(--review);fill-opacity:{opacity}", rail.name, f"of-run r{review}")
        if np.isfinite(top).any():
            middle = int(np.flatnonzero(np.isfinite(top))[-1])
            plot.words(
                plot.x(middle) - 4, plot.y(float(top[middle] + base[middle]) / 2) + 4, rail.name, "end small halo"
            )
        base = top
    return Plate("rails", None, title, "", plot.text(False))


def _known_pieces(values: np.ndarray) -> list[tuple[int, int]]:
    """First index and end of each stretch of numbers."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.isfinite(values), [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def with_review(of: Sequence[dict], review: int) -> list[dict]:
    """The looks of runs, the reviewed one in its colour."""
    return [look | {"colour": "--review"} if i == review else look for i, look in enumerate(of)]
