import os

import pytest
from disktree import DiskTree, identify_page, serial_page
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import UsageError
from ssdrig.drive import sysfs
from ssdrig.drive.identity import Identity
from ssdrig.drive.inventory import Drive, all_drives, find, partitions, why_not_a_drive


@pytest.fixture
def tree(tmp_path):
    return DiskTree(tmp_path)


def only(tree) -> Drive:
    (drive,) = all_drives(tree.root)
    return drive


def test_a_pcie_drive(tree):
    tree.nvme(0)
    tree.by_id("nvme-eui.0025385b71b00001", "nvme0n1")
    tree.by_id("nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001_1", "nvme0n1")
    tree.by_id("nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001", "nvme0n1")
    assert only(tree) == Drive(
        name="nvme0n1",
        node="/dev/nvme0n1",
        by_id="/dev/disk/by-id/nvme-Samsung_SSD_990_PRO_2TB_S6Z1NX0W100001",
        model="Samsung SSD 990 PRO 2TB",
        serial="S6Z1NX0W100001",
        firmware="4B2QJXD7",
        wwn="eui.0025385b71b00001",
        capacity_bytes=2_000_398_934_016,
        logical_block_bytes=512,
        interface="NVMe",
        link="PCIe 4.0 x4",
        rotational=False,
        major=259,
        minor=0,
        controller="/dev/nvme0",
        nsid=1,
        smartctl_type="nvme",
        usb_id="",
        simulated=False,
    )


def test_a_link_below_what_the_drive_can_is_said(tree):
    tree.nvme(0, speed="8.0 GT/s PCIe", width=2)
    assert only(tree).link == "PCIe 3.0 x2 (drive: 4.0 x4)"


def test_an_unknown_link_speed_stays_unknown(tree):
    tree.nvme(0, speed="Unknown", width=0)
    assert only(tree).link == ""


def test_a_fabric_drive_with_native_multipath(tree):
    tree.nvme_multipath(0, states=("connecting", "live"))
    drive = only(tree)
    assert (drive.name, drive.controller, drive.nsid) == ("nvme0n1", "/dev/nvme1", 1)  # the controller that is alive
    assert (drive.model, drive.serial, drive.interface, drive.link) == (
        "SIMULATED SATA TLC",
        "FABRIC01",
        "NVMe/TCP",
        "tcp 127.0.0.1:4420",
    )
    assert drive.simulated and drive.smartctl_type == "nvme"


def test_a_subsystem_without_any_controller_left(tree):
    tree.nvme_multipath(0, states=())
    drive = only(tree)
    assert (drive.serial, drive.controller) == ("FABRIC01", None)


def test_a_sata_drive_shows_all_of_its_model_and_firmware(tree):
    tree.sata()
    drive = only(tree)
    assert (drive.model, drive.serial, drive.firmware) == ("Samsung SSD 860 EVO 500GB", "S3Z9NB0K100001", "RVT04B6Q")
    assert (drive.interface, drive.link, drive.smartctl_type) == ("SATA", "SATA 6.0 Gb/s", "sat")
    assert (drive.wwn, drive.controller, drive.nsid, drive.major, drive.minor) == (
        "naa.5002538e00000001",
        None,
        None,
        8,
        0,
    )


def test_a_slow_sata_link_is_said(tree):
    tree.sata(speed="3.0 Gbps")
    assert only(tree).link == "SATA 3.0 Gb/s (drive: 6.0)"


def test_a_sata_link_that_is_down_has_no_speed(tree):
    tree.sata(speed="<unknown>")
    assert only(tree).link == ""


def test_an_older_kernel_shows_the_short_model_unless_udev_knows_more(tree):
    tree.sata(page_89h=False)
    assert (only(tree).model, only(tree).serial, only(tree).firmware) == ("Samsung SSD 860", "S3Z9NB0K100001", "4B6Q")
    tree.write(
        "run/udev/data/b8:0",
        "S:disk/by-id/x\nE:ID_ATA=1\nE:ID_MODEL=Samsung_SSD_860_EVO_500GB\n"
        r"E:ID_MODEL_ENC=Samsung\x20SSD\x20860\x20EVO\x20500GB\x20\x20"
        "\nE:ID_REVISION=RVT04B6Q\nE:ID_SERIAL_SHORT=S3Z9NB0K100001\n",
    )
    assert (only(tree).model, only(tree).serial, only(tree).firmware) == (
        "Samsung SSD 860 EVO 500GB",
        "S3Z9NB0K100001",
        "RVT04B6Q",
    )


