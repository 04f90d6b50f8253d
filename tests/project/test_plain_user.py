"""What touches terminals, rights and processes, once more as a plain user in a terminal of 100 columns: CI is root and
has no terminal. Whoever runs the tests as a plain user has it with the other tests."""

import fcntl
import os
import pwd
import re
import shutil
import struct
import subprocess
import tempfile
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
TOUCHES = re.compile(
    r"\bpty\b|isatty|get_terminal_size|\"COLUMNS\"|geteuid|getpgrp|killpg|umask|chmod|setsid|SIGINT|start_new_session"
    r"|PermissionError|the_wear_screen"
)
NOT_COPIED = shutil.ignore_patterns(".git", ".setup", ".venv*", ".*_cache", ".hypothesis")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def chosen(root: Path) -> list[str]:
    """The test files that touch these matters and do not keep real time."""
    texts = {path: path.read_text() for path in sorted((root / "tests").glob("*/test_*.py"))}
    return [
        str(path.relative_to(root))
        for path, text in texts.items()
        if TOUCHES.search(text) and "pytest.mark.keeps_time" not in text and path != Path(__file__)
    ]


def unused_id() -> int:
    """A number that no user of this machine has."""
    used = {user.pw_uid for user in pwd.getpwall()}
    return next(number for number in range(59_999, 50_000, -1) if number not in used)


@pytest.fixture
def place():
    """A short path: names of sockets have 108 characters at most."""
    folder = Path(tempfile.mkdtemp(prefix="rig-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def not_copied(folder: str, names: list[str]) -> set[str]:
    """What a copy of this clone has no use for, as shutil.copytree asks; runs/ at the top is the user's."""
    return NOT_COPIED(folder, names) | ({"runs"} if Path(folder) == ROOT else set())


def copied(place: Path, user: int) -> Path:
    """A copy of this clone that is the user's own, with this clone's environment. Skips where he cannot use that."""
    clone = place / "c"
    shutil.copytree(ROOT, clone, symlinks=True, ignore=not_copied)
    for name in ("home", "tmp"):
        (place / name).mkdir()
    for path in (clone, place / "home", place / "tmp"):
        subprocess.run(["chown", "-R", "-h", f"{user}:{user}", str(path)], check=True)
    # links, for a clone may lie where others may not look; its inodes stay root's
    words = ["cp", "-al", str(ROOT / ".setup"), str(clone / ".setup")]
    if subprocess.run(words, capture_output=True).returncode:
        shutil.rmtree(clone / ".setup", ignore_errors=True)
        subprocess.run(["cp", "-a", *words[2:]], check=True)
    (clone / ".venv").symlink_to(os.readlink(ROOT / ".venv"))
    python = clone / ".venv/bin/python"
    try:
        subprocess.run([str(python), "-c", ""], check=True, user=user, group=user, extra_groups=[])
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"not run as a plain user: {python.resolve()} is not for others: {error}")
    return clone


def in_a_terminal(words: list[str], clone: Path, user: int) -> tuple[int, str]:
    """(exit code, what it printed without escapes) of a command that the user starts."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    os.fchown(theirs, user, user)
    environment = {
        **{"HOME": str(clone.parent / "home"), "USER": "plain", "LOGNAME": "plain", "SHELL": "/bin/sh"},
        **{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "en_US.UTF-8", "TERM": "xterm"},
        **{"PYTEST_DEBUG_TEMPROOT": str(clone.parent / "tmp"), "SSDRIG_NO_INSTALL": "1"},
    }
    process = subprocess.Popen(
        words,
        cwd=clone,
        env=environment,
        **{"stdin": theirs, "stdout": theirs, "stderr": theirs},
        **{"user": user, "group": user, "extra_groups": [], "umask": 0o77},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    printed = bytearray()
    try:
        while chunk := os.read(ours, 1 << 16):
            printed += chunk
    except OSError:  # EIO: the last of its processes has closed it
        pass
    finally:
        os.close(ours)
        process.wait()
    return process.returncode, ESCAPES.sub("", printed.decode(errors="replace")).replace("\r", "")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: becomes a plain user, as you are")
def test_terminals_rights_and_processes_pass_for_a_plain_user(place):
    user = unused_id()
    clone = copied(place, user)
    files = chosen(ROOT)
    wanted = {"project/test_readme", "drive/test_guard_uses", "powerloss/test_powerloss_supply"}
    assert {f"tests/{name}.py" for name in wanted} <= set(files)
    code, printed = in_a_terminal(["./ssdrig", "test", "--quick", "-n", "2", *files], clone, user)
    passed = re.search(r"(\d+) passed", printed)
    assert code == 0 and passed and int(passed[1]) > 500, printed[-6000:]
