"""Purge: each method on a file behind fake nvme and hdparm, discard and zero on a real loop device, and what must be refused."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import fake_erase
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.drive import ata_security, block, nvme_erase, purge
from ssdrig.drive.inventory import Drive
from ssdrig.errors import DriveError, ToolMissing, UsageError
from ssdrig.progress import Progress

SIZE = 4 << 20


def a_drive(node, interface="NVMe", name="nvme0n1", size=SIZE) -> Drive:
    nvme = interface.startswith("NVMe")
    return Drive(name, str(node), None, "Model A", "SERIAL0001", "F1", "", size, 512, interface, "", False, 259, 0,
                 "/dev/nvme0" if nvme else None, 1 if nvme else None, "auto", "", False)  # fmt: skip


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(interface=…, **how the drive behaves) -> (drive, state file), with random data on the drive and a /sys without others."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def make(interface="NVMe", data=True, **behaviour):
        backing = tmp_path / "backing"
        backing.write_bytes(os.urandom(SIZE) if data else bytes(SIZE))
        return a_drive(backing, interface), fake_erase.install(tmp_path, backing, **behaviour)

    return make


def the_purge(drive, method="auto", **kw):
    return purge.purge(drive, method, Progress(quiet=True), **kw)


def commands(state) -> list[list[str]]:
    return [call for call in fake_erase.read(state)["calls"] if call[1] in ("format", "sanitize") or any("--security" in a for a in call)]


# ---- NVMe


@pytest.mark.parametrize(("method", "ses"), [("format", 0), ("format-secure", 1), ("format-crypto", 2)])
def test_format(machine, tmp_path, method, ses):
    drive, state = machine(fna=4, flbas=0x02)
    result = the_purge(drive, method, root=tmp_path)
    assert (result["method"], result["ok"]) == (method, True)
    assert result["argv"][:3] == ["nvme", "format", "/dev/nvme0"]  # not the namespace, which the guard holds O_EXCL
    assert {"--force", "--lbaf=2", f"--ses={ses}", "-n"} <= set(result["argv"])  # keeps the LBA format
    assert result["tool"] == "nvme version 2.3 (git 2.3)"
    effect = result["effect"]
    assert (effect["samples"], effect["proving"], effect["kept"], effect["zeros"], effect["pattern_bytes"]) == (66, 66, 0, 66, 0)
    assert (effect["used_blocks_before"], effect["used_blocks_after"]) == (SIZE // 512, 0)
    assert fake_erase.read(state)["ses"] == ses
    assert not any(open(drive.node, "rb").read())


def test_format_keeps_protection_information(machine, tmp_path):
    drive, _ = machine(flbas=0x35, dps=0x0A)  # extended metadata, format 5 + 16, protection type 2 in the first bytes
    argv = the_purge(drive, "format", root=tmp_path)["argv"]
    assert {"--lbaf=21", "--ms=1", "--pi=2", "--pil=1"} <= set(argv)


def test_a_drive_that_says_done_but_keeps_its_data_is_found_out(machine, tmp_path):
    drive, _ = machine(keeps=True)
    with pytest.raises(DriveError, match="did not purge.*66 unchanged"):
        the_purge(drive, "format", root=tmp_path)


def test_an_empty_drive_gets_a_pattern_first_so_that_the_effect_can_be_seen(machine, tmp_path):
    drive, _ = machine(data=False)
    effect = the_purge(drive, "format", root=tmp_path)["effect"]
    assert (effect["pattern_bytes"], effect["proving"], effect["kept"]) == (8 * 4096, 8, 0)
    drive, _ = machine(data=False, keeps=True)
    with pytest.raises(DriveError, match="did not purge.*8 unchanged"):
        the_purge(drive, "format", root=tmp_path)


def test_crypto_erase_may_leave_other_data(machine, tmp_path):
    drive, _ = machine(fna=4, scrambles=True)
    result = the_purge(drive, "format-crypto", root=tmp_path)
    assert result["ok"] and result["effect"]["other"] == 66 and result["effect"]["kept"] == 0


def test_a_format_that_fails_says_what_nvme_said(machine, tmp_path):
    drive, _ = machine(refuses=True)
    with pytest.raises(DriveError, match="Access Denied.*undefined"):
        the_purge(drive, "format", root=tmp_path)


def test_a_format_that_hangs_is_ended(machine, monkeypatch):
    drive, _ = machine(seconds=60)
    monkeypatch.setattr(nvme_erase, "MARGIN_S", 0.3)
    ticks = []
    with pytest.raises(DriveError, match="killed: it had not ended"):
        nvme_erase.format(drive, "format", ticks.append, timeout_s=0.3)
    assert ticks and ticks == sorted(ticks)


@pytest.mark.parametrize(("method", "action"), [("sanitize-block", 2), ("sanitize-overwrite", 3), ("sanitize-crypto", 4)])
def test_sanitize_is_followed_to_its_end(machine, tmp_path, method, action):
    drive, state = machine(sanicap=7, polls_to_end=5, silent=[4])
    result = the_purge(drive, method, root=tmp_path)
    assert result["ok"] and result["method"] == method and result["effect"]["zeros"] == 66
    assert ["nvme", "sanitize", "/dev/nvme0", "-a", str(action), "--ause"] == commands(state)[0][:6]
    assert fake_erase.read(state)["sanitize"]["polls"] >= 5  # a sanitize returns at once: its end is in the log


def test_sanitize_progress_rises_and_has_an_eta(machine):
    drive, _ = machine(sanicap=7, polls_to_end=8)
    seen = []
    nvme_erase.sanitize(drive, "sanitize-block", lambda share, left_s: seen.append((share, left_s)))
    shares = [share for share, _ in seen]
    assert shares == [n / 8 for n in range(1, 9)]
    assert seen[0][1] == 120 and seen[-1][1] == 0  # the drive's own estimate until there is a rate
    assert all(left_s > 0 and left_s != 120 for _, left_s in seen[1:-1])


def test_sanitize_failures(machine, tmp_path, monkeypatch):
    drive, _ = machine(sanicap=7, fails=True)
    with pytest.raises(DriveError, match="SSTAT 3.*nvme sanitize /dev/nvme0 -a 1"):
        the_purge(drive, "sanitize-block", root=tmp_path)
    drive, _ = machine(sanicap=7, refuses=True)
    with pytest.raises(DriveError, match="Invalid Field"):
        the_purge(drive, "sanitize-block", root=tmp_path)
    drive, _ = machine(sanicap=7, stuck_at=0.25)
    with pytest.raises(DriveError, match="25.0%.*goes on after a power loss"):
        nvme_erase.sanitize(drive, "sanitize-block", lambda share, left_s: None, stall_s=0.3)
    drive, _ = machine(sanicap=7, silent=list(range(100)))
    with pytest.raises(DriveError, match="sanitize log.*Input/output error"):
        nvme_erase.sanitize(drive, "sanitize-block", lambda share, left_s: None, stall_s=0.3)


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


def test_methods_best_first_with_reasons(machine, tmp_path):
    queue = tmp_path / "sys/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "discard_max_bytes").write_text("2199023255040\n")
    drive, _ = machine(sanicap=2, fna=0)
    offered = purge.methods(drive, tmp_path)
    assert [m.name for m in offered if m.available] == ["format-secure", "sanitize-block", "format", "discard", "zero"]
    why = {m.name: m.why_not for m in offered if not m.available}
    assert "FNA bit 2" in why["format-crypto"] and "SANICAP bit 0" in why["sanitize-crypto"] and "interface" in why["ata-secure-erase"]
    assert {m.name: m.estimate_s for m in offered}["sanitize-block"] == 120
    drive, _ = machine(oacs=0)
    assert purge.choose(purge.methods(drive, tmp_path), "auto").name == "discard"


def test_what_cannot_be_used_is_refused_with_its_reason(machine, tmp_path, monkeypatch):
    drive, state = machine(oacs=0)
    with pytest.raises(DriveError, match="Format NVM"):
        the_purge(drive, "format", root=tmp_path)
    with pytest.raises(DriveError, match="a purge command.*format-secure.*discard"):
        the_purge(drive, root=tmp_path)  # never falls back on writing the whole drive
    with pytest.raises(UsageError, match="shred"):
        the_purge(drive, "shred", root=tmp_path)
    assert commands(state) == []
    drive, _ = machine(garbage=True)
    with pytest.raises(DriveError, match="100 bytes came"):
        the_purge(drive, "format", root=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(ToolMissing, match="nvme-cli"):
        the_purge(drive, "format", root=tmp_path)


def test_ctrl_c_says_the_state_and_leaves_the_format_to_end(machine, tmp_path):
    drive, state = machine(seconds=1.5)
    code = (
        "import json, sys\nfrom ssdrig.drive import purge\nfrom ssdrig.drive.inventory import Drive\n"
        "purge.purge(Drive(**json.loads(sys.argv[1])), 'format', root=sys.argv[2])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, json.dumps(vars(drive)), str(tmp_path)], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 30
        while not state.with_suffix(".formatting").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert "ends by itself in the drive" in words and process.returncode != 0
    deadline = time.monotonic() + 30
    while not fake_erase.read(state).get("lbaf") == 0 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(open(drive.node, "rb").read())


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=64) | st.binary(min_size=4096, max_size=4096), st.binary(max_size=600))
def test_pages_of_any_content_decode_or_are_refused(page, log):
    for decode, data in ((nvme_erase.decode_controller, page), (nvme_erase.decode_namespace, page), (nvme_erase.decode_sanitize, log)):
        try:
            decode(data)
        except DriveError:
            assert len(data) < 20 or len(data) != 4096 or not any(data[:8])


def test_identify_bits_by_hand():
    page = bytearray(4096)
    page[256:258], page[328:332], page[524] = b"\x02\x00", b"\x06\x00\x00\x00", 0x05
    assert nvme_erase.decode_controller(bytes(page)) == nvme_erase.Controller(True, True, True, False, False, True, True)
    log = bytearray(512)
    log[0:2], log[2], log[4] = b"\x00\x80", 0x0A, 0x2C  # half done, first overwrite pass counted, crypto erase with AUSE and more
    log[8:20] = (7200).to_bytes(4, "little") + b"\xff" * 4 + (3).to_bytes(4, "little")
    assert nvme_erase.decode_sanitize(bytes(log)) == nvme_erase.Sanitize(2, 0.5, 4, {3: 7200, 2: None, 4: 3})


def test_the_installed_nvme_cli_knows_every_option_we_use():
    if not shutil.which("nvme"):
        pytest.skip("nvme-cli is not installed: apt-get install nvme-cli")
    for command, options in (("format", ("--namespace-id", "-n", "--ses", "--lbaf", "--ms", "--pi", "--pil", "--timeout", "--force")),
                             ("sanitize", ("-a", "--ause", "--owpass", "--ovrpat"))):  # fmt: skip
        done = subprocess.run(["nvme", command, "--help"], capture_output=True, text=True, timeout=20)
        known = set((done.stdout + done.stderr).replace("=", " ").replace(",", " ").split())
        assert set(options) <= known, command


# ---- ATA


@pytest.mark.parametrize("method", ["ata-secure-erase", "ata-enhanced-erase"])
def test_ata_erase_sets_and_clears_a_password(machine, tmp_path, method):
    drive, state = machine("SATA", enhanced=1)
    result = the_purge(drive, method, root=tmp_path)
    assert result["ok"] and result["tool"] == "hdparm v9.65" and result["effect"]["zeros"] == 66
    assert [next(a for a in call if a.startswith("--security-") and a != "--security-mode") for call in commands(state)] == [
        "--security-set-pass", ata_security.SWITCH[method],
    ]  # fmt: skip
    after = fake_erase.read(state)
    assert after["enabled"] == 0 and after["password"] is None


def test_a_frozen_drive_is_explained_and_not_touched(machine, tmp_path):
    drive, state = machine("SATA", frozen=1)
    with pytest.raises(DriveError, match="BIOS.*power-cycle only the drive.*suspend"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert commands(state) == []


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [({"security": 0}, "no security feature"), ({"enabled": 1}, "--security-disable ssdrig"), ({"enabled": 1, "locked": 1}, "--security-unlock ssdrig"),
     ({"expired": 1}, "wrong passwords"), ({"garbage": 1}, "IDENTIFY DEVICE")],
)  # fmt: skip
def test_other_security_states_are_explained_and_not_touched(machine, tmp_path, behaviour, words):
    drive, state = machine("SATA", **behaviour)
    with pytest.raises(DriveError, match=words):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert commands(state) == []
    assert any(open(drive.node, "rb").read())


def test_ata_erase_is_not_tried_through_usb(machine, tmp_path):
    drive, state = machine("USB")
    with pytest.raises(DriveError, match="leaves the drive locked"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert commands(state) == []


def test_an_erase_that_hangs_is_ended_and_leaves_no_password(machine):
    drive, state = machine("SATA", seconds=60)
    with pytest.raises(DriveError, match="killed: it had not ended"):
        ata_security.erase(drive, "ata-secure-erase", lambda spent_s: None, timeout_s=0.5)
    assert (fake_erase.read(state)["enabled"], fake_erase.read(state)["password"]) == (0, None)


@pytest.mark.parametrize("when", ["before the erase", "during the erase"])
def test_ctrl_c_leaves_no_password_unless_the_drive_is_erasing(machine, tmp_path, monkeypatch, capfd, when):
    drive, state = machine("SATA")
    real, asked = ata_security.identify, []

    def interrupt(*args):
        raise KeyboardInterrupt

    def identify(drive):
        asked.append(drive)
        return interrupt() if len(asked) == 4 else real(drive)  # offers, promise, erase, and the one after the password was set

    if when == "before the erase":
        monkeypatch.setattr(ata_security, "identify", identify)
        behaviour = {"enabled": 0, "password": None}
    else:
        fake_erase.install(tmp_path, tmp_path / "backing", seconds=1.0)
        monkeypatch.setattr(purge, "_line", interrupt)  # the first word of progress
        behaviour = {"enabled": 1, "password": "ssdrig"}
    with pytest.raises(KeyboardInterrupt):
        purge.purge(drive, "ata-secure-erase", root=tmp_path)
    assert {key: fake_erase.read(state)[key] for key in behaviour} == behaviour
    words = capfd.readouterr().err
    assert "takes the temporary password away at its end" in words and "--security-unlock ssdrig" in words
    deadline = time.monotonic() + 20  # the erase that was left alone ends
    while fake_erase.read(state)["enabled"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert fake_erase.read(state)["enabled"] == 0


def test_a_failed_erase_takes_the_password_away_again(machine, tmp_path):
    drive, state = machine("SATA", fails=["--security-erase"])
    with pytest.raises(DriveError, match="SECURITY_ERASE: Input/output error") as caught:
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert "PASSWORD" not in str(caught.value)
    assert fake_erase.read(state)["password"] is None and fake_erase.read(state)["enabled"] == 0


def test_a_drive_locked_in_the_middle_is_unlocked(machine, tmp_path):
    drive, state = machine("SATA", power_lost=True)
    with pytest.raises(DriveError) as caught:
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert "STILL HAS THE PASSWORD" not in str(caught.value)
    assert (fake_erase.read(state)["locked"], fake_erase.read(state)["enabled"]) == (0, 0)


def test_a_drive_that_stays_locked_comes_with_the_commands_that_free_it(machine, tmp_path):
    drive, state = machine("SATA", power_lost=True, fails=["--security-unlock", "--security-disable"])
    with pytest.raises(DriveError, match=r"STILL HAS THE PASSWORD 'ssdrig'.*hdparm --user-master u --security-unlock ssdrig .*--security-disable ssdrig"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert fake_erase.read(state)["locked"] == 1


def test_an_erase_that_reports_success_but_keeps_the_data(machine, tmp_path):
    drive, _ = machine("SATA", keeps=True)
    with pytest.raises(DriveError, match="did not purge"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)


def test_auto_says_why_the_better_method_was_not_used(machine, tmp_path, capfd, monkeypatch):
    queue = tmp_path / "sys/block/nvme0n1/queue"
    queue.mkdir(parents=True)
    (queue / "discard_max_bytes").write_text("2147450880\n")
    drive, _ = machine("SATA", frozen=1)
    monkeypatch.setattr(block, "discard", lambda node, on_bytes: open(node, "r+b").write(bytes(SIZE)))
    assert purge.purge(drive, root=tmp_path)["method"] == "discard"
    assert "not ata-secure-erase: the drive is frozen" in capfd.readouterr().err


@pytest.mark.parametrize(("word", "seconds"), [(0, None), (1, 120), (84, 84 * 120), (0x8000 | 300, 36000)])
def test_erase_time(word, seconds):
    words = [0] * 256
    words[89] = word
    assert ata_security.decode(words).erase_s == seconds


def test_identify_words_mean_what_the_real_hdparm_says():
    """The same 256 words through `hdparm --Istdin`, which decodes them as it decodes a drive's."""
    if not shutil.which("hdparm"):
        pytest.skip("hdparm is not installed: apt-get install hdparm")
    for behaviour in ({"frozen": 1}, {"enabled": 1, "locked": 1, "enhanced": 1}, {"expired": 1, "word69": 0x4020}, {"word89": 84, "enhanced": 1, "word90": 3}):
        words = fake_erase.identify_words(behaviour)
        text = "\n".join(" ".join(f"{w:04x}" for w in words[at : at + 8]) for at in range(0, 256, 8))
        said = subprocess.run(["hdparm", "--Istdin"], input=text, capture_output=True, text=True, timeout=20).stdout
        security = ata_security.decode(ata_security.parse(text))
        lines = [" ".join(line.split()) for line in said.splitlines()]
        for name in ("enabled", "locked", "frozen"):
            assert (name in lines) == getattr(security, name) and (f"not {name}" in lines) != getattr(security, name), name
        assert ("expired: security count" in lines) == security.expired
        assert ("supported: enhanced erase" in lines) == security.enhanced
        assert any(line.startswith(f"{security.erase_s // 60}min for SECURITY ERASE UNIT") for line in lines)
        assert any("Deterministic read ZEROs after TRIM" in line for line in lines) == security.zeros_after_trim


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400) | st.lists(st.integers(0, 0xFFFF), min_size=256, max_size=256))
def test_identify_text_of_any_kind(text):
    if isinstance(text, list):
        assert ata_security.parse("\n/dev/sda:\n" + "\n".join(f"{w:04x}" for w in text)) == text
        ata_security.decode(text)
    else:
        words = ata_security.parse(text)
        if len(words) != 256:
            with pytest.raises(DriveError, match="256 words"):
                ata_security.decode(words)


