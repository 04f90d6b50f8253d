"""What carries the writer's commands: AIO, threads, NBD, each on something that really is there; and replies of all
kinds."""

import contextlib
import errno
import io
import os
import socket
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_device import loop_device

from selfcheck.powerloss_cuts import RUN
from selfcheck.powerloss_scenes import KEPT
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.blockio import aio as linux_aio
from ssdrig.blockio import nbd_protocol
from ssdrig.blockio.nbd import address
from ssdrig.blockio.nbd_numbers import REPLY, REPLY_MAGIC
from ssdrig.blockio.slots import Slots
from ssdrig.load import trace_player, trace_targets, traceform
from ssdrig.plan.kinds.cut_mixes import SHARES
from ssdrig.powerloss import fill, layout, nbdwriter, readback, targets, verdict
from ssdrig.powerloss.history import BLANK, FLUSH, FUA, NEVER, ROW, TRIM, WRITE, ZEROS, History
from ssdrig.powerloss.promise import ACK
from ssdrig.powerloss.transports import Aio, Connections, Threads
from ssdrig.powerloss.writer import Writer

MIB = 1 << 20
MS = 1_000_000
NO_TRIM = SHARES | {"trim": 0, "trim-beside": 0}
DISCARDED = {"trim": 40, "zeroes": 30, "random": 30}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "drive"
    with path.open("wb") as f:
        f.truncate(8 * MIB)
    return path


def written_and_read(transport, path, shares=SHARES, kinds=frozenset()) -> np.ndarray:
    """A session without a cut: all that was acknowledged must be there. Returns its rows. Trims of a slow
    drive fall behind their share: the session lasts until it has commands of these `kinds`, at most 40 000 in all."""
    places = layout.make(512, transport.size_bytes)
    fill.fill(transport, places, RUN)
    base = np.zeros(places.base_blocks, np.int64)
    book = History(path / "history")
    writer = Writer(transport, book, places, KEPT, RUN, 1, 1, base, shares)
    while writer.commands < 400 or not kinds <= set(book.written()["kind"]) and writer.commands < 40_000:
        assert writer.write(transport.now_ns() + 10 * MS).reason == "time"
    settled_ns = writer.settle(30_000 * MS)
    assert settled_ns
    rows = book.written()
    blocks = readback.read(
        transport, places, RUN, base, readback.wanted(rows, places, np.random.default_rng(1), full=True)
    )
    session = verdict.Session(rows, settled_ns, NEVER, settled_ns, transport.now_ns())
    ruling = verdict.judge(session, blocks, KEPT._replace(mode=ACK))
    assert ruling.why_not == "" and not ruling.finding.any()
    assert set(rows["status"]) == {0} and (rows["done_ns"] > rows["submit_ns"]).all()
    assert len(blocks.lba) == places.base_blocks and len(np.unique(blocks.seen)) > 10
    return rows


