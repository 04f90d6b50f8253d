"""What views give to headlines: values of the same figures as their own plots, or the reason for their absence."""

import dataclasses
import importlib

import pytest
import synthetic_cuts
import test_load_line as line
import test_rated_life as life
import test_replay as replay
import test_single_reads as single
import test_slc_run as cache
import test_sleep_states as sleep
import test_thermal as thermal
import test_wear_run as wear

from ssdrig.plan import shows
from ssdrig.reading import table

NAMED = {name: view.facts for name, view in shows.views().items() if view.facts}


def facts(run, view: str, path: str, **show) -> dict:
    folder = shows.folders()[view].__name__
    return importlib.import_module(f"{folder}.facts").FACTS[view](run, {"view": view, "of": path} | show, path)


@pytest.mark.parametrize("view", NAMED)
def test_a_run_without_the_step_has_each_fact_with_a_reason(view, tmp_path):
    run = dataclasses.replace(single.woken(tmp_path), rows=[], verdicts=[])
    made = facts(run, view, "wake", against="wake", rest="asleep")
    assert tuple(made) == NAMED[view] or set(made) == set(NAMED[view])
    assert [name for name, fact in made.items() if fact.words or fact.of.value is not None or not fact.of.why] == []


@pytest.mark.usefixtures("short_loads_have_errors")
def test_of_a_fill(tmp_path):
    run = cache.made(tmp_path)
    row = next(iter(run.of("fill")))
    made = facts(run, "plateaus", "fill")
    assert made["cache"].of[:2] == (row.result["cache_bytes"], row.result["cache_error_bytes"])
    assert [made[key].of.value for key in ("fast", "slow")] == [p["bw_mean_MBps"] for p in row.result["plateaus"]]
    slow = row.result["plateaus"][1]
    assert made["slow"].of.error == slow["bw_error_MBps"] < 0.01 * slow["bw_mean_MBps"]
    assert slow["bw_low_MBps"] <= slow["bw_mean_MBps"] <= slow["bw_high_MBps"]
    assert made["last"].of.value == pytest.approx(262.1, rel=0.01)
    assert row.result["last"]["bytes"] == pytest.approx(5500 * 2**20 / 16, rel=0.01)
    assert facts(run, "cache-recovery", "again")["rate"].of.why
    busy = facts(cache.made(tmp_path / "busy", [99.0, 96.0]), "plateaus", "fill")
    assert all("host-limited" in fact.of.why for fact in busy.values())


@pytest.mark.usefixtures("short_loads_have_errors")
def test_there_is_no_speed_after_a_cache_without_an_end(tmp_path):
    """Slow first, then fast: the drive was at work, and its second speed is not that after a cache."""
    run = cache.made(tmp_path)
    row = next(iter(run.of("fill")))
    row.result |= {"cache_bytes": None, "cache_error_bytes": None, "cache_why": "the speed rose first"}
    made = facts(run, "plateaus", "fill")
    assert made["fast"].of.known and made["last"].of.known
    assert made["slow"].of.value is None and "the speed rose first" in made["slow"].of.why


def test_of_single_reads(tmp_path):
    """After the longest pause: 150 s for 30 reads of 9 ms at 0.4 W, 0.05 W of them at rest."""
    made = facts(single.woken(tmp_path), "wakes", "wake", rest="asleep")
    assert made["latency"].of.value == pytest.approx(9000, rel=0.02) and made["latency"].of.error is not None
    assert made["energy"].of.value == pytest.approx(1750, rel=0.01)


@pytest.mark.parametrize(("lie_share", "broke"), [(0.0, False), (0.5, True)])
def test_of_power_cuts(tmp_path, lie_share, broke):
    run = table.load(synthetic_cuts.write(tmp_path, 20, lie_share))
    (row,) = run.rows
    made = facts(run, "cuts", "cuts")
    least, judged = row.result["failing"], row.result["judged"]
    assert made["broken"].words.endswith(f"of {judged} cuts") and (least > 0) == broke
    assert made["bound"].words.endswith(" %")
    row.result["controls"] = [{"cut": 7, "control": "no-cut", "ok": False, "why": None, "harness": "a block was lost"}]
    accused = facts(run, "cuts", "cuts")["broken"]
    assert bool(accused.words) == broke and (broke or "session 7" in accused.of.why)


def test_of_a_load_line_a_life_and_a_sleep(tmp_path):
    made = facts(line.lined(tmp_path / "line"), "load-line", "reads")
    assert made["awake"].of.value == pytest.approx(line.P0, rel=0.01)
    assert made["io"].of.value == pytest.approx(1e6 * line.E, rel=0.01)
    run = table.load(life.run_of(tmp_path / "life", [1.2, 2.5, 2.45, 2.52, 2.48, 2.5, 2.55]))
    made = facts(run, "life", "rounds/write")
    assert made["waf"].of.value == pytest.approx(2.5, abs=0.02) and "P/E cycles" in made["tbw"].of.why
    run = sleep.slept(tmp_path / "sleep")
    stays = [
        row.result["mean_W"] for row in run.rows if row.result.get("kind") == "power-state" and row.result["mean_W"]
    ]
    paths = sorted({row.act.path for row in run.rows if row.result.get("kind") == "power-state"})
    made = facts(run, "power-states", paths[0], of=paths)
    assert made["lowest"].of.value == min(stays) and made["awake"].of.value == max(stays) and made["state"].words


def test_of_heat_wear_and_a_trace(tmp_path):
    run = thermal.heated(tmp_path / "heat")
    row = next(row for row in run.rows if row.result.get("kind") == "thermal")
    made = facts(run, "thermal", "load", of=[row.act.path])
    assert made["K_per_W"].of[:2] == (row.result["K_per_W"], row.result["K_per_W_error"]) and made["throttling"].words
    run = wear.worn_out(tmp_path / "wear")
    row = next(row for row in run.rows if row.result.get("slices"))
    made = facts(run, "wear", row.act.path)
    assert made["used"].of.value == row.result["slices"][-1]["percentage_used"]
    assert made["bad"].words.endswith("sample blocks")
    run = replay.played_twice(tmp_path / "trace")
    row = next(row for row in run.rows if row.result.get("kind") == "played")
    late = bool(row.result["lag"] and not row.result["lag"]["as_recorded"])
    made = facts(run, "replay", row.act.path)
    assert made["data_rate"].of.value == (None if late else row.result["data_rate_MBps"])
