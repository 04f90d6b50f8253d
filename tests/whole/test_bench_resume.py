"""selfcheck/resume.py at a few moments of a small plan: killed by SIGKILL, gone on with, in model time."""

import pytest
from killed_runs import PLAN

from selfcheck import resume
from ssdrig.runs import journal, parts


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


@pytest.mark.parametrize(
    ("moments", "reboot"),
    [
        pytest.param((12, None), False, marks=pytest.mark.slow),
        pytest.param((40, 30), False, marks=pytest.mark.slow),
        ((60, None), True),
    ],
)
def test_a_run_that_was_killed_goes_on_to_a_steady_state_of_its_own(small, moments, reboot, monkeypatch):
    small.mkdir()
    run = resume.begun(small, moments[0], 1)
    assert journal.state(run) == "died"
    assert resume.gone_on(run, moments[1], reboot)
    while resume.gone_on(run, None):
        pass
    assert len(parts.of(run)) == (2 if moments[1] is None else 3)
    matrix = resume.matrix(run)
    assert len(matrix) == 2 and resume.faults(run) == [] and all(iops > 0 for iops in matrix.values())
    one, last = (journal.run_header(part) for part in (run, parts.of(run)[-1]))
    restarted = last["started"]["t_ns"] < one["started"]["t_ns"]
    assert restarted == reboot == (last["host"]["boot_id"] != one["host"]["boot_id"])
    assert last["started"]["utc_ns"] > one["started"]["utc_ns"]
    rounds = [event for event in journal.events(parts.of(run)[-1]) if event["kind"] == "round"]
    assert len(rounds) >= 6 and not any(event["steady"] for event in rounds[:5])  # the first only preconditions
    judged = rounds[-1]["tracked"]["iops block=4KiB"]["rounds"]
    monkeypatch.setattr(resume, "_tracked", lambda run, words: [0.0, *judged[1:]])
    assert any("judged" in words for words in resume.faults(run))  # a round of an earlier part
