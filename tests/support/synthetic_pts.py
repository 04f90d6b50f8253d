"""Writes runs of the shipped SNIA PTS plans in which every load has numbers of its own, kept beside the run: what the
report says of a cell, a verdict or a plot can be compared with the number that was put in.

Of a closed loop the latencies are those that Little's law asks for. Reads take half of the mean, writes the rest, and
no mix has as many of one as of the other, so that a mean of the two directions is no mean of the I/Os."""

import json
from pathlib import Path
from typing import NamedTuple

import synthetic_run as run
from synthetic_plan import DRIVE, GAP_NS, Writer

from ssdrig.plan import expand, grammar

CONVERSION_NS = 20_000_000
WATTS_IDLE = 0.5


class Put(NamedTuple):
    """One load as it was put in. `reads`, `writes`: I/Os of each second; `watts`: of each second; `cpu`: of a core, by
    each thread; `hist`: {latency in ns: I/Os} of all of it."""

    reads: list[int]
    writes: list[int]
    read_ns: float
    write_ns: float
    watts: list[float]
    block: float
    cpu: float
    hist: dict[int, int]

    @property
    def ios(self) -> int:
        return sum(self.reads) + sum(self.writes)

    @property
    def lat_sum_ns(self) -> float:
        return sum(self.reads) * self.read_ns + sum(self.writes) * self.write_ns

    @property
    def seconds(self) -> int:
        return len(self.writes)

    @property
    def joules(self) -> float:
        return sum(self.watts)


def steady_load(total, watts, keys, seconds: int = 2, hist=None, cpu: float = 0.0) -> Put:
    """A closed loop with so many I/Os in each second, whose mean latency is what Little's law asks for."""
    in_flight, share = keys["qd"] * keys["threads"], keys["read"] / 100
    if not isinstance(total, int):  # writes, of each second its own number
        assert share == 0
        mean = in_flight * 1e9 * len(total) / sum(total)
        hist = hist or {round(mean): sum(total)}
        return Put([0] * len(total), list(total), 0.0, mean, _by_second(watts, total), _block(keys), cpu, hist)
    counts, reads = [total] * seconds, round(total * share * 0.9) if share < 1 else total
    mean = in_flight * 1e9 / total
    read_ns = mean if share == 1 else mean / 2
    write_ns = (total * mean - reads * read_ns) / (total - reads) if reads < total else 0.0
    if hist is None:
        hist = {round(ns): n * seconds for ns, n in ((read_ns, reads), (write_ns, total - reads)) if n}
    return Put(
        [reads] * seconds,
        [total - reads] * seconds,
        read_ns,
        write_ns,
        _by_second(watts, counts),
        _block(keys),
        cpu,
        hist,
    )


def _by_second(watts, counts) -> list[float]:
    return list(watts) if isinstance(watts, list) else [watts] * len(counts)


def _block(keys) -> float:
    return sum(size * percent / 100 for size, percent in keys["block"])


def document(put: Put, second: int, threads: int, first_ns: int, last: bool) -> str:
    """What fio has counted by the end of a second, as the line of out.json that a run keeps."""
    ms = 1000 * (second + 1)
    job = {"jobname": "x", "error": 0, "job_runtime": ms * threads, "job options": {"numjobs": str(threads)}}
    if last:
        job |= {"usr_cpu": 0.75 * put.cpu, "sys_cpu": 0.25 * put.cpu}
    held = dict(put.hist) if last else {}
    if len(put.hist) == 1:
        held = dict.fromkeys(put.hist, sum(put.reads[: second + 1]) + sum(put.writes[: second + 1]))
    for name, counts, ns in (("read", put.reads, put.read_ns), ("write", put.writes, put.write_ns)):
        n = sum(counts[: second + 1])
        if n:
            lat = {"N": n, "mean": ns} | ({"bins": {str(at): count for at, count in held.items()}} if held else {})
            held = {}
            bytes_ = round(n * put.block)
            job[name] = {"io_bytes": bytes_, "total_ios": n, "runtime": ms, "clat_ns": {"N": n}, "lat_ns": lat}
    at_ns = first_ns + ms * 1_000_000
    return json.dumps({"t_ns": at_ns, "timestamp_ms": at_ns // 1_000_000, "jobs": [job]})


class Run(Writer):
    """A run of a shipped plan. `acts`: what it carries out, by label; `put`: {(label, round): what was put in}."""

    def __init__(self, runs: Path, name: str, variant: str | None = None, logical: int = 512, **params):
        text, where = grammar.find(name)
        parameters = grammar.read(text, where, variant).params | params
        self.drive = DRIVE | {"logical_block_bytes": logical}
        plan = {"name": name, "variant": variant, "scaled": False, "params": parameters, "text": text, "acts": []}
        super().__init__(runs, text, variant, name=name, more={"plan": plan, "drive": self.drive})
        self.plan = grammar.of_run(plan, where)
        every = expand.expand(self.plan, self.drive, frozenset(grammar.CAPABILITIES))
        self.acts = {act.label: act for act in every}
        self.put: dict[tuple[str, int | None], Put] = {}
        self.gaps: dict[str, float] = {}  # s between loads, of those for which it was said

    def does(self, label: str, put: Put, round_: int | None = None, chosen=None, gap_ns=None) -> None:
        """Carry out a load: from its first I/O on what was put in, `gap_ns` behind the one before."""
        act = self.acts[label]
        of = [member for member in self.acts.values() if member.repeat == act.repeat]
        folder = act.folder(round_, of.index(act) + 1)
        more: dict = {"fio": folder} | ({"round": round_} if round_ else {})
        more |= ({"point": dict(act.point)} if act.point else {}) | ({"chosen": chosen} if chosen else {})
        self.put[label, round_] = put
        self.event("step.start", step=act.path, **more)
        if gap_ns is not None:
            self.gaps[label] = gap_ns / 1e9
        gap_ns = gap_ns or GAP_NS
        self.t_ns += gap_ns // 2
        self._power(put.watts[0])  # and not before: no conversion holds both
        self.t_ns += gap_ns - gap_ns // 2
        threads = int((chosen or {}).get("threads", act.keys["threads"]))
        path = self.path / "fio" / folder
        path.mkdir(parents=True)
        (path / "start.json").write_text(json.dumps({"t_ns": self.t_ns, "utc_ns": self.t_ns}))
        lines = [document(put, s, threads, self.t_ns, s == put.seconds - 1) for s in range(put.seconds)]
        (path / "out.json").write_text("\n".join(lines) + "\n")
        for watts in put.watts:
            if watts != self.watts[-1][1]:
                self._power(watts)
            self.t_ns += 1_000_000_000
        self.event("step.end", step=act.path, ok=True, bytes=round(put.ios * put.block), **more)

    def end(self, state: str | None = "complete", power: bool = True, read_late_s: float = 0.0) -> Path:
        self.t_ns += GAP_NS // 2
        self._power(WATTS_IDLE)
        self.t_ns += 10 * GAP_NS
        self.event("clock.anchor", utc_ns=self.utc_ns + self.t_ns - run.T_RUN_NS)
        if state:
            self.event("run.end", state=state, why=None, exit_code=0)
        zero, more = run.T_RUN_NS, {"conversion_ns": CONVERSION_NS, "ping_ns": 1_000_000_000}
        more["read_late_s"] = read_late_s
        rig = run.rig_bin(zero, zero, self.t_ns, self.watts, 80.0, **more) if power else b""
        (self.path / "rig.bin").write_bytes(rig)
        run.seal(self.path, [{"t_ns": t, "kind": kind, **more} for t, kind, more in self.events])
        return self.path
