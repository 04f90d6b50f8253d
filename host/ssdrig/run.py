"""Carry out a test: check, purge, fill, load, flush, and always, in this order, the teardown: fio is ended, the last SMART
is read, the rig is stopped, the journal is closed. Everything it learns goes into the journal at once."""

import json
import os
import platform
import signal
import time
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from ssdrig import __version__, consistency, journal, load, push
from ssdrig.errors import DriveError, SsdrigError, UploadIncomplete, UsageError
from ssdrig.live import Live
from ssdrig.progress import Progress, clock
from ssdrig.rig import Rig
from ssdrig.virtual import adminclient
from ssdrig.virtual import bench as virtual_bench
from ssdrig.virtual.nbdclient import NbdClient
from ssdrig.virtual.presets import PRESETS

METHODS = ["consistency"]
EFFECT_PROBE_BYTES = 4096


def add_arguments(parser) -> None:
    parser.add_argument("method", choices=METHODS, help="consistency: purge, sequential fill, 4 KiB random write at QD 32, per-second logs")
    parser.add_argument("--virtual", metavar="PRESET", choices=list(PRESETS), help="on a SIMULATED drive and board (./ssdrig virtual --list-presets)")
    parser.add_argument("--capacity", help="capacity of the virtual drive, such as 8GiB (default: the preset's)")
    parser.add_argument("--op", type=float, metavar="PERCENT", help="over-provisioning as a share of raw NAND: 25 tests 0.75 of raw")
    parser.add_argument(
        "--duration", type=int, metavar="S",
        help=f"seconds of random write, drive time (reviews: 2000, 3600, 7200; default on a virtual drive {consistency.VIRTUAL_DURATION_S})",
    )  # fmt: skip
    parser.add_argument("--zoom", type=int, metavar="S", help="start of the steady-state window (reviews: 1400 of 2000; default 70 %% of the duration)")
    parser.add_argument("--smart-interval", type=int, metavar="S", help="seconds between SMART polls under load (default: 10 to 60 by duration)")
    parser.add_argument("--seed", type=int, default=4242, help="of fio's offsets (default %(default)s)")
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are made (default ./%(default)s)")
    parser.add_argument("--influx", metavar="URL", help="http://host:port/DB to send to while the run goes on (default: $SSDRIG_INFLUX, else nothing is sent)")
    parser.add_argument("--faults", metavar="JSON", help="faults of the virtual board (python -m ssdrig.virtual.cable --help)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, what it writes and how long it takes; touch nothing")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on stdout")
    parser.add_argument("--jsonl", action="store_true", help="print one JSON object a second on stdout, the result last")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def command(args) -> int:
    folder, code = perform(args, Progress(args.quiet))
    return code


def perform(args, show: Progress) -> tuple[Path | None, int]:
    """One run as the arguments say: its folder (None for a dry run) and its exit code."""
    if not args.virtual:
        raise UsageError("a drive to test", "none", "give --virtual PRESET; real drives are not supported yet, and none is ever the default")
    faults = _faults(args.faults)
    show.say(f"starting the virtual bench ({args.virtual}, SIMULATED; the first start of all compiles it, which takes half a minute)")
    bench = virtual_bench.start(args.virtual, capacity=args.capacity, faults=faults)
    folder = None
    try:
        plan = consistency.plan(
            bench.drive["capacity_bytes"], bench.drive["raw_nand_bytes"], args.op,
            args.duration or consistency.VIRTUAL_DURATION_S, args.zoom, args.smart_interval, args.seed,
        )  # fmt: skip
        describe(plan, bench.drive, show)
        if args.dry_run:
            return None, 0
        folder, end = carry_out(args.method, plan, bench, args.runs, args.influx or os.environ.get("SSDRIG_INFLUX"), show, args.jsonl)
    finally:
        bench.end(keep_truth_in=folder / "truth" if folder else None)
    if args.json or args.jsonl:
        print(json.dumps({"run": str(folder), "state": end["state"], "why": end["why"], "exit_code": end["exit_code"]}), flush=True)
    show.say(f"{end['state']}: {end['why'] or 'all steps done'}\nrun folder: {folder}\nreport:     ./ssdrig report {folder}")
    return folder, end["exit_code"]


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
    op = "the drive's own over-provisioning" if plan.op_percent is None else f"{plan.op_percent:g} % of raw NAND over-provisioned"
    show.say(
        f"{drive['model']} {drive['serial']}: {drive['capacity_bytes'] / 1e9:.2f} GB, {drive['raw_nand_bytes'] / 1e9:.2f} GB raw NAND{dilated}\n"
        f"consistency: {op}; purge, fill {plan.tested_bytes / 1e9:.2f} GB, then {plan.duration_s} s of 4 KiB random write at QD"
        f" {plan.queue_depth}; about {clock(fill_s + plan.duration_s * k + 5)} in all"
    )


