"""Points that are computed when a run has ended: its figures and its load by the second, as the report has them."""

import json
from collections import Counter

import numpy as np
import pytest
import synthetic_run
from point_runs import IOPS, emit, made, read, run  # noqa: F401  fixtures

from ssdrig import reading
from ssdrig.base.errors import JournalError
from ssdrig.meter import peaks, samples
from ssdrig.publish.influx import line_protocol, points
from ssdrig.publish.lake import seconds
from ssdrig.reading import errors, figures, window_figures
from ssdrig.reading.figures import figures_of
from ssdrig.runs import journal

SCHEMA = line_protocol.read_schema()
MOST_SERIES = 5  # of one drive's run
OTHERS = ("powerloss", "retention")  # which only runs of these tests have


def of(lines, name):
    return [(fields, t) for m, _, fields, t in lines if m == name]


def test_the_figures_of_each_window_are_those_of_the_report(run):
    found = figures_of(reading.load(run))
    results = of(read(emit(run)), "run_result")
    windows = {name: window for name, window in found["windows"].items() if window}
    assert [fields["window"] for fields, _ in results] == list(windows) and len(windows) >= 2
    end_ns = journal.events(run)[-1]["t_ns"] - synthetic_run.T_RUN_NS + synthetic_run.UTC_RUN_NS
    assert [t - end_ns for _, t in results] == list(range(len(windows)))
    for fields, _ in results:
        window = windows[fields["window"]]
        for term in window_figures.TERMS:
            assert fields.get(term.key) == pytest.approx(window[term.key]), term.key
        for term in figures.TERMS:
            assert fields.get(term.key) == pytest.approx(found[term.key]), term.key
        assert (fields["state"], fields["simulated"], fields["plan"]) == ("complete", True, "consistency")
        assert (fields["t0_s"], fields["t1_s"]) == (window["t0_s"], window["t1_s"])
        assert fields.get("steady_state") is window["steady_state"]["passed"]
        assert all(fields[f"{key}_error"] == pytest.approx(error) for key, error in window["errors"].items())
        assert "iops_mean_error" in fields
        bad = [item["id"] for item in window["trust"] if item["state"] == "bad"]
        assert fields["trust_bad"] == (",".join(bad) or "none")
    assert any("steady_state" in fields for fields, _ in results)


def test_every_figure_has_a_field():
    keys = {term.key for term in (*window_figures.TERMS, *figures.TERMS)}
    fields = SCHEMA["run_result"].fields
    keys |= {f"{key}_error" for key in errors.KEYS}
    assert keys <= set(fields) and all(fields[key] == "f" for key in keys)


def test_power_and_io_stand_on_one_grid(run):
    data = reading.load(run)
    lines = read(emit(run))
    seconds = of(lines, "load_second")
    assert [fields["iops"] for fields, _ in seconds] == IOPS
    assert [fields["t_s"] for fields, _ in seconds] == list(range(len(IOPS)))
    exact = {t: fields["iops"] for fields, t in of(lines, "fio_interval") if fields["step"] == "load"}
    assert {t: fields["iops"] for fields, t in seconds} == exact
    energy = [fields["energy_J"] for fields, _ in seconds]
    assert energy == pytest.approx(data.energy_J.tolist()) and sum(energy) == pytest.approx(2.5 * len(IOPS), rel=0.01)
    for fields, _ in seconds:
        assert ("energy_uJ_per_io" in fields) == bool(fields["iops"])
        if fields["iops"]:
            assert fields["energy_uJ_per_io"] == pytest.approx(1e6 * fields["energy_J"] / fields["iops"])


def test_a_second_of_a_dilated_drive_lasts_several(tmp_path):
    folder = synthetic_run.write(tmp_path, IOPS, dilation=2, name="dilated")
    seconds = of(read(emit(folder)), "load_second")
    assert {b - a for (_, a), (_, b) in zip(seconds, seconds[1:])} == {2 * 10**9}


def test_a_run_of_one_drive_adds_few_series(run):
    """Of what belongs to the drive and not to the run there is none."""
    series = Counter()
    for line in emit(run).splitlines():
        name, tags = line_protocol.tags_of(line_protocol.series_and_time(line)[0])
        series[name, tuple(sorted(tags.items()))] += 1
    assert len([tags for _, tags in series if "run" in dict(tags)]) <= MOST_SERIES
    assert len([m for m in SCHEMA.values() if "run" in m.tags and not m.name.startswith(OTHERS)]) == MOST_SERIES


def test_only_a_run_that_has_ended_has_results(run):
    assert not of(read(emit(run, final=False)), "run_result")


def test_a_run_that_died_says_so(tmp_path):
    folder = synthetic_run.write(tmp_path, IOPS, state=None, name="died")
    results = of(read(emit(folder)), "run_result")
    assert {fields["state"] for fields, _ in results} == {"died"}


def test_a_run_without_any_load_has_its_state(tmp_path):
    folder = synthetic_run.write(tmp_path, IOPS, name="bare")
    events = [e for e in journal.events(folder) if e.get("step") not in ("load", "fill")]
    synthetic_run.seal(folder, events)
    for path in (folder / "fio").rglob("*"):
        if path.is_file():
            path.unlink()
    results = of(read(emit(folder)), "run_result")
    assert len(results) == 1 and "window" not in results[0][0] and results[0][0]["state"] == "complete"


