"""The telemetry log of an NVMe drive, which its maker can read: saved when the drive has failed.

Source: NVM Express Base Specification 2.0: Telemetry Host-Initiated (log 07h), of at most three data areas of 32 MiB;
Identify Controller, LPA bit 3. nvme-cli has the drive make a new one and writes head and areas to a file."""

from pathlib import Path
from typing import Any

from ssdrig.drive import features, nvme_cli, program

LOG, BLOCK_BYTES = 0x07, 512
LAST_BLOCKS = (8, 10, 12)  # bytes of the head: the last block of data area 1, 2, 3
AREAS = 3
TIMEOUT_S = 60.0
HAS_TELEMETRY = 1 << 3  # of LPA, byte 261


def save(controller: str, path: Path, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
    """Write the log to `path`. Returns {"bytes": its length or None, "why": it is None}; never raises for what the
    drive does."""
    identity, record = nvme_cli.identify(controller)
    if identity is None:
        return {"bytes": None, "why": record["why"] or "the drive does not identify itself"}
    if not identity[261] & HAS_TELEMETRY:
        return {"bytes": None, "why": "the drive has no telemetry log"}
    words = [f"--output-file={path}", f"--data-area={AREAS}"]
    call = program.run(["nvme", "telemetry-log", controller, *words], timeout_s)
    length = path.stat().st_size if path.exists() else 0
    failed = call.exit_code or call.why or not length
    if why := features.error_message(call) if failed else _not_whole(path, length):
        path.unlink(missing_ok=True)
        return {"bytes": None, "why": why}
    return {"bytes": length, "why": None}


def _not_whole(path: Path, length: int) -> str:
    """Why a file is no whole log by its own head: its identifier, and the last block of each data area; "" if it is."""
    with open(path, "rb") as file:
        head = file.read(BLOCK_BYTES)
    if head[:1] != bytes([LOG]) or len(head) < BLOCK_BYTES:
        return f"what the drive gave, {length} bytes, does not begin as log {LOG:02X}h"
    last = max(int.from_bytes(head[at : at + 2], "little") for at in LAST_BLOCKS)
    least = BLOCK_BYTES * (1 + last)
    return f"the log is cut short: {length} of {least} bytes by its own head" if length < least else ""
