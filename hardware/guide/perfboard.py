"""The switch of the two-rail breakout build on one half-size solderable breadboard: which leg in which hole, and the
check that this is the circuit of ../board/circuit.py.

The board: 30 rows; holes a-e of a row are joined, and f-j; four rails run along it ("-L", "+L" left of a, "-R", "+R"
right of j). Switch 0 (SATA 5 V) has the left half, switch 1 (SATA 12 V) the right one, turned by 180 degrees; the
74HC132 stands over the middle and serves both."""

import functools
import re
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "board"))
import circuit
import common

ROWS = 30
COLUMNS = {name: x for x, name in enumerate("abcde")} | {name: x + 7 for x, name in enumerate("fghij")}
RAILS = {"-L": -2, "+L": -3, "-R": 13, "+R": 14}  # x in steps of 2.54 mm, as the columns'
FROM = (1, 2)  # switch 0 is rail 1 of the board, switch 1 its rail 2
IC = "U1"

# part of a rail as ../board/circuit.py names it: hole of each pin, for switch 0. A hole is column and row.
LEFT = {
    "Q01": {"1": "d1", "2": "d2", "3": "d3"},
    "Q02": {"3": "a3", "2": "a4", "1": "a5"},
    "R01": {"1": "c1", "2": "b6"},
    "D01": {"1": "c3", "3": "d6"},
    "R04": {"1": "e6", "2": "e8"},
    "R14": {"1": "a6", "2": "a7"},
    "R03": {"1": "+L7", "2": "b7"},
    "C02": {"1": "d7", "2": "d9"},
    "Q03": {"3": "b8", "2": "b9", "1": "b10"},
    "R05": {"1": "c11", "2": "c10"},
    "R06": {"1": "e10", "2": "e9"},
    "Q04": {"1": "b20", "2": "b21", "3": "b22"},
    "R15": {"1": "d20", "2": "d21"},
    "R08": {"1": "d24", "2": "d22"},
    "R12": {"1": "c24", "2": "c23"},
    "R13": {"1": "d23", "2": "d25"},
    "C05": {"1": "b24", "2": "b23"},
    "C06": {"1": "e23", "2": "e25"},
    "C01": {"1": "e30", "2": "e28"},
}
# what goes to the 74HC132, which does not turn with the right half
TO_IC = (
    {
        "R09": {"1": "c18", "2": "c20"},
        "R10": {"1": "d11", "2": "d13"},
        "C03": {"1": "c13", "2": "c12"},
        "R11": {"1": "b14", "2": "b12"},
    },
    {
        "R09": {"1": "h16", "2": "h11"},
        "R10": {"1": "g20", "2": "g18"},
        "C03": {"1": "h18", "2": "-R18"},
        "R11": {"1": "i17", "2": "-R17"},
    },
)
TERMINALS = {"SW": "a26", "GND": "a28", "RAIL_IN": "a30"}  # one of three poles
THIN = {  # insulated wires on the front
    0: [
        ("b1", "b5"),
        ("a9", "-L9"),
        ("a12", "-L12"),
        ("a19", "-L19"),
        ("c25", "-L25"),
        ("c28", "-L28"),
        ("c15", "c16"),
        ("d16", "d17"),
    ],
    1: [("j12", "-R12"), ("g14", "g15"), ("h15", "h19")],
}
TURNED = [wire for wire in THIN[0] if int(wire[0][1:]) < 12 or int(wire[0][1:]) >= 20]
# 1 mm2 on the back, from leg to leg, on top of the strips: they need no holes
THICK = {0: [("a30", "d2"), ("a26", "c24"), ("c24", "a4"), ("a3", "d3"), ("a28", "b21")], 1: []}
BOND = ("a28", "j3")  # the grounds of both halves, so that no fault returns through the Pico's wire
OUT = (  # to the Pico and the boost module: net of the switch, hole
    {"OFF": "a11", "DISCHARGE": "c14", "SCOPE": "a23", "VGATE": "+L1", "3V3": "h13", "GND": "-L2"},
    {"OFF": "j20", "DISCHARGE": "h17", "SCOPE": "j8", "VGATE": "+R30", "3V3": "i13", "GND": "-R29"},
)
DECOUPLING = {"1": "g13", "2": "g12"}  # C1, 100 nF at the 74HC132


