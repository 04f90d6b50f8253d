"""The one file that knows this board: pins, bus, rails, shunts. Raspberry Pi Pico or Pico 2, one sensor a rail, up to
four. What differs from build to build comes from `board.json` on the board (`./ssdrig rig setup --build`): "build", its
name, "rails", "switch", "sideband", "lock_outs", "scope", "fast", "gate_supply", as the tables below; without that file
these are the board's. A rail with "low" has two ranges (ranges.py).

A row of RAILS names its chip, the class of a driver: INA228 or INA226 with "bus": "I2C0" and its "address", or INA229
with "bus": "SPI0" and the GPIO of its chip select, "cs". VSHUNT and VBUS at 50 us each, and "temp_us": None, are an
INA229's 10 000 samples/s.
"""

import json
import sys
from array import array
from binascii import hexlify

import alert_age
import fits
import i2c_fifo
import readback
import spi_lane
from machine import I2C, SPI, Pin, freq, unique_id

NAME = sys.implementation._machine
SERIAL = hexlify(unique_id()).decode()  # also the board's serial number on USB
SIMULATED = "SIMULATED" in NAME
SDA, SCL = 4, 5
# Tried one after the other until every write reads back (readback.py): the RP2 port's SCL is then 0.99 MHz
# on the RP2040, 1.0 on the RP2350, because the block adds cycles; and 0.38.
BUS_Hz = fits.BUS_Hz
BUSES = []  # as chips() found them
MISO, SCK, MOSI = 0, 2, 3
SPI_Hz = 10_000_000  # at most: the RP2040 makes 8.93 MHz of it, the RP2350 9.38

# Full scale 5.12 A: 40.96 mV range across 8 mOhm. Current LSB = 5.12 A / 2**19.
# 1052 us of each 1102 us see the current (95 %); the bus voltage hardly moves and its short conversion is enough. The
# die's temperature would take 50 us of each set and is not converted; E frames carry 0 for it.
# lead_mOhm: wire and contacts between shunt and drive, both ways (hardware/values.csv), until a calibration measures
# them: the host subtracts their loss. nominal_mV: the voltage that the drive needs; the host reports when it does not
# get it.
RAILS = (
    {
        "rail": 0,
        "name": "supply",
        "chip": "INA228",
        "bus": "I2C0",
        "address": 0x40,
        "alert": 6,
        "shunt_uOhm": 8_000,
        "shunt_tolerance_ppm": 10_000,
        "current_lsb_pA": 9_765_625,
        "fine": True,
        "nominal_mV": 5000,
        "lead_mOhm": 24,
        "vbus_us": 50,
        "vshunt_us": 1052,
        "temp_us": None,
    },
)

# Gates of the rails that the rig can cut: `gate` high opens the series switch, `gate` + 1 high closes the discharge
# switch. Both are pulled down on the board, so that an undriven pin (reset, REPL) leaves the rail on.
# discharge_mOhm: the resistance after the discharge switch (2200 at 3.3 and 5 V, 7500 at 12 V; hardware/values.csv,
# crowbar and its fuse).
SWITCH = ({"rail": 0, "gate": 10, "discharge_mOhm": 2200},)
# 18 on the four-rail board: high there holds PERST# low, high at 19 isolates the rest; both are pulled down
SIDEBAND = None
# GPIO that is high while the lock-outs are to trip: 0 on the four-rail board, 15 on the breakout's; pulled down
LOCK_OUTS = None
SYNC = 22  # rises with a cut
# ADC inputs of the scope: the rail's voltage through a divider; a count is 3.3 V / 4096 times the divider: 1_611_328 nV
# at 3.3 and 5 V (10 kOhm + 10 kOhm), 4_467_773 nV at 12 V (15 kOhm + 3.3 kOhm).
SCOPE = ({"rail": 0, "gpio": 26, "nV_per_count": 1_611_328},)
# For a rail with an amplifier across its shunt into the ADC (fast.py): {"rail", "gpio", "nA_per_count"}. With two
# separate converters (sar_ring.py) "gpio" is the SDO of the current's, "volts" of the voltage's, "nV_per_count" a
# count of that, "cs" the GPIO of their CS, whose next one is their SCLK, and "adc" their name.
FAST = None
PAIR = None  # the same, if it has two converters
# An input of the ADC after a divider of the gates' supply: {"gpio", "nV_per_count", "mV" (nominal)}
GATE_SUPPLY = None
FILE, BUILD, REVISION = (
    "board.json",
    None,
    None,
)  # BUILD: its name; REVISION: of the printed board, by the one who built
WRONG = None  # why that file is not used; then nothing is measured, because a wrong row gives wrong figures
_NEEDED = ("rail", "name", "chip", "bus", "alert", "shunt_uOhm", "shunt_tolerance_ppm", "vbus_us", "vshunt_us")


