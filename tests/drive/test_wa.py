"""Write amplification: worked numbers, the worst case of its error, and counters that must not be believed."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ssdrig.drive.wear import wa

MIB, GIB, GB = 1 << 20, 1 << 30, 10**9


def snap(host, nand, *, t_ns=0, took_ns=0, host_unit=512_000, nand_unit=1, source="log C0h", **more) -> dict:
    return {
        "host_written_bytes": host,
        "nand_written_bytes": nand,
        "host_written_unit_bytes": host_unit,
        "nand_written_unit_bytes": nand_unit,
        "nand_written_source": source,
        "host_written_source": "log 02h",
        "t_ns": t_ns,
        "t_start_ns": t_ns - took_ns // 2,
        "t_end_ns": t_ns + took_ns - took_ns // 2,
        **more,
    }


def micron(host_pages, nand_pages, host=None) -> dict:
    return snap(
        host,
        None,
        host_unit=512,
        nand_unit=None,
        source=None,
        host_program_pages=host_pages,
        nand_program_pages=nand_pages,
    )


def test_worked_numbers():
    """1000 host units of 512 000 B, three times that on NAND: 3 +- 1/999 of it."""
    got = wa.between(snap(0, 7), snap(512_000_000, 7 + 1_536_000_000))
    assert got.value == 3 and got.why is None and got.flags == () and got.source == "log C0h / log 02h"
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
    [
        (1, 512_000, (0.01, 0.01, 0.01)),
        (32 * MIB, 32 * MIB, (1.34, 0.89, 0.74)),
        (GIB, 512, (21.5, 7.2, 2.1)),
        (GIB, 32 * MIB, (22.2, 7.8, 2.8)),
        (GB, GB, (40, 26.7, 22)),
        (GIB, GIB, (43, 28.6, 23.6)),
    ],
)
def test_host_bytes_for_5_percent_by_counter(nand_unit, host_unit, gigabytes):
    """The table of first-order figures (u_N/WA + u_H)/eps; ours are up to eps longer, because the bound here is
    exact."""
    for value, want in zip((1, 3, 10), gigabytes, strict=True):
        assert wa.host_bytes_for(value, 0.05, nand_unit, host_unit) / GB == pytest.approx(want, rel=0.06, abs=0.006)


@given(
    st.integers(5, 10**6),
    st.integers(5, 10**6),
    st.sampled_from([1, 512_000, 32 * MIB, GIB]),
    st.sampled_from([512, 512_000, GIB]),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1, exclude_max=True),
    st.booleans(),
    st.booleans(),
)
def test_the_truth_is_inside_the_error(host_counts, nand_counts, nand_unit, host_unit, a, b, more_host, more_nand):
    """Each difference may be off by up to one unit, either way; what is too coarse is refused and says so."""
    got = wa.between(
        snap(0, 0, host_unit=host_unit, nand_unit=nand_unit),
        snap(host_counts * host_unit, nand_counts * nand_unit, host_unit=host_unit, nand_unit=nand_unit),
    )
    if got.value is None:
        assert (1 / nand_counts + 1 / host_counts) / (1 - 1 / host_counts) > wa.COARSEST * (1 - 1e-9)
        assert "the error would be over 20%" in got.why and got.missing_bytes_5_percent >= 0
        return
    host = got.host_bytes + (a if more_host else -a) * host_unit
    nand = got.nand_bytes + (b if more_nand else -b) * nand_unit
    assert abs(nand / host - got.value) <= got.error * (1 + 1e-9)


@given(
    st.floats(1, 20),
    st.sampled_from([0.02, 0.05]),
    st.sampled_from([1, MIB, GIB]),
    st.sampled_from([512, 512_000, GIB]),
)
def test_that_many_bytes_are_enough(value, eps, nand_unit, host_unit):
    host = int(wa.host_bytes_for(value, eps, nand_unit, host_unit)) + host_unit
    got = wa.between(
        snap(0, 0, host_unit=host_unit, nand_unit=nand_unit),
        snap(host, round(host * value), host_unit=host_unit, nand_unit=nand_unit),
    )
    assert got.relative_error <= eps * 1.001
    assert (got.missing_bytes_2_percent if eps == 0.02 else got.missing_bytes_5_percent) == 0


@pytest.mark.parametrize(
    "after, why, flags",
    [
        (snap(2 * GB, 1 * GB), "the NAND counter did not move", ("nand_did_not_move",)),
        (snap(2 * GB, 1 * GB - 1), "the NAND counter went back by 1 bytes", ("nand_went_back",)),
        (snap(1 * GB, 3 * GB), "the host counter did not move", ("host_did_not_move",)),
        (snap(0, 3 * GB), "the host counter went back", ("host_went_back",)),
        (snap(0, 0), "the NAND counter went back", ("nand_went_back", "host_went_back")),
        (snap(2 * GB, None), "no NAND counter", ()),
        (snap(None, 2 * GB), "no host counter", ()),
        (snap(2 * GB, 3 * GB, source="log 09h"), "two kinds, log C0h in units of 1 bytes and log 09h", ()),
        (snap(2 * GB, 3 * GB, nand_unit=None), "two kinds", ()),
    ],
)
def test_counters_that_must_not_be_believed(after, why, flags):
    got = wa.between(snap(1 * GB, 1 * GB), after)
    assert why in got.why and got.flags == flags
    assert got.value is None and got.error is None and got.relative_error is None


def test_a_unit_that_is_not_known_gives_no_figure():
    got = wa.between(snap(1 * GB, 1 * GB, nand_unit=None), snap(9 * GB, 9 * GB, nand_unit=None))
    assert got.value is None and got.why == "the unit of the NAND counter is not known"


def test_two_drives_are_not_one():
    got = wa.between(snap(0, 0, serial="A"), snap(GB, GB, serial="B"))
    assert got.value is None and got.why == "the snapshots belong to two drives, A and B"


def test_too_coarse_is_refused_and_says_how_much_more():
    """4 host units: e_H = 1/4, over 20 %. At WA 1: (1/1 + 512000 x 1.05)/0.05 = 10 752 020 B in all."""
    got = wa.between(snap(GB, GB), snap(GB + 4 * 512_000, 3 * GB))
    assert (
        got.value is None
        and got.why == "the host counter moved by only 4 of its units of 512000 bytes: the error would be over 20%"
    )
    assert got.missing_bytes_5_percent == 10_752_020 - 4 * 512_000
    assert "the host has to write at most 8.70 MB more for ±5 %" in wa.words(got)
    nand = wa.between(snap(0, 0, nand_unit=GIB), snap(2 * GIB, 4 * GIB, nand_unit=GIB))
    assert nand.value is None and "the NAND counter moved by only 4 of its units of 1073741824 bytes" in nand.why
    one = wa.between(snap(0, 0), snap(512_000, 10**9))  # a host difference of one unit bounds nothing
    assert one.value is None and one.missing_bytes_5_percent == 10_752_020 - 512_000


def test_a_nand_counter_that_stands_still_says_how_much_is_missing():
    """1 GiB NAND, 512 B host units, 3 GiB written: at WA 1 5 % takes 20 GiB + 10.752 kB."""
    got = wa.between(snap(0, GIB, host_unit=512, nand_unit=GIB), snap(3 * GIB, GIB, host_unit=512, nand_unit=GIB))
    assert got.value is None and got.missing_bytes_5_percent == 17 * GIB + 10752


@pytest.mark.parametrize(
    "name, wrap, before, after, delta",
    [("host", 2**32 * 512, 2**32 * 512 - GB, GB, 2 * GB), ("nand", 2**32 * 512, 2**32 * 512 - GB, 3 * GB, 4 * GB)],
)
def test_a_counter_that_wrapped_is_corrected(name, wrap, before, after, delta):
    host, nand = ((before, after), (GB, 4 * GB)) if name == "host" else ((GB, 3 * GB), (before, after))
    made = [snap(h, n, **{f"{name}_written_wrap_bytes": wrap}) for h, n in zip(host, nand, strict=True)]
    got = wa.between(*made)
    assert got.flags == (f"{name}_wrapped",) and getattr(got, f"{name}_bytes") == delta
    assert got.value == (3 / 2 if name == "host" else 4 / 2)
    reset = wa.between(
        snap(*((wrap // 4, GB) if name == "host" else (GB, wrap // 4)), **{f"{name}_written_wrap_bytes": wrap}), made[1]
    )
    assert reset.value is None and f"{name}_went_back" in reset.flags  # far from its end: not a wrap


def test_pages_are_a_ratio_without_their_size():
    """Micron 247/248: F7 1 000 000 pages of the host, F8 500 000 of the drive: (F7 + F8)/F7 = 1.5, and the error is two
    pages'."""
    got = wa.between(micron(10, 20, 0), micron(1_000_010, 1_500_020, 16 * GB))
    assert got.value == 1.5 and got.nand_bytes is None and got.host_bytes == 16 * GB
    assert got.relative_error == pytest.approx(1e-6 + 1 / 1.5e6, rel=1e-4)
    # 4 pages of 16 KiB; 5 % at WA 1 takes (1 + 1.05)/0.05 = 41 pages
    few = wa.between(micron(0, 0, 0), micron(4, 8, 4 * 16384))
    assert few.value is None and "4 of its pages" in few.why and few.missing_bytes_5_percent == 37 * 16384
    still = wa.between(micron(5, 9), micron(5, 9))
    assert still.why == "the host page counter did not move" and still.flags == ("host_did_not_move",)
    assert wa.between(micron(5, 9), micron(7, 8)).flags == ("nand_went_back",)


