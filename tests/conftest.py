"""What all tests share: where the code is, which of them run where and how often, a time limit for each, and the check
that no process is left behind."""

import contextlib
import fcntl
import functools
import gc
import importlib
import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
HOST = str(ROOT / "host")
TESTS = Path(__file__).parent
# the rooms of the tests: a test may use what another file of tests has
ROOMS = sorted({path.parent for path in TESTS.glob("*/test_*.py")} - {TESTS / "guest", TESTS / "hil"})
sys.path[:0] = [HOST, str(TESTS), str(TESTS / "support"), *map(str, ROOMS)]

from ssdrig.base.child_cpu import cpu_s

LIMIT_S, SLOW_LIMIT_S = 120, 600  # of CPU time
WALL_S = 3000  # a test may take by the clock on the wall, while it works:
IDLE_S, LEAST_CPU_S = 60, 0.2  # it uses so much CPU time in so many seconds
LOOK_S = 5
LEAVE_S = 30  # a process that was asked to end may take to do so, on a busy machine
MOST_RETRIED = 3
FAILED = pytest.StashKey[bool]()
QUICK_EXAMPLES = 10  # of hypothesis, with --quick
SESSION = f"SSDRIG_TEST_SESSION={uuid.uuid4().hex}"  # every process that a test starts inherits it

# the same for every user, terminal and shell; tests of another value set it themselves
FIXED = {
    "PYTHONPATH": HOST,  # for the processes that tests start
    "OPENBLAS_NUM_THREADS": "1",  # also where NumPy comes before ssdrig, which sets it
    "COLUMNS": "80",  # a worker inherits descriptors of the terminal, which has any width
    "LINES": "24",
    "TERM": "xterm-256color",
    "LC_ALL": "C.UTF-8",
}
REMOVED = (
    # where it is set, each of hundreds of processes, and each worker, would compile all of the code again
    "PYTHONDONTWRITEBYTECODE",
    *("PYTHONIOENCODING", "PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONUTF8"),
    *("PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME", "PYTHONBREAKPOINT"),
    *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LANGUAGE", "BROWSER", "PAGER", "CDPATH", "ENV"),
    *("BASH_ENV", "POSIXLY_CORRECT", "SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_COMMAND"),
)
SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # not in a plain user's PATH: smartctl, mkfs, losetup
OPEN_FILES = 1024  # at least, where the hard limit allows it

os.environ |= FIXED
for name in REMOVED:
    os.environ.pop(name, None)
for folder in SYSTEM_FOLDERS:
    if folder not in os.environ.get("PATH", "/usr/bin:/bin").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join((os.environ.get("PATH", "/usr/bin:/bin"), folder))
os.umask(0o022)
files, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(files, OPEN_FILES), most_files), most_files))
sys.dont_write_bytecode = False
# a busy machine is no reason to fail; other examples at each run, so that many runs see many, but in CI, where
# hypothesis takes the same ones each time by itself: a landing is no matter of luck
settings.register_profile("ssdrig", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ssdrig")
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup, which the tested commands respect
os.environ.__setitem__(*SESSION.split("="))
# tmp_path on a disk: /tmp may be tmpfs, which has no O_DIRECT
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")


def of_this_process() -> dict:
    """What all later tests of this process, and the processes that they start, inherit: a niced one starves beside two
    busy loops."""
    os.umask(mask := os.umask(0o22))
    return {
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": os.sched_getscheduler(0),
        "affinity": os.sched_getaffinity(0),
        "umask": mask,
        "cwd": os.readlink("/proc/self/cwd"),
        **{
            number.name: signal.getsignal(number)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        },
    }


@pytest.fixture(autouse=True)
def process_as_it_was():
    """Fails a test that changes the process which runs it; its own clean-up has come before."""
    before = of_this_process()
    yield
    assert of_this_process() == before, "the test changed the process that it ran in"


@pytest.fixture(autouse=True)
def own_state(process_as_it_was, tmp_path_factory, monkeypatch):
    """No test sees what another one, or this machine's user, has left of benches (ssdrig.base.latch), drives watched,
    runs indexed, tables and units."""
    top = tmp_path_factory.getbasetemp()
    monkeypatch.setenv("XDG_STATE_HOME", str(top / f"state-{uuid.uuid4().hex}"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(top / "cache"))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(top / "nothing"))


@pytest.fixture
def short_loads_have_errors() -> Iterator[None]:
    """See support/short_loads.py."""
    import short_loads

    with short_loads.with_errors():
        yield


@pytest.fixture
def micropython() -> list[str]:
    """The argv prefix that runs MicroPython; skips the test where there is none."""
    from ssdrig.base.errors import ToolMissing
    from ssdrig.setup import micropython

    try:
        return micropython.command()
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def integers(monkeypatch) -> str:
    """MicroPython's integers are as the board has them, "31-bit", where this machine can run such an interpreter; else
    "63-bit". Allocation is where they differ: what 31 bits hold needs none, and 63 bits hold more."""
    import micropython32

    from ssdrig.base.errors import ToolMissing

    try:
        monkeypatch.setenv("SSDRIG_MICROPYTHON", micropython32.command())
    except ToolMissing:
        return "63-bit"
    return "31-bit"


# ---- which tests run, in which order, on which worker, and how often

KEEPS_TIME = "pytest.mark.keeps_time"
RETRIED = "SSDRIG_TEST_RETRIED"


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="for daily work: leave out what is slow or keeps real time, search less (about 80 s on two cores)",
    )


