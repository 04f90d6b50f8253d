"""Writes run folders of power-loss campaigns in model time: commands, contents and verdicts are made by the real
modules of ssdrig.powerloss from a drive with a cache of CACHE_MS whose FLUSH may lie; falls by a closed form."""

import io
import json
import zlib
from pathlib import Path

import numpy as np
import synthetic_plan

from ssdrig.powerloss import exposure, picture, promise, record, sessions, verdict
from ssdrig.powerloss.findings import NAMES
from ssdrig.powerloss.history import FLUSH, FUA, NEVER, ROW, WRITE
from ssdrig.powerloss.judging import proof

HELD = promise.Promise(promise.FLUSH, 4096, 8, 0, 0, "zeros", True, "the drive's write cache is volatile")
CACHE_MS = 40.0  # an acknowledged write reaches the NAND after this at the latest
BLOCKS = 2048
RUN = 7  # of the campaign
PHASE_MS, EVERY_US, TAKES_US = 600, 120, 400  # of writes
SHAPES, AIMS = ("crowbar", "float"), ("random", "flush:-2..2")
PLAN = """schema = 1
name = "powerloss"
title = "Power loss"
source = "a test"
about = "The drive's power is cut while it is written to."
[[step]]
name = "cuts"
do = "cuts"
cuts = {cuts}
[[show]]
view = "cuts"
of = "cuts"
"""
MS = 1_000_000


