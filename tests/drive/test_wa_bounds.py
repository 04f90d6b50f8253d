"""Write amplification at its bounds: the last value that counts and the first that does not, with round numbers."""

import pytest
from test_wa import GB, GIB, micron, snap

from ssdrig.drive.wear import wa


def exact(host, nand, **more) -> dict:
    """A snapshot whose counters have no rounding error."""
    return snap(host, nand, host_unit=0, nand_unit=0, **more)


@pytest.mark.parametrize(
    "nand_unit, relative_error",
    [(1, 0.2), (1.001, None)],  # of 5 NAND bytes: 20 % still counts
)
def test_an_error_of_a_fifth_still_counts(nand_unit, relative_error):
    units = dict(host_unit=0, nand_unit=nand_unit)
    assert wa.between(snap(0, 0, **units), snap(10, 5, **units)).relative_error == relative_error


@pytest.mark.parametrize("took_ns, relative_error", [(200, 0.2), (202, None)])
def test_polls_that_take_a_fifth_of_the_time_still_count(took_ns, relative_error):
    """The first poll's own time counts, whether or not the second takes any."""
    ((_, got),) = wa.during([exact(0, 0, t_ns=1000, took_ns=took_ns), exact(10, 20, t_ns=2000)])
    assert got.relative_error == relative_error and (got.value == 2) == (relative_error is not None)


@pytest.mark.parametrize("nand, flags", [(99, ("below_one",)), (100, ())])
def test_a_write_amplification_of_one_is_not_below_one(nand, flags):
    assert wa.between(exact(0, 0), exact(100, nand)).flags == flags


@pytest.mark.parametrize(
    "host, host_unit, known, flags, host_bytes",
    [
        (0, GIB, GIB + 1, ("host_did_not_move", "host_differs"), 0),
        (0, GIB, GIB, ("host_counted",), GIB),  # one unit may not have been counted yet
        (0, GIB, 1, ("host_counted",), 1),
        (0, GIB, 0, ("host_did_not_move",), 0),
        (10 * 512, 512, 10 * 512, (), 10 * 512),  # the drive's own unit is as fine as the host's
        (10 * 513, 513, 10 * 513 - 1, ("host_counted",), 10 * 513 - 1),
    ],
)
def test_which_count_of_the_host_is_taken(host, host_unit, known, flags, host_bytes):
    units = dict(host_unit=host_unit, nand_unit=1)
    got = wa.between(snap(0, 0, **units), snap(host, 3 * GB, **units), host_bytes_known=known)
    assert (got.flags, got.host_bytes) == (flags, host_bytes)


def test_the_hosts_own_count_is_good_to_a_sector():
    """e_N = 1/20480, e_H = 512/10240 = 0.05: (e_N + e_H) / 0.95."""
    units = dict(host_unit=GIB, nand_unit=1)
    got = wa.between(snap(0, 0, **units), snap(0, 20480, **units), host_bytes_known=10240)
    assert got.relative_error == pytest.approx((1 / 20480 + 0.05) / 0.95, rel=1e-9)


@pytest.mark.parametrize(
    "before, after, wrap, flag, host_bytes",
    [
        (999, 100, 1000, "host_wrapped", 101),
        (700, 199, 1000, "host_wrapped", 499),
        (700, 200, 1000, "host_went_back", -500),  # half of the range: a reset is as likely
        (700, 100, 1000, "host_wrapped", 400),
        (1000, 100, 1000, "host_went_back", -900),  # a counter of that range never shows 1000
        (999, 100, None, "host_went_back", -899),
    ],
)
def test_what_counts_as_wrapped(before, after, wrap, flag, host_bytes):
    got = wa.between(exact(before, 0), exact(after, 10**6, host_written_wrap_bytes=wrap))
    assert got.flags == (flag,) and got.host_bytes == host_bytes


def test_a_counter_that_stands_still_has_written_nothing():
    got = wa.between(exact(5, 7), exact(5, 7))
    assert (got.host_bytes, got.nand_bytes) == (0, 0)


@pytest.mark.parametrize("before, after, tlc_only", [(10, 40, 3), (10, 10, 0), (10, 9, None), (None, 9, None)])
def test_writes_without_the_cache_are_a_difference(before, after, tlc_only):
    first, last = (exact(*counts, nand_written_tlc_bytes=tlc) for counts, tlc in (((0, 0), before), ((10, 50), after)))
    assert wa.between(first, last).tlc_only == tlc_only


def test_one_page_is_too_few_but_it_moved():
    got = wa.between(micron(5, 5), micron(6, 13))
    assert got.why.startswith("the host counter moved by only 1 of its pages") and got.flags == ()


@pytest.mark.parametrize("jump, flags", [(1, ()), (2, ("nand_batched",))])
def test_one_page_more_is_no_batch(jump, flags):
    """The NAND pages stand at 1000 through the run; the drive itself may then write one."""
    later = [micron(10**5, 1000 + jump, GB)] * 2
    assert wa.settled(micron(0, 1000, 0), micron(10**5, 1000, GB), later).flags == flags


def test_settled_where_counters_are_missing_or_stand_still():
    run = exact(0, 0), exact(GB, 2 * GB)
    assert wa.settled(*run, [exact(None, 2 * GB)] * 2).flags == ()  # no host counter: nothing says that the host wrote
    assert wa.settled(*run, [exact(GB, 2 * GB)] * 2).background_bytes == 0
    assert wa.settled(*run, [exact(GB, 2 * GB + 1)] * 2).background_bytes == 1
    assert wa.settled(*run, [exact(GB, 2 * GB - 1)] * 2).background_bytes is None  # it was reset
    no_unit = snap(GB + 1, 2 * GB, host_unit=None)
    assert "host_wrote" in wa.settled(*run, [no_unit] * 2).flags


@pytest.mark.parametrize(
    "value, error, text",
    [
        (1.5, 0.0, "1.5000 ± 0.0000"),
        (1.5, 1e-6, "1.5000 ± 0.0001"),  # rounded up, and never more than four places
        (1.5, 0.00123, "1.5000 ± 0.0013"),
        (1.5, 0.0123, "1.500 ± 0.013"),
        (35.0, 1.21, "35.0 ± 1.3"),
        (300.0, 20.5, "300 ± 21"),
        (3000.0, 200.5, "3000 ± 201"),
    ],
)
def test_a_figure_has_two_digits_of_its_error(value, error, text):
    assert wa.figure(value, error) == text


def test_words_of_a_figure_without_error():
    got = wa.between(exact(0, 0), exact(1000, 1500))
    assert wa.words(got) == "1.5000 ± 0.0000 over 1.00 kB written by the host"
