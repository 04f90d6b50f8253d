"""The faults of the virtual drive at a cut: how they are given, and what of them can be seen."""

import re

import pytest

from selfcheck import powerloss_recall
from ssdrig.base.errors import UsageError
from ssdrig.powerloss.findings import BY_NAME
from ssdrig.virtual.device import injector, observable, powerfaults
from ssdrig.virtual.device.observable import NEVER, NONE, Change, Read

OLD, NEW, NEWER, ZEROS = b"o" * 4096, b"n" * 4096, b"x" * 4096, bytes(4096)


def test_each_fault_leads_to_classes_that_there_are():
    assert len(powerfaults.FAULTS) == len(powerfaults.BY_NAME) == 24
    for fault in powerfaults.FAULTS:
        assert fault.leads_to and set(fault.leads_to) <= BY_NAME.keys()
        assert powerfaults.settings({fault.name: fault.p})[0][fault.name]["p"] == fault.p


def test_each_fault_is_tried_by_the_bench_and_has_a_model():
    assert [case.fault for case in powerloss_recall.CASES] == [*powerfaults.BY_NAME]
    assert injector.BEFORE_LOSS.keys() | injector.AFTER_LOSS.keys() < powerfaults.BY_NAME.keys()


def test_settings_fill_in_what_is_usual():
    assert powerfaults.settings({}) == ({}, 1)
    given = {"ghost": 0.5, "lying_flush": {}, "map_rollback": {"p": 1, "most": 60}, "seed": 7}
    faults, seed = powerfaults.settings(given)
    assert seed == 7 and list(faults) == ["lying_flush", "map_rollback", "ghost"]
    assert faults["map_rollback"] == {"p": 1, "least": 50, "most": 60} and faults["ghost"] == {"p": 0.5}


@pytest.mark.parametrize(
    "given, seen",
    [
        ([1], "[1]"),
        ({"lying": 1}, "lying"),
        ({"ghost": 2}, "2"),
        ({"ghost": -0.1}, "-0.1"),
        ({"ghost": True}, "True"),
        ({"ghost": "1"}, "'1'"),
        ({"ghost": None}, "None"),
        ({"ghost": float("nan")}, "nan"),
        ({"ghost": {"q": 1}}, "q"),
        ({"dead": {"after": 1.5}}, "1.5"),
        ({"dead": {"after": -1}}, "-1"),
        ({"map_rollback": {"least": 9, "most": 8}}, "9 and 8"),
        ({"seed": -1}, "-1"),
        ({"seed": 1.0}, "1.0"),
    ],
)
def test_what_is_wrong_is_said_in_one_error(given, seen):
    with pytest.raises(UsageError, match=re.escape(f"seen {seen};")):
        powerfaults.settings(given)


def wrong(seen, changes, flush_ns=NONE, base=OLD, blanks=(), keeps_all=False, unknown=(), seen_ns=0, block_bytes=4096):
    changes = [Change(*change) for change in changes]
    how = flush_ns, keeps_all, seen_ns, block_bytes
    return observable.illegal(seen, base, set(unknown), changes, list(blanks), *how)


WRITE = (10, 20, False, False, OLD, NEW)
FUA = (10, 20, True, False, OLD, NEW)
OPEN = (10, NEVER, True, False, OLD, NEW)
TRIM = (10, 20, False, True, OLD, ZEROS)


@pytest.mark.parametrize(
    "seen, changes, how, expected",
    [
        (OLD, [], {}, []),
        (NEW, [], {}, [0]),
        (None, [], {}, [0]),
        (OLD, [WRITE], {}, []),
        (NEW, [WRITE], {}, []),
        (NEWER, [WRITE], {}, [0]),
        (OLD, [FUA], {}, [0]),
        (OLD, [OPEN], {}, []),
        (OLD, [WRITE], {"keeps_all": True}, [0]),
        (OLD, [WRITE], {"flush_ns": 20}, [0]),
        (OLD, [WRITE], {"flush_ns": 19}, []),
        (OLD, [WRITE], {"flush_ns": 20, "seen_ns": 1}, []),
        (NEW, [WRITE, (25, 30, True, False, NEW, NEWER)], {}, [0]),
        (NEW, [WRITE, (25, 30, True, False, NEW, NEWER)], {"seen_ns": 5}, []),
        (NEW, [WRITE, (20, 30, True, False, NEW, NEWER)], {}, []),
        (OLD, [WRITE], {"flush_ns": 20, "unknown": [0]}, [0]),
        (NEWER, [WRITE], {"unknown": [0]}, []),
        (OLD, [TRIM], {"flush_ns": 50}, []),
        (OLD, [TRIM], {"flush_ns": 50, "blanks": [Read(30, 40)]}, [0]),
        (OLD, [TRIM], {"flush_ns": 39, "blanks": [Read(30, 40)]}, []),
        (ZEROS, [TRIM], {"flush_ns": 50, "blanks": [Read(30, 40)]}, []),
        (ZEROS, [FUA, (30, 40, False, True, NEW, ZEROS)], {}, []),
    ],
)
def test_what_no_drive_that_keeps_its_promise_shows(seen, changes, how, expected):
    assert wrong(seen, changes, **how) == expected


def test_each_block_of_a_page_is_judged_by_itself():
    part = b"w" * 512 + OLD[512:]
    change = [(10, 20, True, False, OLD, part)]
    assert wrong(OLD, change, block_bytes=512) == [0]
    assert wrong(part, change, block_bytes=512) == []
    assert wrong(b"w" * 1024 + OLD[1024:], change, block_bytes=512) == [1]
