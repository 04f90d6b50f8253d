"""A long campaign of power cuts on the whole virtual bench, the real firmware among it: no accusation, no memory that
grows, and how long a cut takes and how much CPU time, process by process."""

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from selfcheck import Figure, at_least, at_most, exactly, kill, powerloss_runs
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock

BENCH = "powerloss-long"
CUTS = 1000
MOST_S = 45 * 60 / CUTS  # a cut, control sessions included
LOOK_S = 1.0
FLAT_PERCENT, LEAST = 5.0, 200  # with fewer cuts it has not seen yet all that it needs
TICKS = os.sysconf("SC_CLK_TCK")
# what tells the processes of a campaign apart; the first that its command line has
NAMES = {"run_board.py": "firmware", "virtual.cable": "cable", "virtual.serve": "drive", "ssdrig run": "host"}


def watched(host_pid: int) -> dict[str, tuple[int, float]]:
    """{process: (bytes of memory of its own, s of CPU time)}; files that are mapped do not count."""
    usage = {}
    for pid in {host_pid, *kill.descendants(host_pid)}:
        words = kill.words_of_process(pid)
        name = next((label for mark, label in NAMES.items() if mark in words), None)
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        own = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
        if name and own:
            usage[name] = int(own[0]) << 10, (int(times[11]) + int(times[12])) / TICKS
    return usage


def grown_percent(bytes_: list[int]) -> float:
    """By how much the last tenth is more than the second one, medians."""
    tenth = max(1, len(bytes_) // 10)
    return 100 * (statistics.median(bytes_[-tenth:]) / statistics.median(bytes_[tenth : 2 * tenth] or bytes_) - 1)


def shown(cuts: int = CUTS) -> list[Figure]:
    show = Progress()
    memory: dict[str, list[int]] = defaultdict(list)
    cpu_s: dict[str, list[float]] = {}  # of a process: at the first look, at the last
    with tempfile.TemporaryDirectory(prefix="ssdrig-long-", dir="/var/tmp") as name:
        runs = Path(name)
        host = powerloss_runs.begin(runs, cuts)
        began = None
        try:
            while host.poll() is None:
                time.sleep(LOOK_S)
                run = powerloss_runs.folder(runs)
                done = len(list((run / "powerloss").glob("*/verdict.json"))) if run else 0
                if not done:
                    continue
                began = began or (time.monotonic(), done)
                for process, (own, used_s) in watched(host.pid).items():
                    memory[process].append(own)
                    cpu_s.setdefault(process, [used_s, used_s])[1] = used_s
                left_s = (time.monotonic() - began[0]) / max(1, done - began[1]) * (cuts - done)
                show.show(f"{BENCH}: {done} sessions judged  ETA {clock(max(0.0, left_s))}")
        finally:
            if host.poll() is None:
                host.terminate()
            code = host.wait()
        run = powerloss_runs.folder(runs)
        judged = powerloss_runs.records(run) if run else []
        if code:
            print(f"exit code {code}: {powerloss_runs.last_output(runs)}", file=sys.stderr)
        pictures = len(list(run.glob("powerloss/*/waveform.npz"))) if run else 0
    made = powerloss_runs.cuts_of(judged)
    took_s = (judged[-1]["t_ns"] - judged[0]["t_ns"]) / 1e9 if judged else float("nan")
    each_s = took_s / max(1, len(made) - 1)  # from the first verdict to the last
    figures = [
        exactly("exit code", code, "", 0),
        exactly("cuts judged", len(made), "cuts", cuts),
        exactly("cuts that accuse the drive", sum(session["failed"] for session in judged), "cuts", 0),
        exactly("cuts with a suspicion", sum(session["suspicion"] for session in judged), "cuts", 0),
        at_least("pictures of a fall", pictures, "pictures", cuts),
        at_most("a cut takes, control sessions shared out", each_s, "s", MOST_S),
    ]
    for process, taken in memory.items():
        grown = at_most(f"memory of the {process} grows by", grown_percent(taken), "%", FLAT_PERCENT)
        figures.append(grown if cuts >= LEAST else grown._replace(bar="to compare", met=True))
        used_s = (cpu_s[process][1] - cpu_s[process][0]) / max(1, len(judged) - 1)
        figures.append(Figure(f"CPU time of the {process} each session", used_s, "s", "to compare", True))
    return figures


BENCHES = {BENCH: ("1000 cuts on the virtual bench: no accusation, flat memory, 45 min (about 30 min)", shown)}
