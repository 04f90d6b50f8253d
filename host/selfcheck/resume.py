"""kill -9 of pts-iops quick at random moments, then resume, in model time: real are the engine, the journal on the
disk, SIGKILL, the reading of the folder and the decision what is done again; the drive is the simulator without a
server, which is saved at the kill as a real drive keeps its data. A part that goes on may be killed, too, and some go
on after a reboot: another boot id, CLOCK_MONOTONIC from its beginning.

A matrix is compared point by point with the mean of unbroken runs, which end by themselves. So that a difference is not
the chance of the load, the points are longer than the variant's, reads and writes come in their exact shares, and the
drive has small GC units, whose collector reaches its mean within a point, and slow reads, which cost less to simulate.
Queue depth 4: what is outstanding at the end of a point is not counted, and of large blocks that would be much."""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from selfcheck import Figure, at_most, exactly, in_turn
from ssdrig.plan import expand, grammar
from ssdrig.reading import timeline
from ssdrig.run import cut_short, engine, prepare, resume
from ssdrig.run.stage import Stage
from ssdrig.runs import integrity, journal, parts
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import SATA_TLC

PLAN, VARIANT, CAPACITY_BYTES = "pts-iops", "quick", 512 << 20
PRESET = replace(SATA_TLC, block_pages=48, gc_high=8, cmd_read_ns=40_000, link_B_per_s=150_000_000)
SETS = {"qd": "4", "threads": "1", "time": "6 s"}
KILLS, UNBROKEN = 50, 5
OFF_PERCENT = 3.0  # a point of a resumed run, at most, from the unbroken runs' mean
UNIT_BYTES = 512_000
PAGE_BYTES = 4096
SECOND_NS = 1_000_000_000
AGAIN = 0.3  # of the parts that go on are killed, too
REBOOTS = 0.3  # of the parts go on after a reboot
DRIVE = {
    "model": PRESET.model,
    "serial": "MODEL",
    "firmware": "M1",
    "preset": PRESET.name,
    "interface": "nbd",
    "logical_block_bytes": PAGE_BYTES,
    "capacity_bytes": CAPACITY_BYTES,
    "raw_nand_bytes": CAPACITY_BYTES,
    "time_dilation": 1,
}


class ModelStage(Stage):
    """A stage whose loads run inside the simulator. `moment` is called at each event and each second of a load."""

    drive: VirtualDrive
    moment: Callable[[], None]
    t_ns = 0

    def fio(self, act, job, pace, number=0, met=lambda iops, moved_bytes: False, within=""):
        folder = self.folder(act, number) / within
        folder.mkdir(parents=True)
        now_ns = self.book.event("load.first_io", step=act.path)["t_ns"]
        (folder / "start.json").write_text(json.dumps({"t_ns": now_ns}))
        began, ios, seconds = written(self.drive), 0, int(job.time_s or 2)
        if act.do == "load":
            ios = self._load(act, seconds)
        with open(folder / "out.json", "w", buffering=1) as out:
            for second in range(1, seconds + 1):
                if act.do == "fill":  # two halves, so that a kill can come between them
                    self.drive.precondition("seq", act.amount_bytes / 2 / CAPACITY_BYTES)
                size = written(self.drive) - began
                size = size if act.do == "fill" else size * second // seconds
                side = {"io_bytes": size, "total_ios": 1 + ios, "runtime": 1000 * second, "clat_ns": {"N": 1 + ios}}
                row = {"t_ns": self.book.event("second", step=act.path)["t_ns"], "timestamp_ms": 0}
                print(json.dumps({**row, "jobs": [{"write": side}]}), file=out)
                self.moment()
        if act.do == "load":
            self.means[act.label] = {"iops": ios / job.time_s, "MB/s": 0.0, "lat_mean": 0.0}
        return SimpleNamespace(bytes=written(self.drive) - began, seconds=None)

    def _load(self, act, seconds: int) -> int:
        counts, _ = self.drive.closed_loop(
            queue_depth=act.keys["qd"] * act.keys["threads"],
            t_ns=self.t_ns,
            duration_ns=seconds * SECOND_NS,
            read_share=act.keys["read"] / 100,
            even_mix=True,
            npages=act.keys["block"][0][0] // PAGE_BYTES,
            span=act.range_bytes // PAGE_BYTES,
        )
        self.t_ns += seconds * SECOND_NS
        return int(counts.sum())


def written(drive: VirtualDrive) -> int:
    return int(drive.ledger()["host_write_bytes"])


