"""read_map.py: cells of a file that stands for a drive, whose reads take what the test says."""

import errno
import os

import pytest

from ssdrig.base.errors import DriveError
from ssdrig.drive import read_map
from ssdrig.drive.read_map import MIB, Cell, Map

CELLS = 200
QUICK_NS, SLOW_NS = 1_000_000, 5_000_000


class Drive:
    """A disk of CELLS MiB with data, by preadv. took(cell, how often it was asked) is what a read takes."""

    def __init__(self, monkeypatch, tmp_path, took=lambda number, asked: QUICK_NS, empty=(), broken=()):
        self.path, self.now_ns, self.asked, self.flags = tmp_path / "disk", 0, {}, None
        self._took, self._empty, self._broken = took, empty, broken
        self.path.write_bytes(b"")
        opened = os.open

        def open_(path, flags, *more, **how):
            if path == str(self.path):
                self.flags, flags = flags, flags & ~os.O_DIRECT
            return opened(path, flags, *more, **how)

        monkeypatch.setattr(read_map.os, "open", open_)
        monkeypatch.setattr(read_map.os, "preadv", self._preadv)

    def _preadv(self, fd, pages, offset):
        number = offset // MIB
        self.asked[number] = asked = self.asked.get(number, 0) + 1
        self.now_ns += self._took(number, asked)
        if number in self._broken:
            raise OSError(errno.EIO, "broken")
        pages[0][:] = bytes(MIB) if number in self._empty else b"d" * MIB
        return MIB

    def read(self, limit_s=10.0, cells=CELLS, **how) -> Map:
        return read_map.read(str(self.path), cells * MIB + 4096, limit_s, now_ns=lambda: self.now_ns, **how)


@pytest.fixture
def made(monkeypatch, tmp_path):
    return lambda **how: Drive(monkeypatch, tmp_path, **how)


def test_slow_cells_are_those_that_are_slow_each_time(made):
    drive = made(
        took=lambda number, asked: SLOW_NS if 50 <= number < 60 or (number % 40 == 7 and asked == 1) else QUICK_NS
    )
    figures = read_map.figures(drive.read())
    assert (figures["cells"], figures["stride"], figures["whole"]) == (CELLS, 1, True)
    assert [(one["offset"], one["length"]) for one in figures["slow"]] == [(50 * MIB, 10 * MIB)]
    assert figures["cells_slow"] == 10 and figures["cells_not_read_again"] == 0
    assert figures["slow"][0]["MB_per_s"] == pytest.approx(MIB / 1e6 / 0.005)
    assert figures["MB_per_s_median"] == pytest.approx(MIB / 1e6 / 0.001)


def test_it_opens_for_reading_alone_and_past_the_cache(made):
    drive = made()
    drive.read()
    assert drive.flags & os.O_ACCMODE == os.O_RDONLY and drive.flags & os.O_DIRECT


def test_a_drive_that_takes_longer_is_read_in_part_and_in_time(made):
    drive = made(took=lambda number, asked: 100_000_000)
    figures = drive.read(limit_s=10.0)
    assert figures.stride == 3 and drive.now_ns <= 10.5e9
    assert {one.offset // MIB % 3 for one in figures.cells} == {0}


@pytest.mark.parametrize("limit_s", [10.0, 20.0, 60.0])
def test_a_drive_that_becomes_slower_ends_in_time(made, limit_s):
    """Cells are quick when they show how long one takes, and slow from then on."""
    drive = made(took=lambda number, asked: QUICK_NS if asked == 1 and number % 6 == 0 else 500_000_000)
    figures = drive.read(limit_s)
    assert drive.now_ns <= (limit_s + 0.6) * 1e9 and figures.duration_s <= limit_s + 0.6


def test_empty_and_unreadable_cells_are_not_judged(made):
    drive = made(
        took=lambda number, asked: 10_000 if number < 100 else SLOW_NS if number == 150 else QUICK_NS,
        empty=range(100),
        broken=(120,),
    )
    read = drive.read()
    figures = read_map.figures(read)
    assert figures["cells_empty"] == 100 and figures["unreadable"] == [120 * MIB]
    assert figures["latency_ms_median"] == pytest.approx(1.0) and figures["cells_slow"] == 1
    shown = "".join(read_map.picture(read, columns=100))
    assert len(shown) == CELLS and shown[:100] == "." * 100 and shown[120] == "x" and shown[150] == "▂"


def test_a_drive_that_is_empty_or_gone(made, monkeypatch):
    figures = read_map.figures(made(empty=range(CELLS)).read())
    assert figures["MB_per_s_median"] is None and figures["slow"] == []
    assert read_map.picture(Map([], 1, 0.0, True)) == []

    def gone(fd, pages, offset):
        raise OSError(errno.ENXIO, "gone")

    drive = made()
    monkeypatch.setattr(read_map.os, "preadv", gone)
    with pytest.raises(DriveError):
        drive.read()


def test_progress_tells_share_and_time_left(made):
    seen = []
    made().read(show=lambda share, left_s, speed: seen.append((share, left_s, speed)))
    shares = [share for share, _, _ in seen]
    assert shares == sorted(shares) and shares[-1] > 0.9 and all(left_s >= 0 for _, left_s, _ in seen)


def test_a_cell_that_was_asked_once_is_not_accused():
    cells = [Cell(i * MIB, QUICK_NS) for i in range(10)] + [Cell(10 * MIB, SLOW_NS), Cell(11 * MIB, SLOW_NS, reads=2)]
    made_ = Map(cells, 1, 1.0, False)
    assert [one.offset for one in read_map.regions(made_)] == [11 * MIB]
    assert read_map.figures(made_)["cells_not_read_again"] == 1
