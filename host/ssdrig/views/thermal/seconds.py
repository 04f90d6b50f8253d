"""The temperature of a drive through several steps of a run, by its own readings and the rig's power: what the view
`thermal` shows (thermal.py)."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssdrig.meter import rails, uncertainty
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.reading import witness
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import SECOND_NS, RunData
from ssdrig.views.thermal import fit as thermal_fit

COUNTED = ("warning_temp_min", "critical_temp_min")  # minutes that the drive itself counts above its thresholds


class Heated(NamedTuple):
    """The steps that a view shows, of which `row` does I/O; the host's time at their begin, and how long they took."""

    row: "Row"
    zero_ns: int
    edges_s: np.ndarray

    @property
    def edges_ns(self) -> np.ndarray:
        """Of each second."""
        return self.zero_ns + np.round(self.edges_s * self.row.k * SECOND_NS).astype(np.int64)

    @property
    def timed(self) -> Asked:
        """Its begin and its end."""
        return Asked.of(self.edges_ns[[0, -1]])

    def put(self, base: RunData, powers: list[Reduced]) -> None:
        if self.row.data is not None and self.row.data.t0_ns is not None:
            self.row.found = _through(base, self.row.data, self, powers)


def read(shows: Sequence[dict], rows: Sequence["Row"]) -> Iterator[Heated]:
    """For each view `thermal` the steps that were carried out, where one of them did I/O."""
    for show in shows:
        if show["view"] != "thermal":
            continue
        paths = show["of"] if isinstance(show["of"], list) else [show["of"]]
        known = [row for row in rows if row.act.path in paths and row.state == "done" and row.data is not None]
        timed = [(row, row.data) for row in known if row.data is not None and row.data.t0_ns is not None]
        busy = next((row for row, data in timed if data.totals), None)
        if busy is not None:
            zero_ns = min(data.t0_ns or 0 for _, data in timed)
            lasted_s = max(((data.t0_ns or 0) - zero_ns) / SECOND_NS / busy.k + data.load_s for _, data in timed)
            yield Heated(busy, zero_ns, np.arange(int(lasted_s) + 1, dtype=float))


def _through(base: RunData, busy: RunData, of: Heated, powers: list[Reduced]) -> dict[str, Any]:
    zero_ns, edges_s, edges_ns = of.zero_ns, of.edges_s, of.edges_ns
    timed = rails.timed_J(powers, int(edges_ns[0]), int(edges_ns[-1])) if powers and len(edges_ns) > 1 else None
    known = timed is not None and not (timed.why or "").startswith(uncertainty.UNTIMED)
    watts = rails.steps_J(powers, edges_ns) / base.k if powers and known else np.full(len(edges_s) - 1, np.nan)
    polls = [s for s in base.snapshots if s["temperature_C"] is not None and zero_ns <= s["t_ns"] <= edges_ns[-1]]
    at_s = np.array([(s["t_ns"] - zero_ns) / SECOND_NS / base.k for s in polls])
    celsius = np.array([s["temperature_C"] for s in polls], float)
    body = thermal_fit.fit(at_s, celsius, edges_s, watts)
    shown: Any = [] if body.tau_s is None else thermal_fit.curve(body, edges_s[:-1], edges_s, watts)
    assert busy.t0_ns is not None
    begin_s = (busy.t0_ns - zero_ns) / SECOND_NS / base.k
    under = (at_s >= begin_s) & (at_s <= begin_s + busy.load_s)
    limited = witness.slowed_by_host(base.events, of.row)
    slowed = thermal_fit.throttled(busy.bw_Bps, at_s[under] - begin_s, celsius[under])
    if limited:
        slowed = thermal_fit.Throttled(why=limited)
    counted: dict[str, list[Any]] = {
        key: [s[key] for s in (polls[0], polls[-1])] if polls else [None, None] for key in COUNTED
    }
    return {
        "kind": "thermal",
        **body._asdict(),
        "throttled": slowed._asdict(),
        "load_s": [begin_s, begin_s + busy.load_s],
        **{key: None if None in pair else pair[1] - pair[0] for key, pair in counted.items()},
        "readings_s_C": [[round(t, 3), c] for t, c in zip(at_s.tolist(), celsius.tolist(), strict=True)],
        "fitted_s_C": [[t, round(float(c), 2)] for t, c in zip(edges_s, shown, strict=False)],
    }
