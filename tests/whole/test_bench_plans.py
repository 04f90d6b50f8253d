"""Shipped plans carried out in their quick form on the virtual bench; what the SIMULATED drive cannot be set to is a
stand-in's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssdrig.virtual.flash import presets

HOST = Path(__file__).parents[2] / "host"
ENV = os.environ | {"PYTHONPATH": str(HOST)}
SMALL = ("--variant", "quick", "--quiet", "--json")
CAPACITY = {"sata-tlc": "256MiB", "nvme-tlc": "512MiB"}  # the least with enough spare blocks
# a host memory buffer that is only switched, and the order in which it is
HMB = """
import json, sys
from ssdrig import cli
from ssdrig.run import prepare, virtual_settings
states = ["on"]
plain = {name: getattr(virtual_settings, name) for name in ("setting", "change", "put_back")}
prepare.SET["NVMe"] |= {"hmb"}
def setting(admin, key):
    return states[-1:] if key == "hmb" else plain["setting"](admin, key)
def change(admin, key, value):
    states.append(value) if key == "hmb" else plain["change"](admin, key, value)
def put_back(admin, key, before):
    states.append(before[0]) if key == "hmb" else plain["put_back"](admin, key, before)
for function in (setting, change, put_back):
    setattr(virtual_settings, function.__name__, function)
code = cli.main(sys.argv[1:])
print(json.dumps(states), file=sys.stderr)
sys.exit(code)
"""

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


def carried_out(tmp_path, plan, preset, *more, source="import sys; from ssdrig.cli import main; sys.exit(main())"):
    """(report --json of a run that ended well, stderr of the run)"""
    sized = ("--virtual", preset, "--capacity", CAPACITY[preset])
    words = ("run", plan, *sized, *SMALL, "--runs", str(tmp_path), *more)
    done = subprocess.run([sys.executable, "-c", source, *words], env=ENV, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = [sys.executable, "-m", "ssdrig", "report", json.loads(done.stdout)["run"], "--json"]
    report = subprocess.run(shown, env=ENV, text=True, capture_output=True)
    assert report.returncode == 0, report.stderr
    return json.loads(report.stdout), done.stderr


def by_path(report):
    return {row["path"]: row for row in report["rows"]}


def test_idle_power_of_a_sata_drive_is_lower_where_its_link_may_sleep(tmp_path):
    report, _ = carried_out(tmp_path, "idle-power", "sata-tlc")
    rows = by_path(report)
    desktop, mobile = (rows[path]["found"]["floor_W"] for path in ("desktop-sata", "mobile-sata"))
    preset = presets.PRESETS["sata-tlc"]
    assert desktop == pytest.approx(preset.P_idle_mW / 1000, rel=0.05)
    assert mobile == pytest.approx(min(state.max_mW for state in preset.power_states) / 1000, rel=0.05)
    assert "aspm" in rows["desktop"]["why"] and "aspm" in rows["mobile"]["why"]
    assert [bool(part["why"]) for part in report["headline"]] == [True, False]


def test_idle_power_is_refused_where_no_link_can_be_set(tmp_path):
    sized = ("--virtual", "nvme-tlc", "--capacity", CAPACITY["nvme-tlc"])
    words = ("run", "idle-power", *sized, *SMALL, "--runs", str(tmp_path))
    done = subprocess.run([sys.executable, "-m", "ssdrig", *words], env=ENV, text=True, capture_output=True)
    assert done.returncode == 2 and "aspm" in done.stderr and not list(tmp_path.iterdir())


def test_preconditioning_in_one_pass_writes_less_and_reaches_the_same_level(tmp_path):
    report, _ = carried_out(tmp_path, "preconditioning", "sata-tlc", "--set", "time=8 s")
    rows = by_path(report)
    twice, once = (rows[path]["windows"]["all"] for path in ("after-twice", "after-one-pass"))
    assert twice["iops_mean"] > 0 and once["iops_mean"] > 0


def test_host_memory_is_taken_away_and_given_back(tmp_path):
    report, printed = carried_out(tmp_path, "host-memory", "nvme-tlc", "--set", "time=2 s", source=HMB)
    states = json.loads(printed.splitlines()[-1])
    assert states[:4] == ["on", "on", "off", "on"] and states[-1] == "on"
    rows = by_path(report)
    for path in ("part", "all", "writes", "part-without", "all-without", "writes-without"):
        assert rows[path]["windows"]["all"]["iops_mean"] > 0, path
