"""`ssdrig record`: counts of the kernel as a run; nothing is written, and what proves the drive is not loosened."""

import json
import os
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from guarding import SERIAL, tree
from pages import page, page_c0h

import ssdrig
from ssdrig import cli
from ssdrig.base.arguments import Parser
from ssdrig.base.errors import DriveError, LoadError, UnsafeTarget, UsageError
from ssdrig.base.progress import Progress
from ssdrig.drive import guard, uses, witness
from ssdrig.drive.inventory import find
from ssdrig.publish.influx import points
from ssdrig.reading import table
from ssdrig.run import bench, prepare, record, resume, run
from ssdrig.run.bench import Bench
from ssdrig.run.teardown import Stop, Teardown
from ssdrig.runs import journal

__all__ = ["tree"]  # fixture
SECTORS, IOS = 16, 2
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
DRIVE = {
    **{"model": "MADE", "serial": "M1", "firmware": "1", "interface": "SATA", "capacity_bytes": 1 << 36},
    **{"raw_nand_bytes": None, "time_dilation": 1, "logical_block_bytes": 512},
}


def document(host_units: int, nand_bytes: int) -> dict:
    health = page({3: (1, 100), 48: (16, host_units)})
    pages = {"log_02h": health.hex(), "log_c0h": page_c0h(nand_bytes).hex(), "log_09h": None}
    return {"t_start_ns": 1, "t_end_ns": 1000, "simulated": False, "smartctl": {}, **pages}


class Kernel:
    """A drive whose counts rise at each reading."""

    def __init__(self):
        self.readings, self.gone, self.stop = 0, False, None
        self._lock = threading.Lock()

    def __call__(self, since):
        with self._lock:
            self.readings += 1
            n = self.readings
        if self.stop is not None and n > 3:
            self.stop.count = 1
        stat = [0, 0, 0, 0, IOS * n, 0, SECTORS * n, 50 * n, 1, 0, 0, n, 0, 8 * n, 0, n, 0]
        more = {"name": "sdz", "stat": None if self.gone else stat, "seq": 3, "split_bytes": None}
        return witness.read(None) | more


@pytest.fixture
def recorded(tmp_path):
    """recorded(words, time_s, kernel, **of the bench) -> (run folder, its end)."""

    def carry_out(words=(), time_s=0, kernel=None, stops=False, log=None, **more):
        kernel = kernel or Kernel()

        def none(*_):
            pytest.fail("record changes nothing")

        bench_ = Bench(
            **dict(drive=DRIVE, target_now=none, port=None, simulated=False, purge=none, flush=none, trim=none)
            | dict(poll=lambda like: document(1000, 1000), check=lambda: None, change=none, write_blocks=none)
            | dict(witness=kernel)
            | more
        )
        plan = prepare.prepare(str(record.PLAN), DRIVE, sets={"time": f"{time_s} s"})
        args = SimpleNamespace(runs=str(tmp_path / "runs"), influx=None, jsonl=False, verbose=False, words=list(words))
        args.application_log = log
        with Stop(Progress(quiet=True)) as stop, stop.held():
            kernel.stop = stop if stops else None
            return run.carry_out(args, plan, bench_, Progress(quiet=True), stop)

    return carry_out


def of_kind(folder, kind):
    return [event for event in journal.events(folder) if event["kind"] == kind]


def test_command_is_recorded_from_its_start_to_its_end(recorded, tmp_path):
    mark = tmp_path / "ran"
    code = f"import time, pathlib; time.sleep(2.5); pathlib.Path({str(mark)!r}).touch()"
    folder, end = recorded([sys.executable, "-c", code])
    assert (end["state"], end["exit_code"], mark.exists()) == ("complete", 0, True)
    (begin,), (last,) = of_kind(folder, "command.start"), of_kind(folder, "command.end")
    assert begin["argv"][0] == sys.executable and last["exit_code"] == 0 and last["why"] == ""
    (row,) = table.load(folder).rows
    rows = [line.split(",") for line in (folder / "recorded/record/counters.csv").read_text().splitlines()[1:]]
    ios, sectors = (int(rows[-1][at]) - int(rows[0][at]) for at in (6, 8))
    assert row.state == "done" and row.windows["all"]["ios"] == ios == row.kernel["ios"] > 0
    assert row.result["written_bytes"] == 512 * sectors == row.kernel["bytes"]
    assert row.windows["all"]["lat_mean_us"] == pytest.approx(25_000)


