"""The dry run of each plan against the drive's ledger: the quick variant of each shipped plan, forecast after a first
run has shown how fast this model is. The forecast before that run is of a class of drives, a far wider range: the
ledger must be in it. The number of rounds of a repeat is unknown in advance: the forecast of a step is compared for as
many rounds as it had."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from selfcheck import Figure, at_most, exactly, in_turn, with_me
from ssdrig.base import words
from ssdrig.base.errors import LoadError
from ssdrig.plan import grammar
from ssdrig.run import prepare
from ssdrig.runs import journal

DRIVE = ["--virtual", "sata-tlc", "--capacity", "256MiB"]
MOST_OFF_PERCENT = 10
END_PERCENT = 1  # of an end of a range: the last I/O of each job passes its amount, and words round
# one I/O at a time for a fixed time: only a drive whose time is dilated is slower than its host
DRIVES = {"burst": ["--virtual", "nvme-tlc", "--capacity", "512MiB"]}
# as few rounds as the rule needs, and of those plans whose quick variant writes for long a part
LESS = {
    "pts-iops": ["--set", "most=6", "--set", "time=1 s"],
    "pts-lat": ["--set", "most=6"],
    "pts-tp": ["--set", "most=6"],
    "trim-validation": ["--set", "torture=20 s"],
    "powerloss": ["--set", "cuts=20"],
}
HEAD = ("plan", "bytes expected", "bytes written", "off", "time expected", "time taken")


def _ssdrig(*argv: str) -> dict:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSDRIG_INFLUX")}
    command = [sys.executable, "-P", "-m", "ssdrig", "run", *argv, "--json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environ, text=True, check=False, preexec_fn=with_me())
    if done.returncode:
        raise LoadError(f"`ssdrig run {' '.join(argv)}` to end well", f"exit code {done.returncode}", "see its words")
    return json.loads(done.stdout.splitlines()[-1])


def expected(acts: Sequence[Mapping], times: Mapping[str, int], key: str) -> tuple[float, float]:
    """The range of a dry run's acts; one in a repeat counts `times` of its label."""

    def number(act: Mapping) -> int:
        return times.get(grammar.label(act["path"], act["point"]), 0) if act["rounds"] else 1

    least, most = (sum(act[key][side] * number(act) for act in acts) for side in (0, 1))
    return least, most


def times_of(events: Iterable[Mapping]) -> Counter:
    """How often each step ended, by its label."""
    return Counter(grammar.label(e["step"], e.get("point") or {}) for e in events if e["kind"] == "step.end")


def off_percent(size: float, span: Sequence[float]) -> float:
    """How far a size is from the middle of a range, of that middle."""
    middle = sum(span) / 2
    return 100 * abs(size / middle - 1) if middle else 0.0 if not size else float("inf")


def written_bytes(folder: Path) -> int:
    """What the host wrote in a run: the drive of another run brings its own count with it."""
    with open(folder / "truth/counts.jsonl") as counts:
        before = json.loads(counts.readline())
    return json.loads((folder / "truth/ledger.json").read_text())["host_write_bytes"] - before["host_write_bytes"]


def _words(name: str) -> list[str]:
    return [name, "--variant", "quick", *LESS.get(name, [])]


def lasts_s(name: str) -> float:
    """The forecast of a run of this plan; infinite where there is none."""
    try:
        return _ssdrig(*_words(name), *DRIVES.get(name, DRIVE), "--dry-run")["host_s"][1]
    except LoadError:
        return float("inf")


def _row(name: str, runs: Path) -> dict[str, Any]:
    """One plan: {"plan", "written_bytes", "expected_bytes", "class_bytes", "took_s", "expected_s", "why"}."""
    argv = [*_words(name), "--runs", str(runs)]
    if name == "retention-verify":  # reads what another run has sealed
        sealed = ["retention-write", *argv[1:], *DRIVE]
        argv += [*DRIVE[:2], "--kept", str(Path(_ssdrig(*sealed)["run"]) / "drive")]
    else:
        argv += DRIVES.get(name, DRIVE)
    first = _ssdrig(*argv, "--dry-run")
    _ssdrig(*argv)
    forecast = _ssdrig(*argv, "--dry-run")
    folder = Path(_ssdrig(*argv, "--seed", "777")["run"])
    events = journal.events(folder)
    times = times_of(events)
    begin_ns = next(e["t_ns"] for e in events if e["kind"] == "step.start" and e["step"] != "check")
    end_ns = [e["t_ns"] for e in events if e["kind"] == "step.end" and e["step"] != "teardown"][-1]
    return {
        "plan": name,
        "written_bytes": written_bytes(folder),
        "expected_bytes": expected(forecast["acts"], times, "written_bytes"),
        "class_bytes": expected(first["acts"], times, "written_bytes"),
        "took_s": (end_ns - begin_ns) / 1e9,
        "expected_s": forecast["host_s"],
        "why": None,
    }


