"""The RP2's I2C block (Synopsys DW_apb_i2c) with its FIFOs, SIMULATED, as firmware/i2c_fifo.py uses it; and how that
file, whose functions are viper code on memory addresses, runs here: its source without casts, as machine code that
handles objects, with addresses that lead to this model.

Time on the bus: each START, RESTART and STOP is one clock, each byte with its acknowledge nine; STOP and the pause
after it are one more each. The chip answers with what its register holds when the first data byte begins. Stricter
than the block: a FIFO that overflows or is read empty, a new target address while enabled, a read without RESTART
before it, and one of more bytes than the register has are errors.
"""

import cosim
import machine
import micropython
from addresses import known, ptr32
from micropython import const

# MicroPython's compiler puts the number of a const() in place of a name with an underscore that has its own line
_TAR = const(0x04 >> 2)
_DATA_CMD = const(0x10 >> 2)
_RAW_INTR = const(0x34 >> 2)
_CLR_ABRT = const(0x54 >> 2)
_ENABLE = const(0x6C >> 2)
_STATUS = const(0x70 >> 2)
_RXFLR = const(0x78 >> 2)
_TIMERAWL = const(0x28 >> 2)
_READ = const(1 << 8)  # of a command, as the next two
_STOP = const(1 << 9)
_RESTART = const(1 << 10)
_DEPTH = const(16)
_ACCESS_ns = const(160)  # a register access from viper code: some 20 cycles at 125 MHz with its address arithmetic
CALL_ns = 8000  # and a call of one of its functions from bytecode: assumed, as the interpreter's other calls
BLOCKS = {0x10011: 0, 0x10012: 1, 0x10024: 0, 0x10026: 1}  # address >> 14 -> I2C number

TIMERS = (0x40054000, 0x400B0000)

blocks = {}  # I2C number -> Block


