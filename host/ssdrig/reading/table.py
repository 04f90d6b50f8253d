"""The run folder of a plan -> one row for each act that was run, with its figures.

A whole act has fio's counts from its first I/O to its end, and the power samples of exactly that time. The windows
that the plan names within it are in whole seconds (windows.py). Figures have the keys of window_figures.py; unknown
ones are None, and the row's notes give the reason. `value` finds a figure by the plan's word for it (plan/shows.py)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ssdrig import reading
from ssdrig.base.errors import JournalError, UsageError, by_a_person
from ssdrig.drive.wear import wa
from ssdrig.meter import reduced
from ssdrig.plan import expand, grammar, kinds, shows, values
from ssdrig.plan.expand import Act
from ssdrig.plan.rules import steady
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import (
    course,
    cuts,
    directions,
    errors,
    filling,
    fio,
    gaps,
    latency,
    own_report,
    own_work,
    power,
    retention_rows,
    row_figures,
    smart,
    trust,
    whole_run,
    window_figures,
    witness,
)
from ssdrig.reading.course import Course
from ssdrig.reading.cuts import with_cuts
from ssdrig.reading.event_words import step_label
from ssdrig.reading.events import load_events
from ssdrig.reading.rest import by_samples, per_GB
from ssdrig.reading.row import KEYS, LAT_KEYS, LITTLE_KEYS, WHOLE, Row, Table, Verdict
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.reading.steady_state import verdicts_of
from ssdrig.reading.wear_run import with_wear
from ssdrig.runs import journal, parts

MOST_BY_SECOND = 12
Windows = Sequence[tuple[str, int, int]]
MOST_WA = 20.0  # of a neighbour whose own is not known


def together(rows: Sequence[Row], window: str = WHOLE) -> dict:
    """The figures of several rows of one point, such as of five rounds: rates, energies and latencies of all of it
    together, the highest temperature, everything else (write amplification, CPU of the host) as the mean of the rows'.
    `notes`: why a percentile or the energy is None."""
    windows = [figures for row in rows if (figures := row.windows.get(window))]
    if len(windows) < 2:
        return windows[0] if windows else {}
    out: dict[str, Any] = {}
    for key in (*(key for key in KEYS if key != "errors"), "burst_iops", "pause_mean_W", "floor_W"):
        values = [f[key] for f in windows if f.get(key) is not None]
        out[key] = sum(values) / len(values) if values else None
    for key in ("samples", "samples_lost", "samples_clipped", "filled_s", "filled_J"):
        known = [f[key] for f in windows if f.get(key) is not None]
        out[key] = sum(known) if known else None
    for key in ("temperature_max_C", "lat_max_us", "clock_error_us"):
        out[key] = max((f[key] for f in windows if f.get(key) is not None), default=None)
    seconds = [f["t1_s"] - f["t0_s"] for f in windows]
    notes: list[str] = []
    if all(f.get("ios") for f in windows):
        out["ios"] = sum(f["ios"] for f in windows)
        out["iops_mean"] = out["ios"] / sum(seconds)
        out["lat_mean_us"] = sum(f["ios"] * f["lat_mean_us"] for f in windows) / out["ios"]
        for key in LITTLE_KEYS:  # of all the time together
            known = all(f.get(key) is not None for f in windows)
            out[key] = sum(f[key] * s for f, s in zip(windows, seconds, strict=True)) / sum(seconds) if known else None
        moved = [f["bw_mean_MBps"] * 1e6 * s for f, s in zip(windows, seconds, strict=True)]
        out["bw_mean_MBps"] = sum(moved) / sum(seconds) / 1e6
        powered = [i for i, f in enumerate(windows) if f.get("energy_J")]
        if powered:
            joules, ios = (sum(windows[i][key] for i in powered) for key in ("energy_J", "ios"))
            lasted, bytes_ = (sum(column[i] for i in powered) for column in (seconds, moved))
            out |= {"energy_J": joules if len(powered) == len(windows) else None}
            out |= window_figures.ratios(joules, lasted, ios, bytes_)
        if 0 < len(powered) < len(windows):
            has = "has" if len(powered) == 1 else "have"
            notes.append(f"energy_J: {len(powered)} of {len(windows)} rounds {has} power samples throughout")
    if window == WHOLE and all(len(row.lat) for row in rows):
        out |= dict.fromkeys(LAT_KEYS)
        out |= window_figures.percentiles(
            "lat", latency.counts(np.concatenate([row.lat for row in rows])), rows[0].k, notes
        )
        apart = {
            direction: latency.counts(np.concatenate([row.lat_of[direction] for row in rows]))
            for direction in directions.DIRECTIONS
            if all(direction in row.lat_of for row in rows)
        }
        of_directions = directions.figures(apart, sum(seconds), rows[0].k)
        of_directions.pop("errors")
        out |= of_directions
    else:
        lacking = [f"lat_{name}_us" for name in errors.PERCENTILES]
        out |= dict.fromkeys((*lacking, *directions.KEYS))
        why = "fio left no histogram of lat in one of the rounds"
        why = why if window == WHOLE else "a percentile of several windows is not the mean of theirs"
        notes.append(f"{', '.join(lacking)}: {why}")
    out["trust"] = strip(rows, window)
    out["errors"] = errors.together(windows, out)
    return out | {"t0_s": 0.0, "t1_s": sum(seconds), "notes": notes}


def strip(rows: Sequence[Row], window: str = WHOLE) -> list[dict] | None:
    """What claims about several rows of one point rest on (trust.py)."""
    strips = [(row.label, of["trust"]) for row in rows if (of := row.windows.get(window)) and of.get("trust")]
    return trust.whole(strips) if strips else None


def plan_of(run_path) -> str | None:
    """The name of the plan that a run folder's run.json holds; None for one older than plans. Raises JournalError."""
    plan = journal.run_header(run_path).get("plan")
    return str(plan.get("name")) if isinstance(plan, dict) and isinstance(plan.get("text"), str) else None


