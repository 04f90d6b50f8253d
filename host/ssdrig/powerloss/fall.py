"""How a rail fell, from the picture of it that the rig's scope took: its duration, the drive's lock-out, the residual.

A drive at work draws constant power P from the capacitance C after the switch, so V^2 falls along a line of the slope
-2 P / C. At the knee it stops, by its own lock-out: what goes on is a leakage. The time from the edge to the knee is
its hold-up, and C (V0^2 - Vk^2) / 2 the energy that it had for its last writes. With the discharge switch closed,
through R, V^2 + P R falls as exp(-2 t / R C) before the knee and V as exp(-t / R C) after it; so the distance of V^2
from the latter, carried back, times exp(2 t / R C), is a line in exp(2 t / R C) again, which ends at the knee.

All times in us from the edge. A value that the picture does not show is missing, and `why` has the reason."""

import math
from typing import NamedTuple

import numpy as np

LEAST = 20  # samples that a level or a line is taken from
SMOOTHED = 9  # samples, to see where a level is crossed
ABOUT = 0.02  # of the height: a crossing is a line through points this near
DEAD = (0.08, 0.4)  # of the height: there no drive works any more, only R and C do
CLOSED_us = 65  # from the edge on the discharge switch is closed for certain
CURVED = 0.6  # the line after the knee is at most this steep as that before it
SURE = 8.0  # times the noise: a knee must exceed it by this much
PULSED = "the pulses of the ramp hide the knee"


class Fall(NamedTuple):
    """Voltages in uV. `t90_10_us`: from 90 to 10 % of `before_uV`. `holdup_us`: from the edge to the knee. `drive_W`:
    what the drive drew after the edge. `source` of t90_10_us: "picture" or "readings" (of the rig's sensor)."""

    t90_10_us: float | None
    holdup_us: float | None
    knee_uV: int | None
    residual_uV: int | None
    before_uV: int | None
    energy_J: float | None
    drive_W: float | None
    capacitance_uF: float | None
    source: str | None
    why: dict[str, str]


class _Picture(NamedTuple):
    """t_us float64, volts float64 from the edge on; level and noise (standard deviation) of the voltage before."""

    t_us: np.ndarray
    volts: np.ndarray
    height: float
    noise: float
    step_us: float


class _Knee(NamedTuple):
    t_us: float
    volts: float
    slope: float  # d(V^2)/dt before it, V^2/us, without the discharge
    tau_us: float | None  # R C


def of(
    picture: dict | None,
    fired_ns: int,
    shape: str,
    rail: dict | None = None,
    discharge_ohm: float | None = None,
    bulk_uF: float | None = None,
    back_us: float | None = None,
) -> Fall:
    """picture: {"t0_ns", "dt_ns", "volts"}, t0_ns on the clock of fired_ns; None: absent. shape: the profile's
    name. rail: the rail's entry of the rig's report (wire.py). discharge_ohm: R, of a profile that discharges. bulk_uF:
    C, known from a crowbar cut. back_us: power returned on its own this long after the edge."""
    why: dict[str, str] = {}
    seen = _read(picture, fired_ns, back_us, why)
    t90_10 = knee = None
    if seen is not None:
        t90_10 = _t90_10(seen, why)
        knee = _knee(seen, shape, discharge_ohm, why)
    source = "picture" if t90_10 is not None else None
    if t90_10 is None and rail and rail.get("t90_10_us"):
        t90_10, source = float(rail["t90_10_us"]), "readings"
        why.pop("t90_10_us", None)
    residual_uV = None
    if rail and rail.get("residual_mV") is not None:
        residual_uV = 1000 * rail["residual_mV"]
    elif seen is not None and len(seen.volts) >= LEAST:
        residual_uV = round(1e6 * float(np.median(seen.volts[-LEAST:])))
    if knee and knee.tau_us and discharge_ohm:
        bulk_uF = knee.tau_us / discharge_ohm
    if bulk_uF is None:
        why.setdefault("capacitance_uF", "it needs a crowbar cut of this rail")
    energy = watts = None
    if knee and bulk_uF and seen:
        energy = bulk_uF * 1e-6 * (seen.height**2 - knee.volts**2) / 2
        watts = -knee.slope * bulk_uF / 2
    for name, value in (("energy_J", energy), ("drive_W", watts)):
        if value is None:
            reason = why.get("holdup_us") if not knee else None
            why[name] = reason or why.get("capacitance_uF", "the picture does not show it")
    if knee is None:
        why["knee_uV"] = why.get("holdup_us", "the picture does not show it")
    return Fall(
        None if t90_10 is None else round(t90_10, 2),
        None if knee is None else round(knee.t_us, 2),
        None if knee is None else round(1e6 * knee.volts),
        residual_uV,
        None if seen is None else round(1e6 * seen.height),
        energy,
        watts,
        bulk_uF,
        source,
        why,
    )


