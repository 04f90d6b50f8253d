"""One run on the axis of drive time: the object that the readers of this package fill."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ssdrig.meter import uncertainty
from ssdrig.meter.fast import Peaks
from ssdrig.meter.power import Closure

SECOND_NS = 1_000_000_000
RESTS = 19  # quiet rests of one length, after which the next is quiet in 95 % of cases


def _no_values() -> np.ndarray:
    return np.zeros(0)


def _no_counts() -> np.ndarray:
    return np.zeros(0, np.int64)


def _no_cells() -> np.ndarray:
    return np.zeros((0, 3), np.int64)


def _no_scatters() -> np.ndarray:
    return np.empty((2, 0))


def asked_cut_ns(event: Mapping) -> int | None:
    """The last host time before a cut that the run's owner had asked for; None of any other event."""
    if event["kind"] != "cut.fired" or event.get("cut") is not None:
        return None
    times = [event.get(key) for key in ("fired_ns", "bound_ns")]
    fired_ns, bound_ns = (t_ns if type(t_ns) is int and 0 <= t_ns < 1 << 62 else None for t_ns in times)
    return event["t_ns"] if fired_ns is None or bound_ns is None else fired_ns - bound_ns


def before_cut_ns(events: Iterable[Mapping]) -> int | None:
    """Last host time at which the drive certainly had power, if the run ended with a requested cut; otherwise None. A
    run killed during the cut has only recorded the request."""
    asked_ns: int | None = None
    for event in events:
        if (at_ns := asked_cut_ns(event)) is not None:
            return at_ns
        if event["kind"] in ("cut.asked", "cut.dropped"):
            asked_ns = event["t_ns"] if event["kind"] == "cut.asked" else None
    return asked_ns


@dataclass
class Rail:
    """What one rail of the rig did in a run. Arrays have one value per second of the grid."""

    rail: int
    name: str
    power_mean_W: np.ndarray  # float64 (n,), not-a-number where not known
    power_max_W: np.ndarray
    samples: np.ndarray = field(default_factory=_no_counts)
    samples_lost: np.ndarray = field(default_factory=_no_counts)
    clipped: np.ndarray = field(default_factory=_no_counts)  # samples at the sensor's limit
    filled_s: np.ndarray = field(default_factory=_no_values)  # time between samples that are lost, of the host ...
    filled_J: np.ndarray = field(default_factory=_no_values)  # ... and the energy interpolated there
    bound_J: np.ndarray = field(default_factory=_no_values)  # by how much of it a bypass that moved leaves open
    scatters_W: np.ndarray = field(default_factory=_no_scatters)  # (2, n): sum of the samples' powers, of their squares
    low: np.ndarray = field(default_factory=_no_scatters)  # (2, n): samples of the low range, sum of their powers
    clock_error_ns: np.ndarray = field(default_factory=_no_values)  # largest bound; 0 without samples
    edges: uncertainty.Edges | None = None  # of the seconds: the clock's error in their energies
    facts: dict | None = None  # its entry of the last hello, with the calibration
    volts_V: float | None = None  # mean of the run
    idle_mean_W: float | None = None
    closure: Closure | None = None
    fast: Peaks | None = None  # what its fast current channel saw


class OwnWork(NamedTuple):
    """Work at rest (own_work.py), in units of `counter` (bytes, or pages of the drive) and s of the drive."""

    counter: str | None  # of the snapshots; None: the drive counts neither
    most_per_s: float  # highest rate seen
    rest_s: float  # time between readings without any I/O
    most_in_rest: float  # highest rise between two of those

    def most(self, seconds: float) -> float:
        """The most that the drive may have written in a rest of this length."""
        most = self.most_per_s * max(0.0, seconds)
        return min(most, self.most_in_rest) if self.rest_s >= RESTS * seconds else most


class NearEdges(NamedTuple):
    """The highest power (W) within the error of each edge of the grid, before and after it, float64 (n + 1,); and of
    each second without the samples within the error of its begin, and of its end, float64 (n,)."""

    before_W: np.ndarray
    after_W: np.ndarray
    since_W: np.ndarray
    until_W: np.ndarray


