"""`ssdrig watch`: what it asks and keeps, that it leaves alone what a run holds, that it ends when told."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from fake_tools import answer_of_smartctl
from hypothesis import given
from hypothesis import strategies as st
from teardowns import in_a_callback, in_a_finalizer
from watching import (
    MAIN,
    NOVEMBER_NS,
    TESTS,
    ata_document,
    drives,
    finish,
    history,
    look,
    records,
    sata_drive,
    start,
    tools,
)

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.commands import watch as watch_command
from ssdrig.drive import guard

pytestmark = pytest.mark.keeps_time

__all__ = ["drives", "history", "tools"]  # fixtures
DAY_NS = 86400 * 10**9


def test_a_poll_is_kept_and_then_told(tools, drives, history, tmp_path):
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("0123-abc\n")
    before_ns = time.time_ns()
    (result,) = look(history, tmp_path).round(pytest.fail)
    after_ns = time.time_ns()
    path = Path(result["kept"]["file"])
    month = time.strftime("%Y-%m", time.gmtime(result["utc_ns"] // 10**9))
    assert path == history / "ACME-X1-S123" / f"{month}.jsonl" and path.stat().st_size == result["kept"]["bytes"]
    (record,) = records(history)
    assert before_ns < record["utc_ns"] == result["utc_ns"] < after_ns, "the middle of the poll"
    assert (record["host"], record["boot_id"], record["drive"]["serial"]) == (socket.gethostname(), "0123-abc", "S123")
    assert record["smartctl"] == ata_document() and record["tools"] and "failed" not in record
    assert result["snapshot"]["power_on_hours"] == 6383 and result["since"] is None


def test_the_first_poll_of_a_day_asks_all_the_others_less(tools, drives, history, tmp_path, monkeypatch):
    watch = look(history, tmp_path)
    day = [NOVEMBER_NS]
    monkeypatch.setattr(watch_command.time, "time_ns", lambda: day[0])
    monkeypatch.setattr(watch_command.time, "gmtime", lambda s=None: TIME_GMTIME(day[0] // 10**9 if s is None else s))
    for _ in range(3):
        watch.round(pytest.fail)
    day[0] += DAY_NS
    watch.round(pytest.fail)
    full = [" -x " in f" {call} " for call in tools.calls()]
    assert full == [True, False, False, True]


TIME_GMTIME = time.gmtime


def test_a_drive_that_a_run_holds_is_left_alone(tools, drives, history, tmp_path):
    drives.append(sata_drive(serial="S124"))
    (tmp_path / guard.FOLDER).mkdir(parents=True)
    with open(tmp_path / guard.FOLDER / guard.name("S123"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        results = look(history, tmp_path).round(pytest.fail)
    assert {r["drive"]["serial"]: r.get("skipped") for r in results} == {"S123": "a run holds the drive", "S124": None}
    assert len(tools.calls()) == 1
    skipped = next(r for r in records(history) if r["drive"]["serial"] == "S123")
    assert skipped["skipped"] == "a run holds the drive" and "smartctl" not in skipped and skipped["utc_ns"] > 0
    assert look(history, tmp_path).round(pytest.fail)[0]["snapshot"] is not None, "free again"


def test_a_drive_that_does_not_answer_is_recorded_with_why(tools, drives, history, tmp_path):
    # smartctl 7.3 of a node that is not there: exit status 2, JSON without data
    document = answer_of_smartctl(2)
    document["smartctl"]["messages"] = [
        {"string": "Smartctl open device: /dev/sdz failed: No such device", "severity": "error"}
    ]
    tools.smartctl(document, 2)
    (result,) = look(history, tmp_path).round(pytest.fail)
    assert "No such device" in result["failed"] and result["snapshot"] is None and result["kept"]
    assert records(history)[0]["failed"] == result["failed"]
    (tools.folder / "smartctl").unlink()
    assert "smartctl" in look(history, tmp_path).round(pytest.fail)[0]["failed"]


def test_a_drive_that_goes_is_recorded_once_and_taken_up_when_it_is_back(tools, drives, history, tmp_path):
    watch = look(history, tmp_path)
    watch.round(pytest.fail)
    gone = drives.pop()
    assert [r["failed"] for r in watch.round(pytest.fail)] == ["it is no longer there"]
    assert watch.round(pytest.fail) == []
    drives.append(gone)
    assert watch.round(pytest.fail)[0]["snapshot"] is not None


def test_named_drives_alone_are_polled(tools, drives, history, tmp_path):
    drives.append(sata_drive(serial="S124"))
    watch = watch_command.Watch(history, ["s124"], tmp_path)
    assert [r["drive"]["serial"] for r in watch.round(pytest.fail)] == ["S124"]
    drives.pop()
    assert [r.get("failed") for r in watch.round(pytest.fail)] == ["it is no longer there"]
    assert [r.get("failed") for r in watch.round(pytest.fail)] == ["it is no longer there"], "it was asked for by name"


def test_what_is_no_ssd_or_has_no_serial_is_left_out(tools, drives, history, tmp_path):
    drives[:] = [
        sata_drive(rotational=True),
        sata_drive(capacity_bytes=0),
        sata_drive(serial=""),
        sata_drive(serial="S125"),
        sata_drive(serial="S125"),
    ]
    drives.append(type(drives[0])(**vars(drives[3]) | {"interface": "virtio", "serial": "V1"}))
    lines = []
    assert [r["drive"]["serial"] for r in look(history, tmp_path).round(lines.append)] == ["S125"], (
        "namespaces of one controller once"
    )
    assert len(lines) == 1 and "no serial" in lines[0]


def test_power_cycles_between_polls(tools, drives, history, tmp_path):
    look(history, tmp_path).round(pytest.fail)
    tools.smartctl(ata_document(cycles=21))
    (result,) = look(history, tmp_path).round(pytest.fail)  # another process, which finds the poll before in the folder
    assert result["since"]["power_cycles"] == 2 and result["since"]["same_boot"] is None, "this root tells no boot id"
    a, b = ({"utc_ns": 5, "boot_id": boot, "smartctl": ata_document(cycles=n)} for boot, n in (("x", 19), ("x", 22)))
    assert watch_command.since(a, b) == {"utc_ns": 5, "power_cycles": 3, "unsafe_shutdowns": None, "same_boot": True}
    assert watch_command.since(a, b | {"boot_id": "y"})["same_boot"] is False


def test_a_full_disk_is_said_and_nothing_is_called_kept(tools, drives, history, tmp_path, monkeypatch):
    watch = look(history, tmp_path)
    watch.round(pytest.fail)
    (path,) = history.glob("*/*.jsonl")
    whole, write = path.read_bytes(), os.write

    def full(fd, data):
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".jsonl"):
            if path.stat().st_size > len(whole):
                raise OSError(28, "No space left on device")
            return write(fd, data[:50])
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    lines = []
    (result,) = watch.round(lines.append)
    assert result["kept"] is None and "No space left" in lines[0] and path.read_bytes() == whole
    monkeypatch.undo()


def test_a_drive_without_a_serial_is_no_name(tools, drives, history, monkeypatch):
    monkeypatch.setattr(watch_command.inventory, "find", lambda word, root="/": sata_drive(serial=""))
    with pytest.raises(UsageError, match="reports none"):
        watch_command.Watch(history, ["/dev/disk/by-id/x"])


# ---- the command


def test_once_prints_a_table(tools, history):
    code, out, err = finish(start(history, "--once", serials="S123,S124"))
    assert code == 0, err
    head, *rows = out.splitlines()
    assert head.split()[:4] == ["MODEL", "SERIAL", "HEALTH", "USED"] and len(rows) == 2
    assert rows[0].startswith("ACME X1  S123    ok") and "31" in rows[0].split() and "6383" in rows[0].split()
    assert len(records(history)) == 2


def test_a_round_needs_no_numpy(tools, history):
    """It runs on slow hosts and each hour: starting up must cost little."""
    script = (
        MAIN.replace("sys.exit(cli", "code = (cli") + "\nprint('numpy' in sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(TESTS), "S123", "--history", str(history), "--once"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and done.stderr.splitlines()[-1] == "False"


def test_once_as_json_and_with_a_drive_that_fails(tools, history):
    code, out, _ = finish(start(history, "--once", "--json", "--quiet"))
    answer = json.loads(out)
    assert code == 0 and answer["drive"]["serial"] == "S123" and Path(answer["kept"]["file"]).exists()
    assert answer["snapshot"]["temperature_C"] == 31
    tools.smartctl(b"", 1)
    code, out, err = finish(start(history, "--once", "--json"))
    assert code == 4 and json.loads(out)["failed"] and "does not answer" in err


def test_nothing_to_watch_is_said(tools, history, tmp_path):
    code, out, err = finish(start(history, "--once", serials=""))
    assert code == 4 and "none" in err and out == ""
    assert finish(start(history, "NOBODY", "--once"))[0] == 2
    assert finish(start(history, "--interval", "0", "--once"))[0] == 2
    (tmp_path / "file").write_text("")
    assert finish(start(tmp_path / "file" / "below", "--once"))[0] == JournalError.exit_code


def test_the_service_tells_systemd_and_ends_when_told(tools, history, tmp_path):
    """Its socket is read all along, as systemd does: where nobody reads, the eleventh message waits for ever."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        heard: list[str] = []
        listener = threading.Thread(target=lambda: heard.extend(iter(lambda: systemd.recv(1000).decode(), "")))
        listener.start()
        try:
            process = start(history, "--interval", "0.2", "--json", NOTIFY_SOCKET=str(tmp_path / "notify"))
            try:
                lines = [json.loads(process.stdout.readline()) for _ in range(3)]
                process.send_signal(signal.SIGTERM)
            finally:
                code, out, _ = finish(process)
        finally:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
                last.sendto(b"", str(tmp_path / "notify"))
            listener.join()
    assert code == 0 and heard[0] == "READY=1" and heard[-1] == "STOPPING=1"
    assert "WATCHDOG=1" in heard and any("STATUS=1 drives polled" in text for text in heard)
    lines += [json.loads(line) for line in out.splitlines()]
    assert [r["utc_ns"] for r in records(history)] == [r["utc_ns"] for r in lines]
    gaps = [b["utc_ns"] - a["utc_ns"] for a, b in zip(lines, lines[1:], strict=False)]
    assert min(gaps) > 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_told_to_end_in_a_poll_it_keeps_the_poll_first(tools, history, number, code):
    tools.put("smartctl", "touch began; sleep 1; cat smartctl.out")
    process = start(history, "--interval", "1000")
    deadline = time.monotonic() + 300
    while not (tools.folder / "began").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    assert finish(process)[0] == code and len(records(history)) == 1 and records(history)[0]["smartctl"]


