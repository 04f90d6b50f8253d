"""What proves that a disk is the drive that was named: its own facts, and how two sets of them compare.

One type for the inventory, the guard, locks, latches, `watch`, wear histories, run.json and the tags of InfluxDB. The
functions are pure: they read facts, never the machine."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, TypeVar

from ssdrig.base.words import serial_key

SAME, DIFFERENT, AMBIGUOUS = "same", "different", "ambiguous"
DRIVE, ENCLOSURE, IDENTIFY = "drive", "enclosure", "identify"  # whose serial it is, and who reported it
MULTIPORT = ("SAS", "other")  # SCSI that one unit can be cabled to twice; a SATA or USB disk has one port
PARTS = 3  # repeats of a short pattern that no maker counts with
SHORT = 4  # characters of such a pattern, and the least that count as a sequence
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The characters that come next where someone counts: in decimal, hexadecimal or through the alphabet, and round again.
AFTER: dict[str, str] = {**dict(zip(DIGITS, DIGITS[1:], strict=False)), "9": "A0", "0": "1A", "F": "G0", "Z": "A0"}
NGUID_DIGITS = 32  # of the 16 bytes that have the OUI in their second half
NAA_WITH_OUI = ("5", "6")  # first digit of a WWN, after which the maker's number comes
# Words in place of a serial that was never set, without blanks and punctuation.
NO_SERIAL = {
    "NA",
    "NIL",
    "NONE",
    "NULL",
    "EMPTY",
    "INVALID",
    "UNKNOWN",
    "UNDEFINED",
    "DEFAULT",
    "DEFAULTSTRING",
    "NOTAVAILABLE",
    "NOTAPPLICABLE",
    "NOTSPECIFIED",
    "NOTDEFINED",
    "NOTSET",
    "NOSERIAL",
    "NOSERIALNUMBER",
    "SN",
    "SERIAL",
    "SERIALNO",
    "SERIALNUM",
    "SERIALNUMBER",
    "SYSTEMSERIALNUMBER",
    "REDACTED",
    "REMOVED",
    "OMITTED",
    "SANITIZED",
    "SANITISED",
    "CENSORED",
    "TBD",
    "HIDDEN",
    "MASKED",
    "ANONYMIZED",
    "ANONYMISED",
    "PLACEHOLDER",
    "DEADBEEF",
}
INSIDE = ("TOBEFILLED", "REDACTED")
MASK = 5  # characters of a mask in a serial that is masked in part: no maker counts with five X in a row


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Facts of one disk. "" or None: not known; a capacity that is not known is 0.

    `serial_source`: whose serial it is: "drive", "identify" (read from the disk through its bridge), "enclosure" (of a
    USB bridge or dock, which shows it for any disk in it).
    `lun`: the last number of H:C:T:L. `port`: where it is plugged in, as sysfs shows it, without numbers that change
    with each appearance. `unit`: the NVMe controller or subsystem whose namespace it is.
    `diskseq`: the kernel's number of this appearance; each reappearance has a new one."""

    serial: str
    model: str
    wwn: str = ""  # of the namespace or LUN: "naa.…", "eui.…", "uuid.…"
    capacity_bytes: int = 0
    nsid: int | None = None
    lun: int | None = None
    # where it is and when it appeared: two looks at one drive are equal all the same
    port: str = field(default="", compare=False)
    unit: str = field(default="", compare=False)
    serial_source: str = DRIVE
    enclosure_serial: str = ""  # of the USB device, also where the disk's own is known
    multipath: str = field(default="", compare=False)  # the device-mapper map of multipathd that has it as a path
    diskseq: int | None = field(default=None, compare=False)
    interface: str = "other"

    @classmethod
    def of(cls, record: Mapping) -> "Identity":
        """From the `drive` of run.json or of a poll; a missing fact, or one of another type, is unknown."""
        known: dict[str, Any] = {"serial": "", "model": "", "serial_source": ""}
        for fact in fields(Identity):
            value = record.get(fact.name)
            if type(value) is (int if fact.name in NUMBERS else str):
                known[fact.name] = value
        return Identity(**known)

    @property
    def key(self) -> str:
        """What locks, latches and histories know the drive by: one spelling of its serial."""
        return serial_key(self.serial)

    @property
    def consent(self) -> str:
        """What --destroy-data must repeat: the serial; of a disk that shows its enclosure's, also its model, WWN and
        capacity, since any disk in the enclosure shows the same serial."""
        if self.serial_source != ENCLOSURE:
            return self.serial
        words = (self.serial, re.sub(r"[^A-Za-z0-9._-]+", "_", self.model), self.wwn, str(self.capacity_bytes))
        return "+".join(word for word in words if word)


NUMBERS = ("capacity_bytes", "nsid", "lun", "diskseq")
# What a disk must show again after an absence, in the order in which a difference is reported.
FACTS = ("serial", "model", "wwn", "nsid", "lun", "capacity_bytes", "serial_source", "enclosure_serial")
STRICT = ("serial", "model", "nsid", "lun")  # one that shows none differs from one that shows some
OF_IDENTIFY = ("serial", "model", "serial_source")
Known = TypeVar("Known", bound=Identity)


class Match(NamedTuple):
    """`facts`: those that differ, or that were known and are not now."""

    kind: Literal["same", "different", "ambiguous"]
    facts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.kind + (f" ({', '.join(self.facts)})" if self.facts else "")


