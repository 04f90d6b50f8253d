"""The demo's run on the virtual bench, its window `steady` against the drive's own ledger over the same seconds."""

import atexit
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selfcheck import Figure, at_most
from ssdrig.reading import table
from ssdrig.virtual.device import truth

WORDS = ["run", "consistency", "--virtual", "sata-tlc", "--duration", "60", "--quiet", "--json"]  # as demo.py runs it


@functools.cache
def demo_run() -> Path:
    """The run folder of one demo run; it lives until this process ends."""
    folder = tempfile.mkdtemp(prefix="ssdrig-bench-run-", dir="/var/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ssdrig", *WORDS, "--runs", folder], stdout=subprocess.PIPE, text=True, check=True
    )
    return Path(json.loads(done.stdout)["run"])


def windows() -> list[Figure]:
    return against_ledger(demo_run(), "steady")


def against_ledger(run: Path, name: str) -> list[Figure]:
    """How far a window's figures are off from what the drive did between the same two times.

    The drive's own mean latency is the queue depth divided by its own rate (Little's law). It holds a request only from
    when its server has read it: on a busy host most of the latency passes in the socket, and the last line says how
    much does not."""
    data, figures, _ = table.in_full(run)
    window = figures["windows"][name]
    edges = [data.t0_ns + round(window[key] * data.k * 1e9) for key in ("t0_s", "t1_s")]
    depth = data.header["method"]["queue_depth"]
    true, seconds = truth.counts_between(str(run / "truth"), *edges), window["t1_s"] - window["t0_s"]
    true_J = truth.energy_between(str(run / "truth"), *edges)
    rate = true["host_write_commands"] / seconds
    true_us, inside_us = 1e6 * depth / rate, true["host_latency_ns"] / true["host_write_commands"] / 1000
    true_wa = true["nand_write_bytes"] / true["host_write_bytes"]
    return [
        at_most("energy of the window, off from the ledger", _off(window["energy_J"], true_J), "%", 0.5),
        at_most("its IOPS", _off(window["iops_mean"], rate), "%", 2),
        at_most(
            "its mean latency, off from queue depth / the drive's rate", _off(window["lat_mean_us"], true_us), "%", 2
        ),
        at_most(
            "its energy per I/O", _off(window["energy_uJ_per_io"], 1e6 * true_J / true["host_write_commands"]), "%", 2
        ),
        at_most("its write amplification", abs(window["wa"] - true_wa), "", window["wa_error"]),
        at_most("stated error bar of that", 100 * window["wa_error"] / window["wa"], "%", 5),
        at_most("IOPS x mean latency, off from the queue depth", abs(window["littles_error_percent"]), "%", 2),
        Figure("of its mean latency, inside the drive", 100 * inside_us / window["lat_mean_us"], "%", "none", True),
    ]


def _off(seen: float, true: float) -> float:
    return 100 * abs(seen / true - 1)


BENCHES = {"windows": ("the demo's steady window against the drive's ledger over the same seconds", windows)}
