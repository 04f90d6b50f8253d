"""What fio and the trace player left in a run folder -> the per-second grid of RunData."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ssdrig.base.errors import LoadError
from ssdrig.load import fiolog, fiotext, foreign, playedlog, recorded
from ssdrig.load.fioseconds import Seconds
from ssdrig.reading.rundata import RunData

CUT = "load: the power was cut from the web after {:.2f} s; figures cover the time before it"
UNDATED_NS = 1e9  # where fio's own start is not known
P99_IOS = 1000  # in a second, for its P99 (see window_figures.TAIL)
NO_TAIL = ("kernel", "foreign", "totals")  # sources without a histogram by the second


def loader(folder: Path) -> Callable[..., Seconds]:
    """What reads a step's folder: of (folder, direction=None)."""
    for name, module in ((playedlog.RECORDS, playedlog), (recorded.COUNTERS, recorded), (foreign.NAME, foreign)):
        if os.path.exists(folder / name):  # False, too, where a damaged run names no file
            return module.load
    return fiolog.load


def load_step(data: RunData, folder: Path, started_ns: int) -> None:
    """One fio job, one played trace, or one recording -> the grid of RunData, `load_s`, `ios` and `totals`.
    `started_ns`: when it was started, for a folder without its begin."""
    k = data.k
    try:
        load = loader(folder)(folder)
        if not len(load.iops):
            raise LoadError("I/O in the load", "none", f"see {folder.name}/stderr.txt")
    except LoadError as error:
        data.notes.append(f"load: {error}")
        return
    data.t0_ns, data.t0_error_ns = int(load.t_ns[0]), load.start_error_ns
    if not data.t0_ns:
        data.t0_ns, data.t0_error_ns = started_ns, UNDATED_NS
        data.notes.append("load: fio's own start is not known; the axis begins when it was started, good to a second")
    elif load.source == "status":
        data.notes.append("load: the seconds are made of fio's once-a-second documents, good to a second")
    data.notes += [f"load: {note}" for note in load.notes]
    data.load_s = load.totals["runtime_ms"] / 1000 / k
    data.ios, data.totals = load.totals["ios"], load.totals
    n = (len(load.iops) - load.partial) // k  # a second that was cut short would look slow
    if data.cut_within(data.t0_ns, load.totals["runtime_ms"]):  # fio also counted the time after it
        data.load_s = data.until_cut_s(data.t0_ns, 1 << 62)
        data.ios, data.totals, n = None, {}, min(n, int(data.load_s))
        data.notes.append(CUT.format(data.load_s))

    def per_second(values):
        return values[: n * k].reshape(n, k).astype(float)

    # a second with I/O whose latency is 0: it is not known
    count, latency, tail = per_second(load.iops), per_second(load.lat_mean_ns), per_second(load.lat_p99_ns)
    latency[(count > 0) & (latency == 0)] = np.nan
    data.iops = count.sum(axis=1)
    data.bw_Bps = per_second(load.bw_bytes).sum(axis=1)
    with np.errstate(invalid="ignore"):
        data.lat_mean_us = (count * latency).sum(axis=1) / data.iops / 1000 / k
    tail[(count < P99_IOS) | (tail == 0)] = np.nan
    data.lat_p99_us = np.fmax.reduce(tail, axis=1) / 1000 / k
    data.hist, data.hist_of = load.hist // (k, 1, 1) if k > 1 else load.hist, load.hist_of
    if load.source == "totals":
        data.iops, data.bw_Bps, data.lat_mean_us = (np.full(n, np.nan) for _ in range(3))
        data.notes.append("load: fio's logs are missing; nothing is known by the second")
    few = int((np.isnan(data.lat_p99_us) & (data.iops > 0)).sum())
    if few and load.source not in NO_TAIL:
        data.notes.append(
            f"P99 by the second: the I/Os of {few} s are too few for this percentile, which needs {P99_IOS}"
        )
    if data.hist_of == "lat" and load.source == "status":
        data.notes.append("P99 by the second covers lat here, because fio's documents have no histogram of clat")
    _load_lat(data, folder / "out.json")
    if load.source in ("foreign", "totals"):
        _foreign_lat(data, folder)
    if k > 1 and load.source not in NO_TAIL:
        data.notes.append(
            f"P99 of clat by the second: the largest of the {k} host seconds' that make one of the drive's"
        )


def _foreign_lat(data: RunData, folder: Path) -> None:
    """The histogram of all I/Os of an imported log: one document, at its end; of clat where fio kept none of lat."""
    document = foreign.content(folder)
    for kind in ("lat", "clat"):
        counts = foreign.histogram(document, kind)
        if at := np.flatnonzero(counts).tolist():
            data.lat_t_s, data.documents_of = np.array([0.0, data.load_s]), kind
            data.lat_hist = np.stack([np.ones(len(at), np.int64), np.array(at), counts[at]], axis=1)
            return


def _load_lat(data: RunData, path: Path) -> None:
    """The histograms of lat that our own status lines keep (fiotext.thin); fio's logs have clat only."""
    times, cells, before = [0.0], [np.zeros((0, 3), np.int64)], np.zeros(fiotext.BINS, np.int64)
    left = 0
    try:
        with open(path, errors="replace") as lines:
            for line in lines:
                if not line.startswith('{"t_ns"') or '"bins"' not in line:
                    continue
                documents, _ = fiotext.documents(line)
                counts = fiotext.bins(documents[0], None, "lat_ns") if documents else before
                if not documents or (counts < before).any():
                    left += 1
                    continue
                at_s = fiotext.totals(documents[0])["runtime_ms"] / 1000 / data.k
                if at_s <= times[-1] and (counts == before).all():  # the same again
                    continue
                new = np.flatnonzero(counts > before)
                cells.append(np.stack([np.full(len(new), len(times)), new, (counts - before)[new]], axis=1))
                times.append(at_s)
                before = counts
    except OSError:
        return  # fiolog has reported it
    if left:
        data.notes.append(f"load: {left} documents that do not follow the one before were not used for lat")
    if len(times) > 1:
        data.lat_t_s, data.lat_hist = np.array(times), np.concatenate(cells)
