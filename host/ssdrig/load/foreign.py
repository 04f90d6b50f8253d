"""Files of fio that ssdrig did not run: JSON and logs -> seconds and totals, and the file of a run folder with them
(schemas/journal.md, recorded/).

fio's JSON counts each job from its beginning to its end: totals, means, and with `--output-format=json+` histograms.
Its logs (`write_iops_log`, `write_bw_log`, `write_lat_log`) have a row per I/O or, with `log_avg_msec`, per stretch of
time: time in ms since the job's start or, with `log_unix_epoch`, of Unix; value; direction; bytes of the I/O, 0 of a
stretch (HOWTO, "Log File Formats"). A row of a stretch is written at its end; a stretch without I/O has no row.

Seconds are counted from these rows. Rows of a stretch have rounded means, so their sums are not exact: totals are the
JSON's. Without logs the seconds are not known."""

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base import files
from ssdrig.base.errors import LoadError, UsageError, reason
from ssdrig.load import fioseconds, fiotext
from ssdrig.load.fioseconds import Seconds
from ssdrig.load.fiotext import DIRECTIONS

NAME = "foreign.json"
SCHEMA = 1
KINDS = ("iops", "bw", "lat", "clat", "slat")  # of a log
LOG = re.compile(r"(?P<prefix>.*?)_?(?P<kind>iops|bw|lat|clat|slat)(?:\.(?P<number>\d+))?\.log(?:\.gz)?")
SECOND_MS = 1000
EPOCH_MS = 10**11  # times from here on are Unix times, of 1973 and later
STAMP_S = 1.0  # by how much a job may have ended before fio printed its JSON
BY_STAMP = "fio states no start of its job: it is its JSON's time less the run time, good to a second"
NO_LAT = "fio logged no latency by the second (write_lat_log)"
MOST_S = 100 * 86400  # of a job: each second is a row
MOST_MS = 1 << 42  # of a time of day, in 2109
MOST_JSON_BYTES, MOST_LOG_BYTES = 64 << 20, 1 << 30  # unpacked
TOTALS = ("ios", "bytes")
DO = "give fio's JSON (--output-format=json+) with its logs (--write_iops_log, --write_bw_log, --write_lat_log)"


@dataclass
class Side:
    """One direction of a job. `lat_sum_ns`, `slat_sum_ns`: of all I/Os; `bins`: kind ("lat", "clat") -> {ns: I/Os};
    by the second: `by_second` "ios", "bytes", "lat_sum_ns" -> int64 (n,), a kind that is not known is missing."""

    ios: int = 0
    bytes: int = 0
    lat_sum_ns: float | None = None
    slat_sum_ns: float | None = None
    bins: dict[str, dict[str, int]] = field(default_factory=dict)
    by_second: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass
class Job:
    """Jobs of fio that ran together. `utc_ms`: when they began, good to `error_ms`; None: not known. `disk`: name of
    the one that they used."""

    name: str
    version: str
    runtime_ms: int
    utc_ms: float | None
    error_ms: float
    sides: dict[str, Side]
    disk: str | None = None
    cpu_percent: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> int:
        """How many it has by the second, 0 without logs."""
        return max((len(of) for side in self.sides.values() for of in side.by_second.values()), default=0)


# ---- fio's files


def is_json(path: Path) -> bool:
    """Whether a file is fio's JSON, perhaps with other text before it."""
    head = _content(path, 1 << 16)
    return b'"fio version"' in head


def is_log(path: Path) -> bool:
    """Whether a file has the name of a log of fio."""
    return LOG.fullmatch(path.name) is not None


