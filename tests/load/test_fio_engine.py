"""fio's engine, registered buffers, polling and CPUs of a load."""

import os
import subprocess

import pytest

from ssdrig.base import uring
from ssdrig.base.errors import UsageError
from ssdrig.load import engine
from ssdrig.load.fiojob import Job, job_file

KEYS = {"engine": "auto", "cpus": "any", "threads": 1}


def test_auto_asks_the_kernel(monkeypatch):
    """A container's filter forbids io_uring where the setting allows it; a kernel before 6.6 has no such setting."""
    monkeypatch.setattr(uring, "allowed", lambda: False)
    assert engine.how(KEYS, 4096) == {"engine": "libaio", "fixed_buffers": False, "polled": False, "cpus": ()}
    monkeypatch.setattr(uring, "allowed", lambda: True)
    assert engine.engine("auto") == "io_uring" and engine.engine("libaio") == "libaio"


def test_the_kernel_answers_as_it_does_to_fio(tmp_path):
    target = tmp_path / "target"
    target.write_bytes(bytes(1 << 20))
    words = ["fio", "--name=x", "--ioengine=io_uring", "--rw=read", "--bs=4k", "--size=1m", f"--filename={target}"]
    done = subprocess.run([*words, "--thread=1"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert uring.allowed() == (done.returncode == 0), done.stderr


def test_a_refusal_of_the_kernel_is_no_ring(monkeypatch):
    monkeypatch.setattr(uring, "SETUP", 1_000_000)
    assert not uring.allowed()


@pytest.mark.parametrize(("limit_bytes", "fixed"), [(8 << 20, True), ((8 << 20) - 1, False), (-1, True)])
def test_buffers_are_registered_where_they_may_be_locked(monkeypatch, limit_bytes, fixed):
    monkeypatch.setattr(uring, "allowed", lambda: True)
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    monkeypatch.setattr("resource.getrlimit", lambda of: (0, limit_bytes))
    assert engine.how(KEYS, 4 << 20)["fixed_buffers"] is fixed
    assert not engine.how({**KEYS, "engine": "libaio"}, 4096)["fixed_buffers"]


def test_each_thread_needs_its_own_cpu(monkeypatch):
    monkeypatch.setattr(engine.os, "sched_getaffinity", lambda pid: {4, 1})
    assert engine.how({**KEYS, "cpus": "own", "threads": 2}, 4096)["cpus"] == (1, 4)
    with pytest.raises(UsageError) as error:
        engine.how({**KEYS, "cpus": "own", "threads": 3}, 4096)
    assert error.value.seen == "2 CPUs"


def _job(**changes) -> Job:
    return Job("load", "randwrite", 4096, 32, 1 << 30, "/dev/sdx", time_s=1.0, **changes)


def test_what_fio_is_told():
    lines = job_file(_job(engine="io_uring", fixed_buffers=True, polled=True, cpus=(0, 3))).splitlines()
    assert {"fixedbufs=1", "registerfiles=1", "hipri=1", "cpus_allowed=0,3", "cpus_allowed_policy=split"} <= set(lines)
    plain = job_file(_job()).splitlines()
    assert not {"fixedbufs=1", "hipri=1"} & set(plain) and "cpus_allowed" not in "\n".join(plain)
    with pytest.raises(UsageError):
        job_file(_job(polled=True))


def test_fio_takes_registered_buffers_and_a_cpu_for_each_thread(tmp_path):
    if not uring.allowed():
        pytest.skip("the kernel gives no io_uring")
    target = tmp_path / "target"
    target.write_bytes(bytes(8 << 20))
    how = engine.how({**KEYS, "cpus": "own"}, 32 * 4096)
    text = job_file(
        Job("load", "randwrite", 4096, 32, 8 << 20, os.fspath(target), io_size=1 << 20, detail="none", **how)
    )
    (tmp_path / "job.fio").write_text(text.replace("direct=1\n", ""))
    done = subprocess.run(["fio", "job.fio"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert target.read_bytes().strip(b"\0")
