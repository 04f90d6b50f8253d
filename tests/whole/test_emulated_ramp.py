"""Two ramps and the side-band on an emulated RP2040 in the RP2 port of MicroPython itself: its assembler's programs,
its rp2.DMA, the state machines. Every edge at the pins is compared with the words, to the cycle."""

import json
from types import SimpleNamespace

import emulated
import pytest
from standins import MHz, firmware

pytestmark = pytest.mark.slow

RAMPS = {10: (10_000, 1034), 12: (8_000, 1000)}  # gate: fall_us, R C in us
SCRIPT = f"""
import json, machine, time, ramp
from pulse import *
p = Pulse([10, 12, 18], 22)
t = [time.ticks_us()]
words = [ramp.words(*how, 50, {MHz}) for how in {list(RAMPS.values())}]
t.append(time.ticks_us())
p.load("", None, 1000, words + [(word(SEALED, SHORTEST),)])
t.append(time.ticks_us())
p.start()
seen = [p.stepping()]
time.sleep_ms(11)
seen += [p.fired(), p.after_start_ns(), p.stepping()]
p.stop()
p.load("", None, 1000, words + [(word(SEALED, SHORTEST),)])
p.start()
time.sleep_ms(3)
seen.append(p.stepping())
p.stop()
seen.append(p.stepping())
time.sleep_ms(5)
print(json.dumps([seen, t[1] - t[0], t[2] - t[1]]))
"""


@pytest.fixture(scope="module")
def seen():
    if why := emulated.missing():
        pytest.skip(why)
    with emulated.Emulated(gpios=[10, 11, 12, 13, 18, 19, 22]) as board:
        board.raw_repl()
        reports, words_us, load_us = json.loads(board.run(SCRIPT))
        changes = board.end()["changes"]
    runs = [k for k, (_, gpio, level) in enumerate(changes) if (gpio, level) == (22, "High")]
    return SimpleNamespace(
        reports=reports,
        words_us=words_us,
        load_us=load_us,
        first=changes[runs[0] - 8 : runs[1] - 8],
        second=changes[runs[1] - 8 :],
    )


def levels(changes, gpio, t0):
    """[(cycle after t0, level)] of an output, for 11 ms."""
    return [(cycle - t0, level) for cycle, pin, level in changes if pin == gpio and t0 < cycle < t0 + 11_000 * MHz]


def began(changes):
    return next(cycle for cycle, gpio, level in changes if (gpio, level) == (22, "High"))


def test_all_begin_in_one_cycle(seen):
    """Both series switches, PERST#, the isolation of the side-band, and SYNC."""
    for changes in (seen.first, seen.second):
        assert {gpio for cycle, gpio, level in changes if cycle == began(changes) and level == "High"} == {
            10,
            12,
            18,
            19,
            22,
        }


@pytest.mark.parametrize("gate", RAMPS)
def test_every_pulse_is_where_its_word_says(seen, gate):
    files, at, expected = firmware(), 0, []
    for w in files.ramp.words(*RAMPS[gate], 50, MHz)[:-1]:
        expected.append((at, {files.pulse.OPEN: "Low", files.pulse.DISCHARGE: "High"}[w & 3]))
        at += (w >> 2) + files.pulse.SHORTEST
    t0 = began(seen.first)
    assert len(expected) > 120 and levels(seen.first, gate + 1, t0)[: len(expected) - 1] == expected[1:]
    assert levels(seen.first, gate, t0) == []  # the series switch stays open, until its pin is let go


def test_what_the_firmware_knows_of_it(seen):
    assert seen.reports == [True, True, (1000 + 7) * 8, False, True, False]


def test_a_ramp_that_is_stopped_ends_there(seen):
    """3 ms after its start: the discharge switches are let go before the series switches, and nothing comes after."""
    gone = {gpio: cycle for cycle, gpio, level in seen.second if level == "Input"}
    order = [gpio for _, gpio, level in seen.second if level == "Input" and gpio in (10, 11, 12, 13)]
    assert order == [11, 13, 10, 12]
    assert max(cycle for cycle, gpio, level in seen.second if gpio in (11, 13)) == max(gone[11], gone[13])
    assert 3000 * MHz < gone[11] - began(seen.second) < 3500 * MHz


def test_a_command_does_not_hold_the_sampler_up(seen):
    """Its words and loading, two rails and the side-band: less than the ring of a sensor bridges, 16 conversions of 0.5
    ms."""
    assert seen.words_us < 4000 and seen.load_us < 1500
