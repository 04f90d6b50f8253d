"""For tests that look at processes: what this one has open, and time limits that begin when another has begun."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

from ssdrig.drive import program


def open_below(folder) -> list[str]:
    """Files there that this process has open. What earlier tests left open may be closed at any moment."""
    links = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    targets = (os.readlink(link) for link in links if os.path.lexists(link))
    return [path for path in targets if path.startswith(f"{folder}/")]


def time_begins_with(there: Path, monkeypatch) -> None:
    """The time of a program.run() begins when this file is there: a busy machine may take longer to start a shell."""
    since_ns: list[int] = []

    def now_ns():
        if not since_ns and there.exists():
            since_ns.append(time.monotonic_ns())
        return time.monotonic_ns() - since_ns[0] if since_ns else 0

    monkeypatch.setattr(program, "time", SimpleNamespace(monotonic_ns=now_ns))