def test_run_is_read_by_all_that_read_runs(recorded, tmp_path):
    folder, _ = recorded(time_s=3)
    opened = ssdrig.open(folder)
    assert opened.facts["plan"] == "record" and [*opened.rows["do"]] == ["record"]
    assert opened.seconds["write_ios"].sum() == opened.figures["ios"][0]
    assert cli.main(["report", str(folder), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Flushes" in page and "Requests under way, most seen" in page


def test_smart_is_read_before_and_after(recorded):
    answers = iter([document(1000, 1000), *[document(3000, 10**9)] * 9])
    folder, _ = recorded(time_s=2, poll=lambda like: next(answers))
    assert [event["reason"] for event in of_kind(folder, "smart.end")] == ["before", "after"]
    assert [*ssdrig.open(folder).smart["host_written_bytes"]] == [1000 * 512_000, 3000 * 512_000]


def test_latency_monitor_of_the_drive_is_read_around_the_recording(recorded, tmp_path, capsys):
    head = {0: (1, 7), 6: (1, 1), 7: (1, 5), 8: (1, 15), 9: (1, 255), 494: (2, 1)}
    head |= {496: (16, int.from_bytes(bytes.fromhex("927ac08cd0846c9c7043e6d4585ed485"), "little"))}
    polls = iter([page(head | {40: (4, 5)}), *[page(head | {40: (4, 9)})] * 9])  # 43:40: writes from 10 ms

    def poll(like):
        now = time.monotonic_ns()
        return document(1000, 1000) | {"t_start_ns": now, "t_end_ns": now + 1, "log_c3h": next(polls).hex()}

    folder, _ = recorded(time_s=2, poll=poll)
    assert cli.main(["report", str(folder), "--json", "--quiet"]) == 0
    (stretch,) = json.loads(capsys.readouterr().out)["drive_latency"]
    assert stretch["steps"] == ["record"] and stretch["thresholds_ms"] == [10, 30, 80, 1280]
    assert stretch["counts"]["write"] == [4, 0, 0, 0] and stretch["most_ms"]["read"] == 10
    assert cli.main(["report", str(folder), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert "Latency monitor of the drive" in (tmp_path / "page.html").read_text()


def test_time_ends_it(recorded):
    folder, end = recorded(time_s=2)
    (step,) = [event for event in of_kind(folder, "step.end") if event["step"] == "record"]
    assert end["state"] == "complete" and step["why"] == "its time was over" and not of_kind(folder, "command.start")


def test_request_to_stop_is_no_failure_and_ends_the_command(recorded):
    folder, end = recorded(SLEEPS, stops=True)
    assert (end["state"], end["exit_code"]) == ("complete", 0)
    assert of_kind(folder, "command.end")[0]["exit_code"] == -15


def test_failed_command_is_a_failed_load_of_a_complete_recording(recorded):
    folder, end = recorded([sys.executable, "-c", "raise SystemExit(3)"])
    assert (end["state"], end["exit_code"]) == ("complete", LoadError.exit_code)
    assert of_kind(folder, "command.end")[0]["exit_code"] == 3


def test_drive_that_goes_ends_it_and_the_command(recorded):
    class Going(Kernel):
        def __call__(self, since):
            self.gone = self.readings > 3
            return super().__call__(since)

    folder, end = recorded(SLEEPS, kernel=Going())
    assert (end["state"], end["exit_code"]) == ("failed", DriveError.exit_code)
    assert of_kind(folder, "command.end")[0]["exit_code"] == -15 and table.load(folder).rows[0].state == "failed"


def test_command_sees_none_of_our_python(recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    seen = tmp_path / "seen.json"
    recorded([sys.executable, "-c", f"import json, os; json.dump(dict(os.environ), open({str(seen)!r}, 'w'))"])
    assert not {"PYTHONPATH", "PYTHONSAFEPATH", "SSDRIG_TARGET"} & {*json.loads(seen.read_text())}


LOGS = """
import pathlib, sys, time
with open(sys.argv[1], "w") as log:
    print("{time},tps,<b>p99</b>", file=log)
    for n in range(1, 4):
        time.sleep(0.5)
        print({now}, 100 * n, n / 2, sep=",", file=log, flush=True)
    log.write("9")
"""


@pytest.mark.parametrize(("clock", "now"), [("utc", "f'{time.time():.3f}'"), ("command", "n * 0.5")])
def test_log_of_the_application_is_laid_beside_the_recording(recorded, tmp_path, clock, now):
    log = tmp_path / "bench.csv"
    code = LOGS.format(time="t", now=now)
    folder, end = recorded([sys.executable, "-c", code, str(log)], log=log)
    assert (end["state"], end["exit_code"]) == ("complete", 0)
    assert (folder / "recorded/record/application.csv").read_bytes() == log.read_bytes()[:-1]
    opened = ssdrig.open(folder)
    (row,) = table.load(folder, by_second=True).rows
    figures = row.result["application_log"]
    assert (figures["file"], figures["clock"], figures["rows"]) == ("bench.csv", clock, 3)
    assert figures["notes"] == ["its last line has no end and is left out"]
    assert figures["columns"][0] == {"name": "tps", "rows": 3, "mean": 200, "min": 100, "max": 300}
    (begin,), (last,) = of_kind(folder, "command.start"), of_kind(folder, "command.end")
    name, t_s, values = row.data.logged[0]
    assert (name, values.tolist()) == ("tps", [100, 200, 300]) or len(values) == 2  # two in a second are its mean
    between = row.data.axis_s([begin["from_ns"], last["t_ns"]])
    assert between[0] - 1 <= t_s[0] <= t_s[-1] <= between[1] and opened.facts["state"] == "complete"


ROTATED = """
import os, shutil, sys, time
path, way = sys.argv[1:]
log = open(path, "a", buffering=1)
print("t,a", file=log)
for n in range(12):
    print(f"{time.time():.3f},{n}", file=log)
    time.sleep(0.3)
    if n in (3, 7):
        if way == "create":
            os.rename(path, f"{path}.{n}")
            print(f"{time.time():.3f},{n}.5", file=log)  # it has not noticed yet
            log = open(path, "a", buffering=1)
            print("t,a", file=log)
        else:
            shutil.copy(path, f"{path}.{n}")
            os.truncate(path, 0)
"""


@pytest.mark.parametrize(("way", "end", "extra"), [("create", "renamed", 2), ("copytruncate", "truncated", 0)])
def test_log_that_is_rotated_while_it_is_recorded_has_all_its_rows(recorded, tmp_path, way, end, extra):
    log = tmp_path / "bench.csv"
    folder, _ = recorded([sys.executable, "-c", ROTATED, str(log), way], log=log)
    (event,) = of_kind(folder, "application_log")
    assert (event["files"], event["left_files"]) == ([end] * 2, 0)
    (row,) = table.load(folder, by_second=True).rows
    figures = row.result["application_log"]
    assert (figures["rows"], figures["columns"][0]["max"]) == (12 + extra, 11)


def test_log_is_on_the_page_in_json_and_in_points(recorded, tmp_path, capsys):
    log = tmp_path / "bench.csv"
    code = LOGS.format(time="t", now="f'{time.time():.6f}'")
    folder, _ = recorded([sys.executable, "-c", code, str(log)], log=log)
    assert cli.main(["report", str(folder), "--json", "--quiet"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert [of["name"] for of in row["found"]["application_log"]["columns"]] == ["tps", "<b>p99</b>"]
    assert cli.main(["report", str(folder), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "Log of the application" in page and "&lt;b&gt;p99&lt;/b&gt;" in page and "<b>p99</b>" not in page
    with points.Emitter(folder) as emitter:
        emitter.step(final=True)
    lines = [line for line in (folder / "points.lp").read_text().splitlines() if line.startswith("application,")]
    assert len(lines) == points.counts(folder)["application"] >= 4
    assert len({line.partition(" ")[0] for line in lines}) == 1, "one series for all columns"


def test_missing_log_is_a_note_and_no_lost_run(recorded, tmp_path):
    folder, end = recorded([sys.executable, "-c", ""], log=tmp_path / "bench.csv")
    (event,) = of_kind(folder, "application_log")
    assert (end["state"], end["exit_code"]) == ("complete", 0) and event["why"]
    (row,) = table.load(folder).rows
    assert "application_log" not in row.result and any(note.startswith("application log: no") for note in row.notes)


@pytest.mark.parametrize(
    "text",
    [b"t,a\n" + b"1,1\n" * 1000 + b"\xff\0", b"t,a\n1,1e308\n1e308,1\n", b"<script>\n", b"t,a\n99999999,1\n", b""],
)
def test_forged_log_leaves_the_rest_of_the_run(recorded, tmp_path, text):
    log = tmp_path / "bench.csv"
    folder, _ = recorded([sys.executable, "-c", LOGS.format(time="t", now="n"), str(log)], log=log)
    (folder / "recorded/record/application.csv").write_bytes(text)
    assert cli.main(["report", str(folder), "-o", str(tmp_path / "page.html"), "--quiet"]) == 0
    (row,) = table.load(folder).rows
    assert row.state == "done" and row.result["reads"] is not None


def asked(*words):
    parser = Parser()
    record.add_arguments(parser)
    return parser.parse_args([*words])


@pytest.mark.parametrize(
    "words",
    [[], ["--drive", "A", "--virtual", "sata-tlc"], ["--virtual", "sata-tlc", "--time", "0"], ["--virtual", "none"]]
    + [["--virtual", "sata-tlc", "--", "no-such-command-anywhere"], ["--virtual", "sata-tlc", "--", ""]]
    + [["--virtual", "sata-tlc", "--rig", "/dev/ttyACM0"], ["--virtual", "sata-tlc", "--log", "no-such-log"]]
    + [["--virtual", "sata-tlc", "--log", "/", "--", "ls"]]
    + [["--virtual", "sata-tlc", "--log", "a", "--log", "b", "--", "ls"]],
)
def test_wrong_words_are_refused(words):
    with pytest.raises(UsageError):
        record.check(asked(*words))


def test_words_become_those_of_run():
    made = record._as_run(asked("--virtual", "sata-tlc", "--time", "10m", "--smart-interval", "60", "--", "ls", "-l"))
    assert (made.virtual, made.words, made.destroy_data) == ("sata-tlc", ["ls", "-l"], None)
    assert run.run_options.parameters(made) == (None, {"time": "600 s", "smart": "60 s"})


def test_recording_cannot_be_resumed(recorded):
    def gone():
        raise DriveError("a drive", "none", "look")

    folder, end = recorded(time_s=600, check=gone)
    parser = Parser()
    resume.add_arguments(parser)
    assert end["state"] == "failed"
    with pytest.raises(UsageError):
        resume.command(parser.parse_args([str(folder), "--quiet"]))


# --- the guard


def test_drive_in_use_may_be_read_and_not_written(tree):
    tree.mount("sda", "/mnt")
    with pytest.raises(UnsafeTarget), guard.hold(find(SERIAL, tree.root), None, tree.root):
        pass
    with guard.hold(find(SERIAL, tree.root), None, tree.root, reads=True) as held:
        assert held.recheck() == held.check() == held.drive
        assert guard.busy(SERIAL, tree.root)
        with pytest.raises(UnsafeTarget), guard.hold(held.drive, SERIAL, tree.root, reads=True):
            pass


def test_what_proves_the_drive_holds_for_readers_too():
    assert {"gone", "kind", "changed", "serial", "twin", "number", "capacity", "bench", "lock"} <= {*guard.OF_READERS}
    assert not {"mounted", "holder", "swap", "boot", "writer", guard.CONTENT, guard.READ_ONLY} & {*guard.OF_READERS}


def test_bench_of_a_reader_has_no_way_to_write():
    made = Bench(DRIVE, lambda: "x", None, False, *(lambda *_: pytest.fail("written") for _ in range(3)), lambda: None)
    reader = bench._reading(made, SimpleNamespace(drive=SimpleNamespace(node="/dev/sdz"), path="/dev/sdz"))
    for change in (
        lambda: reader.fio_target,
        lambda: reader.purge(None),
        lambda: reader.flush(),
        lambda: reader.trim(1),
        lambda: reader.change("a", "b"),
        lambda: reader.write_blocks({}),
        lambda: reader.connect(True),
    ):
        with pytest.raises(UnsafeTarget):
            change()


def test_settings_that_a_killed_run_left_changed_are_read_by_the_drives_node_and_warned_of(tree, monkeypatch, capsys):
    """A bench of a reader has no target, by which to read them."""
    drive, hold, read = find(SERIAL, tree.root), guard.hold, []
    left = guard.Refusal("settings", "the write cache is off")
    monkeypatch.setattr(record.planned, "on_real", lambda args: (None, None, None, drive, None, (None, False)))
    monkeypatch.setattr(record, "_refuse_own", lambda runs, drive: None)
    monkeypatch.setattr(record.dry_run, "describe", lambda *_: None)
    monkeypatch.setattr(bench.guard, "hold", lambda drive, serial, reads, **_: hold(drive, serial, tree.root, reads))
    monkeypatch.setattr(record.guard, "left_changed", lambda drive, node: read.append(node) or [left])
    monkeypatch.setattr(record.run, "carry_out", lambda args, prepared, bench_, *_: (None, {"read_only": bench_.drive}))
    args = SimpleNamespace(runs="runs", dry_run=False, rig=None)
    with Stop(Progress(quiet=True)) as stop, Teardown(stop, Progress(quiet=True)) as teardown:
        _, end = record._on_real(args, Progress(), stop, teardown)
    assert end["read_only"]["serial"] == SERIAL and read == [drive.node]
    assert "the write cache is off" in capsys.readouterr().err


def test_folder_on_the_drive_itself_is_refused(monkeypatch):
    drive = SimpleNamespace(name="sdz", node="/dev/sdz", key="K")
    monkeypatch.setattr(record.inventory, "all_drives", lambda: [SimpleNamespace(name="sdy", key="K")])
    monkeypatch.setattr(record.uses, "disks_of_folder", lambda folder: {"sdy"})
    with pytest.raises(UsageError):
        record._refuse_own("runs", drive)
    monkeypatch.setattr(record.uses, "disks_of_folder", lambda folder: {"sda"})
    record._refuse_own("runs", drive)


def test_folder_in_memory_is_on_no_disk():
    if not os.path.ismount("/dev/shm"):
        pytest.skip("no /dev/shm is mounted")
    assert uses.disks_of_folder("/dev/shm/not/there/yet") == set()
