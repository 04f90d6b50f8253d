"""`ssdrig query`: each question that is ready on a lake whose answers are known, and what the command says."""

import csv
import io
import json
import re
from argparse import ArgumentParser
from pathlib import Path

import lake_runs
import pytest
from lake_runs import lake_of, run

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.publish.lake import query, read

DAY_S = 86_400
FAST, SLOW = [4000] * 4, [1000] * 4
CUT = {
    "control": None,
    "judged": True,
    "failed": False,
    "lost_volatile": 3,
    "ready_s": 0.5,
    "fall": {"holdup_us": 900.0},
}
CUT |= {"aim": "flush", "shape": "float", "boot_J": 0.25, "findings": {}, "words": [], "fired_ns": 1_000_500_000_000}


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> read.Lake:
    """A fast drive with two firmwares, the second slower and thirstier, and two over-provisionings; a slow drive that
    uses less power; and one that is slower and thirstier than both. Days apart. One run has a campaign of cuts."""
    folder = tmp_path_factory.mktemp("lake")
    low, high = ((-100.0, 1.0), (0.0, 1.5)), ((-100.0, 1.0), (0.0, 3.0))
    common = {"zoom_s": 2, "idle_s": 3, "smart_every_s": 1, "fill_s": 1}
    runs = [
        run(folder, "fast-1", FAST, watts=high, model="fast", wa=3.0, op_percent=7, **common),
        run(folder, "fast-2", FAST, watts=high, model="fast", wa=1.5, op_percent=25, later_s=DAY_S, **common),
        run(
            folder,
            "fast-3",
            SLOW,
            firmware="2",
            watts=low,
            model="fast",
            wa=2.0,
            op_percent=7,
            later_s=2 * DAY_S,
            **common,
        ),
        run(folder, "slow-1", SLOW, watts=low, model="slow", wa=4.0, op_percent=7, temperature_C=60, **common),
        run(folder, "beaten-1", [900, 0, 900, 900], watts=high, model="beaten", op_percent=7, **common),
    ]
    cut_twice(runs[3])
    return lake_of(folder / "lake", *runs)


def cut_twice(made: Path) -> None:
    """Two judged cuts, one of which broke a promise, and a control session."""
    import synthetic_run

    events = [json.loads(line) for line in (made / "events.jsonl").read_text().splitlines()]
    for event in events:
        del event["line"], event["crc"]
    judged = [{"cut": 1}, {"cut": 2, "failed": True, "ready_s": 1.5}, {"cut": 3, "control": "no-cut"}]
    events[-1:-1] = [
        {"t_ns": events[-1]["t_ns"], "kind": "session.judged", "step": "cuts", **CUT, **session} for session in judged
    ]
    synthetic_run.seal(made, events)


def answer(lake: read.Lake, name: str, tmp_path) -> list[dict]:
    return list(query.rows_of(query.ask(lake, query.all_of()[name].sql, str(tmp_path))))


def efficiency_frontier(rows):
    # the latest run of each drive: the fast one is now as slow as the slow one, on as much power; nothing beats a tie
    assert {row["drive"].split()[0] for row in rows} == {"fast", "slow"}
    assert all(row["iops_mean"] == 1000 and row["power_mean_W"] == pytest.approx(1.5, 0.01) for row in rows)


def wa_against_op(rows):
    amplifications = {(row["drive"].split()[0], row["op_percent"]): row for row in rows}
    assert {*amplifications} == {("fast", 7), ("fast", 25), ("slow", 7)}
    assert amplifications["fast", 25]["wa"] == pytest.approx(1.5, abs=amplifications["fast", 25]["wa_error"])
    assert amplifications["slow", 7]["wa"] == pytest.approx(4.0, abs=amplifications["slow", 7]["wa_error"])
    assert amplifications["fast", 7]["windows"] == 2


def drift_over_firmware(rows):
    fast = [row for row in rows if row["drive"].startswith("fast") and row["step"] == "load"]
    assert [row["firmware"] for row in fast] == ["1", "1", "2"]
    assert [row["iops_percent"] for row in fast] == [0, 0, -75]
    assert fast[2]["power_percent"] == pytest.approx(-50, abs=1)


