"""Carry out a test: check, purge, fill, load, flush, settle, idle, and always, in this order, the teardown: fio is
ended, the last SMART is read, the rig is stopped, the journal is closed. Everything it learns goes into the journal at
once."""

import json
import os
import platform
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ssdrig import __version__, bench, consistency, journal, load, push
from ssdrig.bench import Bench
from ssdrig.drive import confirm, guard, inventory, warranty
from ssdrig.errors import SsdrigError, UnsafeTarget, UploadIncomplete, UsageError
from ssdrig.live import Live, anchor
from ssdrig.progress import Progress, clock
from ssdrig.rig import Rig
from ssdrig.sizes import parse_bytes

METHODS = ["consistency"]


def add_arguments(parser) -> None:
    add = parser.add_argument
    add(
        "method",
        choices=METHODS,
        help="consistency: purge, sequential fill, 4 KiB random write at QD 32, per-second logs",
    )
    add(
        "--drive",
        metavar="DRIVE",
        help=(
            "serial or /dev/disk/by-id path of the drive to test, all of whose data is destroyed (see ./ssdrig drives)"
        ),
    )
    add("--virtual", metavar="PRESET", help="instead: a SIMULATED drive and board (./ssdrig virtual --list-presets)")
    add("--destroy-data", metavar="SERIAL", help="the drive's serial once more: its data may be destroyed")
    add(
        "--purge",
        metavar="METHOD",
        default="auto",
        help="how a real drive is emptied (./ssdrig purge DRIVE --dry-run lists; default: the best it has)",
    )
    add("--raw-nand", metavar="SIZE", help="raw NAND of a real drive, such as 256GiB: what --op is a share of")
    add(
        "--rig",
        metavar="PORT",
        help="serial port of the rig that powers a real drive; without it power is not measured",
    )
    add("--capacity", help="capacity of the virtual drive, such as 8GiB (default: the preset's)")
    add("--op", type=float, metavar="PERCENT", help="over-provisioning as a share of raw NAND: 25 tests 0.75 of raw")
    add(
        "--duration",
        type=int,
        metavar="S",
        help=(
            "seconds of random write, drive time (reviews: 2000, 3600, 7200; default"
            f" {consistency.REAL_DURATION_S}, on a virtual drive {consistency.VIRTUAL_DURATION_S})"
        ),
    )
    add(
        "--zoom",
        type=int,
        metavar="S",
        help="start of the steady-state window (reviews: 1400 of 2000; default 70 %% of the duration)",
    )
    add(
        "--smart-interval",
        type=int,
        metavar="S",
        help="seconds between SMART polls under load (default: 10 to 60 by duration)",
    )
    add(
        "--settle",
        action="store_true",
        help=(
            "after the load, read SMART at 60, 120 and 300 s until two readings agree: what the drive writes by itself"
        ),
    )
    add("--idle", type=int, metavar="S", default=0, help="then measure idle power for so long, without any SMART poll")
    add("--seed", type=int, default=4242, help="of fio's offsets (default %(default)s)")
    add("--runs", metavar="DIR", default="runs", help="where run folders are made (default ./%(default)s)")
    add(
        "--influx",
        metavar="URL",
        help="http://host:port/DB to send to while the run goes on (default: $SSDRIG_INFLUX, else nothing is sent)",
    )
    add("--faults", metavar="JSON", help="faults of the virtual board (python -m ssdrig.virtual.cable --help)")
    add(
        "--dry-run",
        action="store_true",
        help="say what would be done, what it writes and how long it takes; touch nothing",
    )
    add("--json", action="store_true", help="print the result as one JSON object on stdout")
    add("--jsonl", action="store_true", help="print one JSON object a second on stdout, the result last")
    add("--quiet", action="store_true", help="no progress on stderr")


def command(args) -> int:
    folder, code = perform(args, Progress(args.quiet))
    return code


def perform(args, show: Progress) -> tuple[Path | None, int]:
    """One run as the arguments say: its folder (None for a dry run) and its exit code."""
    if bool(args.drive) == bool(args.virtual):
        raise UsageError(
            "a drive to test, and only one",
            "none" if not args.drive else "two",
            "give --drive SERIAL or --virtual PRESET; none is ever the default",
        )
    on = _on_real if args.drive else _on_virtual
    folder, end = on(args, show)
    if folder is None:
        return None, 0
    if args.json or args.jsonl:
        print(
            json.dumps({"run": str(folder), "state": end["state"], "why": end["why"], "exit_code": end["exit_code"]}),
            flush=True,
        )
    show.say(
        f"{end['state']}: {end['why'] or 'all steps done'}\nrun folder: {folder}\nreport:     ./ssdrig report {folder}"
    )
    return folder, end["exit_code"]


