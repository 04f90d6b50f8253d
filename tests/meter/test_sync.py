"""The marks of a run found in the recording of an instrument whose clock has another zero and another rate."""

import numpy as np
import played_marks
import pytest
import recorded

from ssdrig.base.errors import UsageError
from ssdrig.meter import sync

T_NS = 7_000_000_000_000
REFUSED = 30  # samples/s, below which a noisy recording may not show its marks


@pytest.mark.parametrize("seed", range(40))
def test_a_clock_that_is_off_by_seconds_and_drifts_is_found_within_its_bound(seed):
    case = played_marks.scene(seed)
    try:
        offset = sync.find(case.recording, case.marks)
    except UsageError:
        assert case.rate < REFUSED
        return
    error_ns, bound_ns = played_marks.errors_ns(offset, case.clock, case.host_ns())
    assert (np.abs(error_ns) <= bound_ns).all()
    first, last = (mark.rises[at][0] for mark, at in zip(case.marks, (-1, 0)))
    between = (case.host_ns() > first) & (case.host_ns() < last)
    assert between.any() and bound_ns[between].max() <= offset.bound_ns + 1
    assert offset.bound_ns <= 5e6 or not case.quiet
    assert abs(offset.drift_ppm - case.drift_ppm) <= offset.drift_error_ppm


def test_a_bound_is_never_better_than_the_rate_of_the_recording():
    case = played_marks.scene(0)
    for every in (1, 10, 60):
        rails = [
            rail._replace(
                t_ns=rail.t_ns[every - 1 :: every][: len(rail.W) // every],
                V=rail.V[: len(rail.W) // every],
                W=rail.W[: len(rail.W) // every * every].reshape(-1, every).mean(axis=1),
            )
            for rail in case.recording.rails
        ]
        period_ns = int(np.median(np.diff(rails[0].t_ns)))
        try:
            assert sync.find(case.recording._replace(rails=rails), case.marks).bound_ns >= period_ns
        except UsageError:
            assert period_ns > 1e9 / REFUSED


def test_rises_that_a_busy_host_knows_badly_do_not_widen_the_bound():
    made = [recorded.mark(T_NS + 3 * 10**9, 1), recorded.mark(T_NS + 45 * 10**9, 2)]
    clock = recorded.Clock(T_NS, 3.0, 80.0)
    seen = recorded.recording(made, T_NS, made[1].begin_ns + 8 * 10**9, clock, noise=0.1)
    known = [
        mark._replace(rises=((mark.rises[0][0] - 10_000_000, mark.rises[0][1] + 14_000_000), *mark.rises[1:]))
        for mark in made
    ]
    offset = sync.find(seen, known)
    error_ns, bound_ns = played_marks.errors_ns(offset, clock, np.arange(made[0].begin_ns, made[1].begin_ns, 10**7))
    assert (np.abs(error_ns) <= bound_ns).all() and offset.bound_ns <= 5e6


@pytest.mark.parametrize(
    "ios_ms, interval_ms",
    [
        # one I/O after the other, of 1 ms: the rise is within the first one
        ([(n, n + 1) for n in range(160)], (0, 1)),
        # the second I/O waits for 6 ms: half of the energy that would make an edge comes later
        ([(0, 1), *((n + 7, n + 8) for n in range(160))], (0, 8)),
        # the burst draws nothing after 20 ms: no step
        ([(n, n + 1) for n in range(20)], None),
        ([], None),
    ],
)
def test_a_rise_is_where_the_bytes_of_the_host_have_theirs(ios_ms, interval_ms):
    ios_ns = [(T_NS + a * 10**6, T_NS + z * 10**6) for a, z in ios_ms]
    interval = sync.rise(ios_ns, T_NS - 10**6, T_NS + 200 * 10**6)
    if interval_ms is None:
        assert interval is None
    else:
        assert interval_ms[0] - 1 <= (interval[0] - T_NS) / 1e6 and (interval[1] - T_NS) / 1e6 <= interval_ms[1] + 1
        assert interval[0] <= T_NS and interval[1] >= T_NS + 10**6


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
    seen = recorded.recording([first, last], T_NS, T_NS + 30 * 10**9, recorded.Clock(T_NS, 0, 0), period_ns=250_000_000)
    with pytest.raises(UsageError, match="250 ms"):
        sync.find(seen, [first, last])
    with pytest.raises(UsageError, match="--sync"):
        sync.find(seen, [first])


def test_marks_are_read_from_the_events_of_a_run():
    first = recorded.mark(T_NS, 1)
    damaged = {**recorded.event(first), "rises_ns": [[1]]}
    assert sync.marks([{"kind": "note"}, recorded.event(first), damaged]) == [first]
