"""Percentiles of a run computed apart from ssdrig's reading: from the bins of fio's own documents, and from the times
of each I/O of a played trace. Of the reading's code nothing is used but the names of the figures."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

ONE_IN = {"p50": 2, "p99": 100, "p999": 1000, "p9999": 10_000, "p99999": 100_000}
BIN = 2**-6  # width of fio's bins, and of ours, of the value at most
SAME = 1e-6  # of a figure of the same bin: a printed number's rounding
HEADER_BYTES = 4096  # of a trace, before its rows
TRACE_ROW = np.dtype(
    [("t", "<i8"), ("offset", "<i8"), ("length", "<u4"), ("op", "u1"), ("flags", "u1"), ("depth", "<u2")]
)
SIDES = ("read", "write")
LAT = re.compile(r"(read_|write_)?c?lat_\w+_us$")  # figures of latencies


class Compared(NamedTuple):
    """A row of a report: how many figures were compared, which are off, and why none was."""

    label: str
    figures: int
    off: list[str]
    why: str


def compared(run: Path, report: dict) -> list[Compared]:
    """One for each row with I/O of `report --json`."""
    folders, dilation = _folders(run), json.loads((run / "run.json").read_text())["drive"].get("time_dilation") or 1
    out = []
    for row in report["rows"]:
        shown = (row["windows"] or {}).get("all")
        key = (row["path"], json.dumps(row["point"], sort_keys=True), row["round"])
        label = " ".join(str(part) for part in key if part not in (None, "{}"))
        if key not in folders or not shown or not shown.get("ios"):
            windows = [window for window in (row["windows"] or {}).values() if window]
            off = [
                name for window in windows for name, value in window.items() if value is not None and LAT.match(name)
            ]
            if off or row["do"] in ("fill", "load", "replay", "wear") and row["state"] == "done":
                why = "no folder of this row" if key not in folders else "no I/O in it"
                out.append(Compared(label, 0, [f"{name}: of no I/O" for name in off], why))
            continue
        kind, folder = folders[key]
        if kind == "played":
            out.append(_against(label, shown, _of_trace(folder), dilation, half_bin=True))
            continue
        if first := next((note for note in row["notes"] if note.startswith("first burst")), None):
            begin_s = int(first.split("takes ")[1].split(" s")[0])
            out.append(_cut(label, shown, folder, begin_s, dilation))
        else:
            out.append(_against(label, shown, _of_fio(folder), dilation))
        by_second = _by_second(folder)
        for name, window in row["windows"].items():
            if window and window.get("clat_max_us") is not None and by_second:
                out += _in_window(f"{label}, {name}", window, by_second, dilation)
    return out


def _folders(run: Path) -> dict[tuple, tuple[str, Path]]:
    """{(step, point, round): ("fio" or "played", folder)} of the last time that each was run, by the journal."""
    folders = {}
    for line in (run / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        for kind in ("fio", "played"):
            if event["kind"] == "step.start" and event.get(kind):
                key = (event["step"], json.dumps(event.get("point", {}), sort_keys=True), event.get("round"))
                folders[key] = kind, run / kind / event[kind]
    return folders


def _of_fio(folder: Path) -> dict[str, Counter]:
    """{side: {ns: I/Os}} of fio's last document."""
    if slices := sorted(folder.glob("*/out.json")):  # of a wear step, each a job
        return {side: sum((_of_fio(one.parent)[side] for one in slices), Counter()) for side in SIDES}
    return _bins(_last(folder))


def _last(folder: Path) -> dict:
    """fio's last document: the one at the end of its output is on many lines."""
    text = (folder / "out.json").read_text()
    at = text.rfind("\n{\n")
    return json.JSONDecoder().raw_decode(text, at + 1)[0] if at >= 0 else _documents(folder)[-1]


def _documents(folder: Path) -> list[dict]:
    """Those of each second, with a histogram."""
    lines = (folder / "out.json").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"t_ns"') and '"bins"' in line]


def _runtime_ms(document: dict) -> float:
    """How long the job has run: of a grouped one fio has the sum of its threads."""
    (job,) = document["jobs"]
    return job["job_runtime"] / int(job.get("job options", {}).get("numjobs", 1))


def _less_first(folder: Path, until_s: float) -> dict[str, Counter]:
    """_of_fio() less the last document before `until_s`."""
    before = [one for one in _documents(folder) if _runtime_ms(one) < 1000 * until_s]
    first = _bins(before[-1]) if before else {}
    return {side: bins - first.get(side, Counter()) for side, bins in _of_fio(folder).items()}


