"""fio's logs by the second: what fio does with each I/O, against the seconds that are read."""

import json

import numpy as np
import pytest
from fio_folders import RECORDED, START_MS, document, near, steady, write_step
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import LoadError
from ssdrig.load import fiolog, fioseconds, fiotext

# the recorded run


def test_recorded_run_with_a_stall():
    s = fiolog.load(RECORDED)
    assert s.iops.tolist() == [
        13992,
        13471,
        14085,
        14434,
        14482,
        14247,
        281,
        0,
        0,
        5516,
        14620,
        14613,
        14533,
        14581,
        14524,
        14530,
    ]
    assert s.iops.sum() == 177_909 == s.totals["ios"]
    assert s.zero_seconds == 2 and not s.partial and s.torn_bytes == 0
    assert s.source == "logs" and s.directions == ("write",)
    assert s.bw_bytes.sum() == 728_715_264 and s.bw_bytes[0] == 13992 * 4096
    assert s.t_ns[0] == 1_485_044_000_000 and np.all(np.diff(s.t_ns) == 10**9)
    assert s.lat_mean_ns[:2].tolist() == [2_283_783, 2_372_881]
    assert s.lat_mean_ns[7] == 0
    # those that hung ended in second 9
    assert s.lat_max_ns[6] < 3_000_000 < 3_600_000_000 < s.lat_max_ns[9] < 3_700_000_000
    assert s.totals["clat_ns"]["99.000000"] == 2_768_896
    assert np.bincount(s.hist[:, 0], s.hist[:, 2], minlength=len(s.iops)).tolist() == s.iops.tolist()


def test_recorded_percentiles_agree_with_fios_own():
    """All rows as one histogram: the percentiles that fio itself printed for the whole run."""
    _, cells, torn = fiotext.hist_rows((RECORDED / "step_clat_hist.1.log").read_bytes())
    assert torn == 0
    quantiles = fioseconds.quantiles(cells * (0, 1, 1), 1)  # all rows as one second
    totals = fiolog.load(RECORDED).totals["clat_ns"]
    assert quantiles[0.5][0] == totals["50.000000"]
    assert quantiles[0.99][0] == totals["99.000000"]
    assert quantiles[0.999][0] == totals["99.900000"]


# seconds


