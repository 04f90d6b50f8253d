"""The truth folder of a virtual drive: what really happened, for comparison only.

    ledger.json   the ledger, replaced atomically once a second and at the end, with its `t_ns`
    energy.bin    energy over time, appended once a second and at the end, little endian:
                  32 bytes header: 8s magic "SSDRENG1" | u64 t0_ns CLOCK_MONOTONIC of model time 0 | u32 dilation
                                   | u32 step_ns of model time | 8 zero bytes
                  then u64 energy_nJ of each step since model time 0
    counts.jsonl  COUNTS of the ledger a line, at the start, every COUNT_NS and at the end, with their `t_ns` and
                  `last_command_t_ns`, when the last command had come by then, and `first_command_t_ns`, when
                  the first since the line before had come (null: none)
    marks.jsonl   one ledger a line, at each time that a host read the SMART page 02h
    cuts.jsonl    one power cut a line, once the drive has started again or at the end: when, the data lost of which
                  page and why, the commands in flight (powercut.Cut.record, Device.power_cut, power_on)
    retention.json  of a drive stored without power (ageing.truth), at the start of its server:
                    which pages cannot be read, and which units have pages that need read-retries
    retries.bin     with it: one byte for each page of the drive, this many retries; 9: it cannot be read

A server that was killed leaves at most its last second out of the first two."""

import itertools
import json
import struct
from pathlib import Path

import numpy as np

from ssdrig.base.errors import JournalError, UsageError
from ssdrig.base.files import write_atomically
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash import ageing, ftl

STEP_NS = 1_000_000
COUNT_NS = 50_000_000  # of host time; collection comes in bursts, so a second is too coarse for an edge
KEPT_STEPS = 60_000  # of the energy, that the device may still be asked for
HEADER = struct.Struct("<8sQII8x")
MAGIC = b"SSDRENG1"
COUNTS = ("host_write_commands", "host_write_bytes", "nand_write_bytes", "host_latency_ns")


class TruthFolder:
    """Writes the folder of one device; write() once a second, close() at the end."""

    def __init__(self, folder: str, device: Device):
        self.folder, self.device, self.steps = Path(folder), device, 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _refuse_other_files(self.folder)
            self.energy = open(self.folder / "energy.bin", "wb")
            self.counts = open(self.folder / "counts.jsonl", "w")
        except OSError as e:
            seen = e.strerror or str(e)
            raise UsageError(f"a folder {folder} for the truth", seen, "give another --truth DIR") from e
        device.note_cut = self._cut
        self.energy.write(HEADER.pack(MAGIC, device.t0_ns, device.dilation, STEP_NS))
        self._counted_ns = 0
        self.count(device.t0_ns)
        self._write_unreadable(device.drive)

    def _write_unreadable(self, drive) -> None:
        retries, retention = self.folder / "retries.bin", self.folder / "retention.json"
        if not drive.unreadable and not drive.blk[:, ftl.AGE].any():
            retries.unlink(missing_ok=True)
            retention.unlink(missing_ok=True)
            return
        levels = ageing.levels(drive)
        retries.write_bytes(levels.tobytes())
        write_atomically(retention, json.dumps(ageing.truth(drive, levels)).encode() + b"\n")

    def write(self, t_ns: int) -> None:
        self.device.advance(t_ns)
        steps = self.device.model_ns(t_ns) // STEP_NS
        if steps > self.steps:
            self.energy.write(self.device.energy_steps_nJ(self.steps, steps).astype("<u8").tobytes())
            self.energy.flush()
            self.steps = steps
            self.device.drive.forget_energy(steps - KEPT_STEPS)
        ledger = self.device.truth(t_ns)
        self._count(ledger)
        self.counts.flush()
        write_atomically(self.folder / "ledger.json", json.dumps(ledger).encode() + b"\n", durable=False)

    def count(self, t_ns: int) -> None:
        """Keep the counts as they stand at `t_ns`, to which the device has advanced, unless the last are fresh."""
        if t_ns - self._counted_ns >= COUNT_NS:
            self._count(self.device.truth(t_ns))

    def _count(self, ledger: dict) -> None:
        if ledger["t_ns"] > self._counted_ns:
            self._counted_ns = ledger["t_ns"]
            line = {key: ledger[key] for key in ("t_ns", "last_command_t_ns", *COUNTS)}
            line["first_command_t_ns"] = self.device.take_first_command_ns()
            self.counts.write(json.dumps(line) + "\n")

    def mark(self, t_ns: int) -> None:
        """Store the current ledger, to compare it with SMART at this instant."""
        with open(self.folder / "marks.jsonl", "a") as f:
            f.write(json.dumps(self.device.truth(t_ns)) + "\n")

    def _cut(self, record: dict) -> None:
        with open(self.folder / "cuts.jsonl", "a") as f:
            f.write(json.dumps(record) + "\n")

    def close(self, t_ns: int) -> None:
        self.write(t_ns)
        self.device.tell_cut()
        self.energy.close()
        self.counts.close()


