"""kill -9 at random moments of a campaign of power cuts: of the host, of the firmware's interpreter, of the drive's
server. After each kill `resume` goes on: no judged session is lost or judged again, no cut accuses the drive, which
keeps its promises, and no process is left behind."""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ssdrig import journal, parts
from ssdrig.benchmarks import Figure, exactly, in_turn, kill
from ssdrig.powerloss import sessions

VICTIMS = ("host", "firmware", "drive")
CUTS = 4
SET = ["write=0.5 s", "off_time=0.6 s", "window=32 MiB"]
WORDS = ["run", "powerloss", "--virtual", "sata-tlc", "--capacity", "512MiB", "--cuts", str(CUTS), "--jsonl", "--quiet"]
LATEST_S = 6.0  # after the first session was planned
LIMIT_S = 240
RESUMES = 3  # after a kill of firmware or drive the run may fail once more before it can go on


def kills(count: int, seed: int = 1) -> list[dict]:
    """Carry out `count` campaigns, each with one kill: dicts with victim, after_s, killed, kept (sessions that were
    judged by then) and faults (list of words)."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-kill-", dir="/var/tmp"))
    found = []
    try:
        for n in in_turn(range(count), "powerloss-kill"):
            one = _one(VICTIMS[n % len(VICTIMS)], chance.uniform(0.0, LATEST_S), folder / str(n))
            found.append(one)
            words = f"kill {n + 1}: {one['victim']} after {one['after_s']:.2f} s, {one['kept']} sessions judged"
            print(f"{words}: {one['faults'] or 'ok'}", file=sys.stderr)
            shutil.rmtree(folder / str(n))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _one(victim: str, after_s: float, folder: Path) -> dict:
    folder.mkdir()
    words = [sys.executable, "-m", "ssdrig", *WORDS, "--runs", str(folder)]
    for each in SET:
        words += ["--set", each]
    family: set[int] = set()
    with open(folder / "said", "wb") as said:
        host = subprocess.Popen(words, stdout=said, stderr=said, start_new_session=True)
    killed, due, deadline = False, None, time.monotonic() + LIMIT_S
    try:
        while host.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
            run = next(folder.glob("2*"), None)
            if due is None and run and any(each["kind"] == "cut.plan" for each in journal.events(run)):
                due = time.monotonic() + after_s
            if due and not killed and time.monotonic() >= due:
                family |= kill.descendants(host.pid)
                killed = kill.end_one(victim, host.pid)
        faults = [] if host.poll() is not None else [f"it did not end within {LIMIT_S} s"]
    finally:
        if host.poll() is None:
            os.killpg(host.pid, signal.SIGKILL)
        host.wait()
    run = next(folder.glob("2*"))
    before = sessions.judged(parts.of(run))
    for _ in range(RESUMES):
        done = subprocess.run(
            [sys.executable, "-m", "ssdrig", "resume", str(run), "--quiet"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        if done.returncode == 0:
            break
    else:
        faults.append(f"resume ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return {
        "victim": victim,
        "after_s": after_s,
        "killed": killed,
        "kept": len(before),
        "faults": faults + _checked(run, before) + _left(family),
    }


def _checked(run: Path, before: dict[int, dict]) -> list[str]:
    """What is wrong with the sessions of a campaign that has come to its end."""
    told = [each for part in parts.of(run) for each in journal.events(part) if each["kind"] == "session.judged"]
    numbers = [each["cut"] for each in told]
    faults = [f"session {number} was judged twice" for number in set(numbers) if numbers.count(number) > 1]
    faults += [f"session {number} is lost" for number in before if number not in numbers]
    after = {each["cut"]: each for each in told}
    for number, record in before.items():
        if number in after and any(after[number].get(key) != value for key, value in record.items()):
            faults.append(f"session {number} has another verdict now")
    if sorted(numbers) != list(range(1, max(numbers, default=0) + 1)) or len(numbers) < CUTS:
        faults.append(f"sessions {sorted(numbers)}")
    return faults + [f"session {each['cut']} accuses the drive: {each['findings']}" for each in told if each["failed"]]


def _left(family: set[int]) -> list[str]:
    deadline = time.monotonic() + kill.GONE_S
    while (left := [pid for pid in family if pid and kill.alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return [f"left behind: {kill.words_of_process(pid)}" for pid in left]


def powerloss_kill() -> list[Figure]:
    found = kills(50)
    return [
        exactly("kills carried out", sum(each["killed"] for each in found), "kills", len(found)),
        exactly("campaigns with a fault after the kill", sum(bool(each["faults"]) for each in found), "campaigns", 0),
    ]


BENCHES = {
    "powerloss-kill": (
        "kill -9 of host, firmware or drive in a campaign of power cuts, then resume, 50 times (about 25 min)",
        powerloss_kill,
    )
}
