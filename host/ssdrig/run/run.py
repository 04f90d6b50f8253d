"""Execute a plan: check, its steps (engine.py), and always the teardown (teardown.py): see the
drive's rail on, read the last SMART, stop the rig, tie the clock to UTC, close the journal, end the virtual bench or
release the drive. Everything a run learns goes into the journal immediately.

`-v`: each event of a run as it is recorded, a line each."""

import argparse
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

from ssdrig.base import latch, overprovisioning
from ssdrig.base.errors import (
    INTERRUPTED,
    DataLost,
    DriveError,
    JournalError,
    LoadError,
    OutputError,
    PowerCut,
    PromiseBroken,
    RailTripped,
    SsdrigError,
    Suspicion,
    UploadIncomplete,
)
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock, size
from ssdrig.drive import conditions, confirm, guard, telemetry, unrestored
from ssdrig.drive.wear import raw_nand
from ssdrig.meter import bridge, meter, trip
from ssdrig.meter.pairing import PAIRED
from ssdrig.meter.pico import certificate
from ssdrig.meter.pico.board import NO_SERIAL
from ssdrig.meter.pico.stream import Rig
from ssdrig.plan import grammar
from ssdrig.plan.expand import Act
from ssdrig.powerloss.server_lock import ServerLock
from ssdrig.publish.influx import push
from ssdrig.run import (
    able,
    bench,
    ceilings,
    control,
    cutting,
    dry_run,
    engine,
    fleet,
    keeping,
    pairing,
    planned,
    prepare,
    run_json,
    second_meter,
    sync_marks,
)
from ssdrig.run import options as run_options
from ssdrig.run.asked_cut import OFF_S, AskedCut
from ssdrig.run.bench import Bench
from ssdrig.run.bmc import Bmc
from ssdrig.run.budget import Budget
from ssdrig.run.budget import parse as parse_budget
from ssdrig.run.course import Course
from ssdrig.run.live import Live, anchor
from ssdrig.run.options import EXAMPLES as EXAMPLES
from ssdrig.run.options import add_arguments as add_arguments
from ssdrig.run.pace import Pace
from ssdrig.run.stage import Stage, step
from ssdrig.run.teardown import Stop, Teardown, exit_code, words_of
from ssdrig.runs import integrity, journal, parts
from ssdrig.runs.integrity import FIGURES
from ssdrig.switch import pico
from ssdrig.virtual.flash import presets

LONGEST = 160  # characters of a field


def teller(say: Callable[[str], object]) -> Callable[[Mapping], None]:
    """Printer of events, with the time since now."""
    began_ns = time.monotonic_ns()

    def tell(event: Mapping) -> None:
        say(_event_line(event, began_ns))

    return tell


def _event_line(event: Mapping, began_ns: int) -> str:
    """ "    1:02  step.begin  step=load"."""
    fields = [f"{key}={_short(value)}" for key, value in event.items() if key not in ("t_ns", "kind", "n", "crc")]
    return f"{clock((event['t_ns'] - began_ns) / 1e9):>8}  {'  '.join([event['kind'], *fields])}"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


TELEMETRY = "telemetry.bin"  # in the run folder
# exit codes of runs after which the drive may have failed; fio hangs on a drive that does not answer
OF_DRIVE = tuple(error.exit_code for error in (DriveError, LoadError, PromiseBroken, Suspicion, DataLost))
SMART_LIMIT_S = 90.0  # a poll asks several programs, each of which may take 20 s


def check(args) -> None:
    """Raises UsageError for options that this machine cannot run with: it has no such drive or rig."""
    check_words(args)
    run_options.check_parts(args.drives, args.stray_rigs)


def check_words(args) -> None:
    """Raises UsageError for options that no machine can run with."""
    keeping.check(args)
    text, where = grammar.find(args.plan)
    run_options.check(args)
    grammar.read(text, where, *run_options.parameters(args))
    if args.budget:
        parse_budget(args.budget, 1.0)  # of any rating
    if args.virtual:
        presets.named(args.virtual)


