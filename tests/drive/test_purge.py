"""Purge: which method, whether its effect was seen, and the command. Discard and zero on a real loop device."""

import argparse
import contextlib
import json
import os
from dataclasses import replace

import fake_erase
import pytest
from purging import LOOP_BYTES, SIZE, ByName, commands, drive_at, loop, machine, the_purge  # noqa: F401  fixtures

from ssdrig.base.errors import DriveError, ToolMissing, UsageError
from ssdrig.commands import purge as command
from ssdrig.drive import block, purge


def test_a_drive_that_says_done_but_keeps_its_data_is_found_out(machine, tmp_path):
    drive, _ = machine(keeps=True)
    with pytest.raises(DriveError, match="did not purge.*66 unchanged"):
        the_purge(drive, "format", root=tmp_path)


def test_an_empty_drive_gets_a_pattern_first_so_that_the_effect_can_be_seen(machine, tmp_path):
    drive, _ = machine(data=False)
    effect = the_purge(drive, "format", root=tmp_path)["effect"]
    assert (effect["pattern_bytes"], effect["proving"], effect["kept"]) == (8 * 4096, 8, 0)
    drive, _ = machine(data=False, keeps=True)
    with pytest.raises(DriveError, match="did not purge.*8 unchanged"):
        the_purge(drive, "format", root=tmp_path)


def test_crypto_erase_may_leave_other_data(machine, tmp_path):
    drive, _ = machine(fna=4, scrambles=True)
    result = the_purge(drive, "format-crypto", root=tmp_path)
    assert result["ok"] and result["effect"]["other"] == 66 and result["effect"]["kept"] == 0


def test_methods_best_first_with_reasons(machine, tmp_path):
    queue = tmp_path / "sys/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "discard_max_bytes").write_text("2199023255040\n")
    drive, _ = machine(sanicap=2, fna=0)
    offered = purge.methods(drive, tmp_path)
    assert [m.name for m in offered if m.available] == ["format-secure", "sanitize-block", "format", "discard", "zero"]
    why = {m.name: m.why_not for m in offered if not m.available}
    assert (
        "FNA bit 2" in why["format-crypto"]
        and "SANICAP bit 0" in why["sanitize-crypto"]
        and "interface" in why["ata-secure-erase"]
    )
    assert {m.name: m.estimate_s for m in offered}["sanitize-block"] == 120
    drive, _ = machine(oacs=0)
    assert purge.choose(purge.methods(drive, tmp_path), "auto").name == "discard"


def test_a_drive_of_zones_is_erased_by_its_own_commands_and_its_zones_are_empty_after(machine, tmp_path, monkeypatch):
    drive, _ = machine(data=False, sanicap=2)
    drive, asked = replace(drive, zoned="host-managed"), []
    monkeypatch.setattr(purge.zones, "reset", lambda node, *_: asked.append(node))
    monkeypatch.setattr(purge.block, "write", lambda *_: pytest.fail("a pattern was written"))
    why = {m.name: m.why_not for m in purge.methods(drive, tmp_path)}
    assert why["discard"] == why["zero"] == "not on a drive of zones"
    result = the_purge(drive, root=tmp_path)
    assert result["method"] == "format-secure" and asked == [drive.node] and result["effect"]["pattern_bytes"] == 0
    with pytest.raises(DriveError):
        the_purge(drive, "zero", root=tmp_path)


def test_a_drive_of_zones_without_an_erase_of_its_own_is_purged_by_their_reset(machine, tmp_path, monkeypatch):
    drive, state = machine(oacs=0)
    assert {m.name: m.why_not for m in purge.methods(drive, tmp_path)}["zone-reset"] == "not a drive of zones"
    drive = replace(drive, zoned="host-managed")
    monkeypatch.setattr(purge.zones, "reset", lambda node, *_: open(node, "r+b").write(bytes(SIZE)))
    result = the_purge(drive, root=tmp_path)
    assert result["ok"] and (result["method"], result["argv"][2]) == ("zone-reset", "BLKRESETZONE")
    assert (result["effect"]["zeros"], result["effect"]["kept"], commands(state)) == (66, 0, [])


