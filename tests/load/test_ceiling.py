"""The load generator's own ceiling."""

import json
import subprocess
import zlib

import pytest

from ssdrig.base.errors import LoadError
from ssdrig.load import ceiling
from ssdrig.load.ceiling import Ceiling, Shape
from ssdrig.load.fiojob import Job, job_file

WRITE = {"pattern": "random", "read": 0, "block": ((4096, 100),), "qd": 32, "threads": 2, "engine": "libaio"}
FILL = {"block": 128 << 10, "qd": 32, "threads": 1, "engine": "auto", "compressible": 50}
SMALL, LARGE = Shape("write", True, ((4096, 100),), 32, 2, "libaio"), Shape("write", False, ((1 << 20, 100),), 4, 1)


def test_shape_of_a_step():
    assert ceiling.shapes("load", WRITE) == (SMALL,)
    assert ceiling.shapes("fill", FILL) == (Shape("write", False, ((128 << 10, 100),), 32, 1, "auto", 50),)
    assert [shape.word for shape in ceiling.shapes("load", WRITE | {"read": 65})] == ["read", "write"]
    assert ceiling.shapes("idle", {}) == ()


@pytest.mark.parametrize(
    ("shape", "over_nbd", "target"),
    [(SMALL, False, "filename=/dev/zero"), (SMALL, True, "ioengine=null"), (LARGE, False, "ioengine=null")],
)
def test_null_target_keeps_the_engine_where_calls_cost_most(shape, over_nbd, target):
    lines = job_file(ceiling.job(shape, over_nbd)).splitlines()
    assert target in lines and "direct=1" not in lines and f"iodepth={shape.queue_depth}" in lines
    assert f"bs={shape.blocks[0][0]}" in lines and "refill_buffers=1" in lines


def test_measured_shapes_run_on_this_host_and_survive_the_journal():
    mix = Shape("read", True, ((4096, 50), (8192, 50)), 8, 1)
    measured = ceiling.measure([SMALL, LARGE, SMALL, mix], over_nbd=False)
    assert [one.shape for one in measured] == [SMALL, LARGE, mix] and not any(one.pool for one in measured)
    assert measured[0].bytes_per_s == pytest.approx(4096 * measured[0].iops)
    assert measured[1].bytes_per_s == pytest.approx(measured[1].iops * (1 << 20))
    event = json.loads(json.dumps({"rows": [one.as_json() for one in measured]}))
    assert ceiling.of_event(event) == {one.shape: one for one in measured}


def test_link_that_new_data_cannot_fill_gets_a_pool():
    """New data for each write is some 5 GB a second for each core; no host does 10 TB."""
    large, small = ceiling.measure([LARGE, SMALL], over_nbd=True, link_bytes_per_s=10e12)
    assert large.pool and small.pool
    one = SMALL._replace(queue_depth=1)  # its pool would be one block
    assert not ceiling.measure([one], over_nbd=True, link_bytes_per_s=10e12)[0].pool
    slow = ceiling.measure([LARGE], over_nbd=True, link_bytes_per_s=1e6)
    assert not slow[0].pool
    half = LARGE._replace(compressible=50)
    assert not ceiling.measure([half], over_nbd=True, link_bytes_per_s=10e12)[0].pool


def test_fio_that_measures_nothing_is_an_error(tmp_path):
    silent = tmp_path / "fio"
    silent.write_text("#!/bin/sh\necho '{\"jobs\": []}'\n")
    silent.chmod(0o755)
    with pytest.raises(LoadError):
        ceiling.measure([SMALL], over_nbd=True, fio=str(silent))
    with pytest.raises(LoadError):
        ceiling.measure([SMALL], over_nbd=True, fio=str(tmp_path / "none"))


def test_lowest_shape_is_a_mix_s_ceiling():
    read, write = ceiling.shapes("load", WRITE | {"read": 65})
    both = {read: Ceiling(read, 9e5, 9e9), write: Ceiling(write, 4e5, 4e9, pool=True)}
    assert ceiling.of_step(both, "load", WRITE | {"read": 65}).iops == 4e5
    assert ceiling.of_step(both, "load", WRITE | {"read": 100}).iops == 9e5
    assert ceiling.of_step({read: both[read]}, "load", WRITE | {"read": 65}) is None
    assert ceiling.of_step(both, "load", WRITE | {"read_qd": 1}) is None
    assert ceiling.pooled(both, "load", WRITE | {"read": 65}) and not ceiling.pooled(
        both, "load", WRITE | {"read": 100}
    )


@pytest.mark.parametrize("row", [{}, {"word": "read"}, 5, [], SMALL._asdict() | {"iops": "x", "bytes_per_s": 1}])
def test_forged_row_of_a_journal_is_left_out(row):
    assert ceiling.of_event({"rows": [row]}) == {} and ceiling.of_event(None) == {}


def test_link_speed_in_bytes():
    assert ceiling.link_bytes_per_s("16.0 GT/s PCIe", "4") == pytest.approx(7.877e9, rel=1e-3)
    assert ceiling.link_bytes_per_s("5.0 GT/s PCIe", "2") == pytest.approx(1e9)
    assert ceiling.link_bytes_per_s("Unknown", "4") is None and ceiling.link_bytes_per_s("", "") is None


@pytest.mark.parametrize(
    ("how", "least", "most"),
    [
        ({}, 0.99, 1.01),
        ({"pool": True}, 0.89, 1.0),
        ({"compressible": 50}, 0.48, 0.53),
        ({"compressible": 100}, 0, 0.01),
    ],
)
def test_written_data_compresses_as_asked(tmp_path, how, least, most):
    """Of what fio writes with these options, in units of 4 to 128 KiB; no two sectors are the same but zeros."""
    path = tmp_path / "data"
    path.write_bytes(bytes(4 << 20))
    job = Job("data", "write", 128 << 10, 4, 4 << 20, str(path), detail="none", **how)
    text = job_file(job).replace("direct=1", "direct=0")
    (tmp_path / "job.fio").write_text(text)
    subprocess.run(["fio", "job.fio"], cwd=tmp_path, check=True, capture_output=True)
    data = path.read_bytes()
    for unit in (4096, 32 << 10, 128 << 10):
        pieces = [data[at : at + unit] for at in range(0, len(data), unit)]
        assert least <= sum(len(zlib.compress(piece)) for piece in pieces) / len(data) <= most
    sectors = [data[at : at + 512] for at in range(0, len(data), 512)]
    assert len(set(sectors)) == (1 if how.get("compressible") == 100 else len(sectors))
