"""Bills of material, costs, shunt table, first power-up figures, wiring of the breakout build: each worked out
again."""

import datetime
import html
import importlib.util
import math
import re
import shutil

import pytest
from board_files import HARDWARE, PARTS, PINS, README, circuit, ohm, table

# ---- bills of material


def test_board_bill_counts_the_netlists_parts():
    listed = {row["item"]: row for row in table("board/bom.csv") if row["references"]}
    used = {}
    for ref, part in PARTS.items():
        if not ref.startswith("#") and part.item:
            used.setdefault(part.item, []).append(ref)
    assert {item: row["references"].split() for item, row in listed.items()} == {
        item: sorted(refs) for item, refs in used.items()
    }
    assert {item: int(row["quantity"]) for item, row in listed.items()} == {
        item: len(refs) for item, refs in used.items()
    }


def test_board_bill_names_the_parts_that_the_simulation_used():
    listed = {row["item"]: row["part_number"] for row in table("board/bom.csv")}
    rails = {rail for rail, *_ in circuit.RAILS}
    same = {
        "shunt": "shunt",
        "gate_capacitor": "gate capacitor",
        "input_bulk": "input bulk",
        "small_fet_rds_on": "small FET",
        "fet_rds_on": "series FET",
    }
    for (rail, name), quantity in circuit.VALUES.items():
        if rail not in rails or not quantity.part:
            continue
        item = same.get(name) or (
            f"{name} {rail}" if name == "crowbar" or (name == "fuse" and quantity.value) else None
        )
        if item:
            assert listed[item] == re.split(r" \(|,? / ", quantity.part.replace(" (board, DPAK)", " (board)"))[0], (
                rail,
                name,
            )


@pytest.mark.parametrize("path", ["board/bom.csv", "breakout/bom.csv"])
def test_prices_are_dated_and_have_a_source_and_estimates_are_called_so(path):
    for row in table(path):
        assert row["manufacturer"] and row["part_number"], row
        assert 0 < float(row["unit_usd"]) < 20
        assert datetime.date(2026, 1, 1) <= datetime.date.fromisoformat(row["price_date"])
        assert row["price_basis"] in ("estimate", "quoted")
        assert row["price_source"] and row["price_source"].startswith("own estimate") == (
            row["price_basis"] == "estimate"
        ), row


def cost_usd(path, column, basis=("estimate", "quoted")):
    return sum(float(row["unit_usd"]) * int(row[column]) for row in table(path) if row["price_basis"] in basis)


def test_costs_are_what_the_readme_says_and_the_documented_build_is_below_60_USD():
    columns = [name for name in table("breakout/bom.csv")[0] if name.startswith(("one_", "two_"))]
    assert len(columns) == 6
    for path, column in [("breakout/bom.csv", name) for name in [*columns, "fast_channel"]] + [
        ("board/bom.csv", "quantity")
    ]:
        assert f"| {column} | {cost_usd(path, column):.2f} | {cost_usd(path, column, ('quoted',)):.2f} |" in README
    assert "| **two rails: INA228 board on 5 V, INA226 board on 12 V** | two_rails |" in README
    assert all(cost_usd("breakout/bom.csv", name) < 60 for name in columns if name != "two_ina228_boards")
    own = "breakout/board/bom.csv"
    board = f"{cost_usd(own, 'quantity'):.2f} | {cost_usd(own, 'quantity', ('quoted',)):.2f} |"
    assert f"| [its own](breakout/board/bom.csv) | {board}" in README
    # nothing of the second rail was forgotten
    assert cost_usd("breakout/bom.csv", "two_rails") > cost_usd("breakout/bom.csv", "one_rail") + 10


@pytest.mark.parametrize(
    "column", ["one_rail", "two_rails", "two_ina228_boards", "two_ina228_chips", "one_ina229_rail", "one_m2_rail"]
)
def test_a_build_has_all_that_a_rail_needs(column):
    """A sensor a rail, a shunt where it has none of its own, and the parts that rig.lib gives each rail."""
    count = {row["item"]: int(row[column]) for row in table("breakout/bom.csv")}
    rails = 1 if column.startswith("one_") else 2
    chips = count["INA228 chip"] + count["INA229 chip"]
    assert count["INA228 board, 15 mOhm"] + count["INA226 board"] + chips == rails
    assert count["shunt, 8 mOhm"] == chips + count["INA226 board"] + (column == "one_m2_rail")
    assert count["VSSOP-10 adapter"] == count["decoupling of a chip"] == chips
    assert count["series FET"] == 2 * rails
    perst = column == "one_m2_rail"  # a FET that holds it low
    assert count["small FET"] == count["SOT-23 adapter"] == 2 * rails + perst
    assert {
        count[name] for name in ("gate clamp", "gate capacitor", "input bulk", "crowbar", "interlock capacitor")
    } == {rails}
    assert count["fuse"] == count["fuse holder"] == rails  # every lead of the supply
    assert {
        count[name]
        for name in (
            "microcontroller",
            "gate supply",
            "gate supply fuse",
            "interlock",
            "SATA power cable",
            "prototyping board",
        )
    } == {1}
    assert count["3.3 V converter"] == count["M.2 adapter"] == (column == "one_m2_rail")


