"""The page of a review with a library of six drives at two over-provisionings and eleven plans: its size, how far it
reaches, and how soon a headless Chromium paints it and answers clicks. The times are wall time on a machine with
nothing else to do, so the load is with them. The suite has the rest (tests/whole/test_review_library.py)."""

import contextlib
import io
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from selfcheck import Figure, at_most, in_turn
from selfcheck.report import PAINTS, TESTS
from ssdrig.base.errors import ToolMissing

MOST_MB = 1.5
SCREENS = {1400: (900, 12), 390: (844, 20)}  # width: height of a screen, most of them
PAINT_S, READY_S = 0.3, 1.0
LOADS = 5  # of the page, each in a new browser; the median counts
READY = "performance.getEntriesByName('ready')[0]?.startTime"


def six_drives() -> list[Figure]:
    """Raises ToolMissing without a Chromium."""
    sys.path.insert(0, str(TESTS))
    import browser
    import synthetic_reviews

    if not browser.find():
        raise ToolMissing("a Chromium", "none on PATH", "apt-get install chromium-headless-shell")
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-review-", dir="/var/tmp"))
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what an export and an import print
            page = synthetic_reviews.page_of(folder, in_turn(synthetic_reviews.SIX, "review"))
        figures = [at_most("size of the page", page.stat().st_size / 1e6, "MB", MOST_MB)]
        for width, (high, most) in SCREENS.items():
            with browser.Browser(width, high) as b:
                b.send(
                    "Emulation.setDeviceMetricsOverride",
                    {"width": width, "height": high, "deviceScaleFactor": 1, "mobile": False},
                )
                b.open(page, ready=READY)
                reaches = b.js("document.documentElement.scrollHeight") / high
                figures.append(at_most(f"screens of {width} x {high} px", reaches, "", most))
        times = [_times_s(page) for _ in in_turn(range(LOADS), "review, loads")]
    finally:
        shutil.rmtree(folder)
    paint_s, ready_s = (statistics.median(of) for of in zip(*times, strict=True))
    load = f"median of {LOADS}, load of the machine {os.getloadavg()[0]:.1f}"
    figures.append(at_most(f"first paint in headless Chromium, {load}", paint_s, "s", PAINT_S))
    return [*figures, at_most(f"until it answers clicks, {load}", ready_s, "s", READY_S)]


def _times_s(page: Path) -> tuple[float, float]:
    """(first paint, when it answers clicks) of the page in a new browser."""
    import browser

    with browser.Browser(*next((width, high) for width, (high, _) in SCREENS.items())) as b:
        b.open(page, ready=READY)
        b.wait(PAINTS)
        return b.js(PAINTS) / 1000, b.js(READY) / 1000


BENCHES = {"review": ("a review's page with six drives and eleven plans: size, screens, first paint", six_drives)}
