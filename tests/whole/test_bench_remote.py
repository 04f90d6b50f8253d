"""A whole run whose board is on another machine: the SIMULATED board over TCP, 5 ms away each way."""

import json

import numpy as np
import pytest
from starved import unseen_J
from tcp_bridge import TcpBridge

from ssdrig import cli
from ssdrig.meter import samples
from ssdrig.reading import table
from ssdrig.virtual import bench
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
LOAD = ["run", "consistency", "--duration", "6", "--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet"]
DELAY_NS = 5_000_000


def test_a_board_behind_tcp_measures_a_whole_run(monkeypatch, tmp_path):
    start, bridges = bench.start, []

    def behind_tcp(preset, **how):
        ours = start(preset, **how)
        bridge = TcpBridge(ours.port, (DELAY_NS / 1e9, DELAY_NS / 1e9))
        bridge.start()
        bridges.append(bridge)
        ours.port = bridge.url
        return ours

    monkeypatch.setattr(bench, "start", behind_tcp)
    try:
        assert cli.main([*LOAD, "--runs", str(tmp_path / "runs")]) == 0
    finally:
        for bridge in bridges:
            bridge.end()
    (run,) = (tmp_path / "runs").iterdir()
    assert json.loads((run / "run.json").read_text())["rig"]["port"] == bridges[0].url
    power, full = samples.load(run), table.in_full(run)
    assert np.median(power.err_ns) >= DELAY_NS * 0.95 and bridges[0].served == 1
    window = full.figures["windows"]["all"]
    edges = [full.data.t0_ns + window[key] * 10**9 for key in ("t0_s", "t1_s")]
    true_J = truth.energy_between(str(run / "truth"), *edges)
    stated_J = window["power_uncertainty_percent"] / 100 * true_J
    assert abs(window["energy_J"] - true_J) <= stated_J + unseen_J(run, *edges), (window["energy_J"], true_J, stated_J)