def _index_ns(index: int) -> float:
    """The middle of a bin of fio's histogram log, as its documents name it."""
    shift = max(0, index // 64 - 1)
    return index if index < 128 else ((64 + index % 64) << shift) + (1 << shift) // 2


def _by_second(folder: Path) -> list[Counter]:
    """{ns of clat: I/Os} of each second that each row of fio's histogram logs has closed. Row k of a log and direction
    is of window k, with the first I/O after it, taken for its slowest: that is of its own second if it was late. What
    came after the last row is of the next second, or of the last one where the job ended within 100 ms of it; of
    several logs the last second is left out."""
    streams = []
    for log in sorted(folder.glob("*_clat_hist.[0-9]*.log")):
        rows = [[int(cell) for cell in line.split(",")] for line in log.read_text().splitlines()]
        streams += [of for side in range(3) if (of := [row for row in rows if row[1] == side])]
    if not streams:
        return []
    zeros_ms = [min(row[0] - 1000 * (k + 1) for k, row in enumerate(rows)) for rows in streams]
    shifts = [round((zero_ms - min(zeros_ms)) / 1000) for zero_ms in zeros_ms]
    ends = [len(rows) + shift for rows, shift in zip(streams, shifts, strict=True)]
    seconds: list[Counter] = [Counter() for _ in range(max(ends))]
    for rows, zero_ms, shift in zip(streams, zeros_ms, shifts, strict=True):
        for k, row in enumerate(rows):
            for index, count in enumerate(row[3:]):
                if count:
                    seconds[k + shift][_index_ns(index)] += count
                    slowest = _index_ns(index)
            if row[0] > zero_ms + 1000 * (k + 1) + 1:
                seconds[k + shift][slowest] -= 1
                if (own := (row[0] - min(zeros_ms)) // 1000) < len(seconds):
                    seconds[own][slowest] += 1
    if len(streams) > 1:
        return seconds[: min(ends) - 1]
    last = _last(folder)
    whole = sum(_bins(last, "clat_ns").values(), Counter())
    rest = whole - sum(seconds, Counter())
    after = _runtime_ms(last) - 1000 * len(seconds) >= 100
    seconds = [*seconds, rest] if after else [*seconds[:-1], seconds[-1] + rest]
    return seconds


def _in_window(label: str, shown: dict, by_second: list[Counter], dilation: int) -> list[Compared]:
    """The figures of clat of whole seconds, all of which the log has closed; none for other windows."""
    begin, end = (round(dilation * shown[key]) for key in ("t0_s", "t1_s"))
    if end > len(by_second):
        return []
    own = _own(+sum(by_second[begin:end], Counter()))
    off, figures = [], 0
    for name, ns in own.items():
        figure = shown.get(f"clat_{name}_us")
        if figure is not None:
            figures += 1
            bound = 2 * _half_bin(ns) if name == "max" else 0.0
            if abs(1000 * dilation * figure - ns) > bound + SAME * ns + dilation:
                off.append(f"clat_{name}_us: {figure:.6g}, own {ns / dilation / 1000:.6g}")
    return [Compared(label, figures, off, "")]


def _bins(document: dict, kind: str = "lat_ns") -> dict[str, Counter]:
    out = {side: Counter() for side in SIDES}
    for job in document["jobs"]:
        for side in SIDES:
            for ns, count in job.get(side, {}).get(kind, {}).get("bins", {}).items():
                out[side][int(ns)] += count
    return out


def _of_trace(folder: Path) -> dict[str, Counter]:
    start = json.loads((folder / "start.json").read_text())
    times = np.fromfile(folder / "records.bin", "<i8").reshape(-1, 3)
    rows = np.fromfile(folder / start["trace"], TRACE_ROW, offset=HEADER_BYTES)[: len(times)]
    took_ns = times[:, 2] - times[:, 1]
    return {side: Counter(took_ns[rows["op"] == op].tolist()) for op, side in enumerate(SIDES)}


def _half_bin(ns: float) -> float:
    """Half the width of the bin of fio's histogram that holds this latency; at 1 ns wide its edge is its value."""
    return 2.0 ** (int(ns).bit_length() - 8) if ns >= 128 else 0.0


def _own(bins: Counter) -> dict[str, float]:
    """Percentiles by the nearest rank, the mean and the longest, ns; of fio's histogram of the middles of its bins."""
    values, counts = (np.array(part) for part in zip(*sorted(bins.items()), strict=True))
    rising = np.cumsum(counts)
    own = {name: float(values[np.searchsorted(rising, rising[-1] - rising[-1] // n)]) for name, n in ONE_IN.items()}
    return own | {"mean": float((values * counts).sum() / rising[-1]), "max": float(values[-1])}


def _sides(latencies: dict[str, Counter]) -> list[tuple[str, Counter]]:
    return [("", latencies["read"] + latencies["write"]), *((f"{side}_", latencies[side]) for side in SIDES)]


def _against(label: str, shown: dict, latencies: dict[str, Counter], dilation: int, half_bin: bool = False) -> Compared:
    """`dilation`: seconds of the host, which these latencies are in, in one of the drive. `half_bin`: the latencies are
    exact, and a percentile is the middle of its bin. Longest latencies are upper edges of bins, and a mean over all
    I/Os is fio's own sum. A side without I/O has no latency."""
    off, figures = [], 0
    count = {prefix: sum(bins.values()) for prefix, bins in _sides(latencies)}
    for key, own, figure in (
        ("ios", count[""], shown["ios"]),
        *(
            (f"{side}_iops", shown["iops_mean"] * count[f"{side}_"] / count[""], shown.get(f"{side}_iops"))
            for side in SIDES
        ),
    ):
        if figure is not None:
            figures += 1
            off += [f"{key}: {figure:.6g}, own {own:.6g}"] if abs(figure - own) > SAME * own else []
    for prefix, bins in _sides(latencies):
        own = _own(bins) if bins else dict.fromkeys((*ONE_IN, "mean", "max"))
        for name, ns in own.items():
            key = f"{prefix}lat_{name}_us"
            figure = shown.get(key)
            if figure is None:
                continue
            figures += 1
            if ns is None:
                off.append(f"{key}: {figure:.6g} of no I/O")
                continue
            bound = 2 * _half_bin(ns) if name == "max" else _half_bin(ns) if half_bin or name == "mean" else 0.0
            if abs(1000 * dilation * figure - ns) > bound + SAME * ns + dilation:
                off.append(f"{key}: {figure:.6g}, own {ns / dilation / 1000:.6g}")
    return Compared(label, figures, off, "" if figures else "every figure is null")


def _cut(label: str, shown: dict, folder: Path, begin_s: int, dilation: int) -> Compared:
    """A row whose figures begin after the first burst: a pause of a second at least follows, in which one of fio's
    documents is. What it counts that completed after the begin, late, is known from fio's histogram log by the second:
    the figures are those without or with these I/Os, or between, or within their stated error."""
    off, figures = [], 0
    begin_s *= dilation
    without, early = (_less_first(folder, begin_s + later) for later in (dilation, 0))
    late = {side: _late(folder, number, begin_s, early[side] - without[side]) for number, side in enumerate(SIDES)}
    for prefix, bins in _sides(without):
        late_bins = sum((late[side] for side in SIDES if prefix in ("", f"{side}_")), Counter())
        owns = [_own(of) for of in (bins, bins + late_bins) if of]
        for name in owns[0] if owns else ():
            key = f"{prefix}lat_{name}_us"
            figure = shown.get(key)
            if figure is None:
                continue
            figures += 1
            lowest, highest = (of(own[name] for own in owns) for of in (min, max))
            error = shown["errors"].get(key) or 0.0
            bound = max(2 * _half_bin(highest) + SAME * highest + dilation, 1000 * dilation * error)
            if not lowest - bound <= 1000 * dilation * figure <= highest + bound:
                off.append(
                    f"{key}: {figure:.6g}, own {lowest / dilation / 1000:.6g} to {highest / dilation / 1000:.6g}"
                )
    return Compared(label, figures, off, "" if figures else "every figure is null")


def _late(folder: Path, direction: int, begin_s: int, among: Counter) -> Counter:
    """Of these I/Os, {ns of lat: I/Os}, those that completed in the second from `begin_s` on by fio's histogram log of
    clat: for each the next lat at or above it. Row k of a direction is of window k, and has the first I/O after it too,
    taken for its slowest. All of `among` without a log."""
    logs, late = sorted(folder.glob("*_clat_hist.[0-9]*.log")), []
    if not logs:
        return among
    for log in logs:
        rows = [[int(cell) for cell in line.split(",")] for line in log.read_text().splitlines()]
        rows = [row for row in rows if row[1] == direction]
        if len(rows) < begin_s:
            continue
        zero_ms = min(row[0] - 1000 * (number + 1) for number, row in enumerate(rows))
        held = [np.flatnonzero(row[3:]).repeat([n for n in row[3:] if n]) for row in rows[begin_s - 1 : begin_s + 1]]
        if rows[begin_s - 1][0] < zero_ms + 1000 * (begin_s + 1):
            late.append(held[0].max())
        late += [] if len(held) < 2 else held[1].tolist()
    left = sorted(among.elements())
    out: Counter = Counter()
    for index in sorted(late, reverse=True):
        ns = index if index < 128 else (64 + index % 64) << (index // 64 - 1)
        if above := [at for at in left if at >= ns]:
            left.remove(above[0])
            out[above[0]] += 1
    return out
