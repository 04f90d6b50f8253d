"""NBD over a real socket: the server as a process, and one connection of it alone."""

import socket
import struct
import time

import numpy as np
import pytest
from serving import PATIENCE_S, raw_client, receive, request, serving, shared  # noqa: F401  fixtures

from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import NbdError
from ssdrig.virtual.device.device import Pace
from ssdrig.virtual.device.nbdserver import Connection
from ssdrig.virtual.device.waiting import GATHER_NS

pytestmark = pytest.mark.keeps_time


def test_random_requests_on_two_connections_are_like_memory(shared):
    rng, memory = np.random.default_rng(7), bytearray(4 << 20)
    with shared.client() as a, shared.client() as b:
        assert a.size_bytes == 1 << 30 and a.flags == 0x16D
        a.trim(0, a.size_bytes)
        for step in range(400):
            client = (a, b)[step % 2]
            offset, length = int(rng.integers(0, 3 << 20)), int(rng.choice([1, 100, 512, 4096, 5000, 131072]))
            if step % 5 < 2:
                data = rng.bytes(length)
                client.write(offset, data, fua=step % 3 == 0)
                memory[offset : offset + length] = data
            elif step % 5 == 2:
                client.write_zeroes(offset, length)
                memory[offset : offset + length] = bytes(length)
            elif step % 5 == 3:
                client.trim(offset // 4096 * 4096, 8192)
                memory[offset // 4096 * 4096 : offset // 4096 * 4096 + 8192] = bytes(8192)
            else:
                client.flush()
            assert (b, a)[step % 2].read(offset, length) == memory[offset : offset + length]
        assert a.read(0, len(memory)) == memory


def test_every_pipelined_request_is_answered_once(shared):
    with shared.client() as client:
        sock, n = client.sock, 3000
        data = b"".join(
            request(nbd_protocol.WRITE, 4096 * (i % 1000), 4096, i) + bytes(4096)
            if i % 3
            else request(nbd_protocol.READ, 0, 512, i)
            for i in range(n)
        )
        sock.setblocking(False)
        sent, got = 0, b""
        expected = n * 16 + 512 * len(range(0, n, 3))
        deadline = time.monotonic() + PATIENCE_S
        while len(got) < expected and time.monotonic() < deadline:
            try:
                sent += sock.send(data[sent : sent + 300_000])
            except BlockingIOError:
                pass
            try:
                got += sock.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.001)
        sock.settimeout(PATIENCE_S)
    cookies, at = [], 0
    while at < len(got):
        magic, error, cookie = struct.unpack_from(">IIQ", got, at)
        assert (magic, error) == (0x67446698, 0)
        cookies.append(cookie)
        at += 16 + (0 if cookie % 3 else 512)
    assert sorted(cookies) == list(range(n))


@pytest.mark.parametrize(
    "ask,number",
    [
        (lambda c: c._request(nbd_protocol.READ, c.size_bytes, 4096), nbd_protocol.EINVAL),
        (lambda c: c._request(nbd_protocol.WRITE, c.size_bytes - 1, 2, data=b"ab"), nbd_protocol.ENOSPC),
        (lambda c: c._request(nbd_protocol.CACHE, 0, 4096), nbd_protocol.EINVAL),
        (lambda c: c._request(nbd_protocol.READ, 0, (32 << 20) + 1), nbd_protocol.EINVAL),
    ],
)
def test_a_refused_request_leaves_the_connection_usable(shared, ask, number):
    with shared.client() as client:
        with pytest.raises(NbdError) as error:
            ask(client)
        assert error.value.errno == number
        client.write(0, b"still here")
        assert client.read(0, 10) == b"still here"


def test_the_longest_read_and_write(shared):
    data = np.random.default_rng(1).bytes(32 << 20)
    with shared.client() as client:
        client._request(nbd_protocol.WRITE, 4096, len(data), data=data)
        assert client._request(nbd_protocol.READ, 4096, len(data), expect=len(data)) == data


def test_garbage_ends_only_its_own_connection(shared):
    rng = np.random.default_rng(3)
    with shared.client() as good:
        good.write(0, b"good")
        for i in range(60):
            if i % 2:
                sock = raw_client(shared.socket)
            else:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sock.settimeout(PATIENCE_S)
                sock.connect(shared.socket)
            with sock:
                start = [
                    b"",
                    struct.pack(">I", 3) + b"IHAVEOPT",
                    request(nbd_protocol.WRITE, 0, 1 << 30)[: int(rng.integers(1, 28))],
                ][i % 3]
                try:
                    sock.sendall(start + rng.bytes(int(rng.integers(0, 5000))))
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    pass  # dropped while we were still talking
            assert good.read(0, 4) == b"good"


def test_who_does_not_read_replies_stops_only_himself(shared):
    with shared.client() as good, raw_client(shared.socket) as deaf:
        deaf.setblocking(False)
        reads, sent = request(nbd_protocol.READ, 0, 1 << 20) * 2000, 0
        deadline = time.monotonic() + 100
        while sent < len(reads) and time.monotonic() < deadline:
            try:
                sent += deaf.send(reads[sent:])
            except BlockingIOError:
                break
        for i in range(50):
            good.write(4096 * i, b"x" * 4096)
        deaf.settimeout(PATIENCE_S)
        assert receive(deaf, 16 + (1 << 20))[:4] == struct.pack(">I", 0x67446698)  # its first reply is there


def test_checks_only(serving):
    server = serving("--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency", "--data", "crc")
    with server.client() as client:
        client.write(3 << 12, b"z" * 8192)
        with pytest.raises(NbdError) as error:
            client.write(0, b"part of a page")
        assert error.value.errno == nbd_protocol.EINVAL
        page = client.read(3 << 12, 4096)
        assert page[:8] == (3).to_bytes(8, "little") and page == page[:16] * 256
        assert client.read(0, 4096) == bytes(4096)


class Shelf:
    """What a Connection needs of a device: reads of zeros that are due at once."""

    latency, capacity_bytes, min_block = True, 1 << 30, 1
    store = property(lambda self: self)
    pace = Pace()

    def execute(self, buf, batch, n, t_ns, lead_ns):
        batch[:n, nbd_protocol.DUE] = t_ns
        return t_ns, int(batch[:n, nbd_protocol.LENGTH].max())

    def read(self, out, reads, n):
        pass


def ready_connection(ours: socket.socket, theirs: socket.socket) -> Connection:
    connection = Connection(ours, Shelf())
    theirs.sendall(struct.pack(">I", 3) + struct.pack(">8sII", b"IHAVEOPT", 1, 0))
    connection.receive()
    assert receive(theirs, 28)[:8] == b"NBDMAGIC" and connection.negotiation.state == "ready"
    return connection


def test_the_server_only_wakes_for_what_it_can_do():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = ready_connection(ours, theirs)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        assert connection.next_due_ns == -1 and connection.wants_read  # idle: only the socket wakes it
        theirs.sendall(b"".join(request(nbd_protocol.READ, 0, 1 << 20, i) for i in range(20)))
        connection.receive()
        assert connection.waiting.n == 20 and 0 < connection.next_due_ns <= time.monotonic_ns()
        now = time.monotonic_ns()
        connection.reply(now)
        assert connection.wants_write and 0 < connection.waiting.n < 20  # they do not read
        assert connection.next_due_ns == -1 and not connection.wants_read
        left = 20 * (16 + (1 << 20))
        theirs.setblocking(False)
        while connection.waiting.n or connection.wants_write:
            now += GATHER_NS
            connection.reply(now)
            left -= drained(theirs)
        assert left == 0


def drained(sock: socket.socket) -> int:
    n = 0
    try:
        while more := sock.recv(1 << 20):
            n += len(more)
    except BlockingIOError:
        return n


def test_replies_of_a_deep_queue_are_gathered_and_of_a_shallow_one_are_not():
    for n, gathered in ((40, True), (4, False)):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection = ready_connection(ours, theirs)
            theirs.sendall(b"".join(request(nbd_protocol.READ, 0, 1, i) for i in range(n)))
            connection.receive()
            connection.waiting.rows[: n // 2, nbd_protocol.DUE] = 0
            now = int(connection.waiting.rows[n - 1, nbd_protocol.DUE]) - 1  # half of them are due
            connection.waiting._first_due_ns = 0
            connection.reply(now)
            assert connection.waiting.n == n // 2
            assert connection.next_due_ns == (now + GATHER_NS if gathered else now + 1)
