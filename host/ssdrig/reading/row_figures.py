"""The figures of one act of a plan: of all of it, and of the windows that the plan names (keys of window_figures.py).
Unknown figures are None, and the row's notes give the reason."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig.base.errors import LoadError
from ssdrig.base.words import digits
from ssdrig.load import application_log, fioclock, fiojob, fiotext, foreign, playedlog, recorded
from ssdrig.meter import rails
from ssdrig.meter.reduced import Reduced
from ssdrig.plan import kinds, values
from ssdrig.plan.rules import ends, steady, windows
from ssdrig.reading import (
    bursts,
    directions,
    errors,
    latency,
    little,
    power,
    steady_state,
    wear_run,
    window_figures,
    witness,
)
from ssdrig.reading.row import IO_KEYS, KEYS, LAT_KEYS, PER_IO, POWER_KEYS, WEAR_KEYS, WHOLE, Row
from ssdrig.reading.rundata import RunData

WROTE_IN = {"replay": "played", "record": "recorded"}  # folder of a run, by the kind of step; else fio
REQUESTS = "IOPS, bytes and latency count requests as the kernel gave them to the drive, merged and split"
NO_LATENCY = "the kernel counts milliseconds, and these are too few"
WITHOUT_FLUSH = "latencies exclude the flush after each write; IOPS include it"
# how a note begins of a load whose figures begin after fio's first burst, and of a trace
FIRST_BURST, LAG, SCALED = "first burst: ", "lag: ", "SCALED: "


def folder_of(row: "Row", run: Path) -> Path:
    """Where fio, the player or the recorder wrote."""
    return run / WROTE_IN.get(row.act.do, "fio") / row.folder


def figures(row: "Row", energy: power.Energy | None, folder: Path, powers: list[Reduced], by_second: bool) -> None:
    """The windows of a row. `energy`: of all of it. `by_second`: its seconds stay and have their power."""
    data = row.data
    if data is None or row.t0_s is None or row.act.do == "choose":
        return
    if row.act.do == "record" and not (folder / foreign.NAME).exists():
        _recorded(row, folder)
    whole: dict[str, Any] = dict.fromkeys(KEYS)
    ios, moved = data.totals.get("ios"), data.totals.get("bytes")
    first_s = fiojob.first_burst_s(row.act.keys.get("on", 0.0), row.act.keys.get("off", 0.0))
    if first_s:
        _after_first_burst(row, data, math.ceil(first_s), powers)
        if not by_second:
            row.data = None
        return
    if ios and data.load_s:
        whole |= _io(row, data, ios, moved or 0, folder)
        whole |= _in_flight(data, row.notes)
    elif row.act.do == "wear":
        ios, moved = _wear(row, data, whole)
    elif row.act.do in kinds.IO:
        why = "fio's counts of the whole step are not known" if ios is None else "no I/O was counted"
        row.notes.append(f"{', '.join(IO_KEYS)}: {why}")
    else:
        row.notes.append(f"{', '.join((*IO_KEYS, *WEAR_KEYS, *PER_IO))}: {row.act.do} does no I/O")
    if energy and energy.J and data.load_s:
        whole |= {"energy_J": energy.J, "power_uncertainty_percent": energy.uncertainty_percent}
        whole |= window_figures.ratios(energy.J, data.load_s, ios or 0, moved or 0)
    else:
        why = (energy.why or rails.NO_POWER) if energy else "the run has no power samples"
        row.notes.append(f"{', '.join(POWER_KEYS)}: {why}")
    if powers and data.t0_ns is not None:
        whole |= power.quality(powers, data.t0_ns, power.end_ns(data), data.k)
    n = len(data.iops)
    if row.act.do == "wear":
        whole["errors"] = errors.of_totals(
            whole, wear_run.rates(data.events, row.act.path), wear_run.did(data.events, row.act.path)["io_s"]
        )
        row.windows[WHOLE] = whole | {"t0_s": 0.0, "t1_s": data.load_s}
        row.data = row.data if by_second else None
        return
    if ios and n:
        span = windows.Window(WHOLE, 0, n, {})
        for of_drive in (window_figures.wear, window_figures.temperature):
            whole |= {key: value for key, value in of_drive(data, span, row.notes).items() if key in KEYS}
    elif ios:
        row.notes.append(f"{', '.join(WEAR_KEYS)}: it lasted less than a second")
    if ios:
        _witnessed(row, data)
    power.on_grid(data, powers)
    whole["errors"] = {**(whole["errors"] or {}), **errors.of_window(data, whole, 0, n)}
    whole["errors"] |= directions.scattered(whole, whole["errors"])
    whole["errors"] = errors.claimed(data, 0, n, whole["errors"], row.notes)
    if row.act.keys.get("every") and (error_us := errors.of_apart_us(latency.counts(row.lat), data.k)) is not None:
        whole["errors"]["lat_mean_us"] = error_us
    row.windows[WHOLE] = whole | {"t0_s": 0.0, "t1_s": data.load_s}
    _windows(row, data)
    if not by_second:
        row.data = None  # of a thousand points a second by second view would fill the memory


def gaps(rows: "Sequence[Row]") -> None:
    """How long the drive rested before each load that came right after another: from fio's end to the next one's
    first I/O, by fio's own clocks."""
    ended_s: float | None = None
    for row in rows:
        if row.state == "not run":
            continue
        with_io = row.act.do in ("fill", "load") and row.t0_s is not None
        whole = row.windows.get(WHOLE)
        if with_io and whole and row.t0_s is not None:
            whole["gap_s"] = None if ended_s is None else row.t0_s - ended_s
        ended_s = row.t1_s if with_io else None