# ---- discard and zero on a real kernel


@pytest.fixture
def loop(tmp_path):
    """A loop device over 64 MiB of random data, with our exclusive descriptor open as the guard's would be."""
    if os.geteuid() or not shutil.which("losetup"):
        pytest.skip("needs root and losetup")
    backing = tmp_path / "disk.img"
    backing.write_bytes(os.urandom(1 << 20) * 64)
    made = subprocess.run(["losetup", "--find", "--show", str(backing)], capture_output=True, text=True, timeout=20)
    if made.returncode:
        pytest.skip(f"no loop device here: {made.stderr.strip()}")
    node = made.stdout.strip()
    held = os.open(node, os.O_RDONLY | os.O_EXCL)
    try:
        yield a_drive(node, "other", os.path.basename(node), 64 << 20)
    finally:
        os.close(held)
        subprocess.run(["losetup", "--detach", node], check=True, timeout=20)


@pytest.mark.parametrize(("method", "request_name"), [("discard", "BLKDISCARD"), ("zero", "BLKZEROOUT")])
def test_discard_and_zero_of_a_real_device(loop, method, request_name):
    result = the_purge(loop, method)
    assert result["ok"] and result["argv"] == ["ioctl", loop.node, request_name]
    assert (result["effect"]["zeros"], result["effect"]["kept"]) == (66, 0)
    with open(loop.node, "rb") as f:
        assert not any(f.read())


