"""Whole power-loss campaigns in model time: write, cut, power on, read back, judge. SIMULATED, on the drive's clock;
for benches and tests."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from selfcheck import modeltime
from ssdrig.powerloss import layout, promise, readback, record, verdict
from ssdrig.powerloss.history import History
from ssdrig.powerloss.writer import Ended, Writer
from ssdrig.virtual.device import identify, powercut
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import PRESETS

CAPACITY_BYTES, WINDOW_BYTES = 256 << 20, 64 << 20
RUN = 0x5D10
SETTLE_NS = 2_000_000_000
OFF_NS = 500_000_000, 2_000_000_000  # without power
FULL_EVERY = 50  # cuts between scans of all blocks


class Cut(NamedTuple):
    """One session and what was judged of it. ready_ns: from power-on to the answer."""

    session: verdict.Session
    blocks: verdict.Blocks
    verdict: verdict.Verdict
    ended: Ended
    ready_ns: int


class Campaign:
    """A drive of `preset` (a name, or a Preset) in model time. `cache_on` False: the host has switched the write cache
    off. session_ns: shortest and longest session. torn: how often a write under way is torn inside 4 KiB, which
    Identify then allows. adversary: how often what an honest drive may lose is lost is drawn anew for each session.
    `device` is the drive itself."""

    def __init__(
        self,
        preset,
        folder: Path,
        seed: int = 1,
        cache_on: bool = True,
        block_bytes: int = 512,
        session_ns: tuple[int, int] = (5_000_000, 100_000_000),
        capacity_bytes: int = CAPACITY_BYTES,
        host: modeltime.Host = modeltime.HOST,
        torn: float = 0.0,
        adversary: bool = False,
    ):
        preset = replace(PRESETS[preset], time_dilation=1) if isinstance(preset, str) else preset
        ring = np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
        ring[:, 1] = 0
        drive = VirtualDrive(preset, capacity_bytes=capacity_bytes, ring=ring)
        self.device = Device(preset, drive, drive.capacity_bytes, "sparse", 0, ring, latency=True)
        self.device.seed, self.device.chances = seed, powercut.Chances(torn=torn)
        self.transport = modeltime.Model(self.device, seed, write_through=not cache_on, host=host)
        shift = block_bytes.bit_length() - 1
        pages = identify.controller(self.device, 1), identify.namespace(self.device, shift)
        self.promise = promise.nvme(*pages, cache_on)
        self.layout = layout.make(block_bytes, drive.capacity_bytes, WINDOW_BYTES)
        self.known = verdict.known(self.layout.base_blocks, record.ZEROS)
        self.seed, self.number, self.next_seq = seed, 0, 1
        self._file, self._session_ns = folder / "history.bin", session_ns
        self._adversary = adversary
        self.off_ns = OFF_NS

    def cut(self) -> Cut:
        """The next session, judged; the base goes on."""
        self.number += 1
        transport, chance = self.transport, np.random.default_rng([self.seed, self.number, 0xC])
        if self._adversary:
            new, cached = chance.random(), max(0.0, chance.random() - 0.5)
            self.device.chances = replace(self.device.chances, in_flight_new=new, cached_new=cached)
        self._file.unlink(missing_ok=True)
        book = History(self._file, self.next_seq)
        writer = Writer(transport, book, self.layout, self.promise, RUN, self.number, self.seed, self.known.content)
        began_ns = transport.now_ns()
        cut_ns = transport.cut_at_ns = began_ns + int(chance.integers(*self._session_ns))
        ended = writer.write(cut_ns + SETTLE_NS)
        writer.settle(SETTLE_NS)
        on_ns = max(transport.t_ns, cut_ns) + int(chance.integers(*self.off_ns))
        ready_ns = transport.power_on(on_ns)
        settled_ns = writer.settle(SETTLE_NS)
        self.next_seq = book.next_seq
        rows = book.written()
        book.close()
        session = verdict.Session(rows, cut_ns, on_ns, settled_ns, transport.now_ns())
        blocks = self.read(rows, chance)
        at = layout.index(self.layout, blocks.lba)
        blocks = verdict.asked(self.known, at, blocks)
        ruling = verdict.judge(session, blocks, self.promise)
        verdict.take(self.known, at, blocks, ruling, self.number)
        return Cut(session, blocks, ruling, ended, ready_ns - on_ns)

    def read(self, rows: np.ndarray, chance: np.random.Generator) -> verdict.Blocks:
        runs = readback.wanted(rows, self.layout, chance, full=self.number % FULL_EVERY == 0)
        return readback.read(self.transport, self.layout, RUN, self.known.content, runs)

    def close(self) -> None:
        self.device.close()
        self._file.unlink(missing_ok=True)
