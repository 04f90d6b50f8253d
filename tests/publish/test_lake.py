"""A run in the lake is the run: same samples, same figures; there as a whole, or not at all."""

import contextlib
import fcntl
import json
import multiprocessing
import os
import shutil
from argparse import ArgumentParser
from pathlib import Path

import lake_runs
import numpy as np
import pytest
import synthetic_run
from lake_runs import asked, counts, lake_of, run, tree

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.meter import samples
from ssdrig.publish.lake import export, place, query, read, write
from ssdrig.reading import table

OF_WINDOW = """
SELECT f.step, f.window_name, f.energy_J AS report_J,
    sum(s.V::DOUBLE * s.I * greatest(0, least(s.t_ns, f.end_ns) - greatest(s.t_ns - s.dt_ns, f.t_ns))) * 1e-9 AS sum_J
FROM figure f JOIN sample s ON s.run = f.run AND s.t_ns > f.t_ns AND s.t_ns - s.dt_ns < f.end_ns
GROUP BY ALL"""


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> tuple[Path, read.Lake]:
    folder = tmp_path_factory.mktemp("one")
    made = run(folder, "20261120T101500Z-consistency-sata-tlc-0001", idle_s=3)
    return made, lake_of(folder / "lake", made)


def test_samples_are_those_of_the_run(one):
    made, lake = one
    power = samples.load(made)
    with read.connect(lake) as connection:
        table = connection.sql("SELECT * FROM sample ORDER BY t_ns").to_arrow_table()
    assert table["t_ns"].to_numpy().tolist() == power.t_ns.tolist()
    assert np.array_equal(table["V"].to_numpy(), power.V.astype(np.float32))
    assert np.array_equal(table["I"].to_numpy(), power.I.astype(np.float32))
    assert table["dt_ns"].to_numpy()[1:].tolist() == np.diff(power.t_ns).tolist()
    utc_us = (power.t_ns + synthetic_run.UTC_RUN_NS - synthetic_run.T_RUN_NS) // 1000
    assert table["t_utc"].cast("int64").to_numpy().tolist() == utc_us.tolist()
    assert table["lost"].null_count == table.num_rows
    assert {*table["rail"].to_pylist()} == {"5V"} and {*table["lab"].to_pylist()} == {"berlin"}


def test_energies_from_the_samples_are_the_report_s_to_a_millionth(one):
    made, lake = one
    (figures,) = (row.windows for row in table.load(made).rows if row.act.path == "load")
    energies = {row["window_name"]: row for row in asked(lake, OF_WINDOW) if row["step"] == "load"}
    assert {*energies} == {"fresh", "all", "steady"} & {name for name, of in figures.items() if of}
    for name, row in energies.items():
        assert row["report_J"] == figures[name]["energy_J"]
        assert row["sum_J"] == pytest.approx(figures[name]["energy_J"], rel=1e-6)


@pytest.mark.parametrize("lose_frames", [(), (60, 61, 200)], ids=["whole", "frames lost"])
def test_energy_by_second_is_that_of_the_reader(tmp_path, lose_frames):
    """Also over gaps: what was filled in is told with the sample behind."""
    made = run(tmp_path, "r", lose_frames=lose_frames)
    power = samples.load(made)
    rows = asked(lake_of(tmp_path / "lake", made), query.all_of()["energy-by-second"].sql)
    edges_ns = np.array([row["second"] * 10**9 for row in rows] + [(rows[-1]["second"] + 1) * 10**9])
    assert len(rows) > 8 and np.diff(edges_ns).tolist() == [10**9] * len(rows)
    wanted_J = np.diff(samples.integral_J(power, edges_ns))
    energy_J = np.array([row["energy_J"] for row in rows])
    full = np.array([row["lost"] == 0 for row in rows])
    assert energy_J[full][1:] == pytest.approx(wanted_J[full][1:], rel=1e-6)
    assert energy_J.sum() == pytest.approx(power.energy_J[-1], rel=1e-6)
    assert sum(row["lost"] for row in rows) == power.lost and (power.lost > 0) == bool(lose_frames)