def read(document: Path | None, logs: Sequence[Path]) -> list[Job]:
    """The jobs in fio's files, those of one group together, in the order of the JSON.

    document: fio's JSON; None: of the logs alone, which then need Unix times
    logs: iops, bw, lat, clat, slat; one of a kind per thread
    Raises UsageError for other files, and for files that do not fit together."""
    if document is None:
        job = _of_logs(Job("fio", "", 0, None, 0.0, {}), logs)
        _check(job, logs[0])
        return [job]
    printed = fiotext.documents(_whole(document, MOST_JSON_BYTES).decode("utf-8-sig", "replace"))[0]
    if not printed or not printed[-1]["jobs"]:
        raise UsageError(f"fio's JSON in {document}", "no whole document with jobs", DO)
    last = printed[-1]
    groups: dict[str, list[dict]] = {}
    for job in last["jobs"]:
        groups.setdefault(str(job.get("groupid", 0)), []).append(job)
    jobs = _in_turn([_job(last, members) for members in groups.values()])
    for job in jobs:
        _check(job, document)
    if len(jobs) == 1:
        return [_of_logs(jobs[0], logs)] if logs else jobs
    first, apart = 0, []
    for members in groups.values():
        threads = sum(_threads(member) for member in members)
        apart.append([path for path in logs if first < _number(path) <= first + threads])
        first += threads
    if logs and {path for own in apart for path in own} != {*logs}:
        seen = f"logs whose numbers are not those of {first} threads"
        raise UsageError(f"a log of each thread of {len(jobs)} groups of jobs", seen, "give the JSON and logs of one")
    return [_of_logs(job, own) if own else job for job, own in zip(jobs, apart, strict=True)]


def _in_turn(jobs: Sequence[Job]) -> list[Job]:
    """Groups without a start in the JSON: the last one ended when it was printed, the others one before the next."""
    out: list[Job] = []
    for job in reversed(jobs):
        if out and BY_STAMP in job.notes:
            after = out[0]
            begin_ms = None if after.utc_ms is None else after.utc_ms - job.runtime_ms
            job = replace(job, utc_ms=begin_ms, error_ms=after.error_ms + 1000 * STAMP_S)
            notes = [note for note in job.notes if note != BY_STAMP]
            job.notes = [*notes, f"fio states no start of its group, good to {job.error_ms / 1000:g} s"]
        out.insert(0, job)
    return out


def _check(job: Job, path: Path) -> None:
    """Raises UsageError for a job that no fio has run."""
    seen = ""
    if job.runtime_ms > MOST_S * 1000:
        seen = f"one of {job.runtime_ms / 86_400_000:.3g} days"
    elif job.utc_ms is not None and not 0 < job.utc_ms < MOST_MS:
        seen = "one at an impossible time of day"
    if seen:
        raise UsageError(f"jobs of at most {MOST_S // 86400} days in {path}", seen, "take it from a copy")


def _whole(path: Path, most: int) -> bytes:
    """The content of a file, unpacked. Raises UsageError for more than `most` bytes."""
    content = _content(path, most + 1)
    if len(content) > most:
        raise UsageError(f"at most {most >> 20} MiB in {path}", "more", "give a part of it")
    return content


