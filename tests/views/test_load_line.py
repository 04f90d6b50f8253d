"""The load line and the average power: closed forms, the model's own figures, and the view of a plan."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import short_loads
from synthetic_plan import DRIVE, Writer
from synthetic_run import seal
from test_power_states import MS, S, device

from ssdrig.drive.smart import nvme_pages
from ssdrig.plan.rules import quiet
from ssdrig.reading import rest, table
from ssdrig.report import page
from ssdrig.runs import journal
from ssdrig.views.average_power import formula as average_power_formula
from ssdrig.views.average_power import formula as average_power_terms
from ssdrig.views.context import Context
from ssdrig.views.load_line import html as load_line_fit
from ssdrig.views.load_line import html as load_line_html
from ssdrig.views.load_line.html import Point
from ssdrig.views.step_results import sentences
from ssdrig.virtual.device import smartlog
from ssdrig.virtual.flash import nand
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC

RATES = [0.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0, 6000.0, 8000.0, 9000.0, 9500.0]
P0, E = 1.25, 41.5e-6


def test_an_exact_line_and_its_errors():
    line = load_line_fit.fit([Point(rate, P0 + E * rate) for rate in RATES])
    assert (line.P0_W, line.e_uJ) == (pytest.approx(P0), pytest.approx(41.5)) and line.used == 11
    assert line.P0_error_W < 1e-9 and line.e_error_uJ < 1e-9
    rng = np.random.default_rng(1)
    watts = P0 + E * np.array(RATES) + rng.normal(0, 0.01, 11)
    line = load_line_fit.fit([Point(*pair) for pair in zip(RATES, watts, strict=True)])
    fitted, cov = np.polyfit(RATES, watts, 1, cov=True)
    assert (line.e_uJ / 1e6, line.P0_W) == (pytest.approx(fitted[0]), pytest.approx(fitted[1]))
    assert (line.e_error_uJ / 1e6, line.P0_error_W) == pytest.approx(2.262 * np.sqrt(np.diag(cov)))


def test_what_all_points_share_is_in_the_errors():
    gain = 0.012
    line = load_line_fit.fit([Point(r, (P0 + E * r) * (1 + gain), None, gain * (P0 + E * r)) for r in RATES])
    assert abs(line.P0_W - P0) == pytest.approx(gain * P0) and abs(line.P0_W - P0) <= 1.001 * line.P0_error_W
    assert abs(line.e_uJ * 1e-6 - E) == pytest.approx(gain * E)
    assert abs(line.e_uJ * 1e-6 - E) * 1e6 <= 1.03 * line.e_error_uJ
    unknown = load_line_fit.fit([Point(r, P0 + E * r, None, None) for r in RATES])
    assert (unknown.P0_error_W, unknown.e_error_uJ) == (None, None) and unknown.P0_W == pytest.approx(P0)


def test_the_errors_hold_the_truth_as_often_as_they_should():
    rng, held = np.random.default_rng(2), [0, 0]
    for _ in range(400):
        line = load_line_fit.fit([Point(r, P0 + E * r + rng.normal(0, 0.02)) for r in RATES])
        held[0] += abs(line.P0_W - P0) <= line.P0_error_W  # Student, 9 degrees of freedom: 95 %
        held[1] += abs(line.e_uJ * 1e-6 - E) <= line.e_error_uJ * 1e-6
    assert all(370 <= count <= 390 for count in held)


def test_points_that_did_not_reach_their_rate_are_left_out():
    points = [Point(r, P0 + E * r, r) for r in RATES] + [Point(9600.0, 1.2, 20_000.0)]
    line = load_line_fit.fit(points)
    assert (line.used, line.left_out) == (11, 1) and line.P0_W == pytest.approx(P0)
    for few in (points[:2], [Point(5.0, 1.0)] * 5, points[-1:]):
        assert load_line_fit.fit(few).P0_W is None and "reached their rate" in load_line_fit.fit(few).why


def test_the_models_own_line_is_found_in_model_time():
    """With a controller that draws nothing of its own, energy per read is that of the array and the bus."""
    preset = replace(SATA_TLC, P_active_mW=0, power_states=())
    drive = VirtualDrive(preset, capacity_bytes=1 << 28)
    drive.precondition("seq", 1)
    rng, points, begin = np.random.default_rng(3), [], 0
    for rate in (0, 200, 500, 1000, 2000):
        at = begin + np.sort(rng.uniform(0, S // 2, rng.poisson(rate / 2))).astype(np.int64)
        for t in at.tolist():
            drive.submit([0], [int(rng.integers(drive.pages))], [1], [0], t)
        drive.advance(begin + S)
        watts = drive.energy_between(begin, begin + S // 2 + 20 * MS) / 0.52
        points.append(Point(len(at) / 0.52, watts))
        begin += S
    line = load_line_fit.fit(points)
    e_J = preset.P_read_mW * preset.t_R_ns * 1e-12 + preset.e_io_pJ_per_B * 4096e-12
    assert line.P0_W == pytest.approx(preset.P_idle_mW / 1000, rel=0.01)
    assert line.e_uJ == pytest.approx(1e6 * e_J, rel=0.01)


def test_background_work_is_found_as_the_ledger_has_it():
    it = device(SATA_TLC, idle_gc_share=0.5)
    it.drive.precondition("random", 1.5)
    it.drive.closed_loop(queue_depth=8, t_ns=0, duration_ns=S // 2)
    begin = 9 * S // 10  # what the load left in the cache is on NAND, and idle collection begins in 0.1 s
    it.drive.advance(begin)
    first = it.drive.ledger()
    nand_bytes = lambda: nvme_pages.decode_c0h(smartlog.log_c0h(it.health()))["nand_written_bytes"]
    counted = nand_bytes()
    for t in range(begin, begin + 30 * S, 10 * MS):
        it.drive.advance(t)
    power_W = [it.drive.energy_between(begin + i * S, begin + (i + 1) * S) for i in range(29)]
    verdict = quiet.verdict(power_W, 20)
    work = it.drive.ledger()
    assert verdict.reached and verdict.floor_W == pytest.approx(0.05)
    asleep_s = (int(it.drive.m[nand.S_ACTIVE_UNTIL]) - begin) / S + 2.001  # and two seconds until slumber
    assert 0 <= verdict.after_s - asleep_s <= 1
    spent = ("controller", "read", "program", "erase", "transfer")
    above_J = sum(work[f"energy_{name}_J"] - first[f"energy_{name}_J"] for name in spent)
    above_J += (SATA_TLC.P_idle_mW / 1000 - 0.05) * asleep_s
    assert verdict.above_J == pytest.approx(above_J, rel=0.01)
    wrote = {key: work[key] - first[key] for key in work if key.startswith("nand_") and key.endswith("_bytes")}
    assert nand_bytes() - counted == wrote["nand_write_bytes"] == wrote["nand_idle_gc_bytes"] > 1e6


def test_a_rest_is_told_by_the_samples_of_the_step_itself(tmp_path):
    """Live, a second of 1.4 W of the load before it was counted; the samples of the step have 3 s of 0.9 W."""
    head = 'schema = 1\nname = "demo"\ntitle = "Rest"\nsource = "a test"\nabout = "A rest."\nneeds = ["rig"]\n'
    w = Writer(
        tmp_path, head + '[[step]]\nname = "rest"\ndo = "idle"\nuntil = "quiet"\nleast = "6 s"\nmost = "1 min"\n'
    )
    w.event("step.start", step="rest")
    for watts, seconds in ((0.9, 3), (0.05, 7)):
        w._power(watts)
        w.t_ns += seconds * S
    w._power(0.5)
    w.event("step.end", step="rest", ok=True)
    live = quiet.verdict([1.4] + [0.9] * 3 + [0.05] * 6, 6)._asdict()
    written = {"nand_written_bytes": 10**9, "host_written_bytes": 0, "nand_why": None}
    w.event("quiet", step="rest", **live, lasted_s=10, **written)
    (rest,) = table.load(w.end(power=True)).rows
    assert (live["after_s"], live["above_J"]) == (4, pytest.approx(1.35 + 2.55))
    assert (rest.result["after_s"], rest.result["above_J"]) == (3, pytest.approx(2.55, rel=0.01))
    assert rest.result["energy_J"] == pytest.approx(3 * 0.9 + 7 * 0.05, rel=0.01) and rest.result["lasted_s"] == 10
    assert sentences(rest)[0] == "quiet after 3 s at 0.05000 ± 0.00059 W; 2.549 ± 0.030 J above that"
    assert rest.result["J_per_GB"] is None and rest.result["J_per_GB_why"]  # what staying awake takes is not known


# --- average power

BENCH = average_power_formula.Measured(6000.0, 3000.0, 800e9, 0.04, 90.0, 120.0, 500, 0.02)


def test_average_power_is_the_closed_form_term_by_term():
    average = average_power_formula.average(BENCH, 40e9, "a heavy user")
    period_s = 20 * 86_400.0
    joules = 6000 + (90 + 0.04 * 120) + 500 * 0.02 + 0.04 * (period_s - 3000 - 120)
    assert average.period_s == period_s and average.power_W == pytest.approx(joules / period_s)
    assert average.energy_Wh_per_day == pytest.approx(joules / 3600 / 20)
    assert sum(term.energy_J for term in average.terms) == pytest.approx(joules)
    assert sum(term.share for term in average.terms) == pytest.approx(1)
    lines = average.lines()
    assert lines[0].startswith("average power 0.0435 W, error not known, 1.04 Wh a day") and "of 20 days" in lines[0]
    known = average_power_formula.average(BENCH, 40e9, "a heavy user", {"bench_J": 60.0, "idle_W": 4e-4})
    assert known.lines()[0].startswith("average power 0.04346 ± 0.00040 W, 1.0431 ± 0.0096 Wh a day")
    assert [line for line in lines if line.startswith("assumed: a heavy user writes 40.0 GB a day")]
    assert len(lines) == 1 + 4 + len(average.assumptions)
    # without downtime it is the benchmark's own power
    busy = average_power_formula.Measured(6000.0, 3000.0, 800e9, 0.04)
    assert average_power_formula.average(busy, 800e9 * 86_400 / 3000).power_W == pytest.approx(2.0)


def test_the_error_of_average_power_is_that_of_simulated_terms():
    errors = {"bench_J": 60.0, "idle_W": 0.002, "background_above_J": 5.0}
    average = average_power_formula.average(BENCH, 40e9, errors=errors)
    rng = np.random.default_rng(3)
    drawn = [
        average_power_formula.average(
            BENCH._replace(**{key: rng.normal(getattr(BENCH, key), error / 2) for key, error in errors.items()}), 40e9
        ).power_W
        for _ in range(4000)
    ]
    assert average.power_error_W == pytest.approx(2 * np.std(drawn), rel=0.05)
    assert average_power_formula.average(BENCH, 40e9, errors={"bench_J": 1.0}).power_error_W is None


def rest_row(above_J, error_J, nand_bytes):
    event = {"kind": "quiet", "reached": True, "above_J": above_J, "above_error_J": error_J}
    return SimpleNamespace(state="done", result=event | {"nand_written_bytes": nand_bytes})


def test_energy_of_a_rest_is_work_beyond_staying_awake():
    """Seen: 0.887 J without any NAND write; the rest of 1.77 J and 67.7 MB was called 26.2 J/GB."""
    idle, busy = rest_row(0.887, 0.02, 0), rest_row(1.77, 0.03, 67_700_000)
    rest.per_GB([idle, busy], 512_000)
    assert busy.result["J_per_GB"] == pytest.approx((1.77 - 0.887) / 0.0677, rel=1e-6) and "J_per_GB" not in idle.result
    assert busy.result["J_per_GB_error"] == pytest.approx(busy.result["J_per_GB"] * 0.0409, rel=0.05)
    for rows, unit in (([rest_row(1.77, 0.03, 67_700_000)], 512_000), ([idle, rest_row(0.89, 0.03, 10**6)], 512_000)):
        rest.per_GB(rows, unit)
        assert rows[-1].result["J_per_GB"] is None and rows[-1].result["J_per_GB_why"]
    rng = np.random.default_rng(5)
    right = 0
    for _ in range(1000):
        idle, busy = (rest_row(rng.normal(1.0, 0.05), 0.1, nand) for nand in (0, 10**8))
        rest.per_GB([idle, busy], 512_000)
        right += busy.result["J_per_GB"] is None or abs(busy.result["J_per_GB"]) <= busy.result["J_per_GB_error"]
    assert right >= 950


def test_no_downtime_is_no_average():
    average = average_power_formula.average(BENCH, 800e9 * 86_400 / 3000)
    assert average.power_W is None and "no downtime is left" in average.lines()[0]
    for bad in (0, -1):
        with pytest.raises(ValueError):
            average_power_formula.average(BENCH, bad)


# --- the view

PLAN = """schema = 1
name = "demo"
title = "Load line"
source = "a test"
about = "Power over rate."
[[step]]
name = "reads"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
over = [{ rate = ["1 kIOPS", "2 kIOPS", "3 kIOPS", "9 kIOPS"] }]
time = "2 s"
[[show]]
view = "load-line"
of = "reads"
"""


def lined(runs):
    """Three rates on the line, one that was not reached."""
    w = Writer(runs, PLAN)
    for number, (rate, done) in enumerate(((1000, 1000), (2000, 2000), (3000, 3000), (9000, 5000)), 1):
        w.load(
            "reads",
            [done] * 2,
            P0 + E * done if done == rate else 1.3,
            folder=f"reads/p{number:02}",
            point={"rate": f"{rate // 1000} kIOPS"},
        )
    return table.load(w.end(power=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Its loads of 2 s have errors, which loads of less than 20 s have not."""
    with short_loads.with_errors():
        return lined(tmp_path_factory.mktemp("line"))


