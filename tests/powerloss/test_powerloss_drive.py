"""powerloss/target.py: which drive of this machine is judged, and what is held against it."""

import pytest
from disktree import DiskTree
from drives import a_drive

from selfcheck.powerloss_scenes import pages
from ssdrig.base.errors import DriveError, UnsafeTarget
from ssdrig.drive import features, nvme_cli
from ssdrig.drive.inventory import all_drives
from ssdrig.powerloss import target
from ssdrig.powerloss.promise import ACK, FLUSH


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """What the drive and the kernel's queue say: kernel(vwc, cache_on, write_cache) -> the root of a machine."""

    def says(vwc=1, cache_on=1, write_cache="write back"):
        id_ctrl, id_ns = pages(vwc=vwc)
        monkeypatch.setattr(nvme_cli, "identify", lambda controller, timeout_s: (id_ctrl, {"why": None}))
        monkeypatch.setattr(nvme_cli, "identify_namespace", lambda controller, nsid, timeout_s: (id_ns, {"why": None}))
        monkeypatch.setattr(features, "value", lambda controller, feature: (cache_on, ""))
        queue = tmp_path / "sys/block/nvme9n1/queue"
        queue.mkdir(parents=True, exist_ok=True)
        (queue / "write_cache").write_text(f"{write_cache}\n")
        (queue / "max_sectors_kb").write_text("1280\n")
        (queue / "nomerges").write_text("2\n")
        return tmp_path

    return says


def test_the_promise_is_the_drives_as_far_as_the_kernel_lets_it_through(kernel):
    assert target.of_drive(a_drive(), False, kernel()).mode == FLUSH
    assert target.of_drive(a_drive(), False, kernel(vwc=0, write_cache="write through")).mode == ACK
    assert target.of_drive(a_drive(), False, kernel(cache_on=0, write_cache="write through")).mode == ACK
    claimed = target.of_drive(a_drive(), True, kernel())
    assert claimed.mode == ACK and not claimed.own


@pytest.mark.parametrize("silent", ["identify", "identify_namespace"])
def test_error_of_an_identify_that_failed_has_its_reason(kernel, monkeypatch, silent):
    root = kernel()
    monkeypatch.setattr(nvme_cli, silent, lambda *_: (None, {"why": "it took longer than 60 s"}))
    with pytest.raises(DriveError) as caught:
        target.of_drive(a_drive(), False, root)
    assert caught.value.seen == "it took longer than 60 s"


def test_a_kernel_that_drops_every_flush_is_refused(kernel):
    with pytest.raises(DriveError, match="write_cache is 'write through'"):
        target.of_drive(a_drive(), False, kernel(write_cache="write through"))


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        ({"serial": ""}, "no serial"),
        ({"model": "QEMU NVMe Ctrl"}, "not the disk of a virtual machine"),
        ({"interface": "virtio", "controller": None}, "not the disk of a virtual machine"),
        ({"interface": "USB", "controller": None}, "on a bridge"),
        ({"interface": "other", "controller": None}, "on a bridge"),
    ],
)
def test_whose_verdict_would_not_be_the_drives_own_is_refused(monkeypatch, drive, words):
    monkeypatch.setattr(target, "of_drive", lambda drive, claimed: "its promise")
    with pytest.raises(UnsafeTarget, match=words):
        target.refuse(a_drive(**drive), False, False)
    assert target.refuse(a_drive(), False, False) == "its promise"
    for between in ({"interface": "USB", "controller": None}, {"model": "QEMU NVMe Ctrl"}):
        assert target.refuse(a_drive(**between), True, False) == "its promise"


def test_a_sas_disk_and_a_bridge_without_identify_are_judged_by_their_caching_page(tmp_path):
    """They have no IDENTIFY DEVICE that hdparm could read."""
    tree = DiskTree(tmp_path)
    tree.sas("sda")
    tree.usb("sdb")
    for name in ("sda", "sdb"):
        queue = f"sys/block/{name}/queue"
        for file, text in {"write_cache": "write back", "fua": "0", "max_sectors_kb": "512", "nomerges": "2"}.items():
            tree.write(f"{queue}/{file}", text + "\n")
        tree.write(f"sys/block/{name}/device/scsi_disk/0:0:0:0/cache_type", "write back\n")
    for drive in all_drives(tree.root):
        target_ = target.of_drive(drive, False, tree.root)
        assert (target_.mode, target_.fua, target_.block_bytes) == (FLUSH, False, 512)
