"""What is known of one run, on the axis of drive time: the object that the readers of this package fill."""

from dataclasses import dataclass, field

import numpy as np

from ssdrig import samples
from ssdrig.drive import wa

SECOND_NS = 1_000_000_000


@dataclass
class Rail:
    """What one rail of the rig did in a run; fields as those of RunData, which are of all rails together."""

    rail: int
    name: str
    power_mean_W: np.ndarray  # float64 (n,), not-a-number where not known
    power_max_W: np.ndarray
    load_energy_J: float | None = None
    idle_mean_W: float | None = None
    power_uncertainty_percent: float | None = None
    sample_count: int = 0
    samples_lost: int = 0
    closure: samples.Closure | None = None


@dataclass
class RunData:
    """One run on the axis of drive time. Arrays `*_s` are times; those of the grid have one value per second from 0."""

    header: dict
    events: list[dict]
    state: str
    why: str | None
    k: int  # time dilation
    t0_ns: int | None = None  # CLOCK_MONOTONIC of the load's first I/O; None: there was none
    load_s: float = 0.0  # from the first I/O to fio's end
    ios: int | None = None
    bytes: int | None = None  # moved by the load
    lat_us: dict = field(default_factory=dict)  # "mean", "p99", "p999" over the load
    fill_t0_ns: int | None = None
    fill_s: float | None = None
    fill_bytes: int | None = None
    # the grid, float64 (n,); not-a-number where not known
    iops: np.ndarray = field(default_factory=lambda: np.empty(0))
    bw_Bps: np.ndarray = field(default_factory=lambda: np.empty(0))
    lat_mean_us: np.ndarray = field(default_factory=lambda: np.empty(0))
    lat_p99_us: np.ndarray = field(default_factory=lambda: np.empty(0))  # k > 1: the largest of the k host seconds'
    power_mean_W: np.ndarray = field(default_factory=lambda: np.empty(0))
    power_min_W: np.ndarray = field(default_factory=lambda: np.empty(0))  # lowest and highest reading, see rails.py
    power_max_W: np.ndarray = field(default_factory=lambda: np.empty(0))
    energy_J: np.ndarray = field(default_factory=lambda: np.empty(0))
    # of the load as a whole, from the samples
    load_energy_J: float | None = None  # None: not all of the load was measured
    fill_energy_J: float | None = None
    idle_mean_W: float | None = None
    power_uncertainty_percent: float | None = None  # expanded (k = 2), of the load's mean power
    idle_uncertainty_W: float | None = None  # the same of idle_mean_W
    sample_count: int | None = None
    samples_lost: int | None = None
    clock_error_ns: float | None = None
    closure: samples.Closure | None = None  # of several rails the worst
    rails: list[Rail] = field(default_factory=list)
    # SMART
    snapshots: list[dict] = field(default_factory=list)  # counters.snapshot of each poll, by time
    temp_t_s: np.ndarray = field(default_factory=lambda: np.empty(0))
    temperature_C: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_t_s: np.ndarray = field(default_factory=lambda: np.empty(0))  # cumulative since the poll before the load
    wa_value: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_error: np.ndarray = field(default_factory=lambda: np.empty(0))
    wa_total: wa.WriteAmplification | None = None
    wa_settled: wa.WriteAmplification | None = None  # with what the drive wrote by itself afterwards
    # what happened, for people
    polls: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, reason
    marks: list[tuple[float, str]] = field(default_factory=list)
    log: list[tuple[float, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def axis_s(self, t_ns) -> np.ndarray:
        """Host time (CLOCK_MONOTONIC ns) -> seconds of drive time since the first I/O, or since the start of the
        run."""
        zero = self.t0_ns if self.t0_ns is not None else self.header["started"]["t_ns"]
        return (np.asarray(t_ns, np.int64) - zero) / (SECOND_NS * self.k)
