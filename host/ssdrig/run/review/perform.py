"""A review from its check to its end: the request is priced and confirmed, then the bench is made once and all
plans are run on it (carry.py).

The forecast of a review, before anything is touched: its plans in order, each with its time and bytes written.

Carry a review out: one bench for all of its plans, each plan its own run; an interrupted one goes on. A
plan that fails does not stop the others; a drive, a rig or a run folder that is lost is.

What a review came to, once its last plan has ended: its page, and how to go on where something is left."""

import argparse
import contextlib
import json
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ssdrig import report
from ssdrig.base import system, words
from ssdrig.base.errors import INTERRUPTED, DriveError, JournalError, RigError, SsdrigError, UsageError, words_of
from ssdrig.base.progress import Progress
from ssdrig.base.terminal import printable
from ssdrig.base.words import digits, size
from ssdrig.drive import confirm, guard, identity, inventory
from ssdrig.drive.wear import warranty
from ssdrig.plan import cost, grammar, history
from ssdrig.plan.history import Left
from ssdrig.plan.rules import laid
from ssdrig.plan.state import UNKNOWN
from ssdrig.reading import library_file, review_folder
from ssdrig.reading.review_folder import Done, Planned, Review
from ssdrig.report import review_page
from ssdrig.run import able, bench, budget, cut_short, dry_run, given_again, options, prepare, resume, run
from ssdrig.run.bench import Bench
from ssdrig.run.budget import Budget
from ssdrig.run.cut_short import Story
from ssdrig.run.review import order
from ssdrig.run.review.order import Item, chained, host_s, item_of, on
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal, parts


def finish(review: Review, args, show: Progress, code: int, stop: Stop) -> int:
    """Make the page, unless a signal has stopped the review or stops it now; print the plans that ran, and how to
    continue where some were not. Returns the exit code."""
    done, asked = review_folder.done(review), stop.count
    page = None if code == INTERRUPTED else _page(review, args, show, stop)
    code = code or INTERRUPTED * (stop.count > asked)
    if args.json:
        print(json.dumps(as_json(review, code, page)), flush=True)
    left = [planned.name for planned in review.plans if not planned.why and not done[planned.name].complete]
    for name in left:
        show.warn(f"{name}: {done[name].state}{f', {done[name].why}' if done[name].why else ''}")
    if left:
        show.warn(_going_on(review))
    else:
        show.say(f"complete: {sum(one.complete for one in done.values())} plans")
    show.say(f"review folder: {review.folder}\nreport:        ./ssdrig report {review.folder}")
    return code


def _going_on(review: Review) -> str:
    return f"go on with: ./ssdrig review --resume {printable(shlex.quote(str(review.folder)))}"


def _page(review: Review, args, show: Progress, stop: Stop) -> Path | None:
    """All of the review is in its folder by now, so nothing that goes wrong here is its. A signal ends it."""
    out = Path(args.out or review.folder / "report.html")
    show.show("the page")
    try:
        with stop.next_raises("the page"):
            against = None if args.against is None else list(map(Path, args.against))
            review_page.write(review.folder, against, out, show.warn)
    except KeyboardInterrupt:
        show.warn(f"page: stopped by {stop.name}; make it with ./ssdrig report {review.folder}")
        return None
    except Exception as error:
        show.warn(f"page: not to be had, {words_of(error)}; make it with ./ssdrig report {review.folder}")
        return None
    show.say(f"page: {out.resolve()} ({size(out.stat().st_size)})")
    return out


def as_json(review: Review, code: int, page: Path | None) -> dict:
    """{"review", "level", "exit_code", "page", "plans": [{"plan", "run", "state", "why"}]}."""
    done = review_folder.done(review)
    plans = [
        {"plan": name, "run": str(one.run) if one.run else None, "state": one.state, "why": one.why}
        for name, one in done.items()
    ]
    document = {"review": str(review.folder), "level": review.document["level"], "exit_code": code}
    return document | {"page": str(page) if page else None, "plans": plans}


ENDS = (INTERRUPTED, DriveError.exit_code, RigError.exit_code, JournalError.exit_code)  # of a run: so ends the review


