"""What a rig's self-test looks at, and within which limits a sound rig is: each check a figure with its limits, and
what the user does when it is outside. Pure."""

import math
from typing import NamedTuple

import numpy as np

from ssdrig.base.words import digits
from ssdrig.meter import chips, fast, nominal
from ssdrig.meter.pico.certificate import Check, stated

RATE_PART = 0.02  # a sensor's oscillator is within 1 %
# of the crystal 30, of the host's own clock before NTP 70, and half of this of the line through the pings: no rate that
# is less well known is looked at
CRYSTAL_ppm = 200.0
NOISY, QUIET = 2.0, 0.2  # times the chip's typical noise
DIE_C = -10.0, 75.0
SCOPE_PART = 0.05  # 1 % of each of two resistors, 2 % of the board's own supply, the ADC
# a lead of 12 V, within 5 %, less 0.2 to 0.4 V of D3: against 11.7 V. Above 8 V its lock-out lets the rail on
LEAD_V, LEAD_PART = 12.0, 0.06
GATE_SUPPLY_PART = 0.03  # set point and feedback resistors (hardware/values.csv, gate_supply_tolerance)
OPEN_PART = 0.5  # of its voltage that may be left of a rail 20 ms after its switch has opened
# from the gate's pin to 90 %: 15 of the switch, 0.105 of 20 kOhm (the scope's divider) x 18 nF (switch, cable), and two
# rounds of the scope, which sees each of two inputs every 4 us
DELAY_us = 60.0
BY_ITSELF_us = 20.0  # a rail without load falls in 60 us or more from 90 to 10 %: its divider's 20 kOhm, some nF
LOCKED_PART = 0.1  # of its voltage, that a rail whose lock-out is tripped may have
CLOSED_us = 60.0  # after the dead time; by then a crowbar has emptied a rail that nothing else is connected to,
CROWBAR_PART = 0.1  # to this part at most,
TELLS_PART = 0.15  # if without a crowbar more than this would be left
HOLD_PART = 0.9  # of its voltage, that another rail keeps
LOAD_PART = 0.1  # by which resistor, shunt and sensor may differ together
LEAST_LOAD_A = 0.02
PATH_mOhm = 150.0  # of supply, fuse, switch and wires, before the sensor
SCATTER = 4.0  # standard errors of a mean: one sound figure in 16 000 is further off
SEEN_us = 1000.0  # of a picture, that others are looked at
RISE_PARTS = 0.1, 0.9  # of its voltage, between which a rail's rise is timed


TOO_FEW = "too few samples"
TOO_BUSY = "the host was too busy, so its pings came back late"


def figure(
    name: str,
    rail: int | None,
    value: float | None,
    unit: str,
    low: float | None,
    high: float | None,
    do: str,
    bound: float = 0.0,
    cause: str = TOO_FEW,
) -> Check:
    """A check of a number; None or NaN is outside.

    bound: the value is right within it; it fails only where no value within the bound is inside the limits, and is not
        judged where some are not, or where the bound is wider than the limits
    cause: why it is not known better"""
    if value is None or not math.isfinite(value):
        return Check(name, rail, None, unit, low, high, False, "", do)
    value, bound = float(value), abs(float(bound))
    lowest, highest = (-math.inf if low is None else low), (math.inf if high is None else high)
    inside = lowest <= value <= highest
    if not inside and (value + bound < lowest or value - bound > highest):
        return Check(name, rail, value, unit, low, high, False, "", do, bound)
    if inside and 2 * bound <= highest - lowest:
        return Check(name, rail, value, unit, low, high, True, "", do, bound)
    why = f"{stated(value, bound, unit)} is not known well enough: {cause}"
    return Check(name, rail, value, unit, low, high, None, why, "", bound if math.isfinite(bound) else 0.0)


def fact(name: str, rail: int | None, ok: bool, seen: str, do: str) -> Check:
    """A check of a yes or no."""
    return Check(name, rail, None, "", None, None, ok, seen, do)


def skipped(name: str, rail: int | None, why: str) -> Check:
    return Check(name, rail, None, "", None, None, None, why, "")


# ---- what the board reports of itself


