"""`ssdrig resume RUN`: go on with a run that was killed, interrupted or rebooted. What is done of it, what state the
drive is in and what has to be done again: run/standing.py; here the reading of the folder and of the drive's counters,
and the carrying out, in a part of its own (parts.py)."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ssdrig import bench, journal, parts, words
from ssdrig.drive.smart import collect, counters
from ssdrig.drive.target import confirm, guard, inventory
from ssdrig.drive.wear import warranty
from ssdrig.errors import JournalError, UsageError
from ssdrig.load import fiotext
from ssdrig.plan import cost, expand, grammar, state
from ssdrig.plan.expand import Act
from ssdrig.plan.state import UNKNOWN, State
from ssdrig.progress import Progress
from ssdrig.run import able, dry_run, earlier, options, prepare, run, standing
from ssdrig.run import budget as budgets
from ssdrig.run.budget import Budget
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.steps import speeds

UNSEEN_S = 5  # of I/O that fio had done when it was killed and nobody had read of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", type=Path, help="the run folder")
    add("--drive", metavar="DRIVE", help="where the drive of the run is now (default: by its serial)")
    add("--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed")
    add("--purge", metavar="METHOD", help="how to empty a real drive, where that has to be done again")
    add("--rig", metavar="PORT", help="serial port of the rig that powers a real drive")
    add(
        "--budget", metavar="SIZE", help='as of ./ssdrig run, for all parts together (default: that of the run): "5 TB"'
    )
    add("--influx", metavar="URL", help="as of ./ssdrig run")
    add("--faults", metavar="JSON", help="faults of the virtual board")
    options.add_output(parser, "print what holds, what is void and what is done again; touch nothing")


def command(args) -> int:
    """Exit codes as of `run`; 0 for a run that has nothing left to do."""
    show = Progress(args.quiet)
    story = read(args.run)
    if story.past.at >= len(story.acts):
        show.say(f"{story.run}: all steps are done, nothing is left to do")
        if args.json or args.jsonl:
            print(json.dumps({"run": str(story.run), "acts": []}), flush=True)
        return 0
    args.runs = str(story.run.parent)
    on = _on_virtual if story.header["drive"].get("preset") else _on_real
    return run.performed(args, show, lambda *more: on(story, *more))[1]


class Reading(NamedTuple):
    """What a drive says of itself: None where it does not."""

    firmware: str | None
    host_written_bytes: int | None
    unit_bytes: int


@dataclass(frozen=True)
class Story:
    """A run that was cut short. `parts`: (run.json, events) of each; `folders`: theirs; `before`: the last reading of
    the drive's counters, `ours`: the least and the most bytes that the run wrote since; `doubts`: why what the folder
    says is not all that happened."""

    run: Path
    header: dict
    folders: list[Path]
    parts: list[tuple[dict, list[dict]]]
    plan: grammar.Plan
    acts: tuple[Act, ...]
    past: standing.Past
    before: Reading | None
    ours: tuple[int, int]
    moved_bytes: int
    doubts: tuple[str, ...] = ()


def read(folder: Path) -> Story:
    """The story of a run folder. Raises JournalError for one that is no run of a plan, that still goes on, or whose
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
    said = header.get("plan")
    if not isinstance(said, dict) or not all(key in said for key in ("text", "acts", "params", "variant")):
        raise JournalError(f"the run of a plan in {folder}", "a run.json without one", "begin the run anew")
    if odd := parts.strange(folder):
        raise JournalError(f"the run {folder} with all its parts", "; ".join(odd), "take it whole from a copy")
    plan = grammar.of_run(said, str(folder / "run.json"))
    acts = tuple(expand.expand(plan, header["drive"], _capabilities(header)))
    if said.get("finish", "keep") != "keep":
        acts += (prepare.last_act(said["finish"], header["drive"]),)
    if [act.label for act in acts] != said["acts"]:
        raise JournalError(
            f"the plan of {folder} to be read as when it began",
            "other steps",
            "go on with the ssdrig that began it, or begin the run anew",
        )
    folders = parts.of(folder)
    story = [(journal.open_run(part), journal.events(part)) for part in folders]
    for resumed in filter(None, (header.get("resumed") for header, _ in story)):
        if not (0 <= resumed["begins"] < len(acts) and resumed["round"] >= 1):
            raise ValueError(f"resumed at act {resumed['begins']}, round {resumed['round']}")
    doubts = parts.doubts(folders)
    past = standing.past(acts, story)
    if (jobs := sum(1 for part in folders for _ in (part / "fio").rglob("start.json"))) > past.jobs:
        doubts.append(f"fio was started {jobs} times, events.jsonl tells of {past.jobs}")
    before, ours = _since_reading(folders, past, str(header["drive"].get("interface")))
    return Story(
        folder, header, folders, story, plan, acts, past, before, ours, _moved(folders, story, past), tuple(doubts)
    )


