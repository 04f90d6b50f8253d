"""Every holder of host/docs/holders.md that the guest's kernel can make: the guard refuses the disk and no other one.
Where the kernel has no claim on it, `purge` ends with 3 and leaves the data as it was."""

import json
from typing import NamedTuple

import pytest

from guest.machine import BOOT, CLONE, NVME, PATHS, SAS, SATA, SSDRIG, USB

pytestmark = pytest.mark.slow

BUSYBOX = "/run/guest/busybox"
NODES = {"sdb": SAS.serial, "nvme0n1": NVME.serial, "sda": SATA.serial, "nvme1n1": PATHS.serial}
TARGET = "/sys/kernel/config/target/core"
NVMET = "/sys/kernel/config/nvmet/subsystems/nqn.x"
GADGET = "/sys/kernel/config/usb_gadget/g1"
# `writer SCRIPT` keeps a process that has run SCRIPT; `writers_end` ends it
SHELL = """
loop=$(cat /run/guest/loop 2>/dev/null || true)
attach() { loop=$(losetup --find --show "$@"); echo $loop >/run/guest/loop; }
detach() { losetup --detach $loop; for i in $(seq 20); do losetup $loop >/dev/null 2>&1 || return 0; sleep 0.1; done; }
small() { /run/guest/busybox mke2fs -F $1 32768 >/dev/null; mkdir -p /mnt/held; }
waiting() { for i in $(seq 50); do eval "$1" && return 0; sleep 0.1; done; echo "never: $1" >&2; return 1; }
writer() {
    rm -f /run/guest/written; "$@" >/dev/null 2>&1 &
    echo $! >/run/guest/writer; waiting "[ -e /run/guest/written ]"
}
writers_end() { kill -9 $(cat /run/guest/writer); sleep 0.1; }
"""


class Holder(NamedTuple):
    name: str
    checks: set[str]  # the refusals that there must be
    make: str
    undo: str
    disk: str = "sdb"
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # serials of further disks that it holds
    wipe: tuple[str, ...] = ()  # further disks that it writes to


KEEP = "touch /run/guest/written; exec sleep 600"
MAPPED = (
    "import mmap, os, time; f = os.open('/run/jail', os.O_RDWR); m = mmap.mmap(f, 4096); os.close(f);"
    " open('/run/guest/written', 'w'); time.sleep(600)"
)

