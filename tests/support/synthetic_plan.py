"""Writes run folders of plans whose figures are known beforehand, in the way of synthetic_run.py."""

import json
from pathlib import Path

import synthetic_fio
import synthetic_run as run

DRIVE = {
    "model": "SIMULATED SATA TLC",
    "serial": "SIM0001",
    "firmware": "1",
    "capacity_bytes": 4294967296,
    "raw_nand_bytes": 5153960755,
    "logical_block_bytes": 4096,
    "interface": "nbd",
    "preset": "sata-tlc",
    "time_dilation": 1,
}
GAP_NS = 100_000_000
QUIET_NS = 8_000_000_000  # in which the drive shows that it does nothing on its own


class Writer:
    """One run of a plan: call step() or load() for each act in order, then end()."""

    def __init__(
        self,
        runs: Path,
        text: str,
        variant: str | None = None,
        params=None,
        dilation: int = 1,
        name="p-1",
        utc_ns=5,
        more=(),
    ):
        self.utc_ns = utc_ns
        self.path = Path(runs) / name
        self.path.mkdir(parents=True)
        (self.path / "smart").mkdir()
        self.t_ns = run.T_RUN_NS + 1_000_000_000
        self.events = [(run.T_RUN_NS, "run.start", {"pid": 1}), (run.T_RUN_NS, "clock.anchor", {"utc_ns": utc_ns})]
        self.watts = [(-1000.0, 0.5)]
        self.polls = 0
        plan = {"name": "demo", "variant": variant, "scaled": variant == "quick", "params": params or {}}
        header = {
            "schema": 1,
            "run": name,
            "ssdrig": "0.1.0",
            "simulated": True,
            "started": {"t_ns": run.T_RUN_NS, "utc_ns": utc_ns},
            "plan": plan | {"text": text, "acts": []},
            "method": {"name": "demo", "seed": 1, "tested_bytes": None, "op_percent": None},
            "drive": DRIVE | {"time_dilation": dilation},
            "rig": {"port": "synthetic", "simulated": True},
            "host": {"python": "3.11.2", "fio": "fio-3.33", "kernel": "6.1", "cpus": 2},
        }
        header |= more
        (self.path / "run.json").write_text(json.dumps(header))
        (self.path / "lock").write_text("")

    def event(self, kind: str, **more) -> None:
        self.events.append((self.t_ns, kind, more))

    def not_run(self, label: str, why: str) -> None:
        self.event("not_run", step=label.partition(" ")[0], label=label, why=why)

    def step(self, path: str, seconds: float, watts: float = 0.5, ok: bool = True, **more) -> None:
        """A step without I/O."""
        self._power(watts)
        self.event("step.start", step=path, **more)
        self.t_ns += round(seconds * 1e9)
        self.event("step.end", step=path, ok=ok, **more, **({} if ok else {"why": "it broke"}))
        self._power(0.5)
        self.t_ns += GAP_NS

    def load(self, path: str, iops, watts: float, block=4096, lat_ns=800_000, folder=None, ended=True, **more) -> None:
        """A load with so many I/Os in each second; SMART is not polled."""
        more["fio"] = folder or path
        self.event("step.start", **{"laid": run.USED_UP} | more, step=path)
        self.t_ns += GAP_NS
        self._power(watts)
        name, fio = path.rpartition("/")[2], self.path / "fio" / (folder or path)
        synthetic_fio.step(fio, run.STARTED, self.t_ns, iops, block, lat_ns, name)
        self.t_ns += len(iops) * 1_000_000_000
        self._power(0.5)
        self.t_ns += GAP_NS
        if ended:
            self.event("step.end", step=path, ok=True, bytes=sum(iops) * block, **more)
        self.t_ns += GAP_NS

    def poll(self, reason: str, host_bytes: int, nand_bytes: int, temperature_C: int = 40) -> None:
        self.polls += 1
        took_ns = 10_000_000
        document = run.smart_document(self.polls, reason, self.t_ns, host_bytes, nand_bytes, temperature_C, took_ns)
        (self.path / "smart" / f"{self.polls:03}.json").write_text(json.dumps(document))
        self.event("smart.start", n=self.polls, reason=reason)
        self.t_ns += 2 * took_ns
        self.event("smart.end", n=self.polls, reason=reason, ok=True)

    def end(self, state: str | None = "complete", power: bool = True) -> Path:
        self.event("clock.anchor", utc_ns=self.utc_ns + self.t_ns - run.T_RUN_NS)
        if state:
            self.event("run.end", state=state, why=None, exit_code=0)
        zero = run.T_RUN_NS
        rig = run.rig_bin(zero, zero, self.t_ns, self.watts, 80.0) if power else b""
        (self.path / "rig.bin").write_bytes(rig)
        run.seal(self.path, [{"t_ns": t, "kind": kind, **more} for t, kind, more in self.events])
        return self.path

    def _power(self, watts: float) -> None:
        self.watts.append(((self.t_ns - run.T_RUN_NS) / 1e9, watts))