def command(args) -> int:
    check_words(args)
    if len(args.drives) > 1:
        return fleet.command(args)
    show, shares = Progress(args.quiet), run_options.each_share(args)
    for one in shares if len(shares) > 1 else ():  # errors of the last one are reported before the first one starts
        perform(argparse.Namespace(**vars(one) | {"dry_run": True, "json": False, "jsonl": False}), Progress(True))
    folders: list[Path] = []
    for one in shares:
        own = []
        for number in range(args.repeat):
            if args.repeat > 1 and not args.dry_run:
                show.say(f"run {number + 1} of {args.repeat}")
            folder, code = perform(one, show)
            if code:
                return code
            own += [folder] if folder else []
            one.repeated += 1
        if len(own) > 1 and (code := _repeated(own, args, show)):
            return code
        folders += own
    if len(shares) > 1 and folders:
        from ssdrig.report import screen

        show.say("\n".join(screen.of_series(folders)))
    return 0


def perform(args, show: Progress) -> tuple[Path | None, int]:
    """One run with these arguments: its folder (None for a dry run) and its exit code."""
    run_options.check(args)
    return performed(args, show, _on_real if args.drive else _on_target if args.target else on_virtual)


def performed(args, show: Progress, on: Callable) -> tuple[Path | None, int]:
    """perform(), on the bench that `on` makes; it returns the folder and the run.end event, None for a dry run."""
    with Stop(show) as stop:
        with Teardown(stop, show) as teardown:
            folder, end = on(args, show, stop, teardown)
        if folder is None or end is None:
            return None, 0
        with stop.held():  # the last line is owed, whatever signals come
            return folder, _print_results(folder, end, args, show, stop)


def _print_results(folder: Path, end: Mapping, args, show: Progress, stop: Stop) -> int:
    """Print what a run came to. Returns its exit code: of one that a signal has asked to stop since it ended, 130."""
    code, asked = end["exit_code"], stop.count
    lines, figures = _figures(folder, args, show, stop)
    if args.json or args.jsonl:
        code = code or INTERRUPTED * (stop.count > asked)
        document = {"run": str(folder), "state": end["state"], "why": end["why"], "exit_code": code, "figures": figures}
        code = _print(args, document, code)
    if lines:
        show.say("\n".join(lines))
    tell = show.warn if code else show.say
    tell(f"{end['state']}: {end['why'] or 'all steps done'}")
    show.say(f"run folder: {folder}\nreport:     ./ssdrig report {folder}")
    return code or INTERRUPTED * (stop.count > asked)


def _figures(folder: Path, args, show: Progress, stop: Stop) -> tuple[list[str], dict | None]:
    """The outcome of the run: lines for the user, and the object for --json. All of it is in the run folder by now, so
    nothing that goes wrong here is the run's. A signal ends it."""
    if show.quiet and not (args.json or args.jsonl):
        return [], None
    show.show("figures")
    try:
        from ssdrig.report import screen, write

        with stop.next_raises("figures"):
            lines, figures = screen.ended(folder)
            if folder == parts.root(folder):  # of a later part, a report of the whole run makes them
                with contextlib.suppress(JournalError):
                    write(folder / FIGURES, json.dumps(figures, indent=1) + "\n")
        return lines, figures
    except KeyboardInterrupt:
        return [f"figures: stopped by {stop.name}; ./ssdrig report {folder} makes them"], None
    except Exception as error:
        return [f"figures: not to be had, {words_of(error)}"], None


def _repeated(folders: list[Path], args, show: Progress) -> int:
    """Print mean and standard deviation of runs of one plan; nothing that goes wrong here is theirs. Returns 130 where
    a signal came."""
    from ssdrig.report import screen

    with Stop(show) as stop, stop.held():
        try:
            with stop.next_raises("figures"):
                lines, repeated = screen.repeated(folders)
        except KeyboardInterrupt:
            lines, repeated = [f"mean ± s: stopped by {stop.name}"], None
        except Exception as error:
            lines, repeated = [f"mean ± s: not to be had, {words_of(error)}"], None
        if args.json or args.jsonl:
            _print(args, {"repeats": [str(folder) for folder in folders], "spread": repeated}, 0)
        show.say("\n".join(lines))
        return INTERRUPTED * (stop.count > 0)


def _print(args, result: dict, code: int) -> int:
    """The result on stdout. Returns the exit code: the run's own, or 7 if that is 0 and the result could not be
    printed."""
    try:
        print(json.dumps(result), flush=True)
    except BrokenPipeError:
        pass  # the reader is gone
    except OSError:
        return code or OutputError.exit_code
    return code


