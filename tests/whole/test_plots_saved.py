"""Figures of the pages of plans and of reviews, saved from the page: PNG with its settings, SVG, and tables as CSV."""

import json
import struct
import xml.etree.ElementTree as ElementTree

import pytest
import synthetic_plan
from browser import chromium  # noqa: F401  a fixture
from test_report import run_command
from test_report_seen import chunks, saved, sized
from test_review_page import review

pytestmark = pytest.mark.slow

READY = "document.readyState === 'complete' && document.body.dataset.errors === ''"
TITLES = """[...document.querySelectorAll('main figure .tools')].map((bar) =>
  [bar.closest('figure').querySelector('b').textContent, [...bar.children].map((b) => b.textContent).join(' ')])"""
LACKING = """[...document.querySelectorAll('main figure')].filter((el) => el.querySelector('svg.plot, table')
  && !el.querySelector('.tools')).length"""


def test_figures_of_a_plan(chromium, tmp_path):
    run_command(synthetic_plan.grid(tmp_path), "--out", tmp_path / "p.html", "--quiet")
    sized(chromium, 390)
    chromium.open(tmp_path / "p.html", ready=READY)
    assert chromium.js("document.documentElement.scrollWidth") <= 390 and chromium.js(LACKING) == 0
    sized(chromium, 1400)
    titles = chromium.js(TITLES)
    plot = next(i for i, (_, kinds) in enumerate(titles) if kinds.startswith("PNG SVG"))
    table = next(i for i, (title, kinds) in enumerate(titles) if kinds == "CSV" and "IOPS" in title)
    name, svg = saved(chromium, plot, "SVG")
    words = "".join(ElementTree.fromstring(svg).itertext())
    assert name.endswith(".svg") and titles[plot][0] in words and "SIMULATED" in words and b"var(--" not in svg
    assert "demo, a test; p-1" in words
    _, png = saved(chromium, plot, "PNG")
    settings = json.loads(dict(b.split(b"\0", 1) for kind, b in chunks(png) if kind == b"iTXt")[b"Settings"][4:])
    assert "SIMULATED" in settings["marks"] and "serial SIM0001" in settings["runs"][0]
    assert struct.unpack(">II", chunks(png)[0][1][:8])[0] > 800
    drawn = next(i for i, (title, kinds) in enumerate(titles) if "SVG CSV" in kinds and "by the round" in title)
    head, *rows = [json.loads(f"[{line}]") for line in saved(chromium, drawn, "CSV")[1].decode().splitlines()]
    assert head[:2] == ["series", "round"] and b"data-csv" not in saved(chromium, drawn, "SVG")[1]
    marked = [row for row in rows if row[0].startswith("round ")]
    lines = [row for row in rows if not row[0].startswith("round ")]
    assert sorted(row[1:] for row in marked) == sorted(row[1:] for row in lines) and len(marked) >= 5
    _, csv = saved(chromium, table, "CSV")
    rows = [line.split(",") for line in csv.decode().splitlines()]
    assert rows[1][0] == '"64 KiB"' and all(float(value) > 0 for value in rows[1][1:])
    seen = chromium.js(f"document.querySelectorAll('main figure .tools')[{table}].closest('figure').innerText")
    assert all(f"{float(v):,.0f}".replace(",", "\u202f") in seen or v in seen for v in rows[1][1:])
    assert chromium.complaints() == []


def test_figures_of_a_review(chromium, tmp_path):
    run_command(review(tmp_path), "--out", tmp_path / "v.html", "--quiet")
    sized(chromium, 1400)
    chromium.open(tmp_path / "v.html", ready=READY)
    titles = chromium.js(TITLES)
    assert chromium.js(LACKING) == 0 and len(titles) >= 8
    plot = next(i for i, (_, kinds) in enumerate(titles) if kinds.startswith("PNG SVG"))
    name, svg = saved(chromium, plot, "SVG")
    words = "".join(ElementTree.fromstring(svg).itertext())
    assert "SCALED" in words and "<b>one</b>" in words and "/" not in name
    assert saved(chromium, plot, "PNG")[1].startswith(b"\x89PNG")
    assert chromium.complaints() == []
    chromium.send("Emulation.clearDeviceMetricsOverride")
