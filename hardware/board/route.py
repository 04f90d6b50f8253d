"""Routes the tracks that place.py does not draw, and writes tracks.csv. Run again after circuit.py, footprints.py or
place.py changed.

    python hardware/board/route.py

A* on a grid of 0.2 mm over F.Cu and B.Cu, with negotiated congestion (McMurchie and Ebeling, PathFinder, 1995): nets
may share a place at first; sharing gets dearer with each round until nobody does. Ground and +3V3 pads get a via to
their plane. KiCad's rule check (fill.py) has the last word, not this file. Nothing is random: the same sources give the
same tracks."""

import csv
import heapq
import sys
from collections import defaultdict

import layout
import numpy as np
import place
from footprints import NPTH, SMD, THT

GRID_mm, WIDTH_mm, CLEARANCE_mm = 0.2, place.TRACK_mm, place.CLEARANCE_mm
COLUMNS, ROWS = int(place.WIDTH / GRID_mm) + 1, int(place.HEIGHT / GRID_mm) + 1
CELLS = COLUMNS * ROWS
EDGE_mm = place.EDGE_mm + 0.1
PLANES = ("GND", "+3V3")
SIDES = ("F.Cu", "B.Cu")
VIA_COST = 8.0
TRACK_RADIUS, VIA_RADIUS = WIDTH_mm / 2, place.VIA_mm / 2
SENSED = ("/SW", "/RAIL")  # their tracks drawn by hand are Kelvin connections: nothing may join them on the way
ROUNDS = 60

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
            if land.kind != SMD or side == 0:
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

    def pour(self, net, layer, points):
        everywhere = (slice(None), slice(None))
        self.claim(
            self.track[SIDES.index(layer)], everywhere, near_polygon(points, 0.26 + TRACK_RADIUS), self.numbers[net]
        )
        self.claim(self.via, everywhere, near_polygon(points, 0.26 + VIA_RADIUS), self.numbers[net])


def cells(mask, where=(slice(None), slice(None))):
    full = np.zeros(XS.shape, bool)
    full[where] = mask
    return np.flatnonzero(full)


def terminals(ground):
    """{net: [set of nodes]}: what is to be joined. A node is side * CELLS + row * COLUMNS + column. Pads in one pour
    are one."""
    named = lambda net: net if net in PLANES else "/" + net
    pours, lands, found = defaultdict(list), defaultdict(list), {}
    for net, layer, points in place.pours():
        if layer == "F.Cu":
            pours[named(net)].append(points)
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
            if any(contains(pour, land) for pour in pours[net]):
                keys.add("pour")
            for other in [group for group in groups if keys & group[1]]:
                groups.remove(other)
                nodes, keys = nodes | other[0], keys | other[1]
            groups.append((nodes, keys))
        found[net] = [nodes for nodes, keys in groups if not keys & {"plane", "pour"}]
        poured = [near_polygon(points, -0.3) & (ground.track[0] == ground.numbers[net]) for points in pours[net]]
        if poured:
            found[net].append({int(c) for c in cells(np.logical_or.reduce(poured))})
    return found


def land_nodes(land):
    """The nodes at which a track may end on a pad."""
    margin = min(0.1, min(land.width, land.height) / 2 - 0.1)
    where, mask = near_box(
        land.x - land.width / 2, land.y - land.height / 2, land.x + land.width / 2, land.y + land.height / 2, -margin
    )
    nodes = {int(c) for c in cells(mask, where)}
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


STEPS = [
    (dx + dy * COLUMNS, 1.0 if dx == 0 or dy == 0 else 1.4142) for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy
]


