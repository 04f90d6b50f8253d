"""What the gap before a load may add to its IOPS: by synthetic rounds, and on page, screen and in JSON."""

import json

import pytest
from synthetic_plan import GAP_NS, Writer

from ssdrig.reading import gaps, table
from ssdrig.report import page, review_says, screen
from ssdrig.views import documents

PLAN = """schema = 1
name = "demo"
title = "Points"
source = "a test"
about = "Points in rounds."
[[step]]
name = "fill"
do = "fill"
[[step]]
name = "rounds"
do = "repeat"
times = 2
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  over = [{ read = [100, 70, 0] }]
  block = "4 KiB"
  qd = 4
  time = "2 s"
[[step]]
name = "paced"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
rate = "100 IOPS"
time = "2 s"
[[step]]
name = "long"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
time = "1 min"
"""
SECONDS = {70: 4, 0: 2}  # of a point, and of a read
GAP_S = 3 * GAP_NS / 1e9  # of two loads of the writer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    w = Writer(tmp_path_factory.mktemp("gaps"), PLAN)
    w.load("fill", [100] * 4, 2.0)
    for round_ in (1, 2):
        for number, read in enumerate((100, 70, 0), 1):
            folder = f"rounds/point/r{round_:02}/p{number:02}"
            more = {"round": round_, "point": {"read": read}}
            w.load("rounds/point", [1000] * SECONDS.get(read, 2), 2.0, folder=folder, **more)
    w.load("paced", [100] * 2, 2.0)
    w.load("long", [100] * 60, 2.0)
    return table.load(w.end())


def test_points_that_write_are_named_with_what_their_gaps_may_add(run):
    (gap,) = gaps.of_rows(run.rows)
    assert (gap.of, gap.points, gap.beyond) == ("rounds/point", 2, 2)
    assert gap.least_s == pytest.approx(GAP_S) and gap.most_s == pytest.approx(GAP_S)
    assert gap.more_percent == pytest.approx(100 * GAP_S / 2)
    assert json.loads(json.dumps(documents.of_table(run)))["gaps"] == [gap._asdict()]


def test_the_errors_of_the_rates_hold_what_the_gaps_may_have_added(run):
    for row in run.rows:
        figures = row.windows["all"]
        lasted_s = figures["t1_s"] - figures["t0_s"]
        for key in ("iops_mean", "bw_mean_MBps"):
            if row.act.label in ("fill", "paced") or row.act.point.get("read") == 100 or len(row.lat) == 0:
                continue
            if key in figures["errors"]:
                assert figures["errors"][key] >= figures[key] * GAP_S / lasted_s * 0.999


def test_a_gap_longer_than_its_load_bounds_nothing(tmp_path):
    """Seen: 'at most by: commit 768 %', of loads of 42 ms."""
    w = Writer(tmp_path, PLAN)
    w.load("fill", [100] * 4, 2.0)
    w.load("long", [1000] * 4, 2.0)
    made = table.load(w.end())
    (row,) = [row for row in made.rows if row.act.label == "long"]
    row.windows["all"]["gap_s"] = 30.0
    (gap,) = gaps.of_rows(made.rows)
    assert gap.more_percent is None and gap.why and gap.least_s == 30.0
    gaps.widen(made.rows)
    assert not {"iops_mean", "bw_mean_MBps"} & set(row.windows["all"]["errors"])


def test_page_screen_and_review_say_so(run):
    (words,) = gaps.words(run.rows)
    assert "by at most: rounds/point 15 % (gaps of 0.3 s)" in words
    assert gaps.words([row for row in run.rows if row.act.label == "long"]) == []
    assert words in page.render([run]) and words in "\n".join(screen.of_plan(run))
    assert words in review_says.of_plan(run)
    assert gaps.WHY in page.render([run]) and gaps.WHY in "\n".join(screen.of_plan(run))
