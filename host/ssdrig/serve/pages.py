"""Report pages made on demand: `ssdrig report` in a separate process at the lowest priority, one at a time, into a
folder that is removed with the server. A page has a random name of 256 bits that only its requester knows."""

import asyncio
import base64
import hashlib
import os
import re
import secrets
import sys
import tempfile
from pathlib import Path

from ssdrig.base import temporary
from ssdrig.base.child_cpu import Work
from ssdrig.base.errors import UsageError
from ssdrig.base.terminal import printable
from ssdrig.runs import parts

MOST_RUNS = 24
MOST_PAGES = 32
LOOK_S = 1.0
PREFIX = "ssdrig-serve-"
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


class Pages:
    """The pages that this server has made, the latest MOST_PAGES of them."""

    def __init__(self) -> None:
        temporary.sweep(PREFIX, tempfile.gettempdir())
        self._folder, self._lock = temporary.make(PREFIX, tempfile.gettempdir())
        self._made: dict[tuple, str] = {}  # what a page is made of -> its name
        self._one = asyncio.Lock()

    def close(self) -> None:
        temporary.remove(self._folder, self._lock)

    async def make(self, folders: list[Path], keys: tuple) -> str:
        """The name of a page of these runs; `keys` change when one of them does. Raises UsageError."""
        if not 1 <= len(folders) <= MOST_RUNS:
            raise UsageError(f"1 to {MOST_RUNS} runs", str(len(folders)), "choose fewer")
        for folder in folders:
            if leads := leads_out(folder):
                raise UsageError("run folders without links that lead out of them", leads, "replace the link by a copy")
        async with self._one:
            if keys not in self._made or not self._path(self._made[keys]).exists():
                name = secrets.token_urlsafe(32)
                await self._report(folders, self._path(name))
                self._made[keys] = name
                for old in list(self._made)[:-MOST_PAGES]:
                    self._path(self._made.pop(old)).unlink(missing_ok=True)
            return self._made[keys]

    async def _report(self, folders: list[Path], out: Path) -> None:
        words = [sys.executable, "-P", "-m", "ssdrig", "report", *map(str, folders), "--quiet", "--out", str(out)]
        child = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=_least,
            cwd=self._folder,
        )
        work, ended = Work(child.pid), asyncio.ensure_future(child.communicate())
        try:
            while not (await asyncio.wait([ended], timeout=LOOK_S))[0]:
                if not work.look():
                    seen = f"none; no CPU time used for {work.idle_s:g} s"
                    raise UsageError("a report of these runs", seen, "make it with ./ssdrig report")
            _, err = await ended
        finally:
            ended.cancel()
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode or not out.exists():
            last = (err.decode(errors="replace").strip().splitlines() or ["no words"])[-1]
            raise UsageError("a report of these runs", printable(last)[:400], "choose runs of one plan")

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.html"

    def content(self, name: str) -> bytes | None:
        """A page by its name."""
        if name not in self._made.values():
            return None
        try:
            return self._path(name).read_bytes()
        except OSError:
            return None


def policy(page: bytes) -> str:
    """The Content-Security-Policy of a page: its own scripts, in an opaque origin, and nothing more."""
    scripts = " ".join(hash_of(script) for script in _SCRIPT.findall(page)) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
        " allow-modals"
    )


def hash_of(text: bytes) -> str:
    """A script or a style as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def leads_out(folder: Path) -> str | None:
    """A link in a run folder that leads out of it, or None."""
    inside = os.path.realpath(folder)
    for at, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(at, name)
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
                return str(path.relative_to(folder))
    return None


def stamp(folder: Path) -> tuple:
    """Changes when the run does: length and time of what each of its parts appends to, None where a file is absent."""
    stamps: list[tuple[int, int] | None] = []
    for path in (part / name for part in parts.of(folder) for name in ("events.jsonl", "rig.bin")):
        try:
            status = os.stat(path)
            stamps.append((status.st_size, status.st_mtime_ns))
        except OSError:
            stamps.append(None)
    return tuple(stamps)


def _least() -> None:
    os.nice(19)
