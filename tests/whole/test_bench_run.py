"""The whole bench: firmware in MicroPython, virtual drive, fio, run folder, influxd, figures; compared with the drive's
ledger."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import json_documents
import numpy as np
import pytest
from starved import unseen_J

from selfcheck import influxd, kill, measured
from ssdrig import cli
from ssdrig.load import fiolog, fiotext
from ssdrig.meter import samples
from ssdrig.meter.fast import nA_per_count
from ssdrig.publish.influx import line_protocol, points
from ssdrig.reading import table
from ssdrig.runs import journal
from ssdrig.virtual.device import truth

HOST = Path(__file__).parents[2] / "host"
SMALL = ["run", "consistency", "--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet"]
ENV = os.environ | {"PYTHONPATH": str(HOST)}
INTERVAL_NS = 100_000_000  # of firmware/fast.py

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]


def ssdrig(*words) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "ssdrig", *map(str, words)], env=ENV, text=True, capture_output=True)


@pytest.fixture(scope="module")
def database():
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed")
    server = influxd.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def run(tmp_path_factory, database):
    """One run of 8 s on a drive of 512 MiB with 25 % of raw NAND over-provisioned, by a rig with the fast current
    channel, whose amplifier is a little off."""
    folder = tmp_path_factory.mktemp("runs")
    fast = {"rail": 0, "gpio": 28, "nA_per_count": nA_per_count(8000), "true": {"gain": 0.99, "zero": 12}}
    words = ["--duration", 8, "--op", 25, "--runs", folder, "--json", "--influx", database.url]
    done = ssdrig(*SMALL, *words, "--faults", json.dumps({"fast": fast}))
    assert done.returncode == 0, done.stderr
    return Path(json.loads(done.stdout)["run"])


@pytest.fixture(scope="module")
def figures(run):
    return table.in_full(run).figures


def marks(run: Path) -> tuple[dict, dict]:
    """Ledger at the SMART polls before and after the load."""
    marks = [json.loads(line) for line in (run / "truth" / "marks.jsonl").read_text().splitlines()]
    starts = {e["reason"]: e["t_ns"] for e in journal.events(run) if e["kind"] == "smart.start"}
    return tuple(next(m for m in marks if m["t_ns"] >= starts[reason]) for reason in ("before", "after"))


def test_the_run_is_whole(run, figures):
    assert journal.state(run) == figures["state"] == "complete"
    assert figures["simulated"] and figures["op_percent"] == 25
    steps = [e["step"] for e in journal.events(run) if e["kind"] == "step.end" and e["ok"]]
    assert steps == ["check", "purge", "fill", "load", "flush", "teardown"]
    raw = journal.open_run(run)["drive"]["raw_nand_bytes"]
    assert figures["tested_bytes"] == int(raw * 0.75) // (1 << 20) * (1 << 20)


@pytest.mark.parametrize("name", ["all", "steady"])
def test_the_highest_mean_of_100_us_is_the_drives(run, figures, name):
    """What the drive draws at most it draws for milliseconds on end, so its own millisecond has it. Of each 100 ms the
    channel tells the highest alone: where a window's edge cuts them, that one may lie outside, and hide what is inside
    or all that the window has."""
    figures_, data = figures["windows"][name], table.in_full(run).data
    start_ns, step_ns, nJ = truth.energies(str(run / "truth"))
    from_ns, to_ns = (data.t0_ns + t_s * 10**9 for t_s in (figures_["t0_s"], figures_["t1_s"]))

    def highest_W(begin_ns, end_ns):
        return nJ[(begin_ns - start_ns) // step_ns : (end_ns - start_ns) // step_ns].max() / step_ns

    whole_W = highest_W(from_ns + INTERVAL_NS, to_ns - INTERVAL_NS)  # of those that lie inside
    peak_W, u_W = figures_["peak_100us_W"], figures_["peak_100us_uncertainty_W"]
    if peak_W is None:
        assert any(note.startswith("peak_100us_W: there is a higher one just outside, ") for note in figures_["notes"])
        beside_W = max(highest_W(at_ns, at_ns + INTERVAL_NS) for at_ns in (from_ns - INTERVAL_NS, to_ns))
        assert beside_W > 0.98 * whole_W  # the channel's noise is less than that
        assert any(window and window["peak_100us_W"] for window in figures["windows"].values())
        return
    # to a step of the truth, which is longer than the clock's error
    true_W = highest_W(from_ns - step_ns, to_ns + 2 * step_ns)
    assert whole_W - u_W < peak_W < true_W + u_W and u_W < 0.15 * true_W
    assert peak_W > 1.2 * figures_["power_mean_W"]


def test_per_second_iops_sum_to_the_drives_own_count(run):
    before, after = marks(run)
    assert fiolog.load(run / "fio" / "load").iops.sum() == after["host_write_commands"] - before["host_write_commands"]


def test_write_amplification_agrees_with_the_ledger_within_its_error_bar(run, figures):
    whole = figures["windows"]["all"]
    assert whole["wa"] == pytest.approx(measured.true_wa(run, whole["wa_polls_s"]), abs=whole["wa_error"])
    assert 1 < whole["wa"] and whole["wa_error"] / whole["wa"] < 0.1


@pytest.mark.parametrize("name", ["all", "steady"])
def test_a_window_agrees_with_the_ledger_of_the_same_seconds(run, figures, name):
    data, window = table.in_full(run).data, figures["windows"][name]
    edges = [data.t0_ns + window[key] * 10**9 for key in ("t0_s", "t1_s")]
    true_J = truth.energy_between(str(run / "truth"), *edges)
    assert window["energy_J"] == pytest.approx(true_J, abs=0.005 * true_J + unseen_J(run, *edges))
    seconds, depth = window["t1_s"] - window["t0_s"], data.header["method"]["queue_depth"]
    late_s, across_s = idle_places_s(run, depth) / depth, longest_across_s(data, window)
    assert -2 - 100 * (late_s + across_s) / seconds < window["littles_error_percent"] < 2 + 100 * across_s / seconds
    is_noted = any(note.startswith("littles_qd") for note in window["notes"])
    assert is_noted == (abs(window["littles_error_percent"]) > 2)


def idle_places_s(run, depth) -> float:
    """How long places of the queue stood empty, all together, by fio's own totals of the whole load: a busy host is
    late to fill them."""
    whole = fiolog.load(run / "fio" / "load").totals
    return depth * whole["runtime_ms"] * 1e-3 - whole["lat_sum_ns"] * 1e-9


def longest_across_s(data, window) -> float:
    """The longest that an I/O took next to the window's edges: all of it counts where the I/O ends."""
    second, last = data.hist[:, 0], data.hist[:, 0].max()
    near = np.isin(second, [min(edge - back, last) for edge in (window["t0_s"], window["t1_s"]) for back in (0, 1)])
    return float(fiotext.plat_ns(data.hist[near, 1].max())) * 1e-9


