"""Several rails, other chips and the highest rate: the whole firmware on the stand-in, behind the cable."""

import json
import struct

import pytest
from simboard import CURRENT_A, FAST, SENSED_OHM, SUPPLY_OHM, TWICE, Board, make_feed, run_script, samples_in

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)

CHIP_FAST = 1.005  # the chips' oscillators are 5000 ppm fast
ROW = {
    "chip": "INA228",
    "bus": "I2C0",
    "shunt_uOhm": 8_000,
    "shunt_tolerance_ppm": 10_000,
    "current_lsb_pA": 9_765_625,
    "fine": True,
}
SLOW = {"vbus_us": 150, "vshunt_us": 540, "temp_us": 280}  # 970 us: 1036 samples/s with a fast chip
QUICK = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}


def samples_of(b, rail):
    """(index, t_us, vbus, current) of every sample of one rail."""
    return [sample for body in b.bodies(wire.SAMPLES) if body[0] == rail for sample in samples_in(body)]


def missed_of(b, rail):
    return [struct.unpack_from(wire.SAMPLES_HEAD, body)[3] for body in b.bodies(wire.SAMPLES) if body[0] == rail][-1]


def steps(samples):
    return sum(b[0] - a[0] - 1 for a, b in zip(samples, samples[1:])) + samples[0][0]


def rate(samples):
    return (samples[-1][0] - samples[0][0]) / (samples[-1][1] - samples[0][1]) * 1e6


@pytest.mark.usefixtures("integers")
def test_three_rails_at_a_thousand_each_without_loss(tmp_path):
    """Three chips on one bus, in whatever phase their oscillators have: each sample of each, each with its own
    values."""
    loads = {1: (0.3, 12.0), 2: (0.01, 3.3)}
    rows = [
        {
            **ROW,
            **SLOW,
            "rail": n,
            "name": f"rail {n}",
            "address": 0x40 + n,
            "alert": 6 + n,
            "lead_mOhm": 0,
            "simulated": {"A": amps, "V": volts},
        }
        for n, (amps, volts) in loads.items()
    ]
    with Board(tmp_path, 2.5, {"rail": SLOW, "rails": rows, **FAST}) as b:
        hello = b.hello()
        b.send(wire.GO)
        b.until(lambda: sum(e["index"] > 0 for e in b.energies()) >= 6)
        b.send(wire.STOP)
        b.hello()
    assert [(r["rail"], r["name"], r["chip"], r["conversion_ns"]) for r in hello["rails"]][1:] == [
        (1, "rail 1", "INA228", 970_000),
        (2, "rail 2", "INA228", 970_000),
    ]
    assert b.damaged == [] and b.logs() == ""
    for rail in range(3):
        samples = samples_of(b, rail)
        assert steps(samples) == 0 == missed_of(b, rail)
        assert len(samples) > 2000 and rate(samples) > 1000
        period = 970 / CHIP_FAST
        assert max(abs(t - samples[0][1] - k * period) for k, t, _, _ in samples) < 150
    for rail, (amps, volts) in loads.items():
        samples = samples_of(b, rail)
        assert {(v, i) for _, _, v, i in samples} == {(round(volts / 195.3125e-6), round(amps / CURRENT_A))}
        power = samples[0][2] * samples[0][3] >> 14
        ends = [body for body in b.bodies(wire.ENERGY) if body[0] == rail]
        assert len(ends) >= 3
        for body in ends:
            _, _, index, t_us, energy, charge, temp, _ = struct.unpack(wire.ENERGY_BODY, body)
            # exactly those before index
            assert int.from_bytes(energy, "little") == power * index * 970_000 // (16 * 10**9)
            assert int.from_bytes(charge, "little", signed=True) == samples[0][3] * index * 970_000 // 10**9


