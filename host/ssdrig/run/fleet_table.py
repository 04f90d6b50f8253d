"""The live table while several drives are tested together: a row for each drive, as wide and as high as the
terminal allows. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ssdrig.base.errors import INTERRUPTED
from ssdrig.run.course import range_words

HEAD = ("drive", "step", "done", "ETA", "power", "IOPS", "state")
RIGHT = ("done", "ETA", "power", "IOPS")  # columns of numbers
LEAST = {"drive": 6, "step": 6, "state": 8}  # characters to which a column of words may be cut
SPARED = ("IOPS", "ETA", "step", "power")  # columns that go, in this order, where that does not do
GAP = "  "
STARTING, RUNNING, ENDING = "starting", "running", "ending"


@dataclass
class Seen:
    """Output of a drive's run so far. `second`: the last line of `run --jsonl`; `results`: what each of its runs
    printed when it had ended; `code`: the exit code, None while it goes on; `message`: its last words on stderr."""

    drive: str
    rig: str | None = None
    second: Mapping[str, Any] = field(default_factory=dict)
    results: list[dict] = field(default_factory=list)
    code: int | None = None
    ending: bool = False
    message: str = ""

    @property
    def state(self) -> str:
        if self.code is None:
            return ENDING if self.ending else RUNNING if self.second else STARTING
        state = next((one["state"] for one in reversed(self.results) if "state" in one), None)
        return state or {0: "done", INTERRUPTED: "interrupted"}.get(self.code, "failed")

    @property
    def why(self) -> str:
        """Why it has not ended as it should, in words; "" where it has."""
        if not self.code:
            return ""
        why = next((one["why"] for one in reversed(self.results) if one.get("why")), None)
        return why or self.message or f"exit code {self.code}"

    @property
    def folders(self) -> list[str]:
        """The run folders, in order."""
        return [one["run"] for one in self.results if "run" in one]


def lines(seen: Sequence[Seen], columns: int, rows: int) -> list[str]:
    """The table: a head, a row for each drive, the sum. In less than `columns` characters and `rows` lines; where there
    is not a room for all drives those that have ended well go first, and the number of those left out is stated."""
    room = max(1, rows - 4)
    shown = list(seen)
    for candidate in [*(one for one in seen if one.code == 0), *reversed(seen)]:
        if len(shown) <= room:
            break
        if candidate in shown:
            shown.remove(candidate)
    left_out = len(seen) - len(shown)
    out = _fitted([HEAD, *map(_cells, shown)], columns - 1)
    out += [f"… and {left_out} more"[: columns - 1]] if left_out else []
    return [*out, summary(seen)[: columns - 1]]


def summary(seen: Sequence[Seen]) -> str:
    """All drives in one line."""
    counts = {state: sum(one.state == state for one in seen) for state in dict.fromkeys(one.state for one in seen)}
    live = [one.second for one in seen if one.code is None]
    watts = [second["power_W"] for second in live if second.get("power_W") is not None]
    lost = sum(one.second.get("samples_lost") or 0 for one in seen)
    left = [second["left_s"] for second in live if second.get("left_s")]
    words = [f"{len(seen)} drives: {', '.join(f'{n} {state}' for state, n in counts.items())}"]
    words += [f"{sum(watts):.2f} W"] if watts else []
    words += [f"{lost} samples lost"] if watts or lost else []
    words += [f"ETA {range_words((max(s for s, _ in left), max(s for _, s in left)))}"] if left else []
    return GAP.join(words)


def ends(seen: Sequence[Seen]) -> list[str]:
    """The outcome of each drive's run: its state, and its folder or the reason without one."""
    width = max(len(one.drive) for one in seen)
    out = []
    for one in seen:
        words = ", ".join(one.folders) or one.why
        why = f" ({one.why})" if one.folders and one.why else ""
        out.append(f"{one.drive:{width}}  {one.state}{why}: {words}" if words else f"{one.drive:{width}}  {one.state}")
    return out


def _cells(one: Seen) -> tuple[str, ...]:
    second = one.second if one.code is None else {}
    share, watts, iops, left = (second.get(key) for key in ("share", "power_W", "iops", "left_s"))
    state = one.state if not one.why else f"{one.state}: {one.why}"
    return (
        one.drive,
        str(second.get("doing") or second.get("step") or ""),
        f"{share:.0%}" if share is not None else "",
        range_words(tuple(left)) if left else "",
        f"{watts:.2f} W" if watts is not None else "",
        f"{iops:,.0f}" if iops is not None else "",
        state,
    )


def _fitted(cells: Sequence[Sequence[str]], most: int) -> list[str]:
    """Rows as lines of at most `most` characters, in columns: first the words are cut, the name of a drive from its
    left (the end of a serial identifies it), then columns are dropped."""
    names = list(cells[0])
    widths = {name: max(len(row[i]) for row in cells) for i, name in enumerate(names)}

    def over() -> int:
        return sum(widths[name] for name in names) + len(GAP) * (len(names) - 1) - most

    for name in ("state", "step", "drive"):
        widths[name] = max(min(widths[name], LEAST[name]), widths[name] - max(0, over()))
    for name in SPARED:
        if over() > 0:
            names.remove(name)
    out = []
    for row in cells:
        texts = []
        for name in names:
            text, width = row[HEAD.index(name)], widths[name]
            if len(text) > width:
                text = f"…{text[len(text) - width + 1 :]}" if name == "drive" else f"{text[: width - 1]}…"
            texts.append(text.rjust(width) if name in RIGHT else text.ljust(width))
        out.append(GAP.join(texts).rstrip()[: max(0, most)])
    return out
