"""What a drive counted over a campaign of power cuts: at the first poll that has it, and at the last."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import nvme_pages
from ssdrig.runs import integrity, parts

POLLED = {  # key of a snapshot, words
    "unsafe_shutdowns": "Unsafe shutdowns",
    "power_cycles": "Power cycles",
    "media_errors": "Media errors",
    "available_spare_percent": "Available spare, %",
    "percentage_used": "Percentage used, %",
    "bad_user_blocks": "Bad blocks",
    "program_fails": "Program failures",
    "erase_fails": "Erase failures",
}
OF_C0H = {  # field of OCP's log C0h, words
    "capacitor_health_percent": "Capacitor health by the drive, %",
    "plp_starts": "Starts of power-loss protection",
    "incomplete_shutdowns": "Incomplete shutdowns",
}
WORDS = POLLED | OF_C0H


def counted(snapshots: Sequence[Mapping], run: Path) -> dict[str, list]:
    """{key of WORDS: [first, last]}; snapshots of all parts, oldest first; run: its root folder."""
    out = {}
    for key in POLLED:
        known = [each[key] for each in snapshots if each.get(key) is not None]
        if known:
            out[key] = [known[0], known[-1]]
    paths = [path for part in parts.own(run) for path in sorted((part / "smart").glob("*.json"))]
    first, last = _page(paths), _page(reversed(paths))
    for key in OF_C0H:
        if first.get(key) is not None and last.get(key) is not None:
            out[key] = [first[key], last[key]]
    return out


def _page(paths: Iterable[Path]) -> dict:
    """Log C0h of the first of these polls that has one; {} where none has."""
    for path in paths:
        try:
            text = integrity.document_of(path).get("log_c0h")
            if text:
                return nvme_pages.decode_c0h(bytes.fromhex(text))
        except (OSError, ValueError, AttributeError, TypeError, RecursionError, DriveError):
            continue
    return {}