def in_full(run_path, samples: bool = False, more: Windows = ()) -> Course:
    """The load that a run is about, with what only samples show of it. `samples`: all of its samples, not only those
    around some moments; `more`: as of load(). Raises what load() raises."""
    return course.of(load(run_path, False, more, "samples" if samples else "cells"))


def load(run_path, by_second: bool = False, more: Windows = (), detail: str | None = None) -> Table:
    """Read the run folder of a plan, each step from the last part that ran it. `by_second`: the seconds of all
    rows stay, with their power. `more`: windows (name, from_s, to_s) that each step with I/O has besides the plan's.
    `detail`: of the main load of the run "cells" below the second, or all "samples", too. Raises JournalError if
    it is not a run folder, or if its plan cannot be read."""
    run, folders, tables = parts.shown(run_path)[0], parts.own(run_path), []
    whole = _of_part(run, by_second, more, detail)
    if folders[1:]:
        words = f"it has {len(folders)} parts; each step is taken from the last part that ran it"
        whole.data.notes.append(f"the run was cut short and resumed: {words}")
    whole.data.notes += parts.strange(run_path)
    for folder in folders:
        try:
            tables.append(whole if folder == run else _of_part(folder, by_second, more, detail))
        except JournalError as error:
            whole.data.notes.append(f"part {parts.number(folder)} is left out: {error}")
    joined = _joined(tables, whole) if tables[1:] else whole
    return with_cuts(with_wear(joined, tables), tables)


def _joined(tables: Sequence[Table], whole: Table) -> Table:
    """The table of a run of several parts: `whole`, that of its main part, with the rows of earlier parts that
    no later one repeated. Times are since the start of the first part."""
    places = {act.label: i for i, act in enumerate(whole.acts)}
    begun_ns = tables[0].data.header["started"]["utc_ns"]
    rows: list[tuple[Table, Row]] = []
    for part in tables:
        place = _went_on(part.data.header)
        new = {(row.act.label, row.round) for row in part.rows}
        rows = [
            (of, row)
            for of, row in rows
            if (row.act.label, row.round) not in new and _stands(row, places, whole.acts, *place)
        ]
        later_s = (part.data.header["started"]["utc_ns"] - begun_ns) / SECOND_NS / part.data.k
        rows += [(part, row.later(later_s, parts.number(part.path))) for row in part.rows]
    events = [event for part in tables for event in part.data.events if part is whole or _tells_of(event, part, rows)]
    for member in tables:
        if member is not whole and any(of is member for of, _ in rows):
            whole.data.notes += [f"part {parts.number(member.path)}: {note}" for note in member.data.notes]
    merged = [row for _, row in rows]
    purges = [method for part in tables for method in part.purges]
    return replace(whole, rows=merged, verdicts=_judged(events, merged), purges=purges)


