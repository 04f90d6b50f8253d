"""Protects the user's data: every reason why a disk must not be written, and the hold on one that may be.

The kernel's exclusive open is the strongest check; the others name the process in the way, and detect uses that the
kernel does not count: a signature on the disk, a virtual machine that has the node open, a second path to the same
drive. Only content (a file system, a partition table) has an override, --destroy-data with this very drive's serial.

One ssdrig at a time works on a drive: a lock on a file for each serial, in a folder that only its owner can write.

Any process that can open a file can lock it, so only the owner may open these; a process that may not open one reads
/proc/locks."""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdrig.base import files, latch
from ssdrig.base.errors import ChangedDrive, DriveError, ExchangedDrive, UnsafeTarget, reason
from ssdrig.base.terminal import printable
from ssdrig.base.words import digits, serial_key, size
from ssdrig.drive import block, claims, identity, inventory, layers, sysfs, unrestored
from ssdrig.drive.door import Door, controller, path_of, sequence
from ssdrig.drive.door import alive as _alive
from ssdrig.drive.inventory import Drive
from ssdrig.drive.uses import Machine, survey

FOLDER = "run/ssdrig"


def name(serial: str) -> str:
    """Name of the lock file: the same for each spelling of a serial."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", serial_key(serial).upper())[:100] + ".lock"


def take(serial: str, root: str | os.PathLike) -> tuple[int | None, str]:
    """(descriptor that holds the lock until it is closed, ""), or (None, why not)."""
    folder = sysfs.within(root, FOLDER)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o755)
        if why := _not_safe(folder):
            return None, f"no lock can be taken ({folder} {why})"
        path = os.path.join(folder, name(serial))
        fd = files.lock_file(path)
    except OSError as error:
        return None, f"no lock can be taken ({folder}: {error.strerror}): run it as root"
    for _ in range(25):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)  # a holder() elsewhere takes it for an instant
            continue
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd, ""
    who = _pid_in(fd)
    os.close(fd)
    return None, f"{who} is at work on this drive"


def lock_holder(serial: str, root: str | os.PathLike) -> str | None:
    """The holder of the drive, in words, or None."""
    folder = sysfs.within(root, FOLDER)
    path = os.path.join(folder, name(serial))
    if _not_safe(folder):
        return None  # no ssdrig takes a lock there
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:
        pid = files.locked_by(path)
        return f"another ssdrig, process {pid}," if pid else None
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid_in(fd)
    finally:
        os.close(fd)
    return None


def _not_safe(folder: str) -> str:
    """Why another user could put a file there; "" if none could."""
    try:
        seen = os.lstat(folder)
    except OSError as error:
        return f"is not to be had: {error.strerror}"
    if not stat.S_ISDIR(seen.st_mode):
        return "is not a folder"
    if seen.st_uid not in (0, os.geteuid()):
        return f"belongs to user {seen.st_uid}"
    return "can be written by other users" if seen.st_mode & 0o022 else ""


def _pid_in(fd: int) -> str:
    words = sysfs.clean(os.pread(fd, 20, 0))
    return f"another ssdrig, process {words}," if words.isdecimal() else "another ssdrig"


SMALLEST_DRIVE_BYTES = 16 << 20  # failed drives show up with 0, 32 KiB, 2 MB or 8 MB and a name of their controller's
WIPEFS_TIMEOUT_S = 20
CONTENT = "signature"
READ_ONLY = "read-only"
PASSING = ("writer",)  # what may be over in a moment
# what speaks against reading a drive, too: it could be another one, or its supply is in an unknown state
OF_READERS = ("gone", "kind", "changed", "serial", "twin", "number", "capacity", "bench", "lock", "permission", "open")
LOOKS_S = (0.3, 1.0, 3.0)  # pauses between looks at it


@dataclass(frozen=True)
class Refusal:
    """check: its short name. override: the flag that lifts it, None if nothing does."""

    check: str
    why: str
    override: str | None = None

    def __str__(self):
        return f"{self.check}: {self.why}"


def refusals(
    drive: Drive,
    destroy_serial: str | None = None,
    root: str | os.PathLike = "/",
    machine: Machine | None = None,
    resumed: Path | None = None,
) -> list[Refusal]:
    """All that speaks against writing to `drive`; empty if nothing does. `machine`: a survey made before, for many
    drives; `resumed`: the run that goes on, which restores the settings it changed."""
    out = _refusals(drive, destroy_serial, root, machine or survey(root))
    if holder := lock_holder(drive.serial, root):
        out.append(Refusal("lock", f"{holder} is at work on this drive"))
    if not any(r.check == "gone" for r in out):
        try:
            fd = _open(drive, root)
        except OSError as error:
            out.append(_not_opened(drive, error))
        else:
            out += [] if holder else left_changed(drive, path_of(fd), root, resumed)
            os.close(fd)
    return out


@dataclass
class Held:
    """A drive that this process alone may open exclusively, and that no other ssdrig works on. `reads`: it is open for
    reading only and may be in use by others."""

    drive: Drive
    root: str | os.PathLike
    destroy_serial: str | None
    fd: int = field(default=-1, repr=False)  # read-only, exclusive
    sequence: str = ""  # the kernel's number of this appearance of a disk (sysfs diskseq, Linux 5.15), "" before
    opened: Door = field(default_factory=Door, repr=False)
    _marks: dict[int, bytes] = field(default_factory=dict, repr=False)
    _was_away: bool = False  # since a mark was last seen
    _taken: int = 0  # how often the node was opened
    reads: bool = False

    @property
    def path(self) -> str:
        """The only way to read and write this drive, for our own code and for programs: it opens the held descriptor,
        whichever disk has the drive's name in /dev by now. It is checked each time, and is the same from hold() on.
        Raises DriveError while the drive is released or gone, UnsafeTarget if the path leads to another disk."""
        return self.opened.path(self.drive)

    @contextlib.contextmanager
    def controller(self) -> Iterator[str]:
        """The way to its NVMe controller, as `path`; the kernel does not give the controller's name again until the end
        of the block. Raises DriveError, UnsafeTarget."""
        self.opened.path(self.drive)
        with controller(self.drive, self.root) as path:
            yield path

    @contextlib.contextmanager
    def named(self) -> Iterator[Drive]:
        """The drive, whose names in /dev and /sys are its own until the end of the block: the kernel gives none of them
        to another disk while this one is held. For what can be asked by name alone, such as SMART and the kernel's
        counters. Raises DriveError where the drive is let go, before or meanwhile, UnsafeTarget as `path`."""
        self.opened.path(self.drive)
        drive, taken = self.drive, self._taken
        yield drive
        if taken != self._taken or not self.opened.is_open:
            raise DriveError(f"{_title(drive)} to be held all along", "it was let go meanwhile", "nothing is lost")

    def check(self) -> Drive:
        """recheck(), and check that no other process uses the drive since. Brief uses are checked again: a daemon that
        polls SMART opens some disks for writing. Raises UnsafeTarget."""
        drive = self.recheck()
        for pause_s in (*LOOKS_S, None):
            reasons = _refusals(drive, drive.consent, self.root, survey(self.root))
            against = [r for r in reasons if r.check != CONTENT and self._heeds(r)]
            if not against:
                break
            if pause_s is None or any(r.check not in PASSING for r in against):
                raise _unsafe(drive, against)
            time.sleep(pause_s)
        return drive

    def recheck(self, follow: bool = False) -> Drive:
        """See that the node still is this drive, and take hold of it again if it had been away meanwhile. All facts
        that were known of it must match. `follow`: a drive that came back under another name is taken there, if no
        other disk shows its serial.

        Raises UnsafeTarget when the drive is gone, has another name now, or when what came back is in use,
        ExchangedDrive when another one is at its node and it is nowhere, or when two disks may be meant."""
        inventory.forget(self.drive.node)  # its bridge stays when a disk is exchanged
        now = self._now(inventory.all_drives(self.root), follow)
        if (
            (now.major, now.minor) != (self.drive.major, self.drive.minor)
            or _sequence(now, self.root) != self.sequence
            or not _alive(self.fd)
        ):
            self._close()
            self._take(now, [], content=False)
            self._was_away = True
        self.drive = now
        return now

    def _now(self, drives: list[Drive], follow: bool) -> Drive:
        """The disk that is proven to be this drive. Raises as recheck()."""
        candidate, rivals = identity.search(self.drive, drives)
        present = next((d for d in drives if d.name == self.drive.name), None)
        if rivals:
            raise ExchangedDrive(
                f"one disk that shows serial {printable(self.drive.serial)}",
                ", ".join(f"{d.node} ({printable(d.model) or 'model unknown'})" for d in rivals),
                "unplug the others: the one that may be written cannot be identified",
            )
        if isinstance(candidate, Drive) and (follow or candidate.name == self.drive.name):
            if candidate.port != self.drive.port and not identity.proves_itself(self.drive):
                raise ExchangedDrive(
                    f"{_title(self.drive)} at its port, {self.drive.port}",
                    f"the same serial at port {candidate.port}: an enclosure's, which another one may show too",
                    "plug it in where it was, then start again",
                )
            return candidate
        match = identity.compare(self.drive, present) if present else None
        if match and match.facts == ("capacity_bytes",):
            assert present is not None
            raise ChangedDrive(
                f"{_title(self.drive)} with {self.drive.capacity_bytes} bytes",
                f"{present.capacity_bytes} bytes",
                "look at the drive: it came back with another size",
                capacity_bytes=present.capacity_bytes,
            )
        seen = "nothing" if present is None else f"{printable(present.model) or 'a drive'}, serial {_serial(present)}"
        if match and "serial" not in match.facts and "model" not in match.facts:
            seen += f", {match.kind} in {_facts(match, self.drive, present)}"
        if isinstance(candidate, Drive):
            seen += f"; this drive is at {candidate.node} now"
        do = (
            "start again with the drive's serial: nodes move when a drive comes back"
            if candidate
            else "bring the drive back, then start again"
        )
        error = ExchangedDrive if present and not candidate else UnsafeTarget
        raise error(f"{_title(self.drive)} at {self.drive.node}", seen, do)

    def mark(self, blocks: Mapping[int, bytes], proven: bool = False) -> None:
        """Remember content by which to know the drive after an absence. After an absence that nothing has proven yet,
        new content is not remembered: it may be another disk's. A step that writes over it leaves the old marks until
        the next call: after an absence within the step, what it has not overwritten is the only proof.

        blocks: 4 KiB at each byte offset; {} forgets all.
        proven: the caller has proven the drive itself since its last absence."""
        if proven:
            self._was_away = False
        if not (blocks and self._was_away):
            self._marks = {offset: bytes(content) for offset, content in blocks.items()}

    def prove(self) -> None:
        """Call it before the first write after an absence: one of the marks must be present. Blocks of a single byte
        value do not mark a drive; if there are no others, they must be unchanged. Without marks, or without an absence,
        nothing is read. Raises ExchangedDrive if no mark is present, and for an unmarked disk that is only identified
        by its enclosure's serial."""
        marks = {at: content for at, content in self._marks.items() if _is_mark(content)}
        if self._was_away and not marks and not identity.proves_itself(self.drive):
            raise ExchangedDrive(
                f"a fact or a mark of {_title(self.drive)} itself",
                "the enclosure's serial alone, after an absence: any disk in it has that",
                "connect the drive by SATA, or start again",
            )
        if self._was_away and self._marks:
            places = sorted(marks or self._marks)
            seen = dict(zip(places, block.read(self.path, places), strict=True))
            known = any(seen[at] == content for at, content in marks.items())
            if not (known if marks else not any(content and _is_mark(content) for content in seen.values())):
                raise lost_mark(self.drive, len(places))
        self._was_away = False

    def digests(self) -> dict[int, str] | None:
        """Byte offset -> SHA-256 of each mark, for a process that goes on later; None for a drive that has other
        proof."""
        if identity.proves_itself(self.drive):
            return None
        return {at: _digest(content) for at, content in self._marks.items() if _is_mark(content)}

    def prove_digests(self, digests: Mapping[int, str]) -> None:
        """See that a drive with no other proof still has one of the marks of another process. Raises ExchangedDrive.

        digests: as digests() gave them"""
        if identity.proves_itself(self.drive):
            return
        places = sorted(digests)
        seen = zip(places, block.read(self.path, places), strict=True)
        if not any(content is not None and _digest(content) == digests[at] for at, content in seen):
            raise lost_mark(self.drive, len(places))

    def let_go(self) -> None:
        """Close the node but keep the lock: before the drive is cut off or unplugged, because the kernel does not give
        a name again that is still open. recheck() takes hold of it again."""
        self._close()

    def _take(self, drive: Drive, against: list[Refusal], content: bool) -> None:
        """Open the node, then look for what speaks against it: from the open on, no one else can mount or format it."""
        try:
            self.fd = _open(drive, self.root, exclusive=not self.reads)
            self.opened.put(self.fd, block_only=self.root == "/")
            self._taken += 1
            self.sequence = _sequence(drive, self.root)
            unopened = []
        except OSError as error:
            unopened = [_not_opened(drive, error)]
        asked = drive.consent if self.reads else self.destroy_serial  # a reader may ignore its content
        reasons = [r for r in _refusals(drive, asked, self.root, survey(self.root)) if self._heeds(r)]
        if any(r.check == "gone" for r in reasons):
            unopened = []  # already in the list as "gone"
        against = [r for r in reasons if content or r.check != CONTENT] + against + unopened
        if against:
            self._close()
            error = _unsafe(drive, against)
            if not content and {r.check for r in against} == {READ_ONLY}:
                raise ChangedDrive(error.expected, error.seen, error.do, writable=False)
            raise error

    def _heeds(self, refusal: Refusal) -> bool:
        return not self.reads or refusal.check in OF_READERS

    def _close(self) -> None:
        self.opened.shut()
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _is_mark(content: bytes) -> bool:
    """Whether no blank disk has it."""
    return len(set(content)) > 1


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def lost_mark(drive: Drive, places: int) -> ExchangedDrive:
    """The error for a disk that has all facts of the written drive, but not the written data."""
    return ExchangedDrive(
        f"at {printable(drive.node)} something of what this run has written to {_title(drive)}",
        f"none of it at {places} places, though all facts match",
        "another drive is there, or this one lost all its data: look before anything else is written",
    )


