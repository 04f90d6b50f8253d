"""The views of a plan, each one [[show]] of it as a piece of the page. A view gets the runs of the page and gives HTML;
several runs are drawn next to each other on the same scales."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from ssdrig.base.errors import SsdrigError
from ssdrig.base.uncertain import UNKNOWN, Uncertain
from ssdrig.base.words import parse_bytes, parse_seconds
from ssdrig.plan import quantity, shows
from ssdrig.plan.rules import steady
from ssdrig.plan.step import every, value_text
from ssdrig.reading import errors, table, trust
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.views import svg
from ssdrig.views.svg import look
from ssdrig.views.terms import BY_KEY, number

TIME = "time"  # the axis of a view by the second, unless the plan names another
ROUNDS = 5  # of the steady state's window
AXES = {
    "read": ("read share", " %"),
    "block": ("block size", ""),
    "qd": ("queue depth", ""),
    "threads": ("threads", ""),
    "range": ("range", ""),
    "every": ("pause before it", ""),
    "rate": ("rate, IOPS", ""),
}
WORDS = {
    "burst_iops": "IOPS within bursts",
    "consistency": "Consistency, mean ÷ deviation",
    "pause_W": "Mean power of the pauses",
    "floor_W": "Power at rest",
    "host_cpu": "CPU of the host that fio takes, 100 % for each core",
    "lat_mean_most": "Highest mean latency of a minute",
    "gap": "Rest since the load before",
}


class Context(NamedTuple):
    """What a view is given: the runs, what each is called, the [[show]] of the plan, and which run is reviewed.

    styles: how each run is drawn, where the page draws them alike in all of its plots; () for svg.look()
    subjects: how many of the first runs the page is about, which get panels of their own; 0 for all
    brief: the page states once why figures are not claimed, so a panel names the items of the trust strip alone
    """

    tables: Sequence[Table]
    names: Sequence[str]
    show: dict
    review: int = 0
    styles: Sequence[dict] = ()
    subjects: int = 0
    brief: bool = False

    @property
    def paths(self) -> list[str]:
        return shows.listed(self.show.get("of"))

    def words(self, *default: str) -> list[str]:
        return shows.listed(self.show.get("value")) or list(default)

    def reason(self, doubt: str | None) -> str | None:
        """Why a figure is not claimed, as the page words it."""
        return trust.briefly(doubt) if doubt and self.brief else doubt

    @property
    def along(self) -> str:
        """What the axis of a view by the second counts (plan.shows.ALONGS)."""
        return str(self.show.get("along", TIME))

    @property
    def log(self) -> bool:
        return self.show.get("scale") == "log"

    def title(self, default: str, word: str = "", path: str = "") -> str:
        """The plan's title, or `default`. In a view of several values or steps the title names the one that is shown,
        `word` at the step `path`."""
        own = self.show.get("title")
        words = [str(own or default)]
        if own and word and len(self.words()) > 1:
            words.append(label(word))
        if path and len(self.paths) > 1:
            words.append(path)
        return ", ".join(words)

    @property
    def looks(self) -> list[dict]:
        """How each of several runs is drawn; the reviewed one has its own colour."""
        if self.styles:
            return list(self.styles)
        of = [look(i) for i in range(len(self.tables))]
        return [style | {"colour": "--review"} if i == self.review else style for i, style in enumerate(of)]

    @property
    def order(self) -> list[int]:
        """The places of the runs in the order in which they are drawn: the reviewed one last, on top."""
        return sorted(range(len(self.tables)), key=lambda i: i == self.review)

    def legend(self) -> str:
        """Which run is which in a plot of all of them; nothing of a single one."""
        return svg.legend(self.names, self.looks)

    def runs(self) -> Iterator[tuple[Table, str]]:
        """Each run and the caption suffix that identifies it."""
        for run_table, name in zip(self.tables, self.names, strict=True):
            yield run_table, f": {name}" if len(self.tables) > 1 else ""


class Unit(NamedTuple):
    """How the figures of one word are printed: in `name`, times `scale`."""

    word: str
    name: str
    scale: float

    def text(self, value: float | None) -> str:
        return figure(None if value is None else value * self.scale)

    @property
    def title(self) -> str:
        """The title of an axis: "Mean power, W"."""
        words = label(self.word)
        return f"{words}, {self.name}" if self.shows_unit else words

    @property
    def heading(self) -> str:
        """The heading of a card or a column, in HTML."""
        unit = f' <span class="unit">{escape(self.name)}</span>' if self.shows_unit else ""
        return escape(label(self.word)) + unit

    @property
    def shows_unit(self) -> bool:
        """Whether the unit needs naming: "Mean IOPS" has its own."""
        return bool(self.name) and self.name not in label(self.word)


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
    """A place on an axis in words. A rate is in IOPS whatever unit its plan has, as all rates of a plot are."""
    if key == "rate" and isinstance(value, str):
        return number(quantity.parse(value, "rate"), 0)
    return f"{value}{AXES.get(key, ('', ''))[1]}"


def points(of: Table, path: str, key: str) -> list:
    """The values that `over` sweeps, in the plan's order."""
    for step in of.plan.steps:
        for act in every([step]):
            if act.path == path or path == step.path:
                values = {**step.axes, **act.axes}.get(key)
                if values:
                    return values
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
    """The rounds whose figures stand for a repeat: the last five if a rule ends it, all of them otherwise. A round
    that was cut short counts only if no round is complete."""
    points_of: dict[int, set[str]] = {}
    for row in of.of(path):
        if row.round is not None:
            points_of.setdefault(row.round, set()).add(row.act.label)
    most = max(map(len, points_of.values()), default=0)
    rounds = sorted(number for number, labels in points_of.items() if len(labels) == most)
    ruled = any(verdict.by == "until" and path.startswith(verdict.path) for verdict in of.verdicts)
    return rounds[-ROUNDS:] if ruled else rounds


