"""Episodes laid on each other: the energy of one against samples whose truth is known, and against the ledger."""

import json

import json_documents
import numpy as np
import pytest
import synthetic_plan
import synthetic_run

from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.views import documents
from ssdrig.views.episodes import figures

SCHEMA = json_documents.FOLDER / "report.schema.json"


def powered(level_W, pulses, noise_W=0.02, seed=1):
    """Power over time: a level with noise, and pulses (begin s, lasts s, W above the level)."""
    rng = np.random.default_rng(seed)
    begins, lasts, watts = (np.array(column, float) for column in zip(*pulses, strict=True))

    def at(t_s):
        place = np.searchsorted(begins, t_s, "right") - 1
        near = np.clip(place, 0, None)
        inside = (place >= 0) & (t_s < begins[near] + lasts[near])
        return level_W + np.where(inside, watts[near], 0.0) + rng.normal(0, noise_W, len(t_s))

    return at


def loaded(tmp_path, watts, seconds=60, smart_every_s=5):
    """The row of a load of the consistency test with this power, and its episodes by kind."""
    run = synthetic_run.write(
        tmp_path, [1000] * seconds, watts=watts, smart_every_s=smart_every_s, zoom_s=seconds // 2, edges=False
    )
    whole = table.in_full(run)
    row = next(row for row in whole.table.rows if row.act.path == "load")
    return whole, row, {of["of"]: of for of in row.episodes}


def test_smart_readings_cost_what_they_draw(tmp_path):
    pulses = [(t, 0.012, 1.5) for t in range(5, 60, 5)]
    whole, row, of = loaded(tmp_path, powered(2.0, pulses))
    smart = of["smart"]
    assert (smart["count"], smart["laid"], smart["why"]) == (11, 11, None)
    assert smart["level_W"] == pytest.approx(2.0, abs=0.03)
    assert abs(smart["energy_J"] - 0.018) < smart["energy_error_J"] < 0.004
    began = next(i for i, watts in enumerate(smart["mean_W"]) if watts > 2.5)
    assert abs(smart["begins_s"] + began * smart["step_s"]) <= smart["step_s"]
    assert not list(json_documents.wrong(documents.of_table(whole.table), json.loads(SCHEMA.read_text())))


def test_bursts_are_found_and_cost_what_they_draw(tmp_path):
    pulses = [(0.3 + 0.5 * i, 0.032, 0.9) for i in range(119)]
    _, _, of = loaded(tmp_path, powered(1.2, pulses, 0.03), smart_every_s=100)
    burst = of["burst"]
    assert "smart" not in of and (burst["count"], burst["laid"]) == (119, 100)
    assert abs(burst["energy_J"] - 0.9 * 0.032) < burst["energy_error_J"] < 0.002
    assert burst["lasts_s"] == pytest.approx(0.044, abs=0.006)  # with a cell on each side


def test_bursts_beside_readings_are_not_theirs(tmp_path):
    pulses = sorted([(t, 0.012, 1.5) for t in range(5, 60, 5)] + [(t + 0.7, 0.1, 0.8) for t in range(60)])
    _, _, of = loaded(tmp_path, powered(2.0, pulses))
    assert of["burst"]["count"] == 60
    assert abs(of["smart"]["energy_J"] - 0.018) < of["smart"]["energy_error_J"]
    assert abs(of["burst"]["energy_J"] - 0.08) < of["burst"]["energy_error_J"]


def test_noise_has_no_energy(tmp_path):
    _, _, of = loaded(tmp_path, powered(2.0, [(1e6, 1, 1)], 0.2))
    assert of["smart"]["energy_J"] is None and "within its uncertainty" in of["smart"]["why"]
    assert of["burst"]["count"] == 0 and of["burst"]["energy_J"] is None and of["burst"]["why"]


