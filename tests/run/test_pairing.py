"""Whether a rig feeds the drive of its run: decided by statistics, and what follows from the verdict."""

import argparse
import itertools
import random
import time
from types import SimpleNamespace

import numpy as np
import pytest

from ssdrig.base.errors import NotPaired, UsageError
from ssdrig.base.progress import Progress
from ssdrig.meter import pairing
from ssdrig.meter.pairing import ALPHA, NOT_PAIRED, PAIRED, SLOT_S, SLOTS, UNKNOWN
from ssdrig.run import bursts, fleet, matching, run
from ssdrig.run import pairing as signature
from ssdrig.run.asked_cut import AskedCut
from ssdrig.switch import pico

BYTES = 40_000_000
DIGIT_W = 1e-5


def look(slots, watts, done=None, write=False, error_W=1e-5):
    done = [BYTES * slot for slot in slots] if done is None else done
    rail = pairing.Rail(np.array(watts, float), np.full(SLOTS, error_W), DIGIT_W)
    return pairing.look(slots, done, SLOT_S, rail, write)


def sound(slots, source, step_W=0.005, noise_W=1e-4):
    return [0.5 + step_W * slot + source.gauss(0, noise_W) for slot in slots]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "other",
    [
        lambda source: [0.05] * SLOTS,  # asleep: the same digits
        lambda source: [0.5 + source.gauss(0, 1e-4) for _ in range(SLOTS)],
        lambda source: [2 + 0.05 * slot + source.gauss(0, 0.3) for slot in range(SLOTS)],
        lambda source: [0.5 + 3 * source.randrange(2) for _ in range(SLOTS)],
    ],
)
def test_rig_on_another_drive_is_not_paired(seed, other):
    source = random.Random(seed)
    looks = []
    for write in (False, True):
        slots = pairing.pattern(source)
        looks.append([look(slots, other(source), write=write)])
    assert pairing.verdict(looks)[0] == NOT_PAIRED


@pytest.mark.parametrize("seed", range(100))
def test_sound_rig_is_paired(seed):
    source = random.Random(seed)
    slots = pairing.pattern(source)
    assert pairing.verdict([[look(slots, sound(slots, source))]])[0] == PAIRED