def _capabilities(header: Mapping) -> frozenset[str]:
    """What the bench could do when the run began."""
    can = header["plan"].get("can")
    if isinstance(can, list):
        return frozenset(can)
    if header["drive"].get("preset"):
        return prepare.VIRTUAL
    return prepare.REAL | ({"rig"} if header.get("rig") else set())


def left(past: standing.Past, before: Reading | None, now: Reading, ours: tuple[int, int], powered: bool):
    """(State, words of what is void and why): what is left of the state of a run whose drive says `now`. `ours`: the
    least and most bytes that the run wrote since the reading `before`; `powered`: the drive kept its supply."""
    void = []
    found = state.interrupted(past.state, powered)
    if past.state == UNKNOWN:
        return UNKNOWN, ()
    if past.was_steady or past.rounds:
        void.append("the steady state: an interruption ends it")
    if past.state.name != found.name:
        void.append("the rest of the drive: it lost its supply")
    if before is None or before.host_written_bytes is None or now.host_written_bytes is None:
        return UNKNOWN, (*void, "everything: no reading of the drive's counters says that nobody else wrote to it")
    if before.firmware != now.firmware:
        return UNKNOWN, (*void, f"everything: the firmware was {before.firmware}, now it is {now.firmware}")
    counted = now.host_written_bytes - before.host_written_bytes
    nearest = min(max(counted, ours[0]), ours[1])
    if state.foreign(found, nearest, counted, max(before.unit_bytes, now.unit_bytes)) == UNKNOWN:
        seen = f"{words.size(counted)} were written to the drive" if counted >= 0 else "its counter went back"
        return UNKNOWN, (*void, f"everything: {seen} since its last reading, {words.size(nearest)} by the run")
    return found, tuple(void)


# ---- what the folder says


def _since_reading(folders: list[Path], past: standing.Past, interface: str) -> tuple[Reading | None, tuple[int, int]]:
    """The last reading of the drive's counters in any part, and what the run wrote since."""
    least = most = 0
    for folder in reversed(folders):
        snapshots = [snapshot for snapshot in _snapshots(folder) if snapshot["host_written_bytes"] is not None]
        last = max(snapshots, key=lambda snapshot: snapshot["t_ns"], default=None)
        cut = past.cut if folder == folders[-1] else None
        more = _written(folder, cut, last["t_ns"] if last else None, interface)
        least, most = least + more[0], most + more[1]
        if last:
            return _reading(last), (least, most)
    return None, (least, most)


def _snapshots(folder: Path) -> list[dict]:
    found = []
    for path in (folder / "smart").glob("*.json"):
        try:
            found.append(counters.snapshot(json.loads(path.read_bytes())))
        except (OSError, ValueError, RecursionError):
            continue
    return [snapshot for snapshot in found if snapshot["t_ns"] is not None]


def _reading(snapshot: Mapping) -> Reading:
    return Reading(snapshot["firmware"], snapshot["host_written_bytes"], int(snapshot["host_written_unit_bytes"] or 0))


def _written(folder: Path, cut: Act | None, since_ns: int | None, interface: str) -> tuple[int, int]:
    """The least and the most bytes that the fio jobs of a part wrote after `since_ns` (None: all of it). Of a job that
    was killed what fio printed last is not all that it did."""
    least = most = 0
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


