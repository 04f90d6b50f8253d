"""bridge.py and meter.py: what a meter other than our board measures, as a run reads it."""

import json
import threading
import time

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import bridge, messages, meter, uncertainty, wire
from ssdrig.meter.pico.session import session
from ssdrig.meter.uncertainty import Mean

LIMITS = meter.Accuracy(volts=(meter.Limit(6, 0.05, 0.01),), amperes=(meter.Limit(1, 0.1, 0.001),))


class Fake:
    """A meter whose readings are made beforehand; it then waits until it is closed, or is gone."""

    name, serial = "Fake 1", "F1"

    def __init__(self, blocks, rails=None, gone=False, bound_ns=10_000_000):
        self._blocks, self._gone, self._bound_ns = blocks, gone, bound_ns
        self._rails = rails or [meter.Rail("5V", 0.01, LIMITS, 0.5, 5.0)]
        self._ends = threading.Event()

    def rails(self):
        return self._rails

    def clock(self):
        return meter.Clock(self._bound_ns)

    def blocks(self):
        while not self._ends.wait(0.01):
            yield from self._blocks()
        if self._gone:
            raise OSError("pulled out")

    def close(self):
        self._ends.set()


def steady(volts=5.0, amperes=0.5, n=3, **more):
    def blocks():
        now_ns = time.monotonic_ns()
        t_ns = [now_ns - (n - 1 - i) * 3_000_000 for i in range(n)]
        yield meter.Block(0, t_ns, [volts] * n, [amperes] * n, **more)

    return blocks


@pytest.fixture
def given(monkeypatch):
    """Has opened() give this meter for every URL."""
    return lambda of: monkeypatch.setattr(meter, "opened", lambda url: of)


def test_readings_come_as_they_are(given):
    given(Fake(steady()))
    with session("hwmon:x") as meter_session:
        reading = meter_session.readings([0], 0.4)[0]
    assert abs(reading.raw_V.mean() - 5) < 1e-5 and abs(reading.raw_A.mean() - 0.5) < 1e-5
    assert reading.power.lost == 0 and 10e6 <= reading.power.err_ns.max() < 30e6
    assert meter_session.hello["source"] == "hwmon" and messages.answer(
        wire.HELLO, json.dumps(meter_session.hello).encode()
    )


def test_lost_readings_are_counted_and_those_of_no_known_time_too(given):
    blocks = [steady(missed=2), steady(bound_ns=11_000_000)]

    def both():
        for block in blocks:
            yield from block()

    given(Fake(both))
    with session("hwmon:x") as meter_session:
        power = meter_session.readings([0], 0.3)[0].power
    groups = len(power.t_ns) // 3
    assert abs(power.lost - 5 * groups) <= 5 and power.counts["missed"] >= 5 * (groups - 1)


def test_a_meter_whose_readings_come_too_late_is_not_silent(given):
    """As a drive that a slow host asks for its power: the run goes on, without power for as long."""
    late = threading.Event()

    def blocks():
        yield from steady(bound_ns=11_000_000 if late.is_set() else 0)()

    given(Fake(blocks))
    with session("hwmon:x") as meter_session:
        rig = meter_session.rig
        meter_session.readings([0], 0.1)
        late.set()
        deadline = time.monotonic() + 60
        while not rig.silent_rails(1.0) or rig.silent_s() > 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        late.clear()
        assert meter_session.readings([0], 0.1)[0].power.lost > 0


def test_a_meter_that_goes_away_is_lost_and_no_error_of_its_own(given):
    one = Fake(steady(), gone=True)
    given(one)
    with session("hwmon:x") as meter_session:
        meter_session.readings([0], 0.1)
        one.close()
        deadline = time.monotonic() + 600
        while meter_session.rig.live()["state"] != "lost" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert meter_session.rig.live()["state"] == "lost"


def test_a_meter_cuts_nothing(given):
    given(Fake(steady()))
    with session("hwmon:x") as meter_session:
        kind, body = meter_session.rig.ask(wire.ARM, b"", (wire.ARMED, wire.REFUSED), 10.0, "an answer")
    assert kind == wire.REFUSED and json.loads(body)["command"] == "a"


