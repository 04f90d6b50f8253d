"""What the rails share: Pico, interlock, side-band, gate and logic supply, connectors, lamps, pins from outside."""

import csv

from part import HARDWARE, Part


def pico_nets():
    with open(HARDWARE / "pins.csv", newline="") as file:
        nets = {row["pico_pin"]: row["net"] for row in csv.DictReader(file)}
    nets |= {"40": None, "39": None, "36": "+3V3", "35": None, "37": None, "30": None}
    return nets | dict.fromkeys(("3", "8", "13", "18", "23", "28", "38", "33"), "GND")


def schmitt(ref, first, x, y):
    """Two rails' interlocks: NAND of DISCHARGE and late OFF, then the second NAND as an inverter."""
    a, b = first, first + 1
    nets = {
        "14": "+3V3",
        "7": "GND",
        "1": f"LATE{a}",
        "2": f"DISCHARGE{a}",
        "3": f"BLOCK{a}",
        "4": f"BLOCK{a}",
        "5": f"BLOCK{a}",
        "6": f"CROWBAR{a}",
    }
    nets |= {
        "9": f"LATE{b}",
        "10": f"DISCHARGE{b}",
        "8": f"BLOCK{b}",
        "12": f"BLOCK{b}",
        "13": f"BLOCK{b}",
        "11": f"CROWBAR{b}",
    }
    return Part(ref, "74HC132", "SN74HC132", "SN74HC132", x, y, 0, False, nets)


SIDE = ("CLKREQ", "PEWAKE", "SMBCLK", "SMBDAT")


def sata(side):
    """Nets of a SATA power connector but P11; P7 and P13 are the pre-charge pins."""
    ground, open_pins = dict.fromkeys(("P4", "P5", "P6", "P10", "P12"), "GND"), dict.fromkeys(("P1", "P2"))
    five, twelve = (
        dict.fromkeys(("P7", "P8", "P9"), f"RAIL1_{side}"),
        dict.fromkeys(("P13", "P14", "P15"), f"RAIL2_{side}"),
    )
    # the supply's orange wire would hold a drive off: open at the input
    return ground | open_pins | five | twelve | {"P3": "PWDIS" if side == "OUT" else None}


def references(x):
    """U7 and U8, the lock-outs' reference twice: the lower one holds OVREF, so one that is open changes nothing."""
    nets = {"1": "OVREF", "2": "OVREF", "3": "GND"}
    places = (("U7", 180, 131), ("U8", x, 133))
    return [Part(ref, "TL431", "TL431", "lock-out reference", x, y, 0, False, nets) for ref, x, y in places]


def lock_out_test(pin, also=None):
    """What lets the Pico trip the lock-outs: `pin` high pulls OVREF down through 470 Ohm. also: a net that must be high
    for that, too (SPI_CS: while an INA229 is read its SPI_MISO goes high and low)."""
    nets = lambda gate, source, drain: {"1": gate, "2": source, "3": drain}
    fets = [("Q2", "LOCKOUT", "TESTLOW" if also else "GND", "TESTED")]
    fets += [("Q3", also, "GND", "TESTLOW")] if also else []
    return [
        Part("R27", "R", "470R", "lock-out test", 96, 121, 270, False, {"1": "OVREF", "2": "TESTED"}),
        Part("R28", "R", "4k7", "pull 4k7", 84, 134, 270, False, {"1": "LOCKOUT", "2": "GND"}),
        # holds the FET's capacitance off the wire of an INA229
        Part("R29", "R", "1k", "protection 1k", 84, 127, 270, False, {"1": pin, "2": "LOCKOUT"}),
        *(
            Part(ref, "NFET_SOT23", "BSS138", "lock-out test FET", 96, 128 + 9 * k, 270, False, nets(*of))
            for k, (ref, *of) in enumerate(fets)
        ),
    ]


