"""Replaces the firmware's bypass.py on the SIMULATED board: the same names; and the low range itself
(hardware/frontend): the resistor in the rail, the bypass that a comparator closes, and the line that reports it.
The firmware's ranges.py runs here as i2c_fifo.py does (i2c_block.py).

What the resistor takes from the drive's voltage, 25 mV at most, is not modelled. "true" of the row knows "low", a
factor of the resistor, and "state": "stuck", a line that never reports an open bypass."""

import addresses
import cosim
import i2c_block
import machine

TRIP_A = 0.051
CLOSES_ns = 700  # after the current has passed that
OPENS_ns = 1_000_000  # after the firmware has let go, or the comparator: the hold capacitor
LINE_ns = 5_000  # by which the line is late
DIODE_V = 0.7  # that the bypass' own diode lets fall at most
FEED_A = 0.41e-6  # that the threshold's resistor gives the rail past the sensor
PAGE, _ASK, _LEFT = 0x14180, 0, 1  # of nothing on the chip
COUNT_ns, MOST = 8, 3_000_000
_PUSH_X = 0x4020

fitted = {}  # rail -> LowRange


class LowRange:
    """The low range of a rail. source: the rail's Supply."""

    def __init__(self, row, source, boot):
        true = row.get("true", {})
        self.source = source
        shunt, both = row["shunt_uOhm"] * 1e-6, row["low"]["shunt_uOhm"] * 1e-6
        self.ohm = (both - shunt) * true.get("low", 1.0)
        self.shunt = shunt
        self.stuck = true.get("state") == "stuck"
        self.open = self.free = False
        self.moves = [(0, False)]  # (ns, open) from then on
        self.t = self.free_from = boot
        self.free_until = 0

    def advance(self, t):
        """What the comparator does until t."""
        while t > self.t:
            if self.open:
                at = self._trip(self.t, t)
                if at is None:
                    break
                self._move(at + CLOSES_ns, False)
                self.free, self.free_until = self.free and self.stuck, at + CLOSES_ns + LINE_ns
                self.t = max(self.t, at)
            elif self.free and self.moves[-1][0] <= t:
                at = max(self.free_from, self.moves[-1][0]) + OPENS_ns
                if at > t:
                    break
                self._move(at, True)
                self.t = max(self.t, at)
            else:
                break
        self.t = max(self.t, t)

    def _move(self, t, open):
        self.open = open
        self.moves.append((t, open))
        if len(self.moves) > 64:
            self.moves.pop(0)

    def _trip(self, begin, end):
        """When the current is first above the threshold; None: not until `end`."""
        for until, amps in self.source.steps(begin, end):
            if amps > TRIP_A:
                return begin
            begin = until
            if begin >= end:
                return None
        return None

    def level(self, t):
        """Whether the bypass is open."""
        for at, open in reversed(self.moves):
            if at <= t:
                return open
        return False

    def let_go(self, t):
        self.free, self.free_from = True, t

    def hold(self, t):
        self.advance(t)
        self.free, self.free_until = False, t
        if self.open:
            self._move(t + CLOSES_ns, False)

    def is_free(self, t):
        return self.free or t < self.free_until

    def window(self, t0, t1, t2):
        """(current that the sensor takes for one of the high range, voltage), as supply.Supply has it."""
        self.advance(t1)
        amps, volts = self.source.window(t0, t1, t2)
        cuts = [t0] + [at for at, _ in self.moves if t0 < at < t1] + [t1]
        if len(cuts) == 2 or t1 <= t0:
            return self._seen(amps, self.level(t0)), volts
        total = 0.0
        for a, b in zip(cuts, cuts[1:]):
            total += self._seen(self.source.window(a, b, b)[0], self.level(a)) * (b - a)
        return total / (t1 - t0), volts

    def _seen(self, amps, open):
        if not open:
            return amps
        amps -= FEED_A
        return amps + min(amps * self.ohm, DIODE_V) / self.shunt


class _Line:
    """A GPIO that reports the bypass, or that the firmware lets go of it."""

    alarm = None

    def __init__(self, level):
        self.alert = level

    def advance(self, t):
        pass

    def ready_at(self):
        return cosim.NEVER


class _Words:
    """The machine's words for an instruction and for the count."""

    def __init__(self, low):
        self.low, self.left = low, None

    def __setitem__(self, word, instruction):
        cosim.spend(160)
        if word != _ASK or instruction != _PUSH_X:
            raise ValueError("SIMULATED PIO2: %x to word %d" % (instruction, word))
        closed = self.low.moves[-1][0] + LINE_ns
        self.left = max(-1, MOST - (cosim.now - closed) // COUNT_ns)

    def __getitem__(self, word):
        cosim.spend(160)
        left, self.left = self.left, None
        return left


class Bypass:
    """As the firmware's."""

    def __init__(self, rail):
        self.low = low = fitted[rail["rail"]]
        release, state = rail["low"]["release"], rail["low"]["state"]
        self.bits = 1 << release, 1 << state
        page = PAGE + len(addresses.known)
        addresses.known[page << 14] = _Words(low)
        self.counter = page, _ASK, _LEFT, (COUNT_ns << 16) // 1000, MOST
        machine.wires[release], machine.wires[state] = _Line(self._is_free), _Line(self._is_open)

    def _is_free(self):
        self.low.advance(cosim.now)
        return int(self.low.is_free(cosim.now))

    def _is_open(self):
        self.low.advance(cosim.now)
        return int(self.low.level(cosim.now - LINE_ns) and not self.low.stuck)

    def is_open(self):
        cosim.spend(5_000)
        return self._is_open()

    def is_free(self):
        cosim.spend(5_000)
        return self._is_free()

    def let_go(self):
        self.low.advance(cosim.now)
        self.low.let_go(cosim.now)

    def hold(self):
        self.low.hold(cosim.now)


def install(path):
    """What `import ranges` will give: the firmware's file at `path`."""
    names = i2c_block.objects(path)
    mark = names["mark"]

    def timed(words, mem, at):
        cosim.spend(i2c_block.CALL_ns)
        mark(words, mem, at)

    names["mark"] = timed
    i2c_block.offer("ranges", names)
