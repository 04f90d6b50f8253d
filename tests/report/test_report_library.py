"""Members of a library: how each is drawn."""

import re
from types import SimpleNamespace

import pytest
from synthetic_plan import DRIVE, Writer
from test_replay import played_twice

from ssdrig.base.errors import JournalError
from ssdrig.base.uncertain import Uncertain
from ssdrig.plan import grammar, reviews
from ssdrig.reading import errors, library_file, table
from ssdrig.report import library, review_page, scorecard
from ssdrig.report.library import Facts, Member
from ssdrig.views.context import Cell

OWN = Facts("review-x")


def drives(*of):
    return [Member(Facts("elsewhere") if i > 1 else OWN, drive, op, "", {}, i < 2) for i, (drive, op) in enumerate(of)]


def test_drives_differ_in_colour_and_over_provisionings_in_fill_and_dash():
    ops = ("default OP", "25 % OP")
    members = drives(*((f"drive {n}", op) for n in range(6) for op in ops))
    looks = [library.look_of(members, i) for i in range(len(members))]
    colours = [library.colour_of(members, i) for i in range(len(members))]
    assert colours[::2] == colours[1::2] and len(set(colours)) == 6 and colours[0] == "--review"
    assert [look["hollow"] for look in looks] == [False, True] * 6
    assert len({look["glyph"] for look in looks}) == 12 and len({look["dash"] for look in looks}) == 2
    assert len({look["shape"] for look in looks}) == 6


def test_a_third_over_provisioning_has_its_own_marks_and_dash():
    ops = ("default OP", "7 % OP", "25 % OP", "50 % OP")
    members = [Member(OWN, f"drive {n}", op, "", {}, n == 0) for n in range(6) for op in ops]
    looks = [library.look_of(members, i) for i in range(len(members))]
    colours = [library.colour_of(members, i) for i in range(len(members))]
    marks = list(zip(colours, (look["shape"] for look in looks), (look["hollow"] for look in looks), strict=True))
    assert len(set(marks)) == 24 and len(set(colours)) == 6
    of_drive = [looks[i : i + 4] for i in range(0, 24, 4)]
    assert all(len({look["glyph"] for look in of}) == len({look["dash"] for look in of}) == 4 for of in of_drive)


@pytest.mark.usefixtures("short_loads_have_errors")
def test_a_figure_with_an_error_as_large_as_itself_is_not_ranked(tmp_path):
    """Seen: 23 734 ± 162 033 IOPS, of the two seconds that a quick load takes."""
    member = Member(OWN, "one", "default OP", "", {"four-states": four_states(tmp_path, [1000, 5000])}, True)
    figure = next(of for part in reviews.sections() for of in part.figures if of.of == "rested")
    ((value, why),) = [(entry.value, entry.apart) for entry in library.compared(figure, "iops", [member]).entries]
    assert value.error > value.value and why.startswith("its error is as large: ")
    good = Member(OWN, "one", "default OP", "", {"four-states": four_states(tmp_path, [1000, 1001])}, True)
    assert library.compared(figure, "iops", [good]).entries[0].apart is None


def four_states(runs, counts):
    """four-states, quick, with `counts` I/Os in each second of its loads."""
    text, where = grammar.find("four-states")
    params = grammar.read(text, where, "quick").params
    plan = {"name": "four-states", "variant": "quick", "scaled": True, "text": text, "acts": [], "params": params}
    made = Writer(runs, text, "quick", name=f"four-states-{counts[1]}", more={"plan": plan})
    for path in ("fresh", "used", "rested", "trimmed"):
        made.load(path, counts, 2.0)
    return table.load(made.end())