def test_auto_on_a_device_without_purge_commands_is_discard(loop):
    assert the_purge(loop)["method"] == "discard"


def test_another_capacity_afterwards_is_an_error(loop):
    with pytest.raises(DriveError, match="capacity"):
        the_purge(a_drive(loop.node, "other", loop.name, (64 << 20) - 4096), "discard")


def test_block_io_past_the_page_cache(loop):
    block.write(loop.node, {0: b"a" * 4096, 8192: b"b" * 4096})
    assert block.read(loop.node, [0, 4096, 8192]) == [b"a" * 4096, block.read(loop.node, [4096])[0], b"b" * 4096]
    assert block.size(loop.node) == 64 << 20
    assert block.read(loop.node, [64 << 20]) == [None]  # beyond the end
    with pytest.raises(DriveError, match="No such file"):
        block.read("/dev/ssdrig-no-such", [0])


def test_samples_are_the_ends_and_spread_and_always_the_same():
    offsets = block.sample_offsets(10**12)
    assert len(offsets) == 66 and offsets == sorted(set(offsets)) == block.sample_offsets(10**12)
    assert offsets[0] == 0 and offsets[-1] == 10**12 // 4096 * 4096 - 4096
    assert sum(offset < 5 * 10**11 for offset in offsets) in range(20, 47)
    assert block.sample_offsets(3 * 4096 + 100) == [0, 4096, 8192]