def carry_out(
    method: str, plan: consistency.Consistency, bench: virtual_bench.VirtualBench, runs: str, influx: str | None, show: Progress, jsonl: bool
) -> tuple[Path, dict]:
    """All steps of one run. Returns its folder and its run.end event; errors of steps are in there, not raised."""
    stop = _Stop()
    book = journal.create(runs, header(method, plan, bench))
    pusher = push.start(book.path, influx) if influx else None
    book.event("run.start", pid=os.getpid())
    _anchor(book)
    state, why, exit_code = "complete", None, 0
    rig = Rig(bench.port, book)
    live = Live(plan, bench.drive, book, rig, show, jsonl, lambda: adminclient.poll(bench.drive["admin"]))
    try:
        with _step(book, "check"):
            rig.start()
        with _step(book, "purge"):
            show.show("purge")
            purge(bench)
        with _step(book, "fill"):
            live.begin("fill", plan.tested_bytes)
            _fio(book, fill_job(plan, bench), live, stop)
        with _step(book, "load"):
            live.poll_smart("before")
            live.begin("load")
            _fio(book, load_job(plan, bench), live, stop)
        with _step(book, "flush"):
            with NbdClient(bench.drive["socket"]) as nbd:
                nbd.flush()
    except SsdrigError as error:
        state, why, exit_code = "failed", str(error), error.exit_code
    except KeyboardInterrupt:
        state, why, exit_code = "interrupted", "stopped by a signal", 130
    except BaseException as error:  # a defect of ours: the run says so and is closed like any other
        state, why, exit_code = "failed", repr(error), 1
        raise
    finally:
        with _step(book, "teardown", must=False):
            live.poll_smart("after")
        rig.stop()
        _anchor(book)
        end = book.close(state, why, exit_code)
        stop.restore()
    if pusher and pusher.wait() and not end["exit_code"]:
        end = {**end, "exit_code": UploadIncomplete.exit_code}
    return book.path, end


def _fio(book: journal.Journal, job: load.Job, live: Live, stop: "_Stop") -> None:
    result = load.run(job, book.path / "fio" / job.name, on_second=live.second, should_stop=stop.asked)
    if result.seconds:
        book.event("load.first_io", t_ns=int(result.seconds.t_ns[0]), step=job.name)
    stop.check()


def header(method: str, plan: consistency.Consistency, bench: virtual_bench.VirtualBench) -> dict:
    """Content of run.json."""
    drive = {k: v for k, v in bench.drive.items() if k not in ("socket", "admin")}
    return {
        "ssdrig": __version__,
        "simulated": True,
        "method": {"name": method, **asdict(plan)},
        "drive": {"interface": "nbd", **drive},
        "rig": {"port": bench.port, "simulated": True},
        "host": {"python": platform.python_version(), "fio": load.version(), "kernel": platform.release(), "cpus": os.cpu_count()},
    }


def purge(bench: virtual_bench.VirtualBench) -> None:
    """Format the drive and see that it is empty: first, middle and last block read back as zeros. DriveError if not."""
    adminclient.ask(bench.drive["admin"], {"op": "format"})
    with NbdClient(bench.drive["socket"]) as nbd:
        last = bench.drive["capacity_bytes"] - EFFECT_PROBE_BYTES
        for offset in (0, last // 2 // EFFECT_PROBE_BYTES * EFFECT_PROBE_BYTES, last):
            if any(nbd.read(offset, EFFECT_PROBE_BYTES)):
                raise DriveError("zeros after the purge", f"data at byte {offset}", "the drive did not purge; do not use its figures")


def fill_job(plan: consistency.Consistency, bench: virtual_bench.VirtualBench) -> load.Job:
    return load.Job(
        name="fill", rw="write", block_bytes=plan.fill_block_bytes, queue_depth=plan.queue_depth,
        size_bytes=plan.tested_bytes, time_s=None, seed=plan.seed, target=bench.fio_target,
    )  # fmt: skip


def load_job(plan: consistency.Consistency, bench: virtual_bench.VirtualBench) -> load.Job:
    """The second seed differs from the fill's, or the random order would repeat what a fill with it wrote."""
    return load.Job(
        name="load", rw="randwrite", block_bytes=plan.block_bytes, queue_depth=plan.queue_depth,
        size_bytes=plan.tested_bytes, time_s=plan.duration_s * bench.drive["time_dilation"], seed=plan.seed + 1,
        target=bench.fio_target,
    )  # fmt: skip


@contextmanager
def _step(book: journal.Journal, name: str, must: bool = True):
    """Events around a step. With must=False a failure is recorded and swallowed: nothing may keep a teardown from its end."""
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


def _anchor(book: journal.Journal) -> None:
    book.event("clock.anchor", utc_ns=time.time_ns())


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
