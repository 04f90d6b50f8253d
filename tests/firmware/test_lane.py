"""firmware/lane.py: plain samples moved at once make the very frames that they make one by one, whatever the ring
holds; and the viper code on the interpreter does what the same source does on CPython."""

import json
import random
import sys
import types
from array import array
from unittest import mock

import pytest
import vipersource
from hypothesis import given, settings
from hypothesis import strategies as st
from simboard import run_script
from test_ina228_model import ROOT, load

from ssdrig.meter import wire

SAMPLE, EXTRA, TORN = 1, 2, 4
WIDE, NARROW = (20, 0xC102, 0xC002), (16, 0x408, 0x408)  # INA228 and INA226
M = (1 << 30) - 1


def ticks_diff(a, b):
    return ((a - b + (1 << 29)) & M) - (1 << 29)


lane_module = vipersource.load("lane", {}, {})
_time = types.SimpleNamespace(ticks_us=lambda: 0, ticks_diff=ticks_diff, ticks_add=lambda a, b: (a + b) & M)
clock64 = vipersource.load("clock64", {}, {"time": _time})
ina228 = load(ROOT / "firmware/ina228.py")
with mock.patch.dict(sys.modules, {"ina228": ina228}):
    ina226 = load(ROOT / "firmware/ina226.py")


class Bus:
    def __init__(self, slots):
        self.mem = array("i", [0] * (20 + 8 * slots))
        self.claimed = 0

    def poll(self):
        pass

    hold = release = poll


class Lane(lane_module.Lane):
    """A lane whose ring the test fills, and whose chip has forgotten its configuration or has not."""

    BEGIN_us, SOON_us, delay_us, taken_us = 10, 13, 25, 30

    def __init__(self, forgotten=False, slots=64):
        super().__init__(Bus(slots), 0, 0, 20, slots)
        self.forgotten, self.asked = forgotten, []

    def script(self, kind, reads):
        return 20

    def beside(self, *times):
        return True

    def interrupt(self, pin):
        pass

    def read_into(self, register, buf):
        value = 0 if self.forgotten else self.registers[register]
        buf[:] = value.to_bytes(len(buf), "big")

    def write(self, register, buf):
        pass

    def ask(self):
        self.asked.append(self.mem[1])
        return True

    def fill(self, slots):
        head = self.mem[0]
        for k, (kind, stamp, words) in enumerate(slots):
            at = 20 + 8 * ((head + k) & 63)
            self.mem[at : at + 3 + len(words)] = array("i", [kind, stamp, 0, *words])
        self.mem[0] = (head + len(slots)) & 0xFFFF


class Link:
    def __init__(self, room):
        self.frames, self.room = [], room

    def put(self, buf, n):
        if len(self.frames) == self.room:
            return False
        self.frames.append(bytes(buf[:n]))
        return True


_pin = types.SimpleNamespace(irq=lambda *a, **k: None, IRQ_FALLING=4)
sampler = vipersource.load(
    "sampler",
    {},
    {
        "time": _time,
        "board": types.SimpleNamespace(alert_pin=lambda gpio: _pin),
        "wire": wire,
        "clock64": clock64,
        "ina228": ina228,
        "lane": lane_module,
        "switch": types.SimpleNamespace(IDLE="idle"),
        "protect": types.SimpleNamespace(Guard=None, look=None),
    },
)


