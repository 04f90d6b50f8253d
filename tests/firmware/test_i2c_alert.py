"""firmware/i2c_fifo.py, its very source on CPython: edges of ALERT that are no conversion's."""

import ast
from types import SimpleNamespace

import pytest
from simboard import ROOT
from test_i2c_fifo import ALERT, DATA_CMD, SAMPLE, TORN, bus_of, fifo

__all__ = ["fifo"]  # the fixture


def test_an_edge_with_alert_high_is_no_conversions(fifo):
    """Nothing is read for it and the stamp of an edge that waits stays; it tears what is being read, which a conversion
    may have come into, but what has been read stays whole. They are counted, by the lane."""
    _, block = fifo
    bus, _ = bus_of(fifo)
    lane, other = bus.lanes
    block.high = 1 << ALERT
    block.now = 100
    lane.interrupt(None)
    assert block.trace == [] and not lane.waits() and lane.mem[lane.base + 16] == 1
    block.high = 0
    other.interrupt(None)
    block.now = 110
    lane.interrupt(None)  # waits for the bus
    block.now, block.high = 150, 1 << ALERT
    lane.interrupt(None)
    block.received = [1] * 8
    assert other.take() == SAMPLE
    block.received = [2] * 8
    lane.interrupt(None)
    assert lane.take() == SAMPLE and lane.mem[lane.slot + 1] == 110
    lane.done()
    block.high = 0
    lane.interrupt(None)
    block.high = 1 << ALERT
    lane.interrupt(None)
    block.received = [3] * 8
    assert lane.take() == SAMPLE | TORN and not lane.waits()
    assert lane.mem[lane.base + 16] == 4
    lane.restart(500)
    assert lane.mem[lane.base + 16] == 0


def test_a_script_has_begun_with_its_first_command(fifo):
    """What tears it is when CURRENT is read; the other ten commands take 10 us to hand over. Counted with them, one
    sample behind an INA228's accumulators at 4273/s was given up now and then on the emulated RP2040."""
    _, block = fifo
    bus, _ = bus_of(fifo)
    lane = bus.lanes[0]
    lane.restart(40)
    handed = type(block).__setitem__

    class Slow(type(block)):
        def __setitem__(self, word, value):
            handed(self, word, value)
            self.now += 4 * word == DATA_CMD

    block.__class__ = Slow
    for wait_us, kind in ((40, SAMPLE), (41, SAMPLE | TORN)):
        stamp = block.now
        bus.mem[0] = 1  # LOCK
        lane.interrupt(None)
        bus.mem[0] = 0
        block.now = stamp + wait_us
        bus.poll()
        block.now += 400
        block.received = [1] * 8
        assert lane.take() == kind
        lane.done()


def stopped(lane: SimpleNamespace, stop_sampler) -> list[str]:
    """rig.Rig.stop, its very source: what it says."""
    module = ast.parse((ROOT / "firmware/rig.py").read_text())
    (rig,) = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Rig")
    (stop,) = (node for node in rig.body if isinstance(node, ast.FunctionDef) and node.name == "stop")
    named = {}
    exec(compile(ast.Module([stop], []), "rig.py", "exec"), named)
    logs, calls = [], []
    sampler = SimpleNamespace(stop=stop_sampler, lane=lane)
    switch = SimpleNamespace(stop=lambda: calls.append("switch"))
    board = SimpleNamespace(switch=switch, fast=None, samplers=[sampler], log=lambda _, words: logs.append(words))
    named["stop"](board)
    assert calls == ["switch"] and board.streaming is False
    return logs


@pytest.mark.parametrize("before", [0, 2])
def test_a_conversion_that_ends_while_its_chip_is_put_to_sleep_is_no_interference(before):
    """The chip lets go of ALERT as it is put to sleep, so the edge of that moment finds it high. Three rails on the
    emulated RP2040 said so at 2 of 40 stops."""
    count = [before]

    def asleep():
        count[0] += 1

    logs = stopped(SimpleNamespace(interference=lambda: count[0], unseen=0), asleep)
    assert count == [before + 1] and [words.split()[0] for words in logs] == [str(before)] * bool(before)


@pytest.mark.parametrize("unseen", [0, 3])
def test_edges_that_were_lost_are_said_at_the_end_of_the_stream(unseen):
    logs = stopped(SimpleNamespace(interference=lambda: 0, unseen=unseen), lambda: None)
    assert logs == [f"{unseen} edges of ALERT were lost, their samples count as missed"] * bool(unseen)
