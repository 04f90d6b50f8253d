"""`rp2` as the firmware uses it: asm_pio, and state machines that run the assembled instructions cycle by cycle,
SIMULATED.

Runs on MicroPython, and on CPython for tests. The instruction codes are those of the RP2040 data sheet, section "PIO".
Known are the instructions that the firmware uses; any other is an error, and so is what would hang or overflow on the
chip.

A machine runs ahead of time until it waits for a word: what it does to pins and FIFO carries the time at which it
happens."""

NEVER = 1 << 62
_MASK = 0xFFFFFFFF
_SYNCHRONISER = 2  # cycles until a machine sees a change of an input
_QUEUE = 4  # words
_WORDS = {"pins": 0, "x": 1, "y": 2, "isr": 6, "osr": 7}
_CONDITIONS = {"not_x": 1, "x_dec": 2, "not_y": 3, "y_dec": 4, "x_not_y": 5, "pin": 6, "not_osre": 7}


class Program:
    def __init__(self, out_init, sideset_init, out_shiftdir):
        self.codes, self.labels = [], {}
        self.wrap_target, self.wrap = 0, None
        self.out_init, self.right = out_init, out_shiftdir == PIO.SHIFT_RIGHT
        self.side = sideset_init is not None  # one pin, set by some instructions only: the upper two bits of the delay


class _Assembler:
    """The functions that a program calls; each adds an instruction. Two passes, so that labels may come later."""

    def __init__(self, program, final):
        self.program, self.final, self.codes = program, final, []

    def names(self):
        names = {
            "noblock": 0,
            "block": 1,
            "jmp": self.jmp,
            "pull": self.pull,
            "push": self.push,
            "out": self.out,
            "mov": self.mov,
        }
        names.update({"label": self.label, "wrap_target": self.wrap_target, "wrap": self.wrap})
        for name in _WORDS:
            names[name] = name
        for name in _CONDITIONS:
            names[name] = name
        return names

    def _add(self, code):
        self.codes.append(code)
        return self

    def __getitem__(self, delay):
        if delay > (7 if self.program.side else 31):
            raise ValueError("delay too large")
        self.codes[-1] |= delay << 8
        return self

    def side(self, value):
        if not self.program.side or value not in (0, 1):
            raise ValueError("no such side-set")
        self.codes[-1] |= 1 << 12 | value << 11
        return self

    def label(self, name):
        if not self.final and name in self.program.labels:
            raise ValueError("label %s is there twice" % name)
        self.program.labels[name] = len(self.codes)

    def wrap_target(self):
        self.program.wrap_target = len(self.codes)

    def wrap(self):
        self.program.wrap = len(self.codes) - 1

    def jmp(self, condition, label=None):
        if label is None:
            condition, label = None, condition
        to = self.program.labels[label] if self.final else 0
        return self._add((_CONDITIONS[condition] if condition else 0) << 5 | to)

    def pull(self, block=1):
        return self._add(0x8080 | block << 5)

    def push(self, block=1):
        return self._add(0x8000 | block << 5)

    def out(self, to, bits):
        return self._add(0x6000 | _WORDS[to] << 5 | bits & 31)

    def mov(self, to, source):
        return self._add(0xA000 | _WORDS[to] << 5 | _WORDS[source])


def asm_pio(*, out_init=None, sideset_init=None, out_shiftdir=0):
    def assemble(function):
        program = Program(out_init, sideset_init, out_shiftdir)
        space = function.__globals__
        kept = dict(space)
        for final in (False, True):
            assembler = _Assembler(program, final)
            space.update(assembler.names())
            function()
        program.codes = assembler.codes
        for name in assembler.names():
            if name in kept:
                space[name] = kept[name]
            else:
                del space[name]
        if program.wrap is None:
            program.wrap = len(program.codes) - 1
        return program

    return assemble


