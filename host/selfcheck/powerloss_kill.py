"""kill -9 in each phase of a campaign of power cuts: of the host, of the firmware's interpreter, of the drive's server.
After each kill the campaign goes on, by itself or by `resume`: no judged session is lost or judged again, no cut
accuses the drive, which keeps its promises, the rail is on in the end, and no process is left behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from selfcheck import Figure, at_least, exactly, in_turn, kill, powerloss_runs, with_me
from ssdrig.powerloss import sessions
from ssdrig.runs import journal, parts

VICTIMS = ("host", "firmware", "drive")
# when, in s: from the begin of the fill; from the plan of a cut to the cut (share); from the cut, four times; from the
# drive's answer, twice; as soon as the first file of the session is there
PHASES = {
    "fill": (0.0, 0.4),
    "write": (0.1, 0.95),
    "cut": (-0.002, 0.002),
    "off": (0.01, 0.55),
    "on": (0.6, 0.62),
    "ready": (0.65, 0.75),
    "read": (0.0, 0.015),
    "judge": (0.015, 0.06),
    "seal": (0.0, 0.0),
}
KILLS, CUTS = 50, 4
SET = ("aims={ random = 1 }", "write=0.5 s")
NEAR_S = 0.005  # of a cut: "at" it
BACK_S = 0.63  # after the cut; power returns 0.6 s after it
LIMIT_S = 240
LOOK_S = 0.001
RESUMES = 3  # after a kill of firmware or drive the run may fail once more before it can go on


def carried_out(count: int, seed: int = 1) -> list[dict]:
    """Carry out `count` campaigns, each with one kill: dicts with victim, phase (meant), caught (the phase that it was
    killed in; "": it was not), kept (sessions that were judged by then), resumes and faults (list of words)."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-kill-", dir="/var/tmp"))
    campaigns = []
    try:
        for n in in_turn(range(count), "powerloss-kill"):
            phase, victim = list(PHASES)[n % len(PHASES)], VICTIMS[(n + n // len(PHASES)) % len(VICTIMS)]
            one = _one(phase, victim, chance, folder / str(n))
            campaigns.append(one)
            words = f"kill {n + 1}: {victim}, phase {phase}, caught in {one['caught'] or 'none'}, {one['kept']} judged"
            print(f"{words}, {one['resumes']} resumes: {one['faults'] or 'ok'}", file=sys.stderr)
            shutil.rmtree(folder / str(n))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return campaigns


def _one(phase: str, victim: str, chance: random.Random, runs: Path) -> dict:
    runs.mkdir()
    at, session = chance.uniform(*PHASES[phase]), chance.randint(1, CUTS - 1)
    family: set[int] = set()
    host = powerloss_runs.begin(runs, CUTS, *SET)
    caught, seen, deadline = "", _Seen(runs), time.monotonic() + LIMIT_S
    try:
        while host.poll() is None and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            if caught or not seen.due(phase, at, session):
                continue
            family |= kill.descendants(host.pid)
            now = seen.phase()
            caught = now if kill.end_one(victim, host.pid) else ""
        faults = [] if host.poll() is not None else [f"it did not end within {LIMIT_S} s"]
    finally:
        if host.poll() is None:
            os.killpg(host.pid, signal.SIGKILL)
        host.wait()
    run = powerloss_runs.folder(runs)
    outcome: dict = {"victim": victim, "phase": phase, "caught": caught}
    if run is None:
        faults.append(f"it has made no run folder: {powerloss_runs.last_output(runs)}")
        return {**outcome, "kept": 0, "resumes": 0, "faults": faults + _left(family)}
    before, resumes = sessions.judged(parts.of(run)), 0
    while (host.returncode or resumes) and resumes < RESUMES:
        resumes += 1
        error = _resumed(run)
        if not error:
            break
        if resumes == RESUMES:
            faults.append(error)
    outcome |= {"kept": len(before), "resumes": resumes}
    return {**outcome, "faults": faults + _checked(run, before) + _power(run) + _left(family)}


class _Seen:
    """What a campaign's folder says by now."""

    def __init__(self, runs: Path):
        self._runs, self._size = runs, -1
        self._run: Path | None = None
        self.events: Sequence[dict] = []

    def look(self) -> None:
        self._run = self._run or powerloss_runs.folder(self._runs)
        path = self._run / "events.jsonl" if self._run else None
        if self._run and path and path.exists() and (size := path.stat().st_size) != self._size:
            self._size, self.events = size, journal.events(self._run)

    def _of(self, kind: str, cut: int | None = None) -> dict | None:
        return next((e for e in self.events if e["kind"] == kind and cut in (None, e.get("cut"))), None)

    def due(self, phase: str, at_s: float, session: int) -> bool:
        """Whether it is time to kill in the session, or in the next one that has a cut."""
        self.look()
        now = time.monotonic_ns()
        if phase == "fill":
            begun = self._of("powerloss.begin")
            return begun is not None and now >= begun["t_ns"] + at_s * 1e9
        plans = [e for e in self.events if e["kind"] == "cut.plan" and e["cut"] >= session and e["control"] is None]
        if not plans:
            return False
        plan = plans[0]
        if phase == "seal":
            return bool(self._run and (self._run / sessions.folder(plan["cut"]) / "history.bin.z").exists())
        if phase in ("read", "judge"):
            ready = self._of("drive.ready", plan["cut"])
            return ready is not None and now >= ready["t_ns"] + at_s * 1e9
        if phase == "write":
            return now >= plan["t_ns"] + at_s * (plan["planned_ns"] - plan["t_ns"])
        return now >= plan["planned_ns"] + at_s * 1e9

    def phase(self) -> str:
        """The phase that the campaign is in, as far as its folder and the clock tell."""
        self.look()
        if not self._of("powerloss.filled"):
            return "fill"
        last = next((e for e in reversed(self.events) if e["kind"] in ("cut.plan", "cut.on", "drive.ready")), None)
        if last is None or self._of("session.judged", last["cut"]):
            return "between"
        if last["kind"] == "drive.ready":
            if self._run and (self._run / sessions.folder(last["cut"]) / "history.bin.z").exists():
                return "seal"
            return "read" if time.monotonic_ns() < last["t_ns"] + PHASES["judge"][0] * 1e9 else "judge"
        since_s = (time.monotonic_ns() - (self._of("cut.plan", last["cut"]) or last)["planned_ns"]) / 1e9
        if last["kind"] == "cut.on" or since_s > BACK_S:
            return "ready"
        if abs(since_s) <= NEAR_S:
            return "cut"
        return "write" if since_s < 0 else "off" if since_s < PHASES["on"][0] else "on"


def _resumed(run: Path) -> str:
    """What is wrong with the campaign's rest, "" where it came to its end."""
    words = [sys.executable, "-P", "-m", "ssdrig", "resume", str(run), "--quiet"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, preexec_fn=with_me())
    except subprocess.TimeoutExpired:
        return f"resume did not end within {LIMIT_S} s"
    return f"resume ended with {done.returncode}: {done.stderr.strip()[-300:]}" if done.returncode else ""


def _checked(run: Path, before: dict[int, dict]) -> list[str]:
    """What is wrong with the sessions of a campaign that has come to its end."""
    records = powerloss_runs.records(run)
    numbers = [session["cut"] for session in records]
    faults = [f"session {number} was judged twice" for number in set(numbers) if numbers.count(number) > 1]
    faults += [f"session {number} is lost" for number in before if number not in numbers]
    after = {session["cut"]: session for session in records}
    for number, record in before.items():
        if number in after and any(after[number].get(key) != value for key, value in record.items()):
            faults.append(f"session {number} has another verdict now")
    if sorted(numbers) != list(range(1, max(numbers, default=0) + 1)) or len(numbers) < CUTS:
        faults.append(f"sessions {sorted(numbers)}")
    return faults + [
        f"session {session['cut']} accuses the drive: {session['findings']}" for session in records if session["failed"]
    ]


def _power(run: Path) -> list[str]:
    """Whether the drive had power in the end, by the truth of the last board."""
    try:
        crossings = json.loads((parts.of(run)[-1] / "truth" / "board.json").read_bytes())[-1]["power"]
    except (OSError, ValueError, LookupError) as error:
        return [f"the board's truth is not there: {error}"]
    return [] if not crossings or crossings[-1][1] else ["the rail is off in the end"]


def _left(family: set[int]) -> list[str]:
    deadline = time.monotonic() + kill.GONE_S
    while (left := [pid for pid in family if pid and kill.alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return [f"left behind: {kill.words_of_process(pid)}" for pid in left]


def powerloss_kill(kills: int = KILLS) -> list[Figure]:
    campaigns = carried_out(kills)
    alone = sum(campaign["victim"] == "firmware" and not campaign["resumes"] for campaign in campaigns)
    of, most = sum(campaign["victim"] == "firmware" for campaign in campaigns), min(kills, len(PHASES))
    return [
        exactly("kills carried out", sum(bool(campaign["caught"]) for campaign in campaigns), "kills", kills),
        at_least(
            "phases that a kill came in",
            len({campaign["caught"] for campaign in campaigns} & {*PHASES}),
            "phases",
            most,
        ),
        exactly(
            "campaigns with a fault after the kill",
            sum(bool(campaign["faults"]) for campaign in campaigns),
            "campaigns",
            0,
        ),
        Figure(f"of {of} kills of the firmware, without a resume", alone, "campaigns", "to compare", True),
    ]


BENCHES = {
    "powerloss-kill": (
        "kill -9 of host, firmware or drive in each phase of a campaign of power cuts, 50 times (about 25 min)",
        powerloss_kill,
    )
}
