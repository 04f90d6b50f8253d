"""Which SIMULATED sensor chips are on the board: one for each row of the firmware's board.RAILS, wired as the row
states."""

import bypass_model
import cosim
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
    """Resistance of the leads after a row's sensor: the row's value, unless its "true_lead_mOhm" differs."""
    return row.get("true_lead_mOhm", row.get("lead_mOhm", 0))


def open_shunt(t0, t1, t2):
    """The whole voltage of the rail is across the sensor's inputs, none at the drive."""
    return 1e3, 0.0


class Unwired:
    """An undriven line: pulled up."""

    alarm = None

    def advance(self, t):
        pass

    def alert(self):
        return 1

    def ready_at(self):
        return cosim.NEVER


def sensors(rows, window, t, errors):
    """Chips for `rows`, powered on at t and on their bus. The first senses `window` (supply.py); the others, which a
    row's "simulated" {"A", "V"} describes, a constant load, or its "window"; its "osc_ppm" comes on top; no device
    answers for one that is "absent"; its "true" is what the row does not know:
    "shunt": "open" or "shunt_uOhm", "chip", "address", "absent", "alert": "open", "vbus": a factor, "offset_uV",
    "noise", "ambient_C". errors: osc_ppm, offset_uV, gain_ppm, vbus_gain_ppm, noise."""
    chips = []
    for row in rows:
        load, true = row.get("simulated"), row.get("true", {})
        sees = window if load is None else load.get("window") or constant(load["A"], load["V"], true_lead_mOhm(row))
        if row.get("low"):
            sees = bypass_model.fitted[row["rail"]].window
        if true.get("shunt") == "open":
            sees = open_shunt
        osc_ppm = errors[0] + (load.get("osc_ppm", 0) if load else 0)
        shunt = true.get("shunt_uOhm", row["shunt_uOhm"])
        chip = model(true.get("chip", row["chip"]))(sees, t, shunt, osc_ppm, *errors[1:])
        chip.alarm = None
        chip.ambient = true.get("ambient_C", chip.ambient)
        chip.bus_gain *= true.get("vbus", 1)
        chip.offset += true.get("offset_uV", 0) * 1e-6
        chip.noise *= true.get("noise", 1)
        if row["bus"] == "SPI0":
            spi_block.chips[row["cs"]] = chip
        elif not (load and load.get("absent") or true.get("absent")):
            machine.chips[true.get("address", row["address"])] = chip
        machine.wires[row["alert"]] = Unwired() if true.get("alert") == "open" else chip
        chips.append(chip)
    return chips