def energy_per_io(rows):
    whole = [row for row in rows if row["window_name"] == "all"]
    costs = [row["energy_uJ_per_io"] for row in whole]
    assert costs == sorted(costs) and costs[0] == pytest.approx(3.0 / 4000 * 1e6, rel=0.01)
    assert whole[-1]["drive"].startswith("beaten")


def energy_by_second(rows):
    assert {row["run"] for row in rows} == {"fast-1", "fast-2", "fast-3", "slow-1", "beaten-1"}
    busy = [row["energy_J"] for row in rows if row["run"] == "fast-1"][5:7]
    assert busy == pytest.approx([3.0, 3.0], rel=0.01)


def power_percentiles(rows):
    assert len(rows) == 5 and rows[0]["max_W"] == pytest.approx(3.0, rel=1e-3)
    assert all(row["p50_W"] <= row["p99_W"] <= row["p999_W"] <= row["max_W"] for row in rows)


def at_rest(rows):
    idle = [row for row in rows if row["step"] == "idle"]
    assert len(idle) == 5 and all(row["seconds"] == 3 for row in idle)
    assert {round(row["floor_W"], 1) for row in idle} == {1.5, 3.0} and all(row["above_J"] < 0.1 for row in idle)


def slowest_seconds(rows):
    first = next(row for row in rows if row["run"] == "beaten-1" and row["step"] == "load")
    assert (first["second"], first["ios"]) == (1, 0)


def wear(rows):
    slow = next(row for row in rows if row["drive"].startswith("slow"))
    assert (
        slow["used"] == 1 and slow["host_bytes"] > 0 and slow["TB_per_percent"] is None
    )  # it did not wear by a percent


def hot(rows):
    assert rows[0]["drive"].startswith("slow") and rows[0]["most_C"] == 62
    assert rows[0]["busiest_second_W"] == pytest.approx(1.5, rel=0.01)


def can_it_be_trusted(rows):
    assert len(rows) == 5 and not any(row["calibrated"] for row in rows) and all(row["notes"] for row in rows)


def costs_of_a_bench(rows):
    assert [row["runs"] for row in rows] == [3, 1, 1] and rows[0]["drives"] == 3
    assert rows[0]["lab"] == "berlin" and rows[0]["samples"] > 10_000 and rows[0]["samples_lost"] == 0


def cuts(rows):
    (row,) = rows
    assert (row["judged"], row["failed"], row["lost_volatile"], row["ready_most_s"]) == (2, 1, 6, 1.5)
    assert (row["aim"], row["shape"], row["holdup_us"], row["boot_J"]) == ("flush", "float", 900, 0.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", query.all_of())
def test_questions_that_are_ready(name, lake, tmp_path):
    question = query.all_of()[name]
    assert question.title.endswith((".", "?")) and len(question.title) <= 120
    globals()[name.replace("-", "_")](answer(lake, name, tmp_path))


def test_a_dozen_of_them():
    assert len(query.all_of()) >= 12


def asked(*words: str) -> int:
    parser = ArgumentParser()
    query.add_arguments(parser)
    return query.command(parser.parse_args(words))


def test_run_folders_answer_as_their_lake_does(lake, tmp_path, capsys):
    folder = Path(lake.place.root).parent
    runs = [str(folder / name) for name in ("fast-1", "slow-1")]
    sql = "SELECT run, count(*) AS n, round(sum(V * I * dt_ns) * 1e-9, 3) AS J FROM sample GROUP BY run ORDER BY run"
    assert asked(sql, *runs, "--json") == 0
    of_runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert asked(sql, "--lake", lake.place.root, "--since", "2026-11-20", "--until", "2026-11-20", "--csv") == 0
    of_lake = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["run"] for row in of_lake] == ["beaten-1", "fast-1", "slow-1"]
    assert [{**row, "n": int(row["n"]), "J": float(row["J"])} for row in of_lake[1:]] == of_runs