def _wear(row: "Row", data: RunData, whole: dict[str, Any]) -> tuple[int, int]:
    """Rates of a wear step while fio wrote; its energy covers all of it, the reading of its samples included. Returns
    I/Os and bytes."""
    did, path = wear_run.did(data.events, row.act.path), row.act.path
    seconds = did["io_s"]
    if seconds:
        whole |= {"ios": did["ios"], "iops_mean": did["ios"] / seconds, "bw_mean_MBps": did["bytes"] / seconds / 1e6}
    whole["wa"] = wear_run.course(data.events, path)["wa"]
    warmest = [part.temperature_C for part in wear_run.slices(data.events, path) if part.temperature_C is not None]
    whole["temperature_max_C"] = max(warmest, default=None)
    lacking = [key for key in (*IO_KEYS, "wa", "temperature_max_C") if whole[key] is None]
    row.notes.append(f"{', '.join(lacking)}: not recorded for slices, or the drive does not report it")
    return int(did["ios"]), int(did["bytes"])


def _witnessed(row: "Row", data: RunData) -> None:
    event = witness.event_of(data.events, row.act.label, row.round)
    row.kernel, notes = witness.kernel(event, data.totals)
    notes += witness.verdicts(data, event, ceiling_iops=witness.ceiling_iops(data.events, row))
    row.notes += [note.replace("fio", "the player") for note in notes] if row.act.do == "replay" else notes


def _after_first_burst(row: "Row", data: RunData, begin: int, powers: list[Reduced]) -> None:
    """The windows of a load with pauses: whole cycles, each a pause and the burst after it, from second `begin` on."""
    n = bursts.end_s(len(data.iops), begin, row.act.keys["on"] + row.act.keys["off"])
    power.on_grid(data, powers)
    if data.totals.get("ios"):
        _witnessed(row, data)
    row.notes.append(
        f"{FIRST_BURST}fio's takes {begin} s, a burst and a pause, because it counts a pause first; all figures cover"
        f" the seconds from {begin} on, pauses and bursts in turn"
    )
    if n - begin < windows.FEWEST_S:
        row.windows[WHOLE] = None
        row.notes.append(f"{', '.join(KEYS)}: the load ended {max(0, n - begin)} s after its first burst")
    else:
        span = windows.Window(WHOLE, begin, n, steady.of_seconds(data.iops[begin:n]))
        figures = window_figures.figures_in(data, span)
        row.notes += [*figures["notes"], "host_cpu_percent: fio reports it for the first burst and the rest together"]
        row.windows[WHOLE] = {key: figures.get(key) for key in (*KEYS, "t0_s", "t1_s")}
        row.windows[WHOLE] = _with_bursts(row.windows[WHOLE], row, data, begin, n)
        counts = window_figures.lat_counts(data, span)
        row.lat = row.lat if counts is None else _cells(counts)
    _windows(row, data, begin, n)


def _with_bursts(figures: dict, row: "Row", data: RunData, begin: int, end: int) -> dict:
    """Figures with the results of bursts.of there; unchanged for a load without pauses."""
    on_s, off_s = row.act.keys.get("on"), row.act.keys.get("off")
    if not on_s or not off_s:
        return figures
    first = math.ceil(fiojob.first_burst_s(on_s, off_s))
    figures_of, why = bursts.of(data, first, begin, end, on_s, off_s)
    row.notes += [f"{', '.join(key for key in bursts.KEYS if figures_of[key] is None)}: {why}"] if why else []
    return figures | figures_of | {"errors": {**(figures.get("errors") or {}), **(figures_of.get("errors") or {})}}


def _cells(counts: np.ndarray) -> np.ndarray:
    """I/Os by bin as cells of one time: (0, bin, I/Os)."""
    at = np.flatnonzero(whole := np.rint(counts).astype(np.int64))
    return np.stack([np.zeros(len(at), np.int64), at, whole[at]], axis=1)


