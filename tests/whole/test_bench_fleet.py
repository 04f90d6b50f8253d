"""Several virtual drives tested together, in processes of their own: one whose folder takes no more ends no other, and
what a rig measures is of its own drive."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOST

from ssdrig.load import fiolog
from ssdrig.meter import pairing, rails, samples
from ssdrig.runs import journal
from ssdrig.virtual.device import truth

pytestmark = [pytest.mark.slow, pytest.mark.keeps_time]

FULL = "enterprise-plp"  # draws almost twice as much as the other
WORDS = f"run consistency --virtual sata-tlc --virtual {FULL} --capacity 512MiB --duration 6 --jsonl --quiet".split()


def test_a_drive_whose_folder_is_full_ends_no_other(tmp_path):
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-m", "ssdrig", *WORDS, "--runs", str(tmp_path / "runs")]
    # the limit is for all files of the process: Python would leave modules that are compiled in part
    env = os.environ | {"PYTHONPATH": HOST, "TMPDIR": str(tmp_path / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    how = {"env": env, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, **how) as parent:
        try:
            lines = []
            while not any("power_W" in line and line["drive"] == FULL for line in lines):
                lines.append(json.loads(parent.stdout.readline()))
            full = Path(next(line["run"] for line in lines if line["drive"] == FULL))
            pid = next(event["pid"] for event in journal.events(full) if event["kind"] == "run.start")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, ((full / "rig.bin").stat().st_size,) * 2)
            out, err = parent.communicate()
        finally:
            parent.terminate()
    *lines, last = map(json.loads, out.splitlines())
    assert parent.returncode == last["exit_code"] == 8 and "Traceback" not in err, err
    first, second = last["drives"]
    assert (first["drive"], first["state"], first["exit_code"]) == ("sata-tlc", "complete", 0)
    assert (second["drive"], second["state"], second["exit_code"]) == (FULL, "failed", 8)
    whole, damaged = (Path(one["results"][0]["run"]) for one in last["drives"])
    assert (journal.state(whole), damaged) == ("complete", full) and journal.state(full) in ("failed", "died")
    assert first["results"][0]["figures"] and not list((tmp_path / "tmp").iterdir())
    assert pairing.unpaired(journal.events(whole)) or energy_of(whole) == pytest.approx(1, abs=0.02)


def energy_of(run):
    """What the rig measured of the load, as a part of what the drive drew by its own ledger."""
    powers, seconds = samples.load_rails(run), fiolog.load(run / "fio" / "load")
    begin_ns = int(seconds.t_ns[0])
    end_ns = min(int(seconds.t_ns[-1]), *(int(power.t_ns[-1]) for power in powers))
    return rails.energy_J(powers, begin_ns, end_ns) / truth.energy_between(run / "truth", begin_ns, end_ns)
