"""The launcher ./ssdrig: what it sets up, when, and what it says where it cannot."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from launcher_clone import ROOT, Clone, clone, environment, first_start, listing, made, ready  # noqa: F401  fixtures

from ssdrig.base.errors import ToolMissing
from ssdrig.setup import needs, provision

pytestmark = pytest.mark.slow  # makes environments with pip
TEXT = {"capture_output": True, "text": True, "cwd": "/"}


def test_sets_up_once_and_passes_words_folder_and_exit_code(first_start):
    clone, first = first_start
    assert first.returncode == 7, first.stderr
    assert first.stdout == f"['report', 'a b', '--json']|{environment(clone)}|/\n"
    assert "making .venv" in first.stderr
    before = listing(clone.root)
    second = clone.start("report")
    assert (second.returncode, second.stdout, second.stderr) == (7, f"['report']|{environment(clone)}|/\n", "")
    assert listing(clone.root) == before


def test_what_is_installed_is_compiled_before_anyone_imports_it(ready):
    """Else a later start would write there, as root in someone's clone."""
    (packages,) = environment(ready).glob("lib/*/site-packages")
    assert list(packages.glob("__pycache__/tinypkg_unused.*.pyc"))
    assert (packages / "tinypkg_more/tests/long.py").exists() and not list(packages.glob("tinypkg_more/tests/*/*.pyc"))


def test_what_makes_an_environment_stand(ready, monkeypatch):
    stamp, python = ready.root / ".venv/ssdrig-stamp", ready.root / ".venv/bin/python"
    for name, path in {"LOCK": ready.lock, "STAMP": stamp, "PYTHON": python, "VENV": ready.root / ".venv"}.items():
        monkeypatch.setattr(needs, name, path)
    right = stamp.read_text()
    assert needs.environment_stands()
    stamp.write_text(right.replace("python3.", "python2."))
    assert not needs.environment_stands()
    stamp.write_text(right)
    unchanged = ready.lock.read_text()
    ready.lock.write_text(unchanged + "# changed\n")
    assert not needs.environment_stands()
    ready.lock.write_text(unchanged)
    assert needs.environment_stands()
    stamp.unlink()  # a set-up that did not come to its end
    assert not needs.environment_stands()
    stamp.write_text(right)
    python.unlink()
    python.symlink_to("/nowhere/python3")  # as after an upgrade of the distribution
    assert not needs.environment_stands()


def test_the_python_of_path_does_not_matter_once_the_environment_stands(ready):
    """As with sudo, whose PATH has another python3."""
    ready.script("python3", "echo python3 was asked >>$calls; exit 1")
    before = listing(ready.root)
    done = ready.start("report", PYTHONDONTWRITEBYTECODE="1")
    assert done.stdout == f"['report']|{environment(ready)}|/\n"
    assert ready.called() == []
    assert listing(ready.root) == before


def test_programs_of_sbin_are_found_without_asking_for_them(ready):
    """A plain user's PATH on Debian has no /usr/sbin."""
    ready.script("sudo", 'echo sudo "$@" >>"$calls"')
    ready.apt({"smartmontools": "smartctl", "nvme-cli": "nvme"})
    for name in ("smartctl", "nvme"):
        ready.script(f"../sbin/{name}", "")
    done = ready.start("drives", SSDRIG_NO_INSTALL="")
    assert (done.returncode, done.stderr, ready.called()) == (7, "", [])


def test_an_extra_comes_with_the_first_command_that_needs_it(ready):
    assert ready.start("report").stderr == ""
    first = ready.start("export", "a")
    assert (first.returncode, first.stdout) == (7, f"['export', 'a']|{environment(ready)}|/\n"), first.stderr
    assert "installing the extra lake from requirements-lake.lock" in first.stderr
    before = listing(ready.root)
    assert ready.start("export", "a").stderr == "" and listing(ready.root) == before
    lock = ready.lock.with_name("requirements-lake.lock")
    lock.write_text(lock.read_text() + "# changed\n")
    assert "installing the extra lake" in ready.start("export").stderr
    lock.write_text(f"nosuchpkg==1.0 --hash=sha256:{'0' * 64}\n")
    failed = ready.start("export")
    assert failed.returncode == ToolMissing.exit_code and failed.stdout == ""
    assert ready.start("report").returncode == 7  # who does not need it is not troubled


