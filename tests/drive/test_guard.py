"""What speaks against a target: the checks, on the /sys, /proc and /dev of a machine as files."""

import os

import pytest
from disktree import DiskTree
from guarding import SERIAL, against, by_hand, make_ext4, tree  # noqa: F401  fixture
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.base.errors import UnsafeTarget
from ssdrig.drive import guard, sysfs, uses
from ssdrig.drive.inventory import find


def test_nothing_speaks_against_an_empty_disk_that_nobody_uses(tree):
    assert against(tree) == {}
    assert against(tree, serial=SERIAL) == {}


def test_a_mounted_whole_disk(tree):
    tree.mount("sda", "/mnt/a\\040b")
    assert against(tree) == {"mounted": "sda on /mnt/a b"}
    assert against(tree, serial=SERIAL) == {"mounted": "sda on /mnt/a b"}, "no override"
    assert against(tree, "nvme0n1") == {}, "the other disk is free"


def test_a_mounted_partition(tree):
    tree.partition("sda", 1)
    tree.mount(tree.partition("sda", 2), "/mnt")
    assert against(tree, serial=SERIAL) == {"mounted": "sda2 on /mnt"}
    assert against(tree)["signature"] == "partitions sda1, sda2"


def test_mounts_are_found_by_number_whatever_name_the_table_shows(tree):
    tree.mount("sda", "/mnt", source="/dev/disk/by-id/ata-other-name")
    assert against(tree) == {"mounted": "sda on /mnt"}


def test_a_mount_known_by_its_source_only(tree):
    """btrfs shows an anonymous number; the source may be a by-id link."""
    tree.by_id("ata-x", "sda")
    tree.mount("sda", "/mnt", kind="btrfs", number="0:44", source="/dev/disk/by-id/ata-x")
    assert against(tree) == {"mounted": "sda on /mnt"}


def test_every_member_of_a_btrfs_is_in_use_though_the_table_shows_one(tree):
    tree.link("sys/fs/btrfs/uuid-1/devices/sda", "sys/class/block/sda")
    tree.link("sys/fs/btrfs/uuid-1/devices/nvme0n1", "sys/class/block/nvme0n1")
    tree.mount("sda", "/mnt", kind="btrfs", number="0:44", source="/dev/sda")
    assert against(tree, "nvme0n1") == {"mounted": "nvme0n1, sda on /mnt", "holder": "btrfs uuid-1 uses nvme0n1"}


def test_a_mount_that_only_process_1_sees(tree):
    tree.mount("sda", "/srv", process="1")
    assert against(tree) == {"mounted": "sda on /srv"}


def test_a_volume_on_the_disk(tree):
    tree.volume("dm-0", "sda", label="vg0-scratch")
    assert against(tree, serial=SERIAL) == {"holder": "dm-0 (vg0-scratch) is on it"}


def test_a_raid_on_a_partition(tree):
    tree.volume("md0", tree.partition("sda", 1))
    assert against(tree, serial=SERIAL) == {"holder": "md0 is on it"}


def test_swap(tree):
    tree.swap(f"/dev/{tree.partition('sda', 3)}")
    assert against(tree, serial=SERIAL) == {"swap": "swap on sda3"}


def test_swap_on_a_volume_that_is_named_by_its_label(tree):
    tree.volume("dm-0", "sda", label="vg0-swap")
    tree.swap("/dev/mapper/vg0-swap")
    assert against(tree, serial=SERIAL)["swap"] == "swap on dm-0"


def test_a_name_that_no_path_can_have_is_passed_over(tree):
    tree.swap("/dev/\\000")
    tree.mount("sda", "/mnt", number="0:44", source="/dev/x\\000y")
    assert against(tree) == {}


@pytest.mark.parametrize("point", ["/", "/boot", "/boot/efi", "/usr", "/var"])
def test_the_boot_disk(tree, point):
    tree.mount(tree.partition("sda", 1), point)
    refusals = against(tree, serial=SERIAL)
    assert refusals == {"mounted": f"sda1 on {point}", "boot": f"this system runs from it ({point})"}


def test_the_boot_disk_below_encryption_volumes_and_a_raid(tree):
    tree.volume("md0", tree.partition("sda", 2), tree.partition("nvme0n1", 2))
    tree.volume("dm-0", "md0", label="crypt")
    tree.volume("dm-1", "dm-0", label="vg-root")
    tree.mount("dm-1", "/", source="/dev/mapper/vg-root")
    for disk in ("sda", "nvme0n1"):
        assert against(tree, disk)["boot"] == "this system runs from it (/)"


def test_the_boot_disk_below_an_overlay(tree):
    tree.mount("sda", "/run/live", source="/dev/sda")
    tree.mount(
        "sda",
        "/",
        kind="overlay",
        number="0:50",
        source="overlay",
        options="rw,lowerdir=/run/live/rootfs:/x,upperdir=/run/rw/up,workdir=/run/rw/w",
    )
    assert against(tree)["boot"] == "this system runs from it (/)"
    assert "boot" not in against(tree, "nvme0n1")


