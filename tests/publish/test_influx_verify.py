"""`push --verify`: what a relay has swallowed is found; and what was refused is tried again when asked for."""

import json
import re
import shutil
from urllib.parse import parse_qs, urlsplit

import pytest
from fake_influx import FakeInflux
from point_runs import made, run  # noqa: F401  fixtures
from synthetic_run import UTC_RUN_NS
from test_points_push import ssdrig

from selfcheck import influxd as real
from ssdrig.publish.influx import address, line_protocol, link, points, push

pytestmark = pytest.mark.keeps_time


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    server = real.start(tmp_path_factory.mktemp("influxd"))
    yield server
    server.stop()


def of(server, name):
    return server.url.rpartition("/")[0] + "/" + name


def test_real_what_is_there_is_counted(run, server):
    code, out, err = ssdrig("push", run, "--influx", of(server, "whole"), "--verify", "--json")
    assert code == 0 and "counted there" in err and json.loads(out)["missing"] == {}


def test_real_a_relay_that_stores_nothing_is_found_out(run, server):
    """A 204 from something that forgets, at the address of a database: without --verify all seems well."""
    url, expected = of(server, "behind"), points.counts(run)
    with FakeInflux() as relay:
        assert ssdrig("push", run, "--influx", relay.url)[0] == 0
    cursor = json.loads((run / "points.cursor").read_text())
    (run / "points.cursor").write_text(json.dumps(cursor | {"to": url}))
    assert ssdrig("push", run, "--influx", url)[0] == 0
    assert ssdrig("push", run, "--influx", url, "--verify")[0] == 6, "there is no such database"
    link.request(address.target(url, {}), "/query", b"q=CREATE+DATABASE+behind", link.FORM)
    (run / "points.cursor").write_text(json.dumps(cursor | {"to": url}))
    code, out, err = ssdrig("push", run, "--influx", url, "--verify", "--timeout", "0.1", "--json")
    assert code == 6 and "missing there" in err and "buffer" in err
    missing = json.loads(out)["missing"]
    assert set(missing) == {name for name, n in expected.items() if n} and missing["power"] == expected["power"]
    code, _, err = ssdrig("push", run, "--influx", url, "--verify")
    assert code == 0 and server.counts(["power"], run, "behind")["power"] == expected["power"]


def test_real_what_was_refused_is_not_counted_as_missing(run, server):
    """One measurement has another type there, in that week: it is refused, and that is what is said."""
    url, expected = of(server, "refuses"), points.counts(run)
    to = address.target(url, {})
    link.request(to, "/query", b"q=CREATE+DATABASE+refuses", link.FORM)
    assert link.request(to, to.write_path, b"rig_event,run=x text=5i %d" % UTC_RUN_NS, {}).status == 204
    code, out, err = ssdrig("push", run, "--influx", url, "--verify", "--json")
    assert code == 6 and "refused for good" in err
    assert json.loads(out)["rejected"] == expected["rig_event"] and json.loads(out)["missing"] == {}


def test_who_may_not_read_is_told(run):
    with FakeInflux() as fake:
        code, _, err = ssdrig("push", run, "--influx", fake.url, "--verify")
        assert code == 6 and "to count the points" in err and "may read" in err


def test_refused_lines_are_tried_again_when_asked_for(run):
    with FakeInflux() as fake:
        fake.types[("rig_event", "text")] = int
        code, out, err = ssdrig("push", run, "--influx", fake.url, "--json")
        refused = json.loads(out)["rejected"]
        assert code == 6 and "--retry-rejected" in err and refused == points.counts(run)["rig_event"]
        del fake.types[("rig_event", "text")]
        assert ssdrig("push", run, "--influx", fake.url)[0] == 6
        assert ssdrig("push", run, "--influx", fake.url, "--retry-rejected")[0] == 0
        assert fake.count("rig_event") == refused and not (run / "rejected.jsonl").exists()


@pytest.mark.parametrize(
    ("tags", "fields"),
    [
        ({"run": "a b,c=d"}, {"text": 'x, y="1" z= 5'}),
        ({"run": "r", "drive": "A\\"}, {"text": "\\", "ok": True, "p_mean_W": 1e-7, "samples": -5}),
    ],
)
def test_names_of_fields_and_tags_are_read_back(tags, fields):
    m = line_protocol.Measurement("power", ("drive", "run"), {"p_mean_W": "f", "samples": "i", "ok": "b", "text": "s"})
    line = line_protocol.encode(m, tags, fields, 77).line
    series, _ = line_protocol.series_and_time(line)
    assert line_protocol.tags_of(series) == ("power", {k: line_protocol.clean_tag(v) for k, v in tags.items()})
    assert sorted(line_protocol.field_names(line, series)) == sorted(fields)


def test_the_dashboard_of_a_run_has_its_time(run):
    with FakeInflux() as fake:
        _, _, err = ssdrig("push", run, "--influx", fake.url, SSDRIG_GRAFANA="http://g:3000/")
    (query,) = re.findall(r"http://g:3000/d/ssdrig-run\?(\S+)", err)
    asked = {key: value for key, (value,) in parse_qs(query).items()}
    assert (asked["var-run"], asked["var-drive"]) == (run.name, "SIMULATED SATA TLC SIM0001")
    times = [line_protocol.series_and_time(line)[1] for line in (run / "points.lp").read_bytes().splitlines()]
    assert int(asked["from"]) * 10**6 <= min(times) and max(times) <= int(asked["to"]) * 10**6


def test_the_dashboard_of_a_resumed_run_has_the_time_of_its_last_part_and_the_tags_as_sent(run):
    """Its machine was started again, and the part ended before it had an anchor of its own."""
    header = json.loads((run / "run.json").read_text())
    header["drive"] |= {"model": " A\\B\tC ", "serial": None}
    (run / "run.json").write_text(json.dumps(header))
    part = run / "part-2"
    part.mkdir()
    started = {"t_ns": 5, "utc_ns": header["started"]["utc_ns"] + 10**15}
    (part / "run.json").write_text(json.dumps(header | {"started": started}))
    (part / "events.jsonl").write_text('{"t_ns": 1000000005, "kind": "run.start"}\n')
    query = parse_qs(urlsplit(push.dashboard(run, "http://g:3000")).query)
    assert int(query["to"][0]) == started["utc_ns"] // 10**6 + 2000
    with points.Emitter(run) as emitter:
        emitter.step(True)
    sent = {line_protocol.tags_of(line_protocol.series_and_time(line)[0])[1].get("drive") for line in lines_of(run)}
    assert sent == {query["var-drive"][0]} == {"A/B C"}


def lines_of(run):
    return (run / "points.lp").read_bytes().splitlines()
