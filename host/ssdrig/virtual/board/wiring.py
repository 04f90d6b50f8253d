"""Which SIMULATED sensor chips are on the board: one for each row of the firmware's board.RAILS, wired as the row
says."""

import machine
import spi_block


def model(chip):
    """The class of the model: INA228 of ina228_model.py, for example."""
    return getattr(__import__(chip.lower() + "_model"), chip)


def constant(amps, volts, lead_mOhm=0):
    """What the sensor sees of a rail of constant current, and voltage at the drive."""
    volts += amps * lead_mOhm * 1e-3
    return lambda t0, t1, t2: (amps, volts)


def true_lead_mOhm(row):
    """Of the leads behind a row's sensor: what the row says of them, unless its "true_lead_mOhm" differs."""
    return row.get("true_lead_mOhm", row.get("lead_mOhm", 0))


def sensors(rows, window, t, errors):
    """Chips for `rows`, powered on at t and on their bus. The first senses `window` (supply.py); the others, which a
    row's "simulated" {"A", "V"} describes, a constant load, or its "window"; its "osc_ppm" comes on top; nobody answers
    for one that is "absent". errors: osc_ppm, offset_uV, gain_ppm, vbus_gain_ppm, noise."""
    chips = []
    for row in rows:
        load = row.get("simulated")
        sees = window if load is None else load.get("window") or constant(load["A"], load["V"], true_lead_mOhm(row))
        osc_ppm = errors[0] + (load.get("osc_ppm", 0) if load else 0)
        chip = model(row["chip"])(sees, t, row["shunt_uOhm"], osc_ppm, *errors[1:])
        chip.alarm = None
        if row["bus"] == "SPI0":
            spi_block.chips[row["cs"]] = chip
        elif not (load and load.get("absent")):
            machine.chips[row["address"]] = chip
        machine.wires[row["alert"]] = chip
        chips.append(chip)
    return chips