# ---- what samples show

ZERO, ONES, OLD, NEW = bytes(4096), b"\xff" * 4096, b"old!" * 1024, b"new!" * 1024


@pytest.mark.parametrize(
    ("method", "before", "after", "promise", "ok"),
    [("format", [OLD, ZERO], [ZERO, ZERO], None, True), ("format", [OLD, OLD], [ONES, ONES], None, True),
     ("sanitize-crypto", [OLD], [NEW], None, True), ("sanitize-crypto", [ZERO], [NEW], None, False),
     ("discard", [OLD, OLD], [OLD, ZERO], None, False), ("discard", [OLD], [NEW], None, False), ("discard", [OLD], [ZERO], None, True),
     ("discard", [OLD], [ONES], "ones", True), ("sanitize-block", [None, None], [ZERO, ONES], None, True), ("sanitize-block", [None], [NEW], None, False)],
)  # fmt: skip
def test_judge(method, before, after, promise, ok):
    effect = purge.judge(method, before, after, promise)
    assert effect["ok"] is ok and effect["words"].startswith("not verified") is not ok


@pytest.mark.parametrize(
    ("method", "before", "after", "promise", "words"),
    [("format", [OLD, OLD], [OLD, ZERO], None, "did not purge"), ("sanitize-crypto", [OLD], [OLD], None, "did not purge"),
     ("discard", [OLD], [OLD], "zeros", "did not purge"), ("discard", [OLD], [NEW], "zeros", "as promised"), ("zero", [OLD], [ONES], None, "zeros"),
     ("format", [OLD], [None], None, "readable")],
)  # fmt: skip
def test_judge_refuses(method, before, after, promise, words):
    with pytest.raises(DriveError, match=words):
        purge.judge(method, before, after, promise)


