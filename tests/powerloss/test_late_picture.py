"""A scope's picture that a busy host reads late: judged by the board's time."""

import struct
from types import SimpleNamespace

import pytest

from ssdrig.base.errors import RigError
from ssdrig.meter import wire
from ssdrig.switch import pico

SCOPE = {"gpio": 26, "rate": 500_000, "before": 0, "after": 20}


def part(first: int) -> bytes:
    return struct.pack(wire.WAVEFORM_HEAD, 0, 26, first, 1000, 2000, 10) + struct.pack("<10H", *range(10))


class LateRig:
    """Its second frame arrives after `late_s` of the host's time, in which the board's clock as read passes
    `board_s`."""

    def __init__(self, monkeypatch, late_s: float, board_s: float):
        self.now_s, self.late_s, self.board_s = 0.0, late_s, board_s
        clock = SimpleNamespace(sleep=self.sleep, monotonic=lambda: self.now_s)
        monkeypatch.setattr(pico, "time", clock)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def board_us(self) -> int:
        return int(1e6 * min(1.0, self.now_s / self.late_s) * self.board_s)

    def heard(self, kind: int) -> list[bytes]:
        return [part(0), part(10)][: 1 + (self.now_s >= self.late_s)]

    def hello(self) -> dict:
        return {"scope": [{"gpio": 26, "nV_per_count": 10**6}]}


@pytest.mark.parametrize("late_s, board_s", [(0.5, 0.5), (20.0, 0.9), (20.0, 0.0)])
def test_picture_that_the_host_reads_late_is_whole(monkeypatch, late_s, board_s):
    assert len(pico._waveform(LateRig(monkeypatch, late_s, board_s), SCOPE)["volts"]) == 20


@pytest.mark.parametrize("late_s, board_s", [(20.0, 20.0), (100.0, 0.5)])
def test_picture_that_the_board_does_not_end_is_given_up(monkeypatch, late_s, board_s):
    rig = LateRig(monkeypatch, late_s, board_s)
    with pytest.raises(RigError):
        rig.heard = lambda kind: [part(10)]
        pico._waveform(rig, SCOPE)
    assert rig.now_s < 40
