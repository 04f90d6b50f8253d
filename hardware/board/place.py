"""Where each part lies on the board, the copper of the 5 A paths, and the tracks drawn by hand. mm, y downwards, angle
counter-clockwise.

A rail is one block, drawn once with its origin at a corner and put down four times; rail 3 is turned by 180 degrees so
that its terminal faces the right edge as that of rail 0 faces the left one. The current runs down the block: Q01, Q02,
shunt."""

import functools
import math

WIDTH, HEIGHT, LAYERS = 162.5, 82.0, 4
RAIL_AT = ((11.5, 30.0, 0), (39.5, 30.0, 0), (67.5, 30.0, 0), (151.0, 59.0, 180))  # origin and angle of each block
CLEARANCE_mm, TRACK_mm, VIA_mm, DRILL_mm = (
    0.15,
    0.2,
    0.6,
    0.3,
)  # what the cheap four-layer services make without surcharge
EDGE_mm = 0.5  # copper stays this far from the edge
THICKNESS_mm, SUPPLY_PLANE = 1.6, "+3V3"
OUTLINE = [(0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)]
OFF_BOARD: list[tuple[float, float, float, float]] = []  # x0, y0, x1, y1 of what the outline leaves out
VOIDS: list[tuple[str, list]] = []  # (layer, points): nothing is poured there
HOLES = ((4.0, 4.0), (WIDTH - 4.0, 4.0), (4.0, HEIGHT - 4.0), (WIDTH - 4.0, HEIGHT - 4.0))
FIDUCIALS = ((9.5, 3.0), (WIDTH - 9.5, 7.5), (9.5, HEIGHT - 2.0))
MECHANICAL = {f"H{i + 1}": at for i, at in enumerate(HOLES)} | {f"FID{i + 1}": at for i, at in enumerate(FIDUCIALS)}
# the revision, etched: x, y, size, room
ETCHED = (24.0, 80.4, 1.0, (13.0, 79.4, 35.0, 81.3))

# part of a rail (without the rail's number) -> x, y, angle in the block
BLOCK = {
    "Q01": (6, 7, 90),
    "Q02": (6, 20.68, 270),
    "R07": (6, 30, 270),
    "U01": (18.5, 30, 180),
    "C04": (15.6, 27.3, 0),
    "R01": (1.4, 12.9, 270),
    "D01": (12.0, 12.9, 0),
    "R04": (16.6, 13.6, 0),
    "Q03": (18.2, 9.6, 270),
    "R05": (20.7, 6.0, 270),
    "R06": (18.9, 5.9, 90),
    "C02": (12.4, 3.2, 0),
    "R14": (13.05, 6.0, 180),
    "R26": (10.7, 6.6, 270),
    "R03": (12.0, 8.9, 180),
    # crowbar
    "R08": (12.9, 21.8, 90),
    "F02": (17.2, 18.9, 0),
    "Q04": (22.2, 18.9, 180),
    "R09": (25.5, 20.6, 90),
    "R15": (23.0, 22.0, 180),
    # what protects the sensor and the drive
    "D02": (18.4, 25.0, 0),
    "R16": (10.0, 28.5, 0),
    "R18": (10.0, 30.0, 0),
    "R17": (10.0, 31.5, 0),
    "C07": (13.4, 30.0, 90),
    "U02": (20.9, 2.6, 0),
    "R19": (24.0, 2.9, 90),
    "R20": (25.5, 2.9, 90),
    "C08": (27.0, 2.9, 90),
    "R24": (24.0, 6.0, 90),
    "R25": (25.5, 6.0, 90),
    "R27": (27.1, 7.4, 90),
    "Q05": (24.4, 9.8, 270),
    "R21": (22.4, 13.6, 180),
    # lamps, places for a probe
    "R22": (11.5, 35.7, 90),
    "D05": (11.5, 39.1, 90),
    "R23": (13.6, 35.7, 90),
    "D06": (13.6, 39.1, 90),
    # INA228 or INA229
    "J01": (25.2, 30.1, 0),
    "T01": (19.9, -0.15, 0),
    "T02": (12.6, 0.8, 0),
    "T03": (1.2, 20.5, 0),
    "T04": (17.0, 3.2, 0),
    "T05": (21.4, 16.0, 0),
}
HEAD = {n: {f"C{n + 1}01": (6, -6, 90), f"D{n + 1}04": (15.0, -2.6, 0)} for n in (0, 3)}  # likewise in the block

