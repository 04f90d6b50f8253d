"""The serial port of the rig; if there is no rig, the ports that exist and the way to get one.

USB ids: Raspberry Pi's vendor id is 2e8a; 0005 is MicroPython's serial port on RP2 boards (ports/rp2), 0003 and 000f
are the boot ROMs of RP2040 and RP2350 waiting for a UF2 file, seen as the disk RPI-RP2 or RP2350 (data sheets, chapter
on the boot ROM)."""

import argparse
import os
import shlex
import socket
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from serial import Serial, SerialBase, serial_for_url
from serial.tools import list_ports

from ssdrig.base import shipped
from ssdrig.base.arguments import ELSEWHERE
from ssdrig.base.errors import RigError, UsageError

RASPBERRY_PI, MICROPYTHON = 0x2E8A, 0x0005
BAUD = 115200  # of no effect on USB
BOOT_ROM = {0x0003: ("RP2040", "RPI_PICO", "RPI-RP2"), 0x000F: ("RP2350", "RPI_PICO2", "RP2350")}
OTHERS = {0x0004: "a Picoprobe debugger", 0x000A: "a program made with the Pico SDK", 0x000C: "a Debug Probe"}
RULES = "hardware/70-ssdrig.rules"
REMOTE = {
    "tcp": "socket",
    "socket": "socket",
    "rfc2217": "rfc2217",
}  # schemes of a port elsewhere, as pyserial names them
GONE_MS = 5000  # without an acknowledgement, until another machine counts as gone
WAIT_S = 0.1  # of a read by RFC 2217, which has no descriptor to wait on


class Port(NamedTuple):
    """A serial port as the system lists it. vid, pid: 0 where it is not on USB."""

    device: str
    vid: int
    pid: int
    serial: str
    words: str


def add_argument(parser: argparse.ArgumentParser) -> None:
    """--rig PORT, as in `run`."""
    parser.add_argument(
        "--rig",
        dest="port",
        metavar="PORT",
        help=f"serial port of the board, {ELSEWHERE} (default: the only MicroPython board)",
    )


def listed() -> list[Port]:
    """All serial ports of this machine."""
    return [
        Port(p.device, p.vid or 0, p.pid or 0, p.serial_number or "", p.description or "")
        for p in list_ports.comports()
    ]


def find(port: str | None = None, root: str | Path = "/", ports: list[Port] | None = None) -> str:
    """The named port, by default the only MicroPython board. It is checked that it can be opened by this user.

    Raises UsageError (several boards, or no such port), RigError (no board; one that waits for MicroPython; one that
    runs something else; no permission; in use)."""
    ports = listed() if ports is None else ports
    if port is None:
        boards = [p for p in ports if (p.vid, p.pid) == (RASPBERRY_PI, MICROPYTHON)]
        if len(boards) > 1:
            raise UsageError(
                "one MicroPython board",
                "; ".join(f"{p.device} (serial {p.serial})" for p in boards),
                "name one: --rig PORT",
            )
        if not boards:
            raise no_port_error(root, ports)
        port = boards[0].device
    check_access(port, root)
    return port


def no_port_error(root: str | Path, ports: list[Port]) -> RigError:
    """The error for a board that does not show up as MicroPython."""
    waiting = boot_roms(root)
    if waiting:
        chip, build, disk = waiting[0]
        return RigError(
            "a board with MicroPython",
            f"an {chip} in its boot ROM: it has no program, or BOOTSEL was held",
            f"download the newest {build} .uf2 (MicroPython 1.26 or newer) from"
            f" https://micropython.org/download/{build}/, copy it onto the disk {disk}, wait until that disk goes away,"
            " then run ./ssdrig rig flash again",
        )
    other = next((p for p in ports if p.vid == RASPBERRY_PI), None)
    if other:
        what = OTHERS.get(other.pid, "another program")
        return RigError(
            "a board with MicroPython (USB id 2e8a:0005)",
            f"{other.device}, {other.vid:04x}:{other.pid:04x}: {what}",
            "if this is the board you mean: hold BOOTSEL while plugging it in and run this again; the words will then"
            " say which file to put on it. What runs on it now is lost by that",
        )
    seen = ", ".join(f"{p.device} ({p.words})" for p in ports) or "no serial port at all"
    return RigError(
        "a Raspberry Pi Pico or Pico 2 on USB",
        seen,
        "plug it in with a cable that carries data; a new one: hold BOOTSEL while plugging in, run this again; another"
        " kind of port: --rig PORT",
    )


