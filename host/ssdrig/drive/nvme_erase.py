"""NVMe format and sanitize through nvme-cli, and a controller's capabilities for them.

All goes to the controller (/dev/nvme0), not the namespace: nvme-cli 2.x opens a namespace O_EXCL before it formats,
which fails while the guard holds it; a character device knows no such thing. What erases is given the path of a
descriptor (guard.Held.controller), never a name: nvme-cli opens it as any other. --force only leaves out
nvme-cli's ten seconds of second thoughts: the guard has asked before. Pages are read in binary, whose layout is the
standard's (NVM Express Base Specification 2.0: Identify Controller, Identify Namespace, Sanitize Status log 81h) and
not the version's of nvme-cli."""

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ssdrig.base.errors import DriveError
from ssdrig.drive import erasing, inventory, nvme_cli, program
from ssdrig.drive.inventory import Drive
from ssdrig.drive.sysfs import number

QUERY_S = 20.0
MARGIN_S = 20.0  # for nvme-cli itself to end after its command's limit
# also the kernel's limit for the command; nvme-cli's own is 10 min, after which the controller is reset
FORMAT_S = 3600.0
STALL_S = 3600.0  # without progress of the sanitize
SILENT_S = 60.0  # without a sanitize log from the drive
SANITIZE_LOG = 0x81
NO_ESTIMATE = 0xFFFFFFFF
SES = {"format": 0, "format-secure": 1, "format-crypto": 2}  # secure erase setting of Format NVM
ACTION = {"sanitize-block": 2, "sanitize-overwrite": 3, "sanitize-crypto": 4}  # SANACT
RUNNING, FAILED = 2, 3  # of SSTAT bits 2:0; 0 never, 1 done, 4 done and all deallocated


@dataclass(frozen=True)
class Controller:
    """The erase capabilities in Identify Controller."""

    format: bool  # OACS bit 1
    crypto_format: bool  # FNA bit 2
    format_takes_all: bool  # FNA bit 0: format applies to all namespaces
    erase_takes_all: bool  # FNA bit 1: so does secure erase
    crypto_sanitize: bool  # SANICAP bits 0, 1, 2
    block_sanitize: bool
    overwrite_sanitize: bool
    manages_namespaces: bool  # OACS bit 3: some may be allocated and attached to no controller, or to another
    most_namespaces: int  # NN: the greatest namespace number


@dataclass(frozen=True)
class Namespace:
    """The fields of Identify Namespace. Blocks are logical blocks."""

    size_blocks: int
    used_blocks: int
    lba_format: int
    metadata_extended: int
    protection: int
    protection_first: int
    reads_after_discard: str | None  # "zeros", "ones" as DLFEAT promises; None: nothing promised


@dataclass(frozen=True)
class Sanitize:
    """The sanitize status log. progress 0..1; estimates in seconds for overwrite, block, crypto; None: not reported."""

    state: int
    progress: float
    action: int
    estimate_s: dict[int, int | None]


def decode_controller(page: bytes) -> Controller:
    """From the 4096 bytes of Identify Controller. Raises DriveError for another length."""
    _length(page, 4096, "Identify Controller")
    oacs, fna, sanicap = int.from_bytes(page[256:258], "little"), page[524], int.from_bytes(page[328:332], "little")

    def bit(word: int, n: int) -> bool:
        return bool(word >> n & 1)

    return Controller(
        format=bit(oacs, 1),
        crypto_format=bit(fna, 2),
        format_takes_all=bit(fna, 0),
        erase_takes_all=bit(fna, 1),
        crypto_sanitize=bit(sanicap, 0),
        block_sanitize=bit(sanicap, 1),
        overwrite_sanitize=bit(sanicap, 2),
        manages_namespaces=bit(oacs, 3),
        most_namespaces=int.from_bytes(page[516:520], "little"),
    )


def decode_namespace(page: bytes) -> Namespace:
    """From the 4096 bytes of Identify Namespace. Raises DriveError for another length or an inactive namespace (all
    zero)."""
    _length(page, 4096, "Identify Namespace")
    size, used = int.from_bytes(page[0:8], "little"), int.from_bytes(page[16:24], "little")
    if not size:
        raise DriveError("an active namespace", "Identify Namespace reports no blocks", "see nvme list-ns")
    flbas, dps = page[26], page[29]
    after = {1: "zeros", 2: "ones"}.get(page[33] & 7)
    return Namespace(size, used, flbas & 15 | (flbas >> 5 & 3) << 4, flbas >> 4 & 1, dps & 7, dps >> 3 & 1, after)


