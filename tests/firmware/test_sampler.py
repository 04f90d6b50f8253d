"""firmware/sampler.py by hand: what is planned, begun and ended, and every count, time and byte of a frame."""

import pytest
from samplerbench import EXTRA, SAMPLE, WRAP, BASE_us, Board, Chip, Lane, PERIOD_us, energy_of, samples_of

from ssdrig.meter import wire

# ---- what is planned


@pytest.mark.parametrize(
    ("shunt_us", "late_us"),
    [(100, 61), (199, 144)],  # the shunt's own next conversion, or the next conversion ready; a fast oscillator
)
def test_how_late_a_reading_may_begin(shunt_us, late_us):
    made = Board(shunt_us=shunt_us)
    assert made.sampler.late_us == late_us
    shunt = shunt_us * 199 // 200
    assert made.lane.did == [
        ("plain", 20, 0xC100, 0xC000),
        ("script", SAMPLE, Chip.SAMPLE),
        ("claim", 30, 199),
        ("script", EXTRA, Chip.EXTRA),
        ("beside", 30, 40, shunt, 199),
    ]
    assert made.sampler.beside and made.sampler.accumulates and made.sampler.per_second == 5000
    ((args, how),) = made.irq[1:]
    assert made.irq[0] == 6 and args == (made.lane.interrupt, 4) and how == {"hard": True}


def test_conversions_that_are_too_short_for_the_bus():
    assert Board(shunt_us=49).sampler.late_us == 10  # 48 us of a fast oscillator
    with pytest.raises(ValueError, match="rail 3: conversions of 200 us"):
        Board(shunt_us=48)


def test_a_chip_without_accumulators_and_one_that_has_no_time_for_them():
    bare = Board(extra=())
    assert not bare.sampler.accumulates and bare.sampler.beside and len(bare.lane.did) == 3
    made = Board(fits=False)
    assert made.sampler.accumulates and not made.sampler.beside and made.lane.did[-1] == ("instead", Chip.INSTEAD)


def test_the_rails_entry_of_the_hello():
    assert Board().sampler.describe() == {
        "rail": 3,
        "name": "12V",
        "chip": "INA000",
        "bus": 1,
        "config": 0,
        "shunt_uOhm": 8000,
        "shunt_tolerance_ppm": 5000,
        "current_lsb_pA": 7_812_500,
        "vbus_lsb_nV": 1250,
        "adc_config": 0xFB00,
        "shunt_cal": 4096,
        "conversion_ns": 200_000,
        "shunt_ns": 100_000,
        "lead_mOhm": 0,
        "nominal_mV": None,
        "protect": None,
        "die_mC": None,
    }


# ---- begin and end


def test_probe_leaves_the_chip_asleep():
    made = Board()
    made.sampler.probe()
    assert made.chip.did == ["identify", "die_mC", "sleep"] and made.sampler.die_mC == 25_000


def test_prepare_begins_at_index_0_with_its_energy_frame():
    made = Board()
    s = made.sampler
    s.next, s.blocks, s.missed[0], s.period, s.learn_at, s.base_tick, s.base_index = 5, 6, 7, 1, 2, 3, 4
    made.lane.did.clear()
    s.prepare()
    assert made.chip.did == ["identify", "prepare"]
    assert made.lane.did == [("read", 20, 5), ("read", 30, 5), ("restart", 61)]
    assert (s.next, s.blocks, s.missed[0], s.period, s.energy_at, s.running) == (0, 0, 0, 51_200, 5000, False)
    assert (s.base_tick, s.base_index, s.learn_at) == (BASE_us % WRAP, -1, 1023)
    energy, charge = (int.from_bytes(bytes(range(r, r + 5)), "big") for r in (30, 20))
    (frame,) = made.link.frames
    assert energy_of(frame) == (3, 0, 0, BASE_us, energy, charge, 0x1234, 0x5678)
    made = Board(extra=())
    made.sampler.prepare()
    assert made.link.frames == []


