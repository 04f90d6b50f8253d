"""powerloss/cycle.py: when a drive is there, and when it is gone, however the kernel puts it."""

import errno
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.errors import (
    ChangedDrive,
    DriveError,
    ExchangedDrive,
    NotPaired,
    PowerCut,
    PromiseBroken,
    RigError,
    SlotError,
    SsdrigError,
    UnsafeTarget,
    words_of,
)
from ssdrig.blockio.slots import Slots
from ssdrig.plan.kinds import cut_schedule
from ssdrig.powerloss import campaign, cycle, health, history, layout, nbdwriter, supply, tally, target, writer
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.promise import ACK, FLUSH, Promise
from ssdrig.switch import command

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
    in .links and the events in .events. Its supply counts cuts."""
    power = threading.Event()
    back = threading.Timer(10, power.set)  # who waits for the kernel's answer gets it, and is found out
    back.start()
    for name in ("READY_S", "PATIENT_S"):
        monkeypatch.setattr(cycle, name, 0.05)

    def made(*statuses, back=lambda: None):
        # only what the kernel keeps is waited for in vain: an answer may come late on a busy machine
        monkeypatch.setattr(cycle, "ANSWER_S", 0.05 if None in statuses else 60)
        links, events = [Link(status, power) for status in statuses], []
        left = iter(links)
        target = SimpleNamespace(open=lambda: next(left), back=back, away=lambda: None, ended=lambda: False, slot=None)
        supply = SimpleNamespace(cut=lambda *words: events.append("cut") or SimpleNamespace(on_ns=0))
        places = layout.make(512, 32 * MIB)
        it = cycle.Cycle(target, supply, places, HELD, 1, 1, {}, lambda kind, **fields: events.append(kind))
        it.links, it.events = links, events
        return it

    yield made
    back.cancel()
    power.set()


def lived(it):
    outcome = SimpleNamespace(on_ns=0)
    return it._back(
        cut_schedule.Cut(1, "random", 0, "command", None, 1, 1.0),
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
    clock = SimpleNamespace(monotonic=lambda: 0.1 * len(tries), monotonic_ns=lambda: 0, sleep=time.sleep)
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
        held.write = lambda until_ns, moved: SimpleNamespace(t_ns=1, reason=writer.STOPPED)
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
    assert it.events == []

    def nothing():
        raise DriveError("the drive", "nothing", "look")

    it = drive(back=nothing)
    with pytest.raises(DriveError, match="to come back"):
        lived(it)
    assert it.events.count("cut") == cycle.DEAD_CYCLES - 1


def test_a_drive_that_forgets_a_setting_with_its_power_is_judged_by_what_it_promises_then():
    """A write cache that was off is on again after a cut: what it then loses is no broken promise."""
    now, events, warned = [HELD._replace(mode=ACK)], [], []
    it = object.__new__(campaign._Campaign)
    it.target, it.promise = SimpleNamespace(promise=lambda: now[0]), now[0]
    it.cycle, it.act = SimpleNamespace(promise=now[0]), SimpleNamespace(path="cuts")
    it.book = SimpleNamespace(event=lambda kind, **fields: events.append((kind, fields["cut"])))
    it.stage = SimpleNamespace(progress=SimpleNamespace(warn=warned.append))
    cut = SimpleNamespace(number=3)
    it._promised_now(cut)
    assert not events
    now[0] = HELD
    it._promised_now(cut)
    assert it.promise == it.cycle.promise == HELD and events == [("powerloss.promise", 3)] and len(warned) == 1
    now[0] = HELD._replace(block_bytes=4096)
    with pytest.raises(DriveError, match="blocks of 512 bytes"):
        it._promised_now(cut)


class FakeSlot:
    """A slot without hot-plug. `does`: what is done with it, in order; `gone`: whether its function reads so."""

    place = SimpleNamespace(kind="PCIe", hotplug=False, words="PCIe: no hot-plug")
    removes, dropped, appearances = True, False, 1

    def __init__(self, does, error=None):
        self.does, self.gone, self.error, self.asked = does, threading.Event(), error, threading.Event()

    def lost_power(self):
        self.asked.set()
        return self.gone.is_set()

    def drop(self):
        self.does.append("drop")
        if self.error:
            raise self.error
        self.dropped = True


def rehearsal(drive, monkeypatch, statuses=(0, 0), why_not="", fails=()):
    """(what was done in order, the link or the error) of a rehearsal; `fails`: the n-th time that it is looked for."""
    it = drive(*statuses)
    does, looks = it.events, []
    slot = it._target.slot = FakeSlot(does)
    it._keys = {"off_time": 0.05}

    def back():
        looks.append(does[-1])
        if does.count("away") in fails:
            raise DriveError("the drive", "nothing", "look")

    def cut(*_):
        assert slot.asked.wait(600)
        slot.gone.set()
        while does.count("drop") < 2:
            time.sleep(0.001)
        does.append("cut")
        return SimpleNamespace(on_ns=0, why_not=why_not)

    it._target.back, it._target.away, it._supply = back, lambda: does.append("away"), SimpleNamespace(cut=cut)
    link = Link(0, None)
    try:
        outcome = it.rehearse(link)
    except SsdrigError as error:
        outcome = error
    assert link.closed
    return does, outcome


def test_rehearsal_removes_with_power_on_then_cuts_once(drive, monkeypatch):
    does, link = rehearsal(drive, monkeypatch)
    assert does == ["slot.rehearsal", "drop", "away", "drop", "cut", "away", "slot.rehearsed"]
    assert isinstance(link, Link) and not link.closed


def test_slot_that_does_not_give_the_drive_back_is_no_verdict_on_it(drive, monkeypatch):
    does, error = rehearsal(drive, monkeypatch, fails=(1,))
    assert isinstance(error, SlotError) and "cut" not in does  # refused before any cut
    does, error = rehearsal(drive, monkeypatch, fails=(2,))
    assert isinstance(error, SlotError) and does.count("cut") == 1
    _, error = rehearsal(drive, monkeypatch, why_not="the drive still answered")
    assert isinstance(error, NotPaired)


def test_drive_is_dropped_only_once_it_reads_as_without_power(drive):
    it, does = drive(), []
    slot = it._target.slot = FakeSlot(does)
    with it._dropping():
        assert slot.asked.wait(600)
    assert does == []
    with it._dropping():
        assert slot.asked.wait(600)
        slot.lost_power = lambda: threading.current_thread() is threading.main_thread()
    assert does == ["drop"]  # power was back before the watch saw that it had gone
    does.clear()
    slot = it._target.slot = FakeSlot(does)
    slot.error = UnsafeTarget("no other disk", "sdb", "connect it apart")
    with pytest.raises(UnsafeTarget), it._dropping():
        slot.gone.set()
        while not does:
            time.sleep(0.001)
    slot.removes = False  # with hot-plug the kernel sees for itself
    with it._dropping():
        pass
    assert does == ["drop"]


def test_file_systems_are_down_before_power_returns_and_behind_the_drop(drive, tmp_path):
    it, does = drive(), []
    it._target.slot = SimpleNamespace(always=True, dropped=False, removes=True)
    it._target.slot.drop = lambda: does.append("drop") or setattr(it._target.slot, "dropped", True)
    down_ns: list[int | None] = [5, None]
    it.filesystems = SimpleNamespace(down=lambda: does.append("down") or {"clients": [], "down_ns": down_ns.pop(0)})
    it.without()
    assert does == ["drop"]  # no client is at work
    it.down = None
    on = f"echo on >{tmp_path / 'on'}"
    supply.SwitchSupply(
        command.Commands("true", on), lambda: False, lambda: does.append((tmp_path / "on").exists())
    ).cut("", None, 0.0)
    it.without()
    it.without()
    assert does == ["drop", False, "down"] and it.down["down_ns"] == 5
    supply.SwitchSupply(command.Commands("true", on), lambda: True, it.without).cut("", None, 0.0)  # it kept its power
    it.down = None
    with pytest.raises(DriveError):  # the kernel keeps one, which would be in the way of the drive
        it.without()


@pytest.mark.parametrize(
    ("starts", "by_slot", "rig", "findings", "code"),
    [
        ([False] * 9, True, True, {"DEAD": 1}, None),
        ([None] * 9, True, True, {"MISSING": 1}, None),  # nobody knows what it drew
        ([True] * 9, True, True, {}, SlotError.exit_code),
        ([False] * 8 + [True], True, True, {}, SlotError.exit_code),
        ([None] * 9, False, True, {"DEAD": 1}, None),  # no kernel between that could miss it
        ([None] * 9, True, False, {"MISSING": 1}, None),
    ],
)
def test_dead_needs_no_link_and_no_start_current(starts, by_slot, rig, findings, code):
    it, records = object.__new__(campaign._Campaign), []
    it.target = SimpleNamespace(slot=FakeSlot([]) if by_slot else None, queues_deleted=True)
    it.supply = object.__new__(supply.RigSupply) if rig else SimpleNamespace()
    it.promise, it.state = HELD, health.State(1.0)
    it._fall, it._outcome = lambda *_: None, lambda: None
    it._tell = lambda kind, **fields: records.append(fields["stop"])
    it._keep = lambda lived, blocks, judged: records.append(judged.record)
    rows = np.zeros(0, history.ROW)
    outcome = supply.Outcome(1000, 10, 2000, 1.0, report={"rails": []} if rig else None)
    gone = cycle.Lived(rows, None, 500, 600, outcome, Plan("random", 0), tries=cycle.DEAD_CYCLES, starts=starts)
    cut = cut_schedule.Cut(1, "random", 0, "crowbar", None, 1, 1.0)
    if code:
        with pytest.raises(SlotError) as error:
            it._gone(cut, gone, {})
        assert error.value.exit_code == code == 19 and records[1] == "alive"
        assert not records[0]["judged"] and not records[0]["failed"] and records[0]["why_not"]
    else:
        it._gone(cut, gone, {})
        assert len(records) == 1 and records[0]["judged"] and records[0]["failed"] == ("DEAD" in findings)
    assert records[0]["findings"] == findings


@pytest.mark.parametrize(
    ("start_A", "drawn_A", "expected_A"),
    [(None, 0.019, False), (None, 0.021, True), (1.0, 0.49, False), (1.0, 0.51, True), (0.01, 0.015, False)],
)
def test_start_current_is_half_of_the_rehearsals_and_more_than_an_offset(drive, start_A, drawn_A, expected_A):
    it = drive()
    it._supply, it._start_A = object.__new__(supply.RigSupply), start_A
    it._supply.currents = lambda seconds: np.full(10, drawn_A)
    assert it._starts() is None  # the virtual bench has no kernel between
    it._target.slot = FakeSlot([])
    assert it._starts() is expected_A

    def none(seconds):
        raise RigError("samples", "none", "look")

    it._supply.currents = none
    assert it._starts() is None


def test_perst_that_stays_released_is_no_outage_and_the_run_says_so():
    it, warned = object.__new__(campaign._Campaign), []
    it.stage = SimpleNamespace(progress=SimpleNamespace(warn=warned.append))
    it.target, it.supply = SimpleNamespace(slot=FakeSlot([])), object.__new__(supply.RigSupply)
    it.supply.sideband = True
    assert it._unlike_an_outage() == [] == warned
    it.supply.sideband = False
    assert len(it._unlike_an_outage()) == len(warned) == 1
    it.supply = SimpleNamespace()
    assert len(it._unlike_an_outage()) == 1
    it.target.slot.place = SimpleNamespace(kind="SCSI")
    assert it._unlike_an_outage() == []


@pytest.mark.parametrize(
    ("facts", "finding"), [({"capacity_bytes": 1 << 20}, "CAPACITY"), ({"writable": False}, "READ_ONLY")]
)
def test_drive_that_comes_back_changed_is_found_and_not_cut_again(drive, facts, finding):
    def back():
        raise ChangedDrive("the drive", "a change", "look", **facts)

    it = drive(back=back)
    with pytest.raises(cycle.Gone) as gone:
        lived(it)
    assert it.events == [] and gone.value.changed == facts
    it, records = object.__new__(campaign._Campaign), []
    it.target, it.supply = SimpleNamespace(slot=FakeSlot([]), queues_deleted=True), SimpleNamespace()
    it.promise, it.state, it.tally, it.book = HELD, health.State(1.0), tally.Tally(), SimpleNamespace(path=Path("run"))
    it.stage = SimpleNamespace(bench=SimpleNamespace(drive={"capacity_bytes": 2 << 20}), outcome=None)
    it._fall, it._tell = lambda *_: None, lambda kind, **fields: records.append(fields["stop"])

    def keep(lived, blocks, judged):
        records.append(judged.record["findings"])
        it.tally.add(judged.record)

    it._keep = keep
    rows = np.zeros(1, history.ROW)
    rows["kind"], rows["n"], rows["submit_ns"], rows["done_ns"] = history.WRITE, 1, 10, 20
    outcome = supply.Outcome(1000, 10, 2000, 1.0)
    changed = cycle.Lived(rows, None, 500, 600, outcome, Plan("random", 0), ready_s=1.0, link_lost=True)
    with pytest.raises(PromiseBroken):
        it._gone(cut_schedule.Cut(1, "random", 0, "command", None, 1, 1.0), changed, facts)
    assert records == [{finding: 1}, "changed"]


def test_drive_that_the_kernel_found_anew_has_lost_its_link(drive):
    """Nothing was under way when its power went, so no command has told."""
    for appears in (0, 1):
        it = drive(0)
        slot = it._target.slot = FakeSlot([])

        def back(slot=slot, appears=appears):
            slot.appearances += appears

        it._target.back = back
        gone = cycle.Lived(
            np.zeros(0), None, 0, 0, SimpleNamespace(on_ns=0, on_late_s=0.0, waited=None), Plan("random", 0)
        )
        it._back(cut_schedule.Cut(1, "random", 0, "command", None, 1, 1.0), gone)
        assert gone.link_lost is bool(appears)


NOT_BACK = cycle.Gone(DriveError("the drive back", "nothing", "look"), cycle.Lived(np.zeros(0), 0, 0, 0, None, None))
OTHER = ExchangedDrive("the drive", "another", "look")


@pytest.mark.parametrize(
    ("error", "failed", "session", "code"),
    [
        (DriveError("a read", "no answer", "look"), [2], 3, 11),  # in the middle of what is read after a cut
        (OSError(errno.EIO, "sysfs"), [2], 3, 11),
        (OTHER, [2], 3, 11),
        (OTHER, [2], 2, 3),  # what was read of another drive proves nothing
        (OTHER, [1, 2], 2, 11),
        (NOT_BACK, [2], 2, 4),  # that it is dead is all that is found
        (NOT_BACK, [1, 2], 2, 11),
        (NOT_BACK, [1], 2, 11),  # missing, and perhaps not dead
        (DriveError("a read", "no answer", "look"), [], 3, 4),
        (PromiseBroken("none", "of this", "read"), [2], 3, 11),
        (PowerCut("the end", "a cut from the web", "resume"), [2], 3, 17),  # by request, as Ctrl-C is
    ],
)
def test_proven_promise_outlives_whatever_ends_the_campaign(error, failed, session, code):
    it = object.__new__(campaign._Campaign)
    record = {"judged": True, "control": None, "suspicion": False, "written_bytes": 0, "fired_ns": 1, "why_not": ""}
    it.tally = tally.Tally({**record, "cut": n, "failed": n in failed, "findings": {}} for n in (1, 2))
    it.session, it.damaged, it.book = session, [], SimpleNamespace(path=Path("run"))

    def fails():
        raise error

    it._carry_out = fails
    with pytest.raises((SsdrigError, OSError)) as raised:
        it.carry_out()
    assert getattr(raised.value, "exit_code", None) == code
    if code == PromiseBroken.exit_code and not isinstance(error, PromiseBroken):
        assert words_of(error) in raised.value.seen
