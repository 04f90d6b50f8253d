"""virtual/device/persistence.py: a drive that outlives its server. In process, with a small drive that answers
immediately."""

import errno
import fcntl
import json
from unittest import mock

import numpy as np
import pytest

from ssdrig.base import files, kernels
from ssdrig.base.errors import DriveError
from ssdrig.virtual.device import admin, injector, persistence
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import PRESETS

PRESET = PRESETS["sata-tlc"]
SIZE = 256 << 20


def device(folder=None, data="crc"):
    ring = np.full((BINS, 2), 0xFFFFFFFF, dtype=np.uint32)
    ring[:, 1] = 0
    if folder:
        drive = VirtualDrive.load(folder / "flash.npz", latency=False, ring=ring)
    else:
        drive = VirtualDrive(PRESET, capacity_bytes=SIZE, latency=False, ring=ring)
    made = Device(PRESET, drive, SIZE, data, 10**9, ring, latency=False)
    if folder:
        persistence.restore(made, folder)
    return made


def test_a_drive_comes_back_with_its_data_wear_and_counters(tmp_path):
    first = device()
    first.drive.precondition("random", 0.25)
    first.store.checks[7] = 4711
    first.power_cycles, first.cuts, first.serial = 3, 2, "SIM42"
    folder = tmp_path / "drive"
    assert admin.answer_truth(first, {"op": "keep", "folder": str(folder)}, 0) == ({}, 0)
    with open(tmp_path / ".drive.lock", "rb") as held, pytest.raises(BlockingIOError):
        fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
    ledger, pe = first.drive.ledger(), first.drive.pe_counts().copy()
    first.close()
    facts = persistence.facts(folder)
    assert 0 <= ledger["host_write_bytes"] - facts["host_written_bytes"] < persistence.UNIT_BYTES
    assert (facts["preset"], facts["drive_bytes"], facts["firmware"]) == ("sata-tlc", SIZE, "SIM1.0")
    second = device(folder)
    for key in ("host_write_bytes", "nand_write_bytes", "erases", "mapped_pages"):
        assert second.drive.ledger()[key] >= ledger[key] > 0 or ledger[key] == 0, key
    assert second.drive.ledger()["host_write_bytes"] == ledger["host_write_bytes"]
    assert (second.drive.pe_counts() == pe).all() and second.store.checks[7] == 4711
    assert (second.serial, second.power_cycles, second.cuts) == ("SIM42", 3, 2)
    second.close()  # nobody asked to keep it
    assert sorted(path.name for path in tmp_path.iterdir()) == [".drive.lock", "drive"]


