"""Builds: what a board.json may say, and a board that has one."""

import copy
import csv
import json
import shutil

import pytest
from simboard import ROOT, Board

from ssdrig.base.errors import UsageError
from ssdrig.meter import power, wire
from ssdrig.rig import builds
from ssdrig.rig.info import of_load

TWO = json.loads((ROOT / "hardware/builds/two_rails.json").read_text())


def changed(path, value):
    build = copy.deepcopy(TWO)
    *way, last = path
    of = build
    for key in way:
        of = of[key]
    if value is None and isinstance(of, dict):
        del of[last]
    else:
        of[last] = value
    return build


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("build",), 7, "its name"),
        (("rials",), [], "rials, which no build has"),
        (("rails",), {}, '"rails" is not a list'),
        (("rails",), [], "0 rails, not 1 to 4"),
        (("rails", 0, "lead_mOhm"), None, "rail 0: no lead_mOhm"),
        (("rails", 0, "chip"), "INA219", "chip INA219, not one of"),
        (("rails", 0, "address"), None, "bus I2C0 with address"),
        (("rails", 0, "bus"), "I2C7", "bus I2C7 with which"),
        (("rails", 0, "shunt_uOhm"), 8000, "with a shunt of 8000 uOhm: 39062500 fits it"),
        (("rails", 0, "fine"), True, "asks for 4.5 A of a sensor that ends at 2.73"),
        (("rails", 0, "vshunt_us"), 1000, "vshunt_us 1000 is not one of 50, 84"),
        (("rails", 0, "nominal_mV"), 0, "nominal_mV 0 is not a whole number"),
        (("rails", 0, "lead_mOhm"), -1, "lead_mOhm -1 is not 0 to 1000"),
        (("rails", 0, "shunt_emf_nV_per_C"), 0, "shunt_emf_nV_per_C 0 is not a whole number"),
        (("rails", 0, "amplifier_nA"), 0, "amplifier_nA 0 is not a whole number"),
        (("rails", 0, "amplifier_nA"), 10**7, "amplifier_nA 10000000 is not a whole number"),
        (("rails", 0, "alert"), 99, "alert a GPIO"),
        (("rails", 1, "rail"), 0, "a rail twice: [0, 0]"),
        (("rails", 1, "address"), 0x40, "the same address twice: [64, 64]"),
        (("switch", 1, "gate"), 11, "the same pin twice"),
        (("switch", 1, "gate"), 27, "the same pin twice"),  # of the scope
        (("switch", 0, "rail"), 3, '"switch" wants a rail of these'),
        (("scope", 0, "nV_per_count"), 0, '"scope" wants a rail of these'),
    ],
)
def test_what_is_wrong_is_said(path, value, says):
    assert says in builds.complaint(changed(path, value))


@pytest.mark.parametrize("name", ["four_rails", "four_rails_ina229", "front_end", "one_m2_rail"])
def test_lock_outs_take_no_pin_in_use(name):
    build = builds.read(name)
    buses = {row["bus"] for row in build["rails"]}
    used = {20, 21, 22} | ({4, 5} if "I2C0" in buses else set()) | ({0, 1, 2, 3} if "SPI0" in buses else set())
    used |= {row["alert"] for row in build["rails"]} | {row["gpio"] for row in build["scope"]}
    used |= {row["gate"] + k for row in build["switch"] for k in (0, 1)}
    used |= {row["low"][pin] for row in build["rails"] if row.get("low") for pin in ("release", "state")}
    if build["sideband"] is not None:
        used |= {build["sideband"], build["sideband"] + 1}
    if fast := build.get("fast"):
        used |= {fast["gpio"], fast["volts"], fast["cs"], fast["cs"] + 1}
    assert {pin for pin in builds.GPIOS if builds.complaint(build | {"lock_outs": pin})} == used


@pytest.mark.parametrize("pin", [*range(4, 23), -1, 29, "18", 18.0, True])
def test_a_side_band_takes_two_free_pins(pin):
    assert (builds.complaint(TWO | {"sideband": pin}) is None) is (pin in (8, 14, 15, 16, 17, 18) and type(pin) is int)


FAST = {"rail": 0, "gpio": 28, "nA_per_count": 1_074_219}