def test_slots_are_judged_by_what_the_load_did():
    source = random.Random(1)
    slots = pairing.pattern(source)
    watts, done = sound(slots, source), [BYTES * slot for slot in slots]
    bursts_, rests = [n for n in range(SLOTS) if slots[n]], [n for n in range(SLOTS) if not slots[n]]
    watts[bursts_[0]], done[bursts_[0]] = 0.5, 0  # the host stood still
    watts[rests[0]], done[rests[0]] = 0.505, BYTES  # the burst before went on
    watts[rests[1]] = float("nan")  # samples lost
    look_ = look(slots, watts, done)
    assert (look_.bursts, look_.rests) == (SLOTS // 2 - 1, SLOTS // 2 - 2) and pairing.verdict([[look_]])[0] == PAIRED


def test_two_looks_with_an_outlier_each_are_enough():
    source, looks = random.Random(2), []
    for _ in range(2):
        slots = pairing.pattern(source)
        watts = sound(slots, source)
        watts[slots.index(True)] = 0.1
        looks.append([look(slots, watts)])
    assert pairing.verdict(looks[:1])[0] == NOT_PAIRED and pairing.verdict(looks)[0] == PAIRED


@pytest.mark.parametrize("done", [[0] * SLOTS, [1000] * SLOTS])
def test_load_that_did_nothing_decides_nothing(done):
    slots = pairing.pattern(random.Random(3))
    verdict, why = pairing.verdict([[look(slots, [0.5] * SLOTS, done)]])
    assert verdict == UNKNOWN and why


def test_slow_load_decides_nothing_against_the_rig():
    """A host beside 16 busy loops moved 1.5 I/Os in a burst, and a sound rig was found to feed another drive."""
    slots = pairing.pattern(random.Random(4))
    verdict = lambda moved: pairing.verdict([[look(slots, [0.5] * SLOTS, [moved * slot for slot in slots])]])[0]
    assert [verdict(ios * bursts.IO_BYTES) for ios in (1.5, 7.9, 8.1)] == [UNKNOWN, UNKNOWN, NOT_PAIRED]
    thin = [1.5 * bursts.IO_BYTES * slot for slot in slots]
    assert pairing.verdict([[look(slots, sound(slots, random.Random(4)), thin)]])[0] == PAIRED


def test_one_rail_of_several_is_enough():
    source = random.Random(5)
    slots = pairing.pattern(source)
    assert pairing.verdict([[look(slots, [0.1] * SLOTS), look(slots, sound(slots, source))]])[0] == PAIRED


def test_busy_drive_of_a_resumed_run_is_unknown():
    source = random.Random(6)
    slots = pairing.pattern(source)
    noisy = [[look(slots, [1 + source.randrange(2) for _ in slots], error_W=0.01)]]
    assert pairing.verdict(noisy)[0] == NOT_PAIRED and pairing.verdict(noisy, busy=True)[0] == UNKNOWN
    assert pairing.verdict([[look(slots, [0.5] * SLOTS)]], busy=True)[0] == NOT_PAIRED


def act(do, **more):
    return SimpleNamespace(do=do, not_run=None, range_bytes=1 << 30, **more)


def test_signature_writes_only_where_the_run_destroys_the_data_first():
    whole = 1 << 40
    assert signature.may_write([act("purge"), act("fill")], whole) == whole
    assert signature.may_write([act("set"), act("cuts")], whole) == 1 << 30
    for acts in ([act("load")], [act("fill")], [act("recall")], [act("idle"), act("fill")], [act("trim"), act("load")]):
        assert signature.may_write(acts, whole) == 0
    purge = SimpleNamespace(do="purge", not_run="the drive is filled", range_bytes=0)
    assert signature.may_write([purge, act("load")], whole) == 0
    assert signature.may_write([act("purge"), act("fill")], whole, resumed=True) == 0


def test_sealed_drive_has_its_signature_after_it_was_judged():
    assert signature.at_end([act("recall")]) and not signature.at_end([act("retain")])


def test_dry_run_says_what_the_signature_takes():
    document = signature.as_json([act("purge"), act("fill")], 1 << 40, True)
    assert (
        document["least_s"] <= document["most_s"] <= 10 < document["busy_most_s"]
        and document["most_read_bytes"]
        and document["most_written_bytes"]
    )
    assert signature.as_json([act("load")], 1 << 40, True)["most_written_bytes"] == 0
    assert signature.as_json([act("load")], 1 << 40, False) is None
    assert f"pairing {SLOTS * SLOT_S:g} s" in signature.dry_run_words([act("load")], 1 << 40, True)


def test_no_cut_where_the_rig_is_not_paired():
    with pytest.raises(NotPaired, match="flat"):
        signature.refuse_cuts("flat", [act("cuts")], commands=False)
    signature.refuse_cuts("flat", [act("load")], commands=False)
    signature.refuse_cuts("flat", [act("cuts")], commands=True)
    signature.refuse_cuts("", [act("cuts")], commands=False)


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("verdict", [PAIRED, NOT_PAIRED, UNKNOWN])
def test_rig_cuts_where_the_signature_was_seen_or_the_drive_is_simulated(verdict, simulated):
    why = signature.forbids_cuts({"kind": pairing.EVENT, "verdict": verdict, "why": "flat"}, simulated)
    assert bool(why) is (verdict != PAIRED and not (simulated and verdict == UNKNOWN)) and ("flat" in why) is bool(why)


def paired_run(simulated, verdict, monkeypatch, acts, late=False):
    """Whatever comes of a run's pairing: its rig."""
    rig, live = SimpleNamespace(unpaired=""), SimpleNamespace(unpaired=False)
    book = SimpleNamespace(event=lambda kind, **more: {"kind": kind, **more})
    monkeypatch.setattr(
        signature,
        "carry_out",
        lambda bench_, book, *_: book.event(pairing.EVENT, verdict=verdict, why="slow", looks=[]),
    )
    bench_ = SimpleNamespace(drive={"capacity_bytes": 1 << 30}, simulated=simulated, target=None)
    stop = SimpleNamespace(check=lambda: None)
    budget = SimpleNamespace(most_bytes=None)
    try:
        run._pair(bench_, book, rig, stop, live, Progress(True), acts, False, budget)
    except NotPaired as error:
        return rig, error
    return rig, None


@pytest.mark.parametrize("do", ["cuts", "load"])
def test_real_drive_loses_its_power_by_no_rig_that_is_not_known_to_feed_it(monkeypatch, do):
    """Neither by a plan, nor by the run's owner."""
    rig, error = paired_run(False, UNKNOWN, monkeypatch, [act(do)])
    assert (error is not None) is (do == "cuts")
    with pytest.raises(NotPaired):
        pico.arm_and_cut(rig)
    asked = AskedCut(None, None, rig, SimpleNamespace(asked=lambda: 0))
    assert "slow" in asked.arm()["why"]
    rig, error = paired_run(True, UNKNOWN, monkeypatch, [act(do)])
    assert not rig.unpaired and error is None


@pytest.mark.parametrize(
    ("starved", "feeds", "verdict", "tries"),
    [
        ((), True, PAIRED, 1),
        ((), False, NOT_PAIRED, 2),
        ((1, 2), True, PAIRED, 3),
        ((1, 3), False, NOT_PAIRED, 4),
        ((2, 3, 4), False, UNKNOWN, 4),  # one look that does not fit is not enough against the rig
        ((1, 2, 3, 4), True, UNKNOWN, 4),
    ],
)
def test_try_in_which_a_busy_host_kept_no_rests_is_made_again(monkeypatch, starved, feeds, verdict, tries):
    source, events, wrote = random.Random(8), [], []

    def play(connect, slots, slot_s, range_bytes, write, check):
        wrote.append(write)
        late = len(wrote) in starved
        return bursts.Played(0, 1, tuple(BYTES if slot or late else 0 for slot in slots))

    def rails(read, played, live, check):
        own = [bool(amount) for amount in played.done_bytes] if feeds else [False] * SLOTS
        return {"supply": pairing.Rail(np.array(sound(own, source)), np.full(SLOTS, 1e-5), DIGIT_W)}

    monkeypatch.setattr(signature.bursts, "play", play)
    monkeypatch.setattr(signature, "rails", rails)
    bench = SimpleNamespace(connect=lambda write: Memory(), drive={"capacity_bytes": 1 << 30})
    book = SimpleNamespace(path=None, event=lambda kind, **more: events.append(more) or more)
    rig = SimpleNamespace(unpaired="", live=lambda: None, hello=dict)
    event = signature.carry_out(bench, book, rig, 1 << 20, source=source)
    assert (event["verdict"], len(event["looks"])) == (verdict, tries)
    assert event["duration_s"] == pytest.approx(SLOTS * SLOT_S * tries)
    assert sum(wrote) <= 1


class Memory:
    """A drive of a link."""

    def __init__(self):
        self.reads = self.writes = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read(self, offset, length):
        assert 0 <= offset <= (1 << 30) - length
        self.reads += 1

    def write(self, offset, data):
        self.writes += 1


def test_bursts_move_nothing_in_rests_and_never_more_than_the_most():
    drive, slots = Memory(), (True, False, True, False)
    played = bursts.play(lambda write: drive, slots, 0.05, 1 << 30)
    assert [bool(moved) for moved in played.done_bytes][0::2] == [True, True] and not drive.writes
    assert sum(played.done_bytes) == drive.reads * bursts.IO_BYTES and not played.why
    assert max(played.done_bytes) <= bursts.SLOT_BYTES + bursts.THREADS * bursts.IO_BYTES


def test_burst_of_a_drive_that_is_faster_than_the_most_lasts_its_whole_slot(monkeypatch):
    monkeypatch.setattr(bursts, "SLOT_BYTES", 64 * bursts.IO_BYTES)
    at_ns = []
    drive = Memory()
    monkeypatch.setattr(drive, "read", lambda offset, length: at_ns.append(time.monotonic_ns()))
    played = bursts.play(lambda write: drive, (True, False), 0.5, 1 << 30)
    late = [at for at in at_ns if at - played.begin_ns > pairing.SETTLE * played.slot_ns]
    assert len(late) > len(at_ns) / 2 and played.done_bytes[0] > 32 * bursts.IO_BYTES


def test_link_that_fails_ends_the_play_and_is_the_why():
    def gone(write):
        raise OSError("no such device")

    played = bursts.play(gone, (True, False), 0.02, 1 << 30)
    assert played.done_bytes == (0, 0) and "no such device" in played.why


# ---- several drives and rigs


def fed(monkeypatch, feeds, seed, noise_W=1e-4):
    """Rigs that see the drives of `feeds` {port: name}."""
    source, now = random.Random(seed), {}

    def played(drives, patterns):
        now.update({one.name: slots for one, slots in zip(drives, patterns, strict=True)})
        done = lambda slots: tuple(BYTES * slot for slot in slots)
        return {one.name: bursts.Played(0, 1, done(slots)) for one, slots in zip(drives, patterns, strict=True)}

    def rails(powers, played, live):
        slots = now.get(feeds[powers], (False,) * SLOTS)
        watts = np.array([0.5 + 0.5 * slot + source.gauss(0, noise_W) for slot in slots])
        return {"supply": pairing.Rail(watts, np.full(SLOTS, 1e-5), DIGIT_W)}

    monkeypatch.setattr(matching, "_played", played)
    monkeypatch.setattr(matching.signature, "rails", rails)
    return {port: port for port in feeds}


def named(rigs):
    return [matching.Named(name, lambda write: Memory(), 1 << 30, rig) for name, rig in rigs.items()]


@pytest.mark.parametrize("seed", range(20))
def test_swapped_rigs_are_noticed_and_exchanged(monkeypatch, seed):
    rigs = fed(monkeypatch, {"P": "B", "Q": "A"}, seed)
    matches = matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(seed))
    assert matches.feeds == {"A": "Q", "B": "P"} and set(matches.moved) == {"A", "B"} and not matches.unseen
    items = [
        SimpleNamespace(name=name, args=argparse.Namespace(rig=rig, drives=()), drive=object())
        for name, rig in (("A", "P"), ("B", "Q"))
    ]
    fleet.take(items, matches, Progress(True))
    assert [item.args.rig for item in items] == ["Q", "P"]


