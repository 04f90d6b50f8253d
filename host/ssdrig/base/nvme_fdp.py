"""Flexible Data Placement (FDP) of NVMe drives: its log pages, and the status of a namespace's handles. Pure.

Log 20h (configurations), 21h (usage of the handles), 23h (events) and I/O Management Receive, operation 1: NVM Express
Base Specification 2.1, as libnvme's structures nvme_fdp_config_log, nvme_fdp_ruhu_log, nvme_fdp_events_log and
nvme_fdp_ruh_status read them; log 22h is nvme_pages'. Little endian; a page may be followed by other bytes. Every
decoder raises DriveError for one that is too short."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ssdrig.base.errors import DriveError
from ssdrig.base.words import size

CONFIGURATIONS, USAGE, STATISTICS, EVENTS = 0x20, 0x21, 0x22, 0x23
HEAD_BYTES, DESCRIPTOR_BYTES = 16, 64  # of log 20h, and of a configuration before its handles
EVENT_BYTES = 64
ISOLATION = {1: "initially isolated", 2: "persistently isolated"}
USES = {0: "unused", 1: "host", 2: "controller"}
EVENT_NAMES = {
    0x00: "unit_not_filled",
    0x01: "unit_time_limit",
    0x02: "reset_changed_units",
    0x03: "invalid_placement_id",
    0x80: "media_reallocated",
    0x81: "unit_changed_by_drive",
}
EVENT_WORDS = {
    "unit_not_filled": "reclaim unit left before it was full",
    "unit_time_limit": "reclaim unit open for longer than its time",
    "reset_changed_units": "reset that changed reclaim units",
    "invalid_placement_id": "write with an invalid placement identifier",
    "media_reallocated": "reallocation by the drive",
    "unit_changed_by_drive": "reclaim unit changed by the drive",
}


class Configuration(NamedTuple):
    """`handles`: how each keeps its data apart, a word of ISOLATION; `unit_bytes`: of a reclaim unit, nominal;
    `placement_ids`: how many a namespace can have at most; `group_bits`: the highest bits of a placement identifier,
    which are the reclaim group, the others the placement handle; `valid`: it can be switched on."""

    valid: bool
    group_bits: int
    groups: int
    handles: tuple[str, ...]
    placement_ids: int
    namespaces: int
    unit_bytes: int

    def words(self) -> str:
        """ "2 handles, reclaim units of 13.6 GB, 1 group, initially isolated"."""
        kinds = " and ".join(dict.fromkeys(self.handles))
        handles, groups = len(self.handles), self.groups
        counts = f"{handles} handle{'s' * (handles != 1)}, reclaim units of {size(self.unit_bytes)}"
        return f"{counts}, {groups} group{'s' * (groups != 1)}, {kinds}"


class Handle(NamedTuple):
    """A placement handle of a namespace in one reclaim group: `left_blocks` logical blocks can still be written to its
    reclaim unit."""

    placement_id: int
    handle: int
    left_blocks: int


def log_bytes(page: bytes) -> int:
    """How long log 20h is by its own head."""
    _enough(page, HEAD_BYTES, "log 20h")
    return _number(page, 4, 4)


def decode_20h(page: bytes) -> list[Configuration]:
    """The configurations that an endurance group can have, by their index."""
    count = log_bytes(page) and _number(page, 0, 2) + 1
    out, at = [], HEAD_BYTES
    for _ in range(count):
        _enough(page, at + DESCRIPTOR_BYTES, "log 20h")
        handles, end = _number(page, at + 8, 2), at + _number(page, at, 2)
        if end < at + DESCRIPTOR_BYTES + 4 * handles:
            raise DriveError(f"a configuration with {handles} handles in log 20h", f"{end - at} bytes", "see nvme fdp")
        _enough(page, end, "log 20h")
        kinds = (page[at + DESCRIPTOR_BYTES + 4 * index] for index in range(handles))
        configuration = Configuration(
            valid=bool(page[at + 2] & 0x80),
            group_bits=page[at + 2] & 0xF,
            groups=_number(page, at + 4, 4),
            handles=tuple(ISOLATION.get(kind, f"type {kind}") for kind in kinds),
            placement_ids=_number(page, at + 10, 2) + 1,
            namespaces=_number(page, at + 12, 4),
            unit_bytes=_number(page, at + 16, 8),
        )
        out.append(configuration)
        at = end
    return out


def decode_21h(page: bytes) -> list[str]:
    """Who has chosen each reclaim unit handle, by its number: a word of USES."""
    _enough(page, 8, "log 21h")
    count = _number(page, 0, 2)
    _enough(page, 8 * (1 + count), "log 21h")
    return [USES.get(page[8 * (1 + index)], f"attributes {page[8 * (1 + index)]:02x}h") for index in range(count)]


def decode_23h(page: bytes) -> list[dict]:
    """Events, oldest first: {"event": one of EVENT_NAMES, "t_ms": the drive's own time, "placement_id", "namespace",
    "group", "handle", "moved_blocks"}; None: the event has no such thing. A page holds 63 of the host, or of the
    controller."""
    _enough(page, EVENT_BYTES, "log 23h")
    count = _number(page, 0, 4)
    _enough(page, EVENT_BYTES * (1 + count), "log 23h")
    out = []
    for at in range(EVENT_BYTES, EVENT_BYTES * (1 + count), EVENT_BYTES):
        kind, flags = page[at], page[at + 1]
        event = {
            "event": EVENT_NAMES.get(kind, f"type_{kind:02x}h"),
            "t_ms": _number(page, at + 4, 6),
            "placement_id": _number(page, at + 2, 2) if flags & 1 else None,
            "namespace": _number(page, at + 12, 4) if flags & 2 else None,
            "group": _number(page, at + 32, 2) if flags & 4 else None,
            "handle": page[at + 34] if flags & 4 else None,
            "moved_blocks": _number(page, at + 18, 2) if kind == 0x80 else None,
        }
        out.append(event)
    return out


def status_bytes(head: bytes) -> int:
    """How long the status of the handles is, by its first 16 bytes."""
    _enough(head, 16, "the status of the reclaim unit handles")
    return 16 + 32 * _number(head, 14, 2)


def decode_status(answer: bytes) -> list[Handle]:
    """The handles of a namespace, as I/O Management Receive lists them: one for each reclaim group."""
    _enough(answer, 16, "the status of the reclaim unit handles")
    count = _number(answer, 14, 2)
    _enough(answer, 16 + 32 * count, "the status of the reclaim unit handles")
    places = range(16, 16 + 32 * count, 32)
    return [Handle(_number(answer, at, 2), _number(answer, at + 2, 2), _number(answer, at + 8, 8)) for at in places]


def since(before: Iterable[Mapping], after: Iterable[Mapping]) -> list[dict]:
    """The events of a later reading that an earlier one did not have."""
    known = Counter(tuple(event.items()) for event in before)
    new = []
    for event in after:
        if known[key := tuple(event.items())]:
            known[key] -= 1
        else:
            new.append(dict(event))
    return new


def in_words(events: Iterable[Mapping]) -> str:
    """ "3 × reclaim unit left before it was full"; "" without events."""
    counts = Counter(event["event"] for event in events)
    return ", ".join(f"{count} × {EVENT_WORDS.get(name, name)}" for name, count in counts.items())


def _number(page: bytes, at: int, count: int) -> int:
    return int.from_bytes(page[at : at + count], "little")


def _enough(page: bytes, least: int, name: str) -> None:
    if len(page) < least:
        raise DriveError(f"at least {least} bytes of {name}", f"{len(page)}", "read the page again")
