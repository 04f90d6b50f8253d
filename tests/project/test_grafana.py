"""The dashboards: made of queries.toml, true to schemas/influx.toml, and every query answers on a real influxd with
what a run and `watch` have sent, with the values of the run folder."""

import functools
import importlib.util
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import synthetic_run
from drives import a_drive
from point_runs import IOPS, as_printed
from watching import NOVEMBER_NS, SATA, ata_document

from selfcheck import influxd
from ssdrig.base.progress import Progress
from ssdrig.drive.smart import watch_folder
from ssdrig.meter import samples
from ssdrig.publish.influx import address, line_protocol, push, query
from ssdrig.publish.watch.upload import Upload
from ssdrig.reading import table

pytestmark = pytest.mark.slow

GRAFANA = Path(__file__).resolve().parents[2] / "host" / "grafana"
spec = importlib.util.spec_from_file_location("grafana_make", GRAFANA / "make.py")
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)
SAID = make.read()
ALL = [(name, text) for name, layout in SAID.items() for text in make.queries(layout)]
DAY_NS = 86_400 * 10**9


def panel(dashboard, title):
    return next(one["query"] for one in SAID[dashboard]["panels"] if one["title"] == title)


# the files


def test_the_dashboards_are_those_of_the_queries():
    made = make.files()
    assert set(made) == set((GRAFANA / "dashboards").glob("*.json"))
    differ = [path.name for path, text in made.items() if path.read_text() != text]
    assert not differ, f"{differ} differ: run `python host/grafana/make.py`"


@pytest.mark.parametrize("name", SAID)
def test_a_dashboard_is_whole(name):
    board = json.loads((GRAFANA / "dashboards" / f"ssdrig-{name}.json").read_text())
    taken = set()
    for one in board["panels"]:
        x, y, w, h = (one["gridPos"][key] for key in "xywh")
        cells = {(i, j) for i in range(x, x + w) for j in range(y, y + h)}
        assert x + w <= 24 and not cells & taken, one["title"]
        taken |= cells
    assert len({one["id"] for one in board["panels"]}) == len(board["panels"])
    text = json.dumps(board)
    assert set(re.findall(r'"uid": "([^"]*)"', text)) == {board["uid"], "${ds}"}, "tied to one datasource"
    known = {one["name"] for one in board["templating"]["list"]}
    assert set(re.findall(r"\$\{(\w+)[:}]", text)) <= known
    for one in board["panels"]:
        (target,) = one["targets"]
        tags = set(re.findall(r"\$tag_(\w+)", target.get("alias", "")))
        assert all(f'"{tag}"' in target["query"].rpartition("GROUP BY")[2] for tag in tags)


def test_what_is_mounted_is_there():
    text = (GRAFANA / "docker-compose.yaml").read_text()
    mounted = re.findall(r"- \./(\w+):", text)
    assert mounted and all((GRAFANA / folder).is_dir() for folder in mounted)
    path = re.search(r"path: (\S+)", (GRAFANA / "provisioning/dashboards/ssdrig.yaml").read_text())[1]
    assert f"./dashboards:{path}:ro" in text
    names = re.findall(r"\$\{(\w+)\}", (GRAFANA / "provisioning/datasources/influxdb.yaml").read_text())
    assert {"SSDRIG_INFLUX_SERVER", "SSDRIG_INFLUX_DATABASE"} <= set(names)
    assert all(f"{variable}:" in text for variable in names if variable != "SSDRIG_INFLUX_TOKEN")


def strangers(text):
    """What a query names that the schema does not have."""
    schema = line_protocol.read_schema()
    aliases = set(re.findall(r'AS "([^"]+)"', text))
    tables = re.findall(r'FROM "(\w+)"', text)
    known = {name for table in tables if table in schema for name in (*schema[table].tags, *schema[table].fields)}
    named = set(re.findall(r'"([^"]+)"', text)) - aliases - set(tables)
    return [table for table in tables if table not in schema] + sorted(named - known)


@pytest.mark.parametrize(("name", "text"), ALL)
def test_what_a_query_names_stands_in_the_schema(name, text):
    assert "FROM" in text and strangers(text) == []


@pytest.mark.parametrize(("name", "text"), [one for one in ALL if 'FROM "run_figure"' in one[1]])
def test_a_row_of_figures_is_of_one_window(name, text):
    """last() of several fields takes each from the last window that knows it: a row of several windows."""
    assert "last(" not in text


def test_a_stranger_is_seen():
    assert strangers('SELECT mean("p_mean") FROM "power" WHERE "step" = 1') == ["p_mean", "step"]
    assert strangers('SELECT "iops" FROM "fio"') == ["fio", "iops"]


