"""The sentences of a run folder's events: the page's event log and `serve` show them. Pure."""

from collections.abc import Callable, Mapping

from ssdrig.base.errors import by_a_person
from ssdrig.base.words import digits, size
from ssdrig.load import ceiling
from ssdrig.plan.step import label

MOST_WORDS = 300
# kinds without a line: what other events or the page's tables state
QUIET = ("clock.anchor", "sums", "smart.start", "witness", "conditions", "run.start", "windows", "host")
REASONS = {
    "before": "before the load",
    "poll": "under load",
    "edge": "at a window's edge",
    "after": "after the load",
    "settled": "when settled",
    "round": "before a round",
    "idle": "during a rest",
}


def step_label(event: Mapping) -> str:
    """The step of a step.start or step.end at its point: "rounds/point read=65 block=64KiB"."""
    return label(str(event.get("step")), event.get("point") or {})


def words(event: Mapping) -> str:
    """An event in words."""
    made = _WORDS.get(event["kind"])
    text = made(event) if made and event.get("cut") is None else None
    return (text or _generic(event))[:MOST_WORDS]


def ceiling_figures(event: Mapping) -> str:
    """Speeds on a null target, of each shape of load: "693 MB/s of sequential writes, 131616 IOPS of random reads"."""
    figures = []
    for shape, one in ceiling.of_event(event).items():
        speed = f"{digits(one.iops, 3)} IOPS of random" if shape.random else f"{size(one.bytes_per_s)}/s of sequential"
        figures.append(f"{speed} {shape.word}s")
    return ", ".join(figures)


def _start(event: Mapping) -> str:
    return f"{step_label(event)} begins" + (f", round {event['round']}" if event.get("round") else "")


def _end(event: Mapping) -> str:
    failed = "is cut short" if by_a_person(event.get("why")) else f"FAILS: {event.get('why')}"
    return f"{step_label(event)} {'ends' if event.get('ok') else failed}"


def _smart(event: Mapping) -> str:
    reason = REASONS.get(event.get("reason") or "", str(event.get("reason")))
    return f"SMART {reason}" + ("" if event["ok"] else f": FAILED, {event.get('why')}")


def _ceiling(event: Mapping) -> str:
    return f"fio alone, without the drive: {ceiling_figures(event) or event.get('why') or 'not known'}"


def _why(event: Mapping) -> str:
    return f": {event['why']}" if event.get("why") else ""


def _pairing(event: Mapping) -> str:
    return f"rig and drive: {str(event.get('verdict')).replace('_', ' ')}{_why(event)}"


def _purge(event: Mapping) -> str:
    seen = event.get("effect")
    seen = f", {_plain(seen)}" if isinstance(seen, Mapping) else ""
    return f"purge by {event.get('method')} {'done' if event.get('ok') else 'FAILED'}{seen}{_why(event)}"


def _round(event: Mapping) -> str:
    return f"{event.get('step')}: round {event.get('round')} ends, {'' if event.get('steady') else 'not yet '}steady"


def _steady(event: Mapping) -> str:
    return f"{event.get('step')}: {'steady' if event.get('passed') else 'not steady'}{_why(event)}"


def _laid(event: Mapping) -> str:
    return f"written since the purge: {_bytes(event.get('written_bytes'))}"


def _quiet(event: Mapping) -> str:
    if not event.get("reached"):
        return f"{event.get('step')}: not quiet{_why(event)}"
    return f"{event.get('step')}: quiet after {event.get('after_s')} s, at {_number(event.get('floor_W'))} W"


def _rest(event: Mapping) -> str:
    nand = event.get("nand_written_bytes")
    written = "" if nand is None else f"; the drive wrote {_bytes(nand)} to the NAND"
    return f"{event.get('step')}: rested for {_number(event.get('lasted_s'))} s{written}"


def _choose(event: Mapping) -> str:
    rows = event.get("points")
    points = rows if isinstance(rows, list) else []
    of_each = [f"{point.get('at')} {_plain(point.get('point'))}" for point in points if isinstance(point, Mapping)]
    return f"{event.get('step')}: operating points by {event.get('value')}: {'; '.join(of_each)}"


def _telemetry(event: Mapping) -> str:
    if event.get("bytes") is None:
        return f"the drive's telemetry log is not saved{_why(event)}"
    return f"the drive's telemetry log is saved: {_bytes(event.get('bytes'))}"


def _number(value: object) -> str:
    return digits(value, 4) if isinstance(value, int | float) and not isinstance(value, bool) else "?"


def _bytes(value: object) -> str:
    return size(value) if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else "?"


_WORDS: dict[str, Callable[[Mapping], str]] = {
    "step.start": _start,
    "step.end": _end,
    "smart.end": _smart,
    "pairing": _pairing,
    "purge": _purge,
    "round": _round,
    "steady": _steady,
    "laid": _laid,
    "quiet": _quiet,
    "rest": _rest,
    "choose": _choose,
    "telemetry": _telemetry,
    "rig.hello": lambda event: f"rig answers, boot {event['hello'].get('boot')}",
    "load.first_io": lambda event: f"first I/O of {event.get('step')}",
    "ceiling": lambda event: (
        f"fio alone, without the drive: {ceiling_figures(event) or event.get('why') or 'not known'}"
    ),
    "data": lambda event: f"written data measured{_why(event)}",
    "note": lambda event: f"note: {event.get('text')}",
    "not_run": lambda event: f"{event.get('label') or event.get('step')} is not run{_why(event)}",
    "budget": lambda event: f"the budget ends the run before {event.get('step')}{_why(event)}",
    "set": lambda event: f"{event.get('key')} is set to {event.get('value')}",
    "put_back": lambda event: f"{event.get('key')} is as before: {_plain(event.get('value'))}",
    "marks": lambda event: f"{event.get('step')}: marks on the drive are remembered",
    "command.start": lambda event: f"the command starts: {_plain(event.get('argv'))}",
    "command.end": lambda event: f"the command ends with exit code {event.get('exit_code')}{_why(event)}",
    "slice.start": lambda event: f"{event.get('step')}: slice {event.get('slice')} starts",
    "stamp": lambda event: f"{event.get('step')}: sample blocks of slice {event.get('slice')} are written",
    "cut.asked": lambda event: f"a cut of the power is asked for{_why(event)}",
    "cut.dropped": lambda event: f"the cut that was asked for is not made{_why(event)}",
    "cut.fired": lambda event: f"power cut from the web{_why(event)}",
    "cut.on": lambda event: f"power is back after {event.get('off_s')} s",
    "drive.ready": lambda event: f"the drive is back after {event.get('ready_s')} s",
    "drive.missing": lambda event: "the drive is MISSING",
    "run.end": lambda event: f"run ends: {event['state']}" + (f", {event['why']}" if event.get("why") else ""),
}


def _generic(event: Mapping) -> str:
    rest = _plain({key: value for key, value in event.items() if key not in ("t_ns", "kind", "step", "line", "crc")})
    kind = event["kind"].replace(".", " ").replace("_", " ")
    return f"{kind} {event.get('step', '')}".strip() + (f": {rest}" if rest else "")


def _plain(value) -> str:
    """Any value of an event as text: names without underscores, unknown values left out."""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(key).replace('_', ' ')} {_plain(of)}" for key, of in value.items() if of is not None)
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return {True: "yes", False: "no", None: "–"}[value] if value is None or isinstance(value, bool) else str(value)