STEPS = """schema = 1
name = "demo"
title = "Three writes"
source = "a test"
about = "Writes, trims and writes again."
scaled = ["quick"]
[param]
time = "10 s"
[variant.quick]
time = "4 s"
[[step]]
name = "fill"
do = "fill"
[[step]]
name = "clean"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
qd = 4
time = "$time"
windows = { late = "last 2 s" }
[[step]]
name = "trim"
do = "trim"
[[step]]
name = "rest"
do = "idle"
time = "0 s"
[[step]]
name = "after"
do = "load"
pattern = "random"
read = 0
block = "4 KiB"
time = "$time"
"""
STEP_SHOWS = """
[[show]]
view = "scatter"
of = "clean"
window = "late"
[[show]]
view = "series"
of = ["clean", "trim", "after"]
value = ["MB/s", "W", "lat_p99", "wa", "C"]
[[show]]
view = "bars"
of = ["clean", "after"]
value = ["MB/s", "W", "wa"]
[[show]]
view = "histogram"
of = ["clean", "after"]
[[show]]
view = "figure"
name = "recovery"
title = "Recovery"
formula = "after.MB/s / clean.MB/s"
unit = "%"
"""
GRID = """schema = 1
name = "demo"
title = "A grid"
source = "a test"
about = "Blocks by mixes, in rounds."
[[step]]
name = "rounds"
do = "repeat"
most = 7
until = [{ steady = "pts", track = ["iops read=0 block=4KiB"] }]
  [[step.step]]
  name = "point"
  do = "load"
  pattern = "random"
  over = [{ read = [100, 0] }, { block = ["64 KiB", "4 KiB", "512 B"] }]
  time = "2 s"
[[show]]
view = "rounds"
of = "rounds/point"
where = "read=0"
value = "iops"
by = "block"
[[show]]
view = "steady"
of = "rounds"
[[show]]
view = "matrix"
of = "rounds/point"
rows = "block"
columns = "read"
value = ["iops", "W", "uJ/IO"]
[[show]]
view = "lines"
of = "rounds/point"
x = "block"
by = "read"
value = "iops"
scale = "log"
[[show]]
view = "heat"
of = "rounds/point"
rows = "block"
columns = "read"
value = "iops/W"
"""


def steps(runs: Path, shows: str = STEP_SHOWS, **more) -> Path:
    """fill 2 s, clean 4 s of 2000 IOPS at 2 W, trim 0.25 s, after 4 s of 1000 IOPS at 1 W; WA 1 and 3."""
    w = Writer(runs, STEPS + shows, "quick", {"time": "4 s"}, **more)
    w.load("fill", [1000, 1000], 3.0, block=131072, lat_ns=1_000_000)
    w.poll("before", 2**30, 2**30)
    w.load("clean", [2000] * 4, 2.0)
    w.poll("after", 2**30 + 8000 * 4096, 2**30 + 8000 * 4096, 45)
    w.step("trim", 0.25, 1.0)
    w.not_run("rest", "0 s")
    w.poll("before", 2**30 + 8000 * 4096, 2**30 + 8000 * 4096)
    w.load("after", [1000] * 4, 1.0)
    w.poll("after", 2**30 + 12000 * 4096, 2**30 + 20000 * 4096)
    w.t_ns += QUIET_NS
    w.poll("settled", 2**30 + 12000 * 4096, 2**30 + 20000 * 4096)
    return w.end()


def grid(runs: Path, falling: float = 0.0, rounds: int = 5, power: bool = True, **more) -> Path:
    """Rounds of 2 x 2 points: reads 3000 and 1000 IOPS at 1 W, writes 300 and 100 at 2 W, for 64 and 4 KiB; the writes
    fall by the part `falling` from round to round."""
    from ssdrig.plan.rules import ends

    w = Writer(runs, GRID, **more)
    seen: list[float] = []
    for number in range(1, rounds + 1):
        for read, block, place, iops in ((100, 64, 1, 3000), (100, 4, 2, 1000), (0, 64, 4, 300), (0, 4, 5, 100)):
            point = {"read": read, "block": f"{block} KiB"}
            count = round(iops * (1 - falling * (number - 1))) if read == 0 else iops
            folder = f"rounds/point/r{number:02}/p{place:02}"
            watts = 1.0 if read else 2.0
            w.load("rounds/point", [count] * 2, watts, 1024 * block, folder=folder, round=number, point=point)
            w.not_run(f"rounds/point read={read} block=512B", "this drive has blocks of 4096 bytes")
        seen.append(float(count))
        verdicts = ends.tracked({"iops read=0 block=4KiB": seen})
        w.event("round", step="rounds", round=number, steady=False, tracked=verdicts)
    return w.end(power=power)