@functools.cache
def keeps_time(path: str) -> bool:
    """Whether the tests of a file compare with real time: it says so itself, with `pytestmark`."""
    return KEEPS_TIME in (ROOT / path).read_text()


def pytest_collection(session):
    """What is collected lives to the end: looking for garbage among it costs two fifths of the time that it takes. And
    on a fresh clone pytest compiles each test file anew, its assertions rewritten. Workers that collect all files
    begin each with its own share, and find the others' compiled."""
    gc.disable()
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [Path(word).resolve() for word in session.config.args] != [ROOT / "tests"]:
        return
    files = sorted(path for room in ROOMS for path in room.glob("test_*.py"))
    mine = files[int(worker["workerid"][2:]) :: worker["workercount"]]
    for path in mine:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it says what is wrong
            importlib.import_module(path.stem)


def pytest_collection_finish(session):
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config, items):
    """What keeps time comes first, then the long ones, so that all workers end at about the same time. Of what keeps
    time the whole runs (test_bench_*), which compute most, come when the guest, which computes most of all, has ended:
    in the order of names the processors had too much to do at first and waited later."""
    if config.getoption("--quick"):
        left_out = [item for item in items if any(item.iter_markers("slow")) or any(item.iter_markers("keeps_time"))]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
        for item in items:  # hypothesis keeps a test's settings there
            if of_hypothesis := getattr(item.obj, "_hypothesis_internal_use_settings", None):
                fewer = settings(of_hypothesis, max_examples=min(of_hypothesis.max_examples, QUICK_EXAMPLES))
                item.obj._hypothesis_internal_use_settings = fewer

    def place(item) -> tuple[int, bool]:
        if any(item.iter_markers("keeps_time")):
            return 0, item.path.stem.startswith("test_bench_")
        return 1 + (not any(item.iter_markers("slow"))), False

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Five workers (`./ssdrig test`), for two cores: what keeps time waits more than it computes, and so does some of
    the rest. One takes the files that keep a board's time, one after the other; one the others that keep time; one the
    guest; two, file by file, what is free to run beside them; whoever is done first helps with those."""
    from xdist.scheduler import LoadScopeScheduling

    @functools.cache
    def scope(path: str) -> str:
        if keeps_time(path):
            return "boards" if "simboard" in (ROOT / path).read_text() else "drives"
        return "guest" if path.startswith("tests/guest/") else path

    class Workers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid.partition("::")[0])

    config.option.loadscopereorder = False  # the order is ours
    return Workers(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    """The rule for a retry: of the tests that keep time, at most MOST_RETRIED that failed run once more, alone, when
    all others have ended. Those that then pass do not fail the session; the summary names them."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput") or RETRIED in os.environ:
        return
    bad = reporter.stats.get("failed", []) + reporter.stats.get("error", [])
    names = sorted({report.nodeid for report in bad})
    if not names or len(names) > MOST_RETRIED or not all(keeps_time(name.partition("::")[0]) for name in names):
        return
    if any(report.when == "teardown" for report in bad):
        return  # something was left behind, which is no matter of time
    if session.shouldfail or session.shouldstop or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
        return  # the session was stopped, by -x or by a person: what was not run has not passed
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names]
    again = subprocess.run(words, cwd=ROOT, env=os.environ | {RETRIED: "1"}, capture_output=True, text=True)
    reporter.section("retried, alone, since these tests keep real time")
    for name in names:
        reporter.write_line(f"{name}: failed, then {'passed' if again.returncode == 0 else 'failed again'}")
    if again.returncode:
        reporter.write_line(again.stdout)
        return
    for report in bad:
        reporter.write_line(f"{report.nodeid}, the first time:\n{report.longreprtext}")
    reporter.stats["retried"] = [report for report in bad if report.nodeid in names]
    reporter.stats["failed"], reporter.stats["error"] = [], []
    session.exitstatus = pytest.ExitCode.OK


