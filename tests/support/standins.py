"""For tests: files of the firmware and of the SIMULATED board's stand-ins on CPython."""

import importlib.util
import sys
import types
from unittest import mock

from simboard import ROOT

STAND_INS = ROOT / "host/ssdrig/virtual/board"
MHz = 125
MICROPYTHON = types.SimpleNamespace(const=lambda x: x, viper=lambda f: f)


def load(path, name, **modules):
    """A file as a module, with the modules that it imports replaced."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.ptr32 = int  # a word of the viper compiler
    with mock.patch.dict(sys.modules, modules):
        spec.loader.exec_module(module)
    return module


class Pin:
    """machine.Pin; what is let go is told to `Pin.board`, a Bench."""

    IN, OUT = 0, 1
    board = None

    def __init__(self, id, mode=None, value=None):
        self.id = id
        if mode is not None:
            Pin.board.moves.append((Pin.board.t, id, "let go" if mode == Pin.IN else value))


class Bench:
    """What rp2.StateMachine.board is: a clock in ns that runs when somebody waits, and a list of all that happened:
    moves: (ns, GPIO, pins, "let go" or level)."""

    cycle_ns = 1000 / MHz

    def __init__(self, firmware, levels=()):
        """levels: [(ns, GPIO, level)] of inputs."""
        self.t, self.moves, self.levels = 0, [], levels
        self.machines = firmware.rp2.StateMachine.machines
        self.machines.clear()
        del firmware.rp2.PIO.loaded[:], firmware.pulse._feeders[:], firmware.rp2.DMA.channels[:]
        firmware.rp2.StateMachine.board = Pin.board = self
        firmware.registers.start = self.start

    def now(self):
        return self.t

    def spend(self, ns):
        self.t += ns

    def look(self, machine):
        pass

    def drive(self, gate, pins, t_ns=None):
        self.moves.append((self.t if t_ns is None else t_ns, gate, pins))

    def take(self, gate):
        self.drive(gate, 0)

    def sync(self, gpio, level, t_ns):
        self.moves.append((t_ns, gpio, level))

    def level(self, gpio, t_ns):
        return [0, *(v for t, g, v in self.levels if g == gpio and t <= t_ns)][-1]

    def next_change(self, gpio, t_ns):
        return min((t for t, g, _ in self.levels if g == gpio and t > t_ns), default=1 << 62)

    def start(self, mask, at=-1):
        del self.moves[:]
        for k, machine in self.machines.items():
            if mask >> k & 1:
                machine.start(self.t)
        return self.t // 1000

    def wait(self, ns):
        self.t += ns
        for machine in self.machines.values():
            if machine.running:
                machine.happen(self.t)
        self.moves.sort(key=lambda move: move[0])

    def edges(self, gate):
        """[(cycle from the first edge on, pins)] of a GPIO, changes only."""
        changes, before = [], 0
        for t, g, pins in self.moves:
            if g == gate and pins != before:
                before = pins
                changes.append((round(t / self.cycle_ns), pins))
        return changes


def firmware():
    """The switch's files: .rp2 and its .pio_model (stand-ins), .registers, .pulse, .ramp, .cut."""
    pio_model = load(STAND_INS / "pio_model.py", "pio_model")
    rp2 = load(STAND_INS / "rp2.py", "rp2_stand_in", pio_model=pio_model)
    registers = types.SimpleNamespace()
    board = types.SimpleNamespace(Pin=Pin, freq=lambda: MHz * 1_000_000)
    clock = types.SimpleNamespace(
        sleep_us=lambda us: Pin.board.spend(1000 * us), ticks_us=lambda: 0, ticks_add=lambda a, b: a + b & 0x3FFFFFFF
    )
    common = {"micropython": MICROPYTHON, "machine": board, "time": clock}
    pulse = load(ROOT / "firmware/pulse.py", "pulse", rp2=rp2, registers=registers, **common)
    ramp = load(ROOT / "firmware/ramp.py", "ramp", pulse=pulse, **common)
    cut = load(ROOT / "firmware/cut.py", "cut", pulse=pulse, ramp=ramp, **common)
    return types.SimpleNamespace(rp2=rp2, pio_model=pio_model, registers=registers, pulse=pulse, ramp=ramp, cut=cut)
