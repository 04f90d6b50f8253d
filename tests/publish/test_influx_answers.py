"""Sending to InfluxDB: what is no fault of the lines, what is refused whole, and two batches under way at a time."""

import json

import pytest
from fake_influx import FakeInflux
from pushing import BAD, drain, lines, outbox, sender

from ssdrig.publish.influx import sender as influx

TLS_WORDS = [
    "Client sent an HTTP request to an HTTPS server.",
    "<center>The plain HTTP request was sent to HTTPS port</center>",
]


BAD_NAME = '{"error": "invalid database name, it may have letters, digits, _ - and / only"}'


@pytest.mark.parametrize("words", [*TLS_WORDS, BAD_NAME])
def test_an_address_that_cannot_be_right_refuses_no_line(tmp_path, words):
    outbox(tmp_path, lines(100))
    with FakeInflux(script=[(400, {}, words)]) as fake:
        s = sender(tmp_path, fake.url)
        assert not s.attempt() and "https://" in str(s.wrong_address) and s.wait_s() > 0
        assert (s.offset, s.done, s.rejected) == (0, 0, 0)
        assert not (tmp_path / "rejected.jsonl").exists() and not (tmp_path / "points.cursor").exists()
        drain(s)
        assert fake.count("power") == 100 and s.wrong_address is None


# a 400 that is no fault of the lines

PROXY = "<html><body><h1>400 Bad Request</h1></body></html>"
SERIES = '{"error":"partial write: max-series-per-database limit exceeded: (1000000) dropped=300"}'
VALUES = (
    '{"error":"partial write: max-values-per-tag limit exceeded (100000/100000): measurement=\\"power\\" dropped=2"}'
)
TABLES = '{"error":"update to schema would exceed number of tables per database limit of 2000 tables"}'


@pytest.mark.parametrize(
    ("status", "words", "message"),
    [
        (400, PROXY, "not the words of an InfluxDB"),
        (422, "[]", "not the words of an InfluxDB"),
        (400, SERIES, "raise that limit"),
        (400, VALUES, "raise that limit"),
        (422, TABLES, "raise that limit"),
    ],
)
def test_a_limit_or_a_proxy_refuses_no_line(status, words, message, tmp_path):
    """It is tried again, and what was kept back arrives when the limit has been raised."""
    outbox(tmp_path, lines(300))
    with FakeInflux(script=[(status, {}, words)] * 3) as fake:
        s = sender(tmp_path, fake.url)
        assert len(drain(s)) == 3 and fake.statuses == [status] * 3 + [204]
        assert (fake.count("power"), s.rejected) == (300, 0) and message in s.lines[0] and len(s.lines) == 2


def test_a_line_that_speaks_of_limits_is_no_limit(tmp_path):
    """The server repeats a line that it cannot read, with whatever a person has written in a note."""
    outbox(tmp_path, [*lines(3), b'rig_event,run=r text="limit exceeded, dropped=5000, database name" x'])
    with FakeInflux() as fake:
        s = sender(tmp_path, fake.url)
        assert drain(s) == [] and (fake.count("power"), s.rejected) == (3, 1)


@pytest.mark.parametrize("generation", ["1.6.7", "1.13.2", "2.7.12", pytest.param("3.11", marks=pytest.mark.slow)])
def test_a_batch_that_is_refused_whole_goes_aside_at_once(generation, tmp_path, monkeypatch):
    """1200 lines, the first 900 beyond retention: not one by one."""
    monkeypatch.setattr(influx, "BATCH_LINES", 512)
    outbox(tmp_path, lines(1200))
    with FakeInflux(generation, oldest_ns=1_700_000_000_000_000_000 + 900 * 10**9) as fake:
        s = sender(tmp_path, fake.url)
        assert drain(s, 400) == []
        assert (fake.count("power"), s.rejected, s.done) == (300, 900, 1200)
        assert len(fake.seen) < 40 and len([text for text in s.lines if "refused" in text]) == 1
        entries = (tmp_path / "rejected.jsonl").read_text().splitlines()
        assert [json.loads(text)["line"].encode() for text in entries] == lines(900)
        fake.oldest_ns = -(2**63)  # an administrator has lengthened it
        again = sender(tmp_path, fake.url)
        assert (again.rejected, again.pending()) == (900, 0)
        assert again.retry_rejected() == 900
        drain(again)
        assert (fake.count("power"), again.rejected, fake.changed) == (1200, 0, 0)
        assert not (tmp_path / "rejected.jsonl").exists()


def test_retrying_leaves_what_another_server_refused(tmp_path):
    outbox(tmp_path, [*lines(3), BAD[3]])
    with FakeInflux() as one, FakeInflux() as other:
        for fake in (one, other):
            drain(sender(tmp_path, fake.url))
        s = sender(tmp_path, one.url)
        assert s.retry_rejected() == 1 and sender(tmp_path, other.url).rejected == 1
        drain(s)
        assert s.rejected == 1 and len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 2


# two under way


def test_what_is_behind_a_batch_that_fails_is_sent_again_in_its_order(tmp_path, monkeypatch):
    """The first is answered with trouble, the second may be stored: nothing is lost, nothing stands twice."""
    monkeypatch.setattr(influx, "BATCH_LINES", 50)
    outbox(tmp_path, lines(200))
    for script in (["drop"], [(503, {})], ["store-then-drop"], [None, "drop", (500, {})]):
        with FakeInflux(script=script) as fake:
            (tmp_path / "points.cursor").unlink(missing_ok=True)
            s = sender(tmp_path, fake.url)
            drain(s)
            assert (fake.count("power"), s.done, fake.changed) == (200, 200, 0)


def test_a_kept_connection_that_the_server_has_closed_is_no_trouble(tmp_path):
    outbox(tmp_path, lines(10))
    with FakeInflux() as fake:
        s = sender(tmp_path, fake.url)
        drain(s)
        fake.hang_up()
        outbox(tmp_path, lines(10, start=10))
        assert drain(s) == [] and s.lines == [] and fake.count("power") == 20


def test_the_last_try_waits_for_nothing_but_what_the_server_asked_for(tmp_path):
    outbox(tmp_path, lines(1))
    with FakeInflux(script=[(500, {}), (503, {"Retry-After": "50"})]) as fake:
        s = sender(tmp_path, fake.url)
        assert not s.attempt() and not s.attempt() and len(fake.seen) == 1
        assert not s.attempt(last=True) and len(fake.seen) == 2
        assert not s.attempt(last=True) and len(fake.seen) == 2
        s.now.t += 50
        assert s.attempt(last=True) and fake.count("power") == 1


def test_its_own_waits_are_as_short_as_asked(tmp_path):
    outbox(tmp_path, lines(1))
    with FakeInflux(script=[(500, {})] * 8) as fake:
        s = sender(tmp_path, fake.url, longest_wait_s=3.0)
        assert max(drain(s)) <= 3
