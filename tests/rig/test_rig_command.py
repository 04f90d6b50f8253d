"""The command `rig` end to end: the real firmware in the real interpreter on the SIMULATED board."""

import contextlib
import json
import math
import time

import pytest
from simboard import REAL_TIME, SUPPLY_OHM, Board, lent_port, make_feed, run_rig

from ssdrig.base.errors import NoAnswer, RigError, UsageError
from ssdrig.commands import rig as rig_command
from ssdrig.meter import calibration, wire
from ssdrig.meter.pico.session import session
from ssdrig.rig import calibrate
from ssdrig.virtual import cable

pytestmark = pytest.mark.keeps_time

OHMS, VOLTS = SUPPLY_OHM, 5.0  # source, shunt and leads of the stand-in; its open voltage
METER = {"name": "Meter 1", "percent": 0.02, "fixed": 0.0001, "digit": 0.00001}


def amperes(watts):
    """What the simulated drive draws: V = V0 - I R, I = P / V (virtual/board/feed_reader.py)."""
    return (VOLTS - (VOLTS**2 - 4 * OHMS * watts) ** 0.5) / (2 * OHMS)


class Bench:
    """A board whose load can be changed while it runs."""

    def __init__(self, folder):
        self.ring = make_feed(folder / "feed", 0.0)

    def draw(self, watts):
        cable.fill(self.ring, watts)


@contextlib.contextmanager
def bench(folder, **faults):
    """(Bench, port) of a board with an error of gain, of offset and the chip's noise."""
    load = Bench(folder)
    with Board(folder, faults={"noise": 1, **REAL_TIME, **faults}, feed_path=folder / "feed") as board:
        load.reset = board.reset
        load.truth = board.truth
        with lent_port(board) as load.port:
            yield load


