"""Limits (hardware/limits.csv): every pin of every part, the drive, the host, contacts and wires have some, and each
study keeps all of them at every corner of the tolerances. Single faults: none destroys a drive unseen."""

import csv
import re
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
}  # what is joined to them has limits, contacts and wires have rows of their own
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


def test_drive_host_contacts_and_wires_have_limits():
    kinds = {row.part.split()[0] for row in ROWS}
    assert {"drive", "host", "contact", "wire"} <= kinds
    units = {kind: {row.unit for row in ROWS if row.part.split()[0] == kind} for kind in ("drive", "contact", "wire")}
    assert units == {"drive": {"V/V", "V", "A"}, "contact": {"A", "A^2 s"}, "wire": {"A", "A^2 s"}}


def test_every_resistor_and_transistor_of_a_rail_has_a_power():
    powered = {name for row in ROWS if "power" in row.what for name in row.part.split()[1:]}
    parts = {part.ref[0] + part.ref[2:]: part for part in circuit.rail_parts(0, 0, 0)[0]}
    without = {ref for ref, part in parts.items() if part.symbol in ("R", "NFET_DPAK", "NFET_SOT23")} - powered
    assert without == {"R08"}  # has its energy, by which the firmware opens it


def test_every_limit_has_a_source_and_is_seen_or_at_rest():
    for row in ROWS:
        assert row.source and row.low < row.high and row.pins, row
        assert bool(row.seen) != bool(row.at_rest), row


def test_at_rest_everything_is_within():
    assert limits.at_rest() == []


@pytest.mark.parametrize("rail", limits.RAILS)
def test_no_study_takes_more_from_a_rail_than_its_peak(rail):
    v = simulate.values(rail)
    for study, runs in limits.STUDIES.items():
        (power,) = re.findall(r"p_load=(\S+)", (limits.HERE / f"{study}.cir").read_text())
        # an expression of ngspice, in braces, or a number
        power_W = eval(power.strip("{}"), {"min": min}, v)
        for changes in runs:
            drawn_W = limits.changed(changes, v).get("p_load", power_W)
            assert drawn_W <= v["peak_current"] * v["voltage"] * 1.001, (study, changes)


@pytest.mark.parametrize("rail", limits.RAILS)
def test_a_rails_contacts_carry_its_connector_limit(rail):
    v = simulate.values(rail)
    assert v["connector_limit"] == 1.5 * v["contact_pins"]


@ngspice
@pytest.mark.parametrize("study", ["drop", "dip"])
def test_the_auxiliary_rail_keeps_every_limit(study):
    """3.3Vaux has one contact and carries 0.375 A, not the 5 A of the other rails."""
    excesses = [limits.beyond(study, "u2_3v3aux", "high", **changes) for changes in limits.STUDIES[study]]
    assert [str(one) for excess_list in excesses for one in excess_list] == []


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize("study", sorted(set(limits.STUDIES) - {"ramp"}))
def test_every_study_keeps_every_limit(study):
    """Each corner on one rail; all three on all five: `./ssdrig selfcheck limits`."""
    excesses = [
        one
        for rail, corner in zip(("m2_3v3", "sata_5v", "sata_12v"), ("low", "middle", "high"), strict=True)
        for changes in limits.STUDIES[study]
        for one in limits.beyond(study, rail, corner, **changes)
    ]
    assert [str(one) for one in excesses if not limits.explained(one)] == []


@pytest.mark.slow
@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_12v"])
def test_a_ramp_keeps_every_limit(rail):
    assert [str(one) for one in limits.beyond("ramp", rail)] == []


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize("study", ["softstart", "drop", "failsafe", "fall", "short"])
def test_the_breakouts_board_keeps_every_limit(study):
    """Leaded parts, gates from 12 V; all studies and corners: `./ssdrig selfcheck limits`."""
    excesses = [
        one
        for build, corner in zip(limits.BREAKOUTS, ("low", "high"), strict=True)
        for changes in limits.STUDIES[study][:1]
        for one in limits.beyond(study, build, corner, **changes)
    ]
    assert [str(one) for one in excesses if not limits.explained(one)] == []


@ngspice
@pytest.mark.parametrize(("final", "rise"), [(7, 5e-3), (12, 1e-5), (24, 1e-5)])
def test_the_breakouts_board_keeps_a_wrong_supply_from_the_drive(final, rise):
    m = simulate.wrong_supply("sata_5v", final, rise, c_load=simulate.LITTLE_F, **simulate.breakout())
    assert m["drive_peak"] <= 5.75 and m["drive_end"] < 0.1


@ngspice
def test_the_breakouts_board_switches_on_in_2_to_5_ms():
    m = simulate.measured("softstart", "sata_5v", **simulate.breakout())
    assert 2e-3 <= m["rise"] <= 5e-3 and m["inrush"] <= simulate.values("sata_5v")["connector_limit"]


@ngspice
def test_what_is_explained_happens():
    assert any(limits.explained(one) for one in limits.beyond("hotplug", "sata_12v", live=1))
    assert any(limits.explained(one) for one in limits.beyond("short", "sata_12v"))


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_5v", "sata_12v"])
def test_a_drive_that_is_plugged_while_its_rail_is_off_keeps_every_limit(rail):
    """What is explained of a live rail is not of this one."""
    assert [str(one) for one in limits.beyond("hotplug", rail, "high", live=0)] == []


@ngspice
def test_a_limit_that_is_passed_is_found(monkeypatch):
    rows = [row._replace(high=2.0) if "C01" in row.part else row for row in ROWS]
    monkeypatch.setattr(limits, "limits", lambda: rows)
    excesses = limits.beyond("hotplug", "sata_5v", live=0)
    assert {(one.study, one.rail, one.limit.part) for one in excesses} == {("hotplug", "sata_5v", "C C01")}


