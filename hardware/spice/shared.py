"""Single faults of what the rails share (../board/common.py, ../breakout/board/circuit.py): shared_faults.csv.

    python hardware/spice/shared.py            makes the rows of study `shared` again (1 min); keeps the others

A row of study `shared` is simulated: the supplies of logic, gates and lock-out with the fault (shared.cir), with USB,
without it, and with the rails' supply off; then each rail with the gate supply, reference and pull-up that this leaves:
on_part is the least that a drive gets, wrong_part the most from a wrong supply, as parts of the rail's voltage. A row
of study `circuit` is worked out from the circuit; `why` has the arithmetic. supply_A: through F1, or out of the rail.
host_A: out of the host's USB port, or its PERST# driver.

does: off, low (a rail), over (more than 110 % to a drive), burns (a part takes twice its rating), host (more out
of the host than it bears), unprotected (a wrong supply gives a drive more than 115 % and stays, or the Pico more
than it bears), late (for a moment), pin (of the Pico or the drive, beyond its limit), stays (a cut leaves
voltage), lost (a function). seen_by: rail (each run and `rig info` watch its voltage), cut (report of the next
one), rig (no answer, or a sensor's, at connect), doctor (`rig doctor`), step N (of the first power-up), fuse,
lamp, function (its loss shows)."""

import csv
import functools
import re
import sys
from pathlib import Path

import faults
import simulate

