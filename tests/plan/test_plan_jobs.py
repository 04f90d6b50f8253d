"""The job files of `consistency`: those of the test before plans were data (commit 7bc66fd), byte for byte."""

from pathlib import Path

import pytest

from ssdrig.load.fiojob import job_file
from ssdrig.run import options, prepare

KEPT = Path(__file__).parents[1] / "data/job-files"
GIB = 1 << 30
DRIVE = {"interface": "NVMe", "capacity_bytes": 240 * 10**9, "raw_nand_bytes": 256 * GIB, "time_dilation": 1}
DRIVE |= {"logical_block_bytes": 512}


def files(prepared, target):
    return {act.path: job_file(job) for act, job in prepare.jobs(prepared, target)}


@pytest.mark.parametrize(
    ("variant", "sets", "stored"),
    [
        ("2013", {}, "2013"),
        ("2015", {}, "2015"),
        ("enterprise", {}, "enterprise"),
        ("op25", {"rule": "never", "time": "2000 s"}, "op25"),
        ("op50", {"rule": "never", "time": "1 h"}, "op50"),
    ],
)
def test_job_files_of_a_real_drive(variant, sets, stored):
    made = files(prepare.prepare("consistency", DRIVE, variant, sets), "/dev/nvme0n1")
    assert made == {step: (KEPT / f"{stored}-{step}.fio").read_text() for step in ("fill", "load")}


def test_job_files_of_a_dilated_virtual_drive():
    drive = DRIVE | {"interface": "nbd", "capacity_bytes": 8 * GIB, "raw_nand_bytes": 9 * GIB, "time_dilation": 10}
    words = ["consistency", "--virtual", "x", "--op", "25", "--duration", "60", "--seed", "7"]
    args = options.parse(words)
    variant, sets = options.parameters(args)
    made = files(
        prepare.prepare("consistency", drive, variant, sets, options.seed(args, drive)), "nbd+unix:///?socket=/run/s"
    )
    assert made == {step: (KEPT / f"virtual-{step}.fio").read_text() for step in ("fill", "load")}


def test_the_words_of_the_command_line_set_what_they_always_did():
    """--op, --duration, --zoom, --smart-interval, --settle and --idle, as they stood in run.json before."""
    words = ["consistency", "--drive", "S", "--op", "44.6", "--duration", "3600", "--steady-from", "3200", "--settle"]
    args = options.parse([*words, "--smart-interval", "30", "--idle", "20"])
    variant, sets = options.parameters(args)
    drive = DRIVE | {"raw_nand_bytes": 336 * GIB, "capacity_bytes": 200 * 10**9}
    method = prepare.method(prepare.prepare("consistency", drive, variant, sets, 9))
    assert method == {
        "name": "consistency",
        "seed": 9,
        "tested_bytes": int(336 * GIB * (1 - 44.6 / 100)) >> 20 << 20,
        "op_percent": 44.6,
        "duration_s": 3600,
        "zoom_s": 3200,
        "smart_interval_s": 30,
        "settle": True,
        "idle_s": 20,
        "block_bytes": 4096,
        "queue_depth": 32,
        "threads": 1,
        "read_percent": 0,
        "fill_block_bytes": 131072,
    }
