"""Flexible data placement through an unmodified kernel and nvme-cli: a drive that QEMU emulates from 8.0 on, and the
SIMULATED drive over NVMe/TCP. Its configuration, handles, bytes and events; writes by handle."""

import json

import pytest
from serving import Serving

from guest.connected import Connected
from guest.qemu import FDP, OLDEST_QEMU_WITH_FDP
from ssdrig.drive.wear import wa

pytestmark = pytest.mark.slow

MIB = 1 << 20
GROUP = ("--endgrp-id=1", "--output-format=json")
READ = """
import dataclasses, json, sys
from ssdrig.drive import inventory, nvme_cli, placement
from ssdrig.base import nvme_fdp
drive = inventory.find(sys.argv[0])
known, why = placement.read(drive)
pages = {"usage": nvme_fdp.decode_21h(nvme_cli.log_page(drive.controller, 0x21, 4096, lsi=1)[0])}
pages["events"] = nvme_fdp.decode_23h(nvme_cli.log_page(drive.controller, 0x23, 4096, lsi=1, lsp=1)[0])
known = known and {"configuration": known.configuration._asdict(), "handles": known.handles, "numbers": known.numbers}
print(json.dumps({"known": known, "why": why, "node": drive.node, "controller": drive.controller, **pages}))
"""
PLACED = ("run", "placement", "--variant", "quick", "--json")


@pytest.fixture
def drive(guest, needs):
    """What of the drive is read, with the guest that it is in."""
    if guest.qemu_version[0] < OLDEST_QEMU_WITH_FDP:
        version = ".".join(map(str, guest.qemu_version))
        pytest.skip(f"not run: QEMU {version} has no FDP, {OLDEST_QEMU_WITH_FDP}.0 and later have")
    needs("nvme", "smartctl")
    return guest, guest.python(READ, FDP.serial).json() | {"serial": FDP.serial}