def test_a_volume_that_is_its_own_ancestor_ends(tree):
    tree.volume("dm-0", "sda")
    tree.link("sys/class/block/dm-0/slaves/dm-0", "sys/class/block/dm-0")
    tree.mount("dm-0", "/mnt")
    assert against(tree)["mounted"] == "dm-0 on /mnt"


def test_what_uses_another_namespace_or_path_of_the_drive_counts(tree):
    tree.nvme(0, nsid=2, size_bytes=64 << 20)
    tree.mount("nvme0n2", "/mnt")
    assert against(tree, "nvme0n1") == {"mounted": "nvme0n2 on /mnt (/dev/nvme0n2 shows the same serial)"}


def test_a_program_that_writes_to_it(tree):
    """A virtual machine opens its disk without O_EXCL, so that the kernel does not see it in use."""
    tree.process(4194999, "qemu-system-x86", f"/dev/{tree.partition('sda', 1)}")
    assert against(tree, serial=SERIAL) == {"writer": "open for writing by process 4194999 (qemu-system-x86)"}


def test_a_program_that_only_reads_does_not_count(tree):
    tree.process(4194999, "smartd", "/dev/sda", flags="02100000")
    assert against(tree) == {}


def test_a_read_only_disk(tree):
    tree.write("sys/block/sda/ro", "1\n")
    assert list(against(tree, serial=SERIAL)) == ["read-only"]


@pytest.mark.parametrize("size_bytes", [0, 32768, 8 << 20])
def test_a_disk_too_small_to_be_one(tree, size_bytes):
    tree.write("sys/block/sda/size", f"{size_bytes // 512}\n")
    assert against(tree) == {
        "capacity": f"{size_bytes} bytes is not the size of a drive: it has failed, or has no medium"
    }


def test_a_disk_without_serial(tree):
    tree.virtio(serial="", size_bytes=64 << 20)
    assert "could not be identified" in against(tree, "vda")["serial"]


def test_a_disk_without_number(tree):
    tree.write("sys/block/sda/dev", "\n")
    assert list(against(tree)) == ["number"]


def test_a_node_that_does_not_open(tree):
    (tree.root / "dev/sda").unlink()
    refusals = against(tree, serial=SERIAL)
    assert refusals == {"open": "/dev/sda does not open: No such file or directory"}


@pytest.mark.parametrize(
    "name, kind", [("loop0", "loop device"), ("dm-0", "device-mapper volume"), ("md0", "software RAID")]
)
def test_software_is_no_target(tree, name, kind):
    tree.volume(name)
    drive = by_hand(name, *map(int, tree.numbers[name].split(":")), 64 << 20)
    assert ("kind", f"/dev/{name} is not a whole disk: {kind}", None) in [
        (r.check, r.why, r.override) for r in guard.refusals(drive, "HAND", tree.root)
    ]


def test_a_partition_is_no_target(tree):
    name = tree.partition("sda", 1)
    refusals = guard.refusals(by_hand(name, 8, 1, 64 << 20), "HAND", tree.root)
    assert [r.why for r in refusals if r.check == "kind"] == ["/dev/sda1 is not a whole disk: partition"]


def test_a_disk_that_is_gone(tree):
    drive = find(SERIAL, tree.root)
    tree.remove("sda")
    assert [r.check for r in guard.refusals(drive, SERIAL, tree.root)] == ["gone"]
    with pytest.raises(UnsafeTarget, match="gone"), guard.hold(drive, SERIAL, tree.root):
        pass


def test_all_failures_are_listed(tree):
    tree.partition("sda", 1)
    tree.mount("sda1", "/")
    tree.volume("dm-0", "sda1")
    tree.swap("/dev/sda1")
    tree.write("sys/block/sda/ro", "1\n")
    assert list(against(tree, serial="X")) == [
        "read-only",
        "holder",
        "mounted",
        "boot",
        "swap",
        "destroy-data",
        "signature",
    ]


@settings(max_examples=60, deadline=None)
@given(
    words=st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.sampled_from(
                [
                    b"8:0",
                    b"0:44",
                    b"..",
                    b"/",
                    b"/mnt",
                    b"-",
                    b"btrfs",
                    b"overlay",
                    b"/dev/sda",
                    b"/dev/\\000",
                    b"\\777",
                    b"lowerdir=/:/x",
                    b"1",
                    b"\n",
                    b"",
                    b"rw",
                ]
            ),
            max_size=24,
        ).map(b" ".join),
    ),
    file=st.sampled_from(
        [
            "proc/self/mountinfo",
            "proc/1/mountinfo",
            "proc/78/task/78/mountinfo",
            "proc/swaps",
            "proc/77/task/77/fdinfo/7",
            "proc/77/task/77/maps",
        ]
    ),
)
def test_odd_tables_of_the_kernel_are_no_crash(shared_tree, words, file):
    """And what the other tables say stays known."""
    path = shared_tree.root / file
    before = path.read_bytes() if path.exists() else b""
    shared_tree.write(file, words)
    machine = uses.survey(shared_tree.root)
    shared_tree.write(file, before)
    assert [d.name for d in machine.drives] == ["sda"]
    assert set(machine.mounted) | set(machine.system) | set(machine.swap) <= {"sda"}
    assert machine.writers == {"sda": ["process 77 (sh)"]} or file.endswith("fdinfo/7")


