"""The SMART polls of a run folder -> temperature and write amplification, of the run and of a window."""

from pathlib import Path

import numpy as np

from ssdrig.base import nvme_fdp
from ssdrig.base.errors import reason
from ssdrig.drive.smart import counters, health
from ssdrig.drive.wear import wa
from ssdrig.plan.rules.windows import Window
from ssdrig.reading import own_work
from ssdrig.reading.rundata import RunData
from ssdrig.runs import integrity

UNDER_LOAD = ("poll", "edge")
# what an error of write amplification is too large by
COUNTED = "the steps of the counters and the time that the readings took"
OFF_EDGES = "the polls lie off its edges"
OWN_WORK = "the drive may have written that on its own between the polls and the I/O"
EDGE_SHARE = 0.15  # of a window's I/O that may fall between an edge and its poll


def unhealthy(data: RunData) -> str | None:
    """The drive of a run, the verdict of its last reading of SMART and the reasons; None where nothing is wrong."""
    last = next((s for s in reversed(data.snapshots) if s["health"] != health.UNKNOWN), None)
    if last is None or not last["health_reasons"]:
        return None
    of = " ".join(filter(None, (last["model"] or "drive", last["serial"])))
    return f"{of}: health {last['health']}: {health.sentence(last['health_reasons'])}"


def read_polls(data: RunData, run: Path) -> None:
    """What the drive reported at each poll, by time."""
    add_polls(data, *polls(run))


def add_polls(data: RunData, snapshots: list[dict], notes: list[str]) -> None:
    """Adds the results of polls(), except readings after a cut of the power: they count the drive's restart, too."""
    cut_ns, raw_bytes = data.before_cut_ns(), (data.header.get("drive") or {}).get("raw_nand_bytes")
    data.snapshots += [
        s | {"raw_nand_bytes": raw_bytes} for s in snapshots if cut_ns is None or s["t_end_ns"] <= cut_ns
    ]
    data.notes += notes + placement_notes(data.snapshots)


def placement_notes(snapshots: list[dict]) -> list[str]:
    """What the drive recorded of data placement between the first and the last poll; none without it."""
    known = [s for s in snapshots if s.get("fdp_events") is not None]
    new = nvme_fdp.since(known[0]["fdp_events"], known[-1]["fdp_events"]) if len(known) > 1 else []
    return [f"data placement: {nvme_fdp.in_words(new)}"] if new else []


def polls(run: Path) -> tuple[list[dict], list[str]]:
    """The polls of a run folder by time, and notes on those that cannot be read."""
    snapshots, notes = [], []
    for path in sorted((run / "smart").glob("*.json")):
        try:
            snapshot = counters.snapshot(integrity.document_of(path))
            if any(snapshot[key] is None for key in ("t_ns", "t_start_ns", "t_end_ns", "reason")):
                raise ValueError("it lacks its time, or its reason")
            snapshots.append(snapshot)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError, RecursionError) as error:
            notes.append(f"smart/{path.name} cannot be read: {reason(error)}")
    return sorted(snapshots, key=lambda s: s["t_ns"]), notes


