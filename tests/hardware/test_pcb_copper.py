"""Copper of the board's layout: the 5 A paths are wide enough, the Kelvin taps end at the shunts."""

import copy
import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from board_files import PARTS, circuit
from board_layout import board_file

import place  # isort: skip  (hardware/board, by way of board_files)

PITCH_mm = 0.1  # of the raster on which copper is looked at
AMPERE = 5


# ---- 5 A: a square of the needed width can be pushed from pad to pad inside the copper


def width_mm(ampere, rise_K, copper_um):
    """Width of a track on an outer layer: I = 0.048 dT^0.44 A^0.725, A in square mils (IPC-2221, 6.2)."""
    square_mils = (ampere / (0.048 * rise_K**0.44)) ** (1 / 0.725)
    return square_mils * 0.0254**2 / (copper_um / 1000)


def test_width_for_5_A():
    assert width_mm(AMPERE, 10, 35) == pytest.approx(2.77, abs=0.01)  # 1 oz
    assert width_mm(AMPERE, 20, 35) == pytest.approx(1.82, abs=0.01)
    assert width_mm(AMPERE, 10, 70) == pytest.approx(1.38, abs=0.01)  # 2 oz


def inside(polygon, xs, ys):
    """Raster of a polygon by crossings; KiCad's pours join a hole to the outline by a slit, which the crossings do not
    mind."""
    mask = np.zeros(xs.shape, bool)
    for (ax, ay), (bx, by) in zip(polygon, polygon[1:] + polygon[:1]):
        if ay != by:
            mask ^= ((ay > ys) != (by > ys)) & (xs < (bx - ax) * (ys - ay) / (by - ay) + ax)
    return mask


def copper(board, net, side="F.Cu"):
    """(raster of a net's copper on a layer, as far as that reaches; function of a pad to its raster)."""
    xs, ys = np.meshgrid(np.arange(0, place.WIDTH, PITCH_mm) + 0.05, np.arange(0, place.HEIGHT, PITCH_mm) + 0.05)
    raster = np.zeros(xs.shape, bool)
    for name, layer, polygons in board.pours:
        if name == net and layer == side:
            for polygon in polygons:
                px, py = np.array(polygon).T
                left, right, top, bottom = (
                    int(v / PITCH_mm) for v in (px.min(), px.max() + 0.2, py.min(), py.max() + 0.2)
                )
                where = (slice(top, bottom + 1), slice(left, right + 1))
                raster[where] ^= inside(polygon, xs[where], ys[where])

    def of(pad):
        _, x, y, width, height, _ = pad
        return (abs(ys[:, :1] - y) <= height / 2) & (abs(xs[:1] - x) <= width / 2)

    for pads in board.pads.values():
        for pad in pads:
            if pad[0] == net and (side == "F.Cu" or pad[5]):
                raster |= of(pad)
    rows, columns = (np.flatnonzero(raster.any(axis)) for axis in (1, 0))
    where = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    xs, ys, raster = xs[where], ys[where], raster[where]
    return raster, of