def decode_sanitize(page: bytes) -> Sanitize:
    """From the sanitize status log, 512 bytes; only the first 20 are needed. Raises DriveError for fewer."""
    if len(page) < 20:
        raise DriveError("512 bytes of sanitize log", f"{len(page)}", "see nvme sanitize-log")
    state = int.from_bytes(page[2:4], "little") & 7
    action = page[4] & 7
    progress = int.from_bytes(page[0:2], "little") / 65536 if state == RUNNING else 1.0
    times = {act: int.from_bytes(page[at : at + 4], "little") for act, at in ((3, 8), (2, 12), (4, 16))}
    return Sanitize(state, progress, action, {act: None if s in (0, NO_ESTIMATE) else s for act, s in times.items()})


def _node(drive: Drive) -> str:
    """/dev/nvme0 of a drive. Raises DriveError for one without a controller."""
    if not drive.controller:
        raise DriveError("an NVMe controller", f"none at {drive.node}", "see nvme list")
    return drive.controller


def identify_controller(drive: Drive) -> Controller:
    """Raises DriveError."""
    return decode_controller(_page(*nvme_cli.identify(_node(drive)), "Identify Controller"))


def identify_namespace(drive: Drive, controller: str | None = None) -> Namespace:
    """Raises DriveError. controller: path to the controller of a held drive; None: by name."""
    page = nvme_cli.identify_namespace(controller or _node(drive), drive.nsid or 0)
    return decode_namespace(_page(*page, "Identify Namespace"))


def sanitize_log(drive: Drive, controller: str | None = None) -> Sanitize:
    """As identify_namespace(). Raises DriveError, also when the drive does not have it."""
    return decode_sanitize(_page(*nvme_cli.log_page(controller or _node(drive), SANITIZE_LOG), "the sanitize log"))


def other_namespaces(drive: Drive, root: str | Path = "/") -> list[str]:
    """Names of this machine's other namespaces of the same NVM subsystem: a sanitize takes their data too. The paths of
    a multipath drive (nvme1c1n1, hidden) are not separate namespaces."""

    def subsystem(name):  # the serial too: there are drives whose NQN is not unique
        device = Path(root, "sys/block", name, "device")
        try:
            return (device / "subsysnqn").read_text().strip(), (device / "serial").read_text().strip()
        except OSError:
            return None

    own = subsystem(drive.name)
    if own is None:
        return []
    names = sorted(path.name for path in Path(root, "sys/block").glob("nvme*n*") if path.name != drive.name)
    return [name for name in names if not inventory.HIDDEN_PATH.match(name) and subsystem(name) == own]


def listed_namespaces(drive: Drive, can: Controller) -> list[int]:
    """Numbers of the drive's other namespaces as it reports them, whether or not this machine shows them as disks: the
    allocated ones (CNS 10h) if the drive manages namespaces, otherwise the active ones (CNS 02h). Raises DriveError if
    it does not report them (NVM Express Base Specification 2.0, 5.17.2.2 and 5.17.2.14)."""
    if can.most_namespaces == 1:
        return []
    page = _page(*nvme_cli.namespace_list(_node(drive), 0x10 if can.manages_namespaces else 0x02), "the namespace list")
    numbers = struct.unpack(f"<{len(page) // 4}I", page)
    if drive.nsid not in numbers:
        raise DriveError(
            f"namespace {drive.nsid} in the drive's own list", f"{[n for n in numbers if n]}", "see nvme list-ns --all"
        )
    return [n for n in numbers if n and n != drive.nsid]


def _shared(drive: Drive, can: Controller, root) -> str | None:
    """Why a command for all of the drive would take more than this namespace; None if it has no other."""
    names = other_namespaces(drive, root)
    try:
        shown = {number(f"{root}/sys/block/{name}/nsid") for name in names}
        numbers = [n for n in listed_namespaces(drive, can) if n not in shown]
    except DriveError as error:
        if not names:
            return f"it may also erase other namespaces of the same drive: {error.seen}"
        numbers = []
    words = [*names, *(f"namespace {n}, which this machine does not show as a disk," for n in numbers)]
    return f"it would also erase {', '.join(words)} of the same drive" if words else None


def offers(drive: Drive, root: str | Path = "/") -> dict[str, tuple[str | None, int | None]]:
    """{method: (why it cannot be used or None, estimated seconds or None)}. Never raises for what a drive or nvme-cli
    does."""
    try:
        if not drive.controller or not drive.nsid:
            raise DriveError(
                "an NVMe controller with a namespace", f"{drive.controller}, {drive.nsid}", "see nvme list"
            )
        can = identify_controller(drive)
    except DriveError as error:
        return {name: (str(error), None) for name in (*SES, *ACTION)}
    shared = _shared(drive, can, root)
    estimates: dict[int, int | None] = {}
    if can.block_sanitize or can.crypto_sanitize or can.overwrite_sanitize:
        try:
            estimates = sanitize_log(drive).estimate_s
        except DriveError:
            pass  # only the estimate is lost
    no_format = None if can.format else "the controller has no Format NVM command (OACS bit 1)"
    offered: dict[str, tuple[str | None, int | None]] = {
        "format": (no_format or (shared if can.format_takes_all else None), None),
        "format-secure": (no_format or (shared if can.format_takes_all or can.erase_takes_all else None), None),
        "format-crypto": (
            no_format
            or (None if can.crypto_format else "no cryptographic erase as part of format (FNA bit 2)")
            or (shared if can.format_takes_all or can.erase_takes_all else None),
            None,
        ),
    }
    for name, has, bit in (
        ("sanitize-crypto", can.crypto_sanitize, 0),
        ("sanitize-block", can.block_sanitize, 1),
        ("sanitize-overwrite", can.overwrite_sanitize, 2),
    ):
        offered[name] = (
            shared if has else f"the controller does not support it (SANICAP bit {bit})",
            estimates.get(ACTION[name]),
        )
    return offered