def test_breakout_bill_names_the_parts_that_the_simulation_used():
    listed = " ".join(row["part_number"] for row in table("breakout/bom.csv"))
    wanted = {
        quantity.part.split(" / ")[1].split(" (")[0] for quantity in circuit.VALUES.values() if " / " in quantity.part
    }
    assert {"IRLB8743PBF", "SQP500JB-2R2", "SQP500JB-7R5", "MT3608 module"} <= wanted
    assert [part for part in wanted if part not in listed] == []


def test_breakout_bill_has_the_resistors_of_a_rail():
    per_rail = [
        part
        for part in circuit.PARTS
        if part.ref.startswith("R1") and len(part.ref) == 4 and part.ref not in ("R107", "R108") and part.ref < "R116"
    ]  # but shunt, crowbar and what protects the board's rail
    (row,) = [row for row in table("breakout/bom.csv") if row["item"] == "resistors"]
    assert int(row["one_m2_rail"]) == int(row["one_rail"]) + 2  # PERST#: 1 kOhm, 4.7 kOhm
    assert (int(row["one_rail"]), int(row["two_rails"])) == (
        len(per_rail) + 2,
        2 * len(per_rail) + 2,
    )  # 2: pull-ups of the bus


# ---- shunts: every row of the README's table worked out again

# full scale (V), steps in it, offset (V), offset drift (V/K), gain error, gain drift (1/K): data sheets of INA228 and
# INA226
CHIPS = {
    ("INA228", "fine"): (0.04096, 2**19, 1e-6, 10e-9, 0.0005, 20e-6),
    ("INA228", "coarse"): (0.16384, 2**19, 1e-6, 10e-9, 0.0005, 20e-6),
    ("INA226", "-"): (0.08192, 2**15, 10e-6, 100e-9, 0.001, 50e-6),
}
WARMER_K = 25  # of chip and shunt, above the temperature of the figures
SHUNT_PPM = 75
SHUNT_TOLERANCE = 0.01


def shunt_row(build, rail, volt, chip, measuring_range, shunt_mOhm):
    """The cells of one row. Errors are sums of the data sheets' largest values, uncalibrated."""
    scale_V, steps, offset_V, drift_V, gain, gain_drift = CHIPS[chip, measuring_range]
    shunt = shunt_mOhm / 1000
    full_A = scale_V / shunt
    offset_A = (offset_V + drift_V * WARMER_K) / shunt
    of_reading = gain + gain_drift * WARMER_K + SHUNT_TOLERANCE + SHUNT_PPM * 1e-6 * WARMER_K
    return [
        build,
        rail,
        f"{volt:g}",
        chip,
        measuring_range,
        f"{shunt_mOhm:g}",
        f"{full_A:.2f}",
        f"{full_A / steps * 1e6:.2f}",
        f"{3 * shunt * 1e3:.0f}",
        f"{3 * shunt / volt * 100:.2f}",
        f"{5 * shunt * 1e3:.0f}" if full_A >= 5 else "saturates",
        f"{offset_A * 1e3:.3f}",
        f"{offset_A * volt * 1e3:.2f}",
        f"{(offset_A + of_reading) * 100:.2f}",
    ]


def readme_rows(first_cell):
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in README.splitlines()
        if line.startswith("| ")
    ]
    return [row for row in rows if row[0] in first_cell]


def test_shunt_table():
    rows = [row for row in readme_rows(("board", "breakout")) if len(row) == 14]
    for row in rows:
        assert row == shunt_row(row[0], row[1], float(row[2]), row[3], row[4], float(row[5]))
    assert {row[1] for row in rows if row[0] == "board"} == {rail for rail, *_ in circuit.RAILS}
    assert {float(row[5]) for row in rows if row[0] == "board"} == {
        circuit.VALUES[rail, "shunt"].value * 1e3 for rail, *_ in circuit.RAILS
    }
    assert len(rows) == 12


def test_shunt_table_findings():
    fine = shunt_row("breakout", "x", 3.3, "INA228", "fine", 15)
    assert fine[6] == "2.73" and fine[10] == "saturates"  # the 15 mOhm board in the fine range
    assert shunt_row("board", "x", 3.3, "INA228", "fine", 8)[6] == "5.12"


