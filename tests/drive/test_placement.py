"""Whether a drive's data can be placed: asked through a stand-in of nvme-cli, refused with the reason."""

import pytest
from collecting import NVME, SATA, tools  # noqa: F401
from fake_tools import identity
from pages import page
from test_nvme_fdp import CONFIGURATIONS

from ssdrig.base import uring
from ssdrig.drive import conditions, placement

FDPS = 1 << 19
IDS = (0, 0x1000, 1, 0x1001)  # handle 0 in groups 0 and 1, then handle 1
STATUS = page({14: (2, 4)} | {16 + 32 * n: (2, one) for n, one in enumerate(IDS)}, placement.HEAD_BYTES + 32 * len(IDS))
ON, OFF = "get-feature:0x1d (FDP), Current value:0x00000101", "get-feature:0x1d (FDP), Current value:00000000"


@pytest.fixture
def drive(tools, tmp_path, monkeypatch):
    """A drive with placement on, a root with its generic device, and a kernel with io_uring."""
    monkeypatch.setattr(uring, "allowed", lambda: True)
    namespace = bytearray(4096)
    namespace[102] = 3
    known = {
        "id-ctrl": identity(ctratt=FDPS, endgidmax=3),
        "id-ns": bytes(namespace),
        "get-feature": ON.encode(),
        "20": CONFIGURATIONS.ljust(4096, b"\0"),
        "io-passthru": STATUS,
    }
    tools.nvme(known)
    tools.put("fio", "echo fio-3.39")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/ng9n1").touch()
    return NVME


def test_the_configuration_in_use_and_the_handles_of_the_first_group(tools, drive):
    known, why = placement.read(drive)
    assert (known.configuration.unit_bytes, known.configuration.groups, why) == (13 << 30, 8, "")
    assert known.numbers == (0, 1)
    assert "nvme get-feature /dev/nvme7 --feature-id=29 --cdw11=3" in tools.calls()
    assert any(
        call.startswith("nvme io-passthru /dev/nvme7n1 --opcode=0x12 --namespace-id=1") for call in tools.calls()
    )


def test_it_is_a_condition_of_the_run(tools, drive):
    known, unknown = placement.condition("/dev/nvme7", 1)
    assert known["nvme.fdp"].startswith("3 handles, reclaim units of ") and unknown == {}
    assert conditions.read("nvme7n1", controller="/dev/nvme7")["found"]["nvme.fdp"].startswith("3 handles")
    (tools.folder / "page.get-feature").write_text(OFF)
    assert placement.condition("/dev/nvme7", 1) == ({"nvme.fdp": "off"}, {})
    (tools.folder / "page.get-feature").unlink()
    settings, unknown = placement.condition("/dev/nvme7", 1)
    assert settings == {"nvme.fdp": None} and set(unknown) == {"nvme.fdp"}


def test_a_drive_without_placement_has_no_such_condition(tools):
    tools.nvme({"id-ctrl": identity()})
    assert placement.condition("/dev/nvme7", 1) == ({}, {})


def test_what_can_be_placed_has_no_reason_against_it(drive, tmp_path):
    assert placement.why_not(drive, tmp_path) == ""


@pytest.mark.parametrize(
    "name, content, reason",
    [
        ("page.id-ctrl", identity(), "no flexible data placement"),
        ("page.get-feature", OFF.encode(), "switched off"),
        ("page.get-feature", None, "not known"),
        ("page.20", None, "log 20h"),
        ("page.20", bytes(4096), "0 configurations"),
        ("page.20", CONFIGURATIONS[:16].ljust(4096, b"\0"), "log 20h"),
        ("page.io-passthru", None, "placement handles"),
        ("page.io-passthru", bytes(16), "placement handles"),
        ("page.io-passthru", STATUS[:-1], "placement handles"),
        ("fio", b"#!/bin/sh\necho fio-3.33\n", "fio-3.33 cannot"),
        ("fio", b"#!/bin/sh\n", "no fio"),
        ("../dev/ng9n1", None, "/dev/ng9n1"),
    ],
)
def test_what_is_missing_is_named(tools, drive, tmp_path, name, content, reason):
    path = tools.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert reason in placement.why_not(drive, tmp_path)


def test_a_kernel_without_io_uring_is_named(drive, tmp_path, monkeypatch):
    monkeypatch.setattr(uring, "allowed", lambda: False)
    assert "io_uring" in placement.why_not(drive, tmp_path)


def test_a_sata_drive_is_not_asked(tools):
    assert "NVMe" in placement.why_not(SATA) and tools.calls() == []