def _refuse_other_files(folder: Path) -> None:
    """The files of an earlier drive are replaced, those of anything else are not."""
    energy = folder / "energy.bin"
    names = ("ledger.json", ".ledger.json.part", "counts.jsonl", "marks.jsonl", "cuts.jsonl")
    others = [folder / name for name in (*names, "retention.json", "retries.bin")]
    if energy.exists():
        with open(energy, "rb") as f:
            ours = f.read(len(MAGIC)) == MAGIC
    else:
        ours = not any(path.exists() for path in others)
    if not ours:
        raise UsageError(
            f"a new folder {folder}, or one that an earlier --truth made", "files of another kind", "give another DIR"
        )


def read_ledger(folder: str) -> dict:
    """The last ledger of a truth folder. Raises JournalError without one."""
    try:
        return json.loads((Path(folder) / "ledger.json").read_text())
    except (OSError, ValueError) as e:
        raise JournalError(f"ledger.json in {folder}", str(e), "give the folder that --truth named") from e


def counts_between(folder: str, t0_ns: int, t1_ns: int) -> dict:
    """By how much each of COUNTS rose between two CLOCK_MONOTONIC times (float); between two lines they are taken to
    rise evenly from the first command to the last. Raises JournalError if the record does not reach over both times."""
    try:
        lines = [json.loads(line) for line in (Path(folder) / "counts.jsonl").read_text().splitlines()]
    except (OSError, ValueError) as e:
        raise JournalError(f"counts.jsonl in {folder}", str(e), "give the folder that --truth named") from e
    t_ns = np.array([line["t_ns"] for line in lines], np.int64)
    if not len(t_ns) or t0_ns < t_ns[0] or t1_ns > t_ns[-1]:
        seen = f"{t_ns[0]} to {t_ns[-1]}" if len(t_ns) else "nothing"
        raise JournalError(f"counts from {t0_ns} to {t1_ns} ns", seen, "ask for times within the record")
    knots = {int(line["t_ns"]): line for line in lines}
    for before, line in itertools.pairwise(lines):  # of a load that began or ended in between
        first_ns = line.get("first_command_t_ns") or before["t_ns"]
        if before["t_ns"] < first_ns < line["t_ns"]:
            knots[first_ns] = before
        last_ns = line.get("last_command_t_ns", line["t_ns"])
        if before["t_ns"] < last_ns < line["t_ns"]:
            knots[last_ns] = line
    at_ns = sorted(knots)
    grid = np.array(at_ns, np.int64) - t_ns[0]
    at = [t0_ns - t_ns[0], t1_ns - t_ns[0]]
    return {key: float(np.diff(np.interp(at, grid, [float(knots[t][key]) for t in at_ns]))[0]) for key in COUNTS}


def energies(folder: str) -> tuple[int, int, np.ndarray]:
    """(CLOCK_MONOTONIC ns of model time 0, host ns of a step, uint64 nJ of each step since). Raises JournalError."""
    path = Path(folder) / "energy.bin"
    try:
        raw = path.read_bytes()
        magic, start_ns, dilation, step_ns = HEADER.unpack_from(raw)
    except (OSError, struct.error) as e:
        raise JournalError(f"an energy record {path}", str(e), "give the folder that --truth named") from e
    if magic != MAGIC:
        raise JournalError(f"an energy record {path}", f"magic {magic!r}", "give the folder that --truth named")
    return start_ns, dilation * step_ns, np.frombuffer(raw, "<u8", (len(raw) - HEADER.size) // 8, HEADER.size)


def energy_between(folder: str, t0_ns: int, t1_ns: int) -> float:
    """Joules of model time that the drive drew between two CLOCK_MONOTONIC times; within a step power is taken as even.

    Raises JournalError if the record does not reach over both times."""
    start_ns, step_ns, nJ = energies(folder)
    whole = len(nJ)
    joules = np.concatenate([[0], np.cumsum(nJ, dtype=np.uint64)]) * 1e-9
    at = (np.array([t0_ns, t1_ns], dtype=np.int64) - start_ns) / step_ns
    if at[0] < 0 or at[1] > whole or at[1] < at[0]:
        seen = f"{start_ns} to {start_ns + whole * step_ns}"
        raise JournalError(f"energy from {t0_ns} to {t1_ns} ns", seen, "ask for times within the record")
    return float(np.diff(np.interp(at, np.arange(whole + 1), joules))[0])
