"""What measuring costs the drive under test: the same load on the same virtual drive with the whole rig attached and
without it.

With: `ssdrig run`: board and meter streaming, SMART polls, journal, live line; nothing is sent to InfluxDB. Without:
the drive's server and fio alone. Same preset, capacity, purge, fill, seeds and length; the drive's model paces every
I/O. Both share this machine's processors, which a real drive does not."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from selfcheck import Figure, at_least
from ssdrig.base.progress import Progress
from ssdrig.load import fio, fiolog
from ssdrig.run import bench, prepare
from ssdrig.virtual import bench as virtual_bench

PRESET, CAPACITY = "sata-tlc", "512MiB"
DURATION_S, SMART_INTERVAL_S, SEED = 15, 5, 4242
PAIRS = 3


def with_rig(folder: Path) -> float:
    """IOPS of the load of a run with everything that belongs to one."""
    words = [sys.executable, "-P", "-m", "ssdrig", "run", "consistency", "--virtual", PRESET, "--capacity", CAPACITY]
    words += ["--duration", str(DURATION_S), "--smart-interval", str(SMART_INTERVAL_S), "--seed", str(SEED)]
    words += ["--runs", str(folder), "--json", "--quiet"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    done = subprocess.run(words, stdout=subprocess.PIPE, env=environ, text=True, check=True)
    return iops_of(Path(json.loads(done.stdout)["run"]) / "fio" / "load")


def without_rig(folder: Path) -> float:
    """IOPS of the same load by fio on the drive's server, with nothing else."""
    running = virtual_bench.start(PRESET, capacity=CAPACITY, board=False)
    try:
        bench_ = bench.virtual(running)
        drive = bench_.drive
        sets = {"time": f"{DURATION_S} s", "steady": "from 70 %"}
        prepared = prepare.prepare("consistency", drive, "quick", sets, SEED)
        bench_.purge(Progress(quiet=True))
        for act, job in prepare.jobs(prepared, bench_.fio_target):
            fio.run(job, folder / act.path)
        return iops_of(folder / "load")
    finally:
        running.end()


def iops_of(fio_folder: Path) -> float:
    """I/Os of a step by its time, as fio counted both."""
    totals = fiolog.load(fio_folder).totals
    return totals["ios"] / (totals["runtime_ms"] / 1000)


def disturbance() -> list[Figure]:
    rates: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory(prefix="ssdrig-disturbance-", dir="/var/tmp") as name:
        for n in range(PAIRS):
            order = ("with", "without") if n % 2 == 0 else ("without", "with")
            for which in order:
                folder = Path(name, f"{n}-{which}")
                folder.mkdir()
                rates[which].append(with_rig(folder) if which == "with" else without_rig(folder))
                print(f"disturbance: pair {n + 1}, {which} the rig: {rates[which][-1]:.1f} IOPS", file=sys.stderr)
    medians = {which: statistics.median(values) for which, values in rates.items()}
    return [at_least("IOPS with the rig to IOPS without it, medians", medians["with"] / medians["without"], "", 0.99)]


BENCHES = {
    "disturbance": (
        f"IOPS of one load with the whole rig attached and without it, {PAIRS} pairs (about 3 min)",
        disturbance,
    )
}
