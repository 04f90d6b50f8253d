"""switch.py and the switches beside our board: two commands, a USB hub, a PCIe slot."""

import argparse
import os

import pytest
from disktree import DiskTree

from ssdrig.base.errors import RigError, ToolMissing, UnsafeTarget, UsageError
from ssdrig.drive.inventory import all_drives
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
    outcome = supply.cut("command", None, 0.0)
    assert outcome.why_not == "" and outcome.on_ns >= outcome.fired_ns + outcome.bound_ns
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


SHELL = "uhubctl -l 1-1 -p 4 -a off"


@pytest.fixture
def tree(tmp_path):
    return DiskTree(tmp_path)


def refused(tree, name, url):
    """The refusal of this switch for a disk, "" for none."""
    drive = next(disk for disk in all_drives(tree.root) if disk.name == name)
    try:
        cutting.refuse_switch(drive, (url, url), tree.root)
    except UnsafeTarget as error:
        return error.seen
    return ""


def in_slot(tree, slot_name, index):
    """The PCIe drive of this index, in a slot with a switch."""
    pci = f"sys/devices/pci0000:00/0000:00:06.0/0000:0{index + 1}:00.0"
    tree.link(f"sys/bus/pci/devices/0000:0{index + 1}:00.0", pci)
    tree.write(f"sys/bus/pci/slots/{slot_name}/address", f"0000:0{index + 1}:00\n")


def test_slot_of_another_disk_is_refused_and_the_drives_own_is_not(tree):
    tree.nvme(0)
    tree.nvme(0, nsid=2)
    tree.nvme(1, serial="OTHER0001", model="OTHER DRIVE")
    for index in (0, 1):
        in_slot(tree, index + 3, index)
    tree.write("sys/bus/pci/slots/9/address", "0000:09:00\n")  # empty
    assert refused(tree, "nvme0n1", "slot:3") == refused(tree, "nvme1n1", "slot:4") == ""
    assert "OTHER DRIVE" in refused(tree, "nvme0n1", "slot:4")
    assert refused(tree, "nvme0n1", "slot:9") == ""  # nothing loses its power: the first cut shows it
    tree.link("sys/bus/pci/devices/0000:08:00.0", "sys/devices/pci0000:00/0000:08:00.0")
    (tree.root / "sys/devices/pci0000:00/0000:08:00.0").mkdir()
    tree.write("sys/bus/pci/slots/8/address", "0000:08:00\n")  # a network card
    assert "slot:8" in refused(tree, "nvme0n1", "slot:8")
    assert refused(tree, "nvme0n1", SHELL) == ""


def test_slot_with_a_carrier_of_several_drives_is_refused(tree):
    for index in (0, 1):
        tree.nvme(index, serial=f"S{index}00001", eui=None if index else "0025385b71b00001")
    tree.link("sys/bus/pci/devices/0000:00:06.0", "sys/devices/pci0000:00/0000:00:06.0")  # its bridge
    tree.write("sys/bus/pci/slots/1/address", "0000:00:06\n")
    assert "nvme1n1" in refused(tree, "nvme0n1", "slot:1")


def test_port_of_a_hub_that_feeds_another_disk_is_refused(tree):
    """On its USB 2 or its USB 3 side, or below a hub at the port."""
    tree.usb("sdb", serial="OURS0001", port=1, host=6)
    tree.usb("sdc", serial="OTHER001", port=2, host=7)
    hub = "sys/devices/pci0000:00/0000:00:14.0/usb2"
    for number in (1, 2, 3):
        (tree.root / f"sys/bus/usb/devices/2-0:1.0/usb2-port{number}").mkdir(parents=True)
    for number in (1, 2):
        tree.link(f"sys/bus/usb/devices/2-0:1.0/usb2-port{number}/device", f"{hub}/2-{number}")
    (tree.root / "sys/bus/usb/devices/1-0:1.0/usb1-port5").mkdir(parents=True)
    tree.link("sys/bus/usb/devices/1-0:1.0/usb1-port5/peer", "sys/bus/usb/devices/2-0:1.0/usb2-port2")
    assert refused(tree, "sdb", "usb:2-1") == refused(tree, "sdb", "usb:2-3") == refused(tree, "sdb", "usb:7-7.1") == ""
    for url in ("usb:2-2", "usb:1-5"):
        assert "sdc" in refused(tree, "sdb", url) and refused(tree, "sdc", url) == ""
