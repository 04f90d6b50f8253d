"""second_meter.py: what a second meter of a run records, and the steps in which it is compared with the first."""

import pytest

from ssdrig.base import progress
from ssdrig.base.errors import RigError
from ssdrig.meter import crosscheck
from ssdrig.run import second_meter
from ssdrig.runs import journal, rigbin

S = 10**9


@pytest.fixture
def run(tmp_path):
    made = journal.create(tmp_path, {"run": "r"})
    yield made
    made.close("complete")


class Meter:
    """A meter that records one payload when it stops."""

    def __init__(self, book):
        self.book = book

    def start(self):
        self.book.event("rig.hello", 1 * S, chip="INA226")

    def stop(self):
        self.book.record_all([(1, b"abc", 2 * S)])


def begun(monkeypatch, run):
    monkeypatch.setattr(second_meter.bridge, "opened", lambda url, book: Meter(book))
    return second_meter.Second("hwmon:x", run)


def test_its_bytes_are_in_a_folder_of_its_own_and_its_events_are_named(monkeypatch, run):
    meter = begun(monkeypatch, run)
    monkeypatch.setattr(second_meter.samples, "load_rails", lambda path: [])
    meter.end(progress.Progress())
    assert (run.path / "second" / "rig.bin").read_bytes() == rigbin.encode(1, b"abc", 2 * S)
    (hello,) = (event for event in journal.events(run.path) if event["kind"] == "second.rig.hello")
    assert (hello["t_ns"], hello["chip"]) == (1 * S, "INA226") and not (run.path / "rig.bin").read_bytes()


def test_each_ended_step_is_compared(monkeypatch, run):
    for kind, step, t_s in (
        ("step.start", "fill", 10),
        ("step.end", "fill", 20),
        ("step.start", "load", 30),
        ("step.end", "other", 35),
    ):
        run.event(kind, t_s * S, step=step)
    assert second_meter.steps(run.path) == [("fill", 10 * S, 20 * S)]
    asked = []

    def compare(first, second, begin_ns, end_ns):
        asked.append((first, second, begin_ns, end_ns))
        return crosscheck.Ratio(1.2, 0.1)

    monkeypatch.setattr(second_meter.samples, "load_rails", lambda path: [path])
    monkeypatch.setattr(second_meter.crosscheck, "compare", compare)
    begun(monkeypatch, run).end(progress.Progress())
    assert asked == [([run.path], [run.path / "second"], 10 * S, 20 * S)]
    (event,) = (event for event in journal.events(run.path) if event["kind"] == "meters")
    assert (event["step"], event["ratio"], event["error"], event["agree"]) == ("fill", 1.2, 0.1, False)


def test_a_recording_that_cannot_be_read_does_not_end_the_run(monkeypatch, run):
    def unreadable(path):
        raise RigError("samples", "none", "look")

    monkeypatch.setattr(second_meter.samples, "load_rails", unreadable)
    begun(monkeypatch, run).end(progress.Progress())
    (event,) = (event for event in journal.events(run.path) if event["kind"] == "meters")
    assert "none" in event["why"] and "ratio" not in event


def test_a_meter_that_does_not_start_leaves_no_open_file(monkeypatch, run):
    books = []

    def opened(url, book):
        books.append(book)
        meter = Meter(book)
        monkeypatch.setattr(meter, "start", lambda: (_ for _ in ()).throw(RigError("a meter", "none", "plug it in")))
        return meter

    monkeypatch.setattr(second_meter.bridge, "opened", opened)
    with pytest.raises(RigError):
        second_meter.Second("hwmon:x", run)
    with pytest.raises(ValueError):
        books[0].record(1, b"", 0)
