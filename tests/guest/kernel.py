"""Fetches the distribution's kernel with the modules the guest loads, and programs that make file systems and arrays,
into .setup/guest-kernel of the clone. Nothing is installed; apt checks the archive's signature."""

import contextlib
import lzma
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

SETUP = Path(__file__).resolve().parents[2] / ".setup"
META_PACKAGE = "linux-image-amd64"
DOWNLOAD_LIMIT_S = 500

# What the guest loads when it boots, in this order, each after what it depends on.
MODULES = (
    "virtio_pci",
    "virtio_console",
    "9p",
    "9pnet_virtio",
    "overlay",
    "virtio_blk",
    "virtio_net",
    "crc32c_generic",
    "ext4",
    "nvme",
    "ahci",
    "sd_mod",
    "mptsas",
    "xhci_pci",
    "uas",
    "nvme_tcp",
    "dm_mod",
    "loop",
)

# What holds disks, loaded when a test asks for it.
HOLDERS = (
    "configfs",
    "raid1",
    "bcache",
    "btrfs",
    "xfs",
    "zram",
    "nvmet",
    "target_core_iblock",
    "target_core_file",
    "target_core_pscsi",
    "libcomposite",
    "usb_f_mass_storage",
    "dm_multipath",
    "dm_round_robin",
    "sg",
    "pstore_blk",
    "drbd",
    "ocfs2_nodemanager",
)

# Programs for them, each with the libraries that a minimal Debian lacks; names of Debian 12 and 13.
PROGRAMS = (
    "mdadm",
    "bcache-tools",
    "btrfs-progs",
    "liblzo2-2",
    "xfsprogs",
    "libinih1",
    "liburcu8",
    "liburcu8t64",
    "drbd-utils",
)
PROGRAM_FOLDERS = ("sbin", "bin", "usr/sbin", "usr/bin")


class Kernel(NamedTuple):
    image: Path
    modules: list[Path]  # uncompressed, in the order in which they can be loaded
    holders: list[Path]  # those of HOLDERS and what they depend on, likewise
    programs: Path  # a root folder with PROGRAMS; what apt does not have is missing there
    version: str


class NoKernel(Exception):
    """There is no kernel for the guest here; says why."""


def kernel() -> Kernel:
    """The kernel kept in .setup/guest-kernel, fetched when it is not there or lacks a module of MODULES. Raises
    NoKernel."""
    stored = SETUP / "guest-kernel"
    if not _complete(stored):
        SETUP.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="guest-kernel.", dir=SETUP) as folder:
            new = Path(folder) / "kernel"
            _fetch(Path(folder), new)
            shutil.rmtree(stored, ignore_errors=True)
            try:
                new.rename(stored)
            except OSError:
                if not _complete(stored):  # else another start was quicker
                    raise
    boot, holders = ([stored / "modules" / name for name in (stored / order).read_text().split()] for order in ORDERS)
    return Kernel(stored / "vmlinux", boot, holders, stored / "programs", (stored / "version").read_text())


ORDERS = ("order", "order-holders")


def _complete(folder: Path) -> bool:
    return (folder / "wanted").exists() and (folder / "wanted").read_text().split() == _wanted()


def _wanted() -> list[str]:
    return [*MODULES, *HOLDERS, *PROGRAMS]


def _fetch(work: Path, new: Path) -> None:
    """Download the package into work, and leave in `new` what the guest needs of it."""
    if platform.machine() != "x86_64":
        raise NoKernel(f"the guest is an amd64 machine; this one is {platform.machine()}")
    if not shutil.which("apt-get"):
        raise NoKernel("there is no apt-get to fetch Debian's kernel with")
    package = real_package(_run(["apt-cache", "show", "--no-all-versions", META_PACKAGE], work))
    _run(["apt-get", "-q", "download", package], work)
    [archive] = work.glob("*.deb")
    _run(["dpkg-deb", "-x", str(archive), "root"], work)
    [image] = (work / "root").glob("boot/vmlinuz-*")
    modules = {module_name(path): path for path in (work / "root").rglob("*.ko*")}
    (new / "modules").mkdir(parents=True)
    boot, every = (
        load_order(names, lambda name: module_bytes(modules[name]) if name in modules else None)
        for names in (MODULES, MODULES + HOLDERS)
    )
    for name, content in every.items():
        (new / "modules" / f"{name}.ko").write_bytes(content)
    for file, order in zip(ORDERS, (boot, [name for name in every if name not in boot]), strict=True):
        (new / file).write_text("".join(f"{name}.ko\n" for name in order))
    _fetch_programs(work, new / "programs")
    (new / "vmlinux").write_bytes(unpacked(image.read_bytes()))
    (new / "version").write_text(image.name.removeprefix("vmlinuz-"))
    (new / "wanted").write_text("\n".join(_wanted()))


