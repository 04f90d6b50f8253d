"""`ssdrig.open`: the arrays of a run folder are what the readers give; the notebook of the manual runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import synthetic_run
from lake_runs import edit, run

import ssdrig
from ssdrig.base.errors import JournalError, SsdrigError, UsageError
from ssdrig.drive.smart import counters
from ssdrig.meter import samples
from ssdrig.publish import opened as opened_module
from ssdrig.publish.lake import schema
from ssdrig.reading import results, table
from ssdrig.runs import journal

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "host" / "docs" / "use/run.ipynb"
TABLES = {"figures": "figure", "seconds": "second", "events": "event", "smart": "smart", "cuts": "cut"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return run(tmp_path_factory.mktemp("opened"), "made", first_io=True)


@pytest.fixture(scope="module")
def opened(folder):
    return ssdrig.open(folder)


def test_import_loads_no_numpy():
    code = "import ssdrig, sys; sys.exit(bool({'numpy', 'pyarrow', 'ssdrig.publish'} & {*sys.modules}))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "host")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_opening_reads_no_samples(folder, monkeypatch):
    monkeypatch.setattr(table, "load", lambda *_: pytest.fail("read before it was asked for"))
    run = ssdrig.open(str(folder))
    assert run.header["run"] == journal.run_header(folder)["run"] and run.path == folder


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_those_of_the_schema_with_its_types(opened, name):
    columns, known = getattr(opened, name), schema.kinds()[TABLES[name]]
    assert [*columns] == [key for key in known if key not in ("run", "export", "drive")]
    for key, array in columns.items():
        assert len(array) == columns.length
        assert array.dtype == {"f64": float, "i64": np.int64, "i32": np.int32, "bool": bool}.get(
            known[key].type, array.dtype
        )
        assert np.ma.isMaskedArray(array) == (known[key].type in ("i32", "i64", "bool"))


def test_figures_are_the_readers(opened, folder):
    figures = [*results.of(table.load(folder))]
    assert opened.figures.length == len(figures) > 3
    for i, result in enumerate(figures):
        assert (opened.figures["step"][i], opened.figures["window_name"][i]) == (result.row.act.path, result.window)
        for key in (*results.NUMBERS, *results.ERRORS):
            given, value = opened.figures[key][i], (result.numbers() | result.errors()).get(key)
            assert value is None and (given is np.ma.masked or np.isnan(given)) or given == value, key


def test_rows_are_the_steps(opened):
    assert [*opened.rows["step"]] == ["purge", "fill", "load", "flush"]
    assert {*opened.rows["state"]} == {"done"}
    assert np.all(np.diff(opened.rows["t_ns"]) > 0) and np.all(opened.rows["t1_s"] >= opened.rows["t0_s"])


def test_samples_are_those_of_the_meter(opened, folder):
    (power,) = samples.load_rails(folder)
    (columns,) = opened.samples.values()
    assert [*opened.samples] == [power.name] and np.array_equal(columns["t_ns"], power.t_ns)
    assert np.allclose(columns["V"], power.V) and np.allclose(columns["I"], power.I)
    assert not any(map(np.ma.isMaskedArray, columns.values()))


def test_seconds_have_the_energy_of_their_samples(opened):
    load = opened.seconds.where(step="load")
    (columns,) = opened.samples.values()
    joules = columns["V"].astype(float) * columns["I"] * columns["dt_ns"] * 1e-9
    inside = (columns["t_ns"] > load["t_ns"][0]) & (columns["t_ns"] <= load["t_ns"][-1] + 10**9)
    assert load["energy_J"].sum() == pytest.approx(joules[inside].sum(), rel=1e-3)
    assert [*load["write_ios"][:3]] == [4000] * 3 and load["read_ios"].mask.all()


def test_smart_and_events_are_the_journals(opened, folder):
    events = journal.events(folder)
    assert [*opened.events["event"]] == [event["kind"] for event in events]
    assert [*opened.events["t_ns"]] == [event["t_ns"] for event in events]
    polls = [counters.snapshot(json.loads(path.read_text())) for path in sorted((folder / "smart").glob("*.json"))]
    assert [*opened.smart["host_written_bytes"]] == [poll["host_written_bytes"] for poll in polls]


def test_time_is_utc(opened):
    zero = np.datetime64(synthetic_run.UTC_RUN_NS // 1000, "us")
    assert opened.events["t_utc"][0] == zero and opened.events["t_utc"].dtype == "datetime64[us]"


def test_counter_beyond_64_bits_is_unknown():
    columns = opened_module._of_rows({"a": "i64", "b": "f64"}, [{"a": 1 << 64, "b": float("inf")}, {"a": -3}])
    assert [*columns["a"].mask] == [True, False] and columns["a"][1] == -3
    assert np.isinf(columns["b"][0]) and np.isnan(columns["b"][1])


def test_where_of_a_masked_column_leaves_out_the_unknown(opened):
    assert opened.figures.where(round=1).length == 0
    assert opened.figures.where(step="load", window_name="all").length == 1
    with pytest.raises(KeyError):
        opened.figures.where(nothing=1)


def test_arrow_has_nulls_where_values_are_unknown(opened):
    pytest.importorskip("pyarrow")
    for columns in (opened.figures, opened.rows, opened.seconds, opened.events, opened.smart, opened.cuts):
        arrow = columns.arrow()
        assert (arrow.num_rows, arrow.column_names) == (columns.length, [*columns])
        for name, array in columns.items():
            assert arrow[name].null_count == (
                np.ma.getmaskarray(array).sum()
                if np.ma.isMaskedArray(array)
                else sum(value is None or value != value for value in array.tolist())
            ), name
    (samples,) = opened.samples.values()
    assert samples.arrow()["V"].to_numpy().sum() == samples["V"].sum()


def test_run_without_a_rig_has_no_samples(tmp_path):
    opened = ssdrig.open(run(tmp_path, "bare", power=False))
    assert opened.samples == {} and np.isnan(opened.seconds["energy_J"]).all() and opened.facts["state"] == "complete"


def test_run_that_is_being_written_opens(tmp_path, monkeypatch):
    made = run(tmp_path, "going", state=None)
    monkeypatch.setattr(journal, "lock_is_held", lambda folder: True)
    assert journal.state(made) == "running"
    assert ssdrig.open(made).rows.length >= 3


@pytest.mark.parametrize(
    ("path", "error"), [("nothing/there", JournalError), ("no-such-run", UsageError), ("", SsdrigError)]
)
def test_wrong_path_is_an_error_of_ours(tmp_path, monkeypatch, path, error):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        ssdrig.open(path)
    assert isinstance(caught.value, SsdrigError) and caught.value.do


def test_folder_that_is_no_run_is_an_error_of_ours(tmp_path):
    with pytest.raises(JournalError):
        ssdrig.open(tmp_path)
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(JournalError):
        ssdrig.open(tmp_path)


def test_notebook_runs_and_has_no_outputs(tmp_path, monkeypatch):
    run(tmp_path / "runs", "20260101-000000-0001")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec("".join(cell["source"]), names)
    by_samples, by_seconds = names["energy_J"], float(names["load"]["energy_J"].sum())
    assert by_samples == pytest.approx(by_seconds, rel=1e-3) and by_seconds > 1


def test_edit_of_another_day_moves_utc_alone(tmp_path):
    made = run(tmp_path, "later")
    before = ssdrig.open(made).events["t_ns"][0]
    edit(made, later_s=86_400)
    assert ssdrig.open(made).events["t_ns"][0] == before
