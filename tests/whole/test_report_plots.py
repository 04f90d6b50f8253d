"""The plots of the report in a browser: the trend invents nothing, the zoom promises nothing, paper shows all."""

import base64
import re
import shutil
import subprocess

import numpy as np
import pytest
import synthetic_run
from browser import chromium  # noqa: F401  a fixture
from test_report import READY, run_command

from ssdrig.reading import table
from ssdrig.report import pack, page, words
from ssdrig.views import svg

pytestmark = pytest.mark.slow  # of a page in a browser test_report.py shows the like

CLIFF = [42000] * 9 + [8000, 7000] * 25 + [0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(3)
    watts = [(-100.0, 1.0), *((s / 10, float(w)) for s, w in enumerate(rng.normal(8, 0.0002, 700)))]
    runs = [
        synthetic_run.write(base, CLIFF, watts=watts, zoom_s=42, idle_s=2, name="a"),
        synthetic_run.write(base, CLIFF[::-1], zoom_s=30, name="b"),
    ]
    run_command(*runs, "--out", base / "page.html")
    return base / "page.html"


def test_the_trend_is_made_of_counts_that_were_there(chromium, made):
    chromium.open(made, ready=READY)
    trend = chromium.js(
        "Object.fromEntries(Object.entries(ssdrig.trend(0)).map(([name, values]) => [name, [...values]]))"
    )
    for i in range(len(CLIFF)):
        around = sorted(CLIFF[max(0, i - 2) : i + 3])
        nearest = [around[max(0, int(np.ceil(q * len(around))) - 1)] for q in (0.1, 0.5, 0.9)]
        assert [trend["p10"][i], trend["median"][i], trend["p90"][i]] == nearest, i


LIMITS = "ssdrig.limits()"


def settled(chromium):
    """uPlot commits a change of scale in a microtask."""
    chromium.js("new Promise((done) => setTimeout(done, 50))")


def test_zoom_is_of_the_wide_panels_and_ends_at_the_seconds(chromium, made):
    chromium.open(made, ready=READY)
    whole = chromium.js(LIMITS)
    chromium.js("ssdrig.zoom([20.2, 20.9])")
    settled(chromium)
    limits = chromium.js(LIMITS)
    for name in ("zoom-log", "zoom-linear"):  # their title names their window
        assert limits[name] == whole[name] == [41.5, 59.5]
    for name in ("whole", "power", "energy", "latency", "wa"):
        a, b = limits[name]
        assert 4 <= b - a <= 6 and a < 20 and b > 21
        ticks = chromium.js(f"ssdrig.ticks('{name}')")
        assert len(ticks) >= 4 and all(tick == int(tick) for tick in ticks)  # there is one value a second
    assert chromium.js("location.hash").startswith("#t=")
    assert chromium.js("document.getElementById('reset').hidden") is False
    # another reviewed run: the time stays
    review = "document.querySelector('select[name=review]')"
    chromium.js(
        f"document.body.dataset.ready = ''; {review}.value = '1'; "
        f"{review}.dispatchEvent(new Event('change', {{bubbles: true}}))"
    )
    chromium.wait(READY)
    settled(chromium)
    after = chromium.js(LIMITS)
    assert after["power"] == limits["power"] and after["zoom-log"] == [29.5, 59.5]
    chromium.js("document.getElementById('reset').click()")
    settled(chromium)
    assert chromium.js(LIMITS)["power"] == whole["power"]
    assert chromium.js("document.getElementById('reset').hidden") is True


def test_a_drag_zooms_all_wide_panels_and_a_double_click_goes_back(chromium, made):
    chromium.open(made, ready=READY)
    whole = chromium.js(LIMITS)
    box = chromium.js(
        "(() => { const o = document.querySelector('[data-panel=power] .u-over'); o.scrollIntoView({block: 'center'});"
        " const r = o.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()"
    )
    y = box[1] + box[3] / 2

    def mouse(kind, share, clicks=1):
        at = {"x": box[0] + share * box[2], "y": y, "button": "left", "buttons": 1, "clickCount": clicks}
        chromium.send("Input.dispatchMouseEvent", {"type": kind, **at})

    mouse("mouseMoved", 0.25)
    mouse("mousePressed", 0.25)
    mouse("mouseMoved", 0.4)
    mouse("mouseMoved", 0.5)
    mouse("mouseReleased", 0.5)
    settled(chromium)
    limits = chromium.js(LIMITS)
    assert limits["whole"] == limits["wa"] == limits["power"] != whole["power"]
    assert limits["power"] == pytest.approx([whole["power"][1] / 4, whole["power"][1] / 2], abs=1.6)
    for clicks in (1, 2):
        mouse("mousePressed", 0.5, clicks)
        mouse("mouseReleased", 0.5, clicks)
    settled(chromium)
    assert chromium.js(LIMITS) == whole


def test_power_of_the_csv_keeps_its_order(chromium, made, tmp_path):
    chromium.open(made, ready=READY)
    rows = [line.split(",") for line in chromium.js("ssdrig.csv(0)").splitlines()[1:]]
    mean, least, most = (np.array([float(row[k]) for row in rows]) for k in (4, 5, 6))
    assert (least <= mean).all() and (mean <= most).all()
    data, figures, _ = table.in_full(synthetic_run.write(tmp_path, [1000] * 30, zoom_s=2))
    data.power_mean_W, data.power_min_W = np.full(30, 8.07505), np.linspace(0, 8.07504, 30)
    data.power_max_W = np.full(30, 8.07506)
    packed = pack.run_data(data, figures, words.labels([figures])[0], 0, [])
    for name, sign in (("power_min", -1), ("power_max", 1)):  # on the scale of the mean: counted from it
        assert packed[name]["as"] == "offset" and packed[name]["sign"] == sign and packed[name]["least"] >= 0


def luminance(hex_colour):
    """WCAG 2.2, relative luminance of '#rrggbb'."""
    parts = (int(hex_colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_bars_and_lines_stand_out_from_the_paper(dark):
    css = (page.HERE / "report.css").read_text()
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css.split("@media")[1 if dark else 0]))
    paper = luminance(colours["paper"])
    for name, least in [
        *((c, 3) for c in (*svg.COLOURS, "review")),
        ("review-ink", 4.5),
        ("ink", 7),
        ("ink-soft", 4.5),
    ]:
        lighter, darker = sorted((paper, luminance(colours[name])), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= least, name


def test_without_a_run_the_page_says_so(chromium, made):
    chromium.open(made, "#hide=SIMULATED+SATA+TLC", ready=READY)
    assert "No run is shown" in chromium.js("document.getElementById('readout').textContent")
    assert chromium.js("document.body.dataset.errors") == ""


def test_a_narrow_page_does_not_scroll_sideways(chromium, made):
    narrow = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chromium.send("Emulation.setDeviceMetricsOverride", narrow)
    chromium.open(made, ready=READY)
    assert chromium.js("document.documentElement.scrollWidth") <= 390
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_paper_shows_the_whole_axis_and_a_legend(chromium, made, tmp_path):
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not installed: the printed page was not read")
    chromium.open(made, ready=READY)
    settings = {"paperWidth": 8.27, "paperHeight": 11.69}
    (tmp_path / "p.pdf").write_bytes(base64.b64decode(chromium.send("Page.printToPDF", settings)["data"]))
    text = subprocess.run(["pdftotext", tmp_path / "p.pdf", "-"], capture_output=True, text=True, check=True).stdout
    assert "(reviewed)" in text and "Gaps and event log" in text and "SIMULATED" in text
    assert "Where the energy went" in text and "How many I/O are slower" in text and "How to use" not in text


@pytest.mark.slow
def test_on_paper_the_plots_fit_the_sheet(chromium, made):
    chromium.open(made, ready=READY)
    chromium.send(
        "Emulation.setDeviceMetricsOverride", {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )
    chromium.js("window.dispatchEvent(new Event('beforeprint'))")
    chromium.send("Emulation.setEmulatedMedia", {"media": "print"})
    boxes = chromium.js(
        "[...document.querySelectorAll('.panel canvas')].map(c => [c.getBoundingClientRect(),"
        " c.closest('.panel').getBoundingClientRect(), c.width, c.height]).map(([c, p, w, h]) => [c.left - p.left,"
        " c.right - p.right, w / c.width, (w / h) / (c.width / c.height)])"
    )
    assert len(boxes) == 9
    for left, right, enlarged, shape in boxes:
        assert left == pytest.approx(0, abs=1) and right <= 1
        assert enlarged >= 1.8 and shape == pytest.approx(1, rel=0.02)
    chromium.send("Emulation.setEmulatedMedia", {"media": ""})
    chromium.send("Emulation.clearDeviceMetricsOverride")
    chromium.js("window.dispatchEvent(new Event('afterprint'))")
    assert chromium.js("document.documentElement.classList.contains('paper')") is False
