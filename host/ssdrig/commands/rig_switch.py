"""ssdrig rig on|off|cut|clear|scope: the switch by hand (switch.py)."""

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ssdrig.base import latch, owner
from ssdrig.base.arguments import number, whole
from ssdrig.base.errors import RigError, SsdrigError, UsageError
from ssdrig.meter.pico import ports
from ssdrig.meter.pico.session import session
from ssdrig.switch.pico import SETTLE_S, arm_and_cut, inputs_of, is_fed, off, off_of, on, scope_now, unless_on
from ssdrig.switch.profiles import DEFAULT, PROFILES, Profile

EDGE_AT_MOST_MS = 60_000
SEEN_S = 0.3  # after which samples of a rail that is back have come


def subcommands(words) -> None:
    """Add on, off, cut, clear and scope to the parsers of `ssdrig rig`; each names its function as `act`."""
    sub = _word(words, "on", _on, "restore the drive's power")
    sub.add_argument("--unsafe", action="store_true", help="even if the rail is not known to have been low long enough")
    sub = _word(words, "off", _off, "switch the drive's power off and verify that it is off: like pulling the plug")
    _how(sub, [name for name, profile in PROFILES.items() if not profile.options])
    sub = _word(words, "cut", _cut, "cut the drive's power at a chosen moment, record the voltage, restore it")
    _how(sub, list(PROFILES))
    sub.add_argument(
        "--off",
        dest="off_ms",
        type=whole("ms"),
        default=1000,
        metavar="TIME",
        help="time without power, counted once the rail is low (default 1000ms)",
    )
    _profiles(sub)
    _aims(sub)
    sub.add_argument(
        "--scope",
        type=Path,
        metavar="CSV",
        help="also record the fall with the board's ADC, 500 kS/s (a ramp slower), in a new file",
    )
    sub = _word(words, "clear", _clear, "confirm that you have looked: the bench is no longer unknown")
    sub.add_argument(
        "--serial", metavar="RIG", help="serial of a rig that is not connected (default: the one at --rig)"
    )
    sub = _word(
        words,
        "scope",
        _scope,
        "record a rail's voltage with the board's ADC as CSV: t_us (board time), V; of several rails t_us, rail, V",
    )
    sub.add_argument(
        "--gpio",
        type=int,
        nargs="+",
        default=[26],
        metavar="N",
        help="ADC inputs (default 26: rail 0); several share the rate",
    )
    sub.add_argument(
        "--rate",
        type=int,
        default=500_000,
        metavar="N",
        help="samples/s: 500000 (default), 250000, 100000, 10000 or 2000",
    )
    sub.add_argument("--samples", type=int, default=4000, metavar="N", help="how many (default 4000)")


def _profiles(sub) -> None:
    """The options of each profile."""
    for name, profile in PROFILES.items():
        for option in profile.options:
            several = {"nargs": "+"} if option.each_rail else {}
            words_of_it = f"of {'' if name.endswith('s') else 'a '}{name}: {option.help}"
            kind = whole(option.unit) if option.unit else int
            how = {"dest": option.field, "metavar": option.metavar, "help": words_of_it}
            sub.add_argument(option.flag, type=kind, **how, **several)


def _aims(sub) -> None:
    """When a cut is made."""
    aim, two = sub.add_mutually_exclusive_group(), {"nargs": 2, "metavar": ("A", "B")}
    aim.add_argument(
        "--after", dest="after_us", type=whole("us"), metavar="TIME", help="delay, 2ms or more (default: immediately)"
    )
    aim.add_argument(
        "--random", dest="random_us", type=whole("us"), **two, help="after a random delay between A and B, e.g. 5ms 2s"
    )
    aim.add_argument(
        "--consecutive",
        dest="samples",
        type=int,
        metavar="N",
        help="after N samples in a row above --above, or below --below",
    )
    aim.add_argument("--edge", choices=("rising", "falling"), help="at an edge of the input --gpio")
    sub.add_argument(
        "--above", dest="above_mA", type=number("mA"), metavar="CURRENT", help="threshold of --consecutive, e.g. 300mA"
    )
    sub.add_argument(
        "--below", dest="below_mA", type=number("mA"), metavar="CURRENT", help="threshold of --consecutive"
    )
    sub.add_argument(
        "--then", dest="then_us", type=whole("us"), **two, help="after --consecutive a random delay, 1us to 5s"
    )
    sub.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="random seed of --random and --then (default 1): the same seed gives the same time",
    )
    sub.add_argument(
        "--gpio", type=int, default=20, metavar="N", help="input for --edge (default 20: TRIGGER; 21: ACTIVITY)"
    )