@pytest.mark.parametrize("seed", range(20))
def test_rigs_given_as_they_are_stay(monkeypatch, seed):
    names = [f"drive{n}" for n in range(8)]
    rigs = fed(monkeypatch, {f"P{n}": name for n, name in enumerate(names)}, seed)
    given = {name: f"P{n}" for n, name in enumerate(names)}
    matches = matching.match(named(given), rigs, random.Random(seed))
    assert matches.feeds == given and not matches.moved and not matches.unseen


def test_rig_of_a_drive_that_another_rig_was_given_to_is_an_error(monkeypatch):
    rigs = fed(monkeypatch, {"P": "B", "Q": "nothing"}, 1)
    with pytest.raises(UsageError, match="one rig for each drive"):
        matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(1))
    rigs = fed(monkeypatch, {"P": "A", "Q": "A"}, 1)
    with pytest.raises(UsageError, match="one rig for each drive"):
        matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(1))


def test_drive_that_shows_its_signature_a_try_later_is_found(monkeypatch):
    """The first look shows one of two drives alone, on the rig that was given to the other."""
    rigs = fed(monkeypatch, {"P": "B", "Q": "A"}, 3)
    real, tries = matching._played, []

    def once_hidden(drives, patterns):
        tries.append(1)
        played = real(drives, patterns if len(tries) > 1 else [patterns[0], (False,) * SLOTS])
        return played | {"B": played["A"]} if len(tries) == 1 else played

    monkeypatch.setattr(matching, "_played", once_hidden)
    matches = matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(3))
    assert matches.feeds == {"A": "Q", "B": "P"} and len(tries) == 2


