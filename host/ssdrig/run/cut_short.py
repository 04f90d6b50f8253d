"""An interrupted run, reconstructed from its folder: the acts done, the last counters of the drive, what the run
wrote since. What of the drive's state is left then: left(). How to go on: standing.py, resume.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ssdrig.base import words
from ssdrig.base.errors import ExchangedDrive, JournalError
from ssdrig.drive.smart import counters, saved
from ssdrig.drive.wear import standing as wear
from ssdrig.load import fiotext, playedlog
from ssdrig.plan import expand, grammar, state
from ssdrig.plan.expand import Act
from ssdrig.plan.kinds import speeds
from ssdrig.plan.state import UNKNOWN
from ssdrig.reading import rundata
from ssdrig.run import prepare, standing
from ssdrig.runs import integrity, journal, parts

TRIM_SEEN_BYTES = 1 << 20  # less than that may be the drive's own rounding
MOST_DIGITS = 19  # of a byte offset
UNSEEN_S = 5  # of I/O that fio had done before it was killed, without a report


class Reading(NamedTuple):
    """What a drive reports of itself: None where it does not."""

    firmware: str | None
    host_written_bytes: int | None
    unit_bytes: int
    used_bytes: int | None = None  # NVMe: how much of the namespace is not trimmed


@dataclass(frozen=True)
class Story:
    """A run that was cut short. `parts`: (run.json, events) of each; `folders`: theirs; `snapshot`: the last wear
    numbers of the drive, `before`: the counters in them, `ours`: the least and the most bytes that the run wrote since;
    `doubts`: why what the folder contains is incomplete."""

    run: Path
    header: dict
    folders: list[Path]
    parts: list[tuple[dict, list[dict]]]
    plan: grammar.Plan
    acts: tuple[Act, ...]
    past: standing.Past
    snapshot: dict | None
    before: Reading | None
    ours: tuple[int, int]
    moved_bytes: int
    doubts: tuple[str, ...] = ()


def read(folder: Path) -> Story:
    """The story of a run folder. Raises JournalError for one that is not a run of a plan, that still goes on, or whose
    run.json or parts are not what the run wrote."""
    folder = parts.root(folder)
    try:
        return _read(folder)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise JournalError(
            f"a run folder {folder} as the run wrote it",
            f"{type(error).__name__}: {error}",
            "it is damaged: take it from a copy of the run",
        ) from error


def _read(folder: Path) -> Story:
    header = journal.run_header(folder)
    if journal.lock_is_held(folder):
        raise JournalError(
            f"a run that has ended: {folder}", "a process that still writes it", "wait for its end, or end it"
        )
    document = header.get("plan")
    if not isinstance(document, dict) or not all(key in document for key in ("text", "acts", "params", "variant")):
        raise JournalError(f"the run of a plan in {folder}", "a run.json without one", "begin the run again")
    if odd := parts.strange(folder):
        raise JournalError(f"the run {folder} with all its parts", "; ".join(odd), "take it whole from a copy")
    plan = grammar.of_run(document, str(folder / "run.json"))
    acts = tuple(expand.expand(plan, header["drive"], _capabilities(header)))
    if document.get("finish", "keep") != "keep":
        acts += (prepare.last_act(document["finish"], header["drive"]),)
    if [act.label for act in acts] != document["acts"]:
        raise JournalError(
            f"the plan of {folder} to be read as when it began",
            "other steps",
            "go on with the ssdrig that began it, or begin the run again",
        )
    folders = parts.of(folder)
    story = [(journal.open_run(part), journal.events(part)) for part in folders]
    for resumed in filter(None, (header.get("resumed") for header, _ in story)):
        if not (0 <= resumed["begins"] < len(acts) and resumed["round"] >= 1):
            raise ValueError(f"resumed at act {resumed['begins']}, round {resumed['round']}")
    doubts = parts.doubts(folders)
    past = standing.past(acts, story)
    if (jobs := sum(1 for part in folders for _ in (part / "fio").rglob("start.json"))) > past.jobs:
        doubts.append(f"fio was started {jobs} times, events.jsonl has {past.jobs}")
    before, ours = _since_reading(folders, past, str(header["drive"].get("interface")), acts)
    snapshot = last_snapshot(folders)
    return Story(
        folder,
        header,
        folders,
        story,
        plan,
        acts,
        past,
        snapshot,
        before,
        ours,
        _moved(folders, story, past),
        tuple(doubts),
    )


def _capabilities(header: Mapping) -> frozenset[str]:
    """What the bench could do when the run began."""
    can = header["plan"].get("can")
    if isinstance(can, list):
        return frozenset(can)
    if header["drive"].get("preset"):
        return prepare.of_virtual(header["drive"]["preset"])
    return prepare.REAL | ({"rig"} if header.get("rig") else set())


def left(past: standing.Past, before: Reading | None, now: Reading, ours: tuple[int, int], powered: bool):
    """(State, reasons of each void part): the remaining state of a run whose drive reports `now`. `ours`: the
    least and most bytes that the run wrote since the reading `before`; `powered`: the drive kept its supply."""
    void = []
    past_ = state.interrupted(past.state, powered)
    if past.state == UNKNOWN:
        return UNKNOWN, ()
    if past.was_steady or past.rounds:
        void.append("the steady state: an interruption ends it")
    if past.state.name != past_.name:
        void.append("the rest of the drive: it lost its supply")
    if before is None or before.host_written_bytes is None or now.host_written_bytes is None:
        return UNKNOWN, (*void, "everything: no reading of the drive's counters proves that nothing else wrote to it")
    if before.firmware != now.firmware:
        return UNKNOWN, (*void, f"everything: the firmware was {before.firmware}, now it is {now.firmware}")
    counted = now.host_written_bytes - before.host_written_bytes
    nearest = min(max(counted, ours[0]), ours[1])
    if state.foreign(past_, nearest, counted, max(before.unit_bytes, now.unit_bytes)) == UNKNOWN:
        seen = f"{words.size(counted)} were written to the drive" if counted >= 0 else "its counter went back"
        return UNKNOWN, (*void, f"everything: {seen} since its last reading, {words.size(nearest)} by the run")
    lost = 0 if None in (before.used_bytes, now.used_bytes) else (before.used_bytes or 0) - (now.used_bytes or 0)
    if lost > TRIM_SEEN_BYTES:
        return UNKNOWN, (
            *void,
            f"everything: the drive holds {words.size(lost)} less than when it was last read: a trim",
        )
    return past_, tuple(void)


def lost_power(story: Story) -> bool:
    """Whether a cut that the run's owner had asked for ended its last part (asked_cut.py)."""
    return rundata.before_cut_ns(story.parts[-1][1]) is not None


