"""`run powerloss` on drives of a real kernel: the SIMULATED drive over NVMe/TCP, and behind QEMU's NVMe and SATA. Its
power is cut while the kernel has commands under way, and comes back. Four campaigns run at the same time, for most of
each is waiting."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from serving import Serving

from guest import powerloss
from guest.connected import Connected
from guest.far_drive import FarDrive
from guest.power import Switch
from guest.qemu import BOOT, CUT, NVME, SAS, SATA
from ssdrig.base.errors import DriveError, ExchangedDrive, PromiseBroken, UnsafeTarget
from ssdrig.powerloss import campaign, cycle, judging

WHY_NOT = "SSDRIG_TEST_GUEST_CUTS=1 runs it (74 s on a free machine)"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not os.environ.get("SSDRIG_TEST_GUEST_CUTS"), reason=WHY_NOT)]

QUEUE = "/sys/block/{}/queue/{}"
STRANGER, BLANK = CUT._replace(serial="CUTGUEST99999"), CUT._replace(serial=" ")
BLANK_LINK = "/dev/disk/by-id/nvme-of-no-serial"
FLUSH_S = 100.0  # a FLUSH comes some ten times a second, where the guest is not starved
TCP_CUTS, QEMU_CUTS, RENAMED = 20, 10, 4
REHEARSED = 1  # power cycles before the first cut
PAGE_BLOCKS = 8  # of 512 bytes: what the SIMULATED drive keeps whole


class Bench:
    """Drives, their switches, and how to be rid of all of it. The switches act in threads of their own, but one at a
    time where they speak with QEMU or the guest."""

    def __init__(self, machine, folder):
        self.machine, self.folder, self.acting = machine, folder, threading.Lock()
        self.ends: list = []

    def over_tcp(self, name: str, *more: str) -> Connected:
        (self.folder / name).mkdir()
        words = ("--preset", "sata-tlc", "--capacity", "128MiB", "--nvme-tcp", "127.0.0.1:0", *more)
        drive = Connected(self.machine, Serving(self.folder / name, *words, "--die-with-parent"))
        self.ends.append(drive.end)
        self.machine.do("put", QUEUE.format(drive.node[5:], "nomerges"), "2")  # so that atomic writes are tested, too
        return drive

    def behind_qemu(self, name: str, preset: str, size_bytes: int, *more: str) -> Serving:
        """A drive as QEMU's node name-node, which fails at once while it has no power."""
        (self.folder / name).mkdir()
        words = ("--preset", preset, "--capacity", f"{size_bytes >> 20}MiB", *more, "--die-with-parent")
        served = Serving(self.folder / name, *words)
        self.ends.append(served.end)
        server = {"type": "unix", "path": served.socket}
        node = {"driver": "nbd", "node-name": f"{name}-node", "server": server, "discard": "unmap"}
        self.machine.qmp("blockdev-add", **node)
        self.ends.append(lambda: self.machine.qmp("blockdev-del", **{"node-name": f"{name}-node"}))
        return served

    def powered(self, served: Serving, name: str) -> None:
        """Power returns, and QEMU looks for the drive's server until it has found it."""
        served.admin(op="power_on")
        read = {"command-line": f'qemu-io {name}-node "read 0 4096"'}
        for _ in range(3):
            self.machine.qmp("human-monitor-command", **read)
            time.sleep(0.02)

    def switch(self, off, on) -> Switch:
        def alone(act):
            with self.acting:
                act()

        made = Switch(lambda: alone(off), lambda: alone(on))
        self.ends.append(made.end)
        return made

    def far(self, serial: str, **environment: str) -> FarDrive:
        drive = FarDrive(self.machine, serial, **environment)
        self.ends.append(drive.end)
        return drive

    def end(self) -> None:
        while self.ends:
            self.ends.pop()()


def cut_at_a_flush(served: Serving) -> None:
    """Take the power when the drive has just got a FLUSH."""
    before, deadline = served.truth(op="ledger")["host_flush_commands"], time.monotonic() + FLUSH_S
    while served.truth(op="ledger")["host_flush_commands"] == before and time.monotonic() < deadline:
        pass
    served.admin(op="power_cut")


def over_tcp(bench: Bench, name: str, *more: str) -> SimpleNamespace:
    drive = bench.over_tcp(name, *more)
    served = drive.served
    switch = Switch(lambda: cut_at_a_flush(served), lambda: served.admin(op="power_on"))
    bench.ends.append(switch.end)

    def counts() -> dict:  # the kernel tries a command again once the link is back: it reports no loss
        ledger = served.truth(op="ledger")
        return {name: ledger[name] for name in ("power_cycles", "unsafe_shutdowns")}

    return SimpleNamespace(drive=drive, far=bench.far(drive.serial), switch=switch, counts=counts)


