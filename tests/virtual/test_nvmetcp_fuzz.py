"""Hosts that talk nonsense: whatever they send, the server goes on for the others. And the fast path of I/O commands
says the same as the careful one."""

import contextlib
import struct
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nvmetcp_initiator import Host, Queue, capsule, rw, sqe
from nvmetcp_serving import address
from serving import PATIENCE_S, Serving

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import io, pdu
from ssdrig.virtual.device.status import Refused

SIZE, SHIFT = 1 << 30, 9
relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    it = Serving(
        tmp_path_factory.mktemp("fuzz"),
        "--preset",
        "sata-tlc",
        "--capacity",
        "1GiB",
        "--no-latency",
        "--nvme-tcp",
        "127.0.0.1:0",
    )
    yield it
    assert it.process.poll() is None, (it.folder / "err").read_text()
    it.end()


@pytest.fixture(scope="module")
def good(server):
    """A host beside the fuzzed ones."""
    with Host(address(server), server.ready["nqn"]) as host:
        yield host


def drained(sock) -> int:
    """Read until the server ends the connection; a server that neither answers nor ends it fails the test by
    time-out."""
    n = 0
    try:
        while more := sock.recv(1 << 16):
            n += len(more)
    except ConnectionResetError:
        pass
    return n


bits = {size: st.integers(0, 2 ** (8 * size) - 1) for size in (1, 2, 4, 8)}
lengths = st.one_of(st.sampled_from([0, 8, 24, 72, 73, 72 + 8192, 72 + 8193, 1 << 20, 0xFFFFFFFF]), bits[4])
headers = st.builds(
    lambda kind, flags, hlen, pdo, plen: struct.pack("<BBBBI", kind, flags, hlen, pdo, plen),
    st.one_of(st.integers(0, 9), bits[1]),
    st.sampled_from([0, 0, 4, 1, 255]),
    st.sampled_from([24, 72, 128, 8, 0, 255]),
    st.sampled_from([0, 24, 72, 255]),
    lengths,
)
commands = st.builds(
    lambda opcode, flags, cid, nsid, sgl, kind, words: struct.pack(
        "<BBHI16xQI3xB6I", opcode, flags, cid, nsid, 0, sgl, kind, *words
    ),
    st.one_of(
        st.sampled_from([0, 1, 2, 8, 9, 6, 2, 0x0C, 0x18, 0x7F]),
        bits[1].filter(lambda opcode: opcode not in (0x80, 0x84)),
    ),
    st.sampled_from([0x40, 0x40, 0, 0x41]),
    bits[2],
    st.sampled_from([1, 0, 2, 0xFFFFFFFF]),
    lengths,
    st.sampled_from([0x5A, 0x01, 0x00, 0x40]),
    st.tuples(*[st.one_of(st.integers(0, 300), bits[4])] * 6),
)
pieces = st.one_of(
    st.binary(max_size=200),
    headers,
    st.tuples(headers, st.binary(max_size=120)).map(b"".join),
    commands.map(capsule),
    st.tuples(commands, st.binary(max_size=64)).map(lambda pair: capsule(*pair)),
)


@pytest.mark.slow
@relaxed
@given(
    words=st.lists(pieces, max_size=6).map(b"".join),
    stage=st.sampled_from(["raw", "initialised", "admin", "io"]),
    cut=st.integers(0, 64),
)
def test_no_words_of_a_host_hurt_the_others(server, good, words, stage, cut):
    words = words[: len(words) - cut] if cut < len(words) else words
    nqn = server.ready["nqn"]
    if stage == "io":
        with Host(address(server), nqn) as host:
            talk(host.io[0], words)
    else:
        how = {"raw": {"initialise": False}, "initialised": {"connect": False}, "admin": {"nqn": nqn}}[stage]
        with Queue(address(server), **how) as queue:
            if stage == "admin":
                queue.enable()
            talk(queue, words)
    assert server.process.poll() is None
    assert good.admin.run(sqe(0x18, 5)) == (0, b"")
    assert len(good.io[0].read(0, 1)) == 512


def talk(queue, words: bytes) -> None:
    try:
        queue.sock.sendall(words)
        queue.sock.shutdown(1)
    except OSError:
        return  # dropped while we were still talking
    drained(queue.sock)


def test_a_truncated_command_waits_and_an_end_ends_it(server, good):
    whole = capsule(rw(1, 4, 0, 8, 4096, sgl=1), bytes(4096))
    with Host(address(server), server.ready["nqn"]) as host:
        for at in (1, 7, 8, 71, 72, 4000):
            host.io[0].sock.sendall(whole[:at])
            assert good.admin.run(sqe(0x18, 6)) == (0, b"")
            host.io[0].sock.sendall(whole[at:])
            assert host.io[0].wait(4) == (0, b"")
    with Queue(address(server), initialise=False) as queue:
        queue.sock.sendall(b"\0\0\x80\0\x80")
        queue.sock.shutdown(1)
        assert drained(queue.sock) == 0


@pytest.mark.slow
def test_many_strangers(server, good):
    """More connections than the server holds: those beyond are closed, the others go on, and room comes back."""
    strangers = []
    try:
        for _ in range(270):
            try:
                strangers.append(Queue(address(server), initialise=False, timeout_s=5))
            except OSError:
                break
        assert good.admin.run(sqe(0x18, 7)) == (0, b"")
    finally:
        for queue in strangers:
            queue.sock.close()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with Host(address(server), server.ready["nqn"]) as host:
                assert len(host.io[0].read(0, 1)) == 512
            return
        except ConnectionError:  # the server has not yet seen all of them go
            assert time.monotonic() < deadline
            time.sleep(0.1)


