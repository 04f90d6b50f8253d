"""One synthetic run of each shipped PTS plan, small and with a number of its own in every place, and what a report must
make of them, computed from what was put in alone."""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from synthetic_pts import Put, Run, steady_load

from ssdrig.plan.rules import ends, steady
from ssdrig.reading import table
from ssdrig.reading.row import Table

ROUNDS = 6  # the first is far off: the rule and all tables are of the last five
FACTORS = (1.5, 1.0, 0.99, 1.015, 0.985, 1.01)
TAIL = {100_000: 0.985, 1_000_000: 0.0139, 2_000_000: 0.00106, 10_000_000: 0.00003, 50_000_000: 0.00001}


def number_of(i: int, low: float, step: float = 1.037) -> float:
    return low * step**i


def rounds(
    w: Run, path: str, low: float, tracked: list[str], more: Callable[[int], None] = lambda number: None
) -> None:
    """All points of a repeat in each round, whose IOPS are 3.7 % apart and whose power is in another order."""
    labels = [label for label, act in w.acts.items() if act.path == path and not act.not_run]
    repeat, n = w.acts[labels[0]].repeat, len(labels)
    seen: dict[str, list[float]] = {words: [] for words in tracked}
    for number, factor in enumerate(FACTORS, 1):
        more(number)
        for i, label in enumerate(labels):
            watts = number_of((5 * i + 3) % n, 1.0, 1.021) * (1 + number / 1000)
            total = round(number_of(i, low) * factor)
            w.does(label, steady_load(total, watts, w.acts[label].keys, cpu=10 + i), number)
        for words in tracked:
            word, *points = words.split()
            (label,) = [label for label in labels if set(points) <= set(label.split()[1:])]
            seen[words].append(figures([w.put[label, number]])[word])
        verdicts = ends.tracked(seen)
        passed = all(verdict["passed"] for verdict in verdicts.values())
        w.event("round", step=repeat.path, round=number, steady=passed, tracked=verdicts)


def tail(ios: int) -> dict[int, int]:
    """A histogram of so many latencies whose percentiles are known: 100 µs, 1 ms, 2 ms, 10 ms, and 50 ms at most."""
    held = {ns: round(share * ios) for ns, share in TAIL.items()}
    return held | {100_000: held[100_000] + ios - sum(held.values())}


def percentile_us(hist: dict[int, int], one_in: int) -> float | None:
    total, slower = sum(hist.values()), 0
    if total < 10 * one_in:
        return None
    for ns in sorted(hist, reverse=True):
        slower += hist[ns]
        if slower > total // one_in:
            return ns / 1000
    raise AssertionError


def with_tail(w: Run, label: str, total: int, seconds: int, watts: float, round_=None, chosen=None, keys=None) -> None:
    keys = {**w.acts[label].keys, **(keys or {})}
    w.does(label, steady_load(total, watts, keys, seconds, tail(total * seconds)), round_, chosen)


def figures(puts: list[Put]) -> dict[str, float | None]:
    """What a report says of loads together, by the plan's words."""
    ios, seconds, joules = (sum(getattr(put, key) for put in puts) for key in ("ios", "seconds", "joules"))
    moved = sum(put.ios * put.block for put in puts)
    hist: dict[int, int] = {}
    for put in puts:
        for ns, count in put.hist.items():
            hist[ns] = hist.get(ns, 0) + count
    out = {
        "iops": ios / seconds,
        "MB/s": moved / seconds / 1e6,
        "W": joules / seconds,
        "uJ/IO": 1e6 * joules / ios,
        "J/GB": 1e9 * joules / moved,
        "iops/W": ios / joules,
        "lat_mean": sum(put.lat_sum_ns for put in puts) / ios / 1000,
    }
    if hist:
        out |= {"lat_p99": percentile_us(hist, 100), "lat_p99999": percentile_us(hist, 100_000)}
        out |= {"lat_max": max(hist) / 1000}
    return out


def rule(values: list[float]) -> dict[str, float]:
    """SNIA PTS 2.0.2, 2.1.24, by another way than plan/rules/steady.py: numpy's own line."""
    y = np.array(values[-5:])
    m, b = np.polyfit(np.arange(1, 6), y, 1)
    percent = 100 / y.mean()
    return {"average": y.mean(), "range": percent * np.ptp(y), "slope": percent * abs(4 * m), "m": m, "b": b}


def iops(runs: Path) -> Run:
    w = Run(runs, "pts-iops", time="2 s")
    of = ["iops read=0 block=4KiB", "iops read=65 block=64KiB", "iops read=100 block=1024KiB"]
    rounds(w, "rounds/point", 1000, of)
    return w


def lat(runs: Path) -> Run:
    w = Run(runs, "pts-lat", time="2 s")
    rounds(w, "rounds/point", 5000, ["lat_mean read=0 block=4KiB"])
    with_tail(w, "histogram", 8000, 140, 1.7)
    return w


def tp(runs: Path) -> Run:
    w = Run(runs, "pts-tp", time="2 s")
    rounds(w, "rounds-1024/point", 300, ["MB/s read=0"])
    rounds(w, "rounds-128/point", 3100, ["MB/s read=0"])
    return w


