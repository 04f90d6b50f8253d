"""Where each part lies on the board, the copper of the 5 A paths, and the tracks drawn by hand. mm, y downwards, angle
counter-clockwise.

A rail is one block, drawn once with its origin at a corner and put down four times; rail 3 is turned by 180 degrees so
that its terminal faces the right edge as that of rail 0 faces the left one. The current runs down the block: Q01, Q02,
shunt."""

import math

WIDTH, HEIGHT = 137.5, 80.0
RAIL_AT = ((11.5, 30.0, 0), (33.5, 30.0, 0), (55.5, 30.0, 0), (126.0, 59.0, 180))  # origin and angle of each block
CLEARANCE_mm, TRACK_mm, VIA_mm, DRILL_mm = (
    0.15,
    0.2,
    0.6,
    0.3,
)  # what the cheap four-layer services make without surcharge
EDGE_mm = 0.5  # copper stays this far from the edge
HOLES = ((4.0, 4.0), (WIDTH - 4.0, 4.0), (4.0, HEIGHT - 4.0), (WIDTH - 4.0, HEIGHT - 4.0))

# part of a rail (without the rail's number) -> x, y, angle in the block
BLOCK = {
    "Q01": (6, 7, 90),
    "Q02": (6, 20.68, 270),
    "R07": (6, 30, 270),
    "U01": (13.5, 30, 180),
    "C04": (11.9, 27.0, 0),
    "R01": (1.4, 12.9, 270),
    "R02": (11.6, 15.9, 0),
    "D01": (12.0, 12.9, 0),
    "R04": (16.6, 13.6, 0),
    "Q03": (18.2, 9.6, 270),
    "R05": (20.7, 6.0, 270),
    "R06": (18.9, 5.9, 90),
    "C02": (12.4, 3.0, 0),
    "R14": (12.0, 6.2, 180),
    "R03": (12.0, 8.6, 180),
    "R08": (12.9, 21.8, 90),
    "Q04": (17.4, 18.9, 180),
    "R09": (20.7, 20.6, 90),
    "R15": (18.2, 22.0, 180),
}
HEAD = {0: {"C101": (6, -6, 90)}, 3: {"C401": (6, -6, 90)}}  # likewise in the block

