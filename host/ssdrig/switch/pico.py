"""Taking the drive's power away and giving it back through the rig: arm, cut, wait for the report.

wire.py defines the command and the report of a cut. The rig measures the fall itself and restores power only
once the rail has been low for long enough; a refusal or failure is a RigError here."""

import contextlib
import json
import struct
import time

from ssdrig.base import latch
from ssdrig.base.errors import NotPaired, RailTripped, RigError, SsdrigError, UsageError
from ssdrig.meter import fast, wire
from ssdrig.meter.pico.stream import Rig
from ssdrig.switch import profiles

ANSWER_S = 5.0
REFUSED = "refused"  # prefix of such an error
TOO_OLD = "it is too old"  # of a token that the board does not take
MOST_TOKEN = 0xFFFFFFFF
GIVE_UP_S = 12.0  # the rig's own patience with a residual is 10 s
PATIENCE_S = 30.0  # host time, for the next part of a capture
SETTLE_S = 3.0  # a stream that has just begun does not yet know the rail to be low


# What a closed crowbar may carry: 5 mA are what the pads of a drive without power bear (hardware/limits.csv), the
# rest is what the offset of an INA226 makes of nothing
FED_mA = 10


def is_fed(rail: dict) -> bool:
    """Whether something else than its supply feeds a rail that is off: its entry in the report of a cut. A voltage
    below `residual_mV` does not prove it: 40 mA of a host's PERST# make 0.1 V across the crowbar."""
    return (rail.get("fed_mA") or 0) > FED_mA


def arm_and_cut(
    rig: Rig,
    *,
    rails=(0,),
    profile=profiles.DEFAULT,
    when=None,
    off_ms=None,
    residual_mV=300,
    residual_ms=500,
    scope=None,
    timeout_s=None,
    **own,
) -> dict:
    """Cut the rails' power as in wire.py (when: default now) and wait until it is over. Returns the report C, `ok`
    true.

    own: the profile's own fields (profiles.py); bulk_uF of a ramp follows from the report of a crowbar cut. scope:
    {"gpio", "rate", "before", "after"}, as of scope_now(): the report gets "waveform", as that returns it. Without
    off_ms the rails stay off. timeout_s: longest wait, computed from `when`, off_ms and the profile's times if None; a
    cut after samples waits 60 s. A cut that has not fired by then is called off. The rig's stream must run.
    Raises RigError: refused, not fired, unsafe residual, no answer; after an unsafe residual the rails are still
    off; NotPaired: the rig was not seen to feed the drive of the run."""
    if why := getattr(rig, "unpaired", ""):
        do = "connect the run's drive to this rig, and begin again"
        raise NotPaired("a rig that was seen to feed the drive of this run: no cut is made", why, do)
    when = {"now": True} if when is None else when
    how = {
        "token": 0,
        "rails": list(rails),
        "profile": profile,
        "when": when,
        "off_ms": off_ms,
        "residual_mV": residual_mV,
        "residual_ms": residual_ms,
        **own,
    }
    length = len(_body({**how, "token": MOST_TOKEN}))
    if len(wire.encode(wire.CUT, 0, b"x" * length)) > wire.MAX_COMMAND - 2:
        raise UsageError(f"a cut below {wire.MAX_COMMAND} bytes", f"{length}", "shorten it")
    if timeout_s is None:
        timeout_s = (
            _longest_wait_s(when)
            + (off_ms or 0) / 1000
            + sum(value or 0 for field, value in own.items() if field.endswith("_us")) / 1e6
            + residual_ms / 1000
            + GIVE_UP_S
        )
    for last in (False, False, True):
        try:
            report = _armed(rig, scope, how, timeout_s)
            break
        except RigError as error:
            _call_off(rig)
            if last or TOO_OLD not in error.seen:  # the host stalled after arming: nothing has happened
                raise
    _checked(report, "the cut")
    return report if scope is None else {**report, "waveform": _waveform(rig, scope)}


def _armed(rig: Rig, scope: dict | None, how: dict, timeout_s: float) -> dict:
    """Arm, and send the cut: its report."""
    if scope is not None:
        began_us = _start_scope(rig, {**scope, "trigger": "cut"})
    token = _arm(rig)
    if scope is not None:  # armed after the scope has started: what the picture shows before the cut is still to come
        rig.await_us(began_us + round(_before_s(scope) * 1e6))
    report = _report(rig, wire.CUT, _body({**how, "token": token}), timeout_s)
    if report["token"] != token:
        raise RigError(f"the report of cut {token}", f"that of {report['token']}", "is another program using this rig?")
    times = {name: report.get(name, 0) for name in ("fired_us", "on_us")[: 1 if how["off_ms"] is None else 2]}
    if report.get("ok") and None in times.values():
        do = "put the firmware of this ssdrig on the board: ./ssdrig rig flash"
        raise RigError("the times of a cut that was executed", f"board time {times}", do)
    return report


