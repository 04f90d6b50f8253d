"""Parts of the reading of fio's logs on arrays made by hand, each limit from both sides."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from fio_folders import START_MS, steady, write_step

from ssdrig.base.errors import LoadError
from ssdrig.load import fio, fioclock, fiolog, fioseconds, fiostatus, fiotext
from ssdrig.load.fiotext import plat_ns, plat_upper_ns
from ssdrig.publish.influx.points import Running
from ssdrig.reading.live_load import Load


@pytest.mark.parametrize(
    ("tail_ms", "expected"),
    [
        (-5, (0, False)),
        (99, (0, False)),
        (100, (1, True)),
        (899, (1, True)),
        (900, (1, False)),
        (1100, (1, False)),
        (1101, (2, True)),
        (1899, (2, True)),
        (1900, (2, False)),
    ],
)
def test_seconds_behind_the_last_counted_one(tail_ms, expected):
    assert fiolog._tail(tail_ms) == expected


@pytest.mark.parametrize(
    ("counted", "closed", "behind_ms", "agrees"),
    [
        (100, 3, 0, True),
        (101, 3, 0, False),
        (100, 3, -100, True),
        (100, 3, -101, False),
        (100, 3, 1000 * fioclock.LONGEST_HANG_S, True),
        (100, 3, 1 + 1000 * fioclock.LONGEST_HANG_S, False),
    ],
)
def test_whether_the_last_document_is_the_logs(counted, closed, behind_ms, agrees):
    total = {"ios": 100, "runtime_ms": 3100}
    why = fiolog._disagreement(total, counted, closed, behind_ms)
    message = "the last whole document of out.json counts 100 I/Os in 3.1 s, fio's log"
    assert why is None if agrees else why == f"{message} {counted} in {closed} s; totals are not known"
    assert fiolog._disagreement(None, 0, 0, 0) == "out.json has no whole document; totals are not known"


@pytest.mark.parametrize(("late_ms", "moved"), [(0, False), (1, False), (2, True)])
def test_a_closing_io_may_be_a_millisecond_late(late_ms, moved):
    """Rows of two seconds from 5 ms on; the second one's closing I/O, its slowest, came late."""
    stamps = np.array([1005, 2005 + late_ms])
    cells = np.array([[0, 9, 1], [1, 3, 4], [1, 7, 1], [1, 5, 2]])
    late = fiolog._late(stamps, cells, 5, 5, 3)
    assert late.tolist() == ([[4, 7, -1], [2, 7, 1]] if moved else [])


@pytest.mark.parametrize(
    ("end_ms", "value"), [(1000, 10), (1400, 10), (1500, 10), (1501, 20), (2000, 20), (2600, 30), (9000, 30), (100, 10)]
)
def test_the_row_stamped_nearest(end_ms, value):
    log = np.array([[1000, 10, 1], [2000, 20, 1], [3000, 30, 1]])
    assert fiolog._nearest(log, end_ms - 1000, 1).tolist() == [value]
    assert fiolog._nearest(log[:1], end_ms - 1000, 1).tolist() == [10]
    assert fiolog._nearest(log[:0], 0, 2).tolist() == [0, 0]


def test_mean_latency_is_the_first_row_of_a_second():
    log = np.array([[1000, 11, 1], [2499, 22, 1], [2400, 33, 1], [3500, 44, 1], [9000, 55, 1], [400, 66, 1]])
    assert fiolog._lat_means(log, 0, np.full(5, 7.0), set()).tolist() == [11, 22, 7, 44, 7]
    assert fiolog._lat_means(log, 0, np.full(5, 7.0), {1}).tolist() == [11, 7, 7, 44, 7]
    assert fiolog._lat_means(log, 1000, np.full(1, 7.0), set()).tolist() == [22]


def test_quantiles_of_a_second_are_of_the_nearest_rank():
    cells = np.array([[2, 300, 500], [2, 400, 490], [2, 500, 9], [2, 600, 1], [0, 200, 3], [0, 250, 5], [0, 250, -5]])
    levels = fioseconds.quantiles(cells, 4)
    for q, index in ((0.5, 300), (0.99, 400), (0.999, 500)):
        assert levels[q].tolist() == [plat_ns(200), 0, plat_ns(index), 0]
    assert levels["max"].tolist() == [plat_upper_ns(200), 0, plat_upper_ns(600), 0]
    assert levels["hist"].tolist() == [[0, 200, 3], [2, 300, 500], [2, 400, 490], [2, 500, 9], [2, 600, 1]]
    mean = (500 * plat_ns(300) + 490 * plat_ns(400) + 9 * plat_ns(500) + plat_ns(600)) / 1000
    assert levels["mean"].tolist() == pytest.approx([float(plat_ns(200)), 0, float(mean), 0])
    just_over = fioseconds.quantiles(np.array([[0, 300, 499], [0, 400, 501]]), 1)
    assert just_over[0.5].tolist() == [plat_ns(400)]


