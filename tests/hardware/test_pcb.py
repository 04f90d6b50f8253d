"""The board's layout, read from the KiCad file itself: parts and nets of the schematic, places, print, KiCad's
rules."""

import html
import math
import os
import re
import shutil
from pathlib import Path

import pytest
from board_files import BOARD, NETS, PARTS, PINS, README, circuit, kicad  # noqa: F401
from board_layout import TEXT, board_file, every, parsed, value

import fill  # isort: skip  (hardware/board, by way of board_files)
import footprints  # isort: skip
import layout  # isort: skip
import place  # isort: skip
import silk  # isort: skip

REAL = {ref: part for ref, part in PARTS.items() if not ref.startswith("#")}


# ---- the file and its sources


@pytest.mark.slow
def test_board_is_the_one_that_the_sources_make():
    """All but the pours, which KiCad computes. A changed circuit.py, bom.csv, values.csv, place.py or tracks.csv is
    seen here."""
    bare = re.sub(r"\n\(filled_polygon .*?\)\)\)(?=\n\(filled_polygon|\)\n)", "", TEXT, flags=re.DOTALL)
    assert bare == layout.board({}), "do: python hardware/board/route.py if parts, nets or places changed, then fill.py"
    assert layout.board(fill.filled()) == TEXT
    for name, text in layout.library().items():
        assert (BOARD / name).read_text() == text, f"do: python hardware/board/fill.py ({name})"
    assert {path.name for path in (BOARD / "ssdrig.pretty").iterdir()} == {
        Path(name).name for name in layout.library() if "pretty" in name
    }


@pytest.mark.slow
def test_parts_are_those_of_the_schematic():
    assert {ref: (f"ssdrig:{footprints.footprint(part).name}", part.value) for ref, part in REAL.items()} == {
        ref: part for ref, part in board_file().parts.items() if ref not in place.MECHANICAL
    }


def test_pads_have_the_nets_of_kicads_netlist():
    nets = {}
    for (ref, number), pads in board_file().pads.items():
        for net, *_ in pads:
            if net and not net.startswith("unconnected-"):
                nets.setdefault(net, set()).add((ref, number))
    assert nets == NETS


@pytest.mark.parametrize("n", range(4))
def test_a_strip_joins_the_first_two_pads_of_each_row_for_an_INA228(n):
    """In copper, and in no other row; the mask is open over each row, for the knife and the solder."""
    (shape,) = [
        item for item in every(board_file().tree, "footprint") if ["Reference", f"J{n + 1}01"] in named_fields(item)
    ]
    assert value(shape, "net_tie_pad_groups") == ["1, 2", "4, 5", "7, 8", "10, 11"]
    at = {pad[1]: [float(v) for v in value(pad, "at")[:2]] for pad in every(shape, "pad")}
    boxes = {"F.Cu": [], "F.Mask": []}
    for item in every(shape, "fp_rect"):
        if (layer := value(item, "layer")[0]) in boxes:
            boxes[layer].append([float(v) for end in ("start", "end") for v in value(item, end)])
    inside = lambda box, pad: box[0] - 0.01 <= at[pad][0] <= box[2] + 0.01 and box[1] < at[pad][1] < box[3]
    reached = lambda layer: sorted(sorted(pad for pad in at if inside(box, pad)) for box in boxes[layer])
    assert reached("F.Cu") == sorted(sorted((str(3 * r + 1), str(3 * r + 2))) for r in range(4))
    assert reached("F.Mask") == sorted(sorted(str(3 * r + c) for c in (1, 2, 3)) for r in range(4))


def named_fields(item):
    return [field[1:3] for field in every(item, "property")]


def test_every_pin_of_the_schematic_has_a_pad():
    for ref, part in REAL.items():
        assert set(part.nets) <= {number for r, number in board_file().pads if r == ref}, ref


# ---- places


def middle(ref, number):
    pads = board_file().pads[ref, number]
    return sum(pad[1] for pad in pads) / len(pads), sum(pad[2] for pad in pads) / len(pads)


@pytest.mark.parametrize(
    "ref, pins, pitch",
    [*((ref, 8, 2.54) for ref in ("J5", "J6", "J8")), ("J7", 4, 2.54), *((ref, 4, 5.08) for ref in ("J3", "J4", "J9"))],
)
def test_pins_of_headers_are_in_order(ref, pins, pitch):
    places = [middle(ref, str(i + 1)) for i in range(pins)]
    assert [round(math.dist(places[0], at), 2) for at in places] == [round(pitch * i, 2) for i in range(pins)]


