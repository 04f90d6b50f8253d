"""The settings of the SIMULATED board: known by name, the others left as they are."""

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.virtual import rig_faults


def test_what_is_given_changes_what_is_usual():
    board, transport = rig_faults.settings({"ppm": 80, "loss": 0.1})
    assert board == {**rig_faults.BOARD, "ppm": 80} and transport == {**rig_faults.TRANSPORT, "loss": 0.1}
    assert rig_faults.settings({}) == (rig_faults.BOARD, rig_faults.TRANSPORT)


def test_a_name_is_of_the_board_or_of_the_cable_or_unknown():
    assert not rig_faults.BOARD.keys() & rig_faults.TRANSPORT.keys()
    with pytest.raises(UsageError, match="lossy"):
        rig_faults.settings({"loss": 0.1, "lossy": 1})