def _windows(row: "Row", data: RunData, begin: int = 0, end: int | None = None) -> None:
    """The windows that the plan names, of a load with its power by the second; seconds before `begin` or from
    `end` on belong to none."""
    spans = dict(row.act.keys.get("windows", {}))
    judged = row.act.keys.get("judge", {}).get("window")
    if judged and judged not in spans:
        spans[judged] = values.span(judged)
    for name, span in spans.items():
        if name != WHOLE:
            row.windows[name] = _in_window(row, data, name, span, begin, len(data.iops) if end is None else end)


def _io(row: "Row", data: RunData, ios: int, moved: int, folder: Path) -> dict:
    """What fio counted over the whole act."""
    seconds, k = data.load_s, data.k
    out: dict[str, Any] = {"ios": ios, "iops_mean": ios / seconds, "bw_mean_MBps": moved / seconds / 1e6}
    lat_sum_ns = data.totals["lat_sum_ns"]
    out["lat_mean_us"] = None if lat_sum_ns is None else lat_sum_ns / ios / 1000 / k
    if row.act.do == "record" and (folder / foreign.NAME).exists():
        return out | _foreign(row, out, folder)
    if row.act.do == "record":
        row.notes.append(f"requests: {REQUESTS}")
        lacking = [*LAT_KEYS, "host_cpu_percent", *(["lat_mean_us"] if lat_sum_ns is None else [])]
        row.notes.append(
            f"{', '.join(lacking)}: {NO_LATENCY if lat_sum_ns is None else 'the kernel counts no such thing'}"
        )
        return out
    if row.act.keys.get("sync") == "flush":
        row.notes.append(WITHOUT_FLUSH)
    by_minute = latency.of(data).lat_mean_us
    out["lat_mean_most_us"] = float(np.nanmax(by_minute)) if np.isfinite(by_minute).any() else None
    out["host_cpu_percent"] = data.totals.get("cpu_percent")
    if out["host_cpu_percent"] is None:
        row.notes.append("host_cpu_percent: fio's last document does not report it")
    ranks_off = errors.rank_errors(data.hist, 0, len(data.iops))
    if row.act.do == "replay":
        row.lat = _cells(latency.counts(data.hist))
        _played(row, folder, k)
    else:
        _, tail, *_ = fioclock.ends(folder / "out.json")
        last = tail[-1] if tail else None
        counts = fiotext.bins(last, None, "lat_ns")
        row.lat = _cells(counts)
        by_direction = directions.histograms(last)
        row.lat_of = {direction: _cells(counts) for direction, counts in by_direction.items()}
        if len(row.lat):
            out |= directions.figures(by_direction, seconds, k, ranks_off)
    if len(row.lat):
        by_bin = latency.counts(row.lat)
        out |= (latencies := window_figures.percentiles("lat", by_bin, k, row.notes))
        bounds = errors.of_percentiles("lat", by_bin, errors.PERCENTILES, k, ranks_off)
        known = {key: error for key, error in bounds.items() if latencies.get(key) is not None}
        out["errors"] = {**(out.get("errors") or {}), **known}
    else:
        row.notes.append(f"{', '.join(LAT_KEYS)}: fio left no histogram of lat")
    return out


def _played(row: "Row", folder: Path, k: int) -> None:
    """The figures of a trace alone: its lag, its data rate, service times of reads and of writes."""
    try:
        event: dict[str, Any] = {"kind": "played", **playedlog.figures(folder, k)}
    except LoadError as error:
        row.notes.append(f"played: {error}")
        return
    row.result = event
    row.notes += [f"{key}: {why}" for key, why in event["not_known"].items()]
    if event["scaled"]:
        row.notes.append(f"{SCALED}{event['of_ios']} I/Os, fewer than {event['trace']} has")
    if event["lag"] and not event["lag"]["as_recorded"]:
        late = event["lag"]["late_percent"]
        row.notes.append(f"{LAG}NOT PLAYED AT THE TRACE'S TIMES: {digits(late, 3)} % of its I/Os were later than 1 ms")


def _recorded(row: "Row", folder: Path) -> None:
    """The kernel's counts besides reads and writes, and how the command ended."""
    try:
        row.result = {"kind": "recorded", **recorded.figures(folder, row.k)}
    except LoadError as error:
        row.notes.append(f"recorded: {error}")
    if row.data is not None and any(event["kind"] == application_log.EVENT for event in row.data.events):
        _logged(row, row.data, folder)


