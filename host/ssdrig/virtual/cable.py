"""The SIMULATED board on a pseudo-terminal: the real MicroPython interpreter running the real firmware on stand-ins
for the Pico's modules (board/), and a cable to it that can be made as bad as one likes.

    python -m ssdrig.virtual.cable --feed FILE --truth FILE [--drive ADMIN_SOCKET] [--faults JSON]
        [--pace N] [--die-with-parent]

prints {"port": "/dev/pts/N"} and runs until SIGTERM. By hand, with a drive that draws 2.5 W:

    python - <<'END' && python -m ssdrig.virtual.cable --feed /tmp/feed --truth /tmp/truth.json
    import time; from ssdrig.virtual.flash import feed
    from ssdrig.virtual.cable import fill
    fill(feed.create("/tmp/feed", time.monotonic_ns(), bins=1), 2.5)
    END

SIGUSR1 resets the board. It also restarts on its own when the firmware's process ends, as a board does. The port stays
the same (a real one would go and come back).

Truth: FILE holds a JSON list, one object per boot, replaced atomically at each boot: `boot` (the number in the H
frame), `t_boot_ns` (CLOCK_MONOTONIC), `tick0`, `ppm`, `osc_ppm` and the other settings. The 64-bit t_us of the wire
starts at tick0 (not 0), so the true host time of any t_us (of a board with a `pace`: its own) is
    t_ns = t_boot_ns + (t_us - tick0) * 1000 / (1 + ppm * 1e-6)
and the chip sees the drive's power `feed_delay_us` (model time) late. `power` has the latest CROSSINGS of the drive's
lock-out, [CLOCK_MONOTONIC ns, whether it has power] each; the drive's own truth (cuts.jsonl) has all of its losses.

The other end of the SIMULATED rail: passes the supply state from the simulated board to the virtual drive.

The board writes 9 bytes whenever the supply crosses the drive's under-voltage lock-out: powered u8, CLOCK_MONOTONIC u64
of the crossing. A board that ends lets its gates go, which leaves the rail on."""

import argparse
import collections
import fcntl
import functools
import json
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections.abc import Callable
from pathlib import Path

from ssdrig.base import prctl, shipped
from ssdrig.base.errors import DriveError, RigError, SsdrigError, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.setup import micropython
from ssdrig.virtual import adminclient
from ssdrig.virtual.rig_faults import BOARD, TRANSPORT, settings

MESSAGE = struct.Struct("<BQ")


def follow(fd: int, admin: Path | None, note: Callable[[int, bool], None]) -> threading.Thread:
    """Read fd to its end in its own thread: note(t_ns, powered) each crossing, pass it to the drive at
    `admin`."""
    thread = threading.Thread(target=_follow, args=(fd, admin, note), name="drive-power", daemon=True)
    thread.start()
    return thread


def _follow(fd: int, admin: Path | None, note: Callable[[int, bool], None]) -> None:
    powered = True
    with os.fdopen(fd, "rb") as crossings:
        while len(message := crossings.read(MESSAGE.size)) == MESSAGE.size:
            state, t_ns = MESSAGE.unpack(message)
            powered = bool(state)
            note(t_ns, powered)
            _tell(admin, powered, t_ns)
    if not powered:
        _tell(admin, True, 0)


def _tell(admin: Path | None, powered: bool, t_ns: int) -> None:
    if admin is None:
        return
    try:
        # the next crossing may come before the drive has started
        request = {"op": "power_on", "wait": False} if powered else {"op": "power_cut", "t_ns": t_ns}
        adminclient.ask(admin, request)
    except DriveError as error:
        print(f"the drive could not be notified of its power: {error}", file=sys.stderr)


STAND_INS = Path(__file__).resolve().parent / "board"
FIRMWARE = shipped.path("firmware")
PIECE = 1024  # bytes of input passed to the board per piece
HELD = 4096  # bytes on their way to the host, above which the board is no longer listened to
PIPE = 8192
CROSSINGS = 256  # of a long campaign that the truth keeps: it is written again at each of them