def _body(how: dict) -> bytes:
    return json.dumps({k: v for k, v in how.items() if v is not None}).encode()


def off(rig: Rig, rails=(0,), profile=profiles.DEFAULT, **how) -> dict:
    """Power off, and known to be off. Like arm_and_cut, immediately and permanently."""
    return arm_and_cut(rig, rails=rails, profile=profile, **how)


def on(rig: Rig, rails=None, unsafe=False) -> dict | None:
    """Power for the rails that are off (None: all); the report, or None if nothing is off.

    Raises RigError: the residual is not known to be low (unsafe True overrides that), a rail did not come back, no
    answer."""
    state = rig.greet().get("switch")
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


def lock_outs(rig: Rig) -> dict[int, int | None]:
    """{rail: mV that it rose to while every lock-out was tripped}, of a rig whose hello has "lock_outs".

    None: too few readings came in the test.

    Every rail loses power meanwhile. Raises RigError: refused, a rail that did not fall, no answer."""
    report = _report(rig, wire.LOCK_OUTS, json.dumps({"token": _arm(rig)}).encode(), GIVE_UP_S)
    return {row["rail"]: row["mV"] for row in _checked(report, "the test of the lock-outs").get("lock_outs") or ()}


def restore(rig: Rig) -> None:
    """See that no rail is off, and give power back to those that are. A board without a switch has none to see.

    Raises RigError: the board does not answer, or a rail did not come back."""
    if not _off(rig):
        return
    on(rig)
    if left := _off(rig):
        raise RigError("power on every rail", f"rails {left} still off", "look at the rail: ./ssdrig rig info")


def _off(rig: Rig) -> list[int]:
    """Rails without power, by the hello of now: asked for three times, because this is worth more than a lost
    answer."""
    for _ in range(2):
        with contextlib.suppress(RigError):
            return off_of(rig.greet(ANSWER_S))
    return off_of(rig.greet(ANSWER_S))


def off_of(hello: dict) -> list[int]:
    """Rails without power; none of a board without a switch."""
    return (hello.get("switch") or {}).get("off") or []


def scope_now(rig: Rig, gpio=26, rate=500_000, before=0, after=4000) -> dict | list[dict]:
    """A rail's voltage from now on, by the board's ADC: {"rail", "t0_us" (board time of the first sample), "dt_ns",
    "volts": list}; of the current's converter of a front end "amps" instead.

    gpio: a list: one such picture for each, the rate is that of all together. RigError: refused, or the picture did not
    come whole."""
    scope = {"gpio": gpio, "rate": rate, "before": before, "after": after}
    _start_scope(rig, {**scope, "trigger": "now"})
    return _waveform(rig, scope)


def _start_scope(rig: Rig, how: dict) -> int:
    """The board's time, us, by which it has started. RigError if the board refuses."""
    kind, body = rig.ask(
        wire.SCOPE, json.dumps(how).encode(), (wire.HELLO, wire.REFUSED), ANSWER_S, "the scope to start"
    )
    if kind == wire.REFUSED:
        raise _refusal(body)
    return rig.await_us(0)


def _before_s(scope: dict) -> float:
    """How long the part of the picture before the event takes; samples are counted for each input."""
    inputs = len(scope["gpio"]) if isinstance(scope["gpio"], list) else 1
    return scope["before"] * inputs / scope["rate"]


