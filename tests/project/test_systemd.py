"""The shipped unit file: systemd itself checks it, and its rights are those that reading SMART needs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "host" / "systemd" / "ssdrig-watch.service"


def analyze(*words):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed (apt install systemd)")
    return subprocess.run(["systemd-analyze", "--man=no", *map(str, words)], capture_output=True, text=True)


@pytest.fixture
def unit(tmp_path):
    """The unit with the path of this clone, as its head comment says to do it."""
    text = UNIT.read_text()
    assert text.count("/opt/ssdrig/ssdrig watch") == 1
    path = tmp_path / UNIT.name
    path.write_text(text.replace("/opt/ssdrig/ssdrig watch", f"{ROOT / 'ssdrig'} watch"))
    return path


def settings(name):
    return [line.partition("=")[2] for line in UNIT.read_text().splitlines() if line.partition("=")[0] == name]


def test_systemd_finds_no_fault(unit):
    done = analyze("verify", unit)
    assert done.returncode == 0 and done.stdout + done.stderr == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [("Type=notify", "Type=notice"), ("WatchdogSec=5min", "WatchdogSec=soon"), ("[Install]", "[Instal]")],
)
def test_systemd_would_find_one(unit, old, new):
    unit.write_text(unit.read_text().replace(old, new))
    assert new in unit.read_text()
    assert analyze("verify", unit).stderr != ""


def test_exposure_is_what_smart_access_leaves(unit):
    done = analyze("security", "--offline=true", "--threshold=30", unit)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze cannot judge a unit file offline (needs systemd 250)")
    exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)[1])
    assert done.returncode == 0 and exposure <= 3.0, done.stdout


def test_rights_and_life():
    assert settings("CapabilityBoundingSet") == ["CAP_SYS_ADMIN CAP_SYS_RAWIO"]
    assert {"block-* rw", "char-nvme rw"} <= set(settings("DeviceAllow")) and settings("DevicePolicy") == ["closed"]
    assert settings("StateDirectory") == ["ssdrig"] and settings("ProtectSystem") == ["strict"]
    assert (
        settings("Type") == ["notify"] and settings("Restart") == ["on-failure"] and settings("KillMode") == ["mixed"]
    )
    assert len(settings("ExecStart")) == 1 and settings("ExecStart")[0].endswith("/ssdrig watch")
