"""Plans for what an NVMe drive lacks, through an unmodified kernel: the SIMULATED drive over NVMe/TCP. They are refused
with the reason before anything starts."""

import pytest
from serving import Serving

from guest.connected import Connected

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def drive(machine, tmp_path_factory):
    words = ("--preset", "nvme-tlc-estimates", "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    served = Serving(tmp_path_factory.mktemp("plans"), *words)
    try:
        connected = Connected(machine, served)
        yield connected
        connected.end()
    finally:
        served.end()


@pytest.mark.parametrize(("plan", "lacks"), [("host-memory", "hmb"), ("placement", "fdp"), ("zones", "zoned")])
def test_what_the_drive_lacks_is_refused_before_a_byte(drive, needs, plan, lacks):
    needs("nvme")
    written = drive.ledger()["host_write_commands"]
    words = ("--variant", "quick", "--drive", drive.serial, "--destroy-data", drive.serial)
    done = drive.machine.ssdrig("run", plan, *words, "--runs", "/tmp/refused")
    assert done.exit_code == 2 and f"{lacks}: " in done.stderr, str(done)
    assert drive.ledger()["host_write_commands"] == written
