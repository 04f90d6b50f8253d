"""Where the emulated board's image and emulator are looked for, and what is said when they are not there."""

import stat

import emulated
import pytest


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine with node and npm but no image; npm makes the folder it is asked for and counts its calls."""
    for name in ("SSDRIG_UF2", "SSDRIG_RP2040JS", "SSDRIG_NO_INSTALL"):
        monkeypatch.delenv(name, raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, words in (("node", ""), ("npm", f'echo "$@" >>"{tmp_path}/npm"; mkdir -p "$3/node_modules/rp2040js"')):
        (programs / name).write_text(f"#!/bin/sh\n{words}\n")
        (programs / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(emulated, "SETUP", tmp_path / ".setup/emulator")
    monkeypatch.setattr(emulated, "IMAGES", (tmp_path / ".setup/emulator/pico.uf2", tmp_path / "shared/pico.uf2"))
    return tmp_path


def uf2(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_no_image_is_a_reason_and_names_the_command(bare):
    assert "./ssdrig setup --emulator" in emulated.missing()
    assert not (bare / "npm").exists()


def test_the_image_of_setup_comes_before_the_shared_one(bare, monkeypatch):
    shared = uf2(bare / "shared/pico.uf2")
    assert emulated.image() == shared
    own = uf2(bare / ".setup/emulator/pico.uf2")
    assert emulated.image() == own
    monkeypatch.setenv("SSDRIG_UF2", str(bare / "gone.uf2"))
    assert str(bare / "gone.uf2") in emulated.missing()


def test_the_emulator_is_fetched_once(bare):
    uf2(bare / "shared/pico.uf2")
    assert emulated.missing() == emulated.missing() == ""
    (call,) = (bare / "npm").read_text().splitlines()
    assert call == f"ci --prefix {bare}/.setup/emulator/fetched --ignore-scripts --no-audit --no-fund"
    assert sorted(path.name for path in (bare / ".setup/emulator").iterdir()) == ["lock", "node_modules"]


def test_a_fetch_that_was_killed_is_not_taken_for_done(bare):
    """npm unpacks for seconds into the folder that it was told; what it leaves is fetched anew."""
    uf2(bare / "shared/pico.uf2")
    npm = (bare / "bin/npm").read_text()
    (bare / "bin/npm").write_text(npm + "kill -9 $$\n")
    assert emulated.missing().startswith("rp2040js cannot be fetched: ")
    assert emulated.missing().startswith("rp2040js cannot be fetched: ")
    (bare / "bin/npm").write_text(npm)
    assert emulated.missing() == ""
    assert len((bare / "npm").read_text().splitlines()) == 3


@pytest.mark.parametrize("words", ["exit 1", "echo offline >&2; exit 1"])
def test_a_fetch_that_fails_is_a_reason(bare, words):
    uf2(bare / "shared/pico.uf2")
    (bare / "bin/npm").write_text(f"#!/bin/sh\n{words}\n")
    assert emulated.missing().startswith("rp2040js cannot be fetched: ")
    if "offline" in words:
        assert "offline" in emulated.missing()


def test_nothing_is_fetched_against_the_users_wish(bare, monkeypatch):
    uf2(bare / "shared/pico.uf2")
    monkeypatch.setenv("SSDRIG_NO_INSTALL", "1")
    assert "SSDRIG_NO_INSTALL" in emulated.missing()
    monkeypatch.setenv("SSDRIG_RP2040JS", str(bare / "mine"))
    assert str(bare / "mine") in emulated.missing()
    assert not (bare / "npm").exists()
