"""Seconds and totals of fio's files, byte by byte."""

import json

import numpy as np
import pytest

from ssdrig.base.errors import LoadError, UsageError
from ssdrig.load import fiotext, foreign

UTC_MS = 1_795_177_500_000


def document(ios=1000, runtime_ms=2000):
    side = {"total_ios": ios, "io_bytes": ios * 4096, "runtime": runtime_ms}
    side |= {"clat_ns": {"N": ios, "mean": 1000.0, "bins": {"1000": ios}}, "lat_ns": {"N": ios, "mean": 1100.0}}
    job = {"jobname": "j", "groupid": 0, "job_runtime": runtime_ms, "read": side, "job_start": UTC_MS}
    return {"fio version": "fio-3.37", "timestamp_ms": UTC_MS + runtime_ms + 40, "jobs": [job]}


def written(folder, rows, kind="iops", made=None):
    (folder / "out.json").write_text(json.dumps(made or document()) + "\n")
    path = folder / f"j_{kind}.1.log"
    path.write_text("".join(", ".join(map(str, row)) + "\n" for row in rows))
    return folder / "out.json", [path]


def test_stretches_fill_their_seconds_and_the_json_counts_the_last_one(tmp_path):
    rows = [(500, 400, 0, 0), (1000, 600, 0, 0), (1500, 500, 0, 0)]
    (job,) = foreign.read(*written(tmp_path, rows))
    assert job.sides["read"].by_second["ios"].tolist() == [500, 500]
    assert job.utc_ms == UTC_MS and job.error_ms == 1.0 and job.runtime_ms == 2000


def test_each_row_of_an_io_counts_one(tmp_path):
    rows = [(n, 1100, 0, 4096) for n in range(0, 2000, 2)]
    (job,) = foreign.read(*written(tmp_path, rows, "lat"))
    by_second = job.sides["read"].by_second
    assert by_second["ios"].tolist() == [500, 500] and by_second["bytes"].tolist() == [500 * 4096] * 2
    assert by_second["lat_sum_ns"].tolist() == [550_000] * 2


def test_a_run_folder_gives_back_what_was_written(tmp_path):
    (job,) = foreign.read(*written(tmp_path, [(1000, 300, 0, 0), (2000, 700, 0, 0)]))
    foreign.write(tmp_path / "recorded", job, 10**12)
    seconds = foreign.load(tmp_path / "recorded")
    assert seconds.iops.tolist() == [300, 700] and seconds.totals["ios"] == 1000 and seconds.source == "foreign"
    assert seconds.t_ns.tolist() == [10**12, 10**12 + 10**9]
    counts = foreign.histogram(foreign.content(tmp_path / "recorded"), "clat", "read")
    assert counts.sum() == 1000 and np.flatnonzero(counts).tolist() == [int(fiotext.plat_index(1000))]
    (tmp_path / "recorded" / foreign.NAME).write_text('{"schema": 1}')
    with pytest.raises(LoadError):
        foreign.load(tmp_path / "recorded")


def test_two_values_in_a_row_are_refused(tmp_path):
    with pytest.raises(UsageError, match="log_window_value"):
        foreign.read(*written(tmp_path, [(1000, 300, 700, 0, 0)]))
