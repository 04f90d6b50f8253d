"""Writes host/ssdrig/report/reference.ssdlib: `python host/docs/make_reference.py`. The quick consistency test of
the SIMULATED drives below, with their own over-provisioning and 25 % of the raw NAND, carried out by their models in
model time: no fio, no host that could be slow, the same result each time; half a minute. Run folders are written as a
run leaves them, with the files of tests/support, and read as any other."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "support")]

import synthetic_fio  # noqa: E402
import synthetic_plan  # noqa: E402

from ssdrig.load import fiotext  # noqa: E402
from ssdrig.plan import expand, grammar  # noqa: E402
from ssdrig.reading import library_file, table  # noqa: E402
from ssdrig.report import library  # noqa: E402
from ssdrig.virtual.flash.drive import VirtualDrive  # noqa: E402
from ssdrig.virtual.flash.presets import PRESETS  # noqa: E402

DRIVES = ("sata-mlc", "sata-tlc", "nvme-tlc", "enterprise-plp")
RANGES = {None: None, 25: {"range": "raw 75 %"}}  # over-provisioning in percent of the raw NAND: parameters
CAPACITY_BYTES = 1 << 30
SECOND_NS = 1_000_000_000
POLL_S = 10
UTC_NS = 1_796_000_000 * SECOND_NS  # of all: the file is the same each time it is made
MOST_IOPS = 3_000_000


class ModelRun(synthetic_plan.Writer):
    """A run of the consistency test on a drive's model."""

    def __init__(self, runs: Path, preset, op: float | None):
        text, where = grammar.find("consistency")
        plan = grammar.read(text, where, "quick", RANGES[op])
        self.model, self.now_ns = VirtualDrive(preset, capacity_bytes=CAPACITY_BYTES, seed=1), 0
        drive = {
            **{"model": preset.model.replace("SIMULATED", "SIMULATED reference"), "serial": None, "firmware": "SIM1.0"},
            **{"capacity_bytes": CAPACITY_BYTES, "raw_nand_bytes": int(self.model.raw_nand_bytes)},
            **{"logical_block_bytes": 4096, "interface": preset.interface, "preset": preset.name, "time_dilation": 1},
            **{
                "rated_write_bytes": preset.rated_write_bytes(CAPACITY_BYTES),
                "rated_pe_cycles": preset.rated_pe_cycles,
            },
        }
        self.acts = {act.path: act for act in expand.expand(plan, drive, frozenset(grammar.CAPABILITIES))}
        tested = self.acts["load"].range_bytes
        header = {
            "plan": {"name": "consistency", "variant": "quick", "scaled": True, "params": plan.params, "text": text}
            | {"acts": []},
            "method": {"name": "consistency", "seed": 1, "tested_bytes": tested, "op_percent": op},
            "drive": drive,
            "host": {"python": None, "fio": "the drive's model, in model time", "kernel": None, "cpus": None},
        }
        super().__init__(runs, text, "quick", name=f"{preset.name}-{op or 'own'}", utc_ns=UTC_NS, more=header)

    def read_counters(self, reason: str) -> None:
        counted = self.model.ledger()
        self.poll(reason, counted["host_write_bytes"] + (1 << 40), counted["nand_write_bytes"] + (1 << 40))

    def carried_out(self, path: str, seconds: int) -> None:
        """A closed loop of this length, in pieces between which the counters are read."""
        keys, pages = self.acts[path].keys, self.acts[path].range_bytes // 4096
        npages = int(keys["block"][0][0]) // 4096
        counts, latencies, watts = [], [], []
        begun_ns = self.t_ns + synthetic_plan.GAP_NS
        readings = [(0, self.model.ledger())]
        for at_s in range(0, seconds, POLL_S):
            lasts = min(POLL_S, seconds - at_s)
            of, took_ns = self.model.closed_loop(
                queue_depth=keys["qd"],
                t_ns=self.now_ns,
                duration_ns=lasts * SECOND_NS,
                npages=npages,
                random=keys["pattern"] == "random",
                span=pages,
                samples=lasts * MOST_IOPS // npages,
            )
            from_ns, self.now_ns = self.now_ns, self.now_ns + lasts * SECOND_NS
            self.model.advance(self.now_ns)
            edges = [from_ns + second * SECOND_NS for second in range(lasts + 1)]
            watts += [self.model.energy_between(a, b) for a, b in zip(edges, edges[1:], strict=False)]
            ends = np.cumsum(of)
            latencies += [took_ns[end - count : end] for end, count in zip(ends.tolist(), of.tolist(), strict=True)]
            counts += of.tolist()
            readings.append((at_s + lasts, self.model.ledger()))
        self._fio(path, begun_ns, counts, latencies, npages * 4096)
        self._journal(path, begun_ns, counts, watts, readings, npages * 4096)

    def _fio(self, path: str, begun_ns: int, counts: list, latencies: list, block: int) -> None:
        """fio's files, with the latencies of each second."""
        folder, started = self.path / "fio" / path, synthetic_plan.run.STARTED
        means = [round(of.mean()) if len(of) else 0 for of in latencies]
        synthetic_fio.step(folder, started, begun_ns, counts, block, max(means), path)  # and what differs anew
        first_ms = begun_ns // 1_000_000
        utc_ms = (begun_ns - started["t_ns"] + started["utc_ns"]) // 1_000_000
        every = [np.bincount(fiotext.plat_index(of), minlength=fiotext.BINS) for of in latencies]
        log = [f"{first_ms + 1000 * n}, 1, {block}, {', '.join(map(str, of))}\n" for n, of in enumerate(every, 1)]
        (folder / f"{path}_clat_hist.1.log").write_text("".join(log))
        for kind in ("lat", "clat"):
            lines = (f"{first_ms + 1000 * n}, {mean_ns}, 1, 0, 0\n" for n, mean_ns in enumerate(means, 1))
            (folder / f"{path}_{kind}.1.log").write_text("".join(lines))
        documents, bins = [], np.zeros(fiotext.BINS, np.int64)
        middles, total, total_ns = fiotext.plat_ns(np.arange(fiotext.BINS)), 0, 0
        for second, (count, of, held) in enumerate(zip(counts, latencies, every, strict=True), 1):
            total, total_ns, bins = total + count, total_ns + int(of.sum()), bins + held
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
                self.poll("poll", counted["host_write_bytes"] + (1 << 40), counted["nand_write_bytes"] + (1 << 40))
                self.t_ns = stays
        self._power(0.3)
        self.t_ns += synthetic_plan.GAP_NS
        self.event("step.end", step=path, ok=True, bytes=sum(counts) * block, fio=path)
        self.t_ns += synthetic_plan.GAP_NS


def made(runs: Path, preset, op: float | None) -> Path:
    """The run folder of a drive at an over-provisioning."""
    run = ModelRun(runs, preset, op)
    run.step("purge", 1.0, method="format")
    pages = run.acts["fill"].range_bytes // 4096
    run.model.precondition("seq", pages / run.model.pages)
    run.read_counters("before")
    run.carried_out("load", 60)
    run.read_counters("after")
    return run.end()


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ssdrig-reference-", dir="/var/tmp") as folder:
        runs = [made(Path(folder), PRESETS[name], op) for name in DRIVES for op in RANGES]
        tables = [table.load(run, by_second=True) for run in runs]
        content = library_file.packed(tables, UTC_NS)
    library.REFERENCE.write_bytes(content)
    print(f"{library.REFERENCE}: {len(tables)} runs, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
