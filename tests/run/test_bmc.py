"""Power of the host by a BMC: a fake one over HTTP on loopback."""

import base64
import hashlib
import http.server
import json
import shutil
import socketserver
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.run import bmc

NEW = {
    "/redfish/v1/": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
    "/redfish/v1/Chassis": {
        "Members": [{"@odata.id": "/redfish/v1/Chassis/1"}, {"@odata.id": "/redfish/v1/Chassis/2"}]
    },
    "/redfish/v1/Chassis/1": {"Id": "1"},
    "/redfish/v1/Chassis/2": {"EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/2/EnvironmentMetrics"}},
    "/redfish/v1/Chassis/2/EnvironmentMetrics": {"PowerWatts": {"Reading": 181.5}},
}
OLD = {
    "/redfish/v1/": {},
    "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]},
    "/redfish/v1/Chassis/1": {"Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"}},
    "/redfish/v1/Chassis/1/Power": {"PowerControl": [{"PowerConsumedWatts": 100}, {"PowerConsumedWatts": 20.5}, {}]},
}


@pytest.fixture
def served():
    """served(documents, user_and_password, certificate) -> the address of a BMC. `certificate`: file with its key, for
    TLS. served.asked: the headers of all requests."""
    servers = []

    def serve(documents: dict, secret: str | None = None, certificate: Path | None = None) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                serve.asked.append(dict(self.headers))
                word = base64.b64encode((secret or "").encode()).decode()
                good = secret is None or self.headers.get("Authorization") == f"Basic {word}"
                document = documents.get(self.path)
                self.send_response(401 if not good else 404 if document is None else 200)
                self.end_headers()
                if good and document is not None:
                    self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        user = f"{secret.partition(':')[0]}@" if secret else ""
        scheme = "redfish" if certificate else "redfish+http"
        return f"{scheme}://{user}127.0.0.1:{server.server_port}"

    serve.asked = []
    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("documents", "path", "watts"),
    [(NEW, "/redfish/v1/Chassis/2/EnvironmentMetrics", 181.5), (OLD, "/redfish/v1/Chassis/1/Power", 120.5)],
)
def test_the_power_of_a_chassis(served, documents, path, watts):
    one = bmc.Bmc(served(documents))
    assert (one.path, one.why) == (path, None)
    assert one.since() is None
    one.start()
    while (mean := one.since()) is None:
        one.join(0.01)
    one.end()
    one.join()
    assert mean == watts


def test_a_user_and_a_password(served, monkeypatch):
    url = served(NEW, "operator:se:cret")
    monkeypatch.setenv(bmc.PASSWORD, "se:cret")
    assert bmc.Bmc(url).path
    monkeypatch.setenv(bmc.PASSWORD, "wrong")
    assert "401" in bmc.Bmc(url).why


