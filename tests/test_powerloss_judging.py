"""powerloss/judging.py: whom a session without a cut accuses."""

import numpy as np
import pytest

from ssdrig.powerloss import health, history, judging, schedule
from ssdrig.powerloss.aim import Plan
from ssdrig.powerloss.cycle import Lived
from ssdrig.powerloss.history import FLUSH, TRIM, WRITE
from ssdrig.powerloss.promise import FLUSH as KEPT_ONCE_FLUSHED
from ssdrig.powerloss.promise import Promise
from ssdrig.powerloss.verdict import Blocks

PROMISE = Promise(KEPT_ONCE_FLUSHED, 512, 1, 0, 0, "zeros", True, "")


@pytest.mark.parametrize(("seen", "finding", "harness"), [(1, "TRIM_KEPT", False), (0, "LOST_ACKED", True)])
def test_a_drive_that_ignores_a_trim_is_no_fault_of_the_harness(seen, finding, harness):
    """A trim is advice; but a write that is not there without a cut was lost by cable, host or ssdrig."""
    rows = np.zeros(3 if seen else 1, history.ROW)
    for row, kind, t_ns in zip(rows, (WRITE, TRIM, FLUSH), (10, 30, 50)):
        row["seq"], row["n"], row["kind"], row["submit_ns"], row["done_ns"] = t_ns // 10, 1, kind, t_ns, t_ns + 10
    cut = schedule.Cut(1, "random", 0, None, schedule.NO_CUT, 1, 1.0)
    lived = Lived(rows, 70, 70, 80, None, Plan(schedule.NO_CUT, 70))
    blocks = Blocks(*(np.array([each]) for each in (0, 0, seen, False)))
    none, nothing = health.State(0.0), lambda lba: None
    found = judging.judge(cut, lived, blocks, 90, PROMISE, True, none, none, None, None, nothing)
    assert bool(found.harness) == harness and found.record["judged"] != harness
    assert found.record["findings"] == ({} if harness else {finding: 1})
    assert (finding in found.harness) == harness
