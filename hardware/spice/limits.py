"""Limits of the rig, the drive, the host, contacts and wires (../limits.csv), looked at in every study.

    python hardware/spice/limits.py            each study, rail and corner of the tolerances: what is beyond its limit

A row of limits.csv has either an expression over the nodes of a study (`seen`) or, of what no study has, the range that
it can have (`at_rest_low`, `at_rest_high`), with the reason in `source`. `shared:` is the study of the supplies that
the rails share, sound and with R13 open, which is what its clamp is for. Before an expression: a rail or a study and a
colon, for those only (! before it: for all others); `avg:`, `integ:`, `max:` its mean, integral or largest value over
the study; power(xq.Rgate) is the heat of that resistor. A pin of the sensor may leave its voltage while its current
stays within its limit, as its data sheet allows.
"""

import csv
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import simulate

HERE = Path(__file__).resolve().parent
# changes of each study; load: power of the drive as a part of the rail's own peak (peak_current x voltage)
LOCK_MOST_V = 4.86  # of LOCK_5V: LOGIC_5V of 5.04 V, less what D3 drops at 8 mA when it is warm
STUDIES: dict[str, list[dict]] = {
    "softstart": [{}],
    "drop": [{}],
    "failsafe": [{}],
    "interlock": [{}],
    "backfeed": [{}, {"discharge": 0}],
    "perst": [
        {"rail_33": r, "held": h, "discharge": d} for r, h, d in ((1, 1, 1), (1, 0, 1), (1, 0, 0), (0, 1, 1), (0, 0, 1))
    ],
    "fall": [{"load": 1}, {"load": 1, "discharge": 0}, {"c_load": 1e-5}],
    "dip": [{"load": 0.6}],
    "ramp": [{}],
    "short": [{}, {"t_short": 1e-3, "t_on": 7e-3}],
    # a comparator that needs no overdrive trips at the peak of that current, which is worse than one that comes late
    "hotplug": [{"live": 1}, {"live": 1, "lockout_supply": LOCK_MOST_V, "ovp_overdrive": 2e-3}, {"live": 0}],
    "no3v3": [{}],
    "overvoltage": [{"final": final, "rise": rise} for final in (5, 12, 18, 24) for rise in (1e-6, 1e-5, 5e-3)],
}
RAILS = ("m2_3v3", "sata_5v", "sata_12v", "u2_12v", "u2_3v3aux")
# The ends of what parts and supplies may have, all to one side: supply, gate supply, thresholds, resistance of the FETs
CORNERS: dict[str, dict[str, float]] = {
    "middle": {},
    "low": {
        "voltage": 0.95,
        "gate_supply": 0.97,
        "gate_capacitor": 0.95,
        "gate_clamp": 0.98,
        "fet_vth": 1.35 / 1.9,
        "small_fet_vth": 0.65 / 1.05,
        "lockout_fet_vth": 0.7 / 1.1,
        # TL431B from 0 to 50 C, and the comparator's offset of at most 9 mV (ST LM393, Doc ID 2164, table 3)
        "ovp_reference": 1 - 0.0085 - 0.009 / 2.495,
        # 0.1 %, and 25 ppm/K over 25 K
        "ovp_upper": 1 - 0.0016,
        "ovp_lower": 1 + 0.0016,
    },
    "high": {
        "voltage": 1.05,
        "gate_supply": 1.03,
        "gate_capacitor": 1.05,
        "gate_clamp": 1.02,
        "fet_vth": 2.35 / 1.9,
        "small_fet_vth": 1.45 / 1.05,
        "lockout_fet_vth": 1.5 / 1.1,
        "fet_rds_on_max": 1.3,
        "ovp_reference": 1 + 0.0085 + 0.009 / 2.495,
        "ovp_upper": 1 + 0.0016,
        "ovp_lower": 1 - 0.0016,
        "ovp_response": 5 / 3,
    },
}
# A corner has all transistors at one end. A wrong supply is worst where Q1 and Q2 close early and Q5 opens late.
# A drive put onto a live rail makes SW ring most where Q5 is fast: at the least threshold, and with the 1 S that it has
# at 0.2 A by the slope of its transfer curves (lockout_fet_gfs is of 10 mA)
FAST_Q5 = {"lockout_fet_vth": 0.7 / 1.1, "lockout_fet_gfs": 1 / 0.33, "lockout_fet_rds_on": 0.9 / 1.5}
FAST_Q5 |= {"lockout_fet_ciss": 0.5, "lockout_fet_crss": 0.5}
OPPOSITE = {("overvoltage", "high"): {"fet_vth": CORNERS["low"]["fet_vth"]}, ("hotplug", "high"): FAST_Q5}
SHARED, PLUG_IN = "shared", "plug_in"
# supply of the 5 V rail, USB: fed by both, by the rail alone at the ends of its range, and by 12 and 24 V for ever
SHARED_CASES = ({}, *({"usb": 0, "rail1": supply_V} for supply_V in (4.75, 5.25, 12, 24)))
# by name, what they do to shared_board.lib: faults that a part is there to bear
SHARED_FAULTS = {
    "": str,
    "R13 open": lambda text: text.replace("RR13 vgate fb 2.2meg\n", ""),
    "U6 short": lambda text: text + "Rfault lin l6 1m\n",
}
DIVIDERS = dict.fromkeys(("sata_12v", "u2_12v"), (15e3, 3.3e3, 22e-12, 470e-12))  # circuit.RAILS; of the others:
DIVIDER = (10e3, 10e3, 10e-12, 330e-12)
SINCE_s = 200e-6  # initial conditions settle, and the cable's ringing with them
PORTS = {
    "xq": ("in", "sw", "off", "gate", "src", "tj"),
    "xc": ("sw", "off", "dis", "q4gate"),
    "xl": ("sw", "drive"),
}  # of rig.lib's subcircuits


