"""Sets up what a command needs, then becomes that command: Debian packages, MicroPython, the virtual environment.

The launcher ./ssdrig starts this file with the machine's own Python, so it uses the standard library only. A start with
everything in place changes nothing. All that is made lies in .setup/ and .venv/ of the clone, save the apt packages.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "host"))  # started by path, isolated

from ssdrig import micropython  # noqa: E402
from ssdrig.errors import SsdrigError, ToolMissing  # noqa: E402

LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
STAMP = VENV / "ssdrig-stamp"  # written last: without it, or with another content, .venv is made anew
PYTHON = VENV / "bin/python"


class Program(NamedTuple):
    """A program that ssdrig calls, the apt package that has it, the commands that cannot work without it, and those
    that use it if it is there and else say what they left out."""

    name: str
    package: str
    needed_by: frozenset[str]
    used_by: frozenset[str]
    why: str
    # a daemon the package starts on its own: not used here, and open to the network or polling drives
    service: str = ""


ALL = frozenset({"demo", "run", "test", "bench"})
SMART = frozenset({"drives", "wear", "watch", "run", "calibrate"})
PROGRAMS = (
    Program("fio", "fio", ALL | {"calibrate"}, ALL | {"calibrate"}, "makes the I/O load"),
    Program("micropython", "micropython", ALL, ALL, "runs the rig's firmware on the virtual bench"),
    Program(
        "influxd",
        "influxdb",
        frozenset(),
        ALL - {"run"},
        "the database that the demo and tests send points to",
        "influxdb",
    ),
    Program("nbdkit", "nbdkit", frozenset(), frozenset({"test", "bench"}), "the NBD server to compare ours with"),
    Program(
        "gpg", "gnupg", frozenset(), frozenset({"test"}), "signs the apt archive that the test of the set-up makes"
    ),
    Program("smartctl", "smartmontools", frozenset(), SMART | {"test"}, "reads SMART", "smartmontools"),
    Program(
        "nvme",
        "nvme-cli",
        frozenset(),
        SMART | {"purge", "test"},
        "reads the log pages of NVMe drives, formats and sanitizes them",
    ),
    Program("hdparm", "hdparm", frozenset(), frozenset({"run", "purge", "calibrate", "test"}), "erases ATA drives"),
    Program(
        "qemu-system-x86_64",
        "qemu-system-x86",
        frozenset(),
        frozenset({"test"}),
        "the guest in which real block devices are tested",
    ),
    Program("busybox", "busybox-static", frozenset(), frozenset({"test"}), "boots that guest"),
    Program("dmsetup", "dmsetup", frozenset(), frozenset({"test"}), "puts a volume on a disk of that guest"),
    Program("chromium", "chromium", frozenset(), frozenset({"test", "bench"}), "draws the report to be tested"),
    Program("ngspice", "ngspice", frozenset(), frozenset({"test"}), "simulates the rig's power switch"),
)


def main(argv: list[str]) -> int:
    """Set up for the command in argv and become it; returns (an exit code) only for `setup` and on failure."""
    command = next((word for word in argv if not word.startswith("-")), "")
    helping = bool({"-h", "--help"} & set(argv))
    try:
        set_up("" if helping else "demo" if command == "setup" else command)
    except SsdrigError as error:
        say(str(error))
        return error.exit_code
    except OSError as error:
        say(f"expected to set up in {ROOT}; seen {error}; do: make room, or clone where you may write")
        return ToolMissing.exit_code
    except KeyboardInterrupt:
        say("set-up interrupted; the next start goes on with it")
        return 130
    if command == "setup":
        say(f"set up: {ROOT}")
        return 0
    os.environ["PYTHONPATH"] = str(ROOT / "host")
    if command == "test":
        os.chdir(ROOT)
        words = argv[:]
        words.remove("test")
        os.execv(PYTHON, [str(PYTHON), "-m", "pytest", "-n", "2", "--dist", "loadscope", *words])
    os.execv(PYTHON, [str(PYTHON), "-P", "-m", "ssdrig", *argv])


def set_up(command: str) -> None:
    """Bring about what command needs. Raises ToolMissing with the line to type when that cannot be done here."""
    if not missing(command) and environment_stands():
        return
    with only_one_set_up() as lock:
        packages(command, with_venv=not environment_stands())
        if any(program.name == "micropython" for program in missing(command)):
            say("unpacking Debian's MicroPython into .setup (4 MB)")
            micropython.provision()
        if not environment_stands():
            make_environment(lock)


def missing(command: str) -> list[Program]:
    """The programs that command needs or uses and that are not there."""
    return [program for program in PROGRAMS if command in program.used_by and not is_there(program.name)]


def is_there(name: str) -> bool:
    if name != "micropython":
        return shutil.which(name) is not None
    try:
        return bool(micropython.command())
    except ToolMissing:
        if os.environ.get("SSDRIG_MICROPYTHON"):
            raise  # someone's wish; another one is no help
        return False


# ---- apt packages

NOT_IN_APT = ROOT / ".setup/not-in-apt"  # so that each start does not ask again; remove .setup to have it asked
# wait for the package manager of someone else (a new cloud machine upgrades itself), and print no terminal art
APT_OPTIONS = ["-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"]


def packages(command: str, with_venv: bool) -> None:
    """Install by apt what is missing, saying what and why. Packages that this distribution does not have are passed
    over, so are those that are merely used when apt may not install. Raises ToolMissing if a needed one stays away."""
    wanted = missing(command)
    names = [program.package for program in wanted]
    if with_venv and importlib.util.find_spec("ensurepip") is None:
        names.append(f"python3.{sys.version_info.minor}-venv")
    passed_over = NOT_IN_APT.read_text().split() if NOT_IN_APT.exists() else []
    if os.environ.get("SSDRIG_NO_INSTALL"):
        return short(command, "SSDRIG_NO_INSTALL is set")
    if set(names) <= set(passed_over):
        return short(command, "this distribution has no such package")
    as_root = root_prefix()
    if as_root is None:
        return short(command, "there is no apt-get, or neither root nor sudo to use it")
    for program in wanted:
        say(f"missing: {program.name} (package {program.package}): {program.why}")
    apt_get = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *APT_OPTIONS]
    # a source of someone else's may be down; what counts is the install
    updated = run([*apt_get, "update"], check=False)
    there = [name for name in names if in_apt(name)]
    if there:
        run([*apt_get, "install", "-y", "--no-install-recommends", *there])
        silence([program.service for program in wanted if program.service and program.package in there], as_root)
    if updated:
        merely_used = [program.package for program in wanted if command not in program.needed_by]
        NOT_IN_APT.write_text("\n".join(name for name in merely_used if name not in there))
    return short(command, "this distribution has no such package, or another of that name")


def short(command: str, reason: str) -> None:
    """Say what is missing still. Raises ToolMissing when it is needed; MicroPython is not counted: it can be
    unpacked."""
    left = [program for program in missing(command) if program.name != "micropython"]
    needed = [program.package for program in left if command in program.needed_by]
    if not environment_stands() and importlib.util.find_spec("ensurepip") is None:
        needed.append(f"python3.{sys.version_info.minor}-venv")
    if needed:
        line = shlex.join(["apt-get", "install", "-y", "--no-install-recommends", *needed])
        raise ToolMissing(", ".join(needed), f"not installed; {reason}", f"as root: apt-get update && {line}")
    for program in left:
        say(f"without {program.name} ({program.why}; package {program.package}): what needs it is left out")


def root_prefix() -> list[str] | None:
    """The words before a command that is to run as root; None when there is no way, or no apt."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return ["sudo"] if sys.stdin.isatty() else None


