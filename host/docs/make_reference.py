"""Writes host/ssdrig/report/reference.ssdlib: `python host/docs/make_reference.py`. The consistency test of the
SIMULATED drives below, with their own over-provisioning and 25 % of the raw NAND, quick and as it is, and the sweeps of
queue depth and block size as they are, carried out by their models in model time: no fio, no host that could be slow,
the same result each time; a quarter of an hour. Run folders are written as a run leaves them, with the files of
tests/support, and read as any other."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]

import synthetic_fio  # noqa: E402
import synthetic_plan  # noqa: E402
import synthetic_pts  # noqa: E402

from ssdrig.load import fiotext  # noqa: E402
from ssdrig.plan import expand, grammar  # noqa: E402
from ssdrig.plan.rules import ends  # noqa: E402
from ssdrig.plan.rules.spare import Spare  # noqa: E402
from ssdrig.reading import library_file, table  # noqa: E402
from ssdrig.report import library  # noqa: E402
from ssdrig.virtual.flash.drive import VirtualDrive  # noqa: E402
from ssdrig.virtual.flash.presets import PRESETS  # noqa: E402

DRIVES = ("sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp")
RANGES = {None: None, 25: {"range": "raw 75 %"}}  # over-provisioning in percent of the raw NAND: parameters
VARIANTS = ("quick", None)  # of the consistency test
SWEEPS = ("qd-sweep", "bs-sweep")
CAPACITY_BYTES, PAGE_BYTES = 1 << 30, 4096
HOST = {"python": None, "fio": "the drive's model, in model time", "kernel": None, "cpus": None}
SECOND_NS = 1_000_000_000
PIECE_S = 10  # of a load, between two looks at the model's counters
UTC_NS = 1_796_000_000 * SECOND_NS  # of all: the file is the same each time it is made
MOST_IOPS = 3_000_000


class Model:
    """A drive's model with a clock of its own."""

    def __init__(self, preset):
        self.drive, self.now_ns = VirtualDrive(preset, capacity_bytes=CAPACITY_BYTES, seed=1), 0
        self.header = {
            **{"model": preset.model.replace("SIMULATED", "SIMULATED reference"), "serial": None, "firmware": "SIM1.0"},
            **{"capacity_bytes": CAPACITY_BYTES, "raw_nand_bytes": int(self.drive.raw_nand_bytes)},
            **{"logical_block_bytes": PAGE_BYTES, "interface": preset.interface, "preset": preset.name},
            **{"time_dilation": 1, "rated_write_bytes": preset.rated_write_bytes(CAPACITY_BYTES)},
            **{"rated_pe_cycles": preset.rated_pe_cycles},
        }

    def loop(self, keys, pages: int, seconds: int) -> tuple[list[int], list[np.ndarray], list[float]]:
        """A closed loop of this length: I/Os, latencies in ns and watts of each second."""
        npages = int(keys["block"][0][0]) // PAGE_BYTES
        counts, took_ns = self.drive.closed_loop(
            queue_depth=keys["qd"] * keys["threads"],
            t_ns=self.now_ns,
            duration_ns=seconds * SECOND_NS,
            read_share=keys["read"] / 100,
            npages=npages,
            random=keys["pattern"] == "random",
            span=pages,
            samples=seconds * MOST_IOPS // npages,
        )
        edges = [self.now_ns + second * SECOND_NS for second in range(seconds + 1)]
        self.now_ns = edges[-1]
        self.drive.advance(self.now_ns)
        watts = [self.drive.energy_between(a, b) for a, b in zip(edges, edges[1:], strict=False)]
        ends_at = np.cumsum(counts)
        latencies = [took_ns[end - count : end] for end, count in zip(ends_at, counts.tolist(), strict=True)]
        return counts.tolist(), latencies, watts

    def written(self) -> tuple[int, int]:
        """Bytes that host and drive have written."""
        ledger = self.drive.ledger()
        return ledger["host_write_bytes"] + (1 << 40), ledger["nand_write_bytes"] + (1 << 40)


