"""Run the electrical studies of the rig in ngspice with the values of hardware/values.csv, and draw them.

    python hardware/spice/simulate.py            every study: its measures on stdout, its picture beside the netlist
    python hardware/spice/simulate.py softstart sata_12v c_load=3e-4

A study is a netlist of this folder. Its parameters are the rows of one rail (and of "all") in values.csv and its own
`.param` line; both can be changed for a run by name, and a name that is nowhere is an error. The pictures are of the
rail and changes in drawn.py.
"""

import csv
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from drawn import PICTURES, SIZES

HERE = Path(__file__).resolve().parent
LIMIT_s = 600  # of CPU time; a study takes seconds
REACHED = "ssdrig: all commands of the study were carried out"  # its script says so where it writes its curves
STUCK = "Timestep too small"  # at a point that other steps get past
STEPS = ("", ".options reltol=1e-4\n", ".options trtol=1\n")  # tried in this order where it is stuck
FAILED = r"simulation(\(s\))? aborted|Timestep too small|fatal|^Error(?!: measure)"  # in what ngspice says


def values(rail: str) -> dict[str, float]:
    """Rows "all" and `rail` of values.csv by name, SI units. Raises KeyError for a rail that is not in it."""
    with open(HERE.parent / "values.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    if rail not in {row["rail"] for row in rows} - {"all"}:
        raise KeyError(f"no rail {rail} in values.csv")
    return {row["name"]: float(row["value"]) for row in rows if row["rail"] in ("all", rail)}


def breakout() -> dict[str, float]:
    """What of the breakout's board differs from the rail sata_5v: {name: value}, SI units."""
    with open(HERE.parent / "breakout" / "board" / "values.csv", newline="") as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


def netlist(study: str, rail: str, changes: dict[str, float | str]) -> tuple[str, str]:
    """(text of the study with its changed .param line, .param lines of the values). Raises KeyError for an unknown
    name."""
    params = values(rail)
    text = (HERE / f"{study}.cir").read_text()
    for name, value in changes.items():
        if name in params:
            params[name] = value
            continue
        text, count = re.subn(rf"^(\.param\b.*?\b{name}=)(\S+)", rf"\g<1>{value}", text, flags=re.MULTILINE)
        if count != 1:
            raise KeyError(f"{name} is neither in values.csv for {rail} nor in a .param line of {study}.cir")
    return text, "".join(f".param {name}={value}\n" for name, value in params.items())


SHORTEST_us, DEAD_us = (
    2,
    50,
)  # of a pulse or gap of the crowbar; from the opening of the series switch to the first pulse


def pulses(fall_us: float, tau_us: float) -> list[tuple[float, float]]:
    """(start, end) of the crowbar's pulses in a ramp, in us after the series switch has opened; the last one has no end
    (inf).

    The rule of firmware/ramp.py, not its code: a pulse of -tau ln(1 - f) takes the fraction f of the voltage, so pulse
    k ends when (1 - f)^k of fall_us is left; from tau_us on, or where no gap is left, the crowbar stays closed. fall_us
    is at least 3 tau_us; f is 1/8 to 1/32, the least with a pulse of 2 us or more.
    """
    f = 1 / max(n for n in (8, 16, 32) if n == 8 or tau_us // n >= SHORTEST_us)
    width, left = -tau_us * math.log(1 - f), fall_us * (1 - f)
    start = max(fall_us - left - width, DEAD_us)
    made = [(start, start + width)]
    while left > tau_us and left * f - width >= SHORTEST_us:
        left *= 1 - f
        gap = left * f / (1 - f) - width
        start = made[-1][1] + gap
        made.append((start, start + width))
    return [*made[:-1], (made[-1][0], math.inf)]


def pulses_source(text: str, params: dict[str, float | str]) -> str:
    """The voltage source of study ramp: its pulses from 1 ms on, for the capacitance that the command assumes."""
    given = {
        name: float(re.search(rf"\b{name}=(\S+)", text)[1].replace("m", "e-3")) for name in ("fall_time", "assumed")
    }
    points = ["0 0"]
    tau = float(params["crowbar_said"]) * given["assumed"]
    for start, end in pulses(given["fall_time"] * 1e6, tau * 1e6):
        points += [f"{1e-3 + start * 1e-6:.9f} 0", f"{1e-3 + start * 1e-6 + 1e-8:.9f} {params['logic']}"]
        if end < math.inf:
            points += [f"{1e-3 + end * 1e-6:.9f} {params['logic']}", f"{1e-3 + end * 1e-6 + 1e-8:.9f} 0"]
    return "Vpulses pulses 0 pwl(\n+ " + "\n+ ".join(points) + ")\n"


def ngspice(
    study: str,
    rail: str,
    more: str,
    edit: Callable[[str], str],
    changes: dict[str, float | str],
    draw: bool,
    after: str = "",
) -> tuple[dict[str, float], list[str]]:
    """(measures, lines of curves.txt, none unless `draw`). Raises RuntimeError unless ngspice came to the study's last
    commands: a simulation that is cut short would lack measures and say nothing."""
    text, params = netlist(study, rail, changes)
    # writing the curves takes time
    last = f"{after}echo {REACHED}\n"
    text = re.sub(r"^(wrdata .*)\n", lambda line: line[0] + last if draw else last, text, flags=re.M)
    with tempfile.TemporaryDirectory(prefix="ssdrig-spice-") as folder:
        place = Path(folder)
        library = edit((HERE / "rig.lib").read_text())
        (place / "rig.lib").write_text(f"* rail {rail}\n{params}{library}")
        if "pulses.inc" in text:
            (place / "pulses.inc").write_text(pulses_source(text, values(rail) | changes))
        words = ["sh", "-c", f"ulimit -t {LIMIT_s}; exec ngspice -b {study}.cir"]
        for options in STEPS:
            (place / f"{study}.cir").write_text(text.replace(".control", more + options + ".control", 1))
            done = subprocess.run(words, cwd=place, capture_output=True, text=True)
            output = done.stdout + done.stderr
            if STUCK not in output:
                break
        measured = {name: float(value) for name, value in re.findall(r"^(\w+)\s+=\s+([-+.\deE]+)", output, re.M)}
        if REACHED not in done.stdout.splitlines() or re.search(FAILED, output, re.M | re.I):
            raise RuntimeError(f"ngspice could not run {study}.cir for {rail}:\n{output[-3000:]}")
        return measured, (place / "curves.txt").read_text().splitlines() if draw else []


def measured(
    study: str,
    rail: str = "m2_3v3",
    more: str = "",
    edit: Callable[[str], str] = str,
    after: str = "",
    **changes: float | str,
) -> dict[str, float]:
    """Run a study: {measure: value}; a measure that was not reached is missing. more: lines that the study gets too;
    edit: what is done to rig.lib, for a fault in it; after: commands on its curves, which cost the simulation nothing.
    Raises RuntimeError with ngspice's words when it failed."""
    return ngspice(study, rail, more, edit, changes, draw=False, after=after)[0]


def run(
    study: str, rail: str = "m2_3v3", **changes: float | str
) -> tuple[dict[str, float], list[str], list[list[float]]]:
    """Run a study: (what measured() gives, names of the curves, rows of the curves; the first column is time in s, or
    the swept current in A). Raises as measured() does."""
    figures, lines = ngspice(study, rail, "", str, changes, draw=True)
    return figures, lines[0].split(), [[float(x) for x in line.split()] for line in lines[1:]]


# ---- pictures

COLOURS = ("#0b5fa5", "#c0392b", "#2e7d32", "#8e44ad", "#b9770e")
WIDTH, HEIGHT, LEFT, TOP, POINTS = 760, 240, 70, 40, 500  # of one panel, pixels


def curve(study: str, rail: str, changes: dict, name: str, left: float, right: float, cache: dict) -> list[float]:
    """The curve at POINTS times from left to right (s), interpolated."""
    key = (study, rail, tuple(changes.items()))
    _, names, rows = cache[key] = cache.get(key) or run(study, rail, **changes)
    column, at, values_ = names.index(name), 0, []
    for k in range(POINTS):
        t = left + (right - left) * k / (POINTS - 1)
        while at < len(rows) - 2 and rows[at + 1][0] < t:
            at += 1
        (t0, y0), (t1, y1) = ((rows[i][0], rows[i][column]) for i in (at, at + 1))
        values_.append(y0 + (y1 - y0) * min(max((t - t0) / (t1 - t0), 0), 1) if t1 > t0 else y1)
    return values_


def steps(low: float, high: float) -> list[float]:
    """About five round numbers between low and high."""
    rough = (high - low) / 5
    size = next(m * 10**e for e in range(-9, 10) for m in (1, 2, 5) if m * 10**e >= rough)
    return [
        round(k * size, 9)
        for k in range(round(low / size - 0.499), round(high / size + 0.499) + 1)
        if low <= k * size <= high * 1.0001
    ]


def picture(study: str) -> str:
    """The SVG of a study."""
    title, panels = PICTURES[study]
    cache: dict = {}
    height = TOP + len(panels) * (HEIGHT + 50)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"'
            ' font-size="12">'
        ),
        f'<rect width="{WIDTH}" height="{height}" fill="white"/><text x="12" y="22" font-size="15">{title}</text>',
    ]
    for n, (left, right, across, unit, traces) in enumerate(panels):
        top, inner = TOP + n * (HEIGHT + 50), WIDTH - LEFT - 130
        curves = [curve(study, rail, changes, name, left, right, cache) for _, rail, changes, name in traces]
        low, high = min(0.0, *(min(c) for c in curves)), max(max(c) for c in curves) * 1.05
        low = 0.0 if low > -0.02 * high else low
        y_of = lambda v: top + HEIGHT * (1 - (v - low) / (high - low))
        scale = {"ms": 1e3, "s": 1, "A": 100}[across]  # drop.cir: 100 A/s from 1 ms on
        start = 1e-3 if across == "A" else 0
        parts.append(f'<rect x="{LEFT}" y="{top}" width="{inner}" height="{HEIGHT}" fill="none" stroke="#999"/>')
        for tick in steps(low, high):
            parts.append(
                f'<path d="M{LEFT} {y_of(tick):.1f}h{inner}" stroke="#ddd"/><text x="{LEFT - 6}"'
                f' y="{y_of(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>'
            )
        for tick in steps((left - start) * scale, (right - start) * scale):
            x = LEFT + inner * ((tick / scale + start) - left) / (right - left)
            parts.append(
                f'<path d="M{x:.1f} {top}v{HEIGHT}" stroke="#ddd"/><text x="{x:.1f}" y="{top + HEIGHT + 16}"'
                f' text-anchor="middle">{tick:g}</text>'
            )
        parts.append(
            f'<text x="12" y="{top + 14}">{unit}</text><text x="{LEFT + inner}" y="{top + HEIGHT + 32}"'
            f' text-anchor="end">{across}</text>'
        )
        for k, ((label, *_), points) in enumerate(zip(traces, curves, strict=True)):
            line = " ".join(f"{LEFT + inner * i / (POINTS - 1):.1f},{y_of(v):.1f}" for i, v in enumerate(points))
            parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[k]}" stroke-width="1.6"/>')
            parts.append(f'<text x="{LEFT + inner + 10}" y="{top + 16 + 18 * k}" fill="{COLOURS[k]}">{label}</text>')
    return "\n".join([*parts, "</svg>\n"])


