"""Which points a run holds, and RUN/points.lp, where each is written once as the line that is sent ever after.

Points are made from the run folder alone, each at its own time in its series. After a crash all of them are made again
and those that points.lp already holds are dropped, so a line never changes once it is on the disk: a database that has
it may be sent it again (InfluxDB 3 promises nothing for a point that comes back changed). RUN/points.made states how
they are made, and when all of them are there (made.py): of a run that has ended they are made once and for all.

Points of a power-loss campaign: one for each judged cut, and the bound on the probability per cut at that time.

Points of a retention test, each of one event: how fast the drive was when it was sealed, what each pass over it
found, and what its storage costs.

The seconds of a fio job that is still running, from the status lines that it has left so far in out.json (one a
second, fiotext.thin). Its own logs come when it ends."""

import functools
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssdrig.base.errors import JournalError, LoadError, RigError
from ssdrig.base.utc import Utc
from ssdrig.drive.smart import counters
from ssdrig.load import fioclock, fiolog, fioseconds, fiotext, playedlog
from ssdrig.meter import pairing, reduced, samples
from ssdrig.plan.rules import chance
from ssdrig.powerloss import tally
from ssdrig.publish.influx import line_protocol, made, smart_points
from ssdrig.publish.influx.line_protocol import drive_tag, host_tag
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.reading import host_power
from ssdrig.runs import integrity, journal, parts

LEAST_MS = 500  # the document at the end may come right after the previous one


class Second(NamedTuple):
    """From t_ns on, about a second: all directions together, host time. Without I/O, latencies are absent."""

    t_ns: int
    iops: int
    bw_bytes: int
    lat_mean_ns: int | None


