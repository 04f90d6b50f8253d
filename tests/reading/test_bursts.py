"""reading/bursts.py: what bursts do a second and what pauses draw, from a load of known seconds."""

from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.uncertain import mean_error
from ssdrig.plan.kinds import load as step
from ssdrig.reading import bursts

FIRST, ON, OFF, CYCLES = 15, 5, 10, 6


def load(off=OFF, watts=0.4):
    """A first burst of on + off, then pauses at `watts` with an edge of 3 W on both sides, and bursts of 1000, 2000, …
    IOPS at 4 W; a tenth of a burst's last second completes in the pause behind it."""
    iops, power = [9000] * FIRST, [4.0] * FIRST
    for cycle in range(1, CYCLES + 1):
        iops += [0] * off + [1000 * cycle] * ON
        power += [3.0] + [watts] * (off - 2) + [3.0] + [4.0] * ON
    return SimpleNamespace(iops=np.array(iops, float), power_mean_W=np.array(power), rails=[], k=1)


def test_bursts_and_pauses_are_told_apart():
    data = load()
    cycles, why = bursts.of(data, FIRST, FIRST, len(data.iops), ON, OFF)
    errors = cycles.pop("errors")
    assert why is None and cycles == {"cycles": 6, "burst_iops": 3500, "pause_mean_W": pytest.approx(0.4)}
    assert errors["burst_iops"] > 0


def test_a_window_counts_whole_cycles_only():
    data, period = load(), ON + OFF
    late = FIRST + 4 * period
    assert bursts.of(data, FIRST, late - 3, late + 2 * period, ON, OFF)[0]["burst_iops"] == 5500
    assert bursts.of(data, FIRST, late + 1, late + 2 * period, ON, OFF)[0]["burst_iops"] == 6000
    assert bursts.of(data, FIRST, 0, FIRST + period, ON, OFF)[0]["burst_iops"] == 1000
    cycles, why = bursts.of(data, FIRST, late + 1, late + 2 * period - 1, ON, OFF)
    assert cycles == dict.fromkeys(bursts.KEYS) and why.startswith("no complete pause")


def test_a_second_with_io_is_none_of_a_pause_where_the_cycles_come_late():
    """Each cycle 13 ms late, such as of a busy host: where the last 60 of 360 pauses should be are bursts, at 4 W."""
    cycles, on, off, late_ms = 360, 5, 5, 13
    at_ms = np.arange((on + off) * 1000 * cycles)
    resting = at_ms % ((on + off) * 1000 + late_ms) < off * 1000
    by_second = np.concatenate([np.zeros(on + off), resting.reshape(-1, 1000).mean(axis=1)])
    data = SimpleNamespace(iops=10_000 * (1 - by_second), power_mean_W=4 - 3.6 * by_second, rails=[], k=1)
    cycle, why = bursts.of(data, 10, 10, len(by_second), on, off)
    assert why is None and cycle["pause_mean_W"] == pytest.approx(0.4)
    assert cycle["burst_iops"] == pytest.approx(10_000, rel=0.005)
    cycle, why = bursts.of(data, 10, 10 + 310 * 10, len(by_second), on, off)
    assert cycle["pause_mean_W"] is None and "came so late" in why and cycle["cycles"] == 50


def test_the_error_of_the_pauses_is_how_they_differ(monkeypatch):
    """Each second of a pause is like the others of it; a single short cycle shows nothing."""
    monkeypatch.setattr(bursts.errors, "budget_W", lambda *_: 0.001)
    data = load()
    period, error = ON + OFF, {}
    for cycle in range(CYCLES):
        at = FIRST + cycle * period
        data.power_mean_W[at + 1 : at + OFF - 1] = 0.4 if cycle % 2 else 0.6
    for count in (CYCLES, 1):
        of, _ = bursts.of(data, FIRST, FIRST, FIRST + count * period, ON, OFF)
        error[count] = of["errors"].get("pause_mean_W")
    assert error[1] is None and error[CYCLES] == pytest.approx(mean_error([0.6, 0.4] * 3), rel=0.01)


def test_what_is_not_known_is_none_with_the_reason():
    data = load()
    data.power_mean_W[FIRST + 4] = np.nan
    cycles, why = bursts.of(data, FIRST, FIRST, len(data.iops), ON, OFF)
    assert cycles["burst_iops"] == 3500 and cycles["pause_mean_W"] is None and "do not cover" in why
    assert bursts.of(data, FIRST, FIRST, len(data.iops), 0.5, OFF) == (
        dict.fromkeys(bursts.KEYS),
        "bursts and pauses are not of whole seconds",
    )
    assert bursts.of(load(2), FIRST, FIRST, len(load(2).iops), ON, 2)[1].startswith("pauses of 2 s")


def test_a_load_with_pauses_is_priced_by_its_bursts():
    act = SimpleNamespace(keys={"on": 5.0, "off": 50.0, "cycles": 2})
    assert step.longest_s(act) == 3 * 55 and step.busy_share(act) == pytest.approx((55 + 2 * 5) / 165)
    assert step.busy_share(SimpleNamespace(keys={"time": 60.0})) == 1


@pytest.mark.parametrize(
    ("lasted", "period", "end"), [(45, 15, 45), (55, 15, 45), (44, 15, 30), (29, 15, 29), (50, 2.5, 50)]
)
def test_a_pause_behind_the_last_burst_does_not_count(lasted, period, end):
    assert bursts.end_s(lasted, 15, period) == end