def test_one_direction_of_a_log():
    heads = np.array([[1000, 0], [1000, 1], [2000, 1], [2000, 0]])
    cells = np.array([[0, 5, 1], [1, 6, 2], [2, 7, 3], [3, 8, 4]])
    stamps, own = fiolog._stream(heads, cells, 1)
    assert stamps.tolist() == [1000, 2000] and own.tolist() == [[0, 6, 2], [1, 7, 3]]


@pytest.mark.parametrize(
    ("logs", "block"),
    [([b"", b"1, 1, 4096, 0"], 4096), ([b"1, 1, x, 0"], 0), ([b"1, 1, 4096"], 0), ([], 0), ([b""], 0)],
)
def test_the_block_size_of_the_first_row(logs, block):
    assert fiolog._block_bytes(logs) == block


def side(ios: int, ms: int, lat_ns: float = 1000.0, bins=None) -> dict:
    clat = {"N": ios, "bins": bins or {}}
    write = {
        "total_ios": ios,
        "io_bytes": 10 * ios,
        "runtime": ms,
        "clat_ns": clat,
        "lat_ns": {"N": ios, "mean": lat_ns},
    }
    return {"jobs": [{"jobname": "x", "error": 0, "job_runtime": ms, "write": write}]}


@pytest.mark.parametrize(("edge_ms", "complete"), [(1750, True), (1749, False)])
def test_a_log_that_ends_too_early(edge_ms, complete):
    """A document of 2000 ms counts what is no older than 250 ms."""
    tail = [side(5, 1000), side(9, 2000), side(12, 3000)]
    total = fiotext.totals(tail[-1]) | {"ios": 12}
    tail = tail[:2]
    if complete:
        fiolog._cut_short(edge_ms, 9, total, tail, None)
    else:
        with pytest.raises(fioseconds.Senseless):
            fiolog._cut_short(edge_ms, 9, total, tail, None)
    fiolog._cut_short(0, 0, total | {"ios": 5}, tail, None)
    fiolog._cut_short(0, 10, total, tail, None)


def test_documents_in_which_a_count_falls_are_left_out():
    in_order, left = fiostatus._in_order(
        [side(5, 1000), side(4, 2000), side(5, 900), side(5, 1000), side(7, 2000)], None
    )
    assert ([now["ios"] for now, _ in in_order], left) == ([5, 5, 7], 2)


@pytest.mark.parametrize(
    ("ms", "seconds", "partial"),
    [(2100, 2, False), (2101, 3, True), (2899, 3, True), (2900, 3, False), (50, 1, True), (1000, 1, False)],
)
def test_seconds_of_documents(ms, seconds, partial):
    read = fiostatus.from_status([side(100, ms)], 7, None)
    assert (len(read.iops), read.partial, int(read.iops.sum())) == (seconds, partial, 100)
    assert read.t_ns[0] == 7_000_000 and read.source == "status" and read.notes == ()


@pytest.mark.parametrize(("pause_ms", "iops"), [(1500, [10, 20, 10]), (1501, [10, 30, 0])])
def test_io_of_a_long_pause_is_of_its_first_second(pause_ms, iops):
    seconds = fiostatus.from_status([side(10, 1000), side(40, 1000 + pause_ms)], 0, None)
    assert seconds.iops.tolist() == iops and seconds.bw_bytes.tolist() == [10 * n for n in iops]
    assert seconds.lat_mean_ns.tolist() == [1000 if n else 0 for n in iops]


@pytest.mark.parametrize(("ms", "shown"), [(65_000, True), (65_001, False)])
def test_percentiles_of_a_long_time_are_not_shown(ms, shown):
    at = str(int(plat_ns(300)))
    seconds = fiostatus.from_status([side(650, ms, bins={at: 650})], 0, None)
    assert (seconds.lat_p50_ns[0] > 0) == shown
    assert seconds.hist.tolist() == [[0, 300, 650]]


def test_more_seconds_than_documents_explain():
    longest = 1000 * (2 + fioclock.LONGEST_HANG_S) + 100
    assert len(fiostatus.from_status([side(9, longest)], 0, None).iops) == 2 + fioclock.LONGEST_HANG_S
    with pytest.raises(fioseconds.Senseless):
        fiostatus.from_status([side(9, longest + 1)], 0, None)
    assert len(fiostatus.from_status([], 0, None).iops) == 0


