"""Shipped plans carried out in their quick form on the virtual bench, each figure against the drive's own ledger over
the same seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ssdrig.plan import grammar
from ssdrig.reading import table
from ssdrig.virtual.device import truth
from ssdrig.virtual.flash import presets

ENV = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "host")}
CAPACITY = {"sata-tlc": "256MiB", "nvme-tlc": "512MiB"}  # the least with enough spare blocks

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


def carried_out(tmp_path, plan, preset, *more):
    """A run that ended well: its folder."""
    sized = ("--virtual", preset, "--capacity", CAPACITY[preset], "--variant", "quick", "--quiet", "--json")
    words = ("-m", "ssdrig", "run", plan, *sized, "--runs", str(tmp_path / "runs"), *more)
    done = subprocess.run([sys.executable, *words], env=ENV, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(json.loads(done.stdout)["run"])


def of_ledger(run, path):
    """For each point of a load that was run its figures over all of it, and what the drive did in the same seconds:
    writes a second, mean power, write amplification (None: it was not written)."""
    points = []
    for row in table.load(run).rows:
        if row.act.path != path or row.state != "done":
            continue
        window = row.windows["all"]
        edges = [row.t0_ns + round(window[key] * row.k * 1e9) for key in ("t0_s", "t1_s")]
        counts, seconds = truth.counts_between(str(run / "truth"), *edges), window["t1_s"] - window["t0_s"]
        written = counts["host_write_bytes"]
        did = {"iops": counts["host_write_commands"] / seconds}
        did |= {"W": truth.energy_between(str(run / "truth"), *edges) / seconds}
        points.append((row.act.point, window, did | {"wa": counts["nand_write_bytes"] / written if written else None}))
    return points


def agree(window, did, writes=True):
    """The figures of a window are the ledger's, within what the edges of a short window may be off, and their own
    errors."""
    if writes:
        assert window["iops_mean"] == pytest.approx(did["iops"], rel=0.05)
    assert window["power_mean_W"] == pytest.approx(
        did["W"], rel=0.005 + (window["power_uncertainty_percent"] or 0) / 100
    )
    if window["wa"] is not None:
        assert abs(window["wa"] - did["wa"]) <= window["wa_error"]


def test_small_writes_show_the_amplification_of_each_size(tmp_path):
    points = of_ledger(carried_out(tmp_path, "small-writes", "sata-tlc", "--set", "time=16 s"), "write")
    assert [point["block"] for point, _, _ in points] == ["16 KiB", "4 KiB"]
    for _, window, did in points:
        agree(window, did)
        assert window["wa"] > 1


def test_working_set_has_reads_and_writes_of_each_part(tmp_path):
    run = carried_out(tmp_path, "working-set", "sata-tlc")
    reads, writes = of_ledger(run, "read"), of_ledger(run, "write")
    known = [(point["qd"], point["range"]) for point, _, _ in reads]
    assert known == [(1, "10 %"), (1, "100 %"), (32, "10 %"), (32, "100 %")]
    for _, window, did in reads:
        agree(window, did, writes=False)
    for _, window, did in writes:
        agree(window, did)


def test_power_limits_bound_the_power_of_each_operational_state(tmp_path):
    run = carried_out(tmp_path, "power-limits", "nvme-tlc")
    states = presets.PRESETS["nvme-tlc"].power_states
    for path in ("states/write", "states/read"):
        points = of_ledger(run, path)
        assert [point["power_state"] for point, _, _ in points] == [0, 1, 2]
        for point, window, did in points:
            agree(window, did, writes=path == "states/write")
            if state := point["power_state"]:
                assert did["W"] <= states[state - 1].max_mW / 1000
    assert not states[2].operational
    left_out = [(row.act.path, row.act.point["power_state"]) for row in table.load(run).rows if row.state == "not run"]
    assert left_out == [("states/write", 3), ("states/read", 3)]


def test_a_load_that_ends_by_its_amount_before_a_purge_has_its_amplification(tmp_path):
    """The plan `placement` without handles, which no NBD server takes."""
    text, _ = grammar.find("placement")
    text_ = text.partition('[[step]]\nname = "each"')[0].replace('needs  = ["purge", "fdp"]', 'needs = ["purge"]')
    lines = [line for line in text_.splitlines() if not line.startswith(("handle", "headline", "]", '    "write amp'))]
    (tmp_path / "apart.toml").write_text("\n".join(lines).replace('time    = "60 s"', "").replace('time   = "5 s"', ""))
    run = carried_out(tmp_path, str(tmp_path / "apart.toml"), "sata-tlc")
    for path in ("together", "apart"):
        ((_, window, did),) = of_ledger(run, path)
        agree(window, did)
        (row,) = [row for row in table.load(run).rows if row.act.path == path]
        # it has its readings; it is as short as the time between them and it, in which the drive may write, too
        assert window["wa"] is not None or "its error would be" in row.why_not("wa")


def test_a_wake_costs_what_the_ledger_has(tmp_path):
    """Between the second and the last read the drive falls asleep after each: its energy above that of its sleep."""
    run = carried_out(tmp_path, "idle-wake", "sata-tlc", "--set", 'pauses=["4 s"]', "--set", "longest=26 s")
    (row,) = [row for row in table.load(run).rows if row.act.path == "wake"]
    (of,) = row.episodes
    begin_s, asleep_s, reads = 3.0, 0.8, 5  # of six reads, the first at 0 s
    edges = [row.t0_ns + round(t_s * row.k * 1e9) for t_s in (begin_s, begin_s + asleep_s, begin_s + 4 * reads)]
    level_W = truth.energy_between(str(run / "truth"), *edges[:2]) / asleep_s
    truth_J = truth.energy_between(str(run / "truth"), edges[0], edges[2]) / reads - 4 * level_W
    assert of["laid"] >= reads and abs(of["level_W"] - level_W) < 0.02 * level_W
    assert truth_J > 0.1 and abs(of["energy_J"] - truth_J) < of["energy_error_J"] < 0.03 * truth_J