def test_seconds_are_the_report_s(one):
    made, lake = one
    data = table.in_full(made).data
    rows = asked(lake, "SELECT * FROM second WHERE step = 'load' ORDER BY second")
    assert [row["write_ios"] for row in rows] == lake_runs.IOPS == data.iops.tolist()
    assert [row["energy_J"] for row in rows] == pytest.approx(data.energy_J.tolist(), rel=1e-12)
    assert [row["power_max_W"] for row in rows] == pytest.approx(data.power_max_W.tolist(), rel=1e-12)
    assert sum(row["samples"] for row in rows) == int(data.rails[0].samples.sum())
    assert {row["read_ios"] for row in rows} == {None}  # it did not read
    assert not any(row["partial"] for row in asked(lake, "SELECT partial FROM second"))
    idle = asked(lake, "SELECT * FROM second WHERE step = 'idle' ORDER BY second")
    assert len(idle) == 3 and all(row["write_ios"] is None and row["energy_J"] > 0 for row in idle)


def test_polls_events_and_the_run(one):
    made, lake = one
    (row,) = asked(lake, "SELECT * FROM run")
    assert (row["state"], row["plan"], row["firmware"], row["rails"]) == ("complete", "consistency", "1", 1)
    assert row["samples"] == counts(lake)["sample"] and row["samples_lost"] == 0 and row["simulated"]
    assert json.loads(row["header"])["method"]["seed"] == 4242
    assert str(row["date"]) == "2026-11-20" and row["lab"] == "berlin"
    polls = asked(lake, "SELECT * FROM smart ORDER BY t_ns")
    assert len(polls) == len(list((made / "smart").iterdir()))
    assert json.loads(polls[0]["document"])["log_02h"] and polls[-1]["host_written_bytes"] > 0
    events = asked(lake, "SELECT event, step FROM event ORDER BY t_ns")
    assert events[0]["event"] == "run.start" and events[-1]["event"] == "run.end"


def test_exported_twice_nothing_changes(one, tmp_path):
    made, _ = one
    lake_of(tmp_path / "lake", made)
    before = tree(tmp_path / "lake")
    lake = lake_of(tmp_path / "lake", made)
    assert tree(tmp_path / "lake") == before
    assert counts(lake)["run"] == 1


def test_what_another_wrote_into_a_lake_removes_nothing_outside_of_it(tmp_path, monkeypatch):
    """A row of a run names the files of the export before; who may write to a lake may write such a row."""
    lake_of(tmp_path / "lake", run(tmp_path, "mine", [500]))
    foreign = tmp_path / "kept"
    foreign.write_text("x")
    others = next((tmp_path / "lake").rglob("kind=event/**/*.parquet"))
    named = ["../kept", "schema=1/kind=run/date=2026-11-20/lab=berlin/../../../../../kept", str(foreign)]
    named += [str(others.relative_to(tmp_path / "lake")).replace("mine--", "other--")]
    (tmp_path / "lake" / named[-1]).write_bytes(b"x")
    earlier = write.earlier
    monkeypatch.setattr(write, "earlier", lambda *words: (earlier(*words) or {}) | {"export": "", "files": named})
    where = place.open_place(str(tmp_path / "lake"))
    assert write.export(tmp_path / "mine", where, "berlin").new
    assert foreign.read_text() == "x" and (tmp_path / "lake" / named[-1]).exists()


def test_the_content_is_a_function_of_the_run_folder(one, tmp_path):
    made, lake = one
    other = lake_of(tmp_path / "lake", shutil.copytree(made, tmp_path / "copied elsewhere"))
    root = Path(lake.place.root)
    for name in tree(root):
        assert (root / name).read_bytes() == Path(other.place.path(name)).read_bytes(), name


