"""What the drive gets from a wrong supply, and from a host that drives PERST# while the rail is cut. Of the sweep of
supplies a part; all of it: `./ssdrig selfcheck supplies`."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT
from picture_of_study import simulator

from selfcheck import studies

simulate = simulator()
MOST_V = {rail: most_V for rail, most_V in studies.MOST_V.items() if rail in simulate.WRONG_RAILS}  # of the board
sys.path.insert(0, str(ROOT / "hardware/spice"))
import faults
import limits
import shared

pytestmark = pytest.mark.skipif(
    shutil.which("ngspice") is None, reason="ngspice is not installed (apt-get install ngspice)"
)

PROTECTION = (ROOT / "hardware/spice/protection.lib").read_text()
supplied = simulate.wrong_supply


def least_and_most_V(rail):
    """The wrong supply next to the rail's own voltage that trips at every tolerance, and the highest."""
    return min(final for final in simulate.SUPPLIES_V if final > 1.15 * simulate.values(rail)["voltage"]), 24


def most_V(rail, rise, **changes):
    made = [supplied(rail, final, rise, **changes) for final in least_and_most_V(rail)]
    return max(max(m["drive_peak"], m["drive_end"]) for m in made)


def test_the_sweep_has_14_supplies_and_5_rise_times():
    assert (len(simulate.SUPPLIES_V), len(simulate.RISES_s)) == (14, 5) and set(MOST_V) == set(simulate.WRONG_RAILS)
    assert [len(simulate.too_much_V(rail)) for rail in MOST_V] == [14, 11, 5]


@pytest.mark.parametrize("rail", MOST_V)
def test_no_supply_gives_the_drive_too_much(rail):
    """With the usual capacitance and with little, which takes a fast edge worst."""
    table = simulate.table_of((ROOT / "hardware/spice/README.md").read_text(), "wrong").splitlines()
    for c in (simulate.LITTLE_F, simulate.values(rail)["load_typical"]):
        (row,) = [simulate.figures(line) for line in table if line.startswith(f"| {rail} | {c * 1e6:g} |")]
        stated = dict(zip(simulate.RISES_s, row[1:]))
        for rise in simulate.RISES_s[:4] if c == simulate.LITTLE_F else simulate.RISES_s[:4:3]:
            seen = most_V(rail, rise, c_load=c)
            assert seen <= MOST_V[rail] and 0.9 * stated[rise] <= seen <= 1.03 * stated[rise], (c, rise)


@pytest.mark.slow
@pytest.mark.parametrize("corner", ["low", "high"])
@pytest.mark.parametrize("rail", MOST_V)
def test_no_supply_gives_the_drive_too_much_at_the_ends_of_the_tolerances(rail, corner):
    """With little capacitance at the drive, which takes a fast edge worst."""
    changes = limits.corner_changes("overvoltage", corner, simulate.values(rail)) | {"c_load": simulate.LITTLE_F}
    assert max(most_V(rail, rise, **changes) for rise in (simulate.RISES_s[0], 5e-3)) <= MOST_V[rail]


def at_opposite_ends(rail, leads_H):
    """Q1 and Q2 close early, Q5 opens late, the rail is 5 % high; LOGIC_5V at its least."""
    changes = limits.corner_changes("overvoltage", "high", simulate.values(rail))
    assert changes["fet_vth"] == simulate.values(rail)["fet_vth_min"] and changes["lockout_fet_vth"] >= 1.485
    assert changes["voltage"] == pytest.approx(1.05 * simulate.values(rail)["voltage"])
    return changes | {"c_load": simulate.LITTLE_F, "source_inductance": leads_H}


@pytest.mark.parametrize("rise", [1e-6, 1e-5])
@pytest.mark.parametrize("rail", MOST_V)
def test_short_leads_and_fets_at_opposite_ends_give_the_drive_no_more(rail, rise):
    assert most_V(rail, rise, **at_opposite_ends(rail, simulate.SHORT_LEADS_H)) <= MOST_V[rail]


