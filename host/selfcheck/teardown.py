"""Real runs on the virtual bench that are ended impatiently: two to four signals at random moments; as root also on a
disk that fills up at a random moment. Afterwards the run's state is clear; no process, no temporary folder is left."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, exactly
from selfcheck.kill import alive, descendants
from ssdrig.runs import journal

SIGNALLED, FILLED = 25, 10
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WORDS = "run consistency --virtual sata-tlc --capacity 256MiB --duration 5 --jsonl".split()
LIMIT_S = 120


def signalled(folder: Path, chance: random.Random) -> list[str]:
    """One run with signals. Returns what is wrong after it."""
    folder.mkdir()
    with _run(folder, folder / "runs") as process:
        assert process.stdout
        first = json.loads(process.stdout.readline() or "{}")
        time.sleep(chance.uniform(0, 8))
        family = descendants(process.pid)
        for _ in range(chance.randint(2, 4)):
            process.send_signal(chance.choice(SIGNALS))
            time.sleep(chance.uniform(0, 0.4))
        out, err = process.communicate(timeout=LIMIT_S)
    faults = _faults(folder, family, err)
    state = journal.state(first["run"]) if "run" in first else "not begun"
    wanted = {130: {"interrupted"}, 0: {"complete"}}
    # one that comes when the run is over, its folder closed, ends the process as signals do
    wanted |= {-number: {"interrupted", "complete"} for number in SIGNALS}
    if state not in wanted.get(process.returncode, set()):
        faults.append(f"state {state}, exit code {process.returncode}")
    return faults


def filled(folder: Path, chance: random.Random) -> list[str]:
    """One run on a disk with too little room (root mounts it). Returns what is wrong after it."""
    disk = folder / "disk"
    disk.mkdir(parents=True)
    size = f"size={chance.randint(80, 900)}k"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)
    try:
        with _run(folder, disk) as process:
            out, err = process.communicate(timeout=LIMIT_S)
        faults = _faults(folder, set(), err)
        result = json.loads(out.splitlines()[-1]) if out else {}
        state = journal.state(result["run"]) if "run" in result else "not begun"
        # there may just be room for all of it
        if (process.returncode, state) not in [(8, "failed"), (10, "failed"), (8, "not begun"), (0, "complete")]:
            faults.append(f"{size}: state {state}, exit code {process.returncode}")
        return faults
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def _run(folder: Path, runs: Path) -> subprocess.Popen:
    (folder / "tmp").mkdir()
    words = [sys.executable, "-P", "-m", "ssdrig", *WORDS, "--runs", str(runs)]
    environ = os.environ | {"TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _faults(folder: Path, family: set[int], err: str) -> list[str]:
    faults = ["a traceback"] * ("Traceback" in err)
    faults += [f"temporary folder {path.name}" for path in (folder / "tmp").iterdir()]
    return faults + [f"process {pid} is left" for pid in family if alive(pid)]


def teardown() -> list[Figure]:
    chance = random.Random(1)
    by_kind: dict[str, list[list[str]]] = {"signalled": [], "filled": []}
    with tempfile.TemporaryDirectory(prefix="ssdrig-teardown-", dir="/var/tmp") as name:
        for n in range(SIGNALLED):
            by_kind["signalled"].append(signalled(Path(name, f"s{n}"), chance))
        for n in range(FILLED if os.geteuid() == 0 else 0):
            by_kind["filled"].append(filled(Path(name, f"f{n}"), chance))
    for faults in [faults for all_of in by_kind.values() for faults in all_of if faults]:
        print(f"teardown: {'; '.join(faults)}", file=sys.stderr)
    return [
        exactly(f"of {len(runs)} runs that were {how}, those that ended unclearly", sum(map(bool, runs)), "runs", 0)
        for how, runs in by_kind.items()
        if runs
    ]


BENCHES = {
    "teardown": (
        f"{SIGNALLED} runs ended by signals at random moments, as root {FILLED} on a disk that fills up (about 8 min)",
        teardown,
    )
}
