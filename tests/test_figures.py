import json
import statistics
from dataclasses import replace

import pytest
from synthetic_run import IOPS, WINDOW, run_of

from ssdrig.figures import KEYS, figures_of


def test_all_keys_are_there_and_are_json(tmp_path):
    _, f = run_of(tmp_path)
    assert tuple(f) == KEYS
    assert json.loads(json.dumps(f, allow_nan=False)) == f
    assert f["notes"] == [] and [k for k in f if f[k] is None] == [
        "why",
        "idle_mean_W",
        "idle_uncertainty_W",
        "wa_settled",
        "purge",
    ]


def test_iops_statistics_are_of_the_window_and_count_zeros(tmp_path):
    data, f = run_of(tmp_path)
    assert data.iops.tolist() == IOPS
    assert f["window_s"] == [12, 31]
    assert f["iops_mean"] == pytest.approx(statistics.mean(WINDOW))
    assert f["iops_sd"] == pytest.approx(statistics.stdev(WINDOW))
    assert f["consistency"] == pytest.approx(statistics.mean(WINDOW) / statistics.stdev(WINDOW))
    assert (f["iops_min"], f["zero_seconds"]) == (0, 2)
    ordered = sorted(WINDOW)  # 19 values: rank r of percentile q is q/100 x 18, linear between
    assert (ordered[:4], f["iops_p50"]) == ([0, 0, 500, 1000], 1000)
    assert f["iops_p5"] == 0.0 and f["iops_p1"] == 0.0  # ranks 0.9 and 0.18
    assert f["ios"] == sum(IOPS)
    assert f["iops_all_mean"] == pytest.approx(sum(IOPS) / 31)
    assert f["zoom_s"] == 12 and f["duration_s"] == 31


def test_percentiles_interpolate(tmp_path):
    _, f = run_of(tmp_path, [5000] * 4 + list(range(1000, 1101, 10)), zoom_s=4)
    assert [f[k] for k in ("iops_p0_1", "iops_p1", "iops_p5", "iops_p50")] == pytest.approx([1000.1, 1001, 1005, 1050])


def test_sd_of_zero_gives_no_consistency(tmp_path):
    _, f = run_of(tmp_path, [4000] * 20, zoom_s=10)
    assert (f["iops_mean"], f["iops_sd"], f["consistency"]) == (4000, 0, None)
    assert "consistency: the standard deviation is 0" in f["notes"]


def test_a_zoom_past_the_end_gives_no_statistics(tmp_path):
    _, f = run_of(tmp_path, [4000] * 8, zoom_s=7)
    assert f["iops_mean"] is None and f["window_s"] is None and f["iops_all_mean"] == 4000
    assert any("8 whole seconds, the zoom starts at 7 s" in n for n in f["notes"])


def test_a_load_without_a_zoom_is_judged_from_its_start(tmp_path):
    data, _ = run_of(tmp_path)
    data.header["method"]["zoom_s"] = None
    f = figures_of(data)
    assert f["window_s"] == [0, 31] and f["iops_mean"] == pytest.approx(statistics.mean(IOPS))


def test_what_the_drive_wrote_afterwards_is_told_apart(tmp_path):
    data, f = run_of(tmp_path)
    later = figures_of(replace(data, wa_settled=replace(data.wa_total, value=4.0)))
    assert (f["wa_settled"], later["wa_settled"], later["wa"]) == (None, 4.0, f["wa"])


def test_energy_per_io_is_of_the_whole_load_also_its_last_part_of_a_second(tmp_path):
    data, f = run_of(tmp_path)
    more = figures_of(replace(data, load_energy_J=100.0, load_s=31.5))
    assert (more["energy_J"], more["power_mean_W"], more["iops_per_W"]) == (
        100.0,
        pytest.approx(100 / 31.5),
        sum(IOPS) / 100,
    )
