"""What is printed on the board: outlines, references (placed where nothing is in the way), names and warnings."""

import math
from typing import NamedTuple

import circuit
import footprints
import numpy as np
import place

CLEAR_mm = 0.2  # of print to pads
REFERENCE_mm = 1.0
LINE_mm = 0.15
STRIPED, STRIPE_mm = ("DO-35", "DO-35_Z", "DO-15", "DO-201"), 0.6  # cathode at pads[0]; of its end
SLIDES_mm = (
    0.0,
    *(sign * mm for mm in (0.5, 1.0, 1.3, 1.6, 2.0, 2.3, 2.7, 3.0, 3.5, 4.0) for sign in (1, -1)),
)  # along the part
TRIES = 80  # at finding a place for every reference

SATA = ((-10.16, "PWDIS"), (-5.08, "GND"), (0, "5V"), (5.08, "GND"), (10.16, "12V"))
SIDE_BAND = ("CLKREQ", "PEWAKE", "SMBCLK", "SMBDAT")
BIG = 47.0  # middle of the SATA wires
OF_THE_BOARD = (
    lambda: [  # x, y, size, angle, text
        (BIG, 0.9, 1.0, 0, "SUPPLY IN: PLUG END OF A CUT SATA CABLE"),
        *((BIG + dx, 2.15, 1.0, 0, name) for dx, name in SATA if name != "PWDIS"),
        (BIG - 10.16, 2.15, 1.0, 0, "OPEN"),
        *((BIG + dx, 78.8, 1.0, 0, name) for dx, name in SATA),
        *((87.5, 8.0 + 5.08 * i, 1.0, 0, name) for i, name in enumerate(("12V", "GND", "GND", "5V"))),
        (77.9, 20.4, 1.0, 90, "SUPPLY IN: J9 OR J1"),
        (BIG, 80.5, 1.0, 0, "DRIVE OUT: RECEPTACLE END OF THE CABLE"),
        *((9.4, 41.0 + 5.08 * i, 1.0, 0, name) for i, name in enumerate(("IN", "GND", "GND", "OUT"))),
        # columns of the solder bridges: INA228, INA229
        *((*place.in_block(n, x, 25.0)[:2], 1.0, 0, name) for n in range(4) for x, name in ((24.0, "8"), (26.4, "9"))),
        (2.6, 48.62, 1.0, 90, "RAIL 0  M.2 3.3V 5A"),
        *((153.1, 48.0 - 5.08 * i, 1.0, 0, name) for i, name in enumerate(("IN", "GND", "GND", "OUT"))),
        (159.9, 40.38, 1.0, 90, "RAIL 3  U.2 3.3VAUX"),
        (57.0, 11.6, 1.0, 0, "RAIL 1  5V 5A"),
        (63.2, 14.6, 1.0, 0, "RAIL 2  12V 5A"),
        (45.5, 18.6, 1.0, 0, "10A"),
        (73.5, 18.6, 1.0, 0, "7.5A"),
        (place.PICO[0], 3.2, 1.0, 0, "USB THIS SIDE"),
        (place.PICO[0], 5.2, 1.0, 0, "PICO OR PICO 2"),
        (place.PICO[0], 7.2, 1.0, 0, "IN SOCKETS"),
        (18.0, 74.4, 1.0, 0, "5V AND 12V MIXED UP"),
        (18.0, 76.1, 1.0, 0, "DESTROY THE DRIVE: MEASURE"),
        (18.0, 77.8, 1.0, 0, "BEFORE YOU PLUG ONE IN"),
        (76.5, 76.0, 1.0, 0, "R108-R408 GET HOT"),
        (76.5, 77.8, 1.0, 0, f"ssdrig rev {circuit.REVISION}"),
        (76.5, 79.6, 1.0, 0, "not built yet"),
        *(
            (124.5 + 2.54 * i, 6.6, 1.0, 90, name)
            for i, name in enumerate(("3V3", "GND", "SCK", "MOSI", "MISO", "CS", "SDA", "SCL"))
        ),
        *((155.6, 12.0 + 2.54 * i, 1.0, 0, name) for i, name in enumerate(("TRIG", "GND", "SYNC", "GND"))),
        *(
            (97.5 + 2.54 * i, 77.6 - 0.46 * len(name), 1.0, 90, name)
            for i, name in enumerate((*SIDE_BAND, "PERST", "GND", "GND", "GND"))
        ),
        *(
            (122.5 + 2.54 * i, 77.6 - 0.46 * len(name), 1.0, 90, name)
            for i, name in enumerate((*SIDE_BAND, "PERST", "ACT", "GND", "GND"))
        ),
    ]
)
TEXTS = getattr(place, "TEXTS", None) or OF_THE_BOARD()


