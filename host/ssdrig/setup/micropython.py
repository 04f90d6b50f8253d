"""Finds the MicroPython interpreter (unix port) that runs our firmware on the virtual bench, and unpacks one where the
distribution has none. Standard library only: the launcher uses this before the virtual environment exists."""

import os
import re
import shlex
import shutil
from pathlib import Path

from ssdrig.base import child_cpu, shipped
from ssdrig.base.errors import ToolMissing
from ssdrig.setup import debian

OLDEST = (1, 22, 0)  # Ubuntu 24.04's; the firmware runs on it
PRIVATE = Path(__file__).resolve().parents[3] / ".setup/micropython"

# Where Debian has the package when the machine's own release (Debian 12) has not.
SUITE = "trixie"
INSTALL = "apt-get install micropython" if shipped.INSTALLED else "run ./ssdrig setup"


def command() -> list[str]:
    """Return the argv prefix that runs MicroPython: $SSDRIG_MICROPYTHON, the one in PATH, or the unpacked one.

    Raises ToolMissing if none is version OLDEST or newer; a wrong $SSDRIG_MICROPYTHON is an error, not skipped.
    """
    override = os.environ.get("SSDRIG_MICROPYTHON")
    candidates = [shlex.split(override)] if override else [["micropython"], loader_line(PRIVATE)]
    seen = []
    for argv in candidates:
        if not argv or not shutil.which(argv[0]):
            continue
        version = _version(argv)
        if version and version >= OLDEST:
            return argv
        seen.append(f"{shlex.join(argv)} of version {'.'.join(map(str, version)) if version else 'unknown'}")
    raise ToolMissing(
        f"MicroPython {'.'.join(map(str, OLDEST))} or newer, unix port",
        "; ".join(seen) or (f"SSDRIG_MICROPYTHON={override}" if override else "no program micropython"),
        "correct SSDRIG_MICROPYTHON" if override else f"{INSTALL}, or name one in SSDRIG_MICROPYTHON",
    )


def provision(destination: Path = PRIVATE, architecture: str = "") -> None:
    """Unpack Debian's MicroPython, with the libraries it needs, into destination (debian.provision)."""
    do = f"install MicroPython {'.'.join(map(str, OLDEST))} or newer and name it in SSDRIG_MICROPYTHON"
    debian.provision(SUITE, "micropython", destination, runs, do, architecture)


def runs(root: Path) -> bool:
    """Does the MicroPython unpacked in root work here?"""
    return bool(_version(loader_line(root)))


def loader_line(root: Path) -> list[str]:
    """The unpacked program started by its own dynamic loader (the machine's C library is older); [] when not there."""
    loaders = sorted(root.glob("usr/lib/*-linux-gnu*/ld-linux*.so.*"))
    program = root / "usr/bin/micropython"
    if not loaders or not program.exists():
        return []
    return [str(loaders[0]), "--library-path", beside(program, loaders[0].parent), str(program)]


def beside(program: Path, libraries: Path) -> str:
    """A folder as --library-path takes it. There : and ; part folders, $ begins a token, and nothing quotes them: with
    one of them in it, the folder is found from the program."""
    if re.search("[:;$]", str(libraries)):
        return f"$ORIGIN/{os.path.relpath(libraries, program.parent)}"
    return str(libraries)


def _version(argv: list[str]) -> tuple[int, ...] | None:
    """(major, minor, micro) of the interpreter that argv starts; None when it is not MicroPython or does not run."""
    code = "import sys; print(sys.implementation[0], *sys.implementation[1][:3])"
    try:
        done = child_cpu.output([*argv, "-c", code])
        name, *numbers = done.stdout.split()
        return (
            tuple(map(int, numbers)) if done.returncode == 0 and name == "micropython" and len(numbers) == 3 else None
        )
    except (OSError, ValueError, child_cpu.NotReady):
        return None
