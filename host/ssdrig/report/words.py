"""What the page calls things: runs, tests, units."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ssdrig.base.words import DECIMAL, exact_size
from ssdrig.reading.row import Table
from ssdrig.views.terms import Term, number, with_error

DEFAULT_OP = "default OP"
LEAST_PERCENT = 0.05  # less is what a whole number of MiB leaves


def title(runs: list) -> str:
    """The name of the test of `runs` (analysis.RunData)."""
    methods = [d.header["method"] for d in runs]
    return ", ".join(dict.fromkeys(str(method.get("title") or method.get("name")) for method in methods))


def description(data, figure: Mapping) -> str:
    """The test of one run in a sentence, as its run folder describes it."""
    method = data.header["method"]
    words = str(method.get("load") or method.get("name"))
    if method.get("block_bytes"):
        words = f"{block(method['block_bytes'])} {words}"
    if method.get("queue_depth"):
        words += f" at queue depth {method['queue_depth']}"
    before = []
    if figure["purge"]:
        before.append(f"a purge ({figure['purge']})")
    if figure["fill_MBps"]:
        size = method.get("fill_block_bytes")
        before.append(f"a sequential fill with {exact_size(size)} blocks" if size else "a sequential fill")
    return words + (f", after {' and '.join(before)}" if before else "") + "."


def block(size: int | None) -> str:
    """4096 -> '4 KiB'."""
    return "unknown size" if size is None else exact_size(size)


def op(figure: dict) -> str:
    """Over-provisioning of a run in words: a share of the raw NAND or, where that is not known, of the user
    capacity."""
    percent, user = figure["op_percent"], figure["op_user_percent"]
    if percent is not None:
        return f"{percent:g} % OP" + " (raw NAND assumed)" * figure["raw_nand_assumed"]
    return DEFAULT_OP if user is None or user < LEAST_PERCENT else f"{user:.1f} % OP of user"


def labels(figures: list[dict]) -> list[tuple[str, str, str, str]]:
    """(drive, op, label, short label) of each run. A drive is its model, with the serial where two drives of a model
    differ; a SIMULATED drive is its model alone because it gets a new serial each time it starts. Runs that are
    otherwise alike are numbered. The short label leaves out what all runs have in common."""
    serials: dict[str, set[str]] = {}
    for f in figures:
        serials.setdefault(f["model"], set()).add(f["serial"])
    pairs = []
    for f in figures:
        serial = f" {f['serial']}" if len(serials[f["model"]]) > 1 and not f["simulated"] else ""
        pairs.append(((f["model"] or "unknown drive") + serial, op(f)))
    one_drive, one_op = len({d for d, _ in pairs}) == 1, len({o for _, o in pairs}) == 1
    briefs = shortened([drive.removeprefix("SIMULATED ") for drive, _ in pairs])  # it is in the page's head
    out = []
    for i, (drive, op_words) in enumerate(pairs):
        number_of = f" (run {pairs[: i + 1].count((drive, op_words))})" if pairs.count((drive, op_words)) > 1 else ""
        brief = briefs[drive.removeprefix("SIMULATED ")]
        short = brief if one_op else op_words if one_drive else f"{brief}, {op_words}"
        out.append((drive, op_words, f"{drive}, {op_words}{number_of}", short + number_of))
    return out


def shortened(names: Sequence[str]) -> dict[str, str]:
    """Names without the words that all of them begin or end with, unless that leaves one empty."""
    parts = {name: name.split() for name in names}
    out = list(parts.values())
    if len(parts) < 2:
        return {name: name for name in names}
    first = last = 0
    while all(len(of) > first + 1 for of in out) and len({of[first] for of in out}) == 1:
        first += 1
    while all(len(of) > first + last + 1 for of in out) and len({of[-1 - last] for of in out}) == 1:
        last += 1
    return {name: " ".join(of[first : len(of) - last]) for name, of in parts.items()}


def model(table: Table) -> str:
    """The drive of a run."""
    return str(table.data.header["drive"].get("model") or "unknown drive")


def drives(tables: Sequence[Table]) -> list[str]:
    """What each run of a plan is called: its drive, numbered where two runs have the same."""
    models = list(map(model, tables))
    return [
        f"{name} (run {models[: i + 1].count(name)})" if models.count(name) > 1 else name
        for i, name in enumerate(models)
    ]


class Unit(NamedTuple):
    """How a row of figures is printed: `value * scale`, with `places`, in the unit `name`."""

    name: str
    scale: float
    places: int

    def text(self, value, error=None) -> str:
        value, error = (None if v is None else v * self.scale for v in (value, error))
        return with_error(value, error, self.places)


def unit(term: Term, values) -> Unit:
    """The unit in which the figures of one row read best: ms from 1000 µs on, GB from 10⁹ bytes on."""
    top = max((abs(v) for v in values if v is not None), default=0)
    if term.unit == "µs" and top >= 1000:
        return Unit("ms", 1e-3, 3 if top < 1e4 else 2)
    if term.unit == "B":
        for name in ("TB", "GB", "MB"):
            scale = DECIMAL[name]
            if top >= scale:
                return Unit(name, 1 / scale, 2)
    return Unit(term.unit, 1, term.places)


def exact(term: Term, value) -> str:
    """The exact number of bytes of a rounded figure: the text of its tooltip."""
    return f"{number(value, 0)} bytes" if term.unit == "B" and value is not None else ""
