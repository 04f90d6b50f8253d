"""Percentiles of a run computed apart from ssdrig's reading: from the bins of fio's own documents, and from the times
of each I/O of a played trace. Of the reading's code nothing is used but the names of the figures."""

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

ONE_IN = {"p50": 2, "p99": 100, "p999": 1000, "p9999": 10_000, "p99999": 100_000}
BIN = 2**-6  # width of fio's bins, and of ours, of the value
HEADER_BYTES = 4096  # of a trace, before its rows
TRACE_ROW = np.dtype(
    [("t", "<i8"), ("offset", "<i8"), ("length", "<u4"), ("op", "u1"), ("flags", "u1"), ("depth", "<u2")]
)
SIDES = ("read", "write")


class Compared(NamedTuple):
    """A row of a report: how many figures were compared, which are off by more than a bin, and why none was."""

    label: str
    figures: int
    off: list[str]
    why: str


def compared(run: Path, report: dict) -> list[Compared]:
    """One for each row with I/O of `report --json`."""
    folders = _folders(run)
    out = []
    for row in report["rows"]:
        shown = (row["windows"] or {}).get("all")
        key = (row["path"], json.dumps(row["point"], sort_keys=True), row["round"])
        label = " ".join(str(part) for part in key if part not in (None, "{}"))
        if key not in folders or not shown or not shown.get("ios"):
            if row["do"] in ("fill", "load", "replay", "wear") and row["state"] == "done":
                out.append(Compared(label, 0, [], "no folder of this row" if key not in folders else "no I/O in it"))
            continue
        kind, folder = folders[key]
        latencies = _of_fio(folder, row) if kind == "fio" else _of_trace(folder)
        cut = any(note.startswith("first burst") for note in row["notes"])
        out.append(_against(label, shown, latencies, shown["errors"] if cut else {}))
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


def _of_fio(folder: Path, row: dict) -> dict[str, Counter]:
    """{side: {ns: I/Os}} of fio's last document, less the first burst where the figures begin after it."""
    if slices := sorted(folder.glob("*/out.json")):  # of a wear step, each a job
        return {side: sum((_of_fio(one.parent, row)[side] for one in slices), Counter()) for side in SIDES}
    text = (folder / "out.json").read_text()
    documents = [json.loads(line) for line in text.splitlines() if line.startswith('{"t_ns"') and '"bins"' in line]
    at = text.rfind("\n{\n")  # the one at its end is on many lines
    whole = _bins(json.JSONDecoder().raw_decode(text, at + 1)[0] if at >= 0 else documents[-1])
    first = next((note for note in row["notes"] if note.startswith("first burst")), None)
    if first:
        until_ms = 1000 * (float(first.split("takes ")[1].split(" s")[0]) + 1)  # a pause is at least as long
        before = [one for one in documents if one["jobs"][0]["job_runtime"] < until_ms]
        for side, bins in _bins(before[-1]).items() if before else ():
            whole[side].subtract(bins)
    return {side: +bins for side, bins in whole.items()}


def _bins(document: dict) -> dict[str, Counter]:
    out = {side: Counter() for side in SIDES}
    for job in document["jobs"]:
        for side in SIDES:
            for ns, count in job.get(side, {}).get("lat_ns", {}).get("bins", {}).items():
                out[side][int(ns)] += count
    return out


def _of_trace(folder: Path) -> dict[str, Counter]:
    start = json.loads((folder / "start.json").read_text())
    times = np.fromfile(folder / "records.bin", "<i8").reshape(-1, 3)
    rows = np.fromfile(folder / start["trace"], TRACE_ROW, offset=HEADER_BYTES)[: len(times)]
    took_ns = times[:, 2] - times[:, 1]
    dilation = start["how"].get("dilation") or 1
    return {side: Counter((took_ns[rows["op"] == op] // dilation).tolist()) for op, side in enumerate(SIDES)}


def _against(label: str, shown: dict, latencies: dict[str, Counter], errors: dict[str, float]) -> Compared:
    """`errors`: stated, of figures whose first second lies between two of fio's documents. No document shows on which
    side of that edge the longest I/O is, so the longest latency of such a row is not compared."""
    off, figures = [], 0
    both = latencies["read"] + latencies["write"]
    for prefix, bins in (("", both), *((f"{side}_", latencies[side]) for side in SIDES)):
        if not bins:
            continue
        values, counts = (np.array(part) for part in zip(*sorted(bins.items()), strict=True))
        rising = np.cumsum(counts)
        own = {name: values[np.searchsorted(rising, rising[-1] - rising[-1] // n)] for name, n in ONE_IN.items()}
        own |= {"mean": float((values * counts).sum() / rising[-1]), "max": values[-1]}
        for name, ns in own.items():
            figure = shown.get(f"{prefix}lat_{name}_us")
            if figure is None or (errors and name == "max"):
                continue
            figures += 1
            bound = 1.01 * BIN * max(figure, ns / 1000) + 0.001
            if abs(figure - ns / 1000) > max(bound, errors.get(f"{prefix}lat_{name}_us") or 0):
                off.append(f"{prefix}lat_{name}_us: {figure:.6g}, own {ns / 1000:.6g}")
    return Compared(label, figures, off, "" if figures else "every figure is null")
