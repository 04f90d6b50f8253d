"""Health pages laid out by hand, for tests."""

from ssdrig.drive.smart import nvme_pages


def page(fields: dict, size: int = 512) -> bytes:
    """`size` bytes with the little-endian integers {offset: (bytes, value)}."""
    out = bytearray(size)
    for at, (count, value) in fields.items():
        out[at : at + count] = value.to_bytes(count, "little")
    return bytes(out)


def items(values: dict, size: int = 512) -> bytes:
    """A CAh page of 12-byte items {id: (normalised, raw as 6 bytes or an integer)}, in that order."""
    out = b""
    for key, (normalised, raw) in values.items():
        out += (
            bytes([key, 0, 0, normalised, 0]) + (raw if isinstance(raw, bytes) else raw.to_bytes(6, "little")) + b"\0"
        )
    return out.ljust(size, b"\0")


def page_c0h(nand_bytes: int) -> bytes:
    """OCP's log C0h, version 3, that says nothing but the NAND bytes."""
    return page({0: (16, nand_bytes), 494: (2, 3), 496: (16, int.from_bytes(nvme_pages.C0_GUID, "little"))})


PAGE_02H = page(
    {
        0: (1, 4),
        1: (2, 313),
        3: (1, 97),
        4: (1, 10),
        5: (1, 101),
        32: (16, 15_794_760),
        48: (16, 2**70),
        64: (16, 97),
        80: (16, 98),
        96: (16, 463),
        112: (16, 12),
        128: (16, 4321),
        144: (16, 5),
        160: (16, 6),
        176: (16, 7),
        192: (4, 8),
        196: (4, 9),
        200: (2, 314),
        204: (2, 260),
        216: (4, 11),
        220: (4, 12),
        224: (4, 13),
        228: (4, 14),
        232: (8, 1500),
        240: (4, 0x10000 | 45_000),
    }
)
PAGE_C0H = page(
    {
        0: (16, 3 * 2**65),
        16: (16, 17),
        32: (6, 2**40),
        38: (2, 99),
        48: (8, 21),
        56: (8, 3),
        64: (8, 22),
        81: (7, 23),
        88: (4, 321),
        92: (4, 123),
        96: (1, 2),
        112: (4, 4),
        120: (1, 77),
        128: (2, 100),
        136: (8, 55),
        160: (16, 1),
        176: (16, 10**15),
        216: (2, 64),
        222: (1, 81),
        224: (8, 222),
        232: (4, 31),
        236: (4, 32),
        240: (1, 33),
        244: (4, 34),
        252: (4, 35),
        260: (2, 25),
        262: (2, 18),
        264: (6, 2**33),
        494: (2, 3),
        496: (16, int.from_bytes(nvme_pages.C0_GUID, "little")),
    }
)
PAGE_09H = page({3: (1, 100), 5: (1, 2), 48: (16, 40), 64: (16, 50), 80: (16, 120), 128: (16, 1)})
PAGE_22H = page({0: (16, 10**12 + 1), 16: (16, 3 * 10**12 + 2), 32: (16, 2 * 10**12)}, 64)
