"""The board's case, a base and a lid, from the layout's own places: python hardware/case/case.py writes base.stl and
lid.stl. It needs manifold3d (extra hardware-test), whose bodies are closed by construction; nothing else of ours does.

Lengths in mm; x to the right and y up as seen from above, z up from the table: the board's y points down, so y here is
its height minus y. Board and lid hang on the four M3 holes: screw from below, board, spacer of 20 mm, lid, screw."""

import struct
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "guide"), str(HERE.parent / "board")]
import assembly
import models
import numpy as np
import place

WALL, FLOOR, LID = 2.4, 2.4, 2.4
GAP = 1.0  # between board and wall
POST = 4.0  # below the board: its joints are 2.5 mm long
BOARD = 1.6
SPACER = 20.0
SCREW_HOLE, POST_WIDTH = 3.4, 10.4  # across
HEAD, UNDER_HEAD = 6.6, 1.6  # of an M3 pan head, and the plastic that it holds: a screw of 6 mm reaches into the spacer
TOP = FLOOR + POST + BOARD  # of the board
UNDER_LID = TOP + SPACER
ROOM = 1.0  # around what goes through an opening
LAMP = 3.0


class Opening(NamedTuple):
    """A box that is cut out, and what must fit through it."""

    what: str
    side: str  # left, right, upper, lower, lid
    low: float  # along the wall (x or y); of the lid: x0
    high: float
    bottom: float  # z; of the lid: y0
    top: float


def up(y):
    """y on the board -> y here."""
    return place.HEIGHT - y


def outline(ref):
    """x0, y0, x1, y1 here of a part's body."""
    x0, y0, x1, y1 = assembly.body(ref)
    return x0, up(y1), x1, up(y0)


def shape_name(ref):
    return assembly.footprints.footprint(assembly.layout.PARTS[ref]).name


USB = (8.0, 3.0)  # width, height of the Pico's connector; its plug: 11 x 7
USB_PLUG = (12.0, 8.0)
USB_MIDDLE = 8.5 + 2.5 + 1.0 + USB[1] / 2  # above the board: socket, header's collar, the Pico's board


def openings():
    """Every Opening: cables through the walls, headers, fuses, lamps and heat through the lid."""
    holes = []
    for ref, side in (("J3", "left"), ("J4", "right")):
        _, y0, _, y1 = outline(ref)
        holes.append(Opening(ref, side, y0 - ROOM, y1 + ROOM, TOP, TOP + models.HEIGHT_mm[shape_name(ref)] + ROOM))
    for ref, side in (("J1", "upper"), ("J2", "lower")):
        x0, _, x1, _ = outline(ref)
        holes.append(Opening(ref, side, x0 - ROOM, x1 + ROOM, TOP, UNDER_LID + 1))  # open: a cable has its connector
    x, z = place.PICO[0], TOP + USB_MIDDLE
    wide, high = (half / 2 for half in USB_PLUG)
    holes.append(Opening("USB", "upper", x - wide, x + wide, z - high, z + high))
    for ref in ("J5", "J6", "J7", "J8", "J9", "F201", "F301"):
        x0, y0, x1, y1 = outline(ref)
        holes.append(Opening(ref, "lid", x0 - ROOM, x1 + ROOM, y0 - ROOM, y1 + ROOM))
    for ref in ("R108", "R208", "R308", "R408"):  # the crowbars' heat
        x0, y0, x1, y1 = outline(ref)
        holes.append(Opening(ref, "lid", x0 - ROOM, x1 + ROOM, y0 - ROOM, y1 + ROOM))
    return holes


def lamps():
    """[(x, y)] of the lamps, to be seen through the lid."""
    refs = [ref for ref, part in assembly.layout.PARTS.items() if part.symbol == "LED"]
    boxes = [outline(ref) for ref in refs]
    return [((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in boxes]


def cut(opening):
    """(corner, size) of the box that an opening takes away."""
    far = GAP + 2 * WALL
    low, high, bottom, top = opening[2:]
    if opening.side == "lid":
        return (low, bottom, UNDER_LID - 1), (high - low, top - bottom, LID + 2)
    if opening.side in ("left", "right"):
        x = -far if opening.side == "left" else place.WIDTH
        return (x, low, bottom), (far, high - low, top - bottom)
    y = place.HEIGHT if opening.side == "upper" else -far
    return (low, y, bottom), (high - low, far, top - bottom)


def solids():
    """{name: manifold3d.Manifold} of base and lid."""
    from manifold3d import Manifold  # only whoever prints another case needs it

    box = lambda corner, size: Manifold.cube(size).translate(corner)
    rod = lambda x, y, low, high, across: Manifold.cylinder(high - low, across / 2, circular_segments=24).translate(
        (x, y, low)
    )
    out = GAP + WALL
    wide, deep = place.WIDTH, place.HEIGHT
    base = box((-out, -out, 0), (wide + 2 * out, deep + 2 * out, UNDER_LID))
    base -= box((-GAP, -GAP, FLOOR), (wide + 2 * GAP, deep + 2 * GAP, UNDER_LID))
    lid = box((-out, -out, UNDER_LID), (wide + 2 * out, deep + 2 * out, LID))
    for x, board_y in place.HOLES:
        y = up(board_y)
        base += rod(x, y, 0, FLOOR + POST, POST_WIDTH)
        base -= rod(x, y, -1, FLOOR + POST + 1, SCREW_HOLE)
        base -= rod(x, y, -1, FLOOR + POST - UNDER_HEAD, HEAD)
        lid -= rod(x, y, UNDER_LID - 1, UNDER_LID + LID + 1, SCREW_HOLE)
    for opening in openings():
        if opening.side == "lid":
            lid -= box(*cut(opening))
        else:
            base -= box(*cut(opening))
    for x, y in lamps():
        lid -= rod(x, y, UNDER_LID - 1, UNDER_LID + LID + 1, LAMP)
    return {"base": base, "lid": lid}


def stl(solid):
    """Binary STL of a Manifold."""
    mesh = solid.to_mesh()
    points = np.asarray(mesh.vert_properties, np.float32)[:, :3][np.asarray(mesh.tri_verts)]
    return written(points)


def written(triangles):
    """Binary STL of an array (n, 3, 3)."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    rows = np.zeros(len(triangles), np.dtype([("of", "<f4", (4, 3)), ("no", "<u2")]))
    rows["of"] = np.concatenate([normals[:, None], triangles], axis=1)
    return b"ssdrig".ljust(80, b" ") + struct.pack("<I", len(rows)) + rows.tobytes()


def read(path):
    """Array (n, 3, 3) of the triangles of a binary STL. Raises ValueError for what is none."""
    content = Path(path).read_bytes()
    count = int.from_bytes(content[80:84], "little")
    if len(content) != 84 + 50 * count or not count:
        raise ValueError(
            f"expected a binary STL of {84 + 50 * count} bytes; seen {len(content)}; do: write {path} anew"
        )
    rows = np.frombuffer(content, np.dtype([("of", "<f4", (4, 3)), ("no", "<u2")]), offset=84)
    return rows["of"][:, 1:].astype(float)


if __name__ == "__main__":
    for name, solid in solids().items():
        (HERE / f"{name}.stl").write_bytes(stl(solid))
        print(f"{name}.stl: {solid.num_tri()} triangles, {solid.volume() / 1000:.0f} cm3", file=sys.stderr)
