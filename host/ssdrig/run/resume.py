"""`ssdrig resume RUN`: go on with a run that was killed, interrupted or rebooted. run/standing.py works out the acts
done, the state of the drive and the acts to repeat, from the folder
(cut_short.py); here the executing, in its own part (parts.py)."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ssdrig import __version__
from ssdrig.base import system, words
from ssdrig.base.arguments import RIG, add_dry_run
from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.drive import confirm, guard, identity, inventory
from ssdrig.drive.wear import warranty
from ssdrig.plan import cost, state
from ssdrig.plan.rules import laid
from ssdrig.plan.rules.laid import Laid
from ssdrig.plan.state import UNKNOWN, State
from ssdrig.powerloss.server_lock import ServerLock
from ssdrig.run import (
    able,
    bench,
    cut_short,
    cutting,
    dry_run,
    earlier,
    given_again,
    keeping,
    options,
    prepare,
    run,
    standing,
)
from ssdrig.run import budget as budgets
from ssdrig.run.budget import Budget
from ssdrig.run.cut_short import Story
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal, named, parts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", type=Path, help=f"a run or a review: {named.HELP}")
    named.add_parent(parser, dest="runs")
    add_dry_run(parser, "print the parts that are valid, void and repeated; touch nothing")
    add("--drive", metavar="DRIVE", help="the run's drive at its current path (default: found by its serial)")
    add("--destroy-data", metavar="SERIAL", help="repeat the serial to confirm that all data may be destroyed")
    add("--purge-method", dest="purge", metavar="METHOD", help="how to empty a real drive, if that is repeated")
    add("--rig", metavar="PORT", help=RIG)
    add(
        "--without-rig",
        action="store_true",
        help="continue without the rig that the run began with: no power, no energy",
    )
    add("--budget", metavar="SIZE", help='for all parts together, e.g. "5 TB" (default: that of the run)')
    add("--influx", metavar="URL", help="http://host:port/DB to send points to (default: $SSDRIG_INFLUX)")
    add("--faults", metavar="JSON", help="faults of the virtual board")
    add("--drive-faults", metavar="JSON", help="faults of the virtual drive at a loss of power")
    given_again.add_arguments(parser)
    options.add_result(parser)


def command(args) -> int:
    """Exit codes as of `run`; 0 for a run that has nothing left to do."""
    show = Progress(args.quiet)
    story = cut_short.read(args.run)
    if story.past.at >= len(story.acts):
        show.say(f"{story.run}: all steps are done, nothing is left to do")
        if args.json or args.jsonl:
            print(json.dumps({"run": str(story.run), "acts": []}), flush=True)
        return 0
    if any(act.do == "record" for act in story.acts):
        raise UsageError("a run of a plan", "a recording, which cannot be continued", "start another: ./ssdrig record")
    args.runs = str(story.run.parent)
    known = story.header["drive"]
    given_again.check(args, story.run, story.header, story.acts)
    on = _on_virtual if known.get("preset") else _on_target if known.get("target") else _on_real
    return run.performed(args, show, lambda *more: on(story, *more))[1]


def _on_virtual(story: Story, args, show: Progress, stop: Stop, teardown: Teardown):
    from ssdrig.virtual import bench as virtual_bench
    from ssdrig.virtual.device import persistence

    drive, folder = story.header["drive"], story.run / parts.DRIVE
    facts = persistence.facts(folder)
    if facts:
        now = cut_short.Reading(facts["firmware"], facts["host_written_bytes"], persistence.UNIT_BYTES)
        remaining, void = cut_short.left(story.past, story.before, now, story.ours, not cut_short.lost_power(story))
    else:
        remaining, void = UNKNOWN, ("everything: the SIMULATED drive was not kept, a new one takes its place",)
    prepared, todo = rest_of(story, drive, remaining, void)
    budget = _able(story, args, prepared, None, prepare.of_virtual(drive["preset"]))
    _describe(story, args, prepared, todo, budget, None, show)
    if args.dry_run:
        return None, None
    show.say("starting the virtual bench (SIMULATED)")
    with stop.held():
        running = virtual_bench.start(
            drive["preset"],
            capacity=str(drive["drive_bytes"]),
            faults=options.faults(args.faults),
            drive_faults=options.drive_faults(args.drive_faults),
            drive_folder=folder if facts else None,
            check=stop.check,
            show=show.show,
            data=cutting.data(prepared.acts),
        )
        part: list[Path] = []
        teardown.push("end the virtual bench", lambda: running.end(keep_truth_in=part[0] / "truth" if part else None))
        bench_ = bench.virtual(running)
        folder, end = carry_out(story, args, prepared, todo, bench_, show, stop, budget, part)
        if not keeping.reads_back(prepared.acts):
            run.forget(bench_, end)
        return folder, end


def _on_real(story: Story, args, show: Progress, stop: Stop, teardown: Teardown):
    known, commands = story.header["drive"], cutting.commands(args)
    drive = inventory.find(args.drive or known["serial"] or "")
    if differs := identity.conflict(known, asdict(drive)):
        raise UsageError(
            f"the drive of the run, {known['model']} {known['serial']}",
            f"{drive.model} {drive.serial}, another {', '.join(differs)}",
            "connect it, or begin a run on this one",
        )
    able.same_format(asdict(drive), known)
    able.same_rig(story.parts[-1][0].get("rig"), args.rig, args.without_rig)
    snapshot = cut_short.snapshot_of(bench.polled(drive))
    cut_short.same_counters(story.snapshot, snapshot, known)
    now = cut_short.reading_of(snapshot)._replace(firmware=drive.firmware)
    before = story.before and story.before._replace(firmware=known.get("firmware"))
    powered = story.parts[-1][0].get("host", {}).get("boot_id") == system.boot_id() is not None
    powered = powered and not cut_short.lost_power(story)
    remaining, void = cut_short.left(story.past, before, now, story.ours, powered)
    prepared, todo = rest_of(story, {**asdict(drive), **_of_run(known)}, remaining, void)
    limits = warranty.limits_for(drive.model, drive.capacity_bytes)
    rated_bytes = warranty.rated_bytes(limits)
    budget = _able(story, args, prepared, rated_bytes, able.of_real(drive, args.rig, story.plan.asks, commands))
    writes = keeping.writes(prepared.acts)
    if writes:
        show.say(guard.announcement(drive, f"the rest of {story.run.name}", int(prepared.cost.most_bytes), rated_bytes))
    _describe(story, args, prepared, todo, budget, rated_bytes, show)
    cutting.describe(drive, bool(known.get("plp_claimed")), commands, prepared.acts, show.say)
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, show.say, resumed=story.run)
        return None, None
    serial = confirm.confirmed(drive, args.destroy_data) if writes else args.destroy_data
    with stop.held():
        assumed, how = bool(known.get("raw_nand_assumed")), (commands, bool(known.get("plp_claimed")))
        held = bench.real(
            drive,
            limits,
            serial,
            args.purge or "auto",
            known.get("raw_nand_bytes"),
            args.rig,
            assumed,
            *how,
            handles=known.get("placement_handles") or (),
            resumed=story.run,
            digests=cut_short.digests(story.folders),
        )
        bench_ = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        return carry_out(story, args, prepared, todo, bench_, show, stop, budget, [])


def _on_target(story: Story, args, show: Progress, stop: Stop, teardown: Teardown):
    known = story.header["drive"]
    prepared, todo = rest_of(story, known, UNKNOWN, ("everything: an NBD server counts nothing",))
    budget = _able(story, args, prepared, None, able.of_server())
    _describe(story, args, prepared, todo, budget, None, show)
    if args.dry_run:
        return None, None
    cutting.confirmed(args)
    given = {"target": args.target, "power_off": args.power_off, "power_on": args.power_on}
    server = cutting.server({**known, **given, "plp_claimed": bool(known.get("plp_claimed"))})
    with stop.held():
        teardown.push("release the lock of the target", ServerLock(args.target).close)
        return carry_out(story, args, prepared, todo, server, show, stop, budget, [])


def _of_run(known: Mapping) -> dict:
    claims = {key: known.get(key) for key in ("raw_nand_bytes", "raw_nand_assumed", "rated_write_bytes")}
    abilities = {key: known.get(key) for key in ("power_states", "placement_handles")}
    return {**claims, **abilities, "time_dilation": 1}


def carry_out(
    story: Story,
    args,
    prepared,
    todo,
    bench_,
    show: Progress,
    stop: Stop,
    budget: Budget,
    part: list[Path],
    after_s: tuple[float, float] = (0.0, 0.0),
) -> tuple[Path, dict]:
    """The rest of the run, in its next part, whose folder goes into `part`. See run.carry_out()."""
    resumed = {"part": len(story.folders) + 1, "begins": todo.begins, "round": todo.round, "state": asdict(todo.state)}
    resumed |= {"void": list(todo.void), "redone": list(todo.redone)}
    same = {key: story.header[key] for key in ("run", "plan", "method")}

    def begin(header: dict) -> journal.Journal:
        book = parts.begin(story.run, header | same | {"resumed": resumed})
        if other := _other_version(story):
            book.event("note", text=other)
        part.append(book.path)
        return book

    changed = standing.changed(story.parts, system.boot_id())
    board = None if bench_.simulated else board_of(story)
    folder, end = run.carry_out(
        args, prepared, bench_, show, stop, budget, begin, story.past.jobs, changed, after_s, board
    )
    return parts.root(folder), end


def board_of(story: Story) -> dict | None:
    """The first greeting of the run's rig; None: it had none."""
    events = (event for _, part in story.parts for event in part)
    return next((event["hello"] for event in events if event["kind"] == "rig.hello" and event.get("hello")), None)


