"""The bench in the browser as a process of its own, on a free port, ended with the test."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

PATIENCE_s = 300  # a page is made at the lowest priority, which on a busy machine gets little


class Serving:
    """with Serving(runs) as s: s.get("/api/hello"). `program`: words of the interpreter in place of those that start
    ssdrig."""

    def __init__(self, runs: Path, *options: str, program: tuple[str, ...] = ("-m", "ssdrig")):
        root = ["--as-root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [sys.executable, *program, "serve", str(runs), "--port", "0", *root, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        line = self.process.stdout.readline()
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#t=([\w-]{43})\n", line)
        if not match:
            self.process.kill()
            raise RuntimeError(f"no address but {line!r}: {self.process.communicate()[1]}")
        self.url, self.port, self.token = line.strip(), int(match[1]), match[2]

    def __enter__(self) -> "Serving":
        with contextlib.suppress(OSError, http.client.HTTPException):  # a test may end it at its start
            self.read()
        return self

    def read(self) -> None:
        """Returns when the server has read all runs: each answer waits for them a while."""
        while self.get("/api/hello")["reading"]:
            pass

    def __exit__(self, *_) -> None:
        self.end()

    def end(self, how: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, how)
        try:
            self.process.communicate(timeout=PATIENCE_s)
        finally:
            self.process.kill()

    def ask(self, method: str, path: str, document=None, headers: dict | None = None, host: str = "127.0.0.1") -> tuple:
        """(status, headers, body) with the token, unless `headers` says otherwise; a header of None is left out."""
        connection = http.client.HTTPConnection(host, self.port, timeout=PATIENCE_s)
        head = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.token}"}
        body = None
        if document is not None:
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            head |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        head |= headers or {}
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in head.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **headers) -> dict | list:
        status, _, body = self.ask("GET", path, headers=headers)
        assert status == 200, (status, body)
        return json.loads(body)

    def stream(self, run_id: str, at: str = ""):
        """Yields (kind, place, object) of each message until the stream ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_s)
        head = {"Authorization": f"Bearer {self.token}", **({"Last-Event-ID": at} if at else {})}
        try:
            connection.request("GET", f"/api/live/{run_id}", headers=head)
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            fields: dict[str, str] = {}
            while line := answer.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    yield fields["event"], fields["id"], json.loads(fields["data"])
                    fields = {}
        finally:
            connection.close()