def test_settings_for_board_py():
    rows = readme_rows(("8 mOhm, fine", "15 mOhm, fine", "15 mOhm, coarse", "8 mOhm, INA226"))
    assert len(rows) == 4
    for name, shunt_uOhm, lsb_pA, fine, full_A in rows:
        scale_V, steps, *_ = CHIPS[
            ("INA226", "-") if fine == "-" else ("INA228", "fine" if fine == "True" else "coarse")
        ]
        assert float(name.split()[0]) * 1000 == int(shunt_uOhm)
        assert int(lsb_pA) == int(scale_V / int(shunt_uOhm) * 1e6 / steps * 1e12 + 1e-3)
        assert float(full_A) == pytest.approx(scale_V / int(shunt_uOhm) * 1e6, abs=0.005)


def test_scope_and_discharge_settings_for_board_py():
    rows = [row for row in readme_rows([rail for rail, *_ in circuit.RAILS]) if len(row) == 4]
    assert [row[0] for row in rows] == [rail for rail, _, _, divider in circuit.RAILS if divider]
    for (rail, divider, nV_per_count, discharge_mOhm), (_, _, _, (upper, lower, *_)) in zip(rows, circuit.RAILS):
        assert divider == f"{upper} / {lower}"
        assert int(nV_per_count) == round(3.3e9 / 4096 * (ohm(upper) + ohm(lower)) / ohm(lower))
        ohms = sum(circuit.VALUES[rail, name].value for name in ("crowbar", "crowbar_fuse_ohm"))
        assert int(discharge_mOhm) == pytest.approx(ohms * 1000, rel=0.04)


# ---- wiring of the breakout build


def cable_rows(text):
    """The rows "A:1:x  1:BK  B:2:y" of the cables in a WireViz drawing: the connections."""
    cells = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", text)]
    ends = [cell.strip("\xa0 ") for cell in cells if re.match(r"\s*[A-Z0-9]+:\d+(:|\s|$)", cell.strip("\xa0 "))]
    return sorted(ends)


def test_wiring_uses_these_pins():
    text = (HARDWARE / "breakout/wiring.yml").read_text()
    numbers, labels = (
        re.split(", *", listed)
        for listed in re.search(r"  PICO:\n.*?pins: \[(.*?)\]\n *pinlabels: \[(.*?)\]", text, re.DOTALL).groups()
    )
    pins = dict(zip(numbers, labels, strict=True))
    assert (pins.pop("36"), pins.pop("38")) == ("3V3", "GND")
    assert pins == {row["pico_pin"]: row["net"] for row in PINS if row["pico_pin"] in pins}
    # each one is wired
    assert {end.removeprefix("PICO.") for end in wires(text) if end.startswith("PICO.")} == set(labels)


def wires(text):
    """{end: ends} of wiring.yml, an end being "NAME.label"; each of its connections stands on one line."""
    joined = {}
    for line in re.findall(r"^  - \[(.+)\]$", text, re.MULTILINE):
        steps = re.findall(r"(\w+): \[([^\]]+)\]", line)
        (one, ends), (_, numbers), (other, others) = (
            (name, re.findall(r'"([^"]+)"|([^\s,"]+)', listed)) for name, listed in steps
        )
        assert len(ends) == len(numbers) == len(others), line
        for (a, b), (c, d) in zip(ends, others):
            left, right = f"{one}.{a or b}", f"{other}.{c or d}"
            joined.setdefault(left, set()).add(right)
            joined.setdefault(right, set()).add(left)
    return joined


INSIDE = {
    "SWITCH0.RAIL_IN": "SWITCH0.SW",
    "SWITCH1.RAIL_IN": "SWITCH1.SW",
    "INA228.VIN+": "INA228.VIN-",
    "INA226.IN+": "INA226.IN-",
}


def reached(joined, start):
    """All ends that the current of `start` comes to, through switches and shunts."""
    seen, ahead = set(), [start]
    while ahead:
        end = ahead.pop()
        if end not in seen:
            seen.add(end)
            ahead += [*joined.get(end, ()), *([INSIDE[end]] if end in INSIDE else [])]
    return seen


