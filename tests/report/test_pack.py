"""What the plots of the page are given: the lanes of events."""

from types import SimpleNamespace

import numpy as np

from ssdrig.report import pack

ZERO_NS, SECOND_NS = 10**12, 10**9


def lanes(events, marks):
    """Of a load of 20 s, whose first I/O is at 0 s."""
    events = [{"t_ns": ZERO_NS + round(t_s * SECOND_NS), "kind": kind, **more} for t_s, kind, more in events]
    axis_s = lambda t_ns: (np.asarray(t_ns) - ZERO_NS) / SECOND_NS
    return pack.lanes(SimpleNamespace(events=events, marks=marks, iops=np.ones(20), axis_s=axis_s))


def test_steps_after_the_load_have_a_lane_and_others_theirs():
    steps = [("fill", -9, -1), ("load", -0.5, 20.1), ("flush", 20.2, 20.9), ("idle", 21, 25), ("later", 900, 901)]
    events = [
        one for step, a, b in steps for one in ((a, "step.start", {"step": step}), (b, "step.end", {"step": step}))
    ]
    marks = [(3.0, "fan off"), (4.0, "rig was reset"), (5.0, "window starts"), (6.0, "SMART poll failed")]
    assert lanes(events, marks) == [
        ["Steps", [[20.2, 20.9, "flush"], [21.0, 25.0, "idle"], [5.0, 5.0, "window starts"]]],
        ["Rig", [[4.0, 4.0, "rig was reset"]]],
        ["Notes", [[3.0, 3.0, "fan off"], [6.0, 6.0, "SMART poll failed"]]],
    ]


def test_a_run_without_events_has_no_lanes():
    assert lanes([], []) == []