def _waveform(rig: Rig, scope: dict) -> dict | list[dict]:
    """The W frames since the last command, put together as scope_now() returns them."""
    gpios = scope["gpio"] if isinstance(scope["gpio"], list) else [scope["gpio"]]
    wanted = len(gpios) * (scope["before"] + scope["after"])
    came, came_at, came_us, wait_s = 0, time.monotonic(), rig.board_us(), ANSWER_S
    pieces: dict[tuple[int, int], tuple] = {}  # (GPIO, first sample): the frame's content
    while sum(len(piece[3]) for piece in pieces.values()) < wanted:
        time.sleep(0.02)
        for body in rig.heard(wire.WAVEFORM):
            rail, gpio, first, t0_us, dt_ns, n = struct.unpack_from(wire.WAVEFORM_HEAD, body)
            pieces[gpio, first] = (
                rail,
                t0_us,
                dt_ns,
                struct.unpack_from(f"<{n}H", body, struct.calcsize(wire.WAVEFORM_HEAD)),
            )
        now, now_us = time.monotonic(), rig.board_us()
        if len(pieces) > came:
            came, came_at, came_us, wait_s = len(pieces), now, now_us, 1.0
        # by the board's time too, where it goes on: it answers in order, but a busy host reads late
        elif now - came_at > PATIENCE_S or (now - came_at > wait_s and now_us - came_us > 1e6 * wait_s):
            break
    hello = rig.hello()
    assert hello is not None  # the command was answered
    pictures = [_picture_of(gpio, pieces, inputs_of(hello), wanted // len(gpios)) for gpio in gpios]
    return pictures if isinstance(scope["gpio"], list) else pictures[0]


def inputs_of(hello: dict) -> list[dict]:
    """What the scope of a rig with this hello can show: rows with rail, gpio, and nV_per_count or nA_per_count."""
    rows, pair = list(hello.get("scope") or []), fast.facts_of(hello)
    if pair and pair.get("volts") is not None:
        rows.append({"rail": pair["rail"], "gpio": pair["volts"], "nV_per_count": pair["nV_per_count"]})
        rows.append({"rail": pair["rail"], "gpio": pair["gpio"], "nA_per_count": pair["nA_per_count"]})
    if gate := hello.get("gate_supply"):
        rows.append({"rail": None, "gpio": gate["gpio"], "nV_per_count": gate["nV_per_count"]})
    return rows


def _picture_of(gpio: int, pieces: dict, rows: list[dict], wanted: int) -> dict:
    """One input's. rows: inputs_of()."""
    counts: list[int] = []
    mine = {first: piece for (channel, first), piece in pieces.items() if channel == gpio}
    for first in sorted(mine):
        if first != len(counts):
            raise RigError(
                f"a picture of {wanted} samples", f"{len(counts)} without a gap", "repeat; frames were lost on the way"
            )
        counts += mine[first][3]
    of = [row for row in rows if row["gpio"] == gpio]
    if not counts or not of:
        raise RigError(f"a picture of {wanted} samples", "none", "repeat; frames were lost on the way")
    rail, t0_us, dt_ns, _ = mine[0]
    unit, name = ("amps", "nA_per_count") if "nA_per_count" in of[0] else ("volts", "nV_per_count")
    return {"rail": rail, "t0_us": t0_us, "dt_ns": dt_ns, unit: [c * of[0][name] * 1e-9 for c in counts]}


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
    return RigError(f"the rig to execute `{no['command']}`", f"{REFUSED}: {no['why']}", "correct that and repeat")


def _checked(report: dict, what: str) -> dict:
    if not report["ok"]:
        raise RigError(
            f"{what} as asked",
            report["why"] + "".join(f"; rail {r['rail']}: {r['residual_mV']} mV" for r in report["rails"]),
            "look at the rail: ./ssdrig rig info; when it is low: ./ssdrig rig on",
        )
    return report


def unless_on(rig: Rig, why: str, drive: str | None = None, within_s: float = SETTLE_S, were_off=()) -> None:
    """Power was to be on, except the rails that `were_off` before: see that it is, in the next `within_s` seconds. If
    not, the bench is unknown from now on (latch.py), for the reason `why`. Raises RigError if that cannot be stored."""
    deadline, seen = time.monotonic() + within_s, "the rig does not answer"
    while True:
        try:
            now_off = [n for n in off_of(rig.greet(1.0)) if n not in were_off]
            if not now_off:
                return
            seen = f"rails {now_off} are off"
        except RailTripped as error:
            latch.put(latch.name_of(rig.hello() or {}, rig.port), f"{error.seen}; {why}", drive)
            return
        except SsdrigError as error:
            seen = f"the rig does not answer ({error.seen})"
        if time.monotonic() > deadline:
            latch.put(latch.name_of(rig.hello() or {}, rig.port), f"{seen}; {why}", drive)
            return
        time.sleep(0.1)


def _call_off(rig: Rig) -> None:
    """A cut that may still fire must not."""
    try:
        rig.ask(wire.ON, b'{"call_off": true}', (wire.CUT_REPORT, wire.REFUSED), 1.0, "an answer")
    except RigError:
        pass  # what brought us here is stated


def _longest_wait_s(when: dict) -> float:
    if "random_us" in when:
        return when["random_us"][1] / 1e6
    if "edge" in when:
        return when["timeout_ms"] / 1000
    if "samples" in when:
        return 60.0 + when.get("after_us", (0, 0))[1] / 1e6
    return 500.0 if "t_us" in when else 0.0
