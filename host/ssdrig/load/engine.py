"""Which of fio's engines a load on a device uses."""

from pathlib import Path

DISABLED = Path("/proc/sys/kernel/io_uring_disabled")  # Linux 6.6 and newer: 0 for all, 1 for a group, 2 for none


def engine(word: str, disabled: Path = DISABLED) -> str:
    """ "auto": io_uring where the kernel allows it to everyone, otherwise libaio, which one thread with new data in
    every buffer keeps up with to about a million I/Os a second."""
    if word != "auto":
        return word
    try:
        return "io_uring" if disabled.read_text().strip() == "0" else "libaio"
    except OSError:
        return "libaio"
