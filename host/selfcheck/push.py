"""How fast points get into a real influxd: `ssdrig push`, all of the process counted, beside curl with the same lines
in the same batches. The times are those of a clock on the wall, on a machine with nothing else to do, best of some."""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from selfcheck import Figure, at_least, at_most, exactly, influxd
from ssdrig.base.errors import ToolMissing
from ssdrig.publish.influx import address, link, made
from ssdrig.publish.influx.outbox import Outbox
from ssdrig.publish.influx.sender import BATCH_LINES

SECONDS, DRIVES, BEST_OF = 7200, 24, 3
COPIED = (b"power,", b"drive_power,", b"fio_interval,")  # the measurements that have a point each second
TESTS = Path(__file__).parents[2] / "tests" / "support"  # the writer of run folders with known content is the tests'


def push() -> list[Figure]:
    """Of 24 drives' seconds, and of the run folder of one drive: from nothing, of points that are made, and again."""
    sys.path.insert(0, str(TESTS))
    import synthetic_run

    if not shutil.which("curl"):
        raise ToolMissing("curl, to compare with", "none on the path", "sudo apt install curl")
    folder = Path(tempfile.mkdtemp(prefix="ssdrig-push-", dir="/var/tmp"))
    server = influxd.start()
    try:
        rng = np.random.default_rng(0)
        iops = np.rint(np.where(np.arange(SECONDS) < 1500, 40000, 8000) * rng.normal(1, 0.05, SECONDS)).astype(int)
        run = synthetic_run.write(folder, iops, zoom_s=1400, smart_every_s=60, name="run")
        anew_s = _pushed_s(run, server, "anew")
        sent_s = min(_pushed_s(run, server, f"sent{i}") for i in range(BEST_OF))
        again_s = min(_pushed_s(run, server, f"sent{BEST_OF - 1}") for _ in range(BEST_OF))
        many = _many(run, folder / "many")
        both = [(_curl_s(many, server, f"curl{i}"), _pushed_s(many, server, f"many{i}")) for i in range(BEST_OF)]
        curl_s, push_s = map(min, zip(*both, strict=True))
        lines = _lines(many)
        print(f"{lines} lines of {DRIVES} drives: curl {curl_s:.2f} s, push {push_s:.2f} s", file=sys.stderr)
        stored = sum(server.counts(["power"], None, f"many{BEST_OF - 1}").values())
        return [
            at_least("rate of push over that of curl", curl_s / push_s, "", 0.8),
            exactly("points of power lost", DRIVES * _lines(run, b"power,") - stored, "", 0),
            at_most("finished run of 7200 s, points made before", sent_s, "s", 2),
            at_most("the same again", again_s, "s", 0.5),
            at_most("finished run of 7200 s, its points made too", anew_s, "s", 8),
        ]
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _many(run: Path, to: Path) -> Path:
    """A run folder with the seconds of `run`, once for each of DRIVES drives."""
    shutil.copytree(run, to, ignore=shutil.ignore_patterns("rig.bin", "points.*"))
    lines = [line for line in (run / "points.lp").read_bytes().splitlines(True) if line.startswith(COPIED)]
    text = b"".join(lines)
    with Outbox(to) as outbox:
        turn_s = made.begin(outbox, True)
        for drive in range(DRIVES):
            outbox.append(text.replace(rb"SIM0001", b"SIM%04d" % drive))
        made.end(to, turn_s, made.Made(outbox.size, 0, made.source(to)))
    return to


def _lines(run: Path, of: bytes = b"") -> int:
    with (run / "points.lp").open("rb") as file:
        return sum(line.startswith(of) for line in file)


def _pushed_s(run: Path, server: influxd.Influxd, database: str) -> float:
    url = _database(server, database)
    words = [sys.executable, "-P", "-m", "ssdrig", "push", str(run), "--influx", url, "--quiet"]
    began = time.monotonic()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _curl_s(run: Path, server: influxd.Influxd, database: str) -> float:
    """One curl, one connection, a POST for each BATCH_LINES lines."""
    write = address.target(_database(server, database), {}).write_path
    url = f"http://127.0.0.1:{server.port}{write}"
    lines = (run / "points.lp").read_bytes().splitlines(True)
    config = []
    for first in range(0, len(lines), BATCH_LINES):
        part = run / f"curl-{first}"
        part.write_bytes(b"".join(lines[first : first + BATCH_LINES]))
        config += ["next", f'url = "{url}"', f'data-binary = "@{part}"', "fail", "silent"]
    began = time.monotonic()
    subprocess.run(["curl", "-K", "-"], input="\n".join(config[1:]), text=True, check=True)
    return time.monotonic() - began


def _database(server: influxd.Influxd, name: str) -> str:
    url = server.url.rpartition("/")[0] + f"/{name}"
    link.request(address.target(url, {}), "/query", f"q=CREATE+DATABASE+{name}".encode(), link.FORM)
    return url


BENCHES = {
    "push": ("points of 24 drives and of a run of 7200 s into a real influxd: push beside curl (about 3 min)", push)
}
