"""Admin and I/O commands of the virtual drive over NVMe/TCP, bytes at the offsets of the specification (NVM Express
Base 1.4)."""

import os
import struct
import time

import pytest
from nvmetcp_initiator import DNR, HOSTNQN, IN_CAPSULE, TRANSPORT, NvmeError, Terminated, capsule, rw, sqe
from nvmetcp_serving import host, host_of, number, refused, shared  # noqa: F401  fixtures
from serving import PATIENCE_S, serving  # noqa: F401  fixture

# --- identify


@pytest.mark.slow
def test_identify_controller(shared, host):
    page = host.admin.identify(1)
    assert len(page) == 4096
    assert page[4:24].decode().rstrip() == shared.ready["serial"]
    assert page[24:64].decode().rstrip() == "SIMULATED SATA TLC 240 GB"
    assert page[64:72] == b"SIM1.0  "
    assert page[77] == 7  # MDTS: 128 pages of 4 KiB
    assert number(page, 78, 79) == host.admin.cntlid and number(page, 80, 83) == 0x10400
    assert number(page, 96, 99) == 0b10001 and page[111] == 1
    assert number(page, 256, 257) == 2 and page[259] == 3 and page[261] == 7 and page[262] == 63 and page[263] == 1
    assert (number(page, 266, 267), number(page, 268, 269)) == (343, 353)
    assert number(page, 280, 295) == 1 << 30 and number(page, 296, 311) == 0
    assert number(page, 320, 321) == 10 and number(page, 328, 331) == 0x60000003 and number(page, 340, 341) == 1
    assert (page[512], page[513], number(page, 516, 519), number(page, 520, 521)) == (0x66, 0x44, 1, 0x0C)
    assert (page[524], page[525]) == (4, 7)  # crypto erase; volatile cache, flush of all namespaces
    assert number(page, 526, 527) == 127 and number(page, 528, 529) == 127  # without latency nothing is ever lost
    assert page[768:1024].rstrip(b"\0").decode() == shared.ready["nqn"]
    assert (number(page, 1792, 1795), number(page, 1796, 1799), page[1803]) == (516, 1, 1)
    # sata-tlc: idle 500 mW, controller 450 mW, 8 dies x 110 mW, 4 buses of 400 MB/s x 80 pJ; slumber 50 mW
    assert (number(page, 2048, 2049), page[2051], number(page, 2064, 2065), page[2066]) == (196, 0, 5000, 0x40)
    assert (number(page, 2080, 2081), page[2083]) == (500, 3)  # units of 0.1 mW, non-operational
    assert (number(page, 2084, 2087), number(page, 2088, 2091)) == (1000, 10_000)  # ENLAT, EXLAT in us
    # transitions by itself; host controlled thermal management from 35 C to 79 C
    assert (page[265], number(page, 322, 323), number(page, 324, 325), number(page, 326, 327)) == (1, 1, 308, 352)


def test_identify_namespace_lists_and_descriptors(shared, host):
    page = host.admin.identify(0, nsid=1)
    assert number(page, 0, 7) == number(page, 8, 15) == 1 << 21
    assert (page[24], page[25], page[26], page[33]) == (0x12, 1, 0, 9)
    assert (number(page, 34, 35), number(page, 36, 37)) == (1023, 1023)
    assert number(page, 48, 63) == 1 << 30 and [number(page, 64 + 2 * i, 65 + 2 * i) for i in range(4)] == [7] * 4
    assert number(page, 102, 103) == 1
    assert (page[130], page[134]) == (9, 12)
    before = number(page, 16, 23)
    host.io[0].write(1 << 20, b"u" * 8192)
    assert number(host.admin.identify(0, nsid=1), 16, 23) == before + 16
    host.io[0].deallocate((1 << 20, 16))
    assert number(host.admin.identify(0, nsid=1), 16, 23) == before
    assert host.admin.identify(2, nsid=0)[:8] == b"\1\0\0\0\0\0\0\0" and host.admin.identify(2, nsid=1) == bytes(4096)
    descriptors = host.admin.identify(3, nsid=1)
    assert descriptors[:4] == b"\3\x10\0\0" and descriptors[4:20].hex() == shared.ready["nqn"][-36:].replace("-", "")
    assert descriptors[20:] == bytes(4076)
    refused(0x00B, host.admin.identify, 0, nsid=2)
    refused(0x00B, host.admin.identify, 3, nsid=0)
    for cns in (0x04, 0x05, 0x06, 0x08, 0x10, 0x1C, 0xFF):
        refused(0x002, host.admin.identify, cns, nsid=1)
    refused(0x00F, host.admin.admin, 0x06, cdw10=1, length=512)


