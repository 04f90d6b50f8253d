"""What a drive and its host are set to: recorded before and after a run, and changed by a plan's `set` step.

Sources: Documentation/ABI/stable/sysfs-block, testing/sysfs-bus-pci (link), admin-guide/pm/cpufreq, PCI/pcieaspm of the
Linux kernel. sd's cache_type is written by MODE SELECT, which libata turns into SET FEATURES, so it reaches the drive.
NVMe drives have no such file: there it is a feature of the controller (features.py).
"""

import contextlib
import glob
import os
import threading
from collections.abc import Iterator, Mapping, Sequence

from ssdrig.base.errors import DriveError
from ssdrig.drive import block, features, placement, sysfs

QUEUE = (
    *("scheduler", "nr_requests", "nomerges", "rq_affinity", "wbt_lat_usec", "write_cache", "fua", "max_sectors_kb"),
    *("discard_max_bytes", "logical_block_size", "physical_block_size", "optimal_io_size", "rotational"),
    *("zoned", "nr_zones", "chunk_sectors", "max_open_zones", "max_active_zones", "zone_append_max_bytes"),
)
DEVICE = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width", "numa_node")
LINK_STATES = ("l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm", "clkpm")  # 1: enabled; absent: not supported
HOST = {
    "aspm": "/sys/module/pcie_aspm/parameters/policy",
    "apst_max_latency_us": "/sys/module/nvme_core/parameters/default_ps_max_latency_us",
    "cpuidle": "/sys/devices/system/cpu/cpuidle/current_driver",
    "kernel": "/proc/sys/kernel/osrelease",
    "command_line": "/proc/cmdline",
    "io_uring_disabled": "/proc/sys/kernel/io_uring_disabled",
    "no_turbo": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "boost": "/sys/devices/system/cpu/cpufreq/boost",
    "microcode": "/sys/devices/system/cpu/cpu0/microcode/version",
}
VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"  # of the CPU, each with its mitigation
PAUSE_S, WAKES_S = 0.001, 10.0  # shorter than any idle time of a drive; longer than any drive takes to wake
# values that change on their own: a difference is not a change of a setting
MOVES = (
    *("load_average", "memory_available_kB", "other_disks_read_bytes", "other_disks_written_bytes"),
    "nvme.power_state",  # with APST the state that the drive has gone to
)
SECTOR_BYTES = 512  # of /sys/block/X/stat, whatever the disk's own
GOVERNORS = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
ALPM = "/sys/block/{name}/device/../../scsi_host/host*/link_power_management_policy"  # of the drive's port alone
# the kernel's file that `set` writes; "{name}" and "{controller}" are the drive's. A key without a file is a feature of
# an NVMe controller (features.SETTINGS)
FILES = {
    "scheduler": "/sys/block/{name}/queue/scheduler",
    "governor": GOVERNORS,
    "aspm": HOST["aspm"],
    "alpm": ALPM,
    "write_cache": "/sys/block/{name}/device/scsi_disk/*/cache_type",
    "hmb": "/sys/class/nvme/{controller}/hmb",  # Linux 5.15: the host memory buffer, which only its driver can give
}
WORDS = {"write_cache": features.CACHE, "hmb": {"on": "1", "off": "0"}}  # a plan's word -> the file's