@pytest.fixture(scope="module")
def certificates(tmp_path_factory) -> list[Path]:
    """Two that sign themselves, for another name than the address."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    paths = [tmp_path_factory.mktemp("tls") / f"{n}.pem" for n in range(2)]
    for path in paths:
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        words += ["-days", "30", "-subj", "/CN=bmc", "-keyout", str(path), "-out", str(path.with_suffix(".crt"))]
        subprocess.run(words, check=True, capture_output=True)
        path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return paths


def digest_of(certificate: Path) -> str:
    text = certificate.with_suffix(".crt").read_text()
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()


def test_certificate_that_a_bmc_signed_itself(served, certificates, monkeypatch):
    monkeypatch.setenv(bmc.PASSWORD, "secret")
    monkeypatch.delenv(bmc.FINGERPRINT, raising=False)
    url, digest = served(NEW, "operator:secret", certificates[0]), digest_of(certificates[0])
    unknown = bmc.Bmc(url)
    assert unknown.path is None and digest in unknown.why and served.asked == []
    monkeypatch.setenv(bmc.FINGERPRINT, digest_of(certificates[1]))
    other = bmc.Bmc(url)
    assert other.path is None and digest in other.why and served.asked == []
    colons = ":".join(digest[i : i + 2] for i in range(0, 64, 2)).upper()
    for fingerprint in (digest, colons):
        monkeypatch.setenv(bmc.FINGERPRINT, fingerprint)
        assert bmc.Bmc(url).path
    assert all("Authorization" in headers for headers in served.asked)


@pytest.mark.parametrize("fingerprint", ["x", "00" * 31, "zz" * 32])
def test_what_is_no_fingerprint(monkeypatch, fingerprint):
    monkeypatch.setenv(bmc.FINGERPRINT, fingerprint)
    with pytest.raises(UsageError):
        bmc.check("redfish://192.0.2.1")


@pytest.mark.parametrize(
    "broken",
    [
        {"/redfish/v1/": b"no JSON"},
        {"/redfish/v1/": []},
        {"/redfish/v1/": b"[" * 200_000},
        {"/redfish/v1/": b'{"a":' * 100_000},
        {"/redfish/v1/": b"{}" + bytes(bmc.MOST_BYTES)},
        NEW | {"/redfish/v1/Chassis": {"Members": [{"@odata.id": "/\u00e4 x"}]}},
        NEW | {"/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/ 2\r\nX: 1"}]}},
        NEW | {"/redfish/v1/Chassis/2/EnvironmentMetrics": b'{"PowerWatts":{"Reading":' + b"9" * 400 + b"}}"},
        {"/redfish/v1/": {}, "/redfish/v1/Chassis": {"Members": [3, {"@odata.id": "x"}]}},
        NEW | {"/redfish/v1/Chassis/2/EnvironmentMetrics": {"PowerWatts": {"Reading": None}}},
        NEW | {"/redfish/v1/Chassis/2/EnvironmentMetrics": {"PowerWatts": {"Reading": "181"}}},
    ],
)
def test_a_bmc_without_a_reading_has_a_reason(served, broken):
    one = bmc.Bmc(served(broken))
    assert one.path is None and one.why


class Dripping(socketserver.BaseRequestHandler):
    """A BMC that sends a byte of its answer whenever it is asked for more, and never the last one."""

    def handle(self):
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
        while not self.server.over.wait(0.05):
            try:
                self.request.sendall(b" ")
            except OSError:
                return


def test_a_bmc_that_never_answers_in_full_holds_no_run_up(monkeypatch):
    monkeypatch.setattr(bmc, "SEARCH_S", 0.5)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        server.daemon_threads, server.over = True, threading.Event()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        one = bmc.Bmc(f"redfish+http://127.0.0.1:{server.server_address[1]}")
        server.over.set()
        server.shutdown()
    assert one.path is None and "in full" in one.why


def test_nothing_listens():
    one = bmc.Bmc("redfish+http://127.0.0.1:9")
    assert one.path is None and one.why


@pytest.mark.parametrize(
    "url", ["192.0.2.1", "http://192.0.2.1", "redfish://", "redfish://a:b@192.0.2.1", "redfish://x:y"]
)
def test_what_is_not_the_address_of_a_bmc(url):
    with pytest.raises(UsageError):
        bmc.check(url)


@pytest.mark.parametrize(
    ("document", "watts"),
    [
        ({"PowerWatts": {"Reading": 0}}, 0.0),
        ({"PowerWatts": {"Reading": True}}, None),
        ({"PowerWatts": {"Reading": -1}}, None),
        ({"PowerWatts": {"Reading": 10**400}}, None),
        ({"PowerWatts": {"Reading": float("inf")}}, None),
        ({"PowerWatts": {"Reading": float("nan")}, "PowerControl": [{"PowerConsumedWatts": 7}]}, 7.0),
        ({"PowerControl": {}}, None),
        ({}, None),
    ],
)
def test_readings(document, watts):
    assert bmc.watts_of(document) == watts