def judged(row: Mapping) -> dict[str, Any]:
    """{"off_percent", "in_class", "in_time"} of a row that was run."""
    return {
        "off_percent": off_percent(row["written_bytes"], row["expected_bytes"]),
        "in_class": _inside(row["written_bytes"], row["class_bytes"]),
        "in_time": _inside(row["took_s"], row["expected_s"]),
    }


def _inside(size: float, span: Sequence[float]) -> bool:
    least, most = span
    return least * (1 - END_PERCENT / 100) <= size <= most * (1 + END_PERCENT / 100)


def table(rows: Iterable[Mapping]) -> list[str]:
    """The lines of the table, numbers right-aligned."""
    cells: list[tuple[str, ...]] = [HEAD]
    for row in rows:
        if row["why"]:
            cells.append((row["plan"], row["why"], *[""] * 4))
            continue
        bytes_, times = (
            "…".join(dict.fromkeys(map(to_words, row[key])))
            for key, to_words in (("expected_bytes", words.size), ("expected_s", words.clock))
        )
        off = f"{judged(row)['off_percent']:.2f} %"
        cells.append((row["plan"], bytes_, words.size(row["written_bytes"]), off, times, words.clock(row["took_s"])))
    widths = [max(len(cell[i]) for cell in cells) for i in range(len(HEAD))]
    return ["  ".join([f"{c[0]:{widths[0]}}", *(f"{c[i]:>{widths[i]}}" for i in range(1, len(HEAD)))]) for c in cells]


def plans(plans: int | None = None, rows: str | None = None) -> list[Figure]:
    """The plans that the virtual drive can run, the shortest first, so that a check that is stopped has most of them.

    plans: the first ones only.
    rows: a file of rows, one JSON object a line: its plans are not run again but where their run failed, and each new
    row is appended, so that a check that was stopped goes on."""
    can = prepare.of_virtual(DRIVE[1])
    shipped = {name: grammar.read(*grammar.find(name)) for name in grammar.shipped()}
    names = [name for name, plan in shipped.items() if "quick" in plan.variants and can.issuperset(plan.needs)][:plans]
    file = Path(rows) if rows else None
    lines = file.read_text().splitlines() if file and file.exists() else []
    done = {row["plan"]: row for row in map(json.loads, lines) if not row["why"]}
    waiting = sorted((name for name in names if name not in done), key=lasts_s)
    for name in in_turn(waiting, "plans"):
        with tempfile.TemporaryDirectory(prefix="ssdrig-plans-", dir="/var/tmp") as folder:
            try:
                done[name] = _row(name, Path(folder))
            except LoadError as error:
                done[name] = {"plan": name, "why": f"{error.seen} of {error.expected}"}
        if file:
            with open(file, "a") as out:
                out.write(json.dumps(done[name]) + "\n")
    listed = [done[name] for name in names]
    print("\n".join(table(listed)), file=sys.stderr)
    run = {row["plan"]: judged(row) for row in listed if not row["why"]}
    return [
        *(at_most(f"bytes of {name}, off", of["off_percent"], "%", MOST_OFF_PERCENT) for name, of in run.items()),
        exactly("plans outside their class's bytes", sum(not of["in_class"] for of in run.values()), "", 0),
        exactly("plans outside their time", sum(not of["in_time"] for of in run.values()), "", 0),
        exactly("plans whose run failed", len(listed) - len(run), "", 0),
    ]


BENCHES = {"plans": ("the dry run of each plan against the ledger of the run, quick variants, two runs of each", plans)}
