"""The gates of one rail, driven by a PIO state machine: nothing that the interpreter does can stretch a step.

Two pins: bit 0 opens the series switch, bit 1 closes the discharge switch. A step is a word: pins | (cycles - SHORTEST) << 2.
The machine waits for its trigger, then carries out the steps in its queue one after the other, and stays in the last one
until another comes. It says that it has begun by what was left of its count.
"""

import registers
import rp2
from machine import Pin, freq
from micropython import const
from time import sleep_us

ON, OPEN, DISCHARGE = 0, 1, 3  # pins of a step; 2 would short the supply through the discharge switch
SHORTEST = const(4)  # cycles of a step whose count is 0
_LEAD = const(7)  # cycles from the start to the first step when the count is 0
_EDGE_LEAD = const(8)  # from the edge to the first step: two to get through the input's synchroniser, then as the program says
_PER_COUNT = const(3)  # cycles of one turn of the edge programs


def word(pins, cycles):
    return pins | (cycles - SHORTEST) << 2


@rp2.asm_pio(out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), out_shiftdir=rp2.PIO.SHIFT_RIGHT)
def _after():
    pull()
    mov(x, osr)
    label("wait")
    jmp(x_dec, "wait")
    mov(isr, x)
    push(noblock)
    wrap_target()
    pull()
    out(pins, 2)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


@rp2.asm_pio(out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), out_shiftdir=rp2.PIO.SHIFT_RIGHT)
def _rising():
    pull()
    mov(x, osr)
    label("high")  # an edge is seen from the other side only
    jmp(x_dec, "still")
    label("late")
    jmp("late")
    label("still")
    jmp(pin, "high")[1]
    label("low")
    jmp(x_dec, "look")
    jmp("late")
    label("look")
    jmp(pin, "fire")
    jmp("low")
    label("fire")
    mov(isr, x)
    push(noblock)
    wrap_target()
    pull()
    out(pins, 2)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


@rp2.asm_pio(out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), out_shiftdir=rp2.PIO.SHIFT_RIGHT)
def _falling():
    pull()
    mov(x, osr)
    label("low")
    jmp(x_dec, "still")
    label("late")
    jmp("late")
    label("still")
    jmp(pin, "high")
    jmp("low")
    label("high")
    jmp(x_dec, "look")
    jmp("late")
    label("look")
    jmp(pin, "high")[1]
    mov(isr, x)
    push(noblock)
    wrap_target()
    pull()
    out(pins, 2)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


class Pulse:
    """All rails that are cut together: a state machine each, started in the same cycle."""

    def __init__(self, gates):
        """gates: the first of two neighbouring GPIOs for each rail."""
        self.per_us = freq() // 1_000_000
        self.gates = gates
        self.mask = (1 << len(gates)) - 1
        self.machines = []
        self.edge = False

    def load(self, edge, gpio, count, steps):
        """Set everything up; nothing moves. edge: "", "rising", "falling" of gpio. count: cycles to wait, or turns of
        the edge's program until it gives up. At most 3 steps, which all rails share."""
        self.stop()
        rp2.PIO(0).remove_program()
        program = _rising if edge == "rising" else _falling if edge else _after
        self.edge = bool(edge)
        self.count = count
        more = {"jmp_pin": Pin(gpio, Pin.IN)} if edge else {}
        for k, gate in enumerate(self.gates):
            machine = rp2.StateMachine(k, program, out_base=Pin(gate), **more)
            machine.put(count)
            for step in steps:
                machine.put(step)
            self.machines.append(machine)

    def start(self, at=-1):
        """registers.start. Nothing is allocated."""
        return registers.start(self.mask, at)

    def fired(self):
        """Has the trigger come?"""
        return self.machines[0].rx_fifo() > 0

    def after_start_ns(self):
        """Once fired: ns from the start to the edge at the gates. 8 ns of resolution; with an edge 24 ns."""
        left = self.machines[0].get()
        if not self.edge:
            cycles = self.count + _LEAD
        else:
            cycles = _PER_COUNT * ((self.count - left) & 0xFFFFFFFF) + _EDGE_LEAD
        return cycles * 1000 // self.per_us

    def step(self, *words):
        """Go on with these steps now."""
        for machine in self.machines:
            for w in words:
                machine.put(w)

    def stop(self):
        """Machines off and pins let go, the discharge switches first: the pulls on the board switch the rails on."""
        for machine in self.machines:
            machine.active(0)
        self.machines = []
        for gate in self.gates:
            Pin(gate + 1, Pin.IN)
        sleep_us(50)
        for gate in self.gates:
            Pin(gate, Pin.IN)
