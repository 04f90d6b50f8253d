"""powerloss/supply.py: what is a cut, and two commands as a switch."""

import time

import pytest

from ssdrig.errors import RigError
from ssdrig.powerloss import supply


def rail(**more):
    return {"rail": 0, "before_mV": 5000, "residual_mV": 12, "t90_10_us": 900, **more}


def test_a_rail_that_stays_above_the_lock_out_was_not_cut():
    assert supply.no_cut({"rails": [rail(), rail(rail=1)]}) == ""
    assert supply.no_cut({"rails": [rail(residual_mV=3749)]}) == ""
    why = supply.no_cut({"rails": [rail(), rail(rail=1, residual_mV=3750)]})
    assert why.startswith("rail 1 was not seen below 3750")
    assert "None" in supply.no_cut({"rails": [rail(residual_mV=None)]})


def test_two_commands_cut_and_power_may_have_returned_when_the_second_begins(tmp_path):
    there = tmp_path / "there"
    there.touch()
    switch = supply.CommandSupply(f"rm {there}", f"touch {there}", there.exists)
    before_ns = time.monotonic_ns()
    found = switch.cut("crowbar", before_ns + 30_000_000, 0.05)
    assert there.exists() and found.why_not == "" and found.report is None
    assert before_ns + 30_000_000 <= found.fired_ns < found.fired_ns + found.bound_ns < found.on_ns
    assert found.off_s >= 0.05


def test_a_drive_that_still_answers_was_not_cut():
    assert "still answered" in supply.CommandSupply("true", "true", lambda: True).cut("float", None, 0.0).why_not


def test_a_command_that_fails_ends_it_and_power_is_given_back(tmp_path):
    there = tmp_path / "there"
    switch = supply.CommandSupply("echo burnt >&2; exit 3", f"touch {there}", lambda: False)
    with pytest.raises(RigError, match="exit code 3: burnt"):
        switch.cut("crowbar", None, 0.0)
    switch.restore()
    assert there.exists()
    there.unlink()
    switch.restore()  # it has its power
    assert not there.exists()
