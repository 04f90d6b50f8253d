"""The process that mounts file systems of the drive and starts their clients: `python -m ssdrig.powerloss.mounts`.
A request is a line of JSON on stdin, {"do": name of an action, …}; its answer is one on stdout, {"error": [expected,
seen, do]} where it failed.

Each file system is on a loop device over its part of the drive, which is opened by the path that holds it
(drive/guard.py): reads and writes pass it by direct I/O, a FLUSH as one, FUA as a write and a FLUSH. Mounts are
seen by this process and its children only, and end with it, as the loop devices do."""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

from ssdrig.base import prctl
from ssdrig.base.files import fsync_folder
from ssdrig.plan.kinds.cut_filesystems import KINDS
from ssdrig.powerloss import clients

LOOP_CONTROL, LOOP_CTL_GET_FREE, LOOP_CONFIGURE = "/dev/loop-control", 0x4C82, 0x4C0A  # linux/loop.h, Linux 5.8
AUTOCLEAR, DIRECT_IO = 4, 16
CONFIG = struct.Struct("<II24xQQ12xI176x64x")  # fd, block size; offset, size limit; flags
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8  # linux/mount.h
MS_REC, MS_PRIVATE, CLONE_NEWNS, MNT_DETACH = 0x4000, 0x40000, 0x20000, 2
FIRST_S = 120.0  # for each client to have its first record acknowledged
FLAGS = MS_NOSUID | MS_NODEV | MS_NOEXEC  # whatever a drive makes of it
TRIES = 5
UNMOUNT_S = 10.0  # for what a killed client had open
PROGRAM_S = 300.0
_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """expected, seen, do, as in errors.py."""


class Part:
    """One file system. place: {"kind", "options", "offset", "size"} in bytes of the drive; folder: to mount it at."""

    def __init__(self, place: dict, folder: str):
        self.name, self.kind, self.options = place["kind"], KINDS[place["kind"]], place["options"]
        self.offset, self.size, self.folder = place["offset"], place["size"], folder
        self.loop, self.node, self.mounted, self.seen_options, self._since_bytes = -1, "", False, "", 0
        os.mkdir(folder)

    def attach(self, drive: str, block_bytes: int) -> None:
        """Make its loop device over the drive, a path that opens it."""
        backing = os.open(drive, os.O_RDWR)
        try:
            if not stat.S_ISBLK(os.fstat(backing).st_mode):
                raise Failed("a block device to mount", "something else", "name a drive of this machine")
            config = CONFIG.pack(backing, block_bytes, self.offset, self.size, AUTOCLEAR | DIRECT_IO)
            for last in (False,) * (TRIES - 1) + (True,):
                self.loop, self.node = free_loop()
                try:
                    fcntl.ioctl(self.loop, LOOP_CONFIGURE, config)
                    self._since_bytes = self._counted_bytes()
                    return
                except OSError as error:
                    os.close(self.loop)
                    self.loop = -1
                    if error.errno != errno.EBUSY or last:  # another program was quicker
                        raise
        finally:
            os.close(backing)

    def detach(self) -> None:
        if self.loop >= 0:
            os.close(self.loop)
        self.loop = -1

    def make(self) -> None:
        run([*self.kind.make, self.node])

    def mount(self) -> str:
        """Why it cannot be mounted, "" where it is."""
        what = (self.node.encode(), self.folder.encode(), self.name.encode())
        if _libc.mount(*what, ctypes.c_ulong(FLAGS), self.options.encode() or None) != 0:
            return os.strerror(ctypes.get_errno())
        self.mounted, self.seen_options = True, options_of(self.folder)
        return ""

    def unmount(self) -> bool:
        """Whether nothing of it is left in the kernel."""
        if not self.mounted:
            return True
        deadline = time.monotonic() + UNMOUNT_S
        while not (ended := _libc.umount2(self.folder.encode(), 0) == 0):
            if ctypes.get_errno() != errno.EBUSY or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        if not ended:
            _libc.umount2(self.folder.encode(), MNT_DETACH)
        self.mounted = False
        return ended

    def check(self) -> str:
        """What its checker complains of, while it is not mounted; "" for nothing."""
        done = subprocess.run(
            [*self.kind.check, self.node], stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_S
        )
        lines = (done.stdout + done.stderr).decode(errors="replace").split("\n")
        words = "; ".join(line.strip() for line in lines if line.strip())
        return "" if done.returncode == 0 else f"exit code {done.returncode}: {words[-500:]}"

    def written_bytes(self) -> int:
        """What went to the drive since its loop device was made."""
        return self._counted_bytes() - self._since_bytes

    def _counted_bytes(self) -> int:
        with open(f"/sys/block/{os.path.basename(self.node)}/stat") as file:
            return int(file.read().split()[6]) * 512


