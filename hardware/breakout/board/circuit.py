"""The breakout's board as data: one rail of ../../board/circuit.py with leaded parts, a ready-made sensor board on
wires and gates from 12 V. The rail is that of the SATA 5 V build one_rail; with the values of m2_3v3 it is one_m2_rail.

Parts have the same names, symbols and pin numbers as on the board; a land pattern gives a leaded part's legs those
numbers. Both gates and lock-out are fed from the supply's 12 V through F1 and D3: without them the rail is off."""

import csv
import importlib.util
from pathlib import Path

import common
from part import VALUES, Part, Quantity

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("board_circuit", HERE.parents[1] / "board" / "circuit.py")
_board = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_board)

NAME, ETCHED = "breakout", "ssdrig breakout"
ALSO = (  # lines of the order: what the bill does not have
    "Not in it: the tools and the load resistor of the first power-up (hardware/README.md).",
    "For M.2 (build one_m2_rail) instead: R119 Yageo MFP-25BRD52-4K42, R122 Yageo MFR-25FTE52-1K5, a wire in F101;"
    " for the sensor's board a shunt of 8 mOhm, Vishay WSL25128L000FEA; a 3.3 V converter that limits at 5 to 8 A, with"
    " a fuse of 3 A (Littelfuse 0287003.PXCN) and its holder in the 12 V lead.",
)
PAPER, TITLE, REVISION = "A2", "ssdrig breakout: one rail, two layers, leaded parts", "A"
COMMENT = "Generated from circuit.py and values.csv; not built yet"
TURNING, ERC_SEVERITIES = _board.TURNING, _board.ERC_SEVERITIES
RAIL = "sata_5v"


def own_values():
    """{name: Quantity} of values.csv."""
    with open(HERE / "values.csv", newline="") as file:
        return {row["name"]: Quantity(float(row["value"]), row["unit"], row["part"]) for row in csv.DictReader(file)}


def rail():
    """(parts, wires) of the one rail, without what is on the sensor's own board."""
    for name, quantity in own_values().items():
        VALUES[RAIL, name] = quantity
    _board.RAILS = ((RAIL, "GND", "GND", ("10k", "10k", "10p", "330p")),)
    parts, wires = _board.rail_parts(0, 6, 9)
    gone = {"U101", "C104", "J101", "R107", "R116", "R117", "R118", "C107"}
    probes = {f"T10{k}" for k in range(1, 6)}
    chosen = [part for part in parts if part.ref not in gone]
    chosen = [part._replace(x=10 + 6 * i, y=50) if part.ref in probes else part for i, part in enumerate(chosen)]
    # on VGATE as comparator and reference are: the regulator of 5 V takes none of them along when it fails
    chosen = [
        part._replace(item="pull 10k", nets=part.nets | {"1": "VGATE"}) if part.ref in ("R125", "R127") else part
        for part in chosen
    ]
    names = {part.ref for part in chosen}
    return chosen, [wire for wire in wires if all(end.split(".")[0] in names for end in wire[:2])]


def pico():
    """The Pico's nets: those that the one rail uses."""
    used = {"SDA", "SCL", "ALERT0", "OFF0", "DISCHARGE0", "PERST_LOW", "SYNC", "ACTIVITY", "TRIGGER", "SCOPE0"}
    nets = {pin: net if net in used | {"GND", "+3V3"} else None for pin, net in common.pico_nets().items()}
    return nets | {"34": "FAST", "20": "LOCKOUT_PIN"}


