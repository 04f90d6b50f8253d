"""The results of a choose, an idle or a replay step, and the begin of the measured part of a load with pauses."""

from collections.abc import Mapping

from ssdrig.base import words
from ssdrig.base.uncertain import Uncertain
from ssdrig.base.words import digits
from ssdrig.plan import grammar, shows
from ssdrig.reading import errors
from ssdrig.reading.row import WHOLE, Row
from ssdrig.views.context import figure, plus_minus
from ssdrig.views.terms import number


def sentences(row: Row) -> list[str]:
    """One line for each operating point; one or two for a rest; one or two for a played trace; one for a load whose
    figures begin after its first burst, except points of a repeat, whose notes report it; none for any other step."""
    event = row.result
    begin_s = (row.windows.get(WHOLE) or {}).get("t0_s")
    if begin_s and row.round is None:
        return [f"figures from {begin_s:g} s on, after fio's long first burst"]
    if event.get("kind") == "choose":
        return [_point(point, event["value"]) for point in event.get("points") or []]
    if event.get("kind") == "played":
        return played(event)
    if event.get("kind") == "rest":
        joules = errors.of("energy_J", row.windows.get(WHOLE) or {})
        return [*([] if joules.value is None else [plus_minus(joules, "J")]), _wrote(event)]
    return _rest(event) if event.get("kind") == "quiet" else []


def _point(point: Mapping, value: str) -> str:
    """ "max: qd=32, iops 40 200 IOPS, of 9 points"."""
    if point["point"] is None:
        return f"{point['at']}: none, {point['why']}"
    unit = shows.VALUES[value][1]
    picked = grammar.label(f"{point['at']}:", point["point"])
    return f"{picked}, {value} {figure(point['value'])}{' ' * bool(unit)}{unit}, of {point['of']} points"


def played(event: Mapping) -> list[str]:
    """ "20 000 I/Os of bench-light-like, SCALED", "0.4 % of them began over 1 ms late, P99 120 µs"."""
    short = "" if event["ios"] == event["of_ios"] else f" of {number(event['of_ios'], 0)}"
    lines = [f"{number(event['ios'], 0)}{short} I/Os of {event['trace']}{', SCALED' if event['scaled'] else ''}"]
    lines += _times(event.get("times"))
    if (lag := event["lag"]) is None:
        return [*lines, "as fast as it could, at the trace's queue depths"]
    late = f"{digits(lag['late_percent'], 3)} % of them began over 1 ms late, P99 {figure(lag['p99_us'])} µs"
    return [*lines, late] + ["NOT PLAYED AT THE TRACE'S TIMES"] * (not lag["as_recorded"])


def _times(times: Mapping | None) -> list[str]:
    """ "played in 60.0 s, the trace took 240 s; pauses of 25 ms or more: 4.00 s, 180 s in the trace"; none if equal."""
    if not times or times["play_s"] is None or times["play_s"] == times["trace_s"]:
        return []
    pauses = f"{figure(times['play_idle_s'])} s, {figure(times['idle_s'])} s in the trace"
    took = f"played in {figure(times['play_s'])} s, the trace took {figure(times['trace_s'])} s"
    return [f"{took}; pauses of 25 ms or more: {pauses}"]


def _rest(event: Mapping) -> list[str]:
    """ "quiet after 35 s at 0.4120 ± 0.0041 W; 12.3 ± 0.1 J above that", "1.20 GB written to NAND"."""
    if event["reached"]:
        joules = Uncertain(event["above_J"], event.get("above_error_J"))
        above = "" if joules.value is None else f"; {plus_minus(joules, 'J')} above that"
        when = f"after {event['after_s']} s" if event["after_s"] is not None else f"({event.get('time_why')})"
        floor = plus_minus(Uncertain(event["floor_W"], event.get("floor_error_W")), "W")
        lines = [f"quiet {when} at {floor}{above}"]
    else:
        lines = [f"NOT QUIET within {event['lasted_s']} s: {event['why']}"]
    return [*lines, _wrote(event)]


def _wrote(event: Mapping) -> str:
    """ "1.20 GB written to NAND, 4.1 J/GB": the writes of the drive in a rest, on its own and for a host."""
    nand = event["nand_written_bytes"]
    wrote = f"NAND bytes not known: {event['nand_why']}"
    if nand is not None:
        wrote = f"{words.size(nand)} written to NAND"
        if nand and "J_per_GB" in event:
            cost = Uncertain(event["J_per_GB"], event["J_per_GB_error"])
            wrote += f", {plus_minus(cost, 'J/GB')}" if cost.value else f"; J/GB not known: {event['J_per_GB_why']}"
    if event["host_written_bytes"]:
        wrote += f"; {words.size(event['host_written_bytes'])} written by a host meanwhile"
    return wrote
