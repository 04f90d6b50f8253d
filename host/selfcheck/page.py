"""The report's page in a headless Chromium in all crosses: 1, 2, 6, 12 and 24 runs at three widths, light, dark and on
paper, before and after a click. axe-core looks at each; in the suite at some (tests/whole/test_report_cross.py)."""

import json
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from selfcheck import Figure, at_most, exactly, in_turn
from selfcheck.report import TESTS
from ssdrig.base.errors import ToolMissing

COUNTS = (24, 12, 6, 2, 1)  # the first reads all runs, which are then kept
SCALE_PERCENT = 1.0
BARRIERS, MISFITS, BELOW, ANSWERS, ERRORS = (
    "serious barriers by axe-core",
    "texts that do not fit",
    "plots below the fold",
    "verdicts below the first screen",
    "errors",
)


def all_crosses() -> list[Figure]:
    """Raises ToolMissing without a Chromium."""
    sys.path[:0] = [str(TESTS), str(TESTS.parent / "whole"), str(TESTS.parent)]
    import browser

    if not browser.find():
        raise ToolMissing("a Chromium", "none on PATH", "apt-get install chromium-headless-shell")
    import test_report_seen as seen

    folder = Path(tempfile.mkdtemp(prefix="ssdrig-page-", dir="/var/tmp"))
    try:
        runs = seen.runs_of(folder, max(COUNTS))
        look = _Look()
        for count in in_turn(COUNTS, "page"):
            with browser.Browser() as chromium:
                look.at(chromium, seen.page_of(runs[:count]), count)
    finally:
        shutil.rmtree(folder)
    return [
        Figure("crosses that axe-core looked at", look.looked["axe"], "", "for comparison", True),
        Figure("crosses that were looked at for fit and scale", look.looked["fit"], "", "for comparison", True),
        *(exactly(name, look.defects[name], "", 0) for name in (BARRIERS, MISFITS, BELOW, ANSWERS, ERRORS)),
        Figure("bars whose pixels were held against their values", look.bars, "", "for comparison", True),
        at_most("worst bar off its card's scale", look.off_percent, "%", SCALE_PERCENT),
    ]


class _Look:
    """`defects`: how many of what, `looked`: in how many crosses. Each defect goes to stderr in words."""

    def __init__(self) -> None:
        self.defects: Counter[str] = Counter()
        self.looked: Counter[str] = Counter()
        self.off_percent, self.bars = 0.0, 0

    def at(self, chromium, page: Path, count: int) -> None:
        """One page, which is loaded once: then only the window and the medium change."""
        import page_cross as cross
        from test_report import READY

        cross.sized(chromium, cross.WIDTHS[0])
        chromium.open(page, ready=READY)
        cross.with_axe(chromium)
        for paper in (False, True):
            for width in (*cross.WIDTHS, cross.SHEET_PX) if paper else cross.WIDTHS:
                cross.placed(chromium, width, paper)
                if not paper:
                    self._add(BELOW, cross.folded(chromium), count, width)
                    self._add(ANSWERS, chromium.js(cross.BELOW_FIRST_SCREEN), count, width)
                for dark in (False, True):
                    cross.medium(chromium, dark, paper)
                    where = count, width, *(("dark",) if dark else ()), *(("paper",) if paper else ())
                    self._fits(chromium, width, paper, *where)
                    self._add(BARRIERS, chromium.js(cross.BARRIERS), *where)
                    self.looked["axe"] += 1
                    if not paper:
                        chromium.js(cross.CLICK)
                        self._fits(chromium, width, paper, *where, "clicked")
                        chromium.js(cross.CLICK)
        errors = chromium.js("document.body.dataset.errors")
        self._add(ERRORS, chromium.complaints() + ([errors] if errors else []), count)

    def _fits(self, chromium, width: int, paper: bool, *where) -> None:
        import page_cross as cross
        from test_report_bars import BARS

        on_sheet = not paper or width == cross.SHEET_PX
        self._add(MISFITS, cross.misfits(chromium, width, paper) if on_sheet else [], *where)
        bars = chromium.js(BARS)
        self.bars += len(bars)
        self.off_percent = max(self.off_percent, cross.off_scale_percent(bars))
        self.looked["fit"] += on_sheet

    def _add(self, name: str, what: list, *where) -> None:
        self.defects[name] += len(what)
        for defect in what:
            print(f"{name}, {' '.join(map(str, where))}: {json.dumps(defect)[:300]}", file=sys.stderr)


BENCHES = {
    "page": ("the report's page: 1 to 24 runs, three widths, light, dark, paper, clicked; axe-core", all_crosses)
}