def _read(picture: dict | None, fired_ns: int, back_us: float | None, why: dict) -> _Picture | None:
    """Figures of the fall, or None and the reason."""
    reason = None
    if picture is None:
        reason = "no picture of this rail"
    else:
        step_us = picture["dt_ns"] / 1000
        volts = np.asarray(picture["volts"], float)
        t_us = (picture["t0_ns"] - fired_ns) / 1000 + step_us * np.arange(len(volts))
        before = volts[t_us < -step_us]
        if len(before) < LEAST:
            reason = "the picture begins too late to show the height"
    if reason:
        why["t90_10_us"] = why["holdup_us"] = why["before_uV"] = reason
        return None
    height, noise = float(before.mean()), float(max(before.std(), 1e-4))
    mine = (t_us >= 0) & (t_us < (back_us if back_us else math.inf))
    return _Picture(t_us[mine], volts[mine], height, noise, step_us)


def _t90_10(seen: _Picture, why: dict) -> float | None:
    times = [_crossing(seen, share * seen.height) for share in (0.9, 0.1)]
    if times[0] is None or times[1] is None:
        least = 100 * float(seen.volts.min(initial=seen.height)) / seen.height
        why["t90_10_us"] = f"in the picture the rail comes down to {least:.0f} %"
        return None
    return times[1] - times[0]


def _crossing(seen: _Picture, level: float) -> float | None:
    """When the fall passes a level: a line through the samples that are near it."""
    if len(seen.volts) < SMOOTHED:
        return None
    smooth = np.convolve(seen.volts, np.full(SMOOTHED, 1 / SMOOTHED), "valid")
    below = smooth < level
    if not below.any():
        return None
    first = int(below.argmax()) + SMOOTHED // 2
    around = np.abs(seen.volts - level) <= ABOUT * seen.height
    a, z = first, first + 1
    while a > 0 and around[a - 1]:
        a -= 1
    while z < len(around) and around[z]:
        z += 1
    t, v = seen.t_us[a:z], seen.volts[a:z]
    if z - a < 3 or np.ptp(v) < 4 * seen.noise:
        return float(seen.t_us[first])
    slope, at = np.polyfit(t - t[0], v, 1)
    return float(t[0] + (level - at) / slope) if slope < 0 else float(seen.t_us[first])


def _knee(seen: _Picture, shape: str, discharge_ohm: float | None, why: dict) -> _Knee | None:
    """None, and why, where it does not show."""
    if shape == "ramp":
        why["holdup_us"] = PULSED
        return None
    knee = _of_discharge(seen) if discharge_ohm else _of_lines(seen)
    if isinstance(knee, str):
        why["holdup_us"] = knee
        return None
    return knee


def _of_lines(seen: _Picture) -> _Knee | str:
    """Two lines in V^2: of all places for the break, the one that leaves least."""
    least = 0.05 * seen.height
    far = np.flatnonzero(seen.volts < least)
    end = int(far[0]) if len(far) else len(seen.volts)
    away = np.flatnonzero(seen.volts[:end] < seen.height - max(SURE * seen.noise, 0.01 * seen.height))
    if end < 2 * LEAST or not len(away):
        return "the rail hardly falls in the picture"
    start = int(away[0])
    knee: _Knee | str = ""
    for _ in range(2):  # the second time without points far after the knee, where V^2 of a leakage is not a line
        knee = _two_lines(seen, start, end)
        if isinstance(knee, str):
            return knee
        end = min(end, max(start + 3 * LEAST, 2 * int(np.searchsorted(seen.t_us, knee.t_us)) - start))
    return knee


