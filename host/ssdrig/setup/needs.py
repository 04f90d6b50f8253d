"""What a command needs: the programs, and the environment that a clone makes for itself. Knows, and changes nothing.

Runs before the environment exists: standard library only.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import micropython

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements.lock"


class Extra(NamedTuple):
    """Packages that only some commands need, with their own lock file next to LOCK, requirements-NAME.lock: the
    commands, the megabytes to fetch, and the purpose."""

    commands: frozenset[str]
    megabytes: float
    why: str


# commands that run with the machine's Python, without any package
PLAIN = frozenset({"drives", "wear", "watch", "purge", "plans", "label", "note", "hardware"})
SIMULATES = frozenset({"demo", "run", "record", "review", "resume", "virtual", "selfcheck", "test"})
LOCK_MEGABYTES = 17
EXTRAS = {  # in the order in which they are installed
    "uv": Extra(frozenset(), 18, "fetches the other packages"),
    "bench": Extra(SIMULATES, 64, "compiles the virtual drive, and the writers of powerloss"),
    "serve": Extra(frozenset({"serve", "selfcheck", "test"}), 0.5, "speaks HTTP"),
    "completion": Extra(frozenset({"completion", "test"}), 0.02, "makes completion scripts for shells"),
    "lake": Extra(frozenset({"export", "query", "test"}), 80, "Parquet and SQL"),
    "test": Extra(frozenset({"test"}), 34, "runs the tests, lints and checks types"),
    "lake-test": Extra(frozenset({"test"}), 60, "a cluster and an S3 server, which the tests of the lake start"),
    "hardware-test": Extra(frozenset({"test"}), 3, "draws the board and cuts the case, for their tests"),
}
IN_THE_STAMP = ("bench", "serve", "test")  # a change of one of these locks makes a new environment, as LOCK's does
VENV = ROOT / ".venv"  # a link to one of .setup/environments/
STAMP = VENV / "ssdrig-stamp"  # written last: the lock files that the environment was made from
PYTHON = VENV / "bin/python"


class Program(NamedTuple):
    """A program that ssdrig calls, or a file that it reads (an absolute path); its apt package; the commands that need
    it; and the commands that use it if present and otherwise report what they left out."""

    name: str
    package: str
    needed_by: frozenset[str]
    used_by: frozenset[str]
    why: str
    # a daemon that the package starts: unused here, and it listens to the network or polls drives
    service: str = ""


def _only(*commands: str) -> frozenset[str]:
    return frozenset(commands)


BENCH = _only("demo", "run", "record", "review", "resume", "test", "selfcheck")
SMART = _only("drives", "wear", "watch", "run", "record", "review", "resume", "units")
EMULATOR = _only("emulator")  # ./ssdrig setup --emulator
ARM_LIBRARY = "/usr/lib/arm-none-eabi/newlib/thumb/v6-m/nofp"
PROGRAMS = (
    Program("fio", "fio", BENCH | {"units"}, BENCH | {"units"}, "makes the I/O load"),
    Program("micropython", "micropython", BENCH, BENCH, "runs the rig's firmware on the virtual bench"),
    Program(
        "influxd", "influxdb", _only(), _only("test", "selfcheck"), "the database that tests send points to", "influxdb"
    ),
    Program("nbdkit", "nbdkit", _only(), _only("test", "selfcheck"), "the NBD server that ours is compared with"),
    Program("gpg", "gnupg", _only(), _only("test"), "signs the apt archive that a test of the set-up makes"),
    Program("mkfs.ext4", "e2fsprogs", _only(), _only("test"), "makes the file systems that the guard has to find"),
    Program("smartctl", "smartmontools", _only(), SMART | {"test"}, "reads SMART", "smartmontools"),
    Program(
        "nvme",
        "nvme-cli",
        _only(),
        SMART | {"purge", "test"},
        "reads the log pages of NVMe drives, formats and sanitizes them",
    ),
    Program("hdparm", "hdparm", _only(), _only("run", "purge", "units", "test"), "erases ATA drives"),
    Program(
        "qemu-system-x86_64",
        "qemu-system-x86",
        _only(),
        _only("test"),
        "runs the guest in which real block devices are tested",
    ),
    Program("busybox", "busybox-static", _only(), _only("test"), "boots that guest"),
    Program("dmsetup", "dmsetup", _only(), _only("test"), "puts a volume on a disk of that guest"),
    Program(
        "chromium-headless-shell",  # it draws what chromium draws, in two thirds of the time
        "chromium-headless-shell",
        _only(),
        _only("test", "selfcheck"),
        "draws the report that is tested",
    ),
    Program("pdftotext", "poppler-utils", _only(), _only("test"), "reads the report as it is printed"),
    Program("ngspice", "ngspice", _only(), _only("test", "selfcheck"), "simulates the rig's power switch"),
    Program("cmake", "cmake", EMULATOR, EMULATOR, "builds MicroPython for the emulated board"),
    Program("make", "make", EMULATOR, EMULATOR, "builds it"),
    Program("cc", "gcc", EMULATOR, EMULATOR, "compiles its tools"),
    Program("dpkg-source", "dpkg-dev", EMULATOR, EMULATOR, "fetches its sources"),
    Program("arm-none-eabi-gcc", "gcc-arm-none-eabi", EMULATOR, EMULATOR, "compiles it"),
    Program(f"{ARM_LIBRARY}/libc.a", "libnewlib-arm-none-eabi", EMULATOR, EMULATOR, "its C library"),
    Program(f"{ARM_LIBRARY}/libstdc++.a", "libstdc++-arm-none-eabi-newlib", EMULATOR, EMULATOR, "its C++ library"),
    Program("qemu-system-arm", "qemu-system-arm", _only(), EMULATOR, "emulates the Cortex-M3"),
    Program("npm", "npm", EMULATOR, EMULATOR, "fetches the emulator rp2040js"),
    Program("node", "nodejs", EMULATOR, EMULATOR, "runs that emulator"),
)


def missing(command: str) -> list[Program]:
    """The programs that command needs or uses and that are not there."""
    return [program for program in PROGRAMS if command in program.used_by and not is_there(program.name)]


def is_there(name: str) -> bool:
    """Whether PATH has the program, or the file exists. Raises ToolMissing when $SSDRIG_MICROPYTHON is wrong."""
    if name != "micropython":
        return os.path.exists(name) if os.path.isabs(name) else shutil.which(name) is not None
    try:
        return bool(micropython.command())
    except ToolMissing:
        if os.environ.get("SSDRIG_MICROPYTHON"):
            raise  # the user's explicit choice is not replaced by another one
        return False


def in_environment() -> bool:
    """Whether this Python is the environment's."""
    return Path(sys.prefix) == VENV.resolve()


