"""A retention test, the parts of it that need no drive: where its data lie, its manifest, how it was stored, bounds."""

import contextlib
import copy
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import ManifestRefused, UsageError
from ssdrig.base.overprovisioning import MIB
from ssdrig.drive.wear import retention
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, storage
from ssdrig.retention.at_work import deltas
from ssdrig.retention.reading import Read

LAYOUT = layouts.make(4096, 200 * MIB, 200 * MIB)
DRIVE = {"model": "M", "serial": "S1", "capacity_bytes": 200 * MIB, "wear_percent": 3, "class": "client"}
DRIVE |= {"firmware": "F", "logical_block_bytes": 512, "bound_hours": 8760, "bound_C": 30}
BASELINE = {"MBps": 500.0, "p50_us": 90.0, "p99_us": 120.0, "max_us": 300.0, "pieces": 5}
BASELINE["each"] = [[piece, 500.0, 90.0, 120.0, 300.0] for piece in range(5)]
WRITTEN = {"bytes": 200 * MIB, "ended_utc": "2026-11-22T11:00:00Z"}
SMART = {"media_errors": 0, "temperature_C": None, "percentage_used": 3}
SEAL = {"utc": "2026-11-22T12:00:00Z", "smart": SMART, "idle_W": 0.4}


def made(**drive) -> dict:
    parts = {"drive": DRIVE | drive, "layout": layouts.as_json(LAYOUT), "written": WRITTEN, "baseline": BASELINE}
    return manifests.sealed("run-1", 7, parts | {"seal": SEAL})


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
    for block_bytes, size in ((4096, 32 * MIB), (8192, 200 * MIB), (520, 200 * MIB)):
        with pytest.raises(UsageError):
            layouts.make(block_bytes, size, size)


def test_manifest_is_found_on_the_third_copy_alone():
    one = made()
    good = manifests.copy(one)
    assert len(good) == MIB and manifests.of_copy(good) == one
    torn = bytearray(good)
    torn[200] ^= 1
    agreed = manifests.agreed([bytes(torn), None, good])
    assert agreed.manifest == one and list(agreed.damaged) == ["first MiB", "middle"]
    with pytest.raises(ManifestRefused, match="SHA-256.*--manifest"):
        manifests.agreed([bytes(torn)] * 3)
    assert manifests.agreed([bytes(torn)] * 3, json.dumps(one).encode()).manifest == one
    with pytest.raises(ManifestRefused, match="no manifest on it"):
        manifests.agreed([bytes(MIB)] * 3)


@pytest.mark.parametrize("name", manifests.PARTS)
def test_an_altered_part_is_refused_also_with_a_new_sum_of_the_copy(name):
    altered = copy.deepcopy(made())
    altered[name]["utc" if name == "seal" else "block_bytes" if name == "layout" else "x"] = 512
    with pytest.raises(ManifestRefused, match="altered"):
        manifests.agreed([manifests.copy(altered)] * 3)


def test_copies_of_two_manifests_and_those_of_another_drive_are_refused():
    other = manifests.copy(made(serial="S2"))
    with pytest.raises(ManifestRefused, match="different ones"):
        manifests.agreed([manifests.copy(made()), other, other])
    with pytest.raises(ManifestRefused, match="different ones"):
        manifests.agreed([other] * 3, json.dumps(made()).encode())
    manifests.same_drive(made(), DRIVE)
    for key, value in (("serial", "S2"), ("capacity_bytes", 1), ("logical_block_bytes", 8192)):
        with pytest.raises(ManifestRefused, match="in the manifest|of the drive"):
            manifests.same_drive(made(), DRIVE | {key: value})


def chained(manifest: dict) -> dict:
    """As somebody would alter it who knows how the chain is made."""
    return manifest | {"chain": manifests._chain(manifest)}


def gone_by(pass_: dict) -> None:
    """All that a verify takes from a manifest."""
    manifests.same_drive(pass_, DRIVE)
    at, drive = layouts.of_json(pass_["layout"]), pass_["drive"]
    layouts.commands(at, layouts.of_kinds(at, layouts.KEPT), 128 << 10)
    passes.judge(
        at, [passes.piece(Read(0, np.full(3, 10**5), 3 << 17, 96, np.zeros((0, 2), np.int64)))], [], pass_["baseline"]
    )
    retention.bound(drive["class"], drive["wear_percent"], 30.0)
    deltas(pass_["seal"]["smart"], {"media_errors": 3})
    assert manifests.utc_s(pass_["seal"]["utc"]) < 1e12 and manifests.label(pass_)
    manifests.run_number(pass_["run"], pass_["seed"])


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
)


