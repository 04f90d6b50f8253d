"""The fast current channel (firmware/fast.py): what it is made of."""

GAIN = 50  # V/V of the amplifier (hardware/values.csv)
REFERENCE_V, STEPS = 3.3, 4096  # of the ADC


def nA_per_count(shunt_uOhm: int) -> int:
    """Current of one count of the ADC behind the amplifier across that shunt."""
    return round(REFERENCE_V / STEPS / GAIN / (shunt_uOhm * 1e-6) * 1e9)
