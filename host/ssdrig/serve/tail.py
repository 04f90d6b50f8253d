"""One run that is being written, followed from its folder alone: events, power, I/O and SMART as lists that only grow.

A reader's position is four numbers, each determined by the run folder and not by the time of reading: bytes of
events.jsonl, seconds of power, rows of I/O, readings of SMART. So a reader that comes again, to this process or to the
next one, goes on exactly where it was.

Power of the last moments, ten times a second, before its samples are settled: V x I by the rig's last hello, timed
by when the frames came. No clock is fitted, no gap is filled: what meter.samples makes of the same samples two seconds
later takes its place."""

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdrig.drive.smart import counters
from ssdrig.drive.wear import wa
from ssdrig.meter import pairing, power, ranges, wire
from ssdrig.meter.frames import decode_samples
from ssdrig.meter.messages import document, is_rail
from ssdrig.meter.samples import SECOND_NS, Follower
from ssdrig.reading import trust
from ssdrig.reading.event_words import step_label
from ssdrig.reading.live_load import Load
from ssdrig.reading.rundata import asked_cut_ns
from ssdrig.runs import integrity, journal, rigbin, rigrecords
from ssdrig.serve import event_words

STEP_NS = 100_000_000
KEEP_NS = 10 * 10**9  # a rail that is silent for longer is not waited for


class Preview:
    """Feed it records in file order; rows() returns the complete steps. One row: (start of the step by CLOCK_MONOTONIC
    ns, least, mean and greatest power in W of all rails together). With several rails the extremes are the sums of the
    rails' own, between which the power was."""

    def __init__(self, hello: dict | None = None):
        self._rails: dict[int, dict[int, dict]] = {}  # rail -> config -> facts
        self._steps: dict[int, dict[int, list[float]]] = {}  # start -> rail -> [n, sum, least, greatest]
        self._latest: dict[int, int] = {}  # rail -> time of its last sample
        self.hello(hello)

    def hello(self, hello: dict | None) -> None:
        """Take over the rails from the board's hello."""
        facts = hello.get("rails") if isinstance(hello, dict) else None
        rails: dict[int, dict[int, dict]] = {}
        for fact in facts if isinstance(facts, list) else []:
            with contextlib.suppress(KeyError, TypeError, AttributeError):
                if isinstance(fact["rail"], int) and isinstance(fact["config"], int) and is_rail(fact):
                    for (rail, config), of in ranges.by_config([fact]).items():
                        rails.setdefault(rail, {})[config] = of
        if rails:
            self._rails = rails

    def feed(self, records: rigrecords.Records) -> None:
        """Take the next records. Never raises on what a board may have sent."""
        for i in np.flatnonzero(records.kind == rigbin.FRAME).tolist():
            payload = records.payload(i)
            if payload[:1] == bytes([wire.HELLO]):
                try:
                    self.hello(document(payload[wire.BODY :]))
                except ValueError:
                    continue
            elif payload[:1] == bytes([wire.SAMPLES]) and len(payload) >= wire.S_FIRST:
                self._samples(payload, int(records.t_ns[i]))

    def _samples(self, payload: bytes, arrival_ns: int) -> None:
        rail, config, n = payload[wire.S_RAIL], payload[wire.S_CONFIG], payload[wire.S_N]
        facts = self._rails.get(rail, {}).get(config)
        if facts is None or ranges.is_moving(facts) or not n or len(payload) != wire.S_FIRST + n * wire.SAMPLE_BYTES:
            return
        data = np.frombuffer(payload, np.uint8)
        at = np.array([wire.S_FIRST]), np.array([n]), np.array([0])
        t_us, vbus, current = decode_samples(data, *at)
        V, I = np.empty(n), np.empty(n)  # noqa: E741
        try:
            power.convert(facts, vbus, current, V, I)
        except (KeyError, TypeError, ValueError):
            return
        watts = V * I
        t_ns = arrival_ns + (t_us - t_us[-1]) * 1000
        self._latest[rail] = arrival_ns
        steps = t_ns // STEP_NS
        for step in np.unique(steps).tolist():
            mine = watts[steps == step]
            row = self._steps.setdefault(step * STEP_NS, {}).setdefault(rail, [0, 0.0, np.inf, -np.inf])
            row[0] += len(mine)
            row[1] += float(mine.sum())
            row[2], row[3] = min(row[2], float(mine.min())), max(row[3], float(mine.max()))

    def rows(self) -> list[tuple[int, float, float, float]]:
        """The steps that every rail has passed, in order."""
        if not self._latest or set(self._latest) != set(self._rails):
            return []
        newest = max(self._latest.values())
        passed = min(t for t in self._latest.values() if t > newest - KEEP_NS)
        out = []
        for start in sorted(self._steps):
            rails = self._steps[start]
            if start + STEP_NS > passed:
                break
            if set(rails) == set(self._rails):
                parts = list(rails.values())
                mean = sum(row[1] / row[0] for row in parts)
                out.append((start, sum(row[2] for row in parts), mean, sum(row[3] for row in parts)))
        return out

    def forget(self, before_ns: int) -> None:
        """Drop the steps that begin before a time: they are settled."""
        self._steps = {start: rails for start, rails in self._steps.items() if start >= before_ns}


