"""The plans of a review: which there are, and the order that drive state makes short (plan/history.py,
run/review/order.py). Pure, on plans made here."""

from dataclasses import replace

import pytest
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.plan import expand, grammar, headline, history, reviews, shows, state
from ssdrig.run import prepare, standing
from ssdrig.run.budget import Budget
from ssdrig.run.review import order, perform
from ssdrig.run.review.order import Item

ALL = frozenset({"purge", "trim", "rig", "nand-counter", "write-cache"})


def load(name, ends, read=0, block="4 KiB", more=""):
    return (
        f'[[step]]\nname = "{name}"\ndo = "load"\npattern = "random"\nread = {read}\nblock = "{block}"\nqd = 32\n'
        f"{ends}\n{more}\n"
    )


def shown(name):
    return f'[[show]]\nview = "series"\nof = "{name}"\nvalue = "iops"\n'


UNTIL = 'until = [{ steady = "pts", value = "iops", record = "60 s" }, { time = "6 h" }]'
# a test that ends in the steady state which the other one begins with
STEADY = FILLED + load("load", UNTIL) + shown("load")
BEGINS = FILLED + load("before", UNTIL.replace("6 h", "2 h")) + load("reads", 'time = "10 s"', 100) + shown("reads")
FIRST = '[[step]]\nname = "idle"\ndo = "idle"\ntime = "5 s"\n'


def item(tmp_path, name, text, drive=DRIVE):
    path = tmp_path / f"{name}.toml"
    path.write_text(HEAD + text)
    return Item(name, str(path), None, {}, prepare.prepare(str(path), drive, capabilities=ALL))


def names(items):
    return [entry.name for entry in items]


def test_a_plan_comes_after_the_one_that_leaves_what_it_needs(tmp_path):
    other = FILLED + load("load", 'time = "10 s"', block="8 KiB") + shown("load")
    given = [item(tmp_path, *words) for words in (("begins", BEGINS), ("other", other), ("steady", STEADY))]
    arranged = order.arranged(given)
    assert names(arranged) == ["other", "steady", "begins"] and arranged[2].leaves_out == 3
    assert arranged[2].after == "steady" and arranged[0].after is None
    whole, short = given[0].prepared.cost, arranged[2].shortened.cost
    assert short.written_bytes == (0, 0) < whole.written_bytes and short.time_s[1] < whole.time_s[1] / 10
    assert order.total(arranged).time_s[1] == pytest.approx(sum(entry.shortened.cost.time_s[1] for entry in arranged))


def test_what_only_reads_passes_on_what_it_found(tmp_path):
    writes = BEGINS.replace("read = 100", "read = 50").replace("reads", "mixed")
    given = [item(tmp_path, *words) for words in (("a", writes), ("b", BEGINS), ("steady", STEADY))]
    arranged = order.arranged(given)
    assert [(entry.name, entry.leaves_out) for entry in arranged] == [("steady", 0), ("b", 3), ("a", 3)]
    assert [entry.leaves_out for entry in order.chained([given[2], given[0], given[1]])] == [0, 3, 0]


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (STEADY.replace('"4 KiB"', '"8 KiB"'), "other writes"),
        (STEADY.replace(UNTIL, 'time = "60 s"'), "no rule has shown it"),
        (STEADY + '[[step]]\nname = "rest"\ndo = "idle"\ntime = "61 s"\n', "a rest"),
        (STEADY + '[[step]]\nname = "rest"\ndo = "idle"\ntime = "9 s"\n', "a short rest: work in the background"),
        (
            STEADY + '[[step]]\nname = "rest"\ndo = "idle"\ntime = "61 s"\n' + load("reads", 'time = "1 s"', 100),
            "a rest, and reads after it",
        ),
        (STEADY + load("more", 'time = "1 s"', 50), "writes since"),
        (STEADY + '[[step]]\nname = "trim"\ndo = "trim"\n', "a trim"),
        (FILLED + '[[step]]\nname = "r"\ndo = "repeat"\ntimes = 2\n[[step.step]]\n' + load("x", UNTIL)[9:], "a repeat"),
    ],
)
def test_nothing_is_left_out_where_the_state_is_another(tmp_path, before, why):
    chained = order.chained([item(tmp_path, "one", before), item(tmp_path, "two", BEGINS)])
    assert chained[1].leaves_out == 0, why


def test_a_step_that_a_view_shows_is_never_left_out(tmp_path):
    chained = order.chained([item(tmp_path, "one", STEADY), item(tmp_path, "two", BEGINS + shown("fill"))])
    assert chained[1].leaves_out == 0
    formula = '[[show]]\nview = "figure"\nname = "f"\ntitle = "F"\nformula = "before.iops / reads.iops"\nunit = "%"\n'
    assert order.chained([chained[0], item(tmp_path, "three", BEGINS + formula)])[1].leaves_out == 0


def test_a_fill_is_not_made_twice_where_only_reads_lie_between(tmp_path):
    reads = FILLED + load("reads", 'time = "10 s"', 100) + shown("reads")
    again = reads.replace('name = "fill"', 'name = "written-once"')
    chained = order.chained([item(tmp_path, "one", reads), item(tmp_path, "two", again)])
    assert chained[1].leaves_out == 2
    twice = reads.replace('do = "fill"\n', 'do = "fill"\namount = "2 x"\n')
    assert order.chained([chained[0], item(tmp_path, "three", twice)])[1].leaves_out == 0
    setting = '[[step]]\nname = "cache"\ndo = "set"\nwrite_cache = "off"\n'
    assert order.chained([chained[0], item(tmp_path, "four", setting + reads)])[1].leaves_out == 0, "other settings"