@pytest.mark.parametrize("kind", [Aio, Threads])
def test_a_file_holds_what_was_acknowledged(file, tmp_path, kind):
    transport = kind(str(file))
    try:
        rows = written_and_read(transport, tmp_path, NO_TRIM)
        assert {WRITE, FLUSH} == set(rows["kind"]) and set(rows["flags"]) == {0, FUA}
        places = layout.make(512, transport.size_bytes)
        os.truncate(file, 2 * MIB)  # the rest of the drive has gone
        assert readback.block(transport, places, 2 * MIB // 512 - 1) is not None
        assert readback.block(transport, places, 2 * MIB // 512) is None
        transport.slots.kind[0], transport.slots.offset[0], transport.slots.length[0] = TRIM, 0, 4096
        transport.submit(np.array([0]), 1)
        ended = np.zeros(4, np.int64)
        assert transport.reap(ended, 1000 * MS) == 1 and transport.slots.status[0] == -errno.EOPNOTSUPP
        assert transport.under_way == 0 and transport.gone == ""
    finally:
        transport.close()
        transport.close()


@pytest.mark.parametrize("kind", [Aio, Threads])
def test_a_block_device_takes_trims_and_write_zeroes(file, tmp_path, kind):
    with loop_device(file) as node:
        transport = targets.connected(node) if kind is Aio else kind(node)
        try:
            assert isinstance(transport, kind) and transport.size_bytes == 8 * MIB
            rows = written_and_read(transport, tmp_path, DISCARDED, {TRIM, BLANK})
            assert {WRITE, TRIM, BLANK} == set(rows["kind"]) and ZEROS in rows["flags"]
        finally:
            transport.close()


@pytest.mark.parametrize("kind", [Aio, Threads])
def test_flush_and_fua_reach_the_device(file, kind):
    """The kernel counts what it sends: of a device with a volatile cache and without FUA, each makes a FLUSH."""
    with loop_device(file) as node:
        queue, stat = (Path("/sys/block") / Path(node).name / name for name in ("queue/write_cache", "stat"))
        transport = kind(node)
        sent = {}
        try:
            if queue.read_text().strip() != "write back" or len(stat.read_text().split()) < 17:
                pytest.skip("a kernel without these counters, or a loop device without a cache")
            for flags, what in ((0, WRITE), (FUA, WRITE), (0, FLUSH), (0, TRIM)):
                before = [int(number) for number in stat.read_text().split()]
                for i in range(3):
                    done(transport, what, flags, 4096 * i)
                now = [int(number) - b for number, b in zip(stat.read_text().split(), before)]
                sent[what, flags] = now[11], now[15]  # discards, FLUSHes
        finally:
            transport.close()
        assert (sent[WRITE, 0], sent[FLUSH, 0], sent[TRIM, 0]) == ((0, 0), (0, 3), (3, 0))
        assert sent[WRITE, FUA][1] >= 3  # without AIO the kernel counts it twice


def done(transport, kind, flags, offset) -> None:
    """One command of 4 KiB."""
    slots, ended = transport.slots, np.zeros(4, np.int64)
    slots.kind[0], slots.flags[0], slots.offset[0], slots.length[0] = kind, flags, offset, 4096 * (kind != FLUSH)
    transport.submit(np.array([0]), 1)
    while not transport.reap(ended, 1000 * MS):
        assert transport.gone == ""
    assert slots.status[0] == 0


def test_where_aio_is_forbidden_threads_do_it(file, monkeypatch):
    def none(most):
        raise DriveError("AIO to be set up", "not permitted", "-")

    monkeypatch.setattr(linux_aio, "Context", none)
    transport = targets.connected(str(file))
    transport.close()
    assert isinstance(transport, Threads)
    with pytest.raises(DriveError, match="for direct I/O"):
        targets.connected(str(file) + "x")
    with pytest.raises(UsageError, match="nbd"):
        targets.connected("nbd+vsock:///")


def test_a_submission_that_the_kernel_refuses_is_an_answer(file):
    transport = Aio(str(file))
    transport.slots.kind[:2], transport.slots.length[:2], transport.slots.offset[:2] = WRITE, 4096, (100, 4096)
    transport.submit(np.array([0, 1]), 2)  # the first is not aligned
    ended, got = np.zeros(4, np.int64), []
    while len(got) < 2:
        n = transport.reap(ended, 1000 * MS)
        assert n
        got += ended[:n].tolist()
    assert set(got) == {0, 1} and transport.slots.status[:2].tolist() == [-errno.EINVAL, 0]
    transport.close()


OPS = (nbd_protocol.READ, nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES)


class Server(threading.Thread):
    """A drive in memory behind NBD. `most`: requests that are answered before it hangs up."""

    def __init__(
        self, listener: socket.socket, most: int = 1 << 60, flags: int | None = None, held: bytearray | None = None
    ):
        super().__init__(daemon=True)
        self.listener, self.most, self.flags, self.done = listener, most, flags, 0
        self.bytes = bytearray(8 * MIB) if held is None else held
        self.start()

    def run(self):
        sock, _ = self.listener.accept()
        talk = nbd_protocol.Negotiation(len(self.bytes))
        sock.sendall(talk.greeting)
        while talk.state != "ready":
            answer = talk.receive(sock.recv(4096))
            if self.flags is not None:
                answer = answer.replace(
                    struct.pack(">H", nbd_protocol.TRANSMISSION_FLAGS), struct.pack(">H", self.flags)
                )
            sock.sendall(answer)
        with contextlib.suppress(OSError), sock, sock.makefile("rb") as stream:
            for _ in range(self.most):
                head = stream.read(nbd_protocol.HEADER_BYTES)
                if len(head) < nbd_protocol.HEADER_BYTES:
                    return
                _, _, op, cookie, offset, length = struct.unpack(">IHHQQI", head)
                if op == nbd_protocol.DISC:
                    return
                data = b""
                if op == nbd_protocol.WRITE:
                    self.bytes[offset : offset + length] = stream.read(length)
                elif op in (nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES):
                    self.bytes[offset : offset + length] = bytes(length)
                elif op == nbd_protocol.READ:
                    data = self.bytes[offset : offset + length]
                self.done += 1
                error = 0 if op in OPS else errno.EINVAL
                sock.sendall(REPLY.pack(REPLY_MAGIC, error, cookie) + data)


@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_nbd_holds_what_was_acknowledged_until_it_is_gone(tmp_path, family):
    if family == "unix":
        listener, uri = socket.socket(socket.AF_UNIX), f"nbd+unix:///?socket={tmp_path}/s"
        listener.bind(f"{tmp_path}/s")
    else:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        uri = f"nbd://127.0.0.1:{listener.getsockname()[1]}/drive"
    with listener:
        listener.listen()
        Server(listener)
        transport = targets.connected(uri)
        rows = written_and_read(transport, tmp_path, kinds={WRITE, FLUSH, TRIM})
        assert {WRITE, FLUSH, TRIM} <= set(rows["kind"]) and ZEROS in rows["flags"]
        transport.close()
        Server(listener, most=50)
        transport = targets.connected(uri)
        book = History(tmp_path / "next")
        writer = Writer(transport, book, layout.make(512, transport.size_bytes), KEPT, RUN, 2, 1)
        assert writer.write(NEVER).reason == "gone" and writer.settle(0) is not None
        done = (book.written()["done_ns"] < NEVER).sum()
        assert 0 < done <= 50 and book.written()["status"].max() == 0
        Server(listener, flags=nbd_protocol.TRANSMISSION_FLAGS & ~(1 << 6))
        transport = targets.connected(uri)
        assert transport.can_trim and not transport.can_zero
        transport.close()
        Server(listener, flags=nbd_protocol.TRANSMISSION_FLAGS & ~(1 << 3))
        with pytest.raises(DriveError, match="no FUA"):
            targets.connected(uri)


def test_several_connections_carry_one_session(tmp_path):
    """And a success that one of them still holds when another has ended is no lost one."""
    uri, held = f"nbd+unix:///?socket={tmp_path}/s", bytearray(8 * MIB)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/s")
        listener.listen()
        servers = [Server(listener, held=held) for _ in range(3)]
        transport = targets.connected(uri, 3)
        assert isinstance(transport, Connections) and len(transport.links) == 3
        rows = written_and_read(transport, tmp_path, kinds={WRITE, FLUSH, TRIM})
        assert {WRITE, FLUSH, TRIM} <= set(rows["kind"]) and all(server.done > len(rows) / 4 for server in servers)
        transport.close()
        Server(listener, flags=nbd_protocol.TRANSMISSION_FLAGS & ~(1 << 8))  # a FLUSH covers its own connection alone
        transport = targets.connected(uri, 3)
        assert len(transport.links) == 1
        transport.close()
        servers = [Server(listener, most) for most in (50, 1 << 60, 1 << 60)]
        transport = targets.connected(uri, 3)
        book = History(tmp_path / "next")
        writer = Writer(transport, book, layout.make(512, transport.size_bytes), KEPT, RUN, 2, 1)
        assert writer.write(NEVER).reason == "gone" and writer.settle(0) is not None and transport.under_way == 0
        done = (book.written()["done_ns"] < NEVER).sum()
        assert 0 < done <= sum(server.done for server in servers) and book.written()["status"].max() == 0


def test_a_device_is_written_from_several_cpus_in_turn(file):
    allowed = os.sched_getaffinity(0)
    transport, used, ended = Aio(str(file), queues=2), set(), np.zeros(64, np.int64)
    transport.slots.kind[0], transport.slots.length[0] = WRITE, 4096
    try:
        for spread in (contextlib.nullcontext, transport.spread):
            with spread():
                for _ in range(20):
                    transport.submit(np.array([0]), 1)
                    used.add(frozenset(os.sched_getaffinity(0)))
                    transport._moved_ns = 0
                    while not transport.reap(ended, 1000 * MS):
                        pass
    finally:
        transport.close()
    alone = {frozenset({cpu}) for cpu in sorted(allowed)[:2]} if len(allowed) > 1 else set()
    assert os.sched_getaffinity(0) == allowed and used == {frozenset(allowed)} | alone


def test_a_link_of_the_player_that_ends_is_an_error(tmp_path):
    rows = np.zeros(20, traceform.ROW)
    rows["length_bytes"], rows["depth"] = 4096, 8
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/s")
        listener.listen()
        Server(listener, most=3)
        out = io.BytesIO()
        with trace_targets.nbd(f"{tmp_path}/s", 4096) as pipe, pytest.raises(DriveError, match="an NBD drive at"):
            trace_player.play(rows, pipe, trace_player.How(closed=True), out)
    assert pipe.gone and pipe.answers <= 3


def under_way(kinds, length=16) -> tuple[Slots, np.ndarray]:
    """Slots with these commands, and their cookies."""
    slots = Slots(len(kinds), 4096)
    slots.kind[:], slots.length[:] = kinds, length
    return slots, np.array([(7 + i) << 16 | i for i in range(len(kinds))], np.uint64)


def parsed(slots, cookies, chunks) -> tuple[list[int], bool]:
    """Slots that have ended, and whether all that came was replies."""
    state, ended, out, held = nbd_protocol.no_reply(), np.zeros(slots.n, np.int64), [], b""
    expected, answers = np.where(slots.kind == BLANK, slots.length, 0), np.zeros(slots.n, np.uint64)
    places = np.arange(slots.n) * slots.bytes_each
    for chunk in chunks:
        held += chunk
        data = np.frombuffer(held, np.uint8)
        used, n, whole = nbd_protocol.parse_replies(
            data, len(data), cookies, 64, expected, places, slots.data, slots.status, ended, answers, state
        )
        out += ended[:n].tolist()
        held = held[used:]
        if not whole:
            return out, False
    return out, True


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_replies_in_any_order_and_pieces(data):
    kinds = data.draw(st.lists(st.sampled_from([WRITE, FLUSH, TRIM, BLANK]), min_size=1, max_size=9))
    slots, cookies = under_way(kinds)
    order = data.draw(st.permutations(range(len(kinds))))
    errors = data.draw(st.lists(st.sampled_from([0, 5, 28]), min_size=len(kinds), max_size=len(kinds)))
    stream = b""
    for slot in order:
        stream += REPLY.pack(REPLY_MAGIC, errors[slot], int(cookies[slot]))
        stream += bytes([slot + 1] * 16) if kinds[slot] == BLANK and not errors[slot] else b""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)])]
    assert parsed(slots, cookies.copy(), chunks) == (list(order), True)
    assert slots.status.tolist() == [-error for error in errors]
    for slot, kind in enumerate(kinds):
        if kind == BLANK and not errors[slot]:
            assert slots.data[slot * 4096 : slot * 4096 + 16].tolist() == [slot + 1] * 16


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 3), st.integers(0, 15), st.integers(0, 255))
def test_what_is_no_reply_ends_nothing(garbage, slot, at, byte):
    slots, cookies = under_way([WRITE, FLUSH, TRIM, WRITE])
    ended, whole = parsed(slots, cookies.copy(), [garbage])
    assert ended == [] and (not whole or len(garbage) < 16)
    reply = bytearray(REPLY.pack(REPLY_MAGIC, 0, int(cookies[slot])))
    reply[at] ^= byte
    if not 4 <= at < 8 and byte:  # not its error
        assert parsed(slots, cookies.copy(), [bytes(reply)]) == ([], False)


