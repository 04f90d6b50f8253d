"""HTTP to an InfluxDB: a connection that is kept, on which a request is sent now and its answer read later.

Sockets with one deadline for a whole exchange: a peer that sends a byte now and then, a header line a second, or
"100 Continue" for ever, is waited for no longer than one that sends nothing."""

import base64
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, cast

from ssdrig.publish.influx.address import Target

if TYPE_CHECKING:
    import ssl


class Bounded:
    """Base of a socket. `until`: when each wait for the peer ends with TimeoutError, time.monotonic()."""

    until = math.inf
    settimeout: Callable
    send: Callable

    def recv_into(self, *args, **how):
        self.settimeout(left_s(self.until))
        return super().recv_into(*args, **how)  # type: ignore[misc]

    def sendall(self, data, flags=0):
        rest = memoryview(data).cast("B")
        while len(rest):
            self.settimeout(left_s(self.until))
            rest = rest[self.send(rest, flags) :]


class Plain(Bounded, socket.socket):
    """A TCP socket."""


def left_s(until: float) -> float | None:
    """Seconds until then, None for ever. Raises TimeoutError when it is over."""
    if until == math.inf:
        return None
    if (left := until - time.monotonic()) <= 0:
        raise TimeoutError("timed out")
    return left


def context() -> "ssl.SSLContext":
    """What makes of a Plain a TLS socket with the same bound."""
    import ssl  # doubles the start-up time

    class Tls(Bounded, ssl.SSLSocket):
        pass

    made = ssl.create_default_context()
    made.set_alpn_protocols(["http/1.1"])
    made.sslsocket_class = Tls
    return made


def connected(host: str, port: int, until: float, tls: "ssl.SSLContext | None" = None) -> Plain:
    """A connection to the first address of a host that answers, TLS handshake and all. Raises OSError, TimeoutError."""
    failed: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in _addresses(host, port, until):
        sock = Plain(family, kind, protocol)
        try:
            sock.settimeout(left_s(until))
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is None:
                return sock
            sock.settimeout(left_s(until))  # the handshake as a whole
            return tls.wrap_socket(sock, server_hostname=host)  # type: ignore[return-value]
        except OSError as error:
            failed = error
            sock.close()
        except BaseException:
            sock.close()
            raise
    raise failed


def _addresses(host: str, port: int, until: float) -> list:
    """The system's resolver has no time-out and cannot be stopped: it is left running in a daemon thread."""
    results: list = []

    def ask() -> None:
        try:
            results.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            results.append(error)

    thread = threading.Thread(target=ask, name="resolver", daemon=True)
    thread.start()
    thread.join(left_s(until))
    if not results:
        raise TimeoutError(f"no address of {host} in time")
    if isinstance(results[0], OSError):
        raise results[0]
    if isinstance(results[0], Exception):
        raise OSError(str(results[0])) from results[0]
    return results[0]


if TYPE_CHECKING:
    import http.client  # imported only for a connection: with TLS the import doubles the start-up time

CONNECT_S, ANSWER_S = 5, 60
LAST_S = 4.0  # added to a time-out for the last answer
LATE_S = 1.0  # for an answer that came while another was waited for
RETRY_AFTER_CAP_S = 600.0
NO_ANSWER, BROKEN = 0, -1  # in place of a status: no server; the connection broke during the exchange
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Answer(NamedTuple):
    """HTTP status, or NO_ANSWER or BROKEN; the first words of the body or of the error; seconds of Retry-After."""

    status: int
    words: str
    retry_after_s: float = 0.0


