"""The thermal plan: the body of the model is found again, and its throttle threshold; the view; readings in a rest."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_plan import Writer

from ssdrig.reading import table
from ssdrig.reading.review_folder import Done
from ssdrig.report import page, review_page
from ssdrig.report.library import Facts, Member
from ssdrig.views.thermal import figures as thermal_fit
from ssdrig.virtual.device import thermal as model
from ssdrig.virtual.flash.presets import NVME_TLC, SATA_TLC

STEP_S = 0.1
PHASES = ((False, 20), (True, 100), (False, 80))


def warmed(preset, idle_W, busy_W, every_s=2, phases=PHASES, speed=500.0):
    """The model through the phases: (s, whole °C of its readings; W of each second; speed of each second)."""
    state = model.cold() | {"temperature_C": model.AMBIENT_C + preset.K_per_W * idle_W}
    at_s, celsius, watts, speeds, n = [], [], [], [], round(1 / STEP_S)
    for busy, seconds in phases:
        for _ in range(round(seconds / STEP_S)):
            share = model.speed(preset, state)
            power = idle_W + (busy_W - idle_W) * share * busy
            state = model.step(preset, state, power, STEP_S, True, (None, None))
            watts.append(power)
            speeds.append(speed * share * busy)
            if len(watts) % (every_s * n) == 0:
                at_s.append(len(watts) * STEP_S)
                celsius.append(round(state["temperature_C"]))
    by_second = [np.array(series).reshape(-1, n).mean(axis=1) for series in (watts, speeds)]
    return np.array(at_s), np.array(celsius), *by_second


@pytest.mark.parametrize(("preset", "idle_W", "busy_W"), [(SATA_TLC, 0.5, 1.9), (NVME_TLC, 1.25, 7.0)])
def test_the_constants_of_the_model_are_found(preset, idle_W, busy_W):
    at_s, celsius, watts, _ = warmed(preset, idle_W, busy_W)
    body = thermal_fit.fit(at_s, celsius, np.arange(len(watts) + 1), watts)
    assert body.why is None and body.K_per_W == pytest.approx(preset.K_per_W, rel=0.05)
    assert body.tau_s == pytest.approx(preset.thermal_tau_s, rel=0.05)
    assert body.rest_C == pytest.approx(model.AMBIENT_C, abs=1)
    assert abs(body.K_per_W - preset.K_per_W) < 1.5 * body.K_per_W_error < 0.2 * preset.K_per_W
    assert abs(body.tau_s - preset.thermal_tau_s) < 1.5 * body.tau_error_s
    fitted = thermal_fit.curve(body, at_s, np.arange(len(watts) + 1), watts)
    assert np.abs(fitted - celsius).max() < 1.2 and body.scatter_K < 0.5


def test_the_throttle_threshold_is_the_models():
    begin, end = 20, 120
    for K_per_W, threshold_C in ((10.0, model.WARNING_C), (5.0, None)):
        at_s, celsius, _, speeds = warmed(replace(NVME_TLC, K_per_W=K_per_W), 1.25, 7.0)
        under = (at_s >= begin) & (at_s <= end)
        throttled = thermal_fit.throttled(speeds[begin:end], at_s[under] - begin, celsius[under])
        if threshold_C:
            assert throttled.celsius == pytest.approx(threshold_C, abs=1) and throttled.share == pytest.approx(0.6)
        else:
            assert throttled.celsius is None and "no fall of the speed" in throttled.why


def test_the_end_of_a_cache_is_no_throttling():
    at_s, celsius, _, speeds = warmed(SATA_TLC, 0.5, 1.9)
    speeds[40:] *= 0.3
    under = (at_s >= 20) & (at_s <= 120)
    assert thermal_fit.throttled(speeds[20:120], at_s[under] - 20, celsius[under]).celsius is None


def test_what_is_too_little_is_not_fitted():
    at_s, celsius, watts, _ = warmed(SATA_TLC, 0.5, 1.9)
    edges_s = np.arange(len(watts) + 1)
    assert "12 that differ by 3 K" in thermal_fit.fit(at_s[:8], celsius[:8], edges_s, watts).why
    assert "differ by 0 K" in thermal_fit.fit(at_s, celsius * 0 + 30, edges_s, watts).why
    assert "power samples" in thermal_fit.fit(at_s, celsius, edges_s, watts * np.nan).why
    slow = replace(SATA_TLC, thermal_tau_s=1500.0, K_per_W=40.0)
    at_s, celsius, watts, _ = warmed(slow, 0.5, 2.5)
    assert "beyond what readings" in thermal_fit.fit(at_s, celsius, edges_s, watts).why
    assert thermal_fit.throttled([1.0] * 4, [0, 1], [30, 31]).why and thermal_fit.fit([], [], edges_s, watts).why


PLAN = """schema = 1
name = "demo"
title = "Temperature"
source = "a test"
about = "Load and rest."
[[step]]
name = "before"
do = "idle"
time = "10 s"
smart = "1 s"
[[step]]
name = "load"
do = "load"
pattern = "sequential"
read = 0
block = "4 KiB"
time = "60 s"
smart = "1 s"
[[step]]
name = "after"
do = "idle"
time = "60 s"
smart = "1 s"
[[show]]
view = "thermal"
of = ["before", "load", "after"]
"""


def heated(runs, speeds=(1000,) * 60, busy=50.0):
    """10 s at 0.5 W, 60 s at 4.5 W, 60 s at 0.5 W; 5 K/W and 20 s. `busy`: of the host's CPUs in the load."""
    w = Writer(runs, PLAN)
    w.step("before", 10, 0.5)
    begin_ns = w.t_ns
    w.load("load", list(speeds), 4.5)
    w.event("witness", step="load", label="load", cpus_busy_percent=[busy, busy])
    w.step("after", 60, 0.5)
    end_ns, celsius = w.t_ns, 27.5
    w.t_ns = begin_ns - 10_000_000_000
    for second in range(131):
        power = 4.5 if 10 <= second < 70 else 0.5
        w.poll("poll", 2**30, 2**30, round(celsius))
        celsius += (25 + 5 * power - celsius) * (1 - np.exp(-1 / 20))
        w.t_ns = begin_ns + (second - 9) * 1_000_000_000
    w.t_ns = end_ns
    return table.load(w.end(power=True))


