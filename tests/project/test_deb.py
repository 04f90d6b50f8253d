"""The Debian package and its man pages: what is in them, made twice the same, from the parsers of all commands."""

import gzip
import importlib
import io
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from ssdrig import cli
from ssdrig.base import shipped

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "host"))
import build_deb
import manual_pages

MODULES = {name: importlib.import_module(where) for name, (where, _) in cli.COMMANDS.items()}
PAGES = manual_pages.pages(MODULES)


def members(archive: bytes) -> dict[str, bytes]:
    """The members of an ar(5) archive."""
    assert archive[:8] == b"!<arch>\n"
    out, at = {}, 8
    while at < len(archive):
        head = archive[at : at + 60].decode()
        size = int(head[48:58])
        out[head[:16].strip()], at = archive[at + 60 : at + 60 + size], at + 60 + size + size % 2
    return out


def files(packed: bytes) -> dict[str, tuple[int, bytes]]:
    """Name -> mode and content."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        return {
            entry.name.removeprefix("./"): (entry.mode, tar.extractfile(entry).read())  # type: ignore[union-attr]
            for entry in tar
            if entry.isfile()
        }


@pytest.fixture(scope="module")
def deb(tmp_path_factory) -> Path:
    pytest.importorskip("shtab", reason="shtab is not installed: ./ssdrig setup --extra completion")
    return build_deb.build(tmp_path_factory.mktemp("deb"))


def test_package_has_program_man_pages_completion_and_rules(deb):
    parts = members(deb.read_bytes())
    assert list(parts) == ["debian-binary", "control.tar.gz", "data.tar.gz"]
    inside = files(parts["data.tar.gz"])
    assert inside["usr/bin/ssdrig"] == (0o755, build_deb.PROGRAM.encode())
    assert {f"usr/share/man/man1/ssdrig-{name}.1.gz" for name in cli.COMMANDS} <= set(inside)
    assert {*build_deb.COMPLETIONS.values()} <= set(inside)
    rules = (ROOT / "hardware/70-ssdrig.rules").read_bytes()
    assert inside["usr/lib/udev/rules.d/70-ssdrig.rules"] == (0o644, rules)
    assert f"{build_deb.DISTRIBUTION}ssdrig/cli.py" in inside
    assert f"{build_deb.DISTRIBUTION}ssdrig/shipped/firmware/wire.py" in inside
    control = files(parts["control.tar.gz"])
    fields = dict(line.split(": ", 1) for line in control["control"][1].decode().splitlines() if ": " in line)
    assert {"python3-numpy", "python3-serial"} <= {word.split()[0] for word in fields["Depends"].split(", ")}
    assert {"fio", "smartmontools", "nvme-cli", "micropython"} <= set(fields["Suggests"].split(", "))
    assert len(control["md5sums"][1].splitlines()) == len(inside)
    assert {name for name, (mode, _) in control.items() if mode == 0o755} == {"postinst", "prerm"}


def test_same_sources_make_the_same_bytes(deb, tmp_path):
    assert build_deb.build(tmp_path).read_bytes() == deb.read_bytes()


def test_dpkg_reads_it(deb):
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    listed = subprocess.run(["dpkg-deb", "-c", deb], capture_output=True, text=True, check=True).stdout
    assert "root/root" in listed and "./usr/bin/ssdrig" in listed
    assert subprocess.run(["dpkg-deb", "-f", deb, "Package"], capture_output=True, text=True).stdout == "ssdrig\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_page_of_a_command_has_its_options_and_examples(name):
    text = PAGES[f"ssdrig-{name}.1"].replace(r"\-", "-").replace(r"\e", "\\")
    parser = cli.parser_of({name: MODULES[name]})
    below = manual_pages._commands(parser)[name]
    for command in (below, *manual_pages._commands(below).values()):
        for action in command._actions:
            if action.help != "==SUPPRESS==" and action.option_strings:
                assert ", ".join(action.option_strings) in text, action.option_strings
    examples = MODULES[name].EXAMPLES
    assert examples
    for words, _ in examples:
        assert f".B ssdrig {words}" in text
        assert shlex.split(words)[0] == name
    assert "./ssdrig" not in text


def test_pages_are_read_without_a_warning(tmp_path):
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("man-db or groff is not installed")
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
        words = ["man", "--warnings=w", "-l", tmp_path / name]
        environment = {"MANWIDTH": "80", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert done.returncode == 0 and not done.stderr, (name, done.stderr)


def test_missing_extra_of_the_package_is_named_as_debian_has_it(monkeypatch):
    monkeypatch.setattr(shipped, "INSTALLED", True)
    monkeypatch.setattr(shipped, "DEBIAN", True)
    assert shipped.installing("bench") == "apt-get install python3-numba"
    assert shipped.installing("serve") == "pipx install 'ssdrig[serve]'"
    assert shipped.installing("") == "pipx install 'ssdrig'"


def test_changelog_is_packed(deb):
    inside = files(members(deb.read_bytes())["data.tar.gz"])
    assert gzip.decompress(inside["usr/share/doc/ssdrig/changelog.gz"][1]) == (ROOT / "CHANGELOG.md").read_bytes()
