"""Several drives together (run/fleet.py): what is refused before one starts, what each process is told, and how all
end. The processes are stand-ins that say what a run says; test_bench_fleet.py has real ones."""

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import HOST
from drives import a_drive

from ssdrig import cli
from ssdrig.base.errors import UnsafeTarget, worst
from ssdrig.base.progress import Progress
from ssdrig.drive import confirm
from ssdrig.run import fleet, fleet_table, options, planned
from ssdrig.run.fleet_table import Seen
from ssdrig.runs import journal
from ssdrig.virtual import bench

STAND_IN = """
import json, os, signal, sys, time
word = next(w for w in sys.argv if w.startswith("--virtual=")).partition("=")[2]
seed = next((w for w in sys.argv if w.startswith("--seed=")), "")
here = os.environ["STAND_IN"]
ends = json.loads(os.environ["ENDS"])[word]
def asked(number, frame):
    with open(f"{here}/{word}.asked", "a") as f:
        f.write(signal.Signals(number).name + chr(10))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, asked)
print(json.dumps({"run": f"runs/{word}", "step": "load", "doing": "load", "share": 0.5, "iops": 1000.0,
                  "power_W": 2.5, "samples_lost": 0, "left_s": [60, 90]}), flush=True)
open(f"{here}/{word}.pid", "w").write(str(os.getpid()))
while ends == "asked" and not os.path.exists(f"{here}/{word}.asked"):
    time.sleep(0.01)
code = {"ok": 0, "asked": 130, "drive": 4, "lost": 15, "died": 0}[ends]
if ends == "died":
    os.kill(os.getpid(), signal.SIGKILL)
if code == 4:
    print("ssdrig run: error: expected a drive", file=sys.stderr, flush=True)
else:
    state = "interrupted" if code == 130 else "complete"
    print(json.dumps({"run": f"runs/{word}", "state": state, "why": None, "exit_code": code, "figures": None}))
sys.exit(code)
"""
THREE = ["run", "consistency", "--virtual", "sata-tlc", "--virtual", "sata-mlc", "--virtual", "nvme-tlc"]
SMALL = ["--duration", "10"]


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "start", lambda *_, **__: pytest.fail("a virtual bench was started"))
    monkeypatch.delenv("SSDRIG_INFLUX", raising=False)
    monkeypatch.setenv("STAND_IN", str(tmp_path))
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(fleet, "PROGRAM", (sys.executable, str(tmp_path / "stand_in.py")))


def ending(monkeypatch, *ends: str) -> None:
    monkeypatch.setenv("ENDS", json.dumps(dict(zip(("sata-tlc", "sata-mlc", "nvme-tlc"), ends, strict=True))))


# ---- what is refused before one starts


@pytest.fixture
def real_drives(monkeypatch):
    """Real drives S1, S2, …, also by their by-id paths; nothing speaks against them. The list has what was asked of
    the guard."""
    drives = {
        f"S{i}": a_drive(name=f"sd{i}", serial=f"S{i}", by_id=f"/dev/disk/by-id/S{i}", controller=None)
        for i in range(1, 25)
    }
    asked = []

    def refusals(drive, serial, machine):
        asked.append((drive.serial, serial))
        return []

    monkeypatch.setattr(planned.inventory, "find", lambda word: drives[os.path.basename(word)])
    monkeypatch.setattr(fleet.guard, "refusals", refusals)
    monkeypatch.setattr(fleet, "survey", lambda: None)
    monkeypatch.setattr(fleet.ports, "check_access", lambda port: None)
    return drives, asked


@pytest.mark.parametrize(
    "words, message",
    [
        (["--drive", "S1", "--drive", "S1"], "each drive once"),
        (["--drive", "S1", "--drive", "/dev/disk/by-id/S1"], "each drive once"),
        (["--drive", "S1", "--rig", "/dev/null", "--drive", "S2", "--rig", "/dev/../dev/null"], "a rig for each drive"),
        (["--rig", "/dev/a", "--drive", "S1", "--rig", "/dev/b", "--drive", "S2"], "after the --drive"),
        (["--drive", "S1", "--rig", "/dev/a", "--rig", "/dev/b", "--drive", "S2"], "after the --drive"),
        (["--drive", "S1", "--virtual", "sata-tlc"], "only one"),
        (["--virtual", "sata-tlc", "--virtual", "sata-mcl"], "sata-mlc"),
        (["--virtual", "sata-tlc", "--virtual", "sata-tlc", "--rig", "/dev/a"], "--rig only with --drive"),
        (["--drive", "S1", "--drive", "S2", "--power-off", "true", "--power-on", "true"], "--power-off"),
    ],
)
def test_what_does_not_fit_is_said_before_one_starts(words, message, real_drives, capsys):
    assert cli.main(["run", "consistency", *SMALL, *words]) == 2
    assert message in capsys.readouterr().err