def _two_lines(seen: _Picture, start: int, end: int) -> _Knee | str:
    x, y = seen.t_us[start:end], seen.volts[start:end] ** 2
    if len(x) < 2 * LEAST:
        return "the fall is too short for the picture's samples"
    before, after = _line_sums(x, y), _line_sums(x[::-1], y[::-1])
    k = np.arange(LEAST, len(x) - LEAST + 1)  # number of samples before the break
    cost = before.cost(k) + after.cost(len(x) - k)
    at = int(k[cost.argmin()])
    (b0, a0), (b1, a1) = before.line(at), after.line(len(x) - at)
    noise = 2 * float(np.sqrt(y.mean())) * seen.noise
    if before.cost(np.array([len(x)]))[0] < cost.min() + (SURE * noise) ** 2 or b0 >= 0 or b1 < CURVED * b0:
        return f"no knee shows: the picture ends at {math.sqrt(max(0.0, float(y[-1]))):.2f} V"
    t = (a1 - a0) / (b0 - b1)
    return _Knee(t, math.sqrt(max(0.0, a0 + b0 * t)), b0, None)


class _line_sums:
    """Straight lines through the first k samples, for every k."""

    def __init__(self, x: np.ndarray, y: np.ndarray):
        self.x0 = x[0]
        x = x - self.x0
        self.sums = [np.concatenate([[0.0], np.cumsum(column)]) for column in (x, y, x * x, x * y, y * y)]

    def _parts(self, k):
        x, y, xx, xy, yy = (sums[k] for sums in self.sums)
        return x, y, xx - x * x / k, xy - x * y / k, yy - y * y / k

    def cost(self, k: np.ndarray) -> np.ndarray:
        """Sum of the squares that are left."""
        _, _, xx, xy, yy = self._parts(k)
        return np.maximum(0.0, yy - xy * xy / xx)

    def line(self, k: int) -> tuple[float, float]:
        """(slope, value at 0)."""
        x, y, xx, xy, _ = self._parts(k)
        slope = float(xy / xx)
        return slope, float((y - slope * x) / k - slope * self.x0)


def _of_discharge(seen: _Picture) -> _Knee | str:
    """R C from the tail, where nothing but R and C works; then the line of what the drive took."""
    t, v = seen.t_us, seen.volts
    smooth = np.convolve(v, np.full(SMOOTHED, 1 / SMOOTHED), "same")
    below, low = np.flatnonzero(smooth < DEAD[1] * seen.height), np.flatnonzero(smooth < DEAD[0] * seen.height)
    if not len(below) or (low[0] if len(low) else len(v)) - below[0] < 3 * LEAST:
        return "the picture does not show the end of the discharge"
    a, z = int(below[0]), int(low[0]) if len(low) else len(v)
    lag = (z - a) // 3
    share, rest = np.polyfit(smooth[a : z - lag], smooth[a + lag : z], 1)
    if not 0 < share < 1:
        return "the end of the discharge is not exponential"
    tau = -lag * seen.step_us / math.log(share)
    settled = rest / (1 - share)  # where it goes: a little below 0 by the leakage
    decay = np.exp(-(t[a:z] - t[a]) / tau)
    scale = float((decay * (v[a:z] - settled)).sum() / (decay**2).sum())
    first = int(np.searchsorted(t, CLOSED_us))
    if a - first < LEAST:
        return "the fall is too short for the picture's samples"
    t, v = t[first:z], v[first:z]
    alone = np.array([tau, settled, settled + scale])  # at t[a]
    began = _drive_of(t, v, float(seen.t_us[a]), alone)
    fitted, errors, left = _fitted(_with_knee, [*alone[:2], *began], [tau, 0.1, 1, 1, tau], t, v)
    _, _, bare = _fitted(_without, [*alone, float(seen.t_us[a])], [tau, 0.1, 1, 0], t, v)
    tau, settled, height, pulled, knee = fitted
    sure = (bare - left) / seen.noise**2
    vague = 3 * errors[4] * seen.noise > max(0.05 * knee, 20.0)
    if sure < (2 * SURE) ** 2 or vague or pulled <= 0 or not t[0] < knee < t[-1]:
        return "the drive draws too little compared with the discharge for its knee to show"
    return _Knee(knee, height, -2 * pulled / tau, tau)  # 2 P / C = 2 P R / R C


