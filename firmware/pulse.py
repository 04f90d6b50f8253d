"""The gates of one rail, driven by a PIO state machine: nothing that the interpreter does can stretch a step.

Two pins: bit 0 opens the series switch, bit 1 closes the discharge switch. A step is a word: pins | (cycles - SHORTEST)
<< 2. The machine waits for its trigger, then executes the steps in its queue one after the other, and stays in the
last one until another comes. It reports its start with the rest of its count. More steps than the queue holds
come by DMA, which needs the interpreter as little.

The two pins of the side-band are driven the same way: bit 0 holds PERST# low, bit 1 isolates the rest. The pin SYNC
rises in the same cycle as the first step, for an oscilloscope, and stays high until `stop`.
"""

import registers
import rp2
from machine import Pin, freq
from micropython import const
from time import sleep_us

ON, OPEN, DISCHARGE = 0, 1, 3  # pins of a step; 2 would short the supply through the discharge switch
RELEASED, RESET, SEALED = 0, 1, 3  # pins of the side-band
MACHINES = const(4)  # of a PIO block: only these start in one cycle
SHORTEST = const(4)  # cycles of a step whose count is 0
LEAD = const(7)  # cycles from the start to the first step when the count is 0
# from the edge to the first step: two to get through the input's synchroniser, then as in the program
_EDGE_LEAD = const(8)
_PER_COUNT = const(3)  # cycles of one turn of the edge programs
_QUEUE = const(4)  # words
_TX_DREQ = const(0)  # of machine 0 of PIO0, on RP2040 and RP2350

_feeders = []  # a DMA channel for each machine that needed one


def word(pins, cycles):
    return pins | (cycles - SHORTEST) << 2


@rp2.asm_pio(
    out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), sideset_init=rp2.PIO.OUT_LOW, out_shiftdir=rp2.PIO.SHIFT_RIGHT
)
def _after():
    pull()
    mov(x, osr)
    label("wait")
    jmp(x_dec, "wait")
    mov(isr, x)
    push(noblock)
    wrap_target()
    pull()
    out(pins, 2).side(1)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


@rp2.asm_pio(
    out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), sideset_init=rp2.PIO.OUT_LOW, out_shiftdir=rp2.PIO.SHIFT_RIGHT
)
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
    out(pins, 2).side(1)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


@rp2.asm_pio(
    out_init=(rp2.PIO.OUT_LOW, rp2.PIO.OUT_LOW), sideset_init=rp2.PIO.OUT_LOW, out_shiftdir=rp2.PIO.SHIFT_RIGHT
)
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
    out(pins, 2).side(1)
    out(y, 30)
    label("hold")
    jmp(y_dec, "hold")
    wrap()


class Pulse:
    """All gates that move together: a state machine each, started in the same cycle."""

    def __init__(self, gates, sync):
        """gates: the first of two neighbouring GPIOs for each rail (and for the side-band). sync: GPIO."""
        self.per_us = freq() // 1_000_000
        self.gates = gates
        self.sync = sync
        self.mask = (1 << len(gates)) - 1
        self.machines = []
        self.edge = False

    def load(self, edge, gpio, count, steps):
        """Set everything up; nothing moves. edge: "", "rising", "falling" of gpio. count: cycles to wait, or turns of
        the edge's program until it gives up. steps: for each gate 1 to 3 words, or an array("I") of more, which must
        stay as it is."""
        self.stop()
        rp2.PIO(0).remove_program()
        program = _rising if edge == "rising" else _falling if edge else _after
        self.edge = bool(edge)
        self.count = count
        more = {"jmp_pin": Pin(gpio, Pin.IN)} if edge else {}
        for k, gate in enumerate(self.gates):
            machine = rp2.StateMachine(k, program, out_base=Pin(gate), sideset_base=Pin(self.sync), **more)
            self.machines.append(machine)
            machine.put(count)
            if len(steps[k]) < _QUEUE:
                for step in steps[k]:
                    machine.put(step)
            else:
                if len(_feeders) <= k:
                    _feeders.append(rp2.DMA())
                feeder = _feeders[k]
                control = feeder.pack_ctrl(size=2, inc_read=True, inc_write=False, treq_sel=_TX_DREQ + k)
                feeder.config(read=steps[k], write=machine, count=len(steps[k]), ctrl=control, trigger=True)

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
            cycles = self.count + LEAD
        else:
            cycles = _PER_COUNT * ((self.count - left) & 0xFFFFFFFF) + _EDGE_LEAD
        return cycles * 1000 // self.per_us

    def stepping(self):
        """Are there steps still to come?"""
        for feeder in _feeders:
            if feeder.active():
                return True
        for machine in self.machines:
            if machine.tx_fifo():
                return True
        return False

    def step(self, gate, *words):
        """This gate goes on with these steps, at most 3, now: none may be still to come."""
        machine = self.machines[self.gates.index(gate)]
        for w in words:
            machine.put(w)

    def let_go(self, gate):
        """This gate's discharge switch opens until the next `load`, whatever steps are still to come: the pull on the
        board holds its pin down."""
        Pin(gate + 1, Pin.IN)

    def stop(self, stored=()):
        """Machines off and pins let go, the discharge switches first: the pulls on the board switch the rails on.
        kept: pins that something else drives by now."""
        for feeder in _feeders:
            feeder.active(False)
        for machine in self.machines:
            machine.active(0)
        self.machines = []
        for gate in self.gates:
            if gate + 1 not in stored:
                Pin(gate + 1, Pin.IN)
        sleep_us(50)
        for gate in self.gates:
            if gate not in stored:
                Pin(gate, Pin.IN)
        Pin(self.sync, Pin.OUT, value=0)
