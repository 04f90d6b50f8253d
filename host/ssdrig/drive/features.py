"""What an NVMe controller is set to: power state, write cache, autonomous power states, thermal management, LBA format.

Source: NVM Express Base Specification 2.0, Get Features 02h, 06h, 0Ch, 10h; NVM Command Set Specification, Identify
Namespace. Asked through nvme-cli, which prints `get-feature:0x06 (Volatile Write Cache), Current value:0x00000001`
(1.x `0x6`, and `00000000` for 0), then the table of 0Ch as a dump, or with --raw-binary the table alone.
"""

import re
import time
from typing import Any

from ssdrig.drive import program
from ssdrig.drive.smart import nvme_cli

POWER, WRITE_CACHE, APST, THERMAL = 0x02, 0x06, 0x0C, 0x10
VALUE = re.compile(r"Current value: ?(?:0x)?([0-9a-f]{1,8})\b", re.IGNORECASE)
TIMEOUT_S = 20.0  # for all that is asked at once
TABLE_BYTES = 256  # of 0Ch: 32 power states of 8 bytes
ZERO_C_K = 273


def value(controller: str, feature: int, timeout_s: float = TIMEOUT_S) -> tuple[int | None, str]:
    """(the 32 bits of a feature, "") or (None, why not): a drive without it aborts the command."""
    call = program.run(["nvme", "get-feature", controller, f"--feature-id={feature}"], timeout_s)
    found = VALUE.search(call.stdout.decode(errors="replace"))
    return (int(found[1], 16), "") if call.exit_code == 0 and found else (None, said(call))


def said(call: program.Call) -> str:
    """What nvme-cli said of a command that failed."""
    line = next((line.strip() for line in call.stderr.splitlines() if line.strip()), "")
    return (call.why or line or f"nvme ended with {call.exit_code} and no value")[:200]


def read(controller: str, nsid: int | None) -> tuple[dict, dict[str, str]]:
    """({key: value, None where the drive does not say}, {key: why not}). Keys: nvme.power_state (number), .write_cache
    and .apst ("on" or "off"), .apst_table ([from state, to state, idle ms] of each that leads on), .tmt1_C and .tmt2_C
    (light and heavy throttling begin there), .lba_format ("0: 512 B, metadata 0 B")."""
    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    deadline = time.monotonic() + TIMEOUT_S

    def left_s() -> float:
        return deadline - time.monotonic()

    def put(key: str, seen, why: str) -> None:
        found[f"nvme.{key}"] = seen
        if seen is None:
            unknown[f"nvme.{key}"] = why

    bits, why = value(controller, POWER, left_s())
    put("power_state", None if bits is None else bits & 31, why)
    for key, feature in (("write_cache", WRITE_CACHE), ("apst", APST)):
        bits, why = value(controller, feature, left_s())
        put(key, None if bits is None else ("off", "on")[bits & 1], why)
    put("apst_table", *_table(controller, left_s()) if found["nvme.apst"] else (None, why))
    bits, why = value(controller, THERMAL, left_s())
    for key, shift in (("tmt1_C", 16), ("tmt2_C", 0)):
        kelvin = 0 if bits is None else bits >> shift & 0xFFFF
        put(key, kelvin - ZERO_C_K if kelvin else None, why or "not set: the drive's own limits hold")
    page, record = nvme_cli.identify_namespace(controller, nsid or 1, left_s())
    put("lba_format", page and lba_format(page), record["why"] or "the drive does not identify this namespace")
    return found, unknown


def _table(controller: str, timeout_s: float) -> tuple[list[list[int]] | None, str]:
    words = [f"--feature-id={APST}", f"--data-len={TABLE_BYTES}", "--raw-binary"]
    call = program.run(["nvme", "get-feature", controller, *words], timeout_s)
    if call.exit_code or len(call.stdout) != TABLE_BYTES:
        return None, said(call) if call.exit_code else f"{len(call.stdout)} bytes instead of {TABLE_BYTES}"
    entries = [int.from_bytes(call.stdout[i : i + 8], "little") for i in range(0, TABLE_BYTES, 8)]
    return [[i, entry >> 3 & 31, entry >> 8 & 0xFFFFFF] for i, entry in enumerate(entries) if entry >> 8], ""


def used_bytes(controller: str, nsid: int | None, timeout_s: float = 5.0) -> int | None:
    """How much of a namespace is allocated, which a trim makes less (NUSE, bytes 16 to 23 of Identify Namespace). None
    where the drive does not say; one that does not count gives its capacity at all times."""
    page, _ = nvme_cli.identify_namespace(controller, nsid or 1, timeout_s)
    if page is None or page[130 + 4 * _index(page)] < 9:  # no block is smaller than 512 bytes
        return None
    return int.from_bytes(page[16:24], "little") << page[130 + 4 * _index(page)]


def _index(id_ns: bytes) -> int:
    """Of the LBA format in use: FLBAS, byte 26."""
    return id_ns[26] & 15 | (id_ns[26] >> 5 & 3) << 4


def lba_format(id_ns: bytes) -> str:
    """The format in use, of those that Identify Namespace has from byte 128 on (MS, LBADS)."""
    index = _index(id_ns)
    entry = id_ns[128 + 4 * index : 132 + 4 * index]
    return f"{index}: {1 << entry[2]} B, metadata {int.from_bytes(entry[:2], 'little')} B"
