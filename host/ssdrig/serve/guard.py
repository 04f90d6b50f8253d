"""Access control: every request is checked here first. Pure, except for the server's own ports.

The server listens on loopback, which every user and every web page of this machine can reach. So each request must
name a host of the list (a page of another site that had its name point here does not), and all data needs the token
that was printed at the start, which no other site and no other user knows. There is no cookie."""

import hmac
import re
from collections.abc import Mapping
from typing import NamedTuple

MOST_BODY = 1 << 16
MOST_URL = 4096
MOST_HEADERS = 64
FETCHED_BY = ("same-origin", "none")
PAGE = re.compile(r"/page/[A-Za-z0-9_-]{43}")  # a report page: its name, 256 bits, is its key
HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Refused(NamedTuple):
    """The response to a refused request."""

    status: int
    why: str


def hosts(port: int) -> frozenset[str]:
    """The valid Host headers of a request."""
    return frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))


def refuse(
    method: str, path: str, headers: list[tuple[bytes, bytes]], allowed: frozenset[str], token: str
) -> Refused | None:
    """Why a request is refused; None: it may go on. `headers`: names in lower case, as they came."""
    if len(headers) > MOST_HEADERS:
        return Refused(431, f"at most {MOST_HEADERS} headers")
    fields: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if name in fields and name in ("host", "authorization", "origin", "content-length", "content-type"):
            return Refused(400, f"{name} is there twice")
        fields[name] = value.decode("latin-1")
    if fields.get("host") not in allowed:
        return Refused(403, "this server answers to its own address only")
    if fields.get("origin", "null") not in {f"http://{host}" for host in allowed} and "origin" in fields:
        return Refused(403, "asked by a page of another site")
    if len(path) > MOST_URL or not path.startswith("/") or "\\" in path or "\0" in path or ".." in path.split("/"):
        return Refused(400, "no path of this server")
    if method not in ("GET", "HEAD", "POST"):
        return Refused(405, "GET, HEAD and POST only")
    if path == "/" and method != "POST":
        return None  # the page without any data
    if fields.get("sec-fetch-site", "none") not in FETCHED_BY:
        return Refused(403, "asked by a page of another site")
    if PAGE.fullmatch(path) and method != "POST":
        return None
    if not bears(fields, token):
        return Refused(401, "the address that was printed at the start has the token")
    return _refuse_body(fields) if method == "POST" else None


def bears(headers: Mapping[str, str], token: str) -> bool:
    """Whether the request has the token; compared in constant time."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _refuse_body(headers: Mapping[str, str]) -> Refused | None:
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Refused(415, "application/json only")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit() or int(length[:12]) > MOST_BODY or "transfer-encoding" in headers:
        return Refused(413, f"a body of at most {MOST_BODY} bytes, with its length")
    return None