TENTHS = 6000  # of settled power that are kept: ten minutes
LOOK_S = 1.0  # how often I/O, and settled power, are looked for
TURN_NS = 2 * SECOND_NS  # of power that are settled in one batch: each costs a fit of the clock
LATE_ROWS = 60  # seconds whose clock error counts as the present one
ROWS = 500  # of one list, in one message
COURSE_ROWS = 400  # of a step of an ended run
PREVIEWS = 60  # in one message: the newest
BASES = ("before", "round", "idle")  # readings, before a load, that write amplification is counted from
MANY = 3000  # rows of settled power that are taken up at a time
HEATS = 3600  # rows of I/O that have their latencies
SILENT_NS = 12 * SECOND_NS  # do not wait for a rail that is silent for longer
BEHIND = 4 << 20  # bytes of rig.bin: the newest moments are not shown before the rest has been read


class Place(NamedTuple):
    """A reader's position: see above. As text, the id of a message."""

    events: int = 0
    power: int = 0
    load: int = 0
    smart: int = 0

    def __str__(self) -> str:
        return "-".join(map(str, self))


def _one_by_one(data: bytes, octets: np.ndarray) -> tuple[np.ndarray, int, None]:
    """For rigrecords.decode: with a dozen records a batch would take longer."""
    return np.empty(0, np.int64), 0, None


def _begun(out: Path) -> tuple[int, str]:
    """By when fio was started for it."""
    try:
        return (out.parent / "start.json").stat().st_mtime_ns, str(out)
    except OSError:
        return 0, str(out)


def place(text: str | None) -> Place:
    """A Place from its text; the beginning if the text is invalid."""
    parts = (text or "").split("-")
    good = len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts)
    return Place(*map(int, parts)) if good else Place()