@pytest.mark.parametrize(
    "rail, more, drive_V",
    [
        ("m2_3v3", {}, "3.70"),
        ("sata_5v", {}, "5.70"),
        ("sata_12v", {}, "13.45"),
        ("m2_3v3", {"source_inductance": 1e-7}, "3.82"),
        ("sata_5v", {"source_inductance": 1e-7}, "5.90"),
        ("sata_12v", {"source_inductance": 1e-7}, "13.69"),
        ("sata_12v", {"source_inductance": 5e-7, "voltage": 11.4, "final": 19}, "13.76"),
    ],
)
def test_what_24_V_within_1_us_give_a_drive_is_stated(rail, more, drive_V):
    text = (ROOT / "hardware/spice/README.md").read_text().split("## The wrong supply")[1].split("## Limits")[0]
    changes = at_opposite_ends(rail, simulate.SHORT_LEADS_H) | {"final": 24} | more
    m = supplied(rail, rise=1e-6, **changes)
    assert m["drive_peak"] == pytest.approx(float(drive_V), abs=0.02) and drive_V in text


def test_a_weaker_fet_would_give_an_m2_drive_too_much():
    """A BSS138 by its data sheet: 0.8 to 1.5 V, 120 mS, 6 Ohm."""
    bss138 = {"lockout_fet_vth": 1.5, "lockout_fet_gfs": 0.12, "lockout_fet_rds_on": 6}
    bss138 |= {"lockout_fet_ciss": 5e-11, "lockout_fet_crss": 8e-12}
    m = supplied("m2_3v3", 24, 1e-6, **(at_opposite_ends("m2_3v3", simulate.SHORT_LEADS_H) | bss138))
    assert m["drive_peak"] > MOST_V["m2_3v3"] + 0.1


@pytest.mark.parametrize("kind", ["open", "short"])
@pytest.mark.parametrize("rail", MOST_V)
def test_a_tvs_that_24_V_have_burnt_leaves_the_drive_without_power(rail, kind):
    """It conducts above 20 V until it fails. Open: the FETs bear what is left. Short: the rail's fuse opens; without
    one (M.2) 1 V is left across the short."""
    more = faults.faulty(faults.Fault("Dtvs", kind, "protection.lib"), PROTECTION)
    more += ".meas tran fused_peak max v(xq.fused) from=0.9m\n"
    m = simulate.measured("overvoltage", rail, more=more, final=24, rise=1e-5, **at_opposite_ends(rail, 5e-7))
    left_V = 0.1 if kind == "open" or simulate.values(rail)["fuse"] else simulate.values(rail)["uvlo"] / 2
    assert m["drive_peak"] <= MOST_V[rail] and m["drive_end"] < left_V
    assert m["fused_peak"] < simulate.values(rail)["fet_vds_max"]


def test_supplies_of_3_3_and_5_V_exchanged_leave_the_drive_without_power():
    """The logic's supply then has some 3 V. A comparator that were fed by it would have both inputs above its range,
    its output low, and the rail would stay on."""
    exchanged = {"lockout_supply": 2.9, "c_load": simulate.LITTLE_F}
    m = supplied("m2_3v3", 5, 5e-3, **exchanged)
    assert m["drive_peak"] <= MOST_V["m2_3v3"] and m["drive_end"] < 0.1
    by_the_logic = PROTECTION.replace("ovsupply 0 {gate_supply}", "ovsupply 0 {lockout_supply}")
    m = simulate.measured("overvoltage", "m2_3v3", more=by_the_logic, final=5, rise=5e-3, **exchanged)
    assert by_the_logic != PROTECTION and m["drive_end"] > 4.5


@pytest.mark.parametrize("rail", MOST_V)
def test_the_lock_out_sleeps_at_no_gate_supply_that_opens_a_fet(rail):
    """A gate supply that sags: the drive gets no more than its rail bears, or nothing."""
    volts = simulate.values(rail)["voltage"]
    for gate_supply in (volts + 1.2, volts + 2.5, volts + 5):
        m = supplied(rail, 1.5 * volts, 5e-3, gate_supply=gate_supply, fet_vth=1.35, c_load=simulate.LITTLE_F)
        assert max(m["drive_peak"], m["drive_end"]) <= MOST_V[rail], gate_supply


@pytest.mark.parametrize(("rail", "final"), [("m2_3v3", 5), ("sata_5v", 7), ("sata_12v", 16)])
def test_the_wrong_supply_leaves_the_drive_without_power(rail, final):
    m = supplied(rail, final, 5e-3, c_load=2e-5)
    assert m["drive_peak"] <= MOST_V[rail] and m["drive_end"] < 0.1