def test_pico_as_its_data_sheet_has_it():
    """USB up: 1 to 20 down the left, 21 to 40 up the right, 17.78 mm apart. Each signal at the pin of pins.csv."""
    for i in range(20):
        assert middle("U1", str(i + 1)) == pytest.approx((place.PICO[0] - 8.89, middle("U1", "1")[1] + 2.54 * i))
        assert middle("U1", str(40 - i)) == pytest.approx((place.PICO[0] + 8.89, middle("U1", "1")[1] + 2.54 * i))
    assert {row["net"]: board_file().pads["U1", row["pico_pin"]][0][0] for row in PINS} == {
        row["net"]: row["net"] for row in PINS
    }


def test_sata_wires_lie_in_the_order_of_the_contacts():
    for ref in ("J1", "J2"):
        xs = [middle(ref, f"P{i + 1}")[0] for i in range(15)]
        groups = [xs[i : i + 3] for i in range(0, 15, 3)]
        assert all(max(one) < min(other) for one, other in zip(groups, groups[1:]))
        assert all(board_file().pads[ref, pin][0][5] == 1.6 for pin in ("P5", "P8", "P12", "P14"))  # 18 AWG


def test_buses_are_as_long_as_said():
    """All the track of a line with its branches: SPI 14 cm (README); I2C at most 22 cm, some 20 pF of the 80 that its
    pull-ups are made for (test_hardware.py)."""
    length = lambda net: sum(math.dist(start, end) for name, _, _, start, end in board_file().tracks if name == net)
    spi = [length(f"SPI_{name}_PIN") for name in ("SCK", "MOSI", "MISO", "CS")]
    assert 100 < min(spi) and max(spi) < 145
    assert all(100 < length(net) < 220 for net in ("SDA", "SCL"))


@pytest.mark.parametrize("n, pin", [(0, "31"), (1, "32"), (2, "34")])
def test_divider_is_close_to_the_pico(n, pin):
    assert all(
        math.dist(middle("U1", pin), middle(f"{part[0]}{n + 1}{part[1:]}", number)) < 9
        for part, number in (("R12", "2"), ("C06", "1"))
    )


@pytest.mark.parametrize("n", range(4))
def test_loop_of_the_crowbar_is_short(n):
    r = n + 1
    ways = [
        middle(f"Q{r}02", "2"),
        middle(f"R{r}08", "1"),
        middle(f"R{r}08", "2"),
        middle(f"F{r}02", "1"),
        middle(f"F{r}02", "2"),
        middle(f"Q{r}04", "3"),
        middle(f"Q{r}04", "2"),
    ]
    holes = [at for net, at, _ in board_file().vias if net == "GND" and math.dist(at, ways[-1]) < 2.2]
    assert sum(math.dist(a, b) for a, b in zip(ways, ways[1:])) < 27 and len(holes) >= 2


def test_areas_are_those_of_the_readme():
    """Courtyards: of all parts, of what is not in a rail's block, of what could lie on the back."""

    def cm2(refs):
        total = 0.0
        for ref in refs:
            shape = footprints.footprint(PARTS[ref])
            x0, y0, x1, y1 = footprints.extent(shape)
            total += (x1 - x0 + 2 * shape.margin) * (y1 - y0 + 2 * shape.margin) / 100
        return total

    blocks = {f"{name[0]}{rail}{name[1:]}" for name in place.BLOCK for rail in range(1, 5)}
    front = {"DPAK", "R_2512", "TestPad_1.5", "Selector", "LED_0603"}  # heat and hands
    shapes = {ref: footprints.footprint(PARTS[ref]) for ref in place.places()}
    smd = [ref for ref, shape in shapes.items() if all(pad.kind == footprints.SMD for pad in shape.pads)]
    text = " ".join(README.split())
    board = place.WIDTH * place.HEIGHT / 100
    assert f"take {cm2(shapes):.1f} of {board:.0f} cm2 ({cm2(shapes) / board:.0%})".replace("%", " %") in text
    others = cm2(shapes.keys() - blocks)
    assert f"{others:.1f} cm2) and four screws would have to fill {others / 54:.0%}".replace("%", " %") in text
    assert f"SMD parts of {cm2(ref for ref in smd if shapes[ref].name not in front):.1f} cm2" in text


