"""The terms of average power with downtime (average_power.py), from the steps of runs of one drive: a benchmark's
loads, and the rest until quiet behind it, of the same run or of another."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ssdrig.reading.row import Row, Table
from ssdrig.views.average_power.formula import Measured


class Terms(NamedTuple):
    """`measured` with its `errors` (None: not known), and where its idle power is from. None: `why`."""

    measured: Measured | None
    source: str = ""
    why: str = ""
    errors: dict[str, float] | None = None


def of(run: Table, paths: Sequence[str], rest: str | None, others: Sequence[Table] = ()) -> Terms:
    """Of the steps `paths` of a run and its step `rest`; without one that has become quiet, of the last such rest in
    `others` of the same drive."""
    loads = [row for path in paths for row in run.of(path)]
    if not loads:
        return Terms(None, why=f"{', '.join(paths)} was not carried out")
    dark = [row for row in loads if row.value("W") is None or row.value("MB/s") is None or _lasted_s(row) is None]
    if dark:
        return Terms(None, why=f"{dark[0].act.label}: {dark[0].why_not('W')}")
    serial = run.data.header["drive"].get("serial")
    own = [row for row in run.rows if row.act.path == rest and _quiet(row)]
    more = [
        (row, table)
        for table in others
        if table is not run and serial and table.data.header["drive"].get("serial") == serial
        for row in table.rows
        if _quiet(row)
    ]
    if not own and not more:
        named = f"step {rest} of this run" if rest else "no step of this run"
        return Terms(None, why=f"idle power: {named} rested until the drive was quiet, and no other run of this drive")
    found, whose = (own[-1], "") if own else (more[-1][0], f" of run {more[-1][1].data.header['run']}")
    joules = seconds = written = 0.0
    for row in loads:
        lasted_s = _lasted_s(row) or 0.0
        seconds += lasted_s
        joules += (row.value("W") or 0.0) * lasted_s
        written += (row.value("MB/s") or 0.0) * 1e6 * lasted_s * (1 - row.act.keys.get("read", 0) / 100)
    if not written > 0:
        return Terms(None, why=f"{', '.join(paths)} wrote nothing, so it stands for no number of days")
    event = found.found
    measured = Measured(joules, seconds, written, event["floor_W"], event["above_J"] or 0.0, float(event["after_s"]))
    source = f"idle power and background work of {found.act.label}{whose}"
    return Terms(measured, source, errors=errors_of(loads, event))


def errors_of(loads: Sequence[Row], rest: Mapping) -> dict[str, float] | None:
    """Errors of Measured's fields: those of the loads' energies add up, as they are the rig's. None where one is not
    known."""
    bench_J = 0.0
    for row in loads:
        percent = (row.windows.get("all") or {}).get("power_uncertainty_percent")
        lasted_s, watts = _lasted_s(row), row.value("W")
        if percent is None or lasted_s is None or watts is None:
            return None
        bench_J += percent / 100 * watts * lasted_s
    if rest.get("floor_error_W") is None:
        return None
    return {"bench_J": bench_J, "idle_W": rest["floor_error_W"], "background_above_J": rest.get("above_error_J") or 0.0}


def _lasted_s(row: Row) -> float | None:
    """What the row's mean power is of."""
    window = row.windows.get("all") or {}
    t0_s, t1_s = window.get("t0_s"), window.get("t1_s")
    return None if t0_s is None or t1_s is None or not t1_s > t0_s else float(t1_s - t0_s)


def _quiet(row: Row) -> bool:
    event = row.found
    known = event.get("kind") == "quiet" and event.get("reached") and event.get("floor_W")
    known = known and event.get("after_s") is not None and not event.get("time_why")
    return row.state == "done" and bool(known)
