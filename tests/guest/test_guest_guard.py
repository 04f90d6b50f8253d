"""The guard on real block devices: what is in use is refused, whatever name it is given by, and stays as it was."""

import contextlib
import hashlib

import pytest

from guest.machine import COMMAND
from guest.qemu import BOOT, FDP, FIXED, NVME, PATHS, SAS, SATA, SPACES, TWINS, USB, ZONED

pytestmark = pytest.mark.slow

BUSYBOX = "/run/guest/busybox"
FS_KIB = 16 << 10  # to make a larger file system costs the guest a second


def refusals(guest, root: str = "/") -> dict[str, set[str]]:
    """{serial: checks that refuse it} from `ssdrig drives`, started with this folder as its root."""
    enter = f"import os; os.chroot({root!r}); os.chdir('/'); "
    done = guest.python(enter + COMMAND, "ssdrig", "drives", "--json", "--no-smart")
    assert done.exit_code == 0, str(done)
    rows = done.json()
    assert all(row["safe"] is not bool(row["refusals"]) for row in rows)
    return {row["serial"]: {refusal["check"] for refusal in row["refusals"]} for row in rows}


def purges(guest, *words: tuple[str, str]) -> tuple[list[int], str]:
    """`ssdrig purge DRIVE --destroy-data SERIAL` for each (DRIVE, SERIAL), all started at once ("": without the flag):
    exit codes and all that they said."""
    for n, (drive, serial) in enumerate(words):
        leave = ("--destroy-data", serial) if serial else ()
        guest.start_python(f"purge{n}", COMMAND, "ssdrig", "purge", drive, *leave)
    ended = [guest.ended(f"purge{n}") for n in range(len(words))]
    return [one.exit_code for one in ended], "".join(one.stdout + one.stderr for one in ended)


def content(guest, *disks) -> str:
    """A digest of what the disks hold, read from outside of the guest."""
    guest.do("sync")
    digest = hashlib.sha256()
    for disk in disks:
        digest.update((guest.folder / disk.id).read_bytes())
    return digest.hexdigest()


def test_disks_are_known_by_serial_and_interface(guest, needs):
    needs("smartctl")
    done = guest.ssdrig("drives", "--json", timeout_s=600)
    assert done.exit_code == 0, str(done)
    rows = {row["serial"]: row for row in done.json()}
    assert {
        serial: (row["node"], row["interface"], row["capacity_bytes"])
        for serial, row in rows.items()
        if serial not in (FDP.serial, PATHS.serial, FIXED.serial, TWINS[0].serial, SPACES[0].serial, ZONED.serial)
    } == {
        NVME.serial: ("/dev/nvme0n1", "NVMe", NVME.size_bytes),
        SATA.serial: ("/dev/sda", "SATA", SATA.size_bytes),
        SAS.serial: ("/dev/sdb", "SAS", SAS.size_bytes),
        USB.serial: ("/dev/sdc", "USB", USB.size_bytes),
        BOOT.serial: ("/dev/vda", "virtio", BOOT.size_bytes),
    }
    fixed = rows[FIXED.serial]  # its number depends on whether QEMU has FDP
    assert (fixed["interface"], fixed["capacity_bytes"]) == ("NVMe", FIXED.size_bytes)
    assert rows[SATA.serial]["model"] == "GUEST-SATA-DISK" and rows[SATA.serial]["firmware"] == "1.5"
    assert rows[SAS.serial]["wwn"] == "naa.5000c50000000002"
    assert rows[SATA.serial]["link"] == "SATA 1.5 Gb/s" and rows[NVME.serial]["link"].startswith("PCIe")
    assert (
        rows[NVME.serial]["health_ok"] is True and rows[NVME.serial]["temperature_C"] == 50
    )  # what QEMU's SMART log says
    assert rows[SATA.serial]["health_ok"] is True and rows[SATA.serial]["percentage_used"] is None
    assert all(row["safe"] is (row["serial"] != TWINS[0].serial) for row in rows.values())
    assert not any(row["simulated"] for row in rows.values())


def test_disks_in_use_are_refused_and_stay_as_they_were(guest):
    guest.do("partition", "/dev/sda", SATA.size_bytes)
    guest.do("partition", "/dev/vda", BOOT.size_bytes)
    guest.sh(rf"""
mkdir -p /mnt/whole /mnt/part
{BUSYBOX} mke2fs -F /dev/nvme0n1 {FS_KIB} >/dev/null
mount -t ext4 -o ro /dev/nvme0n1 /mnt/whole
{BUSYBOX} mke2fs -F /dev/sda1 {FS_KIB} >/dev/null
mount -t ext4 -o ro /dev/sda1 /mnt/part
mkswap /dev/sdb >/dev/null
swapon /dev/sdb
# a system that runs from a partition of the fifth disk
{BUSYBOX} mke2fs -F /dev/vda1 {FS_KIB} >/dev/null
mkdir -p /mnt/boot
mount -t ext4 /dev/vda1 /mnt/boot
""")
    guest.do("root_at", "/mnt/boot")
    disks = (NVME, SATA, SAS, BOOT)
    before = content(guest, *disks)
    refusals_ = refusals(guest)
    assert {"mounted", "busy", "signature"} <= refusals_[NVME.serial]
    assert {"mounted", "busy", "signature"} <= refusals_[SATA.serial]
    assert {"swap", "busy", "signature"} <= refusals_[SAS.serial]
    assert {"mounted", "busy"} <= refusals_[BOOT.serial] and "boot" not in refusals_[BOOT.serial]
    assert refusals_[USB.serial] == set()
    assert "boot" in refusals(guest, "/mnt/boot")[BOOT.serial]
    link = guest.do("matches", "/dev/disk/by-id/nvme-*NVMEGUEST0001")[:1]  # none where there is no udev
    codes, _ = purges(
        guest, (SATA.serial, SATA.serial), (BOOT.serial, BOOT.serial), ((link or [NVME.serial])[0], NVME.serial)
    )
    assert codes == [3, 3, 3]
    assert content(guest, *disks) == before


