"""The views of a plan, each one [[show]] of it as a piece of the page. A view gets the runs of the page and gives HTML;
several runs stand beside each other on the same scales."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base.errors import SsdrigError
from ssdrig.base.uncertain import UNKNOWN, Uncertain
from ssdrig.base.words import parse_bytes, parse_seconds
from ssdrig.plan import shows
from ssdrig.plan.rules import steady
from ssdrig.plan.step import every, told
from ssdrig.reading import errors, table, trust
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.views import svg
from ssdrig.views.svg import look
from ssdrig.views.terms import BY_KEY, number

TIME = "time"  # the axis of a view by the second, unless the plan says another
ROUNDS = 5  # of the steady state's window
AXES = {
    "read": ("read share", " %"),
    "block": ("block size", ""),
    "qd": ("queue depth", ""),
    "threads": ("threads", ""),
    "range": ("range", ""),
    "every": ("pause before it", ""),
}
WORDS = {
    "burst_iops": "IOPS within bursts",
    "pause_W": "Mean power of the pauses",
    "floor_W": "Power of the drive once it is quiet",
    "host_cpu": "CPU of the host that fio takes, 100 % for each core",
    "lat_mean_most": "Highest mean latency of a minute",
    "gap": "Rest since the load before",
}


class Context(NamedTuple):
    """What a view is given: the runs, what each is called, the [[show]] of the plan, and which run is reviewed."""

    tables: Sequence[Table]
    names: Sequence[str]
    show: dict
    review: int = 0

    @property
    def paths(self) -> list[str]:
        return shows.listed(self.show.get("of"))

    def words(self, *default: str) -> list[str]:
        return shows.listed(self.show.get("value")) or list(default)

    @property
    def along(self) -> str:
        """What the axis of a view by the second counts (plan.shows.ALONGS)."""
        return str(self.show.get("along", TIME))

    @property
    def log(self) -> bool:
        return self.show.get("scale") == "log"

    def title(self, default: str, word: str = "", path: str = "") -> str:
        """The plan's title, else `default`. Of several values or steps of one view it says which one is shown, `word`
        at the step `path`."""
        own = self.show.get("title")
        words = [str(own or default)]
        if own and word and len(self.words()) > 1:
            words.append(label(word))
        if path and len(self.paths) > 1:
            words.append(path)
        return ", ".join(words)

    @property
    def looks(self) -> list[dict]:
        """How each of several runs is drawn; the reviewed one has a colour of its own."""
        of = [look(i) for i in range(len(self.tables))]
        return [each | {"colour": "--review"} if i == self.review else each for i, each in enumerate(of)]

    @property
    def order(self) -> list[int]:
        """The places of the runs in the order in which they are drawn: the reviewed one last, on top."""
        return sorted(range(len(self.tables)), key=lambda i: i == self.review)

    def legend(self) -> str:
        """Which run is which in a plot of all of them; nothing of a single one."""
        return svg.legend(self.names, self.looks)

    def runs(self) -> Iterator[tuple[Table, str]]:
        """Each run and what to add to a caption so that it is told from the others."""
        for each, name in zip(self.tables, self.names, strict=True):
            yield each, f": {name}" if len(self.tables) > 1 else ""


class Unit(NamedTuple):
    """How the figures of one word are printed: in `name`, times `scale`."""

    word: str
    name: str
    scale: float

    def text(self, value: float | None) -> str:
        return figure(None if value is None else value * self.scale)

    @property
    def title(self) -> str:
        """Of an axis: "Mean power, W"."""
        words = label(self.word)
        return f"{words}, {self.name}" if self.name and self.name not in words else words


def unit(word: str, values: Sequence[float | None]) -> Unit:
    """ms for latencies from 1000 µs on."""
    name = shows.VALUES[word][1]
    top = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0)
    return Unit(word, "ms", 1e-3) if name == "µs" and top >= 1000 else Unit(word, name, 1)


def figure(value: float | None) -> str:
    """A number with three digits, or all of a larger one."""
    if value is None or not math.isfinite(value):
        return "–"
    places = 0 if not value else 2 - math.floor(math.log10(abs(float(f"{value:.2e}"))))
    return number(value, min(6, max(0, places)))


def label(word: str) -> str:
    """What a plan's word for a figure is called."""
    term = BY_KEY.get(shows.VALUES[word][0])
    return WORDS.get(word) or (term.label if term else word)