def dirth(runs: Path, threads=(32, 8, 1), qd=(32, 16, 2, 1)) -> Run:
    """Threads and queue depths of unlike number and values; no point has the figure of the one with them exchanged."""
    w = Run(runs, "pts-dirth", threads=list(threads), qd=list(qd), time="2 s", record="2 s", spaced="4 s")
    watched(w, "precondition", [30_000 - 900 * s for s in range(6)] + [14_000 + 7 * s for s in range(24)], 2, 4)
    between = functools.partial(_between, w)
    rounds(w, "demand/point", 2000, ["iops threads=32 qd=32"], between)
    picks = {"max": {"threads": 8, "qd": 2}, "mid": {"threads": 32, "qd": 16}, "min": {"threads": 1, "qd": 1}}
    w.event("step.start", step="choose")
    points = [
        {"at": at, "point": point, "value": 1.0, "figures": {}, "why": None, "of": 12} for at, point in picks.items()
    ]
    w.event("choose", step="choose", value="iops", points=points)
    w.event("step.end", step="choose", ok=True)
    for i, (at, point) in enumerate(picks.items()):
        keys = {"point": {"at": at}, "chosen": point}
        before = w.acts[f"histograms/before at={at}"].keys | point
        counts = [9000 + 500 * i + 3 * s for s in range(6)]
        w.does(f"histograms/before at={at}", steady_load(counts, 2.0 + i / 10, before), 1, keys["chosen"])
        with_tail(w, f"histograms/histogram at={at}", 300_000 // (1 + 2 * i), 4, 2.3 + i / 10, 1, point, point)
    return w


def _between(w: Run, number: int) -> None:
    act = w.acts["demand/between"]
    w.does("demand/between", steady_load(20_000 - 100 * number, 3.0, act.keys), number)


def watched(w: Run, label: str, counts: list[int], record: int, spaced: int, watts=None, written: bool = False) -> None:
    """A load that a rule watches: the records of it, and the verdict on the last five."""
    w.does(label, steady_load(counts, watts or 2.5, w.acts[label].keys))
    means = [sum(counts[at : at + record]) / record for at in range(0, len(counts) - record + 1, spaced)]
    verdict = steady.verdict(means[-5:])
    w.event("steady", step=w.acts[label].path, ended_by="steady" if verdict["passed"] else "time", **verdict)


def wsat(runs: Path) -> Run:
    """130 s: two minutes and a rest of 10 s; the write amplification rises with each reading."""
    w = Run(runs, "pts-wsat", record="10 s", spaced="20 s")
    counts = [60_000 - 40 * s for s in range(40)] + [20_000 + 3 * s for s in range(90)]
    watts = [3.0] * 40 + [2.0 + s / 1000 for s in range(90)]
    zero_ns, host = w.t_ns, 0
    w.host_written = [host]
    w.poll("before", 0, 0, 30)
    w.t_ns = zero_ns + 50_000_000
    begins_ns = w.t_ns + 100_000_000
    watched(w, "wsat", counts, 10, 20, watts)
    ends_ns = w.t_ns
    w.polled = []
    for k, (second, wa) in enumerate(((20, 1.0), (60, 1.5), (100, 2.0)), 1):
        host = sum(counts[:second]) * 4096 // 512_000 * 512_000
        w.t_ns = begins_ns + second * 1_000_000_000
        w.poll("poll", host, round(wa * host), 30 + k)
        w.polled.append((second, wa, 30 + k))
    w.t_ns = ends_ns + 50_000_000
    host = sum(counts) * 4096 // 512_000 * 512_000
    w.poll("after", host, round(2.2 * host), 35)
    w.polled.append((130.05, 2.2, 35))
    with_tail(w, "histogram", 150_000, 10, 2.8)
    return w


WAITS = (5, 10, 15, 25, 50)


def hir(runs: Path, cycles: int = 4) -> Run:
    """Bursts of 5 s, each of its own rate; fio's first burst, as long as a pause and a burst, has a rate of its own."""
    w = Run(runs, "pts-hir", cycles=cycles, last="last 24 %", record="2 s", spaced="4 s")
    watched(w, "precondition", [15_000 - 10 * s for s in range(22)], 2, 4)
    for k, off in enumerate(WAITS):
        counts, watts = [40_000] * (5 + off), [3.5] * (5 + off)
        for cycle in range(cycles):
            counts += [0] * off + [16_000 + 1000 * k + 100 * cycle] * 5
            watts += [0.6 + k / 10 + cycle / 50] * off + [2.5 + k / 10] * 5
        w.does(f"wait-{off}", steady_load(counts, watts, w.acts[f"wait-{off}"].keys))
        w.does(
            f"after-{off}",
            steady_load([14_000 + 100 * k + s for s in range(4)], 2.1 + k / 10, w.acts[f"after-{off}"].keys),
        )
    return w


GAPS_S = (0.4, 0.7)


def xsr(runs: Path) -> Run:
    """After the stimulus the large writes come back in four steps."""
    w = Run(runs, "pts-xsr")
    large, small = w.acts["before"].keys, w.acts["stimulus"].keys
    w.does("before", steady_load([500 - s for s in range(120)], 3.0, large))
    counts = [30_000 - 50 * s for s in range(90)]
    w.does("stimulus", steady_load(counts, 2.5, small), gap_ns=round(GAPS_S[0] * 1e9))
    counts = [100] * 60 + [300] * 60 + [445] * 60 + [470] * 60
    w.does("after", steady_load(counts, [2.0] * 120 + [2.9] * 120, large), gap_ns=round(GAPS_S[1] * 1e9))
    return w


ALL = {
    "pts-iops": iops,
    "pts-tp": tp,
    "pts-lat": lat,
    "pts-wsat": wsat,
    "pts-hir": hir,
    "pts-xsr": xsr,
    "pts-dirth": dirth,
}
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name == "pts-iops" else name for name in ALL]
_made: dict[str, tuple[Run, Table]] = {}


def made(factory, name: str) -> tuple[Run, Table]:
    """What was put in and the run as the analysis reads it, once a process. factory: pytest's tmp_path_factory."""
    if name not in _made:
        w = ALL[name](factory.mktemp("pts"))
        _made[name] = w, table.load(w.end())
    return _made[name]
