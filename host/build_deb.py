"""Builds the Debian package of ssdrig from its wheel: `./ssdrig setup --extra completion && .venv/bin/python
host/build_deb.py [DIR]`. Needs no tool of Debian. The same sources make the same bytes.

The wheel goes into dist-packages, which every Python 3 of the system reads; beside it man pages and completion scripts,
made from the parsers, the board's udev rules and the licence."""

import gzip
import hashlib
import importlib
import io
import os
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import build_package  # noqa: E402
import manual_pages  # noqa: E402

from ssdrig import cli  # noqa: E402
from ssdrig.commands import completion  # noqa: E402

DISTRIBUTION = "usr/lib/python3/dist-packages/"
PROGRAM = """#!/usr/bin/python3 -P
from ssdrig.cli import installed

installed()
"""
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/ssdrig",
    "zsh": "usr/share/zsh/vendor-completions/_ssdrig",
    "fish": "usr/share/fish/vendor_completions.d/ssdrig.fish",
}
CONTROL = """Package: ssdrig
Version: {version}
Architecture: all
Maintainer: the authors of ssdrig <ssdrig@localhost>
Installed-Size: {kilobytes}
Depends: python3 (>= 3.11), python3-numpy, python3-serial
Suggests: fio, smartmontools, nvme-cli, hdparm, micropython, python3-numba, uhubctl
Section: utils
Priority: optional
Description: measure power, I/O, wear and events of SSDs on one time axis
 Runs endurance, performance, power-loss and retention tests on drives that are
 named by their serial, and makes one HTML page of each; shows the wear of a
 drive against its limits; checks runs against limits for a CI.
 .
 fio runs the tests, smartmontools and nvme-cli read real drives, micropython
 and python3-numba make the simulated drive.
"""
# as dh_python3 writes them: byte code is made once, by root
POSTINST = """#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null 2>&1; then
    py3compile -p ssdrig
fi
"""
PRERM = """#!/bin/sh
set -e
if command -v py3clean >/dev/null 2>&1; then
    py3clean -p ssdrig
fi
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ssdrig

Files: *
Copyright: {owner}
License: MIT
{text}
"""


def build(folder: Path) -> Path:
    """Write the package into a folder. Returns its path. Raises ToolMissing without shtab."""
    with tempfile.TemporaryDirectory() as temporary:
        wheel = Path(temporary) / build_package.build_wheel(temporary)
        with zipfile.ZipFile(wheel) as archive:
            files = {DISTRIBUTION + name: archive.read(name) for name in archive.namelist()}
    files = {name: data for name, data in files.items() if not name.endswith(".dist-info/RECORD")}  # dpkg keeps its own
    modules = {name: importlib.import_module(where) for name, (where, _) in cli.COMMANDS.items()}
    files["usr/bin/ssdrig"] = PROGRAM.encode()
    for name, text in manual_pages.pages(modules).items():
        files[f"usr/share/man/man{manual_pages.SECTION}/{name}.gz"] = _packed(text.encode())
    for shell, name in COMPLETIONS.items():
        files[name] = completion.script(cli.parser_of(modules), shell).encode()
    root = build_package.ROOT
    files["usr/lib/udev/rules.d/70-ssdrig.rules"] = (root / "hardware/70-ssdrig.rules").read_bytes()
    files["usr/share/doc/ssdrig/changelog.gz"] = _packed((root / "CHANGELOG.md").read_bytes())
    files["usr/share/doc/ssdrig/copyright"] = _copyright((root / "LICENSE").read_text("utf-8")).encode()

    project = build_package._project()
    kilobytes = sum(len(data) + 1023 for data in files.values()) // 1024
    control = CONTROL.format(version=project["version"], kilobytes=kilobytes)
    digests = {name: hashlib.md5(data, usedforsecurity=False).hexdigest() for name, data in sorted(files.items())}
    sums = "".join(f"{digest}  {name}\n" for name, digest in digests.items())
    scripts = {"control": control, "md5sums": sums, "postinst": POSTINST, "prerm": PRERM}
    executable = {"usr/bin/ssdrig", "postinst", "prerm"}
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": _tar({name: text.encode() for name, text in scripts.items()}, executable),
        "data.tar.gz": _tar(files, executable),
    }
    path = folder / f"ssdrig_{project['version']}_all.deb"
    path.write_bytes(_archive(parts))
    return path


def _copyright(licence: str) -> str:
    owner = re.search(r"Copyright (?:\(c\) )?(.*)", licence)
    text = "\n".join(f" {line}" if line.strip() else " ." for line in licence.strip().splitlines())
    return COPYRIGHT.format(owner=owner[1] if owner else "the authors of ssdrig", text=text)


def _packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _tar(files: Mapping[str, bytes], executable: set[str]) -> bytes:
    """A .tar.gz of files of root's, each after the folders above it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders: set[str] = set()
        for name, data in sorted(files.items()):
            for above in reversed([str(path) for path in Path(name).parents if path != Path(".")]):
                if above not in folders:
                    folders.add(above)
                    entry = tarfile.TarInfo(f"./{above}/")
                    entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, build_package._epoch()
                    entry.uname = entry.gname = "root"
                    tar.addfile(entry)
            entry = tarfile.TarInfo(f"./{name}")
            entry.size, entry.mtime = len(data), build_package._epoch()
            entry.mode = 0o755 if name in executable else 0o644
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(data))
    return _packed(packed.getvalue())


def _archive(parts: Mapping[str, bytes]) -> bytes:
    """An ar(5) archive of these members, in this order."""
    out = b"!<arch>\n"
    for name, data in parts.items():
        head = f"{name:<16}{build_package._epoch():<12}{0:<6}{0:<6}{0o100644:<8o}{len(data):<10}`\n"
        out += head.encode() + data + b"\n" * (len(data) % 2)
    return out


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else build_package.ROOT / "dist")
    os.makedirs(target, exist_ok=True)
    print(build(target))