def in_apt(package: str) -> bool:
    """Whether apt has it here, and not just something that claims to stand for it (Debian 12 has no micropython;
    Ubuntu's chromium is a snap, which does not run in a container)."""
    return bool(subprocess.run(["apt-cache", "madison", package], capture_output=True).stdout)


def silence(services: list[str], as_root: list[str]) -> None:
    """Stop the daemons that just came with packages, now and at the next boot."""
    if services and Path("/run/systemd/system").is_dir():
        run([*as_root, "systemctl", "disable", "--now", *services], check=False)


# ---- virtual environment


def environment_stands() -> bool:
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text() == stamp()


def stamp() -> str:
    """What .venv was made from: the lock file and the Python."""
    return f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()} python{sys.version_info.major}.{sys.version_info.minor}\n"


def make_environment(lock: int) -> None:
    """Make .venv from the lock file; every download is checked against its hash there."""
    say("making .venv from requirements.lock (about 70 MB from the Python package index)")
    shutil.rmtree(VENV, ignore_errors=True)
    try:
        run([sys.executable, "-I", "-m", "venv", str(VENV)], lock)
        pip = [str(PYTHON), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input"]
        run([*pip, "install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(LOCK)], lock)
        unfinished = STAMP.with_suffix(".tmp")
        unfinished.write_text(stamp())
        unfinished.rename(STAMP)
    except BaseException:
        shutil.rmtree(VENV, ignore_errors=True)
        raise


# ---- common


@contextlib.contextmanager
def only_one_set_up() -> Iterator[int]:
    """Hold .setup/lock; several starts at once then do the work once. Yields the lock's descriptor."""
    (ROOT / ".setup").mkdir(exist_ok=True)
    with open(ROOT / ".setup/lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another start is setting up; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def run(argv: list[str], lock: int | None = None, check: bool = True) -> bool:
    """Run one step of the set-up, its words on stderr; returns whether it succeeded. A step that is given the lock
    keeps it held should we be killed first. Raises ToolMissing when it fails, if check."""
    code = subprocess.run(argv, stdout=sys.stderr, stdin=None, pass_fds=() if lock is None else (lock,)).returncode
    if code and check:
        raise ToolMissing(
            f"{shlex.join(argv)} to succeed", f"exit code {code} (its words are above)", "see there, start again"
        )
    return not code


def say(text: str) -> None:
    print(f"ssdrig: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
