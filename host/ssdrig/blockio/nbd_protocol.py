"""The NBD protocol without I/O. Of the server: newstyle negotiation, requests parsed in batches, simple replies. Of a
client with many requests under way: requests packed, replies parsed.

Offered: flush, FUA, trim, write-zeroes, several
connections; not offered: TLS, structured replies, extended headers, block status.

A batch is an int64 array (n, COLUMNS), a row a request, so that Numba passes it on without unpacking; the same array,
with DUE filled in, is the list of requests that wait for their completion time.

The export name STAMPED is ours: the cookie of a request holds the time it was submitted, that of its answer the time it
counts as completed, CLOCK_MONOTONIC of this machine. So the way through the sockets is not part of a request's time, as
a doorbell in memory has none, and an answer, like the data that precedes an interrupt, may come ahead of its time."""

import struct

import numpy as np

from ssdrig.base.kernels import jit
from ssdrig.blockio import nbd_numbers as nbd
from ssdrig.blockio.nbd_numbers import (
    CACHE,
    DISC,
    FLUSH,
    FUA,
    NO_HOLE,
    READ,
    REPLY_MAGIC,
    REQUEST_MAGIC,
    TRIM,
    WRITE,
    WRITE_ZEROES,
)

EINVAL, ENOSPC = 22, 28
TRANSMISSION_FLAGS = 0x16D  # HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES, CAN_MULTI_CONN
MAX_BYTES = 32 << 20  # longest read or write
HEADER_BYTES, REPLY_BYTES = nbd.REQUEST.size, nbd.REPLY.size

OP, FLAGS, COOKIE, OFFSET, LENGTH, AT, ERROR, DUE = range(8)
COLUMNS = 8
STAMPED = b"stamped"
SLOT_BITS, TIME_BITS = 16, 48  # of a stamped cookie: the client's number of the request, ns modulo 2^48
MORE, ENDED, BROKEN = range(3)  # parse()'s state of the stream

_MAX_OPTION_BYTES = 65536
# of a client's parser: the slot whose data comes, and how much of it is here
READING, FILLED = range(2)
NO_SLOT = -1
MOST_ERROR = (1 << 15) - 1  # a status has 16 bits in files: no other number may become a 0 there


class Negotiation:
    """The talk before the first request. `state` is "flags", "options", "ready" or "closed"; once it is "ready", `rest`
    holds the bytes that already belong to the requests."""

    greeting = nbd.GREETING + struct.pack(">H", nbd.FIXED_NEWSTYLE | nbd.NO_ZEROES)

    def __init__(self, size_bytes: int, min_block: int = 1):
        self.size_bytes, self.min_block = size_bytes, min_block
        self.state, self.rest, self._no_zeroes = "flags", b"", False
        self.stamped = False  # the client has asked for the export STAMPED

    def receive(self, data: bytes) -> bytes:
        """Take what the client sent, return what to send. A client that breaks the protocol leaves state "closed"."""
        self.rest += data
        out = b""
        while self.state in ("flags", "options"):
            if self.state == "flags":
                if len(self.rest) < 4:
                    break
                flags = struct.unpack(">I", self._take(4))[0]
                self._no_zeroes = bool(flags & nbd.NO_ZEROES)
                self.state = "options" if flags & nbd.FIXED_NEWSTYLE and flags <= 3 else "closed"
                continue
            if len(self.rest) < nbd.OPTION.size:
                break
            magic, option, length = nbd.OPTION.unpack(self.rest[: nbd.OPTION.size])
            if magic != nbd.OPTION_MAGIC or length > _MAX_OPTION_BYTES:
                self.state = "closed"
                break
            if len(self.rest) < nbd.OPTION.size + length:
                break
            self._take(nbd.OPTION.size)
            out += self._answer(option, self._take(length))
        return out

    def _take(self, n: int) -> bytes:
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def _answer(self, option: int, body: bytes) -> bytes:
        if option == nbd.EXPORT_NAME:  # any name means the one drive
            self.state = "ready"
            zeroes = b"" if self._no_zeroes else bytes(124)
            return struct.pack(">QH", self.size_bytes, TRANSMISSION_FLAGS) + zeroes
        if option == nbd.ABORT:
            self.state = "closed"
            return _option_reply(option, nbd.ACK)
        if option == nbd.LIST:
            if body:
                return _option_reply(option, nbd.ERR_INVALID)
            return _option_reply(option, nbd.SERVER, struct.pack(">I", 0)) + _option_reply(option, nbd.ACK)
        if option in (nbd.INFO, nbd.GO):
            if not _well_formed_go(body):
                return _option_reply(option, nbd.ERR_INVALID)
            if option == nbd.GO:
                self.state = "ready"
                self.stamped = body[4 : 4 + struct.unpack(">I", body[:4])[0]] == STAMPED
            export = struct.pack(">HQH", nbd.INFO_EXPORT, self.size_bytes, TRANSMISSION_FLAGS)
            blocks = struct.pack(">HIII", nbd.INFO_BLOCK_SIZE, self.min_block, 4096, MAX_BYTES)
            return (
                _option_reply(option, nbd.INFO_REPLY, export)
                + _option_reply(option, nbd.INFO_REPLY, blocks)
                + _option_reply(option, nbd.ACK)
            )
        return _option_reply(option, nbd.ERR_UNSUP)