def test_each_query_keeps_to_a_time():
    """`time > 0 … GROUP BY time(1m)` makes 29 million rows from 1970 on."""
    for _, text in ALL:
        assert text.startswith("SHOW") or "$timeFilter" in text or "now() - 15s" in text, text


# on a real server


def urls():
    """A private influxd of our own, and whatever SSDRIG_INFLUXD names: addresses separated by spaces."""
    return ["", *os.environ.get("SSDRIG_INFLUXD", "").split()]


@pytest.fixture(scope="module", params=urls())
def lab(request, tmp_path_factory):
    """A database with a run and two drives watched for ten days: where it is, the run, and what fills the macros."""
    folder, server = tmp_path_factory.mktemp("lab"), None
    if not request.param:
        if not shutil.which("influxd"):
            pytest.skip("influxd is not installed (apt install influxdb)")
        server = influxd.start(folder / "influxd")
    to = address.target(request.param or server.url)
    try:
        run = as_printed(synthetic_run.write(folder, IOPS * 4, idle_s=2))
        header = json.loads((run / "run.json").read_text())
        header["host"]["name"] = "bench 1"
        header["drive"] |= {"firmware": "F1"}
        (run / "run.json").write_text(json.dumps(header))
        assert push.push(run, to, False, 60, Progress(quiet=True))[1:3] == (0, 0)
        upload = Upload(watched(folder / "watch"), to, lambda text: None)
        upload.finish(60)
        yield to, run
    finally:
        if server:
            server.stop()