def _went_on(header: Mapping) -> tuple[int, int]:
    """Where a part went on: index of its first act, number of its first round; anything else reads as the beginning."""
    resumed = header.get("resumed")
    place = [resumed.get(key) if isinstance(resumed, Mapping) else None for key in ("begins", "round")]
    begins, round_ = (at if type(at) is int else 0 for at in place)
    return begins, round_


def _stands(row: Row, places: Mapping[str, int], acts: Sequence[Act], begins: int, round_: int) -> bool:
    """Whether a row is as it was left when the run went on at this act and round: it is before that. Rounds that a
    rule judges belong to one part: an interruption ends the steady state."""
    if row.state not in ("done", "not run"):
        return False
    repeat = acts[begins].repeat if 0 <= begins < len(acts) else None
    if repeat and row.act.repeat and row.act.repeat.path == repeat.path:
        return not repeat.ruled and (row.round or 0) < round_
    return places.get(row.act.label, len(acts)) < begins


def _tells_of(event: Mapping, part: Table, rows: Sequence[tuple[Table, Row]]) -> bool:
    """Whether an event of a part is about a step whose rows stand."""
    path = str(event.get("step"))
    return any(of is part and f"{row.act.path}/".startswith(f"{path}/") for of, row in rows)


def _of_part(run: Path, by_second: bool, more: Windows, detail: str | None = None) -> Table:
    base = reading.begin(run)
    plan, acts = planned(base.header)
    acts = [_with(act, more) for act in acts]
    smart.read_polls(base, run)
    carried_out = list(_carried_out(base.events, acts))
    rows = [_row(base, run, *act) for act in carried_out]
    finer = read_finer(plan.shows, base, rows, run)
    timed = [power.asked_of_act(row.data) for row in rows] + [view.timed for view in finer] + [own_report.timed(base)]
    main, rest_ns = whole_run.longest(rows) if detail else None, course.rest_ns(rows)
    fine = course.Detail(main, rest_ns, detail == "samples") if main and main.data is not None else None
    timed += [fine.timed] if fine else []
    of_fine = [fine.edges_ns] if fine else []
    edges_ns = np.concatenate([np.empty(0, np.int64), *of_fine, *(view.edges_ns for view in finer)])
    powers = power.read_powers(
        base, run, edges_ns, watch=fine.watch if fine else None, timed=reduced.Asked.together(timed)
    )
    own_report.place(base, powers)
    rest = power.rest(base, powers, rest_ns)
    of_rest = {"idle_mean_W": rest.mean_W, "idle_uncertainty_W": rest.uncertainty_W}
    for row in rows:
        row.data = row.data and replace(row.data, closure=base.closure, **of_rest, **own_report.placed(base))
    if fine:
        fine.place(powers)
    load_events(base)
    for event in base.events:
        if event["kind"] in ("choose", "quiet", "rest"):
            for row in rows:
                row.result = {**event} if row.act.path == event["step"] else row.result
    for row in rows:
        if row.state == "running" and base.state != "running" or row.state == "failed" and by_a_person(row.why):
            row.state, row.why = "cut short", base.why
    shown, of_run = _by_second(plan, rows), trust.of_run(base)
    _place_polls(base, rows)
    base.notes += witness.rounds(base)
    for row, energy in [(row, power.energy_of_act(row.data, powers)) for row in rows]:
        stays = by_second or row.round is None or row.act.path in shown or row is main
        data = row.data
        row_figures.figures(row, energy, row_figures.folder_of(row, run), powers, stays)
        if (
            row.data is not None and row.round is not None and row.act.path not in shown and row is not main
        ):  # of thousands, they are large
            row.data = replace(row.data, hist=row.data.hist[:0], lat_hist=row.data.lat_hist[:0])
        by_samples(row)
        _rests_on(row, data, of_run)
    for rail, watts in zip(main.data.rails if main and main.data else [], rest.of_rails, strict=False):
        rail.idle_mean_W = watts
    per_GB(rows, max((s.get("nand_written_unit_bytes") or 0 for s in base.snapshots), default=0) or None)
    row_figures.gaps(rows)
    gaps.widen(rows)
    for reader in finer:
        reader.put(base, powers)
    purges = [str(event["method"]) for event in base.events if event["kind"] == "purge" and event.get("method")]
    return Table(run, base, plan, acts, rows, _judged(base.events, rows), purges)


