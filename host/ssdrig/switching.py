"""Taking the drive's power away and giving it back through the rig: arm, cut, wait for the report; `ssdrig rig
on|off|cut|scope`.

What a cut may say and what its report says is in wire.py. The rig measures the fall itself and gives power back only
once the rail has been low for long enough; what it refuses or could not do is a RigError here."""

import argparse
import json
import math
import struct
import sys
import time
from pathlib import Path

from ssdrig import wire
from ssdrig.errors import RigError, UsageError
from ssdrig.rig import Rig

ANSWER_S = 5.0
GIVE_UP_S = 12.0  # the rig's own patience with a residual is 10 s
SETTLE_S = 3.0  # a stream that has just begun does not yet know the rail to be low
EDGE_AT_MOST_MS = 60_000


def arm_and_cut(
    rig: Rig,
    *,
    rails=(0,),
    profile="crowbar",
    when=None,
    off_ms=None,
    glitch_us=None,
    fall_us=None,
    bulk_uF=None,
    residual_mV=300,
    residual_ms=500,
    scope=None,
    timeout_s=None,
) -> dict:
    """Cut the rails' power as wire.py says (when: default now) and wait until it is over: the report C, `ok` true.

    fall_us, bulk_uF (a list, one for each rail) belong to a ramp; bulk_uF() tells the latter from the report of a
    crowbar. scope: {"gpio", "rate", "before", "after"}, as of scope_now(): the report gets "waveform", as that returns
    it. Without off_ms the rails stay off. timeout_s: at most so long, reckoned if None from `when` and off_ms; a cut
    after samples waits 60 s. A cut that has not fired by then is called off. The rig's stream must run.
    Raises RigError: refused, not fired, unsafe residual, no answer; after an unsafe residual the rails are still
    off."""
    when = {"now": True} if when is None else when
    if scope is not None:
        _start_scope(rig, {**scope, "trigger": "cut"})
    token = _arm(rig)
    how = {
        "token": token,
        "rails": list(rails),
        "profile": profile,
        "when": when,
        "off_ms": off_ms,
        "residual_mV": residual_mV,
        "residual_ms": residual_ms,
        "glitch_us": glitch_us,
        "fall_us": fall_us,
        "bulk_uF": bulk_uF,
    }
    body = json.dumps({k: v for k, v in how.items() if v is not None}).encode()
    if len(wire.encode(wire.CUT, 0, body)) > wire.MAX_COMMAND - 2:
        raise UsageError(f"a cut below {wire.MAX_COMMAND} bytes", f"{len(body)}", "shorten it")
    if timeout_s is None:
        timeout_s = (
            _longest_wait_s(when)
            + (off_ms or 0) / 1000
            + ((glitch_us or 0) + (fall_us or 0)) / 1e6
            + residual_ms / 1000
            + GIVE_UP_S
        )
    try:
        report = _report(rig, wire.CUT, body, timeout_s)
    except RigError:
        _call_off(rig)
        raise
    if report["token"] != token:
        raise RigError(f"the report of cut {token}", f"that of {report['token']}", "is another program using this rig?")
    _checked(report, "the cut")
    return report if scope is None else {**report, "waveform": _waveform(rig, scope)}


def bulk_uF(t90_10_us: float, discharge_mOhm: float) -> float:
    """The capacitance of a rail whose crowbar brought it from 90 to 10 % in this time: t = R C ln 9, for a drive that
    draws little."""
    return t90_10_us / (math.log(9) * discharge_mOhm * 1e-3)


def off(rig: Rig, rails=(0,), profile="crowbar", **how) -> dict:
    """Power off, and known to be off. As arm_and_cut, at once and for good."""
    return arm_and_cut(rig, rails=rails, profile=profile, **how)


def on(rig: Rig, rails=None, unsafe=False) -> dict | None:
    """Power for the rails that are off (None: all); the report, or None if nothing is off.

    Raises RigError: the residual is not known to be low (unsafe True overrides that), a rail did not come back, no
    answer."""
    state = rig.greet()["switch"]
    if not state:
        raise RigError("a board with a switch", "none", "see hardware/README.md")
    if not state["off"]:
        return None
    body = json.dumps({"rails": list(rails or state["off"]), "unsafe": unsafe}).encode()
    deadline = time.monotonic() + SETTLE_S
    while True:
        try:
            return _checked(_report(rig, wire.ON, body, ANSWER_S), "power to return")
        except RigError as error:
            soon = "not known to be low" in error.seen or "ramp has not ended" in error.seen
            if not soon or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def restore(rig: Rig) -> None:
    """See that no rail is off, and give power back to those that are. A board without a switch has none to see.

    Raises RigError: the board does not answer, or a rail did not come back."""
    if not (rig.greet(ANSWER_S)["switch"] or {}).get("off"):
        return
    on(rig)
    if left := rig.greet(ANSWER_S)["switch"]["off"]:
        raise RigError("power on every rail", f"rails {left} still off", "look at the rail: ./ssdrig rig info")


