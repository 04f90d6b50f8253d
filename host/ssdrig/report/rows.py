"""What a run comes to, as rows: one for each step, each of its windows, and each point of a repeat, with the figures of
the report."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ssdrig.plan import kinds, shows
from ssdrig.reading import table
from ssdrig.reading.row import WHOLE, Row, Table
from ssdrig.views.context import figure, rows_at

COLUMNS = (  # the plan's word, heading
    ("iops", "IOPS"),
    ("MB/s", "MB/s"),
    ("lat_mean", "mean lat, µs"),
    ("W", "W"),
    ("uJ/IO", "µJ per I/O"),
    ("wa", "WA"),
)


class Line(NamedTuple):
    """A row of the table: a step, one of its windows, or a point of a repeat. `figures`: by their keys; `notes`:
    "keys: reason" of the unknown ones."""

    name: str
    seconds: float | None
    figures: Mapping
    notes: Iterable[str]
    wanted: bool = True  # whether a figure without a value needs a reason: in a step with I/O


def of_figures(figures: Mapping) -> Iterable[Line]:
    """The windows of the main job (course.figures_of)."""
    for name, window in figures["windows"].items():
        if window:
            yield Line(name, window["t1_s"] - window["t0_s"], window, window["notes"])


def reason(key: str, notes: Iterable[str]) -> str:
    """Why a figure is not known, from notes "key, key: reason"."""
    split = (note.partition(": ") for note in notes)
    return next((why for keys, _, why in split if key in keys.split(", ")), "not known")


def of_plan(run: Table) -> Iterable[Line]:
    """Each step, each of its windows, each point of a repeat."""
    seen: set[str] = set()
    for row in run.rows:
        if row.act.repeat is None:
            yield from _of_step(row)
        elif row.state == "done" and row.act.label not in seen:
            seen.add(row.act.label)
            counted = rows_at(run, row.act.path, dict(row.act.point))
            if counted:
                mean = table.together(counted)
                notes = list(dict.fromkeys(note for one in counted for note in one.notes))
                yield Line(row.act.label, mean.get("t1_s"), mean, notes)


def _of_step(row: Row) -> Iterable[Line]:
    if row.t0_s is None or row.t1_s is None or row.act.do == "choose":
        return
    with_io = row.act.do in kinds.IO
    state = "" if row.state == "done" else f" ({ended(row)})"
    for name, figures in row.windows.items():
        whole = name == WHOLE
        if figures is None:
            yield Line(f"  {name}", None, {}, [f"{_keys()}: {_of_window(row, name)}"])
            continue
        notes = row.notes if whole else figures["notes"]
        seconds = row.t1_s - row.t0_s if whole else figures["t1_s"] - figures["t0_s"]
        yield Line(row.act.label + state if whole else f"  {name}", seconds, figures, notes, with_io)
    if not row.windows:
        yield Line(row.act.label + state, row.t1_s - row.t0_s, {}, row.notes, with_io)


def ended(row: Row) -> str:
    """The state of a row; of a load that was cut short with how far it came: "cut short at 5.00 of 20.0 s"."""
    if row.state != "cut short" or row.act.do != "load" or row.t0_s is None or row.t1_s is None:
        return row.state
    lasted, longest_s = figure(row.t1_s - row.t0_s), kinds.KINDS["load"].longest_s(row.act)
    if longest_s is None:
        return f"cut short after {lasted} s"
    return f"cut short at {lasted} of {'at most ' * ('until' in row.act.keys)}{figure(longest_s)} s"


def _of_window(row: Row, name: str) -> str:
    return reason(f"window {name}", row.notes)


def _keys() -> str:
    return ", ".join(shows.VALUES[word][0] for word, _ in COLUMNS)
