"""How fast the I2C bus is: as asked for, or slower where registers are read back wrong; and what does not fit is
refused in words."""

import re

import pytest
from simboard import Board

from ssdrig.meter import wire

FAST = {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}


def rows(n):
    """More rails on the bus, as shipped."""
    more = {"simulated": {"A": 0.3, "V": 12.0}}
    return [{"rail": k, "name": f"rail {k}", "address": 0x40 + k, "alert": 6 + k, **more} for k in range(1, n + 1)]


def test_a_sound_bus_is_as_fast_as_asked_for(tmp_path):
    with Board(tmp_path, 2.5) as b:
        hello = b.hello()
    (bus,) = hello["buses"]
    assert bus == {"bus": "I2C0", "Hz": 992_063, "asked_Hz": 992_063, "read_backs": 256, "errors": 0}
    assert 25_000 <= hello["rails"][0]["die_mC"] < 26_000


def test_a_bus_that_bears_less_is_slower_and_loses_nothing(tmp_path):
    with Board(tmp_path, 2.5, {"bus_max_Hz": 600_000, "rails": rows(1)}) as b:
        (bus,) = b.hello()["buses"]
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 1500)
        assert bus == {"bus": "I2C0", "Hz": 376_506, "asked_Hz": 992_063, "read_backs": 512, "errors": 0}
        frames = b.bodies(wire.SAMPLES)
        assert {body[0] for body in frames} == {0, 1} and b.bodies(wire.LOG) == []
        assert all(int.from_bytes(body[3:7], "little") == 0 for body in frames), "none is lost"


def test_a_bus_on_which_nothing_is_right_says_so(tmp_path):
    with Board(tmp_path, 2.5, {"bus_max_Hz": 300_000}) as b:
        (bus,) = b.hello()["buses"]
    assert bus["errors"] == bus["read_backs"] == 256


def test_an_absent_sensor_makes_no_bus_slow(tmp_path):
    with Board(tmp_path, 2.5, {"rails": [{**rows(1)[0], "true": {"absent": True}}]}) as b:
        (bus,) = b.hello()["buses"]
    assert (bus["Hz"], bus["read_backs"]) == (992_063, 256)


@pytest.mark.parametrize("expected, chip", [("INA228", "INA226"), ("INA226", "INA228")])
def test_another_chip_is_not_written(tmp_path, expected, chip):
    """The stand-in would refuse to be: its registers are others. Its neighbour streams, at the full rate."""
    ours = {"chip": expected, **({"vbus_us": 140, "vshunt_us": 588} if expected == "INA226" else {})}
    with Board(tmp_path, 2.5, {"rail": {**ours, "true": {"chip": chip}}, "rails": rows(1)}) as b:
        hello = b.hello()
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 300)
        logs, rails = b.logs(), {body[0] for body in b.bodies(wire.SAMPLES)}
    (bus,) = hello["buses"]
    assert (bus["Hz"], bus["read_backs"], bus["errors"]) == (992_063, 512, 256)
    assert rails == {1}
    assert set(re.findall("rail [^,]*, seen IDs", logs)) == {
        f"rail 0: expected an {expected} at I2C address 0x40, seen IDs"
    }


@pytest.mark.parametrize(
    "more, why",
    [
        ({"rail": FAST}, "rail 0: conversions of 234 us are too short"),
        ({"rails": rows(2)}, "the rails' samples want 1"),
    ],
)
def test_what_does_not_fit_the_slow_bus_is_refused_in_words(tmp_path, more, why):
    with Board(tmp_path, 2.5, {"bus_max_Hz": 600_000, **more}) as b:
        b.until(lambda: why in b.logs())
        assert b.bodies(wire.HELLO) == []