def _own():
    """The board's own file; None without one. ValueError names its error."""
    try:
        with open(FILE) as file:
            own = json.load(file)
    except OSError:
        return None
    if not isinstance(own, dict) or not isinstance(own.get("rails"), list) or not own["rails"]:
        raise ValueError("no object with rails")
    for row in own["rails"]:
        for name in _NEEDED:
            if name not in row:
                raise ValueError("a rail without " + name)
    for name in ("switch", "scope"):
        if not isinstance(own.get(name), list):
            raise ValueError("no list of " + name)
    fast = own.get("fast")
    if fast is not None:
        for name in ("rail", "gpio", "nA_per_count"):
            if type(fast.get(name) if isinstance(fast, dict) else None) is not int:
                raise ValueError("fast without " + name)
        if fast.get("volts") is not None:
            for name in ("volts", "cs", "nV_per_count"):
                if type(fast.get(name)) is not int:
                    raise ValueError("fast without " + name)
        elif not 26 <= fast["gpio"] <= 28:
            raise ValueError("fast of no rail, or no input of the ADC")
        if fast["rail"] not in [row["rail"] for row in own["rails"]]:
            raise ValueError("fast of no rail, or no input of the ADC")
    pin = own.get("lock_outs")
    if pin is not None:
        used = [SDA, SCL, 20, 21, SYNC] + [row["gpio"] for row in own["scope"]]
        for row in own["rails"]:
            used += [row["alert"], row.get("cs")]
            if row["bus"] == "SPI0":
                used += [MISO, SCK, MOSI]
        for row in own["switch"]:
            used += [row["gate"], row["gate"] + 1]
        if own.get("sideband") is not None:
            used += [own["sideband"], own["sideband"] + 1]
        if type(pin) is not int or not 0 <= pin <= 28 or pin in used:
            raise ValueError("lock_outs of no free GPIO")
    gate = own.get("gate_supply")
    if gate is not None:
        for name in ("gpio", "nV_per_count", "mV"):
            if type(gate.get(name) if isinstance(gate, dict) else None) is not int:
                raise ValueError("gate_supply without " + name)
    return own


_WRONG_FILE = (ValueError, TypeError)  # a tuple in an except clause would be built again
try:
    _settings = _own()
    if _settings:
        BUILD, REVISION, SIDEBAND = _settings.get("build"), _settings.get("revision"), _settings.get("sideband")
        LOCK_OUTS = _settings.get("lock_outs")
        FAST, GATE_SUPPLY = _settings.get("fast"), _settings.get("gate_supply")
        PAIR = FAST if FAST and FAST.get("volts") is not None else None
        RAILS, SWITCH, SCOPE = tuple(_settings["rails"]), tuple(_settings["switch"]), tuple(_settings["scope"])
except _WRONG_FILE as why:
    WRONG = "%s: %s" % (FILE, why)
del _own  # its code takes 2 KB of the heap


def _on(name):
    return [rail for rail in RAILS if rail["bus"] == name]


