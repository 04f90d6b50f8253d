"""The RP2's I2C block (Synopsys DW_apb_i2c) with its FIFOs, SIMULATED, as firmware/i2c_fifo.py uses it; and how that file, whose
functions are viper code on memory addresses, runs here: the very same source, compiled to bytecode, with addresses that lead
to this model.

Time on the bus: each START, RESTART and STOP is one clock, each byte with its acknowledge nine; STOP and the pause behind it
are one more each. The chip answers with what its register holds when the first data byte begins.
Stricter than the block: a FIFO that overflows or is read empty, a new target address while enabled, and commands that leave no
STOP at their end are errors.
"""

import cosim
import machine

TAR, DATA_CMD, RAW_INTR, CLR_ABRT, ENABLE, STATUS, RXFLR = 0x04, 0x10, 0x34, 0x54, 0x6C, 0x70, 0x78
DEPTH = 16
ACCESS_ns = 160  # a register access from viper code: some 20 cycles at 125 MHz with its address arithmetic
CALL_ns = 8000  # and a call of one of its functions from bytecode: assumed, as the interpreter's other calls
BLOCKS = {0x10011: 0, 0x10012: 1, 0x10024: 0, 0x10026: 1}  # address >> 14 -> I2C number

TIMERS = (0x40054000, 0x400B0000)

blocks = {}  # I2C number -> Block