def place_polls(data: RunData) -> None:
    """The polls on the axis of the load: temperature, and write amplification since its start."""
    if data.t0_ns is None:
        return
    warm = [s for s in data.snapshots if s["temperature_C"] is not None]
    data.temp_t_s, data.temperature_C = (
        data.axis_s([s["t_ns"] for s in warm]),
        np.array([s["temperature_C"] for s in warm], float),
    )
    own = [s for s in data.snapshots if not s.get("foreign_bytes")]
    before = [s for s in own if s["reason"] == "before" and s["t_start_ns"] <= data.t0_ns]
    since = [s for s in own if s["t_start_ns"] > data.t0_ns]
    if not before or not since:
        data.notes.append(f"wa: no SMART reading {'before' if not before else 'since the start of'} the load")
        return
    # the reading before the load and the one after it were taken while the drive was quiet: their two counters agree
    quiet = [s for s in since if s["reason"] == "after"]
    points = wa.during([before[-1], *(s for s in since if s["reason"] in UNDER_LOAD)])
    if quiet:
        points.append((quiet[0]["t_ns"], wa.between(before[-1], quiet[0])))
    of = {s["t_ns"]: s for s in since}
    until_s = [min(float(data.axis_s(t)), data.load_s) for t, _ in points]
    points = [
        (t, wider(w, own=own_share(data, w, (before[-1], of[t]), (0.0, end_s))))
        for (t, w), end_s in zip(points, until_s, strict=True)
    ]
    points = [(t, w) for t, w in points if w.value is not None]
    data.wa_t_s = data.axis_s([t for t, _ in points])
    data.wa_value, data.wa_error = (
        np.array([getattr(w, name) for _, w in points], float) for name in ("value", "error")
    )


def amplification(first: dict, last: dict) -> str:
    """Write amplification between two snapshots, in words."""
    return wa.words(wa.between(first, last))


def own_share(
    data: RunData, amplification: wa.WriteAmplification, ends: tuple[dict, dict], edges_s: tuple[float, float]
) -> float:
    """The most that the drive may have written on its own between two readings and the edges that they stand for, as
    a share of its writes between the readings."""
    if amplification.value is None:
        return 0.0
    first, last = ends
    work = data.own_work or own_work.of_run(data.snapshots, [data], data.k)
    if work.counter is None:  # an estimate from erase counts
        nand = float(amplification.nand_bytes or 0)
        work = work._replace(
            most_per_s=max(work.most_per_s, nand / float(np.diff(data.axis_s([first["t_ns"], last["t_ns"]]))[0]))
        )
    else:
        nand = last[work.counter] - first[work.counter]
    own = sum(work.most(own_work.rest_s(data, poll, edge_s)) for poll, edge_s in zip(ends, edges_s, strict=True))
    return own / nand


def wider(amplification: wa.WriteAmplification, off: float = 0.0, own: float = 0.0) -> wa.WriteAmplification:
    """With a relative error that is larger by two shares; without a value where that is too coarse, which names the
    largest part of it.

    off: by how much the readings lie off the edges
    own: of own_share()"""
    if amplification.value is None or amplification.relative_error is None:
        return amplification
    parts = {COUNTED: amplification.relative_error, OFF_EDGES: off, OWN_WORK: own}
    relative = sum(parts.values())
    if relative > wa.COARSEST:
        cause = max(parts, key=lambda name: parts[name])
        why = f"its error would be {100 * relative:.0f} %, over {100 * wa.COARSEST:.0f} %: {cause}"
        return amplification._replace(value=None, error=None, relative_error=None, why=why)
    return amplification._replace(error=relative * amplification.value, relative_error=relative)


