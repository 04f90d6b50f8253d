"""Sets up what a command lacks: Debian packages, MicroPython, the virtual environment, the emulated board's image.

Runs before the environment exists (start.py): standard library only. All that it makes is in .setup/ of the clone and
belongs to the clone's owner, except the apt packages.
"""

import argparse
import concurrent.futures
import contextlib
import errno
import fcntl
import importlib.util
import os
import pwd
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ssdrig.base import files
from ssdrig.base.errors import SsdrigError, ToolMissing
from ssdrig.base.owner import give_one
from ssdrig.base.terminal import error_lines
from ssdrig.setup import debian, kicad, micropython, steps
from ssdrig.setup.environment import SETUP, install, make_environment
from ssdrig.setup.needs import (
    EXTRAS,
    PYTHON,
    ROOT,
    environment_stands,
    extras_missing,
    extras_of,
    missing,
    needs_packages,
    stands,
)
from ssdrig.setup.steps import STEPS, run

EMULATOR = SETUP / "emulator"
NPM_FILES = (
    "package.json",
    "package-lock.json",
)  # of tests/emulator: the emulator's version and the hash of its package
RELEASES = ("trixie", "forky", "sid")  # of Debian, whose MicroPython build.sh can take: 1.25, 1.26.1, 1.26.1


def command(argv: list[str]) -> int:
    """`./ssdrig setup`: set up what the demo needs, or what --emulator needs. Raises ToolMissing."""
    parser = argparse.ArgumentParser(
        prog="ssdrig setup", description="Install and make what the other commands need, and run nothing."
    )
    parser.add_argument("command", choices=["setup"], help=argparse.SUPPRESS)
    parser.add_argument(
        "--emulator",
        nargs="?",
        const=RELEASES[0],
        choices=RELEASES,
        help="also build MicroPython for an emulated RP2040 and Cortex-M3 in .setup/emulator, for the tests of the"
        " firmware there, from this release of Debian (trixie, the default: 1.25; others: 1.26.1; ten minutes, 1 GB)",
    )
    parser.add_argument(
        "--extra",
        action="append",
        choices=list(EXTRAS),
        default=[],
        help="also the packages of an extra; the commands that need one install it when they are first started",
    )
    options = parser.parse_args(argv)
    set_up("demo", options.extra)
    sweep()
    compile_simulator()
    if options.emulator:
        set_up_emulator(options.emulator)
    STEPS.say(f"set up: {ROOT}")
    return 0


def set_up(command: str, more: Sequence[str] = ()) -> None:
    """Bring about what command needs, and these extras. Raises ToolMissing with the line to type when that cannot be
    done here."""
    if stands(command) and not more:
        return
    if not may_write():
        return without_writing(command)
    with only_one_set_up() as lock:
        packages(command, with_venv=bool(more or needs_packages(command)) and not environment_stands())
        as_owner(lambda: make(command, more, lock))


def sweep() -> None:
    """Remove what killed set-ups left of the unpacked programs."""
    if may_write():
        as_owner(lambda: [debian.sweep(tool.PRIVATE) for tool in (kicad, micropython)])


def compile_simulator() -> None:
    """Compile the simulator as the clone's owner, so that the first demo begins immediately. If that fails, its
    first start tries again and prints why."""
    if not may_write():
        return
    words = [str(PYTHON), "-P", "-m", "ssdrig.virtual.compiled"]
    more = {"PYTHONPATH": str(ROOT / "host")}
    with only_one_set_up() as lock:
        as_owner(lambda: run(words, "compiling the simulator (half a minute, once)", lock, check=False, more=more))


def make(command: str, more: Sequence[str], lock: int) -> None:
    """Make the environment with its extras; in parallel, because the downloads wait for different servers, unpack
    MicroPython, and KiCad for the tests. If KiCad fails, the tests that need it report why. Raises ToolMissing."""
    with concurrent.futures.ThreadPoolExecutor(2) as parallel:
        unpacked = []
        if any(program.name == "micropython" for program in missing(command)):
            STEPS.say("unpacking Debian's MicroPython into .setup (4 MB)")
            unpacked.append(parallel.submit(micropython.provision))
        if (more or needs_packages(command)) and not environment_stands():
            if command == "test":
                parallel.submit(kicad.provision)
            make_environment(list(dict.fromkeys([*extras_of(command), *more])), lock)
        elif extras := list(dict.fromkeys([*extras_missing(command), *more])):
            install(extras, lock)
        for tool in unpacked:
            tool.result()


def set_up_emulator(release: str) -> None:
    """Build the emulated boards' images and fetch the emulator, unless they are there. Raises ToolMissing."""
    if emulator_stands(release) and (EMULATOR / "node_modules/rp2040js").exists():
        return
    with only_one_set_up() as lock:
        packages("emulator", with_venv=False)
        as_owner(lambda: build_emulator(release, lock))


