"""Log pages of Flexible Data Placement, laid out as libnvme's structures have them, and any bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import page

from ssdrig.base import nvme_fdp
from ssdrig.base.errors import DriveError

MIB = 1 << 20
# nvme_fdp_config_log: n 0, size 4; nvme_fdp_config_desc: size 0, fdpa 2, nrg 4, nruh 8, maxpids 10, nnss 12, runs 16,
# ruhs 64
TWO = page({0: (2, 1), 4: (4, 16 + 72 + 80)}, 16)
OFF = page(
    {0: (2, 72), 2: (1, 0x00), 4: (4, 1), 8: (2, 1), 10: (2, 127), 12: (4, 1), 16: (8, 96 * MIB), 64: (1, 1)}, 72
)
ON = page(
    {
        **{0: (2, 80), 2: (1, 0x84), 4: (4, 8), 8: (2, 3), 10: (2, 7), 12: (4, 256), 16: (8, 13 << 30)},
        **{64: (1, 2), 68: (1, 1), 72: (1, 9)},
    },
    80,
)
CONFIGURATIONS = TWO + OFF + ON


def event(kind, flags=0, pid=0, t_ms=0, nsid=0, moved=0, group=0, handle=0):
    """nvme_fdp_event: type 0, flags 1, pid 2, ts 4, nsid 12, type_specific 16, rgid 32, ruhid 34."""
    words = {0: (1, kind), 1: (1, flags), 2: (2, pid), 4: (6, t_ms), 12: (4, nsid), 18: (2, moved)}
    return page({**words, 32: (2, group), 34: (1, handle)}, 64)


def test_configurations_by_their_index():
    off, on = nvme_fdp.decode_20h(CONFIGURATIONS.ljust(4096, b"\xa5"))
    assert off == (False, 0, 1, ("initially isolated",), 128, 1, 96 * MIB)
    assert on == (True, 4, 8, ("persistently isolated", "initially isolated", "type 9"), 8, 256, 13 << 30)
    assert nvme_fdp.log_bytes(CONFIGURATIONS) == len(CONFIGURATIONS)


def test_users_of_handles():
    used = page({0: (2, 4), 8: (1, 0), 16: (1, 1), 24: (1, 2), 32: (1, 7)}, 40)
    assert nvme_fdp.decode_21h(used) == ["unused", "host", "controller", "attributes 07h"]


def test_events_with_what_is_valid_of_them():
    rows = event(0x80, 7, 3, 1_700_000_000_000, 1, 250, 5, 2) + event(0x03, 1, 0x1234) + event(0x42)
    moved, invalid, unknown = nvme_fdp.decode_23h(page({0: (4, 3)}, 64) + rows)
    assert moved == {
        "event": "media_reallocated",
        "t_ms": 1_700_000_000_000,
        "placement_id": 3,
        "namespace": 1,
        "group": 5,
        "handle": 2,
        "moved_blocks": 250,
    }
    assert (invalid["event"], invalid["placement_id"]) == ("invalid_placement_id", 0x1234)
    assert [invalid[key] for key in ("namespace", "group", "handle", "moved_blocks")] == [None] * 4
    assert unknown["event"] == "type_42h"


def test_handles_of_a_namespace():
    """nvme_fdp_ruh_status: nruhsd 14; nvme_fdp_ruh_status_desc: pid 0, ruhid 2, ruamw 8."""
    rows = [page({0: (2, pid), 2: (2, 1 - pid), 8: (8, 1000 + pid)}, 32) for pid in (0, 1)]
    assert nvme_fdp.decode_status(page({14: (2, 2)}, 16) + b"".join(rows)) == [(0, 1, 1000), (1, 0, 1001)]


def test_new_events_are_those_that_came_since():
    first = [{"event": "unit_not_filled", "t_ms": 0}, {"event": "unit_not_filled", "t_ms": 0}]
    later = [*first[1:], {"event": "unit_not_filled", "t_ms": 0}, {"event": "media_reallocated", "t_ms": 5}]
    assert nvme_fdp.since(first, later) == [{"event": "media_reallocated", "t_ms": 5}]
    assert nvme_fdp.in_words(later).startswith("2 × ")


@pytest.mark.parametrize(
    "decode, whole",
    [
        (nvme_fdp.decode_20h, CONFIGURATIONS),
        (nvme_fdp.decode_21h, page({0: (2, 2)}, 24)),
        (nvme_fdp.decode_23h, page({0: (4, 2)}, 64) + 2 * event(0)),
        (nvme_fdp.decode_status, page({14: (2, 2)}, 80)),
    ],
)
def test_a_page_that_ends_early_is_refused(decode, whole):
    decode(whole)
    for end in range(len(whole)):
        with pytest.raises(DriveError):
            decode(whole[:end])


def number(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "little")


# decoder -> how long a page is by its head of so many bytes, and how many records it has
WHOLE = {
    nvme_fdp.decode_21h: (8, lambda head: (8 + 8 * number(head, 0, 2), number(head, 0, 2))),
    nvme_fdp.decode_23h: (64, lambda head: (64 + 64 * number(head, 0, 4), number(head, 0, 4))),
    nvme_fdp.decode_status: (16, lambda head: (16 + 32 * number(head, 14, 2), number(head, 14, 2))),
}


@pytest.mark.parametrize("decode", WHOLE)
@given(data=st.data())
def test_any_bytes_are_decoded_if_the_page_is_whole_and_refused_if_not(decode, data):
    count = data.draw(st.integers(0, 4))
    head = bytearray(data.draw(st.binary(min_size=64, max_size=64)))
    at, size = (14, 2) if decode is nvme_fdp.decode_status else (0, 4 if decode is nvme_fdp.decode_23h else 2)
    head[at : at + size] = count.to_bytes(size, "little")
    page = bytes(head) + data.draw(st.binary(max_size=300))
    least, of_head = WHOLE[decode]
    whole, records = of_head(page)
    assert records == count
    if len(page) < max(least, whole):
        with pytest.raises(DriveError):
            decode(page)
    else:
        assert len(decode(page)) == count and decode(page[: max(least, whole)]) == decode(page + b"\xff" * 64)


@given(st.binary(max_size=300))
def test_any_bytes_of_log_20h_are_decoded_in_full_or_refused(data):
    try:
        configurations = nvme_fdp.decode_20h(data)
    except DriveError:
        assert nvme_fdp.HEAD_BYTES > len(data) or number(data, 4, 4)
        return
    assert len(configurations) == (number(data, 0, 2) + 1 if number(data, 4, 4) else 0)
    assert len(data) >= nvme_fdp.HEAD_BYTES + sum(64 + 4 * len(one.handles) for one in configurations)
    assert nvme_fdp.decode_20h(data + b"\xff" * 64) == configurations
