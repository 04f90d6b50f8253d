"""The firmware in the MicroPython interpreter, behind the cable: streams, stalls, faults, hosts."""

import json
import struct
import time
from pathlib import Path

import pytest
import simboard
from simboard import CURRENT_A, ENERGY_J, FAST, SENSED_OHM, SUPPLY_OHM, TWICE, VBUS_V, Board, make_steps, run_script

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)
LEAD_OHM = SUPPLY_OHM - SENSED_OHM
SET_us = simboard.SET_us / 1.005 * (1 + 15e-6)  # of the board: chip fast by 5000 ppm, ticks by 15 ppm


@pytest.mark.usefixtures("integers")
def test_parts_on_the_interpreter():
    done = run_script("board_parts.py")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if not line.endswith(" ok")] == []
    assert len(done.stdout.splitlines()) == 58


# --- the whole firmware behind the cable


def continuous(samples, missed):
    """Indexes rise by one but for `missed` of them."""
    steps = [b[0] - a[0] for a, b in zip(samples, samples[1:])]
    return min(steps) == 1 and sum(step - 1 for step in steps) + samples[0][0] == missed


@pytest.mark.usefixtures("integers")
def test_a_clean_stream(tmp_path):
    """Constant 2.5 W: every sample, the period, the accumulators, and the time across the wrap of ticks_us."""
    with Board(tmp_path, 2.5, {"start_ticks": (1 << 30) - 1_500_000, **FAST}) as b:
        hello = b.hello()
        b.send(wire.GO)
        b.until(lambda: len(b.energies()) >= 3 and b.samples()[-1][1] > 1 << 30)
        b.send(wire.STOP)
        b.hello()  # answered in order: what streamed before is here
        truth = b.truth()[0]
        samples, energies = b.samples(), b.energies()
        assert b.damaged == [] and b.logs() == ""
        b.read(0.3)
        assert b.samples() == samples  # it has stopped

    assert hello["protocol"] == wire.PROTOCOL and hello["simulated"] is True and "SIMULATED" in hello["board"]
    assert hello["boot"] == truth["boot"]
    assert hello["rails"] == [
        {
            "rail": 0,
            "name": "supply",
            "chip": "INA228",
            "bus": "I2C0",
            "config": 0,
            "shunt_uOhm": 8_000,
            "shunt_tolerance_ppm": 10_000,
            "current_lsb_pA": 9_765_625,
            "vbus_lsb_nV": 195312.5,
            "adc_config": 0xB140,
            "shunt_cal": 4096,
            "conversion_ns": 1_102_000,
            "shunt_ns": 1_052_000,
            "lead_mOhm": 24,
            "nominal_mV": 5000,
            "protect": None,
            "calibration": None,
            "die_mC": pytest.approx(25_000, abs=1000),
        }
    ]
    assert [seq for _, seq, _ in b.frames] == list(range(len(b.frames)))
    assert continuous(samples, 0) and b.missed() == 0
    assert len(samples) > 1700
    amps = (5 - (25 - 4 * SUPPLY_OHM * 2.5) ** 0.5) / (2 * SUPPLY_OHM)
    assert {v for _, _, v, _ in samples} == {round((5 - SENSED_OHM * amps) / VBUS_V)}
    assert {i for _, _, _, i in samples} == {round(amps / CURRENT_A)}
    assert samples[0][1] < 1 << 30 < samples[-1][1]
    period = (samples[-1][1] - samples[0][1]) / (len(samples) - 1)
    assert period == pytest.approx(SET_us, rel=2e-5)
    assert max(abs(t - samples[0][1] - k * SET_us) for k, t, _, _ in samples) < 60  # jitter of the stamp
    assert (energies[0]["index"], energies[0]["energy"], energies[0]["charge"]) == (0, 0, 0)
    for e in energies[1:]:
        power = samples[0][2] * samples[0][3] >> 14
        assert e["energy"] == power * e["index"] * 1_102_000 // (16 * 10**9)  # exactly the conversions before index
        assert e["charge"] == samples[0][3] * e["index"] * 1_102_000 // 10**9
        assert ENERGY_J * e["energy"] == pytest.approx((2.5 + LEAD_OHM * amps**2) * e["index"] * 1102e-6, rel=2e-4)
        assert samples[e["index"] - 1][1] == e["t_us"]
        assert e["temp"] == 0  # none is converted


