"""What a row of the page's stream is of: a second of drive time, also of a drive whose clock is dilated."""

import json

import numpy as np
import pytest
import synthetic_run
from growing_run import Growing
from test_browser_tail import all_of

from ssdrig.load import fiotext
from ssdrig.meter import samples
from ssdrig.reading.live_load import ROW_BINS, Load
from ssdrig.serve.tail import HEATS, Place, Tail, place

K = 10


@pytest.fixture(scope="module")
def dilated(tmp_path_factory):
    how = {
        "watts": ((-100.0, 4.0), (0.0, 3.0)),
        "zoom_s": 2,
        "dilation": K,
        "smart_every_s": 2,
        "fill_s": 10,
        "logs": False,
    }
    return synthetic_run.write(tmp_path_factory.mktemp("dilated"), [500] * 15 + [900] * 20, **how)


def test_a_second_of_a_dilated_drive_is_one_row(dilated):
    """Ten seconds of the host: power, energy and I/O of the tenth had been taken for all of it."""
    rows, _ = all_of(Tail(dilated))
    power, whole = samples.load(dilated), rows["seconds"][1:-1]
    first_ns = int(power.t_ns[0]) // samples.SECOND_NS * samples.SECOND_NS
    assert np.diff([row[0] for row in whole]) == pytest.approx(1, abs=1e-5) and len(whole) > 2
    assert [row[4] for row in whole] == pytest.approx([row[2] for row in whole], rel=2e-3)  # J = W x 1 s
    assert sum(row[4] for row in rows["seconds"]) == pytest.approx(
        samples.per_second(power, first_ns, 60).energy_J.sum() / K, rel=1e-3
    )
    load = [row for row in rows["load"] if row[1] == "load"]
    assert [row[2] for row in load] == [500 * K, 700 * K, 900 * K, 900 * K]
    assert np.diff([row[0] for row in load[:3]]) == pytest.approx(1, abs=0.01)
    assert {row[4] for row in load} == {800 / K}


@pytest.mark.slow
def test_pieces_of_a_dilated_drive_come_to_the_same(dilated, tmp_path):
    growing, at, seen = Growing(dilated, tmp_path / "runs"), Place(), {}
    tail = Tail(growing.folder)
    for n, t_ns in enumerate(np.linspace(growing.began_ns, growing.end_ns, 17).astype(int).tolist()):
        growing.to(t_ns)
        if n % 4 == 0:
            tail, at = Tail(growing.folder), place(str(at))
        rows, at = all_of(tail, at)
        for name in ("seconds", "load"):
            seen.setdefault(name, []).extend(rows.get(name, []))
    growing.end()
    rest, at = all_of(Tail(growing.folder), at)
    once, end = all_of(Tail(growing.folder))
    assert end == at and all(seen[name] + rest.get(name, []) == once[name] for name in seen)


def test_latencies_of_a_dilated_drive_are_of_its_time(tmp_path):
    lines = []
    for s in range(1, 26):
        lat = {"mean": 9e5, "N": 2000 * s, **({"bins": {"900000": 2000 * s}} if s not in (10, 20) else {})}
        job = {"io_bytes": 0, "total_ios": 2000 * s, "runtime": 1000 * s, "lat_ns": lat, "clat_ns": lat}
        lines.append(json.dumps({"t_ns": s * 10**9, "jobs": [{"jobname": "x", "error": 0, "write": job}]}) + "\n")
    (tmp_path / "out.json").write_text("".join(lines))
    load = Load(tmp_path / "out.json", K)
    rows = [*load.rows(), *load.rest()]
    assert [(row["iops"], row["span_s"]) for row in rows] == [(2000, 10), (2000, 10), (2000, 5)]
    assert [row["p99_us"] for row in rows] == pytest.approx([90] * 3, rel=0.02)
    assert [(sum(n for _, n in row["heat"]), row["heat_s"]) for row in rows] == [(18000, 9), (20000, 10), (12000, 6)]
    assert {at for row in rows for at, _ in row["heat"]} == {int(fiotext.plat_index(90_000)) // ROW_BINS}


@pytest.mark.parametrize(("ms", "wanted"), [([1000, 2000, 2013], [100] * 2), ([300], [100]), ([1000, 1600], [100] * 2)])
def test_a_document_that_follows_at_once_is_no_second(tmp_path, ms, wanted):
    """fio's last one had taken the place of a second: of I/Os of 13 ms, their rate and latencies."""
    line = (
        '{"t_ns": %d, "jobs": [{"jobname": "x", "error": 0, "write": {"io_bytes": 0, "total_ios": %d, "runtime": %d}}]}'
    )
    (tmp_path / "out.json").write_text("".join(line % (at * 10**6, at // 10, at) + "\n" for at in ms))
    load = Load(tmp_path / "out.json")
    rows = [*load.rows(), *load.rest()]
    assert [row["iops"] for row in rows] == pytest.approx(wanted, abs=1) and load.rest() == []


def test_a_played_trace_of_a_dilated_drive_has_a_row_a_second(tmp_path):
    lines = [{"t_ns": (n + 1) * 10**9, "span_s": 1.0, "iops": 10 * n, "bw_bytes": 0} for n in range(15)]
    (tmp_path / "out.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    load = Load(tmp_path / "out.json", K)
    assert [(row["iops"], row["span_s"]) for row in load.rows()] == [(45, 10)]
    assert [(row["iops"], row["span_s"]) for row in load.rest()] == [(120, 5)] and load.rest() == []


def test_a_row_says_latencies_to_a_tenth_and_the_last_ones_keep_theirs(dilated):
    tail, read = Tail(dilated), {"t_ns": 0, "iops": 5.0, "bw": 9.0, "lat_us": 1.26, "p99_us": 2.0, "heat_s": 1.0}
    for n in (HEATS, 1, 5):
        tail._add("load", [read | {"heat": [[3, 1]]} for _ in range(n)])
    assert [row[6] != [] for row in tail._rows] == [False] * 6 + [True] * HEATS
    assert {(*row[2:6],) for row in tail._rows} == {(5 * K, 9 * K, 1.3, 2.0)}