def carry_out(acts, book: journal.Journal, drive: VirtualDrive, jobs: int, moment: Callable[[], None]) -> None:
    """The acts, to their end, and the journal closed."""
    keep = book.event

    def event(*words, **fields):
        moment()
        return keep(*words, **fields)

    book.event = event
    polls = [0]

    def poll(reason: str) -> None:
        polls[0] += 1
        now_ns = book.event("smart.start", n=polls[0], reason=reason)["t_ns"]
        log = {"data_units_written": -(-written(drive) // UNIT_BYTES), "data_units_read": 0, "temperature": 30}
        answer = {"device": {"protocol": "NVMe"}, "firmware_version": "M1", "nvme_smart_health_information_log": log}
        document = {"n": polls[0], "reason": reason, "t_start_ns": now_ns, "t_end_ns": now_ns, "smartctl": answer}
        book.put(f"smart/{polls[0]:03}.json", json.dumps(document).encode())
        book.event("smart.end", n=polls[0], reason=reason, ok=True)

    def purge(_show) -> dict:
        drive.format(stage.t_ns)
        return {"method": "format", "ok": True}

    target = {"fio_target": "nbd+unix:///?socket=model", "remember": lambda offsets: None}
    bench: Any = SimpleNamespace(drive=DRIVE, check=lambda: None, purge=purge, **target)
    none = {name: lambda *words: None for name in ("begin", "act", "act_done")}
    live: Any = SimpleNamespace(poll_smart=poll, left_s=lambda: (0.0, 0.0), cold_s=lambda: None, **none)
    stop: Any = SimpleNamespace(check=lambda: None, second_raises=contextlib.nullcontext, asked=lambda: False)
    show: Any = SimpleNamespace(show=lambda words: None)
    teardown: Any = SimpleNamespace()
    stage = ModelStage(bench, book, live, stop, show, teardown, 4242, jobs)
    stage.drive, stage.moment = drive, moment
    book.event("run.start", pid=os.getpid())
    engine.carry_out(acts, stage)
    book.close("complete")


def in_child(work: Callable[[Callable[[], None]], VirtualDrive], state: Path, kill_at: int | None) -> bool:
    """`work(moment)` in a process of its own, which SIGKILL ends at the moment `kill_at`, the drive kept in `state`.
    Returns whether it was killed. Raises AssertionError if it failed."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            seen = [0]
            drives: list[VirtualDrive] = []

            def moment() -> None:
                seen[0] += 1
                if seen[0] == kill_at:
                    drives[0].save(state)
                    os.kill(os.getpid(), signal.SIGKILL)

            work(lambda *drive: drives.extend(drive) if drive else moment())
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the run failed"
    return os.WIFSIGNALED(status)


def begun(runs: Path, kill_at: int | None, seed: int) -> Path:
    """A run, unbroken or killed; its folder."""
    prepared = prepare.prepare(PLAN, DRIVE, VARIANT, SETS, seed)
    header = {"simulated": True, **prepare.header(prepared), "drive": DRIVE, "rig": None}
    header["host"] = {"boot_id": "boot 1"}

    def work(moment):
        drive = VirtualDrive(PRESET, capacity_bytes=CAPACITY_BYTES)
        drive.rng[0] += seed
        moment(drive)
        carry_out(prepared.acts, journal.create(runs, header), drive, 0, moment)

    in_child(work, runs / "state.npz", kill_at)
    (folder,) = (path for path in runs.iterdir() if path.is_dir())
    return folder


def gone_on(run: Path, kill_at: int | None, rebooted: bool = False) -> bool:
    """The next part of a run, killed or not, `rebooted`: on a host that has started anew, its drive without supply
    meanwhile. Returns whether there was something left to do."""
    story = cut_short.read(run)
    if story.past.at >= len(story.acts):
        return False
    state = run.parent / "state.npz"
    now = cut_short.Reading("M1", written(VirtualDrive.load(state)), UNIT_BYTES)
    remaining, void = cut_short.left(story.past, story.before, now, story.ours, not rebooted)
    prepared, todo = resume.rest_of(story, DRIVE, remaining, void)
    resumed = {"part": len(story.folders) + 1, "begins": todo.begins, "round": todo.round, "state": asdict(todo.state)}
    header = {key: value for key, value in story.parts[-1][0].items() if key not in ("schema", "started")}
    if rebooted:
        header["host"] = {"boot_id": f"boot of part {len(story.folders) + 1}"}

    def work(moment):
        if rebooted:
            began_ns, clock = time.monotonic_ns(), time.monotonic_ns
            time.monotonic_ns = lambda: clock() - began_ns + SECOND_NS  # in a process of its own
        drive = VirtualDrive.load(state)
        moment(drive)
        book = parts.begin(run, header | {"resumed": resumed})
        carry_out(prepared.acts, book, drive, story.past.jobs, moment)

    in_child(work, state, kill_at)
    return True


def matrix(run: Path, rounds: range | None = None) -> dict[str, float]:
    """{point: mean IOPS} of the last five rounds of the last part, which stand for the run, or of `rounds`."""
    events = journal.events(parts.of(run)[-1])
    last = max(event["round"] for event in events if event["kind"] == "round")
    rounds = rounds or range(last - expand.STEADY_ROUNDS + 1, last + 1)
    seen: dict[str, list[float]] = {}
    for event in events:
        if event["kind"] == "step.end" and event.get("mean") and event["round"] in rounds:
            seen.setdefault(str(event["point"]), []).append(event["mean"]["iops"])
    return {point: statistics.fmean(values) for point, values in seen.items()}


def faults(run: Path) -> list[str]:
    """What is wrong with a run that has come to its end: files, a steady state that is not of five whole rounds of its
    own part, or parts that do not follow each other by UTC."""
    defects = [f"{part.name}: {words}" for part in parts.of(run) for words in integrity.damage(part)]
    judged = [event for event in journal.events(parts.of(run)[-1]) if event["kind"] == "round"]
    if not (judged and judged[-1]["steady"] and len(judged) > expand.STEADY_ROUNDS):
        defects.append(f"the rule ended the last part after {len(judged)} rounds")
    window = [tracked["rounds"] for tracked in (judged[-1]["tracked"].values() if judged else ())]
    own = [_tracked(run, words) for words in (judged[-1]["tracked"] if judged else ())]
    defects += [f"judged {a}, measured {b}" for a, b in zip(window, own, strict=True) if a != b]
    ends = [timeline.utc_ns(part) for part in parts.of(run)]
    defects += ["parts overlap in UTC" for a, b in itertools.pairwise(ends) if a[1] >= b[0]]
    return defects


def _tracked(run: Path, words: str) -> list[float]:
    """The IOPS of a tracked point ("iops read=0 block=4KiB") in the last five rounds of the last part, as measured."""
    wanted = set(words.split()[1:])
    ended = [e for e in journal.events(parts.of(run)[-1]) if e["kind"] == "step.end" and e.get("mean")]
    of = [e["mean"]["iops"] for e in ended if wanted <= set(grammar.label("", e["point"]).split())]
    return of[-expand.STEADY_ROUNDS :]


def proof(kills: int = KILLS, unbroken: int = UNBROKEN, seed: int = 1) -> list[Figure]:
    """Figures of so many kills, compared with unbroken runs."""
    chance = random.Random(seed)
    home = Path(tempfile.mkdtemp(prefix="ssdrig-resume-", dir="/var/tmp"))
    stuck, wrong, rebooted, off, parts_most = 0, 0, 0, [0.0], 1
    try:
        whole, first, lines = [], [], []
        for i in range(unbroken):
            run = begun(_new(home / f"whole{i}"), None, 1000 * seed + i)
            whole.append(matrix(run))
            first.append(matrix(run, range(1, expand.STEADY_ROUNDS + 1)))
            lines.append(len(journal.events(run)))
            shutil.rmtree(home / f"whole{i}")
        mean = {point: statistics.fmean(figures[point] for figures in whole) for point in whole[0]}
        for i in in_turn(range(kills), "resume"):
            run = begun(_new(home / str(i)), chance.randint(4, min(lines)), chance.randrange(1 << 30))
            try:
                more = True
                while more:
                    reboot = chance.random() < REBOOTS
                    again = chance.randint(4, min(lines)) if chance.random() < AGAIN else None
                    more = gone_on(run, again, reboot)
                    rebooted += more and reboot
                defects = faults(run)
                off.append(_off_percent(matrix(run), mean))
                wrong += bool(defects)
                parts_most = max(parts_most, len(parts.of(run)))
                print(
                    f"{run.name}: {len(parts.of(run))} parts, off by {off[-1]:.2f} % {defects or ''}", file=sys.stderr
                )
            except Exception as error:
                stuck += 1
                print(f"{run.name}: {type(error).__name__}: {error}", file=sys.stderr)
            shutil.rmtree(home / str(i))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    spread = max(_off_percent(figures, mean) for figures in whole)
    biased = max(_off_percent(figures, mean) for figures in first)
    return [
        exactly("runs that cannot go on", stuck, "runs", 0),
        exactly("runs damaged, not steady by rounds of their own, or out of order by UTC", wrong, "runs", 0),
        at_most("a point of a resumed run, off the mean of the unbroken runs, worst", max(off), "%", OFF_PERCENT),
        Figure("the same, median of the runs", statistics.median(off), "%", "-", True),
        Figure("unbroken runs among themselves, worst", spread, "%", "-", True),
        Figure("unbroken runs by their rounds 1 to 5, which the full test allows, worst", biased, "%", "-", True),
        Figure("reboots; parts of a run, most", rebooted, f"reboots; {parts_most} parts", "-", True),
    ]


def _off_percent(figures: dict[str, float], mean: dict[str, float]) -> float:
    """How far the worst point is off; without end if one is missing."""
    return max(100 * abs(figures.get(point, float("inf")) / mean[point] - 1) for point in mean)


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


BENCHES = {"resume": (f"kill -9 of {PLAN} {VARIANT} at {KILLS} random moments, then resume (model time)", proof)}
