"""`rp2` as the firmware uses it: asm_pio, and state machines and DMA channels at the board's time and pins, SIMULATED.

Runs on MicroPython, and on CPython for tests. What would hang or overflow on the chip is an error. A machine's core
(pio_model.py) runs ahead; its effects on pins and FIFO happen here when the board's time has come to it."""

import pio_model
from pio_model import MASK, QUEUE, Core

NEVER = (1 << 62) - 1
asm_pio = pio_model.asm_pio
button = False  # BOOTSEL is held


def bootsel_button():
    return int(button)


class PIO:
    OUT_LOW, OUT_HIGH = 2, 3
    SHIFT_LEFT, SHIFT_RIGHT = pio_model.SHIFT_LEFT, pio_model.SHIFT_RIGHT
    loaded = []

    def __init__(self, id):
        if id != 0:
            raise ValueError("SIMULATED board: PIO 0 only")

    def remove_program(self, program=None):
        if any(machine.running for machine in StateMachine.machines.values()):
            raise ValueError("SIMULATED board: a program in use was removed")
        del PIO.loaded[:]


class StateMachine:
    machines = {}  # id -> the machine
    board = None  # switch_model.Gates: its clock, its pins

    def __init__(self, id, program, *, out_base=None, sideset_base=None, jmp_pin=None):
        if program not in PIO.loaded:
            PIO.loaded.append(program)
            if sum([len(p.codes) for p in PIO.loaded]) > 32:
                raise OSError(12)
        if any([channel.feeds(id) for channel in DMA.channels]):
            raise ValueError("SIMULATED DMA: the rest of an older feed would go to machine %d" % id)
        board = self.board
        board.spend(60_000)
        self.gate = out_base.id
        board.take(self.gate)
        if (sideset_base is not None) != program.side:
            raise ValueError("SIMULATED PIO: a program with side-set needs a base, and no other")
        self.sync = sideset_base.id if program.side else None
        gpio = jmp_pin.id if jmp_pin else None
        self.core = Core(
            program,
            lambda cycle: board.level(gpio, self._ns(cycle)),
            lambda cycle: self._cycle(board.next_change(gpio, self._ns(cycle))),
        )
        self.start_ns = None
        self.running = False
        self.done = 0  # effects that have happened
        self.taken = 0  # of the words pushed
        self.loaded = 0  # words ever put or fed
        self.id = id
        self.machines[id] = self

    def _ns(self, cycle):
        return self.start_ns + int(cycle * self.board.cycle_ns)

    def _cycle(self, ns):
        return NEVER if ns >= NEVER else int((ns - self.start_ns) / self.board.cycle_ns)

    def start(self, t_ns):
        self.start_ns, self.running = t_ns, True
        self._run()

    def _run(self):
        self.core.run()
        self.board.look(self)

    def next_ns(self):
        """When it will change its pins next."""
        effects = self.core.effects
        for k in range(self.done, len(effects)):
            if effects[k][1] != "push":
                return self._ns(effects[k][0])
        return NEVER

    def happen(self, t_ns):
        """Execute the events due."""
        effects = self.core.effects
        while self.done < len(effects) and self._ns(effects[self.done][0]) <= t_ns:
            cycle, kind, value = effects[self.done]
            if kind == "pins":
                self.board.drive(self.gate, value, self._ns(cycle + 1))
            elif kind == "side":
                self.board.sync(self.sync, value, self._ns(cycle + 1))
            self.done += 1

    def put(self, value):
        board = self.board
        board.spend(10_000)
        if self.tx_fifo() >= QUEUE:
            raise ValueError("SIMULATED PIO: a put into a full FIFO would block for ever")
        self._take([value & MASK])

    def _take(self, words):
        self.loaded += len(words)
        self.core.fed += words
        self.core.feed()
        if self.running:
            self.core.cycle = max(self.core.cycle, self._cycle(self.board.now()))
            self._run()

    def waiting(self):
        """Words that the machine has not taken by now, those that DMA still has included."""
        taken = 0
        if self.start_ns is not None:
            now, pulls = self.board.now(), self.core.pulls
            taken = len(pulls)
            while taken and self._ns(pulls[taken - 1]) > now:
                taken -= 1
        return self.loaded - taken

    def tx_fifo(self):
        self.board.spend(5_000)
        return min(QUEUE, self.waiting())

    def _pushed(self):
        t = self.board.now()
        return [e[2] for e in self.core.effects if e[1] == "push" and self._ns(e[0]) <= t]

    def rx_fifo(self):
        self.board.spend(5_000)
        return len(self._pushed()) - self.taken

    def get(self):
        value = self._pushed()[self.taken]
        self.taken += 1
        return value

    def active(self, value):
        self.board.spend(5_000)
        if value:
            raise ValueError("SIMULATED board: machines are started by the clock, see registers.py")
        self.happen(self.board.now())
        self.running = False
        del self.core.pulls[self.loaded - self.waiting() :]
        self.board.look(self)


class DMA:
    """A channel that feeds a state machine's queue with words of an array."""

    channels = []

    def __init__(self):
        self.machine = None
        self.channels.append(self)

    def pack_ctrl(self, **fields):
        return fields

    def config(self, *, read, write, count, ctrl, trigger):
        if (
            ctrl != {"size": 2, "inc_read": True, "inc_write": False, "treq_sel": write.id}
            or count != len(read)
            or not trigger
        ):
            raise ValueError(
                "SIMULATED DMA: only words from memory into the queue of PIO 0's machine that asks for them"
            )
        write.board.spend(50_000)
        self.machine = write
        write._take(list(read))

    def active(self, value=None):
        machine = self.machine
        if machine is None:
            return False
        machine.board.spend(5_000)
        if value is False:
            if machine.waiting() > QUEUE:
                machine.running = False  # pulse.py stops it next; the rest of its queue is dropped
            self.machine = None
            return False
        return self.feeds(machine.id)

    def feeds(self, id):
        """Has it words for that machine?"""
        return self.machine is not None and self.machine.id == id and self.machine.waiting() > QUEUE