def format(
    drive: Drive, controller: str, method: str, on_tick: Callable[[float], None], timeout_s: float = FORMAT_S
) -> list[str]:
    """Format NVM of this namespace, by the path to its controller, with the LBA format and protection that it has.
    Returns the argv used. Raises DriveError."""
    now = identify_namespace(drive, controller)
    argv = ["nvme", "format", controller, "-n", str(drive.nsid), f"--ses={SES[method]}", f"--lbaf={now.lba_format}"]
    if now.metadata_extended or now.protection:  # without: nvme-cli's defaults, which are 0
        argv += [f"--ms={now.metadata_extended}", f"--pi={now.protection}", f"--pil={now.protection_first}"]
    argv += [f"--timeout={round(timeout_s * 1000)}", "--force"]
    call = erasing.run(argv, timeout_s + MARGIN_S, on_tick)
    if call.exit_code != 0:
        raise DriveError(
            "the drive to be formatted", erasing.words(call), "see nvme error-log; the drive's content is undefined now"
        )
    return argv


def sanitize(
    drive: Drive,
    controller: str,
    method: str,
    on_progress: Callable[[float, float | None], None],
    stall_s: float = STALL_S,
) -> list[str]:
    """Start a sanitize, by the path to the drive's controller, and wait for its end; on_progress(share done, seconds
    left or None). Returns the argv used.

    --ause: should it fail, the drive may be brought back without another sanitize. Raises DriveError."""
    argv = ["nvme", "sanitize", controller, "-a", str(ACTION[method]), "--ause"]
    if method == "sanitize-overwrite":
        argv += ["--owpass=1", "--ovrpat=0"]
    call = program.run(argv, QUERY_S)
    if call.exit_code != 0:
        do = "see nvme error-log and nvme sanitize-log; power-cycle the drive and try again"
        raise DriveError("the drive to start a sanitize", erasing.words(call), do)
    wait_for_sanitize(drive, controller, on_progress, stall_s)
    return argv


def wait_for_sanitize(
    drive: Drive, controller: str, on_progress: Callable[[float, float | None], None], stall_s: float = STALL_S
) -> Sanitize:
    """Wait until no sanitize is under way. Raises DriveError when it failed, does not move, or the drive no longer
    answers."""
    moved_at = answered_at = begun = time.monotonic()
    first: float | None = None
    last, pause_s = -1.0, 0.05
    while True:
        try:
            log = sanitize_log(drive, controller)
        except DriveError as error:  # some drives do not answer for a while
            if time.monotonic() - answered_at > min(SILENT_S, stall_s):
                raise DriveError("the drive to give its sanitize log", error.seen, _resume(drive)) from error
            time.sleep(pause_s)
            continue
        now = answered_at = time.monotonic()
        if log.state == FAILED:
            raise DriveError(
                "the sanitize to succeed",
                "the drive reports that it failed (SSTAT 3); it serves no I/O in this state",
                f"purge again, or leave the state with: nvme sanitize {drive.controller} -a 1",
            )
        if log.state != RUNNING:
            on_progress(1.0, 0.0)
            return log
        if log.progress != last:
            moved_at, last = now, log.progress
        first = log.progress if first is None else first
        if now - moved_at > stall_s:
            raise DriveError("the sanitize to go on", f"{last:.1%} for {now - moved_at:.0f} s", _resume(drive))
        share, spent = log.progress - first, now - begun
        left = spent * (1 - log.progress) / share if share > 0.01 else log.estimate_s.get(log.action)
        on_progress(log.progress, left)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 2.0)


def _resume(drive: Drive) -> str:
    return (
        "a sanitize goes on after a power loss: power-cycle the drive and purge again, which waits for it; see nvme"
        f" sanitize-log {drive.controller}"
    )


def _page(page: bytes | None, record: dict, name: str) -> bytes:
    if page is None:
        raise DriveError(
            f"{name} of the drive",
            record["why"] or "the drive does not have it",
            "run it as root; see whether the drive is still there",
        )
    return page


def _length(page: bytes, want: int, name: str) -> None:
    if len(page) != want:
        raise DriveError(f"{want} bytes of {name}", f"{len(page)}", "see what nvme-cli prints for it")
