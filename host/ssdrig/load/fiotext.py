"""What fio prints and logs, as numbers: JSON documents, log rows, latency histograms. Pure.

Histogram bins (stat.c, plat_idx_to_val): 29 groups of 64. Index i < 128 is i ns exactly; above, with e = i // 64 - 1,
the bin is 2^e ns wide and starts at 2^(e+6) + (i % 64) 2^e; its value is the middle, at most 0.8 % off.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ssdrig.base.errors import LoadError

BINS = 29 * 64
HIST_COLUMNS = 3 + BINS  # time, direction, block size, then the bins
DIRECTIONS = ("read", "write", "trim")
PARSE_BYTES = 1 << 18
MOST_DIGITS = 18  # of a number in a log: it fits into an int64
_LATENCY = re.compile(r"[0-9]{1,18}(\.[0-9]{1,6})?")  # the key of a percentile or a bin
_OPENING = re.compile("^\ufeff?{", re.MULTILINE)  # of a document, also after a byte order mark


def plat_ns(index):
    """Middle of histogram bin `index` (scalar or array), ns."""
    index = np.asarray(index, np.int64)
    shift = np.maximum(index // 64 - 1, 0)
    return np.where(index < 128, index, ((64 + index % 64) << shift) + (1 << shift) // 2)


def plat_upper_ns(index):
    """Largest latency that bin `index` holds, ns."""
    index = np.asarray(index, np.int64)
    shift = np.maximum(index // 64 - 1, 0)
    return np.where(index < 128, index, ((65 + index % 64) << shift) - 1)


def plat_index(ns):
    """Bin that fio counts a latency of `ns` in: inverse of plat_ns."""
    ns = np.asarray(ns, np.int64)
    shift = np.maximum(np.frexp(np.maximum(ns, 1))[1] - 7, 0)
    return np.minimum(np.where(ns < 128, ns, (shift << 6) + (ns >> shift)), BINS - 1)


def pieces(text: str) -> tuple[list[tuple[dict | None, str]], str]:
    """fio's output cut into its JSON documents and the text between them: [(document, its text), (None, other text),
    ...] in order, and the rest that waits for more text.

    A document starts with a brace at the start of a line and has what `totals` reads; all else is other text."""
    parts: list[tuple[dict | None, str]] = []
    decoder = json.JSONDecoder()
    starts = [m.start() for m in re.finditer(r"^\{", text, re.MULTILINE)]
    at = 0
    for i, start in enumerate(starts):
        if start < at:
            continue
        try:
            document, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if i + 1 == len(starts):
                return [*parts, (None, text[at:start])], text[start:]
            continue
        if is_sound(document):
            parts += [(None, text[at:start]), (document, text[start:end])]
            at = end
        else:
            parts.append((None, text[at:end]))
            at = end
    cut = max(at, text.rfind("\n") + 1)
    return [*parts, (None, text[at:cut])], text[cut:]


def documents(text: str) -> tuple[list[dict], str]:
    """The complete JSON documents of fio's --status-interval output, and the rest that waits for more text."""
    return parsed(text)[:2]


def parsed(text: str) -> tuple[list[dict], str, int]:
    """documents(), and the number of malformed documents; the last, which may be incomplete, not counted."""
    parts, rest = pieces(text)
    odd = sum(document is None and bool(_OPENING.search(other)) for document, other in parts)
    return [document for document, _ in parts if document is not None], rest, odd


def is_sound(document) -> bool:
    """Whether a parsed document has the shape that `totals` and `bins` rely on: damage must not look like a figure."""
    if not isinstance(document, dict) or not isinstance(document.get("jobs"), list):
        return False
    if not _are_numbers((document.get("timestamp_ms", 0), document.get("t_ns", 0))):
        return False
    for job in document["jobs"]:
        if not isinstance(job, dict) or not isinstance(job.get("job options", {}), dict):
            return False
        if not _are_numbers([job[key] for key in ("job_runtime", "error", "usr_cpu", "sys_cpu") if key in job]):
            return False
        for name in DIRECTIONS:
            side = job.get(name)
            if not side:
                continue
            if not isinstance(side, dict):
                return False
            if not _are_numbers([side[key] for key in ("total_ios", "io_bytes", "runtime") if key in side]):
                return False
            for kind in ("slat_ns", "clat_ns", "lat_ns"):
                part = side.get(kind)
                if not part:
                    continue
                if not isinstance(part, dict) or not _are_numbers([part[key] for key in ("N", "mean") if key in part]):
                    return False
                for table in ("percentile", "bins"):
                    held = part.get(table)
                    if not held:
                        continue
                    if not isinstance(held, dict) or not _are_numbers(held.values()):
                        return False
                    if not all(map(_LATENCY.fullmatch, held)):
                        return False
    return True


def _are_numbers(values: Iterable) -> bool:
    """Whether all values, as JSON gives them, are numbers that an int64 holds, none below 0."""
    for value in values:
        kind = type(value)
        if kind is not int and kind is not float or not 0 <= value < 1 << 63:
            return False
    return True