def test_an_environment_in_use_outlives_a_newer_one(ready):
    """A changed lock file makes a second environment; the first is removed once no process uses it."""
    tool = ready.root / "host/ssdrig/cli.py"
    tool.write_text(tool.read_text().replace("import tinypkg", "print(flush=True); sys.stdin.read(); import tinypkg"))
    old = environment(ready)
    words = [ready.root / "ssdrig", "report"]
    running = subprocess.Popen(
        words, env=ready.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/"
    )
    running.stdout.readline()
    before = ready.lock.read_text()
    ready.lock.write_text(before + "# changed\n")
    assert (
        ready.start("setup", SSDRIG_MICROPYTHON=fake_micropython(ready)).returncode == ToolMissing.exit_code
    )  # no fio
    ready.script("fio", "")
    assert ready.start("setup", SSDRIG_MICROPYTHON=fake_micropython(ready)).returncode == 0
    new = environment(ready)
    assert new != old and old.exists()
    assert running.communicate()[0] == f"['report']|{old}|/\n"
    ready.lock.write_text(before)  # back to the older lock file: its environment is still there
    again = ready.start("setup", SSDRIG_MICROPYTHON=fake_micropython(ready))
    assert again.returncode == 0 and "making .venv" not in again.stderr
    assert environment(ready) == old and not new.exists()


def test_an_environment_of_an_older_ssdrig_is_put_aside(ready):
    (ready.root / ".venv").unlink()
    (ready.root / ".venv").mkdir()
    (ready.root / ".venv/ssdrig-stamp").write_text("old\n")
    assert ready.start("report").returncode == 7
    assert (ready.root / ".venv").is_symlink()
    assert len(list((ready.root / ".setup/environments").iterdir())) == 1


def test_somebodys_own_environment_is_kept(ready):
    (ready.root / ".venv").unlink()
    (ready.root / ".venv").mkdir()
    (ready.root / ".venv/mine").write_text("x")
    done = ready.start("report")
    assert done.returncode == 7 and "did not make the .venv" in done.stderr and (ready.root / ".venv").is_symlink()
    (backup,) = ready.root.glob(".venv.before-*")
    assert (backup / "mine").read_text() == "x"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: gives files to another user")
def test_what_root_makes_in_the_clone_of_another_is_his(monkeypatch):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # tmp_path is closed to other users
        folder = Path(name)
        os.chown(folder, 12345, 12345)
        monkeypatch.setattr(provision, "ROOT", folder)
        monkeypatch.setattr(provision, "SETUP", folder / ".setup")
        with provision.only_one_set_up():
            provision.as_owner(lambda: (folder / ".setup/made").write_text("x"))
        assert {path.stat().st_uid for path in folder.rglob("*")} == {12345}
        assert len(list(folder.rglob("*"))) == 3
        with pytest.raises(ToolMissing):
            provision.as_owner(lambda: Path("/etc/ssdrig-test").write_text("x"))
        assert os.geteuid() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes another user")
def test_a_clone_of_another_is_used_as_it_is_or_refused_in_one_line(monkeypatch, capfd):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        (folder / ".setup").mkdir()
        for attribute, path in {"ROOT": folder, "SETUP": folder / ".setup", "PYTHON": folder / "none"}.items():
            monkeypatch.setattr(provision, attribute, path)
        monkeypatch.setattr(provision, "missing", lambda command: [needs.PROGRAMS[0]] if command == "run" else [])
        monkeypatch.setattr(os, "access", lambda *_: False)
        monkeypatch.setattr(provision, "environment_stands", lambda: False)
        with pytest.raises(ToolMissing, match=r"belongs to root, who sets it up; do: sudo .*/ssdrig setup"):
            provision.set_up("run")
        monkeypatch.setattr(provision, "environment_stands", lambda: True)
        monkeypatch.setattr(provision, "extras_missing", lambda command: [])
        with pytest.raises(ToolMissing, match="expected fio; seen not installed; .* belongs to root"):
            provision.set_up("run")
        provision.set_up("drives")
        assert list((folder / ".setup").iterdir()) == []


