import json
import statistics

import pytest
import synthetic_run
from synthetic_run import IOPS, WINDOW, changed, other_notes, run_of, whole

from ssdrig.base.errors import UsageError
from ssdrig.plan.rules import windows
from ssdrig.reading import directions, table
from ssdrig.reading.course import KEYS
from ssdrig.report import over_op, screen, words


def test_all_keys_are_there_and_are_json(tmp_path):
    _, f = run_of(tmp_path)
    assert tuple(f) == KEYS
    assert json.loads(json.dumps(f, allow_nan=False)) == f
    own_work = "wa: its error would be "  # its fill was 50 times as fast as its load
    too_short = ": errors: "  # its windows
    assert [note for note in other_notes(f) if own_work not in note and too_short not in note] == [
        "own_power_ratio: the drive does not report its own energy or power",
        "fresh, 0–12 s: consistency: the standard deviation is 0",
    ]
    assert {k for k in f if f[k] is None} == {
        *directions.KEYS,  # of a whole step only
        "lat_p9999_us",
        "clat_p9999_us",
        "why",
        "idle_s",
        "idle_mean_W",
        "idle_uncertainty_W",
        "wa_settled",
        "purge",
        "iops_p0_1",
        "iops_p1",
        "iops_p5",
        "lat_p50_us",
        "lat_p99_us",
        "lat_p999_us",
        "lat_p99999_us",
        "clat_p99999_us",
        "lat_max_us",
        "littles_qd",
        "littles_error_percent",
        "energy_uJ_per_io_above_idle",
        "peak_100us_W",
        "peak_100us_uncertainty_W",
        "own_power_ratio",
        "own_power_ratio_error",
        "own_power_ratio_of",
    }


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
    assert f["ios"] == sum(WINDOW) and f["windows"]["all"]["ios"] == sum(IOPS)
    assert f["iops_all_mean"] == pytest.approx(sum(IOPS) / 31)
    assert f["zoom_s"] == 12 and f["duration_s"] == 31


def test_percentiles_interpolate(tmp_path):
    _, f = run_of(tmp_path, [50] * 4 + list(range(100, 301)), zoom_s=4, power=False)
    assert f["iops_p5"] == pytest.approx(110) and f["iops_p50"] == 200
    assert (f["iops_p1"], f["iops_p0_1"]) == (None, None)
    for key, needs in (("iops_p0_1", 10_000), ("iops_p1", 1000)):
        assert f"steady, 4–205 s: {key}: 201 s are too few for this percentile, which needs {needs}" in f["notes"]


def test_sd_of_zero_gives_no_consistency(tmp_path):
    _, f = run_of(tmp_path, [4000] * 20, zoom_s=10)
    assert (f["iops_mean"], f["iops_sd"], f["consistency"]) == (4000, 0, None)
    assert "steady, 10–20 s: consistency: the standard deviation is 0" in f["notes"]


def test_a_zoom_past_the_end_gives_no_statistics(tmp_path):
    _, f = run_of(tmp_path, [4000] * 8, zoom_s=7)
    assert f["iops_mean"] is None and f["window_s"] is None and f["iops_all_mean"] == 4000
    assert f["windows"]["steady"] is None and f["windows"]["all"]["iops_mean"] == 4000
    assert "window steady: the step lasted 8 whole seconds" in f["notes"]


def test_a_load_without_a_zoom_is_judged_from_its_start(tmp_path):
    _, f = run_of(tmp_path, zoom_s=0)
    assert f["window_s"] == [0, 31] and f["iops_mean"] == pytest.approx(statistics.mean(IOPS))


def test_each_window_has_its_own_figures_and_the_flat_keys_are_those_of_steady(tmp_path):
    """12 s at 20 000 with 2 W, then the slow part with 3 W: what the issue found mixed on one page."""
    _, f = run_of(tmp_path, watts=((-100, 1.0), (0, 2.0), (12, 3.0)))
    fresh, steady = f["windows"]["fresh"], f["windows"]["steady"]
    assert [f["windows"][n]["t0_s"] for n in ("fresh", "all", "steady")] == [0, 0, 12]
    assert [f["windows"][n]["t1_s"] for n in ("fresh", "all", "steady")] == [12, 31, 31]
    assert fresh["ios"] == 240_000 and fresh["energy_uJ_per_io"] == pytest.approx(100, rel=1e-3)
    assert steady["energy_uJ_per_io"] == pytest.approx(1e6 * 3 * 19 / sum(WINDOW), rel=1e-3)
    assert whole(f)["energy_J"] == pytest.approx(24 + 57, rel=1e-3)
    for key in set(steady) & set(f) - {"rails", "trust", "notes"}:
        assert f[key] == steady[key], key


