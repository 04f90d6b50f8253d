"""The figures of a window, each limit from both sides, of runs made by hand."""

import numpy as np
import pytest

from ssdrig.load.fiotext import BINS, plat_ns, plat_upper_ns
from ssdrig.plan.rules import windows
from ssdrig.plan.rules.windows import Unfinished, Window
from ssdrig.reading import RunData, window_figures
from ssdrig.reading.rundata import NearEdges, Rail

FACTS = {"chip": "INA228", "shunt_uOhm": 15000, "current_lsb_pA": 7_812_500, "vbus_lsb_nV": 195_312.5}
LOW, HIGH = 300, 500  # bins


def exactly(value: float):
    """A factor such as 1e9 must be right to its last digit."""
    return pytest.approx(value, rel=1e-12)


def run(iops, *, k=1, lat_us=100.0, **method) -> RunData:
    data = RunData({"method": method, "started": {"t_ns": 0}}, [], "complete", None, k)
    data.iops = np.array(iops, float)
    data.bw_Bps = data.iops * 4096
    data.lat_mean_us = np.where(data.iops > 0, np.full(len(iops), lat_us), np.nan)
    data.load_s = float(len(iops))
    data.temp_t_s = data.temperature_C = np.empty(0)
    return data


def rail_of(watts, **more) -> Rail:
    n = len(watts)
    watts = np.array(watts, float)
    rail = Rail(0, "5V", watts, watts + 1)
    rail.samples, rail.samples_lost = np.full(n, 10), np.arange(n)
    rail.clipped, rail.clock_error_ns = np.zeros(n, int), 1000.0 * np.arange(n)
    rail.scatters_W, rail.low = np.stack([10 * watts, 10 * watts**2]), np.zeros((2, n))
    rail.facts, rail.volts_V = FACTS, 5.0
    for name, value in more.items():
        setattr(rail, name, value)
    return rail


def powered(data: RunData, *rails: Rail) -> RunData:
    data.rails = list(rails)
    data.energy_J = data.power_mean_W = sum(rail.power_mean_W for rail in rails)
    data.power_max_W = sum(rail.power_max_W for rail in rails)
    return data


def figures(data: RunData, t0_s=0, t1_s=None) -> dict:
    window = Window("some", t0_s, len(data.iops) if t1_s is None else t1_s, {"passed": None})
    return window_figures.figures_in(data, window)


def noted(out: dict, words: str) -> bool:
    return any(words in note for note in out["notes"])


@pytest.mark.parametrize(
    ("near", "off_W"),
    [
        (NearEdges(np.array([9, 2, 2, 2, 2]), np.full(5, 2), np.full(4, 5), np.full(4, 5)), 4.0),  # just before it
        (NearEdges(np.full(5, 2), np.array([2, 2, 2, 2, 7]), np.full(4, 5), np.full(4, 5)), 2.0),  # just after it
        (NearEdges(np.full(5, 2), np.full(5, 2), np.array([3, 5, 5, 5]), np.full(4, 5)), 0.0),  # another is as high
        (NearEdges(np.full(5, np.nan), np.full(5, 2), np.full(4, 5), np.full(4, 5)), 0.0),  # no sample there
    ],
)
def test_the_highest_sample_may_be_one_at_an_edge(near, off_W):
    data = powered(run([1, 2, 3, 4]), rail_of([4, 4, 4, 4]))
    quiet = figures(data)["errors"]["power_max_W"]
    data.near_edges = near
    assert figures(data)["power_max_W"] == 5 and figures(data)["errors"]["power_max_W"] == pytest.approx(quiet + off_W)


def test_the_highest_sample_in_the_first_second_may_belong_to_the_one_before():
    data = powered(run([1, 2, 3, 4]), rail_of([8, 4, 4, 4]))
    data.near_edges = NearEdges(np.full(5, 2), np.full(5, 2), np.array([6, 5, 5, 5]), np.full(4, 5))
    without = figures(data)["errors"]["power_max_W"]
    data.near_edges = None
    assert without - figures(data)["errors"]["power_max_W"] == pytest.approx(9 - 6)


