"""The capacitors of a virtual drive at work: what they take from the rail, cannot save, and say of themselves."""

import pytest
from powercut_host import Host, device

from ssdrig.blockio import nbd_protocol
from ssdrig.virtual.device import smartlog
from ssdrig.virtual.flash.presets import ENTERPRISE_PLP, SATA_TLC

S = 1_000_000_000
FULL_J = 0.5 * 600e-6 * (25**2 - 9**2)


@pytest.fixture
def it():
    made = device(ENTERPRISE_PLP, "sparse")
    yield made
    made.close()


def cycle(it, host: Host, announced: bool = False) -> float:
    """Off and on again, some writes before. Returns what was charged, J."""
    host.now_ns += S
    host.submit(*[(nbd_protocol.WRITE, 128 * i, 128, 0) for i in range(8)])
    host.now_ns += 2_000_000
    if announced:
        host.now_ns = it.shut_down(host.now_ns)
    before = it.drive.ledger()["energy_charge_J"]
    it.power_cut(host.now_ns)
    host.now_ns = it.power_on(host.now_ns + S) + S
    it.advance(host.now_ns)
    return it.drive.ledger()["energy_charge_J"] - before


def test_what_is_missing_after_a_cut_is_drawn_from_the_rail(it):
    host = Host(it)
    assert cycle(it, host) == pytest.approx(FULL_J, rel=1e-6)
    it.reserve.health = 0.6
    assert cycle(it, host) == pytest.approx(0.6 * FULL_J, rel=1e-6)
    assert cycle(it, host, announced=True) < 0.3 * FULL_J  # the cache alone was saved


def test_the_charge_is_part_of_the_power_that_the_meter_sees(it):
    host = Host(it)
    cycle(it, host)
    host.now_ns += S
    it.power_cut(host.now_ns)
    on_ns = host.now_ns + S
    ready_ns = it.power_on(on_ns)
    for t_ns in range(on_ns, ready_ns + S, 20_000_000):
        it.advance(t_ns)
    charged_W = it.energy_J(on_ns + 10_000_000, on_ns + 60_000_000) / 0.05
    quiet_W = it.energy_J(ready_ns + S // 2, ready_ns + S // 2 + 50_000_000) / 0.05
    assert charged_W - quiet_W == pytest.approx(1.5 + ENTERPRISE_PLP.P_active_mW / 1e3, rel=0.01)


def test_log_c0h_says_how_they_are(it):
    host, field = Host(it), lambda at, n: int.from_bytes(smartlog.log_c0h(it.health())[at : at + n], "little")
    cycle(it, host)
    assert (field(128, 2), field(112, 4)) == (100, 0) and it.unsafe_shutdowns == 1
    it.reserve.health = 0.001
    cycle(it, host)
    assert (field(128, 2), field(112, 4)) == (0, 1) and it.unsafe_shutdowns == 2
    assert it.reserve.lost_pages and it.last_cut["pages_lost"] == len(it.reserve.lost_pages)


def test_a_drive_without_capacitors_says_nothing_of_them():
    it = device(SATA_TLC, "sparse")
    page = smartlog.log_c0h(it.health())
    it.close()
    assert it.reserve is None and not any(page[112:116]) and not any(page[128:130])
