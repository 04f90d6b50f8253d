"""publish/influx/link.py and push.py: a server whose answer has no end holds nobody up, and every point is kept."""

import functools
import socket
import time

import pytest
from hostile_http import KINDS, Clock, Peer, served
from point_runs import made, run  # noqa: F401  fixtures

from ssdrig.base.progress import Progress
from ssdrig.publish.influx import link, push
from ssdrig.publish.influx.address import target
from ssdrig.publish.influx.link import BROKEN, NO_ANSWER, Link, request


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
        one, began = Link(target(f"http://127.0.0.1:{port}/db"), answer_s=1), time.monotonic()
        one.send("/write", b"x", {})
        assert one.receive().status == BROKEN and time.monotonic() - began < 30
        one.close()


def test_a_server_that_takes_no_body_is_given_up_in_its_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = Link(target(f"http://127.0.0.1:{listener.getsockname()[1]}/db"), answer_s=1)
        began = time.monotonic()
        one.send("/write", b"x" * (64 << 20), {})
        assert one.receive().status == BROKEN and time.monotonic() - began < 30
        one.close()


def test_a_resolver_that_hangs_is_given_up_in_its_time(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(20))
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        link.connected("box", 80, began + 0.5)
    assert time.monotonic() - began < 15


IN_MODEL_TIME = [kind for kind in KINDS if "TLS" not in kind]
LATE_S = 5.0  # beyond a time-out


class Model(link.Bounded, Peer):
    """A socket of the product over a peer in model time."""


@pytest.mark.parametrize("kind", IN_MODEL_TIME)
def test_a_push_in_model_time_is_back_within_its_timeout_and_5_s(run, monkeypatch, kind):
    """By the product's own deadlines: no load of the machine is in it."""
    clock = Clock()
    for module in (push, link):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(link, "connected", lambda *_: Model(KINDS[kind], clock))
    monkeypatch.setattr(link.select, "select", lambda *_: ([], [], []))
    monkeypatch.setattr(push.influx, "Sender", functools.partial(push.influx.Sender, now=clock.monotonic))
    for timeout_s in (0.5, 5, 60):
        began_s = clock.now_s
        sent = push.push(run, target("http://box:8086/db"), False, timeout_s, Progress(True))
        assert timeout_s <= clock.now_s - began_s <= timeout_s + LATE_S
        assert sent.pending == sent.lines > 0 and not sent.rejected


def test_tries_that_move_no_point_are_no_progress(run, monkeypatch):
    """A server that refuses batches as too long has each of them halved, and may take its time over each."""
    clock = Clock()
    monkeypatch.setattr(push, "time", clock)
    monkeypatch.setattr(push.influx.Sender, "attempt", lambda *_, **__: clock.sleep(0.4) or True)
    began_s = clock.now_s
    push.push(run, target("http://box:8086/db"), False, 5, Progress(True))
    assert clock.now_s - began_s <= 5 + LATE_S


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
    assert took_s < 0.5 + 50  # endless before; the bound itself is tested in model time
