"""powerloss/waiting.py and Cycle._back: the time until a drive was ready is an interval that holds the truth, whatever
the host holds up. The clock, the looks and the waits are a model's."""

import os
import random
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.errors import DriveError
from ssdrig.drive import witness
from ssdrig.powerloss import cycle, waiting
from ssdrig.powerloss.supply import Outcome
from ssdrig.powerloss.waiting import Waited

CUT = SimpleNamespace(number=1)
ON_LATE_S = 0.1


class Host:
    """A host on which whoever wakes waits up to `wait_s` for a CPU. Its server is ready `ready_s` after the return of
    power, at 0, plus what it waits itself, which is more if it `works`. `told`: whether its process is known."""

    def __init__(self, seed: int, wait_s: float, ready_s: float, works_s: float = 0.0, is_told: bool = True):
        self.chance, self.wait_s, self.t_s, self.own_s = random.Random(seed), wait_s, ON_LATE_S, 0.0
        self.is_told, self.server_s = is_told, works_s + self.chance.uniform(0, wait_s)
        on_s = self.chance.uniform(0, ON_LATE_S)
        self.ready_s, self.ready_at_s = ready_s, on_s + ready_s + self.server_s

    def wait(self) -> None:
        wait_s = self.chance.uniform(0, self.wait_s)
        self.t_s, self.own_s = self.t_s + wait_s, self.own_s + wait_s

    def sleep(self, seconds: float) -> None:
        self.t_s += seconds
        self.wait()

    def open(self):
        self.wait()
        if self.t_s < self.ready_at_s:
            raise DriveError("the drive", "no server", "wait")
        self.t_s += self.chance.uniform(0, 0.001)
        self.wait()
        return SimpleNamespace(server=7, close=lambda: None)

    def waited(self, server: int | None = None) -> Waited:
        busy = min(1.0, 100 * self.wait_s)  # the share of the time in which some process waits
        server_s = 100.0 + (self.server_s if self.t_s >= self.ready_at_s else 0.0)
        served = (7, 1, self.t_s + 9.0, server_s) if self.is_told and server else ()
        return Waited(round(self.t_s * 1e9), self.own_s, busy * self.t_s, *served)


def back(host: Host, monkeypatch, slot=None, server: int | None = 7) -> cycle.Lived:
    """A session whose drive has come back."""
    clock = {"monotonic": lambda: host.t_s, "monotonic_ns": lambda: round(host.t_s * 1e9), "sleep": host.sleep}
    monkeypatch.setattr(cycle, "time", SimpleNamespace(**clock))
    monkeypatch.setattr(waiting, "now", host.waited)
    target = SimpleNamespace(slot=slot, open=host.open, back=lambda: None, ended=lambda: False)
    made = cycle.Cycle(target, None, None, None, 1, 1, {}, lambda *words, **more: None)
    made._reads = lambda link: True
    outcome = Outcome(0, 0, 0, 0.6, waited=host.waited(server), on_late_s=ON_LATE_S)
    lived = cycle.Lived(np.zeros(0), None, 0, 0, outcome, None)
    made._back(CUT, lived)
    return lived


def interval_s(host: Host, monkeypatch, **how) -> tuple[float, float]:
    lived = back(host, monkeypatch, **how)
    return lived.ready_s - lived.stalled_s, lived.ready_s


@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.parametrize("wait_s", [0.0, 0.002, 0.05, 0.3, 2.0])
def test_interval_holds_the_time_in_which_the_drive_was_ready(wait_s, is_told, monkeypatch):
    for seed in range(100):
        ready_s, works_s = random.Random(seed).uniform(0, 5), random.Random(-seed).uniform(0, 10 * wait_s)
        host = Host(seed, wait_s, ready_s, works_s, is_told)
        least_s, most_s = interval_s(host, monkeypatch)
        assert least_s <= ready_s + 1e-6 and ready_s <= most_s


@pytest.mark.parametrize("wait_s", [0.0, 0.002, 0.05, 0.3])
def test_drive_late_by_twice_the_limit_is_late_on_a_busy_host_too(wait_s, monkeypatch):
    """All of a look's waits were taken off, those of looks that no drive answered too: 6 of 6 were let off."""
    for seed in range(20):
        least_s, _ = interval_s(Host(seed, wait_s, 4.0), monkeypatch)
        assert least_s > 2.0
    least_s, most_s = interval_s(Host(1, 0.3, 0.1, works_s=5.0), monkeypatch)
    assert least_s <= 0.1 and most_s > 5.0  # the server waited, not the drive