HERE = Path(__file__).resolve().parent
TABLE = HERE / "shared_faults.csv"
FIELDS = (
    *("build", "study", "part", "fault", "vgate_V", "logic_V", "reference_V", "on_part", "wrong_part"),
    *("supply_A", "host_A", "fuse", "hottest", "hottest_W", "does", "seen_by", "why"),
)
RAILS = {"board": ("m2_3v3", "sata_5v", "sata_12v"), "breakout": ("breakout_m2", "breakout")}
HARM = {"over", "burns", "host", "pin", "unprotected", "late"}
NO_GATE_V = 0.5  # of gate supply, below which no study is needed
FUSE_A = 1.0  # F1 opens: twice its 0.5 A
HOST_A = 0.5  # a USB port gives it without being asked
VSYS_V = 5.5
SHORTS = {  # nodes at the ends of a part
    "board": {
        **{"F1": "sensed lin", "C7": "lin 0", "C9": "l6 0", "C4": "l5 0"},
        **{"D3": "l5 lock5", "C10": "lock5 0", "D8": "l6 lin", "D9": "l5 l6"},
        **{"R26": "l5 ovref", "R31": "ovref 0", "C8": "ovref 0"},
        **{"U7": "ovref 0", "U8": "ovref 0", "L1": "l5 lx", "D1": "boost vgate", "R13": "vgate fb", "R14": "fb 0"},
        **{"C6": "vgate fb", "D2": "vgate fb", "C5": "vgate 0", "R23": "vgate led24", "D6": "led24 0"},
    },
    "breakout": {
        **{"F1": "sensed f12", "D3": "f12 vgate", "C11": "vgate 0"},
        **{"C7": "vgate 0", "D2": "vgate 0", "C9": "l5 0", "R26": "vgate ovref", "R31": "ovref 0"},
        **{"C8": "ovref 0", "U7": "ovref 0", "U8": "ovref 0"},
    },
}
RAIL_PARTS = {  # of ../board/circuit.py ("n" in place of the rail's number): its name in rig.lib, protection.lib
    **{"Rn01": "Rstop", "Rn03": "Rgate", "Rn04": "Roff", "Rn05": "Rgpio", "Rn06": "Rpull", "Rn07": "Rshunt"},
    **{"Rn08": "Rcrowbar", "Rn09": "Rdrive", "Rn10": "Rlate", "Rn11": "Rdis", "Rn14": "Riso", "Rn15": "Rhold"},
    **{"Rn16": "Rinp", "Rn17": "Rinn", "Rn18": "Rvbus", "Rn19": "Rovup", "Rn20": "Rovlow", "Rn21": "Roff5"},
    **{"Rn22": "Rled", "Rn23": "Rbarled", "Rn24": "Rovhyst", "Rn25": "Rovpull", "Un02": "Sovp"},
    **{"Rn26": "Riso2", "Rn27": "Rovpull2"},
    **{"Cn01": "Cbulk", "Cn02": "Cgate", "Cn03": "Clate", "Cn07": "Csense", "Cn08": "Covt"},
    **{"Dn01": "Dclamp", "Dn02": "Dfree", "Dn04": "Dtvs", "Dn05": "Dled", "Dn06": "Dbarled"},
    **{"Fn01": "Bfuse", "Fn02": "Rbarfuse", **{f"Qn0{k}": f"MQ{k}" for k in range(1, 6)}},
}
EXCLUDED = {  # symbols without rows: what they join has its own
    "SATA_15": "a connector: its nets are those of the rails, and contacts have rows in limits.csv",
    "Peripheral_4": "a connector",
    "Terminal_4": "a connector",
    "Header_8": "a connector",
    "Header_4": "a connector",
    "TestPoint": "a bare pad",
    "Selector": "solder bridges that its builder sets; a wrong one is a sensor that does not answer",
    "PWR_FLAG": "not a part: a mark for the rule check",
}
OF_AN_IC = ("supply open", "output low", "output high", "input to output")
REGULATORS = {"board": {"U6": "lin l6", "U9": "l6 l5"}, "breakout": {"U6": "u6 l5"}}  # input, output
WRONG_IN_V = 24.0  # at the input of 5 V: the highest of the wrong supplies
LOGIC_V = 4.65, 5.2  # of LOGIC_5V: what step 3 reads
LOCK_OUT_V = 0.7  # the least threshold of Q5: with less at its pull-up it opens no gate
LOCK_OUT_TEST_Ohm = 470  # R27, which `rig doctor` puts across the reference
TRIPS_V = 2.15  # of OVREF: below it a rail 5 % too low is off
# U5's switch, which closes for 0.1 us of each 0.5 whatever its current, where it has no inductor: 0.8 Ohm for a fifth
SWITCHES = "BU5hard boost 0 i=v(boost)/4*0.5*(1 + tanh((v(l5) - 1.8)/50m))\n"
POWERS = {  # of each part that has any
    "board": {
        "F1": "i(Vsense)*i(Vsense)*crowbar_fuse_ohm",
        "U6": "(v(lin)-v(l6))*i(Vsense)",
        "U9": "(v(l6)-v(l5))*i(Vsense)",
        "R26": "(v(l5)-v(ovref))*(v(l5)-v(ovref))/1k",
        "R31": "v(ovref)*v(ovref)/2k",
        "U7": "v(ovref)*((v(l5)-v(ovref))/1k-v(ovref)/2k)",
        "U5": "v(l5)*i(Vl1)-v(boost)*i(Vd1)",
        "D1": "(v(boost)-v(vgate))*i(Vd1)",
        "D2": "(v(vgate)-v(fb))*i(Vd2)",
        "R13": "(v(vgate)-v(fb))*(v(vgate)-v(fb))/2.2meg",
        "R14": "v(fb)*v(fb)/120k",
        "R23": "(v(vgate)-v(led24))*(v(vgate)-v(led24))/22k",
        "D6": "v(led24)*(v(vgate)-v(led24))/22k",
    },
    "breakout": {
        "U6": "(v(vgate)-v(l5))*i(Vu6)",
        "R26": "(v(vgate)-v(ovref))*(v(vgate)-v(ovref))/2.2k",
        "R31": "v(ovref)*v(ovref)/1k",
        "U7": "v(ovref)*((v(vgate)-v(ovref))/2.2k-v(ovref)/1k)",
        "D2": "v(vgate)*i(Vd2)",
        "D3": "(v(f12)-v(vgate))*i(Vsense)",
    },
}
RATED_W = {  # F1: 468 series, 0.27 Ohm at 0.5 A; U6: as in limits.csv; U5: SOT-23-5, 2.8 K/W less than 350 mW at 25 C
    "board": {"F1": 0.25, "U6": 0.93, "U9": 0.93, "U7": 0.3, "U5": 0.35, "D1": 0.25, "D2": 0.35, "D6": 0.06},
    "breakout": {"U6": 0.25, "U7": 0.7, "D2": 0.5, "D3": 0.5},
}
OTHER_W = {"board": 0.1, "breakout": 0.25}