class Leg(NamedTuple):
    ref: str
    pin: str
    hole: str


def turned(hole):
    """The hole of switch 1 that is that of switch 0 after half a turn."""
    column, row = split(hole)
    other = column.replace("L", "R") if column in RAILS else "jihgf"["abcde".index(column)]
    return f"{other}{ROWS + 1 - row}"


def split(hole):
    """(column or rail, row) of a hole. Raises ValueError for one that the board has not."""
    match = re.fullmatch(r"([a-j]|[-+][LR])(\d+)", hole)
    if not match or not 1 <= int(match[2]) <= ROWS:
        raise ValueError(f"expected a hole of the board, a1 to j{ROWS} or of a rail; seen {hole}; do: correct the plan")
    return match[1], int(match[2])


def at(hole):
    """(x, y) of a hole in steps of 2.54 mm."""
    column, row = split(hole)
    return (RAILS | COLUMNS)[column], row


def strip(hole):
    """What the hole is joined with by the board's own copper."""
    column, row = split(hole)
    return column if column in RAILS else f"{'L' if column in 'abcde' else 'R'}{row}"


def name(part, k):
    """Q01 of switch k: Q01/0, as the pictures have it."""
    return f"{part}/{k}"


@functools.cache
def legs():
    """Every Leg that goes into a hole, as a tuple."""
    legs_ = []
    for k in (0, 1):
        own = {ref: pins if k == 0 else {p: turned(h) for p, h in pins.items()} for ref, pins in LEFT.items()}
        for ref, pins in (own | TO_IC[k]).items():
            legs_ += [Leg(name(ref, k), pin, hole) for pin, hole in pins.items()]
        for pole, hole in TERMINALS.items():
            legs_.append(Leg(name("T", k), pole, hole if k == 0 else turned(hole)))
        legs_ += [Leg(name("wire", k), net, hole) for net, hole in OUT[k].items()]
    legs_ += [Leg(IC, str(i + 1), f"e{13 + i}") for i in range(7)] + [
        Leg(IC, str(14 - i), f"f{13 + i}") for i in range(7)
    ]
    return (*legs_, *(Leg("C1", pin, hole) for pin, hole in DECOUPLING.items()))


def thin_wires():
    return THIN[0] + THIN[1] + [(turned(a), turned(b)) for a, b in TURNED]


def thick_wires():
    return THICK[0] + [(turned(a), turned(b)) for a, b in THICK[0]] + [BOND]


def of_switch(net, n, k):
    """The name on the breakout of a net of the board's rail n: no fuse on the board, none in the crowbar, one gate
    isolation, no resistor before SCOPE."""
    for theirs, ours in (("FUSED{}", "RAIL{}_IN"), ("BARFUSE{}", "BAR{}"), ("ISO{}", "RAMP{}"), ("TAP{}", "SCOPE{}")):
        net = net.replace(theirs.format(n), ours.format(n))
    if net in ("GND", "+3V3"):
        return {"GND": "GND", "+3V3": "3V3"}[net]
    if net == "VGATE":
        return f"VGATE{k}"  # a wire of its own to each
    return re.sub(rf"^(RAIL|\D+?){n}", rf"\g<1>{k}", net)


@functools.cache
def wanted():
    """{(part, pin): net} of both switches, from the board's circuit."""
    parts = {part.ref: part for part in circuit.PARTS}
    pins = {}
    for k, n in enumerate(FROM):
        for ref in (*LEFT, *TO_IC[k]):
            for pin, net in parts[f"{ref[0]}{n + 1}{ref[1:]}"].nets.items():
                pins[name(ref, k), pin] = of_switch(net, n, k)
        for pole, net in (("SW", f"SW{k}"), ("GND", "GND"), ("RAIL_IN", f"RAIL{k}_IN")):
            pins[name("T", k), pole] = net
        for wire in OUT[k]:
            pins[name("wire", k), wire] = wire if wire in ("3V3", "GND") else f"{wire}{k}"
    gates = common.schmitt(IC, 0, 0, 0).nets  # the first half serves switch 0, the second switch 1
    pins |= {(IC, pin): {"+3V3": "3V3"}.get(net, net) for pin, net in gates.items()}
    return pins | {("C1", "1"): "3V3", ("C1", "2"): "GND"}