def test_host_whose_server_is_not_known_may_have_held_it_up_as_long_as_any_process_waited(monkeypatch):
    assert interval_s(Host(1, 0.0, 4.0, is_told=False), monkeypatch)[0] > 3.8
    assert interval_s(Host(1, 0.05, 4.0, is_told=False), monkeypatch)[0] == 0.0
    assert interval_s(Host(1, 0.05, 4.0), monkeypatch, server=None)[0] < 4.0  # its process was not known before


def test_look_that_a_kernel_answered_is_no_proof_that_the_drive_was_away(monkeypatch):
    """The kernel may find the drive late; what this process waited is all that is known."""
    slot = SimpleNamespace(removes=False, appearances=1)
    host = Host(1, 0.05, 4.0)
    least_s, most_s = interval_s(host, monkeypatch, slot=slot)
    assert host.own_s > 1.0 and 0.0 < least_s <= most_s - host.own_s - ON_LATE_S
    assert interval_s(Host(1, 0.0, 4.0), monkeypatch, slot=slot)[0] == pytest.approx(4.0, abs=0.15)


def test_look_that_this_host_could_not_make_is_no_proof(monkeypatch):
    host = Host(1, 0.0, 0.0)
    opened, fails = host.open, [OSError(24, "too many open files")] * 300

    def none_left():
        if fails:
            raise DriveError("the drive", "an error", "look") from fails.pop()
        return opened()

    host.open = none_left
    monkeypatch.setattr(host, "waited", lambda server=None: Waited(0, None, None, 7, 1, 9.0, 0.0))
    assert interval_s(host, monkeypatch)[0] == 0.0


@pytest.mark.parametrize(
    ("before", "after", "server_s"),
    [
        ((0, 0.0, 1.0, 7, 1, 9.0, 5.0), (10**9, 0.0, 1.9, 7, 1, 10.0, 5.25), 0.25),
        ((0, 0.0, 1.0), (10**9, 0.0, 1.9), 0.9),  # it is not known
        ((0, 0.0, None), (10**9, 0.0, None), None),
        ((0, 0.0, 1.0, 7, 1, 9.0, 5.0), (10**9, 0.0, 1.9, 8, 2, 0.8, 0.25), 0.45),  # it began 0.2 s after
        ((0, 0.0, 1.0, 7, 1, 9.0, 5.0), (10**9, 0.0, 1.1, 8, 2, 0.8, 0.25), 0.1),  # no process waited as long
        ((0, 0.0, None), (10**9, 0.0, None, 8, 2, 0.8, 0.25), 0.45),
        ((0, 0.0, 1.0), (10**9, 0.0, 1.9, 8, 2, 20.0, 0.25), 0.25),  # it was there before, not known
        ((0, 0.0, 1.0, 7, 1, 9.0, 5.0), (10**9, 0.0, 1.9, 7, 1, 10.0, None), 0.9),
    ],
)
def test_server_s_is_the_most_that_its_process_or_its_parents_waited(before, after, server_s):
    assert waiting.server_s(Waited(*before), Waited(*after)) == pytest.approx(server_s)


@pytest.mark.parametrize(
    ("ready_s", "on_late_s", "looks", "own_s", "server_s", "least_s"),
    [
        (4.0, 0.1, (3.8, 3.9, True), 3.0, 0.2, 3.5),
        (4.0, 0.1, (0.5, 0.6, True), 0.2, 0.2, 3.4),  # the last look was kept waiting
        (4.0, 0.1, (3.8, 3.9, False), 3.0, 0.0, 0.8),
        (4.0, 0.1, (3.8, 3.9, True), None, 0.2, 3.5),
        (4.0, 0.1, (3.8, 3.9, False), None, 0.0, 0.0),
        (4.0, 0.1, (0.0, 3.9, True), 0.0, 0.0, 0.0),  # nobody looked before
        (4.0, 0.1, (3.8, 3.9, True), 0.0, None, 0.0),
        (4.0, 9.0, (3.8, 3.9, True), 0.0, 0.0, 0.0),
    ],
)
def test_ready_least_s_takes_the_later_proof(ready_s, on_late_s, looks, own_s, server_s, least_s):
    found_s = waiting.ready_least_s(ready_s, on_late_s, waiting.Looks(*looks), own_s, server_s)
    assert found_s == pytest.approx(least_s)


def test_waits_of_this_machine_are_read():
    waits = waiting.now(os.getpid())
    assert waits.server == os.getpid() and waits.age_s >= 0 and waits.began == witness.began_ticks(os.getpid())
    assert waits.own_s is None or 0 <= waits.own_s <= waits.server_s
    assert waiting.now(0).server is None and waiting.now(1 << 22 | 1).server is None
