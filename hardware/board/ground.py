"""The grid on which route.py finds its ways: what lies fixed on the board near each point, and what is to be joined.

The grid has 0.2 mm and two layers, F.Cu and B.Cu. A node is side * CELLS + row * COLUMNS + column."""

from collections import defaultdict

import layout
import numpy as np
import place
from footprints import BACK, NPTH, SMD, THT
from symbols import POWER

GRID_mm, WIDTH_mm, CLEARANCE_mm = 0.2, place.TRACK_mm, place.CLEARANCE_mm
COLUMNS, ROWS = int(place.WIDTH / GRID_mm) + 1, int(place.HEIGHT / GRID_mm) + 1
CELLS = COLUMNS * ROWS
EDGE_mm = place.EDGE_mm + 0.1
PLANES = ("GND", place.SUPPLY_PLANE) if place.LAYERS == 4 else ()
SIDES = ("F.Cu", "B.Cu")
TRACK_RADIUS, VIA_RADIUS = WIDTH_mm / 2, place.VIA_mm / 2
SENSED = ("/SW", "/RAIL")  # their tracks drawn by hand are Kelvin connections: nothing may join them on the way

XS, YS = np.meshgrid(np.arange(COLUMNS) * GRID_mm, np.arange(ROWS) * GRID_mm)


def window(x0, y0, x1, y1, reach):
    """The slices of the grid around a rectangle."""
    left, right = max(0, int((x0 - reach) / GRID_mm)), min(COLUMNS, int((x1 + reach) / GRID_mm) + 2)
    top, bottom = max(0, int((y0 - reach) / GRID_mm)), min(ROWS, int((y1 + reach) / GRID_mm) + 2)
    return slice(top, bottom), slice(left, right)


def near_box(x0, y0, x1, y1, reach):
    """(slices, mask) of the grid points nearer than `reach` to a rectangle; a negative reach: inside, that far from its
    edge."""
    where = window(x0, y0, x1, y1, max(reach, 0))
    dx, dy = np.maximum(x0 - XS[where], XS[where] - x1), np.maximum(y0 - YS[where], YS[where] - y1)
    if reach < 0:
        return where, np.maximum(dx, dy) <= reach + 1e-9
    return where, np.hypot(np.maximum(dx, 0), np.maximum(dy, 0)) < reach - 1e-6


def near_line(ax, ay, bx, by, reach):
    where = window(min(ax, bx), min(ay, by), max(ax, bx), max(ay, by), reach)
    length = (bx - ax) ** 2 + (by - ay) ** 2
    t = np.clip(((XS[where] - ax) * (bx - ax) + (YS[where] - ay) * (by - ay)) / length, 0, 1) if length else 0
    return where, np.hypot(XS[where] - ax - t * (bx - ax), YS[where] - ay - t * (by - ay)) < reach - 1e-6


def near_polygon(points, reach):
    """Grid points inside a polygon or at most `reach` from its edge; a negative reach: inside, and that far from the
    edge."""
    inside = np.zeros(XS.shape, bool)
    edge = np.zeros(XS.shape, bool)
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
        where, mask = near_line(ax, ay, bx, by, abs(reach))
        edge[where] |= mask
        if ay != by:
            inside ^= ((ay > YS) != (by > YS)) & (XS < (bx - ax) * (YS - ay) / (by - ay) + ax)
    return (inside | edge) if reach >= 0 else (inside & ~edge)