# ---- the command


@pytest.fixture
def run(machine, monkeypatch, tmp_path):
    """run(words, **behaviour) -> exit code, with a guard that lets this drive pass as `hold` would."""
    from ssdrig.drive import guard, inventory
    from ssdrig.errors import SsdrigError, UnsafeTarget

    class Held:
        rechecked = 0

        def recheck(self):
            Held.rechecked += 1
            return self.drive

    @contextlib.contextmanager
    def hold(drive, serial, root="/"):
        if serial != drive.serial:
            raise UnsafeTarget(drive.serial, serial, "")
        held = Held()
        held.drive = drive
        yield held

    def go(*words, **behaviour):
        drive, go.state = machine(**behaviour)
        monkeypatch.setattr(inventory, "find", lambda word: drive)
        monkeypatch.setattr(guard, "hold", hold)
        monkeypatch.setattr(guard, "refusals", lambda drive, serial=None: [] if serial else [guard.Refusal("signature", "ext4", "--destroy-data")])
        parser = argparse.ArgumentParser()
        purge.add_arguments(parser)
        try:
            return purge.command(parser.parse_args(["SERIAL0001", *words]))
        except SsdrigError as error:
            return error.exit_code

    go.held = Held
    return go


def test_command_purges_and_gives_the_result_as_json(run, capsys):
    assert run("--destroy-data", "SERIAL0001", "--json") == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert (result["method"], result["ok"], result["effect"]["zeros"]) == ("format-secure", True, 66)
    assert "ALL DATA WILL BE LOST on Model A, serial SERIAL0001" in err and "format-secure" in err
    assert run.held.rechecked == 1  # the drive is looked for again after it was purged


@pytest.mark.parametrize(("words", "code"), [((), 3), (("--dry-run",), 3), (("--dry-run", "--destroy-data", "SERIAL0001"), 0),
                                             (("--destroy-data", "SERIAL0002"), 3), (("--destroy-data", "SERIAL0001", "--method", "sanitize-block"), 4)])  # fmt: skip
def test_command_that_must_not_touch_the_drive(run, capsys, monkeypatch, words, code):
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    assert run(*words) == code
    assert commands(run.state) == [] and any(open(fake_erase.read(run.state)["backing"], "rb").read())


def test_dry_run_lists_methods_and_what_stands_against_it(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    assert run("--dry-run") == 3
    out = capsys.readouterr().out
    assert "* format-secure" in out and "against it: signature: ext4" in out and "no: the controller does not support it (SANICAP bit 1)" in out
    assert run("--dry-run", "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert said["chosen"] == "format-secure" and said["refusals"][0]["check"] == "signature" and len(said["methods"]) == len(purge.METHODS)
