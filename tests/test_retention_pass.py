"""A retention test, the parts of it that need no drive: where its data lie, its manifest, how it was stored, bounds."""

import copy
import json

import numpy as np
import pytest

from ssdrig.errors import ManifestRefused, UsageError
from ssdrig.overprovisioning import MIB
from ssdrig.retention import layout as layouts
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, storage
from ssdrig.retention.reading import Read

LAYOUT = layouts.make(4096, 200 * MIB, 200 * MIB)
DRIVE = {"model": "M", "serial": "S1", "capacity_bytes": 200 * MIB, "wear_percent": 3}


def made(**drive) -> dict:
    parts = {"drive": DRIVE | drive, "layout": layouts.as_json(LAYOUT), "written": {}, "baseline": {}}
    return manifests.sealed("run-1", 7, parts | {"seal": {"utc": "2026-11-22T12:00:00Z"}})


def test_layout_takes_every_piece_once_and_leaves_room_for_the_copies():
    assert (LAYOUT.piece_bytes, LAYOUT.pieces) == (2 * MIB, 100)
    rows = layouts.commands(LAYOUT, range(LAYOUT.pieces), 128 << 10)
    touched = np.zeros(200 * MIB // 4096, np.int64)
    for at, n, piece in rows:
        touched[at // 4096 : (at + n) // 4096] += 1
        assert at // LAYOUT.piece_bytes == piece
    free = np.zeros(len(touched), bool)
    for at in layouts.copies(200 * MIB):
        free[at // 4096 : (at + MIB) // 4096] = True
    assert (touched[~free] == 1).all() and not touched[free].any() and free.sum() * 4096 == 3 * MIB
    judged = layouts.commands(LAYOUT, layouts.of_kinds(LAYOUT, layouts.KEPT), 128 << 10)[:, 1].sum()
    assert judged == layouts.judged_bytes(LAYOUT) and len(layouts.of_kinds(LAYOUT, ("baseline",))) == 5
    assert layouts.of_json(json.loads(json.dumps(layouts.as_json(LAYOUT)))) == LAYOUT
    assert layouts.make(512, 4 << 40, 1 << 40)[2:] == (1 << 30, 1024)
    with pytest.raises(UsageError):
        layouts.make(4096, 32 * MIB, 32 * MIB)


def test_manifest_is_found_on_the_third_copy_alone():
    one = made()
    good = manifests.copy(one)
    assert len(good) == MIB and manifests.of_copy(good) == one
    torn = bytearray(good)
    torn[200] ^= 1
    found = manifests.found([bytes(torn), None, good])
    assert found.manifest == one and list(found.damaged) == ["first MiB", "middle"]
    with pytest.raises(ManifestRefused, match="SHA-256 does not fit.*--manifest"):
        manifests.found([bytes(torn)] * 3)
    assert manifests.found([bytes(torn)] * 3, json.dumps(one).encode()).manifest == one
    with pytest.raises(ManifestRefused, match="no manifest on it"):
        manifests.found([bytes(MIB)] * 3)


@pytest.mark.parametrize("name", manifests.PARTS)
def test_an_altered_part_is_refused_also_with_a_new_sum_of_the_copy(name):
    altered = copy.deepcopy(made())
    altered[name]["utc" if name == "seal" else "block_bytes" if name == "layout" else "x"] = 512
    with pytest.raises(ManifestRefused, match="altered"):
        manifests.found([manifests.copy(altered)] * 3)


def test_copies_of_two_manifests_and_those_of_another_drive_are_refused():
    other = manifests.copy(made(serial="S2"))
    with pytest.raises(ManifestRefused, match="different ones"):
        manifests.found([manifests.copy(made()), other, other])
    with pytest.raises(ManifestRefused, match="different ones"):
        manifests.found([other] * 3, json.dumps(made()).encode())
    manifests.same_drive(made(), DRIVE)
    for key, value in (("serial", "S2"), ("capacity_bytes", 1)):
        with pytest.raises(ManifestRefused, match="in the manifest"):
            manifests.same_drive(made(), DRIVE | {key: value})


def test_a_log_of_two_halves_costs_as_much_as_35_degrees():
    log = storage.parse("time,C\n2026-01-01T00:00:00,20\n2026-01-01T12:00:00,40\n2026-01-02T00:00,33\n")
    found = storage.found(log, 48.0)
    assert found["effective_C"] == pytest.approx(35.2, abs=0.1) and found["hours"] == 24
    assert found["equivalent_h"]["40"]["1.1"] == pytest.approx(12 + 12 * 0.0620, rel=0.001)
    assert set(found["equivalent_h"]) == {"30", "40"} and set(found["equivalent_h"]["30"]) == {"0.6", "0.8", "1.1"}
    said = " ".join(found["words"])
    assert "covers 50 %" in said and "0.6 eV" in said and "equal" not in said
    assert storage.parse("0,20\n12,40\n24,0\n").profile == log.profile == ((12.0, 20.0), (12.0, 40.0))
    assert storage.parse(storage.to_csv(log)).profile == log.profile
    assert storage.found(None)["effective_C"] is None and "--storage" in storage.found(None)["why"]


@pytest.mark.parametrize("text", ["", "0,20", "5,20\n4,21\n", "0,20\n1,hot\n", "0,20\n1,900\n", "0\n1\n"])
def test_a_log_that_says_nothing_is_refused(text):
    with pytest.raises(UsageError):
        storage.parse(text)


def test_bounds_are_those_of_the_standard():
    assert passes.poisson_most(0, 0.6) == pytest.approx(0.9163, abs=1e-4)
    assert passes.poisson_most(3, 0.95) == pytest.approx(7.7537, abs=1e-3)
    assert passes.uber(0, 8 * 256 * 10**9)["most"] == pytest.approx(4.5e-13, rel=0.01)
    assert passes.bytes_for(1e-15) == pytest.approx(115e12, rel=0.01) and passes.drives_for(0.03) == 31
    said = " ".join(passes.cannot(8 * 256 * 10**9))
    assert "115 TB" in said and "4.5e-13" in said and "31 drives" in said
    assert passes.share_most(0, 299) == pytest.approx(0.00997, abs=1e-4) and passes.share_most(0, 0) is None
    assert passes.share_most(201, 10**6) == pytest.approx(passes.share_most(200, 10**6), rel=0.01)


def test_a_pass_lists_slow_pieces_and_bad_blocks():
    def read(piece, us, bad=()):
        rows = np.array([(piece * 512 + at, -6) for at in bad], np.int64).reshape(-1, 2)
        return Read(piece, np.full(16, us * 1000), 16 << 17, 512, rows)

    reads = [read(0, 250), read(1, 751, bad=(3, 4, 9)), read(2, 250)]
    bad = np.concatenate([each.bad for each in reads])
    baseline = passes.middle([passes.piece(read(7, 250))])
    found = passes.judge(LAYOUT, [passes.piece(each) for each in reads], passes.runs(bad), baseline)
    assert found["slow"] == [1] and found["bad"] == 3 and found["classes"] == {"CORRUPT": 3}
    assert found["bad_runs"] == [[515, 2, "CORRUPT"], [521, 1, "CORRUPT"]]
    assert found["slowdown"] == pytest.approx((250 + 751 + 250) / 750, rel=0.001)
