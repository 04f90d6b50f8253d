"""What a verify believes of a manifest: two hundred altered ones, and what is said where nobody vouches for it."""

import copy
import json

import pytest

from ssdrig.base.errors import ManifestRefused
from ssdrig.base.overprovisioning import MIB
from ssdrig.drive.wear import retention
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, storage

SIZE = 256 * MIB
LAYOUT = layouts.make(4096, SIZE, SIZE)
UTC = manifests.utc_s("2026-11-22T12:00:00Z")
SMART = {
    **{"host_written_bytes": 9 * 10**12, "nand_written_bytes": 12 * 10**12, "media_errors": 1, "percentage_used": 7},
    **{"power_on_hours": 900, "power_cycles": 55, "unsafe_shutdowns": 4, "available_spare_percent": 99},
    **{"uncorrectable_reads": 0, "soft_ecc_errors": 12, "refreshes": 3, "xor_recoveries": 0, "pe_cycles_mean": 40.5},
    "temperature_C": 31,
}
DRIVE = {"serial": "S1", "capacity_bytes": SIZE, "logical_block_bytes": 4096}


def made() -> dict:
    pieces = [
        {"piece": n, "blocks": 1024, "MBps": 510.0 + n, "p50_us": 88.5, "p99_us": 140.0 + n, "max_us": 900.0 + n}
        for n in layouts.of_kinds(LAYOUT, (layouts.BASELINE,))
    ]
    bound = retention.bound("client", 7, retention.REQUIREMENTS["client"].off_C)
    drive = {"model": "M", "serial": "S1", "firmware": "F", "capacity_bytes": SIZE, "logical_block_bytes": 4096}
    drive |= {"wear_percent": 7, "class": "client", "bound_hours": bound["hours"], "bound_C": bound["storage_C"]}
    written = {"bytes": LAYOUT.region_bytes, "seconds": 12.5, "counted": dict.fromkeys(SMART, 1)}
    written |= {"begun_C": 30, "ended_C": 33, "ended_utc": manifests.utc_words(UTC - 60)}
    rows = [[p[key] for key in ("piece", *passes.UNITS)] for p in pieces]
    seal = {"utc": manifests.utc_words(UTC), "smart": SMART, "idle_W": 0.7, "simulated": False}
    parts = {"drive": drive, "layout": layouts.as_json(LAYOUT), "written": written, "seal": seal}
    return manifests.sealed("20261122T1200Z-run", 5, parts | {"baseline": passes.middle(pieces) | {"each": rows}})


MADE = made()


def leaves(value_, path=()):
    """The way to each value of a document."""
    for key, value in value_.items() if isinstance(value_, dict) else enumerate(value_):
        yield from leaves(value, (*path, key)) if isinstance(value, dict | list) else [(*path, key)]


def changed(value):
    """Other values in its place, each of another kind."""
    if isinstance(value, bool) or value is None:
        return [not value, "x", 7]
    if isinstance(value, int | float):
        return [value + 1, -value - 1, 10 * value + 3, None, str(value)]
    return [value[:-1], value + "x", value[::-1] + "1", 7, None]


PATHS = [path for path in leaves(MADE) if path[0] not in ("chain", "retention")]
ALTERED = [(path, n) for path in PATHS for n in range(len(changed(None)))]


def altered(path, n) -> dict:
    altered_ = copy.deepcopy(MADE)
    at = altered_
    for key in path[:-1]:
        at = at[key]
    values = changed(at[path[-1]])
    at[path[-1]] = values[n % len(values)]
    return altered_


def verified(copies, label=None, sealed=None, file=None, counted=SMART, now_s=UTC + 86400) -> manifests.Witnesses:
    """As a verify goes by it. Raises ManifestRefused."""
    agreed = manifests.agreed(copies, file)
    manifests.same_drive(agreed.manifest, DRIVE)
    whole = len(layouts.PLACES) - len(agreed.damaged)
    witnesses = manifests.witnesses(agreed.manifest, whole, label, sealed)
    manifests.not_before(agreed.manifest, counted, now_s)
    return witnesses


