"""A machine's /sys, /proc, /dev and /run as files below a folder, laid out as Linux lays them out (looked up on 6.1 and
6.18: block devices are links from /sys/block, /sys/class/block and /sys/dev/block into /sys/devices, partitions are
folders in their disk, by-id links are relative). Nodes are sparse files of the disk's size, so that programs can look
into them."""

import os
import zlib
from pathlib import Path

from ssdrig.drive import sysfs


def identify_page(serial: str, firmware: str, model: str, sata_word: int = 0x000E) -> bytes:
    """VPD page 89h as libata makes it (ata_scsiop_inq_89): IDENTIFY data at byte 60, text with swapped bytes."""
    page = bytearray(572)
    page[1], page[2], page[3], page[56] = 0x89, 0x02, 0x38, 0xEC
    page[8:16], page[16:32] = b"linux   ", b"libata          "
    for word, length, text in ((10, 20, serial), (23, 8, firmware), (27, 40, model)):
        padded = text.ljust(length).encode()[:length]
        page[60 + 2 * word : 60 + 2 * word + length] = bytes(padded[i ^ 1] for i in range(length))
    page[60 + 152 : 60 + 154] = sata_word.to_bytes(2, "little")
    return bytes(page)


def serial_page(serial: str) -> bytes:
    """VPD page 80h."""
    return bytes((0, 0x80)) + len(serial).to_bytes(2, "big") + serial.encode()


def own_number(serial: str, usual: str, at: int) -> int:
    """A part of a WWN or EUI that goes with the drive wherever it is plugged in; `at` for the tree's usual drive."""
    return at if serial == usual else zlib.crc32(serial.encode())


def own_files(process) -> str:
    """The folder of /proc that holds the files, maps and mounts of a process: those of its main thread."""
    return f"proc/{process}" if process in ("1", "self") else f"proc/{process}/task/{process}"


USUAL_NVME, USUAL_SATA = "S6Z1NX0W100001", "S3Z9NB0K100001"


