"""commands/trace.py: a drive's model in the name of a file."""

from pathlib import Path

import pytest

from ssdrig.commands.trace import _file_name


@pytest.mark.parametrize("model", ["SD/MMC", "/etc/passwd", "../../x", "ä" * 300, "x" * 5000])
def test_any_model_makes_one_name(tmp_path, model):
    name = _file_name(f"recorded of {model} S1")
    assert Path(name).name == name
    (tmp_path / name).touch()
