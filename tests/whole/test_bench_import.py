"""A whole run without a rig, whose power another instrument records by a clock of its own, 3 s and 80 ppm away: laid
on it by the marks of --sync and held against the SIMULATED drive's ledger."""

import json

import numpy as np
import pytest
from recorded import Clock

from ssdrig import cli
from ssdrig.base.errors import UsageError
from ssdrig.meter import samples, sync
from ssdrig.reading import table
from ssdrig.runs import journal
from ssdrig.virtual import bench
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
LOAD = ["run", "consistency", "--duration", "6", "--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet", "--sync"]
PERIOD_NS = 1_000_000
VOLTS = 5.0
MOST_BOUND_NS = 5_000_000


def recorded(run, path, clock: Clock, begin_ns: int, end_ns: int) -> np.ndarray:
    """Write the mean power of each millisecond of the ledger as a CSV. Returns the host times of its rows."""
    start_ns, step_ns, nJ = truth.energies(str(run / "truth"))
    joules = np.concatenate([[0], np.cumsum(nJ, dtype=np.uint64)]) * 1e-9
    edges = np.arange(begin_ns, min(end_ns, start_ns + len(nJ) * step_ns), PERIOD_NS, dtype=np.int64)
    watts = np.diff(np.interp((edges - start_ns) / step_ns, np.arange(len(joules)), joules)) / PERIOD_NS * 1e9
    rows = zip(clock.own(edges[1:]).tolist(), watts.tolist())
    text = "".join(f"{t // 10**9}.{t % 10**9:09d},{VOLTS:.4f},{W / VOLTS:.9f}\n" for t, W in rows)
    path.write_text("Time (s),Voltage (V),Current (A)\n" + text)
    return edges[1:]


def test_a_recording_with_drift_and_offset_is_laid_on_a_whole_run(monkeypatch, tmp_path, capsys):
    start = bench.start
    monkeypatch.setattr(bench, "start", lambda preset, **how: start(preset, **{**how, "board": False}))
    assert cli.main([*LOAD, "--runs", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    events = journal.events(run)
    begin_ns, end_ns = events[0]["t_ns"], events[-1]["t_ns"]
    own_ns = recorded(run, tmp_path / "power.csv", Clock(begin_ns, 3.0, 80.0), begin_ns, end_ns)
    capsys.readouterr()
    words = ["import", str(tmp_path / "power.csv"), "--run", str(run), "--sync", "--accuracy", "0.5% + 2 mA", "--json"]
    if cli.main(words) == UsageError.exit_code:
        pytest.skip("too busy a host: the bursts of a mark did not draw their pattern")
    clock = json.loads(capsys.readouterr().out)
    assert abs(clock["drift_ppm"] - 80.0) <= clock["drift_error_ppm"]
    power, full = samples.load(run), table.in_full(run)
    marks = [event["begin_ns"] for event in events if event["kind"] == sync.EVENT]
    true_ns = own_ns[-len(power.t_ns) :] if len(power.t_ns) <= len(own_ns) else own_ns
    off_ns = np.abs(power.t_ns - true_ns)
    between = (true_ns > marks[0]) & (true_ns < marks[-1])
    assert between.any() and off_ns[between].max() <= clock["bound_ns"]
    assert (off_ns <= power.err_ns).all()
    for name, window in full.figures["windows"].items():
        if window and window["energy_J"] is not None:
            edges = [full.data.t0_ns + window[key] * 10**9 for key in ("t0_s", "t1_s")]
            true_J = truth.energy_between(str(run / "truth"), *edges)
            assert window["energy_J"] == pytest.approx(true_J, rel=2e-3), name
    if clock["bound_ns"] > MOST_BOUND_NS:
        pytest.skip(f"too busy a host: the marks are known to {clock['bound_ns'] / 1e6:.3g} ms")
