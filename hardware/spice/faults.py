"""Single faults: every part of every rail open and short in four studies, and what that does to the drive.

    python hardware/spice/faults.py [RAIL ...]  makes these rails of faults.csv again, all without one (half a
                                                minute a rail on a free core)

A fault is one line of rig.lib or protection.lib that is taken out (open) or that 1 mOhm lies across (short; of a FET
from drain to source, and from gate to source). Studies: the rail comes up (softstart) and stays on at 3 A (drop), is
cut with the crowbar (fall), and its pins are let go (failsafe). Looked at is the worst of all four, of currents and
powers what is left at their ends, for that stays:

    over     the drive gets more than 110 % of its rail
    burns    a part gets more than twice its rating for longer than a cut, a junction passes 175 C, or the crowbar's
             fuse opens
    feeds    the supply gives more than the rail's fuse carries, and less than opens it
    pin      a GPIO passes 3.6 V, the sensor's limits
    off      the drive has no power where it should have: nothing is destroyed
    fast     the fast current channel reads something else, and nothing happens to the drive
    on       the drive keeps its power in a cut: the residual check of the firmware sees it

and who notices: `rail` the rig's own reading of it, `cut` the report of the next cut (its fall, its residual), `fuse`,
`closure` the host, which compares the fast channel's mean current with the sensor's,
`doctor` its test of the lock-outs (here: the reference falls while the rail is on), `none`: nothing sees it, and
nothing is destroyed. A fault of HARM that nobody sees is a gap.
"""

import csv
import functools
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import limits
import simulate

HERE = Path(__file__).resolve().parent
# u2_12v has the values of sata_12v: tests/hardware/test_spice_limits.py
RAILS = ("m2_3v3", "sata_5v", "sata_12v", "u2_3v3aux", *limits.BREAKOUTS)
FIELDS = (
    "rail",
    "part",
    "fault",
    "drive_max_V",
    "drive_on_V",
    "residual_V",
    "wrong_V",
    "crowbar_W",
    "supply_A",
    "fuse",
    "hottest",
    "hottest_W",
    "pin",
    "does",
    "seen_by",
)
OTHER_W = 0.1  # of a resistor 0603
RATED_W = {
    "Rcrowbar": 2.0,  # CRGP2512 at 70 C
    "Rshunt": 1.0,  # WSL2512
    **dict.fromkeys(("MQ1", "MQ2"), 2.0),  # a DPAK: 50 K/W on a board (IRLR8743), 100 K
    **dict.fromkeys(("MQ3", "MQ4"), 0.9),  # AO3400A at 70 C
    "MQ5": 0.2,  # BSS138
    "Dclamp": 0.25,  # BZX84
    "Dfree": 1.0,  # SS34
}
LEADED_OTHER_W = 0.25  # MFR-25
LEADED_W = {  # on the breakout's board
    "Rcrowbar": 5.0,  # SQP500JB-2R2
    "Rshunt": 1.0,  # 2512 of the sensor's board
    **dict.fromkeys(("MQ1", "MQ2", "MQ3", "MQ4"), 1.6),  # a TO-220 without a heat sink: 62 K/W (IRLB8743), 100 K
    "MQ5": 0.5,  # TN0106N3-G
    "Dclamp": 0.4,  # BZX79
    "Dfree": 1.0,  # SB340
}
ON_SENSOR = ("Rinp", "Rinn", "Rvbus", "Csense")  # parts of the board that the sensor's ready-made board lacks
FET_W = {  # their powers, which no line of a netlist has
    "MQ1": "(v(xq.drain)-v(src))*i(v.xq.vdrain)",
    "MQ2": "(v(src)-v(sw))*i(Vi)",
    "MQ3": "v(xq.emptied)*(v(gate)-v(xq.emptied))/gate_off_resistor",
    "MQ4": "v(xc.bar)*(v(sw)-v(xc.barf))/crowbar",
    "MQ5": "v(ovd)*(v(gate)-v(ovd))/lockout_off_resistor",
    "Dclamp": "(v(gate)-v(src))*(v(xq.ramp)-v(gate))/gate_isolation/2",
    "Dfree": "-v(sw)*i(Vfree)",
}
# 3.3 V: what its converter gives
FUSE_A = {"m2_3v3": 8.0, "sata_5v": 10.0, "sata_12v": 7.5, "u2_3v3aux": 8.0, "breakout": 10.0, "breakout_m2": 8.0}
# a blade fuse carries 110 % for 100 h and opens at 200 % within 5 s (ISO 8820-3); wire and terminals bear 10 A and more
OPENS = 2.0
BLOCKS = {"xq": "series_switch", "xc": "crowbar_switch", "xl": "line"}
WATCHED = ("Pico", "NFET_DPAK")  # symbols of limits.csv
STILL_s = 5e-3  # of the end of a study: what still burns then goes on burning
FAST_OFF_V = 0.1  # at the end of `drop`, at some 5.7 A: 0.25 A
LINE = re.compile(r"^([RCDMLVS]\w+|Bfuse) (\S+) (\S+)(?: (\S+))?", re.M)
NOT_PARTS = re.compile(
    r"R(t\d|melt|a$|b$|cable|esr|supply|in$|vb$|ovq)|C(t\d|melt|a$|b$|load|pole|ovq)|Dpad|V\w+|S(late|dis)|Lwire|L?cable|Resr"
)


