"""Write amplification of a drive that reports host and media bytes by flexible data placement, log 22h."""

import pytest

from guest.qemu import FDP, OLDEST_QEMU_WITH_FDP
from ssdrig.drive.wear import wa

pytestmark = pytest.mark.slow

MIB = 1 << 20


def test_media_bytes_of_an_fdp_drive_give_its_write_amplification(machine, needs):
    if machine.qemu_version[0] < OLDEST_QEMU_WITH_FDP:
        pytest.skip(
            f"not run: QEMU {'.'.join(map(str, machine.qemu_version))} has no FDP, {OLDEST_QEMU_WITH_FDP}.0 and later"
            " have"
        )
    needs("nvme", "smartctl")
    rows = {row["serial"]: row for row in machine.ssdrig("drives", "--json", "--no-smart").json()}
    node = rows[FDP.serial]["node"]  # not the path below it: with a subsystem, the kernel has nvme1c1n1 too
    # a page that is all zeros is no counter to the tool, so the drive must have counted something
    machine.do("zero", node, 4 * MIB, 0, MIB // 2)
    before = machine.ssdrig("wear", FDP.serial, "--json").json()
    machine.do("zero", node, 64 * MIB, 0, MIB // 2)
    after = machine.ssdrig("wear", FDP.serial, "--json").json()
    assert (after["nand_written_source"], after["nand_written_unit_bytes"]) == ("log 22h", 1)
    # QEMU counts as media bytes those of the host and, each time that a reclaim unit is left for the next, what the
    # last command found free in it ("eventual GC overhead"): units of 1 MiB, written by 512 KiB, count 1.5 MiB.
    assert abs(after["host_written_bytes"] - before["host_written_bytes"] - 64 * MIB) < after["host_written_unit_bytes"]
    assert after["nand_written_bytes"] - before["nand_written_bytes"] == 96 * MIB
    # its own host bytes are exact; those of log 02h, above, come in units of 512 000
    assert after["fdp_host_written_bytes"] - before["fdp_host_written_bytes"] == 64 * MIB
    found = wa.between(before, after)
    assert (found.value, found.source, found.host_bytes, found.nand_bytes) == (
        1.5,
        "log 22h / log 22h",
        64 * MIB,
        96 * MIB,
    ), found.why
    assert found.error < 1e-6
