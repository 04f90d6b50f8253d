"""Symbols of the board, in units of 2.54 mm, y upwards. A pin: number -> (name, kind, x, y, angle to the body, length).

Pin numbers are those of the packages named in bom.csv: INA228 VSSOP-10, TPS61040 SOT-23-5, MOSFETs DPAK and SOT-23,
BZX84 SOT-23 (1 anode, 3 cathode), TL331 SOT-23-5 (TI SLVS238), TL431 SOT-23 (TI SLVS543: 1 cathode, 2 REF),
74HC132 SO-14, 74CBTLV3125 TSSOP-14, Raspberry Pi Pico.
"""

POWER = {"GND", "+3V3", "PWR_FLAG"}


def two_pin(lines, boxes=(), ref="R", names=("1", "2")):
    return {
        "ref": ref,
        "lines": lines,
        "boxes": boxes,
        "texts": ((0, 1.0), (0, -1.0)),
        "texts_upright": ((1.0, 0.4), (1.0, -0.4)),
        "pins": {names[0]: (names[0], "passive", -1.5, 0, 0, 0.5), names[1]: (names[1], "passive", 1.5, 0, 180, 0.5)},
    }


def box(ref, left, right, width, description=""):
    """A rectangle with rows of pins at both sides: each (number, name, kind), or None for a gap."""
    rows = max(len(left), len(right))
    top = (rows - 1) / 2 if rows % 2 else rows / 2
    pins = {}
    for side, x, angle in ((left, -width / 2 - 1, 0), (right, width / 2 + 1, 180)):
        for row, pin in enumerate(side):
            if pin:
                number, name, kind = pin
                pins[number] = (name, kind, x, top - row, angle, 1)
    return {
        "ref": ref,
        "boxes": [(-width / 2, top + 1, width / 2, top - rows)],
        "names": True,
        "texts": ((0, top + 2.4), (0, top + 1.6)),
        "pins": pins,
        "description": description,
    }


def rows(text, kind="passive"):
    return [(*word.split(":"), kind) if ":" in word else None for word in text.split()]


def quad(left, letter, kind, description):
    """Four gates in a 14-pin package: eight pins at the left, outputs 1`letter` to 4`letter` and the supply at the
    right."""
    out = {n: (pin, f"{n}{letter}", kind) for n, pin in enumerate(("3", "6", "8", "11"), 1)}
    right = [("14", "VCC", "power_in"), out[1], None, out[2], None, out[3], ("7", "GND", "power_in"), out[4]]
    return box("U", left, right, 6, description)


def fet(drains, sources, gate):
    """N-channel, drawn along the current: drain left, source right, gate below."""
    pins = {gate: ("G", "input", 0, -2, 90, 1)}
    pins |= dict.fromkeys(drains, ("D", "passive", -2, 0, 0, 1))
    pins |= dict.fromkeys(sources, ("S", "passive", 2, 0, 180, 1))
    return {
        "ref": "Q",
        "lines": [
            [(-1, 0), (-0.7, 0), (-0.7, -0.6)],
            [(1, 0), (0.7, 0), (0.7, -0.6)],
            [(-1, -0.6), (-0.4, -0.6)],
            [(-0.3, -0.6), (0.3, -0.6)],
            [(0.4, -0.6), (1, -0.6)],
            [(-0.8, -0.85), (0.8, -0.85)],
            [(0, -0.85), (0, -1)],
            [(0, -0.6), (0, -0.3), (0.7, -0.3)],
            # body diode: anode at the source
            [(-0.7, 0), (-0.7, 0.6), (-0.25, 0.6)],
            [(0.7, 0), (0.7, 0.6), (0.25, 0.6)],
            [(0.25, 0.85), (0.25, 0.35), (-0.25, 0.6), (0.25, 0.85)],
            [(-0.25, 0.85), (-0.25, 0.35)],
        ],
        "texts": ((0, 2.2), (0, 1.4)),
        "texts_upright": ((1.4, 0.5), (1.4, -0.5)),
        "pins": pins,
    }


def power(lines, kind="power_in", text_y=-1.5):
    return {
        "ref": "#PWR",
        "lines": lines,
        "texts": ((0, -2), (0, text_y)),
        "pins": {"1": ("~", kind, 0, 0, 270 if text_y < 0 else 90, 0)},
    }


