"""Whether one host carries 24 drives: `ssdrig run` with 1, 6, 12 and 24 drives at once, and what the host's own
processes (the table, each drive's run) take of CPU time for each second of each drive. What fio takes beside it is
printed and has no bar: before each I/O of a rate it spins for as long as a sleep was late when fio started (time_init
and usec_sleep of fio 3.33), which differs from one start to the next by a factor of four.

SIMULATED, and cheaper than the virtual bench, for two cores do not carry 24 drives that are computed: the virtual
drive's latency model is off, a load of few I/Os goes on, and the board is a process that answers and sends frames at
the usual rate. What stands in for hardware is not counted. Also the program of these runs:
`python -m selfcheck.fleet run …`, and with `board` that of the board."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tty
from pathlib import Path
from typing import Any

from selfcheck import Figure, at_most, exactly, kill, stream, with_me
from ssdrig.base import prctl
from ssdrig.base.arguments import Parser
from ssdrig.base.errors import INTERRUPTED
from ssdrig.base.progress import Progress
from ssdrig.meter import samples
from ssdrig.run import fleet as run_fleet
from ssdrig.run import run
from ssdrig.runs import journal

DRIVES = (1, 6, 12, 24)
RATE = 907  # samples/s, the default of the firmware
WINDOW_S = 40.0  # within the load, all drives in it; then the runs are asked to end
LOAD_S = 1200
READY_S = 600  # for all to be in their load
APART_PERCENT = 10.0
TICKS = os.sysconf("SC_CLK_TCK")
HOST, FIO = "benchmarks.fleet run", "fio --output"  # what the command lines of the processes have
PLAN = f"""schema = 1
name = "fleet"
title = "Few I/Os"
source = "selfcheck fleet"
about = "A small load at a rate that costs little, to see what the host takes for each drive."
[[step]]
name = "fill"
do = "fill"
range = "64 MiB"
[[step]]
name = "load"
do = "load"
range = "64 MiB"
pattern = "random"
read = 0
block = "4 KiB"
qd = 1
rate = "100 IOPS"
time = "{LOAD_S} s"
"""


def shown() -> list[Figure]:
    took_s, fio_s, lost = {}, {}, {}
    with tempfile.TemporaryDirectory(prefix="ssdrig-fleet-", dir="/var/tmp") as name:
        folder = Path(name)
        (folder / "fleet.toml").write_text(PLAN)
        for count in DRIVES:
            took_s[count], fio_s[count], lost[count] = _measured(folder, count)
            words = f"{1000 * took_s[count]:.1f} ms of CPU time a second each, {1000 * fio_s[count]:.1f} ms of fio's,"
            words += f" {lost[count]} samples lost"
            print(f"fleet: {count} drives (SIMULATED): {words}", file=sys.stderr)
    one_s = took_s[DRIVES[0]]
    figures = [Figure("host CPU time for a second of one drive", 1000 * one_s, "ms", "to compare", True)]
    for count in DRIVES[1:]:
        off = 100 * (took_s[count] / one_s - 1)
        figures.append(at_most(f"{count} drives: the same for each drive, more than that", off, "%", APART_PERCENT))
    for count in DRIVES:
        figures.append(Figure(f"fio, {count} drives: for each", 1000 * fio_s[count], "ms", "to compare", True))
    return [*figures, exactly("samples lost, all runs", sum(lost.values()), "", 0)]


def _measured(folder: Path, count: int) -> tuple[float, float, int]:
    """(CPU time of the host's processes for each second of each drive, that of fio's, samples lost) of so many drives
    at once."""
    runs = folder / str(count)
    words = [sys.executable, "-P", "-m", "selfcheck.fleet", "run", str(folder / "fleet.toml"), "--jsonl", "--quiet"]
    words += ["--virtual", "sata-tlc"] * count + ["--capacity", "512MiB", "--runs", str(runs)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, preexec_fn=with_me()) as host:
        assert host.stdout
        try:
            _until_all_load(host, count)
            began, before, fio_before = time.monotonic(), _cpu_s(host.pid, HOST), _cpu_s(host.pid, FIO)
            draining = threading.Thread(target=_drain, args=(host.stdout,), daemon=True)
            draining.start()
            time.sleep(WINDOW_S)
            after, fio_after = _cpu_s(host.pid, HOST), _cpu_s(host.pid, FIO)
            each_s = (time.monotonic() - began) * count
            host.send_signal(signal.SIGINT)
            host.wait()
            draining.join()
        finally:
            if host.poll() is None:
                host.terminate()
    if host.returncode != INTERRUPTED:
        raise subprocess.CalledProcessError(host.returncode, words)
    gone = before.keys() ^ after.keys() | fio_before.keys() ^ fio_after.keys()
    assert not gone, "a process of the host has begun or ended within the window"
    own_s, fio_s = (sum(z.values()) - sum(a.values()) for a, z in ((before, after), (fio_before, fio_after)))
    return own_s / each_s, fio_s / each_s, sum(map(_lost, runs.iterdir()))


def _until_all_load(host: subprocess.Popen, count: int) -> None:
    """Reads its lines until each drive has said that its load goes on."""
    show, loading, deadline = Progress(), set(), time.monotonic() + READY_S
    assert host.stdout
    for line in host.stdout:
        event = json.loads(line)
        if event.get("step") == "load" and "share" in event:
            loading.add(event["run"])
        show.show(f"fleet: {len(loading)} of {count} drives under load")
        if len(loading) == count:
            return
        if time.monotonic() > deadline:
            break
    raise subprocess.CalledProcessError(host.poll() or 1, host.args)


def _drain(stream_) -> None:
    for _ in stream_:
        pass


def _cpu_s(pid: int, mark: str) -> dict[int, float]:
    """Of each of the host's processes with `mark` in its command line, without those that it has waited for."""
    cpu_s = {}
    for process in {pid, *kill.descendants(pid)}:
        words = kill.words_of_process(process)
        if mark in words:
            with contextlib.suppress(OSError, IndexError):
                times = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
                cpu_s[process] = (int(times[11]) + int(times[12])) / TICKS
    return cpu_s


def _lost(run: Path) -> int:
    """Samples that are missing in a run folder; all of them, as one, where there is none."""
    assert journal.state(run) == "interrupted", run
    power = samples.load(run)
    return int(power.gaps.lost.sum()) if len(power.t_ns) else 1


# ---- the program of the runs


def cheap(spawn) -> Any:
    """In place of virtual.bench._spawn: a drive without its latency model, and the board below."""

    def spawned(module: str, words: list[str], log: Path) -> subprocess.Popen:
        if module == "ssdrig.virtual.serve":
            return spawn(module, [*words, "--no-latency"], log)
        return spawn("selfcheck.fleet", ["board", *words], log)

    return spawned


def board() -> int:
    """A board that answers and sends RATE samples a second, until SIGTERM; prints its port as the cable does."""
    prctl.die_with_parent(os.getppid())
    master, slave = pty.openpty()
    tty.setraw(slave)
    print(json.dumps({"port": os.ttyname(slave)}), flush=True)
    stream.board(master, RATE)
    return 0


def main(words: list[str]) -> int:
    from ssdrig.virtual import bench

    if words[:1] == ["board"]:
        return board()
    run_fleet.PROGRAM = (sys.executable, "-P", "-m", "selfcheck.fleet")
    bench._spawn = cheap(bench._spawn)
    parser = Parser()
    run.add_arguments(parser)
    return run.command(parser.parse_args(words[1:]))


BENCHES = {"fleet": ("host CPU time for each of 1, 6, 12 and 24 drives at once, nothing lost (about 5 min)", shown)}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
