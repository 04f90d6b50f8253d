"""The printed case: closed bodies, holes over the board's, room for its parts, openings where connectors are."""

import importlib.util
import itertools
import sys

import numpy as np
import pytest
from board_files import HARDWARE

sys.path.insert(0, str(HARDWARE / "case"))
import case  # isort: skip  (brings hardware/board and hardware/guide)
import place  # isort: skip

BASE, LID = (case.read(HARDWARE / f"case/{name}.stl") for name in ("base", "lid"))


def open_edges(triangles):
    """Number of edges that do not have exactly one neighbour going the other way: 0 of a closed body."""
    corners, index = np.unique(triangles.reshape(-1, 3), axis=0, return_inverse=True)
    index = index.reshape(-1, 3)
    edges = np.concatenate([index[:, [0, 1]], index[:, [1, 2]], index[:, [2, 0]]])
    code = edges[:, 0] * len(corners) + edges[:, 1]
    back = edges[:, 1] * len(corners) + edges[:, 0]
    return len(np.setxor1d(code, back)) + len(code) - len(np.unique(code))


def volume_mm3(triangles):
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def solid_at(triangles, points):
    """Whether each point (n, 3) is in the plastic: crossings of a ray straight up, a hair beside the grid that all
    edges lie on."""
    points = np.asarray(points, float) + (0.00137, 0.00271, 0.00091)
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = (triangles[:, i].T for i in range(3))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    flat = abs(area) > 1e-9  # the others stand upright: no ray meets them
    ax, ay, az, bx, by, bz, cx, cy, cz, area = (v[flat] for v in (ax, ay, az, bx, by, bz, cx, cy, cz, area))
    inside = []
    for x, y, z in points:
        v = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
        w = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
        met = (v >= 0) & (w >= 0) & (v + w <= 1) & (az + v * (bz - az) + w * (cz - az) > z)
        inside.append(int(met.sum()) % 2 == 1)
    return np.array(inside)


def ring(x, y, across, z, n=12):
    angles = np.arange(n) * 2 * np.pi / n + 0.05
    return [(x + across / 2 * np.cos(a), y + across / 2 * np.sin(a), z) for a in angles]


def grid(x0, y0, z0, x1, y1, z1, n=5):
    axes = [np.linspace(low, high, n) for low, high in ((x0, x1), (y0, y1), (z0, z1))]
    return list(itertools.product(*axes))


@pytest.mark.parametrize("triangles", [BASE, LID], ids=["base", "lid"])
def test_bodies_are_closed(triangles):
    assert open_edges(triangles) == 0 and volume_mm3(triangles) > 20_000
    assert open_edges(triangles[1:]) > 0  # a hole in the skin is seen
    assert open_edges(np.concatenate([triangles[:1, ::-1], triangles[1:]])) > 0  # and a triangle inside out


def holes_missed(holes):
    """What is wrong with the screws' way through base and lid at these places of the board."""
    wrong = []
    top, roof = case.FLOOR + case.POST, case.UNDER_LID
    for x, y in ((x, case.up(y)) for x, y in holes):
        free = ring(x, y, 3.2, top - 0.5) + [(x, y, z) for z in (0.5, 2, 4, 6)]
        head = ring(x, y, 6.3, 2.0)
        held = ring(x, y, 6.0, top - 0.5) + ring(x, y, 9.0, 3.5)
        if solid_at(BASE, free + head).any() or not solid_at(BASE, held).all():
            wrong.append(("base", x, y))
        if solid_at(LID, ring(x, y, 3.2, roof + 1)).any() or not solid_at(LID, ring(x, y, 6.0, roof + 1)).all():
            wrong.append(("lid", x, y))
    return wrong


def test_screws_meet_the_boards_holes():
    assert holes_missed(place.HOLES) == []
    moved = [(x + 0.8, y) for x, y in place.HOLES]
    assert len(holes_missed(moved)) == 8


def in_the_way(refs, shift=(0.0, 0.0)):
    """Which of the parts meet plastic of base or lid with their body, as high as it is and moved by shift."""
    hits = []
    for ref in refs:
        if (name := case.shape_name(ref)) not in case.models.HEIGHT_mm:
            continue
        x0, y0, x1, y1 = (v + d for v, d in zip(case.outline(ref), 2 * shift))
        large = max(x1 - x0, y1 - y0) > 5
        points = grid(x0, y0, case.TOP + 0.05, x1, y1, case.TOP + case.models.HEIGHT_mm[name], 4 if large else 2)
        if solid_at(BASE, points).any() or solid_at(LID, points).any():
            hits.append(ref)
    return hits


