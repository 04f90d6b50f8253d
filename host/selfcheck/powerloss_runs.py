"""Campaigns of power cuts on the whole virtual bench, as processes of their own, for benches that look at them."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from selfcheck import with_me
from ssdrig.powerloss import sessions
from ssdrig.runs import journal, parts

WORDS = ["run", "powerloss", "--virtual", "sata-tlc", "--capacity", "512MiB", "--quiet"]
END_S = 60.0  # of its teardown
SET = ("off_time=0.6 s", "window=32 MiB")


def begin(runs: Path, cuts: int, *sets: str) -> subprocess.Popen:
    """Start a campaign whose run folder comes to lie in `runs`; it prints to the file `output` there. It ends
    when this process is gone."""
    words = [sys.executable, "-P", "-m", "ssdrig", *WORDS, "--cuts", str(cuts), "--runs", str(runs)]
    for setting in (*SET, *sets):
        words += ["--set", setting]
    with open(runs / "output", "wb") as output:
        return subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True, preexec_fn=with_me())


def within(campaign: subprocess.Popen, seconds: float) -> int | None:
    """Its exit code; None where it was ended in order because it took longer. It is ended whatever happens here."""
    try:
        return campaign.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if campaign.poll() is None:
            campaign.terminate()
            try:
                campaign.wait(END_S)
            except subprocess.TimeoutExpired:
                campaign.kill()
                campaign.wait()


def folder(runs: Path) -> Path | None:
    """The run folder, once it is there."""
    return next(runs.glob("2*"), None)


def last_output(runs: Path) -> str:
    """The end of the campaign's output."""
    return (runs / "output").read_text(errors="replace").strip()[-500:]


def records(run: Path) -> list[dict]:
    """Of the events session.judged, in all parts."""
    return [event for part in parts.of(run) for event in journal.events(part) if event["kind"] == "session.judged"]


def cuts_of(judged: Iterable[Mapping]) -> list[Mapping]:
    """Those that are no control sessions and were judged."""
    return [session for session in judged if session["judged"] and session["control"] is None]


def report(run: Path, number: int) -> dict[str, Any]:
    """The rig's report of a session's cut."""
    return json.loads((run / sessions.folder(number) / "verdict.json").read_bytes())["report"]


def board(run: Path) -> list[dict]:
    """The truth of the SIMULATED board, boot by boot (virtual/cable.py)."""
    return json.loads((run / "truth" / "board.json").read_bytes())


def true_ns(boots: Iterable[Mapping], t_us: int, near_ns: int) -> int:
    """Host time of a board's time by its truth, in its boot of about then."""
    boot = max((boot for boot in boots if boot["t_boot_ns"] <= near_ns), key=lambda boot: boot["t_boot_ns"])
    return boot["t_boot_ns"] + round((t_us - boot["tick0"]) * 1000 / (1 + boot["ppm"] * 1e-6))
