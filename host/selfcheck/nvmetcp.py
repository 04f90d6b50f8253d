"""The virtual drive's NVMe/TCP front end against its NBD front end: one drive, one client, the same commands.

fio speaks no NVMe/TCP, so both are driven by the client here: it keeps 32 commands of 4 KiB outstanding, made before
the clock starts, and counts completions. Latency model off."""

import random
import socket
import statistics
import struct
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, at_least, exactly
from selfcheck.nbd import _ledger, _serving
from ssdrig.blockio.nbd import NbdClient

RUN_S = 2
PAIRS = 5
QUEUE_DEPTH = 32
PAGES = 1 << 17  # 512 MiB of the drive
READY = 1024  # different commands, sent in turn
HOSTID = bytes(range(16))


def throughput() -> list[Figure]:
    """4 KiB random writes and reads, QD 32, alternately over NVMe/TCP and NBD; medians."""
    with tempfile.TemporaryDirectory(prefix="ssdrig-bench-nvmetcp-", dir="/var/tmp") as name:
        words = ("--preset", "sata-tlc", "--capacity", "1GiB", "--no-latency", "--nvme-tcp", "127.0.0.1:0")
        with _serving(Path(name) / "drive", *words) as drive:
            address, port = drive["nvme_tcp"].split(":")
            with (
                NbdClient(drive["socket"], timeout_s=20) as nbd,
                socket.create_connection((address, int(port)), 20) as admin,
            ):
                cntlid = _admin(admin, drive["nqn"])
                with socket.create_connection((address, int(port)), 20) as queue:
                    _connect(queue, drive["nqn"], 1, cntlid)
                    runs = {
                        "NVMe/TCP write": (queue, [_capsule(1, i) for i in range(READY)], 24),
                        "NBD write": (nbd.sock, [_request(1, i) for i in range(READY)], 16),
                        "NVMe/TCP read": (queue, [_capsule(2, i) for i in range(READY)], 24 + 4096 + 24),
                        "NBD read": (nbd.sock, [_request(0, i) for i in range(READY)], 16 + 4096),
                    }
                    rates: dict[str, list[float]] = {title: [] for title in runs}
                    answered = 0
                    for _ in range(PAIRS):
                        for title, run in runs.items():
                            rate, commands = _iops(*run)
                            rates[title].append(rate)
                            answered += commands
            ledger = _ledger(Path(name) / "drive")
    counted = ledger["host_write_commands"] + ledger["host_read_commands"]
    write, nbd_write, read, nbd_read = (statistics.median(rates[title]) for title in runs)
    return [
        at_least("4 KiB random write QD 32 over NVMe/TCP", write, "IOPS", 40_000),
        Figure("the same over NBD", nbd_write, "IOPS", "for comparison", True),
        at_least("4 KiB random read QD 32 over NVMe/TCP", read, "IOPS", 40_000),
        Figure("the same over NBD", nbd_read, "IOPS", "for comparison", True),
        exactly("commands answered but not carried out", abs(answered - counted), "", 0),
    ]


def _iops(sock: socket.socket, commands: list[bytes], answer_bytes: int) -> tuple[float, int]:
    """(commands a second, commands in all)"""
    buf, came, done, sent = bytearray(1 << 20), 0, 0, QUEUE_DEPTH
    sock.sendall(b"".join(commands[:QUEUE_DEPTH]))
    start = time.monotonic()
    while True:
        came += sock.recv_into(buf)
        done, came = done + came // answer_bytes, came % answer_bytes
        if time.monotonic() - start > RUN_S:
            break
        n = done + QUEUE_DEPTH - sent
        at = sent % READY
        sock.sendall(
            b"".join((commands + commands[:QUEUE_DEPTH])[at : at + n])
            if at + n > READY
            else b"".join(commands[at : at + n])
        )
        sent += n
    rate = done / (time.monotonic() - start)
    while done < sent:
        came += sock.recv_into(buf)
        done, came = done + came // answer_bytes, came % answer_bytes
    return rate, done


def _request(op: int, i: int) -> bytes:
    return struct.pack(">IHHQQI", 0x25609513, 0, op, i, random.Random(i).randrange(PAGES) * 4096, 4096) + bytes(
        4096 * (op == 1)
    )


def _capsule(opcode: int, i: int) -> bytes:
    held = 4096 * (opcode == 1)
    command = struct.pack(
        "<BBHI16xQI3xBQHHI8x",
        opcode,
        0x40,
        i,
        1,
        0,
        4096,
        0x01 if held else 0x5A,
        random.Random(i).randrange(PAGES) * 8,
        7,
        0,
        0,
    )
    return struct.pack("<BBBBI", 4, 0, 72, 72 if held else 0, 72 + held) + command + bytes(held)


def _connect(sock: socket.socket, nqn: str, qid: int, cntlid: int) -> int:
    """ICReq and Connect; the controller's identifier."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(struct.pack("<BBBBIHBBI112x", 0, 0, 128, 0, 128, 0, 0, 0, 0))
    _receive(sock, 128)
    command = struct.pack("<BBHB19xQI3xBHHHBBI12x", 0x7F, 0x40, 1, 1, 0, 1024, 0x01, 0, qid, 127, 0, 0, 0)
    data = HOSTID + struct.pack(
        "<H238x256s256s256x",
        cntlid,
        nqn.encode(),
        b"nqn.2014-08.org.nvmexpress:uuid:00010203-0405-0607-0809-0a0b0c0d0e0f",
    )
    sock.sendall(struct.pack("<BBBBI", 4, 0, 72, 72, 72 + 1024) + command + data)
    return struct.unpack_from("<H", _receive(sock, 24), 8)[0]


def _admin(sock: socket.socket, nqn: str) -> int:
    cntlid = _connect(sock, nqn, 0, 0xFFFF)
    sock.sendall(
        struct.pack("<BBBBI", 4, 0, 72, 0, 72) + struct.pack("<BBHB35xB3xIQ8x", 0x7F, 0x40, 2, 0, 0, 0x14, 0x460001)
    )
    _receive(sock, 24)
    return cntlid


def _receive(sock: socket.socket, n: int) -> bytes:
    out = b""
    while len(out) < n:
        out += sock.recv(n - len(out))
    return out


BENCHES = {
    "nvmetcp": ("virtual drive through NVMe/TCP without the latency model against its NBD front end", throughput)
}
