"""The whole disks of this machine, read from sysfs; a drive is named by its serial or by-id path, never by sdX."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drive:
    """One whole disk. Text that is not known is "", numbers and paths that are not known are None."""

    name: str  # the kernel's, such as nvme0n1: moves from boot to boot
    node: str  # /dev/nvme0n1
    by_id: str | None  # /dev/disk/by-id/…
    model: str
    serial: str
    firmware: str
    wwn: str
    capacity_bytes: int
    logical_block_bytes: int
    interface: str  # NVMe, NVMe/TCP, SATA, SAS, USB, virtio, other
    link: str  # "PCIe 4.0 x4", "SATA 6.0 Gb/s", "USB 10 Gb/s", "tcp 127.0.0.1:4420"
    rotational: bool
    major: int
    minor: int
    controller: str | None  # /dev/nvme0; NVMe only
    nsid: int | None
    smartctl_type: str  # what smartctl -d is given: nvme, sat, scsi, a USB bridge's; "auto" lets it guess
    usb_id: str  # "0bda:9210", vendor:product of a USB bridge
    simulated: bool  # the model says SIMULATED