PICO = (108.09, 26.73)
RIGHT = 18.0  # what stands right of the rails 0 to 2
COMMON = {
    "J1": (47.0, 5.0, 0),
    "J2": (47.0, 73.2, 0),
    "J9": (84.0, 15.6, 270),
    "J3": (5.8, 48.62, 270),
    "J4": (156.7, 40.38, 90),
    "F201": (45.5, 21.0, 270),
    "F301": (73.5, 21.0, 270),
    "C201": (36.4, 25.85, 180),
    "C301": (59.4, 23.4, 180),
    "D204": (51.3, 25.0, 270),
    "D304": (67.5, 25.0, 270),
    "U1": (*PICO, 0),
    # gate supply
    "U6": (35.15, 15.6, 270),
    "U9": (26.0, 17.7, 270),
    "C9": (30.5, 14.05, 270),
    "C7": (39.65, 11.6, 90),
    "F1": (39.9, 16.4, 90),
    "U7": (24.6, 8.1, 0),
    "U8": (24.6, 4.6, 0),
    "R26": (29.2, 11.6, 0),
    "C8": (29.0, 7.5, 0),
    "R31": (29.0, 5.8, 0),
    "T6": (26.3, 11.9, 0),
    "D8": (28.95, 9.8, 180),
    "D9": (30.575, 18.35, 270),
    "D3": (28.62, 24.25, 0),
    "C10": (24.55, 23.15, 180),
    "T7": (20.5, 17.3, 0),
    "U5": (19.5, 13.0, 0),
    "L1": (19.5, 8.5, 180),
    "D1": (12.8, 8.5, 0),
    "C5": (8.9, 10.0, 270),
    "C4": (23.9, 11.5, 270),
    "R13": (14.1, 13.2, 0),
    "C6": (14.1, 11.4, 0),
    "R14": (14.1, 15.6, 180),
    "D2": (5.6, 13.0, 0),
    "R23": (5.6, 16.2, 0),
    "D6": (5.6, 18.6, 180),
    "T1": (10.0, 16.8, 0),
    "T5": (30.55, 21.7, 0),
    "T2": (92.0, 2.8, 0),
    "T3": (120.8, 33.6, 0),
    "R12": (30.0, 66.5, 0),
    # pull-ups left of the Pico
    **{
        name: (77.9 + RIGHT, y, 90)
        for name, y in (("R7", 4), ("R1", 8), ("R2", 11.5), ("R3", 15), ("R4", 18.5), ("R5", 22), ("R6", 25.5))
    },
    # interlock
    "U2": (82.2 + RIGHT, 59.5, 0),
    "U3": (91.6 + RIGHT, 59.5, 0),
    "C1": (82.2 + RIGHT, 53.7, 0),
    "C2": (91.6 + RIGHT, 53.7, 0),
    **{
        name: (x + RIGHT, y, 0)
        for y, names in (
            (65.1, ("R110", "C103", "R310", "C303")),
            (67.8, ("R111", "R210", "R311", "R410")),
            (70.5, ("C203", "R211", "C403", "R411")),
        )
        for x, name in zip((80.0, 83.6, 89.4, 93.0), names)
    },
    # side band
    "U4": (100.0 + RIGHT, 59.0, 0),
    "C3": (100.0 + RIGHT, 54.6, 0),
    "R10": (100.0 + RIGHT, 64.0, 0),
    "R9": (102.2 + RIGHT, 71.6, 0),
    "Q1": (98.2 + RIGHT, 67.6, 0),
    "R15": (102.2 + RIGHT, 67.6, 90),
    "J5": (79.5 + RIGHT, 79.5, 0),
    "J6": (104.5 + RIGHT, 79.5, 0),
    # pins from outside
    "J7": (159.5, 12.0, 270),
    "R16": (151.4, 12.0, 180),
    "D4": (147.0, 12.4, 0),
    "R11": (143.4, 12.0, 90),
    "R18": (151.4, 17.1, 180),
    "R17": (129.0, 70.6, 180),
    "D5": (133.2, 70.2, 0),
    "R8": (137.0, 70.2, 90),
    "J8": (106.5 + RIGHT, 3.0, 0),
    **{f"R{19 + k}": (111.58 + 2.54 * k + RIGHT, 10.6, 270) for k in range(4)},
    # trips the lock-outs
    "R27": (90.0, 30.0, 0),
    "Q2": (92.4, 5.8, 0),
    "Q3": (92.4, 9.6, 0),
    "R28": (92.6, 12.6, 0),
    "R29": (96.0, 1.5, 0),
    "R24": (147.0, 3.0, 0),
    "D7": (151.0, 3.0, 180),
    "T4": (147.0, 6.4, 0),
    # dividers at the Pico's ADC pins, and what lies between
    **{name: (104.7 + RIGHT, y, 90) for name, y in (("R128", 26.0), ("R228", 19.8), ("R328", 13.0))},
    **{
        name: (102.5 + RIGHT, y, angle)
        for name, y, angle in (
            ("R112", 27.6, 180),
            ("R113", 25.9, 0),
            ("C105", 29.3, 180),
            ("C106", 24.2, 0),
            ("R212", 20.8, 180),
            ("R213", 19.1, 0),
            ("C205", 22.5, 180),
            ("C206", 17.4, 0),
            ("R312", 14.0, 180),
            ("R313", 12.3, 0),
            ("C305", 15.7, 180),
            ("C306", 10.6, 0),
        )
    },
}


