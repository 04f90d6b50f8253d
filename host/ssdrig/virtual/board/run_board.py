"""Powers on the SIMULATED board. Started by cable.py, which documents the settings; they come first on standard input
(length u32, JSON), because the interpreter takes no argument above 255 bytes.

Puts the stand-ins before MicroPython's own modules, wires a sensor to the drive's supply, and runs the firmware's
own main.py, which imports only modules of a real board.
"""

import gc
import json

import usys

config = json.loads(usys.stdin.buffer.read(int.from_bytes(usys.stdin.buffer.read(4), "little")))
usys.path[:] = [config["firmware"], config["stand_ins"], ".frozen"]

import adc_ring_model
import alert_age_model
import bypass_model
import cosim
import feed_reader
import i2c_block
import machine
import os
import registers_model
import sar_ring_model
import repl
import rp2
import select
import spi_block
import wiring
from broken import Surging, supply
from supply import Load
from switch_model import Gates

SCOPE_12V_nV = 4_467_773  # a count of the 12 V divider, hardware/README.md


class _Stdin:
    def __init__(self):
        self.buffer = self

    def ready(self):
        return select.POLLIN if cosim.input_ready() else 0

    def readinto(self, buf):
        cosim.spend(8000)
        for k in range(len(buf)):
            buf[k] = cosim.input_byte()
        return len(buf)


class _Stdout:
    def __init__(self):
        self.buffer = self

    def ready(self):
        return select.POLLOUT if cosim.output_ready() else 0

    def write(self, buf, start=0, n=None):
        cosim.spend(8000)
        return cosim.output(buf, start, len(buf) if n is None else n)


class _Sys:
    def __init__(self):
        self.stdin = _Stdin()
        self.stdout = _Stdout()
        self.stderr = usys.stderr
        self.platform = "rp2"
        self.implementation = _Implementation()
        self.print_exception = usys.print_exception


class _Gc:
    """What the firmware uses of gc. A collection goes through the stand-ins too, and there is memory enough: at the
    board's threshold collections would take a quarter of a start."""

    def __init__(self):
        self.collect = gc.collect

    def threshold(self, n):
        pass


class _Implementation:
    name = "micropython"
    version = tuple(config["micropython"]) + ("",)
    _machine = "SIMULATED Raspberry Pi Pico with RP2040"


def fault_alarms():
    """Faults of the board itself, at set times: [seconds since boot, ...]."""
    for at, ms in config["stalls"]:
        _at(at, lambda ms=ms: hold_up(ms))
    for at in config["defects"]:
        _at(at, defect)
    for at in config["brownouts"]:
        _at(at, brown_out)
    for at, ms in config["nacks"]:
        _at(at, lambda ms=ms: setattr(machine, "nack_until", cosim.now + int(ms * 1e6)))
    for at, n, every_us, low_us in config["glitches"]:
        glitch(int(at * 1e9), n, int(every_us * 1000), int(low_us * 1000))
    for at, n in config["lost_edges"]:
        _at(at, lambda n=n: machine.deaf.update({first["alert"]: n}))
    for at, ms, level in config["stuck_miso"]:
        _at(at, lambda level=level: setattr(spi_block, "miso", level))
        _at(at + ms / 1000, lambda: setattr(spi_block, "miso", None))
    for at in config["stuck_sda"]:
        _at(at, lambda: setattr(machine, "sda_stuck", True))


def _at(seconds, function):
    cosim.set_alarm(cosim.add_alarm(function), cosim.boot + int(seconds * 1e9))


def glitch(at, n, every, low):
    """From then on, ns since boot, something pulls the first rail's ALERT line low for this long, n times."""
    left, pin = n, first["alert"]

    def falls():
        nonlocal left
        left -= 1
        if left:
            cosim.set_alarm(alarm, cosim.now + every)
        chip.advance(cosim.now)
        machine.pulled[pin] = cosim.now + low
        if chip.alert():  # else it does not fall
            machine.fell[pin] = cosim.now
            machine.interrupt(machine.edges[pin])

    alarm = cosim.add_alarm(falls)
    cosim.set_alarm(alarm, cosim.boot + at)


