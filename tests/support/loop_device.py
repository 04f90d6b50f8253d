"""A loop device of the real kernel over a file of a test."""

import contextlib
import os
import shutil
import subprocess

import pytest


@contextlib.contextmanager
def loop_device(file):
    """The node; skips the test, saying why, where none can be made."""
    if os.geteuid() or not shutil.which("losetup"):
        pytest.skip("needs root and losetup")
    made = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr.strip()}")
    node = made.stdout.strip()
    try:
        yield node
    finally:
        subprocess.run(["losetup", "--detach", node], check=True)
