"""Polled completions of an NVMe drive, through an unmodified kernel whose driver has polled queues, and one without."""

import pytest

from guest.qemu import NVME

pytestmark = pytest.mark.slow

PLAN = """
schema = 1
name = "polling"
title = "Polled reads"
about = "A fill, then polled reads."
source = "none"
[[step]]
name = "fill"
do = "fill"
[[step]]
name = "polled"
do = "load"
pattern = "random"
read = 100
block = "4 KiB"
qd = 4
engine = "polled"
amount = "1 MiB"
"""
QUEUES = """
at=$(basename $(readlink -f /sys/block/nvme0n1/device/device))
echo $at > /sys/bus/pci/drivers/nvme/unbind
echo {} > /sys/module/nvme/parameters/poll_queues
echo $at > /sys/bus/pci/drivers/nvme/bind
for i in $(seq 100); do test -e /sys/block/nvme0n1 && break; sleep 0.1; done
cat /sys/block/nvme0n1/queue/io_poll /sys/block/nvme0n1/device/serial
"""


@pytest.fixture
def polls(guest, needs):
    """Gives the driver of NVMe drives a number of polled queues; none at the end."""
    needs("nvme", "smartctl")

    def give(number: int) -> bool:
        polls, serial = guest.sh(QUEUES.format(number)).split()
        assert serial == NVME.serial
        return polls == "1"

    yield give
    give(0)


def _run(guest):
    plan = "/dev/shm/polling.toml"
    guest.sh(f"cat > {plan} <<'END'\n{PLAN}END\nrm -rf /dev/shm/polling")
    words = ("--drive", NVME.serial, "--destroy-data", NVME.serial, "--runs", "/dev/shm/polling", "--json")
    return guest.ssdrig("run", plan, *words)


def test_a_drive_with_polled_queues_is_polled(guest, polls):
    assert polls(1)
    done = _run(guest)
    assert done.exit_code == 0, str(done)
    folder = done.json()["run"]
    assert guest.sh(f"cat $(find {folder} -name '*.fio')").count("hipri=1") == 1
    report = guest.ssdrig("report", folder, "--json").json()
    row = next(row for row in report["rows"] if row["path"] == "polled")
    assert row.get("why") is None and "of a core" not in str(row), row


def test_without_polled_queues_the_load_is_not_run(guest, polls):
    assert not polls(0)
    done = _run(guest)
    assert done.exit_code == 0, str(done)
    report = guest.ssdrig("report", done.json()["run"], "--json").json()
    assert next(row for row in report["rows"] if row["path"] == "polled")["why"] is not None
