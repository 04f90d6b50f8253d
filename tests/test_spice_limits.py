"""Absolute maxima (hardware/limits.csv): every pin of every part has one, and each study keeps all of them in revision
B; in revision A what is beyond them is what the README says."""

import shutil
import sys

import pytest
from board_files import circuit
from conftest import ROOT

sys.path.insert(0, str(ROOT / "hardware/spice"))
import faults
import limits
import simulate

ngspice = pytest.mark.skipif(
    shutil.which("ngspice") is None, reason="ngspice is not installed (apt-get install ngspice)"
)
CONNECTORS = {
    "SATA_15",
    "Peripheral_4",
    "Terminal_4",
    "Header_8",
    "Header_4",
    "PWR_FLAG",
    "TestPoint",
    "Selector",
}  # what is joined to them has limits
KNOWN_A = {"IN+", "IN-", "VBUS", "IN+ current", "IN- current", "VBUS current"}  # of revision A, at a cut
WITHOUT_LOCK_OUT = {"SCOPE", "VDS", "VGS"}  # of revision A, at the wrong supply
ROWS = limits.limits()


def covered(part: circuit.Part, pin: str) -> bool:
    """A row names the symbol and the reference (of a rail without the rail's number), or "other", and the pin."""
    own = part.ref if len(part.ref) < 4 else part.ref[0] + part.ref[2:]
    named = [row.part.split() for row in ROWS if pin in row.pins.split()]
    return any(symbol == part.symbol and {own, "other"} & set(refs) for symbol, *refs in named)


def test_every_pin_of_every_part_has_a_limit():
    open_pins = [
        f"{part.ref} {part.symbol} pin {pin}"
        for part in circuit.PARTS
        if part.symbol not in CONNECTORS
        for pin in part.nets
        if not covered(part, pin)
    ]
    assert open_pins == []


def test_every_limit_has_a_source_and_is_seen_or_stated():
    for row in ROWS:
        assert row.source and row.low < row.high and row.pins, row
        assert bool(row.seen) != bool(row.static), row


def test_at_rest_revision_b_is_within_and_a_is_not_where_a_person_connects():
    assert limits.at_rest("b") == []
    assert [one.limit.what for one in limits.at_rest("a")] == ["TRIGGER, ACTIVITY: from outside", "VIN and EN"]


def kept(studies, rails, revision):
    return [
        one
        for study in studies
        for rail in rails
        for changes in limits.STUDIES[study]
        for one in limits.beyond(study, rail, revision, **changes)
    ]


@pytest.mark.slow
@ngspice
def test_a_cut_at_5_A_keeps_every_limit():
    assert kept(["fall"], ["m2_3v3"], "b") == []
    found = limits.beyond("fall", "m2_3v3", "a", p_load=16.5)
    assert {one.limit.what for one in found} == KNOWN_A  # a guard that sees nothing would pass the first line
    assert min(one.value for one in found if one.limit.what == "IN+") < -1


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(set(limits.STUDIES) - {"ramp"}))
def test_every_study_keeps_every_limit(study):
    """The rails of the lowest and the highest voltage; all five: `python hardware/spice/limits.py`. Of revision A the
    highest."""
    assert [str(one) for one in kept([study], ["m2_3v3", "sata_12v"], "b") if not limits.explained(one)] == []
    known = KNOWN_A | (WITHOUT_LOCK_OUT if study == "overvoltage" else set())
    assert {one.limit.what for one in kept([study], ["sata_12v"], "a")} <= known


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_12v"])
def test_a_ramp_keeps_every_limit(rail):
    assert [str(one) for one in kept(["ramp"], [rail], "b")] == []


@ngspice
def test_a_limit_that_is_passed_is_found(monkeypatch):
    rows = [row._replace(high=2.0) if "C01" in row.part else row for row in ROWS]
    monkeypatch.setattr(limits, "limits", lambda: rows)
    found = limits.beyond("hotplug", "sata_5v", "b", live=0)
    assert found and {one.limit.part for one in found} == {"C C01"}
    assert "hotplug sata_5v, revision b: C C01 voltage " in str(found[0])


