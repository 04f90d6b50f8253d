"""Closed forms of write amplification and of the drive's rate and energy."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfcheck import theory
from ssdrig.virtual.flash.presets import PRESETS, SATA_TLC

# alpha, FIFO, greedy NP 64, NP 256, NP 1024 (Desnoyers 2012 and the mean-field recursion, four figures)
TABLE = [
    (1 / 0.93, 7.318, 6.615, 7.124, 7.268),
    (1 / 0.88, 4.348, 4.097, 4.281, 4.331),
    (1 / 0.80, 2.693, 2.599, 2.668, 2.687),
    (1 / 0.72, 1.992, 1.942, 1.979, 1.988),
    (1.07, 7.817, 7.010, 7.597, 7.761),
    (1.28, 2.481, 2.403, 2.461, 2.476),
]


@pytest.mark.parametrize("alpha, fifo, np64, np256, np1024", TABLE)
def test_write_amplification_table(alpha, fifo, np64, np256, np1024):
    assert theory.wa_fifo(alpha) == pytest.approx(fifo, abs=6e-4)
    for block_pages, expected in ((64, np64), (256, np256), (1024, np1024)):
        assert theory.wa_greedy(alpha, block_pages) == pytest.approx(expected, abs=6e-4)


def test_published_value_of_fifo():
    assert theory.wa_fifo(1.3) == pytest.approx(2.364, abs=5e-4)  # 2.36 in Xiang and Kurkoski 2011


@given(st.floats(1.03, 3.0), st.integers(8, 512))
def test_greedy_solves_its_equation_and_beats_fifo(alpha, block_pages):
    wa = theory.wa_greedy(alpha, block_pages)
    victim = block_pages - block_pages / wa  # V = j - f
    j = math.floor(victim) + 1
    f = j - victim
    if j < block_pages and wa > 1:
        harmonic = sum(1 / i for i in range(j + 1, block_pages + 1))
        assert (block_pages - j + f) / (harmonic + f / j) == pytest.approx(block_pages / alpha, rel=1e-6)
    assert 1 <= wa <= theory.wa_fifo(alpha) * (1 + 1e-9)


@given(st.floats(1.01, 4.0))
def test_fifo_solves_its_equation(alpha):
    valid = 1 - 1 / theory.wa_fifo(alpha)
    assert valid == pytest.approx(math.exp(-alpha * (1 - valid)), rel=1e-6)


def test_trim_mix():
    assert theory.in_use_share(0.0) == 1
    assert theory.in_use_share(0.2) == pytest.approx(0.75)
    for share, expected in ((0.05, 4.361), (0.1, 3.061), (0.2, 1.857), (0.3, 1.311)):
        assert theory.wa_greedy_trim(1.0737, 256, share) == pytest.approx(expected, abs=1.5e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.wa_greedy(1.0, 64),
        lambda: theory.wa_fifo(0.9),
        lambda: theory.in_use_share(0.5),
        lambda: theory.in_use_share(-0.1),
    ],
)
def test_what_has_no_steady_state_is_refused(call):
    with pytest.raises(ValueError):
        call()


def test_sata_tlc_rates():
    """393 MB/s of raw program rate; about 12 000 IOPS at WA 7.26 with no firmware overhead, less with it."""
    from dataclasses import replace

    ideal = replace(SATA_TLC, fw_overhead=0.0, cmd_write_ns=1)
    assert 8 * 96 * 1024 / SATA_TLC.t_PROG_ns * 1e3 == pytest.approx(393.2, abs=0.1)
    assert theory.write_iops(ideal, 7.26) == pytest.approx(12_100, rel=0.03)
    assert 3_000 < theory.write_iops(SATA_TLC, 7.26) < 8_000
    assert theory.write_iops(SATA_TLC, 1.0) == pytest.approx(1e9 / SATA_TLC.cmd_write_ns)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_presets_are_whole(preset):
    assert preset.model.startswith("SIMULATED ")
    least = 4096 if preset.rated_pe_cycles > 50 else 512  # one that is worn to its end is small
    assert preset.capacity_bytes * (1 + preset.op) / (preset.block_pages * 4096) >= least  # GC units
    assert preset.cache_bytes // 4096 >= 2 * preset.program_pages
    group = preset.planes * preset.nand_page_bytes // 4096
    assert group & (group - 1) == 0 and preset.block_pages % preset.program_pages == 0
    assert preset.rail_V in (3.3, 5.0, 12.0) and preset.time_dilation >= 1
    assert all(
        0 < share < 1 and volts in (3.3, 5.0, 12.0) and volts != preset.rail_V for _, volts, share in preset.more_rails
    )


def test_energy_rises_with_write_amplification():
    one, three = (theory.nand_energy_per_page_nJ(SATA_TLC, wa) for wa in (1.0, 3.0))
    program = 110 * 2_000_000 / 24 / 1000  # 220 uJ a one-shot program of 24 pages
    assert one == pytest.approx(program + 100 * 5_000_000 / 6144 / 1000 + 80 * 4.096)
    assert 3 * one < three < 3.5 * one
