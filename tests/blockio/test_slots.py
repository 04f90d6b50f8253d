"""How long a drive may hold its commands: the waits count, the time of a host that stood still does not."""

import numpy as np
import pytest

from ssdrig.base.errors import DriveError
from ssdrig.blockio.slots import HANG_NS, WAIT_NS, Slots, carry_out


class Silent:
    """A transport that answers its one command after `waits` empty waits, each of which takes `wait_ns`."""

    size_bytes, can_trim, can_zero, gone = 1 << 20, False, False, ""

    def __init__(self, waits: int, wait_ns: int):
        self.slots, self.under_way, self.clock_ns = Slots(2, 4096), 0, 0
        self.waits, self.wait_ns = waits, wait_ns
        self.order: list[int] = []

    def now_ns(self) -> int:
        return self.clock_ns

    def submit(self, order: np.ndarray, n: int) -> None:
        self.order, self.under_way = order[:n].tolist(), n

    def reap(self, ended: np.ndarray, timeout_ns: int, least: int = 1) -> int:
        self.clock_ns += self.wait_ns
        self.waits -= 1
        if self.waits >= 0:
            return 0
        ended[: self.under_way], n = self.order, self.under_way
        self.under_way = 0
        return n

    def pause(self, ns: int) -> None:
        self.clock_ns += ns

    def close(self) -> None:
        pass


def ended(transport: Silent) -> list[int]:
    numbers: list[int] = []
    carry_out(transport, 1, lambda n, at: None, lambda n, at: numbers.extend(n.tolist()))
    return numbers


@pytest.mark.parametrize("stopped_ns", [2 * HANG_NS, 100 * HANG_NS])
def test_a_host_that_stands_still_is_not_a_hang(stopped_ns):
    assert ended(Silent(3, stopped_ns)) == [0]


def test_silent_drive_is_refused_after_its_waits():
    most = HANG_NS // WAIT_NS
    assert ended(Silent(most, WAIT_NS)) == [0]
    with pytest.raises(DriveError) as refusal:
        ended(Silent(most + 1, WAIT_NS))
    assert f"{HANG_NS // 10**9} s" in refusal.value.seen


def test_gone_drive_is_refused_without_a_wait():
    transport = Silent(HANG_NS, WAIT_NS)
    transport.gone = "gone"
    with pytest.raises(DriveError):
        ended(transport)
    assert transport.clock_ns == WAIT_NS