def test_the_first_conversion_begins_when_the_chip_is_awake():
    made = Board()
    s = made.sampler
    s.prepare()
    s.asked = True
    made.us += 5000
    s.go()
    assert made.chip.did == ["identify", "prepare", "begin"] and s.running and not s.asked
    assert s.heard == made.us % WRAP and s.last == s.base_tick == (made.us + 30) % WRAP
    assert (s.base_index, s.learn_at) == (-1, 1023)


def test_stop_puts_out_what_there_is():
    made = Board()
    s = made.started()
    made.convert(200)
    s.stop()
    assert not s.running and made.chip.did == ["sleep"] and len(made.link.frames) == 1 and s.n == 0
    s.stop()
    assert len(made.link.frames) == 1


@pytest.mark.parametrize(("config", "then"), [(0, 1), (254, 255), (255, 0)])
def test_a_chip_that_is_back_goes_on_under_another_configuration(config, then):
    made = Board()
    s = made.started()
    s.config_id = config
    made.convert(200)
    made.us = BASE_us + 200 + 10 * PERIOD_us
    s.recover()
    assert made.chip.did == ["identify", "prepare", "begin"] and made.lane.did[-1] == ("restart", 61)
    assert (s.config_id, s.next, s.missed[0], s.energy_at, s.base_index, s.learn_at) == (then, 11, 10, 11, 10, 1034)
    assert s.last == s.base_tick == (made.us + 30) % WRAP and s.running
    ((head, _),) = map(samples_of, made.link.frames)
    assert head == (3, config, 1, 0, 0, BASE_us + 200)


@pytest.mark.parametrize(("us", "steps"), [(199, 0), (200, 1), (399, 1), (1000, 5), (3_000_000, 15_000)])
def test_conversions_of_a_lost_sensor_are_counted_by_time(us, steps):
    made = Board()
    s = made.started()
    s.n, s.at = 1, wire.S_FIRST + 8
    made.us = BASE_us + us
    s.dark()
    assert (s.next, s.missed[0]) == (steps, steps) and s.last == (BASE_us + steps * 200) % WRAP
    assert len(made.link.frames) == bool(steps)
    if steps:
        assert (s.base_index, s.learn_at, s.base_tick) == (steps - 1, steps + 1023, s.last)


# ---- samples


@pytest.mark.parametrize(
    ("values", "wire_bytes"),
    [
        ((0x1234, 0x56789A, 0x3BCDEF), "3412 9a7856 efcd3b"),
        ((0xFFFF, 0xFFFFF, 0xF80001), "ffff ffff0f 0100f8"),
        ((0x0100, 0x010000, 0x000100), "0001 000001 000100"),
    ],
)
def test_a_sample_byte_by_byte(values, wire_bytes):
    buf = bytearray(10)
    Board().module.put_sample(buf, 1, *values)
    assert buf == b"\0" + bytes.fromhex(wire_bytes) + b"\0"


def test_a_frame_byte_by_byte():
    made = Board()
    s = made.started()
    for k, after_us in enumerate((200, 401, 1399)):  # the third comes 5 periods, less 2 us, behind the second
        assert made.convert(after_us, 2000 + k, -k - 1) is True
    s.stop()
    first, second = map(samples_of, made.link.frames)
    assert first == ((3, 0, 2, 0, 0, BASE_us + 200), [(0, 2000, 0xFFFFFF), (201, 2001, 0xFFFFFE)])
    assert second == ((3, 0, 1, 4, 6, BASE_us + 1399), [(0, 2002, 0xFFFFFD)])
    assert s.next == 7 and s.last == (BASE_us + 1399) % WRAP and made.lane.taken == 3


@pytest.mark.parametrize(
    ("after_us", "missed"), [(1, 0), (200, 0), (299, 0), (300, 1), (499, 1), (500, 2), (100_000, 499)]
)
def test_a_gap_of_one_and_a_half_periods_lost_one(after_us, missed):
    made = Board()
    s = made.started()
    made.convert(after_us)
    assert (s.next, s.missed[0]) == (missed + 1, missed)