def on_virtual(args, show: Progress, stop: Stop, teardown: Teardown) -> tuple[Path | None, dict | None]:
    from ssdrig.virtual import bench as virtual_bench

    prepared, budget, *_ = planned.on_virtual(args)
    cutting.refuse_server(prepared.acts)
    if args.dry_run:
        dry_run.describe(args, prepared, budget, show)
        return None, None
    show.say(f"starting the virtual bench ({args.virtual}, SIMULATED)")
    folder = None
    with stop.held():
        running = virtual_bench.start(
            args.virtual,
            capacity=args.capacity,
            faults=run_options.faults(args.faults),
            drive_faults=run_options.drive_faults(args.drive_faults),
            check=stop.check,
            show=show.show,
            data=cutting.data(prepared.acts),
            drive_folder=keeping.folder(args),
        )
        teardown.push("end the virtual bench", lambda: running.end(keep_truth_in=folder / "truth" if folder else None))
        bench_ = bench.virtual(running)
        prepared, budget, *_ = planned.on(args, bench_.drive, prepared.can)
        dry_run.describe(args, prepared, budget, show)
        cutting.say(bench_, prepared.acts, show.say)
        keeping.describe(prepared.acts, show.say)
        folder, end = carry_out(args, prepared, bench_, show, stop, budget)
        if not keeping.reads_back(prepared.acts):
            forget(bench_, end)
    return folder, end


def forget(bench_: Bench, end: dict) -> None:
    """A SIMULATED drive whose run is complete is not kept."""
    if end["state"] == "complete" and (end["exit_code"] or not end["why"]):  # else its budget ended it
        with contextlib.suppress(DriveError):
            bench_.keep(None)


def _on_real(args, show: Progress, stop: Stop, teardown: Teardown) -> tuple[Path | None, dict | None]:
    prepared, budget, rated_bytes, drive, limits, (raw, assumed) = planned.on_real(args)
    assert drive is not None
    most_bytes = int(prepared.cost.most_bytes)
    writes = keeping.writes(prepared.acts)
    if writes:
        show.say(guard.announcement(drive, f"the plan {prepared.plan.name}", most_bytes, rated_bytes))
    dry_run.describe(args, prepared, budget, show, rated_bytes)
    keeping.describe(prepared.acts, show.say)
    cutting.describe(drive, args.plp_claimed, cutting.commands(args), prepared.acts, show.say)
    if args.dry_run:
        guard.announce_refusals(drive, args.destroy_data, show.say)
        return None, None
    serial = confirm.confirmed(drive, args.destroy_data) if writes else args.destroy_data
    with stop.held():
        how, handles = (cutting.commands(args), args.plp_claimed), prepared.drive["placement_handles"]
        held = bench.real(drive, limits, serial, args.purge or "auto", raw, args.rig, assumed, *how, handles=handles)
        bench_ = held.__enter__()
        teardown.push("release the drive", lambda: held.__exit__(None, None, None))
        return carry_out(args, prepared, bench_, show, stop, budget)


def _on_target(args, show: Progress, stop: Stop, teardown: Teardown) -> tuple[Path | None, dict | None]:
    drive = cutting.described(args.target, args.power_off, args.power_on, args.plp_claimed)
    prepared, budget, *_ = planned.on(args, drive, able.of_server())
    server = cutting.server(drive)
    dry_run.describe(args, prepared, budget, show)
    cutting.say(server, prepared.acts, show.say)
    if args.dry_run:
        return None, None
    cutting.confirmed(args)
    with stop.held():
        teardown.push("release the lock of the target", ServerLock(args.target).close)
        return carry_out(args, prepared, server, show, stop, budget)


