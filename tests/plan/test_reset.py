"""Plans for zoned drives, and plans for others on them."""

import pytest
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.load import ceiling, fiojob
from ssdrig.plan import expand, grammar, kinds, state
from ssdrig.run import keeping, prepare

CAN = frozenset({"purge", "trim", "player", "zoned", "cut"})
ZONED = {**DRIVE, "interface": "NVMe", "zoned": expand.HOST_MANAGED}
NEEDS = 'needs = ["zoned"]\n'
LOAD = '[[step]]\nname = "load"\ndo = "load"\npattern = "random"\nblock = "4 KiB"\ntime = "5 s"\n'


def acts(text, drive=ZONED, can=CAN):
    return expand.expand(grammar.read(HEAD + text), drive, can)


def shipped(name, drive, can):
    return expand.expand(grammar.read(*grammar.find(name)), drive, can)


@pytest.mark.parametrize("name", [name for name in grammar.shipped() if name != "zones"])
def test_plan_for_other_drives_is_refused_on_a_zoned_one(name):
    with pytest.raises(UsageError) as error:
        shipped(name, ZONED, CAN | set(grammar.CAPABILITIES))
    assert "zoned" in error.value.expected


def test_zoned_plan_is_refused_on_another_drive():
    with pytest.raises(UsageError) as error:
        shipped("zones", DRIVE, CAN - {"zoned"})
    assert "zoned" in error.value.seen


@pytest.mark.parametrize(
    "text",
    [
        NEEDS + '[[step]]\nname = "fill"\ndo = "fill"\n',
        NEEDS + LOAD + "read = 0\n",
        NEEDS + LOAD + "read = 50\nzones = 2\n",
        NEEDS + '[[step]]\nname = "trim"\ndo = "trim"\n',
    ],
)
def test_write_beside_the_write_pointers_is_refused(text):
    with pytest.raises(UsageError) as error:
        acts(text)
    assert "write pointers" in error.value.expected


def test_zones_are_filled_written_and_reset():
    made = shipped("zones", ZONED, CAN)
    assert [act.do for act in made[:2]] == ["reset", "fill"] and made[-1].do == "reset"
    assert keeping.writes(made[:1]) and state.prove(made).name == "trimmed"
    loads = [act for act in made if act.do == "load"]
    assert {act.keys["zones"] for act in loads[1:]} == {1, 2, 4, 8}
    text = fiojob.job_file(kinds.KINDS["load"].job(loads[0], "/proc/1/fd/5", 1, 1, "NVMe"))
    assert "zonemode=zbd\nmax_open_zones=1\n" in text


def test_ceiling_of_a_zoned_load_is_of_a_target_without_zones():
    load = next(act for act in shipped("zones", ZONED, CAN) if act.do == "load")
    (shape,) = ceiling.shapes("load", load.keys)
    assert "zonemode" not in fiojob.job_file(ceiling.job(shape, False))


def test_conventional_drive_keeps_its_plans(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(HEAD + FILLED)
    for zoned in ("none", "host-aware"):
        prepared = prepare.prepare(str(path), {**DRIVE, "zoned": zoned}, capabilities=CAN)
        assert [act.do for act in prepared.acts] == ["purge", "fill"]