def axis(key: str) -> str:
    return AXES.get(key, (key, ""))[0]


def point(key: str, value) -> str:
    return f"{value}{AXES.get(key, ('', ''))[1]}"


def points(of: Table, path: str, key: str) -> list:
    """The values that `over` sweeps, in the plan's order."""
    for step in of.plan.steps:
        for each in every([step]):
            if each.path == path or path == step.path:
                found = {**step.axes, **each.axes}.get(key)
                if found:
                    return found
    return []


def rising(values: list) -> list:
    """Numbers, sizes and times from small to large, as an axis has them; anything else as it came."""
    for read in (float, parse_bytes, parse_seconds):
        try:
            return sorted(values, key=lambda value: read(str(value)))
        except (ValueError, SsdrigError):
            continue
    return values


def last_rounds(of: Table, path: str) -> list[int]:
    """The rounds whose figures stand for a repeat: the last five where a rule ends it, else all. A round that was cut
    short counts only where there is no whole one."""
    points_of: dict[int, set[str]] = {}
    for row in of.of(path):
        if row.round is not None:
            points_of.setdefault(row.round, set()).add(row.act.label)
    most = max(map(len, points_of.values()), default=0)
    rounds = sorted(number for number, found in points_of.items() if len(found) == most)
    ruled = any(each.by == "until" and path.startswith(each.path) for each in of.verdicts)
    return rounds[-ROUNDS:] if ruled else rounds


def rows_at(of: Table, path: str, where: dict) -> list[Row]:
    """The rows of a step at these points (plan's words, spaces left out); of a repeat those that stand for it."""
    kept = last_rounds(of, path)
    wanted = {key: told(value) for key, value in where.items()}
    return [
        row
        for row in of.of(path)
        if (row.round is None or row.round in kept)
        and all(told(row.act.point.get(key)) == value for key, value in wanted.items())
    ]


def place(show: dict) -> dict:
    """`where` of a view: "read=0 block=4KiB" as a table."""
    pairs = (word.partition("=") for word in str(show.get("where", "")).split())
    return {key: value for key, _, value in pairs}


def value_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> tuple[float | None, str]:
    """A figure of a point, and its rounds in words, or why there is none."""
    rows = rows_at(of, path, where)
    if not rows:
        lacking = [
            row
            for row in of.rows
            if row.state != "done"
            and row.act.path == path
            and all(told(row.act.point.get(key)) == told(value) for key, value in where.items())
        ]
        return None, f"not run: {lacking[0].why or lacking[0].state}" if lacking else "not run"
    figures, key = table.together(rows, window or WHOLE), shows.VALUES[word][0]
    found = figures.get(key)
    if found is None:
        notes = (note.partition(": ") for note in figures.get("notes", []))
        return None, next((why for keys, _, why in notes if key in keys.split(", ")), rows[0].why_not(word))
    seen = [v for row in rows if (v := row.value(word, window or WHOLE)) is not None]
    if len(rows) == 1:
        return found, ""
    if len(seen) < len(rows):
        return found, f"{len(rows)} rounds"
    return found, f"{len(rows)} rounds, {figure(min(seen))} to {figure(max(seen))}"


def uncertain_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> Uncertain:
    """As value_at, with the error."""
    value, why = value_at(of, path, where, word, window)
    if value is None:
        return Uncertain(None, None, UNKNOWN, why)
    figures = table.together(rows_at(of, path, where), window or WHOLE)
    return errors.of(shows.VALUES[word][0], figures)


def plus_minus(found: Uncertain, unit: str = "") -> str:
    """ "12.3 ± 0.4 %": the error with two digits, the value with as many places."""
    if found.value is None:
        return "–"
    after = f" {unit}" if unit else ""
    if found.error is None or not math.isfinite(found.error) or found.error <= 1e-6 * abs(found.value):
        return figure(found.value) + after
    places = min(6, max(0, 1 - math.floor(math.log10(found.error))))
    return f"{number(found.value, places)} ± {number(found.error, places)}{after}"


