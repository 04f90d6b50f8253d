"""The faults of one SIMULATED drive at work: when each strikes, and its effects visible to a host, for the truth.

Each draw depends on the seed, the number of the cut and the fault, so a cut can be made again. The faults of contents
are in faultmodels.py; here are those of the drive as a whole, and what lasts from one cut to the next.

The file in which a SIMULATED drive's faults outlive its server: numbers as JSON, then the contents of pages.

What a fault does to the contents of the SIMULATED drive at a cut (the table is powerfaults.py). Each model takes a
Scene and its parameters, changes pages, and returns a Hit; None where the cut offers nothing to hurt."""

import errno
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import observable, powerfaults
from ssdrig.virtual.device.observable import NEVER, Change, Read
from ssdrig.virtual.flash import ftl, stored_arrays, versions

if TYPE_CHECKING:
    from ssdrig.virtual.device.device import Device

PAGE_BYTES = 4096
ZEROS = bytes(PAGE_BYTES)
SECTOR_BYTES = 512
TRIES = 64  # pages drawn until one is found that will do


class Hit(NamedTuple):
    """bad: what the pages show now was never written there. blocks: (page, block) that are wrong though each content
    on its own is allowed."""

    pages: list[int]
    bad: bool = False
    blocks: list[tuple[int, int]] = []


class Scene:
    """A cut, as a fault finds it once the honest losses are done."""

    def __init__(self, device: "Device", cut, rng: np.random.Generator, old: dict, blanks: dict, block_bytes: int):
        self.device, self.cut, self.rng, self.old, self.blanks = device, cut, rng, old, blanks
        self.rows, self.block_bytes = cut.versions, block_bytes
        self.flushes = [(int(row[ftl.L_CAME]), int(row[ftl.L_DONE])) for row in cut.flushes]
        self.of_page: dict[int, list[int]] = {}
        for i, page in enumerate(self.rows["page"].tolist()):
            self.of_page.setdefault(page, []).append(i)
        self.before: dict[int, bytes | None] = {}  # of each changed page: its earlier content
        self._last: dict[int, bytes] = {}  # and what its last version was

    def show(self, page: int) -> bytes | None:
        """What the page reads as; None: not at all."""
        return None if page in self.device.unreadable else self.device.store.load(page)

    def after(self, i: int) -> bytes:
        """What its page holds with version i."""
        page = int(self.rows["page"][i])
        last = self.of_page[page][-1] == i and page in self._last
        return self._last[page] if last else self.cut.after(i)

    def touch(self, page: int) -> None:
        """It is about to be changed."""
        if page not in self.before:
            self.before[page] = self.show(page)
            if page in self.of_page:
                self._last[page] = self.cut.after(self.of_page[page][-1])

    def put(self, page: int, content: bytes) -> None:
        self.touch(page)
        self.device.store.put(page, content)

    def newest(self, i: int) -> bool:
        """Whether the page shows version i, the last that was sent to it."""
        page = int(self.rows["page"][i])
        return self.of_page[page][-1] == i and self.show(page) == self.after(i)

    def drawn(self, which: np.ndarray) -> list[int]:
        """At most TRIES of these rows, in random order."""
        indices = np.flatnonzero(which)
        return [int(i) for i in self.rng.permutation(indices)[:TRIES]]

    def acknowledged(self) -> np.ndarray:
        return self.rows["done_ns"] <= self.cut.t_ns

    def at_rest(self, n: int, among: np.ndarray | None = None) -> list[int]:
        """At most n pages with data, not written in this session."""
        pages = np.flatnonzero(self.device.drive.l2p != ftl.NONE) if among is None else among
        drawn = self.rng.permutation(pages)[: n + TRIES] if len(pages) < 1 << 16 else self.rng.choice(pages, n + TRIES)
        free = [int(page) for page in dict.fromkeys(drawn.tolist()) if page not in self.of_page]
        return [page for page in free if self.show(page) not in (None, ZEROS)][:n]

    def corrupt(self, pages: list[int]) -> Hit | None:
        for page in pages:
            noise = np.frombuffer(self.device.store.load(page), np.uint8).copy()
            at = self.rng.integers(0, PAGE_BYTES, 64)
            noise[at] ^= self.rng.integers(1, 256, 64, dtype=np.uint8)
            self.put(page, noise.tobytes())
        return Hit(pages, bad=True) if pages else None