def turned(x, y, angle):
    """A vector turned counter-clockwise as seen on the board (y downwards), by KiCad's angle in degrees."""
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return round(x * c + y * s, 4), round(-x * s + y * c, 4)


def in_block(n, x, y, angle=0):
    """x, y, angle on the board of a place in block n."""
    ox, oy, turn = RAIL_AT[n]
    dx, dy = turned(x, y, turn)
    return round(ox + dx, 4), round(oy + dy, 4), (angle + turn) % 360


@functools.cache
def places():
    """{reference: (x, y, angle)} of every part."""
    placed = dict(COMMON)
    for n in range(4):
        for name, place in BLOCK.items():
            placed[f"{name[0]}{n + 1}{name[1:]}"] = in_block(n, *place)
        for ref, place in HEAD.get(n, {}).items():
            placed[ref] = in_block(n, *place)
    return placed


def box(x0, y0, x1, y1):
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


# pours of a block on F.Cu
BLOCK_POURS = [
    (
        "SRC{n}",
        [
            (4.55, 9.8),
            (11.7, 9.8),
            (11.7, 12.6),
            (9.8, 12.6),
            (9.8, 14.2),
            (7.45, 14.2),
            (7.45, 17.9),
            (2.4, 17.9),
            (2.4, 13.5),
            (4.55, 13.5),
        ],
    ),
    (
        "SW{n}",
        [
            (2.6, 18.3),
            (9.4, 18.3),
            (9.4, 23.6),
            (17.7, 23.6),
            (17.7, 26.4),
            (14.7, 26.4),
            (14.7, 25.9),
            (9.4, 25.9),
            (9.4, 27.04),
            (2.6, 27.04),
        ],
    ),
    ("BARFUSE{n}", box(10.9, 18.1, 16.2, 19.7)),
    ("BAR{n}", box(18.2, 18.1, 21.9, 19.7)),
]
# before and behind the block: from and to the terminal for rails 0 and 3, on the board for 1 and 2
TERMINAL_POURS = [
    (
        "RAIL{n}_IN",
        [
            (-8, 2.0),
            (2.6, 2.0),
            (2.6, -4.8),
            (14.2, -4.8),
            (14.2, -1.2),
            (9.4, -1.2),
            (9.4, 9.4),
            (-0.4, 9.4),
            (-0.4, 13.2),
            (-8, 13.2),
        ],
    ),
    ("RAIL{n}_OUT", [(-8, 23.9), (2.2, 23.9), (2.2, 32.96), (9.4, 32.96), (9.4, 38.6), (-8, 38.6)]),
]
BOARD_POURS = [
    (
        "RAIL1_IN",
        [
            (44.4, 2.0),
            (49.8, 2.0),
            (49.8, 14.6),
            (54.8, 14.6),
            (54.8, 17.4),
            (81.6, 17.4),
            (81.6, 20.6),
            (86.4, 20.6),
            (86.4, 25.2),
            (78.6, 25.2),
            (78.6, 20.8),
            (41.6, 20.8),
            (41.6, 11.2),
            (44.4, 11.2),
        ],
    ),
    (
        "RAIL2_IN",
        [
            (54.6, 2.0),
            (67.6, 2.0),
            (67.6, 5.6),
            (86.4, 5.6),
            (86.4, 10.6),
            (77.4, 10.6),
            (77.4, 16.2),
            (66.8, 16.2),
            (66.8, 13.2),
            (54.6, 13.2),
        ],
    ),
    # behind the fuses: capacitor and TVS beside them
    (
        "FUSED1",
        [
            (38.0, 21.4),
            (52.9, 21.4),
            (52.9, 25.3),
            (49.4, 25.3),
            (49.4, 39.4),
            (41.6, 39.4),
            (41.6, 27.4),
            (38.0, 27.4),
        ],
    ),
    ("FUSED2", [(60.4, 21.5), (77.4, 21.5), (77.4, 39.4), (69.6, 39.4), (69.6, 25.3), (60.4, 25.3)]),
    ("RAIL1_OUT", [(42.1, 62.96), (49.8, 62.96), (49.8, 78.2), (44.3, 78.2), (44.3, 71.2), (42.1, 71.2)]),
    (
        "RAIL2_OUT",
        [
            (70.1, 62.96),
            (76.9, 62.96),
            (76.9, 71.0),
            (59.9, 71.0),
            (59.9, 78.2),
            (54.5, 78.2),
            (54.5, 64.3),
            (70.1, 64.3),
        ],
    ),
]

