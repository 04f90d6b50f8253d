"""A drive that may have several controllers: its own hidden path is no second namespace, a detached namespace is one;
and a drive whose driver was taken away."""

import json

import pytest

from guest.qemu import NVME, PATHS

pytestmark = pytest.mark.slow

MIB = 1 << 20

# QEMU 7.2 announces no sanitize; so Identify Controller is changed here to one that does, all else is the real drive's.
OFFERS = """
import dataclasses, json, sys
from ssdrig.drive import nvme_erase
from ssdrig.drive import inventory
real = nvme_erase.identify_controller
nvme_erase.identify_controller = lambda drive: dataclasses.replace(
    real(drive), block_sanitize=True, format_takes_all=True, erase_takes_all=True)
out = {}
for serial in sys.argv[1:]:
    drive = inventory.find(serial)
    can = real(drive)
    out[serial] = {"others": nvme_erase.other_namespaces(drive), "listed": nvme_erase.listed_namespaces(drive, can),
        "manages": can.manages_namespaces, "why": {name: why for name, (why, _) in nvme_erase.offers(drive).items()}}
print(json.dumps(out))
"""


def offers(machine) -> dict:
    done = machine.python(OFFERS, "offers", NVME.serial, PATHS.serial)
    assert done.exit_code == 0, str(done)
    return json.loads(done.stdout)


def test_own_path_and_detached_namespace(guest, needs):
    needs("nvme")
    assert guest.do("texts", "/sys/block/nvme1c1n1/hidden") == ["1\n"], "the drive is no multipath drive"
    offered = offers(guest)
    whole = ("format", "format-secure", "sanitize-block")
    assert offered[PATHS.serial]["others"] == [] and offered[PATHS.serial]["listed"] == [2]
    assert all("namespace 2, which this machine does not show" in offered[PATHS.serial]["why"][name] for name in whole)
    assert (offered[NVME.serial]["others"], offered[NVME.serial]["listed"]) == ([], [])
    assert all(offered[NVME.serial]["why"][name] is None for name in whole)


def test_a_free_multipath_drive_is_purged(guest, needs):
    needs("nvme")
    guest.do("fill", "/dev/nvme1n1", "this was here before\n", [0], 8 * MIB)
    done = guest.ssdrig("purge", PATHS.serial, "--destroy-data", PATHS.serial, "--json")
    assert done.exit_code == 0 and done.json()["ok"], str(done)


def test_a_drive_whose_driver_was_taken_away_is_not_found(guest):
    [address] = guest.do("texts", "/sys/class/nvme/nvme0/address")
    guest.do("put", "/sys/bus/pci/drivers/nvme/unbind", address)
    try:
        done = guest.ssdrig("purge", NVME.serial, "--destroy-data", NVME.serial)
        assert done.exit_code == 2 and NVME.serial in done.stderr
    finally:
        guest.do("put", "/sys/bus/pci/drivers/nvme/bind", address)
        guest.do("wait_for", "/dev/nvme0n1")
