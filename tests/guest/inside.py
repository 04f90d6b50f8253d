"""What the tests do to the disks and files of the guest, in its agent: a shell and a program for each step cost it ten
times as much. Machine.do(name, …) calls a function of this module; arguments and results are JSON."""

import contextlib
import ctypes
import fcntl
import glob
import io
import mmap
import os
import re
import stat
import struct
import subprocess
import time

BLKRRPART, BLKDISCARD = 0x125F, 0x1277  # linux/fs.h
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384  # linux/mount.h
HEAD_BYTES = 1 << 20
DISKS = ("sda", "sdb", "sdc", "vda", "nvme0n1", "nvme1n1")
SHELL = "/run/guest/busybox", "sh"
HELD, TELL = "/run/guest/held", "/run/guest/tell"
libc = ctypes.CDLL(None, use_errno=True)


def clean() -> None:
    """Free all disks of the guest and take every signature from them. Raises OSError if one stays in use."""
    mounts = [(line.startswith("/dev/"), unescaped(line.split()[1])) for line in lines("/proc/mounts")]
    of_disks = tuple(f"{point}/" for on_disk, point in mounts if on_disk)
    for _, point in reversed(mounts):
        if of_disks and f"{point}/".startswith(of_disks):
            call("umount2", point, 0)
    for line in lines("/proc/swaps")[1:]:
        call("swapoff", unescaped(line.split()[0]))
    if glob.glob("/sys/block/dm-*"):
        subprocess.run(["dmsetup", "remove_all", "--force"], check=True, env=os.environ | {"DM_DISABLE_UDEV": "1"})
    for disk in DISKS:
        zero(f"/dev/{disk}", HEAD_BYTES)
        reread_partitions(f"/dev/{disk}")


def reread_partitions(node: str) -> None:
    """Make the kernel read the disk's partition table. Raises OSError if the disk is in use."""
    for last in (False,) * 5 + (True,):
        fd = os.open(node, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, BLKRRPART)
            return
        except OSError:
            if last:
                raise
            time.sleep(0.3)  # udev may be looking at the disk
        finally:
            os.close(fd)


def zero(node: str, length: int, at: int = 0, block: int = 1 << 20) -> None:
    """Write zeros to a disk or its controller's namespace, past the page cache, in writes of `block` bytes."""
    write(node, bytes(length), at, block)


def write(node: str, content: bytes, at: int = 0, block: int = 1 << 20) -> None:
    """Write content to a disk past the page cache. Lengths and places are multiples of 4096 bytes."""
    fd = os.open(node, os.O_WRONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, min(block, len(content))) as page:
            for done in range(0, len(content), block):
                part = content[done : done + block]
                page[: len(part)] = part
                with memoryview(page)[: len(part)] as chunk:
                    written = os.pwritev(fd, [chunk], at + done)
                if written != len(part):
                    raise OSError(f"{written} of {len(part)} bytes written to {node}")
        os.fsync(fd)
    finally:
        os.close(fd)


def read_disk(node: str, at: int, length: int) -> bytes:
    """What the disk itself holds, read past the page cache."""
    fd = os.open(node, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, length) as page:
            os.preadv(fd, [page], at)
            return page[:]
    finally:
        os.close(fd)