def boot_roms(root: str | Path = "/") -> list[tuple[str, str, str]]:
    """(chip, MicroPython build, name of the disk) of the boards on USB that wait for a UF2 file."""
    roms = []
    for device in sorted((Path(root) / "sys/bus/usb/devices").glob("*")):
        try:
            vid, pid = (int((device / name).read_text(), 16) for name in ("idVendor", "idProduct"))
        except (OSError, ValueError):
            continue
        if vid == RASPBERRY_PI and pid in BOOT_ROM:
            roms.append(BOOT_ROM[pid])
    return roms


def remote(port: str) -> str | None:
    """The URL by which pyserial opens a port on another machine; None for one of this machine.

    Raises UsageError where it is not SCHEME://HOST:PORT of REMOTE."""
    scheme, separator, rest = port.partition("://")
    if not separator:
        return None
    try:
        parts = urlsplit(f"//{rest}")
        whole = bool(parts.hostname and parts.port and parts.netloc == rest and not parts.username)
    except ValueError:  # a port that is not a number up to 65535
        whole = False
    if scheme not in REMOTE or not whole:
        expected = f"a board on another machine as {', '.join(f'{name}://HOST:PORT' for name in REMOTE)}"
        raise UsageError(expected, port, "correct --rig")
    return f"{REMOTE[scheme]}://{rest}"


def opened(port: str) -> SerialBase:
    """The port, for this program alone. Reads and writes do not wait; only those by RFC 2217 do, up to WAIT_S.

    port: a serial port of this machine, or what `remote` takes.
    Raises OSError, ValueError, UsageError."""
    url = remote(port)
    if url is None:  # exclusive: two readers would each get half of the bytes
        return Serial(port, BAUD, timeout=0, write_timeout=0, exclusive=True)
    if url.startswith("rfc2217:"):
        return serial_for_url(url, BAUD, timeout=WAIT_S)
    made = serial_for_url(url, BAUD, timeout=0, write_timeout=0)
    with socket.socket(fileno=os.dup(made.fileno())) as end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a ping that waits makes the clock's bound wider
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
    return made


def check_there(port: str) -> None:
    """Raises UsageError for a port that does not exist. A port on another machine is not looked for."""
    if remote(port) is None and not os.path.exists(port):
        there = ", ".join(map(str, sorted((*Path("/dev").glob("ttyACM*"), *Path("/dev").glob("ttyUSB*"))))) or "none"
        raise UsageError(
            f"a serial port {port}", f"no such file (ports here: {there})", "name another port, or omit --rig"
        )


def check_access(port: str, root: str | Path = "/") -> None:
    """Raises UsageError (no such port), RigError (not allowed, in use, no serial port)."""
    check_there(port)
    if remote(port):
        return  # a bridge that serves one connection may refuse the next one right after it
    try:
        Serial(port, exclusive=True).close()
    except (OSError, ValueError) as error:
        raise cannot_open(port, error, root) from error


def cannot_open(port: str, error: Exception, root: str | Path = "/") -> RigError:
    """The error for a port that does not open."""
    number = getattr(error, "errno", None)
    if number == 13 or "Permission denied" in str(error):
        file = shlex.quote(str(shipped.path(RULES)))
        rules = Path(root) / "etc/udev/rules.d" / Path(RULES).name
        do = (
            "unplug the board and plug it in again (the rules are installed); over ssh, join the group: sudo usermod"
            " -aG dialout $USER, log in anew"
            if rules.exists()
            else (
                f"sudo cp {file} /etc/udev/rules.d/ && sudo udevadm control --reload, then plug the board in again;"
                " or join the group that owns the port: sudo usermod -aG dialout $USER, then log in anew"
            )
        )
        return RigError(f"permission to open {port}", "permission denied", do)
    if number in (11, 16) or "exclusively lock" in str(error) or "busy" in str(error):
        return RigError(
            f"{port} free",
            "another program has it open",
            "end it (a run, another ssdrig, mpremote, Thonny, ModemManager)",
        )
    return RigError(f"a serial port {port} that can be opened", str(error), "name the rig's port: --rig PORT")
