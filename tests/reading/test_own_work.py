"""Write amplification of loads before and after which the drive works on its own, against its ledger, in model time:
what it wrote between a SMART reading and the load is within the stated error."""

import random
from dataclasses import replace

import numpy as np
import pytest
from model_runs import SECOND_NS, ModelRun
from test_analysis_events import run

from ssdrig.reading import own_work, table
from ssdrig.reading.rundata import OwnWork
from ssdrig.virtual.flash.presets import NVME_TLC, SATA_TLC

COVERED = 0.95
# with small GC units, which begin to collect or fold at once when nothing is asked of them
DRIVES = {
    "sata": replace(SATA_TLC, idle_gc_share=0.9, idle_ns=100_000_000),
    "nvme with SLC": replace(NVME_TLC, slc_blocks=24, block_pages=96, op=0.15, idle_gc_share=0.6, idle_ns=100_000_000),
    "slow to begin": replace(SATA_TLC, idle_gc_share=0.9),
}


def off(folder, drive: str, seed: int) -> list[float | None]:
    """For each point of mix-sweep that wrote, in random order, with rests of random length around it: how far its write
    amplification is off, in units of its stated error; None: it has none."""
    dice, made = random.Random(seed), ModelRun(folder, "mix-sweep", preset=DRIVES[drive], seed=seed)
    made.model.precondition("seq", 1.0)
    made.model.precondition("random", dice.uniform(0.5, 2.0), seed=seed)
    labels = [label for label, act in made.acts.items() if act.path == "mix" and act.keys["read"] in (0, 60)]
    dice.shuffle(labels)
    labels.sort(key=lambda label: "read=0" not in label)  # the run has to see how fast the drive can write
    made.smart("before")
    for label in labels:
        gap_ns = round(SECOND_NS * dice.uniform(0.1, 1.2))
        made.rests(gap_ns)
        made.point(label, dice.choice((8, 12, 16)), gap_ns=gap_ns, rested=True)
        made.rests(late_ns := round(SECOND_NS * dice.choice((0.05, 0.3))))
        made.t_ns += late_ns
        made.smart("after")
    out = []
    for row in table.load(made.end()).of("mix"):
        if truth := made.truth.get((row.act.label, None)):
            seen, error = row.value("wa"), row.windows["all"]["wa_error"]
            out.append(None if seen is None else abs(seen - truth.nand_bytes / truth.host_bytes) / error)
    return out


@pytest.mark.parametrize("drive", DRIVES)
def test_work_before_a_load_is_within_the_error(tmp_path, drive):
    known = [ratio for ratio in off(tmp_path, drive, 4) if ratio is not None]
    assert len(known) >= 3 and max(known) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("drive", DRIVES)
def test_of_many_loads_nearly_all_are_within_their_error(tmp_path, drive):
    ratios = [ratio for seed in range(6) for ratio in off(tmp_path / str(seed), drive, seed)]
    known = [ratio for ratio in ratios if ratio is not None]
    print(f"{drive}: {len(known)} of {len(ratios)} known, worst {max(known):.2f} of the error")
    assert len(known) > 0.8 * len(ratios)
    assert sum(ratio <= 1 for ratio in known) >= COVERED * len(known)


def polls(*rows):
    """Readings of (s, host bytes, NAND bytes)."""
    return [
        {"t_ns": round(t_s * SECOND_NS), "host_written_bytes": host, "nand_written_bytes": nand}
        for t_s, host, nand in rows
    ]


def test_most_is_the_highest_rate_seen_times_the_time():
    of = own_work.of_run(polls((0, 0, 0), (2, 10, 100), (3, 20, 130), (5, 20, 20)), [], 1)
    assert of == OwnWork("nand_written_bytes", 50, 0, 0) and (of.most(0.5), of.most(-1)) == (25, 0)


@pytest.mark.parametrize(
    ("depth", "directions", "most"), [(32, ("write",), 50), (None, ("write",), 700), (32, ("read", "write"), 700)]
)
def test_only_a_load_at_full_speed_shows_the_nands_rate(depth, directions, most):
    """A second of the fill had 700 a second; the load, 50 by the NAND's counter."""
    fill, load = run([], t0_ns=-20 * SECOND_NS), run([], t0_ns=0)
    fill.bw_Bps, fill.load_s = np.array([700.0]), 1.0
    load.header = {**load.header, "method": {"queue_depth": depth}}
    load.load_s, load.totals = 10.0, {"directions": directions}
    of = own_work.of_run(polls((-1, 0, 0), (9, 100, 500), (12, 110, 510)), [fill, load], 1)
    assert of.most_per_s == most


def test_most_of_a_drive_that_counts_pages_is_in_pages():
    of = own_work.of_run([{"t_ns": t * SECOND_NS, "nand_program_pages": 7 * t} for t in (0, 1)], [], 1)
    assert of.counter == "nand_program_pages" and of.most_per_s == 8


def test_a_dilated_drive_has_rates_in_its_own_seconds():
    assert own_work.of_run(polls((0, 0, 0), (10, 1, 50)), [], 10).most_per_s == 50


@pytest.mark.parametrize(("seconds", "most"), [(1.0, 40), (1.1, 110)])
def test_enough_rests_bound_the_next_one(seconds, most):
    """19 s of rest: 19 times 1 s, and not 19 times 1.1 s."""
    of = own_work.of_run(polls((0, 0, 0), (1, 100, 100), (10, 100, 140), (20, 100, 150)), [], 1)
    assert (of.rest_s, of.most_in_rest) == (19, 40) and of.most(seconds) == pytest.approx(most)
