"""Marks of a run: what the journal has of them is what meter/sync.py looks for in a recording."""

import contextlib
import random
import time
from types import SimpleNamespace

import played_marks
import pytest

from ssdrig.base.errors import UsageError
from ssdrig.base.progress import Progress
from ssdrig.meter import pairing, sync
from ssdrig.run import sync_marks


class Book:
    def event(self, kind, **fields):
        return {"kind": kind, **fields}


@contextlib.contextmanager
def link(write):
    assert not write

    def read(offset, length):
        time.sleep(0.001)

    yield SimpleNamespace(read=read)


def test_a_mark_says_when_its_bursts_began_and_their_first_reads_ended(monkeypatch):
    monkeypatch.setattr(sync_marks, "REST_S", 0.0)
    bench = SimpleNamespace(connect=link, drive={"capacity_bytes": 1 << 30})
    event = sync_marks.make(bench, Book(), lambda: None, Progress(True), random.Random(1))
    (mark,) = sync.marks([event])
    assert event["why"] is None and len(mark.slots) == pairing.SLOTS and sum(mark.slots) == pairing.SLOTS // 2
    assert len(mark.rises) >= sync_marks.ENOUGH  # of the pattern, then of a train
    pattern_ns = len(mark.slots) * mark.slot_ns
    behind_rests = [n for n in range(1, len(mark.slots)) if mark.slots[n] and not mark.slots[n - 1]]
    assert len(behind_rests) >= sync.RISES
    slots = [(end - mark.begin_ns) // mark.slot_ns for _, end in mark.rises if end < mark.begin_ns + pattern_ns]
    assert {*slots} <= {*behind_rests}
    assert all(end - begin >= 1_000_000 for begin, end in mark.rises)  # a read takes 1 ms


def test_a_busy_host_makes_more_trains_until_it_knows_enough_rises():
    drive = played_marks.Drive(500, 5e-4, 1.0, 0.5, 5)
    many = {}
    for name, host in (("quiet", played_marks.Host(0, 0)), ("busy", played_marks.Host(0.1, 12))):
        model = played_marks.Model(drive, host, 1)
        model.mark(10**12)
        many[name] = model.trains
    assert many["quiet"] <= 1 < many["busy"] <= sync_marks.MOST_TRAINS


def test_a_plan_that_reads_a_sealed_drive_takes_no_marks():
    recall = SimpleNamespace(do="recall", not_run=None)
    with pytest.raises(UsageError, match="--sync"):
        sync_marks.refuse([recall])
    sync_marks.refuse([SimpleNamespace(do="load", not_run=None)])


def test_a_link_that_fails_is_said_in_the_event(monkeypatch):
    monkeypatch.setattr(sync_marks, "REST_S", 0.0)

    @contextlib.contextmanager
    def broken(write):
        raise OSError("gone")
        yield

    bench = SimpleNamespace(connect=broken, drive={"capacity_bytes": 1 << 30})
    event = sync_marks.make(bench, Book(), lambda: None, Progress(True), random.Random(1))
    assert "gone" in event["why"] and event["rises_ns"] == []
