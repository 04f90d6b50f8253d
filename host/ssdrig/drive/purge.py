"""Purge a drive: erase all its data by one of its own commands, and verify the result.

Which method was used is part of the result, since drives differ after each. The effect is checked on samples: blocks
that held data must not hold it afterwards. Blocks that were empty prove nothing, so a pattern is written where there is
too little data."""

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from ssdrig.base.errors import DriveError, ToolMissing, UsageError
from ssdrig.base.progress import Progress
from ssdrig.base.words import clock
from ssdrig.drive import ata_security, block, erasing, nvme_erase, zones
from ssdrig.drive.door import Way
from ssdrig.drive.inventory import Drive
from ssdrig.drive.program import is_missing

# name: effect; in the order in which `auto` prefers them
METHODS = {
    "format-secure": "NVMe format with user data erase (--ses=1): this namespace",
    "sanitize-block": (
        "NVMe sanitize by block erase: all of the drive, also blocks no longer in use; goes on after a power loss"
    ),
    "format-crypto": "NVMe format with a new encryption key (--ses=2): this namespace",
    "sanitize-crypto": "NVMe sanitize with a new encryption key: all of the drive; goes on after a power loss",
    "format": "NVMe format without secure erase (--ses=0): the drive may do as little as forget its map",
    "ata-secure-erase": "ATA security erase under a temporary password, which is taken away again",
    "ata-enhanced-erase": "ATA enhanced security erase: also reallocated blocks, maker's pattern; temporary password",
    "discard": "TRIM / deallocate of every block: old data may come back unless the drive promises zeros",
    "zone-reset": "reset of every zone: old data may come back unless the drive promises zeros",
    "sanitize-overwrite": "NVMe sanitize by one overwrite: hours, and wears the drive by its capacity",
    "zero": "zeroes written over every block: wears the drive by its capacity unless it has a command for it",
}
ONLY_IF_ASKED = ("sanitize-overwrite", "zero")  # they wear the drive or leave it full
OTHER_INTERFACE = "not a command of this drive's interface"
CRYPTO = ("format-crypto", "sanitize-crypto")
DEALLOCATE = ("discard", "zone-reset")  # what blocks read as afterwards is the drive's promise, or unknown
FEWEST_PROVING = 4  # samples with data, fewer than which the pattern is written
PATTERN_BLOCKS = 8
INTERRUPTED = {
    "format": (
        "the format was sent and the drive finishes it; until then the drive's content is undefined. Purge again"
        " to be sure"
    ),
    "sanitize": (
        "the sanitize goes on in the drive, also after a power loss; until its end the drive serves no I/O. Purge again"
        " to wait for it"
    ),
    "ata": (
        "the erase goes on in the drive and takes the temporary password away at its end; a drive that loses power"
        " meanwhile stays locked: "
    ),
}


@dataclass(frozen=True)
class Method:
    """One way to purge this drive. why_not: None if it can be used. estimate_s: the drive's own word, if it gives
    one."""

    name: str
    does: str
    available: bool
    why_not: str | None
    estimate_s: int | None


def methods(drive: Drive, root: str | Path = "/") -> list[Method]:
    """All methods, the best first, each with why this drive does not offer it. Asks the drive; never raises for its
    answers."""
    nvme, ata = drive.interface.startswith("NVMe"), drive.interface in ("SATA", "USB")
    offered = nvme_erase.offers(drive, root) if nvme else ata_security.offers(drive) if ata else {}
    offered["discard"] = (
        (
            None
            if _queue(drive, "discard_max_bytes", root)
            else "the kernel sees no discard (TRIM) on this drive or bridge"
        ),
        None,
    )
    offered["zero"], offered["zone-reset"] = (None, None), ("not a drive of zones", None)
    if drive.has_zones:  # it takes no write elsewhere than at a pointer, and a discard leaves the pointers as they are
        offered["discard"] = offered["zero"] = ("not on a drive of zones", None)
        offered["zone-reset"] = (None, None)
    other = f"{OTHER_INTERFACE} ({drive.interface})"
    out = [
        Method(name, does, offered.get(name, (other,))[0] is None, *offered.get(name, (other, None)))
        for name, does in METHODS.items()
    ]
    return sorted(out, key=lambda method: not method.available)  # stable: the order of METHODS within each half


