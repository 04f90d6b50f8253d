"""One consistency run through chip, firmware, wire and host, its figures against the virtual drive's own ledger.

The run is made once and shared by all benches of a call. Comparing is the only thing that reads RUN/truth."""

import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ssdrig import analysis, fiolog, journal, samples
from ssdrig.benchmarks import Figure, at_least, at_most, exactly
from ssdrig.virtual import truth

DURATION_S = 40
FAULTS = {"ppm": 40, "osc_ppm": 5000}  # the board's crystal, and the sensor's own oscillator 0.5 % off


@functools.cache
def measured_run() -> tuple[Path, dict]:
    """The run folder and its figures. The folder lives until this process ends."""
    keep = tempfile.TemporaryDirectory(prefix="ssdrig-bench-run-", dir="/var/tmp")
    measured_run.keep = keep
    words = [sys.executable, "-m", "ssdrig", "run", "consistency", "--virtual", "sata-tlc", "--capacity", "2GiB"]
    words += ["--duration", str(DURATION_S), "--runs", keep.name, "--json", "--faults", json.dumps(FAULTS)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    run = Path(json.loads(done.stdout)["run"])
    return run, analysis.figures(analysis.load(run))


def _marks(run: Path) -> tuple[dict, dict]:
    """The ledger at the instants of the SMART polls before and after the load."""
    marks = [json.loads(line) for line in (run / "truth" / "marks.jsonl").read_text().splitlines()]
    polls = {e["reason"]: e["t_ns"] for e in journal.events(run) if e["kind"] == "smart.start"}
    return tuple(next(m for m in marks if m["t_ns"] >= polls[reason]) for reason in ("before", "after"))


def energy() -> list[Figure]:
    run, _ = measured_run()
    power = samples.load(run)
    seconds = fiolog.load(run / "fio" / "load")
    t0_ns, t1_ns = int(seconds.t_ns[0]), int(seconds.t_ns[-1]) + 10**9
    t1_ns = min(t1_ns, int(power.t_ns[-1]))
    edges = samples.integral_J(power, [t0_ns, t1_ns])
    measured_J = float(edges[1] - edges[0])
    true_J = truth.energy_between(str(run / "truth"), t0_ns, t1_ns)
    return [at_most("energy of the load against the ledger", abs(measured_J / true_J - 1) * 100, "%", 0.5)]


def closure() -> list[Figure]:
    _, figures = measured_run()
    return [
        at_most("energy closure, corrected", abs(figures["closure_percent"]), "%", 0.2),
        at_most("chip clock error found, off from the one set", abs(abs(figures["chip_clock_ppm"]) - FAULTS["osc_ppm"]), "ppm", 250),
    ]


def lost() -> list[Figure]:
    _, figures = measured_run()
    return [
        exactly("samples lost in a clean run", figures["samples_lost"], "samples", 0),
        at_least("samples of V and I, per second of the load", figures["samples"] / DURATION_S, "1/s", 1000),
    ]


def wa() -> list[Figure]:
    run, figures = measured_run()
    before, after = _marks(run)
    true_wa = (after["nand_write_bytes"] - before["nand_write_bytes"]) / (after["host_write_bytes"] - before["host_write_bytes"])
    return [
        at_most("WA from SMART, off from the ledger", abs(figures["wa"] - true_wa), "", figures["wa_error"]),
        at_most("stated error bar of WA", figures["wa_error"] / figures["wa"] * 100, "%", 2),
    ]


def iops() -> list[Figure]:
    run, figures = measured_run()
    before, after = _marks(run)
    seconds = fiolog.load(run / "fio" / "load")
    true_ios = after["host_write_commands"] - before["host_write_commands"]
    return [exactly("per-second IOPS summed, minus the drive's own count", int(seconds.iops.sum()) - true_ios, "I/Os", 0)]


BENCHES = {
    "energy": ("energy of a run, measured through chip, firmware, wire and host, against the drive's ledger", energy),
    "closure": ("host integral against the chip's accumulator, whose clock is 0.5 % off on purpose", closure),
    "lost": ("samples lost in a clean run", lost),
    "wa": ("write amplification from SMART pages against the ledger", wa),
    "iops": ("per-second IOPS of fio's logs against the drive's own count", iops),
}
