"""Every way to hold a disk that host/docs/how/holders.md lists, on the files in which the kernel shows it. What a
kernel can really make is shown in tests/guest/test_guest_holders.py."""

import os
import re
from pathlib import Path

import pytest
from disktree import own_files
from guarding import SERIAL, against, tree  # noqa: F401  fixture

from ssdrig.drive import uses

CONFIG = "sys/kernel/config"


def loop(tree, backing, name="loop0"):
    tree.volume(name)
    tree.write(f"sys/devices/virtual/block/{name}/loop/backing_file", backing + "\n")
    return name


def free(tree, *names):
    assert {name: against(tree, name) for name in names} == {name: {} for name in names}, "another disk is refused"


# --- loop devices


def test_an_attached_loop_device_refuses_its_disk(tree):
    loop(tree, f"/dev/{tree.partition('sda', 1)}")
    assert against(tree, serial=SERIAL) == {"loop": "loop0 is attached to sda1"}
    free(tree, "nvme0n1")


def test_a_loop_device_on_a_node_of_another_name(tree):
    tree.node("dev/rootdisk", "sda")
    loop(tree, "/dev/rootdisk")
    assert against(tree) == {"loop": "loop0 is attached to sda"}


def test_a_mount_on_a_loop_device_is_a_mount_on_the_disk_below(tree):
    tree.mount(loop(tree, "/dev/sda"), "/mnt/l")
    assert against(tree)["mounted"] == "loop0 on /mnt/l"


def test_a_volume_and_swap_on_a_loop_device(tree):
    loop(tree, "/dev/sda")
    tree.volume("dm-0", "loop0")
    tree.swap("/dev/dm-0")
    assert against(tree)["swap"] == "swap on dm-0"


def test_a_loop_device_on_a_file_is_followed_to_the_disk_that_holds_the_file(tree):
    """A live system: its root is an image on a USB disk."""
    tree.mount("nvme0n1", "/run/medium")
    tree.mount("sda", "/run/medium2")
    tree.mount(loop(tree, "/run/medium/live/root.img"), "/")
    assert against(tree, "nvme0n1") == {
        "mounted": "loop0 on /, nvme0n1 on /run/medium",
        "boot": "this system runs from it (/)",
    }
    assert against(tree) == {"mounted": "sda on /run/medium2"}


def test_a_loop_device_on_a_node_that_was_deleted_and_made_again(tree):
    loop(tree, "/dev/sda (deleted)")
    assert against(tree) == {"loop": "loop0 is attached to sda"}


def test_a_loop_device_on_a_deleted_file_and_one_without_a_path_are_no_crash(tree):
    loop(tree, "/gone/x (deleted)")
    loop(tree, "", "loop1")
    tree.mount("loop0", "/mnt")
    free(tree, "sda", "nvme0n1")


# --- other mount namespaces


def test_a_mount_in_the_namespace_of_a_container(tree):
    tree.write("proc/77/comm", "nspawn\n")
    tree.mount("sda", "/", process="77")
    assert against(tree) == {"mounted": "sda on / in the mount namespace of process 77 (nspawn)"}, "no system disk"


def view(tree, process, root="tmp"):
    """Put a process into a mount namespace, the same for all, with a folder of the tree as its root."""
    (tree.root / own_files(process) / "ns").mkdir()
    (tree.root / own_files(process) / "ns/mnt").symlink_to("mnt:[4026532000]")
    tree.link(f"{own_files(process)}/root", root)


def test_each_namespace_is_read_once(tree):
    for process in ("77", "78"):
        tree.mount("sda", f"/mnt/{process}", process=process)
        view(tree, process)
    assert against(tree) == {"mounted": "sda on /mnt/77 in the mount namespace of process 77 (?)"}


def test_a_system_that_runs_in_a_chroot_of_the_namespace_of_process_1(tree):
    """The kernel shows mount points from the root of the process whose table is read."""
    tree.mount("sda", "/mnt/boot", process="1")
    tree.mount("sda", "/")
    view(tree, "1")
    view(tree, "self", "run")
    assert against(tree)["boot"] == "this system runs from it (/)"