def test_the_view_says_what_the_line_is(run):
    points = load_line_html.measured(run, "reads", {})
    assert [point.asked for point in points] == [1000, 2000, 3000, 9000]
    line = load_line_fit.fit(points)
    assert (line.P0_W, line.e_uJ) == (pytest.approx(P0, rel=0.01), pytest.approx(41.5, rel=0.01))
    made = load_line_html.load_line_view(Context([run], ["x"], run.plan.shows[0]))
    assert (
        "1.2" in made
        and " W to keep it awake, 41.5 ± " in made
        and "by 3 points; 1 left out, below the rate asked for" in made
    )
    assert made in page.render([run])
    assert load_line_html.in_words(load_line_fit.fit([])).startswith("no line: 0 of 0 points")


def test_a_line_that_is_not_claimed_has_no_figures_in_its_caption(tmp_path):
    folder = lined(tmp_path).path
    events = journal.events(folder)
    busy = {"kind": "witness", "step": "reads", "label": "reads rate=1kIOPS", "cpus_busy_percent": [100.0]}
    seal(folder, [*events[:-1], {"t_ns": events[-1]["t_ns"], **busy}, events[-1]])
    run = table.load(folder)
    made = load_line_html.load_line_view(Context([run], [""], run.plan.shows[0]))
    assert "to keep it awake" not in made and "<p>not claimed, host: reads rate=1kIOPS: " in made
    two = load_line_html.load_line_view(Context([run, run], ["x", "y"], run.plan.shows[0]))
    assert two.count("<p>x: not claimed, host: ") == 1 and "to keep it awake" not in two


