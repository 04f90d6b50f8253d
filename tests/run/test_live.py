"""The SMART polls of a run under load: at the plan's interval, and at the edges of the load's windows."""

import json
import threading
import time
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import DriveError
from ssdrig.base.progress import Progress
from ssdrig.drive import witness
from ssdrig.plan import expand, grammar
from ssdrig.run import live
from ssdrig.run.budget import Budget
from ssdrig.run.course import Course
from ssdrig.run.pace import Pace


class Book:
    """A journal that remembers what it was told."""

    def __init__(self):
        self.events, self.files = [], []

    def event(self, kind, **fields):
        self.events.append((kind, fields))

    def put(self, name, content):
        self.files.append(name)

    def reasons(self):
        return [fields["reason"] for kind, fields in self.events if kind == "smart.start"]


class Drive:
    """A bench's three things that Live needs; each poll takes as long as `slow` says, or waits for `gate`."""

    drive = {"time_dilation": 1, "interface": "SATA"}

    def __init__(self, gate=None):
        self.asked, self.gate = [], gate

    def witness(self, since):
        return witness.read(None)

    def poll(self, like):
        self.asked.append(like)
        if self.gate and len(self.asked) > 1:
            assert self.gate.wait(600)
        return {"t_start_ns": 1, "t_end_ns": 2, "simulated": True, "smartctl": {}}


class Clock:
    """Timers that go off when the test says so."""

    def __init__(self, monkeypatch):
        self.made = []
        clock = self

        class Timer:
            def __init__(self, after_s, function, arguments):
                self.after_s, self.fire, self.cancelled = after_s, lambda: function(*arguments), False
                clock.made.append(self)

            def start(self):
                pass

            def join(self):
                pass

            def cancel(self):
                self.cancelled = True

        monkeypatch.setattr(live.threading, "Timer", Timer)


def made(drive, duration_s=60, zoom_s=42, interval_s=10):
    book = Book()
    at = live.Live(drive, book, None, Progress(quiet=True), False, Course((), drive.drive, {}, Budget(None)))
    at.load = Pace("load", time_s=duration_s, polled=True, edges_s=(zoom_s, duration_s), smart_s=interval_s)
    return at, book


FILL = Pace("fill", bytes_to_do=1 << 30)


def second(iops, runtime_s):
    return {
        "t_ns": time.monotonic_ns(),
        "runtime_s": runtime_s,
        "iops": iops,
        "bw_bytes": 4096 * iops,
        "total_bytes": 4096,
    }


def settled(at):
    with at._polling:
        pass


def test_the_edges_of_the_windows_are_polled(monkeypatch):
    clock, drive = Clock(monkeypatch), Drive()
    now = second(1000, 1.0)
    monkeypatch.setattr(live.time, "monotonic", lambda: now["t_ns"] / 1e9)  # which a busy machine does not delay
    at, book = made(drive)
    at.poll_smart("before")
    at.begin(at.load)
    at.second(now)
    at.second(now | {"runtime_s": 2.0})
    assert [timer.after_s for timer in clock.made] == pytest.approx([41.0, 58.8], abs=1e-6)  # of the first second
    for timer in clock.made:
        timer.fire()
        settled(at)
    assert book.reasons() == ["before", "edge", "edge"]
    assert drive.asked[0] is None and drive.asked[1] and drive.asked[2]  # the same sources again
    assert book.files == ["smart/001.json", "smart/002.json", "smart/003.json"]
    at.begin(Pace("teardown"))
    assert all(timer.cancelled for timer in clock.made)


def test_smart_is_left_out_while_idle_and_read_before_the_load_behind_it():
    """It was left out there, too: write amplification of a load behind a rest had no reading before."""
    text = 'schema = 1\nname = "x"\ntitle = "x"\nsource = "x"\nabout = "x"\n'
    text += '[[step]]\nname = "rest"\ndo = "idle"\ntime = "5 s"\n'
    text += '[[step]]\nname = "load"\ndo = "load"\nread = 0\nblock = "4 KiB"\npattern = "random"\ntime = "9 s"\n'
    facts = {"capacity_bytes": 1 << 30, "interface": "SATA", "raw_nand_bytes": 0, "logical_block_bytes": 512}
    rest, load = expand.expand(grammar.read(text), facts)
    at, book = made(Drive())
    at.act(rest, None, 1, 2)
    at.begin(Pace("idle"))
    assert at.poll_smart("poll") is None and book.reasons() == []
    at.act_done(rest, 0)
    at.act(load, None, 2, 2)
    at.poll_smart("before")
    assert book.reasons() == ["before"]


