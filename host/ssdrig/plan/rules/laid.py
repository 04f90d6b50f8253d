"""Data written by the steps of a plan since the purge that uses up the spare area, the start of a load (spare.py).
Unknown amounts are underestimated rather than overestimated. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ssdrig.plan.rules.spare import Spare, raw_of

RESTS_S = 60.0  # without I/O for longer, a steady drive is no longer steady
CHANGES = (
    "purge",
    "trim",
    "reset",
    "idle",
    "settle",
    "fill",
    "load",
    "wear",
    "replay",
)  # kinds of step that it depends on


@dataclass(frozen=True)
class Laid:
    """Bytes since the purge, or since the run began where it did not purge. `written_bytes`: all of them;
    `valid_bytes`: that hold data; `churned_bytes`: overwritten at random since, which used up spare area."""

    written_bytes: int = 0
    valid_bytes: int = 0
    churned_bytes: int = 0


NOTHING = Laid()


def after(laid: Laid, act: Any, moved_bytes: int | None = None) -> Laid:
    """What an act (plan.expand.Act) leaves that ran to its end.

    moved_bytes: bytes that it read and wrote; None: the plan's amount, 0 if no amount ends it."""
    if act.not_run:
        return laid
    if act.do in ("purge", "reset", "record"):
        return NOTHING
    if act.do == "trim":
        return replace(laid, valid_bytes=0, churned_bytes=0)
    if act.do in ("idle", "settle"):  # background collection may give the spare area back
        rests = act.keys.get("time", act.keys.get("most", 0.0)) > RESTS_S
        return replace(laid, churned_bytes=0) if rests else laid
    written = _written(act, act.amount_bytes or 0 if moved_bytes is None else moved_bytes)
    laid = replace(laid, written_bytes=laid.written_bytes + written)
    if act.do == "fill" or act.do == "load" and act.keys["pattern"] == "sequential":
        # whole blocks become invalid, which need no collection
        valid = max(laid.valid_bytes, min(written, act.range_bytes) if not act.keys.get("offset") else 0)
        return replace(laid, valid_bytes=valid, churned_bytes=max(0, laid.churned_bytes - written))
    if act.do == "replay":  # trimmed space is spare area again
        trimmed = act.range_bytes if act.trace is None else act.trace.trimmed_bytes
        churned = laid.churned_bytes + written - trimmed
        return replace(laid, churned_bytes=max(0, churned), valid_bytes=max(0, laid.valid_bytes + min(0, churned)))
    if act.do in ("load", "wear"):
        return replace(laid, churned_bytes=laid.churned_bytes + written)
    return laid


def _written(act: Any, moved_bytes: int) -> int:
    return int(moved_bytes * (1 - act.keys["read"] / 100)) if act.do == "load" else moved_bytes


def course(acts: Iterable[Any], laid: Laid = NOTHING) -> Laid:
    """What acts leave, by their plan."""
    for act in acts:
        laid = after(laid, act)
    return laid


def spare(laid: Laid, drive: Mapping) -> Spare:
    """What a load on this drive begins with."""
    return Spare(drive["capacity_bytes"], raw_of(drive), laid.valid_bytes, laid.churned_bytes)


def drive_writes(laid: Laid, range_bytes: int) -> float:
    """How often the tested range was written since the purge."""
    return laid.written_bytes / range_bytes


def as_json(laid: Laid) -> dict:
    return asdict(laid)


def last(events: Iterable[Mapping]) -> Laid:
    """The last record in the events of a run: at its end, or at the start of the unfinished step."""
    latest = NOTHING
    for event in events:
        if event["kind"] == "laid":
            latest = read(event)
        elif event["kind"] == "step.start" and "laid" in event:
            latest = read(event["laid"])
    return latest


def read(document: object) -> Laid:
    """What an event holds of it; nothing where it holds none."""
    if not isinstance(document, Mapping):
        return NOTHING
    numbers = (document.get(key) for key in Laid.__dataclass_fields__)
    return Laid(*(n if type(n) is int and 0 <= n < 1 << 62 else 0 for n in numbers))
