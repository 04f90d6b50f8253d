"""The meter against the drive's own report: in 100 runs of model time, and where it must say nothing."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from test_smartlog import HEALTH

from ssdrig.drive.smart import counters, nvme_pages
from ssdrig.meter import power, uncertainty
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import own_report, window_figures
from ssdrig.reading.rundata import RunData
from ssdrig.virtual.device import smartlog

S = 1_000_000_000
H = 3600 * S
RIG_PERCENT = 0.5  # k = 2
STEP_NS = 10_000_000


def meter(energy_J, error_ns=0.0):
    """A rig of one rail that is always there, by its running energy (J) at host times."""

    def edges(t_ns):
        errors = np.full(len(t_ns), float(error_ns))
        around = np.asarray(t_ns)[:, None] + uncertainty.shifts_ns(errors)
        return uncertainty.Edges(np.asarray(t_ns), errors, energy_J(around))

    gaps, ever = power.Gaps(*[np.empty(0, np.int64)] * 6), (-(1 << 60), 1 << 60)
    return [SimpleNamespace(span_ns=ever, gaps=gaps, integral_J=lambda t_ns: energy_J(np.asarray(t_ns)), edges=edges)]


def bursts_J(t_ns):
    """9 W and 0.5 W, a second each in turn."""
    seconds = np.asarray(t_ns) / S
    return 4.75 * (seconds - seconds % 2) + np.minimum(seconds % 2, 1) * 9 + np.maximum(seconds % 2 - 1, 0) * 0.5


def read_at(begin_ns: int, end_ns: int | None = None) -> dict:
    """The times of a poll."""
    end_ns = begin_ns if end_ns is None else end_ns
    return {"t_start_ns": begin_ns, "t_end_ns": end_ns, "t_ns": (begin_ns + end_ns) // 2}


def snapshots(t_ns, energy_J, reported_s, reported_share, latency_ns=None) -> list[dict]:
    """Its reports at t_ns: mean power of the second up to reported_s (drive's own ticks), energy until then; of
    polls that begin up to latency_ns (before the answer, after it) sooner and end so much later."""
    out = []
    latency_ns = np.zeros((len(t_ns), 2), np.int64) if latency_ns is None else latency_ns
    for at, tick, (before, after) in zip(t_ns, reported_s, latency_ns.tolist(), strict=True):
        until = round(tick * S)
        joules = float(energy_J(until))
        h = HEALTH | {
            "energy_Wh": math.ceil(reported_share * joules / 3600),
            "interval_W": reported_share * (joules - float(energy_J(until - S))),
        }
        page = nvme_pages.decode_02h(smartlog.log_02h(h))
        report = {key: page[key] for key in ("interval_power_W", "lifetime_energy_Wh")}
        out.append(read_at(int(at) - before, int(at) + after) | report)
    return out


def a_run(
    seed: int,
    reported_share: float,
    length_s: int = 120,
    every_s: float = 10.0,
    changing: float = 0.1,
    error_ns=0.0,
    late_s: float = 0.0,
    dip: float = 0.0,
):
    """(run, Comparison) of a load whose power wanders, in steps of 10 ms. late_s: how long a poll takes at most, in
    which the drive answers at any moment; dip: by which share the power falls during it."""
    rng = np.random.default_rng(seed)
    n = (length_s + 10) * S // STEP_NS
    level = rng.uniform(0.6, 6.0)
    wander = np.interp(
        np.arange(n), np.arange(0, n + 300, 300), rng.normal(0, changing, len(np.arange(0, n + 300, 300)))
    )
    watts = level * np.maximum(0.05, 1 + wander + rng.normal(0, 0.2, n))
    t_ns = ((np.arange(4, length_s, every_s) + rng.uniform(0, 0.9, len(np.arange(4, length_s, every_s)))) * S).astype(
        np.int64
    )
    latency_ns = (rng.uniform(0, late_s * S, len(t_ns))[:, None] * [0, 1]).astype(np.int64)
    if late_s:
        latency_ns[:, 0] = latency_ns[:, 1] * rng.uniform(0, 1, len(t_ns))
        latency_ns[:, 1] -= latency_ns[:, 0]
    for begin, end in zip(t_ns - latency_ns[:, 0], t_ns + latency_ns[:, 1], strict=True):
        watts[begin // STEP_NS : end // STEP_NS] *= 1 - dip
    done = rng.uniform(0, 1e5) + np.concatenate([[0.0], np.cumsum(watts * STEP_NS / S)])
    edges = STEP_NS * np.arange(n + 1, dtype=np.int64)
    energy_J = lambda t_ns: np.interp(t_ns, edges, done)
    phase = rng.uniform(0, 1)
    ticks = np.floor(t_ns / S - phase) + phase
    gain = 1 + rng.normal(0, RIG_PERCENT / 200)
    data = RunData({}, [], "complete", None, 1, t0_ns=0)
    data.snapshots = snapshots(t_ns, energy_J, ticks, reported_share, latency_ns)
    own_report.place(data, meter(lambda t_ns: gain * energy_J(t_ns - error_ns), error_ns))
    return data, own_report.compare(data, 0, length_s * S, RIG_PERCENT)


def test_an_honest_drive_is_found_honest_in_95_of_100_runs():
    reports = [a_run(seed, 1.0)[1] for seed in range(100)]
    assert sum(abs(report.ratio - 1) <= report.error for report in reports) >= 95
    assert np.median([report.error for report in reports]) < 0.05  # not too wide to be of use


@pytest.mark.parametrize("dip", [0.0, 0.5])
@pytest.mark.parametrize(("length_s", "every_s"), [(120, 10.0), (20, 5.0), (60, 1.0)])
def test_late_answers_leave_95_of_100_ratios_inside(length_s, every_s, dip):
    """A busy host: each poll takes up to 500 ms, and the load may halve while it lasts."""
    more = {"length_s": length_s, "every_s": every_s, "late_s": 0.5, "dip": dip}
    reports = [a_run(seed, 0.9, **more)[1] for seed in range(300)]
    known = [report for report in reports if report.ratio is not None]
    inside = sum(abs(report.ratio - 1 / 0.9) <= report.error for report in known)
    assert len(known) >= 200 and inside >= 0.95 * len(known)


@pytest.mark.parametrize("error_s", [0.05, 0.4, 2.0])
def test_an_honest_drive_is_not_accused_by_a_clock_that_is_late(error_s):
    """The rig's times are off by as much as they may be, and the load's power changes by a third all the time."""
    reports = [a_run(seed, 1.0, changing=0.33, error_ns=error_s * S)[1] for seed in range(60)]
    known = [report for report in reports if report.ratio is not None]
    assert sum(abs(report.ratio - 1) <= report.error for report in known) >= 0.95 * len(known)
    prompt = [a_run(seed, 1.0, changing=0.33)[1] for seed in range(60)]
    wider = [
        late.error > early.error for late, early in zip(reports, prompt, strict=True) if late.error and early.error
    ]
    assert all(wider) and (wider or not known)


def test_a_drive_that_is_10_percent_off_is_found_in_the_first_run():
    data, report = a_run(1, 0.9)
    assert report.ratio - 1 > report.error and report.ratio == pytest.approx(1 / 0.9, abs=report.error)
    assert report.of == "power" and report.readings == 12


def test_by_the_energy_of_hours_where_there_is_no_power():
    rng, inside = np.random.default_rng(3), 0
    for _ in range(100):
        joules, begin = rng.uniform(1e5, 3e5), rng.uniform(0, 3600)
        counts = [math.ceil(e / 3600) for e in (begin, begin + joules)]
        data = RunData({}, [], "complete", None, 10)
        data.snapshots = [read_at(t) | {"lifetime_energy_Wh": c} for t, c in zip((H, 9 * H), counts, strict=True)]
        # a dilated drive: what the rig saw in the host's time is ten times its energy
        gain = 1 + rng.normal(0, 0.0025)
        own_report.place(data, meter(lambda t_ns, J=joules * gain: 10 * J * t_ns / (8 * H)))
        report = own_report.compare(data, 0, 10 * H, RIG_PERCENT)
        assert report.of == "energy" and report.error < 0.05
        inside += abs(report.ratio - 1) <= report.error
    assert inside >= 95


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"interval_power_W": None, "lifetime_energy_Wh": None}, "not report its own energy or power"),
        ({"interval_power_W": None, "lifetime_energy_Wh": 7}, "no reading of the drive's own power"),
        ({"interval_power_W": 0.0, "lifetime_energy_Wh": None}, "no reading of the drive's own power"),
    ],
)
def test_where_the_drive_says_nothing(change, why):
    data, _ = a_run(1, 1.0)
    data.snapshots = [snapshot | change for snapshot in data.snapshots]
    own_report.place(data, meter(lambda t_ns: t_ns / S))
    report = own_report.compare(data, 0, 120 * S, RIG_PERCENT)
    assert report.ratio is None and why in report.why


def test_what_would_say_nothing_is_null():
    data, _ = a_run(1, 1.0)
    assert "uncertainty of the rig" in own_report.compare(data, 0, 120 * S, None).why
    assert "no reading" in own_report.compare(data, 0, 2 * S, 0.5).why
    # bursts of a second: nobody knows which of them the drive's second held
    own_report.place(data, meter(bursts_J))
    report = own_report.compare(data, 0, 20 * S, 0.5)
    assert report.ratio is None and "over 20 %" in report.why


def test_a_window_has_it_with_its_reason():
    data, report = a_run(1, 0.9)
    data.rails, notes = [object()], []
    figures = window_figures.own_power(data, Window("all", 0, 120, {}), RIG_PERCENT, notes)
    of = {"own_power_ratio_of": "power, 12 readings"}
    assert figures == {"own_power_ratio": report.ratio, "own_power_ratio_error": report.error} | of
    assert any("off by -10" in note or "off by -9" in note or "off by -11" in note for note in notes)
    assert window_figures.own_power(data, Window("end", 119, 120, {}), RIG_PERCENT, notes) == {}
    assert notes[-1].startswith("own_power_ratio: no reading of the drive's own power in it")
    # of a drive that reports nothing the run has one note
    data.snapshots, data.header = [read_at(S)], {"rig": {}}
    own_report.place(data, meter(lambda t_ns: t_ns / S))
    assert data.notes == [f"own_power_ratio: {own_report.NOTHING}"]
    assert window_figures.own_power(data, Window("all", 0, 120, {}), RIG_PERCENT, []) == {}


def test_a_snapshot_has_both():
    page = smartlog.log_02h(HEALTH | {"energy_Wh": 12, "interval_W": 1.25})
    document = {"t_start_ns": 0, "t_end_ns": 1, "reason": "poll", "log_02h": page.hex()}
    snapshot = counters.snapshot(document)
    assert (snapshot["lifetime_energy_Wh"], snapshot["interval_power_W"]) == (12, 1.25)
