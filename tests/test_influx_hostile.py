"""influx/link.py and push.py: a server whose answer has no end holds nobody up, and every point is kept."""

import socket
import time

import pytest
from hostile_http import KINDS, served
from point_runs import made, run  # noqa: F401  fixtures

from ssdrig.influx import bounded, push
from ssdrig.influx.address import target
from ssdrig.influx.link import BROKEN, NO_ANSWER, Link, request
from ssdrig.progress import Progress


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_an_end_is_given_up_in_its_time(kind):
    scheme = "https" if "TLS" in kind else "http"
    with served(kind) as port:
        began = time.monotonic()
        answer = request(target(f"{scheme}://127.0.0.1:{port}/db"), "/write", b"x", {}, until=began + 1)
        assert answer.status in (NO_ANSWER, BROKEN, 103, 503)
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("kind", ["silent", "endless 100 Continue", "a header line now and then"])
def test_a_request_has_its_own_bound_without_another(kind):
    with served(kind) as port:
        link, began = Link(target(f"http://127.0.0.1:{port}/db"), answer_s=1), time.monotonic()
        link.send("/write", b"x", {})
        assert link.receive().status == BROKEN and time.monotonic() - began < 30
        link.close()


def test_a_server_that_takes_no_body_is_given_up_in_its_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        link = Link(target(f"http://127.0.0.1:{listener.getsockname()[1]}/db"), answer_s=1)
        began = time.monotonic()
        link.send("/write", b"x" * (64 << 20), {})
        assert link.receive().status == BROKEN and time.monotonic() - began < 30
        link.close()


def test_a_resolver_that_hangs_is_given_up_in_its_time(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(20))
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        bounded.connected("box", 80, began + 0.5)
    assert time.monotonic() - began < 15


FEW = ("endless 100 Continue", "a header line now and then")


@pytest.mark.parametrize(
    "kind", [*FEW, *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind not in FEW)]
)
def test_a_push_is_back_within_its_timeout_and_keeps_all(run, kind):
    scheme = "https" if "TLS" in kind else "http"
    with served(kind) as port:
        began = time.monotonic()
        sent = push.push(run, target(f"{scheme}://127.0.0.1:{port}/db"), False, 0.5, Progress(True))
        took_s = time.monotonic() - began
    lines = (run / "points.lp").read_bytes().count(b"\n")
    assert sent.pending == lines > 0 and sent.rejected == 0
    assert took_s < 0.5 + 50  # endless before