def parts(build: str) -> list[str]:
    """References of the parts that shared_BUILD.lib has."""
    text = (HERE / f"shared_{build}.lib").read_text().split("* ---- no parts")[0]
    return sorted(set(re.findall(r"^[RCDBL]([RCDFLU]\d+)\b", text, re.M)))


def kinds(part: str) -> tuple[str, ...]:
    """The faults that a part may have."""
    if part[0] != "U":
        return ("open", "short")
    own = {"U5": ("feedback open",), "U6": (), "U9": (), "U7": (), "U8": ()}.get(part, ())
    if part in ("U7", "U8"):
        return ("open", "short")
    return (*OF_AN_IC, *own)


def faulty(build: str, part: str, kind: str) -> str:
    """shared_BUILD.lib with the fault in it."""
    text = (HERE / f"shared_{build}.lib").read_text()
    gone = lambda ref: re.sub(rf"^[RCDB]{ref}(?:in)? .*\n", "", text, flags=re.M)
    wire = lambda ends, ohm="1m": f"Rfault {ends} {ohm}\n"
    if part == "none":
        return text
    if part == "U5":
        if kind == "feedback open":
            return text.replace("(1.233 - v(fb))", "1.233")
        return gone("U5") + {"output low": wire("boost 0", "0.8"), "input to output": wire("l5 boost")}.get(kind, "")
    if part in REGULATORS[build]:
        ends = REGULATORS[build][part]
        return {"supply open": gone(part), "output low": text + wire(f"{ends.split()[1]} 0")}.get(
            kind, text + wire(ends)
        )
    if part == "L1" and kind == "open" or part == "D1" and kind == "short":
        text = gone("U5")
    if kind == "open":
        return re.sub(rf"^[RCDB]{part} .*\n", "", text, flags=re.M)
    text += wire(SHORTS[build][part])
    if (part, kind) in (("L1", "short"), ("D1", "short")):
        text = re.sub(r"^BU5(?:in)? .*\n", "", text, flags=re.M) + SWITCHES
    return text


@functools.cache
def rail(name: str, gate_V: float, reference_V: float, pull_up_V: float) -> tuple[float, float, float, float]:
    """(what the drive gets, what a wrong supply gives it at most and in the end, as parts of the rail's voltage; W of
    the hotter FET)."""
    if gate_V < NO_GATE_V:
        return 0.0, 0.0, 0.0, 0.0
    v = faults.values(name)
    power_W = 0.2 * v["peak_current"] * v["voltage"]
    for off_V in (0.0, 0.01, -0.01):  # ngspice may not get over a point that it reaches a little beside
        changes = {"gate_supply": gate_V, "ovp_reference": reference_V + off_V, "lockout_supply": pull_up_V}
        if on := faults.measured(None, "failsafe", name, p_load=power_W, **changes):
            break
    most_V = stays_V = on["f_end"]
    if gate_V > v["voltage"]:  # below it a rail follows its gates, whatever the supply is
        most_V, stays_V = faults.wrong_V(None, name, **changes)
    parts_ = (volts / v["voltage"] for volts in (on["f_end"], max(most_V, stays_V), stays_V))
    return (*parts_, max(on["heat"]["MQ1"], on["heat"]["MQ2"]))


