"""The board: generated files, KiCad's rule check, netlist, what the circuit must have, pins."""

import html
import math
import re

import pytest
from board_files import BOARD, NETS, PARTS, PINS, README, at, circuit, draw, export, farad, kicad, ohm, wired  # noqa: F401  a fixture
from board_files import at as net_at

from ssdrig.rig import builds

SOURCE = {}
for _part in circuit.PARTS:
    for _pin, _net in _part.nets.items():
        if _net and not _part.ref.startswith("#"):
            SOURCE.setdefault(_net, set()).add((_part.ref, _pin))


def components(text):
    """{reference: value} of a KiCad netlist."""
    return dict(re.findall(r'\(comp\s+\(ref "([^"]+)"\)\s+\(value "([^"]+)"\)', text))


# ---- the schematic


def test_kicad_files_are_those_that_draw_py_writes():
    for name, text in draw.files().items():
        assert (BOARD / name).read_text() == text, f"do: python hardware/board/draw.py and export.py ({name})"


def test_committed_netlist_joins_the_pins_that_the_source_joins():
    assert NETS == SOURCE
    assert components((BOARD / "ssdrig.net").read_text()) == {
        ref: part.value for ref, part in PARTS.items() if not ref.startswith("#")
    }


def test_a_wire_between_two_nets_is_refused():
    with pytest.raises(ValueError, match="expected R101.2 and R105.1 on one net; seen GATE0 and OFF0"):
        draw.sheet(circuit.PARTS, [*circuit.WIRES, ("R101.2", "R105.1", "x")], ())


@pytest.mark.slow  # KiCad may have to be fetched
def test_electrical_rule_check_has_nothing_to_say(kicad, tmp_path):
    ok, report = export.rule_check(BOARD / "ssdrig.kicad_sch", tmp_path / "erc.txt")
    assert ok, report
    assert "ERC messages: 0" in report


@pytest.mark.slow
@pytest.mark.parametrize(
    "ref, nets, complaint",
    [
        ("#FLG0", None, "power_pin_not_driven"),
        ("U2", {"3": "CROWBAR0"}, "pin_to_pin"),
        ("R105", {"1": "NOWHERE"}, "label_dangling"),
    ],
)
def test_rule_check_finds_a_fault(kicad, tmp_path, monkeypatch, ref, nets, complaint):
    """Without the flag that says where ground comes from; with two outputs tied together; with an OFF line that leads
    nowhere."""
    changed = [part if part.ref != ref else nets and part._replace(nets=part.nets | nets) for part in circuit.PARTS]
    monkeypatch.setattr(circuit, "PARTS", [part for part in changed if part])
    for name, text in draw.files().items():
        (tmp_path / name).write_text(text)
    ok, report = export.rule_check(tmp_path / "ssdrig.kicad_sch", tmp_path / "erc.txt")
    assert not ok
    assert re.search(complaint, report), report


def test_netlist_names_no_place_of_one_machine():
    assert not re.search(r'(source|uri) "/', (BOARD / "ssdrig.net").read_text())


@pytest.mark.slow
def test_netlist_and_drawing_are_kicads(kicad, tmp_path):
    text = export.netlist(BOARD / "ssdrig.kicad_sch", tmp_path)
    assert export.connections(text) == NETS
    assert components(text) == components((BOARD / "ssdrig.net").read_text())
    assert drawn_texts(export.drawing(BOARD / "ssdrig.kicad_sch", tmp_path)) == drawn_texts(
        (BOARD / "ssdrig.svg").read_text()
    )


def drawn_texts(svg):
    return sorted(html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg))


def test_drawing_shows_every_part_with_its_value_and_every_net():
    shown = set(drawn_texts((BOARD / "ssdrig.svg").read_text()))
    assert {part.ref for part in circuit.PARTS if not part.ref.startswith("#")} <= shown
    assert {part.value for part in circuit.PARTS if not part.ref.startswith("#")} <= shown
    assert set(NETS) <= shown


