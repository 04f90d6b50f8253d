"""sources/scpi.py and switch/scpi.py: a bench supply as a meter and as a switch."""

import sys
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError, ToolMissing, UsageError
from ssdrig.meter import manual, meter, visa
from ssdrig.meter.sources import scpi
from ssdrig.powerloss.supply import SwitchSupply
from ssdrig.switch import scpi as output
from ssdrig.switch import switch

AT = "TCPIP::localhost::inst0::INSTR"
GIVEN = f"{AT}?V=0.05%+10mV&A=0.2%+10mA&rate=50&age_ms=2"


class Supply:
    """A supply that answers; what it is told is in `said`."""

    def __init__(self):
        self.commands, self.is_on, self.falls, self.answers = [], True, True, {}

    def query(self, question):
        if question in self.answers:
            if isinstance(answer := self.answers[question], Exception):
                raise answer
            return answer
        volts = "5.0119E+00" if self.is_on or not self.falls else "0.001"
        of = question.split()[0]
        return {"*IDN?": "MAKER,DP8,1,2", "MEAS:VOLT?": volts, "MEAS:CURR?": "0.48", "OUTP?": f"{self.is_on:d}"}[of]

    def write(self, command):
        self.commands.append(command)
        self.is_on = command.endswith("ON")

    def close(self):
        self.commands.append("closed")


@pytest.fixture
def supply(monkeypatch):
    """PyVISA with one instrument."""
    one = Supply()
    opened = SimpleNamespace(open_resource=lambda resource: one)
    library_ = SimpleNamespace(ResourceManager=lambda library: opened, Error=RuntimeError)
    monkeypatch.setitem(sys.modules, "pyvisa", library_)
    monkeypatch.setattr(visa, "is_installed", lambda name: True)
    return one


def test_readings_have_the_limits_of_the_manual(supply):
    one = scpi.opened(GIVEN)
    (rail,) = one.rails()
    assert rail.accuracy.volts == (meter.Limit(manual.MOST, 0.05, 0.01),)
    assert rail.accuracy.amperes == (meter.Limit(manual.MOST, 0.2, 0.01),) and rail.seen == 0
    block = next(one.blocks())
    assert (block.volts, block.amperes) == ((5.0119,), (0.48,)) and block.bound_ns >= 2_000_000
    assert one.clock().bound_ns >= 2_000_000 + scpi.LEAST_NS and one.serial == "MAKER,DP8,1,2"


def test_limits_that_nobody_gave_are_not_known(supply):
    assert scpi.opened(f"{AT}?ch=2").rails()[0].accuracy.unknown


def test_a_channel_is_asked_for_by_its_number(supply):
    supply.answers = {"MEAS:VOLT? CH2": "3.3", "MEAS:CURR? CH2": "1.0 A"}
    assert next(scpi.opened(f"{AT}?ch=2").blocks()).volts == (3.3,)


@pytest.mark.parametrize(
    "rest",
    ["", "x", f"{AT}?cj=1", f"{AT}?ch=1;x", f"{AT}?rate=0", f"{AT}?rate=x", f"{AT}?age_ms=-1", f"{AT}?V=0.05%"]
    + [f"{AT}?V=1&A=1", f"{AT}?V=1%+1A&A=1%", f"{AT}?V=0%&A=1%", f"{AT}?V=1..1%&A=1%"],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_opened(supply, rest):
    with pytest.raises(UsageError):
        meter.check(f"scpi:{rest}")


@pytest.mark.parametrize("answer", ["nonsense", "", "\x1b[2J", OSError("timed out"), RuntimeError("VI_ERROR_TMO")])
def test_an_instrument_that_gives_no_number_is_an_error_in_words(supply, answer):
    supply.answers = {"MEAS:CURR?": answer}
    with pytest.raises(RigError) as error:
        scpi.opened(AT)
    assert "\x1b" not in str(error.value)


def test_without_pyvisa_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(visa, "is_installed", lambda name: False)
    for check in (meter.check, switch.check):
        with pytest.raises(ToolMissing):
            check(f"scpi:{AT}")


def test_an_output_cuts_and_is_seen_low(supply):
    one = switch.opened(f"scpi:{AT}?ch=2")
    outcome = SwitchSupply(one, lambda: False).cut("command", None, 0.0)
    assert outcome.why_not == "" and supply.commands == ["OUTP CH2,OFF", "OUTP CH2,ON"] and supply.is_on


def test_an_output_that_stays_up_made_no_cut(supply, monkeypatch):
    monkeypatch.setattr(output, "FALL_S", 0.05)
    supply.falls = False
    assert SwitchSupply(switch.opened(f"scpi:{AT}"), lambda: False).cut("command", None, 0.0).why_not


def test_an_output_that_does_not_switch_is_an_error(supply):
    supply.answers = {"OUTP?": "1"}
    with pytest.raises(RigError):
        switch.opened(f"scpi:{AT}").off()
