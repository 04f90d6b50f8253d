"""Draws the breakout's switch step by step, both sides: python hardware/guide/guide.py writes the pictures."""

import circuit
import perfboard
import svg
from part import VALUES

STEP = 15  # px of 2.54 mm
LEFT_px, TOP_px = 85, 62
BACK_px = 400  # the second panel
COLOUR = {"GND": "#333333", "3V3": "#c0392b", "VGATE": "#8e44ad", "RAIL": "#d35400", "SW": "#d35400", "SRC": "#d35400"}
STEPS = (  # title, parts (as perfboard names them, without the switch), what to mind
    (
        "Thin wires, front",
        ("thin",),
        (
            "Insulated, 0.5 mm. Along the rails and between",
            "the 74HC132's pins. -L9: row 9 of the left - rail.",
            "Measure each with an ohmmeter.",
        ),
    ),
    (
        "Resistors and zener diodes",
        ("R01", "R03", "R04", "R05", "R06", "R09", "R10", "R11", "R12", "R13", "R14", "R15", "D01"),
        ("Neighbouring rows: resistors stand.", "D01: the ring (cathode, pin 3) to the row of R14."),
    ),
    (
        "Socket, small capacitors, SOT-23 adapters",
        ("U1", "C1", "C02", "C03", "C05", "C06", "Q03", "Q04"),
        ("Notch of U1 up. Adapters: look which of their pins", "is 1 (gate), 2 (source), 3 (drain); it differs."),
    ),
    (
        "FETs, terminals, electrolytics, crowbar resistors",
        ("Q01", "Q02", "T", "C01", "R08"),
        (
            "The metal (thick line) of Q01 looks to the middle, that",
            "of Q02 to the rails; they must not touch. C01: minus to GND.",
            "R08 stands 10 mm above the board: it gets hot.",
        ),
    ),
    (
        "Thick wires, back",
        ("thick",),
        ("1 mm2, insulated, on top of the strips, leg to leg:", "these carry the drive's 5 A. One joins both grounds."),
    ),
    (
        "Wires to Pico and boost module",
        ("wire",),
        ("28 AWG, below 10 cm; GND beside the signals.", "VGATE last, after the module is set to 24.0 V."),
    ),
)


def kind(ref):
    return ref.split("/")[0]


def value(ref):
    """As the builder reads it on the part."""
    part, _, k = ref.partition("/")
    if part in ("T", "U1", "C1", "wire"):
        return {"T": "3 poles", "U1": "SN74HC132N", "C1": "100n", "wire": "wire"}[part]
    n = perfboard.FROM[int(k)]
    if part == "R08":  # without a fuse: the resistor is the larger one
        return f"{VALUES[circuit.RAILS[n][0], 'crowbar_said'].value:g} Ohm 5 W"
    if part == "R14":
        return "4k7"  # in place of the board's R14 and R26
    label = next(p.value for p in circuit.PARTS if p.ref == f"{part[0]}{n + 1}{part[1:]}")
    return {"IRLR8743": "IRLB8743", "BZX84C15": "BZX79-C15"}.get(label, label)


def front(hole):
    x, y = perfboard.at(hole)
    return LEFT_px + x * STEP, TOP_px + y * STEP


def back(hole):
    """As seen after the board was turned about its long edge: mirrored."""
    x, y = perfboard.at(hole)
    return BACK_px + LEFT_px + (11 - x) * STEP, TOP_px + y * STEP


def empty(where):
    """The board with its holes and what copper joins, by the function that places a hole."""
    strips, holes = [], []
    for row in range(1, perfboard.ROWS + 1):
        for a, b in (("a", "e"), ("f", "j")):
            (x0, y), (x1, _) = where(f"{a}{row}"), where(f"{b}{row}")
            strips.append(f"M{svg.number(x0)} {svg.number(y)}H{svg.number(x1)}")
    for column in [*perfboard.COLUMNS, *perfboard.RAILS]:
        (x, y0), (_, y1) = (where(f"{column}{row}") for row in (1, perfboard.ROWS))
        ends = [(x, y0), (x, y1 + 1)]  # or the last dot were left out
        holes.append(svg.line(ends, "#ffffff", 3.2, stroke_dasharray=f"0 {STEP}"))  # round ends of no length: dots
    for rail in perfboard.RAILS:
        (x, y0), (_, y1) = where(f"{rail}1"), where(f"{rail}{perfboard.ROWS}")
        strips.append(f"M{svg.number(x)} {svg.number(y0)}V{svg.number(y1)}")
    corners = [where("+L1"), where(f"+R{perfboard.ROWS}")]
    (x0, x1), (y0, y1) = (sorted(p[i] for p in corners) for i in (0, 1))
    shapes = [svg.rect(x0 - 14, y0 - 14, x1 + 14, y1 + 14, "#e9f2e4", "#7a8f70", rx=5)]
    shapes += [svg.path("".join(strips), "none", "#cdb59a", stroke_width=5, stroke_linecap="round")]
    shapes += holes
    for column in (*perfboard.COLUMNS, *perfboard.RAILS):
        x, _ = where(f"{column}1")
        shapes.append(svg.text(x, y0 - 18, column[0], 9, "middle"))
    for row in range(1, perfboard.ROWS + 1):
        shapes.append(svg.text((where("e1")[0] + where("f1")[0]) / 2, where(f"a{row}")[1] + 3, str(row), 8, "middle"))
    return shapes