def _option_reply(option: int, kind: int, body: bytes = b"") -> bytes:
    return nbd.OPTION_REPLY.pack(nbd.OPTION_REPLY_MAGIC, option, kind, len(body)) + body


def _well_formed_go(body: bytes) -> bool:
    if len(body) < 6:
        return False
    name_bytes = struct.unpack(">I", body[:4])[0]
    if len(body) < 6 + name_bytes:
        return False
    count = struct.unpack(">H", body[4 + name_bytes : 6 + name_bytes])[0]
    return len(body) == 6 + name_bytes + 2 * count


@jit
def _big_endian(buf, at, n):
    value = np.uint64(0)
    for i in range(n):
        value = (value << np.uint64(8)) | np.uint64(buf[at + i])
    return value


@jit
def parse(buf, start, end, size_bytes, min_block, batch):
    """Requests out of buf[start:end] (uint8) into `batch` (int64 (capacity, COLUMNS)), as many as are whole and fit.

    Returns (n requests, bytes used, need, state): `need` is how many bytes from start + used the next request has (0
    when its length is not yet known), state MORE, ENDED (the client sent DISC) or BROKEN (no request: the connection
    must be dropped). A request that may not be done carries its errno in ERROR; AT is where a write's payload starts in
    buf."""
    n = 0
    at = start
    while n < batch.shape[0]:
        if end - at < HEADER_BYTES:
            return n, at - start, 0, MORE
        if _big_endian(buf, at, 4) != REQUEST_MAGIC:
            return n, at - start, 0, BROKEN
        flags = np.int64(_big_endian(buf, at + 4, 2))
        op = np.int64(_big_endian(buf, at + 6, 2))
        offset = _big_endian(buf, at + 16, 8)
        length = np.int64(_big_endian(buf, at + 24, 4))
        if op == DISC:
            return n, at + HEADER_BYTES - start, 0, ENDED
        payload = length if op == WRITE else 0
        if payload > MAX_BYTES:
            return n, at - start, 0, BROKEN
        if end - at < HEADER_BYTES + payload:
            return n, at - start, HEADER_BYTES + payload, MORE

        error = 0
        allowed = FUA | NO_HOLE if op == WRITE_ZEROES else FUA
        if op > WRITE_ZEROES or op == CACHE or flags & ~allowed:
            error = EINVAL
        elif op == FLUSH:
            error = EINVAL if offset != 0 or length != 0 else 0
        elif offset > size_bytes or length > size_bytes - np.int64(offset):
            error = ENOSPC if op == WRITE or op == WRITE_ZEROES else EINVAL
        elif op == READ and length > MAX_BYTES:
            error = EINVAL
        elif op != TRIM and (np.int64(offset) % min_block or length % min_block):
            error = EINVAL
        batch[n, OP] = op
        batch[n, FLAGS] = flags
        batch[n, COOKIE] = np.int64(_big_endian(buf, at + 8, 8))
        batch[n, OFFSET] = np.int64(offset)
        batch[n, LENGTH] = length
        batch[n, AT] = at + HEADER_BYTES
        batch[n, ERROR] = error
        batch[n, DUE] = 0
        n += 1
        at += HEADER_BYTES + payload
    return n, at - start, 0, MORE