def of_hello(hello: dict) -> list[Check]:
    """Buses and dies, as the board tried them when it started."""
    out = []
    for bus in hello.get("buses") or ():
        do = "is each sensor the chip that board.json states? shorten the bus, see its pull-ups and ground"
        out.append(
            figure(f"{bus['bus']} registers read back wrong of {bus['read_backs']}", None, bus["errors"], "", 0, 0, do)
        )
        least = bus["asked_Hz"] * 0.95
        out.append(figure(f"{bus['bus']} clock", None, bus["Hz"] / 1e3, "kHz", least / 1e3, None, do))
    for rail in hello["rails"]:
        die_mC = rail.get("die_mC")
        if die_mC is None:
            out.append(skipped("sensor's temperature", rail["rail"], "its sensor has none, or did not answer"))
            continue
        do = "feel the sensor; its supply, or the chip itself, is not sound"
        out.append(figure("sensor's temperature", rail["rail"], die_mC / 1000, "C", *DIE_C, do))
    return out


def of_clock(clock: dict) -> Check:
    """The board's crystal against the host's clock, if the pings determine it."""
    name = "board's crystal"
    if clock["error_ppm"] is None or clock["error_ppm"] > CRYSTAL_ppm / 2:
        return skipped(name, None, "too few pings or a busy host: rate unknown")
    do = "another board; see whether the host keeps its own time (NTP)"
    error_ppm = clock["error_ppm"]
    return figure(name, None, clock["rate_ppm"], "ppm", -CRYSTAL_ppm, CRYSTAL_ppm, do, error_ppm, TOO_BUSY)


# ---- what a rail measures with nothing connected


def of_rail(rail: dict, row: dict) -> list[Check]:
    """rail: of the hello; row: of info.row_of(), with "conversions_per_s" and its bound."""
    n, chip, samples = rail["rail"], chips.of(rail), row["samples"]
    low, high = ((1 + sign * RATE_PART) * row["rate_nominal_per_s"] for sign in (-1, 1))
    do = "the sensor's supply and ALERT line; another sensor"
    bound = row["conversions_bound_per_s"]
    out = [figure("conversions", n, row["conversions_per_s"], "1/s", low, high, do, bound, TOO_BUSY)]
    of = nominal.nominal_V(rail)
    if of is None:
        out.append(skipped("supply", n, "board.json lacks the rail's voltage"))
    else:
        low, high = of * (1 - nominal.TOLERANCE), of * (1 + nominal.TOLERANCE)
        do = "the supply, its fuse, the gate supply, the switch, VBUS of the sensor; are two rails exchanged?"
        bound = SCATTER * row["V_sd"] / math.sqrt(samples)
        if chip is not None:
            bound += chip.bus_offset_V + 1e-6 * chip.bus_gain_ppm * abs(row["V_mean"])
        out.append(figure("voltage", n, row["V_mean"], "V", low, high, do, bound))
    if chip is None:
        return [*out, skipped("zero current", n, "a chip whose limits are not known")]
    most_mA = 5e3 * chip.shunt_offset_V / (rail["shunt_uOhm"] * 1e-6)
    do = "nothing may be connected at the drive's connector; clean the board; does a part leak downstream of the shunt?"
    bound = 1e3 * SCATTER * row["I_sd"] / math.sqrt(samples)
    out.append(figure("zero current", n, 1e3 * row["I_mean"], "mA", -most_mA, most_mA, do, bound))
    if row["I_typical"]:
        do = "IN+ and IN- at the shunt, their capacitor, ground and supply of the sensor"
        times = row["I_sd"] / row["I_typical"]
        bound = SCATTER * times / math.sqrt(2 * max(1, samples - 1))
        out.append(figure("noise, times the chip's own", n, times, "", QUIET, NOISY, do, bound))
    else:
        out.append(skipped("noise", n, "the chip's own is not known"))
    return out


def of_answers(rail: int, logs: list[str]) -> Check:
    """Whether a sensor that answered at first always did. logs: the board's messages so far"""
    recoveries = [line for line in logs if line.startswith(f"rail {rail}:") and "configured again" in line]
    do = "a cold joint at SDA, SCL, its ground or its supply, or a plug: move each wire while `rig info` runs"
    times = len(recoveries)
    return fact("sensor answers each time", rail, not times, f"{times} times lost and found again", do)


def of_low(rail: int, share: float) -> Check:
    """The low range of a rail without a load. share: of its samples."""
    do = "its bypass: the lines `release` and `state` of board.json, the comparator's supply; see the board's messages"
    return figure("samples in the low range", rail, 100 * share, "%", 50.0, None, do)


def of_fast(figures: dict) -> Check:
    """The fast current channel's mean less the sensor's; found: of info.of_fast()."""
    off, most_mA = figures["I_mean"], 1e3 * fast.apart_A(figures["I_sensor"])
    off_mA = None if off is None else 1e3 * (off - figures["I_sensor"])
    do = "its amplifier: there, on this shunt, its OUT at the GPIO that board.json states?"
    return figure("fast channel less sensor", figures["rail"], off_mA, "mA", -most_mA, most_mA, do)


