"""drive/program.py against real processes: what hangs, floods, crashes or leaves children behind."""

import contextlib
import gc
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from looking import time_begins_with

from ssdrig.drive import program


def alive(pid: int) -> bool:
    """Running, and not only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone_soon(pid: int) -> bool:
    deadline = time.monotonic() + 600
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_keeps_both_streams_and_the_exit_code():
    call = program.run(["sh", "-c", "echo out; echo err >&2; exit 4"], 10)
    assert (call.exit_code, call.stdout, call.stderr, call.why) == (4, b"out\n", "err\n", None)


def test_counts_the_cpu_time_of_the_child_only():
    idle = program.run(["sh", "-c", "sleep 0.2"], 10)
    busy = program.run(["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"], 60)
    assert idle.wall_ms >= 200 and idle.cpu_ms < 150
    assert busy.cpu_ms > idle.cpu_ms


def test_has_no_input_and_runs_in_the_c_locale():
    assert program.run(["sh", "-c", 'read x || echo "none $LC_ALL"'], 10).stdout == b"none C\n"


def test_kills_what_hangs_with_its_children_and_keeps_what_it_printed(tmp_path, monkeypatch):
    time_begins_with(tmp_path / "said", monkeypatch)
    call = program.run(["sh", "-c", f"sleep 300 & echo $!; echo half; touch {tmp_path}/said; wait"], 0.5)
    child, half = call.stdout.split()
    assert half == b"half" and call.exit_code is None and "had not ended after 0.5 s" in call.why
    assert gone_soon(int(child))


def test_what_ended_while_this_process_was_suspended_is_not_late(monkeypatch):
    started, pidfd_open = [], os.pidfd_open
    monkeypatch.setattr(os, "pidfd_open", lambda pid: started.append(pid) or pidfd_open(pid))

    def now_ns():
        for pid in started:  # from its start on, nobody looks before it has ended, long after its time
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return 10**15 if started else 0

    monkeypatch.setattr(program, "time", SimpleNamespace(monotonic_ns=now_ns))
    call = program.run(["sh", "-c", "echo said; exit 3"], 0.5)
    assert (call.exit_code, call.stdout, call.why) == (3, b"said\n", None)


def test_does_not_wait_for_a_child_that_holds_the_pipe_and_ends_it():
    started = time.monotonic()
    call = program.run(["sh", "-c", "sleep 300 & echo $!"], 60)
    assert time.monotonic() - started < 30
    assert call.exit_code == 0 and call.why is None
    assert gone_soon(int(call.stdout))


def test_reads_a_flood_up_to_the_limit_and_kills_it():
    call = program.run(["sh", "-c", "yes"], 60, limit_bytes=100_000)
    assert len(call.stdout) == 100_000 and call.exit_code is None and "more than 100000 bytes" in call.why


def test_all_of_a_long_output_comes_when_it_is_below_the_limit():
    call = program.run(["head", "-c", "3000000", "/dev/zero"], 60)
    assert call.stdout == bytes(3_000_000) and call.exit_code == 0


def test_both_streams_are_read_while_one_is_full():
    call = program.run(["sh", "-c", "head -c 1000000 /dev/zero >&2; echo done"], 60)
    assert call.stdout == b"done\n" and call.exit_code == 0 and len(call.stderr) == program.STDERR_KEPT


def test_a_crash_is_no_exit_code():
    call = program.run(["sh", "-c", "kill -SEGV $$"], 10)
    assert call.exit_code is None and call.why == "ended by SIGSEGV"


@pytest.mark.parametrize(
    "content, mode, words",
    [("#!/bin/sh\n", 0o644, "was not found"), ("#!/no/such/shell\n", 0o755, "could not be started")],
)
def test_says_why_a_program_did_not_start(tmp_path, monkeypatch, content, mode, words):
    (tmp_path / "fake").write_text(content)
    (tmp_path / "fake").chmod(mode)
    monkeypatch.setenv("PATH", str(tmp_path))
    call = program.run(["fake"], 10)
    assert call.exit_code is None and words in call.why


def test_no_time_left_means_not_started(tmp_path):
    call = program.run(["touch", str(tmp_path / "ran")], 0)
    assert call.exit_code is None and "not started" in call.why and not (tmp_path / "ran").exists()


def test_a_process_that_does_not_die_is_left_and_said(tmp_path, monkeypatch):
    """One that waits in the kernel cannot be made here; a kill that does nothing looks the same."""
    time_begins_with(tmp_path / "said", monkeypatch)
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    monkeypatch.setattr(program, "DEATH_S", 0.05)
    call = program.run(["sh", "-c", f"echo $$; touch {tmp_path}/said; exec sleep 300"], 0.3)
    monkeypatch.undo()
    try:
        assert call.exit_code is None and "does not die" in call.why and "killed" in call.why
    finally:
        os.kill(int(call.stdout), signal.SIGKILL)
        os.waitpid(int(call.stdout), 0)


def test_no_descriptor_is_left_open():
    gc.collect()  # what earlier tests have left would be closed meanwhile
    before = len(os.listdir("/proc/self/fd"))
    for words in (["true"], ["sh", "-c", "yes"], ["no-such-program-of-ours"]):
        program.run(words, 10, limit_bytes=10_000)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_record_is_what_the_run_folder_keeps():
    call = program.run(["sh", "-c", "exit 64"], 10)
    record = program.record(call)
    assert record == {
        "argv": ["sh", "-c", "exit 64"],
        "exit_code": 64,
        "why": None,
        "t_ns": call.t_ns,
        "wall_ms": round(call.wall_ms, 3),
        "cpu_ms": round(call.cpu_ms, 3),
        "stderr": "",
    }
