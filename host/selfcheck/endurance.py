"""A virtual drive of 50 cycles, worn to its end by the plan `endurance` through fio, NBD and SMART: what was predicted
and counted on the way, against what came and against its ledger."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from selfcheck import Figure, at_most, exactly
from ssdrig.base.errors import LoadError
from ssdrig.reading import table
from ssdrig.runs import journal

WORDS = ["endurance", "--variant", "to-the-end", "--virtual", "enterprise-50"]
TENTH = 10  # percent of wear


def endurance() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="ssdrig-endurance-", dir="/var/tmp") as folder:
        return figures(_run(folder))


def _run(folder: str) -> Path:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    argv = [sys.executable, "-P", "-m", "ssdrig", "run", *WORDS, "--runs", folder, "--json"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, env=environ, text=True, check=False)
    if done.returncode:
        raise LoadError(f"`ssdrig run {' '.join(WORDS)}` to end well", f"exit code {done.returncode}", "see its words")
    return Path(json.loads(done.stdout.splitlines()[-1])["run"])


def figures(run: Path) -> list[Figure]:
    """The figures of a run that has worn its drive."""
    events = journal.events(run)
    result = next(row.result for row in table.load(run).rows if row.act.do == "wear")
    end = result["slices"][-1]["host_bytes"]
    first = result["ends"][0]
    off = 100 * abs(first["host_bytes"] / end - 1) if first["host_bytes"] else 100.0
    wrote = sum(event["bytes"] for event in events if event["kind"] in ("slice", "stamp"))
    wrote += next(event["bytes"] for event in events if event["kind"] == "step.end" and event["step"] == "fill")
    ledger = json.loads((run / "truth/ledger.json").read_text())
    bad = sum(count for word, count in result["verdicts"].items() if word != "good")
    return [
        exactly("wear at the end, percentage used", result["slices"][-1]["percentage_used"], "%", 100),
        at_most("wear by then that the first prediction rests on", first["at_percent"], "%", TENTH + 1),
        at_most("end of life predicted there, off the real one", off, "%", 5),
        exactly("bytes counted, minus the ledger's", wrote - ledger["host_write_bytes"], "bytes", 0),
        at_most("write amplification, off the ledger's", 100 * abs(result["wa"] / true_wa(run, events) - 1), "%", 0.5),
        exactly("sample blocks that were not as written", bad, "blocks", 0),
    ]


def true_wa(run: Path, events: list[dict]) -> float:
    """By the ledgers of the first and the last SMART reading within the step."""
    times = [event["t_ns"] for event in events if event["kind"] in ("step.start", "slice") and event["step"] == "wear"]
    marks = [json.loads(line) for line in (run / "truth/marks.jsonl").read_text().splitlines()]
    own = [mark for mark in marks if times[0] <= mark["t_ns"] <= times[-1]]
    nand, host = (own[-1][key] - own[0][key] for key in ("nand_write_bytes", "host_write_bytes"))
    return nand / host


BENCHES = {"endurance": ("a virtual drive of 50 cycles is worn to its end, which its first tenth foretells", endurance)}
