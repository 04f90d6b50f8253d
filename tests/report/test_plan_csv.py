"""`report --csv` of a plan's run and of a review: all digits of what their pages show."""

import csv
import errno
from dataclasses import replace

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
from test_report import run_command
from test_review_page import review

from ssdrig import cli
from ssdrig.reading import table
from ssdrig.report import csv_files
from ssdrig.runs import annotations
from ssdrig.views import svg


def read(folder, kind: str) -> list[dict]:
    (path,) = folder.glob(f"*-{kind}.csv")
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_plans_figures_seconds_and_marks(tmp_path):
    run = synthetic_plan.steps(tmp_path)
    annotations.add(run, "fan off", 2.5)
    run_command(run, "--csv", tmp_path / "csv", "--out", tmp_path / "p.html", "--quiet")
    lines, of = read(tmp_path / "csv", "steps"), table.load(run)
    for row in of.rows:
        for name, figures in row.windows.items():
            (line,) = [line_ for line_ in lines if (line_["step"], line_["window"]) == (row.act.path, name)]
            for key in ("iops_mean", "energy_J", "power_mean_W"):
                want = (figures or {}).get(key)
                assert float(line[key] or "nan") == want if want is not None else not line[key]
            assert float(line["window_t1_s"]) == figures["t1_s"] and line["state"] == row.state
    seconds = read(tmp_path / "csv", "seconds")
    by_path = {row.act.path: row.data for row in of.rows if row.data is not None and len(row.data.iops)}
    assert {line["step"] for line in seconds} == set(by_path) >= {"clean", "after"}
    for path, data in by_path.items():
        mine = [line for line in seconds if line["step"] == path]
        assert [float(line["t_s"]) for line in mine] == list(range(len(data.iops)))
        assert [float(line["power_mean_W"]) for line in mine] == data.power_mean_W.tolist()
    assert ("2.5", "fan off") in [(mark["t_s"], mark["words"]) for mark in read(tmp_path / "csv", "marks")]
    assert [row["step"] for row in lines if row["window"] == ""] == [r.act.path for r in of.rows if not r.windows]


def test_rounds_and_points_are_told_apart_and_two_runs_have_files_of_their_own(tmp_path):
    runs = [synthetic_plan.grid(tmp_path / name) for name in "ab"]
    run_command(*runs, "--csv", tmp_path / "csv", "--out", tmp_path / "p.html", "--quiet")
    made = sorted(path.name for path in (tmp_path / "csv").glob("*-steps.csv"))
    assert len(made) == 2 == len(set(made))
    with open(tmp_path / "csv" / made[0], newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({(row["round"], row["point"]) for row in rows}) == len(rows) == 22
    assert any(row["point"] == "read=0 block=4KiB" for row in rows)


@pytest.mark.slow
def test_a_review_has_those_of_each_of_its_runs(tmp_path):
    run_command(review(tmp_path), "--csv", tmp_path / "csv", "--out", tmp_path / "v.html", "--quiet")
    assert len([*(tmp_path / "csv").glob("*-steps.csv")]) == 3
    assert (tmp_path / "v.html").exists()


def test_what_cannot_be_written_is_an_error_before_the_page(tmp_path, capsys):
    run = synthetic_plan.grid(tmp_path)
    (tmp_path / "file").write_text("")
    assert cli.main(["report", str(run), "--csv", str(tmp_path / "file"), "-o", str(tmp_path / "p.html")]) == 8
    assert "--csv DIR" in capsys.readouterr().err and not (tmp_path / "p.html").exists()


def test_a_load_without_a_histogram_of_clat_has_its_p99_of_lat(tmp_path):
    """As of a load of hours, of which fio keeps its documents alone."""
    run = synthetic_run.write(tmp_path, [3000] * 70, logs=False)
    run_command(run, "--csv", tmp_path / "csv", "--out", tmp_path / "p.html", "--quiet")
    (row, *_), data = read(tmp_path / "csv", "seconds"), table.in_full(run).data
    assert data.hist_of == "lat" and float(row["lat_p99_us"]) == data.lat_p99_us[0] and "clat_p99_us" not in row
    page = (tmp_path / "p.html").read_text()
    assert "submission included (lat). Line" in page and '["lat_p99","lat_p99_us"]' in page


def test_steps_have_the_columns_that_any_of_them_has(tmp_path):
    """A later part may have rails, and a longer step percentiles of another kind, that the first has not."""
    of = table.load(synthetic_plan.steps(tmp_path))
    first, second = [row.data for row in of.rows if row.data is not None and len(row.data.iops)][:2]
    second.hist_of, second.rails = "lat", [replace(second.rails[0], name=name) for name in ("5V", "12V")]
    columns, rows = next(table_[1:] for table_ in csv_files.plan_tables(of) if table_[0] == "seconds")
    lines = [dict(zip(columns, row, strict=True)) for row in rows]
    assert {"clat_p99_us", "lat_p99_us", "power_mean_W 12V"} <= {*columns}
    assert np.isnan(lines[0]["power_mean_W 12V"]) and np.isnan(lines[0]["lat_p99_us"])
    watts = [row["power_mean_W 12V"] for row in lines[len(first.iops) :]]
    assert watts[: len(second.iops)] == second.rails[0].power_mean_W.tolist()


def test_where_there_is_no_room_the_files_stay_that_were_there(tmp_path):
    tables = lambda n: [("seconds", ["n"], [[n]]), ("marks", ["n"], [[n]])]
    csv_files.write(tmp_path, "r", tables(1))

    def full():
        yield "seconds", ["n"], [[2]]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError):
        csv_files.write(tmp_path, "r", full())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "r-seconds.csv": "n\n1\n",
        "r-marks.csv": "n\n1\n",
    }


def test_a_number_has_the_digits_that_tell_it_from_the_next_one(tmp_path):
    """Of a run of days, samples 100 µs apart; of a fast drive, bytes a second."""
    times = [250_000.1234, 250_000.1235]
    (path,) = csv_files.write(tmp_path, "r", [("samples", ["t_s", "B"], [[t, 12_345_678_901.0] for t in times])])
    rows = list(csv.reader(path.read_text().splitlines()))[1:]
    assert [float(t) for t, _ in rows] == times and [of for _, of in rows] == ["12345678901"] * 2


def test_what_a_plot_draws_is_its_data():
    plot = svg.Plot("a", 400, 300, (0, 10), (0, 5))
    plot.line([(1, 2), (2, float("nan")), (3, 1 / 3)], "", name='=HYPERLINK("x")')
    plot.mark(4, 5, svg.look(0), "round 4, read=0: 5 W")
    plot.axes("s", "W")
    assert list(csv.reader(plot.csv().splitlines())) == [
        ["series", "s", "W"],
        ['\'=HYPERLINK("x")', "1", "2"],
        ['\'=HYPERLINK("x")', "3", "0.333333333"],
        ["round 4, read=0: 5 W", "4", "5"],
    ]
    assert "data-csv" in plot.text() and "data-csv" not in plot.text(False)
    assert "data-csv" not in svg.Plot("a", 400, 300, (0, 10), (0, 5)).text()