@settings(max_examples=60)
@given(st.data())
def test_a_manifest_that_somebody_has_made_up_is_refused_or_can_be_gone_by(data):
    """An altered one with a chain of its own ended a verify with a traceback."""
    manifest = copy.deepcopy(made())
    place = data.draw(st.sampled_from(list(manifest)))
    at: dict | list = manifest
    if manifest[place] and isinstance(manifest[place], dict) and data.draw(st.booleans()):
        at, place = manifest[place], data.draw(st.sampled_from(sorted(manifest[place])))
    if isinstance(at[place], dict) and at[place] and data.draw(st.booleans()):
        at, place = at[place], data.draw(st.sampled_from(sorted(at[place])))
    if data.draw(st.booleans()):
        at[place] = data.draw(ANYTHING)
    else:
        del at[place]
    with contextlib.suppress(KeyError, TypeError):
        manifest = chained(manifest)
    try:
        agreed = manifests.agreed([None] * 3, json.dumps(manifest).encode()).manifest
        gone_by(agreed)
    except ManifestRefused:
        pass


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("seal", "utc", "yesterday"),
        ("seal", "smart", {"media_errors": "three"}),
        ("baseline", "p99_us", float("nan")),
        ("layout", "pieces", float("inf")),
        ("layout", "capacity_bytes", 400 * MIB),
        ("drive", "logical_block_bytes", 3),
        ("drive", "serial", None),
    ],
)
def test_a_manifest_of_nonsense_is_refused_whatever_its_chain(part, key, value):
    manifest = copy.deepcopy(made())
    manifest[part][key] = value
    with pytest.raises(ManifestRefused, match="it is invalid"):
        manifests.agreed([None] * 3, json.dumps(chained(manifest)).encode())


def test_only_the_time_between_seal_and_verify_counts_of_a_log():
    """A logger that had run for a day before the drive lay there made the storage a day longer."""
    log = storage.parse("2026-01-01T00:00,20\n2026-01-02T00:00,30\n2026-01-03T00:00,40\n2026-01-04T00:00,40\n")
    begin_s, day_s = manifests.utc_s("2026-01-02T06:00:00Z"), 86400
    within = storage.within(log, begin_s, begin_s + day_s)
    assert within.profile == ((18, 30), (6, 40)) and (within.begin_s, within.end_s) == (begin_s, begin_s + day_s)
    assert storage.within(log, 0, 4e9) == log and storage.within(None, 0, 1) is None
    hours = storage.constant(30, 5)
    assert storage.within(hours, begin_s, begin_s + 1) == hours
    with pytest.raises(UsageError, match="from 2027-01-01 00:00:00.00:00 to"):
        storage.within(log, manifests.utc_s("2027-01-01T00:00:00Z"), 4e9)


def test_a_log_of_two_halves_costs_as_much_as_35_degrees():
    log = storage.parse("time,C\n2026-01-01T00:00:00,20\n2026-01-01T12:00:00,40\n2026-01-02T00:00,33\n")
    effect = storage.effect(log, 48.0)
    assert effect["effective_C"] == pytest.approx(35.2, abs=0.1) and effect["hours"] == 24
    assert effect["equivalent_h"]["40"]["1.1"] == pytest.approx(12 + 12 * 0.0620, rel=0.001)
    assert set(effect["equivalent_h"]) == {"30", "40"} and set(effect["equivalent_h"]["30"]) == {"0.6", "0.8", "1.1"}
    text = " ".join(effect["words"])
    assert "covers 50 %" in text and "0.6 eV" in text and "equal" not in text
    assert storage.parse("0,20\n12,40\n24,0\n").profile == log.profile == ((12.0, 20.0), (12.0, 40.0))
    assert storage.parse(storage.to_csv(log)).profile == log.profile
    assert storage.effect(None)["effective_C"] is None and "--storage" in storage.effect(None)["why"]


@pytest.mark.parametrize(
    "text", ["", "0,20", "0,20\n12,30\n24,4", "5,20\n4,21\n", "0,20\n1,hot\n", "0,20\n1,900\n", "0\n1\n"]
)
def test_a_log_that_says_nothing_is_refused(text):
    with pytest.raises(UsageError):
        storage.parse(text)


def test_bounds_are_those_of_the_standard():
    assert passes.poisson_most(0, 0.6) == pytest.approx(0.9163, abs=1e-4)
    assert passes.poisson_most(3, 0.95) == pytest.approx(7.7537, abs=1e-3)
    assert passes.uber(0, 8 * 256 * 10**9)["most"] == pytest.approx(4.5e-13, rel=0.01)
    assert passes.bytes_for(1e-15) == pytest.approx(115e12, rel=0.01) and passes.drives_for(0.03) == 31
    text = " ".join(passes.cannot(8 * 256 * 10**9))
    assert "115 TB" in text and "4.5e-13" in text and "31 drives" in text
    assert passes.share_most(0, 299) == pytest.approx(0.00997, abs=1e-4) and passes.share_most(0, 0) is None
    assert passes.share_most(201, 10**6) == pytest.approx(passes.share_most(200, 10**6), rel=0.01)


def test_a_pass_lists_slow_pieces_and_bad_blocks():
    def read(piece, us, bad=()):
        rows = np.array([(piece * 512 + at, -6) for at in bad], np.int64).reshape(-1, 2)
        return Read(piece, np.full(16, us * 1000), 16 << 17, 512, rows)

    reads = [read(0, 250), read(1, 751, bad=(3, 4, 9)), read(2, 250)]
    bad = np.concatenate([piece.bad for piece in reads])
    baseline = passes.middle([passes.piece(read(7, 250))])
    judged = passes.judge(LAYOUT, [passes.piece(piece) for piece in reads], passes.runs(bad), baseline)
    assert judged["slow"] == [1] and judged["bad"] == 3 and judged["classes"] == {"CORRUPT": 3}
    assert judged["bad_runs"] == [[515, 2, "CORRUPT"], [521, 1, "CORRUPT"]]
    assert judged["slowdown"] == pytest.approx((250 + 751 + 250) / 750, rel=0.001)
