"""The trust strip: each item of a window and of a run, and what is not claimed where one is bad."""

import copy
import json

import pytest
import synthetic_plan
import synthetic_run
from json_documents import checked
from synthetic_run import run_of

from ssdrig import cli, report
from ssdrig.plan.rules import limits, steady
from ssdrig.reading import table, trust
from ssdrig.reading.window_figures import KEYS
from ssdrig.report import page, screen, verdict
from ssdrig.report.cards import Bar, best
from ssdrig.runs import journal
from ssdrig.serve.tail import Place, Tail
from ssdrig.views import documents, trust_strip

QUIET = [9000] * 10 + [4000, 4001, 3999] * 10
WINDOW = {"t0_s": 0.0, "t1_s": 20.0, "energy_J": 40.0}
SAMPLES = {"samples": 20_000, "samples_lost": 0, "samples_clipped": 0, "filled_s": 0.0, "clock_error_us": 100.0}


def items(of) -> dict:
    return {item["id"]: item for item in of}


def states(of) -> dict:
    return {item["id"]: item["state"] for item in of}


@pytest.fixture
def quiet(tmp_path):
    """A run and its figures, in which nothing is wrong."""
    return run_of(tmp_path, QUIET)


def strip(data, **more) -> dict:
    host = trust.host_of(limits.loads(10.0, 1, 32.0, 32, {"cpus_busy_percent": [40.0, 50.0]}))
    return items(trust.of_window(data, WINDOW | SAMPLES | {"name": "all"} | more, host, trust.of_run(data)))


def test_a_strip_has_each_item_once_in_order(quiet):
    data, f = quiet
    for of in (f["trust"], *(window["trust"] for window in f["windows"].values() if window)):
        assert [item["id"] for item in of] == list(trust.NAMES)
    assert trust.red(strip(data).values()) == []


@pytest.mark.parametrize(
    ("id_", "more", "state", "value", "limit"),
    [
        ("samples", {"samples_lost": 20}, "ok", 100 * 20 / 20_020, 0.1),
        ("samples", {"samples_lost": 21}, "bad", 100 * 21 / 20_021, 0.1),
        ("samples", {"samples_clipped": 1}, "bad", 0.0, 0.1),
        ("samples", {"samples": 0}, "bad", None, None),
        ("time_error", {"clock_error_us": 100_000}, "ok", 0.1, 0.1),
        ("time_error", {"clock_error_us": 100_001}, "bad", 0.100001, 0.1),
        ("time_error", {"clock_error_us": 5_180_000}, "bad", 5.18, 0.1),
        ("time_error", {"clock_error_us": None}, "unknown", None, 0.1),
        ("time_error", {"t1_s": 2.0, "clock_error_us": 20_001}, "bad", 0.020001, 0.02),
        ("time_error", {"t1_s": 0.002, "clock_error_us": 200.0}, "ok", 0.0002, 0.0002),
        ("time_error", {"t1_s": 0.001, "clock_error_us": 101.0}, "bad", 0.000101, 0.0001),
        ("gaps", {"filled_s": 0.1}, "ok", 0.1, 0.1),
        ("gaps", {"filled_s": 0.11, "filled_J": 0.2}, "bad", 0.11, 0.1),
        ("gaps", {"energy_J": None}, "bad", 0.0, 0.1),
    ],
)
def test_the_limits_of_what_power_rests_on(quiet, id_, more, state, value, limit):
    item = strip(quiet[0], **more)[id_]
    assert item["state"] == state
    assert item["value"] == (None if value is None else pytest.approx(value))
    assert limit is None or item["limit"] == pytest.approx(limit)
    assert bool(item["why"]) == (state != "ok")


@pytest.mark.parametrize(("lasts_s", "energy_J", "state"), [(0.0019, None, "not applicable"), (0.021, None, "bad")])
def test_window_too_short_for_its_energy_claims_none(quiet, lasts_s, energy_J, state):
    """A flush of 2 ms has a sample or two: it must not redden a run whose steady window is sound."""
    data, sound = quiet
    short = strip(data, t1_s=lasts_s, energy_J=energy_J, samples=1, clock_error_us=3000.0)
    assert short["gaps"]["state"] == state
    assert {short[name]["state"] == "not applicable" for name in trust.SAMPLED} == {state == "not applicable"}
    run = trust.whole([("load, all", sound["trust"]), ("flush", list(short.values()))])
    assert bool(trust.red(run, trust.SAMPLED)) == (state == "bad")


