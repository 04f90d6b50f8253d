"""The virtual drive's power states: what its descriptors say, it does, in time and in energy; its temperature."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ssdrig.virtual.device import thermal
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.device.power import APST, HCTM, POWER, pack_apst
from ssdrig.virtual.flash import nand, power_states
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.presets import NVME_TLC, SATA_TLC

MS, S = 1_000_000, 1_000_000_000
READ_NS = 3019  # of a page that was never written: command and link
P0, P3, P4, WORK = 1.25, 0.07, 0.01, 2.55
LINUX = {0: (71, 3), 1: (71, 3), 2: (71, 3), 3: (500, 4)}


@pytest.fixture
def drive():
    drive = VirtualDrive(NVME_TLC, capacity_bytes=1 << 29)
    read(drive, 0)
    return drive


def read(drive, t: int) -> int:
    return int(drive.submit([0], [0], [1], [0], t)[0]) - t


def rest(drive, begin: int, end: int) -> None:
    for t in range(begin, end, 5 * MS):
        drive.advance(t)


def steps(drive, begin_ms: int, end_ms: int) -> list[tuple[float, float]]:
    """(ms, W): where the power changes to a level that lasts, in model time and without the lag of the feed."""
    watts = drive.history[:end_ms] / 1e6
    steps_ = [(begin_ms - 4, round(watts[begin_ms], 3))]
    for ms in range(begin_ms, end_ms - 1):
        if abs(watts[ms] - watts[ms + 1]) < 1e-3 and abs(watts[ms] - steps_[-1][1]) > 2e-3:
            steps_.append((ms - 4, round(watts[ms], 3)))
    return steps_


def test_a_drive_falls_asleep_as_its_table_says_and_the_first_command_pays(drive):
    rest(drive, 0, 4 * S)
    assert steps(drive, 10, 3900) == [(6, P0), (pytest.approx(1000.21, abs=1), P3), (pytest.approx(3002.21, abs=1), P4)]
    assert drive.power_state(2 * S) == 3 and drive.power_state(4 * S) == 4
    before = drive.ledger()
    assert read(drive, 4 * S) == 8 * MS + READ_NS  # EXLAT of PS4
    assert drive.power_state(4 * S) == 0
    rest(drive, 4 * S, 6 * S)
    assert steps(drive, 3900, 5900)[1:3] == [(4000, WORK), (pytest.approx(4008, abs=1), P0)]
    # one wake: P_active x EXLAT beside the read's own controller time
    work = drive.ledger()["energy_controller_J"] - before["energy_controller_J"]
    assert work == pytest.approx((WORK - P0) * (0.008 + 1.8e-6), rel=1e-3)


def test_the_energy_of_a_sleep_is_that_of_its_levels(drive):
    t = drive.follow(0, LINUX, 7 * S)
    assert t == 7 * S + 8 * MS  # to set a feature wakes it
    rest(drive, t, t + 2 * S)
    expected = 0.071 * P0 + 0.00021 * WORK + 0.5 * P3 + 0.002 * WORK + (1.9 - 0.57321) * P4
    assert drive.energy_between(t + 4 * MS, t + 1904 * MS) == pytest.approx(expected, rel=0.003)
    assert read(drive, t + 2 * S) == 8 * MS + READ_NS
    assert read(drive, t + 2 * S + 20 * MS) == READ_NS
    assert read(drive, t + 2 * S + 110 * MS) == 1200_000 + READ_NS  # PS3, 90 ms after the last


def test_a_command_while_it_enters_a_state_waits_for_that_too(drive):
    drive.follow(0, {0: (100, 4)}, S // 2)
    rest(drive, S // 2, S // 2 + 95 * MS)
    assert read(drive, S // 2 + 100 * MS + MS // 2) == (2000 - 500) * 1000 + 8 * MS + READ_NS


def test_a_host_sends_it_to_sleep_until_the_next_command(drive):
    drive.follow(3, {}, S)
    assert drive.power_state(S) == 3
    rest(drive, S, 3 * S)
    assert steps(drive, 1010, 2900) == [(1006, P3)]  # no transitions: it stays
    assert read(drive, 3 * S) == 1200_000 + READ_NS and drive.power_state(3 * S) == 0
    rest(drive, 3 * S, 6 * S)
    assert steps(drive, 3010, 5900)[-1] == (pytest.approx(4002, abs=2), P3)  # its own transitions hold again


def test_background_work_waits_while_a_host_has_sent_it_to_sleep():
    drive = VirtualDrive(replace(SATA_TLC, idle_gc_share=0.5), capacity_bytes=1 << 28)
    drive.precondition("random", 1.5)
    read(drive, 0)
    drive.follow(1, {}, 10 * MS)
    before = drive.ledger()["nand_idle_gc_bytes"]
    rest(drive, 10 * MS, 2 * S)
    assert drive.ledger()["nand_idle_gc_bytes"] == before
    read(drive, 2 * S)
    rest(drive, 2 * S, 4 * S)
    assert drive.ledger()["nand_idle_gc_bytes"] > before


@pytest.mark.parametrize("state", [1, 2])
def test_an_operational_state_keeps_the_drive_within_its_power(state):
    most_W = NVME_TLC.power_states[state - 1].max_mW / 1000
    drive = VirtualDrive(replace(NVME_TLC, slc_blocks=0), capacity_bytes=1 << 30)
    drive.throttle(power_states.speed(NVME_TLC, round(1000 * most_W)))
    drive.closed_loop(queue_depth=32, t_ns=0, duration_ns=S, npages=192, random=False)
    drawn = drive.energy_between(S // 2, 9 * S // 10) / 0.4
    assert 0.85 * most_W < drawn <= 1.01 * most_W


# --- the device: features, temperature, its own report


def device(preset=NVME_TLC, **how) -> Device:
    ring = np.full((1 << 16, 2), 0xFFFFFFFF, np.uint32)
    ring[:, 1] = 0
    drive = VirtualDrive(replace(preset, time_dilation=1, **how), capacity_bytes=1 << 29)
    return Device(drive.preset, drive, 1 << 29, "crc", 0, ring, latency=True)


def test_features_are_the_drives_and_end_with_its_power():
    it = device()
    assert it.power.get(POWER, 0) == (0, None)
    value, data = it.power.get(APST, 0)
    assert value == 1 and data[:8] == (1000 << 8 | 3 << 3).to_bytes(8, "little")
    it.power.set(APST, 1, pack_apst({0: (20, 4)}), 0)
    assert it.power.get(APST, 0)[1] == pack_apst({0: (20, 4)})
    it.power.set(POWER, 2 | 1 << 5, b"", 0)
    assert it.power.get(POWER, 0)[0] == 2 | 1 << 5 and it.drive.m[nand.K_TPROG] > NVME_TLC.t_PROG_ns
    it.power.set(POWER, 3, b"", 0)
    assert it.power.get(POWER, 0)[0] & 31 == 3 and it.power.operational == 2
    for fid, value, data in (
        (POWER, 5, b""),
        (APST, 1, bytes(8)),
        (APST, 1, pack_apst({0: (20, 2)})),  # operational
        (APST, 1, pack_apst({3: (20, 3)})),
        (HCTM, 340 << 16 | 330, b""),
        (HCTM, 300 << 16, b""),
    ):
        with pytest.raises(ValueError):
            it.power.set(fid, value, data, 0)
    it.power_cut(S)
    it.power_on(S)
    it.advance(3 * S)
    assert it.power.get(POWER, 3 * S)[0] == 0 and it.power.operational == 0
    assert it.power.get(APST, 3 * S)[1] == pack_apst(power_states.default_apst(NVME_TLC))


def test_temperature_is_the_exact_first_order_answer():
    end = thermal.AMBIENT_C + 2.0 * 10.0
    assert thermal.next_temperature_C(25.0, 2.0, 1e9, 10.0, 40.0) == pytest.approx(end)
    assert thermal.next_temperature_C(25.0, 2.0, 40.0, 10.0, 40.0) == pytest.approx(end - 20 * math.exp(-1))
    one, many = thermal.next_temperature_C(60.0, 0.0, 30.0, 10.0, 40.0), 60.0
    for _ in range(30):
        many = thermal.next_temperature_C(many, 0.0, 1.0, 10.0, 40.0)
    assert many == pytest.approx(one)


def test_it_throttles_at_the_thresholds_and_leaves_them_cooler():
    state, seen = thermal.cold(), []
    heat = [8.0] * 120 + [0.5] * 60  # towards 105 C, towards 30 C
    for power_W in heat:
        state = thermal.step(NVME_TLC, state, power_W, 1.0, True, (50.0, None))
        seen.append((state["temperature_C"], state["level"], state["tmt_level"]))
    up = [next(c for c, level, _ in seen if level == number) for number in (1, 2)]
    assert up == [pytest.approx(70, abs=1), pytest.approx(80, abs=1)]
    cooling = seen[120:]
    assert next(c for c, level, _ in cooling if level < 2) == pytest.approx(77, abs=2)
    assert next(c for c, level, _ in cooling if level == 0) == pytest.approx(67, abs=2)
    assert (state["throttled_count"], state["tmt1_count"], state["tmt2_count"]) == (2, 1, 0)
    assert state["tmt1_s"] == sum(tmt for _, _, tmt in seen[:-1])
    # from 25 C to 50 C towards 105 C: closed form
    assert [tmt for _, _, tmt in seen].index(1) == pytest.approx(-40 * math.log((105 - 50) / 80), abs=1)


def test_a_hot_drive_slows_down_and_says_so():
    it = device(K_per_W=60.0, thermal_tau_s=2.0)
    speed = it.drive.m.copy()
    for second in range(1, 20):
        it.advance(second * S)
        it.tick(second * S)
        it.drive.submit([0], [0], [1], [0], second * S)
    assert it.thermal["level"] == 2 and it.health()["throttled_count"] >= 1  # 25 + 60 x 1.25 W
    assert it.drive.m[nand.K_TPROG] == round(NVME_TLC.t_PROG_ns / NVME_TLC.throttle_shares[1])
    assert it.drive.m[nand.K_E_PROG_PJ] == speed[nand.K_E_PROG_PJ]


@pytest.mark.parametrize("says", [1.0, 0.9])
def test_the_drive_reports_what_it_draws_or_what_it_would_like_to(says):
    it = device(energy_report=says, power_states=())
    for second in range(1, 902, 60):
        it.tick(second * S)
    h = it.health()
    drawn = it.drive.energy_between(0, 901 * S)
    assert it.reported_J == pytest.approx(says * drawn, rel=2e-3)
    assert h["energy_Wh"] == math.ceil(it.reported_J / 3600) and h["interval_W"] == pytest.approx(says * P0, rel=1e-3)


def test_interval_power_is_of_the_drives_second_though_the_host_is_late():
    it = device(power_states=())
    it.tick(S)
    for ms in range(2000, 3000, 4):  # it works in the third second
        it.advance(ms * 1_000_000)
        it.drive.submit([1], [16 * ms], [16], [0], ms * 1_000_000)
    it.tick(3 * S + 400_000_000, 3 * S)
    drawn = [it.drive.energy_between(begin * S, (begin + 1) * S) for begin in range(3)]
    assert drawn[2] > 1.01 * drawn[0] and it.reported_J == pytest.approx(sum(drawn), rel=1e-9)
    assert it.health()["interval_W"] == pytest.approx(drawn[2], rel=1e-9)