def _logged(row: "Row", data: RunData, folder: Path) -> None:
    """The log that an application kept during a recording."""
    assert data.t0_ns is not None
    span_ns = data.t0_ns, data.t0_ns + round(data.load_s * data.k * 1e9)
    try:
        figures, log, at = application_log.laid(folder, data.events, row.act.path, span_ns, data.k)
    except LoadError as error:
        row.notes.append(f"application log: no {error.expected}: {error.seen}")
        return
    row.result["application_log"] = figures
    row.notes += [f"application log: {note}" for note in figures["notes"]]
    t_s = data.axis_s(at.t_ns)
    data.logged = [(name, *application_log.by_second(t_s, of)) for name, of in log.values.items()]


def _foreign(row: "Row", of_io: dict, folder: Path) -> dict:
    """The figures of an imported log of fio besides its counts: percentiles, reads and writes apart."""
    document, data = foreign.content(folder), row.data
    assert data is not None
    out: dict[str, Any] = {"host_cpu_percent": data.totals.get("cpu_percent"), "errors": {}}
    if out["host_cpu_percent"] is None:
        row.notes.append("host_cpu_percent: fio's JSON is missing, or has no CPU time")
    if of_io["lat_mean_us"] is None:
        row.notes.append("lat_mean_us: fio kept no latency with submission (lat)")
    sides = {name: side for name, side in document["sides"].items() if name in directions.DIRECTIONS}
    by_kind = {kind: {name: foreign.histogram(document, kind, name) for name in sides} for kind in ("lat", "clat")}
    kind = next((kind for kind, sides in by_kind.items() if any(counts.any() for counts in sides.values())), None)
    row.result = {"kind": "foreign", "source": document["source"], "jobs": document["jobs"], "percentiles_of": kind}
    row.result |= foreign.counts(document)
    if kind:
        row.result |= directions.figures(by_kind[kind], data.load_s, data.k)
    by_direction = by_kind["lat"]
    row.lat = _cells(foreign.histogram(document, "lat"))
    if len(row.lat):
        row.lat_of = {name: _cells(counts) for name, counts in by_direction.items()}
        out |= directions.figures(by_direction, data.load_s, data.k)
        counts = latency.counts(row.lat)
        out |= (percentiles := window_figures.percentiles("lat", counts, data.k, row.notes))
        bounds = errors.of_percentiles("lat", counts, errors.PERCENTILES, data.k)
        known = {key: error for key, error in bounds.items() if percentiles.get(key) is not None}
        return out | {"errors": {**out["errors"], **known}}
    instead = "; `found` has those of clat, from when the drive was given the I/O" if kind else ""
    why = f"fio kept no histogram of lat (json+ with lat_percentiles=1 does){instead}"
    row.notes.append(f"{', '.join(LAT_KEYS)}: {why}")
    for name, side in sides.items():
        out[f"{name}_iops"] = side["ios"] / data.load_s
        if side["ios"] and side["lat_sum_ns"] is not None:
            out[f"{name}_lat_mean_us"] = side["lat_sum_ns"] / side["ios"] / 1000 / data.k
    return out


def _in_flight(data: RunData, notes: list[str]) -> dict:
    """Little's check of a closed loop."""
    asked = data.asked("queue_depth")
    check = little.of_load(data.totals, asked, int(data.asked("threads") or 1)) if asked else None
    if asked is None or check is None:
        return {}
    error = check.error_percent
    if check.why:
        notes.append(f"littles_error_percent: {check.why}")
    elif error is not None and abs(error) > window_figures.LITTLE_PERCENT:
        notes.append(window_figures.LITTLE_OFF.format(check.in_flight, asked))
    return {"littles_qd": check.in_flight, "littles_error_percent": error}


def _in_window(row: "Row", data: RunData, name: str, span: values.Span, first: int, n: int) -> dict | None:
    """The figures of a stretch of the load, which counts from second `first` to `n`; None, with a note, where it has
    none such."""
    begin, why = max(first, round(ends.begins_s(span, n))), None
    end: int | None = n if span.to_s is None else min(n, round(span.to_s))
    if span.cliff:
        end, why = windows.cliff(data.iops)
    if span.exact and span.to_s is not None and span.to_s > n:
        end, why = None, f"the step lasted {n} whole seconds, and the window ends at {span.to_s:g} s"
    if row.act.keys.get("off") and end is not None:
        begin, end = bursts.whole(row.act.keys["on"], row.act.keys["off"], begin, end)
    if end is None or end - begin < windows.FEWEST_S:
        row.notes.append(f"window {name}: {why or f'the step lasted {n} whole seconds'}")
        return None
    verdict = steady_state.of_row(row, data)(begin, end)
    figures = window_figures.figures_in(data, windows.Window(name, begin, end, verdict))
    window = {key: value for key, value in figures.items() if key not in ("name", "label", "unfinished")}
    return _with_bursts(window, row, data, begin, end)