def carried(chip_class, batches, one_by_one, room=1000, forgotten=False, watched=None):
    """(frames, error, when EXTRA was asked for, what the switch saw, state) of a sampler that finds batch after batch
    in the ring."""
    us, lsb = (140, 250_000_000) if chip_class is ina226.INA226 else (50, 9_765_625)
    row = {
        "rail": 3,
        "alert": 6,
        "fine": True,
        "vbus_us": us,
        "vshunt_us": us,
        "temp_us": None,
        "current_lsb_pA": lsb,
        "shunt_uOhm": 8000,
    }
    lane = Lane(forgotten)
    chip = chip_class(lane, row)
    lane.registers = (
        {0: chip.config, 1: chip.adc, 2: chip.cal} if chip_class is not ina226.INA226 else {0: chip.adc, 5: chip.cal}
    )
    link = Link(room)
    s = sampler.Sampler(row, chip, link, clock64.Clock64())
    s._learn_from(0, -1)
    s.learn_at = 150  # soon enough to be met
    s.last = batches[0][0][1]
    s._set_period(chip.conversion_us << 8)
    s.energy_at = 90
    s.asked, s.running = False, True
    seen = []
    if watched is not None:
        s.watch = types.SimpleNamespace(
            state=watched, sample=lambda rail, stamp, frame, at: seen.append((stamp, bytes(frame[at : at + 8])))
        )
    if one_by_one:
        s._drain = lambda: False
    error = None
    try:
        for batch in batches:
            lane.fill(batch)
            while s.turn():
                pass
    except (OSError, ina228.SensorError) as why:
        error = repr(why)
    s._close()
    return link.frames, error, lane.asked, seen, (s.next, s.missed[0], s.last, s.zero, chip.flags, lane.mem[1])


def words(chip_class, flags, current, vbus, low=0):
    if chip_class is ina226.INA226:
        return [flags << 8 | (current >> 8 & 255), (current & 255) << 16 | vbus & 0xFFFF]
    current, vbus = (current & 0xFFFFF) << 4 | low, (vbus & 0xFFFFF) << 4 | low
    return [current, flags << 8 | vbus >> 16, (vbus & 0xFFFF) << 8]


@st.composite
def rings(draw, chip_class):
    """Batches of slots: mostly plain, with all that is not in between."""
    good = 0x408 if chip_class is ina226.INA226 else 0xC003
    period = 280 if chip_class is ina226.INA226 else 100
    dice = random.Random(draw(st.integers(0, 10**6)))
    odd = draw(st.sampled_from([0.0, 0.02, 0.1]))
    stamp = draw(st.sampled_from([1000, M - 3000]))  # ticks_us wraps
    out, batch, left, dark = [[(SAMPLE, stamp, words(chip_class, good, 1000, 2000))]], [], 1, 0
    for _ in range(draw(st.integers(10, 260))):
        stamp = (stamp + period + dice.randrange(-30, 30)) & M
        kind, flags, current, vbus, low = (
            SAMPLE,
            good,
            dice.choice([1, 500, 0x7FFF, 0xFFFFF, 0x8000, 0x80000]),
            dice.randrange(1, 0x7FFF),
            0,
        )
        what = dice.random() / odd if odd else 1
        if dark:
            vbus = 0
            dark -= 1
        elif dice.random() < 0.005:
            dark = dice.randrange(40)  # the rail is off
        if what < 0.2:
            stamp = (stamp + dice.choice([-period, period, 3 * period, 70_000])) & M
        elif what < 0.4:
            kind = SAMPLE | TORN
        elif what < 0.6:
            current, vbus = dice.choice([(0, vbus), (current, 0), (0, 0)])
        elif what < 0.65:
            flags = dice.choice([0, 0xFFFF, 1, 0xC103])
        elif what < 0.7 and chip_class is not ina226.INA226:
            low = 1
        elif what < 0.9 and chip_class is not ina226.INA226:
            kind = EXTRA | dice.choice([0, TORN])
        batch.append((kind, stamp, words(chip_class, flags, current, vbus, low)))
        left -= 1
        if left <= 0:
            out.append(batch)
            batch, left = [], dice.randrange(1, 60)
    return [*out, batch]


CHIPS = {"INA228": ina228.INA228, "INA226": ina226.INA226}


@pytest.mark.parametrize("chip", CHIPS)
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_many_at_once_are_the_frames_of_one_by_one(chip, data):
    """Whatever the ring holds: torn, too late, too early, zeros, other flags, accumulators; and a host that does not
    read."""
    batches = data.draw(rings(CHIPS[chip]))
    room, forgotten = data.draw(st.sampled_from([0, 2, 1000])), data.draw(st.booleans())
    many, one = (carried(CHIPS[chip], batches, one_by_one, room, forgotten, "fired") for one_by_one in (False, True))
    assert many == one


