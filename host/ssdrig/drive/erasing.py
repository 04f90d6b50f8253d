"""Run a command that erases a drive, with a progress line; Ctrl-C lets it finish on its own."""

import threading
import time
from collections.abc import Callable

from ssdrig.base.errors import DriveError
from ssdrig.drive import program

TICK_S = 0.2


def run(argv: list[str], timeout_s: float, on_tick: Callable[[float], None] = lambda spent_s: None) -> program.Call:
    """program.run(argv) with on_tick(seconds so far) five times a second.

    A command sent to the drive cannot be revoked, so an exception in this thread (Ctrl-C) leaves the program running in
    its own session; it outlives this process."""
    calls = []
    thread = threading.Thread(target=lambda: calls.append(program.run(argv, timeout_s)), name=argv[0], daemon=True)
    thread.start()
    begun = time.monotonic()
    while thread.is_alive():
        thread.join(TICK_S)
        if thread.is_alive():
            on_tick(time.monotonic() - begun)
    if not calls:
        raise DriveError(f"{argv[0]} to be started", "no thread for it", "see whether the host has memory left")
    return calls[0]


def words(call: program.Call) -> str:
    """The exit and the output of a program, for an error message."""
    output = call.stderr.strip() or call.stdout[:2000].decode(errors="replace").strip()
    output = " | ".join(line.strip() for line in output.splitlines() if line.strip())[-400:]
    return f"{call.argv[0]}: {call.why or f'exit code {call.exit_code}'}: {output or 'nothing printed'}"


def version(name: str) -> str:
    """The first line of what `nvme version` or `hdparm -V` prints, such as "nvme version 2.3 (git 2.3)"."""
    call = program.run([name, "version" if name == "nvme" else "-V"], 10)
    return (call.stdout.decode(errors="replace").strip().splitlines() or [name])[0]
