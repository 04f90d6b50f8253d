"""The archive of 10 000 runs: its index made the first time and again, searches, and a comparison of six.

Each folder is one of a few that a run and a report have written, with a name, model and time of its own: the small
files are copies, the measured ones links. The six are runs of their own, which no report has read before."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_most, exactly, in_turn
from ssdrig.reading.index import Index, condition

RUNS, COMPARED, SECONDS = 10_000, 6, 1200
MODELS = ("SIMULATED 990 PRO 2TB", "SIMULATED SN850X 2TB", "SIMULATED T705 1TB", "SIMULATED 860 EVO 500GB")
SEARCHES = ("drive:990 op:25 state:complete tag:review since:2026-11", "sn850x -tag:review", "run:0042", "")
TESTS = Path(__file__).parents[2] / "tests" / "support"  # the writer of run folders with known content
SSDRIG = (sys.executable, "-P", "-m", "ssdrig")
DAY_NS = 86_400 * 10**9


def archive() -> list[Figure]:
    sys.path.insert(0, str(TESTS))
    import synthetic_run

    folder = Path(tempfile.mkdtemp(prefix="ssdrig-archive-", dir="/var/tmp"))
    try:
        rng = np.random.default_rng(1)
        root, six = folder / "runs", []
        for n in range(COMPARED):
            iops = np.rint(rng.normal(8000 + 1000 * n, 300, SECONDS)).astype(int)
            watts = [(-100.0, 4.0), *((float(s), float(w)) for s, w in enumerate(rng.normal(2.5, 0.2, SECONDS)))]
            how = {"zoom_s": 600, "smart_every_s": 60, "model": MODELS[n % 4], "op_percent": (None, 25)[n % 2]}
            six.append(synthetic_run.write(folder, iops, watts=watts, name=f"six-{n}", **how))
        first = synthetic_run.write(folder, [900] * 5 + [300, 500] * 5, zoom_s=5, smart_every_s=5)
        subprocess.run([*SSDRIG, "report", str(first), "--quiet"], check=True)
        (first / "report.html").unlink()
        root.mkdir()
        for n in in_turn(range(RUNS), "archive: folders"):
            copied(first, root / f"20261101T000000Z-consistency-{n:05}", n)
        return [
            *indexed(root, folder),
            compared(six, folder, "compare 6 runs that no report has read"),
            compared(six, folder, "compare them again"),
        ]
    finally:
        shutil.rmtree(folder)


def copied(run: Path, to: Path, n: int) -> None:
    """Another run folder made of one: the measured files are links."""
    shutil.copytree(run, to, copy_function=os.link)
    header = json.loads((run / "run.json").read_bytes())
    header |= {"run": to.name, "started": {**header["started"], "utc_ns": 1_790_000_000_000_000_000 + n * DAY_NS // 50}}
    header["drive"]["model"], header["method"]["op_percent"] = MODELS[n % 4], (None, 25)[n // 4 % 2]
    replaced = {"run.json": json.dumps(header)}
    if n % 3 == 0:
        replaced["labels.json"] = json.dumps({"title": f"night {n}", "tags": ["review"]})
    for name, text in replaced.items():
        (to / name).unlink(missing_ok=True)
        (to / name).write_text(text)
    for path in (to / "figures.json", to):  # long ago, and the report after the run
        os.utime(path, ns=(1_790_000_000_000_000_000,) * 2)
    os.utime(to / "events.jsonl", ns=(1_780_000_000_000_000_000,) * 2)


def indexed(root: Path, folder: Path) -> list[Figure]:
    out, took = [], []
    for name, bar_s in (("index of 10 000 runs, the first time", 60), ("again, nothing changed", 1)):
        began = time.monotonic()
        index = Index(root, folder / "cache")
        index.refresh()
        out.append(at_most(name, time.monotonic() - began, "s", bar_s))
        indexed_runs = index.count()
        index.close()
    out.append(exactly("runs in it", indexed_runs, "", RUNS))
    index = Index(root, folder / "cache")
    for words in SEARCHES:
        began = time.monotonic()
        hits = index.find(condition(words), limit=100)
        count = index.count(condition(words))
        took.append(1000 * (time.monotonic() - began))
        out.append(at_most(f"search {words or 'everything'!r}: {count} hits, {len(hits)} shown", took[-1], "ms", 100))
    index.close()
    print(f"archive: searches {statistics.fmean(took):.1f} ms on the average", file=sys.stderr)
    return out


def compared(six: list[Path], folder: Path, name: str) -> Figure:
    """As the bench in the browser does it: a process of its own."""
    began = time.monotonic()
    subprocess.run([*SSDRIG, "report", *map(str, six), "--quiet", "--out", str(folder / "six.html")], check=True)
    return at_most(name, time.monotonic() - began, "s", 2)


BENCHES = {
    "archive": ("index of 10 000 runs, made and made again, searches, a comparison of six (about 3 min)", archive)
}
