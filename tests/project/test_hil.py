"""The tests for a real rig (tests/hil), all of them, on the SIMULATED board's port; and that they refuse what they must
refuse."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from simboard import REAL_TIME, SLOW, Board, lent_port

from ssdrig.virtual.bench import rails_for

ROOT = Path(__file__).resolve().parents[2]
SERIAL = b"\xe6SIMULAT".hex()  # of the stand-in's flash chip
WATTS = 2.5

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


@contextlib.contextmanager
def bench(folder, switch=True, **faults):
    """The port of a board whose flash holds the firmware (switch False: with a board.py that names no switch)."""
    flash = folder / "flash"
    flash.mkdir()
    for path in (ROOT / "firmware").glob("*.py"):
        shutil.copy(path, flash)
    if not switch:
        text, count = re.subn(r"(?m)^SWITCH = .*$", "SWITCH = ()", (flash / "board.py").read_text())
        assert count == 1
        (flash / "board.py").write_text(text)
    with (
        Board(folder, WATTS, {"noise": 1, "flash": str(flash), "rail": SLOW, **REAL_TIME, **faults}) as board,
        lent_port(board) as port,
    ):
        yield port


def hil(*words):
    """pytest on tests/hil, as a person would run it."""
    argv = [sys.executable, "-m", "pytest", "tests/hil", "-q", "-p", "no:cacheprovider", *map(str, words)]
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "host")}
    )


def test_all_of_them_pass_on_the_simulated_board(tmp_path):
    """Of two rails, each with its switch and its input of the scope."""
    twelve = rails_for(5, [("12V", 12.0, 0.0)])["rails"][0] | {
        **SLOW,
        "simulated": {"A": 0.4, "V": 12.0, "gate": 12, "scope": 27},
    }
    with bench(tmp_path, rails=[twelve]) as port:
        done = hil("--hil-port", port, "--hil-serial", SERIAL, "--hil-cut", "--hil-seconds", 3, "--hil-deaf", 6)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout and "failed" not in done.stdout and "error" not in done.stdout
    assert "SKIPPED" not in done.stdout, done.stdout


def test_without_leave_nothing_is_switched_and_another_rig_is_refused(tmp_path):
    with bench(tmp_path) as port:
        other = hil("--hil-port", port, "--hil-serial", "e660000000000000", "-x")
        tame = hil("--hil-port", port, "--hil-serial", SERIAL, "-k", "cut_and_back or a_reset_gives or says_what")
    assert (
        other.returncode == 1
        and f"expected the rig with serial e660000000000000 on {port}; seen serial {SERIAL}" in other.stdout
    )
    assert "passed" not in other.stdout
    assert tame.returncode == 0 and "1 passed, 3 skipped" in tame.stdout and "give --hil-cut" in tame.stdout


def test_a_rig_that_loses_samples_fails(tmp_path):
    # one in any 4 s, also for a pytest that takes two minutes to begin
    with bench(tmp_path, nacks=[[s, 40] for s in range(2, 150, 3)]) as port:
        done = hil(
            "--hil-port",
            port,
            "--hil-serial",
            SERIAL,
            "--hil-seconds",
            4,
            "-k",
            "nothing_is_lost or delivers_the_rate or energy_closes",
        )
    assert done.returncode == 1 and "1 failed, 2 passed" in done.stdout, done.stdout
    assert "conversions lost, 0 given up for the accumulators" in done.stdout


def test_a_rig_without_a_switch_and_with_another_file(tmp_path):
    words = "prompt_is_in_reach or token or nothing_off or cut_and_back"
    with bench(tmp_path, switch=False) as port:
        done = hil("--hil-port", port, "--hil-serial", SERIAL, "--hil-cut", "-k", words)
    assert done.returncode == 1 and "1 failed, 8 passed, 2 skipped" in done.stdout, done.stdout
    assert "assert ['board.py'] == []" in done.stdout and "this rig has no switch" in done.stdout


def test_they_are_never_run_by_accident():
    bare = hil()
    assert bare.returncode == 5 and "no tests ran" in bare.stdout
    half = hil("--hil-port", "/dev/ttyACM0")
    assert half.returncode == 4 and "belong together" in half.stderr
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "tests/hil",
        "tests/project/test_hil.py",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    every = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert "tests/project/test_hil.py" in every.stdout and "tests/hil/" not in every.stdout