def behind_nvme(bench: Bench) -> SimpleNamespace:
    """A drive with capacitors: QEMU's NVMe promises FUA and does not pass it on (seen in 7.2: `blk_aio_pwritev` without
    flags), so one with a volatile cache is found to break that promise."""
    served = bench.behind_qemu("cut", "enterprise-plp", CUT.size_bytes)
    bench.machine.plug(CUT)
    bench.ends.append(lambda: bench.machine.unplug(CUT))
    bench.machine.do("wait_for", "/sys/block/nvme*/device/serial", CUT.serial)
    campaign = SimpleNamespace(far=bench.far(CUT.serial), disk=CUT)

    def off() -> None:
        if campaign.switch.cuts == RENAMED:
            campaign.far.ask("keep open")
        served.admin(op="power_cut")
        bench.machine.unplug(CUT)

    def on() -> None:
        bench.powered(served, "cut")
        bench.machine.plug(campaign.disk)
        bench.machine.do("wait_for", "/sys/block/nvme*/device/serial", campaign.disk.serial)

    campaign.switch = bench.switch(off, on)
    return campaign


def behind_sata(bench: Bench) -> SimpleNamespace:
    """It has no hot plug in QEMU: the kernel is told that the disk is gone once the drive has lost its power."""
    machine, served = bench.machine, bench.behind_qemu("sata", "sata-tlc", SATA.size_bytes)
    [place] = machine.do("matches", "/sys/class/scsi_device/*/device/block/sda")
    address = place.split("/")[4]  # host:channel:target:lun

    def gone() -> None:
        machine.do("put", f"/sys/class/scsi_device/{address}/device/delete", "1")

    def back() -> None:
        machine.do("put", f"/sys/class/scsi_host/host{address.split(':')[0]}/scan", "- - -")

    def exchange(node: str) -> None:
        """The disk is another: the kernel must look at it anew."""
        gone()
        machine.qmp("qom-set", path=f"/machine/peripheral/{SATA.id}", property="drive", value=node)
        back()
        machine.do("wait_for", "/dev/sda")

    exchange("sata-node")
    bench.ends.append(lambda: exchange(f"{SATA.id}-file"))

    def off() -> None:
        served.admin(op="power_cut")
        gone()

    def on() -> None:
        bench.powered(served, "sata")
        back()

    return SimpleNamespace(far=bench.far(SATA.serial), switch=bench.switch(off, on))


