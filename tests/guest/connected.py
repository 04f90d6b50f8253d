"""A SIMULATED drive that the guest is connected to over NVMe/TCP."""

import time

from serving import Serving

QUIET_S = 0.75  # SATA_TLC.idle_ns and half of that: a busy machine lets it begin late
WORK = ("nand_write_bytes", "host_write_commands", "host_read_commands", "host_flush_commands")


class Connected:
    """The drive's server on this machine and the guest's controller that is connected to it."""

    def __init__(self, machine, served: Serving):
        self.machine, self.served = machine, served
        self.serial = served.ready["serial"]
        port = served.ready["nvme_tcp"].rpartition(":")[2]
        words = served.ready["nvme_connect"].split()
        words[words.index("-a") + 1], words[words.index("-s") + 1] = "10.0.2.2", port
        # 5 s, the default, is too short for a guest that gets a fraction of a processor; 10 s would be a wait
        done = machine.run(*words, "--keep-alive-tmo=60", "--reconnect-delay=1")
        assert done.exit_code == 0, str(done)
        self.controller = "/dev/" + machine.do("wait_for", "/sys/class/nvme/nvme*/serial", self.serial).split("/")[-2]
        self.node = machine.do("wait_for", f"{self.controller}n?")

    def ledger(self) -> dict:
        return self.served.truth(op="ledger")

    def end(self) -> None:
        self.machine.run("nvme", "disconnect", "-n", self.served.ready["nqn"])
        self.served.end()

    def fio(self, *words: str) -> dict:
        """One fio job on the drive, O_DIRECT; the job's part of fio's JSON."""
        fixed = ("--name=job", f"--filename={self.node}", "--direct=1", "--output-format=json", "--ioengine=libaio")
        done = self.machine.run("fio", *fixed, *words, timeout_s=120)
        assert done.exit_code == 0, str(done)
        return done.json()["jobs"][0]

    def wait_until_quiet(self) -> dict:
        """The ledger, once the drive has ended its background work: that begins when the host has asked for nothing
        for half a second, and until then the drive looks as if it had none."""
        before, since = self.ledger(), time.monotonic()
        deadline = since + 60
        while time.monotonic() < deadline:
            time.sleep(0.1)
            asked, now = time.monotonic(), self.ledger()
            if any(now[key] != before[key] for key in WORK):
                before, since = now, time.monotonic()
            elif asked > since + QUIET_S:
                return now
        raise AssertionError("the drive does not become quiet")
