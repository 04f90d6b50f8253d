"""What a cut did to the drive as a whole, of states that a drive may come back in."""

import random
import struct

import numpy as np
import pytest

from ssdrig.powerloss import boot, health
from ssdrig.powerloss.findings import BY_NAME, CLASSES, OF_DRIVE
from ssdrig.powerloss.health import State, Symptom

WELL = State(
    2.0,
    model="A",
    serial="S1",
    firmware="F",
    capacity_bytes=10**12,
    block_bytes=512,
    writable=True,
    critical_warning=0,
    power_cycles=100,
    unsafe_shutdowns=40,
    power_on_hours=1000,
    data_units_read=7,
    data_units_written=9,
    nand_write_bytes=1 << 40,
    media_errors=3,
    spare_percent=100,
    incomplete_dumps=0,
    capacitor_health=100,
)
CUT = WELL._replace(power_cycles=101, unsafe_shutdowns=41)


def names(after: State, before: State = WELL, **how) -> list[str]:
    return [symptom.name for symptom in health.judge(before, after, **how)]


@pytest.mark.parametrize(
    "changed, how, expected",
    [
        ({}, {"usual_s": 2.0, "limit_s": 20.0}, []),
        ({"model": "SATAFIRM S11", "capacity_bytes": 8 << 20}, {}, ["IDENTITY", "CAPACITY"]),
        ({"block_bytes": 4096}, {}, ["IDENTITY"]),
        ({"model": None, "capacity_bytes": None}, {}, []),
        ({"ready_s": None}, {}, ["MISSING"]),
        ({"ready_s": None}, {"tries": 9}, ["MISSING"]),
        ({"ready_s": None}, {"tries": 10}, ["DEAD"]),
        ({"writable": False}, {}, ["READ_ONLY"]),
        ({"critical_warning": 8}, {}, ["READ_ONLY"]),
        ({"critical_warning": 4}, {}, []),
        ({"ready_s": 20.0}, {"usual_s": 2.0}, []),
        ({"ready_s": 20.1}, {"usual_s": 2.0}, ["SLOW_READY"]),
        ({"ready_s": 20.1}, {}, []),
        ({"ready_s": 20.2}, {"usual_s": 2.0, "stalled_s": 0.1}, ["SLOW_READY"]),
        ({"ready_s": 20.2}, {"usual_s": 2.0, "stalled_s": 0.3}, []),
        ({"ready_s": 20.2}, {"limit_s": 20.0, "stalled_s": 0.1}, ["READY_TOO_LATE"]),
        ({"ready_s": 20.2}, {"limit_s": 20.0, "stalled_s": 0.3}, ["READY_UNSURE"]),
        ({"ready_s": 20.0}, {"limit_s": 20.0, "stalled_s": 20.0}, []),
        ({"ready_s": 20.1}, {"usual_s": 2.0, "limit_s": 20.0}, ["READY_TOO_LATE"]),
        ({"power_on_hours": 999, "data_units_read": 6, "data_units_written": 8}, {}, []),
        ({"power_on_hours": 998}, {}, ["SMART_REGRESS"]),
        ({"data_units_written": 7}, {}, ["SMART_REGRESS"]),
        ({"nand_write_bytes": (1 << 40) - 1}, {}, ["SMART_REGRESS"]),
        ({"nand_write_bytes": 1, "nand_source": "another"}, {}, []),
        ({"unsafe_shutdowns": 39}, {}, ["SMART_REGRESS"]),
        ({"unsafe_shutdowns": 39, "protocol": "NVMe"}, {}, ["SMART_REGRESS"]),
        ({"unsafe_shutdowns": 39, "protocol": "ATA"}, {}, ["SMART_UNSAVED"]),
        ({"nand_write_bytes": 1, "nand_source": None}, {}, ["SMART_REGRESS"]),
        ({"unsafe_shutdowns": 40}, {}, ["SMART_MISCOUNT"]),
        ({"unsafe_shutdowns": 40}, {"unsafe": 0}, []),
        ({"power_cycles": 103}, {"cycles": 3}, []),
        ({"power_cycles": 103}, {}, ["SMART_MISCOUNT"]),
        ({"power_cycles": None, "unsafe_shutdowns": None}, {}, []),
        ({"spare_percent": 99}, {}, ["SPARE_MEDIA"]),
        ({"media_errors": 4}, {}, ["SPARE_MEDIA"]),
        ({"media_errors": 2}, {}, ["SMART_REGRESS"]),
        ({"capacitor_health": 98}, {}, []),
        ({"capacitor_health": 97}, {}, ["PLP_DEGRADED"]),
        ({}, {"cycles": 2, "unsafe": 2, "tries": 2}, ["MISSING", "SMART_MISCOUNT"]),
        ({"power_cycles": 102, "unsafe_shutdowns": 42}, {"cycles": 2, "unsafe": 2, "tries": 2}, ["MISSING"]),
        ({"incomplete_dumps": 1}, {}, ["PLP_DEGRADED"]),
    ],
)
def test_what_a_state_says(changed, how, expected):
    assert names(CUT._replace(**changed), **how) == expected


