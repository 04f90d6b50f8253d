"""Power of the whole host as its BMC reports it, by Redfish over HTTP: a context channel next to the drive's power,
never the drive's.

Sources: DMTF DSP0266 (service root, collections, basic authentication), DSP0268 (schemas EnvironmentMetrics, property
PowerWatts.Reading, and Power, PowerControl[].PowerConsumedWatts, which it replaces since 2020.4).

`redfish://[USER@]HOST[:PORT]` is HTTPS, `redfish+http://` plain HTTP. The password is $SSDRIG_BMC_PASSWORD. The
certificate must be one that this machine trusts, or the one whose SHA-256 is $SSDRIG_BMC_FINGERPRINT: most BMCs sign
their own. Nothing is sent to another one."""

import base64
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ssdrig.base.errors import UsageError

if TYPE_CHECKING:
    import http.client

PASSWORD, FINGERPRINT = "SSDRIG_BMC_PASSWORD", "SSDRIG_BMC_FINGERPRINT"
SCHEMES = {"redfish": 443, "redfish+http": 80}  # and the port
INTERVAL_S = 5.0  # a BMC averages over a second or more, and answers in tenths of a second
LIMIT_S = 10.0  # of each wait for bytes
SEARCH_S = 30.0  # for the chassis: a BMC that sends a byte now and then would hold the run up for hours
MOST_BYTES = 1 << 20
MOST_CHASSIS = 16
HINT = "name it as in redfish://USER@HOST, with the password in $SSDRIG_BMC_PASSWORD"


