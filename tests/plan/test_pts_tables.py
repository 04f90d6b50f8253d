"""Every cell, verdict and plot of the shipped PTS plans is the number that was put into the run (pts_runs.py)."""

import re

import pts_runs
import pytest
import synthetic_plan
from page_reader import value
from pts_checks import CHECKS, Case

from ssdrig.load import fiojob
from ssdrig.plan import expand, grammar, shows, values
from ssdrig.plan.kinds import load
from ssdrig.plan.rules import ends
from ssdrig.reading import bursts
from ssdrig.views import documents


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return lambda name: pts_runs.made(tmp_path_factory, name)


@pytest.mark.usefixtures("short_loads_have_errors")
@pytest.mark.parametrize("name", pts_runs.NAMES)
def test_every_number_on_the_page_is_the_one_put_in(runs, name):
    w, table_ = runs(name)
    seen = [CHECKS[show["view"]](Case(w, table_, show)) for show in table_.plan.shows]
    assert all(seen) and len(seen) == len(table_.plan.shows) > 1


@pytest.mark.parametrize("name", pts_runs.NAMES)
def test_every_row_of_the_json_has_the_numbers_put_in(runs, name):
    w, table_ = runs(name)
    rows = [row for row in documents.of_table(table_)["rows"] if row["do"] == "load"]
    assert len(rows) == len(w.put) and all(row["state"] == "done" for row in rows)
    for (row, (label, number)), put in zip(zip(rows, w.put, strict=True), w.put.values(), strict=True):
        assert (row["path"], row["round"]) == (w.acts[label].path, number) and row["point"] == w.acts[label].point
        if off := w.acts[label].keys.get("off"):  # without fio's first burst, which takes a pause and a burst
            cut = {key: getattr(put, key)[5 + round(off) :] for key in ("reads", "writes", "watts")}
            put = put._replace(**cut, hist={})
        figures = row["windows"]["all"]
        for word, wanted in pts_runs.figures([put]).items():
            got, power = figures[shows.VALUES[word][0]], word in ("W", "uJ/IO", "J/GB", "iops/W")
            room = 0.002 if power else 0.02 if word.startswith("lat_") and word != "lat_mean" else 1e-6
            assert got == (wanted and pytest.approx(wanted, rel=room)), (label, number, word)


def test_write_amplification_and_temperature_are_those_of_the_readings(runs):
    w, table_ = runs("pts-wsat")
    of = [show for show in table_.plan.shows if show["view"] == "series" and "wa" in show["value"]]
    over, case = (Case(w, table_, show) for show in sorted(of, key=lambda show: show.get("along") is None))
    (put,), marks = over.puts("wsat"), over.panels[over.words.index("wa")].plots[0].marks
    for mark, (second, wa, _) in zip(marks[-len(w.polled) :], w.polled, strict=True):
        done = sum(put.writes[: int(second)]) * 4096 / synthetic_plan.DRIVE["capacity_bytes"]
        at, number = mark.words.split(": ")
        assert value(at) == pytest.approx(done, abs=0.02) and value(number) == pytest.approx(wa)
    plots = {word: panel.plots[0] for word, panel in zip(case.words, case.panels, strict=True)}
    for word, at in (("wa", 1), ("C", 2)):
        marks = plots[word].marks[-len(w.polled) :]
        for mark, reading in zip(marks, w.polled, strict=True):
            second, number = re.search(r", (\S+) s: (\S+)", mark.words).groups()
            assert value(second) == pytest.approx(reading[0], abs=0.6) and value(number) == pytest.approx(reading[at])
            assert plots[word].y(mark.y_px) == pytest.approx(reading[at], rel=0.01)


def test_no_cell_of_a_swept_matrix_has_the_number_of_its_mirror(runs):
    """Threads and queue depth are not exchanged: not in the matrix, and not in what fio is asked for."""
    w, table_ = runs("pts-dirth")
    case = Case(w, table_, next(show for show in table_.plan.shows if show["view"] == "matrix"))
    head, *lines = case.panels[0].tables[0]
    assert head[1:] == ["32", "16", "2", "1"] and [line[0] for line in lines] == ["32", "8", "1"]
    cells = {(line[0], depth): cell for line in lines for depth, cell in zip(head[1:], line[1:], strict=True)}
    assert cells["32", "1"] != cells["1", "32"] and len(set(cells.values())) == len(cells)
    for threads, depth in (("32", "1"), ("8", "32"), ("8", "16")):
        act = w.acts[f"demand/point threads={threads} qd={depth}"]
        job = load.job(act, "/dev/null", 1, 1, "nvme")
        assert (job.threads, job.queue_depth) == (int(threads), int(depth))
        lines = fiojob.job_file(job).splitlines()
        assert f"numjobs={threads}" in lines and f"iodepth={depth}" in lines


@pytest.mark.parametrize("off", pts_runs.WAITS)
def test_the_last_60_of_360_cycles_stand_for_a_pause(off):
    """As the PTS counts them, behind fio's first burst, which takes a pause and a burst together."""
    plan = grammar.read(*grammar.find("pts-hir"))
    drive = synthetic_plan.DRIVE
    acts = {act.label: act for act in expand.expand(plan, drive, frozenset(grammar.CAPABILITIES))}
    keys = acts[f"wait-{off}"].keys
    period, cycles = 5 + off, 360
    lasted = (1 + cycles) * period
    assert load.longest_s(acts[f"wait-{off}"]) == lasted and keys["cycles"] == cycles
    begin = round(ends.begins_s(values.span(plan.params["last"]), lasted))
    assert bursts.whole(keys["on"], keys["off"], begin, lasted) == (lasted - 60 * period, lasted)