def _word(words, name, act, help_words):
    sub = words.add_parser(name, help=help_words, description=help_words)
    ports.add_argument(sub)
    sub.add_argument(
        "--rail", type=int, action="append", metavar="N", help="rail number; may be repeated (default 0; on: all)"
    )
    sub.add_argument("--json", action="store_true", help="print the rig's report as JSON")
    sub.set_defaults(act=act)
    return sub


def _how(sub, profiles) -> None:
    sub.add_argument("--profile", choices=profiles, default=DEFAULT, help=f"how the rail falls (default {DEFAULT})")
    sub.add_argument(
        "--yes", action="store_true", help="do not ask; data that the drive has not made durable may be lost"
    )


def _aim(args: argparse.Namespace, hello: dict) -> dict:
    if args.after_us is not None:
        return {"random_us": [args.after_us, args.after_us], "seed": 0}
    if args.random_us:
        return {"random_us": args.random_us, "seed": args.seed}
    if args.edge:
        return {"edge": args.edge, "gpio": args.gpio, "timeout_ms": EDGE_AT_MOST_MS}
    if args.samples:
        number = (args.rail or [0])[0]
        lsb_pA = next((r["current_lsb_pA"] for r in hello["rails"] if r["rail"] == number), None)
        if lsb_pA is None:
            raise UsageError("a rail that is measured", f"rail {number}", "see ./ssdrig rig info")
        level_mA = args.below_mA if args.above_mA is None else args.above_mA
        level = {"below_raw" if args.above_mA is None else "above_raw": round(level_mA * 1e9 / lsb_pA)}
        then = {"after_us": args.then_us, "seed": args.seed} if args.then_us else {}
        return {"samples": args.samples, **level, "rail": number, **then}
    return {"now": True}


def _confirm(args: argparse.Namespace) -> None:
    ports.find(args.port)  # without a rig there is nothing to ask about
    if args.yes:
        return
    print(
        "The drive loses its power as if the plug were pulled; data that it has not made durable may be lost.\n"
        'Type "yes" to cut the power:',
        file=sys.stderr,
    )
    if sys.stdin.readline().strip() != "yes":
        raise UsageError("the word yes, or --yes", "another answer", "repeat the command; nothing was done")


def _with_rig(args: argparse.Namespace, act, known: bool = False) -> int:
    """known: refuse while the bench is unknown."""
    with session(ports.find(args.port)) as rig_session:
        if known:
            latch.refuse(latch.name_of(rig_session.hello, rig_session.rig.port))
            rig_session.rig.last_second().refuse_other()
        report = act(rig_session)
    if args.json:
        print(json.dumps(report))
    elif report is None:
        print("all rails have power")
    elif isinstance(report, list):
        print(csv_of(report), end="")
    else:
        print(words_of(report))
    return 0


def _on(args: argparse.Namespace) -> int:
    def act(rig_session):
        try:
            report = on(rig_session.rig, args.rail, args.unsafe)
        except BaseException as error:
            unless_on(rig_session.rig, f"`rig on`: {_reason(error)}")
            raise
        time.sleep(SEEN_S)
        try:
            rig_session.rig.last_second().refuse_other()
        except RigError:
            if report:
                off(rig_session.rig, [row["rail"] for row in report["rails"]])
            raise
        return report

    return _with_rig(args, act)


