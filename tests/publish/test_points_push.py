"""`ssdrig push`: a run's points on their way to a server, also while it is away or the run goes on."""

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from fake_influx import FakeInflux, nobody
from json_documents import checked
from point_runs import POINTS, emit, grow, made, read, run  # noqa: F401  fixtures

from selfcheck import influxd as real
from ssdrig.base.errors import JournalError, UploadIncomplete, UsageError
from ssdrig.base.progress import Progress
from ssdrig.publish.influx import points, push
from ssdrig.publish.influx import sender as influx

pytestmark = pytest.mark.keeps_time


# the command


def ssdrig(*words, **environ):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SSDRIG_INFLUX")}
    done = subprocess.run(
        [sys.executable, "-m", "ssdrig", *map(str, words)], capture_output=True, text=True, env=clean | environ
    )
    return done.returncode, done.stdout, done.stderr


def test_push_sends_all(run):
    with FakeInflux() as fake:
        code, out, err = ssdrig("push", run, "--json", SSDRIG_INFLUX=fake.url)
        assert code == 0 and "Traceback" not in err
        expected = points.counts(run)
        assert {name: fake.count(name) for name in expected} == expected
        answer = checked("push", json.loads(out))
        assert answer == {
            "run": str(run),
            "to": fake.url,
            "lines": sum(expected.values()),
            "pending": 0,
            "rejected": 0,
            "left_out": 0,
        }
        assert ssdrig("push", run, "--influx", fake.url)[0] == 0 and len(fake.seen) == 1, (
            "sent again what was acknowledged"
        )


def test_push_sends_every_part_of_a_run(run):
    part = run / "part-2"
    part.mkdir()
    for name in ("run.json", "events.jsonl", "rig.bin", "smart", "lock"):
        if (run / name).is_dir():
            shutil.copytree(run / name, part / name)
        elif (run / name).exists():
            shutil.copy(run / name, part)
    header = json.loads((part / "run.json").read_text())
    header["started"]["utc_ns"] += 10**13  # after a reboot, another clock
    (part / "run.json").write_text(json.dumps(header))
    lines = (part / "events.jsonl").read_text().splitlines(keepends=True)
    (part / "events.jsonl").write_text("".join(line for line in lines if "clock.anchor" not in line))
    with FakeInflux() as fake:
        sent = push.push(run, influx.target(fake.url, {}), False, 20, Progress(quiet=True))
        both = [sum(points.counts(folder).values()) for folder in (run, part)]
        assert sent == (sum(both), 0, 0, 0) and len(fake.stored) == sum(both) and min(both) > 10
        assert push.push(run, influx.target(fake.url, {}), False, 20, Progress(quiet=True)) == sent


def test_push_gives_up_and_says_what_finishes_it(run):
    with nobody() as url:
        words = "--influx", url.replace("//", "//u:hunter2@"), "--timeout", "0.5", "--json"
        code, out, err = ssdrig("push", run, *words)
    total = sum(points.counts(run).values())
    assert code == UploadIncomplete.exit_code == 6
    assert json.loads(out)["pending"] == total and f"{total} not sent yet" in err and f"./ssdrig push {run}" in err
    assert "hunter2" not in out + err


def test_push_names_what_is_refused(run):
    with FakeInflux() as fake:
        fake.types[("rig_event", "text")] = int
        code, out, err = ssdrig("push", run, "--influx", fake.url, "--json")
        expected = points.counts(run)
        assert code == 6 and json.loads(out)["rejected"] == expected["rig_event"] and "rejected.jsonl" in err
        assert (
            fake.count("power") == expected["power"]
            and len((run / "rejected.jsonl").read_text().splitlines()) == expected["rig_event"]
        )


def test_push_without_address_or_run(run, tmp_path):
    assert ssdrig("push", run)[0] == UsageError.exit_code
    assert ssdrig("push", run, "--influx", "nonsense")[0] == UsageError.exit_code
    code, _, err = ssdrig("push", tmp_path / "absent", "--influx", "http://127.0.0.1:9/db")
    assert code == JournalError.exit_code and "run.json" in err and not (tmp_path / "absent").exists()