def shared():
    """What is not of the rail."""
    r = lambda ref, value, item, x, y, one, two: Part(ref, "R", value, item, x, y, 270, False, {"1": one, "2": two})
    c = lambda ref, value, item, x, y, one: Part(ref, "C", value, item, x, y, 270, False, {"1": one, "2": "GND"})
    logic = common.schmitt("U2", 0, 135, 44)
    ground = dict.fromkeys(("9", "10", "12", "13"), "GND") | {"8": None, "11": None}
    probe = lambda k, net: Part(f"T{k}", "TestPoint", "TP", "", 140 + 6 * k, 146, 0, False, {"1": net})
    pins = lambda *nets: {str(i + 1): net for i, net in enumerate(nets)}
    return [
        Part("U1", "Pico", "Pico or Pico 2", "Pico", 140, 24, 0, False, pico()),
        logic._replace(nets=logic.nets | ground),
        c("C1", "100n", "decoupling", 150, 44, "+3V3"),
        r("R1", "1k5", "bus pull-up", 118, 92, "+3V3", "SDA"),
        r("R2", "1k5", "bus pull-up", 124, 92, "+3V3", "SCL"),
        r("R3", "10k", "pull 10k", 130, 92, "+3V3", "ALERT0"),
        r("R8", "100k", "activity pull-up", 118, 108, "+3V3", "ACTIVITY"),
        r("R9", "4k7", "pull 4k7", 124, 108, "PERST_LOW", "GND"),
        r("R11", "4k7", "pull 4k7", 130, 108, "TRIGGER", "GND"),
        r("R15", "1k", "protection 1k", 142, 108, "PERST_HOST", "PERST"),
        Part("Q1", "NFET_SOT23", "IRLB8721", "small FET", 152, 109, 270, False, pins("PERST_LOW", "GND", "PERST")),
        # fast current channel: its amplifier on an adapter, filter here
        r("R30", "1k", "protection 1k", 160, 92, "FAST_OUT", "FAST"),
        c("C10", "1n", "interlock capacitor", 166, 92, "FAST"),
        # 12 V: gates, lock-out and its reference
        Part("F1", "Fuse", "0.5 A PTC", "gate supply fuse", 116, 120, 0, False, pins("SUPPLY_12V", "FUSED_12V")),
        # when the 12 V go, comparator, reference and Q105 work on from C11 for half a second
        Part("D3", "Diode", "1N5819", "gate supply diode", 108, 123, 270, False, {"2": "FUSED_12V", "1": "VGATE"}),
        c("C11", "470u", "input bulk", 108, 131, "VGATE"),
        Part("D2", "Zener_2", "BZX79-C27", "gate supply clamp", 174, 126, 270, False, pins("VGATE", "GND")),
        Part(
            *("U6", "HT7550", "HT7550-1", "logic regulator", 124, 123, 0, False),
            {"2": "VGATE", "3": "LOGIC_5V", "1": "GND"},
        ),
        c("C7", "1u", "regulator capacitor", 116, 126, "VGATE"),
        c("C9", "1u", "regulator capacitor", 132, 126, "LOGIC_5V"),
        # below 8 V of VGATE R31 takes the reference down: the gates are empty before the comparator sleeps, at 4 V
        r("R26", "2k2", "reference feed 2k2", 180, 123, "VGATE", "OVREF"),
        r("R31", "1k", "protection 1k", 193, 131, "OVREF", "GND"),
        *common.references(168),
        *common.lock_out_test("LOCKOUT_PIN"),
        c("C8", "330p", "divider 330p", 187, 131, "OVREF"),
        r("R24", "1k", "protection 1k", 211, 90, "+3V3", "LED_3V3"),
        Part("D7", "LED", "3.3 V", "LED green", 211, 95, 90, False, {"2": "LED_3V3", "1": "GND"}),
        Part("J1", "Terminal_4", "rail", "terminal", 185, 62, 0, False, pins("RAIL0_IN", "GND", "GND", "RAIL0_OUT")),
        Part(
            *("J2", "Terminal_4", "sensor, 12 V", "terminal", 185, 72, 0, False),
            pins("SW0", "RAIL0_OUT", "GND", "SUPPLY_12V"),
        ),
        Part(
            *("J3", "Header_8", "sensor's board, by wire", "header 8", 185, 86, 0, False),
            pins("+3V3", "GND", "SCL", "SDA", "ALERT0", "RAIL0_OUT", "GND", "GND"),
        ),
        Part(
            *("J4", "Header_8", "PERST#, fast channel", "header 8", 185, 100, 0, False),
            pins("PERST_HOST", "PERST", "GND", "+3V3", "FAST_OUT", "TRIGGER", "SYNC", "ACTIVITY"),
        ),
        *(probe(k, net) for k, net in ((1, "VGATE"), (2, "GND"), (3, "LOGIC_5V"), (4, "OVREF"))),
        *(
            Part(f"#FLG{i}", "PWR_FLAG", "PWR_FLAG", "", 188 + 5 * i, 140, 0, False, {"1": net})
            for i, net in enumerate(("GND", "VGATE", "LOGIC_5V"))
        ),
    ]


_parts, WIRES = rail()
PARTS = [*_parts, *shared()]
TEXTS = [
    (9, 5, 3, "One rail: 5 V (values of m2_3v3: 3.3 V), at most 5 A"),
    (120, 7, 3, "Microcontroller and logic"),
    (116, 114, 3, "12 V: gates, lock-out"),
]
