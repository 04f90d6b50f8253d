"""The guide's pictures are those that their sources draw, and what they show is the circuit."""

import re
import sys

import board_layout
import pytest
from board_files import HARDWARE, PARTS, README, export, table

sys.path.insert(0, str(HARDWARE / "guide"))
import assembly  # isort: skip
import guide  # isort: skip
import perfboard  # isort: skip
import plan  # isort: skip
import ways  # isort: skip

GUIDE = HARDWARE / "guide"


def test_pictures_are_those_that_guide_py_writes():
    made = guide.files()
    assert {path.name for path in GUIDE.glob("*.svg")} == {name for name in made if name.endswith(".svg")}
    for name, text in made.items():
        assert (GUIDE / name).read_text() == text, f"do: python hardware/guide/guide.py ({name})"


def test_guide_shows_each_picture():
    text = (GUIDE / "README.md").read_text()
    assert sorted(re.findall(r"!\[[^]]*\]\(([^)]+\.svg)\)", text)) == sorted(path.name for path in GUIDE.glob("*.svg"))
    assert [
        link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link and not (GUIDE / link).exists()
    ] == []


# ---- the switch of the breakout build on a solderable breadboard


def faults(legs=None, thin=None, thick=None):
    parts = (legs or perfboard.legs(), thin or perfboard.thin_wires(), thick or perfboard.thick_wires())
    return perfboard.faults(*parts, perfboard.wanted())


def test_the_plan_is_the_circuit():
    """Every pin placed, every net one piece, no two nets joined, no hole used twice."""
    assert faults() == [] and perfboard.clashes() == []
    nets = set(perfboard.wanted().values())
    assert {net for net in nets if "1" in net} == {net.replace("0", "1") for net in nets if "0" in net}
    assert len(nets) == 2 * 17 + 2 and {"GND", "3V3"} <= nets


def test_the_plan_has_the_bill_of_two_rails():
    count = {row["item"]: int(row["two_rails"]) for row in table("breakout/bom.csv")}
    refs = [ref.split("/")[0] for ref in {leg.ref for leg in perfboard.legs()}]
    of = lambda *names: sum(refs.count(name) for name in names)
    assert of("Q01", "Q02") == count["series FET"] and of("Q03", "Q04") == count["small FET"]
    assert of("D01") == count["gate clamp"] and of("C02") == count["gate capacitor"]
    assert of("C01") == count["input bulk"] and of("R08") == count["crowbar"]
    assert of("C03") == count["interlock capacitor"] and of("C05", "C06") == count["divider capacitors"]
    assert of("T") == count["terminals"] and of("U1") == count["interlock"] == 1
    assert of("C1") == count["decoupling of the interlock"]
    resistors = [ref for ref in refs if ref.startswith("R") and ref != "R08"]
    assert len(resistors) + 2 == count["resistors"]  # 2: pull-ups of the bus


def test_what_the_breakout_leaves_out_is_what_revision_b_added():
    """All other parts of a rail are on the plan."""
    planned = {leg.ref.split("/")[0] for leg in perfboard.legs()}
    rail = {f"{ref[0]}{ref[2:]}" for ref in PARTS if re.fullmatch(r"[A-Z]2\d\d", ref)}
    fuse_sensor = {"F01", "R07", "U01", "C04"}  # in the cable; on the sensor's board
    protection = {
        "D02",
        "D04",
        "Q05",
        "R16",
        "R17",
        "R18",
        "R19",
        "R20",
        "R21",
        "R24",
        "R25",
        "R26",
        "R27",
        "R28",
        "U02",
        "C07",
        "C08",
        "F02",
    }
    lamps_pads = {"J01", "D05", "D06", "R22", "R23", "T01", "T02", "T03", "T04", "T05"}
    assert rail - planned == fuse_sensor | protection | lamps_pads


@pytest.mark.parametrize("n", range(len(perfboard.thin_wires())))
def test_a_thin_wire_that_is_left_out_is_found(n):
    wires = perfboard.thin_wires()
    left_out = wires[:n] + wires[n + 1 :]
    assert any("pieces" in fault for fault in faults(thin=left_out)), wires[n]


