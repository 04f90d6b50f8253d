"""The wheel and the sdist: built offline, unpacked outside the clone, and every command of the clone started there."""

import base64
import csv
import email
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from ssdrig import cli

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "host/build_package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SMART = ROOT / "tests/data/smartctl/nvme-big.json"


def build(backend: Path, kind: str, folder: Path) -> Path:
    """Build as a front end does: the hook in a process of its own, in an isolated Python without any package."""
    words = f"import sys; sys.path.insert(0, {str(backend.parent)!r}); import build_package as b; "
    words += f"print(b.build_{kind}({str(folder)!r}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", words], capture_output=True, text=True, check=True)
    return folder / done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(BACKEND, "wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> dict:
    """An environment outside the clone, made of this Python, this wheel, and the packages of the clone's environment
    that a plain install brings: the environment variables, and the program."""
    folder = tmp_path_factory.mktemp("installed")
    site = folder / "site"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SSDRIG"))}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    done = subprocess.run(
        [*pip, "--no-compile", "--target", site, wheel], env=environment, capture_output=True, text=True
    )
    if done.returncode and "No module named pip" in done.stderr:
        pytest.skip("this Python has no pip")
    assert done.returncode == 0, done.stderr
    base = folder / "base"
    base.mkdir()
    for package in ("numpy", "numpy.libs", "serial", "mpremote", "platformdirs"):
        for package_folder in (Path(entry) / package for entry in sys.path if (Path(entry) / package).is_dir()):
            (base / package).symlink_to(package_folder)
            break
    environment |= {"PYTHONPATH": f"{site}:{base}", "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return {"env": environment, "program": site / "bin/ssdrig", "cwd": folder, "site": site}


def run(installed: dict, *words: str, code: int = 0) -> subprocess.CompletedProcess:
    argv = [sys.executable, "-S", str(installed["program"]), *words]
    done = subprocess.run(argv, env=installed["env"], cwd=installed["cwd"], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_wheel_records_the_digest_of_each_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = list(csv.reader(archive.read(record).decode().splitlines()))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            if name != record:
                data = archive.read(name)
                sha256 = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert (digest, size) == (f"sha256={sha256}", str(len(data)))


def test_metadata_has_the_base_and_the_extras_of_users(wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA")))
    metadata = email.message_from_bytes(text)
    assert (metadata["Name"], metadata["Version"]) == (PROJECT["name"], PROJECT["version"])
    extras = set(PROJECT["optional-dependencies"]) - {"test", "uv", "lake-test", "hardware-test"}
    assert set(metadata.get_all("Provides-Extra")) == extras >= {"bench", "serve", "completion", "lake"}
    plain = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert plain == PROJECT["dependencies"]


def test_sdist_builds_the_same_wheel(wheel, tmp_path):
    sdist = build(BACKEND, "sdist", tmp_path)
    with tarfile.open(sdist) as tar:
        tar.extractall(tmp_path, filter="data") if sys.version_info >= (3, 12) else tar.extractall(tmp_path)
    again = build(tmp_path / sdist.name.removesuffix(".tar.gz") / "host/build_package.py", "wheel", tmp_path)
    assert again.read_bytes() == wheel.read_bytes()


def test_every_command_of_the_clone_answers_help(installed):
    """In one process: each help is that of the installed package, and advises `ssdrig`, not `./ssdrig`."""
    words = "import sys; from ssdrig import cli\nfor name in cli.COMMANDS:\n"
    words += " try: cli.main([name, '--help'])\n except SystemExit as end: print('ended', name, end.code)\n"
    argv = [sys.executable, "-S", "-c", words]
    done = subprocess.run(argv, env=installed["env"], cwd=installed["cwd"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("ended ")] == [
        [name, "0"] for name in cli.COMMANDS
    ], done.stderr
    assert "./ssdrig" not in done.stdout + done.stderr
    whole = run(installed, "--help").stdout
    assert "./ssdrig" not in whole and "ssdrig wear" in whole


def test_wear_and_plans_answer_without_any_package(installed):
    plain = installed | {"env": installed["env"] | {"PYTHONPATH": str(installed["site"])}}
    shown = run(plain, "wear", "--smartctl", str(SMART), "--json")
    assert json.loads(shown.stdout)
    assert "consistency" in run(plain, "plans").stdout


@pytest.mark.parametrize(
    "words, named",
    [
        (("virtual", "--preset", "sata-tlc", "--socket", "drive"), "ssdrig[bench]"),
        (("completion", "bash"), "ssdrig[completion]"),
        (("query", "--lake", ".", "select 1"), "ssdrig[lake]"),
        (("hardware", "release"), "clone"),
        (("test",), "clone"),
        (("setup",), "clone"),
    ],
)
def test_missing_extra_is_one_error_that_names_it(installed, words, named):
    done = run(installed, *words, code=9)
    assert named in done.stderr and len(done.stderr.splitlines()) == 3


def test_command_is_named_as_it_is_typed_where_it_runs(monkeypatch):
    from ssdrig.base import shipped

    monkeypatch.setattr(shipped, "INSTALLED", True)
    assert shipped.as_called("see `./ssdrig drives`; sudo ./ssdrig\n") == "see `ssdrig drives`; sudo ssdrig\n"
    assert shipped.as_called("/opt/x/./ssdrig a, ./ssdrig.toml") == "/opt/x/./ssdrig a, ./ssdrig.toml"
    monkeypatch.setattr(shipped, "INSTALLED", False)
    assert shipped.as_called("./ssdrig drives") == "./ssdrig drives"


def test_no_message_advises_the_set_up_of_a_clone_outside_of_it():
    """shipped.installing() alone words it: a wheel has no `./ssdrig setup`."""
    sources = (ROOT / "host/ssdrig").rglob("*.py")
    having = {
        path.relative_to(ROOT / "host/ssdrig").as_posix()
        for path in sources
        if path.parent.name != "setup" and "./ssdrig setup" in path.read_text()
    }
    assert having <= {"base/shipped.py", "virtual/compiled.py"}
