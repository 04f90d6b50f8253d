"""The steps of a run, on a bench made by hand: real fio on a file, SMART documents as told, no rig."""

import argparse
import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from pages import page, page_c0h

from ssdrig.base.errors import DriveError, PromiseBroken, RailTripped, RigError, UnsafeTarget, UsageError, words_of
from ssdrig.base.progress import Progress
from ssdrig.drive import witness
from ssdrig.drive.wear import wa
from ssdrig.load import fio, fiojob
from ssdrig.plan.kinds import speeds
from ssdrig.publish.influx import points
from ssdrig.reading import table
from ssdrig.run import prepare, run
from ssdrig.run.bench import Bench
from ssdrig.run.teardown import Stop
from ssdrig.runs import journal

pytestmark = pytest.mark.keeps_time

SIZE = 64 << 20
RATE_IOPS = 500
DRIVE = {
    "model": "FILE",
    "serial": "F1",
    "firmware": "",
    "interface": "file",
    "capacity_bytes": SIZE,
    "raw_nand_bytes": None,
    "time_dilation": 1,
}


def document(host_units: int, nand_bytes: int) -> dict:
    """A SMART document with a data units counter and OCP's NAND counter."""
    health = page({3: (1, 100), 48: (16, host_units)})
    t_ns = time.monotonic_ns()
    return {
        "t_start_ns": t_ns,
        "t_end_ns": t_ns + 1000,
        "simulated": False,
        "smartctl": {},
        "log_02h": health.hex(),
        "log_c0h": page_c0h(nand_bytes).hex(),
        "log_09h": None,
    }


@pytest.fixture
def carried_out(tmp_path, monkeypatch):
    """carried_out(polls, **of the bench) -> (run folder, its end, what each poll was asked with). Settling takes 1, 2,
    3 s. The load writes slowly: at full speed fio takes a processor, and proves nothing more."""
    monkeypatch.setattr(speeds, "SETTLE_S", (1, 2, 3))
    # a busy host takes long between a reading and the load, whose write amplification then has a large error
    monkeypatch.setattr(wa, "COARSEST", 10.0)

    def slow(job):
        return fiojob.job_file(replace(job, rate_iops=RATE_IOPS) if job.time_s else job)

    monkeypatch.setattr(fio, "job_file", slow)

    def carry_out(polls, settle=False, idle_s=0, **more):
        asked = []

        def poll(like):
            asked.append(like)
            answer = polls[min(len(asked), len(polls)) - 1]
            if isinstance(answer, Exception):
                raise answer
            return document(*answer)

        target = tmp_path / "drive"
        target.write_bytes(bytes(SIZE))
        bench_ = Bench(
            **(
                dict(
                    drive=DRIVE,
                    target_now=lambda: str(target),
                    port=None,
                    simulated=False,
                    purge=lambda show: {"method": "none", "ok": True},
                    poll=poll,
                    flush=lambda: None,
                    check=lambda: None,
                )
                | more
            )
        )
        sets = {"time": "4 s", "smart": "1 s", "idle": f"{idle_s} s", "settle": "300 s" if settle else "0 s"}
        plan = prepare.prepare("consistency", DRIVE, "quick", sets, 1)
        args = SimpleNamespace(runs=str(tmp_path / "runs"), influx=None, jsonl=False, verbose=False)
        show = Progress(quiet=True)
        with Stop(show) as stop, stop.held():
            folder, end = run.carry_out(args, plan, bench_, show, stop)
        return folder, end, asked

    return carry_out


def times(events, kind, step):
    return [e["t_ns"] for e in events if e["kind"] == kind and e.get("step") == step]


def test_settle_and_idle(carried_out):
    """The third reading after the load equals the second: the drive has come to rest. Then nothing is asked for 2 s."""
    polls = [(1000, 10**9)] + [(2000, 2 * 10**9)] * 9
    folder, end, asked = carried_out(polls, settle=True, idle_s=2)
    assert end["exit_code"] == 0, end
    events = journal.events(folder)
    steps = [e["step"] for e in events if e["kind"] == "step.start"]
    assert steps == ["check", "purge", "fill", "load", "flush", "settle", "idle", "teardown"]
    counted = [(e["step"], e["label"], e["drive"], e["why"]) for e in events if e["kind"] == "witness"]
    assert counted == [(step, step, None, witness.NO_DEVICE) for step in ("fill", "load")]
    smart = [(e["t_ns"], e["reason"]) for e in events if e["kind"] == "smart.start"]
    (settle0,), (idle0,), (idle1,) = (
        times(events, "step.start", "settle"),
        times(events, "step.start", "idle"),
        times(events, "step.end", "idle"),
    )
    assert [reason for t, reason in smart if settle0 < t < idle0] == ["after", "settled"]
    assert not [t for t, _ in smart if idle0 <= t <= idle1] and idle1 - idle0 >= 2e9
    assert [e["method"] for e in events if e["kind"] == "purge"] == ["none"]
    got = table.in_full(folder).figures
    whole = got["windows"]["all"]
    assert whole["wa"] == got["wa_settled"] == pytest.approx(10**9 / (1000 * 512_000)) and got["idle_mean_W"] is None
    assert asked[0] is None and asked[-1] is None and any(like for like in asked), (
        "under load the first document's sources are asked again"
    )