WRONG_V = {"m2_3v3": 5.0, "u2_3v3aux": 5.0, "sata_5v": 7.0, "sata_12v": 19.0, "breakout_m2": 5.0, "breakout": 7.0}
MOST_PART = 1.152  # of its rail's voltage to a drive from a wrong supply: 3.8 V of 3.3, 5.75, 13.8

HARM = {"over", "burns", "feeds", "pin", "unprotected", "late"}
LATE_PART = 0.5  # a lock-out that comes too late leaves no more than this in the end
# OVREF while `rig doctor` trips the lock-outs, at most: R27 of 470 Ohm gives 1.6 V on the breakout at 12.6 V; what is
# left of a rail that stays on
TEST_REFERENCE_V = 1.67
ON_IN_TEST_V = 2.0


class Fault(NamedTuple):
    part: str  # as in the .lib
    kind: str  # open, short, gate short
    file: str  # rig.lib, protection.lib


def parts(text: str) -> list[tuple[str, list[str]]]:
    """(name, nets) of each part of a .lib that a person solders."""
    blocks = re.findall(
        r"^\.subckt (?:series_switch|crowbar_switch|line|fast_channel) .*?^\.ends", text, re.M | re.S
    ) or [text]
    matches = [m for block in blocks for m in LINE.finditer(block)]
    return [(m[1], [m[2], m[3], m[4] or ""]) for m in matches if not NOT_PARTS.match(m[1])]


def faults(rail: str = "sata_5v") -> list[Fault]:
    """Those of the parts that this rail has."""
    out = []
    for file in ("rig.lib", "protection.lib"):
        for name, _ in parts((HERE / file).read_text()):
            if rail in limits.BREAKOUTS and name in ON_SENSOR:
                continue
            out += [Fault(name, kind, file) for kind in ("open", "short")]
            if name[0] == "M":
                out.append(Fault(name, "gate short", file))
    return out


def faulty(fault: Fault, text: str) -> str:
    """The .lib with the fault in it."""
    (line,) = re.findall(rf"^{fault.part} .*$", text, re.M)
    _, one, two, three = [*line.split(), "", ""][:4]
    if fault.kind == "open":
        return text.replace(line, f"* {line}")
    across = (two, three) if fault.kind == "gate short" else (one, three if fault.part[0] == "M" else two)
    return text.replace(line, f"{line}\nRfault{fault.part} {across[0]} {across[1]} 1m")


def heated(fault: Fault | None) -> dict[str, str]:
    """{part: its power as an expression}: all but the faulty one, which is not there, or a wire."""
    watts = dict(FET_W)
    rig = (HERE / "rig.lib").read_text()
    blocks = {kind: re.search(rf"^\.subckt {name} .*?^\.ends", rig, re.M | re.S)[0] for kind, name in BLOCKS.items()}
    for inside, text in {**blocks, "": (HERE / "protection.lib").read_text()}.items():
        for name, _ in parts(text):
            if name[0] == "R" and name != "Rbarfuse":
                watts[name] = limits.heat(f"{inside}.{name}".removeprefix("."))
    return {name: power for name, power in watts.items() if not fault or name != fault.part}


def rated_W(rail: str, part: str) -> float:
    """What a part of this rail bears without end."""
    return LEADED_W.get(part, LEADED_OTHER_W) if rail in limits.BREAKOUTS else RATED_W.get(part, OTHER_W)


def values(rail: str) -> dict[str, float]:
    of, differs = limits.own(rail)
    return simulate.values(of) | differs


