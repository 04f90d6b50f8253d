"""The pages of plans that are no PTS, and of each view that no PTS plan has, in headless Chromium, as wide as a phone:
each view has its plot or its table, drawn, with named axes, and nothing complains. The runs are synthetic: all loads of
a plan, a number of its own in each, or those of the view's own tests. Then pages of 1, 2 and 6 runs at both widths and
on paper: they begin with the answer, and nothing is cut off, moves or is a barrier."""

import dataclasses
import re

import page_cross as cross
import pytest
import synthetic_cuts
import test_load_line as line
import test_pts_browser as pts
import test_rated_life as life
import test_replay as replay
import test_single_reads as single
import test_slc_run as cache
import test_sleep_states as sleep
import test_thermal as thermal
import test_wear_run as wear
from pts_runs import number_of
from synthetic_pts import Run, steady_load

from ssdrig.plan import grammar
from ssdrig.reading import table
from ssdrig.reading.row import Table
from ssdrig.report import page

pytestmark = pytest.mark.slow
phone = pts.phone
# of each card of bars: its title, where one of them has a length
BARS = """[...document.querySelectorAll('.card')].filter((card) => [...card.querySelectorAll('.fill')].some(
  (bar) => bar.getBoundingClientRect().width > 1)).map((card) => card.querySelector('h3').textContent)"""
# of each plan: its parameters, words of the titles of its plots, and of its tables and bars
WANTED = {
    "qd-sweep": (
        {"qd": [1, 4, 32]},
        ["Mean IOPS by queue depth", "Mean latency (lat) by queue depth", "Throughput by queue depth", "IOPS"]
        + ["Latency against IOPS, along the queue depth, random-read"],
        ["P99 latency (lat)"],
    ),
    "bs-sweep": (
        {"block": ["4 KiB", "64 KiB", "1 MiB"]},
        ["Throughput by block size", "Mean IOPS by block size", "Energy per gigabyte by block size"],
        [],
    ),
    "mix-sweep": ({}, ["Mean IOPS by read share", "IOPS per watt by read share", "Mean power by read share"], []),
    "four-states": (
        {},
        ["IOPS: fresh, used", "Power: fresh, used"],
        ["Mean IOPS", "Write amplification", "Mean power"],
    ),
    "used-state": ({}, [], ["Mean IOPS by queue depth and read share", "Throughput"]),
}
ALSO_ALONG = ("read share", "rate", "pause before it", "[PR].+ before it, s", "Written, GB", "Drive time, s", "State")
AXES = re.compile(rf"{pts.ALONG.pattern}|^({'|'.join(ALSO_ALONG)}|Writes, IOPS|GB written)")
UNIT = re.compile(pts.UNIT.pattern + "|Recovered, GB|^Write amplification$|mJ$|^percent$")


def whole(runs, name: str, params: dict) -> Table:
    """All acts of a plan: two seconds, or six, of each load, a second of anything else."""
    made = Run(runs, name, **params)
    host = 1 << 40
    for i, (label, act) in enumerate(made.acts.items()):
        if act.not_run:
            made.not_run(label, act.not_run)
        elif act.do in ("fill", "load"):
            made.poll("before", host, 2 * host)
            seconds = 2 if act.point else 6
            keys = {"read": 0, **act.keys}
            keys |= {"block": ((keys["block"], 100),)} if isinstance(keys["block"], int) else {}
            iops = round(number_of(i, 20 if act.do == "fill" else 900))  # no faster a NAND than the loads show
            put = steady_load(iops, number_of(i, 1.0, 1.021), keys, seconds)
            made.does(label, put)
            ended_ns = made.t_ns
            for second in (2, 4) if not act.point else ():  # readings within, for what is drawn over the time
                made.t_ns = ended_ns - (seconds - second) * 1_000_000_000
                moved = round(put.ios * put.block) * second // seconds
                made.poll("poll", host + moved, 2 * (host + moved))
            made.t_ns = ended_ns
            host += round(put.ios * put.block)
            made.t_ns += 10_000_000
            made.poll("after", host, 2 * host)
        else:
            made.step(act.path, 1, **({"method": "format"} if act.do == "purge" else {}))
    return table.load(made.end())


def drawn(phone, file, table_: Table) -> tuple[list[str], list[str]]:
    """Titles of what the page shows: of its plots, and of its tables and bars."""
    file.write_text(page.render([table_]))
    phone.open(file)
    assert phone.js("document.documentElement.scrollWidth") <= pts.WIDTH
    plots, tables, bars = (phone.js(what) for what in (pts.PLOTS, pts.TABLES, BARS))
    for plot in plots:
        assert plot["drawn"] and plot["px"] >= pts.SMALLEST, plot
        assert UNIT.search(plot["y"]) and AXES.search(plot["x"]), plot
    assert phone.complaints() == [] and phone.requests() == [file.resolve().as_uri()]
    return [plot["title"] for plot in plots], [of for of, cells in tables if cells] + bars


def has(wanted: list[str], titles: list[str]) -> None:
    for title in wanted:
        assert any(title in of for of in titles), (title, titles)