def shown(feeds, shows_at, counted):
    """One try after the other: what each drive's looks at each rig are, where a drive shows from its try on."""
    for number in itertools.count(1):
        yield {
            (name, rig, "5V"): chance(1 / 2704156 if on == name and number >= shows_at[name] else 0.5)
            if number in counted
            else pairing.Look(None, None, None, None, 3, 3, 1e9, decides=False, p_asked=0.5)
            for rig, on in feeds.items()
            for name in shows_at
        }


@pytest.mark.parametrize("counted", [(1, 2), (1, 3), (2, 4), (3, 4), (1, 4), (4,), ()])
@pytest.mark.parametrize(
    "feeds", [{"P": "B", "Q": "A"}, {"P": "A", "Q": "B"}, {"P": "B", "Q": ""}, {"P": "A", "Q": ""}]
)
@pytest.mark.parametrize("a, b", [*itertools.product(range(1, 6), repeat=2)])
def test_match_raises_after_the_last_try_only(a, b, feeds, counted):
    """Whenever a drive shows first, and whichever tries count: what is found is right, and what is refused was tried
    to the end."""
    tries = 0

    def look():
        nonlocal tries
        tries += 1
        return next(looks)

    looks = shown(feeds, {"A": a, "B": b}, counted)
    most = counted[1] if len(counted) > 1 else pairing.TRIES
    at = {name: [n for n in counted if n >= since and n <= most] for name, since in (("A", a), ("B", b))}
    seen = {on: rig for rig, on in feeds.items() if on and at[on]}
    try:
        matches = matching.matched_by(named({"A": "P", "B": "Q"}), list(feeds), look)
    except UsageError:
        assert tries == most and len(seen) == 1 and seen.items() <= {("A", "Q"), ("B", "P")}
    else:
        assert matches.feeds == seen and (tries == most or not matches.unseen)