def _content(path: Path, most: int) -> bytes:
    """The first bytes of a file, unpacked."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else open(path, "rb") as file:
            return file.read(most)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"a file of fio at {path}", str(error), "name another file") from error


def _number(path: Path) -> int:
    match = LOG.fullmatch(path.name)
    return int(match["number"] or 0) if match else 0


def _threads(job: Mapping) -> int:
    options = job.get("job options") or {}
    text = str(options.get("numjobs", 1))
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else 1


def _job(document: Mapping, members: Sequence[dict]) -> Job:
    """The jobs of one group, from the last document."""
    total = fiotext.totals({"jobs": list(members)})
    runtime_ms = int(total["runtime_ms"])
    starts = [
        member["job_start"]
        for member in members
        if isinstance(member.get("job_start"), int) and member["job_start"] > 0
    ]
    stamp_ms, stamp_s = document.get("timestamp_ms"), document.get("timestamp")
    if not stamp_ms and isinstance(stamp_s, int):
        stamp_ms = 1000 * stamp_s
    if starts:
        utc_ms, error_ms, notes = float(min(*starts, 2 * MOST_MS)), 1.0, []
    elif isinstance(stamp_ms, int) and stamp_ms > 0:
        utc_ms, error_ms, notes = float(min(stamp_ms, 2 * MOST_MS) - runtime_ms), 1000 * STAMP_S, [BY_STAMP]
    else:
        utc_ms, error_ms, notes = None, 0.0, []
    sides = {}
    for direction in DIRECTIONS:
        of = fiotext.totals({"jobs": list(members)}, direction)
        if of["ios"]:
            own = [member.get(direction) or {} for member in members]
            bins = {kind: _bins(own, f"{kind}_ns", of["ios"]) for kind in ("lat", "clat")}
            timed = all((side.get("lat_ns") or {}).get("mean") is not None for side in own if side.get("total_ios"))
            sides[direction] = Side(
                ios=of["ios"],
                bytes=of["bytes"],
                lat_sum_ns=of["lat_sum_ns"] if timed else None,
                slat_sum_ns=of["slat_sum_ns"],
                bins={kind: of_kind for kind, of_kind in bins.items() if of_kind},
            )
    disks = document.get("disk_util")
    used = [disk.get("name") for disk in (disks if isinstance(disks, list) else []) if isinstance(disk, dict)]
    return Job(
        name=" + ".join(dict.fromkeys(str(member.get("jobname") or "fio") for member in members)),
        version=str(document.get("fio version") or "fio"),
        runtime_ms=runtime_ms,
        utc_ms=utc_ms,
        error_ms=error_ms,
        sides=sides,
        disk=str(used[0]) if len(used) == 1 else None,
        cpu_percent=total["cpu_percent"],
        notes=notes,
    )


def _bins(sides: Sequence[Mapping], kind: str, ios: int) -> dict[str, int]:
    """{ns: I/Os} of these jobs together; {} unless the histograms have all I/Os."""
    out: dict[str, int] = {}
    for side in sides:
        for ns, count in ((side.get(kind) or {}).get("bins") or {}).items():
            out[str(ns)] = out.get(str(ns), 0) + int(count)
    return out if sum(out.values()) == ios else {}


# ---- logs


@dataclass
class _Log:
    """One file. `rows`: int64 (n, 4), see fiotext.rows(), by time; `per_io`: a row is an I/O, otherwise a stretch."""

    kind: str
    number: int
    rows: np.ndarray
    per_io: bool


def _of_logs(job: Job, paths: Sequence[Path]) -> Job:
    """A job with its seconds. Raises UsageError."""
    logs = [_log(path) for path in paths]
    logs = [log for log in logs if len(log.rows)]
    if not logs:
        raise UsageError("rows in fio's logs", "none", DO)
    epoch = [bool(log.rows[0, 0] >= EPOCH_MS) for log in logs]
    if any(epoch) != all(epoch):
        raise UsageError("logs of one run of fio", "Unix times in some, times since the start in others", DO)
    notes, zero_ms = list(job.notes), 0
    if all(epoch):
        if job.utc_ms is None or job.error_ms >= STAMP_S * 1000:
            notes = [note for note in notes if note != BY_STAMP]
            begin_ms, error_ms = _began_ms(job, logs)
            job = replace(job, utc_ms=begin_ms, error_ms=error_ms)
        zero_ms = round(job.utc_ms or 0)
    end_ms = max(int(log.rows[-1, 0]) - zero_ms for log in logs)
    if not 0 <= end_ms <= MOST_S * 1000:
        raise UsageError("times of one run of fio in its logs", f"{end_ms / 1000:.3g} s between them", DO)
    runtime_ms = job.runtime_ms or end_ms
    n = max(1, -(-int(runtime_ms - fioseconds.TAIL_MS) // SECOND_MS))
    sides = dict(job.sides)
    for at, direction in enumerate(DIRECTIONS):
        counted, why = _seconds(logs, at, zero_ms, n)
        if not counted:
            continue
        side = sides.get(direction) or Side(
            ios=int(counted["ios"].sum()) if "ios" in counted else 0,
            bytes=int(counted["bytes"].sum()) if "bytes" in counted else 0,
            lat_sum_ns=float((counted["lat_ns"] * counted["ios"]).sum()) if {"lat_ns", "ios"} <= {*counted} else None,
        )
        notes += [f"{direction}: {note}" for note in why]
        if direction in job.sides:
            logged_ms = min(_logged_ms(logs, kind, at) for kind in KINDS) - zero_ms
            notes += [f"{direction}: {note}" for note in _completed(counted, side, logged_ms, runtime_ms)]
        mean_ns = counted.pop("lat_ns", None)
        if mean_ns is not None and "ios" in counted:
            counted["lat_sum_ns"] = np.rint(mean_ns * counted["ios"]).astype(np.int64)
        sides[direction] = replace(side, by_second=counted)
    missing = [name for name, side in sides.items() if side.ios and "ios" not in side.by_second]
    if missing:
        for name in missing:
            sides[name] = replace(sides[name], by_second={})
        if not any(side.by_second for side in sides.values()):
            raise UsageError("fio's log of IOPS, or a row for each I/O", "logs that count no I/O", DO)
        notes.append(f"{', '.join(missing)}: no log counts these I/Os by the second; they are only in the totals")
    return replace(job, runtime_ms=runtime_ms, sides=sides, notes=notes)


def _began_ms(job: Job, logs: Sequence[_Log]) -> tuple[float, float]:
    """(when a job began, by how much that may be off), by logs in Unix time. It began before its first row, of a
    stretch by all of that, and its last row came before its end."""
    latest = min(int(log.rows[0, 0]) - (0 if log.per_io else _stretch_ms(log.rows)) for log in logs)
    if BY_STAMP in job.notes and job.utc_ms is not None:
        latest = min(latest, job.utc_ms)
    longest_ms = max(1 if log.per_io else _stretch_ms(log.rows) for log in logs)
    earliest = max(int(log.rows[-1, 0]) for log in logs) - job.runtime_ms if job.runtime_ms else latest - longest_ms
    earliest = min(earliest, latest)
    return (earliest + latest) / 2, (latest - earliest) / 2 + 1


def _log(path: Path) -> _Log:
    match = LOG.fullmatch(path.name)
    if not match:
        raise UsageError("a log that fio has named, such as job_iops.1.log", path.name, "give it the name that it had")
    rows, torn = fiotext.rows(_whole(path, MOST_LOG_BYTES))
    if torn and not len(rows):
        raise UsageError(f"rows of a log of fio in {path}", "none", DO)
    if len(rows) and rows[:, 2].max() >= len(DIRECTIONS):
        seen = "directions that there are not: log_window_value=both writes two values in each row"
        raise UsageError(f"rows of time, value, direction, bytes in {path}", seen, "log the average alone")
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return _Log(match["kind"], int(match["number"] or 0), rows, bool(len(rows) and (rows[:, 3] > 0).all()))


def _stretch_ms(rows: np.ndarray) -> int:
    """How long the stretches of a log are: log_avg_msec."""
    steps = np.concatenate([np.diff(np.unique(rows[rows[:, 2] == d, 0])) for d in np.unique(rows[:, 2])])
    return int(np.median(steps)) if len(steps) else SECOND_MS


def _seconds(logs: Sequence[_Log], direction: int, zero_ms: int, n: int) -> tuple[dict[str, np.ndarray], list[str]]:
    """One direction: {"ios", "bytes": int64 (n,), "lat_ns": mean, float64 (n,), 0 where it is not known}, without
    what no log has, and notes."""
    own = [(log, log.rows[log.rows[:, 2] == direction]) for log in logs]
    own = [(log, rows) for log, rows in own if len(rows)]
    out: dict[str, np.ndarray] = {}
    for kind in ("lat", "clat", "slat", "iops", "bw"):  # a row for each I/O counts it exactly
        rows = [rows for log, rows in own if log.kind == kind and log.per_io]
        if rows and len(rows) == sum(log.kind == kind for log, _ in own):
            whole = np.concatenate(rows)
            second = np.clip((whole[:, 0] - zero_ms) // SECOND_MS, 0, n - 1)
            out["ios"] = np.bincount(second, minlength=n).astype(np.int64)
            out["bytes"] = np.bincount(second, whole[:, 3], minlength=n).astype(np.int64)
            if kind == "lat":
                sums = np.bincount(second, whole[:, 1].astype(float), minlength=n)
                out["lat_ns"] = sums / np.maximum(out["ios"], 1)
            return out, [] if kind == "lat" else [NO_LAT]
    notes = []
    for kind, key, factor in (("iops", "ios", 1.0), ("bw", "bytes", 1024.0)):
        spread = [_spread(rows, log, factor, zero_ms, n) for log, rows in own if log.kind == kind]
        if spread:
            out[key] = np.rint(np.sum(spread, axis=0)).astype(np.int64)
    longest = max((_stretch_ms(rows) for log, rows in own if not log.per_io), default=0)
    if longest > SECOND_MS:
        notes.append(f"its logs have a row in {longest / 1000:g} s: the seconds between have its mean")
    lats = [(log, rows) for log, rows in own if log.kind == "lat"]
    counts = {log.number: rows for log, rows in own if log.kind == "iops"}
    if lats and all(log.number in counts for log, _ in lats):
        parts = [_lat_sum(rows, counts[log.number], zero_ms, n) for log, rows in lats]
        sums, weights = (np.sum(of, axis=0) for of in zip(*parts, strict=True))
        out["lat_ns"] = np.where(weights > 0.5, sums / np.maximum(weights, 0.5), 0.0)
    else:
        notes.append(NO_LAT)
    return out, notes


def _spread(rows: np.ndarray, log: _Log, factor: float, zero_ms: int, n: int) -> np.ndarray:
    """What a log of rates per second counts in each second."""
    begins, ends = _stretches(rows, zero_ms, _stretch_ms(log.rows))
    return _over_seconds(begins, ends, rows[:, 1] * factor * (ends - begins) / SECOND_MS, n)


def _lat_sum(rows: np.ndarray, counts: np.ndarray, zero_ms: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(ns, I/Os) by the second, of means of stretches, each weighed by the I/Os that the log of IOPS has in it."""
    stretch_ms = _stretch_ms(rows)
    begins, ends = _stretches(rows, zero_ms, stretch_ms)
    at = np.clip(np.searchsorted(counts[:, 0], rows[:, 0] - stretch_ms // 2), 0, len(counts) - 1)
    held = counts[at, 1] * (ends - begins) / SECOND_MS
    return _over_seconds(begins, ends, rows[:, 1] * held, n), _over_seconds(begins, ends, held, n)


def _stretches(rows: np.ndarray, zero_ms: int, stretch_ms: int) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each row's stretch, ms since the start. Rows of several threads of one file overlap."""
    ends = (rows[:, 0] - zero_ms).astype(float)
    before = np.concatenate([[0.0], ends[:-1]])
    gaps = ends - before
    begins = np.where((gaps > 0) & (gaps <= 1.5 * stretch_ms), before, ends - stretch_ms)
    return np.maximum(begins, 0.0), np.maximum(ends, 1.0)


def _over_seconds(begins: np.ndarray, ends: np.ndarray, amounts: np.ndarray, n: int) -> np.ndarray:
    """Amounts of stretches (ms), spread evenly over the seconds that they cover; the last one has the rest."""
    edges = SECOND_MS * np.arange(n + 1, dtype=float)
    edges[-1] = max(edges[-1], float(ends.max(initial=0.0)))
    times = np.concatenate([begins, ends])
    rates = amounts / np.maximum(ends - begins, 1e-9)
    order = np.argsort(times, kind="stable")
    level = np.cumsum(np.concatenate([rates, -rates])[order])
    total = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times[order]))])
    return np.diff(np.interp(edges, times[order], total))


