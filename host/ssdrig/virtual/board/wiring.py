"""Which SIMULATED sensor chips are on the board: one for each row of the firmware's board.RAILS, wired as the row says."""

import machine
from ina226_model import INA226
from ina228_model import INA228

MODELS = {"INA226": INA226, "INA228": INA228}


def constant(amps, volts):
    """A rail of constant current and voltage."""
    return lambda t0, t1, t2: (amps, volts)


def sensors(rows, window, t, errors):
    """Chips for `rows`, powered on at t and on their bus. The first senses `window` (supply.py); the others, which a row's
    "simulated" {"A", "V"} describes, a constant load. errors: osc_ppm, offset_uV, gain_ppm, vbus_gain_ppm, noise."""
    chips = []
    for row in rows:
        load = row.get("simulated")
        sees = window if load is None else constant(load["A"], load["V"])
        chip = MODELS[row["chip"]](sees, t, row["shunt_uOhm"], *errors)
        chip.alarm = None
        machine.chips[row["address"]] = chip
        machine.wires[row["alert"]] = chip
        chips.append(chip)
    return chips
