"""The latch of an unknown bench: when it is set, what it refuses, and that only a person clears it."""

import contextlib
import json
import os
from types import SimpleNamespace

import pytest
from drives import a_drive

from ssdrig import cli
from ssdrig.base import latch, owner
from ssdrig.base.errors import RigError
from ssdrig.commands import rig_switch
from ssdrig.drive import guard
from ssdrig.meter.pico.stream import LastSecond
from ssdrig.run import run
from ssdrig.switch import pico

HELLO = {"serial": "RIG1", "switch": {"off": [], "rails": []}, "rails": [], "scope": []}


class Rig:
    """Stands in for rig.Rig: `off` rails without power from the start, `falls` after the first look; answers nothing
    once it is `gone`."""

    port = "/dev/ttyRIG"

    def __init__(self, off=(), gone=False, falls=()):
        self.off, self.gone, self.falls = list(off), gone, list(falls)

    def greet(self, timeout_s=5.0):
        if self.gone:
            raise RigError("a greeting", "nothing", "look")
        return self.hello()

    def hello(self):
        seen, self.off = self.off, self.off + self.falls
        self.falls = []
        return {**HELLO, "switch": {"off": seen, "rails": []}}

    def last_second(self):
        return LastSecond([], HELLO)


@pytest.fixture
def meets(monkeypatch):
    """here(rig): `./ssdrig rig …` meets this rig."""
    monkeypatch.setattr(pico, "SETTLE_S", 0.0)
    monkeypatch.setattr(rig_switch, "SETTLE_S", 0.0)

    def meet(rig):
        @contextlib.contextmanager
        def session(port, **_):
            yield SimpleNamespace(rig=rig, hello=rig.hello())

        monkeypatch.setattr(rig_switch, "session", session)
        monkeypatch.setattr(rig_switch.ports, "find", lambda port: rig.port)

    return meet


def test_a_latch_is_kept_until_it_is_cleared():
    assert latch.of_rig("RIG1") is None and latch.clear("RIG1") is None
    latch.refuse("RIG1")
    stored = latch.put("RIG1", "rails [0] are off", "S1")
    assert latch.of_rig("RIG1") == latch.of_drive("S1") == stored
    assert latch.of_drive("S2") is None and latch.of_drive("") is None and latch.of_rig("RIG2") is None
    with pytest.raises(RigError, match=r"rails \[0\] are off"):
        latch.refuse("RIG1")
    assert latch.clear("RIG1") == stored and latch.of_rig("RIG1") is None


TOO_LATE = b'{"rig": "RIG1", "why": "x", "utc_ns": 1000000000000000000000000000000}'
ODD_DRIVE = b'{"rig": "RIG1", "why": "x", "drive": 5, "utc_ns": 1}'


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"rig": 1}', b"\xff", b"[" * 100_000, TOO_LATE, ODD_DRIVE])
def test_a_latch_that_cannot_be_read_is_one_of_any_drive(content):
    latch.put("RIG1", "x", "S1")
    next(latch.folder().iterdir()).write_bytes(content)
    assert "cannot be read" in latch.in_words(latch.of_drive("S2")) and latch.of_drive("") is None
    with pytest.raises(RigError, match="cannot be read"):
        latch.refuse("RIG1")
    assert latch.clear("RIG1") and latch.of_rig("RIG1") is None


@pytest.mark.parametrize("name", ["../../x", "/dev/ttyACM0", ".", "a b\n"])
def test_the_name_of_a_rig_leads_nowhere_else(name):
    latch.put(name, "x")
    (file,) = latch.folder().iterdir()
    assert file.parent == latch.folder() and latch.of_rig(name)["rig"] == name


def test_under_sudo_it_is_the_callers_folder(monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setattr(owner.os, "geteuid", lambda: 0)
    monkeypatch.setattr(owner.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir=f"/home/{uid}"))
    assert str(latch.folder()) == "/home/12345/.local/state/ssdrig/unknown"