def thin(document: dict, t_ns: int, with_bins: bool) -> str:
    """One line of out.json: of a status document what `totals` and `bins` read, and when it arrived (CLOCK_MONOTONIC).
    fio's own has 12 to 20 kB, this 0.3 kB, or some kB with its latency histogram."""
    jobs = []
    for job in document["jobs"]:
        summary = {key: job[key] for key in ("jobname", "error", "job_runtime") if key in job}
        for name in DIRECTIONS:
            side = job.get(name) or {}
            if side.get("total_ios") or side.get("runtime"):
                summary[name] = {key: side[key] for key in ("io_bytes", "total_ios", "runtime") if key in side}
                for kind in ("slat_ns", "clat_ns", "lat_ns"):
                    if part := side.get(kind):
                        summary[name][kind] = {key: part[key] for key in ("N", "mean") if key in part}
                lat = side.get("lat_ns") or {}
                if with_bins and lat.get("bins"):
                    summary[name]["lat_ns"]["bins"] = lat["bins"]
        if options := (job.get("job options") or {}).get("numjobs"):
            summary["job options"] = {"numjobs": options}
        jobs.append(summary)
    out = {"t_ns": t_ns, "timestamp_ms": document.get("timestamp_ms", 0), "jobs": jobs}
    return json.dumps(out, separators=(",", ":"))


def totals(document: dict | None, direction: str | None = None) -> dict:
    """Sums over jobs, and over directions unless one is named, of one document (None: zeros), cumulative since job
    start.

    {"ios", "bytes": completed, "runtime_ms": since job start, "threads_ms": the run times of all threads together, 0
    where the document lacks it, "lat_sum_ns", "slat_sum_ns": the part of it before submission, "error": fio's first
    errno, "lat_ns", "clat_ns": {"50.000000": ns, ...}: percentiles as fio gives them, with and without the time before
    submission (one job and direction only), "directions", "cpu_percent": what fio took of the host, 100 for each core,
    "user_percent": the part of it outside the kernel; None where the document lacks it}"""
    out: dict[str, Any] = {"ios": 0, "bytes": 0, "runtime_ms": 0, "lat_sum_ns": 0.0, "slat_sum_ns": 0.0, "error": 0}
    out |= {"lat_ns": {}, "clat_ns": {}, "directions": (), "cpu_percent": None, "user_percent": None, "threads_ms": 0}
    sides = []
    for job in (document or {"jobs": []})["jobs"]:
        if direction is None and "usr_cpu" in job and "sys_cpu" in job:  # of a grouped job the mean of its threads
            threads = job.get("job_runtime", 0) / (_runtime_ms(job) or 1)
            for key, percent in (("cpu_percent", job["usr_cpu"] + job["sys_cpu"]), ("user_percent", job["usr_cpu"])):
                out[key] = (out[key] or 0.0) + percent * max(1.0, threads)
        out["runtime_ms"] = max(out["runtime_ms"], _runtime_ms(job))
        out["threads_ms"] += job.get("job_runtime", 0)
        out["error"] = out["error"] or job.get("error", 0)
        for name in DIRECTIONS if direction is None else (direction,):
            side = job.get(name) or {}
            lat, clat = side.get("lat_ns") or {}, side.get("clat_ns") or {}
            ios = clat.get("N", side.get("total_ios", 0))  # total_ios also counts I/Os that were only begun
            if ios:
                out["ios"] += ios
                out["bytes"] += side.get("io_bytes", 0)
                out["lat_sum_ns"] += ios * lat.get("mean", 0.0)
                out["slat_sum_ns"] += ios * (side.get("slat_ns") or {}).get("mean", 0.0)
                out["directions"] += (name,) * (name not in out["directions"])
                sides.append((lat, clat))
    if len(sides) == 1:
        out["lat_ns"], out["clat_ns"] = (part.get("percentile") or {} for part in sides[0])
    return out


def _runtime_ms(job: dict) -> int:
    """Time since job start. fio's job_runtime is the sum over the threads of a grouped job; a direction's is not, but
    is 0 before its first I/O."""
    longest = max((job.get(name) or {}).get("runtime", 0) for name in DIRECTIONS)
    if longest:
        return int(longest)
    threads = str((job.get("job options") or {}).get("numjobs", 1))
    return int(job.get("job_runtime", 0)) // max(1, int(threads) if re.fullmatch("[0-9]{1,9}", threads) else 1)


