"""`run powerloss --target`: any server, any switch. The server is nbdkit, whose filters share no code with the judge:
one keeps its promises, one acknowledges a FLUSH and does nothing, one forgets FUA. It loses its cache by kill -9."""

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from drives import a_drive

from ssdrig import cli
from ssdrig.base.errors import ControlFailed, DriveError, ExchangedDrive, NotPaired, PromiseBroken, RigError
from ssdrig.blockio.nbd import NbdClient, address
from ssdrig.powerloss import campaign, cycle, history, nbdwriter, sessions, target, transports
from ssdrig.reading import table
from ssdrig.runs import journal, parts
from ssdrig.views.cuts import sentences as cuts_sentences

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("nbdkit"), reason="nbdkit is not installed")]
HONEST = "--filter=cache file {disk} cache=writeback"
LIES = "--filter=cache file {disk} cache=unsafe"
NO_FUA = "--filter=fua --filter=cache file {disk} cache=writeback fuamode=discard"


@pytest.fixture
def served(tmp_path):
    """The words of `run powerloss` for a server with these filters, which runs; it is ended in the end."""
    disk, sock, pid = tmp_path / "disk", tmp_path / "sock", tmp_path / "pid"
    disk.touch()
    with open(disk, "r+b") as file:
        file.truncate(64 << 20)

    def words(how: str, cuts: int = 3) -> list[str]:
        on = f"rm -f {sock}; nbdkit -U {sock} -P {pid} {how.format(disk=disk)}"
        subprocess.run(on, shell=True, check=True)
        uri = f"nbd+unix:///?socket={sock}"
        # until its files are closed: a zombie's pid remains as long as init leaves it
        ended = "while set -- /proc/$pid/task/*; [ $# -gt 1 ] || [ -e /proc/$pid/fd/0 ]; do sleep 0.01; done"
        off = f"read pid <{pid}; kill -9 $pid; {ended}; rm -f {sock}"
        arguments = ["run", "powerloss", "--target", uri, "--destroy-data", uri, "--power-off", off, "--power-on", on]
        arguments += ["--set", "write=0.4 s", "--set", "off_time=0.05 s", "--set", "window=16 MiB", "--cuts", str(cuts)]
        return [*arguments, "--runs", str(tmp_path / "runs"), "--quiet"]

    yield words
    subprocess.run(f"kill -9 $(cat {pid})", shell=True, stderr=subprocess.DEVNULL)


def test_a_dry_run_says_the_promise_and_what_cannot_be_tested_and_touches_nothing(served, tmp_path, capsys):
    words = [word for word in served(HONEST) if word != "--quiet"]
    assert cli.main([*words, "--dry-run"]) == 0
    stderr = capsys.readouterr().err
    assert "promise tested: NBD: what FLUSH or FUA covers is kept" in stderr and stderr.count("cannot be tested: ") == 4
    assert not any((tmp_path / "disk").read_bytes()) and not (tmp_path / "runs").exists()


def events_of(tmp_path) -> list[dict]:
    return [event for run in (tmp_path / "runs").glob("2*") for part in parts.of(run) for event in journal.events(part)]


def records(tmp_path) -> list[dict]:
    return [event for event in events_of(tmp_path) if event["kind"] == "session.judged"]


def test_a_server_that_keeps_its_promises_is_not_accused(served, tmp_path):
    assert cli.main(served(HONEST)) == 0
    judged = records(tmp_path)
    cuts = [session for session in judged if not session["control"]]
    assert len(cuts) == 3 and all(session["judged"] and session["durable"] > 0 for session in cuts)
    assert [session["control"] for session in judged].count("no-cut") == 1
    assert {session["shape"] for session in cuts} == {"command"}
    assert all(
        session["ready_s"] - session["stalled_s"] < 5 for session in cuts
    )  # without the time in which the host was busy


def test_a_cut_that_fails_once_costs_one_try_of_its_session(served, tmp_path):
    words = served(HONEST, cuts=2)
    at = words.index("--power-off") + 1
    words[at] += f"; test -e {tmp_path}/failed || {{ touch {tmp_path}/failed; exit 3; }}"
    assert cli.main(words) == 0
    judged = records(tmp_path)
    assert [session["cut"] for session in judged] == [1, 2, 3] and all(session["judged"] for session in judged)
    (run,) = (tmp_path / "runs").iterdir()
    (lost,) = [event for event in journal.events(run) if event["kind"] == "session.lost"]
    rows, again = (sessions.rows_of(run / sessions.folder(lost["cut"])), run / sessions.folder(lost["cut"]))
    before = history.read(again / sessions.LOST)
    assert "exit code 3" in lost["why"] and len(before) and before["seq"][-1] < rows["seq"][0]


