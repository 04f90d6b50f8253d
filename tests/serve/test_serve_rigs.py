"""The rigs of an archive as `serve` tells them: what each is, its certificate, its latch, what its runs' journals say;
and the page that shows it."""

import json
import time

import pytest
import synthetic_run
from browser_serving import Serving
from test_browser_page import chromium, fits, open_page, text  # noqa: F401  a fixture

from ssdrig.base import latch
from ssdrig.meter import calibration
from ssdrig.meter.pico import certificate
from ssdrig.meter.pico.certificate import Check
from ssdrig.reading.index import Index
from ssdrig.runs import journal
from ssdrig.serve import event_words, rigs

HELLO = {"board": "one", "serial": "E66<b>", "build": "sata", "revision": "B", "firmware": "0.1.0", "protocol": 2}
RAIL = {"rail": 0, "name": "5V", "chip": "INA228", "conversion_ns": 234_000, "shunt_uOhm": 15000}
CHECKS = [
    Check("noise", 0, 1.25, "mA", 0.5, 2.0, True, "", ""),
    Check("falls", 0, float("nan"), "V", None, 2.5, False, "the rail stayed up", "look at the switch"),
    Check("load", None, None, "", None, None, None, "no resistor", ""),
]


def with_rig(root, name, hello, *more):
    """A run whose rig has said `hello`, and what else it has said."""
    run = synthetic_run.write(root, [900] * 5 + [300, 500] * 3, name=name, zoom_s=5, logs=False, smart_every_s=3)
    events = [{k: v for k, v in e.items() if k not in ("line", "crc")} for e in journal.events(run)]
    at = events[0]["t_ns"] + 5
    events[1:1] = [{"t_ns": at, "kind": "rig.hello", "hello": hello}, *({"t_ns": at + 1, **event} for event in more)]
    synthetic_run.seal(run, events)
    return run


@pytest.fixture
def root(tmp_path):
    lost = {"kind": "rig.lost", "why": "silent for 2 s <b>"}
    line = {"x1_n": 0, "x2_n": 5_000_000_000, "r1_n": 0, "r2_n": 5_001_000_000, "date": "2026-11-01", "meter": "m"}
    calibration_ = {"board": "one", "V": {**dict.fromkeys(calibration.LINE, 1000), **line}}
    real = HELLO | {"simulated": False, "rails": [RAIL | {"calibration": calibration_, "protect": {"A": 3.0, "ms": 5}}]}
    with_rig(tmp_path / "runs", "a", real)
    with_rig(tmp_path / "runs", "b", real, lost)
    with_rig(tmp_path / "runs", "c", {"board": "SIMULATED two", "simulated": True, "rails": "none"})
    synthetic_run.write(tmp_path / "runs", [900] * 9, name="d", zoom_s=5, logs=False, power=False)
    (tmp_path / "runs/a/figures.json").write_text(
        '{"rows": [{"windows": {"all": {"samples": 4000, "samples_lost": 3}}}, {"windows": {"all": {"samples": 1000,'
        ' "samples_lost": 0}}}], "whole_run": {"closure_percent": NaN}}'
    )
    return tmp_path / "runs"


def listed(root) -> dict[str, dict]:
    index = Index(root)
    index.refresh()
    try:
        return {rig["board"]: rig for rig in rigs.listed(index.find(), index.folder)}
    finally:
        index.close()


def test_a_rig_is_what_its_latest_run_and_its_certificate_say(root):
    rigs = listed(root)
    assert set(rigs) == {"one", "SIMULATED two"}
    one = rigs["one"]
    assert (one["serial"], one["build"], one["revision"], one["simulated"]) == ("E66<b>", "sata", "B", False)
    (rail,) = one["rails"]
    assert (rail["samples_per_s"], rail["shunt_mOhm"], rail["protect"]) == (4274, 15.0, "3 A, 5 ms")
    assert rail["calibrated"] == {"V": "2026-11-01"} and one["calibrated"] == ["2026-11-01"]
    assert one["certificate"] is None and "rig doctor" in one["why"] and one["unknown"] is None
    runs = {run["run"]: run for run in one["runs"]}
    assert runs["a"]["samples_lost"] == 3 and runs["a"]["closure_percent"] is None and runs["a"]["says"] == []
    assert runs["b"]["says"] == ["rig lost: why silent for 2 s <b>"] and runs["b"]["samples"] is None
    assert rigs["SIMULATED two"]["rails"] == [] and "SIMULATED" in rigs["SIMULATED two"]["why"]


def test_its_certificate_and_its_latch(root):
    made = certificate.made(HELLO | {"revision": "A"}, CHECKS, (0, 10.0), time.time_ns() - 3 * 86400 * 10**9)
    certificate.keep(made)
    latch.put("E66<b>", "the rail was not seen to return", "S1")
    one = listed(root)["one"]
    of = one["certificate"]
    assert (of["id"], of["passed"], of["failed"]) == (made["id"], False, ["rail 0: falls"])
    assert of["differs"] == ["revision", "simulated"] and of["age_s"] // 86400 == 3
    assert [(c["ok"], c["value"]) for c in of["checks"]] == [(True, 1.25), (False, None), (None, None)]
    assert one["unknown"] == "the rail was not seen to return"
    json.dumps(one, allow_nan=False)
    path = next(certificate.folder().glob("*.json"))
    path.write_text(path.read_text().replace("false", "true", 1))
    assert "was changed" in listed(root)["one"]["why"]


@pytest.mark.parametrize(
    "hello", [{}, {"rails": 5}, {"rails": [5, {"calibration": 7, "shunt_uOhm": "x", "conversion_ns": float("nan")}]}]
)
def test_a_hello_of_no_board_of_ours_is_said_as_far_as_it_goes(hello):
    json.dumps(event_words.rig(hello), allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_of_rigs(chromium, root, width):
    certificate.keep(certificate.made(HELLO, CHECKS, None, time.time_ns()))
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chromium.send("Emulation.setDeviceMetricsOverride", size)
    with Serving(root) as served:
        assert served.ask("GET", "/api/rigs", headers={"Authorization": None})[0] == 401
        open_page(chromium, served.url, "document.getElementById('n-runs').textContent")
        chromium.js("location.hash = '#rigs'")
        chromium.wait("document.querySelectorAll('.rig').length === 2")
        chromium.js("document.querySelectorAll('#rigs details').forEach((el) => { el.open = true; })")
        shown = text(chromium, "#rigs")
        for words in ("one, E66<b>", "build sata", "15.0 mΩ", "NOT PASSED", "✕ FAILED", "rail 0: falls", "3 of 5"):
            assert words in shown, words
        assert "silent for 2 s <b>" in shown and chromium.js("document.querySelectorAll('#rigs b').length") == 0
        assert chromium.complaints() == [] and fits(chromium)
    chromium.send("Emulation.clearDeviceMetricsOverride")
