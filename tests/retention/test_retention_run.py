"""`run retention write`, then `verify` in another process, on a virtual drive that lay without power in between."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.virtual.device import persistence

ROOT = Path(__file__).parents[2]
CAPACITY = "128MiB"
pytestmark = pytest.mark.slow


def ssdrig(*words) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "host")}
    return subprocess.run([sys.executable, "-m", "ssdrig", *words], capture_output=True, text=True, env=environment)


def verified(folder: Path, runs: Path, *more) -> tuple[int, Path | None, dict | None, str]:
    """(exit code, run folder, its figures of the step, stderr)."""
    words = ("--virtual", "sata-tlc", "--kept", str(folder), "--runs", str(runs), "--json")
    done = ssdrig("run", "retention", "verify", *words, "--set", "after=0 s", *more)
    document = json.loads(done.stdout) if done.stdout else {}
    result = next((row["found"] for row in (document.get("figures") or {}).get("rows", [])), None)
    return done.returncode, Path(document["run"]) if document else None, result, done.stderr


@pytest.fixture(scope="module")
def sealed(tmp_path_factory) -> tuple[Path, Path]:
    """(the drive as it lies there, the run folder)."""
    runs = tmp_path_factory.mktemp("runs")
    words = ("--virtual", "sata-tlc", "--capacity", CAPACITY, "--runs", str(runs), "--json", "--set", "rest=0 s")
    done = ssdrig("run", "retention", "write", *words)
    assert done.returncode == 0, done.stderr
    run = Path(json.loads(done.stdout)["run"])
    assert "for the label on the drive: SSDRIG RETENTION" in done.stderr and "its power is off since" in done.stderr
    return run / "drive", run


@pytest.fixture
def drive(sealed, tmp_path) -> Path:
    """A copy of it, to be treated badly."""
    shutil.copytree(sealed[0], tmp_path / "drive")
    return tmp_path / "drive"


def flip(drive: Path, copies) -> None:
    """A byte of the manifest's JSON in these copies."""
    places = layouts.copies(persistence.facts(drive)["drive_bytes"])
    with open(drive / "store.bin", "r+b") as data:
        for copy in copies:
            data.seek(places[copy] + 300)
            byte = data.read(1)[0]
            data.seek(places[copy] + 300)
            data.write(bytes([byte ^ 1]))


def test_at_0_hours_all_is_there_and_the_third_copy_is_enough(drive, tmp_path):
    flip(drive, (0, 1))
    code, run, result, document = verified(drive, tmp_path / "runs", "--celsius", "30", "--hours", "0")
    assert code == 0 and result["passes"][0]["bad"] == 0 and result["passes"][0]["blocks"] > 25_000, document
    assert "in the first MiB is not used" in document and "in the middle is not used" in document
    assert set(result["damaged"]) == {"first MiB", "middle"} and result["storage"]["hours"] == 0
    assert "SIMULATED" in result["label"] and (run / "drive" / "flash.npz").is_file()
    page = tmp_path / "page.html"
    done = ssdrig("report", str(run), "--out", str(page))
    assert done.returncode == 0 and "Bad blocks along the drive" in page.read_text(), done.stderr


def test_altered_and_foreign_manifests_are_refused(drive, sealed, tmp_path):
    document = json.loads((drive / "device.json").read_text())
    document["counted"]["serial"] = "SIM000000000001"
    (drive / "device.json").write_text(json.dumps(document))
    code, _, _, words = verified(drive, tmp_path / "runs")
    assert code == 14 and "SIM000000000001 of the drive" in words
    shutil.rmtree(drive)
    shutil.copytree(sealed[0], drive)
    flip(drive, (0, 1, 2))
    code, _, _, words = verified(drive, tmp_path / "runs")
    assert code == 14 and "SHA-256" in words and words.count("expected one whole copy") == 1


def test_what_was_lost_is_found_exactly(drive, sealed, tmp_path):
    age = ssdrig("virtual", "age", "--state", str(drive), "--hours", "500000", "--celsius", "30")
    assert age.returncode == 0, age.stderr
    file = str(sealed[1] / "retention" / "manifest.json")
    code, run, result, words = verified(
        drive, tmp_path / "runs", "--manifest", file, "--celsius", "30", "--hours", "500000"
    )
    assert code == 15, words
    truth = set(json.loads((run / "truth" / "retention.json").read_text())["bad_pages"])
    at = layouts.of_json(result["manifest"]["layout"])
    rows = layouts.commands(at, layouts.of_kinds(at, layouts.KEPT), 128 << 10)
    pages = set((rows[:, :1] // 4096 + np.arange(32)).reshape(-1).tolist())
    judged = result["passes"][0]
    bad = {first + i for first, n, _ in judged["bad_runs"] for i in range(n)}
    assert bad == truth & pages and len(bad) > 20, words
    assert judged["classes"] == {"UNREADABLE": len(bad)}  # how slow is asked in model time (test_retention_aged.py)
    assert result["bound"]["state"] == "holds" and "115 TB" in " ".join(result["cannot"])
