"""NBD: negotiation, batch parser, replies (pure), then the same over real sockets with a client of our own."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.blockio import nbd_protocol

SIZE = 1 << 30
OPTION = struct.Struct(">8sII")
REPLY = struct.Struct(">QIII")


def option(number: int, body: bytes = b"") -> bytes:
    return OPTION.pack(b"IHAVEOPT", number, len(body)) + body


def go(name: bytes = b"", infos=()) -> bytes:
    return struct.pack(">I", len(name)) + name + struct.pack(">H", len(infos)) + struct.pack(f">{len(infos)}H", *infos)


def replies(data: bytes) -> list[tuple[int, int, bytes]]:
    out = []
    while data:
        magic, number, kind, length = REPLY.unpack_from(data)
        assert magic == 0x3E889045565A9
        out.append((number, kind, data[20 : 20 + length]))
        data = data[20 + length :]
    return out


def request(op, offset=0, length=0, cookie=1, flags=0, payload=None, magic=0x25609513) -> bytes:
    if payload is None:
        payload = bytes(length) if op == nbd_protocol.WRITE else b""
    return struct.pack(">IHHQQI", magic, flags, op, cookie, offset, length) + payload


def parse(data: bytes, capacity=64, min_block=1, size=SIZE, lead=0):
    """parse() over bytes placed `lead` bytes into a buffer -> (rows, used, need, state)."""
    buf = np.zeros(lead + len(data) + 8, np.uint8)
    buf[lead : lead + len(data)] = np.frombuffer(data, np.uint8)
    batch = np.full((capacity, nbd_protocol.COLUMNS), -99, np.int64)
    n, used, need, state = nbd_protocol.parse(buf, lead, lead + len(data), size, min_block, batch)
    return batch[:n].tolist(), used, need, state


# --- negotiation


def test_fio_negotiates_like_this():
    talk = nbd_protocol.Negotiation(SIZE)
    assert talk.greeting == b"NBDMAGICIHAVEOPT\0\3"
    assert talk.receive(struct.pack(">I", 3)) == b""
    assert replies(talk.receive(option(8))) == [(8, 0x80000001, b"")]  # structured replies: not offered
    answer = replies(talk.receive(option(7, go(b"any", [1, 3])) + b"rest"))
    assert answer == [
        (7, 3, struct.pack(">HQH", 0, SIZE, 0x16D)),
        (7, 3, struct.pack(">HIII", 3, 1, 4096, 32 << 20)),
        (7, 1, b""),
    ]
    assert talk.state == "ready" and talk.rest == b"rest"


@pytest.mark.parametrize("flags,zeroes", [(3, 0), (1, 124)])
def test_export_name(flags, zeroes):
    talk = nbd_protocol.Negotiation(SIZE)
    answer = talk.receive(struct.pack(">I", flags) + option(1, b"x"))
    assert answer == struct.pack(">QH", SIZE, 0x16D) + bytes(zeroes)
    assert talk.state == "ready"


def test_info_list_abort():
    talk = nbd_protocol.Negotiation(SIZE)
    talk.receive(struct.pack(">I", 3))
    assert [kind for _, kind, _ in replies(talk.receive(option(6, go())))] == [3, 3, 1]
    assert talk.state == "options"
    assert replies(talk.receive(option(3))) == [(3, 2, bytes(4)), (3, 1, b"")]
    assert replies(talk.receive(option(3, b"x"))) == [(3, 0x80000003, b"")]
    assert replies(talk.receive(option(2))) == [(2, 1, b"")]
    assert talk.state == "closed"


@pytest.mark.parametrize("body", [b"", go()[:-1], go() + b"x", struct.pack(">I", 1 << 31) + b"ab", go(b"n", [1])[:-1]])
def test_malformed_go_is_refused_not_obeyed(body):
    talk = nbd_protocol.Negotiation(SIZE)
    assert replies(talk.receive(struct.pack(">I", 3) + option(7, body))) == [(7, 0x80000003, b"")]
    assert talk.state == "options"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", 0),
        struct.pack(">I", 7),
        struct.pack(">I", 3) + b"NOTANOPT" + bytes(8),
        struct.pack(">I", 3) + OPTION.pack(b"IHAVEOPT", 7, 1 << 20),
    ],
)
def test_who_breaks_the_negotiation_is_dropped(data):
    talk = nbd_protocol.Negotiation(SIZE)
    assert talk.receive(data) == b""
    assert talk.state == "closed"


@given(st.binary(max_size=200), st.integers(1, 7))
@settings(max_examples=200, deadline=None)
def test_negotiation_is_the_same_in_any_pieces(data, step):
    data = struct.pack(">I", 3) + option(8) + data
    whole, pieces = nbd_protocol.Negotiation(SIZE), nbd_protocol.Negotiation(SIZE)
    expected = whole.receive(data)
    got = b"".join(pieces.receive(data[i : i + step]) for i in range(0, len(data), step))
    assert (got, pieces.state, pieces.rest) == (expected, whole.state, whole.rest)


# --- requests


def test_parse_fields():
    data = request(nbd_protocol.WRITE, 8192, 4096, cookie=(1 << 64) - 2, flags=nbd_protocol.FUA) + request(
        nbd_protocol.READ, 512, 100, cookie=5
    )
    rows, used, need, state = parse(data, lead=3)
    assert rows == [
        [nbd_protocol.WRITE, nbd_protocol.FUA, -2, 8192, 4096, 3 + 28, 0, 0],
        [nbd_protocol.READ, 0, 5, 512, 100, 3 + 28 + 4096 + 28, 0, 0],
    ]
    assert (used, need, state) == (len(data), 0, nbd_protocol.MORE)


@pytest.mark.parametrize(
    "words,error",
    [
        (dict(op=nbd_protocol.WRITE, offset=SIZE - 4096, length=4096), 0),
        (dict(op=nbd_protocol.WRITE, offset=SIZE - 4095, length=4096), nbd_protocol.ENOSPC),
        (dict(op=nbd_protocol.WRITE, offset=(1 << 64) - 1, length=2), nbd_protocol.ENOSPC),
        (dict(op=nbd_protocol.WRITE_ZEROES, offset=SIZE, length=1), nbd_protocol.ENOSPC),
        (dict(op=nbd_protocol.READ, offset=SIZE, length=1), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.READ, offset=(1 << 63), length=1), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.READ, offset=0, length=(32 << 20) + 1), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.TRIM, offset=0, length=SIZE), 0),
        (dict(op=nbd_protocol.TRIM, offset=1, length=SIZE), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.FLUSH), 0),
        (dict(op=nbd_protocol.FLUSH, length=1), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.CACHE, length=4096), nbd_protocol.EINVAL),
        (dict(op=7, length=4096), nbd_protocol.EINVAL),
        (dict(op=65535), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.WRITE, length=1, flags=4), nbd_protocol.EINVAL),
        (dict(op=nbd_protocol.WRITE_ZEROES, length=1, flags=nbd_protocol.NO_HOLE | nbd_protocol.FUA), 0),
        (dict(op=nbd_protocol.WRITE, length=1, flags=nbd_protocol.NO_HOLE), nbd_protocol.EINVAL),
    ],
)
def test_what_may_not_be_done_gets_its_errno(words, error):
    rows, used, _, state = parse(request(**words))
    assert rows[0][nbd_protocol.ERROR] == error
    assert state == nbd_protocol.MORE and used == 28 + (words["length"] if words["op"] == nbd_protocol.WRITE else 0)


def test_a_store_of_whole_pages_refuses_parts():
    for words in (dict(op=nbd_protocol.WRITE, offset=512, length=4096), dict(op=nbd_protocol.READ, length=512)):
        assert parse(request(**words), min_block=4096)[0][0][nbd_protocol.ERROR] == nbd_protocol.EINVAL
    assert (
        parse(request(nbd_protocol.TRIM, 512, 4096), min_block=4096)[0][0][nbd_protocol.ERROR] == 0
    )  # a trim is only a hint


@pytest.mark.parametrize("data", [b"\0" * 28, request(nbd_protocol.WRITE, 0, (32 << 20) + 1, payload=b"")])
def test_what_cannot_be_followed_breaks_the_connection(data):
    good = request(nbd_protocol.READ, 0, 512)
    rows, used, _, state = parse(good + data)
    assert len(rows) == 1 and used == 28 and state == nbd_protocol.BROKEN


def test_partial_requests_wait_for_the_rest():
    data = request(nbd_protocol.WRITE, 0, 4096)
    assert parse(data[:27]) == ([], 0, 0, nbd_protocol.MORE)
    assert parse(data[:-1]) == ([], 0, 28 + 4096, nbd_protocol.MORE)
    assert parse(data + request(nbd_protocol.DISC))[1:] == (len(data) + 28, 0, nbd_protocol.ENDED)


def test_full_batch_leaves_the_rest():
    rows, used, _, state = parse(request(nbd_protocol.READ, 0, 1) * 5, capacity=3)
    assert (len(rows), used, state) == (3, 84, nbd_protocol.MORE)


requests = st.builds(
    lambda op, offset, length, cookie: request(op, offset, length, cookie),
    st.sampled_from(
        [nbd_protocol.READ, nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES, 9]
    ),
    st.integers(0, 1 << 31),
    st.integers(0, 9000),
    st.integers(0, (1 << 64) - 1),
)


@given(st.lists(requests, max_size=12), st.data())
@settings(max_examples=100, deadline=None)
def test_cutting_the_stream_anywhere_gives_the_same_requests(parts, data):
    stream = b"".join(parts)
    cut = data.draw(st.integers(0, len(stream)))
    whole, used, _, _ = parse(stream)
    assert len(whole) == len(parts) and used == len(stream)
    first, used, _, _ = parse(stream[:cut])
    second, _, _, _ = parse(stream[used:])
    strip = lambda rows: [row[: nbd_protocol.AT] + row[nbd_protocol.AT + 1 :] for row in rows]
    assert strip(first) + strip(second) == strip(whole)


odd_requests = st.builds(
    lambda op, offset, length, flags, magic: request(
        op, offset, length, 1, flags, bytes(length) if op == nbd_protocol.WRITE and length < 400 else b"", magic
    ),
    st.integers(0, 9),
    st.integers(0, 4096) | st.integers(SIZE - 400, SIZE + 400) | st.integers(0, 2**64 - 1),
    st.integers(0, 399) | st.integers(0, 2**32 - 1),
    st.sampled_from([0, 0, 1, 2, 3, 0xFFFF]),
    st.sampled_from([0x25609513] * 9 + [0]),
)


@given(st.lists(odd_requests, max_size=8).map(b"".join), st.integers(0, 400) | st.none(), st.binary(max_size=100))
@settings(max_examples=300, deadline=None)
def test_any_bytes_leave_the_parser_inside_its_buffer(data, cut, more):
    data = data[:cut] + more
    rows, used, need, state = parse(data)
    assert 0 <= used <= len(data) and state in (nbd_protocol.MORE, nbd_protocol.ENDED, nbd_protocol.BROKEN)
    for row in rows:
        if row[nbd_protocol.OP] == nbd_protocol.WRITE:
            assert row[nbd_protocol.AT] + row[nbd_protocol.LENGTH] <= len(data)
        if row[nbd_protocol.ERROR] == 0 and row[nbd_protocol.OP] != nbd_protocol.FLUSH:
            assert 0 <= row[nbd_protocol.OFFSET] and row[nbd_protocol.OFFSET] + row[nbd_protocol.LENGTH] <= SIZE


# --- what the flash translation layer is asked


def commands(op, offset, length, flags=0, error=0):
    batch = np.zeros((1, nbd_protocol.COLUMNS), np.int64)
    batch[0] = [op, flags, 0, offset, length, 0, error, 0]
    arrays = [np.zeros(3, np.int64) for _ in range(5)]
    m = nbd_protocol.page_commands(batch, 1, 4096, *arrays)
    return [tuple(int(a[i]) for a in arrays[:3]) for i in range(m)]


@pytest.mark.parametrize(
    "words,expected",
    [
        ((nbd_protocol.WRITE, 4096, 8192), [(nbd_protocol.WRITE, 1, 2)]),
        ((nbd_protocol.WRITE, 4095, 2), [(nbd_protocol.WRITE, 0, 2)]),
        ((nbd_protocol.READ, 5000, 1), [(nbd_protocol.READ, 1, 1)]),
        ((nbd_protocol.READ, 0, 0), []),
        ((nbd_protocol.FLUSH, 0, 0), [(nbd_protocol.FLUSH, 0, 0)]),
        ((nbd_protocol.TRIM, 4095, 8193), [(nbd_protocol.TRIM, 1, 2)]),
        ((nbd_protocol.TRIM, 1, 4096), []),
        (
            (nbd_protocol.WRITE_ZEROES, 4095, 8194),
            [(nbd_protocol.WRITE, 0, 1), (nbd_protocol.WRITE, 3, 1), (nbd_protocol.WRITE_ZEROES, 1, 2)],
        ),
        ((nbd_protocol.WRITE_ZEROES, 100, 10), [(nbd_protocol.WRITE, 0, 1)]),
        ((nbd_protocol.WRITE_ZEROES, 4096, 10), [(nbd_protocol.WRITE, 1, 1)]),
        ((nbd_protocol.WRITE, 0, 4096, 0, nbd_protocol.ENOSPC), []),
    ],
)
def test_page_commands(words, expected):
    assert commands(*words) == expected


@given(st.integers(0, 40000), st.integers(1, 40000))
@settings(max_examples=200, deadline=None)
def test_write_zeroes_covers_each_touched_page_once(offset, length):
    touched = sorted(
        p for _, first, n in commands(nbd_protocol.WRITE_ZEROES, offset, length) for p in range(first, first + n)
    )
    assert touched == list(range(offset // 4096, (offset + length - 1) // 4096 + 1))


def test_a_request_is_due_when_its_last_command_is_done():
    batch = np.zeros((3, nbd_protocol.COLUMNS), np.int64)
    owner, done = np.array([0, 2, 2, 2]), np.array([50, 70, 90, 80])
    assert nbd_protocol.set_due(batch, 3, owner, done, 4, 10, 1000, 3, 0) == 1030
    assert batch[:, nbd_protocol.DUE].tolist() == [1150, 1030, 1270]


def test_only_replies_that_promise_nothing_leave_early():
    batch = np.zeros((4, nbd_protocol.COLUMNS), np.int64)
    batch[:, nbd_protocol.OP] = nbd_protocol.WRITE, nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.READ
    batch[1, nbd_protocol.FLAGS] = nbd_protocol.FUA
    assert nbd_protocol.set_due(batch, 4, np.arange(4), np.array([500, 500, 500, 110]), 4, 100, 0, 1, 60) == 100
    assert batch[:, nbd_protocol.DUE].tolist() == [440, 500, 500, 100]


def test_stamped_requests_come_when_they_were_submitted():
    """Those of one time together; none in the future, none longer ago than is believed."""
    now = (5 << 48) + 1000
    batch = np.zeros((5, nbd_protocol.COLUMNS), np.int64)
    for i, t_ns in enumerate((now - 400, now - 400, now - 3000, now - 100, now + 50)):
        batch[i, nbd_protocol.COOKIE] = np.uint64((t_ns & (1 << 48) - 1) << 16 | i).astype(np.int64)
    assert nbd_protocol.came_together(batch, 0, 5, now, 2000) == (2, now - 400)
    assert nbd_protocol.came_together(batch, 2, 5, now, 2000) == (3, now - 2000)
    assert nbd_protocol.came_together(batch, 3, 5, now, 2000) == (4, now - 100)
    assert nbd_protocol.came_together(batch, 4, 5, now, 2000) == (5, now)


def test_stamped_answers_say_when_they_count_and_leave_ahead_unless_they_promise_something():
    batch = np.zeros((4, nbd_protocol.COLUMNS), np.int64)
    batch[:, nbd_protocol.OP], batch[1, nbd_protocol.FLAGS] = (
        (nbd_protocol.WRITE, nbd_protocol.WRITE, nbd_protocol.FLUSH, nbd_protocol.READ),
        nbd_protocol.FUA,
    )
    batch[:, nbd_protocol.DUE], batch[:, nbd_protocol.COOKIE] = (900, 900, 900, 150), range(7, 11)
    assert nbd_protocol.stamp(batch, 4, 200, 500) == 150
    assert batch[:, nbd_protocol.DUE].tolist() == [400, 900, 900, 150]
    assert (batch[:, nbd_protocol.COOKIE] >> 16).tolist() == [900, 900, 900, 150]
    assert (batch[:, nbd_protocol.COOKIE] & 0xFFFF).tolist() == [7, 8, 9, 10]


def test_tally():
    batch = np.zeros((7, nbd_protocol.COLUMNS), np.int64)
    batch[:, [nbd_protocol.OP, nbd_protocol.OFFSET, nbd_protocol.LENGTH, nbd_protocol.ERROR]] = [
        (nbd_protocol.WRITE, 0, 4096, 0),
        (nbd_protocol.WRITE, 512, 4096, 0),
        (nbd_protocol.WRITE, 0, 1, 28),
        (nbd_protocol.READ, 0, 8192, 0),
        (nbd_protocol.READ, 0, 99999, 22),
        (nbd_protocol.TRIM, 1, 1, 0),
        (nbd_protocol.WRITE_ZEROES, 0, 4096, 0),
    ]
    assert nbd_protocol.tally(batch, 7) == (2, 2, 1, 8192)


# --- replies


def waiting(*rows):
    out = np.zeros((len(rows), nbd_protocol.COLUMNS), np.int64)
    for i, (op, cookie, length, error, due) in enumerate(rows):
        out[i, [nbd_protocol.OP, nbd_protocol.COOKIE, nbd_protocol.LENGTH, nbd_protocol.ERROR, nbd_protocol.DUE]] = (
            op,
            cookie,
            length,
            error,
            due,
        )
        out[i, nbd_protocol.OFFSET] = 4096 * i
    return out


def test_replies_leave_when_due_in_any_order():
    rows = waiting(
        (nbd_protocol.WRITE, 1, 4096, 0, 100),
        (nbd_protocol.WRITE, -1, 4096, nbd_protocol.ENOSPC, 50),
        (nbd_protocol.FLUSH, 3, 0, 0, 70),
    )
    out, reads = np.zeros(1000, np.uint8), np.zeros((3, 3), np.int64)
    assert nbd_protocol.collect(rows, 3, 60, out, reads) == (2, 16, 0, 70)
    assert out[:16].tobytes() == struct.pack(">IIQ", 0x67446698, 28, (1 << 64) - 1)
    assert nbd_protocol.collect(rows, 2, 69, out, reads) == (2, 0, 0, 70)
    assert nbd_protocol.collect(rows, 2, 100, out, reads) == (0, 32, 0, -1)
    assert [struct.unpack_from(">Q", out, at + 8)[0] for at in (0, 16)] == [1, 3]


def test_read_replies_leave_room_for_data_and_errors_do_not():
    rows = waiting(
        (nbd_protocol.READ, 1, 100, 0, 0),
        (nbd_protocol.READ, 2, 100, nbd_protocol.EINVAL, 0),
        (nbd_protocol.READ, 3, 50, 0, 0),
    )
    out, reads = np.zeros(1000, np.uint8), np.zeros((3, 3), np.int64)
    assert nbd_protocol.collect(rows, 3, 0, out, reads) == (0, 16 + 100 + 16 + 16 + 50, 2, -1)
    assert reads[:2].tolist() == [[16, 0, 100], [148, 8192, 50]]


def test_a_full_buffer_keeps_what_does_not_fit():
    rows = waiting(*[(nbd_protocol.READ, i, 100, 0, 0) for i in range(4)])
    out, reads = np.zeros(250, np.uint8), np.zeros((4, 3), np.int64)
    assert nbd_protocol.collect(rows, 4, 5, out, reads) == (2, 232, 2, 0)
    assert rows[:2, nbd_protocol.COOKIE].tolist() == [2, 3]


def test_a_late_answer_is_counted_once_by_how_much_it_is_later_than_its_command():
    """A reply may leave 60 ns early, but not one that promises durability."""
    rows = waiting(
        *[(op, i, 4096, 0, due) for i, (op, due) in enumerate([(nbd_protocol.WRITE, 100), (nbd_protocol.FLUSH, 100)])]
    )
    rows = np.concatenate([rows, rows[:1], waiting((nbd_protocol.WRITE, 3, 4096, 0, 900))])
    rows[2, nbd_protocol.FLAGS] = nbd_protocol.FUA
    counts = np.zeros(10, np.int64)
    nbd_protocol.count_late(rows, 4, 99, 60, counts)
    assert not counts.any()
    nbd_protocol.count_late(rows, 4, 150, 60, counts)  # the write within its lead; flush and FUA 50 late each
    assert counts[:3].tolist() == [3, 100, 50]
    nbd_protocol.count_late(rows, 4, 1000, 60, counts)
    assert counts.tolist() == [4, 140, 50, 0, 0, 3, 3 * 4096, 0, 0, 1]
