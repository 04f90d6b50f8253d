"""numbered.py: the times of readings that are numbered and not stamped."""

import random

from ssdrig.meter.numbered import WINDOW_NS, Numbered

PERIOD_NS = 1_000_000


def played(delays_ns, ppm=0.0, least_ns=500_000):
    """Errors of the times of readings that come so late, by an instrument whose clock is off by so much."""
    clock, errors, free_ns = Numbered(PERIOD_NS), [], 0
    for number, delay_ns in enumerate(delays_ns):
        true_ns = 10**12 + round(number * PERIOD_NS * (1 + ppm * 1e-6))
        free_ns = max(free_ns, true_ns + least_ns + delay_ns)  # none overtakes another
        clock.came(number, free_ns)
        errors.append(clock.end_ns(number) - true_ns)
    return errors


def test_a_host_that_looks_late_does_not_move_the_times():
    source = random.Random(1)
    errors = played([source.choice((0, 0, 3_000_000, 15_000_000)) for _ in range(20_000)])
    assert all(0 <= error <= 20_000_000 for error in errors) and max(errors[1000:]) < 1_000_000


def test_a_stall_of_seconds_and_its_backlog_keep_their_times():
    delays = [0] * 3000 + [2_000_000_000] + [0] * 3000
    assert max(played(delays)) < 1_000_000


def test_a_clock_that_drifts_is_followed():
    errors = played([0] * 60_000, ppm=100)
    assert max(abs(error) for error in errors) < 2e-4 * WINDOW_NS + 600_000
    errors = played([0] * 60_000, ppm=-100)
    assert max(abs(error) for error in errors) < 2e-4 * WINDOW_NS + 600_000