@contextlib.contextmanager
def hold(
    drive: Drive,
    destroy_serial: str | None = None,
    root: str | os.PathLike = "/",
    reads: bool = False,
    resumed: Path | None = None,
) -> Iterator[Held]:
    """Keep everyone else off `drive` until the end of the block; with `reads` no other ssdrig only, and whatever uses
    the drive may go on. `resumed`: see refusals(). Raises UnsafeTarget with every refusal.

    Other programs that open the node exclusively (blkdiscard, mkfs, nvme format on the namespace) get EBUSY
    meanwhile."""
    locked, why_not = take(drive.serial, root)
    with contextlib.ExitStack() as until_end:
        if locked is not None:
            until_end.callback(os.close, locked)
        held = Held(drive, root, destroy_serial, reads=reads)
        until_end.callback(held.opened.close)
        until_end.callback(held._close)
        held._take(drive, [Refusal("lock", why_not)] if why_not else [], content=True)
        if not reads and (left := left_changed(held.drive, held.path, root, resumed)):
            raise _unsafe(drive, left)
        yield held


def left_changed(drive: Drive, node: str, root: str | os.PathLike = "/", resumed: Path | None = None) -> list[Refusal]:
    """The settings that an ended run left changed: they would be measured as the drive's own. For a drive that no other
    run holds; `node`: by which to read it; `resumed`: see refusals()."""
    do = f"./ssdrig drives --put-back {printable(drive.serial)}"
    left = unrestored.of(drive, node, lambda serial: busy(serial, root), root, resumed)
    return [Refusal("settings", one.words() if one.trouble else f"{one.words()}; {do}") for one in left]