def test_a_package_with_another_hash_is_refused_and_nothing_half_done_stays(clone):
    clone.lock.write_text(f"tinypkg==1.0 --hash=sha256:{'0' * 64}\n")
    done = clone.start("report")
    assert done.returncode == ToolMissing.exit_code
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "ssdrig: error: expected" in done.stderr.splitlines()[-3]
    assert done.stdout == ""
    assert not (clone.root / ".venv").exists()
    assert list((clone.root / ".setup/environments").iterdir()) == []


def test_a_set_up_that_was_killed_is_repaired_and_not_joined_by_its_orphan(clone):
    """kill -9 of the launcher while its pip goes on: the next start waits for that pip, then makes everything anew."""
    slow, seen, copying = clone.root.parent / "slow", clone.root.parent / "seen", clone.bin / "copying"
    copying.rename(clone.bin / "at-once")
    goes_on = f'while [ ! -e "{seen}" ]; do sleep 0.05; done; echo orphan ends >>"$calls"; exit'
    clone.script(
        "copying",
        f"""
echo venv >>"$calls"; [ -e "{slow}" ] || {{ : >"{slow}"; {goes_on}; }}
exec "{clone.bin}/at-once" "$@" """,
    )
    start = lambda: subprocess.Popen(
        [clone.root / "ssdrig", "report"], env=clone.environment(), stderr=subprocess.PIPE, text=True
    )
    with start() as victim:
        while not slow.exists():
            assert victim.poll() is None
            time.sleep(0.01)
        victim.send_signal(signal.SIGKILL)
    with start() as again:
        first_line = again.stderr.readline()  # it waits, however long it took to begin
        seen.touch()
        words = again.stderr.read()
    assert again.returncode == 7, words
    assert first_line == "ssdrig: another start is setting up; waiting for it\n"
    assert clone.called() == ["venv", "orphan ends", "venv"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a small file system")
def test_set_up_on_a_full_disk_is_one_error_and_the_next_one_works(clone, made):
    clone.script("copying", f'case "$*" in "-I -m venv "*) /bin/mkdir -p "$4" && exec /bin/cp -aT "{made}" "$4"; esac')
    setup, tool = clone.root / ".setup", clone.root / "ssdrig"
    setup.mkdir()
    script = f"""/bin/mount -t tmpfs -o size=2m none "{setup}" || exit 99
    "{tool}" report; echo code $?; echo left $(/bin/ls "{setup}/environments")
    /bin/umount "{setup}"  # .venv leads from one file system to the same
    "{tool}" report; echo code $?"""
    words = ["unshare", "-m", "/bin/sh", "-c", script]
    done = subprocess.run(words, env=clone.environment(PATH=f"{clone.bin}:{os.environ['PATH']}"), **TEXT)
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip("needs root: mounts a small file system")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("code", "left"))]
    assert lines == [f"code {ToolMissing.exit_code}", "left", "code 7"], done.stderr
    assert done.stderr.count("ssdrig: error: expected") == 1
    assert "  found: No space left on device\n  hint:  make room" in done.stderr


def test_environment_whose_python_others_may_not_run_is_named(ready, monkeypatch):
    """Of root's clone, in a Python of root's home: another user was told to set it up, which changed nothing."""
    monkeypatch.setattr(provision, "PYTHON", ready.root / "python")
    monkeypatch.setattr(provision.os, "access", lambda path, mode: False)
    (ready.root / "python").symlink_to("/root/.pyenv/bin/python3")
    with pytest.raises(ToolMissing, match="may not look") as caught:
        provision.without_writing("report")
    assert "rm -r" in caught.value.do and "setup" in caught.value.do


