"""QEMU as the guest needs it: its disks, and the words of its command line."""

import ctypes
import mmap
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from guest.kernel import NoKernel

QEMU = "qemu-system-x86_64"
CPU = "Nehalem"  # the oldest that NumPy's wheels run on; emulating a newer one's features costs time
AGENT = Path(__file__).resolve().parent / "agent.py"


class Disk(NamedTuple):
    """A disk of the guest and the words of its -device option."""

    id: str
    serial: str
    size_bytes: int
    device: str


MIB = 1 << 20
NVME = Disk("nvme", "NVMEGUEST0001", 128 * MIB, "nvme,bus=slot0,serial={serial},drive={id}-file,id={id}")
SATA = Disk(
    "sata",
    "SATAGUEST0001",
    192 * MIB,
    "ide-hd,bus=ide.0,serial={serial},model=GUEST-SATA-DISK,ver=1.5,wwn=0x5000c50000000001,"
    "rotation_rate=1,drive={id}-file,id={id}",
)
SAS = Disk(
    "sas",
    "SASGUEST0001",
    96 * MIB,
    "scsi-hd,bus=sasbus.0,serial={serial},vendor=GUEST,product=SAS-DISK,ver=2.5,wwn=0x5000c50000000002,"
    "rotation_rate=1,drive={id}-file,id={id}",
)
USB = Disk("usb", "USBGUEST0001", 64 * MIB, "usb-storage,bus=usbbus.0,serial={serial},drive={id}-file,id={id}")
BOOT = Disk("boot", "BOOTGUEST0001", 128 * MIB, "virtio-blk-pci,serial={serial},drive={id}-file,id={id}")

# A drive that may have several controllers (CMIC), as most of data centres: the kernel shows its path nvme1c1n1,
# hidden. Its second namespace is allocated and attached to no controller.
PATHS = Disk("paths", "PATHGUEST0001", 64 * MIB, "nvme-ns,bus=pathcontroller,nsid=1,drive={id}-file,id={id}")
DETACHED = Disk("detached", "", 16 * MIB, "nvme-ns,bus=pathcontroller,nsid=2,detached=on,drive={id}-file,id={id}")
PATHS_CONTROLLER = (
    "-device",
    "nvme-subsys,id=pathsubsystem",
    "-device",
    f"nvme,id=pathcontroller,serial={PATHS.serial},bus=slot1,subsys=pathsubsystem",
)
# behind a root port without hot-plug, whose power only its slot's control register takes
FIXED = Disk("fixed", "FIXEDGUEST001", 64 * MIB, "nvme,bus=fixedport,serial={serial},drive={id}-file,id={id}")
# two NVMe drives that show one serial, as cheap ones do, and one drive of two namespaces
TWINS = tuple(
    Disk(f"twin{n}", "TWINGUEST0001", 16 * MIB, f"nvme-ns,bus=twincontroller{n},nsid=1,drive={{id}}-file,id={{id}}")
    for n in (0, 1)
)
SPACES = tuple(
    Disk(f"space{n}", "SPACEGUEST001", 16 * MIB, f"nvme-ns,bus=spacecontroller,nsid={n},drive={{id}}-file,id={{id}}")
    for n in (1, 2)
)
# a zoned namespace: 16 zones of 4 MiB, each with 3 MiB to write
ZONED = Disk(
    "zoned",
    "ZONEGUEST0001",
    64 * MIB,
    "nvme-ns,bus=zonedcontroller,nsid=1,zoned=on,zoned.zone_size=4M,zoned.zone_capacity=3M,zoned.max_open=8,"
    "zoned.max_active=16,drive={id}-file,id={id}",
)
MORE_CONTROLLERS = (
    *("-device", "pcie-root-port,id=twinport0,chassis=6", "-device", "pcie-root-port,id=twinport1,chassis=7"),
    *("-device", "pcie-root-port,id=spaceport,chassis=8"),
    *("-device", "nvme-subsys,id=twinsubsystem0,nqn=one", "-device", "nvme-subsys,id=twinsubsystem1,nqn=other"),
    *("-device", f"nvme,id=twincontroller0,serial={TWINS[0].serial},bus=twinport0,subsys=twinsubsystem0"),
    *("-device", f"nvme,id=twincontroller1,serial={TWINS[1].serial},bus=twinport1,subsys=twinsubsystem1"),
    *("-device", f"nvme,id=spacecontroller,serial={SPACES[0].serial},bus=spaceport"),
    *("-device", "pcie-root-port,id=zonedport,chassis=9"),
    *("-device", f"nvme,id=zonedcontroller,serial={ZONED.serial},bus=zonedport"),
)
DISKS = (NVME, SATA, SAS, USB, BOOT, PATHS, DETACHED, FIXED, *TWINS, *SPACES, ZONED)
CUT = Disk("cut", "CUTGUEST00001", 256 * MIB, "nvme,bus=slot3,serial={serial},drive={id}-node,id={id}")  # put in later