def hold_up(ms):
    """The main loop: on the chip nothing holds up an interrupt that has begun, whose stamp would be late."""
    if machine.interrupts:
        cosim.set_alarm(cosim.add_alarm(lambda: hold_up(ms)), cosim.now + 50_000)
    else:
        cosim.spend(int(ms * 1e6))


def brown_out():
    chip.advance(cosim.now)
    chip.power_on(cosim.now)
    machine._arm(chip)


def defect():
    raise RuntimeError("a defect of the firmware, SIMULATED")


def rise_of(rise_ms, volts):
    """That of the setting: one number, or the one of the nearest voltage in mV."""
    if not isinstance(rise_ms, dict):
        return rise_ms
    return rise_ms[min(rise_ms, key=lambda mV: abs(int(mV) - 1000 * volts))]


def switched(source, settings, gate, true):
    """A rail after the switch at a gate. settings: those of BOARD in cable.py that name its load; true: of its row."""
    load = Load(
        rise_of(settings["rise_ms"], source.volts),
        *[
            settings[name]
            for name in (
                "bulk_uF",
                "discharge_mOhm",
                "uvlo_percent",
                "leak_mA",
                "gate_us",
                "side_V",
                "side_ohm",
                "leak_ohm",
            )
        ],
    )
    if true.get("surges") or true.get("ohm"):
        source = Surging(source, cosim.boot, true.get("surges", ()), true.get("ohm", 0.0))
    rail = supply(true, source, load, lambda powered: tell_drive(rail, powered))
    alarm = cosim.add_alarm(rail.due)
    rail.alarm = lambda t: cosim.set_alarm(alarm, t)
    rail.gate(cosim.boot, 0)  # undriven; a broken switch may be open anyway
    gates[gate] = rail
    return rail


def tell_drive(rail, powered):
    """A rail has crossed the drive's lock-out. The drive needs all of them; the cable informs it."""
    others = [other.powered for other in gates.values() if other is not rail]
    if config["power_fd"] >= 0 and False not in others:
        cosim._write(config["power_fd"], bytes([powered]) + cosim.now.to_bytes(8, "little"), 9)


def feed(row, share, volts=None):
    """What a rail has of the drive's power."""
    delay_ns, lead_mOhm = int(config["feed_delay_us"] * 1000), wiring.true_lead_mOhm(row)
    return feed_reader.Feed(config["feed"], config["source_mOhm"], row["shunt_uOhm"], delay_ns, share, volts, lead_mOhm)


def as_built(volts, row):
    """A row as its builder writes it: for the supply's voltage, unless it names another."""
    return dict(dict(board.RAILS[0], nominal_mV=int(volts * 1000 + 0.5)), **row)


def scope_nV(nV, row):
    """A count of the divider as it is; of one whose upper resistor is open no voltage makes any."""
    factor = row.get("true", {}).get("scope", 1)
    return nV / factor if factor else 1e30


def exchange(what):
    """Wires of the first two rails that lie on each other's pins."""
    of = {"gates": gates, "scope": adc_ring_model.inputs}[what]
    one, other = sorted(of)[:2]
    of[one], of[other] = of[other], of[one]


def more_rails():
    """The rows that the settings add to board.py's tables, as a builder of another board edits its file. A row lists
    the differences to the first one of board.py."""
    rows = [as_built(row["simulated"]["V"], row) for row in config["rails"]]
    for row in rows:
        load = row["simulated"]
        if "share" in load:
            load["window"] = feed(row, load["share"], load["V"]).window
        if "gate" in load:
            source = (
                feed(row, load["share"], load["V"])
                if "share" in load
                else feed_reader.Constant(load["A"], load["V"], wiring.true_lead_mOhm(row))
            )
            output = switched(source, dict(config, **load), load["gate"], row.get("true", {}))
            load["window"] = output.window
            board.SWITCH += (
                {"rail": row["rail"], "gate": load["gate"], "discharge_mOhm": int(output.load.discharge * 1000)},
            )
            if "scope" in load:
                board.SCOPE += ({"rail": row["rail"], "gpio": load["scope"], "nV_per_count": SCOPE_12V_nV},)
                adc_ring_model.inputs[load["scope"]] = output, scope_nV(SCOPE_12V_nV, row)
    board.RAILS = tuple([as_built(rail.volts, config["rail"])] + rows)
    board.SIDEBAND, board.LOCK_OUTS = machine.gates.sideband, machine.gates.lock_outs


