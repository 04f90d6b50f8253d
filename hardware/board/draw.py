"""Writes KiCad 9 files (symbol library, schematic, project) from the parts and wires of circuit.py.

    python hardware/board/draw.py [FOLDER]

Coordinates are in units of 2.54 mm, y downwards on the sheet and upwards in a symbol, as in KiCad. Every pin is joined
to its net: by a wire where circuit.WIRES says so, else by a stub with the net's name. The files are a pure function of
circuit.py (identifiers are UUID 5), so a test can write them again and compare. Format:
https://dev-docs.kicad.org/en/file-formats/"""

import json
import sys
import uuid
from collections import Counter
from itertools import pairwise
from pathlib import Path

import circuit
import footprints
import rules
from symbols import POWER, SYMBOLS

GRID_mm = 2.54
NAME = circuit.NAME
SPACE = uuid.UUID("6a1de1f0-6a0b-5b43-9b2f-6e6f6d0b5a11")
ROOT = str(uuid.uuid5(SPACE, "sheet"))
POWER_STUB = 6  # length of the wire to a power symbol beside a pin: it then stands clear of its neighbours' names
FONT = "(effects (font (size 1.27 1.27)){})"


def quoted(text):
    return '"' + str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def mm(value):
    return f"{value * GRID_mm:.4f}".rstrip("0").rstrip(".")


def ident(*words):
    return quoted(uuid.uuid5(SPACE, "/".join(map(str, words))))


def effects(justify="", hide=False):
    return FONT.format((f" (justify {justify})" if justify else "") + (" (hide yes)" if hide else ""))


