"""A loop device of the real kernel over a file of a test."""

import contextlib
import fcntl
import os
import shutil
import subprocess

import pytest


def losetup(*arguments):
    """One losetup at a time: two that look for a free node open the same one for writing, and the second holds it for
    a moment after the first has it."""
    with open("/dev/loop-control", "rb") as control:
        fcntl.flock(control, fcntl.LOCK_EX)
        return subprocess.run(["losetup", *arguments], capture_output=True, text=True)


@contextlib.contextmanager
def loop_device(file):
    """The node; skips the test, saying why, where none can be made."""
    if os.geteuid() or not shutil.which("losetup"):
        pytest.skip("needs root and losetup")
    try:
        made = losetup("--find", "--show", str(file))
    except OSError as error:
        pytest.skip(f"no loop device can be made: {error}")
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    node = made.stdout.strip()
    try:
        yield node
    finally:
        detached = losetup("--detach", node)
        assert not detached.returncode, detached.stderr