def test_three_rails_whose_oscillators_differ_lose_nothing(tmp_path):
    """Their conversions run through all phases to each other, several times a second, so that each waits for the bus as
    long as it ever does. CURRENT is read before the next shunt conversion replaces it, or the sample would count as
    torn, and lost."""
    rows = [
        {
            **ROW,
            **SLOW,
            "rail": n,
            "name": f"rail {n}",
            "address": 0x40 + n,
            "alert": 6 + n,
            "simulated": {"A": 0.3, "V": 12.0, "osc_ppm": ppm},
        }
        for n, ppm in ((1, -8000), (2, -4500))
    ]
    with Board(tmp_path, 2.5, {"rail": SLOW, "rails": rows, **FAST}) as b:
        b.go()
        b.until(
            lambda: (
                all([e for e in b.bodies(wire.ENERGY) if e[0] == rail][2:] for rail in range(3))
                and len(samples_of(b, 0)) > 2000
            )
        )
        b.send(wire.STOP)
        b.hello()
    for rail, ppm in enumerate((0, -8000, -4500)):
        samples = samples_of(b, rail)
        assert steps(samples) == 0 == missed_of(b, rail)
        assert rate(samples) == pytest.approx(1e6 / 970 * (CHIP_FAST + ppm * 1e-6), rel=1e-4)
        power = samples[0][2] * samples[0][3] >> 14
        for body in [body for body in b.bodies(wire.ENERGY) if body[0] == rail]:
            _, _, index, _, energy, charge, _, _ = struct.unpack(wire.ENERGY_BODY, body)
            assert int.from_bytes(energy, "little") == power * index * 970_000 // (16 * 10**9)
            assert int.from_bytes(charge, "little", signed=True) == samples[0][3] * index * 970_000 // 10**9


@pytest.mark.parametrize(
    "fault", [{"brownouts": [2.2]}, {"nacks": [[2.2, 20]]}, {"stuck_sda": [2.2]}], ids=["brown-out", "NACK", "SDA"]
)
def test_one_rails_fault_leaves_all_rails_right(tmp_path, fault):
    """Said and counted; all rails stream again, no sample has another value than before."""
    row = {**ROW, **SLOW, "rail": 1, "name": "aux", "address": 0x41, "alert": 7, "simulated": {"A": 0.3, "V": 12.0}}
    with Board(tmp_path, 2.5, {"rail": SLOW, "rails": [row], **fault, **TWICE}) as b:
        b.go()
        b.until(lambda: "configured again" in b.logs())
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 1000)
        b.send(wire.STOP)
        b.hello()
    for rail in range(2):
        samples = samples_of(b, rail)
        assert len({(v, i) for _, _, v, i in samples}) == 1
        assert steps(samples) == missed_of(b, rail)
    assert steps(samples_of(b, 0)) > 10


def test_an_ina226_behind_the_same_interface(tmp_path):
    """16-bit values with its own LSBs; no accumulators, so no E frames."""
    rail = {"chip": "INA226", "vbus_us": 332, "vshunt_us": 588, "current_lsb_pA": 250_000_000}
    with Board(tmp_path, 2.5, {"rail": rail, **FAST}) as b:
        hello = b.hello()["rails"][0]
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 2000)
    assert (hello["chip"], hello["vbus_lsb_nV"], hello["current_lsb_pA"]) == ("INA226", 1_250_000, 250_000_000)
    assert hello["conversion_ns"] == 920_000 and hello["adc_config"] == 0x409F and hello["shunt_cal"] == 2560
    samples = b.samples()
    assert steps(samples) == 0 and b.energies() == [] and b.logs() == ""
    amps = (5 - (25 - 4 * SUPPLY_OHM * 2.5) ** 0.5) / (2 * SUPPLY_OHM)
    assert {(v, i) for _, _, v, i in samples} == {
        (round((5 - SENSED_OHM * amps) / 1.25e-3), int(round(amps * 0.008 / 2.5e-6) * 2560 / 2048))
    }
    assert rate(samples) == pytest.approx(1e6 / 920 * CHIP_FAST, rel=1e-4)