def turned(x, y, angle, mirrored):
    """A point of a symbol (y up) on the sheet (y down), after KiCad's rotation (counter-clockwise) and mirroring at the
    y axis."""
    for _ in range(angle // 90):
        x, y = -y, x
    return (-x if mirrored else x), -y


def bought(symbol):
    return "no" if symbol in POWER or symbol in ("TestPoint", "Selector", "M2_Edge") else "yes"


def library_symbol(name, prefix):
    """The text of one symbol; prefix is "" in the library file and "ssdrig:" in the schematic's own copy."""
    symbol = SYMBOLS[name]
    power = name in POWER
    reference = "#FLG" if name == "PWR_FLAG" else "#PWR" if power else symbol["ref"]
    show_names = symbol.get("names", False)
    lines = [f"(symbol {quoted(prefix + name)}"]
    if power:
        lines.append("(power)")
    lines.append("(pin_numbers (hide yes))" if not show_names else "")
    lines.append(f"(pin_names (offset {0.508 if show_names else 0}){'' if show_names else ' (hide yes)'})")
    lines.append(f"(exclude_from_sim no) (in_bom {bought(name)}) (on_board {'no' if power else 'yes'})")
    (rx, ry), (vx, vy) = symbol["texts"]
    lines.append(f'(property "Reference" {quoted(reference)} (at {mm(rx)} {mm(ry)} 0) {effects(hide=power)})')
    lines.append(f'(property "Value" {quoted(name)} (at {mm(vx)} {mm(vy)} 0) {effects()})')
    for field in ("Footprint", "Datasheet", "Description"):
        text = symbol.get("description", "") if field == "Description" else ""
        lines.append(f"(property {quoted(field)} {quoted(text)} (at 0 0 0) {effects(hide=True)})")
    lines.append(f"(symbol {quoted(name + '_0_1')}")
    for points in symbol.get("lines", ()):
        text = " ".join(f"(xy {mm(x)} {mm(y)})" for x, y in points)
        lines.append(f"(polyline (pts {text}) (stroke (width 0.2032) (type default)) (fill (type none)))")
    for x0, y0, x1, y1 in symbol.get("boxes", ()):
        lines.append(
            f"(rectangle (start {mm(x0)} {mm(y0)}) (end {mm(x1)} {mm(y1)}) (stroke (width 0.2032) (type default)) (fill"
            " (type background)))"
        )
    lines.append(")")
    lines.append(f"(symbol {quoted(name + '_1_1')}")
    for number, (label, kind, x, y, angle, length) in symbol["pins"].items():
        lines.append(
            f"(pin {kind} line (at {mm(x)} {mm(y)} {angle}) (length {mm(length)}) "
            f"(name {quoted(label)} {effects()}) (number {quoted(number)} {effects()}))"
        )
    lines.append(") (embedded_fonts no))")
    return "\n".join(filter(None, lines))


def pin_places(part):
    """{pin number: (x, y, outward dx, dy)} on the sheet."""
    places = {}
    for number, (_, _, x, y, angle, _) in SYMBOLS[part.symbol]["pins"].items():
        dx, dy = {0: (-1, 0), 180: (1, 0), 90: (0, -1), 270: (0, 1)}[angle]  # a pin's angle points to the body
        px, py = turned(x, y, part.angle, part.mirrored)
        ox, oy = turned(dx, dy, part.angle, part.mirrored)
        places[number] = (part.x + px, part.y + py, ox, oy)
    return places


def placed(part):
    """One symbol on the sheet."""
    power = part.symbol in POWER
    (rx, ry), (vx, vy) = SYMBOLS[part.symbol]["texts"]
    if part.angle in (90, 270) and part.symbol in circuit.TURNING:
        (rx, ry), (vx, vy) = SYMBOLS[part.symbol]["texts_upright"]
    lines = [
        f"(symbol (lib_id {quoted(NAME + ':' + part.symbol)}) (at {mm(part.x)} {mm(part.y)} {part.angle})"
        + (" (mirror y)" if part.mirrored else ""),
        (
            f"(unit 1) (exclude_from_sim no) (in_bom {bought(part.symbol)}) (on_board {'no' if power else 'yes'})"
            " (dnp no)"
        ),
        f"(uuid {ident('part', part.ref)})",
    ]
    if power and part.angle:
        away = 1 if (part.angle == 90) == (part.symbol == "GND") else -1
        vx, vy = 1.3 * away, -0.15
    # KiCad turns a text with its symbol: a text of a symbol at 90 degrees is written at 90 to stand upright again.
    upright = 90 if part.angle in (90, 270) else 0
    side = ("left" if (vx > 0) == (part.angle == 270) else "right") if power and part.angle else ""
    side = {90: "right", 270: "left"}[part.angle] if upright and part.symbol in circuit.TURNING else side
    for field, text, dx, dy, hide in (
        ("Reference", part.ref, rx, ry, power),
        ("Value", part.value, vx, vy, part.symbol == "PWR_FLAG"),
        ("Footprint", "" if power else f"{NAME}:{footprints.footprint(part).name}", 0, 0, True),
        ("Datasheet", "", 0, 0, True),
        ("Description", "", 0, 0, True),
        ("Part", part.item, 0, 0, True),
    ):
        if field == "Part" and not text:
            continue
        x, y = part.x + dx, part.y - dy
        lines.append(f"(property {quoted(field)} {quoted(text)} (at {mm(x)} {mm(y)} {upright}) {effects(side, hide)})")
    for number in SYMBOLS[part.symbol]["pins"]:
        lines.append(f"(pin {quoted(number)} (uuid {ident('pin', part.ref, number)}))")
    lines.append(
        f"(instances (project {quoted(NAME)} (path {quoted('/' + ROOT)} (reference {quoted(part.ref)}) (unit 1))))"
    )
    lines.append(")")
    return "\n".join(lines)


def wire(x0, y0, x1, y1):
    return (
        f"(wire (pts (xy {mm(x0)} {mm(y0)}) (xy {mm(x1)} {mm(y1)})) (stroke (width 0) (type default)) (uuid"
        f" {ident('wire', x0, y0, x1, y1)}))"
    )


def corner(start, end, first):
    """The one or two straight pieces from start to end; first is "x" or "y": along which axis to go first."""
    (x0, y0), (x1, y1) = start, end
    middle = (x1, y0) if first == "x" else (x0, y1)
    return [(a, b) for a, b in (((x0, y0), middle), (middle, (x1, y1))) if a != b]


def sheet(parts, wires, texts):
    """The schematic's body: symbols, wires, junctions, labels. Raises ValueError where a wire joins two nets."""
    places = {part.ref: pin_places(part) for part in parts}
    nets = {part.ref: part.nets for part in parts}
    pieces, joined = [], set()
    for one, other, first in wires:
        points, names = [], []
        for end in (one, other):
            ref, _, pin = end.partition(".")
            points.append(places[ref][pin][:2])
            names.append(nets[ref][pin])
            joined.add((ref, pin))
        if names[0] != names[1]:
            raise ValueError(
                f"expected {one} and {other} on one net; seen {names[0]} and {names[1]}; do: correct circuit.py"
            )
        pieces += [(piece, names[0]) for piece in corner(*points, first)]
    body, extra = [placed(part) for part in parts], []
    for part in parts:
        drawn = set()
        for number, (x, y, ox, oy) in places[part.ref].items():
            net = part.nets[number]
            if (x, y) in drawn:
                continue  # pins drawn one upon another (the four drains of a SO-8) share wire and name
            drawn.add((x, y))
            if net is None:
                body.append(f"(no_connect (at {mm(x)} {mm(y)}) (uuid {ident('nc', part.ref, number)}))")
            elif (part.ref, number) not in joined and part.symbol not in POWER:
                ox = ox * POWER_STUB if net in POWER else ox
                pieces.append((((x, y), (x + ox, y + oy)), net))
                if net in POWER:
                    extra.append(power_symbol(net, x + ox, y + oy, ox // (abs(ox) or 1), f"{part.ref}-{number}"))
                else:
                    body.append(label(net, x + ox, y + oy, ox, oy, part.ref, number))
            elif part.symbol in POWER and (part.ref, number) not in joined:
                pieces.append((((x, y), (x, y + 1)), net))
                if net in POWER:
                    extra.append(power_symbol(net, x, y + 1, 0, f"{part.ref}-{number}"))
                else:
                    body.append(label(net, x, y + 1, 1, 0, part.ref, number))
    body += [placed(part) for part in extra]
    pins = [place[:2] for part in parts for place in {p[:2]: p for p in places[part.ref].values()}.values()]
    split = {cut for piece, _ in pieces for cut in cuts(piece, pieces, pins)}
    body += [wire(*a, *b) for a, b in sorted(split)]
    ends = Counter([end for piece in split for end in piece] + pins)
    for x, y in sorted(p for p, count in ends.items() if count >= 3):
        body.append(f"(junction (at {mm(x)} {mm(y)}) (diameter 0) (color 0 0 0 0) (uuid {ident('junction', x, y)}))")
    named = set()
    for one, other, _ in wires:
        ref, _, pin = one.partition(".")
        net = nets[ref][pin]
        if net not in named and net not in POWER:  # each node drawn with wires carries its name once
            named.add(net)
            if places[ref][pin][3]:  # of a wire that leaves its pin upwards or downwards the far end has more room
                ref, _, pin = other.partition(".")
            x, y, ox, _ = places[ref][pin]
            body.append(label(net, x, y, ox or 1, 0, "wire", one))
    for x, y, size, text in texts:
        body.append(
            f"(text {quoted(text)} (exclude_from_sim no) (at {mm(x)} {mm(y)} 0) "
            f"(effects (font (size {size} {size})) (justify left top)) (uuid {ident('text', x, y)}))"
        )
    return body


def cuts(piece, pieces, pins):
    """A straight piece of wire, cut where another wire or a pin ends on it."""
    a, b = piece
    spots = {p for other, _ in pieces for p in other} | set(pins)
    inside = {
        p for p in spots if min(a[0], b[0]) <= p[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= p[1] <= max(a[1], b[1])
    }
    line = sorted(inside | {a, b})
    return list(pairwise(line))


def label(net, x, y, ox, oy, ref, number):
    angle, justify = {(1, 0): (0, "left"), (-1, 0): (180, "right"), (0, -1): (90, "left"), (0, 1): (270, "right")}[
        (ox, oy)
    ]
    return (
        f"(label {quoted(net)} (at {mm(x)} {mm(y)} {angle}) {effects(justify + ' bottom')} (uuid"
        f" {ident('label', ref, number)}))"
    )


def power_symbol(net, x, y, sideways, name):
    """Points away from the part: sideways is 1 to the right, -1 to the left, 0 upright."""
    turn = {0: 0, 1: 90, -1: 270}[sideways] if net == "GND" else {0: 0, 1: 270, -1: 90}[sideways]
    return circuit.Part(f"#PWR{name}", net, net, "", x, y, turn, False, {"1": net})


def files():
    """{file name: text} of the KiCad project."""
    symbols = sorted({part.symbol for part in circuit.PARTS} | POWER)
    header = '(generator "ssdrig") (generator_version "9.0")'
    library = [f"(kicad_symbol_lib (version 20241209) {header}", *(library_symbol(name, "") for name in symbols), ")"]
    page = [
        f"(kicad_sch (version 20250114) {header} (uuid {quoted(ROOT)}) (paper {quoted(circuit.PAPER)})",
        (
            f"(title_block (title {quoted(circuit.TITLE)}) (rev {quoted(circuit.REVISION)}) (comment 1"
            f" {quoted(circuit.COMMENT)}))"
        ),
        "(lib_symbols",
        *(library_symbol(name, NAME + ":") for name in symbols),
        ")",
        *sheet(circuit.PARTS, circuit.WIRES, circuit.TEXTS),
        '(sheet_instances (path "/" (page "1")))',
        "(embedded_fonts no))",
    ]
    project = {
        "erc": {"rule_severities": circuit.ERC_SEVERITIES},
        "meta": {"filename": f"{NAME}.kicad_pro", "version": 3},
        "schematic": {"legacy_lib_dir": "", "legacy_lib_list": []},
        "sheets": [[ROOT, "Root"]],
    } | rules.project_rules()
    table = (
        "(sym_lib_table\n  (version 7)\n"
        f'  (lib (name "{NAME}") (type "KiCad") (uri "${{KIPRJMOD}}/{NAME}.kicad_sym") (options "") (descr "symbols of'
        ' this board"))\n)\n'
    )
    return {
        f"{NAME}.kicad_sym": "\n".join(library) + "\n",
        f"{NAME}.kicad_sch": "\n".join(page) + "\n",
        f"{NAME}.kicad_pro": json.dumps(project, indent=2) + "\n",
        "sym-lib-table": table,
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(circuit.__file__).parent
    for name, text in files().items():
        (folder / name).write_text(text)
        print(folder / name)