def test_capacitors_that_lose_a_little_at_each_cut_are_found_and_ones_that_scatter_are_not():
    def symptoms(*percents):
        state, symptoms_ = WELL, []
        for number, percent in enumerate(percents):
            after = CUT._replace(power_cycles=101 + number, unsafe_shutdowns=41 + number, capacitor_health=percent)
            symptoms_ += [(number, symptom.words) for symptom in health.judge(state, after)]
            state = health.compared(state, after)
        return symptoms_

    assert symptoms(100, 99, 98, 99, 100, 98) == symptoms(None, None, 98) == []
    assert symptoms(100, 99, 98, 97, 96, 95, 94, 94) == [
        (3, "capacitor_health 100 is now 97"),
        (6, "capacitor_health 97 is now 94"),
    ]
    assert symptoms(101, 104, 104, None, 101) == [(4, "capacitor_health 104 is now 101")]
    assert health.compared(WELL._replace(capacitor_health=None), CUT) == CUT


def test_a_finding_says_what_was_seen():
    symptoms = health.judge(WELL, CUT._replace(capacity_bytes=8 << 20))
    assert symptoms == [Symptom("CAPACITY", "capacity_bytes 1000000000000 is now 8388608")] and symptoms[0].certain
    assert not health.judge(WELL, State(None))[0].certain


def test_every_class_has_a_name_of_its_own():
    assert len(BY_NAME) == len(CLASSES) + len(OF_DRIVE)


def test_the_usual_time_is_not_made_by_times_that_grow():
    assert health.usual_s([1.0, None]) is None
    assert health.usual_s([2.0, 1.0, None, 3.0]) == 2.0
    assert health.usual_s([1.0] * 10 + [100.0] * 50) == 1.0


def test_health_pages_become_a_state():
    log = bytearray(512)
    log[0], log[3] = 8, 97
    for at, value in ((32, 11), (48, 12), (112, 13), (128, 14), (144, 15), (160, 1 << 70)):
        log[at : at + 16] = value.to_bytes(16, "little")
    cloud = bytearray(512)
    cloud[:16] = (1 << 80).to_bytes(16, "little")
    struct.pack_into("<I", cloud, 112, 2)
    struct.pack_into("<H", cloud, 128, 88)
    state = health.of_pages(1.5, {"model": "A"}, bytes(log), bytes(cloud))
    assert state == State(
        1.5,
        model="A",
        critical_warning=8,
        power_cycles=13,
        unsafe_shutdowns=15,
        power_on_hours=14,
        data_units_read=11,
        data_units_written=12,
        nand_write_bytes=1 << 80,
        media_errors=1 << 70,
        spare_percent=97,
        incomplete_dumps=2,
        capacitor_health=88,
    )
    assert health.of_pages(None, {}) == State(None)


def test_capacitors_that_age_are_seen_in_their_recharge_energy():
    chance = random.Random(1)
    noisy = lambda share: [chance.gauss(0.5 * share(n), 0.03) for n in range(60)]
    judged = lambda recharges: health.capacitors(range(1, len(recharges) + 1), recharges)
    aged = judged(noisy(lambda n: 1 - 0.005 * n))
    assert aged and aged.name == "PLP_DEGRADED" and " % is left" in aged.words
    assert all(judged(noisy(lambda n: 1)) is None for _ in range(300))
    assert judged([0.5, 0.4, 0.3, 0.2]) is None  # too few
    assert judged([0.0] * 60) is None and judged([None] * 60) is None
    assert judged([0.5 - 0.04 * n / 59 for n in range(60)]) is None  # 8 %
    assert judged([0.5] * 30 + [None] * 9 + [0.44] * 30) is not None


def test_the_error_of_the_capacitors_health_is_its_scatter_over_many_campaigns():
    chance = np.random.default_rng(4)
    true = 0.5 * (1 - 0.003 * np.arange(100))
    healths = [boot.health(range(1, 101), true + chance.normal(0, 0.03, 100)) for _ in range(400)]
    stated = float(np.mean([health_.error_percent for health_ in healths]))
    assert np.std([health_.percent[-1] for health_ in healths]) == pytest.approx(stated, rel=0.15)


@pytest.mark.parametrize(
    ("source", "name"), [("log C0h", "SMART_REGRESS"), ("log 09h", "SMART_REGRESS"), ("log CAh", "SMART_UNSAVED")]
)
def test_counter_of_a_makers_own_page_is_promised_by_nobody(source, name):
    before, after = (state._replace(nand_source=source, protocol="NVMe") for state in (WELL, CUT))
    assert names(after._replace(nand_write_bytes=1), before) == [name]
    assert names(after._replace(nand_write_bytes=1, unsafe_shutdowns=39), before)[0] == "SMART_REGRESS"
