"""Sending to InfluxDB: batches, cursor, retries, and what goes aside, against a server of every generation."""

import email.utils
import json
import random
import time
from types import SimpleNamespace

import pytest
from fake_influx import FakeInflux, nobody
from hypothesis import given, settings
from hypothesis import strategies as st
from pushing import BAD, drain, lines, outbox, pusher_killed, sender

from ssdrig.publish.influx import line_protocol as lp
from ssdrig.publish.influx import link
from ssdrig.publish.influx import sender as influx
from ssdrig.publish.influx.outbox import Outbox

GENERATIONS = ("1.6.7", *(pytest.param(later, marks=pytest.mark.slow) for later in ("1.13.2", "2.7.12", "3.11")))


@given(
    st.lists(st.binary(max_size=8).filter(lambda b: b"\n" not in b), max_size=8),
    st.binary(max_size=8).filter(lambda b: b"\n" not in b),
    st.integers(1, 9),
)
@settings(max_examples=60)
def test_a_batch_is_whole_lines(content, torn, n):
    block = b"".join(c + b"\n" for c in content) + torn
    assert influx.take(block, n) == b"".join(c + b"\n" for c in content[:n])


def test_a_batch_is_at_most_a_megabyte_but_one_line_at_least():
    long = b"x" * 600_000 + b"\n"
    assert influx.take(long * 3, 5000) == long
    assert influx.take(b"y" * 2_000_000 + b"\n" + long, 5000) == b"y" * 2_000_000 + b"\n"


@pytest.mark.parametrize("zipped", [True, None])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_all_generations_take_all_of_it_once(generation, zipped, tmp_path, monkeypatch):
    """To this machine without gzip. Two batches are under way at a time."""
    monkeypatch.setattr(influx, "BATCH_LINES", 50)
    outbox(tmp_path, lines(120))
    with FakeInflux(generation, user="me", password="secret") as fake:
        s = sender(tmp_path, fake.url.replace("//", "//me:secret@"), compress=zipped)
        assert drain(s) == []
        assert fake.count("power") == 120 and s.done == 120 and s.rejected == 0
        assert sorted((x.status, x.lines, x.gzip) for x in fake.seen) == [
            (204, 20, bool(zipped)),
            (204, 50, bool(zipped)),
            (204, 50, bool(zipped)),
        ]
        assert fake.connections == influx.IN_FLIGHT
        assert all(x.query == {"db": "db", "precision": "ns"} for x in fake.seen)
        key = ("power", (("drive", "d 1"), ("rail", "5V"), ("run", "r")), 1_700_000_007_000_000_000)
        assert fake.stored[key] == {"p_mean_W": 0.1 * 7, "samples": 7}
        outbox(tmp_path, lines(3, start=120))
        assert drain(s) == [] and fake.count("power") == 123 and fake.statuses[-1] == 204 and fake.seen[-1].lines == 3
    assert json.loads((tmp_path / "points.cursor").read_text())["to"] == f"http://127.0.0.1:{fake.port}/db"


def test_points_are_not_written_through_a_link(tmp_path):
    (tmp_path / "thesis").write_bytes(b"mine")
    (tmp_path / "points.lp").symlink_to("thesis")
    with pytest.raises(OSError, match="symbolic link"):
        Outbox(tmp_path)
    assert (tmp_path / "thesis").read_bytes() == b"mine"


def test_a_torn_last_line_waits_for_its_end(tmp_path):
    a, b = lines(2)
    (tmp_path / "points.lp").write_bytes(a + b"\n" + b[:20])
    with FakeInflux() as fake:
        s = sender(tmp_path, fake.url)
        drain(s)
        assert fake.count("power") == 1 and s.offset == len(a) + 1
        (tmp_path / "points.lp").write_bytes(a + b"\n" + b + b"\n")
        drain(s)
        assert fake.count("power") == 2


