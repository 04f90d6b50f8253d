"""Runs of one plan on one drive, each with other seeds: mean and standard deviation (n - 1) of each figure."""

import json
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from ssdrig.plan import shows
from ssdrig.reading import trust
from ssdrig.report import phases
from ssdrig.report.rows import COLUMNS, Line
from ssdrig.views import trust_strip
from ssdrig.views.context import figure
from ssdrig.views.terms import number, with_error


class Spread(NamedTuple):
    """Mean and deviation of n values, at least two. `not_claimed`: the bad item that one depends on, or None."""

    mean: float
    s: float
    n: int
    not_claimed: str | None = None

    @property
    def text(self) -> str:
        words = with_error(self.mean, self.s, 3) if self.s else f"{figure(self.mean)} ± {number(0, 0)}"
        return f"{words} {trust_strip.MARK}" if self.not_claimed else words


def mean_and_s(values: Sequence[float]) -> Spread:
    """The mean and the sample standard deviation (n - 1) of at least two values."""
    return Spread(statistics.fmean(values), statistics.stdev(values), len(values))


def alike(header: Mapping) -> str:
    """What two runs have in common that are repeats of each other: plan, parameters, drive; a SIMULATED drive has a new
    serial each time."""
    plan, method, drive = header.get("plan") or {}, dict(header["method"]), header["drive"]
    method.pop("seed", None)
    own = drive.get("preset") or drive.get("serial")
    size = [drive.get(key) for key in ("model", "capacity_bytes", "raw_nand_bytes", "time_dilation", "firmware")]
    identity = [plan.get("name"), plan.get("text"), plan.get("variant"), plan.get("params"), method, own, size]
    return json.dumps(identity, sort_keys=True, default=str)


def groups(headers: Sequence[Mapping]) -> list[list[int]]:
    """The places of runs that are repeats of each other, at least two each."""
    places_of: dict[str, list[int]] = {}
    for place, header in enumerate(headers):
        places_of.setdefault(alike(header), []).append(place)
    return [places for places in places_of.values() if len(places) > 1]


def spreads(lines_of: Sequence[Sequence[Line]]) -> dict[str, dict[str, Spread]]:
    """{row: {word of COLUMNS: Spread}} of the rows of several runs; only what at least two of them know."""
    seen: dict[str, dict[str, list[float]]] = {}
    doubts: dict[tuple[str, str], str] = {}
    step = ""
    for lines in lines_of:
        for line in lines:
            step = step if line.name.startswith(" ") else line.name
            name = f"{step}, {line.name.strip()}" if line.name.startswith(" ") else line.name
            values = seen.setdefault(name, {})
            for word, _ in COLUMNS:
                key = shows.VALUES[word][0]
                value = line.figures.get(key)
                if isinstance(value, int | float):
                    values.setdefault(word, []).append(value)
                    if doubt := trust.why_not(line.figures.get("trust"), trust.rests_on(key)):
                        doubts.setdefault((name, word), doubt)
    rows = {
        name: {
            word: mean_and_s(known)._replace(not_claimed=doubts.get((name, word)))
            for word, known in values.items()
            if len(known) > 1
        }
        for name, values in seen.items()
    }
    return {name: row for name, row in rows.items() if row}


def as_json(rows: Mapping[str, Mapping[str, Spread]]) -> dict:
    """{row: {figure's key: {"mean", "s", "n", "not_claimed"}}}."""
    return {
        name: {shows.VALUES[word][0]: spread._asdict() for word, spread in row.items()} for name, row in rows.items()
    }


def text(rows_of: Mapping[str, Mapping[str, Spread]], runs: int, width: int) -> list[str]:
    """The table for a terminal `width` columns wide."""
    if not rows_of:
        return [f"mean ± s of {runs} runs: no figure is known of two of them"]
    rows = [[f"mean ± s, n = {runs}", *(heading for _, heading in COLUMNS)], *_cells(rows_of, runs)]
    lines = phases.text(rows, "  ", width)
    return lines + trust_strip.key_of_marks(lines, width)


def section(headers: Sequence[Mapping], lines_of: Sequence[Sequence[Line]], names: Sequence[str]) -> str:
    """For a page: a table for each group of repeats; nothing without repeats."""
    out = []
    for places in groups(headers):
        rows_of = spreads([lines_of[i] for i in places])
        if not rows_of:
            continue
        head = "".join(f'<th scope="col">{escape(heading)}</th>' for _, heading in COLUMNS)
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
            for name, *cells in _cells(rows_of, len(places))
        )
        of = ", ".join(names[i] for i in places)
        what = f"{len(places)} runs of the same plan on the same drive, each with other seeds: {of}"
        what += f". {trust_strip.MARKED}" if trust_strip.MARK in body else ""
        out.append(f'<p class="soft">{escape(what)}</p><div class="scroll"><table class="repeats">')
        out.append(f'<thead><tr><th scope="col">Step</th>{head}</tr></thead><tbody>{body}</tbody></table></div>')
    if not out:
        return ""
    title = '<section aria-labelledby="repeats-h"><h2 id="repeats-h">Repeats: mean ± standard deviation</h2>'
    return title + "".join(out) + "</section>"


def _cells(rows_of: Mapping[str, Mapping[str, Spread]], runs: int) -> list[list[str]]:
    rows = []
    for name, row in rows_of.items():
        cells = [name]
        for word, _ in COLUMNS:
            spread = row.get(word)
            few = f" (n = {spread.n})" if spread and spread.n != runs else ""
            cells.append(spread.text + few if spread else "–")
        rows.append(cells)
    return rows
