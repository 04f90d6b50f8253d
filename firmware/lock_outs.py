"""The test of the lock-outs, on a board with a pin that trips them all: every rail is opened and falls, the lock-outs
are tripped, and the gates are released; a rail that comes on has no working lock-out. switch.py has the states,
wire.py the command. A board without such a pin does not load this."""

from time import sleep_us, ticks_diff, ticks_us

from cut import DEAD_us
from machine import Pin

EMPTYING, TESTING = "emptying", "testing"
TEST_us = 20_000  # a soft start takes 2 to 5 ms; longer where conversions are slow
LEAST_READINGS = 3  # of a rail in the test
EMPTY_mV, EMPTY_us = 300, 10_000
EMPTYING_us = 5_000_000


class LockOuts:
    """The lock-outs of all rails of a switch."""

    def __init__(self, gpio, switch):
        self.gpio, self.switch = gpio, switch

    def test(self, how):
        """Open every rail, and then see that none comes on while the lock-outs are tripped."""
        switch = self.switch
        switch.begin_test(how)
        self.since = ticks_us()
        for w in switch.cutting:
            w.begin(w.raw(EMPTY_mV), EMPTY_us)
            w.crowbar.begin(False, 0, 0)
            w.edge(self.since)
        switch.state = EMPTYING

    def counts(self, stamp):
        """Is a reading with this stamp one of the present state? Nothing is allocated."""
        return ticks_diff(stamp, self.since) > 0 or self.switch.state is EMPTYING

    def turn(self):
        switch = self.switch
        passed_us = ticks_diff(ticks_us(), self.since)
        if switch.state is TESTING:
            if passed_us >= self.test_us:
                switch.tested = [{"rail": w.rail, "mV": self._highest_mV(w)} for w in switch.cutting]
                switch.end_test(True, "")
            return
        high = [w for w in switch.cutting if not w.safe]
        if not high:
            self._trip()
        elif passed_us > EMPTYING_us:
            high = ["rail %d is at %d mV" % (w.rail, w.mV(w.v)) for w in high]
            switch.end_test(False, "not tested: %s" % ", ".join(high))

    def _trip(self):
        """Every rail is empty: release the gates with the lock-outs tripped."""
        switch = self.switch
        Pin(self.gpio, Pin.OUT, value=1)
        sleep_us(DEAD_us)
        for w in switch.cutting:
            w.highest = w.readings = 0
        switch.release_gates()
        self.since = ticks_us()
        self.test_us = max([TEST_us] + [2 * LEAST_READINGS * w.conversion_us for w in switch.cutting])
        switch.state = TESTING

    def _highest_mV(self, w):
        """The highest reading in the test; None below half of the expected readings: a lost sensor shows nothing."""
        return w.mV(w.highest) if w.readings >= max(LEAST_READINGS, self.test_us // w.conversion_us // 2) else None

    def over(self):
        """The lock-outs as they were."""
        Pin(self.gpio, Pin.IN)
