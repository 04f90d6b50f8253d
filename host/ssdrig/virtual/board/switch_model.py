"""The SIMULATED gates: driven by the PIO or left open, the edges of inputs, and the rails after
(supply.py)."""

import cosim
import rp2


class Gates:
    def __init__(self, rails, edges, edge_ns_of, sideband=None, lock_outs=None):
        """rails: {gate GPIO: Supply}; edges: [[seconds since boot, gpio, level], ...] of the board's inputs; a level
        before its first edge is the other one. sideband: GPIO of PERST_LOW, the next one is SIDEBAND_OFF.
        lock_outs: GPIO that trips those of all rails."""
        self.rails, self.sideband, self.lock_outs = rails, sideband, lock_outs
        self.cycle_ns = 8 / cosim.rate  # 125 MHz of a crystal that is a little fast
        self.edges = sorted([[edge_ns_of(s), gpio, level] for s, gpio, level in edges])
        self.alarm = cosim.add_alarm(self._due)
        self.driven = {}  # gate -> machine's pins; an undriven gate is pulled low
        self.inputs = set()  # GPIOs that no machine drives, whatever it does
        rp2.StateMachine.board = self

    def now(self):
        return cosim.now

    def spend(self, ns):
        cosim.spend(ns)

    def level(self, gpio, t_ns):
        level = None
        for t, pin, value in self.edges:
            if pin == gpio and (t <= t_ns or level is None):
                level = value if t <= t_ns else not value
        return bool(level)

    def next_change(self, gpio, t_ns):
        for t, pin, _ in self.edges:
            if pin == gpio and t > t_ns:
                return t
        return rp2.NEVER

    def look(self, machine):
        """A machine's plan has changed."""
        times = [m.next_ns() for m in rp2.StateMachine.machines.values() if m.running]
        cosim.set_alarm(self.alarm, min(times) if times else cosim.NEVER)

    def _due(self):
        for machine in rp2.StateMachine.machines.values():
            if machine.running:
                machine.happen(cosim.now)
        self.look(None)

    def drive(self, gate, pins, t_ns=None):
        """Pins of a gate from t_ns (now) on: bit 0 opens the series switch, bit 1 closes the discharge switch; of the
        side-band: bit 0 holds PERST# low, bit 1 isolates."""
        t_ns = cosim.now if t_ns is None else t_ns
        for bit in (0, 1):
            if gate + bit in self.inputs:
                pins &= ~(1 << bit)
        before, self.driven[gate] = self.driven.get(gate, 0), pins
        if gate == self.sideband:
            if before & 2 and not pins & 1:
                raise ValueError("SIMULATED board: PERST# is released while CLKREQ# and the others are isolated")
            for rail in self.rails.values():
                rail.side_band(t_ns, pins & 2 == 0)
            return
        if gate not in self.rails:
            raise ValueError("SIMULATED board: no gate at GPIO %d" % gate)
        if pins == 2 or {pins, before} == {0, 3}:
            raise ValueError(
                "SIMULATED board: the discharge switch and the series switch of GPIO %d are on together" % gate
            )
        self.rails[gate].gate(t_ns, pins)

    def sync(self, gpio, level, t_ns):
        """The output for an oscilloscope; not modelled."""
        if gpio != 22 or level != 1:
            raise ValueError("SIMULATED board: GPIO %d is not a SYNC that rises" % gpio)

    def take(self, gate):
        """Both pins of a gate are a machine's now."""
        self.inputs.discard(gate)
        self.inputs.discard(gate + 1)
        self.drive(gate, 0)

    def has(self, gpio):
        """Is it a pin of a gate, of the side-band, or that of the lock-outs?"""
        return (
            gpio == self.lock_outs or gpio in self.rails or gpio - 1 in self.rails or self.sideband in (gpio, gpio - 1)
        )

    def output(self, gpio, value):
        """The pin is driven by the firmware itself, whatever a machine does."""
        if gpio == self.lock_outs:
            self._trip(bool(value))
            return
        gate, bit = (gpio, 1) if gpio in self.rails or gpio == self.sideband else (gpio - 1, 2)
        self.inputs.discard(gpio)
        self.drive(gate, self.driven.get(gate, 0) & ~bit | (bit if value else 0))

    def _trip(self, tripped):
        on = [gate for gate, pins in self.rails.items() if not self.driven.get(gate, 0) & 1]
        if tripped and on:
            raise ValueError("SIMULATED board: the lock-outs are tripped while GPIO %d leaves a rail on" % on[0])
        for rail in self.rails.values():
            rail.lock_out(cosim.now, tripped)

    def let_go(self, gpio):
        """The pin is an input now: the pulls leave the rail on, the side-band joined and the lock-outs as they are."""
        if gpio == self.lock_outs:
            self._trip(False)
            return
        self.inputs.add(gpio)
        for gate, others in ((gpio, 2), (gpio - 1, 1)):
            if self.driven.get(gate, 0) & ~others:
                self.drive(gate, self.driven[gate] & others)
