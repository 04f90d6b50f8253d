"""The switch's pulses: the PIO's programs cycle by cycle, machines that start together, and registers.py on memory."""

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simboard import ROOT, interpreter
from standins import firmware


@pytest.fixture(scope="module")
def pio():
    """(stand-in of PIO, pulse.py with the programs assembled by it)."""
    files = firmware()
    return files.pio_model, files.pulse


# --- the programs

# by hand from the instruction table of the RP2040 data sheet (3.4): pull block 80a0, mov x,osr a027, jmp x-- 004x, mov
# isr,x a0c1, push noblock 8000, out pins,2 with the side-set of one optional pin 7802, out y,30 605e, jmp y-- 008x, jmp
# 000x, jmp pin 00cx; delay in bits 10..8
CODES = {
    "_after": [0x80A0, 0xA027, 0x0042, 0xA0C1, 0x8000, 0x80A0, 0x7802, 0x605E, 0x0088],
    "_rising": [
        0x80A0,
        0xA027,
        0x0044,
        0x0003,
        0x01C2,
        0x0047,
        0x0003,
        0x00C9,
        0x0005,
        0xA0C1,
        0x8000,
        0x80A0,
        0x7802,
        0x605E,
        0x008E,
    ],
    "_falling": [
        0x80A0,
        0xA027,
        0x0044,
        0x0003,
        0x00C6,
        0x0002,
        0x0048,
        0x0003,
        0x01C6,
        0xA0C1,
        0x8000,
        0x80A0,
        0x7802,
        0x605E,
        0x008E,
    ],
}


@pytest.mark.parametrize("name", CODES)
def test_the_programs_are_assembled_as_the_data_sheet_says(pio, name):
    program = getattr(pio[1], name)
    assert program.codes == CODES[name]
    assert program.wrap == len(program.codes) - 1 and program.codes[program.wrap_target] == 0x80A0


def plan(pio, name, count, steps, level=None, change=None):
    """[(cycle from which, pins)] and what was pushed, by our stand-in (its synchroniser left out)."""
    model, pulse = pio
    core = model.Core(getattr(pulse, name), level, change)
    core.tx = [count, *steps]
    before, model.SYNCHRONISER = model.SYNCHRONISER, 0
    try:
        core.run()
    finally:
        model.SYNCHRONISER = before
    assert [c for c, kind, v in core.effects if (kind, v) == ("side", 1)] == [
        c for c, kind, _ in core.effects if kind == "pins"
    ]
    return [(c + 1, v) for c, kind, v in core.effects if kind == "pins"], [
        v for _, kind, v in core.effects if kind == "push"
    ]


def independent(pio, name, count, steps, level=lambda cycle: 0, cycles=4000):
    """The same by rp2040-pio-emulator, which knows nothing of ours but the codes. It does not know side-set that is
    optional and sees two pins instead, the upper of which is set by the enabling bit."""
    pioemu = pytest.importorskip("pioemu", reason="rp2040-pio-emulator is not installed")
    from collections import deque

    program = getattr(pio[1], name)
    state = pioemu.State(transmit_fifo=deque([count, *steps]), pin_directions=3)
    edges, pushed, marks = [], [], []
    for before, after in pioemu.emulate(
        program.codes,
        stop_when=lambda _, s: s.clock > cycles,
        initial_state=state,
        input_source=lambda clock: level(clock) << 20,
        jmp_pin=20,
        out_base=0,
        out_count=2,
        side_set_base=4,
        side_set_count=2,
        wrap_target=program.wrap_target,
        wrap_top=program.wrap,
    ):
        if after.pin_values & 3 != before.pin_values & 3:
            edges.append((before.clock + 1, after.pin_values & 3))
        if after.pin_values & ~before.pin_values & 1 << 4:
            marks.append(before.clock + 1)
        pushed = list(after.receive_fifo)
    assert marks[:1] == [clock for clock, _ in edges[:1]]  # SYNC rises in the cycle of the first step
    return edges, pushed


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1500), st.integers(4, 900), st.integers(4, 900))
def test_delay_and_steps_last_exactly_as_long_as_they_say(pio, count, first, second):
    pulse = pio[1]
    steps = [pulse.word(pulse.OPEN, first), pulse.word(pulse.DISCHARGE, second), pulse.word(pulse.OPEN, 4)]
    edges, pushed = plan(pio, "_after", count, steps)
    begin = count + pulse.LEAD
    assert edges == [(begin, 1), (begin + first, 3), (begin + first + second, 1)]
    assert pushed == [0xFFFFFFFF]
    assert independent(pio, "_after", count, steps) == (edges, pushed)


def test_a_ramp_is_what_an_independent_emulator_makes_of_it():
    files = firmware()
    words = list(files.ramp.words(100, 16, 50, 125))
    edges, pushed = plan((files.pio_model, files.pulse), "_after", 1, words)
    assert len(edges) == 19 and edges[-1][1] == edges[-2][1] == 3  # the last word changes nothing
    assert (edges[:-1], pushed) == independent((files.pio_model, files.pulse), "_after", 1, words, cycles=14_000)


def test_dips_are_as_long_as_asked_and_the_last_one_ends_on():
    files = firmware()
    dips = files.cut.Dips({"dips": 5, "down_us": 2, "up_us": 3}, (), {})
    words = list(dips.words(0, 125))
    edges, pushed = plan((files.pio_model, files.pulse), "_after", 1, words)
    begin = 1 + files.pulse.LEAD
    times = [begin + 125 * (5 * k + us) for k in range(5) for us in (0, 2)]
    assert edges == list(zip(times, [files.pulse.OPEN, files.pulse.ON] * 5))
    assert (edges, pushed) == independent((files.pio_model, files.pulse), "_after", 1, words)
    assert times[-1] - begin == 125 * dips.back_us == 125 * (5 * 2 + 4 * 3) and not dips.discharges


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["_rising", "_falling"]),
    st.lists(st.integers(1, 900), min_size=1, max_size=5, unique=True),
    st.booleans(),
    st.integers(1, 1200),
)
@pytest.mark.slow
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
    if edges:  # and the time that pulse.py computes is that of the gate, to within the program's turn
        reckoned = pulse._PER_COUNT * ((count - pushed[0]) & 0xFFFFFFFF) + pulse._EDGE_LEAD
        assert 0 <= reckoned - edges[0][0] <= 4
        wanted = [c for c in changes if level(c) == (name == "_rising")]
        late = min(edges[0][0] - c for c in wanted if c < edges[0][0])
        assert late <= 9


def test_the_start_waits_for_its_tick(tmp_path):
    """registers.py itself, on memory that stands for the timer and the PIO: which word it writes, and that a tick that
    has passed starts nothing."""
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
    done = subprocess.run([*interpreter(), "-c", script], capture_output=True, text=True)
    # a timer that stands still ends the wait; the tick 5 is now, 4 has passed
    assert done.stdout.splitlines() == [
        "-1 0",
        "-1 0",
        f"5 {0x505}",
        "0x40054000 0x50202000 0x4005b000",
        "{1074114560: 1073741824}",
    ], done.stdout + done.stderr
