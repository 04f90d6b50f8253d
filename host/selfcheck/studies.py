"""The studies of the rig's circuit (hardware/spice) in full: every wrong supply, rail, rise time and corner of the
tolerances in ngspice. The tests run a part of them."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selfcheck import Figure, at_most, exactly, in_turn
from ssdrig.base.errors import ToolMissing

SPICE = Path(__file__).resolve().parents[2] / "hardware" / "spice"
# of the board's rails, and of the breakout's board in its two builds
MOST_V = {"m2_3v3": 3.8, "sata_5v": 5.75, "sata_12v": 13.8, "breakout_m2": 3.8, "breakout": 5.75}
TABLE_PART = 0.03  # by which another version of ngspice may differ from a committed figure


def _modules():
    if shutil.which("ngspice") is None:
        raise ToolMissing("ngspice, to simulate the circuit", "no such program", "apt-get install ngspice")
    if str(SPICE) not in sys.path:
        sys.path.insert(0, str(SPICE))
    import faults
    import limits
    import shared
    import simulate

    return simulate, limits, faults, shared


def supplies() -> list[Figure]:
    """The most that a drive gets from any wrong supply, at its peak and in the end."""
    simulate, limits, *_ = _modules()
    cases = []
    for build in MOST_V:
        rail, own = limits.own(build)
        values = simulate.values(rail) | own
        finals, typical = simulate.too_much_V(rail), {"c_load": values["load_typical"]}
        little = {"c_load": simulate.LITTLE_F}
        short = little | {"source_inductance": simulate.SHORT_LEADS_H}
        # from a rail that was low an edge is steeper, and the gates stand higher above it
        was_low = {"voltage": 0.95 * values["voltage"]}
        for corner, ways in (
            ("middle", (typical, little)),
            ("low", (typical, little, short)),
            ("high", (typical, little, short, little | was_low, short | was_low)),
        ):
            changes = own | limits.corner_changes("overvoltage", corner, values)
            for way in ways:
                cases += [(build, rail, final, rise, changes | way) for rise in simulate.RISES_s for final in finals]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda case: simulate.wrong_supply(*case[1:4], **case[4]), cases))
    gone, gone_12v = _logic_gone(simulate, limits), _gone_12v(simulate, limits)
    most = dict.fromkeys(MOST_V, 0.0)
    for (build, *_), m in zip(cases, made, strict=True):
        most[build] = max(most[build], m["drive_peak"], m["drive_end"])
    return [
        *(
            at_most(f"{build}: most at the drive of {len(cases)} cases", most[build], "V", MOST_V[build])
            for build in most
        ),
        *(
            at_most(f"{rail}: most at the drive, the board's logic without its input", most_V, "V", MOST_V[rail])
            for rail, most_V in gone.items()
        ),
        *(
            at_most(f"{build}: most at the drive, its 12 V gone", most_V, "V", MOST_V[build])
            for build, most_V in gone_12v.items()
        ),
        exactly("figures of the tables of hardware/spice/README.md that the studies do not give", _off(), "", 0),
    ]


def _logic_gone(simulate, limits) -> dict[str, float]:
    """{rail: the most that a drive gets} where the logic's own input goes, of all ways, times and corners."""
    cases = [
        (rail, final, _at_end(limits, simulate.values(rail), *corner) | way | {"later": later})
        for rail in simulate.WRONG_RAILS
        for final in (5, 12, 15, 24)
        if final > 1.15 * simulate.values(rail)["voltage"]
        for corner in (("low", 0.95), ("high", 0.95), ("high", 1.05))
        for way in simulate.WAYS_GONE
        for later in simulate.LATER_s
    ]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda case: simulate.logic_gone(*case[:2], **case[2]), cases))
    most = dict.fromkeys(simulate.WRONG_RAILS, 0.0)
    for (rail, *_), m in zip(cases, made, strict=True):
        most[rail] = max(most[rail], m["drive_peak"], m["drive_end"])
    return most


