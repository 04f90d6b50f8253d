"""A real influxd (1.x) of one's own: private folder, loopback, free ports. For tests, benches and the demo."""

import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from ssdrig.errors import ToolMissing

CONFIG = """\
reporting-disabled = true
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
[monitor]
  store-enabled = false
[subscriber]
  enabled = false
[continuous_queries]
  enabled = false
[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  auth-enabled = {auth}
"""


def command() -> str:
    """Path of influxd. ToolMissing if there is none."""
    found = shutil.which("influxd")
    if not found:
        raise ToolMissing("influxd, the InfluxDB server", "none on the path", "sudo apt install influxdb")
    return found


def free_ports(n: int) -> list[int]:
    """n different TCP ports of 127.0.0.1 that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Influxd:
    """Started with start(), ended with stop() or kill(); keeps its data in `folder` and its port in between."""

    def __init__(self, folder: Path, auth: bool = False):
        self.folder = folder
        self.port, self.rpc = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen | None = None
        folder.mkdir(parents=True, exist_ok=True)
        config = CONFIG.format(folder=folder, port=self.port, rpc=self.rpc, auth=str(auth).lower())
        (folder / "influxd.conf").write_text(config)

    def start(self, timeout_s: float = 60) -> None:
        """Returns when it answers. ToolMissing if it does not come up; its words are in folder/influxd.log."""
        log = self.folder / "influxd.log"
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [command(), "run", "-config", str(self.folder / "influxd.conf")], stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.url + "/ping", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise ToolMissing("influxd that answers", log.read_text(errors="replace")[-500:], f"read {log}")

    def stop(self) -> None:
        """End it as a system would: SIGTERM, data flushed."""
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def kill(self) -> None:
        """kill -9."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def __enter__(self) -> "Influxd":
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.kill()