Model = Callable[[Scene, dict[str, float]], Hit | None]


def lying_flush(scene: Scene, how: dict[str, float]) -> Hit | None:
    """Before the loss: the newest pages are only in the cache."""
    rows, last = scene.rows, max(0, len(scene.rows) - int(how["pages"]))
    hurt = (np.arange(len(rows)) >= last) & ~rows["fua"] & ~rows["trim"] & (rows["durable_ns"] <= scene.cut.t_ns)
    return _forgotten(scene, hurt)


def fua_ignored(scene: Scene, how: dict[str, float]) -> Hit | None:
    """Before the loss: what no FLUSH came after is only in the cache."""
    rows = scene.rows
    flushed_ns = max((came for came, done in scene.flushes if done <= scene.cut.t_ns), default=-1)
    return _forgotten(scene, rows["fua"] & ~rows["trim"] & (rows["done_ns"] > flushed_ns))


def _forgotten(scene: Scene, hurt: np.ndarray) -> Hit | None:
    scene.rows["durable_ns"][hurt] = ftl.FAR
    return Hit(np.unique(scene.rows["page"][hurt]).tolist()) if hurt.any() else None


def map_rollback(scene: Scene, how: dict[str, float]) -> Hit | None:
    n = int(scene.rng.integers(int(how["least"]), int(how["most"]) + 1))
    first = max(0, len(scene.rows) - n)
    hit = []
    for page, rows in scene.of_page.items():
        forgotten = [i for i in rows if i >= first]
        if forgotten and scene.show(page) in [scene.after(i) for i in forgotten]:
            scene.put(page, scene.cut.before(forgotten[0]))
            hit.append(page)
    return Hit(hit) if hit else None


def paired_page(scene: Scene, how: dict[str, float]) -> Hit | None:
    """A page of the program before the interrupted one, in its block and die, not rewritten since."""
    preset = scene.device.preset
    for _, _, first, _ in scene.cut.programs:
        if first % preset.block_pages >= preset.program_pages:
            below = scene.at_rest(1, versions.pages_at(scene.device.drive, first - preset.program_pages, first))
            if below:
                return scene.corrupt(below)
    return scene.corrupt(scene.at_rest(1)) if scene.cut.programs else None


