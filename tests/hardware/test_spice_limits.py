"""Limits (hardware/limits.csv): every pin of every part, the drive, the host, contacts and wires have some, and each
study keeps all of them at every corner of the tolerances. Single faults: none destroys a drive unseen."""

import csv
import math
import re
import shutil
import sys

import pytest
from board_files import circuit
from conftest import ROOT

from ssdrig.rig import bring_up

sys.path.insert(0, str(ROOT / "hardware/spice"))
import faults
import limits
import shared
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
PROTECTION = (ROOT / "hardware/spice/protection.lib").read_text()


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


def test_at_rest_everything_is_within(monkeypatch):
    """Each range has its cause in AT_REST, or is of a pin on the 3.3 V."""
    assert [(one.limit.part, one.limit.what) for one in limits.at_rest()] == [("contact J1", limits.SHORTED)]
    assert all(limits.explained(one) for one in limits.at_rest())
    rows = {(row.part, row.what): row for row in ROWS if row.at_rest}
    assert set(limits.AT_REST) <= set(rows)
    of_3v3 = [row for key, row in rows.items() if key not in limits.AT_REST]
    assert {(row.unit, row.at_rest) for row in of_3v3} == {("V", (0.0, 3.6))}
    monkeypatch.setattr(limits, "limits", lambda: [of_3v3[0]._replace(at_rest=(0.0, 3.3))])
    assert len(limits.at_rest()) == 1 and not limits.explained(limits.at_rest()[0])


@ngspice
def test_the_shared_supplies_keep_every_limit(monkeypatch):
    """Sound and with R13 open, with USB and without, at the ends of the 5 V rail and of the reference."""
    assert [str(one) for one in limits.shared_beyond()] == []
    seen = [row for row in ROWS if row.seen.startswith("shared:")]
    assert len(seen) >= 15
    rows = [row._replace(high=27.0) for row in seen if row.what == "SW"]
    monkeypatch.setattr(limits, "limits", lambda: rows)
    assert {(one.rail, one.limit.part) for one in limits.shared_beyond()} == {("R13 open", "TPS61040 U5")}


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
@pytest.mark.parametrize("build", limits.BREAKOUTS)
@pytest.mark.parametrize(("final", "rise"), [(7, 5e-3), (12, 1e-5), (24, 1e-6)])
def test_the_breakouts_board_keeps_a_wrong_supply_from_the_drive(build, final, rise):
    """At the ends of the tolerances, with one of the two pull-ups open, too; all: `./ssdrig selfcheck supplies`."""
    rail, own = limits.own(build)
    values = simulate.values(rail) | own
    changes = own | limits.corner_changes("overvoltage", "high", values)
    changes |= {"c_load": simulate.LITTLE_F, "source_inductance": simulate.SHORT_LEADS_H}
    for pull_up_ohm in (values["ovp_pull_up"], 2 * values["ovp_pull_up"]):
        m = simulate.wrong_supply(rail, final, rise, **changes | {"ovp_pull_up": pull_up_ohm})
        assert m["drive_peak"] <= 1.15 * simulate.values(rail)["voltage"] and m["drive_end"] < 0.1


@ngspice
@pytest.mark.parametrize("build", limits.BREAKOUTS)
@pytest.mark.parametrize(("later_s", "aged"), [(4e-3, 1.0), (0.3, 1.0), (0.8, 1.0), (0.2, 0.6), (0.5, 0.6)])
def test_the_breakouts_lock_out_outlives_its_12_V(build, later_s, aged):
    """A supply that becomes too high when the gates still hold; without D3 and C11 it would reach the drive."""
    rail, own = limits.own(build)
    most_V = 1.15 * simulate.values(rail)["voltage"]
    changes = own | limits.corner_changes("overvoltage", "high", simulate.values(rail) | own)
    m = simulate.gone_12v(rail, 12, aged=aged, later=later_s, **changes)
    assert m["before"] > 0.98 * simulate.values(rail)["voltage"] and m["drive_peak"] <= most_V and m["drive_end"] < 0.1
    if later_s < 0.01:
        assert simulate.gone_12v(rail, 12, held=False, later=1e-3, **own)["drive_peak"] > 1.9 * most_V


