"""Finds the command line of KiCad 9, which checks and exports hardware/board, and unpacks Debian's where the machine
has none or an older one (Debian 12 has 6, Ubuntu 24.04 has 7: neither checks a schematic without its windows)."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from ssdrig.base import child_cpu, files
from ssdrig.base.errors import ToolMissing
from ssdrig.setup import debian
from ssdrig.setup.micropython import beside

OLDEST = 9
PRIVATE = Path(__file__).resolve().parents[3] / ".setup/kicad"
SUITE = "trixie"  # Debian's release with KiCad 9
# scripting, drawing on a screen, simulating, data of windows: a third of what would be unpacked, none of it loaded
WITHOUT = ("python3-wxgtk4.0", "libglx-mesa0", "libngspice0", "libgtk-3-common", "shared-mime-info", "xkb-data")
UNUSED = ("doc", "icons", "locale", "opencascade")  # below usr/share: a quarter of the unpacked bytes
DO = f"install KiCad {OLDEST} (Debian 12: package kicad of bookworm-backports)"


def command() -> list[str]:
    """The argv prefix that runs kicad-cli: the one in PATH, otherwise the unpacked one. Raises ToolMissing when
    neither is OLDEST or newer."""
    seen = []
    for argv in (["kicad-cli"], _line(PRIVATE)):
        if argv and shutil.which(argv[0]):
            version = _version(argv)
            if version >= OLDEST:
                return argv
            seen.append(f"{argv[-1]} of version {version or 'unknown'}")
    raise ToolMissing(f"kicad-cli {OLDEST} or newer", "; ".join(seen) or "none", DO)


def python() -> tuple[list[str], dict[str, str]]:
    """(argv prefix, what its environment needs) of a Python with KiCad's module pcbnew: the machine's, otherwise
    the unpacked one. Raises ToolMissing."""
    line = _line(PRIVATE)
    choices: list[tuple[list[str], dict[str, str]]] = [(["/usr/bin/python3"], {})]
    if line:
        packages = PRIVATE.resolve() / "usr/lib/python3/dist-packages"
        own = {"PYTHONHOME": str(PRIVATE.resolve() / "usr"), "PYTHONPATH": str(packages)}
        choices.append(([*line[:-1], str(Path(line[-1]).parent / "python3")], own))
    for argv, own in choices:
        try:
            done = child_cpu.output([*argv, "-c", "import pcbnew"], env=os.environ | own)
        except (OSError, child_cpu.NotReady):
            continue
        if done.returncode == 0:
            return argv, own
    raise ToolMissing("a Python with KiCad's module pcbnew", "none", DO)


def renderer(folder: Path) -> tuple[list[str], dict[str, str]]:
    """(argv prefix, what its environment needs) of a kicad-cli that draws parts. KiCad looks for its model
    readers below /usr, or next to a program that runs from its build folder; for the unpacked one such a place is made
    in `folder`. Raises ToolMissing."""
    line = command()
    if line != _line(PRIVATE):
        return line, {}
    root = PRIVATE.resolve()
    (plugins,) = root.glob("usr/lib/*-linux-gnu*/kicad/plugins/3d")
    for name in ("bin", "pcbnew", "plugins"):
        (folder / name).mkdir(parents=True)
    loader = folder / "bin" / Path(line[0]).name
    shutil.copy(line[0], loader)
    (folder / "pcbnew/_pcbnew.kiface").symlink_to(root / "usr/bin/_pcbnew.kiface")
    (folder / "plugins/3d").symlink_to(plugins)
    return [str(loader), *line[1:]], {"KICAD_RUN_FROM_BUILD_DIR": "1"}


def provision(say: Callable[[str], object] = lambda words: None) -> None:
    """Unless there is one, unpack Debian's KiCad, without its libraries, into .setup/kicad: 134 MB to fetch, 400 MB
    kept (debian.provision). With $SSDRIG_NO_INSTALL nothing is fetched. Raises ToolMissing."""
    PRIVATE.parent.mkdir(exist_ok=True)
    held = files.lock_file(PRIVATE.parent / "lock-kicad")
    with open(held, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several tests may want it together
        debian.sweep(PRIVATE)
        try:
            command()
            return
        except ToolMissing:
            if os.environ.get("SSDRIG_NO_INSTALL"):
                raise
        say("KiCad is fetched once: 134 MB")
        debian.provision(SUITE, "kicad", PRIVATE, _works, DO, without=WITHOUT)
        for name in UNUSED:
            shutil.rmtree(PRIVATE / "usr/share" / name, ignore_errors=True)


def _line(root: Path) -> list[str]:
    """The unpacked program started by its own dynamic loader (the machine's C library may be older); [] when not there.

    KiCad looks for its parts next to the running program, here the loader, so the loader is put next to them."""
    program = root / "usr/bin/kicad-cli"
    loaders = sorted(root.glob("usr/lib/*-linux-gnu*/ld-linux*.so.*"))
    if not loaders or not program.exists():
        return []
    loader = program.parent / loaders[0].name
    if not loader.exists():
        shutil.copy(loaders[0], loader)
    return [str(loader), "--library-path", beside(program, loaders[0].parent), str(program)]


def _works(root: Path) -> bool:
    line = _line(root)
    return bool(line) and _version(line) >= OLDEST


def _version(argv: list[str]) -> int:
    """KiCad's major version; 0 when it reports none."""
    try:
        with tempfile.TemporaryDirectory() as home:  # it writes its settings
            own = {"HOME": home, "KICAD_CONFIG_HOME": home}
            done = child_cpu.output([*argv, "version"], env=os.environ | own)
        return int(done.stdout.strip().split(".")[0]) if done.returncode == 0 else 0
    except (OSError, ValueError, child_cpu.NotReady):
        return 0
