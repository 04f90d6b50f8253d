"""Fetches packages of another Debian release, or of another processor, and unpacks them into a folder of the clone.
Needs no root, and leaves the machine's own apt alone; apt checks the archive's signature. The mirror is the machine's
own. Standard library only."""

import concurrent.futures
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from ssdrig.base import temporary
from ssdrig.base.errors import ToolMissing

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TARGET_FIELDS = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)"


def provision(
    suite: str,
    package: str,
    destination: Path,
    runs: Callable[[Path], bool],
    do: str,
    architecture: str = "",
    without: tuple[str, ...] = (),
) -> None:
    """Unpack `package` of the release `suite`, with all it needs, into destination, which appears whole or not at all.

    runs(folder): does the unpacked program work there? architecture: Debian's name of a processor, "" is this
    machine's. without: packages that it depends on and can do without here. do: the hint if it fails. Raises
    ToolMissing, and then leaves no file."""
    if not shutil.which("apt-get") or not KEYRING.exists():
        raise ToolMissing("Debian's apt and its archive keyring", "neither or one of them", do)
    mirrors = debian_mirrors(run(["apt-get", "indextargets", "--format", TARGET_FIELDS, "Created-By: Packages"], do))
    if not mirrors:
        raise ToolMissing("a Debian mirror among this machine's apt sources", "none", do)
    destination.parent.mkdir(exist_ok=True)
    for mirror in mirrors:
        try:
            return unpack(mirror, KEYRING, suite, package, destination, runs, do, architecture, without)
        except ToolMissing:
            if mirror == mirrors[-1]:
                raise


def sweep(destination: Path) -> None:
    """Remove what a killed provision() left next to destination."""
    temporary.sweep(f"{destination.name}.", destination.parent)


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


def unpack(
    mirror: str,
    keyring: Path,
    suite: str,
    package: str,
    destination: Path,
    runs: Callable[[Path], bool],
    do: str,
    architecture: str = "",
    without: tuple[str, ...] = (),
) -> None:
    """Resolve, download, verify and unpack from this mirror. As `provision`."""
    with temporary.folder(f"{destination.name}.", destination.parent) as work:
        for name in ("state/lists/partial", "cache/archives/partial", "root"):
            (work / name).mkdir(parents=True)
        # no package is installed: apt then resolves the C library too
        (work / "status").write_text("".join(map(_installed, without)))
        (work / "sources.list").write_text(
            f"deb [signed-by={keyring} target=Packages lang=none] {mirror} {suite} main\n"
        )
        (work / "apt.conf").write_text(_apt_conf(work, architecture))
        apt = ["apt-get", "-c", str(work / "apt.conf"), "-q"]
        run([*apt, "update", "--error-on=any"], do)
        run([*apt, "install", "-y", "--no-install-recommends", "--download-only", package], do)
        archives = sorted((work / "cache/archives").glob("*.deb"))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as several:
            list(several.map(lambda archive: run(["dpkg-deb", "-x", str(archive), str(work / "root")], do), archives))
        if not runs(work / "root"):
            raise ToolMissing(f"the unpacked {package} to run", f"it does not, from {mirror} {suite}", do)
        if destination.exists():
            shutil.rmtree(destination)
        os.rename(work / "root", destination)


def _installed(package: str) -> str:
    """The entry of an installed package for apt: of a version that meets every demand."""
    return (
        f"Package: {package}\nStatus: install ok installed\nVersion: 9999\nArchitecture: all\nMulti-Arch: foreign\n\n"
    )


def _apt_conf(work: Path, architecture: str) -> str:
    """apt settings that keep it inside `work`: read with -c, so after the machine's own (whose proxy stays in
    force)."""
    other = (
        f'APT::Architecture "{architecture}"; #clear APT::Architectures; APT::Architectures {{ "{architecture}"; }};'
        if architecture
        else ""
    )
    at = _word(work)
    return f"""
Dir::State {at}/state; Dir::State::status {at}/status; Dir::Cache {at}/cache;
Dir::Etc::sourcelist {at}/sources.list; Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-"; Dir::Etc::preferencesparts "-"; APT::Default-Release "";
APT::Get::AllowUnauthenticated "false"; Acquire::AllowInsecureRepositories "false";
APT::Sandbox::User "root"; {other}
#clear APT::Update::Pre-Invoke; #clear APT::Update::Post-Invoke; #clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs; #clear DPkg::Post-Invoke; #clear APT::Keep-Downloaded-Packages;
"""


def _word(path: Path) -> str:
    """A path as apt.conf takes any byte: as a word without quotation marks, in which apt decodes %XX. Between them it
    decodes nothing, and a quotation mark would end the value."""
    return quote(os.fsencode(path), safe="/")


def run(argv: list[str], do: str) -> str:
    """What argv prints. Raises ToolMissing when it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{argv[0]} to work", str(error), do) from error
    if done.returncode:
        words = " / ".join(done.stderr.strip().splitlines()[-3:])
        raise ToolMissing(f"{argv[0]} to succeed", f"exit {done.returncode}: {words}", do)
    return done.stdout
