"""What a power cut takes: for each page the version that the medium holds, and the truth about it.

Of the versions of a page the newest goes first, until one that is on NAND (or that capacitors save). A version that
the write cache had not accepted was under way: it is there or not, by a seeded draw. With capacitors a command is there
as a whole or not at all, as in Identify; otherwise each page on its own."""

from dataclasses import dataclass

import numpy as np

from ssdrig.virtual.flash import versions

SECTOR_BYTES = 512
LISTED = 500  # pages of a cut that its line of the truth names


@dataclass(frozen=True)
class Chances:
    """The choices a drive has at a cut. in_flight_new: a version under way is there. cached_new: so is one that was
    only in the cache. torn: of one under way the first sectors are there, where logical blocks are that small and
    nothing means that a page is whole."""

    in_flight_new: float = 0.5
    cached_new: float = 0.0
    torn: float = 0.0


class Cut:
    """A cut of `device` at t_ns of model time; `lead_ns` of model time that replies may have left early.

    `versions` may be changed before lose(): accepted_ns and durable_ns. `honest_durable_ns` is the original."""

    def __init__(self, device, t_ns: int, lead_ns: int, number: int):
        drive, self.store, self.plp = device.drive, device.store, bool(device.preset.plp)
        self.number, self.t_ns, self.chances = number, t_ns, device.chances
        whole = self.plp or self.store.min_block > SECTOR_BYTES
        self._torn = 0.0 if whole else self.chances.torn
        self._reached_ns = t_ns + (lead_ns if self.plp else 0)  # an acknowledgement of a drive with capacitors holds
        self.rng, self.fault_rng = (np.random.default_rng([device.seed, number, what]) for what in (0, 1))
        self.versions, self.flushes = versions.session(drive, device.since, device.store.replaced.trimmed)
        self.honest_durable_ns = self.versions["durable_ns"].copy()
        self.map_updates = versions.map_updates(drive)
        self.programs, self.erases = versions.programs(drive, t_ns), versions.erases(drive, t_ns)
        self.announced = False
        self.faults: list[dict] = []
        self.lost: dict[int, list] = {}  # page -> [versions lost, why]
        self.pages_lost = self.kept_in_flight = self.lost_in_flight = 0
        self._was: dict[int, bytes] = {}  # page -> content at the cut, for pages that lose() changed
        self._rows: dict[int, list[int]] | None = None

    @property
    def in_flight(self) -> np.ndarray:
        """bool[n]: versions that the drive had not accepted."""
        v = self.versions
        return (v["done_ns"] if self.plp else v["accepted_ns"]) > self._reached_ns

    def rows_of(self, page: int) -> list[int]:
        """Its versions, oldest first."""
        if self._rows is None:
            self._rows = {}
            for i, at in enumerate(self.versions["page"].tolist()):
                self._rows.setdefault(at, []).append(i)
        return self._rows.get(page, [])

    def before(self, i: int) -> bytes:
        """The cell of its page before version i."""
        return self.store.replaced.cell(self.versions[i])

    def after(self, i: int) -> bytes:
        """The cell of its page with version i."""
        page = int(self.versions["page"][i])
        newer = [j for j in self.rows_of(page) if j > i]
        if newer:
            return self.before(newer[0])
        return self._was.get(page) or self.store.load(page)

    def legal(self, page: int) -> list[bytes]:
        """Every cell that an honest drive may show of a page after this cut, newest first; torn ones not among them."""
        rows = self.rows_of(page)
        if not rows:
            return [self.store.load(page)]
        cells = []
        for i in reversed(rows):
            cells.append(self.after(i))
            if self.honest_durable_ns[i] <= self._reached_ns:
                return cells
        return [*cells, self.before(rows[0])]

    def lose(self) -> None:
        """Put back what the medium holds."""
        v = self.versions
        survives = v["durable_ns"] <= self._reached_ns
        in_flight, page, command = self.in_flight.tolist(), v["page"].tolist(), v["command"].tolist()
        perhaps = np.isin(v["page"], v["page"][~survives])
        draws: dict[int, bool] = {}  # by command
        settled: set[int] = set()
        goes: dict[int, list[int]] = {}
        torn: dict[int, list[tuple[int, int]]] = {}
        for i in np.flatnonzero(perhaps)[::-1].tolist():
            at = page[i]
            if at in settled:
                continue
            if survives[i]:
                settled.add(at)
            elif in_flight[i] and self._there(command[i], draws):
                settled.add(at)
                self.kept_in_flight += 1
                if self.plp:  # its page has the sectors of earlier commands that it did not write
                    draws |= {command[j]: True for j in self.rows_of(at) if j < i and in_flight[j]}
            elif not in_flight[i] and self.chances.cached_new and self.rng.random() < self.chances.cached_new:
                settled.add(at)
            else:
                goes.setdefault(at, []).append(i)
                if in_flight[i] and self._torn and not v["trim"][i] and self.rng.random() < self._torn:
                    torn.setdefault(at, []).append((i, int(self.rng.integers(1, 8)) * SECTOR_BYTES))
        for at, rows in goes.items():
            self._put_back(at, rows, torn.get(at, []))
            cached = [i for i in rows if not in_flight[i]]
            why = "torn" if at in torn else "trim" if v["trim"][rows[-1]] else "cache" if cached else "in flight"
            self.lost[at] = [len(rows), why]
            self.pages_lost += bool(cached)
            self.lost_in_flight += len(rows) - len(cached)

    def _there(self, command: int, draws: dict[int, bool]) -> bool:
        if not self.plp:
            return bool(self.rng.random() < self.chances.in_flight_new)
        if command not in draws:
            draws[command] = bool(self.rng.random() < self.chances.in_flight_new)
        return draws[command]

    def _put_back(self, page: int, rows: list[int], torn: list[tuple[int, int]]) -> None:
        """Take these versions of a page back, newest first; of the torn ones the first bytes stay."""
        cell = self.before(rows[-1])
        for i, bytes_there in reversed(torn):
            cell = self.after(i)[:bytes_there] + cell[bytes_there:]
        self._was[page] = self.store.load(page)
        self.store.put(page, cell)

    def record(self) -> dict:
        """The line of the truth, except the times."""
        lost = [[page, *what] for page, what in self.lost.items()]
        return {
            "cut": self.number,
            "model_t_ns": self.t_ns,
            "versions": len(self.versions),
            "pages_lost": self.pages_lost,
            "in_flight": int(self.in_flight.sum()),
            "kept_in_flight": self.kept_in_flight,
            "lost_in_flight": self.lost_in_flight,
            "lost": lost[:LISTED],
            "lost_left_out": max(0, len(lost) - LISTED),
            "programs": self.programs,
            "erases": self.erases,
            "map_updates": self.map_updates,
            "faults": self.faults,
        }
