"""The gerbers of every board: layers as the job file has them, holes and outline as the sources say, and copper that
another program draws as KiCad does."""

import base64
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import browser
import pytest
from board_files import kicad  # noqa: F401  a fixture
from conftest import ROOT

COPPER = {"F.Cu": "F_Cu.gtl", "In1.Cu": "In1_Cu.g1", "In2.Cu": "In2_Cu.g2", "B.Cu": "B_Cu.gbl"}
FOLDERS = {"board": "hardware/board", "breakout": "hardware/breakout/board", "interposer": "hardware/interposer/board"}
pytestmark = pytest.mark.slow
gerbonara = pytest.mark.skipif(
    importlib.util.find_spec("gerbonara") is None, reason="no gerbonara (extra hardware-test)"
)

DIFFERENCE = """
(async () => {
  const [a, b] = await Promise.all(%s.map(async (url) => {
    const image = new Image(); image.src = url; await image.decode();
    const canvas = new OffscreenCanvas(%d, %d), c = canvas.getContext("2d", {willReadFrequently: true});
    c.fillStyle = "white"; c.fillRect(0, 0, canvas.width, canvas.height);
    c.drawImage(image, 0, 0, canvas.width, canvas.height);
    return c.getImageData(0, 0, canvas.width, canvas.height).data;
  }));
  const wide = %d, dark = (of, at) => of[4 * at] < 128;
  const near = [-wide - 1, -wide, 1 - wide, -1, 1, wide - 1, wide, wide + 1];
  let differ = 0, copper = 0;
  for (let at = wide + 1; at < a.length / 4 - wide - 1; at++) {
    const x = dark(a, at), y = dark(b, at);
    copper += x || y;
    differ += x != y && near.every((step) => dark(b, at + step) == y);  // not at an edge, which may be a pixel off
  }
  return [differ, copper];
})()
"""


class Order(NamedTuple):
    """A board's project, its gerbers, and what its sources say of it."""

    project: Path
    gerbers: Path
    name: str
    width_mm: float
    height_mm: float
    layers: dict[str, str]  # copper: KiCad's name -> end of the file's name
    plated: Counter[float]  # holes of each diameter, mm; vias are plated
    unplated: Counter[float]


