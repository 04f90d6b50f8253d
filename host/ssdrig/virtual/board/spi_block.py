"""The RP2's SPI block (ARM PrimeCell PL022) with its FIFOs, and the GPIO registers of the SIO, SIMULATED, as
firmware/spi_lane.py uses them. That file runs here as i2c_fifo.py does (i2c_block.py), its addresses leading to these
models.

A byte takes eight clocks of the rate that the Pico SDK makes of the one asked for; busy lasts half a clock longer.
Stricter than the hardware: a FIFO that overflows or is read empty, clocks while no chip is selected or two are, a chip
select that rises while the block is busy or that is not an output, pins that the block does not reach, and more than 10
MHz or another mode than the chip's are errors."""

import addresses
import cosim
import i2c_block
import machine
import micropython
from micropython import const

# Words, and in them bits; of the RP2040
_DR = const(0x08 >> 2)
_SR = const(0x0C >> 2)
_RNE = const(1 << 2)
_BSY = const(1 << 4)
_GPIO_IN = const(0x04 >> 2)
_OUT_SET = const(0x14 >> 2)
_OUT_CLR = const(0x18 >> 2)
_DEPTH = const(8)
_ACCESS_ns = const(160)  # as i2c_block.py's
MAX_Hz = 10_000_000
PINS = {
    0: ((0, 4, 16, 20), (2, 6, 18, 22), (3, 7, 19, 23)),
    1: ((8, 12, 24, 28), (10, 14, 26), (11, 15, 27)),
}  # RX, SCK, TX
PAGES = {0x1000F: 0, 0x10010: 1, 0x10020: 0, 0x10022: 1}  # address >> 14 -> SPI number
SIO_PAGE = 0x34000
DRAINED_ns = 2000  # a sample that lane.drain moves: some 200 instructions, assumed

chips = {}  # GPIO of a chip select -> INA229 model
miso = None  # level that MISO is stuck at


def sck_Hz(asked, sys_Hz=125_000_000):
    """The rate that the SDK's spi_set_baudrate makes: the first even prescaler and the least divider that do not go
    above it."""
    prescale = 2
    while sys_Hz >= prescale * 256 * asked:
        prescale += 2
    divider = 256
    while divider > 1 and sys_Hz <= asked * prescale * (divider - 1):
        divider -= 1
    return sys_Hz // (prescale * divider)


