"""The guard's small decisions, each from both sides: sizes, numbers, names, errors of the kernel, lines of tables."""

import errno
import os
import stat
from types import SimpleNamespace

import pytest
from drives import a_drive
from guarding import SERIAL, against, tree  # noqa: F401  fixture

from ssdrig.drive.target import claims, confirm, guard, lock, mounts, openers, uses
from ssdrig.drive.target.guard import Refusal
from ssdrig.drive.target.inventory import find
from ssdrig.drive.target.mounts import Mount


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
    found = guard._refusals(a_drive(serial="", name="sda", node="/dev/sda"), "", tree.root, uses.survey(tree.root))
    assert {"serial", "changed", "signature"} == {r.check for r in found} - {"kind"}
    assert next(r for r in found if r.check == "signature").override is None


@pytest.mark.parametrize("field", ["serial", "model", "nsid"])
def test_what_makes_a_drive_the_same(field):
    one = a_drive()
    assert guard._same_drive(one, a_drive(node="/dev/x", name="x"))
    assert not guard._same_drive(one, a_drive(**{field: "7" if field != "nsid" else 7}))


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
        os.close(guard._open_exclusive(drive, tree.root))
        for other in (os.makedev(drive.major + 1, drive.minor), os.makedev(drive.major, drive.minor + 1)):
            seen.st_rdev = other
            with pytest.raises(OSError, match="another device's"):
                guard._open_exclusive(drive, tree.root)
        seen.st_mode = stat.S_IFREG
        os.close(guard._open_exclusive(drive, tree.root))


def test_a_refused_node_is_closed_again(tree, monkeypatch):
    drive, before = find(SERIAL, tree.root), len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", lambda fd: SimpleNamespace(st_mode=stat.S_IFBLK, st_rdev=1))
        with pytest.raises(OSError):
            guard._open_exclusive(drive, tree.root)
    guard.refusals(drive, None, tree.root)
    assert len(os.listdir("/proc/self/fd")) == before


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
    "given, kept", [("ab-1._x", "AB-1._X"), ("a/b c", "A_B_C"), ("x" * 100, "X" * 100), ("x" * 101, "X" * 100)]
)
def test_name_of_a_lock(given, kept):
    assert lock.name(given) == f"{kept}.lock"


def test_a_lock_is_its_owners_and_names_its_process(tree):
    fd, why = lock.take("S", tree.root)
    folder, file = tree.root / "run/ssdrig", tree.root / "run/ssdrig/S.lock"
    assert (
        why == ""
        and stat.S_IMODE(file.stat().st_mode) == 0o600
        and stat.S_IMODE(folder.stat().st_mode) & 0o777 == 0o755
    )
    assert file.read_text() == f"{os.getpid()}\n"
    assert lock.holder("S", tree.root) == f"another ssdrig, process {os.getpid()},"
    os.pwrite(fd, b"x" * 40, 0)
    assert lock.holder("S", tree.root) == "another ssdrig"
    os.close(fd)
    assert lock.holder("S", tree.root) is None and lock.holder("T", tree.root) is None
    fd, _ = lock.take("S", tree.root)
    assert file.read_text() == f"{os.getpid()}\n"  # nothing of a longer text is left
    os.close(fd)


@pytest.mark.parametrize(
    "mode, safe", [(0o755, True), (0o700, True), (0o775, False), (0o757, False), (0o720, False), (0o702, False)]
)
def test_a_folder_that_others_can_write(tmp_path, mode, safe):
    tmp_path.chmod(mode)
    assert (lock._not_safe(str(tmp_path)) == "") == safe
    tmp_path.chmod(0o755)


def test_owner_of_the_folder(tmp_path, monkeypatch):
    real = os.lstat(tmp_path)
    for user, me, safe in ((0, 5, True), (5, 5, True), (6, 5, False), (1, 5, False)):
        seen = SimpleNamespace(st_mode=real.st_mode & ~0o022, st_uid=user)
        monkeypatch.setattr(os, "lstat", lambda path, seen=seen: seen)
        monkeypatch.setattr(os, "geteuid", lambda me=me: me)
        assert lock._not_safe("x") == ("" if safe else f"belongs to user {user}")