def test_starts_at_the_same_time_set_up_once(clone):
    (clone.root / ".setup").mkdir()
    with open(clone.root / ".setup/lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # so that both have found nothing and wait
        starts = [
            subprocess.Popen(
                [clone.root / "ssdrig", "report"],
                env=clone.environment(),
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
            )
            for _ in range(2)
        ]
        first_lines = [start.stderr.readline() for start in starts]
    assert first_lines == ["ssdrig: another start is setting up; waiting for it\n"] * 2
    words = "".join(start.communicate()[1] for start in starts)
    assert [start.returncode for start in starts] == [7, 7]
    assert words.count("making .venv") == 1


def test_setup_does_not_start_the_tool(ready):
    ready.script("fio", "")
    done = ready.start("setup", SSDRIG_MICROPYTHON=fake_micropython(ready))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == f"ssdrig: set up: {ready.root}"


def test_setup_refuses_other_words(ready):
    done = ready.start("setup", "--emulated")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unrecognized arguments: --emulated" in done.stderr


def test_setup_builds_the_emulated_board_once(ready):
    """--emulator: the images by tests/emulator/build.sh, the emulator by npm, all into .setup/emulator; anew only if
    they are of another release."""
    for name in ("fio", "cmake", "make", "cc", "dpkg-source", "arm-none-eabi-gcc", "node"):
        ready.script(name, "")
    npm = """echo "npm $*" >>"$calls"; while [ "$1" != --prefix ]; do shift; done
/bin/mkdir -p "$2/node_modules/rp2040js" """
    ready.script("npm", npm)
    builder = ready.root / "tests/emulator/build.sh"
    builder.parent.mkdir(parents=True)
    builder.write_text(f'#!/bin/sh\necho build $2 >>"{ready.calls}"; /bin/mkdir -p "$1"; echo uf2 >"$1/pico.uf2"\n')
    builder.chmod(0o755)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "tests/emulator" / name, builder.parent)
    code = ready.root / "host/ssdrig/setup/needs.py"
    code.write_text(code.read_text().replace('ARM_LIBRARY = "/usr/lib', f'ARM_LIBRARY = "{ready.root}/lib'))
    words = {"SSDRIG_MICROPYTHON": fake_micropython(ready)}
    refused = ready.start("setup", "--emulator", **words)
    assert refused.returncode == ToolMissing.exit_code
    assert "expected libnewlib-arm-none-eabi, libstdc++-arm-none-eabi-newlib\n  found: not installed" in refused.stderr
    library = ready.root / "lib/arm-none-eabi/newlib/thumb/v6-m/nofp"
    library.mkdir(parents=True)
    for name in ("libc.a", "libstdc++.a"):
        (library / name).touch()
    for _ in range(2):
        done = ready.start("setup", "--emulator", **words)
        assert done.returncode == 0, done.stderr
    place = ready.root / ".setup/emulator"
    npm = f"npm ci --prefix {place}/fetched --ignore-scripts --no-audit --no-fund"
    assert ready.called() == ["build trixie", npm]
    assert (place / "pico.uf2").exists()
    assert ready.start("setup", "--emulator", "sid", **words).returncode == 0
    assert ready.called() == ["build trixie", npm, "build sid", npm]
    assert ready.start("setup", "--emulator", "woody", **words).returncode == 2


def fake_micropython(clone: Clone, version: str = "1 26 0") -> str:
    clone.script("micropython-fake", f"echo micropython {version}")
    return "micropython-fake"


