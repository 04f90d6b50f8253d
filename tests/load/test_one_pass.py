"""One pass of random writes that leaves blocks as the steady state has them."""

import numpy as np
import pytest

from ssdrig.base.errors import UsageError
from ssdrig.base.overprovisioning import wa_fifo
from ssdrig.load import one_pass, traceform
from ssdrig.virtual.flash.commands import WRITE
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import ENTERPRISE_PLP, SATA_MLC, SATA_TLC

PAGES = 1 << 16
QUEUE = 64
RANGE_BYTES = PAGES * one_pass.PAGE_BYTES


@pytest.mark.parametrize("count", [2, 3, 1000, 4096, 99_991])
def test_permutation_has_each_place_once(count):
    keys = np.array([3, 5, 7, 11], np.uint64)
    assert np.array_equal(np.sort(one_pass.permuted(np.arange(count), count, keys)), np.arange(count))


@pytest.mark.parametrize("alpha", [1.07, 1.12, 1.28])
def test_each_page_is_written_and_raw_nand_once(alpha):
    order = np.concatenate(list(one_pass.pages(RANGE_BYTES, int(alpha * RANGE_BYTES), 1)))
    assert len(order) == pytest.approx(alpha * PAGES, rel=1e-4)
    assert len(np.unique(order)) == PAGES and (order.min(), order.max()) == (0, PAGES - 1)


@pytest.mark.parametrize("alpha", [1.07, 1.28])
def test_oldest_region_holds_what_the_collector_would_move(alpha):
    """In the steady state a collected block holds 1 - 1 / WA of its pages."""
    order = np.concatenate(list(one_pass.pages(RANGE_BYTES, int(alpha * RANGE_BYTES), 1)))
    last = np.full(PAGES, -1)
    last[order] = np.arange(len(order))
    held = np.bincount(last * 64 // len(order), minlength=64) / (len(order) / 64)
    age = 1 - (np.arange(64) + 0.5) / 64
    assert np.allclose(held, np.exp(-age * alpha / wa_fifo(alpha)), atol=0.04)
    assert held[0] == pytest.approx(1 - 1 / wa_fifo(alpha), abs=0.04)


def test_seeds_make_other_orders():
    one, two, same = (np.concatenate(list(one_pass.pages(1 << 22, 5 << 20, seed))) for seed in (1, 2, 1))
    assert np.array_equal(one, same) and not np.array_equal(one, two)


def test_rows_are_writes_of_a_page():
    window = next(one_pass.generate(one_pass.Asked(RANGE_BYTES, RANGE_BYTES * 9 // 8)))
    assert set(window["op"]) == {traceform.WRITE} and set(window["depth"]) == {32}
    assert not (window["offset_bytes"] % 4096).any() and set(window["length_bytes"]) == {4096}


@pytest.mark.parametrize("raw_bytes", [RANGE_BYTES, RANGE_BYTES // 2, 5 * RANGE_BYTES])
def test_impossible_raw_nand_is_refused(raw_bytes):
    with pytest.raises(UsageError):
        next(one_pass.pages(RANGE_BYTES, raw_bytes, 1))


# with its capacity in MiB. At 512 MiB enterprise-plp keeps up to half of its spare units free, and its level swings
# with their number for eight drive writes (WA 2.7 to 3.6).
TIMES_CAPACITY = {"sata-tlc": 1.14, "sata-mlc": 1.07, "enterprise-plp": 1.28}  # 1 + the spare area
NAND_MORE = 0.08  # of the raw NAND: collected at the end of the pass, most where the spare area is small
DRIVES = [(SATA_TLC, 512), (SATA_MLC, 512), (ENTERPRISE_PLP, 4096)]


@pytest.fixture(scope="module", params=DRIVES, ids=lambda drive: drive[0].name)
def cycled(request):
    """(preset, MiB, WA, IOPS) of random writes in the steady state: after filling twice and cycling four times."""
    drive = new(*request.param)
    drive.precondition("seq", 2)
    drive.precondition("random", 4)
    return *request.param, *level(drive)


def new(preset, capacity_MiB) -> VirtualDrive:
    return VirtualDrive(preset, capacity_bytes=capacity_MiB << 20)


def level(drive: VirtualDrive) -> tuple[float, float]:
    """(WA, IOPS) of the next two drive writes."""
    before, begun_ns = drive.ledger(), drive._t
    while drive.ledger()["host_write_bytes"] - before["host_write_bytes"] < 2 * drive.pages * 4096:
        drive.closed_loop(queue_depth=32, t_ns=drive._t, duration_ns=10**9)
    after = drive.ledger()
    host, nand, ios = (
        after[key] - before[key] for key in ("host_write_bytes", "nand_write_bytes", "host_write_commands")
    )
    return nand / host, ios / (drive._t - begun_ns) * 1e9


def write(drive: VirtualDrive, pages: np.ndarray, done_ns: int) -> int:
    for some in np.array_split(pages, len(pages) // QUEUE + 1):
        ones = np.ones(len(some), np.int64)
        done_ns = int(drive.submit(WRITE * ones, some, ones, 0 * ones, done_ns).max())
    return done_ns


@pytest.mark.parametrize("seed", [1, 2])
def test_level_after_one_pass_is_that_of_a_cycled_drive(cycled, seed):
    """Right from the first write on: WA and IOPS within 3 %, all NAND written once."""
    preset, capacity_MiB, *steady = cycled
    drive = new(preset, capacity_MiB)
    pages, _, raw_bytes = preset.geometry(capacity_MiB << 20)
    done_ns = 0
    for places in one_pass.pages(pages * 4096, raw_bytes, seed):
        done_ns = write(drive, places, done_ns)
    ledger = drive.ledger()
    assert ledger["host_write_bytes"] == pytest.approx(raw_bytes, rel=1e-4)
    assert ledger["host_write_bytes"] / (pages * 4096) == pytest.approx(TIMES_CAPACITY[preset.name], rel=0.005)
    assert 1 <= ledger["nand_write_bytes"] / raw_bytes <= 1 + NAND_MORE
    assert level(drive) == pytest.approx(steady, rel=0.03)


def test_fewer_writes_than_the_raw_nand_leave_a_drive_that_has_collected_nothing():
    """So no pass is shorter: as long as a drive has free blocks, its writes are not amplified."""
    preset, capacity_MiB = ENTERPRISE_PLP, 4096
    drive, (pages, _, raw_bytes) = new(preset, capacity_MiB), preset.geometry(capacity_MiB << 20)
    done_ns = 0
    for places in one_pass.pages(pages * 4096, raw_bytes, 1):
        done_ns = write(drive, places, done_ns)
        ledger = drive.ledger()
        if ledger["host_write_bytes"] > 0.99 * raw_bytes:
            break
        assert ledger["nand_write_bytes"] <= ledger["host_write_bytes"]
    assert 0.99 * raw_bytes > 1.26 * pages * 4096
