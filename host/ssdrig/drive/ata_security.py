"""ATA security erase through hdparm: the drive's capabilities, the erase, and the removal of the password.

The drive's state is read as the 256 words of IDENTIFY DEVICE (`hdparm --Istdout`; ATA Command Set 4: words 69, 89, 90,
128), which do not change with hdparm's wording. An erase needs a user password; it is always PASSWORD, so that a drive
that lost power meanwhile can be unlocked by anyone who reads this.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ssdrig.base.errors import DriveError, UnsafeTarget
from ssdrig.drive import erasing, program
from ssdrig.drive.door import Way
from ssdrig.drive.inventory import Drive

PASSWORD = "ssdrig"
QUERY_S = 60.0  # a starved host takes long to start hdparm
NO_ESTIMATE_S = 12 * 3600.0  # limit for a drive that reports no estimate
LEAST_S = 1800.0  # lowest limit, whatever the drive's estimate
SWITCH = {"ata-secure-erase": "--security-erase", "ata-enhanced-erase": "--security-erase-enhanced"}
FROZEN = (
    "the drive is frozen: the BIOS or the kernel locked its security settings at power-on; power-cycle only the drive"
    " (the rig can, or re-plug its power with the host running), or suspend and resume the host, then try again"
)


@dataclass(frozen=True)
class Security:
    """Security state and TRIM behaviour of an ATA drive. Estimates in seconds; None: not reported."""

    supported: bool
    enabled: bool
    locked: bool
    frozen: bool
    expired: bool
    enhanced: bool
    erase_s: int | None
    enhanced_s: int | None
    trim: bool
    zeros_after_trim: bool  # RZAT and DRAT: trimmed blocks read as zeros, always


def decode(words: list[int]) -> Security:
    """From the 256 words of IDENTIFY DEVICE. Raises DriveError for another count."""
    if len(words) != 256:
        raise DriveError(
            "256 words of IDENTIFY DEVICE", f"{len(words)}", "see hdparm --Istdout; a USB bridge may not pass it on"
        )

    def seconds(word):  # units of 2 minutes; bit 15: the longer format; 0: not specified, all ones: more than that
        value = word & 0x7FFF if word & 0x8000 else word & 0xFF
        return value * 120 or None

    state, support = words[128], words[69]
    bit = lambda n: bool(state >> n & 1)
    zeros = bool(support >> 5 & 1 and support >> 14 & 1)
    return Security(
        bit(0),
        bit(1),
        bit(2),
        bit(3),
        bit(4),
        bit(5),
        seconds(words[89]),
        seconds(words[90]),
        bool(words[169] & 1),
        zeros,
    )


def parse(text: str) -> list[int]:
    """The words in what `hdparm --Istdout` prints: lines of four-digit hexadecimal numbers between others."""
    rows = [
        line.split() for line in text.splitlines() if re.fullmatch(r"\s*[0-9a-fA-F]{4}(\s+[0-9a-fA-F]{4})*\s*", line)
    ]
    return [int(word, 16) for row in rows for word in row]


def identify(drive: Drive, path: str | None = None) -> Security:
    """As decode() of words(). Raises DriveError."""
    return decode(words(drive, path))


def words(drive: Drive, path: str | None = None) -> list[int]:
    """The 256 words of IDENTIFY DEVICE, read through `path` of a held drive, otherwise by name. Raises DriveError."""
    call = program.run(["hdparm", "--Istdout", path or drive.node], QUERY_S)
    security = parse(call.stdout.decode(errors="replace"))
    if call.exit_code != 0 or len(security) != 256:
        raise DriveError(
            f"IDENTIFY DEVICE of {drive.node}",
            erasing.words(call),
            "run it as root; see whether the drive is still there",
        )
    return security


def offers(drive: Drive) -> dict[str, tuple[str | None, int | None]]:
    """{method: (why it cannot be used or None, estimated seconds or None)}. Never raises for what a drive or hdparm
    does."""
    if drive.interface == "USB":
        why = (
            "a USB bridge may set the password and then not pass the erase on, which leaves the drive locked: connect"
            " it to a SATA port"
        )
        return dict.fromkeys(SWITCH, (why, None))
    try:
        security = identify(drive)
    except DriveError as error:
        return {name: (str(error), None) for name in SWITCH}
    refused = _why_not(security, drive)
    return {
        "ata-secure-erase": (refused, security.erase_s),
        "ata-enhanced-erase": (
            refused or (None if security.enhanced else "the drive has no enhanced erase"),
            security.enhanced_s,
        ),
    }


def _why_not(security: Security, drive: Drive) -> str | None:
    if not security.supported:
        return "the drive has no security feature set"
    if security.frozen:
        return FROZEN
    if security.enabled or security.locked:
        state = "locked by a password" if security.locked else "protected by a password"
        return f"the drive is {state}; if an erase by ssdrig was cut off: {unlock_words(drive, security.locked)}"
    if security.expired:
        return "too many wrong passwords were tried: power-cycle the drive"
    return None


def unlock_words(drive: Drive, locked: bool = True) -> str:
    """The commands that free a drive on which PASSWORD was left."""
    disable = f"hdparm --user-master u --security-disable {PASSWORD} {drive.node}"
    return f"hdparm --user-master u --security-unlock {PASSWORD} {drive.node} && {disable}" if locked else disable


def erase(held: Way, method: str, on_tick: Callable[[float], None], timeout_s: float | None = None) -> list[str]:
    """SECURITY ERASE UNIT, normal or enhanced. Returns the argv that erased. Raises DriveError.

    Once the password is set it is removed in every case, if the drive permits; otherwise the error explains how to
    unlock the drive. hdparm's exit code alone proves nothing (some adapters lose the sense data): the drive's state
    does."""
    drive = held.drive
    before = identify(drive, held.path)
    why = _why_not(before, drive)
    if why:
        raise DriveError("a drive whose security settings can be changed", why, "do that, or choose another method")
    estimate = before.enhanced_s if method == "ata-enhanced-erase" else before.erase_s
    limit_s = timeout_s or max(LEAST_S, 2.0 * estimate if estimate else NO_ESTIMATE_S)
    set_password = ["hdparm", "--user-master", "u", "--security-mode", "h", "--security-set-pass", PASSWORD]
    cleared = sent = False
    try:
        call = erasing.run([*set_password, held.path], QUERY_S)
        armed = identify(drive, held.path)
        if not armed.enabled or armed.locked:
            raise DriveError(
                "the drive to take a temporary password", erasing.words(call), "see dmesg; choose another method"
            )
        argv = ["hdparm", "--user-master", "u", SWITCH[method], PASSWORD, held.path]
        sent = True
        call = erasing.run(argv, limit_s, on_tick)
        after = identify(drive, held.path)
        cleared = not after.enabled and not after.locked
        if call.exit_code != 0 or not cleared:  # the password goes only with a whole erase
            raise DriveError("the drive to erase itself", erasing.words(call), "see dmesg; choose another method")
    except KeyboardInterrupt:
        if not sent:  # once it erases it takes no other command, and ends by taking the password away
            _clear(held)
        raise
    except (DriveError, UnsafeTarget) as error:
        if cleared or _clear(held):
            raise
        do = (
            f"THE DRIVE STILL HAS THE PASSWORD {PASSWORD!r}: when it no longer erases free it with:"
            f" {unlock_words(drive)}"
        )
        raise DriveError(error.expected, error.seen, do) from error
    return argv


def _clear(held: Way) -> bool:
    """Try to remove the password. Returns whether the drive reports that it has none."""
    try:
        state = identify(held.drive, held.path)
        if state.locked:
            program.run(["hdparm", "--user-master", "u", "--security-unlock", PASSWORD, held.path], QUERY_S)
        if state.enabled or state.locked:
            program.run(["hdparm", "--user-master", "u", "--security-disable", PASSWORD, held.path], QUERY_S)
            state = identify(held.drive, held.path)
        return not state.enabled and not state.locked
    except (DriveError, UnsafeTarget):
        return False
