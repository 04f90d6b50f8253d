"""The forecast for several drives before anything is touched: each with its rig, the data lost, how long its
runs take and how much they write."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from ssdrig.base import words
from ssdrig.base.terminal import printable, wrapped
from ssdrig.drive.inventory import Drive
from ssdrig.plan import cost
from ssdrig.run import dry_run, keeping, prepare
from ssdrig.run.course import range_words
from ssdrig.run.planned import Planned

HEAD = ("drive", "model", "rig", "time", "writes", "of its rating")
WIDEST = {"drive": 24, "model": 36, "rig": 40}  # characters


@dataclass
class Item:
    """A drive of several: its name, its own options, what each run of them comes to."""

    name: str
    args: argparse.Namespace
    runs: list[Planned] = field(default_factory=list)

    @property
    def prepared(self) -> prepare.Prepared:
        return self.runs[0].prepared

    @property
    def drive(self) -> Drive | None:
        """None: it is SIMULATED."""
        return self.runs[0].drive

    def host_s(self) -> tuple[float, float]:
        k, times = self.prepared.drive["time_dilation"], [run.prepared.cost.time_s for run in self.runs]
        least, most = (k * self.args.repeat * sum(side) for side in zip(*times, strict=True))
        return least, most

    def written(self) -> cost.Cost:
        """What all of its runs write."""
        least, most = (
            self.args.repeat * sum(side)
            for side in zip(*(run.prepared.cost.written_bytes for run in self.runs), strict=True)
        )
        return cost.Cost(written_bytes=(least, most))

    def as_json(self) -> dict:
        """As a dry run of this drive alone prints it; with several runs, the others after it."""
        one, *more = (prepare.as_json(run.prepared) for run in self.runs)
        known = {"drive_name": self.name, "rig": self.args.rig, "repeat": self.args.repeat}
        return known | one | {"destroyed": keeping.writes(self.prepared.acts)} | ({"more": more} if more else {})


def listed(items: list[Item], wide: int | None) -> list[str]:
    """The lines: the steps once for drives that are alike, then a row for each drive, in `wide` columns (None: as long
    as they are)."""
    out: list[str] = []
    kinds: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for item in items:
        one = item.runs[0]
        first, *steps = dry_run.table(one.prepared, one.budget, one.rated_bytes, wide)
        kinds.setdefault((item.prepared.drive["model"], *steps), []).append((item.name, first))
    for (_, *steps), ((_, first), *others) in kinds.items():
        out += [first, *steps]
        if others:
            out.append(f"the same on {len(others)} more: {', '.join(printable(name) for name, _ in others)}")
    out += in_columns([HEAD, *map(_cells, items)], wide)
    if lost := [printable(item.name) for item in items if keeping.writes(item.prepared.acts) and item.drive]:
        text = f"ALL DATA WILL BE LOST on {len(lost)} drives: {', '.join(lost)}"
        out.append(wrapped(text, wide - 1) if wide else text)
    return out


def _cells(item: Item) -> tuple[str, ...]:
    drive, whole = item.prepared.drive, item.written()
    rated_bytes = item.runs[0].rated_bytes or drive.get("rated_write_bytes")
    share = ""
    if rated_bytes and whole.written_bytes[1]:
        share = f"{dry_run.range_of(*(100 * size / rated_bytes for size in whole.written_bytes))} %"
    model = f"{drive['model']} {words.size(drive['capacity_bytes'])}"
    rig = item.args.rig or ("SIMULATED" if item.drive is None else "–")
    texts = [printable(text) for text in (item.name, model, rig)]
    for i, (name, most) in enumerate(WIDEST.items()):
        if len(texts[i]) > most:  # the end of a serial or a path identifies it
            texts[i] = f"{texts[i][: most - 1]}…" if name == "model" else f"…{texts[i][1 - most :]}"
    return (*texts, range_words(item.host_s()), dry_run.written(whole), share)


def in_columns(cells: Sequence[tuple[str, ...]], wide: int | None) -> list[str]:
    """Rows in columns; if the terminal is too narrow, model and rig are dropped, then the ratings."""
    shown = list(range(len(cells[0])))
    width = [max(len(row[i]) for row in cells) for i in shown]
    for spared in (2, 1, 5):
        if wide is not None and sum(width[i] + 2 for i in shown) >= wide:
            shown.remove(spared)
    line = lambda row: "  ".join(row[i].ljust(width[i]) if i < 3 else row[i].rjust(width[i]) for i in shown).rstrip()
    return [f"  {line(row)}" for row in cells]