class _End:
    """How a run ends: what its steps came to, and once the journal is closed its run.end event."""

    def __init__(self) -> None:
        self.state, self.exit_code = "complete", 0
        self.why: str | None = None
        self.event: dict | None = None

    @contextlib.contextmanager
    def of_steps(self, stop: Stop) -> Iterator[None]:
        """Around the steps: errors that the user is meant to read, and signals, end here; a defect goes on."""
        try:
            yield
        except KeyboardInterrupt:
            self.state, self.why, self.exit_code = "interrupted", f"stopped by {stop.name or 'a signal'}", INTERRUPTED
        except PowerCut as error:
            self.state, self.why, self.exit_code = "interrupted", error.seen, error.exit_code
        except (SsdrigError, OSError) as error:
            self.state, self.why, self.exit_code = "failed", words_of(error), exit_code(error)
        except BaseException as error:
            self.state, self.why, self.exit_code = "failed", repr(error), 1
            raise

    def close(self, book: journal.Journal, teardown: Teardown, rig: Rig | None) -> None:
        """Write run.end. A rail that the rig opened is the reason, whatever was seen first: the load's end may be seen
        before the rig reports it. Only what the drive was proven guilty of before stays. A failed teardown does not
        change the measurements: it is the reason given, and the exit code, of a run that had none."""
        if rig and isinstance(rig.failure, RailTripped) and self.state != "interrupted":
            tripped, proven = words_of(rig.failure), self.exit_code == PromiseBroken.exit_code
            self.why = f"{self.why}; then: {tripped}" if proven else tripped
            self.exit_code = self.exit_code if proven else rig.failure.exit_code
        if teardown.failures and not self.exit_code:
            self.why = "; ".join(f"teardown: {duty}: {words_of(error)}" for duty, error in teardown.failures)
            self.exit_code = exit_code(teardown.failures[0][1])
        self.event = book.close(self.state, self.why, self.exit_code)

    def result(self) -> dict:
        """The run.end event, or its content if the disk did not accept it."""
        exit_code = self.exit_code or JournalError.exit_code
        return self.event or {"state": self.state, "why": self.why, "exit_code": exit_code}


