"""For tests of the launcher: a clone of this tree with a package index of its own."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ssdrig.setup import needs

ROOT = Path(__file__).resolve().parents[2]
# The tool in the clone: shows what it was given and where from, and leaves with exit code 7.
ECHO_TOOL = """
import os, sys
COMMANDS = {"demo", "run", "report", "drives", "export"}
def parsed(argv):
    import types
    return types.ModuleType("tool"), None
OF_THE_CLONE = ("test", "setup")
normal = list
def main(argv=None):
    argv = sys.argv[1:] if argv is None else argv
    if argv[0] not in COMMANDS:
        return 2
    import tinypkg
    print(argv, sys.prefix, os.getcwd(), sep="|")
    return 7
"""
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


def wheel(folder: Path) -> Path:
    """A wheel `tinypkg` 1.0 with an empty module, one that nobody imports, and one that no Python of today compiles."""
    path = folder / "tinypkg-1.0-py3-none-any.whl"
    files = {
        "tinypkg.py": b"",
        "tinypkg_unused.py": b"",
        "tinypkg_more/tests/long.py": b"",
        "tinypkg_old.py": b"print 1",
        "tinypkg-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tinypkg\nVersion: 1.0\n",
        "tinypkg-1.0.dist-info/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    files["tinypkg-1.0.dist-info/RECORD"] = ("".join(record) + "tinypkg-1.0.dist-info/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), data)
    return path


class Clone:
    """A clone in `root` and a machine that has only the programs in `bin`. Its environments are made by venv or, which
    costs little, as copies of `made`."""

    def __init__(self, folder: Path, made: Path | None = None):
        self.root, self.bin, self.calls = folder / "my clone", folder / "bin", folder / "calls"
        self.made = folder / "made"
        package = self.root / "host/ssdrig"
        (package / "setup").mkdir(parents=True)
        (package / "base").mkdir()
        self.sbin = folder / "sbin"  # the machine's /usr/sbin
        self.sbin.mkdir()
        (self.root / "ssdrig").write_text((ROOT / "ssdrig").read_text().replace(SBIN, str(self.sbin)))
        (self.root / "ssdrig").chmod(0o755)
        for name in (
            "__init__.py",
            "__main__.py",
            "base/__init__.py",
            "setup/__init__.py",
            "setup/debian.py",
            "setup/environment.py",
            "setup/kicad.py",
            "base/errors.py",
            "base/files.py",
            "base/owner.py",
            "base/child_cpu.py",
            "base/progress.py",
            "base/deferred.py",
            "base/shipped.py",
            "base/system.py",
            "base/temporary.py",
            "setup/absent.py",
            "setup/steps.py",
            "setup/micropython.py",
            "base/terminal.py",
            "setup/needs.py",
            "setup/provision.py",
            "start.py",
        ):
            shutil.copy(ROOT / "host/ssdrig" / name, package / name)
        (package / "cli.py").write_text(ECHO_TOOL)
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        digest = hashlib.sha256(wheel(self.wheels).read_bytes()).hexdigest()
        self.lock = self.root / "requirements.lock"
        self.lock.write_text(f"tinypkg==1.0 --hash=sha256:{digest}\n")
        for extra in needs.EXTRAS:
            shutil.copy(self.lock, self.lock.with_name(f"requirements-{extra}.lock"))
        self.bin.mkdir()
        for name in ("sh", "env", "dirname", "readlink", "cat", "sleep"):
            (self.bin / name).symlink_to(shutil.which(name))
        # sys.executable may be a virtual environment's, whose base is what a machine would have
        self.script("python3", f'exec "{sys._base_executable}" "$@"')
        if made:
            self.script(
                "copying",
                f'case "$*" in "-I -m venv "*) /bin/mkdir -p "$4" && exec /bin/cp -alT "{made}" "$4"; esac; exit 1',
            )
            self.sets_up_with(self.bin / "copying")

    def sets_up_with(self, python: Path) -> None:
        """The set-up makes environments with this Python."""
        code = self.root / "host/ssdrig/setup/environment.py"
        text = code.read_text()
        assert text.count("[sys.executable, ") == 1
        code.write_text(text.replace("[sys.executable, ", f"[{str(python)!r}, "))

    def script(self, name: str, text: str) -> None:
        """A program of the machine; $calls is the file that the fakes write to."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\ncalls="{self.calls}"\n{text}\n')
        path.chmod(0o755)

    def apt(self, has: dict[str, str], failure: str = "") -> None:
        """An apt that knows these packages and, for each, puts a program of that name into PATH."""
        cases = "".join(
            f'{package}) echo "#!/bin/sh" >"{self.bin}/{name}"; /bin/chmod 755 "{self.bin}/{name}";;\n'
            for package, name in has.items()
        )
        self.script("apt-cache", f"case $2 in {'|'.join(has)}) echo $2;; esac")
        self.script(
            "apt-get",
            f"""
echo "apt-get $*" >>"$calls"
[ "$6" = install ] && {{ {failure or ":"}; }}
for word; do case $word in
install|update|-*|*=*) ;;
{cases}
*) echo "E: Unable to locate package $word" >&2; exit 100;;
esac; done""",
        )

    def environment(self, **more: str) -> dict[str, str]:
        variables = {
            key: os.environ[key] for key in ("SSDRIG_TEST_SESSION", "PYTEST_CURRENT_TEST", "HOME") if key in os.environ
        }
        return {
            **variables,
            "PATH": str(self.bin),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "SSDRIG_NO_INSTALL": "1",
            **more,
        }

    def start(self, *words: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.root / "ssdrig", *words], env=self.environment(**more), capture_output=True, text=True, cwd="/"
        )

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture(scope="module")
def first_start(tmp_path_factory) -> tuple[Clone, subprocess.CompletedProcess]:
    """Nothing is copied here; what venv has made is put aside for others (see made)."""
    clone = Clone(tmp_path_factory.mktemp("first"))
    clone.script("keeping", f'"{sys._base_executable}" "$@" && exec /bin/cp -a "$4" "{clone.made}"')
    clone.sets_up_with(clone.bin / "keeping")
    return clone, clone.start("report", "a b", "--json")


@pytest.fixture(scope="module")
def made(first_start) -> Path:
    """An environment as venv makes it."""
    return first_start[0].made


@pytest.fixture
def clone(tmp_path, made) -> Clone:
    """A clone as it comes from git."""
    return Clone(tmp_path, made)


@pytest.fixture
def ready(clone, first_start) -> Clone:
    """A clone whose .venv stands."""
    link = lambda source, target: (os.link if "/site-packages/" in source else shutil.copy2)(source, target)
    shutil.copytree(first_start[0].root / ".setup", clone.root / ".setup", symlinks=True, copy_function=link)
    (clone.root / ".venv").symlink_to((first_start[0].root / ".venv").readlink())
    return clone


def environment(clone: Clone) -> Path:
    """The folder that .venv leads to."""
    return (clone.root / ".venv").resolve()


def listing(folder: Path) -> dict[str, tuple]:
    """What lies in folder, and when each thing was changed."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns, path.lstat().st_uid)
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }
