"""What an NVMe controller is set to: power state, write cache, autonomous power states, host memory buffer, thermal
management, LBA formats.

Source: NVM Express Base Specification 2.0, Get Features 02h, 06h, 0Ch, 0Dh, 10h; NVM Command Set Specification,
Identify Namespace. Asked through nvme-cli, which prints `get-feature:0x06 (Volatile Write Cache), Current
value:0x00000001` (1.x `0x6`, and `00000000` for 0), then the table of 0Ch as a dump, or with --raw-binary the table
alone.
"""

import os
import re
import time
from collections.abc import Sequence
from typing import Any

from ssdrig.drive import nvme_cli, program

POWER, WRITE_CACHE, APST, HMB, THERMAL = 0x02, 0x06, 0x0C, 0x0D, 0x10
SETTINGS = {"write_cache": WRITE_CACHE, "power_state": POWER, "apst": APST}  # what a plan's `set` step may change
CACHE = {"on": "write back", "off": "write through"}
VALUE = re.compile(r"Current value: ?(?:0x)?([0-9a-f]{1,8})\b", re.IGNORECASE)
TIMEOUT_S = 20.0  # for all queries together
TABLE_BYTES = 256  # of 0Ch: 32 power states of 8 bytes
ZERO_C_K, HOTTEST_K = 273, 474
BLOCK_SHIFTS = range(9, 32)  # LBADS: the block is 2 to this power; 0: no format, others are reserved


def value(
    controller: str, feature: int, timeout_s: float = TIMEOUT_S, cdw11: int | None = None
) -> tuple[int | None, str]:
    """(the 32 bits of a feature, "") or (None, why not): a drive without it aborts the command. `cdw11`: which of a
    feature that there are several of."""
    which = [] if cdw11 is None else [f"--cdw11={cdw11}"]
    call = program.run(["nvme", "get-feature", controller, f"--feature-id={feature}", *which], timeout_s)
    match = VALUE.search(call.stdout.decode(errors="replace"))
    return (int(match[1], 16), "") if call.exit_code == 0 and match else (None, error_message(call))


def error_message(call: program.Call) -> str:
    """The error message of nvme-cli for a failed command."""
    line = next((line.strip() for line in call.stderr.splitlines() if line.strip()), "")
    return (call.why or line or f"nvme ended with {call.exit_code} and no value")[:200]


def read(controller: str, nsid: int | None) -> tuple[dict, dict[str, str]]:
    """({key: value, None if not reported}, {key: why not}). Keys: nvme.power_state (number), .write_cache
    and .apst ("on" or "off"), .apst_table ([from state, to state, idle ms] of each that leads on), .tmt1_C and .tmt2_C
    (light and heavy throttling begin there), .hmb ("on" or "off": whether the drive uses memory of the host),
    .lba_format ("0: 512 B, metadata 0 B"), .lba_formats (all of the namespace)."""
    values: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    deadline = time.monotonic() + TIMEOUT_S

    def left_s() -> float:
        return deadline - time.monotonic()

    def put(key: str, seen, why: str) -> None:
        values[f"nvme.{key}"] = seen
        if seen is None:
            unknown[f"nvme.{key}"] = why

    bits, why = value(controller, POWER, left_s())
    put("power_state", None if bits is None else bits & 31, why)
    for key, feature in (("write_cache", WRITE_CACHE), ("apst", APST)):
        bits, why = value(controller, feature, left_s())
        put(key, None if bits is None else ("off", "on")[bits & 1], why)
    put("apst_table", *_table(controller, left_s()) if values["nvme.apst"] else (None, why))
    bits, why = value(controller, HMB, left_s())
    put("hmb", None if bits is None else ("off", "on")[bits & 1], why)
    bits, why = value(controller, THERMAL, left_s())
    for key, shift in (("tmt1_C", 16), ("tmt2_C", 0)):
        kelvin = 0 if bits is None else bits >> shift & 0xFFFF
        of_a_drive = kelvin in range(ZERO_C_K, HOTTEST_K)
        reserved = f"{kelvin} K is no temperature of a drive" if kelvin else "not set: the drive's own limits hold"
        put(key, kelvin - ZERO_C_K if of_a_drive else None, why or reserved)
    page, record = nvme_cli.identify_namespace(controller, nsid or 1, left_s())
    absent = record["why"] or "the drive does not identify this namespace"
    put("lba_format", page and lba_format(page), absent if page is None else "the format in use is a reserved one")
    put("lba_formats", page and lba_formats(page), absent)
    return values, unknown


def setting(key: str, controller: str) -> list[str] | None:
    """What one of SETTINGS is: a word of CACHE; the number of the power state; "on" or "off" and the table of 0Ch as
    hex, without its last zeros. None: the drive has no such feature, or cannot be asked."""
    bits, _ = value(controller, SETTINGS[key])
    if bits is None:
        return None
    if key == "power_state":
        return [str(bits & 31)]
    word = "on" if bits & 1 else "off"
    if key == "write_cache":
        return [CACHE[word]]
    raw, _ = _raw_table(controller, TIMEOUT_S)
    return None if raw is None else [word, raw.rstrip(b"\0").hex()]