def rest_of(story: Story, drive: Mapping, now: State, void: tuple[str, ...]) -> tuple[prepare.Prepared, standing.Todo]:
    """The acts that remain to end a run on a drive in the state `now` (cut_short.left), priced."""
    if story.doubts:
        now, void = UNKNOWN, (*void, *(f"everything: {doubt}" for doubt in story.doubts))
    todo = standing.todo(story.acts, story.past, now, void, story.moved_bytes)
    todo = replace(todo, acts=prepare.measured(todo.acts, drive))
    known = earlier.speeds(story.run.parent, story.plan, drive)
    seed = story.header["method"].get("seed") or 0
    leaves = state.prove(todo.acts, todo.state)
    whole = cost.total(todo.acts, drive, known)
    seen = earlier.points(event for _, events in story.parts for event in events)
    # until now the drive may have collected garbage: random overwrites are not counted
    before = laid.last(event for _, events in story.parts for event in events)
    before = Laid(before.written_bytes, min(before.valid_bytes, todo.state.valid_bytes))
    return prepare.Prepared(story.plan, todo.acts, seed, whole, leaves, known, drive, seen, laid=before), todo


def _able(story: Story, args, prepared: prepare.Prepared, rated_bytes, can: frozenset[str]) -> Budget:
    """The budget of a rest that this bench can execute. Raises UsageError, which names the missing parts."""
    fits(story, prepared, can)
    if not args.dry_run:
        able.terminal(prepared.acts)
    budget = _budget(story, args, rated_bytes)
    prepare.fits(budget, prepared.acts, words.size(budget.most_bytes or 0))
    return budget