@pytest.mark.parametrize("rail", MOST_V)
def test_the_lock_out_does_not_trip_at_5_percent_too_much(rail):
    volts = simulate.values(rail)["voltage"]
    names = ("ovp_reference", "ovp_upper", "ovp_lower")
    low = {name: simulate.values(rail)[name] * limits.CORNERS["low"][name] for name in names}
    m = simulate.measured("failsafe", rail, more=PROTECTION, voltage=1.05 * volts, **low)
    assert m["rail"] > 1.02 * volts


@pytest.mark.parametrize("rail", MOST_V)
def test_without_its_reference_the_lock_out_lets_it_through(rail):
    final = 1.4 * simulate.values(rail)["voltage"]
    assert supplied(rail, final, 5e-3, ovp_reference=8)["drive_end"] > 1.3 * simulate.values(rail)["voltage"]


@pytest.mark.parametrize("rail", MOST_V)
def test_the_trip_voltage_is_that_of_its_divider(rail):
    v = simulate.values(rail)
    low = 1 / (1 / v["ovp_lower"] + 1 / v["ovp_hysteresis"])  # the comparator's output is low
    trip = v["ovp_reference"] * (1 + v["ovp_upper"] / low)
    assert supplied(rail, 1.5 * v["voltage"], 5e-3, c_load=2e-5, p_load=0)["drive_peak"] == pytest.approx(
        trip, rel=0.01
    )
    assert 1.05 * v["voltage"] < trip < MOST_V[rail]


@pytest.mark.parametrize("later", [-0.02, 1e-3, 1e-2])
@pytest.mark.parametrize("way", (simulate.WAYS_GONE[0], simulate.WAYS_GONE[-1]))
@pytest.mark.parametrize("rail", MOST_V)
def test_the_logics_input_that_goes_takes_no_lock_out_along(rail, way, later):
    """The gates hold for 20 to 30 ms after it; the wrong supply has been there for 20 ms, or comes in these."""
    changes = limits.corner_changes("overvoltage", "high", simulate.values(rail)) | way | {"later": later}
    m = simulate.logic_gone(rail, 24, **changes)
    assert m["drive_peak"] <= MOST_V[rail] and m["drive_end"] < 0.1
    assert m["charge"] < 1.15 * simulate.values(rail)["voltage"] * simulate.LITTLE_F
    assert later < 0 or m["before"] > simulate.values(rail)["voltage"]


@pytest.mark.parametrize(("left_V", "later"), [(3.6, 0.03), (3.0, 0.03), (2.7, 0.03), (0, 9e-3)])
@pytest.mark.parametrize("rail", MOST_V)
def test_the_logics_input_that_sags_takes_no_lock_out_along(rail, left_V, later):
    """24 V within 1 us, while Q5's pull-up has 2.3 to 3.3 V: R31 has taken the reference down before."""
    way = {"fall": 0.02, "rail1_end": left_V, "later": later, "rise": 1e-6}
    changes = limits.corner_changes("overvoltage", "high", simulate.values(rail)) | way
    m = simulate.logic_gone(rail, 24, **changes)
    assert m["drive_peak"] <= MOST_V[rail] and m["drive_end"] < 0.1
    if left_V in (0, 2.7):
        without = simulate.logic_gone(rail, 24, library=shared.faulty("board", "R31", "open"), **changes)
        assert without["drive_peak"] > MOST_V[rail]


@pytest.mark.parametrize(("part", "kind"), [("D3", "short"), ("C10", "open")])
def test_without_a_supply_of_their_own_it_does(part, kind):
    """What the pull-ups have goes with LOGIC_5V."""
    fault = shared.faulty("board", part, kind)
    changes = limits.corner_changes("overvoltage", "high", simulate.values("m2_3v3"))
    m = simulate.logic_gone("m2_3v3", 12, library=fault, fall=1e-5, later=4e-3, **changes)
    assert m["drive_peak"] > 3 * MOST_V["m2_3v3"]


