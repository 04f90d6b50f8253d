"""Power, format and sanitize of the virtual drive over NVMe/TCP: what a cut ends, counts and takes back."""

import contextlib
import json
import os
import signal
import socket
import struct
import time

import pytest
from nvmetcp_initiator import IN_CAPSULE, NvmeError, capsule, rw, sqe
from nvmetcp_serving import address, host_of, number, refused
from serving import PATIENCE_S, TRIES, forked, serving  # noqa: F401  fixture

from ssdrig.base import nvme_power
from ssdrig.drive import nvme_cli

pytestmark = pytest.mark.keeps_time


def start(serving, *words, preset="sata-tlc"):
    return serving("--preset", preset, "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", *words)


def refuses(server) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(address(server)) != 0


def counters(host) -> tuple[int, int]:
    """(power cycles, unsafe shutdowns)"""
    page = host.admin.log(0x02)
    return number(page, 112, 127), number(page, 144, 159)


def test_a_cut_ends_all_connections_and_is_counted(serving):
    server = start(serving)
    with host_of(server, 2) as host:
        host.io[0].write(0, b"k" * 4096, fua=True)
        assert counters(host) == (1, 0)
        server.admin(op="power_cut")
        for queue in (host.admin, *host.io):
            queue.sock.settimeout(PATIENCE_S)
            with pytest.raises(ConnectionResetError):  # not an orderly end
                queue.sock.recv(1)
    assert refuses(server) and refuses(server)
    server.admin(op="power_on")
    with host_of(server) as host:
        assert counters(host) == (2, 1)
        assert host.io[0].read(0, 8) == b"k" * 4096
        assert host.admin.identify(1)[4:24].decode().rstrip() == server.ready["serial"]


def test_what_comes_in_the_moment_of_the_cut_comes_too_late(serving):
    server = start(serving, "--no-latency")
    with socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(PATIENCE_S)
        admin.connect(server.ready["admin"])
        admin.sendall(b'{"op": "identify"}\n')
        assert admin.recv(65536)
        with host_of(server) as host:
            before = server.truth(op="ledger")["host_write_commands"]
            server.process.send_signal(signal.SIGSTOP)  # so that it finds both at once, the older connection's first
            try:
                admin.sendall(b'{"op": "power_cut"}\n')
                host.io[0].send(rw(1, 7, 0, 8, 4096, sgl=IN_CAPSULE), b"l" * 4096)
            finally:
                server.process.send_signal(signal.SIGCONT)
            assert b"pages_lost" in admin.recv(65536)
    assert server.truth(op="ledger")["host_write_commands"] == before
    assert server.end() == 0  # an end without power is an end


def test_the_power_log_is_there_where_the_drive_has_it(serving):
    with host_of(start(serving, "--no-latency", preset="nvme-tlc-estimates")) as host:
        assert host.admin.identify(1)[261] >> 5 & 1
        assert nvme_cli.supported(host.admin.log(0x00, 1024)) >= {0x00, 0x02, 0x25}
        before = nvme_power.measurement(host.admin.log(0x25, 64))
        assert not before["measuring"] and before["count"] == 0
        host.admin.admin(0x09, cdw10=0x25, cdw11=1)
        facts = nvme_power.measurement(host.admin.log(0x25, 64))
        assert facts["measuring"] and facts["estimated"] and facts["contiguous"] and facts["error_percent"] == 15
        assert facts["generation"] == 1
    with host_of(start(serving, "--no-latency")) as host:
        assert not host.admin.identify(1)[261] >> 5 & 1
        refused(0x109, host.admin.log, 0x25)


def test_nbd_and_nvme_are_the_same_drive(serving):
    server = start(serving, "--no-latency")
    with host_of(server) as host, server.client() as client:
        client.write(4096, b"n" * 4096)
        assert host.io[0].read(8, 8) == b"n" * 4096
        host.io[0].write(8, b"v" * 512)
        assert client.read(4096, 600) == b"v" * 512 + b"n" * 88