class Mounts:
    """The actions, named as a request names them, with the rest of the request as keywords."""

    def __init__(self, folder: str):
        self._folder = folder
        self._parts: dict[str, Part] = {}
        self._running: list[tuple[int, clients.Report, dict]] = []
        self._drive, self._block_bytes, self._written = "", 512, 0

    def make(self, drive: str, block_bytes: int, places: list[dict]) -> dict:
        """Make the file systems again in their places."""
        self._drive, self._block_bytes = drive, block_bytes
        for place in places:
            name = place["kind"]
            if name not in self._parts:
                self._parts[name] = Part(place, os.path.join(self._folder, name))
            with self._attached([self._parts[name]]):
                self._parts[name].make()
        return {}

    def start(self, drive: str, session: int, at_rest: int) -> dict:
        """Mount all, remove files of other sessions, except `at_rest`, and start a client of each kind on each. Returns
        when each has a record acknowledged."""
        self.down()  # of an unfinished session
        self._drive, keep = drive, str(at_rest)
        for part in self._parts.values():
            part.attach(self._drive, self._block_bytes)
            if why := part.mount():
                raise Failed(f"{part.name} to be mounted as it was before", why, "see the kernel's log (dmesg)")
            for name in os.listdir(part.folder):
                if name.isdecimal() and name != keep:
                    shutil.rmtree(os.path.join(part.folder, name))
            os.mkdir(os.path.join(part.folder, str(session)))
            fsync_folder(Path(part.folder))
        for part in self._parts.values():
            for client in clients.NAMES:
                folder = os.path.join(part.folder, str(session), client)
                report = clients.Report()
                labels = {"filesystem": part.name, "client": client, "session": session}
                self._running.append((started(client, folder, session, report), report, labels))
        deadline = time.monotonic() + FIRST_S
        for pid, report, labels in self._running:
            while not report.read()[1]:
                if os.waitpid(pid, os.WNOHANG)[0] or time.monotonic() > deadline:
                    seen = "it ended before" if time.monotonic() < deadline else f"none in {FIRST_S:g} s"
                    what = f"a first record of {labels['client']} on {labels['filesystem']}"
                    raise Failed(what, seen, "see the kernel's log (dmesg)")
                time.sleep(0.01)
        return {}

    def down(self) -> dict:
        """End the clients and unmount all: {"clients": reports, "down_ns": since when nothing of it is in the kernel,
        None where something is}."""
        for pid, _, _ in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reports = []
        for pid, report, labels in self._running:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            begun, acked_ns = report.read()
            report.close()
            reports.append({**labels, "begun": begun, "acked_ns": acked_ns})
        self._running = []
        ended = True
        for part in self._parts.values():
            if part.loop >= 0:
                with contextlib.suppress(OSError):
                    self._written += part.written_bytes()
            ended = part.unmount() and ended
            part.detach()
        return {"clients": reports, "down_ns": time.monotonic_ns() if ended else None}

    def look(self, drive: str, asked: list[dict]) -> dict:
        """Mount all, check the data of the requested clients, unmount, and check: {"clients": as
        clients.Left has it, "filesystems", "written_bytes": by all file systems since this was asked last}."""
        self._drive, result = drive, dict[str, Any](clients=[], filesystems=[])
        for part in self._parts.values():
            with self._attached([part]):
                why = part.mount()
                for entry in asked:
                    if entry["filesystem"] == part.name and not why:
                        where = os.path.join(part.folder, str(entry["session"]), entry["client"])
                        left = clients.left(entry["client"], where, entry["session"], entry["begun"])
                        named = {key: entry[key] for key in ("filesystem", "client", "session")}
                        result["clients"].append(named | left._asdict())
                mounted, options = not why, part.seen_options
                unmounted = part.unmount()
                check = part.check() if unmounted else "it cannot be unmounted"
            state = {"filesystem": part.name, "mounted": mounted, "why": why, "options": options, "check": check}
            result["filesystems"].append(state)
        result["written_bytes"], self._written = self._written, 0
        return result

    @contextlib.contextmanager
    def _attached(self, parts: list[Part]):
        try:
            for part in parts:
                part.attach(self._drive, self._block_bytes)
            yield
        finally:
            for part in parts:
                if part.loop >= 0:
                    self._written += part.written_bytes()
                part.unmount()
                part.detach()