def _logged_ms(logs: Sequence[_Log], kind: str, direction: int) -> float:
    """Until when all logs of a kind go; infinite without one."""
    ends = [rows[-1, 0] for log in logs if log.kind == kind and len(rows := log.rows[log.rows[:, 2] == direction])]
    return float(min(ends)) if ends else np.inf


def _completed(by_second: dict[str, np.ndarray], side: Side, logged_ms: float, runtime_ms: int) -> list[str]:
    """Make the sums of the seconds those of the JSON. fio does not log the stretch that its end cuts short: the rest
    came after `logged_ms`. Any other difference comes from rounded rates; more than 5 % is a note."""
    notes = []
    for key in TOTALS:
        if key not in by_second:
            continue
        counted, total, n = int(by_second[key].sum()), int(getattr(side, key)), len(by_second[key])
        if counted < total and runtime_ms - logged_ms >= 1:
            begin = np.array([min(logged_ms, SECOND_MS * n - 1.0)])
            rest = _over_seconds(begin, np.array([max(float(runtime_ms), begin[0] + 1)]), np.array([1.0]), n)
            late = total - counted
            if late > 0.05 * total and runtime_ms - logged_ms > 2 * SECOND_MS:
                notes.append(f"its logs end {(runtime_ms - logged_ms) / 1000:.3g} s before it: {key} there are a mean")
            by_second[key] = by_second[key] + np.diff(np.rint(np.cumsum(rest * late)).astype(np.int64), prepend=0)
            continue
        if not counted or abs(counted - total) > 0.05 * total:
            notes.append(f"its logs count {counted} {key}, its JSON {total}")
            continue
        rising = np.rint(np.cumsum(by_second[key]) * (total / counted)).astype(np.int64)
        by_second[key] = np.diff(rising, prepend=0)
    return notes


