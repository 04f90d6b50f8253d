"""Faults of assembly drawn by a seed: over every part of a board's netlist and every kind of fault. The
rule was fixed before it was known which of them a first power-up finds. The meter's part runs on SIMULATED rigs
(assembled.py), the self-test's by a list of what each of its checks needs."""

import re
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import NamedTuple

from selfcheck.assembled import Fault, Part, Parts, Rig, ohms
from ssdrig.meter import chips

NOT_SOLDERED = ("J", "T", "H")  # connectors and test points
PICO = "U1"
RIGHT = {5: (1, 2, 3), 3: (1, 2)}  # pins along one side of a package, by its number of pins
OTHER_SIDE = {5: (4, 5), 3: ()}
# the order code next to it on the reel: what is ordered by mistake
WRONG_SUFFIX = {
    **{"TL431": "TL432", "BZX84-B10": "BZX84-B5V1", "BZX79-C27": "BZX79-C12", "BZT52-B27": "BZT52-B12"},
    **{"SMBJ18A": "SMBJ18CA", "SS34": "SS14", "MBR0540": "MBR0520", "HT7550-1": "HT7533-1", "TPS7B8450": "TPS7B8433"},
    **{"SN74HC132": "SN74HC00", "SN74CBTLV3125": "SN74CBTLV3126"},
    **{"AO3400A": "AO3401A", "BSS138": "BSS84", "IRLR8743": "IRFR9024", "TPS61040": "TPS61041"},
    **{"NTR4003NT1G": "NTR4101P", "TN0106N3-G": "TP0606N3-G"},
    **{name: next(other for other in chips.CHIPS if other[:5] == name[:5] and other != name) for name in chips.CHIPS},
    **{"0.5 A slow": "5 A slow", "0287010.PXCN": "0287015.PXCN", "028707.5PXCN": "0287003.PXCN", "470u": "47u"},
}
KINDS = ("missing", "ten times", "a tenth", "turned", "bridged", "open", "exchanged", "wrong suffix")


class Drawn(NamedTuple):
    """A fault: of which kind, of what, and what it changes in the rig."""

    kind: str
    of: str
    fault: Fault


def _soldered(parts: Parts) -> list[str]:
    """References of the parts that are put on the board, without its Pico."""
    wires = ("shunt", "VBUS", "joined")
    return [ref for ref in parts if ref[0] not in NOT_SOLDERED and ref != PICO and not ref.startswith(wires)]


def _sides(ref: str, part: Part) -> list[list[str]]:
    """The pins of each side of a package, in order."""
    pins = sorted((pin for pin in part.pins if pin.isdigit()), key=int)
    count = max(map(int, pins), default=0)
    if count <= 2:
        return [pins]
    if ref[0] == "Q" and part.value.startswith("IRL"):
        return [["1", "3"]]
    if count in RIGHT:
        return [[str(pin) for pin in side] for side in (RIGHT[count], OTHER_SIDE[count])]
    if part.symbol.startswith(("Header", "Terminal", "Peripheral")):
        return [pins]
    if part.symbol == "Selector":
        return [pins[k : k + 3] for k in range(0, count, 3)]
    return [[pin for pin in pins if (int(pin) <= count / 2) is first] for first in (True, False)]


def _bridges(parts: Parts) -> Iterator[Drawn]:
    for ref, part in parts.items():
        if ref[0] in "TH" or ref.startswith(("VBUS", "joined", "shunt")):
            continue
        for side in _sides(ref, part):
            for one, other in zip(side, side[1:], strict=False):
                nets = part.pins.get(one, ""), part.pins.get(other, "")
                if "" in nets or nets[0] == nets[1] or any(net.startswith("unconnected") for net in nets):
                    continue
                yield Drawn("bridged", f"{ref} {one}-{other}", partial(_bridge, nets))


def _bridge(nets: tuple[str, str], rig: Rig) -> None:
    rig.bridges.append(nets)


