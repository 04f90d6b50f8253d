"""Boxes for the three-dimensional pictures: each part as large as its body and as high as its data sheet
says (nominal), as VRML. Pictures only: a STEP file of the real parts is their makers' to give."""

import math
import re

from draw import NAME

UNIT_mm = 2.54  # of a VRML model in KiCad
HEIGHT_mm = {  # land pattern: height of its part
    "R_0603": 0.5,
    "C_0805": 1.0,
    "R_1206": 0.7,
    "R_2512": 0.7,
    "L_1812": 3.2,
    "SMA": 2.3,
    "SMB": 2.4,
    "LED_0603": 0.6,
    "SOD-123": 1.2,
    "SOT-23": 1.1,
    "SOT-23-5": 1.2,
    "SOT-223": 1.7,
    "VSSOP-10": 1.0,
    "SO-14": 1.6,
    "TSSOP-14": 1.1,
    "DPAK": 2.3,
    "CP_Radial_10": 16.0,
    "Fuse_ATO": 19.0,
    "Terminal_4": 14.0,
    "Peripheral_4": 10.3,
    "Pico_Socket": 11.0,
    "M2_Socket": 4.2,
    "Header_4": 8.5,
    "Header_8": 8.5,
    # leaded
    "R_Axial": 2.6,
    "R_Axial_5W": 10.0,
    "C_5.08": 6.0,
    "PTC_5.08": 12.0,
    "Fuse_Radial": 8.0,
    **dict.fromkeys(("DO-35", "DO-35_Z"), 2.0),
    "DO-15": 3.6,
    "DO-201": 5.3,
    "LED_3": 5.0,
    **dict.fromkeys(("TO-92_SGD", "TO-92_RAK", "TO-92_GIO"), 5.0),
    **dict.fromkeys(("TO-220_GDS", "TO-220_GDS_small"), 19.0),
    **dict.fromkeys(("DIP-14", "DIP-8_LM393"), 4.5),
}
COLOURS = {"R": (0.15, 0.15, 0.17), "C": (0.62, 0.5, 0.36), "Terminal": (0.1, 0.45, 0.2), "Pico": (0.1, 0.4, 0.2)}
COLOURS |= {"Fuse": (0.75, 0.15, 0.1), "CP": (0.15, 0.2, 0.4), "LED": (0.85, 0.95, 0.85)}
DARK = (0.08, 0.08, 0.09)


def box(shape):
    """The VRML text of a land pattern's part."""
    x0, y0, x1, y1 = (v / UNIT_mm for v in shape.body)
    high = HEIGHT_mm[shape.name] / UNIT_mm
    colour = " ".join(map(str, COLOURS.get(re.split(r"[_-]", shape.name)[0], DARK)))
    faces = (
        cylinder((x1 - x0) / 2, high) if shape.round_body else f"Box {{ size {x1 - x0:.4f} {y1 - y0:.4f} {high:.4f} }}"
    )
    return (
        f"#VRML V2.0 utf8\nTransform {{ translation {(x0 + x1) / 2:.4f} {-(y0 + y1) / 2:.4f} {high / 2:.4f}\n"
        f"children [ Shape {{ appearance Appearance {{ material Material {{ diffuseColor {colour} }} }}\n"
        f"geometry {faces} }} ] }}\n"
    )


def cylinder(radius, high, sides=24):
    """Standing, as faces: KiCad reads no Cylinder."""
    ring = [
        (radius * math.cos(2 * math.pi * k / sides), radius * math.sin(2 * math.pi * k / sides)) for k in range(sides)
    ]
    points = ", ".join(f"{x:.4f} {y:.4f} {z:.4f}" for z in (-high / 2, high / 2) for x, y in ring)
    walls = [f"{k}, {(k + 1) % sides}, {sides + (k + 1) % sides}, {sides + k}, -1" for k in range(sides)]
    top = ", ".join(str(sides + k) for k in range(sides)) + ", -1"
    faces = ", ".join([*walls, top])
    return f"IndexedFaceSet {{ solid FALSE coord Coordinate {{ point [ {points} ] }} coordIndex [ {faces} ] }}"


def equipped(text, folder, shapes):
    """The board's text with a model for each part that has one; the models are written into folder."""
    for shape in shapes:
        if shape.name in HEIGHT_mm:
            (folder / f"{shape.name}.wrl").write_text(box(shape))
    blocks = text.split("\n(footprint ")
    for i, block in enumerate(blocks[1:], 1):
        name = re.match(rf'"{NAME}:([^"]+)"', block)[1]
        if name in HEIGHT_mm:
            model = f'(model "{folder}/{name}.wrl" (offset (xyz 0 0 0)) (scale (xyz 1 1 1)) (rotate (xyz 0 0 0)))'
            blocks[i] = block.replace("(embedded_fonts no))", f"(embedded_fonts no)\n{model})", 1)
    return "\n(footprint ".join(blocks)
