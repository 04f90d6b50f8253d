"""I/O after a drive was away, on real kernels: whatever has its name by then, no other disk has a byte changed. That is
looked at from outside of the guest, in the files behind its disks."""

import contextlib
import hashlib
import time

import pytest

from guest.qemu import NVME, SAS, SATA, Disk

pytestmark = pytest.mark.slow

STRANGER = Disk("stranger", "STRANGER99999", NVME.size_bytes, "nvme,bus=slot3,serial={serial},drive={id}-file,id={id}")
START = "import sys; from guest import steps_on_drive; steps_on_drive.main(*sys.argv)"
WRITERS = ("fill", "replay", "open", "write", "flush", "trim", "fill", "purge")  # each has something to do
PHOTOS = b"FAMILY PHOTOS of someone else\n"


def digest(guest, disk) -> str:
    guest.do("sync")
    return hashlib.sha256((guest.folder / disk.id).read_bytes()).hexdigest()


@contextlib.contextmanager
def held(guest, serial: str, method: str):
    """The bench of a drive in the guest: yields tell(step) -> its answer."""
    guest.do("fifos")
    guest.start_python("steps", START, serial, method)
    try:
        assert guest.do("tell", "").startswith("ok /dev/")
        yield lambda line: guest.do("tell", line, timeout_s=300).rstrip("\n")
    finally:
        guest.do("put", "/run/guest/tell", "end\n", timeout_s=30)
        done = guest.ended("steps")
        assert done.exit_code == 0, str(done)