def test_what_cannot_be_used_is_refused_with_its_reason(machine, tmp_path, monkeypatch):
    drive, state = machine(oacs=0)
    with pytest.raises(DriveError, match="Format NVM"):
        the_purge(drive, "format", root=tmp_path)
    with pytest.raises(DriveError, match="a purge command.*format-secure.*discard"):
        the_purge(drive, root=tmp_path)  # never falls back on writing the whole drive
    with pytest.raises(UsageError, match="shred"):
        the_purge(drive, "shred", root=tmp_path)
    assert commands(state) == []
    drive, _ = machine(garbage=True)
    with pytest.raises(DriveError, match="100 bytes came"):
        the_purge(drive, "format", root=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ToolMissing, match="nvme-cli"):
        the_purge(drive, "format", root=tmp_path)


def test_auto_says_why_the_better_method_was_not_used(machine, tmp_path, capfd, monkeypatch):
    queue = tmp_path / "sys/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "discard_max_bytes").write_text("2147450880\n")
    drive, _ = machine("SATA", frozen=1)
    monkeypatch.setattr(block, "discard", lambda node, on_bytes: open(node, "r+b").write(bytes(SIZE)))
    assert purge.purge(ByName(drive), root=tmp_path)["method"] == "discard"
    assert "not ata-secure-erase: the drive is frozen" in capfd.readouterr().err


# ---- discard and zero on a real kernel


@pytest.mark.slow
@pytest.mark.parametrize(("method", "request_name"), [("discard", "BLKDISCARD"), ("zero", "BLKZEROOUT")])
def test_discard_and_zero_of_a_real_device(loop, method, request_name):
    result = the_purge(loop, method)
    assert result["ok"] and result["argv"] == ["ioctl", loop.node, request_name]
    assert (result["effect"]["zeros"], result["effect"]["kept"]) == (66, 0)
    with open(loop.node, "rb") as f:
        assert not any(f.read())


def test_auto_on_a_device_without_purge_commands_is_discard(loop):
    assert the_purge(loop)["method"] == "discard"


def test_another_capacity_afterwards_is_an_error(loop):
    with pytest.raises(DriveError, match="capacity"):
        the_purge(drive_at(loop.node, "other", loop.name, LOOP_BYTES - 4096), "discard")


# ---- what samples show

ZERO, ONES, OLD, NEW = bytes(4096), b"\xff" * 4096, b"old!" * 1024, b"new!" * 1024


@pytest.mark.parametrize(
    ("method", "before", "after", "promise", "ok"),
    [
        ("format", [OLD, ZERO], [ZERO, ZERO], None, True),
        ("format", [OLD, OLD], [ONES, ONES], None, True),
        ("sanitize-crypto", [OLD], [NEW], None, True),
        ("sanitize-crypto", [ZERO], [NEW], None, False),
        ("discard", [OLD, OLD], [OLD, ZERO], None, False),
        ("discard", [OLD], [NEW], None, False),
        ("discard", [OLD], [ZERO], None, True),
        ("discard", [OLD], [ONES], "ones", True),
        ("zone-reset", [OLD], [OLD], None, False),
        ("zone-reset", [OLD], [ZERO], "zeros", True),
        ("sanitize-block", [None, None], [ZERO, ONES], None, True),
        ("sanitize-block", [None], [NEW], None, False),
    ],
)
def test_judge(method, before, after, promise, ok):
    effect = purge.judge(method, before, after, promise)
    assert effect["ok"] is ok and effect["words"].startswith("not verified") is not ok