@pytest.mark.slow
def test_a_run_that_has_changed_is_there_once(tmp_path):
    made = run(tmp_path, "r")
    first = lake_of(tmp_path / "lake", made)
    once = counts(first)
    lake_runs.edit(made, firmware="2")
    second = lake_of(tmp_path / "lake", made)
    assert counts(second) == once
    with pytest.raises(JournalError, match="look again"):  # who looked before fails, and is told
        query.ask(first, "SELECT count(*) FROM sample", str(tmp_path))
    assert asked(second, "SELECT firmware FROM run") == [{"firmware": "2"}]
    named = {name for names in second.files.values() for name in names}
    assert {name for name in tree(tmp_path / "lake") if "kind=run" not in name} == named  # of the old one none is left


class Dies(Exception):
    pass


def export_dying(made: Path, where: place.Place, at: int, when: str, monkeypatch) -> bool:
    """Whether an export died at its file number `at`: before anything of it was written, in its midst, behind it."""
    writing, count = place.Place.writing, iter(range(100))

    @contextlib.contextmanager
    def dying(self, name):
        is_last = next(count) == at
        if is_last and when == "before":
            raise Dies
        with writing(self, name) as file:
            yield file
            if is_last and when == "midst":
                raise Dies
        if is_last:
            raise Dies

    with monkeypatch.context() as patched:
        patched.setattr(place.Place, "writing", dying)
        try:
            write.export(made, where, "berlin")
        except Dies:
            return True
    return False


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> tuple[Path, Path, dict[str, int], dict[str, int]]:
    """Two runs; the rows of a lake of the first one, and of both."""
    folder = tmp_path_factory.mktemp("two")
    there, made = run(folder, "there", IOPS_SHORT), run(folder, "made", IOPS_SHORT)
    return there, made, counts(lake_of(folder / "lake", there)), counts(lake_of(folder / "lake", made))


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "midst", "behind"])
def test_an_export_that_dies_anywhere_shows_nothing_or_all_of_the_run(two, tmp_path, monkeypatch, when):
    there, made, alone, both = two
    where = place.open_place(str(tmp_path / "lake"))
    write.export(there, where, "berlin")
    seen = []
    for at in range(20):
        died = export_dying(made, where, at, when, monkeypatch)
        seen.append(counts(read.look(where)))
        assert seen[-1] in (alone, both)
        if seen[-1] == both:
            break
        assert died
    # sample, second, figure, smart, event, run
    assert seen[-1] == both and len(seen) == (6 if when == "behind" else 7)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(7))
def test_of_a_run_exported_anew_readers_see_the_old_or_the_new(tmp_path, monkeypatch, at):
    made = run(tmp_path, "made", IOPS_SHORT)
    where = place.open_place(str(tmp_path / "lake"))
    write.export(made, where, "berlin")
    lake_runs.edit(made, firmware="2")
    died = export_dying(made, where, at, "behind", monkeypatch)
    lake = read.look(where)
    (row,) = asked(lake, "SELECT firmware, export FROM run")
    assert row["firmware"] == ("1" if at < 5 else "2") and died == (at < 6)
    kinds = ("sample", "second", "smart", "event", "figure")
    exports = asked(lake, " UNION ".join(f"SELECT '{kind}' AS kind, export FROM {kind}" for kind in kinds))
    assert {(of["kind"], of["export"]) for of in exports} == {(kind, row["export"]) for kind in kinds}


IOPS_SHORT = [1000, 1000]


