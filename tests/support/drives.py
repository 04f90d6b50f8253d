"""A drive made by hand, for tests."""

from ssdrig.drive.inventory import Drive


def a_drive(**more) -> Drive:
    known = dict(
        name="nvme9n1",
        node="/dev/nvme9n1",
        by_id="/dev/disk/by-id/nvme-TEST_0001",
        model="TEST",
        serial="0001",
        firmware="1.0",
        wwn="",
        capacity_bytes=10**9,
        logical_block_bytes=512,
        interface="NVMe",
        link="",
        rotational=False,
        major=259,
        minor=99,
        controller="/dev/nvme9",
        nsid=1,
        smartctl_type="nvme",
        usb_id="",
        simulated=False,
    )
    return Drive(**(known | more))