class DiskTree:
    """`root` is what the functions of the host are given. Methods that make a disk return its kernel name."""

    def __init__(self, root: Path):
        self.root = root
        for folder in (
            "sys/block",
            "sys/class/block",
            "sys/dev/block",
            "sys/class/nvme",
            "sys/devices",
            "proc/self",
            "dev/disk/by-id",
            "dev/mapper",
            "run/lock",
            "run/udev/data",
            "tmp",
        ):
            (root / folder).mkdir(parents=True, exist_ok=True)
        self.write("proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n")
        self.write("proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
        self.numbers: dict[str, str] = {}
        self.nodes: dict[str, tuple[str, str]] = {}
        self.appearances = 0

    def write(self, path: str, content: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def link(self, path: str, target: str) -> None:
        """A relative link, as the kernel's and udev's are."""
        at = self.root / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.unlink(missing_ok=True)
        at.symlink_to(os.path.relpath(self.root / target, at.parent))

    def block(self, name: str, folder: str, number: str, size_bytes: int, rotational: int = 0) -> str:
        """The part that all block devices have."""
        self.appearances += 1
        self.numbers[name] = number
        for file, content in (
            ("dev", number),
            ("size", size_bytes // 512),
            ("ro", 0),
            ("removable", 0),
            ("hidden", 0),
            ("diskseq", self.appearances),
            ("queue/rotational", rotational),
            ("queue/logical_block_size", 512),
        ):
            self.write(f"{folder}/{file}", f"{content}\n")
        for empty in ("holders", "slaves"):
            (self.root / folder / empty).mkdir(exist_ok=True)
        self.link(f"sys/block/{name}", folder)
        self._register(name, folder, number, size_bytes)
        return name

    def _register(self, name, folder, number, size_bytes):
        self.link(f"sys/class/block/{name}", folder)
        self.link(f"sys/dev/block/{number}", folder)
        self.write(f"dev/{name}", b"")
        os.truncate(self.root / "dev" / name, size_bytes)

    def nvme(
        self,
        index=0,
        serial=USUAL_NVME,
        model="Samsung SSD 990 PRO 2TB",
        firmware="4B2QJXD7",
        size_bytes=2_000_398_934_016,
        nsid=1,
        speed="16.0 GT/s PCIe",
        width=4,
        number=None,
        eui=None,
        subsystem=None,
    ):
        """A PCIe drive without native multipath."""
        pci = f"sys/devices/pci0000:00/0000:00:06.0/0000:0{index + 1}:00.0"
        controller = f"{pci}/nvme/nvme{index}"
        for file, content in (
            ("model", model.ljust(40)),
            ("serial", serial.ljust(20)),
            ("firmware_rev", firmware.ljust(8)),
            ("transport", "pcie"),
            ("address", f"0000:0{index + 1}:00.0"),
            ("state", "live"),
            ("subsysnqn", subsystem or f"nqn.2014.08.org.nvmexpress:{serial}"),
        ):
            self.write(f"{controller}/{file}", content + "\n")
        for which, s, w in (("current", speed, width), ("max", "16.0 GT/s PCIe", 4)):
            self.write(f"{pci}/{which}_link_speed", f"{s}\n")
            self.write(f"{pci}/{which}_link_width", f"{w}\n")
        self.link(f"{controller}/device", pci)
        self.link(f"sys/class/nvme/nvme{index}", controller)
        name = f"nvme{index}n{nsid}"
        folder = f"{controller}/{name}"
        self.block(name, folder, number or f"259:{10 * index + nsid - 1}", size_bytes)
        eui = eui or f"0025385b{own_number(serial, USUAL_NVME, 0x71B00000) & ~0xFF | nsid:08x}"
        self.write(f"{folder}/wwid", f"eui.{eui}\n")
        self.write(f"{folder}/nsid", f"{nsid}\n")
        self.link(f"{folder}/device", controller)
        return name

    def nvme_multipath(
        self,
        index=0,
        serial="FABRIC01",
        model="SIMULATED SATA TLC",
        transport="tcp",
        address="traddr=127.0.0.1,trsvcid=4420,src_addr=127.0.0.1",
        states=("live",),
        size_bytes=4 << 30,
    ):
        """A namespace of a subsystem: its `device` is the subsystem, which links to the controllers; each path is
        hidden."""
        subsystem = f"sys/devices/virtual/nvme-subsystem/nvme-subsys{index}"
        for file, content in (
            ("model", model),
            ("serial", serial),
            ("firmware_rev", "1"),
            ("subsysnqn", "nqn.2014-08.org.nvmexpress:uuid:1"),
        ):
            self.write(f"{subsystem}/{file}", content + "\n")
        for path, state in enumerate(states):
            nvme = index + path
            controller = f"sys/devices/virtual/nvme-fabrics/ctl/nvme{nvme}"
            for file, content in (
                ("model", model),
                ("serial", serial),
                ("firmware_rev", "1"),
                ("transport", transport),
                ("address", address),
                ("state", state),
            ):
                self.write(f"{controller}/{file}", content + "\n")
            self.link(f"sys/class/nvme/nvme{nvme}", controller)
            self.link(f"{subsystem}/nvme{nvme}", controller)
            hidden = f"nvme{index}c{nvme}n1"
            self.write(f"{controller}/{hidden}/hidden", "1\n")
            self.write(f"{controller}/{hidden}/size", f"{size_bytes // 512}\n")
            self.link(f"{controller}/{hidden}/device", controller)
            self.write(f"{controller}/subsysnqn", "nqn.2014-08.org.nvmexpress:uuid:1\n")
            self.link(f"sys/block/{hidden}", f"{controller}/{hidden}")
        name = f"nvme{index}n1"
        self.block(name, f"{subsystem}/{name}", f"259:{100 + index}", size_bytes)
        self.write(f"{subsystem}/{name}/nsid", "1\n")
        self.write(f"{subsystem}/{name}/wwid", "uuid.11111111-2222-3333-4444-555555555555\n")
        self.link(f"{subsystem}/{name}/device", subsystem)
        return name

    def sata(
        self,
        name="sda",
        serial=USUAL_SATA,
        model="Samsung SSD 860 EVO 500GB",
        firmware="RVT04B6Q",
        port=1,
        speed="6.0 Gbps",
        size_bytes=500_107_862_016,
        page_89h=True,
        wwn=None,
    ):
        ata = f"sys/devices/pci0000:00/0000:00:17.0/ata{port}"
        self.write(f"{ata}/link{port}/ata_link/link{port}/sata_spd", speed + "\n")
        device = f"{ata}/host{port}/target{port}:0:0/{port}:0:0:0"
        wwn = wwn or f"naa.5002538e{own_number(serial, USUAL_SATA, 1):08x}"
        self.scsi(name, device, "ATA", model[:16], firmware[-4:], serial.rjust(20), size_bytes, wwid=wwn)
        if page_89h:
            self.write(f"{device}/vpd_pg89", identify_page(serial.rjust(20), firmware, model))
        return name

    def scsi(self, name, device, vendor, model, rev, serial, size_bytes, wwid="", rotational=0):
        for file, content in (
            ("vendor", vendor.ljust(8)),
            ("model", model.ljust(16)),
            ("rev", rev.ljust(4)),
            ("wwid", wwid),
        ):
            self.write(f"{device}/{file}", content + "\n")
        if serial is not None:
            self.write(f"{device}/vpd_pg80", serial_page(serial))
        folder = f"{device}/block/{name}"
        self.block(name, folder, f"8:{16 * (ord(name[2]) - ord('a'))}", size_bytes, rotational)
        self.link(f"{folder}/device", device)
        return name

    def sas(
        self,
        name="sdb",
        serial="ZC1A0B2C",
        vendor="SEAGATE",
        model="XS960SE70104",
        rate="12.0 Gbit",
        size_bytes=960_197_124_096,
        port=0,
        lun=0,
        wwn="naa.5000c500a0b1c2d3",
    ):
        folder = f"sys/devices/pci0000:00/0000:00:1c.0/0000:05:00.0/host9/port-9:{port}"
        self.write(f"{folder}/phy-9:{port}/sas_phy/phy-9:{port}/negotiated_linkrate", rate + "\n")
        device = f"{folder}/end_device-9:{port}/target9:0:{port}/9:0:{port}:{lun}"
        return self.scsi(name, device, vendor, model, "0003", serial, size_bytes, wwid=wwn)

    def usb(
        self,
        name="sdc",
        serial="",
        bridge_serial="MSFT30012345678",
        vendor="ASMT",
        model="2115",
        speed=10000,
        size_bytes=250_059_350_016,
        port=1,
        lun=0,
        wwn="",
        host=6,
    ):
        device = f"sys/devices/pci0000:00/0000:00:14.0/usb2/2-{port}"
        for file, content in (("idVendor", "174c"), ("idProduct", "55aa"), ("serial", bridge_serial), ("speed", speed)):
            self.write(f"{device}/{file}", f"{content}\n")
        self.write("sys/devices/pci0000:00/0000:00:14.0/usb2/idVendor", "1d6b\n")  # the root hub, further up
        device += f"/2-{port}:1.0/host{host}/target{host}:0:0/{host}:0:0:{lun}"
        return self.scsi(name, device, vendor, model, "0", serial, size_bytes, wwid=wwn, rotational=1)

    def virtio(self, name="vda", serial="vol-0abc", size_bytes=256 << 30, slot=2):
        pci = f"sys/devices/pci0000:00/0000:00:{slot:02}.0"
        folder = f"{pci}/virtio{slot - 1}/block/{name}"
        self.block(name, folder, f"254:{16 * (ord(name[2]) - ord('a'))}", size_bytes, rotational=1)
        self.write(f"{folder}/serial", serial)  # the kernel writes no line feed here
        self.write(f"{pci}/virtio{slot - 1}/vendor", "0x1af4\n")
        self.link(f"{folder}/device", f"{pci}/virtio{slot - 1}")
        return name

    def volume(self, name, *slaves, label=""):
        """A device of software on top of others: dm-0, md0; or of nothing: loop0, zram0."""
        folder = f"sys/devices/virtual/block/{name}"
        self.block(name, folder, f"{252 if name.startswith('dm') else 9}:{name.lstrip('dmlopzra-') or 0}", 1 << 30)
        for slave in slaves:
            self.link(f"{folder}/slaves/{slave}", f"sys/class/block/{slave}")
            self.link(f"sys/class/block/{slave}/holders/{name}", folder)
        if label:
            self.write(f"{folder}/dm/name", label + "\n")
            self.link(f"dev/mapper/{label}", f"dev/{name}")
        return name

    def partition(self, disk, index):
        name = f"{disk}p{index}" if disk[-1].isdigit() else f"{disk}{index}"
        major, minor = self.numbers[disk].split(":")
        number = f"{major}:{int(minor) + index}"
        folder = os.path.relpath(os.path.realpath(self.root / "sys/block" / disk), self.root.resolve()) + f"/{name}"
        self.write(f"{folder}/partition", f"{index}\n")
        self.write(f"{folder}/dev", number + "\n")
        (self.root / folder / "holders").mkdir(exist_ok=True)
        self.numbers[name] = number
        self._register(name, folder, number, 1 << 20)
        return name

    def by_id(self, link, name):
        self.link(f"dev/disk/by-id/{link}", f"dev/{name}")
        return f"/dev/disk/by-id/{link}"

    def mount(self, device, point, kind="ext4", number=None, source=None, options="rw", process="self"):
        line = (
            f"90 27 {number or self.numbers[device]} / {point} rw,relatime shared:1 - {kind}"
            f" {source or f'/dev/{device}'} {options}\n"
        )
        path = self.root / own_files(process) / "mountinfo"
        self.write(f"{own_files(process)}/mountinfo", (path.read_text() if path.exists() else "") + line)

    def swap(self, source):
        path = self.root / "proc/swaps"
        path.write_text(path.read_text() + f"{source}                               partition\t8388604\t\t0\t\t-2\n")

    def node(self, path, name, kind="block"):
        """A device node anywhere, such as a container's: its number says which device it is."""
        self.write(path, b"")
        self.nodes[path] = (kind, self.numbers[name])

    def character(self, name, folder, number):
        """A character device whose folder in sysfs is `folder`, and its node."""
        self.link(f"sys/dev/char/{number}", folder)
        self.numbers[name] = number
        self.node(f"dev/{name}", name, "char")

    def node_number(self, path):
        """In the place of sysfs.node_number: the nodes of this tree are files, which have no device number."""
        real = sysfs.real(path)
        inside = os.path.relpath(real, self.root.resolve())
        if not os.path.exists(real):
            return "", ""
        return self.nodes.get(inside) or (
            ("block", self.numbers[inside[4:]]) if inside[:4] == "dev/" and inside[4:] in self.numbers else ("", "")
        )

    def process(self, pid, comm, path, flags="02100002"):
        """A process that has `path` open; /proc/PID/fdinfo gives the flags of open(2) in octal."""
        self.write(f"proc/{pid}/comm", comm + "\n")
        self.write(f"{own_files(pid)}/fdinfo/7", f"pos:\t0\nflags:\t{flags}\nmnt_id:\t24\nino:\t300\n")
        self.link(f"{own_files(pid)}/fd/7", path.lstrip("/"))

    def mapping(self, pid, comm, path, permissions="rw-s"):
        """A process that has `path` mapped, its descriptor closed."""
        self.write(f"proc/{pid}/comm", comm + "\n")
        self.write(f"{own_files(pid)}/maps", f"7f00aa000000-7f00aa001000 {permissions} 00000000 00:05 300    {path}\n")
        (self.root / own_files(pid) / "fd").mkdir(exist_ok=True)
        self.link(f"proc/{pid}/map_files/7f00aa000000-7f00aa001000", path.lstrip("/"))

    def remove(self, name):
        """A disk that vanishes."""
        folder = os.path.realpath(self.root / "sys/block" / name)
        for link in (
            f"sys/block/{name}",
            f"sys/class/block/{name}",
            f"sys/dev/block/{self.numbers[name]}",
            f"dev/{name}",
        ):
            (self.root / link).unlink()
        os.rename(folder, f"{folder}.gone-{self.appearances}")
