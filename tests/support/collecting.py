"""For tests of polls: stand-ins of the tools, and what was asked of them."""

import pytest
from drives import a_drive
from fake_tools import Tools

NVME = a_drive(node="/dev/nvme7n1", controller="/dev/nvme7")
SATA = a_drive(name="sdz", node="/dev/sdz", interface="SATA", controller=None, nsid=None, smartctl_type="sat")
USB = a_drive(
    name="sdy", node="/dev/sdy", interface="USB", controller=None, nsid=None, smartctl_type="auto", usb_id="0bda:9210"
)
PAGE = bytes(512)


@pytest.fixture
def tools(tmp_path, monkeypatch) -> Tools:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return Tools(tmp_path / "bin", monkeypatch)
