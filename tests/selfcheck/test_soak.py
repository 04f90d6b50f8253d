"""selfcheck soak, a minute of it: two rails across the wraps of ticks_us and of the timer, with all faults of the bus;
and that it finds what it looks for."""

import copy

import numpy as np
import pytest
from simboard import interpreter

from selfcheck import soak

pytestmark = pytest.mark.slow  # not of real time: the board has a time of its own
TICKS = (1 << 32) - 20_000_000  # both wraps are 20 s away
S = 60


@pytest.fixture(scope="module")
def seen():
    interpreter()
    return soak.streamed(S, TICKS, soak.drawn(S, 5), rails=2)


def short(seen) -> list[str]:
    """The figures that miss their limit."""
    return [figure.name for figure in soak.figures(seen, TICKS) if not figure.met]


def test_a_minute_across_both_wraps(seen):
    assert short(seen) == []
    kinds = [kind for _, kind in seen.faults]
    assert set(kinds) == set(soak.FAULTS) and len(kinds) >= 7
    for rail in seen.rails:
        assert rail.t_us[0] < 1 << 30 < rail.t_us[-1] and len(rail.index) > 4000
        assert 0 < rail.missed < 1000 and len(set(rail.config)) > 3


def without(array, k):
    return np.delete(array, k)


def lose_a_sample(rail):
    rail.index, rail.t_us, rail.current = (without(a, 2000) for a in (rail.index, rail.t_us, rail.current))


def count_a_loss_that_was_none(rail):
    rail.missed += 1


def turn_time_back(rail):
    rail.t_us[2000:] -= 20_000


def forget_a_wrap(rail):
    rail.t_us[rail.t_us > 1 << 30] -= 1 << 30


def stamp_late(rail):
    rail.t_us[2000] += 200


def shift_the_values(rail):
    rail.current = np.roll(rail.current, 5)


@pytest.mark.parametrize(
    "break_it, message",
    [
        (lose_a_sample, "samples lost and not accounted for"),
        (count_a_loss_that_was_none, "samples lost and not accounted for"),
        (turn_time_back, "steps of time or index that do not grow"),
        (forget_a_wrap, "steps of time or index that do not grow"),
        (stamp_late, "a step from one conversion to the next, off"),
        (shift_the_values, "samples that are not of their time"),
    ],
)
def test_what_is_wrong_with_a_rail_is_found(seen, break_it, message):
    other = copy.deepcopy(seen)
    break_it(other.rails[1])
    assert message in short(other)


def test_what_is_wrong_with_the_stream_is_found(seen):
    other = copy.deepcopy(seen)
    other.lost_frames = 1
    other.looks[-2]["used"] += 5000
    assert short(other) == ["frames lost", "memory in use, growth"]


@pytest.mark.parametrize("kind", soak.FAULTS)
def test_a_fault_that_is_not_reported_is_found(seen, kind):
    other = copy.deepcopy(seen)
    at = next(t for t, its in seen.faults if its == kind)
    other.logs = [(t, text) for t, text in seen.logs if abs(t - at) > soak.REPORT_us]
    for rail in other.rails:
        rail.energies = []
    assert (at, kind) in soak.unreported(other)
