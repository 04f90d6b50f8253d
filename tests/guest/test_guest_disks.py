"""Purge, SMART, wear, a whole run and a drive that vanishes, on the kernel's own NVMe and SATA disks."""

import json

import pytest

from guest.machine import COMMAND, NVME, SATA

pytestmark = pytest.mark.slow

MIB = 1 << 20


def pattern(guest, disk, node: str) -> bytes:
    """Write 4 MiB of a pattern at the disk's start, middle and end; returns what it is made of."""
    line = b"this was here before "
    guest.sh(f"""
yes '{line.decode().strip()}' | head -c {4 * MIB} >/run/guest/pattern
for at in 0 {disk.size_bytes // 8 // MIB} {disk.size_bytes // 4 // MIB - 1}; do
    dd if=/run/guest/pattern of={node} bs=4M seek=$at oflag=direct conv=notrunc 2>/dev/null
done; rm /run/guest/pattern""")
    assert line.strip() in outside(guest, disk)
    return line.strip()


def outside(guest, disk) -> bytes:
    """The disk's content as its file outside of the guest holds it."""
    return (guest.folder / disk.id).read_bytes()


@pytest.mark.parametrize(
    "disk, node, method, used",
    [
        (NVME, "/dev/nvme0n1", "auto", "format-secure"),
        (NVME, "/dev/nvme0n1", "discard", "discard"),
        (SATA, "/dev/sda", "auto", "discard"),
    ],
    ids=["nvme-format", "nvme-discard", "sata-discard"],
)
def test_purge(guest, needs, disk, node, method, used):
    needs("nvme", "hdparm")
    was = pattern(guest, disk, node)
    done = guest.ssdrig("purge", disk.serial, "--destroy-data", disk.serial, "--method", method, "--json")
    assert done.exit_code == 0, done
    result = done.json()
    assert (result["method"], result["ok"]) == (used, True)
    assert result["effect"]["kept"] == 0 and result["effect"]["proving"] > 0
    assert f"serial {disk.serial}" in done.stderr  # said before it was done
    assert was not in outside(guest, disk)


def test_wear_and_watch(guest, needs):
    needs("smartctl")
    guest.sh("dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=64 oflag=direct 2>/dev/null")
    wear = guest.ssdrig("wear", NVME.serial, "--json")
    assert wear.exit_code == 0, wear
    nvme = wear.json()
    assert (nvme["serial"], nvme["protocol"], nvme["simulated"], nvme["exit_status_bits"]) == (
        NVME.serial,
        "NVMe",
        False,
        [],
    )
    assert nvme["host_written_bytes"] >= 64 * MIB and nvme["host_written_unit_bytes"] == 512_000
    assert (
        nvme["nand_written_bytes"] is None and nvme["wa"]["value"] is None
    )  # QEMU's drive has no NAND counter, so none is told
    watch = guest.ssdrig("watch", NVME.serial, SATA.serial, "--once", "--json", "--dir", "/run/guest/watch")
    assert watch.exit_code == 0, watch
    polls = [json.loads(line) for line in watch.stdout.splitlines()]
    # what QEMU's drives say
    assert {poll["drive"]["serial"]: poll["snapshot"]["temperature_C"] for poll in polls} == {
        NVME.serial: 50,
        SATA.serial: 31,
    }
    kept = guest.sh("tail -qn 1 " + " ".join(poll["kept"]["file"] for poll in polls)).splitlines()
    assert sorted(json.loads(line)["drive"]["serial"] for line in kept) == [NVME.serial, SATA.serial]


RUN = (
    "run",
    "consistency",
    "--drive",
    NVME.serial,
    "--destroy-data",
    NVME.serial,
    "--purge",
    "format",
    "--smart-interval",
    "2",
    "--json",
)


def test_a_whole_run(guest, needs):
    needs("fio", "smartctl", "nvme")
    done = guest.ssdrig(*RUN, "--duration", "5", "--runs", "/run/guest/runs", timeout_s=180)
    assert done.exit_code == 0, done
    run = done.json()
    assert (run["state"], run["exit_code"]) == ("complete", 0)
    facts = json.loads(guest.sh(f"cat {run['run']}/run.json"))
    assert (facts["simulated"], facts["drive"]["serial"], facts["drive"]["interface"]) == (False, NVME.serial, "NVMe")
    events = [json.loads(line) for line in guest.sh(f"cat {run['run']}/events.jsonl").splitlines()]
    assert [e["method"] for e in events if e["kind"] == "purge"] == ["format"]
    assert [e["step"] for e in events if e["kind"] == "step.end" and e["ok"]][:4] == ["check", "purge", "fill", "load"]
    polls = [
        json.loads(guest.sh(f"cat {run['run']}/smart/{n:03}.json"))
        for n in (1, len([e for e in events if e["kind"] == "smart.end"]))
    ]
    assert [poll["reason"] for poll in polls] == ["before", "after"]
    out = guest.sh(f"cat {run['run']}/fio/load/out.json")  # a document a second, the last one covers the whole
    wrote = json.loads(out[out.rindex("\n{\n") :])["jobs"][0]["write"]["io_bytes"]
    counted = [
        int(poll["smartctl"]["nvme_smart_health_information_log"]["data_units_written"]) * 512_000 for poll in polls
    ]
    assert abs(counted[1] - counted[0] - wrote) <= 512_000  # the drive's own counter and fio agree


def test_a_drive_that_vanishes_ends_the_run(guest, needs):
    """Surprise removal, as a power cut of the drive: the run ends with the drive's exit code and a closed run
    folder."""
    needs("fio", "smartctl", "nvme")
    guest.start_python("vanish", COMMAND, "ssdrig", *RUN, "--duration", "120", "--runs", "/run/guest/vanishing")
    guest.until(
        'grep -qs \'"reason": "poll"\' /run/guest/vanishing/*/events.jsonl', 150, show="/run/guest/jobs/vanish.err"
    )
    guest.unplug(NVME)
    try:
        done = guest.ended("vanish")
        assert done.exit_code == 4, done
        last = json.loads(guest.sh("tail -n 1 /run/guest/vanishing/*/events.jsonl"))
        assert (last["kind"], last["state"], last["exit_code"]) == ("run.end", "failed", 4)
    finally:
        guest.plug(NVME)
        guest.until("[ -b /dev/nvme0n1 ]")
