"""Cuts aimed at bursts, in model time: the drive's own power, what a sensor sees of it, the threshold learnt from that,
the firmware's own trigger. A burst of a drive that empties its cache is over before a sensor has seen two samples."""

from typing import NamedTuple

import numpy as np
import pytest
from switchbench import Board, MHz
from test_powerloss_writer import MIB, MS, writer_on

from selfcheck import modeltime, powerloss_aim
from ssdrig.plan.kinds import cut_aims
from ssdrig.powerloss import aim, layout
from ssdrig.powerloss.history import NEVER
from ssdrig.virtual.device.device import Device
from ssdrig.virtual.flash.drive import VirtualDrive
from ssdrig.virtual.flash.feed import BINS
from ssdrig.virtual.flash.presets import SATA_TLC

CUTS = 12
WORK_ns, REST_ns = 150 * MS, 350 * MS
SAMPLE_ns, SEEN_ns = 1_102_000, 1_052_000  # from sample to sample; of it a conversion of the current
LSB_A, NOISE_A = 1e-5, 0.00024
IDLE_A = SATA_TLC.P_idle_mW / 1000 / SATA_TLC.rail_V
MARGIN_ns = 10 * MS  # what the drive does draws power a little later
pytestmark = pytest.mark.slow


class Load(NamedTuple):
    """Three bursts: since when the second pause is, and the energy since begin_ns, J, at each ms."""

    begin_ns: int
    pause_ns: int
    energy_J: np.ndarray

    def mean_W(self, begin_ns, end_ns):
        at_ns = self.begin_ns + np.arange(len(self.energy_J)) * MS
        a, b = (np.interp(t_ns, at_ns, self.energy_J) for t_ns in (begin_ns, end_ns))
        return (b - a) / (np.asarray(end_ns) - begin_ns) * 1e9

    def samples(self, chance) -> tuple[np.ndarray, np.ndarray]:
        """Times, ns, and currents, A."""
        end_ns = np.arange(self.begin_ns + SAMPLE_ns, self.begin_ns + (len(self.energy_J) - 1) * MS, SAMPLE_ns)
        amps = self.mean_W(end_ns - SEEN_ns, end_ns) / SATA_TLC.rail_V
        return end_ns, amps + chance.normal(0, NOISE_A, len(amps))


@pytest.fixture(scope="module")
def loads(tmp_path_factory) -> list[Load]:
    folder, ring = tmp_path_factory.mktemp("loads"), np.full((BINS, 2), 0xFFFFFFFF, np.uint32)
    drive = VirtualDrive(SATA_TLC, capacity_bytes=256 * MIB, ring=ring)
    it = Device(SATA_TLC, drive, drive.capacity_bytes, "sparse", 0, ring, latency=True)
    transport = modeltime.Model(it, 1)
    places, loads_ = layout.make(4096, drive.capacity_bytes), []
    for number in range(CUTS):
        writer, ends = writer_on(transport, folder, powerloss_aim.KEPT, places, number), []
        begin_ns = transport.now_ns() // MS * MS
        for _ in range(3):
            writer.write(transport.now_ns() + WORK_ns)
            writer.settle(NEVER)
            ends.append(transport.now_ns())
            until_ns = ends[-1] + REST_ns
            while transport.t_ns < until_ns:
                transport.pause(MS)
        nJ = it.energy_steps_nJ(begin_ns // MS, (transport.t_ns - MARGIN_ns) // MS)
        loads_.append(Load(begin_ns, ends[1], np.r_[0, np.cumsum(nJ)] * 1e-9))
        writer.book.close()
    it.close()
    return loads_


def cut_ns(load: Load, when: dict, chance) -> int | None:
    """When the board cuts that is armed as soon as the second burst has ended."""
    board = Board(rails=(0,), measured=(0,))
    switch = board.cut(when=when)
    ((cycles,),) = [did[3:4] for did in board.taken() if did[0] == "load"]
    for t_ns, amps in zip(*load.samples(chance)):
        if t_ns > load.pause_ns:
            board.sample(0, 5000, round(amps / LSB_A))
            if switch.state == "started":
                return int(t_ns) + (cycles + 7) * 1000 // MHz
    return None


def burst_of(load: Load, at_ns: int) -> bool:
    """Whether the drive drew more than at rest in the last whole ms before."""
    at_ns = at_ns // MS * MS
    return bool(load.mean_W(at_ns - MS, at_ns) > powerloss_aim.AT_WORK * SATA_TLC.P_idle_mW / 1000)


def cuts(loads, change=lambda when: when) -> list[tuple[bool, float]]:
    """Of each load: whether the cut is in a burst, and ms from the end of the one before."""
    chance, shares = np.random.default_rng(1), []
    for number, load in enumerate(loads):
        learnt = aim.learn(IDLE_A + chance.normal(0, NOISE_A, 3600), load.samples(chance)[1])
        when = change(aim.when(aim.plan(cut_aims.parse("burst"), 1, number, 0, 0, learnt), None, LSB_A, 0, number))
        at_ns = cut_ns(load, when, chance)
        assert at_ns is not None
        shares.append((burst_of(load, at_ns), (at_ns - load.pause_ns) / MS))
    return shares


def test_a_cut_at_a_burst_is_in_one(loads):
    hits = cuts(loads)
    assert all(inside for inside, _ in hits)
    at_ms = np.array([ms for _, ms in hits]) - REST_ns / MS
    assert at_ms.min() > 8 and at_ms.max() < 40 and np.ptp(at_ms) > 10, "anywhere in its first 20 ms"


def test_a_drawn_time_behind_the_rise_is_behind_a_short_burst(loads):
    """As it was: the drive programs what is left in its cache 50 ms after the load, in 2 to 3 ms."""
    old = {"samples": 2, "nth": 1, "after_us": [1, 20_000]}
    hits = cuts(loads, lambda when: when | old)
    assert sum(inside for inside, _ in hits) < CUTS / 2 and np.median([ms for _, ms in hits]) < 100
