"""The calibration that the board keeps: firmware/calibration.py on CPython."""

import importlib.util
import json
import os

import pytest
from simboard import ROOT

# ---- the board's file


@pytest.fixture
def board_file(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("firmware_calibration", ROOT / "firmware/calibration.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    return module


def command(module, **body):
    module.command(json.dumps(body).encode(), [0, 2])


def test_the_board_keeps_and_forgets(board_file, tmp_path):
    assert board_file.load() == {}
    command(board_file, rail=0, calibration={"V": {"x1_n": 5}})
    command(board_file, rail=2, calibration={"I": {"x1_n": 12_000_000_000}})
    assert board_file.load() == {"0": {"V": {"x1_n": 5}}, "2": {"I": {"x1_n": 12_000_000_000}}}
    command(board_file, rail=0, calibration=None)
    assert board_file.load() == {"2": {"I": {"x1_n": 12_000_000_000}}} and os.listdir(tmp_path) == ["calibration.json"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"rail":1,"calibration":null}',
        b'{"rail":0,"calibration":3}',
        b'{"rail":"0","calibration":{}}',
    ],
)
def test_the_board_refuses(board_file, tmp_path, body):
    with pytest.raises(ValueError):
        board_file.command(body, [0, 2])
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["", "{", "[1]", "\x00\xff"])
def test_a_damaged_file_is_no_calibration(board_file, tmp_path, content):
    (tmp_path / "calibration.json").write_text(content, "latin-1")
    assert board_file.load() == {}
    command(board_file, rail=0, calibration={"a": 1})
    assert board_file.load() == {"0": {"a": 1}}


def test_a_flash_that_is_full_loses_nothing(board_file, monkeypatch):
    command(board_file, rail=0, calibration={"a": 1})

    def full(old, new):
        raise OSError(28)

    monkeypatch.setattr(board_file.os, "rename", full)
    with pytest.raises(ValueError, match="flash refuses"):
        command(board_file, rail=0, calibration={"a": 2})
    assert board_file.load() == {"0": {"a": 1}}