def test_each_sensor_has_its_highest_reading():
    readings = [[41, None], [44, None, 60], [], [43, None, 71]]
    assert thermal_fit.highest(readings) == [44, None, 71] and thermal_fit.highest([[], []]) == []


def test_the_page_has_the_body_of_the_run(tmp_path):
    run = heated(tmp_path)
    result = next(row.result for row in run.rows if row.act.path == "load")
    assert result["K_per_W"] == pytest.approx(5, rel=0.05) and result["tau_s"] == pytest.approx(20, rel=0.08)
    assert result["warning_temp_min"] == 0 and result["throttled"]["celsius"] is None
    html = page.render([run])
    assert "K/W ±" in html and "time constant" in html and "no throttling seen" in html
    bare = Writer(tmp_path, PLAN, name="bare")
    bare.load("load", [1000] * 60, 4.5)
    html = page.render([table.load(bare.end(power=False))])
    assert "thermal resistance not known: 0 readings" in html


def test_a_review_shows_the_plot_and_folds_tables_only(tmp_path):
    run = heated(tmp_path)
    member = Member(Facts("x"), "one", "default OP", "", {run.plan.name: run}, True)
    shown, *folded = review_page.plan([run], [Done(run.path, "complete")], [member]).split("<details>")
    assert "time constant" in shown and review_page.PLOT in shown
    assert not [part for part in folded if "<summary>Tables<" in part and review_page.PLOT in part]


@pytest.mark.parametrize(("busy", "throttled"), [(50.0, True), (100.0, False)])
def test_a_fall_of_the_speed_on_a_busy_host_is_no_throttling(tmp_path, busy, throttled):
    run = heated(tmp_path, [1000] * 50 + [400] * 10, busy)
    throttling = next(row.result for row in run.rows if row.act.path == "load")["throttled"]
    assert (throttling["celsius"] is not None) is throttled
    assert throttled or throttling["why"].startswith("host-limited: ")
