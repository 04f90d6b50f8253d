"""What TI's INA226, INA228 and INA229 have in common, SIMULATED: one ADC that converts die temperature, shunt voltage
and bus voltage one after the other by the chip's own oscillator. Runs on MicroPython and on CPython.

A cycle is one conversion of each enabled channel, in this order (SLYS021A figure 7-2: T, I, V); a set is as many cycles
as are averaged. Each channel sees only its own window of the supply. Without averaging each result is in its register
as soon as its channel has been converted, so that the next cycle's current is there before the set is complete; with
averaging all appear at the end of the set (INA238 data sheet SLYS025B 6.3.4, the newest of the family; the others state
the same). Cycles are computed on access.

Errors: the oscillator's, offset and gain of the shunt, gain of the bus, white noise that falls with the root of the
conversion time. The die is at ambient plus its own heating, without delay. Times are ns of real (not
of the chip's) time."""

from random import getrandbits

NEVER = (1 << 62) - 1
AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
SHUNT, BUS, DIE = 1, 2, 4  # channels
WHO = 0x3E, 0x3F, 0xFE, 0xFF  # where one or the other of them has its IDs; elsewhere assumed to be read as 0


def normal():
    """A number with mean 0 and standard deviation 1: four dice of 256 sides."""
    r = getrandbits(32)
    return ((r & 255) + (r >> 8 & 255) + (r >> 16 & 255) + (r >> 24) - 510) * 0.006765


class Sensor:
    """A chip adds: NAME, RESET and IDS (registers), STARTUP_ns and WAKE_ns (from reset and from shutdown to the first
    conversion), HEATING_C; `watched`: results of single cycles are compared with limits; the methods _clear()
    (results), _configure(t), which calls _schedule, _shunt(volts), _bus(volts) and _die(celsius), which take in what a
    channel has measured, and _ready() at a set's end."""

    # Methods called for each sample. MicroPython looks for one among the object's attributes first, and if their table
    # is full, in all of it: found there, an INA229 takes a fifth less time.
    OFTEN = ("advance", "_convert", "_next_cycle", "_early", "set_end", "ready_at", "alert", "value")
    OFTEN += ("_shunt", "_bus", "_ready")

    def __init__(
        self,
        supply,
        t,
        shunt_uOhm=10000,
        osc_ppm=0,
        offset_uV=0,
        gain_ppm=0,
        vbus_gain_ppm=0,
        noise=1.0,
        ambient_C=25.0,
    ):
        """`supply(t0, t1, t2)` -> (mean current in A over t0..t1, mean voltage in V over t1..t2).
        osc_ppm > 0: the chip's oscillator is fast. noise scales the noise; 0: no noise."""
        self.supply = supply
        self.speed = 1 + osc_ppm * 1e-6
        self.volts_per_A = shunt_uOhm * 1e-6 * (1 + gain_ppm * 1e-6)
        self.offset = offset_uV * 1e-6
        self.bus_gain = 1 + vbus_gain_ppm * 1e-6
        self.noise = noise
        self.ambient = ambient_C
        self.power_on(t)
        for name in self.OFTEN:
            setattr(self, name, getattr(self, name))

    def power_on(self, t):
        """Power-on reset, also what a brown-out leaves."""
        self.reg = dict(self.RESET)
        self.pointer = 0
        self.channels = DIE  # any: the start-up time is instead of waking up
        self._clear()
        self._configure(t + self.STARTUP_ns)

    def _schedule(self, t, shunt_us, bus_us, die_us, averages, continuous):
        """Convert from t on. A channel whose time is 0 is not converted; all 0: shutdown."""
        if not self.channels:
            t += self.WAKE_ns
        self.channels = (SHUNT if shunt_us else 0) | (BUS if bus_us else 0) | (DIE if die_us else 0)
        self.averages = averages
        self.continuous = continuous
        self.cycle_ns = (shunt_us + bus_us + die_us) * 1000  # by the chip's own clock
        self.cycle = self.cycle_ns / self.speed
        # from the cycle's start to each channel's end; the bus ends with the cycle
        self.die_ns = round(die_us * 1000 / self.speed)
        self.shunt_ns = round((die_us + shunt_us) * 1000 / self.speed)
        self.begun = self.start = t
        self.cycles = 0  # since `begun`
        self.left = averages  # cycles of this set
        if self.channels:
            self._next_cycle()
        else:
            self.end = self.early = NEVER

    def _next_cycle(self):
        self.cycles += 1
        self.end = self.begun + int(self.cycles * self.cycle)
        self.todo = self.channels
        self.early = self._early()

    def _early(self):
        """When the first of the channels still to be converted is done, if that is seen before the cycle ends; else
        NEVER."""
        if self.end == NEVER or self.averages > 1 and not self.watched:
            return NEVER
        if self.todo & DIE and self.todo & (SHUNT | BUS):
            return self.start + self.die_ns
        return self.start + self.shunt_ns if self.todo & SHUNT and self.todo & BUS else NEVER

    def set_end(self):
        """When the set under way is complete."""
        return (
            self.end
            if self.left == 1 or self.end == NEVER
            else self.begun + int((self.cycles + self.left - 1) * self.cycle)
        )

    def advance(self, t):
        """Execute all conversions that end until t."""
        while self.end <= t:
            self._convert(self.end)
            self.left -= 1
            if not self.left:
                self._ready()
                if not self.continuous:
                    self.end = self.early = NEVER
                    self.channels = 0  # asleep
                    return
                self.left = self.averages
            self.start = self.end
            self._next_cycle()
        if self.early <= t:
            self._convert(t)
            self.early = self._early()

    def _convert(self, t):
        """Those channels of the cycle that are done at t."""
        todo = self.todo
        t0 = min(self.start + self.die_ns, self.end)  # each is rounded on its own
        t1 = min(self.start + self.shunt_ns, self.end)
        if todo & DIE:
            if t < t0:
                return
            self._die(self.ambient + self.HEATING_C)
            todo &= ~DIE
        bus = todo & BUS and t >= self.end
        if todo & SHUNT and t >= t1:
            amps, volts = self.supply(t0, t1, self.end if bus else t1)
            v = amps * self.volts_per_A + self.offset
            if self.noise:
                v += self.shunt_noise * normal()
            self._shunt(v)
            todo &= ~SHUNT
        elif bus:
            volts = self.supply(t1, t1, self.end)[1]
        if bus:
            v = volts * self.bus_gain
            if self.noise:
                v += self.bus_noise * normal()
            self._bus(v)
            todo &= ~BUS
        self.todo = todo

    def stored(self, number):
        """The value of one that is kept as it was written, or an ID."""
        value = self.reg.get(number)
        if value is None:
            value = self.IDS.get(number, 0 if number in WHO else None)
            if value is None:
                raise ValueError("SIMULATED %s: no register %02x" % (self.NAME, number))
        return value

    def keep(self, number, value, bits):
        """Write one whose other bits are reserved or read-only."""
        if value & ~bits:
            raise ValueError(
                "SIMULATED %s: register %02x is written %04x; only %04x can be" % (self.NAME, number, value, bits)
            )
        self.reg[number] = value