def test_the_table_for_people(lake, capsys):
    assert (
        asked("SELECT 1.23456789e0 AS x, NULL AS y, 'a\x1b[31m' || repeat('b', 99) AS z", "--lake", lake.place.root)
        == 0
    )
    head, row = capsys.readouterr().out.splitlines()
    assert re.split(r"  +", head.strip()) == ["x", "y", "z"]
    assert "1.23457" in row and "–" in row and "\x1b" not in row and row.endswith("…")
    assert asked("SELECT * FROM range(250)", "--lake", lake.place.root) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "… 150 more rows: --csv prints all"


def test_columns_of_one_name_are_all_there(lake, capsys):
    sql = "SELECT a.run, b.run, 'x' AS run_2 FROM run a JOIN run b USING (run) WHERE a.run = 'fast-1'"
    assert asked(sql, "--lake", lake.place.root, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"run": "fast-1", "run_3": "fast-1", "run_2": "x"}
    assert asked(sql, "--lake", lake.place.root, "--csv") == 0
    assert capsys.readouterr().out == "run,run_3,run_2\nfast-1,fast-1,x\n"
    assert asked(sql, "--lake", lake.place.root) == 0 and len(capsys.readouterr().out.split()) == 6


def test_json_has_no_number_that_is_none_and_csv_no_formula(lake, capsys):
    sql = (
        "SELECT 'nan'::DOUBLE AS a, [1e300 * 1e300, 1] AS b, {'c': -1e300 * 1e300} AS d, '=HYPERLINK(1)' AS e, -1 AS f"
    )
    assert asked(sql, "--lake", lake.place.root, "--json") == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert document == {"a": None, "b": [None, 1], "d": {"c": None}, "e": "=HYPERLINK(1)", "f": -1}
    assert asked("SELECT '=HYPERLINK(1)' AS e, -1 AS f", "--lake", lake.place.root, "--csv") == 0
    assert capsys.readouterr().out == "e,f\n'=HYPERLINK(1),-1\n"


def test_list_and_show(capsys):
    assert asked("--list") == 0
    assert "wa-against-op" in capsys.readouterr().out
    assert asked("--show", "wa-against-op") == 0
    assert "FROM figure" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "SQL, or the name of a question"),
        (["efficency-frontier", "--lake", "x"], "do you mean 'efficiency-frontier'?"),
        (["SELECT 1"], "run folders, or a lake"),
        (["SELECT 1", "run", "--lake", "x"], "run folders, or a lake"),
        ([" ;\n", "run"], "SQL, or the name of a question"),
        (["SELECT 1", "run", "--since", "2026-11-20"], "--since and --until of a lake"),
        (["SELECT 1", "run", "--csv", "--json"], "--csv or --json"),
        (["SELECT 1", "--lake", "x", "--until", "2026-13-01"], "a date such as"),
    ],
)
def test_wrong_words(words, expected):
    with pytest.raises(UsageError, match=re.escape(expected)):
        asked(*words)


def test_wrong_sql(lake):
    for sql in ("SELEC 1", "SELECT nothing FROM run", "SELECT * FROM nowhere"):
        with pytest.raises(UsageError, match="SQL that DuckDB takes"):
            asked(sql, "--lake", lake.place.root)


def test_an_empty_lake_says_so_and_has_all_columns(tmp_path, capsys):
    assert asked("SELECT run, energy_J, lab FROM second", "--lake", str(tmp_path)) == 0
    out, err = capsys.readouterr()
    assert out.split() == ["run", "energy_J", "lab"] and "no run" in err


def test_a_damaged_lake_is_no_defect(tmp_path):
    made = run(tmp_path, "made", [1000])
    lake = lake_of(tmp_path / "lake", made)
    path = Path(lake.place.path(lake.files["sample"][0]))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises((JournalError, UsageError)):
        asked("SELECT count(V) FROM sample", "--lake", str(tmp_path / "lake"))
    mark = next((tmp_path / "lake").rglob("made.parquet"))
    mark.write_bytes(b"PAR1")
    with pytest.raises(JournalError):
        asked("SELECT 1", "--lake", str(tmp_path / "lake"))
    assert lake_runs.tree(tmp_path / "lake")
