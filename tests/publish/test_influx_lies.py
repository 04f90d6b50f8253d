"""Whatever answers at the address of an InfluxDB: no answer ends a push by a defect, loses a point or holds it up."""

import contextlib
import json
import socket
import threading

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.publish.influx import query, sender, verify
from ssdrig.publish.influx.address import target
from ssdrig.publish.influx.link import BROKEN, Link

TYPE = {"Content-Type": "text/plain"}


@contextlib.contextmanager
def server(*pieces: bytes, hold: bool = False):
    """Answers each request by `pieces`, one send each, then closes, or with `hold` waits. Yields its Target."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.1)

        def serve():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    connection, _ = listening.accept()
                    with connection:
                        request = b""
                        while not request.partition(b"\r\n\r\n")[2] and (piece := connection.recv(65536)):
                            request += piece
                        for piece in pieces:
                            connection.sendall(piece)
                            stop.wait(0.02 if len(pieces) > 9 else 0)
                        if hold:
                            stop.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield target(f"http://127.0.0.1:{listening.getsockname()[1]}/db", {})
        finally:
            stop.set()
            thread.join()


def answered(to, answer_s: float = 20.0):
    link = Link(to, answer_s)
    try:
        link.send("/write", b"x", TYPE)
        return link.receive()
    finally:
        link.close()


def whole(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (b"", sender.RETRY),
        (b"garbage\r\n\r\n", sender.RETRY),
        (b"204", sender.RETRY),
        (b"HTTP/2 204\r\n\r\n", sender.RETRY),
        (b"HTTP/1.1 99999 X\r\n\r\n", sender.RETRY),
        (b"HTTP/1.1 204 X\r\n" + b"X: y\r\n" * 500 + b"\r\n", sender.RETRY),
        (b"HTTP/1.1 204 X\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", sender.RETRY),
        (b"HTTP/1.1 400 X\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n", sender.RETRY),
        (b"HTTP/1.1 400 X\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc", sender.RETRY),
        (b"HTTP/1.1 400 X\r\nContent-Length: 99999999999\r\n\r\n{", sender.RETRY),
        (b"HTTP/1.1 400 X\r\nContent-Length: -7\r\n\r\nabc", sender.RETRY),
        (b"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", sender.RETRY),
        (b"HTTP/1.1 101 X\r\n\r\n", sender.RETRY),
        (whole(200, b"{}"), sender.RETRY),
        (whole(400, b"[" * 200_000), sender.RETRY),
        (whole(400, b'{"error": ["x"], "data": [[1], {"line_number": [1]}]}'), sender.RETRY),
        (whole(400, b'{"error": "partial write: dropped=' + b"9" * 5000 + b'"}'), sender.SPLIT),
        (whole(413, b""), sender.SPLIT),
        (b"HTTP/1.1 100 X\r\n\r\n" * 2000 + b"HTTP/1.1 204 X\r\n\r\n", sender.SENT),
        (whole(204, b""), sender.SENT),
    ],
)
def test_an_answer_of_any_kind_has_a_verdict(reply, what):
    with server(reply) as to:
        assert sender.judge(answered(to), 100).what == what


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 400 X\r\nContent-Length: 99\r\n\r\n{",),
        (b"HTTP",),
        (b"HTTP/1.1 400 X\r\nContent-Length: 5000\r\n\r\n", *[b"x"] * 5000),
    ],
)
def test_an_answer_that_does_not_end_is_not_waited_for(pieces):
    with server(*pieces, hold=True) as to:
        assert answered(to, 0.2).status == BROKEN


NONE = [b"[]", b"{}", b"x", b"[" * 100_000, b'{"error": "x"}', b'{"results": []}', b'{"results": [[]]}']
NONE += [
    b'{"results": [%b]}' % body
    for body in (b'{"error": {"x": 1}}', b'{"series": "abc"}', b'{"series": 3}', b'{"series": [{}]}')
]
VALUES = [
    b"[]",
    b"[3]",
    b'[[0, "x", "y"]]',
    b"[[0, NaN]]",
    b"[[0, 1e999]]",
    b"[[0, -1]]",
    b"[[0, 1.5]]",
    b"[[0, true]]",
]


@pytest.mark.parametrize(
    "body", NONE + [b'{"results": [{"series": [{"name": "power", "values": %b}]}]}' % v for v in VALUES]
)
def test_what_is_no_count_counts_nothing(body, tmp_path):
    (tmp_path / "points.lp").write_bytes(b"power,run=r W=1 1\n")
    with server(whole(200, body)) as to:
        with pytest.raises(UsageError):
            verify.stored([tmp_path], to)
        counted = verify.counted([tmp_path], to, 0, 0.0, None)
        assert counted.why and counted.missing == {}


def test_a_server_that_has_none_of_it_is_found_out(tmp_path):
    (tmp_path / "points.lp").write_bytes(b"power,run=r W=1 1\n")
    for series in (None, [], [{"name": "power", "values": [[0]]}], [{"name": "power", "values": [[0, None]]}]):
        with server(whole(200, json.dumps({"results": [{"series": series}]}).encode())) as to:
            assert verify.counted([tmp_path], to, 0, 0.0, None).missing == {"power": 1}
            assert query.series(to, "x") == (series or [])
