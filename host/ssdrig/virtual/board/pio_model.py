"""A PIO state machine of the RP2040, without a clock: asm_pio assembles a program, a Core executes it, cycle by
cycle, SIMULATED.

Runs on MicroPython, and on CPython for tests. The instruction codes are those of the RP2040 data sheet, section "PIO".
Known are the instructions that the firmware uses; any other is an error, and so is what would hang or overflow on the
chip.

A core runs ahead of time until it waits for a word: its effects on pins and FIFO carry the cycle in which it
happens."""

SHIFT_LEFT, SHIFT_RIGHT = 0, 1
SYNCHRONISER = 2  # cycles until a machine sees a change of an input
MASK = 0xFFFFFFFF
QUEUE = 4  # words
_WORDS = {"pins": 0, "x": 1, "y": 2, "isr": 6, "osr": 7}
_CONDITIONS = {"not_x": 1, "x_dec": 2, "not_y": 3, "y_dec": 4, "x_not_y": 5, "pin": 6, "not_osre": 7}


class Program:
    def __init__(self, out_init, sideset_init, out_shiftdir):
        self.codes, self.labels = [], {}
        self.wrap_target, self.wrap = 0, None
        self.out_init, self.right = out_init, out_shiftdir == SHIFT_RIGHT
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
        original = dict(space)
        for final in (False, True):
            assembler = _Assembler(program, final)
            space.update(assembler.names())
            function()
        program.codes = assembler.codes
        for name in assembler.names():
            if name in original:
                space[name] = original[name]
            else:
                del space[name]
        if program.wrap is None:
            program.wrap = len(program.codes) - 1
        return program

    return assemble


class Core:
    """One state machine without its own clock: cycles count from its start. `effects` collects [cycle, kind,
    value] with kind "pins", "side" or "push"; `level(cycle)` and `next_change(cycle)` are the input that `jmp(pin)`
    looks at. `fed` is the data that DMA appends to `tx` as soon as there is room."""

    def __init__(self, program, level=None, next_change=None):
        self.program, self.codes = program, program.codes
        self.level, self.next_change = level, next_change
        self.pc = self.x = self.y = self.isr = self.osr = 0
        self.cycle = 0
        self.tx = []
        self.fed = []
        self.pulls = []  # cycle of each word taken
        self.effects = []
        self.turns = {}  # pc of a jump -> [cycle, x, number of effects] when it was last executed

    def run(self):
        """Go on until a word is missing or nothing can happen any more."""
        while self._one():
            pass

    def feed(self):
        """DMA fills the queue."""
        while self.fed and len(self.tx) < QUEUE:
            self.tx.append(self.fed.pop(0))

    def _one(self):
        code = self.codes[self.pc]
        operation, argument, operand = code >> 13, code >> 5 & 7, code & 31
        cost = 1 + (code >> 8 & (7 if self.program.side else 31))
        if self.program.side and code >> 12 & 1:
            self.effects.append([self.cycle, "side", code >> 11 & 1])
        address = self.pc
        self.pc = self.program.wrap_target if address == self.program.wrap else address + 1
        if operation == 0:
            return self._jump(address, argument, operand, cost)
        if operation == 4 and argument & 4:  # pull
            if not self.tx:
                self.pc = address
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

    def _jump(self, address, condition, to, cost):
        if condition == 2:
            if to == address:  # counts down on the spot
                self.cycle += (self.x + 1) * cost
                self.x = MASK
                return True
            self._skip(address)
            taken = self.x != 0
            self.x = (self.x - 1) & MASK
        elif condition == 4:
            if to != address:
                raise ValueError("SIMULATED PIO: y counts on the spot only")
            self.cycle += (self.y + 1) * cost
            self.y = MASK
            return True
        elif condition == 6:
            taken = self.level(self.cycle - SYNCHRONISER)
        elif condition == 0:
            taken = True
        else:
            raise ValueError("SIMULATED PIO: jump condition %d" % condition)
        if taken and to == address:
            if condition == 0:
                self.pc = address
                return False  # for ever
        if taken:
            self.pc = to
        self.cycle += cost
        return True

    def _skip(self, address):
        """Leave out turns of a loop that counts x down while its input stays as it is."""
        before = self.turns.get(address)
        if before and before[1] == self.x + 1 and before[2] == len(self.effects):
            period = self.cycle - before[0]
            change = self.next_change(self.cycle - SYNCHRONISER - period)
            n = min(self.x, (change - self.cycle) // period - 1)
            if n > 0:
                self.cycle += n * period
                self.x -= n
        self.turns[address] = [self.cycle, self.x, len(self.effects)]
