"""ssdrig rig: put the firmware on a board, see what it measures, calibrate it, switch the drive's supply."""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from ssdrig import latch
from ssdrig.arguments import old, seconds
from ssdrig.errors import RigError, UsageError
from ssdrig.meter import calibration
from ssdrig.progress import Progress
from ssdrig.rig import calibrate, flash, ports, switch_command
from ssdrig.rig.session import Session, session

BACK_S = 15.0  # a board may take so long from the start of main.py to its hello
NOISE_S = 10.0
FIRST_S = 1.0  # within it each rail that is there has sent something
NOISY = 2.0  # times the typical noise: worth a word


EXAMPLES = (
    ("rig flash", "put the firmware on a new board"),
    ("rig info --time 10s", "rails, rates, noise, clock, calibration"),
    ("rig cut --profile crowbar --off 500ms --random 5ms 2s", "cut the drive's power at a random moment"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Each word after `rig` is a parser of its own, which names its function as `act`."""
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)

    def add(name, act, help_words):
        sub = words.add_parser(name, help=help_words, description=help_words)
        ports.add_argument(sub)
        sub.set_defaults(act=act)
        return sub

    sub = add("flash", _flash, "put the firmware on a board that runs MicroPython, verify it, start it")
    sub.add_argument(
        "--replace", action="store_true", help="also if the board has another program's main.py, which is lost"
    )
    sub = add("info", _info, "show the board, its rails, rates, noise, clock error, losses and calibration")
    sub.add_argument(
        "--time", dest="seconds", type=seconds, default=3.0, metavar="TIME", help="how long to measure (default 3s)"
    )
    old(sub, "--seconds", "seconds", type=float)
    sub.add_argument("--json", action="store_true", help="print one JSON object")
    sub = add(
        "calibrate",
        _calibrate,
        "calibrate a rail at two points against a reference meter, step by step; the result is kept on the board",
    )
    sub.add_argument("--rail", type=int, default=0, metavar="N", help="number of the rail (default 0)")
    sub.add_argument("--quantity", choices=("V", "I", "VI"), default="VI", help="voltage, current or both (default)")
    sub.add_argument(
        "--noise",
        action="store_true",
        help=f"measure noise and drift instead, for {NOISE_S:g} s with nothing connected",
    )
    sub.add_argument(
        "--readings",
        type=Path,
        metavar="FILE",
        help="take the figures from a file instead of asking (JSON, see hardware/calibration.md)",
    )
    sub.add_argument("--forget", action="store_true", help="remove the rail's calibration from the board instead")
    sub.add_argument("--json", action="store_true", help="print what was kept as one JSON object")
    switch_command.subcommands(words)


def command(args: argparse.Namespace) -> int:
    """Carry out one word. Raises UsageError, RigError, ToolMissing."""
    return args.act(args) or 0


def _say(text: str) -> None:
    Progress().say(text)


def _waiting():
    """What shows a person that something goes on; a log is not told."""
    return Progress(quiet=not sys.stderr.isatty()).show


# ---- flash


def _flash(args: argparse.Namespace) -> int:
    port = ports.find(args.port)
    flash.flash(port, _say, args.replace)
    deadline = time.monotonic() + BACK_S
    while True:
        try:
            with session(port, stream=False, timeout_s=3.0) as here:
                time.sleep(0.2)
                for line in here.logs():
                    _say(f"the board says: {line}")
                print(about(port, here.hello))
            return 0
        except (RigError, UsageError) as error:  # it may still be starting, or be away from USB for a moment
            if time.monotonic() > deadline:
                raise RigError(
                    "the firmware to answer after the copy",
                    error.seen,
                    f"look at what it prints: mpremote connect {port}; Ctrl-C, Ctrl-D",
                ) from error
            time.sleep(0.3)


def about(port: str, hello: dict) -> str:
    """The hello in words, one line and one more per rail."""
    return "\n".join([board(port, hello), *map(described, hello["rails"])])


def board(port: str, hello: dict) -> str:
    """The board in one line."""
    simulated = " (SIMULATED)" if hello.get("simulated") else ""
    return (
        f"{port}: {hello['board']}{simulated}, serial {hello.get('serial', '?')}, firmware {hello['firmware']},"
        f" protocol {hello['protocol']}"
    )


def described(rail: dict) -> str:
    """A rail of the hello in one line."""
    bus = f" on {rail['bus']}" if rail.get("bus") else ""
    return (
        f"  rail {rail['rail']} {rail['name']}: {rail['chip']}{bus}, shunt {rail['shunt_uOhm'] / 1000:g} mOhm, current"
        f" LSB {rail['current_lsb_pA'] / 1e6:g} uA, one conversion set {rail['conversion_ns'] / 1000:g} us,"
        f" {calibrated(rail)}"
    )


def calibrated(rail: dict) -> str:
    """When and by what a rail was calibrated, in words."""
    kept = calibration.kept(rail)
    done = [
        f"{q} calibrated {kept[q].get('date', '?')} by {kept[q].get('meter', '?')}" for q in ("V", "I") if kept.get(q)
    ]
    return ", ".join(done) or "not calibrated"


# ---- info


def _info(args: argparse.Namespace) -> int:
    if not 0.5 <= args.seconds <= 600:
        raise UsageError("--time from 0.5 s to 600 s", f"{args.seconds:g} s", "correct it")
    port = ports.find(args.port)
    with session(port, show=_waiting()) as here:
        found = info(here, args.seconds)
    if args.json:
        print(json.dumps({"port": port, **found}))
        return RigError.exit_code if found["silent_rails"] else 0
    print(board(port, here.hello))
    for row in found["rails"]:
        print(described(here.rail(row["rail"])))
        print(
            f"    {row['V_mean']:.4f} V, {1e3 * row['I_mean']:.3f} mA,"
            f" {milliwatts(row['P_mean_W'], row['P_uncertainty_W'])}"
        )
        typical = f" (chip's typical {1e6 * row['I_typical']:.0f})" if row["I_typical"] else ""
        given_up = f", {row['given_up']} of them given up to read the accumulators" if row["given_up"] else ""
        rate = f"{row['rate_per_s']:.1f} samples/s of nominal {row['rate_nominal_per_s']:.1f}"
        print(f"    {rate}, {row['lost']} lost{given_up}; noise {1e6 * row['I_sd']:.0f} uA rms{typical}")
        if row["closure_percent"] is not None:
            print(
                f"    energy closes to {row['closure_percent']:+.3f} % (the chip resolves"
                f" {row['closure_resolution_percent']:.3f})"
            )
    if len(found["rails"]) > 1 and found["total"]:
        print(f"  together: {milliwatts(found['total']['P_mean_W'], found['total']['P_uncertainty_W'])}")
    clock = found["clock"]
    print(
        f"  clock: sample times good to {clock['bound_us']:.0f} us, board's crystal {clock['rate_ppm']:+.1f} ppm,"
        f" {clock['pings']} pings"
    )
    for line in found["logs"]:
        print(f"  the board says: {line}")
    for words in found["warnings"]:
        _say(f"warning: {words}")
    return RigError.exit_code if found["silent_rails"] else 0


def milliwatts(watts: float, uncertainty_W: float | None) -> str:
    """A mean power in words, with its expanded uncertainty where that is known."""
    error = "uncertainty unknown" if uncertainty_W is None else f"+- {1e3 * uncertainty_W:.2f} (k = 2)"
    return f"{1e3 * watts:.2f} mW {error}"


def info(here: Session, seconds: float) -> dict:
    """What `rig info --json` prints, without the port: the hello, `rails` (per rail rates, means, noise, losses,
    samples at the sensor's limit, closure), `total` (of all rails), `silent_rails` (numbers of those that deliver
    nothing; there is no total then), `clock`, `frames_lost`, `damaged`, `logs`, `unknown` (latch.py), `warnings`.
    Raises RigError if a rail goes meanwhile."""
    deadline = time.monotonic() + FIRST_S
    while here.rig.silent_rails() and time.monotonic() < deadline:
        time.sleep(0.05)
    silent = [rail["rail"] for rail in here.rig.silent_rails()]
    unknown = latch.of_rig(latch.name_of(here.hello, here.rig.port))
    readings = here.readings([rail["rail"] for rail in here.hello["rails"] if rail["rail"] not in silent], seconds)
    rows, warnings = (
        [],
        [
            f"rail {n} ({here.rail(n)['name']}): no samples; is its sensor there, and wired as firmware/board.py says?"
            for n in silent
        ],
    )
    if unknown:
        warnings.append(f"the bench is UNKNOWN: {latch.in_words(unknown)}; look, then ./ssdrig rig clear")
    for number, reading in readings.items():
        rail, power, (v_scale, v_offset, i_scale, i_offset) = (
            reading.rail,
            reading.power,
            calibration.scales(reading.rail),
        )
        volts = reading.raw_V * (v_scale / (rail["vbus_lsb_nV"] * 1e-9)) + v_offset
        amperes = reading.raw_A * (i_scale / (rail["current_lsb_pA"] * 1e-12)) + i_offset
        watts, span_s = float((volts * amperes).mean()), float(reading.t_ns[-1] - reading.t_ns[0]) * 1e-9
        kept = calibration.kept(rail)
        clipped = power.clipped_in(reading.t_ns[0], reading.t_ns[-1] + 1)[0]
        uncertainty_W = calibration.power_uncertainty(rail, float(volts.mean()), watts)
        rows.append(
            {
                "rail": number,
                "name": rail["name"],
                "chip": rail["chip"],
                "samples": len(volts),
                "lost": power.lost,
                "rate_per_s": (len(volts) - 1) / span_s,
                "V_mean": float(volts.mean()),
                "V_sd": float(volts.std(ddof=1)),
                "I_mean": float(amperes.mean()),
                "I_sd": float(amperes.std(ddof=1)),
                "I_pp": float(np.ptp(amperes)),
                "I_typical": calibration.expected_noise(rail),
                "P_mean_W": watts,
                "P_uncertainty_W": None if clipped or math.isnan(uncertainty_W) else uncertainty_W,
                "clipped": clipped,
                "calibrated": {q: kept[q].get("date") for q in ("V", "I") if kept.get(q)},
                "rate_nominal_per_s": 1e9 / rail["conversion_ns"],
                "given_up": power.closure.instead if power.closure else 0,
                "closure_percent": power.closure.corrected_percent if power.closure else None,
                "closure_resolution_percent": power.closure.resolution_percent if power.closure else None,
            }
        )
        if clipped:
            warnings.append(
                f"rail {number}: {clipped} of {len(volts)} samples are at the sensor's limit: its mean and peaks are"
                " lower bounds; use a smaller shunt"
            )
        if rail.get("calibration") and not kept:
            warnings.append(
                f"rail {number}: the calibration on the board cannot be one and is not applied: rig calibrate --forget,"
                " then anew"
            )
        if kept and kept.get("board") != here.hello.get("serial"):
            warnings.append(
                f"rail {number}: its calibration was made on another board ({kept.get('board')}): calibrate again"
            )
    total = [
        (reading.rail, row["V_mean"], row["P_mean_W"]) for reading, row in zip(readings.values(), rows, strict=True)
    ]
    clock = power.clocks[-1]
    assert clock  # samples of this boot have host time by it
    live = here.rig.live()
    return {
        **{
            name: here.hello.get(name)
            for name in ("board", "serial", "firmware", "protocol", "boot", "simulated", "switch")
        },
        "total": (
            None
            if silent
            else {
                "P_mean_W": sum(row["P_mean_W"] for row in rows),
                "P_uncertainty_W": (
                    None if any(row["P_uncertainty_W"] is None for row in rows) else calibration.sum_uncertainty(total)
                ),
            }
        ),
        "silent_rails": silent,
        "seconds": seconds,
        "rails": rows,
        "frames_lost": power.counts["frames_lost"],
        "damaged": live["damaged"],
        "clock": {"bound_us": float(power.err_ns.max()) / 1000, "rate_ppm": clock.rate_ppm(), "pings": clock.pings},
        "logs": here.logs(),
        "unknown": unknown,
        "warnings": warnings,
    }


# ---- calibrate


def _calibrate(args: argparse.Namespace) -> int:
    if args.noise + args.forget + (args.readings is not None) > 1:
        raise UsageError("one of --noise, --readings, --forget", "several", "do one after the other")
    figures = _figures(args.readings) if args.readings else None
    port = ports.find(args.port)
    if args.forget or figures is not None:
        with session(port, stream=False) as here:
            rail = here.rail(args.rail)
            kept = figures and calibrate.from_figures(figures, rail, here.hello.get("serial", ""), _say)
            here.store_calibration(args.rail, kept)
        return _kept(args, kept)
    with session(port, show=_waiting()) as here:
        rail = here.rail(args.rail)
        _say(about(port, {**here.hello, "rails": [rail]}))
        if args.noise:
            kept = {**calibration.kept(rail), "noise": _noise(here, args.rail), "board": here.hello.get("serial", "")}
        else:
            kept = calibrate.guided(here, args.rail, args.quantity, _ask, _say)
    with session(port, stream=False) as here:
        here.store_calibration(args.rail, kept)
    return _kept(args, kept)


def _kept(args: argparse.Namespace, kept: dict | None) -> int:
    _say(f"rail {args.rail}: kept on the board" if kept else f"rail {args.rail}: the board has no calibration any more")
    if args.json:
        print(json.dumps({"rail": args.rail, "calibration": kept}))
    return 0


def _ask(words: str) -> str:
    _say(words)
    line = sys.stdin.readline()
    if not line:
        raise UsageError(
            "answers on standard input", "its end; nothing was changed", "run it on a terminal, or give --readings FILE"
        )
    return line


def _figures(path: Path) -> dict:
    try:
        figures = json.loads(path.read_text("utf-8"))
        if not isinstance(figures, dict):
            raise ValueError("no object")
    except (OSError, ValueError) as error:
        raise UsageError(f"a JSON object in {path}", str(error), "see hardware/calibration.md") from error
    return figures


def _noise(here: Session, rail: int) -> dict:
    _say(f"noise: nothing may be connected at the drive connector; {NOISE_S:g} s")
    reading = here.readings([rail], NOISE_S + 0.2)[rail]
    found = calibrate.noise(reading)
    typical = found["I_typical"]
    for quantity, unit in (("V", "V"), ("I", "A")):
        mean, sd, pp, allan, drift = (
            1e6 * found[f"{quantity}_{name}"] for name in ("mean", "sd", "pp", "allan_1s", "drift")
        )
        print(
            f"{quantity}: mean {mean:.1f} u{unit}, sd {sd:.1f}, peak to peak {pp:.1f}, Allan deviation at 1 s"
            f" {allan:.2f}, drift {drift:+.2f} u{unit}"
        )
    if typical:
        ratio = found["I_sd"] / typical
        print(
            f"typical of the chip so configured: {1e6 * typical:.1f} uA rms; here {ratio:.2f} times that"
            + (" - NOISY" if ratio > NOISY else "")
        )
        if ratio > NOISY:
            _say("noisier than the chip: was something connected? else look at the supply, the leads and the ground")
    return calibrate.noise_kept(found, reading.rail)
