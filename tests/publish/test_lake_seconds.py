"""Seconds of the lake where a step reads and writes: both on the grid that the report has, and no I/O left out."""

import json
from pathlib import Path

import pytest
import synthetic_fio
import synthetic_run
from lake_runs import asked, lake_of, run

from ssdrig.reading import table

SECONDS, WRITES, READS, LATE_MS = 10, 500, 20, 950


def mixed(folder: Path, first_ms: int) -> None:
    """fio's files of a load that writes all the time, and whose first read ends LATE_MS later than its first write."""
    for log in folder.glob("*.log"):
        log.unlink()
    row = lambda ms, direction, n: f"{first_ms + ms}, {direction}, 4096{', 0' * at}, {n}{', 0' * behind}"
    at = synthetic_fio.hist_bin(800_000)
    behind = synthetic_fio.HIST_BINS - at - 1
    rows = [(1000 * (i + 1), 1, WRITES) for i in range(SECONDS)]
    rows += [(LATE_MS + 1000 * (i + 1), 0, READS) for i in range(SECONDS - 1)]
    (folder / "load_clat_hist.1.log").write_text("".join(row(*entry) + "\n" for entry in sorted(rows)))
    documents = [json.loads(line) for line in (folder / "out.json").read_text().splitlines()]
    for second, document in enumerate(documents, 1):
        (job,) = document["jobs"]
        for name, n in (("write", WRITES * second), ("read", READS * (second - 1))):
            bins = {"800000": n} if n else {}
            job[name] = {"io_bytes": 4096 * n, "total_ios": n, "runtime": 1000 * second if n else 0}
            job[name] |= {"clat_ns": {"mean": 8e5, "N": n, "bins": bins}, "lat_ns": {"mean": 8e5, "N": n}}
    (folder / "out.json").write_text("".join(json.dumps(document) + "\n" for document in documents))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    made = run(folder, "made", [WRITES] * SECONDS, watts=lambda t_s: 2 + 0.1 * t_s)
    load = next(event for event in table.in_full(made).data.events if event.get("step") == "load")
    mixed(made / "fio" / "load", (load["t_ns"] + 250_000_000) // 1_000_000)
    return made, lake_of(folder / "lake", made)


def test_no_second_of_a_direction_is_left_out(lake):
    rows = asked(lake[1], "SELECT * FROM second WHERE step = 'load' ORDER BY second")
    assert sum(row["write_ios"] for row in rows) == WRITES * SECONDS
    assert sum(row["read_ios"] for row in rows) == READS * (SECONDS - 1)
    assert sum(row["write_bytes"] + row["read_bytes"] for row in rows) == 4096 * (5000 + 180)
    assert [row["read_ios"] for row in rows] == [0] + [READS] * 9  # each in the second that it lies in
    assert rows[0]["read_lat_mean_ns"] is None and rows[1]["read_lat_mean_ns"] > 0


def test_both_are_on_the_report_s_grid(lake):
    data = table.in_full(lake[0]).data
    rows = asked(lake[1], "SELECT * FROM second WHERE step = 'load' ORDER BY second")
    assert [row["read_ios"] + row["write_ios"] for row in rows][: len(data.iops)] == data.iops.tolist()
    assert [row["energy_J"] for row in rows][: len(data.iops)] == data.energy_J.tolist()
    assert rows[0]["t_ns"] == data.t0_ns and len(rows) == SECONDS == len(data.iops)
    assert synthetic_run.T_RUN_NS < data.t0_ns
