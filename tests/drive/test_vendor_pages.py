"""The makers' own log pages: worked numbers with their units, whose page it is, and any bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import items, page

from ssdrig.base.errors import DriveError
from ssdrig.drive.smart import makers
from ssdrig.drive.smart.makers import intel, micron, wdc
from ssdrig.drive.smart.makers import items as others

MIB = 1 << 20
CAH = items(
    {
        0xAB: (100, 1),
        0xAC: (100, 2),
        0xAD: (98, (10).to_bytes(2, "little") + (44).to_bytes(2, "little") + (27).to_bytes(2, "little")),
        0xB8: (100, 3),
        0xC7: (100, 4),
        0xE2: (100, 1536),
        0xE3: (100, 37),
        0xE4: (100, 90),
        0xEA: (100, bytes([5, 6, 0, 0, 0, 0])),
        0xF0: (100, 7),
        0xF3: (100, 8),
        0xF4: (100, 90_000),
        0xF5: (100, 60_000),
    }
)


def test_items():
    """90 000 x 32 MiB on the NAND for 60 000 x 32 MiB of the host; E2h 1536 / 1024 = 1.5 %."""
    got = intel.decode_cah(CAH)
    assert (
        got["nand_written_bytes"] == 90_000 * 32 * MIB == 3_019_898_880_000
        and got["host_written_bytes"] == 60_000 * 32 * MIB
    )
    assert got["nand_written_bytes"] not in (
        90_000 * 512_000,
        90_000 * 512,
        90_000 * 32 * 10**6,
    )  # data units, sectors, 32 MB
    assert (got["pe_cycles_min"], got["pe_cycles_max"], got["pe_cycles_mean"]) == (10, 44, 27)
    assert (got["workload_wear_percent"], got["workload_reads_percent"], got["workload_timer_min"]) == (1.5, 37, 90)
    assert (got["program_fails"], got["erase_fails"], got["end_to_end_errors"], got["crc_errors"]) == (1, 2, 3, 4)
    assert (got["throttle_percent"], got["throttle_count"], got["soft_ecc_errors"]) == (5, 6, None)


def test_fixed_offsets_hold_for_this_order_only():
    """nvme-cli's fixed 0x89 and 0x95 for F4h and F5h are those of CAH; in another order they read something else."""
    assert (
        int.from_bytes(CAH[0x89 : 0x89 + 6], "little") == 90_000
        and int.from_bytes(CAH[0x95 : 0x95 + 6], "little") == 60_000
    )
    other = items({0xF5: (100, 60_000), 0x0D: (100, 9), 0xF4: (100, 90_000)})
    got = intel.decode_cah(other)
    assert (got["nand_written_bytes"], got["host_written_bytes"], got["soft_ecc_errors"]) == (
        90_000 * 32 * MIB,
        60_000 * 32 * MIB,
        9,
    )
    assert int.from_bytes(other[0x89 : 0x89 + 6], "little") != 90_000


def test_timed_values_of_the_first_hour_are_unknown():
    got = intel.decode_cah(items({0xE2: (100, 0xFFFF), 0xE3: (100, 0xFFFF), 0xE4: (100, 2**48 - 1), 0xF4: (100, 1)}))
    assert (got["workload_wear_percent"], got["workload_reads_percent"], got["workload_timer_min"]) == (
        None,
        None,
        None,
    )
    assert got["nand_written_bytes"] == 32 * MIB and got["host_written_bytes"] is None and got["pe_cycles_mean"] is None


def test_an_id_that_comes_twice_is_not_believed():
    twice = items({0xF4: (100, 5)}, 12) + items({0xF4: (100, 6), 0xF5: (100, 7)})
    assert (
        intel.decode_cah(twice)["nand_written_bytes"] is None
        and intel.decode_cah(twice)["host_written_bytes"] == 7 * 32 * MIB
    )
    assert intel.decode_cah(items({0xF4: (100, 5)}, 12) * 2)["nand_written_bytes"] == 5 * 32 * MIB


