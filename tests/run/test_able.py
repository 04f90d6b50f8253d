"""What the bench around a real drive can do: asked only where a plan needs it."""

import contextlib

import pytest
from collecting import NVME, tools  # noqa: F401  fixture
from fake_tools import identity
from small_plans import DRIVE, FILLED, HEAD

from ssdrig.base.errors import UsageError
from ssdrig.plan import grammar
from ssdrig.run import able, bench, prepare


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


@pytest.mark.parametrize(
    ("io_poll", "allowed", "can", "why"),
    [("1", True, True, None), ("1", False, False, "io_uring"), ("0", True, False, "poll_queues")],
)
def test_polling_needs_queues_of_the_drive_and_io_uring_of_the_kernel(tools, monkeypatch, io_poll, allowed, can, why):
    monkeypatch.setattr(able.sysfs, "text", lambda path, *_: io_poll if path.endswith("io_poll") else "")
    monkeypatch.setattr(able.uring, "allowed", lambda: allowed)
    assert ("polled" in able.of_real(NVME, None, frozenset({"polled"}))) is can
    assert why is None or why in able.reasons(NVME, ["polled"])


ASKING = """[[step]]
name = "load"
do = "load"
pattern = "random"
block = "4 KiB"
read = 0
time = "1 s"
engine = "io_uring"
"""


@pytest.mark.parametrize("interface", ["NVMe", "nbd"])
def test_a_step_that_asks_for_io_uring_is_refused_before_anything_starts(tmp_path, monkeypatch, interface):
    """fio reaches an NBD server by an engine of its own."""
    monkeypatch.setattr(prepare.uring, "allowed", lambda: False)
    (tmp_path / "plan.toml").write_text(HEAD + FILLED + ASKING)
    drive = {**DRIVE, "interface": interface}
    with contextlib.nullcontext() if interface == "nbd" else pytest.raises(UsageError) as refusal:
        prepare.prepare(str(tmp_path / "plan.toml"), drive, capabilities=prepare.REAL)
    assert interface == "nbd" or refusal.value.expected == "io_uring for load"
