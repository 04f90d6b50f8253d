"""The guest's initramfs: busybox, the modules and init, as a cpio archive in the `newc` format (kernel documentation,
"initramfs buffer format")."""

import os
import shutil
import stat
from pathlib import Path

from guest.kernel import Kernel, NoKernel

FOLDERS = ("dev", "proc", "sys", "bin", "modules", "host", "rw", "new")

# Runs as process 1. The clone's path, the agent's Python and the network are in the kernel's command line.
INIT = r"""#!/bin/sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
echo "init: loading modules, $(cut -d" " -f1 /proc/uptime) s"
for module in $(cat /modules/order); do insmod /modules/$module || echo "init: $module does not load"; done
echo "init: modules loaded, $(cut -d" " -f1 /proc/uptime) s"
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 host /host || exec sh
mount -t tmpfs tmpfs /rw
mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work overlay /new
for kind in proc sysfs; do mount -t $kind $kind /new/${kind%fs}; done
mount -t devtmpfs devtmpfs /new/dev
mkdir -p /new/dev/shm /new/dev/pts
mount -t devpts devpts /new/dev/pts
mount -t tmpfs tmpfs /new/dev/shm
mount -t tmpfs tmpfs /new/run
mkdir /new/run/lock /new/run/guest
cp /bin/busybox /new/run/guest/busybox
ln -s /proc/self/fd /new/dev/fd
# smartctl compiles a pattern for each drive that it knows, half of its time here; none of them is in this guest
known=var/lib/smartmontools/drivedb/drivedb.h
if [ -e /host/$known ]; then sed '/"DEFAULT"/,/^  }/{/^  }/q}' /host/$known >/new/$known; fi
ip link set lo up
ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up
agent=$(sed -n 's/.*ssdrig_agent=\([^ ]*\).*/\1/p' /proc/cmdline)
python=$(sed -n 's/.*ssdrig_python=\([^ ]*\).*/\1/p' /proc/cmdline)
hostname guest
echo "init: starting the agent, $(cut -d" " -f1 /proc/uptime) s after boot"
umount /proc /sys
then="echo init: the agent has ended; /run/guest/busybox poweroff -f"
exec switch_root /new /run/guest/busybox sh -c "$python -ISu $agent; $then"
"""


def busybox() -> Path:
    """The static busybox. Raises NoKernel when there is none."""
    program = shutil.which("busybox")
    if not program or b"/ld-linux" in Path(program).read_bytes()[:4096]:
        raise NoKernel("no static busybox (package busybox-static)")
    return Path(program)


def build(kernel: Kernel, path: Path) -> None:
    """Write the initramfs that boots this kernel to path."""
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in FOLDERS]
    entries.append(("init", stat.S_IFREG | 0o755, INIT.encode()))
    entries.append(("bin/busybox", stat.S_IFREG | 0o755, busybox().read_bytes()))
    entries.append(("bin/sh", stat.S_IFLNK | 0o777, b"busybox"))
    order = "".join(f"{module.name}\n" for module in kernel.modules)
    entries.append(("modules/order", stat.S_IFREG | 0o644, order.encode()))
    entries += [(f"modules/{module.name}", stat.S_IFREG | 0o644, unsigned(module)) for module in kernel.modules]
    path.write_bytes(newc(entries))


SIGNED = b"~Module signature appended~\n"  # linux/module_signature.h; 12 bytes before it, the signature's length


def unsigned(module: Path) -> bytes:
    """The module without the signature at its end, which the kernel would check, and needs not."""
    content = module.read_bytes()
    if not content.endswith(SIGNED):
        return content
    end = len(content) - len(SIGNED)
    return content[: end - 12 - int.from_bytes(content[end - 4 : end], "big")]


def newc(entries: list[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive of (name, mode, content), owned by root, plus /dev/console for init's own words."""
    out = bytearray()
    console = ("dev/console", stat.S_IFCHR | 0o600, b"")
    for number, (name, mode, content) in enumerate([*entries, console, ("TRAILER!!!", 0, b"")], 1):
        device = os.makedev(5, 1) if stat.S_ISCHR(mode) else 0
        encoded = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, os.major(device), os.minor(device), len(encoded), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        out += bytes(-len(out) % 4)
        out += content
        out += bytes(-len(out) % 4)
    return bytes(out)
