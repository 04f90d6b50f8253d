"""The M.2 interposer (hardware/interposer): its circuit against the board's, its pairs on the layout, and their signal
integrity by two methods."""

import csv
import json
import math
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from board_files import kicad  # noqa: F401  a fixture
from conftest import ROOT

FOLDER = ROOT / "hardware/interposer/board"
PATHS = [str(FOLDER), str(ROOT / "hardware/board"), str(ROOT / "host")]
sys.path.insert(0, str(ROOT / "hardware/interposer"))
import fullwave
import pairs


def asked(script):
    """What a script prints as JSON, with the interposer's modules before the board's."""
    head = f"import sys, json\nsys.path[:0] = {PATHS!r}\n"
    done = subprocess.run([sys.executable, "-c", head + script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def facts():
    return asked("""
import release, circuit, layout, place, rules
parts = {part.ref: part for part in circuit.PARTS if not part.ref.startswith("#")}
print(json.dumps({
    "stale": release.stale(), "lacking": release.lacking(release.bill()), "usd": release.total_usd(release.bill()),
    "nets": {ref: part.nets for ref, part in parts.items()},
    "symbols": {ref: part.symbol for ref, part in parts.items()},
    "lands": [land._asdict() for land in layout.lands() if land.ref in ("J3", "J4")],
    "tracks": layout.tracks(), "pair_mm": place.PAIR_mm, "wide_mm": place.WIDE_mm,
    "stack": [rules.PREPREG_mm, rules.INNER_mm, rules.CORE_mm, rules.PERMITTIVITY],
    "thick": sum(thickness or 0 for name, kind, thickness in rules.STACKUP if kind in ("copper", "prepreg", "core")),
    "voids": place.VOIDS, "order": release.order(release.bill()),
}))
""")


@pytest.mark.slow
def test_sources_and_files_agree_and_no_part_lacks_a_number(facts):
    assert facts["stale"] == [] and facts["lacking"] == [] and 15 < facts["usd"] < 30


def test_it_is_as_thick_as_a_card(facts):
    assert facts["thick"] == pytest.approx(0.8, abs=0.08)


def test_pcie_and_ground_go_through_and_the_supply_does_not(facts):
    edge, socket = facts["nets"]["J3"], facts["nets"]["J4"]
    assert set(edge) == set(socket) and len(edge) == 67
    odd = {pin for pin in edge if int(pin) % 2}
    through = {pin for pin in odd if edge[pin]}
    assert all(edge[pin] == socket[pin] for pin in odd) and len(through) == 18 + 14
    assert {pin for pin in edge if edge[pin] == "HOST_3V3"} == {pin for pin in socket if socket[pin] == "RAIL0_OUT"}
    assert sum(net == "HOST_3V3" for net in edge.values()) == 9
    assert {edge[p] for p in edge} & {socket[p] for p in socket} == {None, "GND", *(edge[p] for p in through)}


def test_side_band_is_switched_as_on_the_board(facts):
    """PERST# held behind 1 kOhm, the others through the bus switch: nothing else joins host and drive."""
    nets = facts["nets"]
    assert nets["R15"] == {"1": "PERST_HOST", "2": "PERST"} and nets["Q1"] == {
        "1": "PERST_LOW",
        "2": "GND",
        "3": "PERST",
    }
    assert nets["J3"]["50"] == "PERST_HOST" and nets["J4"]["50"] == "PERST"
    for host, drive, name in (("2", "3", "CLKREQ"), ("5", "6", "PEWAKE"), ("9", "8", "SMBCLK"), ("12", "11", "SMBDAT")):
        assert nets["U4"][host] == f"{name}_HOST" and nets["U4"][drive] == f"{name}_DRIVE"
    open_ones = {pin for pin in ("38", "44", "68", "69") if nets["J4"][pin] or nets["J3"][pin]}
    assert open_ones == set() and nets["J3"]["10"] is None  # DEVSLP, ALERT#, SUSCLK, PEDET, the host's LED_1#


def test_the_sensor_is_that_of_rail_0(facts):
    nets = facts["nets"]
    assert nets["R107"] == {"1": "SW0", "2": "RAIL0_OUT"} and nets["J1"] == {"1": "HOST_3V3", "2": "GND", "3": "SW0"}
    sensor = nets["U101"]
    assert (sensor["10"], sensor["9"], sensor["8"]) == ("IN0_PLUS", "IN0_MINUS", "VBUS0")
    assert sensor["1"] == sensor["2"] == "GND"  # 0x40, as build one_m2_rail has it
    build = json.loads((ROOT / "hardware/builds/one_m2_rail.json").read_text())
    assert build["rails"][0]["address"] == 0x40 and build["rails"][0]["shunt_uOhm"] == 8000


def test_every_pin_of_its_parts_has_a_limit(facts):
    """Those of the board's parts (limits.csv): a row names the symbol and the reference without the rail's number."""
    with open(ROOT / "hardware/limits.csv", newline="") as file:
        rows = [(row["part"].split(), row["pins"].split()) for row in csv.DictReader(file)]
    for ref, nets in facts["nets"].items():
        if ref[0] == "J":
            continue  # contacts and wires have rows of their own
        own = {ref if len(ref) < 4 else ref[0] + ref[2:], "other"}
        for pin in nets:
            assert any(part[0] == facts["symbols"][ref] and own & set(part[1:]) and pin in pins for part, pins in rows)


def test_every_strip_is_straight_and_as_long_as_the_others(facts):
    lands = {(land["ref"], land["number"]): land for land in facts["lands"] if land["number"]}
    lengths = set()
    for number in (str(n) for n in range(5, 56, 2)):
        net = lands["J3", number]["net"]
        assert lands["J3", number]["x"] == pytest.approx(lands["J4", number]["x"])
        if net == "GND":
            continue
        ((_, layer, width, ((x0, y0), (x1, y1))),) = [track for track in facts["tracks"] if track[0] == net]
        assert layer == "F.Cu" and width == facts["wide_mm"] and x0 == x1 == pytest.approx(lands["J3", number]["x"])
        lengths.add(round(y1 - y0, 6))
    assert len(lengths) == 1
    assert facts["pair_mm"] == pytest.approx(pairs.LENGTH_mm, abs=0.005)


def test_vias_stay_off_the_pairs(facts):
    """A via of another net between two strips of a pair would unbalance it."""
    x = {
        land["number"]: land["x"]
        for land in facts["lands"]
        if land["ref"] == "J3" and land["net"] and "_" in land["net"]
    }
    strips = [x[str(n)] for n in range(5, 56, 2) if str(n) in x and x[str(n)]]
    for net, layer, width, points in facts["tracks"]:
        if layer == "via" and 13 < points[0][1] < 39:
            assert min(abs(points[0][0] - at) for at in strips) - width / 2 - 0.1 >= 0.149, (net, points)


def test_the_solver_and_the_layout_have_one_stack(facts):
    prepreg, inner, core, permittivity = facts["stack"]
    assert (pairs.STACK.height_mm, pairs.STACK.permittivity) == (prepreg, permittivity)
    assert pairs.DEEP.height_mm == pytest.approx(prepreg + inner + core) and pairs.WIDTH_mm == facts["wide_mm"]
    assert {layer for layer, _ in facts["voids"]} == {"In1.Cu"} and len(facts["voids"]) == 2


def test_the_field_between_two_plates_is_that_of_the_formula():
    """Two dielectrics in series, 2 wide: eps / d each."""
    dx, dy = np.full(8, 0.25), np.r_[np.full(4, 0.1), np.full(6, 0.05)]
    eps = np.ones((8, 10))
    eps[:, :4] = 4.0
    fixed = np.zeros((9, 11), bool)
    fixed[:, 0] = fixed[:, -1] = True
    potential = np.zeros((9, 11))
    potential[:, -1] = 1.0
    assert pairs.energy(dx, dy, eps, fixed, potential) == pytest.approx(2 / (0.4 / 4 + 0.3), rel=1e-9)


def test_impedance_by_meshes_and_by_formula():
    impedances = {name: z for name, (z, _) in pairs.methods().items()}
    closed = impedances.pop("closed form")
    assert max(impedances.values()) / min(impedances.values()) < 1.03
    for z in (*impedances.values(), closed):
        assert z == pytest.approx(pairs.TARGET_Ohm, rel=0.1)
    assert closed == pytest.approx(impedances["field, mesh x 1"], rel=0.1)


def test_a_wider_strip_has_less_and_a_thicker_dielectric_more():
    thin, wide = pairs.solved(width_mm=0.15, fineness=0.7), pairs.solved(width_mm=0.25, fineness=0.7)
    assert thin.zdiff_Ohm > 92 and wide.zdiff_Ohm < 76
    assert pairs.solved(pairs.STACK._replace(height_mm=0.2), fineness=0.7).zdiff_Ohm > 100


def test_loss_and_budget():
    """1 dB at 8 GHz, 2 dB at 16 GHz, within 10 % whatever the mesh; less than the budgets leave."""
    loss = lambda f, mesh: -20 * math.log10(abs(pairs.chain(pairs.pieces(fineness=mesh), f)[1]))
    for f, most_dB in ((8e9, 1.3), (16e9, 2.3)):
        losses = [loss(f, mesh) for mesh in (0.7, 1.0)]
        assert losses[0] == pytest.approx(losses[1], rel=0.1) and 0.3 < max(losses) < most_dB
    rows = {row["generation"]: row for row in pairs.generations(fineness=0.7)}
    assert rows["Gen4"]["left_inch"] > 10 and rows["Gen5"]["left_inch"] > 6
    assert all(row["return_loss_dB"] > 15 and row["skew_ps"][0] == 0 for row in rows.values())
    assert rows["Gen3"]["eye"] > rows["Gen4"]["eye"] > rows["Gen5"]["eye"] > 0.6


def test_a_piece_without_loss_keeps_all_the_energy(monkeypatch):
    monkeypatch.setattr(pairs, "loss_Np_m", lambda line, f: (0.0, 0.0))
    for z in (60.0, 85.0, 120.0):
        s11, s21 = pairs.chain([(pairs.Line(z, 3.0, 0.8, 0.0), 20.0)], 7e9)
        assert abs(s11) ** 2 + abs(s21) ** 2 == pytest.approx(1)
        assert (abs(s11) < 1e-9) == (z == 85.0)


def test_the_tables_of_the_readme_are_what_the_solver_gives():
    text = (ROOT / "hardware/interposer/README.md").read_text()
    assert pairs.markdown() == text.split("<!-- signal -->\n")[1].split("\n<!-- end -->")[0]


def test_the_command_prints_them(capsys):
    from ssdrig import cli

    assert cli.main(["hardware", "signal", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["generation"] for row in document["generations"]} == {"Gen3", "Gen4", "Gen5"}
    assert document["assumed"] == pairs.ASSUMED


# ---- the second solver


@pytest.mark.parametrize("f", fullwave.FREQUENCIES_Hz)
def test_a_wave_is_read_from_three_voltages_and_a_current_whatever_the_ends_reflect(f):
    z, gamma = 41.5, complex(4.2, 36.6 * f / 1e9)
    zs = fullwave.grid(pairs.STACK, pairs.WIDTH_mm, pairs.PITCH_mm, 1.0)[2]
    of = lambda x_mm, sign: np.exp(-gamma * x_mm * 1e-3) + sign * complex(0.2, -0.3) * np.exp(gamma * x_mm * 1e-3)
    middle = fullwave.PROBES_mm[1]
    probes = [of(x - middle, 1) for x in fullwave.PROBES_mm] + [of((zs[1] - zs[0]) / 2, -1) / z]
    wave = fullwave.wave(probes, zs)
    assert wave.zdiff_Ohm == pytest.approx(2 * z) and wave.gamma_per_m == pytest.approx(gamma)


def test_the_second_solvers_model_is_the_firsts():
    """Grid lines in order; edges of strip, guard, laminate and mask are lines; the probes lie outside the ends."""
    stack, width_mm, half = pairs.STACK, pairs.WIDTH_mm, pairs.PITCH_mm / 2
    xs, ys, zs = fullwave.grid(stack, width_mm, pairs.PITCH_mm, fullwave.COARSE)
    assert all((np.diff(lines) > 1e-6).all() for lines in (xs, ys, zs))
    for edge in (half - width_mm / 2, half + width_mm / 2, 3 * half - width_mm / 2, 3 * half + width_mm / 2):
        assert np.abs(xs - edge).min() < 1e-9
    for level in (0, stack.height_mm, stack.height_mm + stack.thickness_mm, stack.height_mm + stack.mask_mm):
        assert np.abs(ys - level).min() < 1e-9
    ends = zs[fullwave.ABSORBING], zs[-1 - fullwave.ABSORBING]
    assert ends[0] < fullwave.SOURCE_mm < min(fullwave.PROBES_mm) and max(fullwave.PROBES_mm) < ends[1]
    text = ElementTree.fromstring(fullwave.document(stack, width_mm, pairs.PITCH_mm, fullwave.COARSE, 8e9))
    assert len(text.findall(".//ConductingSheet/Primitives/Box")) == 9  # plane, four faces of strip and guard


def test_each_figure_is_the_same_by_two_methods():
    """The committed table against the 2-D field and the closed forms, which are made again: within 10 %. openEMS has
    impedance, speed, laminate and mask; the copper's loss in it falls with the mesh, so the closed form has that."""
    text = (ROOT / "hardware/interposer/README.md").read_text()
    table = text.split("<!-- fullwave -->\n")[1].split("\n<!-- end -->")[0].splitlines()[2:]
    rows = {name.strip(): cells for name, *cells in (line.strip("|").split("|") for line in table)}
    assert list(rows) == list(fullwave.flat())
    for column, made in enumerate((fullwave.flat(), fullwave.closed())):
        for name, value in made.items():
            cell = rows[name][column].strip()
            assert value is None if cell == "-" else float(cell) == pytest.approx(value, rel=0.001)
    for name, cells in rows.items():
        flat, closed, *waves = [None if cell.strip() == "-" else float(cell) for cell in cells]
        seconds = [closed] if name == fullwave.COPPER else waves
        assert seconds == pytest.approx([flat] * len(seconds), rel=0.1), name


def test_the_masks_loss_counts():
    line, bare = pairs.solved(fineness=0.7), pairs.solved(pairs.STACK._replace(mask_mm=0.0), fineness=0.7)
    copper, laminate = pairs.loss_Np_m(line, 8e9)
    assert laminate > 1.05 * pairs.loss_Np_m(bare, 8e9)[1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openEMS") is None, reason="no openEMS (apt-get install openems)")
def test_openems_gives_the_pairs_impedance_and_speed():
    """At a coarse mesh, which makes the strip wider by a part of a cell."""
    wave = fullwave.simulated(pairs.STACK, pairs.WIDTH_mm, 8e9, fineness=0.5)[0]
    line = pairs.solved()
    assert abs(wave.zdiff_Ohm) == pytest.approx(line.zdiff_Ohm, rel=0.1)
    assert wave.gamma_per_m.imag == pytest.approx(pairs.gamma_per_m(line, 8e9).imag, rel=0.03)
    assert wave.gamma_per_m.real == pytest.approx(pairs.gamma_per_m(line, 8e9).real, rel=0.15)


def test_its_parts_are_the_boards(facts):
    """Numbers and prices of one part are the same on both bills."""
    rows = {}
    for folder in ("board", "interposer/board"):
        with open(ROOT / "hardware" / folder / "bom.csv", newline="") as file:
            rows[folder] = {row["item"]: row for row in csv.DictReader(file)}
    own = set(rows["interposer/board"]) - {"M.2 socket", "PCB, one of five"}
    for item in own:
        for name in ("part_number", "unit_usd", "number_basis", "lcsc"):
            assert rows["interposer/board"][item][name] == rows["board"][item][name], (item, name)
    assert "assembler" in facts["order"] and "interposer-gerbers.zip" in facts["order"]


@pytest.mark.slow
def test_kicad_has_nothing_to_say(kicad, tmp_path):
    """Electrical rules, design rules, parity of schematic and layout."""
    messages = asked(f"""
import export, fill, layout
from pathlib import Path
folder = Path({str(tmp_path)!r})
fill.project(folder, (layout.FOLDER / "interposer.kicad_pcb").read_text())
erc = export.rule_check(folder / "interposer.kicad_sch", folder / "erc.txt")
print(json.dumps([erc, fill.rule_check(folder)]))
""")
    assert [ok for ok, _ in messages] == [True, True], messages