def rows_at(of: Table, path: str, where: dict) -> list[Row]:
    """The rows of a step at these points (plan's words, spaces left out); of a repeat those that stand for it."""
    rounds = last_rounds(of, path)
    wanted = {key: value_text(value) for key, value in where.items()}
    return [
        row
        for row in of.of(path)
        if (row.round is None or row.round in rounds)
        and all(value_text(row.act.point.get(key)) == value for key, value in wanted.items())
    ]


def place(show: dict) -> dict:
    """`where` of a view: "read=0 block=4KiB" as a table."""
    pairs = (word.partition("=") for word in str(show.get("where", "")).split())
    return {key: value for key, _, value in pairs}


def value_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> tuple[float | None, str]:
    """A figure of a point, and its rounds in words, or why the figure is missing."""
    rows = rows_at(of, path, where)
    if not rows:
        lacking = [
            row
            for row in of.rows
            if row.state != "done"
            and row.act.path == path
            and all(value_text(row.act.point.get(key)) == value_text(value) for key, value in where.items())
        ]
        return None, f"not run: {lacking[0].why or lacking[0].state}" if lacking else "not run"
    figures, key = table.together(rows, window or WHOLE), shows.VALUES[word][0]
    mean = figures.get(key)
    if mean is None:
        notes = (note.partition(": ") for note in figures.get("notes", []))
        return None, next((why for keys, _, why in notes if key in keys.split(", ")), rows[0].why_not(word))
    values = [v for row in rows if (v := row.value(word, window or WHOLE)) is not None]
    if len(rows) == 1:
        return mean, ""
    if len(values) < len(rows):
        return mean, f"{len(rows)} rounds"
    return mean, f"{len(rows)} rounds, {figure(min(values))} to {figure(max(values))}"


def uncertain_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> Uncertain:
    """As value_at, with the error."""
    value, why = value_at(of, path, where, word, window)
    if value is None:
        return Uncertain(None, None, UNKNOWN, why)
    figures = table.together(rows_at(of, path, where), window or WHOLE)
    return errors.of(shows.VALUES[word][0], figures)


def plus_minus(value: Uncertain, unit: str = "") -> str:
    """ "12.3 ± 0.4 %": the error with two digits, the value with as many places."""
    if value.value is None:
        return "–"
    after = f" {unit}" if unit else ""
    if value.error is None or not math.isfinite(value.error) or value.error <= 1e-6 * abs(value.value):
        return figure(value.value) + after
    places = min(6, max(0, 1 - math.floor(math.log10(value.error))))
    return f"{number(value.value, places)} ± {number(value.error, places)}{after}"


def doubt_at(of: Table, path: str, where: dict, word: str, window: str | None = None) -> str | None:
    """Why nothing is claimed of a figure of a point: what of its trust strip is bad; None: it may be claimed, or is not
    known."""
    rows = rows_at(of, path, where)
    if all(row.value(word, window or WHOLE) is None for row in rows):
        return None
    return trust.why_not(table.strip(rows, window or WHOLE), trust.rests_on(shows.VALUES[word][0]))


def rounds_in_words(of: Table, path: str) -> str:
    """ "Rounds 3 to 7 together", and whether they are steady."""
    rounds = last_rounds(of, path)
    if not rounds:
        return ""
    words = f"Rounds {rounds[0]} to {rounds[-1]} together." if len(rounds) > 1 else f"Round {rounds[0]}."
    ruled = [verdict for verdict in of.verdicts if verdict.by == "until" and path.startswith(verdict.path)]
    if ruled and not all(verdict.verdict["passed"] for verdict in ruled):
        words += f" {steady.heading(verdict.verdict for verdict in ruled)}."
    return words


def panels(context: Context, series: list[tuple], by: str | None) -> Iterator[tuple]:
    """(run, names of the lines, what the title adds, lines, looks) of each plot: of one run a line for each value of
    `by`; of several runs a plot for each value, with a line for each run."""
    if len(series) == 1:
        ((only, _, of),) = series
        names = [f"{axis(by)} {point(by, s)}" if by else "" for s, _ in of]
        yield only, names, "", [line for _, line in of], [look(i) for i in range(len(of))]
        return
    for s in dict.fromkeys(s for *_, of in series for s, _ in of):
        drawn = [(run, line) for run in context.order for value, line in series[run][2] if value == s]
        names, looks = [context.names[run] for run, _ in drawn], [context.looks[run] for run, _ in drawn]
        words = f", {axis(by)} {point(by, s)}" if by else ""
        yield series[0][0], names, words, [line for _, line in drawn], looks


def by_column(heads: Iterable[str], lines: Iterable[tuple]) -> str:
    """A table with a line a figure and a column a step.

    heads: of the columns
    lines: of each figure (name, unit or "", a (value or None, why it is missing) for each column)
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
        return f"<td>{plus_minus(Uncertain(self.value, self.error))}</td>"


def number_table(first: str, heads: Sequence[tuple[str, str]], lines: Sequence[tuple[str, Sequence[Cell]]]) -> str:
    """`heads`: (name, unit) of each column after the `first`; `lines`: a name and a Cell for each head."""
    head = "".join(f'<th scope="col">{escape(h)}{f" <span class=unit>{u}</span>" if u else ""}</th>' for h, u in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cell.html() for cell in cells)}</tr>' for name, cells in lines
    )
    return (
        f'<div class="scroll"><table class="steps"><thead><tr><th scope="col">{escape(first)}</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