def carry_out(
    args,
    prepared: prepare.Prepared,
    bench_: Bench,
    show: Progress,
    stop: Stop,
    budget: Budget | None = None,
    begin: Callable[[dict], journal.Journal] | None = None,
    jobs: int = 0,
    changed: Mapping[str, list[str]] | None = None,
    after_s: tuple[float, float] = (0.0, 0.0),
    board: dict | None = None,
) -> tuple[Path, dict]:
    """All steps of one run. Returns its folder and its run.end event; errors of steps are in there, not raised. Signals
    are held when this is called. `begin` opens the journal of a run that is resumed, `jobs`: how many fio jobs it has
    had, `changed`: settings not yet restored (standing.changed), `after_s`: how long the following runs take
    (host), `board`: the greeting of the board that the run began with."""
    end, pusher, rig = _End(), None, None
    marks = prepared.sync and bench_.connect is not None
    with Teardown(stop, show) as teardown:
        may_cut = getattr(args, "allow_cut", False)
        header = run_json.of(prepared, bench_, budget) | {"cut_off_s": OFF_S if may_cut else None}
        book = begin(header) if begin else journal.create(args.runs, header)
        teardown.push("close the journal", lambda: end.close(book, teardown, rig))
        teardown.record = lambda words: book.event("note", text=words)
        limit_s = telemetry.TIMEOUT_S + SMART_LIMIT_S
        teardown.push("save the drive's telemetry", lambda: _telemetry(end.exit_code, bench_, book, show), limit_s)
        if args.verbose:
            book.heard = teller(show.say)
        with end.of_steps(stop):
            influx = args.influx or os.environ.get("SSDRIG_INFLUX")
            pusher = push.start(book.path, influx) if influx else None
            book.event("run.start", pid=os.getpid(), run_json=integrity.header_sum(book.path))
            rig = bridge.opened(bench_.port, book) if bench_.port else None
            if rig and board:
                rig.expect(board)
            cut = AskedCut(bench_, book, rig, stop) if may_cut and rig else None
            teardown.push("take no more requests", control.Control(book, cut=cut).close)
            if cut:
                show.say(
                    f"a cut from the web takes the power for {OFF_S:g} s, and ends the run: `ssdrig serve --control`"
                )
            if bench_.drive.get("raw_nand_assumed"):
                book.event("note", text=overprovisioning.assumed_words(bench_.drive["raw_nand_bytes"]))
            elif words := raw_nand.words(bench_.drive):
                book.event("note", text=words)
            anchor(book)
            bench_.keep(parts.root(book.path))
            teardown.push("tie the clock to UTC", lambda: anchor(book))
            if rig:
                teardown.push("stop the rig", rig.stop)
            budget = budget or Budget(None)
            course = Course(prepared.acts, bench_.drive, prepared.earlier, budget, after_s)
            live = Live(bench_, book, rig, show, args.jsonl, course)
            if url := getattr(args, "bmc", None):
                live.bmc = _bmc(url, book, show)
                teardown.push("end the readings of the BMC", live.bmc.end)
            off = Event()  # the drive has no power, and is not to have any when the run ends
            teardown.push("read the last SMART", keeping.unless(off, lambda: _last_smart(book, live)), SMART_LIMIT_S)
            _check(bench_, book, rig, stop, teardown, off, prepared.acts, cut is not None)
            if rig and (url := _second(args, bench_)):
                second = second_meter.Second(url, book)
                teardown.push("compare the meters", lambda: second.end(show))
            for key, was in (changed or {}).items():
                bench_.put_back(key, was)
                book.event("put_back", key=key, value=was)
                unrestored.restored(bench_.drive, key, was)
            before = bench_.conditions()
            book.event("conditions", when="before", **before)
            last = keeping.unless(off, lambda: _conditions_after(bench_, book, before))
            teardown.push("record the conditions", last, SMART_LIMIT_S)
            seen = dict(prepared.seen)
            stage = Stage(
                bench_, book, live, stop, show, teardown, prepared.seed, jobs, seen=seen, rig=rig, off=off, cut=cut
            )
            stage.laid, stage.words = prepared.laid, tuple(getattr(args, "words", ()))
            stage.log = getattr(args, "application_log", None)
            stage.ceilings = ceilings.measured(prepared.acts, lambda: bench_.fio_target, before["found"], book, show)
            ceilings.data(ceilings.wanted(prepared.acts), stage.ceilings, book, show)
            late = pairing.at_end(prepared.acts)
            if rig and late:
                rig.unpaired = pairing.forbids_cuts(pairing.put_off(book), bench_.simulated)
            elif rig:
                _pair(bench_, book, rig, stop, live, show, prepared.acts, begin is not None, budget)
            if marks:
                resumed = begin is not None or budget.most_bytes is not None  # writes of a mark are not the plan's
                over = pairing.may_write(prepared.acts, bench_.drive["capacity_bytes"], resumed)
                sync_marks.make(bench_, book, stop.check, show, write_bytes=over)
            end.why = engine.carry_out(prepared.acts, stage, budget)
            if marks and not off.is_set():
                sync_marks.make(bench_, book, stop.check, show)
            if rig and late and not off.is_set():
                _pair(bench_, book, rig, stop, live, show, prepared.acts, True, budget)
            if stage.outcome:
                end.why, end.exit_code = words_of(stage.outcome), stage.outcome.exit_code
    result = end.result()
    if pusher and not _sent(pusher, book.path, stop, show) and not result["exit_code"]:
        result = {**result, "exit_code": UploadIncomplete.exit_code}
    return book.path, result


def _bmc(url: str, book: journal.Journal, show: Progress) -> Bmc:
    """The BMC, being read; one without a reading is a note, as it is context alone."""
    bmc = Bmc(url)
    if bmc.path:
        bmc.start()
    else:
        book.event("note", text=f"no power of the host by its BMC: {bmc.why}")
        show.warn(f"warning: no power of the host by its BMC: {bmc.why}")
    return bmc


def _second(args, bench_: Bench) -> str | None:
    """The URL of the second meter; None without."""
    named = next(iter(getattr(args, "drives", ())), None)
    if not named or not named.second:
        return None
    return meter.of_drive(named.second, bench_.drive.get("controller"), str(bench_.drive.get("serial") or ""))