class Running:
    """One job. The same file gives the same seconds, in however many steps it is read."""

    def __init__(self, folder: Path):
        self.path = Path(folder) / "out.json"
        self._at = 0
        self._reported = fiotext.totals(None)

    def seconds(self) -> list[Second]:
        """Those that have come since the last call."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._at)
                text = file.read()
        except (OSError, ValueError):  # the name of a step may be none of a file
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [second for line in whole.splitlines() if (second := self._second(line))]

    def _second(self, line: bytes) -> Second | None:
        if not line.startswith(b'{"t_ns"'):
            return None
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not fiotext.is_sound(document):
            return None
        if not fioclock.has_job_time(document, self.path.parent):
            return None
        now = fiotext.totals(document)
        before = fioclock.followed(now, self._reported)
        span_ms, ios = now["runtime_ms"] - before["runtime_ms"], now["ios"] - before["ios"]
        moved, waited_ns = now["bytes"] - before["bytes"], now["lat_sum_ns"] - before["lat_sum_ns"]
        t_ns = int(document["t_ns"]) - span_ms * 1_000_000
        if span_ms < LEAST_MS or min(ios, moved, t_ns) < 0:
            return None
        self._reported = now
        lat_ns = round(waited_ns / ios) if ios and waited_ns > 0 else None
        return Second(t_ns, round(1000 * ios / span_ms), round(1000 * moved / span_ms), lat_ns)


Point = tuple[str, dict, dict]  # measurement, tags, fields
OF_HOST = ("lasted_s", "power_W", "energy_J")
OF_BASELINE = ("p50_us", "p99_us", "max_us", "pieces")
OF_PASS = ("number", "blocks", "bad", "share_most", "slow", "slowdown")
OF_STORAGE = ("hours", "off_hours", "mean_C", "effective_C", "covers")
# what the drive did on its own since power was back: a refresh shows as bytes of NAND
OF_DRIVE = ("nand_written_bytes", "refreshes", "soft_ecc_errors", "uncorrectable_reads", "media_errors")


def retention_points(event: Mapping) -> Iterator[Point]:
    """Empty for events that do not belong to a retention test or lack these figures."""
    of = OF_RETENTION.get(event["kind"])
    if of is None:
        return
    measurement, made = of
    fields = line_protocol.fitting(measurement, made(event))
    if fields:
        yield measurement, {}, fields


def _retention_baseline(event: Mapping) -> dict[str, Any]:
    return {"bw_MBps": event.get("MBps"), **{name: event.get(name) for name in OF_BASELINE}}


def _retention_pass(event: Mapping) -> dict[str, Any]:
    uber = _mapping(event, "uber")
    fields = {name: event.get(name) for name in OF_PASS} | {"classes": ",".join(sorted(_mapping(event, "classes")))}
    return fields | {"uber": uber.get("uber"), "uber_most": uber.get("most")}


def _retention_storage(event: Mapping) -> dict[str, Any]:
    stored, moved = _mapping(event, "storage"), _mapping(event, "since_power_on")
    fields = {name: stored.get(name) for name in OF_STORAGE} | {name: moved.get(name) for name in OF_DRIVE}
    at = _mapping(stored, "equivalent_h")
    hours = {
        f"equivalent_{celsius}C_{eV}eV_h".replace(".", "_"): value
        for celsius in at
        for eV, value in _mapping(at, celsius).items()
    }
    names = (name for name in line_protocol.read_schema()["retention_storage"].fields if name.startswith("equivalent_"))
    return fields | {name: hours.get(name) for name in names}


def _mapping(of: Mapping, key: str) -> Mapping:
    value = of.get(key)
    return value if isinstance(value, Mapping) else {}


OF_RETENTION = {
    "retention.baseline": ("retention_baseline", _retention_baseline),
    "retention.pass": ("retention_pass", _retention_pass),
    "retention.end": ("retention_storage", _retention_storage),
}


MIX = "mix"  # aim and shape of the bound on all cuts together
LOST = ("LOST_FUA", "LOST_FLUSHED", "LOST_ACKED")
TORN = ("TORN_LB", "TORN_ATOMIC")
COPIED = ("cut", "in_flight", "unflushed_bytes", "delta_flush_us", "lost_volatile", "recharge_J", "boot_J")
OF_FALL = ("t90_10_us", "holdup_us")


class Cuts:
    """The points of a run folder's sessions, taken up in the order of their events. Of a part of a run the cuts of the
    parts before it count in the bound, too."""

    def __init__(self, run: Path):
        self._counts: dict[tuple[str, str], tuple[chance.Failing, int]] = {}  # aim, shape -> failing, cuts
        self._sessions: list[tuple] = []  # all so far, as statistics.Failing takes those of another group
        folders = parts.of(parts.root(run)) if parts.root(run) != run else []
        for folder in folders[: folders.index(run)] if run in folders else []:
            for event in journal.events(folder):
                if event["kind"] == "session.judged":
                    self._count(event)

    def points(self, event: Mapping) -> Iterator[Point]:
        """Points of an event session.judged; empty for a control session or a cut without a verdict."""
        groups = self._count(event)
        if not groups:
            return
        aim, shape = groups[0]
        yield "powerloss_cut", {}, {"aim": aim, "shape": shape} | _fields(event)
        for group in groups:
            failing, cuts = self._counts[group]
            bound = chance.upper_bound(failing.most, cuts)
            counted = {"k": failing.least, "k_most": failing.most, "n": cuts, "p_upper": bound}
            yield "powerloss_bound", {}, {"aim": group[0], "shape": group[1]} | counted

    def _count(self, event: Mapping) -> list[tuple[str, str]]:
        """The groups that the cut belongs to; none where it is in none."""
        own = [(str(event.get("aim")), str(event.get("shape"))), (MIX, MIX)] if tally.is_cut(event) else []
        number = event.get("cut")
        number = number if type(number) is int else len(self._sessions)
        interval = tally.interval_of({**event, "cut": number})
        power = bool(own) or tally.takes_power(event)
        for group in own:
            if group not in self._counts:
                self._counts[group] = chance.Failing(), 0
                for other in self._sessions:
                    self._counts[group][0].add(*other)
        for group, (failing, cuts) in self._counts.items():
            failing.add(number, group in own, power, interval)
            self._counts[group] = failing, cuts + (group in own)
        self._sessions.append((number, False, power, interval))
        return own


def time_ns(event: Mapping) -> int:
    """When the power was cut; where that is not known, when it was judged."""
    fired_ns = event.get("fired_ns")
    return fired_ns if type(fired_ns) is int and 0 <= fired_ns < 1 << 62 else event["t_ns"]


def _fields(event: Mapping) -> dict:
    raw = event.get("findings")
    raw_map: Mapping = raw if isinstance(raw, Mapping) else {}
    fall = event.get("fall")
    count = lambda value: value if type(value) is int else 0
    blocks = lambda *names: sum(count(raw_map.get(name)) for name in names)
    fields = {"fail": int(bool(event.get("failed"))), "classes": ",".join(sorted(raw_map))}
    fields |= {"lost_durable": blocks(*LOST), "torn": blocks(*TORN)}
    fields |= {"corrupt": blocks("CORRUPT"), "unreadable": blocks("UNREADABLE")}
    fields |= {name: event.get(name) for name in COPIED}
    fields |= {name: fall.get(name) if isinstance(fall, Mapping) else None for name in OF_FALL}
    ready_s = event.get("ready_s")
    fields["ready_ms"] = 1e3 * ready_s if isinstance(ready_s, int | float) else None
    fields["unsafe"] = event.get("unsafe_shutdowns")
    return line_protocol.fitting("powerloss_cut", fields)


class Emitter:
    """Appends to RUN/points.lp what the run folder has come to hold. One at a time: it locks points.lp.

    size: bytes of whole lines in points.lp, all of them on the disk. left_out: values that no database can hold. ended:
    nothing is added to the run folder any more, which makes it quick.
    Raises JournalError if the folder is not a run's, or another process has it."""

    def __init__(self, run: Path, ended: bool = False):
        self.run = Path(run)
        self.header = _header(self.run)
        self.left_out = 0
        self._schema = line_protocol.read_schema()
        self._tags = {"run": self.header["run"], "drive": drive_tag(self.header), "host": host_tag(self.header)}
        self._utc = Utc(self.header["started"]["t_ns"], self.header["started"]["utc_ns"])
        self._events_at = 0
        self._made: dict[bytes, set[int]] = {}  # series -> UTC of the points made
        # folder of fio's job, within fio/ -> (its step, t_ns of its start, its seconds so far), until that has ended
        self._jobs: dict[str, tuple[str, int, Running]] = {}
        self._smart = Smart(self.run)
        self._cuts = Cuts(self.run)
        self._power_fields = tuple(self._schema["power"].fields)
        self._together = samples.Together()
        self._waits = False
        self._why_no_power = self._late = ""  # the rig feeds another drive, or it is looked for after the last step
        self._outbox = Outbox(self.run)
        self._turn_s = made.begin(self._outbox, ended)
        self._power = samples.Follower(self.run, turn_ns=self._turn_s * samples.SECOND_NS)
        self._held: dict[bytes, set[int]] = {}  # series -> times of its points in points.lp
        for line in self._outbox.lines():
            series, t = line_protocol.series_and_time(line[:-1])
            self._held.setdefault(series, set()).add(t)

    @property
    def size(self) -> int:
        return self._outbox.size

    def __enter__(self) -> "Emitter":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self._outbox.close()

    def step(self, final: bool = False) -> int:
        """Append the lines that are final now; final: the run is over, append the rest. Returns how many lines came."""
        lines, source = [], made.source(self.run)
        for line in self._lines(final):
            if not self._held:
                lines.append(line + b"\n")
                continue
            series, t = line_protocol.series_and_time(line)
            if t not in self._held.get(series, ()):
                lines.append(line + b"\n")
        if lines:
            self._outbox.append(b"".join(lines))
        if final:
            made.end(self.run, self._turn_s, made.Made(self.size, self.left_out, source))
        return len(lines)

    # what a run folder states, as lines

    def _lines(self, final: bool) -> Iterator[bytes]:
        events, self._events_at, _ = journal.read_events(self.run, self._events_at)
        for event in events:
            if event["kind"] == "clock.anchor":
                self._utc.anchor(event["t_ns"], event["utc_ns"])
        self._why_no_power = self._why_no_power or pairing.unpaired(events, so_far=True)
        for event in events:
            self._heed_pairing(event)
            if why := self._why_no_power or self._late:
                event = pairing.without_power(event, why)
            fields = {"kind": event["kind"], "text": event_text(event)}
            yield from self._point("rig_event", {}, fields, event["t_ns"])
            if event["kind"] == "step.start":
                running = Running(self.run / job_of(event))
                self._jobs[job_of(event)] = (event["step"], event["t_ns"], running)
            elif event["kind"] == "step.end":
                yield from self._fio(job_of(event), event["step"])
            elif event["kind"] == "smart.end":
                t_ns, smart = self._smart.points(event)
                for measurement, tags, fields in smart:
                    yield from self._point(measurement, tags, fields, t_ns)
            elif event["kind"] == "session.judged":
                for measurement, tags, fields in self._cuts.points(event):
                    yield from self._point(measurement, tags, fields, time_ns(event))
            for power in host_power.of_event(event):
                fields = {name: getattr(power, name) for name in OF_HOST}
                yield from self._point("host_power", {"zone": power.zone}, fields, power.begin_ns)
            for measurement, tags, fields in retention_points(event):
                yield from self._point(measurement, tags, fields, event["t_ns"])
        for job, (step, *_) in list(self._jobs.items()):
            yield from self._fio(job, step) if final else self._fio_live(job)
        for rail, second in () if self._waits and not final else self._power.seconds(final):
            if self._why_no_power or self._late:
                continue
            fields = {name: getattr(second, name) for name in self._power_fields}
            yield from self._point("power", {"rail": rail}, fields, second.t_ns)
            total = self._together.add(rail, second, self._power.rail_names())
            if total:
                t_ns = total.pop("t_ns")
                yield from self._point("drive_power", {}, total, t_ns)
        if final:
            from ssdrig.publish.influx import results  # here: a run that goes on needs none of it

            for measurement, fields, utc_ns in results.points(self.run, self._schema):
                yield from self._point_at(measurement, {}, fields, utc_ns)

    def _heed_pairing(self, event: dict) -> None:
        """Power is sent once the rig is known to feed the drive, and never where it does not."""
        if event["kind"] == "rig.certificate":
            self._waits = True
        elif event["kind"] == pairing.EVENT:
            self._late = str(event.get("why") or "not known yet") if event.get("late") else ""
            self._waits = bool(self._late)
        elif event["kind"] == "step.start" and event["step"] != "check":
            self._waits = bool(self._late)

    def _point(self, measurement: str, tags: dict, fields: dict, t_ns: int) -> Iterator[bytes]:
        """The line of a point at t_ns."""
        yield from self._point_at(measurement, tags, fields, self._utc.at(t_ns))

    def _point_at(self, measurement: str, tags: dict, fields: dict, utc_ns: int) -> Iterator[bytes]:
        """The line of a point at utc_ns; a nanosecond later if its series has one there."""
        m = self._schema[measurement]
        ours = {name: value for name, value in self._tags.items() if name in m.tags}
        fields = fields | {name: value for name, value in self._tags.items() if name in m.fields}
        encoded = line_protocol.encode(m, ours | tags, fields, utc_ns)
        self.left_out += len(encoded.left_out)
        if encoded.line is None:
            return
        line = encoded.line
        series, _ = line_protocol.series_and_time(line)
        taken = self._made.setdefault(series, set())
        if utc_ns in taken:
            while utc_ns in taken:
                utc_ns += 1
            line = line[: line.rindex(b" ") + 1] + str(utc_ns).encode()
        taken.add(utc_ns)
        yield line

    def _fio_live(self, job: str) -> Iterator[bytes]:
        step, _, running = self._jobs[job]
        for second in running.seconds():
            fields = {name: value for name, value in second._asdict().items() if name != "t_ns" and value is not None}
            yield from self._point("fio_live", {}, {"step": step} | fields, second.t_ns)

    def _fio(self, job: str, step: str) -> Iterator[bytes]:
        if job in self._jobs:
            yield from self._fio_live(job)
        _, start_ns, _ = self._jobs.pop(job, (step, self.header["started"]["t_ns"], None))
        for direction, seconds in fio_seconds(self.run, job):
            zero_ns = 0 if seconds.t_ns[0] else start_ns  # without fio's own start its seconds count from 0
            for i in range(len(seconds.t_ns)):
                fields = {"step": step} | second_fields(seconds, i)
                yield from self._point("fio_interval", {"dir": direction}, fields, zero_ns + int(seconds.t_ns[i]))


