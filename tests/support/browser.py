"""A headless Chromium that opens a local page and evaluates JavaScript in it, over its debugging pipe (two inherited
file descriptors, messages ended by a zero byte; Chrome DevTools Protocol). No port is opened and no network is used."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-default-apps --disable-extensions --disable-breakpad"
    " --disable-crash-reporter --disable-dev-shm-usage --host-resolver-rules=MAP*~NOTFOUND --remote-debugging-pipe"
).split()


def find() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """with Browser() as b: b.open(path, "#hash"); b.js("1 + 1"). Ends the whole process group, whatever happens."""

    def __init__(self, width: int = 1400, height: int = 1200, dark: bool = False):
        self._folder = tempfile.mkdtemp(prefix="ssdrig-browser-")
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        flags = [*FLAGS, f"--user-data-dir={self._folder}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "chromium", find(), *flags, "about:blank"],
            pass_fds=(to_read, to_write),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._n, self._rest, self.events = 0, b"", []
        try:
            pages = self.send("Target.getTargets", session=None)["targetInfos"]
            target = next(p["targetId"] for p in pages if p["type"] == "page")
            self._session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True}, None)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.send(f"{domain}.enable")
            if dark:
                self.send(
                    "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
                )
        except BaseException:
            self.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self) -> None:
        for fd in (self._to, self._from):
            os.close(fd)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for _ in range(20):  # its children may still be writing
            shutil.rmtree(self._folder, ignore_errors=True)
            if not os.path.exists(self._folder):
                break
            time.sleep(0.05)

    def send(self, method: str, params: dict | None = None, session: str | None = "own") -> dict:
        """One command, its result. What the page reports meanwhile is kept in `events`."""
        self._n += 1
        message = {"id": self._n, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._n:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict:
        while b"\0" not in self._rest:
            piece = os.read(self._from, 1 << 20)
            if not piece:
                raise RuntimeError("the browser ended")
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def open(
        self, path: Path, fragment: str = "", ready: str = "document.readyState === 'complete'", limit_s: float = 90
    ) -> None:
        """Load a file and wait until the expression `ready` is true in it."""
        self.go(Path(path).resolve().as_uri() + fragment)
        self.wait(ready, limit_s)

    def go(self, url: str) -> None:
        """To another page. What the one before said until then, of a server that has ended, say, is no event of it."""
        self.send("Page.navigate", {"url": "about:blank"})
        self.js("0")
        self.events.clear()
        self.send("Page.navigate", {"url": url})

    def wait(self, expression: str, limit_s: float = 90) -> None:
        deadline = time.monotonic() + limit_s
        while not self.js(f"Boolean({expression})"):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{expression} did not become true; {self.js('document.body.outerHTML.slice(0, 300)')}"
                )
            time.sleep(0.05)

    def js(self, expression: str):
        """The expression's value (JSON); an exception of the page is raised here."""
        result = self.send("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:500])
        return result["result"].get("value")

    def complaints(self) -> list[str]:
        """Uncaught exceptions, console errors, policy violations, failed requests since open()."""
        self.js("0")
        bad = []
        for event in self.events:
            method, p = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown" or (
                method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning")
            ):
                bad.append(json.dumps(p)[:300])
            elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                bad.append(p["entry"]["text"])
        return bad

    def requests(self) -> list[str]:
        """URLs that the page asked for since open()."""
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]


@pytest.fixture(scope="module")
def chromium():
    """A browser for the tests of one file."""
    if not find():
        pytest.skip("no Chromium is installed: the page was not run")
    with Browser() as browser:
        yield browser
