"""kill -9 at random moments of a run: of the host, the firmware's interpreter, the drive's server, influxd.

After each kill: nothing that the run had acknowledged as kept is missing, the run's state is clear, its figures and
page can be built, no process is left behind, and points that InfluxDB had acknowledged are in it."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, exactly, influxd, with_me
from ssdrig.publish.influx import points
from ssdrig.reading import table
from ssdrig.report import page
from ssdrig.runs import journal

VICTIMS = ("host", "firmware", "drive", "influxd")
EXPECTED = {"host": {"died"}, "firmware": {"complete"}, "drive": {"failed"}, "influxd": {"complete"}}
RUN_WORDS = [
    "run",
    "consistency",
    "--virtual",
    "sata-tlc",
    "--capacity",
    "256MiB",
    "--duration",
    "5",
    "--jsonl",
    "--quiet",
]
EARLIEST_S, LATEST_S = 0.2, 6.0  # after the first acknowledgement
LIMIT_S = 120
GONE_S = 5  # a drive whose host was killed is kept (virtual/device/persistence.py)


def kills(count: int, seed: int = 1) -> list[dict]:
    """Carry out `count` runs, each with one kill. Returns one dict per run: victim, after_s, state, faults (list of
    words)."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-kill-", dir="/var/tmp"))
    results = []
    try:
        for i in range(count):
            victim = VICTIMS[i % len(VICTIMS)]
            result = _one(victim, chance.uniform(EARLIEST_S, LATEST_S), folder / str(i))
            results.append(result)
            print(
                f"kill {i + 1}/{count}: {victim} after {result['after_s']:.2f} s: {result['state']}"
                f" {result['faults'] or 'ok'}",
                file=sys.stderr,
            )
            shutil.rmtree(folder / str(i))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def _one(victim: str, after_s: float, folder: Path) -> dict:
    database = influxd.start() if victim == "influxd" else None
    words = [sys.executable, "-P", "-m", "ssdrig", *RUN_WORDS, "--runs", str(folder)]
    if database:
        words += ["--influx", database.url]
    folder.mkdir()
    output = folder / "output.jsonl"
    with output.open("wb") as out:
        host = subprocess.Popen(
            words, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=with_me()
        )
    faults, family, killed, killer_at = [], set(), False, None
    try:
        deadline = time.monotonic() + LIMIT_S
        while host.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            if killer_at is None and b"\n" in output.read_bytes():
                killer_at = time.monotonic() + after_s
            if not killed and killer_at and time.monotonic() >= killer_at:
                family |= descendants(host.pid)
                killed = end_one(victim, host.pid, database)
        if host.poll() is None:
            faults.append(f"the run did not end within {LIMIT_S} s")
            host.kill()
        acknowledged: dict = {}
        for line in output.read_text().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                acknowledged |= json.loads(line)
        if not acknowledged:
            raise AssertionError(f"the run did not start: {output.read_text()[-500:]}")
        deadline = time.monotonic() + GONE_S
        while (left := [pid for pid in family if pid != host.pid and alive(pid)]) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            faults.append(f"processes left behind: {[words_of_process(pid) for pid in left]}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        run = Path(acknowledged["run"])
        state = journal.state(run)
        if killed and state not in EXPECTED[victim]:
            faults.append(f"state {state}, exit {host.returncode}, why {journal.events(run)[-1].get('why')}")
        faults += _check_kept(run, acknowledged.get("kept"))
        faults += _check_report(run)
        if database:
            faults += _check_database(run, database)
        return {"victim": victim, "after_s": after_s, "killed": killed, "state": state, "faults": faults}
    finally:
        host.kill()
        host.wait()
        if database:
            database.stop()


def end_one(victim: str, host_pid: int, database: influxd.Influxd | None = None) -> bool:
    """Kill -9 one of VICTIMS of a run; False where it is not there (yet)."""
    if victim == "host":
        os.kill(host_pid, signal.SIGKILL)
        return True
    if victim == "influxd":
        assert database is not None  # whose run pushes
        database.kill()
        time.sleep(1.0)
        database.restart()
        return True
    mark = {"firmware": "run_board.py", "drive": "ssdrig.virtual.serve"}[victim]
    for pid in descendants(host_pid):
        if mark in words_of_process(pid):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def _check_kept(run: Path, acknowledged: dict | None) -> list[str]:
    """What was acknowledged is on disk and reads without damage."""
    if not acknowledged:
        return []
    faults = []
    for name in ("events.jsonl", "rig.bin"):
        if (run / name).stat().st_size < acknowledged[name]:
            faults.append(f"{name} is shorter than acknowledged")
    readable = 0
    for line in (run / "events.jsonl").read_bytes()[: acknowledged["events.jsonl"]].splitlines(keepends=True):
        json.loads(line)
        readable += len(line)
    if readable != acknowledged["events.jsonl"]:
        faults.append("acknowledged events do not end at a line's end")
    good_bytes = journal.records(run).next_offset
    if good_bytes < acknowledged["rig.bin"]:
        faults.append(f"only {good_bytes} of {acknowledged['rig.bin']} acknowledged bytes of rig.bin are readable")
    return faults


def _check_report(run: Path) -> list[str]:
    try:
        data, figures, _ = table.in_full(run)
        html = page.render([], 0, [(data, figures)])
    except Exception as error:
        return [f"report does not build: {error!r}"]
    return [] if figures["run"] and len(html) > 10_000 else ["report is empty"]


def _check_database(run: Path, database) -> list[str]:
    sent = subprocess.run(
        [sys.executable, "-P", "-m", "ssdrig", "push", str(run), "--influx", database.url, "--timeout", "30"],
        capture_output=True,
        text=True,
    )
    if sent.returncode:
        return [f"push after restart: exit {sent.returncode}: {sent.stderr.strip()[-300:]}"]
    expected = points.counts(run)
    stored = database.counts(list(expected), run)
    return [] if stored == expected else [f"database {stored} journal {expected}"]


def descendants(pid: int) -> set[int]:
    pids: set[int] = set()
    try:
        children = [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return pids
    for child in children:
        pids |= {child} | descendants(child)
    return pids


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def words_of_process(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill() -> list[Figure]:
    results = kills(50)
    return [
        exactly("kills carried out", sum(r["killed"] for r in results), "kills", len(results)),
        exactly("runs with a fault after the kill", sum(bool(r["faults"]) for r in results), "runs", 0),
    ]


BENCHES = {
    "kill": ("kill -9 of host, firmware, drive server or influxd at random moments, 50 times (about 12 min)", kill)
}
