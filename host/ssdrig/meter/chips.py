"""The sensor chips as the host knows them: what their data sheets promise, and how their registers end."""

import math
from dataclasses import dataclass

from ssdrig.meter import ina228


@dataclass(frozen=True)
class Limits:
    """Data sheet limits (+-) of a chip. Shunt voltage in V, bus voltage in V, gain in ppm, drift per degree, per volt
    of its own supply, and of the shunt voltage per volt of the rail; and how its registers end."""

    shunt_offset_V: float
    shunt_offset_V_per_C: float
    shunt_gain_ppm: float
    shunt_V_per_supply_V: float
    shunt_V_per_rail_V: float
    shunt_step_V: float  # of the shunt voltage, where a current's last digit is finer
    bus_offset_V: float
    bus_offset_V_per_C: float
    bus_gain_ppm: float
    bus_V_per_supply_V: float
    gain_ppm_per_C: float
    full_scale: int  # of the registers of shunt voltage, CURRENT and bus voltage, which stay there beyond it
    # CURRENT = shunt voltage x unity / (calibration register), or the inverse of this ratio
    unity: int
    inverse: bool = False
    # rms of one 50 us conversion; None: not known. Where it is known ADC_CONFIG is the INA228's
    noise_50us_V: float | None = None
    bus_noise_50us_V: float | None = None


# INA228: TI SLYS021A, electrical characteristics: offset 1 uV, 10 nV/C, 0.5 uV/V of supply, 154 dB; gain 0.05 %,
# 20 ppm/C; bus 2.5 mV, 20 uV/C; its bus' supply rejection is typical, and that of the INA238 (SBOSA0): 1.1 mV/V.
# INA226: TI SBOS547B, electrical characteristics; 126 dB; supply rejections are typical.
# CURRENT: INA228 by equations 2 and 3 of its data sheet VSHUNT x 4096 / SHUNT_CAL, INA226 by equation 4
# SHUNT x CAL / 2048. Noise: 12.5 noise-free bits of 327.68 mV, 6.6 rms peak to peak; of the bus as in ina228_model.py.
_INA228 = Limits(
    *(1e-6, 10e-9, 500, 0.5e-6, 20e-9, 78.125e-9),
    *(2.5e-3, 20e-6, 500, 1.1e-3, 20),
    *(0x7FFFF, 4096),
    noise_50us_V=8.6e-6,
    bus_noise_50us_V=1.9e-3,
)
_INA226 = Limits(
    *(10e-6, 100e-9, 1000, 2.5e-6, 0.5e-6, 2.5e-6), *(7.5e-3, 40e-6, 1000, 0.5e-3, 50), *(0x7FFF, 2048), inverse=True
)
CHIPS = {"INA228": _INA228, "INA229": _INA228, "INA226": _INA226}


FRAME_MOST = (1 << 23) - 1  # of a reading in a frame


def of(rail: dict) -> Limits | None:
    """Of a rail of the hello; None for a chip whose limits are not known."""
    return CHIPS.get(rail.get("chip", ""))


def is_zero(rail: dict, amperes: float) -> bool:
    """Whether a mean current can be what the chip reads with nothing connected: within 5 times its offset limit. False
    for a chip whose limits are not known."""
    chip = of(rail)
    return chip is not None and abs(amperes) <= 5 * chip.shunt_offset_V / (rail["shunt_uOhm"] * 1e-6)


def limits_raw(rail: dict) -> tuple[int, int] | None:
    """(CURRENT, VBUS) of a rail from which on a reading, as a magnitude, may stand for any larger one: its register, or
    the shunt voltage's that CURRENT is made of, is at its end. None for a chip whose registers are not known. Of
    another meter what fits into a frame: it says itself what it cannot measure."""
    if rail.get("accuracy"):
        return FRAME_MOST, FRAME_MOST
    chip = of(rail)
    if chip is None:
        return None
    cal = rail.get("shunt_cal") or chip.unity
    at_shunt_limit = chip.full_scale * cal // chip.unity if chip.inverse else chip.full_scale * chip.unity // cal
    return min(chip.full_scale, at_shunt_limit) - 1, chip.full_scale  # 1: the chips may cut off or round


def expected_noise(rail: dict) -> float | None:
    """Typical noise (A, rms) of one current conversion of a rail as configured: it falls with the root of the
    conversion time; None for a chip whose noise is not known."""
    chip = of(rail)
    if chip is None or chip.noise_50us_V is None or not isinstance(rail.get("adc_config"), int):
        return None
    shunt_us, averages = ina228.shunt_conversion(rail["adc_config"])
    return chip.noise_50us_V * math.sqrt(50 / shunt_us / averages) / (rail["shunt_uOhm"] * 1e-6)


def coverage(rail: dict) -> float:
    """How much of the time a rail's conversions look at the current (0 to 1); the rest of each set is the voltage's
    and the temperature's. NaN where the hello does not say."""
    seen_ns = rail.get("shunt_ns")
    return min(1.0, seen_ns / rail["conversion_ns"]) if seen_ns else math.nan