def m2():
    """An M.2 connector of key M: odd contacts left, even ones right."""
    there = [n for n in range(1, 76) if not 59 <= n <= 66]
    sides = (rows(" ".join(f"{n}:c{n}" for n in there if n % 2 == odd)) for odd in (1, 0))
    return box("J", *sides, 5, "M.2, key M")


PICO = dict(
    left=(
        "1:GP0 2:GP1 4:GP2 5:GP3 6:GP4 7:GP5 9:GP6 10:GP7 11:GP8 12:GP9 14:GP10 15:GP11 16:GP12 17:GP13 19:GP14 20:GP15"
    ),
    right=(
        "40:VBUS 39:VSYS 36:3V3 35:ADC_VREF 37:3V3_EN 30:RUN 34:GP28 32:GP27 31:GP26 29:GP22 27:GP21 26:GP20 25:GP19"
        " 24:GP18 22:GP17 21:GP16"
    ),
    ground="3:GND 8:GND 13:GND 18:GND 23:GND 28:GND 38:GND 33:AGND",
)
KINDS = {
    "VBUS": "power_out",
    "VSYS": "passive",
    "3V3": "power_out",
    "ADC_VREF": "passive",
    "3V3_EN": "passive",
    "RUN": "passive",
}


def pico():
    kind = lambda text: [(number, name, KINDS.get(name, "bidirectional")) for number, name, _ in rows(text)]
    ground = [(number, name, "passive") for number, name, _ in rows(PICO["ground"])]
    return box(
        "U",
        kind(PICO["left"]) + [None] + ground[:4],
        kind(PICO["right"]) + [None] + ground[4:],
        10,
        "Raspberry Pi Pico or Pico 2",
    )


SATA = (
    "P1:3V3 P2:3V3 P3:PWDIS P4:GND P5:GND P6:GND P7:5V_PRE P8:5V P9:5V P10:GND P11:DAS P12:GND P13:12V_PRE P14:12V"
    " P15:12V"
)

