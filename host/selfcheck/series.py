"""What many runs cost an influxd: the memory of its index. The series are those of a run folder's points, written for
1000 runs of each of 24 drives, two hours apart, a few points of each series; then it is started again, for what it
holds right after so much was written is not only its index."""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from selfcheck import Figure, at_most, exactly, in_turn, influxd
from ssdrig.publish.influx import address, link, points, query
from ssdrig.publish.influx.line_protocol import series_and_time, tags_of

RUNS, DRIVES, POINTS, APART_NS = 1000, 24, 5, 7200 * 10**9
TESTS = Path(__file__).parents[2] / "tests" / "support"  # the writer of run folders with known content is the tests'


def series() -> list[Figure]:
    """Series of one drive's run, and influxd's memory (RSS) with 24 000 of them, and when it has been started again."""
    sys.path.insert(0, str(TESTS))
    import point_runs
    import synthetic_run

    folder = Path(tempfile.mkdtemp(prefix="ssdrig-series-", dir="/var/tmp"))
    server = influxd.start(folder / "influxd")
    try:
        run = point_runs.as_printed(synthetic_run.write(folder, [4000] * 8, zoom_s=4, name="RUN"))
        with points.Emitter(run, ended=True) as emitter:
            emitter.step(final=True)
        of_run = _first_points((run / "points.lp").read_bytes())
        to = address.target(server.url, {})
        link.request(to, "/query", f"q=CREATE+DATABASE+{influxd.DATABASE}".encode(), link.FORM)
        refused = 0
        for n in in_turn(range(RUNS), "series"):
            body = b"".join(_lines(of_run, n, drive) for drive in range(DRIVES))
            refused += link.request(to, to.write_path, body, {}).status != 204
        written_B = server.rss_B()
        counted = int(query.series(to, "SHOW SERIES CARDINALITY")[0]["values"][0][0])
        began = time.monotonic()
        server.restart()
        print(f"influxd starts with {counted} series in {time.monotonic() - began:.0f} s", file=sys.stderr)
        return [
            at_most("series that a run of one drive adds", len(of_run), "", 7),
            exactly("batches refused", refused, "", 0),
            exactly("series of 1000 runs x 24 drives", counted, "", len(of_run) * RUNS * DRIVES),
            at_most("memory of influxd that holds them", server.rss_B() / 1e6, "MB", 1200),
            at_most("the same when all were written within minutes", written_B / 1e6, "MB", 1600),
        ]
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _first_points(text: bytes) -> dict[bytes, list[tuple[bytes, int]]]:
    """Of each series that belongs to the run: (what stands before the time, the time) of its first points."""
    first: dict[bytes, list[tuple[bytes, int]]] = {}
    for line in text.splitlines():
        key, t = series_and_time(line)
        if "run" in tags_of(key)[1] and len(first.setdefault(key, [])) < POINTS:
            first[key].append((line[: line.rindex(b" ") + 1], t))
    return first


def _lines(of_run: dict[bytes, list[tuple[bytes, int]]], run: int, drive: int) -> bytes:
    """The same of another run of another drive."""
    name, serial = b"run=20270101T000000Z-consistency-x-%04d%02d" % (run, drive), b"SIM%04d" % drive
    later_ns = run * APART_NS
    out = []
    for points_of_series in of_run.values():
        for head, t in points_of_series:
            out.append(head.replace(b"run=RUN", name).replace(b"SIM0001", serial) + b"%d\n" % (t + later_ns))
    return b"".join(out)


BENCHES = {
    "series": (
        "memory of a real influxd with the series of 1000 runs x 24 drives (about 3 min, 2 GB of memory)",
        series,
    )
}
