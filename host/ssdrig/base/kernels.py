"""Numba set up in one place: `jit` for every compiled function of the virtual drive.

Numba looks only at the file of a function to decide whether its cached machine code is stale, not at the files of the
functions it calls. So the cache folder carries a hash of all kernel sources, and folders of older sources are removed.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numba
from numba.core import event

from ssdrig.base import files
from ssdrig.base.child_cpu import Work

HERE = Path(__file__).parents[1]
SOURCES = (
    "base/kernels.py",
    "blockio/nbd_numbers.py",
    "blockio/nbd_protocol.py",
    "virtual/device/pdu.py",
    "virtual/device/status.py",
    "virtual/device/store.py",
    "virtual/flash/aged.py",
    "virtual/flash/charge_loss.py",
    "virtual/flash/commands.py",
    "virtual/flash/feed.py",
    "virtual/flash/ftl.py",
    "virtual/flash/nand.py",
    "virtual/flash/power_states.py",
    "virtual/flash/purge.py",
    "virtual/flash/workload.py",
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
    """Compile with Numba for callers in Python only, and keep the machine code between runs. Integers wrap, division
    by zero is not checked.

    Numba compiles a specialization for each literal argument: pass constants to large kernels as np.int64(N_GC)."""
    saved = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(FOLDER) if FOLDER != Path() else saved
    try:
        return numba.njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    finally:
        numba.config.CACHE_DIR = saved


def inline(function):
    """As jit, and compiled into every caller: for the few functions that run once per page."""
    return jit(function, forceinline=True)


FOLDER = _cache_folder()
FUNCTIONS = 99  # compiled by a first start; for its progress
LOOK_S = 0.5
_held = False
_compiled = 0
_tell: Callable[[dict], None] | None = None


def tell_progress(tell: Callable[[dict], None]) -> None:
    """From now on tell() receives {"compiling": n, "of": FUNCTIONS} after each function, and {"waiting": pid} while
    another process compiles and uses CPU time."""
    global _tell
    _tell = tell
    event.register("numba:compile", _Compiled())


class _Compiled(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        global _compiled
        _compiled += 1
        if _tell is not None:
            _tell({"compiling": _compiled, "of": max(FUNCTIONS, _compiled)})


@contextlib.contextmanager
def compiling(what: str) -> Iterator[None]:
    """The kernels called here may have to be compiled, some 30 s of CPU time. When several processes start together,
    one compiles; the others wait and load its cache. Later starts do not wait. May be nested."""
    global _held
    done = FOLDER / f"{what}.compiled"
    if _held or FOLDER == Path() or done.exists():
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # without the lock it takes longer
            _lock(stack.enter_context(open(files.lock_file(FOLDER / "lock"), "r+")))
        _held = True
        try:
            yield
        finally:
            _held = False
        with contextlib.suppress(OSError):
            done.touch()


def _lock(file) -> None:
    """Lock the file and leave our process id in it. Raises OSError."""
    work = None
    while _tell is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            if holder.isdecimal() and (work is None or work.pid != int(holder)):
                work = Work(int(holder))
            if work is not None and work.look():
                _tell({"waiting": work.pid})
            time.sleep(LOOK_S)
    else:
        fcntl.flock(file, fcntl.LOCK_EX)
    file.seek(0)
    file.truncate()
    file.write(str(os.getpid()))
    file.flush()
