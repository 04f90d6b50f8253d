"""The rows of a plan's run folder: one for each act, its figures exact."""

import json
import shutil
from html import escape
from types import SimpleNamespace

import json_documents
import numpy as np
import pytest
import synthetic_plan
from small_plans import HEAD, operating_points
from synthetic_plan import Writer

from ssdrig.base.errors import JournalError
from ssdrig.load.fiotext import plat_ns, plat_upper_ns
from ssdrig.plan import shows
from ssdrig.plan.kinds import load
from ssdrig.reading import row_figures, table
from ssdrig.reading.row import KEYS, Row
from ssdrig.report import page, screen
from ssdrig.views import documents
from ssdrig.views.step_results import sentences


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return table.load(synthetic_plan.steps(tmp_path_factory.mktemp("steps")))


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    return table.load(synthetic_plan.grid(tmp_path_factory.mktemp("grid"), falling=0.02))


def near(value):
    return pytest.approx(value, rel=2e-3)


def test_one_row_for_each_act_in_the_order_of_time(steps):
    assert [(r.act.path, r.state) for r in steps.rows] == [
        ("fill", "done"),
        ("clean", "done"),
        ("trim", "done"),
        ("rest", "not run"),
        ("after", "done"),
    ]
    assert steps.rows[3].why == "0 s" and steps.rows[3].windows == {}
    assert (steps.plan.scaled, steps.plan.params, steps.data.state) == (True, {"time": "4 s"}, "complete")


def test_figures_of_a_whole_act(steps):
    _, clean, trim, _, after = steps.rows
    assert (clean.value("iops"), after.value("iops")) == (2000, 1000)
    assert clean.value("MB/s") == 2000 * 4096 / 1e6 and clean.value("lat_mean") == 800
    assert (clean.value("W"), after.value("W"), trim.value("W")) == (near(2), near(1), near(1))
    assert (clean.value("uJ/IO"), clean.value("iops/W")) == (near(1000), near(1000))
    assert clean.value("J/GB") == near(2 / (2000 * 4096 / 1e9))
    assert (clean.value("wa"), after.value("wa")) == (pytest.approx(1, rel=0.03), pytest.approx(3, rel=0.03))
    assert clean.value("C") == 45
    assert clean.t1_s - clean.t0_s == 4 and trim.t1_s - trim.t0_s == pytest.approx(0.25)
    assert clean.windows["all"]["energy_J"] == near(8)


def test_figures_of_a_window_are_those_of_window_figures(steps):
    late = steps.rows[1].windows["late"]
    assert (late["t0_s"], late["t1_s"], late["iops_mean"], late["power_mean_W"]) == (2, 4, 2000, near(2))
    assert steps.rows[1].value("iops", "late") == 2000
    assert steps.rows[0].data is not None and steps.rows[0].windows.keys() == {"all"}


def test_what_is_not_known_has_a_reason(steps, grid):
    for row in [*steps.rows, *grid.rows]:
        for word in shows.VALUES:
            assert row.value(word) is not None or row.why_not(word) != "not known", (row.act.label, word)
    trim = steps.rows[2]
    assert trim.value("iops") is None and trim.why_not("iops") == "trim does no I/O"
    assert steps.rows[3].why_not("W") == "0 s"
    assert steps.rows[1].why_not("host_cpu") == "fio's last document does not report it"


def test_a_repeat_has_a_row_for_each_round_and_point(grid):
    done = grid.of("rounds")
    assert len(done) == 20 and {r.round for r in done} == {1, 2, 3, 4, 5}
    row = next(r for r in done if r.act.label == "rounds/point read=0 block=4KiB" and r.round == 3)
    assert (row.value("iops"), row.value("W"), row.data) == (96, near(2), None)
    lacking = [r for r in grid.rows if r.state == "not run"]
    assert [r.act.label for r in lacking] == ["rounds/point read=100 block=512B", "rounds/point read=0 block=512B"]