def test_a_rule_that_did_not_hold_leaves_nothing_to_others(tmp_path):
    acts = item(tmp_path, "one", STEADY).prepared.acts
    other = item(tmp_path, "two", BEGINS).prepared
    assert history.may_leave_out(history.left(acts).at_the_end(), other.acts, other.plan) == 3
    assert history.may_leave_out(history.left(acts, {"load"}).at_the_end(), other.acts, other.plan) == 0
    assert history.may_leave_out(history.Left(), other.acts, other.plan) == 0


def test_what_is_left_out_is_said_and_done_where_the_run_must_begin_again(tmp_path):
    prepared = prepare.leave_out(item(tmp_path, "two", BEGINS).prepared, 3, "the run before")
    assert [act.path for act in prepared.acts if not act.not_run] == ["reads"]
    assert prepared.acts[0].not_run == "the drive is written, steady, as the run before has left it"
    header = prepare.header(prepared)
    assert header["plan"]["kept"]["acts"] == 3 and header["plan"]["kept"]["by"] == "the run before"
    acts = tuple(expand.expand(grammar.read(HEAD + BEGINS), DRIVE, ALL))
    done = standing.past(acts, [(header, [{"kind": "run.start"}])])
    assert done.at == 3 and done.state.steady and done.state.workload == "before"
    assert [act.path for act in standing.todo(acts, done, done.state).acts] == ["reads"]
    void = state.interrupted(done.state)
    assert [act.path for act in standing.todo(acts, done, void).acts] == ["purge", "fill", "before", "reads"]


def test_conditions_are_set_in_every_run(tmp_path):
    first = FIRST + '[[step]]\nname = "cache"\ndo = "set"\nwrite_cache = "off"\n'
    plan = item(tmp_path, "x", FILLED.replace("[[step]]", first + "[[step]]", 1) + load("r", 'time = "9 s"', 100))
    acts = prepare.leave_out(plan.prepared, 4, "it").acts
    assert [act.path for act in acts if not act.not_run] == ["cache", "r"]


# full would make the longest traces
@pytest.mark.parametrize("level", ["quick", pytest.param("standard", marks=pytest.mark.slow)])
def test_each_plan_of_the_table_is_one_or_is_said_to_be_missing(level):
    """All that there are run on a large drive of some bench, with the parameters that the table has for this level."""
    large = {**DRIVE, "capacity_bytes": 1 << 38, "raw_nand_bytes": 1 << 38}
    level_items = order.of_level(level, large, frozenset(grammar.CAPABILITIES), "nowhere", 1)
    assert sorted(names(level_items)) == sorted(entry.name for entry in reviews.entries())
    shipped = grammar.shipped()
    for entry in level_items:
        if entry.prepared:
            assert not entry.why and (level != "quick" or entry.prepared.plan.scaled)
        else:
            missing = entry.plan not in shipped
            assert entry.why == "this ssdrig has no such plan yet" if missing else "part of level" in entry.why, entry
    assert [entry for entry in level_items if entry.prepared]
    assert {entry.why_not("full") for entry in reviews.entries()} <= {None, "this ssdrig has no such plan yet"}


def test_the_figures_of_the_library_are_those_of_the_plans():
    """Of each that there is: its step, its window, the keys of its points, its values or facts of its views."""
    for figure in (figure for section in reviews.sections() for figure in section.figures):
        if figure.plan in grammar.shipped():
            plan = grammar.read(*grammar.find(figure.plan))
            step = {step.path: step for step in grammar.every(plan.steps)}[figure.of]
            facts = {fact for _, fact in headline.facts_of(plan.shows, figure.of)}
            axes = shows.steps_of(plan)[1][figure.of]
            assert figure.where.keys() <= axes.keys() and set(figure.value) <= shows.VALUES.keys() | facts, figure
            assert figure.window is None or figure.window in step.keys["windows"]


def test_a_table_that_is_wrong_is_refused():
    good = '[[section]]\ntitle = "A"\nabout = "B"\nplans = [{ plan = "x", level = "quick" }]\n'
    assert reviews.read(good, "t")[0].plans[0].name == "x"
    for bad, words in (
        (good.replace("quick", "slow"), "'slow' of x in t"),
        (good.replace("level", "levle"), "levle in t"),
        (good + good, "x twice in t"),
    ):
        with pytest.raises(UsageError, match=words):
            reviews.read(bad, "t")


def test_the_dry_run_adds_up(tmp_path):
    given = [item(tmp_path, "begins", BEGINS), item(tmp_path, "steady", STEADY)]
    given = [*order.arranged(given), Item("gone", "gone", None, {}, why="no such plan")]
    document = perform.dry_as_json("quick", DRIVE, given, Budget(10**12), 1e12)
    planned = [row for row in document["plans"] if row["why"] is None]
    assert document["written_bytes"] == [sum(row["written_bytes"][i] for row in planned) for i in (0, 1)]
    assert document["share_percent"] == [round(size / 1e10, 4) for size in document["written_bytes"]]
    shortened = document["plans"][1]
    assert shortened["left_out"] == ["purge", "fill", "before"] and shortened["after"] == "steady"
    text = "\n".join(perform.table("quick", DRIVE, given, Budget(10**12), 1e12))
    assert "not again, as steady leaves the drive: purge, fill, before; saves" in text
    assert "not run, no such plan: gone" in text and "% of the rated endurance" in text and "budget: 1.00 TB" in text
    tenfold = [replace(one, prepared=replace(one.prepared, drive={**DRIVE, "time_dilation": 10})) for one in given[:2]]
    hosts = perform.dry_as_json("quick", {**DRIVE, "time_dilation": 10}, tenfold, Budget(None), None)["host_s"]
    assert hosts == pytest.approx([10 * s for s in document["host_s"]], rel=0.01)
