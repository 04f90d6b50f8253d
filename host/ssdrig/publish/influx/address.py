"""The address of an InfluxDB, with or without its credentials.

    http[s]://[user:password@]host[:port]/DB[?rp=POLICY]      any generation, by the interface of 1.x
    http[s]://host[:port]/?bucket=BUCKET[&org=ORG]            2.x by its own interface, /api/v2/write

The port is 8086 of http, 443 of https. A path before the last part is a proxy's prefix."""

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from ssdrig.base.errors import UsageError

DEFAULT_PORT = {"http": 8086, "https": 443}
V2_PATH = "/api/v2/write"
EXAMPLE = "an InfluxDB address such as http://127.0.0.1:8086/ssdrig, or http://host:8086/?org=ORG&bucket=BUCKET of 2.x"


@dataclass(frozen=True)
class Target:
    """Where to. Prints without user, password and token. bucket: `database` is one, written to by 2.x's interface."""

    scheme: str
    host: str
    port: int
    prefix: str
    database: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    rp: str = ""
    org: str = ""
    bucket: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        base = f"{self.scheme}://{host}:{self.port}{self.prefix}"
        if self.bucket:
            return f"{base}/?" + urlencode(({"org": self.org} if self.org else {}) | {"bucket": self.database})
        return f"{base}/{quote(self.database, safe='')}" + (f"?{urlencode({'rp': self.rp})}" if self.rp else "")

    @property
    def write_path(self) -> str:
        if self.bucket:
            org = {"org": self.org} if self.org else {}
            return f"{V2_PATH}?" + urlencode(org | {"bucket": self.database, "precision": "ns"})
        rp = {"rp": self.rp} if self.rp else {}
        return "/write?" + urlencode({"db": self.database} | rp | {"precision": "ns"})

    @property
    def is_near(self) -> bool:
        """Whether it is this machine: there gzip costs more than it saves."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def target(url: str, environ: Mapping[str, str] = os.environ) -> Target:
    """Text of an address -> Target. SSDRIG_INFLUX_USER, SSDRIG_INFLUX_PASSWORD and SSDRIG_INFLUX_TOKEN win over the
    URL's. With the interface of 1.x a token may also be the password, the user anything. Raises UsageError, which never
    shows a password."""
    try:
        url.encode()  # lone surrogates, from bytes that are not UTF-8, cannot be sent
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORT.get(parts.scheme, 0)
        (parts.hostname or "").encode(
            "idna"
        )  # what http.client does to it: a..b and a label of 64 letters are not hosts
        asked = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else {}
        prefix, database = _where(parts.path, asked)
        good = parts.scheme in DEFAULT_PORT and parts.hostname and database and not parts.fragment
        good = good and all(len(values) == 1 and values[0] for values in asked.values())
        good = good and not (set(asked) - ({"org", "bucket"} if "bucket" in asked else {"rp"}))
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            EXAMPLE,
            f"{len(url)} characters that are not one (not shown, they may hold a password)",
            "correct --influx or SSDRIG_INFLUX",
        )
    user = environ.get("SSDRIG_INFLUX_USER", unquote(parts.username or ""))
    password = environ.get("SSDRIG_INFLUX_PASSWORD", unquote(parts.password or ""))
    token = environ.get("SSDRIG_INFLUX_TOKEN", "")
    if "bucket" in asked:
        token, user, password = token or password, "", ""
    rp, org = (asked.get(name, [""])[0] for name in ("rp", "org"))
    if not (token.isascii() and token.isprintable()):
        raise UsageError("a token of printable ASCII", "other characters", "copy it again")
    endpoint = parts.scheme, parts.hostname or "", port, quote(prefix, safe="/%:@!$&'()*+,;=")
    return Target(*endpoint, database, user, password, token, rp, org, "bucket" in asked)


def _where(path: str, asked: Mapping[str, list[str]]) -> tuple[str, str]:
    """Prefix, and database or bucket."""
    if "bucket" in asked:
        return path.rstrip("/").removesuffix(V2_PATH), asked["bucket"][0]
    prefix, _, database = path.rstrip("/").rpartition("/")
    return prefix, unquote(database)
