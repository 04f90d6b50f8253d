"""The circuit that hardware/spice simulates is the one that hardware/board draws: parts, nets and values of each
rail."""

import re

import pytest
from board_files import circuit
from conftest import ROOT
from picture_of_study import simulator

# nets of hardware/board/circuit.py ({n}: number of the rail) and of hardware/spice/rig.lib
NETS = {
    "VGATE": "vg",
    "RAMP{n}": "ramp",
    "GATE{n}": "gate",
    "ISO{n}": "iso",
    "G{n}": "g",
    "FUSED{n}": "fused",
    "SRC{n}": "src",
    "SW{n}": "sw",
    "EMPTY{n}": "emptied",
    "OFFGATE{n}": "offgate",
    "OFF{n}": "off",
    "LATE{n}": "late",
    "DISCHARGE{n}": "dis",
    "CROWBAR{n}": "drive",
    "BARGATE{n}": "q4gate",
    "BAR{n}": "bar",
    "BARFUSE{n}": "barf",
    "IN{n}_PLUS": "pinp",
    "IN{n}_MINUS": "pinn",
    "VBUS{n}": "pvbus",
    "OVSHARE{n}": "ovt",
    "OVGATE{n}": "og",
    "LOCK_5V": "lock5",
    "OVEMPTY{n}": "ovd",
    "LED{n}": "ledn",
    "BARLED{n}": "barledn",
    "RAIL{n}_OUT": "out",
    "RAIL{n}_IN": "in",
    "GND": "0",
}
PINS = {"NFET_DPAK": ("2", "1", "3"), "NFET_SOT23": ("3", "1", "2")}  # drain, gate, source
MODELS = {"IRLR8743": "series_fet", "AO3400A": "small_fet", "NTR4003NT1G": "lockout_fet"}
# heat, fuse, gates of the 74HC132, wire, the capacitor's own resistance
NOT_DRAWN = r"Rt\d|Ct\d|[RC]melt|[RC][ab] |[RC]ovq|Rcable|Resr|Rsupply"


simulate = simulator()
PROTECTION = (ROOT / "hardware/spice/protection.lib").read_text()


def simulated(rail, text):
    """Parts of rig.lib and protection.lib: (kind, nets..., value): nets of R, C and fuse in order of the alphabet, of a
    FET drain, gate, source."""
    v, parts = simulate.values(rail) | {"1k": 1e3}, []
    blocks = re.findall(r"^\.subckt (?:series_switch|crowbar_switch|line) .*?^\.ends", text, re.MULTILINE | re.DOTALL)
    for block in [*blocks, PROTECTION]:
        for line in re.findall(rf"^(?!{NOT_DRAWN})[RCMD].*", block, re.MULTILINE):
            name, *words = re.sub(r"\b(sw)2\b|\bx[lcq]\.", r"\1", line).split(" ")
            # where a current is looked at
            words = ["fused" if word == "drain" else "0" if word in ("free", "tvs") else word for word in words]
            if name[0] == "M":
                parts.append(("M", *words))
            elif name[0] == "D":
                parts.append(("D", *words[:2]))
            elif name == "Rbarfuse":
                parts.append(("F", *sorted(words[:2])))
            else:
                ends = ("0" if net == "bulk" else net for net in words[:2])
                parts.append((name[0], *sorted(ends), f"{v[words[2].strip('{}')]:.3g}"))
    if v["fuse"]:
        return sorted([*parts, ("F", "fused", "in")])
    return sorted(tuple("in" if word == "fused" else word for word in part) for part in parts)


def number(text):
    """2R2 -> 2.2, 220k -> 220000, 8m -> 0.008, 100n -> 1e-07; as text of three digits."""
    whole, letter, rest = re.fullmatch(r"(\d+)([MkRmunp])(\d*)", text).groups()
    unit = {"M": 1e6, "k": 1e3, "R": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}[letter]
    return f"{float(f'{whole}.{rest or 0}') * unit:.3g}"


def drawn(rail):
    """The same of the schematic; what touches a net that the simulation has not (meter, divider of the scope) is left
    out."""
    n = next(k for k, row in enumerate(circuit.RAILS) if row[0] == rail)
    names, parts = {theirs.format(n=n): ours for theirs, ours in NETS.items()}, []
    for part in circuit.rail_parts(n, 0, 0)[0]:
        nets = {pin: names.get(net) for pin, net in part.nets.items()}
        if part.symbol in PINS:
            parts.append(("M", *(nets[pin] for pin in PINS[part.symbol]), MODELS[part.value]))
        elif part.symbol == "Zener":
            parts.append(("D", nets["1"], nets["3"]))
        elif part.symbol in ("Zener_2", "Diode", "LED"):
            parts.append(("D", nets["2"], nets["1"]))
        elif part.symbol == "Fuse":
            parts.append(("F", *sorted(nets.values())))
        elif part.symbol in ("R", "C") and None not in nets.values():
            parts.append((part.symbol, *sorted(nets.values()), number(part.value)))
    return sorted(parts)


@pytest.mark.parametrize("rail", [row[0] for row in circuit.RAILS])
def test_the_schematic_is_the_simulated_circuit(rail):
    text = (ROOT / "hardware/spice/rig.lib").read_text()
    assert len(drawn(rail)) >= 35
    assert drawn(rail) == simulated(rail, text)


@pytest.mark.parametrize("rail", [row[0] for row in circuit.RAILS])
def test_the_comparators_supply_is_the_simulated_one(rail):
    n = next(k for k, row in enumerate(circuit.RAILS) if row[0] == rail)
    (comparator,) = [part for part in circuit.rail_parts(n, 0, 0)[0] if part.symbol == "TL331"]
    (supply,) = re.findall(r"^Vcompare ovsupply 0 \{(\w+)\}", PROTECTION, re.M)
    assert {"VGATE": "gate_supply", "LOCK_5V": "lockout_supply"}[comparator.nets["5"]] == supply


@pytest.mark.parametrize(
    ("old", "new"),
    [("Riso ramp iso", "Riso ramp src"), ("MQ2 sw g src", "MQ2 src g sw"), ("{gate_off_resistor}", "{crowbar}")],
)
def test_a_circuit_that_differs_is_seen(old, new):
    text = (ROOT / "hardware/spice/rig.lib").read_text()
    assert old in text
    assert drawn("sata_5v") != simulated("sata_5v", text.replace(old, new))


def test_the_shared_supplies_capacitors_and_diodes_are_those_of_the_board():
    """Value and direction: a diode's first node in the study is its anode, pin 2 of its symbol."""
    nets = {"LOGIC_IN": "lin", "LOGIC_6V": "l6", "LOGIC_5V": "l5", "LOCK_5V": "lock5", "GND": "0"}
    text = (ROOT / "hardware/spice/shared_board.lib").read_text()
    parts = {part.ref: part for part in circuit.PARTS}
    for ref, pins in {
        **dict.fromkeys(("C7", "C9", "C4", "C10"), "12"),
        **dict.fromkeys(("D3", "D8", "D9"), "21"),
    }.items():
        one, other, value = re.search(rf"^{ref[0]}{ref} (\S+) (\S+) (\S+)$", text, re.M).groups()
        assert [nets[parts[ref].nets[pin]] for pin in pins] == [one, other]
        assert ref[0] == "D" or value == parts[ref].value.replace("4u7", "4.7u")
