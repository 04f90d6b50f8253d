"""`machine` as the firmware uses it on a Raspberry Pi Pico, SIMULATED: I2C bus with INA228 chips, pins, idle, reset.

Stricter than hardware: an address nobody has, a pin that is not wired, or a bus frequency above 1 MHz is an error.
"""

import cosim
import usys

CALL_ns = 22_000  # the interpreter's share of an I2C call, beside the bus
IRQ_ns = 20_000  # from an edge to the first line of a hard interrupt handler
EIO, ETIMEDOUT = 5, 110

chips = {}  # address -> INA228 model
wires = {}  # GPIO of an ALERT line -> chip
scl_gpio = None
nack_until = 0
sda_stuck = False  # a chip holds SDA low until it has seen nine clocks


class Pin:
    IN, OUT, OPEN_DRAIN = 0, 1, 2
    PULL_UP, PULL_DOWN = 1, 2
    IRQ_RISING, IRQ_FALLING = 8, 4

    def __init__(self, id, mode=-1, pull=-1, *, value=None):
        self.id = id
        self.chip = wires.get(id)
        self.clocks = 0
        self.handler = None

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
        self.chip.alarm = cosim.add_alarm(self._edge)
        _arm(self.chip)

    def _edge(self):
        chip = self.chip
        chip.advance(cosim.now)
        if not chip.alert():
            cosim.spend(IRQ_ns)
            self.handler(self)
        _arm(chip)


def _arm(chip):
    if chip.alarm is not None:
        cosim.set_alarm(chip.alarm, chip.ready_at())


class I2C:
    def __init__(self, id, *, scl, sda, freq=400_000, timeout=50_000):
        global scl_gpio
        if freq > 1_000_000:
            raise ValueError("the RP2 port goes to 1 MHz")
        scl_gpio = scl.id
        self.bit_ns = 1_000_000_000 // freq
        self.timeout_ns = timeout * 1000

    def _chip(self, address):
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


def idle():
    """Wait for an interrupt or input, at most 1 ms, as the RP2 port does."""
    cosim.spend(10_000)
    if not cosim.input_ready():
        cosim.idle(1_000_000)


def reset():
    usys.exit(0)