def common_parts():
    """(parts, wires) of what the rails share."""
    three = lambda ref, x, y: Part(ref, "C", "100n", "decoupling", x, y, 270, False, {"1": "+3V3", "2": "GND"})
    r = lambda ref, value, item, x, y, one, two, angle=270: Part(
        ref, "R", value, item, x, y, angle, False, {"1": one, "2": two}
    )
    bus_switch = {"14": "+3V3", "7": "GND"} | dict.fromkeys(("1", "4", "10", "13"), "SIDEBAND_OFF")
    for name, host, drive in zip(SIDE, ("2", "5", "9", "12"), ("3", "6", "8", "11")):
        bus_switch |= {host: f"{name}_HOST", drive: f"{name}_DRIVE"}
    parts = [
        Part("U1", "Pico", "Pico or Pico 2", "Pico", 140, 24, 0, False, pico_nets()),
        schmitt("U2", 0, 135, 44),
        schmitt("U3", 2, 135, 60),
        Part("U4", "74CBTLV3125", "SN74CBTLV3125", "SN74CBTLV3125", 135, 76, 0, False, bus_switch),
        three("C1", 150, 44),
        three("C2", 150, 60),
        three("C3", 150, 76),
        r("R1", "1k5", "bus pull-up", 118, 92, "+3V3", "SDA"),
        r("R2", "1k5", "bus pull-up", 124, 92, "+3V3", "SCL"),
        *(r(f"R{3 + n}", "10k", "pull 10k", 130 + 6 * n, 92, "+3V3", f"ALERT{n}") for n in range(4)),
        r("R7", "10k", "pull 10k", 154, 92, "+3V3", "SPI_CS"),
        r("R8", "100k", "activity pull-up", 118, 108, "+3V3", "ACTIVITY"),
        r("R9", "4k7", "pull 4k7", 124, 108, "PERST_LOW", "GND"),
        r("R10", "4k7", "pull 4k7", 130, 108, "SIDEBAND_OFF", "GND"),
        r("R11", "4k7", "pull 4k7", 136, 108, "TRIGGER", "GND"),
        # from outside: 1 kOhm, then clamped to ground and 3.3 V
        r("R16", "1k", "protection 1k", 203, 32, "TRIGGER_IN", "TRIGGER", 0),
        r("R17", "1k", "protection 1k", 203, 44, "ACTIVITY_IN", "ACTIVITY", 0),
        *(
            Part(f"D{k}", "BAT54S", "BAT54S", "BAT54S", 206, y, 0, False, {"1": "GND", "2": "+3V3", "3": net})
            for k, y, net in ((4, 36, "TRIGGER"), (5, 48, "ACTIVITY"))
        ),
        *(
            r(f"R{18 + k}", "100R", "gpio resistor", 208, 60 + 4 * k, f"{net}_PIN", net, 0)
            for k, net in enumerate(("SYNC", "SPI_SCK", "SPI_MOSI", "SPI_MISO", "SPI_CS"))
        ),
        # in sight: gate supply, logic
        r("R23", "22k", "LED resistor 22k", 203, 90, "VGATE", "LED_VGATE"),
        Part("D6", "LED", "24 V", "LED yellow", 203, 95, 90, False, {"2": "LED_VGATE", "1": "GND"}),
        r("R24", "1k", "protection 1k", 211, 90, "+3V3", "LED_3V3"),
        Part("D7", "LED", "3.3 V", "LED green", 211, 95, 90, False, {"2": "LED_3V3", "1": "GND"}),
        *(
            Part(f"T{k + 1}", "TestPoint", "TP", "", 140 + 6 * k, 146, 0, False, {"1": net})
            for k, net in enumerate(("VGATE", "GND", "GND", "+3V3", "LOGIC_5V", "OVREF", "LOCK_5V"))
        ),
        r("R12", "4k7", "pull 4k7", 142, 108, "PWDIS", "GND"),
        # the host drives PERST# high: Q1 pulls low behind this
        r("R15", "1k", "PERST series", 162, 108, "PERST_HOST", "PERST"),
        Part(
            "Q1",
            "NFET_SOT23",
            "AO3400A",
            "small FET",
            152,
            109,
            270,
            False,
            {"3": "PERST", "2": "GND", "1": "PERST_LOW"},
        ),
        # 5 V of the always-on input through a regulator that bears 24 V there for ever (40 V, with its own current and
        # thermal limit), the gate supply of 24 V from that. Not the Pico: what it draws would pull LOGIC_5V, and the
        # lock-outs with it, down
        Part(
            "U6",
            "TPS7B84",
            "TPS7B8450",
            "logic regulator",
            124,
            123,
            0,
            False,
            {"1": "LOGIC_IN", "2": "LOGIC_IN", "3": "LOGIC_6V", "4": "GND"},
        ),
        # a second one: with one of them short 12 V at J1 would reach the TPS61040
        Part(
            "U9",
            "TPS7B84",
            "TPS7B8450",
            "logic regulator",
            108,
            131,
            0,
            False,
            {"1": "LOGIC_6V", "2": "LOGIC_6V", "3": "LOGIC_5V", "4": "GND"},
        ),
        # bears what the 5 V input does: it gets that where U6 is short
        Part("C9", "C", "4u7", "regulator capacitor", 108, 138, 270, False, {"1": "LOGIC_6V", "2": "GND"}),
        # RAIL1 shorted: C9 and C4 empty through these and not through the regulators, output to input
        Part("D8", "Diode", "MBR0540", "boost diode", 124, 118, 180, False, {"2": "LOGIC_6V", "1": "LOGIC_IN"}),
        Part("D9", "Diode", "MBR0540", "boost diode", 124, 137, 180, False, {"2": "LOGIC_5V", "1": "LOGIC_6V"}),
        # LOGIC_5V gone: from C10 the lock-outs still empty the gates, which would hold for tens of ms
        Part("D3", "Diode", "MBR0540", "boost diode", 188, 117, 180, False, {"2": "LOGIC_5V", "1": "LOCK_5V"}),
        Part("C10", "C", "10u", "lock-out capacitor", 196, 119, 270, False, {"1": "LOCK_5V", "2": "GND"}),
        Part("C7", "C", "1u", "boost output", 116, 126, 270, False, {"1": "LOGIC_IN", "2": "GND"}),
        # the logic's own fuse: what is short behind it takes neither the supply nor the 5 V rail along
        Part("F1", "Fuse", "0.5 A slow", "crowbar fuse 0.5 A", 116, 120, 0, False, {"1": "RAIL1_IN", "2": "LOGIC_IN"}),
        *lock_out_test("SPI_MISO", "SPI_CS"),
        # the lock-outs' reference. Below 3.74 V of LOGIC_5V R31 takes it down: every rail is off before LOCK_5V is too
        # low for Q05
        r("R26", "1k", "protection 1k", 180, 123, "LOGIC_5V", "OVREF"),
        r("R31", "2k", "reference load 2k", 193, 131, "OVREF", "GND"),
        *references(174),
        # not more: from 1 nF to 10 uF a TL431 of 2 mA may oscillate
        Part("C8", "C", "330p", "divider 330p", 187, 131, 270, False, {"1": "OVREF", "2": "GND"}),
        Part(
            "U5",
            "TPS61040",
            "TPS61040",
            "TPS61040",
            140,
            129,
            0,
            False,
            {"5": "LOGIC_5V", "4": "LOGIC_5V", "2": "GND", "1": "BOOST", "3": "FEEDBACK"},
        ),
        Part("L1", "L", "10u", "boost inductor", 140, 122, 0, False, {"1": "LOGIC_5V", "2": "BOOST"}),
        Part("D1", "Diode", "MBR0540", "boost diode", 149, 122, 180, False, {"2": "BOOST", "1": "VGATE"}),
        r("R13", "2M2", "boost upper", 156, 126, "VGATE", "FEEDBACK"),
        r("R14", "120k", "boost lower", 156, 131, "FEEDBACK", "GND"),
        Part("C6", "C", "22p", "divider 22p", 162, 126, 270, False, {"1": "VGATE", "2": "FEEDBACK"}),
        Part("C4", "C", "4u7", "boost input", 130, 131, 270, False, {"1": "LOGIC_5V", "2": "GND"}),
        Part("C5", "C", "1u", "boost output", 168, 126, 270, False, {"1": "VGATE", "2": "GND"}),
        # R13 open: this regulates the gate supply, to 28 V. To ground it would take all that the TPS61040 makes, and
        # the regulator before that would burn (spice/shared.py)
        Part("D2", "Zener_2", "BZT52-B27", "gate supply clamp", 174, 126, 270, False, {"1": "VGATE", "2": "FEEDBACK"}),
        # connectors
        Part("J1", "SATA_15", "SATA power in (plug)", "SATA plug", 185, 22, 0, False, sata("IN") | {"P11": None}),
        Part(
            "J2",
            "SATA_15",
            "SATA power out (receptacle)",
            "SATA receptacle",
            185,
            44,
            0,
            False,
            sata("OUT") | {"P11": "ACTIVITY_IN"},
        ),
        # beside the wire holes of J1: a supply's 4-pin plug. It has no 3.3 V, so nothing can hold PWDIS high
        Part(
            "J9",
            "Peripheral_4",
            "peripheral power in",
            "peripheral header",
            206,
            14,
            0,
            False,
            {"1": "RAIL2_IN", "2": "GND", "3": "GND", "4": "RAIL1_IN"},
        ),
        Part(
            "J3",
            "Terminal_4",
            "M.2 3.3 V",
            "terminal",
            185,
            62,
            0,
            False,
            {"1": "RAIL0_IN", "2": "GND", "3": "GND", "4": "RAIL0_OUT"},
        ),
        Part(
            "J4",
            "Terminal_4",
            "U.2 3.3Vaux",
            "terminal",
            185,
            72,
            0,
            False,
            {"1": "RAIL3_IN", "2": "GND", "3": "GND", "4": "RAIL3_OUT"},
        ),
        Part(
            "J5",
            "Header_8",
            "side-band, host",
            "header 8",
            185,
            86,
            0,
            False,
            {str(i + 1): f"{name}_HOST" for i, name in enumerate(SIDE)}
            | {"5": "PERST_HOST", "6": "GND", "7": "GND", "8": "GND"},
        ),
        Part(
            "J6",
            "Header_8",
            "side-band, drive",
            "header 8",
            185,
            100,
            0,
            False,
            {str(i + 1): f"{name}_DRIVE" for i, name in enumerate(SIDE)}
            | {"5": "PERST", "6": "ACTIVITY_IN", "7": "GND", "8": "GND"},
        ),
        Part(
            "J7",
            "Header_4",
            "trigger, sync",
            "header 4",
            185,
            112,
            0,
            False,
            {"1": "TRIGGER_IN", "2": "GND", "3": "SYNC_PIN", "4": "GND"},
        ),
        Part(
            "J8",
            "Header_8",
            "SPI for an INA229",
            "header 8",
            185,
            124,
            0,
            False,
            {
                "1": "+3V3",
                "2": "GND",
                "3": "SPI_SCK_PIN",
                "4": "SPI_MOSI_PIN",
                "5": "SPI_MISO_PIN",
                "6": "SPI_CS_PIN",
                "7": "SDA",
                "8": "SCL",
            },
        ),
        # what feeds the board comes in through passive connector pins: say so to the rule check
        *(
            Part(f"#FLG{i}", "PWR_FLAG", "PWR_FLAG", "", 188 + 5 * i, 140, 0, False, {"1": net})
            for i, net in enumerate(("GND", "LOGIC_IN", "LOGIC_6V", "LOGIC_5V", "VGATE"))
        ),
    ]
    wires = [("R13.2", "R14.1", "x"), ("L1.2", "D1.2", "x"), ("C6.2", "R13.2", "y"), ("R23.2", "D6.2", "x")]
    wires += [("R24.2", "D7.2", "x"), ("C5.1", "D2.1", "x"), ("R13.1", "C6.1", "x"), ("C6.1", "C5.1", "x")]
    return parts, wires
