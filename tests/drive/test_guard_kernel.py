"""The guard on loop devices of the real kernel, over files of ours."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import time

import pytest
from guarding import by_hand, make_ext4
from loop_device import loop_device

from ssdrig.drive import guard, sysfs
from ssdrig.drive.inventory import all_drives


@pytest.fixture
def loop(tmp_path):
    """A Drive made by hand of a loop device on a file: refused by its kind, so that only the other refusals are looked
    at."""
    file = tmp_path / "disk"
    file.touch()
    os.truncate(file, 64 << 20)
    with loop_device(file) as node:
        number = os.stat(node).st_rdev
        yield by_hand(os.path.basename(node), os.major(number), os.minor(number), 64 << 20)


@contextlib.contextmanager
def undone(do, undo):
    if not shutil.which(do[0]):
        pytest.skip(f"no {do[0]}")  # Debian 13 has addpart in a package of its own, util-linux-extra
    done = subprocess.run(do, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{' '.join(do)}: {done.stderr.strip().partition(chr(10))[0]}")
    try:
        yield
    finally:
        for _ in range(50):  # the kernel may be busy with it for a moment
            if not (last := subprocess.run(undo, capture_output=True, text=True)).returncode:
                break
            time.sleep(0.1)
        else:
            raise AssertionError(last.stderr)


def real(drive, serial="HAND") -> dict[str, str]:
    """unseen: in a container, the tests' own place."""
    return {r.check: r.why for r in guard.refusals(drive, serial) if r.check not in ("kind", "unseen")}


def test_real_an_idle_device_has_only_its_kind_against_it(loop):
    assert real(loop) == {} and real(loop, None) == {}
    assert [r.check for r in guard.refusals(loop, "HAND")] == ["kind"]


def test_real_signatures(loop):
    make_ext4(loop.node)
    assert real(loop, None) == {"signature": "ext4"} and real(loop) == {}


def test_real_a_partition_table_that_the_kernel_has_not_read(loop):
    """An MBR (UEFI 2.10, 5.2.1) with one Linux partition."""
    with open(loop.node, "r+b") as disk:
        mbr = bytearray(512)
        mbr[446 + 4], mbr[446 + 8], mbr[446 + 12 : 446 + 16], mbr[510:512] = (
            0x83,
            1,
            (2048).to_bytes(4, "little"),
            b"\x55\xaa",
        )
        disk.write(mbr)
    assert real(loop, None) == {"signature": "dos"}


def test_real_a_mounted_disk(loop, tmp_path):
    make_ext4(loop.node)
    point = tmp_path / "mnt"
    point.mkdir()
    with undone(["mount", loop.node, str(point)], ["umount", str(point)]):
        refusals = real(loop)
        assert (
            f"{loop.name} on {point}" in refusals["mounted"].split(", ") and "refuses exclusive use" in refusals["busy"]
        )


def test_real_a_mounted_partition(loop, tmp_path):
    with undone(["addpart", loop.node, "1", "2048", "65536"], ["delpart", loop.node, "1"]):
        part = f"{loop.node}p1"
        make_ext4(part)
        assert real(loop) == {} and real(loop, None)["signature"] == f"partitions {loop.name}p1"
        point = tmp_path / "mnt"
        point.mkdir()
        with undone(["mount", part, str(point)], ["umount", str(point)]):
            refusals = real(loop)
            assert f"{loop.name}p1 on {point}" in refusals["mounted"].split(", ") and "busy" in refusals


def test_real_swap(loop):
    if not shutil.which("mkswap"):
        pytest.skip("no mkswap here")
    subprocess.run(["mkswap", loop.node], check=True, capture_output=True)
    with undone(["swapon", "--priority", "-2", loop.node], ["swapoff", loop.node]):
        refusals = real(loop)
        assert refusals["swap"] == f"swap on {loop.name}" and "busy" in refusals


def test_real_a_device_mapper_holder(loop):
    if not shutil.which("dmsetup"):
        pytest.skip("no dmsetup here")
    name = f"ssdrig-test-{os.getpid()}"
    with undone(["dmsetup", "create", name, "--table", f"0 65536 linear {loop.node} 0"], ["dmsetup", "remove", name]):
        refusals = real(loop)
        assert f"({name}) is on it" in refusals["holder"] and "busy" in refusals


def test_real_an_exclusive_open(loop):
    fd = os.open(loop.node, os.O_RDONLY | os.O_EXCL)
    try:
        assert list(real(loop)) == ["busy"]
    finally:
        os.close(fd)
    assert real(loop) == {}


def test_real_a_program_that_writes(loop):
    with subprocess.Popen(
        ["sh", "-c", f"exec 3<>{loop.node}; echo ready; read x"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        try:
            writer.stdout.readline()
            assert real(loop) == {"writer": f"open for writing by process {writer.pid} (sh)"}
        finally:
            writer.kill()


def test_real_a_read_only_device(loop):
    with undone(["blockdev", "--setro", loop.node], ["blockdev", "--setrw", loop.node]):
        assert list(real(loop)) == ["read-only"]


def test_real_a_node_of_another_device(loop):
    other = dataclasses.replace(loop, minor=loop.minor + 1)
    assert "another device's" in real(other)["open"]


def test_real_holding_is_seen_by_the_kernel(loop, monkeypatch, tmp_path):
    monkeypatch.setattr(guard.inventory, "why_not_a_drive", lambda name, root="/": "")  # let a loop device pass
    monkeypatch.setattr(guard.inventory, "all_drives", lambda root="/": [loop])
    monkeypatch.setattr(guard, "FOLDER", str(tmp_path / "locks"))
    with guard.hold(loop, "HAND") as held:
        with pytest.raises(OSError, match="busy"):
            os.open(loop.node, os.O_RDONLY | os.O_EXCL)
        assert subprocess.run(["mkfs.ext4", "-q", loop.node], capture_output=True).returncode, "others are kept off"
        assert (
            held.recheck() == loop
            and held.fd >= 0
            and held.sequence == open(f"/sys/block/{loop.name}/diskseq").read().strip()
        )
    os.close(os.open(loop.node, os.O_RDONLY | os.O_EXCL))


def test_real_the_disk_of_this_system_is_refused():
    refusals = {d.name: guard.refusals(d, d.serial) for d in all_drives()}
    source = subprocess.run(
        ["findmnt", "--noheadings", "--output", "SOURCE", "/"], capture_output=True, text=True
    ).stdout.strip()
    disk = next((name for name in refusals if source.startswith(f"/dev/{name}")), None)
    if disk is None:
        pytest.skip(f"the root file system is on {source or 'nothing'}, which is no disk seen here")
    assert "boot" in [r.check for r in refusals[disk]] and all(r.override is None for r in refusals[disk])


def test_long_tables_are_read_to_their_end(tmp_path):
    """65 530 mappings of one process, or many containers' mounts, are more than 4 MiB."""
    (tmp_path / "maps").write_text("x" * 99 + "\n" + ("y" * 99 + "\n") * 100_000 + "last")
    assert sysfs.lines(str(tmp_path), "maps")[-1] == "last"
