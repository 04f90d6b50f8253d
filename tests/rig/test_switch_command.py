"""`rig cut --scope FILE`: the file is there before anything is switched, and no other file is touched."""

import contextlib
import types

import pytest
from simboard import run_rig

from ssdrig.base import latch
from ssdrig.base.errors import RigError, UsageError
from ssdrig.commands import rig_switch
from ssdrig.meter.pico import ports
from ssdrig.meter.pico.stream import LastSecond

HELLO = {
    "rails": [{"rail": 0, "current_lsb_pA": 10**7}],
    "scope": [{"gpio": 26, "rail": 0}],
    "switch": {"off": [], "rails": [{"rail": 0, "discharge_mOhm": 1000}]},
}
WAVEFORM = [{"t0_us": 10.0, "dt_ns": 2000, "rail": 0, "volts": [5.0, 4.5]}]
ROW = {"rail": 0, "t90_10_us": 1034, "before_mV": 5000, "residual_mV": 10, "safe": True}


class Cuts(list):
    """The cuts asked for; each is answered by `answer`."""

    answer: dict | BaseException


@pytest.fixture
def cuts(monkeypatch) -> Cuts:
    asked = Cuts()

    def arm_and_cut(rig, **how):
        asked.append(how)
        if isinstance(asked.answer, BaseException):
            raise asked.answer
        return asked.answer

    rig_session = types.SimpleNamespace(
        hello=HELLO, rig=types.SimpleNamespace(port="/dev/none", last_second=lambda: LastSecond([], None))
    )
    monkeypatch.setattr(ports, "find", lambda port: "/dev/none")
    monkeypatch.setattr(rig_switch, "session", lambda port: contextlib.nullcontext(rig_session))
    monkeypatch.setattr(rig_switch, "arm_and_cut", arm_and_cut)
    monkeypatch.setattr(rig_switch, "unless_on", lambda *a, **k: None)
    monkeypatch.setattr(latch, "name_of", lambda hello, port: "a rig")
    return asked


def test_the_picture_is_written(cuts, tmp_path, capsys):
    cuts.answer = {"ok": True, "rails": [ROW], "waveform": WAVEFORM}
    assert run_rig("cut", "--yes", "--json", "--scope", str(tmp_path / "fall.csv")) == 0
    assert (tmp_path / "fall.csv").read_text() == "t_us,V\n10.000,5.00000\n12.000,4.50000\n"
    assert cuts[0]["scope"]["gpio"] == [26] and "waveform" not in capsys.readouterr().out


def test_a_file_that_exists_is_kept_and_nothing_is_cut(cuts, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="thesis.txt: File exists"):
        run_rig("cut", "--yes", "--scope", str(tmp_path / "thesis.txt"))
    assert (tmp_path / "thesis.txt").read_text() == "years of work" and cuts == []


def test_a_file_that_cannot_be_made_is_said_before_the_cut(cuts, tmp_path):
    with pytest.raises(UsageError, match="No such file or directory"):
        run_rig("cut", "--yes", "--scope", str(tmp_path / "nowhere" / "fall.csv"))
    assert cuts == []


def test_without_a_picture_no_empty_file_stays(cuts, tmp_path):
    cuts.answer = RigError("a report", "none", "look")
    with pytest.raises(RigError):
        run_rig("cut", "--yes", "--scope", str(tmp_path / "fall.csv"))
    assert len(cuts) == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "when"),
    [
        (["--above", "500mA"], {"above_raw": 50_000}),
        (["--below", "20mA"], {"below_raw": 2000}),
        (
            ["--above", "1mA", "--then", "100us", "2000us", "--seed", "7"],
            {"above_raw": 100, "after_us": [100, 2000], "seed": 7},
        ),
    ],
)
def test_a_power_signature(cuts, words, when):
    cuts.answer = {"ok": True, "rails": [], "off_us": None, "fired_us": 1}
    assert run_rig("cut", "--yes", "--consecutive", "3", *words) == 0
    assert cuts[0]["when"] == {"samples": 3, "rail": 0, **when}


@pytest.mark.parametrize(
    "words",
    [["--consecutive", "3"], ["--consecutive", "3", "--above", "1mA", "--below", "1mA"], ["--then", "1us", "2us"]],
)
def test_half_a_power_signature_is_refused(cuts, words):
    with pytest.raises(UsageError):
        run_rig("cut", "--yes", *words)
    assert cuts == []


def test_dips_and_their_picture(cuts, tmp_path):
    cuts.answer = {"ok": True, "rails": [ROW], "waveform": WAVEFORM}
    words = ["--profile", "dips", "--dips", "9", "--down", "1ms", "--up", "4ms"]
    assert run_rig("cut", "--yes", "--json", *words, "--scope", str(tmp_path / "dips.csv")) == 0
    assert {k: cuts[0][k] for k in ("dips", "down_us", "up_us", "off_ms")} == {
        "dips": 9,
        "down_us": 1000,
        "up_us": 4000,
        "off_ms": None,
    }
    assert cuts[0]["scope"]["rate"] == 100_000  # 6000 samples of 10 us hold 45 ms


def test_a_crowbar_that_let_go_is_said():
    row = {**ROW, "samples": 9, "released": "the rail did not fall", "crowbar_mJ": 251}
    words = rig_switch.words_of({"rails": [row], "off_us": 1000, "fired_us": 5})
    assert "rail 0: the crowbar let go before power returned: the rail did not fall (251 mJ)" in words
