"""For tests of the teardown: a run on stand-ins for bench, rig and fio, where any duty can be made to fail."""

import contextlib
import errno
import os
import signal
import threading
import time
import weakref
from types import SimpleNamespace
from unittest import mock

from ssdrig.base.errors import RigError
from ssdrig.base.progress import Progress
from ssdrig.load import fio as load
from ssdrig.meter import bridge
from ssdrig.meter.pico.stream import LastSecond
from ssdrig.run import prepare, run
from ssdrig.run.bench import Bench
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal
from ssdrig.switch import pico
from ssdrig.virtual.bench import PREFIX, VirtualBench

SIZE = 64 << 20
DUTIES = (
    "see the rail on",
    "read the last SMART",
    "stop the rig",
    "tie the clock to UTC",
    "close the journal",
    "end the virtual bench",
)


class Rig:
    """Stands in for rig.Rig. `off`: rails without power; `writes` appends to the journal as long as it streams."""

    failure = None

    def __init__(self, port, book):
        self.book, self.off, self.running = book, [], False

    def start(self):
        self.running, self.off = True, [0]
        return self.greet()

    def greet(self, timeout_s=5.0):
        return {"switch": {"off": list(self.off)}, "serial": "RIG1", "simulated": True}

    def hello(self):
        return self.greet()

    def stop(self):
        self.running = False

    def silent_s(self):
        return 0.0

    def last_second(self):
        return LastSecond([], None)

    def lost(self):
        return 0


def power_on(rig, rails=None, unsafe=False):
    rig.off = []


