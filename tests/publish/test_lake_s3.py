"""The lake beyond one machine: behind S3, asked by a cluster, and written by processes that are killed."""

import signal
import subprocess
import sys
from pathlib import Path

import lake_runs
import pytest
from lake_runs import asked, counts, run

from ssdrig.publish.lake import place, query, read, write

pytestmark = pytest.mark.slow  # an S3 server, and a cluster of two workers

ROOT = Path(__file__).parents[2]
BUCKET = "benches"
SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def s3():
    """An S3 server of its own with an empty bucket, named by the usual variables."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with pytest.MonkeyPatch.context() as patched:
            keys = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
            for name, value in {**keys, "AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_DISABLED": "true"}.items():
                patched.setenv(name, value)
            from pyarrow import fs

            fs.S3FileSystem(endpoint_override=url, allow_bucket_creation=True, region="us-east-1").create_dir(BUCKET)
            yield url
    finally:
        server.stdin.close()
        server.wait()


def of(url: str, prefix: str) -> str:
    return f"s3://{BUCKET}/{prefix}?endpoint_override={url.removeprefix('http://')}&scheme=http&region=us-east-1"


@pytest.fixture(scope="module")
def both(s3, tmp_path_factory) -> tuple[read.Lake, read.Lake]:
    """The same three runs in a folder and behind S3."""
    folder = tmp_path_factory.mktemp("s3")
    runs = [run(folder, f"run-{i}", [1000 + 500 * i] * 3, model=f"drive {i}", later_s=86_400 * i) for i in range(3)]
    lakes = []
    for where in (str(folder / "lake"), of(s3, "both")):
        there = place.open_place(where)
        assert all(write.export(run, there, "berlin").new for run in runs)
        assert not any(write.export(run, there, "berlin").new for run in runs)
        lakes.append(read.look(there))
    return lakes[0], lakes[1]


def test_behind_s3_it_is_the_same_lake(both):
    local, remote = both
    assert counts(remote) == counts(local)
    for question in query.all_of().values():
        remote_rows, wanted = (list(map(rounded, asked(lake, question.sql))) for lake in (remote, local))
        assert remote_rows == wanted, question.name
    since = read.look(remote.place, "2026-11-21", "2026-11-21")
    assert asked(since, "SELECT DISTINCT run FROM sample") == [{"run": "run-1"}]
    assert local.place.read(local.files["second"][0]) == remote.place.read(remote.files["second"][0])


def rounded(row: dict) -> dict:
    """Sums of floats depend on the order."""
    return {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in row.items()}


def test_a_cluster_of_two_workers_finds_what_duckdb_finds(both, tmp_path):
    """Energy, samples and highest power of each run and second, from the samples behind S3."""
    import dask
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    local, remote = both
    with (
        dask.config.set({"temporary-directory": str(tmp_path), "distributed.worker.daemon": True}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster) as client,
    ):
        paths = [remote.place.path(name) for name in remote.files["sample"]]
        samples = dd.read_parquet(paths, filesystem=remote.place.filesystem)
        samples["W"] = samples.V.astype("float64") * samples.I.astype("float64")
        samples["J"] = samples.W * samples.dt_ns * 1e-9
        samples["second"] = samples.t_ns // 10**9
        grouped = samples.groupby(["run", "rail", "second"]).agg({"J": "sum", "W": "max", "V": "count"})
        rows = grouped.compute().reset_index().sort_values(["run", "rail", "second"]).values.tolist()
        ran = client.run(lambda dask_worker: dask_worker.state.executed_count)  # by worker
        assert len(ran) == 2 and sum(ran.values()) >= samples.npartitions == 3
    sql = """SELECT run, rail, t_ns // 1000000000 AS second, sum(V::DOUBLE * I * dt_ns * 1e-9) AS J,
        max(V::DOUBLE * I) AS W, count(*) AS n FROM sample GROUP BY ALL ORDER BY ALL"""
    wanted = [list(row.values()) for row in asked(local, sql)]
    assert len(rows) == len(wanted) > 20
    for row, other in zip(rows, wanted, strict=True):
        assert row == [*other[:3], pytest.approx(other[3], rel=1e-12), pytest.approx(other[4], rel=1e-12), other[5]]


EXPORT = """
import sys
from pathlib import Path
from ssdrig.publish.lake import place, write
where = place.open_place(sys.argv[1])
writing = place.Place.writing
def told(self, name):
    print("file", flush=True)
    sys.stdin.readline()
    return writing(self, name)
place.Place.writing = told
write.export(Path(sys.argv[2]), where, "berlin")
print("done", flush=True)
"""
KINDS = ("sample", "second", "figure", "smart", "event")
FILES = 6  # of these, and the row of the run


@pytest.mark.parametrize("remote, kills", [(False, (1, 3, FILES)), (True, (1, FILES))], ids=["folder", "S3"])
def test_kill_9_leaves_whole_runs_or_none(s3, tmp_path, remote, kills):
    """Beside a run that is there another one is exported, by a process that is killed as it writes one of its files
    (each moment: test_lake); each begins anew on what was left. Readers look while it writes, and after each kill."""
    runs = [run(tmp_path, f"run-{i}", [1000, 1000], model=f"drive {i}") for i in range(2)]
    wanted = rows_of(lake_runs.lake_of(tmp_path / "whole", *runs))
    assert {name: {*kinds} for name, kinds in wanted.items()} == dict.fromkeys(("run-0", "run-1"), {"run", *KINDS})
    where = of(s3, "killed") if remote else str(tmp_path / "lake")
    write.export(runs[0], place.open_place(where), "berlin")
    words = [sys.executable, "-c", EXPORT, where, str(runs[1])]
    for kill_at in kills:
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
            for number in range(1, kill_at + 1):
                assert writer.stdout.readline() == "file\n"
                if number == kill_at:
                    assert check(where, wanted) == {"run-0"}
                writer.stdin.write("\n")
                writer.stdin.flush()
            writer.send_signal(signal.SIGKILL)  # somewhere in its write
        there = check(where, wanted)
        assert there == {"run-0"} or kill_at == FILES
    write.export(runs[1], place.open_place(where), "berlin")
    assert check(where, wanted) == {*wanted}
    named = {name for names in read.look(place.open_place(where)).files.values() for name in names}
    names = place.open_place(where).names("schema=1")
    assert {name for name in names if "kind=run" not in name} == named  # it wrote over what was left
    if not remote:
        assert not [name for name in lake_runs.tree(tmp_path / "lake") if name.rpartition("/")[2].startswith(".")]


def check(where: str, wanted: dict) -> set[str]:
    """The runs that the lake has, each of which must be whole; no other run has rows."""
    rows = rows_of(read.look(place.open_place(where)))
    names = {name for name, kinds in rows.items() if "run" in kinds}
    assert rows == {name: wanted[name] for name in names}
    return names


def rows_of(lake: read.Lake) -> dict[str, dict[str, tuple[int, int]]]:
    """Of each run and kind: the number of its rows, and the sum of their times."""
    select = "SELECT run, '{0}' AS kind, count(*) AS n, sum(t_ns) AS t FROM {0} GROUP BY run"
    rows: dict[str, dict[str, tuple[int, int]]] = {}
    for row in asked(lake, " UNION ALL ".join(select.format(kind) for kind in ("run", *KINDS))):
        rows.setdefault(row["run"], {})[row["kind"]] = row["n"], row["t"]
    return rows