class Tail:
    """step() reads new data, in one thread; since() may be called from any."""

    def __init__(self, folder: Path):
        """Raises JournalError if it is not a run folder."""
        self.folder = folder
        self.header = journal.run_header(folder)
        self.started_ns = self.header["started"]["t_ns"]
        self.k = int(self.header["drive"].get("time_dilation") or 1)
        self.ended = False
        self._lock = threading.Lock()
        self._follower = Follower(folder, turn_ns=TURN_NS, step_ns=STEP_NS)
        self._preview = Preview()
        self._preview_at: int | None = None
        self._next_look = 0.0
        self._loads: list[tuple[str, Path]] = []  # steps with I/O and their folders, in order
        self._jobs: dict[Path, Load] = {}  # of the latest of them
        self._written_bytes = 0  # by the jobs before these
        self._offset = 0
        self._sealed = False
        self._unpaired = ""  # why, where the rig was not seen to feed the drive
        self._events: list[
            tuple[int, list | None, dict | None]
        ] = []  # offset after it, event_words.event(), event_words.of_step()
        self._seconds: list[list] = []
        self._tenths: list[list] = []
        self._tenths_from = 0  # index of the first that is kept
        self._open: dict[
            int, dict[str, list]
        ] = {}  # start of a step -> rail -> [n, mean, least, greatest, J, lost, err]
        self._of_seconds: dict[int, list[list]] = {}  # start of a second of drive time that goes on -> its steps
        self._rows: list[list] = []
        self._smart: list[dict] = []
        self._cut_ns: int | None = None  # of a cut that the run's owner had asked for
        self._base: dict | None = None  # the reading that write amplification is counted from
        self._newest: list[tuple[int, float, float, float]] = []
        self._last: dict[str, dict] = {}  # the latest event of each kind of trust.LIVE
        self._boots: set[str] = set()
        self._losses = self._samples = 0

    # ---- reading

    def step(self) -> bool:
        """Read new data; whether there was any."""
        before = self._counts()
        held = journal.lock_is_held(self.folder)  # before the rest: earlier writes are read below
        self._read_events()
        looked = time.monotonic() >= self._next_look
        if looked or not held:
            self._next_look = time.monotonic() + LOOK_S
            self._read_loads(not held)
            if not self._unpaired:
                self._read_power(not held)
        if not self._unpaired:
            self._read_preview()
        self.ended = not held
        return self._counts() != before

    def _counts(self) -> tuple:
        newest = self._newest[-1][0] if self._newest else 0
        return (
            self._offset,
            self._tenths_from + len(self._tenths),
            len(self._rows),
            len(self._smart),
            newest,
            self.ended,
        )

    def _read_events(self) -> None:
        try:
            with open(self.folder / "events.jsonl", "rb") as f:
                f.seek(self._offset)
                data = f.read(integrity.most_bytes("events.jsonl"))
        except OSError:
            return
        events: list[tuple[int, dict]] = []
        for line in data.split(b"\n")[:-1]:
            self._offset += len(line) + 1
            has_seal = integrity.SEAL.search(line) is not None
            self._sealed |= has_seal
            of_line = integrity.lines(line + b"\n").events if has_seal or not self._sealed else ()
            events += [(self._offset, event) for event in of_line]
        self._heed_pairing([event for _, event in events])
        for offset, event in events:
            self._take(offset, pairing.without_power(event, self._unpaired) if self._unpaired else event)

    def _heed_pairing(self, events: list[dict]) -> None:
        """Nothing of the power is shown from the verdict on that the rig was not seen to feed the drive."""
        if self._unpaired or not (why := pairing.unpaired(events, so_far=True)):
            return
        self._unpaired = why
        with self._lock:
            self._seconds.clear()
            self._tenths.clear()
            self._newest.clear()

    def _take(self, offset: int, event: dict) -> None:
        kind = event["kind"]
        with self._lock:
            self._events.append(
                (offset, event_words.event(event, self.axis_s), event_words.of_step(event, self.axis_s))
            )
        if kind in trust.LIVE:
            self._last[kind] = event
        if kind == "rig.hello" and isinstance(event.get("hello"), dict):
            self._boots.add(str(event["hello"].get("boot")))
        self._losses += kind == "rig.lost"
        if kind == "cut.fired":
            self._base = None  # later counts include the drive's restart
            self._cut_ns = asked_cut_ns(event)
        if kind == "step.start":
            kind = "played" if isinstance(event.get("played"), str) else "fio"
            name = event.get(kind)
            path = self.folder / kind / (name if isinstance(name, str) else event["step"])
            if self._inside(path):
                self._loads.append((step_label(event), path))
        elif kind == "smart.end" and event["ok"]:
            self._read_smart(event["n"])

    def _read_smart(self, number: int) -> None:
        try:
            path = self.folder / "smart" / f"{number:03}.json"
            if not self._inside(path):
                return
            snapshot = counters.snapshot(integrity.document_of(path))
            row = {"t": self.axis_s(snapshot["t_ns"]), "C": snapshot["temperature_C"]}
            row["host"], row["nand"] = snapshot["host_written_bytes"], snapshot["nand_written_bytes"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return
        if snapshot["reason"] in BASES:
            self._base = snapshot
        elif self._base:
            factor = wa.between(self._base, snapshot)
            row |= {"wa": factor.value, "wa_error": factor.error, "wa_why": factor.why}
            row["since"] = self.axis_s(self._base["t_ns"])
        with self._lock:
            self._smart.append(row)

    def _read_power(self, final: bool) -> None:
        for count, (rail, second) in enumerate(self._follower.seconds(final), 1):
            if count % MANY == 0:  # of a run that has gone on for long, some at a time
                self._settle(False)
            row = [second.samples, second.p_mean_W, second.p_min_W, second.p_max_W, second.energy_J, second.lost]
            self._open.setdefault(second.t_ns, {})[rail] = [*row, second.t_err_ns]
        self._settle(final)

    def _settle(self, final: bool) -> None:
        """Steps that all rails have passed become rows; those of a second of drive time that is over become its row."""
        rails = self._follower.rail_names()
        newest = {rail: max((t for t, of in self._open.items() if rail in of), default=0) for rail in rails}
        passed = min(newest.values(), default=0)  # each rail's rows come a second at a time, in order
        last = max(newest.values(), default=0)
        passed = last if final else max(passed, last - SILENT_NS)
        whole_ns = (passed // SECOND_NS + 1) * SECOND_NS if passed else 0
        due = sorted(t for t in self._open if t < whole_ns)
        if not due and not (final and self._of_seconds):
            return
        tenths: list[list] = []
        length_ns = SECOND_NS * self.k
        for t in due:
            opened = self._open.pop(t)
            if set(opened) != set(rails):
                continue  # of a rail that was silent nothing is known, so of the sum, too
            rows = list(opened.values())
            total = [sum(row[i] for row in rows) for i in range(1, 6)]
            tenths.append([self.axis_s(t), *(round(v, 5) for v in (total[1], total[0], total[2]))])
            self._of_seconds.setdefault(t // length_ns * length_ns, []).append(
                [sum(row[0] for row in rows), *total, max(row[6] for row in rows)]
            )
        over = sorted(t for t in self._of_seconds if final or t + length_ns <= whole_ns)
        seconds = [self._second(t, self._of_seconds.pop(t)) for t in over]
        with self._lock:
            self._tenths += tenths
            self._seconds += seconds
            many = max(0, len(self._tenths) - TENTHS)
            self._tenths_from += many
            del self._tenths[:many]
            self._preview.forget(whole_ns)
            self._newest = [row for row in self._newest if row[0] >= whole_ns]

    def _second(self, t_ns: int, rows: list[list]) -> list:
        """[t, least W, mean W, greatest W, J, lost, µs of clock error] of a second of drive time, by its steps."""
        samples = sum(row[0] for row in rows)
        self._samples += samples
        mean = sum(row[0] * row[1] for row in rows) / samples
        least, most = min(row[2] for row in rows), max(row[3] for row in rows)
        joules, lost = sum(row[4] for row in rows) / self.k, sum(row[5] for row in rows)
        return [
            self.axis_s(t_ns),
            round(least, 5),
            round(mean, 5),
            round(most, 5),
            round(joules, 6),
            lost,
            round(max(row[6] for row in rows) / 1000),
        ]

    def _read_preview(self) -> None:
        if self._preview_at is None or self._follower.offset - self._preview_at > BEHIND:
            self._preview_at = self._follower.offset
            self._preview.hello(self._follower.hello)
        try:
            with open(self.folder / "rig.bin", "rb") as f:
                f.seek(self._preview_at)
                data = f.read(BEHIND)
        except OSError:
            return
        records = rigrecords.decode(data, self._preview_at, _one_by_one)
        if records.next_offset == self._preview_at:
            return
        self._preview_at = records.next_offset
        self._preview.feed(records)
        with self._lock:
            self._newest = self._preview.rows()

    def _read_loads(self, final: bool) -> None:
        """What the jobs of each step have added, in the order in which they were started."""
        while self._loads:
            step, folder = self._loads[0]
            over = len(self._loads) > 1  # nothing is added any more
            jobs = self._outs(folder)
            for out in jobs:
                job = self._jobs.setdefault(out, Load(out, self.k))
                while True:
                    self._add(step, job.rows())
                    if not job.has_more:
                        break
                if over or final or out != jobs[-1]:
                    self._add(step, job.rest())
            if not over:
                return
            self._written_bytes += sum(job.written_bytes for job in self._jobs.values())
            self._jobs.clear()
            del self._loads[0]

    def _outs(self, folder: Path) -> list[Path]:
        """out.json of a step's jobs, in the order in which they were started; [] if its name is not a file's."""
        try:
            return sorted(filter(self._inside, folder.rglob("out.json")), key=_begun)
        except OSError:
            return []

    def _add(self, step: str, loads: list[dict]) -> None:
        rows = [self._row(step, row) for row in loads if self._whole(row)]
        with self._lock:
            self._rows += rows
            for row in self._rows[-HEATS - len(rows) - 1 : -HEATS]:
                row[6] = []

    def _whole(self, row: dict) -> bool:
        """Whether the drive had its power to the row's end. What comes of a run while its drive is cut comes late: such
        a row then has its own time."""
        if self._cut_ns is None or row["t_ns"] <= self._cut_ns:
            return True
        row["t_ns"] = min(row["t_ns"], row["end_ns"])
        return row["t_ns"] <= self._cut_ns

    def _inside(self, path: Path) -> bool:
        """Whether it is in the run folder after following links; False for an invalid path."""
        try:
            return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder))
        except ValueError:
            return False

    def _row(self, step: str, row: dict) -> list:
        """[t, step, IOPS, B/s, mean µs, P99 µs, heat, length in s] of drive time."""
        k, rounded = self.k, lambda v: None if v is None else round(v, 1)
        return [
            self.axis_s(row["t_ns"]),
            step,
            round(row["iops"] * k),
            round(row["bw"] * k),
            rounded(row["lat_us"]),
            rounded(row["p99_us"]),
            row["heat"],
            round(row["heat_s"] / k, 3),
        ]

    def axis_s(self, t_ns: int) -> float:
        """Host time -> seconds of drive time since the start of the run; to a microsecond, which distinguishes the
        steps of a dilated drive."""
        return round((t_ns - self.started_ns) / 1e9 / self.k, 6)

    def course(self) -> list[dict]:
        """IOPS of each step with I/O of a run that has ended, in order: {"label", "round", "rows": [[s since the step
        began, IOPS], …]}, each at most COURSE_ROWS rows, which are means of equal stretches. Power is not read."""
        self._read_events()
        self._read_loads(True)
        begun = [step for *_, step in self._events if step and step["kind"] == "step.start"]
        out: list[dict] = []
        for step, after in zip(begun, [*begun[1:], None]):
            own = [
                (row[0] - step["t"], row[2])
                for row in self._rows
                if row[1] == step["label"] and row[0] > step["t"] and (after is None or row[0] <= after["t"] + 1)
            ]
            if own:
                rows = [
                    [round(float(of[:, 0].mean()), 2), round(float(of[:, 1].mean()))]
                    for of in np.array_split(np.array(own), min(len(own), COURSE_ROWS))
                ]
                out.append({"label": step["label"], "round": step["round"], "rows": rows})
        return out

    # ---- what a reader gets

    def since(self, at: Place, tenths: int, preview_ns: int) -> tuple[dict | None, Place, int, int]:
        """The data after a place and the next place; likewise for the tenths (a count) and the newest moments (a time),
        without older ones: (message or None, place, tenths, preview_ns)."""
        with self._lock:
            events = self._events_after(at.events)[:ROWS]
            seconds, rows = self._seconds[at.power : at.power + ROWS], self._rows[at.load : at.load + ROWS]
            smart = self._smart[at.smart : at.smart + ROWS]
            strip = self._trust() if events or seconds else None
            first = max(tenths, self._tenths_from)
            fine = self._tenths[first - self._tenths_from :][:ROWS]
            newest = [row for row in self._newest if row[0] > preview_ns][-PREVIEWS:]
            more = len(events) == ROWS or len(seconds) == ROWS or len(rows) == ROWS or len(fine) == ROWS
        message: dict = {}
        if events:
            at = at._replace(events=events[-1][0])
            message["events"] = [line for _, line, _ in events if line]
            message["steps"] = [line for _, _, line in events if line]
        if rows:
            message["written"] = self._written_bytes + sum(job.written_bytes for job in self._jobs.values())
        for name, rows_of in (("seconds", seconds), ("load", rows), ("smart", smart), ("tenths", fine)):
            if rows_of:
                message[name] = rows_of
        if strip:
            message["trust"] = strip
        if newest:
            message["preview"] = [[self.axis_s(t), *(round(v, 4) for v in watts)] for t, *watts in newest]
        at = Place(at.events, at.power + len(seconds), at.load + len(rows), at.smart + len(smart))
        if message and more:
            message["more"] = True
        return message or None, at, first + len(fine), newest[-1][0] if newest else preview_ns

    def _trust(self) -> list[dict]:
        """The trust strip as it is now, in words."""
        errors = [row[6] for row in self._seconds[-LATE_ROWS:]]
        power = {
            "samples": self._samples,
            "samples_lost": sum(row[5] for row in self._seconds),
            "clock_error_us": max(errors, default=None),
            "breaks": self._losses + max(0, len(self._boots) - 1),
        }
        return trust.in_words(trust.live(self.header, self._last, power))

    def _events_after(self, offset: int) -> list:
        """The latest are asked for as a rule, so it is looked for from the end."""
        n = len(self._events)
        while n and self._events[n - 1][0] > offset:
            n -= 1
        return self._events[n:]

    def facts(self) -> dict:
        """The facts on the page that do not change during a run."""
        return event_words.facts(self.header)
