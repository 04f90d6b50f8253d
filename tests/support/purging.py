"""What the tests of `ssdrig purge` share: drives that are files behind the fake nvme and hdparm, and a loop device of
the real kernel."""

import contextlib
import os

import fake_erase
import pytest
from drives import a_drive
from loop_device import loop_device

from ssdrig.base.progress import Progress
from ssdrig.drive import purge
from ssdrig.drive.inventory import Drive

SIZE = 4 << 20
LOOP_BYTES = 16 << 20


def drive_at(node, interface="NVMe", name="nvme0n1", size=SIZE) -> Drive:
    nvme = interface.startswith("NVMe")
    return a_drive(
        name=name,
        node=str(node),
        by_id=None,
        model="Model A",
        serial="SERIAL0001",
        capacity_bytes=size,
        logical_block_bytes=512,
        interface=interface,
        controller="/dev/nvme0" if nvme else None,
        nsid=1 if nvme else None,
        smartctl_type="auto",
    )


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(interface=…, **how the drive behaves) -> (drive, state file), with random data on the drive and a /sys
    without others."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(interface="NVMe", data=True, **behaviour):
        backing = tmp_path / "backing"
        backing.write_bytes(os.urandom(SIZE) if data else bytes(SIZE))
        return drive_at(backing, interface), fake_erase.install(tmp_path, backing, **behaviour)

    return make


class ByName:
    """In the place of guard.Held: a drive of a test's own, by its name."""

    def __init__(self, drive: Drive):
        self.drive, self.path = drive, drive.node

    def controller(self):
        return contextlib.nullcontext(self.drive.controller)

    def named(self):
        return contextlib.nullcontext(self.drive)

    def check(self) -> Drive:
        return self.drive

    recheck = check


def the_purge(drive, method="auto", **kw):
    return purge.purge(ByName(drive), method, Progress(quiet=True), **kw)


def commands(state) -> list[list[str]]:
    return [
        call
        for call in fake_erase.read(state)["calls"]
        if call[1] in ("format", "sanitize") or any("--security" in a for a in call)
    ]


@pytest.fixture
def loop(tmp_path):
    """A loop device over LOOP_BYTES of random data, with our exclusive descriptor open as the guard's would be."""
    backing = tmp_path / "disk.img"
    backing.write_bytes(os.urandom(LOOP_BYTES))
    with loop_device(backing) as node:
        held = os.open(node, os.O_RDONLY | os.O_EXCL)
        try:
            yield drive_at(node, "other", os.path.basename(node), LOOP_BYTES)
        finally:
            os.close(held)
