"""Flashing: the real mpremote against the SIMULATED board, whose raw prompt (virtual/board/repl.py) is scripted after
MicroPython's documentation and whose file system and interpreter are the real MicroPython's (unix port). The unix
port's own prompt has no raw mode, so it cannot stand in by itself. Also what is said to a person in each case that goes
wrong."""

import contextlib
import json
import os
import pty
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from simboard import ROOT, Board, lent_port, run_rig

from ssdrig.base.errors import RigError, ToolMissing
from ssdrig.commands import rig as rig_command
from ssdrig.meter.pico import ports
from ssdrig.rig import flash

pytestmark = pytest.mark.keeps_time

FIRMWARE = ROOT / "firmware"
NAMES = sorted(p.name for p in FIRMWARE.glob("*.py"))
PICO = {
    "platform": "rp2",
    "version": [1, 26, 0],
    "machine": "Raspberry Pi Pico with RP2040",
    "files": {},
    "ours": False,
    "free": 10**6,
}


@pytest.fixture
def mpremote(monkeypatch):
    """mpremote for this process and those that it starts, wherever it is installed."""
    spec = find_spec("mpremote")
    if spec is None:
        pytest.skip("mpremote is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "host"), str(Path(spec.origin).parents[1])]))


@contextlib.contextmanager
def board(folder, **faults):
    """(port, flash folder) of a SIMULATED board whose flash is a folder, empty but for what is there already."""
    (folder / "flash").mkdir(exist_ok=True)
    with Board(folder, 2.5, {"flash": str(folder / "flash"), **faults}) as b, lent_port(b) as port:
        yield port, folder / "flash"


def test_an_empty_board_gets_the_firmware_and_answers(tmp_path, mpremote, capsys):
    with board(tmp_path) as (port, folder):
        assert run_rig("flash", "--rig", port) == 0
        output = capsys.readouterr()
        assert sorted(p.name for p in folder.glob("*.py")) == NAMES
        assert all((folder / name).read_bytes() == (FIRMWARE / name).read_bytes() for name in NAMES)
        assert "SIMULATED" in output.out and "rail 0" in output.out and "all files verified" in output.err
        # again: nothing is copied, and what else lies there stays, the calibration above all
        (folder / "calibration.json").write_text("{}")
        (folder / "rig.py").write_text("# an older one\n")
        assert run_rig("flash", "--rig", port) == 0
        output = capsys.readouterr().err
        assert "copying rig.py\n" in output and "left alone on the board: calibration.json" in output
        assert (folder / "rig.py").read_bytes() == (FIRMWARE / "rig.py").read_bytes() and (
            folder / "calibration.json"
        ).read_text() == "{}"


def test_a_board_with_another_program_is_left_alone_unless_told(tmp_path, mpremote):
    (tmp_path / "flash").mkdir()
    (tmp_path / "flash/main.py").write_text("print('blink')\n")
    with board(tmp_path) as (port, folder):
        with pytest.raises(RigError, match="main.py of something else.*--replace"):
            flash.flash(port, print)
        assert os.listdir(folder) == ["main.py"] and (folder / "main.py").read_text() == "print('blink')\n"
        assert flash.flash(port, print, replace=True)[-1] == "main.py"
        assert (folder / "main.py").read_bytes() == (FIRMWARE / "main.py").read_bytes()


def test_an_old_micropython_is_refused_and_nothing_copied(tmp_path, mpremote):
    with board(tmp_path, micropython=[1, 25, 0]) as (port, folder):
        with pytest.raises(RigError, match=r"MicroPython 1.26 or newer; seen 1.25.0; do: hold BOOTSEL"):
            flash.flash(port, print)
        assert os.listdir(folder) == []


def test_a_file_that_arrives_altered_is_found(tmp_path, mpremote, monkeypatch):
    source = tmp_path / "source"
    shutil.copytree(FIRMWARE, source)
    honest = flash._mpremote

    def careless(port, words):
        out = honest(port, words)
        if words[0] == "fs":
            (tmp_path / "flash/link.py").write_text("bit rot")
        return out

    monkeypatch.setattr(flash, "_mpremote", careless)
    with board(tmp_path) as (port, _), pytest.raises(RigError, match="link.py differ"):
        flash.flash(port, print, source=source)


def test_a_firmware_that_does_not_start_is_said(tmp_path, mpremote, monkeypatch):
    source = tmp_path / "source"
    source.mkdir()
    (source / "main.py").write_text("import rig\n")
    (source / "rig.py").write_text("raise RuntimeError('broken')\n")
    monkeypatch.setattr(flash, "FIRMWARE", source)
    monkeypatch.setattr(flash.flash, "__defaults__", (False, source))
    monkeypatch.setattr(rig_command, "BACK_S", 1.0)
    with board(tmp_path) as (port, _), pytest.raises(RigError, match="the firmware to answer after the copy"):
        run_rig("flash", "--rig", port)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"platform": "esp32", "machine": "ESP32 module"}, "Raspberry Pi Pico or Pico 2.*ESP32"),
        ({"machine": "Some board with RP2999"}, "RP2999"),
        ({"version": [1, 19, 1]}, "1.26 or newer; seen 1.19.1"),
        ({"files": {"main.py": "00"}}, "main.py of something else"),
    ],
)
def test_boards_that_are_refused(change, words):
    with pytest.raises(RigError, match=words):
        flash.check({**PICO, **change})