def fill(node: str, line: str, places: list[int], length: int) -> None:
    """Write `line` over and over, `length` bytes of it to each place of the disk."""
    content = (line.encode() * (length // len(line) + 1))[:length]
    for at in places:
        write(node, content, at)


def only_zeros(node: str, at: int, length: int) -> bool:
    return not any(read_disk(node, at, length))


def partition(node: str, size_bytes: int) -> None:
    """One partition over all of the disk, from 1 MiB on, in a table of DOS."""
    start, sectors = 2048, size_bytes // 512 - 2048
    entry = bytes((0, 0, 0, 0, 0x83, 0, 0, 0)) + start.to_bytes(4, "little") + sectors.to_bytes(4, "little")
    write(node, (bytes(446) + entry + bytes(48) + b"\x55\xaa").ljust(4096, b"\0"))
    reread_partitions(node)
    wait_for(f"{node}1")


def discard(node: str, at: int, length: int) -> None:
    fd = os.open(node, os.O_WRONLY)
    try:
        fcntl.ioctl(fd, BLKDISCARD, struct.pack("QQ", at, length))
    finally:
        os.close(fd)


def root_at(point: str) -> None:
    """Make of a mounted file system a root like this one: its folders but /mnt are mounted below; it is read-only."""
    for entry in os.scandir("/"):
        below = f"{point}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), below)
        elif entry.is_dir() and entry.name != "mnt":
            os.makedirs(below, exist_ok=True)  # lost+found is there
            call("mount", entry.path, os.fsencode(below), None, MS_BIND | MS_REC, None)
    call("mount", point, os.fsencode(point), None, MS_REMOUNT | MS_RDONLY, None)


def matches(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern))


def slot_power(port: str, on: bool) -> None:
    """Switch the power of a root port's slot by its control register (PCI Express Base Specification 7.5.3.10, bit 10):
    the device of a slot without power answers nothing, and starts anew. `port`: the last part of its address."""
    [config] = glob.glob(f"/sys/bus/pci/devices/*{port}/config")
    with open(config, "r+b", buffering=0) as file:
        at, head = 0x34, file.read(256)
        while head[at := head[at] if at == 0x34 else head[at + 1]] != 0x10:  # the PCI Express capability
            pass
        old = int.from_bytes(head[at + 0x18 : at + 0x1A], "little")
        file.seek(at + 0x18)
        file.write((old & ~0x400 if on else old | 0x400).to_bytes(2, "little"))


def sync() -> None:
    os.sync()


def texts(*paths: str) -> list[str]:
    """The content of each file; the path may be a glob pattern that one file matches."""
    out = []
    for pattern in paths:
        [path] = glob.glob(pattern)
        with open(path) as file:
            out.append(file.read())
    return out


def put(path: str, text: str) -> None:
    """Write text to a file, of sysfs for one, in one write."""
    with open(path, "w") as file:
        file.write(text)


def wait_for(pattern: str, text: str = "", timeout_s: float = 200) -> str:
    """Wait until a file that the glob pattern matches, or a disk below /dev, is there and contains `text`; returns its
    path. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_s
    while True:
        for path in glob.glob(pattern):
            with contextlib.suppress(OSError):
                if path.startswith("/dev/"):
                    if stat.S_ISBLK(os.stat(path).st_mode):
                        return path
                elif not text or text in texts(path)[0]:
                    return path
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {timeout_s} s: {pattern} {text}")
        time.sleep(0.05)


def dry_runs(drives: dict[str, list[str]]) -> dict[str, tuple[int, str]]:
    """`run powerloss --dry-run` on each drive, named as its words say: {name: (exit code, what was said)}."""
    from ssdrig import cli
    from ssdrig.commands import drives as command

    command.POLL_TIMEOUT_S = 600
    reports = {}
    for name, words in drives.items():
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            switched = ("--power-off", "false", "--power-on", "false")
            code = cli.main(["run", "powerloss", "--drive", *words, *switched, "--dry-run"])
        reports[name] = (code, output.getvalue())
    return reports


def fifos() -> None:
    """Make the two fifos by which a test speaks with a holder."""
    for path in (HELD, TELL):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.mkfifo(path)


def tell(line: str) -> str:
    """Tell the holder a line, if there is one to tell; returns the line that it answers."""
    if line:
        put(TELL, f"{line}\n")
    with open(HELD) as file:
        return file.readline()


def call(function: str, path: str, *more) -> None:
    """A function of libc on a path. Raises OSError."""
    if getattr(libc, function)(os.fsencode(path), *more) != 0:
        raise OSError(ctypes.get_errno(), f"{function}: {os.strerror(ctypes.get_errno())}", path)


def lines(path: str) -> list[str]:
    with open(path) as file:
        return file.read().splitlines()


def unescaped(path: str) -> str:
    """A path as a table in /proc shows it: octal for blanks."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)
