"""Sockets with one deadline for a whole exchange: a peer that sends a byte now and then, a header line a second, or
"100 Continue" for ever, is waited for no longer than one that sends nothing."""

import math
import socket
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

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