def test_the_truth_is_marked_when_health_is_read(serving, tmp_path):
    server = start(serving, "--no-latency", "--truth", str(tmp_path / "truth"))
    with host_of(server) as host:
        host.io[0].write(0, b"m" * 8192)
        host.admin.log(0xC0)
        host.admin.log(0x02)
        host.io[0].write(0, b"m" * 4096)
        host.admin.log(0x02)
    marks = [json.loads(line) for line in (tmp_path / "truth" / "marks.jsonl").read_text().splitlines()]
    assert [mark["host_write_bytes"] for mark in marks] == [8192, 12288]


def test_an_announced_cut_is_safe_until_the_drive_is_used_again(serving):
    server = start(serving)

    def cut_after(*actions) -> tuple[int, int]:
        with host_of(server) as host, host_of(server) as other:
            for action in actions:
                action(host, other)
            server.admin(op="power_cut")
        server.admin(op="power_on")
        with host_of(server) as host:
            counted = counters(host)
            host.shut_down()
        return counted

    def shut(host, other):
        host.shut_down()

    def shut_other(host, other):
        other.shut_down()

    def enable(host, other):
        host.admin.set_property(0x14, 0)
        host.admin.enable()

    def write_data(host, other):
        other.io[0].write(0, b"w" * 4096)

    assert cut_after(shut, shut_other) == (2, 0)
    assert cut_after(shut_other, shut, enable) == (3, 1)
    assert cut_after(shut) == (4, 2)  # the other host knows nothing of it
    assert cut_after(shut, shut_other, write_data) == (5, 3)
    assert cut_after() == (6, 4)


def test_a_connection_that_ends_is_no_power_loss(serving):
    server = start(serving)
    for _ in range(3):
        with host_of(server) as host:
            host.io[0].write(0, b"x" * 4096)
            assert counters(host) == (1, 0)


def written_and_cut(server, prepare, fua: bool) -> int:
    """How many of 64 pages, written over older ones and acknowledged, a cut at once takes back."""
    with host_of(server) as host:
        queue = host.io[0]
        queue.write(0, b"o" * 262144)
        queue.flush()
        prepare(host)
        words = b"".join(
            struct.pack("<BBBBI", 4, 0, 72, 72, 72 + 4096)
            + rw(1, 1000 + i, 8 * i, 8, 4096, fua, sgl=IN_CAPSULE)
            + b"n" * 4096
            for i in range(64)
        )
        queue.sock.sendall(words)
        for i in range(64):
            queue.wait(1000 + i)
        server.admin(op="power_cut")
    server.admin(op="power_on")
    with host_of(server) as host:
        pages = [host.io[0].read(8 * i, 8) for i in range(64)]
    assert all(page in (b"o" * 4096, b"n" * 4096) for page in pages)  # whole pages: AWUPF
    return pages.count(b"o" * 4096)


def test_the_volatile_cache_loses_and_fua_or_switching_it_off_does_not(serving):
    server = start(serving)

    def switch_off(host):
        host.admin.admin(0x09, cdw10=0x06, cdw11=0)
        assert host.admin.admin(0x0A, cdw10=0x06)[0] == 0

    def check_default(host):
        assert host.admin.admin(0x0A, cdw10=0x06)[0] == 1  # a power cycle switches it on again

    def writes_through() -> int:
        return server.truth(op="ledger")["host_fua_write_commands"]

    def loses(prepare) -> bool:
        """Its cache holds them for 50 ms; on a busy machine a cut may come later."""
        return any(written_and_cut(server, prepare, fua=False) for _ in range(TRIES))

    assert loses(check_default) and writes_through() == 0
    assert written_and_cut(server, check_default, fua=True) == 0 and writes_through() == 64
    # without a cache each write is one
    assert written_and_cut(server, switch_off, fua=False) == 0 and writes_through() == 128
    assert loses(lambda host: None) and writes_through() == 128


# --- format and sanitize


def fill(host, mebibytes: int) -> None:
    data = os.urandom(524288)
    for i in range(2 * mebibytes):
        host.io[0].write(1024 * i, data)


def status_of(do, *args) -> int:
    try:
        do(*args)
    except NvmeError as error:
        return error.status
    return 0