def test_rounds_together(grid):
    """Rates and energies of all of it; a point's mean IOPS is that of its rounds."""
    rows = [r for r in grid.of("rounds/point") if r.act.point == {"read": 0, "block": "4 KiB"}]
    joined = table.together(rows)
    assert joined["iops_mean"] == pytest.approx((100 + 98 + 96 + 94 + 92) / 5)
    assert joined["energy_uJ_per_io"] == near(2e6 / 96) and joined["power_mean_W"] == near(2)
    assert table.together(rows[:1]) is rows[0].windows["all"] and table.together([]) == {}


def test_verdicts_are_the_journals_with_the_rounds_of_the_rows(tmp_path, grid):
    (one,) = grid.verdicts
    assert (one.words, one.values, one.verdict["passed"]) == ("iops read=0 block=4KiB", [100, 98, 96, 94, 92], True)
    assert grid.achieved is True
    other = table.load(synthetic_plan.grid(tmp_path, falling=0.1, rounds=6, power=False))
    assert other.achieved is False and len(other.verdicts[0].values) == 6
    few = table.load(synthetic_plan.grid(tmp_path, rounds=2, power=False, name="p-2"))
    assert few.verdicts[0].verdict["passed"] is None and few.achieved is False


def test_as_json_is_plain(steps, grid):
    for table_ in (steps, grid):
        document = json_documents.figures(json.loads(json.dumps(documents.of_table(table_), allow_nan=False)))
        assert document.keys() >= {"run", "plan", "rows", "steady"} and len(document["rows"]) == len(table_.rows)


def test_a_run_that_died_keeps_what_it_has(tmp_path):
    w = Writer(tmp_path, synthetic_plan.STEPS, "quick")
    w.load("fill", [1000, 1000], 3.0, block=131072)
    w.load("clean", [2000] * 3, 2.0, ended=False)
    table_ = table.load(w.end(state=None))
    assert [(r.act.path, r.state) for r in table_.rows] == [("fill", "done"), ("clean", "cut short")]
    assert table_.rows[1].value("iops") == 2000 and table_.data.state == "died"


def test_a_load_that_was_stopped_is_cut_short_and_did_not_fail(tmp_path):
    w = Writer(tmp_path, synthetic_plan.STEPS, "quick")
    w.load("clean", [2000] * 3, 2.0, ended=False)
    w.event("step.end", step="clean", ok=False, why="KeyboardInterrupt: ")
    table_ = table.load(w.end(state="interrupted", power=False))
    (row,) = table_.rows
    assert row.state == "cut short"
    assert any(line.startswith("  clean (cut short at 3.00 of 4.00 s)  3.00  ") for line in screen.of_plan(table_))
    assert "cut short at 3.00 of 4.00 s</span>" in page.steps(table_, "", False)


def test_without_a_rig_power_is_not_known_and_says_so(tmp_path):
    w = Writer(tmp_path, synthetic_plan.STEPS, "quick")
    w.load("clean", [2000] * 3, 2.0)
    table_ = table.load(w.end(power=False))
    row = table_.rows[0]
    assert row.value("W") is None and row.why_not("uJ/IO") == "the run has no power samples"


def test_a_plan_that_cannot_be_read_is_said(tmp_path):
    w = Writer(tmp_path, "schema = 99")
    with pytest.raises(JournalError, match="a plan in run.json"):
        table.load(w.end())
    w = Writer(tmp_path, synthetic_plan.STEPS, params={"time": "7 s"}, name="p-2")
    assert table.planned(json.loads((w.path / "run.json").read_text()))[0].params == {"time": "7 s"}


def test_a_window_of_a_point_has_power_too(tmp_path):
    text = synthetic_plan.GRID.replace('time = "2 s"', 'time = "4 s"\n  windows = { late = "last 2 s" }')
    w = Writer(tmp_path, text)
    w.load(
        "rounds/point",
        [900, 900, 300, 300],
        2.0,
        folder="rounds/point/r01/p05",
        round=1,
        point={"read": 0, "block": "4 KiB"},
    )
    row = table.load(w.end()).rows[0]
    assert (row.value("iops"), row.value("iops", "late"), row.value("W", "late")) == (600, 300, near(2))


