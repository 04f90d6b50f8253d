"""A private influxd 1.x: own folder, loopback, free ports. For tests and selfcheck."""

import functools
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from ssdrig.base import prctl
from ssdrig.base.child_cpu import NotReady, wait_while_working
from ssdrig.base.errors import ToolMissing
from ssdrig.publish.influx import address, link, query, verify
from ssdrig.runs import parts

DATABASE = "ssdrig"
READY_CPU_S = 60.0  # CPU time; a normal start takes less than 1 s

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
    """Path of influxd. Raises ToolMissing without one."""
    binary = shutil.which("influxd")
    if not binary:
        raise ToolMissing("influxd, the InfluxDB server", "none on the path", "sudo apt install influxdb")
    return binary


def held_ports(n: int) -> list[socket.socket]:
    """Sockets, each bound to a different TCP port of 127.0.0.1, reserved while they are open. None
    of them listens, so that a server can which reuses addresses, as Go's do."""
    held = []
    for _ in range(n):
        held.append(socket.socket())
        held[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held[-1].bind(("127.0.0.1", 0))
    return held


class Influxd:
    """A server with one database, `url`; it keeps data and ports from one life to the next. Dies with our process.

    folder None: a temporary one, which stop() removes. ToolMissing if influxd is absent or does not come up."""

    def __init__(self, folder: Path | None = None, auth: bool = False):
        command()
        self._private = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="ssdrig-influxd-")) if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held = held_ports(2)  # also while it is down between two lives
        self.port, rpc = (socket_.getsockname()[1] for socket_ in self._held)
        self.url = f"http://127.0.0.1:{self.port}/{DATABASE}"
        self._process: subprocess.Popen | None = None
        config = CONFIG.format(folder=self.folder, port=self.port, rpc=rpc, auth=str(auth).lower())
        (self.folder / "influxd.conf").write_text(config)

    def restart(self) -> None:
        """Start it, ended before if it runs. Returns when it answers."""
        self.terminate()
        log = self.folder / "influxd.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [command(), "run", "-config", str(self.folder / "influxd.conf")],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=functools.partial(prctl.die_with_parent, os.getpid()),
            )
        try:
            wait_while_working(self._process, self._answers, most_cpu_s=READY_CPU_S, poll_s=0.05)
        except NotReady as why:
            self.kill()
            words = log.read_text(errors="replace")[-500:].strip()
            raise ToolMissing(
                "influxd to answer", f"{why.reason}: {words}" if words else why.reason, f"see {log}"
            ) from None

    def _answers(self) -> bool | None:
        """True once it does."""
        to = address.target(self.url, {})
        return link.request(to, "/query", b"q=SHOW+DATABASES", link.FORM).status > 0 or None

    def terminate(self) -> None:
        """End it as a system would: SIGTERM, data flushed."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            try:
                wait_while_working(self._process, self._process.poll, idle_s=10, most_cpu_s=READY_CPU_S)
            except NotReady:
                self._process.kill()
                self._process.wait()
        self._process = None

    def kill(self) -> None:
        """kill -9."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it for good."""
        self.terminate()
        for socket_ in self._held:
            socket_.close()
        if self._private:
            shutil.rmtree(self.folder, ignore_errors=True)

    def rss_B(self) -> int:
        """Memory that it holds now; 0 if it does not run."""
        if not self._process:
            return 0
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS:"))

    def counts(self, measurements: list[str], run: Path | None = None, database: str = DATABASE) -> dict[str, int]:
        """Points that it holds, of a folder with points.lp (and its parts) or of all, 0 where it has none."""
        to = address.target(self.url.removesuffix(DATABASE) + database, {})
        stored = query.stored_counts(to) if run is None else verify.stored(parts.of(run), to)
        return {name: stored.get(name, 0) for name in measurements}


def start(folder: Path | None = None, auth: bool = False) -> Influxd:
    """An Influxd that answers."""
    server = Influxd(folder, auth)
    try:
        server.restart()
    except BaseException:
        server.stop()
        raise
    return server
