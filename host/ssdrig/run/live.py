"""What happens each second of a run: the live line, the line for scripts, the SMART polls at their cadence, the clock
anchors, and the question whether the rig is still there.

The lines that stand at the foot of the terminal while a run goes on. Pure."""

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ssdrig.base import words
from ssdrig.base.errors import JournalError, RigError, SsdrigError
from ssdrig.base.progress import Part, Progress, columns, fitted, rows, sparkline
from ssdrig.base.words import clock, size
from ssdrig.drive import host_energy, witness
from ssdrig.drive.smart import counters
from ssdrig.meter.pico.stream import Rig, patience_s
from ssdrig.plan.expand import Act
from ssdrig.plan.rules import limits, windows
from ssdrig.reading.smart import UNDER_LOAD
from ssdrig.run.bench import Bench
from ssdrig.run.bmc import Bmc
from ssdrig.run.course import Course, range_words
from ssdrig.run.pace import Pace
from ssdrig.runs import journal

BAR = 16  # characters
FEWEST_BARS = 8  # of a sparkline, in a narrow terminal
LEAST_ROWS = 10  # of a terminal that has room for the lines; a lower one gets one line
DAY_S = 86400


class Panel(NamedTuple):
    """What the lines show. Rates and latencies in drive time; None: not known."""

    place: str  # step of the plan, such as "3/7 load"
    share: float | None  # of the step, 0 to 1; None: it goes on until someone ends it
    elapsed_s: float
    left_s: tuple[float, float] | None  # host time to the end of the whole run, (least, most)
    written: str
    rule: str = ""
    iops: Sequence[float] = ()  # of each second of the step
    bytes_per_s: float | None = None
    latency_s: float | None = None  # mean of the last second
    stall_utc_s: float | None = None  # when the last second without any I/O was
    watts: Sequence[float] = ()  # of each second of the step
    temperature_C: float | None = None  # of the last SMART reading
    power: Sequence[Part] = ()  # the rig's state: losses, limits


def lines(panel: Panel, utc_s: float, columns: int) -> list[str]:
    """Two to four lines, each shorter than the terminal is wide.

    utc_s: now, for the clock time of the end
    """
    rows = [_course(panel, utc_s), _rates(panel), _power(panel), [Part(panel.rule, 1, 24), Part(panel.written)]]
    return [line for line in (fitted(row, columns) for row in rows) if line]


def _course(panel: Panel, utc_s: float) -> list[Part]:
    parts = [Part(panel.place, 0, 12)]
    if panel.share is None:
        parts.append(Part(words.clock(panel.elapsed_s)))
    else:
        full = round(BAR * min(1.0, panel.share))
        parts += [Part("█" * full + "·" * (BAR - full), 4), Part(f"{panel.share:4.0%}", 1)]
    if panel.left_s is not None:
        ends = "…".join(dict.fromkeys(_clock_time(utc_s + left_s, utc_s) for left_s in panel.left_s))
        left = "…".join(dict.fromkeys(map(words.clock, panel.left_s)))
        parts += [Part(f"whole run ends {ends}", 3), Part(f"in {left}")]
    return parts


def _rates(panel: Panel) -> list[Part]:
    if not panel.iops:
        return []
    parts = [Part(sparkline(list(panel.iops)), 4, FEWEST_BARS), Part(f"{panel.iops[-1]:9,.0f} IOPS")]
    if panel.bytes_per_s is not None:
        parts.append(Part(f"{words.size(panel.bytes_per_s):>7}/s", 1))
    if panel.latency_s is not None:
        parts.append(Part(f"mean latency {_latency(panel.latency_s)}", 2))
    if panel.stall_utc_s is not None:
        parts.append(Part(f"last stall {time.strftime('%H:%M:%S', time.localtime(panel.stall_utc_s))}", 3))
    return parts


def _power(panel: Panel) -> list[Part]:
    parts = [Part(sparkline(list(panel.watts)), 4, FEWEST_BARS)] if panel.watts else []
    parts += panel.power
    if panel.temperature_C is not None:
        parts.append(Part(f"{panel.temperature_C:.0f} °C", 1))
    return parts


