"""Purge, SMART, wear, a whole run and a drive that vanishes, on the kernel's own NVMe and SATA disks."""

import json

import pytest

from guest.machine import COMMAND
from guest.qemu import NVME, SATA

pytestmark = pytest.mark.slow

MIB = 1 << 20


def pattern(guest, disk, node: str) -> bytes:
    """Write 4 MiB of a pattern at the disk's start, middle and end; returns what it is made of."""
    line = "this was here before"
    guest.do("fill", node, f"{line}\n", [0, disk.size_bytes // 2, disk.size_bytes - 4 * MIB], 4 * MIB)
    assert line.encode() in outside(guest, disk)
    return line.encode()


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
    assert done.exit_code == 0, str(done)
    result = done.json()
    assert (result["method"], result["ok"]) == (used, True)
    assert result["effect"]["kept"] == 0 and result["effect"]["proving"] > 0
    assert f"serial {disk.serial}" in done.stderr  # said before it was done
    assert was not in outside(guest, disk)


def test_wear_and_watch(guest, needs):
    needs("smartctl")
    guest.do("zero", "/dev/nvme0n1", 64 * MIB)
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
    watch = guest.ssdrig("watch", NVME.serial, SATA.serial, "--once", "--json", "--history", "/run/guest/watch")
    assert watch.exit_code == 0, str(watch)
    polls = [json.loads(line) for line in watch.stdout.splitlines()]
    # what QEMU's drives say
    assert {poll["drive"]["serial"]: poll["snapshot"]["temperature_C"] for poll in polls} == {
        NVME.serial: 50,
        SATA.serial: 31,
    }
    polls_kept = guest.do("texts", *(poll["kept"]["file"] for poll in polls))
    assert sorted(json.loads(text.splitlines()[-1])["drive"]["serial"] for text in polls_kept) == [
        NVME.serial,
        SATA.serial,
    ]


FILES = ("run.json", "events.jsonl", "fio/load/out.json")
RUN = ("run", "consistency", "--drive", NVME.serial, "--destroy-data", NVME.serial, "--json")


def test_a_whole_run(guest, needs):
    needs("fio", "smartctl", "nvme")
    done = guest.ssdrig(
        *RUN, "--purge", "format", "--duration", "4", "--smart-interval", "2", "--runs", "/run/guest/runs"
    )
    assert done.exit_code == 0, str(done)
    run = done.json()
    assert (run["state"], run["exit_code"]) == ("complete", 0)
    facts, events, out = guest.do("texts", *(f"{run['run']}/{name}" for name in FILES))
    facts, events = json.loads(facts), [json.loads(line) for line in events.splitlines()]
    assert (facts["simulated"], facts["drive"]["serial"], facts["drive"]["interface"]) == (False, NVME.serial, "NVMe")
    assert [e["method"] for e in events if e["kind"] == "purge"] == ["format"]
    assert [e["step"] for e in events if e["kind"] == "step.end" and e["ok"]][:4] == ["check", "purge", "fill", "load"]
    last = len([e for e in events if e["kind"] == "smart.end"])
    polls = [json.loads(text) for text in guest.do("texts", *(f"{run['run']}/smart/{n:03}.json" for n in (1, last)))]
    assert [poll["reason"] for poll in polls] == ["before", "after"]
    # fio writes a document a second; the last one covers the whole load
    wrote = json.loads(out[out.rindex("\n{\n") :])["jobs"][0]["write"]["io_bytes"]
    counted = [
        int(poll["smartctl"]["nvme_smart_health_information_log"]["data_units_written"]) * 512_000 for poll in polls
    ]
    assert abs(counted[1] - counted[0] - wrote) <= 512_000  # the drive's own counter and fio agree


def test_a_drive_that_vanishes_ends_the_run(guest, needs):
    """Surprise removal, as a power cut of the drive: the run ends with the drive's exit code and a closed run
    folder."""
    needs("fio", "smartctl", "nvme")
    words = ("--duration", "120", "--smart-interval", "1", "--runs", "/run/guest/vanishing")
    words += ("--purge", "discard", "--set", "range=25 %")  # what comes before the load has its test above
    guest.start_python("vanish", COMMAND, "ssdrig", *RUN, *words)
    events = "/run/guest/vanishing/*/events.jsonl"
    guest.do("wait_for", events, '"reason": "poll"')
    guest.unplug(NVME)
    try:
        done = guest.ended("vanish")
        assert done.exit_code == 4, str(done)
        last = json.loads(guest.do("texts", events)[0].splitlines()[-1])
        assert (last["kind"], last["state"], last["exit_code"]) == ("run.end", "failed", 4)
    finally:
        guest.plug(NVME)
        guest.do("wait_for", "/dev/nvme0n1")
