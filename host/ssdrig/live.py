"""What happens each second of a run while fio works: the live line, the line for scripts, the SMART polls at their cadence,
the clock anchors, and the question whether the rig is still there."""

import json
import time

from ssdrig import journal
from ssdrig.consistency import Consistency
from ssdrig.errors import RigError, SsdrigError
from ssdrig.progress import Progress, clock, sparkline
from ssdrig.rig import Rig

ANCHOR_INTERVAL_S = 60
RIG_SILENCE_S = 15  # a board that reboots is back within 5 s


class Live:
    """Called by the load once a second. Rates shown are drive time: with time dilation k the host sees 1/k of them."""

    def __init__(self, plan: Consistency, drive: dict, book: journal.Journal, rig: Rig, show: Progress, jsonl: bool, poll):
        self._plan, self._book, self._rig, self._show, self._jsonl, self._poll = plan, book, rig, show, jsonl, poll
        self._k = drive["time_dilation"]
        self._polls = 0
        self._step = ""
        self._bytes_to_write: int | None = None
        self._iops: list[float] = []
        self._next_anchor = time.monotonic() + ANCHOR_INTERVAL_S
        self._started = self._next_poll = 0.0

    def begin(self, step: str, bytes_to_write: int | None = None) -> None:
        """A step starts now; it ends after so many bytes, or after the plan's duration."""
        self._step, self._bytes_to_write, self._iops = step, bytes_to_write, []
        self._started = time.monotonic()
        self._next_poll = self._started + self._plan.smart_interval_s * self._k

    def second(self, now: dict) -> None:
        """`now` is what load.run says of the last second. Raises RigError
        when the rig has been silent for too long: a run without power data is not worth the drive's wear."""
        elapsed_s = (time.monotonic() - self._started) / self._k
        self._iops.append(now["iops"] * self._k)
        if self._step == "load" and time.monotonic() >= self._next_poll:
            self._next_poll += self._plan.smart_interval_s * self._k
            self.poll_smart("poll")
        if time.monotonic() >= self._next_anchor:
            self._next_anchor += ANCHOR_INTERVAL_S
            self._book.event("clock.anchor", utc_ns=time.time_ns())
        if self._rig.silent_s() > RIG_SILENCE_S:
            raise RigError("samples from the rig", f"none for {RIG_SILENCE_S} s", "look at its cable, then start the run again")
        share = now["total_bytes"] / self._bytes_to_write if self._bytes_to_write else elapsed_s / self._plan.duration_s
        share = min(1.0, share)
        eta_s = elapsed_s * self._k * (1 - share) / share if share > 0 else 0
        watts, lost = self._rig.power_W(), self._rig.lost()
        self._show.show(
            f"{self._step:5} {share:4.0%} {sparkline(self._iops):24} {self._iops[-1]:9,.0f} IOPS {now['bw_bytes'] * self._k / 1e6:6.1f} MB/s"
            f" {'  -  ' if watts is None else f'{watts:5.2f}'} W  {lost} lost  ETA {clock(eta_s)}"
        )
        if self._jsonl:
            self.tell(step=self._step, elapsed_s=round(elapsed_s, 1), iops=self._iops[-1], bw_bytes=now["bw_bytes"] * self._k, power_W=watts, samples_lost=lost)

    def tell(self, **fields) -> None:
        """One JSON line on stdout, with how many bytes of the journal are on the disk by now."""
        events_bytes, rig_bytes = self._book.sync()
        kept = {"events.jsonl": events_bytes, "rig.bin": rig_bytes}
        print(json.dumps({"t_ns": time.monotonic_ns(), "run": str(self._book.path), **fields, "kept": kept}), flush=True)

    def poll_smart(self, reason: str) -> None:
        """One SMART poll into the journal. A drive that does not answer is an event, not the end of the run."""
        self._polls += 1
        self._book.event("smart.start", n=self._polls, reason=reason)
        try:
            document = self._poll()
        except (SsdrigError, OSError) as error:
            self._book.event("smart.end", n=self._polls, reason=reason, ok=False, why=str(error))
            return
        document = {"n": self._polls, "reason": reason, **document}
        self._book.put(f"smart/{self._polls:03}.json", json.dumps(document).encode())
        self._book.event("smart.end", n=self._polls, reason=reason, ok=True)