def test_drives_of_several_models_have_no_raw_nand_in_common(real_drives, capsys):
    real_drives[0]["S2"] = replace(real_drives[0]["S2"], model="OTHER")
    words = ["run", "consistency", *SMALL, "-n", "--drive", "S1", "--drive", "S2", "--raw-nand"]
    assert cli.main([*words, "2GiB"]) == 2 and "--raw-nand" in capsys.readouterr().err
    assert cli.main([*words, "assumed"]) == 0


def test_a_dry_run_lists_every_drive_and_starts_none(real_drives, capsys):
    drives = [word for i in range(1, 25) for word in ("--drive", f"S{i}", "--rig", f"/dev/ttyACM{i}")]
    assert cli.main(["run", "consistency", *SMALL, *drives, "-n", "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["dry_run"] and [one["drive_name"] for one in document["drives"]] == [f"S{i}" for i in range(1, 25)]
    assert document["drives"][7]["rig"] == "/dev/ttyACM8" and document["drives"][7]["destroyed"]
    assert all(one["host_s"][1] > 0 and one["written_bytes"][1] > 0 for one in document["drives"])
    assert "ALL DATA WILL BE LOST on 24 drives: S1, S2, " in err and err.count("Performance consistency") == 1
    assert [serial for serial, _ in real_drives[1]] == list(real_drives[0]) and not any(
        serial for _, serial in real_drives[1]
    )


def test_what_holds_one_drive_is_said_before_any_starts(real_drives, monkeypatch, capsys):
    mounted = fleet.guard.Refusal("mounted", "/dev/sd2 on /home")
    monkeypatch.setattr(fleet.guard, "refusals", lambda drive, *_, **__: [mounted] if drive.serial == "S2" else [])
    words = ["run", "consistency", *SMALL, "--drive", "S1", "--drive", "S2"]
    words += ["--destroy-data", "S1", "--destroy-data", "S2"]
    assert cli.main(words) == cli.main([*words, "-n"]) == 3
    assert "S2: mounted: /dev/sd2 on /home" in capsys.readouterr().err


# ---- one consent for all


def drives_of(*serials: str):
    return [a_drive(serial=serial) for serial in serials]


def test_each_serial_is_named_and_no_other():
    confirm.all_confirmed(drives_of("S1", "S2"), ["S2", "S1"])
    for serials, serial in ((["S1"], "S2"), (["S1", "S2", "S3"], "S3"), ([], "S1, S2")):
        with pytest.raises(UnsafeTarget, match=serial):
            confirm.all_confirmed(drives_of("S1", "S2"), serials)
    with pytest.raises(UnsafeTarget, match="without a serial"):
        confirm.all_confirmed(drives_of("S1", ""), [])


@pytest.mark.parametrize("typed, taken", [("destroy 2 drives", True), ("yes", False), ("", False)])
def test_a_terminal_is_asked_once_with_all_serials(typed, taken, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed + "\n"))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    if taken:
        confirm.all_confirmed(drives_of("S1", "S2"), [])
    else:
        with pytest.raises(UnsafeTarget):
            confirm.all_confirmed(drives_of("S1", "S2"), [])
    assert "S1, S2" in capsys.readouterr().err


# ---- what each process is told


@pytest.mark.parametrize(
    "words",
    [
        [
            "--op",
            "25",
            "--set",
            "steady=last 5 min",
            "--set",
            "smart=10 s",
            "--idle",
            "90",
            "--settle",
            "--repeat",
            "3",
        ],
        ["--budget", "2 %", "--finish", "trim", "--purge-method", "format", "--steady-from", "5", "--duration", "1h"],
        [
            "--variant",
            "op25",
            "--runs",
            "-odd name",
            "--seed",
            "7",
            "--smart-interval",
            "60",
            "--influx",
            "http://h/db",
        ],
    ],
)
def test_a_process_is_told_what_was_said(words):
    given = options.parse(["consistency", *(f"--runs={w}" if w == "-odd name" else w for w in words if w != "--runs")])
    one = argparse.Namespace(**vars(given) | {"drive": "S1", "rig": "/dev/ttyACM0", "destroy_data": "S1"})
    again = vars(options.parse(fleet.words_of(one)))
    assert again.pop("jsonl") and again.pop("quiet")
    for name, value in vars(one).items():
        if name not in ("jsonl", "quiet", "drives", "consents", "stray_rigs"):
            assert again[name] == value, name


def test_each_drive_has_its_own_rig_and_consent(real_drives, monkeypatch):
    commands = []
    monkeypatch.setattr(
        fleet, "_carried_out", lambda items, *_: commands.extend(fleet.words_of(item.args) for item in items)
    )
    words = ["run", "consistency", *SMALL, "--drive", "S1", "--rig", "/dev/a", "--drive", "S2"]
    assert cli.main([*words, "--destroy-data", "S2", "--destroy-data", "S1"]) == 0
    first, second = map(set, commands)
    assert first - second == {"--drive=S1", "--rig=/dev/a", "--destroy-data=S1"}
    assert second - first == {"--drive=S2", "--destroy-data=S2"}
    assert real_drives[1] == [("S1", "S1"), ("S2", "S2")]


# ---- how they end


def test_a_drive_that_fails_ends_no_other(monkeypatch, capsys):
    ending(monkeypatch, "ok", "drive", "ok")
    assert cli.main([*THREE, *SMALL, "--json"]) == 4
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["exit_code"] == 4 and [one["exit_code"] for one in document["drives"]] == [0, 4, 0]
    assert [one["state"] for one in document["drives"]] == ["complete", "failed", "complete"]
    assert document["drives"][0]["results"][0]["run"] == "runs/sata-tlc" and not document["drives"][1]["results"]
    assert document["drives"][1]["why"] == "error: expected a drive"
    assert "sata-mlc: ssdrig run: error: expected a drive" in err
    assert "report: ./ssdrig report runs/sata-tlc runs/nvme-tlc" in err


def test_each_line_of_a_script_has_its_drive(monkeypatch, capsys):
    ending(monkeypatch, "ok", "lost", "died")
    assert cli.main([*THREE, *SMALL, "--jsonl", "--quiet"]) == 15
    out, err = capsys.readouterr()
    *lines, last = map(json.loads, out.splitlines())
    assert {line["drive"] for line in lines if "share" in line} == {"sata-tlc", "sata-mlc", "nvme-tlc"}
    assert {line["drive"]: line["exit_code"] for line in lines if "state" in line} == {"sata-tlc": 0, "sata-mlc": 15}
    assert [one["exit_code"] for one in last["drives"]] == [0, 15, 1]
    assert "sata-mlc  complete (exit code 15): runs/sata-mlc" in err and "nvme-tlc  failed: exit code 1" in err


def test_a_log_gets_few_lines(monkeypatch, capsys):
    ending(monkeypatch, "ok", "ok", "ok")
    assert cli.main([*THREE, *SMALL]) == 0
    err = capsys.readouterr().err
    assert "\x1b" not in err and len([line for line in err.splitlines() if line.startswith("3 drives: ")]) <= 2


def test_the_worst_exit_code():
    assert [worst(codes) for codes in ([], [0, 0], [0, 130], [4, 130, 1], [15, 4])] == [0, 0, 130, 4, 15]


PARENT = """
import sys
from ssdrig import cli
from ssdrig.run import fleet
fleet.PROGRAM = (sys.executable, sys.argv[1])
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """`ssdrig run` with three drives that wait to be asked; killed in the end, and the drives' processes with it."""
    ending(monkeypatch, "asked", "asked", "asked")
    words = [sys.executable, "-c", PARENT, str(tmp_path / "stand_in.py"), *THREE, *SMALL, "--json"]
    how = {"env": os.environ | {"PYTHONPATH": HOST}, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **how) as process:
        try:
            until(lambda: len(pids(tmp_path)) == 3)
            yield process
        finally:
            process.kill()


def pids(folder: Path) -> list[int]:
    return [int(text) for path in folder.glob("*.pid") if (text := path.read_text())]


def until(holds, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_reaches_each_drive_once(number, parent, tmp_path):
    parent.send_signal(number)
    out, err = parent.communicate()
    assert parent.returncode == 130 and b"Traceback" not in err
    assert [one["state"] for one in json.loads(out)["drives"]] == ["interrupted"] * 3
    assert [path.read_text() for path in tmp_path.glob("*.asked")] == [f"{signal.Signals(number).name}\n"] * 3
    assert f"{signal.Signals(number).name}: passed on to 3 drives".encode() in err


def test_when_the_parent_is_killed_each_drive_is_asked_to_end(parent, tmp_path):
    parent.kill()
    parent.wait()
    for pid in pids(tmp_path):
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())
    assert [path.read_text() for path in tmp_path.glob("*.asked")] == ["SIGTERM\n"] * 3, "once: a second one hurries"


def test_ctrl_z_stops_nobody(parent, tmp_path):
    parent.send_signal(signal.SIGTSTP)
    parent.send_signal(signal.SIGINT)
    parent.communicate()
    assert parent.returncode == 130


# ---- the table


def a_fleet(count: int) -> list[Seen]:
    second = {"doing": "rounds 3/5…25 point read=65", "share": 0.41, "power_W": 4.153, "iops": 38214.0}
    second |= {"left_s": [7800, 67200], "samples_lost": 0}
    made = [Seen(f"S6WSNJ0T50{i:04}", second=second) for i in range(count)]
    made[0].code, made[0].results = 0, [{"run": "r", "state": "complete", "why": None}]
    made[-1].code, made[-1].message = 4, "error: expected the drive to be there, and it has gone away for good"
    return made


@pytest.mark.parametrize("count", [2, 6, 24])
@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("rows", [10, 24, 50])
def test_the_table_fits_the_terminal(count, columns, rows):
    made = fleet_table.lines(a_fleet(count), columns, rows)
    assert len(made) < rows and max(map(len, made)) < columns
    assert "state" in made[0] and made[-1].startswith(f"{count} drives: "[: columns - 1])
    shown = [line for line in made if "…" in line[:8] or "S6WSNJ" in line]
    left_out = next((int(line.split()[2]) for line in made if line.startswith("… and ")), 0)
    assert len(shown) >= min(count, rows - 4) - 1 and (left_out or rows > count + 3)


def test_where_there_is_room_all_of_it_is_there():
    first, *_, failed, whole = fleet_table.lines(a_fleet(3), 200, 50)[1:]
    assert first.split() == ["S6WSNJ0T500000", "complete"]
    assert failed.endswith("failed: error: expected the drive to be there, and it has gone away for good")
    assert whole == "3 drives: 1 complete, 1 running, 1 failed  4.15 W  0 samples lost  ETA 2:10:00…18:40:00"


def test_a_run_that_was_interrupted_before_it_began_is_none_that_failed():
    seen = [
        Seen("S1", code=130, message="interrupted"),
        Seen("S2", code=130, message="not started"),
        Seen("S3", code=5),
    ]
    assert [one.state for one in seen] == ["interrupted", "interrupted", "failed"]
    assert fleet_table.ends(seen)[1:] == ["S2  interrupted: not started", "S3  failed: exit code 5"]


def test_a_serial_keeps_its_end():
    assert (
        fleet_table.lines(a_fleet(3), 60, 24)[2].startswith("…") and "0001" in fleet_table.lines(a_fleet(3), 60, 24)[2]
    )


def test_a_table_replaces_the_one_before(capsys, monkeypatch):
    show = Progress()
    show.live = True
    for text in ("first", "second"):
        show.table([text, "sum"], "")
    show.warn("words that stay")
    show.show("a line")
    assert capsys.readouterr().err == (
        "\r\x1b[Kfirst\nsum\n\x1b[2A\r\x1b[Jsecond\nsum\n\x1b[2A\r\x1b[Jwords that stay\n\r\x1b[Ka line"
    )


def test_two_runs_never_share_a_name(tmp_path, monkeypatch):
    drawn = iter(["aaaa", "bbbb", "aaaa", "bbbb", *["cccc"] * 30])
    monkeypatch.setattr(journal, "_name", lambda header: f"run-{next(drawn)}")
    monkeypatch.setattr(journal, "NAMES", 2)
    books = [journal.create(tmp_path / "runs", {"bench": {}}) for _ in range(2)]
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["run-aaaa", "run-bbbb"]
    assert journal.open_run(books[1].path)["run"] == "run-bbbb"
    for book in books:
        book.close("complete")
