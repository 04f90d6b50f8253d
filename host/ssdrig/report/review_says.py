"""The sentences on the page of a review: verdicts of its plans, average power, endurance. Pure, from the tables
of its runs."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ssdrig.base import words
from ssdrig.base.uncertain import NOT_TRUSTED, Uncertain
from ssdrig.base.words import digits
from ssdrig.plan.rules import steady
from ssdrig.reading import errors, filling, gaps, smart, table, trust
from ssdrig.reading.row import Row, Table, Verdict
from ssdrig.views import headline
from ssdrig.views.average_power import formula as average_power_formula
from ssdrig.views.average_power import formula as average_power_terms
from ssdrig.views.context import doubt_at, figure, plus_minus, uncertain_at
from ssdrig.views.load_line import html as load_line_fit
from ssdrig.views.load_line import html as load_line_html
from ssdrig.views.plateaus import html as plateaus_html
from ssdrig.views.points.html import formula_of as by_formula
from ssdrig.views.replay import facts as replay_facts
from ssdrig.views.step_results import sentences

IDLE = (("background", "after-again"), ("load-line", "rest"), ("consistency", "idle"))  # where rest is measured
WORK = ("bench-light-like", "bench-heavy-like", "bench-destroyer-like", "consistency")  # the work of a day


def of_plan(run: Table) -> list[str]:
    """The results of a run of a plan besides its figures: its own formulas, lines through points, results of rests, and
    whether the steady steps are steady. A result that is not claimed has the items of the trust strip; the page states
    their reasons once."""
    out, unclaimed = [], dict[str, list[str]]()
    for show in run.plan.shows:
        if show["view"] == "figure":
            result = by_formula(run, show["formula"])
            percent = show.get("unit") == "%"
            text = plus_minus(result.scaled(100), "%") if percent else plus_minus(result)
            title = str(show.get("title", show["name"]))
            if result.reason == NOT_TRUSTED:
                unclaimed.setdefault(trust.briefly(result.why), []).append(title)
                continue
            out.append(f"{title}: {text if result.value is not None else f'not known ({result.why})'}")
        elif show["view"] == "load-line":
            paths = show["of"] if isinstance(show["of"], list) else [show["of"]]
            for path in paths:
                if doubt := doubt_at(run, path, {}, "W"):
                    unclaimed.setdefault(trust.briefly(doubt), []).append(path)
                else:
                    out.append(f"{path}: {load_line_html.in_words(line_of(run, path))}")
    for row in run.rows:
        lines = sentences(row) if row.state == "done" else []
        if lines and (doubt := trust.why_not(table.strip([row]))):
            unclaimed.setdefault(trust.briefly(doubt), []).append(row.act.label)
        else:
            out += [f"{row.act.label}: {'; '.join(lines)}"] if lines else []
    out += [f"Not claimed ({items}): {', '.join(names)}" for items, names in unclaimed.items()]
    failed = [one for one in run.verdicts if not one.verdict["passed"]]
    held = [one for one in run.verdicts if one.verdict["passed"]]
    if held:
        out.append(f"Steady state reached by {', '.join(map(_named, held))}")
    out += gaps.words(run.rows)
    return out + [f"{steady.heading([one.verdict])} by {_named(one)}" for one in failed]


def not_steady(runs: Mapping[str, Table]) -> list[str]:
    """The runs whose steady states were not reached or are not known. `runs`: by their names on the page."""
    out: dict[str, dict[str, None]] = {}
    for name, run in runs.items():
        for one in run.verdicts:
            why = str(one.verdict.get("why") or "")
            rests = f" ({trust.briefly(why)})" if why.startswith(steady.NOT_CLAIMED) else ""
            if not one.verdict["passed"]:
                out.setdefault(steady.heading([one.verdict]) + rests, {})[name] = None
    return [f"{heading}: {', '.join(names)}" for heading, names in out.items()]


def _named(one: Verdict) -> str:
    untested = f"; {_untested(one.verdict)}" if one.verdict["passed"] is None else ""
    at = steady.rests_on(one.verdict)
    return f"{one.path.partition(' ')[0]} ({one.words}{f', {at}' if at else ''}{untested})"


def _untested(verdict: Mapping) -> str:
    why = steady.why_unknown(verdict)
    return f"{steady.NOT_CLAIMED}, {trust.briefly(why)}" if why.startswith(steady.NOT_CLAIMED) else why


def line_of(run: Table, path: str) -> load_line_fit.Line:
    """Power over rate of the points of a step."""
    return load_line_fit.fit(load_line_html.measured(run, path, {}))


def average(tables: Mapping[str, Table]) -> dict[str, list[str]]:
    """Average power with realistic downtime, of each kind of user in a line, with its terms and assumptions; or the
    reason why it is not known. `tables`: by the plan's name."""
    work = next(((name, row) for name in WORK if name in tables and (row := _work(tables[name]))), None)
    powers = [_at_rest(tables, name, path) for name, path in IDLE]
    idle = next((power for power in powers if power.value is not None), None)
    if work is None or idle is None or idle.value is None:
        lacks = "no plan of the review has measured the energy of a work" if work is None else "no plan measured a rest"
        return {f"average power with downtime: not known, {lacks} with the rig": []}
    name, row = work
    if doubt := doubt_at(tables[name], row.act.path, {}, "J/GB"):
        return {f"not claimed ({trust.briefly(doubt)})": []}
    figures, lasted_s = row.windows["all"] or {}, (row.t1_s or 0.0) - (row.t0_s or 0.0)
    written = figures["bw_mean_MBps"] * 1e6 * lasted_s * (1 - row.act.keys.get("read", 0) / 100)
    background = _quiet(tables.get("background"))
    if why := background.get("time_why"):
        return {f"average power with downtime: not known, background work: {why}": []}
    measured = average_power_formula.Measured(
        figures["energy_J"],
        lasted_s,
        written,
        idle.value,
        background_above_J=background.get("above_J") or 0.0,
        background_s=background.get("after_s") or 0.0,
    )
    work_words = f"the work is {row.act.path} of {name}; rest and background work are as the other plans measured them"
    errors_of = average_power_terms.errors_of([row], {**background, "floor_error_W": idle.error})
    out: dict[str, list[str]] = {}
    for who, bytes_per_day in average_power_formula.PROFILES_BYTES.items():
        first, *rest = average_power_formula.average(measured, bytes_per_day, f"the {who} user", errors_of).lines()
        day = f"{words.size(bytes_per_day)} written a day by {row.act.path} of {name}"
        out[f"{who} user, {day}: {first}"] = [*rest, f"assumed: {work_words}"]
    return out


