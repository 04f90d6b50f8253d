"""The sentences at the head of the report: what they claim follows from the figures, and no more than these know."""

import re

import pytest

from ssdrig.reading.window_figures import KEYS
from ssdrig.report import verdict

STEADY = "steady state, 42–60 s"


def run(name, iops=None, **figures):
    of = dict.fromkeys(KEYS) | {"iops_mean": iops, "iops_sd": iops and iops / 50, "iops_min": iops and 0.9 * iops}
    of |= {"t0_s": 42, "t1_s": 60} | figures
    percent = of["power_uncertainty_percent"] or 0
    errors = {"iops_mean": (iops or 0) / 100, "wa": of["wa_error"], "iops_sd": of["iops_sd"] and 0.3 * of["iops_sd"]}
    errors |= {key: percent / 100 * of[key] for key in ("power_mean_W", "energy_uJ_per_io") if of[key]}
    errors |= {key: 0.01 * of[key] for key in ("lat_p999_us", "clat_p999_us") if of[key]}
    return verdict.Run(name, of | {"errors": {key: error for key, error in errors.items() if error is not None}})


def sentences(*runs, apart=None, review=0, label=STEADY):
    return verdict.sentences(label, runs, apart or [None] * len(runs), review)


OWN = run(
    "default OP", 9661, energy_uJ_per_io=142.1, wa=4.12, wa_error=0.01, power_mean_W=1.37, power_uncertainty_percent=1.2
)
MORE = run(
    "25 % OP", 20744, energy_uJ_per_io=69.1, wa=2.21, wa_error=0.01, power_mean_W=1.43, power_uncertainty_percent=1.2
)


def test_two_runs_are_compared_whichever_is_reviewed():
    for review in (0, 1):
        first, second = sentences(OWN, MORE, review=review)
        assert first.replace("\u202f", " ") == (
            "In the steady state (42–60 s) 25 % OP does 2.1 × the writes of default OP (20 744 against 9 661 IOPS),"
            " with 51 % less energy per write (69.1 against 142.1 µJ) and 46 % less write amplification (2.210 against"
            " 4.120), at 4 % more power (1.430 against 1.370 W)."
        )
        assert second == "In no figure of the table 25 % OP is clearly worse."


def test_what_is_worse_of_the_faster_one_is_said():
    spread = MORE._replace(figures=MORE.figures | {"iops_sd": 0.041 * 20744, "wa": 5.0})
    _, second = sentences(OWN, spread)
    assert second == (
        "Worse: 21 % more write amplification (5.000 against 4.120) and its seconds vary more (4.1 against 2.0 %)."
    )
    vague = spread.figures["errors"] | {"iops_sd": 0.6 * spread.figures["iops_sd"]}
    assert "vary more" not in sentences(OWN, spread._replace(figures=spread.figures | {"errors": vague}))[1]


@pytest.mark.parametrize(("percent", "claimed"), [(1.2, False), (0.3, True)])
def test_no_difference_is_claimed_within_the_uncertainty(percent, claimed):
    a = run("a", 20000, power_mean_W=2.00, energy_uJ_per_io=100.0, power_uncertainty_percent=percent)
    b = run("b", 10000, power_mean_W=2.03, energy_uJ_per_io=101.5, power_uncertainty_percent=percent)
    assert ("% less energy per write" in sentences(a, b)[0], "% less power" in sentences(a, b)[0]) == (claimed, claimed)
    assert "×" not in sentences(a, run("b", 19950))[0] and "(20\u202f000 against" in sentences(a, run("b", 19950))[0]


def test_runs_without_errors_are_not_called_equal():
    a, b = (run(name, iops) for name, iops in (("a", 20_000), ("b", 10_000)))
    bare = b._replace(figures=b.figures | {"errors": {}})
    assert "×" not in " ".join(sentences(a, bare)) and verdict.NOT_COMPARED in " ".join(sentences(a, bare))
    assert "2.0 ×" in sentences(a, b)[0]


def test_a_field_of_runs_is_led_and_the_reviewed_one_has_a_place():
    field = [
        run(name, iops, wa=wa, wa_error=0.01) for name, iops, wa in (("a", 9000, 2), ("b", 30000, 4), ("c", 8000, 3))
    ]
    first, second = sentences(*field)
    assert (
        "b is the fastest of 3 comparable runs" in first
        and "3.8 × the slowest (c," in first
        and "a is number 2" in first
    )
    assert second == "Lowest write amplification: a (2.000)."
    assert "number" not in sentences(*field, review=1)[0]


def bare(of):
    return of._replace(figures=of.figures | {"errors": {}})


@pytest.mark.parametrize(
    ("field", "leads", "place"),
    [
        ((run("a", 9000), run("b", 9900), run("c", 10_000), run("d", 8000)), "b and c|c and b", "number 3 "),
        ((run("a", 9000), run("b", 20_000), run("c", 9050), run("d", 8000)), "b", "number 2 to 3 "),
        ((run("a", 9000), run("b", 9900), bare(run("c", 10_000)), run("d", 8000)), None, None),
        ((run("a", 9000), bare(run("b", 9900)), run("c", 10_000), run("d", 8000)), None, None),
    ],
)
def test_none_of_a_field_is_called_the_fastest_within_the_errors(field, leads, place):
    first = sentences(*field)[0].replace("\u202f", " ")
    assert bool(re.search(rf"\) ({leads})(, within their errors, are| is) the fastest of 4", first)) == bool(leads)
    assert (place or "number") in first if place else "number" not in first


def test_a_run_without_an_error_has_no_lowest_figure():
    a, b = run("a", 9000, wa=2.5, wa_error=0.01), run("b", 30_000, wa=4, wa_error=0.01)
    field = [a, b, run("c", 8000, wa=2, wa_error=None)]
    assert len(sentences(*field)) == 1


def test_a_run_that_is_not_comparable_is_in_no_ranking():
    wins = run("dead", 99999)
    out = sentences(OWN, MORE, wins, apart=[None, None, "aborted after 3 of 60 s"])
    assert "dead" not in " ".join(out) and out[-1] == "1 of 3 runs is not comparable and left out."
    assert sentences(OWN, wins, apart=["x", "aborted after 3 of 60 s"], review=1) == [
        "No verdict: dead was aborted after 3 of 60 s, so no run is comparable with it."
    ]


def test_one_run_alone_and_one_without_figures():
    first, second = sentences(OWN)
    assert "does 9\u202f661 random writes per second, with a spread of 2.0 %" in first
    assert second == "A write costs 142.1 µJ; write amplification is 4.120."
    assert sentences(run("a")) == ["No verdict: a has no figures of this window."]


def test_steady_is_said_only_of_a_window_that_was_tested():
    assert sentences(OWN, label="42–60 s")[0].startswith("At 42–60 s of the load the drive")
    assert sentences(OWN, label="whole load, 0–60 s")[0].startswith("In the window whole load, 0–60 s")
    assert sentences(OWN, label="fresh plateau")[0].startswith("In the window fresh plateau the drive")