def doubt_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> str | None:
    """Why nothing is claimed of a figure of a point: what of its trust strip is bad; None: it may be claimed, or is not
    known."""
    rows = rows_at(of, path, where)
    if all(row.value(word, window or WHOLE) is None for row in rows):
        return None
    return trust.why_not(table.strip(rows, window or WHOLE), trust.rests_on(shows.VALUES[word][0]))


def rounds_in_words(of: Table, path: str) -> str:
    """ "Rounds 3 to 7 together", and whether they are steady."""
    kept = last_rounds(of, path)
    if not kept:
        return ""
    words = f"Rounds {kept[0]} to {kept[-1]} together." if len(kept) > 1 else f"Round {kept[0]}."
    ruled = [each for each in of.verdicts if each.by == "until" and path.startswith(each.path)]
    if ruled and not all(each.verdict["passed"] for each in ruled):
        words += f" {steady.heading(each.verdict for each in ruled)}."
    return words


def panels(context: Context, found: list[tuple], by: str | None) -> Iterator[tuple]:
    """(run, names of the lines, what the title adds, lines, looks) of each plot: of one run a line for each value of
    `by`; of several runs a plot for each value, with a line for each run."""
    if len(found) == 1:
        ((each, _, of),) = found
        names = [f"{axis(by)} {point(by, s)}" if by else "" for s, _ in of]
        yield each, names, "", [line for _, line in of], [look(i) for i in range(len(of))]
        return
    for s in dict.fromkeys(s for *_, of in found for s, _ in of):
        here = [(run, line) for run in context.order for value, line in found[run][2] if value == s]
        names, looks = [context.names[run] for run, _ in here], [context.looks[run] for run, _ in here]
        words = f", {axis(by)} {point(by, s)}" if by else ""
        yield found[0][0], names, words, [line for _, line in here], looks


def by_column(heads: Iterable[str], lines: Iterable[tuple]) -> str:
    """A table with a line a figure and a column a step.

    heads: of the columns
    lines: of each figure (name, unit or "", a (value or None, why there is none) for each column)
    """
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    body = [
        f'<tr><th scope="row">{escape(name)}{f" <span class=unit>{unit}</span>" if unit else ""}</th>'
        + "".join(
            f"<td>{figure(value)}</td>" if value is not None else f'<td class="soft" title="{escape(why)}">–</td>'
            for value, why in cells
        )
        + "</tr>"
        for name, unit, cells in lines
    ]
    return (
        f'<div class="scroll"><table class="matrix"><thead><tr><th scope="col"></th>{head}</tr></thead><tbody>'
        f"{''.join(body)}</tbody></table></div>"
    )


def panel(title: str, body: str, soft: str = "", kind: str = "") -> str:
    """A figure of the page."""
    note = f'<span class="soft">{escape(soft)}</span>' if soft else ""
    return f'<figure class="{kind}"><figcaption><b>{escape(title)}</b>{note}</figcaption>{body}</figure>'


View = Callable[[Context], str]


class Cell(NamedTuple):
    """`value` in the column's unit, with `error` where it is known; None: `why`. `words` in place of a number."""

    value: float | None = None
    error: float | None = None
    why: str = ""
    words: str = ""

    def html(self) -> str:
        if self.words:
            return f"<td>{escape(self.words)}</td>"
        if self.value is None:
            return f'<td class="soft" title="{escape(self.why or "not known")}">–</td>'
        return f"<td>{figure(self.value)}{'' if self.error is None else f' ± {figure(self.error)}'}</td>"


def number_table(first: str, heads: Sequence[tuple[str, str]], lines: Sequence[tuple[str, Sequence[Cell]]]) -> str:
    """`heads`: (name, unit) of each column behind the `first`; `lines`: a name and a Cell for each head."""
    head = "".join(f'<th scope="col">{escape(h)}{f" <span class=unit>{u}</span>" if u else ""}</th>' for h, u in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cell.html() for cell in cells)}</tr>' for name, cells in lines
    )
    return (
        f'<div class="scroll"><table class="steps"><thead><tr><th scope="col">{escape(first)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
