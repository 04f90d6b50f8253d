"""Finding MicroPython, and unpacking one from an apt archive. The archive here is a folder made by the test, with its
own key."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import debian, micropython


def program(path: Path, words: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{words}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    """A machine without MicroPython: an empty PATH folder and an empty .setup, both under the returned path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / ".setup").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("SSDRIG_MICROPYTHON", raising=False)
    monkeypatch.setattr(micropython, "PRIVATE", tmp_path / ".setup/micropython")
    return tmp_path


def private_copy(root: Path, version: str) -> list[str]:
    """Looks like an unpacked one: the loader is a script that starts the program it is given."""
    program(root / "usr/bin/micropython", f"echo micropython {version}")
    loader = program(root / "usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1", 'shift 2; exec "$@"')
    return [str(loader), "--library-path", str(loader.parent), str(root / "usr/bin/micropython")]


def test_the_real_one_runs_our_kind_of_code(micropython):
    code = (
        "import sys\n@micropython.viper\ndef f(a: int) -> int:\n    return a << 3\nprint(sys.implementation[0], f(5))"
    )
    done = subprocess.run([*micropython, "-c", code], capture_output=True, text=True)
    assert done.stdout == "micropython 40\n", done.stderr


def test_order_override_then_path_then_unpacked(machine, monkeypatch):
    unpacked = private_copy(machine / ".setup/micropython", "1 25 0")
    assert micropython.command() == unpacked
    program(machine / "bin/micropython", "echo micropython 1 22 1")
    assert micropython.command() == ["micropython"]
    mine = program(machine / "my micropython", "echo micropython 1 27 0")
    monkeypatch.setenv("SSDRIG_MICROPYTHON", f"'{mine}' -O2")
    assert micropython.command() == [str(mine), "-O2"]


@pytest.mark.parametrize(
    "words",
    [
        "echo micropython 1 21 9",
        "echo cpython 3 11 7",
        "echo micropython",
        "echo micropython a b c",
        "exit 1",
        "echo micropython 1 25 0; exit 1",
    ],
)
def test_too_old_or_something_else_is_passed_over(machine, words):
    program(machine / "bin/micropython", words)
    with pytest.raises(
        ToolMissing, match="expected MicroPython 1.22.0 or newer, unix port; seen micropython of version"
    ):
        micropython.command()
    unpacked = private_copy(machine / ".setup/micropython", "1 25 0")
    assert micropython.command() == unpacked


def test_a_wrong_override_is_not_passed_over(machine, monkeypatch):
    private_copy(machine / ".setup/micropython", "1 25 0")
    monkeypatch.setenv("SSDRIG_MICROPYTHON", "/nowhere/micropython")
    with pytest.raises(
        ToolMissing, match="seen SSDRIG_MICROPYTHON=/nowhere/micropython; do: correct SSDRIG_MICROPYTHON"
    ):
        micropython.command()


def test_none_at_all(machine):
    with pytest.raises(ToolMissing, match="seen no program micropython; do: run ./ssdrig setup"):
        micropython.command()


def test_debian_mirrors_of_this_machine():
    targets = """\
http://deb.example/debian/|bookworm|main|Debian
http://deb.example/debian/|bookworm|contrib|Debian
http://deb.example/debian/|bookworm-updates|main|Debian
http://security.example/debian-security/|bookworm-security|main|Debian
https://docker.example/linux/debian/|bookworm|stable|Docker
https://else.example/apt/|stable|main|Else
mirror+file:/etc/apt/mirrors/debian.list|bookworm|main|$(ORIGIN)
cdrom:[Debian]/|bookworm|main|Debian
http://second.example/debian/|stable|main|Debian
"""
    assert debian.debian_mirrors(targets) == [
        "http://deb.example/debian/",
        "http://second.example/debian/",
        "mirror+file:/etc/apt/mirrors/debian.list",
    ]
    assert debian.debian_mirrors("") == []


def test_a_machine_without_apt_is_told_what_to_do(machine):
    with pytest.raises(ToolMissing, match="name it in SSDRIG_MICROPYTHON"):
        micropython.provision()