def check(url: str) -> None:
    """Raises UsageError for an address that is not one of a BMC."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in SCHEMES or not parts.hostname or port == 0 or parts.password is not None:
        seen = "a password in the address" if parts.password is not None else url[:80]
        raise UsageError("the address of a BMC", seen, HINT)
    fingerprint = os.environ.get(FINGERPRINT, "")
    if fingerprint and not re.fullmatch("[0-9a-f]{64}", _digits(fingerprint)):
        do = "copy the 64 hexadecimal digits that the BMC's own page, or a run without it, shows"
        raise UsageError(f"the SHA-256 of a certificate in ${FINGERPRINT}", fingerprint[:100], do)


class Bmc(threading.Thread):
    """Reads the power each INTERVAL_S in its thread. `url`: see check(). `path`: of the resource with its power; None:
    no chassis reports it, and `why`."""

    def __init__(self, url: str):
        super().__init__(name="bmc", daemon=True)
        check(url)
        parts = urlsplit(url)
        self._tls = parts.scheme == "redfish"
        self._host, self._port = parts.hostname or "", parts.port or SCHEMES[parts.scheme]
        user, password = parts.username or "", os.environ.get(PASSWORD, "")
        self._headers = {"Accept": "application/json", "OData-Version": "4.0"}
        if user:
            word = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {word}"
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._watts: list[float] = []  # since the last call of since()
        self.path, self.why = self._resource()

    def _resource(self) -> tuple[str | None, str | None]:
        """The path of a resource with a power reading, or why no chassis has one, within SEARCH_S."""
        answer: SimpleQueue[tuple[str | None, str | None]] = SimpleQueue()
        threading.Thread(target=lambda: answer.put(self._search()), name="bmc-search", daemon=True).start()
        try:
            return answer.get(timeout=SEARCH_S)
        except Empty:
            return None, f"it did not answer in full within {SEARCH_S:g} s"

    def _search(self) -> tuple[str | None, str | None]:
        try:
            for path in self._candidates():
                if watts_of(self._get(path)) is not None:
                    return path, None
        except (OSError, ValueError, RecursionError) as error:
            return None, str(error) or type(error).__name__
        return None, "no chassis reports its power"

    def _candidates(self) -> Iterator[str]:
        """EnvironmentMetrics of each chassis, then its Power."""
        root = self._get("/redfish/v1/")
        members = _list(self._get(_link(root.get("Chassis")) or "/redfish/v1/Chassis").get("Members"))
        chassis = [self._get(path) for member in members[:MOST_CHASSIS] if (path := _link(member))]
        for key in ("EnvironmentMetrics", "Power"):
            yield from (path for one in chassis if (path := _link(one.get(key))))

    def _get(self, path: str) -> dict[str, Any]:
        """A resource. Raises OSError, ValueError."""
        import http.client  # with TLS the import doubles the start-up time

        connection = self._connection()
        try:
            connection.request("GET", path, headers=self._headers)
            reply = connection.getresponse()
            body = reply.read(MOST_BYTES + 1)
        except http.client.HTTPException as error:
            raise OSError(f"no answer in HTTP: {type(error).__name__}") from error
        finally:
            connection.close()
        if reply.status != 200:
            raise OSError(f"GET {path}: status {reply.status}")
        document = json.loads(body) if len(body) <= MOST_BYTES else None
        if not isinstance(document, dict):
            raise ValueError(f"GET {path}: no JSON object")
        return document

    def _connection(self) -> "http.client.HTTPConnection":
        """To the BMC, by TLS to one that is proven to be meant. Raises OSError."""
        import http.client

        if not self._tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=LIMIT_S)
        import ssl

        context, meant = ssl.create_default_context(), _digits(os.environ.get(FINGERPRINT, ""))
        if meant:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # by the fingerprint, below
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=LIMIT_S, context=context)
        try:
            connection.connect()
        except ssl.SSLCertVerificationError as error:
            raise OSError(self._untrusted(error.verify_message)) from error
        seen = hashlib.sha256(connection.sock.getpeercert(True) or b"").hexdigest()
        if meant and seen != meant:
            connection.close()
            raise OSError(f"its certificate is another one: SHA-256 {seen}, ${FINGERPRINT} {meant}")
        return connection

    def _untrusted(self, why: str) -> str:
        """Why the certificate is not trusted, and which one it is. Nothing but a handshake is sent to ask."""
        import ssl

        try:
            text = ssl.get_server_certificate((self._host, self._port), timeout=LIMIT_S)
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()
        except (OSError, ValueError):
            return f"its certificate is not trusted: {why}"
        return (
            f"its certificate is not trusted: {why}; if its SHA-256 is the one that the BMC's own page shows, set"
            f" {FINGERPRINT}={digest}"
        )

    def run(self) -> None:
        while self.path and not self._ended.is_set():
            begun = time.monotonic()
            try:
                watts = watts_of(self._get(self.path))
            except (OSError, ValueError, RecursionError):
                watts = None  # a BMC may be busy; the time without a reading has none
            if watts is not None:
                with self._lock:
                    self._watts.append(watts)
            self._ended.wait(max(0.1, INTERVAL_S - (time.monotonic() - begun)))

    def since(self) -> float | None:
        """Mean power in W of the readings since the last call; None without any."""
        with self._lock:
            watts, self._watts = self._watts, []
        return round(sum(watts) / len(watts), 3) if watts else None

    def end(self) -> None:
        """End the thread; a request under way ends with the process."""
        self._ended.set()


def _digits(fingerprint: str) -> str:
    """Without colons, in small letters."""
    return fingerprint.replace(":", "").strip().lower()


def watts_of(document: dict[str, Any]) -> float | None:
    """The power that a resource reports, W: EnvironmentMetrics, or Power, whose control loops add up."""
    reading = document.get("PowerWatts")
    if isinstance(reading, dict) and _sound(reading.get("Reading")):
        return float(reading["Reading"])
    loops: list[Any] = [one for one in _list(document.get("PowerControl")) if isinstance(one, dict)]
    known = [float(one["PowerConsumedWatts"]) for one in loops if _sound(one.get("PowerConsumedWatts"))]
    return sum(known) if known else None


def _sound(watts) -> bool:
    return type(watts) in (int, float) and 0 <= watts < 1e6  # false for NaN, and for an int of a thousand digits


def _link(of) -> str | None:
    """The path in {"@odata.id": path}."""
    path = of.get("@odata.id") if isinstance(of, dict) else None
    return path if isinstance(path, str) and path.startswith("/") and path.isprintable() else None


def _list(value) -> list:
    return value if isinstance(value, list) else []