def test_a_header_of_other_kinds_gives_no_field(tmp_path):
    folder = synthetic_run.write(tmp_path, IOPS, name="odd")
    header = json.loads((folder / "run.json").read_text())
    header["drive"] |= {"firmware": 5, "interface": ["x"], "capacity_bytes": True}
    (folder / "run.json").write_text(json.dumps(header))
    for fields, _ in of(read(emit(folder)), "run_result"):
        assert not {"firmware", "interface", "capacity_bytes"} & set(fields)


def test_a_damaged_header_keeps_back_nothing_that_was_measured(run):
    header = json.loads((run / "run.json").read_text())
    header["method"] = None
    (run / "run.json").write_text(json.dumps(header))
    got = Counter(m for m, *_ in read(emit(run)))
    assert got == points.counts(run) and got["power"] > 10 and not got["run_result"]


@pytest.mark.parametrize(
    "damage", [{"drive": None}, {"started": 5}, {"started": {"t_ns": "x", "utc_ns": 1}}, {"run": 7}]
)
def test_a_header_that_does_not_say_whose_the_points_are_is_one_error(run, damage):
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | damage))
    with pytest.raises(JournalError, match="a whole run.json"):
        emit(run)
    assert not (run / "points.lp").exists()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "../.."])
@pytest.mark.parametrize("key", ["step", "fio", "played"])
def test_a_step_whose_name_is_none_of_a_file_has_no_seconds(tmp_path, key, name):
    """The rest of the run is sent, reported and exported."""
    folder = synthetic_run.write(tmp_path, IOPS[:3], name="odd", fill_s=1)
    events = [{k: v for k, v in event.items() if k not in ("line", "crc")} for event in journal.events(folder)]
    for event in events:
        if event.get("step") == "flush":
            event[key] = name
    events[0]["step"] = {}
    synthetic_run.seal(folder, events)
    found = Counter(m for m, *_ in read(emit(folder)))
    assert found == points.counts(folder) and found["power"] and found["run_result"]
    assert {each.path for each in seconds.steps(folder, events)} >= {"fill", "load"}


@pytest.mark.parametrize("host", [None, [], "x", {"name": 5}])
def test_a_host_that_is_none_is_no_tag(run, host):
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | {"host": host}))
    assert all("host" not in dict(tags) for _, tags, _, _ in read(emit(run)))


def test_a_resumed_run_has_its_results_once(tmp_path):
    run = synthetic_run.write(tmp_path, IOPS, state=None, name="resumed")
    part = synthetic_run.write(run, IOPS, name="part-2")
    header = json.loads((run / "run.json").read_text())
    (part / "run.json").write_text(json.dumps(json.loads((part / "run.json").read_text()) | {"run": header["run"]}))
    for folder in (run, part):
        events = journal.events(folder)
        first = next(e["t_ns"] for e in events if e.get("step") == "load")
        synthetic_run.seal(
            folder, sorted([*events, {"t_ns": first + 5, "kind": "load.first_io"}], key=lambda e: e["t_ns"])
        )
    assert not of(read(emit(run)), "run_result") and of(read(emit(part)), "run_result")


# peaks


def power_of(watts, period_ns=1_000_000, start_ns=10**9):
    """A Power of constant pieces: watts[i] up to start + (i + 1) periods."""
    energy = np.cumsum(np.asarray(watts) * period_ns * 1e-9)
    t_ns = start_ns + period_ns * np.arange(1, len(watts) + 1)
    return type("P", (), {"t_ns": t_ns, "energy_J": energy})()


def slowly(watts, width, row):
    """The highest mean of `width` samples within each row of `row` samples."""
    rows = [watts[i : i + row] for i in range(0, len(watts), row)]
    return [max(np.mean(r[i : i + width]) for i in range(len(r) - width + 1)) for r in rows]


@pytest.mark.parametrize("width_ms", [10, 100])
def test_the_highest_mean_over_a_stretch(width_ms):
    watts = np.random.default_rng(1).uniform(0, 5, 3000)
    watts[1700:1707] = 40
    edges = 10**9 * np.arange(1, 5)
    got = peaks.highest_mean_W(power_of(watts), edges, width_ms * 10**6)
    assert got == pytest.approx(slowly(watts, width_ms, 1000), rel=1e-9)


def test_a_peak_across_two_seconds_is_in_none_of_them_whole():
    watts = np.ones(2000)
    watts[995:1005] = 11
    got = peaks.highest_mean_W(power_of(watts), 10**9 * np.arange(1, 4), 10**7)
    assert got == pytest.approx([6, 6])


def test_a_peak_of_the_first_sample_counts():
    watts = np.ones(2000)
    watts[0] = 11
    got = peaks.highest_mean_W(power_of(watts), 10**9 * np.arange(1, 4), 10**7)
    assert got == pytest.approx([2, 1])


def test_rare_samples_have_no_peak_over_a_short_time():
    got = peaks.highest_mean_W(power_of(np.ones(200), 10**7), 10**9 * np.arange(1, 4), 10**7)
    assert np.isnan(got).all()
    assert peaks.highest_mean_W(power_of(np.ones(200), 10**7), 10**9 * np.arange(1, 4), 10**8) == pytest.approx([1, 1])


def test_a_follower_tells_them_between_mean_and_highest_sample(run):
    for _, second in samples.Follower(run).seconds(final=True):
        if second.samples > 900:  # the time of a sample is known to some microseconds
            bounds = [second.p_mean_W, second.p_max_100ms_W, second.p_max_10ms_W, second.p_max_W]
            assert all(a < b * 1.0001 for a, b in zip(bounds, bounds[1:]))
