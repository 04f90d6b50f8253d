"""The sensor chips as the host knows them: what their data sheets promise, and how their registers end."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ssdrig.meter import ina228


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the host knows of a chip: data sheet limits (+-), and how its registers work. Gains are in ppm; drifts per
    degree, per volt of the chip's own supply, and of the shunt voltage per volt of the rail."""

    shunt_offset_V: float
    shunt_offset_V_per_C: float
    shunt_gain_ppm: float
    shunt_V_per_supply_V: float
    shunt_V_per_rail_V: float
    shunt_step_V: float  # last digit of the shunt voltage's register, in its finest range
    bus_offset_V: float
    bus_offset_V_per_C: float
    bus_gain_ppm: float
    bus_V_per_supply_V: float
    gain_ppm_per_C: float
    full_scale: int  # of the registers of shunt voltage, CURRENT and bus voltage, which stay there beyond it
    # CURRENT = shunt voltage x unity / (calibration register), or the inverse of this ratio
    unity: int
    inverse: bool = False
    coarse: int = 1  # last digit of the shunt voltage in the coarse range, of a row that is not "fine"; in shunt_step_V
    conversions_us: tuple[int, ...]  # that the chip can be set to
    sample_bytes: tuple[int, ...]  # of the registers that its driver reads for each sample
    die: bool = False  # "temp_us": a conversion of the die's temperature can come before each sample
    charge: bool = False  # it sums up charge and energy
    # rms of one 50 us conversion, and (us of one conversion of the shunt voltage, how many make a sample) by what the
    # hello has as "adc_config"; None: not known
    noise_50us_V: float | None = None
    bus_noise_50us_V: float | None = None
    shunt_conversion: Callable[[int], tuple[int, int]] | None = None

    def calibration(self, row: Mapping) -> int:
        """What the driver writes into the calibration register for a row of the board's rails."""
        step_fV = round(self.shunt_step_V * 1e15) * (1 if row.get("fine") else self.coarse)
        lsb_fV = row["current_lsb_pA"] * row["shunt_uOhm"]  # of CURRENT across the shunt; 1e-3 fV
        if self.inverse:
            return 1000 * self.unity * step_fV // lsb_fV
        return (2 * self.unity * lsb_fV + 1000 * step_fV) // (2000 * step_fV)

    def conversion_us(self, row: Mapping) -> int:
        """How long all conversions of one sample take, by a row of the board's rails."""
        return row["vbus_us"] + row["vshunt_us"] + (row.get("temp_us") or 0 if self.die else 0)


# TI SLYS021A, electrical characteristics: 154 dB; the bus' supply rejection is typical, and that of the INA238
# (SBOSA0). CURRENT by equations 2 and 3: VSHUNT x 4096 / SHUNT_CAL. Noise: 12.5 noise-free bits of 327.68 mV, 6.6 rms
# peak to peak; of the bus as in ina228_model.py.
_INA228 = Limits(
    shunt_offset_V=1e-6,
    shunt_offset_V_per_C=10e-9,
    shunt_gain_ppm=500,
    shunt_V_per_supply_V=0.5e-6,
    shunt_V_per_rail_V=20e-9,
    shunt_step_V=78.125e-9,
    bus_offset_V=2.5e-3,
    bus_offset_V_per_C=20e-6,
    bus_gain_ppm=500,
    bus_V_per_supply_V=1.1e-3,
    gain_ppm_per_C=20,
    full_scale=0x7FFFF,
    unity=4096,
    coarse=4,
    conversions_us=ina228.CONVERSION_us,
    sample_bytes=tuple(n for _, n in ina228.INA228.SAMPLE),
    die=True,
    charge=True,
    noise_50us_V=8.6e-6,
    bus_noise_50us_V=1.9e-3,
    shunt_conversion=ina228.shunt_conversion,
)
CHIPS = {
    "INA228": _INA228,
    "INA229": _INA228,
    # TI SBOS547B, electrical characteristics; 126 dB; supply rejections are typical. CURRENT by equation 4:
    # SHUNT x CAL / 2048
    "INA226": Limits(
        shunt_offset_V=10e-6,
        shunt_offset_V_per_C=100e-9,
        shunt_gain_ppm=1000,
        shunt_V_per_supply_V=2.5e-6,
        shunt_V_per_rail_V=0.5e-6,
        shunt_step_V=2.5e-6,
        bus_offset_V=7.5e-3,
        bus_offset_V_per_C=40e-6,
        bus_gain_ppm=1000,
        bus_V_per_supply_V=0.5e-3,
        gain_ppm_per_C=50,
        full_scale=0x7FFF,
        unity=2048,
        inverse=True,
        conversions_us=(140, 204, 332, 588, 1100, 2116, 4156, 8244),
        sample_bytes=(2, 2, 2),
    ),
}


FRAME_MOST = (1 << 23) - 1  # of a reading in a frame


def of(rail: dict) -> Limits | None:
    """The limits of a rail of the hello; None for a chip whose limits are not known."""
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
    if chip is None or chip.noise_50us_V is None or chip.shunt_conversion is None:
        return None
    if not isinstance(rail.get("adc_config"), int):
        return None
    shunt_us, averages = chip.shunt_conversion(rail["adc_config"])
    return chip.noise_50us_V * math.sqrt(50 / shunt_us / averages) / (rail["shunt_uOhm"] * 1e-6)


def coverage(rail: dict) -> float:
    """How much of the time a rail's conversions look at the current (0 to 1); the rest of each set is the voltage's
    and the temperature's. NaN where the hello has none."""
    seen_ns = rail.get("shunt_ns")
    return min(1.0, seen_ns / rail["conversion_ns"]) if seen_ns else math.nan
