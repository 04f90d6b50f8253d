"""The results of a run as flat data: one Result for each window of each step, point and round, of any plan. InfluxDB,
the lake and the archive's headline are made of these."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ssdrig.reading import bursts, errors, trust, window_figures
from ssdrig.reading.row import KEYS, Row, Table
from ssdrig.reading.rundata import SECOND_NS

OF_REST = "floor_W"  # of a rest that ended when the drive was quiet (rest.py)
# figures of a window that are one number each; the columns of a database
NUMBERS = tuple(
    dict.fromkeys(
        key
        for key in (
            *(term.key for term in window_figures.TERMS),
            *KEYS,
            *bursts.KEYS,
            OF_REST,
            "wa_error",
            "own_power_ratio_error",
        )
        if key != "errors"
    )
)
ERRORS = tuple(dict.fromkeys(f"{key}_error" for key in errors.KEYS))
HEADLINE = ("iops_mean", "bw_mean_MBps", "power_mean_W", "energy_uJ_per_io", "clat_p99_us", "wa", "wa_error")


class Result(NamedTuple):
    """The figures of one window of a row. `begin_ns`, `end_ns`: of the window, CLOCK_MONOTONIC of the part that carried
    the row out."""

    row: Row
    window: str
    figures: Mapping[str, Any]
    begin_ns: int
    end_ns: int

    def numbers(self) -> dict[str, float | int]:
        """NUMBERS that are known."""
        return {key: self.figures[key] for key in NUMBERS if self.figures.get(key) is not None}

    def errors(self) -> dict[str, float]:
        """ERRORS that are known: half of the interval that holds the truth in 95 % of cases."""
        return errors.named(self.figures)

    @property
    def steady(self) -> bool | None:
        """Whether the rule of SNIA held in it; None: it was not tested."""
        verdict = self.figures.get("steady_state")
        return verdict.get("passed") if isinstance(verdict, Mapping) else None

    @property
    def trust_bad(self) -> list[str] | None:
        """The items of its trust strip that are bad; None: it has no strip."""
        strip = self.figures.get("trust")
        return [item["id"] for item in trust.red(strip)] if strip else None


def of(whole: Table) -> Iterator[Result]:
    """The results of a run, in the order of its rows."""
    for row in whole.rows:
        for name, figures in row.windows.items():
            if figures and row.t0_ns is not None:
                begin_ns, end_ns = (
                    row.t0_ns + round((figures.get(key) or 0.0) * SECOND_NS * row.k) for key in ("t0_s", "t1_s")
                )
                yield Result(row, name, figures, begin_ns, end_ns)


class Logged(NamedTuple):
    """A value of a column of an application's log, CLOCK_MONOTONIC of the part, off by at most `t_err_ns`."""

    t_ns: int
    name: str
    value: float
    t_err_ns: int


def logged(row: Row) -> Iterator[Logged]:
    """The log that goes with a recording, at most a value a second of each column."""
    data = row.data
    if data is None or data.t0_ns is None or not data.logged:
        return
    error_ns = round(row.result["application_log"]["time_error_s"] * data.k * SECOND_NS)
    for name, t_s, values in data.logged:
        for at_s, value in zip(t_s.tolist(), values.tolist(), strict=True):
            yield Logged(data.t0_ns + round(at_s * data.k * SECOND_NS), name, value, error_ns)


def headline(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures that stand for a run (HEADLINE, each None where it is not known), of its rows as JSON: those of the
    last window of its only load. `window`: in words; `of`: the window with its errors; `why`: None, or why no window
    represents the run."""
    busy = [row for row in rows if row.get("do") not in ("fill", "idle") and _does_io(row)]
    if len(busy) != 1:
        why = "a plan of several points has its figures on its page" if busy else "no load with I/O"
        return headline_of_none(why)
    (row,) = busy
    name, of = list(row["windows"].items())[-1]
    if not isinstance(of, Mapping):
        return headline_of_none(f"the load has no window {name}")
    window = f"{row['path']}, {name}"
    return {"window": window, "of": of, **{key: of.get(key) for key in HEADLINE}, "why": None}


def headline_of_none(why: str) -> dict[str, Any]:
    return {"window": None, "of": {}, **dict.fromkeys(HEADLINE), "why": why or None}


def _does_io(row: Mapping[str, Any]) -> bool:
    windows = row.get("windows")
    return isinstance(windows, Mapping) and any(
        isinstance(of, Mapping) and of.get("iops_mean") for of in windows.values()
    )
