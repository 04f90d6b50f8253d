"""Plots as SVG, made here so that they are there without JavaScript, on paper, and in the colours of the page. Pure."""

import base64
import itertools
import math
import zlib
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from ssdrig.base.words import as_cell

Point = tuple[float, float]
# paths of a marker of radius 1 around 0, 0, by the names of marks.SHAPES
MARKS = {
    "circle": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0 -2 0",
    "square": "M-.9 -.9h1.8v1.8h-1.8z",
    "up": "M0 -1.2L1.2 .9H-1.2z",
    "diamond": "M0 -1.3L1.3 0L0 1.3L-1.3 0z",
    "down": "M0 1.2L1.2 -.9H-1.2z",
    "plus": "M-1.3 -.4h.9v-.9h.8v.9h.9v.8h-.9v.9h-.8v-.9h-.9z",
    "bar": "M-.5 -1.4h1v2.8h-1z",
    "dash": "M-1.4 -.5h2.8v1h-2.8z",
    "left": "M-1.2 0L.9 -1.2V1.2z",
    "right": "M1.2 0L-.9 -1.2V1.2z",
}
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEAST_TICKS = 3
OUTLINE = "fill:none;stroke-width:1.4;vector-effect:non-scaling-stroke;pointer-events:all"  # of a hollow mark
LEAST_WHISKER_PX = 3  # a shorter error is hidden by its mark
MOST_DOTS = 6000  # beyond this a series of seconds is drawn as its lowest and highest in each step


