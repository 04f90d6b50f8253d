"""Draws the assembly of the board step by step, both sides, from the layout's own data."""

import functools

import footprints
import layout
import place
import svg

PX = 5.6  # of a mm
EDGE_px, TOP_px = 16, 66
GAP_px = 44  # between front and back
MACHINE = "the machine"
WIRE = {"P3": "#e08a1e", "P5": "#222222", "P8": "#c0392b", "P12": "#222222", "P14": "#e6c700"}  # of a SATA power cable
STEPS = (  # title, packages of bom.csv (or MACHINE), what to mind
    (
        "What the machine has placed",
        MACHINE,
        "Compare before you solder: marks at pin 1, cathodes (bar), no bridges at U101-U401. None is on the back.",
    ),
    (
        "Pin headers",
        "2.54 mm",
        "J5 to J8, long side up. Solder one pin, look whether it stands straight, then the rest.",
    ),
    ("Screw terminals", "5.08 mm", "J3 opens to the left edge, J4 to the right one. Plenty of solder: 5 A."),
    (
        "Supply connector",
        "MATE-N-LOK",
        "J9: 12V to the upper edge, its flat long wall to the left. Instead of J1, or beside it; never two supplies.",
    ),
    ("Fuse holders", "ATO blade", "Two clips each (Keystone 3557-2), flat on the board; the fuses come last."),
    ("Electrolytics", "radial 10 x 16", "The long lead is plus: pad 1, marked +. The wrong way round they burst."),
    (
        "Sockets of the Pico",
        "module",
        "Plug the Pico with its headers into the sockets, so that they line up, then solder. USB to the upper edge.",
    ),
    (
        "SATA cables",
        ("SATA 15 plug", "SATA 15 receptacle"),
        "J1: the half with the plug, J2: the half with the receptacle. Red 5V, yellow 12V, black GND. The orange wire"
        " only at J2. Cable ties through the holes beside them.",
    ),
)


@functools.cache
def parts():
    """{reference: package} of all that the bill has on the board."""
    return {ref: footprints.PACKAGE[part.item] for ref, part in layout.PARTS.items() if part.item}


@functools.cache
def by_machine(ref):
    return all(pad.kind == footprints.SMD for pad in footprints.footprint(layout.PARTS[ref]).pads)


def new_in(step):
    """References that a step adds."""
    packages = STEPS[step][1]
    wanted = (packages,) if isinstance(packages, str) else packages
    return [
        ref
        for ref, package in parts().items()
        if (by_machine(ref) if packages == MACHINE else package in wanted and not by_machine(ref))
    ]


PLACES = place.places()


def on_board(ref, x, y):
    """mm on the board of a point of the part's land pattern."""
    px, py, angle = PLACES[ref]
    dx, dy = place.turned(x, y, angle)
    return px + dx, py + dy


def body(ref):
    """x0, y0, x1, y1 (mm on the board) of a part."""
    x0, y0, x1, y1 = footprints.footprint(layout.PARTS[ref]).body
    (a, b), (c, d) = on_board(ref, x0, y0), on_board(ref, x1, y1)
    return min(a, c), min(b, d), max(a, c), max(b, d)


@functools.cache
def joints(ref):
    """[(pad's number, x, y, size)] of the plated holes of a part."""
    pads = footprints.footprint(layout.PARTS[ref]).pads
    sata = parts()[ref].startswith("SATA")  # its small holes are for cables with a wire at each contact
    used = [p for p in pads if p.kind == footprints.THT and (not sata or p.number in WIRE)]
    return [(p.number, *on_board(ref, p.x, p.y), p.width) for p in used if (ref, p.number) != ("J1", "P3")]


def front(x, y):
    return EDGE_px + x * PX, TOP_px + y * PX


def back(x, y):
    """As seen after the board was turned about its left or right edge: mirrored."""
    return EDGE_px + (place.WIDTH - x) * PX, TOP_px + (place.HEIGHT + y) * PX + GAP_px


def empty(where):
    shapes = [svg.rect(*where(0, 0), *where(place.WIDTH, place.HEIGHT), "#eaf1ea", "#6d806d", rx=4)]
    return shapes + [svg.circle(*where(x, y), 1.6 * PX, "#ffffff", "#6d806d") for x, y in place.HOLES]


def bodies(refs, fill, edge):
    """All of them as one path."""
    boxes = []
    for ref in refs:
        x0, y0, x1, y1 = body(ref)
        (a, b), (c, d) = front(x0, y0), front(x1, y1)
        boxes.append(f"M{svg.number(a)} {svg.number(b)}H{svg.number(c)}V{svg.number(d)}H{svg.number(a)}Z")
    return [svg.path("".join(boxes), fill, edge, stroke_width=0.6)] if boxes else []


def named(ref):
    x0, y0, x1, y1 = body(ref)
    x, y = front((x0 + x1) / 2, (y0 + y1) / 2)
    if parts()[ref].startswith("SATA"):  # the wires are in the middle
        x = front(x0, 0)[0] - 16
    return svg.text(x, y + 4, ref, 11, "middle", stroke="#ffffff", stroke_width=3, paint_order="stroke")


def marks(ref, package):
    """What tells the way round, on the front."""
    if package == "radial 10 x 16":
        (x, y), (_, px, py, _) = on_board(ref, 0, 0), next(j for j in joints(ref) if j[0] == "1")
        x, y = front(x + 1.55 * (px - x), y + 1.55 * (py - y))
        return [svg.text(x, y + 5, "+", 15, "middle", font_weight="bold")]
    if package.startswith("SATA"):
        return [svg.circle(*front(x, y), 5.5, WIRE[number], "#000000") for number, x, y, _ in joints(ref)]
    return []


def picture(step):
    """The SVG of a step: the front with its parts lit, the back with its joints."""
    title, packages, mind = STEPS[step]
    new = new_in(step)
    before = [ref for i in range(step) for ref in new_in(i)]
    wide = 2 * EDGE_px + place.WIDTH * PX
    shapes = [svg.text(EDGE_px, 24, f"Step {step + 1} of {len(STEPS)}: {title}", 17, font_weight="bold")]
    shapes += [svg.text(EDGE_px, 43, mind, 11.5), svg.text(EDGE_px, 60, "front: put in", 11, fill="#555555")]
    shapes += [*empty(front), *bodies(before, "#d3d3cd", "#a5a59e"), *bodies(new, svg.LIT, "#8a4b00")]
    if packages != MACHINE:
        for ref in new:
            shapes += [named(ref), *marks(ref, parts()[ref])]
    y = back(0, 0)[1] - 8
    words = "back, mirrored: nothing to do" if packages == MACHINE else "back, mirrored: solder the orange joints"
    shapes += [svg.text(EDGE_px, y, words, 11, fill="#555555"), *empty(back)]
    for refs, fill in ((before, "#bdbdb6"), (new, svg.LIT)):
        for ref in refs:
            shapes += [svg.circle(*back(x, y), size / 2 * PX, fill, "#333333") for _, x, y, size in joints(ref)]
    return svg.page(wide, back(0, place.HEIGHT)[1] + 14, f"Assembly of the board, step {step + 1}: {title}", shapes)


def pictures():
    """{file: SVG}."""
    return {f"board-{i + 1}.svg": picture(i) for i in range(len(STEPS))}