def faults(placed, thin, thick, nets):
    """What keeps a plan from being the circuit `nets`: a list of sentences, empty when it is. placed: [Leg], thin,
    thick: [(hole, hole)]."""
    faults_, used = [], {}
    for what, hole in [(f"{leg.ref}.{leg.pin}", leg.hole) for leg in placed] + [
        (f"wire {a}-{b}", hole) for a, b in thin for hole in (a, b)
    ]:
        if hole in used:
            faults_.append(f"{hole} has both {used[hole]} and {what}")
        used[hole] = what
    joined: dict[str, str] = {}

    def root(node):
        while joined.setdefault(node, node) != node:
            node = joined[node]
        return node

    for a, b in [*thin, *thick]:
        joined[root(strip(a))] = root(strip(b))
    for a, b in thick:
        faults_ += [f"the thick wire {a}-{b} has no leg at {h}" for h in (a, b) if h not in used]
    places = {(leg.ref, leg.pin): root(strip(leg.hole)) for leg in placed}
    faults_ += [f"{ref}.{pin} is not placed" for ref, pin in sorted(nets.keys() - places.keys())]
    faults_ += [f"{ref}.{pin} is in no net" for ref, pin in sorted(places.keys() - nets.keys())]
    of_net, of_place = {}, {}
    for leg in sorted(nets.keys() & places.keys()):
        of_net.setdefault(nets[leg], set()).add(places[leg])
        of_place.setdefault(places[leg], set()).add(nets[leg])
    faults_ += [f"{net} is in {len(pieces)} pieces" for net, pieces in sorted(of_net.items()) if len(pieces) > 1]
    faults_ += [f"{' and '.join(sorted(both))} are joined" for both in of_place.values() if len(both) > 1]
    return faults_


# steps of 2.54 mm that the legs of a part may be apart: (least, most); a resistor stands or lies, a film or
# ceramic capacitor's legs are bent
REACH = {"R": (1, 9), "D": (1, 9), "C": (1, 4)}
# bodies that need their room: (half width, half height) around the middle of the legs, in steps
BODY = {"Q01": (0.9, 1.95), "Q02": (0.9, 1.95), "T": (1.5, 3.0), "C01": (1.97, 1.97), "Q03": (0.7, 1.5)}
BODY |= {"Q04": (0.7, 1.5), "U1": (1.7, 3.8), "C1": (0.5, 1.0)}


@functools.cache
def bodies():
    """{part: (x0, y0, x1, y1)} of what needs room."""
    boxes = {}
    for ref in {leg.ref for leg in legs()}:
        kind = ref.split("/")[0]
        if kind in BODY:
            places = [at(leg.hole) for leg in legs() if leg.ref == ref]
            x, y = (sum(p[i] for p in places) / len(places) for i in (0, 1))
            w, h = BODY[kind]
            boxes[ref] = (x - w, y - h, x + w, y + h)
    return boxes


def clashes():
    """Parts that need one another's room, legs that are too far apart for their part, legs under another's body."""
    conflicts, boxes = [], bodies()
    for i, (one, a) in enumerate(sorted(boxes.items())):
        for other, b in sorted(boxes.items())[i + 1 :]:
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]:
                conflicts.append(f"{one} and {other} need one room")
    for ref in {leg.ref for leg in legs()}:
        kind, places = ref.split("/")[0], [at(leg.hole) for leg in legs() if leg.ref == ref]
        if kind[0] in REACH and kind != "C01" and len(places) == 2:
            (x0, y0), (x1, y1) = places
            apart = ((x0 - x1) ** 2 + (y0 - y1) ** 2) ** 0.5
            low, high = REACH[kind[0]]
            if not low <= apart <= high:
                conflicts.append(f"the legs of {ref} are {apart:.1f} steps apart")
    ends = [(leg.ref, leg.hole) for leg in legs()] + [("a wire", hole) for wire in thin_wires() for hole in wire]
    for ref, hole in ends:
        x, y = at(hole)
        for other, (x0, y0, x1, y1) in boxes.items():
            if other != ref and x0 < x < x1 and y0 < y < y1:
                conflicts.append(f"{ref} in {hole} is under {other}")
    return conflicts
