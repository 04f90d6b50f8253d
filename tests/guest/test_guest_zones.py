"""A zoned namespace (ZNS) under an unmodified kernel: filled and measured by the plan `zones`, reset afterwards; what
does not fit is refused before a byte is written."""

import hashlib

import pytest

from guest.qemu import MIB, NVME, ZONED

pytestmark = pytest.mark.slow

ZONES, CAPACITY_BYTES = 16, 3 * MIB
STATES = "import sys, json; from ssdrig.drive import zones; print(json.dumps(zones.report(sys.argv[0])))"
HELD = "import os, sys, time; os.open(sys.argv[0], os.O_RDWR | os.O_EXCL); print('held', flush=True); time.sleep(600)"
ZONED_RUN = ("run", "zones", "--variant", "quick", "--json")


def node(guest) -> str:
    return "/dev/" + guest.do("wait_for", "/sys/block/nvme*/device/serial", ZONED.serial).split("/")[3]


def zones_of(guest) -> list[list]:
    """[start, length, capacity, pointer, condition, conventional] of each."""
    return guest.python(STATES, node(guest)).json()


def digest(guest, disk) -> str:
    guest.do("sync")
    return hashlib.sha256((guest.folder / disk.id).read_bytes()).hexdigest()


@pytest.fixture
def begun(guest):
    """The first zone written in part; empty again after the test."""
    guest.do("fill", node(guest), "begun\n", [0], MIB)
    yield guest
    guest.run("blkzone", "reset", node(guest))


def test_zones_are_seen_filled_measured_and_reset(begun, needs):
    needs("fio", "nvme")
    guest = begun
    rows = {row["serial"]: row for row in guest.ssdrig("drives", "--json", "--no-smart").json()}
    assert rows[ZONED.serial]["zoned"] == "host-managed" and rows[NVME.serial]["zoned"] == "none"
    assert zones_of(guest)[0][3] == MIB
    drive = ("--drive", ZONED.serial, "--destroy-data", ZONED.serial)
    done = guest.ssdrig(*ZONED_RUN, *drive, "--set", "time=2 s", "--runs", "/tmp/zoned")
    assert done.exit_code == 0, str(done)
    run = done.json()["run"]
    report = guest.ssdrig("report", run, "--json").json()
    fill, *points = (row for row in report["rows"] if row["path"] in ("fill", "points/write"))
    assert fill["windows"]["all"]["ios"] == ZONES * CAPACITY_BYTES // (128 << 10)
    assert {point["point"]["zones"] for point in points} == {1, 4} and len(points) == 4
    assert all(point["windows"]["all"]["iops_mean"] > 0 for point in points)
    assert [(zone[2], zone[3] - zone[0], zone[4]) for zone in zones_of(guest)] == [(CAPACITY_BYTES, 0, 1)] * ZONES


def test_a_purge_resets_the_zones_of_a_drive_that_takes_no_format(begun, needs):
    """QEMU formats no zoned namespace, whatever its controller promises."""
    needs("nvme")
    line = "this was here before"
    for start in range(4 * MIB, 8 * 4 * MIB, 4 * MIB):
        begun.do("fill", node(begun), f"{line}\n", [start], CAPACITY_BYTES)
    begun.do("sync")
    assert line.encode() in (begun.folder / ZONED.id).read_bytes()
    purge = ("purge", ZONED.serial, "--destroy-data", ZONED.serial, "--json")
    written = zones_of(begun)
    refused = begun.ssdrig(*purge)
    assert refused.exit_code == 4 and "--ses=1" in refused.stderr, str(refused)
    assert zones_of(begun) == written
    done = begun.ssdrig(*purge, "--method", "zone-reset")
    assert done.exit_code == 0, str(done)
    result = done.json()
    assert result["ok"] and (result["effect"]["kept"], result["effect"]["pattern_bytes"]) == (0, 0)
    assert result["effect"]["proving"] >= 4
    assert line.encode() not in (begun.folder / ZONED.id).read_bytes()
    assert [(zone[3] - zone[0], zone[4]) for zone in zones_of(begun)] == [(0, 1)] * ZONES


def test_a_plan_for_drives_without_zones_is_refused_before_a_byte(begun):
    before = digest(begun, ZONED)
    bridge = {"powerloss": ("--bridge-is-part",)}  # a campaign is also refused on the disk of a virtual machine
    for plan in ("consistency", "retention-write", "powerloss", "bench-light-like"):
        named = ("--drive", ZONED.serial, "--destroy-data", ZONED.serial, *bridge.get(plan, ()))
        done = begun.ssdrig("run", plan, *named)
        assert done.exit_code == 2, str(done)
        assert "zone" in done.stderr
    assert digest(begun, ZONED) == before and zones_of(begun)[0][3] == MIB


def test_zones_on_a_drive_without_are_refused_before_a_byte(guest):
    before = digest(guest, NVME)
    done = guest.ssdrig(*ZONED_RUN, "--drive", NVME.serial, "--destroy-data", NVME.serial)
    assert done.exit_code == 2 and "zoned" in done.stderr, str(done)
    assert digest(guest, NVME) == before


def test_zones_of_a_drive_in_use_are_not_reset(begun):
    begun.start_python("holder", HELD, node(begun))
    begun.until(f"ls -l /proc/*/fd 2>/dev/null | grep -q {node(begun)}")
    done = begun.ssdrig(*ZONED_RUN, "--drive", ZONED.serial, "--destroy-data", ZONED.serial)
    assert done.exit_code == 3, str(done)
    assert zones_of(begun)[0][3] == MIB
    begun.ended("holder", timeout_s=0.1)
