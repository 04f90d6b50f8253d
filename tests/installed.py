"""Tries ssdrig's wheel, or its installed program, with the Python of a system. Standard library only.

    python3 tests/installed.py WHEEL SMARTCTL_JSON [PYTHON ...]     in a new virtual environment of each PYTHON
    python3 tests/installed.py --program ssdrig SMARTCTL_JSON       what a .deb has installed

Prints two lines for each Python: megabytes fetched and seconds of that, CPU time of installing and of the first `wear`,
and how many commands answered --help. Exit code 1 when a command did not answer, or a limit was missed. `tests/roots.py
FOLDER --wheel` runs it in whole Debian systems."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S, LIMIT_MB = 10.0, 20.0  # CPU time of installing and of wear together; what is fetched
HELPS = """
from ssdrig import cli
import importlib
for name in cli.COMMANDS:
    try:
        cli.main([name, "--help"])
    except SystemExit as end:
        print("command-ended", name, end.code)
print("commands-known", len(cli.COMMANDS))
"""


def main(words: list[str]) -> int:
    """Returns 0 when all did what they must."""
    if words[:1] == ["--program"]:
        return 0 if answers("installed", [words[1]], ["/usr/bin/python3", "-P"], words[2]) else 1
    wheel, smart, *pythons = words
    results = [tried(python, wheel, smart) for python in pythons or ["python3"]]
    return 0 if all(results) else 1


def tried(python: str, wheel: str, smart: str) -> bool:
    """Install the wheel in an environment of this Python and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/environment"
        run([python, "-m", "venv", place])
        pip = [f"{place}/bin/python", "-m", "pip", "--disable-pip-version-check", "-q"]
        begun = time.monotonic()
        run([*pip, "download", "--only-binary", ":all:", "-d", f"{folder}/wheels", wheel])
        network_s = time.monotonic() - begun
        fetched_MB = sum(path.stat().st_size for path in Path(folder, "wheels").iterdir()) / 1e6
        before_s = cpu_s()
        run([*pip, "install", "--no-index", "--find-links", f"{folder}/wheels", wheel])
        installed_s = cpu_s() - before_s
        version = run([python, "--version"]).strip()
        within = fetched_MB <= LIMIT_MB
        print(f"{version}: fetched {fetched_MB:.1f} MB, in {network_s:.1f} s; installed in {installed_s:.1f} s of CPU")
        return answers(version, [f"{place}/bin/ssdrig"], [f"{place}/bin/python", "-P"], smart, installed_s) and within


def answers(title: str, program: list[str], python: list[str], smart: str, installed_s: float = 0.0) -> bool:
    """Whether wear answers in time, and every command --help. installed_s: CPU time that installing took."""
    before_s = cpu_s()
    right = "TBW" in run([*program, "wear", "--smartctl", smart])
    wear_s = cpu_s() - before_s
    lines = [line.split() for line in run([*python, "-c", HELPS]).splitlines()]
    ended = [line[1:] for line in lines if line[:1] == ["command-ended"]]
    known = int(next(line[1] for line in lines if line[:1] == ["commands-known"]))
    helped = sum(code == "0" for _, code in ended)
    good = right and helped == known and installed_s + wear_s <= LIMIT_S
    print(f"{title}: {'ok' if good else 'SHORT'}: wear {wear_s:.1f} s, {helped} of {known} commands answer --help")
    return good


def cpu_s() -> float:
    """CPU time of all programs that have ended: others may use the machine."""
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def run(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{argv}: exit code {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