@pytest.fixture(scope="module")
def shared_tree(tmp_path_factory):
    tree = DiskTree(tmp_path_factory.mktemp("machine"))
    tree.sata(size_bytes=64 << 20)
    tree.process(77, "sh", "/dev/sda")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sysfs, "node_number", tree.node_number)
        yield tree


# --- content


def test_a_file_system_needs_destroy_data_with_this_serial(tree):
    make_ext4(tree.root / "dev/sda")
    drive = find(SERIAL, tree.root)
    assert guard.refusals(drive, None, tree.root) == [guard.Refusal("signature", "ext4", f"--destroy-data {SERIAL}")]
    assert guard.refusals(drive, SERIAL, tree.root) == []
    with pytest.raises(UnsafeTarget) as caught, guard.hold(drive, None, tree.root):
        pass
    assert caught.value.do == f"add --destroy-data {SERIAL} if its content may be destroyed"


def test_a_wrong_serial_is_refused_with_both_named(tree):
    make_ext4(tree.root / "dev/sda")
    refusals = against(tree, serial="S6Z1NX0W100001")
    assert refusals["destroy-data"] == f"--destroy-data names S6Z1NX0W100001, this drive is {SERIAL}"
    assert refusals["signature"] == "ext4"
    with (
        pytest.raises(UnsafeTarget, match="give --destroy-data that drive's serial"),
        guard.hold(find(SERIAL, tree.root), "S6Z1NX0W100001", tree.root),
    ):
        pass


@pytest.mark.parametrize("serial", ["", SERIAL.lower(), SERIAL[:-1]])
def test_a_serial_that_is_nearly_right_is_wrong_also_where_there_is_nothing_to_destroy(tree, serial):
    assert list(against(tree, serial=serial)) == ["destroy-data"]


@pytest.mark.parametrize(
    "script, why",
    [
        (
            'echo \'{"signatures": [{"device":"sda","offset":"0x218","type":"LVM2_member","uuid":"x","label":null}]}\'',
            "LVM2_member",
        ),
        # what wipefs of util-linux 2.38 prints where a GPT and a file system lie on one disk
        (
            'echo \'{"signatures": [{"type":"gpt"},{"type":"zfs_member"},{"type":"zfs_member"},{"type":"PMBR"}]}\'',
            "PMBR, gpt, zfs_member",
        ),
        ("", ""),
        ("echo '{\"signatures\": [\n\n   ]\n}'", ""),
        ("echo garbage", "cannot tell"),
        ("echo '{}'", "cannot tell"),
        ("echo '[1]'", "cannot tell"),
        ("echo '{\"signatures\": [1]}'", "cannot tell"),
        (
            "echo 'wipefs: error: /dev/sda: probing initialization failed: No medium found' >&2; exit 1",
            "No medium found",
        ),
    ],
)
def test_what_wipefs_says(tree, tmp_path, monkeypatch, script, why):
    fake_wipefs(tmp_path, monkeypatch, script)
    refusals = against(tree)
    assert (
        refusals.get("signature", "") == why
        if "cannot" not in why and "medium" not in why
        else why in refusals["signature"]
    )


def test_a_wipefs_that_hangs_or_is_missing_counts_as_content(tree, tmp_path, monkeypatch):
    fake_wipefs(tmp_path, monkeypatch, "exec sleep 60")
    monkeypatch.setattr(guard, "WIPEFS_TIMEOUT_S", 0.2)
    assert "timed out" in against(tree)["signature"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert "wipefs" in against(tree)["signature"]


def fake_wipefs(tmp_path, monkeypatch, script):
    tool = tmp_path / "bin/wipefs"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")


def test_a_dry_run_names_every_reason_and_then_refuses(tree, monkeypatch):
    tree.mount("sda", "/mnt")
    drive = find(SERIAL, tree.root)
    real, lines = guard.refusals, []
    monkeypatch.setattr(guard, "refusals", lambda drive, serial, resumed: real(drive, serial, tree.root))
    with pytest.raises(UnsafeTarget, match="1 reasons against it"):
        guard.announce_refusals(drive, SERIAL, lines.append)
    assert lines == ["refused, mounted: sda on /mnt"]
