"""Mounted file systems of every mount namespace on this machine, and the block devices of each."""

import os
import re
from dataclasses import dataclass

from ssdrig.drive import layers, openers, sysfs

OWN = ("1", "self")  # process 1 sees what a private mount namespace of this process hides


@dataclass(frozen=True)
class Mount:
    number: str  # "8:1"; btrfs and overlay show a number that belongs to no device
    point: str
    type: str
    source: str
    options: str  # of the file system, comma separated
    process: str  # "" in the namespace of process 1 or of this process, otherwise a process that has it: "77 (sh)"

    @property
    def where(self) -> str:
        return f"{self.point} in the mount namespace of process {self.process}" if self.process else self.point


def all_mounts(root: str | os.PathLike) -> list[Mount]:
    """The mounts of every namespace whose threads may be read; each mount once for each place it shows up at."""
    out: dict[tuple, Mount] = {}
    seen = set()
    processes = sorted(p for p in sysfs.listing(sysfs.within(root, "proc")) if p.isdecimal())
    places = [("", sysfs.within(root, "proc", process)) for process in OWN]
    places += [(p, thread) for p in processes for thread in openers.threads(sysfs.within(root, "proc", p))]
    for process, folder in places:
        view = _view(folder)
        if view in seen:
            continue
        seen.add(view)
        who = f"{process} ({sysfs.text(sysfs.within(root, 'proc', process, 'comm')) or '?'})" if process else ""
        for line in sysfs.lines(folder, "mountinfo"):
            if mount := _parse(line, who):
                out.setdefault((mount.number, mount.point, mount.source), mount)
    return list(out.values())


def _view(folder: str) -> tuple:
    """What the mount table of a thread depends on: its mount namespace and its root folder. One in a chroot sees only
    the mounts below its root, under other points. A thread may have its own, and the main thread that has ended has
    none."""
    try:
        namespace, root = os.readlink(os.path.join(folder, "ns/mnt")), os.path.join(folder, "root")
        seen = os.stat(
            root
        )  # the link's text is "/" for this process and for process 1 alike when this one is chrooted
        return namespace, os.readlink(root), seen.st_dev, seen.st_ino
    except OSError:
        return (folder,)


def _parse(line: str, process: str) -> Mount | None:
    left, _, right = line.partition(" - ")
    words, rest = left.split(" "), right.split(" ")
    if len(words) < 6 or len(rest) < 2:
        return None
    return Mount(words[2], unescape(words[4]), rest[0], unescape(rest[1]), rest[2] if len(rest) > 2 else "", process)


def unescape(text: str) -> str:
    """The kernel writes blanks in paths as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def devices_of(mount: Mount, root: str | os.PathLike) -> set[str]:
    """Kernel names of the block devices of a mounted file system: its device, all members of a btrfs, the
    log and real-time devices of an XFS."""
    out = {layers.name_of_number(mount.number, root)}
    if mount.source.startswith("/dev/"):
        out |= {
            layers.name_of(path, root) for path in (mount.source, *mount.source.split(":"))
        }  # bcachefs: /dev/a:/dev/b
    for option in mount.options.split(","):
        name, _, path = option.partition("=")
        if name in ("logdev", "rtdev", "journal_path"):
            out.add(layers.name_of(unescape(path), root))
    if mount.type == "btrfs":
        for pool in sysfs.listing(sysfs.within(root, "sys/fs/btrfs")):
            members = set(sysfs.listing(sysfs.within(root, "sys/fs/btrfs", pool, "devices")))
            out |= members if members & out else set()
    return {name for name in out if name and os.path.isdir(sysfs.within(root, "sys/class/block", name))}


def nearest(path: str, mounts: list[Mount]) -> Mount | None:
    """The mount of a path, in this process's or process 1's namespace."""
    inside = [m for m in mounts if not m.process and (path + "/").startswith(m.point.rstrip("/") + "/")]
    return max(inside, key=lambda m: len(m.point), default=None)