class Rounds:
    """Stands in for watch.Watch: `do` is what a round does."""

    def __init__(self, folder, do):
        self.folder, self.do = folder, do

    def round(self, _):
        self.do()
        return []


def served(folder, do):
    return watch_command._serve(cast(Any, Rounds(folder, do)), 1000.0, None, Progress(quiet=True), None, None)


@pytest.mark.parametrize("drop", [in_a_callback, in_a_finalizer])
def test_signals_that_interrupt_finalizers_leave_it_to_the_next(history, drop, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)

    def poll():
        for _ in range(3):
            drop(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it waits for the poll")

    with pytest.raises(KeyboardInterrupt):
        served(history, poll)


def test_signal_that_comes_to_who_holds_the_lock_of_an_event(history, monkeypatch):
    """A handler that sets the Event for which its thread waits would wait for that thread."""
    made = []

    class Event(threading.Event):
        def __init__(self):
            super().__init__()
            made.append(self)

        def set(self):
            assert not self._cond._lock.locked()
            super().set()

    def poll():
        with made[-1]._cond:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(threading, "Event", Event)
    assert served(history, poll) == 0 and made[-1].is_set()


@pytest.mark.parametrize("address", ["path", "@abstract"])
def test_notify(tmp_path, address):
    address = str(tmp_path / "n") if address == "path" else f"@ssdrig-test-{os.getpid()}"
    watch_command.notify("READY=1", {"NOTIFY_SOCKET": address})  # nobody listens: no error
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind("\0" + address[1:] if address[0] == "@" else address)
        systemd.settimeout(10)
        watch_command.notify("READY=1\nSTATUS=µ", {"NOTIFY_SOCKET": address})
        assert systemd.recv(100).decode() == "READY=1\nSTATUS=µ"
    watch_command.notify("READY=1", {})


@given(st.integers(0, 2**62), st.floats(0.001, 1e6), st.integers(0, 10**15))
def test_polls_stay_on_their_grid(first_ns, interval_s, later_ns):
    interval_ns = round(interval_s * 1e9)
    nxt = watch_command.grid(first_ns, interval_s, first_ns + later_ns)
    assert (nxt - first_ns) % interval_ns == 0 and 0 < nxt - (first_ns + later_ns) <= interval_ns


def test_twin_drives_are_both_named_and_not_polled(tools, drives, history, tmp_path):
    drives[:] = [sata_drive(serial="S125"), sata_drive(serial="s125 ", name="sdy", node="/dev/sdy"), sata_drive("S126")]
    rows = {r["drive"]["serial"]: r.get("failed") for r in look(history, tmp_path).round(pytest.fail)}
    assert rows["S126"] is None and "/dev/sdy" in rows["S125"] and "/dev/sdz" in rows["s125 "]
    assert len(tools.calls()) == 1


def test_placeholder_serial_is_left_out_with_the_reason(tools, drives, history, tmp_path):
    drives[:] = [sata_drive("000000000000")]
    lines = []
    assert look(history, tmp_path).round(lines.append) == [] and "000000000000" in lines[0]
    with pytest.raises(UsageError):
        watch_command.Watch(history, ["000000000000"], tmp_path)


def test_stranger_in_an_enclosure_is_not_compared_with_the_disk_before_it(tools, drives, history, tmp_path):
    watch = look(history, tmp_path)
    watch.round(pytest.fail)
    assert watch.round(pytest.fail)[0]["since"] is not None
    drives[:] = [sata_drive(capacity_bytes=drives[0].capacity_bytes * 2)]
    assert watch.round(pytest.fail)[0]["since"] is None