def test_drive_writes_are_what_was_written_before_each_edge():
    out = figures(run([1, 2, 3, 4], tested_bytes=4096 * 2), 1, 3)
    assert (out["drive_writes_t0"], out["drive_writes_t1"]) == (0.5, 3.0)
    assert figures(run([1, 2]))["drive_writes_t0"] is None


@pytest.mark.parametrize(("key", "needs"), [("iops_p5", 200), ("iops_p1", 1000), ("iops_p0_1", 10_000)])
def test_a_percentile_of_seconds_needs_ten_beyond_it(key, needs):
    enough, few = figures(run(range(needs))), figures(run(range(needs - 1)))
    assert enough[key] == exactly(10 * (needs - 1) / needs) and few[key] is None
    assert noted(few, f"{key}: {needs - 1} s are too few for this percentile, which needs {needs}")


def test_figures_of_iops():
    out = figures(run([9, 0, 2, 4, 9]), 1, 4)
    assert (out["ios"], out["iops_mean"], out["iops_sd"], out["consistency"]) == (6, 2, 2, 1)
    assert (out["iops_min"], out["iops_p50"], out["zero_seconds"]) == (0, 2, 1)
    assert figures(run([3, 4]))["zero_seconds"] == 0


def test_mean_latency_is_weighted_by_the_ios_and_passes_over_idle_seconds():
    data = run([1, 0, 3])
    data.lat_mean_us[2] = 200
    assert figures(data)["lat_mean_us"] == 175
    idle = figures(run([0, 0]))
    assert idle["lat_mean_us"] is None and noted(idle, "latency: no I/O completed")


def test_a_histogram_counts_from_the_first_second_to_before_the_last_edge():
    data = run([100] * 6, lat_us=1000.0)
    data.hist = np.array([[1, HIGH, 1000], [2, LOW, 500], [3, LOW, 500], [4, HIGH, 1000]])
    out = figures(data, 2, 4)
    assert out["clat_p50_us"] == out["clat_p99_us"] == exactly(plat_ns(LOW) / 1000)
    assert out["clat_mean_us"] == exactly(plat_ns(LOW) / 1000)
    for name, needs in (
        ("p999", 10_000),
        ("p9999", 100_000),
        ("p99999", 1_000_000),
    ):  # each with what it needs, and nothing else
        assert noted(out, f"clat_{name}_us: 1000 I/Os are too few for this percentile, which needs {needs}")
    lat = "lat_p50_us, lat_p99_us, lat_p999_us, lat_p9999_us, lat_p99999_us, lat_max_us"
    assert noted(out, f"{lat}: fio left no histogram of lat for these seconds")
    data.k = 2
    assert figures(data, 2, 4)["clat_p50_us"] == exactly(plat_ns(LOW) / 2000)
    data.hist_of = "lat"
    out = figures(data, 2, 4)
    assert out["lat_p50_us"] == exactly(plat_ns(LOW) / 2000) and out["clat_mean_us"] is None
    assert noted(out, "fio left no histogram of clat for these seconds")


def counts(of: dict[int, float]) -> np.ndarray:
    """A histogram of lat: I/Os by bin."""
    out = np.zeros(BINS)
    out[list(of)] = list(of.values())
    return out


@pytest.mark.parametrize(("slow", "name"), [(10, "p99"), (500, "p50")])
def test_percentiles_of_latency_are_of_the_nearest_rank(slow, name):
    for more, value in ((0, LOW), (1, HIGH)):
        out = window_figures.percentiles("lat", counts({LOW: 1000 - slow - more, HIGH: slow + more}), 1, [])
        assert out[f"lat_{name}_us"] == exactly(plat_ns(value) / 1000) and "clat_mean_us" not in out


