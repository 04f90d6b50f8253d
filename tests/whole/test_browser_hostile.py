"""The server of the bench in the browser under attack: who is refused, and who may keep others out (nobody)."""

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import types
from pathlib import Path

import pytest
import synthetic_run
from browser_serving import Serving
from hypothesis import given
from hypothesis import strategies as st

from ssdrig.serve import app, connection


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("served") / "runs"
    for name in "ab":
        synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name=name, zoom_s=5, logs=False, smart_every_s=3)
    return root


@pytest.fixture(scope="module")
def served(runs):
    with Serving(runs) as one:
        yield one


REFUSED = [
    # DNS rebinding, a foreign name, an address of the network, no port, another port, none, two
    *[
        ("GET", "/api/hello", {"Host": host}, 403)
        for host in ("evil.example", "evil.example:{port}", "192.168.0.9:{port}")
    ],
    *[
        ("GET", "/", {"Host": host}, 403)
        for host in ("evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "LOCALHOST:{port}.")
    ],
    ("GET", "/api/hello", {"Host": "127.0.0.1:{port}, evil.example"}, 403),
    # no token, a wrong one, one in the wrong place
    ("GET", "/api/hello", {"Authorization": None}, 401),
    *[
        ("GET", "/api/hello", {"Authorization": word}, 401)
        for word in ("Bearer", "Bearer x", "Basic {token}", "{token}")
    ],
    ("GET", "/api/hello?t={token}", {"Authorization": None}, 401),
    ("GET", "/api/hello", {"Authorization": None, "Cookie": "t={token}"}, 401),
    ("GET", "/api/live/x", {"Authorization": None}, 401),
    ("GET", "/nothing", {"Authorization": None}, 401),
    ("POST", "/api/compare", {"Authorization": None}, 401),
    ("POST", "/", {"Authorization": None}, 401),
    ("POST", "/page/" + "x" * 43, {"Authorization": None}, 401),
    # a page of another site, or of another port of this machine
    ("GET", "/api/hello", {"Origin": "http://evil.example"}, 403),
    ("GET", "/api/hello", {"Origin": "http://127.0.0.1:1"}, 403),
    ("GET", "/api/hello", {"Origin": "https://127.0.0.1:{port}"}, 403),
    ("GET", "/api/hello", {"Origin": "null"}, 403),
    *[("GET", "/api/hello", {"Sec-Fetch-Site": word}, 403) for word in ("cross-site", "same-site", "x")],
    ("POST", "/api/compare", {"Sec-Fetch-Site": "cross-site"}, 403),
    # other methods, other bodies
    *[(method, "/api/hello", {}, 405) for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT")],
    ("POST", "/api/compare", {"Content-Type": "text/plain"}, 415),
    ("POST", "/api/compare", {"Content-Type": None}, 415),
    ("POST", "/api/compare", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ("POST", "/api/hello", {"Content-Type": "application/json", "Content-Length": "0"}, 405),
    # paths
    *[
        ("GET", path, {}, {400, 404, 405})
        for path in (
            *("/../etc/passwd", "/api/../../etc/passwd", "/page/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd"),
            *("/api/live/..%2f..%2fetc", "/api/drives/..%2f..", "/page/..%2f..%2fetc%2fpasswd", "/api/runs/../hello"),
            *("//evil.example/", "/api\\hello", "/page/" + "a" * 42, "/page/" + "a" * 44, "/page/", "/api/live/%00"),
            *("/static/x.js", "/run.json", "/api", "/.git/config", "/api/live/a/act", "/x" * 3000),
        )
    ],
    ("POST", "/api/live/a/act", {"Content-Type": "application/json", "Content-Length": "2"}, 403),
    # what a proxy would say in place of Host, ports and spellings of it, a name that only looks like ours
    *[
        ("GET", "/api/hello", {"Host": "evil.example", name: "127.0.0.1:{port}"}, 403)
        for name in ("X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host", "X-Forwarded-Server")
    ],
    *[
        ("GET", "/api/hello", {"Host": host}, 403)
        for host in (
            *("127.1:{port}", "127.0.0.2:{port}", "0.0.0.0:{port}", "2130706433:{port}", "0x7f000001:{port}"),
            *(
                "[::ffff:127.0.0.1]:{port}",
                "[0:0:0:0:0:0:0:1]:{port}",
                "localhost.:{port}",
                "localhost.evil.example:{port}",
            ),
            *("evil@127.0.0.1:{port}", "127.0.0.1:{port}@evil", "127.0.0.1:0{port}", "127.0.0.1:+{port}", "localhost"),
        )
    ],
    # a foreign page with each mark of it, alone
    *[
        ("GET", "/api/runs", {"Origin": origin}, 403)
        for origin in (
            *("http://127.0.0.1.evil.example:{port}", "http://localhost", "file://", "http://evil.example:{port}", ""),
            *(
                "http://127.0.0.1:{port}.evil.example",
                "http://127.0.0.1:{port}/",
                "chrome-extension://x",
                "HTTP://127.0.0.1:{port}",
            ),
        )
    ],
    ("POST", "/api/compare", {"Origin": "null", "Content-Type": "text/plain"}, 403),
    ("GET", "/page/" + "x" * 43, {"Sec-Fetch-Site": "cross-site"}, 403),
    # the token in other words
    *[
        ("GET", "/api/runs", {"Authorization": word}, 401)
        for word in (
            "Bearer {token}x",
            "Bearer {token}, Bearer {token}",
            "Digest {token}",
            "Bearer\u00a0{token}",
            "Bearer " + "x" * 5000,
        )
    ],
    *[
        ("GET", path, {"Authorization": None, **more}, 401)
        for path, more in (
            *(("/api/runs?access_token={token}", {}), ("/api/drives", {"X-Api-Key": "{token}"}), ("/API/hello", {})),
            *(("/api/live/x?token={token}", {}), ("/%2fapi/hello", {}), ("/./api/hello", {}), ("/api/hello#", {})),
        )
    ],
    (
        "POST",
        "/api/hello",
        {"X-HTTP-Method-Override": "GET", "Content-Type": "application/json", "Content-Length": "0"},
        405,
    ),
    *[(method, "/api/compare", {}, 405) for method in ("HEAD", "get", "PROPFIND", "SEARCH")],
    *[
        ("GET", path, {}, {400, 404})
        for path in (
            *(
                "/page/%252e%252e%252fetc%252fpasswd",
                "/page/..%c0%af..%c0%afetc",
                "/api/hello/",
                "/api//hello",
                "/api/live/",
            ),
            *(
                "/api/drives/' OR 1=1",
                "/api/drives/%27%20OR%201%3D1--",
                "/file:///etc/passwd",
                "/page/\u0000",
                "/;/api/hello",
            ),
        )
        if path.isprintable() and " " not in path
    ],
]


def test_there_are_enough_hostile_requests():
    assert len(REFUSED) + len(RAW) >= 100


@pytest.mark.parametrize(("method", "path", "headers", "status"), REFUSED)
def test_refused(served, method, path, headers, status):
    def filled(text):
        return text and text.replace("{port}", str(served.port)).replace("{token}", served.token)

    body = b"{}" if "act" in path and method == "POST" else None
    head = {name: filled(value) for name, value in headers.items()}
    got, _, body_ = served.ask(method, filled(path), body, head)
    assert got in (status if isinstance(status, set) else {status}), body_
    assert b"root:" not in body_ and str(served.token).encode() not in body_


AT = b" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
TOKEN = b"Authorization: Bearer {token}\r\n"
JSON = b"POST /api/compare" + AT + TOKEN + b"Content-Type: application/json\r\n"
RAW = [  # bytes, and with what status they are refused
    (b"GET / HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.0\r\n\r\n", 403),
    (b"GET /\r\n\r\n", 400),  # HTTP/0.9
    (b"GET /api/hello HTTP/9.9\r\nHost: 127.0.0.1:{port}\r\n\r\n", 401),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 403),
    (b"\r\n\r\nGET /\r\n\r\n", 400),
    (b"GET http://evil.example/" + AT + b"\r\n", 400),
    (b"GET http://127.0.0.1:{port}/api/hello" + AT + b"\r\n", 400),
    (b"OPTIONS *" + AT + TOKEN + b"\r\n", 400),
    (b"CONNECT 127.0.0.1:22" + AT + TOKEN + b"\r\n", 400),
    (b"GET /\xff\xfe" + AT + b"\r\n", 400),
    (b"GET / x" + AT + b"\r\n", 400),
    (b"GET /api/hello" + AT + b"Host: evil.example\r\n\r\n", 400),
    (b"GET /api/hello" + AT + b"Authorization: Bearer x\r\n" + TOKEN + b"\r\n", 400),
    (b"GET /api/hello HTTP/1.1\r\nHost : 127.0.0.1:{port}\r\n\r\n", 400),
    (b"GET /api/hello HTTP/1.1\r\n Host: 127.0.0.1:{port}\r\n\r\n", 400),
    (b"GET /api/hello" + AT + b"X Y: a\r\n\r\n", 400),
    (b"GET /api/hello" + AT + b"X: a\0b\r\n\r\n", 400),
    (b"GET /api/hello" + AT + b"Origin: http://127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), 400),
    (b"SSH-2.0-x\r\n\r\n", 400),
    (b"GET /" + b"a" * 40000 + AT + b"\r\n", 400),
    (b"GET /" + b"a" * 5000 + AT + b"\r\n", 400),
    (b"GET /" + AT + b"".join(b"X-%d: y\r\n" % n for n in range(3000)) + b"\r\n", {400, 431}),  # as it comes
    (b"GET /" + AT + b"".join(b"X-%d: y\r\n" % n for n in range(100)) + b"\r\n", 431),
    (JSON + b"Transfer-Encoding: chunked\r\n\r\nffffff\r\n", 413),
    (
        JSON + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/hello" + AT + TOKEN + b"\r\n",
        413,
    ),
    (JSON + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", 413),
    (JSON + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    (JSON + b"Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 400),
    (JSON + b"Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}", 400),
    *[(JSON + b"Content-Length: %b\r\n\r\n{}" % n, 400) for n in (b"-1", b"+2", b"0x2", b"2.0", b"2 2")],
    (JSON + b"Content-Length: 99999999999\r\n\r\n{}", 413),
    (JSON + b"\r\n{}", 413),
    (JSON + b"Content-Length: 19\r\n\r\n" + b'{"runs":["\\ud800"]}', 404),
    (JSON + b"Content-Length: 60000\r\n\r\n" + b"[" * 60000, 400),
    (JSON + b"Content-Length: 60000\r\n\r\n" + b"9" * 60000, 400),
    (JSON + b"Content-Length: 2\r\nExpect: evil\r\n\r\n{}", 400),
    (
        b"GET /api/live/x" + AT + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        401,
    ),
    (b"GET /api/hello" + AT + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n", 401),
    (b"GET /api/runs?q=state:x" + AT + TOKEN + b"\r\n", 400),
    (b"\0" * 2000 + b"\r\n\r\n", 400),
]


def answers(served, raw: bytes) -> list[int]:
    """The statuses of what comes back on a connection of its own, until the server has nothing more to say."""
    raw = raw.replace(b"{port}", str(served.port).encode()).replace(b"{token}", served.token.encode())
    with socket.create_connection(("127.0.0.1", served.port), timeout=200) as s:
        s.sendall(raw)
        reply = b""
        while b"\r\n\r\n" not in reply and (piece := s.recv(65536)):
            reply += piece
        with contextlib.suppress(OSError):
            s.shutdown(socket.SHUT_WR)
            while piece := s.recv(65536):
                reply += piece
    return [int(status) for status in re.findall(rb"^HTTP/1\.1 (\d+) ", reply, re.MULTILINE)]


@pytest.mark.parametrize(("raw", "status"), RAW)
def test_raw_requests_are_refused_and_the_server_goes_on(served, raw, status):
    first, *more = answers(served, raw)
    assert first in (status if isinstance(status, set) else {status}) and all(400 <= status_ < 500 for status_ in more)
    assert served.get("/api/hello")["runs"] == 2


@pytest.mark.parametrize("how", ["Content-Length: 4\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked"])
def test_what_comes_behind_a_request_that_was_refused_is_not_heard(served, how):
    """Nor does the server wait for more: nobody tells it that the connection is over."""
    raw = JSON + how.encode() + b"\r\n\r\n0\r\n\r\nGET /api/hello" + AT + TOKEN + b"\r\n"
    raw = raw.replace(b"{port}", str(served.port).encode()).replace(b"{token}", served.token.encode())
    reply = b""
    with socket.create_connection(("127.0.0.1", served.port), timeout=600) as s:
        s.sendall(raw)
        while piece := s.recv(65536):
            reply += piece
    assert re.findall(rb"HTTP/1\.1 (\d+) ", reply) == [b"413"]


def test_what_is_no_attack_is_answered(served):
    for more, status in (
        (b"Range: bytes=0-10\r\n", 200),
        (b"Accept-Encoding: gzip\r\n", 200),
        (b"X: a\r\n b\r\n", 200),
    ):
        assert answers(served, b"GET /api/hello" + AT + TOKEN + more + b"\r\n") == [status]
    run = served.get("/api/runs")["runs"][0]["id"]
    for path in ("/", "/api/hello", "/api/runs", f"/api/live/{run}"):
        status, _, body = served.ask("HEAD", path)  # of a stream, too: its head, and no stream that nobody reads
        assert (status, body) == (200, b""), path


def test_connections_that_only_wait_make_room(runs):
    """Those of other users of the machine who say nothing, half a request, or a body without its end."""
    half = (b"", b"G", b"GET / HTTP/1.1\r\nX: ", JSON + b"Content-Length: 60000\r\n\r\n{")
    with Serving(runs) as served:
        held = []
        try:
            for n in range(300):
                held.append(socket.create_connection(("127.0.0.1", served.port), timeout=200))
                held[-1].sendall(half[n % 3])
                if n % 50 == 0:
                    assert served.get("/api/hello")["runs"] == 2, n
            held[-1].sendall(b"")
            assert served.get("/api/hello")["runs"] == 2
            assert held[0].recv(1) == b""  # the one that waited for longest
        finally:
            for one in held:
                one.close()


# another user of the machine, who connects as fast as he can: a thread for each way of saying nothing useful
FLOOD = """if 1:
    import os, socket, sys, threading, time
    "localhost".encode("idna")  # its codec is root's to import
    port = int(sys.argv[1])
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    ask = f"GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n".encode()
    ways = (b"", b"GET / HTTP/1.1\\r\\nX: ", b"GET /" + b"a" * 200_000, 40 * ask)
    def flood(said):
        held = []
        while True:
            try:
                one = socket.create_connection(("127.0.0.1", port), timeout=0.2)
                held.append(one)
                one.sendall(said)
            except OSError:
                time.sleep(0.01)
            for old in held[:-250]:
                old.close()
            del held[:-250]
            print(len(held), flush=True)
    for said in ways:
        threading.Thread(target=flood, args=(said,)).start()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_flood_of_another_user_keeps_nobody_out(runs):
    with Serving(runs) as served:
        attacker = subprocess.Popen([sys.executable, "-c", FLOOD, str(served.port)], stdout=subprocess.PIPE)
        try:
            made = sum(1 for _ in zip(range(1000), attacker.stdout, strict=False))
            assert made == 1000
            about, asked, open_ = Path(f"/proc/{served.process.pid}"), [], []
            for _ in range(5):
                asked.append(served.get("/api/hello")["runs"])
                open_.append(len(os.listdir(about / "fd")))
            status = (about / "status").read_text()
            assert attacker.poll() is None, "it went on all the while"
        finally:
            attacker.kill()
            attacker.communicate()
        assert asked == [2] * 5
        assert min(open_) < 400, "the flood holds 1000; what was just accepted is closed in a moment"
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert int(fields["VmRSS"].split()[0]) < 300_000 and int(fields["Threads"]) < 40
        assert served.get("/api/hello")["runs"] == 2


def test_kernel_says_whose_a_connection_is():
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            server = socket.create_server((host, 0), family=family)
        except OSError:
            continue
        with server, socket.create_connection(server.getsockname()[:2]) as client, server.accept()[0] as ours:
            assert connection.uid(ours.getsockname(), ours.getpeername()) == os.geteuid()
            assert connection.uid(ours.getsockname(), (host, 1)) is None
            there = ours.getpeername()
            client.close()
            assert connection.uid(ours.getsockname(), there) is None  # nobody's: it is closed
    assert not connection.is_ours(None, None) and not connection.is_ours(("no address", 1), ("none", 2))


def test_connections_of_others_make_room_among_themselves(monkeypatch):
    from uvicorn import Config
    from uvicorn.server import ServerState

    from ssdrig.serve.connection import MOST_OTHERS, Connection

    config, state = Config(lambda: None, log_level="error", limit_concurrency=200), ServerState()
    times = iter(range(1000))
    loop = types.SimpleNamespace(
        call_later=lambda s, what: types.SimpleNamespace(when=next(times).__int__, cancel=lambda: None)
    )
    made = []

    def connect(ours: bool) -> Connection:
        monkeypatch.setattr(connection, "is_ours", lambda near_end, there: ours)
        one = Connection(config, state, {}, loop)
        one.connection_made(Transport())
        made.append(one)
        return one

    ours = connect(True)
    others = [connect(False) for _ in range(MOST_OTHERS + 5)]
    assert [one.transport.aborted for one in others] == [True] * 5 + [False] * MOST_OTHERS
    assert not ours.transport.aborted and len(state.connections) == MOST_OTHERS + 1
    for one in state.connections:
        one._late = None  # each takes an answer, and reads nothing of it
    assert connect(False).transport.aborted and not connect(True).transport.aborted
    assert not ours.transport.aborted


class Transport(asyncio.Transport):
    aborted = False

    def get_extra_info(self, name, default=None):
        return default

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


def test_a_connection_has_so_long_for_a_head_and_for_taking_its_answer(monkeypatch):
    from uvicorn import Config
    from uvicorn.server import ServerState

    from ssdrig.serve.connection import HEAD_S, SLOW_S, Connection

    class Loop:  # in model time
        def __init__(self):
            self.now, self.due = 0.0, []

        def call_later(self, delay_s, what):
            self.due.append(call := types.SimpleNamespace(at=self.now + delay_s, what=what, cancelled=False))
            call.cancel = lambda: setattr(call, "cancelled", True)
            call.when = lambda: call.at
            return call

        def go(self, s):
            self.now += s
            for call in [call for call in self.due if call.at <= self.now and not call.cancelled]:
                call.cancel()
                call.what()

    def made():
        one = Connection(Config(lambda: None, log_level="error"), ServerState(), {}, loop)
        one.connection_made(transport := Transport())
        return one, transport

    loop = Loop()
    one, transport = made()
    for _ in range(int(HEAD_S) - 1):
        loop.go(1)
        one.data_received(b"G" if not loop.now > 1 else b"E")
    assert not transport.aborted
    loop.go(1.5)
    assert transport.aborted
    one, transport = made()
    one.cycle = types.SimpleNamespace(response_complete=False)
    one._look()  # an answer is under way: the head is not waited for
    loop.go(10 * HEAD_S)
    assert not transport.aborted
    one.pause_writing()
    loop.go(SLOW_S - 1)
    one.resume_writing()
    loop.go(10)
    assert not transport.aborted
    one.pause_writing()
    loop.go(SLOW_S + 1)
    assert transport.aborted


@given(st.binary(max_size=80))
def test_the_guard_lets_nothing_through_without_its_token(data):
    allowed, text = app.hosts(8017), data.decode("latin-1")
    head = [(b"host", b"127.0.0.1:8017")]
    for method in ("GET", "POST", text[:5]):
        for more in ([], [(b"authorization", data)], [(b"cookie", data)]):
            for path in ("/api/hello", "/" + text):
                refused = app.refuse(method, path, head + more, allowed, "t" * 43)
                assert refused or path == "/" or app.PAGE.fullmatch(path)
    for name in (b"", data, b"evil", b"127.0.0.1:8017\n", b" 127.0.0.1:8017"):
        if name not in (b"127.0.0.1:8017", b"localhost:8017", b"[::1]:8017"):
            assert app.refuse("GET", "/", [(b"host", name)], allowed, "t" * 43).status == 403
    assert (
        app.refuse("GET", "/api/hello", [*head, (b"authorization", b"Bearer " + b"t" * 43)], allowed, "t" * 43) is None
    )