# ---- limits


def compiled_since(utc_s: float) -> bool:
    """Whether the virtual drive's machine code is being made, or was since then (ssdrig.base.kernels). That happens
    once on a fresh clone, in the test that needs it first; the others wait for it."""
    for path in (ROOT / "host/ssdrig/__pycache__").glob("kernels-*/*"):
        if path.suffix == ".compiled" and path.stat().st_mtime >= utc_s:
            return True
        if path.name == "lock":
            with path.open() as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return True
    return False


class Limit:
    """What a test may take: CPU time, its own and that of all that it started. A busy machine stretches the wall
    clock only, so on that it has WALL_S, if its processes work at all."""

    def __init__(self, limit_s: float):
        self.limit_s, looks_from_s = limit_s, time.thread_time()
        self.began_s, self.began_utc_s, self.began_cpu_s = time.monotonic(), time.time(), cpu_s(os.getpid())
        self.worked_s, self.worked_cpu_s = self.began_s + limit_s, self.began_cpu_s
        self.looked_cpu_s = time.thread_time() - looks_from_s

    def reason(self) -> str:
        """Why the test has failed by now; "" if it has not. Call it often after limit_s."""
        looks_from_s = time.thread_time()
        try:
            return self._reason()
        finally:  # a look reads all of /proc: its own CPU time is no work of the test
            self.looked_cpu_s += time.thread_time() - looks_from_s

    def _reason(self) -> str:
        now_s, now_cpu_s = time.monotonic(), cpu_s(os.getpid()) - self.looked_cpu_s
        if now_cpu_s - self.began_cpu_s > self.limit_s:
            return f"used more than {self.limit_s:g} s of CPU time"
        if now_s - self.began_s > WALL_S:
            return f"took longer than {WALL_S:g} s"
        # less than before: a process ended that nobody waited for
        if abs(now_cpu_s - self.worked_cpu_s) >= LEAST_CPU_S or compiled_since(self.began_utc_s):
            self.worked_s, self.worked_cpu_s = now_s, now_cpu_s
        if now_s - self.worked_s > IDLE_S:
            return f"took longer than {self.limit_s:g} s and used no CPU time for {IDLE_S:g} s"
        return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails: SIGALRM interrupts what the main thread waits for."""
    limit = Limit(SLOW_LIMIT_S if any(map(item.get_closest_marker, ("slow", "keeps_time"))) else LIMIT_S)

    def look(signum, frame):
        if reason := limit.reason():
            # the report of the failure, which nothing may interrupt, takes a moment on a busy machine
            signal.setitimer(signal.ITIMER_REAL, 12 * LOOK_S, LOOK_S)
            pytest.fail(reason)  # no subclass of Exception: the tested code cannot swallow it

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, limit.limit_s, LOOK_S)  # and again, should the clean-up hang too
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if item.stash.get(FAILED, False):
            end_processes_of(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    item.stash[FAILED] = report.failed or item.stash.get(FAILED, False)
    return report


def end_processes_of(test: str) -> None:
    """What a test that failed has started and not ended takes nothing more from the tests behind it. What its module
    shares was started by a fixture, and what the session shares is the zygotes."""
    shared = []
    if zygote := sys.modules.get("zygote"):
        shared = zygote.shared()
        zygote.end_those_of(test)
    for pid, words in processes_of(SESSION).items():
        if words.endswith(f" started by {test} (call)") and pid not in shared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session", autouse=True)
def no_process_left():
    """Fails the session, naming the test, when a process that it started outlives it; ends that process."""
    yield
    if "zygote" in sys.modules:
        sys.modules["zygote"].end()  # it was shared until now
    deadline = time.monotonic() + LEAVE_S
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
    processes = {}
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
            processes[int(folder.name)] = f"{words} started by {' '.join(test) or 'no test'}"
    return processes