@ngspice
@pytest.mark.parametrize(("later_s", "aged"), [(0.8, 1.0), (0.5, 0.6)])
def test_without_r31_the_breakouts_lock_out_sleeps_before_its_gates_are_empty(later_s, aged):
    build = next(name for name in limits.BREAKOUTS if limits.own(name)[0] == "m2_3v3")
    rail, own = limits.own(build)
    changes = own | limits.corner_changes("overvoltage", "high", simulate.values(rail) | own)
    changes |= {"aged": aged, "later": later_s}
    without = shared.faulty("breakout", "R31", "open").replace("RR26 vgate ovref 2.2k", "RR26 l5 ovref 1k")
    assert simulate.gone_12v(rail, 24, library=without, **changes)["drive_peak"] > 4.5
    of = simulate.gone_12v(rail, 24, **changes)
    assert of["drive_peak"] < 1.06 * simulate.values(rail)["voltage"] and of["drive_end"] < 0.1


@ngspice
@pytest.mark.parametrize("build", limits.BREAKOUTS)
@pytest.mark.parametrize("way", [{"rise": 2e-6, "aged": 1.2}, {"leak": simulate.LEAK_A, "aged": 0.6}])
def test_a_fast_wrong_supply_and_a_hot_d3_stay_off_the_drive_without_its_12_V(build, way):
    """Also where VGATE is so low that the lock-out would sleep without R31."""
    rail, own = limits.own(build)
    changes = own | limits.corner_changes("overvoltage", "high", simulate.values(rail) | own)
    seen_V = []
    for later_s in (0.9, 1.2) if way["aged"] > 1 else (0.15, 0.25):
        m = simulate.gone_12v(rail, 24, later=later_s, **changes, **way)
        assert m["drive_peak"] <= 1.15 * simulate.values(rail)["voltage"] and m["drive_end"] < 0.6
        seen_V.append(m["vgate"])
    assert 2.2 < min(seen_V) < 4.5


@ngspice
def test_what_a_live_12_V_plug_gives_the_breakout_is_within_its_limits(monkeypatch):
    assert [str(one) for one in limits.plug_in_beyond()] == []
    m, v = simulate.plugged_in(), simulate.values("sata_5v")
    path_ohm = 0.41 + v["source_resistance"] + 0.15 + v["input_bulk_esr"]  # F1 at its least, D3
    assert m["surge"] == pytest.approx((12.6 - 0.42) / path_ohm, rel=0.05) and m["c11"] < 12.6
    rows = [row._replace(high=16.0) for row in ROWS if row.seen == "plug_in:i(Vsense)"]
    monkeypatch.setattr(limits, "limits", lambda: rows)
    assert [one.limit.part for one in limits.plug_in_beyond()] == ["Diode D3"]


@ngspice
def test_the_breakouts_board_switches_on_in_2_to_5_ms():
    m = simulate.measured("softstart", "sata_5v", **simulate.breakout())
    assert 2e-3 <= m["rise"] <= 5e-3 and m["inrush"] <= simulate.values("sata_5v")["connector_limit"]


@ngspice
def test_what_is_explained_happens():
    (one,) = [of for of in limits.beyond("overvoltage", "m2_3v3", final=24, rise=5e-3) if of.limit.unit == "W"]
    assert one.value > 100 and limits.explained(one)
    assert not limits.explained(one._replace(final_V=18)) and not limits.explained(one._replace(value=500))
    assert any(limits.explained(one) for one in limits.beyond("hotplug", "sata_12v", live=1))
    assert any(limits.explained(one) for one in limits.beyond("short", "sata_12v"))


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_5v", "sata_12v"])
def test_a_drive_that_is_plugged_while_its_rail_is_off_keeps_every_limit(rail):
    """What is explained of a live rail is not of this one."""
    assert [str(one) for one in limits.beyond("hotplug", rail, "high", live=0)] == []