def test_the_cursor_survives_and_belongs_to_one_database(tmp_path):
    outbox(tmp_path, lines(10))
    with FakeInflux(databases=("db", "other")) as fake:
        drain(sender(tmp_path, fake.url))
        assert sender(tmp_path, fake.url).done == 10 and len(fake.seen) == 1
        other = sender(tmp_path, fake.url[: -len("db")] + "other")
        assert other.done == 0 and other.pending() == 10


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": 1}',
        b'{"schema": 2, "to": "%s", "offset": 5, "lines": 1}',
        b'{"schema": 1, "to": "%s", "offset": 5, "lines": 1}',
        b'{"schema": 1, "to": "%s", "offset": 99999, "lines": 1}',
    ],
)
def test_a_doubtful_cursor_starts_again(content, tmp_path):
    outbox(tmp_path, lines(2))
    url = "http://127.0.0.1:9/db"
    (tmp_path / "points.cursor").write_bytes(content.replace(b"%s", url.encode()))
    s = sender(tmp_path, url)
    assert (s.offset, s.done, s.pending()) == (0, 0, 2)


@pytest.mark.parametrize(
    "script",
    [
        [(401, {})],
        [(403, {})],
        [(404, {})],
        [(408, {})],
        [(500, {})] * 2,
        [(502, {})],
        [(503, {})],
        [(301, {"Location": "http://x/"})],
        [(200, {})],
        ["drop"],
        ["drop-mid-body"],
        ["store-then-drop"],
        ["drop", "store-then-drop", (500, {}), "drop-mid-body"],
    ],
    ids=str,
)
@pytest.mark.parametrize("generation", [GENERATIONS[0], *GENERATIONS[2:]])
def test_trouble_passes_and_nothing_is_lost(script, generation, tmp_path):
    outbox(tmp_path, lines(300))
    with FakeInflux(generation, script=script) as fake:
        s = sender(tmp_path, fake.url)
        waits = drain(s)
        assert fake.count("power") == 300 and fake.changed == 0 and s.rejected == 0 and s.trouble is None
        # there CREATE DATABASE helps
        expected_waits = 0 if generation == "1.6.7" and script == [(404, {})] else len(script)
        assert len(waits) == expected_waits
        assert all(0.5 * 2**i <= w <= 2**i for i, w in enumerate(waits))
        assert len(s.lines) <= len(set(map(str, script))) + 1 and (
            not waits or s.lines[-1].endswith("takes points again")
        )


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured(status, tmp_path):
    outbox(tmp_path, lines(3))
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    with FakeInflux("3.11", script=[(status, {"Retry-After": "77"}), (status, {"Retry-After": date})]) as fake:
        s = sender(tmp_path, fake.url)
        assert not s.attempt() and s.wait_s() == 77
        assert not s.attempt() and len(fake.seen) == 1, "it asked before its time"
        waits = drain(s)
        assert 60 < waits[1] <= 101 and fake.count("power") == 3


@pytest.mark.parametrize("by_s", [-3600, 3600])
def test_retry_after_as_a_date_is_by_the_servers_clock(by_s, tmp_path, monkeypatch):
    outbox(tmp_path, lines(3))
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    wall = time.time
    with FakeInflux("3.11", script=[(503, {"Retry-After": date})]) as fake:
        monkeypatch.setattr(link, "time", SimpleNamespace(monotonic=time.monotonic, time=lambda: wall() + by_s))
        s = sender(tmp_path, fake.url)
        assert not s.attempt() and 90 < s.wait_s() <= 101


def test_an_absent_server_is_asked_each_5_s_and_one_that_refuses_each_5_min_at_most(tmp_path):
    outbox(tmp_path, lines(1))
    with FakeInflux(script=[(503, {})] * 30) as fake:
        s = sender(tmp_path, fake.url)
        assert 150 <= max(drain(s)) <= 300 and len(s.lines) == 2
    with nobody() as url:
        s = sender(tmp_path, url)
        for _ in range(30):
            s.attempt()
            assert 0 < s.wait_s() <= 5
            s.now.t += s.wait_s()
    assert len(s.lines) == 1 and "refused" in s.lines[0] and s.pending() == 1


