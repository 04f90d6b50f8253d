"""What a run of the SLC plans comes to: its plateaus and rests, in figures and on its page."""

import json

import json_documents
import numpy as np
import pytest
from synthetic_plan import Writer

from ssdrig.reading import filling, table
from ssdrig.reading.rundata import RunData
from ssdrig.report import page
from ssdrig.views import documents

S, MS = 1_000_000_000, 1_000_000
PLAN = """schema = 1
name = "demo"
title = "Cache"
source = "a test"
about = "A fill."
[[step]]
name = "fill"
do = "load"
pattern = "sequential"
read = 0
block = "1 MiB"
amount = "10 GiB"
detail = "fine"
[[step]]
name = "again"
do = "load"
pattern = "sequential"
read = 0
block = "1 MiB"
amount = "10 GiB"
detail = "fine"
[[show]]
view = "plateaus"
of = ["fill", "again"]
[[show]]
view = "cache-recovery"
of = "again"
"""


def made(runs, busy=None, dilation=1):
    """4 s of 1000 MiB/s, then 6 s of 250 MiB/s, at 2 W; 0.34 s later the same in 2 s and 8 s. `busy`: of the host's
    CPUs while the first went on. All of it in time of the host."""
    w = Writer(runs, PLAN, dilation=dilation)
    host = 1 << 40
    for path, fast_s in (("fill", 4), ("again", 2)):
        w.poll("before", host, host)
        counts = [1000] * fast_s + [250] * (10 - fast_s)
        w.load(path, counts, 2.0, block=1 << 20)
        begin_ns = w.t_ns - 2 * 100_000_000 - 10 * S
        (folder,) = (w.path / "fio" / path,)
        rows = [f"{begin_ns // MS + 100 * (i + 1)}, {1024 * counts[i // 10]}, 1, 0, 0\n" for i in range(100)]
        (folder / f"{path}_bw.1.log").write_text("".join(rows))
        if busy and path == "fill":
            w.event("witness", step=path, label=path, drive=None, why="served", cpus_busy_percent=busy)
        host += sum(counts) << 20
        w.poll("after", host, host + (sum(counts) << 19))
    return table.load(w.end(power=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize(("busy", "limited"), [([99.0, 96.0], True), ([90.0, 60.0], False)])
def test_the_speed_of_a_host_that_was_busy_is_no_plateau_of_the_drive(tmp_path, busy, limited):
    """Seen on a starved host: false plateaus, without a word."""
    table_ = made(tmp_path, busy)
    first, again = table_.rows
    assert (first.result["cache_bytes"] is None) == limited and again.result["cache_bytes"]
    if limited:
        why = "host-limited: all CPUs of the host were 98 % busy"
        assert first.result["cache_why"] == first.result["host_limited"] == why and first.result["plateaus"] == []
        assert f"no end of a cache: {why}" in page.render([table_])
        assert documents.of_table(table_)["rows"][0]["found"]["cache_why"] == why


def test_plateaus_and_rests_of_a_dilated_drive_are_in_its_own_time(run, tmp_path):
    """Half the time: twice the speed, half the joules, the same watts."""
    twice = made(tmp_path, dilation=2)
    for one, other in zip(run.rows, twice.rows, strict=True):
        assert other.result["cache_bytes"] == pytest.approx(one.result["cache_bytes"])
        for key, factor in (("to_s", 0.5), ("bw_mean_MBps", 2), ("power_mean_W", 1), ("energy_J", 0.5)):
            of = ([plateau[key] for plateau in row.result["plateaus"]] for row in (other, one))
            assert next(of) == pytest.approx([factor * value for value in next(of)]), key
        curves = (np.array(row.result["curve_GB_MBps"]) for row in (other, one))
        assert next(curves) == pytest.approx(next(curves) * [1, 2], rel=1e-4)
    (one, other) = (table_.rows[1].result for table_ in (run, twice))
    assert other["rest_s"] == pytest.approx(one["rest_s"] / 2) and other["rest_J"] == pytest.approx(one["rest_J"] / 2)


def test_a_curve_of_many_samples_is_thinned_by_bytes():
    speeds = np.tile([1.0, 3.0], 1000)
    curve = np.stack([np.cumsum(np.tile([1.0, 1.0], 1000)), speeds], axis=1)
    assert filling.thinned(curve) == [[2.0 * (i + 1), 1.5] for i in range(1000)]
    assert filling.thinned(curve[:1000]) == curve[:1000].tolist()
    curve[:4, 1] = 0.0  # a speed of 0 has no place on the page, and takes no time here
    assert filling.thinned(curve)[:3] == [[2.0, 0.0], [4.0, 0.0], [6.0, 1.5]]


def test_the_error_of_a_speed_holds_its_mean_and_its_range_each_half_second():
    """100 s at 500 MB/s with a scatter of 10 % by the half second, then 20 s at 100 MB/s."""
    dice = np.random.default_rng(3)
    speeds = np.concatenate([500 * (1 + 0.1 * dice.standard_normal(200)), np.full(40, 100.0)])
    at_s, done = np.arange(241) / 2, np.concatenate([[0], np.cumsum(speeds / 2)]) * 1e6
    seen = filling.varied(at_s, done, 0, 100)
    assert seen["bw_low_MBps"] == pytest.approx(speeds[:200].min()) and seen["bw_high_MBps"] == pytest.approx(
        speeds[:200].max()
    )
    assert 3 < seen["bw_error_MBps"] < 20 and abs(speeds[:200].mean() - 500) < seen["bw_error_MBps"]
    end = filling.last(at_s, done)
    assert end["bytes"] == done[-1] / 16 and end["bw_mean_MBps"] > end["bw_low_MBps"] == pytest.approx(100)
    assert filling.last(at_s, done * 100)["bytes"] == 16e9
    assert filling.varied(at_s, done, 0, 0.5)["bw_error_MBps"] is None and filling.last(at_s[:1], done[:1]) is None


@pytest.mark.parametrize(("until", "covered"), [(49, False), (51, True)])
def test_readings_that_cover_less_than_half_of_a_plateau_say_nothing_of_it(until, covered):
    at_ns, done = np.arange(101) * S, np.arange(101) * 10e6
    polls = [
        {"reason": "timer", "t_start_ns": at * S, "t_end_ns": at * S, "t_ns": at * S, "counters": {}}
        for at in (0, until)
    ]
    data = RunData({}, [], "complete", None, 1, t0_ns=0, load_s=100.0, snapshots=polls)
    amplified, why = filling._amplified([0, 100 * S], 1e9, False, False, at_ns, done, data)
    note = f"2 SMART readings in it, with {until} % of the writes between"
    assert (why == note) is not covered and (amplified is None or covered)


def test_the_page_has_each_plateau_with_its_energy(run):
    first, again = run.rows
    assert first.result["cache_bytes"] == pytest.approx(4000 << 20, rel=0.002)
    fast, slow = first.result["plateaus"]
    assert fast["bw_mean_MBps"] == pytest.approx(1048.6, rel=0.01)
    assert slow["bw_mean_MBps"] == pytest.approx(262.1, rel=0.01)
    assert fast["energy_J_per_GB"] == pytest.approx(2.0 / 1.0486, rel=0.02)
    assert slow["power_mean_W"] == pytest.approx(2, rel=0.001)
    assert fast["wa"] is None and "SMART readings" in fast["wa_why"]
    assert again.result["cache_bytes"] == pytest.approx(2000 << 20, rel=0.002)
    assert again.result["rest_s"] == pytest.approx(0.34, abs=0.01)
    assert again.result["rest_J"] == pytest.approx(0.17, abs=0.01)
    assert again.result["rest_late_J"] == pytest.approx(0.12, abs=0.01)  # without the tail of 0.1 s
    html = page.render([run])
    assert "cache 4.19 GB ± " in html and "cache 2.10 GB ± " in html and "2.10 GB after a rest of" in html
    assert first.result["cache_error_bytes"] < 150e6  # a sample is 105 MB
    (back,) = json_documents.figures(json.loads(json.dumps(documents.of_table(run))))["cache_recovery"]
    assert back["of"] == "again" and back["left_out"] == 0 and back["rate_Bps"] is None and "need 3" in back["why"]


def test_without_a_fine_log_the_page_says_so(run, tmp_path):
    w = Writer(tmp_path, PLAN)
    for path in ("fill", "again"):
        w.load(path, [1000] * 4, 2.0, block=1 << 20)
        for log in (w.path / "fio" / path).glob("*_bw.*.log"):
            log.unlink()
    bare = table.load(w.end())
    html = page.render([bare])
    assert "fio left no fine log" in html and "no load with a rest before it" in html
