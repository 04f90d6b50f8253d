"""Finding KiCad's command line, and not fetching it where that is not wanted. That it checks the board:
test_hardware.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_micropython import archive, program, setup_folder  # noqa: F401

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import debian, kicad, micropython


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    """A machine without KiCad: an empty folder in PATH and an empty .setup."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(kicad, "PRIVATE", tmp_path / ".setup/kicad")
    return tmp_path


def private_copy(root: Path, version: str) -> list[str]:
    program(root / "usr/bin/kicad-cli", f"echo {version}")
    libraries = root / "usr/lib/x86_64-linux-gnu"
    program(libraries / "ld-linux-x86-64.so.2", 'shift 2; exec "$@"')
    return [
        str(root / "usr/bin/ld-linux-x86-64.so.2"),
        "--library-path",
        str(libraries),
        str(root / "usr/bin/kicad-cli"),
    ]


def test_path_first_then_the_unpacked_one_by_a_loader_beside_it(machine):
    unpacked = private_copy(machine / ".setup/kicad", "9.0.2")
    assert kicad.command() == unpacked
    assert Path(unpacked[0]).exists()
    program(machine / "bin/kicad-cli", "echo 10.0.0-rc1")
    assert kicad.command() == ["kicad-cli"]


@pytest.mark.parametrize(
    "words, seen",
    [
        ("echo 7.0.11", "7"),
        ("echo 8.0.9", "8"),
        ("echo new", "unknown"),
        ("echo 9.0.8; exit 1", "unknown"),
        ("exit 1", "unknown"),
    ],
)
def test_too_old_or_something_else_is_passed_over(machine, words, seen):
    program(machine / "bin/kicad-cli", words)
    with pytest.raises(ToolMissing, match=f"expected kicad-cli 9 or newer; seen kicad-cli of version {seen}; do"):
        kicad.command()


def test_nothing_is_fetched_where_that_is_not_wanted(machine, monkeypatch):
    monkeypatch.setenv("SSDRIG_NO_INSTALL", "1")
    monkeypatch.setattr(debian, "provision", lambda *_, **__: pytest.fail("fetches"))
    with pytest.raises(ToolMissing, match="seen none; do: install KiCad 9"):
        kicad.provision()
    private_copy(machine / ".setup/kicad", "9.0.2")
    kicad.provision()


def test_a_machine_without_apt_is_told_what_to_do(machine, monkeypatch):
    monkeypatch.delenv("SSDRIG_NO_INSTALL", raising=False)
    with pytest.raises(ToolMissing, match="do: install KiCad 9"):
        kicad.provision()


def test_the_next_set_up_removes_what_a_killed_one_left(machine, monkeypatch):
    """Also where KiCad has come by another way meanwhile; a folder of a living set-up or of someone else stays."""
    setup = machine / ".setup"
    private_copy(setup / "kicad", "9.0.2")
    script = (
        f"from ssdrig.base import temporary; print(temporary.make('kicad.', {str(setup)!r})[0], flush=True); input()"
    )
    made = []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        made.append((process, Path(process.stdout.readline().strip())))
    (killed, left), (living, held) = made
    killed.kill()
    killed.wait()
    (left / "root").mkdir()
    other = setup / "kicad.mine"
    other.mkdir()
    try:
        kicad.provision()
        assert not left.exists() and held.is_dir() and other.is_dir()
    finally:
        living.kill()
        living.wait()


@pytest.mark.slow
def test_what_can_be_done_without_is_not_fetched(archive, setup_folder):
    """The archive's micropython needs libtiny."""
    mirror, keyring = archive
    for without, seen in (((), ["bin", "lib"]), (("libtiny",), ["bin"])):
        debian.unpack(
            f"copy:{mirror}",
            keyring,
            micropython.SUITE,
            "micropython",
            setup_folder / "it",
            lambda _: True,
            "do",
            without=without,
        )
        assert sorted(os.listdir(setup_folder / "it/usr")) == seen
