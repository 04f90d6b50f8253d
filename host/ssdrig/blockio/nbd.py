"""An NBD client: address, connection and negotiation of each, and blocking calls, one request at a time. Many requests
under way: nbd_pipe.py."""

import contextlib
import socket
import struct
from urllib.parse import parse_qs, unquote, urlsplit

from ssdrig.base.errors import DriveError, UsageError
from ssdrig.blockio import nbd_numbers as nbd

CHUNK_BYTES = 1 << 20
TRIM_CHUNK_BYTES = 1 << 30  # a request's length has 32 bits
PORT = 10809
PEER = struct.Struct("3i")  # struct ucred of unix(7): process, user, group
MOST_INFO_BYTES, MOST_BYTES = 1 << 16, 1 << 62  # of an option reply, and of a drive, that can be meant


def address(uri: str) -> tuple[str | tuple[str, int], bytes]:
    """(path of a unix socket or (host, port), name of the export) of nbd+unix:///EXPORT?socket=PATH or
    nbd://HOST[:PORT]/EXPORT. Raises UsageError for another."""
    with contextlib.suppress(ValueError):  # of a port or a host that can be none
        url = urlsplit(uri)
        export = unquote(url.path[1:]).encode()
        if url.scheme == "nbd+unix" and (path := parse_qs(url.query).get("socket")):
            return path[0], export
        if url.scheme == "nbd" and url.hostname:
            return (url.hostname, url.port or PORT), export
    raise UsageError("nbd+unix:///EXPORT?socket=PATH or nbd://HOST[:PORT]/EXPORT", uri, "correct the address")


class NbdError(OSError):
    """The drive answered a request with an error; see errno."""


class NbdClient:
    """Connection to the drive at a unix socket, or at (host, port). A context manager; leaving it disconnects and
    closes.

    Raises DriveError without a drive, when it breaks the protocol or when it goes away; NbdError when it refuses
    a request."""

    def __init__(self, path: str | tuple[str, int], timeout_s: float = 30.0, export: bytes = b""):
        self.path, self._export = path, export
        self._cookie = 0
        try:
            self.sock = _connected(path, timeout_s)
        except (OSError, ValueError) as e:  # ValueError: of a host's name, or a 0 in a path
            raise self._lost(e) from e
        try:
            self._negotiate()
        except OSError as e:
            self.sock.close()
            raise self._lost(e) from e
        except DriveError:
            self.sock.close()
            raise

    def _negotiate(self) -> None:
        if self._receive(len(nbd.GREETING) + 2)[:-2] != nbd.GREETING:  # then its flags, all optional
            raise self._lost("another protocol")
        name = self._export
        body = struct.pack(">I", len(name)) + name + struct.pack(">H", 0)  # no information asked for
        flags = struct.pack(">I", nbd.FIXED_NEWSTYLE | nbd.NO_ZEROES)
        self.sock.sendall(flags + nbd.OPTION.pack(nbd.OPTION_MAGIC, nbd.GO, len(body)) + body)
        size_bytes, self.flags, self.block_bytes = None, 0, 1
        while True:
            _, _, kind, length = nbd.OPTION_REPLY.unpack(self._receive(nbd.OPTION_REPLY.size))
            if length > MOST_INFO_BYTES:
                raise self._lost(f"an option reply of {length} bytes")
            body = self._receive(length)
            about = int.from_bytes(body[:2], "big") if kind == nbd.INFO_REPLY and len(body) > 1 else None
            if about in (nbd.INFO_EXPORT, nbd.INFO_BLOCK_SIZE) and len(body) < 12:
                raise self._lost(f"an option reply of {length} bytes, too short for its content")
            if about == nbd.INFO_EXPORT:
                size_bytes, self.flags = struct.unpack(">QH", body[2:12])
            elif about == nbd.INFO_BLOCK_SIZE:
                self.block_bytes = struct.unpack(">I", body[2:6])[0]
            elif kind == nbd.ACK:
                break
            elif kind & nbd.IS_ERROR:
                raise self._lost(f"refused with option error {kind:#x}")
        if size_bytes is None:
            raise self._lost("a drive that does not report its size")
        if size_bytes > MOST_BYTES:
            raise self._lost(f"a drive of {size_bytes} bytes")
        self.size_bytes = int(size_bytes)

    @property
    def server(self) -> int | None:
        """The process on this machine that listens at a unix socket; None: not known."""
        if isinstance(self.path, tuple) or self.sock.fileno() < 0:
            return None
        pid, _, _ = PEER.unpack(self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
        return pid or None  # 0: of another namespace

    def read(self, offset: int, length: int) -> bytes:
        """Any length; more than CHUNK_BYTES goes in several requests, as with the others."""
        return b"".join(self._request(nbd.READ, at, n, expect=n) for at, n in _chunks(offset, length))

    def write(self, offset: int, data: bytes, fua: bool = False) -> None:
        for at, n in _chunks(offset, len(data)):
            self._request(nbd.WRITE, at, n, nbd.FUA if fua else 0, data[at - offset : at - offset + n])

    def trim(self, offset: int, length: int) -> None:
        for at, n in _chunks(offset, length, TRIM_CHUNK_BYTES):
            self._request(nbd.TRIM, at, n)

    def write_zeroes(self, offset: int, length: int) -> None:
        for at, n in _chunks(offset, length, TRIM_CHUNK_BYTES):
            self._request(nbd.WRITE_ZEROES, at, n)

    def flush(self) -> None:
        self._request(nbd.FLUSH, 0, 0)

    def disconnect(self) -> None:
        """Disconnect and close. Safe to call twice."""
        if self.sock.fileno() >= 0:
            try:
                self.sock.sendall(nbd.REQUEST.pack(nbd.REQUEST_MAGIC, 0, nbd.DISC, 0, 0, 0))
            except OSError:
                pass  # it is gone already
            self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.disconnect()

    def _request(self, op: int, offset: int, length: int, flags: int = 0, data: bytes = b"", expect: int = 0) -> bytes:
        self._cookie += 1
        try:
            self.sock.sendall(nbd.REQUEST.pack(nbd.REQUEST_MAGIC, flags, op, self._cookie, offset, length) + data)
            magic, error, cookie = nbd.REPLY.unpack(self._receive(nbd.REPLY.size))
            if magic != nbd.REPLY_MAGIC or cookie != self._cookie:
                raise self._lost("an answer to another request")
            if error:
                raise NbdError(error, f"the drive refused NBD request {op} at {offset}+{length}")
            return self._receive(expect)
        except NbdError:
            raise
        except OSError as e:
            raise self._lost(e) from e

    def _receive(self, n: int) -> bytes:
        out = bytearray()
        while len(out) < n:
            more = self.sock.recv(n - len(out))
            if not more:
                raise self._lost("the end of the connection")
            out += more
        return bytes(out)

    def _lost(self, seen) -> DriveError:
        return DriveError(f"an NBD drive at {self.path}", str(seen), "see whether its server is still running")


def _connected(path: str | tuple[str, int], timeout_s: float) -> socket.socket:
    if isinstance(path, tuple):
        sock = socket.create_connection(path, timeout_s)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout_s)
        sock.connect(str(path))
    except OSError:
        sock.close()
        raise
    return sock


def _chunks(offset: int, length: int, size: int = CHUNK_BYTES):
    return ((at, min(size, offset + length - at)) for at in range(offset, offset + length, size))
