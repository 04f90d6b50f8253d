import contextlib
import dataclasses
import os
import shutil
import subprocess
import sys
import time

import pytest
from disktree import DiskTree
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.drive import guard, uses
from ssdrig.drive.inventory import Drive, all_drives, find
from ssdrig.errors import UnsafeTarget

SERIAL = "S3Z9NB0K100001"


@pytest.fixture
def tree(tmp_path):
    """One SATA disk sda with nothing on it, and one NVMe drive that nothing is wrong with either."""
    tree = DiskTree(tmp_path)
    tree.sata(size_bytes=64 << 20)
    tree.nvme(0, size_bytes=64 << 20)
    return tree


def against(tree, name="sda", serial=None) -> dict[str, str]:
    drive = next(d for d in all_drives(tree.root) if d.name == name)
    found = guard.refusals(drive, serial, tree.root)
    assert all(r.override is None for r in found if r.check != "signature")
    return {r.check: r.why for r in found}


def test_nothing_speaks_against_an_empty_disk_that_nobody_uses(tree):
    assert against(tree) == {}
    assert against(tree, serial=SERIAL) == {}


def test_a_mounted_whole_disk(tree):
    tree.mount("sda", "/mnt/a\\040b")
    assert against(tree) == {"mounted": "sda on /mnt/a b"}
    assert against(tree, serial=SERIAL) == {"mounted": "sda on /mnt/a b"}, "no override"
    assert against(tree, "nvme0n1") == {}, "the other disk is free"


def test_a_mounted_partition(tree):
    tree.partition("sda", 1)
    tree.mount(tree.partition("sda", 2), "/mnt")
    assert against(tree, serial=SERIAL) == {"mounted": "sda2 on /mnt"}
    assert against(tree)["signature"] == "partitions sda1, sda2"


def test_mounts_are_found_by_number_whatever_name_the_table_shows(tree):
    tree.mount("sda", "/mnt", source="/dev/disk/by-id/ata-other-name")
    assert against(tree) == {"mounted": "sda on /mnt"}


def test_a_mount_known_by_its_source_only(tree):
    """btrfs shows an anonymous number; the source may be a by-id link."""
    tree.by_id("ata-x", "sda")
    tree.mount("sda", "/mnt", kind="btrfs", number="0:44", source="/dev/disk/by-id/ata-x")
    assert against(tree) == {"mounted": "sda on /mnt"}


def test_every_member_of_a_btrfs_is_in_use_though_the_table_shows_one(tree):
    tree.link("sys/fs/btrfs/uuid-1/devices/sda", "sys/class/block/sda")
    tree.link("sys/fs/btrfs/uuid-1/devices/nvme0n1", "sys/class/block/nvme0n1")
    tree.mount("sda", "/mnt", kind="btrfs", number="0:44", source="/dev/sda")
    assert against(tree, "nvme0n1") == {"mounted": "nvme0n1, sda on /mnt"}


def test_a_mount_that_only_process_1_sees(tree):
    tree.mount("sda", "/srv", process="1")
    assert against(tree) == {"mounted": "sda on /srv"}


def test_a_volume_on_the_disk(tree):
    tree.volume("dm-0", "sda", label="vg0-scratch")
    assert against(tree, serial=SERIAL) == {"holder": "dm-0 (vg0-scratch) lies on it"}


def test_a_raid_on_a_partition(tree):
    tree.volume("md0", tree.partition("sda", 1))
    assert against(tree, serial=SERIAL) == {"holder": "md0 lies on it"}


def test_swap(tree):
    tree.swap(f"/dev/{tree.partition('sda', 3)}")
    assert against(tree, serial=SERIAL) == {"swap": "swap on sda3"}


def test_swap_on_a_volume_that_is_named_by_its_label(tree):
    tree.volume("dm-0", "sda", label="vg0-swap")
    tree.swap("/dev/mapper/vg0-swap")
    assert against(tree, serial=SERIAL)["swap"] == "swap on dm-0"


