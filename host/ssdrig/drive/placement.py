"""Flexible Data Placement (FDP) of an NVMe drive: whether it is on, its configuration, the handles of a namespace, and
the host's means to write by handle.

Asked through nvme-cli: Get Features 1Dh (CDW11: the endurance group), log 20h, and I/O Management Receive (12h,
operation 1). Sources: NVM Express Base Specification 2.1; NVM Command Set Specification 1.1. fio's `dataplacement`
and `dp_scheme`: seen with fio 3.39."""

import os
import re
import time
from typing import NamedTuple

from ssdrig.base import nvme_fdp, uring
from ssdrig.base.errors import DriveError
from ssdrig.base.nvme_fdp import Configuration, Handle
from ssdrig.drive import features, nvme_cli, program, sysfs
from ssdrig.drive.inventory import Drive

FEATURE = 0x1D
OFF = "flexible data placement is switched off in the drive (feature 1Dh)"
TIMEOUT_S = 60.0  # for all queries together
PAGE_BYTES, MOST_PAGE_BYTES = 4096, 1 << 18  # of log 20h at first; a longer one is read again
HEAD_BYTES = 16  # of the status of the handles; 32 for each follow
OLDEST_FIO = (3, 39)


class Placement(NamedTuple):
    """A namespace of a drive with FDP switched on. `handles`: () where they are not reported, `why` not."""

    configuration: Configuration
    handles: tuple[Handle, ...]
    why: str = ""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The placement handles that a write can name, in the first reclaim group."""
        first = 1 << 16 - self.configuration.group_bits
        return tuple(sorted({handle.placement_id for handle in self.handles if handle.placement_id < first}))


def read(drive: Drive) -> tuple[Placement | None, str]:
    """(the placement of a drive, "") or (None, why not). Only asks the drive."""
    if not drive.controller or not drive.interface.startswith("NVMe"):
        return None, "flexible data placement (FDP) is a feature of NVMe drives"
    deadline = time.monotonic() + TIMEOUT_S
    identity, record = nvme_cli.identify(drive.controller, deadline - time.monotonic())
    if identity is None:
        return None, record["why"] or "the drive does not identify itself"
    if not nvme_cli.capabilities(identity)["has_fdp"]:
        return None, "the drive has no flexible data placement (FDP)"
    group = _group(drive, deadline)
    configuration, why = configured(drive.controller, group, deadline - time.monotonic())
    if configuration is None:
        return None, why
    return Placement(configuration, *_handles(drive, deadline)), ""


def condition(controller: str, nsid: int | None) -> tuple[dict[str, str | None], dict[str, str]]:
    """({"nvme.fdp": "off" or the configuration in words; None, if unknown}, {"nvme.fdp": why not}); both empty of a
    drive without data placement."""
    deadline = time.monotonic() + TIMEOUT_S
    identity, _ = nvme_cli.identify(controller, TIMEOUT_S)
    if identity is None or not nvme_cli.capabilities(identity)["has_fdp"]:
        return {}, {}
    page, _ = nvme_cli.identify_namespace(controller, nsid or 1, deadline - time.monotonic())
    configuration, why = configured(controller, group_of(page), deadline - time.monotonic())
    if configuration is not None:
        return {"nvme.fdp": configuration.words()}, {}
    return ({"nvme.fdp": "off"}, {}) if why == OFF else ({"nvme.fdp": None}, {"nvme.fdp": why})


def configured(controller: str, group: int, timeout_s: float = TIMEOUT_S) -> tuple[Configuration | None, str]:
    """(the configuration in use of an endurance group, "") or (None, why: it is switched off, or cannot be asked)."""
    deadline = time.monotonic() + timeout_s
    bits, why = features.value(controller, FEATURE, timeout_s, cdw11=group)
    if bits is None:
        return None, f"whether data placement is on is not known: {why}"
    if not bits & 1:
        return None, OFF
    page, record = nvme_cli.log_page(
        controller, nvme_fdp.CONFIGURATIONS, PAGE_BYTES, lsi=group, timeout_s=deadline - time.monotonic()
    )
    try:
        if page is not None and PAGE_BYTES < (length := nvme_fdp.log_bytes(page)) <= MOST_PAGE_BYTES:
            more = {"lsi": group, "timeout_s": deadline - time.monotonic()}
            page, record = nvme_cli.log_page(controller, nvme_fdp.CONFIGURATIONS, length, **more)
        if page is None:
            return None, record["why"] or "the drive does not have log 20h"
        index, configurations = bits >> 8 & 0xFF, nvme_fdp.decode_20h(page)
    except DriveError as error:
        return None, f"log 20h: {error.seen} instead of {error.expected}"
    if index >= len(configurations):
        return None, f"log 20h has {len(configurations)} configurations, and number {index} is in use"
    return configurations[index], ""


def group_of(id_ns: bytes | None) -> int:
    """The endurance group of a namespace; the first where it reports none."""
    return id_ns and nvme_cli.endurance_group(id_ns) or 1


def _group(drive: Drive, deadline: float) -> int:
    page, _ = nvme_cli.identify_namespace(str(drive.controller), drive.nsid or 1, deadline - time.monotonic())
    return group_of(page)


def _handles(drive: Drive, deadline: float) -> tuple[tuple[Handle, ...], str]:
    answer, record = None, {"why": None}
    size = HEAD_BYTES
    for _ in range(2):  # a drive may refuse to be asked for more than it has
        left_s = deadline - time.monotonic()
        answer, record = nvme_cli.io_management(drive.node, drive.nsid or 1, 1, size, left_s)
        if answer is None:
            return (), record["why"] or "no answer"
        size = nvme_fdp.status_bytes(answer)
    try:
        return tuple(nvme_fdp.decode_status(answer or b"")), ""
    except DriveError as error:
        return (), error.seen


def why_not(drive: Drive, root: str | os.PathLike = "/", fio: str = "fio") -> str:
    """Why fio cannot write this drive by placement handle; "" if drive, fio and kernel can."""
    placement, why = read(drive)
    if placement is None:
        return why
    if len(placement.numbers) < 1:
        return f"the placement handles of the namespace are not reported: {placement.why or 'there are none'}"
    printed = program.run([fio, "--version"], TIMEOUT_S).stdout.decode(errors="replace").strip()
    number = re.match(r"fio-(\d+)\.(\d+)", printed)
    if not number or tuple(map(int, number.groups())) < OLDEST_FIO:
        return f"{printed or 'no fio'} cannot place data; fio {OLDEST_FIO[0]}.{OLDEST_FIO[1]} and newer can"
    node = generic(drive.name)
    if not os.path.exists(sysfs.within(root, node)):
        return f"the kernel has no {node}, through which placed writes go (Linux 5.19)"
    if not uring.allowed():
        return uring.FORBIDDEN
    return ""


def generic(name: str) -> str:
    """The generic character device of a namespace: /dev/ng0n1 of nvme0n1."""
    return f"/dev/ng{name.removeprefix('nvme')}"