def emulator_stands(release: str) -> bool:
    """Whether the images are there, and of that release."""
    try:
        return (EMULATOR / "release").read_text() == release
    except OSError:
        return False


def build_emulator(release: str, lock: int) -> None:
    """Make .setup/emulator: pico.uf2, cortex.elf and node_modules. Raises ToolMissing."""
    if not emulator_stands(release):
        words = f"building {release}'s MicroPython for the emulated boards in .setup/emulator (ten minutes)"
        run([str(ROOT / "tests/emulator/build.sh"), str(EMULATOR), release], words, lock)
        (EMULATOR / "release").write_text(release)  # last: all of it is there
    fetch_emulator(EMULATOR, lambda argv: run(argv, "fetching the emulator", lock))


def fetch_emulator(folder: Path, run: Callable[[list[str]], object]) -> None:
    """Fetch it by npm, checked against the hash in its lock file, without running the package's scripts. A kill leaves
    node_modules in the folder complete or absent."""
    unfinished = folder / "fetched"
    shutil.rmtree(unfinished, ignore_errors=True)  # by one that was killed
    unfinished.mkdir()
    for name in NPM_FILES:
        shutil.copy(ROOT / "tests/emulator" / name, unfinished)
    run(["npm", "ci", "--prefix", str(unfinished), "--ignore-scripts", "--no-audit", "--no-fund"])
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    (unfinished / "node_modules").rename(folder / "node_modules")
    shutil.rmtree(unfinished)


# ---- whose files


def owner() -> int:
    """The user that the clone belongs to."""
    return ROOT.stat().st_uid


def may_write() -> bool:
    """Whether this user may make files in .setup/ and .venv."""
    return os.access(ROOT, os.W_OK) and (not SETUP.exists() or os.access(SETUP, os.W_OK))