@pytest.mark.parametrize("n", range(len(perfboard.thick_wires())))
def test_a_thick_wire_that_is_left_out_is_found(n):
    """But that of SRC, which lies on the strip that joins the same."""
    wires = perfboard.thick_wires()
    messages = faults(thick=wires[:n] + wires[n + 1 :])
    assert bool(messages) == (perfboard.strip(wires[n][0]) != perfboard.strip(wires[n][1])), wires[n]


@pytest.mark.parametrize("ref", sorted({leg.ref for leg in perfboard.legs()}))
def test_a_part_that_is_turned_left_out_or_a_row_off_is_found(ref):
    legs = perfboard.legs()
    assert any("not placed" in fault for fault in faults([leg for leg in legs if leg.ref != ref]))
    own = [leg for leg in legs if leg.ref == ref]
    if len(own) > 1 and ref[0] in "QDTU":  # which way round does not matter to the others
        other_way = {leg: leg._replace(hole=old.hole) for leg, old in zip(own, own[::-1])}
        assert any("joined" in fault for fault in faults([other_way.get(leg, leg) for leg in legs])), ref

    def moved(leg):
        column, row = perfboard.split(leg.hole)
        return leg._replace(hole=f"{column}{row + 1 if row < 30 else row - 1}")

    assert faults([moved(leg) if leg.ref == ref and leg.hole[0] not in "+-" else leg for leg in legs]) or all(
        leg.hole[0] in "+-" for leg in own
    )


def test_a_bridge_between_two_rows_is_found():
    for row in range(1, 30):
        for half in "af":
            bridge = [*perfboard.thin_wires(), (f"{half}{row}", f"{half}{row + 1}")]
            nets = perfboard.wanted()
            at = {perfboard.strip(leg.hole): nets[leg.ref, leg.pin] for leg in perfboard.legs()}
            both = {at.get(perfboard.strip(f"{half}{r}")) for r in (row, row + 1)}
            is_found = any("are joined" in fault for fault in faults(thin=bridge))
            assert is_found == (len(both) == 2 and None not in both), (half, row)


def test_one_rail_is_a_circuit_too():
    """As the guide says: without /1, unused inputs to the right ground rail, which hangs on a28."""
    sentence = re.search(r"\*\*One rail\*\*: (.*)", (GUIDE / "README.md").read_text())[1]
    to_ground = re.search(r"wires from (h\d+), (h\d+), (h\d+) and (h\d+)", sentence).groups()
    thin = [*perfboard.THIN[0], ("j12", "-R12"), *((hole, f"-R{hole[1:]}") for hole in to_ground)]
    thick = [*perfboard.THICK[0], ("a28", "-R12")]
    legs = [leg for leg in perfboard.legs() if not leg.ref.endswith("/1")]
    nets = {leg: net for leg, net in perfboard.wanted().items() if not leg[0].endswith("/1")}
    assert "pins 9, 10, 12, 13" in sentence and "j12" in sentence and "a28" in sentence
    nets |= {("U1", pin): "GND" for pin in ("9", "10", "12", "13")} | {("U1", "8"): "open", ("U1", "11"): "open too"}
    assert perfboard.faults(legs, thin, thick, nets) == []
    assert perfboard.faults(legs, thin[:-1], thick, nets) != []


def test_holes_that_are_none_are_refused():
    for hole in ("a0", "a31", "k1", "-M3", "", "1a"):
        with pytest.raises(ValueError, match="expected a hole of the board"):
            perfboard.strip(hole)


def test_each_part_is_lit_in_one_step_and_shown_after_it():
    steps = [word for _, words, _ in plan.STEPS for word in words]
    kinds = {plan.kind(leg.ref) for leg in perfboard.legs()} | {"thin", "thick"}
    assert sorted(steps) == sorted(kinds)
    for (_, words, _), svg in zip(plan.STEPS, plan.pictures().values()):
        for kind in words:
            for ref in {leg.ref for leg in perfboard.legs() if plan.kind(leg.ref) == kind} - {"wire/0", "wire/1"}:
                assert f">{ref}</text>" in svg


# ---- the board