def watched(folder):
    """Two drives polled each six hours for ten days; one of them begins to fail."""
    for n in range(40):
        utc_ns = NOVEMBER_NS + n * DAY_NS // 4
        same = {"utc_ns": utc_ns, "host": "bench 1", "t_start_ns": 10**12 + n, "t_end_ns": 10**12 + n + 10**7}
        nvme = synthetic_run.smart_document(
            n, "watch", 10**12, 10**12 + n * 10**10, 10**12 + 3 * n * 10**10, 40 + n % 5, 10**7
        )
        page = bytearray.fromhex(nvme["log_02h"])
        page[5] = 1 + n // 10  # percentage used
        page[144:160], page[160:176] = (n // 20).to_bytes(16, "little"), (n // 15).to_bytes(16, "little")
        of_nvme = {"model": "N 1", "serial": "N1"}
        watch_folder.keep(folder, nvme | {"log_02h": page.hex(), "drive": of_nvme} | same)
        sata = a_drive(serial="S123", **SATA)
        of_sata = {"model": sata.model, "serial": sata.serial}
        document = ata_document(hours=6000 + 6 * n, written_LBA=1000 + n * 10**6)
        document["smart_status"] = {"passed": n < 30}
        document["ata_smart_attributes"]["table"][0]["raw"] = {"value": n, "string": str(n)}
        document["ata_smart_attributes"]["table"].append(
            {**document["ata_smart_attributes"]["table"][0], "id": 197, "name": "Current_Pending_Sector"}
        )
        watch_folder.keep(folder, {"smartctl": document, "drive": of_sata} | same)
    return folder


@functools.cache  # every query asks this of the same run
def begin_and_end(run):
    events = table.in_full(run).data.events
    shift_ns = synthetic_run.UTC_RUN_NS - synthetic_run.T_RUN_NS
    return events[0]["t_ns"] + shift_ns, events[-1]["t_ns"] + shift_ns + 10**9


def filled(lab, name, text):
    """The query as Grafana would send it."""
    to, run = lab
    (begin, end), interval = begin_and_end(run), "1s"
    if name == "fleet":
        begin, end, interval = min(begin, NOVEMBER_NS) - DAY_NS, max(end, NOVEMBER_NS + 11 * DAY_NS), "1h"
    values = {"run": re.escape(run.name), "drive": "SIMULATED SATA TLC SIM0001", "host": ".*", "model": ".*"}
    text = re.sub(r"\$\{(\w+):regex\}", lambda match: values[match[1]], text)
    text = text.replace("$timeFilter", f"time >= {begin} AND time <= {end}").replace("$__interval", interval)
    return text.replace("now() - 15s", f"{end - 15 * 10**9}")


def rows(lab, name, text):
    return query.series(lab[0], filled(lab, name, text))


@pytest.mark.parametrize(("name", "text"), ALL)
def test_real_every_query_answers(lab, name, text):
    rows_ = rows(lab, name, text)
    values = [value for series in rows_ for row in series["values"] for value in row[1:]]
    assert any(value is not None for value in values), filled(lab, name, text)
    assert "$" not in filled(lab, name, text).replace("$/", "")


def test_real_a_query_that_is_wrong_is_no_answer(lab):
    from ssdrig.base.errors import UsageError

    with pytest.raises(UsageError):
        rows(lab, "run", "SELECT mean( FROM power")
    assert rows(lab, "run", 'SELECT mean("absent") FROM "power"') == []


def test_real_the_figures_are_those_of_the_run_folder(lab):
    """With what they are uncertain by, of each step, point and window."""
    wanted = {(row.act.path, name): of for row in table.load(lab[1]).rows for name, of in row.windows.items() if of}
    for title, keys in {
        "performance": {
            "IOPS": "iops_mean",
            "consistency": "consistency",
            "MB/s": "bw_mean_MBps",
            "P99 µs": "lat_p99_us",
        },
        "power and wear": {"W": "power_mean_W", "J": "energy_J", "µJ per I/O": "energy_uJ_per_io", "WA": "wa"},
    }.items():
        (series,) = rows(lab, "run", panel("run", f"Figures of each step, point and window, as in the report: {title}"))
        answer = [dict(zip(series["columns"], row, strict=True)) for row in series["values"]]
        assert {(row["step"], row["window"]) for row in answer} == {*wanted}
        for row in answer:
            of = wanted[row["step"], row["window"]]
            for column, key in keys.items():
                near = lambda value: None if value is None else pytest.approx(value, rel=1e-9)
                assert row[column] == near(of.get(key)), (column, row["window"])
                for error in {f"± {column}", f"± {column.split()[0]}"} & {*row}:
                    assert row[error] == near((of.get("errors") or {}).get(key)), (error, row["window"])


def test_real_the_table_of_runs_has_the_last_window_s_figures_and_no_other_s(lab):
    (load,) = (row for row in table.load(lab[1]).rows if row.act.path == "load")
    steady = load.windows["steady"]
    (series,) = rows(
        lab, "fleet", panel("fleet", "Runs that ended in this time: the last window of the only load of each")
    )
    (row,) = [dict(zip(series["columns"], values, strict=True)) for values in series["values"]]
    assert (row["window"], row["plan"], row["state"]) == ("load, steady", "consistency", "complete")
    for column, key in {"IOPS": "iops_mean", "W": "power_mean_W", "µJ per I/O": "energy_uJ_per_io", "WA": "wa"}.items():
        assert row[column] == (None if steady[key] is None else pytest.approx(steady[key], rel=1e-9))
        assert row[f"± {column.split()[0]}"] == pytest.approx(steady["errors"][key], rel=1e-9)


def test_real_energy_and_iops_are_those_of_the_run_folder(lab):
    loads = [row.data for row in table.load(lab[1], by_second=True).rows if row.act.do in ("fill", "load")]
    (series,) = rows(lab, "run", panel("run", "Energy of the run"))
    power = samples.load(lab[1])
    assert series["values"][0][1] == pytest.approx(power.energy_J[-1], rel=1e-3)
    (series,) = rows(lab, "run", panel("run", "IOPS of the loads"))
    assert sum(row[1] or 0 for row in series["values"]) == pytest.approx(sum(data.iops.sum() for data in loads))
    (series,) = rows(lab, "run", panel("run", "Energy per I/O"))
    per_io = [row[1] for row in series["values"] if row[1] is not None]
    cost = [1e6 * data.energy_J[data.iops > 0] / data.iops[data.iops > 0] for data in loads]
    assert per_io == pytest.approx(np.concatenate(cost).tolist())


def test_real_the_fleet_is_that_of_the_watch_folder(lab):
    (series,) = rows(lab, "fleet", panel("fleet", "Drives seen"))
    assert series["values"][0][1] == 2
    (series,) = rows(lab, "fleet", panel("fleet", "Drives that report failure"))
    assert series["values"][0][1] == 1
    (used,) = [
        s for s in rows(lab, "fleet", panel("fleet", "Endurance used in this time")) if s["tags"]["drive"] == "N 1 N1"
    ]
    assert used["values"][0][1] == 3
    written = rows(lab, "fleet", panel("fleet", "Written each day by the host"))
    (nvme,) = [s for s in written if s["tags"]["drive"] == "N 1 N1"]
    assert all(row[1] == pytest.approx(4e10, rel=1e-3) for row in nvme["values"][1:-1])


def test_real_a_run_is_found_by_its_drive(lab):
    (series,) = rows(lab, "run", SAID["run"]["variables"]["run"])
    assert [row[1] for row in series["values"]] == [lab[1].name]
