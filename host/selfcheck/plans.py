"""What a dry run said against what the run then did, by the virtual drive's ledger: the quick variant of each shipped
plan, priced after a first run of it has shown how fast this model is. What drives of a kind do is a far wider range: of
that it is only shown that the ledger lies in it. How many rounds a repeat takes nobody knows before: what was said of
one round is compared for as many as there were."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from selfcheck import Figure, at_most, exactly, in_turn
from ssdrig.base.errors import LoadError
from ssdrig.plan import grammar
from ssdrig.runs import journal

VIRTUAL = ["--virtual", "sata-tlc", "--capacity", "512MiB"]
# as few rounds as the rule needs, and of those plans whose quick variant writes for long a part
LESS = {
    "pts-iops": ["--set", "most=6", "--set", "time=1 s"],
    "pts-lat": ["--set", "most=6"],
    "pts-tp": ["--set", "most=6"],
    "trim-validation": ["--set", "torture=20 s"],
}


def _ssdrig(*words: str) -> dict:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    argv = [sys.executable, "-P", "-m", "ssdrig", "run", *words, "--json", "--quiet"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, env=environ, text=True, check=False)
    if done.returncode:
        raise LoadError(f"`ssdrig run {' '.join(words)}` to end well", f"exit code {done.returncode}", "see its words")
    return json.loads(done.stdout.splitlines()[-1])


def _said(acts: list[dict], rounds: int, key: str) -> tuple[float, float]:
    """The range that a dry run said of a whole run with so many rounds."""
    least, most = (sum(act[key][side] * (rounds if act["rounds"] else 1) for act in acts) for side in (0, 1))
    return least, most


class Seen(NamedTuple):
    """One plan: how far the bytes lay from the middle of what was said, and whether bytes and time were in range."""

    off_percent: float
    in_class: bool  # the bytes, before there was an earlier run
    in_time: bool


def _one(name: str, runs: Path) -> Seen:
    words = [name, "--variant", "quick", *VIRTUAL, *LESS.get(name, []), "--runs", str(runs)]
    first = _ssdrig(*words, "--dry-run")
    _ssdrig(*words)
    said = _ssdrig(*words, "--dry-run")
    folder = Path(_ssdrig(*words, "--seed", "777")["run"])
    wrote = json.loads((folder / "truth/ledger.json").read_text())["host_write_bytes"]
    events = journal.events(folder)
    rounds = max((event["round"] for event in events if event["kind"] == "round"), default=0)
    least, most = _said(said["acts"], rounds, "written_bytes")
    widest = _said(first["acts"], rounds, "written_bytes")
    begun = next(e["t_ns"] for e in events if e["kind"] == "step.start" and e["step"] != "check")
    ended = [e["t_ns"] for e in events if e["kind"] == "step.end" and e["step"] != "teardown"][-1]
    took_s = (ended - begun) / 1e9
    print(
        f"{name}: {wrote} of {least:.0f} to {most:.0f} bytes (by class {widest[0]:.0f} to {widest[1]:.0f}), {rounds}"
        f" rounds, {took_s:.1f} of {said['host_s']} s",
        file=sys.stderr,
    )
    middle = (least + most) / 2
    return Seen(
        100 * abs(wrote - middle) / middle,
        widest[0] <= wrote <= widest[1],
        said["host_s"][0] <= took_s <= said["host_s"][1],
    )


def plans() -> list[Figure]:
    seen = {}
    names = [name for name in grammar.shipped() if "quick" in grammar.read(*grammar.find(name)).variants]
    with tempfile.TemporaryDirectory(prefix="ssdrig-plans-", dir="/var/tmp") as folder:
        for name in in_turn(names, "plans"):
            seen[name] = _one(name, Path(folder, name))
    return [
        *(at_most(f"bytes of {name}: said against the ledger", seen[name].off_percent, "%", 10) for name in names),
        exactly("plans that wrote what their class does not", sum(not one.in_class for one in seen.values()), "", 0),
        exactly("plans whose time was outside of the range said", sum(not one.in_time for one in seen.values()), "", 0),
    ]


BENCHES = {"plans": ("the dry run of each plan against the ledger of the run, quick variants, two runs of each", plans)}