def ticks(low: float, high: float, log: bool, most: int = 6) -> list[float]:
    """Round numbers within low to high: 1, 2 or 5 times a power of ten; on a log axis powers of ten, with 2 and 5 times
    them, then all digits, where too few lie on it, and those of a linear one where it is shorter than that."""
    places: list[float] = []
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        decades = range(first, last + 1)
        places = [10.0**d for d in decades[:: max(1, -(-len(decades) // most))]]
        for factors in ((1, 2, 5), range(1, 10)) if len(decades) < LEAST_TICKS else ():
            if len(places) < LEAST_TICKS:
                places = _within([f * 10.0**d for d in range(first - 1, last + 1) for f in factors], low, high)
    if not log or len(places) < LEAST_TICKS:
        step = 10 ** math.floor(math.log10((high - low) / most))
        step = next(f * step for f in (1, 2, 5, 10) if (high - low) / (f * step) <= most)
        places = [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return _within(places, low, high)


def _within(places: Sequence[float], low: float, high: float) -> list[float]:
    return [value for value in places if low * (1 - 1e-9) <= value <= high * (1 + 1e-9) or value == 0 >= low]


def short(value: float) -> str:
    """A tick's label: 20k, 1.5M, 0.2."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:g}{unit}".replace("-", "−")
    if value and abs(value) < 1e-3:
        digits, _, power = f"{value:.0e}".partition("e")
        return f"{'' if digits == '1' else digits + '·'}10{str(int(power)).translate(RAISED)}"
    return f"{value:g}".replace("-", "−")


class Axis:
    """low to high on from_px to to_px. A log axis has its low above 0; lower values are drawn at its end."""

    def __init__(self, low: float, high: float, from_px: float, to_px: float, log: bool = False):
        self.low, self.high, self.log = low, high if high > low else low + 1, log
        self.from_px, self.to_px = from_px, to_px

    def __call__(self, value: float) -> float:
        return self.all([value])[0]

    def all(self, values: Sequence[float]) -> list[float]:
        """The places of many values, none of them not-a-number."""
        low, high, at = self.low, self.high, np.asarray(values, float)
        if self.log:
            low, high, at = math.log(low), math.log(high), np.log(np.maximum(at, low))
        part = np.clip((at - low) / (high - low), 0.0, 1.0)
        return (self.from_px + part * (self.to_px - self.from_px)).round(1).tolist()

    def ticks(self, most: int = 6) -> list[float]:
        return ticks(self.low, self.high, self.log, most)


def extent(values: Sequence[float] | np.ndarray, log: bool, top: float | None = None) -> tuple[float, float]:
    """Low and high of an axis for these values: a linear one begins at 0, a log one at a round number below them;
    `top` is where the plan ends it."""
    good = np.asarray(values, float)
    good = good[np.isfinite(good) & ((good > 0) | (not log))]
    if not len(good):
        return (1.0, 10.0) if log else (0.0, 1.0)
    least, highest = float(good.min()), float(good.max())
    if log:
        low = 10 ** math.floor(math.log10(least))
        low = max(f * low for f in (1, 2, 5) if f * low <= least * 1.000001)
        return low, top if top and top > low else 1.15 * highest
    return min(0.0, least), top or 1.08 * highest or 1.0


class Plot:
    """One plot: axes, then the curves, cells and dots. `text()` is the whole <svg>."""

    LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 40

    def __init__(self, label: str, width: int, height: int, x: tuple[float, float], y: tuple[float, float], **logs):
        self.label, self.width, self.height = label, width, height
        self.x = Axis(*x, self.LEFT, width - self.RIGHT, logs.get("x_log", False))
        self.y = Axis(*y, height - self.BOTTOM, self.TOP, logs.get("y_log", False))
        self.back: list[str] = []
        self.out: list[str] = []
        self.titles = ("x", "y")
        self.drawn: list[tuple[str, Sequence[Point]]] = []  # lines, dots and marks: what each is called, and its points

    def axes(
        self, x_title: str, y_title: str, x_labels: Sequence[tuple[float, str]] | None = None, ticks_y: bool = True
    ) -> None:
        """Grid, numbers and titles; x_labels: (place, words) where x is not a number."""
        x, y = self.x, self.y
        self.titles = x_title or "x", y_title or "y"
        for value in y.ticks() if ticks_y else ():
            self.back.append(f'<path class="grid" d="M{x.from_px} {y(value)}H{x.to_px}"/>')
            self.back.append(f'<text x="{x.from_px - 6}" y="{y(value) + 4:.1f}" class="end">{short(value)}</text>')
        labels = x_labels if x_labels is not None else [(v, short(v)) for v in x.ticks(8)]
        at_px = sorted(x(at) for at, _ in labels)
        room_px = min((b - a for a, b in itertools.pairwise(at_px)), default=x.to_px - x.from_px)
        for at, words in labels:
            self.back.append(f'<path class="tick" d="M{x(at)} {y.from_px}v4"/>')
            fit = _fitted(words, room_px) if x_labels else 'class="mid"'
            self.back.append(f'<text x="{x(at)}" y="{y.from_px + 17}" {fit}>{escape(words)}</text>')
        self.back.append(f'<path class="axis" d="M{x.from_px} {y.to_px}V{y.from_px}H{x.to_px}"/>')
        middle = (x.from_px + x.to_px) / 2
        self.back.append(f'<text x="{middle}" y="{self.height - 6}" class="mid soft">{escape(x_title)}</text>')
        at = (y.from_px + y.to_px) / 2
        self.back.append(f'<text class="mid soft" transform="translate(12 {at}) rotate(-90)">{escape(y_title)}</text>')

    def band(self, from_: float, to: float, kind: str = "zone") -> None:
        """A stretch of x, shaded."""
        a, b = self.x(from_), self.x(to)
        self.back.insert(
            0, f'<rect class="{kind}" x="{a}" y="{self.y.to_px}" width="{b - a:.1f}" height="{self._tall()}"/>'
        )

    def _tall(self) -> float:
        return self.y.from_px - self.y.to_px

    def _places(self, points: Sequence[Point]) -> list[Point]:
        """Where the points lie that are numbers, in pixels."""
        known = [(x, y) for x, y in points if math.isfinite(y)]
        return list(zip(self.x.all([x for x, _ in known]), self.y.all([y for _, y in known]), strict=True))

    def line(self, points: Sequence[Point], style: str, kind: str = "", name: str = "") -> None:
        """Through the points; one that is not a number breaks it. `kind`: a further class; `name`: of the data."""
        self.drawn.append((name or f"line {len(self.drawn) + 1}", points))
        d: list[str] = []
        before: Point | None = None
        places = iter(self._places(points))
        for _, y in points:
            if not math.isfinite(y):
                before = None
                continue
            point = next(places)
            if before is None:
                d.append(f"M{point[0]} {point[1]}")
            elif point[0] == before[0]:
                d.append(f"V{point[1]}")
            else:
                d.append(f"H{point[0]}" if point[1] == before[1] else f"L{point[0]} {point[1]}")
            before = point
        self.out.append(f'<path class="{f"line {kind}".strip()}" style="{style}" d="{"".join(d)}"/>')

    def dots(self, points: Sequence[Point], style: str, kind: str = "", name: str = "", hollow_px: float = 0.0) -> None:
        """Many small points, as one path, or squares of `hollow_px`. `kind`: a further class; `name`: of the data."""
        self.drawn.append((name or f"points {len(self.drawn) + 1}", points))
        half, side = round(hollow_px / 2, 2), f"h{hollow_px:g}v{hollow_px:g}h-{hollow_px:g}z"
        d = "".join(
            f"M{round(x - half, 1)} {round(y - half, 1)}{side}" if hollow_px else f"M{x} {y}h0"
            for x, y in self._places(points)
        )
        self.out.append(f'<path class="{f"dots {kind}".strip()}" style="{style}" d="{d}"/>')

    def area(self, upper: Sequence[Point], lower: Sequence[Point], style: str, name: str, kind: str = "") -> None:
        """Filled between two lines of numbers. `name`: of the data, that of the upper line; `kind`: a class."""
        self.drawn.append((name, upper))
        d = "L".join(f"{x} {y}" for x, y in [*self._places(upper), *reversed(self._places(lower))])
        if d:
            self.out.append(f'<path class="{kind}" style="{style}" d="M{d}z"><title>{escape(name)}</title></path>')

    def mark(self, x: float, y: float, look: dict, title: str, radius: float = 4, kind: str = "") -> None:
        """One point in the shape and colour of marks.look, with words for the pointer. `kind`: a class."""
        self.drawn.append((title, [(x, y)]))
        of_kind, colour = f' class="{kind}"' if kind else "", f"var({look['colour']})"
        fill = f"fill:{colour}"
        if look.get("hollow"):
            fill = f"{OUTLINE};stroke:{colour}"
        self.out.append(
            f'<path{of_kind} d="{MARKS[look["shape"]]}" transform="translate({self.x(x)} {self.y(y)}) scale({radius})"'
            f' style="{fill}"><title>{escape(title)}</title></path>'
        )

    def whisker(self, x: float, y: float, error: float | None, look: dict) -> None:
        """The error of a point as a line from y - error to y + error; none where it is not known."""
        if error is None or not math.isfinite(error) or error <= 0:
            return
        at, low, high = self.x(x), self.y(y - error), self.y(y + error)
        if low - high >= LEAST_WHISKER_PX:
            self.out.append(f'<path class="whisker" style="stroke:var({look["colour"]})" d="M{at} {low}V{high}"/>')

    def cell(self, x0: float, x1: float, y0: float, y1: float, style: str) -> None:
        """A filled rectangle from x0, y0 to x1, y1."""
        left, right, low, high = self.x(x0), self.x(x1), self.y(y0), self.y(y1)
        self.out.append(f'<path style="{style}" d="M{left} {high}H{right}V{low}H{left}z"/>')

    def box(self, x_px: float, y_px: float, width: float, height: float, style: str, title: str, run: int) -> None:
        """A bar in pixels, with words for the pointer."""
        self.out.append(
            f'<rect class="of-run r{run}" x="{x_px:.1f}" y="{y_px:.1f}" width="{width:.1f}" height="{height}"'
            f' style="{style}"><title>{escape(title)}</title></rect>'
        )

    def image(self, x0: float, x1: float, y0: float, y1: float, png: bytes) -> None:
        """A picture stretched over x0 to x1, y0 to y1."""
        left, right, low, high = self.x(x0), self.x(x1), self.y(y0), self.y(y1)
        self.out.append(
            f'<image x="{left}" y="{high}" width="{right - left:.1f}" height="{low - high:.1f}"'
            f' preserveAspectRatio="none" style="image-rendering:pixelated"'
            f' href="data:image/png;base64,{base64.b64encode(png).decode()}"/>'
        )

    def rule(self, x: float, words: str) -> None:
        """A dashed line across, with words."""
        at = self.x(x)
        self.out.append(f'<path class="axis dashed" d="M{at} {self.y.from_px}V{self.y.to_px}"/>')
        self.words(at + 4, self.y.to_px + 10, words, "soft small halo")

    def words(self, x_px: float, y_px: float, text: str, kind: str = "") -> None:
        self.out.append(f'<text x="{x_px}" y="{y_px}" class="{kind}">{escape(text)}</text>')

    def csv(self) -> str:
        """The lines and points of the plot, as CSV; "" without any."""
        head = ",".join(_quoted(title) for title in ("series", *self.titles))
        rows = [
            f"{_quoted(name)},{x:.9g},{y:.9g}" for name, points in self.drawn for x, y in points if math.isfinite(y)
        ]
        return "\n".join([head, *rows]) + "\n" if rows else ""

    def text(self, with_data: bool = True) -> str:
        """The whole <svg>. `with_data`: with its CSV, deflated, for plots.js."""
        data = self.csv() if with_data else ""
        attribute = f' data-csv="{base64.b64encode(zlib.compress(data.encode(), 9)).decode()}"' if data else ""
        head = (
            f'<svg class="plot" viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{escape(self.label)}"'
        )
        return f"{head}{attribute}>" + "".join(self.back + self.out) + "</svg>"


def _quoted(text: str) -> str:
    """A cell of CSV."""
    return '"' + as_cell(text).replace('"', '""') + '"'


def legend(names: Sequence[str], looks: Sequence[dict]) -> str:
    """The series of a plot, nothing for a single one."""
    if len(names) < 2:
        return ""
    items = "".join(
        f'<li><span style="color:var({look["colour"]})" aria-hidden="true">{look["glyph"]}</span> {escape(name)}</li>'
        for name, look in zip(names, looks, strict=True)
    )
    return f'<ul class="legend">{items}</ul>'


def counted(last: int, first: int = 1) -> list[tuple[float, str]]:
    """Labels of an axis of rounds, at most about a dozen."""
    return [(n, str(n)) for n in range(first, last + 1, -(-(last - first + 1) // 12))]


def most_dots(runs: int) -> int:
    """How many points each run has in a plot of this number of runs."""
    return MOST_DOTS // max(1, runs - 1)


def thinned(points: Sequence[Point], most: int = MOST_DOTS) -> list[Point]:
    """At most about `most` points: of each stretch its lowest and its highest."""
    if len(points) <= most:
        return list(points)
    x, y = np.array(points, float).T
    return thinned_series(x, y, most)


def thinned_series(x: np.ndarray, y: np.ndarray, most: int = MOST_DOTS) -> list[Point]:
    """thinned() of the points (x, y), whose x rise."""
    if len(x) <= most:
        return list(zip(x.tolist(), y.tolist(), strict=True))
    size = -(-2 * len(x) // most)
    begins = np.arange(0, len(x), size)
    padded = np.pad(y.astype(float), (0, len(begins) * size - len(y)), constant_values=np.nan).reshape(-1, size)
    known = np.isfinite(padded)
    lowest = begins + np.where(known, padded, np.inf).argmin(axis=1)
    highest = begins + np.where(known, padded, -np.inf).argmax(axis=1)
    some = known.any(axis=1)  # of a stretch without a number its first point, which breaks the line
    at = np.unique(np.concatenate([lowest[some], highest[some], begins[~some]]))
    return list(zip(x[at].tolist(), y[at].tolist(), strict=True))


SHAPES = {  # how panels.js draws a run's marks, and the glyph for them in text
    "circle": "●",
    "square": "■",
    "up": "▲",
    "diamond": "◆",
    "down": "▼",
    "plus": "✚",
    "bar": "▮",
    "dash": "▬",
    "left": "◀",
    "right": "▶",
}
HOLLOW = dict(zip(SHAPES.values(), "○□△◇▽✛▯▭◁▷", strict=True))  # the glyphs without their fill
DASHES = ("", "7 3", "2 3", "9 3 2 3")  # of lines, by the variant of a series
CHARACTER_PX, SMALL_PX = 7.0, 6.0  # width of a character of a plot's text, and of class small
COLOURS = ["blue", "green", "purple", "orange", "sky", "ink-soft", "yellow"]  # Okabe-Ito, darkened; report.css has them


def _fitted(words: str, room_px: float) -> str:
    """The attributes of a label that does not reach into its neighbours: small, and narrowed where that is too wide."""
    if len(words) * CHARACTER_PX <= room_px:
        return 'class="mid"'
    if len(words) * SMALL_PX <= room_px:
        return 'class="mid small"'
    return f'class="mid small" textLength="{room_px - SMALL_PX:.0f}" lengthAdjust="spacingAndGlyphs"'


def look(index: int) -> dict:
    """Shape, glyph and colour (a custom property of report.css) of run `index`. The reviewed run is vermillion."""
    shape = list(SHAPES)[index % len(SHAPES)]
    return {"shape": shape, "glyph": SHAPES[shape], "colour": f"--{COLOURS[index % len(COLOURS)]}"}


def look_of_variant(number: int, variant: int) -> dict:
    """As look(), of a series that is one of several variants: they share its colour. From variant to variant marks are
    filled or hollow, and lines have other dashes."""
    shape = list(SHAPES)[(number + len(SHAPES) // 2 * (variant // 2)) % len(SHAPES)]
    hollow = bool(variant % 2)
    glyph = HOLLOW[SHAPES[shape]] if hollow else SHAPES[shape]
    return look(number) | {"shape": shape, "glyph": glyph, "hollow": hollow, "dash": DASHES[variant % len(DASHES)]}


def stroke(look: Mapping) -> str:
    """The style of a series' line."""
    dash = f";stroke-dasharray:{look['dash']}" if look.get("dash") else ""
    return f"stroke:var({look['colour']}){dash}"
