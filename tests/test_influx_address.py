"""The address of an InfluxDB, its credentials, and how its answers are understood."""

import email.utils

import pytest

from ssdrig.errors import UsageError
from ssdrig.influx import sender as influx


@pytest.mark.parametrize(
    ("url", "want", "words"),
    [
        ("http://h:1/db", influx.Target("http", "h", 1, "", "db"), "http://h:1/db"),
        ("http://h/db/", influx.Target("http", "h", 8086, "", "db"), "http://h:8086/db"),
        ("https://u:p%40%2F@h:2/a/b", influx.Target("https", "h", 2, "/a", "b", "u", "p@/"), "https://h:2/a/b"),
        ("http://[::1]:9/x%20y", influx.Target("http", "::1", 9, "", "x y"), "http://[::1]:9/x%20y"),
    ],
)
def test_addresses(url, want, words):
    got = influx.target(url, {})
    assert got == want and str(got) == words
    assert "p@/" not in repr(got) + str(got)


def test_credentials_from_the_environment_win():
    got = influx.target("http://u:p@h:1/db", {"SSDRIG_INFLUX_USER": "me", "SSDRIG_INFLUX_PASSWORD": "token"})
    assert (got.user, got.password) == ("me", "token")


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
    assert influx.retry_after_s(value, 1_000_000.0) == want


@pytest.mark.parametrize(
    "status", [influx.NO_ANSWER, influx.BROKEN, 200, 301, 401, 403, 404, 408, 429, 500, 502, 503, 504]
)
def test_what_is_retried_for_ever(status):
    assert influx.classify(status, 5000) == influx.classify(status, 1) == "retry"


def test_what_is_split_refused_and_done():
    for status in (400, 413, 422):
        assert (influx.classify(status, 2), influx.classify(status, 1)) == ("split", "rejected")
    assert influx.classify(204, 1) == influx.classify(204, 5000) == "sent"


@pytest.mark.parametrize(
    "value, want", [("9" * 400, 600), ("9" * 5000, 600), ("Mon, 99 Foo", 0), ("1e999", 0), ("\u00b2", 0)]
)
def test_a_retry_after_that_is_no_time(value, want):
    assert influx.retry_after_s(value, 1_000_000.0) == want


@pytest.mark.parametrize("host", ["a..b", "x" * 64, f"{'y' * 70}.example"])
def test_a_host_that_dns_cannot_have(host):
    with pytest.raises(UsageError):
        influx.target(f"http://u:secret@{host}/db", {})
