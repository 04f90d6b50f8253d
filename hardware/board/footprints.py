"""Land patterns of the board, drawn by us in mm, y downwards, centred on the part (headers: on pin 1); pad 1 as KiCad's
libraries have it.

Sizes follow IPC-7351 (nominal density) or the drawing that a row names; tests compare them with KiCad's own library
where that is installed. A part's package is the column `package` of bom.csv.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import place

SMD, BACK, THT, NPTH = "smd", "smd at the back", "thru_hole", "np_thru_hole"


class Pad(NamedTuple):
    number: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    drill: float = 0.0
    thermal: bool = True  # a plated hole in a plane of its net: joined by spokes


class Footprint(NamedTuple):
    name: str
    what: str
    pads: tuple[Pad, ...]
    body: tuple[float, float, float, float]  # x0, y0, x1, y1 of the part, drawn on silk screen where no pad is
    margin: float  # courtyard around body and pads
    round_body: bool = False
    ties: tuple[tuple[str, str], ...] = ()  # pads that a strip of copper joins, to be cut
    bare: bool = False  # copper that is part of the board: no paste


def two(name, what, x, width, height, body):
    """Two pads side by side, pad 1 to the left."""
    pads = tuple(Pad(number, SMD, side * x, 0, width, height) for number, side in (("1", -1), ("2", 1)))
    return Footprint(name, what, pads, (-body[0] / 2, -body[1] / 2, body[0] / 2, body[1] / 2), 0.25)


def dual(name, what, pins, pitch, x, width, height, body, left=None, right=None):
    """Gull-wing leads at both sides, numbered downwards on the left and upwards on the right. left, right: rows in
    use."""
    half = pins // 2
    left, right = left or range(half), right or range(half)
    top = -(half - 1) / 2 * pitch
    places = [(-x, top + row * pitch) for row in left] + [(x, top + row * pitch) for row in reversed(right)]
    pads = tuple(Pad(str(i + 1), SMD, px, py, width, height) for i, (px, py) in enumerate(places))
    return Footprint(name, what, pads, (-body[0] / 2, -body[1] / 2, body[0] / 2, body[1] / 2), 0.25)


def header(pins):
    pads = tuple(Pad(str(i + 1), THT, i * 2.54, 0, 1.7, 1.7, 1.0) for i in range(pins))
    return Footprint(f"Header_{pins}", "pin header, 2.54 mm", pads, (-1.27, -1.27, 2.54 * pins - 1.27, 1.27), 0.25)


def selector():
    """Four rows of three pads: a strip of copper from the first to the middle one, a gap for solder to the last."""
    pads = tuple(
        Pad(str(3 * row + column + 1), SMD, 1.2 * (column - 1), 2.1 * (row - 1.5), 0.9, 1.2)
        for row in range(4)
        for column in range(3)
    )
    ties = tuple((str(3 * row + 1), str(3 * row + 2)) for row in range(4))
    return Footprint(
        "Selector", "solder bridges: INA228 (joined) or INA229", pads, (-1.95, -4.05, 1.95, 4.05), 0.1, False, ties
    )


def sata_wires():
    """The cut end of a SATA power cable: a hole for the wire of each group of three contacts, small holes for the other
    contacts.

    The land pattern of a connector was not found with a source; every such cable fits these holes (18 AWG: 1.2 mm).
    """
    wire = {"P3": 0, "P5": 1, "P8": 2, "P12": 3, "P14": 4}
    pads = []
    for group in range(5):
        small = [-1.27, 1.27]
        for pin in (f"P{3 * group + i}" for i in (1, 2, 3)):
            if pin in wire:
                pads.append(Pad(pin, THT, (group - 2) * 5.08, 0, 3.0, 3.0, 1.6))
            else:
                pads.append(Pad(pin, THT, (group - 2) * 5.08 + small.pop(0), 3.3, 1.4, 1.4, 0.8))
    # for a cable tie: the joints must not carry the pull
    ties = (Pad("", NPTH, side * 14.2, 0, 2.5, 2.5, 2.5) for side in (-1, 1))
    return Footprint(
        "SATA_Wires", "holes for the wires of a SATA power cable", (*pads, *ties), (-12.5, -2.0, 12.5, 4.4), 0.25
    )


def pico():
    left = [Pad(str(i + 1), THT, -8.89, (i - 9.5) * 2.54, 1.6, 1.6, 1.0) for i in range(20)]
    right = [Pad(str(40 - i), THT, 8.89, (i - 9.5) * 2.54, 1.6, 1.6, 1.0) for i in range(20)]
    what = "Raspberry Pi Pico in two 20-pin sockets (Pico data sheet, figure 3)"
    return Footprint("Pico_Socket", what, (*left, *right), (-10.5, -25.5, 10.5, 25.5), 0.1)


def leaded(name, what, numbers, pitch, size, drill, body, margin=0.25):
    """Holes in a row for the legs of a leaded part, from left to right, by the pin numbers of its symbol."""
    middle = (len(numbers) - 1) / 2
    pads = tuple(Pad(n, THT, (i - middle) * pitch, 0, size, size, drill) for i, n in enumerate(numbers))
    return Footprint(name, what, pads, body, margin)


def across(half_x, half_y):
    return -half_x, -half_y, half_x, half_y


def dip(name, what, numbers, body):
    """Two rows 7.62 mm apart: the symbol's pin number at each place of the package ("": none)."""
    half = len(numbers) // 2
    places = [(-3.81, (i - (half - 1) / 2) * 2.54) for i in range(half)]
    places += [(3.81, ((half - 1) / 2 - i) * 2.54) for i in range(half)]
    pads = tuple(Pad(n, THT, x, y, 1.6, 1.6, 0.8) for n, (x, y) in zip(numbers, places, strict=True))
    return Footprint(name, what, pads, body, 0.25)


