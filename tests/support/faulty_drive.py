"""A drive at block level for campaigns of power cuts: what it promises, what it does, and the truth of both. It shares
no code with the judge, nor with the simulated drive: written from the protocol of NBD. A FLUSH covers what was answered
before it was sent, FUA its own write; nothing is said of trimmed blocks, nor of the parts of a block.

Each page has the versions that it got since power returned. A version is legal after a cut unless one
that had to survive was sent after its answer. An honest drive keeps any legal version of each page, or of each sector;
one with a fault forgets more, or does something else. What pages then show that they may not is the truth of that
cut."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from support import published_faults

SECTOR = 512
READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6  # as the protocol numbers them
EPERM, EIO, EINVAL, ENOSPC = 1, 5, 22, 28
OLDER = 4000  # contents that a drive may roll back to
S_NS = 1_000_000_000

OF_FLUSH = (
    "lie_always lie_1in20 lie_coalesce lie_load lie_idle lie_every_1000th lie_first_after_on lie_dirty2M lie_dirty32M"
    " lie_aftertrim nonatomic flush_race before_flush lie_zeroes"
    " flush_own_queue"
).split()
OF_FUA = "fua_always fua_1in20 fua_unal16k fua_unal4k fua_big fua_dirtypage".split()
OF_CUT = (
    "stale_sector misdirect2 misdirect_sector lba32 rollback_region rollback_untouched torn_128k zero_page garbage_hdr"
    " unc trim_neigh ckpt_loss bitflip_cold dup_page second_cycle second_read ghost torn_illegal inversion"
    " replay"
).split()
OF_DRIVE = "readonly readonly_eio readonly_all grow shrink shrink8M allgone other_drive slow20 never".split()
OF_DRIVE += published_faults.OF_DRIVE
WITHOUT_CUT = "unstable stale_nocut bitflip_now brownout".split() + published_faults.WITHOUT_CUT
FAULTS = (*OF_FLUSH, *OF_FUA, *OF_CUT, *published_faults.OF_CUT, *OF_DRIVE, *WITHOUT_CUT)


@dataclass(eq=False)
class Version:
    """Of one page. Times are numbers of events; `data` None: trimmed."""

    data: bytes | None
    begin: int
    end: int | None = None
    owed: bool = False  # the drive has promised that it survives
    survives: bool = False  # it does


@dataclass(eq=False)
class Command:
    op: int
    offset: int
    length: int
    fua: bool
    begin: int
    versions: list[tuple[int, Version]] = field(default_factory=list)
    end: int | None = None
    queue: int = 0


class Drive:
    """`mode`: "volatile", "through" (the cache is off) or "plp" (all that it answered survives). `fault`: of FAULTS, or
    "". `lazy_trims`: a trimmed page shows its old content until it is collected, and zeros then; else anything.
    `t_ns` is the caller's clock. `exercised`: how often the fault did something. `truth`: {number of the cut: {page:
    the fault}}, 3.5 for a change between the cuts 3 and 4; `shown`: of these the pages that were read before anything
    was written over them; `events`: {number of the cut: what is wrong with the drive itself}."""

    def __init__(
        self,
        size: int,
        seed: int = 1,
        fault: str = "",
        mode: str = "volatile",
        lazy_trims: bool = False,
        page_bytes: int = 4096,
    ):
        self.size = self.capacity = size
        self.page_bytes = page_bytes
        self.mode, self.fault, self.lazy_trims = mode, fault, lazy_trims
        self.now = np.zeros(size, np.uint8)  # what a read returns
        self.chance, self.wrong = random.Random(f"{seed} drive"), random.Random(f"{seed} fault")
        self.t_ns = self.tick = self.cuts = self.flushes = self.exercised = 0
        self.pages: dict[int, list[Version]] = {}  # versions since power returned
        self.base: dict[int, bytes] = {}  # of these pages, before them
        self.trimmed: set[int] = set()  # nothing durable was written since
        self.answered: list[Command] = []  # writes that no FLUSH has covered
        self.unkept: list[Command] = []  # writes that would be lost
        self.under_way: set[Command] = set()
        self.last_flush = self.flushed_at_ns = 0
        self.trims = 0
        self.older: deque[tuple[int, bytes]] = deque(maxlen=OLDER)  # page, a content of it that was replaced
        self.bad: dict[int, int] = {}  # page -> reads that fail
        self.twice: dict[int, bytes] = {}  # page -> what it shows from its second read on
        self.delayed: dict[int, bytes] = {}  # page -> what it shows after the next cut
        self.truth: dict[float, dict[int, str]] = {}
        self.shown: dict[float, set[int]] = {}
        self.events: dict[int, str] = {}
        self.pending: dict[int, float] = {}  # damaged page, not read yet -> cut
        self.by_itself: set[int] = set()  # pages that changed since the last cut, without a command
        self.later: list[Command] = []
        self.journal: dict[int, bytes] = {}  # pages with what they held before the session
        self.refuses, self.ready_s, self.away = 0, 0.1, False
        self.spoilt: set[int] = set()  # pages that an erase has left unreliable

    # ---- commands

    def begin(self, op: int, offset: int, length: int, fua: bool = False, data: bytes | None = None) -> Command:
        """The drive gets a command; end() is its answer."""
        self.tick += 1
        command = Command(op, offset, length, fua, self.tick)
        data = bytes(length) if op == ZEROES else data
        if op in (WRITE, TRIM, ZEROES) and not self._refusal(command):
            assert offset % self.page_bytes == length % self.page_bytes == 0 <= offset and offset + length <= self.size
            for page in range(offset // self.page_bytes, (offset + length) // self.page_bytes):
                at = page * self.page_bytes - offset
                self._put(command, page, None if data is None else data[at : at + self.page_bytes])
            self.trims += op == TRIM
        self.under_way.add(command)
        if self.fault in ("stale_nocut", "bitflip_now") and self.wrong.random() < 0.002:
            self._change_by_itself()
        return command

    def _refusal(self, command: Command) -> int:
        """The errno for a write or a trim; 0: it is carried out."""
        return self.refuses or ENOSPC * (command.offset + command.length > self.capacity)

    def _change_by_itself(self) -> None:
        """A page changes while the drive has its power."""
        page, data = self.wrong.choice(self.older or [(0, bytes(self.page_bytes))])
        if page not in self.pages and page not in self.trimmed:
            self.changed_by_itself(page, data if self.fault == "stale_nocut" else self._flipped(page))

    def changed_by_itself(self, page: int, data: bytes) -> None:
        """A page shows this from now on, and nobody wrote it."""
        if data != self._page(page):
            self._show(page, data)
            self.by_itself.add(page)
            self.exercised += 1
            self.truth.setdefault(self.cuts + 0.5, {})[page] = self.fault
            self.pending[page] = self.cuts + 0.5

    def _put(self, command: Command, page: int, data: bytes | None) -> None:
        if page not in self.pages:
            self.pages[page], self.base[page] = [], self._page(page)
            self.older.append((page, self.base[page]))
        version, of = Version(data, command.begin), self.pages[page]
        under = bool(of) and of[-1].end is None and self.chance.random() < 0.3  # both are under way: either may win
        of.insert(len(of) - under, version)
        command.versions.append((page, version))
        for marks in (self.pending, self.bad, self.twice):
            marks.pop(page, None)  # what was damaged and never read is overwritten
        self.by_itself.discard(page)
        if under:
            return
        if data is not None:
            self._show(page, data)
        elif not self.lazy_trims or self.chance.random() < 0.3:
            self._show(page, self._of_trimmed(page))

    def end(self, command: Command) -> int:
        """The answer goes out: 0 or an errno."""
        self.tick += 1
        command.end = self.tick
        self.under_way.discard(command)
        if command.op == FLUSH and self.refuses and self.fault == "readonly_all":
            return self.refuses
        if command.op == FLUSH:
            self._flush(command)
        elif command.op in (WRITE, TRIM, ZEROES):
            if error := self._refusal(command):
                return error
            promised = command.fua or self.mode != "volatile"
            for _, version in command.versions:
                version.end, version.owed = command.end, promised
            if promised and not self._fua_fails(command):
                self._keep([command])
            else:
                self.unkept.append(command)
            self.answered.append(command)
        return 0

    def _keep(self, commands: list[Command]) -> None:
        for command in commands:
            for _, version in command.versions:
                version.survives = True

    def _flush(self, flush: Command) -> None:
        """All that was answered before the FLUSH was sent survives."""
        self.flushes += 1
        before = lambda of: [command for command in of if command.end is not None and command.end < flush.begin]
        covered, real = before(self.answered), before(self.unkept)
        rest = set(self.answered) - set(covered)
        self.answered = [command for command in self.answered if command in rest]
        for command in covered:
            for _, version in command.versions:
                version.owed = True
        flushed = self._flushed(list(real), flush)
        self.exercised += flushed != real
        self._keep(flushed)
        gone = set(flushed)
        self.unkept = [command for command in self.unkept if command not in gone]
        self.last_flush, self.flushed_at_ns, self.trims = self.tick, self.t_ns, 0

    def _flushed(self, real: list[Command], flush: Command) -> list[Command]:
        """What of these writes the FLUSH keeps."""
        dirty = sum(command.length for command in real)
        lies = {
            "lie_always": True,
            "lie_1in20": self.wrong.random() < 0.05,
            "lie_coalesce": self.tick - self.last_flush < 30 and self.last_flush > 0,
            "lie_load": len(self.under_way) >= 32,
            "lie_idle": self.t_ns - self.flushed_at_ns > S_NS,
            "lie_every_1000th": self.flushes % 1000 == 0,
            "lie_first_after_on": self.last_flush == 0,
            "lie_dirty2M": dirty > 2 << 20,
            "lie_dirty32M": dirty > 32 << 20,
            "lie_aftertrim": self.trims > 0,
        }
        if lies.get(self.fault):
            return []
        if self.fault == "lie_zeroes":
            return [command for command in real if command.op != ZEROES]
        if self.fault == "flush_own_queue":
            return [command for command in real if command.queue == flush.queue]
        if self.fault == "nonatomic":
            return real[: len(real) // 2]
        if self.fault == "flush_race":
            return real[:-3]
        if self.fault == "before_flush":  # its work begins with its answer, and takes its time
            real, self.later = self.later, real
        return real

    def _fua_fails(self, command: Command) -> bool:
        if not command.fua:
            return False
        page = command.offset // self.page_bytes
        fails = {
            "fua_always": True,
            "fua_1in20": self.wrong.random() < 0.05,
            "fua_unal16k": command.offset % 16384 > 0,
            "fua_unal4k": command.offset % 4096 > 0,
            "fua_big": command.length > 4096,
            "fua_dirtypage": any(
                version.begin < command.begin and not version.survives for version in self.pages.get(page, [])
            ),
        }.get(self.fault, False)
        self.exercised += fails
        return fails

    def read(self, offset: int, length: int) -> bytes | int:
        """The bytes, or an errno."""
        if offset + length > self.capacity:
            for page in range(offset // self.page_bytes, -(-(offset + length) // self.page_bytes)):
                self._noticed(page)
            return EINVAL
        for page in range(offset // self.page_bytes, -(-(offset + length) // self.page_bytes)):
            of = self.pages.get(page)
            if of and all(version.end is not None for version in of):  # who has read it knows which was the last
                of[-1].begin = max(of[-1].begin, self.tick)
                of[-1].end = max(of[-1].end, of[-1].begin + 1)
        watched = self.pending or self.bad or self.twice
        for page in range(offset // self.page_bytes, -(-(offset + length) // self.page_bytes)) if watched else ():
            self._noticed(page)
            if page in self.bad:
                return EIO
            if page in self.twice:
                if page in self.delayed:
                    self._show(page, self.twice.pop(page))
                    self.truth.setdefault(self.cuts + 0.5, {})[page] = self.fault
                    self.pending[page] = self.cuts + 0.5
                    self.exercised += 1
                    self._noticed(page)
                    del self.delayed[page]
                else:
                    self.delayed[page] = self.twice[page]
        data = self.now[offset : offset + length].tobytes()
        if self.fault == "read_disturb":
            for page in range(offset // self.page_bytes, -(-(offset + length) // self.page_bytes)):
                published_faults.disturb(self, page)
        if self.fault == "unstable" and self.wrong.random() < 0.01:
            self.exercised += 1
            flipped, at = bytearray(data), self.wrong.randrange(length)
            flipped[at] ^= 1
            self.truth.setdefault(self.cuts + 0.5, {})[(offset + at) // self.page_bytes] = self.fault
            return bytes(flipped)
        return data

    def _noticed(self, page: int) -> None:
        if page in self.pending:
            self.shown.setdefault(self.pending.pop(page), set()).add(page)

    # ---- power

    def dip(self) -> None:
        """The supply dips, and the drive keeps its power."""
        if self.fault == "brownout":
            for _ in range(4):
                self._change_by_itself()

    def cut(self) -> None:
        """The power goes: of each page any version is left that is not older than a kept one."""
        self.cuts += 1
        touched = set(self.pages)
        for page in touched:
            self._show(page, self._survivor(page))
        for page in self.trimmed - touched:
            if self.chance.random() < 0.1:  # collected now
                self._show(page, self._of_trimmed(page))
        by_reads = self.fault in ("second_read", "weak_program")
        shown = {page: self._page(page) for page in self.delayed} if not by_reads else {}
        late = {page: data for page, data in self.delayed.items() if page not in touched} if shown else {}
        for page, data in late.items():
            self._show(page, data)
        self.delayed = {} if shown else self.delayed
        damages = self.fault in OF_CUT or self.fault in published_faults.OF_CUT
        changed = self._damage(touched) if damages else set()
        changed |= {page for page, data in late.items() if shown[page] != data}
        self.exercised += bool(changed)
        self.by_itself = set()
        self._of_drive(changed)
        self.truth[self.cuts] = {page: self.fault or "?" for page in touched | changed if not self._legal(page)}
        self.pending |= dict.fromkeys(self.truth[self.cuts], self.cuts)
        for page, of in self.pages.items():
            durable = max((version.begin for version in of if version.owed and version.data is not None), default=-1)
            trims = [
                version for version in of if version.data is None and (version.end is None or version.end > durable)
            ]
            self.trimmed.discard(page) if durable >= 0 else None
            self.trimmed |= {page} if trims else set()
        self.pages, self.base, self.answered, self.unkept, self.under_way = {}, {}, [], [], set()
        self.last_flush, self.trims, self.later = 0, 0, []

    def versions(self, page: int, flag: str) -> list[Version]:
        """What the page may show after a cut: nothing that was answered before a version with this flag was sent."""
        of = self.pages[page]
        last = max((version.begin for version in of if getattr(version, flag) and version.data is not None), default=-1)
        base = [] if last >= 0 else [Version(self.base[page], 0, 0)]
        return base + [version for version in of if version.end is None or version.end > last]

    def _survivor(self, page: int) -> bytes:
        """The order of versions that overlap in time is the drive's own; a kept one ends all before it."""
        if (allowed := published_faults.survivor(self, page)) is not None:
            return allowed
        of = [Version(self.base[page], 0, 0), *self.pages[page]]
        survivors = [i for i, version in enumerate(of) if version.survives and version.data is not None]
        of = of[survivors[-1] :] if survivors else of
        keen = self.chance.random()
        chosen = of[0] if keen < 0.4 else of[-1] if keen < 0.6 else self.chance.choice(of)
        out = self._of_trimmed(page) if chosen.data is None else chosen.data
        others = [version.data for version in of if version.data is not None and version is not chosen]
        if (
            self.page_bytes > SECTOR and others and self.chance.random() < 0.1
        ):  # NBD promises of no block that it is whole
            at = SECTOR * self.chance.randrange(1, self.page_bytes // SECTOR)
            out = out[:at] + self.chance.choice(others)[at:]
        return out

    def _of_trimmed(self, page: int) -> bytes:
        kind = 0.0 if self.lazy_trims else self.chance.random()
        if kind < 0.6:
            return bytes(self.page_bytes)
        return (
            b"\xff" * self.page_bytes
            if kind < 0.7
            else self.chance.randbytes(self.page_bytes)
            if kind < 0.8
            else self._page(page)
        )

    def _legal(self, page: int) -> bool:
        """Whether each sector is that of some version that the page may show; of a page that nobody wrote: no."""
        if (page + 1) * self.page_bytes > self.capacity:
            return False
        if page in self.bad:
            return False
        of = self.versions(page, "owed") if page in self.pages else []
        durable = any(version.owed and version.data is not None for version in self.pages.get(page, []))
        if page in self.trimmed and not durable or any(version.data is None for version in of):
            return True
        data = self._page(page)
        parts = range(0, self.page_bytes, SECTOR)
        return all(
            any(data[at : at + SECTOR] == version.data[at : at + SECTOR] for version in of if version.data)
            for at in parts
        )

    # ---- what a fault does when the power goes

    def _damage(self, touched: set[int]) -> set[int]:
        """The pages that the fault changes at this cut."""
        rng = self.wrong
        durable = sorted(
            page for page in touched if any(version.owed for version in self.pages[page]) and self._data(page)
        )
        open_ = sorted(page for page in touched if any(version.end is None for version in self.pages[page]))
        before = {}
        change = lambda page, data: (before.setdefault(page, self._page(page)), self._show(page, data))
        last = self.size // self.page_bytes - 1
        cold = sorted({page for page, _ in self.older if page not in touched})
        if self.fault in published_faults.OF_CUT:
            for page, data in published_faults.damage(self, touched, durable, open_, cold).items():
                if data:
                    change(page, data)
                else:
                    self.bad[page] = 1 << 30
            unread = set(self.bad) if self.fault == "third_unreadable" and self.cuts == 8 else set()
            return unread | {page for page, data in before.items() if data != self._page(page)}
        one = rng.choice(durable) if durable else None
        if self.fault == "ghost":
            for page in open_:
                newest = self.pages[page][-1].data
                if newest is not None and newest != self._page(page) and len(self.delayed) < 4:
                    self.delayed[page] = newest
        elif self.fault == "second_cycle":
            for page in open_[:2]:
                self.delayed[page] = self._flipped(page)
        elif self.fault == "second_read" and one is not None:
            self.twice[one] = self._flipped(one)
        elif self.fault == "rollback_untouched":
            for page in rng.sample(cold, min(16, len(cold))):
                change(page, next(data for other, data in self.older if other == page))
        elif self.fault == "ckpt_loss":
            for page in rng.sample(cold, min(8, len(cold))):
                change(page, next(data for other, data in self.older if other == page))
        elif self.fault == "bitflip_cold":
            page = rng.randrange(last)
            change(page, self._flipped(page)) if page not in touched and self._page(page).strip(b"\0") else None
        elif self.fault == "trim_neigh":
            edges = [page for page in touched if self.pages[page][-1].data is None and page + 1 not in touched]
            for page in edges[:4]:
                change(min(page + 1, last), bytes(self.page_bytes))
        elif self.fault == "replay":  # its journal of the start before is still there, as long as nothing was written
            for page, data in self.journal.items() if not touched else ():
                change(page, data)
            self.journal = {page: self.base[page] for page in durable[:4]}
        elif one is None:
            return set()
        elif self.fault == "stale_sector":
            at = SECTOR * rng.randrange(self.page_bytes // SECTOR)
            data, old = self._page(one), self.base[one]
            change(one, data[:at] + old[at : at + SECTOR] + data[at + SECTOR :])
        elif self.fault == "torn_illegal":
            data, old = self._page(one), self.base[one]
            change(one, data[: 3 * SECTOR] + old[3 * SECTOR : 5 * SECTOR] + data[5 * SECTOR :])
        elif self.fault == "misdirect2":
            data = self._page(one)
            change(one, self.base[one])
            change(min(one + 2, last), data)
        elif self.fault == "misdirect_sector":
            data = self._page(one)
            change(one, data[-SECTOR:] + data[:-SECTOR])
        elif self.fault == "lba32":
            change(one ^ (last + 1) // 2, self._page(one))
            change(one, self.base[one])
        elif self.fault == "rollback_region":
            for page in range(one // 64 * 64, min(one // 64 * 64 + 64, last)):
                older = self.base.get(page) or next((data for other, data in self.older if other == page), None)
                change(page, older) if older else None
        elif self.fault == "torn_128k":
            for page in durable[len(durable) // 2 :][:32]:
                change(page, self.base[page])
        elif self.fault == "zero_page":
            change(one, bytes(self.page_bytes))
        elif self.fault == "garbage_hdr":
            data = self._page(one)
            change(one, data[:64] + rng.randbytes(self.page_bytes - 64))
        elif self.fault == "unc":
            self.bad[one] = 1 << 30
            return {one}
        elif self.fault == "dup_page":
            change(one, self._page(rng.choice(durable + cold)))
        elif self.fault == "inversion":
            of = [version.data for version in self.pages[one] if version.data]
            change(one, of[-2] if len(of) > 1 else self.base[one])
        return {page for page, data in before.items() if data != self._page(page)}

    def _data(self, page: int) -> bool:
        return all(version.data is not None for version in self.pages[page])

    def _of_drive(self, changed: set[int]) -> None:
        """What happens to the drive as a whole, at its third cut or from it on."""
        if self.cuts != 3 or self.fault not in OF_DRIVE:
            return
        self.events[self.cuts] = self.fault
        self.exercised += 1
        if self.fault in ("readonly", "readonly_eio", "readonly_all"):
            self.refuses = EPERM if self.fault == "readonly" else EIO
        elif self.fault in ("grow", "shrink", "shrink8M"):
            self.capacity = {"grow": 2 * self.size, "shrink": self.size // 2, "shrink8M": 8 << 20}[self.fault]
            changed |= set(range(self.capacity // self.page_bytes, self.size // self.page_bytes))
        elif self.fault in ("allgone", "other_drive"):
            changed |= set(np.flatnonzero(self.now.reshape(-1, self.page_bytes).any(1)).tolist())  # not of zeroes
            self.now[:] = 0
        elif self.fault in published_faults.OF_DRIVE:
            changed |= published_faults.of_drive(self)
        elif self.fault == "slow20":
            self.ready_s = 20.0
        elif self.fault == "never":
            self.away = True

    def power_on(self) -> float | None:
        """Seconds until it answers; None: never."""
        ready_s, self.ready_s = self.ready_s, 0.1
        return None if self.away else ready_s

    # ---- bytes

    def _page(self, page: int) -> bytes:
        return self.now[page * self.page_bytes : (page + 1) * self.page_bytes].tobytes()

    def _show(self, page: int, data: bytes) -> None:
        self.now[page * self.page_bytes : (page + 1) * self.page_bytes] = np.frombuffer(data, np.uint8)

    def _flipped(self, page: int) -> bytes:
        data = bytearray(self._page(page))
        data[self.wrong.randrange(self.page_bytes)] ^= 1 << self.wrong.randrange(8)
        return bytes(data)
