"""stored_arrays.py and books.py of virtual/flash/: the files of a kept drive that somebody changed are refused before
they fill the memory, and before compiled code follows an index of theirs."""

import json
import os
import zipfile

import numpy as np
import pytest

from ssdrig.base.errors import DriveError
from ssdrig.virtual.device import injector
from ssdrig.virtual.flash import books, ftl, nand, stored_arrays
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import PRESETS

SIZE = 128 << 20
NONE_LOST = np.zeros(0, np.int64)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "flash.npz"
    drive = VirtualDrive(PRESETS["sata-tlc"], capacity_bytes=SIZE, latency=False)
    drive.precondition("random", 1.5)
    drive.save(path)
    return path


def changed(state, path, **arrays):
    """A copy of the state with other arrays in it."""
    with np.load(state) as was:
        np.savez(path, **{**was, **arrays})
    return path


def huge(path, name, shape, packed=False):
    """The state's file with one array whose header promises more than is there, or that unpacks to it."""
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "a", kind) as members, members.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<u4", "fortran_order": False, "shape": shape})
        if packed:
            for _ in range(64):
                file.write(bytes(1 << 20))


@pytest.mark.parametrize("packed", [False, True])
def test_an_array_is_read_only_in_the_size_that_is_wanted_and_unpacked(tmp_path, packed):
    path, words = tmp_path / "a.npz", 1 << 24 if packed else 1 << 60
    huge(path, "checks", (words,), packed)
    with stored_arrays.opened(path) as stored:
        for shape in ((words,), (None,), (5,)):
            with pytest.raises(ValueError):
                stored_arrays.array(stored, "checks", np.uint32, *shape)


@pytest.mark.parametrize("array", [np.arange(3.0), np.arange(4, dtype=np.uint32), np.array([{}], object), np.uint32(7)])
def test_another_kind_or_shape_is_refused(tmp_path, array):
    np.savez(tmp_path / "a.npz", a=array)
    with stored_arrays.opened(tmp_path / "a.npz") as stored, pytest.raises(ValueError):
        stored_arrays.array(stored, "a", np.uint32, 3)


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "flash.npz")
    with pytest.raises(DriveError):
        VirtualDrive.load(tmp_path / "flash.npz")


def test_a_text_is_bounded(tmp_path):
    np.savez(tmp_path / "a.npz", head=np.array("x" * stored_arrays.HEAD_BYTES), short=np.array("äx"))
    with stored_arrays.opened(tmp_path / "a.npz") as stored:
        assert stored_arrays.text(stored, "short") == "äx"
        with pytest.raises(ValueError):
            stored_arrays.text(stored, "head")


@pytest.mark.parametrize(
    "head",
    [
        {"capacity_bytes": 1 << 42},
        {"capacity_bytes": "all"},
        {"preset": {"dies": 1 << 40}},
        {"preset": {"name": "no such"}},
        {"preset": {"block_pages": 0}},
    ],
)
def test_a_head_that_promises_another_drive_is_refused(state, tmp_path, head):
    with np.load(state) as was:
        known = json.loads(str(was["head"]))
    head = {name: {**known[name], **value} if isinstance(value, dict) else value for name, value in head.items()}
    path = changed(state, tmp_path / "a.npz", head=np.array(json.dumps({**known, **head})))
    with pytest.raises(DriveError):
        VirtualDrive.load(path, known=PRESETS)


def test_a_sound_state_is_read(state):
    drive = VirtualDrive.load(state, latency=False)
    with np.load(state) as was:
        assert (drive.l2p == was["l2p"]).all() and drive.ledger()["mapped_pages"] == (was["l2p"] != ftl.NONE).sum() > 0


@pytest.mark.parametrize("table", ["l2p", "p2l", "bits", "blk", "lists", "m", "unreadable"])
def test_a_table_that_leads_out_of_the_drive_is_refused(state, tmp_path, table):
    with np.load(state) as was:
        rows = was[table] if table != "unreadable" else np.zeros(3, np.int64)
    top = np.iinfo(rows.dtype).max - 1
    path = changed(state, tmp_path / "a.npz", **{table: np.full_like(rows, top)})
    with pytest.raises(DriveError):
        VirtualDrive.load(path)


def test_random_changes_of_the_tables_are_refused_or_harmless(state):
    """A change that passes leaves a drive that can be written to and whose tables still agree."""
    rng, refused = np.random.default_rng(7), 0
    with np.load(state) as was:
        tables = {name: was[name] for name in ("l2p", "p2l", "bits", "blk", "lists", "m")}
    drive = VirtualDrive.load(state, latency=False)
    first = int(nand.S_CPU)
    for _ in range(150):
        name = str(rng.choice(list(tables)))
        for own in tables:
            target = getattr(drive, own)
            target[first if own == "m" else 0 :] = tables[own][first if own == "m" else 0 :]
        rows = getattr(drive, name).reshape(-1)
        at = int(rng.integers(first if name == "m" else 0, nand.K_LEVELS if name == "m" else rows.size))
        rows[at] = rng.integers(np.iinfo(rows.dtype).min, np.iinfo(rows.dtype).max, dtype=rows.dtype)
        try:
            books.check(drive, NONE_LOST)
        except ValueError:
            refused += 1
            continue
        drive.precondition("random", 0.02, 3)
        books.check(drive, NONE_LOST)
    assert refused > 60


@pytest.mark.parametrize("word", ["S_BLOCK", "S_OFF", "S_FREE", "S_FREE_HEAD", "S_VICTIM", "S_STREAM"])
@pytest.mark.parametrize("value", [-5, 1 << 40])
def test_each_index_of_the_state_is_bounded(state, word, value):
    drive = VirtualDrive.load(state, latency=False)
    books.check(drive, NONE_LOST)
    drive.m[getattr(nand, word)] = value
    with pytest.raises(ValueError):
        books.check(drive, NONE_LOST)


def test_a_list_of_blocks_in_a_circle_is_refused(state):
    drive = VirtualDrive.load(state, latency=False)
    closed = np.flatnonzero(drive.blk[:, ftl.STATE] == ftl.CLOSED)
    drive.blk[closed[0], ftl.NEXT] = drive.blk[closed[0], ftl.PREV] = closed[0]
    with pytest.raises(ValueError):
        books.check(drive, NONE_LOST)


def test_kept_faults_are_stored_unpacked(tmp_path):
    injector.save(tmp_path, {"cuts": 1}, {"old": {3: b"x" * 4096}})
    assert injector.load(tmp_path, 4) == ({"cuts": 1}, {"old": [([3], [b"x" * 4096])]})
    with pytest.raises(ValueError):
        injector.load(tmp_path, 3)
    np.savez_compressed(tmp_path / injector.FILE, document=np.zeros(9, np.uint8), blob=np.zeros(1 << 20, np.uint8))
    with pytest.raises(ValueError):
        injector.load(tmp_path, 4)