def test_a_process_in_a_chroot_hides_no_mount_of_its_namespace(tree):
    tree.mount("nvme0n1", "/", process="77")
    tree.mount("sda", "/data", process="78")
    view(tree, "77", "run")
    view(tree, "78")
    assert against(tree) == {"mounted": "sda on /data in the mount namespace of process 78 (?)"}


@pytest.mark.parametrize("option", ["logdev=/dev/sda", "rw,rtdev=/dev/sda"])
def test_the_log_and_real_time_device_of_an_xfs(tree, option):
    tree.mount("nvme0n1", "/mnt", kind="xfs", options=option)
    assert against(tree) == {"mounted": "nvme0n1, sda on /mnt"}


def test_every_member_of_a_bcachefs(tree):
    tree.mount("sda", "/mnt", kind="bcachefs", number="0:51", source="/dev/sda:/dev/nvme0n1")
    assert against(tree, "nvme0n1") == {"mounted": "nvme0n1, sda on /mnt"}


# --- drivers of the kernel


def test_nvme_target(tree):
    tree.write(f"{CONFIG}/nvmet/subsystems/nqn.x/namespaces/1/device_path", "/dev/sda\n")
    assert against(tree, serial=SERIAL) == {"export": "NVMe target nqn.x exports sda"}
    free(tree, "nvme0n1")


def test_nvme_target_that_passes_a_controller_through(tree):
    tree.write(f"{CONFIG}/nvmet/subsystems/nqn.x/passthru/device_path", "/dev/nvme0\n")
    assert against(tree, "nvme0n1") == {"export": "NVMe target nqn.x exports nvme0"}
    free(tree, "sda")


@pytest.mark.parametrize(
    "store, files",
    [
        ("iblock_0/disk", {"udev_path": "/dev/sda\n", "info": ""}),
        ("iblock_0/disk", {"info": "Status: ACTIVATED\n        Major: 8 Minor: 0  CLAIMED: IBLOCK\n"}),
        (
            "fileio_0/disk",
            {"udev_path": "\n", "info": "        TCM FILEIO ID: 0        File: /dev/sda  Size: 1  Mode: O_DSYNC\n"},
        ),
    ],
)
def test_scsi_target(tree, store, files):
    for name, content in files.items():
        tree.write(f"{CONFIG}/target/core/{store}/{name}", content)
    assert against(tree) == {"export": f"SCSI target {store} exports sda"}
    free(tree, "nvme0n1")


def of_the_target(tree, serial="FABRIC01", transport="loop") -> str:
    """A drive that is this machine's own export, seen again: its NQN is the target's."""
    name = tree.nvme_multipath(1, serial=serial, transport=transport, size_bytes=64 << 20)
    (tree.root / f"dev/{name}").touch()
    return name


NQN = "nqn.2014-08.org.nvmexpress:uuid:1"


@pytest.mark.parametrize("transport", ["loop", "tcp"])
@pytest.mark.parametrize("of", ["a disk", "a partition", "a volume", "a loop device"])
def test_drive_that_is_another_disk_of_this_machine_is_refused(tree, transport, of):
    """nvmet opens sda without a claim and shows it as nvme1n1: whoever uses sda is not seen there."""
    device = {
        "a disk": lambda: "sda",
        "a partition": lambda: tree.partition("sda", 1),
        "a volume": lambda: tree.volume("dm-0", "sda"),
        "a loop device": lambda: loop(tree, "/dev/sda"),
    }[of]()
    tree.write(f"{CONFIG}/nvmet/subsystems/{NQN}/namespaces/1/device_path", f"/dev/{device}\n")
    assert "sda" in against(tree, of_the_target(tree, transport=transport))["export"]
    free(tree, "nvme0n1")


