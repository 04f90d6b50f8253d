"""The analysis of a power-loss campaign and its page, from run folders in model time."""

import html
import json
import random
import re
import shutil
from argparse import ArgumentParser
from pathlib import Path

import pytest
import synthetic_cuts

from ssdrig import report
from ssdrig.base.errors import UsageError
from ssdrig.plan import grammar
from ssdrig.plan.rules import chance as statistics
from ssdrig.reading import cuts, table
from ssdrig.report import page
from ssdrig.runs import journal
from ssdrig.views.cuts import html as cuts_html
from ssdrig.views.cuts import sentences as cuts_sentences


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return synthetic_cuts.write(tmp_path_factory.mktemp("cuts"), 44, lies=0.1)


@pytest.fixture(scope="module")
def sessions_by_cut(run):
    return {event["cut"]: event for event in journal.events(run) if event["kind"] == "session.judged"}


@pytest.fixture(scope="module")
def loaded(run):
    return table.load(run)


@pytest.fixture(scope="module")
def campaign(loaded):
    return loaded.rows[0].result


@pytest.fixture(scope="module")
def document(loaded):
    return page.render([loaded])


def text_of(piece):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"<style>.*?</style>", "", piece))))


@pytest.mark.slow
def test_cuts_are_counted_by_aim_and_shape(campaign, sessions_by_cut):
    own = [session for session in sessions_by_cut.values() if session["judged"] and not session["control"]]
    failing = [session["cut"] for session in own if session["failed"]]
    assert campaign["failing_cuts"] == failing and len(failing) == 2 and campaign["judged"] == len(own) == 41
    assert campaign["bound"] == statistics.upper_bound(2, 41)
    for stratum in campaign["strata"]:
        of = [one for one in own if (one["aim"], one["shape"]) == (stratum["aim"], stratum["shape"])]
        assert stratum["cuts"] == len(of) and list(stratum["numbers"]) == [one["cut"] for one in of if one["failed"]]
        assert stratum["bound"] == statistics.upper_bound(len(stratum["numbers"]), len(of))
    assert sum(stratum["cuts"] for stratum in campaign["strata"]) == 41 and len(campaign["strata"]) == 3
    flushed = sorted(n for of in campaign["classes"]["LOST_FLUSHED"].values() for n in of)
    assert flushed == failing and campaign["excluded"] == [{"cut": 43, "why": sessions_by_cut[43]["why_not"]}]
    assert [control["cut"] for control in campaign["controls"]] == [20, 40] and all(
        control["ok"] for control in campaign["controls"]
    )


def test_the_page_has_the_sentence_and_the_bounds(document, campaign):
    words = text_of(document)
    named = ", ".join(map(str, campaign["failing_cuts"]))
    bound = statistics.percent(statistics.upper_bound(2, 41))
    assert (
        f"2 of 41 cuts broke a promise (found after cut {named}): chance per cut < {bound} for this mix of cuts"
        in words
    )
    assert words.count(statistics.NO_SAMPLES) == 2 and "1 cut left out (43: rail 0 was not seen below" in words
    for stratum in campaign["strata"]:
        assert f"{stratum['aim']} {stratum['shape']} " in words and f"< {statistics.percent(stratum['bound'])}" in words
    assert "Not tested TRIM is not supported" in words and "--only-cut N --seed 1" in words


def test_every_failing_cut_has_its_proof_and_its_list_leads_there(document, campaign):
    for number in campaign["failing_cuts"]:
        panel = document.partition(f'<figure id="cut-{number}"')[2].partition("</figure>")[0]
        text = text_of(panel)
        assert "and the acknowledged FLUSH" in text and "This breaks the promise" in text and "more block" in text
        assert f"Evidence: powerloss/{number:04}" in text and "<svg" in panel and "first write lost that had to" in text
        assert f'<a href="#cut-{number}">' in document
    assert set(re.findall(r'href="#(cut-[0-9]+)"', document)) <= set(re.findall(r'id="(cut-[0-9]+)"', document))