# ---- what the circuit must have, read from KiCad's netlist


@pytest.mark.parametrize("n", range(4))
def test_rail(n):
    check_rail(n, NETS)


@pytest.mark.parametrize(
    "ref, pin, net",
    [
        ("Q102", "3", "SW0"),  # both MOSFETs the same way round: the body diodes conduct
        ("R106", "2", "+3V3"),  # OFF pulled up: a crashed firmware cuts the drive
        ("R103", "1", "+3V3"),  # gates fed by the microcontroller
        ("R108", "1", "RAIL0_OUT"),  # the crowbar behind the shunt
        ("R112", "1", "RAIL0_OUT"),  # the divider behind the shunt
        ("U101", "6", "RAIL0_OUT"),  # the sensor powered from the rail that it cuts
        ("R118", "1", "SW0"),  # voltage sensed before the shunt
        ("U101", "10", "SW0"),  # nothing between the sensor's pin and a cut's negative pulse
        ("D102", "1", "GND"),  # no way for the cable's current but the FETs
        ("F102", "2", "GND"),  # the crowbar's fuse does not lie in its path
        ("Q105", "1", "OFFGATE0"),  # the lock-out hangs on the microcontroller
        ("U102", "5", "+3V3"),  # or on what the microcontroller makes
        ("D104", "1", "SW0"),  # a surge gets through
        ("U2", "1", "+3V3"),  # no interlock
        ("R115", "2", "SW0"),  # the crowbar's gate floats, or worse, when the logic has no supply
    ],
)
def test_a_dangerous_rail_is_found(ref, pin, net):
    nets = {name: nodes - {(ref, pin)} for name, nodes in NETS.items()}
    nets[net] = nets[net] | {(ref, pin)}
    with pytest.raises(AssertionError):
        check_rail(0, nets)