@pytest.mark.slow
def test_many_writers_need_no_coordinator(tmp_path):
    """Four processes export six runs, all of them all, in other orders."""
    runs = [run(tmp_path, f"run-{i}", IOPS_SHORT, model=f"drive {i}") for i in range(6)]
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=lake_of, args=(tmp_path / "lake", *runs[i:], *runs[:i])) for i in range(0, 6, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    lake = lake_of(tmp_path / "lake")
    once = counts(lake_of(tmp_path / "other", *runs))
    assert counts(lake) == once and once["run"] == 6
    assert not [name for name in tree(tmp_path / "lake") if name.rpartition("/")[2].startswith(".")]


def test_a_resumed_run_has_all_its_parts(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT, state=None)
    part = run(made, "part-2", IOPS_SHORT, later_s=3600, first_io=True)
    header = json.loads((part / "run.json").read_text())
    header |= {"run": "made", "resumed": {"part": 2, "begins": 0, "round": 0, "state": {"name": "unknown"}}}
    (part / "run.json").write_text(json.dumps(header))
    lake = lake_of(tmp_path / "lake", made)
    first, second = asked(
        lake,
        "SELECT part, count(*) AS n, min(t_utc) AS since, min(t_ns) AS t_ns FROM sample GROUP BY part ORDER BY part",
    )
    assert first["n"] == second["n"] and first["t_ns"] == second["t_ns"]
    assert (second["since"] - first["since"]).total_seconds() == 3600
    assert asked(lake, "SELECT parts, samples FROM run") == [{"parts": 2, "samples": first["n"] + second["n"]}]
    assert asked(lake, "SELECT DISTINCT part FROM figure") == [{"part": 2}]  # the last one that did the load
    assert all(row["sum_J"] is not None for row in asked(lake, OF_WINDOW))


def test_a_run_without_a_rig_has_seconds_without_power(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT, power=False)
    header = json.loads((made / "run.json").read_text()) | {"rig": None}
    (made / "run.json").write_text(json.dumps(header))
    lake = lake_of(tmp_path / "lake", made)
    assert counts(lake)["sample"] == 0
    (row,) = asked(lake, "SELECT sum(write_ios) AS ios, count(energy_J) AS known FROM second WHERE step = 'load'")
    assert row == {"ios": 2000, "known": 0}
    assert asked(lake, "SELECT samples, rails FROM run") == [{"samples": None, "rails": None}]


def test_a_run_that_goes_on_is_refused(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT, state=None)
    with open(made / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JournalError, match="a process that still writes it"):
            lake_of(tmp_path / "lake", made)
    assert counts(lake_of(tmp_path / "lake", made))["run"] == 1  # it died: what it left is worth keeping


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "x" * 300, "a'b", "date=1", ".hidden"])
def test_names_that_would_leave_the_lake_are_refused(tmp_path, name):
    made = run(tmp_path, "made", IOPS_SHORT)
    header = json.loads((made / "run.json").read_text()) | {"run": name}
    (made / "run.json").write_text(json.dumps(header))
    with pytest.raises(UsageError):
        lake_of(tmp_path / "lake", made)
    assert not (tmp_path / "lake").exists()
    with pytest.raises(UsageError):
        write.name_of("the name of a lab", name)


def test_a_run_is_in_a_lake_for_one_lab_and_one_drive(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT)
    lake_of(tmp_path / "lake", made)
    with pytest.raises(UsageError, match="of lab berlin"):
        lake_of(tmp_path / "lake", made, lab="rome")
    lake_runs.edit(made, serial="ANOTHER")
    with pytest.raises(UsageError, match="one of drive SIM0001"):
        lake_of(tmp_path / "lake", made)


@pytest.mark.slow
def test_a_column_that_older_files_do_not_have_is_null(tmp_path, monkeypatch):
    """As will be after a column is added: each file was written by the ssdrig of its time."""
    import pyarrow.parquet as pq

    made, newer = run(tmp_path, "made", IOPS_SHORT), run(tmp_path, "newer", IOPS_SHORT)
    lake = lake_of(tmp_path / "lake", made, newer)
    for name in [*lake.files["second"], *(n for n in tree(tmp_path / "lake") if "kind=run" in n)]:
        if "/made" in name:
            path = tmp_path / "lake" / name
            old = pq.read_table(path, partitioning=None).drop_columns(
                ["power_mean_W" if "second" in name else "firmware"]
            )
            pq.write_table(old, path)
    lake = read.look(place.open_place(str(tmp_path / "lake")))
    sql = "SELECT run, count(power_mean_W) > 0 AS known FROM second GROUP BY run ORDER BY run"
    assert asked(lake, sql) == [{"run": "made", "known": False}, {"run": "newer", "known": True}]
    assert asked(lake, "SELECT firmware FROM run ORDER BY run") == [{"firmware": None}, {"firmware": "1"}]