def scl_ns(freq, sys_Hz=125_000_000):
    """Length of a clock that the RP2 port's I2C(freq=) really makes: the Pico SDK divides the period 3:2 into LCNT and
    HCNT; the block adds SPKLEN + 7 cycles to the high and 1 to the low part (DW_apb_i2c, RP2040 data sheet 4.3.14). At
    1 MHz asked for these are 137 cycles instead of 125; an emulated RP2040's 62 us for a read of 57 clocks agree."""
    period = (sys_Hz + freq // 2) // freq
    low = period * 3 // 5
    high = period - low
    spikes = max(1, low // 16)
    return (low + 1 + high + spikes + 7) * 1_000_000_000 // sys_Hz


class Block:
    """What viper's ptr32 of the block's address is here: its registers, by words.

    A command is in `commands` until a register access after its byte has ended. Only events with the chip happen on
    their own: where a read begins, the chip returns its register."""

    def __init__(self):
        self.alarm = cosim.add_alarm(self.settle)
        self.reset(1000)

    def reset(self, bit_ns):
        self.bit_ns = bit_ns
        self.target = 0
        self.enabled = True
        self._drop()
        self.received = []
        self.aborted = False
        self.free_at = 0  # when the last STOP is over

    def _drop(self):
        """The bytes not yet sent."""
        self.commands = []  # (command, time at which its byte begins, time at which it ends)
        self.asked = []  # times at which the chip will be asked
        self.pointer = None  # the register that was named last
        self.value = self.left = 0  # what the chip sends, and how many bytes of it are to come
        self.open = False  # between START and STOP
        cosim.set_alarm(self.alarm, cosim.NEVER)

    @micropython.native
    def __getitem__(self, word):
        now = cosim.now + _ACCESS_ns
        if now < cosim.event_at:
            cosim.now = now
        else:
            cosim.spend(_ACCESS_ns)
        if word == _DATA_CMD:
            if not self.received:
                self.settle()
            return self.received.pop(0)  # IndexError: read empty
        if self.commands:
            self.settle()
        if word == _RXFLR:
            return len(self.received)
        if word == _RAW_INTR:
            return 1 << 6 if self.aborted else 0
        if word == _STATUS:
            return 1 << 5 if self.commands or cosim.now < self.free_at else 0
        if word == _TAR:
            return self.target
        if word == _CLR_ABRT:
            self.aborted = False
            return 0
        raise ValueError("SIMULATED I2C block: register %02x is not modelled" % (4 * word))

    @micropython.native
    def __setitem__(self, word, value):
        now = cosim.now + _ACCESS_ns
        if now < cosim.event_at:
            cosim.now = now
        else:
            cosim.spend(_ACCESS_ns)
        if word == _DATA_CMD:
            self._push(value)
        elif word == _ENABLE:
            self.enabled = bool(value)
            if not value:
                self._drop()
                self.received = []
                self.aborted = False
                self.free_at = cosim.now
        elif word == _TAR:
            if self.enabled:
                raise ValueError("SIMULATED I2C block: IC_TAR is written while enabled")
            self.target = value
        else:
            raise ValueError("SIMULATED I2C block: register %02x cannot be written" % (4 * word))

    def busy(self):
        """Is it at work, or its last STOP on its way?"""
        self.settle()
        return bool(self.commands) or cosim.now < self.free_at

    @micropython.native
    def _push(self, command):
        if not self.enabled:
            raise ValueError("SIMULATED I2C block: a command while disabled")
        if self.aborted:
            return  # held empty until the abort is read
        if len(self.commands) >= _DEPTH:
            self.settle()
            if len(self.commands) >= _DEPTH:
                raise ValueError("SIMULATED I2C block: the TX FIFO overflows")
        begin, now = self.free_at, cosim.now
        if begin < now:
            begin = now
        if machine.sda_stuck:
            begin = cosim.NEVER  # the bus never gets free
        elif not self.open or command & _RESTART:
            begin += 10 * self.bit_ns  # START and address
        self.open = open = not command & _STOP
        self.free_at = end = begin + (9 if open else 11) * self.bit_ns
        self.commands.append((command, begin, end))
        if command & _RESTART:
            self.asked.append(begin)
            if len(self.asked) == 1:
                cosim.set_alarm(self.alarm, begin)
            self.alarm[2] = begin

    @micropython.native
    def settle(self):
        """Execute the events due."""
        now = cosim.now
        commands = self.commands
        while commands:
            command, begin, end = commands[0]
            if begin > now:
                return
            chip = machine.chips.get(self.target)
            asks = command & _RESTART and self.asked and self.asked[0] == begin
            if chip is None or begin < machine.nack_until and (asks or not command & _READ):
                self._drop()
                self.aborted = True
                self.free_at = now
                return
            if asks:
                if chip.pointer == self.pointer:
                    self.value, self.left = chip.value(chip.pointer, begin)
                    if machine.wrong:
                        self.value ^= machine.wrong.pop(chip.pointer, 0)
                else:  # reset since, it does not know that it is addressed, and SDA stays high
                    self.value, self.left = (1 << 40) - 1, 5
                self.asked.pop(0)
                if self.asked:
                    cosim.set_alarm(self.alarm, self.asked[0])
                    self.alarm[2] = self.asked[-1]
                else:
                    cosim.set_alarm(self.alarm, cosim.NEVER)
                machine._arm(chip)
            if end > now:
                return
            commands.pop(0)
            if command & _READ:
                if not self.left:
                    raise ValueError("SIMULATED I2C block: more is read than register %02x has" % self.pointer)
                if len(self.received) >= _DEPTH:
                    raise ValueError("SIMULATED I2C block: the RX FIFO overflows")
                self.left -= 1
                self.received.append(self.value >> 8 * self.left & 255)
                if command & _STOP:
                    self.left = 0
            else:
                chip.pointer = self.pointer = command & 255


class Timer:
    """TIMERAWL, the microseconds that ticks_us() is the low 30 bits of."""

    @micropython.native
    def __getitem__(self, word):
        if word != _TIMERAWL:
            raise ValueError("SIMULATED timer: register %02x is not modelled" % (4 * word))
        cosim.spend(_ACCESS_ns)
        return cosim.ticks() & 0xFFFFFFFF


timer = Timer()
for address in TIMERS:
    known[address] = timer


def get(number):
    """The block of that number."""
    if number not in blocks:
        blocks[number] = Block()
        for page, its in BLOCKS.items():
            if its == number:
                known[page << 14] = blocks[number]
    return blocks[number]


class _Module:
    pass


def offer(name, names):
    """`import name` will give these names."""
    import usys

    usys.modules[name] = module = _Module()
    for key in names:
        setattr(module, key, names[key])


def objects(path):
    """The names of a file of viper functions, its source unchanged except the decorators, which become those of
    machine code that handles objects (cosim says how to find a defect in it), and the casts, which are taken off: here
    all numbers are integers, and each cast would be a call."""
    with open(path) as f:
        source = f.read()
    names = {"__name__": "i2c_fifo", "ptr32": ptr32, "ptr8": lambda x: x}
    exec(source.replace("@micropython.viper", "@micropython.native").replace("int(", "("), names)
    return names


def timed(function):
    """A call costs device time besides its register accesses. Takes one or two arguments."""

    def call1(a):
        cosim.spend(CALL_ns)
        return function(a)

    def call2(a, b):
        cosim.spend(CALL_ns)
        return function(a, b)

    return {"edge": call2}.get(function.__name__, call1)


def install(path):
    """What `import i2c_fifo` will give: the firmware's file at `path`. Returns its globals."""
    import oneshot_model
    import usys

    usys.modules["oneshot"] = oneshot_model
    names = objects(path)
    for name in ("edge", "step"):
        names[name] = timed(names[name])
    offer("i2c_fifo", names)
    return names
