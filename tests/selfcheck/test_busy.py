"""What `selfcheck busy` counts: a window against the ledger, and claims against those of a quiet run."""

import json

import pytest
import synthetic_run
from test_report import run_command

from selfcheck import busy


def window(watts=2.0, percent=1.0):
    return {"power_mean_W": watts, "power_uncertainty_percent": percent, "t0_s": 1.0, "t1_s": 5.0}


@pytest.mark.parametrize(
    ("true_J", "k", "inside"), [(8.0, 1, True), (8.07, 1, True), (8.2, 1, False), (7.8, 1, False), (16.0, 2, True)]
)
def test_a_power_is_inside_what_it_states_or_not(true_J, k, inside):
    seen = busy.judged("w", window(), [], true_J, k)
    assert seen.inside == inside and seen.off_percent == pytest.approx(100 * abs(8.0 / (true_J / k) - 1))


def test_a_null_has_its_reason():
    why = "power_mean_W, energy_J: time: its edges are known to 3000 ms"
    assert busy.judged("w", window(None, None), ["iops: x", why], 8.0, 1) == busy.Seen("w", why=why)
    assert busy.judged("w", window(None, None), [], 8.0, 1).why is None


def figures(iops, **more):
    known = {"iops_mean": iops, "energy_uJ_per_io": 100.0, "power_mean_W": 2.0, "wa": 2.0, "wa_error": 0.01}
    return known | {"power_uncertainty_percent": 1.0, "errors": {"iops_mean": 10.0}, "trust": None} | more


def test_a_claim_that_the_quiet_run_contradicts_is_found():
    quiet = [figures(1000.0), figures(2100.0)]
    assert busy.contradictions([figures(1000.0), figures(1900.0)], quiet) == []
    assert busy.contradictions([figures(1400.0), figures(1000.0)], quiet) == ["iops_mean"]


def test_what_rests_on_a_red_item_claims_nothing():
    red = [{"id": "host", "state": "bad", "why": "late"}]
    quiet = [figures(1000.0), figures(2100.0)]
    assert busy.contradictions([figures(1400.0, trust=red), figures(1000.0)], quiet) == []


def test_a_quiet_pair_on_a_machine_that_was_not_quiet_is_still_the_reference():
    red = [{"id": "host", "state": "bad", "why": "late"}]
    quiet = [figures(1000.0, trust=red), figures(2100.0, trust=red)]
    assert busy.claims(quiet) == {}
    assert busy.contradictions([figures(1000.0), figures(1900.0)], quiet) == []
    assert busy.contradictions([figures(1400.0), figures(1000.0)], quiet) == ["iops_mean"]


def test_the_pair_is_read_from_what_the_report_prints(tmp_path):
    folder = synthetic_run.write(tmp_path, [1000] * 20)
    _, out, _ = run_command(folder, "--json", "--out", tmp_path / "page.html", "--quiet")
    whole = busy.whole_load(json.loads(out.splitlines()[0]))
    assert whole["iops_mean"] == 1000 and {*busy.CLAIMED} <= {*whole}
