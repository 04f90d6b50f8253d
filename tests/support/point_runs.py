"""For tests of points: a run that is made once, and its points."""

import json
import shutil

import pytest
import synthetic_run
from fake_influx import parse_line

from ssdrig.load import fiotext
from ssdrig.publish.influx import points

IOPS = [9000, 8000, 0, 0, 3000, 2500, 2500, 2600, 2400, 2500, 2500, 2500]
POINTS = "points.lp"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return synthetic_run.write(tmp_path_factory.mktemp("runs"), IOPS)


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / made.name)


def emit(run, final=True):
    with points.Emitter(run) as emitter:
        emitter.step(final)
        assert emitter.size == (run / POINTS).stat().st_size
    return (run / POINTS).read_bytes()


def read(text):
    return [parse_line(line) for line in text.splitlines()]


def grow(source, target, share, rng):
    """Bring the copy of a run to a share of what the source holds, cut at any byte as a follower may find it. As a run
    does it: nothing is written twice, and the last event, the run's end, comes when all samples are there."""
    for name in ("rig.bin", "events.jsonl"):
        data = (source / name).read_bytes()
        size = len(data) if share == 1 else int(len(data) * share) + rng.randrange(-20, 20)
        with open(target / name, "ab") as file:
            file.write(data[file.tell() : max(size, 0)])


def as_printed(run):
    """The run's folder, with out.json as a run writes it: a line for each document, with the time of its arrival, then
    the last one whole."""
    for path in (run / "fio").glob("*/out.json"):
        documents = [json.loads(line) for line in path.read_text().splitlines()]
        times = [d["timestamp_ms"] * 10**6 - synthetic_run.UTC_RUN_NS + synthetic_run.T_RUN_NS for d in documents]
        lines = [fiotext.thin(d, t_ns, False) for d, t_ns in zip(documents, times, strict=True)]
        path.write_text("\n".join([*lines, json.dumps(documents[-1])]) + "\n")
    return run
