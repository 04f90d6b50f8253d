"""A virtual SSD: the arrays of the simulation, their set-up, and what may be asked of it. SIMULATED.

Model time is in ns since the start of the feed's bin 0. Nothing here reads a clock: the caller passes the time.
"""

import json
import mmap
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ssdrig.base import kernels
from ssdrig.base.errors import DriveError, UsageError
from ssdrig.base.files import replacing
from ssdrig.virtual.flash import aged, books, commands, ftl, ledger, nand, power_states, purge, stored_arrays, workload
from ssdrig.virtual.flash.constants import NJ, PAGE, constants, ring_slots
from ssdrig.virtual.flash.feed import BIN_NS, BINS
from ssdrig.virtual.flash.presets import Preset


def _spare_area(pages: int, folder) -> np.ndarray:
    """uint32[pages] in an unnamed file: on disk, not in anonymous memory, gone with the process."""
    with tempfile.TemporaryFile(dir=folder or "/var/tmp") as f:
        try:
            os.posix_fallocate(f.fileno(), 0, pages * 4)
        except OSError as e:
            raise DriveError(
                f"{pages * 4} free bytes for the spare area in {folder or '/var/tmp'}",
                str(e),
                "free space or name another folder",
            ) from e
        return np.frombuffer(mmap.mmap(f.fileno(), pages * 4), dtype=np.uint32)


# the state's words that are times
FORGOTTEN_MS = 600_000  # of the energy history, per call
TIMES = (
    *(nand.S_CPU, nand.S_LINK, nand.S_ACCEPT, nand.S_DURABLE, nand.S_ACTIVE_UNTIL, nand.S_LAST_HOST, nand.S_LAST_END),
    *(nand.S_IDLE_FROM, nand.S_LAID_SINCE),
)


