"""The results of a run in a real influxd: every row that `report --json` prints, value and uncertainty equal."""

import json
import math
import shutil

import pytest
import synthetic_cuts
import synthetic_plan
import synthetic_run
import test_single_reads
from point_runs import IOPS

from selfcheck import influxd
from ssdrig.base.progress import Progress
from ssdrig.publish.influx import address, push, query
from ssdrig.reading import table
from ssdrig.views import documents

pytestmark = pytest.mark.slow

FOLDERS = {
    "consistency": lambda tmp: synthetic_run.write(tmp, IOPS * 2, idle_s=2),
    "rounds": lambda tmp: synthetic_plan.grid(tmp, rounds=2),
    "reads beside writes": lambda tmp: test_single_reads.read_beside(tmp).path,
    "cuts": lambda tmp: synthetic_cuts.write(tmp, 20, lies=0.2),
}
WHERE = ("step", "round", "point")
MOST_SERIES = 8


@pytest.fixture(scope="module")
def to(tmp_path_factory):
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    server = influxd.start(tmp_path_factory.mktemp("influxd"))
    yield address.target(server.url, {})
    server.stop()


def stored(to, measurement, run):
    """The points of a run as the database gives them, without what is null."""
    rows = []
    for series in query.series(to, f'SELECT * FROM "{measurement}" WHERE "run" = \'{run}\''):
        for values in series["values"]:
            rows.append({k: v for k, v in zip(series["columns"], values, strict=True) if v is not None})
    return rows


def series_of(to, run):
    """The series that belong to a run alone."""
    keys = [key for series in query.series(to, "SHOW SERIES") for (key,) in series["values"]]
    return [key for key in keys if f",run={run}" in f"{key},"]


def printed(folder):
    """{(step, round, point, window): figures and errors} and {(step, round, point): row} of what a report prints."""
    windows, rows = {}, {}
    for row in json.loads(json.dumps(documents.of_table(table.load(folder))))["rows"]:
        point = " ".join(f"{key}={str(value).replace(' ', '')}" for key, value in row["point"].items()) or None
        rows[row["path"], row["round"], point] = row
        for name, of in row["windows"].items():
            if of:
                errors = {f"{key}_error": error for key, error in (of["errors"] or {}).items()}
                numbers = {k: v for k, v in of.items() if isinstance(v, int | float) and not isinstance(v, bool)}
                windows[row["path"], row["round"], point, name] = numbers | errors
    return windows, rows


@pytest.mark.parametrize("name", FOLDERS)
def test_real_every_row_of_the_report_is_there(to, tmp_path, name):
    folder = FOLDERS[name](tmp_path)
    named = folder.rename(folder.with_name(f"{folder.name}-{name.replace(' ', '-')}"))
    header = json.loads((named / "run.json").read_text())
    (named / "run.json").write_text(json.dumps(header | {"run": named.name}))
    assert push.push(named, to, False, 60, Progress(quiet=True))[1:3] == (0, 0)
    windows, rows = printed(named)
    figures = stored(to, "run_figure", named.name)
    assert len(figures) == len(windows) > 0
    for point in figures:
        wanted = windows.pop((*(point.get(key) for key in WHERE), point["window"]))
        got = {key: value for key, value in point.items() if key in wanted}
        assert got == pytest.approx(wanted, rel=1e-12), (name, point["step"])
    assert not windows
    for point in stored(to, "run_value", named.name):
        row, *names = rows[tuple(point.get(key) for key in WHERE)], *point["name"].split(".")
        of = row["windows"] if names[0] in row["windows"] else row
        for key in names:
            of = (
                next((e for e in of if e.get("name") == key), of[int(key)] if key.isdigit() else None)
                if isinstance(of, list)
                else of[key]
            )
        assert point["value"] == pytest.approx(of, rel=1e-12) and math.isfinite(of)
    assert len(series_of(to, named.name)) <= MOST_SERIES
