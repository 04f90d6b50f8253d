"""meter/chips.py: the host's row of a chip and the driver on the board state the same."""

import pytest
from chips import ROOT, load
from hypothesis import given
from hypothesis import strategies as st

from ssdrig.meter import chips

INA228 = load(ROOT / "firmware/ina228.py")
INA226 = load(ROOT / "firmware/ina226.py", ina228=INA228)
MODULES = {"INA228": INA228, "INA226": INA226, "INA229": load(ROOT / "firmware/ina229.py", ina228=INA228)}


@pytest.mark.parametrize("name", chips.CHIPS)
@given(
    lsb_pA=st.integers(1000, 10**9),
    shunt_uOhm=st.integers(100, 100_000),
    fine=st.booleans(),
    codes=st.tuples(*[st.integers(0, 7)] * 3),
)
def test_row_and_driver_agree(name, lsb_pA, shunt_uOhm, fine, codes):
    chip, module = chips.CHIPS[name], MODULES[name]
    times = chip.conversions_us
    row = {"current_lsb_pA": lsb_pA, "shunt_uOhm": shunt_uOhm, "fine": fine}
    row |= {key: times[code] for key, code in zip(("vbus_us", "vshunt_us", "temp_us"), codes)}
    driver = getattr(module, name)(None, row)
    assert chip.calibration(row) == driver.cal
    assert chip.conversion_us(row) == driver.conversion_us
    assert sorted(chip.sample_bytes) == sorted(n for _, n in driver.SAMPLE)
    assert chip.charge == bool(driver.EXTRA)
    assert getattr(module, "CONVERSION_us", INA228.CONVERSION_us) == times


def test_unknown_noise_is_none():
    rail = {"chip": "INA226", "adc_config": 0x4007, "shunt_uOhm": 8000}
    assert chips.expected_noise(rail) is None
    assert chips.expected_noise({**rail, "chip": "INA228", "adc_config": 0xB000}) > 0
    assert chips.expected_noise({**rail, "chip": "INA228"} | {"adc_config": None}) is None