def info(port, capsys, seconds="1"):
    capsys.readouterr()
    assert run_rig("info", "--rig", port, "--time", seconds, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_info_says_what_the_rig_measures(tmp_path, capsys):
    with bench(tmp_path) as load:
        load.draw(2.5)
        document = info(load.port, capsys)
        (rail,) = document["rails"]
        assert (
            document["simulated"] is True
            and document["protocol"] == wire.PROTOCOL
            and len(document["serial"]) == 16
            and document["warnings"] == []
        )
        assert rail["rate_per_s"] == pytest.approx(1e6 / 1102 * 1.005, rel=1e-3)  # the chip's oscillator is 0.5 % fast
        assert rail["I_mean"] == pytest.approx(amperes(2.5), rel=1e-3) and rail["P_mean_W"] == pytest.approx(
            2.5, rel=5e-3
        )
        assert (
            rail["I_sd"] == pytest.approx(rail["I_typical"], rel=0.15)
            and rail["lost"] == 0
            and rail["calibrated"] == {}
        )
        assert 0.005 < rail["P_uncertainty_W"] / rail["P_mean_W"] < 0.02  # the shunt's 1 %
        assert 0 < document["clock"]["bound_us"] < 5000 and document["clock"]["pings"] > 5
        assert run_rig("info", "--rig", load.port, "--time", "1s") == 0
        stdout = capsys.readouterr().out
        assert "not calibrated" in stdout and ", 0 lost" in stdout and "(SIMULATED)" in stdout


def test_a_person_is_guided_and_the_rig_is_right_afterwards(tmp_path, capsys, monkeypatch):
    """Current: a shunt that is 0.8 % off and an offset of 0.9 uV across its 8 mOhm, 112 uA; a mean is uncertain by
    9 uA. The person's meter has errors within its limits."""
    monkeypatch.setattr(calibrate, "BLOCK_S", 0.1)
    with bench(tmp_path, gain_ppm=8000.0, offset_uV=0.9) as load:
        load.draw(2.5)
        before = info(load.port, capsys)["rails"][0]
        assert abs(before["I_mean"] - amperes(2.5)) > 3e-3
        watts = iter([2.5, 0.0, 6.0, 3.0])  # first left connected by mistake: 0 A is not what the rail reads then
        now = []

        def person(words):
            if words.startswith(("Meter", "Its", "and the")):
                return {"Meter": METER["name"], "Its ac": "0,02", "and th": "0.0001", "Its la": "0.00001"}[
                    words[:6] if words[0] != "M" else "Meter"
                ]
            if "The meter shows" in words:
                return f"{amperes(now[-1]) * 1.0001 + 0.00005:.5f}"
            now.append(next(watts))
            load.draw(now[-1])
            time.sleep(0.3)
            return "\n"

        monkeypatch.setattr(rig_command, "_ask", person)
        assert run_rig("calibrate", "--rig", load.port, "--quantity", "I", "--json") == 0
        assert now == [2.5, 0.0, 6.0, 3.0]
        stored = json.loads(capsys.readouterr().out)["calibration"]
        gain, offset = calibration.gain_offset(stored["I"])
        assert gain == pytest.approx(1 / 1.008, abs=3e-4) and offset == pytest.approx(-0.9e-6 / 0.008 / 1.008, abs=5e-5)
        assert stored["I"]["meter"] == "Meter 1" and stored["board"] == load_serial(load.port)
        load.draw(2.5)
        load.reset()  # the board keeps it
        after = info(load.port, capsys)["rails"][0]
        assert after["calibrated"] == {"I": stored["I"]["date"]}
        allowed = (
            2 * calibration.line_uncertainty(stored["I"], after["I_mean"]) + 2 * after["I_sd"] / after["samples"] ** 0.5
        )
        assert abs(after["I_mean"] - amperes(2.5)) <= allowed < 1e-3
        assert abs(after["P_mean_W"] - 2.5) <= after["P_uncertainty_W"] < before["P_uncertainty_W"] / 3
        assert run_rig("calibrate", "--rig", load.port, "--forget") == 0
        assert info(load.port, capsys)["rails"][0]["calibrated"] == {}


def test_a_resistor_stands_for_the_ammeter(tmp_path, capsys, monkeypatch):
    """4 Ohm at the drive's connector, a shunt that is 0.8 % off; the rig's own voltage is exact here."""
    monkeypatch.setattr(calibrate, "BLOCK_S", 0.1)
    drawn = iter([0.0, (VOLTS / (4 + OHMS)) ** 2 * 4])
    with bench(tmp_path, gain_ppm=8000.0) as load:

        def person(words):
            load.draw(next(drawn))
            time.sleep(0.3)
            return "\n"

        monkeypatch.setattr(rig_command, "_ask", person)
        words = ["calibrate", "--rig", load.port, "--quantity", "I", "--resistor", "4,0.1", "--json"]
        assert run_rig(*words) == 0
        line = json.loads(capsys.readouterr().out)["calibration"]["I"]
        assert line["meter"] == "resistor 4 Ohm 0.1 %" and line["x1_n"] < 10**6
        off = calibration.gain_offset(line)[0] * 1.008 - 1
        assert abs(off) <= 2 * math.hypot(line["g_ppb"] * 1e-9, 3e-4) and line["g_ppb"] < 10**7


def load_serial(port):
    with session(port, stream=False) as rig_session:
        return rig_session.hello["serial"]


def test_noise_self_test(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(rig_command, "NOISE_S", 3.0)
    with bench(tmp_path, gain_ppm=0.0, offset_uV=2.0, noise=3) as load:
        assert run_rig("calibrate", "--rig", load.port, "--noise", "--json") == 0
        output = capsys.readouterr()
        noise = json.loads(output.out.splitlines()[-1])["calibration"]["noise"]
        # 2 uV across 8 mOhm; a mean of 2700 samples is uncertain by 13.4 uA: 7 standard deviations
        assert noise["I_mean_n"] == pytest.approx(250_000, abs=100_000)
        assert noise["I_sd_n"] == pytest.approx(3 * 234_400, rel=0.1) and noise["adc"] == 0xB140
        assert "NOISY" in output.out and "noisier than the chip" in output.err
        load.draw(1.0)
        with pytest.raises(RigError, match="no current; seen"):
            run_rig("calibrate", "--rig", load.port, "--noise")


def test_figures_from_a_file(tmp_path, capsys):
    points = [{"rig": 0.0, "rig_u": 1e-5, "meter": 0.0}, {"rig": 5.01, "rig_u": 1e-5, "meter": 5.0}]
    path = tmp_path / "figures.json"
    path.write_text(json.dumps({"V": {"meter": METER, "points": points}}))
    with bench(tmp_path, vbus_gain_ppm=2000.0) as load:
        assert run_rig("calibrate", "--rig", load.port, "--readings", str(path)) == 0
        assert "gain -1996 ppm" in capsys.readouterr().err
        rail = info(load.port, capsys)["rails"][0]
        assert rail["V_mean"] == pytest.approx(5 * 1.002 / 1.002, abs=1e-3) and set(rail["calibrated"]) == {"V"}
        with pytest.raises(RigError, match="rail 3; seen rails 0"):
            run_rig("calibrate", "--rig", load.port, "--readings", str(path), "--rail", "3")


def test_the_board_refuses_while_it_streams_and_knows_its_rails(tmp_path):
    with bench(tmp_path) as load, session(load.port) as rig_session:
        with pytest.raises(RigError, match="stream runs"):
            rig_session.store_calibration(0, {"noise": {}})
        rig_session.rig.stop()
    with bench(tmp_path) as load, session(load.port, stream=False) as rig_session:
        with pytest.raises(RigError, match="no rail 7"):
            rig_session.store_calibration(7, None)
        with pytest.raises(RigError, match="below 1024 bytes"):
            rig_session.store_calibration(0, {"V": {"meter": "x" * 1100}})
        assert rig_session.store_calibration(0, None)["rails"][0]["calibration"] is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["info", "--time", "0"], "--time"),
        (["info", "--time", "0"], "--time"),
        (["calibrate", "--noise", "--forget"], "one of"),
        (["calibrate", "--resistor", "10,0.1", "--noise"], "one of"),
        (["calibrate", "--resistor", "10,0.1", "--quantity", "V"], "--quantity I"),
        *(
            (["calibrate", "--resistor", text], "--resistor")
            for text in ("10", "0,0.1", "10,0", "10,9", "nan,1", "1,2,3")
        ),
        (["calibrate", "--readings", "/nonsense.json"], "JSON object"),
        (["info", "--rig", "/dev/nonsense"], "no such file"),
    ],
)
def test_words_that_do_not_fit(words, says):
    with pytest.raises(UsageError, match=says):
        run_rig(*words)


