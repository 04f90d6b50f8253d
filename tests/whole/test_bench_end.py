"""Ends of real runs on the virtual bench, in processes of their own: signals, a terminal that is gone, full disks, and
any TMPDIR."""

import contextlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from conftest import HOST

from ssdrig.runs import journal

ENV = os.environ | {"PYTHONPATH": str(HOST)}
WORDS = "run consistency --virtual sata-tlc --capacity 256MiB --jsonl".split()

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


def command(runs: Path, duration_s: int) -> list[str]:
    return [sys.executable, "-m", "ssdrig", *WORDS, "--duration", str(duration_s), "--runs", str(runs)]


def last_line(text: str) -> dict:
    return json.loads(text.splitlines()[-1])


def test_impatient_signals(tmp_path):
    """At other moments each time, until the run says that it is finishing. The first one is heard; the rest hurry
    nothing that must be done."""
    (tmp_path / "tmp").mkdir()
    stderr_file = tmp_path / "stderr"
    with (
        stderr_file.open("w") as stderr,
        subprocess.Popen(
            command(tmp_path / "runs", 60),
            env=ENV | {"TMPDIR": str(tmp_path / "tmp")},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        run = json.loads(process.stdout.readline())["run"]
        time.sleep(random.uniform(0, 3))
        sent = 0
        while sent < 4 or ("finishing: " not in stderr_file.read_text() and process.poll() is None):
            process.send_signal(random.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
            sent += 1
            time.sleep(random.uniform(0.05, 0.4))
        out, _ = process.communicate()
    err = stderr_file.read_text()
    # a signal that comes when the run is over, its folder closed, ends the process as signals do
    late = [-signal.SIGINT, -signal.SIGTERM, -signal.SIGHUP]
    assert process.returncode in (130, *late) and "Traceback" not in err and "finishing: " in err
    assert journal.state(run) == "interrupted"
    assert last_line(out)["state"] == "interrupted"
    assert not list((tmp_path / "tmp").iterdir())


def test_a_terminal_that_is_gone(tmp_path):
    """The session's terminal is closed, as when ssh breaks: SIGHUP, and EIO for whatever is said from then on."""
    (tmp_path / "tmp").mkdir()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= ENV | {"TMPDIR": str(tmp_path / "tmp")}
        os.execv(sys.executable, command(tmp_path / "runs", 60))
    deadline = time.monotonic() + 600
    seen = b""
    while b"kept" not in seen and time.monotonic() < deadline:
        seen += os.read(terminal, 65536)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    (run,) = (tmp_path / "runs").iterdir()
    *events, end = journal.events(run)
    assert [e["step"] for e in events if e["kind"] == "step.end"][-1] == "teardown"
    assert (end["state"], end["why"]) == ("interrupted", "stopped by SIGHUP")
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("room_kB", [50, 140])  # at 20 moments: test_teardown.py
def test_a_full_disk(tmp_path, room_kB):
    disk = tmp_path / "disk"
    for folder in (disk, tmp_path / "tmp"):
        folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room_kB}k", "tmpfs", str(disk)], check=True)
    try:
        done = subprocess.run(
            command(disk, 20), env=ENV | {"TMPDIR": str(tmp_path / "tmp")}, capture_output=True, text=True
        )
        assert done.returncode in (8, 10) and "Traceback" not in done.stderr, done.stderr
        assert not list((tmp_path / "tmp").iterdir())
        if room_kB == 50:  # less than fio's logs alone take: nothing starts
            assert done.returncode == 8 and f"free in {disk}" in done.stderr and not list(disk.iterdir())
        else:
            result = last_line(done.stdout)
            assert result["state"] == journal.state(result["run"]) == "failed"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "--lazy", str(disk)], check=True)


@pytest.fixture
def odd():
    """A folder with whatever a URI, a shell or fio treats as special in its name, which leaves room for a socket's: of
    one that does not, the bench takes another."""
    with tempfile.TemporaryDirectory(prefix="a b-ä-日-100%41-a&b=c#y;z?'$HOME", dir="/tmp") as folder:
        yield Path(folder)


def test_a_whole_run_in_any_tmpdir_whose_stdout_takes_nothing(tmp_path, odd):
    words = [word for word in command(tmp_path / "runs", 4) if word != "--jsonl"]
    how = {"env": ENV | {"TMPDIR": str(odd)}, "stderr": subprocess.PIPE, "text": True, "timeout": 400}
    with open("/dev/full", "w") as full:
        done = subprocess.run([*words, "--json"], stdout=full, **how)
        assert done.returncode == 7 and "Traceback" not in done.stderr and "Exception" not in done.stderr
        (run,) = (tmp_path / "runs").iterdir()
        assert journal.state(run) == "complete" and not list(odd.iterdir())
        assert f"socket={quote(str(odd))}/" in (run / "fio/load/job.fio").read_text(), "fio went to another folder"
        done = subprocess.run([sys.executable, "-m", "ssdrig", "report", str(run), "--json"], stdout=full, **how)
    assert done.returncode == 7 and "No space left" in done.stderr and "Traceback" not in done.stderr
