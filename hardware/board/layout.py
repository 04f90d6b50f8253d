"""The board's text (KiCad 9) from circuit.py, footprints.py, place.py and tracks.csv. fill.py writes it.

Four layers: F.Cu parts and 5 A pours, In1.Cu ground, In2.Cu +3V3,
B.Cu signals and ground. All is a pure function of the sources named (identifiers are UUID 5). mm, y downwards.
"""

import csv
import functools
from pathlib import Path
from typing import NamedTuple

import circuit
import footprints
import place
import rules
import silk
from draw import NAME, ident, quoted
from footprints import BACK, SMD, THT
from symbols import POWER, SYMBOLS

FOLDER = Path(circuit.__file__).resolve().parent
INNER = " (4 In1.Cu power) (6 In2.Cu power)" if place.LAYERS == 4 else ""
LAYERS = (
    f"(layers (0 F.Cu signal){INNER} (2 B.Cu signal) (13 F.Paste user) (15 B.Paste user) (5"
    " F.SilkS user) (7 B.SilkS user)\n(1 F.Mask user) (3 B.Mask user) (25 Edge.Cuts user) (31 F.CrtYd user) (29 B.CrtYd"
    " user) (35 F.Fab user) (33 B.Fab user))"
)
PARTS = {part.ref: part for part in circuit.PARTS if not part.ref.startswith("#")}


class Land(NamedTuple):
    """A pad as it lies on the board; width and height along x and y of the board."""

    ref: str
    number: str
    net: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    drill: float


def net_name(part, number):
    """The name that KiCad's netlist gives the net at a pin of a part; "" where the symbol has no such pin."""
    if number not in part.nets:
        return ""
    net = part.nets[number]
    if net is None:
        return f"unconnected-({part.ref}-{SYMBOLS[part.symbol]['pins'][number][0]}-Pad{number})"
    return net if net in POWER else "/" + net


def lands():
    """Every pad on the board, with KiCad's net names."""
    shapes = []
    for ref, (x, y, angle) in place.places().items():
        for pad in footprints.footprint(PARTS[ref]).pads:
            dx, dy = place.turned(pad.x, pad.y, angle)
            size = (pad.height, pad.width) if angle % 180 else (pad.width, pad.height)
            shapes.append(
                Land(
                    ref,
                    pad.number,
                    net_name(PARTS[ref], pad.number),
                    pad.kind,
                    round(x + dx, 4),
                    round(y + dy, 4),
                    *size,
                    pad.drill,
                )
            )
    for ref, (x, y) in place.MECHANICAL.items():
        pad = footprints.mechanical(ref).pads[0]
        room = pad.width + (1.0 if pad.kind == SMD else 0)  # nothing comes near a mark
        shapes.append(Land(ref, "", "", pad.kind, x, y, room, room, pad.drill))
    return shapes


def tracks():
    """[(KiCad's net name, layer or "via", width, points)]: by hand (place.py) and routed (tracks.csv)."""
    tracks_ = [
        (net if net in POWER else "/" + net, layer, width, points) for net, layer, width, points in place.tracks()
    ]
    with open(FOLDER / "tracks.csv", newline="") as file:
        for row in csv.DictReader(file):
            points = [tuple(map(float, word.split(","))) for word in row["points"].split()]
            tracks_.append((row["net"], row["layer"], float(row["width"]), points))
    return tracks_


@functools.cache
def net_numbers():
    names = sorted({net_name(part, number) for part in PARTS.values() for number in part.nets})
    return {"": 0} | {name: i + 1 for i, name in enumerate(names)}


def line(layer, x0, y0, x1, y1, width, *words):
    return (
        f"(fp_line (start {x0:g} {y0:g}) (end {x1:g} {y1:g}) (stroke (width {width}) (type solid)) (layer"
        f" {quoted(layer)}) (uuid {ident(*words, layer, x0, y0, x1, y1)}))"
    )


def text_effects(size, justify=""):
    return f"(effects (font (size {size} {size}) (thickness {round(size * 0.15, 3)})){justify})"