@pytest.mark.parametrize("error", [1 << 16, 1 << 31, (1 << 32) - 1, 32768])
def test_no_error_of_a_server_reads_as_success(error, tmp_path):
    slots, cookies = under_way([WRITE])
    assert parsed(slots, cookies, [REPLY.pack(REPLY_MAGIC, error, int(cookies[0]))]) == ([0], True)
    row = np.zeros(1, ROW)
    row["status"] = slots.status
    assert row["status"][0] < 0


INFO = b"NBDMAGICIHAVEOPT\0\3" + struct.pack(">QII", 0x3E889045565A9, 7, 3)
HUGE = struct.pack(">IHQH", 12, 0, 1 << 63, nbd_protocol.TRANSMISSION_FLAGS)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (INFO + struct.pack(">I", 4) + bytes(4), "too short"),
        (INFO + struct.pack(">IH", 2, 3), "too short"),
        (INFO + struct.pack(">I", 1 << 31), "2147483648 bytes"),
        (INFO + HUGE + INFO[18:30] + struct.pack(">II", 1, 0), "a drive of 9223372036854775808"),
        (INFO[:20], "the end of the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n", "another protocol"),
    ],
)
def test_a_server_that_talks_nonsense_is_an_error_in_words(tmp_path, reply, words):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        listener.listen()

        def serve():
            link, _ = listener.accept()
            with link, contextlib.suppress(OSError):
                link.sendall(reply)
                link.shutdown(socket.SHUT_WR)
                while link.recv(4096):
                    pass

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(DriveError, match=words):
            targets.connected(f"nbd+unix:///?socket={tmp_path / 'sock'}")


