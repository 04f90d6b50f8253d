"""Where the set-up gets Python packages from: by uv, or by pip where uv does not do what pip was told."""

import hashlib
import os
import sys
import venv
from pathlib import Path

import pytest
from launcher_clone import wheel

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import environment, needs, steps

UV = needs.VENV / "bin/uv"
pytestmark = pytest.mark.slow  # starts pip many times
PIP_CONFIG = [sys.executable, "-I", "-m", "pip", "config", "list"]


class Fetched:
    """An empty environment, a lock file of one package, and what the set-up runs to install it, pip left out."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.lines, self.fails = folder / "environment", [], set()
        venv.create(self.folder, symlinks=True)
        (folder / "wheels").mkdir()
        monkeypatch.setenv("UV_FIND_LINKS", str(folder / "wheels"))
        monkeypatch.setenv("UV_OFFLINE", "1")
        self.lock = folder / "requirements.lock"
        self.lock.write_text(
            f"tinypkg==1.0 --hash=sha256:{hashlib.sha256(wheel(folder / 'wheels').read_bytes()).hexdigest()}\n"
        )
        really = environment.run

        def run(argv, words, lock=None, check=True, more=None):
            name = "uv" if argv[0].endswith("/uv") else argv[3]
            self.lines.append((name, argv, more))
            if name != "pip":
                return really(argv, words, lock, check, more)
            if name in self.fails and check:
                raise ToolMissing("pip to succeed", "exit code 1", "see there")
            return name not in self.fails

        monkeypatch.setattr(environment, "run", run)
        monkeypatch.setattr(steps, "LOG", folder / "log")
        monkeypatch.setattr(environment, "_fetched_as_usual", lambda line: {})

    def fetch(self) -> list[str]:
        """The names of the programs that ran."""
        environment.fetch(self.folder, [self.lock], os.open(self.lock, os.O_RDONLY), 100)
        return [name for name, *_ in self.lines]

    def has_uv(self) -> "Fetched":
        if not UV.exists():
            pytest.skip("this environment has no uv: pip fetched its packages")
        (self.folder / "bin/uv").symlink_to(UV.resolve())
        return self

    def package(self) -> Path | None:
        return next(self.folder.glob("lib/*/site-packages/tinypkg.py"), None)


@pytest.fixture
def fetched(tmp_path, monkeypatch) -> Fetched:
    return Fetched(tmp_path, monkeypatch)


def test_uv_installs_what_the_lock_file_names_and_leaves_no_cache(fetched, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME")
    (tmp_path / "uv-of-one-that-was-killed").mkdir()
    assert fetched.has_uv().fetch() == ["uv", "compileall"]
    installed = fetched.package().parent
    assert (installed / "tinypkg-1.0.dist-info/INSTALLER").read_text() == "uv"
    assert list(installed.glob("__pycache__/tinypkg_unused.*.pyc"))
    assert not (tmp_path / "home").exists() and not list(tmp_path.glob("uv-*"))


def test_uv_refuses_a_package_with_another_hash(fetched, tmp_path):
    fetched.lock.write_text(f"tinypkg==1.0 --hash=sha256:{'0' * 64}\n")
    fetched.fails = {"pip"}
    with pytest.raises(ToolMissing):
        fetched.has_uv().fetch()
    assert [name for name, *_ in fetched.lines] == ["uv", "pip"] and fetched.package() is None
    assert "Hash mismatch" in (tmp_path / "log").read_text()


def test_what_uv_cannot_do_pip_does(fetched, monkeypatch):
    """uv fails, or is to be had for no such processor: pip is asked for it once, then for the packages."""
    (fetched.folder / "bin/uv").write_text("#!/bin/sh\nexit 2\n")
    (fetched.folder / "bin/uv").chmod(0o755)
    assert fetched.fetch() == ["uv", "pip", "compileall"]
    (fetched.folder / "bin/uv").unlink()
    fetched.lines.clear()
    answers = iter([False, True])
    monkeypatch.setattr(
        environment, "run", lambda argv, *_, **__: fetched.lines.append(("", argv, None)) or next(answers, True)
    )
    fetched.fetch()
    assert [str(path) in argv for (_, argv, _), path in zip(fetched.lines, (needs.lock_of("uv"), fetched.lock))] == [
        True,
        True,
    ]
    assert all("--require-hashes" in argv for _, argv, _ in fetched.lines[:2])


def test_where_somebody_has_told_pip_how_to_fetch_pip_fetches(fetched, monkeypatch):
    (fetched.folder / "bin/uv").write_text("#!/bin/sh\nexit 2\n")
    monkeypatch.setattr(environment, "_fetched_as_usual", lambda line: None)
    assert fetched.fetch() == ["pip", "compileall"]


@pytest.mark.parametrize(
    "settings, uv_gets",
    [
        ({}, {}),
        ({"PIP_TIMEOUT": "20", "PIP_FIND_LINKS": "/wheels"}, {}),
        ({"PIP_CERT": "/its/ca.crt"}, {"SSL_CERT_FILE": "/its/ca.crt"}),
        ({"PIP_INDEX_URL": "https://packages.example/simple"}, None),
        ({"PIP_EXTRA_INDEX_URL": "https://packages.example/simple"}, None),
        ({"PIP_NO_INDEX": "1"}, None),
        ({"PIP_PROXY": "proxy.example:3128"}, None),
    ],
)
def test_pip_s_settings(settings, uv_gets, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert environment._fetched_as_usual(PIP_CONFIG) == uv_gets


def test_the_settings_of_a_file_count_too_and_a_pip_that_fails_is_left_alone(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text("[install]\ntrusted-host = packages.example\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert environment._fetched_as_usual(PIP_CONFIG) is None
    assert environment._fetched_as_usual(["/bin/false"]) is None
