"""What the analysis says of each cell of a matrix, against the ledger of the virtual drive that did the I/O, in model
time: IOPS, W, write amplification within its error bar, Little's check. And the steady state of pts-wsat against what
the same drive does in a long load behind it."""

from dataclasses import replace

import pytest
from model_runs import ModelRun

from ssdrig.reading import gaps, little, table
from ssdrig.virtual.flash.presets import SATA_TLC

SECONDS = 6
BAR = 0.02  # of steady IOPS
START_NS = 300_000_000  # until fio has begun


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """mix-sweep: 11 shares of reads by 1 and 4 threads, of a drive in steady state."""
    made = ModelRun(tmp_path_factory.mktemp("model"), "mix-sweep", time=f"{SECONDS} s")
    made.model.precondition("seq", 1.0)
    made.model.precondition("random", 3.0)
    made.smart("before")
    for label in [label for label, act in made.acts.items() if act.path == "mix"]:
        made.point(label, SECONDS)
        made.smart("after")
    return made, table.load(made.end())


@pytest.mark.slow
def test_every_cell_is_as_the_ledger_has_it(cells):
    made, table_ = cells
    rows = table_.of("mix")
    assert len(rows) == 22
    for row in rows:
        truth, label = made.truth[row.act.label, None], row.act.label
        assert row.value("iops") == pytest.approx(truth.ios / SECONDS, rel=1e-6), label
        assert row.value("W") == pytest.approx(truth.joules / SECONDS, rel=0.005), label
        seen, error = row.value("wa"), row.windows["all"]["wa_error"]
        if not truth.host_bytes:
            assert seen is None and row.why_not("wa"), label
            continue
        if row.act.keys["read"] == 0:  # the others write too little to exclude the drive's own work next to them
            assert error <= 0.05 * seen, label
        assert seen is None or abs(seen - truth.nand_bytes / truth.host_bytes) <= error, label


def test_littles_check_holds_in_every_cell(cells):
    """Latencies and counts are the model's, each by itself."""
    loads = little.loads(cells[1].rows)
    assert len(little.checked(loads)) == 22 and little.beyond(loads) == []


@pytest.mark.slow
def test_points_of_a_minute_behind_others_are_steady(tmp_path):
    """4 KiB writes of pts-iops, each time behind 8 KiB writes and the pause until fio has begun, in which the drive
    frees blocks: of a minute they are within 2 % of a long load, of two seconds (quick) they are not."""
    made = ModelRun(tmp_path, "pts-iops", preset=replace(SATA_TLC, block_pages=48, gc_high=8))
    made.model.precondition("seq", 1.0)
    made.model.precondition("random", 2.0)
    for number, seconds in enumerate((2, 2, 2, 60, 60), 1):
        for block in ("8KiB", "4KiB"):
            made.point(f"rounds/point read=0 block={block}", seconds, number, START_NS)
    long, _ = made.carried_out(made.acts["rounds/point read=0 block=4KiB"].keys, 30)
    of_4KiB = [row for row in table.load(made.end()).of("rounds/point") if row.act.point["block"] == "4 KiB"]
    off = [row.value("iops") / (long.ios / 30) - 1 for row in of_4KiB]
    assert max(map(abs, off[3:])) < BAR < min(off[:3])
    (gap,) = gaps.of_rows([row for row in of_4KiB if row.windows["all"]["t1_s"] < 60])
    assert max(off[:3]) < gap.more_percent / 100


def test_steady_iops_are_the_models(tmp_path):
    """pts-wsat from a purged drive on: its last fifth against a long load of the same drive behind it. Small GC units,
    whose collector reaches its mean within seconds (as in selfcheck/resume.py)."""
    made = ModelRun(tmp_path, "pts-wsat", preset=replace(SATA_TLC, block_pages=48, gc_high=8))
    made.smart("before")
    made.point("wsat", 60)
    made.smart("after")
    put, truth = made.carried_out(made.acts["wsat"].keys, 60)
    (row,) = table.load(made.end()).of("wsat")
    steady = row.windows["end"]
    assert steady["iops_mean"] == pytest.approx(put.ios / 60, rel=BAR)
    assert steady["energy_uJ_per_io"] == pytest.approx(1e6 * truth.joules / truth.ios, rel=BAR)
