"""Whole runs whose power is measured by another meter than our board: what the SIMULATED drive draws is played through
the files of the kernel's sensors. Energies are held against the drive's ledger."""

import json
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from starved import unseen_J

from ssdrig import cli
from ssdrig.base.errors import DriveError
from ssdrig.meter import samples
from ssdrig.reading import table
from ssdrig.run import pairing, second_meter
from ssdrig.runs import journal
from ssdrig.virtual import adminclient, bench
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]
LOAD = ["run", "consistency", "--duration", "6", "--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet"]
STEP_NS = 5_000_000


class Player(threading.Thread):
    """Gives what the drive draws, every few milliseconds, until end()."""

    def __init__(self, admin, volts: float, show):
        super().__init__(daemon=True)
        self._admin, self._volts, self._show, self._ends = admin, volts, show, threading.Event()
        self.shown: list[tuple[int, float]] = []  # since when, W

    def run(self) -> None:
        while not self._ends.wait(STEP_NS / 1e9):
            now_ns = time.monotonic_ns() - STEP_NS
            asked = {"op": "energy", "t0_ns": now_ns - STEP_NS, "t1_ns": now_ns}
            try:
                watts = adminclient.ask(self._admin, asked)["energy_J"] / STEP_NS * 1e9
            except DriveError:  # before the drive has begun
                continue
            self._show(self._volts, watts / self._volts)
            self.shown.append((time.monotonic_ns(), watts))

    def energy_J(self, begin_ns: int, end_ns: int) -> float:
        """Of what was shown between two times."""
        at_ns, watts = np.array([t for t, _ in self.shown], np.int64), np.array([w for _, w in self.shown])
        edges = np.clip(np.append(at_ns, end_ns), begin_ns, end_ns)
        return float((np.diff(edges) * watts).sum() * 1e-9)

    def end(self) -> None:
        self._ends.set()
        self.join()


def sensor(folder: Path, name: str, **more) -> Path:
    """A folder as the kernel makes of a sensor."""
    folder.mkdir()
    for file, text in {"name": name, "in1_input": 5000, "curr1_input": 0, **more}.items():
        (folder / file).write_text(f"{text}\n")
    return folder


def shown(folder: Path):
    """The kernel's files of a sensor, each replaced as a whole."""

    def show(volts: float, amperes: float) -> None:
        for name, value in (("in1_input", volts), ("curr1_input", amperes)):
            new = folder / f".{name}"
            new.write_text(f"{round(value * 1000)}\n")
            new.replace(folder / name)

    return show


class Measured(NamedTuple):
    """A run whose rig is the meter of a URL."""

    figures: dict
    run: Path
    events: list[dict]
    player: Player

    def check(self, name: str) -> None:
        """The energy of a window is the drive's within what is stated, and within what the player was late by, and what
        was interpolated, on a busy host."""
        window, data = self.figures["windows"][name], table.in_full(self.run).data
        edges = [data.t0_ns + window[key] * 10**9 for key in ("t0_s", "t1_s")]
        true_J, shown_J = truth.energy_between(str(self.run / "truth"), *edges), self.player.energy_J(*edges)
        late_J = abs(shown_J - true_J) + unseen_J(self.run, *edges)
        stated_J = window["power_uncertainty_percent"] / 100 * true_J
        assert abs(window["energy_J"] - true_J) <= stated_J + late_J, (window["energy_J"], true_J, stated_J, late_J)


def measured(monkeypatch, tmp_path, url: str, show) -> Measured:
    """A run by a meter. Its pairing is left out: a busy host makes bursts that no sensor of 5 mW resolves."""
    start, players = bench.start, []
    monkeypatch.setattr(pairing, "wanted", lambda acts: False)

    def with_meter(preset, **how):
        ours = start(preset, **{**how, "board": False})
        ours.port, end = url, ours.end
        player = Player(f"{ours.drive['socket']}.truth", ours.drive["rail_V"], show)
        player.start()
        players.append(player)

        def both(keep_truth_in=None):
            player.end()
            end(keep_truth_in=keep_truth_in)

        monkeypatch.setattr(ours, "end", both)
        return ours

    monkeypatch.setattr(bench, "start", with_meter)
    assert cli.main([*LOAD, "--runs", str(tmp_path / "runs")]) == 0
    (run,) = (tmp_path / "runs").iterdir()
    measurement = Measured(table.in_full(run).figures, run, journal.events(run), players[0])
    window = measurement.figures["windows"]["all"]
    if window["power_mean_W"] is None or window["samples_lost"] > window["samples"] // 2:
        pytest.skip(f"too busy a host for a sensor that is polled: {window['samples_lost']} samples lost")
    return measurement


