"""switch/pico.py and powerloss/supply.py: what is tried again where nothing has happened."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError, UsageError
from ssdrig.meter import wire
from ssdrig.powerloss import supply
from ssdrig.switch import pico

OLD = RigError("the rig to execute `c`", "refused: not armed with this token, or it is too old", "repeat")
OTHER = RigError("the rig to execute `c`", "refused: rail 0 is not being measured", "correct that")


@pytest.mark.parametrize(
    ("errors", "tries", "fails"), [([], 1, None), ([OLD], 2, None), ([OLD] * 3, 3, OLD), ([OTHER], 1, OTHER)]
)
def test_a_cut_is_armed_again_where_the_host_stood_still_behind_arming(monkeypatch, errors, tries, fails):
    """A busy host lost a session, and a verify, to a token that was 10 s old."""
    asked, called_off, left = [], [], list(errors)
    monkeypatch.setattr(pico, "_arm", lambda rig: 100 + len(asked))
    monkeypatch.setattr(pico, "_call_off", called_off.append)
    monkeypatch.setattr(pico, "_checked", lambda report, what: report)

    def report(rig, kind, body, timeout_s):
        asked.append(body)
        if left:
            raise left.pop(0)
        return {"token": 99 + len(asked)}

    monkeypatch.setattr(pico, "_report", report)
    if fails:
        with pytest.raises(RigError) as raised:
            pico.arm_and_cut(None, off_ms=1)
        assert raised.value is fails
    else:
        assert pico.arm_and_cut(None, off_ms=1) == {"token": 99 + tries}
    assert len(asked) == tries and len(called_off) == len(errors)
    assert [b'"token": %d' % (100 + n) in body for n, body in enumerate(asked)] == [True] * tries


@pytest.mark.parametrize(
    "off_ms, fired_us, on_us, whole", [(1, 5, 9, True), (1, 5, None, False), (1, None, 9, False), (None, 5, None, True)]
)
def test_a_cut_that_was_carried_out_has_its_times(monkeypatch, off_ms, fired_us, on_us, whole):
    report = {"token": 1, "ok": True, "why": "", "rails": [], "fired_us": fired_us, "on_us": on_us}
    monkeypatch.setattr(pico, "_arm", lambda rig: 1)
    monkeypatch.setattr(pico, "_call_off", lambda rig: None)
    monkeypatch.setattr(pico, "_report", lambda *_: report)
    if whole:
        assert pico.arm_and_cut(None, off_ms=off_ms) == report
    else:
        with pytest.raises(RigError, match="the times of a cut"):
            pico.arm_and_cut(None, off_ms=off_ms)


def test_a_cut_that_is_too_long_is_refused_before_anything_is_armed(monkeypatch):
    monkeypatch.setattr(pico, "_arm", lambda rig: pytest.fail("armed"))
    with pytest.raises(UsageError, match="a cut below"):
        pico.arm_and_cut(None, when={"now": "x" * wire.MAX_COMMAND})


@pytest.mark.parametrize("failures", [0, 1, 2])
def test_power_is_taken_at_the_second_try(monkeypatch, failures):
    left, did = [OTHER] * failures, []
    rig = SimpleNamespace(hello=lambda: None, live=lambda: {"state": "streaming"})
    monkeypatch.setattr(pico, "off", lambda rig: did.append("off") or left and _raise(left.pop()) or {"r": 1})
    monkeypatch.setattr(pico, "restore", lambda rig: did.append("restore"))
    power = supply.RigSupply(rig, Path("run"))
    if failures == 2:
        with pytest.raises(RigError):
            power.off()
    else:
        assert power.off() == {"r": 1}
    assert did == ["off", "restore", "off"][: 1 if not failures else 3]


def _raise(error):
    raise error