def _on_virtual(args, show: Progress) -> tuple[Path | None, dict | None]:
    from ssdrig.virtual import bench as virtual_bench
    from ssdrig.virtual.presets import PRESETS

    if args.virtual not in PRESETS:
        raise UsageError(f"one of {', '.join(PRESETS)}", args.virtual, "see ./ssdrig virtual --list-presets")
    faults = _faults(args.faults)
    show.say(
        f"starting the virtual bench ({args.virtual}, SIMULATED; the first start of all compiles it, which takes half a"
        " minute)"
    )
    running = virtual_bench.start(args.virtual, capacity=args.capacity, faults=faults)
    folder = None
    try:
        here = bench.virtual(running)
        plan = _plan(args, here.drive["capacity_bytes"], here.drive["raw_nand_bytes"], consistency.VIRTUAL_DURATION_S)
        describe(plan, here.drive, show)
        if args.dry_run:
            return None, None
        folder, end = carry_out(args, plan, here, show)
        return folder, end
    finally:
        running.end(keep_truth_in=folder / "truth" if folder else None)


def _on_real(args, show: Progress) -> tuple[Path | None, dict | None]:
    drive = inventory.find(args.drive)
    raw = parse_bytes(args.raw_nand) if args.raw_nand else None
    if args.op is not None and raw is None:
        raise UsageError(
            "--raw-nand SIZE with --op: over-provisioning is a share of raw NAND, which no drive tells",
            "no --raw-nand",
            "take it from the data sheet",
        )
    plan = _plan(args, drive.capacity_bytes, raw, consistency.REAL_DURATION_S)
    limits, most_bytes = (
        warranty.limits_for(drive.model, drive.capacity_bytes),
        consistency.most_written_bytes(plan, drive.interface),
    )
    show.say(guard.announcement(drive, "purge, fill and random write", most_bytes, warranty.rated_bytes(limits)))
    describe(plan, {"raw_nand_bytes": raw, "time_dilation": 1, **asdict(drive)}, show)
    if args.dry_run:
        against = guard.refusals(drive, args.destroy_data)
        for refusal in against:
            show.say(
                f"refused, {refusal.check}: {refusal.why}"
                + (f" (lifted by {refusal.override})" if refusal.override else "")
            )
        if against:
            raise UnsafeTarget(
                f"{drive.model} {drive.serial} to be free",
                f"{len(against)} reasons against it",
                "see above; nothing was touched",
            )
        return None, None
    serial = confirm.confirmed(drive, args.destroy_data)
    with bench.real(drive, limits, serial, args.purge, raw, args.rig) as here:
        return carry_out(args, plan, here, show)


def _plan(args, capacity_bytes: int, raw_nand_bytes: int | None, duration_s: int) -> consistency.Consistency:
    return consistency.plan(
        capacity_bytes,
        raw_nand_bytes,
        args.op,
        args.duration or duration_s,
        args.zoom,
        args.smart_interval,
        args.seed,
        args.settle,
        args.idle,
    )


def _faults(text: str | None) -> dict | None:
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise UsageError("faults as a JSON object", f"{text}: {error}", 'write them like {"ppm": 80}') from error


def describe(plan: consistency.Consistency, drive: dict, show: Progress) -> None:
    """Before anything is touched: the drive, what will be written, how long it takes."""
    k = drive["time_dilation"]
    fill_s = plan.tested_bytes / 200e6 * k
    dilated = f", time-dilated {k} times" if k != 1 else ""
    raw = f", {drive['raw_nand_bytes'] / 1e9:.2f} GB raw NAND" if drive["raw_nand_bytes"] else ""
    op = (
        "the drive's own over-provisioning"
        if plan.op_percent is None
        else f"{plan.op_percent:g} % of raw NAND over-provisioned"
    )
    after_s = plan.idle_s + (consistency.SETTLE_S[1] if plan.settle else 0)
    show.say(
        f"{drive['model']} {drive['serial']}: {drive['capacity_bytes'] / 1e9:.2f} GB{raw}{dilated}\nconsistency: {op};"
        f" purge, fill {plan.tested_bytes / 1e9:.2f} GB, then {plan.duration_s} s of 4 KiB random write at QD"
        f" {plan.queue_depth}; about {clock(fill_s + (plan.duration_s + after_s) * k + 5)} in all"
    )


