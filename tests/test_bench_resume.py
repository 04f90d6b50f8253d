"""benchmarks/resume.py at a few moments of a small plan: killed by SIGKILL, gone on with, in model time."""

import pytest
from test_resume import PLAN

from ssdrig import journal, parts
from ssdrig.benchmarks import resume


@pytest.fixture
def small(tmp_path, monkeypatch):
    plan = tmp_path / "small.toml"
    point = '  over = [{ block = ["16 KiB", "4 KiB"] }]\n  qd = 4\n'
    plan.write_text(
        PLAN.replace("most = 7", "most = 25")
        .replace('  block = "4 KiB"\n', point)
        .replace('["iops"]', '["iops block=4KiB"]')
    )
    for name, value in (("PLAN", str(plan)), ("VARIANT", None), ("SETS", {}), ("CAPACITY_BYTES", 256 << 20)):
        monkeypatch.setattr(resume, name, value)
    size = {"capacity_bytes": 256 << 20, "raw_nand_bytes": 256 << 20}
    monkeypatch.setattr(resume, "DRIVE", resume.DRIVE | size)
    return tmp_path / "runs"


@pytest.mark.parametrize("moments", [(12, None), (40, 30), (60, None)])
def test_a_run_that_was_killed_goes_on_to_a_steady_state_of_its_own(small, moments):
    small.mkdir()
    run = resume.begun(small, moments[0], 1)
    assert journal.state(run) == "died"
    assert resume.gone_on(run, moments[1])
    while resume.gone_on(run, None):
        pass
    assert len(parts.of(run)) == (2 if moments[1] is None else 3)
    matrix, faults = resume.matrix(run)
    assert len(matrix) == 2 and faults == [] and all(iops > 0 for iops in matrix.values())
