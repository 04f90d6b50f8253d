"""A SIMULATED drive that the guest is connected to over NVMe/TCP."""

import time

from serving import Serving


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
        """The ledger, once the drive has ended its background work."""
        before = self.ledger()
        for _ in range(120):
            time.sleep(0.25)
            now = self.ledger()
            if now["nand_write_bytes"] == before["nand_write_bytes"]:
                return now
            before = now
        raise AssertionError("the drive does not become quiet")
