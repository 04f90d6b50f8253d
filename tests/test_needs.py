"""What a command needs, and what is said before any of it is fetched."""

import os
import subprocess
import sys

import pytest
from launcher_clone import ROOT

from ssdrig import cli
from ssdrig.setup import absent, needs

# a Python that has no package: the launcher's, before the environment exists
BARE = "import sys; sys.path.insert(0, {host!r}); sys.argv = ['ssdrig', *{words!r}]; {more}from ssdrig import start\n"
NOTHING_MAY_COME = """
from ssdrig.setup import needs, provision
from ssdrig import start
def refuse(*_, **__): print('SET-UP'); raise SystemExit(99)
provision.set_up = refuse
needs.environment_stands = start.environment_stands = lambda: False
start.hold = lambda: None
"""


def bare(*words: str, absent_programs: bool = True) -> subprocess.CompletedProcess:
    """Start ssdrig in a Python without packages, where a set-up ends with exit code 99."""
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'host')!r})\nsys.argv = ['ssdrig', *{list(words)!r}]\n"
    code += NOTHING_MAY_COME + "start.main()\n"
    path = "" if absent_programs else os.environ["PATH"]
    return subprocess.run(
        [sys._base_executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"PATH": path, "HOME": "/nowhere"},
    )


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_each_command_needs_nothing(command):
    done = bare(command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: ssdrig {command}")


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_a_wrong_option_is_refused_before_the_set_up(command):
    done = bare(command, "--no-such-option")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "--no-such-option" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "run",
        "query",
        "export",
        "resume",
        "run nosuchplan --virtual sata-tlc",
        "run nosuchplan",
        "run consistency",
        "run consistency --virtual nosuch",
        "run consistency --virtual sata-tlc --duration 2",
        "run powerloss --virtual sata-tlc --power-off x",
        "query 'SELECT 1'",
        "query nosuchquestion runs",
        "report nosuch",
        "report --window x",
        "export nosuch --parquet /nowhere",
        "push nosuch --influx http://localhost/x",
        "resume nosuch",
        "runs nosuch/",
        "review --level nosuch --virtual sata-tlc",
        "virtual --preset nosuch --socket x",
        "virtual --preset sata-tlc",
        "demo --duration x",
        "trace make",
        "rig",
        "rig cut --profile nosuch",
        "serve --port x",
        "completion",
        "wear",
        "wear X --smartctl Y",
        "wear --smartctl missing.json",
        "wear --smartctl tests/data/smartctl/sata-samsung.json --start 1.5.2024",
        "wear X --rate much",
        "wear X --storage-temp hot",
        "watch --interval x",
        "plans show nosuch",
    ],
)
def test_wrong_words_are_refused_before_the_set_up(words):
    import shlex

    done = bare(*shlex.split(words))
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.startswith("ssdrig ") and "SET-UP" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "wear --smartctl tests/data/smartctl/sata-samsung.json",
        "wear --smart tests/data/smartctl/sata-samsung.json --json",
        "plans",
        "plans list --json",
        "plans show consistency",
    ],
)
def test_what_reads_files_alone_needs_no_package_and_no_program(words):
    done = bare(*words.split())
    assert done.returncode == 0 and done.stdout and "SET-UP" not in done.stdout, done.stderr


@pytest.mark.parametrize("words", ["drives", "wear SERIAL", "demo", "run consistency --virtual sata-tlc"])
def test_what_needs_a_program_or_a_package_is_set_up(words):
    assert "SET-UP" in bare(*words.split()).stdout


def test_drives_needs_no_package():
    assert not needs.needs_packages("drives") and not needs.needs_packages("wear") and needs.needs_packages("run")


def test_the_tests_tools_come_with_the_tests_alone():
    for command in {*cli.COMMANDS} - {"test"}:
        assert not {"test", "lake-test", "hardware-test"} & set(needs.extras_of(command))
    assert {"bench", "test", "serve", "lake"} <= set(needs.extras_of("test"))


def test_reports_and_tables_need_no_numba():
    for command in ("runs", "report", "query", "rig", "serve", "push", "units", "trace"):
        assert "bench" not in needs.extras_of(command)


def test_a_stand_in_gives_no_value():
    np = absent.Absent()
    assert np.dtype([("a", "u1")]) is np and (np.ndarray | None) is np
    for use in (bool, int, float, list, len, lambda x: x < 1, lambda x: 3 in x):
        with pytest.raises(absent.Unknown):
            use(np)


def test_stand_ins_are_forgotten_afterwards():
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'host')!r})\nfrom ssdrig.setup import absent\n"
        "with absent.stood_in_for() as finder:\n import ssdrig.rules.student, numpy, serial.tools\n"
        "assert finder.asked and not {'numpy', 'serial', 'ssdrig.rules.student'} & set(sys.modules)\n"
    )
    subprocess.run([sys._base_executable, "-I", "-S", "-c", code], check=True)