# ---- tables of README.md


def si(value: float | None, scale: float = 1, digits: int = 3) -> str:
    return "-" if value is None else f"{value * scale:.{digits}g}"


FALLS = tuple(
    (rail, c, power)
    for rail, powers in (("m2_3v3", (0.05, 3)), ("sata_5v", (0.05, 5)), ("sata_12v", (0.05, 25)))
    for _, c in SIZES
    for power in powers
)  # rail, capacitance (F), power of the drive (W)


def fall_row(rail: str, c: float, power: float) -> str:
    """90-10 % and the time to 300 mV in ms after the cut, with the crowbar and without; one line of Markdown."""
    closed = measured("fall", rail, c_load=c, p_load=power, stop=0.06)
    opened = measured("fall", rail, c_load=c, p_load=power, discharge=0, stop=1.5)
    figures = [si(m.get(name), 1e3) for m in (closed, opened) for name in ("fall", "t_300mv")]
    return f"| {rail} | {c * 1e6:g} | {power:g} | {' | '.join(figures)} |"


def fall_table() -> str:
    """All of FALLS; Markdown."""
    lines = [
        (
            "| rail | C, uF | drive, W | crowbar: 90-10 %, ms | crowbar: to 0.3 V, ms | float: 90-10 %, ms | float: to"
            " 0.3 V, ms |"
        ),
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *(fall_row(*case) for case in FALLS)])


