"""Start and end the virtual bench: the drive's server and the simulated board, each its own process.

They live in a private folder under $TMPDIR (where that is too long for a socket, under a shorter one). The process that
owns them holds a lock in it. When that process is killed they die with it (prctl.py); the folder is swept by
the next bench that starts."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from ssdrig.base import shipped, temporary
from ssdrig.base.child_cpu import IDLE_S, POLL_S, NotReady, Work, wait_while_working
from ssdrig.base.errors import DriveError, RigError
from ssdrig.virtual import adminclient

PREFIX = "ssdrig-bench-"
SOCKET_PATH_BYTES = 107  # sun_path without its last zero
END_IDLE_S = 20  # without CPU time; the drive may have to be kept, which takes long on a busy machine
CHECK_S = 0.5


@dataclass
class VirtualBench:
    """A running virtual bench. `drive` is the server's ready message; `port` is the board's
    pty, None without a board."""

    folder: Path
    drive: dict
    port: str | None
    server: subprocess.Popen
    board: subprocess.Popen | None
    truth: Path
    board_truth: Path
    lock: int = -1  # descriptor of the folder's lock
    kept_in: Path | None = None
    fio_target: str = field(init=False)

    def __post_init__(self):
        # libnbd decodes the URI's query, so any path fits into it
        self.fio_target = f"nbd+unix:///?socket={quote(os.fsencode(self.drive['socket']))}"

    def keep(self, folder: Path | None) -> None:
        """Have the drive outlive this bench in `folder`, however the bench ends (device/persistence.py); None: no
        longer. An earlier copy there is removed. Raises DriveError."""
        adminclient.ask(f"{self.drive['socket']}.truth", {"op": "keep", "folder": folder and str(folder.absolute())})
        if self.kept_in and folder != self.kept_in:
            shutil.rmtree(self.kept_in, ignore_errors=True)
            self.kept_in.with_name(f".{self.kept_in.name}.lock").unlink(missing_ok=True)
        self.kept_in = folder

    def end(self, keep_truth_in: Path | None = None) -> None:
        """End both processes, keep the ledger if asked to, remove the folder. Safe to call twice. Raises OSError when
        the ledger cannot be kept whole; nothing of that file is then left, and all else is done."""
        try:
            for process in (self.board, self.server):
                if process:
                    _end(process)
            if keep_truth_in is not None and self.truth.is_dir():
                keep_truth_in.mkdir(parents=True, exist_ok=True)
                for source in [*self.truth.iterdir(), self.board_truth]:
                    if source.is_file():
                        _copy(source, keep_truth_in / source.name)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            if self.lock >= 0:
                os.close(self.lock)
            self.lock = -1


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copy2(source, target)
    except OSError:
        target.unlink(missing_ok=True)
        raise


def start(
    preset: str,
    *,
    op_percent=None,
    capacity: str | None = None,
    faults: dict | None = None,
    drive_folder: Path | None = None,
    check: Callable[[], None] = lambda: None,
    show: Callable[[str], None] = lambda text: None,
    board: bool = True,
    data: str = "crc",
    drive_faults: dict | None = None,
) -> VirtualBench:
    """Start server and board (board False: the drive alone). The whole drive is exported: the run over-provisions.
    `data`: the data that the drive stores, "crc" a check of each page, "sparse" the bytes, for a run that reads them
    back.
    `drive_faults`: as powerfaults.settings() takes them; such a drive keeps the bytes.
    `drive_folder`: go on with the drive that VirtualBench.keep() left there.

    `check` is called twice a second meanwhile; its exceptions end the start. `show` gets how far a compilation is. A
    start may last while the processes use CPU time. Raises ToolMissing; UsageError, DriveError or RigError
    with the process's own message if one does not become ready. No error leaves processes or files."""
    shipped.require("numba")
    _sweep()
    folder, lock = _folder()
    socket, feed, truth, board_truth = folder / "nbd", folder / "feed", folder / "truth", folder / "board.json"
    # usually nothing of a run is read back but what a purge must have zeroed; a copy of all data costs the host
    words = ["--preset", preset, "--socket", str(socket), "--feed", str(feed), "--truth", str(truth)]
    words += ["--data", "sparse" if drive_faults else data]
    if drive_faults:
        words += ["--drive-faults", json.dumps(drive_faults)]
    if capacity:
        words += ["--capacity", capacity]
    if drive_folder:
        words += ["--kept", str(drive_folder.absolute())]
    if op_percent is not None:
        words += ["--op", str(op_percent)]
    server = cable = port = None
    try:
        server = _spawn("ssdrig.virtual.serve", [*words, "--tell-progress"], folder / "server.log")
        drive = _ready(server, folder / "server.log", DriveError, "the virtual drive", check, show)
        if board:
            board_words = ["--feed", str(feed), "--truth", str(board_truth), "--drive", f"{socket}.admin"]
            faults = rails_for(drive["rail_V"], drive["more_rails"]) | (faults or {})
            if faults:
                board_words += ["--faults", json.dumps(faults)]
            cable = _spawn("ssdrig.virtual.cable", board_words, folder / "board.log")
            port = _ready(cable, folder / "board.log", RigError, "the simulated board", check, show)["port"]
    except BaseException:
        for process in (cable, server):
            if process:
                _end(process)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        raise
    return VirtualBench(folder, drive, port, server, cable, truth, board_truth, lock)