def row(build: str, part: str, kind: str) -> dict:
    """One line of the table, of study `shared`."""
    text = faulty(build, part, kind)
    after = "".join(
        f"let curve = {power}\nmeas tran w_{name} avg curve from=55m to=60m\n" for name, power in POWERS[build].items()
    )
    after = after.replace("crowbar_fuse_ohm", str(simulate.values("sata_5v")["crowbar_fuse_ohm"]))
    own = simulate.breakout() if build == "breakout" else {}
    cases = [
        simulate.measured("shared", "sata_5v", more=text, after=after, usb=usb, rail1=5 * on, rail12=12 * on, **own)
        for usb, on in ((1, 1), (0, 1), (1, 0))
    ]
    on, alone, dead = cases
    rated = lambda name: RATED_W[build].get(name, OTHER_W[build])
    heat = {
        name: max(abs(m[f"w_{name.lower()}"]) for m in cases)
        for name in POWERS[build]
        if name != part or part[0] == "U"
    }
    rails = []
    for m in (on, alone):
        left = round(m["vgate"], 1), round(m["reference"], 2), round(m["pull_up"], 1)
        rails += [rail(name, *left) for name in RAILS[build]]
    heat["FET"] = max(of[3] for of in rails)
    melts = max(abs(m["supply"]) for m in cases) > FUSE_A
    if melts:
        heat.pop("F1", None)
    hottest = max(heat, key=lambda name: heat[name] / (2.0 if name == "FET" else rated(name)))
    supply_A = max(m["supply"] for m in (on, alone))
    host_A = max(m["host"] for m in cases)
    on_part, wrong_part = min(of[0] for of in rails), max(of[1] for of in rails)
    does, seen_by = [], []
    if max(of[0] for of in rails) > 1.1:
        does.append("over")
    if on_part < 0.95:
        does.append("off" if max(of[0] for of in rails) < 0.1 else "low")
        seen_by.append("rail")
    if heat[hottest] > 2 * (2.0 if hottest == "FET" else rated(hottest)):
        does.append("burns")
    if wrong_part > faults.MOST_PART:
        does.append("unprotected" if max(of[2] for of in rails) > faults.MOST_PART else "late")
        seen_by += ["step 5"] if does[-1] == "unprotected" else []
    if build == "board":
        wrong = simulate.measured("shared", "sata_5v", more=text, usb=0, rail1=WRONG_IN_V, rail12=12)
        if wrong["vsys"] > VSYS_V or wrong["l5"] > VSYS_V:
            does.append("unprotected")  # Pico and boost converter
    if not LOGIC_V[0] <= alone["l5"] <= LOGIC_V[1] and on_part >= 0.95:
        seen_by.append("step 3")
    if on_part >= 0.95:
        test = f"Rtest ovref 0 {LOCK_OUT_TEST_Ohm}\n"
        tested = simulate.measured("shared", "sata_5v", more=text + test, **own)
        if tested["reference"] > TRIPS_V or tested["pull_up"] < LOCK_OUT_V:
            seen_by.append("doctor")  # no lock-out trips
    if host_A > HOST_A or max(m["vsys"] for m in cases) > VSYS_V:
        does.append("host")
    if melts:
        seen_by.append("fuse")
    return {
        **{"build": build, "study": "shared", "part": part, "fault": kind},
        **{
            "vgate_V": f"{alone['vgate']:.1f}",
            "logic_V": f"{alone['l5']:.2f}",
            "reference_V": f"{alone['reference']:.3f}",
        },
        **{"on_part": f"{on_part:.2f}", "wrong_part": f"{wrong_part:.2f}"},
        **{"supply_A": f"{supply_A:.3f}", "host_A": f"{host_A:.3f}", "fuse": "opens" if melts else "holds"},
        **{"hottest": hottest, "hottest_W": f"{heat[hottest]:.3f}"},
        "does": " ".join(does) or "nothing",
        "seen_by": " ".join(seen_by) or "none",
        "why": "",
    }


def wanted() -> list[tuple[str, str, str]]:
    """(build, part, fault) of each row of study `shared`."""
    return [
        (build, part, kind)
        for build in RAILS
        for part in ("none", *parts(build))
        for kind in (("none",) if part == "none" else kinds(part))
    ]


@functools.cache
def committed() -> list[dict]:
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def main() -> int:
    rest = [one for one in committed() if one["study"] != "shared"] if TABLE.exists() else []
    made = [row(*one) for one in wanted()]
    with open(TABLE, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*made, *rest])
    for one in gaps([*made, *rest]):
        print(f"{one['build']}: {one['part']} {one['fault']}: {one['does']}, nobody sees it")
    return bool(gaps([*made, *rest]))


def gaps(rows: list[dict]) -> list[dict]:
    """What destroys, or takes a protection away or makes it late, and nobody sees."""
    return [one for one in rows if HARM & set(one["does"].split()) and one["seen_by"] == "none"]


if __name__ == "__main__":
    sys.exit(main())