def measured(fault: Fault | None, study: str, rail: str, **changes) -> dict:
    """What of a study is looked at. A study that ngspice cannot carry out is not: an empty dict."""
    named_rail, (rail, differs) = rail, limits.own(rail)
    changes = differs | changes
    lines, named = limits.observed(study, rail, WATCHED)
    edit = (lambda text: faulty(fault, text)) if fault and fault.file == "rig.lib" else str
    if fault and fault.file != "rig.lib":
        lines = faulty(fault, lines)
    last = {"softstart": 30e-3, "drop": 61e-3, "fall": 40e-3, "failsafe": 60e-3}[study]
    # no drive pulls its rail below ground, as a current source on a rail that is off would
    lines += ".model floor d is=1u rs=1m\nDfloor 0 drive floor\n"
    v = values(named_rail)
    powers = heated(fault)
    curves = {"f_fast": f"v(fast)-i(Vi)*{v['shunt'] * v['fast_gain']}"}
    curves |= {f"heat_{name}": re.sub(r"/([a-z]\w*)", lambda m: f"/{v[m[1]]}", of) for name, of in powers.items()}
    end = f"from={last - STILL_s}"
    lines += f".meas tran f_max max v(drive) from={limits.SINCE_s}\n.meas tran f_end avg v(drive) {end}\n"
    lines += f".meas tran f_supply avg i(v.xq.vfuse) {end}\n.meas tran f_melt max v(xq.melt) from={limits.SINCE_s}\n"
    after = "".join(f"let curve = {of}\nmeas tran {name} avg curve {end}\n" for name, of in curves.items())
    try:
        m = simulate.measured(study, rail, more=lines, edit=edit, after=after, **changes)
    except (RuntimeError, OSError):
        return {}
    beyond = [limit.what for limit, name in named if name in m and not limit.low <= m[name] <= limit.high]
    heat = {name: m[f"heat_{name.lower()}"] for name in powers if f"heat_{name.lower()}" in m}
    return {name: m[name] for name in m if name.startswith("f_")} | {"beyond": beyond, "heat": heat}


def wrong_V(fault: Fault | None, rail: str, **changes: float) -> tuple[float, float]:
    """(the most that the drive gets from WRONG_V, what it gets in the end): whether the lock-out still works. NaN where
    ngspice cannot say."""
    named, (rail, differs) = rail, limits.own(rail)
    protection = (HERE / "protection.lib").read_text()
    edit = (lambda text: faulty(fault, text)) if fault and fault.file == "rig.lib" else str
    more = faulty(fault, protection) if fault and fault.file != "rig.lib" else protection
    given = {"final": WRONG_V[named], "rise": 1e-5, "c_load": simulate.LITTLE_F, "p_load": 0.1}
    try:
        m = simulate.measured("overvoltage", rail, more=more, edit=edit, **(differs | given | changes))
    except (RuntimeError, OSError):
        return float("nan"), float("nan")
    return m["drive_peak"], m["drive_end"]


def in_test_V(fault: Fault | None, rail: str) -> float:
    """What is left of a rail at work once `rig doctor` has pulled the lock-outs' reference down."""
    of, differs = limits.own(rail)
    volts = simulate.values(of)["voltage"]
    pulled = f"pwl(0 {{ovp_reference}} 1m {{ovp_reference}} 1.01m {TEST_REFERENCE_V})"
    protection = (
        (HERE / "protection.lib").read_text().replace("ovreference 0 {ovp_reference}", f"ovreference 0 {pulled}")
    )
    edit = (lambda text: faulty(fault, text)) if fault and fault.file == "rig.lib" else str
    more = faulty(fault, protection) if fault and fault.file != "rig.lib" else protection
    given = {"final": volts, "rise": 1e-5, "c_load": simulate.LITTLE_F, "p_load": 0.1}
    return simulate.measured("overvoltage", of, more=more, edit=edit, **(differs | given))["drive_end"]