def test_a_short_of_rail_1_empties_the_regulators_outputs_past_them():
    """Their data sheet allows 0.3 V from output to input; without D8 and D9 their own diodes take the charge."""
    more = "".join(
        f".meas tran own{k} integ i(Vown{k}) from=44m\n.meas tran most{k} max v({out}) from=44m\n"
        for k, out in ((6, "over6"), (9, "over9"))
    )
    more += "Bover6 over6 0 v=v(l6)-v(lin)\nBover9 over9 0 v=v(l5)-v(l6)\n"
    text = (limits.HERE / "shared_board.lib").read_text() + more
    for k, node in ((6, "l6"), (9, "l5")):
        text = text.replace(f"DU{k} {node} ", f"Vown{k} {node} own{k} 0\nDU{k} own{k} ")
    bare = re.sub(r"^DD[89] .*\n", "", text, flags=re.M)
    fitted, without = (simulate.logic_gone("sata_5v", 5, library=of, fall=1e-5) for of in (text, bare))
    assert fitted["own6"] < 1e-6 < 2e-5 < without["own6"] and fitted["own9"] < 1e-6
    assert fitted["most6"] < 1.5 < 3 < without["most6"]


def test_resistors_of_1_percent_at_opposite_ends_leave_12_V_no_margin():
    values, changes = simulate.values("sata_12v"), at_opposite_ends("sata_12v", 5e-7) | {"voltage": 11.4}
    apart = {"ovp_upper": values["ovp_upper"] * 1.01, "ovp_lower": values["ovp_lower"] * 0.99}
    kept_V, wide_V = (supplied("sata_12v", 19, 1e-6, **more)["drive_peak"] for more in (changes, changes | apart))
    assert kept_V <= MOST_V["sata_12v"] and wide_V > MOST_V["sata_12v"] + 0.15


@pytest.mark.parametrize(("under_V", "over_V", "wanted_us"), [(0.095, 0.005, 1.3), (0.195, 1.0, 0.3)])
def test_the_comparators_model_is_as_slow_as_its_data_sheet(tmp_path, under_V, over_V, wanted_us):
    """A step of 100 mV with 5 mV of overdrive, and a large one from the share of a rail at its own voltage."""
    values = simulate.values("m2_3v3")
    low_V, high_V = (values["ovp_reference"] + of_V for of_V in (-under_V, over_V))
    names = ("ovp_reference", "ovp_overdrive", "ovp_response", "ovp_headroom")
    lines = [
        "* the comparator",
        ".param " + " ".join(f"{name}={values[name]}" for name in names),
        *re.findall(r"^(?:Bcompare|Rovq|Covq|Vreference) .*$", PROTECTION, re.M),
        "Vsupply ovsupply 0 24",
        f"Vovt ovt 0 pwl(0 {low_V} 5u {low_V} 5.001u {high_V})",
        ".tran 5n 10u 0 5n",
        ".meas tran gone when v(ovp_low)=0.5 fall=1",
        ".end",
    ]
    (tmp_path / "comparator.cir").write_text("\n".join(lines) + "\n")
    words = ["ngspice", "-b", "comparator.cir"]
    output = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    gone_s = float(re.search(r"^gone\s+=\s+(\S+)", output, re.M)[1])
    assert 1e6 * gone_s - 5.001 == pytest.approx(wanted_us, rel=0.1)


# ---- PERST#


@pytest.mark.parametrize("rail_33", [1, 0])
@pytest.mark.parametrize("output", [25, 50])
def test_a_host_that_drives_perst_feeds_no_cut_drive(output, rail_33):
    held = simulate.measured("perst", "m2_3v3", perst_output=output, rail_33=rail_33)
    assert abs(held["pad_current"]) < 1e-5 and abs(held["host_current"]) < 4e-3
    let_go = simulate.measured("perst", "m2_3v3", perst_output=output, rail_33=rail_33, held=0)
    assert let_go["pad_current"] < 5e-3
    assert let_go["pad_current"] == pytest.approx(2.6e-3, rel=0.1)


@pytest.mark.parametrize("output, feeds", [(25, 0.069), (50, 0.042)])
def test_a_joined_perst_feeds_it_and_the_residual_does_not_show_it(output, feeds):
    m = simulate.measured("perst", "m2_3v3", perst_output=output, perst_series=0.001, held=0)
    assert m["pad_current"] == pytest.approx(feeds, rel=0.1) and m["residual"] < 0.3