def fits(story: Story, prepared: prepare.Prepared, can: frozenset[str]) -> None:
    """Raises UsageError where this bench, or this ssdrig, cannot do the rest as it was begun."""
    able.the_rest(story.plan, prepared.acts, story.header["drive"], can)
    acts = prepare.measured(story.acts, story.header["drive"])
    begun = replace(prepared, acts=acts, drive=story.header["drive"])
    able.same_jobs(story.header["plan"].get("jobs_crc"), prepare.jobs_crc(begun))


def _budget(story: Story, args, rated_bytes: float | None) -> Budget:
    """The whole budget, and the bytes written so far."""
    budget_bytes = story.header.get("budget_bytes")
    most = budgets.parse(args.budget, rated_bytes).most_bytes if args.budget is not None else budget_bytes
    return Budget(most, cut_short.written_by(story.folders))


def _other_version(story: Story) -> str | None:
    """A note that another ssdrig version began the run. Its fio jobs are compared (able.same_jobs), its reading of a
    plan as, too; other measurements may differ."""
    begun = str(story.header.get("ssdrig"))
    if begun == __version__:
        return None
    return f"ssdrig {begun} began this run, {__version__} goes on: same fio jobs, but figures from two versions"


def _describe(story: Story, args, prepared, todo: standing.Todo, budget: Budget, rated_bytes, show: Progress) -> None:
    if story.header["drive"].get("preset") or args.rig:
        prepared = replace(prepared, can=prepared.can | {"rig"})
    show.say("\n".join([*in_words(story, todo), *dry_run.table(prepared, budget, rated_bytes)]))
    if other := _other_version(story):
        show.warn(other)
    if args.dry_run and (args.json or args.jsonl):
        act = story.acts[todo.begins]
        report: dict[str, Any] = {"run": str(story.run), "part": len(story.folders) + 1, "begins": act.label}
        report |= {"round": todo.round, "state": asdict(todo.state), "void": todo.void, "redone": todo.redone}
        print(json.dumps({**prepare.as_json(prepared), "resume": report}, default=str), flush=True)


def in_words(story: Story, todo: standing.Todo) -> list[str]:
    """Where a run was cut short and continues, with its valid, void and repeated parts."""
    cut, act = story.past.cut, story.acts[todo.begins]
    where = (
        f"in {cut.label}" + (f", round {story.past.rounds + 1}" if cut and cut.repeat else "")
        if cut
        else "between steps"
    )
    goes_on = f"{act.repeat.path}, round {todo.round}" if act.repeat else act.path
    lines = [f"{story.run.name}: cut short {where}; part {len(story.folders) + 1} goes on with {goes_on}"]
    lines.append(f"  holds           the drive is {todo.state.words()}")
    lines += [f"  void            {label}" for label in todo.void]
    lines += [f"  done again      {label}" for label in todo.redone]
    return lines
