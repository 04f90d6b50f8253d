"""The end of a run: whatever fails in it, and whoever presses Ctrl-C how often, every duty is tried."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from teardowns import DUTIES, LOST, NO_SPACE, carried_out, heard, in_a_callback, in_a_finalizer, signals_at

from ssdrig.base.errors import JournalError, RigError
from ssdrig.base.progress import Progress
from ssdrig.run.teardown import SIGNALS, Stop, Teardown
from ssdrig.runs import journal
from ssdrig.switch import pico

pytestmark = pytest.mark.keeps_time

ERRORS = {
    "ours": LOST,
    "disk": NO_SPACE,
    "defect": ZeroDivisionError("x"),
    "interrupt": KeyboardInterrupt(),
    "hangs": 1.0,
}


def test_nothing_fails(tmp_path):
    out = carried_out(tmp_path)
    assert not out.faults(["complete"]) and out.raised is None and out.end["exit_code"] == 0
    steps = [e["step"] for e in journal.events(out.folder) if e["kind"] == "step.end"]
    assert steps == ["check", "purge", "fill", "load", "flush", "teardown"]
    assert [e["kind"] for e in journal.events(out.folder)[-3:]] == ["clock.anchor", "sums", "run.end"]
    assert (out.folder / "truth/ledger.json").exists()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("duty", DUTIES)
def test_a_duty_that_fails_stops_no_other(tmp_path, duty, error, capfd):
    out = carried_out(tmp_path, break_duty=duty, error=ERRORS[error])
    if (duty, error) == ("close the journal", "hangs"):
        assert out.end["exit_code"] == 8
        (late,) = (thread for thread in threading.enumerate() if thread.name == f"teardown: {duty}")
        late.join(60)  # left behind, it ends late: how late is the disk's matter
    faults = out.faults()
    mine = {"see the rail on": "a rail is off", "stop the rig": "the rig runs on"}.get(duty)
    if duty == "end the virtual bench":
        mine = "the temporary folder is left"  # by the stand-in's own failure, before it did anything
    assert [fault for fault in faults if fault != mine] == [] and out.raised is None, faults
    assert f"teardown: {duty}: " in capfd.readouterr().err
    end = journal.events(out.folder)[-1]
    assert end["kind"] == "run.end" and end["state"] == "complete"
    if duty in DUTIES[:4]:
        notes = [e["text"] for e in journal.events(out.folder) if e["kind"] == "note"]
        assert any(duty in text for text in notes) and duty in end["why"]
        assert out.end["exit_code"] == {"ours": 5, "disk": 8, "hangs": 5}.get(error, 1)


def test_a_truth_that_cannot_be_kept_is_a_note(tmp_path, monkeypatch, capfd):
    def copy(source, target):
        target.write_text("half")
        raise NO_SPACE

    monkeypatch.setattr(shutil, "copy2", copy)
    out = carried_out(tmp_path)
    assert not out.faults(["complete"]) and out.end["exit_code"] == 0 and out.raised is None
    assert "No space left" in capfd.readouterr().err and not list((out.folder / "truth").iterdir())


def test_a_journal_that_fails_keeps_no_duty_from_being_done(tmp_path, monkeypatch):
    """From the load on the disk takes nothing: the run failed, the rest is as ever."""
    real, full = journal.Journal._append, []

    def append(self, name, data):
        if b'"load"' in data:
            full.append(1)
        if full and b"run.end" not in data:
            self._fail(OSError(28, "No space left on device"))
        real(self, name, data)

    monkeypatch.setattr(journal.Journal, "_append", append)
    out = carried_out(tmp_path)
    assert not out.faults(["failed"]) and out.raised is None
    assert out.end["exit_code"] == 8 and "No space left" in out.end["why"]


def test_a_defect_in_a_step_is_raised_after_the_teardown(tmp_path):
    def poll(like):
        raise ZeroDivisionError("a defect")

    out = carried_out(tmp_path, poll=poll)
    assert isinstance(out.raised, ZeroDivisionError) and not out.faults(["failed"])
    assert "ZeroDivisionError" in journal.events(out.folder)[-1]["why"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_signal(tmp_path, number):
    with heard(number):
        out = carried_out(tmp_path, step_s=0.2)
        assert not out.faults(["interrupted"]) and out.raised is None
    assert (out.end["exit_code"], out.end["why"]) == (130, f"stopped by {number.name}")


def test_signals_during_the_teardown_are_absorbed(tmp_path):
    """The last poll takes 0.3 s; five signals come meanwhile."""
    polls = []

    def poll(like):
        polls.append(1)
        if len(polls) >= 3:  # after one of the load, and one at its end, which comes before its time here
            for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                os.kill(os.getpid(), number)
                time.sleep(0.05)
        return {"t_start_ns": 1, "t_end_ns": 2, "smartctl": {}, "simulated": True}

    out = carried_out(tmp_path, poll=poll)
    assert not out.faults(["complete"]) and out.raised is None


def test_a_signal_while_the_handlers_are_set_leaves_the_old_ones(monkeypatch):
    before, real, sent = [signal.getsignal(number) for number in SIGNALS], signal.signal, []

    def setting(number, handler):
        old = real(number, handler)
        if not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))
        return old

    monkeypatch.setattr(signal, "signal", setting)
    with pytest.raises(KeyboardInterrupt), Stop(Progress(quiet=True)):
        pytest.fail("nobody asked for the end")
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_between_two_blocks_no_signal_keeps_a_duty_from_being_done():
    """One that came on the way into the teardown would be raised there, before the first duty."""
    done = []
    with Stop(Progress(quiet=True)) as stop, Teardown(stop, Progress(quiet=True)) as teardown:
        with stop.held():
            teardown.push("a duty", lambda: done.append(1))
        for number in SIGNALS:
            os.kill(os.getpid(), number)
    assert done == [1] and stop.count == 2  # the SIGHUP after another hurries nothing


@pytest.mark.parametrize("seed", [1])
def test_double_ctrl_c_at_50_random_moments(tmp_path, seed):
    chance, states, length = random.Random(seed), {}, 0.35
    for n in range(50):
        first = chance.uniform(0, length)
        numbers = chance.choices((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), k=3)
        moments = [(first, numbers[0]), (first + chance.uniform(0, 0.1), numbers[1])]
        moments += [(first + chance.uniform(0, 0.3), numbers[2])]
        (tmp_path / str(n)).mkdir()
        before = [signal.signal(number, lambda *_: None) for number in numbers]  # one may come after the run
        try:
            with signals_at(*moments):
                out = carried_out(tmp_path / str(n), step_s=0.1)
        finally:
            for number, handler in reversed(list(zip(numbers, before, strict=True))):
                signal.signal(number, handler)
        assert out.faults() == [] or out.faults() == ["signal handlers are not restored"], (n, moments)
        assert out.raised is None or isinstance(out.raised, KeyboardInterrupt) and out.folder is None
        state = journal.state(out.folder) if out.folder else "not begun"
        states[state] = states.get(state, 0) + 1
    assert states["interrupted"] >= 25, states


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("room_kB", [*range(72, 372, 15)])
def test_a_disk_that_is_full_at_20_moments(tmp_path, room_kB):
    """A tmpfs of so many kB takes the run folder; fio's output and SMART fill it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room_kB}k", "tmpfs", str(disk)], check=True)
    document = {"t_start_ns": 1, "t_end_ns": 2, "smartctl": {"x": "y" * 9000}, "simulated": True}
    try:
        out = carried_out(tmp_path, runs=disk / "runs", bytes_per_step=4096, poll=lambda like: document)
        assert not out.faults(["failed"]) and (out.folder or isinstance(out.raised, JournalError)), out
        assert out.folder is None or (out.raised is None and out.end["exit_code"] == 8)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_the_second_signal_raises_where_it_may():
    show = Progress(quiet=True)
    with Stop(show) as stop:
        with stop.held(), stop.second_raises():
            signal.raise_signal(signal.SIGINT)
            assert stop.asked()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)  # never again
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop.check()
    assert stop.name == "SIGINT" and stop.count == 4


