"""What a power cut finds: the versions of pages on their way to the NAND, programs under way, and what the page map has
not saved. SIMULATED.

All host pages are numbered as they come (nand.S_SEQ), and all commands but reads (nand.S_LOG); the drive remembers the
latest of both in rings of the same size (ftl.py). Older versions than the ring holds are on NAND, or in a queue of more
than constants.ON_THEIR_WAY_PAGES, whose commands may be executed or not."""

import numpy as np

from ssdrig.virtual.flash import ftl, nand
from ssdrig.virtual.flash.commands import FLUSH, FUA, TRIM, WRITE, WRITE_ZEROES

FAR_ns = int(ftl.FAR)
# One row a page version, in the order of submission, times in model ns. came: the command arrived; accepted: the write
# cache took the page; done: the command was completed; nand: the page is on NAND; durable: it outlives a power cut from
# then on, nand or, with capacitors, done. cell: which content it replaced, a key of the store's (device/store.py).
VERSION = np.dtype(
    [
        *((name, np.int64) for name in ("page", "number", "command", "came_ns", "accepted_ns", "done_ns")),
        *((name, np.int64) for name in ("nand_ns", "durable_ns", "cell")),
        ("fua", np.bool_),
        ("trim", np.bool_),
    ]
)
CHECKPOINT_UPDATES = 16384  # the map is saved after this many at the latest (assumed; 64 KiB of 4-byte entries)


def session(drive, since: int, trimmed: dict[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(VERSION[n], the FLUSH commands as rows of drive.log) of the commands from number `since` on that are still
    remembered. `trimmed`: of each command that trimmed, by its number, the pages whose contents are kept; its other
    pages are not in the list: they are gone for good."""
    m, slots = drive.m, len(drive.log)
    first = max(since, int(m[nand.S_LOG]) - slots)
    commands = drive.log[np.arange(first, int(m[nand.S_LOG])) & (slots - 1)]
    op, fua = commands[:, ftl.L_OP], commands[:, ftl.L_FLAGS] & FUA != 0
    none = np.zeros(0, np.int64)
    gone = [trimmed.get(first + int(i), none) for i in np.flatnonzero((op == TRIM) | (op == WRITE_ZEROES))]
    pages = np.where(op == WRITE, commands[:, ftl.L_PAGES], 0)
    pages[(op == TRIM) | (op == WRITE_ZEROES)] = [len(some) for some in gone]
    index = np.repeat(np.arange(len(commands)), pages)
    offset = np.arange(len(index)) - np.repeat(np.cumsum(pages) - pages, pages)
    out, c = np.zeros(len(index), VERSION), commands[index]
    out["trim"], out["command"], out["fua"] = c[:, ftl.L_OP] != WRITE, first + index, fua[index]
    out["came_ns"], out["done_ns"] = c[:, ftl.L_CAME], c[:, ftl.L_DONE]
    out["number"] = c[:, ftl.L_VERSION] + offset
    version = drive.cache[out["number"] & (slots - 1)]
    out["page"] = c[:, ftl.L_PAGE] + offset
    out["page"][out["trim"]] = np.concatenate([none, *gone])
    out["accepted_ns"] = np.where(out["trim"], out["done_ns"], version[:, ftl.C_ACCEPTED])
    out["nand_ns"] = np.where(out["trim"], _saved_ns(drive, commands)[index], version[:, ftl.C_DURABLE])
    out["durable_ns"] = out["done_ns"] if drive.preset.plp else out["nand_ns"]
    out["cell"] = np.where(out["trim"], offset, out["number"])
    remembered = out["trim"] | (out["number"] >= m[nand.S_SEQ] - slots)
    return out[remembered], commands[op == FLUSH]


def _saved_ns(drive, commands: np.ndarray) -> np.ndarray:
    """When what each command changed in the map is saved at the latest: at the end of the next FLUSH, or after the time
    in which an idle drive drains its cache; immediately with FUA."""
    done = commands[:, ftl.L_DONE]
    flushed = np.where(commands[:, ftl.L_OP] == FLUSH, done, FAR_ns)
    flushed = np.minimum.accumulate(flushed[::-1])[::-1]
    later = np.minimum(done + drive.m[nand.K_DRAIN_NS], np.maximum(flushed, done))
    return np.where(commands[:, ftl.L_FLAGS] & FUA != 0, done, later)


def map_updates(drive) -> int:
    """Changed entries of the page map that its last checkpoint does not hold. It is made at FLUSH, when the drive is
    idle, and every CHECKPOINT_UPDATES."""
    counted = (nand.N_HOST, nand.N_TRIM_PAGES, nand.N_GC, nand.N_IDLE_GC, nand.N_WL, nand.N_FOLD, nand.N_REFRESH)
    return int(sum(int(drive.m[i]) for i in counted) - drive.m[nand.S_MAP_SAVED]) % CHECKPOINT_UPDATES


def save_map(drive) -> None:
    """A checkpoint of the page map."""
    drive.m[nand.S_MAP_SAVED] += map_updates(drive)


def replay_ns(drive, updates: int) -> int:
    """To read the spare areas of the pages written since the checkpoint, on all dies in parallel."""
    return updates * int(drive.preset.t_R_ns) // drive.preset.dies


def programs(drive, t_ns: int) -> list[tuple[int, float, int, list[int]]]:
    """(die, share of its time that has passed, first physical page, logical pages) of each program under way at t_ns.
    The extra time of relocated pages is not in the share."""
    m, pages_ = drive.m, []
    slc_from = int(m[nand.K_UNITS] * m[nand.K_NP])
    for k in range(drive.preset.dies):
        flights = drive.die[k, nand.D_FLIGHT : nand.D_NEXT].reshape(-1, 2).tolist()
        for first, end in flights:
            length = int(m[nand.K_TPROG_SLC if first >= slc_from else nand.K_TPROG])
            if end - length <= t_ns < end:
                most = int(m[nand.K_PLANE_PAGES if first >= slc_from else nand.K_PROG_PAGES])
                last = min([first + most, *(other for other, _ in flights if other > first)])
                share = round((t_ns - end + length) / length, 3)
                pages_.append((k, share, first, pages_at(drive, first, last).tolist()))
    return pages_


def pages_at(drive, first: int, last: int) -> np.ndarray:
    """int64[]: the logical pages whose current data is in the physical pages first..last-1."""
    physical = np.arange(max(first, 0), min(last, len(drive.p2l)))
    logical = drive.p2l[physical].astype(np.int64)
    logical[logical >= drive.pages] = 0
    return logical[drive.l2p[logical] == physical]


def erases(drive, t_ns: int) -> list[tuple[int, float]]:
    """(die, share of its time that has passed) of each erase under way at t_ns."""
    length = int(drive.m[nand.K_TBERS])
    ends = drive.die[: drive.preset.dies, nand.D_ERASED].tolist()
    under_way = [(k, end) for k, end in enumerate(ends) if end and end - length <= t_ns < end]
    return [(k, round((t_ns - end + length) / length, 3)) for k, end in under_way]
