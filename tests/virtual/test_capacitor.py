"""The capacitors of a virtual drive against the closed form."""

from math import sqrt

import pytest

from ssdrig.virtual.flash import capacitor
from ssdrig.virtual.flash.capacitor import Bank, Work
from ssdrig.virtual.flash.presets import PRESETS

BANK = Bank(1e-3, 32.0, 10.0, 2.0)
WORK = Work(16, 1.3e-3, 1.6, 0.11)
ALL_J = 0.5e-3 * (32.0**2 - 10.0**2)  # 0.462


def test_energy_is_that_of_the_closed_form():
    assert capacitor.energy_J(BANK, 1, 32) == pytest.approx(ALL_J)
    assert capacitor.energy_J(BANK, 0.6, 32) == pytest.approx(0.6 * ALL_J)
    assert capacitor.energy_J(BANK, 1, 10) == capacitor.energy_J(BANK, 1, 3) == capacitor.energy_J(BANK, 0, 32) == 0


@pytest.mark.parametrize("units", [0, 1, 16, 17, 256])
def test_what_a_dump_uses_is_missing_from_the_voltage(units):
    dump = capacitor.dump(BANK, WORK, 1, 32, units)
    rounds = -(-units // 16)
    assert dump.units == units
    assert dump.used_J == pytest.approx(rounds * 1.6 * 1.3e-3 + units * 0.11 * 1.3e-3)
    assert dump.used_J == pytest.approx(0.5e-3 * (32**2 - dump.volts**2))
    assert dump.took_s == pytest.approx(rounds * 1.3e-3)


def test_capacitors_that_have_aged_save_a_part():
    round_J = (1.6 + 16 * 0.11) * 1.3e-3
    three = 3.2 * round_J / ALL_J  # the rest of a fourth round does not pay for the controller
    dump = capacitor.dump(BANK, WORK, three, 32, 256)
    assert dump.units == 48 and dump.volts >= 10
    some = (2 + (1.6 + 5.5 * 0.11) / (1.6 + 16 * 0.11)) * round_J / ALL_J  # five dies of a third round
    assert capacitor.dump(BANK, WORK, some, 32, 256).units == 37
    assert capacitor.dump(BANK, WORK, 0, 32, 256) == (0, 0, 32, 0)


def test_what_is_missing_is_charged():
    assert capacitor.missing_J(BANK, 1, 10) == pytest.approx(ALL_J)
    assert capacitor.missing_J(BANK, 1, 0) == pytest.approx(ALL_J)  # they do not fall below the least
    assert capacitor.missing_J(BANK, 0.6, 10) == pytest.approx(0.6 * ALL_J)
    assert capacitor.missing_J(BANK, 1, 32) == 0
    assert capacitor.charged_V(BANK, 1, 10, ALL_J / 2) == pytest.approx(32)
    half = capacitor.charged_V(BANK, 1, 10, ALL_J / 4)
    assert half == pytest.approx(sqrt((32**2 + 10**2) / 2))
    assert capacitor.missing_J(BANK, 1, half) == pytest.approx(ALL_J / 2)
    assert capacitor.charged_V(BANK, 1, 10, 1e9) == 32 and capacitor.charged_V(BANK, 0, 10, 0) == 32


def test_each_drive_with_protection_can_save_a_full_cache():
    for preset in PRESETS.values():
        bank_ = capacitor.of(preset)
        assert (bank_ is None) == (not preset.plp)
        if bank_:
            bank, work = bank_
            units = -(-preset.cache_bytes // 4096 // preset.program_pages) + preset.dies  # and the programs under way
            saved = capacitor.dump(bank, work, 1, bank.full_V, units)
            assert saved.units == units and saved.used_J < 0.6 * capacitor.energy_J(bank, 1, bank.full_V)
