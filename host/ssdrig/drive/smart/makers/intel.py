"""Intel and Solidigm: CAh, 12-byte items {id, 2 reserved, normalised, reserved, raw 6 bytes, reserved}, found by id
because their order differs between drives (nvme-cli intel-nvme.c and solidigm-smart.c; units: Intel's
endurance_profiler)."""

from ssdrig.drive.smart.makers.maker import Maker, refuse_blank

ITEM_BYTES = 12
ITEM_UNIT_BYTES = 32 << 20  # F4h, F5h
RAW_ONES = 2**48 - 1
NOT_YET = {0xFFFF, RAW_ONES}  # timed workload values within 60 minutes of their reset


def items_of(page: bytes) -> dict[int, tuple[int, bytes]]:
    """{id: (normalised, 6 raw bytes)} of an item page. An id that comes twice with another value is left out: not to be
    believed."""
    out: dict[int, tuple[int, bytes]] = {}
    twice = set()
    for at in range(0, len(page) - ITEM_BYTES + 1, ITEM_BYTES):
        key, value = page[at], (page[at + 3], page[at + 5 : at + 11])
        if key and out.setdefault(key, value) != value:
            twice.add(key)
    return {key: value for key, value in out.items() if key not in twice}


def decode_cah(page: bytes) -> dict:
    """None for items that the page does not have.

    nand_written_bytes (F4h) and host_written_bytes (F5h) x 32 MiB; pe_cycles_min/max/mean (ADh); workload_wear_percent
    = E2h / 1024, workload_reads_percent (E3h) and workload_timer_min (E4h) since the timer's reset, None in its first
    60 minutes; program_fails (ABh), erase_fails (ACh), soft_ecc_errors (0Dh), end_to_end_errors (B8h), crc_errors
    (C7h), throttle_percent and throttle_count (EAh)."""
    refuse_blank(page, "log CAh")
    items = items_of(page)

    def raw(key):
        value = items.get(key)
        number = None if value is None else int.from_bytes(value[1], "little")
        return None if number == RAW_ONES else number

    def written(key):
        return None if raw(key) is None else raw(key) * ITEM_UNIT_BYTES

    def timed(key):
        value = raw(key)
        return None if value is None or value in NOT_YET else value

    out = {
        "nand_written_bytes": written(0xF4),
        "host_written_bytes": written(0xF5),
        "program_fails": raw(0xAB),
        "erase_fails": raw(0xAC),
        "soft_ecc_errors": raw(0x0D),
        "end_to_end_errors": raw(0xB8),
        "crc_errors": raw(0xC7),
        "workload_reads_percent": timed(0xE3),
        "workload_timer_min": timed(0xE4),
        "workload_wear_percent": None if timed(0xE2) is None else timed(0xE2) / 1024,
    }
    wear = items[0xAD][1] if raw(0xAD) is not None else None
    for index, name in enumerate(("pe_cycles_min", "pe_cycles_max", "pe_cycles_mean")):
        out[name] = None if wear is None else int.from_bytes(wear[2 * index : 2 * index + 2], "little")
    throttle = items[0xEA][1] if raw(0xEA) is not None else None
    out["throttle_percent"] = None if throttle is None else throttle[0]
    out["throttle_count"] = None if throttle is None else int.from_bytes(throttle[1:5], "little")
    return out


MAKER = Maker(
    "intel",
    (0x8086, 0x025E),  # the second is Solidigm
    r"(?i)(INTEL|SOLIDIGM)\b",
    {0xCA: decode_cah},
    unit_bytes=ITEM_UNIT_BYTES,
    wraps_at=2**48,
)
