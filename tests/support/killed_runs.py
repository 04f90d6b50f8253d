"""For tests of `ssdrig resume`: a run folder as kill -9 leaves it, made in process."""

import json
import os
import time

import pytest
from small_plans import FILLED, HEAD

from ssdrig.base.arguments import Parser
from ssdrig.run import prepare, resume
from ssdrig.runs import journal

PLAN = (
    HEAD
    + """[param]
most = 7
"""
    + FILLED
    + """[[step]]
name = "rounds"
do = "repeat"
most = "$most"
until = [{ steady = "pts", track = ["iops"] }]
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  read = 0
  block = "4 KiB"
  time = "1 s"
"""
)
DRIVE = {
    "model": "SIMULATED",
    "serial": "S1",
    "firmware": "F1",
    "interface": "nbd",
    "capacity_bytes": 64 << 20,
    "drive_bytes": 64 << 20,
    "raw_nand_bytes": 80 << 20,
    "logical_block_bytes": 4096,
    "time_dilation": 1,
    "preset": "sata-tlc",
}
UNIT = 512_000
MEAN = {"iops": 9.0, "MB/s": 1.0, "lat_mean": 2.0}


@pytest.fixture
def story(tmp_path):
    """A run that has filled and was killed in the point of round 2: [fill done, SMART before each round]."""
    plan = tmp_path / "small.toml"
    plan.write_text(PLAN)
    prepared = prepare.prepare(str(plan), DRIVE, sets={"most": "6"})
    header = {"simulated": True, **prepare.header(prepared), "drive": DRIVE, "rig": None, "host": {"boot_id": "b"}}
    header["method"] |= {"tested_bytes": None}
    book = journal.create(tmp_path / "runs", header)
    event = book.event
    event("run.start", pid=1)
    for name in ("purge", "fill"):
        event("step.start", step=name)
        if name == "fill":
            wrote(book, "fill", [64 << 20])
        event("step.end", step=name, ok=True, bytes=64 << 20)
    for number in (1, 2):
        smart(book, number, 100 * UNIT + number)
        event("step.start", step="rounds/point", round=number)
        wrote(book, f"rounds/point/r{number:02}", [4 << 20, 10 << 20])
        if number == 1:
            event("step.end", step="rounds/point", ok=True, round=1, bytes=10 << 20, mean=MEAN)
            event("round", step="rounds", round=1, steady=False, tracked={})
    yield book
    if book._end is None:
        book.close("interrupted")


def wrote(book, path, sizes):
    """What fio leaves: a document for each of `sizes`, bytes written since the job began."""
    folder = book.path / "fio" / path
    folder.mkdir(parents=True)
    (folder / "start.json").write_text(json.dumps({"t_ns": time.monotonic_ns()}))
    rows = []
    for size in sizes:
        side = {"io_bytes": size, "total_ios": size >> 12, "runtime": 1000, "clat_ns": {"N": size >> 12, "mean": 1.0}}
        rows.append(json.dumps({"t_ns": time.monotonic_ns(), "timestamp_ms": 0, "jobs": [{"write": side}]}))
    (folder / "out.json").write_text("\n".join(rows) + "\n")


def smart(book, number, written):
    units = -(-written // UNIT)
    log = {"data_units_written": units, "data_units_read": 0, "temperature": 30}
    now = time.monotonic_ns()
    document = {"n": number, "reason": "round", "t_start_ns": now, "t_end_ns": now, "simulated": True}
    device = {"type": "nvme", "protocol": "NVMe"}
    document["smartctl"] = {"device": device, "firmware_version": "F1", "nvme_smart_health_information_log": log}
    book.put(f"smart/{number:03}.json", json.dumps(document).encode())


def killed(book):
    """As kill -9 leaves it: no run.end, the lock given back."""
    book._closing.set()
    book._syncer.join()
    for fd in [*(fd for fd, _ in book._files.values()), *book._locks]:
        os.close(fd)
    book._end = {}
    return book.path


def asked(run, *words):
    """The command line `resume RUN …`."""
    parser = Parser()
    resume.add_arguments(parser)
    return parser.parse_args([str(run), "--quiet", *words])