def test_what_the_cuts_show_of_the_drive(document, campaign, sessions_by_cut):
    """The model keeps 40 ms in its cache; its capacitors lose 0.15 J in a hundred cuts; cut 7 came back late."""
    window = campaign["window"]
    assert sum(window["lost"]) > 1000 and window["oldest_ms"] in ([30, 35], [35, 40])
    assert 15 <= window["window_ms"] <= 30 and window["suffix_lost"] < window["newer"]
    near = [
        e
        for e in sessions_by_cut.values()
        if e["judged"] and not e["control"] and abs(e["delta_flush_us"] or 1e9) <= 5000
    ]
    assert sum(bin_["cuts"] for bin_ in campaign["detection"]) == len(near)
    assert campaign["recharge_J"]["trend"]["per_100"] == pytest.approx(-0.15, abs=1e-9)
    assert campaign["capacitors"]["percent"] == pytest.approx(100 * 0.434 / 0.4985, rel=1e-6)
    words = text_of(document)
    assert "PLP_DEGRADED: the capacitors have aged, by the energy that recharges them 87 ±" in words
    assert "More than 3 times the median after cut 7." in words and "The oldest write that was lost was 3" in words
    assert "41 recorded; shaded" in words and "41 unsafe shutdowns were counted over 41 judged cuts" in words
    assert (
        campaign["smart"]["capacitor_health_percent"] == [100, 94]
        and "Capacitor health by the drive, % 100 94" in words
    )
    watts = campaign["power_W"]
    assert len(watts) == 6 and max(w for w in watts["1"] if w) == pytest.approx(2, rel=0.02)


def test_figures_and_terminal_say_what_the_page_says(run, campaign, capsys):
    parser = ArgumentParser()
    report.add_arguments(parser)
    report.command(parser.parse_args([str(run)]))
    result = json.loads((run / "figures.json").read_text())["rows"][0]["found"]
    assert result["failing_cuts"] == campaign["failing_cuts"] and result["bound"] == campaign["bound"]
    assert len(result["cuts"]) == 44 and "kind" not in result
    screen = capsys.readouterr().err
    assert all(f"  cuts: {line}" in screen for line in cuts_sentences.lines(campaign))
    assert (run / "report.html").stat().st_size < 400_000


def test_what_charges_the_capacitors_is_what_a_start_takes_more_than_an_announced_one():
    own = [{"cut": n, "control": "announced" if n > 4 else None, "judged": True} for n in range(1, 7)]
    made = cuts.with_energies(own, {"1": 2.5, "2": 2.4, "5": 2.0, "6": 1.8})
    assert [session["boot_J"] for session in made] == [2.5, 2.4, None, None, 2.0, 1.8]
    assert [session.get("recharge_J") for session in made[:3]] == [pytest.approx(0.6), pytest.approx(0.5), None]
    stored = cuts.with_energies([{**own[0], "boot_J": 7.0, "recharge_J": 1.0}], {"1": 2.5})
    assert (stored[0]["boot_J"], stored[0]["recharge_J"]) == (7.0, 1.0)


def test_a_failing_control_session_accuses_the_harness(campaign):
    bad = {"cut": 20, "control": "no-cut", "ok": False, "why": "no power was cut, yet LOST_FUA on 3 blocks"}
    bad["harness"] = bad["why"]
    text = " ".join(cuts_sentences.lines({**campaign, "controls": [bad], "stop": "control", "suspicious_cuts": [3]}))
    assert "CONTROL FAILED in 1 session (20: no power was cut, yet LOST_FUA on 3 blocks): the harness is" in text
    assert "the proven failures remain proven" in text
    assert "Suspicious, but no failure: cut 3." in text
    assert "no verdict on the drive" in cuts_sentences.verdict({**campaign, "judged": 0})


