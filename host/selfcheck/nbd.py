"""The virtual drive's server against fio: how fast without the latency model, how exact with it."""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from selfcheck import Figure, at_least, at_most
from ssdrig.base.errors import LoadError, ToolMissing
from ssdrig.virtual import adminclient
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import PRESETS

RUN_S = 4
PAIRS = 5
TRIES = 5
QUEUE_DEPTH = 32
OP_FOR_WA_3 = 16.5  # percent of raw NAND: greedy, 192 pages a block


def throughput() -> list[Figure]:
    """fio, 4 KiB random writes at QD 32, alternately to our server (latency model off, collecting at WA 3) and to
    nbdkit's memory plugin, all on the same cores; the median of the ratios of neighbouring runs."""
    nbdkit = _tool("nbdkit")
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-nbd-") as name:
        folder = Path(name)
        words = ("--preset", "sata-tlc", "--capacity", "1GiB", "--op", str(OP_FOR_WA_3), "--no-latency")
        with (
            _serving(folder / "ours", *words) as drive,
            _memory_disk(nbdkit, folder / "theirs", drive["capacity_bytes"]),
        ):
            pages = drive["capacity_bytes"] // 4096
            _fio(folder / "ours", "write", block_bytes=131072, amount_bytes=pages * 4096)
            _fio(folder / "theirs", "write", block_bytes=131072, amount_bytes=pages * 4096)
            _fio(folder / "ours", "randwrite", amount_bytes=3 * pages * 4096)
            before = _ledger(folder / "ours")
            ours, theirs = [], []
            for _ in range(PAIRS):
                ours.append(_fio(folder / "ours", "randwrite", time_s=RUN_S))
                theirs.append(_fio(folder / "theirs", "randwrite", time_s=RUN_S))
            after = _ledger(folder / "ours")
    written = after["host_write_bytes"] - before["host_write_bytes"]
    wa = (after["nand_write_bytes"] - before["nand_write_bytes"]) / written
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    return [
        at_least("4 KiB random write QD 32 through NBD, against nbdkit memory", ratio, "of its IOPS", 1.0),
        at_least("write amplification meanwhile", wa, "", 2.9),
        at_least("our server, median", statistics.median(ours), "IOPS", 40_000),
        Figure("nbdkit memory, median", statistics.median(theirs), "IOPS", "for comparison", True),
    ]


def pace() -> list[Figure]:
    """fio at QD 32 in real time against the same drive in a closed loop in model time: steady random writes and random
    reads of the SATA drives, and service rates set one by one. What else runs on the machine can only take away from
    the rate, so the fastest of up to five runs counts."""
    points = []
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-pace-", dir="/var/tmp") as name:
        folder = Path(name)
        for preset in ("sata-mlc", "sata-tlc", "enterprise-plp"):
            drive = VirtualDrive(PRESETS[preset])
            drive.precondition("seq", 1.0)
            # other pages than the closed loop will write, in another order
            drive.precondition("random", 1.5, seed=4242)
            drive.save(folder / preset)
            points.append((f"{preset} steady random write", folder / preset, "randwrite"))
            points.append((f"{preset} random read", folder / preset, "randread"))
        for rate in (5_000, 20_000, 50_000):
            drive = VirtualDrive(replace(PRESETS["sata-tlc"], cmd_write_ns=10**9 // rate))
            drive.save(folder / str(rate))
            points.append((f"set rate {rate} IOPS random write", folder / str(rate), "randwrite"))
        return [_pace(title, state, rw, folder / "socket") for title, state, rw in points]


def _pace(title: str, state: Path, rw: str, path: Path) -> Figure:
    model = VirtualDrive.load(state)
    counts, _ = model.closed_loop(
        queue_depth=QUEUE_DEPTH, t_ns=0, duration_ns=RUN_S * 10**9, read_share=1.0 if rw == "randread" else 0.0
    )
    expected = counts.sum() / RUN_S
    seen = 0.0
    for _ in range(TRIES):
        with _serving(path, "--preset", model.preset.name, "--state", str(state), "--data", "crc"):
            seen = max(seen, _fio(path, rw, time_s=RUN_S))
        if seen >= 0.98 * expected:
            break
    return at_most(f"{title}: {seen:.0f} of {expected:.0f} IOPS", float(100 * abs(seen / expected - 1)), "% off", 2.0)


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ToolMissing(name, "not installed", f"sudo apt-get install {name}")
    return path


@contextmanager
def _serving(path: Path, *words: str):
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "ssdrig.virtual.serve", "--socket", str(path), *words, "--die-with-parent"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:
            raise LoadError("the virtual drive to start", f"exit code {process.wait()}", "see its words above")
        yield json.loads(line)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@contextmanager
def _memory_disk(nbdkit: str, path: Path, size_bytes: int):
    process = subprocess.Popen([nbdkit, "--foreground", "--unix", str(path), "memory", str(size_bytes)])
    try:
        deadline = time.monotonic() + 10
        while not path.exists():
            if time.monotonic() > deadline or process.poll() is not None:
                raise LoadError("nbdkit to listen", f"exit code {process.poll()}", "start it by hand to see why")
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait()


def _ledger(path: Path) -> dict:
    return adminclient.ask(f"{path}.truth", {"op": "ledger"})


def _fio(
    path: Path, rw: str, *, block_bytes: int = 4096, time_s: int | None = None, amount_bytes: int | None = None
) -> float:
    """One bounded fio run over the whole drive at `path`. Returns IOPS."""
    _tool("fio")
    length = ["--time_based=1", f"--runtime={time_s}"] if time_s else [f"--io_size={amount_bytes}"]
    words = [
        "fio",
        "--name=bench",
        "--ioengine=nbd",
        f"--uri=nbd+unix:///?socket={path}",
        f"--rw={rw}",
        f"--bs={block_bytes}",
        f"--iodepth={QUEUE_DEPTH}",
        "--thread=1",
        "--norandommap=1",
        "--random_generator=tausworthe64",
        "--output-format=json",
        f"--randseed={time.monotonic_ns() % 2**31}",
        *length,
    ]
    with tempfile.TemporaryFile() as out:
        try:
            subprocess.run(
                words, stdout=out, stderr=subprocess.STDOUT, timeout=(time_s or 270) + 30, cwd=path.parent, check=True
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as e:
            out.seek(0)
            raise LoadError(
                "fio to finish", f"{e}: {os.pread(out.fileno(), 500, 0)!r}", "run it by hand to see why"
            ) from e
        out.seek(0)
        text = out.read().decode(errors="replace")
    job = json.loads(text[text.index("{") :])["jobs"][0]
    done = job["read"]["total_ios"] + job["write"]["total_ios"]
    return done / (job["job_runtime"] / 1000)


BENCHES = {
    "nbd": ("virtual drive through NBD without the latency model against nbdkit memory", throughput),
    "pace": ("the rate that fio sees in real time against the model's own", pace),
}
