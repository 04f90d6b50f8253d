"""The firmware in the MicroPython interpreter when ALERT says more, or less, than the sensor: edges between
conversions, as interference makes them, at every phase of the reading; and edges that are lost."""

import re

import pytest
from simboard import Board

from ssdrig.meter import wire

pytestmark = pytest.mark.slow  # not of real time: its boards have a time of their own (simboard.py)

SHIPPED = {}
FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}
SPI = {"chip": "INA229", "bus": "SPI0", "cs": 1, "vbus_us": 50, "vshunt_us": 50, "temp_us": None}
INA226 = {"chip": "INA226", "current_lsb_pA": 250_000_000, "vbus_us": 204, "vshunt_us": 588, "temp_us": None}
RAILS = {"INA228": SHIPPED, "INA228, fast": FAST, "INA229": SPI, "INA226": INA226}
SLOWER = {"vbus_us": 540, "vshunt_us": 540}  # 10 000 samples/s take the interpreter long
PULSES = 60  # of each length
BEGIN_s = 1.0  # of them, since boot


def latest_us(b, name):
    """Time of what is looked at last: of an INA226, which has no accumulators, a sample."""
    return b.samples()[-1][1] if name == "INA226" else b.energies()[-1]["t_us"]


@pytest.mark.parametrize("name", RAILS)
def test_an_edge_without_a_conversion_is_not_counted(tmp_path, name):
    """Pulses at 120 phases between two conversions, half of them too short to be found low by the interrupt: the
    accumulators know how many conversions there were, and so does the chip's oscillator. What a pulse spoils is a
    sample that is under way, and counted as missed; no value and no stamp is another conversion's."""
    rail = RAILS[name]
    set_us = rail.get("vbus_us", 50) + rail.get("vshunt_us", 1052)
    period_us = set_us / 1.005 * (1 + 15e-6)
    every_us = 8.0 * period_us + period_us / PULSES
    pulses = [[BEGIN_s, PULSES, every_us, 0.5], [BEGIN_s + 4.3 * period_us / 1e6, PULSES, every_us, 25]]
    last_us = 1e6 * (BEGIN_s + 4.3 * period_us / 1e6) + PULSES * every_us
    with Board(tmp_path, 2.5, {"rail": rail, "glitches": pulses}) as b:
        b.go()
        tick0 = b.truth()[0]["tick0"]
        # the accumulators of an INA228 or INA229 have seen all of them
        b.until(lambda: (b.samples() if name == "INA226" else b.energies()) and latest_us(b, name) - tick0 > last_us)
        b.send(wire.STOP)
        b.hello()  # answered in order: what streamed before is here
    samples, ends = b.samples(), b.energies()
    began_s = (samples[0][1] - tick0) / 1e6
    assert began_s < BEGIN_s
    assert len({(v, i) for _, _, v, i in samples}) == 1
    power = samples[0][2] * samples[0][3] >> 14
    for end in ends:
        assert end["energy"] == pytest.approx(power * end["index"] * set_us / 16e6, abs=1)
    assert name == "INA226" or ends[-1]["t_us"] > tick0 + last_us
    assert samples[-1][0] + 1 - len(samples) == b.missed() <= PULSES  # under way is less than half of the time
    late_us = [t - samples[0][1] - k * period_us for k, t, _, _ in samples]
    assert -30 < min(late_us) and max(late_us) < 5  # a conversion that ends while the line is held low
    (count,) = re.findall(r"rail 0: (\d+) edges of ALERT had no conversion", b.logs())
    assert PULSES / 2 < int(count) <= 2 * PULSES or name == "INA228, fast"


@pytest.mark.parametrize("name", ["INA228", "INA229"])
def test_edges_that_are_lost_cost_what_was_not_read_and_no_more(tmp_path, name):
    """One alone, then three in a row, each found out by the silence behind it. The accumulators and the chip's
    oscillator know how many conversions there were: each is a sample or missed, and each sample has its own time."""
    rail = RAILS[name] | (SLOWER if name == "INA229" else {})
    set_us = rail.get("vbus_us", 50) + rail.get("vshunt_us", 1052)
    period_us = set_us / 1.005 * (1 + 15e-6)
    with Board(tmp_path, 2.5, {"rail": rail, "lost_edges": [[BEGIN_s, 1], [BEGIN_s + 0.1, 3]]}) as b:
        b.go()
        tick0 = b.truth()[0]["tick0"]
        b.until(lambda: b.energies() and b.energies()[-1]["t_us"] - tick0 > 1e6 * (BEGIN_s + 0.2))
        b.send(wire.STOP)
        b.hello()
    samples = b.samples()
    assert (samples[0][1] - b.truth()[0]["tick0"]) / 1e6 < BEGIN_s
    assert len({(v, i) for _, _, v, i in samples}) == 1
    power = samples[0][2] * samples[0][3] >> 14
    for end in b.energies():
        assert end["energy"] == pytest.approx(power * end["index"] * set_us / 16e6, abs=1)
    lost = samples[-1][0] + 1 - len(samples)
    assert 4 <= lost == b.missed() <= 4 * (2 * set_us + 2000) / set_us
    late_us = [t - samples[0][1] - k * period_us for k, t, _, _ in samples]
    assert -30 < min(late_us) and max(late_us) < 30
    assert "4 edges of ALERT were lost" in b.logs() and "configured again" not in b.logs()
