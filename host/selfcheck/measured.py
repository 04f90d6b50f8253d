"""One consistency run through chip, firmware, wire and host, its figures against the virtual drive's own ledger.

The run is made once and shared by all benches of a call. Comparing is the only thing that reads RUN/truth."""

import atexit
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_its_rate, at_least, at_most, clock, exactly
from ssdrig.load import fiolog
from ssdrig.meter import rails, samples
from ssdrig.reading import table
from ssdrig.runs import journal
from ssdrig.virtual import bench
from ssdrig.virtual.device import truth

DURATION_S = 40
FAST, FAST_S = (
    {"vbus_us": 84, "vshunt_us": 150, "temp_us": None},
    10,
)  # its accumulators are read instead of a sample, once a second
FAULTS = {"ppm": 40, "osc_ppm": 5000}  # the board's crystal, and the sensor's own oscillator 0.5 % off


@functools.cache
def measured_run() -> tuple[Path, dict]:
    """The run folder and its figures. The folder lives until this process ends."""
    return _run(tempfile.mkdtemp(prefix="ssdrig-bench-run-", dir="/var/tmp"), "2GiB", DURATION_S, FAULTS)


def _run(folder: str, capacity: str, duration_s: int, faults: dict) -> tuple[Path, dict]:
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = [
        sys.executable,
        "-P",
        "-m",
        "ssdrig",
        "run",
        "consistency",
        "--virtual",
        "sata-tlc",
        "--capacity",
        capacity,
    ]
    words += ["--duration", str(duration_s), "--runs", folder, "--json", "--faults", json.dumps(faults)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    run = Path(json.loads(done.stdout)["run"])
    return run, table.in_full(run).figures


def _marks(run: Path) -> tuple[dict, dict]:
    """The ledger at the instants of the SMART polls before and after the load."""
    marks = [json.loads(line) for line in (run / "truth" / "marks.jsonl").read_text().splitlines()]
    polls = {e["reason"]: e["t_ns"] for e in journal.events(run) if e["kind"] == "smart.start"}
    return tuple(next(m for m in marks if m["t_ns"] >= polls[reason]) for reason in ("before", "after"))


def energy() -> list[Figure]:
    two_rails = FAULTS | bench.rails_for(5, [("12V", 12.0, 0.4)])
    split, _ = _run(tempfile.mkdtemp(prefix="ssdrig-bench-run-", dir="/var/tmp"), "512MiB", 10, two_rails)
    return [
        at_most("energy of the load against the ledger", _energy_off_percent(measured_run()[0]), "%", 0.5),
        at_most("the same of a drive that draws from two rails", _energy_off_percent(split), "%", 0.5),
    ]


def _energy_off_percent(run: Path) -> float:
    """How far the energy of the load that the rig's rails measured is off from the drive's ledger."""
    powers = samples.load_rails(run)
    seconds = fiolog.load(run / "fio" / "load")
    t0_ns = int(seconds.t_ns[0])
    t1_ns = min(int(seconds.t_ns[-1]) + 10**9, *(int(power.t_ns[-1]) for power in powers))
    true_J = truth.energy_between(str(run / "truth"), t0_ns, t1_ns)
    measured_J = rails.energy_J(powers, t0_ns, t1_ns)
    assert true_J and measured_J is not None
    return abs(measured_J / true_J - 1) * 100


def closure() -> list[Figure]:
    _, figures = measured_run()
    with clock.measured(FAST_S, {"osc_ppm": FAULTS["osc_ppm"], "rail": FAST}) as (run, _, _):
        fast = samples.load(run)
    rate = float((fast.index[-1] - fast.index[0]) / (fast.t_ns[-1] - fast.t_ns[0])) * 1e9
    assert fast.closure
    return [
        at_most("energy closure of a fast rail, corrected", abs(fast.closure.corrected_percent), "%", 0.2),
        at_least("its conversions, by index, each second of host time", rate, "1/s", 4000),
        exactly(
            "its samples lost but for those given up for the accumulators",
            max(0, fast.lost - fast.closure.instead),
            "samples",
            0,
        ),
        at_most("energy closure, corrected", abs(figures["closure_percent"]), "%", 0.2),
        at_most(
            "chip clock error found, off from the one set",
            abs(abs(figures["chip_clock_ppm"]) - FAULTS["osc_ppm"]),
            "ppm",
            250,
        ),
    ]


def lost() -> list[Figure]:
    run, figures = measured_run()
    load = figures["windows"]["all"]
    rail = next(event for event in journal.events(run) if event["kind"] == "rig.hello")["hello"]["rails"][0]
    return [
        exactly("samples lost in a clean run", load["samples_lost"], "samples", 0),
        at_its_rate("samples of V and I, per second of the load", load["samples"] / load["t1_s"], rail),
    ]


def wa() -> list[Figure]:
    run, figures = measured_run()
    whole = figures["windows"]["all"]
    off = abs(whole["wa"] - true_wa(run, whole["wa_polls_s"]))
    return [
        at_most("WA of the load from SMART, off from the ledger", off, "", whole["wa_error"]),
        at_most("stated error bar of WA", whole["wa_error"] / whole["wa"] * 100, "%", 4),
    ]


def true_wa(run: Path, polls_s: list[float]) -> float:
    """Write amplification by the ledgers of the two SMART polls at these times of the load (s, drive time)."""
    data = table.in_full(run).data
    marks = [json.loads(line) for line in (run / "truth" / "marks.jsonl").read_text().splitlines()]
    at_s = data.axis_s([mark["t_ns"] for mark in marks])
    before, after = (marks[int(np.argmin(np.abs(at_s - poll_s)))] for poll_s in polls_s)
    nand, host = (after[name] - before[name] for name in ("nand_write_bytes", "host_write_bytes"))
    return nand / host


def iops() -> list[Figure]:
    run, figures = measured_run()
    before, after = _marks(run)
    seconds = fiolog.load(run / "fio" / "load")
    true_ios = after["host_write_commands"] - before["host_write_commands"]
    return [
        exactly("per-second IOPS summed, minus the drive's own count", int(seconds.iops.sum()) - true_ios, "I/Os", 0)
    ]


BENCHES = {
    "energy": ("energy of a run, measured through chip, firmware, wire and host, against the drive's ledger", energy),
    "closure": ("host integral against the chip's accumulator, whose clock is 0.5 % off on purpose", closure),
    "lost": ("samples lost in a clean run", lost),
    "wa": ("write amplification from SMART pages against the ledger", wa),
    "iops": ("per-second IOPS of fio's logs against the drive's own count", iops),
}