def test_a_meter_without_a_reading_is_refused(given):
    given(Fake(lambda: iter(())))
    with pytest.raises(RigError), session("hwmon:x"):
        pass


@pytest.mark.parametrize(
    "accuracy, percent",
    [
        # hypot(5 V: 0.0125 of 5, 0.5 A: 0.0015 of 0.5) / sqrt(3), k = 2
        (LIMITS, 2 / 3**0.5 * (0.25**2 + 0.3**2) ** 0.5),
        (meter.Accuracy(watts=(meter.Limit(10, 1.0, 0.025),)), 2 * 2 / 3**0.5),
        (meter.Accuracy(unknown="nobody says"), None),
        (meter.Accuracy(watts=(meter.Limit(1, 1.0),)), None),  # beyond its range
        (meter.Accuracy(volts=(meter.Limit(6, 0.05),)), None),  # of the current nothing is known
    ],
)
def test_stated_limits_make_the_uncertainty(accuracy, percent):
    row = bridge.row(0, meter.Rail("5V", 0.01, accuracy, 1.0))
    assert messages.is_rail(row) and not messages.has_chip(row)
    stated_percent = uncertainty.expanded_W([Mean(row, 5.0, 2.5)]) / 2.5 * 100
    assert stated_percent == pytest.approx(percent, rel=1e-6) if percent else stated_percent != stated_percent


def test_what_the_readings_did_not_see_counts(given):
    unseen = bridge.row(0, meter.Rail("5V", 0.1, LIMITS, 0.0))
    seen = bridge.row(0, meter.Rail("5V", 0.1, LIMITS, 1.0))
    wide, narrow = (uncertainty.expanded_W([Mean(row, 5.0, 2.5, 100, 1.0)]) for row in (unseen, seen))
    assert wide**2 - narrow**2 == pytest.approx((2 * 1.0 / 10) ** 2, rel=1e-6)


def test_a_chip_keeps_the_budget_of_its_data_sheet():
    row = bridge.row(0, meter.Rail("5V", 0.01, meter.Accuracy(chip="INA228", shunt_uOhm=8000), 0.0))
    assert messages.is_rail(row) and uncertainty.expanded_W([Mean(row, 5.0, 2.5)]) > 0
    assert not messages.is_rail({**row, "shunt_uOhm": None} | {"shunt_uOhm": 0})


@pytest.mark.parametrize(
    "url, parts",
    [("/dev/ttyACM0", ("pico", "/dev/ttyACM0")), ("hwmon:/a", ("hwmon", "/a")), ("COM3", ("pico", "COM3"))],
)
def test_a_port_alone_is_our_board(url, parts):
    assert meter.split(url) == parts and meter.is_rig(url) == (parts[0] == "pico")


def test_unknown_meters_are_refused(tmp_path):
    assert {"hwmon", "pico"} <= set(meter.names()) and not meter.is_rig("pico:/dev/ttyACM0")
    for url in ("hwmn:/x", f"hwmon:{tmp_path}", "pico:/dev/none", "hwmon:"):
        with pytest.raises(UsageError):
            meter.check(url)


def test_moments_that_a_busy_host_passes_over_are_missed(monkeypatch):
    took_ns = iter([0, 0, 350_000_000, 0, 0])
    now_ns = [0]

    def read():
        now_ns[0] += next(took_ns)
        return 5.0, 0.1

    monkeypatch.setattr(meter.time, "monotonic_ns", lambda: now_ns[0])
    monkeypatch.setattr(meter.time, "sleep", lambda s: now_ns.__setitem__(0, now_ns[0] + round(s * 1e9)))
    readings = meter.polled(0, 0.1, read)
    stamps = [next(readings) for _ in range(5)]
    assert [block.missed for block in stamps] == [0, 0, 0, 2, 0] and stamps[2].bound_ns == 175_000_000