def choose(offered: list[Method], wanted: str) -> Method:
    """The method to use. Raises UsageError for an unknown name, ToolMissing, or DriveError with the reason why it
    cannot be used."""
    if wanted != "auto" and wanted not in METHODS:
        raise UsageError(f"a method: auto, {', '.join(METHODS)}", repr(wanted), "name one of them")
    if wanted == "auto":
        return next((m for m in offered if m.available and m.name not in ONLY_IF_ASKED), None) or _none(offered)
    method = next(m for m in offered if m.name == wanted)
    program = (
        "hdparm" if wanted in ata_security.SWITCH else "nvme" if wanted.startswith(("format", "sanitize")) else None
    )
    if not method.available and program and is_missing(program):
        raise ToolMissing(
            f"{program} for {wanted}", "none on PATH", f"apt-get install {'nvme-cli' if program == 'nvme' else program}"
        )
    if not method.available:
        raise DriveError(
            f"a drive that can {wanted}",
            method.why_not or "it cannot",
            "choose another: ./ssdrig purge DRIVE --dry-run lists them",
        )
    return method


def _none(offered: list[Method]):
    raise DriveError(
        "a drive with a purge command",
        "; ".join(f"{m.name}: {m.why_not}" for m in offered if not m.available),
        "correct one of these, or ask for --method zero, which wears the drive by its capacity",
    )


def purge(held: Way, method: str = "auto", progress: Progress | None = None, root: str | Path = "/") -> dict:
    """Purge a drive that the caller has made safe to destroy (guard.hold).

    Returns {"method", "tool", "argv", "duration_s", "effect", "ok"}. ok: the effect was verified; otherwise
    effect["words"] states what is unknown. effect: {"samples", "proving" (samples that held data before), "kept",
    "zeros", "ones", "other", "pattern_bytes" (written by us before), "used_blocks_before", "used_blocks_after" (NVMe
    NUSE; null otherwise), "resumed", "words"}.

    Raises DriveError if the drive does not support it, fails or still holds old data; ToolMissing; UsageError for an
    unknown method. On Ctrl-C it reports the drive's state and raises KeyboardInterrupt."""
    drive = held.drive
    progress = progress or Progress()
    offered = methods(drive, root)
    chosen = choose(offered, method)
    begun = time.monotonic()
    with contextlib.ExitStack() as until_end:
        controller = until_end.enter_context(held.controller()) if drive.controller else ""
        return _purge(held, controller, method, chosen, offered, progress, begun)