class Core:
    """One state machine without a clock of its own: cycles count from its start. `effects` collects [cycle, kind,
    value] with kind "pins", "side" or "push"; `level(cycle)` and `next_change(cycle)` are the input that `jmp(pin)`
    looks at. `fed` is what DMA puts behind `tx` as soon as there is room."""

    def __init__(self, program, level=None, next_change=None):
        self.program, self.codes = program, program.codes
        self.level, self.next_change = level, next_change
        self.pc = self.x = self.y = self.isr = self.osr = 0
        self.cycle = 0
        self.tx = []
        self.fed = []
        self.pulls = []  # cycle of each word taken
        self.effects = []
        self.turns = {}  # pc of a jump -> [cycle, x, number of effects] when it was last carried out

    def run(self):
        """Go on until a word is missing or nothing can happen any more."""
        while self._one():
            pass

    def feed(self):
        """DMA fills the queue."""
        while self.fed and len(self.tx) < _QUEUE:
            self.tx.append(self.fed.pop(0))

    def _one(self):
        code = self.codes[self.pc]
        operation, argument, operand = code >> 13, code >> 5 & 7, code & 31
        cost = 1 + (code >> 8 & (7 if self.program.side else 31))
        if self.program.side and code >> 12 & 1:
            self.effects.append([self.cycle, "side", code >> 11 & 1])
        here = self.pc
        self.pc = self.program.wrap_target if here == self.program.wrap else here + 1
        if operation == 0:
            return self._jump(here, argument, operand, cost)
        if operation == 4 and argument & 4:  # pull
            if not self.tx:
                self.pc = here
                return False
            self.osr = self.tx.pop(0)
            self.pulls.append(self.cycle)
            self.feed()
        elif operation == 4:
            self.effects.append([self.cycle, "push", self.isr])
            self.isr = 0
        elif operation == 3:
            bits = operand or 32
            if not self.program.right:
                raise ValueError("SIMULATED PIO: out shifts right only")
            value = self.osr & ((1 << bits) - 1)
            self.osr >>= bits
            if argument == 0:
                self.effects.append([self.cycle, "pins", value])
            elif argument == 2:
                self.y = value
            else:
                raise ValueError("SIMULATED PIO: out to %d" % argument)
        elif operation == 5:
            value = {1: self.x, 2: self.y, 6: self.isr, 7: self.osr}[operand]
            if argument == 1:
                self.x = value
            elif argument == 6:
                self.isr = value
            else:
                raise ValueError("SIMULATED PIO: mov to %d" % argument)
        else:
            raise ValueError("SIMULATED PIO: instruction %04x" % code)
        self.cycle += cost
        return True

    def _jump(self, here, condition, to, cost):
        if condition == 2:
            if to == here:  # counts down on the spot
                self.cycle += (self.x + 1) * cost
                self.x = _MASK
                return True
            self._skip(here)
            taken = self.x != 0
            self.x = (self.x - 1) & _MASK
        elif condition == 4:
            if to != here:
                raise ValueError("SIMULATED PIO: y counts on the spot only")
            self.cycle += (self.y + 1) * cost
            self.y = _MASK
            return True
        elif condition == 6:
            taken = self.level(self.cycle - _SYNCHRONISER)
        elif condition == 0:
            taken = True
        else:
            raise ValueError("SIMULATED PIO: jump condition %d" % condition)
        if taken and to == here:
            if condition == 0:
                self.pc = here
                return False  # for ever
        if taken:
            self.pc = to
        self.cycle += cost
        return True

    def _skip(self, here):
        """Leave out turns of a loop that counts x down while its input stays as it is."""
        before = self.turns.get(here)
        if before and before[1] == self.x + 1 and before[2] == len(self.effects):
            period = self.cycle - before[0]
            change = self.next_change(self.cycle - _SYNCHRONISER - period)
            n = min(self.x, (change - self.cycle) // period - 1)
            if n > 0:
                self.cycle += n * period
                self.x -= n
        self.turns[here] = [self.cycle, self.x, len(self.effects)]


class PIO:
    OUT_LOW, OUT_HIGH = 2, 3
    SHIFT_LEFT, SHIFT_RIGHT = 0, 1
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
            raise ValueError("SIMULATED DMA: what is left of an older feed would go to machine %d" % id)
        board = self.board
        board.spend(60_000)
        self.gate = out_base.id
        board.drive(self.gate, 0)
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
        self.taken = 0  # of what was pushed
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
        """Carry out what is due."""
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
        if self.tx_fifo() >= _QUEUE:
            raise ValueError("SIMULATED PIO: a put into a full FIFO would block for ever")
        self._take([value & _MASK])

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
        return min(_QUEUE, self.waiting())

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
            if machine.waiting() > _QUEUE:
                machine.running = False  # pulse.py stops it next; what it would still do with its queue is left out
            self.machine = None
            return False
        return self.feeds(machine.id)

    def feeds(self, id):
        """Has it words for that machine?"""
        return self.machine is not None and self.machine.id == id and self.machine.waiting() > _QUEUE
