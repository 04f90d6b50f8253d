"""Reads the page of a plan back: tables as cells, plots as numbers by the labels of their own axes."""

import html
import math
import re
from typing import NamedTuple

DIGITS = 0.0055  # three digits
UNITS = {"k": 1e3, "M": 1e6}
LOWERED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def text(piece: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", piece))


def value(words: str) -> float | None:
    """A number as the page prints it: "1 234.5", "−2", "20k", "5·10⁻⁴"; None for "–"."""
    words = words.replace("\u202f", "").replace("−", "-").strip()
    if words == "–":
        return None
    factor, _, power = words.rpartition("10") if re.search("10[⁻⁰-⁹]", words) else ("", "", "")
    if power:
        return float(factor.strip("·") or 1) * 10 ** int(power.translate(LOWERED))
    return float(words.rstrip("kM")) * UNITS.get(words[-1], 1.0)


class Mark(NamedTuple):
    words: str
    x_px: float
    y_px: float


class Plot:
    """An <svg> of svg.py. `marks`: with their words; `lines`, `dots`: [(x px, y px)] of each path."""

    def __init__(self, svg: str):
        self.svg = svg
        self.y_ticks = [
            (value(words), float(y) - 4) for y, words in re.findall(r'y="([\d.]+)" class="end">([^<]+)<', svg)
        ]
        self.x_labels = {
            words: float(x) for x, words in re.findall(r'<text x="([\d.]+)" [^>]*"mid(?: small)?"[^>]*>([^<]+)<', svg)
        }
        (self.x_title,) = re.findall(r'class="mid soft">([^<]*)</text><text class="mid soft" transform', svg)
        (self.y_title,) = re.findall(r'rotate\(-90\)">([^<]*)<', svg)
        self.x_title, self.y_title = html.unescape(self.x_title), html.unescape(self.y_title)
        ticks = re.findall(r'transform="translate\(([\d.]+) ([\d.]+)\) scale[^>]*><title>([^<]*)<', svg)
        self.marks = [Mark(html.unescape(words), float(x), float(y)) for x, y, words in ticks]
        self.lines = [_points(d) for d in re.findall(r'<path class="line[^"]*"[^>]* d="([^"]*)"', svg)]
        self.dots = [_points(d) for d in re.findall(r'<path class="dots[^"]*"[^>]* d="([^"]*)"', svg)]

    def y(self, y_px: float, log: bool = False) -> float:
        """The value at a height, by the labels of the axis."""
        return _inverse(self.y_ticks, y_px, log)

    def x(self, x_px: float, log: bool = False) -> float:
        return _inverse([(value(words), px) for words, px in self.x_labels.items()], x_px, log)

    def y_of_px(self, log: bool) -> float:
        """How much a tenth of a pixel is, at least: of a log axis as a share."""
        (a, low), (b, high) = self.y_ticks[0], self.y_ticks[-1]
        return abs(math.log(b / a) if log else b - a) / abs(high - low) / 10


def _points(d: str) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for word, first, second in re.findall(r"([MLHV])([\d.]+)(?: ([\d.]+))?", d):
        x = out[-1][0] if word == "V" else float(first)
        y = out[-1][1] if word == "H" else float(first if word == "V" else second)
        out.append((x, y))
    return out


def _inverse(ticks: list, px: float, log: bool) -> float:
    (a, a_px), (b, b_px) = ticks[0], ticks[-1]
    assert a_px != b_px, "an axis has two labels at least"
    part = (px - a_px) / (b_px - a_px)
    return a * (b / a) ** part if log else a + part * (b - a)


class Panel(NamedTuple):
    """A <figure>. `tables`: rows of cells, the head among them; `legend`: its entries."""

    title: str
    soft: str
    plots: list[Plot]
    tables: list[list[list[str]]]
    legend: list[str]


def panels(page: str) -> list[Panel]:
    panels_ = []
    for figure in re.findall(r"<figure.*?</figure>", page, re.DOTALL):
        title, soft = re.search(r"<figcaption><b>(.*?)</b>(.*?)</figcaption>", figure).groups()
        tables = [_cells(table) for table in re.findall(r"<table.*?</table>", figure)]
        plots = [Plot(svg) for svg in re.findall(r"<svg.*?</svg>", figure)]
        legend = [text(entry)[2:] for entry in re.findall(r"<li>(.*?)</li>", figure)]
        panels_.append(Panel(text(title), text(soft), plots, tables, legend))
    return panels_


def _cells(table: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def bars(page: str) -> dict[str, dict[str, str]]:
    """{heading of the card: {bar: figure}}, without the figures' errors."""
    out: dict[str, dict[str, str]] = {}
    for card in re.findall(r'<div class="card"><h3>.*?(?=<div class="card">|<section|</section|$)', page, re.DOTALL):
        heading = text(re.search("<h3>(.*?)</h3>", card)[1])
        bars_ = re.findall(r'class="head"><span>(.*?)</span><span class="value">(.*?)</span>', card)
        without = [(name, re.sub('<small class="error">.*?</small>', "", words)) for name, words in bars_]
        out.setdefault(heading, {}).update({text(name): text(words) for name, words in without})
        if big := re.search(r'<p class="big">(.*?) <span', card):
            out[heading] = {"": text(big[1])}
    return out


def marks_lie_right(plot: Plot, log: bool = False) -> None:
    """Every mark is drawn at the height of the number in its words, the last one."""
    for mark in plot.marks:
        value_ = value(re.search(r" ([\d\u202f.]+)\D*$", mark.words)[1])
        at = plot.y(mark.y_px, log)
        room = plot.y_of_px(log)
        off = abs(math.log(at / value_)) if log else abs(at - value_)
        assert off <= room + DIGITS * (1 if log else value_), (plot.svg[:120], mark, at)