@pytest.mark.parametrize(
    ("name", "needs"), [("p50", 20), ("p99", 1000), ("p999", 10_000), ("p9999", 100_000), ("p99999", 1_000_000)]
)
def test_a_percentile_of_latency_needs_ten_beyond_it(name, needs):
    for n, there in ((needs, True), (needs - 1, False)):
        notes = []
        percentiles = window_figures.percentiles("clat", counts({LOW: n}), 1, notes)
        assert (f"clat_{name}_us" in percentiles) == there
        why = f"clat_{name}_us: {n} I/Os are too few for this percentile, which needs {needs}"
        assert (why in notes) != there and any(f"clat_{name}_us" in note for note in notes) != there


def test_the_longest_latency_is_the_upper_edge_of_its_bin():
    percentiles = window_figures.percentiles("lat", counts({LOW: 10, HIGH: 1}), 2, [])
    assert percentiles == {"lat_max_us": exactly(plat_upper_ns(HIGH) / 2000)}


@pytest.mark.parametrize(
    ("k", "first_s", "last_s", "there"),
    [(1, 3.0, 9.0, True), (1, 2.9, 8.0, False), (1, 4.0, 9.1, False), (2, 3.5, 8.5, True), (2, 3.4, 8.0, False)],
)
def test_a_status_document_stands_for_an_edge_within_a_second(k, first_s, last_s, there):
    data = run([10] * 10, k=k)
    data.lat_t_s = np.array([0.0, first_s, 6.0, last_s])
    data.lat_hist = np.array([[1, HIGH, 9], [2, LOW, 5], [3, LOW, 7]])
    counts_ = window_figures.lat_counts(data, Window("some", 4, 8, {}))
    assert (None if counts_ is None else counts_[[LOW, HIGH]].tolist()) == ([12, 0] if there else None)
    data.lat_t_s = np.empty(0)
    assert window_figures.lat_counts(data, Window("some", 4, 8, {})) is None


FAST, SLOW = float(plat_upper_ns(LOW)) / 1000, float(plat_upper_ns(HIGH)) / 1000


@pytest.mark.parametrize(
    ("slow", "longest_us", "off_us"),
    [
        ({4: 1}, SLOW, SLOW - FAST),  # it may have completed before the window began
        ({7: 1}, SLOW, SLOW - FAST),
        ({4: 2}, SLOW, 0),
        ({5: 1}, SLOW, 0),
        ({3: 1}, FAST, SLOW - FAST),  # it may have completed in the window
        ({8: 1}, FAST, SLOW - FAST),
        ({2: 1, 9: 1}, FAST, 0),
    ],
)
def test_the_longest_completion_time_covers_ios_that_end_a_row_at_an_edge(slow, longest_us, off_us):
    """`slow`: slow I/Os in each second of ten; the window is of four."""
    data = run([100] * 10)
    cells = [[second, LOW, 100 - slow.get(second, 0)] for second in range(10)]
    data.hist = np.array(sorted([*cells, *([second, HIGH, n] for second, n in slow.items())]))
    figures = window_figures._latency(data, Window("some", 4, 8, {}), [])
    half_bin_us = 2 * (longest_us - float(plat_ns(HIGH if longest_us == SLOW else LOW)) / 1000)
    assert figures["clat_max_us"] == exactly(longest_us)
    assert figures["errors"]["clat_max_us"] == exactly(max(half_bin_us, off_us))


def test_the_longest_completion_time_of_a_whole_load_has_no_edge():
    data = run([100] * 4)
    data.hist = np.array([[0, LOW, 99], [0, HIGH, 1], *([second, LOW, 100] for second in (1, 2))])
    figures = window_figures._latency(data, Window("all", 0, 4, {}), [])
    assert figures["errors"]["clat_max_us"] < 0.1 * figures["clat_max_us"]


