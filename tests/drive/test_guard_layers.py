"""Devices below devices, files below mounts, and how nodes and locks are opened."""

import dataclasses
import errno
import fcntl
import os
import struct

import pytest
from drives import a_drive
from guarding import SERIAL, tree  # noqa: F401  fixture

from ssdrig.drive import guard, layers, sysfs, uses
from ssdrig.drive.inventory import find
from ssdrig.drive.uses import Mount


def test_a_link_that_vanishes_while_it_is_read(tmp_path, monkeypatch):
    """A drive is pulled between the look at its link and the reading of it."""
    link = tmp_path / "sda"
    link.symlink_to("gone")
    read = os.readlink

    def vanishing(path, **options):
        link.unlink(missing_ok=True)
        return read(path, **options)

    monkeypatch.setattr(os, "readlink", vanishing)
    assert sysfs.real(str(link)) == str(link) and not link.is_symlink()


def test_numbers_of_a_loop_device(monkeypatch, tmp_path):
    (tmp_path / "loop0").touch()
    numbers = [0, 9, 0]
    monkeypatch.setattr(layers.sysfs, "node_number", lambda node: ("block", "7:0"))
    monkeypatch.setattr(
        layers.fcntl,
        "ioctl",
        lambda fd, code, buffer: (
            struct.pack("=QQQ", *numbers).ljust(len(buffer), b"\0") if (code, len(buffer)) == (0x4C05, 232) else None
        ),
    )
    assert layers._loop_numbers(str(tmp_path / "loop0")) == ("", "")
    numbers[:] = [os.makedev(8, 1), 9, 0]
    assert layers._loop_numbers(str(tmp_path / "loop0")) == ("", "8:1")
    numbers[:] = [0, 9, os.makedev(259, 3)]
    assert layers._loop_numbers(str(tmp_path / "loop0")) == ("259:3", "")
    assert layers._loop_numbers(str(tmp_path / "gone")) == ("", "")
    monkeypatch.setattr(layers.sysfs, "node_number", lambda node: ("", ""))
    assert layers._loop_numbers(str(tmp_path / "loop0")) == ("", "")


def test_names_by_number(tree):
    assert layers.name_of_number("8:0", tree.root) == "sda" and layers.name_of_number("99:9", tree.root) == ""
    assert layers.name_of_number("", tree.root) == "" and layers.name_of("/dev/gone", tree.root) == ""
    assert layers.name_of("/dev/sda", tree.root) == "sda" and layers.name_of("\0", tree.root) == ""
    assert layers.disks_below("", tree.root, {}) == layers.disks_below("sdz", tree.root, {}) == set()


# --- files below loop devices, members of a pool


@pytest.mark.parametrize(
    ("path", "device", "number", "below"),
    [
        ("/mnt/disk.img", "", "8:1", {"/"}),  # the kernel's number counts before what the path looks like here
        ("/mnt/disk.img", "", "0:44", {"/mnt"}),  # btrfs: no mount has that number
        ("/mnt/disk.img", "", "", {"/mnt"}),
        ("/other.img", "", "8:17", {"/mnt"}),
        ("/mnt/disk.img", "sdb", "8:1", {"sdb"}),
        ("gone", "", "", set()),
    ],
)
def test_what_lies_below_a_loop_device(monkeypatch, path, device, number, below):
    known = [Mount("8:1", "/", "ext4", "/dev/sda1", "", ""), Mount("8:17", "/mnt", "ext4", "/dev/sdb1", "", "")]
    monkeypatch.setattr(uses, "devices_of", lambda mount, root: {mount.point})
    assert uses._below_loop(path, device, number, known, "/") == below


def test_a_file_system_that_is_mounted_twice_has_the_devices_of_both_lines(monkeypatch):
    known = [Mount("8:1", point, "ext4", "/dev/sda1", "", "") for point in ("/", "/again")]
    monkeypatch.setattr(uses, "devices_of", lambda mount, root: {mount.point})
    assert uses._below_loop("/x", "", "8:1", known, "/") == {"/", "/again"}


def test_the_members_of_another_btrfs_are_not_used(tree):
    tree.link("sys/fs/btrfs/uuid-1/devices/sda", "sys/class/block/sda")
    tree.link("sys/fs/btrfs/uuid-2/devices/nvme0n1", "sys/class/block/nvme0n1")
    mount = Mount("0:44", "/mnt", "btrfs", "/dev/sda", "rw", "")
    assert uses.devices_of(mount, tree.root) == {"sda"}


# --- how files are opened