def test_a_name_that_no_path_can_have_is_passed_over(tree):
    tree.swap("/dev/\\000")
    tree.mount("sda", "/mnt", number="0:44", source="/dev/x\\000y")
    assert against(tree) == {}


@pytest.mark.parametrize("point", ["/", "/boot", "/boot/efi", "/usr", "/var"])
def test_the_boot_disk(tree, point):
    tree.mount(tree.partition("sda", 1), point)
    found = against(tree, serial=SERIAL)
    assert found == {"mounted": f"sda1 on {point}", "boot": f"this system runs from it ({point})"}


def test_the_boot_disk_below_encryption_volumes_and_a_raid(tree):
    tree.volume("md0", tree.partition("sda", 2), tree.partition("nvme0n1", 2))
    tree.volume("dm-0", "md0", label="crypt")
    tree.volume("dm-1", "dm-0", label="vg-root")
    tree.mount("dm-1", "/", source="/dev/mapper/vg-root")
    for disk in ("sda", "nvme0n1"):
        assert against(tree, disk)["boot"] == "this system runs from it (/)"


def test_the_boot_disk_below_an_overlay(tree):
    tree.mount("sda", "/run/live", source="/dev/sda")
    tree.mount("sda", "/", kind="overlay", number="0:50", source="overlay", options="rw,lowerdir=/run/live/rootfs:/x,upperdir=/run/rw/up,workdir=/run/rw/w")
    assert against(tree)["boot"] == "this system runs from it (/)"
    assert "boot" not in against(tree, "nvme0n1")


def test_a_volume_that_is_its_own_ancestor_ends(tree):
    tree.volume("dm-0", "sda")
    tree.link("sys/class/block/dm-0/slaves/dm-0", "sys/class/block/dm-0")
    tree.mount("dm-0", "/mnt")
    assert against(tree)["mounted"] == "dm-0 on /mnt"


def test_what_uses_another_namespace_or_path_of_the_drive_counts(tree):
    tree.nvme(0, nsid=2, size_bytes=64 << 20)
    tree.mount("nvme0n2", "/mnt")
    assert against(tree, "nvme0n1") == {"mounted": "nvme0n2 on /mnt (/dev/nvme0n2 shows the same serial)"}


def test_a_program_that_writes_to_it(tree):
    """A virtual machine opens its disk without O_EXCL, so that the kernel does not see it in use."""
    tree.process(4194999, "qemu-system-x86", f"/dev/{tree.partition('sda', 1)}")
    assert against(tree, serial=SERIAL) == {"writer": "open for writing by process 4194999 (qemu-system-x86)"}


def test_a_program_that_only_reads_does_not_count(tree):
    tree.process(4194999, "smartd", "/dev/sda", flags="02100000")
    assert against(tree) == {}


def test_a_read_only_disk(tree):
    tree.write("sys/block/sda/ro", "1\n")
    assert list(against(tree, serial=SERIAL)) == ["read-only"]


@pytest.mark.parametrize("size_bytes", [0, 32768, 8 << 20])
def test_a_disk_too_small_to_be_one(tree, size_bytes):
    tree.write("sys/block/sda/size", f"{size_bytes // 512}\n")
    assert against(tree) == {"capacity": f"{size_bytes} bytes is no drive: it has failed, or has no medium"}


def test_a_disk_without_serial(tree):
    tree.virtio(serial="", size_bytes=64 << 20)
    assert "could not be told from another" in against(tree, "vda")["serial"]


def test_a_disk_without_number(tree):
    tree.write("sys/block/sda/dev", "\n")
    assert list(against(tree)) == ["number"]


def test_a_node_that_does_not_open(tree):
    (tree.root / "dev/sda").unlink()
    found = against(tree, serial=SERIAL)
    assert found == {"open": "/dev/sda does not open: No such file or directory"}


