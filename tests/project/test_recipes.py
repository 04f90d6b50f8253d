"""The recipes of CONTRIBUTING.md, each carried out on a copy of the tree; the files are counted."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
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
    found = [row.data.iops.min() / row.data.iops.max() for row in rows if row.data is not None]
    return panel("Write cliff", "".join(f"<p>falls to {figure(share)}</p>" for share in found))


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
with session("constant:x") as here:
    reading = here.readings([0], 0.2)[0]
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
    said = (ROOT / "CONTRIBUTING.md").read_text()
    (tree / "host/ssdrig" / name).write_text(text or re.findall(r"```python\n(.*?)```", said, re.DOTALL)[1])
    where = {**os.environ, "PYTHONPATH": str(tree / "host")}
    done = subprocess.run([sys.executable, "-c", script], env=where, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(word in done.stdout for word in words), done.stdout


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