@pytest.fixture
def stranger(guest):
    """A disk of somebody else's that can be put in; its file is full."""
    content = (PHOTOS * (STRANGER.size_bytes // len(PHOTOS) + 1))[: STRANGER.size_bytes]
    (guest.folder / STRANGER.id).write_bytes(content)
    file = {"driver": "file", "filename": str(guest.folder / STRANGER.id)}
    guest.qmp("blockdev-add", driver="raw", file=file, discard="unmap", **{"node-name": f"{STRANGER.id}-file"})
    plugged = []

    def plug() -> None:
        guest.plug(STRANGER)
        plugged.append(STRANGER)
        guest.do("wait_for", "/sys/block/nvme*/device/serial", STRANGER.serial)

    yield plug
    for disk in plugged:
        guest.unplug(disk)
    guest.qmp("blockdev-del", **{"node-name": f"{STRANGER.id}-file"})
    (guest.folder / STRANGER.id).unlink()


@pytest.fixture
def back_in_place(guest):
    """NVME is in its slot again at the end, with its name."""
    yield
    with contextlib.suppress(AssertionError):
        guest.unplug(NVME)
    guest.plug(NVME)
    guest.do("wait_for", "/dev/nvme0n1")


def came_back(tell) -> None:
    """As a campaign waits: the first look may have the kernel drop the drive, the next ones find it anew."""
    until = time.monotonic() + 60
    while (answer := tell("back")) != "ok None":
        assert answer.startswith(("ExchangedDrive", "UnsafeTarget")) and time.monotonic() < until, answer
        time.sleep(0.2)


def name_of(guest, serial: str) -> str:
    return guest.do("wait_for", "/sys/block/nvme*/device/serial", serial).split("/")[3]


def test_every_step_after_a_cut_leaves_the_stranger_that_has_the_drives_name(guest, needs, back_in_place, request):
    """D1: the drive moved, and another one has its name."""
    needs("fio", "nvme")
    with held(guest, NVME.serial, "format") as tell:
        assert tell("away") == "ok None"
        guest.unplug(NVME)
        plug = request.getfixturevalue("stranger")  # put out before NVME gets its name back
        plug()
        before = digest(guest, STRANGER)
        assert name_of(guest, STRANGER.serial) == "nvme0n1"
        for step in ("fill", "write", "trim", "flush", "open", "replay", "purge", "check", "target"):
            assert not tell(step).startswith("ok"), step
        assert digest(guest, STRANGER) == before
        guest.plug(NVME)
        assert name_of(guest, NVME.serial) != "nvme0n1"
        came_back(tell)
        assert digest(guest, STRANGER) == before
        moved = name_of(guest, NVME.serial)
        assert moved != "nvme0n1" and tell("check") == f"ok /dev/{moved}"
        for step in WRITERS:
            ours = digest(guest, NVME)
            assert tell(step).startswith("ok"), step
            assert digest(guest, STRANGER) == before, step
            assert step in ("open", "flush") or digest(guest, NVME) != ours, step
        assert tell("write") == "ok None" and tell("read") == "ok [b'Z', b'\\xa5']"
        assert digest(guest, STRANGER) == before
        guest.unplug(STRANGER)
        guest.plug(STRANGER)
        assert tell("check") == f"ok /dev/{moved}"


def test_drive_that_is_gone_between_check_and_step_is_not_looked_for_by_its_name(guest, needs, back_in_place, request):
    needs("fio")
    with held(guest, NVME.serial, "format") as tell:
        assert tell("check").startswith("ok")
        guest.unplug(NVME)
        plug = request.getfixturevalue("stranger")
        plug()
        before = digest(guest, STRANGER)
        for step in ("target", *WRITERS):
            assert not tell(step).startswith("ok"), step
        assert digest(guest, STRANGER) == before
        assert tell("away") == "ok None"


def test_regular_file_at_the_name_of_a_moved_drive_is_refused_and_not_filled(guest, needs, back_in_place):
    """D4. Such a file is what fio or dd leaves in /dev; the kernel does not replace it when the drive is back."""
    needs("fio")
    with held(guest, NVME.serial, "format") as tell:
        tell("away")
        guest.unplug(NVME)
        guest.sh(f"truncate -s {NVME.size_bytes} /dev/nvme0n1")
        try:
            for step in ("back", "check", *WRITERS):
                assert not tell(step).startswith("ok"), step
            guest.plug(NVME)
            guest.do("wait_for", "/sys/block/nvme*/device/serial", NVME.serial)
            refused = tell("back")
            assert refused.startswith("UnsafeTarget") and "not a block device" in refused, refused
            for step in ("check", *WRITERS):
                assert not tell(step).startswith("ok"), step
            assert guest.sh("stat -c %b /dev/nvme0n1").strip() == "0"  # nothing was written to it
        finally:
            guest.sh("rm -f /dev/nvme0n1")
        guest.unplug(NVME)
        guest.plug(NVME)
        guest.do("wait_for", "/dev/nvme0n1")
        assert tell("back") == "ok None" and tell("fill").startswith("ok")


def test_steps_after_sata_and_sas_disks_swapped_names_reach_the_named_one(guest, needs):
    needs("fio")
    [sata] = guest.do("matches", "/sys/class/scsi_device/*/device/block/sda")
    [sas] = guest.do("matches", "/sys/class/scsi_device/*/device/block/sdb")
    sata, sas = sata.split("/")[4], sas.split("/")[4]

    def gone(address: str) -> None:
        guest.do("put", f"/sys/class/scsi_device/{address}/device/delete", "1")

    def found_again(address: str, node: str) -> None:
        guest.do("put", f"/sys/class/scsi_host/host{address.split(':')[0]}/scan", "- - -")
        guest.do("wait_for", node)

    try:
        with held(guest, SAS.serial, "zero") as tell:
            assert tell("check") == "ok /dev/sdb"
            tell("away")
            gone(sata)
            gone(sas)
            found_again(sas, "/dev/sda")
            found_again(sata, "/dev/sdb")
            before = digest(guest, SATA)
            assert tell("back") == "ok None" and tell("check") == "ok /dev/sda"
            for step in ("fill", "replay", "open", "write", "flush", "purge"):
                ours = digest(guest, SAS)
                assert tell(step).startswith("ok"), step
                assert digest(guest, SATA) == before, step
                assert step in ("open", "flush") or digest(guest, SAS) != ours, step
    finally:
        gone(sata)
        gone(sas)
        found_again(sata, "/dev/sda")
        found_again(sas, "/dev/sdb")


def test_stranger_who_opened_the_drive_since_is_seen_before_the_next_step(guest):
    with held(guest, SAS.serial, "zero") as tell:
        assert tell("check") == "ok /dev/sdb"
        guest.start("writer", "sh", "-c", "exec sleep 300 1<>/dev/sdb")
        try:
            guest.until("ls -l /proc/[0-9]*/fd/1 2>/dev/null | grep -q /dev/sdb")
            refused = tell("check")
            assert refused.startswith("UnsafeTarget") and "writer: " in refused, refused
        finally:
            guest.sh('for p in /proc/[0-9]*; do [ "$(readlink $p/fd/1)" = /dev/sdb ] && kill ${p#/proc/}; done; true')
            guest.ended("writer")
        assert tell("check") == "ok /dev/sdb"
