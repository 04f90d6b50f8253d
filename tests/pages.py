"""Health pages laid out by hand, for tests."""

from ssdrig.drive import nvme_pages


def page(fields: dict) -> bytes:
    """512 bytes with the little-endian integers {offset: (bytes, value)}."""
    out = bytearray(512)
    for at, (size, value) in fields.items():
        out[at : at + size] = value.to_bytes(size, "little")
    return bytes(out)


PAGE_02H = page({
    0: (1, 4), 1: (2, 313), 3: (1, 97), 4: (1, 10), 5: (1, 101), 32: (16, 15_794_760), 48: (16, 2**70), 64: (16, 97), 80: (16, 98),
    96: (16, 463), 112: (16, 12), 128: (16, 4321), 144: (16, 5), 160: (16, 6), 176: (16, 7), 192: (4, 8), 196: (4, 9),
    200: (2, 314), 204: (2, 260),
})  # fmt: skip
PAGE_C0H = page({
    0: (16, 3 * 2**65), 16: (16, 17), 32: (6, 2**40), 38: (2, 99), 56: (8, 3), 88: (4, 321), 92: (4, 123), 96: (1, 2), 112: (4, 4),
    120: (1, 77), 128: (2, 100), 136: (8, 55), 160: (16, 1), 176: (16, 10**15), 224: (8, 222), 494: (2, 3),
    496: (16, int.from_bytes(nvme_pages.C0_GUID, "little")),
})  # fmt: skip
PAGE_09H = page({3: (1, 100), 5: (1, 2), 48: (16, 40), 64: (16, 50), 80: (16, 120), 128: (16, 1)})