def corner_changes(study: str, corner: str, values: dict[str, float], board: bool = True) -> dict[str, float]:
    """Values at a corner of the tolerances: what of them is another than in the middle. board: has the board's Q5."""
    opposite = OPPOSITE.get((study, corner), {}) if board or study != "hotplug" else {}
    return {name: values[name] * factor for name, factor in (CORNERS[corner] | opposite).items()}


class Limit(NamedTuple):
    part: str
    pins: str
    what: str
    low: float
    high: float
    unit: str
    seen: str
    at_rest: tuple[float, float] | None
    source: str


class Beyond(NamedTuple):
    """A limit that is passed: in which study ("" of one at rest)."""

    limit: Limit
    study: str
    rail: str
    corner: str
    value: float
    final_V: float = 0.0  # of the wrong supply

    def __str__(self) -> str:
        place = f"{self.study} {self.rail} {self.corner}".strip() or "at rest"
        of = self.limit
        return f"{place}: {of.part} {of.what} {self.value:.4g} {of.unit}, limit {of.low:g} to {of.high:g}"


def limits() -> list[Limit]:
    with open(HERE.parent / "limits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Limit(
            *(row[name] for name in ("part", "pins", "what")),
            *(float(row[name]) for name in ("low", "high")),
            *(row[name] for name in ("unit", "seen")),
            None if row["seen"] else (float(row["at_rest_low"]), float(row["at_rest_high"])),
            row["source"],
        )
        for row in rows
    ]


SHORTED = "I2t of a contact, short after the fuse of 10 A"
LOGIC_MOST_V = 3.3 * 1.03  # of the Pico's own 3.3 V: 2 % of its converter, 1 % of its divider
# What makes the ends of a row at rest, by its part and what it is of; all others are on the Pico's 3.3 V
AT_REST = {
    ("L L1", "current"): 0.45,  # SLVS413K: most of the limit at which its switch opens
    ("HT7550 U6", "VIN, breakout's board"): 24,  # the highest of the wrong supplies
    ("HT7550 U6", "power, breakout's board"): (24 - 5) * 3e-3,
    ("LED D7", "current"): (LOGIC_MOST_V - 2.0) / 1e3,
    ("BAT54S D4 D5", "current"): (1.05 * 5 - 0.3) / 1e3,
    ("host CLKREQ# WAKE# SMBus", "current into an open drain of the host"): LOGIC_MOST_V / 1.4e3,
    ("Fuse F1", "voltage"): 1.05 * 12,  # 12 V on J1's 5 V
    ("Pico U1", "ground"): 0.05,  # 5 A through a plane of 10 mOhm
    ("TL431 U7 U8", "load capacitance"): 1.05 * 330e-12 + 80e-12,
    ("contact J1", SHORTED): 115 / 9,
    ("INA240 other", "ground, REF1, REF2, no connection"): 0.05,
}


def at_rest() -> list[Beyond]:
    """Of what no study has: a range that is beyond its limit, or that is less than what makes it."""
    out = []
    for limit in limits():
        if limit.at_rest:
            low, high = limit.at_rest
            made = AT_REST.get((limit.part, limit.what), LOGIC_MOST_V)
            out += [Beyond(limit, "", "", "", made)] if made > high * 1.02 else []
            out += [Beyond(limit, "", "", "", low)] if low < limit.low else []
            out += [Beyond(limit, "", "", "", high)] if high > limit.high else []
    return out


