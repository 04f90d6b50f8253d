"""Every holder of host/docs/how/holders.md that the guest's kernel can make: the guard refuses its disk for what
holds it and nothing else, and no disk that is free. Where the kernel has no claim on it, `purge` ends with 3 and leaves
the data as it was."""

import json
from typing import NamedTuple

import pytest

from guest.machine import SSDRIG
from guest.qemu import BOOT, NVME, PATHS, SAS, SATA, TWINS, USB

pytestmark = pytest.mark.slow

BUSYBOX = "/run/guest/busybox"
SERIALS = {
    "sdb": SAS.serial,
    "vda": BOOT.serial,
    "sda": SATA.serial,
    "nvme0n1": NVME.serial,
    "nvme1n1": PATHS.serial,
    "sdc": USB.serial,
}
*QUICK, _, _, FREE = SERIALS  # to purge one of QUICK asks no program, or hdparm alone; nothing holds FREE
SLOW = ("nvme0n1", "nvme1n1")
TARGET = "/sys/kernel/config/target/core"
NVMET = "/sys/kernel/config/nvmet/subsystems/nqn.x"
GADGET = "/sys/kernel/config/usb_gadget/g1"
CLUSTER = "/sys/kernel/config/cluster/held"
REGION = f"{CLUSTER}/heartbeat/0A1B2C3D"
# $D is the disk. `writer SCRIPT` keeps a process that has run SCRIPT; `writers_end` ends it. held is a mount point.
# losetup and unshare by their paths: those of the shell, busybox's, have not these options.
SHELL = """
held=/mnt/held-$D; export held; [ -d $held ] || mkdir -p $held
case $D in nvme*) part=/dev/${D}p1;; *) part=/dev/${D}1;; esac
if [ -e /run/guest/loop-$D ]; then read loop </run/guest/loop-$D; fi
attach() { loop=$(/sbin/losetup --find --show "$@"); echo $loop >/run/guest/loop-$D; }
detach() { /sbin/losetup --detach $loop; waiting "! [ -e /sys/block/${loop#/dev/}/loop ]"; }
small() { /run/guest/busybox mke2fs -F $1 16384 >/dev/null; }
waiting() {
    for i in 1 2 3 4 5 6 7 8 9 9 9 9 9; do eval "$1" && return 0; sleep 0.$i; done
    echo "never: $1" >&2; return 1
}
writer() {
    rm -f /run/guest/written-$D; "$@" >/dev/null 2>&1 &
    echo $! >/run/guest/writer-$D; waiting "[ -e /run/guest/written-$D ]"
}
writers_end() { read writer </run/guest/writer-$D; kill -9 $writer; }
"""


class Holder(NamedTuple):
    name: str
    checks: set[str]  # the refusals that there must be
    make: str
    undo: str
    disk: str = ""  # the only disk that will do; "": any
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()  # further disks that it holds


KEEP = ": >/run/guest/written-$D; exec sleep 600"
MAPPED = (
    "import mmap, os, time; f = os.open('/run/jail-$D', os.O_RDWR); m = mmap.mmap(f, 4096); os.close(f);"
    " open('/run/guest/written-$D', 'w'); time.sleep(600)"
)

