"""What a dry run said against what the run then did, by the virtual drive's ledger: the quick variant of each shipped
plan, priced after a first run of it has shown how fast this model is."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ssdrig import journal
from ssdrig.benchmarks import Figure, at_most, exactly, in_turn
from ssdrig.plan import grammar

VIRTUAL = ["--virtual", "sata-tlc", "--capacity", "512MiB"]
# as few rounds as the rule needs, and of those plans whose quick variant writes for long a part
LESS = {"pts-iops": ["--set", "most=5"], "pts-lat": ["--set", "most=5"], "trim-validation": ["--set", "torture=20 s"]}


def _ssdrig(*words: str) -> dict:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    argv = [sys.executable, "-m", "ssdrig", "run", *words, "--json", "--quiet"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, env=environ, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _one(name: str, runs: Path) -> tuple[float, bool]:
    """(how far the bytes lay from the middle of what was said, in percent; whether the time was within its range)."""
    words = [name, "--variant", "quick", *VIRTUAL, *LESS.get(name, []), "--runs", str(runs)]
    _ssdrig(*words)
    said = _ssdrig(*words, "--dry-run")
    folder = Path(_ssdrig(*words, "--seed", "777")["run"])
    wrote = json.loads((folder / "truth/ledger.json").read_text())["host_write_bytes"]
    events = journal.events(folder)
    rounds = max((event["round"] for event in events if event["kind"] == "round"), default=0)
    least, most = said["written_bytes"]
    if rounds:  # a repeat's range spans its rounds: what was said of so many
        acts = said["acts"]
        least, most = (
            sum(act["written_bytes"][side] * (rounds if act["rounds"] else 1) for act in acts) for side in (0, 1)
        )
    begun = next(e["t_ns"] for e in events if e["kind"] == "step.start" and e["step"] not in ("check", "purge"))
    ended = [e["t_ns"] for e in events if e["kind"] == "step.end" and e["step"] != "teardown"][-1]
    took_s = (ended - begun) / 1e9
    print(f"{name}: {wrote} of {least} to {most} bytes, {took_s:.1f} of {said['host_s']} s", file=sys.stderr)
    middle = (least + most) / 2
    return 100 * abs(wrote - middle) / middle, said["host_s"][0] <= took_s <= said["host_s"][1]


def plans() -> list[Figure]:
    off, in_time = {}, {}
    names = [name for name in grammar.shipped() if "quick" in grammar.read(*grammar.find(name)).variants]
    with tempfile.TemporaryDirectory(prefix="ssdrig-plans-", dir="/var/tmp") as folder:
        for name in in_turn(names, "plans"):
            off[name], in_time[name] = _one(name, Path(folder, name))
    figures = [at_most(f"bytes of {name}: said against the ledger", off[name], "%", 10) for name in names]
    return [
        *figures,
        exactly("plans whose time was outside of the range said", len(names) - sum(in_time.values()), "", 0),
    ]


BENCHES = {"plans": ("the dry run of each plan against the ledger of the run, quick variants (about 25 min)", plans)}