def test_the_switch_sees_every_sample_while_a_cut_is_on():
    """As it is in the frame, and in order; while none is on it is not asked for those that go together."""
    slots = [(SAMPLE, 1000 + 100 * k, words(ina228.INA228, 0xC003, 5, 1000 + k)) for k in range(120)]
    frames, error, _, seen, _ = carried(
        ina228.INA228, [slots[:1], slots[1:50], slots[50:100], slots[100:]], False, watched="waiting"
    )
    assert error is None and [stamp for stamp, _ in seen] == [stamp for _, stamp, _ in slots]
    assert b"".join(sample for _, sample in seen) == b"".join(frame[24:] for frame in frames)
    *_, seen, _ = carried(ina228.INA228, [slots[:60], slots[60:]], False, watched="idle")
    # the first of all, and where the accumulators are asked for
    assert [stamp for stamp, _ in seen] == [1000, 10_000]


def test_a_line_that_is_low_for_ever_takes_the_bus_four_times():
    """Each time that its chip has been silent; lost edges are counted until the next stream."""
    lane = Lane()
    read = []
    lane.read_into = lambda register, buf: read.append(register)
    for heard, looks, reads in ((1000, 3, 3), (1000, 5, 1), (2000, 9, 4), (1000, 1, 1)):
        read.clear()
        for _ in range(looks):
            lane.let_go(11, heard)
        assert read == [11] * reads
    assert lane.unseen == 9
    lane.restart(0)
    assert lane.unseen == 0


def test_without_limits_the_highest_values_are_above_none():
    lane = Lane()
    lane.plain(*WIDE)
    lane.fill([(SAMPLE, 1100, words(ina228.INA228, 0xC003, 0x7FFFF, 0xFFFFF))])
    assert lane_module.drain(lane.mem, 0, bytearray(8), 0, 1000, 200, 1, 0) == 1
    assert lane.mem[lane_module.ABOVE] == 0


def test_plain_samples_go_in_one_call_and_a_frame_in_one_round():
    """With a round more for each frame, 10 000 samples/s are too many for the RP2040 (test_emulated_spi.py)."""
    calls, rounds = [], []
    batch = [(SAMPLE, 1000 + 100 * k, words(ina228.INA228, 0xC003, 5, 1000 + k)) for k in range(60)]
    drain, turn = lane_module.drain, sampler.Sampler.turn
    with (
        mock.patch.object(lane_module, "drain", lambda *args: calls.append(drain(*args)) or calls[-1]),
        mock.patch.object(sampler.Sampler, "turn", lambda self: rounds.append(turn(self)) or rounds[-1]),
    ):
        frames, *_ = carried(ina228.INA228, [batch], False)
    assert calls == [0, 49, 10] and len(frames) == 2 and sum(rounds) == 2


@pytest.mark.parametrize("chip", CHIPS)
def test_not_plain_stays(chip):
    """Each reason by itself, behind one plain sample and before another."""
    chip_class = CHIPS[chip]
    good, wide = (0x408, False) if chip == "INA226" else (0xC003, True)
    plain = (SAMPLE, 1100, words(chip_class, good, 5, 7))
    reasons = {
        "torn": (SAMPLE | TORN, 1200, words(chip_class, good, 5, 7)),
        "accumulators": (EXTRA, 1200, words(chip_class, good, 5, 7)),
        "flags": (SAMPLE, 1200, words(chip_class, 0, 5, 7)),
        "no current": (SAMPLE, 1200, words(chip_class, good, 0, 7)),
        "no voltage": (SAMPLE, 1200, words(chip_class, good, 5, 0)),
        "same stamp": (SAMPLE, 1100, words(chip_class, good, 5, 7)),
        "before": (SAMPLE, 1099, words(chip_class, good, 5, 7)),
        "too late": (SAMPLE, 1251, words(chip_class, good, 5, 7)),
    }
    if wide:
        reasons["reserved flag"] = (SAMPLE, 1200, words(chip_class, 0xFFFF, 5, 7))
        reasons["reserved bits"] = (SAMPLE, 1200, words(chip_class, good, 5, 7, 8))
    for name, odd in reasons.items():
        lane, frame = Lane(), bytearray(40)
        lane.plain(chip_class.BITS, chip_class.CARE, chip_class.READY)
        lane.fill([plain, odd, (SAMPLE, 1300, words(chip_class, good, 5, 7))])
        assert lane.drain(frame, 4, 1000, 150, 9, False) == 1, name
        assert frame == bytes(4) + bytes([100, 0, 7, 0, 0, 5, 0, 0]) + bytes(28) and (lane.flags, lane.stamp) == (
            good,
            1100,
        )
        assert lane.drain(frame, 12, 1100, 150, 9, False) == 0, name
    lane.fill([])
    assert lane.drain(frame, 12, 1100, 150, 0, False) == 0