def test_a_drive_that_goes_on_writing_is_read_at_each_time(carried_out):
    polls = [(1000, 10**9)] + [(3000, 10**9 * (2 + i)) for i in range(20)]
    folder, _, _ = carried_out(polls, settle=True)
    reasons = [e["reason"] for e in journal.events(folder) if e["kind"] == "smart.start"]
    assert reasons.count("settled") == 3
    got = table.in_full(folder).figures
    # it wrote six times as much as the host until it was read last; how much of that in the load is not known
    assert got["wa_settled"] == pytest.approx(6e9 / (2000 * 512_000)) and got["windows"]["all"]["wa"] is None
    assert any("not finished" in note for note in got["notes"])


def test_without_a_rig_the_report_has_no_power(carried_out):
    folder, end, _ = carried_out([(1000, 10**9)] + [(40_000, 30 * 10**9)] * 9)
    got = table.in_full(folder).figures
    assert got["power_mean_W"] is None and got["samples"] is None and got["ios"] > 0 and got["purge"] == "none"
    assert any("no rig" in note for note in got["notes"])
    assert got["windows"]["all"]["wa"] == pytest.approx(29 * 10**9 / (39_000 * 512_000))
    assert json.loads((folder / "run.json").read_bytes())["rig"] is None
    assert points.counts(folder)["power"] == 0


def test_a_poll_that_fails_is_an_event(carried_out):
    folder, end, _ = carried_out([DriveError("SMART", "nothing", "look")])
    ends = [e for e in journal.events(folder) if e["kind"] == "smart.end"]
    assert end["state"] == "complete" and ends and not any(e["ok"] for e in ends) and "nothing" in ends[0]["why"]


def test_a_target_that_is_another_drive_by_now_is_not_written(carried_out, tmp_path):
    seen = []

    def check():
        seen.append(1)
        if len(seen) == 2:
            raise UnsafeTarget("serial F1", "serial F2", "see which drive is where")

    folder, end, _ = carried_out([(1000, 10**9)], check=check)
    assert (end["state"], end["exit_code"]) == ("failed", 3)
    assert not (folder / "fio").exists() and (tmp_path / "drive").read_bytes() == bytes(SIZE)


def test_a_poll_that_hangs_does_not_hold_up_the_load(carried_out):
    calls = []

    def poll(like):
        calls.append(like)
        if len(calls) == 2:
            time.sleep(3)
        return document(1000 * len(calls), 10**9 * len(calls))

    folder, end, _ = carried_out([], poll=poll)
    events = journal.events(folder)
    assert end["state"] == "complete"
    assert any("left out" in e.get("text", "") for e in events if e["kind"] == "note")
    seconds = [t for e in events if e["kind"] == "load.first_io" for t in [e["t_ns"]]]
    assert len(seconds) == 2


def parsed(*words):
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    return parser.parse_args(["consistency", *words])


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--virtual", "sata-tlc", "--drive", "X"],
        ["--virtual", "floppy"],
        ["--drive", "/dev/sda"],
        ["--drive", "no such serial"],
    ],
)
def test_words_that_name_no_drive(words):
    with pytest.raises(UsageError):
        run.perform(parsed(*words), Progress(quiet=True))


@pytest.mark.parametrize(
    ("error", "code"),
    [(None, 16), (RigError("an answer", "none", "look"), 16), (PromiseBroken("none", "1", "read"), 11)],
)
def test_tripped_rail_is_the_reason_next_to_what_was_proven_before(error, code):
    end, closed = run._End(), []
    with end.of_steps(SimpleNamespace(name="")):
        if error:
            raise error
    book = SimpleNamespace(close=lambda *words: closed.append(words))
    trip = RailTripped("a rail within its limit", "rail 0 opened", "look")
    end.close(book, SimpleNamespace(failures=[]), SimpleNamespace(failure=trip))
    ((_, why, exit_code),) = closed
    assert exit_code == code and words_of(trip) in why and (code == 16 or words_of(error) in why)


@pytest.mark.parametrize(("code", "failed"), [(0, 0), (5, 0), (130, 0), (4, 1), (10, 1), (11, 1), (12, 1), (15, 1)])
def test_telemetry_of_a_drive_that_failed_is_saved_and_its_place_shown(tmp_path, capsys, code, failed):
    events, paths = [], []
    bench = SimpleNamespace(telemetry=lambda path: paths.append(path) or {"bytes": 5, "why": None})
    book = SimpleNamespace(path=tmp_path, event=lambda kind, **more: events.append((kind, more)))
    run._telemetry(code, bench, book, Progress())
    assert paths == [tmp_path / run.TELEMETRY] * failed
    assert events == [("telemetry", {"bytes": 5, "why": None})] * failed
    assert (str(tmp_path / run.TELEMETRY) in capsys.readouterr().err) == bool(failed)


def test_telemetry_of_a_drive_that_is_gone_is_an_event_with_the_reason(tmp_path):
    events = []

    def gone(path):
        raise DriveError("the drive", "none", "bring it back")

    book = SimpleNamespace(path=tmp_path, event=lambda kind, **more: events.append(more))
    run._telemetry(DriveError.exit_code, SimpleNamespace(telemetry=gone), book, Progress())
    run._telemetry(DriveError.exit_code, SimpleNamespace(telemetry=None), book, Progress())
    ((event),) = events
    assert event["bytes"] is None and event["why"]
