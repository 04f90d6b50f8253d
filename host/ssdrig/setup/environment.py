"""The virtual environment: made beside those that are there from a lock file, extended by extras, and swept away when
nobody uses it any more.

Runs before the environment exists: standard library only. Raises ToolMissing where a step fails.
"""

import ast
import contextlib
import fcntl
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ssdrig.errors import ToolMissing
from ssdrig.setup.needs import EXTRAS, LOCK, ROOT, STAMP, VENV, extra_stamp, lock_of, say, stamp, stamp_of

SETUP = ROOT / ".setup"
ENVIRONMENTS = SETUP / "environments"
# settings of pip that say where or how to fetch
OF_PIP_ALONE = {"index-url", "extra-index-url", "no-index", "proxy", "trusted-host", "client-cert", "constraint"}


def make_environment(lock: int) -> None:
    """Make an environment from the lock file beside those that are there, every download checked against its hash,
    then let .venv lead to it. Nothing changes for a process that uses the one of before."""
    content = stamp(sys.version_info[:2])
    digest, python = content.split()
    folder = ENVIRONMENTS / f"{digest[:16]}-{python}"
    if not stands(folder, content):
        say("making .venv from requirements.lock (about 130 MB from the Python package index)")
        shutil.rmtree(folder, ignore_errors=True)  # of a set-up that was killed
        try:
            run([sys.executable, "-I", "-m", "venv", str(folder)], lock)
            fetch(folder, [LOCK], lock)
            unfinished = folder / f"{STAMP.name}.tmp"
            unfinished.write_text(content)
            unfinished.rename(folder / STAMP.name)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    link(folder)
    sweep()


def install(extras: list[str], lock: int) -> None:
    """Add extras to the environment that .venv leads to; nothing that is there changes, for their lock files pin that
    to the same versions. Raises ToolMissing."""
    for extra in extras:
        say(f"installing the extra {extra} from {lock_of(extra).name} ({EXTRAS[extra][1]})")
    folder = VENV.resolve()
    fetch(folder, [lock_of(extra) for extra in extras], lock)
    for extra in extras:
        stamp_of(extra, folder).write_text(extra_stamp(extra))


def fetch(folder: Path, files: list[Path], lock: int) -> None:
    """Install what lock files name, every download checked against its hash, and compile it on all cores, as pip would
    on one, but for the packages' own tests. uv fetches it where it can: pip takes five times as long. Raises
    ToolMissing."""
    python = [str(folder / "bin/python"), "-I", "-m"]
    pip = [*python, "pip", "--disable-pip-version-check", "--no-input", "install", "--no-compile"]
    pinned = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
    words = [*pinned, *(word for file in files for word in ("-r", str(file)))]
    uv = folder / "bin/uv"
    trusted = _fetched_as_usual([*python, "pip", "config", "list"])
    if trusted is None or not (uv.exists() or run([*pip, *pinned, "-r", str(lock_of("uv"))], lock, check=False)):
        run([*pip, *words], lock)
    else:
        for left in folder.parent.glob("uv-*"):  # by a set-up that was killed
            shutil.rmtree(left)
        # what lies beside the environment is linked, not copied, and fills nobody's home or /tmp
        with tempfile.TemporaryDirectory(prefix="uv-", dir=folder.parent) as cache:
            line = [str(uv), "--cache-dir", cache, "--directory", str(ROOT), "pip", "install", "--python", python[0]]
            done = run([*line, *words], lock, check=False, more=trusted)
        if not done:
            run([*pip, *words], lock)
    # some packages have files that are no Python of today, which pip passes over, too
    run(
        [*python, "compileall", "-qq", "-j", "0", "-x", "site-packages/.*/tests/", str(folder / "lib")],
        lock,
        check=False,
    )


def _fetched_as_usual(pip_config: list[str]) -> dict[str, str] | None:
    """What uv's environment needs to fetch from where pip would; None where somebody has told pip to fetch from
    elsewhere or in another way, which uv does not read."""
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
    """Let .venv lead to folder, at once. A .venv of an older ssdrig is a folder itself, which sweep() removes; one that
    somebody made for himself is kept under another name."""
    if VENV.is_dir() and not VENV.is_symlink():
        aside = ENVIRONMENTS / f"before-{os.getpid()}"
        if not (VENV / STAMP.name).exists():
            aside = VENV.with_name(f".venv.before-{os.getpid()}")
            say(f"ssdrig did not make the .venv that is there: it is {aside} now")
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


def run(argv: list[str], lock: int | None = None, check: bool = True, more: Mapping[str, str] | None = None) -> bool:
    """Run one step of the set-up, with more in its environment, its words on stderr; returns whether it succeeded. A
    step that is given the lock keeps it held should we be killed first. Raises ToolMissing when it fails, if check."""
    held = () if lock is None else (lock,)
    code = subprocess.run(
        argv, stdout=sys.stderr, stdin=None, pass_fds=held, env=os.environ | dict(more or {})
    ).returncode
    if code and check:
        raise ToolMissing(
            f"{shlex.join(argv)} to succeed", f"exit code {code} (its words are above)", "see there, start again"
        )
    return not code
