"""`rig cut --scope FILE`: the file is there before anything is switched, and no other file is touched."""

import contextlib
import types

import pytest
from simboard import run_rig

from ssdrig import latch
from ssdrig.errors import RigError, UsageError
from ssdrig.rig import ports, switch_command

HELLO = {"scope": [{"gpio": 26, "rail": 0}], "switch": {"off": [], "rails": [{"rail": 0, "discharge_mOhm": 1000}]}}
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

    here = types.SimpleNamespace(hello=HELLO, rig=types.SimpleNamespace(port="/dev/none"))
    monkeypatch.setattr(ports, "find", lambda port: "/dev/none")
    monkeypatch.setattr(switch_command, "session", lambda port: contextlib.nullcontext(here))
    monkeypatch.setattr(switch_command, "arm_and_cut", arm_and_cut)
    monkeypatch.setattr(switch_command, "unless_on", lambda *a, **k: None)
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
