"""A run folder -> its row of the index, from its small files alone: run.json, the last lines of events.jsonl,
figures.json, labels.json. No content of a folder makes this fail: the row states the damage."""

import json
import os
from pathlib import Path
from typing import Any

from ssdrig.base import system
from ssdrig.base.errors import JournalError
from ssdrig.reading import results, trust
from ssdrig.runs import integrity, journal, labels, parts

LAST_BYTES = 1 << 16  # of events.jsonl, in which its last line is looked for; of one longer than that MOST_BYTES
MOST_BYTES = 8 << 20  # of a JSON file, or of a last line
FIGURES = results.HEADLINE
NOTHING: dict[str, Any] = dict.fromkeys(
    ("run", "started_utc_ns", "plan", "variant", "model", "serial", "op_percent", "why", "title", "tags", "drive")
)


def row(folder: Path) -> dict:
    """All values of index.COLUMNS that the folder has."""
    out = NOTHING | {"simulated": 0, "scaled": 0, "state": "unreadable", "figures": headline_of_none("")}
    stored = labels.read(folder)
    out["title"] = stored.title
    try:
        header = _header(folder)
        drive, method = header["drive"], header["method"]
        stored_plan = header.get("plan")
        plan = stored_plan if isinstance(stored_plan, dict) else {}
        texts = {key: _text(drive.get(key)) for key in ("model", "serial")}
        out |= texts
        out["run"] = _text(header.get("run"))
        out["started_utc_ns"] = _started(header)
        out["plan"] = _text(plan.get("name")) or _text(method.get("name"))
        out["variant"] = _text(plan.get("variant"))
        out["op_percent"] = method.get("op_percent")
        out |= {"simulated": int(bool(header.get("simulated"))), "scaled": int(bool(plan.get("scaled")))}
        out["drive"] = " ".join(text for text in [*texts.values(), _text(drive.get("preset"))] if text).lower()
        out["state"], out["why"] = _state(folder)
        out["figures"] = headline(folder)
    except (JournalError, OSError) as error:
        out["why"] = str(error)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        out["why"] = f"{type(error).__name__}: {error}"
    names = [folder.name, out["run"], out["title"], *stored.tags, out["plan"], out["variant"], out["drive"]]
    out["words"] = " ".join(filter(None, names)).lower()
    out["tags"] = f" {' '.join(stored.tags)} " if stored.tags else None
    plan_words = " ".join(filter(None, [out["plan"], out["variant"]]))
    out["plan"] = out["plan"] and plan_words
    return out


def _text(value) -> str | None:
    return value[:200].encode(errors="replace").decode() if isinstance(value, str) and value else None


def _started(header: dict) -> int | None:
    utc_ns = header["started"].get("utc_ns")
    return utc_ns if type(utc_ns) is int and 0 <= utc_ns < 1 << 62 else None


def _header(folder: Path) -> dict:
    """run.json. Raises JournalError, ValueError."""
    header = _json(folder, "run.json")
    if not isinstance(header, dict) or not all(isinstance(header.get(key), dict) for key in ("drive", "method")):
        raise JournalError("a whole run.json", "another", "take it from a copy of the run")
    if header.get("schema") != journal.SCHEMA:
        schema = f"schema {header.get('schema')!r:.40}"
        raise JournalError(f"journal schema {journal.SCHEMA}", schema, "read it with the ssdrig that wrote it")
    op = header["method"].get("op_percent")
    if not (op is None or _number(op) is not None and abs(op) < 1e6) or not isinstance(header.get("started"), dict):
        raise JournalError("a whole run.json", "another", "take it from a copy of the run")
    return header


def _json(folder: Path, name: str):
    """A JSON file of the folder itself, not of where a link leads. Raises OSError, ValueError."""
    fd = os.open(folder / name, system.READ_NO_LINK)
    with open(fd, "rb") as f:
        content = f.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"{name} has more than {MOST_BYTES} bytes")
    return json.loads(content)


def _state(folder: Path) -> tuple[str, str | None]:
    """journal.state() of the last part, and why, without reading the lines before the last."""
    last = parts.of(folder)[-1]
    held = journal.lock_is_held(last)
    event = last_event(last)
    if event and event["kind"] == "run.end" and event.get("state") in journal.END_STATES:
        return event["state"], _text(event.get("why"))
    return ("running", None) if held else ("died", None)


def last_event(part: Path) -> dict | None:
    """The last whole event of a part; None without one. Raises OSError."""
    try:
        fd = os.open(part / "events.jsonl", system.READ_NO_LINK)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as f:
        size = f.seek(0, os.SEEK_END)
        for at in dict.fromkeys(max(0, size - most) for most in (LAST_BYTES, MOST_BYTES)):
            f.seek(at)
            data = f.read(size - at)
            events = integrity.lines(data.partition(b"\n")[2] if at else data).events
            if events:
                return events[-1]
    return None


def headline(folder: Path) -> dict:
    """FIGURES of a run's main window, each a number or None; `window`: which one; `trust`: {id: state} of the run's
    trust strip, None without one; `window_trust`: the same of the window; `steady`: _verdict(); `why`: None, or why
    there are no figures."""
    try:
        last_ns = max(os.stat(part / "events.jsonl").st_mtime_ns for part in parts.of(folder))
        made_ns = os.stat(folder / integrity.FIGURES).st_mtime_ns
    except OSError:
        return headline_of_none("not worked out yet: ssdrig runs --figures, or ssdrig report RUN")
    if made_ns < last_ns:
        return headline_of_none("the figures there are older than the run's last event: ssdrig report RUN")
    try:
        figures = _json(folder, integrity.FIGURES)
        return _of_rows(figures) | {"trust": _trust(figures.get("trust")), "steady": _verdict(figures)}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return headline_of_none(f"figures.json cannot be read: {type(error).__name__}")


def headline_of_none(why: str) -> dict:
    lacking = dict.fromkeys(("trust", "window_trust", "steady"))
    return {"window": None, **dict.fromkeys(FIGURES), **lacking, "why": why or None}


def _trust(items) -> dict[str, str] | None:
    """{id: state} of a trust strip, of figures that may hold anything."""
    if not isinstance(items, list):
        return None
    states = {str(item.get("id")): str(item.get("state")) for item in items if isinstance(item, dict)}
    return {name: states[name] for name in trust.NAMES if states.get(name) in trust.WORST} or None


def _verdict(figures: dict) -> dict | None:
    """{"passed", "drive_writes", "past_spare"} of the rule: of several verdicts the worst, and of their drive writes
    the least; None where the rule was asked nowhere. None within it: not tested, not known."""
    steady = figures.get("steady")
    verdicts = steady.get("verdicts") if isinstance(steady, dict) else None
    known = [one for one in verdicts if isinstance(one, dict)] if isinstance(verdicts, list) else []
    if not known:
        return None
    out: dict = {}
    for key in ("passed", "past_spare"):
        values = [one.get(key) for one in known]
        out[key] = False if False in values else True if values and all(state is True for state in values) else None
    writes = [at for one in known if (at := _number(one.get("drive_writes"))) is not None]
    return out | {"drive_writes": min(writes, default=None)}


def _of_rows(figures: dict) -> dict:
    """The headline from the rows of any plan."""
    known = results.headline(figures["rows"])
    out = {"window": _text(known["window"]), **{key: _number(known[key]) for key in FIGURES}, "why": known["why"]}
    return out | {"window_trust": _trust(known["of"].get("trust"))}


def _number(value) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return value if good else None