def read(
    name: str | None, root: str | os.PathLike = "/", controller: str | None = None, nsid: int | None = None
) -> dict:
    """{"found": {"queue.scheduler": "none", "governor": "performance", …}, "unknown": {key: why}}: the kernel's
    settings of the drive `name` (None: of the host alone) and of the host; absent ones are left out. Of an NVMe drive
    the link is its controller's, and the controller's features come with it (features.read): None, and why, where it
    does not report one."""
    settings: dict = {key: sysfs.text(sysfs.within(root, path)) for key, path in HOST.items()}
    for key in ("governor", "alpm"):
        settings[key] = " ".join(sorted({chosen(sysfs.text(path)) for path in _paths(FILES[key], name, root)}))
    folder = sysfs.within(root, VULNERABILITIES)
    settings |= {f"vulnerability.{key}": sysfs.text(folder, key) for key in sorted(sysfs.listing(folder))}
    settings["load_average"] = sysfs.text(sysfs.within(root, "/proc/loadavg")).split(" ")[0]
    settings |= _memory(root) | _other_disks(name, root)
    if name:
        folder = sysfs.within(root, "/sys/block", name)
        settings |= {f"queue.{key}": sysfs.text(folder, "queue", key) for key in QUEUE}
        own = sysfs.within(root, "/sys/class/nvme", os.path.basename(controller)) if controller else f"{folder}/device"
        settings |= {f"link.{key}": sysfs.text(own, "device", key) for key in DEVICE}
        settings |= {f"link.{key}": sysfs.text(own, "device/link", key) for key in LINK_STATES}
    settings = {key: value for key, value in settings.items() if value not in ("", None)}
    of_drive, unknown = features.read(controller, nsid) if controller else ({}, {})
    placed, why = placement.condition(controller, nsid) if controller else ({}, {})
    of_drive, unknown = of_drive | placed, unknown | why
    return {"found": settings | of_drive, "unknown": unknown}


def host() -> dict:
    """The conditions of this host, without a drive."""
    return read(None)


def changed(before: Mapping, after: Mapping) -> dict[str, list]:
    """{key: [before, after]} of all settings that differ between two readings; None: not reported."""
    one, two = before["found"], after["found"]
    keys = [key for key in dict.fromkeys((*one, *two)) if key not in MOVES]
    return {key: [one.get(key), two.get(key)] for key in keys if one.get(key) != two.get(key)}


def _memory(root: str | os.PathLike) -> dict:
    for line in sysfs.lines(sysfs.within(root, "/proc/meminfo")):
        words = line.split()
        if len(words) == 3 and words[0] == "MemAvailable:" and words[1].isdecimal():
            return {"memory_available_kB": int(words[1])}
    return {}


def _other_disks(name: str | None, root: str | os.PathLike) -> dict:
    """Bytes read from and written to all other disks since boot. Volumes and loop devices are left out: they would
    count twice."""
    counts = []
    for disk in sysfs.listing(sysfs.within(root, "/sys/block")):
        words = sysfs.text(sysfs.within(root, "/sys/block", disk, "stat")).split()
        real = os.path.exists(sysfs.within(root, "/sys/block", disk, "device"))
        if disk != name and real and len(words) >= 7 and all(word.isdecimal() for word in words):
            counts.append((int(words[2]), int(words[6])))
    sums = [SECTOR_BYTES * sum(column) for column in zip(*counts, strict=True)] if counts else [None, None]
    return dict(zip(("other_disks_read_bytes", "other_disks_written_bytes"), sums, strict=True))


def can_set(key: str, name: str, root: str | os.PathLike = "/", controller: str | None = None) -> bool:
    """Whether this machine has such a setting for the drive; `controller`: /dev/nvme0 of an NVMe drive."""
    return bool(_paths(FILES.get(key), name, root, controller)) or _feature(key, controller) is not None


def is_of_drive(key: str) -> bool:
    """Whether a setting is the drive's, not the host's."""
    return key not in FILES or "{" in FILES[key]


def setting(key: str, name: str, root: str | os.PathLike = "/", controller: str | None = None) -> list[str]:
    """The current value of each of its files, in order; features.setting() for a feature of an NVMe drive. Raises
    DriveError if there is none."""
    paths = _paths(FILES.get(key), name, root, controller)
    if not paths and (feature := _feature(key, controller)):
        return feature
    if not paths:
        raise DriveError(
            f"a setting {key} of {name}", "none that can be read", "leave the step out, or make it optional"
        )
    return [chosen(sysfs.text(path)) for path in paths]


