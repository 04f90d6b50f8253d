"""run/standing.py: what is done of a run that was cut short, and what is to be done."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdrig.plan import expand, grammar, state
from ssdrig.plan.state import UNKNOWN, State
from ssdrig.run import standing

EXAMPLES = Path(__file__).parents[2] / "schemas/examples/plan"
DRIVE = {"capacity_bytes": 1 << 30, "raw_nand_bytes": 1 << 30, "logical_block_bytes": 4096}
ALL = frozenset({"purge", "trim"})


def acts_of(name, variant="quick", **sets):
    text, where = grammar.find(name)
    return tuple(expand.expand(grammar.read(text, where, variant, sets), DRIVE, ALL))


def of_text(steps):
    head = 'schema = 1\nname = "x"\ntitle = "x"\nsource = "x"\nabout = "x"\n'
    return tuple(expand.expand(grammar.read(head + steps), DRIVE, ALL))


def recorded(acts, rounds=5):
    """The events of an unbroken run whose repeats are steady after `rounds`."""
    events = [{"kind": "run.start"}, *one("check")]
    done = set()
    for act in acts:
        if not act.repeat:
            events += one(act)
        elif act.repeat.path not in done:
            done.add(act.repeat.path)
            inside = [a for a in acts if a.repeat == act.repeat]
            most = rounds if act.repeat.until else act.repeat.most
            for number in range(act.repeat.first, act.repeat.first + most):
                for member in inside:
                    events += one(member, number)
                if act.repeat.until:
                    steady = number == act.repeat.first + most - 1
                    events.append({"kind": "round", "step": act.repeat.path, "round": number, "steady": steady})
    return [*events, *one("teardown"), {"kind": "run.end", "state": "complete", "why": None}]


def one(act, number=None):
    if isinstance(act, str):
        return [{"kind": "step.start", "step": act}, {"kind": "step.end", "step": act, "ok": True}]
    if act.not_run:
        return [{"kind": "not_run", "step": act.path, "label": act.label, "why": act.not_run}]
    more = {"round": number} if number else {}
    more |= {"point": dict(act.point)} if act.point else {}
    first = [{"kind": "load.first_io", "step": act.path}] if act.do in ("fill", "load") else []
    return [
        {"kind": "step.start", "step": act.path, **more},
        *first,
        {"kind": "step.end", "step": act.path, "ok": True, **more, "bytes": 1},
    ]


def upto(events, kind, step, number=None, **point):
    """The events up to one of them, itself included."""
    for i, event in enumerate(events):
        right = event["kind"] == kind and event.get("step") == step and event.get("round") == number
        if right and all(event.get("point", {}).get(key) == value for key, value in point.items()):
            return events[: i + 1]
    raise AssertionError((kind, step))


def go_on(acts, events, powered=True):
    past = standing.past(acts, [({}, events)])
    return past, standing.todo(acts, past, state.interrupted(past.state, powered))


PTS = acts_of("pts-iops")
CONSISTENCY = acts_of("consistency")
TRIM = acts_of("trim-validation")
LAT = acts_of("pts-lat")
POINTS = acts_of(str(EXAMPLES / "good-operating-points.toml"), None)


@pytest.mark.parametrize(
    ("acts", "cut", "begins", "number"),
    [
        (PTS, ("step.start", "check"), "purge", 1),
        (PTS, ("step.start", "purge"), "purge", 1),
        (PTS, ("step.end", "purge"), "wipc", 1),
        (PTS, ("step.start", "wipc"), "purge", 1),  # half a fill is not a purged drive
        (PTS, ("step.end", "wipc"), "rounds", 1),
        (PTS, ("step.start", "rounds/point", 1), "rounds", 1),
        (PTS, ("step.start", "rounds/point", 3), "rounds", 3),
        (PTS, ("round", "rounds", 2), "rounds", 3),
        (PTS, ("round", "rounds", 4), "rounds", 5),
        (PTS, ("round", "rounds", 5), None, 1),
        (CONSISTENCY, ("step.start", "load"), "purge", 1),  # a second load does not follow on a fill
        (CONSISTENCY, ("step.end", "fill"), "load", 1),
        (CONSISTENCY, ("step.end", "load"), "flush", 1),
        (TRIM, ("step.start", "dirty"), "purge", 1),
        (TRIM, ("step.end", "torture"), "dirty", 1),
        (TRIM, ("step.start", "trim"), "purge", 1),
        (TRIM, ("step.end", "trim"), "after", 1),
        (TRIM, ("step.end", "clean"), "fill", 1),
        # what is measured in the steady state is measured in a new one, which its own rounds make
        (LAT, ("round", "rounds", 4), "rounds", 5),
        (LAT, ("round", "rounds", 5), "rounds", 6),
        (LAT, ("step.start", "histogram"), "rounds", 6),
        (POINTS, ("round", "demand", 5), "demand", 6),
        (POINTS, ("step.end", "pick"), "demand", 6),
        (POINTS, ("step.start", "histograms/histogram", 1), "demand", 6),
        (POINTS, ("step.end", "histograms/histogram", 1), "demand", 6),
    ],
)
def test_a_run_goes_on_where_its_state_allows(acts, cut, begins, number):
    past, todo = go_on(acts, upto(recorded(acts), *cut))
    if begins is None:
        assert todo.acts == () and past.at == len(acts)
        return
    first = acts[todo.begins]
    assert (first.repeat.path if first.repeat else first.path, todo.round) == (begins, number)
    state.prove(todo.acts, todo.state)


@pytest.mark.slow
@pytest.mark.parametrize(("done", "last"), [(4, 25), (19, 25), (20, 26), (24, 30)])
def test_a_round_that_preconditions_and_five_new_ones_follow_on_an_interruption(done, last):
    past, todo = go_on(PTS, upto(recorded(PTS, 25), "round", "rounds", done))
    assert past.rounds == done and past.cut is None
    assert [act.path for act in todo.acts if not act.repeat] == ["cache"], "a part says, too, what could not be set"
    (repeat,) = {act.repeat for act in todo.acts if act.repeat}
    # rounds count over the parts, but there are always those that the rule needs
    assert (repeat.first, repeat.judged, repeat.least, repeat.last) == (done + 1, done + 2, 6, last)
    assert any("steady" in words for words in todo.redone) and not todo.state.steady
    resumed = {"resumed": {"begins": todo.begins, "round": todo.round, "state": asdict(todo.state)}}
    events = [event for event in recorded(todo.acts, last - done) if event["kind"] != "run.end"]
    unsteady = [event | {"steady": False} if event["kind"] == "round" else event for event in events]
    parts = [({}, upto(recorded(PTS, 25), "round", "rounds", done)), (resumed, unsteady)]
    assert standing.past(PTS, parts).at == len(PTS)  # never steady, and over
    parts[1] = (resumed, upto(unsteady, "round", "rounds", last - 1))
    assert standing.past(PTS, parts).rounds == last - 1


def test_a_steady_state_that_was_cut_short_is_had_again_in_each_part():
    """`pts-lat`, killed in its histogram, then before a round of the next part, then in the histogram again."""
    events = recorded(LAT, 7)
    past, todo = go_on(LAT, upto(events, "step.start", "histogram"))
    assert past.was_steady and todo.redone == (
        "histogram, which was cut short",
        "the steady state of rounds: a round that preconditions, then five new ones",
    )
    (repeat,) = {act.repeat for act in todo.acts if act.repeat}
    assert (repeat.first, repeat.judged, repeat.least, todo.acts[-1].path) == (8, 9, 6, "histogram")
    parts = [({}, upto(events, "step.start", "histogram"))]
    for begun, ends, following in ((8, 13, 14), (14, 19, 20)):
        resumed = {"resumed": {"begins": todo.begins, "round": todo.round, "state": asdict(todo.state)}}
        none = standing.past(LAT, [*parts, (resumed, [])])
        again = standing.todo(LAT, none, state.interrupted(none.state))
        assert (none.rounds, again.begins, again.round) == (begun - 1, todo.begins, begun)
        parts.append((resumed, upto(recorded(todo.acts, 6), "round", "rounds", ends)))
        past = standing.past(LAT, parts)
        todo = standing.todo(LAT, past, state.interrupted(past.state))
        assert todo.round == following and past.was_steady


SWEEP = """[[step]]
name="f"
do="fill"
[[step]]
name="r"
do="repeat"
most=9
until=[{steady="pts",track=["iops"]}]
[[step.step]]
name="l"
do="load"
pattern="random"
read=0
block="4 KiB"
time="1 s"
"""
LOAD = '[[step]]\nname="%s"\ndo="load"\npattern="%s"\nread=%d\nblock="4 KiB"\ntime="1 s"\n'


@pytest.mark.parametrize(
    ("more", "cut", "begins", "number"),
    [
        (LOAD % ("a", "random", 0) + LOAD % ("b", "random", 0), ("step.end", "a"), "r", 6),
        (LOAD % ("a", "random", 0) + LOAD % ("b", "random", 100), ("step.start", "b"), "r", 6),
        (LOAD % ("a", "sequential", 0), ("step.start", "a"), "f", 1),  # not what a round leaves
        (LOAD % ("a", "sequential", 0) + LOAD % ("b", "random", 0), ("step.start", "b"), "f", 1),
        (
            (LOAD % ("a", "random", 0)).replace('time="1 s"', 'amount="1 x"\nresume="continue"'),
            ("step.start", "a"),
            "r",
            6,
        ),
        ('[[step]]\nname="i"\ndo="idle"\ntime="2 min"\n' + LOAD % ("a", "random", 0), ("step.end", "i"), "a", 1),
        ('[[step]]\nname="i"\ndo="idle"\ntime="5 s"\n' + LOAD % ("a", "random", 0), ("step.end", "i"), "r", 6),
    ],
)
def test_what_follows_on_a_steady_state_without_a_rest_wants_it_again(more, cut, begins, number):
    acts = of_text(SWEEP + more)
    _, todo = go_on(acts, upto(recorded(acts), *cut))
    first = acts[todo.begins]
    assert (first.repeat.path if first.repeat else first.path, todo.round) == (begins, number)


def test_a_load_that_a_rule_ends_is_done_again_for_what_follows_on_it():
    rule = LOAD.replace('time="1 s"', 'until=[{steady="pts",value="iops"},{time="1 h"}]') % ("l", "random", 0)
    acts = of_text('[[step]]\nname="f"\ndo="fill"\n' + rule + LOAD % ("a", "random", 0) + LOAD % ("b", "random", 0))
    for cut in (("step.end", "l"), ("step.start", "a"), ("step.end", "a"), ("step.start", "b")):
        assert go_on(acts, upto(recorded(acts), *cut))[1].begins == 0, cut


def test_a_repeat_of_so_many_times_goes_on_with_the_rest_of_them():
    acts = of_text(
        '[[step]]\nname="p"\ndo="purge"\n[[step]]\nname="f"\ndo="fill"\n[[step]]\nname="r"\ndo="repeat"\ntimes=4\n'
        '[[step.step]]\nname="l"\ndo="load"\npattern="random"\nread=0\nblock="4 KiB"\ntime="1 s"\n'
        '[[step]]\nname="i"\ndo="idle"\ntime="5 s"\n'
    )
    events = recorded(acts)
    _, todo = go_on(acts, upto(events, "step.start", "r/l", 3))
    (repeat,) = {act.repeat for act in todo.acts if act.repeat}
    assert (repeat.first, repeat.last, repeat.least) == (3, 4, 2) and [a.path for a in todo.acts] == ["r/l", "i"]
    _, todo = go_on(acts, upto(events, "step.end", "r/l", 4))
    assert [act.path for act in todo.acts] == ["i"]
    # and once more: the part's own rounds go on from 3
    header = {"resumed": {"begins": 2, "round": 3, "state": asdict(State("written", 1 << 30, "r/l"))}}
    more = [e for e in events if e.get("round") == 3]
    past = standing.past(acts, [({}, upto(events, "step.start", "r/l", 3)), (header, more)])
    assert (past.at, past.rounds, past.jobs) == (2, 3, 5)


def test_what_says_plan_begins_anew_and_what_says_continue_goes_on():
    load = '[[step]]\nname="l"\ndo="load"\npattern="random"\nread=0\nblock="4 KiB"\namount="1 x"\n'
    before = '[[step]]\nname="p"\ndo="purge"\n[[step]]\nname="f"\ndo="fill"\n'
    for word, begins in (("plan", 0), ("restart", 0), ("continue", 2)):
        acts = of_text(before + load + f'resume="{word}"\n')
        past = standing.past(acts, [({}, upto(recorded(acts), "step.start", "l"))])
        todo = standing.todo(acts, past, past.state, (), 5000)
        assert todo.begins == begins, word
        assert todo.acts[-1].amount_bytes == (1 << 30) - (4096 if word == "continue" else 0)


def test_a_foreign_write_voids_everything():
    events = upto(recorded(PTS), "round", "rounds", 4)
    past = standing.past(PTS, [({}, events)])
    now = state.foreign(past.state, 10**9, 2 * 10**9, 512_000)
    assert now == UNKNOWN
    todo = standing.todo(PTS, past, now, ["a foreign write"])
    assert todo.begins == 0 and {act.repeat.first for act in todo.acts if act.repeat} == {1}


def test_what_a_plan_reads_and_nobody_knows_to_be_there_is_written_again():
    acts = of_text(
        '[[step]]\nname="f"\ndo="fill"\n[[step]]\nname="i"\ndo="idle"\ntime="1 s"\n'
        '[[step]]\nname="l"\ndo="load"\npattern="random"\nread=100\nblock="4 KiB"\ntime="1 s"\n'
    )
    past = standing.past(acts, [({}, upto(recorded(acts), "step.end", "i"))])
    assert standing.todo(acts, past, past.state).begins == 2
    assert standing.todo(acts, past, UNKNOWN).begins == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_prefix_of_a_run_and_of_its_parts_can_go_on(data):
    acts = data.draw(st.sampled_from([PTS, CONSISTENCY, TRIM, LAT, POINTS]))
    parts, header = [], {}
    todo_acts = acts
    for _ in range(data.draw(st.integers(1, 3))):
        events = recorded(todo_acts, data.draw(st.sampled_from([5, 7])))
        cut = data.draw(st.integers(0, len(events)))
        parts.append((header, events[:cut]))
        past = standing.past(acts, parts)
        now = data.draw(
            st.sampled_from(
                [state.interrupted(past.state), state.interrupted(past.state, False), UNKNOWN, replace(past.state)]
            )
        )
        todo = standing.todo(acts, past, now)
        if not todo.acts:
            assert past.at == len(acts)
            return
        state.prove(todo.acts, todo.state)
        assert past.at >= todo.begins and todo.state == now
        steady = {act.label for act, before in zip(acts, state.course(acts), strict=False) if before.steady}
        for act, before in zip(todo.acts, state.course(todo.acts, now), strict=False):
            assert before.steady or act.do != "load" or act.label not in steady
        if acts[todo.begins].repeat and todo.begins:
            assert now.valid_bytes == 1 << 30
        for act in todo.acts:  # one that preconditions and five new rounds, always
            if act.repeat and act.repeat.until:
                assert act.repeat.least == 5 if act.repeat.judged == 1 else act.repeat.least >= 6
                assert act.repeat.first == 1 or act.repeat.judged > act.repeat.first
        todo_acts = todo.acts
        header = {"resumed": {"begins": todo.begins, "round": todo.round, "state": asdict(todo.state)}}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10**6), max_size=40))
def test_events_in_any_order_raise_nothing(order):
    events = recorded(TRIM)
    past = standing.past(TRIM, [({}, [events[i % len(events)] for i in order])])
    todo = standing.todo(TRIM, past, state.interrupted(past.state))
    assert {act.path for act in todo.acts} <= {act.path for act in TRIM}
    state.prove(todo.acts, todo.state)