def _made(name):
    """(lanes, the array that they share)."""
    lanes = len(_on(name))
    own, room = (i2c_fifo if name == "I2C0" else spi_lane).ROOM
    return lanes, array("i", [0] * (own + room * lanes))


# Up to 9 KiB (I2C) or 33 KiB (SPI) in one piece: made here, because code compiled later fragments the heap
_rooms = {name: _made(name) for name in ("I2C0", "SPI0")}


def _room(name):
    """The array, for one time. A new one, if absent or RAILS have changed."""
    lanes, mem = _rooms.pop(name, (None, None))
    return mem if lanes == len(_on(name)) else _made(name)[1]


def bus(Hz):
    """The I2C bus. A transaction that gets no answer raises OSError, after 5 ms at the latest."""
    return I2C(0, sda=Pin(SDA), scl=Pin(SCL), freq=Hz, timeout=5000)


def clock_out():
    """Free a chip that was left in the middle of a read and holds SDA low. The pins are the bus's again after bus()."""
    clock = Pin(SCL, Pin.OPEN_DRAIN, value=1)
    for _ in range(9):
        clock.value(0)
        clock.value(1)


def spi():
    """The SPI bus, in the INA229's mode, its chip selects high."""
    for rail in RAILS:
        if rail["bus"] == "SPI0":
            Pin(rail["cs"], Pin.OUT, value=1)
    return SPI(0, baudrate=SPI_Hz, polarity=0, phase=1, sck=Pin(SCK), mosi=Pin(MOSI), miso=Pin(MISO))


def alert_pin(gpio):
    return Pin(gpio, Pin.IN, Pin.PULL_UP)


def chips():
    """The driver of each row of RAILS, in order."""
    lane_of = {}
    i2c = None
    on_i2c, on_spi = _on("I2C0"), _on("SPI0")
    if on_i2c:
        wires = [(rail["address"], rail["alert"]) for rail in on_i2c]
        i2c = i2c_fifo.Bus(bus, clock_out, i2c_fifo.PAGE[0], wires, BUS_Hz[0], _room("I2C0"))
        lane_of.update({rail["rail"]: lane for rail, lane in zip(on_i2c, i2c.lanes)})
    if on_spi:
        wires = [(rail["cs"], rail["alert"]) for rail in on_spi]
        lanes = spi_lane.Bus(spi, spi_lane.PAGE[0], wires, _room("SPI0")).lanes
        lane_of.update({rail["rail"]: lane for rail, lane in zip(on_spi, lanes)})
    for lane in lane_of.values():  # its interrupt waits for those of the other bus
        lane.delay_us += fits.IRQ_us * len(on_i2c if lane.bus is not i2c else on_spi)
    for rail in RAILS:
        lane_of[rail["rail"]].age(alert_age.count(rail["alert"], alert_pin(rail["alert"])))
    drivers = [_driver(rail["chip"])(lane_of[rail["rail"]], rail) for rail in RAILS]
    del BUSES[:]
    of = lambda name: [chip for chip, rail in zip(drivers, RAILS) if rail["bus"] == name]
    if i2c:
        wanted = freq() // fits.cycles(BUS_Hz[0], freq())
        BUSES.append(dict(readback.choose(i2c, of("I2C0"), BUS_Hz), bus="I2C0", asked_Hz=wanted))
    if on_spi:
        half = freq() // 2  # the PL022 divides by 2 and by a whole number
        Hz = half // -(-half // SPI_Hz)
        _, read, wrong = readback.tried(of("SPI0"), [readback.ours(chip) for chip in of("SPI0")])
        BUSES.append({"bus": "SPI0", "Hz": Hz, "asked_Hz": Hz, "read_backs": read, "errors": wrong})
    return drivers


def _driver(chip):
    """The class of the driver: INA228 of ina228.py, for example."""
    return getattr(__import__(chip.lower()), chip)