def busy(serial: str, root: str | os.PathLike = "/") -> bool:
    """True while any process holds the drive of this serial; what only reads leaves it alone then."""
    return lock_holder(serial, root) is not None


def announce_refusals(
    drive: Drive,
    destroy_serial: str | None,
    say: Callable[[str], None],
    reads: bool = False,
    resumed: Path | None = None,
) -> None:
    """For a dry run: report each reason against this target; with `reads`, against reading it. `resumed`: see
    refusals(). Raises UnsafeTarget if there is one."""
    against = refusals(drive, drive.consent if reads else destroy_serial, resumed=resumed)
    against = [refusal for refusal in against if not reads or refusal.check in OF_READERS]
    for refusal in against:
        lifted = f" (lifted by {refusal.override})" if refusal.override else ""
        say(f"refused, {refusal.check}: {refusal.why}{lifted}")
    if against:
        raise UnsafeTarget(
            f"{drive.model} {drive.serial} to be free",
            f"{len(against)} reasons against it",
            "see above; nothing was touched",
        )


def announcement(drive: Drive, what: str, bytes_to_write: float, rated_bytes: float | None = None) -> str:
    """The announcement before the drive is written: which drive, what happens to it, and the share of its rating."""
    if rated_bytes:
        share = f"{digits(100 * bytes_to_write / rated_bytes, 2)} % of its rated {size(rated_bytes)}"
    else:
        share = "its rated endurance is not known"
    return (
        f"ALL DATA WILL BE LOST on {printable(drive.model) or 'a drive of unknown model'}, serial"
        f" {printable(drive.serial)}, {size(drive.capacity_bytes)} ({drive.by_id or drive.node}).\n{what}: writes"
        f" {size(bytes_to_write)}, {share}."
    )


