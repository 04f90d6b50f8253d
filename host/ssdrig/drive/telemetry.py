"""The telemetry log of an NVMe drive, which its maker can read: saved when the drive has failed.

Source: NVM Express Base Specification 2.0: Telemetry Host-Initiated (log 07h), of at most three data areas of 32 MiB;
Identify Controller, LPA bit 3. nvme-cli has the drive make a new one and writes head and areas to a file."""

from pathlib import Path
from typing import Any

from ssdrig.drive import features, nvme_cli, program

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
    if call.exit_code or call.why or not length:
        path.unlink(missing_ok=True)
        return {"bytes": None, "why": features.error_message(call)}
    return {"bytes": length, "why": None}