@pytest.mark.parametrize(
    "line, held",
    [
        ("1: FLOCK  ADVISORY  WRITE 512 {} 0 EOF", True),
        ("1: FLOCK  ADVISORY  WRITE 512 {}", True),
        ("1: POSIX  ADVISORY  WRITE 512 {} 0 EOF", False),
        ("1: FLOCK  ADVISORY  WRITE 512 00:00:1 0 EOF", False),
        ("1: FLOCK ADVISORY WRITE 512", False),
        ("", False),
    ],
)
def test_a_line_of_proc_locks(tmp_path, monkeypatch, line, held):
    seen = os.lstat(tmp_path)
    where = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    monkeypatch.setattr(lock.sysfs, "lines", lambda path: ["0: odd", line.format(where)])
    said = lock._holder_of_another_user(str(tmp_path))
    assert said == ("another ssdrig, process 512," if held else None)
    assert lock._holder_of_another_user(str(tmp_path / "gone")) is None


# --- mounts


@pytest.mark.parametrize(
    "line, mount",
    [
        ("22 27 8:1 / /a\\040b rw - ext4 /dev/sda1 rw,x", ("8:1", "/a b", "ext4", "/dev/sda1", "rw,x")),
        ("22 27 8:1 / /a rw shared:1 - ext4 none", ("8:1", "/a", "ext4", "none", "")),
        ("22 27 8:1 / /a - ext4 none rw", None),
        ("22 27 8:1 / /a rw - ext4", None),
        ("22 27 8:1 / /a rw", None),
        ("", None),
    ],
)
def test_a_line_of_mountinfo(line, mount):
    assert mounts._parse(line, "7 (x)") == (Mount(*mount, "7 (x)") if mount else None)


@pytest.mark.parametrize(
    "text, plain", [("\\040", " "), ("\\134", "\\"), ("\\048", "\\048"), ("\\04", "\\04"), ("a", "a")]
)
def test_escapes(text, plain):
    assert mounts.unescape(text) == plain


def test_the_nearest_mount():
    known = [
        Mount("1:1", point, "", "", "", process)
        for point, process in (("/", ""), ("/a", ""), ("/a/b", "7"), ("/ab", ""))
    ]
    for path, point in (("/a", "/a"), ("/a/b/c", "/a"), ("/abc", "/"), ("/ab/c", "/ab"), ("/", "/")):
        assert mounts.nearest(path, known).point == point
    assert mounts.nearest("/x", known[1:]) is None


def test_a_process_of_the_same_namespace_is_not_named(tree):
    for process in ("1", "77", "78"):
        tree.mount("sda", f"/mnt/{process}", process=process)
    for process in ("1", "77"):
        (tree.root / "proc" / process / "ns").mkdir()
        (tree.root / "proc" / process / "ns/mnt").symlink_to("mnt:[1]")
        (tree.root / "proc" / process / "root").symlink_to("/")
    tree.write("proc/x9/mountinfo", "1 2 8:0 / /no rw - ext4 /dev/sda rw\n")
    assert [m.where for m in mounts.all_mounts(tree.root) if m.point.startswith(("/mnt", "/no"))] == [
        "/mnt/1",
        "/mnt/78 in the mount namespace of process 78 (?)",
    ]


@pytest.mark.parametrize(
    "option, found", [("journal_path=/dev/sda", {"nvme0n1", "sda"}), ("data=/dev/sda", {"nvme0n1"})]
)
def test_journal_of_a_mount(tree, option, found):
    tree.mount("nvme0n1", "/mnt", options=f"rw,{option}")
    (mount,) = [m for m in mounts.all_mounts(tree.root) if m.point == "/mnt"]
    assert mounts.devices_of(mount, tree.root) == found


# --- who writes


@pytest.mark.parametrize(
    "flags, writes",
    [
        ("0100000", False),
        ("0100001", True),
        ("0100002", True),
        ("02", True),
        ("0", False),
        ("8", False),
        ("x", False),
        ("1" * 12, True),
        ("1" * 13, False),
        ("", False),
    ],
)
def test_flags_of_an_open_file(tmp_path, flags, writes):
    (tmp_path / "fdinfo").mkdir()
    (tmp_path / "fdinfo/3").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n")
    assert openers._writes(str(tmp_path), "3") is writes and openers._writes(str(tmp_path), "4") is False