def pad_text(shape, pad, angle, net, words):
    """One pad. A pad's angle in the file is that on the board, not that in the footprint."""
    kind = (
        "rect"
        if pad.number == "1" and pad.kind == THT
        else "circle"
        if pad.width == pad.height and (pad.kind not in (SMD, BACK) or shape.round_body)
        else "roundrect"
    )
    kicad_kind = SMD if pad.kind == BACK else pad.kind
    text = (
        f"(pad {quoted(pad.number)} {kicad_kind} {kind} (at {pad.x:g} {pad.y:g} {angle:g}) (size {pad.width:g}"
        f" {pad.height:g})"
    )
    if pad.drill:
        text += f" (drill {pad.drill:g})"
    layers = '"F.Cu" "F.Paste" "F.Mask"' if pad.kind == SMD else '"*.Cu" "*.Mask"'
    if pad.kind == SMD and (shape.round_body or shape.ties):  # a mark, a place for a probe, a bridge: no solder
        layers = '"F.Cu" "F.Mask"'
    if shape.bare:
        layers = '"B.Cu" "B.Mask"' if pad.kind == BACK else '"F.Cu" "F.Mask"'
    text += f" (layers {layers})"
    if pad.kind == THT:
        text += " (remove_unused_layers no)"
    if kind == "roundrect":
        text += f" (roundrect_rratio {min(0.25, round(0.25 / min(pad.width, pad.height), 3)):g})"
    # carries 5 A: joined to the ground of every layer, the others (zones: no) leave that to the plane
    if pad.drill >= 1.3 and '"GND"' in net:
        text += " (zone_connect 1) (thermal_bridge_width 1.2) (thermal_gap 0.3)"
    if shape is footprints.FIDUCIAL:
        text += " (solder_mask_margin 0.5) (clearance 0.5)"
    return f"{text}{net} (uuid {ident(*words, pad.number, pad.x, pad.y)}))"


def footprint_text(shape, ref=None, label=None):
    """A footprint of the library; with a reference and where to write it, the same on the board."""
    part, words = PARTS.get(ref), ("footprint", ref or shape.name)
    x, y, angle = place.places()[ref] if part else (*place.MECHANICAL[ref], 0) if ref else (0, 0, 0)
    lines = [f"(footprint {quoted(NAME + ':' + shape.name if ref else shape.name)}"]
    if ref:
        lines.append(f"(layer F.Cu) (uuid {ident(*words)}) (at {x:g} {y:g} {angle:g})")
    else:
        lines.append('(version 20241229) (generator "ssdrig") (generator_version "9.0") (layer F.Cu)')
    lines.append(f"(descr {quoted(shape.what)})")
    probe = bool(part) and part.symbol == "TestPoint"  # its net's name is printed instead of its reference
    shown = label and label.size > 0 and not probe
    lx, ly, turn = (label.x, label.y, label.angle) if shown else (0, 0, 0)
    if ref:
        lx, ly = place.turned(lx - x, ly - y, -angle) if shown else (0, 0)
    value = part.value if part else shape.name
    for field, text, fx, fy, layer, hide in (
        ("Reference", ref or "REF**", lx, ly, "F.SilkS" if shown or not ref else "F.Fab", not shown and bool(ref)),
        ("Value", value, 0, 0, "F.Fab", True),
        ("Datasheet", "", 0, 0, "F.Fab", True),
        ("Description", "", 0, 0, "F.Fab", True),
        *((("Part", part.item, 0, 0, "F.Fab", True),) if part else ()),
    ):
        size = label.size if shown and field == "Reference" else 0.8
        lines.append(
            f"(property {quoted(field)} {quoted(text)} (at {fx:g} {fy:g} {turn if field == 'Reference' else 0:g})"
            f" (unlocked yes) (layer {quoted(layer)}) {'(hide yes) ' if hide else ''}(uuid {ident(*words, field)})"
            f" {text_effects(size)})"
        )
    if part:
        lines.append(
            f'(path {quoted("/" + ident("part", ref).strip(chr(34)))}) (sheetname "/") (sheetfile'
            f" {quoted(NAME + '.kicad_sch')})"
        )
    smd = all(pad.kind in (SMD, BACK) for pad in shape.pads if pad.number)
    if shape in (footprints.HOLE, footprints.FIDUCIAL):
        lines.append("(attr exclude_from_pos_files exclude_from_bom board_only)")
    elif shape.round_body and smd:
        lines.append("(attr smd exclude_from_pos_files exclude_from_bom)")
    elif shape.bare:
        lines.append("(attr smd exclude_from_pos_files exclude_from_bom allow_soldermask_bridges)")
    elif shape.ties:
        lines.append("(attr smd exclude_from_pos_files exclude_from_bom allow_soldermask_bridges)")
    else:
        lines.append(f"(attr {'smd' if smd else 'through_hole'})")
    if probe and label and label.size > 0:
        nx, ny = place.turned(label.x - x, label.y - y, -angle)
        lines.append(
            f"(fp_text user {quoted(silk.name_of(part))} (at {nx:g} {ny:g} {label.angle:g}) (unlocked yes)"
            f" (layer F.SilkS) (uuid {ident(*words, 'name')}) {text_effects(label.size)})"
        )
    for x0, y0, x1, y1 in silk.outline(shape):
        lines.append(line("F.SilkS", x0, y0, x1, y1, silk.LINE_mm, *words))
    for cx, cy, radius in silk.circles(shape):
        lines.append(
            f"(fp_circle (center {cx:g} {cy:g}) (end {cx + radius:g} {cy:g}) (stroke (width {silk.LINE_mm})"
            f" (type solid)) (fill {'yes' if radius < 0.3 else 'no'}) (layer F.SilkS)"
            f" (uuid {ident(*words, 'circle', cx, cy)}))"
        )
    x0, y0, x1, y1 = footprints.extent(shape)
    m = shape.margin
    for layer, (left, top, right, bottom), width in (
        ("F.CrtYd", (x0 - m, y0 - m, x1 + m, y1 + m), 0.05),
        ("F.Fab", shape.body, 0.1),
    ):
        if shape.round_body:
            radius = (right - left) / 2
            lines.append(
                f"(fp_circle (center 0 0) (end {radius:g} 0) (stroke (width {width}) (type solid)) (fill no) (layer"
                f" {quoted(layer)}) (uuid {ident(*words, layer)}))"
            )
            continue
        lines.append(
            f"(fp_rect (start {left:g} {top:g}) (end {right:g} {bottom:g}) (stroke (width {width}) (type solid)) (fill"
            f" no) (layer {quoted(layer)}) (uuid {ident(*words, layer)}))"
        )
    lines += tie_texts(shape, words)
    numbers = net_numbers()
    for pad in shape.pads:
        net = net_name(part, pad.number) if part and pad.number else ""
        lines.append(pad_text(shape, pad, angle, f" (net {numbers[net]} {quoted(net)})" if net else "", words))
    lines.append("(embedded_fonts no))")
    return "\n".join(lines)