def test_two_are_too_few(tmp_path):
    pulses = [(t, 0.012, 1.5) for t in (10, 20)]
    _, _, of = loaded(tmp_path, powered(2.0, pulses), seconds=28, smart_every_s=10)
    smart = of["smart"]
    assert smart["laid"] == 2 and smart["energy_J"] is None and "3" in smart["why"] and len(smart["mean_W"]) > 20


def test_readings_of_which_none_is_clear_of_others_give_a_reason(tmp_path):
    """Each lasts 12 ms and begins 2 ms after the end of the one before."""
    run = synthetic_run.write(tmp_path, [1000] * 30, smart_every_s=5, zoom_s=12, edges=False)
    row = next(row for row in table.in_full(run).table.rows if row.act.path == "load")
    times = [row.data.t0_ns + 10**9 + 14_000_000 * i for i in range(20)]
    events = [
        {"kind": kind, "n": n, "t_ns": t_ns + shift}
        for n, t_ns in enumerate(times)
        for kind, shift in (("smart.start", 0), ("smart.end", 12_000_000))
    ]
    smart = figures.readings(events, row.data.t0_ns, row.data.t0_ns + 30 * 10**9, 1)
    assert (smart.seen, len(smart.begin_ns)) == (20, 0)
    of = figures.Asker(row, np.empty(0, np.int64), 0.01, smart)._of_smart([None], 1.0, None)  # no power is asked for
    assert of["count"] == 20 and of["energy_J"] is None and of["why"]


def test_a_load_in_bursts_for_most_of_the_time_has_no_level(tmp_path):
    pulses = [(0.05 * i, 0.03, 1.0) for i in range(1200)]
    _, _, of = loaded(tmp_path, powered(1.0, pulses), smart_every_s=100)
    assert of["burst"]["energy_J"] is None and of["burst"]["why"]


def test_without_a_meter_there_are_reasons(tmp_path):
    run = synthetic_run.write(tmp_path, [1000] * 30, power=False, smart_every_s=5, zoom_s=12)
    row = next(row for row in table.load(run).rows if row.act.path == "load")
    assert [(of["of"], of["energy_J"], bool(of["why"])) for of in row.episodes] == [
        ("smart", None, True),
        ("burst", None, True),
    ]


@pytest.mark.parametrize("truth_J", [0.005, 0.05])
def test_the_error_holds_the_truth(truth_J):
    """Of 400 runs of eight episodes each, in noise and with a drift, the truth is outside in at most one of twenty."""
    rng, outside, known = np.random.default_rng(3), 0, 0
    for _ in range(400):
        n, cells, cell_s = 8, 60, 0.002
        watts = 1.5 + rng.normal(0, 0.03, (n, cells)) + rng.normal(0, 0.1, (n, 1))
        each_J = truth_J * rng.normal(1, 0.2, (n, 1))
        watts[:, 20:40] += each_J / 20 / cell_s
        cut = figures.Cut(watts, np.full(n, 20), np.full(n, 40), 20, cell_s, n)
        of = figures.figures_of(figures.SMART, cut, 0.5)
        if of["energy_J"] is not None:
            known += 1
            outside += abs(of["energy_J"] - truth_J) > of["energy_error_J"]
    assert known > 200 and outside <= 0.065 * known  # 5 % and three deviations


WAKES = """schema = 1
name = "demo"
title = "Wakes"
source = "a test"
about = "One read a second."
[[step]]
name = "wake"
do = "load"
pattern = "random"
read = 100
block = "4 KiB"
over = [{ every = ["500 ms", "1 s"] }]
until = [{ ios = 40 }, { time = "20 s" }]
smart = "none"
[[show]]
view = "episodes"
of = "wake"
"""


