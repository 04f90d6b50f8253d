"""`rig info` on rigs with several rails and with a fast one; what a person sees while it measures."""

import json
import math

import numpy as np
import pytest
from json_documents import checked
from simboard import REAL_TIME, Board, lent_port, run_rig, samples_in
from synthetic_fast import FAST
from test_rig_command import Bench

from ssdrig.base.errors import RigError
from ssdrig.commands import rig as rig_command
from ssdrig.meter import wire
from ssdrig.meter.pico.session import Memory, Reading, Session, session
from ssdrig.meter.pico.stream import Rig
from ssdrig.rig import calibrate, checks, info
from ssdrig.rig.answers import Questions
from ssdrig.virtual import bench

pytestmark = pytest.mark.keeps_time


def info_of(tmp_path, capsys, faults, watts=5.0):
    """(what `rig info --json` prints, what `rig info` does) of a SIMULATED board with an exact chip; of one reading."""
    load = Bench(tmp_path)
    load.draw(watts)
    read, once = rig_command.info, []
    with (
        pytest.MonkeyPatch.context() as patch,
        Board(tmp_path, faults={"noise": 1, **REAL_TIME, **faults}, feed_path=tmp_path / "feed") as board,
        lent_port(board) as port,
    ):
        patch.setattr(rig_command, "info", lambda *how: once[0] if once else once.append(read(*how)) or once[0])
        assert run_rig("info", "--rig", port, "--time", "2.5s", "--json") == 0
        document = checked("rig-info", json.loads(capsys.readouterr().out))
        assert run_rig("info", "--rig", port, "--time", "2.5s") == 0
        return document, capsys.readouterr().out


def test_several_rails_and_their_sum(tmp_path, capsys):
    faults = bench.rails_for(5, [("12V", 12.0, 0.4), ("3.3Vaux", 3.3, 0.01)])
    slow = {"vbus_us": 540, "vshunt_us": 1052, "temp_us": 540}  # three rails are much for a busy machine
    faults = {"rail": faults["rail"] | slow, "rails": [row | slow for row in faults["rails"]]}
    document, text = info_of(tmp_path, capsys, faults)
    assert [(row["rail"], row["name"], row["lost"]) for row in document["rails"]] == [
        (0, "5V", 0),
        (1, "12V", 0),
        (2, "3.3Vaux", 0),
    ]
    assert [row["P_mean_W"] for row in document["rails"]] == pytest.approx([2.95, 2.0, 0.05], rel=2e-3)
    assert [row["V_mean"] for row in document["rails"]] == pytest.approx([4.972, 11.992, 3.299], abs=2e-3)
    assert document["total"]["P_mean_W"] == pytest.approx(5.0, rel=1e-3)
    assert document["total"]["P_uncertainty_W"] == pytest.approx(
        math.hypot(*(row["P_uncertainty_W"] for row in document["rails"])), rel=1e-9
    )
    for row in document["rails"][:2]:
        assert row["given_up"] == 0 and row["rate_nominal_per_s"] == pytest.approx(1e6 / 2132)
        assert abs(row["closure_percent"]) < 0.2 and row["closure_resolution_percent"] < 0.05
    assert document["rails"][2]["closure_resolution_percent"] > 0.3  # 50 mW: little of it for the chip's own steps
    lines = text.splitlines()
    assert [line.split(":")[0].strip() for line in lines if line.startswith("  rail")] == [
        "rail 0 5V",
        "rail 1 12V",
        "rail 2 3.3Vaux",
    ]
    (together,) = [line for line in lines if line.startswith("  together: ")]
    assert float(together.split()[1]) == pytest.approx(5000, rel=1e-3)


def test_a_fast_rail(tmp_path, capsys, monkeypatch):
    read, sessions = Session.readings, []
    monkeypatch.setattr(Session, "readings", lambda session_, *how: sessions.append(session_) or read(session_, *how))
    document, text = info_of(tmp_path, capsys, {"rail": {"vbus_us": 84, "vshunt_us": 150, "temp_us": None}})
    (row,) = document["rails"]
    assert row["rate_nominal_per_s"] == pytest.approx(1e6 / 234) and row["rate_per_s"] == pytest.approx(
        1.005e6 / 234, rel=2e-3
    )
    first, *_, last = (sample[1] for body in sessions[0].memory.bodies(wire.SAMPLES) for sample in samples_in(body))
    # one for each second of the stream, which on a busy machine begins long before the reading
    assert row["lost"] - row["given_up"] in (0, -1) and 2 <= row["given_up"] <= 1.01e-6 * (last - first)
    assert "of nominal 4273.5" in text and "given up to read the accumulators" in text and "together" not in text