def tie_texts(shape, words):
    """The strips that join pads, told to KiCad, and each row's opening in the mask: solder is to flow from pad to
    pad."""
    if not shape.ties:
        return []
    at = {pad.number: pad for pad in shape.pads}
    texts = ["(net_tie_pad_groups " + " ".join(quoted(", ".join(pair)) for pair in shape.ties) + ")"]
    for one, other in shape.ties:
        a, b = at[one], at[other]
        row = [pad.x for pad in shape.pads if pad.y == a.y]
        for layer, x0, x1, half in (("F.Cu", a.x, b.x, 0.2), ("F.Mask", min(row), max(row), a.height / 2 + 0.05)):
            texts.append(
                f"(fp_rect (start {x0:g} {a.y - half:g}) (end {x1:g} {a.y + half:g}) (stroke (width 0) (type solid))"
                f" (fill yes) (layer {quoted(layer)}) (uuid {ident(*words, 'tie', layer, one)}))"
            )
    return texts


def points_text(points):
    words = [f"(xy {x:g} {y:g})" for x, y in points]
    return "\n".join(" ".join(words[i : i + 10]) for i in range(0, len(words), 10))


def zone(name, net, layer, points, priority, connect, fills, clearance=0.2):
    poured = "".join(
        f"\n(filled_polygon (layer {quoted(layer)}) (pts\n{points_text(polygon)}))" for polygon in fills.get(name, ())
    )
    return (
        f"(zone (net {net_numbers()[net]}) (net_name {quoted(net)}) (layer {quoted(layer)}) (uuid"
        f" {ident('zone', name)}) (name {quoted(name)}) (hatch edge 0.5){f' (priority {priority})' if priority else ''}"
        f" (connect_pads{connect} (clearance {clearance})) (min_thickness 0.2)\n(filled_areas_thickness no) (fill yes"
        " (thermal_gap 0.3) (thermal_bridge_width 0.5) (island_removal_mode 0))\n(polygon (pts"
        f" {points_text(points)})){poured})"
    )


def zones(fills):
    edge = place.EDGE_mm
    board = place.box(edge, edge, place.WIDTH - edge, place.HEIGHT - edge)
    inner = [
        zone("ground plane", "GND", "In1.Cu", board, 0, "", fills),
        zone("supply plane", place.SUPPLY_PLANE, "In2.Cu", board, 0, "", fills),
    ]
    zones_ = [
        zone("ground front", "GND", "F.Cu", board, 0, " no", fills),
        *(inner if place.LAYERS == 4 else []),
        zone("ground back", "GND", "B.Cu", board, 0, " no", fills),
    ]
    counted = {}
    for net, layer, points in place.pours():
        counted[net] = counted.get(net, 0) + 1
        zones_.append(
            zone(f"{net} {counted[net]}", net if net in POWER else "/" + net, layer, points, 1, " yes", fills, 0.25)
        )
    return zones_ + [void(f"void {i + 1}", layer, points) for i, (layer, points) in enumerate(place.VOIDS)]