@pytest.mark.parametrize("late_s", [0.0, 0.1, 0.4, 0.6, 0.99])
def test_latencies_of_a_window_are_of_no_io_beside_it(late_s):
    """Ten seconds of fast I/O, then of slow ones. A document is printed so long behind each second; the one nearest the
    cliff had brought up to half a second of slow I/Os into the plateau."""
    data = run([1000] * 20)
    data.lat_t_s = np.array([0.0, *(np.arange(20) + late_s), 20.0])
    rows = []
    for i, (a, b) in enumerate(zip(data.lat_t_s, data.lat_t_s[1:]), 1):
        fast = max(0.0, min(b, 10) - min(a, 10))
        rows += [[i, LOW, round(1000 * fast)], [i, HIGH, round(1000 * (b - a - fast))]]
    data.lat_hist = np.array([row for row in rows if row[2]])
    for span, bin_ in (((0, 10), LOW), ((10, 20), HIGH), ((3, 8), LOW)):
        counts_ = window_figures.lat_counts(data, Window("some", *span, {}))
        assert np.flatnonzero(counts_).tolist() == [bin_]
        assert counts_.sum() >= 1000 * (span[1] - span[0] - 2)
    assert window_figures.lat_counts(data, Window("all", 0, 20, {})).sum() == 20_000
    data.hist = np.array([[second, LOW if second < 10 else HIGH, 1000] for second in range(20)])
    for span, bin_ in (((0, 10), LOW), ((10, 20), HIGH), ((3, 8), LOW)):  # with clat by the second: all of its I/Os
        counts_ = window_figures.lat_counts(data, Window("some", *span, {}))
        assert counts_[bin_] == pytest.approx(1000 * (span[1] - span[0]), rel=2e-3)
        assert counts_.sum() == pytest.approx(counts_[bin_])


@pytest.mark.parametrize("late_s", [0.1, 0.5, 0.9])
def test_percentiles_of_lat_are_of_the_labelled_seconds(late_s):
    """One second in ten is slow; documents come late_s behind each second. lat lies a bin above clat."""
    data = run([1000] * 30)
    rows = [[s, LOW if s % 10 else HIGH, 1000] for s in range(30)]
    data.hist, data.lat_t_s = np.array(rows), np.array([0.0, *(np.arange(30) + late_s), 30.0])
    cells = []
    for i, (a, b) in enumerate(zip(data.lat_t_s, data.lat_t_s[1:]), 1):
        slow = sum(max(0.0, min(b, s + 1) - max(a, s)) for s in (0, 10, 20))
        cells += [[i, LOW + 1, round(1000 * (b - a - slow))], [i, HIGH + 1, round(1000 * slow)]]
    data.lat_hist = np.array([row for row in cells if row[2]])
    for begin, end in ((5, 10), (10, 20), (10, 11 + 2), (11, 20)):
        counts_ = window_figures.lat_counts(data, Window("some", begin, end, {}))
        slow = sum(begin <= s < end for s in (0, 10, 20))
        assert counts_[HIGH + 1] == pytest.approx(1000 * slow, abs=5)
        assert counts_[LOW + 1] == pytest.approx(1000 * (end - begin - slow), abs=5)


def test_time_before_the_drive_had_the_io_is_noted():
    clat_us = float(plat_ns(LOW)) / 1000
    for share, is_noted in ((0.049, False), (0.06, True)):
        data = run([50] * 4, lat_us=clat_us / (1 - share))
        data.hist = np.array([[0, LOW, 200]])
        assert noted(figures(data), f"lat_mean_us: {100 * share:.0f} % of it passed before") == is_noted
    assert not noted(figures(run([50] * 4)), "slat")


@pytest.mark.parametrize(("lat_us", "is_noted"), [(20 / 256, False), (20.1 / 256, True)])
def test_five_percent_before_the_drive_had_the_io_are_not_noted(lat_us, is_noted):
    """19 I/Os of 125 ns and 13 of 0: a mean of 19/256 us, of 20/256 with submission."""
    data = run([32, 0], lat_us=lat_us)
    data.hist = np.array([[0, 125, 19], [0, 0, 13]])
    assert noted(figures(data), "lat_mean_us: 5 % of it passed before") == is_noted
    data.lat_mean_us[:] = 0
    assert not noted(figures(data), "passed before")