@st.composite
def completions(draw):
    """Bursts at some rate, pauses between them, now and then a long latency."""
    t, out = draw(st.floats(1, 30)), []  # in its first millisecond fio does not yet count time
    for _ in range(draw(st.integers(1, 6))):
        iops, ms = draw(st.sampled_from([1, 3, 40, 150])), draw(st.integers(50, 3500))
        ns = draw(st.integers(1000, 40_000_000))
        n = max(1, iops * ms // 1000)
        out += [(t + i * 1000 / iops, ns, 1) for i in range(n)]
        t = out[-1][0] + draw(st.sampled_from([1, 20, 700, 1900, 5200]))
    return out


@settings(max_examples=40, deadline=None)
@given(io=completions(), after_ms=st.integers(0, 3000))
def test_every_io_is_in_its_second(tmp_path_factory, io, after_ms):
    runtime_ms = int(io[-1][0]) + after_ms
    s = fiolog.load(write_step(tmp_path_factory.mktemp("step"), io, runtime_ms))
    assert s.iops.sum() == len(io) == s.totals["ios"]
    assert s.bw_bytes.sum() == 4096 * len(io)
    if s.source == "status":
        return  # shorter than a histogram window
    offset_ms = s.t_ns[0] / 1e6 - START_MS
    assert -2 <= offset_ms < 1002
    ms = np.floor([t for t, _, _ in io])
    for k in range(1, len(s.iops)):
        until = offset_ms + 1000 * k
        early, late = (ms < until).sum(), (ms < until + fiolog.LATE_MS + 1).sum()
        assert early <= s.iops[:k].sum() <= min(late, early + 1)
    assert (s.iops >= 0).all() and s.zero_seconds == (s.iops == 0).sum()
    assert abs(len(s.iops) * 1000 + offset_ms - runtime_ms) <= 1000 + fioseconds.TAIL_MS


def test_three_zero_seconds_between_full_ones(tmp_path):
    io = steady(2, 100) + [(t + 5010, ns, d) for t, ns, d in steady(3, 100)]
    s = fiolog.load(write_step(tmp_path / "s", io, 8015))
    assert near(s.iops, [100, 100, 0, 0, 0, 99, 100, 101])
    assert s.zero_seconds == 3 and not s.partial


def test_the_drive_hangs_before_its_first_io(tmp_path):
    io = steady(2, 100, first_ms=3205)
    s = fiolog.load(write_step(tmp_path / "s", io, 5210))
    assert near(s.iops, [0, 0, 0, 100, 100])
    assert 205 <= s.t_ns[0] / 1e6 - START_MS <= 210


def test_every_row_is_late(tmp_path):
    """One I/O, a hang, one more: fio's only row says nothing of where its windows began, its first document does."""
    s = fiolog.load(write_step(tmp_path / "s", [(1, 1000, 1), (5201, 1000, 1)], 5201))
    assert s.iops.tolist() == [1, 0, 0, 0, 1]


@pytest.mark.parametrize("late_ms", [0, 600, 1500, 20_000])
def test_documents_that_a_busy_host_took_late_move_nothing(tmp_path, late_ms):
    """Each is stamped when we got it: no second is added at the end, and fio's own log is believed."""
    folder = write_step(tmp_path / "s", steady(5, 100), 5010)
    documents = fiotext.documents((folder / "out.json").read_text())[0]
    for one in documents:
        one["t_ns"] = (START_MS + one["jobs"][0]["job_runtime"] + late_ms) * 10**6
    (folder / "out.json").write_text("".join(json.dumps(one) + "\n" for one in documents))
    s = fiolog.load(folder)
    assert (s.source, s.notes, s.partial) == ("logs", (), False)
    assert near(s.iops, [100] * 5) and s.iops.sum() == 500
    assert 0 <= s.t_ns[0] - START_MS * 10**6 <= 10 * 10**6


def test_hang_until_the_end_is_zero_seconds(tmp_path):
    s = fiolog.load(write_step(tmp_path / "s", steady(3.4, 100), 6500))
    assert near(s.iops, [100, 100, 100, 40, 0, 0, 0])
    assert s.partial and s.zero_seconds == 3


def test_rest_at_the_end(tmp_path):
    """A tail below 100 ms joins the last second; a longer one is a second of its own, said to be partial."""
    s = fiolog.load(write_step(tmp_path / "a", steady(3.05, 100), 3052))
    assert near(s.iops, [100, 100, 105]) and not s.partial
    s = fiolog.load(write_step(tmp_path / "b", steady(3.4, 100), 3402))
    assert near(s.iops, [100, 100, 100, 40]) and s.partial


def test_a_late_closing_io_just_before_the_end_makes_no_second(tmp_path):
    """The last row was closed 4 ms late by the job's last I/Os: the third second is the last, and no slow fourth
    one."""
    io = [x for x in steady(3, 1000) if x[0] < 2990] + [(3004.0, 1_000_000, 1), (3004.2, 1_000_000, 1)]
    s = fiolog.load(write_step(tmp_path / "s", io, 3005))
    assert len(s.iops) == 3 and not s.partial and s.iops.sum() == len(io)
    io = [x for x in steady(3, 1000) if x[0] < 2990] + [(3004.0, 1_000_000, 1), (3400.0, 1_000_000, 1)]
    s = fiolog.load(write_step(tmp_path / "t", io, 3402))
    assert len(s.iops) == 4 and s.partial


def test_shorter_than_a_second(tmp_path):
    s = fiolog.load(write_step(tmp_path / "s", steady(0.3, 100), 301))
    assert s.iops.tolist() == [30] and s.partial and s.source == "status"


def test_latency_of_a_second(tmp_path):
    """200 I/Os a second, one of them slow: p99 is the 198th in order, p999 the 200th."""
    io = steady(1, 200, 500_000) + [(t + 1000.5, ns, d) for t, ns, d in steady(1, 200, 2_000_000)]
    io = [(t, 50_000_000 if i in (60, 260) else ns, d) for i, (t, ns, d) in enumerate(io)]
    s = fiolog.load(write_step(tmp_path / "s", io, 2003))
    assert s.iops.tolist() == [201, 199]
    assert s.lat_mean_ns[0] == round((199 * 500_000 + 2_000_000 + 50_000_000) / 201)
    for got, want in (
        (s.lat_p50_ns, (500_000, 2_000_000)),
        (s.lat_p99_ns, (500_000, 2_000_000)),
        (s.lat_p999_ns, (50_000_000,) * 2),
        (s.lat_max_ns, (50_000_000,) * 2),
    ):
        assert got.tolist() == pytest.approx(want, rel=1 / 64)


def test_latency_of_a_second_whose_closing_io_is_late_has_its_submission_time(tmp_path):
    """lat = slat + clat. fio's histogram has clat alone, so where it stands in for the lat log, slat is added."""
    io = [(ms, 900_000, 1) for ms in (*range(1, 2000, 10), *range(2017, 4100, 10))]  # the second row closes late
    folder = write_step(tmp_path, io, 4100)
    stamps = [line.split(",") for line in (folder / "load_lat.1.log").read_text().splitlines()]
    slat, lat = ("".join(f"{t}, {ns}, {d}, 0, 0\n" for t, _, d, *_ in stamps) for ns in (300_000, 1_200_000))
    (folder / "load_slat.1.log").write_text(slat)
    (folder / "load_lat.1.log").write_text(lat)
    assert fiolog.load(folder).lat_mean_ns / 1.2e6 == pytest.approx([1, 1, 1, 1], rel=0.003)


def test_two_directions(tmp_path):
    io = sorted(steady(3, 100, 400_000, 0) + steady(3, 50, 800_000, 1))
    folder = write_step(tmp_path / "s", io, 3001)
    both = fiolog.load(folder)
    assert both.directions == ("read", "write") and both.iops.tolist() == [152, 150, 148]
    assert both.lat_mean_ns[1] == pytest.approx((100 * 400_000 + 50 * 800_000) / 150, rel=0.008)
    assert near(fiolog.load(folder, "read").iops, [100, 100, 100])
    write = fiolog.load(folder, "write")
    assert near(write.iops, [50, 50, 50]) and (write.bw_bytes == write.iops * 4096).all()
    assert write.lat_mean_ns[1] == 800_000 and write.directions == ("write",)


def test_several_jobs_are_summed(tmp_path):
    folder = write_step(tmp_path / "s", steady(3, 100), 3001, documents=False)
    write_step(folder, steady(3, 200, first_ms=4), 3001, number=2, documents=False)
    documents = [document(steady(3, 100), 3001), document(steady(3, 200, first_ms=4), 3001)]
    documents[0]["jobs"] += documents[1]["jobs"]
    (folder / "out.json").write_text(json.dumps(documents[0]))
    s = fiolog.load(folder)
    assert s.iops.tolist() == [302, 300, 298] and s.totals["ios"] == 900


# without logs: fio was killed


def test_documents_alone_give_the_seconds(tmp_path):
    folder = write_step(tmp_path / "s", steady(4, 100), 3900)
    for log in folder.glob("*.log"):
        log.unlink()
    s = fiolog.load(folder)
    assert s.source == "status" and s.iops.tolist() == [100, 100, 100, 90] and s.partial is False
    assert s.t_ns[0] == START_MS * 10**6
    assert s.lat_mean_ns.tolist() == [1_000_000] * 4
    assert s.lat_p99_ns.tolist() == pytest.approx([1_000_000] * 4, rel=1 / 128)


def test_documents_with_a_pause(tmp_path):
    """fio prints nothing while all I/O hangs; the pause is zero seconds, not a slope."""
    io = steady(2, 100) + [(t + 6000, ns, d) for t, ns, d in steady(2, 100)]
    folder = tmp_path / "s"
    folder.mkdir()
    text = "".join(json.dumps(document(io, ms)) + "\n" for ms in (900, 1900, 6100, 7100, 7900))
    (folder / "out.json").write_text(text)
    s = fiolog.load(folder)
    assert s.iops.tolist() == [100, 92, 18, 0, 0, 0, 90, 90] and s.iops.sum() == s.totals["ios"]
    assert s.zero_seconds == 3 and s.t_ns[0] == 0


def test_nothing_left(tmp_path):
    with pytest.raises(LoadError, match="neither"):
        fiolog.load(tmp_path)