@dataclass
class Carrying:
    """A review being executed. `now`: what the run before has left of the drive, if known."""

    review: Review
    bench: Bench
    can: frozenset[str]
    args: argparse.Namespace
    show: Progress
    stop: Stop
    budget: Budget
    now: Left = Left()
    by: str = ""
    since_ns: int = 0

    def all(self) -> int:
        """Every plan that is not complete, in order. Returns the exit code: 0, that of the first plan that failed, or
        that of the one with which the review ended."""
        done, code = review_folder.done(self.review), 0
        items = self._items(done)
        whole = sum(1 for plan in self.review.plans if not plan.why)
        for i, item in enumerate(items):
            self.show.say(f"review: plan {whole - len(items) + i + 1} of {whole}, {item.name}")
            assert item.prepared
            first = next((act for act in item.prepared.acts if act.do in ("fill", "load") and not act.not_run), None)
            if first and (why := self.budget.why_not(first)):
                self.show.warn(f"the review ends before {item.name}: {why}")
                return code
            end = self._one(item, done[item.name], rest_s(items[i + 1 :]))
            if end["exit_code"]:
                self.show.warn(f"{item.name}: {end['state']}: {end['why']}")
            code = code or end["exit_code"]
            if self.stop.count or end["exit_code"] in ENDS:
                return end["exit_code"] or code
            if end["state"] == "complete" and end["why"]:  # the budget
                self.show.warn(f"the review ends in {item.name}: {end['why']}")
                return code
        return code

    def _items(self, done: Mapping[str, Done]) -> list[Item]:
        """The remaining plans, each with the acts it will skip."""
        todo = [planned for planned in self.review.plans if not planned.why and not done[planned.name].complete]
        prepared = [on(item_of(planned), self.bench.drive, self.can, self.args.runs, planned.seed) for planned in todo]
        for item in prepared:
            if not item.prepared:
                self.show.warn(f"{item.name} is not run: {item.why}")
        return chained([item for item in prepared if item.prepared])

    def _one(self, item: Item, was: Done, after_s: tuple[float, float]) -> dict:
        """One plan, or the rest of it. Returns the end of its run."""
        assert item.prepared
        story = self._story(was)
        if story and story.past.at < len(story.acts):
            folder, end = self._rest(story, after_s)
        else:
            folder, end = self._whole(item, after_s)
        self.now, self.by, self.since_ns = self._left(folder, end), folder.name, time.monotonic_ns()
        return end

    def _whole(self, item: Item, after_s: tuple[float, float]) -> tuple[Path, dict]:
        prepared = item.prepared
        assert prepared
        count = history.may_leave_out(self._left_by_last(), prepared.acts, prepared.plan)
        if count:
            saves = ", ".join(dict.fromkeys(act.path for act in prepared.acts[:count] if not act.not_run))
            self.show.say(f"{item.name}: {saves} left out, the drive is as {self.by} has left it")
        of = {"review": {"folder": self.review.folder.name, "plan": item.name}}

        def begin(header: dict) -> journal.Journal:
            return journal.create(self.review.folder, header | of)

        if count:
            prepared = prepare.leave_out(
                prepared, count, self.by, laid.last(journal.events(self.review.folder / self.by))
            )
        return run.carry_out(self.args, prepared, self.bench, self.show, self.stop, self.budget, begin, after_s=after_s)

    def _story(self, was: Done) -> Story | None:
        """An interrupted run that can be resumed; None without one."""
        if was.run is None:
            return None
        try:
            story = cut_short.read(was.run)
        except SsdrigError as error:
            self.show.warn(f"{was.run.name} is begun again: {error}")
            return None
        if given_again.files(story.acts):
            self.show.warn(f"{was.run.name} starts again: its plan reads a file, and a review names none")
            return None
        return story

    def _rest(self, story: Story, after_s: tuple[float, float]) -> tuple[Path, dict]:
        polled = cut_short.reading_of(cut_short.snapshot_of(self.bench.poll(None)))
        powered = story.parts[-1][0].get("host", {}).get("boot_id") == system.boot_id() is not None
        now, void = cut_short.left(story.past, story.before, polled, story.ours, powered or self.bench.simulated)
        prepared, todo = resume.rest_of(story, self.bench.drive, now, void)
        resume.fits(story, prepared, self.can)
        self.show.say("\n".join(resume.in_words(story, todo)))
        part: list[Path] = []
        args = (story, self.args, prepared, todo, self.bench, self.show, self.stop, self.budget, part, after_s)
        return resume.carry_out(*args)

    def _left(self, folder: Path, end: dict) -> Left:
        """What a run has left of the drive, by its plan and its events; nothing is known of one that did not end."""
        if end["exit_code"] or end["why"] or parts.of(folder)[1:]:
            return Left()
        try:
            story = cut_short.read(folder)
        except SsdrigError:
            return Left()
        not_steady = {
            str(event["step"]) for event in story.parts[0][1] if event["kind"] == "steady" and not event.get("passed")
        }
        return history.left(story.acts, not_steady).at_the_end()

    def _left_by_last(self) -> Left:
        """The part of its state still valid: no rest, and nothing else has written meanwhile."""
        folder = self.review.folder / self.by
        rested_s = (time.monotonic_ns() - self.since_ns) / 1e9 / self.bench.drive["time_dilation"]
        if self.now.state == UNKNOWN or rested_s > laid.RESTS_S:
            return Left()
        story = cut_short.read(folder)
        polled = cut_short.reading_of(cut_short.snapshot_of(self.bench.poll(None)))
        remaining, _ = cut_short.left(story.past, story.before, polled, story.ours, True)
        return Left() if remaining == UNKNOWN else self.now