def without_writing(command: str) -> None:
    """A start in another user's clone: report what is left out. Raises ToolMissing if the command needs it."""
    by = f"{ROOT} belongs to {user_name(owner())}, who sets it up"
    if needs_packages(command) and os.path.lexists(PYTHON) and not os.access(PYTHON, os.X_OK):
        do = f"sudo rm -r {SETUP}/environments, then sudo PATH=/usr/bin:/bin {ROOT}/ssdrig setup"
        raise ToolMissing("an environment whose Python this user can run", f"{PYTHON} leads where he may not look", do)
    if needs_packages(command) and not environment_stands():
        raise ToolMissing("a clone that is set up", by, f"sudo {ROOT}/ssdrig setup, or use a clone of your own")
    if any(program.name == "micropython" for program in missing(command)):
        raise ToolMissing("MicroPython", by, f"sudo {ROOT}/ssdrig setup, or use a clone of your own")
    if lacking := extras_missing(command):
        do = f"sudo {ROOT}/ssdrig setup --extra {lacking[0]}, or use a clone of your own"
        raise ToolMissing(f"the extra {lacking[0]}", by, do)
    short(command, by)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def as_owner(make: Callable[[], object]) -> None:
    """Call make as the clone's owner: root in another user's clone does so in a child, and so leaves no file of
    root there. Raises ToolMissing when the child fails; the child has printed why."""
    if os.geteuid() != 0 or owner() == 0:
        make()
        return
    sys.stderr.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            become_owner()
            make()
            code = 0
        except SsdrigError as error:
            print(error_lines("ssdrig", error), file=sys.stderr, flush=True)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            do = "make room, then start again" if full else f"chown -R {user_name(owner())} {SETUP}"
            refused = ToolMissing(f"to write in {ROOT} as its owner", str(error), do)
            print(error_lines("ssdrig", refused), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise ToolMissing("the set-up to succeed", "its words above", "see there, start again")


def become_owner() -> None:
    """Give up root for the clone's owner, for good."""
    uid, group = owner(), ROOT.stat().st_gid
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:  # a container that does not know him
        os.setgroups([group])
        os.setgid(group)
        os.environ.pop("HOME", None)
    else:
        os.initgroups(entry.pw_name, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.environ["HOME"] = entry.pw_dir
    os.setuid(uid)


def give_to_owner(path: Path) -> None:
    """Give what root has made in the clone to its owner: the path itself, never the target of a link, and nothing below
    a linked folder."""
    if os.geteuid() != 0 or owner() == 0:
        return
    status = ROOT.stat()
    with contextlib.suppress(OSError):  # it is the owner's already, or another's: stays so
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            give_one(path.name, status.st_uid, status.st_gid, folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def with_rights_of_owner() -> Iterator[None]:
    """Around what makes a file in the clone: root in someone's clone reaches no further there than its owner, whatever
    links lie in the way, and the file is the owner's. Raises OSError for the rest."""
    if os.geteuid() != 0 or owner() == 0:
        yield
        return
    status, group, groups = ROOT.stat(), os.getegid(), os.getgroups()
    try:
        os.setgroups([status.st_gid])
        os.setegid(status.st_gid)
        os.seteuid(status.st_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


# ---- apt packages

NOT_IN_APT = SETUP / "not-in-apt"  # so that each start does not ask again; remove .setup to have it asked
# wait for the package manager of someone else (a new cloud machine upgrades itself), and print no terminal art
APT_OPTIONS = ["-o", "DPkg::Lock::Timeout=120", "-o", "Dpkg::Use-Pty=0"]


def packages(command: str, with_venv: bool) -> None:
    """Install missing packages by apt, reporting which and why. Packages that this distribution lacks are skipped, and
    so are optional ones if apt may not install. Raises ToolMissing if a needed one is still missing."""
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
        return short(command, "no apt-get, or neither root nor sudo to use it")
    for program in wanted:
        STEPS.say(f"missing: {program.name} (package {program.package}): {program.why}")
    apt_get = [*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", *APT_OPTIONS]
    # a source of someone else's may be down; what counts is the install
    STEPS.expect(2)
    updated = run([*apt_get, "update"], "reading the package lists", check=False)
    there = [name for name in names if in_apt(name)]
    if there:
        install = [*apt_get, "install", "-y", "--no-install-recommends", *there, *without_systemd(there)]
        run(install, f"installing {', '.join(there)}")
        silence([program.service for program in wanted if program.service and program.package in there], as_root)
    if updated:
        merely_used = [program.package for program in wanted if command not in program.needed_by]
        absent = {name for name in merely_used if name not in there}
        give_to_owner(NOT_IN_APT)  # of an older set-up by root
        with with_rights_of_owner():
            NOT_IN_APT.unlink(missing_ok=True)
            with open(NOT_IN_APT, "x") as file:  # x follows no link
                file.write("\n".join(sorted({*passed_over, *absent} - set(there))))
    return short(command, "this distribution has no such package, or another of that name")


def without_systemd(names: list[str]) -> list[str]:
    """The package to add so that these do not bring systemd along, in a container that has none: nvme-cli needs what
    makes system users, for which apt takes systemd first."""
    simulated = subprocess.run(
        ["apt-get", "-q", "-s", "install", "--no-install-recommends", *names], capture_output=True, text=True
    )
    return ["systemd-standalone-sysusers"] if "\nInst systemd " in simulated.stdout else []


def short(command: str, reason: str) -> None:
    """Report what is still missing. Raises ToolMissing if it is needed; MicroPython does not count because it can be
    unpacked."""
    left = [program for program in missing(command) if program.name != "micropython"]
    needed = [program.package for program in left if command in program.needed_by]
    if needs_packages(command) and not environment_stands() and importlib.util.find_spec("ensurepip") is None:
        needed.append(f"python3.{sys.version_info.minor}-venv")
    if needed:
        line = shlex.join(["apt-get", "install", "-y", "--no-install-recommends", *needed])
        raise ToolMissing(", ".join(needed), f"not installed; {reason}", f"as root: apt-get update && {line}")
    for program in left:
        STEPS.say(f"without {program.name} ({program.why}; package {program.package}): what needs it is left out")


def root_prefix() -> list[str] | None:
    """The argv prefix that runs a command as root; None if root or apt is not available."""
    if not shutil.which("apt-get"):
        return None
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        return None
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    # it asks for a password here, before a line with a bar would hide the question
    return ["sudo"] if sys.stdin.isatty() and subprocess.run(["sudo", "-v"]).returncode == 0 else None


def in_apt(package: str) -> bool:
    """Whether apt has it here, and not just something that claims to stand for it (Debian 12 has no micropython;
    Ubuntu's chromium is a snap, which does not run in a container)."""
    return bool(subprocess.run(["apt-cache", "madison", package], capture_output=True).stdout)


def silence(services: list[str], as_root: list[str]) -> None:
    """Stop the daemons that just came with packages, now and at the next boot."""
    if services and Path("/run/systemd/system").is_dir():
        run([*as_root, "systemctl", "disable", "--now", *services], "stopping the daemons", check=False)


# ---- common


@contextlib.contextmanager
def only_one_set_up() -> Iterator[int]:
    """Hold .setup/lock; so that parallel starts do the work once. Yields the lock's descriptor."""
    for left in (SETUP, SETUP / "lock"):
        give_to_owner(left)  # of a set-up by root that was killed
    with with_rights_of_owner():
        SETUP.mkdir(exist_ok=True)
        lock = files.lock_file(SETUP / "lock")
    with open(lock, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            STEPS.say("another start is setting up; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        steps.begin()
        give_to_owner(steps.LOG)
        yield file.fileno()