def test_a_volume_on_a_disk_refuses_it(guest, needs):
    needs("dmsetup")
    guest.sh(f"DM_DISABLE_UDEV=1 dmsetup create ssdrigtest --table '0 {SATA.size_bytes // 1024} linear /dev/sda 0'")
    assert {"holder", "busy"} <= refusals(guest)[SATA.serial]
    codes, words = purges(guest, (SATA.serial, SATA.serial))
    assert codes == [3] and "ssdrigtest" in words


def test_content_and_names_that_do_not_fit(guest):
    guest.sh(f"{BUSYBOX} mke2fs -F /dev/nvme0n1 {FS_KIB} >/dev/null")
    before = content(guest, NVME, SATA)
    assert refusals(guest)[NVME.serial] == {"signature"}
    codes, _ = purges(
        guest,
        (NVME.serial, ""),  # nobody has said that its data may go
        (NVME.serial, SATA.serial),
        ("/dev/nvme0n1", NVME.serial),  # no name for a drive: it moves
    )
    assert codes == [3, 3, 2]
    assert content(guest, NVME, SATA) == before


# Holds a drive and does what the lines of a fifo say; each answer is a line of another.
HOLDER = f"""
import os
from ssdrig.drive import block, guard, inventory
from ssdrig.base.errors import UnsafeTarget
drive = inventory.find({NVME.serial!r})
def fifo(name, mode):  # O_RDWR: it neither waits for another process to open it nor ends with one
    return os.fdopen(os.open("/run/guest/" + name, os.O_RDWR), mode, buffering=1)
with fifo("held", "w") as out, guard.hold(drive, {NVME.serial!r}) as held:
    print("held", drive.node, os.getpid(), file=out)
    for line in fifo("tell", "r"):
        try:
            if line == "end\\n":
                break
            if line == "mark\\n":
                at = [0, 8 << 20, 64 << 20]
                held.mark(dict(zip(at, block.read(held.path, at))))
                print("marked", file=out)
                continue
            if line == "write\\n":
                held.recheck(follow=True)
                held.prove()
                block.write(held.path, {{16 << 20: b"X" * 4096}})
                print("wrote", file=out)
                continue
            let_go = line == "let go\\n" and held.let_go() is None
            print("let go" if let_go else "same " + held.recheck().node, file=out)
        except UnsafeTarget as error:
            print("UnsafeTarget" if line == "check\\n" else type(error).__name__, error, file=out)
"""


@contextlib.contextmanager
def holder(guest):
    """A process of the guest that holds the NVMe disk: yields tell(line) -> its answer, and what it said first."""
    guest.do("fifos")
    guest.start_python("holder", HOLDER, "holder")
    try:
        yield lambda line: guest.do("tell", line), guest.do("tell", "")
    finally:
        guest.do("put", "/run/guest/tell", "end\n", timeout_s=30)
        done = guest.ended("holder")
        assert done.exit_code == 0, str(done)


def test_a_second_run_and_a_drive_that_was_exchanged(guest):
    other = NVME._replace(serial="NVMEGUEST9999")
    with holder(guest) as (tell, line):
        assert line.split()[:2] == ["held", "/dev/nvme0n1"]
        codes, words = purges(guest, (NVME.serial, NVME.serial))
        assert codes == [3]
        assert f"process {line.split()[2]}, is at work on this drive" in words
        assert tell("check") == "same /dev/nvme0n1\n"

        assert tell("let go") == "let go\n"  # as before the power is cut
        guest.unplug(NVME)
        guest.plug(NVME)
        guest.do("wait_for", "/dev/nvme0n1")
        assert tell("check") == "same /dev/nvme0n1\n"

        assert tell("let go") == "let go\n"
        guest.unplug(NVME)
        guest.plug(other)
        guest.do("wait_for", "/dev/nvme0n1")
        exchanged = tell("check")
        assert exchanged.startswith("UnsafeTarget") and "NVMEGUEST9999" in exchanged

        guest.unplug(NVME)
        assert "seen nothing" in tell("check")
        guest.plug(NVME)
        guest.do("wait_for", "/dev/nvme0n1")
        assert tell("check") == "same /dev/nvme0n1\n"
        guest.unplug(NVME)  # without letting go: the kernel does not give the old name again
        guest.plug(NVME)
        guest.do("wait_for", "/dev/nvme0n2")
        moved = tell("check")
        assert moved.startswith("UnsafeTarget") and "this drive is at /dev/nvme0n2 now" in moved
    guest.unplug(NVME)
    guest.plug(NVME)
    guest.do("wait_for", "/dev/nvme0n1")
