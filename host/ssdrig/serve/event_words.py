"""What the page of `serve` shows of a run, of its events and of its rig. Pure."""

from collections.abc import Callable
from typing import Any

from ssdrig.meter import calibration
from ssdrig.reading.event_words import QUIET, step_label, words
from ssdrig.reading.rundata import asked_cut_ns


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