def test_a_sas_drive(tree):
    tree.sas()
    drive = only(tree)
    assert (drive.model, drive.serial, drive.firmware) == ("SEAGATE XS960SE70104", "ZC1A0B2C", "0003")
    assert (drive.interface, drive.link, drive.smartctl_type) == ("SAS", "SAS 12.0 Gb/s", "scsi")


def test_a_sata_drive_behind_a_sas_controller(tree):
    tree.sas(vendor="ATA", model="Micron_5300_MTFD", rate="6.0 Gbit")
    drive = only(tree)
    assert (drive.interface, drive.link, drive.smartctl_type, drive.model) == (
        "SATA",
        "SATA 6.0 Gb/s",
        "sat",
        "Micron_5300_MTFD",
    )


@pytest.mark.parametrize(
    "serial, shown", [("S4EVNX0N1", "S4EVNX0N1"), ("", "MSFT30012345678"), (None, "MSFT30012345678")]
)
def test_a_usb_bridge(tree, serial, shown):
    tree.usb(serial=serial)
    drive = only(tree)
    assert drive.serial == shown  # the enclosure's only where the disk shows none
    assert (drive.interface, drive.link, drive.usb_id, drive.smartctl_type) == (
        "USB",
        "USB 10 Gb/s",
        "174c:55aa",
        "auto",
    )
    assert drive.model == "ASMT 2115"


def test_a_slow_usb_port(tree):
    tree.usb(speed=480)
    assert only(tree).link == "USB 480 Mb/s"


def test_a_virtio_disk_and_a_serial_that_only_udev_knows(tree):
    tree.virtio()
    assert (only(tree).serial, only(tree).interface, only(tree).model) == ("vol-0abc", "virtio", "")
    tree.write("sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda/serial", "")
    assert only(tree).serial == ""
    tree.write("run/udev/data/b254:0", "E:ID_SERIAL_SHORT=from-udev\n")
    assert only(tree).serial == "from-udev"


def test_what_is_no_drive_is_left_out_and_the_rest_is_in_order(tree):
    for index in (10, 2):
        tree.nvme(index, serial=f"N{index}")
    tree.nvme_multipath(20)
    tree.sata()
    for name in ("loop0", "zram0", "ram0", "dm-0", "md0", "md127", "nbd0", "bcache0", "zd16", "something0"):
        tree.volume(name)
    for name in ("sr0", "fd0"):
        tree.block(name, f"sys/devices/platform/{name}/block/{name}", "11:0", 0)
    tree.partition("sda", 1)
    assert [d.name for d in all_drives(tree.root)] == ["sda", "nvme2n1", "nvme10n1", "nvme20n1"]
    assert why_not_a_drive("loop0", tree.root) == "loop device"
    assert why_not_a_drive("sda1", tree.root) == "partition"
    assert why_not_a_drive("nvme20c20n1", tree.root) == "one path of a multipath drive"
    assert why_not_a_drive("something0", tree.root) == "virtual block device"
    assert why_not_a_drive("nvme9n1", tree.root) == "no block device"
    assert partitions("sda", tree.root) == {"sda1": (8, 1)}


def test_a_machine_without_sysfs_has_no_drives(tmp_path):
    assert all_drives(tmp_path) == []


# --- naming


@pytest.fixture
def bench(tree):
    tree.nvme(0)
    tree.sata()
    tree.partition("sda", 1)
    tree.by_id("nvme-Samsung_990", "nvme0n1")
    tree.by_id("ata-Samsung_860", "sda")
    tree.by_id("ata-Samsung_860-part1", "sda1")
    return tree


@pytest.mark.parametrize(
    "word, name",
    [
        ("S6Z1NX0W100001", "nvme0n1"),
        ("s6z1nx0w100001", "nvme0n1"),
        ("S3Z9NB0K100001", "sda"),
        ("/dev/disk/by-id/ata-Samsung_860", "sda"),
    ],
)
def test_find(bench, word, name):
    assert find(word, bench.root).name == name