@pytest.mark.parametrize(
    "uri", ["nbd://host:99999", "nbd://[::1", "nbd://", "nbd+unix:///?socket=", "nbd+unix://x", "ftp://x"]
)
def test_an_address_that_can_be_none_is_refused(uri):
    with pytest.raises(UsageError, match="nbd://HOST"):
        targets.connected(uri) if uri.startswith("nbd") else address(uri)


@pytest.mark.parametrize(
    "uri", ["nbd+unix:///?socket=/tmp/%00x", f"nbd://{'a' * 70}.x", f"nbd+unix:///?socket=/{'a' * 200}"]
)
def test_an_address_without_a_server_is_an_error_in_words(uri):
    with pytest.raises(DriveError, match="expected an NBD drive"):
        targets.connected(uri)


def packed(slots, cookies, number) -> bytearray:
    """The requests of all slots as they are sent, the data of writes behind each."""
    heads, lengths = np.zeros(slots.n * nbd_protocol.HEADER_BYTES, np.uint8), np.zeros(slots.n, np.int64)
    fields = slots.kind, slots.flags, slots.offset, slots.length
    expected = np.zeros(slots.n, np.int64)
    order, words = np.arange(slots.n), nbdwriter.WORDS
    writes = nbd_protocol.pack(heads, lengths, order, slots.n, number, 1, words, *fields, cookies, expected)
    assert writes == np.count_nonzero(lengths)
    assert expected.tolist() == np.where(slots.kind == BLANK, slots.length, 0).tolist()
    out = bytearray()
    for slot, head in enumerate(heads.reshape(slots.n, -1)):
        out += head.tobytes() + slots.data[slot * slots.bytes_each :][: lengths[slot]].tobytes()
    return out


