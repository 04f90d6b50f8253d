"""For tests of snapshots: a hand-made document, with no table of the user beside it."""

from pages import PAGE_02H, PAGE_09H, PAGE_C0H, items

# as in the decoders' tests, with bytes that one drive can have written
DATA_UNITS, NAND_BYTES = 200_000, 3 * 2**36
LOG_02H = PAGE_02H[:48] + DATA_UNITS.to_bytes(16, "little") + PAGE_02H[64:]
LOG_C0H = NAND_BYTES.to_bytes(16, "little") + PAGE_C0H[16:]


def document(**more) -> dict:
    return {
        "n": 3,
        "reason": "poll",
        "t_start_ns": 1_000,
        "t_end_ns": 3_000,
        "simulated": True,
        "smartctl": {},
        "log_02h": LOG_02H.hex(),
        "log_c0h": LOG_C0H.hex(),
        "log_09h": PAGE_09H.hex(),
    } | more


CAH = items({0xAD: (98, bytes([10, 0, 44, 0, 27, 0])), 0xE2: (100, 1536), 0xF4: (100, 90_000), 0xF5: (100, 60_000)})