def test_what_looks_like_the_cliff_is_polled_at_once_and_at_most_twice(monkeypatch):
    Clock(monkeypatch)
    at, book = made(Drive())
    at.begin(at.load)
    for i, iops in enumerate([40000, 40000, 40000, 40000, 9000, 9000, 9000, 9000]):
        at.second(second(iops, i + 1.0))
        settled(at)
    assert book.reasons() == ["edge", "edge"]


def test_near_an_edge_there_is_no_other_poll(monkeypatch):
    Clock(monkeypatch)
    for zoom_s, polled in ((42, ["poll"]), (1, [])):
        at, book = made(Drive(), zoom_s=zoom_s, interval_s=10)
        at.begin(at.load)
        at._next_poll = 0.0
        at.second(second(1000, 0.5))
        settled(at)
        assert book.reasons() == polled


def test_a_poll_that_does_not_end_keeps_others_out_and_the_next_step_waiting(monkeypatch):
    clock, gate = Clock(monkeypatch), threading.Event()
    at, book = made(Drive(gate))
    at.poll_smart("before")
    at.begin(at.load)
    at.second(second(1000, 1.0))
    clock.made[0].fire()
    clock.made[1].fire()
    assert book.reasons() == ["before", "edge"]
    assert ("note", {"text": "SMART poll (edge) left out: the one before has not ended yet"}) in book.events
    gate.set()
    at.begin(Pace("flush"))
    assert book.events[-1][0] == "smart.end"


def test_a_poll_that_fails_is_an_event(monkeypatch):
    clock, drive = Clock(monkeypatch), Drive()
    at, book = made(drive)
    at.begin(at.load)
    at.second(second(1000, 1.0))

    def fails(like):
        raise DriveError("an answer", "none", "look")

    drive.poll = fails
    clock.made[0].fire()
    settled(at)
    assert book.events[-1][0] == "smart.end" and not book.events[-1][1]["ok"]
    clock.made[1].fire()  # the lock is free again
    settled(at)
    assert book.reasons() == ["edge", "edge"]


class WallClock:
    """time.time_ns() that someone sets by `by_s`."""

    def __init__(self, monkeypatch):
        self.by_s, real = 0.0, time.time_ns
        monkeypatch.setattr(live.time, "time_ns", lambda: real() + round(self.by_s * 1e9))


def anchors(book):
    return [fields["utc_ns"] for kind, fields in book.events if kind == "clock.anchor"]


@pytest.mark.parametrize("by_s", [-3600, -1.5, 1.5, 30, 1.7e9])
def test_a_wall_clock_that_is_set_under_load_is_anchored_in_the_same_second(monkeypatch, by_s):
    Clock(monkeypatch)
    wall = WallClock(monkeypatch)
    at, book = made(Drive())
    at.begin(FILL)
    at.second(second(1000, 1.0))
    assert anchors(book) == []
    wall.by_s = by_s
    at.second(second(1000, 2.0))
    assert anchors(book) == [pytest.approx(live.time.time_ns(), abs=10**9)]
    at.second(second(1000, 3.0))
    assert len(anchors(book)) == 1, "one for each time that it is set"


def test_a_wall_clock_that_ntp_slews_is_not_anchored_each_second(monkeypatch):
    Clock(monkeypatch)
    wall = WallClock(monkeypatch)
    at, book = made(Drive())
    at.begin(FILL)
    for i in range(20):
        wall.by_s += 0.0005  # 500 ppm, the fastest
        at.second(second(1000, i + 1.0))
    assert anchors(book) == []


def test_a_wall_clock_that_is_set_while_the_drive_idles_or_is_purged(monkeypatch):
    wall = WallClock(monkeypatch)
    at, book = made(Drive())
    wall.by_s = 3600
    at.begin(FILL)  # the purge before it has no seconds
    assert len(anchors(book)) == 1
    moments = iter([*range(10)])
    monkeypatch.setattr(live.time, "monotonic", lambda: float(next(moments)))
    monkeypatch.setattr(live.time, "sleep", lambda s: setattr(wall, "by_s", 0))
    at._heed_rig = lambda: None
    at.wait(4, lambda: None)
    assert len(anchors(book)) == 2