class Ground:
    """What lies fixed on the board: whose copper is near each grid point. 0 nobody's, -1 closed to all, else a net's
    number."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.track = [np.zeros(XS.shape, np.int16) for _ in SIDES]
        self.via = np.zeros(XS.shape, np.int16)
        margin = (XS < EDGE_mm) | (YS < EDGE_mm) | (XS > place.WIDTH - EDGE_mm) | (YS > place.HEIGHT - EDGE_mm)
        for grid in (*self.track, self.via):
            grid[margin] = -1
        for box in place.OFF_BOARD:
            where, mask = near_box(*box, EDGE_mm)
            for grid in (*self.track, self.via):
                grid[where][mask] = -1

    @staticmethod
    def claim(grid, where, mask, owner):
        part = grid[where]
        part[mask & (part != owner)] = np.where(part[mask & (part != owner)] == 0, owner, -1)

    def land(self, land):
        box = (land.x - land.width / 2, land.y - land.height / 2, land.x + land.width / 2, land.y + land.height / 2)
        owner = self.numbers[land.net] if land.net else -1
        # a diagonal track comes nearer to a corner between two grid points than on them; no room for that at fine pitch
        extra = 0.1 if land.kind == NPTH else 0.045 if min(land.width, land.height) > 0.45 else 0
        for side, grid in enumerate(self.track):
            if land.kind not in (SMD, BACK) or (land.kind == BACK) == (side == 1):
                self.claim(grid, *near_box(*box, CLEARANCE_mm + TRACK_RADIUS + extra), owner)
        self.claim(self.via, *near_box(*box, CLEARANCE_mm + VIA_RADIUS + extra), owner)
        where, mask = near_box(*box, VIA_RADIUS + 0.05)
        self.via[where][mask] = -1  # no via in or at a pad: the solder would run away

    def line(self, net, layer, width, points):
        owner = -1 if net.startswith(SENSED) and width < 0.3 else self.numbers[net]
        radius = width / 2
        for a, b in zip(points, points[1:] or points):
            for side, grid in enumerate(self.track):
                if layer in (SIDES[side], "via"):
                    self.claim(grid, *near_line(*a, *b, radius + CLEARANCE_mm + TRACK_RADIUS), owner)
            self.claim(self.via, *near_line(*a, *b, radius + CLEARANCE_mm + VIA_RADIUS), owner)
            if layer == "via":  # hole to hole, of one net too
                where, mask = near_line(*a, *b, place.DRILL_mm + 0.3)
                self.via[where][mask] = -1

    def close(self, x0, y0, x1, y1):
        """Nothing of F.Cu comes in here, and no via."""
        for grid in (self.track[0], self.via):
            where, mask = near_box(x0, y0, x1, y1, CLEARANCE_mm + VIA_RADIUS)
            grid[where][mask] = -1

    def pour(self, net, layer, points):
        everywhere = (slice(None), slice(None))
        if layer not in SIDES:
            return  # KiCad's pour makes room for what is drilled
        self.claim(
            self.track[SIDES.index(layer)], everywhere, near_polygon(points, 0.26 + TRACK_RADIUS), self.numbers[net]
        )
        self.claim(self.via, everywhere, near_polygon(points, 0.26 + VIA_RADIUS), self.numbers[net])


def cells(mask, where=(slice(None), slice(None))):
    full = np.zeros(XS.shape, bool)
    full[where] = mask
    return np.flatnonzero(full)


def terminals(ground):
    """{net: [set of nodes]}: what is to be joined. Pads in one pour are one."""
    named = lambda net: net if net in POWER else "/" + net
    pours, lands, groups_of_net = defaultdict(list), defaultdict(list), {}
    for net, layer, points in place.pours():
        if layer in SIDES:
            pours[named(net)].append((points, SIDES.index(layer)))
    for land in layout.lands():
        if land.net and not land.net.startswith("unconnected"):
            lands[land.net].append(land)
    by_hand = [(named(net), points) for net, layer, _, points in place.tracks() if layer != "via"]
    for net, pads in lands.items():
        joints = hand_joints(net, by_hand)
        groups = []  # (nodes, what they hang on: "pour", "plane", tracks drawn by hand)
        for land in pads:
            nodes = land_nodes(land)
            keys = {joint for i, joint in joints.items() if any(on(land, point) for point in by_hand[i][1])}
            if net in PLANES and (keys or land.kind == THT):
                keys.add("plane")
            if any(contains(pour, land) for pour, side in pours[net] if side in sides_of(land)):
                keys.add("pour")
            for other in [group for group in groups if keys & group[1]]:
                groups.remove(other)
                nodes, keys = nodes | other[0], keys | other[1]
            groups.append((nodes, keys))
        groups_of_net[net] = [nodes for nodes, keys in groups if not keys & {"plane", "pour"}]
        if pours[net]:
            groups_of_net[net].append(
                {
                    int(c) + side * CELLS
                    for points, side in pours[net]
                    for c in cells(near_polygon(points, -0.3) & (ground.track[side] == ground.numbers[net]))
                }
            )
    return groups_of_net


def sides_of(land):
    """On which of SIDES a land has copper."""
    return (0, 1) if land.kind == THT else (1,) if land.kind == BACK else (0,)


def land_nodes(land):
    """The nodes at which a track may end on a pad."""
    margin = min(0.1, min(land.width, land.height) / 2 - 0.1)
    where, mask = near_box(
        land.x - land.width / 2, land.y - land.height / 2, land.x + land.width / 2, land.y + land.height / 2, -margin
    )
    nodes = {int(c) for c in cells(mask, where)}
    if land.kind == BACK:
        nodes = {c + CELLS for c in nodes}
    if land.kind == THT:  # round, and on both sides
        nodes = {c for c in nodes if np.hypot(XS.flat[c] - land.x, YS.flat[c] - land.y) <= land.width / 2 - 0.1}
        nodes |= {c + CELLS for c in nodes}
    return nodes


def hand_joints(net, by_hand):
    """{index of a hand-drawn track: a name for its group}: tracks that share a point, or end in a pour, hang
    together."""
    names = {}
    pours = [points for name, layer, points in place.pours() if layer == "F.Cu" and name == net.removeprefix("/")]
    for i, (name, points) in enumerate(by_hand):
        if name != net:
            continue
        names[i] = i
        if any(contains_point(pour, *p) for pour in pours for p in points):
            names[i] = "pour"
        for j, (other, theirs) in enumerate(by_hand[:i]):
            if (
                other == net
                and any(touches(p, theirs) for p in points)
                or other == net
                and any(touches(p, points) for p in theirs)
            ):
                old, new = names[j], names[i]
                keep = "pour" if "pour" in (old, new) else min(old, new)
                names = {k: keep if v in (old, new) else v for k, v in names.items()}
    return names


def touches(point, line):
    return any(near_segment(point, a, b) for a, b in zip(line, line[1:]))


def near_segment(p, a, b):
    length = (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2
    t = min(1, max(0, ((p[0] - a[0]) * (b[0] - a[0]) + (p[1] - a[1]) * (b[1] - a[1])) / length)) if length else 0
    return abs(p[0] - a[0] - t * (b[0] - a[0])) + abs(p[1] - a[1] - t * (b[1] - a[1])) < 0.01


def on(land, point):
    return abs(point[0] - land.x) <= land.width / 2 and abs(point[1] - land.y) <= land.height / 2


def contains_point(points, x, y):
    inside = False
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
        if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
            inside = not inside
    return inside


def contains(pour, land):
    """Does a pour cover the middle of a pad, or at least a good part of it?"""
    return any(
        contains_point(pour, land.x + dx * land.width * 0.4, land.y + dy * land.height * 0.4)
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
    )


def spot(node):
    y, x = divmod(node % CELLS, COLUMNS)
    return round(x * GRID_mm, 2), round(y * GRID_mm, 2), SIDES[node // CELLS]
