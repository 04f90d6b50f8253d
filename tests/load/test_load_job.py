"""The job file that fio gets."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from load_jobs import SIZE, needs_fio, random_write

from ssdrig.base.errors import UsageError
from ssdrig.load import fio as load
from ssdrig.load import fiojob, fiolog
from ssdrig.run import stage

BURSTS = Path(__file__).parents[1] / "data/fio-3.33-bursts"
pytestmark = pytest.mark.keeps_time


# the job file


def test_job_file():
    job = load.Job("load", "randwrite", 4096, 32, 1 << 30, "nbd+unix:///?socket=/run/x", time_s=2.5, seed=7)
    assert load.job_file(job) == (
        "[load]\nioengine=nbd\nuri=nbd+unix:///?socket=/run/x\nthread=1\nrw=randwrite\nbs=4096\niodepth=32\n"
        "offset=0\nsize=1073741824\ntime_based=1\nruntime=2500ms\nrefill_buffers=1\nnorandommap=1\n"
        "random_generator=tausworthe64\nrandseed=7\n"
        "lat_percentiles=1\npercentile_list=50:90:95:99:99.9:99.99:99.999\n"
        "log_avg_msec=1000\nlog_hist_msec=1000\nlog_alternate_epoch=1\nlog_alternate_epoch_clock_id=1\n"
        "write_iops_log=load\nwrite_bw_log=load\nwrite_lat_log=load\nwrite_hist_log=load\n"
    )


def test_job_file_of_threads():
    text = load.job_file(random_write("nbd://x", rw="write", threads=4, block_bytes=4096))
    assert f"size={SIZE // 4}\nnumjobs=4\ngroup_reporting=1\noffset_increment={SIZE // 4}\n" in text
    text = load.job_file(random_write("nbd://x", threads=4))
    assert f"size={SIZE}\nnumjobs=4\ngroup_reporting=1\nio_size={SIZE // 4}\n" in text


def test_a_burst_does_not_make_up_for_the_pause_before_it():
    """Without the option fio 3.33 does 4000 I/Os in the first second after a pause of 3 s at 1000 IOPS."""
    paused = random_write("nbd://x", time_s=9, burst_s=1, pause_s=3, rate_iops=1000)
    assert "rate_ignore_thinktime=1" in load.job_file(paused)
    assert "rate_ignore_thinktime" not in load.job_file(random_write("nbd://x", time_s=9, rate_iops=1000))


def test_the_first_burst_of_a_recorded_job_took_a_pause_longer():
    """Bursts of 1 s and pauses of 2 s at 400 IOPS: 3 s of I/O, then two cycles, each a pause and its burst."""
    iops = fiolog.load(BURSTS).iops
    first_s = fiojob.first_burst_s(1.0, 2.0)
    assert first_s == 3 and (iops[:3] > 390).all()
    cycles = iops[3:].reshape(2, 3)
    assert cycles[:, 0].tolist() == [0, 0] and (abs(cycles.sum(axis=1) - 400) < 10).all()
    assert fiojob.first_burst_s(1.0, 0.0) == 0
    text = (BURSTS / "job.fio").read_text()
    assert "runtime=9000ms\nthinktime=2000000us\nthinktime_iotime=1000000us\n" in text


def test_a_point_with_pauses_is_judged_by_what_lies_behind_its_first_burst():
    """The rule and choose get IOPS of whole cycles; those of the whole job are three times as many."""
    read = fiolog.load(BURSTS)
    result = SimpleNamespace(seconds=read, runtime_s=9.0)
    paused = {"on": 1.0, "off": 2.0, "cycles": 2}
    of = {
        words: stage._means(SimpleNamespace(do="load", keys=keys), result, 1)
        for words, keys in {"cycles": paused, "all": {"time": 9.0}}.items()
    }
    assert of["cycles"]["iops"] == int(read.iops[3:].sum()) / 6 == pytest.approx(400 / 3, rel=0.01)
    assert of["all"]["iops"] == 2003 / 9
    behind, counts = read.lat_mean_ns[3:], read.iops[3:]
    assert of["cycles"]["lat_mean"] == pytest.approx((behind * counts).sum() / counts.sum() / 1000)
    short = SimpleNamespace(seconds=read, runtime_s=9.0)
    assert stage._means(SimpleNamespace(do="load", keys=paused | {"off": 8.0}), short, 1) is None


def test_detail_follows_fios_memory():
    day = {"time_s": 86400.0}
    assert load.detail(random_write("nbd://x", time_s=7200.0)) == "second"
    assert load.detail(random_write("nbd://x", **day)) == "minute" and "_log=" not in load.job_file(
        random_write("nbd://x", **day)
    )
    assert load.detail(random_write("nbd://x", time_s=3600.0, threads=4)) == "minute"
    assert load.detail(random_write("nbd://x", rw="randrw", time_s=7200.0)) == "minute"
    assert load.detail(random_write("nbd://x", rw="write", size_bytes=2 << 40)) == "minute"
    assert load.detail(random_write("nbd://x", **day, detail="second")) == "second"


def test_job_file_of_a_device_bypasses_the_page_cache():
    text = load.job_file(
        load.Job("fill", "write", 131072, 8, 1 << 30, "/dev/disk/by-id/a:b", offset=1 << 20, io_size=1 << 21)
    )
    assert "ioengine=libaio\ndirect=1\nfilename=/dev/disk/by-id/a\\:b\nallow_file_create=0\n" in text
    assert "offset=1048576\nsize=1073741824\nio_size=2097152\n" in text and "time_based" not in text


def test_of_time_and_size_the_first_ends_the_job():
    """With time_based fio would go on to its time, whatever its io_size."""
    text = load.job_file(random_write("nbd://x", time_s=30, io_size=4000 * 4096))
    assert "runtime=30000ms\nio_size=16384000\n" in text and "time_based" not in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"name": "../x"},
        {"rw": "format"},
        {"target": ""},
        {"target": "nbd://x\nfilename=/dev/sda"},
        {"block_bytes": 0},
        {"size_bytes": 100},
        {"queue_depth": 0},
        {"offset": -1},
        {"threads": 0},
        {"threads": SIZE},
        {"pause_s": 5.0},
        {"detail": "hour"},
    ],
)
def test_wrong_jobs_are_refused(wrong):
    with pytest.raises(UsageError):
        load.job_file(random_write(**{"target": "nbd://x"} | wrong))


@needs_fio
@pytest.mark.parametrize("target", ["nbd+unix:///?socket=/run/x", "/x"])
def test_fio_understands_the_job_file(tmp_path, target):
    (tmp_path / "job.fio").write_text(load.job_file(random_write(target, time_s=1)))
    done = subprocess.run(["fio", "--parse-only", "job.fio"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