PICO = (90.09, 26.73)
COMMON = {
    "J1": (41.0, 5.0, 0),
    "J2": (41.0, 71.2, 0),
    "J3": (5.8, 48.62, 270),
    "J4": (131.7, 40.38, 90),
    "F201": (39.5, 21.0, 270),
    "F301": (61.5, 21.0, 270),
    "C201": (50.0, 16.5, 0),
    "C301": (70.5, 15.0, 0),
    "U1": (*PICO, 0),
    # gate supply
    "U5": (19.5, 13.0, 0),
    "L1": (19.5, 8.5, 180),
    "D1": (12.8, 8.5, 0),
    "C5": (8.9, 10.0, 270),
    "C4": (23.9, 11.5, 270),
    "R13": (14.1, 13.2, 0),
    "R14": (14.1, 15.6, 180),
    "R12": (26.5, 15.0, 0),
    # pull-ups left of the Pico
    "R7": (77.9, 4.0, 90),
    "R1": (77.9, 8.0, 90),
    "R2": (77.9, 11.5, 90),
    "R3": (77.9, 15.0, 90),
    "R4": (77.9, 18.5, 90),
    "R5": (77.9, 22.0, 90),
    "R6": (77.9, 25.5, 90),
    # interlock
    "U2": (82.2, 59.5, 0),
    "U3": (91.6, 59.5, 0),
    "C1": (82.2, 53.7, 0),
    "C2": (91.6, 53.7, 0),
    "R110": (80.0, 65.3, 0),
    "C103": (83.6, 65.3, 0),
    "R111": (80.0, 67.7, 0),
    "R210": (83.6, 67.7, 0),
    "C203": (80.0, 70.1, 0),
    "R211": (83.6, 70.1, 0),
    "R310": (89.4, 65.3, 0),
    "C303": (93.0, 65.3, 0),
    "R311": (89.4, 67.7, 0),
    "R410": (93.0, 67.7, 0),
    "C403": (89.4, 70.1, 0),
    "R411": (93.0, 70.1, 0),
    # side band
    "U4": (100.0, 59.0, 0),
    "C3": (100.0, 54.6, 0),
    "R10": (100.0, 64.0, 0),
    "R9": (102.2, 71.6, 0),
    "Q1": (98.2, 67.6, 0),
    "R15": (102.2, 67.6, 90),
    "J5": (79.5, 77.5, 0),
    "J6": (104.5, 77.5, 0),
    "J7": (134.5, 12.0, 270),
    "J8": (106.5, 3.0, 0),
    "R11": (130.0, 8.5, 90),
    "R8": (127.0, 8.5, 90),
    # dividers at the Pico's ADC pins
    "R112": (102.5, 27.6, 180),
    "R113": (102.5, 25.9, 0),
    "C105": (102.5, 29.3, 180),
    "C106": (102.5, 24.2, 0),
    "R212": (102.5, 20.8, 180),
    "R213": (102.5, 19.1, 0),
    "C205": (102.5, 22.5, 180),
    "C206": (102.5, 17.4, 0),
    "R312": (102.5, 14.0, 180),
    "R313": (102.5, 12.3, 0),
    "C305": (102.5, 15.7, 180),
    "C306": (102.5, 10.6, 0),
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


def places():
    """{reference: (x, y, angle)} of every part."""
    found = dict(COMMON)
    for n in range(4):
        for name, place in BLOCK.items():
            found[f"{name[0]}{n + 1}{name[1:]}"] = in_block(n, *place)
        for ref, place in HEAD.get(n, {}).items():
            found[ref] = in_block(n, *place)
    return found


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
        [(2.6, 18.3), (9.4, 18.3), (9.4, 23.6), (14.7, 23.6), (14.7, 25.9), (9.4, 25.9), (9.4, 27.04), (2.6, 27.04)],
    ),
    ("BAR{n}", box(10.9, 18.1, 17.3, 19.7)),
]
# before and behind the block: from and to the terminal for rails 0 and 3, on the board for 1 and 2
TERMINAL_POURS = [
    (
        "RAIL{n}_IN",
        [(-8, 2.0), (2.6, 2.0), (2.6, -4.8), (9.4, -4.8), (9.4, 9.4), (-0.4, 9.4), (-0.4, 13.2), (-8, 13.2)],
    ),
    ("RAIL{n}_OUT", [(-8, 23.9), (2.2, 23.9), (2.2, 32.96), (9.4, 32.96), (9.4, 38.6), (-8, 38.6)]),
]
BOARD_POURS = [
    (
        "RAIL1_IN",
        [(38.4, 2.0), (43.8, 2.0), (43.8, 14.6), (48.8, 14.6), (48.8, 18.2), (35.6, 18.2), (35.6, 11.2), (38.4, 11.2)],
    ),
    (
        "RAIL2_IN",
        [(48.6, 2.0), (53.6, 2.0), (53.6, 7.6), (69.4, 7.6), (69.4, 16.6), (57.6, 16.6), (57.6, 13.2), (48.6, 13.2)],
    ),
    ("FUSED1", box(35.6, 25.6, 43.4, 39.4)),
    ("FUSED2", box(57.6, 25.6, 65.4, 39.4)),
    ("RAIL1_OUT", [(36.1, 62.96), (43.8, 62.96), (43.8, 76.2), (38.3, 76.2), (38.3, 69.2), (36.1, 69.2)]),
    (
        "RAIL2_OUT",
        [
            (58.1, 62.96),
            (64.9, 62.96),
            (64.9, 69.6),
            (53.9, 69.6),
            (53.9, 76.2),
            (48.5, 76.2),
            (48.5, 64.6),
            (58.1, 64.6),
        ],
    ),
]

# on B.Cu: from the wire's hole to the fuse's, beside the same on F.Cu
BACK_POURS = [
    ("RAIL1_IN", [(38.4, 2.0), (43.8, 2.0), (43.8, 16.6), (35.6, 16.6), (35.6, 11.2), (38.4, 11.2)]),
    (
        "RAIL2_IN",
        [(48.6, 2.0), (53.6, 2.0), (53.6, 7.6), (65.4, 7.6), (65.4, 16.6), (57.6, 16.6), (57.6, 13.2), (48.6, 13.2)],
    ),
]