def scl_ns(freq, sys_Hz=125_000_000):
    """Length of a clock that the RP2 port's I2C(freq=) really makes: the Pico SDK divides the period 3:2 into LCNT and HCNT;
    the block adds SPKLEN + 7 cycles to the high and 1 to the low part (DW_apb_i2c, RP2040 data sheet 4.3.14). At 1 MHz asked
    for these are 137 cycles instead of 125; an emulated RP2040's 62 us for a read of 57 clocks agree."""
    period = (sys_Hz + freq // 2) // freq
    low = period * 3 // 5
    high = period - low
    spikes = max(1, low // 16)
    return (low + 1 + high + spikes + 7) * 1_000_000_000 // sys_Hz


class Block:
    def __init__(self):
        self.alarm = cosim.add_alarm(self.work)
        self.reset(1000)

    def reset(self, bit_ns):
        self.bit_ns = bit_ns
        self.target = 0
        self.enabled = True
        self.commands = []  # (command, time at which its byte begins, time at which it ends)
        self.received = []
        self.aborted = False
        self.free_at = 0  # when the last STOP is over
        self.open = False  # between START and STOP
        self.data = []  # what the chip will send
        cosim.set_alarm(self.alarm, cosim.NEVER)

    def read(self, at):
        cosim.spend(ACCESS_ns)
        if at == RXFLR:
            return len(self.received)
        if at == STATUS:
            return 1 << 5 if cosim.now < self.free_at or self.commands else 0
        if at == RAW_INTR:
            return 1 << 6 if self.aborted else 0
        if at == TAR:
            return self.target
        if at == DATA_CMD:
            return self.received.pop(0)  # IndexError: read empty
        if at == CLR_ABRT:
            self.aborted = False
            return 0
        raise ValueError("SIMULATED I2C block: register %02x is not modelled" % at)

    def write(self, at, value):
        cosim.spend(ACCESS_ns)
        if at == DATA_CMD:
            self.push(value)
        elif at == ENABLE:
            self.enabled = bool(value)
            if not value:
                self.commands, self.received, self.aborted, self.open = [], [], False, False
                self.free_at = cosim.now
                cosim.set_alarm(self.alarm, cosim.NEVER)
        elif at == TAR:
            if self.enabled:
                raise ValueError("SIMULATED I2C block: IC_TAR is written while enabled")
            self.target = value
        else:
            raise ValueError("SIMULATED I2C block: register %02x cannot be written" % at)

    def push(self, command):
        if not self.enabled:
            raise ValueError("SIMULATED I2C block: a command while disabled")
        if self.aborted:
            return  # held empty until the abort is read
        if len(self.commands) >= DEPTH:
            raise ValueError("SIMULATED I2C block: the TX FIFO overflows")
        begin = max(self.free_at, cosim.now)
        if machine.sda_stuck:
            begin = self.free_at = cosim.NEVER  # the bus never gets free
        elif not self.open or command & 1 << 10:
            begin += 10 * self.bit_ns  # START and address
        self.open = not command & 1 << 9
        self.free_at = begin + (9 if self.open else 11) * self.bit_ns
        self.commands.append((command, begin, self.free_at))
        if len(self.commands) == 1:
            self.arm()

    def arm(self):
        """The next thing to happen: the first command's byte begins, or, once the chip has answered, ends."""
        if not self.commands:
            cosim.set_alarm(self.alarm, cosim.NEVER)
            return
        command, begin, end = self.commands[0]
        starts = command & 1 << 8 and not self.data
        cosim.set_alarm(self.alarm, begin if starts and begin >= cosim.now else end)

    def work(self):
        while self.commands:
            command, begin, end = self.commands[0]
            if begin > cosim.now:
                break
            chip = machine.chips.get(self.target)
            if chip is None or cosim.now < machine.nack_until:
                self.commands, self.data, self.open, self.aborted = [], [], False, True
                self.free_at = cosim.now
                break
            if command & 1 << 8 and not self.data:
                value, width = chip.value(chip.pointer, begin)
                self.data = [value >> 8 * k & 255 for k in range(width - 1, -1, -1)]
                machine._arm(chip)
            if end > cosim.now:
                break
            self.commands.pop(0)
            if command & 1 << 8:
                if len(self.received) >= DEPTH:
                    raise ValueError("SIMULATED I2C block: the RX FIFO overflows")
                self.received.append(self.data.pop(0))
                if command & 1 << 9:
                    self.data = []
            else:
                chip.pointer = command & 255
        self.arm()


class Registers:
    """What viper's ptr32 of an address is here."""

    def __init__(self, block):
        self.block = block

    def __getitem__(self, word):
        return self.block.read(4 * word)

    def __setitem__(self, word, value):
        self.block.write(4 * word, value)


class Timer:
    """TIMERAWL, the microseconds that ticks_us() is the low 30 bits of."""

    def __getitem__(self, word):
        if word != 0x28 >> 2:
            raise ValueError("SIMULATED timer: register %02x is not modelled" % (4 * word))
        cosim.spend(ACCESS_ns)
        return cosim.ticks() & 0xFFFFFFFF


def ptr32(x):
    if not isinstance(x, int):
        return x
    if x in TIMERS:
        return timer
    if x & 0x3FFF or x >> 14 not in BLOCKS:
        raise ValueError("SIMULATED board: there is nothing at %08x" % x)
    return registers[BLOCKS[x >> 14]]


timer = Timer()
registers = {}


def get(number):
    """The block of that number."""
    if number not in blocks:
        blocks[number] = Block()
        registers[number] = Registers(blocks[number])
    return blocks[number]


class _Module:
    pass


def bytecode(path):
    """The names of a file of viper functions, its source unchanged but for the decorators, which are taken off."""
    with open(path) as f:
        source = f.read()
    names = {"__name__": "i2c_fifo", "ptr32": ptr32, "ptr8": lambda x: x}
    exec(source.replace("@micropython.viper\n", ""), names)
    return names


def timed(function):
    """A call of it costs device time beside its register accesses. Of one or three arguments."""

    def call1(a):
        cosim.spend(CALL_ns)
        return function(a)

    def call3(a, b, c):
        cosim.spend(CALL_ns)
        return function(a, b, c)

    return {"edge": call3}.get(function.__name__, call1)


def install(path):
    """What `import i2c_fifo` will give: the firmware's file at `path`. Returns its globals."""
    import usys

    names = bytecode(path)
    for name in ("edge", "step"):
        names[name] = timed(names[name])
    module = _Module()
    for name in names:
        setattr(module, name, names[name])
    usys.modules["i2c_fifo"] = module
    return names