@pytest.mark.parametrize("path, nsid", [("/srv/disk.img", 1), ("/dev/sda", 2), ("/dev/loop0", 1), ("", 1)])
def test_drive_of_this_machine_that_is_a_file_or_another_namespace_is_free(tree, path, nsid):
    loop(tree, "/srv/disk.img")
    tree.write(f"{CONFIG}/nvmet/subsystems/{NQN}/namespaces/{nsid}/device_path", f"{path}\n")
    assert "export" not in against(tree, of_the_target(tree))


def test_drive_that_is_a_controller_of_this_machine_is_refused(tree):
    tree.write(f"{CONFIG}/nvmet/subsystems/{NQN}/passthru/device_path", "/dev/nvme0\n")
    assert "nvme0n1" in against(tree, of_the_target(tree))["export"]


@pytest.mark.parametrize(
    "serial, refused", [("9f0c-1111", True), ("9F0C-1111 ", True), ("9f0c-2222", False), ("", False)]
)
def test_scsi_disk_that_is_another_disk_of_this_machine_is_refused(tree, serial, refused):
    """tcm_loop, or iSCSI to this machine itself: page 80h has the serial of the backstore."""
    store = f"{CONFIG}/target/core/iblock_0/disk"
    tree.write(f"{store}/udev_path", "/dev/sda\n")
    tree.write(f"{store}/wwn/vpd_unit_serial", f"T10 VPD Unit Serial Number: {serial}\n")
    above = "sys/devices/tcm_loop_0/tcm_loop_adapter_0/host7/target7:0:1/7:0:1:0"
    tree.scsi("sdb", above, "LIO-ORG", "disk", "4.0", "9f0c-1111", 64 << 20)
    assert ("export" in against(tree, "sdb")) is refused
    free(tree, "nvme0n1")


def test_usb_gadgets(tree):
    tree.write(f"{CONFIG}/usb_gadget/g1/functions/mass_storage.0/lun.0/file", "/dev/sda\n")
    tree.write("sys/module/g_mass_storage/parameters/file", ",/dev/nvme0n1\n")
    assert against(tree) == {"export": "USB gadget g1 exports sda"}
    assert against(tree, "nvme0n1") == {"export": "USB gadget exports nvme0n1"}


@pytest.mark.parametrize("module", ["g_mass_storage", "g_multi", "g_acm_ms", "g_nokia"])
def test_usb_gadgets_of_one_module(tree, module):
    tree.write(f"sys/module/{module}/parameters/file", "/dev/sda\n")
    tree.write("sys/module/g_ether/parameters/idVendor", "0\n")
    assert against(tree) == {"export": "USB gadget exports sda"}
    free(tree, "nvme0n1")


def test_rnbd_server(tree):
    tree.link("sys/class/rnbd-server/ctl/devices/sda/block_dev", "sys/class/block/sda")
    assert against(tree) == {"export": "RNBD server exports sda"}


def test_disk_of_a_xen_virtual_machine(tree):
    """xen-blkback opens it without a claim, and shows its number in hexadecimal."""
    tree.sata("sdb", serial="S3Z9NB0K100002", port=2, size_bytes=64 << 20)
    devices = "sys/bus/xen-backend/devices"
    tree.write(f"{devices}/vbd-1-51712/physical_device", "8:10\n")
    tree.write(f"{devices}/vif-1-0/mode", "w\n")
    tree.write(f"{devices}/vbd-2-51712/physical_device", "0:0\n")
    assert against(tree, "sdb") == {"export": "Xen's vbd-1-51712 gives sdb to a virtual machine"}
    free(tree, "sda", "nvme0n1")


def test_heartbeat_of_an_ocfs2_cluster(tree):
    part = tree.partition("sda", 1)
    tree.write(f"{CONFIG}/cluster/web/heartbeat/0A1B2C/dev", part + "\n")
    tree.write(f"{CONFIG}/cluster/web/heartbeat/0A1B2D/dev", "\n")
    assert against(tree, serial=SERIAL) == {"holder": "the OCFS2 cluster web writes to sda1"}
    free(tree, "nvme0n1")


