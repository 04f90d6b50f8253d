"""A retention test on the SIMULATED drive in model time: written, kept, aged without power, and read by another one.
What the host finds is held against the drive's own truth."""

import numpy as np
import pytest

from selfcheck.modeltime import Host, Model
from ssdrig.base.overprovisioning import MIB
from ssdrig.plan.kinds import retention_layout as layouts
from ssdrig.retention import passes, reading, writing
from ssdrig.virtual.device import persistence
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash import ageing, charge_loss, ftl
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import SATA_TLC

RUN, SIZE, S = 9, 128 * MIB, 1_000_000_000
LAYOUT = layouts.make(4096, SIZE, SIZE)
KEPT = layouts.of_kinds(LAYOUT, layouts.KEPT)
HOST = Host(0.0, 0.0, 1)
PAGES = 32  # of a command
pytestmark = pytest.mark.slow


def device(folder=None) -> Device:
    """A new one, or that which is kept there."""
    ring = np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
    ring[:, 1] = 0
    how = {"ring": ring, "latency": True}
    drive = (
        VirtualDrive.load(folder / "flash.npz", **how) if folder else VirtualDrive(SATA_TLC, capacity_bytes=SIZE, **how)
    )
    made = Device(SATA_TLC, drive, SIZE, "sparse", 0, ring, latency=True)
    if folder:
        persistence.restore(made, folder)
    return made


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """{wear: folder of a kept drive} of one that was written, and its baseline."""
    made = device()
    model = Model(made, 1, host=HOST)
    writing.write(model, LAYOUT, RUN, 1)
    read = reading.pieces(model, LAYOUT, RUN, layouts.of_kinds(LAYOUT, (layouts.BASELINE,)))
    baseline = passes.middle([passes.piece(piece) for piece in read])
    folder, units = tmp_path_factory.mktemp("kept"), made.drive.blk
    chance = np.random.default_rng(1)
    for wear, share in (("full", 1.0), ("mixed", chance.uniform(0.05, 1.0, len(units)))):
        units[:, ftl.PE] = np.round(share * made.drive.preset.rated_pe_cycles)
        persistence.save(made, folder / wear)
    made.close()
    return folder, baseline


def judge(model, baseline) -> dict:
    reading.copies(model, SIZE)  # as verifying does: the first read wakes a drive
    pieces = list(reading.pieces(model, LAYOUT, RUN, KEPT))
    bad = passes.runs(np.concatenate([piece.bad for piece in pieces]))
    return passes.judge(LAYOUT, [passes.piece(piece) for piece in pieces], bad, baseline)


def verified(folder, baseline):
    """(the pass over what is kept there, levels of its pages by the drive's truth, the pass after a rest)."""
    again = device(folder)
    levels, model = ageing.levels(again.drive), Model(again, 2, host=HOST)
    first = judge(model, baseline)
    for _ in range(600 if first["slow"] else 0):
        model.pause(S // 10)
    second = judge(model, baseline)
    again.close()
    return first, levels, second


def bad_of(judged) -> set[int]:
    assert set(judged["classes"]) <= {"UNREADABLE"}
    return {first + i for first, n, _ in judged["bad_runs"] for i in range(n)}


def judged_pages() -> np.ndarray:
    rows = layouts.commands(LAYOUT, KEPT, PAGES * 4096)
    return (rows[:, :1] // 4096 + np.arange(PAGES)).reshape(-1)


def test_worn_out_it_holds_for_the_time_of_its_class_and_not_for_three(sealed):
    folder, baseline = sealed
    judged, levels, _ = verified(folder / "full", baseline)
    assert judged["bad"] == 0 and judged["slow"] == [] and judged["slowdown"] == pytest.approx(1, rel=0.05)
    hours = charge_loss.class_hours("client")
    persistence.age(folder / "full", [(hours, 30)])
    judged, levels, _ = verified(folder / "full", baseline)
    assert judged["bad"] == 0 and judged["slowdown"] > 1.2
    persistence.age(folder / "full", [(2 * hours, 30)])
    judged, levels, _ = verified(folder / "full", baseline)
    pages = judged_pages()
    assert bad_of(judged) == set(pages[levels[pages] == charge_loss.UNREADABLE].tolist()) and judged["bad"] > 20


def slow_by_truth(folder, fresh_us: float) -> set[int]:
    """The pieces whose P99 is that of the drive's own model, asked without a host."""
    drive = VirtualDrive.load(folder / "flash.npz")
    t, out = S, set()
    for piece in KEPT:
        took = []
        for at, _, _ in layouts.commands(LAYOUT, [piece], PAGES * 4096):
            end = int(drive.submit([0], [at // 4096], [PAGES], [0], t)[0])
            took.append((end - t) / 1000)
            t = end + 10_000
        if took and np.percentile(took, 99, method="higher") >= passes.SLOW * fresh_us:
            out.add(piece)
    return out


def test_slow_pieces_are_those_of_the_truth(sealed, tmp_path):
    folder, baseline = sealed
    persistence.age(folder / "mixed", [(1.2 * charge_loss.class_hours("client"), 30)])
    judged, _, second = verified(folder / "mixed", baseline)
    truth, seen = slow_by_truth(folder / "mixed", baseline["p99_us"]), set(judged["slow"])
    assert 5 < len(truth) < len(KEPT) - 5
    assert len(truth & seen) >= 0.95 * len(truth | seen)
    assert (
        second["slow"] == [] and second["slowdown"] < 1.1 < judged["slowdown"] and second["bad"] == judged["bad"] == 0
    )