@pytest.mark.parametrize(
    ("stamp_ns", "lasts_s", "error_s", "state", "limit_s"),
    [
        (0, 10.0, 0.101, "bad", 0.1),
        (105_000_000, 10.0, 0.106, "ok", 0.205),  # a supply that is polled: what it states comes on top
        (105_000_000, 10.0, 0.206, "bad", 0.205),
        (1_000_000_000, 60.0, 1.05, "ok", 1.1),
        (1_000_000_000, 6.0, 1.0, "bad", 0.6),  # but at most a tenth of the window
        (14_000_000, 1.0, 0.0141, "ok", 0.024),
        (None, 10.0, 0.101, "bad", 0.1),
    ],
)
def test_the_limit_of_the_time_follows_what_the_meter_states(quiet, stamp_ns, lasts_s, error_s, state, limit_s):
    hello = {"kind": "rig.hello", "hello": {} if stamp_ns is None else {"stamp_ns": stamp_ns}}
    data = copy.copy(quiet[0])
    data.events = [*data.events, hello]
    item = strip(data, t1_s=WINDOW["t0_s"] + lasts_s, clock_error_us=error_s * 1e6)["time_error"]
    assert (item["state"], item["limit"]) == (state, pytest.approx(limit_s))


@pytest.mark.parametrize(
    ("rounds", "state"), [([100, 101, 99, 100, 100], "ok"), ([100, 130, 99, 100, 100], "bad"), ([], "unknown")]
)
def test_steady_is_the_rules_verdict(rounds, state):
    item = trust.steady_of({"name": "steady", "steady_state": steady.verdict(rounds)})
    assert item.state == state and item.limit == 20
    assert trust.steady_of({"name": "fresh", "steady_state": steady.verdict(rounds)}).state == "not applicable"


def test_steady_by_a_slope_or_a_reason_of_its_own():
    drifting = steady.verdict([92, 96, 100, 104, 108])
    item = trust.steady_by([drifting])
    assert (item.state, item.limit) == ("bad", 10) and item.value == pytest.approx(16)
    early = steady.verdict([100] * 5) | {"passed": False, "why": "0.1 drive writes"}
    assert trust.steady_by([early])[1:] == ("bad", 0.0, 20, "0.1 drive writes")
    assert trust.steady_by([steady.verdict([100] * 5), drifting]).state == "bad"


@pytest.mark.parametrize(
    ("counted", "state", "value"),
    [
        ({}, "unknown", None),
        ({"cpus_busy_percent": [60.0, 70.0]}, "ok", 65.0),
        ({"cpus_busy_percent": [99.0, 98.0]}, "bad", 98.5),
        ({"cpus_busy_percent": [60.0], "steal_percent": 20.0}, "bad", 20.0),
    ],
)
def test_host_is_the_nearest_to_its_limit(counted, state, value):
    item = trust.host_of(limits.loads(None, 1, None, None, counted))
    assert (item.state, item.value) == (state, value)


def test_a_simulated_drive_on_a_busy_host_is_host_limited(tmp_path):
    """Its own work is on these CPUs: what they have no time for, the drive does not do."""
    folder = synthetic_run.write(tmp_path, QUIET)
    event(folder, {"kind": "witness", "step": "load", "label": "load", "cpus_busy_percent": [100.0, 99.0]})
    f = table.in_full(folder).figures
    assert states(f["trust"])["host"] == "bad"
    assert any(note.startswith("load: host-limited: ") for note in f["notes"])


def event(folder, more) -> None:
    """Put an event into a journal, before its end."""
    events = journal.events(folder)
    synthetic_run.seal(folder, [*events[:-1], {"t_ns": events[-1]["t_ns"], **more}, events[-1]])


def host_event(t_s, busy, late_us=0.0, lasted_s=10.0, answers=100):
    of = {"answers": answers, "late_us": late_us, "service_us": 1000.0}
    counted = {"cpus_busy_percent": [busy, busy], "waited_percent": {"cpu": 10.0, "memory": 0.0}, "answers": of}
    return {"kind": "host", "t_ns": synthetic_run.T_RUN_NS + round(t_s * 1e9), "lasted_s": lasted_s, **counted}