@pytest.mark.parametrize("name, kind", [("loop0", "loop device"), ("dm-0", "device-mapper volume"), ("md0", "software RAID")])
def test_software_is_no_target(tree, name, kind):
    tree.volume(name)
    drive = by_hand(tree.root, name, *map(int, tree.numbers[name].split(":")), 64 << 20)
    assert ("kind", f"/dev/{name} is no whole disk: {kind}", None) in [(r.check, r.why, r.override) for r in guard.refusals(drive, "HAND", tree.root)]


def test_a_partition_is_no_target(tree):
    name = tree.partition("sda", 1)
    found = guard.refusals(by_hand(tree.root, name, 8, 1, 64 << 20), "HAND", tree.root)
    assert [r.why for r in found if r.check == "kind"] == ["/dev/sda1 is no whole disk: partition"]


def test_a_disk_that_is_gone(tree):
    drive = find(SERIAL, tree.root)
    tree.remove("sda")
    assert [r.check for r in guard.refusals(drive, SERIAL, tree.root)] == ["gone"]
    with pytest.raises(UnsafeTarget, match="gone"), guard.hold(drive, SERIAL, tree.root):
        pass


def test_all_failures_are_listed(tree):
    tree.partition("sda", 1)
    tree.mount("sda1", "/")
    tree.volume("dm-0", "sda1")
    tree.swap("/dev/sda1")
    tree.write("sys/block/sda/ro", "1\n")
    assert list(against(tree, serial="X")) == ["read-only", "holder", "mounted", "boot", "swap", "destroy-data", "signature"]


@settings(max_examples=60, deadline=None)
@given(words=st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(
    [b"8:0", b"0:44", b"..", b"/", b"/mnt", b"-", b"btrfs", b"overlay", b"/dev/sda", b"/dev/\\000", b"\\777", b"lowerdir=/:/x", b"1", b"\n", b"", b"rw"]),
    max_size=24).map(b" ".join)), file=st.sampled_from(["proc/self/mountinfo", "proc/1/mountinfo", "proc/swaps", "proc/77/fdinfo/7"]))  # fmt: skip
def test_odd_tables_of_the_kernel_are_no_crash(shared_tree, words, file):
    shared_tree.write(file, words)
    uses.survey(shared_tree.root)


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory):
    tree = DiskTree(tmp_path_factory.mktemp("machine"))
    tree.sata(size_bytes=64 << 20)
    tree.process(77, "sh", "/dev/sda")
    return tree


# --- content


def make_ext4(node) -> None:
    if not shutil.which("mkfs.ext4"):
        pytest.skip("no mkfs.ext4 here")
    subprocess.run(["mkfs.ext4", "-q", "-F", str(node), "32M"], check=True, capture_output=True)


def test_a_file_system_needs_destroy_data_with_this_serial(tree):
    make_ext4(tree.root / "dev/sda")
    drive = find(SERIAL, tree.root)
    assert guard.refusals(drive, None, tree.root) == [guard.Refusal("signature", "ext4", f"--destroy-data {SERIAL}")]
    assert guard.refusals(drive, SERIAL, tree.root) == []
    with pytest.raises(UnsafeTarget) as caught, guard.hold(drive, None, tree.root):
        pass
    assert caught.value.do == f"add --destroy-data {SERIAL} if what is on it may be destroyed"


def test_a_wrong_serial_is_refused_with_both_named(tree):
    make_ext4(tree.root / "dev/sda")
    found = against(tree, serial="S6Z1NX0W100001")
    assert found["destroy-data"] == f"--destroy-data names S6Z1NX0W100001, this drive is {SERIAL}"
    assert found["signature"] == "ext4"
    with pytest.raises(UnsafeTarget, match="give --destroy-data that drive's serial"), guard.hold(find(SERIAL, tree.root), "S6Z1NX0W100001", tree.root):
        pass


@pytest.mark.parametrize("serial", ["", SERIAL.lower(), SERIAL[:-1]])
def test_a_serial_that_is_nearly_right_is_wrong_also_where_there_is_nothing_to_destroy(tree, serial):
    assert list(against(tree, serial=serial)) == ["destroy-data"]