@pytest.fixture(scope="module")
def bench(machine, tmp_path_factory):
    """All campaigns, carried out: each has its drive and switch, and `outcome`, and what judged() has of it."""
    bench = Bench(machine, tmp_path_factory.mktemp("powerloss"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign, "make", powerloss.small_layout)
        patch.setattr(cycle, "ANSWER_S", 0.2)
        patch.setattr(cycle, "LEAD_S", 0.05)
        patch.setattr(cycle, "READY_S", 200.0)  # a starved guest is no missing drive
        patch.setattr(cycle.Cycle, "_cut", powerloss.once_written(cycle.Cycle._cut))
        try:
            bench.tcp, bench.nvme, bench.sata = over_tcp(bench, "tcp"), behind_nvme(bench), behind_sata(bench)
            bench.liar = over_tcp(bench, "liar", "--drive-faults", '{"lying_flush": 1}')
            runs = bench.folder / "runs"
            with ThreadPoolExecutor(4) as pool:
                for tested, cuts, stop in (
                    (bench.tcp, TCP_CUTS, "last"),
                    (bench.nvme, QEMU_CUTS, "last"),
                    (bench.sata, QEMU_CUTS, "last"),
                    (bench.liar, 3, "first"),
                ):
                    tested.result = pool.submit(
                        *(powerloss.carry_out, tested.far, tested.switch, runs, cuts, stop),
                        getattr(tested, "counts", lambda: None),
                    )
            for tested in (bench.tcp, bench.nvme, bench.sata, bench.liar):
                run, tested.outcome = tested.result.result()
                tested.judgement = powerloss.judged(run)
            yield bench
        finally:
            bench.end()


def clean(campaign, cuts: int) -> None:
    """So many cuts were made, at least half of them had something to test, a control session too, and nothing was
    found."""
    judgement = campaign.judgement
    if campaign.outcome:
        raise campaign.outcome
    assert campaign.switch.cuts == REHEARSED + cuts
    odd = {
        session["cut"]: [session["findings"], *session["words"]] for session in judgement.cuts if session["findings"]
    }
    untested = [
        session["why_not"] for session in judgement.cuts if not session["judged"]
    ]  # a starved guest had not begun
    assert len(judgement.cuts) == cuts and not odd, odd
    assert set(untested) <= {judging.NOTHING_TESTED} and len(untested) <= cuts // 2, untested
    assert [session["control"] for session in judgement.records if session["control"]] == ["no-cut"]
    assert all(sum(session[name] for session in judgement.cuts) > 0 for name in ("durable", "in_flight"))
    assert judgement.again == judgement.changed == 0
    assert judgement.promise["mode"] == "flush" and judgement.promise["own"]


def test_over_nvme_tcp_no_promise_is_broken(bench):
    tcp, drive = bench.tcp, bench.tcp.drive
    clean(tcp, TCP_CUTS)
    assert tcp.judgement.under_way >= TCP_CUTS // 10  # on a busy machine the FLUSH may be over when the power goes
    assert tcp.judgement.promise["atomic_blocks"] == PAGE_BLOCKS
    assert tcp.far.nodes == [drive.node]
    truth = drive.ledger()
    assert truth["unsafe_shutdowns"] == REHEARSED + TCP_CUTS and truth["pages_lost"] > 0
    assert (
        truth["host_fua_write_commands"] >= tcp.judgement.fua > 0
    )  # AIO's RWF_DSYNC is a write with FUA, and no FLUSH


def test_without_the_rule_for_late_answers_an_honest_drive_would_be_accused(bench):
    """Linux sends a FLUSH again once the connection is back; its success says nothing of what the cut took."""
    assert bench.tcp.judgement.without_R1 >= 1


def test_a_lying_flush_is_found_over_nvme_tcp(bench):
    assert isinstance(bench.liar.outcome, PromiseBroken), bench.liar.outcome
    assert [session["failed"] for session in bench.liar.judgement.cuts][-1:] == [True]
    assert set(bench.liar.judgement.cuts[-1]["findings"]) & {"LOST_FLUSHED", "LOST_FUA", "STALE"}


def test_on_qemus_nvme_no_promise_is_broken_under_whatever_name(bench):
    clean(bench.nvme, QEMU_CUTS)
    assert bench.nvme.judgement.promise["atomic_blocks"] == 1  # the kernel may merge commands there
    assert len(bench.nvme.far.nodes) > 1


def test_on_sata_no_promise_is_broken(bench):
    clean(bench.sata, QEMU_CUTS)


def test_another_drive_in_its_place_is_refused(bench, monkeypatch):
    nvme, machine = bench.nvme, bench.machine
    nvme.far.end()
    machine.unplug(CUT)  # nobody keeps its node open any more: it gets the name that the next one will get, too
    machine.plug(CUT)
    machine.do("wait_for", "/sys/block/nvme*/device/serial", CUT.serial)
    nvme.far, nvme.disk, cuts = bench.far(CUT.serial), STRANGER, nvme.switch.cuts
    monkeypatch.setattr(cycle, "READY_S", 60.0)  # a starved guest shows a new drive late
    _, outcome = powerloss.carry_out(nvme.far, nvme.switch, bench.folder / "stranger", 1)
    assert isinstance(outcome, ExchangedDrive) and outcome.exit_code == UnsafeTarget.exit_code, outcome
    assert CUT.serial in outcome.expected and STRANGER.serial in outcome.seen
    assert nvme.switch.cuts == cuts + 1  # its power was not cut again


def test_a_dry_run_says_what_would_be_and_touches_nothing(bench, needs):
    needs("nvme", "hdparm")
    machine, drive = bench.machine, bench.tcp.drive
    bench.tcp.far.end()
    bench.sata.far.end()
    write_cache = QUEUE.format("nvme0n1", "write_cache")
    machine.unplug(CUT)
    was = set(machine.do("matches", "/dev/nvme*n?"))
    machine.plug(BLANK)  # on the port of the one that was tested
    try:
        machine.do("put", write_cache, "write through")
        while not (blank := set(machine.do("matches", "/dev/nvme*n?")) - was):
            time.sleep(0.1)
        machine.sh(f"mkdir -p /dev/disk/by-id; ln -sf {blank.pop()} {BLANK_LINK}")
        before, content = drive.ledger(), [(machine.folder / disk.id).read_bytes() for disk in (NVME, BOOT, SAS)]
        report = machine.do(
            "dry_runs",
            {
                "tcp": [drive.serial],
                "sata": [SATA.serial],
                "nvme": [NVME.serial],
                "dropped": [NVME.serial, "--bridge-is-part"],
                "boot": [BOOT.serial],
                "sas": [SAS.serial],
                "blank": [BLANK_LINK],
            },
        )
        after = drive.ledger()
    finally:
        machine.do("put", write_cache, "write back")
        machine.sh(f"rm -f {BLANK_LINK}")
    for name, code, words in (
        ("tcp", 0, "promise tested: the drive's write cache is volatile"),
        ("tcp", 0, "cannot be tested: an announced loss of power"),
        ("tcp", 0, "its rated"),
        ("sata", 0, "cannot be tested: GHOST with certainty"),
        ("nvme", UnsafeTarget.exit_code, "not the disk of a virtual machine"),
        ("boot", UnsafeTarget.exit_code, "not the disk of a virtual machine"),
        ("sas", UnsafeTarget.exit_code, "on a bridge"),
        ("blank", UnsafeTarget.exit_code, "no serial"),
        ("dropped", DriveError.exit_code, "queue/write_cache is 'write through'"),
    ):
        assert report[name][0] == code and words in report[name][1], (name, report[name])
    for key in ("host_write_bytes", "trim_bytes", "host_flush_commands"):
        assert after[key] == before[key]
    assert content == [(machine.folder / disk.id).read_bytes() for disk in (NVME, BOOT, SAS)]
