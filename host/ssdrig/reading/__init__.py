"""A run folder -> what happened second by second on one time axis. `load` gives what is there of a run that failed or
died, and `notes` say what is not and why; figures.py computes the run's figures from it.

Time zero is the load's first I/O. The axis is drive time: a SIMULATED drive may be dilated, so that k seconds of the
host are one of the drive, and this is the one place where that is undone: one row of the grid is k host seconds, its
count of I/O is the drive's IOPS, times and energies are divided by k, watts stay as they are.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from ssdrig.meter import pairing, reduced
from ssdrig.reading import own_report
from ssdrig.reading.events import load_events
from ssdrig.reading.fio import load_fio
from ssdrig.reading.power import load_power
from ssdrig.reading.rundata import SECOND_NS, Rail, RunData
from ssdrig.reading.smart import add_polls, load_smart, place_polls, polls
from ssdrig.runs import annotations, integrity, journal, parts

__all__ = ["SECOND_NS", "Rail", "RunData", "begin", "load"]


def load(run_path, samples: bool = False) -> RunData:
    """Read a run folder; of a run that was resumed, the part that has its figures. Raises JournalError if it is none;
    what else is missing is said in `notes`. samples: keep all power samples of the load, not only those around some
    moments."""
    run, resumed = parts.shown(run_path)
    data, heads = begin(run), None
    data.notes += [resumed] if resumed else []
    if journal.is_long(run) and multiprocessing.parent_process() is None and (os.cpu_count() or 1) > 1:
        # a fork would copy threads' locks; a daemon's or a pool's process makes no more
        with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as beside:
            with_fio = beside.submit(_with_fio, data, run)
            heads = reduced.heads(run)
            snapshots, notes = polls(run)
            data = with_fio.result()
        add_polls(data, snapshots, notes)
        place_polls(data)
    else:
        load_smart(_with_fio(data, run), run)
    powers = load_power(data, run, np.empty(0, np.int64), heads, samples, [own_report.timed(data)])
    own_report.place(data, powers)
    load_events(data)
    return data


def _with_fio(data: RunData, run: Path) -> RunData:
    load_fio(data, run)
    return data


def begin(run: Path) -> RunData:
    """What the journal of a run folder says, nothing measured yet. Raises JournalError if it is none."""
    header = journal.run_header(run)
    state, events = journal.state(run), journal.events(run)
    known = pairing.believed(events)
    data = RunData(header, known, state, why_ended(state, events), int(header["drive"].get("time_dilation") or 1))
    data.notes += integrity.damage(run)
    data.said = annotations.read(run)
    return data


def why_ended(state: str, events: list[dict]) -> str | None:
    """Why a run, or a part of one, ended as it did; None where nothing is to be said."""
    if state in journal.END_STATES:
        return events[-1].get("why") or None
    if state == "running":
        return None
    last = events[-1] if events else {"kind": "nothing"}
    words = " ".join(str(last[key]) for key in ("kind", "step", "reason") if key in last)
    return f"the process that carried out the run ended without closing it; its last event is {words}"
