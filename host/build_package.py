"""Builds the wheel and the sdist of ssdrig (PEP 517) from pyproject.toml, offline: standard library only.

hatchling or setuptools would do; both have to be fetched first, and a test that builds could then not run in a clone.
The files outside host/ that the program reads (SHIPPED) go into the wheel as ssdrig/shipped/. The same sources make the
same bytes: names are sorted, times are SOURCE_DATE_EPOCH's or 1980."""

import base64
import hashlib
import io
import os
import re
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ssdrig", "selfcheck")
SHIPPED = ("firmware", "hardware/builds", "hardware/70-ssdrig.rules", "schemas/influx.toml", "schemas/lake.toml")
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "host/build_package.py")  # beside what the wheel has
CLONE_ONLY = {"test", "uv", "lake-test", "hardware-test"}  # extras that nobody needs without a clone's tests
LEFT_OUT = ("__pycache__",)
GENERATOR = "ssdrig build_package"


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """Nothing."""
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """Write the wheel into a folder. Returns its file name."""
    project = _project()
    head = f"{project['name']}-{project['version']}"
    name = f"{head}-py3-none-any.whl"
    files = {f"{package}/{inner}": data for package in PACKAGES for inner, data in _tree(ROOT / "host" / package)}
    for shipped in SHIPPED:
        at = ROOT / shipped
        inside = _tree(at) if at.is_dir() else [("", at.read_bytes())]
        files |= {f"ssdrig/shipped/{shipped}/{inner}".rstrip("/"): data for inner, data in inside}
    files |= {f"{head}.dist-info/{inner}": data for inner, data in _information(project).items()}
    record = f"{head}.dist-info/RECORD"
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in sorted(files.items())]
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in [*sorted(files.items()), (record, "\n".join([*rows, f"{record},,", ""]).encode())]:
            entry = zipfile.ZipInfo(path, time.gmtime(max(_epoch(), 315532800))[:6])
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            wheel.writestr(entry, data)
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None) -> str:
    """Write what the wheel reports of itself into a folder. Returns the name of its .dist-info."""
    project = _project()
    folder = Path(metadata_directory) / f"{project['name']}-{project['version']}.dist-info"
    for inner, data in _information(project).items():
        (folder / inner).parent.mkdir(parents=True, exist_ok=True)
        (folder / inner).write_bytes(data)
    return folder.name


def build_sdist(sdist_directory, config_settings=None) -> str:
    """Write the sources that a wheel is built from into a folder. Returns the file name."""
    project = _project()
    head = f"{project['name']}-{project['version']}"
    places = [*SOURCES, *(f"host/{package}" for package in PACKAGES), *SHIPPED]
    files = {"PKG-INFO": _metadata(project).encode()}
    for place in places:
        at = ROOT / place
        inside = _tree(at) if at.is_dir() else [("", at.read_bytes())]
        files |= {f"{place}/{inner}".rstrip("/"): data for inner, data in inside}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{head}/{path}")
            entry.size, entry.mtime, entry.mode = len(data), _epoch(), 0o644
            tar.addfile(entry, io.BytesIO(data))
    import gzip

    name = f"{head}.tar.gz"
    (Path(sdist_directory) / name).write_bytes(gzip.compress(packed.getvalue(), mtime=_epoch()))
    return name


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _tree(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of every file below a folder; a link to a file is that file."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith(".pyc"):
                path = Path(where) / name
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _information(project: dict) -> dict[str, bytes]:
    """The files of the .dist-info, except RECORD."""
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    return {
        "METADATA": _metadata(project).encode(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {GENERATOR}\nRoot-Is-Purelib: true\nTag: py3-none-any\n".encode(),
        "entry_points.txt": f"[console_scripts]\n{scripts}".encode(),
        "licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }


def _metadata(project: dict) -> str:
    """The core metadata, version 2.4."""
    fields = [
        ("Metadata-Version", "2.4"),
        ("Name", project["name"]),
        ("Version", project["version"]),
        ("Summary", project["description"]),
        ("License-Expression", project["license"]),
        *(("License-File", name) for name in project["license-files"]),
        ("Requires-Python", ",".join(sorted(re.split(r"\s*,\s*", project["requires-python"])))),
        *(("Requires-Dist", text) for text in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        if extra not in CLONE_ONLY:
            fields.append(("Provides-Extra", extra))
            fields += [("Requires-Dist", f'{text}; extra == "{extra}"') for text in needs]
    fields.append(("Description-Content-Type", "text/markdown"))
    head = "".join(f"{name}: {text}\n" for name, text in fields)
    return f"{head}\n{(ROOT / project['readme']).read_text('utf-8')}"


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _epoch() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or 0)


def main(arguments: Iterable[str]) -> None:
    """Build both into the folder named, or dist/."""
    folder = Path(next(iter(arguments), ROOT / "dist"))
    folder.mkdir(parents=True, exist_ok=True)
    for build in (build_sdist, build_wheel):
        print(folder / build(folder))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
