"""The virtual drive as the outside sees it: the simulator, what it stores, its health counters, its supply.

Times that come in and go out are CLOCK_MONOTONIC; inside, the simulator runs on model time = (t - t0) / dilation."""

import math
import os
from pathlib import Path

import numpy as np

from ssdrig.virtual.device import kept, nbd, smartlog, store, thermal
from ssdrig.virtual.device.power import PowerFeatures
from ssdrig.virtual.feed import BINS
from ssdrig.virtual.flash import power_states
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import Preset
from ssdrig.virtual.kernels import compiling

FIRMWARE = "SIM1.0"
MAX_BATCH = 1024
UNDO_SLACK_PAGES = 4096  # beyond the cache: pages on their way when the cut comes
# a rail needs time to fall and a drive to start; also longer than the feed is filled ahead
OFF_AT_LEAST_NS = 300_000_000


class Device:
    """One drive. `powered` says whether the rail is up; the requests of a drive without power are the server's to
    refuse."""

    def __init__(
        self, preset: Preset, drive: VirtualDrive, capacity_bytes: int, data: str, t0_ns: int, ring, latency: bool
    ):
        self.preset, self.drive, self.ring = preset, drive, ring
        self.capacity_bytes, self.t0_ns, self.dilation, self.latency = (
            capacity_bytes,
            t0_ns,
            preset.time_dilation,
            latency,
        )
        volatile = latency and preset.cache_bytes > 0 and not preset.plp
        undo_pages = preset.cache_bytes // store.PAGE_BYTES + UNDO_SLACK_PAGES if volatile else 0
        self.store = store.open_store(data, capacity_bytes, undo_pages)
        self.volatile = volatile
        self.powered = True
        self.kept_in: Path | None = None  # where the drive is written when its server ends
        self._kept_lock = -1
        self._cut_ns = t0_ns  # CLOCK_MONOTONIC of the last cut
        self._start_ns: int | None = None  # of the start that is on its way
        self.serial = f"SIM{t0_ns % 10**12:012d}"
        self.power_cycles, self.unsafe_shutdowns, self.plp_starts = 1, 0, 0
        self._clean_ns: int | None = None  # from when on a power cut is safe, as a host has announced it
        self.error_log_entries = 0
        # thresholds of the temperature warning; a host may move them
        self.over_C = thermal.WARNING_C
        self.under_C: int | None = None
        self.unaligned_commands = self.pages_lost = self.pages_lost_beyond_undo = 0
        self.power = PowerFeatures(self)
        self.thermal = thermal.cold()
        self._speed = 1.0
        self.power_on_s = 0.0
        self.reported_J = self.reported_W = (
            0.0  # what the drive says of its energy, and of its power in the last second
        )
        self._ticked_ns, self._advanced = t0_ns, 0  # host time; model time to which energy is known
        self.latency_ns = 0  # model time from arrival to completion, summed over all commands of pages
        self._came_ns = 0  # model time of the last batch: they come in order, whichever connection they are from
        n = 3 * MAX_BATCH
        self._op, self._flags = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._none = np.zeros(0, np.int64)
        self._page, self._npages, self._owner = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)

    def model_ns(self, t_ns: int) -> int:
        return (t_ns - self.t0_ns) // self.dilation

    def host_ns(self, model_ns: int) -> int:
        return self.t0_ns + int(model_ns) * self.dilation

    def execute(self, buf: np.ndarray, batch: np.ndarray, n: int, t_ns: int, lead_ns: int = 0) -> tuple[int, int]:
        """Carry out the first n requests of a parsed batch that arrived at t_ns; DUE becomes when each is done,
        lead_ns of host time less for those that promise no durability. Returns (earliest DUE, longest read in
        bytes)."""
        self.in_use()
        writes, zeroing, unaligned, longest_read = nbd.tally(batch, n)
        self.unaligned_commands += unaligned
        if writes:
            self.store.write(buf, batch, n)
        m = nbd.page_commands(batch, n, store.PAGE_BYTES, self._op, self._page, self._npages, self._flags, self._owner)
        done, now = self._none, max(self._came_ns, self.model_ns(t_ns))
        self._came_ns = now
        if m:
            done = self.drive.submit(self._op[:m], self._page[:m], self._npages[:m], self._flags[:m], now)
            self.latency_ns += int(done.sum()) - m * now
        if self.latency:
            first_due = nbd.set_due(batch, n, self._owner, done, m, now, self.t0_ns, self.dilation, lead_ns)
        else:
            batch[:n, nbd.DUE] = first_due = t_ns
        if zeroing:
            self._zero(batch, n)
        return first_due, longest_read

    def _zero(self, batch: np.ndarray, n: int) -> None:
        for op, _, _, offset, length, _, error, _ in batch[:n].tolist():
            if op == nbd.WRITE_ZEROES and not error:
                self.store.zero(offset, length)
            elif op == nbd.TRIM and not error:
                self.store.punch(-(-offset // store.PAGE_BYTES), (offset + length) // store.PAGE_BYTES)

    def advance(self, t_ns: int) -> None:
        """Let the drive work on by itself up to t_ns, or start when it is time to; call at least every 10 ms."""
        if not self.powered and self._start_ns is not None and t_ns >= self._start_ns:
            self.tick(t_ns)
            self.drive.power_on(self.model_ns(t_ns))
            self.powered, self._start_ns = True, None
            self.power.start()
            self.drive.follow(0, power_states.default_apst(self.preset), self.model_ns(t_ns))
            self.keep_pace()
            self.power_cycles += 1
        if self.powered:
            now = self.model_ns(t_ns)
            self.drive.advance(now)
            self._advanced = now // 1_000_000 * 1_000_000  # the present millisecond is not complete

    def tick(self, t_ns: int) -> None:
        """Health counters over the time since the last tick; call about once a second."""
        dt_s = (t_ns - self._ticked_ns) / 1e9 / self.dilation
        power_W = 0.0
        if self.powered and dt_s > 0:
            power_W = self.energy_J(self._ticked_ns, t_ns) / dt_s
            self.power_on_s += dt_s
            self.reported_J += self.preset.energy_report * power_W * dt_s
        self.reported_W = self.preset.energy_report * power_W
        self.store.look()
        self.thermal = thermal.step(self.preset, self.thermal, power_W, dt_s, self.powered, self.power.tmt_C)
        self.keep_pace()
        self._ticked_ns = t_ns

    def keep_pace(self) -> None:
        """Work as fast as the power state and the temperature allow."""
        speed = min(self.power.speed(), thermal.speed(self.preset, self.thermal))
        if speed != self._speed:
            self.drive.throttle(speed)
            self._speed = speed

    def energy_J(self, t0_ns: int, t1_ns: int) -> float:
        """Truth: what the drive drew from its rail between two host times, in joules of model time."""
        self.advance(max(t1_ns, self.host_ns(self._advanced)))
        t0, t1 = (min(self.model_ns(t), self._advanced) for t in (t0_ns, t1_ns))  # nothing while it has no power
        return float(self.drive.energy_between(t0, t1))

    def energy_steps_nJ(self, first: int, last: int) -> np.ndarray:
        """Truth: uint64 energy of each millisecond of model time from first to last - 1."""
        out = np.zeros(last - first, dtype=np.uint64)
        known = self.drive.history[first : min(last, self._advanced // 1_000_000)]
        out[: len(known)] = known
        return out

    def identity(self) -> dict:
        """What a host may know of the drive before it asks for its health."""
        p = self.preset
        return {
            "simulated": True,
            "preset": p.name,
            "model": p.model,
            "serial": self.serial,
            "firmware": FIRMWARE,
            "interface": "nbd",
            "capacity_bytes": self.capacity_bytes,
            "drive_bytes": self.drive.pages * store.PAGE_BYTES,
            "raw_nand_bytes": int(self.drive.raw_nand_bytes),
            "time_dilation": self.dilation,
            "rail_V": p.rail_V,
            "more_rails": [list(rail) for rail in p.more_rails],
            "rated_pe_cycles": p.rated_pe_cycles,
            "rated_tbw_TB": p.rated_tbw_TB,
            "rated_write_bytes": p.rated_write_bytes(self.drive.capacity_bytes),
            "rated_years": p.rated_years,
            "rated_class": "enterprise" if p.plp else "client",
            "write_cache_bytes": p.cache_bytes,
            "plp": bool(p.plp),
            "power_states": [
                {
                    "max_W": state.max_mW / 1000,
                    "operational": state.operational,
                    "enter_us": state.enter_us,
                    "exit_us": state.exit_us,
                }
                for state in self.power.states
            ],
        }

    def health(self) -> dict:
        """The counters that the SMART pages are made of (see smartlog)."""
        ledger, pe = self.drive.ledger(), self.drive.pe_counts()
        names = (
            "host_read_bytes",
            "host_write_bytes",
            "host_read_commands",
            "host_write_commands",
            "nand_write_bytes",
            "nand_read_bytes",
        )
        p = self.preset
        return {name: int(ledger[name]) for name in names} | {
            **self.thermal,
            "energy_Wh": math.ceil(self.reported_J / 3600 - 1e-9),
            "interval_W": self.reported_W,
            "available_spare_percent": 100,
            "percentage_used": smartlog.percentage_used(float(pe.mean()), p.rated_pe_cycles),
            "pe_min": int(pe.min()),
            "pe_max": int(pe.max()),
            "free_blocks_percent": int(100 * ledger["free_blocks"] // len(pe)),
            "used_lbas": int(ledger["mapped_pages"]) * store.PAGE_BYTES // 512,
            "busy_s": int(ledger["energy_controller_J"] * 1000 / p.P_active_mW),
            "power_on_s": int(self.power_on_s),
            "power_cycles": self.power_cycles,
            "unsafe_shutdowns": self.unsafe_shutdowns,
            "plp": bool(p.plp),
            "plp_starts": self.plp_starts,
            "media_errors": 0,
            "error_log_entries": self.error_log_entries,
            "over_C": self.over_C,
            "under_C": self.under_C,
            "unaligned_commands": self.unaligned_commands,
            "rated_write_bytes": p.rated_write_bytes(self.drive.capacity_bytes),
        }

    def truth(self, t_ns: int) -> dict:
        """The ledger, with what only this level knows."""
        return self.drive.ledger() | {
            "simulated": True,
            "t_ns": t_ns,
            "model_t_ns": self.model_ns(t_ns),
            "preset": self.preset.name,
            "time_dilation": self.dilation,
            "host_latency_ns": self.latency_ns,
            "last_command_t_ns": self.host_ns(self._came_ns),
            "powered": self.powered,
            "power_cycles": self.power_cycles,
            "unsafe_shutdowns": self.unsafe_shutdowns,
            "temperature_C": self.thermal["temperature_C"],
            "pages_lost": self.pages_lost,
            "pages_lost_beyond_undo": self.pages_lost_beyond_undo,
        }

    def flush(self, t_ns: int) -> int:
        """Drain the write cache. Returns the host time when it is done."""
        one = np.zeros(1, np.int64)
        done = self.drive.submit(np.array([nbd.FLUSH], np.uint8), one, one, np.zeros(1, np.uint8), self.model_ns(t_ns))
        return max(t_ns, self.host_ns(done[0]))

    def format(self, t_ns: int) -> int:
        """Purge: nothing is mapped, every block is erased, all reads as zeros. Returns the host time when it is
        done."""
        done = self.drive.format(self.model_ns(t_ns))
        self.store.clear()
        return max(t_ns, self.host_ns(done))

    def deallocate(self, t_ns: int) -> int:
        """Nothing is mapped any more and all reads as zeros, but no block is erased. Returns the host time when it is
        done."""
        nothing, pages = np.zeros(1, np.int64), np.array([self.drive.pages])
        now = max(self._came_ns, self.model_ns(t_ns))
        done = self.drive.submit(np.array([nbd.TRIM], np.uint8), nothing, pages, np.zeros(1, np.uint8), now)
        self.store.clear()
        return max(t_ns, self.host_ns(done[0]))

    def shut_down(self, t_ns: int) -> int:
        """The host announces that power will go. Returns the host time from which it may, until the drive is used
        again."""
        clean_ns = self._clean_ns = self.flush(t_ns)
        return clean_ns

    def in_use(self) -> None:
        """A host uses the drive: an earlier announcement of the end no longer holds."""
        self._clean_ns = None

    def power_cut(self, t_ns: int) -> dict:
        """The rail falls now: what was acknowledged but not in the NAND is gone, unless capacitors (PLP) save it."""
        now = self.model_ns(t_ns)
        self.advance(t_ns)
        self.tick(t_ns)
        lost, beyond = 0, 0
        if self.volatile:
            lost, beyond = self.store.lose(self.drive.dirty_pages(now))
        self.powered, self._cut_ns = False, t_ns
        self.unsafe_shutdowns += self._clean_ns is None or t_ns < self._clean_ns
        self._clean_ns = None
        self.plp_starts += bool(self.preset.plp)
        self.pages_lost += lost
        self.pages_lost_beyond_undo += beyond
        self.drive.power_off(now)
        return {"pages_lost": lost, "pages_lost_beyond_undo": beyond}

    def power_on(self, t_ns: int) -> int:
        """The rail is back. Returns the host time from which the drive answers: it is off for OFF_AT_LEAST_NS or
        longer."""
        start_ns = self._start_ns = max(t_ns, self._cut_ns + OFF_AT_LEAST_NS * self.dilation)
        return start_ns

    def keep(self, folder: str | None) -> None:
        """Outlive the server, in this folder, or no longer (None)."""
        if self._kept_lock >= 0:
            os.close(self._kept_lock)
        self.kept_in, self._kept_lock = None, -1
        if folder is not None:
            self._kept_lock = kept.lock(Path(folder))
            self.kept_in = Path(folder)

    def close(self) -> None:
        """Raises OSError if the drive cannot be kept."""
        try:
            if self.kept_in:
                kept.save(self, self.kept_in)
        finally:
            self.keep(None)
            self.store.close()


def warm_up(preset: Preset) -> None:
    """Load or compile all machine code with a drive that is thrown away, before the clock of the real one starts."""
    with compiling("device"):
        for data in ("sparse", "crc"):
            ring = np.full((BINS, 2), 0xFFFFFFFF, dtype=np.uint32)
            device = Device(preset, VirtualDrive(preset, ring=ring), 1 << 20, data, 0, ring, latency=True)
            buf = np.zeros(store.PAGE_BYTES, np.uint8)
            batch, reads = np.zeros((1, nbd.COLUMNS), np.int64), np.zeros((1, 3), np.int64)
            for op in (nbd.WRITE, nbd.READ, nbd.FLUSH, nbd.TRIM):
                nbd.parse(buf, 0, 0, device.capacity_bytes, 1, batch)
                batch[0, nbd.OP], batch[0, nbd.LENGTH] = op, store.PAGE_BYTES
                device.execute(buf, batch, 1, 0)
                nbd.collect(batch, 1, 0, buf, reads)
            device.store.read(buf, np.array([[0, 0, store.PAGE_BYTES]]), 1)
            device.advance(1_000_000)
            device.close()
