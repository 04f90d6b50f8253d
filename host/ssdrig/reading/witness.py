"""fio's figures of a load held against the kernel's own counts (drive/witness.py), and what else has limited
the load (plan/rules/limits.py). Notes only: no figure is changed by them."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ssdrig.base.system import MS_WRAP
from ssdrig.load import ceiling
from ssdrig.plan.kinds import load as load_kind
from ssdrig.plan.rules import limits
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import little
from ssdrig.reading.row import Row
from ssdrig.reading.rundata import SECOND_NS, RunData

SHARE = 0.001  # by which bytes and counts may differ, plus these
BYTES, IOS = 4 << 20, 512  # what udev reads of a drive when fio has closed it
LAT_SHARE, LAT_US = 0.1, 20.0  # by which the mean latency may differ, whichever is more
LEAST_WAIT_MS = 100  # below this the kernel's milliseconds are too coarse for a mean
MS_SURE = 0.9  # of what the kernel's milliseconds count, that fio's I/Os may have waited
COVERED = 0.8  # of a window, by events `host`, for these to stand for it
EDGE_SHARE = 0.15  # of a window's length that a reading may be off its edge
RATE_REACHED = 0.98
KEYS = ("ios", "bytes", "lat_mean_us", "why")
LATE_KEYS = ("late_us", "service_us")
SAYS = ("kernel: ", "host-limited: ", "throttled: ")  # how its notes begin


def event_of(events: Iterable[dict], label: str, round_: int | None) -> dict | None:
    """The event of an act, the last one if it was run more than once."""
    records = [e for e in events if e["kind"] == "witness" and (e.get("label"), e.get("round")) == (label, round_)]
    return records[-1] if records else None


def kernel(event: Mapping | None, totals: Mapping) -> tuple[dict, list[str]]:
    """({"ios", "bytes", "lat_mean_us": of the kernel's requests, "why": they are None}, notes on disagreements with
    fio). `totals`: fio's, see fiotext.totals."""
    out = dict.fromkeys(KEYS)
    counted = (event or {}).get("drive")
    if not counted:
        return out | {"why": (event or {}).get("why") or "the run did not read the kernel's counts"}, []
    ios, moved = counted["reads"] + counted["writes"], counted["read_bytes"] + counted["written_bytes"]
    fio_ios, fio_bytes = totals["ios"], totals["bytes"]
    if not ios and fio_ios:
        return out | {"why": "the kernel counted nothing: queue/iostats of the drive is 0"}, []
    out |= {"ios": ios, "bytes": moved}
    notes = []
    if abs(moved - fio_bytes) > SHARE * fio_bytes + BYTES:
        notes.append(f"kernel: it counted {moved} bytes, fio {fio_bytes}")
    asked = ios + counted["read_merges"] + counted["write_merges"]
    whole = fio_ios and fio_bytes / fio_ios <= (counted.get("split_bytes") or 0)
    slack = SHARE * fio_ios + IOS
    if asked < fio_ios - slack or (whole and asked > fio_ios + slack):
        notes.append(f"kernel: it counted {asked} I/Os, fio {fio_ios}")
    if not ios or abs(ios - fio_ios) > 0.01 * fio_ios or counted["wait_ms"] < LEAST_WAIT_MS:
        return out | {"why": "lat_mean_us: requests are not I/Os here (merged or split), or too short to decide"}, notes
    if totals["lat_sum_ns"] > MS_SURE * MS_WRAP * 1_000_000:
        return out | {"why": "lat_mean_us: the kernel's milliseconds have 32 bits, which the I/Os may exceed"}, notes
    out["lat_mean_us"] = mean_us = 1000 * counted["wait_ms"] / ios
    lat_us = totals["lat_sum_ns"] / fio_ios / 1000
    clat_us = lat_us - totals["slat_sum_ns"] / fio_ios / 1000
    if mean_us > lat_us + max(LAT_US, LAT_SHARE * lat_us):
        notes.append(f"kernel: a request took {mean_us:.0f} µs, which is longer than fio's {lat_us:.0f} µs")
    elif mean_us < clat_us - max(LAT_US, LAT_SHARE * clat_us):
        notes.append(
            f"kernel: a request took {mean_us:.0f} µs of fio's {clat_us:.0f} µs: the rest passed in the host, not in"
            " the drive"
        )
    return out, notes


def ceiling_iops(events: Iterable[dict], row: "Row") -> float | None:
    """I/Os per second of the host that fio reaches on a null target with the shape of a load, while the load is not in
    a pause; None: not measured."""
    event = next((e for e in reversed(list(events)) if e["kind"] == "ceiling"), None)
    lowest = ceiling.of_step(ceiling.of_event(event), row.act.do, row.act.keys) if event else None
    if lowest is None:
        return None
    return lowest.iops * (load_kind.busy_share(row.act) if row.act.do == "load" else 1.0)


def verdicts(
    data: RunData, event: Mapping | None, window: Window | None = None, ceiling_iops: float | None = None
) -> list[str]:
    """ "host-limited: …" of a whole load, "throttled: …" of it or of a window. `ceiling_iops`: see that function."""
    notes = []
    if window is None:
        loads = host(data, event, ceiling_iops=ceiling_iops)
        notes += [f"host-limited: {load.words}" for load in loads if load.beyond][:1]
    polls = _polls(data, (window.t0_s, window.t1_s) if window else (0.0, data.load_s))
    why = limits.throttled(*polls) if polls else None
    if polls and why:
        times = " and ".join(f"{round(float(data.axis_s(poll['t_ns'])))} s" for poll in polls)
        notes.append(f"throttled: the drive counted {why} between its SMART readings at {times}")
    return notes


def host(
    data: RunData, event: Mapping | None, window: Window | None = None, ceiling_iops: float | None = None
) -> list[limits.Load]:
    """The host during a load, or in a window of it where the journal has events `host` of it. It holds
    for a SIMULATED drive too, which works on the host's CPUs. `ceiling_iops`: see that function."""
    counted = (_in_window(data, window) if window else None) or event or {}
    if not data.totals or not data.load_s:
        return limits.loads(None, 1, None, None, counted)
    asked, threads = data.asked("queue_depth"), int(data.asked("threads") or 1)
    found_qd = little.of_load(data.totals, asked or threads, threads)
    of_load = found_qd.in_flight if found_qd else None
    loads = limits.loads(data.totals.get("cpu_percent"), threads, of_load, asked, counted, _spins(data))
    if ceiling_iops and (iops := _host_iops(data, window)) is not None:
        loads.append(limits.of_ceiling(iops, ceiling_iops))
    return loads


def _spins(data: RunData) -> bool:
    """Whether fio takes a CPU however little it does: it polls, or waits for the time of its next I/O, which it does on
    the CPU where that is less than 100 µs off. A load that missed its rate had no such time to wait for."""
    rate = data.asked("rate")
    missed = rate and data.totals.get("ios") and data.totals["ios"] / data.load_s < RATE_REACHED * rate
    return bool(data.asked("polled") or (data.asked("paced") and not missed))


def _host_iops(data: RunData, window: Window | None) -> float | None:
    """I/Os per second of the host; a SIMULATED drive's seconds may be longer."""
    if window is None:
        return data.totals["ios"] / (data.load_s * data.k) if data.totals.get("ios") else None
    counts = data.iops[int(window.t0_s) : max(int(window.t0_s) + 1, int(window.t1_s))]
    return float(np.mean(counts)) / data.k if len(counts) else None


def _in_window(data: RunData, window: Window) -> dict | None:
    """The events `host` of a window as one, each by the time that it shares with it; None where they cover less than
    COVERED of it."""
    if data.t0_ns is None:
        return None
    begin_ns, end_ns = (data.t0_ns + round(at_s * data.k * SECOND_NS) for at_s in (window.t0_s, window.t1_s))
    shares: list[tuple[float, Mapping]] = []
    for event in data.events:
        lasted_s = event.get("lasted_s")
        if event["kind"] == "host" and isinstance(lasted_s, int | float) and 0 < lasted_s < 1e6:
            until_ns = event["t_ns"]
            shared = min(end_ns, until_ns) - max(begin_ns, until_ns - lasted_s * SECOND_NS)
            shares += [(shared, event)] if shared > 0 else []
    total = sum(shared for shared, _ in shares)
    if total < COVERED * (end_ns - begin_ns):
        return None
    return _together([(shared / total, event) for shared, event in shares])


def _together(shares: Sequence[tuple[float, Mapping]]) -> dict:
    """The mean of some events `host`, which may hold anything, each with its weight."""

    def of(key: str, kind: type, event: Mapping):
        return value if isinstance(value := event.get(key), kind) else kind()

    cpus = [(share, of("cpus_busy_percent", list, event)) for share, event in shares]
    waited = [(share, of("waited_percent", dict, event)) for share, event in shares]
    answers = [(share, of("answers", dict, event)) for share, event in shares]
    alike = len({len(row) for _, row in cpus}) == 1
    means: dict = {
        "cpus_busy_percent": [
            _mean([(share, shares_of[cpu]) for share, shares_of in cpus])
            for cpu in range(len(cpus[0][1]) if alike else 0)
        ],
        "steal_percent": _mean([(share, event.get("steal_percent")) for share, event in shares]),
        "waited_percent": {
            key: _mean([(share, shares_of.get(key)) for share, shares_of in waited]) for key in ("cpu", "memory")
        },
    }
    counts = [(share * (limits.number(shares_of.get("answers")) or 0.0), shares_of) for share, shares_of in answers]
    if total := sum(count for count, _ in counts):
        parts = [(count / total, shares_of) for count, shares_of in counts if count]
        means["answers"] = {key: _mean([(part, late.get(key)) for part, late in parts]) for key in LATE_KEYS}
    return means


def _mean(values: Iterable[tuple[float, Any]]) -> float | None:
    """None where one is not known."""
    known = [(weight, limits.number(value)) for weight, value in values]
    return None if any(value is None for _, value in known) else sum(weight * (value or 0.0) for weight, value in known)


def slowed_by_host(events: Iterable[dict], row: "Row") -> str | None:
    """ "host-limited: …" of a load whose speed over time is read as the drive's own: from its notes, or the host's
    counts."""
    reason = next((note for note in row.notes if note.startswith("host-limited: ")), None)
    why = limits.host(None, 1, None, None, event_of(events, row.act.label, row.round) or {})
    return reason or (f"host-limited: {why}" if why else None)


def late_ns(events: Iterable[dict], row: "Row") -> float:
    """By how much a SIMULATED drive was late with all answers of a load together; 0.0 without a record."""
    answers = (event_of(events, row.act.label, row.round) or {}).get("answers")
    if not isinstance(answers, Mapping):
        return 0.0
    count, late_us = (limits.number(answers.get(key)) for key in ("answers", "late_us"))
    return 1e3 * (count or 0.0) * (late_us or 0.0)


def rounds(data: RunData) -> list[str]:
    """ "throttled: …" of each round of a repeat: SMART is read where one begins, and after the last."""
    begins = [s for s in data.snapshots if s["reason"] == "round"]
    later = [s for s in data.snapshots if begins and s["t_ns"] > begins[-1]["t_ns"]]
    notes = []
    for before, after in itertools.pairwise([*begins, *later[:1]]):
        why = limits.throttled(before, after)
        of = (e["round"] for e in data.events if e["t_ns"] >= before["t_ns"] and e.get("round"))
        if why and (number := next(of, None)):
            notes.append(
                f"throttled: the drive counted {why} between its SMART reading before round {number} and the next"
            )
    return notes


def cold_s(data: RunData) -> float | None:
    """limits.cold_s() of a load."""
    if data.t0_ns is None:
        return None
    readings = sorted((float(data.axis_s(one["t_ns"])), one) for one in data.snapshots if one["t_ns"] is not None)
    before = [reading for reading in readings if reading[0] <= 0]
    return limits.cold_s([*before[-1:], *(reading for reading in readings if 0 < reading[0] <= data.load_s)])


def _polls(data: RunData, edges_s: Sequence[float]) -> list[dict]:
    """The readings nearest two edges; none where they are too far off, or the same."""
    if data.t0_ns is None or not data.snapshots:
        return []
    slack = EDGE_SHARE * (edges_s[1] - edges_s[0])
    near = [min(data.snapshots, key=lambda s: abs(float(data.axis_s(s["t_ns"])) - edge)) for edge in edges_s]
    far = any(abs(float(data.axis_s(s["t_ns"])) - e) > slack for s, e in zip(near, edges_s, strict=True))
    return [] if far or near[0] is near[1] else near
