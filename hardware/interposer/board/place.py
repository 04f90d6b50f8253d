"""Where each part of the interposer is, its outline (an M.2 card of 30 x 42 mm), its power copper and its pairs, which
run straight from contact to contact. mm, y downwards, the host's end below; angle counter-clockwise.

F.Cu has pairs and parts, In1 is ground, In2 ground with the host's 3.3 V across the lower end, B.Cu side-band. Under
the contacts of the edge and the lands of the socket In1 is cut away, which brings them near the pairs' impedance
(../pairs.py)."""

import functools
import math

WIDTH, HEIGHT, LAYERS = 30.0, 42.0, 4
CLEARANCE_mm, TRACK_mm, VIA_mm, DRILL_mm = 0.15, 0.15, 0.5, 0.2
EDGE_mm = 0.3
THICKNESS_mm, SUPPLY_PLANE = 0.8, "GND"
MIDDLE = WIDTH / 2
SHOULDER, TONGUE, NOTCH, PEGS = 38.0, 9.925, MIDDLE - 6.125, 6.5  # y, half width, x, y of the socket
arc = lambda x, y, r, first, last: [
    (round(x + r * math.cos(a), 3), round(y + r * math.sin(a), 3))
    for a in (first + (last - first) * k / 12 for k in range(13))
]
OUTLINE = [
    *((0, 0), *arc(MIDDLE, 0, 1.75, math.pi, 0), (WIDTH, 0), (WIDTH, SHOULDER)),
    *((MIDDLE + TONGUE, SHOULDER), (MIDDLE + TONGUE, HEIGHT), (NOTCH + 0.6, HEIGHT)),
    *(*arc(NOTCH, SHOULDER + 1.1, 0.6, 0, -math.pi), (NOTCH - 0.6, HEIGHT)),
    *((MIDDLE - TONGUE, HEIGHT), (MIDDLE - TONGUE, SHOULDER), (0, SHOULDER)),
]
OFF_BOARD = [
    (0, SHOULDER, MIDDLE - TONGUE, HEIGHT),
    (MIDDLE + TONGUE, SHOULDER, WIDTH, HEIGHT),
    (NOTCH - 0.6, SHOULDER + 0.5, NOTCH + 0.6, HEIGHT),
    (MIDDLE - 3.2, 0, MIDDLE + 3.2, 2.9),  # the screw's head
]
HOLES, MECHANICAL = (), {}
ETCHED = (6.0, 1.3, 1.0, (0.4, 0.4, 11.6, 2.2))
X = {n: MIDDLE + 9.25 - 0.25 * (n - 1) for n in range(1, 76)}  # of a contact, at both ends
PAIRED = [n for n in range(5, 56) if n % 2 and n not in (9, 15, 21, 27, 33, 39, 45, 51)]
STRIPS = (3, 9, 15, 21, 27, 33, 39, 45, 51, 57)  # ground between the pairs
ABOVE, BELOW = PEGS + 5.275 + 0.775, HEIGHT - 1.4 - 1.1  # end of the socket's lands, of the edge's contacts
PAIR_mm = BELOW - ABOVE
WIDE_mm = 0.2  # of a strip
PLACES = {
    "J3": (MIDDLE, HEIGHT, 0),
    "J4": (MIDDLE, PEGS, 0),
    "J1": (27.3, 31.2, 90),
    "J2": (1.75, 14.6, 270),
    "R107": (27.75, 20.6, 90),
    "R116": (25.0, 22.4, 90),
    "R117": (25.0, 18.8, 270),
    "U101": (6.75, 17.2, 0),
    "C107": (8.3, 14.6, 0),
    "R118": (8.3, 19.9, 0),
    "C104": (5.2, 20.2, 0),
    "U4": (7.0, 26.2, 90),
    "C3": (5.2, 31.0, 0),
    "R10": (8.4, 31.0, 0),
    "R9": (5.2, 32.45, 0),
    "R15": (8.4, 32.45, 0),
    "Q1": (6.2, 35.0, 0),
}
TEXTS = [  # x, y, size, angle, text
    *((24.6, y, 1.0, 90, name) for y, name in ((34.4, "HOST"), (31.2, "GND"), (28.0, "SW"))),
    (21.0, 1.2, 1.0, 0, "DRIVE UP"),
]


def turned(x, y, angle):
    """A vector turned counter-clockwise as seen on the board (y downwards), by KiCad's angle in degrees."""
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return round(x * c + y * s, 4), round(-x * s + y * c, 4)


