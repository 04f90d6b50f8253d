"""The bench in the browser beside a run: how far its newest power is behind, what it takes of a core, what it takes
from the run, and what slow readers cost it.

The run is the virtual bench's, in real time, on the same two cores; each pair of runs is one without and one with
the server and a reader. The lag is that of the newest row when its message has arrived here: now less the end of
the row."""

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from selfcheck import Figure, at_least, at_most
from selfcheck.disturbance import CAPACITY, PRESET, SEED, iops_of
from ssdrig.serve.tail import STEP_NS

DURATION_S, PAIRS, WATCHED_S = 30, 3, 20
SLOW, SLOW_S = 50, 30
FLAT_MB = 20.0  # that the memory may differ by, with all of them
SSDRIG = (sys.executable, "-P", "-m", "ssdrig")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Server:
    """`ssdrig serve` of a folder."""

    def __init__(self, runs: Path):
        root = ["--as-root"] if os.geteuid() == 0 else []
        words = [*SSDRIG, "serve", str(runs), "--port", "0", *root]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout
        address, _, self._token = self._process.stdout.readline().strip().partition("/#t=")
        self._port = int(address.rpartition(":")[2])

    def end(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate()

    def cpu_s(self) -> float:
        """Of all its threads, so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def rss_MB(self) -> float:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def ask(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self._token}"})
        return connection.getresponse()

    def slow(self, run_id: str) -> socket.socket:
        """A reader that asks for all of a run, and takes nothing."""
        one = socket.create_connection(("127.0.0.1", self._port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = (
            f"GET /api/live/{run_id} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {self._token}"
        )
        one.sendall(f"{request}\r\n\r\n".encode())
        return one

    def live(self, limit_s: float = 120.0) -> str:
        """The id of the run that goes on, once its load does."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            live = json.load(self.ask("/api/hello"))["live"]
            if live:
                return live[0]["id"]
            time.sleep(0.5)
        raise TimeoutError("no run began")

    def messages(self, run_id: str) -> Iterator[dict]:
        answer, data = self.ask(f"/api/live/{run_id}"), ""
        while line := answer.readline().decode():
            if line.startswith("data: "):
                data = line[6:]
            elif line == "\n" and data:
                yield json.loads(data)
                data = ""


def a_run(folder: Path) -> subprocess.Popen:
    words = [*SSDRIG, "run", "consistency", "--virtual", PRESET, "--capacity", CAPACITY, "--seed", str(SEED)]
    words += ["--duration", f"{DURATION_S}s", "--smart-interval", "5s", "--runs", str(folder), "--json", "--quiet"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    return subprocess.Popen(words, stdout=subprocess.PIPE, env=environ, text=True)


def iops(run: subprocess.Popen) -> float:
    out, _ = run.communicate()
    if run.returncode:
        raise RuntimeError(f"the run ended with {run.returncode}")
    return iops_of(Path(json.loads(out)["run"]) / "fio" / "load")


def beside(folder: Path, seen: dict[str, list[float]]) -> float:
    """IOPS of a run that is looked at; what was seen of the server on the way."""
    folder.mkdir()
    server = Server(folder)
    try:
        run = a_run(folder)
        run_id, loaded_at, cpu_s = server.live(), None, 0.0
        started_s = None
        for message in server.messages(run_id):
            now_s = time.monotonic()
            if "acts" in message:
                began_ns = json.loads(next(folder.glob("*/run.json")).read_text())["started"]["t_ns"]
                started_s = began_ns / 1e9
                continue
            if loaded_at is None and any(row[1] == "load" for row in message.get("load", [])):
                loaded_at, cpu_s = now_s, server.cpu_s()
            if loaded_at is None or now_s - loaded_at > WATCHED_S:
                if loaded_at is not None:
                    break
                continue
            if message.get("preview"):
                assert started_s is not None
                seen["behind_s"].append(now_s - started_s - message["preview"][-1][0] - STEP_NS / 1e9)
                seen["rows"].append(len(message["preview"]))
        seen["core"].append((server.cpu_s() - cpu_s) / (time.monotonic() - (loaded_at or 0)))
        return iops(run)
    finally:
        server.end()


def slow_readers(folder: Path) -> list[Figure]:
    """Memory with one reader, and with SLOW more that take nothing, over SLOW_S."""
    folder.mkdir()
    server, open_ = Server(folder), []
    try:
        run = a_run(folder)
        messages = server.messages(server.live())
        until = time.monotonic() + 5
        while time.monotonic() < until:
            next(messages)
        before = server.rss_MB()
        run_id = server.live()
        open_ = [server.slow(run_id) for _ in range(SLOW)]
        until, most = time.monotonic() + SLOW_S, before
        for _ in messages:
            most = max(most, server.rss_MB())
            if time.monotonic() > until:
                break
        run.communicate()
        return [at_most(f"memory with {SLOW} slow readers more, over {SLOW_S} s", most - before, "MB", FLAT_MB)]
    finally:
        for one in open_:
            with contextlib.suppress(OSError):
                one.close()
        server.end()


def serve() -> list[Figure]:
    rates: dict[str, list[float]] = {"with": [], "without": []}
    seen: dict[str, list[float]] = {"behind_s": [], "core": [], "rows": []}
    with tempfile.TemporaryDirectory(prefix="ssdrig-serve-", dir="/var/tmp") as name:
        for n in range(PAIRS):
            for which in ("with", "without") if n % 2 == 0 else ("without", "with"):
                folder = Path(name, f"{n}-{which}")
                rates[which].append(beside(folder, seen) if which == "with" else iops(a_run(folder)))
                print(f"serve: pair {n + 1}, {which} the server: {rates[which][-1]:.1f} IOPS", file=sys.stderr)
        slow = slow_readers(Path(name, "slow"))
    behind = sorted(seen["behind_s"])
    medians = {which: statistics.median(values) for which, values in rates.items()}
    return [
        at_most("newest power behind, median", statistics.median(behind), "s", 0.5),
        at_most("newest power behind, 99 of 100", behind[int(0.99 * len(behind))], "s", 0.5),
        at_least("rows of power a second", sum(seen["rows"]) / (PAIRS * WATCHED_S), "/s", 9.5),
        at_most("of a core, with a reader", 100 * statistics.median(seen["core"]), "%", 3),
        at_least("IOPS with the server to IOPS without, medians", medians["with"] / medians["without"], "", 0.99),
        *slow,
    ]


BENCHES = {
    "serve": (
        f"the bench in the browser beside a run: lag, CPU, IOPS in {PAIRS} pairs of runs, slow readers (about 6 min)",
        serve,
    )
}