def placeholder(serial: str) -> bool:
    """Whether a serial cannot be that of a single drive: a word for a missing serial, one character or a
    short pattern over and over ("000000000000", "XXXXXXXX", "12121212"), characters that count ("0123456789AB",
    "123456789012", "1122334455", "1111-2222-3333-4444"), or one that is masked out in part ("S4EVNX0MXXXXX").

    A random serial of eight decimal digits is caught once in 3 million."""
    plain = re.sub(r"[^A-Z0-9]", "", serial.upper())
    if not plain:
        return bool(serial.strip())  # "****", "-"
    if plain in NO_SERIAL or any(word in plain for word in INSIDE):
        return True
    if len(set(plain)) == 1 or _masked(serial.upper()):
        return True
    if len(plain) < SHORT:
        return False
    if any(len(plain) >= PARTS * n and plain == (plain[:n] * len(plain))[: len(plain)] for n in range(1, SHORT + 1)):
        return True
    repeats = range(1, SHORT + 1)  # of each character
    return any(_counts(plain[::n]) for n in repeats if plain == "".join(c * n for c in plain[::n])[: len(plain)])


def own_wwn(drive: Identity) -> str:
    """The WWN where a maker may have given it to one unit; "" for one that a bridge shows for any disk in it, such as
    naa.5000000000000001 or eui.0000000001000000: a pattern, or without its maker's number (OUI). Places of the OUI:
    SPC-4 7.8.6.5 and 7.8.6.6; NVM Express Base Specification 2.0, 4.5.2."""
    kind, _, number = drive.wwn.partition(".")
    if kind == "eui":
        oui = number[16:22] if len(number) == NGUID_DIGITS else number[:6]
    elif kind == "naa":
        oui = number[1:7] if number[:1] in NAA_WITH_OUI else number[1:]
    else:
        oui = "none"
    return "" if placeholder(number) or not oui.strip("0") else drive.wwn


def proves_itself(drive: Identity) -> bool:
    """Whether a serial or a WWN is the disk's own, and not of the enclosure that it is in."""
    return drive.serial_source != ENCLOSURE or bool(own_wwn(drive))


def _masked(serial: str) -> bool:
    longest = max((len(run) for run in re.findall(r"X+|\*+|#+|\?+", serial)), default=0)
    return longest >= MASK or longest >= max(SHORT, len(serial.strip()) / 2)


def _counts(plain: str) -> bool:
    def up(text: str) -> bool:
        return all(b in AFTER[a] for a, b in zip(text, text[1:], strict=False))

    return len(plain) >= SHORT and (up(plain) or up(plain[::-1]))


def compare(known: Identity, now: Identity) -> Match:
    """Whether `now` may be the disk that was known: "different" if a fact conflicts, "ambiguous" if a known one is
    missing, otherwise "same". Port and diskseq are not compared."""
    different, missing = [], []
    unread = known.serial_source == IDENTIFY and now.serial_source == ENCLOSURE  # the bridge does not pass it on now
    for name in FACTS:
        before, after = (getattr(one, name) for one in (known, now))
        if name == "serial":
            before, after = serial_key(before), serial_key(after)
        if before is None or before == after or (not before and name not in STRICT):
            continue
        (missing if after in ("", None) or (unread and name in OF_IDENTIFY) else different).append(name)
    if different:
        return Match(DIFFERENT, tuple(different + missing))
    return Match(AMBIGUOUS, tuple(missing)) if missing else Match(SAME)


def conflict(known: Mapping, now: Mapping) -> tuple[str, ...]:
    """The facts that differ between two records of a drive (run.json, polls); missing facts do not count."""
    match = compare(Identity.of(known), Identity.of(now))
    return match.facts if match.kind == DIFFERENT else ()


def one_namespace_each(one: Identity, other: Identity) -> bool:
    """Whether they are two namespaces of one NVMe drive."""
    return bool(one.unit) and one.unit == other.unit and one.nsid != other.nsid


def paths_of_one(one: Identity, other: Identity) -> bool:
    """Whether they are provably two paths to one unit: all facts and the WWN are equal, and NVMe shows them below one
    subsystem, multipathd has joined them, or they are SCSI disks behind different ports of a transport that has more
    than one."""
    if not own_wwn(one) or compare(one, other).kind != SAME:
        return False
    if one.multipath and one.multipath == other.multipath:
        return True
    if one.nsid is not None:
        return bool(one.unit) and one.unit == other.unit
    return one.interface in MULTIPORT and one.port != other.port


def parts_of_one(one: Identity, other: Identity) -> bool:
    """Whether they are areas of one eMMC (mmcblk0, mmcblk0boot0), which share its port."""
    return bool(one.port) and one.port == other.port and one.interface == "other" and one.lun is None is one.nsid


def twins(drive: Known, drives: Iterable[Known]) -> list[Known]:
    """The other disks with a medium that show the serial of `drive` and are neither a namespace nor a path of the same
    unit."""
    return [
        other
        for other in drives
        if other is not drive
        and _name(other) != _name(drive)
        and drive.key
        and other.key == drive.key
        and other.capacity_bytes
        and not one_namespace_each(drive, other)
        and not paths_of_one(drive, other)
        and not parts_of_one(drive, other)
    ]


def _name(drive: Identity) -> str:
    return getattr(drive, "name", "")


class Search(NamedTuple):
    """`disk`: the one that shows all that was known, None without. `rivals`: disks of the same serial that may be meant
    instead; where there is one, `disk` stays None."""

    disk: object
    rivals: Sequence


def search(known: Known, drives: Sequence[Known]) -> Search:
    """Find a disk again among the present ones. Among several paths of one unit: the one with its name, or at its port,
    or the first."""
    fits = [drive for drive in drives if compare(known, drive).kind == SAME]
    fits.sort(key=lambda drive: (_name(drive) != _name(known), drive.port != known.port))
    if not fits:
        return Search(None, ())
    rivals = twins(fits[0], drives)
    return Search(None if rivals else fits[0], (fits[0], *rivals) if rivals else ())
