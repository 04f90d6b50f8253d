"""Points of a rig with several rails: each rail's own, and the sum where all are there."""

from collections import Counter

import pytest
import synthetic_run
from point_runs import IOPS, POINTS, emit, read

from ssdrig.publish.influx import points


def test_the_drive_s_power_is_the_sum_where_all_rails_are_there(tmp_path):
    """Rail 12V is gone from 2.5 s to 5.5 s after the first I/O: its own points and the sum's miss the whole seconds of
    that."""
    twelve = ("12V", ((-100, 1.0), (0, 6.0)), 740_000, (2.5, 5.5))
    run = synthetic_run.write(tmp_path, IOPS, more_rails=[twelve], name="two-rails")
    lines = read(emit(run))
    assert Counter(m for m, *_ in lines) == points.counts(run)
    at = {rail: {t: f for m, tags, f, t in lines if m == "power" and ("rail", rail) in tags} for rail in ("5V", "12V")}
    total = {
        t: f
        for m, tags, f, t in lines
        if m == "drive_power" and dict(tags) == {"drive": "SIMULATED SATA TLC SIM0001", "run": run.name}
    }
    assert set(total) == set(at["5V"]) & set(at["12V"]) and len(at["5V"]) - len(total) == 2
    assert set(at["12V"]) <= set(at["5V"])
    for t, fields in total.items():
        parts = [at[rail][t] for rail in at]
        assert fields["rails"] == 2
        assert all(
            fields[name] == pytest.approx(sum(part[name] for part in parts), rel=1e-12)
            for name in ("p_mean_W", "energy_J", "samples", "lost")
        )
        assert fields["t_err_ns"] == max(part["t_err_ns"] for part in parts)
    assert sum(f["p_mean_W"] == pytest.approx(8.5, rel=1e-3) for f in total.values()) >= len(IOPS) - 5
    (run / POINTS).write_bytes((run / POINTS).read_bytes()[:5000])
    assert read(emit(run)) == lines, "taken up again it comes to other lines"


def test_two_rails_of_one_name_are_two_series(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, more_rails=[("5V", ((-100, 1.0),), 1_000_000, None)], name="namesakes")
    lines = read(emit(run))
    assert {dict(tags)["rail"] for m, tags, *_ in lines if m == "power"} == {"5V 0", "5V 1"}
    assert Counter(m for m, *_ in lines) == points.counts(run)