def rows(data: bytes) -> tuple[np.ndarray, int]:
    """An iops, bw or lat log -> (int64 array (n, 4): time_ms, value, direction, bytes of the I/O, 0 where a row covers
    several; bytes from the first line on that fio did not write so: a torn end).

    fio writes 4 columns up to 3.17, 5 since, more with some options: what follows the fourth is not needed."""
    blocks, end = [np.empty((0, 4), np.int64)], 0
    while stop := data.rfind(b"\n", end, end + PARSE_BYTES) + 1:
        ends, columns, odd, row, column, value = _numbers(np.frombuffer(data, np.uint8, stop - end, end))
        if odd < len(ends) or columns.min() < 4:
            break  # line by line from here on
        piece, inner = np.zeros((len(ends), 4), np.int64), column < 4
        piece[row[inner], column[inner]] = value[inner]
        blocks.append(piece)
        end = stop
    rows = []
    while (stop := data.find(b"\n", end)) >= 0:
        fields = [field.strip() for field in data[end:stop].split(b",")]
        if len(fields) < 4 or not all(f.isdigit() and len(f) <= MOST_DIGITS for f in fields[:4]):
            break
        rows.append([int(f) for f in fields[:4]])
        end = stop + 1
    return np.concatenate([*blocks, np.array(rows, np.int64).reshape(-1, 4)]), len(data) - end


def hist_rows(data: bytes) -> tuple[np.ndarray, np.ndarray, int]:
    """A clat_hist log -> (int64 (n, 2): time_ms, direction; int64 (m, 3): row, bin, count of the bins that are not 0;
    bytes from the first line on that fio did not write so: a torn end). Raises LoadError if the first line has another
    number of columns than 3 + 1856."""
    good, lines, blocks = 0, 0, [(np.empty(0, np.int64),) * 3]
    while stop := data.rfind(b"\n", good, good + PARSE_BYTES) + 1 or data.find(b"\n", good) + 1:
        text = np.frombuffer(data, np.uint8, stop - good, good)
        ends, columns, odd, row, column, value = _numbers(text)
        if lines == 0 and columns[0] != HIST_COLUMNS and columns[0] > 3:
            raise LoadError(
                f"{HIST_COLUMNS} columns in fio's histogram log",
                f"{columns[0]}",
                "use fio >= 3.30 and leave log_hist_coarseness at 0",
            )
        wrong = np.flatnonzero(columns != HIST_COLUMNS)
        whole = min(odd, int(wrong[0]) if len(wrong) else len(ends))
        inner = row < whole
        blocks.append((row[inner] + lines, column[inner], value[inner]))
        lines += whole
        if whole < len(ends):
            good += int(ends[whole - 1]) + 1 if whole else 0
            break
        good = stop
    row, column, value = (np.concatenate(column_parts) for column_parts in zip(*blocks, strict=True))
    heads = np.zeros((lines, 2), np.int64)
    for at in (0, 1):
        heads[row[column == at], at] = value[column == at]
    bins = column >= 3
    return heads, np.stack([row[bins], column[bins] - 3, value[bins]], axis=1), len(data) - good


def _numbers(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, np.ndarray, np.ndarray]:
    """Whole lines (bytes, uint8) of unsigned integers with ", " or "," between -> where each ends, how many columns it
    has, the first line that is not so, and of all fields that are not 0: line, column and value. Works on all bytes at
    once, so a piece of a log should fit into a processor's cache."""
    digit, space = a - np.uint8(48) < 10, a == 32
    line_end = a == 10
    ended = (a == 44) | line_end
    bad = ~(digit | space | ended)
    bad[0] |= not digit[0]
    bad[1:] |= ended[1:] & ~digit[:-1]
    bad[1:] |= space[1:] & (a[:-1] != 44)
    longer, run = digit, 1  # where a run of this many digits begins
    while run <= MOST_DIGITS and longer.any():
        by = min(run, MOST_DIGITS + 1 - run)
        longer, run = longer[by:] & longer[:-by], run + by
    if run > MOST_DIGITS:
        bad[: len(longer)] |= longer
    ends, seps = np.flatnonzero(line_end), np.flatnonzero(ended)
    last = np.searchsorted(seps, ends)
    odd = int(np.searchsorted(ends, bad.argmax())) if bad.any() else len(ends)
    first = digit & (a != 48)
    first[1:] &= ~digit[:-1]
    at = np.flatnonzero(first)
    at = at[: np.searchsorted(at, ends[odd - 1])] if odd else at[:0]
    field, row = np.searchsorted(seps, at), np.searchsorted(ends, at)
    value, more, p = np.zeros(len(at), np.int64), np.arange(len(at)), at.copy()
    while len(more):
        value[more] = value[more] * 10 + a[p[more]] - 48
        p[more] += 1
        more = more[digit[p[more]]]
    begins = np.concatenate([[0], last[:-1] + 1])
    return ends, np.diff(last, prepend=-1), odd, row, field - begins[row], value


def bins(document: dict | None, direction: str | None, kind: str = "clat_ns") -> np.ndarray:
    """Latency histogram of a json+ document, cumulative since job start: int64 (1856,). `kind`: "clat_ns", the
    device's, which fio's histogram log has too; "lat_ns" with the time before submission."""
    out = np.zeros(BINS, np.int64)
    for job in (document or {"jobs": []})["jobs"]:
        for side in DIRECTIONS if direction is None else (direction,):
            held = ((job.get(side) or {}).get(kind) or {}).get("bins")
            if held:
                np.add.at(out, plat_index([int(float(ns)) for ns in held]), list(map(int, held.values())))
    return out