def _work(run: Table) -> Row | None:
    """The longest load of a run with known energy that writes."""
    rows = []
    for row in run.rows:
        writes = row.act.do not in ("fill", "idle") and row.act.keys.get("read", 0) < 100 and row.act.repeat is None
        if writes and row.state == "done" and (row.windows.get("all") or {}).get("energy_J"):
            rows.append(row)
    return max(rows, key=lambda row: (row.t1_s or 0) - (row.t0_s or 0), default=None)


def _at_rest(tables: Mapping[str, Table], name: str, path: str) -> Uncertain:
    if name not in tables:
        return Uncertain(None)
    if floor := (quiet := _quiet(tables[name])).get("floor_W"):
        return Uncertain(floor, quiet.get("floor_error_W"))
    return uncertain_at(tables[name], path, {}, "W")


def _quiet(run: Table | None) -> dict[str, Any]:
    """The last rest that became quiet."""
    rows = run.rows if run else []
    events = [row.result for row in rows if row.result.get("kind") == "quiet" and row.result.get("reached")]
    return events[-1] if events else {}


def endurance(tables: Sequence[Table], rated_bytes: float | None, rated_words: str) -> list[str]:
    """What the review has written to the drive by the drive's own counters, its write amplification, and the share of
    the rated endurance."""
    snapshots = sorted((s for run in tables for s in run.data.snapshots), key=lambda s: s["t_start_ns"])
    known = [snapshot for snapshot in snapshots if snapshot["host_written_bytes"] is not None]
    if len(known) < 2:
        return ["The drive's counters do not report host writes"]
    first, last = known[0], known[-1]
    host_bytes = last["host_written_bytes"] - first["host_written_bytes"]
    amplification = smart.amplification(first, last)
    share = f", {digits(100 * host_bytes / rated_bytes, 3)} % of {rated_words}" if rated_bytes else ""
    out = [f"The review wrote {words.size(host_bytes)} to the drive{share}; write amplification {amplification}"]
    if rated_bytes:
        left = rated_bytes - last["host_written_bytes"]
        rest = f"{words.size(left)} are left" if left >= 0 else f"that is {words.size(-left)} more than all"
        out.append(f"{words.size(last['host_written_bytes'])} were written to it in its life; {rest} of {rated_words}")
    else:
        out.append("The rated endurance of this model is not known: give it in warranty.toml")
    if last.get("percentage_used") is not None:
        out.append(f"Percentage used, as the drive reports it: {last['percentage_used']} %")
    return out