def test_zram_backing_device(tree):
    tree.volume("zram0")
    tree.write("sys/devices/virtual/block/zram0/backing_dev", "none\n")
    free(tree, "sda", "nvme0n1")
    tree.write("sys/devices/virtual/block/zram0/backing_dev", "/dev/sda\n")
    assert against(tree) == {"holder": "zram0 writes back to sda"}


def test_bcache_cache_device(tree):
    part = tree.partition("sda", 1)
    tree.write(
        f"{os.path.relpath(os.path.realpath(tree.root / 'sys/class/block' / part), tree.root)}/bcache/label", "\n"
    )
    assert against(tree, serial=SERIAL) == {"holder": "bcache uses sda1"}


def test_btrfs_that_no_visible_namespace_has_mounted(tree):
    tree.link("sys/fs/btrfs/uuid-1/devices/sda", "sys/class/block/sda")
    (tree.root / "sys/fs/btrfs/features").mkdir()
    assert against(tree) == {"holder": "btrfs uuid-1 uses sda"}


def test_bcachefs_that_no_visible_namespace_has_mounted(tree):
    tree.link("sys/fs/bcachefs/uuid-1/dev-0/block", "sys/class/block/sda")
    assert against(tree) == {"holder": "bcachefs uuid-1 uses sda"}


def test_external_journal(tree):
    tree.partition("sda", 1)
    (tree.root / "proc/fs/jbd2/sda1").mkdir(parents=True)
    assert against(tree, serial=SERIAL) == {"holder": "the journal of a mounted file system is on sda1"}


def test_journal_of_a_file_system_that_no_visible_namespace_has_mounted(tree):
    (tree.root / "proc/fs/jbd2/sda-8").mkdir(parents=True)
    assert against(tree) == {"holder": "the journal of a mounted file system is on sda"}


def test_drbd_is_a_holder_as_any_volume(tree):
    tree.volume("drbd0", "sda")
    assert against(tree) == {"holder": "drbd0 is on it"}


@pytest.mark.parametrize("value", ["8:0", "/dev/sda"])
def test_crash_log(tree, value):
    tree.write("sys/module/pstore_blk/parameters/blkdev", value + "\n")
    assert against(tree) == {"holder": "the kernel keeps its crash log on sda"}


def test_hibernation(tree):
    tree.write("sys/power/resume", "0:0\n")
    free(tree, "sda", "nvme0n1")
    tree.write("sys/power/resume", "8:0\n")
    assert against(tree) == {"holder": "the kernel hibernates to sda"}


# --- processes


def test_a_writer_under_another_node_name(tree):
    tree.node("run/jail/dev/sdz", "sda")
    tree.process(4194999, "qemu-kvm", "/run/jail/dev/sdz")
    assert against(tree) == {"writer": "open for writing by process 4194999 (qemu-kvm)"}
    free(tree, "nvme0n1")


def test_a_node_that_has_the_name_of_a_disk_and_the_number_of_another(tree):
    tree.node("run/jail/dev/nvme0n1", "sda")
    tree.process(4194999, "qemu-kvm", "/run/jail/dev/nvme0n1")
    free(tree, "nvme0n1")
    assert "writer" in against(tree)


def test_a_writer_on_what_lies_on_the_disk(tree):
    loop(tree, "/dev/sda")
    tree.process(4194999, "dd", "/dev/loop0")
    assert against(tree)["writer"] == "open for writing by process 4194999 (dd)"


def test_a_disk_that_is_mapped_with_its_descriptor_closed(tree):
    tree.mapping(4194999, "database", "/dev/sda")
    assert against(tree) == {"writer": "open for writing by process 4194999 (database)"}


@pytest.mark.parametrize("permissions", ["r--s", "rw-p"])
def test_a_private_or_read_only_map_does_not_count(tree, permissions):
    tree.mapping(4194999, "blkid", "/dev/sda", permissions)
    free(tree, "sda")