def scope_now(rig: Rig, gpio=26, rate=500_000, before=0, after=4000) -> dict | list[dict]:
    """A rail's voltage from now on, by the board's ADC: {"rail", "t0_us" (board time of the first sample), "dt_ns",
    "volts": list}.

    gpio: a list: one such picture for each, the rate is that of all together. RigError: refused, or the picture did not
    come whole."""
    scope = {"gpio": gpio, "rate": rate, "before": before, "after": after}
    _start_scope(rig, {**scope, "trigger": "now"})
    return _waveform(rig, scope)


def _start_scope(rig: Rig, how: dict) -> None:
    """RigError if the board refuses."""
    kind, body = rig.ask(
        wire.SCOPE, json.dumps(how).encode(), (wire.HELLO, wire.REFUSED), ANSWER_S, "the scope to start"
    )
    if kind == wire.REFUSED:
        raise _refusal(body)


def _waveform(rig: Rig, scope: dict) -> dict | list[dict]:
    """The W frames since the last command, put together as scope_now() returns them."""
    gpios = scope["gpio"] if isinstance(scope["gpio"], list) else [scope["gpio"]]
    wanted, deadline, came = len(gpios) * (scope["before"] + scope["after"]), time.monotonic() + ANSWER_S, -1
    pieces: dict[tuple[int, int], tuple] = {}  # (GPIO, first sample): what the frame says
    while sum(len(piece[3]) for piece in pieces.values()) < wanted and time.monotonic() < deadline:
        time.sleep(0.02)
        for body in rig.heard(wire.WAVEFORM):
            rail, gpio, first, t0_us, dt_ns, n = struct.unpack_from(wire.WAVEFORM_HEAD, body)
            pieces[gpio, first] = (
                rail,
                t0_us,
                dt_ns,
                struct.unpack_from(f"<{n}H", body, struct.calcsize(wire.WAVEFORM_HEAD)),
            )
        if len(pieces) > came:
            came, deadline = len(pieces), time.monotonic() + 1.0
    pictures = [_picture_of(gpio, pieces, rig.hello()["scope"], wanted // len(gpios)) for gpio in gpios]
    return pictures if isinstance(scope["gpio"], list) else pictures[0]


def _picture_of(gpio: int, pieces: dict, rows: list[dict], wanted: int) -> dict:
    """One input's. rows: "scope" of H."""
    counts = []
    mine = {first: piece for (channel, first), piece in pieces.items() if channel == gpio}
    for first in sorted(mine):
        if first != len(counts):
            raise RigError(
                f"a picture of {wanted} samples", f"{len(counts)} without a gap", "repeat; frames were lost on the way"
            )
        counts += mine[first][3]
    if not counts:
        raise RigError(f"a picture of {wanted} samples", "none", "repeat; frames were lost on the way")
    volts_per_count = next(row["nV_per_count"] for row in rows if row["gpio"] == gpio) * 1e-9
    rail, t0_us, dt_ns, _ = mine[0]
    return {"rail": rail, "t0_us": t0_us, "dt_ns": dt_ns, "volts": [c * volts_per_count for c in counts]}


def _arm(rig: Rig) -> int:
    for last in (False, False, True):  # arming again does no harm
        try:
            kind, body = rig.ask(wire.ARM, b"", (wire.ARMED, wire.REFUSED), ANSWER_S / 3, "the rig to arm")
            break
        except RigError:
            if last:
                raise
    if kind == wire.REFUSED:
        raise _refusal(body)
    return struct.unpack(wire.ARMED_BODY, body)[0]


def _report(rig: Rig, command: int, body: bytes, timeout_s: float) -> dict:
    kind, answer = rig.ask(command, body, (wire.CUT_REPORT, wire.REFUSED), timeout_s, "the rig's report of the switch")
    if kind == wire.REFUSED:
        raise _refusal(answer)
    return json.loads(answer)


def _refusal(body: bytes) -> RigError:
    no = json.loads(body)
    return RigError(f"the rig to carry out `{no['command']}`", f"refused: {no['why']}", "correct that and repeat")


def _checked(report: dict, what: str) -> dict:
    if not report["ok"]:
        raise RigError(
            f"{what} as asked",
            report["why"] + "".join(f"; rail {r['rail']}: {r['residual_mV']} mV" for r in report["rails"]),
            "look at the rail: ./ssdrig rig info; when it is low: ./ssdrig rig on",
        )
    return report


def _call_off(rig: Rig) -> None:
    """A cut that may still fire must not."""
    try:
        rig.ask(wire.ON, b'{"call_off": true}', (wire.CUT_REPORT, wire.REFUSED), 1.0, "an answer")
    except RigError:
        pass  # what brought us here is said


def _longest_wait_s(when: dict) -> float:
    if "random_us" in when:
        return when["random_us"][1] / 1e6
    if "edge" in when:
        return when["timeout_ms"] / 1000
    return 0.0 if "now" in when else 500.0 if "t_us" in when else 60.0


# ---- ssdrig rig on|off|cut|scope


def subcommands(words) -> None:
    """Add on, off, cut and scope to the parsers of `ssdrig rig`; each names its function as `act`."""
    sub = _word(words, "on", _on, "give the drive its power back")
    sub.add_argument(
        "--unsafe", action="store_true", help="also if the rail is not known to have been low for long enough"
    )
    sub = _word(words, "off", _off, "take the drive's power away and see that it is gone: like pulling the plug")
    _how(sub, ("float", "crowbar"))
    sub = _word(words, "cut", _cut, "take the drive's power away as aimed, record the fall, give it back")
    _how(sub, ("float", "crowbar", "ramp", "glitch"))
    sub.add_argument(
        "--off-ms",
        type=int,
        default=1000,
        metavar="MS",
        help="power returns after this, if the rail is low (default 1000)",
    )
    sub.add_argument("--glitch-us", type=int, metavar="US", help="length of a glitch")
    sub.add_argument(
        "--fall-us",
        type=int,
        metavar="US",
        help="of a ramp: from all to nothing, at most 2000000; what the drive draws makes it faster",
    )
    sub.add_argument(
        "--bulk-uF",
        type=int,
        nargs="+",
        metavar="C",
        help="of a ramp: capacitance of each --rail with its drive; a crowbar cut tells it",
    )
    aim = sub.add_mutually_exclusive_group()
    aim.add_argument("--after-us", type=int, metavar="US", help="so long from now (from 2000 on), instead of at once")
    aim.add_argument(
        "--random-us", type=int, nargs=2, metavar=("A", "B"), help="at a random time between A and B from now"
    )
    aim.add_argument("--samples", type=int, metavar="N", help="after N samples in a row above --above-mA")
    aim.add_argument("--edge", choices=("rising", "falling"), help="at an edge of the input --gpio")
    sub.add_argument("--seed", type=int, default=1, help="of --random-us (default 1): the same seed, the same time")
    sub.add_argument("--above-mA", type=float, metavar="MA")
    sub.add_argument("--gpio", type=int, default=20, help="input for --edge (default 20: TRIGGER; 21: ACTIVITY)")
    sub.add_argument(
        "--scope",
        type=Path,
        metavar="CSV",
        help="also write the fall as the board's ADC sees it, 500 kS/s, a ramp slower",
    )
    sub = _word(
        words,
        "scope",
        _scope,
        "a rail's voltage by the board's ADC, as CSV: t_us (board time), V; of several: t_us, rail, V",
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
        "--rate", type=int, default=500_000, help="samples/s: 500000 (default), 250000, 100000, 10000 or 2000"
    )
    sub.add_argument("--samples", type=int, default=4000, help="how many (default 4000)")


def _word(words, name, act, help_words):
    sub = words.add_parser(name, help=help_words, description=help_words)
    sub.add_argument(
        "--port", metavar="PORT", help="serial port of the board (default: the only MicroPython board there is)"
    )
    sub.add_argument(
        "--rail", type=int, action="append", metavar="N", help="number of a rail; several together (default 0; on: all)"
    )
    sub.add_argument("--json", action="store_true", help="print the rig's report as it came")
    sub.set_defaults(act=act)
    return sub


def _how(sub, profiles) -> None:
    sub.add_argument("--profile", choices=profiles, default="crowbar", help="how the rail falls (default crowbar)")
    sub.add_argument("--yes", action="store_true", help="do not ask: what the drive has not made durable may be lost")


def _aim(args: argparse.Namespace, hello: dict) -> dict:
    if args.after_us is not None:
        return {"random_us": [args.after_us, args.after_us], "seed": 0}
    if args.random_us:
        return {"random_us": args.random_us, "seed": args.seed}
    if args.edge:
        return {"edge": args.edge, "gpio": args.gpio, "timeout_ms": EDGE_AT_MOST_MS}
    if args.samples:
        if args.above_mA is None:
            raise UsageError("--above-mA with --samples", "none", "say above which current")
        number = (args.rail or [0])[0]
        lsb_pA = next((r["current_lsb_pA"] for r in hello["rails"] if r["rail"] == number), None)
        if lsb_pA is None:
            raise UsageError("a rail that is measured", f"rail {number}", "see ./ssdrig rig info")
        return {"samples": args.samples, "above_raw": round(args.above_mA * 1e9 / lsb_pA), "rail": number}
    return {"now": True}


def _confirm(args: argparse.Namespace) -> None:
    if args.yes:
        return
    print(
        "the drive loses its power as if the plug were pulled; what it has not made durable may be lost. yes?",
        file=sys.stderr,
    )
    if sys.stdin.readline().strip() != "yes":
        raise UsageError("the word yes, or --yes", "another answer", "nothing was done")


def _with_rig(args: argparse.Namespace, act) -> int:
    from ssdrig import ports
    from ssdrig.rig_session import session

    with session(ports.find(args.port)) as here:
        report = act(here)
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
    return _with_rig(args, lambda here: on(here.rig, args.rail, args.unsafe))


def _off(args: argparse.Namespace) -> int:
    _confirm(args)
    return _with_rig(args, lambda here: off(here.rig, args.rail or [0], args.profile))


def _cut(args: argparse.Namespace) -> int:
    _confirm(args)
    glitch, ramp = args.profile == "glitch", args.profile == "ramp"
    if glitch != (args.glitch_us is not None):
        raise UsageError("--glitch-us with --profile glitch, and only with it", str(args.glitch_us), "correct that")
    if ramp != (args.fall_us is not None) or ramp != (args.bulk_uF is not None):
        raise UsageError(
            "--fall-us and --bulk-uF with --profile ramp, and only with it",
            args.profile,
            "a crowbar cut tells the capacitance",
        )
    off_ms = None if glitch else args.off_ms
    rails = args.rail or [0]

    def act(here):
        scope = None
        if args.scope:
            gpios = [row["gpio"] for row in here.hello["scope"] if row["rail"] in rails]
            if not gpios:
                raise UsageError("--scope with a rail that has an ADC input", f"rails {rails}", "see ./ssdrig rig info")
            scope = {"gpio": gpios, **_picture(args.fall_us or 0, len(gpios))}
        aim = _aim(args, here.hello)
        report = arm_and_cut(
            here.rig,
            rails=rails,
            profile=args.profile,
            when=aim,
            off_ms=off_ms,
            glitch_us=args.glitch_us,
            fall_us=args.fall_us,
            bulk_uF=args.bulk_uF,
            scope=scope,
        )
        if scope:
            args.scope.write_text(csv_of(report.pop("waveform")))
        for line in _learnt(args, report, here.hello["switch"]):
            print(line, file=sys.stderr)
        return report

    return _with_rig(args, act)


def _picture(fall_us: int, inputs: int = 1) -> dict:
    """Rate and samples of a picture that holds the fall: 7500 samples of all inputs, the fastest rate that does."""
    rate = next(r for r in (500_000, 250_000, 100_000, 10_000, 2_000) if fall_us < 1e6 * 6000 / r)
    return {"rate": rate, "before": (1000 if rate > 10_000 else 100) // inputs, "after": 6500 // inputs}


def _learnt(args: argparse.Namespace, report: dict, switch: dict) -> list[str]:
    """What a person wants to know for the next cut."""
    ohms = {row["rail"]: row["discharge_mOhm"] for row in switch["rails"]}
    fell = {row["rail"]: row["t90_10_us"] for row in report["rails"] if row["t90_10_us"]}
    if args.profile == "crowbar":
        return [
            f"rail {n}: falls as {bulk_uF(t, ohms[n]):.0f} uF through {ohms[n] / 1000:g} Ohm (--bulk-uF for a ramp)"
            for n, t in fell.items()
        ]
    if args.profile == "ramp":
        return [f"rail {n}: 90 to 10 % was to take {0.8e-3 * args.fall_us:.2f} ms" for n in fell]
    return []


def _scope(args: argparse.Namespace) -> int:
    return _with_rig(args, lambda here: scope_now(here.rig, args.gpio, args.rate, 0, args.samples // len(args.gpio)))


def csv_of(pictures: list[dict]) -> str:
    """Lines `t_us,V`, of several `t_us,rail,V`, in the order of time; t_us board time with three decimals."""
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
    back = "off" if report["off_us"] is None else f"off for {report['off_us'] / 1000:.3f} ms"
    return "\n".join([*lines, f"fired at board time {report['fired_us']} us; {back}"])