def of_scope(rail: int, scope_V: float, sensor_V: float, nominal_V: float | None) -> Check:
    """The ADC's voltage against the sensor's, of one rail, in %."""
    name = "scope against sensor"
    if max(scope_V, sensor_V) < nominal.NOTHING * (nominal_V or 3.3):
        return skipped(name, rail, "the rail has no voltage")
    off = 100 * (scope_V / sensor_V - 1) if sensor_V > 0.1 else None
    do = "the divider of the scope, VBUS of the sensor, the board's 3.3 V (the ADC's reference)"
    return figure(name, rail, off, "%", -100 * SCOPE_PART, 100 * SCOPE_PART, do)


def of_gate_supply(volts: float, wanted_V: float) -> Check:
    """The gates' supply by the ADC. One that sags takes the FETs of the rails into their linear range."""
    part = GATE_SUPPLY_PART if wanted_V > LEAD_V else LEAD_PART
    off, most = 100 * (volts / wanted_V - 1), 100 * (SCOPE_PART + part)
    do = "the boost module or the 12 V that feeds the gates, its PTC, the divider at the ADC"
    return figure("gate supply", None, off, "%", -most, most, do)


# ---- how it is switched


class Fall(NamedTuple):
    """A rail's voltage around a cut, by the scope: t in us from the gate's edge on, V."""

    t_us: np.ndarray
    volts: np.ndarray

    @property
    def before_V(self) -> float:
        return float(np.median(self.volts[self.t_us < -2]))

    def part_at(self, t_us: float) -> float:
        """Share of the earlier value that is left at t: the mean of three samples."""
        k = int(np.argmin(np.abs(self.t_us - t_us)))
        return float(self.volts[max(0, k - 1) : k + 2].mean()) / self.before_V

    def below_us(self, part: float) -> float | None:
        """When it is first below this part, interpolated; None: not in the picture."""
        level = part * self.before_V
        (at,) = np.nonzero((self.t_us > 0) & (self.volts < level))
        if not len(at):
            return None
        k = int(at[0])
        v0, v1 = self.volts[k - 1], self.volts[k]
        share = (v0 - level) / (v0 - v1) if v0 > level else 1.0
        return float(self.t_us[k - 1] + share * (self.t_us[k] - self.t_us[k - 1]))

    def rise_us(self, from_us: float) -> tuple[float, float] | None:
        """When it first passes 10 and 90 % of its earlier value after this time; None: not in the picture."""
        after = self.t_us >= from_us
        t_us, volts, out = self.t_us[after], self.volts[after], []
        for part in RISE_PARTS:
            level = part * self.before_V
            (at,) = np.nonzero(volts > level)
            if not len(at):
                return None
            k = int(at[0])
            share = (level - volts[k - 1]) / (volts[k] - volts[k - 1]) if k else 0.0
            out.append(float(t_us[k] - (1 - share) * (t_us[k] - t_us[k - 1]) if k else t_us[0]))
        return out[0], out[1]

    def least_part(self) -> float:
        """What another rail's cut leaves of this one, within SEEN_us."""
        near = (self.t_us > 0) & (self.t_us < SEEN_us)
        smooth = np.convolve(self.volts[near], np.ones(5) / 5, "valid")
        return float(smooth.min()) / self.before_V if len(smooth) else 1.0


def fall_of(picture: dict, fired_us: int) -> Fall:
    """picture: as of switch/pico.py, for one input."""
    volts = np.asarray(picture["volts"])
    return Fall(picture["t0_us"] - fired_us + 1e-3 * picture["dt_ns"] * np.arange(len(volts)), volts)


def of_opening(rail: int, residual_part: float, fall: Fall | None) -> list[Check]:
    """The series switch alone: it opens, soon, and nothing else pulls the rail down. residual_part: share of the
    earlier value, that the sensor saw at least."""
    do = "the series switch and its gates: short, or not driven; is another rail's gate on this pin?"
    out = [figure("left when its switch is open", rail, 100 * residual_part, "%", None, 100 * OPEN_PART, do)]
    if fall is None:
        return [*out, skipped("switch's delay", rail, "the scope does not see this rail")]
    first, last = fall.below_us(0.9), fall.below_us(0.1)
    out.append(
        figure("switch's delay", rail, first, "us", 0.0, DELAY_us, do + "; is another rail on this input of the scope?")
    )
    do = "the crowbar: its switch is short, and heats its resistor whenever the rail is on"
    if first is None:
        return [*out, skipped("fall by itself", rail, "it does not fall")]
    lasted = (fall.t_us[-1] if last is None else last) - first
    return [*out, figure("fall by itself, 90 to 10 %", rail, lasted, "us", BY_ITSELF_us, None, do)]


