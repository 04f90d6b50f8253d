"""What a `c` command asks (wire.py), read and checked. Nothing happens here: what cannot be executed is Refused in
words."""

from array import array
from time import ticks_add, ticks_us

import ramp
from machine import freq
from pulse import DISCHARGE, MACHINES, ON, OPEN, SEALED, SHORTEST, word

DEAD_us = 50  # series switch off -> discharge switch on, and back; a load switch needs some 10 us to let go
LATEST_us = 500_000_000
SLOWEST_us = 2_000_000  # a ramp, a train of dips
LONGEST_us = 5_000_000  # from a power signature to its cut
MOST_DIPS = 200
PULSE_uJ = 72_000  # 1000 uF at 12 V: the most that hardware/spice lets a discharge resistor take
_OF_SAMPLES = {"after_us", "seed", "crosses", "nth"}  # of a cut after samples, if wanted
_KEYS = {"token", "rails", "profile", "when", "off_ms", "residual_mV", "residual_ms"}  # and the profile's own


class Refused(Exception):
    """A command that is not executed; the text has the reason."""


def number(value, low, high, name):
    """value, if it is an integer between low and high."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Refused("%s must be an integer from %d to %d" % (name, low, high))
    return value


def draw(low, high, seed):
    """A number from low to high, uniform; the same for the same seed, and unlike its neighbours' ones. (Two rounds of
    xorshift and multiplication on 32 bits; the constants are those of C. Wellons' hash "lowbias32".)"""
    seed += 0x9E3779B9  # so that 0 is not drawn from 0
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        seed = (seed ^ seed >> shift) * factor & 0xFFFFFFFF
    return low + ((seed ^ seed >> 16) * (high - low + 1) >> 32)


def rails_of(rails, rows):
    """rails, if it is a list of different rails that have a switch. rows: {rail: row of board.SWITCH}."""
    for rail in rails if isinstance(rails, list) and rails else (None,):
        if not isinstance(rail, int) or isinstance(rail, bool) or rail not in rows or rails.count(rail) > 1:
            raise Refused("rails must be some of %s" % sorted(rows))
    return rails


def _drawn(when, name, least, most):
    """A number from when[name], which must be [a, b] between least and most, by when["seed"]."""
    span = when[name]
    if not isinstance(span, list) or len(span) != 2:
        raise Refused("%s must be [a, b]" % name)
    low = number(span[0], least, most, name)
    return draw(low, number(span[1], low, most, name), number(when["seed"], 0, 0x7FFFFFFF, "seed"))


class Float:
    """The series switch opens; what the drive draws pulls the rail down. It is also what the others begin with."""

    name = "float"
    fields = ()  # of `c`, because this profile alone, which needs them all
    discharges = False  # its discharge switch closes
    fall_us = 0  # of a fall that is timed
    back_us = 0  # power returns this long after the cut, timed by hardware; 0: by off_ms or by `o`

    def __init__(self, how, watches, rows):
        """how: the object of `c`; watches: of the rails to be cut. Refused if its fields are not as they must be."""

    def words(self, k, per_us):
        """For pulse.py, of the k-th rail."""
        return (word(OPEN, SHORTEST),)

    def tau_us(self, k):
        """R C of the k-th rail, where it is asked for."""
        return 0


class Crowbar(Float):
    """And the discharge switch closes after the dead time. Its t90_10_us gives a rail's R C: it is 2.2 of them, with a
    drive that draws little."""

    name = "crowbar"
    discharges = True

    def words(self, k, per_us):
        return (word(OPEN, DEAD_us * per_us), word(DISCHARGE, SHORTEST))