def _purge(
    held: Way, controller: str, method: str, chosen: Method, offered: list[Method], progress: Progress, begun: float
) -> dict:
    """As purge(), by `chosen`; `controller`: the path to that of an NVMe drive."""
    drive = held.drive
    try:
        resumed = _finish_sanitize(drive, controller, progress) if controller else None
        purged = resumed in METHODS and method in ("auto", resumed)
        if chosen.name != method and not purged:
            better = [
                m for m in offered if not m.available and list(METHODS).index(m.name) < list(METHODS).index(chosen.name)
            ]
            own = [m for m in better if not (m.why_not or "").startswith(OTHER_INTERFACE)]
            progress.say(
                "".join(f"not {m.name}: {m.why_not}\n" for m in own) + f"purge by {chosen.name}: {chosen.does}"
            )
        promise, used_before = _promise(held, controller)
        offsets, before, pattern_bytes = _note(held, skip=purged)
        if purged:
            chosen = next(m for m in offered if m.name == resumed)
            argv, name = ["nvme", "sanitize-log", controller], erasing.version("nvme")
        else:
            argv, name = _erase(held, controller, chosen, progress)
    except KeyboardInterrupt:
        kind = chosen.name.partition("-")[0]
        extra = ata_security.unlock_words(drive) if kind == "ata" else ""
        progress.say(INTERRUPTED.get(kind, "part of the drive has been purged: purge again") + extra)
        raise
    duration_s = time.monotonic() - begun
    drive = held.recheck()
    block.flush(held.path)  # forget what the kernel has cached of it
    if (size_bytes := block.size(held.path)) != drive.capacity_bytes:
        raise DriveError(
            f"a capacity of {drive.capacity_bytes} bytes as before",
            f"{size_bytes}",
            "see whether the drive's format changed",
        )
    effect = judge(chosen.name, before, block.read(held.path, offsets), promise)
    if drive.has_zones:
        zones.reset(held.path)  # an erased zone may still be full: nothing could be written
    _, used_after = _promise(held, controller)
    effect |= {
        "pattern_bytes": pattern_bytes,
        "used_blocks_before": used_before,
        "used_blocks_after": used_after,
        "resumed": bool(resumed),
    }
    ok = effect.pop("ok")
    return {
        "method": chosen.name,
        "tool": name,
        "argv": argv,
        "duration_s": round(duration_s, 3),
        "effect": effect,
        "ok": ok,
    }


def judge(method: str, before: list[bytes | None], after: list[bytes | None], promise: str | None) -> dict:
    """What the samples show. Pure. promise: "zeros" or "ones" if the drive promises that for deallocated blocks.

    Raises DriveError if a block still holds its old data (allowed after a discard or a reset of zones without a
    promise), does not hold the promised content, or cannot be read."""
    kinds = [_kind(content) for content in after]
    proving = [i for i, content in enumerate(before) if _kind(content) == "other"]
    unchanged = [i for i in proving if after[i] == before[i]]
    counts = {f"{kind}": kinds.count(kind) for kind in ("zeros", "ones", "other")}
    effect = {"samples": len(after), "proving": len(proving), "kept": len(unchanged), **counts}
    what = (
        f"{len(after)} samples: {counts['zeros']} read zeros, {counts['ones']} ones, {counts['other']} other data,"
        f" {len(unchanged)} unchanged"
    )
    if "unreadable" in kinds:
        raise DriveError(
            "every sample to be readable after the purge",
            f"{kinds.count('unreadable')} are not; {what}",
            "see dmesg; do not test this drive",
        )
    if unchanged and (method not in DEALLOCATE or promise):
        raise DriveError(
            "blocks that no longer hold their old data", f"{method} did not purge; {what}", "choose another method"
        )
    must_be = "zeros" if method == "zero" else promise if method in DEALLOCATE else None
    if must_be and counts[must_be] != len(after):
        raise DriveError(
            f"blocks that read {must_be}, as promised", f"{method} did not; {what}", "choose another method"
        )
    if unchanged or (method in DEALLOCATE and counts["other"]):
        words = f"not verified: this drive may return old data afterwards (it promises nothing: DLFEAT, RZAT); {what}"
    elif not proving and counts["other"] and method not in CRYPTO:
        words = f"not verified: the previous content is unknown; {what}"
    elif not proving and method in CRYPTO:
        words = f"not verified: no data was there before; {what}"
    else:
        return {**effect, "words": what, "ok": True}
    return {**effect, "words": words, "ok": False}


def _kind(content: bytes | None) -> str:
    if content is None:
        return "unreadable"
    return "zeros" if not any(content) else "ones" if content == b"\xff" * len(content) else "other"


