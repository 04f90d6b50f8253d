"""The sender against a real influxd: killed, restarted, with passwords; and the fake against it."""

import json
import re
import resource
import shutil
import socket
from urllib.parse import urlencode

import pytest
from fake_influx import parse_line
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pushing import BAD, drain, lines, outbox, pusher_killed, sender

from selfcheck import influxd as real
from ssdrig.publish.influx import line_protocol as lp
from ssdrig.publish.influx import link, query
from ssdrig.publish.influx import sender as influx

pytestmark = pytest.mark.keeps_time


def real_server(tmp_path, **more):
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    return real.start(tmp_path / "influxd", **more)


@pytest.fixture
def influxd(tmp_path):
    server = real_server(tmp_path)
    yield server
    server.stop()


def test_real_takes_all_and_makes_its_database(influxd, tmp_path):
    outbox(tmp_path, lines(7000))
    s = sender(tmp_path, influxd.url + "%20x")
    assert drain(s) == [] and s.lines == []
    assert query.stored_counts(s.to, "r") == {"power": 7000}
    assert query.stored_counts(s.to, "another") == {}
    (tmp_path / "points.cursor").unlink()
    drain(sender(tmp_path, influxd.url + "%20x"))
    assert query.stored_counts(s.to, "r") == {"power": 7000}


def test_real_refuses_what_the_fake_refuses(influxd, tmp_path):
    content = lines(300)
    for i, where in enumerate([57, 130, 131, 200]):
        content.insert(where + i, BAD[i])
    outbox(tmp_path, lines(1, start=9999))
    s = sender(tmp_path, influxd.url)
    drain(s)
    outbox(tmp_path, content)
    drain(s)
    assert query.stored_counts(s.to, "r") == {"power": 301} and s.rejected == 4
    assert [json.loads(t)["line"].encode() for t in (tmp_path / "rejected.jsonl").read_text().splitlines()] == BAD


def test_real_takes_the_good_examples_and_refuses_each_bad_one(influxd):
    to, examples = influx.target(influxd.url, {}), lp.SCHEMA_FILE.parent / "examples" / "influx"
    link.request(to, "/query", b"q=CREATE+DATABASE+ssdrig", link.FORM)
    path = "/write?db=ssdrig&precision=ns"
    assert link.request(to, path, (examples / "good.lp").read_bytes(), {}).status == 204
    assert query.stored_counts(to) == {
        "power": 2,
        "drive_power": 1,
        "fio_interval": 1,
        "fio_live": 1,
        "load_second": 1,
        "ssd_wear": 1,
        "smart_device": 1,
        "smart_attribute": 1,
        "rig_event": 1,
        "host_power": 1,
        "application": 1,
        "powerloss_cut": 1,
        "powerloss_bound": 1,
        "retention_baseline": 1,
        "retention_pass": 1,
        "retention_storage": 1,
        "run_result": 1,
        "run_figure": 1,
        "run_value": 1,
    }
    for line in (examples / "bad.lp").read_bytes().splitlines():
        assert link.request(to, path, line, {}).status == 400, line


def test_real_stops_and_is_killed_in_the_middle(influxd, tmp_path):
    s = sender(tmp_path, influxd.url)
    outbox(tmp_path, lines(6000))
    assert s.attempt() or s.attempt()
    influxd.kill()
    outbox(tmp_path, lines(3000, start=6000))
    assert not s.attempt() and "no answer" in s.trouble
    influxd.restart()
    s.now.t += 10
    assert s.attempt()
    influxd.terminate()
    outbox(tmp_path, lines(1000, start=9000))
    s.now.t += 10
    while s.attempt():
        pass
    influxd.restart()
    drain(s)
    assert query.stored_counts(s.to, "r") == {"power": 10_000}
    assert s.done == 10_000


def test_real_its_ports_are_nobody_elses_while_it_is_down(influxd, tmp_path):
    """Another process got one of them now and then, between its choice and the start, or between two lives."""
    influxd.kill()
    conf = (tmp_path / "influxd/influxd.conf").read_text()
    ports = {int(port) for port in re.findall(r'bind-address = "127.0.0.1:(\d+)"', conf)}
    assert len(ports) == 2 and influxd.port in ports
    for port in ports:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    influxd.restart()
    assert drain(sender(outbox(tmp_path, lines(3)), influxd.url)) == []


def test_real_kill_9_of_the_pusher_at_any_moment(influxd, tmp_path):
    outbox(tmp_path, lines(40_000))
    for after_s in (0.0, 0.003, 0.01, 0.02):
        pusher_killed(tmp_path, influxd.url, "any", after_s)
    drain(sender(tmp_path, influxd.url))
    assert query.stored_counts(influx.target(influxd.url, {}), "r") == {"power": 40_000}