# --- the checks


def _refusals(drive: Drive, destroy_serial: str | None, root, machine: Machine) -> list[Refusal]:
    """All but those that need the lock and the exclusive open."""
    out = []

    def refuse(check, why, override=None):
        out.append(Refusal(check, why, override))

    why = inventory.why_not_a_drive(drive.name, root)
    if why:
        refuse("gone" if why == "no block device" else "kind", f"{drive.node} is not a whole disk: {why}")
    now = next((d for d in machine.drives if d.name == drive.name), drive)
    if not _same_drive(now, drive):
        match = identity.compare(drive, now)
        differs = "" if {"serial", "model"} & set(match.facts) else f" ({match.kind}: {_facts(match, drive, now)})"
        refuse("changed", f"{drive.node} was {_title(drive)}, and is {_title(now)} now{differs}")
    if not drive.serial:
        refuse("serial", "it reports no serial, so it could not be identified after a power cut")
    elif identity.placeholder(drive.serial):
        refuse("serial", f"{printable(drive.serial)} is not a drive's own serial, so it could not be identified")
    if twins := identity.twins(drive, machine.drives):
        others = ", ".join(f"{d.node} ({printable(d.model) or 'model unknown'})" for d in twins)
        refuse("twin", f"{others} shows serial {printable(drive.serial)} too: unplug all but one")
    if not drive.major and not drive.minor:
        refuse("number", "the kernel reports no device number for it, so its mounts cannot be seen")
    if drive.capacity_bytes < SMALLEST_DRIVE_BYTES:
        refuse("capacity", f"{drive.capacity_bytes} bytes is not the size of a drive: it has failed, or has no medium")
    if sysfs.text(sysfs.within(root, "sys/block", drive.name, "ro")) == "1":
        refuse(READ_ONLY, "the kernel has it read-only (a write-protect switch, or a drive at its end of life)")

    for disk in _disks_behind(drive, root):
        refuse("export", f"its data is on {disk}, which this machine exports: to test that disk, name it")

    # Namespaces and second paths of one drive share its serial: a write to one affects the user of the other.
    for name in [drive.name, *(d.name for d in machine.drives if d.name != drive.name and _same_unit(d, drive))]:
        of = "" if name == drive.name else f" (/dev/{name} shows the same serial)"
        parts = inventory.partitions(name, root)
        holders = [
            h
            for part in (".", *(f"./{p}" for p in parts))
            for h in sysfs.listing(sysfs.within(root, "sys/block", name, part, "holders"))
        ]
        if holders:
            refuse("holder", ", ".join(_volume(h, root) for h in sorted(set(holders))) + f" is on it{of}")
        if mounted := machine.mounted.get(name):
            refuse("mounted", ", ".join(f"{device} on {point}" for point, device in sorted(mounted.items())) + of)
        if system := machine.system.get(name):
            refuse("boot", f"this system runs from it ({', '.join(sorted(system))}){of}")
        if swap := machine.swap.get(name):
            refuse("swap", f"swap on {', '.join(sorted(set(swap)))}{of}")
        for check, uses in machine.claims.get(name, {}).items():
            refuse(check, ", ".join(sorted(set(uses))) + of)
        if writers := machine.writers.get(name):
            refuse("writer", f"open for writing by {', '.join(sorted(set(writers)))}{of}")
    if machine.unseen:
        refuse("unseen", machine.unseen)
    if root == "/" and (unknown := latch.of_drive(drive.serial)):
        refuse("bench", f"{latch.in_words(unknown)}; look at its supply, then ./ssdrig rig clear")

    if destroy_serial is not None and destroy_serial not in (drive.serial, drive.consent):
        refuse(
            "destroy-data",
            f"--destroy-data names {destroy_serial or 'nothing'}, this drive is {drive.serial or 'without a serial'}",
        )
    if destroy_serial != drive.consent or not drive.serial:
        content = _content(drive, root)
        if content and destroy_serial == drive.serial and drive.serial:
            content += f"; {drive.serial} is its enclosure's serial, the same for any disk in it"
        if content:
            refuse(CONTENT, content, f"--destroy-data {drive.consent}" if drive.serial else None)
    return out