def test_a_reply_that_comes_twice_is_no_answer_to_the_next_command():
    slots, cookies = under_way([WRITE])
    reply = REPLY.pack(REPLY_MAGIC, 0, int(cookies[0]))
    assert parsed(slots, cookies, [reply]) == ([0], True)
    assert len(packed(slots, cookies, 91)) == nbd_protocol.HEADER_BYTES + 16
    assert parsed(slots, cookies, [reply]) == ([], False)


def test_a_stamped_answer_has_the_slot_of_a_request_under_way():
    slots, cookies = under_way([WRITE, WRITE])
    ended, answers, places = np.zeros(2, np.int64), np.zeros(2, np.uint64), np.zeros(2, np.int64)
    answer = 1234 << nbd_protocol.SLOT_BITS | 1
    data = np.frombuffer(REPLY.pack(REPLY_MAGIC, 0, answer) * 2, np.uint8)
    state, nothing = nbd_protocol.no_reply(), np.zeros(0, np.uint8)
    fields = cookies, nbd_protocol.SLOT_BITS, places, places, nothing, slots.status, ended, answers, state
    assert nbd_protocol.parse_replies(data, len(data), *fields) == (16, 1, False)  # the second is to nothing
    assert (ended[0], answers[0]) == (1, answer)


def test_a_request_is_what_the_server_understands():
    slots, cookies = under_way([WRITE, FLUSH, TRIM, BLANK, WRITE], length=512)
    slots.flags[0], slots.flags[4] = FUA, FUA | ZEROS
    slots.offset[:], slots.length[1] = (4096, 0, 8192, 1024, 512), 0
    slots.data[:512] = 7
    out = np.frombuffer(packed(slots, cookies, 1), np.uint8)
    batch = np.zeros((8, nbd_protocol.COLUMNS), np.int64)
    n, used, _, state = nbd_protocol.parse(out, 0, len(out), MIB, 1, batch)
    assert (n, used, state) == (5, len(out), nbd_protocol.MORE) and not batch[:5, nbd_protocol.ERROR].any()
    asked = batch[:5, [nbd_protocol.OP, nbd_protocol.FLAGS, nbd_protocol.OFFSET, nbd_protocol.LENGTH]].tolist()
    assert asked == [
        [nbd_protocol.WRITE, nbd_protocol.FUA, 4096, 512],
        [nbd_protocol.FLUSH, 0, 0, 0],
        [nbd_protocol.TRIM, 0, 8192, 512],
        [nbd_protocol.READ, 0, 1024, 512],
        [nbd_protocol.WRITE_ZEROES, nbd_protocol.FUA, 512, 512],
    ]
    assert (out[batch[0, nbd_protocol.AT] :][:512] == 7).all()
    assert batch[:5, nbd_protocol.COOKIE].tolist() == cookies.tolist()
    assert cookies.tolist() == [(1 + i) << nbd_protocol.SLOT_BITS | i for i in range(5)]
