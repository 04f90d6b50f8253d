"""Retention bounds: each row of the published tables, profiles, and what wear makes of the bound."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.drive.wear import retention


@pytest.mark.parametrize(
    "storage_C, client_h, client_af, enterprise_h, enterprise_af",
    [
        (20, 219 * 168, 0.238, 210 * 168, 0.0620),
        (25, 105.7 * 168, 0.494, 101 * 168, 0.129),
        (30, 52.1 * 168, 1, 50.0 * 168, 0.261),
        (35, 26.3 * 168, 1.98, 25.3 * 168, 0.516),
        (40, 13.6 * 168, 3.84, 13.0 * 168, 1),
        (50, 26.9 * 24, 13.6, 25.8 * 24, 3.53),
        (52, 507, 17.3, 486, 4.50),
        (55, 14.8 * 24, 24.7, 14.2 * 24, 6.45),
        (66, 100, 87.3, 96.2, 22.8),
        (85, 13.6, 643, 13.1, 168),
    ],
)
def test_the_arrhenius_table(storage_C, client_h, client_af, enterprise_h, enterprise_af):
    assert retention.acceleration(30, storage_C) == pytest.approx(client_af, rel=0.005)
    assert retention.acceleration(40, storage_C) == pytest.approx(enterprise_af, rel=0.005)
    assert retention.bound_hours("client", storage_C) == pytest.approx(client_h, rel=0.005)
    assert retention.bound_hours("enterprise", storage_C) == pytest.approx(enterprise_h, rel=0.005)


def test_the_published_bakes_are_the_classes():
    """JESD218's 96 h at 66 C and 500 h at 52 C stand for about a year at 30 C and three months at 40 C."""
    assert retention.equivalent_hours([(96, 66)], 30) / 24 == pytest.approx(349, abs=1)
    assert retention.equivalent_hours([(500, 52)], 30) / 24 == pytest.approx(360, abs=1)
    assert retention.equivalent_hours([(96, 66)], 40) / 24 == pytest.approx(91, abs=0.5)


@pytest.mark.parametrize(
    "drive_class, off_C, weeks, longer",
    [
        ("client", 25, 105, 1),  # written at 40 C, as the class is
        ("client", 30, 52, 1),
        ("enterprise", 25, 101, 1),  # written at 55 C, as the class is
        ("enterprise", 25, 20, 5),  # written at 40 C: row and formula must not be made to agree
    ],
)
def test_published_rows_of_the_jedec_tables(drive_class, off_C, weeks, longer):
    assert retention.bound_hours(drive_class, off_C) / 168 == pytest.approx(longer * weeks, rel=0.02)


def test_hours_at_the_classes_own_temperature():
    """A year of 365 days at 30 C, a quarter of it at 40 C."""
    assert retention.bound_hours("client", 30) == 365 * 24 and retention.bound_hours("enterprise", 40) == 365 * 24 / 4


def test_acceleration_halves_about_every_5_degrees():
    for a, b, factor in ((25, 30, 2.03), (30, 35, 1.98), (40, 45, 1.90), (60, 65, 1.76)):
        assert retention.acceleration(a, b) == pytest.approx(factor, abs=0.005)


def test_other_energies():
    """Half the energy, the root of the factor."""
    assert retention.acceleration(30, 66, 0.55) == pytest.approx(retention.acceleration(30, 66) ** 0.5)


def test_profile():
    """12 h at 20 and 12 h at 40 C are 35.2 C, not 30."""
    profile = [(12, 20), (12, 40)]
    assert retention.effective_temperature(profile) == pytest.approx(35.2, abs=0.05)
    assert retention.equivalent_hours(profile, 40) == pytest.approx(12 + 12 * 0.0620, rel=0.001)
    assert retention.effective_temperature([(0.5, 20)]) == pytest.approx(20)
    assert retention.effective_temperature([(0, 70), (1, 20)]) == pytest.approx(20)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(0.1, 1e5), st.floats(-40, 125)), min_size=1, max_size=6))
def test_the_effective_temperature_costs_what_the_profile_costs(profile):
    effective = retention.effective_temperature(profile)
    hours = sum(h for h, _ in profile)
    assert min(t for _, t in profile) - 1e-6 <= effective <= max(t for _, t in profile) + 1e-6
    assert sum(h * t for h, t in profile) / hours <= effective + 1e-6
    assert retention.equivalent_hours(profile, 30) == pytest.approx(
        hours * retention.acceleration(30, effective), rel=1e-6
    )


@settings(max_examples=100)
@given(st.sampled_from(["client", "enterprise"]), st.floats(-40, 120), st.floats(0.01, 5), st.floats(0.3, 1.5))
def test_warmer_is_shorter(drive_class, storage_C, step, ea_eV):
    assert retention.bound_hours(drive_class, storage_C + step, ea_eV) < retention.bound_hours(
        drive_class, storage_C, ea_eV
    )


@pytest.mark.parametrize(
    "drive_class, wear, state, hours, words",
    [
        (
            "client",
            16,
            "holds",
            8760,
            "Without power at 30 °C: at least 12 months when worn out (JESD218 client class).",
        ),
        ("client", 100, "holds", 8760, "when worn out"),
        (
            "client",
            101,
            "void",
            None,
            "No retention bound: 101 % of the rated endurance is used, the standard ends at 100 %.",
        ),
        ("client", None, "wear not known", 8760, "The drive's wear is unknown: above 100 % the bound is void."),
        (None, 3, "class not known", None, "--class"),
        ("server", 3, "class not known", None, "No retention bound"),
    ],
)
def test_wear_and_the_bound(drive_class, wear, state, hours, words):
    got = retention.bound(drive_class, wear, 30)
    assert (got["state"], got["hours"]) == (state, hours) and words in got["words"]
    assert (got["explanation"] is None) == (hours is None)


def test_the_explanation_says_what_was_converted():
    assert "1.1 eV" in retention.bound("client", 3, 25)["explanation"]
    assert "eV" not in retention.bound("client", 3, 30)["explanation"]


def test_unpowered_time_is_calendar_less_power_on_hours():
    """Ten days, 100 power-on hours: 140 h without power, and one more that the counter may have rounded away."""
    before, after = (
        {"utc_ns": 10**18, "power_on_hours": 500},
        {"utc_ns": 10**18 + 240 * 3600 * 10**9, "power_on_hours": 600},
    )
    assert retention.unpowered_hours(before, after) == 141
    assert retention.unpowered_hours(before, before) == 1
    assert retention.unpowered_hours(before, after | {"power_on_hours": 900}) == 0
    for gap in ({"power_on_hours": None}, {"utc_ns": None}, {"power_on_hours": 499}, {"utc_ns": 10**18 - 1}):
        assert retention.unpowered_hours(before, after | gap) is None