def test_drive_writes_stand_beside_every_time(tmp_path):
    _, f = run_of(tmp_path)
    per_io = 4096 / f["tested_bytes"]
    assert f["windows"]["fresh"]["drive_writes_t0"] == 0
    assert f["drive_writes_t0"] == pytest.approx(240_000 * per_io)
    assert f["drive_writes_t1"] == pytest.approx(sum(IOPS) * per_io)


def test_littles_check(tmp_path):
    """4000 I/Os a second at 8 ms are 32 in flight; at 7 ms they are not, and that is said."""
    _, right = run_of(tmp_path / "right", [4000] * 8, zoom_s=2, lat_ns=8_000_000, queue_depth=32)
    assert right["littles_qd"] == pytest.approx(32, rel=0.01) and abs(right["littles_error_percent"]) < 1
    assert not [n for n in right["notes"] if "littles" in n]
    _, wrong = run_of(tmp_path / "wrong", [4000] * 8, zoom_s=2, lat_ns=7_000_000, queue_depth=32)
    assert wrong["littles_error_percent"] == pytest.approx(-12.5, abs=1)
    assert any(n.startswith("steady, 2–8 s: littles_qd: ") for n in wrong["notes"])


def test_a_window_by_name(tmp_path):
    f = table.in_full(synthetic_run.write(tmp_path, IOPS, zoom_s=12), more=[("burst", 4, 8), ("late", 30, 40)]).figures
    assert f["windows"]["burst"]["ios"] == 80_000 and f["windows"]["burst"]["label"] == "burst, 4–8 s"
    assert f["windows"]["late"] is None
    assert "window late: the step lasted 31 whole seconds, and the window ends at 40 s" in f["notes"]


@pytest.mark.parametrize("text", ["burst", "burst=1", "=1:2", "all=1:2", "b=-1:3", "b=1.5:3", "b=1:2:3"])
def test_a_window_that_makes_no_sense_is_refused(text):
    with pytest.raises(UsageError):
        windows.parse(text)
    assert windows.parse("burst=10:20") == ("burst", 10, 20)


def test_clat_percentiles_are_of_the_windows_own_io(tmp_path):
    """lat is not clat: fio's histogram log is of clat, so percentiles of lat are not known here."""
    course = table.in_full(synthetic_run.write(tmp_path, [2000] * 20, zoom_s=10, power=False))
    slow = course.data.hist.copy()
    slow[slow[:, 0] < 10, 1] += 64  # twice the latency before the zoom
    f = changed(course, hist=slow)
    assert f["clat_p99_us"] == pytest.approx(800, rel=0.01)
    assert f["windows"]["fresh"] is None and f["windows"]["all"]["clat_p99_us"] == pytest.approx(1600, rel=0.01)
    assert f["lat_p99_us"] is None and any("lat_p99_us" in n and "no histogram of lat" in n for n in f["notes"])


def test_lat_percentiles_are_of_the_documents_nearest_the_edges(tmp_path):
    """Our own status lines keep a histogram of lat: 0.8 ms before the zoom, 1.6 ms behind it."""
    run = synthetic_run.write(tmp_path, [2000] * 20, zoom_s=10, power=False)
    lines = []
    for second in range(1, 21):
        bins = {"800000": 2000 * min(second, 10)} | ({"1600000": 2000 * (second - 10)} if second > 10 else {})
        lat = {"N": 2000 * second, "mean": 8e5, "bins": bins}
        side = {"total_ios": 2000 * second, "io_bytes": 8192000 * second, "runtime": 1000 * second + 200}
        job = {"jobname": "load", "error": 0, "job_runtime": 1000 * second + 200}
        job["write"] = side | {"clat_ns": {"N": 2000 * second, "mean": 8e5}, "lat_ns": lat}
        t_ns = synthetic_run.T_RUN_NS + 3_750_000_000 + (1000 * second + 200) * 10**6
        utc_ms = (t_ns - synthetic_run.T_RUN_NS + synthetic_run.UTC_RUN_NS) // 10**6
        lines.append(json.dumps({"t_ns": t_ns, "timestamp_ms": utc_ms, "jobs": [job]}, separators=(",", ":")))
    (run / "fio" / "load" / "out.json").write_text("\n".join(lines) + "\n")
    course = table.in_full(run, more=[("early", 0, 10)])
    data, f, _ = course
    assert f["lat_p50_us"] == f["lat_p99_us"] == pytest.approx(1600, rel=0.01)
    assert f["windows"]["early"]["lat_p99_us"] == pytest.approx(800, rel=0.01)
    assert f["windows"]["all"]["lat_p50_us"] == pytest.approx(800, rel=0.01)
    assert f["clat_p99_us"] == pytest.approx(800, rel=0.01)  # of fio's own log
    chosen = data.lat_t_s < 15
    fewer = {"lat_t_s": data.lat_t_s[chosen], "lat_hist": data.lat_hist[data.lat_hist[:, 0] < chosen.sum()]}
    assert changed(course, **fewer)["lat_p99_us"] is None


