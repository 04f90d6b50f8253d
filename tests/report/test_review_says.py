"""What the page of a review says of SLC cache and trace benches "in short", of rows as the analysis leaves them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ssdrig.plan import reviews
from ssdrig.reading.review_folder import Done
from ssdrig.reading.row import Row
from ssdrig.report import review_page, review_says


def row(path, result, **figures):
    act = SimpleNamespace(path=path, label=path)
    return Row(act, None, "done", windows={"all": figures}, result=result)


def table(name, rows, shows=()):
    return SimpleNamespace(plan=SimpleNamespace(name=name, shows=list(shows)), rows=rows)


def filled(cache_bytes, speeds, why=None, **more):
    plateaus = [{"bw_mean_MBps": speed} for speed in speeds]
    sizes = {"cache_bytes": cache_bytes, "cache_error_bytes": 0.0 if cache_bytes == 0 else None}
    return {"kind": "plateaus", **sizes, "cache_why": why, "plateaus": plateaus, **more}


CACHE = table("slc-cache", [row("empty", filled(15.3e9, [2651, 605])), row("full", filled(3.42e9, [2600, 583]))])


def test_the_cache_in_short():
    assert review_says.slc_cache([CACHE]) == (
        "On the empty drive the cache takes 15.3 GB at 2\u202f651 MB/s, then the drive writes 605 MB/s; on the full"
        " drive the cache takes 3.42 GB at 2\u202f600 MB/s, then the drive writes 583 MB/s."
    )
    why = "host-limited: all CPUs of the host were 98 % busy"
    starved = table("slc-cache", [row("empty", filled(None, [], why, host_limited=why))])
    assert review_says.slc_cache([starved]) == f"On the empty drive no end of a cache was found, {why}."
    assert review_says.slc_cache([table("burst", [row("reads", {})])]) == ""


def test_how_the_cache_comes_back_in_short():
    empty = [(0.1 * n, 0.0, 0.125 * n) for n in range(1, 5)]  # s of rest, bytes back, J
    parts = [(0.5 + 0.25 * n, 0.25e9 * n, 0.75 * (n + 1)) for n in range(2, 9)]
    rests = [*empty, *parts, (5.0, 4e9, 9.0)]
    rows = [row("again", filled(b or None, [2600, 600] if b else [600], rest_s=s, rest_late_J=j)) for s, b, j in rests]
    again = table("slc-recovery", rows, [{"view": "cache-recovery", "of": "again"}])
    sentence = review_says.slc_cache([CACHE, again])
    assert "writes 583 MB/s; 1\u202f000 MB/s of it come back" in sentence and "from 0.500 s of rest on." in sentence
    few = table("slc-recovery", rows[-1:], again.plan.shows)
    assert "How fast it comes back is not known: 0 rests brought back a part" in review_says.slc_cache([few])


def test_the_traces_in_short():
    played = {"kind": "played", "data_rate_MBps": 251.0, "all": {"mean_us": 90.4, "p99_us": 1203.0}, "lag": None}
    late = played | {"lag": {"as_recorded": False}, "all": None, "data_rate_MBps": None}
    bench = table("bench-light-like", [row("empty", played, energy_J_per_GB=3.21), row("full", late)])
    assert review_says.traces([bench]) == (
        "bench-light-like, empty: 251 MB/s while busy, mean service time 90.4 µs, P99 1.20 ms, 3.21 J/GB;"
        " bench-light-like, full: NOT PLAYED AT THE TRACE'S TIMES."
    )
    assert review_says.traces([CACHE]) == ""


def test_the_page_says_it_where_the_section_is():
    tables = {"slc-cache": CACHE}
    for table_ in tables.values():
        table_.verdicts, table_.trust = [], []
        table_.data = SimpleNamespace(snapshots=[])
    review = SimpleNamespace(document={"rated_bytes": None})
    short = review_page.in_short(review, tables, [])
    assert ">SLC cache</a>: On the empty drive the cache takes 15.3 GB" in short and "Trace benches" not in short
    assert set(review_page.SAYS) <= {section.title for section in reviews.sections()}


def test_a_review_that_is_not_complete_says_so_at_its_top():
    """Of the level: what it leaves out on purpose is not lacking. Seen of a review that ended at its seventh plan."""
    plans = [SimpleNamespace(name=name, why=why) for name, why in (("a", None), ("b", None), ("c", None), ("d", "no"))]
    done = {
        "a": Done(Path("a"), "complete"),
        "b": Done(Path("b"), "failed", "no board"),
        "c": Done(None),
        "d": Done(None),
    }
    review = SimpleNamespace(plans=plans)
    assert "<b>NOT COMPLETE</b>: b (failed), c (not run).</p>" in review_page.lacking(review, done)
    assert review_page.lacking(SimpleNamespace(plans=[plans[0], plans[3]]), done) == ""


def test_a_lone_card_takes_the_place_of_a_figure():
    figure, card = '<figure class="">a</figure>', '<div class="cards"><div class="card">c</div></div>'
    assert review_page._split(3 * figure + card + 2 * figure, 1) == (3 * figure + card, 2 * figure)
    three = '<div class="cards">' + 3 * '<div class="card">c</div>' + "</div>"
    assert review_page._split(4 * figure + three + figure, 1) == (4 * figure + three, figure)


@pytest.mark.parametrize(("rated_bytes", "rest"), [(5e12, "2.00 TB are left"), (1e12, "2.00 TB more than all")])
def test_a_drive_that_is_written_past_its_rating_has_nothing_left_of_it(rated_bytes, rest):
    readings = [
        {"t_start_ns": n, "host_written_bytes": written, "nand_written_bytes": None, "percentage_used": None}
        for n, written in enumerate((2.9e12, 3e12))
    ]
    run = SimpleNamespace(data=SimpleNamespace(snapshots=readings))
    assert rest in review_says.endurance([run], rated_bytes, "its rating")[1]