def _since_reading(
    folders: list[Path], past: standing.Past, interface: str, acts: Sequence[Act]
) -> tuple[Reading | None, tuple[int, int]]:
    """The last reading of the drive's counters in any part, and what the run wrote since."""
    least = most = 0
    for i, folder in reversed(list(enumerate(folders))):
        snapshots = [snapshot for snapshot in _snapshots(folder) if snapshot["host_written_bytes"] is not None]
        last = max(snapshots, key=lambda snapshot: snapshot["t_ns"], default=None)
        cut = past.cut if folder == folders[-1] else None
        since_ns = last["t_ns"] if last else None
        more = written(folder, cut, since_ns, interface)
        least, most = least + more[0], most + more[1] + _stamped(folder, since_ns)
        if last:
            trimmed = any(_trims(part, acts, last["t_ns"] if part == folder else None) for part in folders[i:])
            seen = reading_of(last)
            return seen._replace(used_bytes=None) if trimmed else seen, (least, most)
    return None, (least, most)


def _stamped(folder: Path, since_ns: int | None) -> int:
    """How many bytes of sample blocks a part may have written after `since_ns` (None: in all)."""
    events = [event for event in journal.events(folder) if event["kind"] == "stamp"]
    return sum(event["bytes"] for event in events if since_ns is None or event["t_ns"] > since_ns)


def _trims(folder: Path, acts: Sequence[Act], since_ns: int | None) -> bool:
    """Whether a part began to trim or purge the drive itself after `since_ns` (None: ever)."""
    own = {act.path for act in acts if act.do in ("trim", "purge")}
    return any(
        event["kind"] == "step.start" and event.get("step") in own and (since_ns is None or event["t_ns"] > since_ns)
        for event in journal.events(folder)
    )


def snapshot_of(document: dict) -> dict:
    used = document.get("used_bytes")
    more = {"used_bytes": used if type(used) is int else None, "utc_ns": saved.utc_ns(document)}
    return counters.snapshot(document) | more


def last_snapshot(folders: Sequence[Path]) -> dict | None:
    """The last wear numbers of the drive in the parts of a run; None without."""
    for folder in reversed(folders):
        if snapshots := _snapshots(folder):
            return max(snapshots, key=lambda snapshot: snapshot["t_ns"])
    return None