@jit
def page_commands(batch, n, page_bytes, op, page, npages, flags, owner):
    """What the first n requests ask of the flash translation layer, in whole pages, into the five arrays (3 n long
    each).

    Reads and writes touch every page they overlap. A trim only counts where it covers a page; write-zeroes likewise,
    and its two edges are writes. Requests with an ERROR ask nothing. Returns how many commands; owner is the request's
    row."""
    m = 0
    for i in range(n):
        if batch[i, ERROR] != 0:
            continue
        kind = batch[i, OP]
        fua = batch[i, FLAGS] & FUA
        first, last = 0, 0
        if kind != FLUSH:
            if batch[i, LENGTH] == 0:
                continue
            start, stop = batch[i, OFFSET], batch[i, OFFSET] + batch[i, LENGTH]
            first, last = start // page_bytes, (stop - 1) // page_bytes + 1
            if kind == TRIM or kind == WRITE_ZEROES:
                inner, outer = -(-start // page_bytes), stop // page_bytes
                if kind == WRITE_ZEROES:
                    if first < inner:
                        m = _command(m, WRITE, first, 1, fua, i, op, page, npages, flags, owner)
                    if outer < last and (outer > first or first == inner):
                        m = _command(m, WRITE, outer, 1, fua, i, op, page, npages, flags, owner)
                first, last = inner, outer
                if first >= last:
                    continue
        m = _command(m, kind, first, last - first, fua, i, op, page, npages, flags, owner)
    return m


@jit
def logged(batch, first, end):
    """How many commands other than reads the rows first..end-1 of a batch make, no trims and zeroes among them."""
    commands = 0
    for i in range(first, end):
        if batch[i, ERROR] == 0 and batch[i, OP] != READ:
            commands += batch[i, OP] == FLUSH or batch[i, LENGTH] > 0
    return commands


@jit
def _command(m, kind, first, count, fua, row, op, page, npages, flags, owner):
    op[m] = kind
    page[m] = first
    npages[m] = count
    flags[m] = fua
    owner[m] = row
    return m + 1


@jit
def set_due(batch, n, owner, done_ns, m, now_ns, t0_ns, dilation, lead_ns):
    """DUE of the first n requests in host time: the latest end of their m commands, now for those that have none;
    done_ns and now_ns are model time. Replies that promise no durability are due lead_ns of host time earlier, but not
    before now. Returns the earliest DUE."""
    for i in range(n):
        batch[i, DUE] = now_ns
    for k in range(m):
        if done_ns[k] > batch[owner[k], DUE]:
            batch[owner[k], DUE] = done_ns[k]
    first = np.int64(1) << 62
    for i in range(n):
        due = batch[i, DUE] * dilation
        if batch[i, OP] != FLUSH and batch[i, FLAGS] & FUA == 0:
            due = max(due - lead_ns, now_ns * dilation)
        batch[i, DUE] = t0_ns + due
        first = min(first, batch[i, DUE])
    return first


@jit
def came_together(batch, first, n, now_ns, most_ns):
    """Stamped requests received by now_ns: (end, came_ns), rows first to end - 1 were submitted at came_ns, at
    most most_ns ago."""
    time = (batch[first, COOKIE] >> SLOT_BITS) & ((1 << TIME_BITS) - 1)
    end = first + 1
    while end < n and (batch[end, COOKIE] >> SLOT_BITS) & ((1 << TIME_BITS) - 1) == time:
        end += 1
    ago = (now_ns - time) & ((1 << TIME_BITS) - 1)
    return end, now_ns - min(ago, most_ns if ago < 1 << (TIME_BITS - 1) else 0)


@jit
def stamp(batch, n, now_ns, ahead_ns):
    """The cookies of the first n requests hold their completion times (DUE); DUE becomes when their answers may leave:
    ahead_ns sooner for those that promise no durability. Returns the earliest DUE."""
    first = np.int64(1) << 62
    for i in range(n):
        due = batch[i, DUE]
        slot = batch[i, COOKIE] & ((1 << SLOT_BITS) - 1)
        batch[i, COOKIE] = slot | (due & ((1 << TIME_BITS) - 1)) << SLOT_BITS
        if batch[i, OP] != FLUSH and batch[i, FLAGS] & FUA == 0:
            batch[i, DUE] = max(due - ahead_ns, min(due, now_ns))
        first = min(first, batch[i, DUE])
    return first


@jit
def tally(batch, n):
    """Counts over the first n requests without ERROR: (writes, trims and write-zeroes, reads and writes that are not in
    whole pages, longest read in bytes)."""
    writes, zeroing, unaligned, longest = 0, 0, 0, 0
    for i in range(n):
        op, length = batch[i, OP], batch[i, LENGTH]
        if batch[i, ERROR] != 0:
            continue
        writes += op == WRITE
        zeroing += op == TRIM or op == WRITE_ZEROES
        unaligned += op <= WRITE and (batch[i, OFFSET] | length) & 4095 != 0
        if op == READ and length > longest:
            longest = length
    return writes, zeroing, unaligned, longest


@jit
def count_late(waiting, n, now_ns, lead_ns, counts):
    """Counts the answers that leave at now_ns, and by how much each is later than its command is done in the model,
    into `counts` (int64: answers, ns together, the most ns; then reads, their bytes, writes, their bytes, trims, their
    bytes, flushes). A reply may leave lead_ns before that, unless it promises durability. A row is counted once: its
    AT, of no use by now, becomes -1."""
    for i in range(n):
        if waiting[i, DUE] > now_ns or waiting[i, AT] < 0:
            continue
        waiting[i, AT] = -1
        late = now_ns - waiting[i, DUE]
        if waiting[i, OP] != FLUSH and waiting[i, FLAGS] & FUA == 0:
            late -= lead_ns
        counts[0] += 1
        if waiting[i, ERROR] == 0:
            op = waiting[i, OP]
            kind = 3 if op == READ else 5 if op == WRITE else 7 if op == TRIM or op == WRITE_ZEROES else 9
            counts[kind] += 1
            if kind < 9:
                counts[kind + 1] += waiting[i, LENGTH]
        if late > 0:
            counts[1] += late
            counts[2] = max(counts[2], late)


@jit
def stays(waiting, i, left, next_due):
    """Row i is moved up behind the `left` rows that stay already. Returns (left, next DUE of those that stay), i among
    them."""
    if left != i:
        for c in range(COLUMNS):
            waiting[left, c] = waiting[i, c]
    return left + 1, waiting[i, DUE] if next_due < 0 else min(next_due, waiting[i, DUE])


@jit
def collect(waiting, n, now_ns, out, reads):
    """Replies of the requests that are due, in the order of arrival, into `out` (uint8); what stays is moved up.

    A good read leaves LENGTH bytes free after its header and a row (position in out, offset, length) in `reads` for the
    store to fill. Stops where out is full. Returns (n left, bytes in out, n reads, next DUE or -1)."""
    left, used, filled = 0, 0, 0
    next_due = -1
    full = False
    for i in range(n):
        data = waiting[i, LENGTH] if waiting[i, OP] == READ and waiting[i, ERROR] == 0 else 0
        if waiting[i, DUE] <= now_ns and not full and used + REPLY_BYTES + data > out.shape[0]:
            full = True
        if waiting[i, DUE] > now_ns or full:
            left, next_due = stays(waiting, i, left, next_due)
            continue
        _put_big_endian(out, used, 4, np.uint64(REPLY_MAGIC))
        _put_big_endian(out, used + 4, 4, np.uint64(waiting[i, ERROR]))
        _put_big_endian(out, used + 8, 8, np.uint64(waiting[i, COOKIE]))
        used += REPLY_BYTES
        if data:
            reads[filled, 0], reads[filled, 1], reads[filled, 2] = used, waiting[i, OFFSET], data
            filled += 1
            used += data
    return left, used, filled, next_due


@jit
def _put_big_endian(out, at, n, value):
    for i in range(n):
        out[at + i] = np.uint8((value >> np.uint64(8 * (n - 1 - i))) & np.uint64(0xFF))


@jit
def pack(heads, lengths, order, n, number, step, words, kind, flags, offset, length, cookies, expected):
    """The requests in the first n slots of `order`, of a client: into heads (uint8, HEADER_BYTES each), without the
    data of writes, whose length goes into lengths[n], 0 for others. Returns how many have data.

    words[flags, kind]: the request, its NBD flags above 16 bits of its number. A cookie has number, raised by step for
    each request, above SLOT_BITS of the slot. cookies[slot] and expected[slot] are set for parse_replies()."""
    writes = 0
    for k in range(n):
        slot = order[k]
        word = words[flags[slot], kind[slot]]
        op = word & 0xFFFF
        cookie = np.uint64(number + k * step) << np.uint64(SLOT_BITS) | np.uint64(slot)
        cookies[slot] = cookie
        expected[slot] = length[slot] if op == READ else 0
        lengths[k] = length[slot] if op == WRITE else 0
        writes += lengths[k] > 0
        at = k * HEADER_BYTES
        _put_big_endian(heads, at, 4, np.uint64(REQUEST_MAGIC))
        _put_big_endian(heads, at + 4, 4, np.uint64(word))
        _put_big_endian(heads, at + 8, 8, cookie)
        _put_big_endian(heads, at + 16, 8, np.uint64(offset[slot]))
        _put_big_endian(heads, at + 24, 4, np.uint64(length[slot]))
    return writes


def no_reply() -> np.ndarray:
    """The state of parse_replies() before the first."""
    return np.array([NO_SLOT, 0], np.int64)


@jit
def parse_replies(buf, end, cookies, same_bits, expected, at_slot, into, status, ended, answers, state):
    """The complete replies in buf[:end] (uint8); the data of slot's read goes to `into` at
    at_slot[slot] as it comes, or nowhere where that is empty.

    A reply belongs to the slot under way, cookies[slot] not 0, whose lowest same_bits it repeats. `ended` gets the
    slots that have ended, `answers` the cookies of their replies, status[slot] 0 or an errno with its sign. Returns
    (bytes used, slots ended, False where these are not replies to the requests in flight)."""
    at = n = 0
    same = ~np.uint64(0) if same_bits >= 64 else (np.uint64(1) << np.uint64(same_bits)) - np.uint64(1)
    while True:
        slot = state[READING]
        if slot != NO_SLOT:
            part = min(expected[slot] - state[FILLED], end - at)
            if into.shape[0]:
                begin = at_slot[slot] + state[FILLED]
                for i in range(part):
                    into[begin + i] = buf[at + i]
            at += part
            state[FILLED] += part
            if state[FILLED] < expected[slot]:
                return at, n, True
            state[READING] = NO_SLOT
        else:
            if end - at < REPLY_BYTES:
                return at, n, True
            cookie = _big_endian(buf, at + 8, 8)
            slot = np.int64(cookie & np.uint64((1 << SLOT_BITS) - 1))
            if slot >= cookies.shape[0] or cookies[slot] == 0 or (cookies[slot] ^ cookie) & same:
                return at, n, False
            if _big_endian(buf, at, 4) != np.uint64(REPLY_MAGIC):
                return at, n, False
            error = np.int64(_big_endian(buf, at + 4, 4))
            at += REPLY_BYTES
            status[slot] = -min(error, MOST_ERROR)
            cookies[slot] = cookie
            if expected[slot] and error == 0:
                state[READING], state[FILLED] = slot, 0
                continue
        answers[n], ended[n] = cookies[slot], slot
        cookies[slot] = 0
        n += 1