def test_wrong_password_is_said_once_and_never_shown(tmp_path):
    outbox(tmp_path, lines(4))
    with FakeInflux("2.7.12", password="token") as fake:
        s = sender(tmp_path, fake.url.replace("//", "//any:hunter2@"))
        for _ in range(5):
            s.attempt()
            s.now.t += s.wait_s()
        assert fake.statuses == [401] * 5 and len(s.lines) == 1
        assert "SSDRIG_INFLUX_PASSWORD" in s.lines[0] and "hunter2" not in s.lines[0] + repr(s.to)
        right = sender(tmp_path, fake.url.replace("//", "//:token@"))
        drain(right)
        assert fake.count("power") == 4


@pytest.mark.parametrize(("generation", "asked"), [("1.6.7", 1), ("1.13.2", 1), ("2.7.12", 1), ("3.11", 0)])
def test_a_missing_database_is_made_where_that_is_possible(generation, asked, tmp_path):
    outbox(tmp_path, lines(4))
    with FakeInflux(generation, databases=()) as fake:
        s = sender(tmp_path, fake.url)
        for _ in range(4):
            s.attempt()
            s.now.t += s.wait_s()
        assert fake.queries == ['CREATE DATABASE "db"'] * asked
        assert fake.count("power") == (0 if generation.startswith("2") else 4)
        fake.databases.add("db")
        drain(s)
        assert fake.count("power") == 4
        fake.databases.clear()
        outbox(tmp_path, lines(4, start=4))
        s.attempt()
        s.attempt()
        assert fake.queries == ['CREATE DATABASE "db"'] * asked * 2, "a database dropped later is made again"


def test_the_database_is_made_also_after_the_server_was_away(tmp_path):
    outbox(tmp_path, lines(4))
    with FakeInflux(databases=(), script=[(500, {}), (503, {})]) as fake:
        s = sender(tmp_path, fake.url)
        assert len(drain(s)) == 2 and fake.count("power") == 4


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("at", [[0], [299], [0, 1, 299], [57, 130, 131, 200]], ids=str)
def test_refused_lines_go_aside_and_the_rest_arrives(generation, at, tmp_path):
    content = lines(300)
    for i, where in enumerate(at):
        content.insert(where + i, BAD[i % len(BAD)])
    types = {("power", "p_mean_W"): float, ("power", "samples"): int}
    outbox(tmp_path, content)
    with FakeInflux(generation) as fake:
        fake.types.update(types)
        s = sender(tmp_path, fake.url)
        assert drain(s, 400) == []
        assert fake.count("power") == 300 and fake.changed == 0
        assert (s.done, s.rejected) == (300 + len(at), len(at))
        entries = [json.loads(text) for text in (tmp_path / "rejected.jsonl").read_text().splitlines()]
        assert [e["line"].encode() for e in entries] == BAD[: len(at)]
        assert all(e["status"] in (400, 422) and e["answer"] and e["to"] == str(s.to) for e in entries)
        assert len(fake.seen) < 150
        # a lost cursor sends all again: no point more, no refusal noted twice
        (tmp_path / "points.cursor").unlink()
        again = sender(tmp_path, fake.url)
        drain(again, 400)
        assert (again.done, again.rejected, fake.count("power"), fake.changed) == (300 + len(at), len(at), 300, 0)
        assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == len(at)


@pytest.mark.parametrize("generation", ["1.6.7", "2.7.12"])
def test_points_beyond_retention_go_aside(generation, tmp_path):
    outbox(tmp_path, lines(40))
    with FakeInflux(generation, oldest_ns=1_700_000_000_000_000_000 + 10 * 10**9) as fake:
        s = sender(tmp_path, fake.url)
        drain(s)
        assert (fake.count("power"), s.rejected) == (30, 10)
        assert "retention" in json.loads((tmp_path / "rejected.jsonl").read_text().splitlines()[0])["answer"]


