"""The load generator's ceilings in a run: measured before the first step, journaled, printed."""

from types import SimpleNamespace

import pytest

from ssdrig.base.errors import LoadError
from ssdrig.load import ceiling, written_data
from ssdrig.run import ceilings

KEYS = {"pattern": "random", "read": 50, "block": ((4096, 100),), "qd": 4, "threads": 1, "engine": "auto"}
FOUND = {"link.current_link_speed": "8.0 GT/s PCIe", "link.current_link_width": "4"}


def act(do="load", keys=KEYS, not_run=None, choices=()):
    return SimpleNamespace(do=do, keys=keys, not_run=not_run, choices=choices)


@pytest.fixture
def book():
    rows = []
    return SimpleNamespace(rows=rows, event=lambda kind, **fields: rows.append((kind, fields)))


@pytest.fixture
def show():
    lines = []
    return SimpleNamespace(lines=lines, say=lines.append, warn=lines.append)


def test_shapes_of_a_plan_are_wanted_once_and_of_each_choice():
    later = act(choices=(act(keys=KEYS | {"qd": 1}), act(keys=KEYS | {"qd": 2})))
    skipped = act(keys=KEYS | {"qd": 9}, not_run="no power")
    shapes = ceilings.wanted([act(), act("idle", {}), act(), later, skipped, act("choose", {}, choices=(act(),))])
    assert [(one.word, one.queue_depth) for one in shapes] == [
        *(("read", 4), ("write", 4), ("read", 1), ("write", 1), ("read", 2), ("write", 2))
    ]


def test_ceilings_are_journaled_and_printed(monkeypatch, book, show):
    asked = []

    def measure(shapes, over_nbd, link):
        asked.append((len(shapes), over_nbd, round(link / 1e9, 2)))
        return [ceiling.Ceiling(shape, 1e5, 4096e5, pool=shape.word == "write") for shape in shapes]

    monkeypatch.setattr(ceiling, "measure", measure)
    measured = ceilings.measured([act()], lambda: "/proc/1/fd/3", FOUND, book, show)
    assert asked == [(2, False, 3.94)] and {one.iops for one in measured.values()} == {1e5}
    (kind, fields), *rest = book.rows
    assert (kind, fields["why"], len(fields["rows"]), rest) == ("ceiling", None, 2, [])
    assert ceiling.of_event(fields) == measured and len(show.lines) == 1 and "100 000 IOPS" in show.lines[0]


def test_run_goes_on_where_fio_cannot_measure(monkeypatch, book, show):
    def measure(*_):
        raise LoadError("a ceiling", "exit code 1", "-")

    monkeypatch.setattr(ceiling, "measure", measure)
    assert ceilings.measured([act()], lambda: "nbd+unix:///?socket=x", {}, book, show) == {}
    assert book.rows == [("ceiling", {"rows": [], "why": "exit code 1", "link_bytes_per_s": None})]
    assert len(show.lines) == 1


def test_plan_without_loads_measures_nothing(book, show):
    assert ceilings.measured([act("idle", {})], "/dev/x", {}, book, show) == {} and not book.rows and not show.lines


def test_data_of_each_kind_of_write_is_journaled(monkeypatch, book, show):
    monkeypatch.setattr(written_data, "measured", lambda kinds: [kind._asdict() for kind in kinds])
    shapes = ceilings.wanted([act(), act(keys=KEYS | {"compressible": 50})])
    pooled = {shape: ceiling.Ceiling(shape, 1e5, 4096e5, pool=not shape.compressible) for shape in shapes}
    ceilings.data(shapes, pooled, book, show)
    rows = [{"compressible": 0, "pool": True}, {"compressible": 50, "pool": False}]
    assert book.rows == [("data", {"rows": rows, "why": None})]
    ceilings.data([shape for shape in shapes if shape.word == "read"], pooled, book, show)
    assert len(book.rows) == 1


def test_run_goes_on_where_the_data_is_not_known(monkeypatch, book, show):
    def measured(kinds):
        raise LoadError("a sample", "exit code 1", "-")

    monkeypatch.setattr(written_data, "measured", measured)
    ceilings.data(ceilings.wanted([act()]), {}, book, show)
    assert book.rows == [("data", {"rows": [], "why": "exit code 1"})] and "exit code 1" in show.lines[0]
