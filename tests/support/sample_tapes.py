"""For tests of samples."""

import stream

from ssdrig.meter import samples, wire

W = 25_600  # raw current of a watt at 5 V (25600 x 195.3125 uV = 5 V, 25600 x 7.8125 uA = 0.2 A)


def loaded(tape, tmp_path, rail=0) -> samples.Power:
    return samples.load(tape.run(tmp_path), rail)


def broken_tape(dice) -> stream.Tape:
    """A tape with losses, a second go, a reset and a pause, some 12 s long."""
    tape = stream.started(boot=1)
    index = tape.stream(60, lose=set(dice.integers(0, 60, 5).tolist()), current=1 * W)
    index = tape.stream(30, first_index=index + 13, skip=13, current=2 * W)
    tape.stream(20, skip=40)
    tape.reset(dark_us=1_700_000)
    tape.frame(wire.HELLO, stream.hello(boot=2))
    tape.stream(60, current=3 * W, lose=set(dice.integers(0, 60, 5).tolist()))
    return tape
