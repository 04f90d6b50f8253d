"""How warm a drive gets from its own power: a body of one thermal mass and one resistance to the air, fitted to the
temperature that the drive reported and the power that the rig measured. Pure.

    tau dT/dt = T_rest + R P - T

For a given tau the temperature is linear in T(0), T_rest and R, so that only tau is searched for (variable projection:
Golub and Pereyra, SIAM Journal on Numerical Analysis 10, 1973). Errors, of 95 %, are those of the linearised fit. The
sensor of a drive reports whole degrees: their rounding is part of the scatter. Heatsink, airflow and the temperature of
the air belong to the result and are not known here: T_rest is where the drive would end without any power."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ssdrig.base.uncertain import t95
from ssdrig.base.words import digits
from ssdrig.meter import rails, uncertainty
from ssdrig.meter.reduced import Asked, Reduced
from ssdrig.reading import witness
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import SECOND_NS, RunData

FEWEST = 12  # readings
LEAST_K = 3.0  # that they must differ by
STEPS = 60  # of tau, from a tenth of the readings' spacing to ten times their length
FALL = 0.8  # a drive that is throttled does less than this share of its earlier speed
SIDE_S = 5  # of the speed before and after
NO_WARMER_K = 2.0  # a drive that throttles does not get warmer by more


class Body(NamedTuple):
    """R and tau, each with its error; T_rest; `scatter_K` of the readings about the fit. None: `why`."""

    K_per_W: float | None = None
    K_per_W_error: float | None = None
    tau_s: float | None = None
    tau_error_s: float | None = None
    rest_C: float | None = None
    start_C: float | None = None
    scatter_K: float | None = None
    readings: int = 0
    why: str | None = None


def fit(at_s: ArrayLike, celsius: ArrayLike, edges_s: ArrayLike, power_W: ArrayLike) -> Body:
    """The body that fits readings (s, °C) and the mean power between edges (s); the readings fall within the edges."""
    t, celsius_read = np.asarray(at_s, float), np.asarray(celsius, float)
    edges, watts = np.asarray(edges_s, float), np.asarray(power_W, float)
    out = Body(readings=len(t))
    if len(t) < FEWEST or np.ptp(celsius_read) < LEAST_K:
        spread = f"{np.ptp(celsius_read) if len(t) else 0:.0f} K"
        why = f"{len(t)} readings that differ by {spread}; it needs {FEWEST} that differ by {LEAST_K:g} K"
        return out._replace(why=why)
    if not np.isfinite(watts).all():
        return out._replace(why="power samples do not cover it")
    first, last = np.ptp(t) / len(t) / 10, 10 * np.ptp(t)
    for _ in range(3):  # each time around the best one
        taus = np.geomspace(first, last, STEPS)
        errors = [_projected(t, celsius_read, edges, watts, tau)[1] for tau in taus]
        best = int(np.argmin(errors))
        first, last = taus[max(0, best - 1)], taus[min(STEPS - 1, best + 1)]
    tau = float(taus[best])
    if not 2 * np.ptp(t) / len(t) < tau < np.ptp(t):
        return out._replace(
            why=f"the time constant, {digits(tau, 3)} s, is beyond what readings of {digits(np.ptp(t), 3)} s show"
        )
    (start, rest, R), square = _projected(t, celsius_read, edges, watts, tau)
    if R <= 0:
        return out._replace(why="it did not get warmer with more power")
    step = 1e-4 * tau
    by_tau = (_model(t, edges, watts, tau + step) - _model(t, edges, watts, tau - step)) @ [start, rest, R] / (2 * step)
    jacobian = np.column_stack([_model(t, edges, watts, tau), by_tau])
    scatter = square / (len(t) - 4)
    errors_of = t95(len(t) - 4) * np.sqrt(scatter * np.diag(np.linalg.pinv(jacobian.T @ jacobian)))
    return out._replace(
        K_per_W=float(R),
        K_per_W_error=float(errors_of[2]),
        tau_s=tau,
        tau_error_s=float(errors_of[3]),
        rest_C=float(rest),
        start_C=float(start),
        scatter_K=float(np.sqrt(scatter)),
    )


def curve(body: Body, at_s: ArrayLike, edges_s: ArrayLike, power_W: ArrayLike) -> np.ndarray:
    """The temperature of the fit at these times, °C."""
    t, edges, watts = (np.asarray(values, float) for values in (at_s, edges_s, power_W))
    return _model(t, edges, watts, body.tau_s or 1.0) @ np.array([body.start_C, body.rest_C, body.K_per_W], float)


def _projected(t, celsius, edges, watts, tau: float) -> tuple[np.ndarray, float]:
    """(T(0), T_rest, R) that fit best with this tau, and the sum of the squares that is left."""
    columns = _model(t, edges, watts, tau)
    coefficients = np.linalg.lstsq(columns, celsius, rcond=None)[0]
    return coefficients, float(((columns @ coefficients - celsius) ** 2).sum())


def _model(t: np.ndarray, edges: np.ndarray, watts: np.ndarray, tau: float) -> np.ndarray:
    """(n, 3): what T(0), T_rest and R count for in the temperature at each t, time from the first edge on. Exact for a
    power that is constant between edges."""
    decay = np.exp(-np.diff(edges) / tau)
    filtered = np.zeros(len(edges))
    for i, (factor, power) in enumerate(zip(decay.tolist(), watts.tolist(), strict=True)):
        filtered[i + 1] = filtered[i] * factor + power * (1 - factor)
    at = np.clip(np.searchsorted(edges, t, "right") - 1, 0, len(watts) - 1)
    factor = np.exp(-(t - edges[at]) / tau)
    whole = np.exp(-(t - edges[0]) / tau)
    return np.column_stack([whole, 1 - whole, filtered[at] * factor + watts[at] * (1 - factor)])


class Throttled(NamedTuple):
    """At `at_s` the speed fell to `share` of its earlier value, at `celsius`. None: `why`."""

    celsius: float | None = None
    at_s: float | None = None
    share: float | None = None
    why: str | None = None


def throttled(speed: ArrayLike, at_s: ArrayLike, celsius: ArrayLike) -> Throttled:
    """`speed`: of each second of a load; readings (s since its begin, °C). The first fall of the speed after which
    the drive did not get warmer: a fall while it goes on warming up is the end of a cache, not throttling."""
    speeds, t, temperatures = (np.asarray(values, float) for values in (speed, at_s, celsius))
    if len(temperatures) < 2 or len(speeds) < 3 * SIDE_S:
        return Throttled(why="too few readings or seconds")
    for second in range(SIDE_S, len(speeds) - SIDE_S):
        before, later = (float(np.median(speeds[a : a + SIDE_S])) for a in (second - SIDE_S, second))
        if later >= FALL * before or speeds[second] >= FALL * before:
            continue
        reached = float(np.interp(second, t, temperatures))
        if (
            reached >= temperatures[t <= second].max(initial=reached) - NO_WARMER_K
            and temperatures.max() <= reached + NO_WARMER_K
        ):
            return Throttled(reached, float(second), later / before)
    fell = f"no fall of the speed by {100 * (1 - FALL):.0f} % that ended its warming"
    return Throttled(why=f"{fell}, to {temperatures.max():.0f} °C")


COUNTED = ("warning_temp_min", "critical_temp_min")  # minutes that the drive itself counts above its thresholds


class Heated(NamedTuple):
    """The steps that a view shows, including `row`, which does I/O; the host's time at their begin and their length."""

    row: "Row"
    zero_ns: int
    edges_s: np.ndarray

    @property
    def edges_ns(self) -> np.ndarray:
        """Host times of the edges of each second."""
        return self.zero_ns + np.round(self.edges_s * self.row.k * SECOND_NS).astype(np.int64)

    @property
    def timed(self) -> Asked:
        """Its begin and its end."""
        return Asked.of(self.edges_ns[[0, -1]])

    def put(self, base: RunData, powers: list[Reduced]) -> None:
        if self.row.data is not None and self.row.data.t0_ns is not None:
            self.row.result = _through(base, self.row.data, self, powers)


