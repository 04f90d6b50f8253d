"""`machine` as the firmware uses it on a Raspberry Pi Pico, SIMULATED: I2C bus with sensor chips, pins, idle, reset.

Stricter than hardware: an unassigned address, a pin that is not wired, or a bus frequency above 1 MHz is an error.
"""

import cosim
import micropython
import usys

CALL_ns = 22_000  # the interpreter's share of an I2C call, besides the bus
IRQ_ns = 20_000  # from an edge to the first line of a hard interrupt handler
EIO, ETIMEDOUT = 5, 110

chips = {}  # address -> INA228 model
wires = {}  # GPIO of an ALERT line -> chip
edges = {}  # GPIO -> the Pin whose falling edge interrupts
fell = {}  # GPIO of an ALERT line -> when it went low last
deaf = {}  # GPIO -> how many of its next edges are lost
pulled = {}  # GPIO -> until when something else pulls its line low
interrupts = []  # what interrupts, each with its `handler`; the first one's runs
scl_gpio = None
nack_until = 0
max_Hz = 10_000_000  # that the bus bears
wrong = {}  # register -> bits that are turned over in its next read on I2C
sda_stuck = False  # a chip holds SDA low until it has seen nine clocks
gates = None  # switch_model.Gates


class Pin:
    IN, OUT, OPEN_DRAIN = 0, 1, 2
    PULL_UP, PULL_DOWN = 1, 2
    IRQ_RISING, IRQ_FALLING = 8, 4

    def __init__(self, id, mode=-1, pull=-1, *, value=None):
        self.id = id
        self.chip = wires.get(id)
        self.clocks = 0
        self.handler = None
        if mode == Pin.OUT and gates and gates.has(id):
            gates.output(id, value)
        elif mode == Pin.OUT:
            spi_block.sio.output(id, value)
        if gates and mode == Pin.IN:
            gates.let_go(id)

    def value(self, x=None):
        global sda_stuck
        cosim.spend(5000)
        if x is None:
            if self.chip is None:
                raise ValueError("SIMULATED board: nothing is wired to GPIO %d" % self.id)
            self.chip.advance(cosim.now)
            return self.chip.alert()
        if self.id == scl_gpio and x:
            self.clocks += 1
            if self.clocks >= 9:
                sda_stuck = False

    __call__ = value

    def irq(self, handler, trigger, *, hard=False):
        if self.chip is None or trigger != Pin.IRQ_FALLING:
            raise ValueError("SIMULATED board: only the falling edge of a wired ALERT line interrupts")
        self.handler = handler
        edges[self.id] = self
        self.chip.alarm = cosim.add_alarm(self._edge)
        _arm(self.chip)

    def _edge(self):
        chip = self.chip
        chip.advance(cosim.now)
        if not chip.alert():
            fell[self.id] = cosim.now
            if deaf.get(self.id):
                deaf[self.id] -= 1
            else:
                interrupt(self)
        _arm(chip)


def interrupt(source):
    """Run a source's handler, or after the one that runs: all have the same priority. A source that waits already is
    not run twice: its edge is a latch."""
    cosim.woken = True
    if source in interrupts[1:]:
        return
    interrupts.append(source)
    if len(interrupts) == 1:
        while interrupts:
            cosim.spend(IRQ_ns)
            call(interrupts[0])
            interrupts.pop(0)


def call(source):
    source.handler(source)


@micropython.native
def _arm(chip):
    if chip.alarm is not None:
        cosim.set_alarm(chip.alarm, chip.ready_at())


class I2C:
    def __init__(self, id, *, scl, sda, freq=400_000, timeout=50_000):
        global scl_gpio
        scl_gpio = scl.id
        self.bit_ns = i2c_block.scl_ns(freq)
        if self.bit_ns < 1000:
            raise ValueError("SIMULATED board: SCL goes faster than 1 MHz, fast-mode plus")
        self.timeout_ns = timeout * 1000
        self.block = i2c_block.get(id)
        self.block.reset(self.bit_ns)

    def _chip(self, address):
        if self.block.busy():
            raise ValueError("SIMULATED board: machine.I2C is used while the block works through its FIFO")
        self.block.enabled = True
        self.block.target = address
        if sda_stuck:
            cosim.spend(self.timeout_ns)
            raise OSError(ETIMEDOUT)
        cosim.spend(CALL_ns + 10 * self.bit_ns)
        if cosim.now < nack_until or address not in chips:
            raise OSError(EIO)
        return chips[address]

    def readfrom_mem_into(self, address, register, buf):
        chip = self._chip(address)
        cosim.spend(20 * self.bit_ns)
        chip.pointer = register
        self._read(chip, buf)

    def readfrom_into(self, address, buf):
        self._read(self._chip(address), buf)

    def _read(self, chip, buf):
        value, width = chip.value(chip.pointer, cosim.now)
        value ^= wrong.pop(chip.pointer, 0)
        if self.bit_ns * max_Hz < 1_000_000_000:
            value ^= 1  # a pull-up that is too weak
        n = len(buf)
        if n > width:
            raise ValueError("SIMULATED INA228: register %02x has %d bytes, %d were read" % (chip.pointer, width, n))
        value >>= 8 * (width - n)
        while n:
            n -= 1
            buf[n] = value & 255
            value >>= 8
        _arm(chip)
        cosim.spend(9 * self.bit_ns * len(buf) + self.bit_ns)

    def writeto_mem(self, address, register, buf):
        chip = self._chip(address)
        chip.pointer = register
        cosim.spend((10 + 9 * len(buf)) * self.bit_ns)
        if len(buf) != 2:
            raise ValueError("SIMULATED INA228: registers are written as 2 bytes, not %d" % len(buf))
        chip.write(register, buf[0] << 8 | buf[1], cosim.now)
        _arm(chip)


import i2c_block  # last: these need each other
import spi_block  # it puts its SPI here, whichever of them is imported first


def idle():
    """Wait for an interrupt or input, at most 1 ms, as the RP2 port does."""
    cosim.spend(10_000)
    cosim.idle(1_000_000)


def reset():
    usys.exit(0)


def disable_irq():
    """No device time passes until `enable_irq`: nothing to hold back."""


def enable_irq(state):
    pass


def freq():
    return 125_000_000


_bite = None  # the watchdog's alarm


def watchdog(ms):
    """It resets the board this long from now; 0: it does not."""
    global _bite
    if _bite is None:
        _bite = cosim.add_alarm(reset)
    cosim.set_alarm(_bite, cosim.now + ms * 1_000_000 if ms else cosim.NEVER)


class WDT:
    def __init__(self, *, timeout):
        if timeout > 8388:
            raise ValueError("the RP2040's watchdog counts to 8388 ms")
        self.timeout = timeout
        self.feed()

    def feed(self):
        cosim.spend(2000)
        watchdog(self.timeout)


def unique_id():
    """Eight bytes, as on the RP2 port, where they are the flash chip's."""
    return b"\xe6SIMULAT"