def _moved(folders: list[Path], story: list[tuple[dict, list[dict]]], past: standing.Past) -> int:
    """How many bytes the act that was cut short has moved, in all parts that went on with it."""
    moved = 0
    if past.cut and not past.cut.repeat:
        for folder, (header, _) in zip(reversed(folders), reversed(story), strict=True):
            moved += _job(folder / "fio" / past.cut.folder(None, 0) / "start.json", None)[1][-1][1]
            if (header.get("resumed") or {}).get("begins") != past.at:
                break
    return moved


def _job(start: Path, direction: str | None = "write") -> tuple[int, list[tuple[int, int]]]:
    """When a fio job began, and what it had written (None: moved) by each of its documents: [(t_ns, bytes), …], 0
    first."""
    try:
        t_ns = int(json.loads(start.read_bytes())["t_ns"])
    except (OSError, ValueError, KeyError, TypeError):
        t_ns = 0
    try:
        found, _ = fiotext.documents((start.parent / "out.json").read_text(errors="replace"))
    except OSError:
        found = []
    rows = [(t_ns, 0)]
    for each in found:  # the last, as fio printed it, has no time of ours
        size = max(rows[-1][1], fiotext.totals(each, direction)["bytes"])
        rows.append((int(each.get("t_ns", rows[-1][0])), size))
    return t_ns, rows


# ---- going on


def _on_virtual(story: Story, args, show: Progress, stop: Stop, teardown: Teardown):
    from ssdrig.virtual import bench as virtual_bench
    from ssdrig.virtual.device import kept

    drive, folder = story.header["drive"], story.run / parts.DRIVE
    facts = kept.facts(folder)
    if facts:
        now = Reading(facts["firmware"], facts["host_written_bytes"], kept.UNIT_BYTES)
        found, void = left(story.past, story.before, now, story.ours, True)
    else:
        found, void = UNKNOWN, ("everything: the SIMULATED drive was not kept, a new one takes its place",)
    prepared, todo = _prepared(story, drive, found, void)
    budget = _able(story, args, prepared, None, prepare.VIRTUAL)
    _describe(story, args, prepared, todo, budget, None, show)
    if args.dry_run:
        return None, None
    show.say("starting the virtual bench (SIMULATED)")
    with stop.held():
        running = virtual_bench.start(
            drive["preset"],
            capacity=str(drive["drive_bytes"]),
            faults=options.faults(args.faults),
            kept=folder if facts else None,
            check=stop.check,
        )
        part: list[Path] = []
        teardown.push("end the virtual bench", lambda: running.end(keep_truth_in=part[0] / "truth" if part else None))
        here = bench.virtual(running)
        return _carry_out(story, args, prepared, todo, here, show, stop, budget, part)


def _on_real(story: Story, args, show: Progress, stop: Stop, teardown: Teardown):
    known = story.header["drive"]
    drive = inventory.find(args.drive or known["serial"] or "")
    if (drive.model, drive.serial) != (known["model"], known["serial"]):
        raise UsageError(
            f"the drive of the run, {known['model']} {known['serial']}",
            f"{drive.model} {drive.serial}",
            "connect it, or begin a run on this one",
        )
    able.same_format(asdict(drive), known)
    now = _reading(counters.snapshot(collect.poll(drive)))._replace(firmware=drive.firmware)
    before = story.before and story.before._replace(firmware=known.get("firmware"))
    powered = story.parts[-1][0].get("host", {}).get("boot_id") == run.boot_id() is not None
    found, void = left(story.past, before, now, story.ours, powered)
    prepared, todo = _prepared(story, {**asdict(drive), **_of_run(known)}, found, void)
    limits = warranty.limits_for(drive.model, drive.capacity_bytes)
    rated_bytes = warranty.rated_bytes(limits)
    budget = _able(story, args, prepared, rated_bytes, able.of_real(drive, args.rig))
    show.say(guard.announcement(drive, f"the rest of {story.run.name}", int(prepared.cost.most_bytes), rated_bytes))
    _describe(story, args, prepared, todo, budget, rated_bytes, show)
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, show.say)
        return None, None
    serial = confirm.confirmed(drive, args.destroy_data)
    with stop.held():
        assumed = bool(known.get("raw_nand_assumed"))
        held = bench.real(drive, limits, serial, args.purge or "auto", known.get("raw_nand_bytes"), args.rig, assumed)
        here = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        return _carry_out(story, args, prepared, todo, here, show, stop, budget, [])