def _fetch_programs(work: Path, programs: Path) -> None:
    folder = work / "programs"
    folder.mkdir()
    # of the libraries one Debian has one name, another the other
    known = set(_run(["apt-cache", "pkgnames"], work).split())
    wanted = [package for package in PROGRAMS if package in known]
    try:
        _run(["apt-get", "-q", "download", *wanted], folder)  # one start for all: each reads the lists for a second
    except NoKernel:
        for package in wanted:
            with contextlib.suppress(NoKernel):
                _run(["apt-get", "-q", "download", package], folder)
    programs.mkdir()
    for archive in sorted(folder.glob("*.deb")):
        with contextlib.suppress(NoKernel):
            _run(["dpkg-deb", "-x", str(archive), str(programs)], work)


def unpacked(image: bytes) -> bytes:
    """The ELF kernel out of a bzImage, which QEMU starts by its PVH entry: the emulated processor would need seconds to
    unpack it. Where the kernel is packed by other means than xz, the image as it is. (Linux x86 boot protocol 2.08:
    payload_offset and payload_length at 248h, counted from the end of the setup sectors, whose number stands at
    1F1h.)"""
    at = (image[0x1F1] + 1) * 512 + int.from_bytes(image[0x248:0x24C], "little")
    payload = image[at : at + int.from_bytes(image[0x24C:0x250], "little")]
    return lzma.LZMADecompressor().decompress(payload) if payload.startswith(b"\xfd7zXZ\0") else image


def real_package(shown: str) -> str:
    """The package with the kernel itself, from `apt-cache show linux-image-amd64`."""
    if match := re.search(r"^Depends:.*?\b(linux-image-\d[^ ,]*)", shown, re.MULTILINE):
        return match[1]
    raise NoKernel(f"this distribution's {META_PACKAGE} names no kernel package")


def module_name(path: Path) -> str:
    return path.name.partition(".")[0].replace("-", "_")


def module_bytes(path: Path) -> bytes:
    """The module, uncompressed. Debian 12 has .ko, Debian 13 .ko.xz."""
    if path.suffix == ".ko":
        return path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    raise NoKernel(f"the kernel's modules are packed as {path.suffix}, which is not unpacked here")


def load_order(wanted, read) -> dict[str, bytes]:
    """{name: content} of the wanted modules and of all they depend on, dependencies first. read(name) gives a module's
    content, or None when there is none: it is then built into the kernel or of another name in this version.

    The dependencies are the `depends` and `softdep pre` entries that each module carries (the package has no
    modules.dep)."""
    order: dict[str, bytes] = {}
    visited = set()

    def visit(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        content = read(name)
        if content is None:
            return
        for entry in re.findall(rb"\0depends=([^\0]*)\0", content):
            for other in entry.decode().split(","):
                visit(other.replace("-", "_"))
        for entry in re.findall(rb"\0softdep=pre: ([^\0]*)\0", content):
            for other in entry.decode().partition("post:")[0].split():
                visit(other.replace("-", "_"))
        order[name] = content

    for name in wanted:
        visit(name)
    return order


def _run(argv: list[str], work: Path) -> str:
    try:
        done = subprocess.run(
            argv, cwd=work, capture_output=True, text=True, timeout=DOWNLOAD_LIMIT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoKernel(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise NoKernel(f"{' '.join(argv)}: exit {done.returncode}: {' / '.join(done.stderr.strip().splitlines()[-3:])}")
    return done.stdout
