"""Shared by writing and verifying: the link to the drive, its counters, rests under the meter."""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ssdrig.base.errors import DriveError, SsdrigError, UsageError, words_of
from ssdrig.blockio.slots import Transport
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.plan.kinds.retention_layout import Layout
from ssdrig.retention import passes, reading
from ssdrig.runs import parts

COUNTED = (  # of a SMART snapshot
    *("host_written_bytes", "nand_written_bytes", "media_errors", "uncorrectable_reads", "soft_ecc_errors"),
    *("refreshes", "xor_recoveries", "percentage_used", "available_spare_percent", "pe_cycles_mean"),
    *("temperature_C", "power_on_hours", "power_cycles", "unsafe_shutdowns"),
)
SHOW_S = 1.0
THERE_S, POLL_S = 60.0, 0.05


class AtWork:
    """One step of a retention test. Raises UsageError where the bench has no drive that could be read."""

    def __init__(self, act, stage):
        self.act, self.stage, self.keys, self.book = act, stage, act.keys, stage.book
        if stage.bench.target is None:
            raise UsageError("a drive whose blocks can be read and written", "none", "give --drive or --virtual")
        self.target = stage.bench.target
        self.run_name = parts.root(self.book.path).name
        self.link: Transport | None = None
        self._shown_s = 0.0

    def tell(self, kind: str, **fields: Any) -> None:
        self.book.event(kind, step=self.act.path, **fields)

    def there(self) -> Transport:
        """The link, opened on first use. Raises DriveError if the drive does not appear."""
        deadline = time.monotonic() + THERE_S
        while self.link is None:
            try:
                self.target.back()
                self.link = self.target.open()
            except (SsdrigError, OSError) as error:
                if time.monotonic() > deadline:
                    raise DriveError("the drive to answer", words_of(error), "look at its power and cable") from error
                time.sleep(POLL_S)
        return self.link

    def leave(self) -> None:
        """Let go of the drive."""
        if self.link is not None:
            with contextlib.suppress(SsdrigError, OSError):
                self.link.close()
        self.link = None

    def counted(self) -> dict:
        """The drive's counters COUNTED now; None where it does not report one."""
        smart = self.stage.live.poll_smart("retention") or {}
        return {key: smart.get(key) for key in COUNTED}

    def show(self, share: float, words: str, written_bytes: int = 0) -> None:
        """Update the progress line, at most once a second. Raises KeyboardInterrupt after a request to stop."""
        self.stage.stop.check()
        if time.monotonic() - self._shown_s >= SHOW_S:
            self._shown_s = time.monotonic()
            self.stage.live.share(min(1.0, share), words, written_bytes)

    def rest(self, name: str, seconds: float) -> float | None:
        """Rest without I/O for `seconds` of drive time; the mean power of the second half, W, None if not measured."""
        if seconds <= 0:
            return None
        begin_ns, watts = time.monotonic_ns(), []

        def each_second() -> bool:
            watts.append(self.stage.live.power_W())
            return False

        self.stage.live.wait(seconds * self.stage.dilation, self.stage.stop.check, each_second)
        self.tell("retention.window", name=name, begin_ns=begin_ns, end_ns=time.monotonic_ns())
        known = [watt for watt in watts[len(watts) // 2 :] if watt is not None]
        return sum(known) / len(known) if known else None

    def read(self, layout: Layout, run: int, kinds: Iterable[str], name: str) -> tuple[list[dict], list[list]]:
        """These kinds of pieces once, in order: ([passes.piece() of each], runs of bad blocks)."""
        wanted = layouts.of_kinds(layout, kinds)
        link, passed, bad = self.there(), [], []
        begin_ns = time.monotonic_ns()
        for piece in reading.pieces(link, layout, run, wanted):
            passed.append(passes.piece(piece))
            bad += passes.runs(piece.bad)
            lost = sum(one["bad"] for one in passed)
            MBps = passed[-1]["MBps"] or 0.0
            self.show(len(passed) / len(wanted), f"{name}: {MBps:.0f} MB/s, {lost} bad blocks")
        self.tell("retention.window", name=name, begin_ns=begin_ns, end_ns=time.monotonic_ns())
        return passed, bad


def at_work(act, stage, do: Callable[[AtWork], dict]) -> dict:
    """The result of `do` for the step; the drive is released in any case."""
    one = AtWork(act, stage)
    try:
        with stage.stop.second_raises():
            return do(one)
    finally:
        one.leave()


def deltas(before: Mapping, after: Mapping) -> dict:
    """How far each counter has moved; None where either is not known."""
    out = {}
    for key in COUNTED:
        a, b = before.get(key), after.get(key)
        out[key] = None if a is None or b is None else b - a
    return out
