"""The guard's checks of a drive, its node and its lock: each bound from both sides."""

import errno
import os
import stat
from types import SimpleNamespace

import pytest
from drives import a_drive
from guarding import SERIAL, tree  # noqa: F401  fixture
from looking import open_below

from ssdrig.drive import guard, uses
from ssdrig.drive.guard import Refusal
from ssdrig.drive.inventory import find


def checks(tree, serial=None, **more) -> set[str]:
    """Checks that refuse sda, were it so."""
    drive = find(SERIAL, tree.root)
    machine = uses.survey(tree.root)
    return {r.check for r in guard._refusals(drive.__class__(**vars(drive) | more), serial, tree.root, machine)}


def test_the_smallest_drive(tree):
    assert "capacity" not in checks(tree, capacity_bytes=16 << 20)
    assert "capacity" in checks(tree, capacity_bytes=(16 << 20) - 1)


@pytest.mark.parametrize("major, minor, refused", [(0, 0, True), (8, 0, False), (0, 1, False), (259, 5, False)])
def test_device_numbers(tree, major, minor, refused):
    assert ("number" in checks(tree, major=major, minor=minor)) == refused


@pytest.mark.parametrize("text, refused", [("0\n", False), ("1\n", True), ("", False)])
def test_read_only(tree, text, refused):
    tree.write("sys/block/sda/ro", text)
    assert ("read-only" in checks(tree)) == refused


@pytest.mark.parametrize(
    "given, expected", [(None, set()), (SERIAL, set()), ("X", {"destroy-data"}), ("", {"destroy-data"})]
)
def test_the_serial_of_destroy_data(tree, given, expected):
    assert checks(tree, given) == expected
    tree.partition("sda", 1)
    assert checks(tree, given) == expected | (set() if given == SERIAL else {"signature"})


def test_a_drive_without_serial_is_never_overridden(tree):
    tree.partition("sda", 1)
    refusals = guard._refusals(a_drive(serial="", name="sda", node="/dev/sda"), "", tree.root, uses.survey(tree.root))
    assert {"serial", "changed", "signature"} == {r.check for r in refusals} - {"kind"}
    assert next(r for r in refusals if r.check == "signature").override is None


@pytest.mark.parametrize("one, other, same", [("aB", "Ab", True), ("a", "b", False), ("", "", False)])
def test_the_same_unit(one, other, same):
    assert guard._same_unit(a_drive(serial=one), a_drive(serial=other)) is same


@pytest.mark.parametrize(
    "number, check",
    [
        (errno.EBUSY, "busy"),
        (errno.EACCES, "permission"),
        (errno.EPERM, "permission"),
        (errno.ENXIO, "open"),
        (errno.ENOENT, "open"),
    ],
)
def test_why_a_node_does_not_open(number, check):
    refusal = guard._not_opened(a_drive(), OSError(number, "words of the kernel"))
    assert refusal.check == check and refusal.override is None
    assert ("words of the kernel" in refusal.why) == (check != "busy")


def test_a_node_of_another_number_is_not_taken(tree, monkeypatch):
    drive = find(SERIAL, tree.root)
    seen = SimpleNamespace(st_mode=stat.S_IFBLK, st_rdev=os.makedev(drive.major, drive.minor))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda fd: seen)
        os.close(guard._open(drive, tree.root))
        for other in (os.makedev(drive.major + 1, drive.minor), os.makedev(drive.major, drive.minor + 1)):
            seen.st_rdev = other
            with pytest.raises(OSError, match="another device's"):
                guard._open(drive, tree.root)
        seen.st_mode = stat.S_IFREG
        os.close(guard._open(drive, tree.root))


def test_a_refused_node_is_closed_again(tree, monkeypatch):
    drive = find(SERIAL, tree.root)
    with open(tree.root / "dev/sda"):
        assert open_below(tree.root) == [str(tree.root / "dev/sda")]
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda fd: SimpleNamespace(st_mode=stat.S_IFBLK, st_rdev=1))
        with pytest.raises(OSError):
            guard._open(drive, tree.root)
    guard.refusals(drive, None, tree.root)
    assert open_below(tree.root) == []


def test_a_disk_is_alive_while_it_has_a_size(tmp_path):
    (tmp_path / "x").write_bytes(b"1")
    fd = os.open(tmp_path / "x", os.O_RDWR)
    assert guard._alive(fd) is True
    os.ftruncate(fd, 0)
    assert guard._alive(fd) is False
    os.close(fd)
    assert guard._alive(fd) is False and guard._alive(-1) is False


