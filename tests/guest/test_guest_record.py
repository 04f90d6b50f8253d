"""`record` and `read-map` on a mounted, working file system of an unmodified kernel: nothing of theirs is written, what
they count is what the kernel counts, and nothing else than reading has become possible."""

import csv
import hashlib
import json

import pytest

from guest.qemu import NVME

pytestmark = pytest.mark.slow

RUNS = "/dev/shm/runs"
MOUNTED = f"""
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/nvme0n1
mkdir -p /mnt/kept
mount -t ext4 /dev/nvme0n1 /mnt/kept
dd if=/dev/urandom of=/mnt/kept/before bs=64k count=200 2>/dev/null
sync
sleep 1
sync
rm -rf {RUNS}
"""
STAT = "cat /sys/block/nvme0n1/stat"
COUNTERS = f"cat {RUNS}/*/recorded/*/counters.csv"


def digest(guest) -> str:
    return hashlib.sha256((guest.folder / NVME.id).read_bytes()).hexdigest()


def stat(guest) -> list[int]:
    return [int(field) for field in guest.sh(STAT).split()]


@pytest.fixture
def mounted(guest, needs):
    """The guest with a file system on its NVMe drive that is mounted and holds data."""
    needs("mkfs.ext4", "nvme")
    assert guest.sh("cat /sys/block/nvme0n1/device/serial").strip() == NVME.serial
    guest.sh(MOUNTED)
    yield guest
    guest.sh("umount /mnt/kept")


def recorded(guest, *words: str) -> tuple[list[int], list[int]]:
    """The first and the last reading of a recording."""
    done = guest.ssdrig("record", "--drive", NVME.serial, "--runs", RUNS, "--quiet", *words, timeout_s=400)
    assert done.exit_code == 0, str(done)
    head, *rows = list(csv.reader(guest.sh(COUNTERS).splitlines()))
    at = head.index("reads")
    return tuple([int(field) for field in row[at : at + 17]] for row in (rows[0], rows[-1]))


def test_a_recording_writes_nothing(mounted):
    before, counts = digest(mounted), stat(mounted)
    first, last = recorded(mounted, "--", "sleep", "3")
    after = stat(mounted)
    assert after[6] == counts[6] and after[13] == counts[13] and digest(mounted) == before  # sectors written, discarded
    assert first[6] == last[6] == counts[6]


def test_what_a_command_does_is_counted_as_the_kernel_counts_it(mounted):
    counts = stat(mounted)
    script = "dd if=/dev/zero of=/mnt/kept/new bs=64k count=160 conv=fsync 2>/dev/null && sync"
    first, last = recorded(mounted, "--", "sh", "-c", script)
    after = stat(mounted)
    assert [first[at] for at in (4, 6)] == [counts[at] for at in (4, 6)]  # writes, sectors: nothing before it began
    assert [last[at] for at in (4, 6, 15)] == [after[at] for at in (4, 6, 15)]  # nor past its end
    assert (last[6] - first[6]) * 512 >= 160 << 16


def test_a_map_reads_a_drive_in_use_and_writes_nothing(mounted):
    before, counts = digest(mounted), stat(mounted)
    done = mounted.ssdrig("read-map", "--drive", NVME.serial, "--json", "--quiet", "--time", "300", timeout_s=400)
    assert done.exit_code == 0, str(done)
    document = json.loads(done.stdout)
    assert document["whole"] and document["stride"] == 1 and document["cells"] == NVME.size_bytes >> 20
    assert document["cells_empty"] > 0 and document["MB_per_s_median"] > 0 and document["unreadable"] == []
    after = stat(mounted)
    assert after[6] == counts[6] and digest(mounted) == before
    assert after[2] - counts[2] >= NVME.size_bytes // 512


def test_nothing_but_reading_is_let_through(mounted):
    before = digest(mounted)
    for words in (
        ("purge", NVME.serial, "--destroy-data", NVME.serial),
        ("run", "consistency", "--drive", NVME.serial, "--destroy-data", NVME.serial, "--runs", RUNS),
        ("trace", "play", "/nowhere", "--drive", NVME.serial, "--destroy-data", NVME.serial),
    ):
        done = mounted.ssdrig(*words, timeout_s=400)
        assert done.exit_code in (2, 3), str(done)
    mounted.sh("sync")
    assert digest(mounted) == before
