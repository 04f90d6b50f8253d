"""The settings of the SIMULATED board: known by name, the others left as they are."""

import pytest

from ssdrig.base.errors import UsageError
from ssdrig.virtual.rig import faults


def test_what_is_given_changes_what_is_usual():
    board, transport = faults.settings({"ppm": 80, "loss": 0.1})
    assert board == {**faults.BOARD, "ppm": 80} and transport == {**faults.TRANSPORT, "loss": 0.1}
    assert faults.settings({}) == (faults.BOARD, faults.TRANSPORT)


def test_a_name_is_of_the_board_or_of_the_cable_or_unknown():
    assert not faults.BOARD.keys() & faults.TRANSPORT.keys()
    with pytest.raises(UsageError, match="lossy"):
        faults.settings({"loss": 0.1, "lossy": 1})
