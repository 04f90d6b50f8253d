"""The virtual environment: made from a lock file next to existing ones, extended by extras, and removed when
no process uses it any more.

Runs before the environment exists: standard library only. Raises ToolMissing where a step fails.
"""

import ast
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ssdrig.base.files import lock_file
from ssdrig.setup.needs import EXTRAS, LOCK, LOCK_MEGABYTES, ROOT, STAMP, VENV, extra_stamp, lock_of, stamp, stamp_of
from ssdrig.setup.steps import STEPS, run

SETUP = ROOT / ".setup"
ENVIRONMENTS = SETUP / "environments"
# settings of pip about the source of packages
OF_PIP_ALONE = {"index-url", "extra-index-url", "no-index", "proxy", "trusted-host", "client-cert", "constraint"}


STEPS_OF_FETCH = 3  # at most: uv, the packages, compiling them
FEW_MEGABYTES = 40  # what pip fetches in less time than uv itself takes


def make_environment(extras: list[str], lock: int) -> None:
    """Make an environment from the lock files, next to existing ones, every download checked against its hash, then
    point .venv to it. A process that uses the old environment is not affected."""
    content = stamp(sys.version_info[:2])
    digest, python = content.split()
    folder = ENVIRONMENTS / f"{digest[:16]}-{python}"
    if not stands(folder, content):
        STEPS.expect(1 + STEPS_OF_FETCH)
        STEPS.say(f"making .venv ({megabytes(extras, LOCK_MEGABYTES)} MB from the Python package index)")
        shutil.rmtree(folder, ignore_errors=True)  # of a set-up that was killed
        try:
            run([sys.executable, "-I", "-m", "venv", str(folder)], "making a virtual environment", lock)
            fetch(folder, [LOCK, *map(lock_of, extras)], lock, megabytes(extras, LOCK_MEGABYTES))
            _mark(extras, folder)
            unfinished = folder / f"{STAMP.name}.tmp"
            unfinished.write_text(content)
            unfinished.rename(folder / STAMP.name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    link(folder)
    sweep()


def install(extras: list[str], lock: int) -> None:
    """Add extras to the environment of .venv. Installed packages do not change: the lock files pin the same versions.
    Raises ToolMissing."""
    for extra in extras:
        about = EXTRAS[extra]
        STEPS.say(f"installing the extra {extra} from {lock_of(extra).name} ({about.megabytes:g} MB: {about.why})")
    folder = VENV.resolve()
    STEPS.expect(STEPS_OF_FETCH)
    fetch(folder, [lock_of(extra) for extra in extras], lock, megabytes(extras))
    _mark(extras, folder)


def _mark(extras: list[str], folder: Path) -> None:
    for extra in extras:
        stamp_of(extra, folder).write_text(extra_stamp(extra))


def megabytes(extras: list[str], base: float = 0) -> float:
    """Download size of these extras and `base`, MB, without uv."""
    return round(base + sum(EXTRAS[extra].megabytes for extra in extras), 1)


def fetch(folder: Path, files: list[Path], lock: int, size_MB: float) -> None:
    """Install what lock files name, size_MB in all, and compile it on all cores, without the packages' own tests.

    Every download is checked against its hash. uv fetches where it can, in a fifth of pip's time; a few megabytes are
    left to pip, because uv itself has to be fetched first. Raises ToolMissing."""
    python = [str(folder / "bin/python"), "-I", "-m"]
    pip = [*python, "pip", "--disable-pip-version-check", "--no-input", "install", "--no-compile"]
    pinned = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    words = [*pinned, *(word for file in files for word in ("-r", str(file)))]
    uv = folder / "bin/uv"
    packages = f"fetching {size_MB:g} MB of Python packages"
    trusted = _fetched_as_usual([*python, "pip", "config", "list"])
    ours = [*pip, *pinned, "-r", str(lock_of("uv"))]
    by_uv = trusted is not None and (
        uv.exists() or (size_MB > FEW_MEGABYTES and run(ours, "fetching uv, 18 MB", lock, check=False))
    )
    if trusted is None or not by_uv:
        run([*pip, *words], packages, lock)
    else:
        os.close(lock_file(folder / ".lock"))  # uv makes it for everybody, who could hold it
        for left in folder.parent.glob("uv-*"):  # by a set-up that was killed
            shutil.rmtree(left)
        # a cache next to the environment is linked, not copied, and does not fill the home or /tmp
        with tempfile.TemporaryDirectory(prefix="uv-", dir=folder.parent) as cache:
            line = [str(uv), "--cache-dir", cache, "--directory", str(ROOT), "pip", "install", "--python", python[0]]
            done = run([*line, *words], packages, lock, check=False, more=trusted)
        if not done:
            run([*pip, *words], f"{packages} by pip", lock)
    # some packages contain files that are not valid Python 3; pip ignores them, too
    run(
        [*python, "compileall", "-qq", "-j", "0", "-x", "site-packages/.*/tests/", str(folder / "lib")],
        "compiling them",
        lock,
        check=False,
    )


def _fetched_as_usual(pip_config: list[str]) -> dict[str, str] | None:
    """The environment variables that make uv fetch as pip would; None if pip is configured with another source, which
    uv does not read."""
    listed = subprocess.run(pip_config, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    settings = dict(re.findall(r"^[^=]*\.([a-z-]+)=(.*)$", listed.stdout, re.MULTILINE))
    if listed.returncode or OF_PIP_ALONE & set(settings):
        return None
    return {"SSL_CERT_FILE": ast.literal_eval(settings["cert"])} if "cert" in settings else {}


def stands(folder: Path, content: str) -> bool:
    """Whether the environment in folder is finished, and its Python is still there."""
    stamped = folder / STAMP.name
    return stamped.exists() and stamped.read_text() == content and (folder / "bin/python").exists()


def link(folder: Path) -> None:
    """Point .venv to folder, atomically. A .venv of an older ssdrig is a folder, which sweep() removes; a .venv that
    ssdrig did not make is renamed."""
    if VENV.is_dir() and not VENV.is_symlink():
        aside = ENVIRONMENTS / f"before-{os.getpid()}"
        if not (VENV / STAMP.name).exists():
            aside = VENV.with_name(f".venv.before-{os.getpid()}")
            STEPS.say(f"ssdrig did not make the .venv that is there: it is {aside} now")
        VENV.rename(aside)
    fresh = SETUP / "venv.tmp"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(folder, ROOT))
    fresh.rename(VENV)


def sweep() -> None:
    """Remove the environments that .venv does not lead to and that no process holds (start.become)."""
    for folder in ENVIRONMENTS.iterdir():
        if folder.resolve() == VENV.resolve():
            continue
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            if (folder / STAMP.name).exists():
                file = held.enter_context(open(folder / STAMP.name))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder)