SYMBOLS = {
    "R": two_pin([], [(-1, 0.35, 1, -0.35)]),
    "C": two_pin(
        [[(-0.2, 0.7), (-0.2, -0.7)], [(0.2, 0.7), (0.2, -0.7)], [(-1, 0), (-0.2, 0)], [(0.2, 0), (1, 0)]], ref="C"
    ),
    "Fuse": two_pin([[(-1, 0), (1, 0)]], [(-1, 0.3, 1, -0.3)], ref="F"),
    "Zener": two_pin(
        [
            [(-1, 0), (1, 0)],
            [(0.4, 0.5), (-0.4, 0), (0.4, -0.5), (0.4, 0.5)],
            [(-0.2, 0.7), (-0.4, 0.5), (-0.4, -0.5), (-0.6, -0.7)],
        ],
        ref="D",
        names=("3", "1"),
    ),
    "L": two_pin([[(-1, 0), (1, 0)]], [(-1, 0.25, 1, -0.25)], ref="L"),
    "Diode": two_pin(
        [[(-1, 0), (1, 0)], [(0.4, 0.5), (-0.4, 0), (0.4, -0.5), (0.4, 0.5)], [(-0.4, 0.5), (-0.4, -0.5)]],
        ref="D",
        names=("1", "2"),
    ),
    # cathode first, as KiCad's land patterns have it
    "Zener_2": two_pin(
        [
            [(-1, 0), (1, 0)],
            [(0.4, 0.5), (-0.4, 0), (0.4, -0.5), (0.4, 0.5)],
            [(-0.2, 0.7), (-0.4, 0.5), (-0.4, -0.5), (-0.6, -0.7)],
        ],
        ref="D",
    ),
    "LED": two_pin(
        [
            [(-1, 0), (1, 0)],
            [(0.4, 0.5), (-0.4, 0), (0.4, -0.5), (0.4, 0.5)],
            [(-0.4, 0.5), (-0.4, -0.5)],
            [(0.1, 0.6), (-0.3, 1.0)],
            [(0.4, 0.7), (0, 1.1)],
        ],
        ref="D",
    ),
    "BAT54S": box(
        "D", [("3", "AK", "passive"), None], [("2", "K", "passive"), ("1", "A", "passive")], 3, "two in series"
    ),
    "TPS7B84": box(
        "U",
        [("1", "IN", "power_in"), ("2", "EN", "input")],
        [("3", "OUT", "passive"), ("4", "GND", "power_in")],
        5,
        "5 V, 150 mA, input up to 40 V",
    ),
    "HT7550": box(
        "U",
        [("2", "VIN", "power_in"), ("1", "GND", "power_in")],
        [("3", "VOUT", "passive"), None],
        5,
        "5 V, 100 mA, input up to 30 V",
    ),
    "TestPoint": {
        "ref": "T",
        "boxes": [(-0.4, 1.3, 0.4, 0.5)],
        "lines": [[(0, 0), (0, 0.5)]],
        "texts": ((0, 2.6), (0, 1.8)),
        "pins": {"1": ("1", "passive", 0, 0, 90, 0.5)},
    },
    "NFET_DPAK": fet("2", "3", "1"),
    "NFET_SOT23": fet("3", "2", "1"),
    "INA228": box(
        "U",
        [
            ("10", "IN+", "input"),
            ("9", "IN-", "input"),
            ("8", "VBUS", "input"),
            ("1", "A1", "input"),
            ("2", "A0", "input"),
        ],
        [
            ("6", "VS", "power_in"),
            ("4", "SDA", "bidirectional"),
            ("5", "SCL", "input"),
            ("3", "~{ALERT}", "open_collector"),
            ("7", "GND", "power_in"),
        ],
        6,
        "85 V, 20-bit power monitor",
    ),
    # four rows of three pads: first and middle joined in copper, INA228; cut, and bridge middle and last: INA229
    "Selector": box(
        "J",
        rows("1:SCL 2:pin5 3:SCLK 4:SDA 5:pin4 6:MISO"),
        rows("7:A0 8:pin2 9:MOSI 10:A1 11:pin1 12:CS"),
        5,
        "which of INA228 and INA229 a site is wired for",
    ),
    "74HC132": quad(
        rows("1:1A 2:1B 4:2A 5:2B 9:3A 10:3B 12:4A 13:4B", "input"), "Y", "output", "quad 2-input Schmitt NAND"
    ),
    "TL331": box(
        "U",
        [("3", "IN+", "input"), ("1", "IN-", "input"), None],
        [("5", "VCC", "power_in"), ("4", "OUT", "open_collector"), ("2", "GND", "power_in")],
        5,
        "comparator, open collector, 2 to 36 V",
    ),
    "TL431": box(
        "U",
        [("1", "K", "passive"), ("2", "REF", "input")],
        [None, ("3", "A", "passive")],
        4,
        "shunt reference, 2.495 V",
    ),
    "TPS61040": box(
        "U",
        [("5", "VIN", "power_in"), ("4", "EN", "input"), ("2", "GND", "power_in")],
        [("1", "SW", "passive"), ("3", "FB", "input"), None],
        5,
        "boost converter, 28 V, 0.4 A",
    ),
    "74CBTLV3125": quad(
        [
            (number, name, "input" if "OE" in name else kind)
            for number, name, kind in rows("1:~{1OE} 2:1A 4:~{2OE} 5:2A 10:~{3OE} 9:3A 13:~{4OE} 12:4A")
        ],
        "B",
        "passive",
        "quad bus switch, isolates when unpowered",
    ),
    "Pico": pico(),
    "SATA_15": box("J", [], rows(SATA), 5, "SATA power, 15 pins"),
    "Terminal_4": box("J", [], rows("1:IN 2:GND 3:GND 4:OUT"), 4, "screw terminal, 4 poles"),
    "Peripheral_4": box("J", [], rows("1:12V 2:GND 3:GND 4:5V"), 4, "peripheral power, 4 poles"),
    **dict.fromkeys(("M2_Edge", "M2_Socket"), m2()),
    "Wires_3": box("J", [], rows("1:IN 2:GND 3:OUT"), 3, "three wires, soldered"),
    "Header_8": box("J", [], rows("1:1 2:2 3:3 4:4 5:5 6:6 7:7 8:8"), 3, "pin header 1x8"),
    "Header_4": box("J", [], rows("1:1 2:2 3:3 4:4"), 3, "pin header 1x4"),
    "GND": power([[(0, 0), (0, -0.5), (0.5, -0.5), (0, -1), (-0.5, -0.5), (0, -0.5)]]),
    "+3V3": power([[(0, 0), (0, 0.5)], [(-0.4, 0.5), (0.4, 0.5)]], text_y=1.1),
    "PWR_FLAG": power([[(0, 0), (0, 0.5), (-0.4, 0.8), (0, 1.1), (0.4, 0.8), (0, 0.5)]], "power_out", 1.6),
}