def run(board: str, script: str) -> str:
    """What a script prints last, with this board's modules before the tools of hardware/board."""
    paths = [str(ROOT / folder) for folder in (FOLDERS[board], "hardware/board", "host")]
    head = f"import sys, json\nsys.path[:0] = {paths!r}\n"
    done = subprocess.run([sys.executable, "-c", head + script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module", params=FOLDERS)
def order(kicad, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("order")
    facts = json.loads(
        run(
            request.param,
            f"""
import fill, layout, place, release
from pathlib import Path
folder = Path({str(folder)!r})
fill.project(folder / "project", (layout.FOLDER / f"{{release.NAME}}.kicad_pcb").read_text())
(folder / "out").mkdir()
release.gerbers(folder / "project", folder / "out")
print(json.dumps([release.NAME, place.WIDTH, place.HEIGHT, place.LAYERS]))
""",
        )
    )
    name, width_mm, height_mm, count = facts
    with zipfile.ZipFile(folder / f"out/{name}-gerbers.zip") as archive:
        archive.extractall(folder / "gerbers")
    text = (folder / f"project/{name}.kicad_pcb").read_text()
    layers = COPPER if count == 4 else {layer: COPPER[layer] for layer in ("F.Cu", "B.Cu")}
    plated, unplated = Counter(), Counter()
    for match in re.finditer(r"\((via\b|pad \S+ thru_hole|pad \S+ np_thru_hole).*?\(drill ([\d.]+)\)", text, re.DOTALL):
        (unplated if "np_" in match[1] else plated)[float(match[2])] += 1
    return Order(folder / "project", folder / "gerbers", name, width_mm, height_mm, layers, plated, unplated)


def test_the_job_file_names_the_layers_as_the_gerbers_do(order):
    (path,) = order.gerbers.glob("*.gbrjob")
    job = json.loads(path.read_text())
    functions = {row["Path"]: row["FileFunction"] for row in job["FilesAttributes"]}
    own = {file: re.search(r"TF\.FileFunction,([^*]+)\*", (order.gerbers / file).read_text())[1] for file in functions}
    last = len(order.layers)
    sides = ["Top", *["Inr"] * (last - 2), "Bot"]
    assert functions == own and "Finish" not in job["GeneralSpecs"]
    assert [word for word in functions.values() if word.startswith("Copper")] == [
        f"Copper,L{k},{side}" for k, side in enumerate(sides, 1)
    ]


@gerbonara
def test_another_program_reads_every_layer_and_every_hole(order):
    from gerbonara import ExcellonFile, GerberFile

    for layer, end in order.layers.items():
        assert len(GerberFile.open(order.gerbers / f"{order.name}-{end}").objects) > 20, layer
    (left, low), (right, high) = GerberFile.open(order.gerbers / f"{order.name}-Edge_Cuts.gm1").bounding_box()
    assert right - left == pytest.approx(order.width_mm, abs=0.2)
    assert high - low == pytest.approx(order.height_mm, abs=0.2)
    within = (left - 0.01, right + 0.01), (low - 0.01, high + 0.01)
    for kind, wanted in (("PTH", order.plated), ("NPTH", order.unplated)):
        path = order.gerbers / f"{order.name}-{kind}.drl"
        holes = ExcellonFile.open(path).objects
        assert Counter(round(hole.tool.diameter, 3) for hole in holes) == wanted and wanted, kind
        assert all(within[0][0] < hole.x < within[0][1] and within[1][0] < hole.y < within[1][1] for hole in holes)
        assert (
            f"TF.FileFunction,{'Plated' if kind == 'PTH' else 'NonPlated'},1,{len(order.layers)},{kind}"
            in path.read_text()
        )
    # mask, paste and print of the side with the parts, where the board has such parts
    for end in ("F_Mask.gts", "B_Mask.gbs", "F_Silkscreen.gto"):
        file = GerberFile.open(order.gerbers / f"{order.name}-{end}")
        (x0, y0), (x1, y1) = file.bounding_box()
        assert len(file.objects) > 20 and (x1 - x0) > 0.6 * order.width_mm and (y1 - y0) > 0.6 * order.height_mm, end


def drawn_by_kicad(order, folder):
    """({layer: KiCad's picture of it, from the board}, the pictures' size in mm)."""
    how = ["--mode-multi", "--page-size-mode", "2", "--exclude-drawing-sheet", "--black-and-white"]
    words = ["--layers", ",".join(order.layers), *how, "--drill-shape-opt", "0", "-o", str(folder)]
    pcb = str(order.project / f"{order.name}.kicad_pcb")
    run(
        "board", f"import export\nexport.kicad('pcb', 'export', 'svg', *{words!r}, {pcb!r}).check_returncode()\nprint()"
    )
    pages = {layer: folder / f"{order.name}-{layer.replace('.', '_')}.svg" for layer in order.layers}
    (size,) = {
        tuple(map(float, re.search(r'viewBox="0.0+ 0.0+ (\S+) (\S+)"', svg.read_text()).groups()))
        for svg in pages.values()
    }
    return pages, size


@gerbonara
@pytest.mark.skipif(browser.find() is None, reason="no Chromium (package chromium-headless-shell)")
def test_gerbers_are_the_board(order, tmp_path):
    """Each copper layer, drawn by gerbonara from the gerber file and by KiCad from the board: the same to 0.08 mm
    at the edges. A track that is left out of one is seen."""
    from gerbonara import GerberFile

    drawn, page_mm = drawn_by_kicad(order, tmp_path)
    pages, files = (
        {},
        {layer: GerberFile.open(order.gerbers / f"{order.name}-{end}") for layer, end in order.layers.items()},
    )
    for layer, file in files.items():
        # KiCad's page begins half the width of the edge's line before the board, and ends where the last thing does
        edge_mm = (page_mm[0] - order.width_mm) / 2
        box = ((-edge_mm, edge_mm - page_mm[1]), (page_mm[0] - edge_mm, edge_mm))
        (tmp_path / f"{layer}-gerber.svg").write_text(str(file.to_svg(force_bounds=box)))
        pages[layer] = [drawn[layer].name, f"{layer}-gerber.svg"]
    file = files["F.Cu"]
    widest = max(
        (o for o in file.objects if type(o).__name__ == "Line"), key=lambda o: abs(o.x2 - o.x1) + abs(o.y2 - o.y1)
    )
    file.objects.remove(widest)
    (tmp_path / "broken.svg").write_text(str(file.to_svg(force_bounds=box)))
    page = tmp_path / "page.html"
    page.write_text("<p>")
    wide, high = (round(12 * side) for side in page_mm)
    with browser.Browser() as b:
        b.open(page)
        part = lambda one, other: b.js(DIFFERENCE % ([data(tmp_path / one), data(tmp_path / other)], wide, high, wide))
        differing = {}
        for layer, (one, other) in pages.items():
            differ, copper = part(one, other)
            assert copper > 0.25 * wide * high, layer
            assert differ < 1e-5 * copper, (layer, differ, copper)
            differing[layer] = differ
        assert part(pages["F.Cu"][0], "broken.svg")[0] > differing["F.Cu"] + 10


@pytest.mark.skipif(shutil.which("gerbv") is None, reason="no gerbv (package gerbv)")
@pytest.mark.skipif(browser.find() is None, reason="no Chromium (package chromium-headless-shell)")
def test_a_third_program_draws_the_same_copper(order, tmp_path):
    """gerbv, which shares no code with KiCad or gerbonara, draws each copper layer as KiCad does from the board."""
    pages, page_mm = drawn_by_kicad(order, tmp_path)
    edge_mm = (page_mm[0] - order.width_mm) / 2
    inches = lambda *mm: "x".join(f"{side / 25.4:.5f}" for side in mm)
    how = ["-x", "png", "-D", "600", "-B", "0", "-b", "#FFFFFF", "-f", "#000000FF"]
    how += ["-O", inches(-edge_mm, edge_mm - page_mm[1]), "-W", inches(*page_mm)]
    wide, high = (round(12 * side) for side in page_mm)
    page = tmp_path / "page.html"
    page.write_text("<p>")
    with browser.Browser() as b:
        b.open(page)
        for layer, end in order.layers.items():
            picture = tmp_path / f"{layer}.png"
            subprocess.run(["gerbv", *how, "-o", picture, order.gerbers / f"{order.name}-{end}"], capture_output=True)
            differ, copper = b.js(DIFFERENCE % ([data(pages[layer]), data(picture)], wide, high, wide))
            assert copper > 0.25 * wide * high and differ < 1e-4 * copper, (layer, differ, copper)
            other = pages["B.Cu" if layer == "F.Cu" else "F.Cu"]
            assert b.js(DIFFERENCE % ([data(other), data(picture)], wide, high, wide))[0] > 0.01 * copper, layer


def data(path):
    kind = {".svg": "svg+xml", ".png": "png"}[path.suffix]
    return f"data:image/{kind};base64," + base64.b64encode(path.read_bytes()).decode()


def test_the_same_sources_give_the_same_gerbers(order, tmp_path):
    if order.name == "ssdrig":
        pytest.skip("the two smaller boards show it")
    board = next(board for board, folder in FOLDERS.items() if (ROOT / folder / f"{order.name}.kicad_pcb").exists())
    paths = f"Path({str(order.project)!r}), Path({str(tmp_path)!r})"
    run(board, f"import release\nfrom pathlib import Path\nrelease.gerbers({paths})\nprint()")
    with zipfile.ZipFile(tmp_path / f"{order.name}-gerbers.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            path.name: path.read_bytes() for path in order.gerbers.iterdir()
        }
