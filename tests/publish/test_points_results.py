"""Points that are computed when a run has ended: the rows of the report, of any plan, and its loads by the second."""

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pts_runs
import pytest
import synthetic_cuts
import synthetic_plan
import synthetic_run
import test_load_line
import test_replay
import test_report_demand
import test_single_reads
import test_slc_run
import test_sleep_states
import test_thermal
import test_wear_run
from point_runs import IOPS, emit, made, read, run  # noqa: F401  fixtures

from ssdrig.base.errors import JournalError
from ssdrig.meter import peaks, samples
from ssdrig.publish.influx import line_protocol, points
from ssdrig.publish.lake import seconds
from ssdrig.reading import errors, table, window_figures
from ssdrig.reading.row import KEYS
from ssdrig.runs import journal
from ssdrig.views import documents

SCHEMA = line_protocol.read_schema()
MOST_SERIES = 8  # of one drive's run with one rail that reads and writes
NO_VALUE = {"windows", "t0_s", "t1_s", "round", "part", "point"}  # of a row
# of a window: fields by other names, and what is no number
NO_NUMBER = {"steady_state", "errors", "rails", "trust", "notes", "wa_polls_s", "own_power_ratio_of"}
FOLDERS = {
    "consistency": lambda tmp: synthetic_run.write(tmp, IOPS * 2, idle_s=2),
    "rails": lambda tmp: synthetic_run.write(tmp, IOPS, more_rails=[("12V", ((0.0, 1.0),), 1_000_000, None)]),
    "steps": synthetic_plan.steps,
    "rounds, matrix": lambda tmp: synthetic_plan.grid(tmp, rounds=2),
    "without power": lambda tmp: synthetic_plan.grid(tmp, rounds=2, power=False),
    "demand": test_report_demand.sweep,
    "load-line": test_load_line.lined,
    "average-power": lambda tmp: test_load_line.averaged(tmp, "own", True),
    "plateaus": test_slc_run.made,
    "dilated": lambda tmp: test_slc_run.made(tmp, dilation=2),
    "thermal": test_thermal.heated,
    "power-states": test_sleep_states.slept,
    "wakes": test_single_reads.woken,
    "under": test_single_reads.read_beside,
    "replay": test_replay.played_twice,
    "wear, life": test_wear_run.worn_out,
    "cuts": lambda tmp: synthetic_cuts.write(tmp, 20, lies=0.2),
    "recovery": lambda tmp: pts_runs.hir(tmp, cycles=2).end(),
}


def of(lines, name):
    return [(fields, t) for m, _, fields, t in lines if m == name]


def place(fields):
    """Whose a point is."""
    return fields["step"], fields.get("round"), fields.get("point"), fields.get("part")