def test_each_stall_is_counted_exactly(tmp_path):
    """The firmware is held up for less and for much more than a conversion, at many phases of its loop: nothing but
    the count changes, and the chip's accumulators know that the count is right."""
    stalls = [[2.0, 0.3], [2.1, 5], [2.3, 500], *([3.0 + 0.080037 * k, 60] for k in range(20))]
    with Board(tmp_path, 2.5, {"stalls": stalls, **TWICE}) as b:
        b.go()
        b.until(lambda: b.energies() and b.energies()[-1]["t_us"] - b.truth()[0]["tick0"] > 5_000_000)
        b.until(lambda: b.samples()[-1][0] > b.energies()[-1]["index"])
    samples = b.samples()
    assert b.logs() == ""
    assert continuous(samples, b.missed())
    # an interrupt reads on while the main loop is held up, for as long as the ring of 64 lasts
    least, most = (sum(ms * 1000 / SET_us - spare_us for _, ms in stalls if ms > 48) for spare_us in (65, -1))
    assert least <= b.missed() <= most + 7
    power = samples[0][2] * samples[0][3] >> 14
    for e in b.energies():
        assert e["energy"] == power * e["index"] * 1_102_000 // (16 * 10**9)
    assert {v for _, _, v, _ in samples} == {samples[0][2]}


def test_a_stepped_power_is_seen_at_its_time(tmp_path):
    """From 1 W to 4 W at a known instant: no sample after it is old, none before it is new."""
    t0 = make_steps(tmp_path / "feed", [(1.0, 2), (4.0, 8)])
    with Board(tmp_path, faults={"feed_delay_us": 0, "source_mOhm": 0, **FAST}, feed_path=tmp_path / "feed") as b:
        b.go()
        truth = b.truth()[0]

        def t_ns(t_us):
            return truth["t_boot_ns"] + (t_us - truth["tick0"]) * 1000 / (1 + truth["ppm"] * 1e-6)

        step = t0 + 2 * 10**9
        b.until(lambda: b.samples() and t_ns(b.samples()[-1][1]) > step + 5e8)
    for _, t_us, vbus, current in b.samples():
        since = t_ns(t_us) - step
        watts = vbus * VBUS_V * current * CURRENT_A
        if since < 0:
            assert watts - LEAD_OHM * (current * CURRENT_A) ** 2 == pytest.approx(1, rel=2e-3)
        elif since > 1_200_000:  # a whole set has passed
            assert watts - LEAD_OHM * (current * CURRENT_A) ** 2 == pytest.approx(4, rel=2e-3)


def test_brown_out_is_detected_and_said(tmp_path):
    """The chip loses its configuration: said, configured anew under another id, no number of a reset chip gets out."""
    with Board(tmp_path, 2.5, {"brownouts": [2.2345], **TWICE}) as b:
        b.go()
        b.until(lambda: [e for e in b.energies() if e["config"] == 1 and e["index"] > 2500])
        b.read(0.1)
    assert "forgot its configuration" in b.logs() and "configured again, config 1" in b.logs()
    samples = b.samples()
    assert len({(v, i) for _, _, v, i in samples}) == 1
    assert continuous(samples, b.missed()) and 100 < b.missed() < 500
    base, *later = [e for e in b.energies() if e["config"] == 1]
    assert base["energy"] < 100
    power = samples[0][2] * samples[0][3] >> 14
    for e in later:
        counted = (e["index"] - base["index"]) * power * 1_102_000 / (16 * 10**9)
        assert e["energy"] - base["energy"] == pytest.approx(counted, abs=1.01)
    hellos = b.bodies(wire.HELLO)
    configs = [json.loads(hello)["rails"][0]["config"] for hello in (hellos[0], hellos[-1])]
    assert configs == [0, 1]


@pytest.mark.parametrize(
    "fault, error", [({"nacks": [[2.2, 30]]}, "EIO"), ({"stuck_sda": [2.2]}, "ETIMEDOUT")], ids=["NACK", "SDA stuck"]
)
def test_a_bus_fault_is_said_and_survived(tmp_path, fault, error):
    with Board(tmp_path, 2.5, fault | TWICE) as b:
        b.go()
        b.until(lambda: "configured again" in b.logs())
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 500)
    assert error in b.logs()
    assert continuous(b.samples(), b.missed()) and b.missed() > 100
    assert len({(v, i) for _, _, v, i in b.samples()}) == 1


