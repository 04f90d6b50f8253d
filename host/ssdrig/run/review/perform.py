"""A review from its check to its end: the request is priced and confirmed, then the bench is made once and all
plans are run on it (carry.py)."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from ssdrig import report
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.drive import confirm, guard, identity, inventory
from ssdrig.drive.wear import warranty
from ssdrig.plan import grammar
from ssdrig.reading import review_folder
from ssdrig.reading.review_folder import Done, Planned, Review
from ssdrig.run import able, bench, budget, cut_short, options, prepare
from ssdrig.run.budget import Budget
from ssdrig.run.review import dry, ended, order
from ssdrig.run.review.carry import Carrying
from ssdrig.run.review.order import Item
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal, parts

KEPT = ("virtual", "capacity", "raw_nand", "purge", "seed")  # options that a resumed review has as it began
RUNS = ("drive", "destroy_data", "rig", "faults", "drive_faults", "influx", "runs")  # each run also gets these


def of_run(args: argparse.Namespace) -> argparse.Namespace:
    """The options of `ssdrig run` that these of a review stand for, checked. Raises UsageError."""
    run_args = options.parse(["consistency"])
    for key in (*KEPT, *RUNS):
        setattr(run_args, key, getattr(args, key))
    options.check(run_args)
    run_args.dry_run, run_args.json, run_args.jsonl, run_args.quiet = args.dry_run, False, False, args.quiet
    run_args.verbose = args.verbose
    return run_args


def begin(args: argparse.Namespace, show: Progress) -> int:
    """Run a new review. Returns its exit code."""
    _page_can_be_made(args)
    return _performed(args, show, of_run(args), None)


def go_on(folder: Path, args: argparse.Namespace, show: Progress) -> int:
    """Run the rest of a review. Returns its exit code. Raises JournalError if the folder is not a review,
    or another process executes it."""
    review = review_folder.read(folder)
    _only_shipped(review)
    _page_can_be_made(args)
    for key in KEPT:
        setattr(args, key, review.said["options"].get(key))
    if args.virtual is None:
        args.drive = args.drive or review.said["drive"]["serial"]
    args.level, args.runs = review.said["level"], str(folder.absolute().parent)
    with review_folder.held(review):
        return _performed(args, show, of_run(args), review)


def _only_shipped(review: Review) -> None:
    """Raises JournalError where review.json names a plan by its path: none is taken from a folder."""
    done = review_folder.done(review)
    names = [planned.plan for planned in review.plans if not planned.why and not done[planned.name].complete]
    if other := next((name for name in names if name not in grammar.shipped()), None):
        seen, do = printable(other[:80]), "it is damaged: take it from a copy of the review"
        raise JournalError(f"only plans of ssdrig in the {parts.REVIEW} of {review.folder}", seen, do)


def _page_can_be_made(args: argparse.Namespace) -> None:
    """Raises UsageError or JournalError for a page that could not be made at the end."""
    if args.out is not None:
        report.keep_others(Path(args.out))
    for folder in map(Path, args.against or ()):
        if (folder / parts.REVIEW).is_file():
            review_folder.read(folder)
        else:
            journal.run_header(folder)


def _performed(args: argparse.Namespace, show: Progress, run_args: argparse.Namespace, review: Review | None) -> int:
    with Stop(show) as stop:
        with Teardown(stop, show) as teardown:
            on = _on_real if args.drive else _on_virtual
            review_, code = on(args, run_args, review, show, stop, teardown)
        if review_ is None:
            return code
        with stop.held():  # the last line is owed, whatever signals come
            return ended.told(review_, args, show, code, stop)


def _on_virtual(
    args, run_args, review: Review | None, show: Progress, stop: Stop, teardown: Teardown
) -> tuple[Review | None, int]:
    from ssdrig.virtual import bench as virtual_bench
    from ssdrig.virtual.flash.presets import PRESETS

    preset = PRESETS[args.virtual]
    drive = options.virtual_drive(run_args)
    rated_bytes = preset.rated_tbw_TB * 1e12 * drive["capacity_bytes"] / preset.full_capacity_bytes
    items, spent = _items(args, review, drive, prepare.of_virtual(args.virtual), rated_bytes)
    dry.describe(args, review, drive, items, spent, rated_bytes, show)
    if args.dry_run:
        return None, 0
    if review and not any(item.prepared for item in items):
        return review, 0
    stored = _kept(review)
    show.say(f"starting the virtual bench ({args.virtual}, SIMULATED), one for all plans")
    with stop.held():
        capacity = str(review.said["drive"]["drive_bytes"]) if stored and review else args.capacity
        running = virtual_bench.start(
            args.virtual,
            capacity=capacity,
            faults=options.faults(args.faults),
            drive_faults=options.drive_faults(args.drive_faults),
            kept=stored,
            check=stop.check,
            show=show.show,
        )
        running.kept_in = stored  # removed once it is kept elsewhere
        folder: list[Path] = []
        teardown.push("end the virtual bench", lambda: running.end(folder[0] / "truth" if folder else None))
        bench_ = bench.virtual(running)
        current = review or _created(args, bench_.drive, items, spent, rated_bytes)
        folder.append(current.folder)
        code = _carried(current, bench_, prepare.of_virtual(args.virtual), run_args, show, stop, spent)
        if all(one.complete or one.run is None for one in review_folder.done(current).values()) and not stop.count:
            bench_.keep(None)  # nothing is left to do on it
    return current, code


def _kept(review: Review | None) -> Path | None:
    """Where the SIMULATED drive of a review that goes on was kept."""
    from ssdrig.virtual.device import kept

    runs = parts.all_runs(review.folder) if review else []
    return next((run / parts.DRIVE for run in runs if kept.facts(run / parts.DRIVE)), None)


def _on_real(
    args, run_args, review: Review | None, show: Progress, stop: Stop, teardown: Teardown
) -> tuple[Review | None, int]:
    drive = inventory.find(args.drive)
    if review:
        known = review.said["drive"]
        if differs := identity.conflict(known, asdict(drive)):
            seen = f"{drive.model} {drive.serial}, another {', '.join(differs)}"
            do = "connect it, or begin a review of this one"
            raise UsageError(f"the drive of the review, {known['model']} {known['serial']}", seen, do)
        able.same_format(asdict(drive), known)
        _same_rig(review, args.rig)
    raw, assumed = options.raw_nand(run_args, drive.model, drive.capacity_bytes)
    known = {**asdict(drive), "raw_nand_bytes": raw, "raw_nand_assumed": assumed, "time_dilation": 1}
    known |= {"power_states": bench.states_of(drive)}
    limits = warranty.limits_for(drive.model, drive.capacity_bytes)
    rated_bytes, can = warranty.rated_bytes(limits), able.of_real(drive, args.rig)
    items, spent = _items(args, review, known, can, rated_bytes)
    most_bytes = int(order.total(items).most_bytes)
    show.say(guard.announcement(drive, f"a review, level {args.level}", most_bytes, rated_bytes))
    dry.describe(args, review, known, items, spent, rated_bytes, show)
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, show.say)
        return None, 0
    if review and not any(item.prepared for item in items):
        return review, 0
    able.terminal(act for item in items if item.prepared for act in item.prepared.acts)
    serial = confirm.confirmed(drive, args.destroy_data)
    with stop.held():
        held = bench.real(drive, limits, serial, args.purge or "auto", raw, args.rig, assumed)
        bench_ = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        current = review or _created(args, bench_.drive, items, spent, rated_bytes)
        return current, _carried(current, bench_, can, run_args, show, stop, spent)


def _same_rig(review: Review, rig: str | None) -> None:
    """Raises UsageError where a review that measured power would go on without."""
    runs = [one.run for one in review_folder.done(review).values() if one.run]
    port = next((known["port"] for run in runs if (known := journal.run_header(run).get("rig"))), None)
    if port and not rig:
        raise UsageError(f"the rig of the review, which was at {port}", "no --rig", "give --rig PORT")


def _items(args, review: Review | None, drive: dict, can, rated_bytes: float | None) -> tuple[list[Item], Budget]:
    """The plans to run, in order, then the others, and the budget of all. Raises UsageError if none is to
    be run, or the first writes do not fit the budget."""
    if review is None:
        items = order.of_level(args.level, drive, can, args.runs, args.seed)
        spent = Budget(None) if args.budget is None else budget.parse(args.budget, rated_bytes)
    else:
        done = review_folder.done(review)
        items = _left(review, done, drive, can, args.runs)
        if review.said["budget_bytes"] is not None and args.budget is None and not (args.virtual or args.dry_run):
            seen = f"none; the folder states {review.said['budget_bytes']} B"
            raise UsageError("--budget on the command line: none is taken from a folder", seen, "give it again")
        most = review.said["budget_bytes"] if args.budget is None else budget.parse(args.budget, rated_bytes).most_bytes
        runs = [one.run for one in done.values() if one.run]
        spent = Budget(most, sum(cut_short.written_by(parts.of(folder)) for folder in runs))
    first = next((item for item in items if item.prepared), None)
    if first is None and review is None:
        raise UsageError(f"a plan of level {args.level} that runs on this bench", "none: " + _whys(items), "see above")
    if first and first.prepared:
        prepare.fits(spent, first.prepared.acts, str(args.budget))
    return items, spent


def _left(review: Review, done: dict[str, Done], drive: dict, can, runs: str) -> list[Item]:
    items = []
    for planned in review.plans:
        item = order.item_of(planned)
        if done[planned.name].complete:
            items.append(replace(item, why="done"))
        else:
            items.append(item if planned.why else order.on(item, drive, can, runs, planned.seed))
    return [*order.chained([item for item in items if item.prepared]), *(item for item in items if not item.prepared)]


def _whys(items: Sequence[Item]) -> str:
    return "; ".join(f"{item.name}: {item.why}" for item in items)


def _created(args, drive: dict, items: Sequence[Item], spent: Budget, rated_bytes: float | None) -> Review:
    plans = [
        Planned(i.name, i.plan, i.variant, dict(i.sets), i.prepared.seed if i.prepared else 0, i.why) for i in items
    ]
    document = {
        "level": args.level,
        "drive": drive,
        "rated_bytes": rated_bytes,
        "options": {key: getattr(args, key) for key in KEPT},
        "budget_bytes": spent.most_bytes,
        "plans": [asdict(planned) for planned in plans],
    }
    return review_folder.create(args.runs, document)


def _carried(review: Review, bench_, can, run_args, show: Progress, stop: Stop, spent: Budget) -> int:
    show.say(f"review folder: {review.folder}")
    return Carrying(review, bench_, can, run_args, show, stop, spent).all()