@ngspice
@pytest.mark.parametrize("logic_V", [3.8, limits.LOCK_MOST_V])
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_5v", "sata_12v", "breakout"])
def test_a_drive_that_is_plugged_live_passes_no_limit_of_the_rig(rail, logic_V):
    """The lock-out trips at the peak of that current at the rail's upper end, and SW rings: Q04, D02 and SCOPE bear it,
    with the least and the most of LOGIC_5V and a comparator that needs no overdrive. What the drive gets is
    explained."""
    changes = {"ovp_overdrive": 2e-3} | ({} if rail == "breakout" else {"lockout_supply": logic_V})
    excesses = limits.beyond("hotplug", rail, "high", live=1, **changes)
    # Q04 of 12 V with the fastest Q5: up to its avalanche
    assert {one.limit.what for one in excesses} <= {"supply over nominal", *(["VDS"] if rail == "sata_12v" else [])}
    assert [str(one) for one in excesses if not limits.explained(one)] == []


@ngspice
@pytest.mark.parametrize(
    ("rail", "off_Ohm", "what"),
    [("sata_12v", 22, {"VDS", "reverse voltage"}), ("sata_12v", 150, {"VDS"}), ("sata_5v", 22, {"VDS", "SCOPE"})],
)
def test_a_faster_lock_out_would_ring_beyond_them(rail, off_Ohm, what):
    changes = {"live": 1, "lockout_off_resistor": off_Ohm, "lockout_supply": limits.LOCK_MOST_V, "ovp_overdrive": 2e-3}
    assert what <= {one.limit.what for one in limits.beyond("hotplug", rail, "high", **changes)}


@ngspice
@pytest.mark.parametrize("rail1_V", [4.75, 5.25])
def test_560_ohm_at_the_reference_take_every_rail_off(rail1_V):
    """What step 5 of the first power-up does; with the reference's resistor shorted it does not."""
    text = (limits.HERE / "shared_board.lib").read_text() + "Rtest ovref 0 588\n"  # 5 % above
    reference_V = simulate.measured("shared", "sata_5v", more=text, usb=0, rail1=rail1_V)["reference"]
    for rail in ("m2_3v3", "sata_5v", "sata_12v"):
        v = simulate.values(rail)
        # both resistors of the divider 1 % to the bad side
        share_V = 0.95 * v["voltage"] * 0.99 * v["ovp_lower"] / (0.99 * v["ovp_lower"] + 1.01 * v["ovp_upper"])
        assert reference_V + 0.009 < share_V
        off = simulate.measured(
            "failsafe", rail, more=PROTECTION, ovp_reference=reference_V, voltage=0.95 * v["voltage"]
        )
        assert off["rail"] < 0.1
    short = text.replace("RR26 l5 ovref 1k", "RR26 l5 ovref 1m")
    assert simulate.measured("shared", "sata_5v", more=short, usb=0, rail1=rail1_V)["reference"] > 2.4


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


@ngspice
@pytest.mark.parametrize("rail", ["m2_3v3", "sata_5v", "sata_12v"])
def test_usb_that_goes_away_in_a_cut_leaves_the_rail_on_and_the_crowbar_whole(rail):
    """Q3 of the highest threshold, Q4 of the lowest, +3V3 falling ten times slower than a Pico takes it down."""
    v = simulate.values(rail)
    high = v["small_fet_vth_max"]
    m = simulate.measured("usb_gone", rail, small_fet_vth=high)
    assert m["cut"] < 0.1 and m["rail"] > 0.95 * v["voltage"] and m["most"] < 1.01 * v["voltage"]
    assert m["bar_j"] < v["voltage"] ** 2 / v["crowbar"] * 50e-3 * (high - v["small_fet_vth_min"]) / v["logic"]
    assert m["bar_j"] < 0.5 / 4 and m["q4_j"] < 0.02 and m["tj"] < 100
    assert m["fuse_i2t"] <= 0.5 * v["crowbar_fuse_i2t"]
    slow = simulate.measured("usb_gone", rail, small_fet_vth=high, decay=0.4)
    assert slow["fuse_i2t"] > v["crowbar_fuse_i2t"]


