"""The address of an InfluxDB, its credentials, and how its answers are understood."""

import base64
import email.utils

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.publish.influx import link
from ssdrig.publish.influx import sender as influx


@pytest.mark.parametrize(
    ("url", "want", "words"),
    [
        ("http://h:1/db", influx.Target("http", "h", 1, "", "db"), "http://h:1/db"),
        ("http://h/db/", influx.Target("http", "h", 8086, "", "db"), "http://h:8086/db"),
        ("https://u:p%40%2F@h:2/a/b", influx.Target("https", "h", 2, "/a", "b", "u", "p@/"), "https://h:2/a/b"),
        ("https://h/db", influx.Target("https", "h", 443, "", "db"), "https://h:443/db"),
        ("http://h/db?rp=a%20b", influx.Target("http", "h", 8086, "", "db", rp="a b"), "http://h:8086/db?rp=a+b"),
        (
            "http://:tok@h:2/p/api/v2/write?org=my%20lab&bucket=a/b%20c",
            influx.Target("http", "h", 2, "/p", "a/b c", token="tok", org="my lab", bucket=True),
            "http://h:2/p/?org=my+lab&bucket=a%2Fb+c",
        ),
        ("http://h/?bucket=b", influx.Target("http", "h", 8086, "", "b", bucket=True), "http://h:8086/?bucket=b"),
        (
            "http://h/a b/caf\xe9%2F/x",
            influx.Target("http", "h", 8086, "/a%20b/caf%C3%A9%2F", "x"),
            "http://h:8086/a%20b/caf%C3%A9%2F/x",
        ),
        ("http://[::1]:9/x%20y", influx.Target("http", "::1", 9, "", "x y"), "http://[::1]:9/x%20y"),
    ],
)
def test_addresses(url, want, words):
    got = influx.target(url, {})
    assert got == want and str(got) == words
    assert "p@/" not in repr(got) + str(got) and "tok" not in repr(got) + str(got)
    assert influx.target(str(got), {}).write_path == got.write_path


def test_credentials_from_the_environment_win():
    got = influx.target("http://u:p@h:1/db", {"SSDRIG_INFLUX_USER": "me", "SSDRIG_INFLUX_PASSWORD": "token"})
    assert (got.user, got.password) == ("me", "token")


def test_credentials_are_sent_as_the_environment_has_them():
    """Whatever bytes they are: a password need not be UTF-8."""
    to = influx.target("http://h/db", {"SSDRIG_INFLUX_USER": "m\udce9", "SSDRIG_INFLUX_PASSWORD": "p\xe9"})
    header = link.Link(to)._credentials()["Authorization"]
    assert base64.b64decode(header.removeprefix("Basic ")) == b"m\xe9:p\xc3\xa9"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h:1/db",
        "ftp://h/db",
        "http://h:1",
        "http://h:1/",
        "http://h:x/db",
        "http://u:secret@h:99999/db",
        "http://u:secret@h/db?p=1",
        "http://[::1/db",
        "http://u:secret@h/db?rp=",
        "http://u:secret@h/db?rp=a&rp=b",
        "http://u:secret@h/db?org=x",
        "http://u:secret@h/?bucket=",
        "http://u:secret@h/?org=x",
        "http://u:secret@h/?bucket=b&rp=x",
        "http://u:secret@h/caf\udce9",
        "http://u:secret@h/db?rp=\udce9",
        "http://u:secret@h/?bucket=b&org=\udce9",
    ],
)
def test_what_is_no_address_is_refused_without_showing_a_password(url):
    with pytest.raises(UsageError) as error:
        influx.target(url, {})
    assert "secret" not in str(error.value) and error.value.__cause__ is None


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (None, 0),
        ("", 0),
        ("7", 7),
        ("-3", 0),
        ("99999", 600),
        ("soon", 0),
        (email.utils.formatdate(1_000_030, usegmt=True), 30),
        (email.utils.formatdate(5, usegmt=True), 0),
    ],
)
def test_retry_after(value, want):
    assert link.retry_after_s(value, 1_000_000.0) == want