def check_rail(n, nets):
    """AssertionError where rail n of a netlist lacks what keeps drive and person safe, or the meter honest."""
    at = lambda ref, pin: net_at(ref, pin, nets)
    ref = lambda name: f"{name[0]}{n + 1}{name[1:]}"
    value = lambda name: ohm(PARTS[ref(name)].value)
    # back to back: sources joined, so that one of the two body diodes always blocks
    assert at(ref("Q01"), "3") == at(ref("Q02"), "3") == f"SRC{n}"
    assert at(ref("Q02"), "2") == f"SW{n}"
    assert at(ref("Q01"), "2") == (f"FUSED{n}" if ref("F01") in PARTS else f"RAIL{n}_IN")
    # a pin that nobody drives is low (RP2350-E9: at most 8 kOhm), and low is: rail on, crowbar off
    assert at(ref("R06"), "1") == at(ref("Q03"), "1") and at(ref("R06"), "2") == "GND" and value("R06") <= 8000
    assert at(ref("R11"), "1") == f"DISCHARGE{n}" and at(ref("R11"), "2") == "GND" and value("R11") <= 8000
    assert at(ref("R05"), "1") == f"OFF{n}" and at(ref("Q03"), "2") == "GND"
    # the gates' current comes from the gate supply, without the microcontroller
    assert (
        at(ref("R03"), "1") == "VGATE"
        and at(ref("R03"), "2") == at(ref("R26"), "2")
        and at(ref("R26"), "1") == at(ref("R14"), "2")
        and at(ref("R14"), "1") == f"GATE{n}"
    )
    # crowbar before the shunt; its gate is the AND of DISCHARGE and the late OFF
    assert (
        at(ref("R08"), "1") == f"SW{n}" and at(ref("R08"), "2") == at(ref("F02"), "1") and at(ref("Q04"), "2") == "GND"
    )
    assert at(ref("F02"), "2") == at(ref("Q04"), "3")
    assert at(ref("R10"), "1") == f"OFF{n}" and at(ref("R10"), "2") == f"LATE{n}" == at(ref("C03"), "1")
    chip, a, b, block, both, fire = (
        ("U2", "U3")[n // 2],
        *(("1", "2", "3", ("4", "5"), "6"), ("9", "10", "8", ("12", "13"), "11"))[n % 2],
    )
    assert (at(chip, a), at(chip, b)) == (f"LATE{n}", f"DISCHARGE{n}")
    assert {at(chip, pin) for pin in both} == {at(chip, block)} == {f"BLOCK{n}"}
    assert at(chip, fire) == f"CROWBAR{n}" == at(ref("R09"), "1")
    # the logic may be without supply
    assert at(ref("R15"), "1") == at(ref("Q04"), "1") and at(ref("R15"), "2") == "GND"
    # the sensor lives on the microcontroller's 3.3 V and senses the drive's side of the shunt
    assert [at(ref("U01"), pin) for pin in ("6", "7", "10", "9", "8")] == [
        "+3V3",
        "GND",
        f"IN{n}_PLUS",
        f"IN{n}_MINUS",
        f"VBUS{n}",
    ]
    for name, before, behind in (("R16", "SW{n}", "IN{n}_PLUS"), ("R17", "RAIL{n}_OUT", "IN{n}_MINUS")):
        assert [at(ref(name), pin) for pin in ("1", "2")] == [before.format(n=n), behind.format(n=n)]
    assert [at(ref("R18"), pin) for pin in ("1", "2")] == [f"RAIL{n}_OUT", f"VBUS{n}"]
    # the cable's current goes through the diode when the FETs open; a surge into the TVS
    assert [at(ref("D02"), pin) for pin in ("1", "2")] == [f"SW{n}", "GND"]
    before = f"FUSED{n}" if ref("F01") in PARTS else f"RAIL{n}_IN"
    assert [at(ref("D04"), pin) for pin in ("1", "2")] == [before, "GND"]
    # the fuse comes first: nothing but it, connectors and the logic's own fuse hangs before it
    assert at(ref("C01"), "1") == at(ref("Q01"), "2") == before
    if ref("F01") in PARTS:
        assert {name for name, _ in nets[f"RAIL{n}_IN"] if name[0] not in "J#"} <= {ref("F01"), "F1"}
    # the lock-out needs no microcontroller: a share of the rail, a comparator, the gate of Q05, which empties the gates
    assert at(ref("R19"), "1") == before and at(ref("R19"), "2") == at(ref("R20"), "1") == at(ref("U02"), "3")
    # fed by VGATE: with less supply than its inputs need no FET is on either
    assert [at(ref("U02"), pin) for pin in "1245"] == ["OVREF", "GND", f"OVGATE{n}", "VGATE"]
    assert at(ref("Q05"), "1") == f"OVGATE{n}"
    for pull_up in ("R25", "R27"):
        assert [at(ref(pull_up), pin) for pin in "12"] == ["LOCK_5V", f"OVGATE{n}"]
    assert at(ref("R21"), "1") == f"GATE{n}" and at(ref("R21"), "2") == at(ref("Q05"), "3")
    assert at(ref("R20"), "2") == at(ref("Q05"), "2") == "GND"
    assert at(ref("U01"), "3") == f"ALERT{n}"
    # behind the shunt there is the drive's connector and nothing that draws current
    behind = {node[0] for node in nets[f"RAIL{n}_OUT"]}
    assert {name for name in behind if not name.startswith("J")} == {ref("R17"), ref("R18"), ref("R07")}


def test_addresses_are_those_that_jumpers_can_set():
    levels = {"GND": 0, "+3V3": 1}
    sites = [wired(n, "INA228") for n in range(4)]
    assert [0x40 + 4 * levels[site["1"]] + levels[site["2"]] for site in sites] == [0x40, 0x41, 0x44, 0x45]
    assert all((site["4"], site["5"]) == ("SDA", "SCL") for site in sites)


def test_each_site_takes_an_INA229():
    """Pins 1 CS, 2 MOSI, 4 MISO, 5 SCLK (SLYS023A); the SPI lines are those of J8, behind 100 Ohm from the Pico."""
    spi = {"1": "SPI_CS_PIN", "2": "SPI_MOSI_PIN", "4": "SPI_MISO_PIN", "5": "SPI_SCK_PIN"}
    assert [wired(n, "INA229") for n in range(4)] == [spi] * 4
    assert (at("J8", "6"), at("J8", "4"), at("J8", "5"), at("J8", "3")) == tuple(spi.values())
    # nobody is selected until the Pico says so
    assert at("R7", "1") == "+3V3" and at("R7", "2") == at("R22", "2") == "SPI_CS"


@pytest.mark.parametrize("n", range(3))
def test_scope_divider(n):
    upper, lower, c_upper, c_lower = circuit.RAILS[n][3]
    ratio = ohm(lower) / (ohm(upper) + ohm(lower))
    # 10 % above nominal stays below the ADC's 3.3 V
    assert 1.5 < circuit.VALUES[circuit.RAILS[n][0], "voltage"].value * 1.1 * ratio < 3.0
    tau_s = ohm(upper) * ohm(lower) / (ohm(upper) + ohm(lower)) * (farad(c_upper) + farad(c_lower))
    # less than a sample of the ADC at 500 kS/s, more than what SW rings (test_spice_ramp.py)
    assert 1e-6 < tau_s < 2e-6
    assert at("U1", {0: "31", 1: "32", 2: "34"}[n]) == f"SCOPE{n}" == at(f"R{n + 1}28", "2")
    # with the divider's upper end short the rail's voltage comes through this
    assert at(f"R{n + 1}12", "2") == f"TAP{n}" == at(f"R{n + 1}28", "1") and ohm(PARTS[f"R{n + 1}28"].value) >= 1000


def test_the_fuse_comes_before_all_that_can_fail_short():
    for n, name in ((1, "RAIL1_IN"), (2, "RAIL2_IN")):
        before = {ref for ref, _ in NETS[name] if ref[0] not in "J#"}
        assert before == {f"F{n + 1}01"} | ({"F1"} if n == 1 else set())


def test_the_lock_outs_share_one_reference():
    """Twice: one that is open leaves the other."""
    for ref in ("U7", "U8"):
        assert (at(ref, "1"), at(ref, "2"), at(ref, "3")) == ("OVREF", "OVREF", "GND")
    assert at("R26", "2") == "OVREF"
    current_A = (4.85 - 2.507) / ohm(PARTS["R26"].value)
    assert current_A > 1e-3 + 4 * 400e-9  # TL431: 1 mA; the comparators' inputs


def test_the_pico_trips_the_lock_outs_where_no_INA229_is_read():
    """SPI_MISO and SPI_CS high: an INA229 whose CS is high leaves MISO alone, which is pulled low."""
    assert [at("R27", pin) for pin in "12"] == ["OVREF", at("Q2", "3")]
    assert at("Q2", "2") == at("Q3", "3") and at("Q3", "2") == "GND" and at("Q3", "1") == "SPI_CS"
    assert [at("R29", pin) for pin in "12"] == ["SPI_MISO", at("Q2", "1")] and at("R28", "1") == at("Q2", "1")
    assert at("R28", "2") == "GND" and ohm(PARTS["R28"].value) + ohm(PARTS["R29"].value) < 8000  # RP2350-E9
    assert builds.read("four_rails")["lock_outs"] == 0 and builds.read("four_rails_ina229").get("lock_outs") is None


def test_gate_supply_voltage():
    feedback_V = 1.233  # TPS61040 data sheet
    gate_V = feedback_V * (1 + ohm(PARTS["R13"].value) / ohm(PARTS["R14"].value))
    wanted = circuit.VALUES["all", "gate_supply"].value
    assert gate_V == pytest.approx(wanted, rel=circuit.VALUES["all", "gate_supply_tolerance"].value)
    assert (at("U5", "3"), at("R13", "1"), at("U5", "5")) == ("FEEDBACK", "VGATE", "LOGIC_5V")
    # with R13 open the clamp regulates; to ground it would burn (spice/shared_faults.csv)
    assert at("D2", "1") == "VGATE" == at("C6", "1") and at("C6", "2") == "FEEDBACK" == at("D2", "2")
    # before rail 1's switch: always on; after two regulators that bear 24 V there, one of which may be short
    assert (at("F1", "1"), at("F1", "2"), at("U6", "1"), at("U6", "2")) == ("RAIL1_IN", *["LOGIC_IN"] * 3)
    assert at("U6", "3") == at("U9", "1") == at("U9", "2") == at("C9", "1")
    # RAIL1 short: what is after a regulator leaves past it; LOGIC_5V gone: the lock-outs keep what they need in C10
    for diode, cathode, anode in (("D8", "LOGIC_IN", "LOGIC_6V"), ("D9", "LOGIC_6V", "LOGIC_5V")):
        assert (at(diode, "1"), at(diode, "2")) == (cathode, anode)
    assert (at("D3", "1"), at("D3", "2")) == ("LOCK_5V", "LOGIC_5V") and at("C10", "1") == "LOCK_5V"
    assert at("U9", "3") == "LOGIC_5V" == at("R26", "1") and at("U6", "4") == at("U9", "4") == "GND"
    # VSYS: what the Pico draws must not pull the lock-outs' supply down
    assert [net for net, nodes in NETS.items() if ("U1", "39") in nodes] == []


def test_pins_from_outside_are_protected():
    """TRIGGER and ACTIVITY through 1 kOhm with diodes to ground and 3.3 V, outputs and SPI through 100 Ohm; no 5 V
    beside them."""
    for header, pin, resistor, diode, net in (
        ("J7", "1", "R16", "D4", "TRIGGER"),
        ("J6", "6", "R17", "D5", "ACTIVITY"),
        ("J2", "P11", "R17", "D5", "ACTIVITY"),
    ):
        assert at(header, pin) == at(resistor, "1") == f"{net}_IN" and at(resistor, "2") == net == at(diode, "3")
        assert ohm(PARTS[resistor].value) == 1000 and (at(diode, "1"), at(diode, "2")) == ("GND", "+3V3")
    pins = {"R18": ("J7", "3"), "R19": ("J8", "3"), "R20": ("J8", "4"), "R21": ("J8", "5"), "R22": ("J8", "6")}
    for resistor, (header, pin) in pins.items():
        assert at(resistor, "1") == at(header, pin) and ohm(PARTS[resistor].value) == 100
        assert at("U1", {row["net"]: row["pico_pin"] for row in PINS}[at(resistor, "2")]) == at(resistor, "2")
    assert (at("J7", "2"), at("J7", "4")) == ("GND", "GND") and "USB_5V" not in NETS


def test_a_probe_finds_what_the_first_power_up_asks_for():
    nets = sorted(next(iter(part.nets.values())) for part in PARTS.values() if part.symbol == "TestPoint")
    of_rails = [f"{name}{n}" for name in ("GATE", "SRC", "SW", "OFF", "DISCHARGE") for n in range(4)]
    assert nets == sorted([*of_rails, "VGATE", "GND", "GND", "+3V3", "LOGIC_5V", "OVREF", "LOCK_5V"])


@pytest.mark.parametrize("lamp, net", [*((f"D{n + 1}05", f"SW{n}") for n in range(4)), ("D6", "VGATE"), ("D7", "+3V3")])
def test_lamps(lamp, net):
    """What each one shows; a rail's lamp lies before the shunt."""
    (resistor,) = [ref for ref, pin in NETS[at(lamp, "2")] if ref != lamp]
    assert at(resistor, "1") == net and at(lamp, "1") == "GND"
    assert all(at(f"D{n + 1}06", "2") == at(f"R{n + 1}23", "2") for n in range(4))


def test_bus_pull_ups_for_1_MHz():
    pull_ohm = ohm(PARTS["R1"].value)
    assert (3.3 - 0.4) / pull_ohm < 3e-3  # what an INA228 can sink
    assert 0.8473 * pull_ohm * 80e-12 < 120e-9  # UM10204: rise time of Fast-mode Plus, at 80 pF


def test_sata_power_connectors():
    for ref, five, twelve in (("J1", "RAIL1_IN", "RAIL2_IN"), ("J2", "RAIL1_OUT", "RAIL2_OUT")):
        assert {at(ref, pin) for pin in ("P7", "P8", "P9")} == {five}
        assert {at(ref, pin) for pin in ("P13", "P14", "P15")} == {twelve}
        assert {at(ref, pin) for pin in ("P4", "P5", "P6", "P10", "P12")} == {"GND"}
    assert "P3" not in {pin for nodes in NETS.values() for ref, pin in nodes if ref == "J1"}  # or it would hold P3 high
    assert at("R12", "1") == at("J2", "P3") == "PWDIS" and at("R12", "2") == "GND"
    # a supply's 4-pin plug: yellow, black, black, red. It has no 3.3 V at all
    assert [at("J9", pin) for pin in "1234"] == ["RAIL2_IN", "GND", "GND", "RAIL1_IN"]


def test_side_band_pulls_do_not_fight_the_host():
    assert (at("J5", "5"), at("R15", "1"), at("R15", "2")) == ("PERST_HOST", "PERST_HOST", "PERST")
    assert at("Q1", "3") == at("J6", "5") == "PERST" and ohm(PARTS["R15"].value) >= 1000
    for pin in ("1", "4", "10", "13"):
        assert at("U4", pin) == "SIDEBAND_OFF"
    # low at reset: released, joined
    assert at("R9", "1") == "PERST_LOW" == at("Q1", "1") and at("R10", "1") == "SIDEBAND_OFF"


def test_the_12_V_rail_serves_sata_and_u2():
    for name in ("voltage", "shunt", "gate_resistor", "crowbar", "fuse"):
        assert circuit.VALUES["sata_12v", name].value == circuit.VALUES["u2_12v", name].value


def test_interlock_delay_is_what_the_readme_says():
    value = {name: quantity.value for (rail, name), quantity in circuit.VALUES.items() if rail == "all"}
    tau_us = value["interlock_resistor"] * value["interlock_capacitor"] * 1e6
    low, high = (
        tau_us * math.log(value["logic"] / (value["logic"] - value[f"schmitt_vt_plus_{end}"])) for end in ("min", "max")
    )
    assert f"high for {low:.0f} to {high:.0f} us" in README


def visible_lines(svg):
    """{frozenset of two points} of the straight lines of a drawing that a person sees: in a group with a stroke."""
    visible = set()
    for style, body in re.findall(r'<g style="([^"]*)"[^>]*>(.*?)(?=<g |</g>)', svg, re.DOTALL):
        stroke = re.search(r"stroke:\s*([^;\s]+)", style)
        if stroke and stroke[1] != "none" and not re.search(r"stroke-(width|opacity):\s*0(\.0*)?;", style):
            for path in re.findall(r'<path d="M([^"]*)"', body):
                points = [tuple(map(float, word.split())) for word in path.replace("Z", "").split("L")]
                visible |= {frozenset(pair) for pair in zip(points, points[1:])}
    return visible


def unseen_wires(schematic, svg):
    """The wires of a schematic that its drawing does not show."""
    lines = visible_lines(svg)
    wires = re.findall(r"\(wire \(pts \(xy (\S+) (\S+?)\) \(xy (\S+) (\S+?)\)\)", schematic)
    ends = [tuple(map(float, wire)) for wire in wires]
    assert len(ends) > 400
    return [wire for wire in ends if frozenset((wire[:2], wire[2:])) not in lines]


def test_drawing_shows_every_wire():
    schematic, svg = (BOARD / "ssdrig.kicad_sch").read_text(), (BOARD / "ssdrig.svg").read_text()
    assert unseen_wires(schematic, svg) == []
    assert len(unseen_wires(schematic, svg.replace("stroke:#009600;", "stroke:none;"))) > 400