def row(fault: Fault | None, rail: str) -> dict:
    """One line of the table."""
    v = values(rail)
    volts = v["voltage"]
    up = measured(fault, "softstart", rail)
    on = measured(fault, "drop", rail)
    cut = measured(fault, "fall", rail, p_load=min(1, v["peak_current"]) * volts)
    alone = measured(fault, "failsafe", rail)
    studies = [up, on, cut, alone]
    lets_V, stays_at_V = wrong_V(fault, rail)
    worst = lambda name, of=studies: max((m[name] for m in of if name in m), default=float("nan"))
    drive_V, residual_V = worst("f_max"), cut.get("f_end", float("nan"))
    heat = {name: max(m["heat"][name] for m in studies if name in m.get("heat", {})) for name in heated(fault)}
    bar_W = max((m["heat"]["Rcrowbar"] for m in (up, on, alone) if "Rcrowbar" in m.get("heat", {})), default=0.0)
    hottest = max(heat, key=lambda name: heat[name] / rated_W(rail, name))
    supply_A = worst("f_supply", [up, cut, alone])
    melts = worst("f_melt") > v["fuse_i2t"]
    pins = sorted({what for m in studies for what in m.get("beyond", [])})
    does, seen_by = [], []
    if drive_V > 1.1 * volts:
        does.append("over")
        seen_by.append("rail")
    blown = (bar_W / v["crowbar"]) ** 0.5 > 2 * v["crowbar_fuse"]  # the crowbar's own fuse
    if heat[hottest] > 2 * rated_W(rail, hottest) or "junction" in pins or blown:
        does.append("burns")
        seen_by += ["fuse"] if blown else []
    if FUSE_A[rail] * 1.1 < supply_A < FUSE_A[rail] * OPENS and not melts:
        does.append("feeds")
    if supply_A >= FUSE_A[rail] * OPENS or melts:
        seen_by.append("fuse")
    if fault and (fault.part, fault.kind) == ("Rcrowbar", "short"):
        pulse_A = volts / (
            v["small_fet_rds_on"] + v["crowbar_fuse_ohm"] + v["shunt"] + v["wire"] + v["contact"] + v["ground_contact"]
        )
        if pulse_A > v["small_fet_pulse"]:
            does.append("burns")  # Q4, at the first cut, whose fall is too fast
            seen_by.append("cut")
    if {"OFF", "DISCHARGE", "SCOPE"} & set(pins):
        does.append("pin")
    stays_V = (alone or up).get("f_end", 0.0)  # an open pin that nothing holds has no study of its own
    if stays_V < 0.95 * volts:
        does.append("off" if stays_V < 0.9 * volts else "low")
        seen_by.append("rail")
    if fault and fault.part.endswith("fast") and abs(on.get("f_fast", 0.0)) > FAST_OFF_V:
        does.append("fast")
        seen_by.append("closure")
    if residual_V > 0.3:
        does.append("on")
        seen_by.append("cut")
    if max(lets_V, stays_at_V) > MOST_PART * volts:
        does.append("unprotected" if stays_at_V > LATE_PART * volts else "late")
        seen_by += ["step 5"] if does[-1] == "unprotected" else []
        if in_test_V(fault, rail) > ON_IN_TEST_V:
            seen_by.append("doctor")
    return {
        "rail": rail,
        "part": fault.part if fault else "none",
        "fault": fault.kind if fault else "none",
        "drive_max_V": f"{drive_V:.2f}",
        "drive_on_V": f"{stays_V:.2f}",
        "residual_V": f"{residual_V:.2f}",
        "wrong_V": f"{max(lets_V, stays_at_V):.2f}",
        "crowbar_W": f"{bar_W:.2f}",
        "supply_A": f"{supply_A:.2f}",
        "fuse": "opens" if melts else "holds",
        "hottest": hottest,
        "hottest_W": f"{heat[hottest]:.3f}",
        "pin": " ".join(what.replace(" ", "_") for what in pins),
        "does": " ".join(dict.fromkeys(does)) or "nothing",
        "seen_by": " ".join(dict.fromkeys(seen_by)) or "none",
    }


def wanted(rails: tuple[str, ...] = RAILS) -> list[tuple[Fault | None, str]]:
    """(fault, rail) of each row of these rails."""
    return [(fault, rail) for rail in rails for fault in [None, *faults(rail)]]


def table(rails: tuple[str, ...] = RAILS) -> Iterator[dict]:
    """Rows of these rails in the order of wanted(), each as soon as it is made."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda one: row(*one), wanted(rails))


@functools.cache
def committed() -> list[dict]:
    with open(HERE / "faults.csv", newline="") as file:
        return list(csv.DictReader(file))


def main(rails: list[str]) -> int:
    unknown = set(rails) - set(RAILS)
    if unknown:
        print(f"expected rails of {', '.join(RAILS)}; seen {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    made = list(table(tuple(rails) or RAILS))
    rest = [one for one in committed() if rails and one["rail"] not in rails]
    rows = sorted([*rest, *made], key=lambda one: RAILS.index(one["rail"]))
    with open(HERE / "faults.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for one in gaps(rows):
        print(f"{one['rail']}: {one['part']} {one['fault']}: {one['does']}, nobody sees it")
    single = [one for one in rows if one["part"] != "none"]
    print(
        f"{len(single)} single faults on {len({one['rail'] for one in rows})} rails, {len(gaps(single))} of them a gap"
    )
    return bool(gaps(single))


def gaps(rows: list[dict]) -> list[dict]:
    """What destroys, or takes the lock-out away or makes it late, and nobody sees."""
    return [one for one in rows if HARM & set(one["does"].split()) and one["seen_by"] == "none"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
