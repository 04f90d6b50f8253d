"""Reading back after a cut: which blocks, and what each of them holds now."""

from collections.abc import Iterator

import numba
import numpy as np

from ssdrig.blockio.slots import Transport, carry_out
from ssdrig.powerloss import layout as layouts
from ssdrig.powerloss import record
from ssdrig.powerloss.history import BLANK, FLUSH, NEVER
from ssdrig.powerloss.layout import Layout
from ssdrig.powerloss.verdict import NEAR_BYTES, Blocks

TRIES, BETWEEN_NS = 3, 1_000_000_000  # of a block that the drive refuses to read, after the first
CANARY_SHARE = 0.01
BATCH_BYTES = 16 << 20  # looked at together
PORTION_BLOCKS = 1 << 22


def wanted(
    rows: np.ndarray,
    layout: Layout,
    chance: np.random.Generator,
    full: bool = False,
    canary_share: float = CANARY_SHARE,
    also: np.ndarray | None = None,
) -> np.ndarray:
    """int64[k, 2]: runs of blocks (first, end), sorted, apart from each other: all that the session (history.ROW[])
    touched, the aligned 64 KiB around each command that was not acknowledged, a share of the canaries, and the runs
    `also`; with `full` all of the window and every canary."""
    if full:
        return all_blocks(layout)
    touched = rows[rows["kind"] != FLUSH]
    runs = np.stack([touched["lba"].astype(np.int64), (touched["lba"] + touched["n"]).astype(np.int64)], 1)
    near = NEAR_BYTES // layout.block_bytes
    open_ = is_open(touched)
    runs[open_, 0] = runs[open_, 0] // near * near
    runs[open_, 1] = -(-runs[open_, 1] // near) * near
    few = -int(-canary_share * len(layout.canaries) // 1)
    some = canaries(layout)[chance.permutation(len(layout.canaries))[:few]]
    more = np.zeros((0, 2), np.int64) if also is None else also
    return merged(np.concatenate([runs, some, more]))


def is_open(rows: np.ndarray) -> np.ndarray:
    """bool[k]: the commands that were under way at the cut, or failed."""
    return (rows["status"] != 0) | (rows["done_ns"] == NEVER)


def open_runs(rows: np.ndarray) -> np.ndarray:
    """int64[k, 2]: what the commands under way at the cut touch: a later cut may show one of them."""
    return touched_runs(rows[is_open(rows)])


def touched_runs(rows: np.ndarray) -> np.ndarray:
    """int64[k, 2]: what commands touch."""
    rows = rows[rows["kind"] != FLUSH]
    return merged(np.stack([rows["lba"].astype(np.int64), (rows["lba"] + rows["n"]).astype(np.int64)], 1))


def all_blocks(layout: Layout) -> np.ndarray:
    """int64[k, 2]: window and canaries as runs of blocks."""
    window = np.stack([layout.starts, layout.starts + layout.piece_blocks], 1)
    return merged(np.concatenate([window, canaries(layout)]))


def canaries(layout: Layout) -> np.ndarray:
    """int64[k, 2]: every canary."""
    return np.stack([layout.canaries, layout.canaries + layout.unit], 1)


def merged(runs: np.ndarray) -> np.ndarray:
    """The same blocks, each once."""
    if not len(runs):
        return runs.reshape(0, 2).astype(np.int64)
    runs = runs[np.argsort(runs[:, 0], kind="stable")]
    end = np.maximum.accumulate(runs[:, 1])
    begins = np.append(True, runs[1:, 0] > end[:-1])
    first = np.flatnonzero(begins)
    return np.stack([runs[first, 0], end[np.append(first[1:], len(runs)) - 1]], 1)


def portions(runs: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """The same runs in parts of about `blocks` blocks, in order."""
    first, n = pieces(runs, most)
    part = (np.cumsum(n) - n) // most
    for number in np.unique(part):
        rows = part == number
        yield np.stack([first[rows], first[rows] + n[rows]], 1)


def pieces(runs: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """(first, n), int64[]: the runs in pieces of at most `most` blocks, each inside an aligned stretch of that many."""
    low, high = runs[:, 0] // most, -(-runs[:, 1] // most)
    count = high - low
    run = np.repeat(np.arange(len(runs)), count)
    cell = np.repeat(low, count) + np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    first = np.maximum(cell * most, runs[run, 0])
    return first, np.minimum((cell + 1) * most, runs[run, 1]) - first


def read(
    transport: Transport, layout: Layout, run: int, base: np.ndarray, runs: np.ndarray, rows: np.ndarray | None = None
) -> Blocks:
    """Contents of these blocks, with their earlier contents (base, int64[layout.base_blocks]). A block that the drive
    refuses TRIES times more is UNREADABLE. Of more than PORTION_BLOCKS only those are kept that the session (rows)
    touched, that are torn, or that changed: the others are as they must be, and a large window would
    not fit into memory. Raises DriveError where the drive goes away or hangs."""
    if rows is None or (runs[:, 1] - runs[:, 0]).sum() <= PORTION_BLOCKS:
        return _read(transport, layout, run, base, runs)
    touched = wanted(rows, layout, np.random.default_rng(0), canary_share=0)
    parts = []
    for portion in portions(runs, PORTION_BLOCKS):
        part = _read(transport, layout, run, base, portion)
        at = np.searchsorted(touched[:, 0], part.lba, "right") - 1
        changed = (part.seen != part.base) | (part.seen == record.TORN)
        selected = changed | ((at >= 0) & (part.lba < touched[at, 1]) if len(touched) else False)
        whole = part.lba, part.base, part.seen, part.canary
        parts.append([*(field[selected] for field in whole), part.part_lba, part.part_seen])
    lba, base, seen, canary, part_lba, part_seen = (np.concatenate(fields) for fields in zip(*parts))
    return Blocks(lba, base, seen, canary, part_lba=part_lba, part_seen=part_seen)


def again(transport: Transport, layout: Layout, run: int, base: np.ndarray, blocks: Blocks) -> np.ndarray:
    """What the same blocks hold now, int64[m]. Raises as read()."""
    return _read(transport, layout, run, base, merged(np.stack([blocks.lba, blocks.lba + 1], 1))).seen


def _read(transport: Transport, layout: Layout, run: int, base: np.ndarray, runs: np.ndarray) -> Blocks:
    first, n = pieces(runs, transport.slots.bytes_each // layout.block_bytes)
    lba = _one_by_one(first, n)
    seen, refused, torn, parts = seen_in(transport, layout, run, first, n)
    for _ in range(TRIES):
        bad = np.flatnonzero(refused)
        if not len(bad):
            break
        transport.pause(BETWEEN_NS)
        again_seen, still, torn_again, parts_again = seen_in(transport, layout, run, lba[bad], np.ones_like(bad))
        seen[bad], refused[bad] = again_seen, still
        torn, parts = np.append(torn, bad[torn_again]), np.concatenate([parts, parts_again])
    seen[refused] = record.UNREADABLE
    at = layouts.index(layout, lba)
    torn, order = np.unique(torn, return_index=True)
    part_lba, part_seen = np.repeat(lba[torn], parts.shape[1]), parts[order].reshape(-1)
    return Blocks(
        lba, base[at].astype(np.int64), seen, at >= layout.window_blocks, part_lba=part_lba, part_seen=part_seen
    )


def seen_in(
    transport: Transport, layout: Layout, run: int, first: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(content of each block; bool: the read that it was part of was refused; which blocks are torn; the content of
    each 512 bytes of these, int64[torn, per block]), in the order of the pieces."""
    slots, per_block = transport.slots, layout.block_bytes // record.BYTES
    seen, refused = np.full(int(n.sum()), record.UNKNOWN, np.int64), np.zeros(int(n.sum()), bool)
    ahead = np.cumsum(n) - n  # blocks before each piece
    room = np.empty(min(BATCH_BYTES, len(seen) * layout.block_bytes), np.uint8)
    per_batch = BATCH_BYTES // slots.bytes_each
    torn, parts = [np.zeros(0, np.int64)], [np.zeros((0, per_block), np.int64)]

    for begin in range(0, len(first), per_batch):
        end = min(begin + per_batch, len(first))
        length = n[begin:end] * layout.block_bytes
        to = np.cumsum(length) - length
        bad = np.zeros(end - begin, bool)

        def prepare(numbers, at, begin=begin, length=length):
            slots.kind[at], slots.flags[at] = BLANK, 0
            slots.offset[at], slots.length[at] = first[begin + numbers] * layout.block_bytes, length[numbers]

        def taken(numbers, at, bad=bad, to=to):
            bad[numbers] = slots.status[at] != 0
            _gather(slots.data, slots.bytes_each, slots.length, at, to[numbers], room)

        carry_out(transport, end - begin, prepare, taken)
        blocks = slice(int(ahead[begin]), int(ahead[end - 1] + n[end - 1]))
        lba512 = _one_by_one(first[begin:end], n[begin:end]) * per_block
        data = room[: int(length.sum())]
        seen[blocks] = record.classify(data, run, lba512, layout.block_bytes)
        refused[blocks] = np.repeat(bad, n[begin:end])
        halves = np.flatnonzero((seen[blocks] == record.TORN) & ~refused[blocks])
        torn.append(blocks.start + halves)
        records = data.reshape(-1, layout.block_bytes)[halves].reshape(-1)
        lba512_each = (lba512[halves, None] + np.arange(per_block)).reshape(-1)
        parts.append(record.classify(records, run, lba512_each).reshape(-1, per_block))
    return seen, refused, np.concatenate(torn), np.concatenate(parts)


def block(transport: Transport, layout: Layout, lba: int) -> bytes | None:
    """One block read again as a proof; None where the drive refuses. Raises DriveError."""
    out: list[bytes | None] = []
    slots, size = transport.slots, layout.block_bytes

    def prepare(_, at):
        slots.kind[at], slots.flags[at], slots.offset[at], slots.length[at] = BLANK, 0, lba * size, size

    def taken(_, at):
        begin = int(at[0]) * slots.bytes_each
        out.append(None if slots.status[at[0]] else slots.data[begin : begin + size].tobytes())

    carry_out(transport, 1, prepare, taken)
    return out[0]


def _one_by_one(first: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The blocks of the pieces, one by one."""
    return np.repeat(first - (np.cumsum(n) - n), n) + np.arange(int(n.sum()))


@numba.njit(cache=True)
def _gather(data, bytes_each, length, slots, to, out):
    for k in range(len(slots)):
        source = data[slots[k] * bytes_each : slots[k] * bytes_each + length[slots[k]]]
        target = out[to[k] : to[k] + len(source)]
        for i in range(len(source)):
            target[i] = source[i]
