"""A step of the load: real fio on a virtual drive, and what ends it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from load_jobs import SIZE, needs_fio, random_write

from ssdrig.base import child_cpu
from ssdrig.base.errors import DriveError, JournalError, LoadError, ToolMissing, UsageError
from ssdrig.load import fio as load
from ssdrig.load import fiolog, fiostatus, fiotext

pytestmark = pytest.mark.keeps_time
needs_nbdkit = pytest.mark.skipif(not shutil.which("nbdkit"), reason="nbdkit is not installed")


@pytest.fixture
def drive(tmp_path):
    """An NBD server that takes 8 ms for a write: (process, URI)."""
    socket = tmp_path / "nbd"
    words = ["nbdkit", "-f", "-U", str(socket), "--filter=delay", "memory", str(SIZE), "wdelay=8ms"]
    with open(tmp_path / "nbdkit.log", "wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        until = time.monotonic() + 600
        while not socket.exists():
            assert process.poll() is None and time.monotonic() < until, (tmp_path / "nbdkit.log").read_text()
            time.sleep(0.02)
        yield process, f"nbd+unix:///?socket={socket}"
    finally:
        process.kill()
        process.wait()


def once_alive(pid_file: Path, then: bool):
    """should_stop that waits for the program to have written its id, by when it ignores what it is asked to do, and
    then says this. On a busy machine Python takes longer to start than any time limit that a test can wait for."""

    def waits() -> bool:
        until = time.monotonic() + 600
        while not (pid_file.exists() and pid_file.read_text()):
            assert time.monotonic() < until, "it did not begin"
            time.sleep(0.01)
        return then

    return waits


def fake_fio(tmp_path: Path, body: str) -> str:
    """A program that answers --version as fio and otherwise runs `body`."""
    path = tmp_path / "fio"
    path.write_text(
        f"#!{sys.executable}\nimport os, signal, sys, time\nif '--version' in sys.argv:\n    print('fio-3.33');"
        f" sys.exit()\n{body}\n"
    )
    path.chmod(0o755)
    return str(path)


def gone(pid_file: Path) -> bool:
    """The process that wrote its id there has ended (a zombie has, too)."""
    if not (pid := pid_file.read_text()):
        return False  # it has only made the file
    try:
        return (Path("/proc") / pid / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the one when it is opened, the other when it is read
        return True


# real fio


@needs_fio
@needs_nbdkit
def test_a_clean_step_adds_up(tmp_path, drive):
    """The host's clock, fio's logs, its documents and the live view agree on one step; a freeze of 2.2 s is zero
    seconds."""
    process, uri = drive
    seen = []

    def freeze(second):
        seen.append(second)
        if len(seen) == 2:
            os.kill(process.pid, signal.SIGSTOP)
            subprocess.Popen(["sh", "-c", f"sleep 2.2; kill -CONT {process.pid}"]).wait()

    result = load.run(random_write(uri, time_s=6), tmp_path / "f", on_second=freeze)
    s = result.seconds
    assert not result.stopped and s.source == "logs" and not s.torn_bytes
    assert s.iops.sum() == result.ios == s.totals["ios"] > 1000
    assert s.bw_bytes.sum() == result.bytes == 4096 * result.ios
    assert 5.9 < result.runtime_s < 30
    assert len(s.iops) >= 6 and s.zero_seconds >= 1
    assert result.t_start_ns < s.t_ns[0] < s.t_ns[-1] < result.t_end_ns
    assert sum(x["ios"] for x in seen) == seen[-1]["total_ios"] <= result.ios
    for x in seen:
        assert x["iops"] == pytest.approx(x["ios"] / x["span_s"]) and x["bytes"] == pytest.approx(
            x["bw_bytes"] * x["span_s"]
        )
        assert x["ios"] == 0 or x["lat_mean_ns"] > 1_000_000
    assert {"job.fio", "out.json", "stderr.txt", "start.json", "load_clat_hist.1.log"} <= set(
        os.listdir(tmp_path / "f")
    )
    live = fiostatus.from_status(fiotext.documents((tmp_path / "f" / "out.json").read_text())[0], None, None)
    assert live.iops.sum() == result.ios  # what would be left had fio been killed


@needs_fio
@needs_nbdkit
def test_a_step_bounded_by_size(tmp_path, drive):
    result = load.run(random_write(drive[1], name="fill", rw="write", block_bytes=131072), tmp_path / "f")
    assert result.bytes == SIZE and result.ios == SIZE // 131072 == result.seconds.iops.sum()


@needs_fio
@needs_nbdkit
@pytest.mark.parametrize("rw", ["randwrite", "write"])
def test_threads_are_one_job(tmp_path, drive, rw):
    """fio adds up the run times of grouped threads: 4 of them once read as 8 s of 2, with idle seconds."""
    job = random_write(drive[1], rw=rw, time_s=2, threads=4, queue_depth=4, detail="second")
    result = load.run(job, tmp_path / "f")
    s = result.seconds
    assert 1.9 < result.runtime_s < 6 and len(s.iops) <= result.runtime_s + 1
    assert not s.zero_seconds and not s.notes and s.iops.sum() == result.ios > 0
    assert len(list((tmp_path / "f").glob("*_clat_hist.*.log"))) == 4
    assert s.totals["lat_ns"]["99.000000"] >= s.totals["clat_ns"]["99.000000"] > 0


@needs_fio
@needs_nbdkit
def test_threads_share_one_pass(tmp_path, drive):
    for rw in ("write", "randwrite"):
        job = random_write(drive[1], rw=rw, threads=4, block_bytes=65536)
        assert load.run(job, tmp_path / rw).bytes == SIZE


@needs_fio
@needs_nbdkit
@pytest.mark.parametrize("detail", ["minute", "none"])
def test_less_detail_keeps_the_counts(tmp_path, drive, detail):
    result = load.run(random_write(drive[1], time_s=4, detail=detail), tmp_path / "f")
    s = result.seconds
    assert not list((tmp_path / "f").glob("*.log")) and s.source == "status" and not s.notes
    assert s.iops.sum() == result.ios and len(s.iops) in (4, 5) and not s.zero_seconds
    assert s.lat_mean_ns.min() > 1_000_000 and s.lat_p99_ns.max() >= 1_000_000
    assert result.t_start_ns < s.t_ns[0] < s.t_ns[-1] < result.t_end_ns
    lines = (tmp_path / "f" / "out.json").read_text().splitlines()
    short = [line for line in lines if line.startswith('{"t_ns"')]
    assert len(short) >= 4 and all(len(line) < 500 for line in short[1:])


@needs_fio
@needs_nbdkit
def test_a_budget_ends_the_step(tmp_path, drive):
    with pytest.raises(LoadError, match="to move at most 1.05 MB"):
        load.run(random_write(drive[1], time_s=60, most_bytes=1 << 20), tmp_path / "f")
    assert fiolog.load(tmp_path / "f").totals["bytes"] > 1 << 20


@needs_fio
@needs_nbdkit
def test_pauses_are_no_stall(tmp_path, drive):
    job = random_write(drive[1], time_s=7, burst_s=1, pause_s=2)
    assert load.stall_s(job) == 65 and load.stall_s(random_write("nbd://x", burst_s=5, pause_s=50)) == 85
    s = load.run(job, tmp_path / "f").seconds
    assert s.zero_seconds >= 1 and s.iops.sum() == s.totals["ios"] > 0


@needs_fio
@needs_nbdkit
def test_stopping_keeps_what_was_measured(tmp_path, drive):
    seen = []
    result = load.run(
        random_write(drive[1], time_s=600), tmp_path / "f", on_second=seen.append, should_stop=lambda: len(seen) >= 3
    )
    assert result.stopped and 2 < result.runtime_s < 500
    assert result.seconds.source == "logs" and result.seconds.iops.sum() == result.ios > 0


@needs_fio
@needs_nbdkit
def test_the_drive_dies(tmp_path, drive):
    process, uri = drive
    with pytest.raises(DriveError, match="(?i)nbd|connection|endpoint") as caught:
        load.run(random_write(uri, time_s=60), tmp_path / "f", on_second=lambda second: process.kill())
    assert str(tmp_path / "f") in caught.value.do
    assert fiolog.load(tmp_path / "f").iops.sum() > 0


@needs_fio
@needs_nbdkit
def test_the_drive_freezes(tmp_path, drive):
    process, uri = drive
    with pytest.raises(DriveError, match="none for 2 s"):
        load.run(
            random_write(uri, time_s=60),
            tmp_path / "f",
            on_second=lambda second: process.send_signal(signal.SIGSTOP),
            stall_after_s=2,
        )
    s = fiolog.load(tmp_path / "f")
    assert s.source == "status" and s.iops.sum() > 0 and s.t_ns[0] > 0


@needs_fio
def test_no_drive_at_all(tmp_path):
    with pytest.raises(DriveError, match="(?i)nbd"):
        load.run(random_write(f"nbd+unix:///?socket={tmp_path}/none", time_s=1), tmp_path / "f")


@needs_fio
@needs_nbdkit
def test_an_error_of_the_caller_ends_fio(tmp_path, drive):
    def fail(second):
        raise RuntimeError("the journal is gone")

    with pytest.raises(RuntimeError, match="journal"):
        load.run(random_write(drive[1], time_s=60), tmp_path / "f", on_second=fail)
    assert not [p for p in Path("/proc").glob("[0-9]*/cwd") if _links_to(p, tmp_path / "f")]


@needs_fio
@needs_nbdkit
def test_fio_dies_with_its_host(tmp_path, drive):
    code = (
        "import sys; from ssdrig.load import fio\n"
        f"fio.run(fio.Job('load', 'randwrite', 4096, 32, {SIZE}, {drive[1]!r}, time_s=60), {str(tmp_path / 'f')!r},"
        " on_second=lambda second: print('second', flush=True))"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert host.stdout.readline() == b"second\n"
        assert [p for p in Path("/proc").glob("[0-9]*/cwd") if _links_to(p, tmp_path / "f")]
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
    until = time.monotonic() + 600
    while [p for p in Path("/proc").glob("[0-9]*/cwd") if _links_to(p, tmp_path / "f")]:
        assert time.monotonic() < until
        time.sleep(0.02)
    s = fiolog.load(tmp_path / "f")
    assert s.source == "status" and s.iops.sum() > 0


def _links_to(link: Path, folder: Path) -> bool:
    try:
        return os.readlink(link) == str(folder)
    except OSError:
        return False


@pytest.mark.parametrize("silent_s", [0.0, 3 * load.POLL_S])
def test_a_host_that_was_suspended_ends_no_fio(tmp_path, silent_s):
    """Ctrl-Z, or a disk that hangs: nobody reads for long. fio waits for room in its pipe with its statistics locked,
    and gives up; and one that has ended meanwhile is not late, also where it had said nothing yet when the host looked
    last."""
    folder = tmp_path / "f"
    body = f"time.sleep({silent_s}); open('pid', 'w').write(str(os.getpid())); os.write(1, b'some words\\n' * 30_000)"
    fio = fake_fio(tmp_path, body)
    ended = []

    def suspended() -> bool:
        until = time.monotonic() + 600
        while not ended and not ((folder / "pid").exists() and gone(folder / "pid")) and time.monotonic() < until:
            time.sleep(0.01)
        ended.append(time.monotonic() < until)
        return False

    with pytest.raises(LoadError, match="logs or status documents"):
        load.run(random_write("nbd://x", time_s=0.01), folder, should_stop=suspended, margin_s=0.0, fio=fio)
    assert ended[0], "its pipe was full"


# a bad fio


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_without_end_is_bounded(tmp_path, stream):
    """Prints as fast as it can and ignores what it is asked to do."""
    body = (
        "for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE): signal.signal(s, signal.SIG_IGN)\nopen('pid',"
        f" 'w').write(str(os.getpid()))\nwhile True: os.write(sys.{stream}.fileno(), b'spinning {{ and spinning\\n' *"
        " 2000)"
    )
    with pytest.raises(LoadError, match="spinning"):
        load.run(random_write("nbd://x", time_s=60), tmp_path / "f", fio=fake_fio(tmp_path, body))
    stored_bytes = sum(p.stat().st_size for p in (tmp_path / "f").iterdir())
    assert 1 << 20 < stored_bytes < 16 << 20
    assert gone(tmp_path / "f" / "pid")


def test_output_without_end_of_a_lost_drive_is_the_drives_fault(tmp_path):
    body = "while True: os.write(2, b'fio: nbd_poll: recv: Connection reset by peer\\n' * 1000)"
    with pytest.raises(DriveError, match="Connection reset"):
        load.run(random_write("nbd://x", time_s=60), tmp_path / "f", fio=fake_fio(tmp_path, body))


def test_a_fio_that_cannot_be_asked_to_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "GRACE_S", 0.5)
    body = (
        "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_IGN)\n"
        "open('pid', 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    )
    fio = fake_fio(tmp_path, body)
    a, b, c = (tmp_path / name / "pid" for name in "abc")
    result = load.run(random_write("nbd://x", time_s=60), a.parent, should_stop=once_alive(a, True), fio=fio)
    assert result.stopped and result.seconds is None and result.ios == 0
    assert gone(a)
    with pytest.raises(LoadError, match="end on its own after 0.2 s"):
        late = {"should_stop": once_alive(b, False), "margin_s": 0.5}
        load.run(random_write("nbd://x", time_s=0.2), b.parent, **late, fio=fio)
    assert gone(b)
    with pytest.raises(DriveError, match="none for 0.5 s after 0 I/Os"):
        load.run(random_write("nbd://x"), c.parent, should_stop=once_alive(c, False), stall_after_s=0.5, fio=fio)
    assert gone(c)


def test_a_failing_fio_is_quoted(tmp_path):
    body = "sys.stderr.write('first\\nfio: job file is nonsense\\n'); sys.exit(3)"
    with pytest.raises(LoadError, match="exit code 3: first [|] fio: job file is nonsense"):
        load.run(random_write("nbd://x"), tmp_path / "f", fio=fake_fio(tmp_path, body))


def test_success_without_results_is_no_success(tmp_path):
    with pytest.raises(LoadError):
        load.run(random_write("nbd://x"), tmp_path / "f", fio=fake_fio(tmp_path, "sys.exit(0)"))


@pytest.mark.parametrize("damage", ["torn", "error", "missing"])
def test_logs_that_are_not_whole_are_told(tmp_path, damage):
    """The recorded step, written by a fio that says all went well, with its log torn as a full disk does, or an error
    inside."""
    source = Path(__file__).parents[1] / "data" / "fio-3.33-stall"
    body = (
        f"import shutil\nsource, damage = {str(source)!r}, {damage!r}\n"
        "for name in ('step_clat_hist.1.log', 'step_lat.1.log'): shutil.copy(source + '/' + name, name)\n"
        "if damage == 'torn': os.truncate('step_clat_hist.1.log', 65536)\n"
        "if damage == 'missing': os.unlink('step_clat_hist.1.log')\n"
        "text = open(source + '/out.json').read()\n"
        "print(text.replace('\"error\" : 0', '\"error\" : 28') if damage == 'error' else text)"
    )
    words = {"torn": "bytes torn", "error": "fio error 28", "missing": "from status"}
    with pytest.raises(LoadError, match=words[damage]):
        load.run(random_write("nbd://x"), tmp_path / "f", fio=fake_fio(tmp_path, body))


@pytest.mark.parametrize("answer", ["fio-3.16", "fio-2.99", "nonsense", "", "\udcff"])
def test_an_old_fio_is_refused(tmp_path, answer):
    path = tmp_path / "fio"
    path.write_text(f"#!/bin/sh\necho '{answer}'\n", errors="surrogateescape")
    path.chmod(0o755)
    with pytest.raises(ToolMissing, match=re.escape("3.30")):
        load.run(random_write("nbd://x"), tmp_path / "f", fio=str(path))
    assert not (tmp_path / "f").exists()


def test_no_fio(tmp_path):
    with pytest.raises(ToolMissing):
        load.version(str(tmp_path / "none"))


def test_a_fio_that_hangs_is_not_one_to_install(monkeypatch):
    def hangs(argv):
        raise child_cpu.NotReady("idle", "no CPU time used for 45 s", 0.0)

    monkeypatch.setattr(child_cpu, "output", hangs)
    with pytest.raises(ToolMissing, match="see why `/x/fio --version` does not end"):
        load.version("/x/fio")


def test_a_used_folder_is_refused(tmp_path):
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "load_iops.1.log").write_text("kept")
    with pytest.raises(UsageError, match="empty folder"):
        load.run(random_write("nbd://x"), tmp_path / "f", fio=fake_fio(tmp_path, ""))
    assert (tmp_path / "f" / "load_iops.1.log").read_text() == "kept"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="(?i)not a directory"):
        load.run(random_write("nbd://x"), tmp_path / "file" / "f", fio=fake_fio(tmp_path, ""))


def test_a_full_disk(tmp_path):
    """out.json lies on a device that is always full: the same exit code as when the journal meets it first."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(JournalError, match="No space left"):
        load._Sink(full).write(b"{}")
