"""Holding a drive: the lock against other processes, the node kept open, and the drive looked at again after it was
away."""

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guarding import SERIAL, against, make_ext4, tree  # noqa: F401  fixture

from ssdrig.base.errors import ExchangedDrive, UnsafeTarget
from ssdrig.drive import guard, sysfs
from ssdrig.drive.inventory import find


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
from pathlib import Path
from ssdrig.drive import guard, inventory
root, serial = sys.argv[1:]
with guard.hold(inventory.find(serial, root), serial, root):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder(root, serial=SERIAL):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, root, serial], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
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
    code = (
        "import sys\nfrom ssdrig.drive import guard\nprint(flush=True)\nwhile True: guard.busy(sys.argv[2],"
        " sys.argv[1])"
    )
    with subprocess.Popen([sys.executable, "-c", code, tree.root, SERIAL], stdout=subprocess.PIPE) as asking:
        try:
            assert asking.stdout.readline() == b"\n"
            for _ in range(50):
                with guard.hold(drive, SERIAL, tree.root) as held:
                    assert held.fd >= 0
            assert asking.poll() is None, "it asked all the while"
        finally:
            asking.kill()


def test_the_lock_is_its_owners_alone(tree):
    """Any user who can open a file can lock it, and so keep root from a drive."""
    with guard.hold(find(SERIAL, tree.root), None, tree.root):
        folder, file = tree.root / "run/ssdrig", tree.root / f"run/ssdrig/{SERIAL}.lock"
        assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o755, 0o600)


@pytest.mark.parametrize("where", ["run/lock", "run", "tmp"])
def test_a_lock_in_a_folder_that_everyone_can_write_keeps_nobody_off(tree, where):
    with open(tree.root / where / f"ssdrig-{SERIAL}", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not guard.busy(SERIAL, tree.root)
        with guard.hold(find(SERIAL, tree.root), None, tree.root):
            pass


def test_a_lock_folder_that_another_user_can_write_or_made_refuses(tree, monkeypatch):
    folder, drive = tree.root / "run/ssdrig", find(SERIAL, tree.root)
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnsafeTarget, match="can be written by other users"), guard.hold(drive, None, tree.root):
        pass
    folder.chmod(0o755)
    if not os.geteuid():
        os.chown(folder, 12345, 12345)
        with pytest.raises(UnsafeTarget, match="belongs to user 12345"), guard.hold(drive, None, tree.root):
            pass
        os.chown(folder, 0, 0)
    folder.rename(tree.root / "elsewhere")
    folder.symlink_to(tree.root / "elsewhere")
    with pytest.raises(UnsafeTarget, match="is not a folder"), guard.hold(drive, None, tree.root):
        pass


def test_who_may_not_open_the_lock_still_sees_that_it_is_held(tree, monkeypatch):
    file = tree.root / f"run/ssdrig/{SERIAL}.lock"
    opened = os.open

    def denied(path, *args, **more):
        if os.fspath(path) == str(file):
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **more)

    with holder(tree.root) as first:
        monkeypatch.setattr(os, "open", denied)
        assert against(tree)["lock"] == f"another ssdrig, process {first.pid}, is at work on this drive"
        first.kill()
        first.wait()
        assert against(tree) == {}


def test_a_link_in_the_lock_folder_is_not_followed(tree):
    victim = tree.root / "victim"
    victim.write_text("precious")
    (tree.root / "run/ssdrig").mkdir()
    (tree.root / f"run/ssdrig/{SERIAL}.lock").symlink_to(victim)
    with (
        pytest.raises(UnsafeTarget, match="no lock can be taken"),
        guard.hold(find(SERIAL, tree.root), None, tree.root),
    ):
        pass
    assert victim.read_text() == "precious"


def test_two_starts_that_make_the_lock_folder_at_once(tree, monkeypatch):
    """Of different drives: neither is refused because the other made the folder first."""
    folder = Path(sysfs.within(tree.root, guard.FOLDER))
    shutil.rmtree(folder, ignore_errors=True)
    real = os.mkdir

    def late(path, *mode):
        real(path, *mode)
        return real(path, *mode)

    monkeypatch.setattr(os, "mkdir", late)
    fd, why = guard.take("S1", tree.root)
    assert fd is not None, why
    os.close(fd)


