"""The telemetry of a drive that has failed, by a stand-in of nvme-cli."""

import pytest
from collecting import tools  # noqa: F401
from fake_tools import identity

from ssdrig.drive import telemetry

SAVES = """
case "$1" in
id-ctrl) exec cat page.id-ctrl;;
telemetry-log) cat log > "${3#--output-file=}"; exit $(cat ends);;
esac"""


LOG = bytes([7]) + bytes(7) + b"\1\0\2\0\3\0" + bytes(498) + 3 * 512 * b"x"  # area 3 ends with block 3


def drive(tools, lpa, ends=0, log=LOG):
    (tools.folder / "log").write_bytes(log)
    (tools.folder / "page.id-ctrl").write_bytes(identity(lpa=lpa))
    (tools.folder / "ends").write_text(str(ends))
    tools.put("nvme", SAVES)


def test_it_is_saved(tools, tmp_path):
    drive(tools, telemetry.HAS_TELEMETRY)
    assert telemetry.save("/dev/nvme7", tmp_path / "telemetry.bin") == {"bytes": 2048, "why": None}
    assert (tmp_path / "telemetry.bin").read_bytes() == LOG


def test_a_drive_without_is_not_asked(tools, tmp_path):
    drive(tools, 0)
    assert telemetry.save("/dev/nvme7", tmp_path / "telemetry.bin")["bytes"] is None
    assert [call.split()[1] for call in tools.calls()] == ["id-ctrl"]


def test_half_a_log_is_not_kept(tools, tmp_path):
    drive(tools, telemetry.HAS_TELEMETRY, ends=1)
    answer = telemetry.save("/dev/nvme7", tmp_path / "telemetry.bin")
    assert answer["bytes"] is None and answer["why"] and not (tmp_path / "telemetry.bin").exists()


def test_a_drive_that_is_gone_is_named(tools, tmp_path):
    tools.put("nvme", "echo gone >&2; exit 1")
    assert telemetry.save("/dev/nvme7", tmp_path / "telemetry.bin")["why"]


@pytest.mark.parametrize("log", [LOG[:-512], LOG[:100], b"\0" + LOG[1:], b"0123456789"])
def test_log_that_is_short_or_another_one_by_its_own_head_is_not_kept(tools, tmp_path, log):
    drive(tools, telemetry.HAS_TELEMETRY, log=log)
    answer = telemetry.save("/dev/nvme7", tmp_path / "telemetry.bin")
    assert answer["bytes"] is None and answer["why"] and not (tmp_path / "telemetry.bin").exists()