# ---- of a run folder


def encoded(job: Job, t0_ns: int) -> bytes:
    """The content of NAME. t0_ns: the job's start on the run's axis."""
    sides = {
        direction: {
            "ios": side.ios,
            "bytes": side.bytes,
            "lat_sum_ns": side.lat_sum_ns,
            "slat_sum_ns": side.slat_sum_ns,
            "bins": side.bins,
            "by_second": {key: of.tolist() for key, of in side.by_second.items()},
        }
        for direction, side in job.sides.items()
    }
    made = {
        **{"schema": SCHEMA, "source": job.version, "jobs": job.name, "t0_ns": t0_ns, "runtime_ms": job.runtime_ms},
        **{"start_error_ns": round(job.error_ms * 1e6), "cpu_percent": job.cpu_percent, "notes": job.notes},
        "sides": sides,
    }
    return (json.dumps(made, ensure_ascii=False) + "\n").encode(errors="replace")


def content(folder: Path) -> dict:
    """NAME of a run folder, read. Raises LoadError."""
    try:
        document = json.loads((folder / NAME).read_bytes())
        whole = (
            document["schema"] == SCHEMA
            and int(document["t0_ns"]) > 0
            and 0 <= float(document["runtime_ms"]) < MOST_S * 1000
        )
        for side in document["sides"].values():
            counts = [side["ios"], side["bytes"], *(n for of in side["by_second"].values() for n in of)]
            counts += [n for of in side["bins"].values() for n in of.values()]
            whole &= all(type(n) is int and 0 <= n < 1 << 62 for n in counts)
            whole &= len({len(of) for of in side["by_second"].values()}) <= 1
        if not whole or not {*document["sides"]} <= {*DIRECTIONS}:
            raise ValueError("other values than it was written with")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LoadError(
            f"an imported log in {folder / NAME}", reason(error), "take it from a copy of the run"
        ) from error
    return document