def test_the_manifest_as_it_was_sealed_is_believed():
    copies, line = [manifests.copy(MADE)] * 3, manifests.label(MADE)
    digest = manifests.digest(MADE)
    assert verified(copies) == (None, None) and "Nothing but the drive" in verified(copies).words
    for label in (line, f"  {line.replace(' ', '  ')} ", digest[:16], digest[:16].upper()):
        assert verified(copies, label).label and "agrees with its label" in verified(copies, label).words
    assert verified(copies, None, ["0" * 64, digest]).run_folder
    file = json.dumps(MADE).encode()
    assert verified([None] * 3, line, None, file).label and verified([None] * 3, None, [digest], file).run_folder
    with pytest.raises(ManifestRefused, match="give --label"):
        verified([None] * 3, None, None, file)


def test_two_hundred_altered_manifests_are_refused_by_the_label_the_journal_and_their_own_chain():
    line, digest, count = manifests.label(MADE), manifests.digest(MADE), 0
    for path, n in ALTERED:
        forged = altered(path, n)
        if forged == MADE:
            continue
        count += 1
        with pytest.raises(ManifestRefused):
            verified([None] * 3, line, None, json.dumps(forged).encode())
        parts = {name: forged[name] for name in manifests.PARTS}
        try:  # with a chain that fits, in all of its copies
            again = manifests.sealed(forged["run"], forged["seed"], parts)
        except (TypeError, ValueError):
            continue
        copies = [manifests.copy(again)] * 3
        for label, sealed in ((line, None), (line.split()[-1], None), (None, [digest])):
            with pytest.raises(ManifestRefused):
                verified(copies, label, sealed)
        try:
            assert "Nothing but the drive vouches" in verified(copies).words
        except ManifestRefused:
            pass
    assert count >= 200


def test_manifest_with_a_key_too_many_too_few_or_twice_is_refused():
    text = json.dumps(MADE)
    lacking = [json.dumps({key: MADE[key] for key in MADE if key != name}) for name in MADE]
    more = [json.dumps(MADE | {"note": 1}), text.replace('"seed": 5', '"seed": 6, "seed": 5', 1)]
    inner = [
        json.dumps(MADE | {name: {key: value for key, value in MADE[name].items() if key != left_out}})
        for name in manifests.PARTS
        for left_out in MADE[name]
    ]
    cut = [text[:at] for at in range(0, len(text), 97)]
    for forged in (*lacking, *more, *inner, *cut):
        with pytest.raises(ManifestRefused):
            verified([None] * 3, manifests.label(MADE), None, forged.encode())
    assert verified([None] * 3, manifests.label(MADE), None, text.encode()).label


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("drive", "wear_percent"), 55),
        (("drive", "bound_hours"), 10**6),
        (("drive", "class"), "enterprise"),
        (("seal", "utc"), "2025-11-22T12:00:00Z"),
        (("seal", "smart", "power_on_hours"), 901),
        (("seal", "smart", "host_written_bytes"), 10**13),
        (("baseline", "MBps"), 1500.0),
        (("baseline", "p99_us"), 10_000.0),
        (("baseline", "max_us"), 10_000.0),
        (("baseline", "pieces"), 99),
        (("written", "bytes"), 10**15),
    ],
)
def test_a_forged_manifest_that_contradicts_itself_or_the_drive_is_refused_without_any_witness(path, value):
    forged = copy.deepcopy(MADE)
    at = forged
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    again = manifests.sealed(forged["run"], forged["seed"], {name: forged[name] for name in manifests.PARTS})
    with pytest.raises(ManifestRefused):
        verified([manifests.copy(again)] * 3)


def test_a_drive_that_was_on_for_longer_than_since_its_seal_is_refused():
    copies = [manifests.copy(MADE)] * 3
    assert verified(copies, counted=SMART | {"power_on_hours": 903}, now_s=UTC + 2 * 3600)
    with pytest.raises(ManifestRefused, match="hours of power since then"):
        verified(copies, counted=SMART | {"power_on_hours": 960}, now_s=UTC + 2 * 3600)


def test_the_time_of_storage_is_that_of_the_log_and_said_where_the_clock_has_less():
    effect = storage.effect(storage.constant(30, 100), 2 / 60)
    assert effect["hours"] == 100 and "4.2 days by the log that was given" in effect["words"][0]
    assert any("the log does not fit that" in line for line in effect["words"])
    assert not any("does not fit" in line for line in storage.effect(storage.constant(30, 100), 100.2)["words"])
