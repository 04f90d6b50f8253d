"""The recipes of CONTRIBUTING.md, each carried out on a copy of the tree; the files are counted."""

import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import simboard
import synthetic_plan
import synthetic_run

ROOT = Path(__file__).resolve().parents[2]
PLAN = """schema = 1
name   = "cliff"
title  = "Write cliff"
source = "none"
about  = "How far the rate falls."

[[step]]
name    = "load"
do      = "load"
pattern = "random"
read    = 0
block   = "4 KiB"
time    = "6 s"

[[show]]
view = "cliff"
of   = "load"
"""
VIEW = '''"""The view `cliff`: how far the rate of a load falls."""

from ssdrig.plan.shows import View

VIEWS = {"cliff": View(("of",), ("title",), claims=True)}
'''
DRAWN = """from ssdrig.views.context import Context, figure, panel


def cliff(context: Context) -> str:
    rows = [row for table in context.tables for path in context.paths for row in table.of(path)]
    drops = [row.data.iops.min() / row.data.iops.max() for row in rows if row.data is not None]
    return panel("Write cliff", "".join(f"<p>falls to {figure(share)}</p>" for share in drops))


HTML = {"cliff": cliff}
"""
SHOW = """
import sys
from ssdrig.plan import shows
from ssdrig.reading import table
from ssdrig.report import page
print(sorted(shows.views()))
print(page.render([table.load(sys.argv[1])]))
"""


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of host/ssdrig and what it reads beside it."""
    ignored = shutil.ignore_patterns("__pycache__", "virtual")
    for name in ("host/ssdrig", "schemas", "firmware"):
        shutil.copytree(ROOT / name, tmp_path / "clone" / name, symlinks=True, ignore=ignored)
    return tmp_path / "clone"


def test_a_plan_with_a_figure_and_a_plot_is_a_plan_and_a_folder(tree, tmp_path):
    files = {
        "host/ssdrig/plan/plans/cliff.toml": PLAN,
        "host/ssdrig/views/cliff/__init__.py": VIEW,
        "host/ssdrig/views/cliff/html.py": DRAWN,
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(text)
    writer = synthetic_plan.Writer(tmp_path / "runs", PLAN, name="cliff")
    writer.load("load", [9000, 9000, 9000, 4500, 4500, 4500], 2.0)
    run = writer.end()
    where = {**os.environ, "PYTHONPATH": str(tree / "host")}
    done = subprocess.run([sys.executable, "-c", SHOW, str(run)], env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'cliff'" in done.stdout.splitlines()[0] and "falls to 0.5" in done.stdout
    words = [sys.executable, "-m", "ssdrig", "plans", "check", str(tree / "host/ssdrig/plan/plans/cliff.toml")]
    done = subprocess.run(words, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


METERED = """
from ssdrig.meter import meter
from ssdrig.meter.pico.session import session
from ssdrig.run import options
meter.check("constant:x")
with session("constant:x") as meter_session:
    reading = meter_session.readings([0], 0.2)[0]
print(meter.names(), round(float(reading.power.P.mean()), 3))
"""
SWITCHED = """
from ssdrig.powerloss.supply import SwitchSupply
from ssdrig.switch import switch
switch.check("bell:x")
print(switch.names(), SwitchSupply(switch.of("bell:x", "bell:x"), lambda: False).cut("", None, 0.0).why_not)
"""
BELL = """from ssdrig.switch.command import timed


class Bell:
    def off(self, at_ns=None):
        return timed(lambda: print("off"), at_ns)

    def on(self):
        return timed(lambda: print("on"))


def check(rest):
    pass


def opened(rest):
    return Bell()
"""


@pytest.mark.parametrize(
    "name, text, script, words",
    [
        ("meter/sources/constant.py", None, METERED, ["'constant'", "1.25"]),
        ("switch/bell.py", BELL, SWITCHED, ["off\non\n", "'bell'"]),
    ],
)
def test_a_meter_and_a_switch_are_one_file_each(tree, name, text, script, words):
    """The meter is that of the page."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    (tree / "host/ssdrig" / name).write_text(text or re.findall(r"```python\n(.*?)```", contributing, re.DOTALL)[1])
    where = {**os.environ, "PYTHONPATH": str(tree / "host")}
    done = subprocess.run([sys.executable, "-c", script], env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in words), done.stdout