def _disks_behind(drive: Drive, root) -> list[str]:
    """The other whole disks of this machine that a write to `drive` would reach."""
    loops = {name: [device] for name, (_, device, _) in layers.attached_loops(root).items() if device}
    disks = {
        disk for device in claims.exported_devices(drive, root) for disk in layers.disks_below(device, root, loops)
    }
    return sorted(disk for disk in disks - {drive.name} if not inventory.why_not_a_drive(disk, root))


def _content(drive: Drive, root) -> str:
    """The content of the disk, in words; "" without a known partition table, file system, RAID or volume member."""
    parts = list(inventory.partitions(drive.name, root))
    words = [f"partitions {', '.join(parts)}"] if parts else []
    node = sysfs.within(root, drive.node)
    try:
        # wipefs rather than blkid -p, which gives up ("ambivalent") where two signatures lie on one disk
        done = subprocess.run(["wipefs", "--no-act", "--json", node], capture_output=True, timeout=WIPEFS_TIMEOUT_S)
        if done.returncode:
            raise ValueError(sysfs.clean(done.stderr) or f"wipefs ended with {done.returncode}")
        signatures = json.loads(done.stdout)["signatures"] if done.stdout.strip() else []
        words[:0] = sorted({str(signature["type"]) for signature in signatures})
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError, RecursionError) as error:
        words.append(f"cannot tell what is on it ({reason(error)})")
    return ", ".join(words)