@pytest.mark.parametrize("name", WANTED)
def test_all_views_of_a_plan_are_drawn_on_a_phone(phone, tmp_path, name):
    params, plots_wanted, others_wanted = WANTED[name]
    table_ = whole(tmp_path, name, params)
    plots, others = drawn(phone, tmp_path / f"{name}.html", table_)
    has(plots_wanted, plots)
    has(others_wanted, others)
    values = sum(
        len(show["value"]) if isinstance(show.get("value"), list) else 1
        for show in table_.plan.shows
        if show["view"] != "figure"
    )
    assert len(plots + others) >= values


VIEWS = {  # a run of each, words of the titles of its plots, and of its tables
    "plateaus, cache-recovery": (
        cache.made,
        [
            "Speed over the amount written, fill",
            "Speed over the amount written, again",
            "What the cache takes after a rest",
        ],
        ["Speed over the amount written"],
    ),
    "load-line": (line.lined, ["Load line"], []),
    "average-power": (
        lambda runs: line.averaged(runs, "own", True, text=line.AVERAGE + 'rest = "rest"\n'),
        [],
        ["Average power"],
    ),
    "thermal": (thermal.heated, ["Temperature"], []),
    "life": (lambda runs: table.load(life.run_of(runs, [1.2, 2.5, 2.45, 2.52, 2.48, 2.5, 2.55])), [], ["Rated life"]),
    "power-states": (sleep.slept, ["Power states"], ["Power states"]),
    "wakes": (single.woken, ["A single I/O after a pause"] * 2, ["A single I/O after a pause"]),
    "under": (single.read_beside, ["Reads while it writes"], ["Reads while it writes"]),
    "wear": (
        wear.worn_out,
        ["Wear over the amount written", "Write amplification of each"],
        ["What the wear has shown"],
    ),
    "replay": (replay.played_twice, ["Throughput", "Mean latency", "Power", "Latency histogram"], ["Played traces"]),
}


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_is_drawn_on_a_phone(phone, tmp_path, view):
    make, plots_wanted, others_wanted = VIEWS[view]
    plots, others = drawn(phone, tmp_path / "view.html", make(tmp_path))
    has(plots_wanted, plots)
    has(others_wanted, others)


def headlined(table_: Table, name: str, *swaps: tuple[str, str]) -> Table:
    """The run with the headline of a shipped plan, with other names of its steps."""
    parts = grammar.read(*grammar.find(name)).headline
    for old, new in swaps:
        parts = tuple(part.replace(old, new) for part in parts)
    return dataclasses.replace(table_, plan=dataclasses.replace(table_.plan, headline=parts))


# the questions of readers, and a page that answers each: which part of its headline is claimed
QUESTIONS = {
    "life": (
        lambda runs: headlined(
            table.load(life.run_of(runs, [1.2, 2.5, 2.45, 2.52, 2.48, 2.5, 2.55])), "jesd219-enterprise"
        ),
        "write amplification",
    ),
    "cache": (
        lambda runs: headlined(cache.made(runs), "slc-cache", ("{empty.", "{fill."), ("{full.", "{again.")),
        "slc cache",
    ),
    "loss": (lambda runs: headlined(table.load(synthetic_cuts.write(runs, 20)), "powerloss"), "broke a promise"),
    "idle": (single.woken, "at rest"),
    "better": (lambda runs: whole(runs, "qd-sweep", {"qd": [1, 4, 32]}), "random reads"),
}
WIDTHS = (1400, pts.WIDTH)


COUNTS = {"life": [1], "cache": [1, 2, 6], "loss": [1, 6], "idle": [1], "better": [2]}


@pytest.mark.parametrize(("question", "count"), [(question, n) for question, of in COUNTS.items() for n in of])
def test_a_page_begins_with_the_answer_and_nothing_is_cut_off(phone, tmp_path, question, count):
    make, answer = QUESTIONS[question]
    file = tmp_path / "page.html"
    file.write_text(page.render([make(tmp_path / "runs")] * count))
    wrong: dict[tuple, object] = {}
    for width in (*WIDTHS, cross.SHEET_PX):
        paper = width == cross.SHEET_PX
        cross.medium(phone, False, paper)
        cross.sized(phone, width, 900 if width > 500 else 844)
        phone.open(file)
        wrong[width, "misfits"] = cross.misfits(phone, width, paper) + phone.js(cross.CUT_IN_PLOTS)
        if not paper:
            assert answer in phone.js("document.querySelector('.headline').textContent").lower()
            wrong[width, "below the first screen"] = phone.js(cross.BELOW_FIRST_SCREEN)
            wrong[width, "shift"] = max(0.0, phone.js(cross.SHIFT) - cross.MOST_SHIFT)
        if (width, count) in ((1400, 1), (pts.WIDTH, 2)):
            cross.with_axe(phone)
            wrong[width, "axe"] = phone.js(cross.BARRIERS)
        wrong[width, "complaints"] = phone.complaints()
    cross.medium(phone, False)
    cross.sized(phone, pts.WIDTH, 844)
    assert {where: what for where, what in wrong.items() if what} == {}