DRIVER = """from ina226 import INA226


class INA299(INA226):
    NAME = "INA299"
    WHO = 0x3E, 0x3F
    IDS = 0x5449, 0x299

    def __init__(self, lane, rail):
        INA226.__init__(self, lane, rail)
        self.cal = 2_560_000_000_000_000 // (rail["current_lsb_pA"] * rail["shunt_uOhm"])
        self.ends = min(0x7FFF, 0x7FFF * self.cal >> 11)
"""
MODEL = """from ina226_model import INA226


class INA299(INA226):
    NAME = "INA299"
    IDS = {0x3E: 0x5449, 0x3F: 0x2990}

    def _shunt(self, volts):
        INA226._shunt(self, 2 * volts)  # its last digit is 1.25 uV
"""
LIMITS = """    "INA299": Limits(
        shunt_offset_V=2e-6,
        shunt_offset_V_per_C=20e-9,
        shunt_gain_ppm=800,
        shunt_V_per_supply_V=1e-6,
        shunt_V_per_rail_V=0.1e-6,
        shunt_step_V=1.25e-6,
        bus_offset_V=5e-3,
        bus_offset_V_per_C=30e-6,
        bus_gain_ppm=800,
        bus_V_per_supply_V=0.5e-3,
        gain_ppm_per_C=30,
        full_scale=0x7FFF,
        unity=2048,
        inverse=True,
        conversions_us=(140, 204, 332, 588, 1100, 2116, 4156, 8244),
        sample_bytes=(2, 2, 2),
    ),
"""
RAIL = {"chip": "INA299", "shunt_uOhm": 8000, "current_lsb_pA": 100_000_000, "vbus_us": 140, "vshunt_us": 1100}
CHECKED = """
import json, sys
from ssdrig.rig import builds
build = json.loads(sys.argv[1])
print(builds.complaint(build))
build["rails"][0]["vshunt_us"] = 1101
print(builds.complaint(build))
"""


def test_a_sensor_chip_is_a_driver_a_model_and_a_row(tree, tmp_path):
    """A made-up one, whose shunt voltage is twice as fine as an INA226's: its build is accepted, and the virtual board
    with it measures what its drive draws, within the uncertainty that its row gives."""
    shutil.copytree(ROOT / "host/ssdrig/virtual", tree / "host/ssdrig/virtual")
    row = tree / "host/ssdrig/meter/chips.py"
    text = row.read_text()
    assert text.count("\nCHIPS = {\n") == 1
    files = {
        "firmware/ina299.py": DRIVER,
        "host/ssdrig/virtual/board/ina299_model.py": MODEL,
        "host/ssdrig/meter/chips.py": text.replace("\nCHIPS = {\n", "\nCHIPS = {\n" + LIMITS),
    }
    assert len(files) <= 3
    for name, text in files.items():
        (tree / name).write_text(text)
    where = {**os.environ, "PYTHONPATH": str(tree / "host"), "SSDRIG_MICROPYTHON": shlex.join(simboard.interpreter())}
    build = json.loads((ROOT / "hardware/builds/one_rail.json").read_text())
    build["rails"][0] |= RAIL | {"temp_us": None}
    build["rails"][0].pop("protect", None)
    words = [sys.executable, "-c", CHECKED, json.dumps(build)]
    done = subprocess.run(words, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    accepted, refused = done.stdout.splitlines()
    assert accepted == "None" and "1101" in refused
    ring = simboard.make_feed(tmp_path / "feed", 2.5)
    faults = json.dumps({"rail": RAIL, "gain_ppm": 0, "vbus_gain_ppm": 0})
    words = ["-m", "ssdrig.virtual.cable", "--feed", str(tmp_path / "feed"), "--truth", str(tmp_path / "truth.json")]
    words = [sys.executable, *words, "--faults", faults, "--die-with-parent"]
    with subprocess.Popen(words, env=where, stdout=subprocess.PIPE, text=True) as board:
        try:
            port = json.loads(board.stdout.readline())["port"]
            words = [sys.executable, "-m", "ssdrig", "rig", "info", "--rig", port, "--json"]
            done = subprocess.run(words, env=where, capture_output=True, text=True)
        finally:
            board.terminate()
    assert done.returncode == 0, done.stderr
    rail = json.loads(done.stdout)["rails"][0]
    assert len(ring) and rail["chip"] == "INA299" and rail["samples"] > 100
    assert abs(rail["P_mean_W"] - 2.5) < rail["P_uncertainty_W"] < 0.25


def test_a_word_is_one_line(tree, tmp_path):
    """What a figure is called: on the page in all its places, and in the reference."""
    source = tree / "host/ssdrig/reading/window_figures.py"
    before, after = "I/Os in flight, by Little's law", "Operations under way"
    text = source.read_text()
    assert text.count(before) == 1
    source.write_text(text.replace(before, after))
    run = synthetic_run.write(tmp_path / "runs", [4000] * 12, zoom_s=4, queue_depth=32)
    where = {**os.environ, "PYTHONPATH": str(tree / "host")}
    out = tmp_path / "page.html"
    words = [sys.executable, "-m", "ssdrig", "report", str(run), "--output", str(out)]
    done = subprocess.run(words, env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    script = "from ssdrig.views import terms; print(terms.markdown())"
    page = subprocess.run([sys.executable, "-c", script], env=where, capture_output=True, text=True, check=True).stdout
    for shown in (out.read_text(), page, done.stderr):
        assert after in shown and before not in html.unescape(shown)


def test_the_recipes_name_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = re.findall(r"`((?:firmware|hardware|host|schemas|tests)/[\w./-]+)`", text)
    assert len(named) > 10 and not [name for name in named if not (ROOT / name).exists()]
