"""ATA security erase behind a fake hdparm: no password stays on a drive, whatever happens."""

import shutil
import subprocess
import time

import fake_erase
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from purging import ByName, commands, machine, the_purge  # noqa: F401  fixture

from ssdrig.base.errors import DriveError
from ssdrig.drive import ata_security, purge


@pytest.mark.parametrize("method", ["ata-secure-erase", "ata-enhanced-erase"])
def test_ata_erase_sets_and_clears_a_password(machine, tmp_path, method):
    drive, state = machine("SATA", enhanced=1)
    result = the_purge(drive, method, root=tmp_path)
    assert result["ok"] and result["tool"] == "hdparm v9.65" and result["effect"]["zeros"] == 66
    assert [
        next(a for a in call if a.startswith("--security-") and a != "--security-mode") for call in commands(state)
    ] == ["--security-set-pass", ata_security.SWITCH[method]]
    after = fake_erase.read(state)
    assert after["enabled"] == 0 and after["password"] is None


def test_a_frozen_drive_is_explained_and_not_touched(machine, tmp_path):
    drive, state = machine("SATA", frozen=1)
    with pytest.raises(DriveError, match="BIOS.*power-cycle only the drive.*suspend"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert commands(state) == []


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ({"security": 0}, "no security feature"),
        ({"enabled": 1}, "--security-disable ssdrig"),
        ({"enabled": 1, "locked": 1}, "--security-unlock ssdrig"),
        ({"expired": 1}, "wrong passwords"),
        ({"garbage": 1}, "IDENTIFY DEVICE"),
    ],
)
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
        ata_security.erase(ByName(drive), "ata-secure-erase", lambda spent_s: None, timeout_s=0.5)
    assert (fake_erase.read(state)["enabled"], fake_erase.read(state)["password"]) == (0, None)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before the erase", "during the erase"])
def test_ctrl_c_leaves_no_password_unless_the_drive_is_erasing(machine, tmp_path, monkeypatch, capfd, when):
    drive, state = machine("SATA")
    real, asked = ata_security.identify, []

    def interrupt(*args):
        raise KeyboardInterrupt

    def identify(drive, path=None):
        asked.append(drive)
        # offers, promise, erase, and the one after the password was set
        return interrupt() if len(asked) == 4 else real(drive, path)

    if when == "before the erase":
        monkeypatch.setattr(ata_security, "identify", identify)
        behaviour = {"enabled": 0, "password": None}
    else:
        fake_erase.install(tmp_path, tmp_path / "backing", until=str(tmp_path / "may end"))
        monkeypatch.setattr(purge, "_line", interrupt)  # the first word of progress
        behaviour = {"enabled": 1, "password": "ssdrig"}
    with pytest.raises(KeyboardInterrupt):
        purge.purge(ByName(drive), "ata-secure-erase", root=tmp_path)
    assert {key: fake_erase.read(state)[key] for key in behaviour} == behaviour
    words = capfd.readouterr().err
    assert "takes the temporary password away at its end" in words and "--security-unlock ssdrig" in words
    (tmp_path / "may end").touch()
    deadline = time.monotonic() + 600  # the erase that was left alone ends
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
    with pytest.raises(
        DriveError,
        match=(
            r"STILL HAS THE PASSWORD 'ssdrig'.*hdparm --user-master u --security-unlock ssdrig .*--security-disable"
            r" ssdrig"
        ),
    ):
        the_purge(drive, "ata-secure-erase", root=tmp_path)
    assert fake_erase.read(state)["locked"] == 1


def test_an_erase_that_reports_success_but_keeps_the_data(machine, tmp_path):
    drive, _ = machine("SATA", keeps=True)
    with pytest.raises(DriveError, match="did not purge"):
        the_purge(drive, "ata-secure-erase", root=tmp_path)


@pytest.mark.parametrize(("word", "seconds"), [(0, None), (1, 120), (84, 84 * 120), (0x8000 | 300, 36000)])
def test_erase_time(word, seconds):
    words = [0] * 256
    words[89] = word
    assert ata_security.decode(words).erase_s == seconds


def test_identify_words_mean_what_the_real_hdparm_says():
    """The same 256 words through `hdparm --Istdin`, which decodes them as it decodes a drive's."""
    if not shutil.which("hdparm"):
        pytest.skip("hdparm is not installed: apt-get install hdparm")
    for behaviour in (
        {"frozen": 1},
        {"enabled": 1, "locked": 1, "enhanced": 1},
        {"expired": 1, "word69": 0x4020},
        {"word89": 84, "enhanced": 1, "word90": 3},
    ):
        words = fake_erase.identify_words(behaviour)
        text = "\n".join(" ".join(f"{w:04x}" for w in words[at : at + 8]) for at in range(0, 256, 8))
        output = subprocess.run(["hdparm", "--Istdin"], input=text, capture_output=True, text=True).stdout
        security = ata_security.decode(ata_security.parse(text))
        lines = [" ".join(line.split()) for line in output.splitlines()]
        for name in ("enabled", "locked", "frozen"):
            assert (name in lines) == getattr(security, name) and (f"not {name}" in lines) != getattr(security, name), (
                name
            )
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
