"""Mounts, writers, claims and consent as the guard reads them: each bound from both sides."""

import contextlib
import os
import platform
import subprocess
import sys

import pytest
from disktree import own_files
from drives import a_drive
from guarding import tree  # noqa: F401  fixture
from loop_device import loop_device

from ssdrig.drive import claims, confirm, guard, openers, uses
from ssdrig.drive.uses import Mount

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
    assert uses._parse(line, "7 (x)") == (Mount(*mount, "7 (x)") if mount else None)


@pytest.mark.parametrize(
    "text, plain", [("\\040", " "), ("\\134", "\\"), ("\\048", "\\048"), ("\\04", "\\04"), ("a", "a")]
)
def test_escapes(text, plain):
    assert uses.unescape(text) == plain


def test_the_nearest_mount():
    known = [
        Mount("1:1", point, "", "", "", process)
        for point, process in (("/", ""), ("/a", ""), ("/a/b", "7"), ("/ab", ""))
    ]
    for path, point in (("/a", "/a"), ("/a/b/c", "/a"), ("/abc", "/"), ("/ab/c", "/ab"), ("/", "/")):
        assert uses.nearest(path, known).point == point
    assert uses.nearest("/x", known[1:]) is None


def test_a_process_of_the_same_namespace_is_not_named(tree):
    for process in ("1", "77", "78"):
        tree.mount("sda", f"/mnt/{process}", process=process)
    for process in ("1", "77"):
        (tree.root / own_files(process) / "ns").mkdir()
        (tree.root / own_files(process) / "ns/mnt").symlink_to("mnt:[1]")
        (tree.root / own_files(process) / "root").symlink_to("/")
    tree.write("proc/x9/task/x9/mountinfo", "1 2 8:0 / /no rw - ext4 /dev/sda rw\n")
    assert [m.where for m in uses.all_mounts(tree.root) if m.point.startswith(("/mnt", "/no"))] == [
        "/mnt/1",
        "/mnt/78 in the mount namespace of process 78 (?)",
    ]


@pytest.mark.parametrize(
    "option, mounts_read", [("journal_path=/dev/sda", {"nvme0n1", "sda"}), ("data=/dev/sda", {"nvme0n1"})]
)
def test_journal_of_a_mount(tree, option, mounts_read):
    tree.mount("nvme0n1", "/mnt", options=f"rw,{option}")
    (mount,) = [m for m in uses.all_mounts(tree.root) if m.point == "/mnt"]
    assert uses.devices_of(mount, tree.root) == mounts_read


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
    for folder in ("fd", "fdinfo"):
        (tmp_path / folder).mkdir()
    (tmp_path / "fd/3").symlink_to("/dev/sda")
    (tmp_path / "fdinfo/3").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n")
    assert openers._writes(str(tmp_path), "3") is writes and openers._writes(str(tmp_path), "4") is False
    (tmp_path / "fd/3").unlink()
    (tmp_path / "fd/3").symlink_to("socket:[77]")
    assert not openers._writes(str(tmp_path), "3")


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
    for thread, text in (("7", ""), ("8", f"odd\n{line}\n")):
        (tmp_path / "task" / thread).mkdir(parents=True)
        (tmp_path / "task" / thread / "maps").write_text(text)
    path = line.split(None, 5)[-1]
    assert openers._mapped(str(tmp_path)) == ([path, f"{tmp_path}/task/8/root{path}"] if mapped else [])
    (tmp_path / "map_files").mkdir()
    (tmp_path / f"map_files/{mapped}").symlink_to(path)
    assert openers._mapped(str(tmp_path)) == ([f"{tmp_path}/map_files/{mapped}"] if mapped else [])


@pytest.mark.parametrize(
    "count, unseen", [(0, ""), (1, "the open files of 1 processes"), (2, "the open files of 2 processes")]
)
def test_processes_that_are_hidden(tree, count, unseen):
    assert openers._unseen(count, tree.root).startswith(unseen) and bool(openers._unseen(count, tree.root)) == bool(
        unseen
    )


@pytest.mark.parametrize(
    "entry, names", [("nvme3n1", ["nvme3n1"]), ("nvme3c0n2", ["nvme3n2"]), ("nvme3n1p1", []), ("hwmon1", [])]
)
def test_behind_a_controller(tmp_path, entry, names):
    (tmp_path / "nvme3" / entry).mkdir(parents=True)
    assert openers.disks_of_character_device(str(tmp_path / "nvme3")) == names
    assert openers.disks_of_character_device(str(tmp_path / "ng3n1")) == ["nvme3n1"]
    (tmp_path / "sg0/device/block/sda").mkdir(parents=True)
    assert openers.disks_of_character_device(str(tmp_path / "sg0")) == ["sda"]