def test_each_pause_has_its_wakes_and_a_panel(tmp_path):
    w = synthetic_plan.Writer(tmp_path, WAKES)
    for place, (every, rate, joules) in enumerate(((0.5, 2, 0.01), (1.0, 1, 0.04)), 1):
        point = {"every": "500 ms" if every == 0.5 else "1 s"}
        w.load("wake", [rate] * 20, 0.1, folder=f"wake/p{place:02}", point=point)
        begin_s = (w.t_ns - synthetic_run.T_RUN_NS) / 1e9 - 20 - 0.2
        for i in range(round(19 / every)):
            at_s = begin_s + 0.25 + i * every
            w.watts += [(at_s, 2.1), (at_s + joules / 2, 0.1)]
    w.watts.sort()
    run = table.load(w.end())
    rows = [row for row in run.rows if row.act.path == "wake"]
    assert [of["of"] for row in rows for of in row.episodes] == ["io", "io"]
    for row, truth_J in zip(rows, (0.01, 0.04), strict=True):
        (of,) = row.episodes
        assert of["count"] >= 18 and abs(of["energy_J"] - truth_J) < of["energy_error_J"]
    html = page.render([run])
    assert html.count('aria-label="I/Os after a pause, every') == 2 and "±" in html


def test_the_page_of_a_load_has_its_episodes(tmp_path):
    pulses = [(t, 0.012, 1.5) for t in range(5, 60, 5)]
    whole, _, _ = loaded(tmp_path, powered(2.0, pulses))
    assert whole.data.episodes[0]["of"] == "smart"
    html = page.render([], 0, [(whole.data, whole.figures)], folders=[whole.table.path])
    assert 'data-plate="episodes-smart"' in html and "12 mJ" not in html


def test_rounds_of_a_repeat_have_a_line_each(tmp_path):
    text = WAKES.replace('name = "wake"', 'name = "wakes"\ndo = "repeat"\ntimes = 2\n  [[step.step]]\n  name = "wake"')
    text = text.replace('of = "wake"', 'of = "wakes/wake"').replace(
        'over = [{ every = ["500 ms", "1 s"] }]', 'every = "1 s"'
    )
    w = synthetic_plan.Writer(tmp_path, text)
    for number in (1, 2):
        w.load("wakes/wake", [1] * 12, 0.1, folder=f"wakes/wake/r{number:02}", round=number)
        begin_s = (w.t_ns - synthetic_run.T_RUN_NS) / 1e9 - 12 - 0.2
        for i in range(11):
            w.watts += [(begin_s + 0.25 + i, 2.1), (begin_s + 0.27 + i, 0.1)]
    w.watts.sort()
    run = table.load(w.end())
    assert [[of["of"] for of in row.episodes] for row in run.rows] == [["io"], ["io"]]
    html = page.render([run])
    assert "round 1: 1" in html and "round 2: 1" in html


def in_cells(shape, noise_W, rng, bursts=25, seconds=30, energy_J=0.02):
    """Cells of 2 ms (mean, highest) of bursts of one energy and shape at random times: no two within 0.3 s."""
    n = 1000 * seconds
    watts = 1.5 + rng.normal(0, noise_W, n)
    for begin in (np.arange(bursts) + rng.uniform(0.2, 0.6, bursts)) * n / bursts:
        ms = np.arange(n - int(begin))
        form = {
            "box": (ms < 30) / 30,
            "ramp": np.clip(1 - ms / 40, 0, 1) / 20.5,
            "tail": np.exp(-ms / 12) / (1 / (1 - np.exp(-1 / 12))),
            "late": (ms < 10) * 0.7 / 10 + (ms < 60) * 0.3 / 60,
        }[shape]
        watts[int(begin) :] += 1000 * energy_J * form
    cells = watts.reshape(-1, 2)
    return cells.mean(axis=1), cells.max(axis=1)


@pytest.mark.parametrize(
    ("shape", "noise_W"), [("box", 0.05), ("box", 0.14), ("ramp", 0.05), ("tail", 0.05), ("late", 0.06)]
)
def test_energy_of_bursts_of_any_shape_is_within_its_error(shape, noise_W):
    """A burst that rises or falls slowly goes on below the threshold, and noise parts a weak one."""
    rng, known, outside = np.random.default_rng(11), 0, 0
    for _ in range(40):
        mean_W, highest_W = in_cells(shape, noise_W, rng)
        cut = figures.bursts(mean_W, highest_W, 0.002, np.zeros(len(mean_W), bool))
        of = figures.figures_of(figures.BURST, cut, 0.3)
        assert 23 <= of["count"] <= 28
        if of["energy_J"] is not None:
            known += 1
            outside += abs(of["energy_J"] - 0.02) > of["energy_error_J"]
            assert of["energy_error_J"] < 0.0062
    assert known >= 30 and outside <= 4