def test_a_window_has_the_host_of_its_own_time(tmp_path):
    """The first 10 s of the load on a busy host: the window behind them is not host-limited by it."""
    folder = synthetic_run.write(tmp_path, QUIET)
    begun_s = (table.in_full(folder).data.t0_ns - synthetic_run.T_RUN_NS) / 1e9
    for end_s, busy in ((10, 100.0), (20, 50.0), (30, 60.0), (40, 55.0)):
        event(folder, host_event(begun_s + end_s, busy))
    f = table.in_full(folder).figures
    host = {name: items(window["trust"])["host"] for name, window in f["windows"].items()}
    assert host["fresh"]["state"] == "bad" and host["fresh"]["value"] == 100
    assert host["steady"]["state"] == "ok" and host["steady"]["value"] == pytest.approx(55, abs=1)
    assert items(f["trust"])["host"]["state"] == "bad"


@pytest.mark.parametrize(("late_us", "state"), [(50.0, "ok"), (51.0, "bad")])
def test_a_simulated_drive_that_answered_late_is_host_limited(tmp_path, late_us, state):
    folder = synthetic_run.write(tmp_path, QUIET)
    begun_s = (table.in_full(folder).data.t0_ns - synthetic_run.T_RUN_NS) / 1e9
    for end_s in (10, 20, 30, 40):  # the mean is of the answers, not of the events
        event(folder, host_event(begun_s + end_s, 50.0, late_us if end_s != 40 else 1e6, answers=100 * (end_s != 40)))
    f = table.in_full(folder).figures
    assert states(f["windows"]["steady"]["trust"])["host"] == state


HOSTILE = (None, 5, "x", [], {}, [None], ["x"], {"cpu": "x"}, {"answers": "x"}, {"answers": 1e300}, True, -1, 1e308)


@pytest.mark.parametrize("key", ["cpus_busy_percent", "steal_percent", "waited_percent", "answers", "lasted_s"])
def test_events_of_the_host_may_hold_anything(tmp_path, key):
    folder = synthetic_run.write(tmp_path, QUIET)
    begun_s = (table.in_full(folder).data.t0_ns - synthetic_run.T_RUN_NS) / 1e9
    for n, value in enumerate(HOSTILE):
        event(folder, host_event(begun_s + 10 + n, 50.0) | {key: value})
    table.in_full(folder)


@pytest.mark.parametrize(
    ("verdict_", "state"), [("paired", "ok"), ("not_paired", "bad"), ("unknown", "bad"), (None, "unknown")]
)
def test_pairing(verdict_, state):
    events = [] if verdict_ is None else [{"kind": "pairing", "verdict": verdict_, "why": "x"}]
    assert trust.paired({"rig": {}}, events).state == state
    assert trust.paired({"rig": None}, events).state == "not applicable"


LINE = {
    **{"x1_n": 0, "x2_n": 10**9, "r1_n": 0, "r2_n": 10**9, "c1_n": 0, "c2_n": 0, "u1_n": 0, "u2_n": 0, "g_ppb": 1000},
    "date": "2026-11-01",
}


def calibrated(test=None, rig=None, **calibration):
    header = {"rig": rig or {}, "started": {"utc_ns": 1_795_177_507_894_000_000}}  # 2026-11-20
    events = [{"kind": "rig.certificate", **test}] if test else []
    rails = [{"rail": 0, "vbus_lsb_nV": 195312, "current_lsb_pA": 10**7, "calibration": calibration or None}]
    return trust.calibrated(header, events, rails)


def test_calibration():
    assert calibrated()[:2] == ("calibration", "unknown")
    assert calibrated(rig={"simulated": True}).state == "not applicable"
    assert calibrated(test={"passed": False}).state == "bad"
    assert calibrated(test={"passed": True, "differs": ["firmware"]}).state == "bad"
    assert trust.calibrated({"rig": None}, [], []).state == "not applicable"


def test_without_a_rig_power_is_not_applicable(tmp_path):
    folder = synthetic_run.write(tmp_path, QUIET, power=False)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(header | {"rig": None}))
    states_ = states(table.in_full(folder).figures["trust"])
    assert {states_[name] for name in ("samples", "time_error", "closure", "calibration", "gaps", "pairing")} == {
        "not applicable"
    }


def test_the_whole_is_the_worst_of_the_windows():
    good, bad = ([trust.Item(name, state).as_json() for name in trust.NAMES] for state in ("ok", "not applicable"))
    bad[1] = trust.Item("host", "bad", 99.0, 95.0, "busy").as_json()
    whole = items(trust.whole([("a", good), ("b", bad), ("c", good)]))
    assert {id_ for id_, item in whole.items() if item["state"] == "ok"} == {*trust.NAMES} - {"host"}
    assert whole["host"]["why"] == "b: busy (1 of 3 windows)" and whole["host"]["value"] == 99.0
    assert {item["state"] for item in trust.whole([])} == {"unknown"}