@pytest.mark.parametrize(("gain", "agrees"), [(1.0, True), (0.0, False)])  # 0: no amplifier
def test_the_fast_channel_beside_its_sensor(tmp_path, capsys, gain, agrees):
    true = {"gain": 1.0, "zero": 0} if gain else {"absent": True}
    row = {"rail": 0, "gpio": 28, "nA_per_count": 2_014_160, "true": true}
    document, text = info_of(tmp_path, capsys, {"fast": row})
    of = document["fast"]
    assert of["rail"] == 0 and of["intervals"] > 15 and of["limited"] == 0 and of["agrees"] is agrees
    assert of["I_mean"] == pytest.approx(gain * of["I_sensor"], rel=0.02, abs=0.05) and of["I_sensor"] > 0.9
    assert any("is its amplifier there" in words for words in document["warnings"]) is not agrees
    (line,) = [line for line in text.splitlines() if line.startswith("  fast channel of rail 0, not corrected: ")]
    assert float(line.split(": ")[1].split()[0]) == pytest.approx(1e3 * of["I_mean"], rel=0.02, abs=1)
    check = checks.of_fast(of)
    assert check.ok is agrees and ("is its" in check.words() or "amplifier" in check.words()) is not agrees


def test_a_fast_channel_that_sends_nothing_and_a_board_without_one():
    hello, rows = {"fast": FAST}, [{"rail": 0, "I_mean": 0.5}]
    of = info.of_fast(hello, [b"", b"short"], rows)
    assert of["I_mean"] is None and of["agrees"] is False and not checks.of_fast(of).ok
    assert "sends nothing where the sensor reads 0.500 A" in info.fast_apart(of)
    assert info.of_fast(hello, [], [])["agrees"] is None and info.of_fast({}, [], rows) is None


def test_a_rail_at_the_sensors_limit(tmp_path, capsys):
    """40.96 mV across 250 mOhm are 164 mA: the drive draws 500."""
    document, text = info_of(tmp_path, capsys, {"rail": {"shunt_uOhm": 250_000, "current_lsb_pA": 312_500}}, watts=2.3)
    (row,) = document["rails"]
    assert row["clipped"] == row["samples"] > 1000 and row["P_uncertainty_W"] is None
    assert row["I_mean"] == pytest.approx(0x7FFFF * 312.5e-9) and document["total"]["P_uncertainty_W"] is None
    (warning,) = document["warnings"]
    assert warning.startswith(f"rail 0: {row['clipped']} of {row['samples']} samples are at the sensor's limit")
    assert "mW uncertainty unknown" in text


def test_progress_of_readings_and_steps(tmp_path, capsys, monkeypatch):
    """A countdown while readings are taken, and which of how many steps; nothing of that in a log."""
    load = Bench(tmp_path)
    shown, lines, answers = [], [], iter(["M 1", "0.01", "0.001", "0.0001", "", "0.0", "", "", "s"])
    monkeypatch.setattr(
        calibrate,
        "_point",
        lambda *a: calibrate.Point(0.0, 1e-6, 0.0) if "1 of 3" in lines[-1] else calibrate.Point(5.0, 1e-6, 5.0),
    )
    with Board(tmp_path, faults=REAL_TIME, feed_path=tmp_path / "feed") as board, lent_port(board) as port:
        load.draw(1.0)
        with session(port, show=shown.append) as rig_session:
            rig_session.readings([0], 1.2)
            calibrate.guided(rig_session, 0, "V", Questions(lambda words: next(answers), lines.append))
    assert shown[0].endswith("0:01 to go") and len(shown) >= 3 and shown[-1] == ""
    steps = [line.split("]")[0] + "]" for line in lines if line.startswith("[")]
    assert steps == ["[1 of 3]", "[2 of 3]", "[3 of 3]"]
    assert rig_command._waiting()("text") is None and capsys.readouterr().err == ""


def test_a_rail_whose_sensor_is_not_there(tmp_path, capsys):
    """Nobody answers at its address: the others are told all the same, there is no sum, and a run does not begin."""
    rows = bench.rails_for(5, [("12V", 12.0, 0.4)])
    rows["rails"][0]["simulated"]["absent"] = True
    load = Bench(tmp_path)
    load.draw(5.0)
    with Board(tmp_path, faults=rows | REAL_TIME, feed_path=tmp_path / "feed") as board, lent_port(board) as port:
        assert run_rig("info", "--rig", port, "--time", "1s", "--json") == RigError.exit_code
        document = json.loads(capsys.readouterr().out)
        assert run_rig("info", "--rig", port, "--time", "1s") == RigError.exit_code
        output = capsys.readouterr()
        with pytest.raises(RigError, match="samples of every rail"):
            Rig(port, Memory()).start()
    assert (
        [row["name"] for row in document["rails"]] == ["5V"]
        and document["silent_rails"] == [1]
        and document["total"] is None
    )
    assert (
        "rail 1 (12V): no samples; is its sensor there" in output.err
        and "the board reports: rail 1:" in output.out
        and "together" not in output.out
    )


@pytest.mark.parametrize("t_ns", [[], [5], [5, 5, 5]])
def test_samples_of_one_time_have_no_rate(t_ns):
    """A board may send what it likes."""
    reading = Reading({"rail": 2}, np.array(t_ns, np.int64), np.ones(len(t_ns)), np.ones(len(t_ns)), None)
    with pytest.raises(RigError, match="rail 2 at different times"):
        info.row_of(reading)
    assert not info.spans(reading)
