"""The whole bench: a trace played by a plan on the virtual drive, its figures against the drive's ledger."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small_plans import FILLED, HEAD
from starved import unseen_J

from ssdrig.load import playedlog, traceform
from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.runs import journal
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
PLAY = """[[step]]
name = "play"
do = "replay"
bench = "bench-light-like"
ios = 6000
range = "64 MiB"
idle_cap = "25 ms"
smart = "edges"
[[show]]
view = "replay"
of = "play"
"""


def ssdrig(*words) -> dict:
    argv = [sys.executable, "-m", "ssdrig", *map(str, words), "--json", "--quiet"]
    done = subprocess.run(argv, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """(what the dry run said of the step, the run folder)"""
    folder = tmp_path_factory.mktemp("replay")
    (folder / "plan.toml").write_text(HEAD + FILLED.replace('do = "fill"\n', 'do = "fill"\nrange = "64 MiB"\n') + PLAY)
    words = ("run", folder / "plan.toml", "--virtual", "sata-tlc", "--capacity", "256MiB", "--runs", folder / "runs")
    planned = ssdrig(*words, "--dry-run")["acts"][-1]
    return planned, Path(ssdrig(*words)["run"])


def test_its_figures_are_the_ledgers(ran):
    planned, run = ran
    _, rows = traceform.read(next((run / "traces").iterdir()))
    read, written = (int(rows["length_bytes"][rows["op"] == op].sum()) for op in (traceform.READ, traceform.WRITE))
    ledger = json.loads((run / "truth/ledger.json").read_text())
    assert planned["written_bytes"] == [written, written]
    assert ledger["host_write_bytes"] == (64 << 20) + written and ledger["host_read_bytes"] >= read
    assert ledger["host_write_commands"] - int((rows["op"] == traceform.WRITE).sum()) == (64 << 20) // (128 << 10)
    row = next(row for row in table.load(run).rows if row.act.path == "play")
    whole = row.windows["all"]
    assert row.state == "done" and row.result["bytes"] == read + written and whole["ios"] == 6000
    assert playedlog.load(run / "played/play").bw_bytes.sum() == read + written
    assert journal.events(run)[-1]["state"] == "complete"
    edges = [row.data.t0_ns, row.data.t0_ns + round(row.data.load_s * 1e9)]
    true_J = truth.energy_between(str(run / "truth"), *edges)
    stated_J = whole["errors"]["energy_J"] or 0.0
    assert whole["energy_J"] == pytest.approx(true_J, abs=0.01 * true_J + unseen_J(run, *edges) + stated_J)
    assert whole["energy_J_per_GB"] == pytest.approx(whole["energy_J"] / (read + written) * 1e9)
    assert np.isfinite(row.data.power_mean_W).mean() > 0.5


def test_its_page_has_what_was_played(ran):
    html = page.render([table.load(ran[1])])
    for words in ("SCALED: 6000 I/Os", "Data rate while busy", "Service time, writes, P99", "Time to complete"):
        assert words in html