PAUSES = """schema = 1
name = "demo"
title = "Bursts"
source = "a test"
about = "Bursts and pauses."
[workload.bursts]
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
on = "1 s"
cycles = 3
windows = { early = "10 s..15 s", half = "from 1 s", mid = "4 s..11 s" }
[[step]]
name = "one"
use = "bursts"
off = "2 s"
[[step]]
name = "wait"
do = "repeat"
over = [{ off = ["2 s", "60 s"] }]
  [[step.step]]
  name = "bursts"
  use = "bursts"
[[show]]
view = "series"
of = "one"
value = "iops"
"""


def test_figures_of_a_load_with_pauses_begin_behind_its_first_burst(tmp_path):
    """fio's first burst of 1 s takes the pause of 2 s, too (tests/data/fio-3.33-bursts)."""
    w = Writer(tmp_path, PAUSES)
    iops = [300, 300, 300, *[0, 0, 150] * 3, 0, 0]  # late for its end, it pauses once more
    w.load("one", iops, 2.0)
    for place, off in ((1, "2 s"), (2, "60 s")):
        w.load("wait/bursts", iops, 2.0, folder=f"wait/bursts/r01/p{place:02}", round=1, point={"off": off})
    table_ = table.load(w.end())
    one, swept, short = table_.rows
    assert load.longest_s(one.act) == 12 and load.longest_s(short.act) == 61 + 3 * 61
    for row in (one, swept):
        whole = row.windows["all"]
        assert (whole["t0_s"], whole["t1_s"], whole["ios"], whole["iops_mean"]) == (3, 12, 450, 50)
        assert whole["energy_J"] == near(18) and whole["energy_uJ_per_io"] == near(18e6 / 450)
        assert row.windows["half"]["t0_s"] == 3 and row.windows["half"]["iops_mean"] == 50
        assert (row.windows["mid"]["t0_s"], row.windows["mid"]["t1_s"]) == (6, 9)  # whole cycles
        assert (whole["cycles"], row.value("burst_iops")) == (3, 150) and row.value("pause_W") is None
        assert row.why_not("pause_W").startswith("pauses of 2 s")
        assert row.why_not("host_cpu").startswith("fio reports it for the first burst")
    assert table.together([one, swept])["iops_mean"] == 50
    assert short.windows["all"] is None and short.why_not("iops") == "the load ended 0 s after its first burst"
    words = page.render([table_])
    assert sentences(one) == ["figures from 3 s on, after fio's long first burst"] and sentences(swept) == []
    assert escape(sentences(one)[0]) in words
    assert words.count("all figures cover the seconds from 3 on") == 2 and "from 61 on" in words


@pytest.mark.parametrize(("sync", "is_noted"), [("none", False), ("flush", True)])
def test_latencies_of_commits_say_that_the_flush_is_not_in_them(tmp_path, sync, is_noted):
    """A commit of 5 ms whose write took 1 ms, by fio's latency."""
    w = Writer(tmp_path, synthetic_plan.STEPS.replace('name = "clean"', f'name = "clean"\nsync = "{sync}"'))
    w.load("clean", [200] * 3, 2.0, lat_ns=1_000_000)
    row = next(row for row in table.load(w.end()).rows if row.state == "done")
    assert row.value("iops") == 200 and row.value("lat_mean") == near(1000)
    assert (row_figures.WITHOUT_FLUSH in row.notes) is is_noted


def test_a_step_whose_logs_are_gone_says_so(tmp_path):
    folder = synthetic_plan.steps(tmp_path)
    shutil.rmtree(folder / "fio/clean")
    table_ = table.load(folder)
    row = table_.rows[1]
    assert (row.state, row.t0_s, row.windows) == ("done", None, {}) and any("clean" in note for note in row.notes)
    html = page.render([table_])
    assert "done: load: expected" in html and "not known" not in row.why_not("iops")