def _note(held: Way, skip: bool) -> tuple[list[int], list[bytes | None], int]:
    """Offsets, their content, and how many bytes of pattern were written so that there is content to lose. skip: the
    drive is already purged."""
    offsets = block.sample_offsets(held.drive.capacity_bytes)
    if skip:
        return offsets, [None] * len(offsets), 0
    block.flush(held.path)  # nothing of an earlier writer may reach the drive after the purge
    before = block.read(held.path, offsets)
    if sum(_kind(content) == "other" for content in before) >= FEWEST_PROVING or held.drive.has_zones:
        return offsets, before, 0  # zones take no pattern at places of our choice
    step = max(1, len(offsets) // PATTERN_BLOCKS)
    pattern = {offset: os.urandom(block.SAMPLE_BYTES) for offset in offsets[::step][:PATTERN_BLOCKS]}
    block.write(held.path, pattern)
    return offsets, block.read(held.path, offsets), len(pattern) * block.SAMPLE_BYTES


def _promise(held: Way, controller: str) -> tuple[str | None, int | None]:
    """What deallocated blocks read as, if the drive promises it; NVMe blocks in use."""
    drive = held.drive
    with contextlib.suppress(DriveError):
        if controller:
            namespace = nvme_erase.identify_namespace(drive, controller)
            return namespace.reads_after_discard, namespace.used_blocks
        if drive.interface in ("SATA", "USB"):
            return "zeros" if ata_security.identify(drive, held.path).zeros_after_trim else None, None
    return None, None


def _finish_sanitize(drive: Drive, controller: str, progress: Progress) -> str | None:
    """Wait for a sanitize that was already running. Returns its method, or None."""
    try:
        log = nvme_erase.sanitize_log(drive, controller)
    except DriveError:
        return None  # the drive has none
    if log.state != nvme_erase.RUNNING:
        return None
    name = next(
        (name for name, action in nvme_erase.ACTION.items() if action == log.action), "sanitize of another kind"
    )
    progress.say(f"{name} is under way in the drive; waiting for its end")
    nvme_erase.wait_for_sanitize(drive, controller, lambda share, left: progress.show(_line(name, share, left)))
    return name


def _erase(held: Way, controller: str, method: Method, progress: Progress) -> tuple[list[str], str]:
    """Run the method. Returns the argv (or ioctl) and the tool with its version."""
    drive, begun, name = held.drive, time.monotonic(), method.name

    def tick(spent_s):  # commands that do not report how far they are
        share = min(0.99, spent_s / method.estimate_s) if method.estimate_s else None
        progress.show(_line(name, share, method.estimate_s - spent_s if method.estimate_s else None, spent_s))

    def share_done(share, left_s):
        progress.show(_line(name, share, left_s, time.monotonic() - begun))

    def bytes_done(done):
        share, spent_s = done / drive.capacity_bytes, time.monotonic() - begun
        progress.show(_line(name, share, spent_s * (1 - share) / share, spent_s))

    if name in nvme_erase.SES:
        return nvme_erase.format(drive, controller, name, tick), erasing.version("nvme")
    if name in nvme_erase.ACTION:
        return nvme_erase.sanitize(drive, controller, name, share_done), erasing.version("nvme")
    if name in ata_security.SWITCH:
        return ata_security.erase(held, name, tick), erasing.version("hdparm")
    path = held.path
    if name == "zone-reset":
        zones.reset(path, lambda _: tick(time.monotonic() - begun))
        return ["ioctl", path, "BLKRESETZONE"], f"Linux {os.uname().release} ioctl"
    (block.discard if name == "discard" else block.zero)(path, bytes_done)
    block.flush(path)
    request = "BLKDISCARD" if name == "discard" else "BLKZEROOUT"
    return ["ioctl", path, request], f"Linux {os.uname().release} ioctl"


def _line(name: str, share: float | None, left_s: float | None, spent_s: float = 0.0) -> str:
    done = "" if share is None else f" {share:4.0%}"
    left = (
        f"about {clock(left_s)} left"
        if left_s is not None and left_s > 0
        else "the drive reports no estimate"
        if left_s is None
        else "nearly done"
    )
    return f"purge by {name}{done} · {clock(spent_s)} so far · {left}"


def _queue(drive: Drive, name: str, root: str | Path) -> int:
    try:
        return int(Path(root, "sys/block", drive.name, "queue", name).read_text())
    except (OSError, ValueError):
        return 0