def test_drive_that_no_rig_shows_keeps_the_rig_that_was_given(monkeypatch):
    rigs = fed(monkeypatch, {"P": "A", "Q": "nothing"}, 1)
    matches = matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(1))
    assert matches.feeds == {"A": "P"} and matches.unseen == ("B",) and not matches.moved


def test_drives_of_a_busy_host_are_tried_again(monkeypatch):
    rigs = fed(monkeypatch, {"P": "B", "Q": "A"}, 3)
    real, tries = matching._played, []

    def starved(drives, patterns):
        tries.append(1)
        played = real(drives, patterns if len(tries) == 3 else [(False,) * SLOTS for _ in drives])
        late = bursts.Played(0, 1, (BYTES,) * SLOTS)
        return dict.fromkeys(played, late) if len(tries) < 3 else played

    monkeypatch.setattr(matching, "_played", starved)
    matches = matching.match(named({"A": "P", "B": "Q"}), rigs, random.Random(3))
    assert matches.feeds == {"A": "Q", "B": "P"} and len(tries) == 3


def chance(p: float, bursts: int = 12, rests: int = 12, p_asked: float | None = None) -> pairing.Look:
    return pairing.Look(p, 0.1, 0.1, 0.01, bursts, rests, 1e9, p_asked=p_asked)


def test_all_chances_together_are_wrong_with_at_most_alpha():
    """Looks at a rail that knows nothing of the pattern: p is even in 0 to 1. ALPHA is made large to be counted."""
    source, limit, tries = random.Random(5), 0.05, 40_000
    looks = lambda: [chance(source.random(), p_asked=source.random()) for _ in range(pairing.TRIES)]
    wrong = sum(pairing.fits(looks(), limit) for _ in range(tries))
    assert 0.5 * limit < wrong / tries <= limit * (1 + 4 / (limit * tries) ** 0.5)


