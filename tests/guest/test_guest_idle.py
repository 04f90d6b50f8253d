"""Idle power of an NVMe drive by its own report, through an unmodified kernel: the SIMULATED drive over NVMe/TCP, whose
states are ten times as far apart as its preset has them. It comes with its own transitions switched off."""

import json
import os

import pytest
from serving import Serving

from guest.connected import Connected
from ssdrig.virtual.flash import presets

WHY_NOT = "SSDRIG_TEST_GUEST_CUTS=1 runs it, on a free machine (5 min): a starved guest does not let its drive sleep"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.environ.get("SSDRIG_TEST_GUEST_CUTS"), reason=WHY_NOT)]

PRESET = presets.PRESETS["nvme-tlc-estimates"]
LONG = ("--set", "least=1 min", "--set", "most=4 min")  # the deepest state begins after 30 s
SWITCH_OFF = """
import sys; from ssdrig.drive import conditions
conditions.change("apst", "off", sys.argv[0], controller=sys.argv[1])
"""
SETTINGS = """
import json, sys; from ssdrig.drive import conditions
print(json.dumps([conditions.setting(key, sys.argv[0], controller=sys.argv[1])[0] for key in ("apst", "aspm")]))
"""


@pytest.fixture
def drive(machine, tmp_path, needs):
    needs("nvme", "smartctl")
    words = ("--preset", PRESET.name, "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    served = Serving(tmp_path, *words)
    try:
        connected = Connected(machine, served)
        yield connected
        connected.end()
    finally:
        served.end()


def test_a_desktop_stays_awake_and_a_notebook_sleeps(drive):
    machine, at = drive.machine, (drive.node.removeprefix("/dev/"), drive.controller)
    assert machine.python(SWITCH_OFF, *at).exit_code == 0
    before = machine.python(SETTINGS, *at).json()
    assert before[0] == "off"
    named = ("--drive", drive.serial, "--meter", "drive:?start=1", "--runs", "/tmp/idle", "--json")
    done = machine.ssdrig("run", "idle-power", "--variant", "quick", *LONG, *named)
    assert done.exit_code == 0, str(done)
    report = machine.ssdrig("report", done.json()["run"], "--json").json()
    rows = {row["path"]: row for row in report["rows"]}
    floors_W = [rows[path]["found"]["floor_W"] for path in ("desktop", "mobile")]
    deepest_W = PRESET.power_states[-1].max_mW / 1000
    assert floors_W == pytest.approx([PRESET.P_idle_mW / 1000, deepest_W], rel=0.05), json.dumps(rows)
    assert all("alpm" in rows[path]["why"] for path in ("desktop-sata", "mobile-sata"))
    assert machine.python(SETTINGS, *at).json() == before
