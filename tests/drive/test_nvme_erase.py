"""Format and sanitize of an NVMe drive, behind a fake nvme, and what must be refused."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fake_erase
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from purging import SIZE, commands, machine, the_purge  # noqa: F401  fixture
from simboard import until

from ssdrig.base.errors import DriveError
from ssdrig.drive import erasing, nvme_erase, purge

TESTS = Path(__file__).resolve().parents[1] / "support"


@pytest.mark.slow
@pytest.mark.parametrize(("method", "ses"), [("format", 0), ("format-secure", 1), ("format-crypto", 2)])
def test_format(machine, tmp_path, method, ses):
    drive, state = machine(fna=4, flbas=0x02)
    result = the_purge(drive, method, root=tmp_path)
    assert (result["method"], result["ok"]) == (method, True)
    assert result["argv"][:3] == ["nvme", "format", "/dev/nvme0"]  # not the namespace, which the guard holds O_EXCL
    assert {"--force", "--lbaf=2", f"--ses={ses}", "-n"} <= set(result["argv"])  # keeps the LBA format
    assert result["tool"] == "nvme version 2.3 (git 2.3)"
    effect = result["effect"]
    assert (effect["samples"], effect["proving"], effect["kept"], effect["zeros"], effect["pattern_bytes"]) == (
        66,
        66,
        0,
        66,
        0,
    )
    assert (effect["used_blocks_before"], effect["used_blocks_after"]) == (SIZE // 512, 0)
    assert fake_erase.read(state)["ses"] == ses
    assert not any(open(drive.node, "rb").read())


def test_format_keeps_protection_information(machine, tmp_path):
    drive, _ = machine(flbas=0x35, dps=0x0A)  # extended metadata, format 5 + 16, protection type 2 in the first bytes
    argv = the_purge(drive, "format", root=tmp_path)["argv"]
    assert {"--lbaf=21", "--ms=1", "--pi=2", "--pil=1"} <= set(argv)


def test_a_format_that_fails_says_what_nvme_said(machine, tmp_path):
    drive, _ = machine(refuses=True)
    with pytest.raises(DriveError, match="Access Denied.*undefined"):
        the_purge(drive, "format", root=tmp_path)


def test_a_format_that_hangs_is_ended(machine, monkeypatch):
    drive, _ = machine(seconds=60)
    monkeypatch.setattr(nvme_erase, "MARGIN_S", 0.3)
    monkeypatch.setattr(erasing, "TICK_S", 0.01)  # so that some come, however busy the machine is
    ticks = []
    with pytest.raises(DriveError, match="killed: it had not ended"):
        nvme_erase.format(drive, drive.controller, "format", ticks.append, timeout_s=0.3)
    assert ticks and ticks == sorted(ticks)


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("sanitize-block", 2),
        pytest.param("sanitize-overwrite", 3, marks=pytest.mark.slow),
        pytest.param("sanitize-crypto", 4, marks=pytest.mark.slow),
    ],
)
def test_sanitize_is_followed_to_its_end(machine, tmp_path, method, action):
    drive, state = machine(sanicap=7, polls_to_end=5, silent=[4])
    result = the_purge(drive, method, root=tmp_path)
    assert result["ok"] and result["method"] == method and result["effect"]["zeros"] == 66
    assert ["nvme", "sanitize", "/dev/nvme0", "-a", str(action), "--ause"] == commands(state)[0][:6]
    assert fake_erase.read(state)["sanitize"]["polls"] >= 5  # a sanitize returns at once: its end is in the log


@pytest.mark.slow
def test_sanitize_progress_rises_and_has_an_eta(machine):
    drive, _ = machine(sanicap=7, polls_to_end=8)
    seen = []
    nvme_erase.sanitize(drive, drive.controller, "sanitize-block", lambda share, left_s: seen.append((share, left_s)))
    shares = [share for share, _ in seen]
    assert shares == [n / 8 for n in range(1, 9)]
    assert seen[0][1] == 120 and seen[-1][1] == 0  # the drive's own estimate until there is a rate
    assert all(left_s > 0 and left_s != 120 for _, left_s in seen[1:-1])


@pytest.mark.slow
def test_sanitize_failures(machine, tmp_path, monkeypatch):
    drive, _ = machine(sanicap=7, fails=True)
    with pytest.raises(DriveError, match="SSTAT 3.*nvme sanitize /dev/nvme0 -a 1"):
        the_purge(drive, "sanitize-block", root=tmp_path)
    drive, _ = machine(sanicap=7, refuses=True)
    with pytest.raises(DriveError, match="Invalid Field"):
        the_purge(drive, "sanitize-block", root=tmp_path)
    drive, _ = machine(sanicap=7, stuck_at=0.25)
    with pytest.raises(DriveError, match="25.0%.*goes on after a power loss"):
        nvme_erase.sanitize(drive, drive.controller, "sanitize-block", lambda share, left_s: None, stall_s=0.3)
    drive, _ = machine(sanicap=7, silent=list(range(100)))
    with pytest.raises(DriveError, match="sanitize log.*Input/output error"):
        nvme_erase.sanitize(drive, drive.controller, "sanitize-block", lambda share, left_s: None, stall_s=0.3)


@pytest.mark.slow
def test_a_sanitize_under_way_is_waited_for_and_is_the_purge(machine, tmp_path):
    drive, state = machine(sanicap=7, polls_to_end=6, sanitize={"action": 2, "polls": 0})
    result = the_purge(drive, root=tmp_path)
    assert result["method"] == "sanitize-block" and result["effect"]["resumed"] and result["ok"]
    assert commands(state) == []  # nothing was sent a second time
    drive, state = machine(sanicap=7, fna=0, polls_to_end=6, sanitize={"action": 4, "polls": 0})
    result = the_purge(drive, "format", root=tmp_path)  # another method was asked for: it follows
    assert result["method"] == "format" and [call[1] for call in commands(state)] == ["format"]


def namespaces(root, rows):
    for name, nqn, serial in rows:
        folder = root / "sys/block" / name / "device"
        folder.mkdir(parents=True)
        (folder / "subsysnqn").write_text(nqn + "\n")
        (folder / "serial").write_text(serial + "\n")


def test_what_would_take_another_namespace_with_it_is_refused(machine, tmp_path):
    rows = [("nvme0n1", "nqn.a", "S"), ("nvme0n2", "nqn.a", "S"), ("nvme1n1", "nqn.b", "T"), ("nvme2n1", "nqn.a", "U")]
    namespaces(tmp_path, rows)
    drive, state = machine(sanicap=7, fna=7)
    assert nvme_erase.other_namespaces(drive, tmp_path) == ["nvme0n2"]
    offered = {m.name: m for m in purge.methods(drive, tmp_path)}
    for name in ("format", "format-secure", "format-crypto", "sanitize-block", "sanitize-crypto", "sanitize-overwrite"):
        assert "nvme0n2" in offered[name].why_not
        with pytest.raises(DriveError, match="would also erase nvme0n2"):
            the_purge(drive, name, root=tmp_path)
    assert commands(state) == []
    drive, _ = machine(sanicap=7, fna=4)  # format of this namespace alone harms no other
    offered = {m.name: m.available for m in purge.methods(drive, tmp_path)}
    assert offered["format"] and offered["format-secure"] and not offered["sanitize-block"]


def test_the_hidden_path_of_a_multipath_drive_is_no_other_namespace(machine, tmp_path):
    rows = [("nvme0n1", "nqn.a", "S"), ("nvme0c0n1", "nqn.a", "S"), ("nvme0c1n1", "nqn.a", "S")]
    namespaces(tmp_path, rows)
    drive, _ = machine(sanicap=7, fna=7)
    assert nvme_erase.other_namespaces(drive, tmp_path) == []
    assert all(m.available for m in purge.methods(drive, tmp_path) if m.name.startswith(("format", "sanitize")))


TAKES_ALL = ("format-secure", "format-crypto", "sanitize-block", "sanitize-crypto", "sanitize-overwrite")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"oacs": 10, "nn": 32, "cns 0x10": [1, 2, 7]}, "namespace 2.*namespace 7, which this machine does not show"),
        ({"oacs": 2, "nn": 32, "cns 0x2": [1, 3]}, "also erase namespace 3"),
        ({"oacs": 10, "nn": 32}, "may also erase other namespaces.*Invalid Field"),
        ({"oacs": 10, "nn": 0, "cns 0x10": []}, "may also erase"),
        ({"oacs": 10, "nn": 32, "cns 0x10": [5]}, "may also erase other"),  # it does not even list this one
    ],
)
def test_namespaces_that_no_disk_shows_keep_their_data(machine, tmp_path, how, why):
    drive, state = machine(sanicap=7, fna=6, **how)  # a secure erase takes all namespaces, a plain format does not
    offered = {m.name: m for m in purge.methods(drive, tmp_path)}
    for name in TAKES_ALL:
        assert re.search(why, offered[name].why_not), offered[name]
    with pytest.raises(DriveError):  # the test above asks for each
        the_purge(drive, "sanitize-block", root=tmp_path)
    assert offered["format"].available and commands(state) == []


@pytest.mark.parametrize("how", [{"nn": 1}, {"nn": 32, "cns 0x2": [1]}, {"oacs": 10, "nn": 32, "cns 0x10": [1]}])
def test_a_drive_with_one_namespace_offers_all(machine, tmp_path, how):
    drive, _ = machine(sanicap=7, fna=7, **how)
    assert all(m.available for m in purge.methods(drive, tmp_path) if m.name in TAKES_ALL)


def heed_ctrl_c():
    """In the child: who starts the tests in the background of a shell lets them inherit that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_ctrl_c_says_the_state_and_leaves_the_format_to_end(machine, tmp_path):
    drive, state = machine(until=str(tmp_path / "may end"))
    code = (
        "import json, sys\nsys.path.insert(0, sys.argv[3])\nfrom purging import ByName\n"
        "from ssdrig.drive import purge\n"
        "from ssdrig.drive.inventory import Drive\n"
        "purge.purge(ByName(Drive(**json.loads(sys.argv[1]))), 'format', root=sys.argv[2])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(vars(drive)), str(tmp_path), str(TESTS)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    try:
        until(lambda: state.with_suffix(".formatting").exists())
        process.send_signal(signal.SIGINT)
        _, words = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert "the drive finishes it" in words and process.returncode != 0
    assert "lbaf" not in fake_erase.read(state)  # it still runs
    (tmp_path / "may end").touch()
    until(lambda: fake_erase.read(state).get("lbaf") == 0)
    assert not any(open(drive.node, "rb").read())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=64) | st.binary(min_size=4096, max_size=4096), st.binary(max_size=600))