def test_scsi_generic_open_for_writing(tree):
    device = os.path.relpath(os.path.realpath(tree.root / "sys/class/block/sda/device"), tree.root)
    tree.link(f"{device}/scsi_generic/sg0/device", device)
    tree.character("sg0", f"{device}/scsi_generic/sg0", "21:0")
    tree.process(4194999, "qemu-kvm", "/dev/sg0")
    assert against(tree) == {"writer": "open for writing by process 4194999 (qemu-kvm)"}
    free(tree, "nvme0n1")


@pytest.mark.parametrize("name", ["ng0n1", "nvme0"])
def test_nvme_generic_and_controller_open_for_writing(tree, name):
    controller = os.path.relpath(os.path.realpath(tree.root / "sys/class/nvme/nvme0"), tree.root)
    folder = controller if name == "nvme0" else f"{controller}/{name}"
    (tree.root / folder).mkdir(exist_ok=True)
    tree.character(name, folder, "240:0")
    tree.process(4194999, "fio", f"/dev/{name}")
    assert against(tree, "nvme0n1") == {"writer": "open for writing by process 4194999 (fio)"}
    free(tree, "sda")


def test_the_controller_of_a_multipath_drive(tree):
    tree.nvme_multipath(3, size_bytes=64 << 20)
    tree.character("nvme3", "sys/devices/virtual/nvme-fabrics/ctl/nvme3", "240:3")
    tree.process(4194999, "fio", "/dev/nvme3")
    assert against(tree, "nvme3n1") == {"writer": "open for writing by process 4194999 (fio)"}


def test_processes_that_cannot_be_seen_refuse(tree, monkeypatch):
    """A container's own /proc, and another user's processes."""
    (tree.root / "proc/self/ns").mkdir()
    (tree.root / "proc/self/ns/pid").symlink_to("pid:[4026531836]")
    free(tree, "sda")
    (tree.root / "proc/self/ns/pid").unlink()
    (tree.root / "proc/self/ns/pid").symlink_to("pid:[4026532999]")
    assert "outside of containers" in against(tree)["unseen"]
    (tree.root / "proc/self/ns/pid").unlink()
    tree.process(4194999, "sh", "/dev/nvme0n1")
    fd_folder, listdir = str(tree.root / own_files(4194999) / "fd"), os.listdir

    def denied(path):
        if path == fd_folder:
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", denied)
    assert against(tree) == {"unseen": "the open files of 1 processes cannot be read: run it as root"}


# --- nothing is refused that is free


def test_a_free_multipath_drive_beside_all_kinds_of_empty_drivers_is_free(tree):
    tree.nvme_multipath(3, states=("live", "live"), size_bytes=64 << 20)
    for folder in ("nvmet/subsystems", "target/core/alua", "usb_gadget"):
        (tree.root / CONFIG / folder).mkdir(parents=True)
    for index in range(8):
        tree.volume(f"loop{index}")
    tree.write(f"{CONFIG}/nvmet/subsystems/nqn.x/namespaces/1/device_path", "\n")
    tree.write(f"{CONFIG}/target/core/fileio_0/x/info", "File: /srv/image  Size: 1\n")
    tree.write("sys/module/pstore_blk/parameters/blkdev", "\n")
    (tree.root / "proc/fs/jbd2").mkdir(parents=True)
    free(tree, "sda", "nvme0n1", "nvme3n1")
    assert uses.survey(tree.root).claims == {}


# --- the table


def test_the_table_names_every_refusal_and_files_that_exist():
    repo = Path(__file__).resolve().parents[2]
    text = (repo / "host/docs/how/holders.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    assert all(len(row) == 4 and row[3].strip() for row in rows)
    named = {word for row in rows for word in re.findall(r"`([a-z]+)`", row[2])}
    assert {
        "mounted",
        "busy",
        "boot",
        "holder",
        "swap",
        "loop",
        "export",
        "writer",
        "lock",
        "signature",
        "unseen",
    } <= named
    for path in re.findall(r"`((?:tests|host)/[\w/.]+)`", text):
        assert (repo / path).exists(), path