# --- average power on a page

AVERAGE = """schema = 1
name = "demo"
title = "Average"
source = "a test"
about = "A benchmark and a rest."
needs = ["rig"]
[[step]]
name = "bench"
do = "load"
pattern = "random"
read = 50
block = "4 KiB"
time = "4 s"
[[step]]
name = "rest"
do = "idle"
until = "quiet"
least = "6 s"
most = "1 min"
[[show]]
view = "average-power"
of = "bench"
"""


def averaged(folder, name, rest: bool, serial="SIM0001", text=AVERAGE):
    """4 s of 2000 I/Os a second at 2 W; then, with `rest`, 3 s of 0.9 W and 7 s of 0.05 W."""
    w = Writer(folder, text, name=name, more={"drive": DRIVE | {"serial": serial}})
    w.load("bench", [2000] * 4, 2.0)
    if rest:
        w.event("step.start", step="rest")
        for watts, seconds in ((0.9, 3), (0.05, 7)):
            w._power(watts)
            w.t_ns += seconds * S
        w.event("step.end", step="rest", ok=True)
        live = quiet.verdict([0.9] * 3 + [0.05] * 7, 6)._asdict()
        w.event("quiet", step="rest", **live, lasted_s=10, nand_written_bytes=0, host_written_bytes=0, nand_why=None)
    return table.load(w.end(power=True))


