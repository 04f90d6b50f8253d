"""A whole run on the virtual bench while InfluxDB is away for more than a third of it: what the journal holds, what was
made into lines, and what the database has in the end are the same numbers."""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from selfcheck import Figure, at_least, exactly, influxd
from ssdrig.base.errors import JournalError
from ssdrig.publish.influx import points
from ssdrig.runs import journal

DURATION_S = 30
AFTER_LOAD_S = 4  # flush, last SMART, draining
AWAY_SHARE = 0.4
LIMIT_S = 600


def influx() -> list[Figure]:
    """Points per measurement in the journal, in points.lp and in a real influxd."""
    server = influxd.start()
    process = None
    try:
        with tempfile.TemporaryDirectory(prefix="ssdrig-influx-", dir="/var/tmp") as runs:
            words = [
                "run",
                "consistency",
                "--virtual",
                "sata-tlc",
                "--duration",
                str(DURATION_S),
                "--influx",
                server.url,
                "--runs",
                runs,
                "--quiet",
            ]
            process = subprocess.Popen([sys.executable, "-P", "-m", "ssdrig", *words], stdout=subprocess.DEVNULL)
            run = _wait_for_load(process, Path(runs))
            started_ns = journal.open_run(run)["started"]["t_ns"]
            away_s = AWAY_SHARE * ((time.monotonic_ns() - started_ns) / 1e9 + DURATION_S + AFTER_LOAD_S)
            server.kill()
            killed_ns = time.monotonic_ns()
            time.sleep(min(away_s, DURATION_S - 2))
            server.restart()
            away_ns = time.monotonic_ns() - killed_ns
            exit_code = process.wait(LIMIT_S)
            took_ns = journal.events(run)[-1]["t_ns"] - started_ns
            return [
                at_least("share of the run without influxd", away_ns / took_ns, "1", 1 / 3),
                exactly("exit code of the run", exit_code, "", 0),
                *_compare(run, server),
            ]
    finally:
        if process:
            process.kill()
            process.wait()
        server.stop()


def _wait_for_load(process: subprocess.Popen, runs: Path) -> Path:
    """The run's folder, once its load step has begun."""
    deadline = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        for header in runs.glob("[!.]*/run.json"):
            if any(e["kind"] == "step.start" and e["step"] == "load" for e in journal.events(header.parent)):
                return header.parent
        time.sleep(0.2)
    raise JournalError("a run that reaches its load", f"exit code {process.poll()}", "see its output above")


def _compare(run: Path, server: influxd.Influxd) -> list[Figure]:
    expected = points.counts(run)
    lines = Counter(line.split(b",", 1)[0].decode() for line in (run / "points.lp").read_bytes().splitlines())
    stored = server.counts(list(expected), run)
    rejected = run / "rejected.jsonl"
    return [
        *(exactly(f"{name}, lines made", lines[name], "points", number) for name, number in expected.items()),
        *(exactly(f"{name}, in the database", stored[name], "points", number) for name, number in expected.items()),
        exactly(
            "lines not acknowledged",
            sum(lines.values()) - json.loads((run / "points.cursor").read_bytes())["lines"],
            "points",
            0,
        ),
        exactly("lines refused", len(rejected.read_bytes().splitlines()) if rejected.exists() else 0, "points", 0),
    ]


BENCHES = {
    "influx": (
        "InfluxDB away for more than a third of a run: point counts equal to the journal's (about 1.5 min)",
        influx,
    )
}
