"""The scope: the voltage of one rail or several, 500 kS/s together, around a cut, by the ADC (adc_ring.py), sent in W
frames when there is room. A round is a sample of each input. A rail with two separate converters (sar_ring.py) has
voltage and current, 250 kS/s each."""

import adc_ring
import wire
from clock64 import put32
from cut import Refused, number
from micropython import const
from time import ticks_diff, ticks_us

_PIECE = const(100)  # samples in a W frame
_ROOM = const(1500)  # bytes of the link's queue that the samples of the sensors keep
PAIR_RATE = 250_000
NO_RAIL = const(255)  # in W frames of the gates' supply
RATES = (500_000, 250_000, 100_000, 10_000, 2_000)
MARGIN = const(512)  # samples that the ring may run on before it is stopped
LONGEST_us = 500_000_000
_IDLE = const(0)
_RUNNING = const(1)
_SENDING = const(2)


class Scope:
    """Idle, running (the ADC fills its ring), or sending the picture of one event."""

    def __init__(self, rows, link, clock, pair=None, gate_supply=None):
        """rows: board.SCOPE. pair, gate_supply: board.PAIR, board.GATE_SUPPLY."""
        self.rails = {row["gpio"]: row["rail"] for row in rows}
        if gate_supply:
            self.rails[gate_supply["gpio"]] = NO_RAIL
        self.pair = pair
        if pair:
            self.rails[pair["volts"]] = self.rails[pair["gpio"]] = pair["rail"]
        self.rows = rows
        self.link, self.clock = link, clock
        self.state = _IDLE
        self.frame = bytearray(wire.W_FIRST + 2 * _PIECE + 4)

    def describe(self):
        """For H."""
        return [dict(row, rates=RATES, samples=adc_ring.SIZE - MARGIN) for row in self.rows]

    def now_us(self):
        self.clock.update()
        return (self.clock.wraps << 30) + self.clock.ticks

    def command(self, how):
        """Execute `s`. Refused."""
        if not isinstance(how, dict) or set(how) != {"gpio", "rate", "before", "after", "trigger"}:
            raise Refused("a JSON object with gpio, rate, before, after, trigger was expected")
        gpios = how["gpio"] if isinstance(how["gpio"], list) and how["gpio"] else [how["gpio"]]
        for gpio in gpios:
            if number(gpio, 0, 29, "gpio") not in self.rails or gpios.count(gpio) > 1:
                raise Refused("gpio must be one of %s, or a list of some" % list(self.rails))
        if number(how["rate"], RATES[-1], RATES[0], "rate") not in RATES or how["trigger"] not in ("cut", "now"):
            raise Refused("rate must be one of %s, trigger cut or now" % list(RATES))
        own = [gpio for gpio in gpios if self.pair and gpio in (self.pair["volts"], self.pair["gpio"])]
        if own and (len(own) < len(gpios) or how["rate"] != PAIR_RATE * len(gpios)):
            raise Refused("the two converters are asked alone, at %d each" % PAIR_RATE)
        self.inputs = 1 if own else len(gpios)  # in a ring
        most = (adc_ring.SIZE - MARGIN) // self.inputs
        before = number(how["before"], 0, adc_ring.SIZE, "before")
        after = number(how["after"], 1, adc_ring.SIZE, "after")
        if before + after > most:
            raise Refused("before and after are %d samples at most" % most)
        self.release()
        self.before, self.after, self.gpios = before, after, sorted(gpios)
        self.step_ns = 1_000_000_000 // how["rate"]
        self.dt_ns = self.step_ns * len(gpios)  # of a round
        if own:
            import sar_ring

            self.source = sar_ring
            self.started = self.stop_at = sar_ring.start(self.pair)
        else:
            self.source = adc_ring
            self.started = self.stop_at = adc_ring.start(self.gpios, how["rate"])
        self.start_us = self.now_us() - ticks_diff(self.clock.ticks, self.started)
        self.waiting = how["trigger"] == "cut"
        self.state = _RUNNING
        if not self.waiting:
            self.event(self.start_us + before * self.dt_ns // 1000)

    def event(self, t_us):
        """The event to capture happens at t_us (64 bit), a moment ago or in a moment."""
        if self.state != _RUNNING:
            return
        self.waiting = False
        self.index = (t_us - self.start_us) * 1000 // self.dt_ns
        self.stop_at = self.clock.ticks + (t_us - self.now_us()) + (self.after + 8) * self.dt_ns // 1000 & 0x3FFFFFFF

    def release(self):
        """Stop and forget."""
        if self.state == _RUNNING:
            self.source.stop()
        self.state = _IDLE

    def turn(self):
        """Call on every pass of the main loop. Allocates only once there is something to send."""
        if self.state == _IDLE:
            return
        now = ticks_us()
        if self.state == _SENDING:
            if self.link.room() > _ROOM:
                self._send()
        elif self.waiting:
            if ticks_diff(now, self.started) > LONGEST_us:
                self.release()
        elif ticks_diff(now, self.stop_at) >= 0:
            n, inputs = self.source.stop(), self.inputs
            self.at = self.first = max(0, self.index - self.before, (n - adc_ring.SIZE + inputs - 1) // inputs)
            self.end = min(n // inputs, self.index + self.after)
            self.channel = 0
            self.state = _SENDING

    def _send(self):
        """One piece; the inputs one after the other."""
        n = min(_PIECE, self.end - self.at)
        if n <= 0:
            self.at = self.first
            self.channel += 1
            if self.channel == len(self.gpios):
                self.state = _IDLE
            return
        frame, ring = self.frame, self.source.ring
        inputs, gpio = self.inputs, self.gpios[self.channel]
        sample = self.at * inputs + (self.channel if inputs > 1 else 0)
        if self.pair and gpio == self.pair["volts"]:
            ring = self.source.volts
        frame[0] = wire.WAVEFORM
        frame[wire.W_RAIL], frame[wire.W_CHANNEL] = self.rails[gpio], gpio
        put32(frame, wire.W_NUMBER, self.at - self.first)
        t_us = self.start_us + (sample + self.source.FIRST) * self.step_ns * len(self.gpios) // inputs // 1000
        put32(frame, wire.W_T0, t_us & 0x3FFFFFFF | (t_us >> 30 & 3) << 30)
        put32(frame, wire.W_T0 + 4, t_us >> 32)
        put32(frame, wire.W_STEP, self.dt_ns)
        frame[wire.W_N] = n
        for k in range(n):
            from_ = 2 * ((sample + k * inputs) % adc_ring.SIZE)
            frame[wire.W_FIRST + 2 * k] = ring[from_]
            frame[wire.W_FIRST + 2 * k + 1] = ring[from_ + 1]
        if self.link.put(frame, wire.W_FIRST + 2 * n):
            self.at += n