class Consistency(synthetic_plan.Writer):
    """A run of the consistency test on a drive's model."""

    def __init__(self, runs: Path, preset, op: float | None, variant: str | None):
        text, where = grammar.find("consistency")
        plan = grammar.read(text, where, variant, RANGES[op])
        self.model = Model(preset)
        self.acts = {act.path: act for act in expand.expand(plan, self.model.header, frozenset(grammar.CAPABILITIES))}
        tested = self.acts["load"].range_bytes
        of_plan = {"name": "consistency", "variant": variant, "scaled": variant == "quick", "params": plan.params}
        header = {
            "plan": of_plan | {"text": text, "acts": []},
            "method": {"name": "consistency", "seed": 1, "tested_bytes": tested, "op_percent": op},
            "drive": self.model.header,
            "host": HOST,
        }
        name = f"{preset.name}-{op or 'own'}{'-full' * (variant is None)}"
        super().__init__(runs, text, variant, name=name, utc_ns=UTC_NS, more=header)

    def read_counters(self, reason: str) -> None:
        self.poll(reason, *self.model.written())

    def carried_out(self, path: str) -> None:
        """A load until its end, in pieces between which the counters are read."""
        act = self.acts[path]
        keys, pages = act.keys, act.range_bytes // PAGE_BYTES
        time_s = next(int(entry.time_s) for entry in keys["until"] if entry.time_s)
        watch = ends.Watch(
            keys["until"], CAPACITY_BYTES, Spare(CAPACITY_BYTES, self.model.header["raw_nand_bytes"], act.range_bytes)
        )
        counts, latencies, watts = [], [], []
        begun_ns = self.t_ns + synthetic_plan.GAP_NS
        readings = [(0, self.model.written())]
        while len(counts) < time_s and not (watch.rules and watch.met(counts, sum(counts) * PAGE_BYTES)):
            of, took_ns, power = self.model.loop(keys, pages, min(PIECE_S, time_s - len(counts)))
            counts, latencies, watts = counts + of, latencies + [histogram(one) for one in took_ns], watts + power
            if len(counts) % int(keys["smart"]) == 0:
                readings.append((len(counts), self.model.written()))
        self._fio(path, begun_ns, counts, latencies, PAGE_BYTES)
        self._journal(path, begun_ns, counts, watts, readings, PAGE_BYTES)
        if watch.rules:
            writes = {"drive_writes": 1 + sum(counts) * PAGE_BYTES / act.range_bytes}
            self.event("steady", step=path, ended_by=watch.ended_by or "time", **(watch.verdict | writes))
        self.event("windows", step=path, windows=ends.spans_s(keys["windows"], len(counts)))
        self.event("step.end", step=path, ok=True, bytes=sum(counts) * PAGE_BYTES, fio=path)
        self.t_ns += synthetic_plan.GAP_NS

    def _fio(self, path: str, begun_ns: int, counts: list, latencies: list, block: int) -> None:
        """fio's files, with the latencies of each second."""
        folder, started = self.path / "fio" / path, synthetic_plan.run.STARTED
        means = [round(mean_ns) for mean_ns, _ in latencies]
        synthetic_fio.step(folder, started, begun_ns, counts, block, max(means), path)  # and what differs anew
        first_ms = begun_ns // 1_000_000
        utc_ms = (begun_ns - started["t_ns"] + started["utc_ns"]) // 1_000_000
        every = [held for _, held in latencies]
        log = [f"{first_ms + 1000 * n}, 1, {block}, {', '.join(map(str, of))}\n" for n, of in enumerate(every, 1)]
        (folder / f"{path}_clat_hist.1.log").write_text("".join(log))
        for kind in ("lat", "clat"):
            lines = (f"{first_ms + 1000 * n}, {mean_ns}, 1, 0, 0\n" for n, mean_ns in enumerate(means, 1))
            (folder / f"{path}_{kind}.1.log").write_text("".join(lines))
        documents, bins = [], np.zeros(fiotext.BINS, np.int64)
        middles, total, total_ns = fiotext.plat_ns(np.arange(fiotext.BINS)), 0, 0
        for second, (count, (mean_ns, held)) in enumerate(zip(counts, latencies, strict=True), 1):
            total, total_ns, bins = total + count, total_ns + round(mean_ns * count), bins + held
            some = {str(int(middles[at])): int(bins[at]) for at in np.flatnonzero(bins)}
            lat = {"mean": total_ns / max(total, 1), "N": total, "bins": some}
            moved = {"io_bytes": total * block, "total_ios": total, "runtime": 1000 * second}
            none = {"io_bytes": 0, "total_ios": 0, "runtime": 0, "clat_ns": {"N": 0, "bins": {}}}
            job = {"jobname": path, "error": 0, "job_runtime": 1000 * second, "read": none, "trim": none}
            job["write"] = moved | {"clat_ns": lat, "lat_ns": lat}
            document = {"fio version": "fio-3.33", "timestamp_ms": utc_ms + 1000 * second, "jobs": [job]}
            documents.append(json.dumps(document))
        (folder / "out.json").write_text("\n".join(documents) + "\n")

    def _journal(self, path: str, begun_ns: int, counts: list, watts: list, readings: list, block: int) -> None:
        self.event("step.start", laid=synthetic_plan.run.USED_UP, fio=path, step=path)
        self.t_ns = begun_ns
        at = dict(readings)
        for second, power in enumerate(watts):
            self._power(power)
            self.t_ns += SECOND_NS
            counted = at.get(second + 1)
            if counted and second + 1 < len(watts):
                stays = self.t_ns
                self.poll("poll", *counted)
                self.t_ns = stays
        self._power(0.3)
        self.t_ns += synthetic_plan.GAP_NS


