"""pts-xsr on the virtual bench: between two groups the drive rests for a second at most, as the run itself measures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ssdrig.reading import table
from ssdrig.runs import journal

HOST = Path(__file__).parents[2] / "host"
RUN = (
    "run pts-xsr --virtual sata-tlc --capacity 256MiB --variant quick --set larges=300 --set smalls=3000 --quiet --json"
)
MOST_S = 1.0
BETWEEN = {"step.end", "step.start", "witness", "load.first_io", "windows", "clock.anchor"}  # as a load ends and begins

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


def test_nothing_comes_between_two_groups_and_the_gap_is_at_most_a_second(tmp_path):
    if not shutil.which("fio"):
        pytest.skip("fio is not installed")
    words = [sys.executable, "-m", "ssdrig", *RUN.split(), "--runs", str(tmp_path)]
    env = os.environ | {"PYTHONPATH": str(HOST)}
    done = subprocess.run(words, env=env, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    folder = Path(json.loads(done.stdout.splitlines()[-1])["run"])
    rows = {row.act.path: row for row in table.load(folder).rows}
    gaps = [rows[path].value("gap") for path in ("stimulus", "after")]
    assert rows["before"].value("gap") is None and all(gap > 0 for gap in gaps)
    assert min(gaps) <= MOST_S, "a busy host may be late once"
    events = journal.events(folder)
    kinds = [(event["kind"], event.get("step")) for event in events]
    begin, end = kinds.index(("step.end", "before")), kinds.index(("step.end", "after"))
    assert {kind for kind, _ in kinds[begin:end]} <= BETWEEN
