"""Lets KiCad 9 pour the zones of the board, checks the result against the rules and the schematic, and writes it down:
ssdrig.kicad_pcb, ssdrig-pcb.svg, ssdrig.pretty/, fp-lib-table.

    python hardware/board/fill.py [FOLDER]      (after draw.py)

Pouring needs KiCad's Python module pcbnew: the machine's own, or that of the unpacked KiCad
(host/ssdrig/setup/kicad.py). Nothing is written where the check has anything to say."""

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import export
import layout
from draw import NAME

from ssdrig.base import child_cpu
from ssdrig.setup import kicad

FOLDER = layout.FOLDER
DRAWN = "F.Cu,F.Mask,F.SilkS,Edge.Cuts"
COLOURS = {
    "#C83434": "#8FC09F",
    "#D864FF": "#B8860B",
    "#F2EDA1": "#101010",
    "#D0D2CD": "#101010",
}  # KiCad's -> easier to read


POUR = """
import json, sys, pcbnew
board = pcbnew.LoadBoard(sys.argv[1])
pcbnew.ZONE_FILLER(board).Fill(board.Zones())
found = {}
for zone in board.Zones():
    shapes = zone.GetFilledPolysList(zone.GetLayer())
    lines = [shapes.Outline(i) for i in range(shapes.OutlineCount())]
    found[zone.GetZoneName()] = [
        [(round(line.CPoint(i).x / 1e6, 3), round(line.CPoint(i).y / 1e6, 3)) for i in range(line.PointCount())]
        for line in lines
    ]
print(json.dumps(found))
"""


def poured(text):
    """{name of a zone: [[(x, y)]]}: KiCad's pours of the zones of a board, in mm. Raises ToolMissing."""
    export.provision()
    argv, own = kicad.python()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{NAME}.kicad_pcb"
        path.write_text(text)
        shutil.copy(FOLDER / f"{NAME}.kicad_pro", folder)
        environment = os.environ | own | {"HOME": folder, "KICAD_CONFIG_HOME": folder}
        done = child_cpu.output([*argv, "-c", POUR, str(path)], env=environment)
        done.check_returncode()
    return {
        name: [[tuple(point) for point in polygon] for polygon in polygons]
        for name, polygons in json.loads(done.stdout.splitlines()[-1]).items()
    }


def filled():
    """{name of a zone: [[(x, y)]]}: the pours of the board as it lies here."""
    by_zone = {}
    for block in (FOLDER / f"{NAME}.kicad_pcb").read_text().split("\n(zone ")[1:]:
        polygons = [re.findall(r"\(xy (\S+) ([^\s)]+)\)", polygon) for polygon in block.split("(filled_polygon ")[1:]]
        by_zone[re.search(r'\(name "([^"]*)"\)', block)[1]] = [
            [(float(x), float(y)) for x, y in polygon] for polygon in polygons
        ]
    return by_zone


def rule_check(folder):
    """KiCad's design rule check and comparison with the schematic, of the project in folder; returns (ok, report
    text)."""
    report, pcb = Path(folder) / "drc.txt", Path(folder) / f"{NAME}.kicad_pcb"
    done = export.kicad(
        "pcb", "drc", "--schematic-parity", "--severity-all", "--exit-code-violations", "-o", report, pcb
    )
    return done.returncode == 0, report.read_text() if report.exists() else done.stdout + done.stderr


def project(folder, text):
    """Put a copy of the KiCad project with `text` as its board into folder."""
    (folder / f"{NAME}.pretty").mkdir(parents=True, exist_ok=True)
    for name, content in layout.library().items():
        (folder / name).write_text(content)
    for name in (f"{NAME}.kicad_sch", f"{NAME}.kicad_sym", f"{NAME}.kicad_pro", "sym-lib-table"):
        shutil.copy(FOLDER / name, folder)
    (folder / f"{NAME}.kicad_pcb").write_text(text)


def picture(folder):
    """The front of the board as SVG: copper, print, edge."""
    path = Path(folder) / "picture.svg"
    pcb = Path(folder) / f"{NAME}.kicad_pcb"
    how = ("--layers", DRAWN, "--mode-single", "--page-size-mode", "2", "--exclude-drawing-sheet")
    export.kicad("pcb", "export", "svg", *how, "-o", path, pcb).check_returncode()
    text = re.sub(r"<title>[^<]*</title>", "<title>ssdrig, front</title>", path.read_text(), count=1)
    # KiCad writes each text as strokes and, unseen, as text
    text = re.sub(r'<g class="stroked-text">.*?</g>', "", text, flags=re.DOTALL)
    text = text.replace(' opacity="0" stroke-opacity="0"', ' font-family="sans-serif" stroke="none" fill="#101010"')
    text = re.sub(r"(\d\.\d\d)\d+", r"\1", text)
    for theirs, ours in COLOURS.items():
        text = text.replace(theirs, ours)
    return "\n".join(filter(None, (line.rstrip() for line in text.splitlines()))) + "\n"


def main(folder):
    text = layout.board(poured(layout.board({})))
    with tempfile.TemporaryDirectory() as temporary:
        project(Path(temporary), text)
        ok, report = rule_check(temporary)
        print(report, file=sys.stderr)
        if not ok:
            return 1
        drawing = picture(temporary)
    (folder / f"{NAME}.pretty").mkdir(parents=True, exist_ok=True)
    for name, content in (layout.library() | {f"{NAME}.kicad_pcb": text, f"{NAME}-pcb.svg": drawing}).items():
        (folder / name).write_text(content)
        print(folder / name)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
