"""The host's power in InfluxDB and in the lake: that of the report, whichever drive the rig feeds."""

import json
import shutil
from pathlib import Path

import pytest
import synthetic_plan
import synthetic_run
from lake_runs import asked, lake_of
from point_runs import emit, read

from selfcheck import influxd
from ssdrig.base.progress import Progress
from ssdrig.meter.pairing import EVENT, NOT_PAIRED
from ssdrig.publish.influx import address, points, push, query
from ssdrig.reading import table, timeline
from ssdrig.runs import journal
from ssdrig.views import documents

POWERS = [(10.0, {"package-0": 455.0, "psys": 900.0}, 181.5), (5.0, {"package-0": 300.0}, 200.0), (4.0, {}, None)]
ZONES = {("package-0", 45.5, 455.0), ("psys", 90.0, 900.0), ("BMC", 181.5, None)}
ZONES |= {("package-0", 60.0, 300.0), ("BMC", 200.0, None)}


def made(runs: Path, unpaired: bool = False) -> Path:
    """A run whose step `clean` has three events `host`."""
    run = synthetic_plan.steps(runs, name="made")
    out: list[dict] = []
    for event in journal.events(run):
        bare = {key: value for key, value in event.items() if key not in ("line", "crc")}
        out.append(bare)
        if unpaired and bare["kind"] == "run.start":
            out.append({"t_ns": bare["t_ns"], "kind": EVENT, "verdict": NOT_PAIRED, "why": "another", "looks": []})
        if bare["kind"] == "step.start" and bare["step"] == "clean":
            for n, (lasted_s, energy_J, bmc_W) in enumerate(POWERS, 1):
                host = {"t_ns": bare["t_ns"] + n * 10**9, "kind": "host", "lasted_s": lasted_s, "energy_J": energy_J}
                out.append(host if bmc_W is None else host | {"bmc_W": bmc_W})
    synthetic_run.seal(run, out)
    return run


def begins_ns(run: Path) -> list[int]:
    """Begin of each event's time."""
    events = [event for event in journal.events(run) if event["kind"] == "host"]
    return [event["t_ns"] - round(event["lasted_s"] * 1e9) for event in events]


@pytest.mark.parametrize("unpaired", [False, True])
def test_points(tmp_path, unpaired):
    run = made(tmp_path, unpaired)
    points_ = [(dict(tags), fields, t) for name, tags, fields, t in read(emit(run)) if name == "host_power"]
    assert {(tags["zone"], fields["power_W"], fields.get("energy_J")) for tags, fields, _ in points_} == ZONES
    assert len(points_) == points.counts(run)["host_power"] == 5 and {fields["run"] for _, fields, _ in points_} == {
        "made"
    }
    utc = timeline.clock(journal.run_header(run), journal.events(run))
    begins = [begin for begin, n in zip(begins_ns(run), (3, 2, 0), strict=True) for _ in range(n)]
    assert [t for *_, t in points_] == [utc.at(begin) for begin in begins]


@pytest.mark.parametrize("unpaired", [False, True])
def test_rows_of_the_lake(tmp_path, unpaired):
    run = made(tmp_path / "runs", unpaired)
    rows = asked(lake_of(tmp_path / "lake", run), "SELECT * FROM host ORDER BY t_ns, zone")
    assert {(row["zone"], row["power_W"], row["energy_J"]) for row in rows} == ZONES
    assert {row["step"] for row in rows} == {"clean"} and len(rows) == 5
    assert sorted({row["t_ns"] for row in rows}) == sorted(begins_ns(run)[:2])


def test_real_points_come_to_the_report_s_power(tmp_path):
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    run, server = made(tmp_path), influxd.start(tmp_path / "influxd")
    try:
        to = address.target(server.url, {})
        assert push.push(run, to, False, 60, Progress(quiet=True))[1:3] == (0, 0)
        (series,) = query.series(to, 'SELECT power_W, lasted_s, "zone" FROM host_power WHERE "zone" = \'BMC\'')
        joules = sum(watts * seconds for _, watts, seconds, _ in series["values"])
        mean_W = joules / sum(seconds for _, _, seconds, _ in series["values"])
    finally:
        server.stop()
    (step,) = json.loads(json.dumps(documents.of_table(table.load(run))))["host_power"]
    assert mean_W == pytest.approx(step["power_W"]["BMC"]) and step["step"] == "clean"
