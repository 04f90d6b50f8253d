"""Views by the second whose axis is not the time: by the minute, as the PTS counts, or over what was written."""

import numpy as np

from ssdrig.reading import latency
from ssdrig.reading.row import Row, Table
from ssdrig.views import svg
from ssdrig.views.by_second import axis_title, seconds, timed
from ssdrig.views.context import Context, Unit, figure, panel, unit
from ssdrig.views.terms import number

MINUTES = "minutes"
AXIS = {
    MINUTES: "minute",
    "written": "GB written by this load (TGBW)",
    "fills": "drive fills: bytes written / user capacity",
}
TITLE = {MINUTES: "by the minute", "written": "over the bytes written", "fills": "over drive fills"}


def drawn(context: Context) -> str:
    """A panel for each value and step, with all runs; the points of a value of SMART, and minutes, have marks."""
    out = []
    for word in context.words("iops"):
        of_paths = {path: _of(context, word, path) for path in context.paths}
        every = [
            v
            for of in of_paths.values()
            for found in of
            for *_, values, _ in found
            for v in values.tolist()
            if np.isfinite(v)
        ]
        shown = unit(word, every)
        reach = svg.extent([v * shown.scale for v in every], context.log, context.show.get("top"))
        for path, of in of_paths.items():
            if not of:
                title = context.title(f"{timed(word)} {TITLE[context.along]}, {path}")
                out.append(panel(title, "", "No figures by the second: no such step, or one of a repeat.", "wide"))
            out += [_panel(context, word, path, found, shown, reach) for found in of]
    return "".join(out)


def _of(context: Context, word: str, path: str) -> list[list[tuple]]:
    """(run, row, x, values, what is to be said) of a step: a list for each time that it was carried out, with an entry
    for each run that has it."""
    out: list[list[tuple]] = []
    for run, each in enumerate(context.tables):
        for place, row in enumerate(row for row in each.of(path) if row.data is not None):
            of = by_minute(row, word) if context.along == MINUTES else over_written(row, word, each, context.along)
            out += [[]] * (place == len(out))
            out[place] = [*out[place], (run, row, *of)]
    return out


def _panel(context: Context, word: str, path: str, found: list[tuple], shown: Unit, reach) -> str:
    """One row of each run."""
    rows = [row for _, row, *_ in found]
    title = f"{timed(word, rows)} {TITLE[context.along]}, {path}" + ", logarithmic" * context.log
    title = context.title(title, word)
    several = len(context.tables) > 1
    softs = [f"{context.names[run]}: {soft}" if several else soft for run, *_, soft in found if soft]
    known = [(run, x, values) for run, _, x, values, _ in found if np.isfinite(values).any()]
    if not known:
        return panel(title, "", f"No figures: {' '.join(softs) or rows[0].why_not(word)}.", "wide")
    last = max(float(x[np.isfinite(values)].max()) for _, x, values in known)
    plot = svg.Plot(title, 960, 250, (0.0, last * 1.01), reach, y_log=context.log)
    for run, x, values in sorted(known, key=lambda each: context.order.index(each[0])):
        pairs = [(a, b) for a, b in zip(x.tolist(), (values * shown.scale).tolist(), strict=True) if np.isfinite(b)]
        look = context.looks[run] if several else svg.look(0)
        name = context.names[run] if several else ""
        if context.along == MINUTES or word in ("wa", "C"):
            plot.line(pairs, f"stroke:var({look['colour']})", name=name)
            for a, b in pairs:
                place = f"minute {a + 0.5:.0f}" if context.along == MINUTES else figure(a)
                plot.mark(a, b, look, f"{place}: {figure(b)} {shown.name}", 3)
        else:
            size = 5 if len(pairs) < 400 else 3 if len(pairs) < 2500 else 2
            plot.dots(svg.thinned(pairs), f"stroke:var({look['colour']});stroke-width:{size}", name=name)
    plot.axes(AXIS[context.along], axis_title(word, shown.name, rows))
    return panel(title, plot.text() + context.legend(), " ".join(softs), "wide")


def by_minute(row: Row, word: str) -> tuple[np.ndarray, np.ndarray, str]:
    """(minutes from 0.5 on, value of each, what is left behind the last whole one) of a step by the second."""
    assert row.data is not None
    found = latency.of(row.data)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "iops": found.ios / found.record_s,
            "MB/s": found.bytes_ / found.record_s / 1e6,
            "W": found.energy_J / found.record_s,
            "uJ/IO": 1e6 * found.energy_J / found.ios,
            "J/GB": 1e9 * found.energy_J / found.bytes_,
            "iops/W": found.ios / found.energy_J,
            "lat_mean": found.lat_mean_us,
            "lat_max": found.lat_max_us,
        }.get(word, np.full(len(found.ios), np.nan))
    x = np.arange(len(values)) + 0.5
    if not len(values):
        return x, values, f"the load lasted {found.left_s} whole seconds, less than a minute"
    left = f"; the last {found.left_s} s, {number(found.left_ios, 0)} I/Os, are no whole one" if found.left_s else ""
    return x, values, f"{len(values)} whole minutes{left}."


def over_written(row: Row, word: str, each: Table, along: str) -> tuple[np.ndarray, np.ndarray, str]:
    """(GB or drive fills that the load had written by then, value of each second or reading, "")."""
    assert row.data is not None
    t, values = seconds(row, word)
    bw = np.nan_to_num(row.data.bw_Bps) * (1 - row.act.keys.get("read", 0) / 100)
    done = np.concatenate([[0.0], np.cumsum(bw)])
    written = np.interp(t, np.arange(len(done)), done)
    return written / (1e9 if along == "written" else each.data.header["drive"]["capacity_bytes"]), values, ""