def test_after_a_long_step_without_seconds_there_is_one_anchor(monkeypatch):
    at, book = made(Drive())
    at._next_anchor -= 1200
    at.begin(FILL)
    for i in range(3):
        at.second(second(1000, i + 1.0))
    assert len(anchors(book)) == 1


def test_the_line_tells_the_round_the_rule_the_bytes_and_the_whole_runs_rest(monkeypatch, capsys):
    repeat = expand.Repeat("rounds", 5, 25, (), "round")
    keys = {"pattern": "random", "read": 50, "block": ((4096, 100.0),), "threads": 1, "time": 60.0}
    acts = [expand.Act("rounds/a", "load", keys, {"read": 50}, repeat), expand.Act("rest", "idle", {"time": 30.0})]
    drive = Drive()
    drive.drive = {"time_dilation": 1, "interface": "SATA", "capacity_bytes": 10**9}
    allowed = Budget(5 * 10**9, 10**9)
    book = Book()
    book.path, book.sync = "RUN", lambda: (1, 2)
    shown = Progress()
    at = live.Live(drive, book, None, shown, True, Course(acts, drive.drive, {}, allowed))
    at.act(acts[0], 3, 1, 1)
    at.rule_words = "range 12 % of 20 %"
    at.begin(Pace("rounds/a", time_s=60.0))
    monkeypatch.setattr(live.time, "monotonic", lambda: at._started + 15)
    at.second(second(1000, 15.0) | {"total_bytes": 10**9})
    stdout, line = capsys.readouterr()
    for part in ("rounds 3/5…25  1/1  a read=50   25%", "1,000 IOPS", "range 12 % of 20 %", "wrote 1.50 GB of 5.00 GB"):
        assert part in line
    # 45 s, for at its fastest this act writes all that is left; at its slowest 16 rounds of 60 s + 1 s + a reading
    assert line.endswith("ETA 0:45…18:27\n")
    document = json.loads(stdout.splitlines()[-1])  # behind the line that the step has begun with
    assert (
        document["left_s"] == [45, 1107]
        and document["written_bytes"] == 15 * 10**8
        and document["budget_bytes"] == 5 * 10**9
    )
    assert document["doing"] == "rounds 3/5…25 1/1 a read=50" and document["rule"] == "range 12 % of 20 %"
    at.act_done(acts[0], 2 * 10**9)
    at.act(acts[1], None, 1, 1)
    at.begin(Pace("rest"))
    assert at._course.left_s(10) == (20, 20)


def test_a_rule_of_the_load_itself_is_shown_rather_than_the_repeats(capsys):
    at, _ = made(Drive())
    at._show = Progress()
    at.begin(Pace("load", time_s=60.0, rule=lambda: "record 2 of 5"))
    at.second(second(1000, 1.0))
    assert "record 2 of 5" in capsys.readouterr().err


def test_the_power_of_the_host_is_in_its_event_and_counts_within_the_step(monkeypatch):
    at, book = made(Drive())
    monkeypatch.setattr(live, "HOST_INTERVAL_S", 0)
    energies, watts = iter([{"package-0": 9.0}, {"package-0": 2.5}, {}]), iter([50.0, 60.0, None])
    at._energies = SimpleNamespace(since=lambda: next(energies))
    at.bmc = SimpleNamespace(since=lambda: next(watts))
    at.begin(Pace("load"))
    for _ in range(3):
        at._heed_host()
    first, second_ = (fields for kind, fields in book.events if kind == "host")
    assert (first["energy_J"], first["bmc_W"]) == ({"package-0": 2.5}, 60.0)
    assert "energy_J" not in second_ and "bmc_W" not in second_


def test_until_when_a_drive_was_cold(monkeypatch):
    """Its last reading before the first in the step that counts heat; the readings of an earlier step do not count."""
    now, count = [100.0], [3]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(live.counters, "snapshot", lambda document: {"temperature_C": 40, "throttle_1_count": count[0]})
    drive = Drive()
    at, _ = made(drive)

    def poll(at_s, counted, reason="poll"):
        now[0], count[0] = at_s, counted
        at.poll_smart(reason)
        return at.cold_s()

    assert poll(100.0, 3, "before") is None
    at.begin(at.load)
    assert [poll(130.0, 3), poll(150.0, 3), poll(170.0, 4), poll(190.0, 4)] == [None, None, 50.0, 50.0]
    now[0] = 200.0
    at.begin(at.load)
    assert [at.cold_s(), poll(230.0, 4), poll(250.0, 5)] == [None, None, 30.0]
