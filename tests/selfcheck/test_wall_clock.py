"""Someone sets the wall clock while a run goes on (NTP, a board without a clock, a resumed VM): nothing of it may reach
the figures, which lie on CLOCK_MONOTONIC. Steps of the clock at moments of all phases, on folders of both formats, and
a live fio. With points and memory: ./ssdrig selfcheck wall-clock."""

import dataclasses
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import set_clock
from synthetic_run import T_RUN_NS

from selfcheck import wall_clock
from ssdrig.load import fio, fiolog, fiotext
from ssdrig.reading import table

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
    return set_clock.write(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def want(whole):
    return table.in_full(whole).figures


UTC_ONLY = [(by, at, False) for by in set_clock.STEPS_S for at in set_clock.MOMENTS_S]
STAMPED = [("an hour on", at, True) for at in set_clock.MOMENTS_S]
# each step and each moment once, both formats
QUICK = UTC_ONLY[:: len(set_clock.MOMENTS_S) + 1] + UTC_ONLY[-3:] + STAMPED[3:4]


@pytest.mark.parametrize(
    ("by", "at", "stamped"),
    [case if case in QUICK else pytest.param(*case, marks=pytest.mark.slow) for case in UTC_ONLY + STAMPED],
)
def test_figures_do_not_move(whole, want, tmp_path, by, at, stamped):
    run = set_clock.stepped(whole, tmp_path / "run", set_clock.STEPS_S[by], set_clock.MOMENTS_S[at], stamped)
    got = table.in_full(run).figures
    assert wall_clock.worst(want, got)[0] <= 1 and wall_clock.lost(want, got) == []
    assert got["zero_seconds"] == want["zero_seconds"] and got["ios"] == want["ios"]
    assert got["window_s"] == want["window_s"]


def test_the_bench_sees_what_it_must():
    want = {"iops": 100.0, "windows": {"all": {"wa": 3.0}}, "rails": [{"energy_J": 2.0}], "notes": ["a"]}
    assert wall_clock.worst(want, want) == (0.0, "") and wall_clock.lost(want, want) == []
    other = {"iops": 100.5, "windows": {"all": {"wa": None}}, "rails": [{"energy_J": 2.1}], "notes": ["a"]}
    percent, path = wall_clock.worst(want, other)
    assert percent == pytest.approx(5) and path == "rails.0.energy_J"
    assert wall_clock.lost(want, other) == ["windows.all.wa"]
    assert wall_clock.lost(want, other | {"notes": ["a", "b"]}) == []


def test_a_clock_that_was_set_is_said(whole, tmp_path):
    run = set_clock.stepped(whole, tmp_path / "run", 3600, 3, False)
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


@pytest.mark.slow
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
        job = fio.Job("load", "randwrite", 4096, 8, 64 << 20, f"nbd+unix:///?socket={socket}", time_s=4)
        result = fio.run(job, tmp_path / "f")
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
