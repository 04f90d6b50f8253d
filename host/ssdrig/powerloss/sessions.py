"""The files of one session in the run folder, powerloss/0007, each there as a whole or not at all:

    history.bin.z   the commands, history.ROW, deflated; while the session lasts history.bin, mapped
    seen.npz        the blocks that were read: lba, base, seen, finding, canary
    waveform.npz    the fall as the rig's ADC saw it: volts, t0_ns (host clock), dt_ns
    proofs.json     what speaks for each accusation (proof.py), of the first MOST_PROOFS blocks
    verdict.json    the record of the session, the promise it was judged by, the rig's report; written last

A session with a verdict.json is judged, whether or not its event was written before the process ended."""

import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ssdrig.journal import Journal
from ssdrig.powerloss import history
from ssdrig.powerloss.verdict import Blocks, Verdict

FOLDER = "powerloss"
MOST_PROOFS = 20
LOST_ROWS = 1 << 24  # so many commands of a session may be missing from a history whose host died


def folder(number: int) -> str:
    """Of a session, in the run folder."""
    return f"{FOLDER}/{number:04}"


def put(
    book: Journal,
    record: Mapping,
    rows: np.ndarray,
    blocks: Blocks,
    verdict: Verdict,
    proofs: list[dict],
    outcome: Mapping,
    waveform: Mapping | None,
) -> None:
    """All files of a judged session. Raises JournalError."""
    where = folder(record["cut"])
    book.put(f"{where}/history.bin.z", zlib.compress(rows.tobytes(), 1))
    book.put(f"{where}/seen.npz", _npz(**blocks._asdict(), finding=verdict.finding))
    if waveform:
        volts = np.asarray(waveform["volts"], np.float32)
        book.put(f"{where}/waveform.npz", _npz(volts=volts, t0_ns=waveform["t0_ns"], dt_ns=waveform["dt_ns"]))
    if proofs:
        book.put(f"{where}/proofs.json", json.dumps(proofs).encode())
    book.put(f"{where}/verdict.json", json.dumps({"record": record, **outcome}).encode())
    (book.path / where / "history.bin").unlink(missing_ok=True)


def _npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def judged(folders: Iterable[Path]) -> dict[int, dict]:
    """{number: record} of all sessions in the parts of a run that came to their verdict."""
    found = {}
    for part in folders:
        for path in sorted((part / FOLDER).glob("*/verdict.json")):
            try:
                record = json.loads(path.read_bytes())["record"]
                found[int(record["cut"])] = record
            except (OSError, ValueError, KeyError, TypeError):
                continue  # damaged: the session is repeated
    return found


def rows_of(path: Path) -> np.ndarray:
    """The commands of a session's folder, history.ROW[n]. Raises OSError, zlib.error."""
    packed = path / "history.bin.z"
    if packed.exists():
        data = zlib.decompress(packed.read_bytes())
        return np.frombuffer(data[: len(data) // history.ROW.itemsize * history.ROW.itemsize], history.ROW)
    return history.read(path / "history.bin")


def first_seq(folders: Iterable[Path], base: np.ndarray) -> int:
    """A number for the next command that none of the run had before: neither on the drive, `base`, nor in a history,
    of which the end may be missing."""
    highest, begun = int(base.max(initial=0)), False
    for part in folders:
        for path in (part / FOLDER).glob("*"):
            begun = True
            try:
                rows = rows_of(path)
            except (OSError, zlib.error):
                continue
            if len(rows):
                highest = max(highest, int(rows["seq"][-1]))
    return highest + 1 + begun * LOST_ROWS
