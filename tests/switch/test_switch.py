"""switch.py and the switches beside our board: two commands, a USB hub, a PCIe slot."""

import argparse
import os

import pytest

from ssdrig.base.errors import RigError, ToolMissing, UsageError
from ssdrig.powerloss.supply import SwitchSupply
from ssdrig.run import cutting
from ssdrig.switch import slot, switch, usb
from ssdrig.switch.command import Commands
from ssdrig.switch.switch import Edge


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """uhubctl, which writes down what it is asked for."""
    tool, asked = tmp_path / "bin" / "uhubctl", tmp_path / "asked"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >>{asked}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return asked


def test_each_switch_is_known_because_its_file_is_there():
    assert {"usb", "slot"} <= set(switch.names()) and not {"switch", "pico", "profiles"} & set(switch.names())
    assert isinstance(switch.of("true", "true"), Commands) and isinstance(switch.of("usb:1-1", "true"), Commands)
    with pytest.raises(UsageError, match="usb:"):
        switch.check("ubs:1-1.4")


@pytest.mark.parametrize("word, words", [("1-1.4", "-l 1-1 -p 4"), ("2-3", "-l 2 -p 3")])
def test_a_hub_switches_the_port_of_the_drive(hub, word, words):
    usb.check(word)
    supply = SwitchSupply(switch.of(f"usb:{word}", f"usb:{word}"), lambda: False)
    found = supply.cut("command", None, 0.0)
    assert found.why_not == "" and found.on_ns >= found.fired_ns + found.bound_ns
    assert hub.read_text().splitlines() == [f"{words} -r 1 -a {way}" for way in ("off", "on")]


@pytest.mark.parametrize("word", ["", "4", "1-1.", "1-1.4; rm x", "1-1.4\n", "../1-1.4"])
def test_a_word_that_is_no_port_is_refused(hub, word):
    with pytest.raises(UsageError):
        switch.check(f"usb:{word}")
    assert not hub.exists()


def test_a_hub_needs_uhubctl(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing):
        switch.check("usb:1-1.4")


def test_a_slot_is_read_back(tmp_path, monkeypatch):
    power = tmp_path / "3" / "power"
    power.parent.mkdir()
    power.write_text("1\n")
    monkeypatch.setattr(slot, "ROOT", tmp_path)
    one = switch.opened("slot:3")
    edge = one.off()
    assert power.read_text() == "0\n" and edge.seen_low is None and edge.bound_ns > 0
    one.on()
    assert power.read_text() == "1\n"
    monkeypatch.setattr(type(power), "read_text", lambda path: "1\n")
    with pytest.raises(RigError):
        one.off()
    for word in ("", "4", "../3", "/"):
        with pytest.raises(UsageError):
            switch.check(f"slot:{word}")


def test_a_switch_that_did_not_see_the_supply_low_made_no_cut():
    class Blind:
        def off(self, at_ns=None):
            return Edge(1, 0, False)

        def on(self):
            return Edge(2, 0)

    assert SwitchSupply(Blind(), lambda: False).cut("command", None, 0.0).why_not


def test_a_switch_is_short_for_both_commands(hub):
    parser = argparse.ArgumentParser()
    cutting.add_arguments(parser)
    args = parser.parse_args(["--switch", "usb:1-1.4"])
    args.plan, args.drive, args.virtual, args.rig = "powerloss", "S1", None, "hwmon:/none"
    cutting.check(args)
    assert cutting.commands(args) == ("usb:1-1.4", "usb:1-1.4")
    args.power_on = "true"
    with pytest.raises(UsageError):
        cutting.check(args)
