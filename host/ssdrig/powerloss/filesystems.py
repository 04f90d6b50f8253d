"""File systems at the end of the drive, with ordinary clients on each, next to the window of a campaign: the available
are, where they lie, and the process that mounts them (mounts.py)."""

import contextlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdrig.base.errors import DriveError, ToolMissing, UsageError
from ssdrig.plan.kinds.cut_filesystems import KINDS

if TYPE_CHECKING:  # the process that mounts starts sooner
    from ssdrig.drive.slot import Place

SIZE_BYTES = 512 << 20  # of each; mkfs.xfs makes none below 300 MiB
MOST_SHARE = 2  # at most this part of the drive: a half
ANSWER_S = 900.0  # for the longest action of a slow host


def reserved_bytes(asked: Sequence) -> int:
    """What all of them take, at the end of the drive."""
    return len(asked) * SIZE_BYTES


def places(asked: Iterable[Sequence[str]], capacity_bytes: int) -> list[dict[str, Any]]:
    """Place of each, the last one at the end of the drive."""
    asked = list(asked)
    begin = (capacity_bytes - reserved_bytes(asked)) // SIZE_BYTES * SIZE_BYTES
    return [
        {"kind": kind, "options": options, "offset": begin + i * SIZE_BYTES, "size": SIZE_BYTES}
        for i, (kind, options) in enumerate(asked)
    ]


def refuse(asked: Sequence[Sequence[str]], capacity_bytes: int, root: str | os.PathLike = "/") -> None:
    """Raises ToolMissing or UsageError where this machine cannot make, mount or check one of them."""
    if not asked:
        return
    if MOST_SHARE * reserved_bytes(asked) > capacity_bytes:
        expected = f"a drive of at least {MOST_SHARE * reserved_bytes(asked) >> 20} MiB for these file systems"
        raise UsageError(expected, f"{capacity_bytes >> 20} MiB", "ask for fewer of them, or use a larger drive")
    for kind, _ in asked:
        for program in (KINDS[kind].make[0], KINDS[kind].check[0]):
            if not which(program):
                do = f"apt install {KINDS[kind].package}, or leave {kind} out of --filesystems"
                raise ToolMissing(f"{program}, which {kind} needs", "it is not installed", do)
        if not known(kind, root):
            do = f"load its module (modprobe {kind}), or leave it out of --filesystems"
            raise ToolMissing(f"a kernel with {kind}", "/proc/filesystems and its modules have none", do)
    if not os.path.exists(os.path.join(root, "dev/loop-control")):
        do = "load the module (modprobe loop); in a container run it on the host"
        raise ToolMissing("loop devices, which hold the file systems", "no /dev/loop-control", do)


def refuse_server(asked: Sequence) -> None:
    """Raises UsageError for file systems on a drive that is not a block device of this kernel."""
    if asked:
        do = "name a drive of this machine with --drive, or leave --filesystems out"
        raise UsageError("a block device of this kernel, for file systems", "an NBD drive", do)


def refuse_place(asked: Sequence, place: "Place") -> None:
    """Raises UsageError where the kernel cannot be made to drop the drive while it has no power: it would repeat, once
    power is back, what a file system had sent before, to a drive that has lost its cache."""
    if asked and not place.drops:
        expected = "a drive that the kernel can be made to drop, for file systems: PCIe, SATA, SAS or USB"
        raise UsageError(expected, place.words, "connect it in another way, or leave --filesystems out")


def which(program: str) -> str | None:
    """Its path; /sbin is not in a plain user's PATH."""
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin")


def known(kind: str, root: str | os.PathLike = "/") -> bool:
    """Whether the running kernel has this file system, loaded, built in or as a module."""
    modules = os.path.join(root, "lib/modules", os.uname().release)
    for path in (os.path.join(root, "proc/filesystems"), *(f"{modules}/modules.{n}" for n in ("dep", "builtin"))):
        with contextlib.suppress(OSError):
            text = Path(path).read_text()
            if re.search(rf"(?:^|\s|/){kind}(?:\.ko\S*)?:?\s", text + "\n", re.MULTILINE):
                return True
    return False


def describe(asked: Sequence[Sequence[str]]) -> str:
    """A notice of the file systems to be made and the data to be destroyed."""
    names = ", ".join(f"{kind} ({options})" if options else kind for kind, options in asked)
    size = f"{SIZE_BYTES >> 20} MiB each" if len(asked) > 1 else f"{SIZE_BYTES >> 20} MiB"
    return (
        f"file systems: {names}, {size}, made at the end of the drive, over whatever is there; on each a log of fsynced"
        " appends, SQLite with WAL and SQLite with a rollback journal write during each session; they stay on the drive"
    )


class Filesystems:
    """The file systems of one drive through a campaign. The actions are those of mounts.Mounts; each raises DriveError
    where it fails, and where the kernel does not come back from it. Raises as refuse().

    path: of the drive, as it is held now; raises while it is not."""

    def __init__(self, asked: Sequence[Sequence[str]], capacity_bytes: int, path: Callable[[], str]):
        refuse(asked, capacity_bytes)
        self._path = path
        package = str(Path(__file__).resolve().parents[2])
        search_path = os.environ.get("PATH", "")
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ssdrig.powerloss.mounts", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": package, "PATH": f"{search_path}:/usr/sbin:/sbin:/usr/local/sbin"},
        )

    def make(self, block_bytes: int, places: Sequence[Mapping]) -> None:
        self._ask({"do": "make", "drive": self._path(), "block_bytes": block_bytes, "places": list(places)})

    def start(self, session: int, at_rest: int) -> None:
        self._ask({"do": "start", "drive": self._path(), "session": session, "at_rest": at_rest})

    def down(self) -> dict[str, Any]:
        return self._ask({"do": "down"})

    def look(self, asked: Sequence[Mapping]) -> dict[str, Any]:
        return self._ask({"do": "look", "drive": self._path(), "asked": list(asked)})

    def close(self) -> None:
        """End it, with its mounts. Safe to call twice."""
        assert self._process.stdin and self._process.stdout
        if not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process.stdout.close()

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            ready = select.select([self._process.stdout], [], [], ANSWER_S)[0]
            line = self._process.stdout.readline() if ready else b""
        except (OSError, ValueError) as error:
            raise DriveError("the process that mounts file systems", str(error), "see its words above") from error
        if not line:
            seen = "it has ended" if ready else f"no answer in {ANSWER_S:g} s"
            raise DriveError(f"file systems: {request['do']}", seen, "see the kernel's log (dmesg)")
        answer = json.loads(line)
        if "error" in answer:
            raise DriveError(*answer["error"])
        return answer
