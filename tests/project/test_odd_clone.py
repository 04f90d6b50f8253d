"""A clone in a folder of any name, or whose owner has put links in it."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from ssdrig.setup import debian, kicad, micropython, provision

ODD = ["a b", 'a"b', "a%41b%", "a;b", "a:b", "ä€", "a'b", "a{b}", "${HOME}", "a\\nb", "a#b", "a//b", "a&b|c<d>", "a\nb"]
USER = 4242


@pytest.mark.skipif(not shutil.which("apt-config"), reason="needs apt")
@pytest.mark.parametrize("name", [*ODD, *map(chr, range(33, 48)), *map(chr, range(58, 65)), *"[\\]^_`{|}~"])
def test_apt_reads_back_the_folder_that_it_is_given(tmp_path, name):
    work = Path("/x") / name / "micropython.k3"
    (tmp_path / "apt.conf").write_text(debian._apt_conf(work, ""))
    names = ["Dir::State", "Dir::State::status", "Dir::Cache", "Dir::Etc::sourcelist"]
    asked = [word for i, folder in enumerate(names) for word in (f"V{i}", folder)]
    argv = ["apt-config", "-c", str(tmp_path / "apt.conf"), "shell", *asked]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    shown = subprocess.run(["sh", "-c", f'{done.stdout}\nprintf "%s\\0" "$V0" "$V1" "$V2" "$V3"'], capture_output=True)
    expected = [f"{work}/state", f"{work}/status", f"{work}/cache", f"{work}/sources.list"]
    assert shown.stdout.decode().split("\0")[:-1] == expected
    dump = subprocess.run([*argv[:3], "dump"], capture_output=True, text=True, check=True).stdout
    plain = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[0] for line in dump.splitlines() if line.startswith("Dir::")} <= {
        line.split()[0] for line in plain.splitlines()
    } | set(names)


@pytest.mark.skipif(not Path("/lib64/ld-linux-x86-64.so.2").exists(), reason="needs a loader of x86-64")
@pytest.mark.parametrize("name", ["a:b", "a;b", "$LIB", "a b", "ä", 'a"b'])
def test_a_loader_finds_the_libraries_beside_the_program(tmp_path, name):
    root = tmp_path / name
    libraries, program = root / "usr/lib/x86_64-linux-gnu", root / "usr/bin/micropython"
    libraries.mkdir(parents=True)
    program.parent.mkdir()
    shutil.copy("/lib64/ld-linux-x86-64.so.2", libraries)
    shutil.copy("/lib/x86_64-linux-gnu/libc.so.6", libraries)
    shutil.copy("/bin/sleep", program)
    *line, started = micropython.loader_line(root)
    shown = subprocess.run([*line, "--list", started], capture_output=True, text=True, check=True, cwd="/")
    (libc,) = (words.split(" => ")[1] for words in shown.stdout.splitlines() if "libc.so" in words)
    assert os.path.samefile(libc.rpartition(" (")[0], libraries / "libc.so.6")
    (root / "usr/bin/kicad-cli").touch()
    assert kicad._line(root)[2] == line[2]


@pytest.fixture
def clone(monkeypatch):
    """A clone of another user, and a folder of root's that nobody else may look into."""
    if os.geteuid() != 0:
        pytest.skip("needs root: gives files to another user")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # tmp_path is closed to other users
        os.chmod(name, 0o755)
        root, closed = Path(name) / "clone", Path(name) / "closed"
        root.mkdir()
        closed.mkdir(mode=0o700)
        (closed / "lock").touch()
        os.chown(root, USER, USER)
        monkeypatch.setattr(provision, "ROOT", root)
        monkeypatch.setattr(provision, "SETUP", root / ".setup")
        monkeypatch.setattr(provision, "NOT_IN_APT", root / ".setup/not-in-apt")
        yield root, closed
        assert {path.lstat().st_uid for path in (closed, *closed.rglob("*"))} == {0}
        assert [path.name for path in closed.rglob("*")] == ["lock"] and os.geteuid() == 0


def test_a_setup_folder_that_is_a_link_gives_nothing_of_roots_away(clone):
    root, closed = clone
    (root / ".setup").symlink_to(closed)
    with pytest.raises(PermissionError), provision.only_one_set_up():
        pass


def test_a_lock_that_is_a_link_is_not_followed(clone):
    root, closed = clone
    (root / ".setup").mkdir()
    (root / ".setup/lock").symlink_to(closed / "made")
    with pytest.raises(OSError), provision.only_one_set_up():
        pass


def test_what_is_not_in_apt_is_written_through_no_link(clone, monkeypatch):
    root, closed = clone
    (root / ".setup").mkdir()
    os.chown(root / ".setup", USER, USER)
    (root / ".setup/not-in-apt").symlink_to(closed / "lock")
    monkeypatch.setattr(provision, "missing", lambda _: [])
    monkeypatch.setattr(provision, "run", lambda *_, **__: True)
    monkeypatch.setattr(provision, "root_prefix", lambda: [])
    monkeypatch.setattr(provision, "in_apt", lambda _: False)
    monkeypatch.setattr(provision, "short", lambda *_: None)
    monkeypatch.setattr(provision.importlib.util, "find_spec", lambda _: None)
    provision.packages("run", with_venv=True)
    assert (closed / "lock").read_text() == ""
    written = root / ".setup/not-in-apt"
    assert not written.is_symlink() and written.stat().st_uid == USER


def test_only_what_root_made_is_given(clone):
    root, closed = clone
    (root / "link").symlink_to(closed)
    (root / "second").hardlink_to(closed / "lock")
    (root / "through").symlink_to(closed)
    (root / "own").touch()
    for path in (root / "second", root / "through/lock", root / "own", root / "none", root / "link"):
        provision.give_to_owner(path)
    assert (root / "own").stat().st_uid == USER and (root / "second").stat().st_uid == 0
    (root / "second").unlink()