def test_screws_and_edges():
    assert sorted(pads[0][1:3] for (ref, _), pads in board_file().pads.items() if re.fullmatch(r"H\d", ref)) == sorted(
        place.HOLES
    )
    assert len(place.HOLES) == 4 and all(
        min(x, place.WIDTH - x) == 4 == min(y, place.HEIGHT - y) for x, y in place.HOLES
    )
    for ref in ("J1", "J2", "J3", "J4", "J5", "J6", "J7", "J8"):
        x, y = middle(ref, "P8" if ref in ("J1", "J2") else "1")
        assert min(x, y, place.WIDTH - x, place.HEIGHT - y) < 9, ref


# ---- print


def test_what_is_printed():
    printed = [item[1] for item in every(board_file().tree, "gr_text")]
    for n, (rail, *_) in enumerate(circuit.RAILS):
        volt = f"{circuit.VALUES[rail, 'voltage'].value:g}V"
        assert any(f"RAIL {n}" in text and (n in (1, 2) or volt in text) for text in printed)
        assert any(volt in text for text in printed)
        if circuit.VALUES[rail, "fuse"].value:
            assert re.search(r"([\d.]+) A\)", circuit.VALUES[rail, "fuse"].part)[1] + "A" in printed
    assert "5V AND 12V MIXED UP" in printed and "USB THIS SIDE" in printed


@pytest.mark.slow
def test_each_part_has_its_reference_printed():
    assert [ref for ref, label in layout.labels().items() if label.size < 1.0] == []


def drawn(svg):
    """[(text, x, y)] of a picture, to 0.1 mm: releases of KiCad draw the shapes in different ways."""
    texts = re.findall(r'<text x="([^"]*)" y="([^"]*)"[^>]*>([^<]*)</text>', svg)
    return sorted((html.unescape(text), round(float(x), 1), round(float(y), 1)) for x, y, text in texts)


def test_picture_shows_every_part_and_text():
    texts = [text for text, _, _ in drawn((BOARD / "ssdrig-pcb.svg").read_text())]
    references = {ref for ref, part in REAL.items() if part.symbol != "TestPoint"}
    probes = {silk.name_of(part) for part in REAL.values() if part.symbol == "TestPoint"}
    assert references | probes | {item[1] for item in every(board_file().tree, "gr_text")} <= set(texts)


# ---- KiCad


@pytest.fixture(scope="module")
def checked(kicad, tmp_path_factory):
    """(folder, function of a board's text: the rule check's (ok, report))."""
    folder = tmp_path_factory.mktemp("board")

    def check(text):
        fill.project(folder, text)
        return fill.rule_check(folder)

    return check


@pytest.mark.slow
def test_kicad_has_nothing_to_say(checked):
    ok, report = checked(TEXT)
    assert ok, report
    assert (
        "Found 0 DRC violations" in report
        and "Found 0 unconnected pads" in report
        and "Found 0 Footprint errors" in report
    )


@pytest.mark.slow
def test_picture_is_kicads(checked, tmp_path):
    shutil.copy(BOARD / "ssdrig.kicad_pcb", tmp_path)
    assert drawn(fill.picture(tmp_path)) == drawn((BOARD / "ssdrig-pcb.svg").read_text()), (
        "do: python hardware/board/fill.py"
    )


@pytest.mark.slow
def test_kicad_finds_faults(checked):
    """A track that is gone; a pad without its net; another value than the schematic's; a via beside its place, too near
    to a track; a strip that joins pads of two nets without saying so."""
    text = TEXT
    for old, new in (
        (r'\(segment \(start [^\n]*\(layer "B.Cu"\)[^\n]*\n', ""),
        (r'\(net \d+ "/OFF0"\) \(uuid', '(net 0 "") (uuid'),
        (r'"Value" "220k"', '"Value" "22k"'),
        (r'\(net_tie_pad_groups "1, 2" "4, 5"', '(net_tie_pad_groups "4, 5"'),
        (r"\(via \(at 91\.9 47\.95\)", "(via (at 91.9 47.92)"),  # of GND: KiCad is slow where a pour is too near
    ):
        text, count = re.subn(old, new, text, count=1)
        assert count == 1, old
    ok, report = checked(text)
    assert not ok
    for complaint in ("unconnected_items", "net_conflict", "footprint_symbol_mismatch", "clearance", "shorting_items"):
        assert f"[{complaint}]" in report, report


