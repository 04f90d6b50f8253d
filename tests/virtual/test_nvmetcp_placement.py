"""Data placement of the virtual drive over NVMe/TCP: its pages, its handles, writes by handle, events."""

import struct

import pytest
from nvmetcp_initiator import IN_CAPSULE, sqe
from nvmetcp_serving import host_of, number, refused
from serving import Serving, forked

from ssdrig.base import nvme_fdp
from ssdrig.drive.smart import nvme_pages

HANDLES, UNIT_BYTES, BLOCK = 3, 384 * 4096, 512  # of the preset nvme-tlc
NOT_FILLED, INVALID_ID = 0x00, 0x03


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    words = ("--preset", "nvme-tlc", "--capacity", "512MiB", "--no-latency", "--nvme-tcp", "127.0.0.1:0")
    server = Serving(tmp_path_factory.mktemp("placed"), *words, "--placement-handles", str(HANDLES))
    yield server
    server.end()


@pytest.fixture
def host(placed):
    with host_of(placed, 1) as it:
        yield it


def log(host, lid, length, lsp=0):
    words = {"cdw10": lid | lsp << 8 | (length // 4 - 1) << 16, "cdw11": 1 << 16}
    return host.admin.admin(0x02, nsid=0xFFFFFFFF, length=length, **words)[1]


def left_blocks(host):
    """Of each placement handle, what can still be written to its unit."""
    queue = host.io[0]
    answer = queue.run(sqe(0x12, queue.cid(), 1, cdw10=1, cdw11=1023, length=4096))[1]
    rows = nvme_fdp.decode_status(answer)
    assert [(row.placement_id, row.handle) for row in rows] == [(n, n) for n in range(HANDLES)]
    return [row.left_blocks for row in rows]


def write(host, blocks, placement_id=None, sgl=IN_CAPSULE):
    """Writes blocks from 0 on, by a handle or by none."""
    queue, data = host.io[0], b"p" * BLOCK * blocks
    directive = {} if placement_id is None else {"cdw13": placement_id << 16}
    control = blocks - 1 | (0 if placement_id is None else 2 << 20)
    queue.run(sqe(0x01, queue.cid(), 1, cdw12=control, length=len(data), sgl=sgl, **directive), data)


def update(host, *ids):
    data = struct.pack(f"<{len(ids)}H", *ids)
    queue = host.io[0]
    queue.run(sqe(0x1D, queue.cid(), 1, cdw10=1 | (len(ids) - 1) << 16, length=len(data), sgl=IN_CAPSULE), data)


def ask(host, handle, kinds, on=True):
    admin = host.admin
    words = {"cdw10": 0x1E, "cdw11": handle | len(kinds) << 16, "cdw12": int(on), "length": 255, "sgl": IN_CAPSULE}
    admin.run(sqe(0x09, admin.cid(), 1, **words), bytes(kinds).ljust(255, b"\0"))


def test_configuration_and_use(host):
    assert number(host.admin.identify(1), 96, 99) >> 19 & 1 == 1
    (configuration,) = nvme_fdp.decode_20h(log(host, 0x20, 4096))
    assert configuration == (True, 0, 1, ("initially isolated",) * HANDLES, HANDLES, 1, UNIT_BYTES)
    assert nvme_fdp.decode_21h(log(host, 0x21, 64)) == ["host"] * HANDLES
    assert host.admin.admin(0x0A, cdw10=0x1D, cdw11=1)[0] == 1
    refused(0x002, host.admin.admin, 0x0A, cdw10=0x1D, cdw11=2)
    refused(0x00C, host.admin.admin, 0x09, cdw10=0x1D, cdw11=1, cdw12=0)
    refused(0x002, host.admin.log, 0x22, 64, lsi=0)


def test_statistics_are_the_ledgers(placed, host):
    before = nvme_pages.decode_22h(log(host, 0x22, 64))
    write(host, 16)
    write(host, 64, placement_id=2, sgl=0x5A)
    after, ledger = nvme_pages.decode_22h(log(host, 0x22, 64)), placed.truth(op="ledger")
    assert after["host_written_bytes"] - before["host_written_bytes"] == 80 * BLOCK
    assert after["host_written_bytes"] == ledger["host_write_bytes"]
    assert after["nand_written_bytes"] == ledger["nand_write_bytes"]
    assert after["media_erased_bytes"] == ledger["erases"] * UNIT_BYTES


def test_a_write_fills_the_unit_of_the_handle_that_it_names(host):
    update(host, *range(HANDLES))
    whole = UNIT_BYTES // BLOCK
    assert left_blocks(host) == [whole] * HANDLES
    write(host, 8)
    write(host, 16, placement_id=1)
    write(host, 64, placement_id=2, sgl=0x5A)
    assert left_blocks(host) == [whole - 8, whole - 16, whole - 64]
    write(host, 8, placement_id=HANDLES)  # one that there is not: the first
    assert left_blocks(host) == [whole - 16, whole - 16, whole - 64]
    update(host, 2)
    assert left_blocks(host) == [whole - 16, whole - 16, whole]
    refused(0x002, update, host, 1, HANDLES)
    host.admin.admin(0x80, nsid=1)  # Format NVM
    assert left_blocks(host) == [whole] * HANDLES


def test_events_are_those_that_were_asked_for(host):
    update(host, 0, 1)
    before = len(nvme_fdp.decode_23h(log(host, 0x23, 4096, lsp=1)))
    write(host, 8)
    update(host, 0)
    ask(host, 0, [NOT_FILLED, INVALID_ID])
    assert host.admin.admin(0x0A, nsid=1, cdw10=0x1E, cdw11=0, length=4) == (2, bytes([NOT_FILLED, 1, INVALID_ID, 1]))
    write(host, 8)
    update(host, 0, 0)  # the second leaves an empty unit
    write(host, 8, placement_id=9)
    ask(host, 0, [NOT_FILLED], on=False)
    update(host, 0)
    rows = nvme_fdp.decode_23h(log(host, 0x23, 4096, lsp=1))[before:]
    known = [(row["event"], row["placement_id"], row["namespace"], row["group"], row["handle"]) for row in rows]
    assert known == [("unit_not_filled", 0, 1, 0, 0), ("invalid_placement_id", 9, 1, 0, 0)]
    assert nvme_fdp.decode_23h(log(host, 0x23, 4096)) == []  # the controller's
    refused(0x002, ask, host, HANDLES, [NOT_FILLED])


@pytest.mark.parametrize(("kind", "code"), [(1, 0x002), (2, 0x000), (3, 0x002)])
def test_other_directives_are_refused(host, kind, code):
    queue = host.io[0]
    command = sqe(0x01, queue.cid(), 1, cdw12=7 | kind << 20, length=4096, sgl=IN_CAPSULE)
    if code:
        refused(code, queue.run, command, bytes(4096))
    else:
        queue.run(command, bytes(4096))


def test_other_management_is_refused(host):
    queue = host.io[0]
    refused(0x002, queue.run, sqe(0x12, queue.cid(), 1, cdw10=2, cdw11=3, length=16))
    refused(0x00F, queue.run, sqe(0x12, queue.cid(), 1, cdw10=1, cdw11=1023, length=16))
    refused(0x002, queue.run, sqe(0x1D, queue.cid(), 1, cdw10=0, length=2, sgl=IN_CAPSULE), bytes(2))


def test_a_drive_without_has_none_of_it(tmp_path):
    server = Serving(
        tmp_path, "--preset", "sata-tlc", "--capacity", "256MiB", "--no-latency", "--nvme-tcp", "127.0.0.1:0"
    )
    try:
        with host_of(server, 1) as host:
            queue = host.io[0]
            assert number(host.admin.identify(1), 96, 99) >> 19 == 0
            refused(0x109, host.admin.log, 0x22, 64, lsi=1)
            refused(0x002, host.admin.admin, 0x0A, cdw10=0x1D, cdw11=1)
            refused(0x001, queue.run, sqe(0x12, queue.cid(), 1, cdw10=1, cdw11=3, length=16))
            refused(
                0x002, queue.run, sqe(0x01, queue.cid(), 1, cdw12=7 | 2 << 20, length=4096, sgl=IN_CAPSULE), bytes(4096)
            )
    finally:
        server.end()


@pytest.mark.parametrize(
    "words", [("--placement-handles", "2"), ("--placement-handles", "9", "--nvme-tcp", "127.0.0.1:0")]
)
def test_handles_that_cannot_be_offered_are_refused(tmp_path, words):
    assert forked(tmp_path, "--preset", "sata-tlc", "--socket", str(tmp_path / "x"), *words).returncode == 2
