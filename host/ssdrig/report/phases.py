"""The phases of a run, one row each, every figure of a row of the same time: fill, the windows of the load, idle."""

import textwrap

from ssdrig.reading import errors
from ssdrig.views import trust_strip
from ssdrig.views.terms import number, with_error

HEAD = ("phase", "time, s", "drive writes", "IOPS", "mean lat, µs", "in flight", "W", "J", "µJ per I/O", "WA")
PLACES = {  # of the figures, before write amplification
    "iops_mean": 0,
    "lat_mean_us": 0,
    "littles_qd": 1,
    "power_mean_W": 3,
    "energy_J": 1,
    "energy_uJ_per_io": 1,
}
GAP = 2  # blanks between columns
LEAST_NAME = 8  # characters of a name that always stay
OF_WINDOW = (
    "label",
    "t0_s",
    "t1_s",
    "unfinished",
    "drive_writes_t0",
    "drive_writes_t1",
    "iops_mean",
    "lat_mean_us",
    "littles_qd",
    "power_mean_W",
    "energy_J",
    "energy_uJ_per_io",
    "wa",
    "wa_error",
    "errors",
    "trust",
)


def rows(figures: dict) -> list[dict]:
    """The phases of one run's figures (course.figures_of), each with the keys "phase" and OF_WINDOW, None where it is
    not known. t0_s of the idle step and of the fill are not of the load's axis: None, t1_s then is how long it took."""
    nothing = dict.fromkeys(OF_WINDOW)
    out = []
    if figures["fill_s"]:
        joules = figures["fill_energy_J"]
        watts = None if joules is None else joules / figures["fill_s"]
        out.append(nothing | {"phase": "fill", "t1_s": figures["fill_s"], "energy_J": joules, "power_mean_W": watts})
    for window in figures["windows"].values():
        if window:
            phase = window["label"].rpartition(", ")[0] or "end of the load"
            phase += f", {window['unfinished']}" if window["unfinished"] else ""
            out.append({"phase": phase} | {key: window[key] for key in OF_WINDOW})
    if figures["idle_s"]:
        out.append(nothing | {"phase": "idle", "t1_s": figures["idle_s"], "power_mean_W": figures["idle_mean_W"]})
        out[-1]["errors"] = {"power_mean_W": figures["idle_uncertainty_W"]}
    return out


def cells(row: dict) -> list[str]:
    """A row as text, in the order of HEAD."""
    if row["t0_s"] is None:
        time = f"{number(row['t1_s'], 1)} long"
    else:
        time = f"{number(row['t0_s'], 0)}–{number(row['t1_s'], 0)}"
    writes = "–"
    if row["drive_writes_t0"] is not None:
        writes = f"{number(row['drive_writes_t0'], 2)}–{number(row['drive_writes_t1'], 2)}"
    of_figures = {key: with_error(row[key], errors.of(key, row).error, places) for key, places in PLACES.items()}
    of_figures["wa"] = with_error(row["wa"], row["wa_error"], 3)
    return [row["phase"], time, writes, *(trust_strip.marked(text, key, row) for key, text in of_figures.items())]


def text(rows_of_cells: list[list[str]], indent: str = "", width: int | None = None) -> list[str]:
    """A table for a terminal: the first column left, the others right. `width`: columns of the terminal; a wider table
    is cut into several, one below the other, each with the first column, and a cell that is too wide is wrapped."""
    rows = [[[cell] for cell in row] for row in rows_of_cells]
    first = max(len(row[0]) for row in rows_of_cells)
    if width is not None:
        first = min(first, max(LEAST_NAME, width // 2 - len(indent)))
        room = max(LEAST_NAME, width - len(indent) - first - GAP)
        rows = [
            [[shortened(row[0], first)], *(textwrap.wrap(cell, room) or [""] for cell in row[1:])]
            for row in rows_of_cells
        ]
    widths = [first, *(max(len(line) for row in rows for line in row[c]) for c in range(1, len(rows[0])))]
    parts: list[list[int]] = [[]]
    used = begin = len(indent) + first
    for column, cells in enumerate(widths[1:], 1):
        if parts[-1] and width is not None and used + GAP + cells > width:
            parts.append([])
            used = begin
        parts[-1].append(column)
        used += GAP + cells
    out = []
    for part in parts:
        for row in rows:
            for i in range(max(len(row[column]) for column in (0, *part))):
                cells = [row[c][i] if i < len(row[c]) else "" for c in (0, *part)]
                at = [cells[0].ljust(first), *(cell.rjust(widths[c]) for c, cell in zip(part, cells[1:], strict=True))]
                out.append((indent + (" " * GAP).join(at)).rstrip())
    return out


def shortened(name: str, longest: int) -> str:
    """A name without its begin, which neighbours share, where it is too long."""
    return name if len(name) <= longest else f"…{name[len(name) - longest + 1 :]}"