@pytest.mark.parametrize(
    ("drive", "shown"),
    [
        ({"link": "PCIe 4.0 x4", "interface": "NVMe"}, ["desktop", "mobile"]),
        ({"link": "", "interface": "NVMe"}, ["desktop", "mobile"]),
        ({"link": "SATA 6.0 Gb/s", "interface": "SATA"}, ["desktop-sata", "mobile-sata"]),
        ({"interface": "nbd"}, ["desktop", "mobile", "desktop-sata", "mobile-sata"]),
        ({}, ["desktop", "mobile", "desktop-sata", "mobile-sata"]),
    ],
)
def test_a_figure_of_another_link_is_not_complained_of(tmp_path, drive, shown):
    text, where = grammar.find("idle-power")
    params = grammar.read(text, where, "quick").params
    plan = {"name": "idle-power", "variant": "quick", "scaled": True, "text": text, "acts": [], "params": params}
    made = Writer(tmp_path, text, "quick", more={"plan": plan, "drive": DRIVE | {"link": None} | drive})
    for path in ("desktop", "mobile", "desktop-sata", "mobile-sata"):
        made.not_run(path, "needs what this bench has not")
    members = [Member(OWN, "one", "default OP", "", {"idle-power": table.load(made.end())}, True)]
    part = next(part for part in reviews.sections() if part.title == "Power")
    figures = [of for of in part.figures if of.plan == "idle-power"]
    assert [of.of for of in figures if library.compared(of, "floor_W", members)] == shown


@pytest.mark.parametrize(
    ("plan", "params", "percent", "op"),
    [
        ("consistency", {"range": "100 %"}, None, "default OP"),
        ("consistency", {"range": "raw 75 %"}, 25.0, "25 % OP"),
        ("consistency", {"range": "80 %"}, 30.1, "30.1 % OP"),
        ("idle-wake", {"range": "64 MiB"}, 94.5, "default OP"),
        ("burst", {"range": "25 %"}, 30.1, "default OP"),
        ("jesd219-client", {"range": "raw 75 %"}, 25.0, "25 % OP"),
        ("slc-cache", {}, None, "default OP"),
    ],
)
def test_a_range_that_a_plan_needs_is_no_over_provisioning(plan, params, percent, op):
    """Seen: idle-wake and burst made columns of 94.5 % and 30.1 % OP in the scorecard of a review."""
    header = {"method": {"op_percent": percent, "tested_bytes": None}, "drive": {"capacity_bytes": 1 << 30}}
    run = SimpleNamespace(plan=SimpleNamespace(name=plan, params=params), data=SimpleNamespace(header=header))
    assert library.op_of(run) == op


def test_the_same_drive_from_another_review_counts_as_another_drive():
    members = drives(("A", "default OP"), ("A", "25 % OP"), ("A", "default OP"), ("A", "default OP"))
    keys = {(library.colour_of(members, i), library.look_of(members, i)["glyph"]) for i in range(4)}
    assert len(keys) == 4


def cached(runs, name, fast_s):
    """slc-cache, quick: the empty drive written at 1000 MiB/s for some seconds, then at 250 MiB/s."""
    text, where = grammar.find("slc-cache")
    plan = {"name": "slc-cache", "variant": "quick", "scaled": True, "text": text, "acts": []}
    plan["params"] = grammar.read(text, where, "quick").params
    made = Writer(runs, text, "quick", name=name, more={"plan": plan})
    counts = [1000] * fast_s + [250] * (10 - fast_s)
    made.load("empty", counts, 2.0, block=1 << 20)
    begin_ns = made.t_ns - 2 * 100_000_000 - 10 * 1_000_000_000
    rows = [f"{begin_ns // 1_000_000 + 100 * (i + 1)}, {1024 * counts[i // 10]}, 1, 0, 0\n" for i in range(100)]
    (made.path / "fio/empty/empty_bw.1.log").write_text("".join(rows))
    return table.load(made.end())


