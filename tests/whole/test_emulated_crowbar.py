"""The crowbar's guard and a train of dips on an emulated RP2040 in the RP2 port of MicroPython itself: 31-bit integers,
the heap locked, the pins to the cycle."""

import json
from types import SimpleNamespace

import emulated
import pytest
from standins import MHz

pytestmark = pytest.mark.slow

# One rail at 5 V that does not fall, read each 740 us, as the INA228 sees it; then the same ending in a ramp; then dips
SCRIPT = """
import json, gc, machine, micropython, time, wire, switch, cut
from clock64 import Clock64
class Chip:
    rail = {"rail": 0}; running = True; watch = None
    def describe(self): return {"vbus_lsb_nV": 195312.5, "conversion_ns": 1102000}
class Link:
    def __init__(self): self.said = []
    def say(self, kind, text): self.said.append((kind, text))
    def answer(self, buf, n): pass
link, chip, clock = Link(), Chip(), Clock64()
s = switch.Switch(({"rail": 0, "gate": 10, "discharge_mOhm": 2200},), None, 22, [chip], link, clock)
frame = bytearray(8); frame[2], frame[3] = 25600 & 255, 25600 >> 8
def run(us, **how):
    s.arm()
    s.cut(dict(token=s.token, rails=[0], when={"now": True}, **how))
    s.sample(0, time.ticks_us(), frame, 0)
    while s.state != switch.FIRED and s.state != switch.RISING:
        s.turn()
    w = s.cutting[0]; gc.collect()
    end = time.ticks_add(time.ticks_us(), us)
    while time.ticks_diff(end, time.ticks_us()) > 0:
        micropython.heap_lock()
        s.sample(0, time.ticks_us(), frame, 0)
        micropython.heap_unlock()
        s.turn()
        time.sleep_us(700)
    return w.report(False)
said = [run(60_000, profile="crowbar")]
s.release()
said.append(run(90_000, profile="ramp", fall_us=30_000, bulk_uF=[470]))
s.release()
said.append(run(20_000, profile="dips", dips=5, down_us=100, up_us=50))
print(json.dumps([said, [t for k, t in link.said if k == wire.LOG]]))
"""


@pytest.fixture(scope="module")
def seen():
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated(gpios=[10, 11, 22]) as board:
        board.raw_repl()
        reports, logs = json.loads(board.run(SCRIPT))
        changes = board.end()["changes"]
    starts = [cycle for cycle, gpio, level in changes if (gpio, level) == (22, "High")]
    runs = [
        [(cycle - t0, gpio, level) for cycle, gpio, level in changes if t0 <= cycle < end]
        for t0, end in zip(starts, [*starts[1:], 1 << 62])
    ]
    return SimpleNamespace(reports=reports, logs=logs, runs=runs)


def of(run, gpio):
    return [(cycle / MHz, level) for cycle, pin, level in run if pin == gpio]


def test_a_crowbar_lets_go_of_a_rail_that_does_not_fall(seen):
    """22 ms after the edge, while the series switch stays open; 11.4 W x 22 ms is a quarter of a joule."""
    (closed, _), (gone, level), *_ = of(seen.runs[0], 11)
    assert closed == pytest.approx(50, abs=0.1) and 22_000 < gone < 24_500 and level != "High"
    assert of(seen.runs[0], 10)[0] == (0, "High") and of(seen.runs[0], 10)[1][0] > 59_000
    assert seen.reports[0]["released"] == "the rail did not fall"
    assert seen.reports[0]["crowbar_mJ"] == pytest.approx(11.36 * gone / 1000, rel=0.06)


def test_a_ramp_that_is_let_go_stays_open_whatever_its_machine_does(seen):
    pulses = of(seen.runs[1], 11)
    gone = next(t for t, level in pulses if level == "Input")
    assert 52_000 < gone < 55_000 and sum(level == "High" for t, level in pulses if t < gone) > 20
    assert not [t for t, level in pulses if t > gone and level == "High"]
    assert seen.reports[1]["released"] == "the rail did not fall" and seen.reports[1]["crowbar_mJ"] < 500
    assert len(seen.logs) == 2


def test_dips_are_as_long_as_asked(seen):
    changes = of(seen.runs[2], 10)[:10]
    assert changes == [
        (pytest.approx(150 * k + us, abs=0.01), level) for k in range(5) for us, level in ((0, "High"), (100, "Low"))
    ]
    assert not [level for _, level in of(seen.runs[2], 11) if level == "High"]