def test_a_percentile_needs_ten_values_beyond_it(tmp_path):
    _, f = run_of(tmp_path, [99] * 10, zoom_s=0, power=False)  # 990 I/Os
    assert f["clat_p50_us"] is not None and f["clat_p99_us"] is None and f["clat_p999_us"] is None
    assert any("clat_p99_us: 990 I/Os are too few" in n for n in f["notes"])
    _, f = run_of(tmp_path / "more", [100] * 10, zoom_s=0, power=False)
    assert f["clat_p99_us"] is not None


@pytest.mark.usefixtures("short_loads_have_errors")
def test_energy_above_idle_needs_to_be_above_it(tmp_path):
    course = table.in_full(synthetic_run.write(tmp_path, IOPS, zoom_s=12))
    near_W = course.figures["power_mean_W"]
    f = changed(course, idle_mean_W=near_W, idle_uncertainty_W=0.01)
    assert f["energy_uJ_per_io_above_idle"] is None and any("above_idle" in note for note in f["notes"])
    f = changed(course, idle_mean_W=0.2, idle_uncertainty_W=0.01)
    assert 0 < f["errors"]["energy_uJ_per_io_above_idle"] < f["energy_uJ_per_io_above_idle"]


def test_energy_above_idle(tmp_path):
    course = table.in_full(synthetic_run.write(tmp_path, IOPS, zoom_s=12))
    f = changed(course, idle_mean_W=1.0)
    assert f["energy_uJ_per_io_above_idle"] == pytest.approx(1e6 * 1.5 / statistics.mean(WINDOW), rel=1e-4)


def spare(course, raw, tested, assumed=False, capacity=10**12):
    """The figures of a run of that drive."""
    drive = {"capacity_bytes": capacity, "raw_nand_bytes": raw, "raw_nand_assumed": assumed}
    return changed(course, tested_bytes=tested, drive=drive) | {"op_percent": None}


def test_over_provisioning_by_both_definitions_and_what_theory_says_of_it(tmp_path):
    course = table.in_full(synthetic_run.write(tmp_path, IOPS, zoom_s=12, power=False))
    f = spare(course, 1.3 * 10**12, 10**12)
    assert (f["op_raw_percent"], f["op_user_percent"]) == (pytest.approx(100 * 0.3 / 1.3), 0)
    assert f["alpha"] == 1.3 and f["wa_closed_form"] == pytest.approx(2.364, abs=5e-4)  # arXiv 1110.4245: 2.36
    f = spare(course, 10**12, 750 * 10**9)
    assert (f["op_raw_percent"], f["op_user_percent"], f["alpha"]) == (25, 25, pytest.approx(4 / 3))
    unknown = spare(course, None, 800 * 10**9)
    assert unknown["op_user_percent"] == pytest.approx(20) and unknown["alpha"] is unknown["wa_closed_form"] is None
    assert any("the raw NAND is not known" in note for note in unknown["notes"])
    assert spare(course, 10**12, 10**12)["wa_closed_form"] is None, "nothing is left unwritten"


def test_what_follows_from_an_assumed_raw_nand_is_called_assumed(tmp_path):
    course = table.in_full(synthetic_run.write(tmp_path, IOPS, zoom_s=12, power=False))
    f = spare(course, 1 << 40, 750 * 10**9, assumed=True)
    assert f["raw_nand_assumed"] is True and any("raw NAND assumed: 1024 GiB" in note for note in f["notes"])
    known = spare(course, 1 << 40, 10**12)
    (first, second) = over_op.rows([f, known])
    assert first[0] == "9.1 %" and second[0] == "31.8 % (assumed)" and second[2] == "1.466 (assumed)"
    assert second[6].endswith(" (assumed)") and second[1] == "25.0 %"
    text = over_op.section([f, known])
    assert text.count("(assumed)") == 3 and "OP of user" in text and over_op.section([known, known]) == ""
    assert "over-provisioning" in screen.short_table([f, known])
    assert "raw NAND assumed" in words.labels([f | {"op_percent": 25.0}])[0][1]


@pytest.mark.parametrize("real", [0, 2])
def test_rows_of_many_simulated_runs_are_told_apart(tmp_path, monkeypatch, real):
    """What a narrow terminal left of each name was the SIMULATED behind it."""
    monkeypatch.setenv("COLUMNS", "80")
    _, f = run_of(tmp_path, power=False)
    several = [f | {"model": f"Maker's long name of a drive {i}", "simulated": i >= real} for i in range(4)]
    rows = screen.short_table(several).splitlines()
    assert all("trust" in line for line in rows[:4]) and not rows[4]
    rows = rows[5:]
    assert [line[: line.index("  ")][-1] for line in rows[1:5]] == list("0123")
    assert "SIMULATED: " + ("all of them" if not real else "2; 3") in rows