def numbers(value, path):
    """Every number of a JSON value with its path, but those in lists of bare numbers; of a list's item its name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, [*path, key])
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            if isinstance(inner, dict):
                yield from numbers(inner, [*path, str(inner.get("name") or i)])
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield ".".join(path), value


def folder_of(run) -> Path:
    return getattr(run, "path", run)


@pytest.mark.parametrize("name", FOLDERS)
def test_every_row_of_the_report_is_there_with_its_values_and_errors(tmp_path, name):
    """Each figure of each window of each step, round and point, each number beside them, and no other; each load by the
    second."""
    folder = folder_of(FOLDERS[name](tmp_path / "runs"))
    lines = read(emit(folder))
    table_ = table.load(folder)
    whole, rows = (
        json.loads(json.dumps(documents.of_table(table_))),
        table_.rows,
    )  # what `report --json` prints of a plan
    figures, values = {}, {}
    for row in whole["rows"]:
        point = " ".join(f"{key}={str(value).replace(' ', '')}" for key, value in row["point"].items()) or None
        at = row["path"], row["round"], point, row["part"]
        beside = [numbers({key: of for key, of in row.items() if key not in NO_VALUE}, [])]
        for window, table_ in row["windows"].items():
            beside.append(numbers((table_ or {}).get("rails"), [window, "rails"]))
            if table_:
                known = {key: value for key, value in table_.items() if key not in NO_NUMBER and value is not None}
                known |= {f"{key}_error": error for key, error in (table_["errors"] or {}).items()}
                if (table_.get("steady_state") or {}).get("passed") is not None:
                    known["steady_state"] = table_["steady_state"]["passed"]
                bad = [item["id"] for item in table_["trust"] or () if item["state"] == "bad"]
                known |= {"trust_bad": ",".join(bad) or "none"} if table_["trust"] else {}
                figures[*at, window] = known
        if row["t0_s"] is not None:
            values |= {(*at, path): value for of_row in beside for path, value in of_row}
    assert len(of(lines, "run_figure")) == len(figures) > 0
    for fields, _ in of(lines, "run_figure"):
        at = place(fields)
        rest = {k: v for k, v in fields.items() if k not in ("step", "do", "round", "point", "part", "window")}
        assert rest == figures[*at, fields["window"]], (at, fields["window"])
    assert {(*place(fields), fields["name"]): fields["value"] for fields, _ in of(lines, "run_value")} == values
    ((result, _),) = of(lines, "run_result")
    assert (result["state"], result["rows"]) == (whole["state"], len(whole["rows"]))
    assert Counter(m for m, *_ in lines) == points.counts(folder)
    has_each_load_by_the_second(rows, of(lines, "load_second"))


def has_each_load_by_the_second(rows, sent):
    got = {}
    for fields, t in sent:
        got.setdefault(place(fields), []).append((fields, t))
    loads = [row for row in rows if row.act.do in ("fill", "load", "replay") and row.t0_s is not None]
    loads = [row for row in loads if row.t1_s - row.t0_s >= 1]  # no single I/O
    assert len(got) == len(loads)
    for row, (at, seconds_) in zip(loads, got.items(), strict=True):
        assert (row.act.path, row.round) == at[:2]
        assert [fields["t_s"] for fields, _ in seconds_] == list(range(len(seconds_)))
        assert {b - a for (_, a), (_, b) in zip(seconds_, seconds_[1:])} <= {row.k * 10**9}
        assert 0 <= len(seconds_) - int(row.t1_s - row.t0_s + 1e-6) <= 1
        ios = (row.windows["all"] or {}).get("ios")
        if ios and "off" not in row.act.keys:
            assert 0.8 * ios < sum(fields["iops"] for fields, _ in seconds_) <= ios * 1.001


def test_a_result_lies_at_the_end_of_its_window(run):
    shift_ns = synthetic_run.UTC_RUN_NS - synthetic_run.T_RUN_NS
    lines = read(emit(run))
    rows = {row.act.path: row for row in table.load(run).rows}
    for fields, t in of(lines, "run_figure"):
        row = rows[fields["step"]]
        end_ns = synthetic_run.T_RUN_NS + round((row.t0_s + fields["t1_s"]) * 1e9)
        assert abs(t - shift_ns - end_ns) < 1000
    ((_, t),) = of(lines, "run_result")
    assert t - shift_ns == journal.events(run)[-1]["t_ns"]


@pytest.mark.usefixtures("short_loads_have_errors")
def test_the_figures_that_stand_for_a_run_are_those_of_the_last_window_of_its_only_load(run):
    lines = read(emit(run))
    ((result, _),) = of(lines, "run_result")
    *_, steady = [fields for fields, _ in of(lines, "run_figure") if fields["step"] == "load"]
    assert (result["window"], steady["window"]) == ("load, steady", "steady")
    assert (result["state"], result["simulated"], result["plan"]) == ("complete", True, "consistency")
    for key in ("iops_mean", "iops_mean_error", "power_mean_W", "power_mean_W_error", "wa", "wa_error"):
        assert result[key] == steady[key], key


def test_a_plan_of_several_points_has_no_figures_that_stand_for_it(tmp_path):
    ((result, _),) = of(read(emit(synthetic_plan.grid(tmp_path, rounds=2))), "run_result")
    assert result["plan"] == "demo" and not {"window", "iops_mean", "wa_closed_form"} & {*result}


def test_every_figure_has_a_field():
    keys = {*(term.key for term in window_figures.TERMS), *KEYS} - {"errors"}
    fields = SCHEMA["run_figure"].fields
    keys |= {f"{key}_error" for key in errors.KEYS}
    assert keys <= set(fields) and all(fields[key] == "f" for key in keys)


def test_power_and_io_stand_on_one_grid(run):
    data = table.in_full(run).data
    lines = read(emit(run))
    seconds = [(fields, t) for fields, t in of(lines, "load_second") if fields["step"] == "load"]
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


@pytest.mark.parametrize("name", ["consistency", "under", "cuts", "replay"])
def test_a_run_of_one_drive_adds_few_series(tmp_path, name):
    """Of what belongs to the drive and not to the run there is none."""
    series = set()
    for line in emit(folder_of(FOLDERS[name](tmp_path / "runs"))).splitlines():
        of_line, tags = line_protocol.tags_of(line_protocol.series_and_time(line)[0])
        series.add((of_line, tuple(sorted(tags.items()))))
    assert len([tags for _, tags in series if "run" in dict(tags)]) <= MOST_SERIES


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
    assert {fields["step"] for fields, _ in of(read(emit(folder)), "run_figure")} <= {"purge", "flush"}


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
    counts = Counter(m for m, *_ in read(emit(folder)))
    assert counts == points.counts(folder) and counts["power"] and counts["run_result"]
    assert {step.path for step in seconds.steps(folder, events)} >= {"fill", "load"}


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