def test_before_anything_is_acquired_the_first_signal_raises():
    with pytest.raises(KeyboardInterrupt), Stop(Progress(quiet=True)):
        signal.raise_signal(signal.SIGHUP)


@pytest.mark.parametrize("drop", [in_a_callback, in_a_finalizer])
def test_after_a_signal_that_interrupts_a_finalizer_the_next_one_raises(drop, capfd):
    with Stop(Progress()) as stop:
        drop(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)  # the run ends
        with stop.held():
            drop(signal.SIGINT)
            with stop.second_raises():
                signal.raise_signal(signal.SIGINT)
            with stop.next_raises("figures"):
                drop(signal.SIGTERM)
                drop(signal.SIGTERM)
                with pytest.raises(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)
    assert stop.count == 9 and stop.name == "SIGINT"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("first", SIGNALS)
def test_hang_up_after_a_signal_hurries_nothing(first, capfd):
    """Of a terminal that is gone SIGHUP comes from the kernel and from the shell."""
    with Stop(Progress()) as stop, stop.held(), stop.second_raises():
        signal.raise_signal(first)
        for _ in range(3):
            signal.raise_signal(signal.SIGHUP)
        assert stop.count == 1 and stop.name == signal.Signals(first).name
        with stop.next_raises("figures"):
            signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert capfd.readouterr().err.count("SIGHUP") == (first == signal.SIGHUP)


