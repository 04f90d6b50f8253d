"""The switch in parts: the PIO's programs cycle by cycle, registers.py on memory, and the physics of the SIMULATED rail."""

import importlib.util
import math
import subprocess
import sys
import types

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simboard import ROOT, interpreter, make_feed

from ssdrig import wire

STAND_INS = ROOT / "host/ssdrig/virtual/board"


def load(path, name, **modules):
    """A file of the firmware or the stand-ins on CPython, with the modules it imports replaced."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    before = {n: sys.modules.get(n) for n in modules}
    sys.modules.update(modules)
    try:
        spec.loader.exec_module(module)
    finally:
        for n, m in before.items():
            if m is None:
                del sys.modules[n]
            else:
                sys.modules[n] = m
    return module


@pytest.fixture(scope="module")
def pio():
    """(rp2 stand-in, pulse.py with the programs assembled by it)."""
    rp2 = load(STAND_INS / "rp2.py", "rp2_stand_in")
    fake = {"machine": types.SimpleNamespace(Pin=None, freq=lambda: 125_000_000), "micropython": types.SimpleNamespace(const=lambda x: x)}
    clock = types.SimpleNamespace(sleep_us=None)
    return rp2, load(ROOT / "firmware/pulse.py", "pulse", rp2=rp2, registers=types.SimpleNamespace(), time=clock, **fake)


# --- the programs

# by hand from the instruction table of the RP2040 data sheet (3.4): pull block 80a0, mov x,osr a027, jmp x-- 004x, mov isr,x a0c1,
# push noblock 8000, out pins,2 6002, out y,30 605e, jmp y-- 008x, jmp 000x, jmp pin 00cx; delay in bits 12..8
CODES = {
    "_after": [0x80A0, 0xA027, 0x0042, 0xA0C1, 0x8000, 0x80A0, 0x6002, 0x605E, 0x0088],
    "_rising": [0x80A0, 0xA027, 0x0044, 0x0003, 0x01C2, 0x0047, 0x0003, 0x00C9, 0x0005, 0xA0C1, 0x8000, 0x80A0, 0x6002, 0x605E, 0x008E],
    "_falling": [0x80A0, 0xA027, 0x0044, 0x0003, 0x00C6, 0x0002, 0x0048, 0x0003, 0x01C6, 0xA0C1, 0x8000, 0x80A0, 0x6002, 0x605E, 0x008E],
}


@pytest.mark.parametrize("name", CODES)
def test_the_programs_are_assembled_as_the_data_sheet_says(pio, name):
    program = getattr(pio[1], name)
    assert program.codes == CODES[name]
    assert program.wrap == len(program.codes) - 1 and program.codes[program.wrap_target] == 0x80A0


def plan(pio, name, count, steps, level=None, change=None):
    """[(cycle from which, pins)] and what was pushed, by our stand-in (its synchroniser left out)."""
    rp2, pulse = pio
    core = rp2.Core(getattr(pulse, name), level, change)
    core.tx = [count, *steps]
    before, rp2._SYNCHRONISER = rp2._SYNCHRONISER, 0
    try:
        core.run()
    finally:
        rp2._SYNCHRONISER = before
    return [(c + 1, v) for c, kind, v in core.effects if kind == "pins"], [v for _, kind, v in core.effects if kind == "push"]


def independent(pio, name, count, steps, level=lambda cycle: 0, cycles=4000):
    """The same by rp2040-pio-emulator, which knows nothing of ours but the codes."""
    pioemu = pytest.importorskip("pioemu", reason="rp2040-pio-emulator is not installed")
    from collections import deque

    program = getattr(pio[1], name)
    state = pioemu.State(transmit_fifo=deque([count, *steps]), pin_directions=3)
    edges, pushed = [], []
    for before, after in pioemu.emulate(
        program.codes, stop_when=lambda _, s: s.clock > cycles, initial_state=state, input_source=lambda clock: level(clock) << 20,
        jmp_pin=20, out_base=0, out_count=2, wrap_target=program.wrap_target, wrap_top=program.wrap,
    ):  # fmt: skip
        if after.pin_values & 3 != before.pin_values & 3:
            edges.append((before.clock + 1, after.pin_values & 3))
        pushed = list(after.receive_fifo)
    return edges, pushed


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1500), st.integers(4, 900), st.integers(4, 900))
def test_delay_and_steps_last_exactly_as_long_as_they_say(pio, count, first, second):
    pulse = pio[1]
    steps = [pulse.word(pulse.OPEN, first), pulse.word(pulse.DISCHARGE, second), pulse.word(pulse.OPEN, 4)]
    edges, pushed = plan(pio, "_after", count, steps)
    begin = count + pulse._LEAD
    assert edges == [(begin, 1), (begin + first, 3), (begin + first + second, 1)]
    assert pushed == [0xFFFFFFFF]
    assert independent(pio, "_after", count, steps) == (edges, pushed)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["_rising", "_falling"]), st.lists(st.integers(1, 900), min_size=1, max_size=5, unique=True), st.booleans(), st.integers(1, 1200))
def test_edges_are_seen_as_an_independent_emulator_sees_them(pio, name, changes, first, count):
    """Any pattern on the input; also the shortcut that our stand-in takes through waiting loops, and the time-out."""
    pulse = pio[1]
    changes = sorted(changes)

    def level(cycle):
        return int(first) ^ (sum(c <= cycle for c in changes) & 1)

    def next_change(cycle):
        return min((c for c in changes if c > cycle), default=1 << 62)

    steps = [pulse.word(pulse.OPEN, 50), pulse.word(pulse.ON, 4)]
    ours = plan(pio, name, count, steps, level, next_change)
    assert ours == independent(pio, name, count, steps, level)
    edges, pushed = ours
    if edges:  # and the time that pulse.py reckons is that of the gate, to within the program's turn
        reckoned = pulse._PER_COUNT * ((count - pushed[0]) & 0xFFFFFFFF) + pulse._EDGE_LEAD
        assert 0 <= reckoned - edges[0][0] <= 4
        wanted = [c for c in changes if level(c) == (name == "_rising")]
        late = min(edges[0][0] - c for c in wanted if c < edges[0][0])
        assert late <= 9


def test_interlock_words(pio):
    """A crowbar's first step opens the series switch, and the discharge switch comes after the dead time."""
    pulse = pio[1]
    names = {"pulse": pulse, "registers": types.SimpleNamespace(), "wire": wire, "micropython": types.SimpleNamespace(const=lambda x: x)}
    names |= {"fall": types.SimpleNamespace(Watch=None), "clock64": types.SimpleNamespace(put32=None), "link": types.SimpleNamespace(HEAD=5), "machine": types.SimpleNamespace()}
    names |= {"time": types.SimpleNamespace(ticks_add=None, ticks_diff=None, ticks_us=None)}
    switch = load(ROOT / "firmware/switch.py", "switch", **names)
    assert [(w & 3, (w >> 2) + 4) for w in switch.steps_of("crowbar", 0, 125)] == [(1, 50 * 125), (3, 4)]
    assert [(w & 3, (w >> 2) + 4) for w in switch.steps_of("glitch", 100, 125)] == [(1, 12500), (0, 4)]
    assert [w & 3 for w in switch.steps_of("float", 0, 125)] == [1]
    drawn = [switch.draw(1000, 1999, seed) for seed in range(4000)]
    assert min(drawn) >= 1000 and max(drawn) <= 1999
    assert drawn == [switch.draw(1000, 1999, seed) for seed in range(4000)]
    bins = [sum(1000 + 100 * k <= d < 1100 + 100 * k for d in drawn) for k in range(10)]
    assert sum((b - 400) ** 2 / 400 for b in bins) < 27.9  # chi square, 9 degrees of freedom, 0.1 %