def fio(step_s=0.05, bytes_per_step=0):
    """Stands in for load.run: `step_s` of steps of 1 ms, each with its second and its question whether to stop; with
    bytes_per_step 40 steps, each of which writes so much."""

    def run_(job, folder, on_second, should_stop):
        folder.mkdir(parents=True)
        until = time.monotonic() + step_s
        total = 0
        while (total < 40 * 4096 if bytes_per_step else time.monotonic() < until) and not should_stop():
            time.sleep(0.001)
            total += 4096
            with open(folder / "out.json", "ab", buffering=0) as f:
                f.write(bytes(bytes_per_step))
            on_second(
                {
                    "t_ns": time.monotonic_ns(),
                    "span_s": 0.001,
                    "ios": 1,
                    "bytes": 4096,
                    "iops": 1.0,
                    "bw_bytes": 4096.0,
                    "lat_mean_ns": 1000.0,
                    "total_ios": total // 4096,
                    "total_bytes": total,
                    "runtime_s": 0.001 * (total // 4096),
                }
            )
        return SimpleNamespace(seconds=None, bytes=total)

    return run_


class Outcome(SimpleNamespace):
    """folder, end: of the run, None without one; raised; rig: the stand-in; running: the virtual bench's folder."""

    def faults(self, states=journal.END_STATES) -> list[str]:
        """What is not as it must be after any end."""
        faults_ = []
        if self.rigs and self.rigs[0].running:
            faults_.append("the rig runs on")
        if self.rigs and self.rigs[0].off:
            faults_.append("a rail is off")
        if self.folder and journal.state(self.folder) not in states:
            faults_.append(f"state {journal.state(self.folder)}")
        if self.bench_folder.exists():
            faults_.append("the temporary folder is left")
        if self.handlers != [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]:
            faults_.append("signal handlers are not restored")
        return faults_


def carried_out(
    tmp_path, *, break_duty=None, error=None, step_s=0.05, bytes_per_step=0, poll=None, runs=None, changed=None
):
    """One run on stand-ins; `error` (an exception, or a number of seconds to hang) in the duty `break_duty`. `changed`:
    what an earlier part has set; what is put back is in the outcome's `put_back`."""
    rigs, put_back = [], []
    bench_folder = tmp_path / f"{PREFIX}test"
    truth = bench_folder / "truth"
    running = VirtualBench(
        bench_folder, {"socket": "/nowhere"}, "port", _Ended(), _Ended(), truth, bench_folder / "board.json"
    )

    def make_rig(port, book):
        rigs.append(Rig(port, book))
        return rigs[0]

    drive = {"model": "STAND-IN", "serial": "S1", "interface": "nbd", "capacity_bytes": SIZE}
    drive |= {"raw_nand_bytes": None, "time_dilation": 1}
    bench = Bench(
        drive=drive,
        target_now=lambda: "nowhere",
        port="port",
        simulated=True,
        purge=lambda show: {"method": "none", "ok": True},
        poll=poll or (lambda like: {"t_start_ns": 1, "t_end_ns": 2, "smartctl": {}, "simulated": True}),
        flush=lambda: None,
        check=lambda: None,
        put_back=lambda key, before: put_back.append((key, before)),
    )
    runs = runs or tmp_path / "runs"
    args = SimpleNamespace(runs=str(runs), influx=None, jsonl=False, verbose=False)
    plan = prepare.prepare("consistency", drive, "quick", {"time": "4 s", "smart": "1 s"}, 1)
    show = Progress(quiet=True)
    push = Teardown.push

    def pushing(self, duty, function, limit_s=30.0):
        def broken():
            if isinstance(error, (int, float)):
                time.sleep(error)
            elif isinstance(error, BaseException):
                if duty == "close the journal":
                    function()
                raise error
            function()

        if duty == break_duty:
            push(self, duty, broken, 0.2 if isinstance(error, (int, float)) else limit_s)
        else:
            push(self, duty, function, limit_s)

    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    out = Outcome(folder=None, end=None, raised=None, rigs=rigs, bench_folder=bench_folder, handlers=handlers)
    out.put_back = put_back
    with contextlib.ExitStack() as stand_ins:
        for patch in (
            mock.patch.object(bridge, "opened", make_rig),
            mock.patch.object(load, "run", fio(step_s, bytes_per_step)),
            mock.patch.object(load, "version", lambda program: "fio-none"),
            mock.patch.object(pico, "on", power_on),
            mock.patch.object(Teardown, "push", pushing),
        ):
            stand_ins.enter_context(patch)
        try:
            with Stop(show) as stop, Teardown(stop, show) as teardown, stop.held():
                truth.mkdir(parents=True)
                (truth / "ledger.json").write_text("{}")
                (bench_folder / "board.json").write_text("[]")
                teardown.push(
                    "end the virtual bench", lambda: running.end(keep_truth_in=out.folder and out.folder / "truth")
                )
                out.folder, out.end = run.carry_out(args, plan, bench, show, stop, changed=changed)
        except BaseException as caught:
            out.raised = caught
    if out.folder is None:
        out.folder = next((path for path in runs.glob("*") if path.is_dir() and path.name[0] != "."), None)
    return out


class _Ended:
    """A process that has ended."""

    stdout = SimpleNamespace(close=lambda: None)

    def poll(self):
        return 0


@contextlib.contextmanager
def beside(send):
    """Run send(over) in a thread as long as the block lasts; `over` is set at its end."""
    over = threading.Event()
    thread = threading.Thread(target=send, args=(over,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def signals_at(*moments):
    """Send this process (seconds, signal) each, from a thread; those that are due after the block are not sent."""

    def send(over):
        began = time.monotonic()
        for at_s, number in sorted(moments):
            if over.wait(max(0.0, at_s - (time.monotonic() - began))):
                return
            os.kill(os.getpid(), number)

    return beside(send)


@contextlib.contextmanager
def heard(number):
    """Send this process a signal as soon as someone listens in the block, however late that is on a busy host."""

    def deaf(*_):
        pass

    def send(over):
        while signal.getsignal(number) is deaf:
            if over.wait(0.005):
                return
        over.wait(0.06)
        os.kill(os.getpid(), number)

    before = signal.signal(number, deaf)
    try:
        with beside(send):
            yield
    finally:
        signal.signal(number, before)


def in_a_callback(number):
    """This process gets the signal while a weak reference's callback runs: what its handler raises is dropped."""
    referent = threading.Event()
    reference = weakref.ref(referent, lambda _: signal.raise_signal(number))
    del referent
    assert reference() is None


def in_a_finalizer(number):
    """This process gets the signal while an object's __del__ runs: what its handler raises is dropped."""

    class Ending:
        def __del__(self):
            signal.raise_signal(number)

    Ending()


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")
LOST = RigError("the rig", "nothing", "look")