def test_a_job_of_threads_is_not_dated_by_a_document_without_io(tmp_path):
    """Of four threads, one not begun: fio 3.33 printed 4420 ms for it when three had run for no time at all."""

    def document(t_ms, sum_ms, each_ms, ios):
        side = {"io_bytes": ios, "total_ios": 55, "runtime": each_ms, "clat_ns": {"N": ios, "mean": 0.0}}
        job = {"jobname": "x", "error": 0, "job_runtime": sum_ms, "read": side, "job options": {"numjobs": "4"}}
        return {"t_ns": 10**6 * t_ms, "jobs": [job]}

    (tmp_path / "start.json").write_text('{"t_ns": 5000000000, "utc_ns": 5000000000}')
    documents = [document(10_500, 4420, 0, 0), document(11_500, 3900, 990, 30), document(12_600, 8300, 2080, 165)]
    assert fioclock.job_clock(tmp_path, documents, documents).start_ms == 10_510
    assert fioclock.job_clock(tmp_path, documents[:1], documents[:1]).start_ms == 10_500 - 1105  # all that there is
    alone = [document(10_500, 40, 0, 0), document(16_000, 5000, 0, 0)]
    for document_ in alone:
        document_["jobs"][0]["job options"] = {"numjobs": "1"}
    assert fioclock.job_clock(tmp_path, alone, alone).start_ms == 10_460  # all I/O hangs, one thread


def not_begun(t_ms: int) -> dict:
    """A document of a thread whose clock has not begun: fio counts its run time from the start of the machine."""
    return {"t_ns": 10**6 * t_ms} | side(0, 0) | {"jobs": [{"jobname": "x", "error": 0, "job_runtime": t_ms}]}


@pytest.mark.parametrize("uptime_ms", [145_900, 40 * 86_400_000])
def test_document_of_a_thread_that_has_not_begun_does_not_date_the_job(tmp_path, uptime_ms):
    (tmp_path / "start.json").write_text(json.dumps({"t_ns": uptime_ms * 10**6, "utc_ns": 17 * 10**17}))
    documents = [
        not_begun(uptime_ms + 1_004),
        {"t_ns": 10**6 * (uptime_ms + 2_600)} | side(9, 1_000),
        {"t_ns": 10**6 * (uptime_ms + 3_600)} | side(19, 2_000),
    ]
    clock = fioclock.job_clock(tmp_path, documents, documents)
    assert (clock.start_ms, clock.begun_ms, clock.notes) == (uptime_ms + 1_600, uptime_ms + 2_600, ())
    assert fioclock.job_clock(tmp_path, documents[:1], documents[:1]) == fioclock.JobClock(None, None)


def test_a_job_whose_clock_was_set_anew_as_its_thread_began_is_dated_from_then(tmp_path):
    """On a starved host fio 3.33 printed 2217 ms, without a completed I/O, and half a second later 206."""
    (tmp_path / "start.json").write_text('{"t_ns": 5000000000, "utc_ns": 5000000000}')
    waiting = [{"t_ns": 10**6 * t_ms} | side(0, t_ms - 6_000) for t_ms in (7_205, 8_217)]
    running = [
        {"t_ns": 10**6 * (9_500 + late + ran)} | side(ran, ran) for late, ran in ((300, 206), (0, 1_250), (5, 9_000))
    ]
    documents = [*waiting, *running]
    assert fioclock.job_clock(tmp_path, documents, documents).start_ms == 9_500
    assert fioclock.job_clock(tmp_path, documents[:4], documents[3:]).start_ms == 9_500
    assert fioclock.job_clock(tmp_path, waiting, waiting).start_ms == 6_000


@pytest.mark.parametrize("step_ms", [-145_896, 145_896, 3_600_000, -3_600_000])
def test_step_of_fios_clock_during_a_job_leaves_its_start(tmp_path, step_ms):
    (tmp_path / "start.json").write_text('{"t_ns": 5000000000, "utc_ns": 5000000000}')
    before = [{"t_ns": 10**6 * (5_100 + 1_000 * n)} | side(10 * n, 1_000 * n) for n in (1, 2)]
    after = [{"t_ns": 10**6 * (5_100 + 1_000 * n)} | side(10 * n, max(0, 1_000 * n + step_ms)) for n in (3, 4)]
    clock = fioclock.job_clock(tmp_path, before, after)
    assert clock.start_ms == 5_100
    assert bool(clock.notes) == (step_ms > 0)


