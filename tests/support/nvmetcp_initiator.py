"""A small NVMe/TCP host for tests: blocking, one command after another or pipelined by hand. Written from the
specifications, sharing no code with the server: NVMe/TCP Transport 1.0, NVMe over Fabrics 1.1, NVM Express Base 1.4."""

import socket
import struct
import uuid

HOSTNQN = "nqn.2014-08.org.nvmexpress:uuid:6a1f5f4e-36f4-4b8f-9f3e-0d7f0f2f7a11"
IN_CAPSULE, TRANSPORT = 0x01, 0x5A
DNR = 0x4000


class NvmeError(Exception):
    def __init__(self, status: int, result: int):
        super().__init__(f"status {status:04x}h, result {result:x}h")
        self.status, self.result = status & 0x0FFF, result  # type and code
        self.do_not_retry = bool(status & DNR)


class Terminated(Exception):
    """The controller sent a C2HTermReq."""

    def __init__(self, fes: int, fei: int, culprit: bytes):
        super().__init__(f"FES {fes} FEI {fei}")
        self.fes, self.fei, self.culprit = fes, fei, culprit


def sqe(
    opcode, cid, nsid=0, cdw10=0, cdw11=0, cdw12=0, cdw13=0, cdw14=0, cdw15=0, length=0, sgl=TRANSPORT, flags=0x40
) -> bytes:
    return struct.pack(
        "<BBHI16xQI3xB6I", opcode, flags, cid, nsid, 0, length, sgl, cdw10, cdw11, cdw12, cdw13, cdw14, cdw15
    )


def rw(opcode, cid, slba, blocks, length, fua=False, **how) -> bytes:
    return sqe(opcode, cid, 1, slba & 0xFFFFFFFF, slba >> 32, (blocks - 1) | fua << 30, length=length, **how)


def capsule(command: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data)) + command + data