class Ramp(Float):
    """And the discharge switch closes in pulses, timed by hardware, such that a rail with the capacitance bulk_uF (one
    for each of rails) and no load falls evenly from all to nothing in fall_us: 3 to 1000 times R C of the rail, 2 s at
    most; the last part, R C / fall_us of the voltage, falls as with crowbar. It is not a regulator: it cannot hold a
    rail up, so what the drive draws makes the fall faster, in steps of 1/32 to 1/8, and another capacitance C' bends
    the line to (1 - t / fall_us)^(bulk_uF / C'). C has what became of it."""

    name = "ramp"
    discharges = True
    fields = ("fall_us", "bulk_uF")

    def __init__(self, how, watches, rows):
        fall_us, bulk_uF = how["fall_us"], how["bulk_uF"]
        if not isinstance(bulk_uF, list) or len(bulk_uF) != len(watches):
            raise Refused("bulk_uF must be a list, a capacitance for each of the rails")
        self.fall_us = number(fall_us, ramp.FASTEST * ramp.LEAST_us, SLOWEST_us, "fall_us")
        self.taus_us = []
        for w, bulk in zip(watches, bulk_uF):
            milliohms = rows[w.rail]["discharge_mOhm"]
            tau = number(bulk, 1, 20_000, "bulk_uF") * milliohms // 1000
            name = "rail %d: %d mOhm x %d uF = %d us; " % (w.rail, milliohms, bulk, tau)
            if tau < ramp.LEAST_us:
                raise Refused(name + "below %d us its pulses are too short for the switch" % ramp.LEAST_us)
            number(fall_us, ramp.FASTEST * tau, ramp.SLOWEST * tau, name + "fall_us")
            if bulk * w.mV(w.v) // 1000 * w.mV(w.v) // 2000 > PULSE_uJ:
                raise Refused(
                    name + "at %d mV that is more than the %d mJ of its resistor" % (w.mV(w.v), PULSE_uJ // 1000)
                )
            self.taus_us.append(tau)

    def words(self, k, per_us):
        return ramp.words(self.fall_us, self.taus_us[k], DEAD_us, per_us)

    def tau_us(self, k):
        return self.taus_us[k]


class Glitch(Float):
    """Off for glitch_us, timed by hardware, and on again; the discharge switch stays open, the side-band joined."""

    name = "glitch"
    fields = ("glitch_us",)

    def __init__(self, how, watches, rows):
        self.back_us = number(how["glitch_us"], 1, 1_000_000, "glitch_us")

    def words(self, k, per_us):
        return (word(OPEN, self.back_us * per_us), word(ON, SHORTEST))


class Dips(Float):
    """Glitches in a row, as of a plug that bounces: `dips` times off for down_us, on for up_us between them; timed by
    hardware, 2 s at most. The discharge switch stays open, the side-band joined."""

    name = "dips"
    fields = ("dips", "down_us", "up_us")

    def __init__(self, how, watches, rows):
        self.dips = number(how["dips"], 2, MOST_DIPS, "dips")
        self.down_us = number(how["down_us"], 1, SLOWEST_us, "down_us")
        self.up_us = number(how["up_us"], 1, SLOWEST_us, "up_us")
        self.back_us = number(
            self.dips * (self.down_us + self.up_us) - self.up_us, 1, SLOWEST_us, "us of all dips together"
        )

    def words(self, k, per_us):
        steps = array("I", [word(OPEN, self.down_us * per_us), word(ON, self.up_us * per_us)] * self.dips)
        steps[-1] = word(ON, SHORTEST)
        return steps


PROFILES = (
    Float,
    Crowbar,
    Ramp,
    Glitch,
    Dips,
)  # all that a board knows of a profile; the host's words: switch/profiles.py


def _profile(how, watches, rows):
    """The profile that `how` names, with its own fields and none of another's."""
    named = [profile for profile in PROFILES if profile.name == how.get("profile")]
    if not named:
        raise Refused("profile must be one of %s" % ", ".join([profile.name for profile in PROFILES]))
    for profile in PROFILES:
        for field in profile.fields:
            if (how.get(field) is not None) != (profile is named[0]):
                verb = "belongs" if len(profile.fields) == 1 else "belong"
                raise Refused("%s %s to %s" % (" and ".join(profile.fields), verb, profile.name))
    return named[0](how, watches, rows)


class Cut:
    """A cut that can be executed. The trigger: `edge` ("", "rising", "falling") of `gpio` within `turns` of
    pulse.py's program, or the tick `at`, or the `nth` sample that ends `need` in a row of `count_rail` above `level`,
    or below it, which must be crossed first if it `crosses`, and `delay_us` after it, or none of these: now."""

    edge = ""
    gpio = turns = need = level = count_rail = delay_us = 0
    nth = 1
    below = crosses = False
    at = None

    def __init__(self, how, rows, watches, clock, sideband):
        """how: the object of `c`. rows, watches: by rail. sideband: whether the board drives PERST# and the side-band.
        Refused if anything in it differs from wire.py."""
        unknown = set(how) - _KEYS
        for profile in PROFILES:
            unknown -= set(profile.fields)
        if unknown:
            raise Refused("unknown: %s" % ", ".join(sorted(unknown)))
        self.token = how["token"]
        self.rails = rails_of(how.get("rails"), rows)
        self.watches = [watches[rail] for rail in self.rails]
        for w in self.watches:
            if not w.sampler.running:
                raise Refused("rail %d is not being measured; the stream must run" % w.rail)
        self.profile = _profile(how, self.watches, rows)
        self.sideband = sideband and not self.profile.back_us
        if len(self.rails) + self.sideband > MACHINES:
            raise Refused("with the side-band, rails must be %d at most" % (MACHINES - 1))
        off_ms = how.get("off_ms")
        self.off_us = None if off_ms is None else number(off_ms, 1, 500_000, "off_ms") * 1000
        if self.off_us is not None and self.profile.back_us:
            raise Refused("off_ms does not belong to %s" % self.profile.name)
        if self.off_us is not None and self.off_us < self.profile.fall_us:
            raise Refused("off_ms is shorter than the fall")
        self.residual_mV = number(how.get("residual_mV", 300), 1, 2000, "residual_mV")
        self.residual_us = number(how.get("residual_ms", 500), 1, 60_000, "residual_ms") * 1000
        taken = [row["gate"] for row in rows.values()]
        self._trigger(how.get("when"), watches, clock, taken + [gate + 1 for gate in taken])

    def _trigger(self, when, watches, clock, taken):
        keys = set(when) if isinstance(when, dict) else set()
        if keys == {"now"} and when["now"] is True:
            return
        if keys == {"t_us"}:
            clock.update()
            ahead = number(when["t_us"], 0, 1 << 52, "t_us") - ((clock.wraps << 30) + clock.ticks)
            if not 2000 <= ahead <= LATEST_us:
                raise Refused("t_us is %d us ahead; possible are 2000 to %d" % (ahead, LATEST_us))
            self.at = ticks_add(clock.ticks, ahead)
        elif keys == {"random_us", "seed"}:
            self.at = ticks_add(ticks_us(), _drawn(when, "random_us", 2000, LATEST_us))
        elif keys - _OF_SAMPLES in ({"samples", "above_raw", "rail"}, {"samples", "below_raw", "rail"}):
            self.count_rail = number(when["rail"], 0, 255, "rail")
            if self.count_rail not in watches:
                raise Refused("no rail %s is measured here" % when["rail"])
            self.need = number(when["samples"], 1, 1_000_000, "samples")
            self.below = "below_raw" in keys
            named = "below_raw" if self.below else "above_raw"
            self.level = number(when[named], -(1 << 19), 1 << 19, named)
            self.crosses = when.get("crosses", False)
            if not isinstance(self.crosses, bool):
                raise Refused("crosses must be true or false")
            self.nth = number(when.get("nth", 1), 1, 1_000_000, "nth")
            if ("after_us" in keys) != ("seed" in keys):
                raise Refused("after_us and seed belong together")
            if "after_us" in keys:
                self.delay_us = _drawn(when, "after_us", 1, LONGEST_us)
        elif keys == {"edge", "gpio", "timeout_ms"}:
            if when["edge"] not in ("rising", "falling"):
                raise Refused("edge must be rising or falling")
            self.gpio = number(when["gpio"], 0, 29, "gpio")
            if self.gpio in taken:
                raise Refused("GPIO %d is a gate" % self.gpio)
            self.turns = number(when["timeout_ms"], 1, 60_000, "timeout_ms") * (freq() // 1000) // 3
            self.edge = when["edge"]
        else:
            raise Refused("when must be exactly one of now, t_us, random_us, samples, edge, with that trigger's fields")

    def steps(self, per_us):
        """The words for pulse.py, for each rail and then for the side-band, which is isolated and its PERST# low from
        the first step."""
        steps = [self.profile.words(k, per_us) for k in range(len(self.rails))]
        return steps + [(word(SEALED, SHORTEST),)] if self.sideband else steps