class Label(NamedTuple):
    x: float
    y: float
    angle: float
    size: float  # 0: found no place, not printed


def outline(shape):
    """[(x0, y0, x1, y1)]: the body's edges, left out where a pad is near."""
    if shape.bare:
        return []
    if shape.round_body:
        pieces = plus(shape.pads[0]) if shape.name == "CP_Radial_10" else []
        return [tuple(round(v, 3) for v in piece) for piece in pieces]
    x0, y0, x1, y1 = (
        round(v, 3) for v in (shape.body[0] - 0.1, shape.body[1] - 0.1, shape.body[2] + 0.1, shape.body[3] + 0.1)
    )
    pieces = []
    for ax, ay, bx, by in ((x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)):
        flat = ay == by
        low, high = sorted((ax, bx) if flat else (ay, by))
        across = ay if flat else ax
        gaps = []
        for pad in shape.pads:
            along, off = (pad.x, pad.y) if flat else (pad.y, pad.x)
            half, half_off = (pad.width / 2, pad.height / 2) if flat else (pad.height / 2, pad.width / 2)
            if abs(across - off) < half_off + CLEAR_mm + 0.08:
                gaps.append((along - half - CLEAR_mm - 0.06, along + half + CLEAR_mm + 0.08))
        for start, end in sorted(gaps) + [(high, high)]:
            if start - low > 0.3:
                stop = min(start, high)
                pieces.append((low, across, stop, across) if flat else (across, low, across, stop))
            low = max(low, end)
    return [tuple(round(v, 3) for v in piece) for piece in pieces + sided(shape, x0, y0, x1, y1)]


def sided(shape, x0, y0, x1, y1):
    """[(x0, y0, x1, y1)]: what shows which way round a leaded part goes, within its outline: a diode's stripe, a lamp's
    flat side, a second line at the flat side of a TO-92, the notch of a DIP."""
    if shape.name in STRIPED:
        return [(x0 + STRIPE_mm, y0, x0 + STRIPE_mm, y1)]
    if shape.name == "LED_3":
        y = shape.pads[0].height / 2 + CLEAR_mm + LINE_mm
        return [(x0 + 0.3, y0, x0 + 0.3, -y), (x0 + 0.3, y, x0 + 0.3, y1)]
    if shape.name.startswith("TO-92"):
        return [(x0, y1 - 0.4, x1, y1 - 0.4)]
    if shape.name.startswith("DIP"):
        return [(-1.0, y0, 0, y0 + 1.0), (0, y0 + 1.0, 1.0, y0)]
    return []


def plus(pad):
    """The two lines of a + above a pad."""
    y = pad.y + pad.height / 2 + 1.0
    return [(pad.x - 0.6, y, pad.x + 0.6, y), (pad.x, y - 0.6, pad.x, y + 0.6)]


def circles(shape):
    """[(x, y, radius)]: the outline of a round body, a dot at pin 1 where turning the part matters."""
    circles_ = [(0, 0, shape.body[2] + 0.1)] if shape.name == "CP_Radial_10" else []
    if shape.bare or shape.name == "M2_Socket":
        return circles_
    numbers = {pad.number for pad in shape.pads}
    if len(numbers) >= 5 or shape.name in ("SOD-123", "SMA", "SMB", "LED_0603", "SOT-223"):
        first = shape.pads[0]
        if shape.name in ("SMA", "SMB"):
            circles_.append((first.x, round(first.y - first.height / 2 - 0.5, 3), 0.15))
        elif shape.pads[0].kind == footprints.SMD:
            circles_.append((round(first.x - first.width / 2 - 0.45, 3), first.y, 0.15))
    return circles_


def overlapping(areas, boxes):
    """Which of the areas overlap any of the boxes (both rows of x0, y0, x1, y1)?"""
    x0, y0, x1, y1 = areas.T
    far = (boxes[:, 0] > x1.max()) | (boxes[:, 2] < x0.min()) | (boxes[:, 1] > y1.max()) | (boxes[:, 3] < y0.min())
    bx0, by0, bx1, by1 = boxes[~far].T[:, :, None]
    return ((x0 < bx1) & (bx0 < x1) & (y0 < by1) & (by0 < y1)).any(axis=0)


def text_box(x, y, angle, size, text):
    half_w, half_h = (size * 0.92 * len(text) + 0.1) / 2, size * 0.66
    if angle % 180:
        half_w, half_h = half_h, half_w
    return x - half_w, y - half_h, x + half_w, y + half_h