@dataclass
class RunData:
    """One run on the axis of drive time. Arrays `*_s` are times; those of the grid have one value per second from 0."""

    header: dict
    events: list[dict]
    state: str
    why: str | None
    k: int  # time dilation
    t0_ns: int | None = None  # CLOCK_MONOTONIC of the load's first I/O; None: no I/O
    t0_error_ns: float = 0.0  # by how much fio's own clock leaves that open
    load_s: float = 0.0  # from the first I/O to fio's end
    zoom_s: int = 0  # second at which the window `steady` begins; 0: it has none
    ios: int | None = None  # of the whole load, its last part of a second too
    totals: dict = field(default_factory=dict)  # of fio's last document, host time: see fiotext.totals
    # the grid, float64 (n,); not-a-number where not known
    iops: np.ndarray = field(default_factory=_no_values)
    bw_Bps: np.ndarray = field(default_factory=_no_values)
    lat_mean_us: np.ndarray = field(default_factory=_no_values)  # lat: submission included
    lat_p99_us: np.ndarray = field(default_factory=_no_values)  # clat; k > 1: the largest of k host seconds
    # int64 (cells, 3): second, bin of fiotext.plat_ns (host time), latencies in it: of hist_of "clat" or "lat"
    hist_of: str = "clat"
    hist: np.ndarray = field(default_factory=_no_cells)
    # the same put together for the plots (latency.py): int64 (cells, 3) with a stretch of the load in place of the
    # second, and of each window int64 (bins,)
    lat_over_time: np.ndarray = field(default_factory=_no_cells)
    lat_in_window: dict[str, np.ndarray] = field(default_factory=dict)
    # latencies with submission (lat) by the documents that fio printed: time of each (s), and int64 (cells, 3):
    # document, bin, latencies since the document before; of an imported log they may be of clat
    documents_of: str = "lat"
    lat_t_s: np.ndarray = field(default_factory=_no_values)
    lat_hist: np.ndarray = field(default_factory=_no_cells)
    power_mean_W: np.ndarray = field(default_factory=_no_values)
    power_min_W: np.ndarray = field(default_factory=_no_values)  # lowest and highest reading, see rails.py
    power_max_W: np.ndarray = field(default_factory=_no_values)
    near_edges: NearEdges | None = None
    energy_J: np.ndarray = field(default_factory=_no_values)
    # below the second (below_second.py): the load and what follows in cells of fine_step_s from 0, float64 (cells,),
    # not-a-number where not known; the samples around some moments: words, time (s), power (W) of each sample; of all
    # samples of the windows "all" and "steady" how many lie in each mW from 0
    fine_step_s: float = 0.0
    fine_mean_W: np.ndarray = field(default_factory=_no_values)
    fine_min_W: np.ndarray = field(default_factory=_no_values)
    fine_max_W: np.ndarray = field(default_factory=_no_values)
    moments: list[tuple[str, np.ndarray, np.ndarray]] = field(default_factory=list)
    watts_hist: dict[str, np.ndarray] = field(default_factory=dict)
    episodes: list[dict] = field(default_factory=list)  # of the load's row (views/episodes/figures.py)
    after_J: float | None = None  # from the end of the load to the begin of the idle step, and how long that is
    after_s: float | None = None
    # of whole steps, from the samples
    idle_mean_W: float | None = None
    idle_uncertainty_W: float | None = None  # expanded (k = 2)
    closure: Closure | None = None  # of several rails the worst
    rails: list[Rail] = field(default_factory=list)
    # SMART
    snapshots: list[dict] = field(default_factory=list)  # counters.snapshot of each poll, by time
    own_work: OwnWork | None = None  # what the whole run shows of it; None: only this load's readings do
    temp_t_s: np.ndarray = field(default_factory=_no_values)
    temperature_C: np.ndarray = field(default_factory=_no_values)
    wa_t_s: np.ndarray = field(default_factory=_no_values)  # cumulative since the poll before the load
    wa_value: np.ndarray = field(default_factory=_no_values)
    wa_error: np.ndarray = field(default_factory=_no_values)
    # the drive's own report at each reading that has one, and the rig's measurement then (own_report.py): int64 ns of
    # the host, begin and end of the poll; the drive's power and energy; the rig's means over each interval that it can
    # be of, by how much the clock's error may move them, the rig's energy over all moments that it can be of, and since
    # the first
    own_ns: np.ndarray = field(default_factory=_no_counts)
    own_W: np.ndarray = field(default_factory=_no_values)
    own_Wh: np.ndarray = field(default_factory=_no_values)
    rig_edges: list[uncertainty.Edges] = field(default_factory=list)  # of each rail, at the middle of these polls
    rig_W: np.ndarray = field(default_factory=_no_values)
    rig_open_W: np.ndarray = field(default_factory=_no_values)
    rig_around_J: np.ndarray = field(default_factory=_no_values)
    rig_J: np.ndarray = field(default_factory=_no_values)
    # of the log that an application kept meanwhile: name, time (s) and value of each row, at most one a second
    logged: list[tuple[str, np.ndarray, np.ndarray]] = field(default_factory=list)
    # what happened, for people
    annotations: list[dict] = field(default_factory=list)  # see annotations.read
    polls: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, reason
    marks: list[tuple[float, str]] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def asked(self, key: str) -> float | None:
        """A number of the run's method that is above 0, such as tested_bytes; None without one."""
        value = self.header["method"].get(key)
        there = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1 << 62
        return value if there else None

    def before_cut_ns(self) -> int | None:
        """See that function."""
        return before_cut_ns(self.events)

    def cut_within(self, begin_ns: int, lasts_ms: float) -> bool:
        """Whether that cut came before a job of `lasts_ms` of the host was over."""
        cut_ns = self.before_cut_ns()
        return cut_ns is not None and cut_ns < begin_ns + lasts_ms * 1e6

    def until_cut_s(self, begin_ns: int, end_ns: int) -> float:
        """Drive time from one host time to another, or to the cut."""
        cut_ns = self.before_cut_ns()
        return max(0, (end_ns if cut_ns is None else min(end_ns, cut_ns)) - begin_ns) / SECOND_NS / self.k

    def remarks(self) -> list[tuple[float, str]]:
        """The notes of users on the run, and their times on its axis (s)."""
        dated = (
            (note["at_s"] if "at_s" in note else float(self.axis_s(note["t_ns"])), note["text"])
            for note in self.annotations
        )
        return sorted(dated)

    def axis_s(self, t_ns) -> np.ndarray:
        """Host time (CLOCK_MONOTONIC ns) -> seconds of drive time since the first I/O, or since the start of the
        run."""
        zero = self.t0_ns if self.t0_ns is not None else self.header["started"]["t_ns"]
        return (np.asarray(t_ns, np.int64) - zero) / (SECOND_NS * self.k)