@ngspice
def test_what_step_3_accepts_leaves_the_lock_outs_their_supply():
    """With the stated drop, and with any that step 3 accepts at the highest supply."""
    v, text = simulate.values("sata_5v"), (limits.HERE / "shared_board.lib").read_text()
    l5_V = lambda ohm, rail1_V: simulate.measured(
        "shared", "sata_5v", more=text, usb=0, rail1=rail1_V, regulator_ohm=ohm
    )["l5"]
    drop_V = lambda ohm, rail1_V: min(5.0, rail1_V) - l5_V(ohm, rail1_V)
    # a sound one is accepted at any supply, with what a meter of 0.3 % may add twice
    assert max(drop_V(v["regulator_ohm"], rail1_V) for rail1_V in (4.75, 4.9, 5.25)) < bring_up.LOGIC_DROP_V - 0.03
    assert l5_V(v["regulator_ohm"], 4.75) > bring_up.BOARD_LOGIC_V[0] + 0.03
    least_ohm = next(ohm / 10 for ohm in range(10, 200, 2) if drop_V(ohm / 10, 5.25) > bring_up.LOGIC_DROP_V)
    assert least_ohm > 3 * v["regulator_ohm"] and l5_V(least_ohm, 4.75) > v["lockout_supply"]


@ngspice
@pytest.mark.parametrize("part", ["none", "U6", "U9"])
def test_24_V_on_the_5_V_rail_burn_no_regulator(part):
    """For ever, and with one of them short; what is short after them is held by their own limits."""
    text = shared.faulty("board", part, "none" if part == "none" else "input to output")
    more = text + "".join(f".meas tran hot{k} avg v(tj{k}) from=55m to=60m\n" for k in (6, 9))
    m = simulate.measured("shared", "sata_5v", more=more, usb=0, rail1=24)
    assert max(m["hot6"], m["hot9"]) < 125 and m["l5"] < shared.VSYS_V
    assert shared.LOGIC_V[0] < m["l5"] and m["vgate"] == pytest.approx(24, rel=0.01)
    short = simulate.measured("shared", "sata_5v", more=more + "Rshort l5 0 1m\n", usb=0, rail1=24)
    assert 170 < max(short["hot6"], short["hot9"]) < 185 and short["supply"] < shared.FUSE_A / 2


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
    assert {key for key, seen_by in burns.items() if seen_by == "none"} == set()
    assert faults.gaps(list(rows.values())) == []
    assert {rows[rail, "none", "none"]["does"] for rail in faults.RAILS} == {"nothing"}


@pytest.mark.parametrize("harm", ["over", "burns", "feeds", "unprotected", "late", "pin"])
def test_a_harm_that_nobody_sees_is_a_gap(harm):
    row = {"rail": "sata_5v", "part": "R", "fault": "open", "does": f"{harm} on", "seen_by": "none"}
    assert faults.gaps([row, row | {"seen_by": "cut"}, row | {"does": "off"}]) == [row]


@pytest.mark.parametrize("harm", ["over", "burns", "host", "unprotected", "late", "pin"])
def test_a_shared_harm_that_nobody_sees_is_a_gap(harm):
    row = {"build": "board", "part": "R", "fault": "open", "does": harm, "seen_by": "none"}
    assert shared.gaps([row, row | {"seen_by": "rail"}, row | {"does": "lost"}]) == [row]


def test_what_is_short_at_the_input_opens_the_fuse_where_there_is_one():
    rows = committed()
    for rail in faults.RAILS:
        fused = faults.values(rail)["fuse"] > 0
        for part in ("Dtvs", "Cbulk", "Dfree"):
            row = rows[rail, part, "short"]
            assert row["fuse"] == ("opens" if fused else "holds") and "off" in row["does"].split()
            assert "rail" in row["seen_by"].split()
            assert fused or float(row["supply_A"]) <= faults.FUSE_A[rail] * 1.1  # the converter's own limit


@ngspice
@pytest.mark.parametrize("rail", ["sata_5v", "sata_12v"])
def test_a_short_behind_the_fuse_opens_it_before_tracks_and_contacts_suffer(rail):
    """TVS short at 60 A: its I2t and half of it again for the arc, against copper of 5 A, wire and contacts. What the
    three contacts of J1 take at 5 V is in hardware/spice/README.md."""
    more = faults.faulty(faults.Fault("Dtvs", "short", "protection.lib"), PROTECTION)
    more += "Bi2t 0 i2t i=i(v.xq.vfuse)^2\nCi2t i2t 0 1\nRi2t i2t 0 1g\n.meas tran i2t max v(i2t)\n"
    i2t = simulate.measured("failsafe", rail, more=more)["i2t"]
    assert i2t == pytest.approx(simulate.values(rail)["fuse_i2t"], rel=0.02)
    circular_mils = 2.77 * 0.035 / (math.pi / 4 * 0.0254**2)  # of the copper that test_pcb_copper.py measures
    copper = circular_mils**2 * math.log10(1 + 150 / (234 + 50)) / 33  # Onderdonk: 150 K above 50 C
    wire = next(row.high for row in ROWS if row.part == "wire supply" and row.what == "I2t")
    contact = next(row.high for row in ROWS if row.part.startswith("contact J1") and row.what == "I2t of a contact")
    assert 1.5 * i2t < copper < wire
    assert 1.5 * i2t < 11**2 * 5  # J9: 11 A a contact, as long as those of 1.5 A
    assert i2t / 9 == pytest.approx({"sata_5v": 12.8, "sata_12v": 6.7}[rail], abs=0.1)  # J1
    assert (i2t / 9 > contact) == (rail == "sata_5v")


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


