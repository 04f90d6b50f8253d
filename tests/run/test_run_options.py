"""Options of `run`: what fits no run is a usage error (exit 2) before anything starts; a dry run starts nothing."""

import argparse
import json
import os
from types import SimpleNamespace

import pytest
from small_plans import DRIVE, FILLED, HEAD

from ssdrig import cli
from ssdrig.base.errors import JournalError, UsageError
from ssdrig.drive.wear import raw_nand
from ssdrig.run import able, dry_run, planned, prepare
from ssdrig.run import options as run_options
from ssdrig.run.budget import Budget
from ssdrig.virtual import bench
from ssdrig.virtual.flash.presets import PRESETS

VIRTUAL = ["run", "consistency", "--virtual", "sata-tlc"]


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch):
    def start(*_, **__):
        pytest.fail("the virtual bench was started")

    monkeypatch.setattr(bench, "start", start)
    monkeypatch.setattr(planned.inventory, "find", lambda name: pytest.fail("a drive was looked for"))
    monkeypatch.delenv("SSDRIG_INFLUX", raising=False)


@pytest.mark.parametrize(
    "words, message",
    [
        (["--op", "nan"], "--op"),
        (["--op", "inf"], "--op"),
        (["--op", "250"], "--op"),
        (["--op", "-1"], "--op"),
        (["--op", "1"], "own over-provisioning"),
        (["--op", "99.9"], "16 MiB"),
        (["--duration", "0"], "at least 4 s"),
        (["--duration", str(10**23)], "--duration"),
        (["--steady-from", "70"], "begin at 70 s"),
        (["--smart-interval", "-1"], "--smart-interval"),
        (["--smart-interval", "0"], "--smart-interval"),
        (["--idle", "-1"], "--idle"),
        (["--seed", str(10**23)], "--seed"),
        (["--seed", "-1"], "--seed"),
        (["--capacity", "1TiBx"], "1TiBx"),
        (["--capacity", "huge"], "huge"),
        (["--capacity", "0"], "larger capacity"),
        (["--capacity", "4097"], "4 KiB pages"),
        (["--capacity", "9000TiB"], "8 TiB"),
        (["--faults", '{"nope":1}'], "nope"),
        (["--faults", "{"], "JSON"),
        (["--faults", "[1]"], "JSON"),
        (["--faults", ""], "JSON"),
        (["--drive-faults", '{"nope":1}'], "nope"),
        (["--drive-faults", "{"], "JSON"),
        (["--influx", "nix"], "InfluxDB address"),
        (["--influx", "http://a..b/db"], "InfluxDB address"),
        (["--rig", "/dev/ttyACM0"], "--rig only with --drive"),
        (["--purge", "format"], "--purge-method only with --drive"),
        (["--raw-nand", "1GiB"], "--raw-nand only with --drive"),
        (["--destroy-data", "S1"], "--destroy-data only with --drive"),
    ],
)
def test_virtual_refused(words, message, capsys):
    assert cli.main([*VIRTUAL, *words]) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize(
    "words, message",
    [
        (["--capacity", "8GiB"], "--capacity only with --virtual"),
        (["--faults", "{}"], "--faults only with --virtual"),
        (["--drive-faults", "{}"], "--drive-faults only with --virtual"),
        (["--raw-nand", "lots"], "lots"),
        (["--virtual", "sata-tlc"], "only one"),
    ],
)
def test_real_refused(words, message, capsys):
    assert cli.main(["run", "consistency", "--drive", "S1", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_malformed_address_in_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("SSDRIG_INFLUX", "http://")
    assert cli.main(VIRTUAL) == 2 and "InfluxDB address" in capsys.readouterr().err


def test_a_dry_run_needs_no_bench(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--op", "25", "--capacity", "512MiB"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["dry_run"] and document["method"]["op_percent"] == 25
    assert document["fill_bytes"] == document["method"]["tested_bytes"] < 512 << 20
    assert "consistency (Performance consistency" in err and not list(tmp_path.iterdir())


def test_a_dry_run_that_fits_no_drive(capsys):
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--op", "1"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("capacity", [None, "768MiB"])
def test_the_plan_is_of_the_drive_that_will_be_there(preset, capacity):
    """What the options say of the virtual drive is what the drive says of itself."""
    from ssdrig.virtual.flash.drive import VirtualDrive

    args = argparse.Namespace(virtual=preset, capacity=capacity)
    planned_drive = run_options.virtual_drive(args)
    drive = VirtualDrive(PRESETS[preset], capacity_bytes=768 << 20 if capacity else None)
    assert (
        planned_drive["raw_nand_bytes"] == drive.raw_nand_bytes
        and planned_drive["capacity_bytes"] == drive.pages * 4096
    )
    assert type(planned_drive["raw_nand_bytes"]) is int


def test_a_preset_that_there_is_not():
    with pytest.raises(UsageError, match="floppy"):
        run_options.virtual_drive(argparse.Namespace(virtual="floppy", capacity=None))


@pytest.mark.parametrize(("finish", "leaves"), [("keep", "written by load"), ("trim", "trimmed"), ("purge", "purged")])
def test_what_the_drive_is_left_as(capsys, finish, leaves):
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--finish", finish]) == 0
    assert json.loads(capsys.readouterr().out)["leaves"] == leaves


def test_a_plan_is_carried_out_at_least_once():
    assert cli.main([*VIRTUAL, "--repeat", "0"]) == 2


def test_a_plan_whose_own_step_is_named_finish(tmp_path):
    plan = tmp_path / "own.toml"
    plan.write_text(HEAD + FILLED.replace('name = "fill"', 'name = "finish"'))
    assert prepare.prepare(str(plan), DRIVE).acts[-1].path == "finish"
    with pytest.raises(UsageError, match="no step named finish"):
        prepare.prepare(str(plan), DRIVE, finish="trim")


def test_an_empty_budget_is_none_that_was_meant(capsys):
    assert cli.main([*VIRTUAL, "--dry-run", "--budget", ""]) == 2
    assert "--budget" in capsys.readouterr().err


def test_a_disk_without_room_for_the_logs_is_said_before_anything_starts(tmp_path, monkeypatch, capsys):
    """A run of pts-iops into 3 MB ended after 110 s, when the disk was full."""
    runs = tmp_path / "not" / "yet"
    asked = []
    monkeypatch.setattr(able.shutil, "disk_usage", lambda path: asked.append(path) or SimpleNamespace(free=3_000_000))
    assert cli.main(["run", "pts-iops", "--variant", "quick", *VIRTUAL[2:], "--runs", str(runs)]) == 8
    stderr = capsys.readouterr().err
    assert asked == [tmp_path] and "free in" in stderr and "3.00 MB" in stderr and "Traceback" not in stderr
    assert not runs.parent.exists()
    able.room(runs, 3_000_000)


@pytest.mark.parametrize("kind", ["file", "below a file", "loop", "pipe", "read-only"])
def test_place_that_takes_no_run_folder_is_refused_before_anything_starts(tmp_path, kind):
    if kind == "read-only" and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    runs = place = tmp_path / "runs"
    if kind == "loop":
        place.symlink_to(place)
    elif kind == "pipe":
        os.mkfifo(place)
    elif kind == "read-only":
        place.mkdir(0o500)
    else:
        place.touch()
        runs = place / "more" if kind == "below a file" else place
    with pytest.raises(JournalError):
        able.room(runs, 0)


def test_a_plan_that_asks_a_person_wants_a_terminal(tmp_path, capsys):
    text = 'schema = 1\nname = "x"\ntitle = "x"\nsource = "x"\nabout = "x"\n[[step]]\nname = "heat"\ndo = "ask"\n'
    (tmp_path / "x.toml").write_text(text + 'text = "heatsink on?"\n')
    assert cli.main(["run", str(tmp_path / "x.toml"), "--virtual", "sata-tlc"]) == 2
    assert "asks the user" in capsys.readouterr().err


def test_several_shares_are_runs_one_after_the_other_and_all_are_checked_first(capsys):
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--op", "own,25,50", "--capacity", "512MiB"]) == 0
    out, err = capsys.readouterr()
    methods = [json.loads(line)["method"] for line in out.splitlines()]
    assert [method["op_percent"] for method in methods] == [None, 25, 50] and err.count("in all") == 3
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--op", "25,1"]) == 2
    output = capsys.readouterr()
    assert output.out == "" and "own over-provisioning" in output.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--op", "25,25"], "each share of --op once"),
        (["--op", "25,"], "--op from 0 to below 100"),
        (["--op", "25", "--op-of-user", "20"], "--op or --op-of-user"),
        (["--op-of-user", "100"], "--op-of-user from 0 to below 100"),
    ],
)
def test_shares_that_are_refused(words, message, capsys):
    assert cli.main([*VIRTUAL, *words]) == 2 and message in capsys.readouterr().err


def test_over_provisioning_of_the_user_capacity_needs_no_raw_nand(capsys):
    assert cli.main([*VIRTUAL, "--dry-run", "--json", "--op-of-user", "20", "--capacity", "1GiB"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["method"]["tested_bytes"] == document["drive"]["capacity_bytes"] * 4 // 5 >> 20 << 20
    args = run_options.parse(["consistency", "--drive", "S", "--op-of-user", "0"])
    assert run_options.parameters(args)[1] == {"range": "100.000000 %"}


def test_the_raw_nand_of_a_reviewed_model_is_known():
    args = run_options.parse(["consistency", "--drive", "S"])
    model, GB = "INTEL SSDSC2BA200G3", 10**9
    assert run_options.raw_nand(args, model, 200_049_647_616) == (264 << 30, False)
    assert run_options.raw_nand(args, model, 400 * GB) == run_options.raw_nand(args, "M", 200 * GB) == (None, False)
    args.raw_nand = "assumed"
    assert run_options.raw_nand(args, model, 200 * GB) == (264 << 30, False)
    args.raw_nand = "256GiB"
    assert run_options.raw_nand(args, model, 200 * GB) == (256 << 30, False)
    drive = {"model": model, "capacity_bytes": 200 * GB, "raw_nand_bytes": 264 << 30}
    assert "264 GiB" in raw_nand.words(drive) and raw_nand.words(drive | {"raw_nand_bytes": 256 << 30}) is None


def test_every_row_of_raw_nand_is_for_drives_that_can_be():
    """Between 4 % and three quarters of spare area over the capacity that is sold, whole dies, and a source."""
    rows = raw_nand._rows()
    assert len(rows) >= 9 and all(len(row["source"]) > 20 for row in rows)
    for row in rows:
        for sold_GB, raw_GiB in row["GiB_by_GB"].items():
            spare = raw_GiB * (1 << 30) / (float(sold_GB) * 1e9) - 1
            assert 0.04 <= spare <= 0.85 and raw_GiB % 4 == 0, row["model"]
            assert raw_nand.of_model("no such drive", round(float(sold_GB) * 1e9)) is None


def test_an_assumed_raw_nand_is_called_so():
    args = run_options.parse(["consistency", "--drive", "S", "--raw-nand", "assumed"])
    run_options.check(args)
    assert run_options.raw_nand(args, "M", 240 * 10**9) == (256 << 30, True)
    assert run_options.raw_nand(args, "M", 256 << 30) == (256 << 30, True)
    assert run_options.raw_nand(args, "M", (256 << 30) + 1) == (512 << 30, True)
    args.raw_nand = "336GiB"
    assert run_options.raw_nand(args, "M", 240 * 10**9) == (336 << 30, False)
    drive = {"interface": "SATA", "capacity_bytes": 240 * 10**9, "raw_nand_bytes": 256 << 30, "time_dilation": 1}
    drive |= {"logical_block_bytes": 512, "model": "M", "serial": "S", "raw_nand_assumed": True}
    made = prepare.prepare("consistency", drive, "op25")
    assert "275 GB raw NAND (assumed)" in dry_run.table(made, Budget(None))[0]
    assert prepare.as_json(made)["drive"]["raw_nand_assumed"] is True


@pytest.mark.parametrize(
    "words, repeated, seed", [([], 0, 4242), (["--seed", "7"], 0, 7), (["--seed", "7"], 2, 200_007)]
)
def test_seed_of_a_drive_with_a_serial_of_its_own(words, repeated, seed):
    args = run_options.parse(["consistency", "--drive", "S1", *words])
    args.repeated = repeated
    assert run_options.seed(args, {"serial": "S1", "serial_source": "drive"}) == seed


def test_drive_with_its_enclosures_serial_gets_a_seed_of_its_own_each_run():
    """What fio writes follows from its seed alone, and is what such a drive is known by after an absence."""
    drive = {"serial": "DOCK1", "serial_source": "enclosure", "model": "2115", "wwn": ""}
    args = run_options.parse(["consistency", "--drive", "DOCK1"])
    seeds = {run_options.seed(args, drive) for _ in range(4)}
    assert len(seeds) == 4 and all(0 <= seed < run_options.HIGHEST_SEED for seed in seeds)
    assert run_options.seed(args, drive | {"wwn": "naa.5002538e00000001"}) == 4242
    args = run_options.parse(["consistency", "--drive", "DOCK1", "--seed", "7"])
    with pytest.raises(UsageError, match="enclosure"):
        run_options.seed(args, drive)