@pytest.mark.parametrize(
    "against_, do",
    [
        ([("signature", "--destroy-data S")], "add --destroy-data S"),
        ([("destroy-data", None)], "name one drive"),
        ([("destroy-data", None), ("signature", "--destroy-data S")], "name one drive"),
        ([("destroy-data", None), ("busy", None)], "free the drive"),
        ([("busy", None)], "free the drive"),
    ],
)
def test_what_to_do(against_, do):
    refusals = [Refusal(check, "why", override) for check, override in against_]
    error = guard._unsafe(a_drive(), refusals)
    assert error.do.startswith(do)
    assert all(f"{check}: why" in error.seen for check, _ in against_)


@pytest.mark.parametrize("model, serial, title", [("M", "S", "M, serial S"), ("", "", "model unknown, serial unknown")])
def test_title(model, serial, title):
    assert guard._title(a_drive(model=model, serial=serial)) == title


def test_announcement_of_a_drive_that_says_little():
    text = guard.announcement(a_drive(model="", by_id=None), "purge", 1e9, 50e9)
    assert "a drive of unknown model" in text and "(/dev/nvme9n1)" in text and "2 % of its rated 50.0 GB" in text


def test_let_go_and_take_again(tree):
    with guard.hold(find(SERIAL, tree.root), None, tree.root) as held:
        fd = held.fd
        assert fd >= 0 and held.recheck() is held.drive and held.fd == fd
        held.let_go()
        assert held.fd == -1
        with pytest.raises(OSError):
            os.fstat(fd)
        held.let_go()
        held.recheck()
        assert held.fd >= 0
    assert held.fd == -1 and not guard.busy(SERIAL, tree.root)


def test_descriptor_0_is_closed_too():
    held, there = guard.Held(a_drive(), "/", None), []
    original, os.close = os.close, there.append
    try:
        held.fd = 0
        held._close()
        held._close()
    finally:
        os.close = original
    assert there == [0] and held.fd == -1


@pytest.mark.parametrize(
    "given, name", [("ab-1._x", "AB-1._X"), ("a/b c", "A_B_C"), ("x" * 100, "X" * 100), ("x" * 101, "X" * 100)]
)
def test_name_of_a_lock(given, name):
    assert guard.name(given) == f"{name}.lock"


def test_a_lock_is_its_owners_and_names_its_process(tree):
    fd, why = guard.take("S", tree.root)
    folder, file = tree.root / "run/ssdrig", tree.root / "run/ssdrig/S.lock"
    assert (
        why == ""
        and stat.S_IMODE(file.stat().st_mode) == 0o600
        and stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o755
    )
    assert file.read_text() == f"{os.getpid()}\n"
    assert guard.lock_holder("S", tree.root) == f"another ssdrig, process {os.getpid()},"
    os.pwrite(fd, b"x" * 40, 0)
    assert guard.lock_holder("S", tree.root) == "another ssdrig"
    os.close(fd)
    assert guard.lock_holder("S", tree.root) is None and guard.lock_holder("T", tree.root) is None
    fd, _ = guard.take("S", tree.root)
    assert file.read_text() == f"{os.getpid()}\n"  # nothing of a longer text is left
    os.close(fd)


@pytest.mark.parametrize(
    "mode, safe", [(0o755, True), (0o700, True), (0o775, False), (0o757, False), (0o720, False), (0o702, False)]
)
def test_a_folder_that_others_can_write(tmp_path, mode, safe):
    tmp_path.chmod(mode)
    assert (guard._not_safe(str(tmp_path)) == "") == safe
    tmp_path.chmod(0o755)


def test_owner_of_the_folder(tmp_path, monkeypatch):
    real = os.lstat(tmp_path)
    for user, me, safe in ((0, 5, True), (5, 5, True), (6, 5, False), (1, 5, False)):
        seen = SimpleNamespace(st_mode=real.st_mode & ~0o022, st_uid=user)
        with monkeypatch.context() as patched:  # pytest looks at its own folders before it undoes a test's patches
            patched.setattr(os, "lstat", lambda path, seen=seen: seen)
            patched.setattr(os, "geteuid", lambda me=me: me)
            assert guard._not_safe("x") == ("" if safe else f"belongs to user {user}")