@pytest.mark.parametrize("step_s", [-145.896, 145.896, 3600.0])
def test_step_of_the_wall_clock_moves_no_second(tmp_path, step_s):
    """start.json and documents carry both clocks; of them CLOCK_MONOTONIC alone dates."""
    folder = write_step(tmp_path / "s", steady(3.05, 20), 3052)
    before = fiolog.load(folder)
    lines = fiotext.documents((folder / "out.json").read_text())[0]
    for line in lines:
        line["t_ns"] = 10**6 * (START_MS + fiotext.totals(line)["runtime_ms"])
        line["timestamp_ms"] += round(1e3 * step_s)
    (folder / "out.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    after = fiolog.load(folder)
    assert abs(after.t_ns - before.t_ns).max() <= 2 * 10**6
    assert (after.iops.tolist(), after.notes, after.clock_notes) == (before.iops.tolist(), (), ())


def arrived(folder, late_ms: int, *before: dict):
    """A step's folder whose documents came so late, each with our time; `before`: those that came first."""
    lines = [*before, *fiotext.documents((folder / "out.json").read_text())[0]]
    for line in lines[len(before) :]:
        line["t_ns"] = 10**6 * (START_MS + fiotext.totals(line)["runtime_ms"] + late_ms)
    (folder / "out.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_a_log_is_whole_after_a_document_of_a_thread_that_has_not_begun(tmp_path):
    """Its run time is after the log's last row, and it counts no I/O."""
    folder = arrived(write_step(tmp_path / "s", steady(3.05, 20), 3052), 0, not_begun(START_MS - 10))
    seconds = fiolog.load(folder)
    assert (seconds.source, seconds.notes, int(seconds.iops.sum())) == ("logs", (), 61)


def test_a_log_is_whole_whose_documents_all_came_late(tmp_path):
    """Dated by them, the job seems to begin 300 ms late, and its windows to end so much earlier."""
    io = steady(1.994, 1000, first_ms=910)
    seconds = fiolog.load(arrived(write_step(tmp_path / "s", io, 2905), 300))
    assert (seconds.source, seconds.notes, int(seconds.iops.sum())) == ("logs", (), len(io))


def test_seconds_are_reported_after_a_document_of_a_thread_that_has_not_begun():
    seconds: list[dict] = []
    watch = fio._Watch(SimpleNamespace(time_s=None, name="x"), 30, 30, seconds.append)
    now_ms = time.monotonic_ns() // 10**6
    watch.pending = [
        (not_begun(now_ms), now_ms * 10**6),
        (side(9, 1_000), (now_ms + 1_100) * 10**6),
        (side(19, 2_000), (now_ms + 2_100) * 10**6),
    ]
    watch.take()
    assert [(second["span_s"], second["ios"]) for second in seconds] == [(1.0, 9), (1.0, 10)]


def test_seconds_are_reported_after_a_job_whose_clock_was_set_anew_as_its_thread_began():
    seconds: list[dict] = []
    watch = fio._Watch(SimpleNamespace(time_s=None, name="x"), 30, 30, seconds.append)
    now_ms = time.monotonic_ns() // 10**6
    documents = ((0, 4_000, 4_010), (9, 1_000, 6_100), (19, 2_000, 7_100))
    watch.pending = [(side(ios, ran_ms), (now_ms + at_ms) * 10**6) for ios, ran_ms, at_ms in documents]
    watch.take()
    assert [(second["span_s"], second["ios"]) for second in seconds] == [(4.0, 0), (1.0, 9), (1.0, 10)]


@pytest.mark.parametrize("of_page", [True, False])
def test_live_seconds_follow_documents_of_a_thread_that_has_not_begun(tmp_path, of_page):
    """The first has the machine's run time, the second that since fio's start: the job's clock was set once more."""
    (tmp_path / "start.json").write_text(json.dumps({"t_ns": START_MS * 10**6, "utc_ns": 17 * 10**17}))
    began = [
        {"t_ns": 10**6 * (START_MS + at_ms)} | side(ios, ran_ms)
        for ios, ran_ms, at_ms in ((0, 2_900, 3_010), (40, 1_000, 5_000), (90, 2_000, 6_000))
    ]
    lines = [not_begun(START_MS + 1_004), *began]
    (tmp_path / "out.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if of_page:
        load = Load(tmp_path / "out.json")
        rates = [row["iops"] for row in (*load.rows(), *load.rest())]
    else:
        rates = [second.iops for second in Running(tmp_path).seconds()]
    assert rates == [0, 40, 50]


@pytest.mark.parametrize("about_clock", [True, False])
def test_note_about_a_clock_fails_no_step(tmp_path, about_clock, monkeypatch):
    seconds = fiolog.load(write_step(tmp_path / "s", steady(2.05, 20), 2052))
    noted = replace(seconds, notes=("odd",), clock_notes=("odd",) if about_clock else ())
    monkeypatch.setattr(fiolog, "load", lambda folder: noted)
    job = SimpleNamespace(name="x", detail=None, time_s=2.0, io_size=None, size_bytes=0, block_bytes=4096)
    monkeypatch.setattr(fio, "detail", lambda job: "second")
    if about_clock:
        assert fio._read_back(job, tmp_path, "exit") is noted
    else:
        with pytest.raises(LoadError):
            fio._read_back(job, tmp_path, "exit")
