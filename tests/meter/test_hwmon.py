"""sources/hwmon.py: a folder as the kernel makes it."""

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter.sources import hwmon


def folder(tmp_path, name, **files):
    for file, text in {"name": name, **files}.items():
        (tmp_path / file).write_text(f"{text}\n")
    return tmp_path


def test_an_ina_has_its_budget_and_its_rail(tmp_path):
    files = {"in1_input": 5012, "curr1_input": -480, "power1_input": 2400000, "shunt_resistor": 2000}
    one = hwmon.opened(f"{folder(tmp_path, 'ina226', **files)}?rate=200&V=5")
    (rail,) = one.rails()
    assert (rail.accuracy.chip, rail.accuracy.shunt_uOhm, rail.nominal_V) == ("INA226", 2000, 5)
    block = next(one.blocks())
    assert block.volts[0] == pytest.approx(5.012) and block.amperes[0] == pytest.approx(-0.48)


def test_a_supply_has_a_rail_for_each_line(tmp_path):
    files = {"in2_input": 5000, "curr2_input": 200, "in3_input": 3300, "power3_input": 1650000}
    files |= {"power2_label": "v_out +5v", "power3_label": "v_out +3.3v", "temp1_input": 40000}
    one = hwmon.opened(str(folder(tmp_path, "corsairpsu", **files)))
    assert [rail.name for rail in one.rails()] == ["v_out +5v", "v_out +3.3v"]
    assert all(rail.accuracy.unknown for rail in one.rails())
    blocks = one.blocks()
    second = [next(blocks) for _ in range(2)][1]
    assert second.rail == 1 and second.volts[0] * second.amperes[0] == pytest.approx(1.65)


def test_power_without_a_voltage_is_kept(tmp_path):
    one = hwmon.opened(f"{folder(tmp_path, 'some', power1_input=2500000)}?V=12")
    block = next(one.blocks())
    assert block.volts[0] * block.amperes[0] == pytest.approx(2.5) and block.volts == (12.0,)


@pytest.mark.parametrize(
    "name, files, bound_ms", [("ina226", {"update_interval": 35}, 80), ("corsairpsu", {}, 10), ("other", {}, 1010)]
)
def test_a_reading_is_as_old_as_the_chip_may_leave_it(tmp_path, name, files, bound_ms):
    one = hwmon.opened(str(folder(tmp_path, name, curr1_input=1, **files)))
    assert one.clock().bound_ns == bound_ms * 1_000_000


@pytest.mark.parametrize("query", ["?rate=0", "?rate=x", "?V=-1", "?rate=nan", "?rte=5", "?rate=1e9"])
def test_what_cannot_be_asked_is_refused(tmp_path, query):
    with pytest.raises(UsageError):
        hwmon.check(f"{folder(tmp_path, 'ina226', curr1_input=1)}{query}")


def test_a_sensor_that_gives_no_number_is_an_error_in_words(tmp_path):
    with pytest.raises(UsageError):
        hwmon.check(str(folder(tmp_path, "k10temp", temp1_input=1)))
    with pytest.raises(RigError):
        hwmon.opened(str(folder(tmp_path, "ina226", curr1_input=1, shunt_resistor="x")))
