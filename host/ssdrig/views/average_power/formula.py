"""Average power with realistic downtime: what a drive draws over the days in which a user does the work of one
benchmark; most of that time it rests. Pure; every term and every assumption is printed.

    P = [E_bench + E_background + N_wake x E_wake + P_idle x (T - t_bench - t_background)] / T

T is the time in which the user writes as much as the benchmark does: bytes written / bytes a day. E_background is above
the idle floor in `quiet` (plan/rules/quiet.py): its time is therefore counted at P_idle as well."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ssdrig.base.uncertain import Uncertain, propagated
from ssdrig.base.words import digits, period, size
from ssdrig.reading.row import Row, Table
from ssdrig.views.context import plus_minus

DAY_S = 86_400.0
# host writes a day of a kind of user: assumed
PROFILES_BYTES = {"light": 10e9, "heavy": 40e9, "workstation": 150e9}


class Measured(NamedTuple):
    """The measured figures, J, s and W of drive time. `bench`: its energy, time and host writes, and the waits in it
    that were long enough for the drive to sleep; `background`: energy above the floor, and time; `wake`: energy of one
    wake above idle power."""

    bench_J: float
    bench_s: float
    bench_written_bytes: float
    idle_W: float
    background_above_J: float = 0.0
    background_s: float = 0.0
    wakes: float = 0.0
    wake_J: float = 0.0


class Term(NamedTuple):
    name: str
    energy_J: float
    share: float
    words: str


class Average(NamedTuple):
    """`power_W`, with its error (None: not known), and `energy_Wh_per_day` over `period_s`; `terms` add up to it;
    `assumptions` in words. None: `why`."""

    power_W: float | None
    power_error_W: float | None = None
    energy_Wh_per_day: float | None = None
    period_s: float | None = None
    terms: tuple[Term, ...] = ()
    assumptions: tuple[str, ...] = ()
    why: str | None = None

    def lines(self) -> list[str]:
        """For people: the figure, each term, each assumption."""
        if self.power_W is None or self.period_s is None:
            return [f"average power: not known, {self.why}"]
        power = Uncertain(self.power_W, self.power_error_W)
        unknown = "" if power.known else ", error not known"
        daily = plus_minus(power.scaled(DAY_S / 3600), "Wh")
        return [
            f"average power {plus_minus(power, 'W')}{unknown}, {daily} a day,"
            f" if the benchmark is the work of {period(self.period_s / DAY_S)}",
            *(
                f"{100 * term.share:5.1f} %  {digits(term.energy_J, 4)} J  {term.name}: {term.words}"
                for term in self.terms
            ),
            *(f"assumed: {words}" for words in self.assumptions),
        ]


def average(
    measured: Measured, bytes_per_day: float, who: str = "the user", errors: Mapping[str, float] | None = None
) -> Average:
    """The average for a user who writes `bytes_per_day`. `errors`: of Measured's fields; the others are exact. Raises
    ValueError for a figure that must be above 0 and is not."""
    m = measured
    if not (bytes_per_day > 0 and m.bench_written_bytes > 0 and m.bench_s > 0):
        raise ValueError("bytes a day, and the benchmark's time and writes, above 0")
    period_s = DAY_S * m.bench_written_bytes / bytes_per_day
    idle_s = period_s - m.bench_s - m.background_s
    if idle_s < 0:
        why = f"{size(bytes_per_day)} a day is more than the drive did in the benchmark: no downtime is left"
        return Average(None, why=why)
    wake_J = m.wakes * m.wake_J
    floor_J = m.idle_W * m.background_s
    parts = (
        ("benchmark", m.bench_J, f"{digits(m.bench_s, 4)} s, {size(m.bench_written_bytes)} written"),
        (
            "background work",
            m.background_above_J + floor_J,
            f"{digits(m.background_s, 4)} s after it until the drive is quiet",
        ),
        ("wakes", wake_J, f"{digits(m.wakes, 4)} of {digits(m.wake_J, 4)} J each above idle power"),
        ("idle", m.idle_W * idle_s, f"{digits(m.idle_W, 4)} W for the other {digits(idle_s, 4)} s"),
    )
    total_J = sum(joules for _, joules, _ in parts)
    terms = tuple(Term(name, joules, joules / total_J if total_J else 0.0, words) for name, joules, words in parts)
    assumptions = (
        f"{who} writes {size(bytes_per_day)} a day, so the benchmark is the work of {period(period_s / DAY_S)}",
        "the drive stays powered all the time, and idles in the state in which idle power was measured",
        "background work follows once, as after the benchmark",
        "reads and writes are mixed as in the benchmark, at its speed",
    )
    if errors is not None and {"bench_J", "idle_W"} <= set(errors):
        inputs = {name: Uncertain(value, errors.get(name, 0.0)) for name, value in m._asdict().items()}
        error_W = propagated(lambda **at: _power_W(Measured(**at), bytes_per_day), inputs).error
    else:
        error_W = None
    return Average(total_J / period_s, error_W, total_J / 3600 / (period_s / DAY_S), period_s, terms, assumptions)


def _power_W(m: Measured, bytes_per_day: float) -> float:
    period_s = DAY_S * m.bench_written_bytes / bytes_per_day
    work_J = m.bench_J + m.background_above_J + m.wakes * m.wake_J
    return (work_J + m.idle_W * (period_s - m.bench_s)) / period_s


class Terms(NamedTuple):
    """`measured` with its `errors` (None: not known), and where its idle power is from. None: `why`."""

    measured: Measured | None
    source: str = ""
    why: str = ""
    errors: dict[str, float] | None = None


def of(run: Table, paths: Sequence[str], rest: str | None, others: Sequence[Table] = ()) -> Terms:
    """The terms from the steps `paths` of a run and its step `rest`; if that never became quiet, from the last quiet
    rest in `others` of the same drive."""
    loads = [row for path in paths for row in run.of(path)]
    if not loads:
        return Terms(None, why=f"{', '.join(paths)} did not run")
    dark = [row for row in loads if row.value("W") is None or row.value("MB/s") is None or _lasted_s(row) is None]
    if dark:
        return Terms(None, why=f"{dark[0].act.label}: {dark[0].why_not('W')}")
    serial = run.data.header["drive"].get("serial")
    own = [row for row in run.rows if row.act.path == rest and _quiet(row)]
    more = [
        (row, table)
        for table in others
        if table is not run and serial and table.data.header["drive"].get("serial") == serial
        for row in table.rows
        if _quiet(row)
    ]
    if not own and not more:
        named = f"step {rest} of this run" if rest else "no step of this run"
        return Terms(None, why=f"idle power: {named} rested until the drive was quiet, and no other run of this drive")
    idle, whose = (own[-1], "") if own else (more[-1][0], f" of run {more[-1][1].data.header['run']}")
    joules = seconds = written = 0.0
    for row in loads:
        lasted_s = _lasted_s(row) or 0.0
        seconds += lasted_s
        joules += (row.value("W") or 0.0) * lasted_s
        written += (row.value("MB/s") or 0.0) * 1e6 * lasted_s * (1 - row.act.keys.get("read", 0) / 100)
    if not written > 0:
        return Terms(None, why=f"{', '.join(paths)} wrote nothing, so it cannot be converted to days of use")
    event = idle.result
    measured = Measured(joules, seconds, written, event["floor_W"], event["above_J"] or 0.0, float(event["after_s"]))
    source = f"idle power and background work of {idle.act.label}{whose}"
    return Terms(measured, source, errors=errors_of(loads, event))


def errors_of(loads: Sequence[Row], rest: Mapping) -> dict[str, float] | None:
    """Errors of Measured's fields: those of the loads' energies add up, as they are the rig's. None where one is not
    known."""
    bench_J = 0.0
    for row in loads:
        percent = (row.windows.get("all") or {}).get("power_uncertainty_percent")
        lasted_s, watts = _lasted_s(row), row.value("W")
        if percent is None or lasted_s is None or watts is None:
            return None
        bench_J += percent / 100 * watts * lasted_s
    if rest.get("floor_error_W") is None:
        return None
    return {"bench_J": bench_J, "idle_W": rest["floor_error_W"], "background_above_J": rest.get("above_error_J") or 0.0}


def _lasted_s(row: Row) -> float | None:
    """The time that the row's mean power covers, s of drive time."""
    window = row.windows.get("all") or {}
    t0_s, t1_s = window.get("t0_s"), window.get("t1_s")
    return None if t0_s is None or t1_s is None or not t1_s > t0_s else float(t1_s - t0_s)


def _quiet(row: Row) -> bool:
    event = row.result
    known = event.get("kind") == "quiet" and event.get("reached") and event.get("floor_W")
    known = known and event.get("after_s") is not None and not event.get("time_why")
    return row.state == "done" and bool(known)
