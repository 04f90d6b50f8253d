"""A rail's limits: too much current for too long, or too much voltage, and the switch opens it (switch.py, `trip`).
What a row of board.json states: "protect": {"A": 4.5, "ms": 20, "V": 5.6}. `ms` after the current has passed A the rail
is open; a voltage above V is acted upon when two readings in a row show it. `look` allocates nothing."""

from array import array
import fits
import micropython
from micropython import const

CURRENT, VOLTAGE = 1, 2  # what `look` finds
_A = const(0)  # raw limits
_V = const(1)
_PATIENCE = const(2)  # us above A
_OVER = const(3)  # the current is above A since
_SINCE = const(4)
_HIGH = const(5)  # the reading before was above V
_READING = const(6)  # of the trip, and
_STAMP = const(7)  # the stamp of its sample
_NEVER = const(0x7FFFFF)  # no reading is above


@micropython.viper
def look(state: ptr32, frame: ptr8, at: int, n: int, stamp: int) -> int:
    """n samples of the wire from frame[at:] on; stamp: of the one before, or of the first itself, if its dt is 0.
    state: of a Guard. Returns 0, CURRENT or VOLTAGE."""
    while n:
        stamp = (stamp + (int(frame[at]) | int(frame[at + 1]) << 8)) & 0x3FFFFFFF
        reading = int(frame[at + 2]) | int(frame[at + 3]) << 8 | int(frame[at + 4]) << 16
        tripped = 0
        if reading > int(state[_V]):
            if int(state[_HIGH]):
                tripped = 2
            state[_HIGH] = 1
        else:
            state[_HIGH] = 0
        current = int(frame[at + 5]) | int(frame[at + 6]) << 8 | int(frame[at + 7]) << 16
        if current & 0x800000:
            current -= 0x1000000
        if tripped == 0:
            if current <= int(state[_A]):
                state[_OVER] = 0
            elif int(state[_OVER]) == 0:
                state[_OVER] = 1
                state[_SINCE] = stamp
            elif ((stamp - int(state[_SINCE])) & 0x3FFFFFFF) >= int(state[_PATIENCE]):
                tripped = 1
                reading = current
        if tripped:
            state[_READING] = reading
            state[_STAMP] = stamp
            return tripped
        at += 8
        n -= 1
    return 0


class Guard:
    """The limits of one rail."""

    def __init__(self, row, chip, rails):
        """row: of board.RAILS, chip: its driver, rails: how many the board samples. ValueError: limits that cannot be
        kept."""
        limits = row["protect"]
        for name in ("A", "ms", "V"):
            if limits.get(name) is None or isinstance(limits[name], (str, list, dict)) or limits[name] <= 0:
                raise ValueError("rail %d: protect wants A, ms and V above 0" % row["rail"])
        self.limits = limits
        self.raw_A = int(limits["A"] * 1_000_000) * 1_000_000 // row["current_lsb_pA"]
        self.raw_V = int(limits["V"] * 1000) * 2_000_000 // int(2 * chip.VBUS_LSB_nV)
        needed_us = fits.trip_us(chip.conversion_us, rails)
        self.patience_us = int(limits["ms"]) * 1000 - needed_us
        if self.patience_us <= 0:
            raise ValueError("rail %d: protect wants %d ms or more" % (row["rail"], needed_us // 1000 + 1))
        if self.raw_A >= chip.ends or self.raw_V >= 1 << chip.BITS:
            raise ValueError("rail %d: protect asks for more than the sensor reads" % row["rail"])
        self.row, self.chip = row, chip
        self.state = array("i", [0] * 8)
        self.arm()

    def arm(self):
        """Nothing is above its limit yet."""
        state = self.state
        state[_A], state[_V], state[_PATIENCE] = self.raw_A, self.raw_V, self.patience_us
        state[_OVER] = state[_HIGH] = 0

    def disarm(self):
        """It has acted: no more until `arm`."""
        self.state[_A] = self.state[_V] = _NEVER

    def forget(self):
        """Readings were lost: what comes next is not the same stretch of time."""
        self.state[_OVER] = self.state[_HIGH] = 0

    def wary(self):
        """Was the last reading above a limit? Then the next ones must be looked at, too."""
        return self.state[_OVER] or self.state[_HIGH]

    def finding(self, what):
        """(stamp, its description: "quantity", "seen", "limit" in mA or mV, "over_us")."""
        state = self.state
        if what == VOLTAGE:
            seen = state[_READING] * int(2 * self.chip.VBUS_LSB_nV) // 2_000_000
            return state[_STAMP], {"quantity": "V", "seen_mV": seen, "limit_mV": int(self.limits["V"] * 1000)}
        seen = state[_READING] * (self.row["current_lsb_pA"] // 1000) // 1_000_000
        over = (state[_STAMP] - state[_SINCE]) & 0x3FFFFFFF
        about = {"quantity": "A", "seen_mA": seen, "limit_mA": int(self.limits["A"] * 1000), "over_us": over}
        return state[_STAMP], about