@pytest.mark.slow
@pytest.mark.parametrize(
    "word, seen, do",
    [
        ("/dev/sda", "moves from boot to boot", "use S3Z9NB0K100001 or /dev/disk/by-id/ata-Samsung_860"),
        ("sda", "moves from boot to boot", "S3Z9NB0K100001"),
        ("/dev/nvme0n1", "moves from boot to boot", "S6Z1NX0W100001 or /dev/disk/by-id/nvme-Samsung_990"),
        ("/dev/sda1", "a partition", "S3Z9NB0K100001"),
        ("/dev/disk/by-id/ata-Samsung_860-part1", "a partition", "use S3Z9NB0K100001"),
        ("/dev/disk/by-id/../../sda", "moves from boot to boot", "use S3Z9NB0K100001"),
        ("/dev/disk/by-id/ata-Gone", "no /dev/disk/by-id/ata-Gone", "S6Z1NX0W100001"),
        ("/dev/loop0", "loop device", "S6Z1NX0W100001"),
        ("/dev/nothing", "no block device", "S6Z1NX0W100001"),
        ("WRONG", "WRONG", "S3Z9NB0K100001 or /dev/disk/by-id/ata-Samsung_860 (Samsung SSD 860 EVO 500GB, /dev/sda)"),
        ("", "empty word", "S3Z9NB0K100001"),
        ("..", "..", "choose one"),
    ],
)
def test_all_other_words_are_refused_with_what_to_say_instead(bench, word, seen, do):
    bench.volume("loop0")
    with pytest.raises(UsageError) as caught:
        find(word, bench.root)
    assert seen in caught.value.seen and do in caught.value.do


def test_a_by_id_link_of_what_is_no_drive(bench):
    bench.volume("dm-0", "sda1", label="vg-lv")
    with pytest.raises(UsageError, match="device-mapper volume"):
        find(bench.by_id("dm-name-vg-lv", "dm-0"), bench.root)
    bench.link("dev/disk/by-id/broken", "dev/sdq")
    with pytest.raises(UsageError, match="no block device"):
        find("/dev/disk/by-id/broken", bench.root)


def test_link_that_udev_gives_to_any_namespace_of_a_drive_names_none(tree):
    """nvme-MODEL_SERIAL is overridden by each namespace that appears (systemd, 60-persistent-storage.rules)."""
    tree.nvme(0)
    any_of_them = tree.by_id("nvme-Samsung_S6Z1NX0W100001", "nvme0n1")
    tree.partition("nvme0n1", 1)
    tree.by_id("nvme-Samsung_S6Z1NX0W100001-part1", "nvme0n1p1")
    first = tree.by_id("nvme-Samsung_S6Z1NX0W100001_1", "nvme0n1")
    assert find(any_of_them, tree.root).name == "nvme0n1" and all_drives(tree.root)[0].by_id == any_of_them
    tree.nvme(0, nsid=2)
    second = tree.by_id("nvme-Samsung_S6Z1NX0W100001_2", "nvme0n2")
    by_number = tree.by_id("nvme-eui.0025385b71b00002", "nvme0n2")
    for target in ("nvme0n1", "nvme0n2"):
        tree.by_id("nvme-Samsung_S6Z1NX0W100001", target)
        with pytest.raises(UsageError, match=f"{first}.*{second}"):
            find(any_of_them, tree.root)
        assert [drive.by_id for drive in all_drives(tree.root)] == [first, second]
    assert find(first, tree.root).name == "nvme0n1"
    assert find(second, tree.root).name == find(by_number, tree.root).name == "nvme0n2"


def test_two_disks_of_one_serial_need_their_by_id_path(bench):
    bench.sata("sdb", port=2, serial="S3Z9NB0K100001", model="Other")
    link = bench.by_id("ata-Other", "sdb")
    with pytest.raises(UsageError, match="ata-Samsung_860.*ata-Other"):
        find("S3Z9NB0K100001", bench.root)
    assert find(link, bench.root).model == "Other"


def test_serials_that_differ_in_case_only_are_told_apart_by_it(bench):
    bench.sata("sdb", port=2, serial="s3z9nb0k100001")
    assert find("s3z9nb0k100001", bench.root).name == "sdb"
    with pytest.raises(UsageError, match="2: "):
        find("S3z9NB0K100001", bench.root)


def test_without_udev_a_serial_is_all_that_is_needed(tree):
    tree.nvme(0)
    (tree.root / "dev/disk/by-id").rmdir()
    assert find("S6Z1NX0W100001", tree.root).by_id is None
    with pytest.raises(UsageError, match="use S6Z1NX0W100001"):
        find("/dev/nvme0n1", tree.root)


# --- odd files