class Sweep(synthetic_pts.Run):
    """A run of a plan whose loads are points of reads alone or writes alone, on a drive's model."""

    def __init__(self, runs: Path, preset, name: str):
        text, where = grammar.find(name)
        self.model, self.plan = Model(preset), grammar.read(text, where)
        self.drive, self.put, self.gaps = self.model.header, {}, {}
        plan = {"name": name, "variant": None, "scaled": False, "params": self.plan.params, "text": text, "acts": []}
        header = {"plan": plan, "drive": self.drive, "host": HOST}
        synthetic_plan.Writer.__init__(self, runs, text, name=f"{preset.name}-{name}", utc_ns=UTC_NS, more=header)
        every = expand.expand(self.plan, self.drive, frozenset(grammar.CAPABILITIES))
        self.acts = {act.label: act for act in every}

    def carried_out(self, act) -> None:
        keys, pages = act.keys, act.range_bytes // PAGE_BYTES
        time_s = next(int(entry.time_s) for entry in keys["until"] if entry.time_s)
        watch = ends.Watch(
            keys["until"], CAPACITY_BYTES, Spare(CAPACITY_BYTES, self.drive["raw_nand_bytes"], CAPACITY_BYTES)
        )
        size, counts, watts, bins, total_ns = int(keys["block"][0][0]), [], [], np.zeros(fiotext.BINS, np.int64), 0.0
        self.poll("before", *self.model.written())
        while len(counts) < time_s and not (watch.rules and watch.met(counts, sum(counts) * size)):
            of, took_ns, power = self.model.loop(keys, pages, min(PIECE_S, time_s - len(counts)))
            for count, (mean_ns, held) in zip(of, map(histogram, took_ns), strict=True):
                total_ns, bins = total_ns + mean_ns * count, bins + held
            counts, watts = counts + of, watts + power
        mean_ns, none = total_ns / max(1, sum(counts)), [0] * len(counts)
        held = dict(zip(fiotext.plat_ns(np.flatnonzero(bins)).tolist(), bins[bins > 0].tolist(), strict=True))
        reads = keys["read"] == 100
        pair, means = ((counts, none), (mean_ns, 0.0)) if reads else ((none, counts), (0.0, mean_ns))
        self.does(act.label, synthetic_pts.Put(*pair, *means, watts, float(size), 0.0, held))
        if watch.rules:
            writes = {"drive_writes": 1 + sum(counts) * PAGE_BYTES / CAPACITY_BYTES}
            self.event("steady", step=act.path, ended_by=watch.ended_by or "time", **(watch.verdict | writes))
        self.poll("after", *self.model.written())


def histogram(took_ns: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean latency, and fio's bins."""
    mean_ns = float(took_ns.mean()) if len(took_ns) else 0.0
    return mean_ns, np.bincount(fiotext.plat_index(took_ns), minlength=fiotext.BINS)


def swept(runs: Path, preset, name: str) -> Path:
    """The run folder of a drive's sweep."""
    run = Sweep(runs, preset, name)
    run.step("purge", 1.0, method="format")
    run.model.drive.precondition("seq", 1.0)
    for act in run.acts.values():
        if act.do == "load" and act.not_run:
            run.not_run(act.label, act.not_run)
        elif act.do == "load":
            run.carried_out(act)
    return run.end()


def consistency(runs: Path, preset, op: float | None, variant: str | None) -> Path:
    """The run folder of a drive at an over-provisioning."""
    run = Consistency(runs, preset, op, variant)
    run.step("purge", 1.0, method="format")
    pages = run.acts["fill"].range_bytes // PAGE_BYTES
    run.model.drive.precondition("seq", pages / run.model.drive.pages)
    run.read_counters("before")
    run.carried_out("load")
    run.read_counters("after")
    return run.end()


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ssdrig-reference-", dir="/var/tmp") as folder:
        runs = [
            consistency(Path(folder), PRESETS[name], op, variant)
            for name in DRIVES
            for variant in VARIANTS
            for op in RANGES
        ]
        runs += [swept(Path(folder), PRESETS[name], plan) for name in DRIVES for plan in SWEEPS]
        tables = [table.load(run, by_second=True) for run in runs]
        content = library_file.packed(tables, UTC_NS)
    library.REFERENCE.write_bytes(content)
    print(f"{library.REFERENCE}: {len(tables)} runs, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