@pytest.mark.slow
def test_dilated_and_protected_drives_say_so(serving):
    slow = serving("--preset", "nvme-tlc", "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0")
    with host_of(slow) as host:
        page, space = host.admin.identify(1), host.admin.identify(0, nsid=1)
    assert page[24:64].decode().rstrip() == "SIMULATED NVMe TLC 1 TB 1/10 speed"
    assert number(page, 526, 527) == 127 and number(page, 528, 529) == 0  # a cut tears writes ...
    assert (number(space, 34, 35), number(space, 36, 37), number(space, 44, 45)) == (
        1023,
        7,
        7,
    )  # ... at 4 KiB, never within
    slow.end()
    plp = serving("--preset", "enterprise-plp", "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", "--data", "crc")
    with host_of(plp) as host:
        page, space = host.admin.identify(1), host.admin.identify(0, nsid=1)
        assert page[525] == 6 and page[263] == 0  # no volatile cache, no slumber
        assert number(page, 528, 529) == 127
        assert (space[25], space[26], space[130]) == (0, 0, 12)  # pages only
        assert number(space, 0, 7) == 1 << 18
        refused(0x002, host.admin.admin, 0x0A, cdw10=0x06)
        host.io[0].write(3, b"z" * 4096, block=4096)
        assert host.io[0].read(3, 1, block=4096)[:8] == (3).to_bytes(8, "little")


# --- logs


def test_health_pages_are_those_of_the_admin_socket(shared, host):
    host.io[0].write(0, b"h" * 8192)
    for lid, lsi in ((0x02, 0), (0xC0, 0), (0x09, 1)):
        ours = None
        while (now := bytes.fromhex(shared.admin(op="log", lid=lid)["hex"])) != ours:  # its buffer drains
            ours, page = now, host.admin.log(lid, lsi=lsi)
        assert page == ours, lid
    assert number(host.admin.log(0x02), 48, 63) >= 1
    assert host.admin.log(0xC0)[496:].hex() == "c5af1028eabff2a49c4f6f7cc914d5af"
    refused(0x002, host.admin.log, 0x09, lsi=0)
    refused(0x002, host.admin.log, 0x09, lsi=2)


def test_logs_in_parts(host):
    whole = host.admin.log(0xC0)
    assert host.admin.log(0xC0, 16, offset=496) == whole[496:]
    assert host.admin.log(0xC0, 64, offset=480) == whole[480:] + bytes(32)  # beyond the end: zeros
    assert host.admin.log(0xC0, 4, offset=512) == bytes(4)
    refused(0x002, host.admin.log, 0xC0, 4, offset=516)
    refused(0x002, host.admin.log, 0xC0, 4, offset=2)
    refused(0x00F, host.admin.admin, 0x02, nsid=1, cdw10=0x02 | 127 << 16, length=256)
    refused(0x00B, host.admin.log, 0x02, nsid=2)
    for lid in (0x00, 0x06, 0x07, 0x0D, 0x70, 0xCA):
        refused(0x109, host.admin.log, lid)
    effects = host.admin.log(0x05, 4096)
    assert (
        number(effects, 4 * 0x80, 4 * 0x80 + 3) == 0x20007
        and number(effects, 1028, 1031) == 3
        and number(effects, 4, 7) == 0
    )
    assert host.admin.log(0x03)[:16] == b"\1" + bytes(7) + b"SIM1.0  "


def test_errors_are_logged_and_counted(host):
    count = number(host.admin.log(0x02), 176, 183)
    cid = host.io[1].cid() + 1
    refused(0x080, host.io[1].read, (1 << 21) - 1, 2)
    refused(0x109, host.admin.log, 0x77)
    page = host.admin.log(0x01, 128)
    assert number(page, 64, 71) == count + 1 and number(page, 0, 7) == count + 2
    assert struct.unpack_from("<HHHHQI", page, 72) == (2, cid, (0x080 | DNR) << 1, 40, (1 << 21) - 1, 1)
    assert struct.unpack_from("<H", page, 8)[0] == 0 and number(page, 12, 13) == (0x109 | DNR) << 1
    assert number(host.admin.log(0x02), 176, 183) == count + 2