@pytest.mark.parametrize(
    ("method", "before", "after", "promise", "words"),
    [
        ("format", [OLD, OLD], [OLD, ZERO], None, "did not purge"),
        ("sanitize-crypto", [OLD], [OLD], None, "did not purge"),
        ("discard", [OLD], [OLD], "zeros", "did not purge"),
        ("zone-reset", [OLD], [OLD], "zeros", "did not purge"),
        ("discard", [OLD], [NEW], "zeros", "as promised"),
        ("zero", [OLD], [ONES], None, "zeros"),
        ("format", [OLD], [None], None, "readable"),
    ],
)
def test_judge_refuses(method, before, after, promise, words):
    with pytest.raises(DriveError, match=words):
        purge.judge(method, before, after, promise)


# ---- the command


@pytest.fixture
def run(machine, monkeypatch, tmp_path):
    """run(words, **behaviour) -> exit code, with a guard that lets this drive pass as `hold` would."""
    from ssdrig.base.errors import SsdrigError, UnsafeTarget
    from ssdrig.drive import guard, inventory

    class Held(ByName):
        rechecked = 0

        def recheck(self):
            Held.rechecked += 1
            return self.drive

    @contextlib.contextmanager
    def hold(drive, serial, root="/"):
        if serial != drive.serial:
            raise UnsafeTarget(drive.serial, serial, "")
        yield Held(drive)

    def go(*words, **behaviour):
        drive, go.state = machine(**behaviour)
        monkeypatch.setattr(inventory, "find", lambda word: drive)
        monkeypatch.setattr(guard, "hold", hold)
        monkeypatch.setattr(
            guard,
            "refusals",
            lambda drive, serial=None: [] if serial else [guard.Refusal("signature", "ext4", "--destroy-data")],
        )
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        try:
            return command.command(parser.parse_args(["SERIAL0001", *words]))
        except SsdrigError as error:
            return error.exit_code

    go.held = Held
    return go


def test_command_purges_and_gives_the_result_as_json(run, capsys):
    assert run("--destroy-data", "SERIAL0001", "--json") == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["method"], result["ok"], result["effect"]["zeros"]) == ("format-secure", True, 66)
    assert "ALL DATA WILL BE LOST on Model A, serial SERIAL0001" in err and "format-secure" in err
    assert run.held.rechecked == 1  # the drive is looked for again after it was purged


def test_command_says_what_writing_it_all_costs_of_its_rating(run, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(block, "zero", lambda node, on_bytes: open(node, "r+b").write(bytes(SIZE)))
    words = ("--destroy-data", "SERIAL0001", "--method", "zero")
    assert run(*words) == 0
    assert "writes 4.19 MB, its rated endurance is not known" in capsys.readouterr().err
    (tmp_path / "ssdrig").mkdir()
    (tmp_path / "ssdrig/warranty.toml").write_text('[[drive]]\nmodel = "Model A"\ntbw_TB = 0.0001\nsource = "a test"\n')
    assert run(*words) == 0
    assert "writes 4.19 MB, 4.2 % of its rated 100 MB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 3),
        (("--dry-run",), 3),
        (("--dry-run", "--destroy-data", "SERIAL0001"), 0),
        (("--destroy-data", "SERIAL0002"), 3),
        (("--destroy-data", "SERIAL0001", "--method", "sanitize-block"), 4),
    ],
)
def test_command_that_must_not_touch_the_drive(run, capsys, monkeypatch, words, code):
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    assert run(*words) == code
    assert commands(run.state) == [] and any(open(fake_erase.read(run.state)["backing"], "rb").read())


def test_dry_run_lists_methods_and_what_stands_against_it(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    assert run("--dry-run") == 3
    out = capsys.readouterr().out
    assert (
        "* format-secure" in out
        and "against it: signature: ext4" in out
        and "no: the controller does not support it (SANICAP bit 1)" in out
    )
    assert run("--dry-run", "--json") == 3
    document = json.loads(capsys.readouterr().out)
    assert (
        document["chosen"] == "format-secure"
        and document["refusals"][0]["check"] == "signature"
        and len(document["methods"]) == len(purge.METHODS)
    )