PICKED = HEAD + "".join(
    operating_points(
        qds="1, 4",
        time_s=2,
        rounds=1,
        points='{ at = "max" }, { at = "min", where = "lat_mean < 1 us" }',
        picked='"max", "min"',
        again_s=4,
    )
)
PICKED += '  windows = { late = "last 2 s" }\n'


def test_a_row_at_an_operating_point_has_what_was_picked(tmp_path):
    w = Writer(tmp_path, PICKED)
    for place, (qd, iops) in enumerate(((1, 1000), (4, 4000)), 1):
        folder = f"sweep/point/r01/p{place:02}"
        w.load("sweep/point", [iops] * 2, 1.0, lat_ns=1_000_000, folder=folder, round=1, point={"qd": qd})
    w.event("step.start", step="pick")
    rows = [{"at": "max", "point": {"qd": 4}, "value": 4000.0, "figures": {}, "why": None, "of": 2}]
    rows += [{"at": "min", "point": None, "value": None, "figures": None, "why": "no point has it", "of": 2}]
    w.event("choose", step="pick", value="iops", points=rows)
    w.event("step.end", step="pick", ok=True)
    more = {"round": 1, "point": {"at": "max"}, "chosen": {"qd": 4}}
    w.load("again/long", [4000] * 4, 1.0, lat_ns=1_000_000, folder="again/long/r01/p01", **more)
    w.not_run("again/long at=min", "no operating point min: no point has it")
    table_ = table.load(w.end())
    *_, pick, long, _ = table_.rows
    assert sentences(pick) == ["max: qd=4, iops 4 000 IOPS, of 2 points", "min: none, no point has it"]
    assert (long.act.label, long.act.keys["qd"]) == ("again/long at=max", 4)
    assert long.windows["late"]["littles_qd"] == near(4) and long.windows["late"]["littles_error_percent"] == near(0)
    assert "max: qd=4, iops 4 000 IOPS, of 2 points; min: none" in page.render([table_])
    assert "pick, max: qd=4, iops 4 000 IOPS" in screen.text([table_])


def test_a_rest_says_how_long_the_drive_worked_and_what_it_wrote_by_itself(tmp_path):
    head, fill = PICKED[: PICKED.index("[[step]]")], '[[step]]\nname = "fill"\ndo = "fill"\n'
    w = Writer(tmp_path, head + fill + '[[step]]\nname = "rest"\ndo = "idle"\nuntil = "quiet"\nmost = "5 min"\n')
    w.load("fill", [1000, 1000], 3.0)
    w.poll("idle", 2**30, 2**30)
    w.event("step.start", step="rest")
    for watts, seconds in ((1.15, 40), (0.5, 90)):
        w._power(watts)
        w.t_ns += seconds * 1_000_000_000
    w.event("step.end", step="rest", ok=True)
    w.poll("idle", 2**30, 2**30 + 500 * 10**6)
    event = {"reached": True, "floor_W": 0.5, "after_s": 41, "lasted_s": 130, "energy_J": 93.5, "above_J": 28.5}
    written = {"nand_written_bytes": 500 * 10**6, "host_written_bytes": 0, "nand_why": None}
    w.event("quiet", step="rest", **event, band_W=0.01, why=None, **written)
    table_ = table.load(w.end())
    rest = table_.rows[-1]
    assert (
        sentences(rest)[0] == "quiet after 40 s at 0.5000 ± 0.0058 W; 26.00 ± 0.30 J above that"
        and "500 MB written" in sentences(rest)[1]
    )
    assert rest.result["J_per_GB"] is None  # no rest of the run without NAND writes says what staying awake takes
    assert rest.windows["all"]["energy_J"] == near(91) and documents.of_row(rest)["found"]["after_s"] == 40
    assert rest.value("floor_W") == 0.5 and rest.value("W") == near(0.7)
    assert table_.rows[0].value("floor_W") is None and "until the drive was quiet" in table_.rows[0].why_not("floor_W")
    assert "rest, quiet after 40 s" in screen.text([table_]) and "quiet after 40 s" in page.render([table_])
    rest.result |= {"reached": False, "why": "it worked on", "nand_written_bytes": None, "nand_why": "no count"}
    assert sentences(rest) == ["NOT QUIET within 130 s: it worked on", "NAND bytes not known: no count"]