# ---- what the rails share


def parts_of(build: str) -> dict[str, str]:
    """{reference: symbol} of a board's netlist, a rail's as in RAIL_PARTS, without what EXCLUDED names."""
    folder = ROOT / ("hardware/board" if build == "board" else "hardware/breakout/board")
    text = next(folder.glob("*.net")).read_text()
    components = re.findall(r'\(comp \(ref "([^"]+)"\).*?\(part "([^"]+)"\)', text, re.S)
    own = lambda ref: re.sub(r"^([A-Z]+)\d(\d\d)$", r"\1n\2", ref)
    return {own(ref): symbol for ref, symbol in components if symbol not in shared.EXCLUDED}


@pytest.mark.parametrize("build", shared.RAILS)
def test_every_part_of_the_netlist_has_its_faults(build):
    """Open and short; an IC its supply open, its output stuck either way, its input on its output."""
    rows = {(row["part"], row["fault"]) for row in shared.committed() if row["build"] == build}
    rails = [rail for rail in faults.RAILS if rail.startswith("breakout") == (build == "breakout")]
    of_rails = {(part, kind) for rail, part, kind in committed() if rail in rails}
    without = []
    for part in parts_of(build):
        named = shared.RAIL_PARTS.get(part)
        there = {kind for name, kind in of_rails if name == named} | {kind for name, kind in rows if name == part}
        wanted = {"open", "short"} if part in ("U7", "U8") or part[0] != "U" else {*shared.OF_AN_IC}
        if part == "Un02":  # its output is Sovp
            wanted |= {"open", "short"}
        without += [f"{part} {kind}" for kind in sorted(wanted - there)]
    assert without == []
    assert {part for part, _ in rows} <= {"none", *parts_of(build)}


def test_no_shared_fault_destroys_or_disarms_unseen():
    rows = shared.committed()
    assert shared.gaps(rows) == []
    assert [row for row in rows if "over" in row["does"].split()] == []  # none gives a drive too much
    sound = {row["build"]: row for row in rows if row["part"] == "none"}
    assert {build: row["does"] for build, row in sound.items()} == {"board": "nothing", "breakout": "nothing"}
    assert all(row["study"] == "shared" or row["why"] for row in rows)
    assert all(
        float(row["supply_A"]) <= shared.FUSE_A or row["fuse"] == "opens" or row["seen_by"] == "rig" for row in rows
    )


@ngspice
@pytest.mark.parametrize("rail, gate_V", [("m2_3v3", 5.5), ("sata_5v", 6.5), ("sata_5v", 7), ("sata_12v", 13.5)])
def test_a_gate_supply_that_heats_a_transistor_shows_on_the_rail(rail, gate_V):
    """The FETs are in their linear range there; the rail's own check of 5 % sees it, so VGATE needs none of its own."""
    v = simulate.values(rail)
    m = faults.measured(None, "failsafe", rail, p_load=3 * v["voltage"], gate_supply=gate_V)
    assert max(m["heat"]["MQ1"], m["heat"]["MQ2"]) > 1.0
    assert m["f_end"] < 0.93 * v["voltage"]


def test_a_reference_that_is_open_leaves_every_lock_out():
    rows = {(row["build"], row["part"], row["fault"]): row for row in shared.committed()}
    for build in shared.RAILS:
        for part in ("U7", "U8"):
            assert float(rows[build, part, "open"]["wrong_part"]) <= faults.MOST_PART
    # VGATE feeds all of the breakout's lock-out
    of = rows["breakout", "U6", "supply open"]
    assert of["does"] == "nothing" and float(of["wrong_part"]) <= faults.MOST_PART
    assert float(rows["board", "R13", "open"]["vgate_V"]) < 30 and rows["board", "R13", "open"]["does"] == "nothing"