def test_a_full_disk_leaves_nothing(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT)
    blocked = tmp_path / "lake/schema=1/kind=event"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder should be")
    with pytest.raises(JournalError, match="to read and write"):
        lake_of(tmp_path / "lake", made)
    assert read.look(place.open_place(str(tmp_path / "lake"))).runs.num_rows == 0
    assert [*tree(tmp_path / "lake")] == ["schema=1/kind=event"]


def test_an_export_that_fails_removes_nothing_that_a_row_names(tmp_path, monkeypatch):
    made = run(tmp_path, "made", IOPS_SHORT)
    lake = lake_of(tmp_path / "lake", made)
    once = tree(tmp_path / "lake")
    (tmp_path / "lake" / lake.files["event"][0]).unlink()
    export_dying(made, lake.place, 2, "before", monkeypatch)
    assert {*once} - {*tree(tmp_path / "lake")} == {*lake.files["event"]}


def parsed(*words: str):
    parser = ArgumentParser()
    export.add_arguments(parser)
    return parser.parse_args(words)


def test_the_command_goes_on_behind_a_run_that_fails(tmp_path, capsys):
    made = run(tmp_path, "made", IOPS_SHORT)
    words = [str(tmp_path / "none"), str(made), "--parquet", str(tmp_path / "lake"), "--json", "--lab", "rome"]
    assert export.command(parsed(*words)) == JournalError.exit_code
    out, err = capsys.readouterr()
    assert json.loads(out)["new"] and "a run folder with a run.json" in err
    assert export.command(parsed(*words[1:])) == 0
    out, err = capsys.readouterr()
    assert not json.loads(out)["new"] and "is there already" in err


def test_a_host_s_name_becomes_a_lab(tmp_path):
    made = run(tmp_path, "made", IOPS_SHORT)
    header = json.loads((made / "run.json").read_text())
    header["host"]["name"] = "bench 1/ä"
    (made / "run.json").write_text(json.dumps(header))
    assert export.lab_of(made) == "bench-1"
    assert os.sep not in export.lab_of(made)


def off(row: dict) -> float:
    return abs(row["sum_J"] / row["report_J"] - 1)


def test_a_plan_s_rounds_and_points_are_the_report_s(tmp_path):
    """Each act's window, with its round and the swept values; energies from the samples, too."""
    import synthetic_plan

    from ssdrig.reading import table

    made = synthetic_plan.grid(tmp_path, rounds=2)
    lake = lake_of(tmp_path / "lake", made)
    whole = table.load(made)
    wanted = [row for row in whole.rows if row.windows.get("all")]
    (of_run,) = asked(lake, "SELECT closure_percent FROM run")
    assert of_run["closure_percent"] == whole.data.closure.corrected_percent
    rows = asked(lake, "SELECT * FROM figure WHERE window_name = 'all' ORDER BY t_ns")
    assert len(rows) == len(wanted) > 4
    for row, of in zip(rows, sorted(wanted, key=lambda wanted_row: wanted_row.t0_s), strict=True):
        assert (row["step"], row["round"]) == (of.act.path, of.round)
        assert json.loads(row["point"] or "{}") == dict(of.act.point)
        began_ns = synthetic_run.T_RUN_NS + (of.t0_s + of.windows["all"]["t0_s"]) * 1e9
        assert row["t_ns"] == pytest.approx(began_ns, rel=0, abs=1)
        for key in ("ios", "iops_mean", "energy_J", "lat_mean_us", "iops_per_W"):
            assert row[key] == of.windows["all"][key]
    sums = [row for row in asked(lake, OF_WINDOW) if row["report_J"]]
    assert sums and max(map(off, sums)) < 1e-6
    seconds = asked(lake, "SELECT step, round, point, count(*) AS n FROM second GROUP BY ALL")
    assert {row["round"] for row in seconds} >= {row.round for row in wanted}
