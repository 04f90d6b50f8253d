"""plan/rules/laid.py: what the steps before a load have written, as far as it uses up the spare area."""

import pytest
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.plan.rules import laid
from ssdrig.plan.rules.laid import NOTHING, Laid
from ssdrig.run import prepare

GIB = 1 << 30
LOAD = """[[step]]
name = "{name}"
do = "load"
pattern = "{pattern}"
read = {read}
block = "4 KiB"
amount = "{amount}"
"""


def acts(tmp_path, *steps):
    path = tmp_path / "x.toml"
    path.write_text(HEAD + FILLED + "".join(steps))
    return prepare.prepare(str(path), DRIVE).acts


def load(name, pattern="random", read=0, amount="0.25 x"):
    return LOAD.format(name=name, pattern=pattern, read=read, amount=amount)


STEPS = {
    "rest": '[[step]]\nname = "rest"\ndo = "idle"\ntime = "2 min"\n',
    "short": '[[step]]\nname = "rest"\ndo = "idle"\ntime = "1 min"\n',
    "trim": '[[step]]\nname = "trim"\ndo = "trim"\n',
    "again": '[[step]]\nname = "again"\ndo = "purge"\n',
    "refill": '[[step]]\nname = "refill"\ndo = "fill"\nrange = "25 %"\n',
}


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), (4, 4, 0)),
        ((load("a"),), (5, 4, 1)),
        ((load("a"), load("b", amount="0.5 x")), (7, 4, 3)),
        ((load("a", read=75, amount="1 x"),), (5, 4, 1)),
        ((load("a", read=100),), (4, 4, 0)),
        ((load("a", amount="0.5 x"), load("b", "sequential")), (7, 4, 1)),
        ((load("a"), load("b", "sequential", amount="1 x")), (9, 4, 0)),
        ((load("a"), STEPS["refill"]), (6, 4, 0)),
        ((load("a"), STEPS["rest"]), (5, 4, 0)),
        ((load("a"), STEPS["short"]), (5, 4, 1)),
        ((load("a"), STEPS["trim"]), (5, 0, 0)),
        ((load("a"), STEPS["again"]), (0, 0, 0)),
    ],
)
def test_what_each_step_lays_down(tmp_path, steps, expected):
    """In quarters of the drive."""
    course = laid.course(acts(tmp_path, *steps))
    assert (course.written_bytes, course.valid_bytes, course.churned_bytes) == tuple(GIB // 4 * n for n in expected)


def test_what_was_moved_counts_and_not_what_was_planned(tmp_path):
    *_, last = acts(tmp_path, load("a"))
    assert laid.after(Laid(), last, 1000) == Laid(1000, 0, 1000)


def test_an_assumed_raw_nand_is_not_known():
    before = Laid(3, 2, 1)
    assert laid.spare(before, DRIVE).raw_bytes == GIB
    assert laid.spare(before, DRIVE | {"raw_nand_assumed": True}).raw_bytes is None


def test_what_events_say_last():
    before, at_the_end = Laid(1, 2, 3), Laid(4, 5, 6)
    events = [{"kind": "step.start", "laid": laid.as_json(before)}, {"kind": "step.start"}]
    assert laid.last([]) == NOTHING and laid.last(events) == before
    assert laid.last([*events, {"kind": "laid", **laid.as_json(at_the_end)}]) == at_the_end


@pytest.mark.parametrize("damaged", [None, 3, {}, {"valid_bytes": "1"}, {"valid_bytes": -1}, {"valid_bytes": True}])
def test_what_is_damaged_counts_as_nothing(damaged):
    assert laid.read(damaged) == NOTHING