def window_wa(data: RunData, window: Window) -> tuple[wa.WriteAmplification | None, list[float] | None, str | None]:
    """Write amplification of a window from the polls nearest its edges: (it, the two polls' times in s, why there is
    none).

    A poll is as far from an edge as the share of the window's I/O between the two (_done), or of I/O of a neighbour;
    after the load, where the drive may empty its cache, the share of the window's time counts too. Those writes may
    have had any write amplification from 0 to the highest between two polls of the run: that widens the error, and so
    do the drive's own writes (own_work)."""
    if data.t0_ns is None or not len(data.snapshots):
        return None, None, "no SMART reading belongs to it"
    before = [s for s in data.snapshots if s["reason"] == "before" and s["t_start_ns"] <= data.t0_ns][-1:]
    after = [s for s in data.snapshots if s["reason"] == "after"]
    polls = [*before, *(s for s in data.snapshots if s["reason"] in UNDER_LOAD), *after]
    at_s = data.axis_s([s["t_ns"] for s in polls])
    moved = float(np.nansum(data.bw_Bps[window.t0_s : window.t1_s]))
    foreign = np.array([s.get("foreign_bytes", 0.0) for s in polls]) / max(1.0, moved)
    done = _done(data, polls, at_s)
    edges_s = (window.t0_s, window.t1_s)
    io = [_shares(data, window, edge, done) + foreign for edge in edges_s]
    far = [shares + _past(data, window, at_s) for shares in io]
    if not polls:
        return None, None, "the run has no SMART reading before, under or right after the load"
    ends = [min(range(len(polls)), key=lambda i: (far[e][i], abs(at_s[i] - edge))) for e, edge in enumerate(edges_s)]
    times, shares = [float(at_s[i]) for i in ends], [float(far[e][i]) for e, i in enumerate(ends)]
    if times[0] >= times[1] or max(shares) > EDGE_SHARE:
        edge = int(shares[1] >= shares[0])
        return (
            None,
            times,
            f"the SMART reading nearest to its {('start', 'end')[edge]}, at {times[edge]:.1f} s,"
            f" is {100 * shares[edge]:.0f} % of its I/O away (limit {100 * EDGE_SHARE:.0f} %)",
        )
    ((_, amplification),) = wa.during([polls[i] for i in ends])
    if amplification.value is None:
        return amplification, times, amplification.why
    assert amplification.relative_error is not None  # it goes with the value
    busy = [*before, *(s for s in polls if s["reason"] in UNDER_LOAD)]  # after the load the drive may write on its own
    steps = [w.value for w in map(wa.between, busy, busy[1:]) if w.value is not None]
    steps += [polls[i]["foreign_wa"] for i in ends if polls[i].get("foreign_bytes")]
    off_io = sum(float(io[e][i]) for e, i in enumerate(ends))
    wide = off_io * max(max(steps, default=0.0) - amplification.value, amplification.value)
    own = own_share(data, amplification, (polls[ends[0]], polls[ends[1]]), edges_s)
    amplification = wider(amplification, wide / amplification.value, own)
    return amplification, times, amplification.why


def _done(data: RunData, polls: list[dict], at_s: np.ndarray) -> np.ndarray:
    """I/Os of the load until each poll. Within a second they are taken to come evenly; where a load only writes, and
    the drive counts host bytes in units smaller than a second's, its own count is used: collection of garbage holds
    the host up for parts of a second."""
    ios, written = (np.concatenate([[0.0], np.cumsum(np.nan_to_num(rates))]) for rates in (data.iops, data.bw_Bps))
    done = np.interp(at_s, np.arange(len(ios)), ios)
    own = [s for s in polls if s["reason"] == "before" and not s.get("foreign_bytes")]
    if data.totals.get("directions") != ("write",) or not own or len(written) != len(ios):
        return done
    start, unit = (own[-1].get(f"host_written_{key}") for key in ("bytes", "unit_bytes"))
    for i, poll in enumerate(polls):
        count = poll.get("host_written_bytes")
        if start is None or unit is None or count is None:
            continue
        if poll["reason"] not in UNDER_LOAD or poll.get("foreign_bytes"):
            continue
        second = min(max(0, int(at_s[i])), len(ios) - 2)
        if unit < written[second + 1] - written[second] and 0 <= count - start <= written[-1] + unit:
            done[i] = np.interp(count - start, written, ios)
    return done


def _shares(data: RunData, window: Window, edge_s: int, done: np.ndarray) -> np.ndarray:
    """I/O between each poll and an edge of a window, as a share of the window's. `done`: I/Os until each poll."""
    cumulative_ios = np.concatenate([[0.0], np.cumsum(data.iops)])
    ios = max(1.0, cumulative_ios[window.t1_s] - cumulative_ios[window.t0_s])
    return np.abs(done - cumulative_ios[edge_s]) / ios


def _past(data: RunData, window: Window, at_s: np.ndarray) -> np.ndarray:
    """How long after the load each poll is, as a share of the window's time."""
    return np.maximum(0.0, at_s - max(data.load_s, len(data.iops))) / (window.t1_s - window.t0_s)
