"""sources/iio.py: a folder as the kernel's ina2xx-adc makes it."""

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import meter
from ssdrig.meter.sources import iio

INA226 = {
    **{"in_voltage0_raw": 96, "in_voltage0_scale": 0.0025, "in_voltage1_raw": 4010, "in_voltage1_scale": 1.25},
    **{"in_power2_raw": 96, "in_power2_scale": 25, "in_current3_raw": 480, "in_current3_scale": 1},
    **{"in_shunt_resistor": "0.002000000", "in_voltage0_integration_time": 0.0011},
    **{"in_voltage1_integration_time": 0.0011, "in_oversampling_ratio": 4},
}


def folder(tmp_path, name, **files):
    for file, text in {"name": name, **files}.items():
        (tmp_path / file).write_text(f"{text}\n")
    return tmp_path


def test_an_ina_has_its_budget_and_its_rail(tmp_path):
    one = iio.opened(f"{folder(tmp_path, 'ina226', **INA226)}?V=5&rate=200")
    (rail,) = one.rails()
    assert (rail.accuracy.chip, rail.accuracy.shunt_uOhm, rail.nominal_V) == ("INA226", 2000, 5)
    assert (rail.digit_V, rail.digit_A) == pytest.approx((1.25e-3, 1e-3))
    block = next(one.blocks())
    assert block.volts[0] == pytest.approx(5.0125) and block.amperes[0] == pytest.approx(0.48)
    assert one.clock().bound_ns == pytest.approx(10e6 + 2 * 2 * 4 * 1.1e6)


def test_an_offset_and_a_power_without_a_current(tmp_path):
    files = {"in_power0_raw": 100, "in_power0_scale": 10, "in_power0_offset": -20}
    one = iio.opened(f"{folder(tmp_path, 'some', **files)}?V=12")
    block = next(one.blocks())
    assert block.volts == (12.0,) and block.volts[0] * block.amperes[0] == pytest.approx(0.8)
    assert one.rails()[0].accuracy.unknown


@pytest.mark.parametrize("files", [{"in_voltage0_raw": 1}, {}])
def test_a_device_without_a_current_is_refused(tmp_path, files):
    with pytest.raises(UsageError):
        meter.check(f"iio:{folder(tmp_path, 'ads1015', **files)}")


@pytest.mark.parametrize("scale", ["x", "nan", "inf"])
def test_a_scale_that_is_no_number_is_an_error_in_words(tmp_path, scale):
    with pytest.raises(RigError):
        iio.opened(str(folder(tmp_path, "ina226", in_current0_raw=1, in_current0_scale=scale)))
