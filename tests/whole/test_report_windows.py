"""The report shows one window at a time, names a window steady only where the rule passed, and one table shows all
phases."""

import json

import pytest
import synthetic_run
from browser import chromium  # noqa: F401  a fixture
from test_report import READY, run_command

from ssdrig.reading import table
from ssdrig.report import phases, views
from ssdrig.runs import journal
from ssdrig.views.terms import number, with_error

FLAT = [40000] * 10 + [8000, 8200] * 15
STEEP = [40000] * 10 + [12000 - 250 * i for i in range(30)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(page of a run that reaches steady state, one that does not, and one that died before the window; figures)"""
    base = tmp_path_factory.mktemp("runs")
    watts = ((-100, 1.0), (0, 3.0), (10, 2.0))
    runs = [
        synthetic_run.write(base, FLAT, zoom_s=20, watts=watts, queue_depth=32, lat_ns=32 * 10**9 // 8100, name="flat"),
        synthetic_run.write(base, STEEP, zoom_s=20, watts=watts, queue_depth=32, name="steep", model="SIMULATED b"),
        synthetic_run.write(base, FLAT[:15], zoom_s=20, watts=watts, state=None, name="dead", model="SIMULATED c"),
    ]
    out = base / "page.html"
    run_command(*runs, "--out", out, "--window", "last<b>=35:40")
    return out, synthetic_run.shown(runs, [("last<b>", 35, 40)])


def test_views_are_the_windows_in_order(made):
    shown = views.of(made[1])
    assert [view.label for view in shown] == ["20–40 s", "whole load", "fresh plateau, 0–10 s", "last<b>, 35–40 s"]
    assert [view.has for view in shown][0] == [True, True, False]
    for view, name in zip(shown, ("steady", "all", "fresh", "last<b>"), strict=True):
        for f, run in zip(view.figures, made[1], strict=True):
            window = run["windows"][name]
            assert f["iops_mean"] == (window["iops_mean"] if window else None)
            assert f["energy_uJ_per_io"] == (window["energy_uJ_per_io"] if window else None)
            assert f["fill_MBps"] == run["fill_MBps"]  # of the run
    # alone, the run that passed is called steady
    assert views.of(made[1][:1])[0].label == "steady state, 20–40 s"
    assert views.of(made[1][1:2])[0].label == "20–40 s"


def test_steady_state_is_said_only_where_the_rule_passed(made):
    html = made[0].read_text()
    facts = html.split('class="scroll facts" data-view="0"')[1].split("</table>")[0].split("<tr")[2:]
    verdict = made[1][0]["windows"]["steady"]["steady_state"]
    assert f"<b>yes</b>: average {number(verdict['average'], 0)} IOPS, range 0.0 % (limit 20)" in facts[0]
    assert "line 8" in facts[0] and "× round" in facts[0]
    assert "<b>no</b>: average" in facts[1] and "not in this run" in facts[2]
    assert "steady state" not in facts[1].lower()
    assert "last<b>" not in html


def test_drive_writes_and_littles_law_stand_beside_the_time(made):
    html = made[0].read_text()
    rows = html.split('class="scroll facts" data-view="0"')[1].split("</table>")[0].split("<tr")[2:]
    f = made[1][0]
    for row, run in zip(rows[:2], made[1][:2], strict=True):
        assert f"<td>20–40 s</td><td>{run['drive_writes_t0']:.2f}–{run['drive_writes_t1']:.2f}</td>" in row
    assert abs(f["littles_error_percent"]) < 2 and f"{f['littles_qd']:.2f} in flight" in rows[0]
    assert ": beyond 2 %</b>" in rows[1] and ": beyond" not in rows[0]


def test_phases_have_a_row_for_each_phase_of_each_run(made):
    table = made[0].read_text().split('class="phases"')[1].split("</table>")[0]
    bodies = table.split("<tbody")[1:]
    assert [body.count("<tr>") for body in bodies] == [5, 5, 2 + (made[1][2]["windows"]["fresh"] is not None)]
    assert ">steady state</th>" in bodies[0] and ">steady state</th>" not in bodies[1]
    assert ">fresh plateau</th><td>0–10</td>" in bodies[0]


@pytest.mark.parametrize(("rule", "of"), [("never", " of 20 s"), ("pts", " of at most 20 s")])
def test_a_load_that_was_cut_short_is_called_so_wherever_its_window_is_named(tmp_path, rule, of):
    """Ctrl-C at 5 of 20 s: the page had called it the whole load."""
    made = synthetic_run.write(tmp_path, [9000] * 5, zoom_s=3, power=False, state="interrupted")
    header = json.loads((made / "run.json").read_text())
    header["plan"]["params"] |= {"time": "20 s", "rule": rule}
    (made / "run.json").write_text(json.dumps(header))
    events = [{k: v for k, v in e.items() if k not in ("line", "crc")} for e in journal.events(made)]
    (end,) = (e for e in events if e["kind"] == "step.end" and e["step"] == "load")
    end |= {"ok": False, "why": "stopped by SIGINT"}
    synthetic_run.seal(made, events)
    figures = [table.in_full(made).figures]
    shown = views.of(figures)
    assert [view.label for view in shown] == [f"3–5 s{of}: cut short", f"load, 0–5 s{of}: cut short"]
    facts = [views.facts(view, i, [("", "", "", "")]) for i, view in enumerate(shown)]
    assert f"<td>3–5 s{of}: cut short</td>" in facts[0] and f"<td>0–5 s{of}: cut short</td>" in facts[1]
    phases_ = [row["phase"] for row in phases.rows(figures[0])]
    assert phases_ == ["fill", "load, cut short", "end of the load, cut short"]
    assert "whole load" not in views.phase_table(figures, [("", "", "", "")], shown)
    whole = table.in_full(synthetic_run.write(tmp_path, [9000] * 20, zoom_s=3, power=False, name="whole")).figures
    assert [view.label for view in views.of([whole, *figures])] == ["end of the load", "load"]


SHOWN = "[...document.querySelectorAll('{}')].filter(e => e.getClientRects().length).length"


@pytest.mark.slow
def test_one_window_is_shown_at_a_time(chromium, made):
    chromium.open(made[0], ready=READY)
    value = (
        "[...document.querySelectorAll('.card[data-key={}] .row[data-run=\"0\"] .value')].filter(e =>"
        " e.getClientRects().length).map(e => e.firstChild.textContent)"
    )
    for index, name in enumerate(("steady", "all", "fresh", "last<b>")):
        chromium.js(f"document.getElementById('view-{index}').click()")
        chromium.wait(f"ssdrig.state().view === {index}")
        window = made[1][0]["windows"][name]
        assert chromium.js(value.format("iops_mean")) == [number(window["iops_mean"], 0)]
        energy, error = window["energy_uJ_per_io"], window["errors"].get("energy_uJ_per_io")
        assert chromium.js(value.format("energy_uJ_per_io")) == [with_error(energy, error, 1).partition(" ± ")[0]]
        assert chromium.js(SHOWN.format("[data-view].cards")) == chromium.js(SHOWN.format(".facts")) == 1
        chromium.wait(f"ssdrig.limits()['zoom-log'][0] === {window['t0_s'] - 0.5}")
        assert chromium.js("ssdrig.limits()")["zoom-linear"][1] == window["t1_s"] - 0.5
        caption = chromium.js("document.querySelector('.caption-window').textContent")
        assert caption == f", {window['label']}"
        assert chromium.js(SHOWN.format("#bars-h span")) == chromium.js(SHOWN.format(".verdict p")) == 1
    assert chromium.js("location.hash") == "#window=last%3Cb%3E"
    assert chromium.js("document.body.dataset.errors") == "" and chromium.complaints() == []


@pytest.mark.slow
def test_windows_are_switched_without_javascript_too(chromium, made, tmp_path):
    html = made[0].read_text()
    (tmp_path / "plain.html").write_text(html.split('<script type="application/json"')[0])
    chromium.open(tmp_path / "plain.html")
    assert chromium.js(SHOWN.format(".cards")) == 1
    chromium.js("document.getElementById('view-2').checked = true")
    assert chromium.js("[...document.querySelectorAll('.cards')].map(e => e.getClientRects().length > 0)") == [
        False,
        False,
        True,
        False,
    ]