def test_a_torn_rejected_file_is_mended(tmp_path):
    outbox(tmp_path, [BAD[3]])
    (tmp_path / "rejected.jsonl").write_bytes(b'{"to": "x"')
    with FakeInflux() as fake:
        s = sender(tmp_path, fake.url)
        drain(s)
        assert s.rejected == 1
        assert json.loads((tmp_path / "rejected.jsonl").read_bytes().splitlines()[1])["line"] == BAD[3].decode()


def test_a_server_that_takes_little_at_a_time_gets_little_at_a_time(tmp_path):
    outbox(tmp_path, lines(5000))
    with FakeInflux("3.11", max_body=3000) as fake:
        s = sender(tmp_path, fake.url, compress=True)
        drain(s, 1000)
        assert fake.count("power") == 5000 and s.rejected == 0 and 413 in fake.statuses
        fewest = 5000 / max(x.lines for x in fake.seen)
        assert len(fake.seen) < 2 * fewest + 20


def test_one_line_that_is_too_long_goes_aside(tmp_path):
    long = lp.encode(
        lp.read_schema()["rig_event"], {"drive": "d"}, {"text": random.Random(1).randbytes(6000).hex()}, 5
    ).line
    outbox(tmp_path, [*lines(3), long, *lines(3, start=3)])

    class Polite(FakeInflux):
        def _write(self, h, query, lines):
            return (
                (413, {"error": "Request Entity Too Large"})
                if int(h.headers["Content-Length"]) > 3000
                else super()._write(h, query, lines)
            )

    with Polite("1.13.2") as fake:
        s = sender(tmp_path, fake.url)
        drain(s)
        assert (fake.count("power"), s.rejected) == (6, 1)


@pytest.mark.slow
def test_a_body_that_is_damaged_on_the_way_is_sent_without_gzip(tmp_path, monkeypatch):
    outbox(tmp_path, lines(50))
    monkeypatch.setattr(influx.gzip, "compress", lambda data, **_: b"\x1f\x8bdamaged")
    for generation in ("1.6.7", "2.7.12"):  # the one says 400, the other 500
        with FakeInflux(generation) as fake:
            s = sender(tmp_path, fake.url, compress=True)
            drain(s)
            assert fake.count("power") == 50 and s.rejected == 0
            assert generation == "1.6.7" or fake.statuses == [500, 500, 500, 204]


def test_the_cursor_never_moves_before_the_204(tmp_path, monkeypatch):
    outbox(tmp_path, lines(3))
    with FakeInflux() as fake:
        s = sender(tmp_path, fake.url)
        monkeypatch.setattr(
            influx, "write_atomically", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        with pytest.raises(OSError, match="No space"):
            s.attempt()
        assert fake.count("power") == 3 and not (tmp_path / "points.cursor").exists()
        monkeypatch.undo()
        drain(sender(tmp_path, fake.url))
        assert fake.count("power") == 3 and fake.changed == 0


# kill -9 of the sending process


@pytest.mark.slow
@pytest.mark.parametrize("die", ["before-post", "after-204", "before-rename", "no-answer"])
def test_kill_9_in_each_state(die, tmp_path):
    outbox(tmp_path, lines(200))
    with FakeInflux("3.11", script=["store-then-hang"] if die == "no-answer" else []) as fake:
        pusher_killed(tmp_path, fake.url, die, reached=fake.stored_something if die == "no-answer" else None)
        assert fake.count("power") == (0 if die == "before-post" else 200)
        assert not (tmp_path / "points.cursor").exists()
        drain(sender(tmp_path, fake.url))
        assert fake.count("power") == 200 and fake.changed == 0
