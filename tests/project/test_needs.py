"""What a command needs, and what is said before any of it is fetched."""

import inspect
import os
import shlex
import subprocess
import sys

import pytest
from launcher_clone import ROOT

from selfcheck import __main__ as selfcheck
from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.commands import serve as serve
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


WRONG_WORDS = (
    "check NO-SUCH-RUN",
    "check latest --limits /nowhere.toml",
    "check latest --json --ocptv",
    "compare",
    "compare A B --level 100",
    "completion",
    "completion nosuch",
    "demo --capacity 1",
    "demo --duration x",
    "demo x",
    "drives x",
    "export",
    "export nosuch --parquet /nowhere",
    "hardware nosuch",
    "library nosuch",
    "plans check /nowhere.toml",
    "plans show nosuch",
    "purge",
    "purge NO-SUCH-DRIVE",
    "push nosuch --influx http://localhost/x",
    "query",
    "query 'SELECT 1'",
    "query nosuchquestion runs",
    "query wear",
    "read-map",
    "read-map --drive NO-SUCH-DRIVE",
    "record",
    "record --drive NO-SUCH-DRIVE",
    "record --virtual nosuch",
    "record --virtual sata-tlc -- nosuchcommand",
    "record --virtual sata-tlc --time 0",
    "report --window x",
    "report nosuch",
    "resume",
    "resume nosuch",
    "review",
    "review --drive NO-SUCH-DRIVE",
    "review --level nosuch --virtual sata-tlc",
    "review --virtual nosuch",
    "rig",
    "rig calibrate --readings /nowhere",
    "rig clear --rig /dev/nosuch",
    "rig cut --above 3A",
    "rig cut --profile glitch",
    "rig cut --profile nosuch",
    "rig doctor --resistor nan",
    "rig cut --rig /dev/nosuch",
    "rig doctor --rig /dev/nosuch",
    "rig flash --rig /dev/nosuch",
    "rig info --rig /dev/nosuch",
    "rig info --time 0",
    "rig setup",
    "rig setup --build nosuch",
    "run",
    "run /nowhere.toml --virtual sata-tlc",
    "run consistency",
    "run consistency --drive NO-SUCH-DRIVE",
    "run consistency --drive NO-SUCH-DRIVE --rig /dev/nosuch",
    "run consistency --virtual nosuch",
    "run consistency --virtual sata-tlc --budget x",
    "run consistency --virtual sata-tlc --capacity x",
    "run consistency --virtual sata-tlc --duration 2",
    "run consistency --virtual sata-tlc --faults {",
    "run consistency --virtual sata-tlc --influx x",
    "run consistency --virtual sata-tlc --rig /dev/nosuch",
    "run consistency --virtual sata-tlc --set nosuch=1",
    "run consistency --virtual sata-tlc --set x",
    "run nosuchplan",
    "run nosuchplan --virtual sata-tlc",
    "run powerloss --virtual sata-tlc --power-off x",
    "runs /nowhere/",
    "runs nosuch/",
    "selfcheck energy --cuts 3",
    "selfcheck nosuch",
    "import /nowhere --run latest --sync",
    "selfcheck powerloss-aim --cuts 0",
    "serve --port x",
    "setup --nosuch",
    "test tests/nosuch.py",
    "trace convert /nowhere f",
    "trace make",
    "trace make bench-light-like /nowhere/f",
    "trace make nosuch f",
    "trace play /nowhere --virtual sata-tlc",
    "trace record NO-SUCH-DRIVE f",
    "trace show /nowhere",
    "units",
    "units NO-SUCH-DRIVE",
    "virtual",
    "virtual --preset nosuch --socket x",
    "virtual --preset sata-tlc",
    "virtual --preset sata-tlc --socket x --capacity y",
    "virtual age --state x",
    "virtual precondition --preset sata-tlc --fill seq --drive-writes x --state f",
    "watch --interval 0",
    "watch --interval x",
    "watch NO-SUCH-DRIVE",
    "wear",
    "wear --smartctl missing.json",
    "wear --smartctl tests/data/smartctl/sata-samsung.json --start 1.5.2024",
    "wear NO-SUCH-DRIVE",
    "wear X --rate much",
    "wear X --smartctl Y",
    "wear X --storage-temp hot",
)
NO_RUNS = (  # folders that are no run, no review and no lake, and hold no truth
    "check /nowhere",
    "compare /nowhere /etc",
    "export /etc --parquet /tmp/x",
    "export /nowhere --parquet /tmp/x",
    "label /nowhere --tag x",
    "note /nowhere x",
    "push /etc --influx http://localhost:1/x",
    "push /nowhere --influx http://localhost:1/x",
    'query "SELECT 1" --lake /nowhere',
    "query wear /nowhere",
    "report /etc",
    "report /etc/passwd",
    "report /nowhere",
    "resume /etc",
    "virtual ledger --truth /nowhere",
    "resume /nowhere",
    "review --resume /nowhere",
)


def test_every_command_is_given_wrong_words_and_folders():
    started = {words.split()[0] for words in (*WRONG_WORDS, *NO_RUNS)}
    assert started == {*cli.COMMANDS, *cli.OF_THE_CLONE}


@pytest.mark.parametrize(
    "words, code",
    [
        *((words, UsageError.exit_code) for words in WRONG_WORDS),
        *((words, JournalError.exit_code) for words in NO_RUNS),
    ],
)
def test_wrong_words_are_refused_before_the_set_up(words, code):
    done = bare(*shlex.split(words))
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "SET-UP" not in done.stdout and "Traceback" not in done.stderr and done.stderr


def test_serve_refuses_root_before_the_set_up(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    args = cli.parser_of({"serve": serve}).parse_args(["serve"])
    with pytest.raises(UsageError):
        serve.check(args)


def test_what_selfcheck_takes_is_read_from_its_source():
    parameters = {name: {*inspect.signature(bench).parameters} for name, (_, bench) in selfcheck.registry().items()}
    assert selfcheck.takes() == {name: has & {*selfcheck.COUNTS} for name, has in parameters.items()}


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


@pytest.mark.parametrize("words", ["drives", "demo", "run consistency --virtual sata-tlc"])
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
        "with absent.stood_in_for() as finder:\n import ssdrig.plan.rules.student, numpy, serial.tools\n"
        "assert finder.asked and not {'numpy', 'serial', 'ssdrig.plan.rules.student'} & set(sys.modules)\n"
    )
    subprocess.run([sys._base_executable, "-I", "-S", "-c", code], check=True)
