"""Finds the MicroPython interpreter (unix port) that runs our firmware on the virtual bench, and unpacks one where the
distribution has none. Standard library only: the launcher uses this before the virtual environment exists."""

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from ssdrig.errors import ToolMissing

OLDEST = (1, 22, 0)  # Ubuntu 24.04's; the firmware runs on it
SETUP = Path(__file__).resolve().parents[2] / ".setup"
PRIVATE = SETUP / "micropython"

# Where Debian has the package when the machine's own release (Debian 12) has not.
SUITE = "trixie"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TARGET_FIELDS = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"


def command() -> list[str]:
    """Return the argv prefix that runs MicroPython: $SSDRIG_MICROPYTHON, else the one in PATH, else the unpacked one.

    Raises ToolMissing when there is none of version OLDEST or newer; a wrong $SSDRIG_MICROPYTHON is not passed over.
    """
    override = os.environ.get("SSDRIG_MICROPYTHON")
    candidates = [shlex.split(override)] if override else [["micropython"], _loader_line(PRIVATE)]
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
        "correct SSDRIG_MICROPYTHON" if override else "run ./ssdrig setup, or name one in SSDRIG_MICROPYTHON",
    )


def provision() -> None:
    """Unpack Debian's MicroPython, with the libraries it needs, into .setup/micropython. Needs no root; apt checks the
    archive's signature. The mirror is the machine's own. Raises ToolMissing, and then leaves nothing behind.
    """
    do = f"install MicroPython {'.'.join(map(str, OLDEST))} or newer and name it in SSDRIG_MICROPYTHON"
    if not shutil.which("apt-get") or not KEYRING.exists():
        raise ToolMissing("Debian's apt and its archive keyring", "neither or one of them", do)
    mirrors = debian_mirrors(_run(["apt-get", "indextargets", "--format", TARGET_FIELDS, "Created-By: Packages"], do))
    if not mirrors:
        raise ToolMissing("a Debian mirror among this machine's apt sources", "none", do)
    SETUP.mkdir(exist_ok=True)
    for abandoned in SETUP.glob("micropython.*"):  # of a set-up that was killed; the launcher's lock is held
        shutil.rmtree(abandoned)
    for mirror in mirrors:
        try:
            return unpack(mirror, KEYRING, PRIVATE)
        except ToolMissing:
            if mirror == mirrors[-1]:
                raise


def debian_mirrors(index_targets: str) -> list[str]:
    """Pick from `apt-get indextargets` (TARGET_FIELDS) the archives that may hold another Debian release, best first.

    Before the first `apt-get update` apt knows no origin and prints the field's name; those come last.
    """
    known, unknown = [], []
    for line in index_targets.splitlines():
        uri, release, component, origin = line.split("|")
        if component == "main" and "-" not in release and not uri.startswith("cdrom:"):
            if origin == "Debian":
                known.append(uri)
            elif origin in ("", "$(ORIGIN)"):
                unknown.append(uri)
    return list(dict.fromkeys(known + unknown))


def unpack(mirror: str, keyring: Path, destination: Path) -> None:
    """Resolve, download, verify and unpack micropython of SUITE from mirror; destination appears whole or not at all."""
    do = "check the network and start again, or install MicroPython and name it in SSDRIG_MICROPYTHON"
    with tempfile.TemporaryDirectory(prefix="micropython.", dir=destination.parent) as folder:
        work = Path(folder)
        for name in ("state/lists/partial", "cache/archives/partial", "root"):
            (work / name).mkdir(parents=True)
        (work / "status").touch()  # no package is installed: apt then resolves the C library too
        (work / "sources.list").write_text(f"deb [signed-by={keyring} target=Packages lang=none] {mirror} {SUITE} main\n")
        (work / "apt.conf").write_text(_apt_conf(work))
        apt = ["apt-get", "-c", str(work / "apt.conf"), "-q"]
        _run([*apt, "update", "--error-on=any"], do)
        _run([*apt, "install", "-y", "--no-install-recommends", "--download-only", "micropython"], do)
        for package in sorted((work / "cache/archives").glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(work / "root")], do)
        if not _version(_loader_line(work / "root")):
            raise ToolMissing("the unpacked MicroPython to run", f"it does not, from {mirror} {SUITE}", do)
        if destination.exists():
            shutil.rmtree(destination)
        os.rename(work / "root", destination)


def _apt_conf(work: Path) -> str:
    """apt settings that keep it inside `work`: read with -c, so after the machine's own (whose proxy stays in force)."""
    return f"""
Dir::State "{work}/state"; Dir::State::status "{work}/status"; Dir::Cache "{work}/cache";
Dir::Etc::sourcelist "{work}/sources.list"; Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-"; Dir::Etc::preferencesparts "-"; APT::Default-Release "";
APT::Get::AllowUnauthenticated "false"; Acquire::AllowInsecureRepositories "false";
APT::Sandbox::User "root";
#clear APT::Update::Pre-Invoke; #clear APT::Update::Post-Invoke; #clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs; #clear DPkg::Post-Invoke; #clear APT::Keep-Downloaded-Packages;
"""


def _loader_line(root: Path) -> list[str]:
    """The unpacked program started by its own dynamic loader (the machine's C library is older); [] when not there."""
    loaders = sorted(root.glob("usr/lib/*-linux-gnu*/ld-linux*.so.*"))
    program = root / "usr/bin/micropython"
    if not loaders or not program.exists():
        return []
    return [str(loaders[0]), "--library-path", str(loaders[0].parent), str(program)]


def _version(argv: list[str]) -> tuple[int, ...] | None:
    """(major, minor, micro) of the interpreter that argv starts; None when it is no MicroPython or does not run."""
    code = "import sys; print(sys.implementation[0], *sys.implementation[1][:3])"
    try:
        done = subprocess.run([*argv, "-c", code], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
        name, *numbers = done.stdout.split()
        return tuple(map(int, numbers)) if done.returncode == 0 and name == "micropython" and len(numbers) == 3 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _run(argv: list[str], do: str) -> str:
    """Run a package tool. Its stdout is returned; on failure its last words become the ToolMissing."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{argv[0]} to work", str(error), do) from error
    if done.returncode:
        words = " / ".join(done.stderr.strip().splitlines()[-3:])
        raise ToolMissing(f"{argv[0]} to succeed", f"exit {done.returncode}: {words}", do)
    return done.stdout