def _of_run(known: Mapping) -> dict:
    kept = {key: known.get(key) for key in ("raw_nand_bytes", "raw_nand_assumed")}
    return {**kept, "time_dilation": 1}


def _carry_out(story: Story, args, prepared, todo, here, show: Progress, stop: Stop, budget: Budget, part: list[Path]):
    """The rest of the run, in its next part, whose folder goes into `part`."""
    resumed = {"part": len(story.folders) + 1, "begins": todo.begins, "round": todo.round, "state": asdict(todo.kept)}
    resumed |= {"void": list(todo.void), "redone": list(todo.redone)}
    same = {key: story.header[key] for key in ("run", "plan", "method")}

    def begin(header: dict) -> journal.Journal:
        book = parts.begin(story.run, header | same | {"resumed": resumed})
        part.append(book.path)
        return book

    changed = standing.changed(story.parts, run.boot_id())
    folder, end = run.carry_out(args, prepared, here, show, stop, budget, begin, story.past.jobs, changed)
    run.forget(here, end)
    return parts.root(folder), end


def _prepared(
    story: Story, drive: Mapping, now: State, void: tuple[str, ...]
) -> tuple[prepare.Prepared, standing.Todo]:
    if story.doubts:
        now, void = UNKNOWN, (*void, *(f"everything: {each}" for each in story.doubts))
    todo = standing.todo(story.acts, story.past, now, void, story.moved_bytes)
    known = earlier.speeds(story.run.parent, story.plan, drive)
    seed = story.header["method"].get("seed") or 0
    leaves = state.prove(todo.acts, todo.kept)
    whole = cost.total(todo.acts, drive, known)
    seen = earlier.points(event for _, events in story.parts for event in events)
    return prepare.Prepared(story.plan, todo.acts, seed, whole, leaves, known, drive, seen), todo


def _able(story: Story, args, prepared: prepare.Prepared, rated_bytes, can: frozenset[str]) -> Budget:
    """The budget of a rest that this bench can carry out. Raises UsageError, which says what is lacking."""
    able.the_rest(story.plan, prepared.acts, story.header["drive"], can)
    if not args.dry_run:
        able.terminal(prepared.acts)
    budget = _budget(story, args, rated_bytes)
    prepare.fits(budget, prepared.acts, words.size(budget.most_bytes or 0))
    return budget


def _budget(story: Story, args, rated_bytes: float | None) -> Budget:
    """What may be written in all, and what was by now."""
    said = story.header.get("budget_bytes")
    most = budgets.parse(args.budget, rated_bytes).most_bytes if args.budget is not None else said
    written = sum(_written(folder, None, None, "")[0] for folder in story.folders)
    return Budget(most, written)


def _describe(story: Story, args, prepared, todo: standing.Todo, budget: Budget, rated_bytes, show: Progress) -> None:
    cut, act = story.past.cut, story.acts[todo.begins]
    where = (
        f"in {cut.label}" + (f", round {story.past.rounds + 1}" if cut and cut.repeat else "")
        if cut
        else "between steps"
    )
    goes_on = f"{act.repeat.path}, round {todo.round}" if act.repeat else act.path
    lines = [f"{story.run.name}: cut short {where}; part {len(story.folders) + 1} goes on with {goes_on}"]
    lines.append(f"  holds           the drive is {todo.kept.words()}")
    lines += [f"  void            {each}" for each in todo.void]
    lines += [f"  done again      {each}" for each in todo.redone]
    show.say("\n".join([*lines, *dry_run.table(prepared, budget, rated_bytes)]))
    if args.dry_run and (args.json or args.jsonl):
        said: dict[str, Any] = {"run": str(story.run), "part": len(story.folders) + 1, "begins": act.label}
        said |= {"round": todo.round, "state": asdict(todo.kept), "void": todo.void, "redone": todo.redone}
        print(json.dumps({**prepare.as_json(prepared), "resume": said}, default=str), flush=True)