def _rests_on(row: Row, data: RunData | None, of_run: Sequence[trust.Item]) -> None:
    """Give each window of the row its trust strip; the steady state, which a rule judges over several rows, is put
    there by _judged()."""
    if data is None:
        return
    event = witness.event_of(data.events, row.act.label, row.round)
    ceiling_iops = witness.ceiling_iops(data.events, row)
    for name, figures in row.windows.items():
        if figures:
            host = trust.Item("host", trust.NOT_APPLICABLE, why=f"{row.act.do} does no I/O")
            if row.act.do in (*kinds.IO, "wear"):
                window = None if name == WHOLE else Window(name, figures["t0_s"], figures["t1_s"], {})
                host = trust.host_of(witness.host(data, event, window, ceiling_iops))
            figures["trust"] = trust.of_window(data, figures, host, of_run, trust.steady_by([]))
            if figures.get("steady_state"):
                doubt = trust.why_not([host.as_json()])
                figures["steady_state"] = steady.not_claimed(figures["steady_state"], doubt)


def _judged(events: Sequence[dict], rows: Sequence[Row]) -> list[Verdict]:
    """The verdicts of the rule, each also an item of the windows that it is about."""
    verdicts = verdicts_of(events, rows)
    for verdict in verdicts:
        of = [(row, name) for row in rows for name in row.windows if verdict.about(row, name)]
        last = max((row.round or 0 for row, _ in of), default=0)
        strips = [(row.windows[name] or {}).get("trust") for row, name in of if (row.round or 0) > last - steady.ROUNDS]
        doubts = [why for items in strips if (why := trust.why_not(items, ("host",)))]
        verdict.verdict = steady.not_claimed(verdict.verdict, doubts[0] if doubts else None)
    for row in rows:
        for name, figures in row.windows.items():
            of = [verdict.verdict for verdict in verdicts if verdict.about(row, name)]
            if figures and of and "trust" in figures:
                figures["trust"] = [trust.steady_by(of).as_json(), *figures["trust"][1:]]
    return verdicts


def _by_second(plan: grammar.Plan, rows: Sequence[Row]) -> set[str]:
    """The steps of repeats that run a few times only, and that a view shows by the second."""
    views = [show for show in plan.shows if show["view"] in ("series", "scatter", "histogram")]
    named = {path for show in views for path in shows.listed(show["of"])}
    return {path for path in named if sum(row.act.path == path for row in rows) <= MOST_BY_SECOND}


def _with(act: Act, more: Windows) -> Act:
    """An act with I/O that has these windows, too."""
    if not more or act.do not in kinds.IO:
        return act
    spans = {name: values.Span(from_s=float(t0_s), to_s=float(t1_s), exact=True) for name, t0_s, t1_s in more}
    choices = tuple(_with(choice, more) for choice in act.choices)
    return replace(act, keys={**act.keys, "windows": {**act.keys.get("windows", {}), **spans}}, choices=choices)


