"""sources/joulescope.py, by a stand-in of pyjoulescope_driver's publish and subscribe."""

import sys
import time
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError, ToolMissing, UsageError
from ssdrig.meter.sources import joulescope

PATH = "u/js220/001122"
AGE_NS = 20_000_000


class Driver:
    """The driver, with one JS220. play() publishes a block of each quantity as it does."""

    paths = [PATH]
    last: "Driver"

    def __init__(self):
        self.published, self.takers, self.opened, self.closed, self.finalized = {}, {}, [], [], False
        Driver.last = self

    def device_paths(self):
        return self.paths

    def open(self, path, mode):
        self.opened.append((path, mode))

    def close(self, path):
        self.closed.append(path)

    def finalize(self):
        self.finalized = True

    def publish(self, topic, value):
        assert topic.startswith(PATH)
        self.published[topic.removeprefix(PATH)] = value

    def subscribe(self, topic, flags, take):
        assert flags == ["pub"]
        self.takers[topic] = take

    def unsubscribe(self, topic, take):
        assert self.takers.pop(topic) is take

    def play(self, first, volts, amperes, age_ns=AGE_NS):
        """Samples from number `first` on, at 1000 a second of 1 000 000, the last of which is `age_ns` old."""
        n = max(len(volts), len(amperes))
        utc_ns = time.time_ns() - age_ns - (n - 1) * 1_000_000
        utc = (utc_ns - joulescope.TIME64_EPOCH_S * 10**9) * joulescope.TIME64_SECOND // 10**9
        for name, data in (("v", volts), ("i", amperes)):
            if data:
                value = {"sample_id": first * 1000, "decimate_factor": 1000, "sample_rate": 1_000_000}
                topic = f"{PATH}/s/{name}/!data"
                self.takers[topic](topic, {**value, "utc": utc, "data": data})


@pytest.fixture
def driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyjoulescope_driver", SimpleNamespace(Driver=Driver))
    monkeypatch.setattr(joulescope, "is_installed", lambda name: True)
    return Driver


def test_samples_of_both_quantities_are_readings(driver):
    one = joulescope.opened("001122?V=0.1%+3mV&A=0.3%+1mA")
    made = driver.last
    assert made.opened == [(PATH, "restore")] and made.published["/h/fs"] == 1000
    assert made.published["/s/i/ctrl"] == made.published["/s/v/ctrl"] == 1
    assert not any("range" in topic for topic in made.published)  # a range that is set anew may take the drive's power
    made.play(5, [5.0, 5.1, 5.2], [0.1, 0.2, 0.3])
    came_ns = time.monotonic_ns()
    block = next(one.blocks())
    assert block.volts == [5.0, 5.1, 5.2] and block.amperes == [0.1, 0.2, 0.3] and not block.missed
    assert [b - a for a, b in zip(block.t_ns, block.t_ns[1:], strict=False)] == [1_000_000] * 2
    assert abs(came_ns - AGE_NS - block.t_ns[-1]) <= block.bound_ns == joulescope.BOUND_NS
    (rail,) = one.rails()
    assert rail.accuracy.volts[0].percent == 0.1 and one.name == "Joulescope JS220 001122"
    one.close()
    assert made.closed == [PATH] and made.finalized and not made.takers and made.published["/s/i/ctrl"] == 0


def test_what_has_not_come_is_counted(driver):
    one = joulescope.opened("")
    made, blocks = driver.last, one.blocks()
    made.play(0, [5.0] * 4, [1.0] * 4)
    made.play(10, [5.0] * 4, [])  # of which no current comes
    made.play(20, [5.0] * 4, [2.0] * 4)
    assert next(blocks).missed == 0
    block = next(blocks)
    assert (block.missed, block.amperes) == (16, [2.0] * 4)


@pytest.mark.parametrize("age_ns", [-1_000_000_000, 3_000_000_000])
def test_a_time_that_does_not_fit_is_no_reading(driver, age_ns):
    one = joulescope.opened("")
    driver.last.play(0, [5.0] * 4, [1.0] * 4, age_ns)
    assert next(one.blocks()).bound_ns > one.clock().bound_ns  # the bridge counts it as lost


def test_silence_is_the_end(driver, monkeypatch):
    monkeypatch.setattr(joulescope, "SILENT_S", 0.0)
    with pytest.raises(OSError):
        next(joulescope.opened("").blocks())


@pytest.mark.parametrize("paths", [[], [PATH, "u/js220/3"]])
def test_none_or_two_of_them_are_refused(driver, monkeypatch, paths):
    monkeypatch.setattr(Driver, "paths", paths)
    with pytest.raises(RigError):
        joulescope.opened("")
    assert driver.last.finalized


@pytest.mark.parametrize("rest", ["?rate=1", "?rate=x", "?V=1%", "?other=2"])
def test_what_is_no_such_url_is_refused(rest):
    with pytest.raises(UsageError):
        joulescope.check(rest)


def test_without_the_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(joulescope, "is_installed", lambda name: False)
    with pytest.raises(ToolMissing):
        joulescope.check("")