def test_format(serving):
    server = start(serving, "--no-latency")
    with host_of(server) as host:
        for erase in (0, 1, 2):
            fill(host, 4)
            erases = server.truth(op="ledger")["erases"]
            host.admin.admin(0x80, nsid=1, cdw10=erase << 9)
            assert host.io[0].read(0, 1024) == bytes(524288)
            after = server.truth(op="ledger")
            assert after["mapped_pages"] == 0
            assert (after["erases"] > erases) == (erase == 1)  # only user data erase erases blocks
        host.admin.admin(0x80, nsid=0xFFFFFFFF, cdw10=1)  # to 4096 bytes a block
        assert number(host.admin.identify(0, nsid=1), 0, 7) == 1 << 18 and host.admin.identify(0, nsid=1)[26] == 1
        host.io[0].write(2, b"4" * 8192, block=4096)
        assert host.io[0].read(2, 2, block=4096) == b"4" * 8192
        assert status_of(host.io[0].read, 1 << 18, 1, 4096) == 0x080
        for cdw10, nsid, code in (
            (2, 1, 0x10A),
            (1 << 4, 1, 0x10A),
            (1 << 5, 1, 0x10A),
            (3 << 9, 1, 0x002),
            (0, 2, 0x00B),
        ):
            with pytest.raises(NvmeError) as error:
                host.admin.admin(0x80, nsid=nsid, cdw10=cdw10)
            assert error.value.status == code
        assert host.io[0].read(2, 1, block=4096) == b"4" * 4096  # what was refused changed nothing


def in_time(attempt) -> None:
    """What a drive does only while it erases is asked of it until the question comes in time: a starved machine may
    stop the drive's process for longer than an erase lasts. `attempt` begins with a new one."""
    assert any(attempt() for _ in range(TRIES)), f"the drive was never asked in time in {TRIES} erases"