def test_a_promise_broken_by_an_announced_loss_of_power_is_said_of_the_drive():
    event = {"kind": "session.judged", "step": "cuts", "judged": True, "control": None, "aim": "a", "shape": "b"}
    events = [
        {**event, "cut": 1},
        {**event, "cut": 2, "control": "announced", "failed": True, "findings": {"STALE": 3}},
    ]
    result = cuts.campaign(events, "cuts", Path("nowhere"), [])
    assert (result["failing"], result["failing_most"], result["judged"], result["failing_others"]) == (0, 0, 1, [2])
    words = " ".join(cuts_sentences.lines({**result, "begun": None}))
    assert "broken in session 2" in words and "harness" not in words and "clean" not in words
    assert "session 2" in cuts_sentences.verdict({**result, "judged": 0})


def test_file_systems_stand_beside_the_cuts_with_whose_fault_a_loss_is():
    client = {"filesystem": "ext4", "client": "appends", "session": 1, "promised": 9, "left": 4, "lost": 5}
    client |= {"corrupt": 0, "extra": 0, "first_lost": 5, "oldest_lost_ms": 2.0, "why": ""}
    one = {"filesystem": "ext4", "mounted": True, "why": "", "options": "rw,<b>", "check": ""}
    judged = {"kind": "filesystems.judged", "step": "cuts", "cut": 1, "judged": True, "why_not": "", "failed": True}
    judged |= {"clients": [client], "filesystems": [one], "fault": "drive"}
    event = {"kind": "session.judged", "step": "cuts", "judged": True, "control": None, "aim": "a", "shape": "b"}
    result = cuts.campaign(
        [{**event, "cut": 1, "failed": True, "findings": {"STALE": 3}}, judged], "cuts", Path("no"), []
    )
    assert [(row["client"], row["lost"], row["failing"], row["by_drive"]) for row in result["filesystems"]] == [
        ("", 0, [], 0),
        ("appends", 5, [1], 1),
    ]
    assert any("5 lost" in line for line in cuts_sentences.lines({**result, "begun": None}))
    html = cuts_html._filesystems(result["filesystems"])
    assert "<td>5</td>" in html and "<b>" not in html


@pytest.mark.slow
def test_no_flipped_byte_of_a_sessions_files_is_taken_for_what_was_written(run, tmp_path):
    folder = run / "powerloss" / f"{table.load(run).rows[0].result['failing_cuts'][0]:04}"
    whole = cuts.evidence(folder, 0)
    assert whole.picture and whole.proofs and len(whole.volts)
    copy = shutil.copytree(folder, tmp_path / "copy")
    chance = random.Random(1)
    for name in ("verdict.json", "proofs.json", "waveform.npz"):
        data = (folder / name).read_bytes()
        for _ in range(150):
            at = chance.randrange(len(data))
            cut = at if chance.random() < 0.2 else len(data)
            (copy / name).write_bytes((data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])[:cut])
            evidence = cuts.evidence(copy, 0)
            assert evidence.picture in (None, whole.picture) and evidence.proofs in ([], whole.proofs)
            assert evidence.volts is None or (evidence.volts == whole.volts).all()
        (copy / name).write_bytes(data)


def test_a_session_that_is_told_twice_counts_once_and_a_control_session_never():
    event = {"kind": "session.judged", "step": "cuts", "judged": True, "control": None, "aim": "a", "shape": "b"}
    events = [{**event, "cut": 1, "failed": True}, {**event, "cut": 1, "failed": False}, {**event, "cut": 2}]
    events += [{**event, "cut": 3, "control": "no-cut", "failed": True}, {**event, "step": "other", "cut": 4}]
    own = cuts.records(events, "cuts")
    assert [session["cut"] for session in own] == [1, 2, 3] and not own[0]["failed"]
    assert cuts.strata(own) == [cuts.Stratum("a", "b", 2, 0, 0, statistics.upper_bound(0, 2), ())]