def planned(header: Mapping) -> tuple[grammar.Plan, list[Act]]:
    """The plan of a run.json, and its acts on that drive. Raises JournalError."""
    stored = header.get("plan")
    if not isinstance(stored, Mapping) or not isinstance(stored.get("text"), str):
        raise JournalError("a run.json with its plan", "none", "take it from a copy of the run")
    try:
        plan = grammar.of_run(stored, "the plan of run.json")
        return plan, expand.expand(plan, header["drive"], frozenset(grammar.CAPABILITIES))
    except UsageError as error:
        raise JournalError(
            f"a plan in run.json that can be read ({error.expected})", error.seen, "use the ssdrig that made the run"
        ) from error


def _carried_out(events: Sequence[dict], acts: Sequence[Act]) -> Iterator[tuple]:
    """(act, its number in the repeat, round, state, why, begin_ns, end_ns), in the order of time."""
    known: dict[str, tuple[int, Act]] = {}
    for _, group in itertools.groupby(acts, key=lambda act: act.repeat):
        known |= {act.label: (number, act) for number, act in enumerate(group, 1)}
    begun: dict = {}
    for event in sorted(events, key=lambda e: e["t_ns"]):
        kind = event["kind"]
        if kind == "not_run" and event.get("label") in known:
            number, act = known[event["label"]]
            entry = begun.setdefault((act.label, None), [act, number, None, "not run", event.get("why"), None, None])
            entry[4] = event.get("why")
        if kind not in ("step.start", "step.end"):
            continue
        label = step_label(event)
        if label not in known:
            continue
        number, act = known[label]
        if kind == "step.start":
            act = act.at(event.get("chosen") or {})
            begun[label, event.get("round")] = [act, number, event.get("round"), "running", None, event["t_ns"], None]
        elif entry := begun.get((label, event.get("round"))):
            entry[3:5] = ("done", None) if event.get("ok") else ("failed", event.get("why"))
            entry[6] = event["t_ns"]
    yield from map(tuple, begun.values())


def _row(base: RunData, run: Path, act: Act, number: int, round_: int | None, state: str, why, begin_ns, end_ns) -> Row:
    """The row with its seconds; of a step without I/O only its time."""
    row = Row(act, round_, state, why, folder=act.folder(round_, number), k=base.k)
    if begin_ns is None:
        return row
    data = replace(base, header={**base.header, "method": method_of(act)}, notes=[], marks=[], log=[], polls=[])
    data.moments, data.watts_hist = [], {}
    data.t0_ns, data.load_s = begin_ns, base.until_cut_s(begin_ns, end_ns or begin_ns)
    if act.do in kinds.IO:
        data.t0_ns = None
        fio.load_step(data, row_figures.folder_of(row, run), begin_ns)
        row.notes += data.notes
    else:
        data.iops = data.bw_Bps = data.lat_mean_us = data.lat_p99_us = np.full(int(data.load_s + 1e-6), np.nan)
    row.data = data
    if data.t0_ns is not None:
        row.t0_ns, row.t0_s = data.t0_ns, float(base.axis_s(data.t0_ns))
        row.t1_s = row.t0_s + data.load_s
    return row


def method_of(act: Act) -> dict:
    """What window_figures asks of a load. `queue_depth`: None where fewer I/Os are under way: paced, or flushed;
    `paced`: fio waits for the time of each."""
    if act.do not in kinds.FIO:
        return {"tested_bytes": act.range_bytes, "threads": 1} if act.do == "replay" else {}
    keys = act.keys
    paced = bool({"rate", "every"} & set(keys))
    fewer = paced or keys.get("off") or keys.get("sync") == "flush"
    return {
        "tested_bytes": act.range_bytes,
        "queue_depth": None if fewer else keys["qd"] * keys["threads"],
        "threads": keys["threads"],
        "polled": int(keys["engine"] == "polled"),
        "paced": int(paced),
        "rate": keys.get("rate"),
    }