def red(*ids):
    return [trust.Item(n, "bad" if n in ids else "ok", why="w" if n in ids else None).as_json() for n in trust.NAMES]


def run(name, iops, *bad, **more):
    of = {"iops_mean": iops, "power_mean_W": 2.0, "energy_uJ_per_io": 1e6 / iops, "power_uncertainty_percent": 1.0}
    return verdict.Run(
        name,
        dict.fromkeys(KEYS)
        | of
        | more
        | {"trust": red(*bad), "errors": {key: 0.01 * value for key, value in of.items()}},
    )


@pytest.mark.parametrize("bad", ["steady", "host"])
def test_no_sentence_about_a_run_that_is_not_to_be_trusted(bad):
    good, busy = run("a", 10_000), run("b", 20_000, bad)
    assert verdict.sentences("x", [good, busy], [None, None], 1) == [
        f"No verdict: b is not to be trusted here: {trust.NAMES[bad]}: w."
    ]
    text = " ".join(verdict.sentences("x", [good, busy], [None, None], 0))
    assert "×" not in text and "1 of 2 runs is not comparable" in text


@pytest.mark.parametrize("bad", ["samples", "time_error", "closure", "calibration", "gaps", "pairing"])
def test_no_sentence_about_power_that_is_not_to_be_trusted(bad):
    first, *rest = verdict.sentences("x", [run("a", 10_000), run("b", 20_000, bad)], [None, None], 0)
    assert "2.0 ×" in first and "energy" not in first and "power" not in first
    assert [line for line in rest if line.startswith("Power and energy of b are left out")]


def test_no_star_beside_a_figure_that_is_not_to_be_trusted():
    bars = [
        Bar(i, "", "", value, "", "", "", apart=why, doubt=0.1)
        for i, (value, why) in enumerate([(9, None), (20, "w"), (5, None)])
    ]
    assert best(bars, "more") == {0}


def test_a_page_begins_with_the_strip_and_has_no_star(tmp_path):
    runs, figures = zip(*(run_of(tmp_path / name, QUIET, op_percent=op) for name, op in (("a", 25), ("b", 40))))
    for f in figures:
        for window in f["windows"].values():
            window["trust"] = red("host")
    html = page.render([], 0, list(zip(runs, figures, strict=True)))
    body = html.partition('<main class="load"')[2].partition(">")[2]
    assert body.startswith('<section class="trust"')
    assert body.index('data-trust="host"') < body.index('class="verdict"')
    assert 'class="row best' not in body and "top best" not in body and "No verdict: " in body
    assert 'data-trust="host" title="w"><b aria-hidden="true">✕</b> host<span class="sr">: BAD</span>' in body


def test_a_scaled_plan_is_said_to_be(tmp_path, capsys):
    folder = synthetic_run.write(tmp_path, QUIET)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(
        json.dumps(header | {"plan": header["plan"] | {"scaled": True, "variant": "quick"}})
    )
    assert cli.main(["report", str(folder), "--json"]) == 0
    out, err = capsys.readouterr()
    document = checked("report", json.loads(out))
    assert document["plan"]["scaled"] is True and "SCALED" in err and "SCALED" in "\n".join(screen.ended(folder)[0])
    assert '<strong class="badge">SCALED</strong>' in (folder / "report.html").read_text()


@pytest.mark.parametrize("width", [60, 100, 200])
def test_lines_fit_the_terminal(width):
    lines = trust_strip.lines(red("host", "time_error"), width)
    assert all(len(line) < width for line in lines)
    assert "host BAD" in lines[0] and [line for line in lines if line.strip() == "time error BAD: w"]


def test_rows_and_the_run_of_a_plan_have_strips(tmp_path, capsys):
    folder = synthetic_plan.grid(tmp_path)
    document = documents.of_table(table.load(folder))
    checked("report", document)
    strips = [window["trust"] for row in document["rows"] for window in row["windows"].values() if window]
    assert strips and all([item["id"] for item in of] == list(trust.NAMES) for of in strips)
    assert states(document["trust"])["steady"] in ("ok", "bad")
    assert states(document["trust"])["time_error"] == "ok"
    text = screen.of_plan(table.load(folder))
    assert "trust: " in text[0]