@pytest.mark.slow
@pytest.mark.parametrize("chip_class", [ina228.INA228, ina226.INA226])
@pytest.mark.parametrize("minutes", [0.01, 5, 9, 17, 30, 100])
def test_a_sensor_that_was_away_for_long(monkeypatch, chip_class, minutes):
    """Lost, tried each 200 ms, and back: its conversions are counted by time whatever ticks_us wrapped, and the period
    that is learned from then on is the chip's."""
    us = 140 if chip_class is ina226.INA226 else 50
    row = {"rail": 0, "alert": 6, "fine": True, "vbus_us": us, "vshunt_us": us, "temp_us": None, "shunt_uOhm": 8000}
    row["current_lsb_pA"] = 250_000_000 if chip_class is ina226.INA226 else 9_765_625
    now = [0]
    monkeypatch.setattr(sampler, "ticks_us", lambda: now[0] & M)
    chip = chip_class(Lane(forgotten=True), row)
    chip.identify = chip.prepare = chip.begin = lambda: None
    s = sampler.Sampler(row, chip, Link(10**9), clock64.Clock64())
    s.prepare()
    s.go()
    period, good = 2 * us, 0x408 if chip_class is ina226.INA226 else 0xC003

    def convert(count):
        for _ in range(count):
            now[0] += period
            chip.lane.fill([(SAMPLE, now[0] & M, words(chip_class, good, 1000, 2000))])
            while s.turn():
                pass

    convert(300)
    s.running = False
    end = now[0] + int(minutes * 60e6)
    while now[0] < end:
        now[0] += 200_000
        s.dark()
    s.recover()
    convert(3000)
    s._close()
    counted = s.blocks * sampler._BLOCK + s.next
    assert counted == pytest.approx(now[0] / period, abs=2) and s.missed[0] == counted - 3300
    assert s.period == pytest.approx(period << 8, rel=1e-3)


@pytest.mark.usefixtures("integers")
def test_viper_moves_what_the_source_says():
    """The machine code of the interpreter against the same source on CPython."""
    cases, expected = [], []
    dice = random.Random(1)
    for chip_class in CHIPS.values():
        for _ in range(40):
            lane, frame = Lane(), bytearray(300)
            lane.plain(chip_class.BITS, chip_class.CARE, chip_class.READY)
            good = 0x408 if chip_class is ina226.INA226 else 0xC003
            stamp = dice.choice([5, M - 300])
            last, slots, zeros = stamp, [], dice.randrange(2)
            for _ in range(dice.randrange(1, 40)):
                stamp = (stamp + dice.randrange(50, 160)) & M
                flags = good if dice.random() < 0.97 else 0xFFFF
                slots.append(
                    (
                        SAMPLE,
                        stamp,
                        words(
                            chip_class, flags, dice.randrange(1, 1 << 20), 0 if zeros else dice.randrange(1, 1 << 19)
                        ),
                    )
                )
            lane.mem[0] = lane.mem[1] = dice.choice([0, 30, 65530])
            lane.fill(slots)
            most = dice.randrange(0, 37)
            cases.append({"mem": list(lane.mem), "last": last, "most": most, "zeros": zeros})
            moved = lane.drain(frame, 3, last, 155, most, zeros)
            expected.append([moved, bytes(frame).hex(), list(lane.mem)[:13]])
    done = run_script("drain.py", stdin=json.dumps(cases))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    assert max(moved for moved, _, _ in expected) > 20
