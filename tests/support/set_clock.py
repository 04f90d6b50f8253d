"""Run folders as they would be, had someone set the wall clock while the run went on: what
tests/selfcheck/test_wall_clock.py and `ssdrig selfcheck wall-clock` share."""

import json
import shutil
from pathlib import Path

import synthetic_run

from ssdrig.load import fiolog, fiotext
from ssdrig.runs import journal

IDLE_S = 4
FROM_1970_S = synthetic_run.UTC_RUN_NS / 1e9
STEPS_S = {"30 s on": 30, "30 s back": -30, "an hour on": 3600, "an hour back": -3600, "from 1970": FROM_1970_S}
# after the load's first I/O; the fill goes from -2.75 to -0.75 s, the load to 31 s, the idle step from 31.7 to 35.7 s
MOMENTS_S = {
    "in the fill": -1.6,
    "before fio's clock starts": -0.1,
    "at once": 0.5,
    "early": 3,
    "late": 20,
    "at the end": 26.5,
    "in idle": 33.2,
    "while points are pushed": 1000,
}
ANCHOR_AFTER_NS = 1_000_000_000  # the latest anchor that live.py writes after a step
FIO_STARTS_NS = 250_000_000  # before its first I/O


def write(runs: Path) -> Path:
    """The run whose clock is set."""
    return synthetic_run.write(runs, synthetic_run.IOPS, idle_s=IDLE_S)


def step_ns(run: Path, at_s: float) -> int:
    """CLOCK_MONOTONIC of a moment."""
    return int(fiolog.load(run / "fio" / "load").t_ns[0] + at_s * 1e9)


def utc_ns(t_ns: int, set_ns: int, by_s: float) -> int:
    """UTC that a host reads at t_ns when its clock is set by by_s at set_ns. From 1970: the clock was wrong until then,
    and is right afterwards."""
    off_s = (-by_s if t_ns < set_ns else 0) if by_s == FROM_1970_S else (0 if t_ns < set_ns else by_s)
    return max(0, synthetic_run.UTC_RUN_NS + t_ns - synthetic_run.T_RUN_NS + round(off_s * 1e9))


def stepped(run: Path, copy: Path, by_s: float, at_s: float, stamped: bool) -> Path:
    """A copy of the run with every UTC in it as the host would have read it; by_s 0: as it was. `stamped`: fio's
    documents have their arrival on CLOCK_MONOTONIC, as we keep them; otherwise UTC only, as older folders have it."""
    shutil.copytree(run, copy)
    set_ns = step_ns(run, at_s)

    def utc(t_ns: int) -> int:
        return utc_ns(t_ns, set_ns, by_s)

    for path in copy.glob("fio/*/out.json"):
        first_ns = int(fiolog.load(path.parent).t_ns[0])
        lines = []
        for document in fiotext.documents(path.read_text())[0]:
            t_ns = document["timestamp_ms"] * 1_000_000 - synthetic_run.UTC_RUN_NS + synthetic_run.T_RUN_NS
            document["timestamp_ms"] = utc(t_ns) // 1_000_000
            lines.append(json.dumps(document | {"t_ns": t_ns + 2_000_000} if stamped else document))
        path.write_text("\n".join(lines) + "\n")
        start_ns = first_ns - FIO_STARTS_NS
        (path.parent / "start.json").write_text(json.dumps({"t_ns": start_ns, "utc_ns": utc(start_ns)}))
    header = json.loads((copy / "run.json").read_text())
    header["started"]["utc_ns"] = utc(header["started"]["t_ns"])
    (copy / "run.json").write_text(json.dumps(header))
    events = journal.events(copy)
    if by_s and set_ns < events[-1]["t_ns"]:
        events.append({"t_ns": set_ns + ANCHOR_AFTER_NS, "kind": "clock.anchor"})
    events = [e | {"utc_ns": utc(e["t_ns"])} if e["kind"] == "clock.anchor" else e for e in events]
    synthetic_run.seal(copy, sorted(events, key=lambda event: event["t_ns"]))
    return copy