class Smart:
    """The points of a run's SMART polls, taken up in the order of their events: the drive's description in the first is
    the tags of all, and write amplification counts from the last one before the load."""

    def __init__(self, run: Path):
        self.run = Path(run)
        self._identity: dict | None = None
        self._base: dict | None = None

    def points(self, event: dict) -> tuple[int, list[smart_points.Point]]:
        """Time (t_ns, the middle of the poll) and points of the poll that a smart.end event closes; none if it
        failed."""
        document = smart_document(self.run, event)
        if document is None:
            return event["t_ns"], []
        snapshot = counters.snapshot(document)
        if document["reason"] == "before":
            self._base = snapshot
        if self._identity is None:
            self._identity = smart_points.identity(document)
        t_ns = event["t_ns"] if snapshot["t_ns"] is None else snapshot["t_ns"]
        return t_ns, smart_points.of_poll(document, self._identity, snapshot, self._base)


def _header(run: Path) -> dict:
    """The parts of run.json that points need: damage elsewhere does not withhold measurements. Raises
    JournalError."""
    header = journal.open_run(run)
    started = header.get("started") if isinstance(header.get("drive"), dict) else None
    times = [started.get(key) if isinstance(started, dict) else None for key in ("t_ns", "utc_ns")]
    if not isinstance(header.get("run"), str) or not all(type(t) is int and 0 <= t < 1 << 62 for t in times):
        raise JournalError(
            f"a whole run.json in {run}", "no usable run, drive or started", "it is damaged: take it from a copy"
        )
    return header


