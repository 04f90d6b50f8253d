"""When fio started a job's clock, on CLOCK_MONOTONIC, from the documents of its folder. No step of the wall clock may
move it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ssdrig.load.fiotext import documents, parsed, totals
from ssdrig.runs import integrity

START_S = 10.0  # fio starts its job clock at most this long after it was started
HEAD_BYTES = TAIL_BYTES = 1 << 18
LATEST_MS = 1 << 42  # 139 years after the machine started: no time stamp is later
LONGEST_HANG_S = 600
STAMP_MS, PROMPT, UNKNOWN_MS = 2.0, 3.0, 1000.0
EARLIEST_MS = -50  # after it was started by start.json; two clocks are read


def ends(path: Path) -> tuple[list[dict], list[dict], int, int]:
    """The first and the last documents of out.json, without reading all of what may be 100 MB; bytes at its end that
    are not a complete document; how many documents among those read are damaged."""
    if not path.exists():
        return [], [], 0, 0
    with open(path, "rb") as f:
        head = f.read(HEAD_BYTES).decode(errors="replace")
        size = f.seek(0, 2)
        f.seek(max(0, size - TAIL_BYTES))
        tail = f.read().decode(errors="replace") if size > HEAD_BYTES else head
    first, rest, odd = parsed(head)
    last = first
    if size > HEAD_BYTES:
        cut = tail.find("\n{") + 1  # before it may be the end of a document
        last, rest, more = parsed(tail[cut:])
        last, odd = documents(tail[:cut])[0] + last, odd + more
    return first, last, len(rest.encode()) if rest.startswith("{") else 0, odd


@dataclass(frozen=True)
class JobClock:
    # CLOCK_MONOTONIC at which fio started the job's clock; a busy host takes documents late, then it is before this
    start_ms: int | None
    begun_ms: int | None  # and by which some I/O had completed; None: not known
    notes: tuple[str, ...] = ()
    earliest_ms: int | None = None  # and before which it cannot have
    error_ms: float = UNKNOWN_MS  # by how much start_ms may be off


def job_clock(folder: Path, head: list[dict], tail: list[dict]) -> JobClock:
    """When the job began, from its documents: of all the least arrival less run time, for one that fio could not print
    immediately (it waits while all I/O hangs) comes late.

    Documents of older folders have no `t_ns`, only UTC. start.json brings that over, unless the clock was set
    in between: fio starts its clock within START_S of its own start, and values outside are ignored."""
    begin_ms, offset_ms = _started(folder)
    parts = [*head, *tail]
    stamped = [d for d in parts if d.get("t_ns")]
    if stamped:
        sound = [d for d in stamped if begin_ms is None or is_of_the_job(d, d["t_ns"] / 1e6 - begin_ms)]
        odd = sum(totals(d)["ios"] > 0 for d in stamped) - sum(totals(d)["ios"] > 0 for d in sound)
        notes = (f"{odd} documents of fio use another clock and do not date its job",) if odd else ()
        if not sound:
            return JobClock(None, None, notes)
        sound = _since_begun(sound)
        dated = [d for d in sound if _is_dated(d)] or sound
        starts = [d["t_ns"] / 1e6 - totals(d)["runtime_ms"] for d in dated]
        start_ms = round(min(starts))
        first = sound[0]
        earliest_ms = None if begin_ms is None else round(begin_ms) + EARLIEST_MS
        begun_ms = round(first["t_ns"] / 1e6) if totals(first)["ios"] else None
        return JobClock(start_ms, begun_ms, notes, earliest_ms, error_ms(starts))
    if begin_ms is None or not parts:
        return JobClock(None, None)
    starts = [d["timestamp_ms"] - totals(d)["runtime_ms"] + offset_ms for d in parts if "timestamp_ms" in d]
    believed = [ms for ms in starts if EARLIEST_MS <= ms - begin_ms <= START_S * 1000]
    if len(believed) < len(starts):
        note = "the wall clock was set while fio ran; its log's own clock was used"
        return JobClock(round(min(believed)) if believed else None, None, (note,))
    if not believed:
        return JobClock(None, None)
    first = parts[0]
    return JobClock(round(min(believed)), round(first["timestamp_ms"] + offset_ms) if totals(first)["ios"] else None)


def has_job_time(document: dict, folder: Path) -> bool:
    """Whether the run time in a document of this folder, with its `t_ns`, is that of the job. True where the time of
    fio's start is not known."""
    if totals(document)["ios"]:
        return True
    begin_ms = _started(folder)[0]
    return begin_ms is None or is_of_the_job(document, document["t_ns"] / 1e6 - begin_ms)


def _started(folder: Path) -> tuple[float | None, float]:
    """CLOCK_MONOTONIC at which fio was started, by start.json (None: not known), and that less UTC, ms."""
    try:
        start = integrity.document_of(folder / "start.json")
        begin_ms, offset_ms = int(start["t_ns"]) / 1e6, (int(start["t_ns"]) - int(start["utc_ns"])) / 1e6
        if not (0 <= begin_ms <= LATEST_MS and abs(offset_ms) <= LATEST_MS):
            raise ValueError("start.json")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None, 0.0
    return begin_ms, offset_ms


def error_ms(latest_ms: Iterable[float]) -> float:
    """How late the earliest of these times may be, each of them delayed by some latency:
    some of what the next one is later, and two clocks of whole ms."""
    ordered = sorted(latest_ms)
    return STAMP_MS + PROMPT * (ordered[1] - ordered[0]) if len(ordered) > 1 else UNKNOWN_MS


def is_of_the_job(document: dict, since_ms: float) -> bool:
    """Whether the run time in a document can be that of the job.

    since_ms: from fio's start to the document's arrival

    A thread that has not begun has a run time all the same: fio counts it from the start of the machine."""
    return EARLIEST_MS <= since_ms - totals(document)["runtime_ms"] <= LONGEST_HANG_S * 1000


def followed(now: dict, before: dict) -> dict:
    """The totals() that a document's differences count from: those of the document before it, or none, where fio has
    set the job's clock once more in between, which it does as the job's thread begins."""
    return totals(None) if not before["ios"] and now["runtime_ms"] < before["runtime_ms"] else before


def _since_begun(parts: list[dict]) -> list[dict]:
    """The documents from when the job ran, by time: its run time falls where its thread, which a busy host starts late,
    begins, because fio sets its clock once more then."""
    parts = sorted(parts, key=lambda document: document["t_ns"])
    sums = [totals(document) for document in parts]
    idle = [not one["ios"] for one in sums]
    falls = [i for i in range(1, len(parts)) if idle[i - 1] and sums[i]["runtime_ms"] < sums[i - 1]["runtime_ms"]]
    return parts[falls[-1] :] if falls else parts


def _is_dated(document: dict) -> bool:
    """Whether it states how long the job has run. With several threads and no completed I/O it has only the sum of
    their times, in which fio counts a thread that has not begun since its own start."""
    sums = totals(document)
    return sums["ios"] > 0 or sums["threads_ms"] == sums["runtime_ms"]