def test_what_is_not_known_of_a_window_is_said():
    out = figures(run([5, 5]))
    assert noted(out, "wa: no SMART reading belongs to it") and out["wa"] is None
    assert noted(out, "temperature_start_C, temperature_max_C, temperature_end_C: none was reported in the window or")
    data = run([1] * 30)
    data.temp_t_s, data.temperature_C = np.array([11.1, 15.0, 18.9]), np.array([30.0, 31.0, 32.0])
    words = "no SMART reading within a tenth of the window of that edge"
    assert noted(figures(data, 10, 20), f"temperature_start_C, temperature_end_C: {words}")


def test_the_uncertainty_is_a_share_of_the_power(monkeypatch):
    monkeypatch.setattr(window_figures.uncertainty, "expanded_W", lambda means: 0.06)
    assert figures(powered(run([1, 1]), rail_of([3, 3])))["power_uncertainty_percent"] == exactly(2)
    monkeypatch.setattr(window_figures.uncertainty, "expanded_W", lambda means: np.inf)
    assert figures(powered(run([1, 1]), rail_of([3, 3])))["power_uncertainty_percent"] is None


def test_littles_law():
    for lat_us, is_noted in (
        (32_000.0, False),
        (32_600.0, False),
        (32_700.0, True),
        (31_400.0, False),
        (31_300.0, True),
    ):
        out = figures(run([990, 1010], lat_us=lat_us, queue_depth=32))
        assert out["littles_qd"] == exactly(lat_us / 1000)
        assert out["littles_error_percent"] == pytest.approx(lat_us / 320 - 100, abs=1e-9)
        assert noted(out, "littles_qd: ") == is_noted
    exact = {"iops_mean": 1020.0, "lat_mean_us": 100_000.0}  # 2 % more than 100
    notes = []
    assert window_figures.littles(run([1], queue_depth=100), exact, notes)["littles_error_percent"] == 2
    assert notes == []
    assert figures(run([0, 0], queue_depth=32))["littles_qd"] is None


def test_energy_of_a_window():
    data = powered(run([10, 20, 30, 40]), rail_of([1, 2, 4, 8]))
    data.idle_mean_W = 1.0
    out = figures(data, 1, 3)
    assert (out["energy_J"], out["power_mean_W"], out["power_max_W"]) == (6, 3, 5)
    assert out["energy_uJ_per_io"] == exactly(6e6 / 50) and out["iops_per_W"] == exactly(50 / 6)
    assert out["energy_J_per_GB"] == exactly(6e9 / (50 * 4096))
    assert out["energy_uJ_per_io_above_idle"] == exactly(1e6 * 2 * 2 / 50)
    assert (out["samples"], out["samples_lost"], out["clock_error_us"]) == (20, 3, 2)
    assert out["rails"] == [
        {"rail": 0, "name": "5V", "power_mean_W": 3.0, "power_max_W": 5.0, "energy_J": 6.0}
        | {"power_uncertainty_percent": out["power_uncertainty_percent"], "samples": 20, "samples_lost": 3}
    ]
    assert 0.1 < out["power_uncertainty_percent"] < 5
    assert not noted(out, "no power samples") and not noted(out, "sensor's limit")


def test_ratios_are_of_the_seconds_that_have_power():
    data = powered(run([10, 20, 30]), rail_of([2, np.nan, 4]))
    data.idle_mean_W = 1.0
    out = figures(data)
    assert out["energy_J"] is None and out["power_uncertainty_percent"] is None
    assert (out["power_mean_W"], out["power_max_W"]) == (3, 5)
    assert out["energy_uJ_per_io"] == exactly(6e6 / 40)
    assert out["energy_uJ_per_io_above_idle"] == exactly(1e6 * 2 * 2 / 40)
    assert noted(out, "energy_J: 1 of 3 s have no power samples; ratios use the seconds that have")
    (rail,) = out["rails"]
    assert rail["power_mean_W"] == 3 and rail["energy_J"] is rail["power_uncertainty_percent"] is None