@pytest.mark.parametrize("script, why", [
    ('echo \'{"signatures": [{"device":"sda","offset":"0x218","type":"LVM2_member","uuid":"x","label":null}]}\'', "LVM2_member"),
    # what wipefs of util-linux 2.38 prints where a GPT and a file system lie on one disk
    ('echo \'{"signatures": [{"type":"gpt"},{"type":"zfs_member"},{"type":"zfs_member"},{"type":"PMBR"}]}\'', "PMBR, gpt, zfs_member"),
    ("", ""),
    ("echo '{\"signatures\": [\n\n   ]\n}'", ""),
    ("echo garbage", "could not be seen"),
    ("echo '{}'", "could not be seen"),
    ("echo '[1]'", "could not be seen"),
    ("echo '{\"signatures\": [1]}'", "could not be seen"),
    ("echo 'wipefs: error: /dev/sda: probing initialization failed: No medium found' >&2; exit 1", "No medium found"),
])  # fmt: skip
def test_what_wipefs_says(tree, tmp_path, monkeypatch, script, why):
    fake_wipefs(tmp_path, monkeypatch, script)
    found = against(tree)
    assert found.get("signature", "") == why if "could" not in why and "medium" not in why else why in found["signature"]


def test_a_wipefs_that_hangs_or_is_missing_counts_as_content(tree, tmp_path, monkeypatch):
    fake_wipefs(tmp_path, monkeypatch, "exec sleep 60")
    monkeypatch.setattr(guard, "WIPEFS_TIMEOUT_S", 0.2)
    assert "timed out" in against(tree)["signature"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "wipefs" in against(tree)["signature"]


def fake_wipefs(tmp_path, monkeypatch, script):
    tool = tmp_path / "bin/wipefs"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")


# --- holding


def test_hold_keeps_others_off_until_its_end(tree):
    drive = find(SERIAL, tree.root)
    assert not guard.busy(SERIAL, tree.root)
    with guard.hold(drive, SERIAL, tree.root) as held:
        assert held.drive == drive and held.recheck() == drive
        assert guard.busy(SERIAL, tree.root) and guard.busy(SERIAL.lower(), tree.root)
        assert not guard.busy("S6Z1NX0W100001", tree.root)
        assert against(tree)["lock"] == f"another ssdrig, process {os.getpid()}, is at work on this drive"
        with pytest.raises(UnsafeTarget, match=f"process {os.getpid()}"), guard.hold(drive, SERIAL, tree.root):
            pass
    assert not guard.busy(SERIAL, tree.root)
    with guard.hold(drive, SERIAL, tree.root):
        pass


HOLDER = """
import sys
from ssdrig.drive import guard, inventory
root, serial = sys.argv[1:]
with guard.hold(inventory.find(serial, root), serial, root):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder(root, serial=SERIAL):
    with subprocess.Popen([sys.executable, "-c", HOLDER, root, serial], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_named_and_a_killed_one_leaves_no_lock(tree):
    drive = find(SERIAL, tree.root)
    with holder(tree.root) as first:
        with pytest.raises(UnsafeTarget) as caught, guard.hold(drive, SERIAL, tree.root):
            pass
        assert f"another ssdrig, process {first.pid}, is at work on this drive" in caught.value.seen
        with guard.hold(find("S6Z1NX0W100001", tree.root), None, tree.root):
            pass  # the other drive is free
        first.kill()
        first.wait()
        with guard.hold(drive, SERIAL, tree.root):
            pass


def test_asking_whether_a_drive_is_busy_does_not_make_it_so(tree):
    drive = find(SERIAL, tree.root)
    code = "import sys\nfrom ssdrig.drive import guard\nprint(flush=True)\nwhile True: guard.busy(sys.argv[2], sys.argv[1])"
    with subprocess.Popen([sys.executable, "-c", code, tree.root, SERIAL], stdout=subprocess.PIPE) as asking:
        try:
            asking.stdout.readline()
            for _ in range(50):
                with guard.hold(drive, SERIAL, tree.root):
                    pass
        finally:
            asking.kill()


def test_where_the_lock_folder_is_not_writable_another_serves(tree):
    (tree.root / "run/lock").rmdir()
    with guard.hold(find(SERIAL, tree.root), None, tree.root):
        assert (tree.root / f"run/ssdrig-{SERIAL}").exists() and guard.busy(SERIAL, tree.root)


def test_a_link_in_the_lock_folder_is_not_followed(tree):
    victim = tree.root / "victim"
    victim.write_text("precious")
    (tree.root / f"run/lock/ssdrig-{SERIAL}").symlink_to(victim)
    with guard.hold(find(SERIAL, tree.root), None, tree.root):
        assert victim.read_text() == "precious"


def test_no_folder_for_a_lock_refuses(tree):
    shutil.rmtree(tree.root / "run/lock")
    shutil.rmtree(tree.root / "run")
    shutil.rmtree(tree.root / "tmp")
    with pytest.raises(UnsafeTarget, match="no lock can be taken"), guard.hold(find(SERIAL, tree.root), None, tree.root):
        pass


def test_a_serial_with_slashes_stays_in_its_folder(tree):
    tree.virtio(serial="../../x/y z", size_bytes=64 << 20)
    with guard.hold(find("../../x/y z", tree.root), None, tree.root):
        assert [p.name for p in (tree.root / "run/lock").iterdir()] == ["ssdrig-.._.._X_Y_Z"]


# --- after the drive was away


def test_a_drive_that_was_exchanged_while_a_person_thought_about_it_is_refused(tree):
    drive = find(SERIAL, tree.root)
    tree.remove("sda")
    tree.sata(serial="OTHER", size_bytes=64 << 20)
    with pytest.raises(UnsafeTarget, match=f"changed: /dev/sda was Samsung SSD 860 EVO 500GB, serial {SERIAL}, and is .*serial OTHER now"):
        with guard.hold(drive, SERIAL, tree.root):
            pass


def test_a_drive_that_came_back_as_itself_is_held_again(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        before = held.fd
        tree.remove("sda")
        tree.sata(size_bytes=64 << 20)  # the same one; the kernel counts a new appearance
        assert held.recheck().serial == SERIAL
        assert os.fstat(held.fd).st_ino == os.stat(tree.root / "dev/sda").st_ino, "the new node is open, not the old one"
        assert held.recheck().serial == SERIAL and before >= 0


def test_a_drive_let_go_for_a_cut_stays_locked_and_is_taken_again(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        held.let_go()
        assert held.fd == -1 and guard.busy(SERIAL, tree.root)
        held.recheck()
        assert held.fd >= 0


@pytest.mark.parametrize("serial, model, seen", [
    ("OTHER", "Samsung SSD 860 EVO 500GB", "serial OTHER"), (SERIAL, "Another model", "Another model"), ("", "", "serial unknown"),
])  # fmt: skip
def test_another_drive_at_the_node_is_refused(tree, serial, model, seen):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        tree.sata(serial=serial, model=model, size_bytes=64 << 20)
        with pytest.raises(UnsafeTarget) as caught:
            held.recheck()
        assert SERIAL in caught.value.expected and seen in caught.value.seen


def test_a_drive_that_is_gone_or_has_moved_is_refused(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        with pytest.raises(UnsafeTarget, match="seen nothing"):
            held.recheck()
        tree.sata("sdb", size_bytes=64 << 20)
        with pytest.raises(UnsafeTarget, match="this drive is at /dev/sdb now"):
            held.recheck()


def test_drives_that_changed_places_are_refused(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        tree.sata("sda", serial="OTHER", size_bytes=64 << 20)
        tree.sata("sdb", port=2, size_bytes=64 << 20)
        with pytest.raises(UnsafeTarget, match="serial OTHER; this drive is at /dev/sdb now"):
            held.recheck()


def test_a_drive_that_came_back_with_another_size_is_refused(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.write("sys/block/sda/size", f"{(32 << 20) // 512}\n")
        with pytest.raises(UnsafeTarget, match="33554432 bytes"):
            held.recheck()


def test_a_drive_that_was_mounted_when_it_came_back_is_refused(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        tree.sata(size_bytes=64 << 20)
        tree.mount("sda", "/media/auto")
        with pytest.raises(UnsafeTarget, match="mounted: sda on /media/auto"):
            held.recheck()
        assert held.fd == -1


def test_what_a_run_itself_wrote_to_the_disk_is_no_reason_against_it(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        make_ext4(tree.root / "dev/sda")
        tree.write("sys/block/sda/diskseq", "99\n")
        assert held.recheck().serial == SERIAL


def test_the_announcement(tree):
    tree.by_id("ata-x", "sda")
    drive = find(SERIAL, tree.root)
    assert guard.announcement(drive, "fill and 4 KiB random writes", 4.3e12, 600e12) == (
        f"ALL DATA WILL BE LOST on Samsung SSD 860 EVO 500GB, serial {SERIAL}, 67.11 MB (/dev/disk/by-id/ata-x).\n"
        "fill and 4 KiB random writes: writes 4.3 TB, 0.72 % of its rated 600 TB."
    )
    assert "its rated endurance is not known" in guard.announcement(drive, "purge", 0)


# --- the real kernel: loop devices on files of ours


def by_hand(root, name, major, minor, size_bytes) -> Drive:
    return Drive(name, f"/dev/{name}", None, "by hand", "HAND", "", "", size_bytes, 512, "other", "", False, major, minor, None, None, "auto", "", False)


@pytest.fixture
def loop(tmp_path):
    """A Drive made by hand of a loop device on a file: refused by its kind, so that only the other refusals are looked at."""
    if os.geteuid() != 0:
        pytest.skip("not root: no loop device can be made")
    file = tmp_path / "disk"
    file.touch()
    os.truncate(file, 64 << 20)
    made = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    node = made.stdout.strip()
    number = os.stat(node).st_rdev
    yield by_hand("/", os.path.basename(node), os.major(number), os.minor(number), 64 << 20)
    subprocess.run(["losetup", "--detach", node], check=True)


@contextlib.contextmanager
def undone(do, undo):
    done = subprocess.run(do, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(do)}: {done.stderr.strip()}")
    try:
        yield
    finally:
        for _ in range(50):  # the kernel may be busy with it for a moment
            if not (last := subprocess.run(undo, capture_output=True, text=True)).returncode:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(last.stderr)


def real(drive, serial="HAND") -> dict[str, str]:
    return {r.check: r.why for r in guard.refusals(drive, serial) if r.check != "kind"}


def test_real_an_idle_device_has_only_its_kind_against_it(loop):
    assert real(loop) == {} and real(loop, None) == {}
    assert [r.check for r in guard.refusals(loop, "HAND")] == ["kind"]


def test_real_signatures(loop):
    make_ext4(loop.node)
    assert real(loop, None) == {"signature": "ext4"} and real(loop) == {}


def test_real_a_partition_table_that_the_kernel_has_not_read(loop):
    """An MBR (UEFI 2.10, 5.2.1) with one Linux partition."""
    with open(loop.node, "r+b") as disk:
        mbr = bytearray(512)
        mbr[446 + 4], mbr[446 + 8], mbr[446 + 12 : 446 + 16], mbr[510:512] = 0x83, 1, (2048).to_bytes(4, "little"), b"\x55\xaa"
        disk.write(mbr)
    assert real(loop, None) == {"signature": "dos"}


def test_real_a_mounted_disk(loop, tmp_path):
    make_ext4(loop.node)
    point = tmp_path / "mnt"
    point.mkdir()
    with undone(["mount", loop.node, str(point)], ["umount", str(point)]):
        found = real(loop)
        assert f"{loop.name} on {point}" in found["mounted"].split(", ") and "refuses exclusive use" in found["busy"]


def test_real_a_mounted_partition(loop, tmp_path):
    with undone(["addpart", loop.node, "1", "2048", "65536"], ["delpart", loop.node, "1"]):
        part = f"{loop.node}p1"
        make_ext4(part)
        assert real(loop) == {} and real(loop, None)["signature"] == f"partitions {loop.name}p1"
        point = tmp_path / "mnt"
        point.mkdir()
        with undone(["mount", part, str(point)], ["umount", str(point)]):
            found = real(loop)
            assert f"{loop.name}p1 on {point}" in found["mounted"].split(", ") and "busy" in found


def test_real_swap(loop):
    if not shutil.which("mkswap"):
        pytest.skip("no mkswap here")
    subprocess.run(["mkswap", loop.node], check=True, capture_output=True)
    with undone(["swapon", "--priority", "-2", loop.node], ["swapoff", loop.node]):
        found = real(loop)
        assert found["swap"] == f"swap on {loop.name}" and "busy" in found


def test_real_a_device_mapper_holder(loop):
    if not shutil.which("dmsetup"):
        pytest.skip("no dmsetup here")
    name = f"ssdrig-test-{os.getpid()}"
    with undone(["dmsetup", "create", name, "--table", f"0 65536 linear {loop.node} 0"], ["dmsetup", "remove", name]):
        found = real(loop)
        assert f"({name}) lies on it" in found["holder"] and "busy" in found


def test_real_an_exclusive_open(loop):
    fd = os.open(loop.node, os.O_RDONLY | os.O_EXCL)
    try:
        assert list(real(loop)) == ["busy"]
    finally:
        os.close(fd)
    assert real(loop) == {}


def test_real_a_program_that_writes(loop):
    with subprocess.Popen(["sh", "-c", f"exec 3<>{loop.node}; echo ready; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        try:
            writer.stdout.readline()
            assert real(loop) == {"writer": f"open for writing by process {writer.pid} (sh)"}
        finally:
            writer.kill()


def test_real_a_read_only_device(loop):
    with undone(["blockdev", "--setro", loop.node], ["blockdev", "--setrw", loop.node]):
        assert list(real(loop)) == ["read-only"]


def test_real_a_node_of_another_device(loop):
    other = dataclasses.replace(loop, minor=loop.minor + 1)
    assert "another device's" in real(other)["open"]


def test_real_holding_is_seen_by_the_kernel(loop, monkeypatch):
    monkeypatch.setattr(guard.inventory, "why_not_a_drive", lambda name, root="/": "")  # let a loop device pass
    monkeypatch.setattr(guard.inventory, "all_drives", lambda root="/": [loop])
    monkeypatch.setattr(guard, "LOCK_FOLDERS", ("tmp",))
    with guard.hold(loop, "HAND") as held:
        with pytest.raises(OSError, match="busy"):
            os.open(loop.node, os.O_RDONLY | os.O_EXCL)
        assert subprocess.run(["mkfs.ext4", "-q", loop.node], capture_output=True).returncode, "others are kept off"
        assert held.recheck() == loop and held.fd >= 0 and held.sequence == open(f"/sys/block/{loop.name}/diskseq").read().strip()
    os.close(os.open(loop.node, os.O_RDONLY | os.O_EXCL))
    os.unlink("/tmp/ssdrig-HAND")


def test_real_the_disk_of_this_system_is_refused():
    found = {d.name: guard.refusals(d, d.serial) for d in all_drives()}
    source = subprocess.run(["findmnt", "--noheadings", "--output", "SOURCE", "/"], capture_output=True, text=True).stdout.strip()
    disk = next((name for name in found if source.startswith(f"/dev/{name}")), None)
    if disk is None:
        pytest.skip(f"the root file system is on {source or 'nothing'}, which is no disk seen here")
    assert "boot" in [r.check for r in found[disk]] and all(r.override is None for r in found[disk])