def environment_stands() -> bool:
    """Whether .venv was made from this lock file, for its current version of Python."""
    try:
        seen = STAMP.read_text()
    except OSError:
        return False
    return seen == stamp(sys.version_info[:2] if in_environment() else _version(PYTHON))


def needs_packages(command: str) -> bool:
    """Whether a command needs an environment; the machine's Python runs the others. "": help."""
    return command not in PLAIN | {""}


def stands(command: str) -> bool:
    """Whether all that the command needs and can be installed here is there. Programs that are merely used count."""
    if missing(command):
        return False
    return not needs_packages(command) or (environment_stands() and not extras_missing(command))


def extras_of(command: str) -> list[str]:
    """The extras that a command needs, in the order in which they are installed."""
    return [name for name, extra in EXTRAS.items() if command in extra.commands]


def extras_missing(command: str) -> list[str]:
    """The extras of a command that .venv lacks, or has from another lock file."""
    return [extra for extra in extras_of(command) if not _stands(extra)]


def lock_of(extra: str) -> Path:
    return LOCK.with_name(f"requirements-{extra}.lock")


def stamp_of(extra: str, environment: Path = VENV) -> Path:
    """The file in an environment with the digest of the lock file that an extra was installed from."""
    return environment / f"{STAMP.name}-{extra}"


def extra_stamp(extra: str) -> str:
    return f"{hashlib.sha256(lock_of(extra).read_bytes()).hexdigest()}\n"


def _stands(extra: str) -> bool:
    try:
        return stamp_of(extra).read_text() == extra_stamp(extra)
    except OSError:
        return False


def stamp(version: tuple[int, ...]) -> str:
    """What an environment is made from: the lock files and the version of Python, (major, minor)."""
    locks = b"".join(path.read_bytes() for path in (LOCK, *map(lock_of, IN_THE_STAMP)))
    return f"{hashlib.sha256(locks).hexdigest()} python{'.'.join(map(str, version))}\n"


def _version(python: Path) -> tuple[int, ...]:
    """(major, minor) of a Python that is not ours; () when it does not run."""
    import subprocess

    try:
        words = [str(python), "-ISc", "import sys; print(*sys.version_info[:2])"]
        return tuple(map(int, subprocess.run(words, capture_output=True, text=True).stdout.split()))
    except (OSError, ValueError):
        return ()


def say(text: str) -> None:
    """One line for people."""
    print(f"ssdrig: {text}", file=sys.stderr, flush=True)