class Link:
    """One connection to `to`, opened when first needed and kept. Never raises: what went wrong is the answer.

    `answer_s`: the most that a request and its whole answer may take, besides CONNECT_S for a new connection; `until`
    (time.monotonic): when both end whatever is under way."""

    def __init__(self, to: Target, answer_s: float = ANSWER_S):
        import http.client

        self.to, self.answer_s, self.until = to, answer_s, math.inf
        self._errors = OSError, http.client.HTTPException
        self._tls = context() if to.scheme == "https" else None
        self._connection = (
            http.client.HTTPSConnection(to.host, to.port, context=self._tls)
            if self._tls
            else http.client.HTTPConnection(to.host, to.port)
        )
        self._failed: Answer | None = None  # of the request under way
        self._cut: OSError | None = None  # while it was sent: the server may have answered before it cut
        self._answer_until = math.inf

    def close(self) -> None:
        self._connection.close()

    def send(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        """One POST; receive() before the next. A kept connection that the server has closed meanwhile is made again."""
        self._failed, self._cut = None, None
        try:
            if self._connection.sock and select.select([self._connection.sock], [], [], 0)[0]:
                self._connection.close()  # no request is open, so readable means closed
            if self._connection.sock is None:
                until = min(self.until, time.monotonic() + CONNECT_S)
                self._connection.sock = connected(self.to.host, self.to.port, until, self._tls)
        except (OSError, ValueError) as error:
            self._failed = Answer(NO_ANSWER, _reason(error))
            self._connection.close()
            return
        self._answer_until = time.monotonic() + self.answer_s
        try:
            self._bound(self._answer_until)
            self._connection.request("POST", self.to.prefix + path, body, dict(headers) | self._credentials())
        except (BrokenPipeError, ConnectionResetError) as error:
            self._cut = error
        except self._errors as error:
            self._fail(error)

    def receive(self, most_bytes: int = 1 << 20) -> Answer:
        """The answer to the request, its words up to most_bytes."""
        if self._failed is None:
            try:
                # what came while another link was waited for can still be read
                self._bound(max(self._answer_until, time.monotonic() + LATE_S))
                reply = self._connection.getresponse()
                words = self._body(reply, most_bytes).decode("utf-8", "replace").strip()
                now_s = date_s(reply.getheader("Date"), time.time())  # the server's: our clock may be set meanwhile
                wait_s = retry_after_s(reply.getheader("Retry-After"), now_s)
                if reply.read(1):  # longer than any valid answer
                    self._connection.close()
                return Answer(reply.status, words, wait_s)
            except (*self._errors, ValueError) as error:  # a chunk of -5 bytes is a ValueError
                self._fail(self._cut or error)
        return self._failed or Answer(BROKEN, "")

    def _bound(self, until: float) -> None:
        if (sock := self._connection.sock) is not None:
            cast(Plain, sock).until = min(until, self.until)

    def _body(self, reply: "http.client.HTTPResponse", most_bytes: int) -> bytes:
        out = bytearray()
        while len(out) < most_bytes and (piece := reply.read1(most_bytes - len(out))):
            out += piece
        return bytes(out)

    def _fail(self, error: Exception) -> None:
        self._failed = Answer(BROKEN, _reason(error))
        self._connection.close()

    def _credentials(self) -> dict[str, str]:
        if self.to.token:
            return {"Authorization": f"Token {self.to.token}"}
        if self.to.user or self.to.password:
            both = f"{self.to.user or 'any'}:{self.to.password}".encode(errors="surrogateescape")
            return {"Authorization": "Basic " + base64.b64encode(both).decode()}
        return {}


def request(
    to: Target, path: str, body: bytes, headers: Mapping[str, str], most_bytes: int = 1 << 20, until: float = math.inf
) -> Answer:
    """One POST on its own connection, over at `until` (time.monotonic)."""
    link = Link(to)
    link.until = until
    try:
        link.send(path, body, dict(headers) | {"Connection": "close"})
        return link.receive(most_bytes)
    finally:
        link.close()


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def retry_after_s(value: str | None, now_s: float) -> float:
    """Retry-After (RFC 9110 10.2.3: seconds, or an HTTP date) -> seconds from now, 0 to 10 minutes; 0 if not
    understood."""
    if not value:
        return 0.0
    if value.strip().isdecimal():
        wait_s = float(value)  # inf beyond 1e308
    else:
        wait_s = date_s(value, now_s) - now_s
    return min(max(wait_s, 0.0), RETRY_AFTER_CAP_S)


def date_s(value: str | None, otherwise_s: float) -> float:
    """An HTTP date -> seconds since 1970; otherwise_s if it is invalid."""
    import email.utils

    try:
        return email.utils.parsedate_to_datetime(value or "").timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return otherwise_s