# on B.Cu, beside the same on F.Cu: from the wire's hole and from J9 to the fuse's
BACK_POURS = [
    (
        "RAIL1_IN",
        [
            (44.4, 2.0),
            (49.8, 2.0),
            (49.8, 14.6),
            (54.8, 14.6),
            (54.8, 17.4),
            (81.6, 17.4),
            (81.6, 20.6),
            (86.4, 20.6),
            (86.4, 25.4),
            (50.0, 25.4),
            (50.0, 20.8),
            (41.6, 20.8),
            (41.6, 11.2),
            (44.4, 11.2),
        ],
    ),
    (
        "RAIL2_IN",
        [
            (54.6, 2.0),
            (59.6, 2.0),
            (59.6, 5.6),
            (86.4, 5.6),
            (86.4, 10.6),
            (77.4, 10.6),
            (77.4, 16.2),
            (69.6, 16.2),
            (69.6, 13.2),
            (54.6, 13.2),
        ],
    ),
]

# Kelvin connection in a block: (net, layer, width, points); a point alone is a via
BLOCK_TRACKS = [
    ("RAIL{n}_OUT", "F.Cu", 0.2, [(6, 32.7), (6, 31.5), (9.175, 31.5)]),
    ("RAIL{n}_OUT", "F.Cu", 0.2, [(6, 31.5), (6, 30.0), (9.175, 30.0)]),
    ("SW{n}", "F.Cu", 0.2, [(6, 27.3), (6, 28.5), (9.175, 28.5)]),
    ("GND", "F.Cu", 0.6, [(23.14, 17.95), (25.2, 17.95)]),
    ("GND", "via", 0.6, [(24.4, 17.95)]),
    ("GND", "via", 0.6, [(25.2, 17.95)]),
    ("GND", "F.Cu", 1.0, [(20.4, 25.0), (23.2, 25.0)]),
    ("GND", "via", 0.6, [(22.3, 25.0)]),
    ("GND", "via", 0.6, [(23.2, 25.0)]),
]
BOARD_TRACKS = [
    ("RAIL1_IN", "F.Cu", 1.0, [(42.0, 17.86), (39.9, 17.86)]),
    ("LOGIC_IN", "F.Cu", 1.0, [(39.9, 14.94), (39.9, 12.45), (35.15, 12.45)]),
    ("LOGIC_IN", "F.Cu", 0.8, [(35.15, 12.45), (35.15, 10.6), (34.35, 9.8), (30.6, 9.8)]),
    (
        "LOGIC_6V",
        "F.Cu",
        1.0,
        [(32.85, 12.45), (32.15, 13.15), (29.0, 13.15), (28.3, 13.85), (28.3, 14.55), (26.0, 14.55)],
    ),
    ("LOGIC_6V", "F.Cu", 0.5, [(27.45, 9.8), (27.45, 13.15), (28.3, 14.0), (28.3, 14.55)]),
    ("LOGIC_6V", "F.Cu", 0.8, [(28.3, 14.55), (28.3, 15.6), (29.4, 16.7), (30.575, 16.7)]),
    ("LOGIC_5V", "F.Cu", 0.5, [(23.7, 15.2), (27.5, 19.0), (29.7, 19.0), (30.575, 19.875), (30.575, 21.7)]),
    ("LOGIC_5V", "F.Cu", 0.5, [(30.55, 21.7), (30.15, 22.1), (30.15, 24.25)]),
    ("LOCK_5V", "F.Cu", 0.5, [(26.85, 24.25), (26.2, 24.25), (25.35, 23.4)]),
    ("LOGIC_5V", "F.Cu", 1.0, [(23.7, 14.55), (22.1, 14.55), (22.1, 8.5), (21.64, 8.5)]),
    ("LOGIC_5V", "F.Cu", 1.0, [(22.1, 10.55), (23.9, 10.55)]),
    ("LOGIC_5V", "F.Cu", 0.4, [(22.1, 13.95), (20.64, 13.95)]),
    ("LOGIC_5V", "F.Cu", 0.4, [(22.1, 12.05), (20.64, 12.05)]),
    # the tabs' heat goes into the ground plane
    ("GND", "F.Cu", 1.0, [(35.15, 18.75), (32.3, 18.75)]),
    ("GND", "via", 0.6, [(32.7, 18.75)]),
    ("GND", "via", 0.6, [(32.0, 18.75)]),
    ("GND", "F.Cu", 0.8, [(28.7, 20.85), (23.3, 20.85)]),
    ("GND", "via", 0.6, [(28.7, 20.85)]),
    ("GND", "via", 0.6, [(23.3, 20.85)]),
    ("BOOST", "F.Cu", 0.5, [(18.36, 12.05), (17.36, 11.05), (17.36, 8.5), (14.45, 8.5)]),
    ("VGATE", "F.Cu", 0.5, [(11.15, 8.5), (8.9, 8.5), (8.9, 9.05)]),
]


def pours():
    """[(net, layer, points)]."""
    polygons = [(net, "F.Cu", points) for net, points in BOARD_POURS] + [
        (net, "B.Cu", points) for net, points in BACK_POURS
    ]
    for n in range(4):
        for net, points in BLOCK_POURS + (TERMINAL_POURS if n in (0, 3) else []):
            polygons.append((net.format(n=n), "F.Cu", [in_block(n, x, y)[:2] for x, y in points]))
    return polygons


def tracks():
    """[(net, layer or "via", width, points)] drawn by hand."""
    tracks_ = list(BOARD_TRACKS)
    for n in range(4):
        tracks_ += [
            (net.format(n=n), layer, width, [in_block(n, x, y)[:2] for x, y in points])
            for net, layer, width, points in BLOCK_TRACKS
        ]
    return tracks_