class Replay:
    """A run that is being written: its lock held, its records and events copied over bit by bit."""

    def __init__(self, made, run, seconds):
        self.made, self.run = made, run
        shutil.copytree(made, run)
        for name in ("events.jsonl", "rig.bin"):
            (run / name).write_bytes(b"")
        self.lock = os.open(run / "lock", os.O_RDWR)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.rng, self.share, self.seconds = random.Random(1), 0.0, seconds

    def step(self):
        """Whether there is more to come. A step is as much as 0.02 s of the run, however long it takes."""
        self.share = min(1, self.share + 0.02 / self.seconds)
        grow(self.made, self.run, self.share, self.rng)
        if self.share == 1:
            os.close(self.lock)
        time.sleep(0.02)
        return self.share < 1


def test_push_of_a_run_that_goes_on_sends_no_half_second(made, tmp_path):
    with FakeInflux("3.11") as fake:
        replay = Replay(made, tmp_path / made.name, 1.0)
        while replay.step() and replay.share < 0.5:
            pass
        code, _, err = ssdrig("push", replay.run, "--influx", fake.url)
        assert code == 0 and "still going on" in err and 0 < fake.count("power") < points.counts(made)["power"]
        while replay.step():
            pass
        assert ssdrig("push", replay.run, "--influx", fake.url)[0] == 0
        whole = read(emit(shutil.copytree(made, tmp_path / "whole" / made.name)))
        assert fake.stored == {(m, tags, t): fields for m, tags, fields, t in whole} and fake.changed == 0


@pytest.mark.parametrize("deaths", [0, 4])
def test_real_database_absent_for_a_third_and_pusher_killed(made, tmp_path, deaths):
    """The server is away, then there, then killed; with `deaths` the follower is kill -9ed as well: the counts are
    equal."""
    if not shutil.which("influxd"):
        pytest.skip("influxd is not installed (apt install influxdb)")
    server = real.start(tmp_path / "influxd")
    pusher = None
    try:
        replay = Replay(made, tmp_path / made.name, 4.0)
        acts = [(1.2, server.kill), (2.5, server.restart), (3.2, server.kill), (3.6, server.restart)]
        kills = [0.7 + 0.8 * i for i in range(deaths)]
        pusher = push.start(replay.run, server.url)
        while replay.step():
            now = replay.share * replay.seconds
            while acts and now >= acts[0][0]:
                acts.pop(0)[1]()
            if kills and now >= kills[0]:
                kills.pop(0)
                pusher.send_signal(signal.SIGKILL)
                pusher.wait()
                pusher = push.start(replay.run, server.url)
        for _, act in acts:
            act()
        assert pusher.wait(600) == 0
        expected = points.counts(replay.run)
        assert Counter(m for m, *_ in read((replay.run / POINTS).read_bytes())) == expected
        assert server.counts(list(expected), replay.run) == expected
        assert not (replay.run / "rejected.jsonl").exists()
        assert json.loads((replay.run / "points.cursor").read_text())["lines"] == sum(expected.values())
    finally:
        if pusher:
            pusher.kill()
            pusher.wait()
        server.stop()


def test_following_ends_with_the_run_and_says_what_is_left(made, tmp_path):
    replay = Replay(made, tmp_path / made.name, 0.5)
    words = [sys.executable, "-m", "ssdrig", "push", str(replay.run), "--follow", "--timeout", "0.3", "--quiet"]
    with nobody() as url:
        pusher = subprocess.Popen([*words, "--influx", url], stderr=subprocess.PIPE, text=True)
        try:
            while replay.step():
                pass
            _, err = pusher.communicate()
        finally:
            pusher.kill()
            pusher.wait()
    assert pusher.returncode == 6 and "not sent yet" in err
    assert Counter(m for m, *_ in read((replay.run / POINTS).read_bytes())) == points.counts(replay.run)


def test_to_push_again_imports_no_arrays(run):
    """Of a run whose points are made: NumPy's import would be most of its time."""
    words = "import sys; from ssdrig import cli; code = cli.main(sys.argv[1:]); exit(code or 'numpy' in sys.modules)"
    with FakeInflux() as fake:
        assert ssdrig("push", run, "--influx", fake.url)[0] == 0
        argv = [sys.executable, "-c", words, "push", str(run), "--influx", fake.url]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert (done.returncode, len(fake.seen)) == (0, 1), done.stderr
