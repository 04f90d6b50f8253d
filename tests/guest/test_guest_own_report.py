"""The own report of an NVMe drive as a meter, through an unmodified kernel's ioctl: the SIMULATED drive over NVMe/TCP,
honest by an estimate, and reporting 10 % too little."""

import json

import pytest
from serving import Serving

from guest.connected import Connected
from ssdrig.virtual.flash import presets

pytestmark = pytest.mark.slow

READ = """
import json, sys, time
from ssdrig.meter import meter
from ssdrig.base.errors import RigError
url = meter.of_drive("drive:?start=1", *sys.argv[:2])
one = meter.opened(url)
blocks, out = one.blocks(), []
for _ in range(5):
    block = next(blocks)
    out.append({"t_ns": block.t_ns[0], "watts": block.volts[0] * block.amperes[0], "missed": block.missed})
rail = one.rails()[0]
one.close()
try:
    meter.opened(meter.of_drive("drive:", sys.argv[0], "OTHER"))
    other = False
except RigError:
    other = True
print(json.dumps({"name": one.name, "serial": one.serial, "unknown": rail.accuracy.unknown, "seen": rail.seen,
    "blocks": out, "other": other}))
"""


@pytest.mark.parametrize(
    ("preset", "ratio", "flag"), [("nvme-tlc-estimates", 1.0, True), ("nvme-tlc-boasts", 0.9, False)]
)
def test_what_the_drive_reports_of_itself(machine, tmp_path, needs, preset, ratio, flag):
    needs("nvme")
    words = ("--preset", preset, "--capacity", "1GiB", "--nvme-tcp", "127.0.0.1:0", "--die-with-parent")
    served = Serving(tmp_path, *words)
    try:
        drive = Connected(machine, served)
        done = machine.python(READ, drive.controller, drive.serial, timeout_s=120)
        assert done.exit_code == 0, str(done)
        document = json.loads(done.stdout)
        drive.end()
    finally:
        served.end()
    assert ("ESTIMATED" in document["name"]) == flag and document["serial"] == drive.serial and document["seen"] == 1
    percent = presets.PRESETS[preset].power_error_percent
    assert (
        f"+-{percent} %" in document["unknown"] and ("an estimate" in document["unknown"]) == flag and document["other"]
    )
    idle_W = presets.PRESETS[preset].P_idle_mW / 1000
    assert all(0 < block["watts"] <= 2 * ratio * idle_W for block in document["blocks"]), document