# --- features, events


def test_features(host):
    admin = host.admin
    assert admin.admin(0x0A, cdw10=0x07)[0] == 0x10001
    assert admin.admin(0x0A, cdw10=0x04)[0] == 343 and admin.admin(0x0A, cdw10=0x04, cdw11=1 << 20)[0] == 0
    assert admin.admin(0x0A, cdw10=0x81, cdw11=1, length=16)[1].hex() == HOSTNQN[-36:].replace("-", "")
    admin.admin(0x09, cdw10=0x02, cdw11=1)
    assert admin.admin(0x0A, cdw10=0x02)[0] == 1
    admin.admin(0x09, cdw10=0x02, cdw11=0)
    refused(0x002, admin.admin, 0x09, cdw10=0x02, cdw11=2)  # no such power state
    admin.admin(0x09, cdw10=0x0F, cdw11=120_050)
    assert admin.admin(0x0A, cdw10=0x0F)[0] == 120_100  # units of KAS
    enabled, table = admin.admin(0x0A, cdw10=0x0C, length=256)
    assert enabled == 1 and table == (2000 << 8 | 1 << 3).to_bytes(8, "little") + bytes(248)
    for sgl in (IN_CAPSULE, TRANSPORT):
        changed = (300 << 8 | 1 << 3).to_bytes(8, "little") + bytes(248)
        admin.run(sqe(0x09, admin.cid(), cdw10=0x0C, cdw11=0, length=256, sgl=sgl), changed)
        assert admin.admin(0x0A, cdw10=0x0C, length=256) == (0, changed)
        admin.run(sqe(0x09, admin.cid(), cdw10=0x0C, cdw11=1, length=256, sgl=sgl), table)
        assert admin.admin(0x0A, cdw10=0x0C, length=256) == (1, table)
    refused(0x002, admin.run, sqe(0x09, admin.cid(), cdw10=0x0C, length=256), bytes([1, 1]) + bytes(254))
    refused(0x00F, admin.admin, 0x09, cdw10=0x0C, length=8)
    admin.admin(0x09, cdw10=0x10, cdw11=320 << 16 | 330)
    assert admin.admin(0x0A, cdw10=0x10)[0] == 320 << 16 | 330
    admin.admin(0x09, cdw10=0x10, cdw11=0)
    for fid in (0x00, 0x03, 0x11, 0x80, 0xD0):
        refused(0x002, admin.admin, 0x0A, cdw10=fid)
        refused(0x002, admin.admin, 0x09, cdw10=fid)
    refused(0x00C, admin.admin, 0x09, cdw10=0x07, cdw11=0x30003)  # queues exist
    refused(0x00C, admin.admin, 0x09, cdw10=0x81)
    refused(0x10D, admin.admin, 0x09, cdw10=0x06 | 1 << 31, cdw11=1)
    refused(0x002, admin.admin, 0x0A, cdw10=0x06 | 1 << 8)
    refused(0x001, admin.admin, 0xC1)
    refused(0x001, admin.admin, 0x10)  # firmware commit


def test_event_requests_are_held_limited_and_aborted(host):
    admin = host.admin
    held = [admin.send(sqe(0x0C, admin.cid())) for _ in range(4)]
    refused(0x105, admin.admin, 0x0C)
    assert admin.admin(0x08, cdw10=held[0] << 16)[0] == 0
    with pytest.raises(NvmeError) as error:
        admin.wait(held[0])
    assert error.value.status == 0x007
    assert admin.admin(0x08, cdw10=0xFFFF << 16 | 1)[0] == 1  # not found: not aborted


@pytest.mark.slow
def test_a_temperature_warning_is_told_once(shared):
    with host_of(shared) as host:
        admin = host.admin
        asked = [admin.send(sqe(0x0C, admin.cid())) for _ in range(2)]
        admin.admin(0x09, cdw10=0x0B, cdw11=0b10)
        try:
            admin.admin(0x09, cdw10=0x04, cdw11=273 + 10)  # below the room's temperature
            result, _ = admin.wait(asked[0])
            assert result == 0x02 << 16 | 0x01 << 8 | 0x01  # log page, temperature threshold, SMART / health
            assert admin.log(0x02)[0] == 2
            time.sleep(1.2)
            admin.admin(0x18)
            assert asked[1] not in admin.completions  # the same warning goes on
        finally:
            admin.admin(0x09, cdw10=0x04, cdw11=343)
        assert admin.log(0x02)[0] == 0