def change(key: str, controller: str, wanted: Sequence[str]) -> str | None:
    """Set one of SETTINGS, until the next reset of the controller, to a value in the form of setting(). Returns None
    once the drive reports it, otherwise the drive's response."""
    word = wanted[0]
    number = int(word) if key == "power_state" else int(word in ("on", CACHE["on"]))
    argv = ["nvme", "set-feature", controller, f"--feature-id={SETTINGS[key]}", f"--value={number}"]
    if key == "apst":
        with os.fdopen(os.memfd_create("apst"), "wb") as table:  # a killed process leaves no file
            table.write(bytes.fromhex(wanted[1]).ljust(TABLE_BYTES, b"\0"))
            table.flush()
            data = f"--data=/proc/{os.getpid()}/fd/{table.fileno()}"
            call = program.run([*argv, f"--data-len={TABLE_BYTES}", data], TIMEOUT_S)
    else:
        call = program.run(argv, TIMEOUT_S)
    now = setting(key, controller)
    return None if now == list(wanted) else f"{(now or ['nothing'])[0]} ({error_message(call)})"


def unseen_hmb(controller: str, on: bool) -> str | None:
    """None once the drive itself reports that it uses the host memory buffer, or does not; otherwise its response."""
    bits, why = value(controller, HMB)
    return None if bits is not None and bits & 1 == on else why or f"feature {HMB:02X}h is {bits:#x}"


def power_states(controller: str) -> list[dict]:
    """[{"max_W", "operational", "enter_us", "exit_us"}, …] of PS0 and up, as Identify Controller rates them (bytes 263
    and 2048 on; max_W None: not reported); [] where it cannot be asked."""
    page, _ = nvme_cli.identify(controller)
    if page is None:
        return []
    transitions = []
    for i in range(min(page[263], 31) + 1):
        entry = page[2048 + 32 * i : 2080 + 32 * i]
        fine, most = entry[3] & 1, int.from_bytes(entry[:2], "little")
        enter_us, exit_us = (int.from_bytes(entry[at : at + 4], "little") for at in (4, 8))
        max_W = most / (10_000 if fine else 100) if most else None
        transitions.append({"max_W": max_W, "operational": not entry[3] & 2, "enter_us": enter_us, "exit_us": exit_us})
    return transitions


def _raw_table(controller: str, timeout_s: float) -> tuple[bytes | None, str]:
    """The 256 bytes of 0Ch, or None and why not."""
    words = [f"--feature-id={APST}", f"--data-len={TABLE_BYTES}", "--raw-binary"]
    call = program.run(["nvme", "get-feature", controller, *words], timeout_s)
    if call.exit_code or len(call.stdout) != TABLE_BYTES:
        return None, error_message(call) if call.exit_code else f"{len(call.stdout)} bytes instead of {TABLE_BYTES}"
    return call.stdout, ""


def _table(controller: str, timeout_s: float) -> tuple[list[list[int]] | None, str]:
    raw, why = _raw_table(controller, timeout_s)
    return (None, why) if raw is None else (transitions(raw), "")


def transitions(table: bytes) -> list[list[int]]:
    """[from state, to state, idle ms] of each entry of a table of 0Ch that leads on."""
    entries = [int.from_bytes(table[i : i + 8], "little") for i in range(0, len(table), 8)]
    return [[i, entry >> 3 & 31, entry >> 8 & 0xFFFFFF] for i, entry in enumerate(entries) if entry >> 8]


def used_bytes(controller: str, nsid: int | None, timeout_s: float = 5.0) -> int | None:
    """How much of a namespace is allocated, which a trim makes less (NUSE, bytes 16 to 23 of Identify Namespace). None
    if not reported; a drive that does not count always reports its capacity."""
    page, _ = nvme_cli.identify_namespace(controller, nsid or 1, timeout_s)
    if page is None or page[130 + 4 * _index(page)] not in BLOCK_SHIFTS:
        return None
    return int.from_bytes(page[16:24], "little") << page[130 + 4 * _index(page)]


def _index(id_ns: bytes) -> int:
    """Index of the LBA format in use: FLBAS, byte 26."""
    return id_ns[26] & 15 | (id_ns[26] >> 5 & 3) << 4


def lba_format(id_ns: bytes) -> str | None:
    """The format in use; None where the drive reports one that is reserved."""
    index = _index(id_ns)
    return _format(id_ns, index) if id_ns[130 + 4 * index] in BLOCK_SHIFTS else None


def lba_formats(id_ns: bytes) -> list[str]:
    """All formats that a namespace can have, in the form of lba_format(): NLBAF, byte 25, is their number less one."""
    numbers = range(min(id_ns[25], 63) + 1)
    return [_format(id_ns, index) for index in numbers if id_ns[130 + 4 * index] in BLOCK_SHIFTS]


def _format(id_ns: bytes, index: int) -> str:
    """An entry of those that Identify Namespace has from byte 128 on (MS, LBADS)."""
    entry = id_ns[128 + 4 * index : 132 + 4 * index]
    return f"{index}: {1 << entry[2]} B, metadata {int.from_bytes(entry[:2], 'little')} B"
