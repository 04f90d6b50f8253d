"""The views `table` and `recovery`: steps and points as rows with several figures in a line, and how long a drive
took to recover."""

from html import escape
from typing import NamedTuple

import numpy as np

from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import clock
from ssdrig.reading import latency, witness
from ssdrig.reading.row import Table
from ssdrig.reading.rundata import RunData
from ssdrig.views import trust_strip
from ssdrig.views.context import (
    Context,
    Unit,
    doubt_at,
    figure,
    last_rounds,
    panel,
    place,
    rows_at,
    uncertain_at,
    unit,
    value_at,
)
from ssdrig.views.points.html import merged


def table(context: Context) -> str:
    """A row for each step and point, a column for each value, a panel for each run."""
    return "".join(_table(context, run, name) for run, name in context.runs())


def _table(context: Context, run: Table, name: str) -> str:
    where, window, words = place(context.show), context.show.get("window"), context.words()
    lines = []
    for path in context.paths:
        rows = rows_at(run, path, where)
        points = {row.act.label: dict(row.act.point) for row in rows} or {path: {}}
        for of, point in points.items():
            named = path + of.removeprefix(path)
            cells = [
                (
                    *value_at(run, path, where | point, word, window),
                    uncertain_at(run, path, where | point, word, window),
                    doubt_at(run, path, where | point, word, window),
                )
                for word in words
            ]
            lines.append((named, cells))
    units = [unit(word, [cells[i][0] for _, cells in lines]) for i, word in enumerate(words)]
    head = "".join(f'<th scope="col">{one.heading}</th>' for one in units)
    body = "".join(
        f'<tr><th scope="row">{escape(named)}</th>'
        + "".join(
            _cell(one.text(value), _tip(one, why, of), doubt)
            for one, (value, why, of, doubt) in zip(units, cells, strict=True)
        )
        + "</tr>"
        for named, cells in lines
    )
    reasons = merged(why for _, cells in lines for value, why, *_ in cells if value is None)
    stands = dict.fromkeys(_rounds(run, path) for path in context.paths)
    soft = " ".join([*filter(None, [*stands, trust_strip.meaning_of_mark(body)]), *(f"–: {why}." for why in reasons)])
    title = context.title(f"Table{f', window {window}' if window else ''}") + name
    table_of = f'<table class="matrix"><thead><tr><th scope="col"></th>{head}</tr></thead><tbody>{body}</tbody></table>'
    return panel(title, f'<div class="scroll">{table_of}</div>', soft, "wide")


def _rounds(run: Table, path: str) -> str:
    rounds = last_rounds(run, path)
    return f"{path}: rounds {rounds[0]} to {rounds[-1]} together." if len(rounds) > 1 else ""


def _tip(shown: Unit, why: str, of: Uncertain) -> str:
    """The tool tip of a cell: the figure's error, and its rounds."""
    if of.value is None:
        return why
    error = "error not known" if of.error is None else f"± {shown.text(of.error)} {shown.name}".strip()
    return f"{error}; {why}" if why else error


def _cell(words: str, why: str, doubt: str | None) -> str:
    reasons = "; ".join(filter(None, [why, doubt]))
    tip = f' title="{escape(reasons)}"' if reasons else ""
    return f"<td{tip}>{trust_strip.with_mark(words, doubt)}</td>"


def recovery(context: Context) -> str:
    """How long the step `of` took until it did again what the step `against` had done before."""
    out, against = [], context.show["against"]
    for run, name in context.runs():
        for path in context.paths:
            loads = [next((row for row in run.of(p) if row.data is not None), None) for p in (against, path)]
            before, after = (row.data if row is not None else None for row in loads)
            title = context.title(f"Recovery of {path} to {against}") + name
            if before is None or after is None:
                out.append(panel(title, "", "No figures: one of the two loads did not run to its end."))
                continue
            result = recovered(before, after)
            limited = [witness.slowed_by_host(run.data.events, row) for row in loads if row is not None]
            if why := next(filter(None, limited), None):
                result = Recovery(result.record_s, why=why)
            record = "minute" if result.record_s == 60 else f"record of {result.record_s} s"
            if result.why:
                out.append(panel(title, "", f"No figures: {result.why}."))
                continue
            share, most = f"{100 * SHARE:.0f} %", figure(result.end_MBps)
            rows = [
                (f"The mean of {against}, {figure(result.mean_MBps)} MB/s", result.after_s),
                (f"{share} of the last hour of {against}, {most} MB/s, or of all of a shorter one", result.most_s),
            ]
            body = "".join(
                f'<tr><th scope="row">{escape(words)}</th><td>'
                f"{'not reached' if at_s is None else f'after {clock(at_s)}'}</td></tr>"
                for words, at_s in rows
            )
            soft = f"From the beginning of {path} to the end of its first {record} at least as fast."
            out.append(panel(title, f'<table class="numbers wraps"><tbody>{body}</tbody></table>', soft))
    return "".join(out)


HTML = {"table": table, "recovery": recovery}  # view -> how it is drawn


SHARE = 0.9  # of the end of the load before
END_S = 3600  # the end: its last hour
SHORT = 5  # a load with fewer records of a minute than this is cut into records of a second


class Recovery(NamedTuple):
    """`after_s`: end of the first record at least as fast as the mean of the load before; `most_s`: of the first one at
    SHARE of the last hour of it; None where none was, or where nothing is known (`why`). MB/s of both limits."""

    record_s: int
    mean_MBps: float | None = None
    after_s: int | None = None
    end_MBps: float | None = None
    most_s: int | None = None
    why: str = ""


def recovered(before: RunData, after: RunData) -> Recovery:
    """Records are minutes; of loads that lasted less than SHORT of them seconds."""
    record_s = latency.RECORD_S
    if min(len(before.iops), len(after.iops)) < SHORT * record_s:
        record_s = 1
    one, other = (latency.of(data, record_s) for data in (before, after))
    if not len(one.ios) or not len(other.ios):
        return Recovery(record_s, why="one of the two loads has no whole second")
    rate_MBps = other.bytes_ / record_s / 1e6
    mean_MBps = float(before.bw_Bps.mean()) / 1e6
    end_MBps = float(before.bw_Bps[-END_S:].mean()) / 1e6
    moments = [_first(rate_MBps >= limit, record_s) for limit in (mean_MBps, SHARE * end_MBps)]
    return Recovery(record_s, mean_MBps, moments[0], end_MBps, moments[1])


def _first(reached: np.ndarray, record_s: int) -> int | None:
    return int((np.argmax(reached) + 1) * record_s) if reached.any() else None
