"""powerloss/supply.py: what is a cut, and two commands as a switch."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from simboard import until

from ssdrig.base.errors import DriveError, RigError, UsageError
from ssdrig.powerloss import health, supply
from ssdrig.powerloss.cycle import LAST_OFF_S, MISSING_OFF_S, READY_S, Cycle, Lived
from ssdrig.powerloss.supply import Outcome
from ssdrig.run import cutting
from ssdrig.switch import command


def rail(**more):
    return {"rail": 0, "before_mV": 5000, "residual_mV": 12, "t90_10_us": 900, **more}


def test_a_rail_that_stays_above_the_lock_out_was_not_cut():
    assert supply.no_cut({"rails": [rail(), rail(rail=1)]}) == ""
    assert supply.no_cut({"rails": [rail(residual_mV=3749)]}) == ""
    why = supply.no_cut({"rails": [rail(), rail(rail=1, residual_mV=3750)]})
    assert why.startswith("rail 1 was not seen below 3750")
    assert "None" in supply.no_cut({"rails": [rail(residual_mV=None)]})


def test_a_rail_that_a_signal_of_the_host_fed_was_not_cut():
    """40 mA through PERST# make 0.1 V across the crowbar, far below the lock-out."""
    assert supply.no_cut({"rails": [rail(residual_mV=98, fed_mA=43)]}).startswith("rail 0 was fed with 43 mA")
    for fed_mA in (None, 0, 5, 10):  # an INA226's offset makes 8 mA of nothing
        assert supply.no_cut({"rails": [rail(fed_mA=fed_mA)]}) == ""