def printed(shape, x, y, angle):
    """Boxes of a part's own print on the board."""
    items = [
        (x + r * math.cos(t) - 0.4, y + r * math.sin(t) - 0.4, x + r * math.cos(t) + 0.4, y + r * math.sin(t) + 0.4)
        for _, _, r in circles(shape)
        if r > 1
        for t in (k * math.pi / 24 for k in range(48))
    ]
    for x0, y0, x1, y1 in [
        *outline(shape),
        *((cx - r, cy - r, cx + r, cy + r) for cx, cy, r in circles(shape) if r < 1),
    ]:
        (ax, ay), (bx, by) = place.turned(x0, y0, angle), place.turned(x1, y1, angle)
        items.append((x + min(ax, bx) - 0.2, y + min(ay, by) - 0.2, x + max(ax, bx) + 0.2, y + max(ay, by) + 0.2))
    return items


def name_of(part):
    """What is printed beside a part: its reference; of a place for a probe, what is to be found there."""
    return part.nets["1"].replace("DISCHARGE", "DISCH") if part.symbol == "TestPoint" else part.ref


def labels(parts, places, lands, tracks):
    """{reference: Label}: beside, above or below its part, or on it; the nearest place that is free."""
    half = [(land, land.width / 2 + CLEAR_mm, land.height / 2 + CLEAR_mm) for land in lands]
    taken = [(land.x - w, land.y - h, land.x + w, land.y + h) for land, w, h in half]
    holes = [
        (x - 0.32, y - 0.32, x + 0.32, y + 0.32) for _, layer, _, points in tracks if layer == "via" for x, y in points
    ]
    shapes = {ref: footprints.footprint(parts[ref]) for ref in places}
    for ref, at in places.items():
        taken += printed(shapes[ref], *at)
    taken += [*(text_box(x, y, angle, size, text) for x, y, size, angle, text in TEXTS), *place.OFF_BOARD]
    order = sorted(places, key=lambda ref: parts[ref].symbol != "TestPoint")  # a person looks for these, probe in hand
    for _ in range(TRIES):
        texts = put(order, parts, places, shapes, taken, holes)
        without = [ref for ref in order if not texts[ref].size]
        if not without:
            break
        order = without + [ref for ref in order if ref not in without]  # they choose first
    return texts


def put(order, parts, places, shapes, taken, holes):
    """{reference: Label} of the parts in this order; what has a place takes it from the next ones."""
    placed = {}
    boxes = np.array(taken + [(0, 0, 0, 0)] * len(order))  # what is taken, with room for what comes
    count, holes = len(taken), np.array(holes).reshape(-1, 4)
    for ref in order:
        x, y, angle = places[ref]
        printed_ref = name_of(parts[ref])
        ex0, ey0, ex1, ey1 = footprints.extent(shapes[ref])
        (ax, ay), (bx, by) = place.turned(ex0, ey0, angle), place.turned(ex1, ey1, angle)
        x0, x1, y0, y1 = x + min(ax, bx), x + max(ax, bx), y + min(ay, by), y + max(ay, by)
        long, high = (REFERENCE_mm * 0.92 * len(printed_ref) + 0.1) / 2, REFERENCE_mm * 0.6
        mx, my = (x0 + x1) / 2, (y0 + y1) / 2
        spots = [(mx, my, 0), (mx, my, 90)] if (x1 - x0) * (y1 - y0) > 15 else []
        for more in (0.24, 0.4, 0.8, 1.3, 1.9, 2.6, 3.4, 4.2, 5.2):
            for slide in SLIDES_mm:
                spots += [(mx + slide, y0 - high - more, 0), (mx + slide, y1 + high + more, 0)]
                spots += [(x1 + long + more, my + slide, 0), (x0 - long - more, my + slide, 0)]
                spots += [(x0 - high - more, my + slide, 90), (x1 + high + more, my + slide, 90)]
        areas = np.array([text_box(*spot, REFERENCE_mm, printed_ref) for spot in spots])
        inside = (areas[:, :2] > 0.5).all(axis=1) & (areas[:, 2:] < (place.WIDTH - 0.5, place.HEIGHT - 0.5)).all(axis=1)
        free = inside & ~overlapping(areas, boxes[:count])
        off_vias = free & ~overlapping(areas, holes)
        fit = np.flatnonzero(off_vias if off_vias.any() else free)  # on a via only if need be
        placed[ref] = Label(0, 0, 0, 0)
        if len(fit):
            lx, ly, turn = spots[fit[0]]
            placed[ref] = Label(round(lx, 3), round(ly, 3), turn, REFERENCE_mm)
            boxes[count] = areas[fit[0]]
            count += 1
    return placed