# --- I/O


def test_data_comes_back_on_any_queue(host):
    a, b = host.io
    for blocks in (1, 7, 8, 16, 17, 256, 1024):  # 512 bytes to 512 KiB: in the capsule, and after a ready-to-transfer
        data = os.urandom(512 * blocks)
        a.r2ts = 0
        a.write(5, data)
        assert a.r2ts == (blocks > 16)
        assert b.read(5, blocks) == data
    a.write(5, data[::-1], pieces=4096 * 3)  # many H2CData PDUs for one transfer
    assert b.read(5, 1024) == data[::-1]
    a.write_zeroes(6, 1000)
    assert b.read(5, 1024) == data[::-1][:512] + bytes(512_000) + data[::-1][512_512:]
    a.flush()
    a.run(sqe(0x00, a.cid(), 0xFFFFFFFF))


def test_small_writes_by_transfer_and_interleaved_transfers(host):
    queue = host.io[0]
    datas = {queue.send(rw(1, queue.cid(), 64 * i, 64, 32768)): bytes([i]) * 32768 for i in range(20)}
    waiting, tags = set(datas), 0
    while waiting:
        kind, head, _ = queue.pdu()
        if kind == 9:
            cid, tag, offset, length = struct.unpack_from("<HHII", head, 8)
            assert (offset, length) == (0, 32768)
            queue.send_data(cid, tag, 0, datas[cid], 10_000)
            tags += 1
        else:
            assert kind == 5 and struct.unpack_from("<H", head, 22)[0] == 0
            waiting.remove(struct.unpack_from("<H", head, 20)[0])
    assert tags == 20
    assert queue.read(64 * 19, 64) == b"\x13" * 32768 and queue.read(0, 64) == bytes(32768)
    queue.run(rw(1, queue.cid(), 0, 1, 512), b"t" * 512)  # one block, not in the capsule
    assert queue.read(0, 2) == b"t" * 512 + bytes(512)


@pytest.mark.parametrize(
    "change,fes,fei",
    [
        ("tag", 1, 10),
        ("cid", 1, 8),
        ("offset", 4, 12),
        ("length", 1, 16),
        ("last", 1, 1),
        ("beyond", 4, 12),
        ("gap", 4, 12),
    ],
)
def test_wrong_data_pdus_end_the_connection(shared, change, fes, fei):
    with host_of(shared) as host:
        queue = host.io[0]
        queue.send(rw(1, 9, 0, 64, 32768))
        kind, head, _ = queue.pdu()
        assert kind == 9
        cid, tag, offset, length, last, content = 9, struct.unpack_from("<H", head, 10)[0], 0, 32768, 4, bytes(32768)
        if change == "tag":
            tag ^= 1
        elif change == "cid":
            cid = 8
        elif change == "offset":
            offset = 512
        elif change == "length":
            length -= 4
        elif change == "gap":
            offset, length, last, content = 512, 1024, 0, bytes(1024)
        elif change == "last":
            last = 0
        else:
            length, content = 32772, bytes(32772)
        queue.sock.sendall(
            struct.pack("<BBBBIHHII4x", 6, last, 24, 24, 24 + len(content), cid, tag, offset, length) + content
        )
        with pytest.raises(Terminated) as ended:
            queue.pdu()
        assert (ended.value.fes, ended.value.fei) == (fes, fei)
        assert len(host.admin.log(2)) == 512  # the controller stays


def test_deallocate(shared, host):
    queue = host.io[0]
    queue.write(0, b"d" * 65536)
    trimmed = shared.truth(op="ledger")["trim_bytes"]
    queue.deallocate(*[(16 * i, 8) for i in range(4)])
    assert queue.read(0, 16) == bytes(4096) + b"d" * 4096 and queue.read(48, 16) == bytes(4096) + b"d" * 4096
    assert shared.truth(op="ledger")["trim_bytes"] == trimmed + 4 * 4096
    queue.deallocate((8, 8), attribute=1)  # a hint about reading: nothing is deallocated
    assert queue.read(8, 8) == b"d" * 4096
    queue.deallocate(*[(8 * i, 8) for i in range(256)], sgl=0x5A)  # the longest list, by transfer
    assert queue.read(0, 128) == bytes(65536)
    refused(0x080, queue.deallocate, (0, 8), ((1 << 21) - 1, 2))
    refused(0x00F, queue.run, sqe(0x09, 77, 1, 3, 4, length=16, sgl=IN_CAPSULE), bytes(16))