def test_energy_of_bursts_on_a_level_that_wanders_is_within_its_error():
    """The level is a random walk of five sizes (W a millisecond), 100 loads each. A burst is found sooner where the
    level is high."""
    rng, known, outside = np.random.default_rng(4), 0, 0
    for step_W in np.repeat([0.0007, 0.001, 0.0012, 0.0016, 0.002], 100):
        walk_W = np.cumsum(rng.normal(0, step_W, 30_000)).reshape(-1, 2)
        level_W = (np.abs(walk_W + 1.2) - 1.2).mean(axis=1)  # it draws 0.3 W at least
        mean_W, highest_W = (of + level_W for of in in_cells("box", 0.05, rng))
        cut = figures.bursts(mean_W, highest_W, 0.002, np.zeros(len(mean_W), bool))
        of = {"energy_J": None} if isinstance(cut, str) else figures.figures_of(figures.BURST, cut, 0.3)
        if of["energy_J"] is not None:
            known += 1
            outside += abs(of["energy_J"] - 0.02) > of["energy_error_J"]
    assert known >= 300 and outside <= 0.02 * known, (known, outside)  # 4 to 5 % by the mean step alone


def test_error_of_bursts_on_a_flat_level_is_of_their_scatter():
    """At most 20 % wider than the scatter of the episodes alone."""
    rng, wider = np.random.default_rng(8), []
    for _ in range(60):
        mean_W, highest_W = in_cells("box", 0.05, rng)
        cut = figures.bursts(mean_W, highest_W, 0.002, np.zeros(len(mean_W), bool))
        errors_J = [figures.figures_of(kind, cut, 0.3)["energy_error_J"] for kind in (figures.BURST, figures.SMART)]
        wider.append(errors_J[0] / errors_J[1])
    assert np.mean(wider) <= 1.2


def test_bursts_too_near_to_each_other_for_their_tails_give_null():
    """Each falls with 12 ms and begins 50 ms after the one before: no level is between them."""
    rng = np.random.default_rng(5)
    watts = 1.5 + rng.normal(0, 0.02, 30_000)
    for begin in range(100, 29_900, 50):
        watts[begin:] += 1.5 * np.exp(-np.arange(30_000 - begin) / 12)
    cells = watts.reshape(-1, 2)
    cut = figures.bursts(cells.mean(axis=1), cells.max(axis=1), 0.002, np.zeros(len(cells), bool))
    of = {"energy_J": None, "why": cut} if isinstance(cut, str) else figures.figures_of(figures.BURST, cut, 0.3)
    assert of["energy_J"] is None and of["why"]


@pytest.mark.parametrize("tail_s", [0.01, 0.05, 0.5])
def test_reading_after_which_the_drive_stays_awake_is_whole_or_null(tmp_path, tail_s):
    """Readings of 12 ms that draw 1 W more, which then falls with `tail_s`."""
    begins = np.arange(5, 60, 5)
    level = powered(2.0, [(t, 0.012, 1.0) for t in begins], 0.01)

    def watts(t_s):
        since_s = np.min(np.where(t_s[:, None] > begins + 0.012, t_s[:, None] - begins - 0.012, np.inf), axis=1)
        return level(t_s) + np.exp(-since_s / tail_s)

    _, _, of = loaded(tmp_path, watts)
    energy_J, error_J = of["smart"]["energy_J"], of["smart"]["energy_error_J"]
    assert energy_J is None or abs(energy_J - 0.012 - tail_s) < error_J
    assert (energy_J is None) == (tail_s == 0.5) or tail_s == 0.05