@pytest.mark.parametrize(
    "rig, latched", [(Rig(), False), (Rig(falls=[0]), True), (Rig(gone=True), True)], ids=["on", "off", "gone"]
)
def test_a_cut_that_fails(meets, monkeypatch, capsys, rig, latched):
    def fails(*_, **__):
        raise RigError("the cut as asked", "no report", "look")

    meets(rig)
    monkeypatch.setattr(rig_switch, "arm_and_cut", fails)
    assert cli.main(["rig", "cut", "--yes", "--off", "10ms"]) == 5
    assert bool(latch.of_rig("RIG1")) == latched
    capsys.readouterr()
    monkeypatch.setattr(rig_switch, "off", lambda *_, **__: {"rails": [], "off_us": None, "fired_us": 1})
    assert cli.main(["rig", "off", "--yes"]) == (5 if latched else 0)
    assert ("rig clear" in capsys.readouterr().err) == latched


def test_a_cut_that_is_refused_because_the_rail_is_off_on_purpose(meets, monkeypatch):
    def refused(*_, **__):
        raise RigError("the rig to execute `cut`", "refused: a cut is off", "correct that")

    meets(Rig(off=[0]))
    monkeypatch.setattr(rig_switch, "arm_and_cut", refused)
    assert cli.main(["rig", "cut", "--yes", "--off", "10ms"]) == 5 and latch.of_rig("RIG1") is None


def test_ctrl_c_in_a_cut_that_leaves_the_rail_off(meets, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    meets(Rig(falls=[0]))
    monkeypatch.setattr(rig_switch, "arm_and_cut", interrupted)
    assert cli.main(["rig", "cut", "--yes", "--off", "10ms"]) == 130
    assert "KeyboardInterrupt" in latch.of_rig("RIG1")["why"]


@pytest.mark.slow
def test_a_rail_that_does_not_come_back_on(meets, monkeypatch):
    def fails(*_, **__):
        raise RigError("power to return", "refused: residual", "look")

    meets(Rig(off=[0]))
    monkeypatch.setattr(rig_switch, "on", fails)
    assert cli.main(["rig", "on"]) == 5 and "residual" in latch.of_rig("RIG1")["why"]
    assert cli.main(["rig", "on"]) == 5, "to try again is no use of the bench: it is not refused"


def test_clearing_looks_at_the_rig(meets, capsys):
    latch.put("RIG1", "x", "S1")
    meets(Rig(off=[0]))
    assert cli.main(["rig", "clear"]) == 5 and latch.of_rig("RIG1")
    meets(Rig())
    capsys.readouterr()
    assert cli.main(["rig", "clear", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cleared"]["drive"] == "S1" and not latch.of_rig("RIG1")
    assert cli.main(["rig", "clear"]) == 0 and "nothing to clear" in capsys.readouterr().out


def test_a_rig_that_is_not_there_is_cleared_by_its_serial(capsys):
    latch.put("RIG9", "x")
    assert cli.main(["rig", "clear", "--serial", "RIG9"]) == 0 and not latch.of_rig("RIG9")


@pytest.mark.parametrize("simulated", [False, True])
def test_a_run_whose_rail_is_not_seen_on(monkeypatch, simulated):
    """A virtual bench ends with its run: nobody has to clear it."""
    monkeypatch.setattr(pico, "SETTLE_S", 0.0)
    monkeypatch.setattr(pico, "unless_on", lambda rig, why, drive: latch.put("RIG1", why, drive))
    bench = SimpleNamespace(simulated=simulated, drive={"serial": "S1"})
    with pytest.raises(RigError):
        run._rail_on(Rig(gone=True), bench)
    assert bool(latch.of_drive("S1")) != simulated


def test_the_guard_refuses_the_drive_of_an_unknown_bench(monkeypatch):
    """purge, calibrate and run ask the guard; drives shows what it says."""
    latch.put("RIG1", "rails [0] are off", "S1")
    drive = a_drive(serial=" s1", name="none", node="/dev/none", major=1, minor=1, capacity_bytes=1 << 40)
    machine = SimpleNamespace(drives=[], mounted={}, system={}, swap={}, claims={}, writers={}, unseen="")
    monkeypatch.setattr(guard.inventory, "why_not_a_drive", lambda *_: "")
    monkeypatch.setattr(guard, "_same_drive", lambda *_: True)
    monkeypatch.setattr(guard, "_content", lambda *_: "")
    (refusal,) = guard._refusals(drive, " s1", "/", machine)
    assert refusal.check == "bench" and refusal.override is None and "rig clear" in refusal.why
    latch.clear("RIG1")
    assert guard._refusals(drive, " s1", "/", machine) == []


def test_a_latch_that_cannot_be_kept_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(RigError, match="cannot|Not a directory"):
        latch.put("RIG1", "x")
    assert os.path.isfile(tmp_path / "file")