def test_each_part_of_the_board_is_lit_in_one_step():
    """The machine's in the first; every other one, with each of its plated holes, in one after it."""
    steps = [assembly.new_in(i) for i in range(len(assembly.STEPS))]
    assert sorted(ref for refs in steps for ref in refs) == sorted(
        row_ref for row in table("board/bom.csv") for row_ref in row["references"].split()
    )
    assert all(assembly.by_machine(ref) == (i == 0) for i, refs in enumerate(steps) for ref in refs)
    for i, (refs, svg) in enumerate(zip(steps, assembly.pictures().values())):
        lit = [circle for circle in re.findall(r"<circle[^>]*>", svg) if assembly.svg.LIT in circle]
        assert len(lit) == sum(len(assembly.joints(ref)) for ref in refs), i
        if i:
            assert all(f">{ref}</text>" in svg for ref in refs)


def test_joints_are_where_the_layout_has_the_holes():
    board = board_layout.board_file()
    for ref in assembly.parts():
        for number, x, y, _ in assembly.joints(ref):
            assert any(abs(x - px) < 0.01 and abs(y - py) < 0.01 for _, px, py, *_ in board.pads[ref, number]), ref
    x, y = assembly.back(*board.pads["J3", "1"][0][1:3])
    assert x > assembly.back(*board.pads["J4", "1"][0][1:3])[0]  # the back is mirrored


def test_wires_of_the_sata_cable_have_the_nets_that_their_colours_say():
    colour = {"GND": "#222222", "RAIL1": "#c0392b", "RAIL2": "#e6c700", "PWDIS": "#e08a1e"}
    board = board_layout.board_file()
    for ref in ("J1", "J2"):
        for number, *_ in assembly.joints(ref):
            net = board.pads[ref, number][0][0].split("_")[0]
            assert assembly.WIRE[number] == colour[net], (ref, number)
    assert [number for number, *_ in assembly.joints("J1")] == ["P5", "P8", "P12", "P14"]  # the orange wire stays off


# ---- ways in


def test_the_card_shows_the_contacts_that_the_readme_covers():
    match = re.search(r"cover its contacts ([^(]+) \(3\.3 V\), (B10) \(3\.3Vaux\) and (A11)", README)
    named = {*re.split(", *", match[1]), match[2], match[3]}
    assert {f"{side}{n}" for side, contacts in ways.COVERED.items() for n in contacts} == named
    svg = ways.m2()
    assert set(re.findall(r">([AB]\d+)</text>", svg)) == named
    assert len(re.findall(f'fill="{ways.svg.LIT}"', svg)) == len(named)


def test_all_ways_of_the_readme_are_drawn():
    """A row each, with the rails, the converter's share and the drive of 70 W as the table has them."""
    table = re.search(r"\| way \| the rig cuts(.*?)\n\n", README, re.S)[1].splitlines()[2:]
    assert len(table) == len(ways.TODAY)
    for line, (_, host, _, rail, *_) in zip(table, ways.TODAY, strict=True):
        assert re.search(r"\d+(?:\.\d)? V", rail)[0] in line
        assert any(word in line for word in re.findall(r"OCuLink|SFF-8639|PCIe|USB4", " ".join(host))), line
    svg = ways.today()
    assert svg.count(">rig<") == len(ways.TODAY) and "10 to 15 %" in svg and "10 to 15 %" in README


def test_a_meters_points_are_in_their_nets():
    """The table of hardware/README.md, First power-up: test points of both boards, holes of the plan."""
    rows = re.findall(r"^\| ([A-Z_]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", README, re.M)
    measured = ("RAIL_IN", "SW", "GND", "GATE", "SRC", "OFF", "DISCHARGE", "SCOPE", "VGATE", "OVREF")
    points = {row[0]: row[1:] for row in rows if row[0] in measured}
    assert len(points) == len(measured)
    shared = ("GND", "VGATE", "OVREF")
    nets = perfboard.wanted()
    holes = {}
    for leg in perfboard.legs():
        holes.setdefault(perfboard.strip(leg.hole), nets[leg.ref, leg.pin])
    for net, (board, breakout, hole) in points.items():
        named = net if net in shared else f"{net}0"
        for folder, point in (("board/ssdrig", board), ("breakout/board/breakout", breakout)):
            if re.fullmatch(r"T\d+", point):
                text = (HARDWARE / f"{folder}.net").read_text()
                assert (point, "1") in export.connections(text)[named], (folder, net)
        if hole != "-":
            of = {"RAIL_IN": "RAIL0_IN", "GND": "GND", "VGATE": "VGATE0"}.get(net, named)
            assert holes[perfboard.strip(hole)] == of, (net, hole)
