"""The SIMULATED drive as a real NVMe controller: an unmodified kernel, smartctl, nvme-cli and fio in the guest use it
over NVMe/TCP, and its ledger says what really happened."""

import subprocess
import sys
import time

import pytest
from serving import Serving

from guest.connected import Connected
from guest.machine import COMMAND, PATIENTLY, Ended
from ssdrig.drive.wear import wa

pytestmark = pytest.mark.slow

MIB = 1 << 20
PAGE = 4096
CAPACITY_BYTES = 256 * MIB


@pytest.fixture(scope="module")
def drive(machine, tmp_path_factory):
    """A drive whose flash has been written three times over at random, so that its garbage collection works."""
    folder = tmp_path_factory.mktemp("nvme-tcp")
    tool = [sys.executable, "-m", "ssdrig.virtual.serve"]
    aging = [
        "precondition",
        "--preset",
        "sata-tlc",
        "--capacity",
        "256MiB",
        "--fill",
        "random",
        "--drive-writes",
        "3",
        "--state",
        folder / "aged",
    ]
    subprocess.run([*tool, *aging], check=True, capture_output=True)
    drive = ("--preset", "sata-tlc", "--capacity", "256MiB", "--state", str(folder / "aged"))
    served = Serving(folder, *drive, "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    try:
        connected = Connected(machine, served)
        yield connected
        connected.end()
    finally:
        served.end()


# `drives` with this drive alone: all the others are asked in another test
ALONE = """
from ssdrig.drive import inventory
every = inventory.all_drives
inventory.all_drives = lambda *root: [drive for drive in every(*root) if drive.serial == {!r}]
"""


def test_identified_as_an_nvme_drive(drive, needs):
    needs("nvme", "smartctl")
    machine = drive.machine
    smart = machine.run("smartctl", "-x", "--json=cv", drive.controller).json()
    assert (smart["smartctl"]["exit_status"], smart["smart_status"]["passed"]) == (0, True)
    assert (smart["model_name"], smart["serial_number"]) == (drive.served.ready["model"], drive.serial)
    assert smart["nvme_total_capacity"] == CAPACITY_BYTES
    controller = machine.run("nvme", "id-ctrl", drive.controller, "-o", "json").json()
    assert (controller["mn"].strip(), controller["sn"].strip(), controller["nn"]) == (
        drive.served.ready["model"],
        drive.serial,
        1,
    )
    assert controller["oncs"] & 0b1100 == 0b1100  # DSM, write zeroes
    queue = f"/sys/block/{drive.node[5:]}/queue"
    assert machine.do("texts", f"{queue}/write_cache", f"{queue}/fua") == ["write back\n", "1\n"]
    [row] = machine.python(
        ALONE.format(drive.serial) + PATIENTLY + COMMAND, "ssdrig", "drives", "--json", timeout_s=600
    ).json()
    assert (row["interface"], row["simulated"], row["capacity_bytes"], row["health_ok"]) == (
        "NVMe/TCP",
        True,
        CAPACITY_BYTES,
        True,
    )
    assert row["link"].startswith("tcp 10.0.2.2:")


def test_log_pages_agree_with_the_ledger(drive, needs):
    needs("nvme")
    truth = drive.wait_until_quiet()
    smart = drive.machine.run("nvme", "smart-log", drive.controller, "-o", "json").json()
    ocp = drive.machine.run("nvme", "ocp", "smart-add-log", drive.controller, "-o", "json").json()
    group = drive.machine.run("nvme", "endurance-log", drive.controller, "-g", "1", "-o", "json").json()
    written = truth["host_write_bytes"]
    assert 0 <= int(smart["data_units_written"]) * 512_000 - written < 512_000  # the page rounds up
    assert (int(smart["power_cycles"]), int(smart["unsafe_shutdowns"])) == (
        truth["power_cycles"],
        truth["unsafe_shutdowns"],
    )
    assert ocp["Physical media units written"] == {"hi": 0, "lo": truth["nand_write_bytes"]}
    assert ocp["Max User data erase counts"] == truth["pe_max"]
    assert 0 <= int(group["media_units_written"]) * 10**9 - truth["nand_write_bytes"] < 10**9


def test_flush_fua_and_trim_reach_the_drive(drive, needs):
    needs("fio", "nvme")
    machine, small = drive.machine, ("--rw=write", "--iodepth=1", "--size=400k")

    def change(before):
        return {name: value - before[name] for name, value in drive.ledger().items() if isinstance(value, int)}

    before = drive.wait_until_quiet()
    drive.fio(
        "--rw=randwrite",
        "--bs=4k",
        "--iodepth=8",
        "--size=16m",
        "--number_ios=300",
        "--fsync=64",
        "--verify=crc32c",
        "--do_verify=1",
    )
    done = change(before)
    assert (done["host_write_commands"], done["host_flush_commands"]) == (300, 300 // 64)
    assert done["host_read_commands"] >= 300  # verified by reading

    before = drive.wait_until_quiet()
    drive.fio(*small, "--bs=4k", "--sync=1")
    with_fua = change(before)
    before = drive.wait_until_quiet()
    drive.fio(*small, "--bs=400k")  # in one: between two writes of a slow guest the drive drains, and pads by itself
    without = change(before)
    assert with_fua["host_write_commands"] == 100 > without["host_write_commands"]
    assert with_fua["host_write_bytes"] == without["host_write_bytes"] == 400 << 10
    # Linux turns an asynchronous O_SYNC write into a write with FUA and no flush. Each must be on NAND before it is
    # answered, which wastes the rest of a NAND page.
    assert (with_fua["host_flush_commands"], without["host_flush_commands"]) == (0, 0)
    assert (with_fua["host_fua_write_commands"], without["host_fua_write_commands"]) == (100, 0)
    assert with_fua["nand_padding_bytes"] >= 100 * PAGE > 2 * without["nand_padding_bytes"]

    before = drive.wait_until_quiet()
    machine.do("discard", drive.node, 32 * MIB, 8 * MIB)
    assert change(before)["trim_bytes"] == 8 * MIB
    assert machine.do("only_zeros", drive.node, 32 * MIB, 8 * MIB)


def test_write_amplification_from_outside_agrees_with_the_ledger(drive, needs):
    needs("fio", "smartctl", "nvme")
    truth_before = drive.wait_until_quiet()
    before = drive.machine.ssdrig("wear", drive.serial, "--json").json()
    drive.fio(
        "--rw=randwrite",
        "--bs=16k",
        "--iodepth=32",
        f"--size={CAPACITY_BYTES}",
        f"--io_size={32 * MIB}",
        "--norandommap",
        "--randrepeat=1",
    )
    truth_after = drive.wait_until_quiet()
    after = drive.machine.ssdrig("wear", drive.serial, "--json").json()
    assert (before["simulated"], before["nand_written_source"], before["host_written_source"]) == (
        True,
        "log C0h",
        "log 02h",
    )
    amplification = wa.between(before, after)
    true_host = truth_after["host_write_bytes"] - truth_before["host_write_bytes"]
    true_wa = (truth_after["nand_write_bytes"] - truth_before["nand_write_bytes"]) / true_host
    assert true_host == 32 * MIB
    assert true_wa > 1.3, "the drive's garbage collection does not work: nothing is proven"
    assert amplification.value is not None, amplification.why
    assert abs(amplification.value - true_wa) <= amplification.error
    assert amplification.relative_error < 0.05


def test_power_cut_and_return(drive, needs):
    """The cut is a lost connection to the kernel. It reconnects by itself and writes go on; what the drive had
    confirmed as durable is there; each unsafe shutdown is counted."""
    needs("fio", "smartctl")
    machine, before = drive.machine, drive.ledger()
    options = ("--rw=write", "--bs=4k", "--iodepth=4", "--size=1m", "--verify=crc32c")
    drive.fio(*options, "--sync=1", "--do_verify=0")
    # most of them after the cut
    load = ("--rw=randwrite", "--bs=4k", "--iodepth=16", "--offset=128m", "--number_ios=3000")
    machine.start("load", "fio", "--name=load", f"--filename={drive.node}", "--direct=1", "--ioengine=libaio", *load)
    state = f"/sys/class/nvme/{drive.controller[5:]}/state"
    lost = cuts = 0
    while not lost and cuts < 5:  # the cache of a drive that a starved host asks little may be empty just then
        written = drive.ledger()["host_write_commands"]
        deadline = time.monotonic() + 600
        while drive.ledger()["host_write_commands"] < written + 200:
            assert time.monotonic() < deadline, machine.do("texts", "/run/guest/jobs/load.err")
            time.sleep(0.05)
        lost = drive.served.admin(op="power_cut")["pages_lost"]
        cuts += 1
        machine.do("wait_for", state, "connecting")
        drive.served.admin(op="power_on")
        machine.do("wait_for", state, "live")
    assert lost > 0
    ended = machine.ended("load")
    assert_fio_saw_the_cut(ended, machine.run("fio", "--version").stdout.strip() if ended.exit_code else "")
    drive.fio(*options, "--verify_only")
    smart = machine.run("smartctl", "-A", "--json=cv", drive.controller).json()["nvme_smart_health_information_log"]
    assert smart["unsafe_shutdowns"] == before["unsafe_shutdowns"] + cuts
    assert smart["power_cycles"] == before["power_cycles"] + cuts


ABORTED, FIO_THAT_FREES_TWICE = 128 + 6, "fio-3.33"
GLIBC_WORDS = ("double free", "free(): invalid", "corrupted")


def assert_fio_saw_the_cut(load: Ended, version: str) -> None:
    """How the load may end is fio's matter, but only in one of three ways. Linux tries an I/O again five times: with
    time to do so all goes well; on a guest that is starved of CPU the drive comes back too late, and fio reports the
    lost link. fio 3.33, which Debian 12 has, frees memory twice after such an error, and glibc aborts it."""
    words = load.stderr + load.stdout
    lost = "Link has been severed" in words or "Input/output error" in words
    if load.exit_code == ABORTED and version == FIO_THAT_FREES_TWICE:
        assert any(word in words for word in GLIBC_WORDS), load
    else:
        assert load.exit_code == 0 or lost, load


@pytest.mark.parametrize(
    ("exit_code", "stderr", "version", "fits"),
    [
        (0, "", "fio-3.33", True),
        (1, "fio: io_u error on file /dev/nvme2n1: Link has been severed: write offset=1", "fio-3.39", True),
        (134, "double free or corruption (fasttop)\nAborted", "fio-3.33", True),
        (134, "double free or corruption (fasttop)\nAborted", "fio-3.39", False),
        (134, "fio: some other assertion", "fio-3.33", False),
        (139, "Segmentation fault", "fio-3.33", False),
        (1, "fio: job killed", "fio-3.33", False),
    ],
)
def test_how_the_load_may_end_when_the_drive_vanishes(exit_code, stderr, version, fits):
    load = Ended(["fio"], exit_code, "", stderr, 0.0)
    if fits:
        assert_fio_saw_the_cut(load, version)
    else:
        with pytest.raises(AssertionError):
            assert_fio_saw_the_cut(load, version)


@pytest.mark.parametrize("method", ["format", "sanitize-block"])
def test_purge(drive, needs, method):
    needs("nvme")
    drive.machine.do("fill", drive.node, "this was here before\n", [0], 4 * MIB)
    assert drive.ledger()["mapped_pages"] >= 4 * MIB // PAGE
    done = drive.machine.ssdrig("purge", drive.serial, "--destroy-data", drive.serial, "--method", method, "--json")
    assert done.exit_code == 0, str(done)
    assert (done.json()["method"], done.json()["ok"]) == (method, True)
    assert drive.ledger()["mapped_pages"] == 0
    assert "SIMULATED" in done.stderr