@pytest.mark.parametrize(
    "line, mapped",
    [
        ("1000-2000 rw-s 00000000 08:00 77 /dev/sda", "1000-2000"),
        ("00aa-00ff rwxs 00000000 08:00 77 /dev/sda x", "aa-ff"),
        ("1000-2000 rw-p 00000000 08:00 77 /dev/sda", None),
        ("1000-2000 r--s 00000000 08:00 77 /dev/sda", None),
        ("1000-2000 rw-s 00000000 08:00 0 /dev/zero", None),
        ("1000-2000 rw-s 00000000 08:00 77", None),
        ("1000 rw-s 00000000 08:00 77 /dev/sda", None),
        ("x-y rw-s 00000000 08:00 77 /dev/sda", None),
    ],
)
def test_a_line_of_maps(tmp_path, line, mapped):
    (tmp_path / "maps").write_text(f"odd\n{line}\n")
    assert openers._mapped(str(tmp_path)) == ([f"{tmp_path}/map_files/{mapped}"] if mapped else [])


@pytest.mark.parametrize(
    "count, unseen", [(0, ""), (1, "the open files of 1 processes"), (2, "the open files of 2 processes")]
)
def test_processes_that_are_hidden(tree, count, unseen):
    assert openers._unseen(count, tree.root).startswith(unseen) and bool(openers._unseen(count, tree.root)) == bool(
        unseen
    )


@pytest.mark.parametrize(
    "entry, found", [("nvme3n1", ["nvme3n1"]), ("nvme3c0n2", ["nvme3n2"]), ("nvme3n1p1", []), ("hwmon1", [])]
)
def test_behind_a_controller(tmp_path, entry, found):
    (tmp_path / "nvme3" / entry).mkdir(parents=True)
    assert openers.behind_character_device(str(tmp_path / "nvme3")) == found
    assert openers.behind_character_device(str(tmp_path / "ng3n1")) == ["nvme3n1"]
    (tmp_path / "sg0/device/block/sda").mkdir(parents=True)
    assert openers.behind_character_device(str(tmp_path / "sg0")) == ["sda"]


def test_this_process_is_no_writer(tree):
    tree.process(os.getpid(), "me", "/dev/sda")
    tree.process(4194999, "qemu", "/dev/sda")
    tree.process(4194998, "qemu", "/dev/nvme0n1", flags="0100000")
    assert openers.writers(tree.root) == ({"sda": ["process 4194999 (qemu)"]}, "")


# --- claims


def test_a_claim_without_a_device_is_none(tree):
    assert claims.all_claims(tree.root, {"loop0": ("/x", "", ""), "loop1": ("/y", "sda", "")}) == [
        claims.Claim("sda", "loop", "loop1 is attached to sda")
    ]


# --- consent


class Terminal:
    def __init__(self, text="", tty=True):
        self.text, self.tty, self.shown = text, tty, ""

    isatty = lambda self: self.tty
    readline = lambda self: self.text
    flush = lambda self: None

    def write(self, text):
        self.shown += text


@pytest.mark.parametrize(
    "typed, tty_in, tty_err, good",
    [
        ("34567a\n", 1, 1, 1),
        ("34567A", 1, 1, 1),
        ("4567a", 1, 1, 0),
        ("234567a", 1, 1, 0),
        ("34567a", 0, 1, 0),
        ("34567a", 1, 0, 0),
    ],
)
def test_the_typed_end_of_a_serial(monkeypatch, typed, tty_in, tty_err, good):
    shown = Terminal(tty=bool(tty_err))
    monkeypatch.setattr(confirm.sys, "stdin", Terminal(typed, bool(tty_in)))
    monkeypatch.setattr(confirm.sys, "stderr", shown)
    if good:
        assert confirm.confirmed(a_drive(serial="1234567A"), None) == "1234567A"
    else:
        with pytest.raises(guard.UnsafeTarget, match="--destroy-data 1234567A"):
            confirm.confirmed(a_drive(serial="1234567A"), None)
    assert ("the last 6 characters" in shown.shown) == bool(tty_in and tty_err)