def test_of_several_rails_the_dark_one_is_named():
    dark = rail_of([2, np.nan], rail=1, name="12V", clipped=np.array([0, 3]))
    out = figures(powered(run([10, 20]), rail_of([1, 1]), dark))
    assert noted(out, "energy_J: 1 of 2 s have no power samples of rail 1 (12V), so the sum is not known there; ratios")
    assert noted(out, "power: 3 of 20 samples of the window, rail 1 (12V), are at the sensor's limit")
    assert (out["samples"], out["samples_lost"]) == (40, 2)


def test_without_power_or_io_there_are_no_ratios():
    out = figures(powered(run([1, 1]), rail_of([np.nan, np.nan])))
    assert out["power_mean_W"] is None and out["rails"][0]["power_max_W"] is None and out["samples"] == 20
    out = figures(powered(run([0, 0]), rail_of([1, 2])))
    assert out["energy_uJ_per_io"] is out["iops_per_W"] is out["energy_J_per_GB"] is None and out["energy_J"] == 3
    assert figures(run([1, 1]))["samples"] is None
    still = figures(powered(run([1, 1]), rail_of([1, 2], samples=np.zeros(2, int))))
    assert (still["samples"], still["clock_error_us"]) == (0, None)


@pytest.mark.parametrize(
    ("more", "known"),
    [
        ({}, True),
        ({"facts": None}, False),
        ({"clipped": np.array([0, 1])}, False),
        ({"facts": FACTS | {"chip": "?"}}, False),
    ],
)
def test_the_uncertainty_needs_facts_and_readings_below_the_limit(more, known):
    out = figures(powered(run([1, 1]), rail_of([1, 2], **more)))
    assert (out["power_uncertainty_percent"] is not None) == known
    assert noted(out, "power: 1 of 20 samples of the window are at the sensor's limit") == ("clipped" in more)


def test_a_rail_without_power_has_no_uncertainty_in_percent():
    out = figures(powered(run([1, 1]), rail_of([0, 0]), rail_of([1, 1])))
    assert [rail["power_uncertainty_percent"] is None for rail in out["rails"]] == [True, False]


def test_two_rails_share_the_uncertainty_of_their_sum():
    one, two = (figures(powered(run([1, 1]), *[rail_of([2, 2])] * n)) for n in (1, 2))
    ratio = two["power_uncertainty_percent"] / one["power_uncertainty_percent"]
    assert ratio == exactly(2**-0.5)


@pytest.mark.parametrize(
    ("times_s", "start", "highest", "end"),
    [
        ([9.0, 21.0], 30, 31, 31),  # exactly a tenth of the window away from each edge
        ([8.9, 21.1], None, None, None),
        ([11.0, 15.0, 19.0], 30, 32, 32),
        ([11.1, 15.0, 18.9], None, 32, None),
    ],
)
def test_temperatures_are_read_near_the_edges(times_s, start, highest, end):
    data = run([1] * 30)
    data.temp_t_s, data.temperature_C = np.array(times_s), 30.0 + np.arange(len(times_s))
    out = figures(data, 10, 20)
    assert (out["temperature_start_C"], out["temperature_max_C"], out["temperature_end_C"]) == (start, highest, end)


def test_the_highest_temperature_is_none_of_another_window():
    """A tenth of the window away from it lie more readings than those for its start and its end."""
    data = run([1] * 30)
    data.temp_t_s, data.temperature_C = np.array([9.0, 9.5, 15, 20.5, 20.9]), np.array([50.0, 30, 31, 32, 60])
    out = figures(data, 10, 20)
    assert (out["temperature_start_C"], out["temperature_max_C"], out["temperature_end_C"]) == (30, 32, 32)


# ---- which windows there are


