"""What firmware/board.py and the builds of hardware/builds say of pins, shunts, addresses, dividers and resistors,
against hardware/."""

import ast
import json
import sys

import pytest
from board_files import PINS, README, ROOT, at, circuit, ohm, wired
from simboard import Board
from test_meter import missed_of, rate, samples_of, steps

from ssdrig.meter import wire
from ssdrig.rig import builds

pytestmark = pytest.mark.keeps_time

sys.path.insert(0, str(ROOT / "firmware"))
import ina226
import ina228
import ina229

BOARD_PY = (ROOT / "firmware/board.py").read_text()
BUILDS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "hardware/builds").glob("*.json"))}
READY_MADE_uOhm = 15_000  # Adafruit 5832


def test_pins_are_the_picos_and_the_netlists():
    ground_and_power = {3, 8, 13, 18, 23, 28, 30, 33, 35, 36, 37, 38, 39, 40}
    order = [pin for pin in range(1, 41) if pin not in ground_and_power]  # GP0-22 round the board, then 26-28
    gpio = dict(zip(order, [*range(23), 26, 27, 28]))
    for row in PINS:
        assert int(row["gpio"]) == gpio[int(row["pico_pin"])], row
        assert at("U1", row["pico_pin"]) == row["net"], row
    assert len({row["pico_pin"] for row in PINS}) == len(PINS) == 26


def firmware_constants(text):
    """{name: value} of the literal assignments of board.py."""
    constants = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts)
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
                else [(target, value)]
            )
            for name, expression in pairs:
                try:
                    constants[name.id] = ast.literal_eval(expression)
                except (ValueError, TypeError, AttributeError):
                    pass  # not a literal: not a pin
    return constants


def pin_faults(constants):
    """What board.py says of pins and pins.csv does not."""
    net = {int(row["gpio"]): row["net"] for row in PINS}
    wanted = {constants["SDA"]: "SDA", constants["SCL"]: "SCL"}
    faults = [f"GPIO {gpio} is {net.get(gpio)}, not {name}" for gpio, name in wanted.items() if net.get(gpio) != name]
    for rail in constants["RAILS"]:
        if net.get(rail["alert"]) != f"ALERT{rail['rail']}":
            faults.append(f"GPIO {rail['alert']} is {net.get(rail['alert'])}, not ALERT{rail['rail']}")
    for row in constants["SWITCH"]:
        for gpio, name in ((row["gate"], f"OFF{row['rail']}"), (row["gate"] + 1, f"DISCHARGE{row['rail']}")):
            if net.get(gpio) != name:
                faults.append(f"GPIO {gpio} is {net.get(gpio)}, not {name}")
    for row in constants["SCOPE"]:
        if net.get(row["gpio"]) != f"SCOPE{row['rail']}":
            faults.append(f"GPIO {row['gpio']} is {net.get(row['gpio'])}, not SCOPE{row['rail']}")
    wanted = {}
    if constants["SIDEBAND"] is not None:
        wanted |= {constants["SIDEBAND"]: "PERST_LOW", constants["SIDEBAND"] + 1: "SIDEBAND_OFF"}
    if constants.get("SYNC") is not None:
        wanted |= {constants["SYNC"]: "SYNC"}
    for rail in constants["RAILS"]:
        if rail["bus"] == "SPI0":
            wanted |= {
                constants["MISO"]: "SPI_MISO",
                constants["SCK"]: "SPI_SCK",
                constants["MOSI"]: "SPI_MOSI",
                rail["cs"]: "SPI_CS",
            }
    return faults + [
        f"GPIO {gpio} is {net.get(gpio)}, not {name}" for gpio, name in wanted.items() if net.get(gpio) != name
    ]


def crowbar_mOhm(rail, stated_mOhm):
    """[what may be said of a rail's crowbar]: its resistor with its fuse within 4 %, as a breakout has it without."""
    resistor, fuse = (circuit.VALUES[rail, name].value * 1000 for name in ("crowbar", "crowbar_fuse_ohm"))
    return [stated_mOhm if abs(stated_mOhm - resistor - fuse) <= 0.04 * stated_mOhm else round(resistor)]


