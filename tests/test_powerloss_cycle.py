"""powerloss/cycle.py: when a drive is there, and when it is gone, however the kernel puts it."""

import errno
import socket
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.errors import DriveError, ExchangedDrive
from ssdrig.powerloss import campaign, cycle, layout, nbdwriter, schedule, target, writer
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.promise import ACK, FLUSH, Promise
from ssdrig.powerloss.slots import Slots

MIB = 1 << 20
HELD = Promise(FLUSH, 512, 1, 0, 0, "zeros", True, "")


class Link:
    """A transport whose reads all end with one status; None: not before `power` is set."""

    def __init__(self, status, power):
        self.status, self.power, self.slots = status, power, Slots(4, 4096)
        self.under_way, self.gone, self.closed, self.reads = 0, "", False, 0

    now_ns = staticmethod(lambda: 0)

    def submit(self, order, n):
        self.under_way, self.reads, self.slot = n, self.reads + 1, order[0]

    def reap(self, ended, timeout_ns, least=1):
        if self.status is None:
            self.power.wait()
        ended[0], self.under_way = self.slot, 0
        self.slots.status[self.slot] = self.status or 0
        return 1

    def close(self):
        assert self.under_way == 0
        self.closed = True


@pytest.fixture
def drive(monkeypatch):
    """drive(*statuses, back=…) -> a cycle on a drive whose links end their reads so, one after the other; it keeps them
    in .links and the events in .told. Its supply counts cuts."""
    power = threading.Event()
    back = threading.Timer(10, power.set)  # who waits for the kernel's answer gets it, and is found out
    back.start()
    monkeypatch.setattr(cycle, "READY_S", 0.05)

    def made(*statuses, back=lambda: None):
        # only what the kernel keeps is waited for in vain: an answer may come late on a busy machine
        monkeypatch.setattr(cycle, "ANSWER_S", 0.05 if None in statuses else 60)
        links, told = [Link(status, power) for status in statuses], []
        left = iter(links)
        target = SimpleNamespace(open=lambda: next(left), back=back, away=lambda: None, ended=lambda: False)
        supply = SimpleNamespace(cut=lambda *words: told.append("cut") or SimpleNamespace(on_ns=0))
        places = layout.make(512, 32 * MIB)
        it = cycle.Cycle(target, supply, places, HELD, 1, 1, {}, lambda kind, **fields: told.append(kind))
        it.links, it.told = links, told
        return it

    yield made
    back.cancel()
    power.set()


def lived(it):
    outcome = SimpleNamespace(on_ns=0)
    return it._back(
        schedule.Cut(1, "random", 0, "command", None, 1, 1.0),
        cycle.Lived(np.zeros(0), None, 0, 0, outcome, Plan("random", 0)),
    )


def test_a_read_that_the_kernel_keeps_until_power_is_back_does_not_keep_the_power_off(drive):
    assert not drive(None).answers()


def test_a_drive_of_which_every_read_is_refused_does_not_answer_and_is_not_back(drive):
    it = drive(-errno.EIO, -errno.EIO, 0)
    assert not it.answers()
    assert it.links[0].closed and it.links[0].reads == len(it._layout.starts)
    assert it.there(10.0) is it.links[2] and it.links[1].closed and not it.links[2].closed
    assert drive(0).answers()


def test_a_server_that_takes_connections_and_says_nothing_is_not_waited_for_much_longer(drive, tmp_path, monkeypatch):
    """Each try takes 0.1 s of a clock that the test moves: a busy machine makes no fewer."""
    monkeypatch.setattr(nbdwriter, "GREETING_S", 0.05)
    path, tries = tmp_path / "sock", []
    clock = SimpleNamespace(monotonic=lambda: 0.1 * len(tries), sleep=time.sleep)
    monkeypatch.setattr(cycle, "time", clock)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(64)
        it = drive()
        it._target.open = lambda: tries.append(1) or nbdwriter.Nbd(f"nbd+unix:///?socket={path}")
        with pytest.raises(DriveError, match="come back within 0.2 s.*timed out"):
            it.there(0.2)
        assert len(tries) == 3  # until the time is over
        server.setblocking(False)
        for _ in tries:
            server.accept()[0].close()


def test_how_long_a_command_may_take_depends_on_who_may_repeat_it(monkeypatch):
    """A session on a server that hung was waited for as long as a kernel may take: 120 s."""
    nbd = target.of_nbd("nbd://h", ("off", "on"), False)
    virtual = target.of_virtual("nbd://h", {"write_cache_bytes": 1, "plp": False}, lambda: None)
    waited = []
    for of in (nbd, virtual, target.Target(None, None)):
        held = SimpleNamespace(stop=lambda: None, settle=waited.append)
        held.write = lambda until_ns, moved: SimpleNamespace(t_ns=1, reason=writer.TOLD)
        writing = cycle._Writing(held, None, of, None, leaves=True)
        writing.end()
        with pytest.raises(DriveError, match="all commands to end"):
            cycle._settled(writing)
    assert waited == [30 * 10**9, 30 * 10**9, 120 * 10**9]


def test_another_drive_in_its_place_ends_the_campaign_and_its_power_is_not_cut(drive):
    def back():
        raise ExchangedDrive("the drive", "another", "bring it back")

    it = drive(back=back)
    with pytest.raises(ExchangedDrive):
        lived(it)
    assert it.told == []

    def nothing():
        raise DriveError("the drive", "nothing", "look")

    it = drive(back=nothing)
    with pytest.raises(DriveError, match="to come back"):
        lived(it)
    assert it.told.count("cut") == cycle.DEAD_CYCLES - 1


def test_a_drive_that_forgets_a_setting_with_its_power_is_judged_by_what_it_promises_then():
    """A write cache that was off is on again after a cut: what it then loses is no broken promise."""
    now, told, warned = [HELD._replace(mode=ACK)], [], []
    it = object.__new__(campaign._Campaign)
    it.target, it.promise = SimpleNamespace(promise=lambda: now[0]), now[0]
    it.cycle, it.act = SimpleNamespace(promise=now[0]), SimpleNamespace(path="cuts")
    it.book = SimpleNamespace(event=lambda kind, **fields: told.append((kind, fields["cut"])))
    it.stage = SimpleNamespace(progress=SimpleNamespace(warn=warned.append))
    cut = SimpleNamespace(number=3)
    it._promised_now(cut)
    assert not told
    now[0] = HELD
    it._promised_now(cut)
    assert it.promise == it.cycle.promise == HELD and told == [("powerloss.promise", 3)] and len(warned) == 1
    now[0] = HELD._replace(block_bytes=4096)
    with pytest.raises(DriveError, match="blocks of 512 bytes"):
        it._promised_now(cut)
