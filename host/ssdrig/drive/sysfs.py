"""Reads the kernel's small files. A missing, unreadable or invalid one reads as "", b"", [] or None."""

import os
import re
import stat

FIRST_BYTES = 1 << 20
# what the kernel prints for a string that it lacks (check_pointer_msg of lib/vsprintf.c): serial, model and firmware of
# an NVMe controller whose Identify is still under way
NO_STRING = ("(efault)", "(null)", "(einval)")
LARGEST_FILE_BYTES = 64 << 20  # of mountinfo with 100 000 mounts, of maps with 65 530 mappings; sysfs files: 4096


def within(root: str | os.PathLike, *parts: str) -> str:
    """The path `parts`, absolute or not, below `root`."""
    return os.path.join(os.fspath(root), *(part.lstrip("/") for part in parts))


def real(path: str) -> str:
    """The path with all links followed. One that vanishes meanwhile, since its drive is pulled, counts as no link."""
    try:
        return os.path.realpath(path)
    except OSError:  # Python 3.11 looks at a link and then reads it
        return os.path.abspath(path)


def listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError):
        return []


def raw(*parts: str) -> bytes:
    try:
        with open(os.path.join(*parts), "rb") as file:
            data = file.read(FIRST_BYTES)  # read() takes memory for all that it is asked for
            return data if len(data) < FIRST_BYTES else data + file.read(LARGEST_FILE_BYTES)
    except (OSError, ValueError):
        return b""


def lines(*parts: str) -> list[str]:
    return raw(*parts).decode("utf-8", "replace").split("\n")


def clean(text: str | bytes) -> str:
    """Printable characters only, no blanks around them."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    return "".join(c for c in text if c.isprintable() and c != "\ufffd").strip()


def text(*parts: str) -> str:
    words = clean(raw(*parts))
    return "" if words in NO_STRING else words


def number(*parts: str) -> int | None:
    """A plain decimal number of at most 20 digits; None for all else, negative ones too."""
    words = text(*parts)
    return int(words) if re.fullmatch(r"\d{1,20}", words, re.ASCII) else None


def device_number(words: str) -> tuple[int, int]:
    """ "259:3" -> (259, 3); (0, 0), which no disk has, for anything else."""
    match = re.fullmatch(r"(\d{1,7}):(\d{1,7})", words, re.ASCII)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def node_number(path: str) -> tuple[str, str]:
    """("block" or "char", "8:0") of the device node at a path, links followed; ("", "") for all else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return "", ""
    kind = "block" if stat.S_ISBLK(status.st_mode) else "char" if stat.S_ISCHR(status.st_mode) else ""
    return (kind, f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}") if kind else ("", "")


def natural_order(name: str) -> list[tuple[int, str]]:
    """A sort key: nvme2n1 before nvme10n1, sdb before sdaa."""
    return [(len(part), part) for part in re.findall(r"\d+|\D+", name)]


def parents(path: str, root: str | os.PathLike) -> list[str]:
    """The real folder of a sysfs entry and all above it that are below /sys/devices, nearest first."""
    top = real(within(root, "sys/devices")) + os.sep
    folder = real(path)
    out = []
    while folder.startswith(top):
        out.append(folder)
        folder = os.path.dirname(folder)
    return out
