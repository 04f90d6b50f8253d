"""Write amplification: worked numbers, the worst case of its error, and counters that must not be believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdrig.drive import wa

MIB, GIB, GB = 1 << 20, 1 << 30, 10**9


def snap(host, nand, *, t_ns=0, took_ns=0, host_unit=512_000, nand_unit=1, source="c0h") -> dict:
    return {"host_written_bytes": host, "nand_written_bytes": nand, "host_unit_bytes": host_unit, "nand_unit_bytes": nand_unit,
            "nand_source": source, "t_ns": t_ns, "t_start_ns": t_ns - took_ns // 2, "t_end_ns": t_ns + took_ns - took_ns // 2}  # fmt: skip


def test_worked_numbers():
    """1000 host units of 512 000 B, three times that on NAND: 3 +- 1/999 of it."""
    got = wa.between(snap(0, 7), snap(512_000_000, 7 + 1_536_000_000))
    assert got.value == 3 and got.why is None
    assert (got.host_bytes, got.nand_bytes) == (512_000_000, 1_536_000_000)
    assert got.relative_error == pytest.approx(1 / 999, rel=1e-5) and got.error == pytest.approx(3 / 999, rel=1e-5)
    assert got.missing_bytes_5_percent == 0 and got.missing_bytes_2_percent == 0


def test_bytes_still_needed():
    """1 GiB counters, 10 GiB host, WA 3: +-13.3 %/0.9; 5 % needs (1/3 + 1.05)/0.05 = 27.7 GiB, 2 % 67.7 GiB."""
    got = wa.between(snap(0, 0, host_unit=GIB, nand_unit=GIB), snap(10 * GIB, 30 * GIB, host_unit=GIB, nand_unit=GIB))
    assert got.relative_error == pytest.approx((1 / 30 + 1 / 10) / 0.9)
    assert got.missing_bytes_5_percent / GIB == pytest.approx(27.6667 - 10, rel=1e-4)
    assert got.missing_bytes_2_percent / GIB == pytest.approx(67.6667 - 10, rel=1e-4)


@pytest.mark.parametrize(
    "nand_unit, host_unit, gigabytes",
    [(1, 512_000, (0.01, 0.01, 0.01)), (32 * MIB, 32 * MIB, (1.34, 0.89, 0.74)), (GIB, 512, (21.5, 7.2, 2.1)),
     (GIB, 32 * MIB, (22.2, 7.8, 2.8)), (GB, GB, (40, 26.7, 22)), (GIB, GIB, (43, 28.6, 23.6))],
)  # fmt: skip
def test_host_bytes_for_5_percent_by_counter(nand_unit, host_unit, gigabytes):
    """The table of first-order figures (u_N/WA + u_H)/eps; ours are up to eps longer, because the bound here is exact."""
    for value, want in zip((1, 3, 10), gigabytes, strict=True):
        assert wa.host_bytes_for(value, 0.05, nand_unit, host_unit) / GB == pytest.approx(want, rel=0.06, abs=0.006)


@given(st.integers(5, 10**6), st.integers(5, 10**6), st.sampled_from([1, 512_000, 32 * MIB, GIB]), st.sampled_from([512, 512_000, GIB]),
       st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True), st.booleans(), st.booleans())  # fmt: skip
def test_the_truth_is_inside_the_error(host_counts, nand_counts, nand_unit, host_unit, a, b, more_host, more_nand):
    """Each difference may be off by up to one unit, either way."""
    got = wa.between(snap(0, 0), snap(host_counts * host_unit, nand_counts * nand_unit, host_unit=host_unit, nand_unit=nand_unit))
    host = got.host_bytes + (a if more_host else -a) * host_unit
    nand = got.nand_bytes + (b if more_nand else -b) * nand_unit
    assert abs(nand / host - got.value) <= got.error * (1 + 1e-9)


@given(st.floats(1, 20), st.sampled_from([0.02, 0.05]), st.sampled_from([1, MIB, GIB]), st.sampled_from([512, 512_000, GIB]))
def test_that_many_bytes_are_enough(value, eps, nand_unit, host_unit):
    host = int(wa.host_bytes_for(value, eps, nand_unit, host_unit)) + host_unit
    got = wa.between(snap(0, 0), snap(host, round(host * value), host_unit=host_unit, nand_unit=nand_unit))
    assert got.relative_error <= eps * 1.001
    assert (got.missing_bytes_2_percent if eps == 0.02 else got.missing_bytes_5_percent) == 0


@pytest.mark.parametrize("after, why", [
    (snap(2 * GB, 1 * GB), "the NAND counter did not move"),
    (snap(2 * GB, 1 * GB - 1), "the NAND counter went back by 1 bytes"),
    (snap(1 * GB, 3 * GB), "the host counter did not move"),
    (snap(0, 3 * GB), "the host counter went back"),
    (snap(1 * GB + 4 * 512_000, 3 * GB), "less than 5 of its units of 512000"),
    (snap(2 * GB, 1 * GB + 4 * GIB, nand_unit=GIB), "less than 5 of its units of 1073741824"),
    (snap(2 * GB, None), "no NAND counter"),
    (snap(None, 2 * GB), "no host counter"),
    (snap(2 * GB, 3 * GB, source="09h"), "two kinds, c0h and 09h"),
])  # fmt: skip
def test_counters_that_must_not_be_believed(after, why):
    got = wa.between(snap(1 * GB, 1 * GB), after)
    assert why in got.why
    assert got.value is None and got.error is None and got.relative_error is None and got.missing_bytes_5_percent is None


def test_five_counts_are_enough():
    assert wa.between(snap(0, 0), snap(5 * 512_000, 10**7)).value == pytest.approx(10**7 / 2_560_000)


def test_during():
    """Cumulative since the first poll, in order of time; a poll that took 10 ms of 1 s adds (10 + 10)/1000."""
    polls = [snap(h * GB, n * GB, t_ns=t * 10**9, took_ns=10**7) for t, h, n in ((3, 3, 7), (1, 1, 1), (2, 2, 3))]
    got = wa.during(polls)
    assert [t for t, _ in got] == [2 * 10**9, 3 * 10**9]
    assert [x.value for _, x in got] == [2, 3]
    assert got[0][1].relative_error == pytest.approx(0.02 + 512_000 / (GB - 512_000) + 1 / GB / 2, rel=1e-4)
    assert got[1][1].relative_error == pytest.approx(0.01 + 512_000 / (2 * GB - 512_000), rel=1e-4)
    assert got[1][1].error == pytest.approx(3 * got[1][1].relative_error)


def test_during_keeps_what_is_invalid():
    polls = [snap(GB, GB, t_ns=1), snap(2 * GB, GB, t_ns=2), snap(3 * GB, 5 * GB, t_ns=3)]
    (_, still), (_, moved) = wa.during(polls)
    assert still.value is None and "did not move" in still.why and moved.value == 2
    assert wa.during([]) == [] and wa.during(polls[:1]) == []
