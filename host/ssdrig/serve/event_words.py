"""The words of the page for a run and its events. Pure."""

from collections.abc import Callable
from typing import Any

from ssdrig.base.errors import by_a_person
from ssdrig.meter import calibration
from ssdrig.reading.events import REASONS, ceiling_figures, step_label
from ssdrig.reading.rundata import asked_cut_ns

MOST_WORDS = 300
QUIET = ("clock.anchor", "sums", "smart.start", "witness", "conditions", "run.start", "windows", "host")


def facts(header: dict) -> dict:
    """The facts of run.json."""
    drive, method = header["drive"], header["method"]
    plan: dict[str, Any] = header["plan"] if isinstance(header.get("plan"), dict) else {}
    acts = plan.get("acts")
    return {
        "run": header["run"],
        "model": drive.get("model"),
        "serial": drive.get("serial"),
        "plan": " ".join(str(word) for word in (plan.get("name") or method.get("name"), plan.get("variant")) if word),
        "op_percent": method.get("op_percent"),
        "duration_s": method.get("duration_s"),
        "acts": [str(act)[:120] for act in acts[:2000]] if isinstance(acts, list) else [],
        "simulated": bool(header.get("simulated")),
        "scaled": bool(plan.get("scaled")),
        "dilation": drive.get("time_dilation") or 1,
        "rated_write_bytes": drive.get("rated_write_bytes"),
        "rig": bool(header.get("rig")),
        "review": bool(header.get("review")),
        "cut_off_s": header["cut_off_s"] if _positive(header.get("cut_off_s")) else None,
        "started_utc_ms": (header["started"].get("utc_ns") or 0) // 10**6 or None,
    }


def of_step(event: dict, axis_s: Callable[[int], float | None]) -> dict | None:
    """A step that begins or ends; None of any other event. axis_s: CLOCK_MONOTONIC, ns -> s of the run's axis."""
    if event["kind"] not in ("step.start", "step.end", "run.end"):
        return None
    out = {"t": axis_s(event["t_ns"]), "kind": event["kind"]}
    if event["kind"] == "run.end":
        return out | {"state": event["state"], "why": event.get("why")}
    return out | {
        "label": step_label(event),
        "round": event.get("round"),
        "ok": event.get("ok"),
        "why": event.get("why"),
        "left_s": _range(event.get("left_s")),
    }


def _range(value) -> list[float] | None:
    """Least and most of a forecast, in s."""
    sound = isinstance(value, list) and len(value) == 2 and all(number(end) and 0 <= end < 1e9 for end in value)
    return value if sound else None


def event(event: dict, axis_s: Callable[[int], float | None]) -> list | None:
    """[t, kind, words] for the list of events; None of those that it leaves out."""
    kind = event["kind"]
    if kind in QUIET:
        return None
    at_ns = asked_cut_ns(event) or event["t_ns"]  # a cut is recorded when the power is back
    return [axis_s(at_ns), kind, words(event), rig(event["hello"]) if kind == "rig.hello" else None]


def words(event: dict) -> str:
    """An event in words."""
    return _words(event["kind"], event)[:MOST_WORDS]


def _words(kind: str, event: dict) -> str:
    if kind == "step.start":
        return f"{step_label(event)} begins" + (f", round {event['round']}" if event.get("round") else "")
    if kind == "step.end":
        failed = "is cut short" if by_a_person(event.get("why")) else f"FAILS: {event.get('why')}"
        return f"{step_label(event)} {'ends' if event.get('ok') else failed}"
    if kind == "smart.end":
        reason = REASONS.get(event.get("reason") or "", str(event.get("reason")))
        return f"SMART {reason}" + ("" if event["ok"] else f": FAILED, {event.get('why')}")
    if kind == "rig.hello":
        return f"rig answers, boot {event['hello'].get('boot')}"
    if kind == "load.first_io":
        return f"first I/O of {event.get('step')}"
    if kind == "pairing":
        verdict = str(event.get("verdict")).replace("_", " ")
        return f"rig and drive: {verdict}" + (f": {event['why']}" if event.get("why") else "")
    if kind == "ceiling":
        return f"fio alone, without the drive: {ceiling_figures(event) or event.get('why') or 'not known'}"
    if kind == "note":
        return f"note: {event.get('text')}"
    if kind in ("cut.asked", "cut.dropped"):
        words = "a cut of the power is asked for" if kind == "cut.asked" else "the cut that was asked for is not made"
        return f"{words}: {event['why']}" if event.get("why") else words
    if kind == "cut.fired" and event.get("cut") is None:
        return "power cut from the web" + (f": {event['why']}" if event.get("why") else "")
    if kind == "cut.on" and event.get("cut") is None:
        return f"power is back after {event.get('off_s')} s"
    if kind in ("drive.ready", "drive.missing") and event.get("cut") is None:
        return f"the drive is back after {event.get('ready_s')} s" if kind == "drive.ready" else "the drive is MISSING"
    if kind == "run.end":
        return f"run ends: {event['state']}" + (f", {event['why']}" if event.get("why") else "")
    rest = _plain({key: value for key, value in event.items() if key not in ("t_ns", "kind", "step")})
    return f"{kind.replace('.', ' ')} {event.get('step', '')}".strip() + (f": {rest}" if rest else "")


def _plain(value) -> str:
    """Any value of an event as text: names without underscores, unknown values left out."""
    if isinstance(value, dict):
        return ", ".join(f"{str(key).replace('_', ' ')} {_plain(of)}" for key, of in value.items() if of is not None)
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return {True: "yes", False: "no", None: "–"}[value] if value is None or isinstance(value, bool) else str(value)


def rig(hello: dict) -> dict:
    """The facts of a rig in its hello."""
    rails = hello.get("rails")
    rails = [rail for rail in rails if isinstance(rail, dict)] if isinstance(rails, list) else []
    return {
        **{key: _short(hello.get(key)) for key in ("board", "firmware", "serial", "build", "revision", "protocol")},
        "simulated": bool(hello.get("simulated")),
        "rails": [
            {
                "name": str(rail.get("name") or rail.get("rail"))[:40],
                "chip": str(rail.get("chip"))[:40],
                "samples_per_s": round(1e9 / rail["conversion_ns"]) if _positive(rail.get("conversion_ns")) else None,
                "shunt_mOhm": rail["shunt_uOhm"] / 1000 if _positive(rail.get("shunt_uOhm")) else None,
                "protect": _limits(rail.get("protect")),
                "calibrated": _calibrated(rail),
            }
            for rail in rails[:16]
        ],
        "calibrated": sorted({date for rail in rails for date in _calibrated(rail).values()}),
    }


def _calibrated(rail: dict) -> dict[str, str]:
    """When each quantity of a rail was calibrated, of a calibration that is applied."""
    try:
        stored = calibration.of_rail(rail)
    except (AttributeError, ArithmeticError):  # not from one of our boards
        return {}
    quantities = {quantity: stored.get(quantity) for quantity in ("V", "I", "lead")}
    return {key: str(one.get("date") or "?")[:20] for key, one in quantities.items() if isinstance(one, dict)}


def _limits(quantities) -> str | None:
    """Beyond what the rig opens a rail, in words."""
    if not isinstance(quantities, dict):
        return None
    return (
        ", ".join(f"{quantities[unit]:g} {unit}" for unit in ("A", "ms", "V") if number(quantities.get(unit))) or None
    )


def _short(value) -> str | None:
    return None if value is None else str(value)[:80]


def number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _positive(value) -> bool:
    return number(value) and value > 0