M2_PINS = [n for n in range(1, 76) if not 59 <= n <= 66]  # of key M
M2_X = {n: 9.25 - 0.25 * (n - 1) for n in M2_PINS}  # from the middle, host's end down


def m2_edge():
    """The contacts of an M.2 card of key M (PCI Express M.2 1.0, 2.3.5.2), odd ones in front, centred on its end."""
    pads = tuple(Pad(str(n), SMD if n % 2 else BACK, M2_X[n], -1.4, 0.35, 2.2) for n in M2_PINS)
    return Footprint("M2_Edge", "contacts of an M.2 card, key M", pads, (-9.8, -3.9, 9.8, -0.1), 0.0, bare=True)


def m2_socket():
    """TE 1-2199230-6 as public libraries have its lands, with its mouth up: 4.2 mm high, key M. Centred on its pegs."""
    pads = [Pad(str(n), SMD, M2_X[n], 5.275 if n % 2 else -2.275, 0.3, 1.55) for n in M2_PINS]
    pads += [Pad("", SMD, x, 4.5, 1.2, 2.75) for x in (-10.35, 10.35)]
    pads += [Pad("", NPTH, x, 0, d, d, d) for x, d in ((-10, 1.65), (10, 1.15))]
    return Footprint(
        "M2_Socket", "M.2 socket, key M, 4.2 mm, pin 1 right", tuple(pads), (-10.95, -2.5, 10.95, 5.25), 0.25
    )


def row(pins, pitch, size, drill):
    return tuple(Pad(str(i + 1), THT, (i - (pins - 1) / 2) * pitch, 0, size, size, drill) for i in range(pins))


