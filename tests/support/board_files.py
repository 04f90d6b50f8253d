"""The files under hardware/ as the tests read them: tables, the schematic's source, KiCad's netlist."""

import csv
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARDWARE = ROOT / "hardware"
BOARD = HARDWARE / "board"
sys.path.insert(0, str(BOARD))
import circuit
import draw  # noqa: F401
import export

from ssdrig.base.errors import ToolMissing

README = (HARDWARE / "README.md").read_text()
NETS = export.connections((BOARD / "ssdrig.net").read_text())
PARTS = {part.ref: part for part in circuit.PARTS}


@pytest.fixture(scope="session")
def kicad():
    """KiCad 9 is there; fetched where the machine has none."""
    try:
        export.provision()
    except ToolMissing as missing:
        pytest.skip(f"not checked by KiCad: {missing}")


def table(path):
    with open(HARDWARE / path, newline="") as file:
        return list(csv.DictReader(file))


PINS = table("pins.csv")


def at(ref, pin, nets=NETS):
    """The net at a pin, from KiCad's netlist."""
    (net,) = [net for net, nodes in nets.items() if (ref, pin) in nodes]
    return net


def wired(n, chip):
    """{pin of the sensor: net} of rail n with the solder bridges J101-J401 as they come (INA228) or as they are set for
    an INA229."""
    column = {"INA228": 1, "INA229": 3}[chip]
    by_net = {at(f"J{n + 1}01", str(3 * row + 2)): at(f"J{n + 1}01", str(3 * row + column)) for row in range(4)}
    return {pin: by_net[at(f"U{n + 1}01", pin)] for pin in ("1", "2", "4", "5")}


def ohm(text):
    match = re.fullmatch(r"(\d+)([RkMm])(\d*)", text)
    return float(f"{match[1]}.{match[3] or 0}") * {"R": 1, "k": 1e3, "M": 1e6, "m": 1e-3}[match[2]]


def farad(text):
    return float(text[:-1]) * {"u": 1e-6, "n": 1e-9, "p": 1e-12}[text[-1]]