def test_the_list_of_runs_is_brief(tmp_path, capsys):
    folder = synthetic_run.write(tmp_path / "runs", QUIET)
    assert report.of_plan(folder) is False
    assert cli.main(["report", str(folder), "--quiet"]) == 0
    assert cli.main(["runs", str(tmp_path / "runs")]) == 0
    stored = json.loads((folder / "figures.json").read_text())
    assert trust_strip.brief(states(stored["trust"])) in capsys.readouterr().out
    assert cli.main(["runs", str(tmp_path / "runs"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"]["trust"]["host"] == "unknown"
    for hostile in ("x", [1, {"id": [], "state": {}}], [{"id": "host", "state": "x"}], {}):
        (folder / "figures.json").write_text(json.dumps(stored | {"trust": hostile}))
        assert cli.main(["runs", str(tmp_path / "runs"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["figures"]["trust"] is None


def test_a_plot_for_an_article_has_the_strip(tmp_path, capsys):
    folder = synthetic_run.write(tmp_path, QUIET)
    header = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(
        json.dumps(header | {"plan": header["plan"] | {"scaled": True, "variant": "quick"}})
    )
    event(folder, {"kind": "witness", "step": "load", "label": "load", "cpus_busy_percent": [100.0, 99.0]})
    for suffix, mark in (("html", 'data-trust="host"'), ("svg", "trust BAD: ")):
        out = tmp_path / f"plot.{suffix}"
        assert cli.main(["report", str(folder), "--embed", "whole", "--out", str(out), "--quiet"]) == 0
        text = out.read_text()
        assert mark in text and "SCALED" in text, suffix
        assert text.index(mark) < text.index("<svg" if suffix == "html" else "<g ")


def test_a_run_that_goes_on_has_a_strip(tmp_path):
    """Of what the journal holds so far; what is known at the end alone is unknown."""
    tail = Tail(synthetic_run.write(tmp_path, QUIET))
    tail.step()
    message = tail.since(Place(), 0, 0)[0]
    items_ = {of["id"]: of["state"] for of in message["trust"]}
    assert list(items_) == list(trust.NAMES)
    assert items_["samples"] == items_["time_error"] == items_["gaps"] == "ok" and items_["host"] == "unknown"
    busy = synthetic_run.write(tmp_path / "busy", QUIET)
    for more in (host_event(1, 50.0), host_event(2, 100.0), {"kind": "rig.lost", "why": "x"}):
        event(busy, more)
    tail = Tail(busy)
    tail.step()
    items_ = {of["id"]: of for of in tail.since(Place(), 0, 0)[0]["trust"]}
    assert items_["host"]["state"] == items_["gaps"]["state"] == "BAD" and "100 %" in items_["host"]["text"]


@pytest.mark.parametrize("kind", trust.LIVE)
@pytest.mark.parametrize("value", HOSTILE)
def test_a_live_strip_of_any_events(kind, value):
    """`value` in place of each field that is read."""
    fields = ("verdict", "tracked", "hello", "passed", "differs", "cpus_busy_percent", "waited_percent", "answers")
    power = {"samples": 1, "samples_lost": 0, "clock_error_us": None, "breaks": 0}
    header = {"rig": {}, "started": {"utc_ns": value}}
    strip_ = trust.live(header, {kind: {"kind": kind, **dict.fromkeys(fields, value)}}, power)
    assert [item["id"] for item in strip_] == list(trust.NAMES)
    trust.in_words(strip_)


@pytest.mark.parametrize(
    ("percent", "text"),
    [(-8e-7, "< 0.001 %"), (9.9e-4, "< 0.001 %"), (0.00123, "0.00123 %"), (-0.05, "-0.05 %"), (0.0, "")],
)
def test_a_share_below_any_claim_is_printed_as_a_bound(percent, text):
    (item,) = trust.in_words([{"id": "closure", "state": trust.OK, "value": percent, "limit": 0.1, "why": None}])
    assert item["text"] == text


def test_a_reason_in_brief_names_the_items_alone():
    reasons = {"host": "late: 3; busy", "steady": "12 %"}
    host, unsteady = ({"id": name, "state": trust.BAD, "why": why} for name, why in reasons.items())
    assert trust.briefly(trust.why_not([unsteady, host])) == "steady, host"
    assert trust.briefly(f"not claimed, {trust.why_not([host])}") == "host"
    assert trust.briefly("its error is as large: 3 ± 4 W") == "its error is as large: 3 ± 4 W"