def test_the_start_waits_for_its_tick(tmp_path):
    """registers.py itself, on memory that stands for the timer and the PIO: which word it writes, and that a tick that has passed
    starts nothing."""
    script = """
import sys
sys.path.insert(0, %r)
import types_stub
""" % str(tmp_path)
    (tmp_path / "types_stub.py").write_text(
        f"""
import sys
class machine:
    mem32 = {{}}
    disable_irq = staticmethod(lambda: 7)
    enable_irq = staticmethod(lambda s: print("irq", s))
class S:
    implementation = type("I", (), {{"_machine": "Raspberry Pi Pico with RP2040"}})
sys.modules["machine"] = machine
sys.path.insert(0, {str(ROOT / "firmware")!r})
source = open({str(ROOT / "firmware/registers.py")!r}).read().replace("import sys", "from types_stub import S as sys")
space = {{}}
exec(source, space)
from array import array
timer, pio = array("I", [0] * 12), array("I", [0])
timer[10] = 0xC0000005
print(space["_start"](timer, pio, 5, 4), pio[0])
print(space["_start"](timer, pio, 5, 5), pio[0])
pio[0] = 0
print(space["_start"](timer, pio, 5, -1), pio[0])
print(hex(space["TIMER"]), hex(space["PIO0_SET"]), hex(space["WATCHDOG_CLEAR"]))
space["watchdog_off"]()
print(machine.mem32)
"""
    )
    done = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True, timeout=30)
    # a timer that stands still ends the wait; the tick 5 is now, 4 has passed
    assert done.stdout.splitlines() == [
        "-1 0", "-1 0", f"5 {0x505}", "0x40054000 0x50202000 0x4005b000", "{1074114560: 1073741824}",
    ], done.stdout + done.stderr  # fmt: skip