@pytest.mark.parametrize(
    ("fast", "says"),
    [
        (FAST, None),
        (None, None),
        (7, "fast: 7 is not a rail, gpio and nA_per_count"),
        (FAST | {"rail": 2}, "a rail of these, GPIO 26, 27 or 28"),
        (FAST | {"gpio": 22}, "a rail of these, GPIO 26, 27 or 28"),
        (FAST | {"nA_per_count": 0}, "above 0 were expected"),
        (FAST | {"gpio": 26}, "GPIO 26 is the scope's"),
        (FAST | {"rail": 1}, "an INA226 keeps no charge"),
    ],
)
def test_a_fast_channel_that_cannot_be_is_said(fast, says):
    build = changed(("rails", 0, "amplifier_nA"), 90_000) | {"fast": fast}
    assert (says is None) == (builds.complaint(build) is None)
    assert says is None or says in builds.complaint(build)


def test_a_fast_channel_says_what_its_amplifier_takes():
    assert "amplifier_nA" in builds.complaint(TWO | {"fast": FAST})


def test_which_builds_can_have_a_fast_channel():
    made = builds.with_fast(builds.read("two_rails"), 0)
    assert made["fast"] == FAST and builds.complaint(made) is None
    assert [row.get("amplifier_nA") for row in made["rails"]] == [builds.AMPLIFIER_nA, None]
    assert builds.with_fast(builds.read("two_ina228_chips"), 1)["fast"]["nA_per_count"] == 2_014_160
    for name, rail, says in (
        ("four_rails", 0, "GPIO 28 is the scope's"),
        ("ina229", 0, "10000 samples/s"),
        ("two_rails", 1, "INA226 keeps no charge"),
        ("one_rail", 3, "rail 3, which it has not"),
    ):
        with pytest.raises(UsageError, match=says):
            builds.with_fast(builds.read(name), rail)


def test_any_value_anywhere_gets_a_sentence_or_passes():
    for key in TWO["rails"][0]:
        for value in (None, "", -1, 1e99, [], {}, True):
            builds.complaint(changed(("rails", 0, key), value))
    for build in (None, 3, [], {"build": "x"}, {"build": "x", "rails": [3], "switch": [], "scope": []}):
        assert builds.complaint(build)


@pytest.mark.parametrize("name", builds.names())
def test_every_build_protects_each_rail_and_measures_its_peaks(name):
    """Where the contacts end (4.5 A, 3.3Vaux 1.5 A), at 10 % too much the drive; a range that ends below would clip
    unseen."""
    with open(ROOT / "hardware/values.csv", newline="") as file:
        values = {(row["rail"], row["name"]): row["value"] for row in csv.DictReader(file)}
    for row in builds.read(name)["rails"]:
        limits = row["protect"]
        assert limits["A"] == float(values[row["name"], "connector_limit"]) and limits["ms"] == 50
        assert limits["V"] == pytest.approx(1.1 * row["nominal_mV"] / 1000)
        assert not row.get("fine")
        full_A = (81.92 if row["chip"] == "INA226" else 163.84) / (row["shunt_uOhm"] / 1000)
        assert full_A > 2 * limits["A"]


def test_the_M2_build_holds_perst():
    assert builds.read("one_m2_rail")["sideband"] == 18


def test_a_name_or_a_file(tmp_path):
    assert builds.read("two_rails") == TWO and "four_rails" in builds.names()
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(TWO | {"build": "mine"}))
    assert builds.read(str(path))["build"] == "mine"
    for text in ("{", json.dumps(changed(("rails", 0, "chip"), "x"))):
        path.write_text(text)
        with pytest.raises(UsageError):
            builds.read(str(path))
    with pytest.raises(UsageError, match="two_rails"):
        builds.read("three_rails")


def flash_of(folder, text):
    """A board whose flash has the firmware and this board.json."""
    flash = folder / "flash"
    shutil.copytree(ROOT / "firmware", flash)
    (flash / builds.FILE).write_text(text)
    return {"flash": str(flash)}


def test_a_board_is_what_its_file_says(tmp_path):
    one = json.loads((ROOT / "hardware/builds/one_rail.json").read_text())
    with Board(tmp_path, 2.5, flash_of(tmp_path, json.dumps(one))) as b:
        hello = b.hello()
        b.send(wire.GO)
        b.until(lambda: len(b.samples()) > 100)
    (rail,) = hello["rails"]
    assert (hello["build"], rail["name"], rail["shunt_uOhm"], rail["nominal_mV"]) == (
        "one_rail",
        "sata_5v",
        15_000,
        5000,
    )
    watts = [power.mean_power_W(body, hello) for body in b.bodies(wire.SAMPLES)]
    assert watts[0] == pytest.approx(2.5, rel=2e-3)