@pytest.fixture(scope="module")
def connected(machine, tmp_path_factory):
    words = ("--preset", "nvme-tlc", "--capacity", "512MiB", "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    served = Serving(tmp_path_factory.mktemp("fdp"), *words, "--placement-handles", "2")
    try:
        drive = Connected(machine, served)
        yield drive
        drive.end()
    finally:
        served.end()


@pytest.fixture
def over_tcp(connected, needs):
    """The same of the SIMULATED drive."""
    needs("nvme", "smartctl")
    return connected.machine, connected.machine.python(READ, connected.serial).json() | {"serial": connected.serial}


@pytest.fixture(params=["drive", "over_tcp"])
def either(request):
    return request.getfixturevalue(request.param)


def test_media_bytes_of_an_fdp_drive_give_its_write_amplification(drive):
    machine, known = drive
    node = known["node"]  # not the path below it: with a subsystem, the kernel has nvme1c1n1 too
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
    amplification = wa.between(before, after)
    assert (amplification.value, amplification.source, amplification.host_bytes, amplification.nand_bytes) == (
        1.5,
        "log 22h / log 22h",
        64 * MIB,
        96 * MIB,
    ), amplification.why
    assert amplification.error < 1e-6


def at_rest(connected, read):
    """The ledger and what `read` returns, once the drive has written nothing on its own meanwhile."""
    for _ in range(10):
        truth = connected.wait_until_quiet()
        reading = read()
        if connected.ledger()["nand_write_bytes"] == truth["nand_write_bytes"]:
            break
    return truth, reading


def test_statistics_of_the_simulated_drive_are_its_ledgers(over_tcp, connected):
    guest, known = over_tcp
    guest.do("zero", known["node"], MIB, 0, MIB // 2)  # a page that is all zeros is no counter to the tool
    truth_before, before = at_rest(connected, lambda: guest.ssdrig("wear", known["serial"], "--json").json())
    guest.do("zero", known["node"], 16 * MIB, 0, MIB // 2)
    truth, (after, stats) = at_rest(
        connected,
        lambda: (
            guest.ssdrig("wear", known["serial"], "--json").json(),
            guest.run("nvme", "fdp", "stats", known["controller"], *GROUP).json(),
        ),
    )
    assert (int(stats["hbmw"]), int(stats["mbmw"])) == (truth["host_write_bytes"], truth["nand_write_bytes"])
    assert after["fdp_host_written_bytes"] - before["fdp_host_written_bytes"] == 16 * MIB
    amplification = wa.between(before, after)
    spent = [truth[key] - truth_before[key] for key in ("nand_write_bytes", "host_write_bytes")]
    assert amplification.value == pytest.approx(spent[0] / spent[1], abs=amplification.error or 0)


def test_a_write_by_a_handle_fills_its_unit(over_tcp):
    guest, known = over_tcp
    before = known["known"]["handles"]
    placed = ("--dir-type=2", "--dir-spec=1", "--start-block=0", "--block-count=7", "--data-size=4096")
    done = guest.run("nvme", "write", known["node"], *placed, stdin="p" * 4096)
    assert done.exit_code == 0, str(done)
    after = guest.python(READ, known["serial"]).json()["known"]["handles"]
    assert [old[2] - new[2] for old, new in zip(before, after, strict=True)] == [0, 8]


def test_configuration_handles_and_events_are_as_nvme_cli_reads_them(either):
    guest, known = either
    controller, node = known["controller"], known["node"]
    (theirs,) = guest.run("nvme", "fdp", "configs", controller, *GROUP).json()["configs"]
    ours = known["known"]["configuration"]
    assert (ours["groups"], len(ours["handles"]), ours["unit_bytes"]) == (theirs["nrg"], theirs["nruh"], theirs["runs"])
    assert (ours["valid"], ours["group_bits"]) == (bool(theirs["fdpa"] & 0x80), theirs["fdpa"] & 0xF)
    assert known["known"]["numbers"] == [0, 1] and known["usage"] == ["host", "host"]
    status = guest.run("nvme", "fdp", "status", node, "--output-format=json").json()
    assert known["known"]["handles"] == [[row["pid"], row["ruhid"], row["ruamw"]] for row in status["ruhss"]]
    events = guest.run("nvme", "fdp", "events", controller, "--host-events", *GROUP).json()
    assert len(known["events"]) == len(events["events"])


def test_a_reclaim_unit_that_is_left_early_is_an_event(either):
    guest, known = either
    guest.do("zero", known["node"], MIB // 4, 0, MIB // 4)
    enabled = ("--event-types=0", "--enable")
    guest.run("nvme", "fdp", "set-events", known["node"], "--placement-handle=0", *enabled)
    done = guest.run("nvme", "fdp", "update", known["node"], "--pids=0")
    assert done.exit_code == 0, str(done)
    events = guest.ssdrig("wear", known["serial"], "--json").json()["fdp_events"]
    new = events[len(known["events"]) :]
    assert [(event["event"], event["placement_id"]) for event in new] == [("unit_not_filled", 0)]


def test_writes_go_to_the_handles_that_a_plan_names(drive):
    guest, known = drive
    refused = guest.python(
        "import sys; from ssdrig.drive import inventory, placement\n"
        "print(placement.why_not(inventory.find(sys.argv[0])))",
        FDP.serial,
    ).stdout.strip()
    if refused:
        pytest.skip(f"not run: {refused}")
    # SMART takes seconds in the guest, which a load has to outlast
    done = guest.ssdrig(
        *PLACED, "--set", "time=40 s", "--drive", FDP.serial, "--destroy-data", FDP.serial, "--runs", "/tmp/placed"
    )
    assert done.exit_code == 0, str(done)
    run = done.json()["run"]
    report = guest.ssdrig("report", run, "--json").json()
    rows = {(row["path"], (row["point"] or {}).get("handle")): row["windows"]["all"] for row in report["rows"]}
    handles = [("together", None), ("apart", None), ("each/write", 0), ("each/write", 1)]
    # null, with its reason, where an emulated drive's SMART takes too long next to the load
    assert all(rows[key]["wa"] is None or rows[key]["wa"] >= 1 for key in handles), json.dumps(rows)
    schemes = guest.sh(f"cat {run}/fio/apart/placement.csv").split()
    assert [line.rpartition(",")[2] for line in schemes] == ["0", "1"]
    left = guest.python(READ, FDP.serial).json()["known"]["handles"]
    assert left != known["known"]["handles"]
