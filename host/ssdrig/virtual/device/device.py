"""The virtual drive as its users see it: the simulator, its data, its health counters, its supply.

Times that come in and go out are CLOCK_MONOTONIC; inside, the simulator runs on model time = (t - t0) / dilation.

How late the SIMULATED drive answered against its own model: the bench health record, which is not a truth about the
drive and which a run reads. A drive whose process gets no CPU answers later than its model says; a host cannot see
that from a slow drive.

A row for each second, counts since the start: [t_ns, answers, ns by which they were late together, ns of service in the
model together], and the most ns that an answer of that second was late. Times are the host's. `stat` represents the
kernel's counts, which has none of a drive that is served in user space: requests answered without an error since the
start, in the order of /sys/block/NAME/stat, without the times, which are not measured here."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ssdrig.base.kernels import compiling
from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import persistence, powercut, reports, reserve, slow_commands, store, thermal
from ssdrig.virtual.device.placement import Placement
from ssdrig.virtual.device.power import PowerFeatures
from ssdrig.virtual.flash import nand, power_states, versions
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import Preset

SECTOR_BYTES = 512
SECOND_NS = 1_000_000_000  # of the host: the interval of the reported power
MOST_ROWS = 86_400  # of a day; older ones are dropped


class Pace:
    """`counts`: int64, what nbd_protocol.count_late adds to."""

    def __init__(self):
        self.counts = np.zeros(10, np.int64)
        self._rows: list[list[int]] = []
        self._dropped = 0

    def second(self, t_ns: int, service_ns: int) -> None:
        """Once a second."""
        self._rows.append(self._row(t_ns, service_ns))
        self.counts[2] = 0
        if len(self._rows) > MOST_ROWS:
            del self._rows[0]
            self._dropped += 1

    def _row(self, t_ns: int, service_ns: int) -> list[int]:
        answers, late_ns, most_ns = self.counts[:3].tolist()
        return [t_ns, answers, late_ns, service_ns, most_ns]

    def read(self, since: int, t_ns: int, service_ns: int) -> dict:
        """The rows of the seconds from number `since` on, and one of now; `next`: where to go on; `stat`."""
        first = max(0, since - self._dropped)
        rows = [*self._rows[first:], self._row(t_ns, service_ns)]
        return {"next": self._dropped + len(self._rows), "rows": rows, "stat": self._stat()}

    def _stat(self) -> list[int]:
        reads, read_bytes, writes, written_bytes, trims, trimmed_bytes, flushes = self.counts[3:].tolist()
        sectors = [moved // SECTOR_BYTES for moved in (read_bytes, written_bytes, trimmed_bytes)]
        read = [reads, 0, sectors[0], 0, writes, 0, sectors[1], 0, 0, 0, 0]
        return [*read, trims, 0, sectors[2], 0, flushes, 0]


MAX_BATCH = 1024
# a rail needs time to fall; also longer than the feed is filled ahead
OFF_AT_LEAST_NS = 300_000_000
MOST_BOOT_NS = 10_000_000_000  # of a start are laid down in the feed, which holds 16 s


class Device:
    """One drive. `powered`: whether the rail is up; the requests of a drive without power are the server's to
    refuse."""

    def __init__(
        self,
        preset: Preset,
        drive: VirtualDrive,
        capacity_bytes: int,
        data: str,
        t0_ns: int,
        ring,
        latency: bool,
        faults=None,
    ):
        self.preset, self.drive, self.ring = preset, drive, ring
        self.capacity_bytes, self.t0_ns, self.dilation, self.latency = (
            capacity_bytes,
            t0_ns,
            preset.time_dilation,
            latency,
        )
        self.store = store.open_store(data, capacity_bytes, len(drive.log) if latency else 0)
        self.volatile = latency and preset.cache_bytes > 0 and not preset.plp
        self.chances, self.seed, self.faults = powercut.Chances(), 1, faults
        self.reserve = reserve.of(preset)
        self.since = int(drive.m[nand.S_LOG])  # the first command whose outcome a cut may still change
        self.cuts = 0
        self.cut: powercut.Cut | None = None
        self.last_cut: dict = {}  # a line of the truth
        self._cut_untold = False
        self.note_cut: Callable[[dict], None] = lambda record: (
            None
        )  # called with a cut once the drive has started again
        self.unreadable = drive.unreadable  # pages
        self.media_errors = 0
        self.lead_ns = 0  # of host time, by which replies that promise no durability may have left early
        self.powered = self.lit = True  # it answers; it draws power
        self._rail_ns = t0_ns  # when the rail is back
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
        self.unaligned_commands = self.pages_lost = 0
        self.power = PowerFeatures(self)
        self.placement: Placement | None = None  # of a drive with data placement
        self.thermal = thermal.cold()
        self._speed = 1.0
        self.power_on_s = 0.0
        self.reported_J = self.reported_W = (
            0.0  # what the drive reports of its energy, and of its power in the last second
        )
        self._ticked_ns, self._advanced = t0_ns, 0  # host time; model time to which energy is known
        self.slow = slow_commands.fresh()
        self.latency_ns = 0  # model time from arrival to completion, summed over all commands of pages
        self.pace = Pace()
        self._came_ns = 0  # model time of the last batch: they come in order, whichever connection they are from
        self._began_ns: int | None = None  # model time of the first batch since it was last taken
        n = 3 * MAX_BATCH
        self._op, self._flags = np.zeros(n, np.uint8), np.zeros(n, np.uint8)
        self._none = np.zeros(0, np.int64)
        self._page, self._npages, self._owner = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)

    def model_ns(self, t_ns: int) -> int:
        return (t_ns - self.t0_ns) // self.dilation

    @property
    def advanced_ns(self) -> int:
        """Model time to which the drive has worked."""
        return self._advanced

    def host_ns(self, model_ns: int) -> int:
        return self.t0_ns + int(model_ns) * self.dilation

    def execute(self, buf: np.ndarray, batch: np.ndarray, n: int, t_ns: int, lead_ns: int = 0) -> tuple[int, int]:
        """Execute the first n requests of a parsed batch that arrived at t_ns; DUE becomes when each is done,
        lead_ns of host time less for those that promise no durability. Returns (earliest DUE, longest read in
        bytes)."""
        self.in_use()
        if self.faults:
            self.faults.commands(self, batch, n)
        writes, zeroing, unaligned, longest_read = nbd_protocol.tally(batch, n)
        self.unaligned_commands += unaligned
        failed = self._read_errors(batch, n) if self.unreadable else []
        if zeroing:
            self._store_in_order(buf, batch, n, int(self.drive.m[nand.S_SEQ]))
        elif writes:
            self.store.write(buf, batch, n, int(self.drive.m[nand.S_SEQ]))
        self.lead_ns = max(self.lead_ns, lead_ns)
        m = nbd_protocol.page_commands(
            batch, n, store.PAGE_BYTES, self._op, self._page, self._npages, self._flags, self._owner
        )
        done, now = self._none, max(self._came_ns, self.model_ns(t_ns))
        self._came_ns = now
        if self._began_ns is None:
            self._began_ns = now
        if m:
            done = self.drive.submit(self._op[:m], self._page[:m], self._npages[:m], self._flags[:m], now)
            self.latency_ns += int(done.sum()) - m * now
            if self.preset.latency_monitor and self.latency:
                slow_commands.count(self.slow, batch, self._owner[:m], done, now)
        if self.latency:
            first_due = nbd_protocol.set_due(batch, n, self._owner, done, m, now, self.t0_ns, self.dilation, lead_ns)
        else:
            batch[:n, nbd_protocol.DUE] = first_due = t_ns
        if failed:  # after all retries
            batch[failed, nbd_protocol.ERROR] = errno.EIO
            self.media_errors += len(failed)
        if self.faults:
            self.faults.carried_out(self, batch, n, now)
        return first_due, longest_read

    def _store_in_order(self, buf: np.ndarray, batch: np.ndarray, n: int, number: int) -> None:
        """The writes, trims and zeroes of a batch, one after the other; number: of its first version."""
        command, first = int(self.drive.m[nand.S_LOG]), 0
        for row, (op, _, _, offset, length, _, error, _) in enumerate(batch[:n].tolist()):
            if op in (nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES) and length and not error:
                number = self.store.write(buf, batch[first:row], row - first, number)
                command += nbd_protocol.logged(batch, first, row)
                first = row + 1
                if op == nbd_protocol.TRIM:  # only the pages that it covers
                    inner, outer = -(-offset // store.PAGE_BYTES), (offset + length) // store.PAGE_BYTES
                    if inner < outer:
                        self.store.trim(inner, outer, command)
                        command += 1
                else:
                    number, command = store.zero(self.store, offset, length, number, command)
        self.store.write(buf, batch[first:n], n - first, number)

    def _read_errors(self, batch: np.ndarray, n: int) -> list[int]:
        """The rows that fail: reads of a page that cannot be read. To write or trim all of it heals it."""
        failed, size = [], store.PAGE_BYTES
        for row, (op, _, _, offset, length, _, error, _) in enumerate(batch[:n].tolist()):
            end = offset + length
            if not error and op == nbd_protocol.READ:
                if not self.unreadable.isdisjoint(range(offset // size, -(-end // size))):
                    failed.append(row)
            elif not error and op in (nbd_protocol.WRITE, nbd_protocol.TRIM, nbd_protocol.WRITE_ZEROES):
                self.unreadable.difference_update(range(-(-offset // size), end // size))
        return failed

    def advance(self, t_ns: int) -> None:
        """Let the drive work on on its own up to t_ns, or start when it is time to; call at least every 10 ms."""
        if self._start_ns is not None:
            self._start(t_ns)
        if self.lit:
            now = self.model_ns(t_ns)
            self.drive.advance(now)
            self._advanced = now // 1_000_000 * 1_000_000  # the present millisecond is not complete

    def tick(self, t_ns: int, due_ns: int | None = None) -> None:
        """Health counters over the time from the last tick to due_ns (None: t_ns, which is now), the power of at most
        the second before it; call about once a second. A drive's own timer is not late when the host's is."""
        due_ns = max(self._ticked_ns, t_ns if due_ns is None else due_ns)
        if self.lit:  # energy is known by the millisecond of model time
            self.advance(max(t_ns, self.host_ns(self._advanced)))
            due_ns = max(self._ticked_ns, min(due_ns, self.host_ns(self._advanced)))
        dt_s = (due_ns - self._ticked_ns) / 1e9 / self.dilation
        power_W = 0.0
        if self.lit and dt_s > 0:
            power_W = self.energy_J(self._ticked_ns, due_ns) / dt_s
            self.power_on_s += dt_s
            self.reported_J += self.preset.energy_report * power_W * dt_s
            last_ns = max(self._ticked_ns, due_ns - SECOND_NS)
            self.reported_W = self.preset.energy_report * self.energy_J(last_ns, due_ns) * 1e9 * self.dilation
            self.reported_W /= due_ns - last_ns
        elif not self.lit:
            self.reported_W = 0.0
        self.power.measurement.interval(self.reported_W)
        self.pace.second(t_ns, self.latency_ns * self.dilation)
        self.store.look()
        self.thermal = thermal.step(self.preset, self.thermal, power_W, dt_s, self.powered, self.power.tmt_C)
        self.keep_pace()
        self._ticked_ns = due_ns

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
        base = int(self.drive.m[nand.K_HISTORY_MS])
        known = self.drive.history[first - base : min(last, self._advanced // 1_000_000) - base]
        out[: len(known)] = known
        return out

    def identity(self) -> dict:
        """What a host may know of the drive before it asks for its health."""
        given = reports.identity(self)
        return self.faults.identity(given) if self.faults else given

    def health(self) -> dict:
        """The counters that the SMART pages are made of (see smartlog)."""
        given = reports.health(self)
        return self.faults.health(given) if self.faults else given

    def truth(self, t_ns: int) -> dict:
        """The ledger, with what only this level knows."""
        return reports.truth(self, t_ns)

    def take_first_command_ns(self) -> int | None:
        """Host time of the first command since the last call; None: none came."""
        began_ns, self._began_ns = self._began_ns, None
        return None if began_ns is None else self.host_ns(began_ns)

    def flush(self, t_ns: int) -> int:
        """Drain the write cache. Returns the host time when it is done."""
        one = np.zeros(1, np.int64)
        done = self.drive.submit(
            np.array([nbd_protocol.FLUSH], np.uint8), one, one, np.zeros(1, np.uint8), self.model_ns(t_ns)
        )
        return max(t_ns, self.host_ns(done[0]))

    def format(self, t_ns: int) -> int:
        """Purge: nothing is mapped, every block is erased, all reads as zeros. Returns the host time when it is
        done."""
        done = self.drive.format(self.model_ns(t_ns))
        self._all_gone()
        return max(t_ns, self.host_ns(done))

    def deallocate(self, t_ns: int) -> int:
        """Nothing is mapped any more and all reads as zeros, but no block is erased. Returns the host time when it is
        done."""
        nothing, pages = np.zeros(1, np.int64), np.array([self.drive.pages])
        now = max(self._came_ns, self.model_ns(t_ns))
        done = self.drive.submit(np.array([nbd_protocol.TRIM], np.uint8), nothing, pages, np.zeros(1, np.uint8), now)
        self._all_gone()
        return max(t_ns, self.host_ns(done[0]))

    def _all_gone(self) -> None:
        """The drive's data is lost for good, whatever happens to its power."""
        self.store.clear()
        self.unreadable.clear()
        self.since = int(self.drive.m[nand.S_LOG])

    def shut_down(self, t_ns: int) -> int:
        """The host announces that power will go. Returns the host time from which it may, until the drive is used
        again."""
        clean_ns = self._clean_ns = self.flush(t_ns)
        return clean_ns

    def in_use(self) -> None:
        """A host uses the drive: an earlier announcement of the end no longer holds."""
        self._clean_ns = None

    def power_cut(self, t_ns: int, crossing_ns: int | None = None) -> dict:
        """The rail is gone, so powercut.py decides the content of the medium. Commands answered before t_ns count as
        answered before the cut; the rail crossed the drive's lock-out at crossing_ns (None: t_ns), which may have been
        earlier. Returns what an operator sees; last_cut has the truth."""
        now = self.model_ns(t_ns)
        self.advance(t_ns)
        self.tick(t_ns)
        self.cuts += 1
        cut = self.cut = powercut.Cut(self, now, self.lead_ns // self.dilation, self.cuts)
        announced = cut.announced = self._clean_ns is not None and t_ns >= self._clean_ns
        if self.faults:
            self.faults.before_loss(self, cut)
        if self.reserve and self.lit:
            self.reserve.at_cut(cut, announced)
        cut.lose()
        if self.faults:
            cut.faults += self.faults.after_loss(self, cut)
        if self.lit:
            self.unsafe_shutdowns += not announced
            self.plp_starts += bool(self.preset.plp)
            self.drive.power_off(now)
        self.tell_cut()  # the one before, if the drive never became ready
        crossed_ns = t_ns if crossing_ns is None else crossing_ns
        self.last_cut = cut.record() | {
            "seed": self.seed,
            "t_ns": crossed_ns,
            "lost_t_ns": t_ns,
            "announced": announced,
            "while_starting": not self.powered,
        }
        self._cut_untold = True
        self.powered = self.lit = False
        self._cut_ns, self._clean_ns, self._start_ns = t_ns, None, None
        self.since, self.lead_ns = int(self.drive.m[nand.S_LOG]), 0
        self.pages_lost += cut.pages_lost
        return {"pages_lost": cut.pages_lost}

    def power_on(self, t_ns: int) -> int:
        """The rail is back. Returns the host time from which the drive answers: it stays off for OFF_AT_LEAST_NS or
        longer, then it starts, and replays what the map's last checkpoint does not hold."""
        self._rail_ns = max(t_ns, self._cut_ns + OFF_AT_LEAST_NS * self.dilation)
        recovery_ns = self.preset.boot_ns + versions.replay_ns(self.drive, versions.map_updates(self.drive))
        if self.reserve:  # a drive that answered before would promise what its capacitors cannot keep
            recovery_ns = max(recovery_ns, self.reserve.charging_ns())
        if self.faults:
            self.last_cut["faults"] += self.faults.at_start(self, self.cut, self.model_ns(t_ns))
            recovery_ns = self.faults.recovery_ns(recovery_ns)
        start_ns = self._start_ns = self._rail_ns + recovery_ns * self.dilation
        self.last_cut |= {"on_t_ns": t_ns, "recovery_ns": recovery_ns, "ready_t_ns": start_ns}
        self.advance(t_ns)
        return start_ns

    @property
    def supplied(self) -> bool:
        """Whether the rail is up: the drive answers, or it will."""
        return self.powered or self._start_ns is not None

    def _start(self, t_ns: int) -> None:
        """The drive starts up, to its state at t_ns."""
        assert self._start_ns is not None
        if not self.lit and t_ns >= self._rail_ns:
            self.tick(t_ns)
            now, ready = self.model_ns(t_ns), self.model_ns(self._start_ns)
            self.drive.power_on(now)
            self.lit = True
            self.power_cycles += 1
            if self.reserve:
                self.reserve.charge(self.drive, now, self.model_ns(self._rail_ns))
            self.power.start()
            self.drive.follow(0, power_states.default_apst(self.preset), now)
            self.keep_pace()
            if ready > now:
                ready = min(ready, now + MOST_BOOT_NS)
                self.drive.draw(now, ready, self.preset.P_active_mW * (ready - now) * 1e-12, nand.E_BOOT)
        if self.lit and t_ns >= self._start_ns:
            self.powered, self._start_ns = True, None
            versions.save_map(self.drive)
            self.store.replaced.forget_trims()
            self.tell_cut()

    def tell_cut(self) -> None:
        """The last cut's line of the truth is complete."""
        if self._cut_untold:
            self.note_cut(self.last_cut)
        self._cut_untold = False

    def keep(self, folder: str | None) -> None:
        """Outlive the server, in this folder, or no longer (None)."""
        if self._kept_lock >= 0:
            os.close(self._kept_lock)
        self.kept_in, self._kept_lock = None, -1
        if folder is not None:
            self._kept_lock = persistence.lock(Path(folder))
            self.kept_in = Path(folder)

    def close(self) -> None:
        """Raises OSError if the drive cannot be kept."""
        try:
            if self.kept_in:
                persistence.save(self, self.kept_in)
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
            batch, reads = np.zeros((1, nbd_protocol.COLUMNS), np.int64), np.zeros((1, 3), np.int64)
            for op in (nbd_protocol.WRITE, nbd_protocol.READ, nbd_protocol.FLUSH, nbd_protocol.TRIM):
                nbd_protocol.parse(buf, 0, 0, device.capacity_bytes, 1, batch)
                batch[0, nbd_protocol.OP], batch[0, nbd_protocol.LENGTH] = op, store.PAGE_BYTES
                nbd_protocol.came_together(batch, 0, 1, 0, 0)
                device.execute(buf, batch, 1, 0)
                nbd_protocol.stamp(batch, 1, 0, 0)
                nbd_protocol.count_late(batch, 1, 0, 0, device.pace.counts)
                nbd_protocol.collect(batch, 1, 0, buf, reads)
            device.store.read(buf, np.array([[0, 0, store.PAGE_BYTES]]), 1)
            device.advance(1_000_000)
            device.close()