# ---- an archive of our own


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def archive(tmp_path_factory) -> tuple[Path, Path]:
    """A signed archive with the packages micropython and, needed by it, libtiny (the loader). Returns (mirror,
    keyring)."""
    for tool in ("apt-get", "dpkg-deb", "gpg", "gpg-agent"):
        if not shutil.which(tool):
            pytest.skip(f"makes an apt archive, which needs {tool}")
    folder = tmp_path_factory.mktemp("archive")
    mirror, keyring = folder / "mirror", folder / "keyring.gpg"
    index = mirror / f"dists/{micropython.SUITE}"
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (mirror / "pool").mkdir(parents=True)
    (index / f"main/binary-{architecture}").mkdir(parents=True)
    for name, file, words, needs in (
        ("micropython", "usr/bin/micropython", "echo micropython 1 25 0", "Depends: libtiny\n"),
        ("libtiny", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", 'shift 2; exec "$@"', ""),
    ):
        tree = folder / name
        program(tree / file, words)
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(
            f"Package: {name}\nVersion: 1\nArchitecture: {architecture}\nMaintainer: test"
            f" <test@example.invalid>\n{needs}Description: test\n"
        )
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-b", tree, mirror / f"pool/{name}.deb"], check=True, capture_output=True
        )
    packages = f"main/binary-{architecture}/Packages"
    for deb in sorted(mirror.glob("pool/*.deb")):
        control = subprocess.run(["dpkg-deb", "-f", deb], capture_output=True, text=True, check=True).stdout
        with open(index / packages, "a") as file:
            file.write(f"{control}Filename: pool/{deb.name}\nSize: {deb.stat().st_size}\nSHA256: {sha256(deb)}\n\n")
    (folder / "Release").write_text(
        f"Suite: {micropython.SUITE}\nCodename: {micropython.SUITE}\nComponents: main\nArchitectures:"
        f" {architecture}\nDate: Sat, 09 Aug 2025 00:00:00 UTC\nSHA256:\n {sha256(index / packages)}"
        f" {(index / packages).stat().st_size} {packages}\n"
    )
    gpg = ["gpg", "--homedir", folder / "gpg", "--batch", "--quiet", "--passphrase", ""]
    (folder / "gpg").mkdir(mode=0o700)
    try:
        subprocess.run(
            [*gpg, "--quick-gen-key", "test@example.invalid", "rsa2048", "sign"], check=True, capture_output=True
        )
        subprocess.run(
            [*gpg, "--clearsign", "-o", index / "InRelease", folder / "Release"], check=True, capture_output=True
        )
        keyring.write_bytes(subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout)
    finally:
        subprocess.run(["gpgconf", "--homedir", folder / "gpg", "--kill", "all"], capture_output=True)
    return mirror, keyring


@pytest.fixture
def setup_folder(tmp_path) -> Path:
    """With a space in its path, as a clone may have."""
    folder = tmp_path / "my clone/.setup"
    folder.mkdir(parents=True)
    return folder


def unpack(mirror: Path, keyring: Path, destination: Path) -> None:
    debian.unpack(
        f"copy:{mirror}", keyring, micropython.SUITE, "micropython", destination, micropython.runs, "do something"
    )


@pytest.mark.slow
def test_unpacks_the_program_and_what_it_needs(archive, setup_folder, monkeypatch):
    mirror, keyring = archive
    destination = setup_folder / "micropython"
    (destination / "old").mkdir(parents=True)
    unpack(mirror, keyring, destination)
    assert os.listdir(setup_folder) == ["micropython"]
    assert not (destination / "old").exists()
    monkeypatch.setattr(micropython, "PRIVATE", destination)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("SSDRIG_MICROPYTHON", raising=False)
    argv = micropython.command()
    assert argv[3] == str(destination / "usr/bin/micropython")
    assert argv[0] == str(destination / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")


def refused(mirror: Path, keyring: Path, setup_folder: Path) -> str:
    with pytest.raises(ToolMissing) as caught:
        unpack(mirror, keyring, setup_folder / "micropython")
    assert os.listdir(setup_folder) == []
    return caught.value.seen


def test_an_archive_signed_by_another_key_is_refused(archive, setup_folder, tmp_path):
    (tmp_path / "other.gpg").write_bytes(b"")
    assert "is not signed" in refused(archive[0], tmp_path / "other.gpg", setup_folder)


def test_an_index_changed_after_signing_is_refused(archive, setup_folder, tmp_path):
    mirror = tmp_path / "mirror"
    shutil.copytree(archive[0], mirror)
    for index in mirror.glob("dists/*/main/*/Packages"):
        index.write_bytes(index.read_bytes().replace(b"Description: test", b"Description: Test"))
    assert re.search(
        "(?i)hash sum mismatch|unexpected size|failed to download", refused(mirror, archive[1], setup_folder)
    )


def test_a_package_changed_after_signing_is_refused(archive, setup_folder, tmp_path):
    mirror = tmp_path / "mirror"
    shutil.copytree(archive[0], mirror)
    package = bytearray((mirror / "pool/micropython.deb").read_bytes())
    package[-20] ^= 1
    (mirror / "pool/micropython.deb").write_bytes(package)
    assert re.search(
        "(?i)hash sum mismatch|unexpected size|failed to download", refused(mirror, archive[1], setup_folder)
    )


def test_a_mirror_without_the_release_is_refused(archive, setup_folder, tmp_path):
    assert "does not have a Release file" in refused(tmp_path / "no-mirror", archive[1], setup_folder)
