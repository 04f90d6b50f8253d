"""What the tests of the guard share: a machine with two disks that nobody uses, drives made by hand, a disk with a file
system."""

import shutil
import subprocess

import pytest
from disktree import DiskTree
from drives import a_drive

from ssdrig.drive import guard, sysfs
from ssdrig.drive.inventory import Drive, all_drives

SERIAL = "S3Z9NB0K100001"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """One SATA disk sda with nothing on it, and one NVMe drive that nothing is wrong with either."""
    tree = DiskTree(tmp_path)
    monkeypatch.setattr(sysfs, "node_number", tree.node_number)
    tree.sata(size_bytes=64 << 20)
    tree.nvme(0, size_bytes=64 << 20)
    return tree


def against(tree, name="sda", serial=None) -> dict[str, str]:
    """{check: why} of the refusals; none but a signature may be lifted."""
    drive = next(d for d in all_drives(tree.root) if d.name == name)
    refusals = guard.refusals(drive, serial, tree.root)
    assert all(r.override is None for r in refusals if r.check != "signature")
    return {r.check: r.why for r in refusals}


def by_hand(name, major, minor, size_bytes) -> Drive:
    return a_drive(
        name=name,
        node=f"/dev/{name}",
        by_id=None,
        model="by hand",
        serial="HAND",
        firmware="",
        capacity_bytes=size_bytes,
        logical_block_bytes=512,
        interface="other",
        major=major,
        minor=minor,
        controller=None,
        nsid=None,
        smartctl_type="auto",
    )


def make_ext4(node) -> None:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4 here")
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node), "32M"], check=True, capture_output=True)