def _check(
    bench_: Bench,
    book: journal.Journal,
    rig: Rig | None,
    stop: Stop,
    teardown: Teardown,
    off: Event,
    acts: Sequence[Act],
    may_cut: bool,
) -> None:
    stop.check()
    with step(book, "check"), stop.second_raises():
        bench_.check()
        if rig:
            hello = rig.start()
            if not hello.get("serial"):
                book.event("note", text=NO_SERIAL)
            if not hello.get("source"):
                book.event("rig.certificate", **certificate.quote(hello, time.time_ns()))
            trip.refuse(hello)
            rig.last_second().refuse_other()
            if not bench_.simulated:
                latch.refuse(latch.name_of(hello, rig.port))
            cutting.refuse_rig(hello, bench_, acts, may_cut)
            teardown.push("see the rail on", keeping.unless(off, lambda: _rail_on(rig, bench_)))


def _pair(
    bench_: Bench,
    book: journal.Journal,
    rig: Rig,
    stop: Stop,
    live: Live,
    show: Progress,
    acts: Sequence[Act],
    resumed: bool,
    budget: Budget,
) -> None:
    """Find out whether the rig feeds the drive. Raises NotPaired where the plan would cut, and that was not seen."""
    if not pairing.wanted(acts):
        return
    stop.check()
    show.show(f"pairing rig and drive, {pairing.LASTS_S:g} s")
    resumed = resumed or budget.most_bytes is not None  # writes of a signature are not the plan's
    write_bytes = pairing.may_write(acts, bench_.drive["capacity_bytes"], resumed)
    event = pairing.carry_out(bench_, book, rig, write_bytes, resumed, stop.check)
    live.unpaired = event["verdict"] != PAIRED
    if event["verdict"] != PAIRED:
        show.warn(f"rig and drive: {event['verdict'].replace('_', ' ')}: {event['why']}; power is null")
    rig.unpaired = pairing.forbids_cuts(event, bench_.simulated)
    pairing.refuse_cuts(rig.unpaired, acts, bool(bench_.target and bench_.target.commands))


def _rail_on(rig: Rig, bench_: Bench) -> None:
    """Where the rail is not seen on, the bench is unknown from now on; a virtual one ends with the run."""
    try:
        pico.restore(rig)
    except BaseException as error:
        if not bench_.simulated:
            pico.unless_on(rig, f"teardown of a run: {words_of(error)}", bench_.drive["serial"])
        raise


def _last_smart(book: journal.Journal, live: Live) -> None:
    with step(book, "teardown"):
        live.begin(Pace("teardown"))
        live.poll_smart("after")


def _telemetry(exit_code: int, bench_: Bench, book: journal.Journal, show: Progress) -> None:
    """Save the telemetry of a drive that has failed, or may have, in the run folder."""
    if exit_code not in OF_DRIVE or not bench_.telemetry:
        return
    answer: dict
    try:
        answer = bench_.telemetry(book.path / TELEMETRY)
    except SsdrigError as error:  # it is gone, or another
        answer = {"bytes": None, "why": words_of(error)}
    book.event("telemetry", **answer)
    if answer["why"]:
        show.warn(f"the drive's telemetry log is not saved: {answer['why']}")
    else:
        show.say(
            f"telemetry log of the drive, which its maker can read: {book.path / TELEMETRY} ({size(answer['bytes'])})"
        )


def _conditions_after(bench_: Bench, book: journal.Journal, before: Mapping) -> None:
    """Record the conditions, and report which of them changed."""
    after = bench_.conditions()
    changed = conditions.changed(before, after)
    book.event("conditions", when="after", **after, changed=changed)
    if changed:
        words = ", ".join(f"{key}: {was} before the run, {now} after it" for key, (was, now) in changed.items())
        book.event("note", text=f"conditions that changed: {words}")


def _sent(pusher: subprocess.Popen, run: Path, stop: Stop, show: Progress) -> bool:
    """Wait until all points are sent, or cannot be, or the user no longer wants to wait. A pusher that hangs is ended,
    so that none remains; all points are stored."""
    asked, moved, moved_at = stop.count, push.moved(run), time.monotonic()
    while pusher.poll() is None:
        if stop.count > asked:
            show.warn("points are still being sent, by its own process; ./ssdrig push sends the rest")
            return False
        if (now := push.moved(run)) != moved:
            moved, moved_at = now, time.monotonic()
        if time.monotonic() - moved_at > push.SENT_S:
            pusher.kill()
            pusher.wait()
            show.warn(f"no points were sent for {push.SENT_S:g} s; ./ssdrig push sends the rest")
            return False
        time.sleep(0.1)
    return pusher.returncode == 0