def test_each_voltage_comes_to_its_own_wire_of_the_drive_through_switch_and_shunt():
    text = (HARDWARE / "breakout/wiring.yml").read_text()
    five, twelve = (reached(wires(text), f"PSU.{wire}") for wire in ("5 V red", "12 V yellow"))
    assert {end for end in five if end.startswith("DRIVE")} == {"DRIVE.5 V red"}
    assert {end for end in twelve if end.startswith("DRIVE")} == {"DRIVE.12 V yellow"}
    assert {"SWITCH0.SW", "INA228.VIN+", "INA228.VBUS", "BOOST.IN+"} <= five
    assert {"SWITCH1.SW", "INA226.IN+", "INA226.VBS"} <= twelve
    assert not five & twelve
    assert not any(end.startswith("PICO") for end in five | twelve)
    ground = reached(wires(text), "PSU.GND black")
    assert {
        "DRIVE.GND black",
        "BOOST.IN-",
        "SWITCH0.GND",
        "SWITCH1.GND",
        "PICO.GND",
        "INA228.GND",
        "INA226.GND",
    } <= ground
    crossed = text.replace('POWER_OUT1: [1], DRIVE: ["12 V yellow"]', 'POWER_OUT1: [1], DRIVE: ["5 V red"]')
    assert crossed != text and reached(wires(crossed), "PSU.5 V red") & reached(wires(crossed), "PSU.12 V yellow")


def test_drawing_of_the_wiring_shows_each_wire():
    ends = cable_rows((HARDWARE / "breakout/wiring.svg").read_text())
    for wire in (
        "PICO:14:OFF0",
        "SWITCH0:5:OFF",
        "PICO:17:DISCHARGE1",
        "SWITCH1:6:DISCHARGE",
        "INA228:7:VIN-",
        "INA228:8:VBUS",
        "SWITCH1:4:SW",
        "INA226:6:IN+",
    ):
        assert wire in ends, ends


def test_drawing_of_the_wiring_is_wirevizs(tmp_path):
    if not importlib.util.find_spec("wireviz") or not shutil.which("dot"):
        pytest.skip("no wireviz (PyPI) or no dot (package graphviz)")
    shutil.copy(HARDWARE / "breakout/wiring.yml", tmp_path)
    from wireviz.wireviz import parse

    parse(tmp_path / "wiring.yml", output_formats=("svg",), output_dir=tmp_path, output_name="wiring")
    assert cable_rows((tmp_path / "wiring.svg").read_text()) == cable_rows(
        (HARDWARE / "breakout/wiring.svg").read_text()
    )


# ---- the text


def test_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 8
    assert [link for link in links if "://" not in link and not (HARDWARE / link).exists()] == []


def test_first_power_up_table():
    rows = {row[0]: row[1:] for row in readme_rows([rail for rail, *_ in circuit.RAILS]) if len(row) == 7}
    assert list(rows) == [rail for rail, _, _, divider in circuit.RAILS if divider]
    gate_supply = 1.233 * (1 + ohm(PARTS["R13"].value) / ohm(PARTS["R14"].value))
    for n, (rail, cells) in enumerate(rows.items()):
        value = {name: quantity.value for (row, name), quantity in circuit.VALUES.items() if row == rail}
        volt, upper, lower = value["voltage"], *(ohm(PARTS[f"R{n + 1}{which}"].value) for which in ("12", "13"))
        gate = min(gate_supply, volt + value["gate_clamp"])
        assert cells == [
            f"{volt:g}",
            f"{(upper + lower) / 1000:.1f}",
            f"{volt * lower / (upper + lower):.2f}",
            f"{gate:.1f}",
            f"{volt / (value['crowbar'] + value['crowbar_fuse_ohm']):.2f}",
            f"{2.2 * (value['crowbar'] + value['crowbar_fuse_ohm']) * 470e-6 * 1e3:.2f}",
        ]


def test_the_table_of_bandwidths_is_what_the_conversions_make():
    """A mean of T is sinc(f T); the fast channel has two poles, in values.csv."""
    rows = [
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in README.splitlines()
        if re.match(r"\| (INA228, as shipped|INA229, 50 us|fast current channel) [^|]*\| [\d ]+ \|", line)
    ]
    sinc = lambda x: math.sin(math.pi * x) / (math.pi * x)
    v = {row["name"]: float(row["value"]) for row in table("values.csv") if row["rail"] == "all"}
    poles_Hz = (v["fast_bandwidth"], 1 / (2 * math.pi * v["fast_filter_resistor"] * v["fast_filter_capacitor"]))
    fast = lambda hz: math.prod(1 / math.hypot(1, hz / pole) for pole in poles_Hz)
    channels = ((907, lambda hz: sinc(hz * 1052e-6)), (10_000, lambda hz: sinc(hz * 50e-6)), (250_000, fast))
    assert len(rows) == 3
    for row, (rate, gain) in zip(rows, channels, strict=True):
        number = lambda text: float(re.match(r"[\d.]+", text.replace(" ", ""))[0])
        kilo = 1000 if "kHz" in row[1] else 1
        assert number(row[0]) == rate
        assert gain(kilo * number(row[1])) == pytest.approx(math.sqrt(0.5), rel=0.02)
        assert gain(rate / 2) == pytest.approx(number(row[2]), abs=0.01)
        assert 100 * gain(rate) == pytest.approx(number(row[3]), rel=0.03)
