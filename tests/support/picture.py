"""Makes the picture of the README from the demo's report: its head, key figures, IOPS, power and temperature.

./ssdrig demo --runs DIR && .venv/bin/python tests/support/picture.py DIR/demo.html host/ssdrig/report/example.png"""

import base64
import sys
from pathlib import Path

import browser

WIDTH = 1300
END = "document.querySelector('[data-panel=power]').closest('figure').getBoundingClientRect().bottom + scrollY + 12"


def take(page: Path, out: Path) -> None:
    """A picture (PNG) of a report page down to its power panel."""
    with browser.Browser(WIDTH, 900) as b:
        b.open(page, ready="document.body && document.body.dataset.ready")
        clip = {"x": 0, "y": 0, "width": WIDTH - 15, "height": b.js(END), "scale": 1}
        shot = b.send("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})
        out.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    take(Path(sys.argv[1]), Path(sys.argv[2]))
