"""The guards of conftest.py, proven by tests that must trip them, in a pytest of their own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import conftest
import pytest

ROOT = Path(__file__).resolve().parents[2]

LEAVES_A_DAEMON = """
import subprocess
def test_leaves_a_daemon(tmp_path):
    daemon = subprocess.Popen(["setsid", "sleep", "100"])
    print(daemon.pid)
def test_later():
    pass
"""
HANGS = """
import fcntl
import subprocess
from pathlib import Path
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
@pytest.mark.keeps_time
def test_so_may_one_that_keeps_time():
    subprocess.run(["sleep", "1.5"])
def test_so_may_one_that_compiles_the_virtual_drive():
    kept = Path("host/ssdrig/__pycache__/kernels-1")
    kept.mkdir(parents=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["sleep", "1"])
        (kept / "flash.compiled").touch()
    subprocess.run(["sleep", "0.8"])
BURN = "import time\\nwhile time.process_time() < {}: pass"
def test_uses_too_much():
    subprocess.run(["python3", "-c", BURN.format(60)])
"""
FAILS_AND_LEAVES = """
import subprocess, time
import pytest
@pytest.fixture(scope="module")
def shared():
    process = subprocess.Popen(["sleep", "100"])
    yield process
    process.kill()
    process.wait()
started = []
def test_fails_with_a_process_of_its_own(shared):
    started.append(subprocess.Popen(["setsid", "sleep", "100"]))
    assert False
def test_finds_it_ended_and_what_is_shared_alive(shared):
    assert started[0].wait(600) == -9 and shared.poll() is None
"""
CHANGES_ITS_PROCESS = """
import os, signal
def test_becomes_nice():
    os.nice(1)
def test_goes_elsewhere():
    os.chdir("/")
def test_hears_no_signal():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def test_makes_files_that_all_may_write():
    os.umask(0)
def test_goes_elsewhere_and_comes_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
"""
TIDY = """
import os, subprocess
def test_tidy(tmp_path):
    assert str(tmp_path).startswith("/var/tmp/")
    assert subprocess.run(["true"]).returncode == 0
"""


def inner(
    folder: Path, tests: str, limit_s: float | None = None, more: tuple[str, ...] = ()
) -> subprocess.CompletedProcess:
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "host/ssdrig/base").mkdir(parents=True)
    for name in ("__init__.py", "base/__init__.py", "base/child_cpu.py"):
        (folder / "host/ssdrig" / name).write_bytes((ROOT / "host/ssdrig" / name).read_bytes())
    own = (ROOT / "tests/conftest.py").read_text()
    own = re.sub("(?m)^LEAVE_S = .*$", "LEAVE_S = 1", own)
    if limit_s:
        own = re.sub("(?m)^LIMIT_S, SLOW_LIMIT_S = .*$", f"LIMIT_S, SLOW_LIMIT_S = {limit_s}, 60", own)
        # meanwhile a test that works gets 50 ms of CPU time, whatever else the machine does
        own = re.sub("(?m)^IDLE_S, .*$", "IDLE_S, LEAST_CPU_S = 6, 0.05", own)
        own = own.replace("LOOK_S = 5", "LOOK_S = 0.2")
    (folder / "tests/conftest.py").write_text(own)
    (folder / "tests/test_inner.py").write_text(tests)
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    clean = {
        key: value for key, value in os.environ.items() if key not in ("PYTEST_DEBUG_TEMPROOT", "SSDRIG_TEST_RETRIED")
    }
    clean["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plugins = ["-p", "xdist"] if "-n" in more else []
    words = [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", *plugins, *more]
    return subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True)


def words_of(pid: int) -> bytes:
    """Its command line; none of one that is dead, or gone between two looks."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
def test_a_process_left_behind_fails_the_session_and_is_ended(tmp_path):
    done = inner(tmp_path, LEAVES_A_DAEMON)
    assert done.returncode == 1
    assert "2 passed, 1 error" in done.stdout
    pid = int(re.search(r"test_inner.py (\d+)", done.stdout)[1])
    assert f"{pid}: sleep 100 started by tests/test_inner.py::test_leaves_a_daemon (call)" in done.stdout
    deadline = time.monotonic() + 600
    while words_of(pid):  # killed; its new parent may take a moment to fetch it
        assert time.monotonic() < deadline, f"process {pid} lives on"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_test_that_hangs_fails_and_the_others_run(tmp_path):
    done = inner(tmp_path, HANGS, limit_s=1)
    assert done.returncode == 1
    assert "Failed: took longer than 1 s and used no CPU time" in done.stdout
    assert "Failed: used more than 1 s of CPU time" in done.stdout
    assert "2 failed, 4 passed" in done.stdout


LOOK_CPU_S = 1 / 32  # on a machine with many processes; exact in binary


class Machine:
    """What a test sees of a machine that gives it `share` of a CPU, in its own time."""

    def __init__(self, monkeypatch, share: float):
        self.now_s, self.used_s, self.looked_s, self.share = 0.0, 0.0, 0.0, share
        clocks = {"monotonic": lambda: self.now_s, "time": lambda: 0.0, "thread_time": lambda: self.looked_s}
        monkeypatch.setattr(conftest, "time", SimpleNamespace(**clocks))
        monkeypatch.setattr(conftest, "cpu_s", lambda pid: self._looked())
        monkeypatch.setattr(conftest, "compiled_since", lambda utc_s: False)

    def _looked(self) -> float:
        """CPU time of the test, and of the looks at it."""
        self.looked_s += LOOK_CPU_S
        return self.used_s + self.looked_s - LOOK_CPU_S

    def reason_after(self, limit: conftest.Limit, seconds: float) -> tuple[float, str]:
        """When a test that would last so long fails, and why: (seconds, "") if it does not."""
        while self.now_s < seconds:
            self.now_s += conftest.LOOK_S
            self.used_s += self.share * conftest.LOOK_S
            if self.now_s >= limit.limit_s and (reason := limit.reason()):
                return self.now_s, reason
        return self.now_s, ""