def void(name, layer, points):
    """An area where nothing is poured."""
    exceptions = "".join(f" ({what} allowed)" for what in ("tracks", "vias", "pads", "footprints"))
    return (
        f'(zone (net 0) (net_name "") (layer {quoted(layer)}) (uuid {ident("zone", name)}) (name {quoted(name)})'
        " (hatch edge 0.5) (connect_pads (clearance 0)) (min_thickness 0.2) (filled_areas_thickness no)"
        f" (keepout{exceptions} (copperpour not_allowed)) (fill (thermal_gap 0.3) (thermal_bridge_width 0.5))\n"
        f"(polygon (pts {points_text(points)})))"
    )


def graphics():
    corners = place.OUTLINE
    shapes = [
        f"(gr_line (start {a[0]:g} {a[1]:g}) (end {b[0]:g} {b[1]:g}) (stroke (width 0.1) (type solid)) (layer"
        f" Edge.Cuts) (uuid {ident('edge', a, b)}))"
        for a, b in zip(corners, corners[1:] + corners[:1])
    ]
    for x, y, size, angle, text in silk.TEXTS:
        shapes.append(
            f"(gr_text {quoted(text)} (at {x:g} {y:g} {angle:g}) (layer F.SilkS) (uuid {ident('text', text, x, y)})"
            f" {text_effects(size)})"
        )
    x, y, size, _ = place.ETCHED
    shapes.append(
        f"(gr_text {quoted(f'{circuit.ETCHED} {circuit.REVISION}')} (at {x:g} {y:g} 0) (layer F.Cu)"
        f" (uuid {ident('etched')}) {text_effects(size)})"
    )
    return shapes


def stackup():
    """What the manufacturer is to build, layer by layer."""
    lines = []
    for name, kind, thickness in rules.STACKUP:
        text = f"(layer {quoted(name)} (type {quoted(kind)})"
        text += f" (thickness {thickness})" if thickness else ""
        if kind in ("prepreg", "core"):
            text += f' (material "FR4") (epsilon_r {rules.PERMITTIVITY}) (loss_tangent 0.02)'
        lines.append(text + ")")
    return "(stackup\n" + "\n".join(lines) + '\n(copper_finish "None") (dielectric_constraints no))'


def copper():
    numbers, items = net_numbers(), []
    for i, (net, layer, width, points) in enumerate(tracks()):
        tail = f"(net {numbers[net]}) (uuid {{}}))"
        if layer == "via":
            ((x, y),) = points
            items.append(
                f"(via (at {x:g} {y:g}) (size {width:g}) (drill {place.DRILL_mm}) (layers F.Cu B.Cu) "
                + tail.format(ident("via", i))
            )
        for j, ((x0, y0), (x1, y1)) in enumerate(zip(points, points[1:])):
            start = f"(segment (start {x0:g} {y0:g}) (end {x1:g} {y1:g}) (width {width:g}) (layer {quoted(layer)}) "
            items.append(start + tail.format(ident("track", i, j)))
    return items


@functools.cache  # takes seconds
def labels():
    return silk.labels(PARTS, place.places(), lands(), tracks())


def board(fills):
    """The text of ssdrig.kicad_pcb. fills: {name of a zone: [polygon]}, as fill.py had them from KiCad; {}: not
    poured."""
    lines = [
        '(kicad_pcb (version 20241229) (generator "ssdrig") (generator_version "9.0")',
        f'(general (thickness {place.THICKNESS_mm}) (legacy_teardrops no)) (paper "A4")',
        (
            f"(title_block (title {quoted(circuit.TITLE)}) (rev {quoted(circuit.REVISION)}) (comment 1"
            f" {quoted('Generated by layout.py; not built yet')}))"
        ),
        LAYERS,
        f"(setup {stackup()} (pad_to_mask_clearance 0.05) (allow_soldermask_bridges_in_footprints no))",
        *(f"(net {number} {quoted(name)})" for name, number in net_numbers().items()),
        *(footprint_text(footprints.footprint(PARTS[ref]), ref, labels().get(ref)) for ref in sorted(place.places())),
        *(footprint_text(footprints.mechanical(ref), ref) for ref in place.MECHANICAL),
        *graphics(),
        *copper(),
        *zones(fills),
        "(embedded_fonts no))",
    ]
    return "\n".join(lines) + "\n"


def library():
    """{file name: text} of the land patterns."""
    shapes = {
        shape.name: shape
        for shape in [footprints.HOLE, footprints.FIDUCIAL, *(footprints.footprint(part) for part in PARTS.values())]
    }
    table = (
        "(fp_lib_table\n  (version 7)\n"
        f'  (lib (name "{NAME}") (type "KiCad") (uri "${{KIPRJMOD}}/{NAME}.pretty") (options "") (descr "land patterns'
        ' of this board"))\n)\n'
    )
    return {"fp-lib-table": table} | {
        f"{NAME}.pretty/{name}.kicad_mod": footprint_text(shape) + "\n" for name, shape in sorted(shapes.items())
    }