def read(shows: Sequence[dict], rows: Sequence["Row"]) -> Iterator[Heated]:
    """For each view `thermal` the steps that were run, where one of them did I/O."""
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
    body = fit(at_s, celsius, edges_s, watts)
    shown: Any = [] if body.tau_s is None else curve(body, edges_s[:-1], edges_s, watts)
    assert busy.t0_ns is not None
    begin_s = (busy.t0_ns - zero_ns) / SECOND_NS / base.k
    under = (at_s >= begin_s) & (at_s <= begin_s + busy.load_s)
    limited = witness.slowed_by_host(base.events, of.row)
    slowed = throttled(busy.bw_Bps, at_s[under] - begin_s, celsius[under])
    if limited:
        slowed = Throttled(why=limited)
    counted: dict[str, list[Any]] = {
        key: [s[key] for s in (polls[0], polls[-1])] if polls else [None, None] for key in COUNTED
    }
    return {
        "kind": "thermal",
        **body._asdict(),
        "throttled": slowed._asdict(),
        "load_s": [begin_s, begin_s + busy.load_s],
        **{key: None if None in pair else pair[1] - pair[0] for key, pair in counted.items()},
        "sensors_max_C": highest([s.get("temperature_sensors_C") or [] for s in polls]),
        "readings_s_C": [[round(t, 3), c] for t, c in zip(at_s.tolist(), celsius.tolist(), strict=True)],
        "fitted_s_C": [[t, round(float(c), 2)] for t, c in zip(edges_s, shown, strict=False)],
    }


def highest(readings: Sequence[Sequence[int | None]]) -> list[int | None]:
    """The highest temperature of each sensor, None of one that was in no reading."""
    by_sensor = zip_longest(*readings)
    return [max((celsius for celsius in of if celsius is not None), default=None) for of in by_sensor]