def test_real_authentication(tmp_path):
    server = real_server(tmp_path, auth=True)
    try:
        admin = influx.target(server.url.replace("//", "//root:p%20w@"), {})
        made = link.request(admin, "/query", b"q=CREATE+USER+root+WITH+PASSWORD+'p w'+WITH+ALL+PRIVILEGES", link.FORM)
        assert made.status == 200
        outbox(tmp_path, lines(5))
        wrong = sender(tmp_path, server.url.replace("//", "//root:wrong@"))
        assert not wrong.attempt() and wrong.trouble.startswith("401")
        right = sender(tmp_path, server.url.replace("//", "//root:p%20w@"))
        drain(right)
        assert query.stored_counts(right.to, "r") == {"power": 5}
    finally:
        server.stop()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.text(max_size=10),
            st.text(max_size=20),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_real_reads_our_lines_as_the_fake_does(influxd, rows):
    m = lp.Measurement("m", ("drive", "run"), {"f": "f", "i": "i", "s": "s"})
    to = influx.target(influxd.url, {})
    link.request(to, "/query", b"q=DROP+DATABASE+ssdrig", link.FORM)
    link.request(to, "/query", b"q=CREATE+DATABASE+ssdrig", link.FORM)
    made = [
        lp.encode(m, {"drive": d, "run": "r"}, {"f": f, "i": i, "s": s}, n).line for n, (d, s, i, f) in enumerate(rows)
    ]
    assert link.request(to, "/write?db=ssdrig&precision=ns", b"\n".join(made), {}) == link.Answer(204, "")
    answer = link.request(to, "/query?db=ssdrig&epoch=ns", b"q=SELECT+*+FROM+m", link.FORM)
    table = json.loads(answer.words)["results"][0]["series"][0]
    stored = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["values"]}
    for n, text in enumerate(made):
        _, tags, fields, _ = parse_line(text)
        row = stored[n]
        assert (row["i"], row["s"], row["run"], row.get("drive") or "") == (
            fields["i"],
            fields["s"],
            "r",
            dict(tags).get("drive", ""),
        )
        assert row["f"] == pytest.approx(fields["f"], rel=1e-12)


# faults of the server, as it has them itself


def configured(server, old, new):
    """Restart it with another line in its configuration."""
    conf = server.folder / "influxd.conf"
    conf.write_text(conf.read_text().replace(f"{old}\n", f"{new}\n"))
    server.restart()


def test_real_lines_beyond_retention_go_aside_by_the_batch(influxd, tmp_path, monkeypatch):
    """Then the retention is lengthened, and they are sent when asked for."""
    monkeypatch.setattr(influx, "BATCH_LINES", 500)
    to = influx.target(influxd.url, {})
    for text in ("CREATE DATABASE ssdrig", "ALTER RETENTION POLICY autogen ON ssdrig DURATION 7d"):
        link.request(to, "/query", urlencode({"q": text}).encode(), link.FORM)
    outbox(tmp_path, lines(2000))  # of 2023
    s = sender(tmp_path, influxd.url)
    requests = []
    monkeypatch.setattr(s, "_send", lambda *args, send=s._send: (requests.append(args), send(*args)))
    assert drain(s) == [] and s.rejected == 2000 and len(requests) <= 10
    assert len([text for text in s.lines if "refused" in text]) == 1
    text = "ALTER RETENTION POLICY autogen ON ssdrig DURATION INF"
    link.request(to, "/query", urlencode({"q": text}).encode(), link.FORM)
    again = sender(tmp_path, influxd.url)
    assert again.retry_rejected() == 2000
    drain(again)
    assert query.stored_counts(to) == {"power": 2000} and again.rejected == 0


def test_real_a_limit_of_series_is_waited_for(influxd, tmp_path):
    configured(influxd, "[data]", "[data]\n  max-series-per-database = 3")
    content = [line for n in range(6) for line in lines(2, run=f"r{n}")]
    outbox(tmp_path, content)
    s = sender(tmp_path, influxd.url)
    s.attempt()
    s.attempt()
    assert "limit" in s.trouble and "raise that limit" in s.trouble and s.rejected == 0 and s.done == 0
    configured(influxd, "max-series-per-database = 3", "max-series-per-database = 1000")
    s.now.t += 10
    drain(s)
    assert query.stored_counts(s.to) == {"power": 12} and s.rejected == 0


def test_real_a_retention_policy_of_its_own(influxd, tmp_path):
    outbox(tmp_path, lines(3))
    s = sender(tmp_path, influxd.url + "?rp=year")
    s.attempt()
    s.attempt()
    s.now.t += 10
    s.attempt()
    assert "make a retention policy 'year'" in s.trouble, s.lines
    text = "CREATE RETENTION POLICY year ON ssdrig DURATION INF REPLICATION 1"
    link.request(s.to, "/query", urlencode({"q": text}).encode(), link.FORM)
    s.now.t += 100
    drain(s)
    assert query.series(s.to, 'SELECT count("samples") FROM "year"."power"')[0]["values"][0][1] == 3
    assert query.stored_counts(s.to) == {"power": 3} and query.stored_counts(influx.target(influxd.url, {})) == {}


@pytest.mark.slow
def test_real_a_full_disk_is_waited_for(tmp_path):
    """Its data lie behind a limit of file size, as on a full disk; when there is room the rest arrives, once."""
    server = real_server(tmp_path)
    try:
        outbox(tmp_path, lines(20_000))
        pid = server._process.pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
        s = sender(tmp_path, server.url)
        for _ in range(2):  # each is answered after 10 s
            s.attempt()
            s.now.t += s.wait_s()
        stuck = s.done
        assert s.pending() and s.rejected == 0 and s.trouble
        server.kill()
        server.restart()
        drain(s)
        assert query.stored_counts(s.to) == {"power": 20_000} and s.done == 20_000 > stuck
    finally:
        server.stop()
