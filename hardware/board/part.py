"""What a part of the board is, and the values of ../values.csv as a schematic writes them."""

import csv
from pathlib import Path
from typing import NamedTuple

HARDWARE = Path(__file__).resolve().parents[1]
# rail number -> (row of values.csv, address pins A1 and A0 of the INA228, scope divider (upper, lower, C upper, C
# lower) or None)
RAILS = (
    ("m2_3v3", "GND", "GND", ("10k", "10k", "10p", "330p")),
    ("sata_5v", "GND", "+3V3", ("10k", "10k", "10p", "330p")),
    ("sata_12v", "+3V3", "GND", ("15k", "3k3", "22p", "470p")),
    ("u2_3v3aux", "+3V3", "+3V3", None),
)


class Part(NamedTuple):
    ref: str
    symbol: str
    value: str
    item: str  # row of bom.csv
    x: float
    y: float
    angle: int
    mirrored: bool
    nets: dict[str, str | None]  # pin number -> net; None: deliberately open


class Quantity(NamedTuple):
    value: float
    unit: str
    part: str


def values():
    """{(rail, name): Quantity} of hardware/values.csv; a row of rail "all" is there under each rail."""
    with open(HARDWARE / "values.csv", newline="") as file:
        rows = {
            (row["rail"], row["name"]): Quantity(float(row["value"]), row["unit"], row["part"])
            for row in csv.DictReader(file)
        }
    common = {name: quantity for (rail, name), quantity in rows.items() if rail == "all"}
    return rows | {(rail, name): quantity for rail, *_ in RAILS for name, quantity in common.items()}


def written(quantity):
    """As on a schematic: 2.2 Ohm -> 2R2, 220000 Ohm -> 220k, 0.008 Ohm -> 8m, 1e-07 F -> 100n."""
    steps = {"Ohm": ((1e6, "M"), (1e3, "k"), (1, "R"), (1e-3, "m")), "F": ((1e-6, "u"), (1e-9, "n"), (1e-12, "p"))}[
        quantity.unit
    ]
    for size, letter in steps:
        if quantity.value >= size * 0.9999:
            text = f"{quantity.value / size:.4g}"
            return text.replace(".", letter) if "." in text else text + letter
    raise ValueError(f"expected {quantity} to be at least {steps[-1][0]} {quantity.unit}; do: correct values.csv")


VALUES = values()
