"""The breakout's board (hardware/breakout/board): one rail of the board's own circuit with leaded parts. Its modules
have the names of the board's, so each look at them is a process of its own."""

import csv
import json
import subprocess
import sys

import pytest
from board_files import kicad  # noqa: F401  a fixture
from conftest import ROOT

FOLDER = ROOT / "hardware/breakout/board"
PATHS = [str(FOLDER), str(ROOT / "hardware/board"), str(ROOT / "host")]


def asked(script):
    """What a script prints as JSON, with the breakout's modules before the board's."""
    head = f"import sys, json\nsys.path[:0] = {PATHS!r}\n"
    done = subprocess.run([sys.executable, "-c", head + script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def facts():
    return asked("""
import release, circuit, layout, place, footprints, models, silk
parts = {part.ref: part for part in circuit.PARTS if not part.ref.startswith("#")}
bodies = {}
for ref, (x, y, angle) in place.places().items():
    shape = footprints.footprint(parts[ref])
    a, b, c, d = footprints.extent(shape)
    (p, q), (r, s) = place.turned(a, b, angle), place.turned(c, d, angle)
    m = shape.margin
    bodies[ref] = (x + min(p, r) - m, y + min(q, s) - m, x + max(p, r) + m, y + max(q, s) + m)
print(json.dumps({
    "stale": release.stale(), "lacking": release.lacking(release.bill()), "usd": release.total_usd(release.bill()),
    "size": [place.WIDTH, place.HEIGHT, place.LAYERS], "bodies": bodies,
    "kinds": sorted({pad.kind for ref, part in parts.items() if part.item for pad in footprints.footprint(part).pads}),
    "angles": {ref: angle for ref, (x, y, angle) in place.places().items()},
    "nets": {ref: part.nets for ref, part in parts.items()}, "order": release.order(release.bill()),
    "marks": {ref: [parts[ref].nets[footprints.footprint(parts[ref]).pads[0].number],
        silk.sided(footprints.footprint(parts[ref]), -2, -2, 2, 2)]
        for ref in ("D2", "D3", "D101", "D102", "D104", "D105", "D7", "U2", "U102", "Q105", "Q2", "U7", "U8", "R26")},
    "flat": sorted({footprints.footprint(part).name for part in parts.values()} - set(models.HEIGHT_mm)),
}))
""")


@pytest.mark.slow
def test_sources_and_files_agree_and_no_part_lacks_a_number(facts):
    assert facts["stale"] == [] and facts["lacking"] == [] and 40 < facts["usd"] < 60


def test_it_is_small_has_two_layers_and_only_leaded_parts(facts):
    width, height, layers = facts["size"]
    assert width <= 100 and height <= 100 and layers == 2 and facts["kinds"] == ["thru_hole"]
    assert facts["flat"] == ["TestPad_1.5"]  # all else has a height for the pictures


def test_the_print_shows_which_way_round_a_part_goes(facts):
    """A stripe or a flat side at the cathode, a notch at pin 1's end, a second line at a TO-92's flat side."""
    marks = facts["marks"]
    cathodes = {"D2": "VGATE", "D3": "VGATE", "D101": "GATE0", "D102": "SW0", "D104": "FUSED0"}
    cathodes |= dict.fromkeys(("D105", "D7"), "GND")
    for ref, net in cathodes.items():
        assert marks[ref][0] == net and all(x0 == x1 < -1 for x0, _, x1, _ in marks[ref][1]) and marks[ref][1]
    for ref in ("U2", "U102"):
        assert {y for _, y0, _, y1 in marks[ref][1] for y in (y0, y1)} == {-2, -1}
    for ref in ("Q105", "Q2", "U7", "U8"):
        assert [y0 == y1 > 1 for _, y0, _, y1 in marks[ref][1]] == [True]
    assert marks["R26"][1] == []


def test_parts_lie_as_the_readme_says(facts):
    """Its "Which way round": KiCad makes the pad with number 1 square."""
    nets, angles = facts["nets"], facts["angles"]
    squares = {ref: nets[ref]["1"] for ref in ("D2", "D3", "D101", "D102", "D104", "D105", "C101", "C11")}
    cathodes = {"D2": "VGATE", "D3": "VGATE", "D102": "SW0", "D104": "FUSED0", "D105": "GND"}
    assert squares == cathodes | {"D101": "SRC0", "C101": "FUSED0", "C11": "VGATE"}  # D101: the gate is its cathode
    assert {ref: angles[ref] for ref in ("U2", "U102", "U6", "U7", "Q105", "U8", "Q2")} == {
        **dict.fromkeys(("U2", "U102", "U6", "U7", "Q105"), 0),
        **dict.fromkeys(("U8", "Q2"), 90),
    }
    assert {ref: angles[ref] for ref in ("Q101", "Q102", "Q103", "Q104", "Q1")} == {
        **dict.fromkeys(("Q101", "Q103", "Q104", "Q1"), 0),
        "Q102": 180,
    }


def test_no_part_is_in_anothers_room(facts):
    bodies = list(facts["bodies"].items())
    for i, (ref, (x0, y0, x1, y1)) in enumerate(bodies):
        assert min(x0, y0) > 0 and max(x1, y1) < 100, ref
        for other, (a, b, c, d) in bodies[i + 1 :]:
            assert not (x0 < c and a < x1 and y0 < d and b < y1), (ref, other)


def test_the_rail_is_the_boards_with_all_that_protects_it(facts):
    """Fuse first; TVS, lock-out, freewheel diode, gate clamp, crowbar with its fuse; PERST# held by the rig."""
    nets = facts["nets"]
    assert nets["F101"] == {"1": "RAIL0_IN", "2": "FUSED0"}
    assert {"RAIL0_IN"} & set(nets["J1"].values()) and "RAIL0_OUT" in nets["J1"].values()
    behind = [ref for ref, of in nets.items() if "FUSED0" in of.values()]
    assert set(behind) == {"F101", "C101", "D104", "Q101", "R119"}
    assert [ref for ref, of in nets.items() if "RAIL0_IN" in of.values()] == ["F101", "J1"]
    assert nets["D102"] == {"1": "SW0", "2": "GND"} and nets["D101"] == {"3": "GATE0", "1": "SRC0"}
    assert nets["R108"]["2"] == nets["F102"]["1"] and nets["F102"]["2"] == nets["Q104"]["3"]
    assert nets["U102"] == {"1": "OVREF", "2": "GND", "3": "OVSHARE0", "4": "OVGATE0", "5": "VGATE"}
    assert nets["R15"] == {"1": "PERST_HOST", "2": "PERST"} and nets["Q1"]["3"] == "PERST"
    assert nets["F1"] == {"1": "SUPPLY_12V", "2": "FUSED_12V"}  # the gates' lead is fused, too
    # what the lock-out takes once the 12 V have gone; nothing else hangs before the diode
    assert nets["D3"] == {"1": "VGATE", "2": "FUSED_12V"} and nets["C11"] == {"1": "VGATE", "2": "GND"}
    assert {ref for ref, of in nets.items() if "FUSED_12V" in of.values()} == {"F1", "D3"}
    assert nets["R125"]["1"] == nets["R127"]["1"] == "VGATE"


def test_a_pins_net_is_that_of_the_firmware(facts):
    pico = facts["nets"]["U1"]
    with open(ROOT / "hardware/pins.csv", newline="") as file:
        named = {row["pico_pin"]: row["net"] for row in csv.DictReader(file)}
    used = {pin: net for pin, net in pico.items() if net and pin in named and pin not in ("20", "34")}
    assert {"OFF0", "DISCHARGE0", "SDA", "SCL", "ALERT0", "SCOPE0", "PERST_LOW"} <= set(used.values())
    assert used == {pin: named[pin] for pin in used} and pico["34"] == "FAST"
    with open(ROOT / "hardware/builds/one_rail.json") as file:
        assert (pico["20"], json.load(file)["lock_outs"]) == ("LOCKOUT_PIN", 15)  # pin 20 is GP15


def test_the_order_needs_a_fab_and_no_assembler(facts):
    assert "breakout-gerbers.zip" in facts["order"] and "assembler" not in facts["order"]
    sellers = {word for word in ("Adafruit", "DigiKey", "Mouser", "AliExpress", "Fyndiq") if word in facts["order"]}
    assert sellers == {"Adafruit", "DigiKey", "Mouser"}  # two orders: one at either of the latter


@pytest.mark.slow
def test_kicad_has_nothing_to_say(kicad, tmp_path):
    """Electrical rules, design rules, parity of schematic and layout."""
    messages = asked(f"""
import export, fill, layout
from pathlib import Path
folder = Path({str(tmp_path)!r})
fill.project(folder, (layout.FOLDER / "breakout.kicad_pcb").read_text())
erc = export.rule_check(folder / "breakout.kicad_sch", folder / "erc.txt")
print(json.dumps([erc, fill.rule_check(folder)]))
""")
    assert [ok for ok, _ in messages] == [True, True], messages