def test_labels():
    tested = {"passed": True}
    assert Window("fresh", 0, 3, tested).label == "fresh plateau, 0–3 s"
    assert Window("all", 0, 3, tested).label == "whole load, 0–3 s"
    assert Window("mine", 0, 3, tested).label == "mine, 0–3 s"


@pytest.mark.parametrize(
    ("unfinished", "whole", "steady"),
    [
        (Unfinished("cut short", "20 s"), "load, 0–9 s of 20 s: cut short", "4–9 s of 20 s: cut short"),
        (Unfinished("still running", "at most 60 s"), "load, 0–9 s of at most 60 s: still running", "4–9 s of at most"),
        (Unfinished("cut short"), "load, 0–9 s: cut short", "4–9 s: cut short"),
        (None, "whole load, 0–9 s", "4–9 s"),
    ],
)
def test_a_window_that_goes_to_the_end_says_where_that_was_not_reached(unfinished, whole, steady):
    judged = Window("steady", 4, 9, {"passed": False}, unfinished)
    assert Window("all", 0, 9, {}, unfinished).label == whole and judged.label.startswith(steady)
    steady_state = Window("steady", 4, 9, {"passed": True}, unfinished).label
    assert steady_state == f"steady state, {judged.times}"


@pytest.mark.parametrize(
    ("iops", "end"),
    [
        ([100] * 8 + [74.9] * 5, 8),  # just below three quarters, and five seconds behind the fall
        ([100] * 8 + [75.0] * 5, None),
        ([100] * 8 + [10] * 4, None),
        ([100] * 3 + [10] * 5, 3),
        ([100] * 2 + [10] * 8, None),
        ([100] * 8 + [10, 10, 10, 100, 100] + [10] * 9, 8),  # three of the five seconds behind it are enough
        ([100] * 8 + [10, 10, 100, 100, 100] + [10] * 9, 13),
        ([100] * 9 + [10] * 5 + [100] * 5, None),  # half of the rest is not most of it
        ([100] * 9 + [10] * 6 + [100] * 5, 9),
        ([100] * 3 + [92] * 3 + [85] * 3 + [10] * 9, 9),  # 85 % is flat
        ([100] * 3 + [92] * 3 + [84] * 3 + [10] * 9, None),
        ([100] * 9 + [10] + [100] * 3 + [10, 100] + [10] * 20, 13),
        ([100] * 4 + [10] + [100] * 4 + [10] * 20, 9),
        # three quarters themselves are not below them
        ([100] * 8 + [75.0] + [10] * 9, 9),
        ([100] * 8 + [10] * 2 + [75.0] * 20, None),
        ([100, 100, 75.0, 100, 100, 75.0, 100, 100, 100] + [10] * 20, 9),
        ([100, 100, 10, 100, 100] + [10] * 12, 5),  # four of five
        ([100] * 8 + [90, 84, 84, 90] + [10] * 12, 12),  # the last third has a median of 87
    ],
)
def test_limits_of_the_cliff(iops, end):
    assert windows.cliff(np.array(iops, float))[0] == end


def test_a_plateau_stands_above_three_quarters_in_four_of_five_seconds():
    spiky = [100, 100, 100, 100, 10] * 2
    assert windows.cliff(np.array([*spiky, *[10] * 12]))[0] == 9
    worse = [100, 100, 10, 100, 100, 10, 100, 100, 100]  # two of nine
    assert windows.cliff(np.array([*worse, *[10] * 20], float)) == (
        None,
        "no cliff: IOPS fall from the start on, by a quarter within 9 s",
    )


@pytest.mark.parametrize(
    ("iops", "falls"),
    [
        ([100] * 3 + [74], True),
        ([100] * 3 + [75], False),
        ([100] * 2 + [10], False),
        ([100] * 600 + [10] * 700 + [60], True),  # the level is of the first 600 s
    ],
)
def test_limits_of_the_first_slow_second(iops, falls):
    assert windows.falls(iops) == falls
