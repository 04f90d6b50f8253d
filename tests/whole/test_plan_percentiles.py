"""Percentiles, means and the split by direction of every shipped plan, against a computation of our own from what fio
and the trace player left: each plan in its quick form on the virtual bench."""

import json
import os
import subprocess
import sys
from pathlib import Path

import own_percentiles
import pytest

from selfcheck.plans import LESS
from ssdrig.plan import grammar

HOST = Path(__file__).parents[2] / "host"
ENV = os.environ | {"PYTHONPATH": str(HOST)}
SATA, NVME = ("--virtual", "sata-tlc", "--capacity", "256MiB"), ("--virtual", "nvme-tlc", "--capacity", "512MiB")
LACKS = {"host-memory": "hmb", "placement": "fdp", "zones": "zoned"}  # of the virtual drive: refused
NO_LOAD = {  # writes and reads by our own code, not by fio: no row has any latency
    "idle-power": "it rests",
    "powerloss": "its writers are our own",
    "retention-verify": "it reads by our own code",
    "retention-write": "it writes by our own code",
}
SMALL = {"burst": ("--set", "cycles=2"), "preconditioning": ("--set", "time=8 s"), "load-line": ("--set", "time=3 s")}
AT_ONCE = ("sync-write", "small-writes")  # of every test run
# of every run of the slow tests: loads by fio, a trace, slices of wear, what is not fio's, and what is refused
SLOW = ("slc-cache", "four-states", "bench-light-like", "endurance", "retention-verify", *LACKS)
WHY_NOT = "SSDRIG_TEST_ALL_PLANS=1 runs it; all plans take more than half an hour of a free machine"
REST = [pytest.mark.slow, pytest.mark.skipif(not os.environ.get("SSDRIG_TEST_ALL_PLANS"), reason=WHY_NOT)]


def marked(plan: str):
    return plan if plan in AT_ONCE else pytest.param(plan, marks=pytest.mark.slow if plan in SLOW else REST)


def carried_out(runs: Path, plan: str) -> tuple[Path, dict]:
    """The folder of a run of a plan, and its `report --json`."""
    words = [plan, "--variant", "quick", *(NVME if plan == "power-limits" else SATA)]
    words += [*LESS.get(plan, ()), *SMALL.get(plan, ())]
    if plan == "retention-verify":
        sealed, _ = carried_out(runs, "retention-write")
        words = [word for word in words if word not in SATA[2:]] + ["--kept", str(sealed / "drive")]
    run = Path(json.loads(ssdrig("run", *words, "--runs", str(runs), "--json", "--quiet").splitlines()[-1])["run"])
    return run, json.loads(ssdrig("report", str(run), "--json"))


def ssdrig(*words: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "ssdrig", *words], env=ENV, text=True, capture_output=True)
    assert done.returncode == code, f"{done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout if not code else done.stderr


@pytest.mark.keeps_time
@pytest.mark.parametrize("plan", [marked(plan) for plan in sorted(grammar.shipped())])
def test_figures_of_a_plan_are_those_of_its_own_ios(tmp_path, plan):
    if plan in LACKS:
        words = ("run", plan, "--variant", "quick", *NVME, "--runs", str(tmp_path))
        assert LACKS[plan] in ssdrig(*words, code=2)
        return
    run, report = carried_out(tmp_path, plan)
    rows = own_percentiles.compared(run, report)
    print(f"{plan}: {len(rows)} rows, {sum(row.figures for row in rows)} figures, {report['state']}")
    assert [(row.label, row.off) for row in rows if row.off] == []
    assert [row.label for row in rows if "no folder" in row.why] == []
    if plan in NO_LOAD:
        assert not sum(row.figures for row in rows), NO_LOAD[plan]
    else:
        assert sum(row.figures for row in rows) >= 3