def test_a_sensor_that_is_not_there(tmp_path):
    """Said at boot and at go; hello and ping still work; when it comes, it is used."""
    with Board(tmp_path, 2.5, {"nacks": [[0, 5000]], **FAST}) as b:
        b.go()
        b.until(lambda: b.logs().count("EIO") >= 2)
        b.send(wire.PING, struct.pack("<I", 5))
        b.until(lambda: b.bodies(wire.PONG))
        assert b.samples() == []
        b.until(lambda: len(b.samples()) > 500)
    assert "configured again" in b.logs()


def test_a_host_that_does_not_read(tmp_path):
    """For seconds: frames are dropped whole and counted, the board lives on."""
    with Board(tmp_path, 2.5, FAST) as b:
        b.go()
        b.until(lambda: len(b.samples()) > 100)
        deaf_s = 4.0  # 24 KB on their way, and a second until the board knows that nobody reads
        while not b.missed():
            assert deaf_s < 40
            time.sleep(deaf_s)
            deaf_s *= 2
            n = len(b.samples())
            b.until(lambda: len(b.samples()) > n + 4500)  # beyond those on their way
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 1500)
        b.until(lambda: b.energies()[-1]["index"] > n + b.missed())
    assert b.damaged == []
    assert [seq for _, seq, _ in b.frames] == list(range(len(b.frames)))
    samples = b.samples()
    assert continuous(samples, b.missed())
    power = samples[0][2] * samples[0][3] >> 14
    for e in b.energies():
        assert e["energy"] == power * e["index"] * 1_102_000 // (16 * 10**9)


@pytest.mark.parametrize(
    "farewell", [wire.encode(wire.QUIT, 1), b"\x03\x03\x03", b"\r\x03"], ids=["q", "^C", "mpremote"]
)
@pytest.mark.parametrize("before", [b"", wire.encode(wire.PING, 7)[:-3]], ids=["", "after a torn command"])
def test_the_repl_stays_in_reach(tmp_path, before, farewell):
    """The firmware ends; Ctrl-D (a soft reset at the REPL) starts it again, as another boot."""
    with Board(tmp_path, faults=FAST) as b:
        first = b.hello()["boot"]
        if before:  # it is stale after a second of the board's time, which the samples tell
            b.send(wire.GO)
            b.until(b.samples)
            b.write(wire.encode(wire.PING, 6, bytes(4)) + before)
            b.until(lambda: b.bodies(wire.PONG))
            _, torn_us, _ = struct.unpack(wire.PONG_BODY, b.bodies(wire.PONG)[0])
            b.until(lambda: b.samples()[-1][1] > torn_us + 1_100_000)
        b.write(farewell)
        b.send(wire.ASK_HELLO)
        b.read(0.5)
        assert len(b.bodies(wire.HELLO)) == 1  # silent
        b.write(b"\r\x03\x02\x04")  # Ctrl-B before Ctrl-D: a byte of the frame above may have meant raw mode
        b.until(lambda: len(b.truth()) == 2)
        assert b.hello()["boot"] != first


@pytest.mark.usefixtures("integers")
def test_rubbish_in_does_no_harm(tmp_path):
    """Damaged, endless and unknown commands, NULs: the next sound command is obeyed."""
    with Board(tmp_path) as b:
        first = b.hello()["boot"]
        b.write(b"\x00\x00" + bytes(range(1, 256)) * 2 + b"\x00")
        b.write(wire.encode(wire.GO, 3)[:-2] + b"\x00")
        b.write(wire.encode(ord("Z"), 3, b"abc") + wire.encode(wire.PING, 4))
        assert b.hello()["boot"] == first
        assert b.samples() == []


def test_go_again_starts_at_zero(tmp_path):
    with Board(tmp_path) as b:
        b.go()
        b.until(lambda: len(b.samples()) > 300)
        b.send(wire.GO)
        b.until(lambda: [e["index"] for e in b.energies()].count(0) == 2)
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 300)
    second = [k for k, s in enumerate(b.samples()) if s[0] == 0][1]
    assert continuous(b.samples()[second:], 0)


def test_long_paths(tmp_path):
    """The interpreter takes no argument above 255 bytes; none is given to it."""
    folder = tmp_path / ("x" * 120) / ("y" * 120)
    folder.mkdir(parents=True)
    with Board(folder) as b:
        assert Path(b.feed).exists() and b.hello()["protocol"] == wire.PROTOCOL
