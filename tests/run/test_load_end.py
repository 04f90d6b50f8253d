"""SMART at the end of a load: read there where the end's time was not known before."""

import contextlib
from types import SimpleNamespace

import pytest
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.plan import expand, grammar
from ssdrig.plan.rules.laid import NOTHING
from ssdrig.run.steps import load

LOAD = '[[step]]\nname = "load"\ndo = "load"\npattern = "random"\nread = 0\nblock = "4 KiB"\nsmart = "edges"\n'
STEADY = 'until = [{ steady = "pts", value = "iops" }, { time = "60 s" }]\n'


@pytest.mark.parametrize(
    ("end", "lasted_s", "at_end"),
    [
        ('amount = "1 x"\n', 7, True),
        ('time = "60 s"\n', 60, False),
        (STEADY, 60, False),
        (STEADY, 30, True),
        ('smart = "none"\namount = "1 x"\n', 7, None),
    ],
)
def test_the_end_of_a_load_is_read_where_none_was_timed(end, lasted_s, at_end):
    words = LOAD.replace('smart = "edges"\n', "") if "smart" in end else LOAD
    *_, act = expand.expand(grammar.read(HEAD + FILLED + words + end), DRIVE, frozenset({"purge"}))
    polls, seconds = [], SimpleNamespace(totals={"runtime_ms": 1000 * lasted_s})
    stage = SimpleNamespace(
        bench=SimpleNamespace(check=lambda: None, drive=DRIVE, fio_target="/dev/null"),
        live=SimpleNamespace(poll_smart=polls.append, cold_s=lambda: None),
        stop=SimpleNamespace(second_raises=contextlib.nullcontext),
        book=SimpleNamespace(event=lambda kind, **fields: None),
        fio=lambda *_: SimpleNamespace(bytes=4096, seconds=seconds),
        next_seed=lambda: 1,
        dilation=1,
        round=None,
        laid=NOTHING,
    )
    load.carry_out(act, stage, 1)
    assert polls == ([] if at_end is None else ["before", "edge"] if at_end else ["before"])
