"""The marks of a run found in the recording of an instrument whose clock has another zero and another rate."""

import numpy as np
import pytest
import recorded

from ssdrig.base.errors import UsageError
from ssdrig.meter import sync

T_NS = 7_000_000_000_000


def errors_ms(found: sync.Found, clock: recorded.Clock, begin_ns: int, end_ns: int):
    """(error, bound) in ms at many host times, of what the found clock makes of the instrument's."""
    host = np.linspace(begin_ns, end_ns, 999).astype(np.int64)
    own = clock.own(host)
    knots = np.array(found.knots, np.int64)
    base = knots[0, 0]
    offset = knots[:, 1] - knots[:, 0]
    seen = (
        own
        + offset[0]
        + np.interp((own - base).astype(float), (knots[:, 0] - base).astype(float), (offset - offset[0]).astype(float))
    )
    bound = np.interp((own - base).astype(float), (knots[:, 0] - base).astype(float), knots[:, 2].astype(float))
    return (seen - host) / 1e6, bound / 1e6


@pytest.mark.parametrize("seed", range(20))
def test_a_clock_that_is_off_by_seconds_and_drifts_is_found_within_its_bound(seed):
    rng = np.random.default_rng(seed)
    drift, offset = (80.0, 3.0) if not seed else (float(rng.uniform(-200, 200)), float(rng.uniform(-3600, 3600)))
    lasts_s = float(rng.choice([20, 45, 90]))
    first = recorded.mark(T_NS + 3 * 10**9, seed)
    last = recorded.mark(T_NS + round(lasts_s * 1e9), 100 + seed)
    end_ns = last.begin_ns + 8 * 10**9
    clock = recorded.Clock(T_NS, offset, drift)
    period_ns = int(rng.choice([500_000, 1_000_000, 2_000_000]))
    noise = float(rng.choice([0.01, 0.1, 0.2]))
    seen = recorded.recording([first, last], T_NS, end_ns, clock, seed=seed, period_ns=period_ns, noise=noise)
    found = sync.find(seen, [first, last])
    error, bound = errors_ms(found, clock, first.begin_ns, last.begin_ns + len(last.slots) * last.slot_ns)
    assert (np.abs(error) <= bound).all()
    assert bound.max() <= (5.0 if period_ns <= 10**6 else 8.0)
    assert found.bound_ns >= 1e6 * np.abs(error).max()
    assert abs(found.drift_ppm - drift) <= found.drift_error_ppm


@pytest.mark.parametrize("late", [1, 2])
def test_bursts_that_began_late_do_not_widen_the_bound(late):
    """Of a busy host: first reads of some bursts that took 24 ms, within which their rise lies anywhere."""
    made = [recorded.mark(T_NS + 3 * 10**9, 1), recorded.mark(T_NS + 45 * 10**9, 2)]
    clock = recorded.Clock(T_NS, 3.0, 80.0)
    seen = recorded.recording(made, T_NS, made[1].begin_ns + 8 * 10**9, clock, noise=0.1)
    known = []
    for mark in made:
        slow = [(begin - 10_000_000, end + 14_000_000) for begin, end in mark.rises[:late]]
        known.append(mark._replace(rises=(*slow, *mark.rises[late:])))
    found = sync.find(seen, known)
    error, bound = errors_ms(found, clock, made[0].begin_ns, made[1].begin_ns + 8 * 10**9)
    assert (np.abs(error) <= bound).all() and found.bound_ns <= 5e6


@pytest.mark.parametrize("missing", ["first", "last", "both", "step"])
def test_a_recording_without_the_marks_is_refused(missing):
    first, last = recorded.mark(T_NS + 3 * 10**9, 1), recorded.mark(T_NS + 20 * 10**9, 2)
    there = {"first": [last], "last": [first], "both": [recorded.mark(T_NS + 3 * 10**9, 8)], "step": [first, last]}[
        missing
    ]
    step = 0.001 if missing == "step" else 0.8
    seen = recorded.recording(there, T_NS, T_NS + 30 * 10**9, recorded.Clock(T_NS, 3.0, 80.0), step=step, noise=0.2)
    with pytest.raises(UsageError) as caught:
        sync.find(seen, [first, last])
    assert "--sync" in caught.value.do


def test_noise_alone_is_never_taken_for_a_mark():
    first, last = recorded.mark(T_NS, 1), recorded.mark(T_NS + 20 * 10**9, 2)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        seen = recorded.recording(
            [], T_NS, T_NS + 120 * 10**9, recorded.Clock(T_NS, 0, 0), seed=seed, period_ns=5_000_000
        )
        walk = np.cumsum(rng.normal(0, 0.05, len(seen.rails[0].W))) + 3
        with pytest.raises(UsageError):
            sync.find(seen._replace(rails=[seen.rails[0]._replace(W=walk)]), [first, last])


def test_too_slow_an_instrument_is_refused_with_the_rate():
    first, last = recorded.mark(T_NS + 3 * 10**9, 1), recorded.mark(T_NS + 20 * 10**9, 2)
    seen = recorded.recording([first, last], T_NS, T_NS + 30 * 10**9, recorded.Clock(T_NS, 0, 0), period_ns=100_000_000)
    with pytest.raises(UsageError, match="100 ms"):
        sync.find(seen, [first, last])
    with pytest.raises(UsageError, match="--sync"):
        sync.find(seen, [first])


def test_marks_are_read_from_the_events_of_a_run():
    first = recorded.mark(T_NS, 1)
    damaged = {**recorded.event(first), "rises_ns": [[1]]}
    assert sync.marks([{"kind": "note"}, recorded.event(first), damaged]) == [first]