def test_micron_d0h():
    """Bytes at 176, in the two dwords 44 and 45."""
    raw = page({12: (4, 3), 96: (8, 2), 144: (16, 1), 176: (8, 5_000_000_000_001)})
    assert raw[176:180] == (5_000_000_000_001 & 0xFFFFFFFF).to_bytes(4, "little")
    got = micron.decode_d0h(raw)
    assert got == {"nand_written_bytes": 5_000_000_000_001, "program_fails": 1, "erase_fails": 2, "bad_user_blocks": 3}


def test_wdc():
    assert wdc.decode_cah(page({0: (16, 2**65), 16: (16, 7)})) == {"nand_written_bytes": 2**65, "nand_read_bytes": 7}
    got = wdc.decode_d0h(
        page({0x10: (4, 150), 0x14: (4, 210), 0x40: (4, 9), 0x44: (4, 1000), 0x50: (4, 800), 0x64: (4, 88)})
    )
    assert (
        got["lifetime_waf"],
        got["trailing_hour_waf"],
        got["read_disturbs"],
        got["pe_cycles_remaining_percent"],
    ) == (150, 210, 9, 88)
    assert "nand_written_bytes" not in got  # 44h counts pages of unknown size


@pytest.mark.parametrize(
    "vendor, model, made_by",
    [
        (0x8086, None, "intel"),
        (0x025E, "anything", "intel"),
        (0x1344, None, "micron"),
        (0x15B7, None, "wdc"),
        (0x1C5F, None, "items"),
        (0x144D, "INTEL SSD", None),  # the id decides where there is one
        (None, "INTEL SSDPE2KX080T8", "intel"),
        (None, "SOLIDIGM SSDPF2KX038TZ", "intel"),
        (None, "Micron_7300_MTFDHBE1T6TDG", "micron"),
        (None, "WDC WDS500G1X0E", "wdc"),
        (None, "SAMSUNG MZQLB1T9HAJR", None),
        (None, None, None),
    ],
)
def test_whose_page_it_is(vendor, model, made_by):
    maker = makers.maker_of(vendor, model)
    assert (maker and maker.name) == made_by


def test_pages_of_unknown_makers_are_not_decoded():
    assert makers.decode(0xCA, CAH, None) is None and makers.decode(0xCA, CAH, micron.MAKER) is None
    assert makers.decode(0xC0, CAH, intel.MAKER) is None
    assert makers.decode(0xCA, CAH, others.MAKER) == makers.decode(0xCA, CAH, intel.MAKER) == intel.decode_cah(CAH)


KNOWN = [(0xCA, intel), (0xD0, micron), (0xCA, wdc), (0xD0, wdc)]


@pytest.mark.parametrize("log_id, made_by", KNOWN)
@pytest.mark.parametrize("raw", [bytes(512), b"\xff" * 512, b""])
def test_blank_pages_say_nothing(log_id, made_by, raw):
    with pytest.raises(DriveError, match="zeros or ones"):
        makers.decode(log_id, raw, made_by.MAKER)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KNOWN),
    st.binary(max_size=520)
    | st.tuples(st.binary(min_size=1, max_size=40), st.integers(0, 520)).map(lambda p: (p[0] * 520)[: p[1]]),
)
def test_any_bytes(which, raw):
    """Numbers that are not negative, None, or a refusal; a page that is cut off never gives the field that is
    missing."""
    try:
        got = makers.decode(which[0], raw, which[1].MAKER)
    except DriveError:
        return
    assert all(value is None or value >= 0 for value in got.values())
    if which != (0xCA, intel):
        assert len(raw) >= {(0xD0, micron): 184, (0xCA, wdc): 32, (0xD0, wdc): 104}[which]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(CAH)))
def test_a_cut_page_of_items_has_fewer_items(size):
    whole = intel.decode_cah(CAH)
    try:
        got = intel.decode_cah(CAH[:size])
    except DriveError:
        assert size == 0
        return
    assert all(got[name] in (None, value) for name, value in whole.items())
    assert (got["host_written_bytes"] is None) == (size < 13 * 12)