# --- the fast path


def parsed(words: bytes, write_through: int = 0) -> tuple[np.ndarray, int]:
    batch = np.zeros((8, nbd_protocol.COLUMNS), np.int64)
    buf = np.frombuffer(words, np.uint8).copy()
    n, used = pdu.parse(buf, 0, len(buf), SIZE, SHIFT, write_through, batch)
    return batch[:n], used


io_commands = st.builds(
    lambda opcode, flags, nsid, slba, blocks, control, length, kind: struct.pack(
        "<BBHI16xQI3xBQHH12x",
        opcode,
        flags,
        7,
        nsid,
        0,
        length if length >= 0 else (blocks + 1) * 512,
        kind,
        slba,
        blocks,
        control,
    ),
    st.sampled_from([0, 1, 2, 8, 9, 5]),
    st.sampled_from([0x40, 0x40, 0x40, 0]),
    st.sampled_from([1, 1, 1, 2, 0xFFFFFFFF]),
    st.one_of(st.integers(0, 100), st.integers((1 << 21) - 20, (1 << 21) + 5), bits[8]),
    st.one_of(st.integers(0, 20), bits[2]),
    st.sampled_from([0, 0x4000, 0x2000, 0x8000]),
    st.sampled_from([-1, -1, -1, 0, 512]),
    st.sampled_from([0x5A, 0x01]),
)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(command=io_commands, held=st.sampled_from(["fit", "none", "more"]), through=st.booleans())
def test_the_fast_path_takes_only_what_is_right_and_says_the_same(command, held, through):
    opcode, blocks = command[0], struct.unpack_from("<H", command, 48)[0]
    fit = min(8192, (blocks + 1) * 512) if opcode == 1 and command[39] == 1 else 0
    data = bytes({"fit": fit, "none": 0, "more": 512}[held])
    rows, used = parsed(capsule(command, data), int(through))
    try:
        need = io.wanted_bytes(command, SIZE, SHIFT)
        careful = io.rows(command, bytes(4096), SIZE, SHIFT, through) if opcode != 9 else None
    except Refused:
        need, careful = None, None
    data_fits = len(data) == 0 if need == 0 else command[39] == 1 and len(data) == need
    simple = careful is not None and data_fits and struct.unpack_from("<I", command, 4)[0] == 1
    assert len(rows) == bool(simple)
    if simple:
        careful[0, nbd_protocol.AT] = 72
        assert rows.tolist() == careful.tolist() and used == 72 + len(data)
    else:
        assert used == 0


simple = capsule(rw(2, 1, 0, 8, 4096))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.just(simple) | io_commands.map(capsule) | st.binary(max_size=100), max_size=5).map(b"".join),
    st.integers(0, 400) | st.none(),
)
def test_the_fast_path_never_reads_beyond_what_has_come(words, cut):
    """Sound commands that lie behind the end in the buffer change nothing."""
    words = words[:cut]
    rows, used = parsed(words)
    assert 0 <= used <= len(words) and all(row[nbd_protocol.AT] <= used for row in rows)
    buf, batch = np.frombuffer(words + 3 * simple, np.uint8).copy(), np.zeros((8, nbd_protocol.COLUMNS), np.int64)
    n, used_there = pdu.parse(buf, 0, len(words), SIZE, SHIFT, 0, batch)
    assert (batch[:n].tolist(), used_there) == (rows.tolist(), used)


def test_a_run_ends_at_the_first_command_that_is_not_simple():
    other = capsule(sqe(9, 2, 1, 0, 4, length=16, sgl=1), bytes(16))
    rows, used = parsed(simple * 3 + other + simple)
    assert len(rows) == 3 and used == 3 * 72
    rows, used = parsed(simple * 2 + simple[:71])
    assert len(rows) == 2 and used == 144


lengths_of = {kind: (hlen, pdu.LONGEST[kind]) for kind, hlen in pdu.HEADER_BYTES.items()}


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(lengths_of)).flatmap(lambda kind: st.tuples(st.just(kind), st.integers(*lengths_of[kind]))),
    st.integers(0, 4),
    bits[4],
)
def test_a_header_is_taken_only_if_each_field_is_right(sound, field, other):
    """No header makes the server wait for more than the longest PDU of its kind."""
    kind, plen = sound
    hlen, longest = lengths_of[kind]
    plen = max(plen, hlen + (kind == pdu.H2C_DATA))
    fields = [kind, 0, hlen, hlen, plen]
    assert pdu.header(struct.pack("<BBBBI", *fields), 0) == (kind, hlen, plen)
    fields[field] = other if field == 4 else other & 0xFF
    kind, flags, head, pdo, plen = fields
    right = (
        kind in lengths_of
        and head == lengths_of[kind][0]
        and head + (kind == pdu.H2C_DATA) <= plen <= lengths_of[kind][1]
    )
    right = right and flags in ((0, pdu.LAST) if kind == pdu.H2C_DATA else (0,))
    right = right and (pdo == head or plen == head or kind not in (pdu.COMMAND, pdu.H2C_DATA))
    with contextlib.nullcontext() if right else pytest.raises(pdu.ProtocolError):
        assert pdu.header(struct.pack("<BBBBI", *fields), 0) == (kind, head, plen)


def test_term_request_is_as_long_as_it_says():
    for culprit in (b"", b"x" * 8, b"x" * 128, b"x" * 500):
        words = pdu.term_request(1, 2, culprit)
        assert struct.unpack_from("<BBBBIHI", words) == (3, 0, 24, 0, len(words), 1, 2) and 24 <= len(words) <= 152