def test_a_cut_that_fails_twice_ends_the_campaign(served, tmp_path):
    words = served(HONEST, cuts=2)
    words[words.index("--power-off") + 1] += "; exit 3"
    assert cli.main(words) == RigError.exit_code and not [
        session for session in records(tmp_path) if not session["control"]
    ]


@pytest.mark.parametrize(
    ("how", "names"), [(LIES, {"LOST_FLUSHED", "LOST_FUA"}), (NO_FUA, {"LOST_FUA", "LOST_FLUSHED"})]
)
def test_a_server_that_lies_is_found_with_a_proof(served, tmp_path, how, names):
    assert cli.main([*served(how), "--stop", "first"]) == PromiseBroken.exit_code
    failed = [session for session in records(tmp_path) if session["failed"]]
    assert len(failed) == 1 and set(failed[0]["findings"]) & names
    (run,) = (tmp_path / "runs").iterdir()
    proofs = json.loads((run / sessions.folder(failed[0]["cut"]) / "proofs.json").read_bytes())
    assert proofs[0]["certain"] and proofs[0]["class"] in failed[0]["findings"] and len(proofs[0]["sentences"]) >= 3
    assert journal.events(run)[-1]["state"] == "complete"


def test_a_server_that_loses_data_without_a_cut_fails_the_control(served, tmp_path, monkeypatch):
    from ssdrig.plan.kinds import cut_schedule

    real = cut_schedule.cuts
    monkeypatch.setattr(cut_schedule, "cuts", lambda *words: sorted(real(*words), key=lambda cut: not cut.control))
    read = campaign.readback.read

    def lose(link, layout, run, base, runs, rows=None):
        blocks = read(link, layout, run, base, runs, rows)
        if rows is not None and len(rows):
            blocks.seen[:] = 0  # what was written is not there
        return blocks

    monkeypatch.setattr(campaign.readback, "read", lose)
    assert cli.main(served(HONEST)) == ControlFailed.exit_code
    (only,) = records(tmp_path)
    assert only["control"] == "no-cut" and not only["judged"] and not only["failed"] and only["why_not"]


def test_a_drive_that_does_not_come_back_is_in_the_report(served, tmp_path, monkeypatch):
    for name in ("READY_S", "PATIENT_S", "MISSING_OFF_S", "LAST_OFF_S"):
        monkeypatch.setattr(cycle, name, 0.1)
    words = served(HONEST, cuts=2)
    words[words.index("--power-on") + 1] = "true"
    assert cli.main(words) == DriveError.exit_code
    *_, record = records(tmp_path)
    assert record["judged"] and record["suspicion"] and record["findings"] == {"MISSING": 1}
    (run,) = (tmp_path / "runs").iterdir()
    lines = cuts_sentences.lines(table.load(run).rows[0].result)
    assert any(line.startswith(f"suspected MISSING after 1 cut ({record['cut']})") for line in lines)


class Resending(nbdwriter.Nbd):
    """As a kernel does it: the writes that were under way when the link broke are sent again over the next one."""

    left: ClassVar[list[tuple[int, bytes]]] = []
    count = 0

    def __init__(self, uri):
        super().__init__(uri)
        with NbdClient(*address(uri)[:1]) as link:
            while self.left:
                link.write(*self.left.pop())
                Resending.count += 1

    def _end(self, why):
        slots = self.slots
        for slot in np.flatnonzero((self._cookies != 0) & (slots.kind == history.WRITE)).tolist():
            begin = slot * slots.bytes_each
            self.left.append((int(slots.offset[slot]), bytes(slots.data[begin : begin + slots.length[slot]])))
        super()._end(why)


def test_what_a_kernel_repeats_after_power_is_back_is_volatile_and_accuses_nobody(served, tmp_path, monkeypatch):
    monkeypatch.setattr(transports, "Nbd", Resending)
    plain = [
        "--set",
        "queues=1",
        "--set",
        "streams={ random = 60, hot = 10, sequential = 10 }",
    ]  # nothing that would keep it by the way
    assert cli.main([*served(HONEST, cuts=4), *plain, "--set", "mixes={ usual = 1 }"]) == 0 and Resending.count > 4
    assert not any(session["failed"] for session in records(tmp_path))


def test_a_switch_that_does_nothing_is_no_clean_campaign(served, tmp_path, capsys):
    words = served(HONEST, cuts=1)
    for option in ("--power-off", "--power-on"):
        words[words.index(option) + 1] = "true"
    assert cli.main(words) == NotPaired.exit_code
    assert "the drive to lose its power" in capsys.readouterr().err  # seen by one sign or another


def _option(words, name):
    return words[words.index(name) : words.index(name) + 2]