@contextlib.contextmanager
def unseen(server):
    """What is sent meanwhile, the server finds all at once, in this order."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def send_in_one(queue, *commands: dict) -> list[int]:
    """Commands in one piece, which the drive carries out at one moment of its time. Returns their identifiers."""
    entries = [sqe(cid=queue.cid(), **command) for command in commands]
    queue.sock.sendall(b"".join(map(capsule, entries)))
    return [struct.unpack_from("<H", entry, 2)[0] for entry in entries]


def test_io_is_refused_while_a_format_runs(serving):
    server = start(serving, preset="nvme-tlc")

    def attempt() -> bool:
        fill(host, 64)
        host.io[0].flush()
        with unseen(server):
            cid = host.admin.send(sqe(0x80, host.admin.cid(), 1, 1 << 9))
            read = host.io[0].send(rw(2, host.io[0].cid(), 0, 1, 512))
        status = status_of(host.io[0].wait, read)
        assert status in (0x084, 0)
        host.admin.wait(cid)
        assert host.io[0].read(0, 1024) == bytes(524288)
        return status == 0x084

    with host_of(server) as host:
        in_time(attempt)


def test_data_that_comes_after_a_format_began_is_refused(serving):
    server = start(serving, preset="nvme-tlc")

    def attempt() -> bool:
        fill(host, 64)
        queue.flush()
        write = queue.send(rw(1, queue.cid(), 0, 64, 32768))
        kind, head, _ = queue.pdu()
        assert kind == 9
        with unseen(server):
            cid = host.admin.send(sqe(0x80, host.admin.cid(), 1, 1 << 9))
            queue.send_data(write, struct.unpack_from("<H", head, 10)[0], 0, b"d" * 32768, 32768)
        status = status_of(queue.wait, write)
        assert status in (0x084, 0)
        host.admin.wait(cid)
        assert status == 0 or queue.read(0, 64) == bytes(32768)
        return status == 0x084

    with host_of(server) as host:
        queue = host.io[0]
        in_time(attempt)


BLOCK_ERASE, FORMAT = {"opcode": 0x84, "cdw10": 2}, {"opcode": 0x80, "nsid": 1}
SANITIZE_LOG = {"opcode": 0x02, "nsid": 0xFFFFFFFF, "cdw10": 0x81 | 127 << 16, "length": 512}


@pytest.fixture
def full(serving, tmp_path):
    """full() starts a drive of which all blocks are written, so many that it takes a second to sanitize."""
    words = ("--capacity", "24GiB", "--state", str(tmp_path / "full"))
    done = forked(tmp_path, "precondition", "--preset", "nvme-tlc", *words, "--fill", "seq", "--drive-writes", "1")
    assert done.returncode == 0, done.stderr
    return lambda: start(serving, *words, preset="nvme-tlc")


def sanitize_log(host) -> tuple[int, int]:
    """(SPROG, SSTAT)"""
    return struct.unpack_from("<HH", host.admin.log(0x81))


def begin_sanitize(host, *more: dict) -> list[int]:
    """An erase and its log are asked for in one piece with `more` commands. Returns the identifiers of those behind
    the erase."""
    return send_in_one(host.admin, BLOCK_ERASE, SANITIZE_LOG, *more)[1:]


def progress_of(host, log: int) -> int:
    """The progress in a sanitize log that was asked for as the erase began."""
    progress, state = struct.unpack_from("<HH", host.admin.wait(log)[1])
    assert state == 2 and progress < 0xFFFF
    return progress


def test_a_drive_that_was_never_sanitized(serving):
    with host_of(start(serving, preset="nvme-tlc")) as host:
        assert sanitize_log(host) == (0xFFFF, 0x100)  # nothing was ever written
        host.io[0].write(0, b"w" * 512)
        assert sanitize_log(host) == (0xFFFF, 0)
        for cdw10 in (0, 3, 5, 2 | 1 << 9):  # overwrite is not offered, nor are blocks that stay allocated
            assert status_of(lambda: host.admin.admin(0x84, cdw10=cdw10)) == 0x002
        host.admin.admin(0x84, cdw10=1)  # nothing has failed
        host.admin.admin(0x84, cdw10=4)
        while sanitize_log(host)[1] & 7 == 2:
            time.sleep(0.005)
        assert host.io[0].read(0, 1) == bytes(512)


def test_sanitize_goes_on_by_itself_and_tells_when_it_is_done(full):
    def attempt() -> bool:
        server = full()
        with host_of(server) as host:
            event = host.admin.send(sqe(0x0C, host.admin.cid()))
            with unseen(server):
                log, *others = begin_sanitize(host, FORMAT, BLOCK_ERASE)
                read = host.io[0].send(rw(2, host.io[0].cid(), 0, 1, 512))
            seen = [progress_of(host, log)]
            assert [status_of(host.admin.wait, other) for other in others] == [0x01D, 0x01D]
            status = status_of(host.io[0].wait, read)
            assert status in (0x01D, 0)
            while (now := sanitize_log(host))[1] == 2:
                seen.append(now[0])
                time.sleep(0.02)
            assert seen == sorted(seen) and now == (0xFFFF, 0x101)
            assert host.admin.wait(event)[0] == 0x81 << 16 | 0x01 << 8 | 0x06
            assert host.io[0].read(0, 1024) == bytes(524288)
            assert number(host.admin.log(0x81), 4, 7) == 2
            host.io[0].write(0, b"w" * 512)
            assert sanitize_log(host) == (0xFFFF, 1)  # written since
        return status == 0x01D and len(set(seen)) > 1

    in_time(attempt)


def test_a_cut_only_delays_a_sanitize(full):
    def attempt() -> bool:
        server = full()
        with host_of(server) as host:
            (log,) = begin_sanitize(host)
            progress_of(host, log)
            server.admin(op="power_cut")
        server.admin(op="power_on")
        with host_of(server) as host:
            status = status_of(host.io[0].read, 0, 1)
            assert status in (0x01D, 0)
            while sanitize_log(host)[1] == 2:
                time.sleep(0.01)
            assert sanitize_log(host) == (0xFFFF, 0x101)
            assert host.io[0].read(0, 1024) == bytes(524288)
        return status == 0x01D

    in_time(attempt)
