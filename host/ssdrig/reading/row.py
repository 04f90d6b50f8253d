"""What a run of a plan is once it is read: rows of acts with their figures, and the table of them. Data only; table.py
makes them, documents.py gives them as JSON.

A whole act has fio's counts from its first I/O to its end, and the power samples of exactly that time. The windows
that the plan names within it are in whole seconds (windows.py). Figures have the keys of window_figures.py; unknown
ones are None, and the row's notes give the reason. `value` finds a figure by the plan's word for it (plan/shows.py)."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ssdrig.load import fiotext
from ssdrig.plan import grammar, shows
from ssdrig.plan.expand import Act
from ssdrig.reading import bursts, directions, trust
from ssdrig.reading.errors import PERCENTILES
from ssdrig.reading.rundata import RunData
from ssdrig.runs import parts

FRAME = ("t_ns", "kind", "step", "line", "crc")  # of an event, besides its content
LAT_KEYS = (*(f"lat_{name}_us" for name in PERCENTILES), "lat_max_us")
IO_KEYS = ("ios", "iops_mean", "bw_mean_MBps", "lat_mean_us", *LAT_KEYS, "host_cpu_percent")
PER_IO = ("energy_uJ_per_io", "energy_J_per_GB", "iops_per_W")
POWER_KEYS = ("power_mean_W", "energy_J", "power_uncertainty_percent", *PER_IO)
WEAR_KEYS = ("wa", "wa_error", "temperature_max_C")
LITTLE_KEYS = ("littles_qd", "littles_error_percent")
QUALITY_KEYS = ("samples", "samples_lost", "samples_clipped", "filled_s", "filled_J", "clock_error_us")
# of a whole act, besides t0_s, t1_s and the other percentiles
KEYS = (
    *(*IO_KEYS, *POWER_KEYS, *WEAR_KEYS, *LITTLE_KEYS, *QUALITY_KEYS, "lat_mean_most_us", "gap_s"),
    *(*directions.KEYS, "errors"),
)
WHOLE = "all"
WHY_NOT = {  # where a figure is not known and no note gives the reason
    "burst_iops": bursts.NONE,
    "pause_mean_W": bursts.NONE,
    "floor_W": "it is not a rest until the drive was quiet",
    "power_max_W": "the highest sample is known of a window alone",
    "consistency": "the scatter of the seconds is known of a window alone",
    "gap_s": "no load came right before it",
    "lat_mean_most_us": "it has no whole minute of I/O",
    **dict.fromkeys(directions.KEYS, directions.WHY),
}


@dataclass
class Row:
    """An act that was run, in a repeat once a round. t0_s, t1_s: drive time since the run's start, of a step
    with I/O from its first I/O to fio's end. `windows`: figures of the whole act ("all") and of each window that the
    plan names in it. `result`: the event of a choose or an idle step, of a replay playedlog.figures() (`found` of
    figures.json). `notes`: figure keys and the reason. `folder`: within fio/, of a replay within played/. `k`: time
    dilation. `data`: its seconds, None in a repeat. `lat`: histogram of lat, int64 (cells, 3): 0, bin of
    fiotext.plat_ns (host time), I/Os; `lat_of`: the same of its reads and of its writes. `kernel`: the kernel's own
    counts of an act with I/O (witness.KEYS). `part`: of a run that was resumed, the one that carried the act out.
    `t0_ns`: t0_s, CLOCK_MONOTONIC of that part. `episodes`: what the view of that name reports of each kind."""

    act: Act
    round: int | None
    state: str  # "done", "failed", "running", "cut short" (by the user, or the run died) or "not run"
    why: str | None = None
    t0_s: float | None = None
    t1_s: float | None = None
    windows: dict[str, dict | None] = field(default_factory=dict)
    result: dict = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    folder: str = ""
    k: int = 1
    data: RunData | None = None
    lat: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    lat_of: dict[str, np.ndarray] = field(default_factory=dict)
    kernel: dict | None = None
    episodes: list[dict] = field(default_factory=list)
    part: int | None = None
    t0_ns: int | None = None

    @property
    def label(self) -> str:
        """Its act, in a repeat with the round."""
        return self.act.label + (f", round {self.round}" if self.round else "")

    def value(self, word: str, window: str = WHOLE) -> float | None:
        """The figure that a plan calls `word`, such as "uJ/IO"."""
        return (self.windows.get(window) or {}).get(shows.VALUES[word][0])

    def why_not(self, word: str) -> str:
        """Why value() has none."""
        key = shows.VALUES[word][0]
        if self.state != "done":
            return self.why or self.state
        if not self.windows:
            return "; ".join(self.notes) or "not known"
        unknown = WHY_NOT.get(key, "not known")
        split = (note.partition(": ") for note in self.notes)
        return next((reason for keys, _, reason in split if key in keys.split(", ")), unknown)

    def latencies(self) -> tuple[np.ndarray, np.ndarray]:
        """Histogram of lat: (ms of drive time, rising; I/Os)."""
        return fiotext.plat_ns(self.lat[:, 1]) / 1e6 / self.k, self.lat[:, 2]

    def latencies_by_second(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cells of the histogram (data.hist_of) by the second: (second, ms of drive time, I/Os)."""
        cells = self.data.hist if self.data is not None else self.lat[:0]
        return cells[:, 0], fiotext.plat_ns(cells[:, 1]) / 1e6 / self.k, cells[:, 2]

    def later(self, by_s: float, part: int) -> "Row":
        """The same, of this part, on an axis that begins `by_s` earlier."""
        t0_s, t1_s = (None if at_s is None else at_s + by_s for at_s in (self.t0_s, self.t1_s))
        return replace(self, t0_s=t0_s, t1_s=t1_s, part=part)