INFLUX = '{"error": "unable to parse"}'


@pytest.mark.parametrize("status", [link.NO_ANSWER, link.BROKEN, 200, 301, 401, 403, 404, 408, 429, 500, 502, 503, 504])
def test_what_is_retried_for_ever(status):
    answer = link.Answer(status, INFLUX)
    assert influx.judge(answer, 5000).what == influx.judge(answer, 1).what == "retry"


def test_what_is_split_refused_and_done():
    for status in (400, 413, 422):
        of = [influx.judge(link.Answer(status, INFLUX), lines).what for lines in (2, 1)]
        assert of == ["split", "refused"]
    assert influx.judge(link.Answer(413, "<html>"), 2).what == "split"
    assert influx.judge(link.Answer(204, ""), 1).what == influx.judge(link.Answer(204, ""), 5000).what == "sent"


@pytest.mark.parametrize(
    ("words", "n"),
    [
        ('{"error":"partial write: points beyond retention policy dropped=4"}', 4),
        ('{"error":"partial write: dropped 4 points outside retention policy of duration 1h0m0s"}', 4),
        ('{"error":"partial write of line protocol occurred","data":[{"line_number":1},{"line_number":2}]}', 2),
        ('{"error":"partial write: unable to parse \'a dropped=4 b\': bad timestamp dropped=0"}', 0),
        ('{"error":"field type conflict"}', 0),
    ],
)
def test_a_batch_is_refused_whole_only_where_the_server_says_so(words, n):
    assert [influx.judge(link.Answer(400, words), lines).what for lines in (4, 5)] == [
        "refused" if n >= lines else "split" for lines in (4, 5)
    ]
    assert influx.judge(link.Answer(400, words), 2).what == ("refused" if n >= 2 else "split")


def test_a_kind_of_refusal_is_the_same_for_all_its_lines():
    one, two = (f'{{"error":"partial write: dropped {n} points at 2026-11-2{n} of \'x{n}\'"}}' for n in (3, 4))
    assert influx.kind(one) == influx.kind(two) != influx.kind('{"error":"field type conflict"}')


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ('{"code":"not found","message":"no dbrp mapping found"}', "make a bucket named 'db'"),
        ('{"code":"not found","message":"bucket \\"db\\" not found"}', "make a bucket named 'db'"),
        ('{"error":"database not found: \\"db\\""}', "make a database named 'db'"),
        ('{"error":"retention policy not found: year"}', "make a retention policy 'year'"),
        ("no assets included in binary", "the address is http://host:port/DB"),
    ],
)
def test_a_404_says_what_to_do(words, hint):
    to = influx.target("http://h/db?rp=year", {})
    assert hint in influx.in_words(link.Answer(404, words), to)


def test_gzip_is_for_other_machines():
    near = [influx.target(f"http://{host}/db", {}).is_near for host in ("127.0.0.1", "127.9.9.9", "[::1]", "localhost")]
    assert near == [True] * 4 and not influx.target("http://10.0.0.1/db", {}).is_near
    assert not influx.target("http://localhost.example/db", {}).is_near


def test_a_token_that_no_header_can_have():
    with pytest.raises(UsageError):
        influx.target("http://h/?bucket=b", {"SSDRIG_INFLUX_TOKEN": "a\r\nX: y"})


@pytest.mark.parametrize(
    "value, want", [("9" * 400, 600), ("9" * 5000, 600), ("Mon, 99 Foo", 0), ("1e999", 0), ("\u00b2", 0)]
)
def test_a_retry_after_that_is_no_time(value, want):
    assert link.retry_after_s(value, 1_000_000.0) == want


@pytest.mark.parametrize("host", ["a..b", "x" * 64, f"{'y' * 70}.example"])
def test_a_host_that_dns_cannot_have(host):
    with pytest.raises(UsageError):
        influx.target(f"http://u:secret@{host}/db", {})