def test_a_lock_out_that_a_fault_takes_away_is_seen_at_the_first_power_up():
    """Each kind of part of its chain, on each rail; and again by `rig doctor`, which trips each lock-out."""
    of = {key: row for key, row in committed().items() if "unprotected" in row["does"].split()}
    chain = {("Rovlow", "short"), ("Rovup", "open"), ("Sovp", "short"), ("MQ5", "open"), ("Roff5", "open")}
    for rail in faults.RAILS:
        assert chain <= {key[1:] for key in of if key[0] == rail}, rail
        for part, kind in (("Rovpull", "open"), ("Rovpull2", "open"), ("Riso", "short"), ("Riso2", "short")):
            assert committed()[rail, part, kind]["does"] == "nothing"  # the other one is left
    assert all({"step 5", "doctor"} <= {*re.findall(r"step \d|\w+", row["seen_by"])} for row in of.values())
    assert [key for key, row in committed().items() if "late" in row["does"].split()] == []


@ngspice
@pytest.mark.parametrize("rail", ["sata_5v", "sata_12v", "breakout_m2"])
def test_the_doctors_test_of_a_lock_out_leaves_nothing_of_a_sound_rail_and_all_of_one_without(rail):
    assert faults.in_test_V(None, rail) < faults.ON_IN_TEST_V / 2
    for part, kind in (("Rovup", "open"), ("Sovp", "short"), ("Roff5", "open")):
        fault = faults.Fault(part, kind, "protection.lib")
        assert faults.in_test_V(fault, rail) > 0.99 * faults.values(rail)["voltage"]


@ngspice
@pytest.mark.parametrize("l5_V", [3.8, 5.2])
def test_the_doctors_test_pulls_the_reference_below_every_share(l5_V):
    """R27 after R26, with the lower reference out of regulation."""
    v = simulate.values("sata_5v")
    (test,) = [part for part in circuit.PARTS if part.ref == "R27"]
    pulled_V = l5_V * float(test.value.removesuffix("R")) / (float(test.value.removesuffix("R")) + 1000)
    assert pulled_V <= faults.TEST_REFERENCE_V < 0.8 * 0.95 * 5 * v["ovp_lower"] / (v["ovp_upper"] + v["ovp_lower"])


@ngspice
@pytest.mark.parametrize(
    "build, part, kind",
    [
        ("board", "none", "none"),
        ("board", "R13", "open"),
        ("board", "D1", "short"),
        ("board", "U7", "open"),
        ("board", "R26", "short"),
        ("board", "U6", "input to output"),
        ("breakout", "U6", "supply open"),
        ("breakout", "F1", "open"),
    ],
)
def test_the_committed_shared_rows_are_what_the_study_gives(build, part, kind):
    (row,) = [r for r in shared.committed() if (r["build"], r["part"], r["fault"]) == (build, part, kind)]
    made = shared.row(build, part, kind)
    assert {name: made[name] for name in ("does", "seen_by", "fuse")} == {
        name: row[name] for name in ("does", "seen_by", "fuse")
    }
    for name in ("vgate_V", "reference_V", "supply_A", "wrong_part"):
        assert float(made[name]) == pytest.approx(float(row[name]), rel=0.03, abs=0.02), name


@ngspice
def test_a_clamp_to_ground_would_take_the_regulators_to_their_limit_with_its_divider_open():
    """What R13 open does where D2 goes to ground: all that the TPS61040 makes goes into it: they give their most."""
    text = shared.faulty("board", "R13", "open")
    sound, grounded = (
        simulate.measured("shared", "sata_5v", usb=0, more=of)
        for of in (text, text.replace("DD2 fb d2 clamp27", "DD2 0 d2 clamp27"))
    )
    assert sound["supply"] < 0.1 and sound["l5"] > shared.LOGIC_V[0]
    assert grounded["supply"] > 0.9 * simulate.values("sata_5v")["regulator_limit"] and grounded["l5"] < 2