def rest_s(items: Sequence[Item]) -> tuple[float, float]:
    """Host seconds of these plans, (least, most)."""
    times_s = [host_s(item.shortened) for item in items if item.prepared]
    return sum(least for least, _ in times_s), sum(most for _, most in times_s)


def describe(
    args, review: Review | None, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes, show: Progress
) -> None:
    """The table on stderr; of a dry run with --json an object on stdout."""
    show.say("\n".join(table(args.level, drive, items, spent, rated_bytes)))
    if review is None and (left := review_folder.unfinished(args.runs, drive)):
        show.say(f"an earlier review of this drive is not complete; {_going_on(left)}")
    if args.dry_run and args.json:
        document = dry_as_json(args.level, drive, items, spent, rated_bytes)
        print(json.dumps(document | {"review": str(review.folder) if review else None}), flush=True)


def table(
    level: str, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes: float | None = None
) -> list[str]:
    """The lines of the table."""
    k, width = drive["time_dilation"], max([10, *(len(item.name) for item in items)])
    named = " ".join(printable(word) for word in (drive["model"], drive["serial"]) if word)
    rated = f", rated {words.size(rated_bytes)}" if rated_bytes else ""
    lines = [f"warning: {line}" for line in prepare.warnings(drive)]
    lines.append(f"review of {named}, {words.size(drive['capacity_bytes'])}{rated}, level {level}")
    lines.append(f"  {'plan':{width}} {'variant':8} {'time':>17} {'writes':>17}")
    for item in items:
        if item.prepared:
            lines.append(f"  {item.name:{width}} {item.variant or '':8} {_cost(item.shortened.cost, k)}")
            if item.leaves_out:
                saved = words.clock(k * order.saved_s(item.prepared, item.leaves_out))
                lines.append(f"    not again, as {item.after} leaves the drive: {left_out(item)}; saves {saved}")
    whole = order.total(items)
    share = f" = {_percent(whole.written_bytes, rated_bytes)} % of the rated endurance" if rated_bytes else ""
    lines.append(f"  {'in all':{width}} {'':8} {_cost(whole, k)}{share}")
    whys: dict[str, list[str]] = {}
    for item in items:
        if not item.prepared:
            whys.setdefault(str(item.why), []).append(item.name)
    lines += [f"  {'' if why == 'done' else 'not run, '}{why}: {', '.join(names)}" for why, names in whys.items()]
    if spent.most_bytes is not None:
        lines.append(f"  budget: {words.size(spent.most_bytes)}, {words.size(spent.written_bytes)} of it written")
    return lines


def left_out(item: Item) -> str:
    """The steps that are left out: "purge, fill"."""
    assert item.prepared
    return ", ".join(dict.fromkeys(act.path for act in item.prepared.acts[: item.leaves_out] if not act.not_run))