HOLDERS = [
    Holder(
        "mount in another mount namespace",
        {"mounted", "busy"},
        f"small /dev/$D; writer /usr/bin/unshare -m sh -c 'mount -t ext4 /dev/$D $held; {KEEP}'",
        "writers_end",
    ),
    Holder(
        "mount of a partition",
        {"mounted", "busy"},
        f"printf 'n\\np\\n1\\n\\n+40M\\nw\\n' | {BUSYBOX} fdisk /dev/$D >/dev/null 2>&1 || true;"
        "waiting '[ -b $part ] || ! blockdev --rereadpt /dev/$D'; waiting '[ -b $part ]';"
        "small $part; mount -t ext4 -o ro $part $held",
        "umount $held",
    ),
    Holder(
        "swap file",
        {"mounted", "busy"},
        "small /dev/$D; mount -t ext4 /dev/$D $held; dd if=/dev/zero of=$held/swap bs=1M count=4 2>/dev/null;"
        "chmod 600 $held/swap; mkswap $held/swap >/dev/null; swapon $held/swap; sync",
        "swapoff $held/swap; umount $held",
    ),
    Holder("swap", {"swap", "busy"}, "mkswap /dev/$D >/dev/null; swapon /dev/$D", "swapoff /dev/$D"),
    Holder("loop device", {"loop"}, "attach /dev/$D", "detach"),
    Holder(
        "loop device on a node of another name",
        {"loop"},
        "mknod /run/jail-$D b $NUMBER; attach /run/jail-$D",
        "detach; rm /run/jail-$D",
    ),
    Holder(
        "mount on a loop device (the disk was destroyed before)",
        {"loop", "mounted"},
        "attach -o 1048576 /dev/$D; small $loop; mount -t ext4 $loop $held; sync",
        "umount $held; detach",
    ),
    Holder(
        "swap on a loop device",
        {"loop", "swap"},
        "attach --sizelimit 32M /dev/$D; mkswap $loop >/dev/null; swapon $loop",
        "swapoff $loop; detach",
    ),
    Holder(
        "device mapper on a loop device",
        {"loop"},
        'attach /dev/$D; dmsetup create held-$D --table "0 65536 linear $loop 0"',
        "dmsetup remove --retry held-$D; detach",
        needs=("dmsetup",),
    ),
    Holder(
        "loop device on a file on a loop device",
        {"loop", "mounted"},
        "attach -o 1048576 /dev/$D; small $loop; mount -t ext4 $loop $held; truncate -s 8M $held/image;"
        f"{BUSYBOX} mke2fs -F $held/image >/dev/null; mkdir -p $held-inner; mount -t ext4 -o loop $held/image"
        " $held-inner; sync",
        "umount $held-inner; waiting 'umount $held'; detach",
    ),
    Holder(
        "device mapper",
        {"holder", "busy"},
        'dmsetup create held-$D --table "0 65536 linear /dev/$D 0"',
        "dmsetup remove --retry held-$D",
        needs=("dmsetup",),
    ),
    Holder(
        "dm-multipath",
        {"holder", "busy"},
        'dmsetup create held-$D --table "0 65536 multipath 0 0 1 1 round-robin 0 1 1 /dev/$D 1"',
        "dmsetup remove --retry held-$D",
        needs=("dmsetup",),
    ),
    Holder(
        "software RAID",
        {"holder", "busy"},
        "mdadm --create /dev/md0 --level=1 --raid-devices=1 --force --run --metadata=1.2 --size=40960 --bitmap=none"
        " /dev/$D </dev/null",
        "mdadm --stop /dev/md0",
        needs=("mdadm",),
    ),
    Holder(
        "bcache, backing device",
        {"holder", "busy"},
        "make-bcache -B /dev/$D; [ -e /sys/block/$D/bcache ] || echo /dev/$D >/sys/fs/bcache/register;"
        "waiting '[ -b /dev/bcache0 ]'",
        "echo 1 >/sys/block/$D/bcache/stop; waiting '[ ! -e /sys/block/$D/bcache ]'",
        needs=("make-bcache",),
    ),
    Holder(
        "bcache, cache device",
        {"holder", "busy"},
        "make-bcache -C --bucket 64k /dev/$D; [ -e /sys/block/$D/bcache ] || echo /dev/$D >/sys/fs/bcache/register;"
        "waiting '[ -e /sys/block/$D/bcache/set ]'",
        "echo 1 >/sys/block/$D/bcache/set/stop; waiting '[ ! -e /sys/block/$D/bcache ]'",
        needs=("make-bcache",),
    ),
    Holder(
        "btrfs, the member that the mount table does not show",
        {"mounted", "holder", "busy"},
        "mkfs.btrfs -q -f -K -d single -m single /dev/nvme0n1 /dev/sda; "
        "mount -t btrfs -o device=/dev/sda,device=/dev/nvme0n1 /dev/nvme0n1 $held; sync",
        "umount $held",
        disk="sda",
        needs=("mkfs.btrfs",),
        also=("nvme0n1",),
    ),
    Holder(
        "XFS log on another disk",
        {"mounted", "busy"},
        "mkfs.xfs -q -f -K --unsupported -d size=64m -l logdev=/dev/$D,size=20m /dev/nvme0n1; "
        "mount -t xfs -o logdev=/dev/$D,nouuid /dev/nvme0n1 $held; sync",
        "umount $held",
        needs=("mkfs.xfs",),
        also=("nvme0n1",),
    ),
    Holder(
        "ext4 journal on another disk",
        {"holder", "busy"},
        "/usr/sbin/mke2fs -q -F -b 4096 -O journal_dev /dev/$D 4096; "
        "/usr/sbin/mke2fs -q -F -b 4096 -t ext4 -J device=/dev/$D /dev/nvme0n1 4096; mount -t ext4 /dev/nvme0n1"
        " $held; sync",
        "umount $held",
        needs=("/usr/sbin/mke2fs",),
        also=("nvme0n1",),
    ),
    Holder(
        "zram writes back to it",
        {"holder", "busy"},
        "echo /dev/$D >/sys/block/zram0/backing_dev; echo 16M >/sys/block/zram0/disksize",
        "echo 1 >/sys/block/zram0/reset",
    ),
    Holder(
        "NVMe target",
        {"export"},
        f"mkdir -p {NVMET}/namespaces/1; printf /dev/$D >{NVMET}/namespaces/1/device_path;"
        f"echo 1 >{NVMET}/namespaces/1/enable",
        f"echo 0 >{NVMET}/namespaces/1/enable; rmdir {NVMET}/namespaces/1; rmdir {NVMET}",
    ),
    Holder(
        "SCSI target (iSCSI), block backstore",
        {"export", "busy"},
        f"mkdir -p {TARGET}/iblock_0/held; printf udev_path=/dev/$D >{TARGET}/iblock_0/held/control;"
        f"printf 1 >{TARGET}/iblock_0/held/enable",
        f"rmdir {TARGET}/iblock_0/held; rmdir {TARGET}/iblock_0",
    ),
    Holder(
        "SCSI target (iSCSI), file backstore",
        {"export"},
        f"mkdir -p {TARGET}/fileio_0/held; printf fd_dev_name=/dev/$D,fd_dev_size=$(blockdev --getsize64 /dev/$D)"
        f" >{TARGET}/fileio_0/held/control; printf 1 >{TARGET}/fileio_0/held/enable",
        f"rmdir {TARGET}/fileio_0/held; rmdir {TARGET}/fileio_0",
    ),
    Holder(
        "USB gadget",
        {"export"},
        f"mkdir -p {GADGET}/functions/mass_storage.0; printf /dev/$D >{GADGET}/functions/mass_storage.0/lun.0/file",
        f"rmdir {GADGET}/functions/mass_storage.0 {GADGET}",
    ),
    Holder(
        "heartbeat of an OCFS2 cluster",
        {"holder"},
        f"{BUSYBOX} ip link set lo up; mkdir {CLUSTER}; mkdir {CLUSTER}/node/me; cd {CLUSTER}/node/me;"
        f"echo 7777 >ipv4_port; echo 127.0.0.1 >ipv4_address; echo 1 >num; echo 1 >local; cd /;"
        f"mkdir {REGION}; echo 512 >{REGION}/block_bytes; echo 2048 >{REGION}/start_block; echo 2 >{REGION}/blocks;"
        f"exec 3</dev/$D; echo 3 >{REGION}/dev",
        f"rmdir {REGION} {CLUSTER}/node/me {CLUSTER}",
    ),
    Holder(
        "crash log of the kernel", {"holder"}, f"{BUSYBOX} insmod $PSTORE blkdev=/dev/$D", f"{BUSYBOX} rmmod pstore_blk"
    ),
    Holder(
        "DRBD",
        {"holder", "busy"},
        "yes yes | drbdmeta --force 0 v08 /dev/$D internal create-md >/dev/null; drbdsetup-84 new-resource held;"
        "drbdsetup-84 new-minor held 0 0; drbdsetup-84 attach 0 /dev/$D /dev/$D internal",
        "drbdsetup-84 detach 0; drbdsetup-84 del-minor 0; drbdsetup-84 del-resource held",
        needs=("drbdsetup-84", "drbdmeta"),
    ),
    Holder("writer", {"writer"}, f"writer sh -c 'exec 3<>/dev/$D; {KEEP}'", "writers_end"),
    Holder(
        "writer under another node name",
        {"writer"},
        f"mknod /run/jail-$D b $NUMBER; writer sh -c 'exec 3<>/run/jail-$D; {KEEP}'",
        "writers_end; rm /run/jail-$D",
    ),
    Holder(
        "writer whose node is gone",
        {"writer"},
        f"mknod /run/jail-$D b $NUMBER; writer sh -c 'exec 3<>/run/jail-$D; rm /run/jail-$D; {KEEP}'",
        "writers_end",
    ),
    Holder(
        "writer in a chroot",
        {"writer"},
        "mkdir -p /run/root-$D/bin /run/root-$D/dev /run/root-$D/run; mknod /run/root-$D/dev/sdz b $NUMBER;"
        f"for name in sh sleep; do cp {BUSYBOX} /run/root-$D/bin/$name; done; mount --bind /run /run/root-$D/run;"
        f"writer chroot /run/root-$D /bin/sh -c 'PATH=/bin; exec 3<>/dev/sdz; {KEEP}'",
        "writers_end; umount /run/root-$D/run; rm -r /run/root-$D",
    ),
    Holder(
        "writer in a PID namespace of its own",
        {"writer"},
        f"mknod /run/jail-$D b $NUMBER; writer /usr/bin/unshare --pid --mount --fork --kill-child sh -c"
        f" 'exec 3<>/run/jail-$D; {KEEP}'",
        "writers_end; rm /run/jail-$D",
    ),
    Holder(
        "mapped for writing, its descriptor closed",
        {"writer"},
        f'mknod /run/jail-$D b $NUMBER; writer {SSDRIG[0]} -S -c "{MAPPED}"',
        "writers_end; rm /run/jail-$D",
    ),
    Holder(
        "SCSI generic",
        {"writer"},
        f"writer sh -c 'exec 3<>/dev/$(ls /sys/block/$D/device/scsi_generic); {KEEP}'",
        "writers_end",
        disk="sdb",
    ),
    Holder("NVMe generic", {"writer"}, f"writer sh -c 'exec 3<>/dev/ng0n1; {KEEP}'", "writers_end", disk="nvme0n1"),
    Holder("NVMe controller", {"writer"}, f"writer sh -c 'exec 3<>/dev/nvme0; {KEEP}'", "writers_end", disk="nvme0n1"),
    Holder(
        "mount of a multipath drive",
        {"mounted", "busy"},
        "small /dev/nvme1n1; mount -t ext4 -o ro /dev/nvme1n1 $held",
        "umount $held",
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


def rounds(holders: list[Holder]) -> list[list[Holder]]:
    """The holders in as few rounds as possible, each with the disk it gets. In a round each has a disk of its own, and
    one disk stays free. One that is purged gets a disk whose purge asks no program, if there is one."""
    out: list[list[Holder]] = []
    for holder in sorted(holders, key=lambda holder: (not holder.disk, not holder.also, "busy" in holder.checks)):
        wanted = (holder.disk,) if holder.disk else QUICK if "busy" not in holder.checks else (*SLOW, *QUICK)
        for one in [*out, []]:
            taken = {disk for other in one for disk in (other.disk, *other.also)}
            disk = next((disk for disk in wanted if disk not in (*taken, *holder.also)), None)
            if disk and not taken & set(holder.also):
                break
        if one not in out:
            out.append(one)
        one.append(holder._replace(disk=disk))
    return out


def test_rounds_hold_each_disk_once_and_leave_one_free():
    planned = rounds(HOLDERS)
    assert sorted(holder.name for one in planned for holder in one) == sorted(holder.name for holder in HOLDERS)
    for one in planned:
        disks = [disk for holder in one for disk in (holder.disk, *holder.also)]
        assert len(set(disks)) == len(disks) and FREE not in disks


@pytest.fixture(scope="module")
def results(machine) -> dict[str, dict]:
    """All holders, in rounds: {name: what hold_each.py says of it}."""
    machine.load_holders()
    programs = machine.built.programs
    environment = {
        **machine.with_programs(),
        "DM_DISABLE_UDEV": "1",
        "PSTORE": str(programs.parent / "modules/pstore_blk.ko"),
    }
    asked = [
        [
            holder._asdict()
            | {"checks": sorted(holder.checks), "make": SHELL + holder.make, "undo": SHELL + holder.undo}
            for holder in one
        ]
        for one in rounds(HOLDERS)
    ]
    # udev would look at each disk after each write to it, which costs the guest more than all else
    machine.run("udevadm", "control", "--stop-exec-queue")
    done = machine.python(
        "from guest import hold_each; hold_each.main()",
        "hold_each",
        stdin=json.dumps({"rounds": asked, "serials": SERIALS}),
        timeout_s=480,
        **environment,
    )
    machine.run("udevadm", "control", "--start-exec-queue")
    assert done.exit_code == 0, (done.stdout[-3000:], done.stderr[-3000:])
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.name)
def test_refused_and_left_as_it_was(results, holder):
    row = results[holder.name]
    if "skip" in row:
        pytest.skip(row["skip"])
    assert "failed" not in row, row["failed"]
    assert holder.checks == row["checks"].keys(), row
    if "busy" not in holder.checks:
        tried = row["purge"]
        assert (tried["exit_code"], tried["intact"]) == (3, True), tried["said"]
        assert all(f"{check}: " in tried["said"] for check in holder.checks), tried["said"]
    assert row["free"] == {}, "a free disk is refused"
    assert all(row["also"].values()), "a further disk of this holder is not refused"


def test_all_disks_are_free_again(guest, results):
    rows = guest.ssdrig("drives", "--json", "--no-smart").json()
    refused = {row["serial"]: row["refusals"] for row in rows if row["refusals"]}
    assert [why["check"] for why in refused.pop(TWINS[0].serial)] == ["twin"]
    assert refused == {} and {NVME.serial, SATA.serial, SAS.serial, USB.serial, BOOT.serial, PATHS.serial} <= {
        row["serial"] for row in rows
    }
