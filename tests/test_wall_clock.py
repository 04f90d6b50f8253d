"""Someone sets the wall clock while a load runs (NTP, a board without a clock, a resumed VM): nothing of it may reach
the figures, which lie on CLOCK_MONOTONIC. Each step of the clock is tried at five moments, on folders of both formats,
and once on a live fio."""

import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from synthetic_run import IOPS, T_RUN_NS, UTC_RUN_NS, write

from ssdrig import analysis, fiolog, fiotext, load
from ssdrig.figures import figures_of

STEPS_S = {"30 s on": 30, "30 s back": -30, "an hour on": 3600, "an hour back": -3600, "from 1970": UTC_RUN_NS / 1e9}
MOMENTS_S = {"before fio's clock starts": -0.1, "at once": 0.5, "early": 3, "late": 20, "at the end": 26.5}
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static double by(void) {
    static int (*real)(clockid_t, struct timespec *);
    static struct timespec first;
    struct timespec now;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    if (!first.tv_sec) first = now;
    double gone = now.tv_sec - first.tv_sec + 1e-9 * (now.tv_nsec - first.tv_nsec);
    return gone < atof(getenv("STEP_AT")) ? 0 : atof(getenv("STEP_BY"));
}
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int got = real(id, t);
    if (id == CLOCK_REALTIME) t->tv_sec += (long)by();
    return got;
}
int gettimeofday(struct timeval *t, void *zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int got = real(t, zone);
    t->tv_sec += (long)by();
    return got;
}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return write(tmp_path_factory.mktemp("runs"), IOPS)


def stepped(run, copy, by_s: float, at_s: float, stamped: bool):
    """The run as it would have been, had the clock been set by by_s at at_s after fio's start."""
    shutil.copytree(run, copy)
    began_ns = int(fiolog.load(run / "fio" / "load").t_ns[0])
    for path in copy.glob("fio/*/out.json"):
        lines = []
        for document in fiotext.documents(path.read_text())[0]:
            t_ns = (document["timestamp_ms"] * 1_000_000 - UTC_RUN_NS) + T_RUN_NS
            before = t_ns < began_ns + at_s * 1e9
            # from 1970: the clock that the run began with was wrong, and what follows the step is right
            off_s = (-by_s if before else 0) if by_s == STEPS_S["from 1970"] else (0 if before else by_s)
            document["timestamp_ms"] = max(0, round(document["timestamp_ms"] + 1000 * off_s))
            lines.append(json.dumps(document | {"t_ns": t_ns + 2_000_000} if stamped else document))
        path.write_text("\n".join(lines) + "\n")
        if by_s == STEPS_S["from 1970"]:
            start = json.loads((path.parent / "start.json").read_text())
            (path.parent / "start.json").write_text(json.dumps(start | {"utc_ns": start["utc_ns"] - int(by_s * 1e9)}))
    return copy


@pytest.mark.parametrize("stamped", [True, False], ids=["documents with their arrival", "UTC only"])
@pytest.mark.parametrize("at", MOMENTS_S)
@pytest.mark.parametrize("by", STEPS_S)
def test_figures_do_not_move(whole, tmp_path, by, at, stamped):
    want = figures_of(analysis.load(whole))
    got = figures_of(analysis.load(stepped(whole, tmp_path / "run", STEPS_S[by], MOMENTS_S[at], stamped)))
    for key, value in want.items():
        if isinstance(value, float):
            assert got[key] == pytest.approx(value, rel=0.01), key
    assert got["zero_seconds"] == want["zero_seconds"] and got["ios"] == want["ios"]
    assert got["window_s"] == want["window_s"]


def test_a_clock_that_was_set_is_said(whole, tmp_path):
    run = stepped(whole, tmp_path / "run", 3600, 3, False)
    assert any("wall clock was set" in note for note in fiolog.load(run / "fio" / "load").notes)


def test_start_from_which_documents_are_far_is_not_believed(whole, tmp_path):
    """start.json of a clock at its beginning once made 1.8e9 rows."""
    run = shutil.copytree(whole, tmp_path / "run")
    (run / "fio" / "load" / "start.json").write_text(json.dumps({"t_ns": T_RUN_NS, "utc_ns": -1}))
    seconds = fiolog.load(run / "fio" / "load")
    assert seconds.iops.tolist() == fiolog.load(whole / "fio" / "load").iops.tolist() and seconds.notes


needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ("fio", "nbdkit", "gcc"))), reason="fio, nbdkit or gcc is not installed"
)


@needs_tools
@pytest.mark.parametrize("by_s", [-3600, 30])
def test_a_live_fio_whose_clock_is_set(tmp_path, monkeypatch, by_s):
    (tmp_path / "shim.c").write_text(SHIM)
    built = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", tmp_path / "shim.so", tmp_path / "shim.c", "-ldl"],
        check=False,
        capture_output=True,
        text=True,
    )
    if built.returncode:
        pytest.skip(f"gcc cannot build the shim: {built.stderr[:200]}")
    socket = tmp_path / "s"
    drive = subprocess.Popen(
        ["nbdkit", "-f", "-U", socket, "memory", "64M", "--filter=delay", "rdelay=1ms", "wdelay=1ms"]
    )
    try:
        while not socket.exists():
            assert drive.poll() is None
        monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "shim.so"))
        monkeypatch.setenv("STEP_AT", "2")
        monkeypatch.setenv("STEP_BY", str(by_s))
        job = load.Job("load", "randwrite", 4096, 8, 64 << 20, f"nbd+unix:///?socket={socket}", time_s=4)
        result = load.run(job, tmp_path / "f")
    finally:
        drive.terminate()
        drive.wait()
    documents = fiotext.documents((tmp_path / "f" / "out.json").read_text())[0]
    utc_ms = [d["timestamp_ms"] for d in documents]
    assert abs(np.diff(utc_ms)).max() > 20_000, "the shim must have set fio's clock"
    s = result.seconds
    assert len(s.iops) in (4, 5) and not s.zero_seconds and not s.notes and s.iops.sum() == result.ios
    assert result.t_start_ns < s.t_ns[0] < s.t_ns[-1] < result.t_end_ns
    without = dataclasses.asdict(fiolog.load(_without_utc(tmp_path / "f")))
    assert all(np.array_equal(value, without[key]) for key, value in dataclasses.asdict(s).items())


def _without_utc(folder):
    """The folder, as if no clock but the monotonic one had been there."""
    path = folder / "out.json"
    path.write_text("\n".join(json.dumps(d | {"timestamp_ms": 0}) for d in fiotext.documents(path.read_text())[0]))
    os.utime(path)
    return folder
