"""SIMULATED soldered rigs for bring_up.py: the parts of a board's netlist (hardware/), each as it is or with a fault of
assembly, and a meter's display at any two nets. Direct current alone: a capacitor is open, unless it is turned."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from ssdrig.meter import chips
from ssdrig.rig import bring_up

HARDWARE = Path(__file__).resolve().parents[2] / "hardware"
THERMAL_V = 0.045  # n kT/q
DIODE_A = 1e-9
SCHOTTKY, SCHOTTKY_A = ("SS", "MBR05", "1N58"), 4e-6  # leaks some uA from 0.1 V on, as their data sheets' curves
LED_A = 1e-20  # 1.9 V at 1 mA
# values.csv: threshold V, by how much it may be off, gfs S; and what the knee below adds at the threshold's current
FET = {"IRL": (1.85, 0.5, 89.0, 0.175), "AO3400A": (1.05, 0.4, 26.0, 0.12), "BSS138": (1.15, 0.35, 0.5, -0.05)}
FET |= {"NTR4003": (1.1, 0.3, 1.0, -0.05), "TN0106": (1.3, 0.7, 0.3, -0.05)}
# of the other polarity, in the same package: taken from the reel next to it
P_CHANNEL = {"IRFR9024": (3.0, 1.0, 2.5, 0.1), "AO3401A": (0.9, 0.4, 17.0, 0.12), "BSS84": (1.4, 0.6, 0.1, -0.05)}
P_CHANNEL |= {"NTR4101P": (0.8, 0.4, 7.0, 0.12), "TP0606": (1.7, 0.7, 0.3, -0.05)}
SUPPLY_PINS = {"74HC132": ("7", "14"), "74CBTLV3125": ("7", "14")}  # ground, supply; of a sensor:
SENSOR_PINS = "7", "6"
FET_KNEE_V = 0.05
REFERENCE_V = 0.002  # in place of THERMAL_V: the voltage of a reference hardly depends on its current
SUPPLY_ohm = 0.02
PULL_ohm = 560.0  # from OVREF to ground, which trips the lock-out
METER_V, DISPLAY_V = 3.0, 1.3  # of an ohmmeter: open, and at most with a display in a range
DIODE_DISPLAY_V = 2.8  # at most, in the diode range
RANGES_A = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # of an ohmmeter, shorted
LEADS_ohm = 0.05, 0.3  # of the meter
METER_PART = 0.003  # that it may be off, in every reading by the same
IN_OHM = ("crowbar path", "lock-out resistor", "gate stopper", "crowbar resistor", "PERST# held")
EYE = (
    "references",
    "trips",
    "cold",
    "crowbar off",
    "climbs",
    "gates climb",
    "lock-out climbs",
    "lamp",
    "lamps",
    "marks",
)  # no meter shows
LAMP_V = 1.5  # across a lamp that is lit
LEAK_ohm, TURNED_ohm = 2e6, 400.0  # of an electrolytic capacitor once still, and of one that is turned
VBUS_ohm = 1e6
LOGIC_3V3, GATE_ohm, LIT_V = 3.3, 60.0, 2.0  # the NANDs' supply and output; of CROWBAR, whose lamp is lit
LOGIC_V, BOOST_FEEDBACK_V, MODULE_V = 5.0, 1.233, 24.0
HOT_W = 0.3  # in the crowbar's resistor: it is felt
FUSE_A = {"0287010": 10.0, "028707.5": 7.5, "0287015": 15.0, "0287003": 3.0}


class Part(NamedTuple):
    """A part: its value and symbol as in the schematic, and the net of each pin."""

    value: str
    pins: dict[str, str]
    symbol: str = ""


Parts = dict[str, Part]
Fault = Callable[["Rig"], None]


def netlist(path: Path) -> Parts:
    """The parts of a KiCad netlist."""
    text = path.read_text()
    components = re.findall(r'\(comp \(ref "([^"]+)"\)\s+\(value "([^"]*)"\).*?\(part "([^"]*)"\)', text, re.DOTALL)
    parts: Parts = {ref: Part(value, {}, symbol) for ref, value, symbol in components}
    for block in re.split(r"\(net\s+\(code ", text)[1:]:
        match = re.search(r'\(name "([^"]*)"\)', block)
        assert match
        for ref, pin in re.findall(r'\(node\s+\(ref "([^"]+)"\)\s+\(pin "([^"]+)"\)', block):
            parts[ref].pins[pin] = match[1].removeprefix("/")
    return parts


def ohms(value: str) -> float:
    """ "4k7" -> 4700.0, "10R" -> 10.0, "8m" -> 0.008."""
    match = re.fullmatch(r"(\d+)([RkMm]?)(\d*)", value)
    assert match, value
    return float(f"{match[1]}.{match[3] or 0}") * {"R": 1, "k": 1e3, "M": 1e6, "m": 1e-3, "": 1}[match[2]]


class Rig:
    """One that is soldered. Rails are numbered as in the build; nets have the numbers of their schematic.

    build: its document; one_rail and one_m2_rail on the breakout's board, four_rails on the board, others on a
        prototyping board
    fault: changes the rig; None: a sound one
    digits: the meter shows after the decimal point"""

    def __init__(self, dice: Random, build: dict, fault: Fault | None = None, digits: int = 3):
        self.dice, self.build, self.digits = dice, build, digits
        self.kind = bring_up.board_of(build)
        self.nominal_V = {row["rail"]: row["nominal_mV"] / 1000 for row in build["rails"]}
        of_breakout = self.kind == "breakout"
        self.parts = netlist(HARDWARE / ("breakout/board/breakout.net" if of_breakout else "board/ssdrig.net"))
        self.at = {n: n + 1 if self.kind == "prototyping" else n for n in self.nominal_V}  # rail -> number in its nets
        self._as_built()
        self.ordered = {ref: part.value for ref, part in self.parts.items()}
        near = lambda value, part: value * (1 + dice.uniform(-part, part))
        self.supply_V = {n: near(volts, 0.04) for n, volts in self.nominal_V.items()}
        self.aux_V = near(12.0, 0.045) if of_breakout else near(MODULE_V, 0.025)
        self.part = {ref: dice.uniform(-1, 1) for ref in self.parts}  # of its tolerance
        self.bridges: list[tuple[str, str]] = []
        self.tries_lock_out = False
        self.meter = 1 + dice.uniform(-METER_PART, METER_PART)
        self.scope_at = {n: f"SCOPE{at}" for n, at in self.at.items()}  # net at the Pico's pin
        self.converter_A = 3.0  # of the fuse in the converter's 12 V lead
        self._seen: dict[tuple, dict[str, float]] = {}  # by the supplies
        self.leads: dict[int, int] = {}  # drive's contact of a rail -> rail whose wire is there
        if fault:
            fault(self)

    def _as_built(self) -> None:
        """Take from the netlist what this build does not have, and add what hangs on wires."""
        parts = self.parts
        if self.kind == "breakout":
            parts["shunt"] = Part("15m", {"1": "SW0", "2": "RAIL0_OUT"})
            parts["VBUS0"] = Part("1M", {"1": "RAIL0_OUT", "2": "GND"})
            if self.nominal_V[0] < 4:
                parts["R119"], parts["R122"] = (
                    parts[ref]._replace(value=v) for ref, v in (("R119", "4k42"), ("R122", "1k5"))
                )
                parts["F101"] = parts["F101"]._replace(value="wire")
        else:
            for n in range(4):
                parts[f"VBUS{n}"] = Part("1M", {"1": f"RAIL{n}_OUT", "2": "GND"})
                rows = parts[f"J{n + 1}01"].pins  # strips of copper make it an INA228's
                for k in (1, 4, 7, 10):
                    parts[f"joined{n}{10 + k}"] = Part("wire", {"1": rows[str(k)], "2": rows[str(k + 1)]})
        if self.kind == "prototyping":
            for ref in [ref for ref in parts if re.fullmatch(r"[A-Z]+[1-4]\d\d", ref) and self._is_extra(ref)]:
                del parts[ref]
            shared = "U5 U6 U9 U7 U8 R26 R31 D2 R13 R14 F1 Q2 Q3 R27 R28 R29"
            for ref in shared.split():
                del parts[ref]
            for n in self.at.values():
                parts[f"F{n + 1}02"] = parts[f"F{n + 1}02"]._replace(value="wire")
                fuse = parts[f"F{n + 1}01"]
                parts[f"F{n + 1}01"] = fuse._replace(pins={"1": f"PSU{n}", "2": f"RAIL{n}_IN"})  # in the lead
                parts[f"joined{n}"] = Part("wire", {"1": f"RAIL{n}_IN", "2": f"FUSED{n}"})
                # one resistor of 4.7 kOhm, and none before SCOPE
                parts[f"R{n + 1}14"] = parts[f"R{n + 1}14"]._replace(value="4k7")
                for k, (one, other) in enumerate((("ISO", "RAMP"), ("TAP", "SCOPE")), 1):
                    parts[f"joined{n}{k}"] = Part("wire", {"1": f"{one}{n}", "2": f"{other}{n}"})

    @staticmethod
    def _is_extra(ref: str) -> bool:
        """Whether a part of a rail is not on the prototyping board: lock-out, TVS, freewheel diode, crowbar's fuse."""
        return ref[0] + ref[2:] in {
            *(
                "D02",
                "D04",
                "D05",
                "D06",
                "U02",
                "Q05",
                "R19",
                "R20",
                "R21",
                "R22",
                "R23",
                "R24",
                "R25",
                "R26",
                "R27",
                "R28",
                "C08",
            )
        }

    # ---- faults

    def name(self, role: str, rail: int = 0) -> str:
        """The reference of a rail's part: ("Q01", 0) -> "Q101" on the board."""
        return f"{role[0]}{self.at[rail] + 1}{role[1:]}"

    def take_off(self, ref: str) -> None:
        del self.parts[ref]

    def short(self, ref: str) -> None:
        pins = self.parts[ref].pins
        one, other = (pins[pin] for pin in (("2", "3") if ref[0] == "Q" else sorted(pins)[:2]))
        self.bridges.append((one, other))

    def turn(self, ref: str) -> None:
        """Exchange drain and source, or the two ends."""
        part = self.parts[ref]
        a, b = ("2", "3") if ref[0] == "Q" else ("1", "3") if "3" in part.pins else ("1", "2")
        turned = "turned" if ref[0] == "C" else part.value
        self.parts[ref] = part._replace(value=turned, pins=part.pins | {a: part.pins[b], b: part.pins[a]})

    def fit(self, ref: str, value: str) -> None:
        self.parts[ref] = self.parts[ref]._replace(value=value)

    def wire(self, ref: str, pin: str, net: str) -> None:
        part = self.parts[ref]
        self.parts[ref] = part._replace(pins=part.pins | {pin: net})

    # ---- the meter

    def answer(self, words: str, readings: list[bring_up.Reading]) -> str:
        """The line that its builder types when asked."""
        rails = re.match(r"rails? ([\d ]+): ", words)
        of = [int(n) for n in rails[1].split()] if rails else [None]
        for kind in {(one.key, one.words) for one in readings}:
            asked = [one for one in readings if (one.key, one.words) == kind and one.rail in of]
            if not asked or bring_up.question_of(asked) != words:
                continue
            if asked[0].optional and not self.tries_lock_out:
                return ""
            values = [self.shown(one.key, one.rail) for one in asked]
            if asked[0].unit == "yes":
                bad = [str(one.rail) for one, value in zip(asked, values, strict=True) if not value]
                return "y" if not bad else " ".join(["n", *(bad if len(asked) > 1 else [])])
            unit = asked[0].unit
            return " ".join("ol" if np.isinf(value) else f"{value:.{self.digits}f} {unit}" for value in values)
        return ""

    def shown(self, key: str, rail: int | None) -> float:
        """The display of a meter of 0.3 %, in the unit of the reading; 1.0 and 0.0 for yes and no."""
        exact = ("supply", "drive", "leads", "12 V lead", "fuse", "crowbar fuse", "logic fuse", *EYE)
        leads_ohm = self.dice.uniform(*LEADS_ohm) if key in IN_OHM else 0.0
        return self.true(key, rail) * (1.0 if key in exact else self.meter) + leads_ohm

    def true(self, key: str, rail: int | None) -> float:
        rail = next(iter(self.at)) if rail is None else rail
        n = self.at[rail]
        source = f"RAIL{n}_IN"
        in_diode_range = {
            **{"through": (source, f"SW{n}"), "back": (f"SW{n}", source), "source": (f"SRC{n}", source)},
            **{"freewheel": ("GND", f"SW{n}"), "TVS": ("GND", source), "gate clamp": (f"SRC{n}", f"GATE{n}")},
            **{"PERST# FET": ("GND", "PERST"), "PERST# back": ("PERST", "GND"), "12 V diode": ("SUPPLY_12V", "VGATE")},
            **{"D8": ("LOGIC_6V", "LOGIC_IN"), "D9": ("LOGIC_5V", "LOGIC_6V")},
            "D3": ("LOGIC_5V", "LOCK_5V"),
        }
        if key in in_diode_range:
            across = self._diode_V(*in_diode_range[key])
            return across if across < DIODE_DISPLAY_V else np.inf
        points = {
            "input": (source, "GND"),
            **{"output": (f"SW{n}", "GND"), "OFF": (f"OFF{n}", "GND"), "DISCHARGE": (f"DISCHARGE{n}", "GND")},
            **{"PERST#": ("PERST_HOST", "PERST"), "PERST_LOW": ("PERST_LOW", "GND"), "logic short": ("+3V3", "GND")},
            **{"interlock": (f"OFF{n}", f"LATE{n}"), "crowbar path": (f"SW{n}", f"BAR{n}")},
            **{"lock-out resistor": (f"GATE{n}", f"OVEMPTY{n}"), "crowbar gate": (f"BARGATE{n}", "GND")},
            **{"gate stopper": (self._net("Q01", "1", rail), f"GATE{n}"), "SIDEBAND_OFF": ("SIDEBAND_OFF", "GND")},
            "scope resistor": (f"TAP{n}", f"SCOPE{n}"),
            **{"crowbar resistor": (f"CROWBAR{n}", f"BARGATE{n}")},
            "lock-out pull-up": (self._net("Q05", "1", rail), "VGATE" if self.kind == "breakout" else "LOCK_5V"),
            **{"VSYS": (self.parts["U1"].pins.get("39", "open"), "GND"), "gates short": ("VGATE", "GND")},
            "reference load": ("OVREF", "GND"),
            "lock-out line": (self.parts["U1"].pins.get("20" if self.kind == "breakout" else "1", "open"), "GND"),
        }
        if key in points:
            return self._kiloohms(*points[key]) * (1000 if key in IN_OHM else 1)
        if key == "PERST# held":
            volts = self._solved(self.supply_V, ("LOGIC_5V", "PERST_LOW"), ("PERST", "GND", 1e-3))["PERST"]
            return volts / (1e-3 * (1 - volts / METER_V)) if volts < DISPLAY_V else np.inf
        if key in ("climbs", "gates climb"):
            ends = {f"RAIL{n}_IN", f"FUSED{n}"} if key == "climbs" else {"VGATE"}
            big = ("470u", "470u x 10", "turned")
            return float(any(of.value in big and ends & {*of.pins.values()} for of in self.parts.values()))
        if key == "lock-out climbs":
            return float(
                any({"LOCK_5V", "GND"} == {*of.pins.values()} and of.value == "10u" for of in self.parts.values())
            )
        if key == "marks":
            marked = [(ref, part) for ref, part in self.parts.items() if ref[0] == "D" or part.symbol.startswith("74")]
            return float(all(part.value == self.ordered[ref] for ref, part in marked))
        if key == "references":
            return float({"U7", "U8"} <= self.parts.keys())
        if key in ("crowbar fuse", "logic fuse"):
            part = self.parts.get(self.name("F02", rail) if key == "crowbar fuse" else "F1")
            rating = re.match(r"[\d.]+(?= A)", part.value) if part else None
            return float(rating[0]) if rating else 0.0
        if key in ("leads", "12 V lead"):
            return self.supply_V[rail] if key == "leads" else self.aux_V
        if key == "fuse":
            if self.nominal_V[rail] < 4:
                return self.converter_A
            part = self.parts.get(self.name("F01", rail))
            return next((amps for of, amps in FUSE_A.items() if part and part.value.startswith(of)), 0.0)
        held_at = {"lock-out gate": f"OVGATE{n}", "ramp": f"RAMP{n}", "reference held": "OVREF"}
        held_at["share held"] = f"OVSHARE{n}"
        if key in ("trips", *held_at):
            held = self._held()
            if key != "trips":
                return held.get(held_at[key], 0.0)
            out, enough_V = f"RAIL{n}_OUT", self.nominal_V[rail] / 10
            return float(held.get(out, 0.0) < enough_V < self._powered().get(out, 0.0))
        if key == "lock-out":
            return self._lock_out_V(rail)
        volts = self._solved(self.supply_V, logic=True) if key in ("crowbar off", "lamps") else self._powered()
        if key == "cold":
            return float(all(self._bar_W(volts, one) < HOT_W for one in self.at) and not self._clamps(volts))
        if key == "crowbar off":
            return float(self._bar_W(volts, rail) < HOT_W and volts.get(f"CROWBAR{n}", 0.0) < LIT_V)
        if key in ("lamp", "lamps"):
            lamps = [self.name("D05", rail)] if key == "lamp" else ["D6", "D7"][self.kind == "breakout" :]
            return float(all(self._is_lit(volts, ref) for ref in lamps))
        at = self.at[self.leads.get(rail, rail)]
        return {
            "gate supply": volts.get("VGATE", 0.0),
            "supply": volts[source],
            "drive": volts.get(f"RAIL{at}_OUT", 0.0),
            "gate": volts.get(f"GATE{n}", 0.0),
            "gate to source": volts.get(f"GATE{n}", 0.0) - volts.get(f"SRC{n}", 0.0),
            "logic supply": volts.get("LOGIC_5V", 0.0),
            "reference": volts.get("OVREF", 0.0),
            "share": volts.get(f"OVSHARE{n}", 0.0),
            "SCOPE": volts.get(self.scope_at[rail], 0.0),
        }[key]

    def _net(self, role: str, pin: str, rail: int) -> str:
        """Of a pin of a rail's part; an open point without it."""
        part = self.parts.get(self.name(role, rail))
        return part.pins.get(pin, "open") if part else "open"

    def _bar_W(self, volts: dict[str, float], rail: int) -> float:
        """In a crowbar's resistor and FET."""
        bar = self.parts.get(self.name("R08", rail))
        if not bar:
            return 0.0
        across = volts.get(bar.pins["1"], 0.0) - volts.get(bar.pins["2"], 0.0)
        return across / ohms(bar.value) * volts.get(bar.pins["1"], 0.0)

    def _clamps(self, volts: dict[str, float]) -> bool:
        """Whether the gate supply's own zener conducts."""
        zener = self.parts.get("D2")
        rated = re.search(r"[BC](\d+)$", zener.value) if zener else None
        return bool(zener and rated and volts.get(zener.pins["1"], 0.0) > 0.96 * float(rated[1]))

    def _is_lit(self, volts: dict[str, float], ref: str) -> bool:
        lamp = self.parts.get(ref)
        return lamp is not None and volts.get(lamp.pins["2"], 0.0) - volts.get(lamp.pins["1"], 0.0) > LAMP_V

    def _kiloohms(self, plus: str, minus: str) -> float:
        """An ohmmeter's display: the range of the highest current that leaves less than DISPLAY_V at the leads."""
        for amps in RANGES_A:
            volts = self._solved({}, meter=(plus, minus, amps))
            across = volts[plus] - volts.get(minus, 0.0)
            if across < DISPLAY_V:
                return across / (amps * (1 - across / METER_V)) / 1000
        return np.inf

    def _diode_V(self, plus: str, minus: str) -> float:
        volts = self._solved({}, meter=(plus, minus, 1e-3))
        return volts[plus] - volts[minus]

    def _powered(self, change: dict[int, float] | None = None) -> dict[str, float]:
        supply_V = self.supply_V | (change or {})
        key = tuple(supply_V.values())
        if key not in self._seen:
            self._seen[key] = self._solved(supply_V)
        return self._seen[key]

    def _held(self) -> dict[str, float]:
        """With PULL_ohm from OVREF to ground."""
        if ("held",) not in self._seen:
            self._seen[("held",)] = self._solved(self.supply_V, ("OVREF", "GND"))
        return self._seen[("held",)]

    def _lock_out_V(self, rail: int) -> float:
        """The supply at which the rail goes off, raised from its nominal voltage; 50 % above it: it never does."""
        of, out = self.nominal_V[rail], f"RAIL{self.at[rail]}_OUT"
        low, high = of, 1.5 * of
        if self._powered({rail: high}).get(out, 0.0) > of / 2:
            return high
        while high - low > 1e-3 * of:
            middle = (low + high) / 2
            low, high = (low, middle) if self._powered({rail: middle}).get(out, 0.0) < of / 2 else (middle, high)
        return high

    # ---- the circuit

    def _solved(
        self,
        supply_V: dict[int, float],
        pulled: tuple[str, str] | None = None,
        meter: tuple[str, str, float] | None = None,
        logic: bool = False,
    ) -> dict[str, float]:
        """Volts of every net. supply_V: of the rails that are on; pulled: nets with PULL_ohm between; meter: its
        leads and the current that it drives; logic: with 3.3 V, the Pico's lines are low."""
        circuit = Circuit(self.bridges)
        for ref, part in self.parts.items():
            self._add(circuit, ref, part)
        for rail, volts in supply_V.items():
            source = f"PSU{self.at[rail]}" if self.kind == "prototyping" else f"RAIL{self.at[rail]}_IN"
            circuit.source(source, "GND", volts, SUPPLY_ohm)
        if supply_V and self.kind != "board":
            circuit.source("SUPPLY_12V" if self.kind == "breakout" else "VGATE", "GND", self.aux_V, 0.5)
        if pulled:
            circuit.resistor(*pulled, PULL_ohm)
        if logic:
            self._add_logic(circuit)
        if meter:
            circuit.source(meter[0], meter[1], METER_V, METER_V / meter[2])
        return self._settled(circuit, bool(supply_V))

    def _add(self, circuit: "Circuit", ref: str, part: Part) -> None:
        value, pins, kind = part.value, part.pins, ref.rstrip("0123456789")
        if len(pins) < 2:
            return
        if kind == "VBUS" or kind == "shunt" or kind == "R":
            part_of = 0.001 if ref[2:] in ("19", "20") and len(ref) == 4 else 0.01
            circuit.resistor(pins["1"], pins["2"], ohms(value) * (1 + part_of * self.part.get(ref, 0.0)))
        elif kind in ("F", "joined", "L"):
            circuit.resistor(pins["1"], pins["2"], 0.28 if value == "0.5 A slow" else 0.008)
        elif kind == "C" and value in ("470u", "turned"):
            circuit.resistor(pins["1"], pins["2"], TURNED_ohm if value == "turned" else LEAK_ohm)
        elif kind == "Q":
            drain, source = (pins.get(pin) for pin in (("2", "3") if part.symbol == "NFET_DPAK" else ("3", "2")))
            if drain and source:
                # a turned one has its pins exchanged: the body's diode follows the pins
                kinds = FET | P_CHANNEL
                name = next(name for name in kinds if value.startswith(name))
                middle_V, off_V, gfs, knee_V = kinds[name]
                other = name in P_CHANNEL
                if gate := pins.get("1"):
                    threshold_V = middle_V + off_V * self.part.get(ref, 0.0) + knee_V
                    circuit.fet(gate, drain, source, threshold_V, gfs, -1 if other else 1)
                circuit.diode(*((drain, source) if other else (source, drain)), DIODE_A)
        elif kind == "D":
            zener = re.search(r"(?:BZ[XT]\d+-?[BC]|SMBJ|P6KE)(\d+)", value)
            volts = float(zener[1]) * (1 + 0.02 * self.part.get(ref, 0.0)) if zener else 0.0
            if part.symbol == "LED":
                circuit.diode(pins["2"], pins["1"], LED_A)
            elif value == "BAT54S":
                return
            elif value == "SMBJ18CA":  # both ways
                middle = f"{ref} middle"
                circuit.diode(middle, pins["1"], DIODE_A, volts * 1.11)
                circuit.diode(middle, pins["2"], DIODE_A, volts * 1.11)
            elif "3" in pins:
                circuit.diode(pins["1"], pins["3"], DIODE_A, volts)
            else:
                saturation_A = SCHOTTKY_A if value.startswith(SCHOTTKY) else DIODE_A
                volts = 22.0 if value == "MBR0520" else volts
                circuit.diode(pins["2"], pins["1"], saturation_A, volts * (1.11 if "SMBJ" in value else 1))
        elif part.symbol in SUPPLY_PINS or part.symbol in chips.CHIPS:
            ground, supply = (pins.get(pin) for pin in SUPPLY_PINS.get(part.symbol, SENSOR_PINS))
            if ground and supply:
                circuit.diode(ground, supply, DIODE_A)  # of the substrate: a chip that is turned conducts
        elif part.symbol == "TL431":  # cathode and REF in one net, anode
            cathode, anode = pins["1"], pins["3"]
            if cathode != anode:
                volts = {"LMV431": 1.24}.get(value, 2.495) * (1 + 0.005 * self.part.get(ref, 0.0))
                circuit.diode(anode, cathode, DIODE_A, volts, REFERENCE_V)

    def _add_logic(self, circuit: "Circuit") -> None:
        """The Schmitt NANDs with all their lines low: the first gate's output is high, the second's low."""
        circuit.source(self.parts["U1"].pins["36"], "GND", LOGIC_3V3, 1.0)
        chips = [
            part.pins
            for part in self.parts.values()
            if part.symbol == "74HC132" and (part.pins.get("7"), part.pins.get("14")) == ("GND", "+3V3")
        ]
        # each pair's second gate inverts what the first makes of the lines; an input that floats is taken for low
        for gates in ((("1", "2", "3"), ("9", "10", "8")), (("4", "5", "6"), ("12", "13", "11"))):
            volts = circuit.solved()
            for pins in chips:
                for one, other, out in gates:
                    if {one, other, out} <= pins.keys():
                        high = min(volts.get(pins[one], 0.0), volts.get(pins[other], 0.0)) > LOGIC_3V3 / 2
                        circuit.source(pins[out], "GND", 0.0 if high else LOGIC_3V3, GATE_ohm)

    def _can_boost(self) -> bool:
        """Whether converter, inductor and diode are where they belong."""
        ends = {"L1": ("LOGIC_5V", "BOOST"), "D1": ("VGATE", "BOOST")}
        if "D2" in self.parts:  # turned it holds FEEDBACK up
            ends["D2"] = ("VGATE", "FEEDBACK")
        right = all(
            ref in self.parts and (self.parts[ref].pins["1"], self.parts[ref].pins["2"]) == nets
            for ref, nets in ends.items()
        )
        return right and "U5" in self.parts

    def _settled(self, circuit: "Circuit", powered: bool) -> dict[str, float]:
        """The solution with what switches by itself: regulator, boost converter, comparators."""
        volts = circuit.solved()
        if not powered:
            return volts
        comparators = {
            ref: part.pins for ref, part in self.parts.items() if part.value == "TL331" and len(part.pins) == 5
        }
        pins_of = {"HT7550": ("2", "3"), "TPS7B84": ("1", "3")}  # input, output
        drop_V = {"HT7550": 0.1, "TPS7B84": 0.03}  # at the board's 20 mA: estimates
        regulators = {
            ref: tuple(part.pins[pin] for pin in pins_of[part.symbol])
            for ref, part in self.parts.items()
            if part.symbol in pins_of
        }
        states: list[tuple] = []
        while True:
            fed_V = {ref: round(volts.get(fed, 0.0), 2) for ref, (fed, _) in regulators.items()}
            at_output = circuit.is_one("VGATE", "FEEDBACK")
            boosts = self._can_boost() and volts.get("LOGIC_5V", 0.0) > 2 and not at_output
            low = tuple(
                ref
                for ref, pins in comparators.items()
                if not states  # their hysteresis keeps those on that were
                or volts.get(pins["5"], 0.0) > 2
                and volts.get(pins["3"], 0.0) < volts.get(pins["1"], 0.0)
            )
            state = (tuple(fed_V.values()), boosts, low)
            if state in states:
                return volts
            states.append(state)
            again = circuit.copy()
            for ref, (_, output) in regulators.items():
                most_V = 3.3 if self.parts[ref].value.startswith(("HT7533", "TPS7B8433")) else LOGIC_V
                again.source(output, "GND", min(most_V, max(0.0, fed_V[ref] - drop_V[self.parts[ref].symbol])), 1.0)
            if boosts:
                upper, lower = (ohms(self.parts[ref].value) if ref in self.parts else 1e9 for ref in ("R13", "R14"))
                again.source("VGATE", "GND", min(28.0, BOOST_FEEDBACK_V * (1 + upper / lower)), 50.0)
            for ref in low:
                again.resistor(comparators[ref]["4"], comparators[ref]["2"], 100.0)
            volts = again.solved(volts)