def of_rise(rail: int, fall: Fall, on_us: float, limits_ms: tuple[float, float] | None) -> Check:
    """The soft start: how long a rail without load takes from 10 to 90 % of its voltage.

    on_us: when the gates were let go
    limits_ms: of the circuit; None: not known"""
    name = "rise"
    if limits_ms is None:
        return skipped(name, rail, "no circuit of hardware/ is for this voltage: its gate resistor is not known")
    passed_us = fall.rise_us(on_us)
    step_ms = 1e-3 * float(fall.t_us[1] - fall.t_us[0])
    rise_ms = None if passed_us is None else 1e-3 * (passed_us[1] - passed_us[0])
    do = "fast: C02 missing or open, R03; slow or none: C02, R03, the gate supply"
    return figure(name, rail, rise_ms, "ms", *limits_ms, do, step_ms, "the scope's samples are too far apart")


def of_lock_out(rail: int, volts: float | None, nominal_V: float, back_V: float | None) -> Check:
    """What a rail rose to with its lock-out tripped. None: not seen

    back_V: after the test. A rail that lost its supply is at 0 V in the test too"""
    name = "left with its lock-out tripped"
    if volts is None:
        return fact(name, rail, False, "not seen: too few readings in the test", "wires and plug of the rail's sensor")
    if back_V is None or back_V < HOLD_PART * nominal_V:
        after = "no reading" if back_V is None else f"{digits(back_V, 3)} V"
        return fact(name, rail, False, f"not seen: {after} after the test", "the supply, the gate supply, the sensor")
    do = "U02, R19, R20, R21, Q05: a wrong supply reaches the drive; if it is every rail: Q2, R27 to R29,"
    do += " or a prototyping board, which has no lock-out: lock_outs null in board.json"
    return figure(name, rail, 100 * volts / nominal_V, "%", None, 100 * LOCKED_PART, do)


def of_crowbar(rail: int, dead_us: float, floating: Fall, fall: Fall) -> Check:
    """The discharge switch: the rail is empty soon after it has closed. floating: the same rail's without it."""
    name, at_us = "left after its crowbar closed", dead_us + CLOSED_us
    alone = floating.part_at(at_us)
    if alone < TELLS_PART:
        return skipped(name, rail, f"without it {100 * alone:.0f} % are left, too little for a verdict")
    do = "the discharge switch, its resistor and fuse, DISCHARGE's line, the interlock"
    return figure(name, rail, 100 * fall.part_at(at_us), "%", None, 100 * CROWBAR_PART, do)


def of_other(rail: int, cut: int, fall: Fall) -> Check:
    """A rail that was not cut."""
    do = f"gates, sensors or inputs of the scope of rails {rail} and {cut}: are they exchanged?"
    return figure(f"kept while rail {cut} is cut", rail, 100 * fall.least_part(), "%", 100 * HOLD_PART, None, do)


# ---- with a resistor


def of_load(rail: dict, ohm: float, bare: dict, loaded: dict) -> list[Check]:
    """bare, loaded: rows of info.row_of(), without and with the resistor at the rail's connector."""
    n, amperes = rail["rail"], loaded["I_mean"]
    do = "is the resistor on this rail? the shunt, IN+ and IN-"
    out = [figure("current through the resistor", n, amperes, "A", LEAST_LOAD_A, None, do)]
    if amperes < LEAST_LOAD_A or loaded["clipped"]:
        return out
    times = loaded["V_mean"] / ohm / amperes
    milliohm = rail["shunt_uOhm"] / 1000 / times
    do = f"the shunt is about {digits(milliohm, 3)} mOhm: which build is it? rig setup --build; or another resistor"
    out.append(figure("resistor's current, times what the rig reads", n, times, "", 1 - LOAD_PART, 1 + LOAD_PART, do))
    path = 1e3 * (bare["V_mean"] - loaded["V_mean"]) / amperes - loaded["lead_mOhm"]
    do = "supply, fuse, switch, and the ground wire: all of the current returns through it"
    return [*out, figure("resistance before the sensor", n, path, "mOhm", -10.0, PATH_mOhm, do)]