def slc_cache(tables: Sequence[Table]) -> str:
    """Size of the cache on an empty and on a full drive, and its recovery; an unknown figure with its
    reason. "" where no plan has looked."""
    out = []
    for row in (row for run in tables if run.plan.name == "slc-cache" for row in run.rows):
        if row.result.get("kind") != "plateaus":
            continue
        where, event = f"on the {row.act.path} drive", row.result
        if event["cache_bytes"] is None:
            out.append(f"{where} no end of a cache was found, {event['cache_why']}")
            continue
        fast, slow = event["plateaus"][:2]
        speeds = [plus_minus(plateaus_html.speed_of(plateau), "MB/s") for plateau in (fast, slow)]
        span = plateaus_html.span(slow)
        out.append(
            f"{where} the cache takes {plateaus_html.sized(event)} at {speeds[0]}, then the drive writes {speeds[1]}"
            + (f" ({span} MB/s)" if span else "")
        )
    for back in (back for run in tables for back in filling.recoveries(run.plan.shows, run.rows)):
        if back["rate_Bps"] is None:
            out.append(f"how fast it comes back is not known: {back['why']}")
            continue
        cost = Uncertain(back["energy_J_per_GB"], back["energy_error_J_per_GB"])
        joules = f" for {plus_minus(cost, 'J')} each GB" if cost.value is not None else ""
        speed = Uncertain(back["rate_Bps"], back["rate_error_Bps"]).scaled(1e-6)
        out.append(f"{plus_minus(speed, 'MB/s')} of it come back{joules}{plateaus_html.begun(back['delay_s'])}")
    text = "; ".join(out)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def unclaimed(tables: Sequence[Table]) -> str:
    """The runs without a claim, because of their host or because they are not steady; "" without any."""
    names: dict[str, list[str]] = {}
    for run in tables:
        names.setdefault(trust.briefly(trust.why_not(run.trust, trust.OF_LOAD) or ""), []).append(run.plan.name)
    return " ".join(f"Not claimed ({items}): {', '.join(of)}." for items, of in names.items())


def traces(tables: Sequence[Table]) -> str:
    """Data rate, service times and energy of each trace that was played. "" where none was."""
    out = []
    for run in tables:
        for row in run.rows:
            if row.state != "done" or row.result.get("kind") != "played":
                continue
            parts, of_all = [], row.result["all"] or {}
            if (rate := row.result["data_rate_MBps"]) is not None:
                parts.append(f"{figure(rate)} MB/s while busy")
            parts += [
                f"{name} {headline.in_words(Uncertain(of_all[key], error), 'µs')}"
                for key, name, error in (
                    ("mean_us", "mean service time", replay_facts.mean_error_us(row)),
                    ("p99_us", "P99", None),
                )
                if of_all.get(key) is not None
            ]
            cost = errors.of("energy_J_per_GB", row.windows["all"] or {})
            if cost.value is not None:
                parts.append(plus_minus(cost, "J/GB"))
            if row.result["lag"] and not row.result["lag"]["as_recorded"]:
                parts.append("NOT PLAYED AT THE TRACE'S TIMES")
            out.append(f"{run.plan.name}, {row.act.label}: {', '.join(parts)}")
    return f"{'; '.join(out)}." if out else ""


def nested(lines: Mapping[str, Sequence[str]]) -> str:
    """The same, each line with those that explain it."""
    entries = (
        f"<li>{escape(line)}"
        + (f"<details><summary>Terms and assumptions</summary>{items(below)}</details>" if below else "")
        + "</li>"
        for line, below in lines.items()
    )
    return f"<ul>{''.join(entries)}</ul>"


def items(lines: Sequence[str]) -> str:
    """As a list of the page."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""
