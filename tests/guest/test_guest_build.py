"""How the guest is made: the kernel package, the order of its modules, the initramfs."""

import lzma
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from guest import initramfs, qemu
from guest.kernel import NoKernel, load_order, module_bytes, real_package

# `apt-cache show --no-all-versions linux-image-amd64` of Debian 12 and 13, shortened
DEBIAN_12 = "Package: linux-image-amd64\nVersion: 6.1.192-2\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.192-2)\n"
DEBIAN_13 = (
    "Package: linux-image-amd64\nVersion: 6.12.48-1\nDepends: linux-image-6.12.48+deb13-amd64 (= 6.12.48-1)\nSection:"
    " kernel\n"
)


def module(depends: str = "", *more: str) -> bytes:
    """The .modinfo entries as in a module, between other bytes."""
    return (
        b"\x7fELF\0"
        + b"".join(f"{entry}\0".encode() for entry in ("license=GPL", f"depends={depends}", *more, "name=x"))
        + b"\1\2"
    )


def test_package_of_the_kernel():
    assert real_package(DEBIAN_12) == "linux-image-6.1.0-56-amd64"
    assert real_package(DEBIAN_13) == "linux-image-6.12.48+deb13-amd64"
    with pytest.raises(NoKernel):
        real_package("Package: linux-image-amd64\nDepends: linux-image\n")


def test_modules_load_after_what_they_depend_on():
    modules = {
        "nvme_tcp": module("nvme-core,nvme-fabrics"),
        "nvme_fabrics": module("nvme-core"),
        "nvme_core": module("t10-pi"),
        "t10_pi": module(),
        "ext4": module("mbcache", "softdep=pre: crc32c "),
        "mbcache": module(),
        "crc32c": module(),
        "sd_mod": module("t10-pi"),
    }
    order = load_order(("sd_mod", "nvme_tcp", "built_in", "ext4"), modules.get)
    assert list(order) == ["t10_pi", "sd_mod", "nvme_core", "nvme_fabrics", "nvme_tcp", "mbcache", "crc32c", "ext4"]
    assert order["mbcache"] == modules["mbcache"]


def test_modules_are_unpacked(tmp_path):
    (tmp_path / "a.ko").write_bytes(b"plain")
    (tmp_path / "b.ko.xz").write_bytes(lzma.compress(b"packed"))
    assert module_bytes(tmp_path / "a.ko") == b"plain"
    assert module_bytes(tmp_path / "b.ko.xz") == b"packed"
    with pytest.raises(NoKernel, match="zst"):
        module_bytes(Path("c.ko.zst"))


def test_the_signature_of_a_module_is_left_out(tmp_path):
    code, signature, header = b"\x7fELF code", b"s" * 300, bytes((0, 0, 2, 0, 0, 0, 0, 0))
    (tmp_path / "signed.ko").write_bytes(code + signature + header + (300).to_bytes(4, "big") + initramfs.SIGNED)
    (tmp_path / "plain.ko").write_bytes(code)
    assert initramfs.unsigned(tmp_path / "signed.ko") == initramfs.unsigned(tmp_path / "plain.ko") == code


def test_initramfs_is_what_cpio_reads(tmp_path):
    cpio = [shutil.which("cpio")] if shutil.which("cpio") else [shutil.which("busybox"), "cpio"]
    if not cpio[0]:
        pytest.skip("neither cpio nor busybox here to read the archive with")
    archive = initramfs.newc(
        [("d", 0o040755, b""), ("d/odd", 0o100644, b"12345"), ("empty", 0o100600, b""), ("link", 0o120777, b"d/odd")]
    )
    listed = subprocess.run([*cpio, "-t"], input=archive, capture_output=True, check=True).stdout.decode().split()
    assert listed == ["d", "d/odd", "empty", "link", "dev/console"]
    for one in ("d/odd", "link"):
        subprocess.run([*cpio, "-id", one], input=archive, capture_output=True, check=True, cwd=tmp_path)
    assert (tmp_path / "d/odd").read_bytes() == b"12345"
    assert (tmp_path / "link").readlink() == Path("d/odd")


def test_the_clock_of_the_guest_is_this_machines(machine):
    looks, clock = [], "import time; print(time.monotonic_ns())"
    machine.python(clock)  # imports what the agent has not yet
    for pause_s in (5, 0):
        before_ns = time.monotonic_ns()
        guest_ns = int(machine.python(clock).stdout)
        looks.append((before_ns, guest_ns, time.monotonic_ns()))
        time.sleep(pause_s)
    (first_before_ns, first_ns, first_after_ns), (last_before_ns, last_ns, last_after_ns) = looks
    assert 0.99 * (last_before_ns - first_after_ns) < last_ns - first_ns < 1.01 * (last_after_ns - first_before_ns)


def test_frequency_of_the_time_stamp_counter_is_seen_alike_in_short_and_long_counts():
    if qemu.tsc_kHz() is None:
        pytest.skip("this machine lets no program write code that it runs")
    assert qemu.tsc_kHz(0.02) == pytest.approx(qemu.tsc_kHz(0.5), rel=0.001)