def fill(ring, watts, bins=None) -> None:
    """Write constant power into a feed's ring (feed.create): W, into all of its bins or those given. For tests and for
    trying things by hand."""
    import numpy as np  # here, because the cable's own process does without

    from ssdrig.virtual.flash.feed import BIN_NS

    numbers = np.arange(len(ring)) if bins is None else np.asarray(bins, dtype=np.int64)
    ring[numbers % len(ring)] = np.stack([numbers & 0xFFFFFFFF, np.full(len(numbers), round(watts * BIN_NS))], 1)


def damage(data: bytes, loss: float, corrupt: float, duplicate: float, dice: random.Random) -> bytes:
    """Lose, change (to another value) and double each byte with the given probabilities."""
    if not (loss or corrupt or duplicate):
        return data
    out = bytearray()
    for b in data:
        if dice.random() < loss:
            continue
        if dice.random() < corrupt:
            b ^= dice.randrange(1, 256)
        out.append(b)
        if dice.random() < duplicate:
            out.append(b)
    return bytes(out)


class Delay:
    """One way of the cable: pieces come out in order, each delayed."""

    def __init__(self, faults: dict, dice: random.Random):
        self.f, self.dice = faults, dice
        self.pieces: collections.deque[tuple[int, bytes]] = collections.deque()  # (release_ns, bytes)
        self.last = 0
        self.bytes = 0

    def put(self, data: bytes, t_ns: int, paused_until_ns: int) -> None:
        f, us = self.f, self.f["delay_us"]
        if f["jitter_us"]:
            us += self.dice.expovariate(1 / f["jitter_us"])
        if f["outliers"] and self.dice.random() < f["outliers"]:
            us += f["outlier_us"]
        self.last = max(self.last, t_ns + int(us * 1000), paused_until_ns)
        self.pieces.append((self.last, data))
        self.bytes += len(data)

    def take(self, t_ns: int) -> bytes:
        """All that is out by t_ns."""
        out = []
        while self.pieces and self.pieces[0][0] <= t_ns:
            out.append(self.pieces.popleft()[1])
        data = b"".join(out)
        self.bytes -= len(data)
        return data

    def next_ns(self) -> int | None:
        return self.pieces[0][0] if self.pieces else None