def _reason(error: BaseException) -> str:
    return error.seen if isinstance(error, SsdrigError) else type(error).__name__


def _off(args: argparse.Namespace) -> int:
    _confirm(args)
    return _with_rig(args, lambda rig_session: off(rig_session.rig, args.rail or [0], args.profile), known=True)


def _cut(args: argparse.Namespace) -> int:
    _confirm(args)
    profile, own = PROFILES[args.profile], _own(args)
    off_ms = None if profile.back_by_itself else args.off_ms
    rails = args.rail or [0]

    def act(rig_session):
        scope = None
        if picture:
            scope = _scope_of(rig_session.hello, rails, profile.lasts_us(own))
        aim = _aim(args, rig_session.hello)
        were_off = off_of(rig_session.hello)
        try:
            report = arm_and_cut(
                rig_session.rig, rails=rails, profile=args.profile, when=aim, off_ms=off_ms, scope=scope, **own
            )
        except BaseException as error:
            unless_on(
                rig_session.rig,
                f"`rig cut`: {_reason(error)}",
                within_s=SETTLE_S + (off_ms or 0) / 1000,
                were_off=were_off,
            )
            raise
        if picture:
            picture.write(csv_of(report.pop("waveform")))
        for line in _learnt(profile, own, report, rig_session.hello.get("switch") or {"rails": []}):
            print(line, file=sys.stderr)
        return report

    with _new_file(args.scope) as picture:
        return _with_rig(args, act, known=True)


@contextlib.contextmanager
def _new_file(path: Path | None) -> Iterator[TextIO | None]:
    """The file of --scope, made before anything is switched: a picture that has no place is lost. It goes again when
    Raises UsageError if it exists or cannot be created."""
    if path is None:
        yield None
        return
    try:
        owner.new(path)
        file = open(path, "x")
    except OSError as error:
        do = "name a file that does not exist, in a folder where you may write"
        raise UsageError("--scope with the name of a new file", f"{path}: {error.strerror}", do) from None
    try:
        with file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _clear(args: argparse.Namespace) -> int:
    rig = args.serial
    if rig is None:
        with session(ports.find(args.port), stream=False) as rig_session:
            if off_now := off_of(rig_session.hello):
                raise RigError("power on every rail", f"rails {off_now} off", "look why, then `./ssdrig rig on`")
            rig = latch.name_of(rig_session.hello, rig_session.rig.port)
    trip = latch.clear(rig)
    if args.json:
        print(json.dumps({"rig": rig, "cleared": trip}))
    else:
        print(f"rig {rig}: " + (f"cleared ({latch.in_words(trip)})" if trip else "there was nothing to clear"))
    return 0