def counts(document: Mapping) -> dict[str, Any]:
    """Totals of content(): {"reads", "read_bytes", "writes", "written_bytes", "trims", "time_s"}."""
    sides = {name: document["sides"].get(name) or {"ios": 0, "bytes": 0} for name in DIRECTIONS}
    out = {f"{name}s": side["ios"] for name, side in sides.items()}
    out |= {"read_bytes": sides["read"]["bytes"], "written_bytes": sides["write"]["bytes"]}
    return out | {"time_s": float(document["runtime_ms"]) / 1000}


def histogram(document: Mapping, kind: str, direction: str | None = None) -> np.ndarray:
    """I/Os in each bin of "lat" or "clat", int64 (fiotext.BINS,); zeros unless all directions have it."""
    sides = [side for name, side in document["sides"].items() if direction in (None, name) and side["ios"]]
    out = np.zeros(fiotext.BINS, np.int64)
    if sides and all(side["bins"].get(kind) for side in sides):
        for side in sides:
            bins = side["bins"][kind]
            np.add.at(out, fiotext.plat_index([int(float(ns)) for ns in bins]), list(map(int, bins.values())))
    return out


def load(folder: Path, direction: str | None = None) -> Seconds:
    """The seconds of an imported log, as of fiolog.load(); `source` is "foreign", without seconds "totals".

    Raises LoadError."""
    document = content(folder)
    sides = {name: side for name, side in document["sides"].items() if direction in (None, name)}
    runtime_ms = float(document["runtime_ms"])
    n = max(1, -(-int(runtime_ms - fioseconds.TAIL_MS) // SECOND_MS))
    by_second = [side["by_second"] for side in sides.values() if side["ios"]]
    known = all("ios" in of for of in by_second)

    def whole(key: str) -> np.ndarray:
        return np.array([of[key] for of in by_second] or [[0] * n], np.int64).sum(axis=0)

    n = max((len(of["ios"]) for of in by_second), default=n) if known else n
    ios = whole("ios") if known else np.zeros(n, np.int64)
    timed = known and all("lat_sum_ns" in of for of in by_second)
    lat_ns = whole("lat_sum_ns") / np.maximum(ios, 1) if timed else np.zeros(n)
    sums = [side["lat_sum_ns"] for side in sides.values()]
    total = fiotext.totals(None) | {
        "ios": sum(side["ios"] for side in sides.values()),
        "bytes": sum(side["bytes"] for side in sides.values()),
        "runtime_ms": runtime_ms,
        "lat_sum_ns": None if None in sums else sum(sums),
        "slat_sum_ns": sum(side["slat_sum_ns"] or 0.0 for side in sides.values()),
        "directions": tuple(name for name in DIRECTIONS if (sides.get(name) or {}).get("ios")),
        "cpu_percent": document["cpu_percent"],
    }
    empty = fioseconds.quantiles(np.zeros((0, 3), np.int64), n)
    partial = runtime_ms < n * SECOND_MS - fioseconds.TAIL_MS
    made = fioseconds.seconds(0, ios, lat_ns, empty, partial, "foreign" if known else "totals", total, 0)
    exact = known and all("bytes" in of for of in by_second)
    return replace(
        made,
        t_ns=int(document["t0_ns"]) + np.arange(n, dtype=np.int64) * 10**9,
        bw_bytes=whole("bytes") if exact else made.bw_bytes,
        notes=tuple(map(str, document["notes"])),
        start_error_ns=float(document["start_error_ns"]),
    )


def nothing(runtime_ms: int) -> Job:
    """A job without I/O, of a recording of power alone."""
    return Job("", "", runtime_ms, None, 0.0, {})


def write(folder: Path, job: Job, t0_ns: int) -> None:
    """Put a job into a run folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomically(folder / NAME, encoded(job, t0_ns))
