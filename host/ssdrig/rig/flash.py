"""Puts firmware/*.py on a board that runs MicroPython, by mpremote, and sees the firmware answer.

Each file is compared by SHA-256 before (equal files are left alone) and after. main.py goes last: a copy that was
cut short leaves a board that can be asked again. Nothing is deleted; calibration.json and board.json stay.
"""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from serial import Serial

from ssdrig.base import shipped
from ssdrig.base.errors import RigError, ToolMissing
from ssdrig.meter.pico import ports

FIRMWARE = shipped.path("firmware")
OLDEST = (1, 26)  # hard timers, rp2.DMA as the data sheet has it on the RP2350
BOARDS = ("RP2040", "RP2350")
MPREMOTE_S = 60

# Runs on the board. Prints one line of JSON: its type, its files with their hashes, whether its main.py is ours.
LOOK = """
import sys,os,json,hashlib,binascii
def sha(n):
 h=hashlib.sha256()
 with open(n,'rb') as f:
  while 1:
   b=f.read(512)
   if not b:break
   h.update(b)
 return binascii.hexlify(h.digest()).decode()
d={}
for e in os.ilistdir('.'):
 if e[1]==0x8000:d[e[0]]=sha(e[0])
m=''
if 'main.py' in d:
 with open('main.py') as f:m=f.read(400)
s=os.statvfs('.')
i=sys.implementation
print(json.dumps({'platform':sys.platform,'version':list(i.version[:3]),'machine':i._machine,'files':d,
 'ours':'import rig' in m,'free':s[0]*s[3]}))
"""


def flash(port: str, say: Callable[[str], None], replace: bool = False, source: Path = FIRMWARE) -> list[str]:
    """Copy the firmware to the board on `port`, verify it, and start it. Returns the names that were copied.

    `say(text)` reports progress. replace: also overwrite another program's main.py.
    Raises ToolMissing (no mpremote), RigError (no MicroPython there, too old, another kind of board, another program's
    main.py, no room, or a file that is not the same after the copy)."""
    board = look(port)
    check(board, replace)
    files = {path.name: path for path in sorted(source.glob("*.py"), key=lambda p: (p.name == "main.py", p.name))}
    wanted = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    due = [name for name in files if board["files"].get(name) != wanted[name]]
    others = sorted(board["files"].keys() - files.keys())
    version = ".".join(map(str, board["version"]))
    say(f"{board['machine']}, MicroPython {version}: {len(files) - len(due)} of {len(files)} files are there already")
    if others:
        say(f"left alone on the board: {', '.join(others)}")
    size = sum(files[name].stat().st_size for name in due)
    if size > board["free"]:
        raise RigError(f"{size} bytes free on the board", f"{board['free']}", "delete files from it: mpremote rm :NAME")
    if due:
        say(f"copying {', '.join(due)}")
        copy(port, {name: files[name] for name in due})
        board = look(port)
        wrong = [name for name in files if board["files"].get(name) != wanted[name]]
        if wrong:
            raise RigError(
                "the files on the board to be those of this ssdrig",
                f"{', '.join(wrong)} differ",
                "run it again; then suspect the flash",
            )
    say("all files verified; starting")
    start(port)
    return due


def copy(port: str, files: dict[str, Path]) -> None:
    """Files of this machine to these names on the board, in this order. Raises RigError, ToolMissing."""
    words = []
    for name, path in files.items():
        words += ["fs", "cp", str(path), f":{name}", "+"]
    _mpremote(port, words[:-1])


def start(port: str) -> None:
    """Soft reset at the ordinary prompt, which runs main.py (mpremote's own, in raw mode, does not). Raises
    RigError."""
    try:
        with Serial(port, timeout=0, write_timeout=2, exclusive=True) as line:
            line.write(b"\r\x02")  # Ctrl-B: ordinary prompt
            time.sleep(0.2)
            line.write(b"\x04")  # Ctrl-D: soft reset
            line.flush()
    except OSError as error:
        raise ports.cannot_open(port, error) from error


def look(port: str) -> dict:
    """Description of the board: platform, version, machine, files (name -> SHA-256), ours, free (bytes). A program that
    runs there is interrupted. Raises ToolMissing, RigError."""
    text = _mpremote(port, ["exec", LOOK])
    try:
        return json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise RigError(
            "a board that identifies itself", repr(text[-200:]), "unplug it, plug it in again, and repeat"
        ) from error


def check(board: dict, replace: bool = False) -> None:
    """RigError unless the board is one that the firmware can run on and may be put on."""
    version = ".".join(map(str, board["version"]))
    if board["platform"] != "rp2" or not any(chip in board["machine"] for chip in BOARDS):
        raise RigError(
            "a Raspberry Pi Pico or Pico 2 (RP2040 or RP2350)",
            f"{board['machine']}, platform {board['platform']}",
            "use one of those",
        )
    if tuple(board["version"][:2]) < OLDEST:
        raise RigError(
            f"MicroPython {OLDEST[0]}.{OLDEST[1]} or newer",
            version,
            "hold BOOTSEL while plugging the board in and run ./ssdrig rig flash: it names the file to copy to it",
        )
    if "main.py" in board["files"] and not board["ours"] and not replace:
        raise RigError(
            "a board without a program, or with ssdrig's",
            "a main.py of something else",
            "use another board; or save its program (mpremote cp :main.py .) and repeat with --replace",
        )


def _mpremote(port: str, words: list[str]) -> str:
    """Run mpremote on the port and return its stdout. Raises ToolMissing, RigError with mpremote's own last words."""
    if find_spec("mpremote") is None:
        raise ToolMissing("mpremote", "it is not installed", shipped.installing(""))
    argv = [sys.executable, "-P", "-m", "mpremote", "connect", port, *words]
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", timeout=MPREMOTE_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise RigError(
            f"an answer on {port} within {MPREMOTE_S} s", "none", "unplug the board, plug it in again, and repeat"
        ) from error
    if done.returncode == 0:
        return done.stdout
    lines = [line for line in (done.stdout + done.stderr).strip().splitlines() if line.strip()]
    seen = " / ".join(lines[-3:]) or f"exit {done.returncode}"
    if "could not enter raw repl" in seen:
        raise RigError(
            f"MicroPython's prompt on {port}",
            f"no answer to it ({seen[-200:]})",
            "right port? MicroPython on it? If so unplug it and plug it in again; if it hangs, hold"
            " BOOTSEL and put MicroPython on it anew",
        )
    raise RigError(f"mpremote to do its work on {port}", seen[-400:], "repeat; then try `mpremote` by hand")
