"""What a retention test came to, from its run folder: the figures, the sentences, the panels."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.overprovisioning import MIB
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.publish.verdicts import acceptance
from ssdrig.reading import retention_rows
from ssdrig.retention import manifest as manifests
from ssdrig.retention import passes, storage
from ssdrig.retention.reading import Read
from ssdrig.views.retention import facts as retention_facts
from ssdrig.views.retention import html as retention_html
from ssdrig.views.retention import sentences as retention_sentences

LAYOUT = layouts.make(4096, 64 * MIB, 64 * MIB)
PIECES = layouts.of_kinds(LAYOUT, layouts.KEPT)
S = 1_000_000_000


def read(piece: int, us: int, bad=()) -> Read:
    rows = np.array([(piece * 256 + at, -7) for at in bad], np.int64).reshape(-1, 2)
    return Read(piece, np.full(8, us * 1000), MIB, 256, rows)


def written(tmp_path, bad: dict, us: int = 250) -> dict:
    """The folder of a verify with a slow last piece; `bad`: piece -> blocks. Its figures."""
    pieces = [passes.piece(read(piece, 250)) for piece in layouts.of_kinds(LAYOUT, ("baseline",))]
    baseline = passes.middle(pieces) | {"each": [[p[key] for key in ("piece", *passes.UNITS)] for p in pieces]}
    drive = {"model": "M", "serial": "S", "capacity_bytes": 64 * MIB, "wear_percent": 3, "class": "client"}
    counted = {"host_written_bytes": 80 * 10**6, "nand_written_bytes": 100 * 10**6}
    facts = {"bytes": 80 * 10**6, "seconds": 2.0, "counted": counted, "begun_C": 30, "ended_C": 41}
    seal = {"utc": "2026-11-22T12:00:00Z", "smart": counted, "idle_W": 0.5, "simulated": True}
    parts = {"drive": drive, "layout": layouts.as_json(LAYOUT), "written": facts, "baseline": baseline, "seal": seal}
    reads = [read(piece, 900 if piece == PIECES[-1] else us, bad.get(piece, ())) for piece in PIECES]
    runs = passes.runs(np.concatenate([one.bad for one in reads]))
    judged = passes.judge(LAYOUT, [passes.piece(one) for one in reads], runs, baseline)
    (tmp_path / "retention").mkdir()
    (tmp_path / "retention/manifest.json").write_text(json.dumps(manifests.sealed("run-1", 1, parts)))
    (tmp_path / "retention/pass-1.json").write_text(json.dumps(judged))
    end = {"storage": storage.effect(storage.constant(25, 100)), "counts": [counted, counted], "bound": None}
    end |= {"since_power_on": {"nand_written_bytes": 5_000_000, "refreshes": 3}, "since_seal": {"media_errors": 2}}
    events = [
        {"kind": "retention.found", "digest": "d", "damaged": {"middle": "no manifest"}},
        {"kind": "retention.window", "name": "after 1", "begin_ns": 0, "end_ns": 10 * S},
        {"kind": "retention.pass", "number": 1},
        {"kind": "retention.end", **end, "cannot": passes.cannot(8 * 10**9)},
    ]
    return retention_rows.event_of(events, tmp_path, "recall")


def test_what_is_lost_slow_and_refreshed_is_said(tmp_path):
    event = written(tmp_path, {3: (4, 5), 9: (200,)})
    text = "\n".join(retention_sentences.lines(event))
    assert "3 of " in text and "(3 UNREADABLE)" in text and "1 piece has a P99 of 3 times" in text
    assert f": {PIECES[-1]}." in text and "0.6 eV" in text and "115 TB" in text and "31 drives" in text
    assert "5.00 MB written to NAND on its own; energy: no rig measured its power" in text
    assert "refreshes +3" in text and "media errors +2" in text and "in the middle is not used" in text
    row = SimpleNamespace(result=event)
    page = "".join(retention_html._panels(row, "Retention", ""))
    assert page.count("<svg") == 3 and "UNREADABLE" in page and 'class="warn"' in page


def test_a_baseline_of_which_no_piece_could_be_read_has_no_figures():
    base = dict.fromkeys(("MBps", "p50_us", "p99_us", "max_us")) | {"pieces": 0}
    counted = {"bytes": MIB, "seconds": 1.0, "counted": {}, "begun_C": None, "ended_C": None}
    manifest = {"baseline": base, "written": counted, "drive": {"wear_percent": None, "class": None}}
    assert "–" not in " ".join(retention_sentences.written({"manifest": manifest, "off": None}))


def test_what_only_a_later_pass_finds_lost_is_lost(tmp_path):
    event = written(tmp_path, {})
    first, lost = event["passes"][0], {"bad": 3, "classes": {"UNREADABLE": 3}}
    row = SimpleNamespace(result=event | {"passes": [first, first | lost, first]}, state="done", why=None)
    row.act = SimpleNamespace(path="verify", do="recall")
    assert retention_sentences.verdict(row.result).startswith("3 of ")
    assert [case.verdict for case in acceptance._of_step(row)] == [acceptance.FAIL]
    run = SimpleNamespace(rows=[row])
    assert retention_facts.retention(run, {}, "verify")["bad"].words.startswith("3 of ")
    row.result = event
    assert [case.verdict for case in acceptance._of_step(row)] == [acceptance.PASS]


def test_energy_of_a_refresh_is_what_is_above_the_power_at_rest(tmp_path):
    row = SimpleNamespace(result=written(tmp_path, {}))
    (window,) = row.result["windows"]
    retention_rows.Wanted(row, window, (0, 10 * S)).put(None, [])
    assert row.result["refresh_J"] is None and row.result["refresh_why"] == retention_rows.NO_METER
    window["J"] = 8.0
    retention_rows._refresh(row.result)
    assert row.result["refresh_J"] == pytest.approx(8.0 - 10 * 0.5) and row.result["refresh_why"] is None
    row.result["idle_W"] = None
    row.result["refresh_J"] = None
    retention_rows._refresh(row.result)
    assert row.result["refresh_J"] is None and row.result["refresh_why"] == retention_rows.NO_IDLE


def test_a_sealed_drive_and_a_damaged_folder_are_shown(tmp_path):
    written(tmp_path, {})
    off = {"off_utc": "2026-11-22T12:00:01Z", "announced": True, "words": "its power is off"}
    events = [{"kind": "retention.sealed", "digest": "d", "label": "L", **off}]
    event = retention_rows.event_of(events, tmp_path, "retain")
    text = "\n".join(retention_sentences.lines(event))
    assert "SSDRIG RETENTION run-1" in text and "at most 20.0 MB moved" in text and "30.0 to 41.0" in text
    assert "<svg" in "".join(retention_html._panels(SimpleNamespace(result=event), "Retention", ""))
    (tmp_path / "retention/manifest.json").write_text("{")
    event = retention_rows.event_of([], tmp_path, "recall")
    assert retention_sentences.lines(event)[0] == "Nothing was read: no verdict on the drive."
    assert "".join(retention_html._panels(SimpleNamespace(result=event), "Retention", ""))
