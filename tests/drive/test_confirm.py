"""Consent to destroy data: given as a word, or typed at a terminal."""

import os
import pty

import pytest
from drives import a_drive

from ssdrig.base.errors import UnsafeTarget
from ssdrig.drive import confirm

DRIVE = a_drive(serial="S3Z8NB0K123456")


def test_the_flag_is_passed_on_for_the_guard_to_compare():
    assert confirm.confirmed(DRIVE, "whatever") == "whatever"


def test_without_terminal_and_flag(monkeypatch):
    monkeypatch.setattr("sys.stdin", open(os.devnull))
    with pytest.raises(UnsafeTarget, match="--destroy-data S3Z8NB0K123456"):
        confirm.confirmed(DRIVE, None)


@pytest.fixture
def at_terminal(monkeypatch):
    """at_terminal(text): stdin and stderr are a pseudo-terminal from now on, at which a person has typed that."""
    ours, theirs = pty.openpty()

    def typing(text: str) -> None:
        monkeypatch.setattr("sys.stdin", os.fdopen(theirs, "r", closefd=False))
        monkeypatch.setattr("sys.stderr", os.fdopen(theirs, "w", closefd=False))
        os.write(ours, text.encode() + b"\n")

    yield typing
    monkeypatch.undo()
    os.close(ours)
    os.close(theirs)


@pytest.mark.parametrize("typed", ["123456", "123456 "])
def test_typed(at_terminal, typed):
    at_terminal(typed)
    assert confirm.confirmed(DRIVE, None) == "S3Z8NB0K123456"


@pytest.mark.parametrize("typed", ["", "yes", "23456", "S3Z8NB0K123456"])
def test_typed_wrong(at_terminal, typed):
    at_terminal(typed)
    with pytest.raises(UnsafeTarget):
        confirm.confirmed(DRIVE, None)


def test_a_drive_without_serial_cannot_be_confirmed(at_terminal):
    at_terminal("")
    with pytest.raises(UnsafeTarget, match="no serial"):
        confirm.confirmed(a_drive(serial=""), None)