def second_fields(seconds: fioseconds.Seconds, i: int) -> dict[str, int | None]:
    """Fields of fio_interval of second i. Without I/O, latencies are absent; a percentile needs ten values beyond
    it."""
    n, of = int(seconds.iops[i]), seconds.hist_of
    fields: dict[str, int | None] = {"iops": n, "bw_bytes": int(seconds.bw_bytes[i])}
    fields["lat_mean_ns"] = int(seconds.lat_mean_ns[i]) if n else None
    fields[f"{of}_p99_ns"] = int(seconds.lat_p99_ns[i]) if n >= 1000 else None
    fields[f"{of}_p999_ns"] = int(seconds.lat_p999_ns[i]) if n >= 10_000 else None
    return {name: value for name, value in fields.items() if value is not None}


def event_text(event: dict) -> str:
    """An event's further fields in words, its kind if it has none."""
    if event["kind"] == "note":
        return str(event.get("text", ""))
    if event["kind"] == "pairing":
        return f"{event.get('verdict')}" + (f": {event['why']}" if event.get("why") else "")
    words = (
        f"{k}: {v if isinstance(v, str) else json.dumps(v)}" for k, v in event.items() if k not in ("t_ns", "kind")
    )
    return ", ".join(words) or event["kind"]


def job_of(event: dict) -> str:
    """The folder of a step's fio job or played trace; that of the step's name where the event is older than points
    are."""
    played = event.get("played")
    return f"played/{played}" if played else f"fio/{event.get('fio') or event['step']}"