def test_a_campaign_that_is_killed_goes_on_and_gives_the_power_back(served, tmp_path, monkeypatch):
    words = served(HONEST, cuts=4)
    sock, off = Path(words[3].partition("=")[2]), words[words.index("--power-off") + 1]
    run, command = tmp_path, [sys.executable, "-m", "ssdrig"]
    again = [word for option in ("--target", "--power-off", "--power-on") for word in _option(words, option)]
    again += ["--destroy-data", words[3], "--quiet"]
    for n, kind in enumerate(("cut.plan", "cut.on", "drive.ready")):  # while it writes, comes back, reads
        words, had = (["resume", str(run), *again], len(parts.of(run))) if n else (words, 0)
        with subprocess.Popen([*command, *words]) as host:
            seen, deadline = 0, time.monotonic() + 120
            while seen <= n and time.monotonic() < deadline and host.poll() is None:
                time.sleep(0.05)  # looking costs as much as the campaign
                run = next((tmp_path / "runs").glob("2*"), tmp_path)
                made = parts.of(run)[had:] if run != tmp_path else []  # by this process, not by one before it
                lines = journal.events(made[-1]) if made and (made[-1] / "events.jsonl").exists() else []
                seen = (n + 1) * any(event["kind"] == kind for event in lines)
            host.send_signal(signal.SIGKILL)
        assert seen > n, f"{kind} was not seen"
    before = sessions.judged(parts.of(run))
    subprocess.run(off, shell=True, check=True)  # as if it had died between the two commands
    monkeypatch.setattr(campaign, "FIRST_S", 1.0)  # so long it waits for a drive before it gives it power
    assert cli.main(["resume", str(run), *again]) == 0
    judged = records(tmp_path)
    assert [session["cut"] for session in judged] == [1, 2, 3, 4, 5] and not any(
        session["failed"] for session in judged
    )
    assert all(judged[number - 1]["seed"] == record["seed"] for number, record in before.items())
    assert sock.exists()


@pytest.fixture
def exchangeable(monkeypatch):
    """A server in whose place another one may be, as a drive in a slot: the places that were remembered."""
    remembered, real = [], target.of_nbd
    error = ExchangedDrive("something of ours", "nothing", "look")
    made = {"remember": remembered.extend, "exchanged": lambda places: error}
    monkeypatch.setattr(target, "of_nbd", lambda *words: dataclasses.replace(real(*words), **made))
    return remembered


def test_moved_drive_that_has_our_marks_is_written_on(served, tmp_path, exchangeable):
    assert cli.main(served(HONEST, cuts=2)) == 0
    assert len([session for session in records(tmp_path) if session["judged"]]) == 3
    assert len(exchangeable) == campaign.MARKS and all(0 <= at < 64 << 20 for at in exchangeable)


@pytest.mark.parametrize("cut", [1, 2])
def test_cut_that_takes_another_disk_ends_the_campaign(served, tmp_path, monkeypatch, capsys, cut):
    """A supply that feeds two drives: the other one may be somebody's, and mounted."""
    real, facts = target.of_nbd, {"name": "sda", "node": "/dev/sda", "serial": "NEIGHBOUR1", "capacity_bytes": 1 << 30}
    disks = [a_drive(**facts, diskseq=7)]

    def others():
        lost = any(event["kind"] == "drive.ready" and event["cut"] == cut for event in events_of(tmp_path))
        return [dataclasses.replace(disk, diskseq=8) for disk in disks] if lost else disks

    monkeypatch.setattr(target, "of_nbd", lambda *words: dataclasses.replace(real(*words), others=others))
    assert cli.main(served(HONEST, cuts=4)) == NotPaired.exit_code
    assert "NEIGHBOUR1" in capsys.readouterr().err
    ends = [event for event in events_of(tmp_path) if event["kind"] == "powerloss.end"]
    assert [(event["stop"], event["disks"]) for event in ends] == [("other disks", ["NEIGHBOUR1"])]
    assert max(session["cut"] for session in records(tmp_path)) == cut


def test_stranger_after_a_cut_is_judged_and_not_written_to(served, tmp_path, exchangeable):
    """It may be the drive, that lost all: it is found guilty, and nothing more is written."""
    words, disk = served(HONEST, cuts=5), tmp_path / "disk"
    on = words.index("--power-on") + 1
    words[on] = f"truncate -s 0 {disk}; truncate -s 64M {disk}; {words[on]}"
    assert cli.main(words) == ExchangedDrive.exit_code
    (record,) = (session for session in records(tmp_path) if not session["control"])
    assert record["judged"] and record["failed"]
    assert not any(disk.read_bytes())
    (run,) = (tmp_path / "runs").iterdir()
    (ended,) = [event for event in journal.events(run) if event["kind"] == "powerloss.end"]
    assert ended["stop"] == "mark"