def test_an_ina226_that_browned_out(tmp_path):
    rail = {"chip": "INA226", "vbus_us": 332, "vshunt_us": 588, "current_lsb_pA": 250_000_000}
    with Board(tmp_path, 2.5, {"rail": rail, "brownouts": [2.2], **TWICE}) as b:
        b.go()
        b.until(lambda: "configured again" in b.logs())
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 500)
    assert "forgot its configuration (brown-out): registers 4127 0000" in b.logs()
    assert len({(v, i) for _, _, v, i in b.samples()}) == 1
    assert steps(b.samples()) == b.missed() > 50


@pytest.mark.usefixtures("integers")
def test_one_rail_at_four_thousand(tmp_path):
    """VBUS 84 + VSHUNT 150 us: 4273 conversions/s nominal. The accumulators do not fit behind a sample: once a second
    they are read instead of one, which is counted; nothing else is lost."""
    with Board(tmp_path, 2.5, {"rail": QUICK, **FAST}) as b:
        b.go()
        b.until(lambda: len(b.energies()) >= 3)
        b.send(wire.STOP)
        b.hello()
    samples = b.samples()
    assert b.damaged == [] and b.logs() == ""
    assert len(samples) > 7_500
    assert rate(samples) == pytest.approx(1e6 / 234 * CHIP_FAST, rel=1e-4) and rate(samples) > 4200
    given = len([e for e in b.energies() if e["index"]])
    assert steps(samples) == b.missed() == given
    power = samples[0][2] * samples[0][3] >> 14
    assert len({(v, i) for _, _, v, i in samples}) == 1
    for e in b.energies():
        assert e["energy"] == power * e["index"] * 234_000 // (16 * 10**9)
        assert e["charge"] == samples[0][3] * e["index"] * 234_000 // 10**9


INA229 = {"chip": "INA229", "bus": "SPI0", "cs": 1, "vbus_us": 50, "vshunt_us": 50, "temp_us": None}


@pytest.mark.usefixtures("integers")
def test_an_ina229_as_fast_as_it_may_be_beside_an_ina228(tmp_path):
    """4 295 conversions/s of a fast chip over SPI, and 1 036 of another over I2C: nothing is lost, not even for the
    accumulators, which hold exactly the conversions before their index."""
    row = {**ROW, **SLOW, "rail": 1, "name": "aux", "address": 0x41, "alert": 7, "simulated": {"A": 0.3, "V": 12.0}}
    with Board(tmp_path, 2.5, {"rail": {**INA229, "vbus_us": 84, "vshunt_us": 150}, "rails": [row], **FAST}) as b:
        hello = b.hello()["rails"]
        b.send(wire.GO)
        b.until(lambda: sum(body[0] == 0 for body in b.bodies(wire.ENERGY)) >= 2)
    assert [(r["chip"], r["bus"], r["conversion_ns"], r["adc_config"]) for r in hello] == [
        ("INA229", "SPI0", 234_000, 0xB280),
        ("INA228", "I2C0", 970_000, 0xF518),
    ]
    assert b.damaged == [] and b.logs() == ""
    for rail, period_us in enumerate((234, 970)):
        samples = samples_of(b, rail)
        assert steps(samples) == 0 == missed_of(b, rail)
        assert rate(samples) == pytest.approx(1e6 / period_us * CHIP_FAST, rel=1e-4)
        assert len({(v, i) for _, _, v, i in samples}) == 1
        power = samples[0][2] * samples[0][3] >> 14
        for body in (body for body in b.bodies(wire.ENERGY) if body[0] == rail):
            _, _, index, t_us, energy, charge, _, _ = struct.unpack(wire.ENERGY_BODY, body)
            assert int.from_bytes(energy, "little") == power * index * period_us // (16 * 10**6)
            assert int.from_bytes(charge, "little", signed=True) == samples[0][3] * index * period_us // 10**6
    assert len(samples_of(b, 0)) > 4_000