def low_ranges():
    """The bypass of each rail that has a switch and "low"."""
    for switch, gate in zip(board.SWITCH, gates.values()):
        for row in board.RAILS:
            if row["rail"] == switch["rail"] and row.get("low"):
                bypass_model.fitted[row["rail"]] = bypass_model.LowRange(row, gate, cosim.boot)
    if bypass_model.fitted:
        bypass_model.install(config["firmware"] + "/ranges.py")


def fast_channel(row, of):
    """The amplifier of the fast current channel across the shunt of a rail, as the one who builds the board has it in
    board.json; its "true" is what that does not know: "gain" (a factor), "zero" (counts of no current), "absent" (no
    amplifier drives the ADC's pin), "volts" (a factor) and "zero_V" of the voltage's converter."""
    true = row.pop("true", {})
    nA = 1e30 if true.get("absent") else row["nA_per_count"] / true.get("gain", 1.0)
    if "volts" in row:
        nV = row["nV_per_count"] / true.get("volts", 1.0)
        sar_ring_model.pairs[row["volts"], row["gpio"]] = of, nV, nA, true.get("zero_V", 0), true.get("zero", 0)
        board.PAIR = row
    else:
        adc_ring_model.currents[row["gpio"]] = of, nA, true.get("zero", 0)
    board.FAST = row


cosim.begin(config["t_boot_ns"], config["tick0"], config["ppm"], config["pace"])
usys.modules["registers"] = registers_model
usys.modules["adc_ring"] = adc_ring_model
usys.modules["alert_age"] = alert_age_model
usys.modules["sar_ring"] = sar_ring_model
usys.modules["bypass"] = bypass_model
rp2.button = config["bootsel"]
os.first = config["boot"].to_bytes(4, "little")
usys.modules["sys"] = _Sys()
usys.modules["gc"] = _Gc()
has_firmware = "board.py" in os.listdir(config["firmware"])  # otherwise the wiring is unknown
first = {"shunt_uOhm": 0}
if has_firmware:
    i2c_block.install(config["firmware"] + "/i2c_fifo.py")
    spi_block.install(config["firmware"] + "/spi_lane.py")
    spi_block.charge_drain()
    adc_ring_model.charge_scan()
    start_folder = os.getcwd()
    os.chdir(config["flash"])  # where board.py looks for board.json
    import board

    os.chdir(start_folder)
    first = dict(board.RAILS[0], **config["rail"])
gates = {}
first_share = 1 - sum([row["simulated"].get("share", 0.0) for row in config["rails"]])
rail = switched(feed(first, first_share), config, 10, first.get("true", {}))
machine.max_Hz = config["bus_max_Hz"]
machine.gates = Gates(
    gates, config["edges"], lambda s: cosim.boot + int(s * 1e9), config["sideband"], config["lock_outs"]
)
if has_firmware:
    adc_ring_model.reference_V = config["logic_V"]
    adc_ring_model.inputs[26] = rail, scope_nV(board.SCOPE[0]["nV_per_count"], first)
    more_rails()
    if config["fast"]:
        on = [behind for n, behind in enumerate(gates.values()) if board.SWITCH[n]["rail"] == config["fast"]["rail"]]
        fast_channel(config["fast"], on[0])
    if config["gate_supply"]:
        row = config["gate_supply"]
        volts = row.pop("true", row)["mV"] / 1000
        adc_ring_model.inputs[row["gpio"]] = feed_reader.Constant(0, volts), row["nV_per_count"]
        board.GATE_SUPPLY = row
    for what in config["exchanged"]:
        exchange(what)
    low_ranges()
    errors = [config[name] for name in ("osc_ppm", "offset_uV", "gain_ppm", "vbus_gain_ppm", "noise")]
    chip = wiring.sensors(board.RAILS, rail.window, cosim.boot, errors)[0]
    fault_alarms()

os.chdir(config["flash"])
repl.start("main")  # runs until the host reports quit, and then is what a tool for MicroPython finds