def heat(name: str) -> str:
    """The power of a resistor of rig.lib (xq.Rgate, xc.Rhold) or of protection.lib, as an expression."""
    inside, _, part = name.rpartition(".")
    text = (HERE / ("rig.lib" if inside else "protection.lib")).read_text()
    (line,) = re.findall(rf"^{part} (\S+) (\S+) (\S+)", text, re.M)
    # the line of the drive hangs on the other end of Vi
    ports = {"sw": "sw2"} if inside == "xl" else {}
    one, two = (
        ports.get(node, node) if node == "0" or not inside or node in PORTS[inside] else f"{inside}.{node}"
        for node in line[:2]
    )
    across = f"v({one})" if two == "0" else f"v({two})" if one == "0" else f"(v({one})-v({two}))"
    return f"{across}*{across}/{line[2].strip('{}')}"


def applies(seen: str, study: str, rail: str) -> str | None:
    """The expression of a row in this study of this rail; None where it is not for it."""
    match = re.fullmatch(r"(!?)(\w+):(.*)", seen)
    if match and match[2] in {*RAILS, *STUDIES, SHARED, PLUG_IN}:
        return match[3] if (match[2] in (study, rail)) != bool(match[1]) else None
    return seen


def observed(study: str, rail: str, symbols: tuple[str, ...] = ()) -> tuple[str, list[tuple[Limit, str]]]:
    """(lines for a study, (limit, name of the measure) of each). symbols: of the parts whose limits these are; of all
    without one."""
    upper, lower, c_upper, c_lower = DIVIDERS.get(rail, DIVIDER)
    lines = [f".param scope_upper={upper} scope_lower={lower} scope_c_upper={c_upper} scope_c_lower={c_lower}"]
    lines += [(HERE / name).read_text() for name in ("protection.lib", "observers.lib")]
    named = []
    for k, limit in enumerate(limits()):
        expression = applies(limit.seen, study, rail) if limit.seen else None
        if expression is None or (symbols and limit.part.split()[0] not in symbols):
            continue
        how, _, inside = expression.partition(":")
        kinds = (how,) if inside else ("min", "max")
        expression = re.sub(r"power\(([\w.]+)\)", lambda m: heat(m[1]), inside or expression)
        # a measure of an expression wants a node: ngspice's own par() cannot integrate
        lines.append(f"Blim{k} lim{k} 0 v={expression}")
        for kind in kinds:
            named.append((limit, f"lim{k}_{kind}"))
            lines.append(f".meas tran lim{k}_{kind} {kind} v(lim{k}) from={SINCE_s}")
    return "\n".join(lines) + "\n", named


# the breakout's board, which has the parts of one rail with values of its own, in its two builds
BREAKOUTS = {"breakout": "sata_5v", "breakout_m2": "m2_3v3"}


def own(rail: str) -> tuple[str, dict[str, float]]:
    """(rail of values.csv, values that differ from it) of a rail or of a build of the breakout's board."""
    return (BREAKOUTS[rail], simulate.breakout()) if rail in BREAKOUTS else (rail, {})


def changed(changes: dict[str, float], values: dict[str, float]) -> dict[str, float]:
    """Changes of STUDIES as changes of a netlist: load becomes p_load, W."""
    rest = {name: value for name, value in changes.items() if name != "load"}
    return rest if rest == changes else rest | {"p_load": changes["load"] * values["peak_current"] * values["voltage"]}


def beyond(study: str, rail: str, corner: str = "middle", **changes: float) -> list[Beyond]:
    """What of a study is beyond a limit; changes: as in STUDIES."""
    named, (rail, differs) = rail, own(rail)
    values = simulate.values(rail) | differs
    changes = changed(changes, values)
    changes = differs | corner_changes(study, corner, values, named not in BREAKOUTS) | changes
    if study == "overvoltage" and changes["final"] < changes.get("voltage", values["voltage"]):
        return []  # less than the rail has
    lines, limited = observed(study, rail)
    measures = simulate.measured(study, rail, more=lines, **changes)
    missing = [name for _, name in limited if name not in measures]
    if missing:
        raise RuntimeError(f"ngspice measured no {', '.join(missing)} in {study} for {rail}")
    # the supply's own 5 % is none of the rig's doing
    nominal = values["voltage"] / changes.get("voltage", values["voltage"])
    seen = [(limit, measures[name] / (nominal if "over nominal" in limit.what else 1)) for limit, name in limited]
    excesses = [(limit, value) for limit, value in seen if not limit.low <= value <= limit.high]
    passed = {limit.what for limit, _ in excesses}
    return [
        Beyond(limit, study, named, corner, value, changes.get("final", 0.0))
        for limit, value in excesses
        if not (limit.what in ("IN+", "IN-", "VBUS") and f"{limit.what} current" not in passed)
        and not (
            limit.what == "voltage at a pad, above its supply"
            and "current into a pad of a drive without supply" not in passed
        )
    ]