def same_counters(before: Mapping | None, now: Mapping, known: Mapping) -> None:
    """Raises ExchangedDrive where the wear numbers `now` contradict those `before`: two drives may show one serial.

    known: the drive of run.json"""
    if before is None:
        return
    why = wear.contradiction(before, now)
    for kind, (name, *_) in wear.LIFE_COUNTERS.items():
        if wear.fell(before, now, kind):
            shown = words.size if name.endswith("_bytes") else str
            why = f"its last reading had {shown(before[name])} ({name}), this one has {shown(now[name])}"
    if why:
        expected = f"the drive of the run, {known['model']} {known['serial']}"
        raise ExchangedDrive(expected, f"another one of that serial: {why}", "connect it, or begin a run on this one")


def digests(folders: Sequence[Path]) -> dict[int, str] | None:
    """The digests of the last marks in the parts of a run, by byte offset: Held.digests(). None without."""
    for folder in reversed(folders):
        for event in reversed(journal.events(folder)):
            if event["kind"] == "marks" and isinstance(event.get("digests"), dict):
                marks = event["digests"].items()
                return {int(at): str(digest) for at, digest in marks if at.isdecimal() and len(at) < MOST_DIGITS}
    return None


def _snapshots(folder: Path) -> list[dict]:
    jobs_ = []
    for path in (folder / "smart").glob("*.json"):
        try:
            jobs_.append(snapshot_of(integrity.document_of(path)))
        except (AttributeError, OSError, ValueError, RecursionError):
            continue
    return [snapshot for snapshot in jobs_ if snapshot["t_ns"] is not None]


def reading_of(snapshot: Mapping) -> Reading:
    unit_bytes = int(snapshot["host_written_unit_bytes"] or 0)
    return Reading(snapshot["firmware"], snapshot["host_written_bytes"], unit_bytes, snapshot["used_bytes"])


def written(folder: Path, cut: Act | None, since_ns: int | None, interface: str) -> tuple[int, int]:
    """The least and the most bytes that the fio jobs and played traces of a part wrote after `since_ns` (None: all of
    it). Of a job that was killed what fio printed last is not all that it did."""
    least = most = 0
    for start in (folder / "played").rglob(playedlog.START):
        written = playedlog.written_bytes(start.parent, since_ns)
        least, most = least + written[0], most + written[1]
    jobs = sorted((_job(path) for path in (folder / "fio").rglob("start.json")), key=lambda job: job[0])
    for i, (_, rows) in enumerate(jobs):
        before = [size for t_ns, size in rows if since_ns is not None and t_ns <= since_ns]
        after = [size for t_ns, size in rows if since_ns is None or t_ns > since_ns]
        end = rows[-1][1]
        most += end - (before[-1] if before else 0)
        least += end - (after[0] if before and after else end if before else 0)
        if cut and i == len(jobs) - 1 and (since_ns is None or rows[-1][0] >= since_ns or not after):
            steps = [b - a for (_, a), (_, b) in zip(rows, rows[1:], strict=False)]
            fastest = max(steps, default=0) or (
                speeds.most_written_bytes(1, interface) if cut.keys.get("read") != 100 else 0
            )
            most += UNSEEN_S * fastest
    return least, most


def written_by(folders: list[Path]) -> int:
    """At least this many bytes were written by the parts of a run."""
    return sum(written(folder, None, None, "")[0] for folder in folders)


def _moved(folders: list[Path], story: list[tuple[dict, list[dict]]], past: standing.Past) -> int:
    """How many bytes the act that was cut short has moved, in all parts that went on with it."""
    moved = 0
    if past.cut and not past.cut.repeat:
        for folder, (header, _) in zip(reversed(folders), reversed(story), strict=True):
            jobs = (folder / "fio" / past.cut.folder(None, 0)).rglob("start.json")  # of a wear step one for each slice
            moved += sum(_job(start, None)[1][-1][1] for start in jobs)
            if (header.get("resumed") or {}).get("begins") != past.at:
                break
    return moved


def _job(start: Path, direction: str | None = "write") -> tuple[int, list[tuple[int, int]]]:
    """When a fio job began, and the bytes written (None: moved) by each of its documents: [(t_ns, bytes), …], 0
    first."""
    try:
        t_ns = int(integrity.document_of(start)["t_ns"])
    except (OSError, ValueError, KeyError, TypeError):
        t_ns = 0
    try:
        documents, _ = fiotext.documents(integrity.content(start.parent / "out.json").decode(errors="replace"))
    except OSError:
        documents = []
    rows = [(t_ns, 0)]
    for document in documents:  # the last, as fio printed it, has no time of ours
        size = max(rows[-1][1], fiotext.totals(document, direction)["bytes"])
        rows.append((int(document.get("t_ns", rows[-1][0])), size))
    return t_ns, rows