def _scaled(ref: str, factor: float, rig: Rig) -> None:
    part = rig.parts[ref]
    if ref[0] == "R":
        whole, _, rest = f"{ohms(part.value) * factor:.6f}".partition(".")
        rig.fit(ref, f"{whole}R{rest}")
    else:
        rig.fit(ref, f"{part.value} x {factor:g}")


def _exchange(one: str, other: str, rig: Rig) -> None:
    a, b = rig.parts[one], rig.parts[other]
    rig.parts[one], rig.parts[other] = a._replace(value=b.value), b._replace(value=a.value)


def _open(ref: str, pin: str, rig: Rig) -> None:
    rig.wire(ref, pin, f"open {ref} {pin}")


def _turn(ref: str, rig: Rig) -> None:
    part = rig.parts[ref]
    count = max(map(int, part.pins))
    if ref[0] == "U" and count > 5:  # a dual row, half a turn
        turned = {str((int(pin) - 1 + count // 2) % count + 1): net for pin, net in part.pins.items()}
        rig.parts[ref] = part._replace(pins=turned)
    else:
        rig.turn(ref)


def population(parts: Parts) -> dict[str, list[Drawn]]:
    """Every fault of each kind that these parts can have, in the netlist's order."""
    refs = _soldered(parts)
    out: dict[str, list[Drawn]] = {kind: [] for kind in KINDS}
    for ref in refs:
        part = parts[ref]
        out["missing"].append(Drawn("missing", ref, partial(_take_off, ref)))
        for kind, factor in (("ten times", 10.0), ("a tenth", 0.1)):
            if ref[0] in "RC":
                out[kind].append(Drawn(kind, ref, partial(_scaled, ref, factor)))
        if ref[0] in "DQ" or part.value == "470u" or ref[0] == "U" and len(part.pins) > 5:
            out["turned"].append(Drawn("turned", ref, partial(_turn, ref)))
        if suffix := WRONG_SUFFIX.get(part.value):
            out["wrong suffix"].append(Drawn("wrong suffix", f"{ref} {suffix}", partial(_fit, ref, suffix)))
    for ref in [*refs, PICO]:
        pins = [pin for pin, net in parts[ref].pins.items() if not net.startswith("unconnected")]
        if len(pins) > 2:
            out["open"] += [Drawn("open", f"{ref} {pin}", partial(_open, ref, pin)) for pin in pins]
    out["bridged"] += _bridges(parts)
    for k, one in enumerate(refs):
        for other in refs[k + 1 :]:
            a, b = parts[one], parts[other]
            if one[0] == other[0] and a.symbol == b.symbol and a.value != b.value and len(a.pins) == len(b.pins):
                out["exchanged"].append(Drawn("exchanged", f"{one} {other}", partial(_exchange, one, other)))
    return out


def _take_off(ref: str, rig: Rig) -> None:
    rig.take_off(ref)


def _fit(ref: str, value: str, rig: Rig) -> None:
    rig.fit(ref, value)


def draw(seed: int, parts: Parts, count: int) -> list[Drawn]:
    """Faults in turn of each kind, any of that kind's equally likely, none twice."""
    dice, faults = Random(seed), population(parts)
    out: list[Drawn] = []
    while len(out) < count:
        for kind in KINDS:
            drawn = dice.choice(faults[kind])
            if drawn not in out and len(out) < count:
                out.append(drawn)
    return out


# ---- what no step sees: fixed before the seed of the bench was drawn

# a part, or one of its pins; x: the number of any rail. Why its fault harms nothing
HARMLESS = {
    r"C[123459]|Cx04|C6|C7": "one of several capacitors of its supply",
    r"Cx07|Rx1[678]": "0.1 % of the current or voltage, which a calibration takes out",
    r"C8|Cx08|Cx05|Cx06|Cx03": "a microsecond of the lock-out's comparator, of the scope or of the interlock",
    r"Rx22|Rx23|R23|R24": "how bright a lamp is",
    r"R27|R29|Rx05|Rx04": "still within what its line bears",
    r"R[3456]": "the Pico has a pull-up of its own",
    r"Cx01": "a larger one takes longer to charge",
    r"U[78] TL432": "its reference pin and its cathode are one net",
    r"U1 (3|8|13|18|23|28|33|38)": "one of eight grounds",
}
# lines that the rig's own work does not need: they are tried when they are used
UNTRIED = {
    r"R7|R19|R2[012]|U1 [45]": "SPI, for an INA229",
    r"R8|R11|R1[678]|D[45]|U1 2[679]": "TRIGGER, ACTIVITY and SYNC",
    r"R12|U4|J[5678]|U1 25": "CLKREQ#, PEWAKE#, SMBus and PWDIS",
}
PERST = {r"R9|R15|Q1|U1 24": "PERST#, which this build does not hold"}
FAST = {r"R30|C10": "the fast channel, which is on an adapter of its own"}  # of the breakout's board


def is_none(drawn: Drawn, parts: Parts) -> bool:
    """Whether a fault changes nothing: a bridge of nets that are joined, or an exchange of parts side by side."""
    ref, _, rest = drawn.of.partition(" ")
    if drawn.kind == "bridged":
        bridged = {parts[ref].pins[pin] for pin in rest.split("-")}
        return any(bridged == {*part.pins.values()} for name, part in parts.items() if name.startswith("joined"))
    return drawn.kind == "exchanged" and sorted(parts[ref].pins.values()) == sorted(parts[rest].pins.values())


def untold(drawn: Drawn, build: dict, parts: Parts) -> tuple[str, str] | None:
    """("harmless" or "untried", why) of a fault that no step finds; None: a gap. Of an exchange both parts count.

    parts: of the sound board"""
    if is_none(drawn, parts):
        return "harmless", "it changes nothing"
    untried = UNTRIED | (PERST if build["sideband"] is None else {}) | (FAST if "R30" in parts else {})
    names = drawn.of.split() if drawn.kind == "exchanged" else [drawn.of]
    names = [re.sub(r"^([A-Z])[1-4](\d\d)\b", r"\1x\2", name) for name in names]
    for word, known in (("harmless", HARMLESS), ("untried", untried)):
        of = [[why for pattern, why in known.items() if _is_of(name, pattern)] for name in names]
        if word == "harmless" and drawn.kind == "bridged" and drawn.of.startswith("C"):
            continue  # a short of what it is across
        if all(of):
            return word, of[0][0]
    return None


def _is_of(name: str, pattern: str) -> bool:
    return bool(re.fullmatch(pattern, name) or re.fullmatch(pattern, name.split()[0]))


# ---- what the rig finds of itself


class Nets:
    """Which pins are one net, with bridges, wires and strips of copper."""

    def __init__(self, rig: Rig):
        self.rig = rig
        self.same: dict[str, str] = {}
        wires = [part for ref, part in rig.parts.items() if ref.startswith("joined") or part.value == "wire"]
        for one, other in [*rig.bridges, *((part.pins["1"], part.pins["2"]) for part in wires)]:
            if self.root(one) != self.root(other):
                self.same[self.root(one)] = self.root(other)

    def root(self, net: str) -> str:
        while net in self.same:
            net = self.same[net]
        return net

    def at(self, ref: str, pin: str) -> str | None:
        """The net of a pin; None without it."""
        part = self.rig.parts.get(ref)
        return self.root(part.pins[pin]) if part and pin in part.pins else None


class Need(NamedTuple):
    """What a check of the self-test needs: pins in their nets, which are one with no other net, and values.

    ohm: limits of a resistor; value: how that of another part begins; unlike: what is not in it"""

    ref: str
    pins: tuple[str, ...] = ()
    ohm: tuple[float, float] | None = None
    value: str = ""
    unlike: str = ""

    def is_met(self, nets: Nets, sound: Nets) -> bool:
        if self.ref not in sound.rig.parts:
            return True
        part = nets.rig.parts.get(self.ref)
        if part is None or self.unlike and self.unlike in part.value or not part.value.startswith(self.value):
            return False
        if self.ohm and not self.ohm[0] <= ohms(part.value) <= self.ohm[1]:
            return False
        return all(self._is_right(pin, nets, sound) for pin in self.pins or sound.rig.parts[self.ref].pins)

    def _is_right(self, pin: str, nets: Nets, sound: Nets) -> bool:
        wanted = sound.rig.parts[self.ref].pins.get(pin)
        if wanted is None or wanted in ("GND", "+3V3"):
            return wanted is None or nets.at(self.ref, pin) == nets.root(wanted)
        every = {net for part in sound.rig.parts.values() for net in part.pins.values()}
        alien = any(nets.root(net) == nets.root(wanted) and sound.root(net) != sound.root(wanted) for net in every)
        return nets.at(self.ref, pin) == nets.root(wanted) and not alien


def seen_by_the_rig(rig: Rig, sound: Rig) -> tuple[int, str] | None:
    """The step, and the name in doctor.FAULTS of what a fault amounts to for the rig's self-test; None: it finds
    nothing."""
    nets, plain = Nets(rig), Nets(sound)
    for n in rig.nominal_V:
        for step, name, needs in _checks(sound, n):
            if not all(need.is_met(nets, plain) for need in needs):
                return step, name
    return None


def _checks(rig: Rig, n: int) -> list[tuple[int, str, list[Need]]]:
    """(step, name in doctor.FAULTS, what the check that finds it needs), of a rail."""
    of = lambda role: f"{role[0]}{n + 1}{role[1:]}"
    pins = {net: pin for pin, net in rig.parts[PICO].pins.items()}
    line = lambda *nets: Need(PICO, tuple(pins[net] for net in nets if net in pins))
    on_board = rig.kind == "board"
    nand = ("1", "2", "3", "4", "5", "6") if n % 2 == 0 else ("8", "9", "10", "11", "12", "13")
    test = [Need("Q3", value="BSS138"), line("SPI_MISO", "SPI_CS")] if on_board else [line("LOCKOUT_PIN")]
    chip = rig.parts[of("U01")].value if on_board else ""
    sensor = Need(of("U01"), ("1", "2", "4", "5", "6", "7"), value=chip)
    supply = line("+3V3")
    # 15 kOhm are too slow for 400 kHz, 150 Ohm more than a chip pulls low
    return [
        (
            7,
            "sensor absent",
            [supply, line("SDA", "SCL"), *(Need(ref, ohm=(700, 5000)) for ref in ("R1", "R2")), sensor],
        ),
        (7, "scope's divider open above", [line(f"SCOPE{n}")]),
        (7, "ALERT open", [line(f"ALERT{n}"), Need(of("U01"), ("3",))]),
        (7, "VBUS open", [Need(of("U01"), ("8",)), Need(of("R18"))]),
        (8, "shunt open", [Need(of("U01"), ("9", "10")), Need(of("R16")), Need(of("R17"))]),
        (8, "shunt 80 instead of 8 mOhm", [Need(of("R07"), ohm=(0.007, 0.009))]),
        (
            *(9, "5 V: line to the gate open"),
            [line(f"OFF{n}"), Need(of("R05")), Need(of("R04"), ohm=(0, 2500)), Need(of("Q03"), value="AO3400A")],
        ),
        (
            *(9, "5 V: crowbar's switch open, or its resistor or fuse"),
            [
                *(line(f"DISCHARGE{n}"), Need("U2" if n < 2 else "U3", (*nand, "7", "14"))),
                # 0.2 ms of waiting where C03 has ten times its value
                *(Need(of("R09"), ohm=(0, 15_000)), Need(of("Q04"), value="AO3400A"), Need(of("C03"), unlike=" x 10")),
            ],
        ),
        (9, "5 V: gate capacitor missing, no soft start", [Need(of("C02"), value="100n", unlike=" x ")]),
        (9, "red lamp", [Need(of("D06")), Need(of("R23"), ohm=(0, 5000))]),  # a question after the cuts
        (
            9,
            "nothing trips the lock-outs",
            [Need("R27", ohm=(0, 1000)), Need("R29"), Need("Q2", value="BSS138"), *test],
        ),
    ]