# A drive with flexible data placement: it counts what it writes to its media. QEMU has it from 8.0 on.
OLDEST_QEMU_WITH_FDP = 8
FDP = Disk("fdp", "FDPGUEST0001", 128 * MIB, "nvme-ns,bus=fdpcontroller,nsid=1,fdp.ruhs=0;1,drive={id}-file,id={id}")
FDP_CONTROLLER = (
    "-device",
    "nvme-subsys,id=fdpsubsystem,fdp=on,fdp.runs=1M,fdp.nrg=1,fdp.nruh=2",
    "-device",
    f"nvme,id=fdpcontroller,serial={FDP.serial},bus=slot2,subsys=fdpsubsystem",
)


def version() -> tuple[int, ...]:
    done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    match = re.search(r"version (\d+)\.(\d+)", done.stdout)
    if not match:
        raise NoKernel(f"{QEMU} does not start: {done.stderr.strip()[-200:]}")
    return int(match[1]), int(match[2])


RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret


def tsc_kHz(span_s: float = 0.2) -> int | None:
    """The frequency of the guest's time stamp counter, which QEMU takes from this machine: its own counter on x86,
    nanoseconds elsewhere. None where it cannot be read.

    span_s: how long to count, s"""
    if platform.machine() != "x86_64":
        return 1_000_000
    try:
        with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
            page.write(RDTSC)
            code = (ctypes.c_char * len(RDTSC)).from_buffer(page)
            count = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(code))
            start = _count_at(count)
            time.sleep(span_s)
            end = _count_at(count)
            del code
    except OSError:  # a machine that lets no program write what it runs
        return None
    return round((end[0] - start[0]) * 1e6 / (end[1] - start[1]))


def _count_at(count) -> tuple[int, float]:
    """The counter and the clock (ns) at one moment: of 20 pairs the one whose two looks at the clock lie closest."""
    pairs = []
    for _ in range(20):
        before_ns, ticks, after_ns = time.monotonic_ns(), count(), time.monotonic_ns()
        pairs.append((after_ns - before_ns, ticks, (before_ns + after_ns) / 2))
    return min(pairs)[1:]


def argv(folder: Path, image: Path, disks: tuple[Disk, ...]) -> list[str]:
    python = Path(sys._base_executable).resolve()
    words = ["console=ttyS0", "panic=-1", "loglevel=5", "mitigations=off", "nokaslr", "audit=0", "tsc=reliable"]
    # a busy machine gives the guest its first ticks so late that the kernel panics: "IO-APIC + timer doesn't work"
    words += ["no_timer_check"]
    # and counts its processor's frequency against an emulated timer, a tenth of it then: all limits end ten times early
    if frequency_kHz := tsc_kHz():
        words += [f"tsc_early_khz={frequency_kHz}"]
    words += ["cryptomgr.notests", "transparent_hugepage=never"]  # tests at boot, and copies of 2 MiB: both emulated
    # what hardens a kernel against its users at each allocation, call and copy, and what counts each page of memory
    words += ["init_on_alloc=0", "hardened_usercopy=off", "randomize_kstack_offset=off", "lsm="]
    words += ["cgroup_disable=memory"]
    words += [f"ssdrig_agent={AGENT}", f"ssdrig_python={python}"]
    words_of_qemu = [
        QEMU,
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-machine",
        "q35",
        "-accel",
        # Before 8.1 QEMU leaves out the guest's memory barriers unless it may have two processors, and its devices lose
        # a doorbell now and then ("tcg: Do not elide memory barriers for !CF_PARALLEL in system mode"). The guest has
        # one: two cost this machine half as much again for the same work.
        "tcg,thread=multi",
        "-cpu",
        CPU,
        "-smp",
        "1,maxcpus=2",
        "-m",
        "1536",
        "-kernel",
        str(image),
        "-initrd",
        str(folder / "initrd"),
        "-append",
        " ".join(words),
        "-serial",
        f"file:{folder}/console.log",
        "-qmp",
        f"unix:{folder}/qmp,server=on,wait=off",
        "-chardev",
        f"socket,id=agent,path={folder}/agent,server=on,wait=off",
        "-device",
        "virtio-serial-pci",
        "-device",
        "virtserialport,chardev=agent,name=agent",
        "-virtfs",
        "local,path=/,security_model=none,readonly=on,multidevs=remap,mount_tag=host",
        # no default route is set in the guest: of all addresses it reaches 10.0.2.2 alone, which is this machine's
        # loopback
        "-nic",
        "user,model=virtio-net-pci,ipv6=off",
        "-device",
        "pcie-root-port,id=slot0,chassis=1",
        "-device",
        "pcie-root-port,id=slot1,chassis=2",
        "-device",
        "pcie-root-port,id=slot2,chassis=3",
        "-device",
        "pcie-root-port,id=slot3,chassis=4",
        "-device",
        "pcie-root-port,id=fixedport,chassis=5,hotplug=off",
        "-device",
        "mptsas1068,id=sasbus",
        "-device",
        "qemu-xhci,id=usbbus",
        *PATHS_CONTROLLER,
        *MORE_CONTROLLERS,
    ]
    if FDP in disks:
        words_of_qemu += FDP_CONTROLLER
    for disk in disks:
        file = f"file.driver=file,file.filename={folder / disk.id}"
        words_of_qemu += ["-blockdev", f"raw,node-name={disk.id}-file,discard=unmap,cache.no-flush=on,{file}"]
        words_of_qemu += ["-device", disk.device.format(**disk._asdict())]
    return words_of_qemu
