"""Where each leaded part of the breakout's board is, its 5 A copper and the tracks drawn by hand. mm, y downwards,
angle counter-clockwise. The current runs from J1 through the fuse, Q101 and Q102, and to the sensor at J2."""

import functools
import math

WIDTH, HEIGHT, LAYERS = 100.0, 100.0, 2
CLEARANCE_mm, TRACK_mm, VIA_mm, DRILL_mm = 0.2, 0.25, 0.8, 0.4
EDGE_mm = 0.5
THICKNESS_mm, SUPPLY_PLANE = 1.6, "+3V3"
OUTLINE = [(0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)]
OFF_BOARD: list[tuple[float, float, float, float]] = []
VOIDS: list[tuple[str, list]] = []
HOLES = ((4.0, 4.0), (WIDTH - 4.0, 4.0), (4.0, HEIGHT - 4.0), (WIDTH - 4.0, HEIGHT - 4.0))
MECHANICAL = {f"H{i + 1}": at for i, at in enumerate(HOLES)}
ETCHED = (84.0, 98.4, 1.0, (76.0, 97.4, 92.0, 99.3))
PICO = (80.0, 27.5)
# columns of resistors, from below
LEFT = ("R101", "R114", "R126", "R103", "R104", "R105", "R106", "R121", "R124", "R125", "R119", "R120", "R26")
RIGHT = ("D101", "R110", "R111", "R109", "R115", "R112", "R113", "R128", "R2", "R1", "R3", "R8", "R9")
SMALL = ("C102", "C103", "C105", "C106", "C108", "C1", "C8", "C7", "C9", "C10")
PLACES = {
    "J1": (25.0, 93.0, 0),
    "J2": (60.0, 93.0, 0),
    "F101": (12.0, 70.0, 90),
    "Q101": (16.0, 52.0, 0),
    "Q102": (30.0, 52.0, 180),
    "C101": (21.0, 61.5, 0),
    "D104": (23.0, 70.0, 0),
    "D102": (38.5, 74.0, 270),
    "R108": (71.9, 80.0, 0),
    "F102": (92.0, 80.0, 90),
    "Q104": (84.0, 69.0, 0),
    "U1": (*PICO, 0),
    "U102": (40.0, 13.0, 0),
    "U2": (40.0, 32.0, 0),
    "Q103": (54.0, 47.0, 0),
    "Q1": (54.0, 39.5, 0),
    "Q105": (54.0, 32.0, 0),
    "U7": (54.0, 25.5, 0),
    "U8": (47.6, 22.8, 90),
    "U6": (54.0, 19.0, 0),
    "D2": (54.0, 13.0, 0),
    "R15": (54.0, 8.5, 0),
    "R11": (40.0, 46.7, 0),
    "R30": (40.0, 43.5, 0),
    "R122": (63.0, 58.0, 0),
    "R123": (78.0, 58.0, 0),
    "R127": (14.0, 5.5, 0),
    "R31": (27.0, 5.0, 0),
    "R27": (61.0, 55.0, 0),
    "R29": (74.0, 55.0, 0),
    "R28": (87.0, 55.0, 0),
    "Q2": (48.0, 32.0, 90),
    "R24": (78.0, 61.6, 0),
    "D105": (60.0, 62.0, 0),
    "D106": (66.0, 62.0, 0),
    "D7": (92.0, 61.6, 0),
    "J3": (58.0, 67.5, 0),
    "J4": (95.5, 38.0, 270),
    "F1": (78.0, 91.0, 0),
    "D3": (88.5, 90.0, 180),
    "C11": (43.5, 90.0, 0),
    "T101": (37.6, 50.0, 0),
    "T102": (23.0, 52.0, 0),
    "T103": (45.0, 52.5, 0),
    "T104": (33.8, 8.0, 0),
    "T105": (46.5, 8.0, 0),
    "T1": (84.0, 94.8, 0),
    "T2": (93.0, 66.0, 0),
    "T3": (62.2, 8.0, 0),
    "T4": (66.6, 8.0, 0),
    **{ref: (12.0, 46.5 - 3.12 * k, 0) for k, ref in enumerate(LEFT)},
    **{ref: (26.0, 46.5 - 3.12 * k, 0) for k, ref in enumerate(RIGHT)},
    **{ref: (64.5, 48.0 - 4.0 * k, 0) for k, ref in enumerate(SMALL)},
}
X_TERMINAL = lambda middle: [middle + (i - 1.5) * 5.08 for i in range(4)]
TEXTS = [  # x, y, size, angle, text
    *((x, 86.6, 1.0, 0, name) for x, name in zip(X_TERMINAL(25.0), ("IN", "GND", "GND", "OUT"))),
    *((x, 86.6, 1.0, 0, name) for x, name in zip(X_TERMINAL(60.0), ("S+", "S-", "GND", "12V"))),
    (25.0, 98.8, 1.0, 0, "SUPPLY 5V IN, DRIVE OUT"),
    (60.0, 98.8, 1.0, 0, "SENSOR BOARD, 12V"),
    (80.0, 3.8, 1.0, 0, "USB"),
    (73.5, 80.0, 1.0, 0, "R108 GETS HOT"),
    *((58.0 + 2.54 * i, 71.0, 1.0, 90, name) for i, name in enumerate(("3V3", "GND", "SCL", "SDA", "ALRT", "VBUS"))),
    *(
        (98.4, 38.0 + 2.54 * i, 1.0, 0, name)
        for i, name in enumerate(("HP", "DP", "GND", "3V3", "FST", "TRG", "SYN", "ACT"))
    ),
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


IN = [(8.6, 74.6), (15.4, 74.6), (15.4, 90.6), (19.4, 90.6), (19.4, 95.4), (8.6, 95.4)]
# between the legs of a TO-220 there is room for 2 mm: on both sides of the board
FUSED = [
    *((8.6, 56.4), (13.4, 56.4), (13.4, 53.5), (15.0, 53.5), (15.0, 50.6), (17.0, 50.6), (17.0, 53.5)),
    *((18.6, 53.5), (18.6, 56.4), (21.0, 56.4), (21.0, 71.5), (16.4, 71.5), (16.4, 65.2), (8.6, 65.2)),
]
NECK = [(27.4, 53.5), (29.0, 53.5), (29.0, 50.6), (31.0, 50.6), (31.0, 53.5), (32.6, 53.5), (32.6, 55.8)]
SWITCHED = [
    *NECK,
    *((54.6, 55.8), (54.6, 77.8), (59.5, 77.8), (59.5, 82.2), (54.6, 82.2), (54.6, 95.4), (50.2, 95.4)),
    *((50.2, 60.2), (27.4, 60.2)),
]
OUT = [
    *((30.6, 79.6), (59.4, 79.6), (59.4, 95.4), (55.6, 95.4), (55.6, 84.2), (34.7, 84.2)),
    *((34.7, 95.4), (30.6, 95.4)),
]


# the ground's backbone, where the pours are cut to pieces: capacitors, FETs, comparator, regulator and reference
GROUND = [
    [(67.04, 12.0), (67.04, 36.0), (68.6, 37.5), (68.6, 42.5), (67.04, 44.0), (67.04, 48.0)],
    [(67.04, 48.0), (65.5, 50.2), (58.5, 50.2), (56.54, 47.0)],
    [(56.54, 47.0), (56.54, 46.0), (55.0, 44.6), (47.0, 44.6), (45.08, 46.7)],
    [(36.19, 16.81), (43.81, 16.81), (46.5, 18.5), (51.46, 19.0)],
    [(51.46, 19.0), (52.7, 20.8), (54.0, 22.4), (54.0, 25.5)],
]


def pours():
    """[(net, layer, points)]."""
    return [
        ("RAIL0_IN", "F.Cu", IN),
        ("FUSED0", "F.Cu", FUSED),
        ("FUSED0", "B.Cu", FUSED),
        ("SRC0", "F.Cu", box(17.6, 48.8, 28.4, 53.1)),
        ("SW0", "B.Cu", [*NECK, (37.0, 55.8), (37.0, 60.2), (27.4, 60.2)]),
        ("SW0", "F.Cu", SWITCHED),
        ("RAIL0_OUT", "B.Cu", OUT),
    ]


def tracks():
    """[(net, layer or "via", width, points)] drawn by hand."""
    return [
        ("BARFUSE0", "F.Cu", 1.5, [(85.87, 80.0), (85.87, 82.54), (92.0, 82.54)]),
        ("BAR0", "F.Cu", 1.5, [(92.0, 77.46), (92.0, 72.6), (84.0, 72.6), (84.0, 69.0)]),
        ("SUPPLY_12V", "F.Cu", 1.0, [(67.62, 93.0), (71.2, 93.0), (71.2, 91.0), (75.46, 91.0)]),
        ("SW0", "F.Cu", 1.0, [(38.5, 68.92), (38.5, 58.0)]),
        *(("SW0", "via", 0.8, [(x, y)]) for x in (29.0, 31.5, 34.0, 36.0) for y in (57.2, 59.0)),
        # what carries amperes to the pours of the ground: crowbar, input capacitor, TVS
        ("GND", "F.Cu", 2.0, [(86.54, 69.0), (89.6, 66.4), (93.0, 66.0)]),
        ("GND", "F.Cu", 2.0, [(23.5, 61.5), (27.4, 63.4), (30.0, 63.4)]),
        ("GND", "F.Cu", 2.0, [(28.08, 70.0), (32.0, 70.0)]),
        *(("GND", "F.Cu", 0.6, points) for points in GROUND),
    ]
