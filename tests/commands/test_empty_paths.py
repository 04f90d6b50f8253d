"""An empty word where a command takes a path, as of a shell variable that is not set, is not the current folder."""

import pytest
import synthetic_run

from ssdrig import cli

WORDS = {
    "report": "RUN",
    "resume": "RUN",
    "export --parquet lake": "RUN",
    "wear --smartctl": "--smartctl",
    "wear --smartctl a.json": "--smartctl",
    "wear --history": "--history",
    "report a --output": "--output",
}


@pytest.mark.parametrize("words, name", WORDS.items())
def test_an_empty_path_is_a_usage_error(words, name, tmp_path, monkeypatch, capsys):
    """In a run folder, too, each of them would have taken for the path."""
    monkeypatch.chdir(synthetic_run.write(tmp_path, [1000, 1000]))
    before = sorted(tmp_path.rglob("*"))
    assert cli.main([*words.split(), ""]) == 2
    seen = capsys.readouterr()
    assert f"expected {name} with a path\n  found: ''\n" in seen.err and not seen.out
    assert sorted(tmp_path.rglob("*")) == before