# Kelvin connection in a block: (net, layer, width, points); a point alone is a via
BLOCK_TRACKS = [
    ("RAIL{n}_OUT", "F.Cu", 0.2, [(6, 32.7), (6, 30.5), (11.3, 30.5)]),
    ("RAIL{n}_OUT", "F.Cu", 0.2, [(11.3, 30.5), (11.3, 30.0)]),
    ("SW{n}", "F.Cu", 0.2, [(6, 27.3), (6, 29.7), (8.2, 29.7)]),
    ("SW{n}", "via", 0.6, [(8.2, 29.7)]),
    ("SW{n}", "B.Cu", 0.2, [(8.2, 29.7), (8.2, 31.3)]),
    ("SW{n}", "via", 0.6, [(8.2, 31.3)]),
    ("SW{n}", "F.Cu", 0.2, [(8.2, 31.3), (11.0, 31.3), (11.3, 31.0)]),
    ("GND", "F.Cu", 0.6, [(18.34, 17.95), (20.4, 17.95)]),
    ("GND", "via", 0.6, [(19.6, 17.95)]),
    ("GND", "via", 0.6, [(20.4, 17.95)]),
]
BOARD_TRACKS = [
    ("RAIL1_IN", "F.Cu", 1.0, [(36.6, 12.0), (26.2, 12.0), (26.2, 10.55), (22.1, 10.55), (22.1, 8.5), (21.64, 8.5)]),
    ("RAIL1_IN", "F.Cu", 0.4, [(22.1, 10.55), (22.1, 13.95), (20.64, 13.95)]),
    ("RAIL1_IN", "F.Cu", 0.4, [(22.1, 12.05), (20.64, 12.05)]),
    ("BOOST", "F.Cu", 0.5, [(18.36, 12.05), (17.36, 11.05), (17.36, 8.5), (14.45, 8.5)]),
    ("VGATE", "F.Cu", 0.5, [(11.15, 8.5), (8.9, 8.5), (8.9, 9.05)]),
]


def pours():
    """[(net, layer, points)]."""
    found = [(net, "F.Cu", points) for net, points in BOARD_POURS] + [
        (net, "B.Cu", points) for net, points in BACK_POURS
    ]
    for n in range(4):
        for net, points in BLOCK_POURS + (TERMINAL_POURS if n in (0, 3) else []):
            found.append((net.format(n=n), "F.Cu", [in_block(n, x, y)[:2] for x, y in points]))
    return found


def tracks():
    """[(net, layer or "via", width, points)] drawn by hand."""
    found = list(BOARD_TRACKS)
    for n in range(4):
        found += [
            (net.format(n=n), layer, width, [in_block(n, x, y)[:2] for x, y in points])
            for net, layer, width, points in BLOCK_TRACKS
        ]
    return found


def project_rules():
    """What KiCad's project file says about the board: the rules of the check, error by error as KiCad has them."""
    rules = {
        "min_clearance": CLEARANCE_mm,
        "min_track_width": TRACK_mm,
        "min_via_diameter": VIA_mm,
        "min_through_hole_diameter": DRILL_mm,
        "min_via_annular_width": (VIA_mm - DRILL_mm) / 2,
        "min_copper_edge_clearance": EDGE_mm - 0.01,
        "min_hole_clearance": 0.25,
        "min_hole_to_hole": 0.25,
        "min_resolved_spokes": 2,
        "min_text_height": 0.8,
        "min_text_thickness": 0.08,
    }
    net_class = {
        "name": "Default",
        "clearance": CLEARANCE_mm,
        "track_width": TRACK_mm,
        "via_diameter": VIA_mm,
        "via_drill": DRILL_mm,
        # of the schematic, in mils: without a width KiCad draws no wire at all
        "wire_width": 6,
        "bus_width": 12,
        "line_style": 0,
    }
    net_class["priority"] = 2147483647  # KiCad's for the class of all nets
    return {
        "board": {"design_settings": {"meta": {"version": 2}, "rules": rules}},
        "net_settings": {"classes": [net_class], "meta": {"version": 4}},
    }