def test_clone_with_a_colon_in_its_path_is_refused_and_runs_nothing_of_the_current_folder(tmp_path):
    """PYTHONPATH would end at the colon, and go on with a folder of the current one."""
    clone, package = tmp_path / "a:b", tmp_path / "b/host/ssdrig"
    clone.mkdir()
    package.mkdir(parents=True)
    shutil.copy(ROOT / "ssdrig", clone)
    (package / "__init__.py").touch()
    (package / "start.py").write_text("def main(): print('of the current folder')")
    done = subprocess.run([clone / "ssdrig", "plans"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout, "colon" in done.stderr) == (ToolMissing.exit_code, "", True)


def test_without_a_usable_python(clone):
    clone.script("python3", '[ "$1" = --version ] && echo Python 3.9.2 && exit; exit 1')
    done = clone.start("demo")
    assert done.returncode == ToolMissing.exit_code
    assert done.stderr.startswith("ssdrig: error: expected Python 3.11 to 3.14\n  found: Python 3.9.2\n  hint:  ")
    (clone.bin / "python3").unlink()
    assert "found: no python3" in clone.start("demo").stderr


def test_a_second_python_is_found(clone):
    clone.script("python3", "exit 1")
    clone.script("python3.12", f'exec "{sys._base_executable}" "$@"')
    assert clone.start("report").returncode == 7


def test_needed_program_missing_and_nothing_may_be_installed(clone):
    done = clone.start("run", SSDRIG_MICROPYTHON=fake_micropython(clone))
    assert done.returncode == ToolMissing.exit_code
    assert (
        done.stderr == "ssdrig: error: expected fio\n  found: not installed; SSDRIG_NO_INSTALL is set\n"
        "  hint:  as root: apt-get update && apt-get install -y --no-install-recommends fio\n"
    )
    assert not (clone.root / ".venv").exists()  # said at once, not after the downloads


def test_commands_that_need_no_program_do_not_ask_for_any(ready):
    assert ready.start("report").returncode == 7
    assert ready.start("run", "--help").returncode == 7


def test_programs_that_only_some_tests_use_may_be_absent(ready):
    ready.script("fio", "")
    (ready.root / "host/pytest.py").write_text("import sys, os; print(sys.argv[1:], os.getcwd()); raise SystemExit(5)")
    done = ready.start("test", "-k", "x", SSDRIG_MICROPYTHON=fake_micropython(ready))
    assert (done.returncode, done.stdout) == (5, f"['-n', '5', '--dist', 'loadscope', '-k', 'x'] {ready.root}\n")
    assert (
        "ssdrig: without chromium-headless-shell (draws the report that is tested; package chromium-headless-shell):"
        " what needs it is left out" in done.stderr
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it the set-up asks for sudo")
def test_root_installs_what_is_missing_and_says_why(ready):
    ready.apt({"fio": "fio", "nbdkit": "nbdkit", "influxdb": "influxd"})  # as Ubuntu: no chromium
    there = ("gpg", "mkfs.ext4", "smartctl", "nvme", "hdparm", "qemu-system-x86_64", "busybox", "dmsetup", "ngspice")
    for name in there:
        ready.script(name, "")
    (ready.root / "host/pytest.py").write_text("raise SystemExit(0)")
    done = ready.start("test", SSDRIG_NO_INSTALL="", SSDRIG_MICROPYTHON=fake_micropython(ready))
    assert done.returncode == 0, done.stderr
    assert "ssdrig: missing: influxd (package influxdb): " in done.stderr
    assert ready.called() == [
        "apt-get -q -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 update",
        "apt-get -q -s install --no-install-recommends fio influxdb nbdkit",
        (
            "apt-get -q -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 install -y --no-install-recommends fio influxdb"
            " nbdkit"
        ),
    ]
    ready.calls.unlink()
    again = ready.start("test", SSDRIG_NO_INSTALL="", SSDRIG_MICROPYTHON=fake_micropython(ready))
    assert (
        again.stderr
        == "ssdrig: without chromium-headless-shell (draws the report that is tested; package chromium-headless-shell):"
        " what needs it is left out\n"
        "ssdrig: without pdftotext (reads the report as it is printed; package poppler-utils): what needs it is left"
        " out\n"
    )
    assert ready.called() == []  # apt is not asked at each start for what it does not have


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: without it the set-up asks for sudo")
def test_a_failed_installation_is_told_with_the_line(clone):
    clone.apt({"fio": "fio"}, failure='echo "E: disk full" >&2; exit 100')
    done = clone.start("demo", SSDRIG_NO_INSTALL="", SSDRIG_MICROPYTHON=fake_micropython(clone))
    assert done.returncode == ToolMissing.exit_code
    assert "E: disk full" in done.stderr
    assert "install -y --no-install-recommends fio to succeed\n  found: exit code 100" in done.stderr


def test_who_is_not_root_uses_sudo_or_is_told(clone, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "stdin", open(os.devnull))
    monkeypatch.setenv("PATH", str(clone.bin))
    assert provision.root_prefix() is None  # no apt
    clone.script("apt-get", "")
    assert provision.root_prefix() is None  # no sudo
    clone.script("sudo", "exit 0")
    assert provision.root_prefix() == ["sudo", "-n"]
    clone.script("sudo", 'echo "a password is required" >&2; exit 1')
    assert provision.root_prefix() is None  # a password, but nobody to type it


@pytest.mark.parametrize("words", [["--help"], [], ["rnu"], ["setup", "--help"]])
def test_help_and_wrong_words_need_no_environment(clone, words):
    for path in (*(ROOT / "host/ssdrig").glob("*.py"), *(ROOT / "host/ssdrig/base").glob("*.py")):
        shutil.copy(path, clone.root / path.relative_to(ROOT).parent)
    done = clone.start(*words)
    assert done.returncode == (0 if "--help" in words else 2), done.stderr
    assert "making .venv" not in done.stderr
    assert not (clone.root / ".setup").exists()
