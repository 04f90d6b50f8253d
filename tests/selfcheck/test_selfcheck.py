"""`selfcheck`: what a check does when what it looks at fails, and when it is itself killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import selfcheck as benchmarks
from selfcheck import __main__ as selfcheck
from selfcheck import damage, disturbance, measured, window
from ssdrig import cli

LIMIT_S = 600  # of a wait for an event; a busy machine may take long


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, words",
    [("damage", (damage, "RUN_WORDS")), ("disturbance", None), ("energy", None), ("windows", (window, "WORDS"))],
)
def test_a_run_that_fails_is_one_error_and_no_traceback(name, words, capfd, monkeypatch):
    """Each of them starts a run of its own; here it is one that cannot be."""
    for bench in (measured.measured_run, window.demo_run):
        bench.cache_clear()
    if words:
        monkeypatch.setattr(*words, ["run", "no-such-plan", "--virtual", "sata-tlc"])
    monkeypatch.setattr(disturbance, "PRESET", "no-such-drive")
    monkeypatch.setattr(measured, "FAULTS", {"no-such-fault": 1})
    assert cli.main(["selfcheck", name]) == 8
    stderr = capfd.readouterr().err
    assert "Traceback" not in stderr
    assert (
        stderr.count(f"expected what `selfcheck {name}` looks at to be carried out") == 1 and "exit code 2 of" in stderr
    )


def test_a_check_that_is_killed_by_a_signal_says_which(monkeypatch, capfd):
    def killed():
        raise subprocess.CalledProcessError(-9, ["ssdrig", "run"])

    monkeypatch.setattr(selfcheck, "registry", lambda: {"one": ("words", killed)})
    monkeypatch.setattr(selfcheck, "takes", lambda: {"one": set()})
    assert cli.main(["selfcheck", "one"]) == 8
    assert "found: signal 9 of ssdrig run" in capfd.readouterr().err


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_killed_check_leaves_no_campaign(tmp_path):
    """The campaign is told to end, so that it can give the drive its power back: SIGTERM, and not kill -9."""
    stub = tmp_path / "campaign"
    stub.write_text(
        '#!/bin/sh\ntrap "echo ended > $(dirname "$0")/ended; exit" TERM\necho $$ > "$0.pid"\n'
        "while :; do sleep 0.1; done\n"
    )
    stub.chmod(0o755)
    code = f"""if 1:
        import signal, sys, time
        from pathlib import Path
        from selfcheck import powerloss_runs
        sys.executable = {str(stub)!r}
        powerloss_runs.begin(Path({str(tmp_path)!r}), 1)
        print("begun", flush=True)
        signal.pause()"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    check = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ)
    campaign = 0
    try:
        assert check.stdout and check.stdout.readline() == b"begun\n"
        wait_for(lambda: (tmp_path / "campaign.pid").exists() and (tmp_path / "campaign.pid").read_text().strip())
        campaign = int((tmp_path / "campaign.pid").read_text())
        assert not gone(campaign)
        check.kill()
        check.wait()
        wait_for(lambda: gone(campaign))
        assert (tmp_path / "ended").exists()
    finally:
        check.kill()
        check.wait()
        if campaign and not gone(campaign):
            os.kill(campaign, signal.SIGKILL)


def test_with_me_ends_at_once_where_the_parent_is_gone_already():
    """Between fork and exec the parent may have ended."""
    child = os.fork()
    if not child:
        os.getppid = lambda: 1
        benchmarks.with_me()()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def wait_for(condition) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_no_thread_of_numpy_spins_beside_the_load():
    """Each process that imports the two starts a thread for each processor, unless it is told not to."""
    source = "import os, ssdrig, numpy; print(len(os.listdir('/proc/self/task')))"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", source], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