def dry_as_json(level: str, drive: Mapping, items: Sequence[Item], spent: Budget, rated_bytes: float | None) -> dict:
    """The same as an object: host seconds and bytes, each [least, most]."""
    k, whole = drive["time_dilation"], order.total(items)
    plans = []
    for item in items:
        row: dict = {"plan": item.name, "variant": item.variant, "sets": dict(item.sets), "why": item.why}
        if item.prepared:
            row |= _figures(item.shortened.cost, k)
            row |= {"after": item.after, "left_out": left_out(item).split(", ") if item.leaves_out else []}
        plans.append(row)
    document = {"dry_run": True, "warnings": prepare.warnings(drive), "level": level, "drive": dict(drive)}
    document |= {"plans": plans, **_figures(whole, k)}
    shares = [round(100 * size / rated_bytes, 4) for size in whole.written_bytes] if rated_bytes else None
    document |= {"rated_bytes": rated_bytes, "share_percent": shares}
    return document | {"budget_bytes": spent.most_bytes, "written_before_bytes": spent.written_bytes}


def _figures(price: cost.Cost, k: int) -> dict:
    return {
        "host_s": [round(k * s) for s in price.time_s],
        "written_bytes": [round(size) for size in price.written_bytes],
        "most_bytes": round(price.most_bytes),
    }


def _cost(price: cost.Cost, k: int) -> str:
    return f"{dry_run.times(price, k):>17} {dry_run.written(price):>17}"


def _percent(sizes: tuple[float, float], rated_bytes: float) -> str:
    return "…".join(dict.fromkeys(digits(100 * size / rated_bytes, 3) for size in sizes))


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
    with contextlib.ExitStack() as owned:
        return _performed(args, show, of_run(args), None, owned)


def go_on(folder: Path, args: argparse.Namespace, show: Progress) -> int:
    """Run the rest of a review. Returns its exit code. Raises JournalError if the folder is not a review,
    or another process executes it."""
    review = review_folder.read(folder)
    _only_shipped(review)
    _page_can_be_made(args)
    for key in KEPT:
        setattr(args, key, review.document["options"].get(key))
    if args.virtual is None:
        args.drive = args.drive or review.document["drive"]["serial"]
    args.level, args.runs = review.document["level"], str(folder.absolute().parent)
    with contextlib.ExitStack() as owned:
        owned.enter_context(review_folder.held(review))
        return _performed(args, show, of_run(args), review, owned)


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
        if folder.suffix == library_file.SUFFIX:
            library_file.read(folder)
        elif (folder / parts.REVIEW).is_file():
            review_folder.read(folder)
        else:
            journal.run_header(folder)


def _performed(
    args: argparse.Namespace,
    show: Progress,
    run_args: argparse.Namespace,
    review: Review | None,
    owned: contextlib.ExitStack,
) -> int:
    """owned: holds the review until its page is made, a new one from its first moment on"""
    with Stop(show) as stop:
        with Teardown(stop, show) as teardown:
            on = _on_real if args.drive else _on_virtual
            review_, code = on(args, run_args, review, show, stop, teardown, owned)
        if review_ is None:
            return code
        with stop.held():  # the last line is owed, whatever signals come
            return finish(review_, args, show, code, stop)


def _on_virtual(
    args, run_args, review: Review | None, show: Progress, stop: Stop, teardown: Teardown, owned: contextlib.ExitStack
) -> tuple[Review | None, int]:
    from ssdrig.virtual import bench as virtual_bench
    from ssdrig.virtual.flash.presets import PRESETS

    preset = PRESETS[args.virtual]
    drive = options.virtual_drive(run_args)
    rated_bytes = preset.rated_tbw_TB * 1e12 * drive["capacity_bytes"] / preset.full_capacity_bytes
    items, spent = _items(args, review, drive, prepare.of_virtual(args.virtual), rated_bytes)
    describe(args, review, drive, items, spent, rated_bytes, show)
    if args.dry_run:
        return None, 0
    if review and not any(item.prepared for item in items):
        return review, 0
    stored = _drive_folder(review)
    show.say(f"starting the virtual bench ({args.virtual}, SIMULATED), one for all plans")
    with stop.held():
        capacity = str(review.document["drive"]["drive_bytes"]) if stored and review else args.capacity
        running = virtual_bench.start(
            args.virtual,
            capacity=capacity,
            faults=options.faults(args.faults),
            drive_faults=options.drive_faults(args.drive_faults),
            drive_folder=stored,
            check=stop.check,
            show=show.show,
        )
        running.kept_in = stored  # removed once it is kept elsewhere
        folder: list[Path] = []
        teardown.push("end the virtual bench", lambda: running.end(folder[0] / "truth" if folder else None))
        bench_ = bench.virtual(running)
        current = review or _created(args, bench_.drive, items, spent, rated_bytes, owned)
        folder.append(current.folder)
        code = _carried(current, bench_, prepare.of_virtual(args.virtual), run_args, show, stop, spent)
        if all(one.complete or one.run is None for one in review_folder.done(current).values()) and not stop.count:
            bench_.keep(None)  # nothing is left to do on it
    return current, code