@contextlib.contextmanager
def awake(key: str, node: str) -> Iterator[None]:
    """Within it setting() gives the power state that the host has set, because a thread reads a block all the time: an
    idle drive may have gone to a lower one, and put back there it would return to the last one in which it worked.
    Other settings need no awake drive."""
    done = threading.Event()

    def read() -> None:
        try:
            with contextlib.suppress(DriveError, OSError), block.Direct(node) as direct:
                direct.read(0, block.SAMPLE_BYTES)
                ready.set()
                while not done.wait(PAUSE_S):
                    direct.read(0, block.SAMPLE_BYTES)
        finally:
            ready.set()

    if key != "power_state":
        yield
        return
    ready, reader = threading.Event(), threading.Thread(target=read, daemon=True)
    reader.start()
    ready.wait(WAKES_S)
    try:
        yield
    finally:
        done.set()
        reader.join(WAKES_S)


def change(key: str, value: str | int, name: str, root: str | os.PathLike = "/", controller: str | None = None) -> None:
    """Set it and see that it is set. Raises DriveError, all that was changed put back."""
    before = setting(key, name, root, controller)
    wanted = WORDS[key][str(value)] if key in WORDS else str(value)
    paths = _paths(FILES.get(key), name, root, controller)
    if not paths and before[0] != wanted:
        refusal = features.change(key, str(controller), [wanted, *before[1:]])
        if refusal:
            put_back(key, before, name, root, controller)
            raise DriveError(f"{controller} to take {key} {wanted!r}", refusal, "leave the step out: it stays as it is")
    for path, old in zip(paths, before):
        if old != wanted and not _write(path, wanted):
            seen = sysfs.text(path)
            put_back(key, before, name, root, controller)
            raise DriveError(f"{path} to take {wanted!r}", repr(seen), "choose one of its words")
    if key == "hmb" and before != [wanted] and (unseen := features.unseen_hmb(str(controller), wanted == "1")):
        put_back(key, before, name, root, controller)
        raise DriveError(f"{controller} to report its host memory buffer {value}", unseen, "leave the step out")


def put_back(
    key: str, before: Sequence[str], name: str, root: str | os.PathLike = "/", controller: str | None = None
) -> None:
    """Set what setting() had found. Raises DriveError, every file tried."""
    paths = _paths(FILES.get(key), name, root, controller)
    if not paths and controller and key in features.SETTINGS:
        same = _feature(key, controller) == list(before)
        refusal = None if same else features.change(key, controller, before)
        if refusal:
            raise DriveError(f"{key} put back", refusal, f"restore it yourself; it was {before[0]}")
        return
    alike = len(paths) == len(before)
    refused = [p for p, old in zip(paths, before) if alike and chosen(sysfs.text(p)) != old and not _write(p, old)]
    if refused or not alike:
        seen = f"{refused[0]} refuses it" if refused else f"{len(paths)} files where there were {len(before)}"
        raise DriveError(f"{key} put back", seen, f"restore it yourself; it was {', '.join(before)}")


def _feature(key: str, controller: str | None) -> list[str] | None:
    """features.setting() of an NVMe drive; None: no feature, or it cannot be asked."""
    return features.setting(key, controller) if controller and key in features.SETTINGS else None


def chosen(text: str) -> str:
    """The word that is in force: "mq-deadline [none]" -> "none"."""
    return text[text.index("[") + 1 : text.index("]")] if "[" in text and "]" in text else text


def _paths(pattern: str | None, name: str | None, root: str | os.PathLike, controller: str | None = None) -> list[str]:
    """The files of a pattern of FILES, sorted; none of a controller that is not there."""
    if not pattern or ("{controller}" in pattern and not controller):
        return []
    words = {"name": glob.escape(name or ""), "controller": glob.escape(os.path.basename(controller or ""))}
    return sorted(glob.glob(sysfs.within(root, pattern.format(**words))))


def _write(path: str, value: str) -> bool:
    """Write a file of sysfs. Returns whether it has the value afterwards."""
    try:
        with open(path, "w") as file:
            file.write(value)
    except OSError:
        return False
    return chosen(sysfs.text(path)) == value
