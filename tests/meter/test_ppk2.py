"""sources/ppk2.py, by ppk2lab's simulator where that is installed, and by a stand-in of the same calls."""

import importlib
import itertools
import sys
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError, ToolMissing, UsageError
from ssdrig.meter.sources import ppk2


class Samples(list):
    """A block of ppk2lab, here its currents in uA, that ends before sample `end_index`."""

    def __init__(self, currents, end_index=0):
        super().__init__(currents)
        self.end_index = end_index


class Device:
    """What PPK2.open gives, as far as it is used."""

    info = SimpleNamespace(serial_number="E1")
    calibration = SimpleNamespace(convert_block=list)

    def __init__(self, *events):
        self._events, self.restored = events, None

    def stream(self):
        device = self

        class Stream:
            def __enter__(self):
                return iter(device._events)

            def __exit__(self, *_):
                return False

        return Stream()

    def close(self, restore_power):
        self.restored = restore_power


@pytest.fixture
def ppk2lab(monkeypatch):
    """ppk2lab with one device, which `events` of the result gives."""

    class Ppk2labError(Exception):
        pass

    made = SimpleNamespace(Ppk2labError=Ppk2labError, events=[])

    def open_(serial_number, simulate):
        if serial_number not in (None, "E1"):
            raise Ppk2labError("no such device")
        return Device(*made.events)

    made.PPK2 = SimpleNamespace(open=open_)
    monkeypatch.setitem(sys.modules, "ppk2lab", made)
    looks = itertools.count(10**12, 10_000_000)
    monkeypatch.setattr(ppk2, "time", SimpleNamespace(monotonic_ns=lambda: next(looks)))
    monkeypatch.setattr(ppk2, "is_installed", lambda name: True)
    return made


def test_means_of_samples_and_what_is_lost(ppk2lab):
    gap = SimpleNamespace(missing=250)
    ppk2lab.events = [Samples([1e5] * 150, 150), Samples([2e5] * 70, 220), gap, Samples([3e5] * 200, 670)]
    one = ppk2.opened("E1?V=5")
    (rail,) = one.rails()
    assert rail.period_s == 0.001 and rail.seen == 1 and rail.accuracy.unknown == ppk2.UNKNOWN
    first, second, third = one.blocks()
    assert first.amperes == pytest.approx([0.1]) and first.volts == [5.0]
    assert second.amperes == pytest.approx([(50 * 0.1 + 50 * 0.2) / 100]) and not second.missed
    assert third.amperes == pytest.approx([0.3, 0.3]) and third.missed == 3  # 20 begun, 250 lost
    assert third.t_ns[1] - third.t_ns[0] == 1_000_000 and third.bound_ns == one.clock().bound_ns


def test_the_drives_power_is_left_as_it_is(ppk2lab):
    one = ppk2.opened("?V=5")
    one.close()
    assert one._device.restored is False


def test_a_device_that_fails_is_gone(ppk2lab):
    def fails():
        yield Samples([1.0] * 100, 100)
        raise ppk2lab.Ppk2labError("unplugged")

    one = ppk2.opened("?V=5")
    one._device._events = fails()
    blocks = one.blocks()
    next(blocks)
    with pytest.raises(OSError, match="unplugged"):
        next(blocks)
    with pytest.raises(RigError):
        ppk2.opened("E2?V=5")


@pytest.mark.parametrize("rest", ["", "E1", "E1?V=12", "E1?V=5&rate=1", "E1?V=5&other=1", "E1?V=x"])
def test_what_is_no_such_url_is_refused(rest):
    with pytest.raises(UsageError):
        ppk2.check(rest)


def test_without_ppk2lab_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(ppk2, "is_installed", lambda name: False)
    with pytest.raises(ToolMissing):
        ppk2.check("E1?V=5")


def test_the_simulator_of_ppk2lab_is_a_meter(monkeypatch):
    lab = pytest.importorskip("ppk2lab", reason="pip install ppk2lab")
    profiles, mock = (importlib.import_module(f"ppk2lab.{name}") for name in ("testing.profiles", "transport.mock"))
    profile = profiles.ConstantProfile(480_000.0)
    simulated = mock.SimulatedPPK2(profile=profile, gaps={5000: 10}, rate_limit_hz=100_000)
    real = lab.PPK2.open
    monkeypatch.setattr(lab.PPK2, "open", lambda **how: real(simulator=simulated))
    one = ppk2.opened("?V=5")
    blocks, readings, missed = one.blocks(), [], 0
    while len(readings) < 300:
        block = next(blocks)
        readings += block.amperes
        missed += block.missed
    one.close()
    assert readings == pytest.approx([0.48] * len(readings), rel=2e-4) and missed == 1
