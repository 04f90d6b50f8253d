"""`ssdrig read-map`: what it opens, what it says, and what it knows of the age of the data."""

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from ssdrig import cli
from ssdrig.commands import read_map as command
from ssdrig.drive import read_map
from ssdrig.drive.read_map import MIB, Cell, Map

S = 10**9
DRIVE = SimpleNamespace(model="M", serial="S1", firmware="F", capacity_bytes=4 * MIB, node="/dev/x", consent="S1")


@pytest.fixture
def drive(monkeypatch):
    """A drive that is found, and what was asked of the guard."""
    asked = []

    @contextlib.contextmanager
    def hold(drive, destroy_serial=None, reads=False):
        asked.append((drive.serial, destroy_serial, reads))
        yield SimpleNamespace(path="/proc/self/fd/9", recheck=lambda: asked.append("recheck"))

    cells = [Cell(i * MIB, 1_000_000) for i in range(3)] + [Cell(3 * MIB, 4_000_000, reads=3)]
    monkeypatch.setattr(command.inventory, "find", lambda word: DRIVE)
    monkeypatch.setattr(command.guard, "hold", hold)
    monkeypatch.setattr(command.guard, "announce_refusals", lambda *words, **how: asked.append(("dry", how["reads"])))
    monkeypatch.setattr(read_map, "read", lambda path, *more: asked.append(path) or Map(cells, 1, 2.0, True))
    return asked


def test_it_reads_by_the_held_descriptor_and_proves_the_drive_again(drive, tmp_path, capsys):
    out = tmp_path / "map.csv"
    assert cli.main(["read-map", "--drive", "S1", "--json", "--csv", str(out), "--runs", str(tmp_path)]) == 0
    assert drive == [("S1", None, True), "/proc/self/fd/9", "recheck"]
    document = json.loads(capsys.readouterr().out)
    assert document["drive"]["serial"] == "S1" and document["cells_slow"] == 1 and document["erased_utc"] is None
    assert out.read_text().splitlines() == [
        "offset_bytes,read_us,state,reads",
        *(f"{i * MIB},1000.0,data,1" for i in range(3)),
        f"{3 * MIB},4000.0,data,3",
    ]


def test_a_dry_run_asks_the_guard_alone(drive):
    assert cli.main(["read-map", "--drive", "S1", "-n"]) == 0
    assert drive == [("dry", True)]


def test_the_screen_has_the_map_and_the_slow_regions(drive, tmp_path, capsys):
    assert cli.main(["read-map", "--drive", "S1", "--runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "███▃" in shown and "262 MB/s" in shown


@pytest.mark.parametrize("time", ["5", "8d"])
def test_a_time_out_of_bounds_is_refused(drive, time):
    assert cli.main(["read-map", "--drive", "S1", "--time", time]) == 2 and drive == []


def test_the_age_is_that_of_the_last_erasure_that_was_seen(monkeypatch):
    """Of this drive, within one boot of its run."""
    started = {"t_ns": 100 * S, "utc_ns": 1_700_000_000 * S}
    runs = {
        "a": ("S1", [{"kind": "purge", "ok": True, "t_ns": 160 * S}]),
        "b": ("S1", [{"kind": "purge", "ok": False, "t_ns": 900 * S}, {"kind": "purge", "ok": True, "t_ns": 50 * S}]),
        "c": ("S2", [{"kind": "purge", "ok": True, "t_ns": 900 * S}]),
    }
    monkeypatch.setattr(command.parts, "all_runs", lambda folder: [Path(name) for name in runs])
    header = lambda run: {"drive": {"serial": runs[run.name][0], "model": "M"}, "started": started}
    monkeypatch.setattr(command.journal, "run_header", header)
    monkeypatch.setattr(command.journal, "events", lambda run: runs[run.name][1])
    age = command.age("runs", DRIVE)
    assert (age["erased_utc"], age["erased_by"]) == ("2023-11-14T22:14:20Z", "a")
