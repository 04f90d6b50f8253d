"""The report of a power-loss campaign of 600 sessions: time to make it, its size, whether page, figures.json and points
agree, and how soon a headless Chromium paints it. Of the time both clocks are printed: what other programs take makes
that on the wall longer."""

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path

from selfcheck import Figure, at_least, at_most, exactly
from selfcheck.report import PAINTS, TESTS
from ssdrig import report
from ssdrig.publish.influx import points

SESSIONS, LIES = 600, 0.03


def campaign() -> list[Figure]:
    """Of a drive in model time whose FLUSH lies at some cuts, so that there are failures with their proofs."""
    sys.path.insert(0, str(TESTS))
    import synthetic_cuts

    folder = Path(tempfile.mkdtemp(prefix="ssdrig-cuts-", dir="/var/tmp"))
    try:
        run = synthetic_cuts.write(folder, SESSIONS, LIES)
        return [*_made(run), *_painted(run / "report.html")]
    finally:
        shutil.rmtree(folder)


def _made(run: Path) -> list[Figure]:
    parser = ArgumentParser()
    report.add_arguments(parser)
    args = parser.parse_args([str(run)])
    wall_s, cpu_s = time.monotonic(), time.process_time()
    with contextlib.redirect_stderr(io.StringIO()):
        report.command(args)
    wall_s, cpu_s = time.monotonic() - wall_s, time.process_time() - cpu_s
    page = (run / "report.html").read_text()
    result = json.loads((run / "figures.json").read_text())["rows"][0]["found"]
    failing = result["failing_cuts"]
    accused = re.findall(r'<figure id="cut-([0-9]+)".*?</figure>', page, re.S)
    proofs = sum(
        f'id="cut-{n}"' in page and "This breaks the promise" in page.split(f'id="cut-{n}"')[1].split("</figure>")[0]
        for n in failing
    )
    judged = points.counts(run)
    return [
        at_most(f"report of {SESSIONS} sessions, load of the machine {os.getloadavg()[0]:.1f}", wall_s, "s", 10),
        Figure("the same, CPU time", cpu_s, "s", "for comparison", True),
        at_most("size of its page", len(page.encode()) / 1e6, "MB", 2),
        at_least("cuts that broke a promise", len(failing), "cuts", 1),
        exactly("of these, without a proof in sentences on the page", len(failing) - proofs, "cuts", 0),
        exactly("of these, not a panel of the page", len(set(map(str, failing)) - set(accused)), "cuts", 0),
        exactly("points of cuts less judged cuts", judged["powerloss_cut"] - result["judged"], "points", 0),
    ]


def _painted(page: Path) -> list[Figure]:
    import browser

    if not browser.find():
        print("first paint is not measured: no Chromium is installed", file=sys.stderr)
        return []
    with browser.Browser() as b:
        b.open(page)
        b.wait(PAINTS)
        paint = at_most("first paint in headless Chromium", b.js(PAINTS) / 1000, "s", 0.3)
        return [paint, exactly("complaints of the browser", len(b.complaints()), "", 0)]


BENCHES = {"powerloss-report": ("report of a power-loss campaign of 600 cuts: time, size, proofs, paint", campaign)}
