"""The switch from the host: words and waiting against the SIMULATED board, and the whole bench, where the virtual drive
loses its power while fio writes to it and comes back."""

import contextlib
import json
import math
import re
import subprocess
import time

import pytest
from simboard import PATIENCE_S, Board, changed_firmware, interpreter
from switchcuts import twelve

from ssdrig import cli
from ssdrig.base.errors import RigError, UsageError
from ssdrig.cli import main
from ssdrig.commands import rig_switch
from ssdrig.meter import wire
from ssdrig.meter.pico.session import Memory
from ssdrig.meter.pico.stream import Rig
from ssdrig.switch import pico, profiles
from ssdrig.virtual import adminclient, bench

pytestmark = pytest.mark.keeps_time


class Rigged:
    """`with Rigged(tmp_path, faults) as (rig, board, memory)`: Rig on a SIMULATED board of constant power."""

    def __init__(self, folder, faults=None, watts=2.5):
        self.board = Board(folder, watts, faults)

    def __enter__(self):
        self.board.__enter__()
        self.memory = Memory()
        self.rig = Rig(self.board_port(), self.memory)
        self.rig.start()
        return self.rig, self.board, self.memory

    def board_port(self):
        import os

        return os.ttyname(self.board.fd)

    def __exit__(self, *what):
        self.rig.stop()
        self.board.__exit__(*what)


