"""The M.2 interposer as data: contacts of a card at one end, a socket for the drive at the other, the sensor of rail 0
and the side-band switches of ../../board/circuit.py between them.

The host's 3.3 V leave by a wire to the switch (the board's or the breakout's rail 0) and come back by another one, so
that all that protects a rail is there once. PCIe runs straight through. PERST# is held by Q1 behind 1 kOhm, CLKREQ#,
PEWAKE# and SMBus go through U4. Left open: SUSCLK and DEVSLP, which feed a cut drive, ALERT#, LED_1# towards the host,
and PEDET: a drive of PCIe leaves it open, too."""

import importlib.util
from pathlib import Path

from part import Part

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("board_circuit", HERE.parents[1] / "board" / "circuit.py")
_board = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_board)

NAME, ETCHED = "interposer", "ssdrig M.2"
ALSO = (  # lines of the order: what the bill does not have
    "Not in it: the rig. It needs the breakout's board (`--board breakout`, with the values for M.2 and without the"
    " sensor's board), whose IN and OUT go to HOST and SW by wires of 18 AWG; eight wires from J2.",
)
PAPER, TITLE, REVISION = "A3", "ssdrig interposer: M.2 key M, four layers of 0.8 mm", "A"
COMMENT = "Generated from circuit.py; not built yet"
TURNING, ERC_SEVERITIES = _board.TURNING, _board.ERC_SEVERITIES

GROUND = (1, 3, 9, 15, 21, 27, 33, 39, 45, 51, 57, 71, 73, 75)
SUPPLY = (2, 4, 12, 14, 16, 18, 70, 72, 74)
PAIRS = {  # odd contacts: net, by the host's names (PCI Express M.2 1.0, socket 3)
    **{5: "PET3_N", 7: "PET3_P", 11: "PER3_N", 13: "PER3_P", 17: "PET2_N", 19: "PET2_P", 23: "PER2_N", 25: "PER2_P"},
    **{29: "PET1_N", 31: "PET1_P", 35: "PER1_N", 37: "PER1_P", 41: "PET0_N", 43: "PET0_P", 47: "PER0_N", 49: "PER0_P"},
    **{53: "REFCLK_N", 55: "REFCLK_P"},
}
SIDE = {40: "SMBCLK", 42: "SMBDAT", 52: "CLKREQ", 54: "PEWAKE"}


def contacts(supply, side, own):
    """{contact: net} of one end."""
    nets = {str(n): None for n in range(1, 76) if not 59 <= n <= 66}
    nets |= {str(n): "GND" for n in GROUND} | {str(n): supply for n in SUPPLY}
    nets |= {str(n): net for n, net in PAIRS.items()}
    return nets | {str(n): f"{name}_{side}" for n, name in SIDE.items()} | own


def moved(part, x, y):
    return part._replace(x=x, y=y)


def parts():
    """(parts, wires)."""
    rail = {part.ref: part for part in _board.rail_parts(0, 0, 0)[0]}
    shared = {part.ref: part for part in _board.common_parts()[0]}
    sensor = rail["U101"]._replace(
        nets={
            **{"10": "IN0_PLUS", "9": "IN0_MINUS", "8": "VBUS0", "1": "GND", "2": "GND"},
            **{"6": "+3V3", "4": "SDA", "5": "SCL", "3": "ALERT0", "7": "GND"},
        }
    )
    pins = lambda *nets: {str(i + 1): net for i, net in enumerate(nets)}
    return [
        Part(
            "J3", "M2_Edge", "host: contacts", "", 30, 45, 0, False, contacts("HOST_3V3", "HOST", {"50": "PERST_HOST"})
        ),
        Part(
            *("J4", "M2_Socket", "drive: socket", "M.2 socket", 125, 45, 0, False),
            contacts("RAIL0_OUT", "DRIVE", {"50": "PERST", "10": "ACTIVITY"}),
        ),
        Part("J1", "Wires_3", "to and from the switch", "", 150, 14, 0, False, pins("HOST_3V3", "GND", "SW0")),
        Part(
            *("J2", "Header_8", "to the Pico", "header 8", 150, 28, 0, False),
            pins("+3V3", "GND", "SCL", "SDA", "ALERT0", "PERST_LOW", "SIDEBAND_OFF", "ACTIVITY"),
        ),
        moved(rail["R107"], 77, 12),
        moved(sensor, 77, 24),
        moved(rail["C104"], 92, 24),
        moved(rail["C107"], 100, 24),
        moved(rail["R116"], 62, 20),
        moved(rail["R117"], 62, 24),
        moved(rail["R118"], 62, 28),
        moved(shared["U4"], 77, 42),
        moved(shared["C3"], 92, 42),
        moved(shared["R10"], 100, 42),
        moved(shared["Q1"], 77, 60),
        moved(shared["R9"], 66, 60),
        moved(shared["R15"], 92, 58),
        *(
            Part(f"#FLG{i}", "PWR_FLAG", "PWR_FLAG", "", 142 + 6 * i, 60, 0, False, {"1": net})
            for i, net in enumerate(("GND", "+3V3"))
        ),
    ]


PARTS, WIRES = parts(), []
TEXTS = [
    (9, 5, 3, "Host"),
    (60, 5, 3, "Sensor, side-band"),
    (110, 5, 3, "Drive"),
    (140, 5, 3, "Switch and Pico, by wire"),
]
