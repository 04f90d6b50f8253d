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

import layout
import numba
import numpy as np
import place
from ground import (
    CELLS,
    COLUMNS,
    PLANES,
    TRACK_RADIUS,
    VIA_RADIUS,
    CLEARANCE_mm,
    GRID_mm,
    Ground,
    WIDTH_mm,
    spot,
    terminals,
)
from symbols import POWER

VIA_COST = 8.0
ROUNDS = 60


@numba.njit(cache=True)
def walk(open_track, open_via, cost, via_cost, sources, target, window, plane, columns):
    """The nodes of the cheapest path from a source to a node of `target` (a mask; window: its left, right, top,
    bottom), last one first; with plane to a via anywhere, which is then -1. Empty: no path."""
    count = len(open_track)
    cells = count // 2
    best = np.full(count, 1e18)
    back = np.full(count, -1)
    done = np.zeros(count, np.bool_)
    queue = [(0.0, sources[0])]
    queue.pop()
    for node in sources:
        best[node] = 0.0
        queue.append((0.0, node))
    heapq.heapify(queue)
    while queue:
        _, node = heapq.heappop(queue)
        if node < 0 or target[node]:
            path = [node]
            if node < 0:
                path = [-1, -2 - node]
            while back[path[-1]] != -1:
                path.append(back[path[-1]])
            return path
        if done[node]:
            continue
        done[node] = True
        so_far, cell = best[node], node % cells
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                other = node + dx + dy * columns
                if (dx or dy) and open_track[other]:
                    price = so_far + (1.0 if dx == 0 or dy == 0 else 1.4142) * cost[other]
                    if price < best[other]:
                        best[other], back[other] = price, node
                        heapq.heappush(queue, (price + ahead(other, cells, columns, window, plane), other))
        if open_via[cell]:
            price = so_far + VIA_COST * via_cost[cell]
            if plane:
                heapq.heappush(queue, (price, -2 - node))
            else:
                other = (node + cells) % count
                if open_track[other] and price < best[other]:
                    best[other], back[other] = price, node
                    heapq.heappush(queue, (price + ahead(other, cells, columns, window, plane), other))
    return [sources[0]][:0]


@numba.njit(cache=True)
def ahead(node, cells, columns, window, plane):
    """At least this far it is to the target."""
    if plane:
        return 0.0
    x, y = node % cells % columns, node % cells // columns
    dx, dy = max(window[0] - x, x - window[1], 0), max(window[2] - y, y - window[3], 0)
    return max(dx, dy) + 0.4142 * min(dx, dy)


def search(open_track, open_via, cost, via_cost, sources, targets, plane):
    """The cheapest path from a source node to a target node, or with plane to a via anywhere: then it ends in None.
    None: no path."""
    mask = np.zeros(2 * CELLS, bool)
    window = (0, 0, 0, 0)
    if not plane:
        at = np.array(sorted(targets))
        mask[at] = True
        columns, rows = at % CELLS % COLUMNS, at % CELLS // COLUMNS
        window = (int(columns.min()), int(columns.max()), int(rows.min()), int(rows.max()))
    path = walk(open_track, open_via, cost, via_cost, np.array(sorted(sources)), mask, window, plane, COLUMNS)
    return [None if node == -1 else int(node) for node in path[::-1]] or None


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
    open_track = np.concatenate([((grid == 0) | (grid == number)).ravel() for grid in ground.track])
    open_via = ((ground.via == 0) | (ground.via == number)).ravel()
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
                open_via[hole + d] = False
    return paths


def drilled(path, ends_in_via):
    """The cells where a path has a via."""
    return {a % CELLS for a, b in zip(path, path[1:]) if a % CELLS == b % CELLS} | (
        {path[-1] % CELLS} if ends_in_via else set()
    )


def route():
    """{net: [(path, ends in a via)]}. Raises SystemExit where a net finds no way."""
    numbers = layout.net_numbers()
    ground = Ground(numbers)
    for land in layout.lands():
        ground.land(land)
    for net, layer, width, points in place.tracks():
        ground.line(net if net in POWER else "/" + net, layer, width, points)
    for net, layer, points in place.pours():
        ground.pour(net if net in POWER else "/" + net, layer, points)
    ground.close(*place.ETCHED[3])
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
            cost, via_cost = history * (1 + press * used), history_via * (1 + press * used_via)
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
