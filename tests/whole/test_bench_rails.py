"""A whole virtual run of a drive that draws from two rails: firmware, wire, host, points and figures against the
drive's ledger."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_run import other_notes

from ssdrig.load import fiolog
from ssdrig.meter import rails, samples
from ssdrig.publish.influx import points
from ssdrig.reading import table
from ssdrig.runs import journal, rigbin
from ssdrig.virtual import bench
from ssdrig.virtual.device import truth
from ssdrig.virtual.flash.presets import PRESETS

pytestmark = pytest.mark.keeps_time

HOST = Path(__file__).parents[2] / "host"


def test_rails_of_a_preset_are_a_board_s_settings():
    u2 = PRESETS["u2-tlc"]
    rails_ = bench.rails_for(u2.rail_V, u2.more_rails)
    (aux,) = rails_["rails"]
    assert rails_["rail"] == {"name": "12V"} and (aux["name"], aux["rail"], aux["address"]) == ("3.3Vaux", 1, 0x41)
    assert aux["simulated"] == {"share": 0.003, "V": 3.3}
    assert bench.rails_for(5.0, []) == {}


@pytest.mark.slow
def test_the_rails_together_are_the_drive(tmp_path):
    faults = bench.rails_for(5, [("12V", 12.0, 0.4)])
    slow = {"vbus_us": 540, "vshunt_us": 1052, "temp_us": 540}  # a busy host falls behind two fast rails
    faults = {"ppm": 40, "rail": faults["rail"] | slow, "rails": [row | slow for row in faults["rails"]]}
    words = [
        "run",
        "consistency",
        "--virtual",
        "sata-tlc",
        "--capacity",
        "256MiB",
        "--quiet",
        "--jsonl",
        "--duration",
        "4",
        "--op",
        "25",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "ssdrig", *words, "--runs", str(tmp_path), "--faults", json.dumps(faults)],
        env=os.environ | {"PYTHONPATH": str(HOST)},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    *seconds, end = map(json.loads, done.stdout.splitlines())
    run = Path(end["run"])
    assert journal.state(run) == "complete"

    came = journal.records(run)
    assert [bytes(came.payload(i)) for i in range(len(came)) if came.kind[i] == rigbin.DAMAGE] == []
    powers, load = samples.load_rails(run), fiolog.load(run / "fio" / "load")
    t0_ns, t1_ns = int(load.t_ns[0]), min(int(load.t_ns[-1]) + 10**9, *(int(p.t_ns[-1]) for p in powers))
    true_J = truth.energy_between(str(run / "truth"), t0_ns, t1_ns)
    assert rails.energy_J(powers, t0_ns, t1_ns) == pytest.approx(true_J, rel=0.005)
    energies_J = [rails.energy_J([p], t0_ns, t1_ns) for p in powers]
    assert energies_J == pytest.approx([0.6 * true_J, 0.4 * true_J], rel=0.005)

    f = table.in_full(run).figures
    of_the_rig = ("power", "energy", "rail", "clock")  # a busy host may have others: SMART polls that took long
    notes = [note for note in other_notes(f) if "own_power_ratio" not in note]  # of two readings it may be null
    assert [note for note in notes if any(word in note for word in of_the_rig)] == []
    ratio = f["windows"]["all"]["own_power_ratio"]
    assert ratio is None or abs(ratio - 1) <= 2 * f["windows"]["all"]["own_power_ratio_error"]
    assert [(rail["name"], rail["samples_lost"]) for rail in f["rails"]] == [("5V", 0), ("12V", 0)]
    assert sum(rail["energy_J"] for rail in f["rails"]) == pytest.approx(f["energy_J"], rel=1e-9)
    assert f["power_max_W"] >= f["power_mean_W"] > max(rail["power_mean_W"] for rail in f["rails"])
    assert f["power_max_W"] <= sum(rail["power_max_W"] for rail in f["rails"]) * 1.001
    assert abs(f["closure_percent"]) < 0.2 and all(abs(rail["closure_percent"]) < 0.2 for rail in f["rails"])
    shown = [s["power_W"] for s in seconds if s.get("step") == "load" and s.get("power_W") is not None]
    assert max(shown) == pytest.approx(f["power_max_W"], rel=0.5) and max(shown) > f["rails"][0]["power_max_W"]
    assert points.counts(run)["drive_power"] >= 4