def _place_polls(base: RunData, rows: Sequence[Row]) -> None:
    """Gives each act with I/O its SMART polls: those under it, the last before it, and the first after it. Where other
    I/O falls in between, the nearest, with the bytes of that (`foreign_bytes`); none from beyond a purge."""
    purges = sorted(row.data.t0_ns or 0 for row in rows if row.act.do == "purge" and row.data is not None)

    def purged_ns(from_ns: int, to_ns: int) -> int:
        """When the last purge between began; 0: no purge."""
        return max((at for at in purges if from_ns < at < to_ns), default=0)

    busy = [row.data for row in rows if row.data is not None and row.data.totals and row.data.t0_ns is not None]
    acting = [row.data for row in rows if row.data is not None and row.act.do not in ("idle", "settle")]
    own = own_work.of_run(base.snapshots, acting, base.k)
    begins = [data.t0_ns or 0 for data in busy]
    for i, (data, before_ns, next_ns) in enumerate(
        zip(busy, [0, *map(power.end_ns, busy)], [*begins[1:], 1 << 62], strict=False)
    ):
        first, last = data.t0_ns or 0, power.end_ns(data)
        before = [{**s, "reason": "before"} for s in base.snapshots if before_ns <= s["t_start_ns"] <= first]
        under = [s for s in base.snapshots if first < s["t_start_ns"] <= last and s["reason"] in smart.UNDER_LOAD]
        afterwards = [{**s, "reason": "after"} for s in base.snapshots if last < s["t_start_ns"] < next_ns]
        if not before:
            earlier = [s for s in base.snapshots if purged_ns(0, first) < s["t_start_ns"] <= first]
            before = [_of_neighbours(poll, busy[:i], "before", base.snapshots) for poll in earlier[-1:]]
        if not afterwards:
            later = [s for s in base.snapshots if s["t_start_ns"] > last and not purged_ns(last, s["t_start_ns"])]
            afterwards = [_of_neighbours(poll, busy[i + 1 :], "after", base.snapshots) for poll in later[:1]]
        data.snapshots, data.own_work = [*before[-1:], *under, *afterwards[:1]], own
        smart.place_polls(data)


def _of_neighbours(poll: dict, acts: Sequence[RunData], reason: str, snapshots: Sequence[dict]) -> dict:
    """A reading that is the nearest to an act, before it or ("after") after it, with the bytes that the acts between
    moved meanwhile, how long they took, and the highest write amplification between readings there."""
    foreign, foreign_s = 0.0, 0.0
    for data in acts:
        written_bytes = np.concatenate([[0.0], np.cumsum(np.nan_to_num(data.bw_Bps))])
        total = max(float(data.totals.get("bytes") or 0.0), float(written_bytes[-1]))
        grid = np.append(np.arange(len(written_bytes)), max(len(written_bytes), data.load_s))
        by_then = float(np.interp(data.axis_s(poll["t_ns"]), grid, np.append(written_bytes, total)))
        foreign += total - by_then if reason == "before" else by_then
        before_s = min(max(0.0, float(data.axis_s(poll["t_ns"]))), data.load_s)
        foreign_s += data.load_s - before_s if reason == "before" else before_s
    at = next(i for i, snapshot in enumerate(snapshots) if snapshot["t_start_ns"] == poll["t_start_ns"])
    beside = snapshots[max(0, at - 2) : at + 3]
    ratios = [ratio.value for ratio in map(wa.between, beside, beside[1:]) if ratio.value is not None]
    seen = {"foreign_bytes": foreign, "foreign_s": foreign_s, "foreign_wa": max(ratios, default=MOST_WA)}
    return {**poll, "reason": reason, **seen}


def read_finer(views: Sequence[dict], base: RunData, rows: Sequence[Row], run: Path) -> list:
    """The figures of a run that need samples finer than seconds: objects with `edges_ns` (host times at which the
    energy is needed), and put(base, powers), which puts the results into `result` of their row:
    of the steps, and of the views that ask for more."""
    folders = {folder for folder in shows.folders().values() if hasattr(folder, "asks")}
    of_views = [asker for folder in sorted(folders, key=lambda of: of.__name__) for asker in folder.asks(views, rows)]
    of_steps = [
        *filling.read(base, rows, run / "fio"),
        *cuts.read_power(base, rows),
        *retention_rows.read(base, rows, run),
    ]
    return [*of_steps, *of_views]
