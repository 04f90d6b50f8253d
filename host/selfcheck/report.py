"""The report of ten long runs: time to make it, and again with nothing changed, its size, and how soon a headless
Chromium paints it. The times are those of a clock on the wall, on a machine with nothing else to do: what other
programs take makes them longer, so the load stands beside them."""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly
from ssdrig import report

RUNS, SECONDS = 10, 7200
# the writer of run folders with known content, and the browser, are the tests'
TESTS = Path(__file__).parents[2] / "tests" / "support"
PAINTS = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def ten_long_runs() -> list[Figure]:
    """Folders made beforehand, each of 7200 s of load, 7.2 million power samples and a histogram of 200 latencies a
    second; every run different."""
    sys.path.insert(0, str(TESTS))
    import synthetic_run

    tail = 0.97 ** np.arange(200)
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-report-", dir="/var/tmp"))
    try:
        runs = []
        for i in range(RUNS):
            print(f"run {i + 1} of {RUNS} is being written", file=sys.stderr)
            rng = np.random.default_rng(i)
            iops = np.rint(
                np.where(np.arange(SECONDS) < 1500, 40000, 8000 + 2000 * i) * rng.normal(1, 0.05, SECONDS)
            ).astype(int)
            levels = rng.normal(2.5 + i / 10, 0.2, SECONDS)

            def watts(t_s: np.ndarray, levels: np.ndarray = levels, rng: np.random.Generator = rng) -> np.ndarray:
                level = levels[np.clip(t_s.astype(int), 0, SECONDS - 1)]
                return np.where(t_s < 0, 4.0, level) + rng.normal(0, 0.02, len(t_s))

            runs.append(
                synthetic_run.write(
                    folder,
                    iops,
                    watts=watts,
                    zoom_s=1400,
                    smart_every_s=60,
                    model=f"SIMULATED drive {i // 2}",
                    op_percent=(None, 25)[i % 2],
                    name=f"run-{i}",
                    tail=tail / tail.sum(),
                )
            )
        return made_twice(runs, folder / "ten.html")
    finally:
        shutil.rmtree(folder)


def made_twice(runs: list[Path], page: Path) -> list[Figure]:
    """The report of these runs to `page`, and again."""
    import browser

    parser = ArgumentParser()
    report.add_arguments(parser)
    args = parser.parse_args([*map(str, runs), "--out", str(page), "--json"])
    figures, outputs = [], []
    for name, bar_s in (("report of 10 runs x 7200 s", 10), ("the same again, nothing changed", 2)):
        out, started = io.StringIO(), time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            report.command(args)
        load = os.getloadavg()[0]
        figures.append(at_most(f"{name}, load of the machine {load:.1f}", time.monotonic() - started, "s", bar_s))
        documents = [json.loads(line) for line in out.getvalue().splitlines()]
        outputs.append(documents)
    loads = [row for one in documents for row in one["rows"] if row["path"] == "load"]
    counted = [row["windows"]["all"]["samples"] for row in loads]
    figures += [
        at_least("power samples in each run", min(counted), "", SECONDS * 1000),
        exactly("runs whose figures differ the second time", sum(a != b for a, b in zip(*outputs)), "", 0),
        at_most("size of its page", page.stat().st_size / 1e6, "MB", 1.5),
    ]
    if not browser.find():
        print("first paint is not measured: no Chromium is installed", file=sys.stderr)
        return figures
    with browser.Browser() as b:
        b.open(page, ready="document.body && document.body.dataset.ready", limit_s=300)  # on a busy machine, too
        b.wait(PAINTS)
        figures.append(at_most("first paint in headless Chromium", b.js(PAINTS) / 1000, "s", 0.3))
    return figures


BENCHES = {
    "report": (
        "report from 10 runs x 7200 s with 7.2 million power samples each, heat maps and samples: time, again, size,"
        " first paint",
        ten_long_runs,
    )
}