@pytest.mark.parametrize(
    "fault, message",
    [
        ({"brownouts": [1.2]}, "forgot its configuration (brown-out): registers 0000 fb68 1000"),
        ({"stuck_miso": [[1.2, 30, 1]]}, "forgot its configuration (brown-out): registers ffff ffff ffff"),
        ({"stuck_miso": [[1.2, 30, 0]]}, "forgot its configuration (brown-out): registers 0000 0000 0000"),
    ],
    ids=["brown-out", "MISO high", "MISO low"],
)
def test_an_ina229s_fault_is_said_and_counted(fault, message, tmp_path):
    """No sample has another value than before, but for the one in which the line sticks: the bits behind that moment
    are its level, and no flag of the chip shows it."""
    with Board(tmp_path, 2.5, {"rail": INA229, **fault}) as b:
        b.go()
        b.until(lambda: "configured again" in b.logs())
        n = len(b.samples())
        b.until(lambda: len(b.samples()) > n + 2000)
    assert message in b.logs()
    samples = b.samples()
    (last,) = [k for k, (before, after) in enumerate(zip(samples, samples[1:])) if after[0] - before[0] > 100]
    (usual,) = {(v, i) for _, _, v, i in samples[:last] + samples[last + 1 :]}
    assert samples[last][2:] in cut_off(*usual)
    assert steps(samples) == b.missed() > 100


def cut_off(vbus, current):
    """What (VBUS, CURRENT), whole or broken off at some bit, read as: CURRENT comes first, 20 bits and 4 zeros each."""
    sent = (current & 0xFFFFF) << 28 | vbus << 4
    prefixes = [sent >> n << n for n in range(49)]
    return {(word >> 4 & 0xFFFFF, (word >> 28) - (word >> 47 << 20)) for word in prefixes}


def test_where_a_frame_may_be_cut_off():
    assert {(0x63C5, 0xC876), (0x63C0, 0xC876), (0, 0xC876), (0, 0xC870), (0, 0)} <= cut_off(0x63C5, 0xC876)
    assert {(0x63C5, -3), (0, -4)} <= cut_off(0x63C5, -3) and (0x63C5, 0xC870) not in cut_off(0x63C5, 0xC876)


THREE = [SLOW] + [
    {"rail": n, "address": 0x40 + n, "alert": 6 + n, "simulated": {"A": 0.3, "V": 12.0}, **SLOW} for n in (1, 2)
]
CHEAP = {"chip": "INA226", "vbus_us": 332, "vshunt_us": 588, "current_lsb_pA": 250_000_000}
MIXED = [THREE[0], {**THREE[1], **CHEAP}]


@pytest.mark.usefixtures("integers")
@pytest.mark.parametrize(
    "rails, energies, rounds",
    [(THREE, 3, 6_000), ([QUICK], 1, 6_000), (MIXED, 1, 6_000), ([INA229], 1, 8_000)],
    ids=["three rails", "fast rail", "INA228 and INA226", "INA229"],
)
def test_no_kind_of_rail_allocates_while_it_samples(rails, energies, rounds, tmp_path):
    """With the heap locked from `go` on. (That the lock is felt is shown in test_firmware.)"""
    make_feed(tmp_path / "feed", 2.5)
    done = run_script("heap_locked.py", str(tmp_path / "feed"), str(rounds), stdin=json.dumps(rails))
    assert done.returncode == 0, done.stdout + done.stderr
    pieces = bytes.fromhex("".join(line.split()[1] for line in done.stdout.splitlines()[1:])).split(b"\x00")
    frames = [wire.decode(piece) for piece in pieces[:-1] if piece]
    given = sum(kind == wire.ENERGY and struct.unpack_from("<BBI", body)[2] > 0 for kind, _, body in frames)
    for rail in range(len(rails)):
        heads = [
            struct.unpack_from(wire.SAMPLES_HEAD, body)
            for kind, _, body in frames
            if kind == wire.SAMPLES and body[0] == rail
        ]
        lost = heads[-1][4] + heads[-1][2] - sum(h[2] for h in heads)
        assert len(heads) > 10 and lost == heads[-1][3] <= (given if rails == [QUICK] else 0)
    assert given >= energies