class SPI:
    """machine.SPI, which only sets the block up."""

    MSB, LSB = 1, 0

    def __init__(self, id, *, baudrate, polarity, phase, sck, mosi, miso, bits=8, firstbit=MSB):
        for pin, allowed in zip((miso, sck, mosi), PINS[id]):
            if pin.id not in allowed:
                raise ValueError("SIMULATED SPI%d: GPIO %d is not a pin of it" % (id, pin.id))
        if (polarity, phase, bits, firstbit) != (0, 1, 8, SPI.MSB):
            raise ValueError("SIMULATED INA229: SPI mode 1, bytes, most significant bit first")
        freq = sck_Hz(baudrate)
        if freq > MAX_Hz:
            raise ValueError("SIMULATED INA229: SCK goes faster than 10 MHz")
        blocks[id].enable(8_000_000_000 // freq)


machine.SPI = SPI


class Block:
    def __init__(self):
        self.byte_ns = 0  # 0: off
        self.sending = []  # [byte, time at which it ends]
        self.received = []
        self.busy_until = 0

    def enable(self, byte_ns):
        self.byte_ns = byte_ns
        self.sending, self.received = [], []
        self.busy_until = cosim.now

    @micropython.native
    def work(self):
        """Execute the bytes that have ended."""
        sending = self.sending
        while sending and sending[0][1] <= cosim.now:
            byte, end = sending.pop(0)
            chip = sio.selected
            if chip is None:
                raise ValueError("SIMULATED SPI block: it clocks while no chip is selected")
            back = chip.exchange(byte, end)
            if len(self.received) >= _DEPTH:
                raise ValueError("SIMULATED SPI block: the RX FIFO overflows")
            self.received.append(back if miso is None else 255 * miso)
            if chip.count == 1 or not chip.reading:  # else the chip only shifts out
                machine._arm(chip)

    @micropython.native
    def __getitem__(self, word):
        now = cosim.now + _ACCESS_ns
        if now < cosim.event_at:
            cosim.now = now
        else:
            cosim.spend(_ACCESS_ns)
        if self.sending:
            self.work()
        if word == _SR:
            now, received = cosim.now, self.received
            if not received and now < self.busy_until:  # a waiting caller reads on until it changes
                cosim.spend((self.sending[0][1] if self.sending else self.busy_until) - now)
                self.work()
                now, received = cosim.now, self.received
            return (_RNE if received else 0) | (_BSY if now < self.busy_until else 0)
        if word == _DR:
            return self.received.pop(0)  # IndexError: read empty
        raise ValueError("SIMULATED SPI block: register %02x is not modelled" % (4 * word))

    @micropython.native
    def __setitem__(self, word, value):
        now = cosim.now + _ACCESS_ns
        if now < cosim.event_at:
            cosim.now = now
        else:
            cosim.spend(_ACCESS_ns)
        if self.sending:
            self.work()
        if word != _DR:
            raise ValueError("SIMULATED SPI block: register %02x cannot be written" % (4 * word))
        if not self.byte_ns:
            raise ValueError("SIMULATED SPI block: it is off")
        if len(self.sending) >= _DEPTH:
            raise ValueError("SIMULATED SPI block: the TX FIFO overflows")
        end = max(cosim.now, self.sending[-1][1] if self.sending else 0) + self.byte_ns
        self.sending.append([value & 255, end])
        self.busy_until = end + self.byte_ns // 16


class Sio:
    """GPIO levels: ALERT lines to read, chip selects to write."""

    def __init__(self):
        self.outputs = 0  # mask
        self.selected = None

    def output(self, gpio, value):
        """A Pin becomes an output."""
        self.outputs |= 1 << gpio
        if gpio in chips and not value:
            raise ValueError("SIMULATED board: chip select GPIO %d begins low" % gpio)

    @micropython.native
    def __getitem__(self, word):
        if word != _GPIO_IN:
            raise ValueError("SIMULATED SIO: register %02x is not modelled" % (4 * word))
        cosim.spend(_ACCESS_ns)
        levels = 0
        for gpio, chip in machine.wires.items():
            chip.advance(cosim.now)
            if cosim.now >= machine.pulled.get(gpio, 0):
                levels |= chip.alert() << gpio
        return levels

    @micropython.native
    def __setitem__(self, word, value):
        cosim.spend(_ACCESS_ns)
        if value & ~self.outputs:
            raise ValueError("SIMULATED SIO: not all of GPIO mask %x are outputs" % value)
        for gpio, chip in chips.items():
            if not value >> gpio & 1:
                continue
            if word == _OUT_CLR:
                if self.selected is not None:
                    raise ValueError("SIMULATED SPI: two chips are selected")
                self.selected = chip
                chip.select()
            elif word == _OUT_SET:
                for block in blocks.values():
                    block.work()
                    if cosim.now < block.busy_until:
                        raise ValueError("SIMULATED SPI: the chip select rises while the block is busy")
                if self.selected is chip:
                    self.selected = None
                    chip.deselect()
                    machine._arm(chip)
            else:
                raise ValueError("SIMULATED SIO: register %02x cannot be written" % (4 * word))


sio = Sio()
blocks = {0: Block(), 1: Block()}


for page, number in PAGES.items():
    addresses.known[page << 14] = blocks[number]
addresses.known[SIO_PAGE << 14] = sio


def timed(function, arguments):
    """A call costs device time besides its register accesses."""

    def call3(a, b, c):
        cosim.spend(i2c_block.CALL_ns)
        return function(a, b, c)

    def call5(a, b, c, d, e):
        cosim.spend(i2c_block.CALL_ns)
        return function(a, b, c, d, e)

    return {3: call3, 5: call5}[arguments]


def charge_drain():
    """lane.drain, which touches no registers and so runs here as it is, gets its costs."""
    import lane

    drain = lane.drain

    def timed_drain(mem, at, frame, to, last, widest, most, zeros):
        moved = drain(mem, at, frame, to, last, widest, most, zeros)
        cosim.spend(i2c_block.CALL_ns + DRAINED_ns * moved)
        return moved

    lane.drain = timed_drain


def install(path):
    """What `import spi_lane` will give: the firmware's file at `path`. Returns its globals."""
    names = i2c_block.objects(path)
    names["edge"] = timed(names["edge"], 3)
    names["exchange"] = timed(names["exchange"], 5)
    i2c_block.offer("spi_lane", names)
    return names
