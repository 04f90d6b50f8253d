"""reading/latency.py, views/table/html.py, little.py and the gaps of row_figures.py: counted from seconds, exactly."""

from types import SimpleNamespace

import numpy as np
import pts_runs
import pytest

from ssdrig.plan.rules import steady
from ssdrig.reading import latency, little, table
from ssdrig.report import little as little_page
from ssdrig.report import screen
from ssdrig.views import documents
from ssdrig.views.context import Context
from ssdrig.views.table import html as table_html


def load(counts, block=4096, lat_us=None, hist=()):
    n = len(counts)
    iops = np.array(counts, float)
    lat = np.full(n, 100.0) if lat_us is None else np.array(lat_us, float)
    cells = np.array(hist, np.int64).reshape(-1, 3)
    energy = np.arange(n, dtype=float)
    return SimpleNamespace(iops=iops, bw_Bps=iops * block, lat_mean_us=lat, energy_J=energy, hist=cells, k=1)


def test_a_minute_is_the_sum_of_its_sixty_seconds_and_the_rest_is_named():
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 50_000, 3 * 60 + 23)
    minutes = latency.of(load(counts))
    assert minutes.ios.tolist() == [counts[60 * i : 60 * i + 60].sum() for i in range(3)]
    assert (minutes.left_s, minutes.left_ios) == (23, counts[180:].sum())
    assert minutes.ios.sum() + minutes.left_ios == counts.sum()
    assert minutes.energy_J.tolist() == [sum(range(60 * i, 60 * i + 60)) for i in range(3)]
    live = steady.records(counts.tolist(), 60.0)
    assert (60 * np.array(live)).round().tolist() == minutes.ios.tolist(), "what the rule looks at live"


@pytest.mark.parametrize(("seconds", "whole", "left"), [(59, 0, 59), (60, 1, 0), (61, 1, 1), (119, 1, 59), (120, 2, 0)])
def test_no_second_is_counted_twice_or_lost(seconds, whole, left):
    minutes = latency.of(load(range(1, seconds + 1)))
    assert (len(minutes.ios), minutes.left_s) == (whole, left)
    assert minutes.ios.sum() + minutes.left_ios == seconds * (seconds + 1) / 2


def test_latencies_of_a_minute_are_weighted_by_the_ios():
    counts, lat = [900] * 30 + [100] * 30, [100.0] * 30 + [1000.0] * 30
    minutes = latency.of(load(counts, lat_us=lat, hist=[(3, 300, 5), (59, 700, 1), (60, 900, 1)]))
    assert minutes.lat_mean_us.tolist() == [190.0] and minutes.lat_max_us[0] == pytest.approx(
        1_000 * 2**9 * 125 / 1e6, rel=0.02
    )
    idle = latency.of(load([0] * 60))
    assert np.isnan(idle.lat_mean_us).all() and np.isnan(idle.lat_max_us).all()


def test_recovery_is_the_first_minute_as_fast_as_before():
    before = load([1000] * 240 + [500] * 60)  # mean 900; its last hour is all of it
    after = load([100] * 60 + [809] * 60 + [811] * 60 + [899] * 60 + [901] * 120)
    recovery = table_html.recovered(before, after)
    assert (recovery.record_s, recovery.after_s, recovery.most_s) == (60, 300, 180)
    assert recovery.mean_MBps == pytest.approx(900 * 4096 / 1e6) and recovery.end_MBps == recovery.mean_MBps
    assert table_html.recovered(before, load([899] * 300)).after_s is None
    short = table_html.recovered(load([10] * 20), load([1, 5, 9, 10, 10]))
    assert (short.record_s, short.after_s, short.most_s) == (1, 4, 3)
    assert table_html.recovered(load([]), after).why


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return lambda name: pts_runs.made(tmp_path_factory, name)[1]


def test_the_gap_between_two_groups_is_measured(runs):
    gaps = {row.act.path: row.value("gap") for row in runs("pts-xsr").rows}
    first, second = pts_runs.GAPS_S
    assert gaps == {"before": None, "stimulus": pytest.approx(first), "after": pytest.approx(second)}
    assert runs("pts-xsr").rows[0].why_not("gap") == "no load came right before it"


@pytest.mark.parametrize("path", ["before", "after", None])
def test_a_recovery_on_a_busy_host_is_not_known(tmp_path, path):
    w = pts_runs.xsr(tmp_path)
    if path:
        w.event("witness", step=path, label=path, cpus_busy_percent=[100.0, 99.0])
    table_ = table.load(w.end())
    show = next(show for show in table_.plan.shows if show["view"] == "recovery")
    page = table_html.recovery(Context([table_], ["run"], show))
    assert ("host-limited: all CPUs" in page and "<table" not in page) is bool(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", pts_runs.NAMES)
def test_every_closed_loop_of_a_plan_is_checked(runs, name):
    """All that was put in holds Little's law, in reads and writes together; loads with pauses are no closed loop."""
    table_ = runs(name)
    loads = [row for row in table_.rows if row.act.do in ("fill", "load") and not row.act.keys.get("off")]
    checked = little.loads(table_.rows)
    assert [(one.label, one.round) for one in checked] == [(row.act.label, row.round) for row in loads] != []
    for one, row in zip(checked, loads, strict=True):
        assert one.asked == row.act.keys["qd"] * row.act.keys["threads"] == pytest.approx(one.in_flight, rel=1e-3)
        assert one.why.startswith("not checked: ") if one.error_percent is None else abs(one.error_percent) < 0.1
    verdicts = documents.of_table(table_)["little"]
    loads = little.checked(checked)
    assert verdicts | {"worst_percent": 0} == {
        **{"limit_percent": 2, "loads": len(loads), "within": len(loads)},
        **{"worst_percent": 0, "not_checked": len(checked) - len(loads)},
    }
    assert f"{len(loads)} of {len(loads)} load" in little.words(table_.rows) in "\n".join(screen.of_plan(table_))
    assert "warn" not in little_page.section(table_.rows)


def test_a_load_that_breaks_littles_law_is_named(runs):
    rows = list(runs("pts-xsr").rows)
    whole = rows[1].windows["all"]
    whole_ = dict(whole)
    whole |= {"littles_qd": 1.03 * whole["littles_qd"], "littles_error_percent": 3.0}
    (one,) = little.beyond(little.loads(rows))
    page = little_page.section(rows)
    whole |= whole_
    assert one.label == "stimulus" and one.asked == pytest.approx(32, rel=1e-3)
    assert "2 of 3 loads" in page and "stimulus" in page and "+3.00" in page