@pytest.mark.parametrize("drop", [in_a_callback, in_a_finalizer])
def test_hang_up_that_was_dropped_leaves_it_to_the_next(drop):
    with Stop(Progress(quiet=True)) as stop:
        drop(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)
        assert stop.count == 2


@pytest.mark.parametrize("drop", [in_a_callback, in_a_finalizer])
def test_second_signal_that_interrupts_a_finalizer_leaves_it_to_the_third(drop):
    with Stop(Progress(quiet=True)) as stop, stop.held(), stop.second_raises():
        signal.raise_signal(signal.SIGINT)
        drop(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_other_errors_of_finalizers_are_reported_as_before(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", hook := lambda dropped: reported.append(dropped.exc_type))

    class Broken:
        def __del__(self):
            raise ZeroDivisionError

    with Stop(Progress(quiet=True)):
        Broken()
    assert reported == [ZeroDivisionError] and sys.unraisablehook is hook


def test_nohup_stays():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Stop(Progress(quiet=True)) as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.count
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_duties_run_in_reverse_and_say_what_they_do(capfd):
    done, show = [], Progress()
    with Stop(show) as stop, Teardown(stop, show) as teardown:
        teardown.push("the last", lambda: done.append("last"))
        teardown.push("the slow", lambda: time.sleep(0.2))
        teardown.push("the first", lambda: (done.append("first"), os.kill(os.getpid(), 2)))
    assert done == ["first", "last"] and "SIGINT: finishing: the " in capfd.readouterr().err


class Rail:
    """A rig whose rail is off; `on` works or not."""

    def __init__(self, comes_back):
        self.off, self.comes_back = [0], comes_back

    def greet(self, timeout_s=5.0):
        return {"switch": {"off": self.off}}


@pytest.mark.parametrize("comes_back", [True, False])
def test_the_rail_is_seen_on(monkeypatch, comes_back):
    def on(rig, rails=None, unsafe=False):
        rig.off = [] if rig.comes_back else [0]

    monkeypatch.setattr(pico, "on", on)
    rig = Rail(comes_back)
    if comes_back:
        pico.restore(rig)
        assert rig.off == []
    else:
        with pytest.raises(RigError, match="still off"):
            pico.restore(rig)


def test_a_board_without_a_switch_has_no_rail_to_see(monkeypatch):
    """It is asked once, and no power is asked for."""
    asked = []
    monkeypatch.setattr(pico, "on", lambda *_: pytest.fail("power was asked for"))
    pico.restore(SimpleNamespace(greet=lambda timeout_s: asked.append(timeout_s) or {"switch": None}))
    assert len(asked) == 1


@pytest.mark.parametrize("lost", [0, 2, 3])
def test_a_greeting_may_be_lost_twice(lost):
    left = [lost]

    def greet(timeout_s):
        left[0] -= 1
        if left[0] >= 0:
            raise RigError("a greeting", "none", "look at the rig")
        return {"switch": {"off": []}}

    with pytest.raises(RigError) if lost == 3 else contextlib.nullcontext():
        pico.restore(SimpleNamespace(greet=greet))
    assert left == [0 if lost == 3 else -1]  # it was asked three times, or until it answered


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_that_fails_says_why_also_when_quiet(tmp_path, monkeypatch, capsys, quiet):
    from ssdrig import cli
    from ssdrig.run import run

    def fails(args, show, stop, teardown):
        return tmp_path, {"state": "failed", "why": "the drive went away", "exit_code": 4}

    monkeypatch.setattr(run, "on_virtual", fails)
    words = ["run", "consistency", "--virtual", "sata-tlc", *["--quiet"] * quiet]
    assert cli.main(words) == 4
    assert "failed: the drive went away" in capsys.readouterr().err.splitlines()
