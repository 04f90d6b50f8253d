"""The phases of a run, one row each, every figure of a row of the same time: fill, the windows of the load, idle."""

from ssdrig.report.terms import number, with_error

HEAD = ("phase", "time, s", "drive writes", "IOPS", "mean lat, µs", "in flight", "W", "J", "µJ per I/O", "WA")
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
)


def rows(figures: dict) -> list[dict]:
    """The phases of one run's figures (figures.figures_of), each with the keys "phase" and OF_WINDOW, None where it is
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
    return [
        row["phase"],
        time,
        writes,
        number(row["iops_mean"], 0),
        number(row["lat_mean_us"], 0),
        number(row["littles_qd"], 1),
        number(row["power_mean_W"], 3),
        number(row["energy_J"], 1),
        number(row["energy_uJ_per_io"], 1),
        with_error(row["wa"], row["wa_error"], 3),
    ]


def text(rows_of_cells: list[list[str]], indent: str = "") -> list[str]:
    """A table for a terminal: the first column left, the others right."""
    widths = [max(len(row[c]) for row in rows_of_cells) for c in range(len(rows_of_cells[0]))]
    return [
        (
            indent
            + row[0].ljust(widths[0])
            + "".join("  " + cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))
        ).rstrip()
        for row in rows_of_cells
    ]