def value_faults(constants):
    """What board.py says of shunts, addresses, dividers and discharge resistors, and hardware/ does not. A rail whose
    name is none of values.csv is the board's rail of its number."""
    faults = []

    def compare(what, seen, wanted):
        if seen not in wanted:
            faults.append(f"{what} is {seen}, not {' or '.join(map(str, wanted))}")

    named = {
        rail["rail"]: rail["name"] if (rail["name"], "shunt") in circuit.VALUES else circuit.RAILS[rail["rail"]][0]
        for rail in constants["RAILS"]
    }
    for rail in constants["RAILS"]:
        n, name = rail["rail"], named[rail["rail"]]
        shunts = [round(circuit.VALUES[name, "shunt"].value * 1e6)] + [READY_MADE_uOhm] * (
            name == rail["name"] and rail["chip"] == "INA228"
        )
        compare(f"shunt_uOhm of rail {n}", rail["shunt_uOhm"], shunts)
        scale_nV, steps = (
            (81_920_000, 2**15) if rail["chip"] == "INA226" else (40_960_000 if rail["fine"] else 163_840_000, 2**19)
        )
        compare(
            f"current_lsb_pA of rail {n}", rail["current_lsb_pA"], [scale_nV * 10**9 // (rail["shunt_uOhm"] * steps)]
        )
        if rail["bus"] == "I2C0":
            site, levels = wired(n, "INA228"), {"GND": 0, "+3V3": 1}
            compare(
                f"address of rail {n}", hex(rail["address"]), [hex(0x40 + 4 * levels[site["1"]] + levels[site["2"]])]
            )
        of = circuit.VALUES
        lost_Ohm = sum(of[name, key].value for key in ("wire", "contact", "ground_contact"))
        if rail["name"] != "supply":
            compare(f"lead_mOhm of rail {n}", rail["lead_mOhm"], [round(1000 * lost_Ohm)])
            compare(f"nominal_mV of rail {n}", rail["nominal_mV"], [round(1000 * of[name, "voltage"].value)])
    for row in constants["SWITCH"]:
        compare(
            f"discharge_mOhm of rail {row['rail']}",
            row["discharge_mOhm"],
            crowbar_mOhm(named[row["rail"]], row["discharge_mOhm"]),
        )
    for row in constants["SCOPE"]:
        upper, lower, *_ = next(divider for name, _, _, divider in circuit.RAILS if name == named[row["rail"]])
        compare(
            f"nV_per_count of rail {row['rail']}",
            row["nV_per_count"],
            [round(3.3e9 / 4096 * (ohm(upper) + ohm(lower)) / ohm(lower))],
        )
    return faults


def test_firmware_uses_these_pins():
    constants = firmware_constants(BOARD_PY)
    assert {"SDA", "SCL", "RAILS", "SWITCH", "SCOPE", "SIDEBAND", "SYNC"} <= set(constants)
    assert pin_faults(constants) == []


def test_firmware_as_it_is_fits_rail_0_of_the_board():
    """A shunt of 8 mOhm in the fine range: 5.12 A. With another one every current, and every threshold of a cut, is
    wrong by its ratio."""
    constants = firmware_constants(BOARD_PY)
    assert value_faults(constants) == []
    rail = constants["RAILS"][0]
    assert (rail["shunt_uOhm"], rail["current_lsb_pA"], rail["fine"]) == (8000, 9_765_625, True)


def of_build(name):
    """The constants of board.py on a board that has this build's board.json."""
    return firmware_constants(BOARD_PY) | {key.upper(): value for key, value in BUILDS[name].items()}


@pytest.mark.parametrize("name", BUILDS)
def test_each_build_fits_its_circuit(name):
    constants = of_build(name)
    assert builds.complaint(BUILDS[name]) is None and constants["BUILD"] == name
    assert pin_faults(constants) == []
    assert value_faults(constants) == []
    assert len(constants["RAILS"]) == len(constants["SWITCH"])
    for rail in constants["RAILS"]:
        # KeyError: a key is missing
        driver = {"INA226": ina226.INA226, "INA228": ina228.INA228, "INA229": ina229.INA229}[rail["chip"]](None, rail)
        assert driver.cal == {"INA226": 2048}.get(rail["chip"], 4096)
        assert driver.conversion_us in (1102, 2256, 364, 100)
    assert set(constants["RAILS"][0]) - {"cs"} >= set(firmware_constants(BOARD_PY)["RAILS"][0]) - {"address"}


def test_the_readme_names_each_build():
    assert [name for name in BUILDS if f"builds/{name}.json" not in README] == [] and "```python" not in README


def test_a_firmware_with_other_pins_is_found():
    constants = firmware_constants((ROOT / "firmware/board.py").read_text())
    assert pin_faults(constants | {"SDA": 6}) == ["GPIO 6 is ALERT0, not SDA"]
    assert pin_faults(constants | {"SWITCH": ({"rail": 1, "gate": 10},)}) == [
        "GPIO 10 is OFF0, not OFF1",
        "GPIO 11 is DISCHARGE0, not DISCHARGE1",
    ]
    assert pin_faults(constants | {"SIDEBAND": 17}) == [
        "GPIO 17 is DISCHARGE3, not PERST_LOW",
        "GPIO 18 is PERST_LOW, not SIDEBAND_OFF",
    ]


def test_a_firmware_with_other_values_is_found():
    constants = of_build("two_rails")
    shunt, cheap = constants["RAILS"]
    wrong = constants | {"RAILS": (shunt | {"shunt_uOhm": 10_000}, cheap | {"address": 0x40})}
    assert value_faults(wrong) == [
        "shunt_uOhm of rail 0 is 10000, not 8000 or 15000",
        "current_lsb_pA of rail 0 is 20833333, not 31250000",
        "address of rail 1 is 0x40, not 0x41",
    ]
    swapped = constants | {
        "SWITCH": ({"rail": 1, "gate": 12, "discharge_mOhm": 2200},),
        "SCOPE": ({"rail": 1, "gpio": 27, "nV_per_count": 1_611_328},),
    }
    assert value_faults(swapped) == [
        "discharge_mOhm of rail 1 is 2200, not 7500",
        "nV_per_count of rail 1 is 1611328, not 4467773",
    ]


@pytest.mark.parametrize(
    ("name", "at_least"),
    [
        ("two_rails", (905, 440)),
        ("four_rails", (905,) * 4),
        ("ina229", (9950,)),
        ("four_rails_ina229", (905, 2740, 905, 905)),
    ],
)
def test_builds_measure_without_loss(tmp_path, name, at_least):
    """On the SIMULATED board; its chips' clocks are 0.5 % fast."""
    first, *others = BUILDS[name]["rails"]
    volts = {name: circuit.VALUES[name, "voltage"].value for name in ("m2_3v3", "sata_5v", "sata_12v", "u2_3v3aux")}
    rows = [row | {"simulated": {"A": 0.2 * row["rail"], "V": volts[row["name"]]}} for row in others]
    with Board(tmp_path, 2.5, {"rail": first, "rails": rows}) as b:
        hello = b.hello()
        b.send(wire.GO)
        received = lambda rail: (
            sum(len(body) for body in b.bodies(wire.SAMPLES) if body[0] == rail) // wire.SAMPLE_BYTES
        )
        b.until(lambda: all(received(row["rail"]) > 1.2 * n for row, n in zip((first, *others), at_least)))
    assert [rail["name"] for rail in hello["rails"]] == [row["name"] for row in (first, *others)]
    assert b.damaged == [] and b.logs() == ""
    for row, n in zip((first, *others), at_least):
        samples = samples_of(b, row["rail"])
        assert rate(samples) >= n
        assert steps(samples) == missed_of(b, row["rail"]) <= 2  # accumulators that are read instead of a sample
