"""The report as people use it: one page of six runs, by keyboard, sorted, marked, saved, and without JavaScript. At all
sizes: test_report_cross.py."""

import base64
import hashlib
import json
import re
import struct
import xml.etree.ElementTree as ElementTree
import zlib
from pathlib import Path

import numpy as np
import pytest
import synthetic_run
from browser import chromium  # noqa: F401  a fixture
from test_report import READY, run_command

from ssdrig.reading import table
from ssdrig.views.svg import COLOURS

pytestmark = pytest.mark.slow

VENDOR = Path(__file__).parents[1] / "vendor"
IOPS = [42000] * 9 + [0] + [8000, 7000] * 10 + [7200]
MODELS = (
    "SIMULATED Crucial T705 CT2000T705SSD3",
    "SIMULATED Crucial P3 Plus CT2000P3PSSD8",
    "SIMULATED Samsung SSD 990 PRO with a name that no column has room for 2TB",
)


def runs_of(folder, count):
    """So many runs, of two drives with two over-provisionings each, and so on; the fifth one died."""
    runs = []
    for i in range(count):
        steps = [(s / 2, 1.5 + 0.1 * (i % 5) + 0.4 * (s % 4 == 0)) for s in range(62)]
        runs.append(
            synthetic_run.write(
                folder,
                [n and n + 37 * i for n in IOPS],
                watts=[(-100, 1.0), *steps, (31.0, 0.8)],
                zoom_s=14,
                idle_s=3,
                model=MODELS[i // 2 % 3] + (f" {i // 6}" if i >= 6 else ""),
                op_percent=(None, 25)[i % 2],
                wa=1.5 + i / 10,
                state="complete" if i != 4 else None,
                name=f"run-{i:02d}",
            )
        )
    return runs


def page_of(runs):
    out = runs[0].parent / f"page-{len(runs)}.html"
    run_command(*runs, "--out", out)
    return out


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    runs = runs_of(tmp_path_factory.mktemp("runs"), 6)
    return page_of(runs), runs


def sized(chromium, width, height=900):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    chromium.send("Emulation.setDeviceMetricsOverride", metrics)


def test_the_vendored_axe_is_the_one_named():
    named = re.findall(r"`(axe\.min\.js)` \| `([0-9a-f]{64})`", (VENDOR / "VENDOR.md").read_text())
    assert named == [("axe.min.js", hashlib.sha256((VENDOR / "axe.min.js").read_bytes()).hexdigest())]


def test_axe_finds_what_is_wrong(chromium, tmp_path):
    (tmp_path / "bad.html").write_text(
        '<!doctype html><html lang="en"><title>x</title><main><h1>x</h1><img src="data:,"><button></button></main>'
    )
    chromium.open(tmp_path / "bad.html")
    chromium.js((VENDOR / "axe.min.js").read_text("utf-8") + "; 0")
    violations = chromium.js("axe.run().then(r => r.violations.map(v => v.id))")
    assert {"image-alt", "button-name"} <= set(violations)


def key(chromium, name, code=0, modifiers=0):
    for kind in ("keyDown", "keyUp"):
        more = {"text": name} if len(name) == 1 else {}
        event = {"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers, **more}
        chromium.send("Input.dispatchKeyEvent", event)


FOCUS = "(e => e.dataset.panel ?? (e.className || e.id || e.name || e.tagName))(document.activeElement)"


def test_the_keyboard_has_one_stop_for_each_group(chromium, made):
    sized(chromium, 1400)
    chromium.open(made[0], ready=READY)
    stops = []
    while not stops or (stops[-1] != "whole" and len(stops) < 30):
        key(chromium, "Tab", 9)
        stops.append(chromium.js(FOCUS))
    assert stops[-1] == "whole" and len(stops) <= 12, stops  # 58 stops once lay before the first plot
    assert stops[0] == "skip" and stops.count("sort") == 1
    # the panel is a slider that says its values
    key(chromium, "ArrowLeft", 37)
    slider = "document.querySelector('[data-panel=whole]').getAttribute('{}')"
    assert chromium.js(slider.format("role")) == "slider"
    assert chromium.js(slider.format("aria-valuenow")) == str(len(IOPS) - 2)
    text_ = chromium.js(slider.format("aria-valuetext"))
    assert text_.startswith(f"t = {len(IOPS) - 2} s. ") and "7\u202f000 IOPS" in text_ and " W, " in text_
    key(chromium, "Home", 36)
    assert chromium.js(slider.format("aria-valuenow")) == "0"
    assert "42\u202f000 IOPS" in chromium.js(slider.format("aria-valuetext"))
    # arrows go through a group
    chromium.js("document.querySelector('.sort').focus()")
    key(chromium, "ArrowRight", 39)
    assert chromium.js("document.activeElement.dataset.key") == "iops_min"
    key(chromium, "ArrowDown", 40)
    assert chromium.js("document.activeElement.className").startswith("row")
    label = chromium.js("document.activeElement.textContent")
    assert " IOPS" in label and "OP" in label
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_a_heading_sorts_all_columns(chromium, made):
    sized(chromium, 1400)
    chromium.open(made[0], ready=READY)
    order = (
        "[...document.querySelectorAll('[data-view=\"0\"] .names .row')].sort((a, b) => a.offsetTop - b.offsetTop)"
        ".map(e => +e.dataset.run)"
    )
    assert chromium.js(order) == [5, 3, 2, 1, 0, 4]  # by IOPS, the one that died last
    chromium.js("document.querySelector('.sort[data-key=wa]').click()")
    assert chromium.js(order) == [0, 1, 2, 3, 5, 4]
    tops = "e => Math.round(e.getBoundingClientRect().top)"
    same = f'[...document.querySelectorAll(\'[data-view="0"] [data-run="2"].row\')].map({tops})'
    assert len(set(chromium.js(same))) == 1
    assert chromium.js("location.hash") == "#sort=wa"
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_the_samples_of_the_page_are_the_runs(chromium, made):
    data = table.in_full(made[1][0]).data
    chromium.open(made[0], "#s=8.5-9.5&a=8.6&b=9.4", ready=READY)
    name, t, P = next(one for one in data.moments if one[0] == "cliff")
    samples = chromium.js(
        "(r => { const m = r.traces.find(x => x.words === 'cliff'); return [[...m.t], [...m.P]]; })(ssdrig.samples(0))"
    )
    assert samples[0] == pytest.approx(t, abs=3e-5) and samples[1] == pytest.approx(P, abs=1e-3)
    assert chromium.js("ssdrig.limits().samples") == [8.5, 9.5]
    row = chromium.js(
        "[...document.querySelectorAll('#marks tbody tr, #marks tr')].map(r => [...r.children].map(c => c.textContent))"
    )[1]
    inside = (t > 8.6) & (t <= 9.4)
    joules = P[inside].mean() * 0.8
    assert row[1] == "0.800" and float(row[2]) == pytest.approx(joules, rel=5e-3)
    assert float(row[4]) == pytest.approx(P[inside].std(ddof=1), rel=0.02) and row[-1].endswith(" samples")
    # without all samples: of cells, and with the I/O
    chromium.js("location.hash = '#a=2&b=6'")
    chromium.wait("document.querySelector('#marks tr:nth-child(2) td')?.textContent === '4.000'")
    row = chromium.js("[...document.querySelectorAll('#marks tr:nth-child(2) > *')].map(c => c.textContent)")
    assert float(row[2]) == pytest.approx(data.energy_J[2:6].sum(), rel=2e-3)
    assert row[7].replace("\u202f", "") == str(sum(IOPS[2:6])) and row[-1] == "400 means of 10 ms"


def chunks(png):
    """[(kind, body)] of a PNG; each CRC is checked."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, out = 8, []
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        out.append((kind, body))
        at += 12 + length
    return out


SAVED = """(async (index, kind) => {
  const took = []; const real = Export.save; Export.save = (name, content) => took.push([name, content]);
  try { const bar = [...document.querySelectorAll('main figure .tools')][index];
    [...bar.children].find(b => b.textContent === kind).click();
    while (!took.length) await new Promise(d => setTimeout(d, 20)); } finally { Export.save = real; }
  const [name, content] = took[0], utf8 = new TextEncoder();
  const bytes = content instanceof Blob ? new Uint8Array(await content.arrayBuffer()) : utf8.encode(content);
  let text = ''; for (const b of bytes) text += String.fromCharCode(b);
  return [name, btoa(text)]; })"""


def saved(chromium, index, kind):
    name, text = chromium.js(f"{SAVED}({index}, '{kind}')")
    return name, base64.b64decode(text)


def test_each_plot_is_saved_as_png_svg_and_csv(chromium, made):
    sized(chromium, 1400)
    chromium.open(made[0], "#t=5-15", ready=READY)
    titles = chromium.js(
        "[...document.querySelectorAll('main figure')].filter(f => f.querySelector('.tools'))"
        ".map(f => f.querySelector('b').textContent)"
    )
    assert len(titles) > 14
    power, cdf = (next(i for i, t in enumerate(titles) if t.startswith(start)) for start in ("Power and", "How many"))
    for index in (power, cdf):
        name, svg = saved(chromium, index, "SVG")
        root = ElementTree.fromstring(svg)
        text = "".join(root.itertext())
        assert name.endswith("-6-runs.svg") and "SIMULATED" in text and "2026-11-20" in text and "(reviewed)" in text
        assert b"var(--" not in svg and svg.count(b"<path") > 8
        assert "2012 to 2016; run-00, run-01" in " ".join(root.itertext())
    caption = " ".join(ElementTree.fromstring(saved(chromium, power, "SVG")[1]).itertext())
    assert "Band: lowest to highest sample in it." in " ".join(caption.split())
    for index in (power, cdf):
        name, png = saved(chromium, index, "PNG")
        texts = dict(body.split(b"\0", 1) for kind, body in chunks(png) if kind == b"iTXt")
        settings = json.loads(texts[b"Settings"][4:].decode())
        assert settings["runs"]["run-00"]["Firmware"] == "1" and settings["address"].startswith("#t=5-15")
        width, height = struct.unpack(">II", chunks(png)[0][1][:8])
        assert width > 1000 and height > 400
    _, csv = saved(chromium, power, "CSV")
    rows = [line.split(",") for line in csv.decode().splitlines()]
    assert rows[0] == ["run", "t_s", "power_mean_W", "power_min_W", "power_max_W"]
    assert {int(row[1]) for row in rows[1:]} == set(range(5, 16)) and len({row[0] for row in rows[1:]}) == 6
    data = table.in_full(made[1][0]).data
    own = [float(row[2]) for row in rows[1:] if row[0] == '"run-00"']
    assert own == pytest.approx(data.power_mean_W[5:16], rel=1e-3)
    _, csv = saved(chromium, cdf, "CSV")
    assert csv.decode().startswith("run,latency_us,share_slower\n")
    assert chromium.complaints() == []
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_without_javascript_every_plot_stands_still(made):
    html = made[0].read_text()
    assert html.count("<noscript><svg") == 6
    static = html.split('data-panel="whole"')[1].split("</noscript>")[0]
    assert static.count('class="line of-run') == 6


def simulated(rgb, matrix):
    """A colour as a person without green cones sees it (Vienot, Brettel, Mollon 1999), linear RGB."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb])
    return np.array(matrix) @ linear


DEUTERANOPIA = [[0.33066007, 0.66933993, 0.0], [0.33066007, 0.66933993, 0.0], [-0.02785538, 0.02785538, 1.0]]


@pytest.mark.parametrize("dark", [False, True])
def test_the_reviewed_runs_colour_is_its_own_without_green_cones(dark):
    from ssdrig.report import page

    css = (page.HERE / "report.css").read_text()
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css.split("@media")[1 if dark else 0]))

    def lab(name):
        rgb = [int(colours[name][i : i + 2], 16) / 255 for i in (1, 3, 5)]
        x, y, z = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
            simulated(rgb, DEUTERANOPIA), 0, 1
        )
        f = [np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x / 0.9505, y, z / 1.089)]
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    for name in COLOURS:
        assert np.linalg.norm(lab("review") - lab(name)) >= 12, name