def test_this_process_is_no_writer(tree):
    tree.process(os.getpid(), "me", "/dev/sda")
    tree.process(4194999, "qemu", "/dev/sda")
    tree.process(4194998, "qemu", "/dev/nvme0n1", flags="0100000")
    assert openers.writers(tree.root) == ({"sda": ["process 4194999 (qemu)"]}, "")


HOLDS = "import os, subprocess, sys; fd = os.open(sys.argv[1], os.O_RDWR); print(end='x', flush=True); sys.stdin.read()"
HOLDS_BY_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS!r}, sys.argv[1]])"


@contextlib.contextmanager
def holding(path, code=HOLDS):
    """A program in a session of its own that has `path` open for writing."""
    argv = [sys.executable, "-c", code, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        assert process.stdout.read(1) == "x"
        yield process
        process.stdin.close()


@pytest.mark.parametrize("code", [HOLDS, HOLDS_BY_A_CHILD])
def test_own_programs_are_no_others_and_excuse_none(tmp_path, code):
    file = tmp_path / "disk"
    file.write_bytes(bytes(1 << 20))
    with loop_device(file) as node, holding(node, code) as ours:
        name = os.path.basename(node)
        assert len(openers.writers("/")[0][name]) == 1
        with openers.own(ours):
            assert name not in openers.writers("/")[0]
            with holding(node) as other:  # a child of ours that was not started to work on the drive
                assert openers.writers("/")[0][name] == [
                    f"process {other.pid} ({os.path.basename(sys.executable)[:15]})"
                ]
        assert name not in openers.writers("/")[0]  # it has not ended yet
        ours.stdin.close()
        ours.wait()
    openers._own.discard(ours.pid)


EXIT = {"x86_64": 60, "aarch64": 93}  # exit(2) of one thread, by its number
THREADS = """
import ctypes, mmap, os, sys, threading, time
libc, how = ctypes.CDLL(None, use_errno=True), sys.argv[2]

def hold():
    if how == "unshared" and libc.unshare(0x400):  # CLONE_FILES
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    fd = os.open(sys.argv[1], os.O_RDWR)
    if how == "mapped":
        libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)  # mmap.mmap keeps a descriptor
        os.close(fd)
    while how != "unshared" and " Z " not in open("/proc/self/stat").read():
        time.sleep(0.001)  # the main thread goes on for a moment
    print("holds", flush=True)
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=hold).start()
if how != "unshared":
    libc.syscall(int(sys.argv[3]), 0)  # the main thread ends, without the lock of the interpreter
"""


@contextlib.contextmanager
def held_by_a_thread(path, how):
    """A real process whose second thread holds `path`: "open" or "mapped" when the main thread has ended, or "unshared"
    in a table of files of its own."""
    argv = [sys.executable, "-c", THREADS, str(path), how, str(EXIT[platform.machine()])]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "holds\n"
        yield process
        process.stdin.close()


@pytest.mark.skipif(platform.machine() not in EXIT, reason="the number of exit(2) is not known here")
@pytest.mark.parametrize("how", ["open", "mapped", "unshared"])
def test_a_thread_that_holds_a_disk_when_the_main_thread_does_not(tree, how):
    """/proc/PID/fd and maps are those of the main thread. The processes are real, the disk is of the tree."""
    disk = tree.root / "dev/sda"
    disk.write_bytes(bytes(4096))
    (tree.root / "proc").rename(tree.root / "not-proc")
    (tree.root / "proc").symlink_to("/proc")
    with held_by_a_thread(disk, how) as process:
        assert not any(os.path.realpath(fd) == str(disk) for fd in _descriptors(f"/proc/{process.pid}/fd"))
        writers, _ = openers.writers(tree.root)
        assert [words.split()[:2] for words in writers["sda"]] == [["process", str(process.pid)]]
    assert openers.writers(tree.root)[0] == {}


def _descriptors(folder):
    """Those that this user may see: the ones of a main thread that has ended are root's."""
    with contextlib.suppress(PermissionError):
        return [os.path.join(folder, fd) for fd in os.listdir(folder)]
    return []


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