def search(open_track, open_via, cost, via_cost, sources, targets, plane):
    """The cheapest path from a source node to a target node, or with plane to a via anywhere: then it ends in None.
    None: no path."""
    best = dict.fromkeys(sources, 0.0)
    back = dict.fromkeys(sources, -1)
    if not plane:
        columns = [node % CELLS % COLUMNS for node in targets]
        rows = [node % CELLS // COLUMNS for node in targets]
        left, right, top, bottom = min(columns), max(columns), min(rows), max(rows)

    def ahead(node):
        if plane:
            return 0.0
        y, x = divmod(node % CELLS, COLUMNS)
        dx, dy = max(left - x, x - right, 0), max(top - y, y - bottom, 0)
        return max(dx, dy) + 0.4142 * min(dx, dy)

    queue = [(ahead(node), node) for node in sorted(sources)]
    heapq.heapify(queue)
    done = set()
    while queue:
        _, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if node < 0 or node in targets:
            path = [None if node < 0 else node]
            node = back[node]
            while node != -1:
                path.append(node)
                node = back[node]
            return path[::-1]
        here = best[node]
        cell = node % CELLS
        for step, length in STEPS:
            other = node + step
            if open_track[other]:
                price = here + length * cost[other]
                if price < best.get(other, 1e18):
                    best[other], back[other] = price, node
                    heapq.heappush(queue, (price + ahead(other), other))
        if open_via[cell]:
            other = -2 - node if plane else (node + CELLS) % (2 * CELLS)
            if plane or open_track[other]:
                price = here + VIA_COST * via_cost[cell]
                if price < best.get(other, 1e18):
                    best[other], back[other] = price, node
                    heapq.heappush(queue, (price + ahead(other), other))
    return None


def disc(radius):
    reach = int(radius / GRID_mm) + 1
    return [
        dx + dy * COLUMNS
        for dx in range(-reach, reach + 1)
        for dy in range(-reach, reach + 1)
        if np.hypot(dx, dy) * GRID_mm < radius - 1e-9
    ]


BY_TRACK, BY_VIA = disc(2 * TRACK_RADIUS + CLEARANCE_mm), disc(TRACK_RADIUS + VIA_RADIUS + CLEARANCE_mm)
VIA_BY_VIA, HOLE_BY_HOLE = disc(2 * VIA_RADIUS + CLEARANCE_mm), disc(place.DRILL_mm + 0.3)  # the latter within one net


def shadow(paths):
    """(nodes closed to other tracks, cells closed to other vias) around the paths of a net."""
    tracks, vias = set(), set()
    for path, ends_in_via in paths:
        for node in path:
            tracks.update(node + d for d in BY_TRACK)
            vias.update(node % CELLS + d for d in BY_VIA)
        for cell in drilled(path, ends_in_via):
            vias.update(cell + d for d in VIA_BY_VIA)
            for d in BY_VIA:
                tracks.update((cell + d, cell + d + CELLS))
    return np.array(sorted(t for t in tracks if 0 <= t < 2 * CELLS), int), np.array(
        sorted(v for v in vias if 0 <= v < CELLS), int
    )


def connect(net, groups, ground, cost, via_cost):
    """[(path, ends in a via)] that join the groups of nodes of one net."""
    number = ground.numbers[net]
    open_track = b"".join(((grid == 0) | (grid == number)).tobytes() for grid in ground.track)
    open_via = bytearray(((ground.via == 0) | (ground.via == number)).tobytes())
    plane = net in PLANES
    rest = sorted(groups, key=lambda group: (len(group), min(group)))
    have = set() if plane else set(rest.pop())
    paths = []
    while rest:
        if plane:
            path = search(open_track, open_via, cost, via_cost, rest.pop(), have, True)
        else:
            path = search(open_track, open_via, cost, via_cost, have, set().union(*rest), False)
        if path is None:
            ends = [spot(min(group)) for group in [*rest, have] if group]
            raise SystemExit(f"expected a way for {net}, seen none to or from {ends}; do: make room in place.py")
        ends_in_via = path[-1] is None
        path = [node for node in path if node is not None]
        paths.append((path, ends_in_via))
        have |= set(path).union(*(group for group in rest if path[-1] in group))
        rest = [group for group in rest if path[-1] not in group]
        for hole in drilled(path, ends_in_via):
            for d in HOLE_BY_HOLE:
                open_via[hole + d] = 0
    return paths


def drilled(path, ends_in_via):
    """The cells where a path has a via."""
    return {a % CELLS for a, b in zip(path, path[1:]) if a % CELLS == b % CELLS} | (
        {path[-1] % CELLS} if ends_in_via else set()
    )


def spot(node):
    y, x = divmod(node % CELLS, COLUMNS)
    return round(x * GRID_mm, 2), round(y * GRID_mm, 2), SIDES[node // CELLS]


def route():
    """{net: [(path, ends in a via)]}. Raises SystemExit where a net finds no way."""
    numbers = layout.net_numbers()
    ground = Ground(numbers)
    for land in layout.lands():
        ground.land(land)
    for net, layer, width, points in place.tracks():
        ground.line(net if net in PLANES else "/" + net, layer, width, points)
    for net, layer, points in place.pours():
        ground.pour(net if net in PLANES else "/" + net, layer, points)
    jobs = {net: groups for net, groups in terminals(ground).items() if groups and (len(groups) > 1 or net in PLANES)}
    used, used_via = np.zeros(2 * CELLS), np.zeros(CELLS)
    history, history_via = np.ones(2 * CELLS), np.ones(CELLS)
    routed, shadows = {}, {}
    span = {net: len(groups) * 1000 + max(map(max, groups)) % CELLS // COLUMNS for net, groups in jobs.items()}
    waiting = sorted(jobs, key=lambda net: (net not in PLANES, span[net], net))
    for turn in range(ROUNDS):
        press = 0.6 * 1.35**turn
        for net in waiting:
            if net in shadows:
                used[shadows[net][0]] -= 1
                used_via[shadows[net][1]] -= 1
            cost = (history * (1 + press * used)).tolist()
            via_cost = (history_via * (1 + press * used_via)).tolist()
            routed[net] = connect(net, jobs[net], ground, cost, via_cost)
            shadows[net] = shadow(routed[net])
            used[shadows[net][0]] += 1
            used_via[shadows[net][1]] += 1
        waiting = [net for net in routed if collisions(routed[net], shadows[net], used, used_via, history, history_via)]
        print(
            f"round {turn + 1}: {len(waiting)} of {len(jobs)} nets in each other's way {waiting[:8]}", file=sys.stderr
        )
        if not waiting:
            return routed
    raise SystemExit(
        f"expected room for all nets after {ROUNDS} rounds, seen {waiting} in each other's way; do: make room in"
        " place.py"
    )


def collisions(paths, own, used, used_via, history, history_via):
    """Is a net in another's way? The places remember it."""
    nodes = np.array(sorted({node for path, _ in paths for node in path}), int)
    holes = np.array(sorted({cell for path in paths for cell in drilled(*path)}), int)
    bad, bad_holes = nodes[used[nodes] > 1], holes[used_via[holes] > 1]
    history[bad] += 0.5
    history_via[bad_holes] += 0.5
    return bool(len(bad) or len(bad_holes))


def straightened(path):
    """[(layer or "via", points)] of a path of nodes."""
    pieces, points = [], [path[0]]
    for before, node, after in zip([None, *path], path, [*path[1:], None]):
        if before is not None and node % CELLS == before % CELLS:
            pieces += [("track", points), ("via", [node])]
            points = [node]
        elif before is not None and (after is None or after % CELLS == node % CELLS or after - node != node - before):
            points.append(node)
    pieces.append(("track", points))
    for kind, nodes in pieces:
        places = [spot(node)[:2] for node in nodes]
        if kind == "via" or len(places) > 1:
            yield ("via" if kind == "via" else spot(nodes[0])[2]), places


def main():
    rows = []
    for net, paths in sorted(route().items()):
        for path, ends_in_via in paths:
            pieces = list(straightened(path)) + ([("via", [spot(path[-1])[:2]])] if ends_in_via else [])
            for layer, points in pieces:
                width = place.VIA_mm if layer == "via" else WIDTH_mm
                rows.append((net, layer, width, " ".join(f"{x:g},{y:g}" for x, y in points)))
    with open(layout.FOLDER / "tracks.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("net", "layer", "width", "points"))
        writer.writerows(rows)
    print(f"{layout.FOLDER / 'tracks.csv'}: {len(rows)} tracks and vias")


if __name__ == "__main__":
    main()