DPAK = Pad("1", SMD, -5.04, -2.28, 2.2, 1.2), Pad("3", SMD, -5.04, 2.28, 2.2, 1.2), Pad("2", SMD, 1.26, 0, 6.4, 5.8)
FUSE = tuple(Pad(n, THT, x, y, 2.8, 2.8, 1.6) for n, x in (("1", -6.735), ("2", 6.735)) for y in (-1.7, 1.7))
BY_PACKAGE = {
    "0603": two("R_0603", "0603 (1608 metric)", 0.825, 0.8, 0.95, (1.6, 0.8)),
    "0805": two("C_0805", "0805 (2012 metric)", 0.95, 1.0, 1.45, (2.0, 1.25)),
    "1206": two("R_1206", "1206 (3216 metric)", 1.4625, 1.125, 1.75, (3.2, 1.6)),
    "1812": two("L_1812", "1812 (4532 metric)", 2.1375, 1.125, 3.4, (4.5, 3.2)),
    "2512": two("R_2512", "2512 (6332 metric)", 2.9625, 1.225, 3.35, (6.3, 3.2)),
    "SMA": two("SMA", "SMA, DO-214AC, pad 1 the cathode", 2.0, 2.5, 1.8, (4.3, 2.6)),
    "SMB": two("SMB", "SMB, DO-214AA, pad 1 the cathode", 2.15, 2.5, 2.3, (4.6, 3.6)),
    "LED 0603": two("LED_0603", "0603 (1608 metric), pad 1 the cathode", 0.825, 0.8, 0.95, (1.6, 0.8)),
    "SOT-223": Footprint(
        "SOT-223",
        "SOT-223, pad 4 the tab",
        (*(Pad(str(k + 1), SMD, -3.15, 2.3 * (k - 1), 2.0, 1.5) for k in range(3)), Pad("4", SMD, 3.15, 0, 2.0, 3.8)),
        (-1.75, -3.25, 1.75, 3.25),
        0.25,
    ),
    "test pad": Footprint(
        "TestPad_1.5",
        "round pad of 1.5 mm to put a probe on",
        (Pad("1", SMD, 0, 0, 1.5, 1.5),),
        (-0.75, -0.75, 0.75, 0.75),
        0.25,
        round_body=True,
    ),
    "SOD-123": two("SOD-123", "SOD-123, pad 1 the cathode", 1.65, 0.9, 1.2, (2.7, 1.6)),
    "SOT-23": dual("SOT-23", "SOT-23, JEDEC TO-236", 6, 0.95, 0.9375, 1.475, 0.6, (1.3, 2.9), (0, 2), (1,)),
    "SOT-23-5": dual("SOT-23-5", "SOT-23-5, JEDEC MO-178", 6, 0.95, 1.1375, 1.325, 0.6, (1.6, 2.9), (0, 1, 2), (0, 2)),
    "VSSOP-10": dual("VSSOP-10", "VSSOP-10, 3 x 3 mm, 0.5 mm", 10, 0.5, 2.2, 1.45, 0.3, (3.0, 3.0)),
    "SO-14": dual("SO-14", "SO-14, JEDEC MS-012AB", 14, 1.27, 2.475, 1.95, 0.6, (3.9, 8.65)),
    "TSSOP-14": dual("TSSOP-14", "TSSOP-14, JEDEC MO-153", 14, 0.65, 2.8625, 1.475, 0.4, (4.4, 5.0)),
    "DPAK": Footprint("DPAK", "DPAK, TO-252; pad 2 the drain", DPAK, (-4.0, -3.3, 4.4, 3.3), 0.25),
    "radial 10 x 16": Footprint(
        "CP_Radial_10",
        "electrolytic, 10 mm, 5 mm apart, pad 1 plus",
        row(2, 5.0, 2.0, 1.0),
        (-5, -5, 5, 5),
        0.25,
        round_body=True,
    ),
    "ATO blade": Footprint("Fuse_ATO", "ATO blade fuse in Keystone 3557-2", FUSE, (-9.91, -3.37, 9.91, 3.37), 0.25),
    "5.08 mm": Footprint(
        "Terminal_4",
        "screw terminal, 4 x 5.08 mm, wires from below (y+)",
        row(4, 5.08, 2.6, 1.3),
        (-10.16, -5.2, 10.16, 4.6),
        0.25,
    ),
    "MATE-N-LOK": Footprint(
        "Peripheral_4",
        "TE 350211-1, MATE-N-LOK header of a supply's 4-pin plug, drawing C-350211; pad 1 is 12 V",
        tuple(Pad(str(i + 1), THT, (i - 1.5) * 5.08, 0, 2.78, 2.78, 1.78) for i in range(4)),
        (-12.7, -5.52, 12.7, 4.13),
        0.25,
    ),
    "module": pico(),
    # leaded parts: of the breakout
    "axial 0.25 W": leaded("R_Axial", "resistor lying, 10.16 mm", "12", 10.16, 1.8, 0.8, across(3.3, 1.25)),
    "axial 5 W": leaded("R_Axial_5W", "cement resistor, 27.94 mm", "12", 27.94, 2.6, 1.2, across(11.5, 4.9)),
    "leaded C": leaded("C_5.08", "ceramic or film, 5.08 mm", "12", 5.08, 1.7, 0.8, across(2.6, 1.4)),
    "leaded PTC": leaded("PTC_5.08", "resettable fuse, 5.08 mm", "12", 5.08, 1.8, 0.9, across(3.7, 1.6)),
    "radial fuse": leaded("Fuse_Radial", "TR5 fuse, 5.08 mm", "12", 5.08, 1.8, 1.0, across(4.3, 4.0)),
    "DO-35": leaded("DO-35", "lying, 7.62 mm, pad 1 the cathode", "12", 7.62, 1.7, 0.8, across(2.0, 1.0)),
    "DO-35 zener": leaded("DO-35_Z", "lying, 7.62 mm, pad 3 the cathode", "31", 7.62, 1.7, 0.8, across(2.0, 1.0)),
    "DO-15": leaded("DO-15", "lying, 10.16 mm, pad 1 the cathode", "12", 10.16, 2.0, 1.0, across(3.8, 1.9)),
    "DO-201": leaded("DO-201", "lying, 10.16 mm, pad 1 the cathode", "12", 10.16, 2.6, 1.4, across(3.6, 2.8)),
    "LED 3 mm": leaded("LED_3", "3 mm, pad 1 the cathode, its flat side", "12", 2.54, 1.7, 0.8, across(1.9, 1.9)),
    "TO-92 FET": leaded("TO-92_SGD", "TN0106, flat side down: S G D", "213", 2.54, 1.7, 0.8, across(2.4, 2.0)),
    "TO-92 TL431": leaded("TO-92_RAK", "TL431, flat side down: REF A K", "231", 2.54, 1.7, 0.8, across(2.4, 2.0)),
    "TO-92 HT75": leaded("TO-92_GIO", "HT75xx-1, flat side down: GND IN OUT", "123", 2.54, 1.7, 0.8, across(2.4, 2.0)),
    "TO-220 series": leaded("TO-220_GDS", "standing, G D S", "123", 2.54, 1.9, 1.1, (-5.2, -3.3, 5.2, 1.6)),
    "TO-220 small": leaded("TO-220_GDS_small", "standing, G D S", "132", 2.54, 1.9, 1.1, (-5.2, -3.3, 5.2, 1.6)),
    "DIP-14": dip("DIP-14", "DIP-14, 7.62 mm", [str(i + 1) for i in range(14)], (-3.3, -9.6, 3.3, 9.6)),
    # of its second comparator the inputs are at ground and at the reference, the output is open
    "DIP-8 LM393": dip(
        "DIP-8_LM393", "LM393 as TL331", ["4", "1", "3", "2", "2", "1", "", "5"], (-3.3, -4.9, 3.3, 4.9)
    ),
    "solder bridges": selector(),
    "M.2 edge": m2_edge(),
    "M.2 socket": m2_socket(),
    "wires 3": Footprint("Wires_3", "holes for wires of 18 AWG", row(3, 3.4, 2.6, 1.3), (-4.7, -1.3, 4.7, 1.3), 0.1),
    "SATA 15 plug": sata_wires(),
    "SATA 15 receptacle": sata_wires(),
}
FIDUCIAL = Footprint(
    "Fiducial_1.0",
    "mark for the machine that places",
    (Pad("", SMD, 0, 0, 1.0, 1.0),),
    (-1, -1, 1, 1),
    0.1,
    round_body=True,
)
HOLE = Footprint(
    "Hole_M3", "M3 screw", (Pad("", NPTH, 0, 0, 3.2, 3.2, 3.2),), (-3.1, -3.1, 3.1, 3.1), 0.1, round_body=True
)


def packages():
    """{item of circuit.py: package of bom.csv}."""
    with open(Path(place.__file__).parent / "bom.csv", newline="") as file:
        return {row["item"]: row["package"] for row in csv.DictReader(file)}


PACKAGE = packages()
# copper that nobody buys
BARE = {"TestPoint": "test pad", "Selector": "solder bridges", "M2_Edge": "M.2 edge", "Wires_3": "wires 3"}


def footprint(part):
    """The Footprint of a part of circuit.py. Raises KeyError naming a package that has none."""
    package = PACKAGE[part.item] if part.item else BARE[part.symbol]
    return header(len(part.nets)) if package == "2.54 mm" else BY_PACKAGE[package]


def extent(shape):
    """x0, y0, x1, y1 of body and pads."""
    boxes = [shape.body] + [
        (p.x - p.width / 2, p.y - p.height / 2, p.x + p.width / 2, p.y + p.height / 2) for p in shape.pads
    ]
    return min(b[0] for b in boxes), min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes)


def mechanical(ref):
    """The Footprint of a screw or a mark, which no schematic has."""
    return HOLE if ref.startswith("H") else FIDUCIAL