@pytest.mark.parametrize(
    ("change", "but"),
    [
        ({}, {"platform": "esp32"}),
        ({"version": [1, 26, 0]}, {"version": [1, 25, 9]}),
        ({"version": [2, 0, 0]}, {"version": [0, 99, 0]}),
        ({"machine": "Raspberry Pi Pico 2 with RP2350"}, {"machine": "Raspberry Pi Pico 2 with RP235"}),
        ({"files": {"main.py": "0"}, "ours": True}, {"ours": False}),
    ],
)
def test_boards_that_are_taken_and_their_opposites(change, but):
    assert flash.check({**PICO, **change}) is None
    with pytest.raises(RigError):
        flash.check({**PICO, **change, **but})


def test_another_program_is_replaced_only_when_told():
    other = {**PICO, "files": {"main.py": "0"}}
    assert flash.check(other, replace=True) is None
    with pytest.raises(RigError, match="main.py of something else"):
        flash.check(other)


def test_no_room(monkeypatch):
    monkeypatch.setattr(flash, "look", lambda port: {**PICO, "free": 1000})
    with pytest.raises(RigError, match="bytes free on the board; seen 1000"):
        flash.flash("port", lambda words: None)


def test_without_mpremote(monkeypatch):
    monkeypatch.setattr(flash, "find_spec", lambda name: None)
    with pytest.raises(ToolMissing, match="mpremote"):
        flash.look("port")


# What mpremote 1.29 prints: main.py for a port that cannot be opened; transport_serial.py, its traceback cut to the
# last line, for a port behind which nobody knows Ctrl-A.
IN_USE = "mpremote: failed to access /dev/ttyACM0 (it may be in use by another program)"
NO_PROMPT = """b'ERROR\\r\\n'
Traceback (most recent call last):
mpremote.transport.TransportError: could not enter raw repl"""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (IN_USE, "in use by another program"),
        (NO_PROMPT, "MicroPython's prompt on /dev/ttyACM0; seen no answer to it.*ERROR"),
    ],
)
def test_what_mpremote_says_is_passed_on(monkeypatch, tmp_path, printed, words):
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\ncat <<'END' >&2\n{printed}\nEND\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setattr(flash, "find_spec", lambda name: True)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(RigError, match=words):
        flash.look("/dev/ttyACM0")