@pytest.mark.parametrize(
    "command,code",
    [
        (rw(2, 3, 1 << 21, 1, 512), 0x080),
        (rw(2, 3, (1 << 64) - 1, 1, 512), 0x080),
        (rw(1, 3, (1 << 21) - 1, 2, 1024, sgl=IN_CAPSULE), 0x080),
        (rw(8, 3, 1 << 40, 1, 0), 0x080),
        (rw(2, 3, 0, 1025, 1025 * 512), 0x002),  # longer than MDTS
        (rw(2, 3, 0, 8, 4095), 0x00F),
        (rw(1, 3, 0, 8, 512), 0x00F),
        (rw(2, 3, 0, 8, 4096, sgl=IN_CAPSULE), 0x011),
        (rw(1, 3, 0, 8, 4096, sgl=0x40), 0x011),
        (rw(1, 3, 0, 8, 4096, sgl=IN_CAPSULE)[:24] + b"\1" + rw(1, 3, 0, 8, 4096, sgl=IN_CAPSULE)[25:], 0x016),
        (rw(2, 3, 0, 8, 4096, flags=0), 0x002),  # PRP
        (rw(2, 3, 0, 8, 4096, flags=0x41), 0x002),  # fused
        (rw(2, 3, 0, 8, 4096)[:51] + b"\x20" + rw(2, 3, 0, 8, 4096)[52:], 0x002),  # protection information
        (sqe(2, 3, 2, length=512), 0x00B),
        (sqe(0, 3, 0), 0x00B),
        (sqe(5, 3, 1, length=512), 0x001),  # compare
        (sqe(0x0D, 3, 1), 0x001),
        (sqe(0x7F, 3), 0x002),  # a property of an I/O queue
    ],
)
def test_io_commands_that_are_refused(host, command, code):
    queue = host.io[0]
    refused(code, queue.run, command, bytes(4096) if command[39] == IN_CAPSULE else b"")
    assert len(queue.read(0, 1)) == 512  # the connection goes on


def test_a_deep_queue_is_answered_once_each(host):
    queue = host.io[1]
    words, reads = b"", set(range(0, 600, 3))
    for cid in range(600):
        if cid in reads:
            words += capsule(rw(2, cid, 8 * cid, 8, 4096))
        else:
            words += capsule(rw(1, cid, 8 * cid, 8, 4096, sgl=IN_CAPSULE), cid.to_bytes(4, "little") * 1024)
    queue.sock.setblocking(False)
    sent, got, need = 0, bytearray(), 600 * 24 + len(reads) * (24 + 4096)
    deadline = time.monotonic() + PATIENCE_S
    while len(got) < need and time.monotonic() < deadline:
        try:
            sent += queue.sock.send(words[sent : sent + 200_000])
        except BlockingIOError:
            pass
        try:
            got += queue.sock.recv(1 << 20)
        except BlockingIOError:
            time.sleep(0.001)
    queue.sock.settimeout(PATIENCE_S)
    done, data, at = [], set(), 0
    while at < len(got):
        kind, plen = got[at], number(got, at + 4, at + 7)
        if kind == 7:
            data.add(number(got, at + 8, at + 9))
        else:
            assert kind == 5 and number(got, at + 22, at + 23) == 0
            done.append(number(got, at + 20, at + 21))
        at += plen
    assert sorted(done) == list(range(600)) and data == reads
    assert queue.read(8, 8) == (1).to_bytes(4, "little") * 1024


def test_who_does_not_read_stops_only_himself(shared):
    with host_of(shared) as deaf, host_of(shared) as good:
        deaf.io[0].sock.setblocking(False)
        words, sent = b"".join(capsule(rw(2, i, 0, 1024, 524288)) for i in range(4000)), 0
        deadline = time.monotonic() + 600
        while sent < len(words) and time.monotonic() < deadline:
            try:
                sent += deaf.io[0].sock.send(words[sent:])
            except BlockingIOError:
                break
        for i in range(50):
            good.io[0].write(8 * i, b"g" * 4096)
        assert good.io[0].read(0, 8) == b"g" * 4096
