"""FOLDER/rejected.jsonl: lines that a server has refused for good, with its words; a JSON object on a line each."""

import contextlib
import hashlib
import json
import os
import time
from pathlib import Path

from ssdrig.base import system
from ssdrig.base.files import part_from_copies, write_atomically
from ssdrig.publish.influx.link import Answer
from ssdrig.runs import integrity

APPEND = (
    os.O_WRONLY | os.O_CREAT | os.O_APPEND | system.NOFOLLOW | system.CLOEXEC
)  # a link would lead out of the folder


class Rejected:
    """Those of one server. Each line is kept once, however often it is refused."""

    def __init__(self, folder: Path, to: str):
        self.path, self._to = Path(folder) / "rejected.jsonl", to
        self._lines = {_digest(line.encode()) for _, line in self._entries()}

    def __len__(self) -> int:
        return len(self._lines)

    def holds(self, line: bytes) -> bool:
        return _digest(line) in self._lines

    def add(self, batch: bytes, answer: Answer) -> int:
        """All lines of a batch. Returns how many are new; they are on the disk then."""
        new = {_digest(line): line for line in batch.decode("utf-8", "replace").encode().splitlines()}
        new = {digest: line for digest, line in new.items() if digest not in self._lines}
        if not new:
            return 0
        said = {"utc_ns": time.time_ns(), "to": self._to, "status": answer.status, "answer": answer.words[:1000]}
        block = b"".join(json.dumps(said | {"line": line.decode()}).encode() + b"\n" for line in new.values())
        part_from_copies(self.path)
        with open(os.open(self.path, APPEND, 0o644), "ab") as f:
            if f.tell() and not _ends_with_newline(self.path):
                f.write(b"\n")
            f.write(block)
            f.flush()
            os.fsync(f.fileno())
        self._lines |= set(new)
        return len(new)

    def forget(self) -> int:
        """Take this server's lines out of the file; they are in points.lp. Returns how many there were."""
        mine, forgotten = {raw for raw, _ in self._entries()}, len(self._lines)
        with contextlib.suppress(FileNotFoundError):
            rest = b"".join(raw + b"\n" for raw in integrity.content(self.path).splitlines() if raw not in mine)
            if rest:
                write_atomically(self.path, rest)
            else:
                self.path.unlink()
        self._lines = set()
        return forgotten

    def _entries(self) -> list[tuple[bytes, str]]:
        """(as it is in the file, the line refused)"""
        out = []
        with contextlib.suppress(FileNotFoundError):
            for raw in integrity.content(self.path).splitlines():
                try:
                    entry = json.loads(raw)
                    if entry["to"] == self._to:
                        out.append((raw, str(entry["line"])))
                except (ValueError, KeyError, TypeError, RecursionError):
                    continue  # the torn line of a crash; its point is sent, and refused, again
        return out


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as f:
        f.seek(-1, os.SEEK_END)
        return f.read(1) == b"\n"