@pytest.mark.parametrize(
    "share, seconds, fails_s, reason",
    [
        (1.0, 110, 110, ""),
        (1.0, 1000, 125, "CPU time"),
        (0.01, 2000, 2000, ""),  # one of a hundred processes that want this CPU
        (0.03, 4000, 3005, "took longer than 3000 s"),
        (0.0, 1000, 185, "used no CPU time"),
        (0.003, 1000, 185, "used no CPU time"),  # a child that only looks now and then
    ],
)
def test_limit_of_a_test_counts_cpu_time(monkeypatch, share, seconds, fails_s, reason):
    machine = Machine(monkeypatch, share)
    ended_s, why = machine.reason_after(conftest.Limit(conftest.LIMIT_S), seconds)
    assert (ended_s, bool(why)) == (fails_s, bool(reason)) and reason in why


def test_what_a_failed_test_leaves_behind_is_ended_at_once(tmp_path):
    done = inner(tmp_path, FAILS_AND_LEAVES)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout


@pytest.mark.slow
def test_a_test_that_changes_the_process_of_the_later_ones_fails(tmp_path):
    done = inner(tmp_path, CHANGES_ITS_PROCESS)
    assert done.returncode == 1 and "5 passed, 4 errors" in done.stdout, done.stdout
    assert done.stdout.count("AssertionError: the test changed the process that it ran in") >= 4


@pytest.mark.slow
def test_a_tidy_session_passes_on_a_disk(tmp_path):
    done = inner(tmp_path, TIDY)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


KEEPS_TIME = """
import os, pytest
pytestmark = pytest.mark.keeps_time
def test_fails_once():
    assert os.path.exists("seen") or open("seen", "w").close()
"""
FAILS_TWICE = """
import pytest
pytestmark = pytest.mark.keeps_time
def test_fails_always():
    assert False, "never right"
"""
FREE_AND_BAD = """
import os
def test_fails_once():
    assert os.path.exists("seen") or open("seen", "w").close()
"""


@pytest.mark.slow
def test_what_keeps_time_gets_one_retry_and_the_summary_says_so(tmp_path):
    done = inner(tmp_path, KEEPS_TIME)
    assert done.returncode == 0, done.stdout
    assert "tests/test_inner.py::test_fails_once: failed, then passed" in done.stdout
    assert "1 retried" in done.stdout and "1 failed" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_session_that_was_stopped_has_not_passed(tmp_path, workers):
    """With -x: the first fails once and would pass on its retry; the second is never run."""
    done = inner(tmp_path, KEEPS_TIME + "def test_never_run():\n    assert False\n", more=("-x", *workers))
    assert done.returncode != 0, done.stdout
    assert "retried" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("tests, says", [(FAILS_TWICE, "failed, then failed again"), (FREE_AND_BAD, "1 failed")])
def test_no_other_failure_is_forgiven(tmp_path, tests, says):
    done = inner(tmp_path, tests)
    assert done.returncode == 1
    assert says in done.stdout


@pytest.mark.slow
def test_more_than_three_failures_are_no_matter_of_luck(tmp_path):
    tests = KEEPS_TIME + "".join(
        f"def test_{n}():\n    test_fails_once()\n    assert not {n} or True\n" for n in range(4)
    )
    tests = tests.replace('open("seen", "w").close()', 'open("seen" + str(os.times()), "w").close()')
    done = inner(tmp_path, tests)
    assert done.returncode == 1
    assert "retried" not in done.stdout


SEARCHES = """
from hypothesis import given, settings, strategies
seen = []
@settings(max_examples=100)
@given(strategies.integers())
def test_c(n):
    seen.append(n)
def test_d():
    assert len(seen) == 10
"""


def test_quick_leaves_out_what_is_slow_or_keeps_time_and_searches_less(tmp_path):
    tests = (
        "import pytest\n@pytest.mark.slow\ndef test_a():\n    pass\n@pytest.mark.keeps_time\ndef test_b():\n    pass\n"
    )
    done = inner(tmp_path, tests + SEARCHES, more=("--quick",))
    assert "2 passed, 2 deselected" in done.stdout, done.stdout


@pytest.mark.slow
def test_three_workers_run_all_and_what_keeps_time_on_one_of_two(tmp_path):
    where = "import os\ndef test_{n}_a():\n    open(os.environ['PYTEST_XDIST_WORKER'] + '.{n}', 'w')\n"
    where += "def test_{n}_b():\n    open(os.environ['PYTEST_XDIST_WORKER'] + '.{n}', 'w')\n"
    mark = "import pytest\npytestmark = pytest.mark.keeps_time\n"
    board = "# simboard\n"
    (tmp_path / "tests").mkdir()
    for n in range(8):
        head = (mark if n in (1, 3, 4, 6) else "") + (board if n in (3, 6) else "")
        (tmp_path / f"tests/test_{n}.py").write_text(head + where.replace("{n}", str(n)))
    done = inner(tmp_path, "", more=("-n", "3", "--dist", "loadscope"))
    assert "16 passed" in done.stdout, done.stdout
    ran = {path.suffix[1:]: path.stem for path in tmp_path.glob("gw*.*")}
    assert len(list(tmp_path.glob("gw*.*"))) == 8  # each file on one worker
    assert ran["1"] == ran["4"] and ran["3"] == ran["6"]