def _picture(lasts_us: int, inputs: int = 1) -> dict:
    """Rate and samples of a picture that holds the fall: 7500 samples of all inputs, the fastest rate that does."""
    rate = next(r for r in (500_000, 250_000, 100_000, 10_000, 2_000) if lasts_us < 1e6 * 6000 / r)
    return {"rate": rate, "before": (1000 if rate > 10_000 else 100) // inputs, "after": 6500 // inputs}


def _scope_of(hello: dict, rails: list[int], lasts_us: int) -> dict:
    """What the scope shows of a cut of these rails: of one with a front end V and I, 28 ms from the cut on. Raises
    UsageError: none of them has an input."""
    rows = [row for row in inputs_of(hello) if row["rail"] in rails]
    both = {row["rail"] for row in rows if "nA_per_count" in row}
    if both and len(rails) == 1:
        pair = [row["gpio"] for row in rows[-2:]]  # after the ADC's inputs
        return {"gpio": pair, "rate": 500_000, "before": 500, "after": 7000}
    gpios = [row["gpio"] for row in hello.get("scope") or [] if row["rail"] in rails]
    if not gpios:
        raise UsageError("--scope with a rail that has an ADC input", f"rails {rails}", "see ./ssdrig rig info")
    return {"gpio": gpios, **_picture(lasts_us, len(gpios))}


def check_cut(args: argparse.Namespace) -> None:
    """Raises UsageError for options of `cut` that do not fit together."""
    _own(args)
    if args.samples:
        if (args.above_mA is None) == (args.below_mA is None):
            raise UsageError("--above or --below with --consecutive", "none or both", "give one current, e.g. 300mA")
    elif (args.above_mA, args.below_mA, args.then_us) != (None, None, None):
        do = "add how many samples: --consecutive N"
        raise UsageError("--above, --below and --then with --consecutive", "no --consecutive", do)


def _own(args: argparse.Namespace) -> dict:
    """The fields of the profile asked for. Raises UsageError: one is missing, or belongs to another."""
    for name, profile in PROFILES.items():
        for option in profile.options:
            if (getattr(args, option.field) is not None) != (name == args.profile):
                flags = " and ".join(option.flag for option in profile.options)
                do = "correct that; `./ssdrig rig cut --help` explains each"
                raise UsageError(f"{flags} with --profile {name}, and only with it", f"--profile {args.profile}", do)
    return {option.field: getattr(args, option.field) for option in PROFILES[args.profile].options}


def _learnt(profile: Profile, own: dict, report: dict, switch: dict) -> list[str]:
    """Notes for the next cut."""
    if profile.learnt is None:
        return []
    mOhm = {row["rail"]: row["discharge_mOhm"] for row in switch["rails"]}
    fell = {row["rail"]: row["t90_10_us"] for row in report["rails"] if row["t90_10_us"]}
    return [f"rail {n}: {profile.learnt(t, mOhm[n], own)}" for n, t in fell.items() if n in mOhm]


def _scope(args: argparse.Namespace) -> int:
    return _with_rig(
        args, lambda rig_session: scope_now(rig_session.rig, args.gpio, args.rate, 0, args.samples // len(args.gpio))
    )


def csv_of(pictures: list[dict]) -> str:
    """Lines `t_us,V`, of several `t_us,rail,V`, in the order of time; of a front end's two `t_us,V,A`; t_us board time
    with three decimals."""
    if amps := next((p["amps"] for p in pictures if "amps" in p), None):
        (of_volts,) = [p for p in pictures if "volts" in p]
        times = (of_volts["t0_us"] + k * of_volts["dt_ns"] / 1000 for k in range(len(amps)))
        pairs = zip(times, of_volts["volts"], amps)
        return "\n".join(["t_us,V,A", *(f"{t:.3f},{v:.5f},{a:.5f}" for t, v, a in pairs)]) + "\n"
    rows = [(p["t0_us"] + k * p["dt_ns"] / 1000, p["rail"], v) for p in pictures for k, v in enumerate(p["volts"])]
    if len(pictures) == 1:
        return "\n".join(["t_us,V", *(f"{t:.3f},{v:.5f}" for t, _, v in rows)]) + "\n"
    return "\n".join(["t_us,rail,V", *(f"{t:.3f},{rail},{v:.5f}" for t, rail, v in sorted(rows))]) + "\n"


def words_of(report: dict) -> str:
    """The report in words, a line each rail."""
    lines = []
    for rail in report["rails"]:
        fall = (
            "did not fall to 10 %" if rail["t90_10_us"] is None else f"90 to 10 % in {rail['t90_10_us'] / 1000:.2f} ms"
        )
        lines.append(
            f"rail {rail['rail']}: {rail['before_mV']} mV, {fall} ({rail['samples']} readings), residual"
            f" {rail['residual_mV']} mV"
        )
        if rail.get("released"):  # older firmware does not report it
            why = f"{rail['released']} ({rail['crowbar_mJ']} mJ)"
            lines.append(f"rail {rail['rail']}: the crowbar let go before power returned: {why}")
        if is_fed(rail):
            lines.append(f"rail {rail['rail']}: fed with {rail['fed_mA']} mA while it was off, by a signal of the host")
    back = "off" if report["off_us"] is None else f"off for {report['off_us'] / 1000:.3f} ms"
    return "\n".join([*lines, f"fired at board time {report['fired_us']} us; {back}"])