def test_the_percentiles_of_rounds_are_of_all_their_ios():
    """Two rounds of 600 I/Os each: too few for a P99 of one, enough for the P99 of both."""
    rows = [Row(None, number, "done", windows={"all": dict.fromkeys(KEYS)}) for number in (1, 2)]
    for row, slow in zip(rows, (0, 60), strict=True):
        row.windows["all"] |= {"t0_s": 0.0, "t1_s": 1.0, "lat_max_us": None}
        row.lat = np.array([[0, 500, 600 - slow], [0, 900, slow + 1]])
    joined = table.together(rows)
    assert joined["lat_p50_us"] == plat_ns(500) / 1000 and joined["lat_p99_us"] == plat_ns(900) / 1000
    assert joined["lat_max_us"] == plat_upper_ns(900) / 1000 and joined["lat_p999_us"] is None
    assert joined["notes"] == [
        "lat_p999_us: 1202 I/Os are too few for this percentile, which needs 10000",
        "lat_p9999_us: 1202 I/Os are too few for this percentile, which needs 100000",
        "lat_p99999_us: 1202 I/Os are too few for this percentile, which needs 1000000",
    ]


def test_what_several_rounds_cannot_say_together_is_not_their_mean():
    """Percentiles of windows, of which nobody kept the histograms; the highest temperature is the highest; energy per
    I/O is of the rounds that have power, energy of all of them only."""
    rows = [Row(None, number, "done", windows={"late": dict.fromkeys(KEYS)}) for number in (1, 2)]
    for row, more in zip(rows, ({"lat_p99_us": 100.0, "lat_max_us": 200.0}, {"lat_p99_us": 500.0}), strict=True):
        same = {"t0_s": 5.0, "t1_s": 10.0, "ios": 1000, "lat_mean_us": 50.0, "bw_mean_MBps": 1.0, "lat_max_us": 900.0}
        row.windows["late"] |= same | more | {"temperature_max_C": 40.0 + row.round}
    rows[1].windows["late"] |= {"energy_J": 10.0, "power_mean_W": 2.0, "energy_uJ_per_io": 1e4}
    joined = table.together(rows, "late")
    assert (joined["lat_p99_us"], joined["lat_max_us"], joined["temperature_max_C"]) == (None, 900.0, 42.0)
    assert (joined["energy_J"], joined["power_mean_W"], joined["energy_uJ_per_io"]) == (None, 2.0, near(1e4))
    assert joined["notes"] == [
        "energy_J: 1 of 2 rounds has power samples throughout",
        "lat_p50_us, lat_p99_us, lat_p999_us, lat_p9999_us, lat_p99999_us: a percentile of several windows is not the"
        " mean of theirs",
    ]


@pytest.mark.parametrize("value", [None, 0, "absent"])
def test_a_plan_on_a_drive_without_a_capacity_is_one_error(tmp_path, value):
    folder = synthetic_plan.steps(tmp_path)
    header = json.loads((folder / "run.json").read_text())
    header["drive"]["capacity_bytes"] = value
    if value == "absent":
        del header["drive"]["capacity_bytes"]
    (folder / "run.json").write_text(json.dumps(header))
    with pytest.raises(JournalError, match="whose capacity is known"):
        table.load(folder)


def test_a_played_trace_without_its_record_has_a_reason(tmp_path):
    row = SimpleNamespace(notes=[], result=None)
    row_figures._played(row, tmp_path, 1)
    assert len(row.notes) == 1 and row.notes[0].startswith("played: expected ") and row.result is None