class Board:
    """The interpreter's process. Raises UsageError, ToolMissing, RigError (it does not stay up)."""

    def __init__(
        self, feed: Path, truth: Path, settings: dict, flash: Path, drive: Path | None = None, pace: float = 0.0
    ):
        """drive: the virtual drive's admin socket; it loses power when the simulated rail falls. None: no notification.
        pace: 0: the board keeps the host's time; else it has its own time, at most this many times as fast."""
        self.feed, self.truth, self.settings, self.flash, self.drive = feed, truth, settings, flash, drive
        self.pace = pace
        self.command = micropython.command()
        self.boots: list = []
        self.early_deaths = 0  # in a row
        self.process: subprocess.Popen | None = None
        self.writing = threading.Lock()

    def power_on(self) -> None:
        settings = dict(self.settings)
        into, self.stdin = os.pipe()
        self.stdout, out = os.pipe()
        for end in (self.stdin, self.stdout):
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, PIPE)
        for end in (self.stdin, self.stdout, out):
            os.set_blocking(end, False)
        boot = {
            "boot": random.SystemRandom().getrandbits(30),
            "t_boot_ns": time.monotonic_ns(),
            "tick0": settings.pop("start_ticks"),
            **settings,
            "power": [],
        }
        self.boots.append(boot)
        self._write_truth()
        firmware = self.flash if self.settings["flash"] else FIRMWARE
        paths = {
            "feed": str(self.feed.resolve()),
            "firmware": str(firmware),
            "stand_ins": str(STAND_INS),
            "flash": str(self.flash),
        }
        crossings, power = os.pipe()
        config = json.dumps({**boot, **paths, "pace": self.pace, "power_fd": power}).encode()
        if len(config) + 4 > PIPE:  # the board that reads them is not started yet
            fcntl.fcntl(self.stdin, fcntl.F_SETPIPE_SZ, len(config) + 4)
        os.write(self.stdin, struct.pack("<I", len(config)) + config)
        argv = [*self.command, "-X", "heapsize=4M", "run_board.py"]
        self.process = subprocess.Popen(
            argv,
            cwd=STAND_INS,
            stdin=into,
            stdout=out,
            pass_fds=[power],
            preexec_fn=functools.partial(prctl.die_with_parent, os.getpid()),
        )
        for end in (into, out, power):
            os.close(end)
        follow(crossings, self.drive, lambda t_ns, powered: self._note_power(boot, t_ns, powered))

    def _note_power(self, boot: dict, t_ns: int, powered: bool) -> None:
        boot["power"] = [*boot["power"][1 - CROSSINGS :], [t_ns, powered]]
        self._write_truth()

    def power_off(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        os.close(self.stdin)
        os.close(self.stdout)
        self.process = None

    def died(self) -> None:
        """The process has ended on its own. RigError if it does so again and again right after its start."""
        lived_ns = time.monotonic_ns() - self.boots[-1]["t_boot_ns"]
        self.early_deaths = self.early_deaths + 1 if lived_ns < 1e9 else 0
        if self.early_deaths == 5:
            raise RigError("a board that stays up", "5 early ends", "read the error above; is the firmware sound?")

    def _write_truth(self) -> None:
        with self.writing:
            write_atomically(self.truth, json.dumps(self.boots).encode(), durable=False)


class Cable:
    """The pseudo-terminal and the two ways between it and the board."""

    def __init__(self, board: Board, faults: dict):
        self.board, self.f = board, faults
        dice = self.dice = random.Random(faults["seed"])
        self.down, self.up = Delay(faults, dice), Delay(faults, dice)
        self.clean = not any(v for k, v in faults.items() if k not in ("seed", "outlier_us", "resets"))
        self.to_host = self.to_board = b""
        self.paused_until = 0
        self.start = time.monotonic_ns()
        self.resets = sorted(self.start + int(s * 1e9) for s in faults["resets"])
        self.next_pause = self._draw_pause(self.start)
        self.master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.port = os.ttyname(self.slave)

    def _draw_pause(self, t: int) -> int | None:
        every = self.f["pause_every_s"]
        return t + int(self.dice.expovariate(1 / every) * 1e9) if every else None

    def reset_board(self) -> None:
        self.board.power_off()
        self.to_board = b""
        self.down.pieces.clear()
        self.down.bytes = 0
        self.board.power_on()

    def step(self, wake: int) -> None:
        """Wait for something to move, and move it. `wake`: a descriptor that ends the wait."""
        board = self.board
        reads, writes = [wake], []
        if not self.to_board and self.down.bytes < HELD:
            reads.append(self.master)
        if len(self.to_host) + self.up.bytes < HELD:
            reads.append(board.stdout)
        if self.to_host:
            writes.append(self.master)
        if self.to_board:
            writes.append(board.stdin)
        ready, writable, _ = select.select(reads, writes, [], self._timeout())
        t = time.monotonic_ns()
        if self.resets and t >= self.resets[0]:
            self.resets.pop(0)
            return self.reset_board()
        if self.next_pause is not None and t >= self.next_pause:
            self.paused_until = t + int(self.f["pause_ms"] * 1e6)
            self.next_pause = self._draw_pause(self.paused_until)
        if board.stdout in ready:
            data = os.read(board.stdout, 65536)
            if not data:
                board.died()
                return self.reset_board()
            self._send_up(data, t)
        if self.master in ready:
            self._send_down(os.read(self.master, PIECE), t)
        if not self.clean:
            self._deliver(self.up.take(t), self.down.take(t), t)
        elif self.to_host and self.master in writable or self.to_board and board.stdin in writable:
            self._deliver(b"", b"", t)

    def _timeout(self) -> float | None:
        times = [self.up.next_ns(), self.down.next_ns(), self.next_pause, self.resets[0] if self.resets else None]
        known = [t for t in times if t is not None]
        return max(0, min(known) - time.monotonic_ns()) * 1e-9 if known else None

    def _send_up(self, data: bytes, t: int) -> None:
        if self.clean:
            return self._deliver(data, b"", t)
        f = self.f
        data = damage(data, f["loss"], f["corrupt"], f["duplicate"], self.dice)
        self.up.put(data, t, self.paused_until)

    def _send_down(self, data: bytes, t: int) -> None:
        if self.clean:
            return self._deliver(b"", data, t)
        f = self.f
        data = damage(data, f["command_loss"], f["command_corrupt"], f["command_duplicate"], self.dice)
        self.down.put(data, t, self.paused_until)

    def _deliver(self, up: bytes, down: bytes, t: int) -> None:
        """Hand bytes to the host and to the board; the rest waits. Input carries its arrival time."""
        for k in range(0, len(down), PIECE):
            piece = down[k : k + PIECE]
            self.to_board += struct.pack("<QH", t, len(piece)) + piece
        self.to_host += up
        if self.to_host:
            self.to_host = self.to_host[_write(self.master, self.to_host) :]
        if self.to_board:
            self.to_board = self.to_board[_write(self.board.stdin, self.to_board) :]


def _write(fd: int, data: bytes) -> int:
    try:
        return os.write(fd, data)
    except BlockingIOError:
        return 0
    except BrokenPipeError:  # the board has just died: its next read reports it
        return len(data)


def run(feed: Path, truth: Path, faults: dict, drive: Path | None = None, pace: float = 0.0) -> None:
    """Serve until SIGTERM or SIGINT. Raises UsageError, ToolMissing, RigError."""
    if not feed.exists():
        raise UsageError("a power feed", f"no file {feed}", "start the virtual drive with --feed first")
    board_settings, transport = settings(faults)
    with tempfile.TemporaryDirectory(prefix="ssdrig-flash.") as forgotten:
        flash = Path(board_settings["flash"] or forgotten).resolve()
        _serve(Board(feed, truth, board_settings, flash, drive, pace), transport)


def _serve(board: Board, transport: dict) -> None:
    prctl.timer_slack(1)  # inherited by the board: its waits end on time
    prctl.favoured()  # too: a real board has its own processor
    cable = Cable(board, transport)
    wake, signalled = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(s, lambda *_: None)
    try:
        board.power_on()
        print(json.dumps({"port": cable.port}), flush=True)
        while True:
            cable.step(wake)
            for number in _drain(wake):
                if number == signal.SIGUSR1:
                    cable.reset_board()
                else:
                    return
    finally:
        board.power_off()


def _drain(fd: int) -> bytes:
    try:
        return os.read(fd, 64)
    except BlockingIOError:
        return b""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="ssdrig.virtual.cable", description="The SIMULATED board and its cable.")
    parser.add_argument("--feed", type=Path, required=True, help="the virtual drive's power feed")
    parser.add_argument("--truth", type=Path, required=True, help="folder for the true values, for comparison only")
    parser.add_argument(
        "--drive", type=Path, help="the virtual drive's admin socket: it loses its power when the rail falls"
    )
    names = ", ".join([*BOARD, *TRANSPORT])
    parser.add_argument("--faults", type=json.loads, default={}, help=f"JSON object; names: {names}")
    parser.add_argument(
        "--pace",
        type=float,
        default=0.0,
        help="for tests: the board has its own time, at most this many times as fast as the host's, which stands"
        " still while the machine has no time for the board (default: the host's time)",
    )
    parser.add_argument("--die-with-parent", action="store_true", help="end when the starting process ends")
    args = parser.parse_args(argv)
    if args.die_with_parent:
        prctl.die_with_parent(os.getppid(), signal.SIGTERM)
    try:
        run(args.feed, args.truth, args.faults, args.drive, args.pace)
    except SsdrigError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