def test_no_folder_for_a_lock_refuses(tree):
    shutil.rmtree(tree.root / "run")
    with (
        pytest.raises(UnsafeTarget, match="no lock can be taken"),
        guard.hold(find(SERIAL, tree.root), None, tree.root),
    ):
        pass


def test_a_serial_with_slashes_stays_in_its_folder(tree):
    tree.virtio(serial="../../x/y z", size_bytes=64 << 20)
    with guard.hold(find("../../x/y z", tree.root), None, tree.root):
        assert [p.name for p in (tree.root / "run/ssdrig").iterdir()] == [".._.._X_Y_Z.lock"]


def test_a_drive_that_does_not_open_is_not_held_and_one_that_is_gone_is_said_once(tree, monkeypatch):
    def refuse(drive, root, exclusive):
        raise OSError(errno.EBUSY, "busy")

    drive = find(SERIAL, tree.root)
    monkeypatch.setattr(guard, "_open", refuse)
    with pytest.raises(UnsafeTarget, match="seen busy: "), guard.hold(drive, None, tree.root):
        pass
    tree.remove("sda")
    with pytest.raises(UnsafeTarget, match="seen gone: ") as caught, guard.hold(drive, SERIAL, tree.root):
        pass
    assert "busy" not in caught.value.seen


# --- after the drive was away


def test_a_drive_that_was_exchanged_while_a_person_thought_about_it_is_refused(tree):
    drive = find(SERIAL, tree.root)
    tree.remove("sda")
    tree.sata(serial="OTHER", size_bytes=64 << 20)
    with (
        pytest.raises(
            UnsafeTarget,
            match=f"changed: /dev/sda was Samsung SSD 860 EVO 500GB, serial {SERIAL}, and is .*serial OTHER now",
        ),
        guard.hold(drive, SERIAL, tree.root),
    ):
        pass


def test_a_drive_that_came_back_as_itself_is_held_again(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        before = held.fd
        tree.remove("sda")
        tree.sata(size_bytes=64 << 20)  # the same one; the kernel counts a new appearance
        assert held.recheck().serial == SERIAL
        assert os.fstat(held.fd).st_ino == os.stat(tree.root / "dev/sda").st_ino, (
            "the new node is open, not the old one"
        )
        assert held.recheck().serial == SERIAL and before >= 0


def test_a_drive_let_go_for_a_cut_stays_locked_and_is_taken_again(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        held.let_go()
        assert held.fd == -1 and guard.busy(SERIAL, tree.root)
        held.recheck()
        assert held.fd >= 0


@pytest.mark.parametrize(
    "serial, model, seen",
    [
        ("OTHER", "Samsung SSD 860 EVO 500GB", "serial OTHER"),
        (SERIAL, "Another model", "Another model"),
        ("", "", "serial unknown"),
    ],
)
def test_another_drive_at_the_node_is_refused(tree, serial, model, seen):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        tree.sata(serial=serial, model=model, size_bytes=64 << 20)
        with pytest.raises(ExchangedDrive) as caught:
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
        with pytest.raises(UnsafeTarget, match="serial OTHER; this drive is at /dev/sdb now") as caught:
            held.recheck()
        assert not isinstance(caught.value, ExchangedDrive)  # it is there


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
    assert (
        guard.announcement(drive, "fill and 4 KiB random writes", 4.3e12, 600e12)
        == f"ALL DATA WILL BE LOST on Samsung SSD 860 EVO 500GB, serial {SERIAL}, 67.1 MB (/dev/disk/by-id/ata-x).\n"
        "fill and 4 KiB random writes: writes 4.30 TB, 0.72 % of its rated 600 TB."
    )
    assert "its rated endurance is not known" in guard.announcement(drive, "purge", 0)