def _latency(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _clock_time(at_s: float, utc_s: float) -> str:
    """A time of day; more than a day away, with the weekday."""
    return time.strftime("%H:%M" if at_s - utc_s < DAY_S else "%a %H:%M", time.localtime(at_s))


ANCHOR_INTERVAL_S = 60
SECOND_NS = 1_000_000_000
CLOCK_SET_NS = 1_000_000_000  # UTC - CLOCK_MONOTONIC has changed by more: someone set the wall clock
EDGE_LEAD_S = 0.2  # the poll at the end of the load is to be over before the load is
EDGE_NEAR_S = 2.0  # no other poll this close to an edge
CLIFF_POLLS = 2  # what looks like the cliff and was a stall may be polled too
HOST_INTERVAL_S = 10  # how busy the host was, in one event
RIG_SILENCE_S = 15  # a board that reboots is back within 5 s


def anchor(book: journal.Journal) -> None:
    """Tie the journal's clock to UTC, now."""
    book.event("clock.anchor", utc_ns=time.time_ns())


class Live:
    """Called once a second, by the load or by wait(). Rates shown are drive time: with time dilation k the host sees
    1/k of them."""

    def __init__(
        self, bench: Bench, book: journal.Journal, rig: Rig | None, show: Progress, jsonl: bool, course: Course
    ):
        self._bench, self._book, self._rig, self._show, self._jsonl = bench, book, rig, show, jsonl
        self._course = course
        self.dilation = self._k = bench.drive["time_dilation"]
        self._polls = 0
        self._first_document: dict | None = None
        self._polling = threading.Lock()  # held by a poll that runs during the load
        self._edges: list[threading.Timer] = []
        self._edges_s: list[float] = []  # time.monotonic() of each
        self._cliff_polls = 0
        self._longest_poll_s = 0.0
        self._pace = Pace("")
        self.unpaired = False  # the rig was not seen to feed the drive: its power is not shown
        self.rule_words = ""  # how far the rule of a repeat is
        self._place: list[Part] = []  # of the act in work
        self._doing = ""  # the same in words
        self._step = ""  # the same with the step's number
        self._act_began = 0.0
        self._iops: list[float] = []
        self._watts: list[float] = []
        self._temperature_C: float | None = None  # of the last SMART reading
        self._last: dict | None = None  # SMART reading
        self._before: dict | None = None  # the last one before the step
        self._cold_at_s = 0.0  # of the last one
        self._cold_s: float | None = None  # of the one before the first that counts heat
        self._stall_utc_s: float | None = None  # when the last second without any I/O was
        self._low_rails: set[str] = set()  # whose voltage the user was warned of
        self._next_anchor = time.monotonic() + ANCHOR_INTERVAL_S
        self._utc_distance_ns = time.time_ns() - time.monotonic_ns()
        self._host: dict | None = None  # the last reading of Bench.witness
        self._energies = host_energy.Energies()
        self.bmc: Bmc | None = None  # of the host, where the user names it
        self._started = self._next_poll = 0.0

    def act(self, act: Act, round_: int | None, number: int, of: int) -> None:
        """An act begins: the `number`th of `of` that are executed one after the other, in a repeat in this round."""
        self.begin(Pace(act.path))
        self._course.begin(act, round_)
        self._act_began = time.monotonic()
        self._place = [Part(act.label)]
        number_of = self._course.place(act)
        if act.repeat:
            rounds = f"{act.repeat.path} {round_}/{act.repeat.first - 1 + act.repeat.least}…{act.repeat.last}"
            self._place = [Part(rounds), Part(f"{number}/{of}", 2), Part(act.label.partition("/")[2], 6)]
        self._doing = " ".join(part.text for part in self._place)
        self._step = f"{number_of[0]}/{number_of[1]} {self._doing}"
        if self._jsonl:
            self.tell(step=act.path, doing=self._doing, elapsed_s=0.0)

    def left_s(self) -> tuple[float, float]:
        """Host seconds to the end of the run from the begin of the present act on, (least, most)."""
        return self._course.left_s(0.0)

    def act_done(self, act: Act, moved_bytes: int) -> None:
        """It has ended, and has moved this many bytes."""
        self._course.end(act, time.monotonic() - self._act_began, moved_bytes)

    def begin(self, pace: Pace) -> None:
        """A step starts now. A poll of the step before is waited for."""
        for timer in self._edges:
            timer.cancel()
            timer.join()  # one that fires just now has begun its poll then
        self._edges, self._edges_s = [], []
        with self._polling:
            pass
        self._pace, self._iops, self._watts, self._cliff_polls, self._host = pace, [], [], 0, None
        self._tie_clock()
        self._started = time.monotonic()
        self._before, self._cold_at_s, self._cold_s = self._last, 0.0, None
        self._next_poll = self._started + (pace.smart_s or math.inf) * self._k

    def second(self, now: dict) -> None:
        """`now` is load.run's report of the last second. Raises RigError
        when the rig has been silent for too long: a run without power data is not worth the drive's wear."""
        elapsed_s = (time.monotonic() - self._started) / self._k
        self._iops.append(now["iops"] * self._k)
        if not now["iops"]:
            self._stall_utc_s = time.time()
        if self._pace.polled:
            self._poll_in_load(now)
        self._each_second()
        pace = self._pace
        done = pace.begun_bytes + now["total_bytes"]
        share = done / pace.bytes_to_do if pace.bytes_to_do else elapsed_s / (pace.time_s or math.inf)
        share = min(1.0, share)
        moved = int(now["total_bytes"])
        left_s = self._course.left_s(elapsed_s * self._k, share if pace.bytes_to_do else None)
        rule = pace.rule() or self.rule_words
        endless = pace.bytes_to_do is None and pace.time_s is None  # until someone ends it
        latency_ns = now.get("lat_mean_ns")
        self._display(
            [
                *self._place,
                Part(clock(elapsed_s) if endless else f"{share:4.0%}", 1),
                Part(sparkline(self._iops), 9, FEWEST_BARS),
                Part(f"{self._iops[-1]:9,.0f} IOPS", 1),
                Part(f"{size(now['bw_bytes'] * self._k):>7}/s", 7),
                *self._power_parts(),
                Part(rule, 4),
                Part(self._course.written_words(moved), 5),
                *([] if endless else [Part(f"ETA {range_words(left_s)}")]),
            ],
            Panel(
                self._step,
                None if endless else share,
                elapsed_s,
                None if endless else left_s,
                self._course.written_words(moved),
                rule,
                self._iops,
                now["bw_bytes"] * self._k,
                latency_ns / self._k / 1e9 if latency_ns else None,
                self._stall_utc_s,
            ),
        )
        if self._jsonl:
            watts, lost = (self.power_W(), self._rig.lost()) if self._rig else (None, None)
            self.tell(
                step=pace.step,
                doing=self._doing,
                elapsed_s=round(elapsed_s, 1),
                share=round(share, 4),
                iops=self._iops[-1],
                bw_bytes=now["bw_bytes"] * self._k,
                power_W=watts,
                samples_lost=lost,
                rule=rule or None,
                written_bytes=self._course.written_bytes(moved),
                budget_bytes=self._course.budget.most_bytes,
                left_s=[round(s) for s in left_s],
            )

    def power_W(self) -> float | None:
        """Mean power of the last second; None without a rig, of one that feeds another drive, or where a rail sent
        nothing."""
        return self._rig.last_second().power_W() if self._rig and not self.unpaired else None

    def wait(self, host_s: float, check: Callable[[], None], ended: Callable[[], bool] = lambda: False) -> None:
        """Let host_s pass without I/O, or less: `ended` is asked once for each whole second. `check` raises when
        someone wants it to end."""
        began, shown = time.monotonic(), 0.0
        while (elapsed_s := time.monotonic() - began) < host_s:
            time.sleep(min(0.2, host_s - elapsed_s))
            check()
            if elapsed_s - shown >= 1:
                shown = float(int(elapsed_s))
                self._each_second()
                self._poll_when_due()
                if ended():
                    return
                left_s = self._course.left_s(time.monotonic() - self._started)
                written = self._course.written_words()
                self._display(
                    [
                        *self._place,
                        Part(f"{elapsed_s / host_s:4.0%}", 1),
                        *self._power_parts(),
                        Part(written, 5),
                        Part(f"ETA {range_words(left_s)}"),
                    ],
                    Panel(self._step, elapsed_s / host_s, elapsed_s, left_s, written),
                )
                if self._jsonl:
                    self.tell(
                        step=self._pace.step,
                        elapsed_s=round(elapsed_s / self._k, 1),
                        share=round(elapsed_s / host_s, 4),
                        power_W=self.power_W(),
                        left_s=[round(s) for s in left_s],
                    )

    def share(self, share: float, words: str, written_bytes: int, **details) -> None:
        """Progress of a step that counts something other than I/O, in words; `details` are for the line of a
        script. Raises RigError as second() does."""
        self._each_second()
        left_s = self._course.left_s(time.monotonic() - self._started, share)
        written = self._course.written_words(written_bytes)
        eta = Part(f"ETA {range_words(left_s)}")
        elapsed_s = time.monotonic() - self._started
        self._display(
            [*self._place, Part(f"{share:4.0%}", 1), Part(words, 2), *self._power_parts(), Part(written, 5), eta],
            Panel(self._step, share, elapsed_s, left_s, written, words),
        )
        if self._jsonl:
            written_bytes = self._course.written_bytes(written_bytes)
            left = [round(s) for s in left_s]
            self.tell(
                step=self._pace.step, doing=words, share=share, written_bytes=written_bytes, left_s=left, **details
            )

    def _display(self, parts: list[Part], shown: Panel) -> None:
        """On a terminal the lines of the panel, with power and temperature; else, and in a low one, the parts as one
        line."""
        watts = self.power_W()
        if watts is not None:
            self._watts.append(watts)
        if rows() < LEAST_ROWS:
            return self._show.show(parts)
        power = self._power_parts()
        shown = shown._replace(watts=self._watts, temperature_C=self._temperature_C, power=power)
        self._show.table(lines(shown, time.time(), columns()), parts)

    def _each_second(self) -> None:
        """The work due once a second, with and without I/O. Raises RigError."""
        self._tie_clock()
        self._heed_rig()
        self._heed_host()

    def _tie_clock(self) -> None:
        """An anchor each minute, and immediately after the wall clock was set."""
        distance_ns = time.time_ns() - time.monotonic_ns()
        if time.monotonic() >= self._next_anchor or abs(distance_ns - self._utc_distance_ns) > CLOCK_SET_NS:
            self._next_anchor = time.monotonic() + ANCHOR_INTERVAL_S
            self._utc_distance_ns = distance_ns
            anchor(self._book)

    def _heed_host(self) -> None:
        """Every HOST_INTERVAL_S how busy the host was since the last time."""
        before = self._host
        if before and time.monotonic_ns() - before["t_ns"] < HOST_INTERVAL_S * SECOND_NS:
            return
        since = ((before or {}).get("pace") or {}).get("next", witness.NOW)
        self._host = after = self._bench.witness(since)
        power: dict = {"energy_J": energies} if (energies := self._energies.since()) else {}
        if self.bmc and (watts := self.bmc.since()) is not None:
            power["bmc_W"] = watts
        if before:
            lasted_s = round((after["t_ns"] - before["t_ns"]) / SECOND_NS, 3)
            self._book.event("host", lasted_s=lasted_s, **witness.host(before, after), **power)

    def _heed_rig(self) -> None:
        limit_s = patience_s(self._rig.hello(), RIG_SILENCE_S) if self._rig else 0.0
        if self._rig and self._rig.silent_s() > limit_s:
            silent = ", ".join(f"rail {rail['rail']} ({rail.get('name')})" for rail in self._rig.silent_rails(limit_s))
            none = f"none of {silent or 'any rail'} for {limit_s:g} s"
            raise RigError("samples from the rig", none, "look at its cable and sensors, then start the run again")
        for warning in self._rig.last_second().outside() if self._rig else []:
            if warning.partition(":")[0] not in self._low_rails:  # each rail once
                self._low_rails.add(warning.partition(":")[0])
                self._book.event("note", text=warning)
                self._show.warn(f"warning: {warning}")

    def _power_parts(self) -> list[Part]:
        if not self._rig:
            return [Part("no rig", 8)]
        if self.unpaired:
            return [Part("rig not paired", 8)]
        watts, lost = self.power_W(), self._rig.lost()
        limit = "AT THE SENSOR'S LIMIT" if self._rig.last_second().clipped() else ""
        loss = Part(f"{lost} lost", 3 if lost else 8)
        return [Part(f"{'  -  ' if watts is None else f'{watts:5.2f}'} W", 3), Part(limit, 1), loss]

    def tell(self, **fields) -> None:
        """One JSON line on stdout, with how many bytes of the journal are on the disk by now."""
        events_bytes, rig_bytes = self._book.sync()
        sizes = {"events.jsonl": events_bytes, "rig.bin": rig_bytes}
        line = {"t_ns": time.monotonic_ns(), "run": str(self._book.path), **fields, "kept": sizes}
        try:
            print(json.dumps(line), flush=True)
        except OSError as error:  # the reader is gone or stdout's disk is full: the run goes on
            self._jsonl = False
            self._book.event("note", text=f"stdout takes no more lines: {error.strerror}")

    def _poll_in_load(self, now: dict) -> None:
        """The polls at the edges of the step's windows (pace.edges_s, and what looks like the cliff) and at the plan's
        interval. fio's clock, the windows' time base, started runtime_s before now."""
        if not self._edges:
            first_io = now["t_ns"] / 1e9 - now["runtime_s"]
            lead_s = EDGE_LEAD_S + self._longest_poll_s
            ends_s = first_io + (self._pace.time_s or math.inf) * self._k - lead_s
            edges = [min(first_io + at_s * self._k, ends_s) for at_s in self._pace.edges_s]
            self._edges_s = sorted(at for at in edges if at > time.monotonic())
            self._edges = [threading.Timer(at - time.monotonic(), self._poll_beside, ["edge"]) for at in self._edges_s]
            for timer in self._edges:
                timer.daemon = True
                timer.start()
        if self._cliff_polls < CLIFF_POLLS and windows.falls(self._iops):
            self._cliff_polls += 1
            self._poll_beside("edge")
        else:
            self._poll_when_due()

    def _poll_when_due(self) -> None:
        """At the plan's interval, except near an edge."""
        if time.monotonic() >= self._next_poll:
            self._next_poll += (self._pace.smart_s or math.inf) * self._k
            if not any(abs(time.monotonic() - at) < EDGE_NEAR_S for at in self._edges_s):
                self._poll_beside("poll")

    def _poll_beside(self, reason: str) -> None:
        """Poll while the load goes on: a tool that hangs, until its time limit, must not keep fio's output from being
        read."""
        if not self._polling.acquire(blocking=False):
            self._book.event("note", text=f"SMART poll ({reason}) left out: the one before has not ended yet")
            return
        threading.Thread(target=self._poll_in_background, args=(reason,), daemon=True).start()

    def _poll_in_background(self, reason: str) -> None:
        try:
            with contextlib.suppress(JournalError):  # every later append of the run raises it where someone listens
                self.poll_smart(reason)
        finally:
            self._polling.release()

    def poll_smart(self, reason: str) -> dict | None:
        """One SMART poll into the journal: its snapshot, or None. A drive that does not answer is an event, not the end
        of the run. Under load, only the sources of the first poll are read. While idle power is measured there is no
        poll: it would wake the drive."""
        if self._pace.step == "idle":
            self._book.event("note", text=f"SMART poll ({reason}) left out: idle power is being measured")
            return None
        self._polls += 1
        number, began_s = self._polls, time.monotonic()
        self._book.event("smart.start", n=number, reason=reason)
        try:
            document = self._bench.poll(self._first_document if reason in UNDER_LOAD else None)
        except (SsdrigError, OSError) as error:
            self._book.event("smart.end", n=number, reason=reason, ok=False, why=str(error))
            return None
        self._first_document = self._first_document or document
        self._longest_poll_s = max(self._longest_poll_s, time.monotonic() - began_s)
        self._course.read(time.monotonic() - began_s)
        document = {"n": number, "reason": reason, **document}
        self._book.put(f"smart/{number:03}.json", json.dumps(document).encode())
        self._book.event("smart.end", n=number, reason=reason, ok=True)
        snapshot = counters.snapshot(document)
        self._temperature_C = snapshot["temperature_C"]
        self._last, self._before = snapshot, self._before or snapshot
        if self._cold_s is None and limits.throttled(self._before, snapshot):
            self._cold_s = self._cold_at_s
        self._cold_at_s = (time.monotonic() - self._started) / self._k
        return snapshot

    def cold_s(self) -> float | None:
        """limits.cold_s() of the step so far."""
        return self._cold_s