def _same_drive(now: Drive, known: Drive) -> bool:
    return identity.compare(known, now).kind == identity.SAME


def _same_unit(one: Drive, other: Drive) -> bool:
    return bool(one.key) and one.key == other.key


def _facts(match: identity.Match, known: Drive, now: Drive | None) -> str:
    """ "wwn naa.1, not naa.2"."""
    return ", ".join(f"{name} {getattr(now, name, None)!s}, not {getattr(known, name)!s}" for name in match.facts)


# --- the open


def _open(drive: Drive, root, exclusive: bool = True) -> int:
    """Only in a tree of tests, below another root, may a file stand for a disk."""
    node = sysfs.within(root, drive.node)
    no_block = OSError(errno.ENOTBLK, "not a block device: another file has the drive's name in /dev")
    if root == "/" and not stat.S_ISBLK(os.stat(node).st_mode):
        raise no_block  # before it is opened: a pipe would wait for a writer
    fd = os.open(node, os.O_RDONLY | os.O_CLOEXEC | (os.O_EXCL if exclusive else 0))
    try:
        seen = os.fstat(fd)
        if not stat.S_ISBLK(seen.st_mode):
            if root == "/":
                raise no_block
        elif seen.st_rdev != os.makedev(drive.major, drive.minor):
            raise OSError(errno.ENXIO, "the node is another device's")
        elif (own := sequence(fd)) and (named := _sequence(drive, root)) and own != named:
            raise OSError(errno.ENXIO, "the node is another disk's")  # from the open on, no other gets the name
    except OSError:
        os.close(fd)
        raise
    return fd


def _not_opened(drive: Drive, error: OSError) -> Refusal:
    if error.errno == errno.EBUSY:
        return Refusal(
            "busy", "the kernel refuses exclusive use: it, or a part of it, is mounted or held by a program or a volume"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return Refusal(
            "permission", f"{drive.node} may not be opened ({error.strerror}): run as root, outside of containers"
        )
    return Refusal("open", f"{drive.node} does not open: {error.strerror}")


def _sequence(drive: Drive, root) -> str:
    return sysfs.text(sysfs.within(root, "sys/block", drive.name, "diskseq"))


def _unsafe(drive: Drive, against: list[Refusal]) -> UnsafeTarget:
    hard = [r for r in against if not r.override]
    if not hard:
        do = f"add {against[0].override} if its content may be destroyed"
    elif all(r.check == "destroy-data" for r in hard):
        do = "name one drive, and give --destroy-data that drive's serial"
    else:
        do = "free the drive, or choose another: ./ssdrig drives"
    return UnsafeTarget(
        f"a drive that may be written at {drive.node} ({_title(drive)})", "; ".join(map(str, against)), do
    )


def _title(drive: Drive) -> str:
    return f"{printable(drive.model) or 'model unknown'}, serial {_serial(drive)}"


def _serial(drive: Drive) -> str:
    return printable(drive.serial) or "unknown"


def _volume(name: str, root) -> str:
    label = sysfs.text(sysfs.within(root, "sys/class/block", name, "dm/name"))
    return f"{name} ({label})" if label else name