class VirtualDrive:
    """One drive. `pages` logical pages of 4 KiB; `raw_nand_bytes` of NAND for them."""

    def __init__(
        self,
        preset: Preset,
        *,
        capacity_bytes: int | None = None,
        latency: bool = True,
        t_ns: int = 0,
        seed: int = 1,
        ring: np.ndarray | None = None,
        oob_dir=None,
    ):
        p = self.preset = preset
        self.capacity_bytes = p.capacity_bytes if capacity_bytes is None else capacity_bytes
        self.pages, units, self.raw_nand_bytes = p.geometry(capacity_bytes)
        if p.cache_bytes // PAGE < 2 * p.program_pages:
            raise UsageError(
                f"a write cache of at least {2 * p.program_pages} pages",
                f"{p.cache_bytes} bytes",
                "choose a larger cache_bytes",
            )
        blocks = units + p.slc_blocks
        self.l2p = np.full(self.pages, ftl.NONE, np.uint32)
        self.p2l = _spare_area(blocks * p.block_pages, oob_dir)
        self.bits = np.zeros(blocks * -(-p.block_pages // 64), np.uint64)
        self.blk = np.zeros((blocks, ftl.ROW), np.int32)
        self.lists = np.full(p.block_pages + 1 + 2 * units, -1, np.int32)
        self.lists[p.block_pages + 1 : p.block_pages + 1 + units] = np.arange(units)
        self.m = constants(p, self.pages, units, latency, ring is not None)
        self.die = np.zeros((max(p.dies, p.channels), nand.D_COLUMNS), np.int64)
        slots = ring_slots(p)
        self.cache = np.zeros((slots, 3), np.int64)
        self.log = np.zeros((slots, ftl.L_ROW), np.int64)
        self.ring = ring if ring is not None else np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
        self.rng = np.array([seed], np.uint64)
        self.m[nand.S_SEED] = seed
        self.unreadable: set[int] = set()  # logical pages whose data is lost: until they are written or trimmed
        self._levels: dict[int, list[power_states.Level]] = {}
        with kernels.compiling("flash"):  # all of them before time matters; nothing changes yet
            self._start(t_ns)
            purge.format_kernel(self._arrays, t_ns)
            nand.draw_kernel(self._arrays, t_ns, t_ns + 1, 0, nand.E_BOOT)
            commands.flush_kernel(self._arrays, self._t)
            aged.levels_kernel(self._arrays, np.zeros(0, np.uint8))
            self.submit((), (), (), (), t_ns)
            self.follow(0, power_states.default_apst(p), t_ns)

    def _now(self, t_ns: int) -> None:
        """It is t_ns and nothing is under way."""
        m = self.m
        self.die[:] = 0
        self.cache[:] = 0
        for i in TIMES:
            m[i] = t_ns
        m[nand.S_FILLED] = m[nand.S_SLUMBER_FROM] = m[nand.S_SEALED] = t_ns // BIN_NS
        m[nand.S_TABLE] = power_states.OPERATIONAL
        self._t = t_ns

    def _start(self, t_ns: int) -> None:
        """Time begins at t_ns: no energy history."""
        self._now(t_ns)
        self.m[nand.K_HISTORY_MS] = t_ns // 1_000_000
        self.history = np.zeros(60_000, np.uint32)  # nJ per ms
        self._arrays = (
            self.l2p,
            self.p2l,
            self.bits,
            self.blk,
            self.lists,
            self.m,
            self.die,
            self.cache,
            self.log,
            self.ring,
            self.history,
        )
        commands.background_kernel(self._arrays, t_ns)

    def _reserve_history(self, t_ns: int) -> None:
        need = t_ns // 1_000_000 - self.m[nand.K_HISTORY_MS] + 1
        if need >= len(self.history):
            grown = np.zeros(int(need * 3 // 2), np.uint32)
            grown[: len(self.history)] = self.history
            self.history = grown
            self._arrays = (*self._arrays[:-1], grown)

    def forget_energy(self, before_ms: int) -> None:
        """Energy of model time before that is not needed any more; done for ten minutes or more per call."""
        n = min(before_ms - int(self.m[nand.K_HISTORY_MS]), len(self.history))
        if n >= FORGOTTEN_MS:
            self.history[:-n] = self.history[n:].copy()
            self.history[-n:] = 0
            self.m[nand.K_HISTORY_MS] += n

    def _check(self) -> None:
        if self.m[nand.S_BROKEN]:
            raise DriveError("a free block", "none left", "report this: the collector let the drive run full")

    def submit(self, op, page, npages, flags, t_ns: int) -> np.ndarray:
        """Execute a batch that arrived at t_ns. op, flags uint8[n]; page, npages int64[n]; op as in NBD. t_ns never
        goes back.

        Returns int64[n] completion times, all t_ns with the latency model off. DriveError if a command is outside
        the drive or has an unknown op (the others of the batch were executed).
        """
        if t_ns - self._t >= 5_000_000:
            self.advance(t_ns)
        done = np.empty(len(op), np.int64)
        refused = commands.submit(
            self._arrays,
            np.array(op, np.uint8),
            np.array(page, np.int64),
            np.array(npages, np.int64),
            np.array(flags, np.uint8),
            t_ns,
            done,
        )
        if refused:
            raise DriveError(f"known commands inside {self.pages} pages", "others in the batch", "check before submit")
        self._check()
        return done

    def advance(self, t_ns: int) -> None:
        """Background work, static power up to t_ns + 250 ms, history up to t_ns. To be called at least every 10 ms."""
        self._reserve_history(t_ns)
        step = 200_000_000 if self.m[nand.K_LIVE] == 0 else 1 << 62
        while t_ns - self._t > step:  # no reader in real time: leave no gap
            self._t += step
            commands.background_kernel(self._arrays, self._t)
        self._t = max(self._t, t_ns)
        commands.background_kernel(self._arrays, t_ns)
        self._check()

    def format(self, t_ns: int) -> int:
        """Unmap and erase everything (NVMe Format NVM, ATA secure erase). Returns when the last erase ends, ns."""
        self.advance(t_ns)
        self.unreadable.clear()
        return int(purge.format_kernel(self._arrays, t_ns))

    def follow(self, state: int, apst: Mapping[int, tuple[int, int]], t_ns: int) -> int:
        """From t_ns on the drive is in this power state, and goes to others on its own as `apst` says ({state: (ms,
        state)}, power_states.schedule). Returns when it is there or on its way, ns. A non-operational state waits for
        the write cache to be empty and lasts until the next I/O."""
        self.advance(t_ns)
        sent = not power_states.states(self.preset)[state].operational
        levels = power_states.schedule(self.preset, state, apst)
        if sent:
            commands.flush_kernel(self._arrays, t_ns)
        table = power_states.SENT if sent else power_states.OPERATIONAL
        self._levels[table] = levels
        return int(power_states.follow_kernel(self._arrays, t_ns, table, power_states.rows(levels)))

    def power_state(self, t_ns: int) -> int:
        """In which power state the drive is, or which it is entering. t_ns: not before the last advance()."""
        m = self.m
        levels = self._levels[m[nand.S_TABLE]]
        idle_ns = t_ns - int(m[nand.S_LAID_SINCE])
        asleep = m[nand.S_SLUMBER_FROM] < m[nand.S_FILLED]
        return [level.state for level in levels if asleep and level.from_ns <= idle_ns or level is levels[0]][-1]

    def throttle(self, share: float) -> None:
        """From now on the NAND works at this share of its speed; each operation takes the same energy."""
        values = constants(self.preset, self.pages, int(self.m[nand.K_UNITS]), True, True)
        for i in (nand.K_TR, nand.K_TPROG, nand.K_TPROG_SLC, nand.K_TBERS, nand.K_CHANNEL_PAGE_NS):
            self.m[i] = round(values[i] / share)

    def power_off(self, t_ns: int) -> None:
        """The supply is gone at t_ns (from the start of its bin): no energy after it, programs under way are not
        carried on. The page map stays as it was; putting back old content is the matter of who keeps the data
        (versions.py)."""
        self.advance(t_ns)
        m, now = self.m, t_ns // BIN_NS
        later = (self.ring[:, 0] - np.uint32(now & 0xFFFFFFFF)) < BINS // 2  # wraps like the index of the bin
        m[nand.N_CUT_NJ] += int(self.ring[later, 1].sum(dtype=np.uint64))
        self.ring[later] = 0xFFFFFFFF, 0
        for s in (0, nand.STREAM_WORDS):
            m[nand.S_START + s] = m[nand.S_OFF + s]
            m[nand.S_EXTRA + s] = m[nand.S_PENDING + s] = m[nand.S_READY + s] = 0

    def power_on(self, t_ns: int) -> None:
        """The supply is back at t_ns: nothing is under way, the cache is empty. No advance() or submit() in between."""
        self._reserve_history(t_ns)
        self._now(t_ns)
        commands.background_kernel(self._arrays, t_ns)

    def draw(self, start_ns: int, end_ns: int, joules: float, counter: int) -> None:
        """Draw this much more, evenly over [start, end), not before the last advance(); counter: nand.E_BOOT or
        nand.E_CHARGE."""
        nand.draw_kernel(self._arrays, start_ns, end_ns, round(joules / NJ), counter)

    def pe_counts(self) -> np.ndarray:
        """int32[blocks]: erases of each block since new."""
        return self.blk[:, ftl.PE].copy()

    def energy_between(self, t0_ns: int, t1_ns: int) -> float:
        """Energy drawn in [t0, t1) of model time, J, linear inside a millisecond. Known up to the last advance()."""
        start, end = self.m[nand.K_HISTORY_MS] * 1_000_000, self.m[nand.S_SEALED] * BIN_NS
        if not start <= t0_ns <= t1_ns <= end:
            raise DriveError(f"a span inside {start} .. {end} ns", f"{t0_ns} .. {t1_ns}", "advance first")
        a, b = (t0_ns - start) // 1_000_000, (t1_ns - start) // 1_000_000
        h = self.history
        nJ = int(h[a:b].sum(dtype=np.uint64))
        nJ += int(h[b]) * ((t1_ns - start) % 1_000_000) / 1e6 - int(h[a]) * ((t0_ns - start) % 1_000_000) / 1e6
        return nJ * NJ

    def ledger(self) -> dict:
        """The truth, flat (ledger.py). For comparison only."""
        return ledger.ledger(self.m, self.blk)

    def precondition(self, kind: str, drive_writes: float, seed: int = 1, progress=None) -> None:
        """Age the drive offline: "seq" or "random" pages, drive_writes times the capacity. No time passes and nothing
        is added to the feed; counts and energies are. progress(done, total) in pages is called every 2**20 pages."""
        if self.unreadable:  # which of them are written is not known here
            seen = f"{len(self.unreadable)} that cannot"
            raise UsageError("a drive whose pages can all be read", seen, "write it by a host")
        if kind not in ("seq", "random"):
            raise UsageError('"seq" or "random"', repr(kind), "choose one")
        m, rng = self.m, np.array([seed], np.uint64)
        total = round(drive_writes * self.pages)
        latency = int(m[nand.K_LATENCY])
        self.drain()
        m[nand.K_LATENCY], m[nand.S_OFFLINE] = 0, 1
        try:
            for done in range(0, total, 1 << 20):
                n = min(1 << 20, total - done)
                first = done % self.pages if kind == "seq" else 0
                while n and kind == "seq":
                    part = min(n, self.pages - first)
                    workload.write_pages(self._arrays, rng, first, part, part, False)
                    n, first = n - part, 0
                if n:
                    workload.write_pages(self._arrays, rng, 0, self.pages, n, True)
                self._check()
                if progress:
                    progress(min(done + (1 << 20), total), total)
            commands.flush_kernel(self._arrays, self._t)
        finally:
            m[nand.N_OFFLINE_NJ] += m[nand.S_BATCH_NJ]
            m[nand.S_BATCH_NJ] = 0
            m[nand.K_LATENCY], m[nand.S_OFFLINE] = latency, 0

    def drain(self) -> None:
        """Program what the write cache still holds."""
        commands.flush_kernel(self._arrays, self._t)

    def closed_loop(
        self,
        *,
        queue_depth: int,
        t_ns: int,
        duration_ns: int,
        window_ns: int = 1_000_000_000,
        read_share: float = 0.0,
        even_mix: bool = False,
        npages: int = 1,
        random: bool = True,
        first: int = 0,
        span: int | None = None,
        samples: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Keep queue_depth commands outstanding in model time for duration_ns: what a load generator without delay of
        its own would see, in `span` pages from `first` on (None: to the end). even_mix: reads and writes in exact
        shares, so that the load adds no randomness.
        Returns (commands completed per window int64[], latencies ns of the first `samples` commands)."""
        end = t_ns + duration_ns
        self._reserve_history(end + 1_000_000_000)
        self.advance(t_ns)
        counts = np.zeros(-(-duration_ns // window_ns), np.int64)
        latencies = np.zeros(samples, np.int64)
        slots = np.full(queue_depth, t_ns, np.int64)
        issued = workload.closed_loop(
            self._arrays,
            self.rng,
            slots,
            round(read_share * 1000),
            even_mix,
            npages,
            random,
            first,
            span or self.pages - first,
            end,
            window_ns,
            counts,
            latencies,
        )
        self._t = end
        self._check()
        return counts, latencies[:issued]

    def save(self, path) -> None:
        """Write the state to a file, atomically. What the write cache holds is programmed first."""
        self.drain()
        head = json.dumps(
            {"simulator": kernels.DIGEST, "preset": asdict(self.preset), "capacity_bytes": self.capacity_bytes}
        )
        with replacing(Path(path)) as f:
            np.savez(
                f,
                head=np.array(head),
                l2p=self.l2p,
                p2l=self.p2l,
                bits=self.bits,
                blk=self.blk,
                lists=self.lists,
                m=self.m,
                rng=self.rng,
                unreadable=np.array(sorted(self.unreadable), np.int64),
            )

    @classmethod
    def load(
        cls,
        path,
        *,
        latency: bool = True,
        t_ns: int = 0,
        ring: np.ndarray | None = None,
        oob_dir=None,
        known: Mapping[str, Preset] | None = None,
    ):
        """The drive that save() wrote, powered on at t_ns. DriveError if the file is not a state of this version of the
        simulator, or was changed so that its tables contradict each other.

        known: the only presets that it may have, by name; None: any."""
        try:
            with stored_arrays.opened(path) as stored:
                head = json.loads(stored_arrays.text(stored, "head"))
                if head["simulator"] != kernels.DIGEST:
                    raise ValueError(f"written by another version of the simulator, {head['simulator']}")
                preset, capacity_bytes = Preset(**head["preset"]), head["capacity_bytes"]
                if known is not None and preset != known.get(preset.name):
                    raise ValueError("no preset of this simulator")
                l2p = stored_arrays.array(stored, "l2p", np.uint32, preset.geometry(capacity_bytes)[0])
                drive = cls(
                    preset, capacity_bytes=capacity_bytes, latency=latency, t_ns=t_ns, ring=ring, oob_dir=oob_dir
                )
                drive.l2p[...] = l2p
                for name in ("p2l", "bits", "blk", "lists", "rng"):
                    table = getattr(drive, name)
                    table[...] = stored_arrays.array(stored, name, table.dtype, *table.shape)
                m = stored_arrays.array(stored, "m", np.int64, *drive.m.shape)
                unreadable = stored_arrays.array(stored, "unreadable", np.int64, None)
        except (OSError, EOFError, zipfile.BadZipFile, ValueError, KeyError, TypeError, RecursionError) as e:
            raise DriveError("a drive state", f"{path}: {e}", "make it again with precondition") from e
        first = nand.S_CPU
        keep = drive.m.copy()
        drive.m[first:] = m[first:]
        for i in (*TIMES, nand.S_FILLED, nand.S_SLUMBER_FROM, nand.S_SEALED, nand.S_BATCH_NJ):
            drive.m[i] = keep[i]
        drive.m[nand.S_TABLE], drive.m[nand.K_LEVELS :] = keep[nand.S_TABLE], keep[nand.K_LEVELS :]
        for i in (nand.S_READY, nand.S_READY_SLC, nand.S_SEQ, nand.S_LOG):
            drive.m[i] = 0
        try:
            books.check(drive, unreadable)
        except ValueError as e:
            raise DriveError("a drive state", f"{path}: {e}", "make it again with precondition") from e
        drive.unreadable.update(unreadable.tolist())
        return drive