class Queue:
    """One connection. connect=False: only the transport's own greeting; initialise=False: not even that."""

    def __init__(
        self,
        address,
        qid=0,
        nqn="",
        cntlid=0xFFFF,
        *,
        sqsize=31,
        kato_ms=0,
        attributes=0,
        hpda=0,
        hostnqn=HOSTNQN,
        hostid=None,
        recfmt=0,
        initialise=True,
        connect=True,
        timeout_s=120,
    ):
        self.sock = socket.create_connection(address, timeout_s)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.qid, self._cid, self.sqhd, self.r2ts = qid, 0, None, 0
        self.completions = {}  # of other commands than the one waited for: cid -> (status, result, data)
        if initialise:
            self.sock.sendall(struct.pack("<BBBBIHBBI112x", 0, 0, 128, 0, 128, 0, hpda, 0, 0))
            answer = self._receive(128)
            kind, _, hlen, _, plen, pfv, cpda, digest, self.max_h2c = struct.unpack_from("<BBBBIHBBI", answer)
            assert (kind, hlen, plen, pfv, cpda, digest) == (1, 128, 128, 0, 0, 0)
        if initialise and connect:
            hostid = uuid.UUID(hostnqn[-36:]).bytes if hostid is None else hostid
            data = hostid + struct.pack("<H238x256s256s256x", cntlid, nqn.encode(), hostnqn.encode())
            command = struct.pack(
                "<BBHB19xQI3xBHHHBBI12x",
                0x7F,
                0x40,
                self.cid(),
                1,
                0,
                1024,
                IN_CAPSULE,
                recfmt,
                qid,
                sqsize,
                attributes,
                0,
                kato_ms,
            )
            self.cntlid = self.run(command, data)[0] & 0xFFFF

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def cid(self) -> int:
        self._cid = (self._cid + 1) % 0x10000
        return self._cid

    def _receive(self, n: int) -> bytes:
        out = bytearray(n)
        view, at = memoryview(out), 0
        while at < n:
            got = self.sock.recv_into(view[at:])
            if not got:
                raise ConnectionError("the controller closed the connection")
            at += got
        return bytes(out)

    def pdu(self) -> tuple[int, bytes, bytes]:
        """Next PDU: (type, whole header, data)."""
        head = self._receive(8)
        kind, _, hlen, pdo, plen = struct.unpack("<BBBBI", head)
        rest = self._receive(plen - 8)
        if kind == 3:
            raise Terminated(*struct.unpack_from("<HI", rest), rest[16:])
        return kind, head + rest[: hlen - 8], rest[(pdo or plen) - 8 :]

    def send(self, command: bytes, data: bytes = b"") -> int:
        """Send a command without waiting. Data goes into the capsule if the descriptor says so. Returns its
        identifier."""
        self.sock.sendall(capsule(command, data if command[39] == IN_CAPSULE else b""))
        return struct.unpack_from("<H", command, 2)[0]

    def run(self, command: bytes, data: bytes = b"", pieces: int = 1 << 20) -> tuple[int, bytes]:
        """(result, data of the controller). Raises NvmeError."""
        return self.wait(self.send(command, data), data, pieces)

    def wait(self, cid: int, data: bytes = b"", pieces: int = 1 << 20) -> tuple[int, bytes]:
        """Serve the connection until `cid` is complete; a transfer is sent as `data` in H2CData PDUs of up to `pieces`
        bytes."""
        came = {}
        while cid not in self.completions:
            kind, head, content = self.pdu()
            about = struct.unpack_from("<H", head, 20 if kind == 5 else 8)[0]
            if kind == 7:
                offset, length = struct.unpack_from("<II", head, 12)
                assert length == len(content) and offset == len(came.get(about, b""))
                came[about] = came.get(about, b"") + content
            elif kind == 9:
                self.r2ts += 1
                tag, offset, length = struct.unpack_from("<HII", head, 10)
                self.send_data(about, tag, offset, data[offset : offset + length], pieces)
            elif kind == 5:
                result, self.sqhd, _, _, status = struct.unpack_from("<QHHHH", head, 8)
                assert about not in self.completions and status & 1 == 0
                self.completions[about] = (status >> 1, result, came.pop(about, b""))
            else:
                raise AssertionError(f"PDU type {kind}")
        status, result, content = self.completions.pop(cid)
        if status:
            raise NvmeError(status, result)
        return result, content

    def send_data(self, cid: int, tag: int, offset: int, data: bytes, pieces: int) -> None:
        pieces = min(pieces, self.max_h2c)
        for at in range(0, len(data), pieces):
            part = data[at : at + pieces]
            last = 4 if at + len(part) == len(data) else 0
            self.sock.sendall(
                struct.pack("<BBBBIHHII4x", 6, last, 24, 24, 24 + len(part), cid, tag, offset + at, len(part)) + part
            )

    # --- admin

    def get_property(self, offset: int, size: int) -> int:
        command = struct.pack("<BBHB35xB3xI16x", 0x7F, 0x40, self.cid(), 4, size == 8, offset)
        return self.run(command)[0]

    def set_property(self, offset: int, value: int) -> None:
        self.run(struct.pack("<BBHB35xB3xIQ8x", 0x7F, 0x40, self.cid(), 0, 0, offset, value))

    def enable(self) -> None:
        self.set_property(0x14, 0x00460001)
        assert self.get_property(0x1C, 4) & 1

    def admin(self, opcode: int, *, length: int = 0, **fields) -> tuple[int, bytes]:
        return self.run(sqe(opcode, self.cid(), length=length, **fields))

    def identify(self, cns: int, nsid: int = 0) -> bytes:
        return self.admin(0x06, nsid=nsid, cdw10=cns, length=4096)[1]

    def log(
        self, lid: int, length: int = 512, offset: int = 0, lsi: int = 0, nsid: int = 0xFFFFFFFF, rae: int = 0
    ) -> bytes:
        dwords = length // 4 - 1
        return self.admin(
            0x02,
            nsid=nsid,
            cdw10=lid | rae << 15 | (dwords & 0xFFFF) << 16,
            cdw11=dwords >> 16 | lsi << 16,
            cdw12=offset & 0xFFFFFFFF,
            cdw13=offset >> 32,
            length=length,
        )[1]

    # --- I/O, in blocks of 512 bytes unless told

    def read(self, slba: int, blocks: int, block: int = 512) -> bytes:
        return self.run(rw(0x02, self.cid(), slba, blocks, blocks * block))[1]

    def write(self, slba: int, data: bytes, fua: bool = False, block: int = 512, pieces: int = 1 << 20) -> None:
        sgl = IN_CAPSULE if len(data) <= 8192 else TRANSPORT
        self.run(rw(0x01, self.cid(), slba, len(data) // block, len(data), fua, sgl=sgl), data, pieces)

    def flush(self) -> None:
        self.run(sqe(0x00, self.cid(), 1, sgl=0x5A))

    def write_zeroes(self, slba: int, blocks: int) -> None:
        self.run(rw(0x08, self.cid(), slba, blocks, 0))

    def deallocate(self, *ranges, attribute: int = 4, sgl: int = IN_CAPSULE) -> None:
        data = b"".join(struct.pack("<IIQ", 0, blocks, slba) for slba, blocks in ranges)
        self.run(sqe(0x09, self.cid(), 1, len(ranges) - 1, attribute, length=len(data), sgl=sgl), data)


class Host:
    """An enabled controller with `queues` I/O queues, as a kernel sets it up: `admin` and `io[0]` on."""

    def __init__(self, address, nqn: str, queues: int = 1, kato_ms: int = 0, attributes: int = 0):
        self.io: list[Queue] = []
        self.admin = Queue(address, 0, nqn, kato_ms=kato_ms, attributes=attributes)
        self.admin.enable()
        granted = self.admin.admin(0x09, cdw10=0x07, cdw11=(queues - 1) * 0x10001)[0]
        assert granted & 0xFFFF == granted >> 16 == queues - 1
        for qid in range(1, queues + 1):
            self.io.append(Queue(address, qid, nqn, self.admin.cntlid, sqsize=127, attributes=attributes))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for queue in [*self.io, self.admin]:
            queue.sock.close()

    def shut_down(self) -> None:
        """Shutdown notification, and wait until it is complete."""
        self.admin.set_property(0x14, 0x00464001)
        while self.admin.get_property(0x1C, 4) >> 2 & 3 != 2:
            pass