def _at_end(limits, values: dict, corner: str, part: float) -> dict[str, float]:
    """What a corner of the tolerances changes, on a rail that had this part of its voltage."""
    return limits.corner_changes("overvoltage", corner, values) | {"voltage": part * values["voltage"]}


def _gone_12v(simulate, limits) -> dict[str, float]:
    """{build of the breakout's board: the most that a drive gets} where its 12 V go, of all ways and times."""
    cases = []
    for build in limits.BREAKOUTS:
        rail, own = limits.own(build)
        changes = own | limits.corner_changes("overvoltage", "high", simulate.values(rail) | own)
        ways = [{"final": final, "fall": fall} for final in (7, 12, 24) for fall in (1e-5, 1e-3, 2e-2)]
        ways += [{"final": 24, "rise": 2e-6}, {"final": 24, "leak": simulate.LEAK_A}]
        times = [(aged, later) for aged, moments in simulate.GONE_s.items() for later in moments]
        cases += [
            (build, rail, changes | way | {"aged": aged, "later": later}) for way in ways for aged, later in times
        ]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda case: simulate.gone_12v(case[1], **case[2]), cases))
    most = dict.fromkeys(limits.BREAKOUTS, 0.0)
    for (build, *_), m in zip(cases, made, strict=True):
        most[build] = max(most[build], m["drive_peak"], m["drive_end"])
    return most


def _off() -> int:
    """Figures of the committed tables that are off by more than TABLE_PART."""
    simulate = _modules()[0]
    text = (SPICE / "README.md").read_text()
    return sum(simulate.table_differs(text, name, TABLE_PART) for name in simulate.TABLES)


def limits_met() -> list[Figure]:
    """What is beyond a limit of limits.csv, in every study, rail and corner."""
    limits = _modules()[1]
    excesses = limits.every()
    for one in excesses:
        print(one, "(explained)" if limits.explained(one) else "", file=sys.stderr)
    return [exactly("beyond a limit, unexplained", sum(not limits.explained(one) for one in excesses), "", 0)]


def single_faults() -> list[Figure]:
    """Every part of every rail open and short, and what the rails share, against the committed tables; a row that
    differs is printed as soon as it is made."""
    faults, shared = _modules()[2:]
    key = lambda row: tuple(row[name] for name in ("rail", "part", "fault", "fuse", "does", "seen_by"))
    committed = {*map(key, faults.committed())}
    made = []
    for row in in_turn(faults.table(), "single-faults", len(faults.wanted())):
        made.append(row)
        if key(row) not in committed:
            print("not in faults.csv:", *key(row), file=sys.stderr)
    for one in sorted(committed - {*map(key, made)}):
        print("only in faults.csv:", *one, file=sys.stderr)
    shared_key = lambda row: tuple(row[name] for name in ("build", "part", "fault", "fuse", "does", "seen_by"))
    simulated = {shared_key(row) for row in shared.committed() if row["study"] == "shared"}
    of_shared = [shared.row(*one) for one in shared.wanted()]
    for one in sorted(simulated ^ {*map(shared_key, of_shared)}):
        print("not the same in shared_faults.csv:", *one, file=sys.stderr)
    worked_out = [row for row in shared.committed() if row["study"] != "shared"]
    return [
        exactly("rows of faults.csv that the studies do not give", len(committed ^ {*map(key, made)}), "", 0),
        exactly(
            "simulated rows of shared_faults.csv that its study does not give",
            len(simulated ^ {*map(shared_key, of_shared)}),
            "",
            0,
        ),
        exactly(
            "faults that destroy or leave no lock-out and that nobody sees",
            len(faults.gaps(made)) + len(shared.gaps([*of_shared, *worked_out])),
            "",
            0,
        ),
    ]


BENCHES = {
    "supplies": (
        "wrong supplies on every rail, simulated: what the drive gets, at the ends of the tolerances",
        supplies,
    ),
    "limits": ("limits of rig, drive, host, contacts and wires in every study, rail and corner", limits_met),
    "single-faults": (
        "every part of the rails, and of what they share, open and short, simulated (some 8 minutes on two free cores)",
        single_faults,
    ),
}