def test_the_page_prints_each_term_and_assumption(tmp_path):
    own = averaged(tmp_path, "own", True, text=AVERAGE + 'rest = "rest"\n')
    terms = average_power_terms.of(own, ["bench"], "rest")
    measured = terms.measured
    assert measured.bench_J == pytest.approx(8, rel=0.01) and measured.bench_s == pytest.approx(4, abs=0.05)
    assert measured.bench_written_bytes == pytest.approx(4000 * 4096, rel=0.01)
    assert measured.idle_W == pytest.approx(0.05, rel=0.02) and measured.background_above_J == pytest.approx(
        2.55, rel=0.02
    )
    html = page.render([own])
    for words in ("light, 10.0 GB a day", "a heavy user writes 40.0 GB a day", "workstation", "background work, J"):
        assert words in html
    light = average_power_formula.average(measured, 10e9)
    assert f"{1000 * light.power_W:.3g}"[:4] in html and "the drive stays powered all the time" in html


def test_terms_may_be_of_another_run_of_the_same_drive(tmp_path):
    bench, rest, other = (
        averaged(tmp_path, name, rested, serial)
        for name, rested, serial in (("a", False, "X"), ("b", True, "X"), ("c", True, "Y"))
    )
    terms = average_power_terms.of(bench, ["bench"], None, [bench, rest, other])
    assert terms.measured.idle_W == pytest.approx(0.05, rel=0.02) and terms.source.endswith("rest of run b")
    assert "no other run of this drive" in average_power_terms.of(bench, ["bench"], None, [bench, other]).why
    assert "no other run of this drive" in page.render([bench])