def test_a_sensor_of_the_kernel_measures_a_whole_run(monkeypatch, tmp_path):
    folder = sensor(tmp_path / "hwmon0", "ina226", shunt_resistor=2000, update_interval=2)
    measurement = measured(monkeypatch, tmp_path, f"hwmon:{folder}?rate=100", shown(folder))
    for name, window in measurement.figures["windows"].items():
        if window and window["t0_s"] is not None:
            measurement.check(name)
    power = samples.load(measurement.run)
    assert power.facts["accuracy"]["chip"] == "INA226" and power.err_ns.min() >= 14e6
    assert measurement.figures["closure_percent"] is None
    assert not any(event["kind"] == "rig.certificate" for event in measurement.events)
    assert json.loads((measurement.run / "run.json").read_text())["rig"]["port"].startswith("hwmon:")


def test_a_sensor_without_an_accuracy_leaves_the_uncertainty_open(monkeypatch, tmp_path):
    folder = sensor(tmp_path / "hwmon0", "corsairpsu")
    measurement = measured(monkeypatch, tmp_path, f"hwmon:{folder}?rate=100", shown(folder))
    window = measurement.figures["windows"]["all"]
    assert window["power_mean_W"] > 0 and window["power_uncertainty_percent"] is None
    assert any("states no accuracy of corsairpsu" in note for note in [*window["notes"], *measurement.figures["notes"]])


SUPPLY = """spec: "1.1"
devices:
  supply:
    eom:
      TCPIP INSTR: {q: "\\n", r: "\\n"}
    error: ERROR
    dialogues:
      - {q: "*IDN?", r: "MAKER,SUPPLY,1,1"}
      - {q: "MEAS:VOLT?", r: "5.000"}
    properties:
      amperes:
        default: 0.1
        getter: {q: "MEAS:CURR?", r: "{:.4f}"}
        setter: {q: "DRAWN {:.4f}"}
        specs: {type: float}
resources:
  TCPIP::localhost::inst0::INSTR: {device: supply}
"""


def test_a_bench_supply_measures_a_whole_run(monkeypatch, tmp_path):
    pyvisa = pytest.importorskip("pyvisa", reason="needs pyvisa and pyvisa-sim, which no command installs")
    pytest.importorskip("pyvisa_sim", reason="needs pyvisa-sim, which no command installs")
    (tmp_path / "supply.yaml").write_text(SUPPLY)
    library, at = f"{tmp_path / 'supply.yaml'}@sim", "TCPIP::localhost::inst0::INSTR"
    drawn = pyvisa.ResourceManager(library).open_resource(at, write_termination="\n")

    def show(volts: float, amperes: float) -> None:
        drawn.write(f"DRAWN {amperes:.4f}")

    url = f"scpi:{at}?V=0.05%+10mV&A=0.2%+5mA&rate=50&age_ms=15&library={library}"
    measured(monkeypatch, tmp_path, url, show).check("all")


def test_a_second_meter_agrees_with_the_board_within_its_stated_error(monkeypatch, tmp_path):
    folder = sensor(tmp_path / "hwmon0", "ina226", shunt_resistor=2000, update_interval=2)
    start, players = bench.start, []

    def with_player(preset, **how):
        ours = start(preset, **how)
        player = Player(f"{ours.drive['socket']}.truth", ours.drive["rail_V"], shown(folder))
        player.start()
        players.append(player)
        return ours

    monkeypatch.setattr(bench, "start", with_player)
    try:
        words = [*LOAD, "--meter", f"hwmon:{folder}?rate=100", "--runs", str(tmp_path / "runs")]
        assert cli.main(words) == 0
    finally:
        for player in players:
            player.end()
    (run,) = (tmp_path / "runs").iterdir()
    events = journal.events(run)
    assert (run / "second" / "rig.bin").stat().st_size and any(e["kind"] == "second.rig.hello" for e in events)
    assert samples.load(run).facts["chip"] == "INA228"  # the run's own power is the board's
    compared = {event["step"]: event for event in events if event["kind"] == second_meter.EVENT and event.get("error")}
    if "load" not in compared:
        pytest.skip("too busy a host for a sensor that is polled")
    for step, begin_ns, end_ns in second_meter.steps(run):
        if step in compared:
            # what the player showed late is not the meter's
            shown_of_true = players[0].energy_J(begin_ns, end_ns) / truth.energy_between(
                str(run / "truth"), begin_ns, end_ns
            )
            event = compared[step]
            assert abs(event["ratio"] * shown_of_true - 1) <= event["error"], (event, shown_of_true)
