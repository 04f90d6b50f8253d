"""What all tests share: where the code is, a time limit for each test, and the check that no process is left behind."""

import contextlib
import os
import re
import signal
import sys
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOST = str(ROOT / "host")

LIMIT_S, SLOW_LIMIT_S = 120, 600
SESSION = f"SSDRIG_TEST_SESSION={uuid.uuid4().hex}"  # every process that a test starts inherits it

sys.path.insert(0, HOST)
os.environ["PYTHONPATH"] = HOST  # for the processes that tests start
os.environ.__setitem__(*SESSION.split("="))
# tmp_path on a disk: /tmp may be tmpfs, which has no O_DIRECT
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")


@pytest.fixture
def micropython() -> list[str]:
    """The argv prefix that runs MicroPython; skips the test where there is none."""
    from ssdrig import micropython
    from ssdrig.errors import ToolMissing

    try:
        return micropython.command()
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture(params=["63-bit", "31-bit"])
def integers(request, monkeypatch) -> str:
    """The test runs twice: with MicroPython's integers as this machine has them, and as the board has them."""
    import micropython32

    from ssdrig.errors import ToolMissing

    if request.param == "31-bit":
        try:
            monkeypatch.setenv("SSDRIG_MICROPYTHON", micropython32.command())
        except ToolMissing as error:
            pytest.skip(str(error))
    return request.param


# Files whose tests do not mind a busy neighbour: what they look at keeps no time. All others run one after the other.
TIMELESS = re.compile(
    r"tests/(guest/|test_(ata_|block|calibrate|collect|confirm|counters|drives|endurance|figures|ftl|guard|hardware(?!_firmware)|inventory|kicad|launcher"
    r"|micropython|nvme_|pcb|program|purge|retention|smart|spice|theory|vendor_|wa\b|warranty|wear))"
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Two workers (`./ssdrig test`): what keeps time on one, and beside it the guest and what is timeless."""
    from xdist.scheduler import LoadScopeScheduling

    class TwoWorkers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "timeless" if TIMELESS.match(nodeid) else "keeps time"

    return TwoWorkers(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails: SIGALRM interrupts what the main thread waits for."""
    limit_s = SLOW_LIMIT_S if item.get_closest_marker("slow") else LIMIT_S

    def hung(signum, frame):
        pytest.fail(f"took longer than {limit_s} s")  # no subclass of Exception: the tested code cannot swallow it

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, limit_s, 60)  # and again, should the clean-up hang too
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def no_process_left():
    """Fails the session, naming the test, when a process that it started outlives it; ends that process."""
    yield
    deadline = time.monotonic() + 3
    while (left := processes_of(SESSION)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left:
        pytest.fail("processes left behind (and now killed):\n" + "\n".join(f"{pid}: {left[pid]}" for pid in left))


def processes_of(session: str) -> dict[int, str]:
    """{pid: command line and the test that started it} of the live processes, but us, with session in their
    environment.

    Found by environment and not by parent, so a process that made itself a daemon is found too.
    """
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # gone, or another user's
        if session.encode() in environment and words and "multiprocessing.resource_tracker" not in words:
            test = [
                entry.decode().partition("=")[2] for entry in environment if entry.startswith(b"PYTEST_CURRENT_TEST=")
            ]
            found[int(folder.name)] = f"{words} started by {' '.join(test) or 'no test'}"
    return found
