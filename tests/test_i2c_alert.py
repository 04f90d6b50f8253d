"""firmware/i2c_fifo.py, its very source on CPython: edges of ALERT that are no conversion's."""

from test_i2c_fifo import ALERT, SAMPLE, TORN, bus_of, fifo

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