HOLDERS = [
    Holder(
        "mount in another mount namespace",
        {"mounted", "busy"},
        f"small /dev/sdb; writer unshare -m sh -c 'mount -t ext4 /dev/sdb /mnt/held; {KEEP}'",
        "writers_end",
    ),
    Holder(
        "mount of a partition",
        {"mounted", "busy"},
        f"printf 'n\\np\\n1\\n\\n+40M\\nw\\n' | {BUSYBOX} fdisk /dev/sdb >/dev/null 2>&1 || true;"
        "waiting '[ -b /dev/sdb1 ] || ! blockdev --rereadpt /dev/sdb'; waiting '[ -b /dev/sdb1 ]';"
        "small /dev/sdb1; mount -t ext4 -o ro /dev/sdb1 /mnt/held",
        "umount /mnt/held; dd if=/dev/zero of=/dev/sdb bs=64k count=1 2>/dev/null; blockdev --rereadpt /dev/sdb",
    ),
    Holder(
        "swap file",
        {"mounted", "busy"},
        "small /dev/sdb; mount -t ext4 /dev/sdb /mnt/held; dd if=/dev/zero of=/mnt/held/swap bs=1M count=4 2>/dev/null;"
        "chmod 600 /mnt/held/swap; mkswap /mnt/held/swap >/dev/null; swapon /mnt/held/swap; sync",
        "swapoff /mnt/held/swap; umount /mnt/held",
    ),
    Holder("swap", {"swap", "busy"}, "mkswap /dev/sdb >/dev/null; swapon /dev/sdb", "swapoff /dev/sdb"),
    Holder("loop device", {"loop"}, "attach /dev/sdb", "detach"),
    Holder(
        "loop device on a node of another name",
        {"loop"},
        "mknod /run/jail b 8 16; attach /run/jail",
        "detach; rm /run/jail",
    ),
    Holder(
        "mount on a loop device (the disk was destroyed before)",
        {"loop", "mounted"},
        "attach -o 1048576 /dev/sdb; small $loop; mount -t ext4 $loop /mnt/held; sync",
        "umount /mnt/held; detach; dd if=/dev/zero of=/dev/sdb bs=64k count=32 2>/dev/null",
    ),
    Holder(
        "swap on a loop device",
        {"loop", "swap"},
        "attach --sizelimit 32M /dev/sdb; mkswap $loop >/dev/null; swapon $loop",
        "swapoff $loop; detach",
    ),
    Holder(
        "device mapper on a loop device",
        {"loop"},
        'attach /dev/sdb; dmsetup create held --table "0 65536 linear $loop 0"',
        "dmsetup remove --retry held; detach",
        needs=("dmsetup",),
    ),
    Holder(
        "loop device on a file on a loop device",
        {"loop", "mounted"},
        "attach -o 1048576 /dev/sdb; small $loop; mount -t ext4 $loop /mnt/held; truncate -s 8M /mnt/held/image;"
        f"{BUSYBOX} mke2fs -F /mnt/held/image >/dev/null; mkdir -p /mnt/inner; mount -t ext4 -o loop /mnt/held/image"
        " /mnt/inner; sync",
        "umount /mnt/inner; umount /mnt/held; detach; dd if=/dev/zero of=/dev/sdb bs=64k count=32 2>/dev/null",
    ),
    Holder(
        "device mapper",
        {"holder", "busy"},
        "dmsetup create held --table '0 65536 linear /dev/sdb 0'",
        "dmsetup remove --retry held",
        needs=("dmsetup",),
    ),
    Holder(
        "dm-multipath",
        {"holder", "busy"},
        "dmsetup create held --table '0 65536 multipath 0 0 1 1 round-robin 0 1 1 /dev/sdb 1'",
        "dmsetup remove --retry held",
        needs=("dmsetup",),
    ),
    Holder(
        "software RAID",
        {"holder", "busy"},
        "mdadm --create /dev/md0 --level=1 --raid-devices=1 --force --run --metadata=1.2 --size=40960 --bitmap=none"
        " /dev/sdb </dev/null",
        "mdadm --stop /dev/md0; mdadm --zero-superblock /dev/sdb",
        needs=("mdadm",),
    ),
    Holder(
        "bcache, backing device",
        {"holder", "busy"},
        "make-bcache -B /dev/sdb; [ -e /sys/block/sdb/bcache ] || echo /dev/sdb >/sys/fs/bcache/register;"
        "waiting '[ -b /dev/bcache0 ]'",
        "echo 1 >/sys/block/sdb/bcache/stop; waiting '[ ! -e /sys/block/sdb/bcache ]'",
        needs=("make-bcache",),
    ),
    Holder(
        "bcache, cache device",
        {"holder", "busy"},
        "make-bcache -C --bucket 64k /dev/sdb; [ -e /sys/block/sdb/bcache ] || echo /dev/sdb >/sys/fs/bcache/register;"
        "waiting '[ -e /sys/block/sdb/bcache/set ]'",
        "echo 1 >/sys/block/sdb/bcache/set/stop; waiting '[ ! -e /sys/block/sdb/bcache ]'",
        needs=("make-bcache",),
    ),
    Holder(
        "btrfs, the member that the mount table does not show",
        {"mounted", "holder", "busy"},
        "mkfs.btrfs -q -f -K -d single -m single /dev/nvme0n1 /dev/sda; mkdir -p /mnt/held;"
        "mount -t btrfs -o device=/dev/sda,device=/dev/nvme0n1 /dev/nvme0n1 /mnt/held; sync",
        "umount /mnt/held; dd if=/dev/zero of=/dev/sda bs=1M count=66 2>/dev/null;"
        "dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=66 2>/dev/null",
        disk="sda",
        needs=("mkfs.btrfs",),
        also=(NVME.serial,),
        wipe=("nvme0n1",),
    ),
    Holder(
        "XFS log on another disk",
        {"mounted", "busy"},
        "mkfs.xfs -q -f -K --unsupported -d size=64m -l logdev=/dev/sdb,size=20m /dev/nvme0n1; mkdir -p /mnt/held;"
        "mount -t xfs -o logdev=/dev/sdb,nouuid /dev/nvme0n1 /mnt/held; sync",
        "umount /mnt/held",
        needs=("mkfs.xfs",),
        also=(NVME.serial,),
        wipe=("nvme0n1",),
    ),
    Holder(
        "ext4 journal on another disk",
        {"holder", "busy"},
        "/usr/sbin/mke2fs -q -F -b 4096 -O journal_dev /dev/sdb 8192; mkdir -p /mnt/held;"
        "/usr/sbin/mke2fs -q -F -b 4096 -t ext4 -J device=/dev/sdb /dev/nvme0n1 8192; mount -t ext4 /dev/nvme0n1"
        " /mnt/held; sync",
        "umount /mnt/held",
        needs=("/usr/sbin/mke2fs",),
        also=(NVME.serial,),
        wipe=("nvme0n1",),
    ),
    Holder(
        "zram writes back to it",
        {"holder", "busy"},
        "echo /dev/sdb >/sys/block/zram0/backing_dev; echo 16M >/sys/block/zram0/disksize",
        "echo 1 >/sys/block/zram0/reset",
    ),
    Holder(
        "NVMe target",
        {"export"},
        f"mkdir -p {NVMET}/namespaces/1; printf /dev/sdb >{NVMET}/namespaces/1/device_path;"
        f"echo 1 >{NVMET}/namespaces/1/enable",
        f"echo 0 >{NVMET}/namespaces/1/enable; rmdir {NVMET}/namespaces/1; rmdir {NVMET}",
    ),
    Holder(
        "SCSI target (iSCSI), block backstore",
        {"export", "busy"},
        f"mkdir -p {TARGET}/iblock_0/held; printf udev_path=/dev/sdb >{TARGET}/iblock_0/held/control;"
        f"printf 1 >{TARGET}/iblock_0/held/enable",
        f"rmdir {TARGET}/iblock_0/held; rmdir {TARGET}/iblock_0",
    ),
    Holder(
        "SCSI target (iSCSI), file backstore",
        {"export"},
        f"mkdir -p {TARGET}/fileio_0/held; printf fd_dev_name=/dev/sdb,fd_dev_size={SAS.size_bytes}"
        f" >{TARGET}/fileio_0/held/control; printf 1 >{TARGET}/fileio_0/held/enable",
        f"rmdir {TARGET}/fileio_0/held; rmdir {TARGET}/fileio_0",
    ),
    Holder(
        "USB gadget",
        {"export"},
        f"mkdir -p {GADGET}/functions/mass_storage.0; printf /dev/sdb >{GADGET}/functions/mass_storage.0/lun.0/file",
        f"rmdir {GADGET}/functions/mass_storage.0 {GADGET}",
    ),
    Holder(
        "crash log of the kernel",
        {"holder"},
        f"{BUSYBOX} insmod $PSTORE blkdev=/dev/sdb",
        f"{BUSYBOX} rmmod pstore_blk",
    ),
    Holder(
        "DRBD",
        {"holder", "busy"},
        "yes yes | drbdmeta --force 0 v08 /dev/sdb internal create-md >/dev/null; drbdsetup-84 new-resource held;"
        "drbdsetup-84 new-minor held 0 0; drbdsetup-84 attach 0 /dev/sdb /dev/sdb internal",
        "drbdsetup-84 detach 0; drbdsetup-84 del-minor 0; drbdsetup-84 del-resource held;"
        f"dd if=/dev/zero of=/dev/sdb bs=1M seek={SAS.size_bytes // (1 << 20) - 1} count=1 2>/dev/null",
        needs=("drbdsetup-84", "drbdmeta"),
    ),
    Holder("writer", {"writer"}, f"writer sh -c 'exec 3<>/dev/sdb; {KEEP}'", "writers_end"),
    Holder(
        "writer under another node name",
        {"writer"},
        f"mknod /run/jail b 8 16; writer sh -c 'exec 3<>/run/jail; {KEEP}'",
        "writers_end; rm /run/jail",
    ),
    Holder(
        "writer whose node is gone",
        {"writer"},
        f"mknod /run/jail b 8 16; writer sh -c 'exec 3<>/run/jail; rm /run/jail; {KEEP}'",
        "writers_end",
    ),
    Holder(
        "writer in a chroot",
        {"writer"},
        "mkdir -p /run/root/bin /run/root/dev /run/root/run; mknod /run/root/dev/sdz b 8 16;"
        f"for name in sh touch sleep; do cp {BUSYBOX} /run/root/bin/$name; done; mount --bind /run /run/root/run;"
        f"writer chroot /run/root /bin/sh -c 'PATH=/bin; exec 3<>/dev/sdz; {KEEP}'",
        "writers_end; umount /run/root/run; rm -r /run/root",
    ),
    Holder(
        "writer in a PID namespace of its own",
        {"writer"},
        f"mknod /run/jail b 8 16; writer unshare --pid --mount --fork --kill-child sh -c 'exec 3<>/run/jail; {KEEP}'",
        "writers_end; rm /run/jail",
    ),
    Holder(
        "mapped for writing, its descriptor closed",
        {"writer"},
        f'mknod /run/jail b 8 16; writer {SSDRIG[0]} -S -c "{MAPPED}"',
        "writers_end; rm /run/jail",
    ),
    Holder("SCSI generic", {"writer"}, f"writer sh -c 'exec 3<>$(ls -d /dev/sg1); {KEEP}'", "writers_end"),
    Holder("NVMe generic", {"writer"}, f"writer sh -c 'exec 3<>/dev/ng0n1; {KEEP}'", "writers_end", disk="nvme0n1"),
    Holder("NVMe controller", {"writer"}, f"writer sh -c 'exec 3<>/dev/nvme0; {KEEP}'", "writers_end", disk="nvme0n1"),
    Holder(
        "mount of a multipath drive",
        {"mounted", "busy"},
        "small /dev/nvme1n1; mount -t ext4 -o ro /dev/nvme1n1 /mnt/held",
        "umount /mnt/held",
        disk="nvme1n1",
    ),
    Holder(
        "controller of a multipath drive",
        {"writer"},
        f"writer sh -c 'exec 3<>/dev/nvme1; {KEEP}'",
        "writers_end",
        disk="nvme1n1",
    ),
]


