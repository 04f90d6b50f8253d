"""One SMART poll of one drive, or of several in parallel: the document of smart/<nnn>.json, raw, with missing data
listed in `gaps`."""

import threading
import time
from typing import Any

from ssdrig.base import nvme_fdp
from ssdrig.base.errors import DriveError, SsdrigError, ToolMissing
from ssdrig.drive import nvme_cli, program
from ssdrig.drive.inventory import Drive
from ssdrig.drive.smart import latency_monitor, makers, nvme_pages, smart_answer, smartctl, units
from ssdrig.drive.smart.smart_answer import LOG_KEY, answered

TIMEOUT_S = 20.0
PAGES_SHARE = 0.5  # of the time for a poll: a page that hangs leaves the other half to smartctl

HEALTH, GROUP, OCP = 0x02, 0x09, 0xC0
FDP = (nvme_fdp.STATISTICS, nvme_fdp.EVENTS, nvme_fdp.CONFIGURATIONS, nvme_fdp.USAGE)
CONSTANT = {"log_00h", "log_20h", "log_21h"}  # not asked for again
# bytes; all others nvme_cli.LOG_BYTES
SIZES = {nvme_fdp.STATISTICS: 64} | dict.fromkeys(FDP[1:], 4096)
HOST_EVENTS = 1  # the field of log 23h by which its events are the host's, not the controller's
SUPPORTED_BYTES = 1024  # log page 00h


def poll(drive: Drive, like: dict | None = None, timeout_s: float = TIMEOUT_S) -> dict:
    """Poll a drive: the document of schemas/journal.md "smart/<nnn>.json" without "n" and "reason", which the run adds.

    Asked of NVMe drives, one directly after the other, because write amplification compares two of them, and before
    smartctl: log 02h, OCP's C0h, the maker's own pages, 09h if there are endurance groups, 20h to 23h if there is
    Flexible Data Placement, C3h if C0h is OCP's. Then `smartctl -x`.
    A page that a drive does not have counts as an error in its error log
    (error_log_entries rises). So log 00h, the list of pages, is read first if LPA announces it, and
    believed. `like`, an earlier document of this drive, makes it the cheap poll for a series: only the pages that it
    has, and `smartctl -i -A -H` (with ATA device statistics if it has them).

    timeout_s is for the whole poll; a tool that is still at it then is killed. A drive that answers half is recorded as
    half, in "gaps". Raises DriveError when it answered nothing, ToolMissing when smartctl is missing or too old and
    nothing else answered."""
    document, missing = _ask(drive, like, timeout_s)
    if answered(document):
        return document
    if missing:
        raise missing
    raise DriveError(
        f"an answer from {drive.node} ({drive.model} {drive.serial})",
        "; ".join(document["gaps"]) or "none",
        "run as root; see that the drive has power and its cable, and dmesg",
    )


def poll_all(drives: list[Drive], likes: list[dict | None] | None = None, timeout_s: float = TIMEOUT_S) -> list[dict]:
    """Poll all drives in parallel, each in its thread: their documents in the order of `drives`. `likes` as poll's
    `like`, one per drive.

    Never raises for what drives and tools do: see answered() for whether a document has anything. No drive waits for
    another."""
    documents: list[dict] = [{}] * len(drives)
    defects: list[BaseException] = []

    def one(index: int) -> None:
        try:
            documents[index] = _ask(drives[index], likes[index] if likes else None, timeout_s)[0]
        except BaseException as error:  # a defect of ours: must not pass for a drive without answer
            defects.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(drives))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if defects:
        raise defects[0]
    return documents


def _ask(drive: Drive, like: dict | None, timeout_s: float) -> tuple[dict, ToolMissing | None]:
    """(the document, whatever it holds, and why smartctl is missing)."""
    t_start_ns = time.monotonic_ns()
    deadline = time.monotonic() + timeout_s
    like = like if like and answered(like) else None  # an empty poll does not show which pages the drive has
    about = {
        name: getattr(drive, name)
        for name in ("model", "serial", "firmware", "by_id", "node", "interface", "capacity_bytes")
    }
    document: dict[str, Any] = {
        "t_start_ns": t_start_ns,
        "t_end_ns": None,
        "simulated": drive.simulated,
        "drive": about,
        "smartctl": None,
        "smartctl_text": None,
        "tools": [],
        "gaps": [],
        "units": {},
    }
    if drive.controller and drive.interface.startswith("NVMe"):
        _add_pages(document, drive, like, time.monotonic() + timeout_s * PAGES_SHARE)
    missing = None
    try:
        _add_smartctl(document, drive, like, deadline)
    except ToolMissing as error:
        missing = error
        document["gaps"].append(f"smartctl: {error}")
    document["units"] = _units(drive, document["gaps"])
    document["t_end_ns"] = time.monotonic_ns()
    return document, missing


