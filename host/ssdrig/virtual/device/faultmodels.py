"""What a fault does to the contents of the SIMULATED drive at a cut (the table is powerfaults.py). Each model takes a
Scene and its parameters, changes pages, and returns a Hit; None where the cut offers nothing to hurt."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ssdrig.virtual.flash import ftl, versions

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