def test_a_full_disk_gets_back_what_was_half_kept(tmp_path, monkeypatch):
    one = device()
    monkeypatch.setattr(np, "savez", mock.Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        persistence.save(one, tmp_path / "drive")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_server_that_is_killed_while_the_old_state_goes_leaves_a_whole_drive(tmp_path, monkeypatch, exchanges):
    """What was there was removed before the new state had its name: a kill in between left half of a drive."""
    one, folder = device(), tmp_path / "drive"
    persistence.save(one, folder)
    one.power_cycles = 9
    real = files.shutil.rmtree

    def killed(path, *how, **more):
        if (path / "device.json").exists():
            (path / "flash.npz").unlink()
            raise KeyboardInterrupt
        real(path, *how, **more)

    if exchanges:
        monkeypatch.setattr(files.shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            persistence.save(one, folder)
        monkeypatch.setattr(files.shutil, "rmtree", real)
    else:
        monkeypatch.setattr(files, "_libc", object())
        persistence.save(one, folder)
    one.close()
    again = device(folder)
    assert again.power_cycles == 9
    persistence.save(again, folder)
    again.close()
    assert [path.name for path in tmp_path.iterdir()] == ["drive"]


def test_one_that_is_no_longer_wanted_is_not_kept(tmp_path):
    one = device()
    one.keep(str(tmp_path / "drive"))
    one.keep(None)
    one.close()
    assert persistence.facts(tmp_path / "drive") is None


def test_what_another_simulator_kept_or_nobody_is_no_drive(tmp_path, monkeypatch):
    folder = tmp_path / "drive"
    assert persistence.facts(folder) is None
    one = device()
    one.keep(str(folder))
    one.close()
    assert persistence.facts(folder)
    monkeypatch.setattr(kernels, "DIGEST", "another")
    assert persistence.facts(folder) is None
    monkeypatch.undo()
    (folder / "store.npz").write_bytes(b"torn")
    with pytest.raises(DriveError, match="a kept drive"):
        device(folder)
    (folder / "device.json").write_text(json.dumps([]))
    assert persistence.facts(folder) is None


@pytest.mark.parametrize("name", ["simulator", "preset", "drive_bytes", "firmware", "host_written_bytes", "counted"])
def test_document_with_another_kind_of_value_is_no_drive(tmp_path, name):
    one = device()
    one.keep(str(tmp_path / "drive"))
    one.close()
    path = tmp_path / "drive/device.json"
    document = json.loads(path.read_bytes())
    assert persistence.facts(tmp_path / "drive") == document
    least = {"drive_bytes": [0, -1], "host_written_bytes": [-1], "preset": ["odd"]}
    for odd in (None, [], 1.5, True, *least.get(name, ())):
        path.write_text(json.dumps({**document, name: odd}))
        assert persistence.facts(tmp_path / "drive") is None, odd
    del document[name]
    path.write_text(json.dumps(document))
    assert persistence.facts(tmp_path / "drive") is None


def test_a_server_that_still_writes_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "WAIT_S", 0.1)
    one = device()
    one.keep(str(tmp_path / "drive"))
    with pytest.raises(DriveError, match="still runs"):
        persistence.facts(tmp_path / "drive")
    one.keep(None)
    one.close()


def test_a_drive_that_keeps_every_byte_comes_back_with_them(tmp_path):
    one, folder = device(data="sparse"), tmp_path / "drive"
    one.store.put(3, b"k" * 4096)
    one.store.put(60_000, b"l" * 4096)
    one.keep(str(folder))
    one.close()
    assert (folder / "store.bin").stat().st_size == SIZE
    assert (folder / "store.bin").stat().st_blocks * 512 < 1 << 20
    two = device(folder, data="sparse")
    assert two.store.load(3) == b"k" * 4096 and two.store.load(60_000) == b"l" * 4096
    assert two.store.load(4) == bytes(4096)
    two.close()
    with pytest.raises(DriveError, match="a kept drive"):
        device(folder)  # what is there is no table of checks
    (folder / "store.bin").write_bytes(b"torn")
    with pytest.raises(DriveError, match="a kept drive"):
        device(folder, data="sparse")


def test_capacitors_and_faults_come_back_as_they_were(tmp_path):
    folder, plp = tmp_path / "drive", PRESETS["enterprise-50"]
    given = {"ghost": {"p": 1}, "aged_unsaid": {"p": 1, "per_cut": 0.1}}

    def made(kept_in=None):
        ring = np.full((BINS, 2), 0xFFFFFFFF, dtype=np.uint32)
        how = {"latency": False, "ring": ring}
        flash = VirtualDrive.load(kept_in / "flash.npz", **how) if kept_in else None
        drive = flash or VirtualDrive(plp, capacity_bytes=SIZE, **how)
        one = Device(plp, drive, SIZE, "sparse", 0, ring, latency=False, faults=injector.Injector(given))
        if kept_in:
            persistence.restore(one, kept_in)
        return one

    first = made()
    first.advance(10**9)
    first.reserve.health, first.reserve.volts, first.reserve.incomplete_dumps = 0.6, first.reserve.bank.least_V, 2
    faults, page = first.faults, bytes(range(256)) * 16
    faults.cuts, faults._seq, faults._saved = 7, 11, [{"power_cycles": np.int64(3)}]
    faults._missing["unsafe_shutdowns"] = 4
    faults._old, faults._turns = {3: page}, {np.int64(4): page[::-1]}
    faults._ghosts, faults._bad = {5: (page, bytes(4096))}, {(6, 1): None, (6, 2): page[:512]}
    first.keep(str(folder))
    first.close()
    second = made(folder)
    assert second.reserve.health == 0.6 and second.reserve.incomplete_dumps == 2
    assert second.reserve.bank.least_V < second.reserve.volts <= second.reserve.bank.full_V, "it was charged for 1 s"
    names = ("cuts", "_seq", "_saved", "_missing", "_old", "_turns", "_ghosts", "_bad")
    assert [getattr(second.faults, name) for name in names] == [getattr(faults, name) for name in names]
    second.close()
    (folder / injector.Injector.FILE).write_bytes(b"torn")
    with pytest.raises(DriveError, match="a kept drive"):
        made(folder)