def shared_beyond() -> list[Beyond]:
    """What of the board's shared supplies is beyond a limit, once they are still."""
    rows = [(k, limit) for k, limit in enumerate(limits()) if limit.seen.startswith(f"{SHARED}:")]
    text = (HERE / "shared_board.lib").read_text()
    for k, limit in rows:
        text += f"Blim{k} lim{k} 0 v={limit.seen.removeprefix(f'{SHARED}:')}\n"
        text += "".join(f".meas tran lim{k}_{kind} {kind} v(lim{k}) from=50m\n" for kind in ("min", "max"))
    out = []
    for corner in CORNERS:
        values = simulate.values("sata_5v")
        for fault, edit in SHARED_FAULTS.items():
            for changes in SHARED_CASES:
                of = {"ovp_reference": values["ovp_reference"] * CORNERS[corner].get("ovp_reference", 1)} | changes
                m = simulate.measured(SHARED, "sata_5v", more=edit(text), **of)
                out += [
                    Beyond(limit, SHARED, fault, corner, m[f"lim{k}_{kind}"])
                    for k, limit in rows
                    for kind in ("min", "max")
                    if not limit.low <= m[f"lim{k}_{kind}"] <= limit.high
                ]
    return out


def plug_in_beyond() -> list[Beyond]:
    """What of the breakout's board is beyond a limit while its 12 V lead is plugged in."""
    rows = [(k, limit) for k, limit in enumerate(limits()) if limit.seen.startswith(f"{PLUG_IN}:")]
    text = "".join(
        f"Blim{k} lim{k} 0 v={limit.seen.removeprefix(f'{PLUG_IN}:')}\n"
        + "".join(f".meas tran lim{k}_{kind} {kind} v(lim{k})\n" for kind in ("min", "max"))
        for k, limit in rows
    )
    m = simulate.plugged_in(text)
    return [
        Beyond(limit, PLUG_IN, "breakout", "high", m[f"lim{k}_{kind}"])
        for k, limit in rows
        for kind in ("min", "max")
        if not limit.low <= m[f"lim{k}_{kind}"] <= limit.high
    ]


# What is beyond a limit, and why that stays.
EXPLAINED: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        (
            ("overvoltage", "power, wrong supply"),
            ("overvoltage", "mean current"),
            ("overvoltage", "mean current of a terminal"),
        ),
        "24 V on a rail: the TVS takes 10 to 15 A until the fuse opens (of 10 and 7.5 A; of 3 A in the lead of M.2) or"
        " it fails, open or short. The rail is off by then, and stays off (tests/hardware/test_spice_drive.py)",
    ),
    (
        "hotplug",
        "VDS",
    ): "a drive is put onto a live 12 V rail, the lock-out trips at the peak, and Q5 is faster than its data sheet"
    " states: Q04 takes the end of SW's ringing through the crowbar's 7.5 Ohm in its avalanche, some uJ",
    (
        "",
        SHORTED,
    ): "each of J1's three contacts of 5 V gets 16 % more than 1.5 A make in 5 s, once, while the fuse opens;"
    " one of 7.5 A would lie below it, but drops 10 mV more at 3 A, which 3 % have no room for: J9 has 605 A^2 s",
    (
        "hotplug",
        "supply over nominal",
    ): "a drive is put onto a live rail, which the README forbids: cable and ceramic capacitors ring",
    (
        "short",
        "supply over nominal",
    ): "the drive's output is shorted: its own capacitors ring with the cable, below ground",
}


# of what is explained, where it is: the wrong supply above which the TVS conducts, and the most
TVS_V, TVS_A, TVS_W, AVALANCHE_V = 20.0, 15.0, 400.0, 31.0


def explained(one: Beyond) -> bool:
    """Whether EXPLAINED has this one, at the supply and up to the value that it is of."""
    if one.study == "overvoltage" and not (
        one.final_V > TVS_V and one.value <= {"W": TVS_W}.get(one.limit.unit, TVS_A)
    ):
        return False
    if one.limit.what == "VDS" and (one.limit.part != "NFET_SOT23 Q04" or one.value > AVALANCHE_V):
        return False
    return (one.study, one.limit.what) in EXPLAINED


def every() -> list[Beyond]:
    """Of every study, rail and corner."""
    cases = [
        (study, rail, corner, changes)
        for study, change_sets in STUDIES.items()
        for rail in (*RAILS, *BREAKOUTS)
        for corner in CORNERS
        for changes in change_sets
    ]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda case: beyond(*case[:3], **case[3]), cases)
    return [*at_rest(), *shared_beyond(), *plug_in_beyond(), *(one for excesses in results for one in excesses)]


def main() -> int:
    excesses = every()
    for one in excesses:
        print(one, "(explained)" if explained(one) else "")
    open_ = len([one for one in excesses if not explained(one)])
    print(f"{len(excesses)} beyond a limit, {open_} of them unexplained")
    return open_ > 0


if __name__ == "__main__":
    sys.exit(main())