class Model:
    """The contents of the drive, from session to session. `lies`: the share of cuts at which what a FLUSH covered in
    its last ms is gone."""

    def __init__(self, seed: int = 1, lies: float = 0.0):
        self.rng, self.lies = np.random.default_rng(seed), lies
        self.base = np.zeros(BLOCKS, np.int64)
        self.seq = 1

    def session(self, cut_ns: int, phase_ms: float = PHASE_MS, flush_us: float | None = None):
        """(verdict.Session, verdict.Blocks) of writes up to cut_ns; `flush_us`: a FLUSH so long before the cut."""
        rng, n = self.rng, int(phase_ms * 1e3 / EVERY_US)
        rows = np.zeros(n, ROW)
        rows["seq"] = np.arange(self.seq, self.seq + n)
        rows["lba"], rows["n"], rows["kind"] = rng.integers(0, BLOCKS - 1, n), 1, WRITE
        rows["kind"][rng.random(n) < 1 / 64] = FLUSH
        rows["flags"] = FUA * (rng.random(n) < 1 / 16) * (rows["kind"] == WRITE)
        at_us = -np.sort(rng.uniform(0, phase_ms * 1e3, n))[::-1]
        rows["submit_ns"] = cut_ns + (at_us * 1e3).astype(np.int64)
        if flush_us is not None:
            rows["kind"][-n // 8 :][rows["kind"][-n // 8 :] == FLUSH] = WRITE
            k = int(np.searchsorted(rows["submit_ns"], cut_ns - int(flush_us * 1e3)))
            k = min(k, n - 1)
            rows[k] = (rows["seq"][k], 0, 0, FLUSH, 0, 0, cut_ns - int(flush_us * 1e3), 0)
        took_ns = (rng.gamma(4, TAKES_US / 4, n) * 1e3).astype(np.int64) * np.where(rows["kind"] == FLUSH, 4, 1)
        rows["done_ns"] = rows["submit_ns"] + took_ns
        rows["lba"][rows["kind"] == FLUSH] = rows["n"][rows["kind"] == FLUSH] = 0
        rows["done_ns"][rows["done_ns"] >= cut_ns] = NEVER
        self.seq += n
        session = verdict.Session(rows, cut_ns, cut_ns + 600 * MS, cut_ns + 610 * MS, cut_ns + 900 * MS)
        return session, self._read(session)

    def _read(self, session: verdict.Session) -> verdict.Blocks:
        """What the drive holds after the cut: of each block what is durable, or was written out, or by chance."""
        rows, rng = session.rows, self.rng
        age_ms = (session.cut_ns - rows["done_ns"].astype(float)) / MS
        out = (rows["done_ns"] != NEVER) & (age_ms > rng.uniform(0.2, 1, len(rows)) * CACHE_MS)
        survives = verdict.durable(session, HELD) | (out & (rows["kind"] == WRITE))
        survives |= (rows["kind"] == WRITE) & (rows["done_ns"] == NEVER) & (rng.random(len(rows)) < 0.5)
        if rng.random() < self.lies:
            survives &= ~((rows["flags"] == 0) & (age_ms < 8))
        seen = self.base.copy()
        survives &= rows["kind"] == WRITE
        np.maximum.at(seen, rows["lba"][survives].astype(np.int64), rows["seq"][survives].astype(np.int64))
        lba = np.arange(BLOCKS)
        blocks = verdict.Blocks(lba, self.base.copy(), seen, np.zeros(BLOCKS, bool))
        self.base = verdict.next_base(blocks)
        return blocks


def write(runs: Path, cuts: int = 40, lies: float = 0.0, seed: int = 1, name: str = "cuts-1", more=()) -> Path:
    """A run folder with so many sessions, every twentieth of them a control session, the last cut no cut."""
    writer = synthetic_plan.Writer(runs, PLAN.format(cuts=cuts), name=name, more=more)
    model, rng = Model(seed, lies), np.random.default_rng(seed + 1)
    writer.event("step.start", step="cuts")
    _poll(writer, 100)
    begun = {"run": RUN, "seed": seed, "cuts": cuts, "sessions": cuts, "aims": {"random": 1}, "shapes": {"crowbar": 1}}
    writer.event("powerloss.begin", step="cuts", promise=HELD._asdict(), cannot=["TRIM is not supported"], **begun)
    for number in range(1, cuts + 1):
        session_ = _session(writer, model, rng, number, cuts)
        writer.event("session.judged", step="cuts", **session_)
    _poll(writer, 94)
    writer.event("powerloss.end", step="cuts", stop=None)
    writer.event("step.end", step="cuts", ok=True)
    return writer.end()


def _poll(writer, health_percent: int) -> None:
    """A drive that says of its capacitors how they are."""
    writer.poll("cut", 10**12, 3 * 10**12)
    path = writer.path / "smart" / f"{writer.polls:03}.json"
    document = json.loads(path.read_text())
    page = bytearray.fromhex(document["log_c0h"])
    page[128:130] = health_percent.to_bytes(2, "little")
    path.write_text(json.dumps(document | {"log_c0h": page.hex()}))


def _session(writer, model: Model, rng, number: int, cuts: int) -> dict:
    control = ("no-cut", "announced")[number // 20 % 2] if number % 20 == 0 else None
    aim, shape = AIMS[number % 4 == 1], SHAPES[number % 8 == 2]
    judged = number != cuts - 1
    writer._power(2.0)
    writer.t_ns += (PHASE_MS + 20) * MS
    cut_ns = writer.t_ns
    flush_us = float(rng.uniform(-300, 2000)) if aim.startswith("flush") else None
    session, blocks = model.session(cut_ns, flush_us=max(flush_us, 0) if flush_us is not None else None)
    ruling = verdict.judge(session, blocks, HELD)
    writer._power(0.0)
    writer.t_ns += 700 * MS
    writer._power(1.0 + 0.2 * (shape == "crowbar"))
    ready_s = round(0.3 + float(rng.gamma(4, 0.05)) + (2.5 if number == 7 else 0), 3)
    writer.t_ns += round(ready_s * 1e9)
    names = {NAMES[n]: int(k) for n, k in enumerate(np.bincount(ruling.finding)) if n and k}
    failed = bool(len(ruling.failed()))
    rows, counted = session.rows, verdict.counts(session)
    durable = verdict.durable(session, HELD)
    flushes = rows[(rows["kind"] == FLUSH) & (rows["submit_ns"] < cut_ns)]
    last = flushes[-1] if len(flushes) else None
    free = counted & (rows["kind"] == WRITE) & ~durable
    record_ = {
        "cut": number,
        "aim": aim if control is None else "random",
        "shape": shape if control != "no-cut" else None,
        "control": control,
        "seed": 1000 + number,
        "planned_ns": cut_ns - 40_000,
        "fired_ns": cut_ns,
        "bound_ns": int(150_000 + rng.integers(0, 40_000)),
        "on_ns": cut_ns + 600 * MS,
        "off_s": 0.6,
        "ready_s": ready_s,
        "delta_flush_us": None if last is None else (cut_ns - int(last["submit_ns"])) / 1e3,
        "delta_ack_us": None if last is None or last["done_ns"] == NEVER else (cut_ns - int(last["done_ns"])) / 1e3,
        "commands": len(rows),
        "durable": int(durable.sum()),
        "in_flight": int((~counted).sum()),
        "unflushed_bytes": int(free.sum()) * 4096,
        "written_bytes": int(rows["n"].sum()) * 4096,
        "blocks_read": len(blocks.lba),
        "exposed": exposure.of(session, blocks, HELD, ruling) if judged and not control else None,
        "findings": names if judged else {},
        "failed": failed and judged,
        "interval": [number] * 3 if failed and judged else None,
        "whole": True,
        "suspicion": False,
        "lost_volatile": len(ruling.lost_volatile) if judged else None,
        "judged": judged,
        "why_not": "" if judged else "rail 0 was not seen below 3750 mV, but at 4310 mV",
        "unsafe_shutdowns": int(control is None),
        "power_cycles": int(control is None),
        "fall": {"t90_10_us": 900.0 + number, "holdup_us": 2100.0, "knee_uV": 2_700_000, "residual_uV": 21_000},
        "recharge_J": 0.5 - 0.0015 * number,
        "boot_J": round(1.2 + 0.01 * float(rng.normal()), 4),
    }
    folder = writer.path / "powerloss" / f"{number:04}"
    folder.mkdir(parents=True)
    files = {"history.bin.z": zlib.compress(rows[-64:].tobytes(), 1), "waveform.npz": _waveform(shape, cut_ns, rng)}
    seen = {**blocks._asdict(), "finding": ruling.finding, "trimmed_after": ruling.trimmed}
    files["seen.npz"] = sessions._npz(**seen)
    block = bytearray(4096)
    record.fill(np.frombuffer(block, np.uint8), 7, 1, 0)
    proofs = [proof(session, blocks, HELD, ruling, int(i), bytes(block)) for i in ruling.failed()[:4]]
    if proofs and judged:
        files["proofs.json"] = json.dumps(proofs).encode()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    shown = {"run": RUN, "record": record_, "promise": HELD._asdict(), "report": None, "sums": sessions.sums(files)}
    shown["picture"] = picture.of_cut(session, blocks, HELD, ruling)
    (folder / "verdict.json").write_bytes(sessions.sealed(shown))
    return record_


def _waveform(shape: str, cut_ns: int, rng) -> bytes:
    """A rail of 5 V that falls with a time constant, 2 ms before the edge to 13 ms behind it."""
    t_ms = np.arange(7500) * 0.002 - 2
    tau_ms = 0.4 if shape == "crowbar" else 2.5
    volts = np.where(t_ms < 0, 5.0, 5.0 * np.exp(-np.maximum(t_ms, 0) / tau_ms)) + rng.normal(0, 0.01, len(t_ms))
    out = io.BytesIO()
    np.savez_compressed(out, volts=volts.astype(np.float32), t0_ns=cut_ns - 2 * MS, dt_ns=2000)
    return out.getvalue()
