"""The folder of a recording: sums are exact, seconds are those of the counts, what the kernel lacks is unknown."""

import numpy as np
import pytest

from ssdrig.base.errors import LoadError
from ssdrig.load import recorded

S = 1_000_000_000
T0 = 5_000 * S


def stat(reads=0, read_sectors=0, read_ms=0, writes=0, write_sectors=0, write_ms=0, in_flight=0, discards=0, flushes=0):
    row = dict.fromkeys(recorded.STAT, 0) | {"reads": reads, "read_sectors": read_sectors, "read_ms": read_ms}
    row |= {"writes": writes, "write_sectors": write_sectors, "write_ms": write_ms, "in_flight": in_flight}
    return [*(row | {"discards": discards, "discard_sectors": 8 * discards, "flushes": flushes}).values()]


def folder_of(tmp_path, rows, zones=(), end=""):
    """rows: (seconds since T0, stat, energies)."""
    lines = [recorded.line(T0 + round(at * S), 1000, counts, energies) for at, counts, *energies in rows]
    (tmp_path / recorded.COUNTERS).write_text(recorded.head(zones) + "".join(lines) + end)
    return tmp_path


def test_seconds_are_those_of_the_counts(tmp_path):
    rows = [(n, stat(writes=1000 * n, write_sectors=8000 * n, write_ms=500 * n)) for n in range(5)]
    seconds = recorded.load(folder_of(tmp_path, rows))
    assert seconds.iops.tolist() == [1000] * 4 and seconds.bw_bytes.tolist() == [4_096_000] * 4
    assert seconds.lat_mean_ns.tolist() == [500_000] * 4
    assert (
        seconds.directions == ("write",)
        and not seconds.partial
        and seconds.t_ns.tolist() == [T0 + n * S for n in range(4)]
    )
    assert seconds.totals["ios"] == 4000 and seconds.totals["runtime_ms"] == 4000 and seconds.source == "kernel"


def test_sums_are_exact_whenever_it_was_read(tmp_path):
    rng = np.random.default_rng(1)
    at = np.cumsum(rng.uniform(0.8, 1.3, 60))
    counts = np.cumsum(rng.integers(0, 5000, 60))
    rows = [(t, stat(reads=int(n), read_sectors=8 * int(n), writes=int(n) // 3)) for t, n in zip(at, counts)]
    seconds = recorded.load(folder_of(tmp_path, rows))
    assert seconds.iops.sum() == seconds.totals["ios"] == counts[-1] - counts[0] + counts[-1] // 3 - counts[0] // 3
    assert seconds.bw_bytes.sum() == seconds.totals["bytes"] == 4096 * (counts[-1] - counts[0])
    assert recorded.load(tmp_path, "read").iops.sum() == counts[-1] - counts[0]


def test_late_reading_is_spread_and_noted(tmp_path):
    rows = [(n, stat(writes=100 * n)) for n in (0, 1, 4, 5)]
    seconds = recorded.load(folder_of(tmp_path, rows))
    assert seconds.iops.tolist() == [100] * 5 and len(seconds.notes) == 1


def test_latency_of_few_milliseconds_is_unknown(tmp_path):
    rows = [(n, stat(writes=1000 * n, write_ms=3 * n)) for n in range(4)]
    seconds = recorded.load(folder_of(tmp_path, rows))
    assert not seconds.lat_mean_ns.any() and seconds.totals["lat_sum_ns"] is None
    assert recorded.figures(tmp_path, 1)["write_lat_us"] is None


def test_milliseconds_wrap_at_32_bits(tmp_path):
    rows = [(n, stat(writes=100 * n, write_ms=((1 << 32) - 50 + 100 * n) % (1 << 32))) for n in range(3)]
    assert recorded.load(folder_of(tmp_path, rows)).lat_mean_ns.tolist() == [1_000_000] * 2


def test_kernel_without_discards_does_not_know_them(tmp_path):
    rows = [(n, stat(writes=100 * n)[:11]) for n in range(3)]
    figures = recorded.figures(folder_of(tmp_path, rows), 1)
    assert (figures["discards"], figures["discarded_bytes"], figures["flushes"]) == (None, None, None)
    assert figures["writes"] == 200


def test_figures_of_all(tmp_path):
    rows = [
        (n, stat(100 * n, 800 * n, 50 * n, 10 * n, 80 * n, 40 * n, 3 if n == 1 else 1, 5 * n, 2 * n), 10**6 * n)
        for n in range(5)
    ]
    figures = recorded.figures(folder_of(tmp_path, rows, [("package-0", 10**9)]), 2)
    assert (figures["reads"], figures["read_bytes"], figures["discarded_bytes"], figures["flushes"]) == (
        400,
        1638400,
        81920,
        8,
    )
    assert figures["read_lat_us"] == 250 and figures["write_lat_us"] == 2000  # drive time: half of the host's
    assert figures["queue_mean"] == pytest.approx(0.09) and figures["queue_most"] == 3 and figures["time_s"] == 2
    assert figures["host_energy_J"] == {"package-0": 4.0} and figures["host_power_W"] == {"package-0": 1.0}


def test_energy_of_the_host_wraps_at_its_range(tmp_path):
    rows = [(n, stat(), (900 + 60 * n) % 1000) for n in range(4)]
    figures = recorded.figures(folder_of(tmp_path, rows, [("package-0 b", 1000)]), 1)
    assert figures["host_energy_J"] == {"package-0 b": pytest.approx(180e-6)}


def test_torn_last_line_is_left(tmp_path):
    rows = [(n, stat(writes=n)) for n in range(4)]
    assert len(recorded.read(folder_of(tmp_path, rows, end="5003000,1")).t_ns) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a,b\n1,2\n",
        recorded.head() + recorded.line(1, 1, stat()),
        recorded.head() + recorded.line(2, 1, stat()) + recorded.line(1, 1, stat()),
        recorded.head() + recorded.line(1, 1, stat(writes=5)) + recorded.line(2, 1, stat(writes=4)),
        recorded.head() + recorded.line(1, 1, stat()) + "2,1\n",
        recorded.head() + recorded.line(1, 1, stat()) + recorded.line(2, 1, [1 << 70] * 17),
        recorded.head() + recorded.line(1, 1, []) + recorded.line(2, 1, []),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path, text):
    (tmp_path / recorded.COUNTERS).write_text(text)
    with pytest.raises(LoadError):
        recorded.load(tmp_path)


def test_a_zone_that_cannot_be_read_is_not_there(tmp_path):
    rows = [(n, stat(writes=n), None) for n in range(3)]
    assert recorded.figures(folder_of(tmp_path, rows, [("package-0", 1000)]), 1)["host_energy_J"] == {}


@pytest.mark.parametrize(
    ("energies", "zone"),
    [((200_000_000, 5, 9), ("package-0", 262_143_328_850)), ((1, 2, 3), ("package-0", 0)), ((1, 2, 3), ("a", ""))],
)
def test_a_counter_that_began_anew_or_has_no_range_is_not_there(tmp_path, energies, zone):
    rows = [(n, stat(writes=n), energy) for n, energy in enumerate(energies)]
    assert recorded.figures(folder_of(tmp_path, rows, [zone]), 1)["host_energy_J"] == {}


def test_a_zone_with_a_comma_breaks_no_line(tmp_path):
    rows = [(n, stat(writes=n), n) for n in range(3)]
    assert recorded.figures(folder_of(tmp_path, rows, [("a,b", 1000)]), 1)["host_energy_J"] == {"a b": 2e-6}
