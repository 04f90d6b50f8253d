"""reading/timeline.py and report/shown_parts.py: a run that was cut short by a reboot, its parts on one axis."""

import fcntl
import json
import re
import shutil

import numpy as np
import pytest
import synthetic_plan
import synthetic_run
from test_report import run_command

from ssdrig.reading import table, timeline
from ssdrig.report import page, shown_parts
from ssdrig.runs import journal
from ssdrig.views import documents

HOUR_NS = 3600 * 10**9
UTC_NS = 1_795_177_507 * 10**9


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Part 1 died in `clean`; the machine was started anew, which begins its clock at the same t_ns; an hour later part
    2 did the rest."""
    base = tmp_path_factory.mktemp("parts")
    first = synthetic_plan.Writer(base, synthetic_plan.STEPS, "quick", {"time": "4 s"}, name="run", utc_ns=UTC_NS)
    first.load("fill", [1000, 1000], 3.0, block=131072)
    first.load("clean", [2000] * 3, 2.0, ended=False)
    first.end(state=None)
    more = {"resumed": {"part": 2, "begins": 1, "round": 1}, "run": "run"}
    synthetic_plan.steps(base, name="run/part-2", utc_ns=UTC_NS + HOUR_NS, more=more)
    return base / "run"


def test_parts_have_clocks_of_their_own_and_utc_joins_them(run):
    one, two = timeline.of(run)
    assert journal.run_header(run)["started"]["t_ns"] == journal.run_header(run / "part-2")["started"]["t_ns"]
    assert (one.number, one.state, two.state) == (1, "died", "complete")
    assert one.begin_utc_ns == UTC_NS and two.begin_utc_ns == UTC_NS + HOUR_NS and one.end_utc_ns < two.begin_utc_ns
    assert [len(part.iops) for part in (one, two)] == [2, 3]
    assert one.iops[1].values == pytest.approx([2000] * 3) and two.iops[2].values == pytest.approx([1000] * 4)
    for part in (one, two):
        for line in part.iops + part.watts:
            assert part.begin_utc_ns / 1e9 < line.utc_s.min() <= line.utc_s.max() < part.end_utc_ns / 1e9
            assert (np.diff(line.utc_s) > 0).all()
        assert np.nanmax(part.watts[0].values) == pytest.approx(3.0, rel=0.01)
    with open(run / "lock") as held:  # as whoever goes on with the run does
        fcntl.flock(held, fcntl.LOCK_EX)
        assert [part.state for part in timeline.of(run)] == ["died", "complete"]
    assert timeline.of(run / "part-2") != [] and timeline.utc_ns(run) == (one.begin_utc_ns, one.end_utc_ns)


def test_the_page_shows_all_parts_and_no_line_across_the_gap(run):
    html = page.render([table.load(run)])
    section = html[html.index("Parts of the run") :]
    plots = re.findall(r"<svg.*?</svg>", section[: section.index("</section>")], re.S)
    assert len(plots) == 2 and "IOPS of all parts" in plots[0] and "Power, W of all parts" in plots[1]
    for plot in plots:
        (a0, a), (b0, b) = sorted((float(x), float(x) + float(w)) for x, w in re.findall(BAND, plot))
        assert a0 < a < b0 < b and b0 - a > 800 and "nothing measured" in plot
        sides = set()
        for path in re.findall(r'class="line[^"]*" style="[^"]*" d="([^"]*)"', plot):
            for stroke in path.split("M")[1:]:
                xs = [float(point.split()[0]) for point in re.split("L", stroke)]
                assert max(xs) <= a + 1 or min(xs) >= b0 - 1, "a line crosses the gap"
                sides.add(max(xs) <= a + 1)
        assert sides == {True, False}  # both parts are drawn
    assert "died" in section and re.search(r"<td>1:00:0\d|<td>59:\d\d", section)


BAND = r'<rect class="part" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'


def test_a_run_of_one_part_has_no_such_section(run, tmp_path):
    assert timeline.of(synthetic_plan.steps(tmp_path)) == [] and shown_parts.section(tmp_path / "p-1") == ""


def test_the_command_shows_the_parts(run, tmp_path):
    code, _, _ = run_command(run, "--out", tmp_path / "page.html", "--quiet")
    assert code == 0 and "Parts of the run" in (tmp_path / "page.html").read_text()


def test_the_page_of_the_main_job_shows_them_too(tmp_path):
    run = synthetic_run.write(tmp_path, [2000] * 12)
    shutil.copytree(run, tmp_path / "copy")
    part = shutil.move(tmp_path / "copy", run / "part-2")
    header = json.loads((part / "run.json").read_text())
    header["started"]["utc_ns"] += HOUR_NS
    (part / "run.json").write_text(json.dumps(header | {"resumed": {"part": 2, "begins": 0, "round": 1}}))
    events = [{k: v for k, v in event.items() if k not in ("line", "crc")} for event in journal.events(part)]
    later = [e | {"utc_ns": e["utc_ns"] + HOUR_NS} if e["kind"] == "clock.anchor" else e for e in events]
    synthetic_run.seal(part, later)
    code, _, _ = run_command(run, "--out", tmp_path / "page.html", "--quiet")
    html = (tmp_path / "page.html").read_text()
    assert code == 0 and "Parts of the run" in html and html.count("nothing measured") == 2


def test_a_clock_that_went_back_has_no_gap_and_no_axis(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    file = tmp_path / "run/part-2/run.json"
    file.write_text(file.read_text().replace(str(UTC_NS + HOUR_NS), str(UTC_NS - HOUR_NS)))
    file = tmp_path / "run/part-2/events.jsonl"  # its anchors would say otherwise
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "clock.anchor" not in line))
    html = shown_parts.section(tmp_path / "run")
    assert shown_parts.BACK in html and "<svg" not in html and "no common axis" in html


def test_steps_that_were_done_before_a_run_was_cut_short_are_in_its_table(run, tmp_path):
    """Part 2 did not do `fill` and `clean` again; the report of it had lost both."""
    first = synthetic_plan.Writer(tmp_path, synthetic_plan.STEPS, "quick", {"time": "4 s"}, name="run", utc_ns=UTC_NS)
    first.load("fill", [1000, 1000], 3.0, block=131072)
    first.load("clean", [2000] * 4, 2.0)
    first.step("trim", 0.25, 1.0)
    first.event("purge", method="block erase")
    first.load("after", [3000] * 2, 1.0, ended=False)
    first.end(state=None)
    more = {"resumed": {"part": 2, "begins": 4, "round": 1}, "run": "run"}
    rest = (tmp_path, synthetic_plan.STEPS, "quick", {"time": "4 s"})
    second = synthetic_plan.Writer(*rest, name="run/part-2", utc_ns=UTC_NS + HOUR_NS, more=more)
    second.load("after", [1000] * 4, 1.0)
    second.event("load.first_io", step="after")
    second.end()
    table_ = table.load(tmp_path / "run")
    assert [(row.act.path, row.state, row.value("iops")) for row in table_.rows] == [
        *(("fill", "done", 1000.0), ("clean", "done", 2000.0), ("trim", "done", None), ("after", "done", 1000.0))
    ]
    assert table_.rows[1].value("W") == pytest.approx(2.0, rel=0.01) and 3600 < table_.rows[3].t0_s < 3610
    assert [row["part"] for row in documents.of_table(table_)["rows"]] == [1, 1, 1, 2]
    html = page.render([table_])
    assert table_.data.state == "complete" and "purged by block erase" in html
    assert re.findall(r'">(\w+) <span class="soft">(part \d)<', html) == [
        *(("fill", "part 1"), ("clean", "part 1"), ("trim", "part 1"), ("after", "part 2"))
    ]
    again = table.load(run)  # its part 2 went back to the fill
    assert [row.act.path for row in again.rows] == ["fill", "clean", "trim", "rest", "after"]
    header = json.loads((tmp_path / "run/part-2/run.json").read_text())
    (tmp_path / "run/part-2/run.json").write_text(json.dumps(header | {"resumed": {"begins": "x"}}))
    assert [row.act.path for row in table.load(tmp_path / "run").rows] == ["after"]


@pytest.mark.parametrize(("ruled", "rounds"), [(False, [1, 2, 3]), (True, [2, 3])])
def test_rounds_before_the_interruption_stand_where_no_rule_judges_them(tmp_path, ruled, rounds):
    text = synthetic_plan.GRID.partition("[[show]]")[0]
    text = text if ruled else re.sub("most = 7\nuntil.*", "times = 3", text)
    for name, numbers, more in (("run", (1,), {}), ("run/part-2", (2, 3), {"resumed": {"begins": 0, "round": 2}})):
        part = synthetic_plan.Writer(tmp_path, text, name=name, more=more | {"run": "run"})
        for number in numbers:
            folder, point = f"rounds/point/r{number:02}/p05", {"read": 0, "block": "4 KiB"}
            part.load("rounds/point", [100] * 2, 1.0, folder=folder, round=number, point=point)
            part.event("round", step="rounds", round=number, steady=False, tracked={}) if ruled else None
        part.end(power=False)
    assert [row.round for row in table.load(tmp_path / "run").rows if row.state == "done"] == rounds
