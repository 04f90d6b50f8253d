"""The reading side on Windows and macOS: an interpreter in which what Linux alone has cannot be imported or called.

macOS has fcntl, pwd and resource; Windows has none of them, nor os.geteuid, O_NOFOLLOW or SIGTTOU, and ctypes loads no
library named None. What a Windows file system does differently (names, open files) is not shown by this."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import synthetic_cuts
import synthetic_run

ROOT = Path(__file__).parents[2]
WITHOUT = """
import importlib.abc, sys
GONE = {modules!r}
class Gone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
for name in GONE:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Gone())
# what the standard library of that system does not touch
import argparse, concurrent.futures.process, ctypes, multiprocessing.connection, urllib.request
import json, multiprocessing, os, pathlib, shutil, signal, sqlite3, subprocess, tempfile, webbrowser, numpy
sys.platform = {platform!r}
for name in {os_names!r}:
    if hasattr(os, name):
        delattr(os, name)
for name in {signals!r}:
    if hasattr(signal, name):
        delattr(signal, name)
class Library(ctypes.CDLL):
    def __init__(self, name, *args, **how):
        if name is None and sys.platform == "win32":
            raise TypeError("bad argument type for built-in operation")
        super().__init__(name, *args, **how)
    def __getattr__(self, name):
        if name in ("prctl", "malloc_trim", "mallopt", "renameat2"):
            raise AttributeError(name)
        return super().__getattr__(name)
ctypes.CDLL = Library
from ssdrig.cli import main
for words in json.loads(sys.argv[1]):
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    print("ended", code, flush=True)
"""
WINDOWS = {
    "platform": "win32",
    "modules": ["pwd", "grp", "fcntl", "resource", "termios", "tty", "pty", "syslog", "spwd", "crypt"],
    "os_names": [
        *(
            "geteuid",
            "getuid",
            "getegid",
            "getgid",
            "getgroups",
            "fchmod",
            "fchown",
            "chown",
            "lchown",
            "fork",
            "forkpty",
        ),
        *("mkfifo", "mknod", "setpriority", "getpriority", "nice", "killpg", "getpgid", "setsid", "setpgid", "uname"),
        *("pread", "pwrite", "preadv", "pwritev", "fdatasync", "posix_fadvise", "posix_fallocate", "statvfs", "fwalk"),
        *("major", "minor", "makedev", "sched_getaffinity", "sched_setaffinity", "sched_setscheduler", "sysconf"),
        *(
            "sched_getscheduler",
            "O_NONBLOCK",
            "O_NOFOLLOW",
            "O_CLOEXEC",
            "O_DIRECTORY",
            "O_DIRECT",
            "O_SYNC",
            "O_DSYNC",
        ),
        *("memfd_create", "eventfd", "pidfd_open", "getxattr", "setxattr", "sync", "getloadavg"),
    ],
    "signals": ["SIGTTOU", "SIGTTIN", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGCHLD", "SIGPIPE"]
    + ["pthread_sigmask", "setitimer", "sigwait", "SIGSTOP", "SIGTSTP", "SIGCONT"],
}
MACOS = {
    "platform": "darwin",
    "modules": ["spwd"],
    "os_names": [
        "sched_getaffinity",
        "sched_setscheduler",
        "sched_getscheduler",
        "fdatasync",
        "posix_fadvise",
        "O_DIRECT",
    ]
    + ["memfd_create", "eventfd", "pidfd_open", "getxattr", "setxattr", "posix_fallocate"],
    "signals": [],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    synthetic_run.write(folder, [9000] * 6 + [4000, 4001, 3999] * 8, zoom_s=12, name="load-0001")
    synthetic_cuts.write(folder, 12, 0.0, name="cuts-0002")
    return folder


@pytest.mark.parametrize("system", [WINDOWS, MACOS], ids=["windows", "macos"])
def test_the_reading_side_works(system, runs, tmp_path):
    samples = ROOT / "tests/data/smartctl/nvme-big.json"
    load, cuts = str(runs / "load-0001"), str(runs / "cuts-0002")
    words = [
        ["--help"],
        ["wear", "--smartctl", str(samples), "--json"],
        ["plans"],
        ["plans", "show", "consistency"],
        ["runs", str(runs), "--json"],
        ["runs", str(runs), "--figures"],
        ["report", load, "-q", "--json", "-o", str(tmp_path / "load.html")],
        ["report", cuts, "-q", "-o", str(tmp_path / "cuts.html")],
        ["check", cuts, "--junit", str(tmp_path / "check.xml")],
        ["check", load, "--limits", "measurement"],
        ["label", load, "--tag", "seen"],
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "host"), "XDG_CACHE_HOME": str(tmp_path)}
    argv = [sys.executable, "-c", WITHOUT.format(**system), json.dumps(words)]
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True)
    ended = [line for line in done.stdout.splitlines() if line.startswith("ended ")]
    assert "Traceback" not in done.stderr, done.stderr
    assert ended == ["ended 0"] * len(words), done.stderr
    assert (tmp_path / "load.html").stat().st_size > 100_000 and (tmp_path / "check.xml").exists()