@pytest.fixture
def opened(monkeypatch):
    """Flags of each open, and the descriptors that are still open."""
    flags, still = [], set()
    real_open, real_close = os.open, os.close

    def open_(path, how, *mode, **more):
        fd = real_open(path, how, *mode, **more)
        flags.append(how)
        still.add(fd)
        return fd

    def close(fd):
        still.discard(fd)
        real_close(fd)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "close", close)
    return flags, still


@pytest.mark.parametrize("fails", [False, True])
def test_a_loop_device_is_opened_without_waiting_and_closed(monkeypatch, tmp_path, opened, fails):
    flags, still = opened
    node = tmp_path / "loop0"
    node.write_bytes(b"")
    flags.clear()

    def ioctl(*_):
        if fails:
            raise OSError(errno.ENXIO, "no disk")
        return struct.pack("=QQQ", 0, 0, os.makedev(8, 1))

    monkeypatch.setattr(layers.sysfs, "node_number", lambda node: ("block", "7:0"))
    monkeypatch.setattr(layers.fcntl, "ioctl", ioctl)
    assert layers._loop_numbers(str(node)) == ("" if fails else "8:1", "")
    assert flags == [os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC] and not still


def test_a_lock_that_is_held_is_tried_for_half_a_second(monkeypatch, tree, opened):
    flags, still = opened
    slept = []
    monkeypatch.setattr(guard.time, "sleep", slept.append)

    def refuse(fd, how):
        assert how == fcntl.LOCK_EX | fcntl.LOCK_NB
        raise BlockingIOError

    monkeypatch.setattr(guard.fcntl, "flock", refuse)
    assert guard.take("S", tree.root) == (None, "another ssdrig is at work on this drive")
    assert slept == [0.02] * 25 and not still
    assert flags == [os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC]


def test_asking_for_the_holder_opens_to_read_follows_no_link_and_closes(tree, opened):
    flags, still = opened
    fd, _ = guard.take("S", tree.root)
    assert guard.lock_holder("S", tree.root) and still == {fd}
    assert flags[1:] == [os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC]
    os.close(fd)
    (tree.root / guard.FOLDER / "T.lock").symlink_to("S.lock")
    fd, _ = guard.take("S", tree.root)
    assert guard.lock_holder("T", tree.root) is None
    os.close(fd)


def test_a_drive_is_opened_exclusively_to_read(tree, opened):
    flags, still = opened
    fd = guard._open(a_drive(name="sda", node="/dev/sda", major=8, minor=0), tree.root)
    assert flags == [os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC] and still == {fd}
    os.close(fd)


def test_a_drive_that_stayed_is_not_opened_again(tree, opened):
    """One that came back is, by its number or its appearance, and the old descriptor is closed."""
    flags, still = opened
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        first, opens = held.fd, len(still)
        held.recheck()
        assert held.fd == first and len(still) == opens
        (tree.root / "sys/block/sda/diskseq").write_text("77\n")
        flags.clear()
        held.recheck()
        assert os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC in flags and len(still) == opens
        assert held.sequence == "77" and held.fd in still
        flags.clear()
        held.recheck()
        assert os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC not in flags
        held.drive = dataclasses.replace(held.drive, minor=99)
        held.recheck()
        assert os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC in flags and held.drive.minor == 0
    assert not still


def test_what_to_do_about_a_drive_that_is_away(tree):
    with guard.hold(find(SERIAL, tree.root), SERIAL, tree.root) as held:
        tree.remove("sda")
        with pytest.raises(guard.UnsafeTarget) as caught:
            held.recheck()
        assert caught.value.do == "bring the drive back, then start again"
        tree.sata("sdb", size_bytes=64 << 20)
        with pytest.raises(guard.UnsafeTarget) as caught:
            held.recheck()
        assert caught.value.do.startswith("start again with the drive's serial")


@pytest.mark.parametrize(
    ("root", "known", "refused"), [("/", {"b": 1}, True), ("/", None, False), ("", {"b": 1}, False)]
)
def test_a_bench_whose_end_is_unknown(tree, monkeypatch, root, known, refused):
    """The latch is this machine's; a tree of a test has none."""
    drive = find(SERIAL, tree.root)
    monkeypatch.setattr(guard.latch, "of_drive", lambda serial: known if serial == SERIAL else None)
    monkeypatch.setattr(guard.latch, "in_words", lambda what: "its bench")
    monkeypatch.setattr(guard, "_content", lambda drive, root: "")
    refusals = guard._refusals(drive, None, root or tree.root, uses.survey(tree.root))
    whys = [r.why for r in refusals if r.check == "bench"]
    assert whys == (["its bench; look at its supply, then ./ssdrig rig clear"] if refused else [])
