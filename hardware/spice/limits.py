"""Absolute maxima of every pin (../limits.csv), looked at in every study.

    python hardware/spice/limits.py            each study, each rail, revision A and B: what is beyond its limit

A row of limits.csv has either an expression over the nodes of a study (`seen`; with a rail before it, of that rail
only; `avg:` and `integ:` its mean and its integral over the study) or, of what no study has, the range that it can have
in revision A and in B, with the reason in `source`. A pin of the sensor may leave its voltage while its current
stays within its limit, as its data sheet allows.
"""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

import simulate

HERE = Path(__file__).resolve().parent
STUDIES: dict[str, list[dict]] = {
    "softstart": [{}],
    "drop": [{}],
    "failsafe": [{}],
    "interlock": [{}],
    "backfeed": [{}, {"discharge": 0}],
    "fall": [{"p_load": "{5*voltage}"}, {"p_load": "{5*voltage}", "discharge": 0}, {"c_load": 1e-5}],
    "dip": [{"p_load": "{3*voltage}"}],
    "ramp": [{}],
    "short": [{}, {"t_short": 1e-3, "t_on": 7e-3}],
    "hotplug": [{"live": 1}, {"live": 0}],
    "no3v3": [{}],
    "overvoltage": [{}],
}
RAILS = ("m2_3v3", "sata_5v", "sata_12v", "u2_12v", "u2_3v3aux")
DIVIDERS = dict.fromkeys(("sata_12v", "u2_12v"), (15e3, 3.3e3, 470e-12))  # circuit.RAILS; of the others:
DIVIDER = (10e3, 10e3, 220e-12)
# What is beyond a limit in revision B, and why that stays: when 12 V come upon a rail of 3.3 or 5 V, some 60 A flow
# into the drive's capacitance until the lock-out has opened the rail. What the cables' inductance then does to the
# sensor lasts microseconds and may cost the sensor, not the drive: try it with a known load after such a mistake.
EXPLAINED = {("overvoltage", what) for pin in ("IN+", "IN-", "VBUS") for what in (pin, f"{pin} current")}
SINCE_s = 20e-6  # initial conditions settle


class Limit(NamedTuple):
    part: str
    pins: str
    what: str
    low: float
    high: float
    unit: str
    seen: str
    static: dict[str, tuple[float, float]]  # of revision A and B
    source: str


class Beyond(NamedTuple):
    """A limit that is passed: in which study ("" of a static one)."""

    limit: Limit
    revision: str
    study: str
    rail: str
    value: float

    def __str__(self) -> str:
        here = f"{self.study} {self.rail}".strip() or "at rest"
        of = self.limit
        return (
            f"{here}, revision {self.revision}: {of.part} {of.what} {self.value:.4g} {of.unit},"
            f" limit {of.low:g} to {of.high:g}"
        )


def limits() -> list[Limit]:
    with open(HERE.parent / "limits.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Limit(
            *(row[name] for name in ("part", "pins", "what")),
            *(float(row[name]) for name in ("low", "high")),
            row["unit"],
            row["seen"],
            {} if row["seen"] else {r: (float(row[f"{r}_low"]), float(row[f"{r}_high"])) for r in ("a", "b")},
            row["source"],
        )
        for row in rows
    ]


def at_rest(revision: str) -> list[Beyond]:
    """Of what no study has."""
    out = []
    for limit in limits():
        if limit.static:
            low, high = limit.static[revision]
            out += [
                Beyond(limit, revision, "", "", value)
                for value, bad in ((low, low < limit.low), (high, high > limit.high))
                if bad
            ]
    return out


def observed(rail: str, revision: str, until_s: str = "") -> tuple[str, list[tuple[Limit, str]]]:
    """(lines for a study, (limit, name of the measure) of each)."""
    upper, lower, capacitor = DIVIDERS.get(rail, DIVIDER)
    lines = [f".param scope_upper={upper} scope_lower={lower} scope_capacitor={capacitor}"]
    lines += [(HERE / name).read_text() for name in (f"revision_{revision}.lib", "observers.lib")]
    named = []
    for k, limit in enumerate(limits()):
        of, _, rest = limit.seen.partition(":v(") if limit.seen[:1] not in "ai" else ("", "", "")
        expression = f"v({rest}" if rest else limit.seen
        if not limit.seen or rest and of != rail:
            continue
        how, _, inside = expression.partition(":")
        kinds = (how,) if inside else ("min", "max")
        # a measure of an expression wants a node: ngspice's own par() cannot integrate
        lines.append(f"Blim{k} lim{k} 0 v={inside or expression}")
        for kind in kinds:
            named.append((limit, f"lim{k}_{kind}"))
            lines.append(f".meas tran lim{k}_{kind} {kind} v(lim{k}) from={SINCE_s}{until_s}")
    return "\n".join(lines) + "\n", named


def beyond(study: str, rail: str, revision: str, **changes: float | str) -> list[Beyond]:
    """What of a study is beyond a limit."""
    volts = simulate.values(rail)["voltage"]
    changes = {
        name: float(value[1:-1].split("*")[0]) * volts if isinstance(value, str) and "voltage" in value else value
        for name, value in changes.items()
    }
    lines, named = observed(rail, revision)
    measures = simulate.measured(study, rail, more=lines, **changes)
    missing = [name for _, name in named if name not in measures]
    if missing:
        raise RuntimeError(f"ngspice measured no {', '.join(missing)} in {study} for {rail}")
    found = [(limit, measures[name]) for limit, name in named if not limit.low <= measures[name] <= limit.high]
    passed = {limit.what for limit, _ in found}
    return [
        Beyond(limit, revision, study, rail, value)
        for limit, value in found
        if not (limit.what in ("IN+", "IN-", "VBUS") and f"{limit.what} current" not in passed)
    ]


def explained(one: Beyond) -> bool:
    return one.revision == "b" and (one.study, one.limit.what) in EXPLAINED


def main() -> int:
    open_ = 0
    for revision in ("a", "b"):
        found = at_rest(revision)
        for study, cases in STUDIES.items():
            for rail in RAILS:
                for changes in cases:
                    found += beyond(study, rail, revision, **changes)
        for one in found:
            print(one, "(explained)" if explained(one) else "")
        open_ = len([one for one in found if not explained(one)])
        print(f"revision {revision}: {len(found)} beyond a limit, {open_} of them unexplained")
    return open_ > 0


if __name__ == "__main__":
    sys.exit(main())
