"""Published statistics of three recorded traces that were never published themselves: AnandTech's Storage Bench
(anandtech.com, reviews 8979, 9023 and 9090). GB are 10^9 bytes here; of the Destroyer, totals and sizes agree with
each other only if its GB are GiB (7 %), so its size rows give way by up to one percentage point."""

from typing import NamedTuple

KiB = 1024
# the rows of the tables: (name, from, to) in bytes, and in I/Os
SMALL, REST = "<4K", "rest"
SIZE_ROWS = (SMALL, "4K", "8K", "16K", "32K", "64K", "128K", REST)
QD_ROWS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, 20), (21, 32), (33, 64))  # the last: "more than 32"
SIZES = {name: int(name[:-1]) * KiB for name in SIZE_ROWS if name not in (SMALL, REST)}


class Bench(NamedTuple):
    """Totals in I/Os and bytes; shares in percent, in the order of SIZE_ROWS and QD_ROWS. `writes_of`: only the writes
    of that bench, with trims and flushes of ours between them."""

    reads: int
    writes: int
    read_bytes: float
    written_bytes: float
    sequential: float
    sizes: tuple[float, ...]
    depths: tuple[float, ...]
    source: str
    writes_of: str | None = None
    trims: int = 0
    flushes: int = 0

    @property
    def ios(self) -> int:
        return self.reads + self.writes + self.trims + self.flushes


ONE_PASS = "one-pass"  # is made of no statistics (one_pass.py)
TRIM_BYTES = 128 * KiB  # of each trim, at its own place: our choice, as are the shares of trims and flushes

BENCHES = {
    "bench-destroyer-like": Bench(
        38_830_000,
        10_980_000,
        1583.02e9,
        875.62e9,
        67.0,
        (6.0, 26.2, 3.1, 2.4, 1.7, 38.4, 18.0, 4.2),
        (50.0, 21.9, 4.1, 5.7, 8.8, 6.0, 2.1, 1.4),
        'published statistics of AnandTech Storage Bench 2013, "The Destroyer" (rows recalled, not read again)',
    ),
    "bench-heavy-like": Bench(
        2_170_000,
        1_780_000,
        48.63e9,
        106.32e9,
        43.0,
        (7.8, 29.2, 3.5, 10.3, 10.8, 4.1, 21.7, 12.6),
        (63.5, 10.4, 5.1, 5.0, 6.4, 6.0, 3.2, 0.3),
        "published statistics of AnandTech Storage Bench 2011/2015, Heavy (queue depths recalled, not read again)",
    ),
    "bench-light-like": Bench(
        372_630,
        459_709,
        17.97e9,
        23.25e9,
        70.0,
        (6.2, 27.6, 2.4, 8.0, 6.5, 4.8, 26.4, 18.1),
        (73.4, 16.8, 2.6, 2.3, 3.1, 1.5, 0.2, 0.2),
        "published statistics of AnandTech Storage Bench 2011/2015, Light",
    ),
    # JEDEC's client trace (JESD219A: writes, trims and flushes, no reads) is its own and is not distributed
    "jesd219-client-like": Bench(
        0,
        459_709,
        0.0,
        23.25e9,
        70.0,
        (6.2, 27.6, 2.4, 8.0, 6.5, 4.8, 26.4, 18.1),
        (73.4, 16.8, 2.6, 2.3, 3.1, 1.5, 0.2, 0.2),
        "NOT JEDEC's client trace: writes like those of AnandTech Storage Bench, Light, by its published statistics;"
        " one I/O in ten a trim, one in fifty a flush, which is our choice",
        "bench-light-like",
        52_239,
        10_448,
    ),
}