def _folder() -> tuple[Path, int]:
    """A new private folder whose sockets have paths that AF_UNIX takes, and the descriptor that holds its lock. Raises
    DriveError if none can be made."""
    name, seen = f"{PREFIX}{os.getpid()}-", "no folder for temporary files"
    for base in _bases():
        if len(os.fsencode(base)) + len(name) + len("/xxxxxxxx/nbd.admin") > SOCKET_PATH_BYTES:
            seen = f"a path too long for a socket: {base}"
            continue
        try:
            return temporary.make(name, base)
        except OSError as error:
            seen = f"{base}: {error.strerror}"
    raise DriveError("a folder for the virtual bench's sockets", seen, "set TMPDIR to a short path of yours")


def _bases() -> list[Path]:
    """Where the folder may lie, the best first."""
    bases = [tempfile.gettempdir(), os.environ.get("XDG_RUNTIME_DIR"), "/tmp", "/var/tmp"]
    return [Path(base).absolute() for base in dict.fromkeys(bases) if base]


def rails_for(volts: float, more_rails: list) -> dict:
    """The board's settings (faults.BOARD) for a drive that draws from several rails: a sensor for each, like that of
    firmware/board.py's first rail. Empty for one rail."""
    if not more_rails:
        return {}
    rows = [
        {"rail": n, "name": name, "address": 0x40 + n, "alert": 6 + n, "simulated": {"share": share, "V": volts_here}}
        for n, (name, volts_here, share) in enumerate(more_rails, 1)
    ]
    return {"rail": {"name": f"{volts:g}V"}, "rails": rows}


def _spawn(module: str, words: list[str], log: Path) -> subprocess.Popen:
    with open(log, "wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", module, *words, "--die-with-parent"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"TMPDIR": str(log.parent)},  # their files are deleted with the folder
            start_new_session=True,  # Ctrl-C is the run's to handle
        )


def _ready(
    process: subprocess.Popen,
    log: Path,
    error,
    what: str,
    check: Callable[[], None],
    show: Callable[[str], None] = lambda text: None,
) -> dict:
    """The one JSON line that a process prints when it is ready, after those of its progress."""
    assert process.stdout is not None
    stdout, left, progress_lines, checked_at = process.stdout.fileno(), b"", [], 0.0

    def ready() -> dict | None:
        nonlocal left
        wait_s = POLL_S
        while select.select([stdout], [], [], wait_s)[0] and (more := os.read(stdout, 65536)):
            left, wait_s = left + more, 0
        *lines, left = left.split(b"\n")
        for line in map(json.loads, lines):
            if not {"compiling", "waiting"} & set(line):
                return line
            progress_lines.append(line)
        return None

    def progress(work: Work) -> None:
        nonlocal checked_at
        if progress_lines:
            work.works()
            show(_in_words(progress_lines[-1], work.cpu_s))
            progress_lines[:-1] = []
        if time.monotonic() - checked_at >= CHECK_S:
            checked_at = time.monotonic()
            check()

    try:
        return wait_while_working(process, ready, idle_s=IDLE_S, poll_s=0.01, progress=progress)
    except NotReady as why:
        words = log.read_text(errors="replace").strip().splitlines()
        last = f": {words[-1]}" if words else ""
        do = "start it by hand to see why: ./ssdrig virtual --help"
        raise error(f"{what} to become ready", f"{why.reason}{last}", do) from None


def _in_words(line: dict, cpu_s: float) -> str:
    """A line of progress for people."""
    if "waiting" in line:
        return f"another start compiles the simulator (process {line['waiting']})"
    return f"compiling the simulator, once: {line['compiling']} of {line['of']} functions, {cpu_s:.0f} s of CPU"


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            wait_while_working(process, process.poll, idle_s=END_IDLE_S, poll_s=0.01)
        except NotReady:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()


def _sweep() -> None:
    for base in _bases():
        temporary.sweep(PREFIX, base)
