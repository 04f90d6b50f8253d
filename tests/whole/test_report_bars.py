"""The cards of the report in a browser: each bar's pixels against its figure, percent and ranking, runs that are not
comparable."""

import pytest
import synthetic_run
from browser import chromium  # noqa: F401  a fixture
from test_report import MORE, PLATEAU, READY, run_command

OWN = PLATEAU + [5000, 6000] * 16  # steady: a window that is not has no rank

# of each bar that is shown: card, run, its value, the pixels of its fill
BARS = """[...document.querySelectorAll('.row')].filter(row => row.offsetParent && row.dataset.value).map(row =>
  [row.closest('.card').dataset.key, +row.dataset.run, parseFloat(row.dataset.value),
   row.querySelector('.fill').getBoundingClientRect().width])"""
CARD = "document.querySelector('.card[data-key={}]').querySelectorAll('.row')[{}]"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Four comparable runs with long names, one that died, one that was shorter."""
    base = tmp_path_factory.mktemp("runs")
    kinds = [
        ("SIMULATED one", None, OWN, 2.5, "complete"),
        ("SIMULATED one", 25, MORE, 2.6, "complete"),
        (
            "SIMULATED a drive with a name that no card has room for and no phone either 2 TB",
            None,
            MORE,
            4.0,
            "complete",
        ),
        ("SIMULATED a drive with a name that no card has room for and no phone either 2 TB", 25, OWN, 2.55, "complete"),
        ("SIMULATED dies", None, [40000] * 16, 1.0, None),
        ("SIMULATED short", None, [50000] * 30, 1.0, "complete"),
    ]
    return [
        synthetic_run.write(
            base,
            iops,
            watts=((-100, 1.0), (0, watts)),
            zoom_s=14,
            model=model,
            op_percent=op,
            state=state,
            name=f"run-{i}",
            wa=1.5 + i,
            lat_ns=700_000 + 900_000 * i,
        )
        for i, (model, op, iops, watts, state) in enumerate(kinds)
    ]


@pytest.fixture(scope="module")
def made(folders, tmp_path_factory):
    """(page, figures)"""
    out = tmp_path_factory.mktemp("page") / "all.html"
    run_command(*folders, "--out", out)
    return out, synthetic_run.shown(folders)


def check_scale(bars):
    """Fill / value is the same for all bars of a card within 1 %, and longer bars have larger values."""
    assert len(bars) > 20
    for key in {bar[0] for bar in bars}:
        of_card = sorted((value, px) for name, _, value, px in bars if name == key)
        scale = max(px for _, px in of_card) / max(value for value, _ in of_card)
        for value, px in of_card:
            assert px == pytest.approx(value * scale, rel=0.01, abs=0.05), (key, value)
        assert [px for _, px in of_card] == sorted(px for _, px in of_card), key


@pytest.mark.slow
def test_all_bars_of_a_card_are_on_one_scale_before_and_after_a_click(chromium, made):
    for width in (1400, 390):
        chromium.send(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False},
        )
        chromium.open(made[0], ready=READY)
        check_scale(chromium.js(BARS))
        for run in (0, 2):
            chromium.js(CARD.format("iops_mean", run) + ".click()")
            assert chromium.js(CARD.format("iops_mean", run) + ".getAttribute('aria-pressed')") == "true"
            check_scale(chromium.js(BARS))
    chromium.send("Emulation.clearDeviceMetricsOverride")


def test_bars_that_are_not_on_one_scale_are_found():
    bars = [[str(k), i, float(i + 1), 20.0 * (i + 1)] for k in range(6) for i in range(4)]
    check_scale(bars)
    bars[3][3] *= 1.02
    with pytest.raises(AssertionError):
        check_scale(bars)


def percent(chromium, key, run):
    return chromium.js(CARD.format(key, run) + ".querySelector('.percent').textContent")


@pytest.mark.slow
def test_clicking_a_bar_shows_the_others_in_percent_of_it(chromium, made):
    chromium.open(made[0], ready=READY)
    chromium.js(CARD.format("iops_mean", 0) + ".click()")
    means = [f["iops_mean"] for f in made[1]]
    assert percent(chromium, "iops_mean", 0) == "= 100 %"
    assert percent(chromium, "iops_mean", 1) == f"+{100 * (means[1] / means[0] - 1):.1f} %, better"
    assert percent(chromium, "iops_mean", 3) == "±0.0 %, equal"
    assert percent(chromium, "wa", 1).endswith(", worse")
    assert percent(chromium, "power_mean_W", 1).startswith("+4.0 %")
    assert chromium.js("location.hash") == "#ref=run-0"
    chromium.js(CARD.format("iops_mean", 0) + ".click()")
    assert "%," not in percent(chromium, "iops_mean", 1)


@pytest.mark.slow
def test_a_run_that_is_not_comparable_is_hatched_not_ranked_and_says_why(chromium, made):
    html = made[0].read_text()
    assert ">Not comparable: aborted after 16 of 16 s<" in html
    assert ">Not comparable: load 30 s, reviewed run 44 s<" in html
    chromium.open(made[0], ready=READY)
    rows = "[...document.querySelectorAll('[data-view=\"0\"] .card[data-key=power_mean_W] .row')]"
    apart = rows + ".map(r => r.classList.contains('apart'))"
    assert chromium.js(apart) == [False] * 4 + [True] * 2
    fill = "getComputedStyle({}.querySelector('.fill')).backgroundImage"
    assert "gradient" in chromium.js(fill.format(CARD.format("iops_mean", 5)))
    assert "gradient" not in chromium.js(fill.format(CARD.format("iops_mean", 0)))
    best = "[...document.querySelectorAll('[data-view=\"0\"] .card[data-key=%s] .best')].map(r => +r.dataset.run)"
    means = [f["iops_mean"] for f in made[1]]
    assert max(means[1], means[2]) < means[5]
    assert chromium.js(best % "iops_mean") == [i for i in range(4) if means[i] == max(means[:4])]
    assert chromium.js(best % "wa") == [0]
    chromium.js(CARD.format("iops_mean", 0) + ".click()")
    assert percent(chromium, "iops_mean", 5) == "not comparable"
    # with the short run reviewed, it is the others that are not
    review = "document.querySelector('select[name=review]')"
    chromium.js(f"{review}.value = '5'; {review}.dispatchEvent(new Event('change', {{bubbles: true}}))")
    assert chromium.js(apart) == [True] * 5 + [False]
    assert chromium.js("document.querySelector('.names .row[data-run=\"0\"] .why').textContent").startswith(
        "Not comparable: load 44 s, reviewed run 30 s"
    )
    assert chromium.js(best % "iops_mean") == []