def _drive_folder(review: Review | None) -> Path | None:
    """Where the SIMULATED drive of a review that goes on was kept."""
    from ssdrig.virtual.device import persistence

    runs = parts.all_runs(review.folder) if review else []
    return next((run / parts.DRIVE for run in runs if persistence.facts(run / parts.DRIVE)), None)


def _on_real(
    args, run_args, review: Review | None, show: Progress, stop: Stop, teardown: Teardown, owned: contextlib.ExitStack
) -> tuple[Review | None, int]:
    drive = inventory.find(args.drive)
    past = [part for folder in reversed(parts.all_runs(review.folder)) for part in parts.of(folder)] if review else []
    if review:
        known = review.document["drive"]
        if differs := identity.conflict(known, asdict(drive)):
            seen = f"{drive.model} {drive.serial}, another {', '.join(differs)}"
            do = "connect it, or begin a review of this one"
            raise UsageError(f"the drive of the review, {known['model']} {known['serial']}", seen, do)
        able.same_format(asdict(drive), known)
        _same_rig(review, args.rig)
        cut_short.same_counters(cut_short.last_snapshot(past), cut_short.snapshot_of(bench.polled(drive)), known)
    raw, assumed = options.raw_nand(run_args, drive.model, drive.capacity_bytes)
    known = {**asdict(drive), "raw_nand_bytes": raw, "raw_nand_assumed": assumed, "time_dilation": 1}
    plans = [planned.plan for planned in review.plans] if review else order.plans(args.level)
    needs = frozenset().union(*(grammar.read(*grammar.find(name)).asks for name in plans))
    handles = bench.handles_of(drive, needs)
    known |= {"power_states": bench.states_of(drive), "placement_handles": handles}
    limits = warranty.limits_for(drive.model, drive.capacity_bytes)
    rated_bytes, can = warranty.rated_bytes(limits), able.of_real(drive, args.rig, needs)
    items, spent = _items(args, review, known, can, rated_bytes)
    most_bytes = int(order.total(items).most_bytes)
    show.say(guard.announcement(drive, f"a review, level {args.level}", most_bytes, rated_bytes))
    describe(args, review, known, items, spent, rated_bytes, show)
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, show.say)
        return None, 0
    if review and not any(item.prepared for item in items):
        return review, 0
    able.terminal(act for item in items if item.prepared for act in item.prepared.acts)
    serial = confirm.confirmed(drive, args.destroy_data)
    with stop.held():
        how = {"handles": handles, "digests": cut_short.digests(past)}
        held = bench.real(drive, limits, serial, args.purge or "auto", raw, args.rig, assumed, **how)
        bench_ = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        current = review or _created(args, bench_.drive, items, spent, rated_bytes, owned)
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
        items = order.of_level(args.level, drive, can, args.runs, options.seed(args, drive))
        spent = Budget(None) if args.budget is None else budget.parse(args.budget, rated_bytes)
    else:
        done = review_folder.done(review)
        items = _left(review, done, drive, can, args.runs)
        if review.document["budget_bytes"] is not None and args.budget is None and not (args.virtual or args.dry_run):
            seen = f"none; the folder states {review.document['budget_bytes']} B"
            raise UsageError("--budget on the command line: none is taken from a folder", seen, "give it again")
        most = (
            review.document["budget_bytes"]
            if args.budget is None
            else budget.parse(args.budget, rated_bytes).most_bytes
        )
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


def _created(
    args, drive: dict, items: Sequence[Item], spent: Budget, rated_bytes: float | None, owned: contextlib.ExitStack
) -> Review:
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
    review = review_folder.create(args.runs, document)
    owned.enter_context(review_folder.held(review))
    return review


def _carried(review: Review, bench_, can, run_args, show: Progress, stop: Stop, spent: Budget) -> int:
    show.say(f"review folder: {review.folder}")
    return Carrying(review, bench_, can, run_args, show, stop, spent).all()
