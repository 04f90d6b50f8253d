"""What ./ssdrig says without an environment, what the set-up reads, and what tests/emulator/build.sh refuses."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib

import pytest
from launcher_clone import ROOT
from packaging.requirements import Requirement

from ssdrig.setup import needs


def test_help_of_this_clone():
    done = subprocess.run(
        [ROOT / "ssdrig", "--help"], capture_output=True, text=True, env={**os.environ, "SSDRIG_NO_INSTALL": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert all(f"\n  {word} " in done.stdout for word in ("demo", "run", "report", "test", "setup"))


@pytest.mark.parametrize(
    "word, do",
    [
        ("no-such-command", "`ssdrig --help` lists the commands"),
        ("rnu", "do you mean 'run'?"),
        ("tset", "do you mean 'test'?"),
    ],
)
def test_a_wrong_command_is_a_usage_error(word, do):
    done = subprocess.run([ROOT / "ssdrig", word], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ssdrig: error: expected a command\n  found: '{word}'\n  hint:  {do}\n"


def test_no_command_shows_the_help():
    done = subprocess.run([ROOT / "ssdrig"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Try it:" in done.stderr and "this machine's disks" in done.stderr


INTERRUPTED = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path):
    (tmp_path / "host/ssdrig").mkdir(parents=True)
    (tmp_path / "host/ssdrig/start.py").write_text(INTERRUPTED + "def main(): print('goes on')\n")
    shutil.copy(ROOT / "ssdrig", tmp_path)
    start = lambda sigint: subprocess.run(
        [tmp_path / "ssdrig"], capture_output=True, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, sigint)
    )
    done = start(signal.SIG_DFL)  # these tests may run where it is ignored
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    assert start(signal.SIG_IGN).stdout == "goes on\n"


def test_ctrl_c_from_then_on_is_words_and_an_exit_code():
    words = "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from ssdrig import start;"
    words += f"start.start = lambda argv: exec({INTERRUPTED!r}); start.main()"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ssdrig: interrupted\n")


# ---- the files that the set-up reads


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked() -> dict[str, list[str]]:
    """{name==version: hashes} of requirements.lock."""
    by_file: dict[str, list[str]] = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if match := re.match(r"([a-z0-9._-]+==[^ ]+)", line):
            by_file[match[1]] = hashes = []
        elif match := re.search(r"--hash=sha256:([0-9a-f]{64})", line):
            hashes.append(match[1])
    return by_file


def test_lock_holds_what_the_project_asks_for_with_hashes_and_no_host():
    versions = dict(entry.split("==") for entry in locked())
    for requirement in project()["dependencies"]:
        asked_for = Requirement(requirement)
        assert asked_for.specifier.contains(versions[asked_for.name]), requirement
    assert all(locked().values())
    assert "://" not in (ROOT / "requirements.lock").read_text()


@pytest.mark.parametrize("extra", needs.EXTRAS)
def test_the_lock_of_an_extra_moves_no_version_of_the_others(extra):
    held = {"", *list(needs.EXTRAS)[: list(needs.EXTRAS).index(extra)]}
    own, text = versions(extra), (ROOT / f"requirements-{extra}.lock").read_text()
    for requirement in project()["optional-dependencies"][extra]:
        asked_for = Requirement(requirement)
        assert asked_for.specifier.contains(own[asked_for.name]), requirement
    for other in held:
        assert {name: version for name, version in versions(other).items() if own.get(name, version) != version} == {}
    assert "://" not in text and text.count("--hash=") > len(own)


def versions(extra: str = "") -> dict[str, str]:
    """Name -> version of a lock file."""
    text = (ROOT / f"requirements{extra and '-'}{extra}.lock").read_text()
    return dict(re.findall(r"^([a-z0-9_-]+)==([^ ]+)", text, re.M))


def test_launcher_accepts_exactly_the_pythons_of_the_project():
    low, high = re.fullmatch(r">=(\d+\.\d+),<(\d+\.\d+)", project()["requires-python"]).groups()
    text = (ROOT / "ssdrig").read_text()
    assert f"({low.replace('.', ', ')}) <= sys.version_info < ({high.replace('.', ', ')})" in text
    assert re.search(r"for python in (.*);", text)[1].split() == [
        "python3",
        "python3.14",
        "python3.13",
        "python3.12",
        "python3.11",
    ]
    assert int(high.split(".")[1]) == 15  # with the list above: ends at 3.14


# ---- the script that builds the emulated board's image


def test_the_builder_refuses_another_release_and_touches_nothing(tmp_path):
    (tmp_path / "sources").mkdir()
    done = subprocess.run([ROOT / "tests/emulator/build.sh", tmp_path, "woody"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "expected trixie, forky or sid, seen woody\n")
    assert [path.name for path in tmp_path.iterdir()] == ["sources"]


@pytest.mark.parametrize("name", ["sources", "micropython", "build", "cortex.elf"])
def test_the_builder_removes_nothing_that_it_did_not_make(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()
    script = (ROOT / "tests/emulator/build.sh").read_text().partition("mirror=")[0]  # up to where it asks apt
    done = subprocess.run(["sh", "-c", script, "sh", tmp_path], capture_output=True, text=True)
    assert done.returncode == 2 and f"or one without {name}, seen {tmp_path}" in done.stderr
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [name, f"{name}/mine"]