def fio_seconds(run: Path, job: str) -> list[tuple[str, fioseconds.Seconds]]:
    """Per-second tables of a job, one per direction with I/O; none if nothing did I/O in it or left anything."""
    folder, load = Path(run) / job, (playedlog if job.startswith("played/") else fiolog).load
    if not os.path.isdir(folder):  # also when the step's name is not a valid file name
        return []
    try:
        both = load(folder)
        loads = [both] if len(both.directions) == 1 else [load(folder, d) for d in both.directions]
        return [(d, s) for d, s in zip(both.directions, loads, strict=True) if len(s.t_ns)]
    except LoadError:
        return []


def smart_document(run: Path, event: dict) -> dict | None:
    """The SMART poll that a smart.end event closes, None if it failed."""
    if not event.get("ok"):
        return None
    try:
        return integrity.document_of(Path(run) / "smart" / f"{event['n']:03d}.json")
    except (OSError, ValueError) as error:
        raise JournalError(f"SMART poll {event['n']} in {run}", str(error), "restore the run folder") from None


def counts(run: Path) -> Counter[str]:
    """Points that a run which has ended must come to, per measurement: counted from the journal again, not from
    points.lp."""
    events = journal.events(run)
    jobs = {job_of(e) for e in events if e["kind"] == "step.start"}
    schema, smart = line_protocol.read_schema(), Smart(run)
    rails = [] if pairing.unpaired(events) else _seconds_with_samples(run)
    polls = Counter(
        measurement
        for event in events
        if event["kind"] == "smart.end"
        for measurement, _, fields in smart.points(event)[1]
        if line_protocol.encode(schema[measurement], {}, fields, 0).line is not None
    )
    from ssdrig.publish.influx import results  # here: a run that goes on needs none of it

    cuts = Cuts(Path(run))
    judged = [point for e in events if e["kind"] == "session.judged" for point in cuts.points(e)]
    cut_events = [point for e in events for point in retention_points(e)]
    return Counter(m for m, *_ in judged + cut_events) + Counter(
        {
            "power": sum(len(seconds) for seconds in rails),
            "drive_power": len(functools.reduce(np.intersect1d, rails)) if rails else 0,
            "fio_interval": sum(len(s.t_ns) for job in jobs for _, s in fio_seconds(run, job)),
            "fio_live": sum(len(Running(Path(run) / job).seconds()) for job in jobs),
            **{name: polls[name] for name in ("ssd_wear", "smart_device", "smart_attribute")},
            "rig_event": len(events),
            "host_power": sum(len(host_power.of_event(event)) for event in events),
            **results.counts(Path(run)),
        }
    )


def _seconds_with_samples(run: Path) -> list[np.ndarray]:
    try:
        return reduced.seconds_with_samples(run)
    except RigError:
        return []