def test_bound_of_a_campaign_with_until_counts_its_looks():
    """And those of its groups: one that has failed leaves the others their own."""
    event = {"step": "cuts", "judged": True, "control": None, "shape": "b", "fired_ns": 1, "failed": False}
    own = [{**event, "cut": n, "aim": "ab"[n % 3 == 0], "failed": n == 3} for n in range(1, 568)]
    stops = cuts.stops({"bound": 0.01})
    assert cuts.stops({}) == cuts.stops({"bound": 0}) == cuts.stops({"bound": "x"}) == cuts.stops(None) == ()
    assert cuts.bound(1, 567, 567, 0, stops) == statistics.bound_at_end(1, 567, stops) > statistics.upper_bound(1, 567)
    clean, failing = cuts.strata(own, stops)
    assert (clean.most, failing.most, failing.cuts) == (0, 1, 189)
    assert clean.bound == pytest.approx(statistics.upper_bound(0, 378), rel=1e-6)
    plain = statistics.upper_bound(1, 189)
    assert plain < failing.bound < 0.03 and [stratum.bound for stratum in cuts.strata(own)][1] == plain


def test_a_cut_that_missed_its_aim_bounds_nothing_of_it():
    event = {"kind": "session.judged", "step": "cuts", "judged": True, "control": None, "shape": "b"}
    mib = (0.43, 12.0, 63.0)
    events = [{**event, "cut": n, "aim": "bytes:8..64", "unflushed_bytes": round(x * 2**20)} for n, x in enumerate(mib)]
    for judged, planned in zip(events[:2], (9.0, 11.0), strict=True):
        judged["planned_unflushed_bytes"] = round(planned * 2**20)
    result = cuts.campaign(events, "cuts", Path("nowhere"), [])
    assert [(stratum["aim"], stratum["cuts"]) for stratum in result["strata"]] == [
        ("bytes:8..64", 2),
        ("bytes:8..64 (missed)", 1),
    ]
    of = result["aims"]["bytes:8..64"]
    assert (of["cuts"], of["within"], round(of["least"], 2), of["most"]) == (3, 2, 0.43, 63.0)
    assert of["near"] == 1


def test_what_is_missing_or_damaged_is_said(run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "damaged", ignore=shutil.ignore_patterns("report.html", "rig.bin"))
    accused = table.load(run).rows[0].result["failing_cuts"]
    folder = copy / "powerloss" / f"{accused[0]:04}"
    (folder / "proofs.json").write_bytes(b"[{")
    (folder / "waveform.npz").write_bytes(b"PK")
    shutil.rmtree(copy / "powerloss" / f"{accused[1]:04}")
    (copy / "powerloss" / "0002" / "verdict.json").write_text('{"picture": []}')
    for path in (copy / "powerloss").glob("*/waveform.npz"):
        path.unlink()
    events = (copy / "events.jsonl").read_text().splitlines()
    events = [re.sub(', "line".*', "}", line) for line in events]
    (copy / "events.jsonl").write_text("\n".join(events).replace("rail 0 was not", "<script>x</script>") + "\n")
    words = text_of(made := page.render([table.load(copy)]))
    assert "The proof is missing or damaged." in words and "The folder of this session is not there." in words
    assert "2 cuts without a picture" in words and "No waveform was recorded" in words
    assert "<script>x" not in made and "&lt;script&gt;x" in made


def test_a_campaign_without_a_judged_cut_has_a_page(tmp_path):
    made = synthetic_cuts.write(tmp_path, 1)
    events = (made / "events.jsonl").read_text().splitlines()
    lines = [re.sub(', "line".*', "}", line) for line in events if "session.judged" not in line]
    (made / "events.jsonl").write_text("\n".join(lines) + "\n")
    assert "No cut was judged: no verdict on the drive." in text_of(page.render([table.load(made)]))


def test_the_view_is_of_a_step_that_cuts():
    text = synthetic_cuts.PLAN.format(cuts=3)
    assert grammar.read(text, "x").shows[0]["view"] == "cuts"
    other = text.replace('do = "cuts"\ncuts = 3', 'do = "fill"')
    with pytest.raises(UsageError, match="a cuts step in the view cuts"):
        grammar.read(other, "x")


def test_a_trend_is_that_of_least_squares():
    assert cuts.trend(cuts.np.arange(7), cuts.np.arange(7.0)) is None
    at = cuts.np.arange(100)
    line = cuts.trend(at, 3 + 0.02 * at + 0.1 * (-1.0) ** at)
    assert line["per_100"] == pytest.approx(2, abs=0.05) and 0.01 < line["error"] < 0.06