def torn_block(scene: Scene, how: dict[str, float]) -> Hit | None:
    for i in scene.drawn(~scene.rows["trim"]):
        if scene.newest(i):
            page, new, old = int(scene.rows["page"][i]), scene.after(i), scene.cut.before(i)
            end = SECTOR_BYTES * int(scene.rng.integers(1, PAGE_BYTES // SECTOR_BYTES))
            if new[:end] != old[:end] and new[end:] != old[end:]:
                scene.put(page, new[:end] + old[end:])
                return Hit([page], bad=True)
    return None


def misdirected(scene: Scene, how: dict[str, float]) -> Hit | None:
    for i in scene.drawn(~scene.rows["trim"] & scene.acknowledged()):
        page, content = int(scene.rows["page"][i]), scene.after(i)
        other = page + int(how["pages"])
        if scene.newest(i) and other < scene.device.drive.pages and scene.show(other) not in (None, ZEROS):
            scene.put(page, scene.cut.before(i))
            scene.put(other, content)
            return Hit([other, page], bad=True)
    return None


def trim_resurrected(scene: Scene, how: dict[str, float]) -> Hit | None:
    flushes = [came for came, done in scene.flushes if done <= scene.cut.t_ns]
    last = max(flushes, default=-1)
    for i in scene.drawn(scene.rows["trim"] & scene.acknowledged()):
        page = int(scene.rows["page"][i])
        reads = [read for read in scene.blanks.get(page, []) if read.came_ns > scene.rows["done_ns"][i]]
        if scene.newest(i) and scene.cut.before(i) != ZEROS and any(read.done_ns <= last for read in reads):
            scene.put(page, scene.cut.before(i))
            return Hit([page])
    return None


def bit_flip(scene: Scene, how: dict[str, float]) -> Hit | None:
    for page in scene.at_rest(1):
        content = bytearray(scene.device.store.load(page))
        bit = int(scene.rng.integers(0, 8 * PAGE_BYTES))
        content[bit // 8] ^= 1 << bit % 8
        scene.put(page, bytes(content))
        return Hit([page], bad=True)
    return None


def dropped_write(scene: Scene, how: dict[str, float]) -> Hit | None:
    rows, last = scene.rows, max((came for came, done in scene.flushes if done <= scene.cut.t_ns), default=-1)
    which = ~rows["trim"] & scene.acknowledged()
    if how["durable"] and not scene.device.preset.plp:
        which &= rows["fua"] | (rows["done_ns"] <= last)
    for i in scene.drawn(which):
        if scene.newest(i):
            scene.put(int(rows["page"][i]), scene.cut.before(i))
            return Hit([int(rows["page"][i])])
    return None


def old_region(scene: Scene, how: dict[str, float]) -> Hit | None:
    known = scene.old | {page: scene.cut.before(rows[0]) for page, rows in scene.of_page.items()}
    if not known:
        return None
    n = int(how["pages"])
    first = int(scene.rng.choice(np.fromiter(known, np.int64))) // n * n
    hit = [
        page for page in range(first, first + n) if page in known and scene.show(page) not in (None, ZEROS, known[page])
    ]
    for page in hit:
        scene.put(page, known[page])
    return Hit(hit) if hit else None


def torn_atomic(scene: Scene, how: dict[str, float]) -> Hit | None:
    """A command of several pages in flight, whole or absent: its second half is the opposite."""
    rows = scene.rows
    under_way = ~rows["trim"] & ~scene.acknowledged()
    for command in scene.rng.permutation(np.unique(rows["command"][under_way])).tolist():
        of = np.flatnonzero(rows["command"] == command).tolist()
        whole = [len(set(scene.after(i)[:64] + scene.cut.before(i)[:64])) > 1 for i in of]
        if len(of) < 2 or not all(whole) or any(scene.of_page[int(rows["page"][i])][-1] != i for i in of):
            continue
        if any(not _settled(scene, i) for i in of):
            continue
        pages = [int(rows["page"][i]) for i in of]
        half = len(of) // 2
        if all(scene.show(page) == scene.after(i) for page, i in zip(pages, of)):
            hurt, old = range(half, len(of)), pages[half:]
        elif all(scene.show(page) == scene.cut.before(i) for page, i in zip(pages, of)):
            hurt, old = range(half), pages[half:]
        else:
            continue
        for k in hurt:
            now_old = scene.show(pages[k]) == scene.cut.before(of[k])
            scene.put(pages[k], scene.after(of[k]) if now_old else scene.cut.before(of[k]))
        blocks = PAGE_BYTES // scene.block_bytes
        return Hit(pages, blocks=[(page, block) for page in old for block in range(blocks)])
    return None


def _settled(scene: Scene, i: int) -> bool:
    """Whether what the page held before version i was complete before it came."""
    page = int(scene.rows["page"][i])
    earlier = [k for k in scene.of_page[page] if k < i]
    return all(scene.rows["done_ns"][k] < scene.rows["came_ns"][i] for k in earlier)


def unreadable_line(scene: Scene, how: dict[str, float]) -> Hit | None:
    for *_, pages in scene.cut.programs:
        hit = [page for page in pages if page not in scene.device.unreadable][: int(how["pages"])]
        for page in hit:
            scene.touch(page)
        if hit:
            scene.device.unreadable.update(hit)
            return Hit(hit, bad=True)
    return None


def rmw_neighbours(scene: Scene, how: dict[str, float]) -> Hit | None:
    under_way = ~scene.rows["trim"] & (scene.rows["nand_ns"] > scene.cut.t_ns)
    for i in scene.drawn(under_way & ~scene.acknowledged()) + scene.drawn(under_way):
        page = int(scene.rows["page"][i])
        changed = np.frombuffer(scene.cut.before(i), np.uint8) != np.frombuffer(scene.after(i), np.uint8)
        written = changed.reshape(-1, SECTOR_BYTES).any(axis=1)
        if len(scene.of_page[page]) > 1 or written.all() or scene.show(page) in (None, ZEROS):
            continue
        content = np.frombuffer(scene.device.store.load(page), np.uint8).copy().reshape(-1, SECTOR_BYTES)
        content[~written] = scene.rng.integers(0, 256, (int((~written).sum()), SECTOR_BYTES), dtype=np.uint8)
        scene.put(page, content.tobytes())
        return Hit([page], bad=True)
    return None


BEFORE_LOSS: dict[str, Model] = {"lying_flush": lying_flush, "fua_ignored": fua_ignored}
AFTER_LOSS: dict[str, Model] = {
    "map_rollback": map_rollback,
    "paired_page": paired_page,
    "torn_block": torn_block,
    "misdirected": misdirected,
    "trim_resurrected": trim_resurrected,
    "bit_flip": bit_flip,
    "dropped_write": dropped_write,
    "old_region": old_region,
    "torn_atomic": torn_atomic,
    "unreadable_line": unreadable_line,
    "rmw_neighbours": rmw_neighbours,
}


FILE = "faults.npz"
Keyed = list[tuple[list[int], list[Any]]]  # (page, or page and block), (contents: bytes, None for none)


def save(folder: Path, numbers: Mapping, cells: Mapping[str, Mapping]) -> None:
    """cells: {name: {page or (page, block): content or (content, content)}}. Raises OSError."""
    blob: list[bytes] = []
    arrays: dict[str, list] = {}
    at = 0
    for name, rows in cells.items():
        arrays[name] = []
        for key, content in rows.items():
            keys = [int(number) for number in (key if isinstance(key, tuple) else (key,))]
            places: list[list[int] | None] = []
            for array in content if isinstance(content, tuple) else (content,):
                places.append(None if array is None else [at, len(array)])
                if array is not None:
                    blob.append(array)
                    at += len(array)
            arrays[name].append([keys, places])
    text = json.dumps({"numbers": numbers, "cells": arrays}, default=lambda number: number.item()).encode()
    np.savez(folder / FILE, document=np.frombuffer(text, np.uint8), blob=np.frombuffer(b"".join(blob), np.uint8))


def load(folder: Path, pages: int) -> tuple[dict, dict[str, Keyed]]:
    """(numbers, cells) as save() was given them. Raises OSError, ValueError, KeyError, zipfile.BadZipFile.

    pages: of the drive; a page that it does not have is a ValueError."""
    with stored_arrays.opened(folder / FILE) as stored:
        document = json.loads(stored_arrays.array(stored, "document", np.uint8, None).tobytes())
        blob = stored_arrays.array(stored, "blob", np.uint8, None).tobytes()
    content = lambda place: None if place is None else blob[place[0] : place[0] + place[1]]
    cells = {
        name: [(keys, [content(place) for place in places]) for keys, places in rows]
        for name, rows in document["cells"].items()
    }
    if any(not (type(keys[0]) is int and 0 <= keys[0] < pages) for rows in cells.values() for keys, _ in rows):
        raise ValueError(f"a page that a drive of {pages} pages does not have")
    return document["numbers"], cells


if TYPE_CHECKING:
    from ssdrig.virtual.device.device import Device

SEEN_NS = 10_000_000  # a host sees an answer at most this much later
REMEMBERED = 16384  # pages whose older contents are known
LISTED = 2048  # pages and blocks of a fault in its line of the truth
ANOTHER_MODEL, ANOTHER_BYTES = "SATAFIRM   S11", 8 << 20
FOREVER_ns = 1 << 61
COUNTERS = (
    *("host_read_bytes", "host_write_bytes", "host_read_commands", "host_write_commands", "nand_write_bytes"),
    *("nand_read_bytes", "busy_s", "power_on_s", "power_cycles", "unsafe_shutdowns", "plp_starts", "incomplete_dumps"),
)


class Injector:
    """`given`: as --drive-faults. seen_ns: see observable.py; block_bytes: the host's logical block, by which the truth
    states what it can see. Raises UsageError."""

    def __init__(self, given: Any, seen_ns: int = SEEN_NS, block_bytes: int = 512):
        self.faults, self.seed = powerfaults.settings(given)
        self.seen_ns, self.block_bytes = seen_ns, block_bytes
        self.cuts = 0
        self._old: dict[int, bytes] = {}  # page -> content one session before its last write
        self._ghosts: dict[
            int, tuple[bytes, bytes]
        ] = {}  # page -> (the write that was absent, the previous content instead)
        self._turns: dict[int, bytes] = {}  # page -> content shown at the next read
        self._bad: dict[tuple[int, int], bytes | None] = {}  # (page, block) -> content never written there
        self._blanks: dict[int, list[Read]] = {}  # page -> reads of this session that found zeros
        self._saved: list[dict] = []  # counters at each power-on
        self._missing = dict.fromkeys(COUNTERS, 0)  # by which what the drive reports is less than it was
        self._seq = 0

    FILE = FILE

    def save(self, folder: Path) -> None:
        """Save the state that lasts from one cut to the next. Reads of the current session is not part of it, for the
        drive that goes on begins its time again. Raises OSError."""
        numbers = {"cuts": self.cuts, "seq": self._seq, "saved": self._saved, "missing": self._missing}
        save(folder, numbers, {"old": self._old, "ghosts": self._ghosts, "turns": self._turns, "bad": self._bad})

    def restore(self, folder: Path, pages: int) -> None:
        """Go on with what save() wrote of a drive of this many pages. Raises OSError, ValueError, KeyError,
        zipfile.BadZipFile."""
        numbers, cells = load(folder, pages)
        self.cuts, self._seq, self._saved = numbers["cuts"], numbers["seq"], numbers["saved"]
        self._missing |= numbers["missing"]
        self._old = {page: cell for (page,), (cell,) in cells["old"]}
        self._ghosts = {page: (absent, instead) for (page,), (absent, instead) in cells["ghosts"]}
        self._turns = {page: cell for (page,), (cell,) in cells["turns"]}
        self._bad = {(page, block): cell for (page, block), (cell,) in cells["bad"]}

    def check(self, device: "Device") -> None:
        """Raises UsageError where the device cannot have these faults."""
        if self.faults and device.store.min_block != 1:
            raise UsageError(
                "a drive that keeps all bytes, for this fault",
                "one that keeps checks (--data crc)",
                "give --data sparse",
            )

    def _strikes(self, name: str, number: int) -> np.random.Generator | None:
        """The draws of a fault at this cut, None where it does not strike."""
        if name not in self.faults:
            return None
        order = list(powerfaults.BY_NAME).index(name)
        rng = np.random.default_rng([self.seed, number, order])
        return rng if rng.random() < self.faults[name]["p"] else None

    def _since(self, name: str) -> bool:
        """Whether this many cuts have been."""
        return name in self.faults and self.cuts > self.faults[name]["after"]

    # while it has power

    def commands(self, device: "Device", batch: np.ndarray, n: int) -> None:
        """These are about to be executed."""
        if self._since("read_only"):
            writes = np.isin(
                batch[:n, nbd_protocol.OP], (nbd_protocol.WRITE, nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES)
            )
            batch[:n, nbd_protocol.ERROR][writes] = errno.EROFS
        if self._turns:
            for op, _, _, offset, length, _, error, _ in batch[:n].tolist():
                for page in range(offset // PAGE_BYTES, -(-(offset + length) // PAGE_BYTES)):
                    if page in self._turns and op == nbd_protocol.READ:
                        now = device.store.load(page)
                        device.store.put(page, self._turns[page])
                        self._turns[page] = now
                    elif op in (nbd_protocol.WRITE, nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES) and not error:
                        self._turns.pop(page, None)

    def carried_out(self, device: "Device", batch: np.ndarray, n: int, now: int) -> None:
        """When each of them is done is known. now: model time at which they came."""
        if "trim_resurrected" not in self.faults:
            return
        for op, _, _, offset, length, _, error, due in batch[:n].tolist():
            if op == nbd_protocol.READ and not error:
                for page in range(-(-offset // PAGE_BYTES), (offset + length) // PAGE_BYTES):
                    if device.store.load(page) == ZEROS:
                        self._blanks.setdefault(page, []).append(Read(now, device.model_ns(due)))

    # a cut

    def before_loss(self, device: "Device", cut) -> None:
        self.cuts += 1
        cut.hits = []
        self._turns.clear()
        for name, model in BEFORE_LOSS.items():
            rng = self._strikes(name, cut.number)
            if rng is not None:
                scene = Scene(device, cut, rng, self._old, self._blanks, self.block_bytes)
                cut.hits.append((name, model(scene, self.faults[name])))
        if device.reserve is not None:
            self._age(device, cut)

    def _age(self, device: "Device", cut) -> None:
        reserve = device.reserve
        assert reserve is not None
        if "aged_unsaid" in self.faults:
            reserve.health = max(0.0, reserve.health - self.faults["aged_unsaid"]["per_cut"])
        reserve.at_this_cut = 1.0
        if self._strikes("partial_dump", cut.number) is not None:
            reserve.at_this_cut = self.faults["partial_dump"]["health"]

    def after_loss(self, device: "Device", cut) -> list[dict]:
        """The faults that struck, for the truth."""
        scene = Scene(device, cut, np.random.default_rng(0), self._old, self._blanks, self.block_bytes)
        aged = [name for name in ("partial_dump", "aged_unsaid") if name in self.faults]
        if aged and device.reserve is not None and device.reserve.lost_pages:
            cut.hits.append((aged[0], Hit(device.reserve.lost_pages)))
        for name, model in AFTER_LOSS.items():
            rng = self._strikes(name, cut.number)
            if rng is not None:
                scene.rng = rng
                cut.hits.append((name, model(scene, self.faults[name])))
        cut.hits.append(("ghost", self._ghost(scene)))
        truths = [self._truth(scene, name, hit) for name, hit in cut.hits if hit is not None]
        self._remember(scene, [hit for _, hit in cut.hits if hit is not None])
        return truths + self._counters(cut)

    def _ghost(self, scene: Scene) -> Hit | None:
        known, self._ghosts = self._ghosts, {}
        if "ghost" not in self.faults:
            return None
        hit = []
        for page, (absent, instead) in known.items():
            if page not in scene.of_page and scene.show(page) == instead:
                scene.put(page, absent)
                hit.append(page)
                break
        if self._strikes("ghost", scene.cut.number) is not None:
            for i in np.flatnonzero(~scene.rows["trim"] & ~scene.acknowledged()).tolist():
                page, show = int(scene.rows["page"][i]), scene.show(int(scene.rows["page"][i]))
                if scene.of_page[page][-1] == i and show not in (None, ZEROS, scene.after(i)):
                    self._ghosts[page] = scene.after(i), show
        return Hit(hit) if hit else None

    def _truth(self, scene: Scene, name: str, hit: Hit) -> dict:
        blocks = sorted({*hit.blocks, *(block for page in hit.pages for block in self._wrong(scene, page))})
        of_a_page = PAGE_BYTES // self.block_bytes
        known = hit.bad or not self._forgotten(scene)
        return {
            "fault": name,
            "pages": hit.pages[:LISTED],
            "observable": bool(blocks) if known else None,
            "blocks": [page * of_a_page + block for page, block in blocks][:LISTED],
            "left_out": max(0, len(hit.pages) - LISTED),
        }

    def _forgotten(self, scene: Scene) -> bool:
        """Whether the drive does not remember all that came in this session."""
        written = scene.device.drive.ledger()["host_write_bytes"] // PAGE_BYTES - self._seq
        return int((~scene.rows["trim"]).sum()) < written

    def _wrong(self, scene: Scene, page: int) -> list[tuple[int, int]]:
        rows, cut, device = scene.rows, scene.cut, scene.device
        changes = []
        for i in scene.of_page.get(page, []):
            done = int(rows["done_ns"][i])
            times = int(rows["came_ns"][i]), done if done <= cut.t_ns else NEVER
            flags = bool(rows["fua"][i]), bool(rows["trim"][i])
            changes.append(Change(*times, *flags, cut.before(i), scene.after(i)))
        blanks = [read for read in self._blanks.get(page, []) if read.done_ns <= cut.t_ns]
        was = scene.before[page] if page in scene.before else scene.show(page)
        base = changes[0].before if changes else was or ZEROS
        unknown = self._unknown(page, base, self.block_bytes)
        flush_ns = observable.last_flush_ns(scene.flushes, cut.t_ns)
        keeps_all = bool(device.preset.plp) or not device.preset.cache_bytes
        how = flush_ns, keeps_all, self.seen_ns, self.block_bytes
        return [(page, block) for block in observable.illegal(scene.show(page), base, unknown, changes, blanks, *how)]

    def _unknown(self, page: int, base: bytes, block_bytes: int) -> set[int]:
        """Blocks that were wrong before the session, which a host knows."""
        part = lambda block: base[block * block_bytes : (block + 1) * block_bytes]
        blocks = range(PAGE_BYTES // block_bytes)
        return {block for block in blocks if self._bad.get((page, block), b"") in (None, part(block))}

    def _remember(self, scene: Scene, hits: list[Hit]) -> None:
        size = self.block_bytes
        for hit in hits:
            for page in hit.pages if hit.bad else []:
                now, was = scene.show(page), scene.before.get(page)
                for block in range(PAGE_BYTES // size):
                    part = slice(block * size, (block + 1) * size)
                    if now is None or was is None or now[part] != was[part]:
                        self._bad[page, block] = None if now is None else now[part]
        for page, rows in scene.of_page.items():
            self._old.pop(page, None)
            self._old[page] = scene.cut.before(rows[0])
        while len(self._old) > REMEMBERED:
            del self._old[next(iter(self._old))]
        self._blanks.clear()

    def _counters(self, cut) -> list[dict]:
        """Counters that this cut has put back."""
        out = []
        if (
            self._strikes("smart_rollback", cut.number) is not None
            and len(self._saved) >= self.faults["smart_rollback"]["back"]
        ):
            saved, last = self._saved[-int(self.faults["smart_rollback"]["back"])], self._saved[-1]
            for name in COUNTERS:
                self._missing[name] += last[name] - saved[name]
            self._saved.clear()
            out.append({"fault": "smart_rollback", "pages": [], "observable": True, "blocks": []})
        if not cut.announced and self._strikes("uncounted_shutdown", cut.number) is not None:
            self._missing["unsafe_shutdowns"] += 1
            out.append({"fault": "uncounted_shutdown", "pages": [], "observable": True, "blocks": []})
        return out

    # power is back

    def at_start(self, device: "Device", cut, on_ns: int) -> list[dict]:
        """The faults that struck since the cut, for the truth. on_ns: model time at which the rail is back."""
        out: list[dict] = []
        off_ms = (on_ns - cut.t_ns) / 1e6
        rng = self._strikes("brownout", cut.number)
        if rng is not None and off_ms <= self.faults["brownout"]["within_ms"]:
            scene = Scene(device, cut, rng, self._old, {}, self.block_bytes)
            hit = scene.corrupt(scene.at_rest(int(self.faults["brownout"]["pages"])))
            if hit:
                out.append(self._truth(scene, "brownout", hit))
                self._remember(scene, [hit])
        rng = self._strikes("unstable_read", cut.number)
        if rng is not None:
            out += self._take_turns(device, cut, rng)
        named = {"slow_recovery": "slow_recovery", "dead": "dead", "read_only": "read_only"}
        named["lost_identity"] = "lost_identity"
        out += [{"fault": name, "pages": [], "observable": True, "blocks": []} for name in named if self._since(name)]
        self._seq = device.drive.ledger()["host_write_bytes"] // PAGE_BYTES
        self._saved.append({name: count for name, count in device.health().items() if name in COUNTERS})
        del self._saved[:-1000]
        return out

    def _take_turns(self, device: "Device", cut, rng: np.random.Generator) -> list[dict]:
        scene = Scene(device, cut, rng, self._old, {}, self.block_bytes)
        free = [page for page, old in self._old.items() if page not in scene.of_page]
        for page in rng.permutation(np.array(free, np.int64))[:TRIES].tolist():
            now = scene.show(page)
            if now not in (None, ZEROS, self._old[page]) and self._old[page] != ZEROS:
                assert now is not None
                self._turns[page] = self._old[page]
                n = PAGE_BYTES // self.block_bytes
                parts = [slice(k * self.block_bytes, (k + 1) * self.block_bytes) for k in range(n)]
                blocks = [page * n + k for k, part in enumerate(parts) if now[part] != self._old[page][part]]
                for k in range(n):
                    self._bad[page, k] = None
                return [{"fault": "unstable_read", "pages": [page], "observable": True, "blocks": blocks}]
        return []

    def recovery_ns(self, honest_ns: int) -> int:
        """Model time from the rail's return to the drive's answer."""
        if self._since("dead"):
            return FOREVER_ns
        if not self._since("slow_recovery"):
            return honest_ns
        how = self.faults["slow_recovery"]
        return int(min(FOREVER_ns, honest_ns * how["factor"] * how["growth"] ** (self.cuts - how["after"] - 1)))

    # what the drive reports

    def health(self, counters: dict) -> dict:
        out = {name: max(0, value - self._missing.get(name, 0)) for name, value in counters.items() if name in COUNTERS}
        out["read_only"] = self._since("read_only")
        if "aged_unsaid" in self.faults:
            out["capacitor_percent"] = 100
        return counters | out

    def identity(self, known: dict) -> dict:
        if not self._since("lost_identity"):
            return known
        return known | {"model": ANOTHER_MODEL, "capacity_bytes": ANOTHER_BYTES, "drive_bytes": ANOTHER_BYTES}