@pytest.mark.parametrize("drives", [1, 3, 24])
def test_two_perfect_looks_pair_each_of_many_drives(drives):
    assert pairing.fits([chance(1 / 2704156)] * 2, ALPHA / drives**2)


def test_too_few_slots_are_unknown_and_no_other_drive():
    """7 bursts and 7 rests have 3432 patterns: one look of them proves nothing, two do."""
    few = chance(0.5, 7, 7)
    assert pairing.verdict([[few]])[0] == UNKNOWN and pairing.verdict([[few], [few]])[0] == NOT_PAIRED
    sure = chance(1 / 3432, 7, 7)
    assert pairing.verdict([[sure], [sure]])[0] == PAIRED


def test_the_share_of_patterns_is_exact():
    """By counting all 12 870 patterns of eight and eight, with equal slots among them."""
    source = random.Random(4)
    for _ in range(5):
        high, low = (np.array([source.randrange(6) + shift for _ in range(8)], float) for shift in (1, 0))
        values = np.concatenate([high, low])
        ranks = np.array([(values < one).sum() + ((values == one).sum() + 1) / 2 for one in values])
        sums = [sum(chosen) for chosen in itertools.combinations(ranks, 8)]
        p, _ = pairing._ranked(high, low)
        assert p == pytest.approx(np.mean(np.array(sums) >= ranks[:8].sum() - 1e-9))


@pytest.mark.parametrize("feeds", [True, False])
def test_a_busy_host_on_which_no_slot_counts_is_told_from_another_drive(feeds):
    """The I/O of a burst ends in the rest behind it: no rest counts. The rail shows the bursts all the same, less."""
    source, tries = random.Random(9), []
    for _ in range(pairing.TRIES):
        slots = pairing.pattern(source)
        shown = slots if feeds else pairing.pattern(source)
        watts = [0.5 + 0.002 * slot + source.gauss(0, 0.001) for slot in shown]
        tries.append([look(slots, watts, [BYTES] * SLOTS)])
        assert tries[-1][0].p is None
    assert pairing.verdict(tries)[0] == (PAIRED if feeds else UNKNOWN)


class Clock:
    """Of one thread: it passes while that sleeps or reads."""

    def __init__(self):
        self.ns = 0
        self.monotonic = time.monotonic

    def monotonic_ns(self):
        return self.ns

    def sleep(self, seconds):
        self.ns += round(seconds * 1e9)
        time.sleep(0)


def test_no_io_begins_right_before_a_rest(monkeypatch):
    clock, begun, drive = Clock(), [], Memory()
    monkeypatch.setattr(drive, "read", lambda offset, length: begun.append(clock.ns) or clock.sleep(0.001))
    monkeypatch.setattr(bursts, "THREADS", 1)
    monkeypatch.setattr(bursts, "time", clock)
    played = bursts.play(lambda write: drive, (True, True, False, True), 0.2, 1 << 30)
    into = [(at_ns - played.begin_ns) / played.slot_ns for at_ns in begun]
    assert not [at for at in into if 2 - bursts.LAST < at < 3]
    assert [at for at in into if 0.9 < at < 1] and [at for at in into if 3.9 < at < 4]


@pytest.mark.parametrize(
    "period_ms, bound_ms, slot_s", [(1.1, 0, 0.2), (20, 14, 0.2), (100, 10, 0.75), (50, 100, 1.0), (1000, 0, 2.5)]
)
def test_slots_are_as_long_as_a_slow_meter_needs(period_ms, bound_ms, slot_s):
    hello = {"stamp_ns": bound_ms * 1_000_000, "rails": [{"conversion_ns": period_ms * 1_000_000}]}
    assert signature.slot_s(hello) == pytest.approx(slot_s) and signature.slot_s({}) == pairing.SLOT_S