def test_a_board_that_hangs(monkeypatch, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setattr(flash, "find_spec", lambda name: True)
    monkeypatch.setattr(flash, "MPREMOTE_S", 0.2)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(RigError, match="within 0.2 s; seen none"):
        flash.look("/dev/ttyACM0")


# ---- which port


def usb(tmp_path, *ids):
    for k, (vid, pid) in enumerate(ids):
        device = tmp_path / f"sys/bus/usb/devices/1-{k}"
        device.mkdir(parents=True)
        (device / "idVendor").write_text(f"{vid}\n")
        (device / "idProduct").write_text(f"{pid}\n")
    return tmp_path


def listed(device, pid, serial="E6"):
    return ports.Port(device, ports.RASPBERRY_PI, pid, serial, "Board in FS mode")


def test_the_only_board_is_found(tmp_path):
    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        assert ports.find(None, tmp_path, [ports.Port("/dev/ttyS0", 0, 0, "", "n/a"), listed(name, 5)]) == name
    finally:
        os.close(master)
        os.close(slave)


def test_two_boards_are_named_and_not_guessed_between(tmp_path):
    with pytest.raises(ports.UsageError, match=r"/dev/a \(serial E1\); /dev/b \(serial E2\).*--rig PORT") as error:
        ports.find(None, tmp_path, [listed("/dev/a", 5, "E1"), listed("/dev/b", 5, "E2")])
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("pid", "words"), [("0003", "RP2040.*RPI_PICO .*RPI-RP2"), ("000f", "RP2350.*RPI_PICO2 .*RP2350")]
)
def test_a_board_without_a_program_is_told_what_to_put_on_it(tmp_path, pid, words):
    with pytest.raises(RigError, match=words) as error:
        ports.find(None, usb(tmp_path, ("1d6b", "0002"), ("2e8a", pid)), [])
    assert error.value.exit_code == 5 and "uf2" in error.value.do


def test_a_board_that_runs_something_else(tmp_path):
    with pytest.raises(RigError, match="/dev/ttyACM0, 2e8a:000a: a program made with the Pico SDK.*BOOTSEL"):
        ports.find(None, tmp_path, [listed("/dev/ttyACM0", 0x0A)])


def test_nothing_at_all(tmp_path):
    with pytest.raises(RigError, match="no serial port at all; do: plug it in with a cable that carries data"):
        ports.find(None, tmp_path, [])


def test_a_port_that_is_not_there():
    with pytest.raises(ports.UsageError, match="/dev/nonsense"):
        ports.find("/dev/nonsense")


def test_no_permission_says_rule_or_group(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise ports_error()

    def ports_error():
        # what pyserial 3.5 raises: SerialException(errno, text)
        from serial import SerialException

        return SerialException(13, "could not open port /dev/null: [Errno 13] Permission denied: '/dev/null'")

    monkeypatch.setattr(ports, "Serial", refused)
    with pytest.raises(RigError, match=r"permission denied; do: sudo cp \S*hardware/70-ssdrig.rules .*dialout"):
        ports.check_access("/dev/null", tmp_path)
    (tmp_path / "etc/udev/rules.d").mkdir(parents=True)
    (tmp_path / "etc/udev/rules.d/70-ssdrig.rules").touch()
    with pytest.raises(RigError, match="plug it in again .the rules are installed"):
        ports.check_access("/dev/null", tmp_path)


def test_a_port_in_use():
    from serial import Serial

    master, slave = pty.openpty()
    try:
        name = os.ttyname(slave)
        with Serial(name, exclusive=True), pytest.raises(RigError, match="free; seen another program has it open"):
            ports.check_access(name)
        ports.check_access(name)
    finally:
        os.close(master)
        os.close(slave)


def test_the_look_is_one_line_of_json(tmp_path, mpremote):
    (tmp_path / "flash").mkdir()
    (tmp_path / "flash/a.txt").write_text("abc")
    with board(tmp_path) as (port, _):
        look = flash.look(port)
    assert look["files"] == {
        "a.txt": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    }  # SHA-256 of "abc", FIPS 180
    assert look["platform"] == "rp2" and look["version"] == [1, 26, 0] and not look["ours"] and json.dumps(look)