def test_pages_of_any_content_decode_or_are_refused(page, log):
    for decode, data, can in (
        (nvme_erase.decode_controller, page, len(page) == 4096),
        (nvme_erase.decode_namespace, page, len(page) == 4096 and any(page[:8])),
        (nvme_erase.decode_sanitize, log, len(log) >= 20),
    ):
        with contextlib.nullcontext() if can else pytest.raises(DriveError):
            decode(data)


def test_identify_bits_by_hand():
    page = bytearray(4096)
    page[256:258], page[328:332], page[524] = b"\x0a\x00", b"\x06\x00\x00\x00", 0x05
    page[516:520] = b"\x20\x01\x00\x00"
    assert nvme_erase.decode_controller(bytes(page)) == nvme_erase.Controller(
        True, True, True, False, False, True, True, True, 288
    )
    log = bytearray(512)
    log[0:2], log[2], log[4] = (
        b"\x00\x80",
        0x0A,
        0x2C,
    )  # half done, first overwrite pass counted, crypto erase with AUSE and more
    log[8:20] = (7200).to_bytes(4, "little") + b"\xff" * 4 + (3).to_bytes(4, "little")
    assert nvme_erase.decode_sanitize(bytes(log)) == nvme_erase.Sanitize(2, 0.5, 4, {3: 7200, 2: None, 4: 3})


def test_the_installed_nvme_cli_knows_every_option_we_use():
    if not shutil.which("nvme"):
        pytest.skip("nvme-cli is not installed: apt-get install nvme-cli")
    for command, options in (
        ("admin-passthru", ("--opcode", "--namespace-id", "--cdw10", "--data-len", "--read", "--raw-binary")),
        ("format", ("--namespace-id", "-n", "--ses", "--lbaf", "--ms", "--pi", "--pil", "--timeout", "--force")),
        ("sanitize", ("-a", "--ause", "--owpass", "--ovrpat")),
    ):
        done = subprocess.run(["nvme", command, "--help"], capture_output=True, text=True)
        known = set((done.stdout + done.stderr).replace("=", " ").replace(",", " ").split())
        assert set(options) <= known, command