def _drive_of(t: np.ndarray, v: np.ndarray, t_a: float, alone: np.ndarray) -> tuple[float, float, float]:
    """A first guess of (voltage at the knee, P R, time of the knee): V^2 above that of R and C alone is
    P R (exp(2 (knee - t) / R C) - 1) before the knee and 0 after it. Of all knees the one that leaves least."""
    tau, settled, at_a = alone
    dead = settled + (at_a - settled) * np.exp(-(t - t_a) / tau)
    above = v**2 - dead * np.abs(dead)
    best = (math.inf, 0.0, 0.0)
    for knee in np.linspace(t[0], t_a, 80)[1:]:
        form = np.maximum(0.0, np.exp(2 * (knee - t) / tau) - 1) / v.clip(0.05)
        pulled = float((form * above / v.clip(0.05)).sum() / (form**2).sum())
        cost = float(((above / v.clip(0.05) - pulled * form) ** 2).sum())
        best = min(best, (cost, max(pulled, 1e-3), float(knee)))
    _, pulled, knee = best
    return float(settled + (at_a - settled) * math.exp(-(knee - t_a) / tau)), pulled, knee


def _with_knee(x, t: np.ndarray) -> np.ndarray:
    """Volts at t. x: R C, where it goes, voltage at the knee, P R, time of the knee."""
    tau, settled, height, pulled, knee = x
    before = (height**2 + pulled) * np.exp(2 * np.maximum(0.0, knee - t) / tau) - pulled
    after = settled + (height - settled) * np.exp(-np.maximum(0.0, t - knee) / tau)
    return np.where(t < knee, np.sqrt(np.maximum(0.0, before)), after)


def _without(x, t: np.ndarray) -> np.ndarray:
    """The same by R and C alone. x: R C, where it goes, voltage at a time, that time."""
    tau, settled, height, at = x
    return settled + (height - settled) * np.exp(-(t - at) / tau)


def _fitted(model, x, steps, t: np.ndarray, v: np.ndarray) -> tuple[list[float], list[float], float]:
    """The x that makes model(x, t) like v, from a first guess; the standard error of each for noise of 1; the squares
    that are left. Levenberg and Marquardt. steps: by how much each may be thought to change; one of 0 stays."""
    x, free, damping = np.array(x, float), np.flatnonzero(steps), 1e-3
    steps = np.array(steps, float)
    with np.errstate(all="ignore"):
        rest = v - model(x, t)
        cost = float((rest**2).sum())
        for _ in range(30):
            sides = []
            for k in free:
                moved = x.copy()
                moved[k] += 1e-6 * steps[k]
                sides.append((model(moved, t) - (v - rest)) / 1e-6)
            slopes = np.array(sides)
            square, pull = slopes @ slopes.T, slopes @ rest
            while damping < 1e9:
                step = np.linalg.solve(square + damping * np.diag(np.diag(square) + 1e-12), pull)
                tried = x.copy()
                tried[free] += step * steps[free]
                left = v - model(tried, t)
                now = float((left**2).sum())
                if now <= cost:  # false for NaN
                    break
                damping *= 10
            else:
                break
            gained, x, rest, cost, damping = cost - now, tried, left, now, damping / 10
            if gained <= 1e-9 * cost:
                break
    errors = np.zeros(len(x))
    errors[free] = np.sqrt(np.abs(np.diag(np.linalg.pinv(square)))) * steps[free]
    return [float(value) for value in x], [float(value) for value in errors], cost
