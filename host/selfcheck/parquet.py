"""The lake: bytes per sample of V and I, energy by the second of 10^8 samples, energies against the report's.

SIMULATED: power that changes each second, and noise as the virtual bench shows it on its INA228 (8 LSB of the bus, 0.03
W of a drive at work), in run folders of 70 minutes. Needs 5 GB in /var/tmp."""

import json
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_most, exactly
from ssdrig.publish.lake import place, query, read, write
from ssdrig.reading import table

RUNS, SECONDS = 24, 4180
DISTINCT = 3  # run folders; the others are copies under other names, with the same samples
NOISE_LSB = (8, 800)  # rms of bus and current
THREADS = 2
TESTS = Path(__file__).parents[2] / "tests" / "support"  # the writer of run folders with known content is the tests'


def parquet() -> list[Figure]:
    sys.path.insert(0, str(TESTS))
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-parquet-", dir="/var/tmp"))
    try:
        runs = [_run(folder, i) for i in range(DISTINCT)]
        runs += [_copy(runs[i % DISTINCT], i) for i in range(DISTINCT, RUNS)]
        lake_folder = folder / "lake"
        started = time.monotonic()
        with ProcessPoolExecutor(os.cpu_count()) as pool:  # each a bench of its own
            done = list(pool.map(_export, runs, [lake_folder] * RUNS))
        took_s = time.monotonic() - started
        samples = sum(one.samples for one in done)
        print(f"{samples} samples exported in {took_s:.0f} s", file=sys.stderr)
        sample_bytes = sum(one.sample_bytes for one in done) / samples
        raw = sum((run / "rig.bin").stat().st_size for run in runs) / samples
        lake = read.look(place.open_place(str(lake_folder)))
        took, rows = [], 0
        for _ in range(3):
            started = time.monotonic()
            answer = query.ask(lake, query.all_of()["energy-by-second"].sql, str(folder), THREADS)
            took.append(time.monotonic() - started)
            rows = answer.num_rows
        print(f"{rows} seconds of rails, in {', '.join(f'{t:.2f}' for t in took)} s", file=sys.stderr)
        return [
            at_most(f"bytes a sample of V and I (rig.bin: {raw:.2f})", sample_bytes, "B", 3.2),
            exactly("samples in the lake, minus those of the runs", _count(lake, folder) - samples, "", 0),
            at_most(f"energy by second of {samples / 1e6:.0f} million samples", min(took) * 1e8 / samples, "s/10^8", 3),
            at_most("energy of windows, off from the report's", _off(lake, runs[:DISTINCT], folder), "", 1e-6),
        ]
    finally:
        shutil.rmtree(folder)


def _run(folder: Path, i: int) -> Path:
    import synthetic_run

    print(f"run {i + 1} of {DISTINCT} is being written", file=sys.stderr)
    rng = np.random.default_rng(i)
    watts = [(-100.0, 4.0), *((float(s), float(w)) for s, w in enumerate(rng.normal(2.5 + i / 10, 0.2, SECONDS)))]
    iops = np.rint(rng.normal(20_000, 1000, SECONDS)).astype(int)
    how = {"zoom_s": SECONDS // 2, "smart_every_s": 60, "model": f"SIMULATED drive {i}", "noise_lsb": NOISE_LSB}
    return synthetic_run.write(folder, iops, watts=watts, name=f"run-{i}", **how)


def _copy(run: Path, i: int) -> Path:
    to = shutil.copytree(run, run.with_name(f"run-{i}"), copy_function=os.link)
    header = json.loads((run / "run.json").read_text())
    header |= {"run": to.name, "drive": {**header["drive"], "model": f"SIMULATED drive {i}"}}
    (to / "run.json").unlink()  # a link
    (to / "run.json").write_text(json.dumps(header))
    return to


def _export(run: Path, lake: Path) -> write.Exported:
    return write.export(run, place.open_place(str(lake)), "bench")


def _count(lake: read.Lake, folder: Path) -> int:
    return query.ask(lake, "SELECT count(*) AS n FROM sample", str(folder)).to_pylist()[0]["n"]


def _off(lake: read.Lake, runs: list[Path], folder: Path) -> float:
    """The largest relative difference of any window's energy, summed from the samples, from the report's."""
    off = 0.0
    for run in runs:
        for name, window in table.in_full(run).figures["windows"].items():
            if not window:
                continue
            sql = f"""
                SELECT 1e-9 * sum(s.V::DOUBLE * s.I
                    * greatest(0, least(s.t_ns, f.end_ns) - greatest(s.t_ns - s.dt_ns, f.t_ns))) AS J
                FROM figure f JOIN sample s ON s.run = f.run AND s.t_ns > f.t_ns AND s.t_ns - s.dt_ns < f.end_ns
                WHERE f.run = '{run.name}' AND f.window_name = '{name}' AND s.run = '{run.name}'"""
            joules = query.ask(lake, sql, str(folder)).to_pylist()[0]["J"]
            off = max(off, abs(joules / window["energy_J"] - 1))
    return off


BENCHES = {"parquet": ("runs as Parquet: bytes a sample, energy by the second of 10^8 samples, energies", parquet)}