@ngspice
@pytest.mark.parametrize(
    "study, rail, changes, what",
    [
        ("drop", "sata_12v", {"led_resistor": 10}, "mean power"),
        ("perst", "m2_3v3", {"held": 0, "perst_series": 1}, "current into a pad of a drive without supply"),
        ("overvoltage", "m2_3v3", {"final": 5, "ovp_reference": 5}, "supply over nominal, wrong supply"),
        ("drop", "sata_5v", {"contact_pins": 1}, "mean current of a contact"),
        ("drop", "sata_12v", {"shunt": 0.1, "p_load": 50}, "mean power"),
    ],
)
def test_each_kind_of_limit_can_be_passed(study, rail, changes, what):
    assert what in {one.limit.what for one in limits.beyond(study, rail, **changes)}


@ngspice
def test_rails_come_on_without_logic():
    m = simulate.measured("no3v3", "sata_5v", more=limits.observed("no3v3", "sata_5v")[0])
    assert m["rail"] > 4.9 and m["net"] < 1.2 and m["into"] < (5 - m["net"]) / 10e3


# ---- single faults


def committed() -> dict[tuple[str, str, str], dict]:
    with open(ROOT / "hardware/spice/faults.csv", newline="") as file:
        return {(row["rail"], row["part"], row["fault"]): row for row in csv.DictReader(file)}


def test_the_table_has_every_part_of_every_rail_and_no_gap():
    rows = committed()
    single = {rail: [(fault.part, fault.kind) for fault in faults.faults(rail)] for rail in faults.RAILS}
    assert {(rail, *one) for rail in faults.RAILS for one in [("none", "none"), *single[rail]]} == set(rows)
    assert [key for key, row in rows.items() if "over" in row["does"].split()] == []  # none destroys a drive
    assert [row for row in rows.values() if "nan" in " ".join(row.values())] == []  # each study was carried out
    burns = {key: row["seen_by"] for key, row in rows.items() if {"burns", "feeds"} & set(row["does"].split())}
    assert {key for key, seen_by in burns.items() if seen_by == "nobody"} == set()
    assert faults.gaps(list(rows.values())) == []
    assert {rows[rail, "none", "none"]["does"] for rail in faults.RAILS} == {"nothing"}


def test_what_is_short_at_the_input_opens_the_fuse_where_there_is_one():
    rows = committed()
    for rail in faults.RAILS:
        fused = faults.values(rail)["fuse"] > 0
        for part in ("Dtvs", "Cbulk", "Dfree"):
            row = rows[rail, part, "short"]
            assert row["fuse"] == ("opens" if fused else "holds") and "off" in row["does"].split()
            assert "rail" in row["seen_by"].split()
            assert fused or float(row["supply_A"]) <= faults.FUSE_A[rail] * 1.1  # the converter's own limit


def test_no_fault_feeds_more_than_the_fuse_carries_and_less_than_opens_it():
    for key, row in committed().items():
        carries = faults.FUSE_A[row["rail"]] * 1.1
        assert float(row["supply_A"]) <= carries or row["fuse"] == "opens", key


def test_every_dissipation_is_in_the_table():
    for key, row in committed().items():
        rated_W = faults.rated_W(row["rail"], row["hottest"])
        assert float(row["hottest_W"]) <= 2 * rated_W or "burns" in row["does"].split(), key


def test_the_breakouts_table_has_the_parts_of_its_board():
    """A part of the netlist that the table leaves out is not on that board either, and the other way about."""
    refs = dict(
        [
            *(("Rinp", "R116"), ("Rinn", "R117"), ("Rvbus", "R118"), ("Csense", "C107"), ("MQ1", "Q101")),
            *(("MQ4", "Q104"), ("MQ5", "Q105"), ("Dtvs", "D104"), ("Dfree", "D102"), ("Rovpull", "R125")),
        ]
    )
    with open(ROOT / "hardware/breakout/board/bom.csv", newline="") as file:
        fitted = {ref for row in csv.DictReader(file) for ref in row["references"].split()}
    for build in limits.BREAKOUTS:
        in_table = {part for rail, part, _ in committed() if rail == build}
        assert {part for part, ref in refs.items() if ref in fitted} == in_table & set(refs)


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
    assert "RfaultBfuse f fused 1m" in faults.faulty(faults.Fault("Bfuse", "short", "rig.lib"), text)


@ngspice
@pytest.mark.slow
@pytest.mark.parametrize(
    "rail, part, kind",
    [
        ("sata_5v", "MQ4", "short"),
        ("m2_3v3", "MQ1", "short"),
        ("sata_12v", "Rgate", "open"),
        ("sata_5v", "Roff", "open"),
        ("sata_12v", "Dtvs", "short"),
        ("m2_3v3", "Sovp", "open"),
        ("breakout", "MQ4", "short"),
        ("breakout_m2", "Cbulk", "short"),
    ],
)
def test_the_committed_rows_are_what_the_studies_give(rail, part, kind):
    row = committed()[rail, part, kind]
    (fault,) = [fault for fault in faults.faults() if (fault.part, fault.kind) == (part, kind)]
    made = faults.row(fault, rail)
    assert [made[name] for name in ("does", "seen_by", "fuse")] == [row[name] for name in ("does", "seen_by", "fuse")]
    assert float(made["crowbar_W"]) == pytest.approx(float(row["crowbar_W"]), rel=0.03, abs=0.05)