def test_there_is_room_for_every_part():
    assert in_the_way(case.assembly.parts()) == []
    for ref, shift in (("J8", (0.0, 5.0)), ("J3", (-3.0, 15.0)), ("J4", (3.0, 15.0)), ("J5", (0.0, -5.0))):
        assert in_the_way([ref], shift) == [ref]  # would stand in a wall


def test_board_lies_on_its_posts_and_no_joint_on_them():
    around = grid(-0.5, -0.5, case.FLOOR + case.POST + 0.1, place.WIDTH + 0.5, place.HEIGHT + 0.5, case.TOP, 9)
    assert not solid_at(BASE, around).any()
    for ref in case.assembly.parts():
        for _, x, y, size in case.assembly.joints(ref):
            apart = min(np.hypot(x - hx, y - hy) for hx, hy in place.HOLES)
            assert apart > case.POST_WIDTH / 2 + size / 2, ref


def blocked(shift=(0.0, 0.0)):
    """Openings that do not let through what they are for: wires into a terminal, a plug, a cable, what stands in the
    lid's opening. shift: mm that the connectors are moved by."""
    dx, dy = shift
    blocked_parts = []
    for opening in case.openings():
        if opening.what == "USB":
            x, z = place.PICO[0] + dx, case.TOP + case.USB_MIDDLE
            points = grid(
                x - 5.5, place.HEIGHT + case.GAP, z - 3.5, x + 5.5, place.HEIGHT + case.GAP + case.WALL, z + 3.5
            )
            blocked_parts += [opening.what] if solid_at(BASE, points).any() else []
            continue
        x0, y0, x1, y1 = (v + d for v, d in zip(case.outline(opening.what), (dx, dy, dx, dy)))
        if opening.side == "lid":
            points = grid(x0, y0, case.UNDER_LID, x1, y1, case.UNDER_LID + case.LID)
            blocked_parts += [opening.what] if solid_at(LID, points).any() else []
            continue
        far = case.GAP + case.WALL
        high = case.TOP + (4.0 if opening.what in ("J1", "J2") else case.models.HEIGHT_mm["Terminal_4"])
        if opening.side in ("left", "right"):
            x0, x1 = (-far, 0) if opening.side == "left" else (place.WIDTH, place.WIDTH + far)
        else:
            y0, y1 = (place.HEIGHT, place.HEIGHT + far) if opening.side == "upper" else (-far, 0)
        blocked_parts += [opening.what] if solid_at(BASE, grid(x0, y0, case.TOP + 0.05, x1, y1, high)).any() else []
    return blocked_parts


def test_openings_contain_what_goes_through_them():
    assert blocked() == []
    connectors = {"J1", "J2", "J3", "J4", "J5", "J6", "J7", "J8", "J9", "USB"}
    assert connectors <= {opening.what for opening in case.openings()}
    assert connectors <= set(blocked((1.5, 1.5)))  # a layout that moved without its case is seen


def test_lamps_are_seen_through_the_lid():
    assert len(case.lamps()) == 10
    for x, y in case.lamps():
        assert not solid_at(LID, ring(x, y, case.LAMP - 0.3, case.UNDER_LID + 1)).any()


def test_a_file_that_is_no_stl_is_refused(tmp_path):
    for content in (b"", b"solid\nendsolid\n" * 20, case.written(BASE[:2].astype(np.float32))[:-1]):
        (tmp_path / "it.stl").write_bytes(content)
        with pytest.raises(ValueError, match="expected a binary STL"):
            case.read(tmp_path / "it.stl")
    (tmp_path / "it.stl").write_bytes(case.written(BASE.astype(np.float32)))
    assert (case.read(tmp_path / "it.stl") == BASE).all()


@pytest.mark.skipif(importlib.util.find_spec("manifold3d") is None, reason="no manifold3d (extra hardware-test)")
def test_committed_bodies_are_those_that_case_py_makes():
    from manifold3d import Manifold, Mesh

    for (name, solid), triangles in zip(case.solids().items(), (BASE, LID), strict=True):
        corners, index = np.unique(triangles.reshape(-1, 3).astype(np.float32), axis=0, return_inverse=True)
        committed = Manifold(Mesh(corners, index.reshape(-1, 3).astype(np.uint32)))
        differ = (solid - committed).volume() + (committed - solid).volume()
        assert solid.volume() > 20_000 and differ < 1.0, f"do: python hardware/case/case.py ({name})"