def rail_table() -> str:
    """What the tests assert of each rail, in one view; Markdown."""
    lines = [
        (
            "| rail | rise 10-90 %, ms | inrush into load_max, A | FET junction in soft start, C | drop at 3 A (hot), %"
            " | drop at 5 A (hot), % | crowbar pulse, A | its energy at load_max, mJ |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for rail in ("m2_3v3", "sata_5v", "sata_12v", "u2_12v"):
        v = values(rail)
        soft, drop = (
            measured("softstart", rail),
            measured("drop", rail, fet_rds_on_max=v["fet_rds_on_max"] * v["fet_rds_hot_factor"]),
        )
        cut = measured("fall", rail, c_load=v["load_max"], p_load=0)
        figures = (
            soft["rise"] * 1e3,
            soft["inrush"],
            soft["tj"],
            drop["drop_3a"] / v["voltage"] * 100,
            drop["drop_5a"] / v["voltage"] * 100,
            cut["bar_peak"],
            cut["bar_heat"] * 1e3,
        )
        lines.append(f"| {rail} | {' | '.join(si(x) for x in figures)} |")
    return "\n".join(lines)


SUPPLIES_V = (3.7, 4, 4.5, 5, 5.6, 6, 7, 8.4, 9, 12, 13.5, 15, 19, 24)
RISES_s = (1e-6, 1e-5, 1e-4, 5e-3, 0.1)


WRONG_RAILS = ("m2_3v3", "sata_5v", "sata_12v")
LITTLE_F = 2e-5  # at the drive: the least that the lock-out is stated with
SHORT_LEADS_H = 2e-7  # 0.2 m from the supply: the shortest that it is stated with


def too_much_V(rail: str) -> tuple[float, ...]:
    """The wrong supplies that give this rail more than its own voltage, or just that."""
    return tuple(final for final in SUPPLIES_V if final >= values(rail)["voltage"])


def wrong_supply(rail: str, final: float, rise: float, **changes: float | str) -> dict[str, float]:
    """Measures of overvoltage.cir with the lock-out: drive_peak and drive_end in V."""
    protection = (HERE / "protection.lib").read_text()
    return measured("overvoltage", rail, more=protection, final=final, rise=rise, **changes)


# how the logic's own input goes or sags (volts that are left), and when after that (before it: less than 0) a supply
# becomes too high
WAYS_GONE = (
    *({"fall": 1e-5}, {"fall": 1e-3}, {"fall": 0.02}, {"fall": 0.1}),
    *({"fall": 0.02, "rail1_end": left_V} for left_V in (4.0, 3.6, 3.3, 3.0, 2.7, 2.4)),
    {"hot": 1},
)
LATER_s = (-0.02, 1e-4, 1e-3, 4e-3, 7e-3, 9e-3, 1e-2, 3e-2, 4.6e-2)
# nets of the supplies in protection.lib, in shared_board.lib and shared_breakout.lib
ON_BOARD = {"compare": "vgate", "reference": "ovref", "lock5": "lock5"}
ON_BREAKOUT = {"compare": "vgate", "reference": "ovref", "lock5": "vgate"}
LEAK_A = 5e-3  # of D3 at 12 V, hot: 10 mA at most at 40 V and 100 C (Diodes DS23001)
# after the breakout's 12 V have gone, until the gates are empty, by the part of its value that C11 has
GONE_s = {
    1.2: (0.1, 0.3, 0.5, 0.7, 0.9, 1.2, 1.5),
    1.0: (1e-4, 4e-3, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5),
    0.6: (4e-3, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
}


def logic_gone(rail: str, final: float, library: str = "", **changes: float | str) -> dict[str, float]:
    """Measures of logic_gone.cir with the board's supplies: drive_peak and drive_end in V, charge in C.
    library: another text than that of shared_board.lib."""
    shared = _edited(
        library or (HERE / "shared_board.lib").read_text(),
        {
            "Vsense1 rail1 0 {rail1}": "Vsense1 rail1 0 pwl(0 {rail1} {gone} {rail1} {gone + fall} {rail1_end})",
            "Vwarm warm 0 pwl(0 0 30m 0 31m 1)": "Vwarm warm 0 0",
        },
    )
    return measured("logic_gone", rail, more=_joined(ON_BOARD) + shared, edit=_own_gates, final=final, **changes)


def gone_12v(
    rail: str, final: float, held: bool = True, aged: float = 1.0, library: str = "", **changes: float | str
) -> dict[str, float]:
    """Measures of gone_12v.cir on the breakout's board: drive_peak, drive_end and before in V.

    held: with D3 and C11
    aged: the part of its value that C11 has
    library: another text than that of shared_breakout.lib"""
    shared = _edited(
        library or (HERE / "shared_breakout.lib").read_text(),
        {
            "Vsense12 rail12n 0 {rail12}": "Vsense12 rail12n 0 pwl(0 {rail12} 20m {rail12} {20m + fall} 0)",
            "CC11 vgate 0 10u": f"CC11 vgate 0 {{{aged}*input_bulk}} ic={{rail12}}" if held else "",
            "DD3 f12 vgate schottky": "DD3 f12 vgate schottky" if held else "RD3 f12 vgate 1m",
            "Rlogic vgate 0 {ovp_pull_up/2}": "",  # the rail's own pull-ups are there
        },
    )
    return measured("gone_12v", rail, more=_joined(ON_BREAKOUT) + shared, edit=_own_gates, final=final, **changes)


def plugged_in(more: str = "", **changes: float | str) -> dict[str, float]:
    """Measures of plug_in.cir on the breakout's board: surge in A, surge_i2t in A^2 s, c11 in V. more: lines that the
    study gets too"""
    shared = _edited(
        (HERE / "shared_breakout.lib").read_text(),
        {
            "Vsense12 rail12n 0 {rail12}": "Vsense12 rail12n 0 pwl(0 0 0.1m 0 0.101m {rail12})",
            "CC11 vgate 0 10u": "CC11 vgate c11 {input_bulk}\nRC11 c11 0 {input_bulk_esr}",
            # the PTC warms in a second, and has its least resistance until then
            "0.77 + 1e4*max(0, v(melt) - 1)^2": "f1_least",
            ".meas tran pull_up avg v(vgate) from=55m to=60m\n": "",
        },
    )
    return measured("plug_in", "sata_5v", more=shared + more, **(breakout() | changes))


def _joined(nets: Mapping[str, str]) -> str:
    """protection.lib with its supplies on these nets in place of ideal sources."""
    text = (HERE / "protection.lib").read_text()
    for name, net in nets.items():
        pattern = rf"^V{name} (\w+) 0 .*$"
        line = re.search(pattern, text, flags=re.M)
        if line is None:
            raise RuntimeError(f"expected a supply V{name} in protection.lib")
        text = text.replace(line[0], "" if line[1] == net else f"V{name} {line[1]} {net} 0")
    return text


def _edited(text: str, instead_of: Mapping[str, str]) -> str:
    for line, instead in instead_of.items():
        if line not in text:
            raise RuntimeError(f"expected {line} in the shared supplies")
        text = text.replace(line, instead)
    return text


def _own_gates(library: str) -> str:
    """The gates' supply is that of the shared supplies."""
    return library.replace("Vgate vg 0 {gate_supply}", "Vgate vg vgate 0")


def wrong_row(rail: str, c: float) -> list[float]:
    """The most that the drive gets (V) at its peak, by rise time, and in the end, of all wrong supplies."""
    peaks, stays = [], 0.0
    for rise in RISES_s:
        made = [wrong_supply(rail, final, rise, c_load=c) for final in too_much_V(rail)]
        peaks.append(max(m["drive_peak"] for m in made))
        stays = max(stays, *(m["drive_end"] for m in made))
    return [*peaks, stays]


def wrong_table() -> str:
    """wrong_row() of each rail with little and with the usual capacitance; Markdown."""
    lines = [f"| rail | C, uF | {' | '.join(f'{rise * 1e6:g} us' for rise in RISES_s)} | for ever |", "|---" * 8 + "|"]
    for rail in WRONG_RAILS:
        for c in (LITTLE_F, values(rail)["load_typical"]):
            lines.append(f"| {rail} | {c * 1e6:g} | {' | '.join(f'{v:.2f}' for v in wrong_row(rail, c))} |")
    return "\n".join(lines)


TABLES = {"rails": rail_table, "fall": fall_table, "wrong": wrong_table}


def figures(text: str) -> list[float | None]:
    """The numbers in the cells of a Markdown table; None of a cell without."""
    return [None if word == "-" else float(word) for word in re.findall(r"(?<=\| )(?:-|[\d.e+-]+)(?= \|)", text)]


def table_of(text: str, name: str) -> str:
    """A table between its markers. Raises ValueError unless there is one."""
    tables = re.findall(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    if len(tables) != 1:
        raise ValueError(
            f"expected one marker of table {name} in README.md, seen {len(tables)}; do: put <!-- {name} --> and"
            " <!-- end --> there"
        )
    return tables[0]


def off(committed: list[float | None], made: list[float | None], part: float) -> int:
    """How many figures differ by more than this part; all of them where their number differs."""
    if len(committed) != len(made):
        return max(len(committed), len(made))
    return sum(
        (a is None) != (b is None) or (a is not None and abs(a - b) > part * abs(b)) for a, b in zip(committed, made)
    )


def table_differs(text: str, name: str, part: float) -> int:
    """How many figures of a committed table its studies do not give."""
    return off(figures(table_of(text, name)), figures(TABLES[name]()), part)


def with_tables(text: str) -> str:
    """README.md with the tables between its markers made anew."""
    for name, table in TABLES.items():
        text = text.replace(table_of(text, name), table())
    return text


def main(words: list[str]) -> int:
    if words:
        changes = dict(word.split("=", 1) for word in words if "=" in word)
        study, *rails = (word for word in words if "=" not in word)
        for name, value in measured(study, *rails, **changes).items():
            print(f"{name:12} {value:.4g}")
        return 0
    for study in PICTURES:
        (HERE / f"{study}.svg").write_text(picture(study))
        print(f"wrote {study}.svg", file=sys.stderr)
    readme = HERE / "README.md"
    readme.write_text(with_tables(readme.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