def test_the_end_of_standard_input_changes_nothing(tmp_path, monkeypatch):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("Meter 1\n"))
    with bench(tmp_path) as load:
        with pytest.raises(NoAnswer, match="an answer on standard input"):
            run_rig("calibrate", "--rig", load.port)
        with session(load.port, stream=False) as rig_session:
            assert rig_session.hello["rails"][0]["calibration"] is None


def test_four_rails_all_calibrated_fit_into_one_hello(tmp_path, capsys):
    """The longest hello there can be; and a lab's 12 V rail by the numbers."""
    row = {
        "chip": "INA228",
        "bus": "I2C0",
        "shunt_uOhm": 10_000,
        "shunt_tolerance_ppm": 10_000,
        "current_lsb_pA": 7_812_500,
        "fine": True,
        "vbus_us": 540,
        "vshunt_us": 540,
        "temp_us": 540,
    }
    rows = [
        {
            **row,
            "rail": n,
            "name": f"rail number {n}",
            "address": 0x40 + n,
            "alert": 6 + n,
            "simulated": {"A": 0.5, "V": 12.0, "gate": 10 + 2 * n},
        }
        for n in (1, 2, 3)
    ]
    for n in (0, 1):
        rows[n]["simulated"]["scope"] = 27 + n
    low, high = calibration.Point(0.0001, 1e-6, 0.0), calibration.Point(12.03, 1e-6, 12.0)
    line = {
        **calibration.line(low, high, calibration.Meter("m", 0.05, 0.003, 0.001), 0),
        "date": "2026-01-31",
        "meter": "m" * calibrate.NAME_CHARS,
    }
    noise = {
        "I_mean_n": 100_000,
        "I_sd_n": 261_623,
        "I_pp_n": 1_609_375,
        "I_allan_1s_n": 60_043,
        "V_sd_n": 1_097_793,
        "seconds": 10,
        "adc": 62_720,
    }
    slow = {name: row[name] for name in ("vbus_us", "vshunt_us", "temp_us")}
    with bench(tmp_path, rail=slow, rails=rows) as load:
        with session(load.port, stream=False) as rig_session:
            stored = {
                "V": line,
                "I": line,
                "noise": {**noise, "date": "2026-01-31"},
                "board": rig_session.hello["serial"],
            }
            for n in range(4):
                rig_session.store_calibration(n, stored)
            assert [rail["calibration"] for rail in rig_session.hello["rails"]] == [stored] * 4
            assert 4000 < max(map(len, rig_session.memory.bodies(wire.HELLO))) < wire.MAX_FRAME - 200
        rails = info(load.port, capsys)["rails"]
        assert [rail["rail"] for rail in rails] == [0, 1, 2, 3] and [rail["lost"] for rail in rails] == [0] * 4
        gain, offset = calibration.gain_offset(line)
        # 200 ppm: the stand-in chip's own error
        assert rails[3]["V_mean"] == pytest.approx(12.0 * gain + offset, abs=2.5e-3)
