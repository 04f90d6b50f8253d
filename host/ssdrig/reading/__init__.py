"""A run folder -> its course second by second on one time axis, and its figures: table.load() for the rows of any
plan, table.in_full() for the load that a run is about. `notes` list the missing parts of a run that failed or died.

Time zero of a load is its first I/O. The axis is drive time: a SIMULATED drive may be dilated, so that k seconds of the
host are one of the drive, and this is the one place where that is undone: one row of the grid is k host seconds, its
count of I/O is the drive's IOPS, times and energies are divided by k, watts stay as they are.
"""

from pathlib import Path

from ssdrig.meter import pairing
from ssdrig.reading.rundata import SECOND_NS, Rail, RunData
from ssdrig.runs import annotations, integrity, journal

__all__ = ["SECOND_NS", "Rail", "RunData", "begin"]


def begin(run: Path) -> RunData:
    """The run from its journal alone, without measurements. Raises JournalError if `run` is not a run folder."""
    header = journal.run_header(run)
    state, events = journal.state(run), journal.events(run)
    known = pairing.believed(events)
    data = RunData(header, known, state, why_ended(state, events), int(header["drive"].get("time_dilation") or 1))
    data.notes += integrity.damage(run)
    data.annotations = annotations.read(run)
    return data


def why_ended(state: str, events: list[dict]) -> str | None:
    """Why a run, or a part of one, ended early; None if it did not."""
    if state in journal.END_STATES:
        return events[-1].get("why") or None
    if state == "running":
        return None
    last = events[-1] if events else {"kind": "nothing"}
    words = " ".join(str(last[key]) for key in ("kind", "step", "reason") if key in last)
    return f"the process of the run ended without closing it; its last event is {words}"