@functools.cache
def places():
    """{reference: (x, y, angle)} of every part."""
    return dict(PLACES)


def box(x0, y0, x1, y1):
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


VOIDS = [
    ("In1.Cu", box(X[55] - 0.2, BELOW - 0.1, X[5] + 0.2, HEIGHT)),
    ("In1.Cu", box(X[55] - 0.2, ABOVE - 1.65, X[5] + 0.2, ABOVE + 0.1)),
]
# from the shunt under the socket's body to its front lands
OUT = [
    *((26.2, 18.2), (26.2, 10.0), (5.8, 10.0), (5.8, 3.3), (7.1, 3.3), (7.1, 6.8), (19.9, 6.8)),
    *((19.9, 3.3), (21.6, 3.3), (21.6, 6.8), (23.4, 6.8), (23.4, 3.3), (24.1, 3.3), (24.1, 6.8), (28.0, 6.8)),
    *((29.5, 8.3), (29.5, 18.2)),
]
HOST = [
    *((19.85, 40.0), (19.85, 36.0), (25.2, 36.0), (25.2, 33.0), (29.5, 33.0), (29.5, 37.7), (24.2, 37.7)),
    (24.2, 40.0),
]
LEFT_HOST = box(5.8, 36.4, 7.2, 40.0)


def pours():
    """[(net, layer, points)]."""
    return [
        ("RAIL0_OUT", "F.Cu", OUT),
        ("SW0", "F.Cu", box(25.8, 23.4, 29.4, 29.2)),
        ("HOST_3V3", "B.Cu", HOST),
        ("HOST_3V3", "B.Cu", LEFT_HOST),
        ("HOST_3V3", "In2.Cu", box(5.6, 33.1, 29.5, 37.7)),
    ]


def net_of(n):
    import circuit

    return circuit.PAIRS.get(n, "GND")


def tracks():
    """[(net, layer or "via", width, points)] drawn by hand."""
    strips = [(net_of(n), "F.Cu", WIDE_mm, [(X[n], ABOVE - 0.3), (X[n], BELOW + 0.3)]) for n in (*PAIRED, *STRIPS)]
    vias = [(X[n], y) for n in STRIPS for y in (13.6, 19.4, 23.4, 27.4, 31.4, 35.4)]
    vias += [(X[n], 38.6) for n in STRIPS if n > 20]
    # the other ground contacts
    vias += [(4.9, 37.4), (4.2, 37.4), (5.0, 13.6), (4.2, 13.6), (X[1], 13.6)]
    return [
        *strips,
        *(("GND", "via", VIA_mm, [at]) for at in vias),
        ("GND", "F.Cu", 0.3, [(X[71], 40.0), (X[71], 39.0), (X[75], 39.0), (X[75], 37.4), (4.9, 37.4), (4.2, 37.4)]),
        ("GND", "F.Cu", 0.3, [(X[73], 40.0), (X[73], 39.0)]),
        ("GND", "F.Cu", 0.3, [(X[75], 40.0), (X[75], 39.0)]),
        ("GND", "F.Cu", 0.3, [(X[71], 12.2), (X[71], 13.0), (X[75], 13.0), (5.0, 13.6), (4.2, 13.6)]),
        ("GND", "F.Cu", 0.3, [(X[73], 12.2), (X[73], 13.0)]),
        ("GND", "F.Cu", 0.3, [(X[75], 12.2), (X[75], 13.0)]),
        ("GND", "F.Cu", 0.3, [(X[1], 12.2), (X[1], 13.6)]),
        ("GND", "F.Cu", 0.3, [(X[1], 40.0), (X[1], 39.1), (X[3], 39.1)]),
        # the host's 3.3 V of the left contacts through In2
        *(("HOST_3V3", "via", VIA_mm, [at]) for at in ((6.4, 36.8), (7.0, 36.8), (6.7, 37.4))),
        *(("HOST_3V3", "via", VIA_mm, [(x, y)]) for x in (25.8, 26.6, 27.4, 28.2) for y in (36.6, 37.3)),
        # Kelvin
        ("RAIL0_OUT", "F.Cu", 0.2, [(27.6, 18.1), (27.6, 18.9), (26.6, 18.9), (25.7, 18.0), (25.0, 18.0)]),
        ("SW0", "F.Cu", 0.2, [(27.6, 23.1), (27.6, 22.3), (26.6, 22.3), (25.7, 23.2), (25.0, 23.2)]),
    ]
