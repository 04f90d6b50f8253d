"""What a step of 24 h costs fio and the disk: its memory and its folder's growth, measured for a while on a real fio
and carried on to 24 h, at the log detail that such a step gets. And how long its report takes, of a folder with known
content: the time is that of a clock on the wall, so the load of the machine stands beside it."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most
from ssdrig.base import progress, words
from ssdrig.load import fio

SECONDS, WARM_S = 70, 8  # more than a minute, so that the minute's histogram is in it
DAY_S = 86400.0
SIZE = 64 << 20
TESTS = Path(__file__).parents[2] / "tests" / "support"  # they write run folders with known content


def growth(
    folder: Path, target: Path, detail: str, seconds: int = SECONDS, warm_s: int = WARM_S
) -> tuple[float, float, float]:
    """Write a little to `target` for so long. Returns fio's memory at the end (bytes), and by how much it and the
    step's folder grew per second behind the first warm_s."""
    rows = []
    show = progress.Progress()

    def look(second: dict) -> None:
        show.show(f"detail {detail}: {second['runtime_s']:.0f} s  ETA {words.clock(seconds - second['runtime_s'])}")
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                if (status.parent / "cwd").readlink() == folder and "\nRssAnon:" in (text := status.read_text()):
                    # not VmRSS: the kernel takes pages of the program's file back when it is short of memory
                    own = sum(1024 * int(text.split(f"\n{kind}:")[1].split()[0]) for kind in ("RssAnon", "RssShmem"))
                    rows.append((second["runtime_s"], own, sum(p.stat().st_size for p in folder.iterdir())))
                    return
            except OSError:
                continue

    job = fio.Job(
        "load", "randwrite", 4096, 4, SIZE, str(target), time_s=seconds, burst_s=0.2, pause_s=0.8, detail=detail
    )
    fio.run(job, folder, on_second=look)
    grown = np.array([row for row in rows if row[0] >= warm_s])
    span_s = grown[-1, 0] - grown[0, 0]
    # fio writes its logs at its end: they count for the disk
    disk = (grown[-1, 2] - grown[0, 2]) / span_s + sum(p.stat().st_size for p in folder.glob("*.log")) / seconds
    return float(grown[-1, 1]), max(0.0, (grown[-1, 1] - grown[0, 1]) / span_s), disk


def _write(folder: Path, name: str, seconds: int, power: bool) -> None:
    """A run of so many seconds of load, 1000 power samples a second, SMART each 60 s."""
    sys.path.insert(0, str(TESTS))
    import synthetic_run

    rng = np.random.default_rng(seconds)
    synthetic_run.write(
        folder,
        np.rint(20_000 * rng.normal(1, 0.05, seconds)).astype(int),
        watts=[(-100.0, 4.0), *((float(s), float(w)) for s, w in enumerate(rng.normal(2.5, 0.2, seconds)))],
        zoom_s=seconds // 2,
        smart_every_s=60,
        power=power,
        logs=False,
        name=name,
    )


def report_s(folder: Path, seconds: int, power: bool) -> tuple[float, float]:
    """Time (s) to make the report of a run as _write has it, by a process of its own; and its memory (bytes), of the
    largest of its processes."""
    run = folder / f"run-{seconds}-{power}"
    # by another process: what a process has at its start, that of its parent, counts for its largest memory
    writer = multiprocessing.get_context("spawn").Process(target=_write, args=(folder, run.name, seconds, power))
    writer.start()
    writer.join()
    began = time.monotonic()
    report = subprocess.Popen([sys.executable, "-P", "-m", "ssdrig", "report", str(run), "--quiet"])
    _, status, used = os.wait4(report.pid, 0)
    took_s, report.returncode = time.monotonic() - began, os.waitstatus_to_exitcode(status)
    if report.returncode:
        raise RuntimeError(f"the report of {run} ended with {report.returncode}")
    rows = json.loads((run / "figures.json").read_bytes())["rows"]
    (figures,) = (row["windows"]["all"] for row in rows if row["path"] == "load")
    if figures["t1_s"] != seconds or (figures["power_mean_W"] is not None) != power:
        raise RuntimeError(f"the report has {figures['t1_s']} of {seconds} s, {figures['power_mean_W']} W: {run}")
    shutil.rmtree(run)
    return took_s, used.ru_maxrss * 1024.0


def _reports(folder: Path) -> list[Figure]:
    print("two runs of 24 h are written, one with 86.4 million samples, and their reports made", file=sys.stderr)
    without_s, _ = report_s(folder, round(DAY_S), False)
    with_s, memory = report_s(folder, round(DAY_S), True)
    load = f"load of the machine {os.getloadavg()[0]:.1f}"
    return [
        at_most(f"report of 24 h without a rig, {load}", without_s, "s", 10),
        at_most("the same with 1000 power samples a second", with_s, "s", 10),
        at_most("its memory", memory / 1e6, "MB", 1000),
    ]


def _detail() -> list[Figure]:
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-detail-", dir="/var/tmp"))
    try:
        target = folder / "target"
        target.write_bytes(bytes(SIZE))
        day = fio.detail(fio.Job("load", "randwrite", 4096, 32, SIZE, str(target), time_s=DAY_S))
        print(f"{SECONDS} s at detail {day}, then 20 s at detail second, carried on to 24 h", file=sys.stderr)
        rss, rss_per_s, disk_per_s = growth(folder / day, target, day)
        _, second_per_s, _ = growth(folder / "second", target, "second", 20, 5)
        return [
            at_most("fio's memory after 24 h", (rss + rss_per_s * DAY_S) / 1e6, "MB", 200),
            at_most("the step's folder after 24 h", disk_per_s * DAY_S / 1e6, "MB", 200),
            # the measurement must see what it is for: a histogram log each second does not fit
            at_least("fio's memory after 24 h with a log each second", second_per_s * DAY_S / 1e6, "MB", 200),
            *_reports(folder),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


BENCHES = {"detail": ("a load of 24 h: fio's memory, the disk, time and memory of its report", _detail)}