def true_power(board, events=0):
    """[(ns, powered)] of the drive's supply, as the simulation knows it; waited for, because the cable may hear of them
    late."""
    deadline = time.monotonic() + PATIENCE_S
    while (
        len(known := [(t, p) for boot in board.truth() for t, p in boot["power"]]) < events
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    return known


@pytest.mark.usefixtures("integers")
def test_cut_and_back(tmp_path):
    with Rigged(tmp_path) as (rig, board, _):
        report = pico.arm_and_cut(rig, profile="crowbar", off_ms=600)
        (down, off), (up, back) = true_power(board, events=2)
        boot = board.truth()[0]
    assert report["ok"] and report["rails"][0]["safe"] and (off, back) == (False, True)
    assert 600_000 <= report["off_us"] < 603_000
    fired_ns = boot["t_boot_ns"] + (report["fired_us"] - boot["tick0"]) * 1000 / (1 + boot["ppm"] * 1e-6)
    # gate 10 us, then 4.99 V to 4.00 V: 0.5 A and 2.2 Ohm out of 470 uF
    assert 150_000 < down - fired_ns < 260_000
    assert (up - down) / 1000 == pytest.approx(report["off_us"], abs=3500)  # the rail rises to the lock-out in 3.15 ms
    assert "90 to 10 % in 2." in rig_switch.words_of(report)


def test_the_scope_sees_the_fall(tmp_path):
    """The waveform is that of R C from the edge on: 10 us for the gate, 50 us of dead time, then 2.2 Ohm; the readings
    of the sensor and the scope agree on it."""
    with Rigged(tmp_path, watts=0.0, faults={"leak_mA": 0.0}) as (rig, board, _):
        scope = {"gpio": 26, "rate": 500_000, "before": 500, "after": 3000}
        report = pico.arm_and_cut(rig, profile="crowbar", off_ms=550, scope=scope)
        with pytest.raises(RigError, match="gpio must be one of"):
            pico.scope_now(rig, gpio=27)
        with pytest.raises(RigError, match="7680 samples at most"):
            pico.scope_now(rig, before=4000, after=4000)
        steady = pico.scope_now(rig, after=200)
    picture = report["waveform"]
    assert len(picture["volts"]) == 3500 and abs(picture["t0_us"] + 499 * 2 - report["fired_us"]) <= 4
    for k, v in enumerate(picture["volts"]):
        since = picture["t0_us"] + 2 * k - report["fired_us"] - 60
        assert v == pytest.approx(5 if since <= 0 else 5 * math.exp(-since / (2.2 * 470)), abs=0.03)
    means = [sum(picture["volts"][k - 10 : k + 11]) / 21 for k in range(10, 3490)]  # the noise would cross too early
    t90 = next(k for k, v in enumerate(means) if v < 4.5)
    t10 = next(k for k, v in enumerate(means) if v < 0.5)
    assert 2 * (t10 - t90) == pytest.approx(math.log(9) * 2.2 * 470, abs=15)
    # the cut comes 0.2 ms behind a reading, one follows each 1.1 ms, and a line between two lies above the curve
    assert report["rails"][0]["t90_10_us"] == pytest.approx(2 * (t10 - t90) + 190, abs=40)
    assert len(steady["volts"]) == 200 and all(abs(v - 5) < 0.03 for v in steady["volts"])
    noise = [v - 5 for v in steady["volts"]]
    assert 0.5e-3 < (sum(v * v for v in noise) / 200) ** 0.5 < 8e-3  # 2 counts of 1.6 mV


def test_the_scope_sees_a_ramp(tmp_path):
    """A straight line from 5 V to R C before its end, in steps of 1/32 of what is left; by 100 kS/s, so that all of it
    is seen."""
    with Rigged(tmp_path, watts=0.0, faults={"leak_mA": 0.0}) as (rig, board, _):
        scope = {"gpio": 26, **rig_switch._picture(50_000)}
        assert scope["rate"] == 100_000
        report = pico.arm_and_cut(rig, profile="ramp", fall_us=50_000, bulk_uF=[470], off_ms=600, scope=scope)
    picture = report["waveform"]
    assert len(picture["volts"]) == 7500 and picture["dt_ns"] == 10_000
    for k, v in enumerate(picture["volts"]):
        since = picture["t0_us"] + 10 * k - report["fired_us"] - 10  # 10 us: the gate
        line = min(5.0, 5 * (1 - since / 50_000))
        if since < 48_000:
            assert line - 0.03 <= v <= max(line, 0) * 32 / 31 + 0.03, (k, v)
        elif since > 54_000:
            assert v < 0.03
    assert report["rails"][0]["t90_10_us"] == pytest.approx(40_000, rel=0.03)


def test_a_cut_waits_for_what_the_picture_shows_before_it(tmp_path):
    """200 ms of it, which is longer than it takes to arm and to fire."""
    with Rigged(tmp_path) as (rig, board, _):
        scope = {"gpio": 26, "rate": 10_000, "before": 2000, "after": 100}
        report = pico.arm_and_cut(rig, profile="glitch", glitch_us=200, scope=scope)
    picture = report["waveform"]
    assert len(picture["volts"]) == 2100 and 199_800 <= report["fired_us"] - picture["t0_us"] <= 200_000


def test_two_rails_in_one_picture(tmp_path):
    """Crowbars of 2.2 Ohm x 470 uF and of 10 Ohm x 300 uF from the same moment on; the inputs share the ADC, a sample
    each in turn."""
    with Rigged(tmp_path, watts=0.0, faults={"leak_mA": 0.0, **twelve(A=0.0)}) as (rig, board, _):
        scope = {"gpio": [26, 27], **rig_switch._picture(0, 2)}
        report = pico.arm_and_cut(rig, rails=[0, 1], off_ms=60, residual_ms=30, scope=scope)
        with pytest.raises(RigError, match="gpio must be one of .*, or a list of some"):
            pico.scope_now(rig, gpio=[26, 26])
        with pytest.raises(RigError, match="3840 samples at most"):
            pico.scope_now(rig, gpio=[27, 26], before=2000, after=2000)
        apart = pico.scope_now(rig, gpio=[27, 26], rate=10_000, after=100)
    for picture, rail, volts, tau_us in zip(report["waveform"], (0, 1), (5, 12), (2.2 * 470, 10 * 300)):
        assert picture["rail"] == rail and picture["dt_ns"] == 4000 and len(picture["volts"]) == 3750
        for k, v in enumerate(picture["volts"]):
            since = picture["t0_us"] + 4 * k - report["fired_us"] - 60
            assert v == pytest.approx(volts if since <= 0 else volts * math.exp(-since / tau_us), abs=0.08)
    one, other = report["waveform"]
    assert other["t0_us"] - one["t0_us"] == 2
    assert [(p["rail"], p["dt_ns"], len(p["volts"])) for p in apart] == [(1, 200_000, 100), (0, 200_000, 100)]
    assert apart[0]["t0_us"] - apart[1]["t0_us"] == 100
    lines = rig_switch.csv_of(report["waveform"]).splitlines()
    assert (
        lines[0] == "t_us,rail,V"
        and len(lines) == 7501
        and [line.split(",")[1] for line in lines[1:5]] == ["0", "1", "0", "1"]
    )


@pytest.mark.parametrize(
    "us, rate", [(0, 500_000), (11_999, 500_000), (12_000, 250_000), (599_999, 10_000), (2_000_000, 2_000)]
)
def test_a_picture_holds_the_fall(us, rate):
    picture = rig_switch._picture(us)
    assert (
        picture["rate"] == rate and picture["after"] / rate > us * 1e-6 and picture["before"] + picture["after"] <= 7680
    )


def test_the_capacitance_from_a_crowbars_fall():
    assert profiles.bulk_uF(math.log(9) * 2.2 * 470, 2200) == pytest.approx(470)


def test_off_stays_off_until_on(tmp_path):
    with Rigged(tmp_path) as (rig, board, _):
        report = pico.off(rig, residual_ms=50)
        assert report["on_us"] is None and report["off_us"] is None and report["rails"][0]["residual_mV"] < 300
        assert rig.greet()["switch"]["off"] == [0]
        rig.await_us(report["fired_us"] + 300_000)
        assert [p for _, p in true_power(board, events=1)] == [False]
        with pytest.raises(RigError, match="a cut is off"):
            pico.off(rig)
        again = pico.on(rig)
        assert again["token"] == report["token"] and again["off_us"] > 300_000
        assert pico.on(rig) is None
        assert rig.greet()["switch"]["state"] == "idle"


def test_another_program_finds_the_rail_off_and_switches_it_on(tmp_path):
    """The stream is stopped and started between: what was known of the rail is found out again."""
    with Rigged(tmp_path) as (rig, board, _):
        pico.off(rig, residual_ms=300)
        rig.stop()
        other = Rig(rig.port, Memory())
        other.start()
        try:
            assert pico.on(other)["ok"]
        finally:
            other.stop()
        assert [p for _, p in true_power(board, events=2)] == [False, True]


def test_a_residual_that_stays_is_unsafe(tmp_path):
    """1 mF that nothing discharges: power stays off, the words say why, and only `unsafe` gives it back."""
    settings = changed_firmware(tmp_path, "switch.py", GIVE_UP_us=1_000_000)
    with Rigged(tmp_path, {"bulk_uF": 10_000.0, "leak_mA": 0.5, **settings}) as (rig, board, _):
        with pytest.raises(RigError, match="unsafe: rail 0 is at 3"):
            pico.arm_and_cut(rig, profile="float", off_ms=1)
        assert rig.greet()["switch"]["off"] == [0]
        with pytest.raises(RigError, match="not known to be low"):
            pico.on(rig)
        assert [p for _, p in true_power(board, events=1)] == [False]
        report = pico.on(rig, unsafe=True)
        assert report["ok"] and not report["rails"][0]["safe"] and report["rails"][0]["residual_mV"] > 3000


def test_what_does_not_fire_is_called_off(tmp_path):
    with Rigged(tmp_path) as (rig, board, _):
        with pytest.raises(RigError, match="within 0.5 s"):
            pico.arm_and_cut(rig, when={"samples": 10, "above_raw": 500_000, "rail": 0}, off_ms=10, timeout_s=0.5)
        assert rig.greet()["switch"]["state"] == "idle"
        with pytest.raises(RigError, match="no edge came"):
            pico.arm_and_cut(rig, when={"edge": "rising", "gpio": 20, "timeout_ms": 200}, off_ms=10)
        assert rig.greet()["switch"]["state"] == "idle"
        assert true_power(board) == []


def test_refusals_have_words(tmp_path):
    with Rigged(tmp_path) as (rig, board, _):
        for how, words in (
            ({"profile": "dip"}, "profile must be one of float, crowbar, ramp, glitch"),
            ({"profile": "ramp", "fall_us": 2000, "bulk_uF": [470]}, "fall_us must be an integer from 3102 to 1034000"),
            ({"rails": [3]}, "rails must be some of"),
            ({"off_ms": -1}, "off_ms must be"),
            ({"when": {"t_us": 5}}, "possible are 2000"),
        ):
            with pytest.raises(RigError, match=words):
                pico.arm_and_cut(rig, **how)
        with pytest.raises(UsageError):
            pico.arm_and_cut(rig, when={"now": "x" * wire.MAX_COMMAND})
        assert true_power(board) == []


def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(cli.COMMANDS, "rig", ("ssdrig.commands.rig", "the rig"))
    with Board(tmp_path, 2.5, {"edges": [[k / 4, 20, k % 2] for k in range(1, 200)]}) as board:
        import os

        port = ["--rig", os.ttyname(board.fd)]
        assert main(["rig", "off", *port, "--yes", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["on_us"] is None
        assert main(["rig", "cut", *port, "--yes"]) == 5  # it is off
        assert "a cut is off" in capsys.readouterr().err
        assert main(["rig", "on", *port]) == 0
        assert "residual 0 mV" in capsys.readouterr().out
        assert main(["rig", "on", *port]) == 0
        assert capsys.readouterr().out == "all rails have power\n"
        assert main(["rig", "cut", *port, "--yes", "--edge", "falling", "--off", "550ms", "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        edges_us = [board.truth()[0]["tick0"] + k * 250_000 * (1 + 15e-6) for k in range(2, 200, 2)]
        assert min(abs(report["fired_us"] - e) for e in edges_us) <= 1
        assert main(["rig", "cut", *port, "--yes", "--profile", "glitch", "--glitch", "200us"]) == 0
        assert "off for 0.200 ms" in capsys.readouterr().out
        assert main(["rig", "cut", *port, "--yes", "--off", "600ms"]) == 0
        words = capsys.readouterr().err  # 470 uF; the drive's 2.5 W make it look smaller
        assert 350 < int(re.search(r"rail 0: falls as (\d+) uF through 2.2 Ohm", words)[1]) < 520
        assert main(["rig", "cut", *port, "--yes", "--profile", "ramp", "--fall", "50ms", "--bulk", "470uF"]) == 0
        output = capsys.readouterr()
        assert (
            "was to take 40.00 ms" in output.err
            and 30 < float(re.search(r"90 to 10 % in ([\d.]+) ms", output.out)[1]) < 45
        )
        assert main(["rig", "cut", *port, "--yes", "--profile", "ramp", "--fall", "50ms"]) == 2
        assert main(["rig", "cut", *port, "--yes", "--fall", "50ms"]) == 2
        assert (
            main(["rig", "cut", *port, "--yes", "--profile", "ramp", "--fall", "50ms", "--bulk", "470uF", "480uF"]) == 5
        )
        assert "a capacitance for each of the rails" in capsys.readouterr().err
        monkeypatch.setattr("sys.stdin", open("/dev/null"))
        assert main(["rig", "cut", *port]) == 2


# --- the whole bench


@pytest.mark.slow
def test_the_virtual_drive_loses_its_power_while_fio_writes(tmp_path):
    """Host, wire, firmware, gate, rail, drive: gone within the fall, back with one unsafe shutdown more, the report
    against the truth."""
    interpreter()
    virtual = bench.start("sata-tlc", capacity="512M")
    admin = virtual.drive["socket"] + ".admin"
    try:
        memory = Memory()
        rig = Rig(virtual.port, memory)
        rig.start()
        fio = subprocess.Popen(
            [
                "fio",
                "--name=w",
                "--ioengine=nbd",
                f"--uri={virtual.fio_target}",
                "--rw=randwrite",
                "--bs=4k",
                "--iodepth=16",
                "--time_based",
                "--runtime=60",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
        )
        try:
            time.sleep(2)
            assert fio.poll() is None
            before = adminclient.ask(admin, {"op": "smartctl"})["nvme_smart_health_information_log"]["unsafe_shutdowns"]
            report = pico.arm_and_cut(rig, profile="crowbar", off_ms=1000)
            with contextlib.suppress(subprocess.TimeoutExpired):
                fio.wait(3)  # fio 3.33 sometimes computes for half a minute before it ends
            assert fio.poll() != 0
        finally:
            fio.kill()
            fio.wait()
        deadline = time.monotonic() + 300
        while True:
            try:
                after = adminclient.ask(admin, {"op": "smartctl"})["nvme_smart_health_information_log"][
                    "unsafe_shutdowns"
                ]
                break
            except Exception:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        rig.stop()
        boot = json.loads(virtual.board_truth.read_text())[0]
    finally:
        virtual.end()
    assert after == before + 1
    (down, _), (up, _) = boot["power"]
    fired_ns = boot["t_boot_ns"] + (report["fired_us"] - boot["tick0"]) * 1000 / (1 + boot["ppm"] * 1e-6)
    assert 0 < down - fired_ns < 1_000_000
    rail = report["rails"][0]
    assert (
        rail["safe"]
        and 2000 < rail["t90_10_us"] < 2600
        and rail["residual_mV"] < 20
        and abs(rail["before_mV"] - 4970) < 60
    )
    reports = [json.loads(body) for body in memory.bodies(wire.CUT_REPORT)]
    assert reports == [report]


def test_a_board_without_the_pin_refuses_the_test_of_the_lock_outs(tmp_path):
    with Rigged(tmp_path) as (rig, board, memory):
        assert rig.hello()["switch"]["lock_outs"] is False
        with pytest.raises(RigError, match="cannot trip"):
            pico.lock_outs(rig)
        assert {powered for _, powered in true_power(board)} <= {True}
