"""What a drive and its host are set to: recorded before and after a run, and changed by a plan's `set` step.

Sources: Documentation/ABI/stable/sysfs-block, admin-guide/pm/cpufreq, PCI/pcieaspm of the Linux kernel. sd's cache_type
is written by MODE SELECT, which libata turns into SET FEATURES, so it reaches the drive.
"""

import glob
import os
from collections.abc import Sequence

from ssdrig.drive.target import sysfs
from ssdrig.errors import DriveError

QUEUE = (
    *("scheduler", "nr_requests", "nomerges", "rq_affinity", "wbt_lat_usec", "write_cache", "fua", "max_sectors_kb"),
    *("discard_max_bytes", "logical_block_size", "physical_block_size", "optimal_io_size", "rotational"),
)
DEVICE = ("current_link_speed", "current_link_width", "numa_node")
HOST = {
    "aspm": "/sys/module/pcie_aspm/parameters/policy",
    "apst_max_latency_us": "/sys/module/nvme_core/parameters/default_ps_max_latency_us",
    "cpuidle": "/sys/devices/system/cpu/cpuidle/current_driver",
    "kernel": "/proc/sys/kernel/osrelease",
    "command_line": "/proc/cmdline",
    "io_uring_disabled": "/proc/sys/kernel/io_uring_disabled",
}
GOVERNORS = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
ALPM = "/sys/class/scsi_host/host*/link_power_management_policy"
# what `set` writes, of the kernel's file: "{name}" is the drive's
FILES = {
    "scheduler": "/sys/block/{name}/queue/scheduler",
    "governor": GOVERNORS,
    "aspm": HOST["aspm"],
    "alpm": ALPM,
    "write_cache": "/sys/block/{name}/device/scsi_disk/*/cache_type",
}
CACHE = {"on": "write back", "off": "write through"}


def read(name: str | None, root: str | os.PathLike = "/") -> dict:
    """{"queue.scheduler": "none", "governor": "performance", …}: what the kernel says of the drive `name` (None: of the
    host alone) and of the host. What it does not say is left out."""
    found = {key: sysfs.text(sysfs.within(root, path)) for key, path in HOST.items()}
    for key, pattern in (("governor", GOVERNORS), ("alpm", ALPM)):
        found[key] = " ".join(sorted({chosen(sysfs.text(path)) for path in _paths(pattern, None, root)}))
    found["load_average"] = sysfs.text(sysfs.within(root, "/proc/loadavg")).split(" ")[0]
    if name:
        folder = sysfs.within(root, "/sys/block", name)
        found |= {f"queue.{key}": sysfs.text(folder, "queue", key) for key in QUEUE}
        found |= {f"link.{key}": sysfs.text(folder, "device/device", key) for key in DEVICE}
    return {key: value for key, value in found.items() if value}


def host() -> dict:
    """The conditions of this host, without a drive."""
    return read(None)


def can_set(key: str, name: str, root: str | os.PathLike = "/") -> bool:
    """Whether this machine has such a setting for the drive."""
    return bool(_paths(FILES[key], name, root))


def setting(key: str, name: str, root: str | os.PathLike = "/") -> list[str]:
    """The words in force of each of its files, in their order. Raises DriveError where there is none."""
    paths = _paths(FILES[key], name, root)
    if not paths:
        raise DriveError(f"a setting {key} of {name}", "none in sysfs", "leave the step out, or mark it optional")
    return [chosen(sysfs.text(path)) for path in paths]


def change(key: str, value: str, name: str, root: str | os.PathLike = "/") -> None:
    """Set it and see that it is set. Raises DriveError, all that was changed put back."""
    before = setting(key, name, root)
    wanted = CACHE[value] if key == "write_cache" else value
    for path, old in zip(_paths(FILES[key], name, root), before, strict=True):
        if old != wanted and not _write(path, wanted):
            seen = sysfs.text(path)
            put_back(key, before, name, root)
            raise DriveError(f"{path} to take {wanted!r}", repr(seen), "choose one of its words")


def put_back(key: str, before: Sequence[str], name: str, root: str | os.PathLike = "/") -> None:
    """Set what setting() had found. Raises DriveError, every file tried."""
    paths = _paths(FILES[key], name, root)
    alike = len(paths) == len(before)
    refused = [p for p, old in zip(paths, before) if alike and chosen(sysfs.text(p)) != old and not _write(p, old)]
    if refused or not alike:
        seen = f"{refused[0]} refuses it" if refused else f"{len(paths)} files where there were {len(before)}"
        raise DriveError(f"{key} put back", seen, f"write it yourself, what it was: {', '.join(before)}")


def chosen(text: str) -> str:
    """The word that is in force: "mq-deadline [none]" -> "none"."""
    return text[text.index("[") + 1 : text.index("]")] if "[" in text and "]" in text else text


def _paths(pattern: str, name: str | None, root: str | os.PathLike) -> list[str]:
    return sorted(glob.glob(sysfs.within(root, pattern.format(name=glob.escape(name or "")))))


def _write(path: str, value: str) -> bool:
    """Whether the file says so afterwards."""
    try:
        with open(path, "w") as file:
            file.write(value)
    except OSError:
        return False
    return chosen(sysfs.text(path)) == value