def test_energy_agrees_with_the_ledger(run, figures):
    power, seconds = samples.load(run), fiolog.load(run / "fio" / "load")
    t0_ns, t1_ns = int(seconds.t_ns[0]), min(int(seconds.t_ns[-1]) + 10**9, int(power.t_ns[-1]))
    measured = samples.integral_J(power, [t0_ns, t1_ns])
    true_J = truth.energy_between(str(run / "truth"), t0_ns, t1_ns)
    assert measured[1] - measured[0] == pytest.approx(true_J, abs=0.01 * true_J + unseen_J(run, t0_ns, t1_ns))
    assert abs(figures["closure_percent"]) < 0.2
    assert figures["chip_clock_ppm"] == pytest.approx(5000, abs=300)


def test_the_database_holds_what_the_journal_holds(run, database):
    counts = points.counts(run)
    others = {
        name
        for name in line_protocol.read_schema()
        if name.startswith(("powerloss_", "retention_", "host_", "application"))
    }
    assert set(counts) == set(line_protocol.read_schema()) - others and min(counts.values()) > 0
    assert database.counts(list(counts), run) == counts


def test_report_json_gives_the_figures(run, figures):
    done = ssdrig("report", run, "--json")
    assert done.returncode == 0, done.stderr
    assert json_documents.figures(json.loads(done.stdout)) == json.loads((run / "figures.json").read_text())
    assert "SIMULATED" in (run / "report.html").read_text()


def test_nothing_that_measures_can_see_the_truth():
    """Only comparing may read the ledger: no module of the package outside virtual/ names it."""
    measuring = [path for path in (HOST / "ssdrig").rglob("*.py") if "virtual" not in path.parts]
    assert len(measuring) > 60
    for path in measuring:
        text = path.read_text()
        assert ".truth" not in text, path
        assert "import truth" not in text and "ledger" not in text.lower().replace("virtual ledger", "").replace(
            "its ledger", ""
        ), path


def test_a_dry_run_touches_nothing(tmp_path, capsys):
    assert cli.main([*SMALL[:-1], "--dry-run", "--runs", str(tmp_path / "runs")]) == 0
    assert "expected from" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "words, code, message",
    [
        (["run", "consistency"], 2, "expected a drive to test"),
        (["run", "consistency", "--virtual", "nix"], 2, "nix"),
        (["run", "consistency", "--virtual", "sata-tlc", "--op", "1"], 2, "own"),
        (["run", "consistency", "--virtual", "sata-tlc", "--duration", "1"], 2, "at least 4 s"),
        (["run", "consistency", "--virtual", "sata-tlc", "--faults", "{"], 2, "JSON"),
        (["report", "/nonexistent"], 8, "/nonexistent"),
        (["selfcheck", "nix"], 2, "nix"),
    ],
)
def test_bad_words_get_one_clear_error(tmp_path, monkeypatch, capsys, words, code, message):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == code
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("seed", [1])
def test_kill_9_of_each_process(seed, database):
    results = kill.kills(len(kill.VICTIMS), seed=seed)
    assert [r["victim"] for r in results] == list(kill.VICTIMS)
    assert all(r["killed"] for r in results), results
    assert not any(r["faults"] for r in results), results
    time.sleep(0.2)
