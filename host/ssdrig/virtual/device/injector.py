"""The faults of one SIMULATED drive at work: when each strikes, and its effects visible to a host, for the truth.

Each draw depends on the seed, the number of the cut and the fault, so a cut can be made again. The faults of contents
are in faultmodels.py; here are those of the drive as a whole, and what lasts from one cut to the next.

The file in which a SIMULATED drive's faults outlive its server: numbers as JSON, then the contents of pages."""

import errno
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssdrig.base.errors import UsageError
from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import faultmodels, observable, powerfaults
from ssdrig.virtual.device.faultmodels import PAGE_BYTES, ZEROS, Hit, Scene
from ssdrig.virtual.device.observable import NEVER, Change, Read
from ssdrig.virtual.flash import stored_arrays

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
    np.savez(folder / FILE, said=np.frombuffer(text, np.uint8), blob=np.frombuffer(b"".join(blob), np.uint8))


def load(folder: Path, pages: int) -> tuple[dict, dict[str, Keyed]]:
    """(numbers, cells) as save() was given them. Raises OSError, ValueError, KeyError, zipfile.BadZipFile.

    pages: of the drive; a page that it does not have is a ValueError."""
    with stored_arrays.opened(folder / FILE) as stored:
        document = json.loads(stored_arrays.array(stored, "said", np.uint8, None).tobytes())
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
        for name, model in faultmodels.BEFORE_LOSS.items():
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
        for name, model in faultmodels.AFTER_LOSS.items():
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
        for page in rng.permutation(np.array(free, np.int64))[: faultmodels.TRIES].tolist():
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
