"""The report of plans other than consistency: a page of views, in the words of the plan that ran."""

import dataclasses
import html
import json
import math
import re

import browser
import numpy as np
import page_reader
import pytest
import synthetic_plan
from test_report import run_command

from ssdrig import report
from ssdrig.base.errors import UsageError
from ssdrig.plan import formula, shows
from ssdrig.plan.rules import steady
from ssdrig.reading import table
from ssdrig.reading.row import KEYS, Verdict
from ssdrig.report import page
from ssdrig.views import context, svg, trust_strip
from ssdrig.views.points import html as points_html


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp("plans")
    return {
        "steps": synthetic_plan.steps(base, name="steps"),
        "grid": synthetic_plan.grid(base, falling=0.02, name="grid"),
        "falling": synthetic_plan.grid(base, falling=0.1, rounds=6, name="falling"),
    }


@pytest.fixture(scope="module")
def tables(folders):
    return {name: table.load(folder) for name, folder in folders.items()}


@pytest.fixture(scope="module")
def pages(tables):
    return {name: page.render([table_]) for name, table_ in tables.items()}


def words(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.S)))


def view(tables, run, **show) -> str:
    return page.html_of(show["view"])(context.Context([tables[run]], [run], show))


def cells(page: str) -> list[list[str]]:
    return [
        [html.unescape(re.sub(r"<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", page)
    ]


def test_every_view_of_the_grammar_has_a_drawing():
    assert all(page.html_of(name) for name in shows.views())


@pytest.mark.slow
def test_titles_and_texts_are_those_of_the_plan(pages):
    text = words(pages["steps"])
    assert "Three writes" in text and "Writes, trims and writes again." in text and "plan demo, variant quick" in text
    assert "SIMULATED" in text and "SCALED" in text and "rest not run: 0 s" in re.sub(r" +", " ", text)
    assert "SCALED" not in words(pages["grid"]) and "SIMULATED" in words(pages["grid"])


def test_steady_state_not_achieved_is_said_at_the_top_and_at_each_view(pages):
    assert "STEADY STATE NOT ACHIEVED" not in pages["grid"] and "STEADY STATE NOT ACHIEVED" not in pages["steps"]
    text = pages["falling"]
    assert "<b>STEADY STATE NOT ACHIEVED</b> by rounds, iops read=0 block=4KiB (range 57.1 %" in text
    assert "Steady state reached by rounds, iops read=0 block=4KiB (range 8.3 %, at most 20;" in pages["grid"]
    assert text.count("STEADY STATE NOT ACHIEVED") >= 7


def test_a_matrix_has_the_mean_of_the_rounds_that_count(tables):
    grid = view(tables, "falling", view="matrix", of="rounds/point", rows="block", columns="read", value="iops")
    assert cells(grid) == [
        ["block size ↓ read share →", "100 %", "0 %"],
        ["64 KiB", "3\u202f000 ✕", "210 ✕"],  # rounds 2 to 6 of 300, 270, ..., which are not steady
        ["4 KiB", "1\u202f000 ✕", "70.0 ✕"],
        ["512 B", "–", "–"],
    ]
    assert trust_strip.MARKED in grid and "steady: the rounds vary" in grid
    assert "Rounds 2 to 6 together." in grid and "5 rounds, 50.0 to 90.0" in grid
    assert "–: not run: this drive has blocks of 4096 bytes." in grid


def test_a_matrix_without_values_has_all_four_questions(tables):
    made = view(tables, "grid", view="matrix", of="rounds/point", rows="block", columns="read")
    titles = re.findall(r"<figcaption><b>(.*?) by block size", made)
    assert titles == ["Mean IOPS", "Throughput", "Mean power", "Energy per I/O", "IOPS per watt"]


def test_a_title_says_which_value_and_which_step(tables):
    show = {"rows": "block", "columns": "read", "value": ["iops", "W"], "title": "Grid"}
    made = view(tables, "grid", view="matrix", of="rounds/point", **show)
    assert re.findall(r"<figcaption><b>(.*?)</b>", made) == ["Grid, Mean IOPS", "Grid, Mean power, W"]
    made = view(tables, "grid", view="lines", of=["rounds/point", "rounds/point"], x="block", by="read")
    assert re.findall(r"<figcaption><b>(.*?)</b>", made) == ["Mean IOPS by block size, rounds/point"] * 2


def test_colour_follows_the_figure(tables):
    made = view(tables, "grid", view="heat", of="rounds/point", rows="block", columns="read", value="iops")
    parts = [int(part) for part in re.findall(r"var\(--blue\) (\d+)%", made)]
    assert len(parts) == 4 and sorted(parts, reverse=True)[0] == parts[0] == 52 and min(parts) == parts[3] == 0


def test_the_plan_may_say_where_colours_end(tables):
    show = {"view": "heat", "of": "rounds/point", "rows": "block", "columns": "read", "value": "W", "top": 4}
    parts = [int(part) for part in re.findall(r"var\(--blue\) (\d+)%", view(tables, "grid", **show))]
    assert parts == [13, 26, 13, 26]  # 1 W and 2 W of 4


def test_rounds_and_lines_have_each_point(tables):
    made = view(tables, "grid", view="rounds", of="rounds/point", where="read=0", value="iops", by="block")
    assert len(re.findall("<title>round", made)) == 10 and "round 5, block size 4 KiB: 92.0 IOPS" in made
    made = view(tables, "grid", view="lines", of="rounds/point", x="block", by="read", value="iops", scale="log")
    assert "read share 100 %, 64 KiB: 3\u202f000 IOPS" in made and len(re.findall("<title>", made)) == 4


def test_the_steady_view_has_the_rule_in_numbers(tables):
    made = words(view(tables, "grid", view="steady", of="rounds"))
    for part in ("110 %", "90 %", "Average 96.0 IOPS", "Data excursion 8.3 %", "Slope excursion 8.3 %"):
        assert part in re.sub(r"\s+", " ", made), part
    assert "102 − 2.00 × n" in made and "r = −1.000" in made
    before = tables["grid"].verdicts[0]
    later = dataclasses.replace(before, first=3)  # in a run that was resumed
    tables["grid"].verdicts[0] = later
    made = view(tables, "grid", view="steady", of="rounds")
    tables["grid"].verdicts[0] = before
    assert re.findall("<title>round ([0-9]+)", made) == ["3", "4", "5", "6", "7"] and ">7</text>" in made
    few = Verdict("rounds", "iops", steady.untested("the rule needs 5 rounds"), [1.0], "until")
    lacking = context.Context([tables["grid"]], ["x"], {"view": "steady", "of": "rounds"})
    lacking.tables[0].verdicts.append(few)
    assert "STEADY STATE NOT KNOWN: the rule needs 5 rounds." in page.html_of("steady")(lacking)
    lacking.tables[0].verdicts.pop()


def test_the_words_of_the_steady_view_stand_apart(tables):
    """A fresh drive's first rounds are so high that 110 % and 90 % are 2 pixels from the average."""
    table_ = tables["grid"]
    verdict = table_.verdicts[0]
    for before in ([10_000.0], [], [-10_000.0]):
        table_.verdicts[0] = dataclasses.replace(verdict, values=[*before, *verdict.verdict["rounds"]])
        made = view(tables, "grid", view="steady", of="rounds")
        marks = [re.search(f'y="([0-9.]+)" class="[^"]*">{words}<', made) for words in ("110 %", "average", "90 %")]
        top, middle, bottom = (float(mark[1]) for mark in marks)
        assert 20 <= top and top + 12 <= middle and middle + 12 <= bottom <= 258
    table_.verdicts[0] = verdict


def test_a_round_that_was_cut_short_is_left_out(tables):
    whole = tables["falling"]
    rows = [row for row in whole.rows if row.round != 6 or row.act.point["read"] == 100]
    cut = dataclasses.replace(whole, rows=rows)
    assert context.last_rounds(cut, "rounds/point") == [1, 2, 3, 4, 5]
    first = dataclasses.replace(whole, rows=[row for row in rows if row.round == 1][:2])
    assert context.last_rounds(first, "rounds/point") == [1]


def test_a_repeat_has_a_bar_for_each_point_and_nothing_by_the_second(tables):
    made = view(tables, "grid", view="bars", of="rounds/point", where="read=0", value="iops")
    assert re.findall(r"<span>(rounds/point[^<]*)<", made) == [
        "rounds/point, read share 0 %, block size 64 KiB",
        "rounds/point, read share 0 %, block size 4 KiB",
    ]
    for name in ("series", "scatter"):
        made = view(tables, "grid", view=name, of="rounds/point", value="iops")
        assert "points of a repeat are kept as a whole" in made and "<svg" not in made


def test_bars_are_on_one_scale(tables):
    made = view(tables, "steps", view="bars", of=["clean", "trim", "after"], value=["MB/s", "wa"])
    assert re.findall(r"width:([\d.]+)%", made)[:3] == ["100.00", "0.00", "50.00"]
    assert "trim does no I/O" in made


@pytest.mark.usefixtures("short_loads_have_errors")
def test_a_figure_is_the_formula_of_the_plan(folders):
    tables = {"steps": table.load(folders["steps"])}
    show = {
        "view": "figure",
        "name": "recovery",
        "title": "Recovery",
        "formula": "after.MB/s / clean.MB/s",
        "unit": "%",
    }
    assert "50.0 ± 4.0 <span" in view(tables, "steps", **show)
    assert "trim.MB/s is unknown" in view(tables, "steps", **show | {"formula": "trim.MB/s / clean.MB/s"})
    assert formula.evaluate(formula.parse("1 + 1"), lambda *_: None).value == 2


def test_a_plotted_figure_is_known_by_a_word(tables, monkeypatch):
    """Whatever figure of a step the analysis has, one row in plan/formula.py makes it a value of every view."""
    assert "ios" in KEYS and "ios" not in [key for key, _ in formula.VALUES.values()]
    monkeypatch.setitem(formula.VALUES, "completed", ("ios", "I/Os"))
    for show in (
        {"view": "bars", "of": ["clean", "after"]},
        {"view": "matrix", "of": "rounds/point", "rows": "block", "columns": "read"},
        {"view": "heat", "of": "rounds/point", "rows": "block", "columns": "read"},
        {"view": "lines", "of": "rounds/point", "x": "block", "by": "read"},
        {"view": "rounds", "of": "rounds/point", "by": "block"},
    ):
        made = words(view(tables, "steps" if show["view"] == "bars" else "grid", value="completed", **show))
        assert context.label("completed") in made and "I/Os" in made and "not known" not in made, show


def test_series_and_scatter(tables):
    made = view(
        tables, "steps", view="series", of=["clean", "trim", "after"], value=["MB/s", "W", "lat_p99", "host_cpu"]
    )
    assert "P99 of completion time (clat)" in made and "(lat)" not in made  # by the second it is of clat
    assert made.count("<svg") == 3 and "last document does not report it." in made
    assert re.findall(r'class="mid soft">(clean|trim|after)<', made)[:2] == ["clean", "after"]
    made = view(tables, "steps", view="scatter", of="clean", window="late")
    assert re.search(r'class="dots"[^>]* d="(M[\d.]+ [\d.]+h0){2}"', made)  # two of the four seconds


def test_latencies_by_the_second_and_by_their_share(tables):
    made = view(tables, "steps", view="histogram", of=["clean"])
    assert "fio left no histogram of lat" in made  # the documents have none, but the log by the second has
    assert "Latency by the second, clean" in made and made.count("fill:var(--blue);opacity:1.00") == 4
    row = dataclasses.replace(tables["steps"].rows[1], lat=np.array([[0, 640, 90], [0, 832, 10]]))  # 64 and 512 µs
    one = dataclasses.replace(tables["steps"], rows=[row])
    made = page.html_of("histogram")(context.Context([one], ["x"], {"view": "histogram", "of": "clean"}))
    ((first, top), (_, tenth), (last, _), (_, floor)) = page_reader.panels(made)[0].plots[0].lines[0]
    assert top < tenth < floor and first < last  # all of them, a tenth behind the first latency, none behind the last
    one.rows[0].data = dataclasses.replace(row.data, hist_of="lat", hist=np.array([[0, 640, 90], [2, 832, 10]]))
    made = page.html_of("histogram")(context.Context([one], ["x"], {"view": "histogram", "of": "clean"}))
    assert "Latency over the time, clean" in made  # documents in longer stretches: each is drawn as long as it is
    (a, b), (c, d) = re.findall(r'opacity:[\d.]+" d="M([\d.]+) [\d.]+H([\d.]+)', made.split("over the time")[-1])
    assert b == c and float(d) - float(c) == pytest.approx(float(b) - float(a), abs=0.2)  # 2 s each, of 4


@pytest.mark.parametrize("log", [False, True])
def test_ticks_are_round_and_within(log):
    for low, high in ((0.3, 7), (1, 1e6), (20, 90), (1000, 1001)):
        ticks = svg.ticks(low, high, log)
        assert all(low * 0.999 <= t <= high * 1.001 for t in ticks) and (log or 2 <= len(ticks) <= 7), (
            low,
            high,
            ticks,
        )
    if log:
        for low, high, decades in ((0.5, 15_000, 5), (1.0, 999, 3), (0.011, 990_000, 7), (3e-7, 8e9, 16)):
            ticks = svg.ticks(low, high, True)
            assert {math.log10(t) % 1 for t in ticks} == {0.0} and len(ticks) >= min(decades, 3)
            places = svg.Axis(low, high, 0, 300, True).all(ticks)
            assert min(b - a for a, b in zip(places, places[1:])) > 25  # no label on another
    assert [svg.short(v) for v in (0, 0.25, 950, 2500, 2e6, 1e-5)] == ["0", "0.25", "950", "2.5k", "2M", "10⁻⁵"]


def test_long_series_keep_their_extremes():
    points = [(float(i), 1.0) for i in range(100_000)]
    points[41234] = (41234.0, 9.0)
    points[70000] = (70000.0, float("nan"))
    kept_points = svg.thinned(points)
    assert len(kept_points) <= svg.MOST_DOTS + 2 and (41234.0, 9.0) in kept_points


def test_of_each_stretch_the_first_lowest_and_the_first_highest_stay():
    dice = np.random.default_rng(5)
    values = dice.integers(0, 6, 997).astype(float)
    values[300:400] = np.nan
    values[[50, 420]] = np.inf, np.nan
    size, want = -(-2 * 997 // 100), []
    for i in range(0, 997, size):
        piece = [(t, v) for t, v in zip(range(i, i + size), values[i : i + size].tolist()) if math.isfinite(v)]
        ends = {min(piece, key=lambda p: p[1]), max(piece, key=lambda p: p[1])} if piece else {(i, values[i])}
        want += sorted(ends)
    thinned = svg.thinned_series(np.arange(997), values, 100)
    assert [(t, repr(v)) for t, v in thinned] == [(t, repr(float(v))) for t, v in want]
    assert svg.thinned(list(zip(range(997), values.tolist())), 100)[:20] == thinned[:20]


def test_the_command_prints_rows_and_writes_the_page(folders, tmp_path):
    out = tmp_path / "page.html"
    code, stdout, stderr = run_command(folders["grid"], "--out", out, "--json")
    document = json.loads(stdout)
    assert code == 0 and document.keys() >= {"run", "plan", "rows", "steady"} and document["steady"]["achieved"] is True
    assert document == json.loads((folders["grid"] / "figures.json").read_text())
    assert "steady" in stderr and "A grid: SIMULATED" in stderr
    report.keep_others(out)
    assert run_command(folders["grid"], "--out", out, "--quiet")[0] == 0  # over its own page


@pytest.mark.slow
def test_several_runs_stand_side_by_side_and_only_of_one_plan(folders, tmp_path):
    out = tmp_path / "page.html"
    assert run_command(folders["grid"], folders["falling"], "--out", out)[0] == 0
    assert "SIMULATED SATA TLC (run 2)" in out.read_text()
    with pytest.raises(UsageError, match="runs of the same plan"):
        run_command(folders["grid"], folders["steps"], "--out", out)


def test_hostile_words_are_escaped(tmp_path):
    shows_of = '[[show]]\nview = "bars"\nof = "clean"\nvalue = "iops"\ntitle = "<img src=x onerror=boom()>"\n'
    made = page.render([table.load(synthetic_plan.steps(tmp_path, shows_of))])
    assert "<img" not in made and "&lt;img" in made


@pytest.mark.slow
def test_in_a_browser_nothing_overflows_and_nothing_complains(folders, tmp_path):
    if not browser.find():
        pytest.skip("no Chromium is installed: the page was not run")
    for width in (1400, 500):
        with browser.Browser(width) as b:
            for name in ("steps", "falling"):
                out = tmp_path / f"{name}.html"
                run_command(folders[name], "--out", out, "--quiet")
                b.open(out)
                assert b.js("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                assert b.complaints() == [] and b.js("document.querySelectorAll('svg').length") >= 2


def test_reasons_that_differ_in_a_number_only_are_one():
    few = "{} I/Os are too few for this percentile, which needs 1000000"
    assert points_html.merged([few.format(n) for n in (12384, 11955, 25218)] + ["it broke", "it broke"]) == [
        few.format("11\u202f955 to 25\u202f218"),
        "it broke",
    ]
    assert points_html.merged([few.format(7)]) == [few.format(7)]


def test_the_head_names_the_method_of_the_purge(tables):
    """As a PTS report has to."""
    table_ = tables["grid"]
    assert page.tested([dataclasses.replace(table_, purges=["discard"] * 2)], ["x"]).count("purged by discard") == 1
    assert "purged by" not in page.tested([table_], ["x"])


def test_a_run_that_goes_on_is_not_called_cut_short(tables):
    tables["grid"].data.state = "running"
    made = page.tested([tables["grid"]], ["x"])
    tables["grid"].data.state = "complete"
    assert "The run still goes on" in made and "No reason" not in made


def test_an_axis_of_points_rises():
    """In the plan they fall: queue depths of the PTS, block sizes."""
    assert context.rising([32, 16, 1]) == [1, 16, 32]
    assert context.rising(["1024 KiB", "4 KiB", "512 B", "1 MiB"]) == ["512 B", "4 KiB", "1024 KiB", "1 MiB"]
    assert context.rising(["1 s", "500 ms", "2.5 s"]) == ["500 ms", "1 s", "2.5 s"]
    assert context.rising(["max", "mid", "min"]) == ["max", "mid", "min"]


def test_a_trace_that_was_not_played_at_its_times_in_a_round_is_said_on_the_page(folders):
    """Seen of jesd219-client on a starved host: on the screen only."""
    table_ = table.load(folders["grid"])
    last = [row for row in table_.rows if row.state == "done"][-1]
    late = "lag: NOT PLAYED AT THE TRACE'S TIMES: 99 % of its I/Os were later than 1 ms"
    last.notes += [late, "SCALED: 4000 I/Os, fewer than demo has"]
    notes = page.notes(table_)
    assert f"{last.act.label}: {late}" in notes and any("SCALED: 4000" in line for line in notes)


SHOWN = [
    {"view": "series", "of": ["clean", "after"], "value": ["MB/s", "lat_mean"]},
    {"view": "scatter", "of": ["clean", "after"], "value": ["iops", "lat_mean"]},
    {"view": "scatter", "of": ["clean", "after"], "value": "lat_mean", "scale": "log"},
    {"view": "scatter", "of": ["clean", "after"], "value": "MB/s", "along": "written"},
    {"view": "histogram", "of": ["clean", "after"]},
]
SWEPT = [
    {"view": "lines", "of": ["rounds/point"], "x": "block", "by": "read", "value": ["iops", "lat_mean"]},
    {"view": "rounds", "of": ["rounds/point"], "by": "read", "value": ["iops", "lat_mean"]},
]


@pytest.mark.parametrize(("run", "show"), [("steps", show) for show in SHOWN] + [("grid", show) for show in SWEPT])
def test_panels_of_one_figure_have_one_range_and_unit(tables, run, show):
    """One run is a hundred times as slow as the other: µs beside ms, 2.2 beside 4 looked equal."""
    one = tables[run]
    rows = [
        dataclasses.replace(
            row,
            windows={
                name: figures
                and {
                    key: value * 100 if key in ("iops_mean", "bw_mean_MBps", "lat_mean_us") and value else value
                    for key, value in figures.items()
                }
                for name, figures in row.windows.items()
            },
            data=row.data
            and dataclasses.replace(
                row.data, iops=row.data.iops * 100, bw_Bps=row.data.bw_Bps * 100, lat_mean_us=row.data.lat_mean_us * 100
            ),
            lat=row.lat + (np.array([0, 320, 0]) if len(row.lat) else 0),
        )
        for row in one.rows
    ]
    other = dataclasses.replace(one, rows=rows)
    made = page_reader.panels(page.html_of(show["view"])(context.Context([one, other], ["a", "b"], show)))
    axes: dict[str, set] = {}
    for panel in made:
        for plot in panel.plots:
            kind = re.sub(r", (clean|after|rounds).*|: [ab]$", "", panel.title)
            axes.setdefault(f"{kind} {plot.y_title}", set()).add(str(plot.y_ticks))
    assert len(made) > 1 and axes and all(len(seen) == 1 for seen in axes.values()), axes
    titles = {re.sub(r", (µs|ms)$", "", title): title for title in axes}
    assert len(titles) == len(axes)