def carry_out(args, plan: consistency.Consistency, here: Bench, show: Progress) -> tuple[Path, dict]:
    """All steps of one run. Returns its folder and its run.end event; errors of steps are in there, not raised."""
    stop = _Stop()
    book = journal.create(args.runs, header(args.method, plan, here))
    influx = args.influx or os.environ.get("SSDRIG_INFLUX")
    pusher = push.start(book.path, influx) if influx else None
    book.event("run.start", pid=os.getpid())
    anchor(book)
    state, why, exit_code = "complete", None, 0
    rig = Rig(here.port, book) if here.port else None
    live = Live(plan, here, book, rig, show, args.jsonl)
    try:
        with _step(book, "check"):
            here.check()
            if rig:
                rig.start()
        with _step(book, "purge"):
            show.show("purge")
            book.event("purge", **here.purge(show))
        with _step(book, "fill"):
            here.check()
            live.begin("fill", plan.tested_bytes)
            _fio(book, fill_job(plan, here), live, stop)
        with _step(book, "load"):
            here.check()
            live.poll_smart("before")
            live.begin("load")
            _fio(book, load_job(plan, here), live, stop)
        with _step(book, "flush"):
            here.flush()
        if plan.settle:
            with _step(book, "settle"):
                settle(live, stop)
        if plan.idle_s:
            with _step(book, "idle"):
                live.begin("idle")
                live.wait(plan.idle_s * here.drive["time_dilation"], stop.check)
    except SsdrigError as error:
        state, why, exit_code = "failed", str(error), error.exit_code
    except KeyboardInterrupt:
        state, why, exit_code = "interrupted", "stopped by a signal", 130
    except BaseException as error:  # a defect of ours: the run says so and is closed like any other
        state, why, exit_code = "failed", repr(error), 1
        raise
    finally:
        with _step(book, "teardown", must=False):
            live.begin("teardown")
            live.poll_smart("after")
        if rig:
            rig.stop()
        anchor(book)
        end = book.close(state, why, exit_code)
        stop.restore()
    if pusher and pusher.wait() and not end["exit_code"]:
        end = {**end, "exit_code": UploadIncomplete.exit_code}
    return book.path, end


def settle(live: Live, stop: "_Stop") -> None:
    """Read SMART right after the load, then at 60, 120 and 300 s until two readings have the same NAND count: the
    difference to the first is what the drive wrote by itself."""
    live.begin("settle")
    last, waited_s = live.poll_smart("after"), 0
    for at_s in consistency.SETTLE_S:
        live.wait((at_s - waited_s) * live.dilation, stop.check)
        waited_s = at_s
        now = live.poll_smart("settled")
        if now and last and now["nand_written_bytes"] == last["nand_written_bytes"]:
            return
        last = now


def _fio(book: journal.Journal, job: load.Job, live: Live, stop: "_Stop") -> None:
    result = load.run(job, book.path / "fio" / job.name, on_second=live.second, should_stop=stop.asked)
    if result.seconds:
        book.event("load.first_io", t_ns=int(result.seconds.t_ns[0]), step=job.name)
    stop.check()


def header(method: str, plan: consistency.Consistency, here: Bench) -> dict:
    """Content of run.json."""
    return {
        "ssdrig": __version__,
        "simulated": here.simulated,
        "method": {"name": method, **asdict(plan)},
        "drive": here.drive,
        "rig": {"port": here.port, "simulated": here.simulated} if here.port else None,
        "host": {
            "name": platform.node(),
            "python": platform.python_version(),
            "fio": load.version(),
            "kernel": platform.release(),
            "cpus": os.cpu_count(),
        },
    }


def fill_job(plan: consistency.Consistency, here: Bench) -> load.Job:
    return load.Job(
        name="fill",
        rw="write",
        block_bytes=plan.fill_block_bytes,
        queue_depth=plan.queue_depth,
        size_bytes=plan.tested_bytes,
        time_s=None,
        seed=plan.seed,
        target=here.fio_target,
    )


def load_job(plan: consistency.Consistency, here: Bench) -> load.Job:
    """The second seed differs from the fill's, or the random order would repeat what a fill with it wrote."""
    return load.Job(
        name="load",
        rw="randwrite",
        block_bytes=plan.block_bytes,
        queue_depth=plan.queue_depth,
        size_bytes=plan.tested_bytes,
        time_s=plan.duration_s * here.drive["time_dilation"],
        seed=plan.seed + 1,
        target=here.fio_target,
    )


@contextmanager
def _step(book: journal.Journal, name: str, must: bool = True) -> Iterator[None]:
    """Events around a step. With must=False a failure is recorded and swallowed: nothing may keep a teardown from its
    end."""
    book.event("step.start", step=name)
    try:
        yield
    except SsdrigError as error:
        book.event("step.end", step=name, ok=False, why=str(error))
        if must:
            raise
    except BaseException as error:
        book.event("step.end", step=name, ok=False, why=repr(error))
        raise
    else:
        book.event("step.end", step=name, ok=True)


class _Stop:
    """Ctrl-C or SIGTERM: once ends the step after its current second, twice ends it at once."""

    def __init__(self):
        self._asked = False
        self._old = {s: signal.signal(s, self._on_signal) for s in (signal.SIGINT, signal.SIGTERM)}

    def _on_signal(self, *_):
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True

    def asked(self) -> bool:
        return self._asked

    def check(self) -> None:
        if self._asked:
            raise KeyboardInterrupt

    def restore(self) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