def drawn_part(ref, lit):
    """A part on the front."""
    places = [leg for leg in perfboard.legs() if leg.ref == ref]
    fill, edge = (svg.LIT, "#8a4b00") if lit else ("#d9d9d4", "#9a9a94")
    box, shapes = perfboard.bodies().get(ref), []
    points = [front(leg.hole) for leg in places]
    if kind(ref) == "wire":
        shapes += [svg.circle(*p, 4, fill, edge) for p in points]
    elif box:
        x0, y0, x1, y1 = (v * STEP + (LEFT_px, TOP_px)[i % 2] for i, v in enumerate(box))
        round_part = kind(ref) == "C01"
        shapes.append(svg.rect(x0, y0, x1, y1, fill, edge, rx=(x1 - x0) / 2 if round_part else 2, opacity=0.85))
    else:
        shapes.append(svg.line(points, edge, 6.5))
        shapes.append(svg.line(points, fill, 5))
    shapes += [svg.circle(*p, 2, svg.DARK) for p in points]
    if kind(ref) == "Q01" or kind(ref) == "Q02":
        x = x0 if turned_left(ref) else x1  # the metal
        shapes.append(svg.line([(x, y0 + 1), (x, y1 - 1)], svg.DARK, 2.5, stroke_linecap="butt"))
    if kind(ref) == "C01":
        minus = next(front(leg.hole) for leg in places if leg.pin == "2")
        shapes.append(svg.text(minus[0] + 5, minus[1] + 3, "-", 12))
    if kind(ref) == "D01":
        shapes.append(svg.circle(*next(front(leg.hole) for leg in places if leg.pin == "3"), 3.2, svg.DARK))
    if lit and kind(ref) != "wire":
        x, y = (sum(p[i] for p in points) / len(points) for i in (0, 1))
        shapes.append(
            svg.text(x, y + 3, kind(ref), 8, "middle", stroke="#ffffff", stroke_width=2, paint_order="stroke")
        )
    return shapes


def turned_left(ref):
    part, k = ref.split("/")
    return (part == "Q02") == (k == "0")


def colour(hole):
    """Of a wire: by the net that it is in."""
    nets, own = perfboard.wanted(), perfboard.strip(hole)
    for leg in perfboard.legs():
        if perfboard.strip(leg.hole) == own:
            net = nets[leg.ref, leg.pin]
            return next((c for start, c in COLOUR.items() if net.startswith(start)), svg.BLUE)
    return COLOUR["GND"]


def listed(refs):
    """[(name, value, holes)] of a step's parts, one line each."""
    lines = []
    for ref in sorted(refs):
        legs = [leg for leg in perfboard.legs() if leg.ref == ref]
        if kind(ref) == "wire":
            lines += [(f"{leg.pin} {ref[-1]}", "", leg.hole) for leg in legs]
        elif ref == "U1":
            lines.append((ref, value(ref), "pin 1 e13"))
        else:
            lines.append((ref, value(ref), " ".join(f"{leg.pin}:{leg.hole}" for leg in legs)))
    return lines


def picture(step):
    """The SVG of a step: front, back, and the list of what is new, in it."""
    title, new, minds = STEPS[step]
    before = {word for _, words, _ in STEPS[:step] for word in words}
    refs = sorted({leg.ref for leg in perfboard.legs()})
    shapes = [svg.text(20, 22, f"Step {step + 1} of {len(STEPS)}: {title}", 15, font_weight="bold")]
    shapes += [svg.text(LEFT_px + 5.5 * STEP, 38, "front", 11, "middle")]
    shapes += [svg.text(BACK_px + LEFT_px + 5.5 * STEP, 38, "back (mirrored)", 11, "middle")]
    shapes += empty(front) + empty(back)
    if before & {"thin"} or "thin" in new:
        for wire in perfboard.thin_wires():
            c = colour(wire[0]) if "thin" in new else "#b0b0aa"
            shapes.append(svg.line([front(h) for h in wire], c, 3))
    shapes += [shape for ref in refs if kind(ref) in before for shape in drawn_part(ref, False)]
    shapes += [shape for ref in refs if kind(ref) in new for shape in drawn_part(ref, True)]
    there = [leg for leg in perfboard.legs() if kind(leg.ref) in before | set(new)]
    for leg in there:
        shapes.append(svg.circle(*back(leg.hole), 3.2, svg.LIT if kind(leg.ref) in new else "#8d8d86", svg.DARK))
    if "thin" in before | set(new):
        for hole in (hole for wire in perfboard.thin_wires() for hole in wire):
            shapes.append(svg.circle(*back(hole), 3.2, svg.LIT if "thin" in new else "#8d8d86", svg.DARK))
    if "thick" in before | set(new):
        for wire in perfboard.thick_wires():
            c = colour(wire[0]) if "thick" in new else "#b0b0aa"
            shapes.append(svg.line([back(h) for h in wire], c, 6, opacity=0.8))
    rows = [(ref, text, holes) for ref, text, holes in listed(r for r in refs if kind(r) in new)]
    for words, wires in (("thin", perfboard.thin_wires()), ("thick", perfboard.thick_wires())):
        rows += [(f"{a} - {b}", "", "") for a, b in wires] if words in new else []
    x = 2 * BACK_px - 10
    for i, words in enumerate(minds):
        shapes.append(svg.text(x, 48 + 14 * i, words, 10.5))
    y0 = 62 + 14 * len(minds)
    for i, (ref, text, holes) in enumerate(rows):
        shapes += [svg.text(x, y0 + 13 * i, ref, 9.5, font_weight="bold"), svg.text(x + 62, y0 + 13 * i, text, 9.5)]
        shapes += [svg.text(x + 135, y0 + 13 * i, holes, 9.5)]
    high = max(TOP_px + 32.2 * STEP, y0 + 13 * len(rows) + 6)
    return svg.page(1090, high, f"{title}: switch of the breakout build, step {step + 1}", shapes)


def pictures():
    """{file: SVG}."""
    return {f"switch-{i + 1}.svg": picture(i) for i in range(len(STEPS))}