@pytest.fixture(scope="module")
def results(machine) -> dict[str, dict]:
    """All holders made one after the other: {name: what hold_each.py says of it}."""
    machine.load_holders()
    programs = machine.built.programs
    environment = {
        "PATH": ":".join(
            [*(f"{programs}/{folder}" for folder in ("sbin", "bin", "usr/sbin", "usr/bin", "lib/drbd", "usr/lib/drbd"))]
            + ["/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/guest"]
        ),
        "LD_LIBRARY_PATH": f"{programs}/lib/x86_64-linux-gnu:{programs}/usr/lib/x86_64-linux-gnu",
        "PYTHONPATH": f"{CLONE}/host",
        "DM_DISABLE_UDEV": "1",
        "PSTORE": str(programs.parent / "modules/pstore_blk.ko"),
    }
    asked = [
        holder._asdict()
        | {"serial": NODES[holder.disk], "checks": sorted(holder.checks)}
        | {"make": SHELL + holder.make, "undo": SHELL + holder.undo}
        for holder in HOLDERS
    ]
    # udev would look at each disk after each write to it, which costs the guest more than all else
    machine.run("udevadm", "control", "--stop-exec-queue")
    done = machine.run(
        *SSDRIG[:2], str(CLONE / "tests/guest/hold_each.py"), stdin=json.dumps(asked), timeout_s=480, **environment
    )
    machine.run("udevadm", "control", "--start-exec-queue")
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert done.exit_code == 0, (done.stdout[-3000:], done.stderr[-3000:])
    return rows


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.name)
def test_refused_and_left_as_it_was(results, holder):
    row = results[holder.name]
    if "skip" in row:
        pytest.skip(row["skip"])
    assert "failed" not in row, row["failed"]
    assert holder.checks <= row["checks"].keys(), row
    if "busy" not in holder.checks:
        tried = row["purge"]
        assert (tried["exit_code"], tried["intact"]) == (3, True), tried["said"]
        assert all(f"{check}: " in tried["said"] for check in holder.checks), tried["said"]
    assert row["others"] == {}, "a free disk is refused"
    assert all(row["also"].values()), "a further disk of this holder is not refused"


def test_all_disks_are_free_again(guest, results):
    rows = guest.ssdrig("drives", "--json", "--no-smart").json()
    refused = {row["serial"]: row["refusals"] for row in rows if row["refusals"]}
    assert refused == {} and {NVME.serial, SATA.serial, SAS.serial, USB.serial, BOOT.serial, PATHS.serial} <= {
        row["serial"] for row in rows
    }
