"""The bench that kills campaigns: what it says of one that never began."""

import random
import subprocess

from selfcheck import powerloss_kill, powerloss_runs


def test_a_campaign_that_makes_no_run_folder_is_a_fault_and_the_others_go_on(tmp_path, monkeypatch):
    """On a host without time for it the bench ended with an AssertionError, and what it had found was lost."""

    def begin(runs, cuts, *sets):
        (runs / "output").write_text("usage\n")
        return subprocess.Popen(["false"], start_new_session=True)

    monkeypatch.setattr(powerloss_runs, "begin", begin)
    outcome = powerloss_kill._one("fill", "host", random.Random(1), tmp_path / "0")
    assert outcome["caught"] == "" and outcome["faults"] == ["it has made no run folder: usage"]
    assert {"victim", "phase", "kept", "resumes"} < set(outcome)
