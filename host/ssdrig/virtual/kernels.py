"""Numba set up in one place: `jit` for every compiled function of the virtual drive.

Numba looks only at the file of a function to decide whether its cached machine code is stale, not at the files of the
functions it calls. So the cache folder carries a hash of all kernel sources, and folders of older sources are removed.
"""

import hashlib
import os
import shutil
from pathlib import Path

import numba

HERE = Path(__file__).parent
SOURCES = (
    "kernels.py",
    "feed.py",
    "flash/nand.py",
    "flash/ftl.py",
    "flash/commands.py",
    "flash/workload.py",
    "device/nbd.py",
    "nvme/pdu.py",
)


# Identity of the simulator: also what a drive's saved state belongs to, its layout being that of these files.
DIGEST = hashlib.sha256(b"".join((HERE / s).read_bytes() for s in SOURCES)).hexdigest()[:16]


def _cache_folder() -> Path:
    name = f"kernels-{DIGEST}"
    for root in (HERE / "__pycache__", Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "ssdrig"):
        if root.parent == HERE and HERE.stat().st_uid != os.geteuid():
            continue  # root leaves nothing in the clone of another
        try:
            (root / name).mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if not os.access(root / name, os.W_OK):
            continue
        for old in root.glob("kernels-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return root / name
    return Path()


def jit(function, **options):
    """Compile with Numba, keep the machine code between runs. Integers wrap, division by zero is not checked."""
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(FOLDER) if FOLDER != Path() else saved
    try:
        return numba.njit(cache=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = saved


def inline(function):
    """As jit, and compiled into every caller: for the few functions that run once per page."""
    return jit(function, forceinline=True)


FOLDER = _cache_folder()
