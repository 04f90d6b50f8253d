"""Who on this machine uses which disk: mounts, swap, the running system, drivers of the kernel, programs that write.

Devices are identified by the kernel's numbers and sysfs, not by the names in a table, and followed through
volumes, RAIDs, partitions and loop devices down to whole disks. host/docs/how/holders.md lists every way to
hold a disk.

Mounted file systems of every mount namespace on this machine, and the block devices of each."""

import os
import re
from dataclasses import dataclass

from ssdrig.drive import claims, inventory, layers, openers, sysfs
from ssdrig.drive.inventory import Drive

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


SYSTEM_MOUNTS = ("/", "/boot", "/boot/efi", "/efi", "/usr", "/var")


@dataclass(frozen=True)
class Machine:
    """Read once for many drives. Disks by the kernel's name."""

    drives: list[Drive]
    mounted: dict[str, dict[str, str]]  # {disk: {mount point: the device mounted there}}
    system: dict[str, set[str]]  # {disk: system mount points that need it}
    swap: dict[str, list[str]]  # {disk: devices swapped to}
    claims: dict[str, dict[str, list[str]]]  # {disk: {check: which drivers use it, in words}}
    writers: dict[str, list[str]]  # {disk: processes that have it, or a volume on it, open for writing}
    unseen: str  # why some processes are invisible; "" if all are visible


def survey(root: str | os.PathLike = "/") -> Machine:
    """Read who mounts, swaps to, exports and writes which disk."""
    known = all_mounts(root)
    attached = layers.attached_loops(root)
    below_loop = {name: _below_loop(*where, known, root) for name, where in attached.items()}

    def disks_of(devices) -> set[str]:
        return {disk for device in devices for disk in layers.disks_below(device, root, below_loop)}

    mounted: dict[str, dict[str, str]] = {}
    system: dict[str, set[str]] = {}
    for mount in known:
        devices = devices_of(mount, root)
        disks = disks_of(devices)
        for disk in disks:
            mounted.setdefault(disk, {})[mount.where] = ", ".join(sorted(devices))
        if mount.point in SYSTEM_MOUNTS and not mount.process:
            for disk in disks | disks_of(_devices_of_overlay(mount, known, root)):
                system.setdefault(disk, set()).add(mount.point)
    swap: dict[str, list[str]] = {}
    for line in sysfs.lines(sysfs.within(root, "proc/swaps"))[1:]:
        if line.startswith("/"):
            device = layers.name_of(unescape(line.split()[0]), root)
            for disk in disks_of({device}):
                swap.setdefault(disk, []).append(device)
    claimed: dict[str, dict[str, list[str]]] = {}
    for claim in claims.all_claims(root, attached):
        for disk in disks_of({claim.device}):
            claimed.setdefault(disk, {}).setdefault(claim.check, []).append(claim.why)
    opened, unseen = openers.writers(root)
    writers: dict[str, list[str]] = {}
    for device, who in opened.items():
        for disk in disks_of({device}):
            writers.setdefault(disk, []).extend(who)
    return Machine(inventory.all_drives(root), mounted, system, swap, claimed, writers, unseen)


def disks_of_folder(folder: str | os.PathLike, root: str | os.PathLike = "/") -> set[str]:
    """The disks that hold a folder, or would hold it once it is made."""
    known = all_mounts(root)
    where = nearest(os.path.realpath(folder), known)
    if where is None:
        return set()
    attached = layers.attached_loops(root)
    below_loop = {name: _below_loop(*at, known, root) for name, at in attached.items()}
    devices = devices_of(where, root) | _devices_of_overlay(where, known, root)
    return {disk for device in devices for disk in layers.disks_below(device, root, below_loop)}


def _below_loop(path: str, device: str, number: str, known: list[Mount], root) -> set[str]:
    """The block devices below a loop device: the one it is attached to, or those that hold the file it is attached
    to."""
    if device:
        return {device}
    by_number = [mount for mount in known if number and mount.number == number]
    # btrfs: files have other numbers
    mounts_of = by_number or [mount for mount in [nearest(path, known)] if mount]
    return {device for mount in mounts_of for device in devices_of(mount, root)}


def _devices_of_overlay(mount: Mount, known: list[Mount], root) -> set[str]:
    """The devices below the folders that an overlay (a container's or live system's root) is made of."""
    out = set()
    if mount.type == "overlay":
        for option in mount.options.split(","):
            name, _, folders = option.partition("=")
            for folder in folders.split(":") if name in ("lowerdir", "upperdir", "workdir") else ():
                below = nearest(unescape(folder), [m for m in known if m is not mount])
                out |= devices_of(below, root) if below else set()
    return out
