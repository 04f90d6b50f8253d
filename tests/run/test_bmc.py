"""Power of the host by a BMC: a fake one over HTTP on loopback."""

import base64
import http.server
import json
import threading

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
    """served(documents, user_and_password) -> the address of a BMC."""
    servers = []

    def serve(documents: dict, secret: str | None = None) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
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
        threading.Thread(target=server.serve_forever, daemon=True).start()
        user = f"{secret.partition(':')[0]}@" if secret else ""
        return f"redfish+http://{user}127.0.0.1:{server.server_port}"

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


@pytest.mark.parametrize(
    "broken",
    [
        {"/redfish/v1/": b"no JSON"},
        {"/redfish/v1/": []},
        {"/redfish/v1/": {}, "/redfish/v1/Chassis": {"Members": [3, {"@odata.id": "x"}]}},
        NEW | {"/redfish/v1/Chassis/2/EnvironmentMetrics": {"PowerWatts": {"Reading": None}}},
        NEW | {"/redfish/v1/Chassis/2/EnvironmentMetrics": {"PowerWatts": {"Reading": "181"}}},
    ],
)
def test_a_bmc_without_a_reading_has_a_reason(served, broken):
    one = bmc.Bmc(served(broken))
    assert one.path is None and one.why


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
        ({"PowerWatts": {"Reading": float("nan")}, "PowerControl": [{"PowerConsumedWatts": 7}]}, 7.0),
        ({"PowerControl": {}}, None),
        ({}, None),
    ],
)
def test_readings(document, watts):
    assert bmc.watts_of(document) == watts
