"""ssdrig rig: put the firmware on a board, see its readings, calibrate it, switch the drive's supply."""

import argparse
import json
import math
import sys
import time
from pathlib import Path

from ssdrig.base.arguments import seconds
from ssdrig.base.errors import NoAnswer, RigError, UsageError
from ssdrig.base.progress import Progress
from ssdrig.commands import rig_doctor, rig_switch
from ssdrig.meter import calibration
from ssdrig.meter.pico import ports
from ssdrig.meter.pico.session import Session, session
from ssdrig.rig import answers, builds, calibrate, flash
from ssdrig.rig.info import info, milliwatts, of_load

BACK_S = 15.0  # a board may take this long from the start of main.py to its hello
NOISE_S = 10.0
NOISY = 2.0  # times the typical noise: worth a word


EXAMPLES = (
    ("rig flash", "put the firmware on a new board"),
    ("rig doctor --resistor 10", "test the rig itself and keep its certificate"),
    ("rig info --time 10s", "rails, rates, noise, clock, calibration"),
    ("rig cut --profile crowbar --off 500ms --random 5ms 2s", "cut the drive's power at a random moment"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Each word after `rig` is its own parser, which names its function as `act`."""
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)

    def add(name, act, help_words):
        sub = words.add_parser(name, help=help_words, description=help_words)
        ports.add_argument(sub)
        sub.set_defaults(act=act)
        return sub

    sub = add("flash", _flash, "put the firmware on a board that runs MicroPython, verify it, start it")
    sub.add_argument("--replace", action="store_true", help="replace another program's main.py on the board")
    sub.add_argument("--json", action="store_true", help="print the board's reply as one JSON object")
    sub = add("setup", _setup, "set the board's build: rails, shunts, pins; stored on the board")
    sub.add_argument("--build", metavar="NAME|FILE", help=f"one of {', '.join(builds.names())}, or a file like one")
    sub.add_argument("--fast", metavar="RAIL", type=int, help="that rail has the fast current channel")
    sub.add_argument(
        "--gate-supply", metavar="GPIO[:V]", help="ADC input that is wired to the gates' supply (default 24 V)"
    )
    sub.add_argument("--json", action="store_true", help="print the board's reply as one JSON object")
    sub = add("info", _info, "show the board, its rails, rates, noise, clock error, losses and calibration")
    sub.add_argument(
        "--time", dest="seconds", type=seconds, default=3.0, metavar="TIME", help="how long to measure (default 3s)"
    )
    sub.add_argument(
        "--load", type=float, metavar="OHM", help="resistor at the drive connector: is the shunt as stated?"
    )
    sub.add_argument("--json", action="store_true", help="print one JSON object")
    sub = add(
        "calibrate",
        _calibrate,
        "calibrate a rail's voltage, current and leads against a reference meter; the result is kept on the board",
    )
    sub.add_argument("--rail", type=int, default=0, metavar="N", help="number of the rail (default 0)")
    sub.add_argument(
        "--quantity",
        choices=("V", "I", "R", "VI", "VIR"),
        default="VIR",
        help="voltage, current, resistance of the leads to the drive, or all (default)",
    )
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
    sub.add_argument(
        "--resistor",
        metavar="OHM,PERCENT",
        help="calibrate the current by a resistor of four terminals instead of an ammeter, e.g. 10,0.1",
    )
    sub.add_argument("--forget", action="store_true", help="remove the rail's calibration from the board instead")
    sub.add_argument("--json", action="store_true", help="print the stored calibration as one JSON object")
    rig_doctor.subcommand(words)
    rig_switch.subcommands(words)


def check(args: argparse.Namespace) -> None:
    """Raises UsageError for a port or a file that there is not, and for options that no board could follow."""
    if args.word == "doctor":
        rig_doctor.check(args)
    if args.word == "cut":
        rig_switch.check_cut(args)
    if args.word == "setup":
        if args.build is None:
            raise UsageError(f"--build {', '.join(builds.names())} or FILE", "none", "see hardware/README.md")
        builds.read(args.build)
    if args.word == "info" and not 0.5 <= args.seconds <= 600:
        raise UsageError("--time from 0.5 s to 600 s", f"{args.seconds:g} s", "correct it")
    if args.word == "calibrate":
        others = args.noise + args.forget + (args.readings is not None)
        if others > 1 or (others and args.resistor):
            raise UsageError("one of --noise, --readings, --resistor, --forget", "several", "do one after the other")
        if args.resistor:
            _resistor(args.resistor)
            if "I" not in args.quantity:
                raise UsageError(
                    "--resistor with --quantity I, VI or VIR", args.quantity, "a resistor is for the current"
                )
        if args.readings:
            _figures(args.readings)
    if args.port:
        ports.check_there(args.port)


def command(args: argparse.Namespace) -> int:
    """Run one subcommand. Raises UsageError, RigError, ToolMissing."""
    check(args)
    return args.act(args) or 0


def _say(text: str) -> None:
    Progress().say(text)


def _waiting():
    """A progress message for a terminal; a log gets none."""
    return Progress(quiet=not sys.stderr.isatty()).show


# ---- flash


def _flash(args: argparse.Namespace) -> int:
    port = ports.find(args.port)
    flash.flash(port, _say, args.replace)
    _back(port, "the firmware to answer after the copy", args.json)
    return 0


def _setup(args: argparse.Namespace) -> int:
    build = builds.read(args.build)
    if args.fast is not None:
        build = builds.with_fast(build, args.fast)
    if args.gate_supply is not None:
        build = builds.with_gate_supply(build, args.gate_supply)
    port = ports.find(args.port)
    builds.put(port, build, _say)
    _back(port, "the board to answer as that build", args.json)
    return 0


def _back(port: str, expected: str, as_json: bool) -> None:
    """Print the hello of a restarted board. Raises RigError."""
    deadline = time.monotonic() + BACK_S
    while True:
        try:
            with session(port, stream=False, timeout_s=3.0) as rig_session:
                time.sleep(0.2)
                for line in rig_session.logs():
                    _say(f"the board reports: {line}")
                print(
                    json.dumps({"port": port, "hello": rig_session.hello})
                    if as_json
                    else about(port, rig_session.hello)
                )
            return
        except (RigError, UsageError) as error:  # it may still be starting, or be away from USB for a moment
            if time.monotonic() > deadline:
                raise RigError(
                    expected, error.seen, f"see its output: mpremote connect {port}; Ctrl-C, Ctrl-D"
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
        f" protocol {hello['protocol']}, build {hello.get('build') or 'of board.py'}"
        + "".join(map(clocked, hello.get("buses") or ()))
    )


def clocked(bus: dict) -> str:
    """The clock of a bus, and what the board found wrong with it."""
    slow = f" instead of {bus['asked_Hz'] / 1000:.0f}" if bus["Hz"] < 0.9 * bus["asked_Hz"] else ""
    wrong = f", {bus['errors']} of {bus['read_backs']} REGISTERS READ BACK WRONG" if bus["errors"] else ""
    return f"; {bus['bus']} at {bus['Hz'] / 1000:.0f} kHz{slow}{wrong}"


def described(rail: dict) -> str:
    """A rail of the hello in one line."""
    bus = f" on {rail['bus']}" if rail.get("bus") else ""
    low = f" ({rail['low']['shunt_uOhm'] / 1000:g} in the low range)" if rail.get("low") else ""
    return (
        f"  rail {rail['rail']} {rail['name']}: {rail['chip']}{bus}, shunt {rail['shunt_uOhm'] / 1000:g}{low} mOhm,"
        f" current LSB {rail['current_lsb_pA'] / 1e6:g} uA, one conversion set {rail['conversion_ns'] / 1000:g} us,"
        f" {calibrated(rail)}"
    )


def calibrated(rail: dict) -> str:
    """When and by what a rail was calibrated, in words."""
    stored = calibration.of_rail(rail)
    done = [
        f"{q} calibrated {stored[q].get('date', '?')} by {stored[q].get('meter', '?')}"
        for q in ("V", "I", "lead")
        if stored.get(q)
    ]
    return ", ".join(done) or "not calibrated"


# ---- info


def _info(args: argparse.Namespace) -> int:
    port = ports.find(args.port)
    with session(port, show=_waiting()) as rig_session:
        report = info(rig_session, args.seconds)
        if args.load is not None:
            report["warnings"] += [
                words for row in report["rails"] if (words := of_load(rig_session.rail(row["rail"]), row, args.load))
            ]
    if args.json:
        print(json.dumps({"port": port, **report}))
        return RigError.exit_code if report["silent_rails"] or report["other_supply"] else 0
    print(board(port, rig_session.hello))
    for row in report["rails"]:
        print(described(rig_session.rail(row["rail"])))
        print(
            f"    {row['V_mean']:.4f} V, {1e3 * row['I_mean']:.3f} mA,"
            f" {milliwatts(row['P_mean_W'], row['P_uncertainty_W'])}"
        )
        typical = f" (chip's typical {1e6 * row['I_typical']:.0f})" if row["I_typical"] else ""
        given_up = f", {row['given_up']} of them given up to read the accumulators" if row["given_up"] else ""
        rate = f"{row['rate_per_s']:.1f} samples/s of nominal {row['rate_nominal_per_s']:.1f}"
        seen = f", current seen {100 * row['coverage']:.0f} % of the time" if row["coverage"] else ""
        print(f"    {rate}{seen}, {row['lost']} lost{given_up}; noise {1e6 * row['I_sd']:.0f} uA rms{typical}")
        if row["low_share"] is not None:
            print(f"    {100 * row['low_share']:.0f} % of them in the low range")
        if row["closure_percent"] is not None:
            print(
                f"    the chip's own energy agrees within {row['closure_percent']:+.3f} % (it resolves"
                f" {row['closure_resolution_percent']:.3f})"
            )
    if len(report["rails"]) > 1 and report["total"]:
        print(f"  together: {milliwatts(report['total']['P_mean_W'], report['total']['P_uncertainty_W'])}")
    if of := report["fast"]:
        print(f"  fast channel of rail {of['rail']}, not corrected: {by_fast(of)}")
    clock = report["clock"]
    print(
        f"  clock: samples good to {clock['bound_us']:.0f} us, board's crystal {clock['rate_ppm']:+.1f} +-"
        f" {clock['rate_error_ppm']:.1f} ppm,"
        f" {clock['pings']} pings"
    )
    for line in report["logs"]:
        print(f"  the board reports: {line}")
    for words in report["warnings"]:
        _say(f"warning: {words}")
    return RigError.exit_code if report["silent_rails"] or report["other_supply"] else 0


def by_fast(of: dict) -> str:
    """info.of_fast() in words."""
    if of["I_mean"] is None:
        return "nothing comes"
    limited = f", {of['limited']} of {of['intervals']} peaks AT THE AMPLIFIER'S LIMIT" if of["limited"] else ""
    return (
        f"{1e3 * of['I_mean']:.0f} mA, highest mean of 100 us {1e3 * of['I_peak_100us']:.0f} mA,"
        f" {of['lost']} samples lost{limited}"
    )


# ---- calibrate


def _calibrate(args: argparse.Namespace) -> int:
    figures = _figures(args.readings) if args.readings else None
    resistor = _resistor(args.resistor) if args.resistor else None
    port = ports.find(args.port)
    if args.forget or figures is not None:
        with session(port, stream=False) as rig_session:
            rail = rig_session.rail(args.rail)
            stored = figures and calibrate.from_figures(figures, rail, rig_session.hello.get("serial", ""), _say)
            rig_session.store_calibration(args.rail, stored)
        return _print_stored(args, stored)
    with session(port, show=_waiting()) as rig_session:
        rail = rig_session.rail(args.rail)
        _say(about(port, {**rig_session.hello, "rails": [rail]}))
        if args.noise:
            stored = {
                **calibration.of_rail(rail),
                "noise": _noise(rig_session, args.rail),
                "board": rig_session.hello.get("serial", ""),
            }
        else:
            questions = answers.Questions(_ask, _say, answers.TRIES if sys.stdin.isatty() else 1)
            stored = calibrate.guided(rig_session, args.rail, args.quantity, questions, resistor)
    with session(port, stream=False) as rig_session:
        rig_session.store_calibration(args.rail, stored)
    return _print_stored(args, stored)


def _resistor(text: str) -> calibration.Resistor:
    try:
        ohm, percent = map(float, text.split(","))
    except ValueError:
        ohm = percent = math.nan
    if not (0.5 <= ohm <= 10_000 and 0 < percent <= calibrate.MOST_PERCENT):
        most = f"--resistor OHM,PERCENT: 0.5 to 10000 Ohm of up to {calibrate.MOST_PERCENT:g} %"
        raise UsageError(most, text, "such as 10,0.1")
    return calibration.Resistor(ohm, percent)


def _print_stored(args: argparse.Namespace, stored: dict | None) -> int:
    _say(
        f"rail {args.rail}: kept on the board" if stored else f"rail {args.rail}: the board has no calibration any more"
    )
    if args.json:
        print(json.dumps({"rail": args.rail, "calibration": stored}))
    return 0


def _ask(words: str) -> str:
    _say(words)
    line = sys.stdin.readline()
    if not line:
        do = "run it on a terminal, or give --readings FILE"
        raise NoAnswer(f"an answer on standard input, to: {words.strip()}", "its end; nothing was changed", do)
    return line


def _figures(path: Path) -> dict:
    try:
        figures = json.loads(path.read_text("utf-8"))
        if not isinstance(figures, dict):
            raise ValueError("no object")
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"a JSON object in {path}", str(error), "see hardware/calibration.md") from error
    return figures


def _noise(rig_session: Session, rail: int) -> dict:
    _say(f"noise: nothing may be connected at the drive connector; {NOISE_S:g} s")
    reading = rig_session.readings([rail], NOISE_S + 0.2)[rail]
    noise = calibrate.noise(reading)
    typical = noise["I_typical"]
    for quantity, unit in (("V", "V"), ("I", "A")):
        mean, sd, pp, allan, drift = (
            1e6 * noise[f"{quantity}_{name}"] for name in ("mean", "sd", "pp", "allan_1s", "drift")
        )
        print(
            f"{quantity}: mean {mean:.1f} u{unit}, sd {sd:.1f}, peak to peak {pp:.1f}, Allan deviation at 1 s"
            f" {allan:.2f}, drift {drift:+.2f} u{unit}"
        )
    if typical:
        ratio = noise["I_sd"] / typical
        print(
            f"typical of the chip so configured: {1e6 * typical:.1f} uA rms; here {ratio:.2f} times that"
            + (" - NOISY" if ratio > NOISY else "")
        )
        if ratio > NOISY:
            _say("noisier than the chip: was something connected? else look at the supply, the leads and the ground")
    return calibrate.stored_noise(noise, reading.rail)
