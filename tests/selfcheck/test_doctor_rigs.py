"""What the rig's self-test finds on SIMULATED rigs. They keep the host's time, by which their crystal is judged."""

import json
import types

import pytest

from selfcheck import doctor as bench
from ssdrig import cli
from ssdrig.base import soft_start
from ssdrig.base.errors import RigError
from ssdrig.commands import rig_doctor
from ssdrig.rig import bring_up

pytestmark = pytest.mark.keeps_time


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    "name, failed",
    [
        ("sound", ""),
        ("5 V: crowbar's switch open, or its resistor or fuse", "rail 0: left after its crowbar closed"),
        ("second ALERT open", "rail 1: sensor"),
        ("shunt 15 instead of 8 mOhm", "rail 0: resistor's current"),
    ],
)
def test_a_rig_is_examined(name, failed, tmp_path):
    made = bench.certificate_of(bench.FAULTS.get(name) or bench.rig_with(), tmp_path)
    assert made["simulated"] and bool(made["failed"]) is bool(failed)
    assert not failed or made["failed"][0].startswith(failed), made["failed"]


def test_rails_of_a_sound_rig_rise_as_the_circuit_does(tmp_path):
    made = bench.certificate_of(bench.rig_with(), tmp_path)
    rises = {check["rail"]: check["value"] for check in made["checks"] if check["name"] == "rise"}
    assert set(rises) == {0, 1}
    for rail, mV in ((0, 5000), (1, 12_000)):
        assert rises[rail] == pytest.approx(soft_start.STUDY_ms[mV], rel=0.02)
        low, high = bring_up.rise_ms("two_rails", mV)
        assert low < rises[rail] < high


def test_the_command_prints_its_steps_and_keeps_the_certificate(tmp_path, capsys, monkeypatch):
    """With the last line on standard error, the certificate on standard output, and 5 when something is wrong."""
    seen = {}

    def carried_out(port, resistor, connect, say):
        with_faults = bench.rig_with(None, {"absent": True})
        monkeypatch.setattr(bench, "carried_out", lambda port, *_: real(port, resistor, connect, say))
        return bench.certificate_of(with_faults, tmp_path)

    real = rig_doctor.carried_out
    monkeypatch.setattr(rig_doctor, "carried_out", carried_out)
    monkeypatch.setattr(rig_doctor.ports, "find", lambda port: seen.setdefault("port", port))
    assert cli.main(["rig", "doctor", "--yes", "--json", "--to", str(tmp_path / "mine.json")]) == RigError.exit_code
    out, err = capsys.readouterr()
    made = json.loads(out)
    assert made == json.loads((tmp_path / "mine.json").read_text()) and made["failed"][0] == "rail 1: sensor"
    assert "FAIL  rail 1: sensor: expected so; seen rail 1: " in err and "FAILED: " in err.splitlines()[-1]
    assert types.SimpleNamespace(**made).id in err