@dataclass
class Verdict:
    """The steady-state rule's verdict: of a repeat for each tracked point (`words`, "iops read=0 block=4KiB"), of a
    load for a window. `values`: of each round, oldest first, from round `first` on, which in a run that was resumed is
    not 1; the verdict covers the last five."""

    path: str
    words: str
    verdict: dict
    values: list[float | None]
    by: str  # "until": the step ended by it; "judge": judged only
    first: int = 1

    def about(self, row: Row, window: str) -> bool:
        """Whether the verdict covers a window of a row: a judged window, or the step that it ended."""
        if self.by == "judge":
            return row.act.label == self.path and window == self.words.partition(", ")[2]
        return self.path in (row.act.path, row.act.repeat.path if row.act.repeat else None)

    def as_json(self) -> dict:
        out = {"of": self.path, "value": self.words, "by": self.by, "values": self.values, "first_round": self.first}
        return out | self.verdict


@dataclass
class Table:
    """A run of a plan. `data`: the run as a whole (no load on its axis, which begins with the run).
    `purges`: how the drive was purged, each time, in all parts."""

    path: Path
    data: RunData
    plan: grammar.Plan
    acts: list[Act]
    rows: list[Row]
    verdicts: list[Verdict]
    purges: list[str] = field(default_factory=list)

    @property
    def run_folder(self) -> Path:
        """The folder of the run that `path` is, or is a part of."""
        return parts.root(self.path)

    def of(self, path: str) -> list[Row]:
        """The rows of a step that ran to their end; of a repeat those of the steps in it."""
        return [r for r in self.rows if r.state == "done" and (r.act.path == path or r.act.path.startswith(path + "/"))]

    @property
    def achieved(self) -> bool | None:
        """Whether the rule held wherever the plan asks for it; None: it asks nowhere, or nothing was tested."""
        passed = [verdict.verdict["passed"] for verdict in self.verdicts]
        return None if not passed else all(passed)

    @property
    def trust(self) -> list[dict]:
        """What the claims about the run rest on (trust.py)."""
        strips = [
            (row.label if name == WHOLE else f"{row.label}, {name}", figures["trust"])
            for row in self.rows
            for name, figures in row.windows.items()
            if figures and figures.get("trust")
        ]
        return trust.whole(strips)
