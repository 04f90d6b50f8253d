"""What a drive promises, and what the kernel lets be tested of it."""

import pytest

from selfcheck.powerloss_scenes import KEPT, pages
from ssdrig.base.errors import DriveError
from ssdrig.plan.kinds import cut_aims
from ssdrig.powerloss import promise
from ssdrig.powerloss.promise import ACK, FLUSH

QUEUE = {"write_cache": "write back", "max_sectors_kb": "1280", "max_segments": "127", "nomerges": "2"}


@pytest.mark.parametrize(
    "vwc, cache_on, claimed, mode, own",
    [
        (1, True, False, FLUSH, True),
        (1, None, False, FLUSH, True),  # not known: nothing is promised that might not be
        (1, False, False, ACK, True),
        (0, None, False, ACK, True),
        (0, True, True, ACK, True),
        (1, True, True, ACK, False),
        (6, True, False, ACK, True),  # bits 2:1 say which namespaces a FLUSH reaches
    ],
)
def test_when_an_acknowledgement_is_a_promise(vwc, cache_on, claimed, mode, own):
    promise_ = promise.nvme(*pages(vwc=vwc), cache_on, claimed)
    assert (promise_.mode, promise_.own) == (mode, own)
    assert ("claims" in promise_.why) is not own


def test_the_atomic_limit_is_counted_from_0():
    promise_ = promise.nvme(*pages(nawupf=7, nabspf=15), True)
    assert promise_[:7] == KEPT[:7] and (promise_.atomic_blocks, promise_.boundary_blocks) == (8, 16)
    assert promise.nvme(*pages(nawupf=0, nabspf=0), True)[2:5] == (4, 0, 0)  # 0h: as the controller's
    assert promise.nvme(*pages(nawupf=0, nabspf=15), True)[2:5] == (4, 16, 0)
    assert promise.nvme(*pages(nsfeat=0), True)[2:5] == (4, 0, 0)  # AWUPF of the controller
    id_ctrl, id_ns = pages()
    moved = id_ns[:42] + (4).to_bytes(2, "little") + id_ns[44:]
    assert promise.nvme(id_ctrl, moved, True).boundary_offset == 4


def words(**put):
    out = [0] * 256
    for at, value in {"w83": 1 << 14, "w82": 1 << 5, "w85": 1 << 5, **put}.items():
        out[int(at[1:])] = value
    return out


@pytest.mark.parametrize(
    "put, mode",
    [
        ({}, FLUSH),
        ({"w85": 0}, ACK),
        ({"w82": 0, "w85": 0}, ACK),
        ({"w83": 0, "w82": 0, "w85": 0}, FLUSH),  # nothing said
        ({"w83": 0xFFFF, "w85": 0}, FLUSH),
    ],
)
def test_the_cache_of_an_ata_drive(put, mode):
    promise_ = promise.ata(words(**put))
    assert (promise_.mode, promise_.block_bytes, promise_.atomic_blocks, promise_.after_trim) == (mode, 512, 1, None)


def test_blocks_and_trim_of_an_ata_drive():
    promise_ = promise.ata(words(w106=0x5000, w117=2048, w69=1 << 14 | 1 << 5, w169=1))
    assert (promise_.block_bytes, promise_.after_trim) == (4096, "zeros")
    assert promise.ata(words(w69=1 << 5, w169=1)).after_trim is None  # not deterministic
    assert promise.ata(words(), claimed=True).own is False
    with pytest.raises(DriveError, match="256 words"):
        promise.ata([0] * 255)


def test_what_the_kernel_splits_or_merges_is_not_atomic():
    assert promise.heard(KEPT, QUEUE) == KEPT
    assert promise.heard(KEPT, QUEUE | {"max_sectors_kb": "16"}).atomic_blocks == 4
    assert promise.heard(KEPT, QUEUE | {"max_segments": "4"}).atomic_blocks == 4
    assert promise.heard(KEPT._replace(atomic_blocks=256), QUEUE).atomic_blocks == 127
    assert promise.heard(KEPT, {**QUEUE, "max_segments": ""}).atomic_blocks == 1
    assert promise.heard(KEPT, QUEUE | {"nomerges": "0"}).atomic_blocks == 1
    assert promise.heard(KEPT, {"write_cache": "write back"}).atomic_blocks == 1


@pytest.mark.parametrize(
    ("boundary", "offset", "chunk_sectors", "left"),
    [
        (16, 0, 0, (8, 16, 0)),
        (0, 0, 256, (8, 32, 0)),  # the kernel splits at each 128 KiB
        (64, 0, 256, (8, 32, 0)),
        (16, 0, 256, (8, 16, 0)),  # what is whole for the drive is for the kernel
        (16, 8, 256, (1, 16, 8)),
        (48, 0, 256, (1, 48, 0)),
        (0, 0, 12, (1, 0, 0)),
    ],
)
def test_what_the_kernel_splits_at_its_own_boundary_is_not_atomic(boundary, offset, chunk_sectors, left):
    promise_ = KEPT._replace(boundary_blocks=boundary, boundary_offset=offset)
    assert promise.heard(promise_, QUEUE | {"chunk_sectors": f"{chunk_sectors}"})[2:5] == left


def test_a_kernel_that_drops_flushes_is_refused():
    with pytest.raises(DriveError, match="write through"):
        promise.heard(KEPT, QUEUE | {"write_cache": "write through"})
    assert promise.heard(KEPT._replace(mode=ACK), QUEUE | {"write_cache": "write through"}).mode == ACK


@pytest.mark.parametrize(("fua", "sent"), [("1", True), ("0", False), ("", True)])
def test_where_the_kernel_sends_no_fua_the_promise_is_of_flush(fua, sent):
    """libata sends FUA to no SATA drive unless libata.fua=1: RWF_DSYNC is a write and a FLUSH behind it there."""
    promise_ = promise.heard(promise.ata(words()), {**QUEUE, "fua": fua})
    assert promise_.fua is sent and ("FLUSH or FUA" in promise_.why) is sent
    assert cut_aims.without_fua({"fua": 2, "fua:-1..1": 1, "flush": 1, "random": 3}) == {
        "flush": 3,
        "flush:-1..1": 1,
        "random": 3,
    }


@pytest.mark.parametrize(
    ("cache_type", "claimed", "mode"),
    [
        ("write back", False, FLUSH),
        ("write back, no read (daft)", False, FLUSH),
        ("write through", False, FLUSH),  # off, or the disk has no caching page: the kernel calls both so
        ("write through", True, ACK),
        ("", False, FLUSH),
    ],
)
def test_scsi_disk_promises_no_more_than_it_says(cache_type, claimed, mode):
    promise_ = promise.scsi(4096, cache_type, claimed)
    assert (promise_.mode, promise_.block_bytes, promise_.atomic_blocks, promise_.after_trim) == (mode, 4096, 1, None)
    with pytest.raises(DriveError):
        promise.heard(promise_._replace(mode=FLUSH), {**QUEUE, "write_cache": "write through"})