def free_loop() -> tuple[int, str]:
    """(descriptor, node) of a loop device that nothing uses."""
    control = os.open(LOOP_CONTROL, os.O_RDWR)
    try:
        node = f"/dev/loop{fcntl.ioctl(control, LOOP_CTL_GET_FREE)}"
    finally:
        os.close(control)
    return os.open(node, os.O_RDWR), node


def options_of(folder: str) -> str:
    """The kernel's options of the file systems mounted there."""
    with open("/proc/self/mounts") as file:
        rows = [line.split() for line in file]
    return next((row[3] for row in reversed(rows) if row[1] == folder), "")


def run(words: list[str]) -> None:
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_S)
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        seen = f"exit code {done.returncode}: {lines[-1] if lines else ''}"
        raise Failed(f"{words[0]} to make a file system", seen, "try it by hand")


def started(client: str, folder: str, session: int, report: clients.Report) -> int:
    """The process id of a client at work."""
    parent = os.getpid()
    return os.fork() or at_work(parent, client, folder, session, report)


def at_work(parent: int, client: str, folder: str, session: int, report: clients.Report) -> NoReturn:
    with contextlib.suppress(BaseException):  # an error is how each session ends
        prctl.die_with_parent(parent)
        clients.write(client, folder, session, report, lambda: time.sleep(clients.PAUSE_S))
        signal.pause()  # it has written enough: nothing more is under way
    os._exit(0)


def main() -> None:
    prctl.die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends ssdrig in order
    with tempfile.TemporaryDirectory(prefix="ssdrig-mounts-") as folder:
        error = [] if apart(folder) else ["its own mounts", os.strerror(ctypes.get_errno()), "run it as root"]
        mounts = Mounts(folder)
        for line in sys.stdin:
            request = json.loads(line)
            answer: dict = {"error": error}
            if not error:
                try:
                    answer = getattr(mounts, request.pop("do"))(**request)
                except Failed as failed:
                    answer = {"error": failed.args}
                except (OSError, subprocess.SubprocessError) as failed:
                    answer = {"error": ["file systems on the drive", str(failed), "see the kernel's log (dmesg)"]}
            print(json.dumps(answer), flush=True)
        mounts.down()
        _libc.umount2(folder.encode(), MNT_DETACH)


def apart(folder: str) -> bool:
    """Give this process its own mounts, with a tmpfs at `folder`."""
    if _libc.unshare(CLONE_NEWNS) or _libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None):
        return False
    return _libc.mount(b"tmpfs", folder.encode(), b"tmpfs", ctypes.c_ulong(0), None) == 0


if __name__ == "__main__":
    main()
