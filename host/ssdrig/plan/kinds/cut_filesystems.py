"""The file systems that a campaign keeps on the drive, as a plan words them. Pure."""

import re
from typing import NamedTuple

from ssdrig.base.words import do_you_mean

OPTIONS = re.compile(r"[a-z0-9_=,.-]{1,100}")


class Kind(NamedTuple):
    """Programs, to which the node is appended. make: without discards, because a full trim is not part of the test;
    check: read-only. package: of Debian."""

    make: tuple[str, ...]
    check: tuple[str, ...]
    package: str


KINDS = {
    "ext4": Kind(
        ("mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"),
        ("e2fsck", "-f", "-n"),
        "e2fsprogs",
    ),
    "xfs": Kind(("mkfs.xfs", "-q", "-f", "-K"), ("xfs_repair", "-n"), "xfsprogs"),
    "btrfs": Kind(("mkfs.btrfs", "-q", "-f", "-K"), ("btrfs", "check", "--readonly"), "btrfs-progs"),
}
NONE = "none"


def parse(words: str) -> list[list[str]]:
    """ "ext4 xfs:nobarrier" -> [["ext4", ""], ["xfs", "nobarrier"]], file systems with mount options; "none" -> [].
    Raises ValueError with the expected form."""
    filesystems: list[list[str]] = []
    for word in () if words == NONE else words.split():
        name, colon, options = word.partition(":")
        if name not in KINDS:
            raise ValueError(f"each of {', '.join(KINDS)} or {NONE}; {word!r}: {do_you_mean(name, KINDS)}")
        if colon and not OPTIONS.fullmatch(options):
            raise ValueError(f"mount options of a-z, 0-9, _ = , . - after {name}:")
        if name in (known for known, _ in filesystems):
            raise ValueError(f"{name} once")
        filesystems.append([name, options])
    if not filesystems and words != NONE:
        raise ValueError(f"some of {', '.join(KINDS)}, or {NONE}")
    return filesystems