def area(polygons):
    return sum(abs(sum(ax * by - bx * ay for (ax, ay), (bx, by) in zip(p, p[1:] + p[:1]))) / 2 for p in polygons)


@pytest.mark.slow
def test_pours_are_kicads(kicad):
    """Computed again by KiCad's Python module. Releases of KiCad differ in the third decimal."""
    again = list(fill.poured(layout.board({})).values())
    assert len(again) == len(board_file().pours) > 20
    for polygons, (net, layer, ours) in zip(again, board_file().pours):
        assert area(polygons) == pytest.approx(area(ours), rel=0.002), (net, layer)


LIBRARY = {  # ours: KiCad's
    "R_0603": "Resistor_SMD/R_0603_1608Metric",
    "C_0805": "Capacitor_SMD/C_0805_2012Metric",
    "R_1206": "Resistor_SMD/R_1206_3216Metric",
    "R_2512": "Resistor_SMD/R_2512_6332Metric",
    "L_1812": "Inductor_SMD/L_1812_4532Metric",
    "SOT-23": "Package_TO_SOT_SMD/SOT-23",
    "SOT-23-5": "Package_TO_SOT_SMD/SOT-23-5",
    "DPAK": "Package_TO_SOT_SMD/TO-252-2",
    "VSSOP-10": "Package_SO/VSSOP-10_3x3mm_P0.5mm",
    "SO-14": "Package_SO/SOIC-14_3.9x8.7mm_P1.27mm",
    "TSSOP-14": "Package_SO/TSSOP-14_4.4x5mm_P0.65mm",
    "SOD-123": "Diode_SMD/D_SOD-123",
    "SMA": "Diode_SMD/D_SMA",
    "SMB": "Diode_SMD/D_SMB",
    "LED_0603": "LED_SMD/LED_0603_1608Metric",
    "CP_Radial_10": "Capacitor_THT/CP_Radial_D10.0mm_P5.00mm",
    "Pico_Socket": "Module/RaspberryPi_Pico_Common_THT",
    "Terminal_4": "TerminalBlock_Phoenix/TerminalBlock_Phoenix_MKDS-1,5-4-5.08_1x04_P5.08mm_Horizontal",
    "Peripheral_4": "Connector_TE-Connectivity/TE_MATE-N-LOK_350211-1_1x04_P5.08mm_Vertical",
    "Header_8": "Connector_PinHeader_2.54mm/PinHeader_1x08_P2.54mm_Vertical",
    "Header_4": "Connector_PinHeader_2.54mm/PinHeader_1x04_P2.54mm_Vertical",
}


def test_land_patterns_agree_with_kicads():
    """Number, place and size of every pad within 0.1 mm, wherever the origin lies; headers lie along x here, along y
    there."""
    folder = Path(os.environ.get("KICAD9_FOOTPRINT_DIR", "/usr/share/kicad/footprints"))
    if not folder.is_dir():
        pytest.skip(f"no {folder} (package kicad-footprints; or set KICAD9_FOOTPRINT_DIR)")
    read = lambda text: {
        pad[1]: [*map(float, value(pad, "at")[:2]), *sorted(map(float, value(pad, "size")))]
        for pad in every(parsed(text), "pad")
        if pad[1]
    }
    for ours, where in LIBRARY.items():
        library, _, name = where.partition("/")
        theirs = read((folder / f"{library}.pretty" / f"{name}.kicad_mod").read_text())
        mine = read((BOARD / f"ssdrig.pretty/{ours}.kicad_mod").read_text())
        assert theirs.keys() == mine.keys(), ours
        if ours.startswith("Header"):
            theirs = {number: [y, x, *size] for number, (x, y, *size) in theirs.items()}
        ox, oy, fx, fy = *mine["1"][:2], *theirs["1"][:2]
        for number, (x, y, *size) in mine.items():
            tx, ty, *their_size = theirs[number]
            assert (x - ox, y - oy, *size) == pytest.approx((tx - fx, ty - fy, *their_size), abs=0.1), (ours, number)
