"""The guards of conftest.py, proven by tests that must trip them, in a pytest of their own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

LEAVES_A_DAEMON = """
import subprocess
def test_leaves_a_daemon(tmp_path):
    daemon = subprocess.Popen(["setsid", "sleep", "100"])
    print(daemon.pid)
def test_later():
    pass
"""
HANGS = """
import subprocess
import pytest
def test_hangs_and_swallows_exceptions():
    try:
        subprocess.run(["sleep", "100"])
    except Exception:
        pass
def test_goes_on_after_it():
    pass
@pytest.mark.slow
def test_slow_ones_may_take_longer():
    subprocess.run(["sleep", "1.5"])
"""
TIDY = """
import os, subprocess
def test_tidy(tmp_path):
    assert str(tmp_path).startswith("/var/tmp/")
    assert subprocess.run(["true"]).returncode == 0
"""


def inner(folder: Path, tests: str, limit_s: float | None = None) -> subprocess.CompletedProcess:
    (folder / "tests").mkdir()
    conftest = (ROOT / "tests/conftest.py").read_text()
    if limit_s:
        conftest = re.sub("(?m)^LIMIT_S, SLOW_LIMIT_S = .*$", f"LIMIT_S, SLOW_LIMIT_S = {limit_s}, 60", conftest)
    (folder / "tests/conftest.py").write_text(conftest)
    (folder / "tests/test_inner.py").write_text(tests)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    clean = {key: value for key, value in os.environ.items() if key != "PYTEST_DEBUG_TEMPROOT"}
    words = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider"]
    return subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=60)


def test_a_process_left_behind_fails_the_session_and_is_ended(tmp_path):
    done = inner(tmp_path, LEAVES_A_DAEMON)
    assert done.returncode == 1
    assert "2 passed, 1 error" in done.stdout
    pid = int(re.search(r"test_inner.py (\d+)", done.stdout)[1])
    assert f"{pid}: sleep 100 started by tests/test_inner.py::test_leaves_a_daemon (call)" in done.stdout
    for _ in range(100):  # killed; its new parent may take a moment to fetch it
        if not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes():
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} lives on")


def test_a_test_that_hangs_fails_and_the_others_run(tmp_path):
    done = inner(tmp_path, HANGS, limit_s=1)
    assert done.returncode == 1
    assert "Failed: took longer than 1 s" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


def test_a_tidy_session_passes_on_a_disk(tmp_path):
    done = inner(tmp_path, TIDY)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