def test_files_that_are_folders_loops_or_not_readable_are_unknown(tree):
    tree.nvme(0)
    controller = tree.root / "sys/class/nvme/nvme0"
    (controller / "model").unlink()
    (controller / "model").mkdir()
    (controller / "serial").unlink()
    (controller / "serial").symlink_to("serial")
    (controller / "firmware_rev").write_bytes(b"\xff\xfe\x00\x01")
    (tree.root / "sys/block/nvme0n1/size").write_text("-5\n")
    (tree.root / "sys/block/nvme0n1/dev").write_text("x\n")
    (tree.root / "sys/block/nvme0n1/queue/logical_block_size").unlink()
    drive = only(tree)
    assert (drive.model, drive.serial, drive.firmware) == ("", "", "")
    assert (drive.capacity_bytes, drive.logical_block_bytes, drive.major, drive.minor) == (0, 0, 0, 0)


FILES = [
    "sys/block/sda/size",
    "sys/block/sda/dev",
    "sys/block/sda/hidden",
    "sys/block/sda/queue/logical_block_size",
    "sys/block/sda/queue/rotational",
    "sys/block/sda/device/vendor",
    "sys/block/sda/device/model",
    "sys/block/sda/device/vpd_pg80",
    "sys/block/sda/device/vpd_pg89",
    "sys/block/sda/device/wwid",
    "sys/block/nvme0n1/nsid",
    "sys/block/nvme0n1/device/transport",
    "sys/block/nvme0n1/device/address",
    "sys/block/nvme0n1/device/device/current_link_speed",
    "sys/block/nvme0n1/device/device/current_link_width",
    "run/udev/data/b8:0",
    "run/udev/data/b259:0",
]
TYPES = Identity.__annotations__ | Drive.__annotations__


@settings(max_examples=150, deadline=None)
@given(
    path=st.sampled_from(FILES),
    content=st.one_of(
        st.binary(max_size=600),
        st.sampled_from(
            [
                b"1" * 5000,
                b"tcp",
                b"E:ID_MODEL_ENC=\\x2\\xzz\\x00\nE:=\nE:ID_SERIAL_SHORT=",
                serial_page("x" * 300),
                serial_page("ab")[:3],
                identify_page("s", "f", "m")[:200],
                "²³".encode(),
                b"traddr=,trsvcid",
            ]
        ),
    ),
)
def test_any_bytes_in_any_file_give_a_drive_with_fields_of_their_type(shared_tree, path, content):
    file = shared_tree.root / path
    before = file.read_bytes() if file.exists() else None
    shared_tree.write(path, content)
    try:
        drives = all_drives(shared_tree.root)
        assert {d.name for d in drives} == {"sda", "nvme0n1"} or path == "sys/block/sda/hidden"
        for drive in drives:
            for field, value in vars(drive).items():
                assert isinstance(value, TYPES[field]), (field, value)
                if isinstance(value, str):
                    assert value.isprintable() and value == value.strip(), (field, value)
                elif isinstance(value, int):
                    assert value >= 0
    finally:
        file.unlink() if before is None else file.write_bytes(before)


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory):
    tree = DiskTree(tmp_path_factory.mktemp("machine"))
    tree.nvme(0)
    tree.sata()
    return tree


@given(
    serial=st.text("ABCDEFGHIJ0123456789 ", min_size=1, max_size=20),
    model=st.text("ABCabc019 -_", min_size=1, max_size=40),
)
@settings(max_examples=30, deadline=None)
def test_identify_data_is_read_as_it_was_packed(shared_tree, serial, model):
    shared_tree.write("sys/block/sda/device/vpd_pg89", identify_page(serial, "F1", model))
    drive = next(d for d in all_drives(shared_tree.root) if d.name == "sda")
    # what is blank in IDENTIFY data comes from the SCSI fields
    assert drive.serial == (serial.strip() or "S3Z9NB0K100001")
    assert drive.model == (model.strip() or "Samsung SSD 860")


def test_numbers_are_plain_decimals_only(tmp_path):
    for words, value in (
        ("12", 12),
        (" 12\n", 12),
        ("1_2", None),
        ("-1", None),
        ("+1", None),
        ("0x10", None),
        ("", None),
        ("٣", None),
        ("9" * 30, None),
    ):
        (tmp_path / "n").write_text(words)
        assert sysfs.number(str(tmp_path), "n") == value
    assert sysfs.device_number("8:1") == (8, 1) and sysfs.device_number("8:1:2") == (0, 0)


@pytest.mark.skipif(not os.path.isdir("/sys/block"), reason="no /sys/block")
def test_this_machine():
    drives = all_drives()
    if not drives:
        pytest.skip("no drive is seen on this machine")
    for drive in drives:
        assert os.path.exists(f"/sys/block/{drive.name}") and drive.capacity_bytes >= 0
        assert not drive.name.startswith(("loop", "zram", "ram", "dm-"))