# --- the rail


@pytest.fixture
def rail(tmp_path):
    supply = load(STAND_INS / "supply.py", "supply")

    def make(watts=2.5, **load_settings):
        make_feed(tmp_path / "feed", watts, t0_ns=0, seconds=15)
        alarms = []
        crossings = []
        tell = lambda powered: crossings.append(powered)  # noqa: E731
        s = supply.Supply(str(tmp_path / "feed"), 0, 0, 0, supply.Load(gate_us=0, **load_settings), tell, lambda t, f: alarms.append((t, f)))

        def until(t):
            alarms.sort(key=lambda a: a[0])
            while alarms and alarms[0][0] <= t:
                alarms.pop(0)[1]()
                alarms.sort(key=lambda a: a[0])
            return s.at(t)

        return s, until, crossings

    return make


def fall(until, t0, v0, span_ns):
    """90 to 10 % by stepping through the fall, us."""
    times = [t0 + k * span_ns // 20000 for k in range(20000)]
    volts = [until(t)[1] for t in times]
    t90 = next(t for t, v in zip(times, volts) if v < 0.9 * v0)
    t10 = next(t for t, v in zip(times, volts) if v < 0.1 * v0)
    return (t10 - t90) / 1000


@pytest.mark.parametrize("ohms, us", [(10, 10340), (2.2, 2275)])
def test_crowbar_into_470_uF(rail, ohms, us):
    """2.2 R C, with a drive that draws nothing."""
    s, until, _ = rail(0.0, bulk_uF=470, discharge_mOhm=ohms * 1000, leak_mA=0)
    s.gate(10**9, 1)
    s.gate(10**9, 3)
    assert fall(until, 10**9, 5, 20_000_000) == pytest.approx(us, rel=0.005)
    assert us == pytest.approx(math.log(9) * ohms * 470, rel=0.01)


def test_float_with_a_drive_that_lets_go(rail):
    """C V / I: fast while the drive lives, then 10 mA alone; each stretch against its closed form."""
    s, until, crossings = rail(2.5, bulk_uF=470, leak_mA=10)
    s.gate(10**9, 1)
    dies = 470e-6 * (25 - 16) / (2 * 2.5)
    until(10**9 + int(dies * 0.999e9))
    assert crossings == []
    until(10**9 + int(dies * 1.001e9))
    assert crossings == [False]
    to_zero = 470e-6 * 4.0 / 0.010
    assert until(10**9 + int((dies + to_zero / 2) * 1e9))[1] == pytest.approx(2.0, abs=0.01)
    assert until(10**9 + int((dies + to_zero + 0.001) * 1e9))[1] == 0
    assert until(10**9 + int((dies + to_zero) * 2e9))[0] == 0


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0.1, 15), st.floats(10, 1000), st.floats(0.5, 50), st.floats(1, 20), st.booleans())
def test_closed_forms_against_integration(rail, watts, bulk_uF, ohms, leak_mA, crowbar):
    """C dV/dt = -P/V - V/R, then -I - V/R below the lock-out, by small steps (Heun)."""
    s, until, _ = rail(watts, bulk_uF=bulk_uF, discharge_mOhm=ohms * 1000, leak_mA=leak_mA)
    s.gate(10**9, 1)
    if crowbar:
        s.gate(10**9, 3)
    c, r, v, h = bulk_uF * 1e-6, ohms if crowbar else math.inf, 5.0, bulk_uF * 1e-6 / 2000
    alive = True

    def slope(v):
        return -(watts / v if alive else leak_mA / 1000) / c - v / r / c

    t = 0.0
    for k in range(3000):
        a = slope(v)
        v += h * (a + slope(max(v + h * a, 0.05))) / 2
        t += h
        if v <= 0.05:
            break
        alive = alive and v > 4.0
        if k % 100 == 0:
            assert until(10**9 + round(t * 1e9))[1] == pytest.approx(v, abs=0.02)


def test_the_rail_rises_and_the_drive_lives(rail):
    s, until, crossings = rail(2.5, rise_ms=3.0)
    s.gate(10**9, 1)
    s.gate(10**9, 3)
    until(10**9 + 500_000_000)
    s.gate(10**9 + 500_000_000, 1)
    s.gate(10**9 + 500_000_000, 0)
    amps, volts = until(10**9 + 501_500_000)
    assert volts == pytest.approx(2.5, abs=0.01)
    assert amps == pytest.approx(470e-6 * 5 / 3e-3 + 0.010, rel=0.01)  # inrush: C dV/dt
    assert crossings == [False]
    until(10**9 + 502_500_000)
    assert crossings == [False, True]
    assert until(10**9 + 504_000_000) == (pytest.approx(0.5), 5.0)