def passes(board, net, start, end, width):
    """Can a square of this width be moved inside the copper of a net from the pads `start` to the pads `end`?"""
    raster, of = copper(board, net)
    side = int(width / PITCH_mm)
    total = np.pad(raster.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    fits = total[side:, side:] - total[:-side, side:] - total[side:, :-side] + total[:-side, :-side] == side * side

    def touching(pads):
        mask = np.zeros(raster.shape, bool)
        for pad in pads:
            mask |= of(pad)
        count = np.pad(mask.astype(int).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        return (count[side:, side:] - count[:-side, side:] - count[side:, :-side] + count[:-side, :-side] > 0) & fits

    seen, goal = touching(start), touching(end)
    edge = seen
    while edge.any() and not (seen & goal).any():
        grown = seen.copy()
        grown[1:] |= seen[:-1]
        grown[:-1] |= seen[1:]
        grown[:, 1:] |= seen[:, :-1]
        grown[:, :-1] |= seen[:, 1:]
        grown &= fits
        edge, seen = grown & ~seen, grown
    return bool((seen & goal).any())


def changeable():
    """A board with pours and tracks of its own."""
    board = copy.copy(board_file())
    board.pours, board.tracks = list(board.pours), list(board.tracks)
    return board


def pads_at(board, *pins):
    return [pad for pin in pins for pad in board.pads[tuple(pin.split("."))]]


def heavy(n):
    """[(net, pins, pins)] of the 5 A path of rail n, from the supply to the drive."""
    source, drive = {0: ("J3.1", "J3.4"), 1: ("J1.P8", "J2.P8"), 2: ("J1.P14", "J2.P14"), 3: ("J4.1", "J4.4")}[n]
    r = n + 1
    first = [(f"RAIL{n}_IN", source, f"Q{r}01.2")]
    if f"F{r}01" in PARTS:
        first = [(f"RAIL{n}_IN", source, f"F{r}01.1"), (f"FUSED{n}", f"F{r}01.2", f"Q{r}01.2")]
    return [
        *first,
        (f"SRC{n}", f"Q{r}01.3", f"Q{r}02.3"),
        (f"SW{n}", f"Q{r}02.2", f"R{r}07.1"),
        (f"RAIL{n}_OUT", f"R{r}07.2", drive),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n", range(4))
def test_path_of_5_A_is_wide_enough(n):
    for net, start, end in heavy(n):
        assert passes(
            board_file(), net, pads_at(board_file(), start), pads_at(board_file(), end), width_mm(AMPERE, 10, 35)
        ), (net, start, end)


@pytest.mark.slow
def test_paths_from_the_peripheral_plug_are_wide_enough():
    """J9 beside the wire holes: 5 V and 12 V to the fuses; it costs 5 V 0.09 % more than the wire holes."""
    board = board_file()
    for n, pin, net, fuse in ((1, "J9.4", "RAIL1_IN", "F201.1"), (2, "J9.1", "RAIL2_IN", "F301.1")):
        ends = pads_at(board, pin), pads_at(board, fuse)
        assert passes(board, net, *ends, width_mm(AMPERE, 10, 35)), pin
        both = 1 / sum(1 / resistance_mOhm(board, net, *ends, side) for side in ("F.Cu", "B.Cu"))
        assert both < 1.75
        wires = pads_at(board, heavy(n)[0][1])
        of_wires = 1 / sum(1 / resistance_mOhm(board, net, wires, ends[1], side) for side in ("F.Cu", "B.Cu"))
        assert 3 * (path_ohms(n) + (both - of_wires) / 1000) <= 0.0309 * rail_V(n)


@pytest.mark.slow
def test_a_narrow_path_is_found():
    """A slit across the pour from the 5 V shunt to its wire leaves 2.5 mm."""
    board = changeable()
    (i,) = [i for i, (net, *_) in enumerate(board.pours) if net == "RAIL1_OUT"]
    net, layer, (polygon,) = board.pours[i]
    left, right = (pick(x for x, _ in polygon) for pick in (min, max))
    board.pours[i] = (net, layer, [polygon, place.box(left, 66.4, right - 2.5, 67.0)])
    pins = [pads_at(board, pin) for pin in heavy(1)[-1][1:]]
    assert not passes(board, net, *pins, width_mm(AMPERE, 10, 35))
    assert passes(board, net, *pins, 2.3)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(3))
def test_drop_with_the_copper(n):
    """What test_spice.py allows from the supply's wire to the drive (3 % at 3 A, 5 % at 5 A, MOSFETs hot), with the
    board's 35 um copper."""
    assert 3 * path_ohms(n) <= 0.03 * rail_V(n)
    assert 5 * path_ohms(n) <= 0.05 * rail_V(n)


def rail_V(n):
    return circuit.VALUES[circuit.RAILS[n][0], "voltage"].value


def path_ohms(n):
    """From the supply's wire to the drive, with the board's copper, MOSFETs hot."""
    v = {name: quantity.value for (rail, name), quantity in circuit.VALUES.items() if rail == circuit.RAILS[n][0]}
    fets = 2 * v["fet_rds_on_max"] * v["fet_rds_hot_factor"]
    leads = v["wire"] + v["contact"] + v["ground_contact"]
    return v["fuse"] + fets + v["shunt"] + leads + path_mOhm(n) / 1000


@pytest.mark.slow
@pytest.mark.parametrize("n", range(4))
def test_resistance_of_the_copper(n):
    """35 um, without contacts and ground; the way of 12 V is longer, and 12 V mind less."""
    assert 1 < path_mOhm(n) < (3.4 if n == 2 else 2.8)


@functools.cache
def path_mOhm(n):
    """Of the whole path; where a net is poured on both sides, its ends are holes, and the two lie side by side."""
    total = 0
    for net, *pins in heavy(n):
        sides = {layer for name, layer, _ in board_file().pours if name == net}
        total += 1 / sum(
            1 / resistance_mOhm(board_file(), net, *(pads_at(board_file(), pin) for pin in pins), side)
            for side in sides
        )
    return total


def resistance_mOhm(board, net, start, end, side="F.Cu", copper_um=35):
    """Resistance of a net's copper on one layer between pads: squares of the raster as resistors, solved by conjugate
    gradients."""
    raster, of = copper(board, net, side)
    raster = raster[::2, ::2]  # 0.2 mm
    one, other = (np.logical_or.reduce([of(pad) for pad in pads])[::2, ::2] for pads in (start, end))
    free = (raster & ~one & ~other).astype(float)
    below, beside = (raster[1:] & raster[:-1]).astype(float), (raster[:, 1:] & raster[:, :-1]).astype(float)

    def flow(volt):
        """Current out of each square into its neighbours, per sheet conductance."""
        out = np.zeros(volt.shape)
        current = below * (volt[1:] - volt[:-1])
        out[1:] += current
        out[:-1] -= current
        current = beside * (volt[:, 1:] - volt[:, :-1])
        out[:, 1:] += current
        out[:, :-1] -= current
        return out

    volt = np.where(one, 1.0, 0.0)
    residual = -free * flow(volt)
    step, power = residual.copy(), (residual**2).sum()
    for _ in range(4000):
        if power < 1e-12:
            break
        answer = free * flow(step)
        size = power / (step * answer).sum()
        volt, residual = volt + size * step, residual - size * answer
        power, before = (residual**2).sum(), power
        step = residual + power / before * step
    return 1.68e-8 / (copper_um * 1e-6) / flow(volt)[one].sum() * 1e3


def test_resistance_of_a_strip():
    """10 mm x 2 mm between its ends: five squares of 0.48 mOhm."""
    ends = [("X", x, 11.0, 0.4, 2.0, 0) for x in (10.2, 20.2)]
    strip = SimpleNamespace(
        pours=[("X", "F.Cu", [place.box(10, 10, 20.4, 12)])], pads={("X", str(i)): [end] for i, end in enumerate(ends)}
    )
    assert resistance_mOhm(strip, "X", ends[:1], ends[1:]) == pytest.approx(5 * 0.48, rel=0.05)


# ---- Kelvin taps


def tap(board, ref, number):
    """The tracks of a sensor's pin, followed to where they end: (end point, tracks, does anything else join on the
    way)."""
    ((net, x, y, width, height, _),) = board.pads[ref, number]
    tracks = [track for track in board.tracks if track[0] == net]
    shunt = [pad for r in range(1, 5) for pad in (*board.pads[f"R{r}07", "1"], *board.pads[f"R{r}07", "2"])]
    ends, used, joined = [(x, y)], [], False
    while True:
        touching = [t for t in tracks if t not in used and any(math.dist(end, ends[-1]) < 0.01 for end in t[3:])]
        if not touching:
            return ends, used, joined
        joined |= len(touching) > 1
        used.append(touching[0])
        ends.append(touching[0][4] if math.dist(touching[0][3], ends[-1]) < 0.01 else touching[0][3])
        if any(
            abs(ends[-1][0] - px) <= w / 2 and abs(ends[-1][1] - py) <= h / 2
            for name, px, py, w, h, _ in shunt
            if name == net
        ):
            return ends, used, joined


def check_kelvin(board, n):
    """AssertionError unless the taps of IN+ and IN- of rail n end at the shunt's pads and touch their nets' copper
    nowhere else."""
    # R16 to IN+, R17 to IN-; R18, to VBUS, takes its microamperes from the tap of R17
    for resistor, pad, allowed in (("R16", "1", 0), ("R17", "2", 1)):
        ends, used, joined = tap(board, f"{resistor[0]}{n + 1}{resistor[1:]}", "1")
        ((net, x, y, width, height, _),) = board.pads[f"R{n + 1}07", pad]
        assert abs(ends[-1][0] - x) <= width / 2 and abs(ends[-1][1] - y) <= height / 2, (net, ends)
        assert {t[2] for t in used} == {0.2}
        on_the_way = [
            t for t in board.tracks if t[0] == net and t not in used and any(near(end, used) for end in t[3:])
        ]
        assert len(on_the_way) <= allowed, on_the_way
        for name, _layer, polygons in board.pours:
            if name == net:
                for a, b in zip(ends, ends[1:]):
                    for share in np.linspace(0, 1, 41):
                        px, py = a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share
                        if abs(px - x) > width / 2 or abs(py - y) > height / 2:
                            assert not any(
                                inside(polygon, np.array([px]), np.array([py]))[0] for polygon in polygons
                            ), (net, px, py)


def near(point, tracks):
    for _, _, _, a, b in tracks:
        length = math.dist(a, b) ** 2
        share = min(1, max(0, ((point[0] - a[0]) * (b[0] - a[0]) + (point[1] - a[1]) * (b[1] - a[1])) / length))
        if math.dist(point, (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))) < 0.15:
            return True
    return False


@pytest.mark.parametrize("n", range(4))
def test_kelvin_taps_end_at_the_shunt(n):
    check_kelvin(board_file(), n)


@pytest.mark.slow
def test_a_tap_in_the_pour_is_found():
    """IN+ taken from the middle of the pour between Q102 and the shunt; a load current's track joined to IN-."""
    board = changeable()
    first = board.pads["R107", "1"][0]
    board.tracks = [t if (t[0], t[3][1]) != ("SW0", 57.3) else (*t[:3], (t[3][0], 52.0), t[4]) for t in board.tracks]
    assert board.tracks != board_file().tracks and first[2] == pytest.approx(57.04, abs=0.01)
    with pytest.raises(AssertionError):
        check_kelvin(board, 0)
    board = changeable()
    board.tracks.append(("RAIL0_OUT", "F.Cu", 0.2, (19.0, 61.5), (19.0, 66.0)))
    with pytest.raises(AssertionError):
        check_kelvin(board, 0)