@pytest.mark.parametrize("ahead_s", [0.0, 3.0])
def test_a_board_that_was_reset_in_the_midst_of_a_cut_is_not_waited_for_as_long_as_a_cut_may_be_ahead(
    tmp_path, monkeypatch, ahead_s
):
    """The report of a cut at a time was waited for 500 s; firmware that was killed sends none."""
    rig = SimpleNamespace(hello=lambda: {"rails": [], "scope": [], "switch": None})
    made, asked = supply.RigSupply(rig, tmp_path), []
    monkeypatch.setattr(made, "board_us", lambda t_ns: t_ns // 1000)
    monkeypatch.setattr(supply, "time", SimpleNamespace(monotonic_ns=lambda: 7 * 10**9))

    def reset(rig, **how):
        asked.append(how)
        raise RigError("the rig's report", "a greeting of boot 2", "look")

    monkeypatch.setattr(supply.pico, "arm_and_cut", reset)
    with pytest.raises(RigError, match="boot 2"):
        made.cut("crowbar", 7 * 10**9 + int(ahead_s * 1e9), 0.6)
    (how,) = asked
    assert how["timeout_s"] == pytest.approx(ahead_s + 0.6 + supply.REPORT_S) and supply.REPORT_S <= 30


def test_what_a_board_sends_late_is_not_taken_for_what_the_drive_draws_now(tmp_path, monkeypatch):
    """A board that was 6 s behind sent the idle drive's current while the load ran: no threshold was of the load."""
    rig = SimpleNamespace(hello=lambda: {"rails": [{"rail": 0, "current_lsb_pA": 10**12}]})
    made, now_s, fed = supply.RigSupply(rig, tmp_path), [100.0], []
    clock = SimpleNamespace(t_ns=lambda t_us: np.asarray(t_us, np.int64) * 1000)
    made._clock = SimpleNamespace(offset=0, now=lambda: clock)

    def sleep(seconds):
        now_s[0] += seconds

    class Late:
        """All samples up to 6 s ago: 1 A until 100 s, then 2 A."""

        boots = [None]

        def feed(self, records):
            fed.append(records)

        def frames(self, rail):
            t_us = np.arange(95_000_000, int((now_s[0] - 6) * 1e6), 100_000)
            frames_ = SimpleNamespace(t_us=t_us, current=np.where(t_us < 100_000_000, 1, 2), boot=np.zeros(1))
            frames_.only = lambda chosen: frames_
            return frames_

    time_ = SimpleNamespace(sleep=sleep, monotonic=lambda: now_s[0], monotonic_ns=lambda: int(now_s[0] * 1e9))
    monkeypatch.setattr(supply, "time", time_)
    monkeypatch.setattr(supply, "Decoder", Late)
    monkeypatch.setattr(supply.journal, "records", lambda run, offset: SimpleNamespace(next_offset=offset + 1))
    assert made.currents(4.0).tolist() == [2.0] * 40 and len(fed) > 2
    monkeypatch.setattr(Late, "frames", lambda self, rail: SimpleNamespace(only=lambda c: self.none, boot=np.zeros(0)))
    Late.none = SimpleNamespace(t_us=np.zeros(0), current=np.zeros(0))
    with pytest.raises(RigError, match="0 samples, not up to now"):
        made.currents(4.0)
    Late.none = SimpleNamespace(t_us=np.array([1, 1 << 40]), current=np.zeros(2))  # of a host that stood still
    with pytest.raises(RigError, match="the samples of 4 s; seen 0;"):
        made.currents(4.0)


@pytest.mark.parametrize(("ended", "cycles"), [(False, health.DEAD_CYCLES - 1), (True, 0)])
def test_a_missing_drive_gets_as_many_power_cycles_as_make_it_dead(ended, cycles, monkeypatch):
    off_s, waits_s, target = [], [], SimpleNamespace(ended=lambda: ended, slot=None)

    def cut(shape, at_ns, seconds):
        off_s.append(seconds)
        return Outcome(0, 0, time.monotonic_ns(), seconds)

    cycle = Cycle(target, SimpleNamespace(cut=cut), None, None, 1, 1, {}, lambda *words, **more: None)
    monkeypatch.setattr(cycle, "there", lambda within_s: waits_s.append(within_s) or cycle._nobody())
    cycle._nobody = lambda: (_ for _ in ()).throw(DriveError("the drive to come back", "nothing", "look"))
    lived = Lived(np.zeros(0), None, 0, 0, Outcome(0, 0, 0, 0.6), None)
    with pytest.raises(DriveError):
        cycle._back(SimpleNamespace(number=1), lived)
    assert off_s == ([MISSING_OFF_S] * (cycles - 1) + [LAST_OFF_S] if cycles else [])
    assert lived.tries == cycles + 1
    # a drive may rebuild its tables for minutes, and makers have it do so with power for 20, twice
    assert waits_s == ([READY_S] * (cycles - 1) + [1200, 1200] if cycles else [READY_S]) and READY_S > 127.5


@pytest.mark.parametrize(
    ("cause", "silent_s", "tries"),
    [(TimeoutError("timed out"), 20, 3), (TimeoutError("timed out"), 99, 4), (ConnectionRefusedError("no"), 20, 1)],
)
def test_server_that_listens_and_says_nothing_yet_is_asked_again(cause, silent_s, tries, monkeypatch):
    """A host without a CPU to spare keeps a greeting for longer than 10 s."""
    asked = []

    def opened():
        asked.append(1)
        if 10 * len(asked) <= silent_s:
            raise DriveError("an NBD drive", str(cause), "wait") from cause
        return SimpleNamespace(size_bytes=5 << 20, close=lambda: None)

    made = SimpleNamespace(of_nbd=lambda *_: SimpleNamespace(open=opened), NBD_BLOCK_BYTES=4096)
    monkeypatch.setattr(cutting, "target", made)
    monkeypatch.setattr(cutting, "time", SimpleNamespace(monotonic=lambda: 10.0 * len(asked)))
    if tries == 3:
        assert cutting.described("nbd://h", "off", "on", False)["capacity_bytes"] == 5 << 20
    else:
        with pytest.raises(DriveError):
            cutting.described("nbd://h", "off", "on", False)
    assert len(asked) == tries


def test_ready_does_not_count_the_time_of_the_command_that_gives_the_power(monkeypatch):
    cycle = Cycle(SimpleNamespace(slot=None), None, None, None, 1, 1, {}, lambda *words, **more: None)
    monkeypatch.setattr(cycle, "there", lambda within_s: "a link")
    back = supply.SwitchSupply(command.Commands("true", "sleep 0.3"), lambda: False).cut("command", None, 0.0)
    lived = Lived(np.zeros(0), None, 0, 0, back, None)
    cycle._back(SimpleNamespace(number=1), lived)
    assert 0.3 <= lived.stalled_s <= lived.ready_s


@pytest.mark.parametrize("switch", [None, {"rails": []}, {"rails": [{"rail": 1}]}])
def test_a_rig_that_only_measures_is_refused_before_anything_is_written(switch):
    cuts, left_out = SimpleNamespace(do="cuts", not_run=None), SimpleNamespace(do="cuts", not_run="needs a rig")
    rig, commands = SimpleNamespace(target=None), SimpleNamespace(target=SimpleNamespace(commands=("off", "on")))
    hello = {"switch": switch}
    with pytest.raises(UsageError, match="a rig that switches rail 0; seen one that only measures"):
        cutting.refuse_rig(hello, rig, [cuts])
    cutting.refuse_rig({"switch": {"rails": [{"rail": 0}]}}, rig, [cuts])
    cutting.refuse_rig(hello, commands, [cuts])
    cutting.refuse_rig(hello, rig, [left_out, SimpleNamespace(do="load", not_run=None)])


def test_two_commands_cut_and_power_may_have_returned_when_the_second_begins(tmp_path):
    there = tmp_path / "there"
    there.touch()
    switch = supply.SwitchSupply(command.Commands(f"rm {there}", f"touch {there}"), there.exists)
    before_ns = time.monotonic_ns()
    outcome = switch.cut("crowbar", before_ns + 30_000_000, 0.05)
    assert there.exists() and outcome.why_not == "" and outcome.report is None
    assert before_ns + 30_000_000 <= outcome.fired_ns < outcome.fired_ns + outcome.bound_ns < outcome.on_ns
    assert outcome.off_s >= 0.05


def test_a_drive_that_still_answers_was_not_cut():
    still_on = supply.SwitchSupply(command.Commands("true", "true"), lambda: True)
    assert "still answered" in still_on.cut("float", None, 0.0).why_not


def test_a_command_that_fails_ends_it_and_power_is_given_back(tmp_path):
    there = tmp_path / "there"
    switch = supply.SwitchSupply(command.Commands("echo burnt >&2; exit 3", f"touch {there}"), lambda: False)
    with pytest.raises(RigError, match="exit code 3: burnt"):
        switch.cut("crowbar", None, 0.0)
    switch.restore()
    assert there.exists()
    there.unlink()
    switch.restore()  # it has its power
    assert not there.exists()


@pytest.mark.slow
def test_what_a_command_leaves_running_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "COMMAND_S", 30.0)
    left = tmp_path / "left"
    switch = supply.SwitchSupply(command.Commands("true", f"sleep 60 & echo $! > {left}"), lambda: False)
    assert not switch.cut("float", None, 0.0).why_not
    pid = int(left.read_text())
    os.kill(pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.slow
def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "COMMAND_S", 0.2)
    pid = tmp_path / "pid"

    class Shell(subprocess.Popen):
        def wait(self, timeout=None):
            """Its time begins when it has said what it started: a busy machine may take longer for that."""
            if timeout is not None:
                until(lambda: pid.exists() and pid.read_text().endswith("\n"))
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Shell)
    switch = supply.SwitchSupply(command.Commands(f"sleep 300 & echo $! > {pid}; wait", "true"), lambda: False)
    with pytest.raises(RigError, match="still runs after 0.2 s"):
        switch.cut("crowbar", None, 0.0)
    until(lambda: not Path(f"/proc/{int(pid.read_text())}").exists())  # a busy machine ends it later, not its own end


def test_ctrl_c_does_not_reach_a_command(tmp_path):
    group = tmp_path / "group"
    # pid (comm) state ppid pgrp
    line = f"cut -d' ' -f5 < /proc/$$/stat > {group}"
    supply.SwitchSupply(command.Commands(line, "true"), lambda: False).cut("crowbar", None, 0.0)
    assert int(group.read_text()) not in (0, os.getpgrp())


@pytest.mark.parametrize(
    "command_line", ["kill -9 $$", "head -c 3000000 /dev/urandom >&2; exit 1", "printf '\\033[2J' >&2; exit 1"]
)
def test_a_command_that_prints_garbage_or_dies_is_an_error_in_words(command_line):
    with pytest.raises(RigError, match="exit code") as error:
        supply.SwitchSupply(command.Commands(command_line, "true"), lambda: False).cut("crowbar", None, 0.0)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", str(error.value)) and len(str(error.value)) < 12_000