def test_the_hosts_own_count_replaces_a_coarse_one():
    """The drive counts GiB; it says 10 GiB, the host 10.4 GiB: they agree, and the host's is exact."""
    made = snap(0, 0, host_unit=GIB, nand_unit=MIB), snap(10 * GIB, 26 * GIB, host_unit=GIB, nand_unit=MIB)
    known = round(10.4 * GIB)
    got = wa.between(*made, host_bytes_known=known)
    assert got.value == pytest.approx(2.5) and got.host_bytes == known and got.flags == ("host_counted",)
    assert got.relative_error == pytest.approx(1 / (26 * 1024) + 512 / known, rel=1e-3)
    assert got.source == "log C0h / the host" and wa.between(*made).relative_error > 0.1
    off = wa.between(*made, host_bytes_known=9 * GIB - 512)  # more than one unit away: the drive counts something else
    assert off.value == 2.6 and off.flags == ("host_differs",)
    none = wa.between(snap(None, 0), snap(None, 3 * GB), host_bytes_known=GB)
    assert none.value == 3 and none.flags == ("host_counted",)
    slow = wa.between(snap(GIB, 0, host_unit=GIB), snap(GIB, GIB, host_unit=GIB), host_bytes_known=GIB // 2)
    assert slow.value == 2 and slow.flags == ("host_counted",)  # has not counted one yet, which half a GiB explains
    back = wa.between(snap(GIB, 0, host_unit=GIB), snap(0, GIB, host_unit=GIB), host_bytes_known=GIB // 2)
    assert back.value is None and "went back" in back.why


def test_slc_writes_are_told_apart_only_if_the_drive_does():
    """WD 233 + 234: 30 GiB to TLC and 10 GiB to SLC for 10 GiB of the host are 4, or 3 without the cache."""
    both = dict(host_unit=MIB, nand_unit=MIB)
    got = wa.between(
        snap(0, 0, nand_written_tlc_bytes=0, **both), snap(10 * GIB, 40 * GIB, nand_written_tlc_bytes=30 * GIB, **both)
    )
    assert (got.value, got.tlc_only) == (4, 3) and "; 3.00 without the SLC cache's writes" in wa.words(got)
    assert (
        wa.between(snap(0, 0, **both), snap(10 * GIB, 40 * GIB, nand_written_tlc_bytes=30 * GIB, **both)).tlc_only
        is None
    )


def test_below_one_is_said():
    got = wa.between(snap(0, 0), snap(100 * GB, 50 * GB))
    assert (
        got.value == 0.5 and got.flags == ("below_one",) and "the drive compresses, or a unit is wrong" in wa.words(got)
    )
    assert wa.between(snap(0, 0), snap(512_000_000, 511_900_000)).flags == ()  # within the error of one


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


def test_during_refuses_polls_that_took_too_much_of_the_time():
    """Two polls of 150 ms, 1 s apart: 30 % of the time."""
    ((_, got),) = wa.during([snap(0, 0, t_ns=0, took_ns=15 * 10**7), snap(GB, 2 * GB, t_ns=10**9, took_ns=15 * 10**7)])
    assert got.value is None and "took 300 ms" in got.why


def test_settled_shows_background_work():
    """Run: 10 GB host, 15 GB NAND; then 5 GB of garbage collection, equal from the second late poll on: 1.5 and 2.0."""
    later = [snap(10 * GB, n * GB) for n in (18, 20, 20)]
    got = wa.settled(snap(0, 0), snap(10 * GB, 15 * GB), later)
    assert (got.run.value, got.with_background.value) == (1.5, 2.0)
    assert (got.poll, got.background_bytes, got.settled, got.flags) == (1, 5 * GB, True, ())


def test_one_count_of_the_host_more_is_no_write_while_the_drive_settles():
    for more, flags in ((512_000, ()), (512_001, ("host_wrote",))):
        assert wa.settled(snap(0, 0), snap(10 * GB, 15 * GB), [snap(10 * GB + more, 17 * GB)] * 2).flags == flags


def test_settled_needs_two_equal_polls():
    got = wa.settled(snap(0, 0), snap(10 * GB, 15 * GB), [snap(10 * GB, 17 * GB), snap(10 * GB, 18 * GB)])
    assert (got.with_background.value, got.poll, got.settled, got.flags) == (1.8, 1, False, ("still_moving",))
    none = wa.settled(snap(0, 0), snap(10 * GB, 15 * GB), [])
    assert none.with_background == none.run and none.poll is None and not none.settled
    unknown = wa.settled(snap(0, None), snap(GB, None), [snap(GB, None), snap(GB, None)])
    assert not unknown.settled and unknown.background_bytes is None  # two unknowns are not equal


def test_settled_sees_a_counter_that_is_updated_in_batches():
    """The counter stands at 0 through the run and jumps to 15 GB a minute later."""
    later = [snap(10 * GB, 15 * GB), snap(10 * GB, 15 * GB)]
    got = wa.settled(snap(0, 0), snap(10 * GB, 0), later)
    assert got.run.value is None and got.with_background.value == 1.5
    assert got.flags == ("nand_batched",) and got.settled and got.poll == 0
    one = wa.settled(snap(0, 0, nand_unit=GIB), snap(GIB, 0, nand_unit=GIB), [snap(GIB, GIB, nand_unit=GIB)] * 2)
    assert one.flags == ()  # one count more is what a counter of whole GiB does
    pages = wa.settled(micron(0, 0, 0), micron(0, 0, GB), [micron(10**5, 2 * 10**5, GB)] * 2)
    assert pages.flags == () and pages.with_background.value == 2  # the host's pages stood still too
    pages = wa.settled(micron(0, 0, 0), micron(10**5, 0, GB), [micron(10**5, 2 * 10**5, GB)] * 2)
    assert pages.flags == ("nand_batched",)


def test_settled_sees_a_host_that_still_writes():
    got = wa.settled(snap(0, 0), snap(10 * GB, 15 * GB), [snap(11 * GB, 17 * GB)] * 2)
    assert got.flags == ("host_wrote",) and not got.settled


# --- flexible data placement: log 22h has a host counter of its own


def fdp(host, nand, fdp_host, **more):
    return snap(host, nand, source="log 22h", fdp_host_written_bytes=fdp_host, **more)


def test_media_bytes_of_log_22h_are_held_against_its_own_host_bytes():
    """HBMW + 4 000 000 B, MBMW + 6 000 000 B: 1.5, to the byte; log 02h, with another group's writes in it, says 512
    MB."""
    got = wa.between(fdp(10 * GB, 100, 40), fdp(10 * GB + 512_000_000, 6_000_100, 4_000_040))
    assert (got.value, got.host_bytes, got.nand_bytes, got.source, got.flags) == (
        1.5,
        4_000_000,
        6_000_000,
        "log 22h / log 22h",
        (),
    )
    assert got.relative_error == pytest.approx(1 / 6e6 + 1 / 4e6, rel=1e-5)


def test_without_its_own_host_bytes_log_22h_is_held_against_log_02h():
    for first, last in ((None, 4_000_000), (0, None)):
        got = wa.between(fdp(0, 0, first), fdp(512_000_000, 768_000_000, last))
        assert (got.value, got.host_bytes, got.source) == (1.5, 512_000_000, "log 22h / log 02h")


def test_other_nand_counters_are_not_held_against_log_22hs_host_bytes():
    """OCP's C0h counts the whole drive, as log 02h does."""
    got = wa.between(
        snap(0, 0, fdp_host_written_bytes=0), snap(512_000_000, 768_000_000, fdp_host_written_bytes=4_000_000)
    )
    assert (got.value, got.source) == (1.5, "log C0h / log 02h")


def test_placement_that_was_switched_on_or_off_meanwhile_gives_no_figure():
    """It clears both counters (Base Specification 2.1, figure 286)."""
    got = wa.between(fdp(0, 6_000_000, 4_000_000), fdp(512_000_000, 100, 50))
    assert (
        got.value is None and "NAND counter went back" in got.why and got.flags == ("nand_went_back", "host_went_back")
    )
    got = wa.between(snap(0, 0), fdp(512_000_000, 100, 50))
    assert got.value is None and "two kinds" in got.why


def test_the_hosts_own_count_and_log_22hs_agree_to_the_byte():
    got = wa.between(fdp(0, 0, 0), fdp(512_000, 6_000_000, 4_000_000), host_bytes_known=4_000_000)
    assert got.value == 1.5 and got.flags == ()
    assert wa.between(fdp(0, 0, 0), fdp(512_000, 6_000_000, 4_000_000), host_bytes_known=3_999_000).flags == (
        "host_differs",
    )


def test_words():
    got = wa.between(snap(0, 0), snap(512_000_000, 936_960_000))  # 1.83, +- 0.1 %
    assert wa.words(got) == "1.8300 ± 0.0019 over 512 MB written by the host"
    coarse = wa.between(
        snap(0, 0, host_unit=GIB, nand_unit=GIB), snap(10 * GIB, 30 * GIB, host_unit=GIB, nand_unit=GIB)
    )
    assert wa.words(coarse) == "3.00 ± 0.45 over 10.7 GB written by the host; 19.0 GB more for ±5 %"
    assert wa.words(wa.between(snap(0, None), snap(1, None))) == "not known: the drive has no NAND counter"


ANY = st.none() | st.integers(-(2**70), 2**70)


@settings(max_examples=200)
# a reading below 0 is no counter that has wrapped: it was taken for one, and divided by
@example([(None, 0, None, None, None), (None, -1, None, None, 1)], 1, 513)
@example([(None, 0, None, None, None), (None, -2, None, None, 1)], 1, 513)
@given(st.lists(st.tuples(ANY, ANY, ANY, ANY, ANY), min_size=2, max_size=2), st.sampled_from([None, 1, 512, GIB]), ANY)
def test_no_pair_of_snapshots_raises(values, unit, known):
    """Whatever the counters say: a figure with an error, or a reason, and words for both."""
    made = [
        snap(
            h,
            n,
            host_unit=unit,
            nand_unit=unit,
            host_program_pages=hp,
            nand_program_pages=np_,
            nand_written_wrap_bytes=w and abs(w),
        )
        for h, n, hp, np_, w in values
    ]
    got = wa.between(*made, host_bytes_known=known and abs(known))
    assert (got.value is None) == (got.why is not None) and set(got.flags) <= set(wa.FLAGS)
    assert got.value is None or (got.value > 0 and 0 < got.relative_error <= wa.COARSEST)
    assert wa.words(got) and wa.words(wa.settled(made[0], made[1], made).with_background)