def test_facts_of_views_have_cards_and_lines_of_all_drives(tmp_path):
    members = [
        Member(OWN, "one", "default OP", "", {"slc-cache": cached(tmp_path, "one", 4)}, True),
        Member(Facts("x"), "two", "default OP", "", {"slc-cache": cached(tmp_path, "two", 6)}),
    ]
    part = next(part for part in reviews.sections() if part.title == "SLC cache")
    keys = re.findall(r'data-key="([^"]*)"', library.cards(part, members))
    assert keys == [f"slc-cache-{word}" for word in ("cache", "fast", "slow", "MB/s", "last", "J/GB")]
    cache, fast, slow = (library.compared(part.figures[0], word, members) for word in ("cache", "fast", "slow"))
    assert (cache.unit, cache.better, fast.unit) == ("GB", "more", "MB/s")
    sizes = [entry.value.value for entry in cache.entries]
    assert sizes == pytest.approx([4 * 1.048576, 6 * 1.048576], rel=0.05)
    assert [entry.value.value for entry in slow.entries] == pytest.approx([262.144] * 2, rel=0.05)
    (_, line), *_ = scorecard.lines(members)
    assert line == cache and scorecard.place(*line.entries[:1], line.entries[1:], "more", 2) == (2, 2, 2)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [(114.32, 2.84, "114.3 ± 2.8"), (0.30712, 0.0084, "0.3071 ± 0.0084"), (241.3, None, "241")],
)
def test_a_bar_has_as_many_places_as_its_error(value, error, words):
    members = [Member(OWN, "one", "default OP", "", {}, True)]
    card = library.bars("k", "Speed", "MB/s", "more", [library.Entry(0, Uncertain(value, error))], members)
    shown = re.search(r'class="value">([^<]*)(?:<small class="error">([^<]*))?', card)
    assert shown[1] + (shown[2] or "") == words
    assert Cell(value, error).html() == f"<td>{words}</td>"


@pytest.mark.parametrize("end", [5, {"bytes": 1e9}, {"bw_mean_MBps": 1.0, "bw_error_MBps": {}}])
def test_a_result_that_no_card_can_show_is_refused_at_import_and_hides_no_other(tmp_path, end):
    """Such a file in the library stopped every review before its page."""
    own, theirs = cached(tmp_path, "one", 4), cached(tmp_path, "two", 6)
    next(row for row in theirs.rows if row.result).result["last"] = end
    path = tmp_path / "a.ssdlib"
    (read,) = library_file.checked(library_file.packed([theirs], 1), path).tables
    with pytest.raises(JournalError, match="slc-cache"):
        review_page.check_drawable(path, [read])
    imported = Member(Facts(path.name, imported=True), "two", "default OP", "", {"slc-cache": read})
    members = [Member(OWN, "one", "default OP", "", {"slc-cache": own}, True), imported]
    part = next(part for part in reviews.sections() if part.title == "SLC cache")
    figure = next(figure for figure in part.figures if "last" in figure.value)
    assert [entry.member for entry in library.compared(figure, "last", members).entries] == [0]
    assert [entry.member for entry in library.compared(part.figures[1], "MB/s", members).entries] == [0, 1]


@pytest.mark.usefixtures("short_loads_have_errors")
def test_a_trace_bench_has_cards_of_its_data_rate_service_times_and_energy(tmp_path):
    run = played_twice(tmp_path)
    members = [Member(OWN, "one", "default OP", "", {run.plan.name: run}, True)]
    part = next(part for part in reviews.sections() if part.title == "Trace benches")
    row = next(row for row in run.rows if row.act.path == "full")
    rate, mean, joules, p99, power = (
        library.compared(part.figures[0], word, members) for word in part.figures[0].value
    )
    assert rate.entries[0].value.value == row.result["data_rate_MBps"] and (rate.unit, rate.better) == ("MB/s", "more")
    assert mean.entries[0].value.value == pytest.approx(row.result["all"]["mean_us"]) and mean.better == "less"
    assert mean.entries[0].value.error == errors.of("lat_mean_us", row.windows["all"]).error > 0
    assert p99.entries[0].value.value == pytest.approx(row.result["all"]["p99_us"]) and p99.unit == "µs"
    assert joules.entries[0].value.value == pytest.approx(row.value("J/GB")) and joules.unit == "J/GB"
    assert power.entries[0].value.value == pytest.approx(2.5, rel=0.01) and power.entries[0].value.error
