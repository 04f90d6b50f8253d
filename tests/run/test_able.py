"""What the bench around a real drive can do: asked only where a plan needs it."""

import pytest
from collecting import NVME, tools  # noqa: F401  fixture
from fake_tools import identity

from ssdrig.plan import grammar
from ssdrig.run import able, bench


@pytest.mark.parametrize("plan", ["consistency", "working-set", "host-memory", "zones"])
def test_a_drive_is_not_asked_for_what_no_plan_needs(tools, plan):
    needs = grammar.read(*grammar.find(plan)).asks
    tools.nvme({"id-ctrl": identity(ctratt=1 << 19)})
    assert "fdp" not in able.of_real(NVME, None, needs) and bench.handles_of(NVME, needs) == []
    assert tools.calls() == []


def test_a_drive_is_asked_for_what_a_plan_or_one_of_its_steps_needs(tools):
    needs = grammar.read(*grammar.find("placement")).asks
    assert {"purge", "fdp"} <= needs
    tools.nvme({"id-ctrl": identity()})
    assert "fdp" not in able.of_real(NVME, None, needs) and bench.handles_of(NVME, needs) == []
    assert any(call.startswith("nvme id-ctrl") for call in tools.calls())
    assert {"aspm", "apst", "alpm"} <= grammar.read(*grammar.find("idle-power")).asks