class Circuit:
    """Resistors, sources, diodes and FETs between nets; its volts by Newton's method.

    bridges: pairs of nets that are one"""

    def __init__(self, bridges: list[tuple[str, str]]):
        self.same: dict[str, str] = {}
        for one, other in bridges:
            self.same[self._root(one)] = self._root(other)
        self.nets: dict[str, int] = {self._root("GND"): 0}
        self.names: dict[str, int] = {}
        self.linear: list[tuple[int, int, float, float]] = []  # plus, minus, siemens, amperes into plus
        self.diodes: list[
            tuple[int, int, float, float, float]
        ] = []  # anode, cathode, saturation A, breakdown and its knee, V
        self.fets: list[tuple[int, int, int, float, float, int]] = []  # gate, drain, source, threshold V, gfs S, sign

    def _root(self, net: str) -> str:
        while net in self.same:
            net = self.same[net]
        return net

    def is_one(self, net: str, other: str) -> bool:
        """Whether a bridge makes them one net."""
        return self._root(net) == self._root(other)

    def _at(self, net: str) -> int:
        self.names[net] = self.nets.setdefault(self._root(net), len(self.nets))
        return self.names[net]

    def copy(self) -> "Circuit":
        out = Circuit([])
        out.same, out.nets, out.names = dict(self.same), dict(self.nets), dict(self.names)
        out.linear, out.diodes, out.fets = list(self.linear), list(self.diodes), list(self.fets)
        return out

    def resistor(self, one: str, other: str, ohm: float) -> None:
        self.linear.append((self._at(one), self._at(other), 1 / ohm, 0.0))

    def source(self, plus: str, minus: str, volts: float, ohm: float) -> None:
        self.linear.append((self._at(plus), self._at(minus), 1 / ohm, volts / ohm))

    def diode(
        self, anode: str, cathode: str, saturation_A: float, breakdown_V: float = 0.0, sharp_V: float = THERMAL_V
    ) -> None:
        """breakdown_V: at 1 mA; 0: none. sharp_V: of the breakdown, in place of THERMAL_V"""
        knee_V = breakdown_V - sharp_V * np.log(1e-3 / saturation_A) if breakdown_V else 0.0
        self.diodes.append((self._at(anode), self._at(cathode), saturation_A, knee_V, sharp_V))

    def fet(self, gate: str, drain: str, source: str, threshold_V: float, gfs_S: float, sign: int = 1) -> None:
        """sign: -1 of a P-channel, whose gate is to be below its source"""
        self.fets.append((self._at(gate), self._at(drain), self._at(source), threshold_V, gfs_S, sign))

    def solved(self, start: dict[str, float] | None = None) -> dict[str, float]:
        """Volts of each net against ground. Raises ArithmeticError if they do not settle. start: a guess"""
        try:
            return self._newton(start, LEAK_S)
        except ArithmeticError:
            for leak_S in (1e-3, 1e-5, 1e-7):
                with contextlib.suppress(ArithmeticError):
                    start = self._newton(start, leak_S)
            # each net is held where it was, ever less: it drifts to where it settles
            for hold_S in (10 ** (-k / 2) for k in range(2, 20)):
                start = self._newton(start, LEAK_S, hold_S)
            return self._newton(start, LEAK_S)

    def _newton(self, start: dict[str, float] | None, leak_S: float, hold_S: float = 0.0) -> dict[str, float]:
        count = len(self.nets)
        fixed, driven = np.zeros((count, count)), np.zeros(count)
        fixed[np.diag_indices(count)] = leak_S

        def stamp(into: np.ndarray, plus: int, minus: int, siemens: float) -> None:
            into[plus, plus] += siemens
            into[minus, minus] += siemens
            into[plus, minus] -= siemens
            into[minus, plus] -= siemens

        for plus, minus, siemens, into_A in self.linear:
            stamp(fixed, plus, minus, siemens)
            driven[plus] += into_A
            driven[minus] -= into_A
        volts = np.zeros(count)
        if start:
            for name, at in self.names.items():
                volts[at] = start.get(name, 0.0)
        fixed[np.diag_indices(count)] += hold_S
        driven += hold_S * volts
        for iteration in range(1000):
            conductance, amperes = fixed.copy(), driven.copy()
            for anode, cathode, of_A, knee_V, sharp_V in self.diodes:
                across = volts[anode] - volts[cathode]
                flow, slope = _exponential(across, of_A)
                if knee_V:
                    back, steep = _exponential(-across - knee_V, of_A, sharp_V)
                    flow, slope = flow - back, slope + steep
                stamp(conductance, anode, cathode, slope)
                amperes[anode] += slope * across - flow
                amperes[cathode] -= slope * across - flow
            for gate, drain, source, threshold_V, gfs, sign in self.fets:
                # the square law, rounded at the threshold, alike in both directions
                of_source, by_source = _square(sign * (volts[gate] - volts[source]) - threshold_V)
                of_drain, by_drain = _square(sign * (volts[gate] - volts[drain]) - threshold_V)
                flow = sign * gfs * (of_source - of_drain)
                by_gate, by_d, by_s = gfs * (by_source - by_drain), gfs * by_drain, -gfs * by_source
                rest = flow - by_gate * volts[gate] - by_d * volts[drain] - by_s * volts[source]
                for net, sign in ((drain, 1), (source, -1)):
                    for at, slope in ((gate, by_gate), (drain, by_d), (source, by_s)):
                        conductance[net, at] += sign * slope
                    amperes[net] -= sign * rest
            new = np.zeros(count)
            new[1:] = np.linalg.solve(conductance[1:, 1:], amperes[1:])
            change = new - volts
            largest = float(np.abs(change).max())
            most = STEP_V / 3 ** (iteration // 200 % 5)  # smaller where it goes to and fro
            volts += np.clip(change, -most, most)
            if largest < 1e-6:
                return {name: float(volts[at]) for name, at in self.names.items()}
        raise ArithmeticError("the circuit's voltages do not settle")


LEAK_S = 1e-10  # of each net to ground: a floating one has a voltage
STEP_V = 0.5  # at most, of one iteration


def _exponential(volts: float, saturation_A: float, knee_V: float = THERMAL_V) -> tuple[float, float]:
    """A diode's current and its slope; a straight line from 1 A on."""
    at = min(volts, knee_V * np.log(1 / saturation_A))
    flow = saturation_A * np.exp(at / knee_V)
    slope = flow / knee_V
    return float(flow - saturation_A + slope * (volts - at)), float(slope + 1e-12)


def _square(volts: float) -> tuple[float, float]:
    """Half the square of what a gate is above its threshold, and its slope."""
    soft = FET_KNEE_V * np.logaddexp(0.0, volts / FET_KNEE_V)
    return float(soft**2 / 2), float(soft / (1 + np.exp(-np.clip(volts / FET_KNEE_V, -50, 50))))