@pytest.mark.parametrize(("gap_us", "frames"), [(65_535, 0), (65_536, 1)])
def test_a_gap_that_two_bytes_do_not_hold_begins_a_frame(gap_us, frames):
    made = Board()
    s = made.started()
    s._set_period(66_000 << 8)
    made.convert(66_000)
    made.convert(66_000 + gap_us)
    assert len(made.link.frames) == frames and s.missed[0] == 0


@pytest.mark.parametrize(("period", "widest"), [(51_200, 299), (51_201, 300), (66_000 << 8, 65_535)])
def test_up_to_which_gap_none_is_lost(period, widest):
    s = Board().sampler
    s._set_period(period)
    assert (s.period, s.widest) == (period, widest)


def test_a_full_frame_goes_out():
    made = Board()
    s = made.started()
    for k in range(wire.MAX_SAMPLES - 1):
        made.convert(200 * (k + 1))
    assert made.link.frames == [] and s.n == wire.MAX_SAMPLES - 1
    made.convert(200 * wire.MAX_SAMPLES)
    assert s.n == 0 and s.at == wire.S_FIRST
    ((head, rows),) = map(samples_of, made.link.frames)
    assert head[2] == len(rows) == wire.MAX_SAMPLES


def test_what_the_host_does_not_read_is_counted():
    made = Board()
    s = made.started()
    made.link.full = True
    for k in range(3):
        made.convert(200 * (k + 1))
    s._close()
    made.link.full = False
    made.convert(800)
    s._close()
    ((head, _),) = map(samples_of, made.link.frames)
    assert head == (3, 0, 1, 3, 3, BASE_us + 800)


def test_an_index_beyond_a_block():
    made = Board()
    s = made.started()
    block = 1 << 29
    s.blocks, s.next, s.energy_at = 3, block - 1, block + 7
    s._learn_from(s.last, block - 2)
    made.convert(200)
    assert (s.blocks, s.next, s.base_index, s.learn_at, s.energy_at) == (4, 0, -2, 1022, 7)
    made.convert(400)
    s._close()
    ((head, rows),) = map(samples_of, made.link.frames)
    assert head[4] == 4 * block - 1 - (1 << 32 if 4 * block - 1 >= 1 << 32 else 0) and len(rows) == 2
    s._count(block - 2)
    assert s.next == block - 1
    bare = Board(extra=()).started()
    bare.energy_at = 9
    bare._count(block)
    assert (bare.blocks, bare.next, bare.energy_at) == (1, 0, 9)


def test_the_period_is_learned_after_1024_conversions():
    """Each takes 201 us and 3/4, so 1024 of them 206 592 us: 51 648 / 256 us."""
    made = Board()
    s = made.started()
    for k in range(1, 1024):
        made.convert(k * 807 // 4)
    assert s.period == 51_200 and s.learn_at == 1023
    made.convert(1024 * 807 // 4)
    assert s.period == (1024 * 807 // 4 << 8) // 1024 == 51_648
    assert (s.learn_at, s.base_index, s.next) == (2047, -1, 1024)


@pytest.mark.parametrize(("count", "base"), [(16_383, -1), (16_384, 16_383)])
def test_the_period_is_that_of_at_most_16384_conversions(count, base):
    made = Board()
    s = made.started()
    s.next, s.learn_at = count - 1, count - 1
    s.last = (BASE_us + (count - 1) * 201) % WRAP
    made.convert(count * 201)
    assert s.period == 201 << 8 and s.base_index == base and s.learn_at == count - 1 + 1024
    assert s.base_tick == (BASE_us + (count * 201 if base > 0 else 0)) % WRAP


@pytest.mark.parametrize(("delay_us", "refused"), [(99, False), (100, True)])
def test_stamps_that_may_be_late_by_half_a_conversion_are_refused(monkeypatch, delay_us, refused):
    """A conversion is counted by the time since the one before."""
    monkeypatch.setattr(Lane, "delay_us", delay_us)
    if refused:
        with pytest.raises(ValueError, match="conversions of 200 us are too short"):
            Board(shunt_us=190)
    else:
        Board(shunt_us=190)
