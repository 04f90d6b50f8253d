"""The circuit of a SIMULATED soldered rig: what a meter shows at known parts."""

from random import Random

import pytest

from selfcheck import assembled
from ssdrig.rig import bring_up, builds


@pytest.mark.parametrize(("text", "ohm"), [("4k7", 4700), ("10R", 10), ("8m", 0.008), ("1M", 1e6), ("42k2", 42200)])
def test_values_of_the_schematic(text, ohm):
    assert assembled.ohms(text) == pytest.approx(ohm)


def test_a_divider_and_a_source():
    circuit = assembled.Circuit([])
    circuit.source("A", "GND", 12.0, 1.0)
    circuit.resistor("A", "B", 999.0)
    circuit.resistor("B", "GND", 1000.0)
    assert circuit.solved()["B"] == pytest.approx(6.0, abs=1e-5)


def test_a_diode_conducts_one_way_and_a_zener_the_other_at_its_voltage():
    for anode, cathode, volts, low, high in (
        ("A", "GND", 0.0, 0.55, 0.75),
        ("GND", "A", 0.0, 23.9, 24.1),
        ("GND", "A", 10.0, 9.9, 10.1),
    ):
        circuit = assembled.Circuit([])
        circuit.source("A", "GND", 24.0, 14e3)
        circuit.diode(anode, cathode, assembled.DIODE_A, volts)
        assert low < circuit.solved()["A"] < high


def test_a_fet_conducts_above_its_threshold():
    seen = []
    for gate_V in (0.0, 1.5, 8.0):
        circuit = assembled.Circuit([])
        circuit.source("GATE", "GND", gate_V, 1.0)
        circuit.source("OUT", "GND", 5.0, 1000.0)
        circuit.fet("GATE", "OUT", "GND", 2.0, 89.0)
        seen.append(circuit.solved()["OUT"])
    assert seen[0] > 4.99 and seen[1] > 4.9 and seen[2] < 0.05


def test_nets_that_are_bridged_are_one():
    circuit = assembled.Circuit([("A", "B")])
    circuit.source("A", "GND", 5.0, 1.0)
    circuit.resistor("C", "B", 10.0)
    assert circuit.solved()["C"] == pytest.approx(5.0) and circuit.solved()["B"] == pytest.approx(5.0)


def test_the_parts_are_those_of_the_netlist():
    parts = assembled.netlist(assembled.HARDWARE / "breakout/board/breakout.net")
    assert parts["Q101"].pins == {"1": "G0", "2": "FUSED0", "3": "SRC0"} and parts["R119"].value == "11k8"
    rig = assembled.Rig(Random(1), builds.read("two_rails"))
    assert not {"U202", "U302", "D204", "R219", "U7"} & {*rig.parts} and {"Q201", "Q304", "R312"} <= {*rig.parts}


def test_an_ohmmeter_shows_a_lock_outs_divider_and_turned_fets_in_the_diode_range():
    """From the rail's input over ground to SW both dividers are in series: no reading of ohms shows whether a FET is
    turned, on a board with a lock-out."""
    sound = assembled.Rig(Random(1), builds.read("one_rail"))
    assert sound.true("input", 0) == pytest.approx(21.8, rel=0.03) and 1.4 < sound.true("through", 0) < 3
    assert 20 < sound._kiloohms("RAIL0_IN", "SW0") < 45
    turned = assembled.Rig(Random(1), builds.read("one_rail"), lambda rig: rig.turn("Q101"))
    assert 1.0 < turned.true("through", 0) < 1.25


def test_a_schottky_diode_leaks_through_an_ohmmeters_reading():
    """Some uA beside the 20 kOhm of SW: more than the 5 % that the sensor's VBUS and the resistors make."""
    seen = [assembled.Rig(Random(seed), builds.read("one_rail")).true("output", 0) for seed in range(4)]
    assert all(16 < kOhm < 19 for kOhm in seen)


def test_a_net_that_nothing_holds_settles():
    """The lock-out's FET without its two pull-ups: its gate hangs on 1 MOhm."""
    rig = assembled.Rig(
        Random(1), builds.read("one_rail"), lambda rig: [rig.take_off(name) for name in ("R125", "R127")]
    )
    assert 0 < rig.true("lock-out gate", 0) < 4


@pytest.mark.parametrize("build", ["one_rail", "one_m2_rail"])
def test_lock_out_fet_at_its_least_threshold_leaves_a_sound_rail_on(build):
    """0.6 V; the comparator's low output at its most, by the highest 12 V and the smallest pull-ups."""
    document = builds.read(build)
    rig = assembled.Rig(Random(1), document)
    rig.aux_V, rig.meter = 12.54, 1.0
    rig.part |= {"Q105": -1.0, "R125": -1.0, "R127": -1.0}
    wanted = {one.key: one for one in bring_up.readings(document) if one.key in ("gate", "gate to source", "drive")}
    assert len(wanted) == 3
    assert {key: rig.true(key, 0) for key, one in wanted.items() if not one.fits(rig.true(key, 0))} == {}