@pytest.mark.parametrize("text", ["{", "[]", '{"rails": [{"rail": 0}]}'])
def test_a_file_that_makes_no_sense_is_said_and_nothing_is_measured(tmp_path, text):
    with Board(tmp_path, 2.5, flash_of(tmp_path, text)) as b:
        b.until(lambda: "board.json" in b.logs())
        assert "firmware stops: ValueError: board.json: " in b.logs() and b.bodies(wire.HELLO) == []


@pytest.mark.parametrize(
    "name, gpio",
    [
        *(("one_rail", gpio) for gpio in (4, 6, 10, 11, 22, 26, True)),
        *(("four_rails", gpio) for gpio in (18, 19)),
        ("ina229", 0),
    ],
)
def test_a_pin_in_use_does_not_trip_the_lock_outs(tmp_path, name, gpio):
    """SDA, ALERT, both gates, SYNC, SCOPE, the side-band, MISO: the host refuses them, and so does the board."""
    build = builds.read(name) | {"lock_outs": gpio}
    assert builds.complaint(build)
    with Board(tmp_path, 2.5, flash_of(tmp_path, json.dumps(build))) as b:
        b.until(lambda: "board.json" in b.logs())
        assert "lock_outs of no free GPIO" in b.logs() and b.bodies(wire.HELLO) == []


def test_a_board_that_cannot_say_what_is_wrong_is_reset_all_the_same(tmp_path):
    """No memory is left for the words: a board at its prompt would be silent for ever."""
    settings = flash_of(tmp_path, "[]")
    link = tmp_path / "flash" / "link.py"
    link.write_text(
        link.read_text().replace("        body = text.encode()", "        raise MemoryError\n        body = b''")
    )
    with Board(tmp_path, 2.5, settings) as b:
        b.until(lambda: len(b.truth()) > 1)


def test_with_the_button_held_the_board_is_at_its_prompt(tmp_path):
    with Board(tmp_path, 2.5, {"bootsel": True}) as b:
        b.until(lambda: b.rest.endswith(b">>> "))
        b.send(wire.ASK_HELLO)
        b.read(0.2)
        assert b.frames == []


def test_a_resistor_says_what_the_shunt_is():
    rail, row = {"rail": 0, "shunt_uOhm": 8000}, {"V_mean": 5.0, "I_mean": 0.9375}
    assert "the shunt is about 15 mOhm, not 8" in of_load(rail, row, 10.0)
    assert of_load(rail, row | {"I_mean": 0.52}, 10.0) is of_load(rail, row | {"I_mean": 0.001}, 10.0) is None
    assert of_load(rail, row, -1.0) is None


def fast_beside(rails):
    """The build with an INA229 at 5000 samples/s and this many INA228s."""
    build = json.loads((ROOT / "hardware/builds/four_rails_ina229.json").read_text())
    spi = [row | {"vbus_us": 50, "vshunt_us": 150} for row in build["rails"] if row["bus"] == "SPI0"]
    build["rails"] = spi + [row for row in build["rails"] if row["bus"] == "I2C0"][:rails]
    rail_numbers = [row["rail"] for row in build["rails"]]
    return build | {name: [row for row in build[name] if row["rail"] in rail_numbers] for name in ("switch", "scope")}


def test_sensors_that_the_board_cannot_read_in_time_are_refused_before_anything_is_written():
    assert builds.complaint(fast_beside(0)) is None
    assert builds.complaint(fast_beside(1)) is None
    assert "rail 1: conversions of 200 us are too short on SPI0" in builds.complaint(fast_beside(2))
    assert "with 4 rails a stamp may be 175 us late" in builds.complaint(fast_beside(3))


@pytest.mark.parametrize("name", builds.names())
def test_a_shipped_build_can_be_read_in_time(name):
    assert builds.complaint(builds.read(name)) is None


def test_samples_that_want_more_than_the_bus_are_refused():
    build = json.loads((ROOT / "hardware/builds/four_rails.json").read_text())
    for row in build["rails"]:
        row.update(vbus_us=84, vshunt_us=540)
    assert "% of I2C0: take longer conversions" in builds.complaint(build)


def test_an_ina226_takes_what_its_driver_reads():
    assert "SAMPLE = (MASK_ENABLE, 2), (CURRENT, 2), (BUS, 2)" in (ROOT / "firmware/ina226.py").read_text()
