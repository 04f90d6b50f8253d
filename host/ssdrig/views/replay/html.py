"""The view of played traces: their figures, a column for each of them."""

from collections.abc import Iterator

from ssdrig.reading.row import Row
from ssdrig.views.context import Context, by_column, panel
from ssdrig.views.step_results import played

SIDES = (("all", "all"), ("reads", "reads"), ("writes", "writes"))
TIMES = (("mean_us", "mean"), ("p99_us", "P99"), ("p999_us", "P99.9"), ("max_us", "longest"))
ORIGINAL = (("mean_us", "mean"), ("p99_us", "P99"), ("max_us", "longest"))
SLOW = (("over_10ms_percent", "over 10 ms"), ("over_100ms_percent", "over 100 ms"))
NARROW = 4  # columns that need no more width than a plot
Cells = list[tuple[str, str, list[tuple[float | None, str]]]]  # of each figure: its name, unit, (value, why not) a row


def replay(context: Context) -> str:
    """Data rate, service times, share of slow I/Os, lag, time and energy of each step."""
    rows, heads = [], []
    for run, name in context.runs():
        for path in context.paths:
            for row in run.of(path):
                if row.result.get("kind") == "played":
                    rows.append(row)
                    heads.append(row.act.label + (f", round {row.round}" if row.round else "") + name)
    title = context.title("Played traces")
    if not rows:
        return panel(title, "<p>not run</p>")
    body = by_column(heads, lines_of(rows))
    sentences = [f"{head}: {'; '.join(played(row.result))}." for head, row in zip(heads, rows, strict=True)]
    sources = dict.fromkeys(f"Source: {row.result['source']}." for row in rows if row.result["source"])
    synthetic = "Made from statistics, not recorded." if any(row.result["synthetic"] for row in rows) else ""
    return panel(title, body, " ".join([*sentences, synthetic, *sources]), "wide" if len(rows) > NARROW else "")


def lines_of(rows: list[Row]) -> Iterator[tuple[str, str, list[tuple[float | None, str]]]]:
    """Each figure: its name, its unit, and of each row (value, why it is missing)."""

    def of(key: str, part: str | None = None) -> list[tuple[float | None, str]]:
        cells = []
        for row in rows:
            whole = row.result if part is None else row.result.get(part) or {}
            name = key if part is None else f"{part}.{key}"
            reasons = row.result["not_known"]
            cells.append((whole.get(key), reasons.get(name) or reasons.get(part or "") or "no such I/O"))
        return cells

    def measured(word: str) -> list[tuple[float | None, str]]:
        return [(row.value(word), row.why_not(word) if row.value(word) is None else "") for row in rows]

    yield "Data rate while busy", "MB/s", of("data_rate_MBps")
    for side, words in SIDES:
        for key, name in TIMES:
            yield f"Service time, {words}, {name}", "µs", of(f"{key}", side)
        for key, name in SLOW:
            yield f"I/Os {name}, {words}", "%", of(key, side)
    yield "Queue depth, mean", "", of("mean", "depth")
    if any(row.result.get("trace_depth") for row in rows):
        yield "Queue depth of the trace, mean", "", of("mean", "trace_depth")
    for side, key, name in [(side, *time) for side in ("reads", "writes") for time in ORIGINAL]:
        values = [((row.result.get("service") or {}).get(side) or {}).get(key) for row in rows]
        if any(value is not None for value in values):
            missing = "the trace does not state when an I/O ended"
            yield f"Service time of the original, {side}, {name}", "µs", [(value, missing) for value in values]
    if any(row.result.get("fua_writes") for row in rows):
        yield "Writes with FUA", "", of("fua_writes")
    yield "Time to complete", "s", of("time_s")
    yield "Energy", "J", [((row.windows.get("all") or {}).get("energy_J"), row.why_not("W")) for row in rows]
    yield "Energy per GB", "J", measured("J/GB")
    yield "Mean power", "W", measured("W")
    for key, name, unit in (("p99_us", "Lag, P99", "µs"), ("late_percent", "I/Os later than 1 ms", "%")):
        yield name, unit, of(key, "lag")
    if any(row.result.get("late_us") is not None for row in rows):
        yield "Answers later than the drive's time", "µs", of("late_us")


HTML = {"replay": replay}  # view -> how it is drawn