@pytest.mark.slow
@ngspice
@pytest.mark.parametrize(("rail", "most"), [("m2_3v3", 4.3), ("sata_5v", 5.8), ("sata_12v", 15)])
def test_the_lock_out_keeps_12_V_from_the_drive(rail, most):
    with_it, without = (
        simulate.measured("overvoltage", rail, more=limits.observed(rail, revision)[0]) for revision in ("b", "a")
    )
    assert with_it["drive_peak"] < most and with_it["drive_end"] < simulate.values(rail)["voltage"]
    assert without["drive_end"] > 1.4 * simulate.values(rail)["voltage"]


@ngspice
def test_the_lock_out_does_not_trip_at_the_upper_end_of_the_rail():
    v = simulate.values("sata_5v")
    m = simulate.measured("failsafe", "sata_5v", more=limits.observed("sata_5v", "b")[0], voltage=1.1 * v["voltage"])
    assert m["rail"] > 1.05 * v["voltage"]


@ngspice
def test_rails_come_on_without_logic():
    m = simulate.measured("no3v3", "sata_5v", more=limits.observed("sata_5v", "a")[0])
    assert m["rail"] > 4.9 and m["net"] < 1.2 and m["into"] < (5 - m["net"]) / 10e3


# ---- single faults


def test_the_table_has_every_part_of_every_rail_and_no_gap():
    rows = {(row["rail"], row["part"], row["fault"], row["revision"]): row for row in faults.committed()}
    single = [(fault.part, fault.kind) for fault in faults.faults()]
    assert {(rail, *one, "B") for rail in faults.RAILS for one in single} <= set(rows) and len(single) > 70
    assert [key for key, row in rows.items() if "over" in row["does"].split()] == []  # none destroys a drive
    assert [row for row in rows.values() if "nan" in " ".join(row.values())] == []  # each study was carried out
    burns = {key: row["seen_by"] for key, row in rows.items() if "burns" in row["does"].split()}
    assert burns == {
        ("sata_5v", "MQ4", "short", "A"): "nobody",
        **{(rail, "MQ4", "short", "B"): "fuse" for rail in faults.RAILS},
        ("sata_12v", "Rcrowbar", "short", "B"): "cut",
    }
    assert [key[:3] for key in [(r["rail"], r["part"], r["fault"]) for r in faults.gaps(list(rows.values()))]] == [
        ("sata_5v", "MQ4", "short")  # of revision A
    ]
    assert {rows[rail, "none", "none", "B"]["does"] for rail in faults.RAILS} == {"nothing"}


def test_u2_12v_is_sata_12v():
    assert simulate.values("u2_12v") == simulate.values("sata_12v")


def test_a_rail_that_is_not_in_the_table_is_refused(capsys):
    assert faults.main(["sata_9v"]) == 2
    assert "seen sata_9v" in capsys.readouterr().err


def test_a_fault_is_in_the_netlist():
    text = (ROOT / "hardware/spice/rig.lib").read_text()
    assert "* Rgate vg ramp" in faults.faulty(faults.Fault("Rgate", "open", "rig.lib"), text)
    assert "RfaultRgate vg ramp 1m" in faults.faulty(faults.Fault("Rgate", "short", "rig.lib"), text)
    assert "RfaultMQ4 bar 0 1m" in faults.faulty(faults.Fault("MQ4", "short", "rig.lib"), text)
    assert "RfaultMQ4 q4gate 0 1m" in faults.faulty(faults.Fault("MQ4", "gate short", "rig.lib"), text)


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize(
    "rail, part, kind",
    [
        ("sata_5v", "MQ4", "short"),
        ("m2_3v3", "MQ1", "short"),
        ("sata_12v", "Rgate", "open"),
        ("sata_5v", "Roff", "open"),
    ],
)
def test_the_committed_rows_are_what_the_studies_give(rail, part, kind):
    wanted = (rail, part, kind, "B")
    (committed,) = [r for r in faults.committed() if (r["rail"], r["part"], r["fault"], r["revision"]) == wanted]
    made = faults.row(faults.Fault(part, kind, "rig.lib"), rail, "b")
    assert (made["does"], made["seen_by"]) == (committed["does"], committed["seen_by"])
    assert float(made["crowbar_W"]) == pytest.approx(float(committed["crowbar_W"]), rel=0.03, abs=0.05)