def _add_pages(document: dict, drive: Drive, like: dict | None, deadline: float) -> None:
    """Put the log pages, and the facts by which they were asked, into the document."""
    about, gaps = document["drive"], document["gaps"]
    about |= dict.fromkeys(("pci_vendor_id", "endurance_group", "ocp_uuid_index"))

    def asked(what: str, function, *words, **named) -> bytes | None:
        page, record = function(drive.controller, *words, timeout_s=deadline - time.monotonic(), **named)
        document["tools"].append(record)
        if record["why"]:
            gaps.append(f"{what}: {record['why']}")
        return page

    if like:
        earlier = like.get("drive") or {}
        about |= {name: earlier.get(name) for name in ("pci_vendor_id", "endurance_group", "ocp_uuid_index")}
        known = {key: page for key, page in like.items() if LOG_KEY.fullmatch(key) and key not in CONSTANT}
        pages = [int(key[4:6], 16) for key, page in known.items() if page]
        document |= {key: None for key, page in known.items() if not page}  # its earlier answer still holds
    else:
        identity = asked("Identify Controller", nvme_cli.identify)
        if identity is None and program.is_missing("nvme"):
            return
        pages = _choose(document, drive, identity, asked)
    for lid in pages:
        if lid == latency_monitor.PAGE and not like and not nvme_pages.is_ocp(document.get(f"log_{OCP:02x}h")):
            continue  # other makers have other pages there
        named = {"lsi": about["endurance_group"]} if lid in (GROUP, *FDP) else {}
        if lid in (OCP, latency_monitor.PAGE) and about["ocp_uuid_index"]:
            named = {"uuid_index": about["ocp_uuid_index"]}
        page = asked(f"log {lid:02X}h", nvme_cli.log_page, lid, SIZES.get(lid, nvme_cli.LOG_BYTES), **named)
        if page is not None:
            document[f"log_{lid:02x}h"] = page.hex()
        elif not document["tools"][-1]["why"]:
            document[f"log_{lid:02x}h"] = None
        if page is not None and lid == nvme_fdp.EVENTS:
            page = asked("log 23h, of the host", nvme_cli.log_page, lid, SIZES[lid], lsp=HOST_EVENTS, **named)
            document |= {"log_23h_host": page.hex()} if page is not None else {}


def _choose(document: dict, drive: Drive, identity: bytes | None, asked) -> list[int]:
    """Which log pages to ask of a drive that is met for the first time, in this order."""
    if identity is None:
        return [HEALTH]
    about = document["drive"]
    has = nvme_cli.capabilities(identity)
    about["pci_vendor_id"] = f"{has['pci_vendor_id']:04x}"
    if drive.serial and has["serial"] and has["serial"] != drive.serial.strip():
        document["gaps"].append(
            f"serial number: the drive at {drive.controller} reports {has['serial']}, not {drive.serial}: it is"
            " another one"
        )
    maker = makers.maker_of(has["pci_vendor_id"], None)
    pages = [HEALTH, OCP, *(maker.pages if maker else ())]
    if has["endurance_groups"] or has["has_fdp"]:
        namespace = asked("Identify Namespace", nvme_cli.identify_namespace, drive.nsid or 1)
        about["endurance_group"] = namespace and nvme_cli.endurance_group(namespace) or 1
        pages += [GROUP] if has["endurance_groups"] else []
        pages += FDP if has["has_fdp"] else []
    pages.append(latency_monitor.PAGE)
    if has["has_log_00h"]:
        listed = asked("log 00h", nvme_cli.log_page, 0x00, SUPPORTED_BYTES)
        if listed:
            document["log_00h"] = listed.hex()
            known = nvme_cli.supported(listed)
            for lid in set(pages) - known - {HEALTH}:
                pages.remove(lid)
                document[f"log_{lid:02x}h"] = None
    if OCP in pages and has["has_uuids"]:
        uuids = asked("UUID List", nvme_cli.identify_uuids)
        about["ocp_uuid_index"] = nvme_cli.ocp_uuid_index(uuids) if uuids else None
    return pages


def _add_smartctl(document: dict, drive: Drive, like: dict | None, deadline: float) -> None:
    """Put smartctl's answer into the document. Raises ToolMissing."""
    type_, words = drive.smartctl_type, smartctl.FULL
    if like:
        type_ = (like.get("drive") or {}).get("smartctl_type") or type_
        words = list(smartctl.LIGHT)
        if isinstance(like.get("smartctl"), dict) and "ata_device_statistics" in like["smartctl"]:
            words += smartctl.DEVICE_STATISTICS
    answer, used, all_answers = smartctl.run_any(drive.node, type_, drive.usb_id, words, deadline - time.monotonic())
    document["drive"]["smartctl_type"] = used
    document["smartctl"], document["smartctl_text"] = answer.document, answer.text
    document["tools"] += [program.record(call) for call in all_answers]
    messages = "; ".join(smart_answer.messages(answer.document))
    if answer.why:
        document["gaps"].append(f"smartctl: {answer.why}")
    for bit in smartctl.bits(answer.exit_code or 0):
        if bit <= 2:  # later bits are findings of the drive, not missing data
            document["gaps"].append(
                f"smartctl, exit status bit {bit}: {smartctl.EXIT_BITS[bit]}" + (f": {messages}" if messages else "")
            )


def _units(drive: Drive, gaps: list[str]) -> dict:
    """{"ata:241": bytes} that a calibration on this model and firmware found."""
    try:
        return units.units_for(drive.model, drive.firmware)
    except SsdrigError as error:
        gaps.append(f"calibrated units: {error}")
        return {}
